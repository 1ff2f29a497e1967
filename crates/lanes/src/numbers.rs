//! Numbers as vector code: read from lanes of any type, and summed exactly.
//!
//! binary64 represents every value of a format of up to 32 bits exactly, and binary32 every value of a narrower
//! format. A wider integer is rounded to odd, which preserves the result of a second rounding to at least two bits
//! fewer.

use super::LaneArgs;
use super::drive::{apply1, load, store};
use super::encoding::{Direction, directed};
use super::half::to_odd_f32;
use super::path::{BLOCK, Block, Path};
use isa::Type;
use sem::format::{Format, Specials};

/// The bias of binary32's exponent.
const BIAS: i32 = 127;

/// x + y in binary64, and its rounding error (Knuth's two-sum).
#[inline(always)]
pub(super) fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

/// x * y + z, rounded once if the host has an instruction for it, otherwise twice.
#[inline(always)]
pub(super) fn fused<P: Path>(x: f64, y: f64, z: f64) -> f64 {
    if P::FUSED { x.mul_add(y, z) } else { x * y + z }
}

/// `value + rest` rounded to odd. `value` must be the number nearest to the sum, or one with more trailing zeros. A
/// NaN in `rest` belongs to an infinity or a NaN and counts as zero.
#[inline(always)]
pub(super) fn odd(value: f64, rest: f64) -> f64 {
    let bits = value.to_bits() as i64;
    // Toward the rest: away from zero if the rest has the sign of the value.
    let step = (bits ^ rest.to_bits() as i64) >> 63 | 1;
    let lost = (rest.abs() > 0.0) & (bits & 1 == 0);
    f64::from_bits((bits + if lost { step } else { 0 }) as u64)
}

/// How the lanes of a source are converted to numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numbers {
    /// The same in all lanes.
    Constant(f32),
    F32 {
        ftz: bool,
    },
    F16,
    Bf16,
    F64,
    /// The upper word of binary64, subnormal numbers flushed.
    F64Upper,
    /// Integers of this many bits; 64-bit integers are rounded to odd.
    Integer {
        bits: u32,
        signed: bool,
    },
    /// A format of up to 8 bits.
    Small(&'static Format),
    /// `.ue8m0`: powers of two.
    Scale,
}

/// How to move the fraction and exponent of a format to their places in binary32.
#[derive(Clone, Copy)]
struct Small {
    sign: u32,
    /// The number of fraction bits that binary32 has in addition.
    fraction_shift: u32,
    sign_shift: u32,
    min_normal: u32,
    infinity: u32,
    nan: u32,
    /// The difference of the exponents' biases, at the exponent's place in binary32.
    rebias: u32,
    /// The smallest normal number.
    least: f32,
}

impl Small {
    #[inline(always)]
    fn new(format: &Format) -> Small {
        let infinity = format.infinity() as u32;
        let (infinity, nan) = match format.specials {
            Specials::InfinityAndNan => (infinity, infinity + 1),
            Specials::NanOnly => (u32::MAX, format.nan as u32),
            Specials::None => (u32::MAX, u32::MAX),
        };
        // The encoding of the smallest normal number has exponent 1.
        let rebias = ((format.min_exponent() - 1 + BIAS) as u32) << 23;
        Small {
            sign: format.sign() as u32,
            fraction_shift: (23 - format.fraction_bits) & 31,
            sign_shift: (32 - format.bits()) & 31,
            min_normal: format.min_normal() as u32,
            infinity,
            nan,
            rebias,
            least: f32::from_bits(rebias + (1 << 23)),
        }
    }

    #[inline(always)]
    fn decode(&self, bits: u32) -> f32 {
        let magnitude = bits & (self.sign - 1);
        let wide = magnitude << self.fraction_shift;
        // A subnormal number is the difference between the smallest normal number with its fraction, and that number
        // without.
        let subnormal = f32::from_bits(wide.wrapping_add(self.least.to_bits())) - self.least;
        let number = f32::from_bits(wide.wrapping_add(self.rebias));
        let number = if magnitude < self.min_normal { subnormal } else { number };
        let number = if magnitude == self.infinity { f32::INFINITY } else { number };
        let number = if magnitude >= self.nan { f32::NAN } else { number };
        f32::from_bits(number.to_bits() | (bits & self.sign) << self.sign_shift)
    }
}

