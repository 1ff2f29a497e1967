//! Fragments of matrices: from the registers of a warp to rows of binary32, and back.
//!
//! A register of a warp holds a tile of 8 rows (or columns): four lanes a row, one part of the register behind the other. So a
//! fragment is brought into the order of its matrix tile by tile, by vector instructions, not element by element.

use sem::format::{Format, Specials};

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
    /// Numbers of at most 8 bits, each in a byte.
    Small(SmallFloat),
    /// Integers.
    U8,
    /// Integers.
    S8,
    /// Integers of 4 bits.
    U4,
    /// Integers of 4 bits.
    S4,
}

impl MatrixElement {
    /// Elements of a word.
    pub fn in_word(self) -> usize {
        match self {
            MatrixElement::Word(_) => 1,
            MatrixElement::F16 | MatrixElement::Bf16 => 2,
            MatrixElement::Small(_) | MatrixElement::U8 | MatrixElement::S8 => 4,
            MatrixElement::U4 | MatrixElement::S4 => 8,
        }
    }
}

/// A floating-point format of at most 8 bits, and where its encodings stand in a byte.
#[derive(Clone, Copy, Debug)]
pub struct SmallFloat {
    /// Bits below an encoding.
    shift: u32,
    /// Its bits but the sign.
    magnitude: u32,
    /// From the place of its sign, and of its fraction, to those of binary32.
    to_sign: u32,
    to_fraction: u32,
    /// What the biases differ in, in place.
    bias: u32,
    /// The magnitude of infinity, and above which there are NaNs.
    infinity: u32,
    greatest: u32,
}

impl SmallFloat {
    /// A format whose encodings stand so many bits above the lowest of their byte.
    pub fn new(format: &Format, shift: u32) -> SmallFloat {
        let magnitude = format.magnitude_mask() as u32;
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        let infinity = magnitude >> format.fraction_bits << format.fraction_bits;
        let (infinity, greatest) = match format.specials {
            Specials::InfinityAndNan => (infinity, infinity),
            Specials::NanOnly => (u32::MAX, magnitude - 1),
            Specials::None => (u32::MAX, magnitude),
        };
        SmallFloat {
            shift,
            magnitude,
            to_sign: 32 - format.bits() - shift,
            to_fraction: 23 - format.fraction_bits,
            bias: (127 - bias) << 23,
            infinity,
            greatest,
        }
    }

    /// The number that a byte holds.
    #[inline(always)]
    fn value(self, byte: u8) -> f32 {
        let magnitude = u32::from(byte) >> self.shift & self.magnitude;
        let sign = (u32::from(byte) << self.to_sign) & 1 << 31;
        let bits = magnitude << self.to_fraction;
        // Subnormal numbers have the exponent of the least normal ones, without the leading bit.
        let least = self.bias + (1 << 23);
        let subnormal = f32::from_bits(bits | least) - f32::from_bits(least);
        let normal = bits.wrapping_add(self.bias);
        let finite = if bits < 1 << 23 { subnormal.to_bits() } else { normal };
        let number = if magnitude > self.greatest { 0x7fff_ffff } else { finite };
        f32::from_bits(if magnitude == self.infinity { 0x7f80_0000 } else { number } | sign)
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
        if !matches!(in_word, 1 | 2 | 4 | 8) || !registers.remainder().is_empty() || places.is_empty() {
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

/// See [`MatrixHelpers`](super::MatrixHelpers), for this and the following; the words of the registers begin at `first`.
///
/// # Panics
/// If the matrix has not all the places of the tiles, or there are not as many registers as tiles want.
#[inline(always)]
pub(super) unsafe fn gather<P: Path>(
    registers: &[*const u32],
    first: usize,
    tiles: &Tiles,
    element: MatrixElement,
    to: &mut [f32],
) {
    assert!(
        registers.len() == tiles.registers() && to.len() >= tiles.end && element.in_word() == tiles.in_word
    );
    let (to, columns) = (to.as_mut_ptr(), tiles.columns);
    if tiles.tiling == Tiling::Pairs {
        for (pair, &start) in registers.as_chunks::<2>().0.iter().zip(&tiles.starts) {
            // SAFETY: the registers have a warp's words; the matrix has the places of all tiles.
            unsafe {
                for line in 0..LINES {
                    let at = first + line * LINE_LANES;
                    let a = pair[0].add(at).cast::<[f32; LINE_LANES]>().read_unaligned();
                    let b = pair[1].add(at).cast::<[f32; LINE_LANES]>().read_unaligned();
                    let row = [a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]];
                    to.add(start + line * columns).cast::<[f32; 2 * LINE_LANES]>().write_unaligned(row);
                }
            }
        }
        return;
    }
    let by_column = tiles.tiling == Tiling::Columns;
    for (&register, &start) in registers.iter().zip(&tiles.starts) {
        // SAFETY: as above; the path's instructions are there.
        unsafe {
            let (from, to) = (register.add(first), to.add(start));
            // A loop of its own for each kind.
            macro_rules! put {
                ($n:literal) => {
                    match by_column {
                        true => put_columns::<P, $n>(from, element, to, columns),
                        false => put_rows::<P, $n>(from, element, to, columns),
                    }
                };
            }
            match element {
                MatrixElement::Word(_) => put!(4),
                MatrixElement::F16 | MatrixElement::Bf16 => put!(8),
                MatrixElement::Small(_) | MatrixElement::U8 | MatrixElement::S8 => put!(16),
                MatrixElement::U4 | MatrixElement::S4 => put!(32),
            }
        }
    }
}

/// Writes the elements of a register, 16 at a time, as 8 rows of `N`.
///
/// # Safety
/// There must be a warp's words, and room for 8 rows of `N` elements, `columns` elements from each to the next; the host must have
/// the path's instructions.
#[inline(always)]
unsafe fn put_rows<P: Path, const N: usize>(
    from: *const u32,
    element: MatrixElement,
    to: *mut f32,
    columns: usize,
) {
    for i in 0..LINES * N / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let values = block::<P>(from, element, i);
            if N >= BLOCK {
                let (line, part) = (i / (N / BLOCK), i % (N / BLOCK));
                to.add(line * columns + part * BLOCK).cast::<[f32; BLOCK]>().write_unaligned(values);
            } else {
                for (k, row) in values.as_chunks::<N>().0.iter().enumerate() {
                    to.add((i * (BLOCK / N) + k) * columns).cast::<[f32; N]>().write_unaligned(*row);
                }
            }
        }
    }
}

