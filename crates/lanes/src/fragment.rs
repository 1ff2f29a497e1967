//! Fragments of matrices: from the registers of a warp to rows of binary32, and back.
//!
//! A register of a warp holds a tile of 8 rows (or columns): four lanes a row, one part of the register behind the other. So a
//! fragment is brought into the order of its matrix tile by tile, by vector instructions, not element by element.

use super::path::{BLOCK, Path, WARP};

/// Lanes of one line of a tile, and lines of a tile.
const LINE_LANES: usize = 4;
const LINES: usize = WARP / LINE_LANES;

/// How the elements of a register become binary32, which holds all of them.
#[derive(Clone, Copy, Debug)]
pub enum MatrixElement {
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// Words of which only the bits of this mask count, as they are.
    Word(u32),
    /// Bytes that stand for these numbers.
    Byte(&'static [f32; 256]),
    /// Integers.
    U8,
    /// Integers.
    S8,
}

impl MatrixElement {
    /// Elements of a word.
    pub fn in_word(self) -> usize {
        match self {
            MatrixElement::Word(_) => 1,
            MatrixElement::F16 | MatrixElement::Bf16 => 2,
            MatrixElement::Byte(_) | MatrixElement::U8 | MatrixElement::S8 => 4,
        }
    }
}

/// How the tiles of a fragment lie in its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiling {
    /// The lines of a tile are rows.
    Rows,
    /// The lines of a tile are columns.
    Columns,
    /// Two registers share a tile of rows: one has the even columns, the next one the odd ones. Elements are words.
    Pairs,
}

/// Where the elements of a fragment stand in a matrix that is stored row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    tiling: Tiling,
    /// Where each tile begins.
    starts: Vec<usize>,
    /// Elements of a row of the matrix.
    columns: usize,
    in_word: usize,
    /// One past the last place that a tile has.
    end: usize,
}

impl Tiles {
    /// The tiles of a fragment, if it has such: part `i` of the register `r` of lane `l`, of `in_word` parts, stands at
    /// `places[(r * 32 + l) * in_word + i]` of a matrix of so many columns.
    pub fn find(places: &[u16], in_word: usize, columns: usize) -> Option<Tiles> {
        let registers = places.chunks_exact(WARP * in_word);
        if !matches!(in_word, 1 | 2 | 4) || !registers.remainder().is_empty() || places.is_empty() {
            return None;
        }
        let tilings = [Tiling::Rows, Tiling::Columns, Tiling::Pairs];
        let found = tilings.into_iter().find(|&tiling| {
            let step = match tiling {
                Tiling::Rows => 1,
                Tiling::Columns => columns,
                Tiling::Pairs => 2,
            };
            let line = if tiling == Tiling::Columns { 1 } else { columns };
            registers.clone().enumerate().all(|(register, places)| {
                let start = usize::from(places[0]);
                let lanes = places.chunks_exact(in_word).enumerate();
                let fits = lanes
                    .flat_map(|(lane, parts)| parts.iter().enumerate().map(move |p| (lane, p)))
                    .all(|(lane, (part, &place))| {
                        let along = (lane % LINE_LANES * in_word + part) * step;
                        usize::from(place) == start + lane / LINE_LANES * line + along
                    });
                // The next register has what lies between.
                let paired = tiling != Tiling::Pairs
                    || register % 2 == 1
                    || registers
                        .clone()
                        .nth(register + 1)
                        .is_some_and(|next| usize::from(next[0]) == start + 1);
                fits && paired
            })
        });
        let tiling = found?;
        if tiling == Tiling::Pairs && in_word != 1 {
            return None;
        }
        let each = if tiling == Tiling::Pairs { 2 } else { 1 };
        let starts: Vec<usize> = registers.step_by(each).map(|places| places[0].into()).collect();
        let across = LINE_LANES * if tiling == Tiling::Pairs { 2 } else { in_word };
        let (tile_rows, tile_columns) =
            if tiling == Tiling::Columns { (across, LINES) } else { (LINES, across) };
        let last = starts.iter().max().map_or(0, |start| start + (tile_rows - 1) * columns);
        Some(Tiles { tiling, starts, columns, in_word, end: last + tile_columns })
    }

    /// Registers of the fragment.
    pub fn registers(&self) -> usize {
        self.starts.len() * if self.tiling == Tiling::Pairs { 2 } else { 1 }
    }