impl Numbers {
    /// The numbers of a type; `ftz` flushes subnormal binary32 numbers.
    pub(super) fn of(ty: Type, ftz: bool) -> Option<Numbers> {
        Some(match ty.element() {
            Type::F32 => Numbers::F32 { ftz },
            Type::F16 => Numbers::F16,
            Type::Bf16 => Numbers::Bf16,
            Type::F64 => Numbers::F64,
            Type::Ue8m0 => Numbers::Scale,
            // In units of 1/64.
            Type::S2f6 => Numbers::Integer { bits: 8, signed: true },
            element if element.is_float() => Numbers::Small(Format::of(element)?),
            element => Numbers::Integer { bits: element.bits(), signed: element.is_signed() },
        })
    }
}

/// One element of every lane of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    /// The source.
    argument: u8,
    /// Size of its lanes in bytes.
    bytes: u8,
    /// The element's lowest bit, and its width.
    shift: u8,
    width: u8,
    numbers: Numbers,
    /// The sign is flipped.
    negated: bool,
}

impl Element {
    /// The i-th element of a source, counted from the lowest; `ftz` flushes subnormal binary32 numbers.
    pub(super) fn new(argument: usize, ty: Type, i: u32, ftz: bool) -> Option<Element> {
        let width = ty.bits() / ty.lanes();
        Some(Element {
            argument: argument as u8,
            bytes: (ty.bits().max(16) / 8) as u8,
            shift: (i * width) as u8,
            width: width as u8,
            numbers: Numbers::of(ty, ftz)?,
            negated: false,
        })
    }

    /// The next element of the same source.
    #[inline(always)]
    pub(super) fn above(self) -> Element {
        Element { shift: (self.shift + self.width) & 63, ..self }
    }

    /// The same element of the preceding source.
    #[inline(always)]
    pub(super) fn of_source_before(self) -> Element {
        Element { argument: self.argument.wrapping_sub(1), ..self }
    }

    /// The same element, converted by other `numbers`.
    pub(super) fn with(self, numbers: Numbers) -> Element {
        Element { numbers, ..self }
    }

    /// The same element with the opposite sign.
    pub(super) fn negated(self) -> Element {
        Element { negated: !self.negated, ..self }
    }

    /// 1 in all lanes.
    pub(super) const ONE: Element = Element::constant(1.0);
    /// -0 in all lanes: the neutral element of addition.
    pub(super) const MINUS_ZERO: Element = Element::constant(-0.0);

    const fn constant(x: f32) -> Element {
        Element { argument: 0, bytes: 8, shift: 0, width: 64, numbers: Numbers::Constant(x), negated: false }
    }

    /// The bits of block `i`, of elements of up to 32 bits.
    ///
    /// # Safety
    /// The source must have that block.
    #[inline(always)]
    unsafe fn bits(&self, args: &LaneArgs, i: usize) -> Block<u32> {
        // SAFETY: the caller's promise.
        let lanes = unsafe { load_bits(args, self.argument.into(), self.bytes.into(), i) };
        let (shift, mask) = (self.shift & 31, u32::MAX >> ((32 - self.width) & 31));
        apply1(|x: u32| x >> shift & mask, lanes)
    }

    /// The bits of block `i`, of 64-bit elements.
    ///
    /// # Safety
    /// The source must have that block.
    #[inline(always)]
    unsafe fn wide_bits(&self, args: &LaneArgs, i: usize) -> Block<u64> {
        // SAFETY: the caller's promise.
        unsafe { load(args, self.argument.into(), i) }
    }

    /// The numbers of block `i`: exact, or rounded to odd.
    ///
    /// # Safety
    /// The source must have that block.
    #[inline(always)]
    pub(super) unsafe fn numbers<P: Path>(&self, path: P, args: &LaneArgs, i: usize) -> Block<f64> {
        // SAFETY: the caller's promise.
        let numbers = unsafe {
            match self.numbers {
                Numbers::F64 => apply1(f64::from_bits, self.wide_bits(args, i)),
                Numbers::F64Upper => {
                    let cut = |x: u64| {
                        let x = f64::from_bits(x & 0xffff_ffff << 32);
                        if x.abs() < f64::MIN_POSITIVE { f64::from_bits(x.to_bits() & 1 << 63) } else { x }
                    };
                    apply1(cut, self.wide_bits(args, i))
                }
                Numbers::Integer { bits: 64, signed } => {
                    let convert = |x: u64| {
                        let (high, low) = halves(x, signed);
                        let (sum, rest) = two_sum(high, low);
                        odd(sum, rest)
                    };
                    apply1(convert, self.wide_bits(args, i))
                }
                Numbers::Integer { bits: 32, signed: false } => apply1(f64::from, self.bits(args, i)),
                Numbers::Integer { bits, signed } => {
                    apply1(|x: u32| f64::from(extended(x, bits, signed)), self.bits(args, i))
                }
                _ => apply1(f64::from, self.singles(path, args, i)),
            }
        };
        let flip = u64::from(self.negated) << 63;
        apply1(|x: f64| f64::from_bits(x.to_bits() ^ flip), numbers)
    }