/// Writes the elements of a register, 16 at a time, as 8 columns of `N`.
///
/// # Safety
/// There must be a warp's words, and room for `N` rows of 8 elements, `columns` elements from each to the next; the host must have
/// the path's instructions.
#[inline(always)]
unsafe fn put_columns<P: Path, const N: usize>(
    from: *const u32,
    element: MatrixElement,
    to: *mut f32,
    columns: usize,
) {
    let mut values = [[0.0; N]; LINES];
    // SAFETY: the caller's promise.
    unsafe {
        for (i, part) in values.as_flattened_mut().as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            *part = block::<P>(from, element, i);
        }
        if N == 4 {
            for half in 0..2 {
                let lines = values.as_ptr().add(half * 4).cast::<[[u32; 4]; 4]>().read_unaligned();
                for (k, row) in P::transpose4(lines).into_iter().enumerate() {
                    to.add(k * columns + half * 4).cast::<[u32; 4]>().write_unaligned(row);
                }
            }
            return;
        }
        for first in (0..N).step_by(8) {
            let mut lines = [[0.0; 8]; LINES];
            for (to, line) in lines.iter_mut().zip(&values) {
                *to = line.as_ptr().add(first).cast::<[f32; 8]>().read();
            }
            for (k, row) in P::transpose8(lines).into_iter().enumerate() {
                to.add((first + k) * columns).cast::<[f32; 8]>().write_unaligned(row);
            }
        }
    }
}

/// The reverse of [`gather`]. Of `numbers` every NaN becomes the one that instructions make.
///
/// # Panics
/// As [`gather`]; or if the lines are columns, or the elements bytes.
#[inline(always)]
pub(super) unsafe fn spread<P: Path>(
    from: &[f32],
    numbers: bool,
    tiles: &Tiles,
    element: MatrixElement,
    registers: &[*mut u32],
    first: usize,
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
                for line in 0..LINES {
                    let at = first + line * LINE_LANES;
                    let row = from.add(start + line * columns).cast::<[f32; 2 * LINE_LANES]>();
                    let row = canonical(row.read_unaligned(), numbers);
                    let (a, b) = ([row[0], row[2], row[4], row[6]], [row[1], row[3], row[5], row[7]]);
                    pair[0].add(at).cast::<[f32; LINE_LANES]>().write_unaligned(a);
                    pair[1].add(at).cast::<[f32; LINE_LANES]>().write_unaligned(b);
                }
            }
            return;
        }
        for (&register, &start) in registers.iter().zip(&tiles.starts) {
            let register = register.add(first);
            match element {
                MatrixElement::F16 => {
                    for i in 0..LINES / 2 {
                        let mut both = [0.0; BLOCK];
                        for (k, half) in both.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                            let at = from.add(start + (2 * i + k) * columns);
                            *half = at.cast::<[f32; 8]>().read_unaligned();
                        }
                        let halves = P::f32_to_f16(canonical(both, numbers));
                        register.cast::<[u16; BLOCK]>().add(i).write_unaligned(halves);
                    }
                }
                _ => {
                    for line in 0..LINES {
                        let row = from.add(start + line * columns).cast::<[f32; 4]>().read_unaligned();
                        register.cast::<[f32; 4]>().add(line).write_unaligned(canonical(row, numbers));
                    }
                }
            }
        }
    }
}

