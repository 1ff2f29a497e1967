//! Operations that are computed in binary64, rounded to odd, and then rounded once to their format: arithmetic in
//! every rounding and every format of up to 32 bits, and conversions among formats.

use super::drive::{apply1, apply2, apply3, in_pairs, load, map1, store};
use super::encoding::{Direction, Encoder, Encoding, ToF32, clamp_of};
use super::float::finish64;
use super::half::to_odd_f32;
use super::numbers::{Element, Numbers, load_bits, odd, store_bits, two_sum};
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Rounding, Type};
use sem::format::{F64_UPPER, Format, OUT_OF_BOUNDS};
use sem::round::Clamp;

/// Operations, as const generics take them.
const ADD: u8 = 0;
const MUL: u8 = 1;
const FMA: u8 = 2;
const DIV: u8 = 3;
const SQRT: u8 = 4;
/// For numbers of 21 bits; the result rounds like the exact one (a test checks every significand).
const RSQRT: u8 = 5;

/// Truncates a number to `SIGNIFICANT` bits. Its product with a number of 53 - `SIGNIFICANT` bits is exact.
#[inline(always)]
fn cut<const SIGNIFICANT: u32>(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !0 << (53 - SIGNIFICANT))
}

/// x + y rounded to odd. `flip` is a sign bit: set when rounding down, where an exact zero sum is negative; else
/// zero.
#[inline(always)]
pub(super) fn add(x: f64, y: f64, flip: u64) -> f64 {
    let flipped = |x: f64| f64::from_bits(x.to_bits() ^ flip);
    let (sum, rest) = two_sum(flipped(x), flipped(y));
    flipped(odd(sum, rest))
}

/// x * y + z of halves, rounded to odd.
#[inline(always)]
pub(super) fn fma_of_halves(x: f32, y: f32, z: f32, flip: u64) -> f32 {
    to_odd_f32(add(f64::from(x) * f64::from(y), f64::from(z), flip))
}

/// x / y rounded to odd, for numbers of up to 24 bits.
#[inline(always)]
fn div(x: f64, y: f64) -> f64 {
    let quotient = x / y;
    // With a quotient of 28 bits the remainder is exact.
    let quotient = if quotient.is_finite() { cut::<28>(quotient) } else { quotient };
    let rest = x - quotient * y;
    odd(quotient, f64::from_bits(rest.to_bits() ^ y.to_bits() & 1 << 63))
}

/// The square root rounded to odd, for numbers of up to 24 bits.
#[inline(always)]
fn sqrt(x: f64) -> f64 {
    let root = x.sqrt();
    let root = if root.is_finite() { cut::<26>(root) } else { root };
    odd(root, x - root * root)
}

/// `fma` of halves, with roundings or modifiers that no other handler supports.
struct FmaOfHalves;

#[derive(Clone, Copy)]
struct FmaOfHalvesWith {
    sources: [Element; 3],
    encoding: Encoding,
    /// The result is 0 if a factor is the NaN that marks an element out of bounds.
    out_of_bounds: bool,
    /// The result is rounded down.
    down: bool,
}

impl Parametric for FmaOfHalves {
    type With = FmaOfHalvesWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &FmaOfHalvesWith) {
        let encoder = Encoder::new(&with.encoding);
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                // A closure might not be inlined.
                macro_rules! source {
                    ($n:literal) => {
                        with.sources[$n].singles(path, args, i)
                    };
                }
                let x = path.fma_of_halves(source!(0), source!(1), source!(2), with.down);
                let mut out = encoder.encode(path, x);
                if with.out_of_bounds {
                    let inside = |x: u32, a: u32| if a & 0x7fff == OUT_OF_BOUNDS.into() { 0 } else { x };
                    out = apply2(inside, out, load_bits(args, 0, 2, i));
                    out = apply2(inside, out, load_bits(args, 1, 2, i));
                }
                store_bits(path, args, 2, i, out);
            }
        }
    }
}

/// An operation on numbers of up to 24 bits.
struct Rounded<const OPERATION: u8>;

#[derive(Clone, Copy)]
struct RoundedWith {
    sources: [Element; 3],
    target: Target,
    /// The result is rounded down.
    down: bool,
}