    /// How they lie.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// The row and the column where each tile begins.
    pub fn starts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.starts.iter().map(|start| (start / self.columns, start % self.columns))
    }
}

/// The most elements of a register of a warp.
const MOST: usize = WARP * 4;

/// See [`MatrixHelpers`](super::MatrixHelpers), for this and the following.
///
/// # Panics
/// If the matrix has not all the places of the tiles, or there are not as many registers as tiles want.
#[inline(always)]
pub(super) unsafe fn gather<P: Path>(
    registers: &[*const u32],
    tiles: &Tiles,
    element: MatrixElement,
    to: &mut [f32],
) {
    assert!(
        registers.len() == tiles.registers() && to.len() >= tiles.end && element.in_word() == tiles.in_word
    );
    let mut values = [0.0; MOST];
    let (lines, columns) = (tiles.in_word * LINE_LANES, tiles.columns);
    // SAFETY: the registers have a warp's words; the matrix has the places of all tiles.
    unsafe {
        let to = to.as_mut_ptr();
        match tiles.tiling {
            Tiling::Pairs => {
                for (pair, &start) in registers.as_chunks::<2>().0.iter().zip(&tiles.starts) {
                    let [even, odd] = pair.map(|register| register.cast::<[f32; WARP]>().read_unaligned());
                    for line in 0..LINES {
                        let mut row = [0.0; 2 * LINE_LANES];
                        for i in 0..LINE_LANES {
                            row[2 * i] = even[line * LINE_LANES + i];
                            row[2 * i + 1] = odd[line * LINE_LANES + i];
                        }
                        to.add(start + line * columns).cast::<[f32; 2 * LINE_LANES]>().write_unaligned(row);
                    }
                }
            }
            tiling => {
                for (&register, &start) in registers.iter().zip(&tiles.starts) {
                    widen::<P>(register, WARP, element, values.as_mut_ptr());
                    let to = to.add(start);
                    match (tiling, lines) {
                        (Tiling::Columns, 4) => put_columns::<P, 4>(&values, to, columns),
                        (Tiling::Columns, 8) => put_columns::<P, 8>(&values, to, columns),
                        (Tiling::Columns, _) => put_columns::<P, 16>(&values, to, columns),
                        (_, 4) => put_rows::<4>(&values, to, columns),
                        (_, 8) => put_rows::<8>(&values, to, columns),
                        _ => put_rows::<16>(&values, to, columns),
                    }
                }
            }
        }
    }
}

/// # Safety
/// There must be room for 8 rows of `N` elements, `columns` elements from each to the next.
#[inline(always)]
unsafe fn put_rows<const N: usize>(values: &[f32; MOST], to: *mut f32, columns: usize) {
    for line in 0..LINES {
        // SAFETY: the caller's promise.
        unsafe {
            let row = values.as_ptr().add(line * N).cast::<[f32; N]>().read();
            to.add(line * columns).cast::<[f32; N]>().write_unaligned(row);
        }
    }
}

/// # Safety
/// There must be room for `N` rows of 8 elements, `columns` elements from each to the next.
#[inline(always)]
unsafe fn put_columns<P: Path, const N: usize>(values: &[f32; MOST], to: *mut f32, columns: usize) {
    // SAFETY: the caller's promise; the host has the path's instructions.
    unsafe {
        let values = values.as_ptr();
        if N == 4 {
            for half in 0..2 {
                let lines = values.add(half * 4 * N).cast::<[[u32; 4]; 4]>().read_unaligned();
                for (k, row) in P::transpose4(lines).into_iter().enumerate() {
                    to.add(k * columns + half * 4).cast::<[u32; 4]>().write_unaligned(row);
                }
            }
            return;
        }
        for first in (0..N).step_by(8) {
            let line = |line: usize| values.add(line * N + first).cast::<[f32; 8]>().read();
            for (k, row) in P::transpose8(std::array::from_fn(line)).into_iter().enumerate() {
                to.add((first + k) * columns).cast::<[f32; 8]>().write_unaligned(row);
            }
        }
    }
}

