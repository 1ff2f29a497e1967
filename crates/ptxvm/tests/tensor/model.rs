//! What copies do, element by element, in as few words as possible: nothing here is shared with `sem`.

use ptxvm::tensor_map::{Im2col, Mode, Swizzle, TensorMap};

use super::Pattern;

/// Bytes of shared memory that are looked at.
pub const SHARED: usize = 24576;
/// What nobody wrote.
pub const UNTOUCHED: u8 = 0xa5;

/// `Swizzle<B, M, S>` of CUTLASS: bits M + S and up are added to bits M and up.
fn swizzled(swizzle: Swizzle, at: usize) -> usize {
    let (bits, base, shift) = match swizzle {
        Swizzle::None => return at,
        Swizzle::Bytes32 => (1, 4, 3),
        Swizzle::Bytes64 => (2, 4, 3),
        Swizzle::Bytes128 => (3, 4, 3),
        Swizzle::Bytes128By32 | Swizzle::Bytes128By32Flip8 => (2, 5, 2),
        Swizzle::Bytes128By64 => (1, 6, 1),
    };
    let flip = if swizzle == Swizzle::Bytes128By32Flip8 { (at >> 7 & 1) << 3 } else { 0 };
    at ^ (at >> shift & ((1 << bits) - 1) << base) ^ flip
}

/// Where an element of the box is, in shared memory, and in the tensor's memory if it is there.
pub struct Element {
    pub shared: usize,
    pub global: Option<usize>,
    /// Where a store writes it though it is behind the end of a row, because an element of the box before it in the
    /// same 16 bytes is not.
    pub behind: Option<usize>,
}

/// Bytes of an element.
pub fn size(map: &TensorMap) -> usize {
    map.element.bits() as usize / 8
}

/// All elements of a copy, whose box begins at `place`; the tensor begins at `origin` of its memory.
pub fn elements(
    map: &TensorMap,
    origin: usize,
    pattern: Pattern,
    at: &[i32],
    offsets: &[u16],
    place: usize,
) -> Vec<Element> {
    let rank = map.rank;
    let rows: Vec<Vec<i64>> = match map.mode {
        Mode::Tiled(_) if pattern == Pattern::Rows => at[1..].iter().map(|&row| vec![row.into()]).collect(),
        Mode::Tiled(taken) => {
            let count = |d: usize| taken[d].div_ceil(map.steps[d]) as usize;
            let all: usize = (1..rank).map(count).product();
            (0..all)
                .map(|mut index| {
                    (1..rank)
                        .map(|d| {
                            let i = index % count(d);
                            index /= count(d);
                            i64::from(at[d]) + i as i64 * i64::from(map.steps[d])
                        })
                        .collect()
                })
                .collect()
        }
        Mode::Im2col(columns) => pixels(map, &columns, at, offsets),
        Mode::Im2colWide { columns, w128 } => wide_pixels(map, &columns, w128, at, offsets),
    };
    let (size, length) = (
        size(map),
        match map.mode {
            Mode::Tiled(taken) => taken[0] as usize,
            Mode::Im2col(columns) | Mode::Im2colWide { columns, .. } => columns.channels as usize,
        },
    );
    let span = match map.swizzle {
        Swizzle::None => 16,
        Swizzle::Bytes32 => 32,
        Swizzle::Bytes64 => 64,
        _ => 128,
    };
    let pitch = (length * size).next_multiple_of(16).max(span);
    let mut all = Vec::new();
    for (row, outer) in rows.iter().enumerate() {
        for i in 0..length {
            let x = i64::from(at[0]) + i as i64;
            let row_is_there =
                outer.iter().zip(&map.extents[1..]).all(|(at, &extent)| (0..extent as i64).contains(at));
            let is_there = row_is_there && (0..map.extents[0] as i64).contains(&x);
            let whole = (map.extents[0] as usize * size).next_multiple_of(16) / size;
            let is_behind = row_is_there
                && i64::from(at[0]) < map.extents[0] as i64
                && (map.extents[0] as i64..whole as i64).contains(&x);
            let offset: i64 =
                outer.iter().zip(&map.strides).map(|(at, &stride)| at.wrapping_mul(stride as i64)).sum();
            let at = || origin + offset as usize + x as usize * size;
            let (global, behind) = (is_there.then(at), is_behind.then(at));
            all.push(Element {
                shared: swizzled(map.swizzle, place + row * pitch + i * size),
                global,
                behind,
            });
        }
    }
    all
}

/// The pixels of columns: the first lies in the bounding box, at a multiple of the steps from its corner.
fn pixels(map: &TensorMap, columns: &Im2col, at: &[i32], offsets: &[u16]) -> Vec<Vec<i64>> {
    let inner = map.rank - 2;
    let corner = |d: usize| (columns.lower[d - 1], columns.upper[d - 1]);
    let step = |d: usize| i64::from(map.steps[d]);
    let count = |d: usize| {
        let (lower, upper) = corner(d);
        let width = map.extents[d] as i64 + i64::from(upper) - i64::from(lower);
        (width + step(d) - 1) / step(d)
    };
    let mut first = i64::from(at[inner + 1]);
    // The number of the first pixel, counted from the one of coordinate 0 of the outermost dimension.
    if step(inner + 1) != 1 {
        first = 0;
    }
    for d in (1..=inner).rev() {
        first = first * count(d) + (i64::from(at[d]) - i64::from(corner(d).0)) / step(d);
    }
    (0..i64::from(columns.pixels))
        .map(|i| {
            let mut rest = first + i;
            let mut pixel: Vec<i64> = (1..=inner)
                .map(|d| {
                    let place = rest.rem_euclid(count(d)) * step(d);
                    rest = rest.div_euclid(count(d));
                    place + i64::from(corner(d).0) + i64::from(offsets[d - 1])
                })
                .collect();
            pixel.push(match step(inner + 1) {
                1 => rest,
                step => i64::from(at[inner + 1]) + rest * step,
            });
            pixel
        })
        .collect()
}

/// The pixels of columns along the width: those of one row of each image, the first of which may begin to the left of the box; behind
/// all of them, or every 32 of 128, as many as the halo has of those that follow.
fn wide_pixels(map: &TensorMap, columns: &Im2col, w128: bool, at: &[i32], offsets: &[u16]) -> Vec<Vec<i64>> {
    let (images, step) = (map.rank - 1, map.steps[1] as usize);
    let [lower, upper] = [columns.lower[0], columns.upper[0]].map(i64::from);
    let end = map.extents[1] as i64 + upper;
    let row = |image: i64| {
        let begin = if image == 0 { i64::from(at[1]) } else { lower };
        (begin..end).step_by(step).map(move |w| (image, w))
    };
    let follow = |(image, w): (i64, i64)| {
        let mut pixel = vec![w + i64::from(offsets[1])];
        pixel.extend(at[2..images].iter().map(|&at| i64::from(at)));
        pixel.push(i64::from(at[images]) + image);
        pixel
    };
    let (group, groups) = if w128 { (32, 4) } else { (columns.pixels as usize, 1) };
    let halo = usize::from(offsets[0]);
    let all: Vec<_> = (0..).flat_map(row).take(group * groups + halo).map(follow).collect();
    (0..groups).flat_map(|i| all[i * group..(i + 1) * group + halo].to_vec()).collect()
}
