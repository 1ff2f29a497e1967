//! Rounds numbers once to a floating-point format, as vector code.
//!
//! The numbers are in binary64, or in binary32 for narrower formats. They may have been rounded to odd, which
//! preserves the result of a second rounding to at least two bits fewer. One definition serves every format, rounding
//! and clamp; they are parameters, which a handler's lookup selects once.

use super::HostPath;
use super::drive::{apply1, apply2};
use super::float::finish;
use super::path::{BLOCK, Block, Path};
use isa::{Mod, Picks, Rounding, Type};
use sem::format::{F32, Format, Specials};
use sem::round::Clamp;

/// The bias of binary32's exponent, its fraction, and its infinity.
const BIAS: i32 = 127;
const FRACTION: i32 = (1 << 23) - 1;
const INFINITY: i32 = 0xff << 23;

/// The maximum number of dropped bits: sums of a significand and its rounding increment stay below 2^31.
const DROPPED: i32 = 30;

/// How numbers are rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Direction {
    NearestEven,
    NearestAway,
    /// For positive and for negative numbers: away from zero if true, else toward zero.
    Away([bool; 2]),
}

impl Direction {
    /// The direction of a rounding mode.
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

/// Rounds the exact value `nearest + rest` in a direction. `nearest` must be the nearest number.
#[inline(always)]
pub(super) fn directed(nearest: f64, rest: f64, direction: Direction) -> f64 {
    let Direction::Away(away) = direction else { return nearest };
    let bits = nearest.to_bits() as i64;
    // The sign of the exact value, even if that underflowed.
    let negative = bits < 0;
    let outward = if negative { rest < 0.0 } else { rest > 0.0 };
    let inward = if negative { rest > 0.0 } else { rest < 0.0 };
    let away = if negative { away[1] } else { away[0] };
    // Of two neighbours with the same sign, the one farther from zero has the greater bits, by one.
    let step = i64::from(outward & away) - i64::from(inward & !away);
    f64::from_bits(bits.wrapping_add(step) as u64)
}

/// Binary32 from numbers that may have been rounded to odd.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToF32 {
    direction: Direction,
    /// `.ftz`: see [`ToF32::reach`].
    reach: Option<[f64; 2]>,
    sat: bool,
    /// A NaN keeps its sign and the top bits of its payload.
    payload: bool,
}

impl ToF32 {
    /// The conversion for these modifiers; `None` for `.ftz` with a rounding to nearest, which has simpler code
    /// elsewhere.
    pub(super) fn new(direction: Direction, ftz: bool, sat: bool, payload: bool) -> Option<ToF32> {
        let reach = if ftz { Some(ToF32::reach(direction)?) } else { None };
        Some(ToF32 { direction, reach, sat, payload })
    }

    #[inline(always)]
    pub(super) fn encode(&self, x: Block<f64>) -> Block<f32> {
        let x = match self.reach {
            Some(reach) => apply1(|x| flushed(x, reach), x),
            None => x,
        };
        let mut rounded = match self.direction {
            Direction::Away(away) => apply1(|x| directed_f32(x, away), x),
            _ => apply1(|x: f64| x as f32, x),
        };
        if self.payload {
            let quiet = |x: f64| {
                let bits = x.to_bits();
                f32::from_bits(0x7fc0_0000 | (bits >> 32) as u32 & 1 << 31 | (bits >> 29) as u32 & 0x7f_ffff)
            };
            rounded = apply2(|x: f64, rounded| if x.is_nan() { quiet(x) } else { rounded }, x, rounded);
        }
        match (self.sat, self.payload) {
            (true, _) => apply1(finish::<true>, rounded),
            (false, false) => apply1(finish::<false>, rounded),
            (false, true) => rounded,
        }
    }

    /// `.ftz` rounds a number with an unbounded exponent before it flushes. Returns, for positive and for negative
    /// numbers, the magnitude above which the rounding reaches the smallest normal number.
    fn reach(direction: Direction) -> Option<[f64; 2]> {
        /// The unit in the last place of binary32 just below that number.
        const UNIT: f64 = LEAST / (1 << 24) as f64;
        match direction {
            Direction::Away(away) => Some(away.map(|away| if away { LEAST - UNIT } else { LEAST })),
            _ => None,
        }
    }
}

