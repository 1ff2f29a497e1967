//! Matrix fragments: the layout of a matrix in the registers of a warp.
//!
//! A register of a warp holds a tile of 8 rows (or columns). Each row is in four consecutive lanes, a quad.

use sem::format::{Format, Specials};

use super::path::{BLOCK, Path, Portable, WARP};

/// Lanes per line of a tile, and lines per tile.
pub(super) const LINE_LANES: usize = 4;
pub(super) const LINES: usize = WARP / LINE_LANES;

/// How the elements of a register are converted to binary32, which can represent all of them.
#[derive(Clone, Copy, Debug)]
pub enum MatrixElement {
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// 32-bit words; only the bits of this mask count, and they are not converted.
    Word(u32),
    /// Floating-point numbers of at most 8 bits, each in a byte.
    Small(SmallFloat),
    /// Integers.
    U8,
    /// Integers.
    S8,
    /// Integers of 4 bits.
    U4,
    /// Integers of 4 bits.
    S4,
    /// binary64: a register of 64 bits.
    Double,
}

impl MatrixElement {
    /// Elements per 32-bit word.
    pub fn in_word(self) -> usize {
        match self {
            MatrixElement::Word(_) | MatrixElement::Double => 1,
            MatrixElement::F16 | MatrixElement::Bf16 => 2,
            MatrixElement::Small(_) | MatrixElement::U8 | MatrixElement::S8 => 4,
            MatrixElement::U4 | MatrixElement::S4 => 8,
        }
    }
}

/// A floating-point format of at most 8 bits, and the position of its encoding in a byte. Every value is a binary16
/// number times a power of two.
#[derive(Clone, Copy, Debug)]
pub struct SmallFloat {
    /// Number of bits below the encoding.
    shift: u32,
    /// Mask of the encoding without the sign.
    magnitude: u16,
    /// Shifts that move the sign, and the fraction, to their places in binary16.
    to_sign: u32,
    to_fraction: u32,
    /// Factor for the binary16 number.
    scale: f32,
    /// Magnitudes above this one are NaNs, but ordinary numbers in binary16.
    greatest: u16,
}

impl SmallFloat {
    /// A format whose encodings are `shift` bits above the lowest bit of their byte. It must have at most 5 exponent
    /// bits.
    pub fn new(format: &Format, shift: u32) -> SmallFloat {
        let magnitude = format.magnitude_mask() as u16;
        let bias = (1 << (format.exponent_bits - 1)) - 1;
        SmallFloat {
            shift,
            magnitude,
            to_sign: 16 - format.bits() - shift,
            to_fraction: 10 - format.fraction_bits,
            scale: f32::from_bits((127 + 15 - bias) << 23),
            greatest: if format.specials == Specials::NanOnly { magnitude - 1 } else { magnitude },
        }
    }

    /// The number in a byte.
    pub fn value(self, byte: u8) -> f32 {
        self.values(Portable, [byte.into(); BLOCK])[0]
    }

    /// The numbers in bytes.
    #[inline(always)]
    fn values<P: Path>(self, path: P, bytes: [u16; BLOCK]) -> [f32; BLOCK] {
        let (mut halves, mut nans) = ([0; BLOCK], [0; BLOCK]);
        for ((half, nan), byte) in halves.iter_mut().zip(&mut nans).zip(bytes) {
            let magnitude = byte >> self.shift & self.magnitude;
            *half = (byte << self.to_sign & 1 << 15) | magnitude << self.to_fraction;
            *nan = if magnitude > self.greatest { 0x7fff_ffff } else { 0 };
        }
        let mut out = path.f16_to_f32(halves);
        for (out, nan) in out.iter_mut().zip(nans) {
            *out = f32::from_bits((*out * self.scale).to_bits() | nan);
        }
        out
    }
}

/// How the tiles of a fragment are arranged in its matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiling {
    /// The lines of a tile are rows.
    Rows,
    /// The lines of a tile are columns.
    Columns,
    /// Two registers share a tile of rows: one has the even columns, the next one the odd columns. Elements are words
    /// or 64-bit numbers.
    Pairs,
}

/// The positions of a fragment's elements in its matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    tiling: Tiling,
    /// The row and the column where each tile begins.
    pub starts: Vec<(usize, usize)>,
    in_word: usize,
}