/// The format of the results.
#[derive(Clone, Copy)]
enum Target {
    F32(ToF32),
    /// The upper word of binary64, to nearest; subnormal numbers are flushed.
    F64Upper,
}

/// [`Target::F64Upper`].
#[inline(always)]
fn upper(x: f64) -> u64 {
    let bits = x.to_bits();
    let rounded = (bits + 0x7fff_ffff + (bits >> 32 & 1)) & 0xffff_ffff << 32;
    let rounded = if f64::from_bits(rounded).abs() < f64::MIN_POSITIVE { bits & 1 << 63 } else { rounded };
    if x.is_nan() { F64_UPPER.nan } else { rounded }
}

impl<const OPERATION: u8> Parametric for Rounded<OPERATION> {
    type With = RoundedWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &RoundedWith) {
        let flip = u64::from(with.down) << 63;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                // A closure might not be inlined.
                macro_rules! source {
                    ($n:literal) => {
                        with.sources[$n].numbers(path, args, i)
                    };
                }
                let x = match OPERATION {
                    ADD => apply2(|x, y| add(x, y, flip), source!(0), source!(1)),
                    MUL => apply2(|x: f64, y: f64| x * y, source!(0), source!(1)),
                    FMA => {
                        apply3(|x: f64, y: f64, z| add(x * y, z, flip), source!(0), source!(1), source!(2))
                    }
                    DIV => apply2(div, source!(0), source!(1)),
                    SQRT => apply1(sqrt, source!(0)),
                    _ => apply1(|x: f64| 1.0 / x.sqrt(), source!(0)),
                };
                match &with.target {
                    Target::F32(to) => store(path, args, 0, i, to.encode(x)),
                    Target::F64Upper => store(path, args, 0, i, apply1(upper, x)),
                }
            }
        }
    }
}

/// The handler of arithmetic with roundings or modifiers that no other handler supports.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[ty] = picks.types() else { return convert(opcode, sources, picks, path) };
    let element = ty.element();
    let (ftz, rounding) = (picks.has(Mod::Ftz), picks.rounding().unwrap_or(Rounding::NearestEven));
    let direction = Direction::of(rounding);
    let target = match element {
        Type::F32 if only(picks, &[Mod::Rn, Mod::Rz, Mod::Rm, Mod::Rp, Mod::Ftz, Mod::Sat]) => {
            Target::F32(ToF32::new(direction, ftz, picks.has(Mod::Sat), false)?)
        }
        Type::F16 | Type::Bf16
            if matches!((opcode, sources), (Opcode::Fma, 3) | (Opcode::Mul, 2)) && !ftz =>
        {
            let source = |n: usize| match n == sources {
                true => Some(Element::MINUS_ZERO),
                false => Element::new(n, element, 0, false),
            };
            let handler = version_with::<FmaOfHalves>(
                path,
                FmaOfHalvesWith {
                    sources: [source(0)?, source(1)?, source(2)?],
                    encoding: Encoding::new(element, direction, clamp_of(picks))?,
                    out_of_bounds: picks.has(Mod::Oob),
                    down: rounding == Rounding::TowardNegative,
                },
            );
            return Some(if ty.lanes() == 2 { in_pairs(2, handler) } else { handler });
        }
        Type::F64 if ftz && picks.has(Mod::Approx) => Target::F64Upper,
        _ => return None,
    };
    let wide = element == Type::F64;
    let source = |n: usize| {
        let source = Element::new(n, element, 0, ftz)?;
        Some(if wide { source.with(Numbers::F64Upper) } else { source })
    };
    let with = |sources: [Option<Element>; 3]| {
        let sources = sources.map(|source| source.unwrap_or(Element::ONE));
        RoundedWith { sources, target, down: rounding == Rounding::TowardNegative }
    };
    let handler = match (opcode, sources) {
        (Opcode::Add, 2) => version_with::<Rounded<ADD>>(path, with([source(0), source(1), None])),
        (Opcode::Sub, 2) => {
            let negated = source(1).map(Element::negated);
            version_with::<Rounded<ADD>>(path, with([source(0), negated, None]))
        }
        (Opcode::Mul, 2) => version_with::<Rounded<MUL>>(path, with([source(0), source(1), None])),
        (Opcode::Fma | Opcode::Mad, 3) => {
            version_with::<Rounded<FMA>>(path, with([source(0), source(1), source(2)]))
        }
        (Opcode::Div, 2) => version_with::<Rounded<DIV>>(path, with([source(0), source(1), None])),
        (Opcode::Rcp, 1) => version_with::<Rounded<DIV>>(path, with([None, source(0), None])),
        (Opcode::Sqrt, 1) => version_with::<Rounded<SQRT>>(path, with([source(0), None, None])),
        (Opcode::Rsqrt, 1) if wide => version_with::<Rounded<RSQRT>>(path, with([source(0), None, None])),
        _ => return None,
    };
    Some(match ty.lanes() {
        2 => in_pairs(element.bits() as usize / 8, handler),
        _ => handler,
    })
}

