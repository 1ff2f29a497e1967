//! Floating-point formats as vector code: numbers read from any format, and rounded once to any.
//!
//! Between the two they are binary64: what a format of up to 32 bits holds is exact there, and what an operation makes of such
//! numbers is rounded to odd, which loses nothing that a second rounding to 51 bits or fewer looks at. One definition
//! serves every format, rounding and clamp; which one is looked up for a handler, not while it runs.

use super::LaneArgs;
use super::drive::{apply1, apply2, load, store};
use super::path::{BLOCK, Block, Path};
use isa::{Mod, Picks, Rounding, Type};
use sem::format::{F32, Format, Specials};
use sem::round::Clamp;

/// The bias of binary64's exponent, and its fraction.
const BIAS: i64 = 1023;
const FRACTION: i64 = (1 << 52) - 1;
const INFINITY: i64 = 0x7ff << 52;

/// x + y, and the rest that binary64 has no room for (Knuth's two-sum).
#[inline(always)]
pub(super) fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

/// `value + rest` rounded to odd, where `value` is its nearest number, or one with more zeros at its end; a rest that is NaN
/// belongs to an infinity or a NaN, and is none.
#[inline(always)]
pub(super) fn odd(value: f64, rest: f64) -> f64 {
    let bits = value.to_bits() as i64;
    // Toward the rest: away from zero if it has the sign of the value.
    let step = (bits ^ rest.to_bits() as i64) >> 63 | 1;
    let lost = (rest.abs() > 0.0) & (bits & 1 == 0);
    f64::from_bits((bits + if lost { step } else { 0 }) as u64)
}

/// How the lanes of a source become numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numbers {
    /// 1.
    One,
    F32 {
        ftz: bool,
    },
    F16,
    Bf16,
    F64,
    /// The upper word of binary64, subnormal numbers flushed.
    F64Upper,
    /// Integers of so many bits; of 64 bits rounded to odd.
    Integer {
        bits: u32,
        signed: bool,
    },
    /// A format of up to 8 bits.
    Small(&'static Format),
    /// `.ue8m0`: powers of two.
    Scale,
}

/// A format whose fraction and exponent are moved to where binary64 has them.
#[derive(Clone, Copy)]
struct Small {
    sign: u64,
    /// Left of the fraction there are so many bits more in binary64.
    fraction_shift: u32,
    sign_shift: u32,
    min_normal: u64,
    infinity: u64,
    nan: u64,
    /// What the exponent is greater by, in place.
    rebias: u64,
    /// The smallest normal number.
    least: f64,
}

impl Small {
    #[inline(always)]
    fn new(format: &Format) -> Small {
        let (infinity, nan) = match format.specials {
            Specials::InfinityAndNan => (format.infinity(), format.infinity() + 1),
            Specials::NanOnly => (u64::MAX, format.nan),
            Specials::None => (u64::MAX, u64::MAX),
        };
        // The encoding of the smallest normal number has exponent 1.
        let rebias = ((i64::from(format.min_exponent()) - 1 + BIAS) as u64) << 52;
        Small {
            sign: format.sign(),
            fraction_shift: 52 - format.fraction_bits,
            sign_shift: 64 - format.bits(),
            min_normal: format.min_normal(),
            infinity,
            nan,
            rebias,
            least: f64::from_bits(rebias + (1 << 52)),
        }
    }

    #[inline(always)]
    fn decode(&self, bits: u64) -> f64 {
        let magnitude = bits & (self.sign - 1);
        let wide = magnitude << self.fraction_shift;
        // A subnormal number is what its fraction adds to the smallest normal one.
        let subnormal = f64::from_bits(wide + self.least.to_bits()) - self.least;
        let number =
            if magnitude < self.min_normal { subnormal } else { f64::from_bits(wide + self.rebias) };
        let number = if magnitude == self.infinity { f64::INFINITY } else { number };
        let number = if magnitude >= self.nan { f64::NAN } else { number };
        f64::from_bits(number.to_bits() | (bits & self.sign) << self.sign_shift)
    }
}