    /// The numbers of block `i` in binary32: exact, or rounded to odd.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn singles<P: Path>(&self, path: P, args: &LaneArgs, i: usize) -> Block<f32> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.numbers {
                Numbers::Constant(x) => [x; BLOCK],
                Numbers::F32 { ftz } => {
                    let least = if ftz { f32::MIN_POSITIVE } else { 0.0 };
                    let flush = |x: u32| {
                        let x = f32::from_bits(x);
                        if x.abs() < least { f32::from_bits(x.to_bits() & 1 << 31) } else { x }
                    };
                    apply1(flush, self.bits(args, i))
                }
                Numbers::F16 => path.f16_to_f32(apply1(|x: u32| x as u16, self.bits(args, i))),
                Numbers::Bf16 => apply1(|x: u32| f32::from_bits(x << 16), self.bits(args, i)),
                Numbers::Small(format) => {
                    let small = Small::new(format);
                    apply1(|x: u32| small.decode(x), self.bits(args, i))
                }
                Numbers::Scale => {
                    // The smallest power is subnormal in binary32.
                    let power = |x: u32| if x == 0 { 1 << 22 } else { x << 23 };
                    let power = |x: u32| if x == 0xff { f32::NAN } else { f32::from_bits(power(x)) };
                    apply1(power, self.bits(args, i))
                }
                Numbers::Integer { bits, signed } if bits < 32 => {
                    apply1(|x: u32| extended(x, bits, signed) as f32, self.bits(args, i))
                }
                Numbers::Integer { .. } | Numbers::F64 | Numbers::F64Upper => {
                    apply1(to_odd_f32, self.numbers(path, args, i))
                }
            }
        }
    }
}

/// An integer of `bits` bits, which are at most 32, as an `i32`.
#[inline(always)]
fn extended(x: u32, bits: u32, signed: bool) -> i32 {
    let unused = (32 - bits) & 31;
    if signed { (x << unused) as i32 >> unused } else { x as i32 }
}

impl Element {
    /// The numbers of block `i`; 64-bit integers are rounded to binary64 in a direction.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn wide_numbers<P: Path>(
        &self,
        path: P,
        args: &LaneArgs,
        i: usize,
        direction: Direction,
    ) -> Block<f64> {
        // SAFETY: the caller's promise.
        unsafe {
            let Numbers::Integer { bits: 64, signed } = self.numbers else {
                return self.numbers(path, args, i);
            };
            let convert = |x: u64| {
                let (high, low) = halves(x, signed);
                let (sum, rest) = two_sum(high, low);
                directed(sum, rest, direction)
            };
            apply1(convert, self.wide_bits(args, i))
        }
    }
}

/// Block `i` of a source whose lanes have 2 or 4 bytes.
///
/// # Safety
/// The source must have that block.
#[inline(always)]
pub(super) unsafe fn load_bits(args: &LaneArgs, n: usize, bytes: usize, i: usize) -> Block<u32> {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => apply1(|x: u16| u32::from(x), load(args, n, i)),
            _ => load(args, n, i),
        }
    }
}

/// Writes block `i` of a destination whose lanes have 2 or 4 bytes.
///
/// # Safety
/// The destination must have that block.
#[inline(always)]
pub(super) unsafe fn store_bits<P: Path>(path: P, args: &LaneArgs, bytes: usize, i: usize, bits: Block<u32>) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => store(path, args, 0, i, apply1(|x: u32| x as u16, bits)),
            _ => store(path, args, 0, i, bits),
        }
    }
}

/// Converts a signed number of less than 51 bits.
#[inline(always)]
fn small_integer(x: u64) -> f64 {
    const MAGIC: f64 = 1.5 * (1u64 << 52) as f64;
    f64::from_bits(x.wrapping_add(MAGIC.to_bits())) - MAGIC
}

/// The two halves of a 64-bit integer as numbers, whose sum is the integer.
#[inline(always)]
fn halves(x: u64, signed: bool) -> (f64, f64) {
    let high = if signed { (x as i64 >> 32) as u64 } else { x >> 32 };
    (small_integer(high) * (1u64 << 32) as f64, small_integer(x & 0xffff_ffff))
}