/// Conversions to binary32.
struct ConvertF32;

impl Parametric for ConvertF32 {
    type With = (Element, ToF32);

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, (source, to): &(Element, ToF32)) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe { store(path, args, 0, i, to.encode(source.numbers(path, args, i))) }
        }
    }
}

/// Conversions to binary64: from integers, which may need rounding, and from the narrow formats, which do not.
struct ConvertWide;

#[derive(Clone, Copy)]
struct ConvertWideWith {
    source: Element,
    direction: Direction,
    sat: bool,
}

impl Parametric for ConvertWide {
    type With = ConvertWideWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &ConvertWideWith) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe {
                let x = with.source.wide_numbers(path, args, i, with.direction);
                let x = apply1(|x: f64| finish64([x], x), x);
                let saturate = |x: f64| {
                    let x = if x > 0.0 { x } else { 0.0 };
                    if x < 1.0 { x } else { 1.0 }
                };
                store(path, args, 0, i, if with.sat { apply1(saturate, x) } else { x });
            }
        }
    }
}

/// Conversions of each element of a source to one of the destination.
struct Convert;

#[derive(Clone, Copy)]
struct ConvertWith {
    /// The elements, the lowest first.
    elements: [Element; 4],
    count: u8,
    /// Stride between elements of the destination, in bits.
    width: u8,
    encoding: Encoding,
    bytes: u8,
    /// The source is binary64, of whose NaNs a half keeps what fits.
    payload: bool,
}

/// The half, quiet, with the sign and the upper bits of the payload of a NaN.
#[inline(always)]
fn nan_of_half(format: &Format, nan: u64) -> u32 {
    let sign = if nan >> 63 != 0 { format.sign() } else { 0 };
    let fraction = nan >> (52 - format.fraction_bits) & ((1 << format.fraction_bits) - 1);
    format.quieted(sign | format.infinity() | fraction) as u32
}

impl Parametric for Convert {
    type With = ConvertWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &ConvertWith) {
        let encoder = Encoder::new(&with.encoding);
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                let mut out = [0; BLOCK];
                for (k, element) in with.elements.iter().enumerate().take(with.count.into()) {
                    let encoded = encoder.encode(path, element.singles(path, args, i));
                    let shift = (k as u32 * u32::from(with.width)) & 31;
                    out = apply2(|out: u32, x: u32| out | x << shift, out, encoded);
                }
                if with.payload {
                    let keep = |out: u32, x: u64| match f64::from_bits(x).is_nan() {
                        true => nan_of_half(with.encoding.format(), x),
                        false => out,
                    };
                    out = apply2(keep, out, load(args, 0, i));
                }
                store_bits(path, args, with.bytes.into(), i, out);
            }
        }
    }
}

/// Conversions `.rs` of binary32 to `COUNT` elements. The first source is the highest element; the random bits follow
/// the sources.
struct ConvertRandomly<const COUNT: usize>;

#[derive(Clone, Copy)]
struct ConvertRandomlyWith {
    width: u8,
    encoding: Encoding,
    bytes: u8,
    /// The number of random bits per element, and for each element, from the lowest on, the position of its random
    /// bits.
    random_bits: u8,
    starts: [u8; 4],
}