impl Tiles {
    /// The tiles of a fragment, if it consists of tiles. Part `i` (of `in_word`) of register `r` in lane `l` is
    /// element `places[(r * 32 + l) * in_word + i]` of a row-major matrix with this many columns.
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
                // The next register has the odd columns.
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
        let starts = registers.step_by(each).map(|places| usize::from(places[0]));
        Some(Tiles {
            tiling,
            starts: starts.map(|start| (start / columns, start % columns)).collect(),
            in_word,
        })
    }

    /// A matrix of `rows` x `columns`, which must be multiples of the tile's size, covered by tiles in row-major
    /// order.
    pub fn grid(tiling: Tiling, in_word: usize, rows: usize, columns: usize) -> Tiles {
        let tiles = Tiles { tiling, starts: Vec::new(), in_word };
        let (height, width) = tiles.size();
        let starts = (0..rows)
            .step_by(height)
            .flat_map(|row| (0..columns).step_by(width).map(move |column| (row, column)));
        Tiles { starts: starts.collect(), ..tiles }
    }

    /// Drops tiles whose place a later tile has too (fragments of `wmma` hold halves twice), and returns the rest
    /// with the numbers of their registers. [`Tiling::Pairs`] has no such tiles.
    pub fn distinct(&self) -> (Tiles, Vec<usize>) {
        let is_last = |&i: &usize| !self.starts[i + 1..].contains(&self.starts[i]);
        let registers: Vec<usize> = match self.tiling {
            Tiling::Pairs => return (self.clone(), (0..self.registers()).collect()),
            _ => (0..self.starts.len()).filter(is_last).collect(),
        };
        let starts = registers.iter().map(|&i| self.starts[i]).collect();
        (Tiles { starts, ..*self }, registers)
    }

    /// Rows and columns of a tile.
    fn size(&self) -> (usize, usize) {
        match self.tiling {
            Tiling::Rows => (LINES, LINE_LANES * self.in_word),
            Tiling::Columns => (LINE_LANES * self.in_word, LINES),
            Tiling::Pairs => (LINES, 2 * LINE_LANES),
        }
    }

    /// Registers of the fragment.
    pub fn registers(&self) -> usize {
        self.starts.len() * if self.tiling == Tiling::Pairs { 2 } else { 1 }
    }

    /// The arrangement of the tiles.
    pub fn tiling(&self) -> Tiling {
        self.tiling
    }

    /// Elements per word.
    pub fn in_word(&self) -> usize {
        self.in_word
    }

    /// The row and the column where each tile begins.
    pub fn starts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.starts.iter().copied()
    }

    /// Whether the tiles exactly cover a matrix of this size, each at a multiple of its size.
    pub fn fill(&self, rows: usize, columns: usize) -> bool {
        let (height, width) = self.size();
        let aligned = |&(row, column): &(usize, usize)| {
            row.is_multiple_of(height)
                && column.is_multiple_of(width)
                && row + height <= rows
                && column + width <= columns
        };
        self.starts.iter().all(aligned) && self.starts.len() * height * width == rows * columns
    }
}

/// Part `part` of each of 16 words that have [`MatrixElement::in_word`] parts each. `element` must not be
/// [`MatrixElement::Double`].
///
/// # Safety
/// There must be 16 words.
#[inline(always)]
pub(super) unsafe fn part_of_words<P: Path>(
    path: P,
    from: *const u32,
    element: MatrixElement,
    part: usize,
) -> [f32; BLOCK] {
    // SAFETY: the caller's promise.
    let words = unsafe { from.cast::<[u32; BLOCK]>().read_unaligned() };
    let part = part as u32;
    match element {
        MatrixElement::Word(mask) => each(words, |word| f32::from_bits(word & mask)),
        MatrixElement::F16 => path.f16_to_f32(halves(words, part)),
        MatrixElement::Bf16 => path.bf16_to_f32(halves(words, part)),
        MatrixElement::Small(format) => {
            let mut bytes = [0; BLOCK];
            for (byte, word) in bytes.iter_mut().zip(words) {
                *byte = (word >> (8 * part)) as u16 & 0xff;
            }
            format.values(path, bytes)
        }
        MatrixElement::U8 => each(words, |word| (word >> (8 * part) & 0xff) as f32),
        MatrixElement::S8 => each(words, |word| (((word >> (8 * part)) as i32) << 24 >> 24) as f32),
        MatrixElement::U4 => each(words, |word| (word >> (4 * part) & 0xf) as f32),
        MatrixElement::S4 => each(words, |word| (((word >> (4 * part)) as i32) << 28 >> 28) as f32),
        MatrixElement::Double => [0.0; BLOCK],
    }
}

#[inline(always)]
fn halves(words: [u32; BLOCK], part: u32) -> [u16; BLOCK] {
    let mut out = [0; BLOCK];
    for (out, word) in out.iter_mut().zip(words) {
        *out = (word >> (16 * part)) as u16;
    }
    out
}

#[inline(always)]
fn each(words: [u32; BLOCK], f: impl Fn(u32) -> f32) -> [f32; BLOCK] {
    let mut out = [0.0; BLOCK];
    for (out, word) in out.iter_mut().zip(words) {
        *out = f(word);
    }
    out
}