/// The smallest normal number of binary32.
const LEAST: f64 = f32::MIN_POSITIVE as f64;

/// Rounds and flushes `x` with `.ftz` if its magnitude is below the smallest normal number; otherwise returns `x`.
#[inline(always)]
fn flushed(x: f64, [positive, negative]: [f64; 2]) -> f64 {
    let sign = x.to_bits() & 1 << 63;
    let reach = if sign != 0 { negative } else { positive };
    let least = if x.abs() > reach { LEAST } else { 0.0 };
    if x.abs() < LEAST { f64::from_bits(least.to_bits() | sign) } else { x }
}

/// Converts a number to binary32. For positive and for negative numbers: away from zero if true, else toward zero.
#[inline(always)]
fn directed_f32(x: f64, away: [bool; 2]) -> f32 {
    let nearest = x as f32;
    // An infinity has a NaN as its rest; an overflowed number has a rest toward zero.
    let rest = x - f64::from(nearest);
    let bits = nearest.to_bits() as i32;
    let [positive, negative] = away;
    let (up, down) = (rest > 0.0, rest < 0.0);
    let minus = bits < 0;
    let outward = if minus { down & negative } else { up & positive };
    let inward = if minus { up & !negative } else { down & !positive };
    // Of two neighbours with the same sign, the one farther from zero has the greater bits, by one.
    f32::from_bits((bits + i32::from(outward) - i32::from(inward)) as u32)
}

/// How numbers are encoded in a format narrower than binary32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    format: &'static Format,
    direction: Direction,
    clamp: Clamp,
    /// `.ue8m0`, which has only an exponent.
    scale: bool,
    /// `.ue5m3`, which has no sign.
    unsigned: bool,
    /// `.pzo`: zeros are positive.
    positive_zeros: bool,
}

impl Encoding {
    /// The encoding of a type.
    pub(super) fn new(ty: Type, direction: Direction, clamp: Clamp) -> Option<Encoding> {
        let scale = ty.element() == Type::Ue8m0;
        let format = if scale { &F32 } else { Format::of(ty)? };
        let unsigned = ty.element() == Type::Ue5m3;
        Some(Encoding { format, direction, clamp, scale, unsigned, positive_zeros: false })
    }

    /// The format.
    #[inline(always)]
    pub(super) fn format(&self) -> &'static Format {
        self.format
    }

    /// The same encoding, with or without positive zeros.
    pub(super) fn with_positive_zeros(self, positive_zeros: bool) -> Encoding {
        Encoding { positive_zeros, ..self }
    }
}

/// An [`Encoding`] and the constants derived from it.
pub(super) struct Encoder {
    encoding: Encoding,
    fraction_bits: u32,
    padding: u32,
    /// The biased exponent of the smallest normal number, in binary32.
    least_exponent: i32,
    max_finite: i32,
    /// The encodings of an overflow, for positive and for negative numbers.
    too_large: [i32; 2],
    infinity: i32,
    sign: u32,
}

impl Encoder {
    #[inline(always)]
    pub(super) fn new(encoding: &Encoding) -> Encoder {
        let &Encoding { format, direction, clamp, .. } = encoding;
        let finite = matches!(clamp, Clamp::Finite | Clamp::ReluFinite);
        let max_finite = (format.max_finite() >> format.padding) as i32;
        let infinity = if finite { max_finite } else { (format.infinity() >> format.padding) as i32 };
        let too_large = match direction {
            Direction::Away(away) => away.map(|away| if away { infinity } else { max_finite }),
            _ => [infinity; 2],
        };
        Encoder {
            encoding: *encoding,
            fraction_bits: format.fraction_bits & 31,
            padding: format.padding & 31,
            least_exponent: format.min_exponent() + BIAS,
            max_finite,
            too_large,
            infinity,
            sign: (format.bits() - 1) & 31,
        }
    }