/// With the NaN of binary32 in place of others, if these are numbers.
#[inline(always)]
fn canonical<const N: usize>(row: [f32; N], numbers: bool) -> [f32; N] {
    let mut out = row;
    if numbers {
        for (out, x) in out.iter_mut().zip(row) {
            *out = if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x };
        }
    }
    out
}

/// The elements of some words, in order.
///
/// # Safety
/// There must be so many words, a number whose elements are a multiple of 16, and room for the elements; the host must have the
/// path's instructions.
#[inline(always)]
pub(super) unsafe fn widen<P: Path>(from: *const u32, words: usize, element: MatrixElement, to: *mut f32) {
    macro_rules! each {
        () => {
            for i in 0..words * element.in_word() / BLOCK {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<[f32; BLOCK]>().add(i).write_unaligned(block::<P>(from, element, i)) }
            }
        };
    }
    // A loop of its own for each kind.
    match element {
        MatrixElement::F16 => each!(),
        MatrixElement::Bf16 => each!(),
        MatrixElement::Small(_) => each!(),
        _ => each!(),
    }
}

/// The i-th 16 elements of some words.
///
/// # Safety
/// There must be so many; the host must have the path's instructions.
#[inline(always)]
unsafe fn block<P: Path>(from: *const u32, element: MatrixElement, i: usize) -> [f32; BLOCK] {
    // SAFETY: the caller's promise. Bytes are read where elements have no more.
    unsafe {
        let bytes = match element.in_word() {
            4 => from.cast::<[u8; BLOCK]>().add(i).read_unaligned(),
            _ => [0; BLOCK],
        };
        match element {
            MatrixElement::F16 => P::f16_to_f32(from.cast::<[u16; BLOCK]>().add(i).read_unaligned()),
            MatrixElement::Bf16 => P::bf16_to_f32(from.cast::<[u16; BLOCK]>().add(i).read_unaligned()),
            MatrixElement::Word(mask) => {
                let words = from.cast::<[u32; BLOCK]>().add(i).read_unaligned();
                each(words, |word| f32::from_bits(word & mask))
            }
            MatrixElement::Small(format) => each(bytes, |byte| format.value(byte)),
            MatrixElement::U8 => each(bytes, f32::from),
            MatrixElement::S8 => each(bytes, |byte| f32::from(byte as i8)),
            MatrixElement::U4 => quarters(from.add(2 * i), |word| (word & 0xf) as f32),
            MatrixElement::S4 => quarters(from.add(2 * i), |word| ((word << 28) as i32 >> 28) as f32),
        }
    }
}

#[inline(always)]
fn each<T: Copy>(from: [T; BLOCK], f: impl Fn(T) -> f32) -> [f32; BLOCK] {
    let mut out = [0.0; BLOCK];
    for (out, from) in out.iter_mut().zip(from) {
        *out = f(from);
    }
    out
}

/// The elements of two words of eight; `f` looks at the lowest 4 bits.
///
/// # Safety
/// There must be two words.
#[inline(always)]
unsafe fn quarters(from: *const u32, f: impl Fn(u32) -> f32) -> [f32; BLOCK] {
    // SAFETY: the caller's promise.
    let words = unsafe { from.cast::<[u32; 2]>().read_unaligned() };
    let mut out = [0.0; BLOCK];
    for (half, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        for (i, out) in half.iter_mut().enumerate() {
            *out = f(word >> (4 * i));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_those_of_sem() {
        use isa::Type;
        let formats = [(Type::E4m3, 0), (Type::E5m2, 0), (Type::E2m3, 0), (Type::E3m2, 0), (Type::E2m1, 2)];
        for (ty, shift) in formats {
            let format = Format::of(ty).unwrap();
            for byte in 0..=u8::MAX {
                let bits = u64::from(byte) >> shift & ((1 << format.bits()) - 1);
                let expected =
                    sem::convert::convert_float(format, &sem::format::F32, sem::round::Mode::NEAREST, bits);
                let value = SmallFloat::new(format, shift).value(byte);
                if value.is_nan() {
                    assert!(f32::from_bits(expected as u32).is_nan(), "{ty} {byte:x}");
                } else {
                    assert_eq!(u64::from(value.to_bits()), expected, "{ty} {byte:x}");
                }
            }
        }
    }
}