impl Numbers {
    /// Those of a type; `ftz` flushes binary32's subnormal numbers.
    pub(super) fn of(ty: Type, ftz: bool) -> Option<Numbers> {
        Some(match ty.element() {
            Type::F32 => Numbers::F32 { ftz },
            Type::F16 => Numbers::F16,
            Type::Bf16 => Numbers::Bf16,
            Type::F64 => Numbers::F64,
            Type::Ue8m0 | Type::Ue8m0x2 => Numbers::Scale,
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
    /// Bytes of its lanes.
    bytes: u8,
    /// The element's lowest bit, and its width.
    shift: u8,
    width: u8,
    numbers: Numbers,
    /// Taken with the opposite sign.
    negated: bool,
}

impl Element {
    /// The i-th element of a source, from the lowest on; `ftz` flushes binary32's subnormal numbers.
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

    /// The same with other numbers.
    pub(super) fn with(self, numbers: Numbers) -> Element {
        Element { numbers, ..self }
    }

    /// The same with the opposite sign.
    pub(super) fn negated(self) -> Element {
        Element { negated: !self.negated, ..self }
    }

    /// 1 in all lanes.
    pub(super) const ONE: Element =
        Element { argument: 0, bytes: 8, shift: 0, width: 64, numbers: Numbers::One, negated: false };

    /// The bits of block `i`.
    ///
    /// # Safety
    /// The source must have that block.
    #[inline(always)]
    pub(super) unsafe fn bits(&self, args: &LaneArgs, i: usize) -> Block<u64> {
        // SAFETY: the caller's promise.
        let lanes = unsafe { load_bits(args, self.argument.into(), self.bytes.into(), i) };
        let (shift, mask) = (self.shift & 63, u64::MAX >> ((64 - self.width) & 63));
        apply1(|x: u64| x >> shift & mask, lanes)
    }

    /// The numbers of block `i`: exact, or rounded to odd.
    ///
    /// # Safety
    /// The source must have that block; `P` must be a path of the host.
    #[inline(always)]
    pub(super) unsafe fn numbers<P: Path>(&self, args: &LaneArgs, i: usize) -> Block<f64> {
        // SAFETY: the caller's promise.
        let numbers = unsafe {
            let bits = || self.bits(args, i);
            let half = || apply1(|x: u64| x as u16, self.bits(args, i));
            match self.numbers {
                Numbers::One => [1.0; BLOCK],
                Numbers::F32 { ftz } => {
                    let least = if ftz { f32::MIN_POSITIVE } else { 0.0 };
                    let widen = |x: u64| {
                        let x = f32::from_bits(x as u32);
                        f64::from(if x.abs() < least { f32::from_bits(x.to_bits() & 1 << 31) } else { x })
                    };
                    apply1(widen, bits())
                }
                Numbers::F16 => apply1(f64::from, P::f16_to_f32(half())),
                Numbers::Bf16 => apply1(f64::from, P::bf16_to_f32(half())),
                Numbers::F64 => apply1(f64::from_bits, bits()),
                Numbers::F64Upper => {
                    let cut = |x: u64| {
                        let x = f64::from_bits(x & 0xffff_ffff << 32);
                        if x.abs() < f64::MIN_POSITIVE { f64::from_bits(x.to_bits() & 1 << 63) } else { x }
                    };
                    apply1(cut, bits())
                }
                Numbers::Integer { bits: 64, signed } => {
                    let convert = |x: u64| {
                        let (high, low) = halves(x, signed);
                        let (sum, rest) = two_sum(high, low);
                        odd(sum, rest)
                    };
                    apply1(convert, bits())
                }
                Numbers::Integer { bits: width, signed } => {
                    let unused = (64 - width) & 63;
                    let extend =
                        |x: u64| if signed { ((x << unused) as i64 >> unused) as u64 } else { x };
                    apply1(|x: u64| small_integer(extend(x)), bits())
                }
                Numbers::Small(format) => {
                    let small = Small::new(format);
                    apply1(|x: u64| small.decode(x), bits())
                }
                Numbers::Scale => apply1(
                    |x: u64| if x == 0xff { f64::NAN } else { f64::from_bits((x + 1023 - 127) << 52) },
                    bits(),
                ),
            }
        };
        let flip = u64::from(self.negated) << 63;
        apply1(|x: f64| f64::from_bits(x.to_bits() ^ flip), numbers)
    }
}

impl Element {
    /// The numbers of block `i`, integers rounded to binary64 in a direction.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn wide_numbers<P: Path>(
        &self,
        args: &LaneArgs,
        i: usize,
        direction: Direction,
    ) -> Block<f64> {
        // SAFETY: the caller's promise.
        unsafe {
            let Numbers::Integer { bits: 64, signed } = self.numbers else { return self.numbers::<P>(args, i) };
            let convert = |x: u64| {
                let (high, low) = halves(x, signed);
                let (sum, rest) = two_sum(high, low);
                directed(sum, rest, direction)
            };
            apply1(convert, self.bits(args, i))
        }
    }
}

/// Block `i` of a source whose lanes have 2, 4 or 8 bytes.
///
/// # Safety
/// The source must have that block.
#[inline(always)]
pub(super) unsafe fn load_bits(args: &LaneArgs, n: usize, bytes: usize, i: usize) -> Block<u64> {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => apply1(|x: u16| u64::from(x), load(args, n, i)),
            4 => apply1(|x: u32| u64::from(x), load(args, n, i)),
            _ => load(args, n, i),
        }
    }
}