/// # Panics
/// As [`gather`]; or if the lines are columns, or the elements bytes.
#[inline(always)]
pub(super) unsafe fn spread<P: Path>(
    from: &[f32],
    tiles: &Tiles,
    element: MatrixElement,
    registers: &[*mut u32],
) {
    assert!(
        registers.len() == tiles.registers() && from.len() >= tiles.end && element.in_word() == tiles.in_word
    );
    assert!(tiles.tiling != Tiling::Columns && tiles.in_word <= 2);
    let columns = tiles.columns;
    // SAFETY: as in `gather`.
    unsafe {
        let from = from.as_ptr();
        if tiles.tiling == Tiling::Pairs {
            for (pair, &start) in registers.as_chunks::<2>().0.iter().zip(&tiles.starts) {
                let (mut even, mut odd) = ([0.0; WARP], [0.0; WARP]);
                for line in 0..LINES {
                    let row =
                        from.add(start + line * columns).cast::<[f32; 2 * LINE_LANES]>().read_unaligned();
                    for i in 0..LINE_LANES {
                        even[line * LINE_LANES + i] = row[2 * i];
                        odd[line * LINE_LANES + i] = row[2 * i + 1];
                    }
                }
                pair[0].cast::<[f32; WARP]>().write_unaligned(even);
                pair[1].cast::<[f32; WARP]>().write_unaligned(odd);
            }
            return;
        }
        for (&register, &start) in registers.iter().zip(&tiles.starts) {
            let mut values = [0.0; 2 * WARP];
            match element {
                MatrixElement::F16 => {
                    for line in 0..LINES {
                        let row = from.add(start + line * columns).cast::<[f32; 8]>().read_unaligned();
                        values.as_mut_ptr().add(line * 8).cast::<[f32; 8]>().write(row);
                    }
                    for (i, block) in values.as_chunks::<BLOCK>().0.iter().enumerate() {
                        let halves = P::f32_to_f16(*block);
                        register.cast::<[u16; BLOCK]>().add(i).write_unaligned(halves);
                    }
                }
                _ => {
                    for line in 0..LINES {
                        let row = from.add(start + line * columns).cast::<[f32; 4]>().read_unaligned();
                        register.cast::<[f32; 4]>().add(line).write_unaligned(row);
                    }
                }
            }
        }
    }
}

/// The elements of some words, in order.
///
/// # Safety
/// There must be so many words, a number whose elements are a multiple of 16, and room for the elements; the host must have the
/// path's instructions.
#[inline(always)]
pub(super) unsafe fn widen<P: Path>(from: *const u32, words: usize, element: MatrixElement, to: *mut f32) {
    let blocks = words * element.in_word() / BLOCK;
    let to = to.cast::<[f32; BLOCK]>();
    // SAFETY: the caller's promise.
    unsafe {
        match element {
            MatrixElement::F16 => {
                for i in 0..blocks {
                    let halves = from.cast::<[u16; BLOCK]>().add(i).read_unaligned();
                    to.add(i).write_unaligned(P::f16_to_f32(halves));
                }
            }
            MatrixElement::Bf16 => {
                for i in 0..blocks {
                    let halves = from.cast::<[u16; BLOCK]>().add(i).read_unaligned();
                    to.add(i).write_unaligned(P::bf16_to_f32(halves));
                }
            }
            MatrixElement::Word(mask) => {
                for i in 0..blocks {
                    let mut words = from.cast::<[u32; BLOCK]>().add(i).read_unaligned();
                    for word in &mut words {
                        *word &= mask;
                    }
                    to.add(i).cast::<[u32; BLOCK]>().write_unaligned(words);
                }
            }
            MatrixElement::Byte(numbers) => each_byte(from, blocks, to, |byte| numbers[usize::from(byte)]),
            MatrixElement::U8 => each_byte(from, blocks, to, f32::from),
            MatrixElement::S8 => each_byte(from, blocks, to, |byte| f32::from(byte as i8)),
        }
    }
}

/// # Safety
/// There must be so many blocks of bytes, and room for as many of elements.
#[inline(always)]
unsafe fn each_byte(from: *const u32, blocks: usize, to: *mut [f32; BLOCK], f: impl Fn(u8) -> f32) {
    for i in 0..blocks {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = from.cast::<[u8; BLOCK]>().add(i).read_unaligned();
            let mut out = [0.0; BLOCK];
            for k in 0..BLOCK {
                out[k] = f(bytes[k]);
            }
            to.add(i).write_unaligned(out);
        }
    }
}