impl<const COUNT: usize> Parametric for ConvertRandomly<COUNT> {
    type With = ConvertRandomlyWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &ConvertRandomlyWith) {
        let encoder = Encoder::new(&with.encoding);
        let count = u32::from(with.random_bits) & 31;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                let random: Block<u32> = load(args, COUNT, i);
                let mut out = [0; BLOCK];
                for k in 0..COUNT {
                    let start = with.starts[k] & 31;
                    let random = apply1(|x: u32| x >> start & ((1 << count) - 1), random);
                    let encoded = encoder.encode_randomly(load(args, COUNT - 1 - k, i), random, count);
                    let shift = (k as u32 * u32::from(with.width)) & 31;
                    out = apply2(|out: u32, x: u32| out | x << shift, out, encoded);
                }
                store_bits(path, args, with.bytes.into(), i, out);
            }
        }
    }
}

/// The handler of a conversion of binary32 by random bits (`sem::convert::pack_stochastic`).
fn convert_randomly(dtype: Type, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (random_bits, starts) = match dtype {
        Type::F16x2 => (13, [0, 16, 0, 0]),
        Type::E2m1x4 => (8, [0, 16, 8, 24]),
        Type::Bf16x2 => (16, [0, 16, 0, 0]),
        _ => (16, [0, 0, 16, 16]),
    };
    let with = ConvertRandomlyWith {
        width: (dtype.bits() / dtype.lanes()) as u8,
        encoding: Encoding::new(dtype, Direction::NearestEven, clamp_of(picks))?,
        bytes: (dtype.bits().max(16) / 8) as u8,
        random_bits,
        starts,
    };
    match (dtype.lanes(), sources) {
        (2, 3) => Some(version_with::<ConvertRandomly<2>>(path, with)),
        (4, 5) => Some(version_with::<ConvertRandomly<4>>(path, with)),
        _ => None,
    }
}

/// `cvt.rn.bf16x2.ue8m0x2`, which is exact.
fn scales_to_bf16(path: HostPath) -> LaneFn {
    #[inline(always)]
    fn power(exponent: u32) -> u32 {
        // The least power of two is subnormal.
        let power = if exponent == 0 { 1 << 6 } else { exponent << 7 };
        if exponent == 0xff { 0x7fff } else { power }
    }
    map1(path, |x: u16| power(u32::from(x & 0xff)) | power(u32::from(x >> 8)) << 16)
}

/// The handler of a conversion from any type to another format.
fn convert(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[dtype, atype] = picks.types() else { return None };
    if opcode != Opcode::Cvt || !dtype.is_float() || dtype == atype {
        return None;
    }
    let ftz = picks.has(Mod::Ftz);
    if picks.has(Mod::Rs) && atype == Type::F32 && !ftz {
        return convert_randomly(dtype, sources, picks, path);
    }
    if (dtype, atype) == (Type::Bf16x2, Type::Ue8m0x2) && only(picks, &[Mod::Rn]) {
        return Some(scales_to_bf16(path));
    }
    let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
    if rounding == Rounding::NearestAway {
        return None;
    }
    if dtype == Type::F32 {
        let payload = atype == Type::F64;
        // The only integer close to zero is zero.
        let flush = ftz && atype.is_float();
        let to = ToF32::new(Direction::of(rounding), flush, picks.has(Mod::Sat), payload)?;
        return Some(version_with::<ConvertF32>(path, (Element::new(0, atype, 0, ftz)?, to)));
    }
    if dtype == Type::F64 {
        let source = Element::new(0, atype, 0, ftz)?;
        let with = ConvertWideWith { source, direction: Direction::of(rounding), sat: picks.has(Mod::Sat) };
        return Some(version_with::<ConvertWide>(path, with));
    }
    let ftz = ftz && dtype != Type::F16;
    let (count, width) = (dtype.lanes(), dtype.bits() / dtype.lanes());
    let mut elements = [Element::ONE; 4];
    for (k, element) in elements.iter_mut().enumerate().take(count as usize) {
        // The first source is the highest element.
        *element = match sources == count as usize {
            true => Element::new(sources - 1 - k, atype, 0, ftz)?,
            false => Element::new(0, atype, k as u32, ftz)?,
        };
    }
    let with = ConvertWith {
        elements,
        count: count as u8,
        width: width as u8,
        encoding: Encoding::new(dtype, Direction::of(rounding), clamp_of(picks))?
            .with_positive_zeros(picks.has(Mod::Pzo)),
        bytes: (dtype.bits().max(16) / 8) as u8,
        payload: atype == Type::F64 && clamp_of(picks) == Clamp::None,
    };
    Some(version_with::<Convert>(path, with))
}