/// Writes block `i` of a destination whose lanes have 2, 4 or 8 bytes.
///
/// # Safety
/// The destination must have that block.
#[inline(always)]
pub(super) unsafe fn store_bits(args: &LaneArgs, bytes: usize, i: usize, bits: Block<u64>) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => store(args, 0, i, apply1(|x: u64| x as u16, bits)),
            4 => store(args, 0, i, apply1(|x: u64| x as u32, bits)),
            _ => store(args, 0, i, bits),
        }
    }
}

/// The exact value `nearest + rest`, of which `nearest` is the nearest number, rounded in a direction.
#[inline(always)]
pub(super) fn directed(nearest: f64, rest: f64, direction: Direction) -> f64 {
    let Direction::Away(away) = direction else { return nearest };
    let bits = nearest.to_bits() as i64;
    // The sign of the exact value, also of one that underflowed.
    let negative = bits < 0;
    let outward = if negative { rest < 0.0 } else { rest > 0.0 };
    let inward = if negative { rest > 0.0 } else { rest < 0.0 };
    let away = if negative { away[1] } else { away[0] };
    // Of two neighbours with a sign the bits of the one farther from zero are greater by one.
    let step = i64::from(outward & away) - i64::from(inward & !away);
    f64::from_bits(bits.wrapping_add(step) as u64)
}

/// A signed number of less than 51 bits.
#[inline(always)]
fn small_integer(x: u64) -> f64 {
    const MAGIC: f64 = 1.5 * (1u64 << 52) as f64;
    f64::from_bits(x.wrapping_add(MAGIC.to_bits())) - MAGIC
}

/// The halves of an integer of 64 bits as numbers, of which it is the sum.
#[inline(always)]
fn halves(x: u64, signed: bool) -> (f64, f64) {
    let high = if signed { (x as i64 >> 32) as u64 } else { x >> 32 };
    (small_integer(high) * (1u64 << 32) as f64, small_integer(x & 0xffff_ffff))
}

/// How numbers are rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Direction {
    NearestEven,
    NearestAway,
    /// Away from zero if they are positive, and if they are negative; else toward it.
    Away([bool; 2]),
    /// So many random bits are added below the last one that is kept, and what is below that cut.
    Stochastic(u32),
}

impl Direction {
    /// The direction that a rounding stands for.
    pub(super) fn of(rounding: Rounding) -> Direction {
        match rounding {
            Rounding::NearestEven => Direction::NearestEven,
            Rounding::NearestAway => Direction::NearestAway,
            Rounding::TowardZero => Direction::Away([false, false]),
            Rounding::TowardNegative => Direction::Away([false, true]),
            Rounding::TowardPositive => Direction::Away([true, false]),
        }
    }
}