    /// The encodings of numbers, which may have been rounded to odd.
    #[inline(always)]
    pub(super) fn encode<P: Path>(&self, path: P, x: Block<f32>) -> Block<u32> {
        let x = if self.encoding.unsigned { apply1(f32::abs, x) } else { x };
        let bits = apply1(|x: f32| x.to_bits() as i32, x);
        let Encoding { format, direction, scale, .. } = self.encoding;
        if scale {
            return self.encode_scale(bits);
        }
        let by_host = P::PATH != HostPath::Portable && direction == Direction::NearestEven;
        let numbers = match (format.bits(), self.fraction_bits, direction) {
            (_, _, Direction::NearestAway) => self.round(bits),
            (16, 10, _) if by_host => {
                // `finished` replaces the results for NaNs.
                let halves = path.f32_to_f16(x);
                apply1(|half: u16| i32::from(half & 0x7fff), halves)
            }
            (16, 7, _) => round_to_bf16(bits, direction),
            _ => self.round(bits),
        };
        self.finished(numbers, bits)
    }

    /// The encodings of numbers, after adding `count` random bits below the last bit that is kept.
    #[inline(always)]
    pub(super) fn encode_randomly(&self, x: Block<f32>, random: Block<u32>, count: u32) -> Block<u32> {
        let bits = apply1(|x: f32| x.to_bits() as i32, x);
        let mut numbers = [0; BLOCK];
        for k in 0..BLOCK {
            let (exponent, significand, drop) = self.parts(bits[k]);
            // Bits that far below the last place are below all random bits, so they cause no carry.
            let significand = significand >> (drop - DROPPED).clamp(0, 31);
            let drop = drop.min(DROPPED) as u32;
            let above = random[k] << (drop.wrapping_sub(count) & 31);
            numbers[k] = exponent + (significand.wrapping_add(above as i32) >> (drop & 31));
        }
        self.finished(numbers, bits)
    }

    /// Completes encodings. `numbers` are magnitudes in units of the last place, rounded as if the exponent had no
    /// upper bound; signs and NaNs come from the binary32 `bits`.
    #[inline(always)]
    fn finished(&self, numbers: Block<i32>, bits: Block<i32>) -> Block<u32> {
        let Encoding { format, clamp, positive_zeros, .. } = self.encoding;
        let mut out = apply1(|number: i32| number as u32, self.bounded(numbers, bits));
        if self.padding != 0 {
            out = apply1(|x: u32| x << self.padding, out);
        }
        out = match clamp {
            Clamp::None | Clamp::Finite if positive_zeros => {
                let negative = |x: u32, bits: i32| u32::from((bits < 0) & (x != 0)) << self.sign;
                apply2(|x: u32, bits: i32| x | negative(x, bits), out, bits)
            }
            Clamp::None | Clamp::Finite => {
                apply2(|x: u32, bits: i32| x | u32::from(bits < 0) << self.sign, out, bits)
            }
            Clamp::Saturate => {
                let one = format.one() as i32;
                apply2(|x: u32, bits: i32| if bits < 0 { 0 } else { (x as i32).min(one) as u32 }, out, bits)
            }
            Clamp::Relu | Clamp::ReluFinite => {
                apply2(|x: u32, bits: i32| if bits < 0 { 0 } else { x }, out, bits)
            }
        };
        let nan = match (format.specials, clamp) {
            // The format has no NaN: use the largest number.
            (Specials::None, _) => self.max_finite as u32,
            (_, Clamp::Saturate) => 0,
            _ => format.nan as u32,
        };
        apply2(|x: u32, bits: i32| if bits & i32::MAX > INFINITY { nan } else { x }, out, bits)
    }

    /// Replaces magnitudes that are too large. Everything that overflowed, including infinity, is larger than the
    /// largest finite number.
    #[inline(always)]
    fn bounded(&self, numbers: Block<i32>, bits: Block<i32>) -> Block<i32> {
        let Direction::Away(_) = self.encoding.direction else {
            return apply1(
                |number: i32| if number > self.max_finite { self.infinity } else { number },
                numbers,
            );
        };
        let bounded = |number: i32, bits: i32| {
            let too_large = if bits < 0 { self.too_large[1] } else { self.too_large[0] };
            let number = if number > self.max_finite { too_large } else { number };
            if bits & i32::MAX == INFINITY { self.infinity } else { number }
        };
        apply2(bounded, numbers, bits)
    }

    /// A magnitude's exponent in units of the last place, its significand, and how many bits of the significand are
    /// below the last place.
    #[inline(always)]
    fn parts(&self, bits: i32) -> (i32, i32, i32) {
        let magnitude = bits & i32::MAX;
        let exponent = magnitude >> 23;
        let hidden = if exponent > 0 { 1 << 23 } else { 0 };
        let exponent = exponent.max(1);
        let kept = exponent.max(self.least_exponent);
        let drop = 23 - self.fraction_bits as i32 + kept - exponent;
        ((kept - self.least_exponent) << self.fraction_bits, magnitude & FRACTION | hidden, drop)
    }