/// How numbers become encodings: their format, and what is done on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    format: &'static Format,
    direction: Direction,
    /// Flushes binary32's results.
    ftz: bool,
    clamp: Clamp,
    /// A NaN keeps its sign and the top of its payload, in binary32.
    payload: bool,
    /// `.ue8m0`, which has nothing but an exponent.
    scale: bool,
}

impl Encoding {
    /// The encoding of a type.
    pub(super) fn new(ty: Type, direction: Direction, ftz: bool, clamp: Clamp) -> Option<Encoding> {
        let scale = matches!(ty.element(), Type::Ue8m0 | Type::Ue8m0x2);
        let format = if scale { &F32 } else { Format::of(ty)? };
        Some(Encoding { format, direction, ftz, clamp, payload: false, scale })
    }

    /// The same with another format.
    pub(super) fn of(self, format: &'static Format) -> Encoding {
        Encoding { format, ..self }
    }

    /// The same with NaNs that keep their payload.
    pub(super) fn with_payload(self) -> Encoding {
        Encoding { payload: true, ..self }
    }
}

/// An [`Encoding`] with what follows from it.
pub(super) struct Encoder {
    encoding: Encoding,
    fraction_bits: u32,
    padding: u32,
    /// The biased exponent of the smallest normal number, in binary64.
    least_exponent: i64,
    max_finite: i64,
    /// What a number too large becomes if it is positive, and if it is negative.
    too_large: [i64; 2],
    infinity: i64,
    sign: u32,
}

impl Encoder {
    #[inline(always)]
    pub(super) fn new(encoding: &Encoding) -> Encoder {
        let &Encoding { format, direction, clamp, .. } = encoding;
        let finite = matches!(clamp, Clamp::Finite | Clamp::ReluFinite);
        let max_finite = format.max_finite() as i64 >> format.padding;
        let infinity = if finite { max_finite } else { format.infinity() as i64 >> format.padding };
        let too_large = match direction {
            Direction::Away(away) => away.map(|away| if away { infinity } else { max_finite }),
            _ => [infinity; 2],
        };
        Encoder {
            encoding: *encoding,
            fraction_bits: format.fraction_bits & 63,
            padding: format.padding & 63,
            least_exponent: i64::from(format.min_exponent()) + BIAS,
            max_finite,
            too_large,
            infinity,
            sign: (format.bits() - 1) & 63,
        }
    }

    /// The encodings of numbers, which may have been rounded to odd; with the random bits of [`Direction::Stochastic`].
    #[inline(always)]
    pub(super) fn encode(&self, x: Block<f64>, random: Block<u64>) -> Block<u64> {
        let bits = apply1(|x: f64| x.to_bits() as i64, x);
        let Encoding { format, direction, ftz, clamp, payload, scale } = self.encoding;
        if scale {
            return self.encode_scale(bits);
        }
        let (mut exponents, mut significands, mut drops) = ([0i64; BLOCK], [0i64; BLOCK], [0i64; BLOCK]);
        let least = if ftz { 1 } else { self.least_exponent };
        let kept = 52 - i64::from(self.fraction_bits);
        for k in 0..BLOCK {
            let magnitude = bits[k] & i64::MAX;
            let exponent = magnitude >> 52;
            let hidden = if exponent > 0 { 1 << 52 } else { 0 };
            let exponent = exponent.max(1);
            let significand = magnitude & FRACTION | hidden;
            exponents[k] = exponent.max(least);
            let drop = kept + exponents[k] - exponent;
            // So far below the last place, a bit says that something was there.
            let excess = (drop - 62).clamp(0, 63);
            let jammed = if (excess > 0) & (significand != 0) { 1 } else { 0 };
            significands[k] = significand >> excess | jammed;
            drops[k] = drop.min(62);
        }
        let ones = |drop: i64| (1i64 << (drop & 63)) - 1;
        let above = match direction {
            Direction::NearestEven => apply2(
                |s: i64, drop: i64| (s >> (drop & 63) & 1) + (ones(drop) >> 1),
                significands,
                drops,
            ),
            Direction::NearestAway => apply1(|drop: i64| (ones(drop) >> 1) + 1, drops),
            Direction::Away([positive, negative]) => {
                let (positive, negative) = (-i64::from(positive), -i64::from(negative));
                let away = |bits: i64, drop: i64| if bits < 0 { ones(drop) & negative } else { ones(drop) & positive };
                apply2(away, bits, drops)
            }
            Direction::Stochastic(count) => apply2(
                |random: u64, drop: i64| (random << ((drop - i64::from(count)) & 63)) as i64,
                random,
                drops,
            ),
        };
        let mut out = [0u64; BLOCK];
        for k in 0..BLOCK {
            let rounded = (significands[k] + above[k]) >> (drops[k] & 63);
            let number = ((exponents[k] - self.least_exponent) << self.fraction_bits) + rounded;
            let flushed = if ftz && number < 1 << self.fraction_bits { 0 } else { number };
            let negative = bits[k] < 0;
            let too_large = if negative { self.too_large[1] } else { self.too_large[0] };
            let number = if flushed > self.max_finite { too_large } else { flushed };
            let number = if bits[k] & i64::MAX == INFINITY { self.infinity } else { number };
            out[k] = (number as u64) << self.padding | u64::from(negative) << self.sign;
        }
        let is_nan = |bits: i64| bits & i64::MAX > INFINITY;
        let nan = |bits: i64| match payload {
            true => 0x7fc0_0000 | (bits as u64 >> 32 & 1 << 31) | (bits as u64 >> 29 & 0x7f_ffff),
            false => format.nan,
        };
        out = apply2(|x: u64, bits: i64| if is_nan(bits) { nan(bits) } else { x }, out, bits);
        match clamp {
            Clamp::None | Clamp::Finite => {}
            Clamp::Saturate => {
                let one = format.one() as i64;
                let clamp = |x: u64, bits: i64| {
                    if (bits < 0) | is_nan(bits) { 0 } else { (x as i64).min(one) as u64 }
                };
                out = apply2(clamp, out, bits);
            }
            Clamp::Relu | Clamp::ReluFinite => {
                out = apply2(|x: u64, bits: i64| if (bits < 0) & !is_nan(bits) { 0 } else { x }, out, bits);
            }
        }
        if format.specials == Specials::None {
            // There is none: the largest number.
            let largest = self.max_finite as u64;
            out = apply2(|x: u64, bits: i64| if is_nan(bits) { largest } else { x }, out, bits);
        }
        out
    }

    /// The exponent of the magnitude, rounded to a power of two.
    #[inline(always)]
    fn encode_scale(&self, bits: Block<i64>) -> Block<u64> {
        const LARGEST: i64 = 0xfe;
        let up = if self.encoding.direction == Direction::Away([true, false]) { FRACTION } else { 0 };
        let too_large = if self.encoding.clamp == Clamp::Finite { LARGEST } else { 0xff };
        let encode = |bits: i64| {
            let magnitude = bits & i64::MAX;
            let exponent = (magnitude.wrapping_add(up) >> 52) - (BIAS - 127);
            let number = if exponent > LARGEST { too_large } else { exponent.max(0) };
            (if magnitude > INFINITY { 0xff } else { number }) as u64
        };
        apply1(encode, bits)
    }
}

/// `.sat`, `.relu` and `.satfinite`.
pub(super) fn clamp_of(picks: &Picks) -> Clamp {
    match (picks.has(Mod::Sat), picks.has(Mod::Relu), picks.has(Mod::Satfinite)) {
        (true, _, _) => Clamp::Saturate,
        (_, true, true) => Clamp::ReluFinite,
        (_, true, false) => Clamp::Relu,
        (_, false, true) => Clamp::Finite,
        _ => Clamp::None,
    }
}