    /// The magnitudes in units of the last place, rounded as if the exponent had no upper bound.
    #[inline(always)]
    fn round(&self, bits: Block<i32>) -> Block<i32> {
        let (mut exponents, mut significands, mut drops) = ([0; BLOCK], [0; BLOCK], [0u32; BLOCK]);
        for k in 0..BLOCK {
            let (exponent, significand, drop) = self.parts(bits[k]);
            // Further below the last place, one sticky bit represents all nonzero bits.
            let excess = (drop - DROPPED).clamp(0, 31) as u32;
            let jammed = if (excess > 0) & (significand != 0) { 1 } else { 0 };
            significands[k] = significand >> (excess & 31) | jammed;
            (exponents[k], drops[k]) = (exponent, drop.min(DROPPED) as u32);
        }
        let ones = |drop: u32| (1i32 << (drop & 31)) - 1;
        let above: Block<i32> = match self.encoding.direction {
            Direction::NearestEven => {
                apply2(|s: i32, drop: u32| (s >> (drop & 31) & 1) + (ones(drop) >> 1), significands, drops)
            }
            Direction::NearestAway => apply1(|drop: u32| (ones(drop) >> 1) + 1, drops),
            Direction::Away([positive, negative]) => {
                let (positive, negative) = (-i32::from(positive), -i32::from(negative));
                let away = |bits: i32, drop: u32| ones(drop) & if bits < 0 { negative } else { positive };
                apply2(away, bits, drops)
            }
        };
        let mut out = [0i32; BLOCK];
        for k in 0..BLOCK {
            let rounded = (significands[k] + above[k]) >> (drops[k] & 31);
            out[k] = exponents[k] + rounded;
        }
        out
    }

    /// The exponent of the magnitude after rounding to a power of two.
    #[inline(always)]
    fn encode_scale(&self, bits: Block<i32>) -> Block<u32> {
        const LARGEST: i32 = 0xfe;
        let up = self.encoding.direction == Direction::Away([true, false]);
        let too_large = if self.encoding.clamp == Clamp::Finite { LARGEST } else { 0xff };
        let encode = |bits: i32| {
            let magnitude = bits & i32::MAX;
            // The least number is 2^-127, which is subnormal in binary32; greater subnormal numbers round up to the
            // next exponent.
            let from_subnormal = i32::from(magnitude > 1 << 22);
            let inexact =
                if magnitude > FRACTION { i32::from(magnitude & FRACTION != 0) } else { from_subnormal };
            let exponent = (magnitude >> 23) + if up { inexact } else { 0 };
            let number = if exponent > LARGEST { too_large } else { exponent };
            (if magnitude > INFINITY { 0xff } else { number }) as u32
        };
        apply1(encode, bits)
    }
}

/// Rounds magnitudes to bfloat16, the upper half of binary32.
#[inline(always)]
fn round_to_bf16(bits: Block<i32>, direction: Direction) -> Block<i32> {
    let nearest = |bits: i32| ((bits & i32::MAX) as u32 + 0x7fff + (bits as u32 >> 16 & 1)) >> 16;
    let rounded = match direction {
        Direction::Away([positive, negative]) => {
            let (positive, negative) = (u32::from(positive) * 0xffff, u32::from(negative) * 0xffff);
            let away = |bits: i32| (bits & i32::MAX) as u32 + if bits < 0 { negative } else { positive };
            apply1(|bits: i32| away(bits) >> 16, bits)
        }
        _ => apply1(nearest, bits),
    };
    apply1(|magnitude: u32| magnitude as i32, rounded)
}

/// The clamp of `.sat`, `.relu` and `.satfinite`.
pub(super) fn clamp_of(picks: &Picks) -> Clamp {
    match (picks.has(Mod::Sat), picks.has(Mod::Relu), picks.has(Mod::Satfinite)) {
        (true, _, _) => Clamp::Saturate,
        (_, true, true) => Clamp::ReluFinite,
        (_, true, false) => Clamp::Relu,
        (_, false, true) => Clamp::Finite,
        _ => Clamp::None,
    }
}
