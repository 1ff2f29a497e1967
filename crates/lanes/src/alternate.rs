//! The 8-, 6- and 4-bit formats with scales, fixed point, addition or multiplication. Each element is computed in
//! binary64, exactly or rounded to odd, and then rounded once.

use super::drive::{apply1, apply2, apply3};
use super::encoding::{Direction, Encoder, Encoding, clamp_of};
use super::half::to_odd_f32;
use super::numbers::{Element, store_bits};
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::rounded::add;
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Mod, Opcode, Picks, Rounding, Type};
use sem::format::Format;
use sem::round::Clamp;

/// Operations, as const generics take them.
const ADD: u8 = 0;
const MUL: u8 = 1;
const FMA: u8 = 2;
const DIV: u8 = 3;

/// The format of the destination's elements.
#[derive(Clone, Copy)]
enum Target {
    Float(Encoding),
    /// `.s2f6`, truncated or rounded to nearest, with this minimum in units of 1/64.
    Fixed {
        cut: bool,
        least: f64,
    },
}

#[derive(Clone, Copy)]
struct ElementsWith {
    /// The source elements of the destination's lowest element.
    sources: [Element; 3],
    /// For each source, the position of its next element.
    steps: [Step; 3],
    count: u8,
    /// Stride between elements of the destination, in bits.
    width: u8,
    bytes: u8,
    /// The unit of the first source.
    unit: f32,
    /// A first source of smaller magnitude counts as zero.
    flushed: f32,
    target: Target,
}

/// The position of an operand's next element.
#[derive(Clone, Copy)]
enum Step {
    /// The same element again.
    None,
    /// The next bits above.
    Up,
    /// In the preceding source.
    Source,
}

/// Computes each element by an operation on elements of the sources.
struct Elements<const OPERATION: u8>;

impl<const OPERATION: u8> Parametric for Elements<OPERATION> {
    type With = ElementsWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &ElementsWith) {
        let first = |x: f64| {
            let x = x * f64::from(with.unit);
            if x.abs() < f64::from(with.flushed) { f64::from_bits(x.to_bits() & 1 << 63) } else { x }
        };
        for i in 0..args.lanes / BLOCK {
            let mut out = [0; BLOCK];
            let mut sources = with.sources;
            for k in 0..u32::from(with.count) {
                // SAFETY: the sources have `lanes` elements.
                let encoded = unsafe {
                    // A closure might not be inlined.
                    macro_rules! source {
                        ($n:literal) => {
                            sources[$n].numbers(path, args, i)
                        };
                    }
                    let a = apply1(first, source!(0));
                    let x = match OPERATION {
                        ADD => apply2(|x, y| add(x, y, 0), a, source!(1)),
                        MUL => apply2(|x: f64, y: f64| x * y, a, source!(1)),
                        DIV => apply2(|x: f64, y: f64| x / y, a, source!(1)),
                        _ => apply3(|x: f64, y: f64, z| add(x * y, z, 0), a, source!(1), source!(2)),
                    };
                    match &with.target {
                        Target::Float(encoding) => Encoder::new(encoding).encode(path, apply1(to_odd_f32, x)),
                        &Target::Fixed { cut, least } => fixed(x, cut, least),
                    }
                };
                let shift = (k * u32::from(with.width)) & 31;
                out = apply2(|out: u32, x: u32| out | x << shift, out, encoded);
                for (source, step) in sources.iter_mut().zip(with.steps) {
                    *source = match step {
                        Step::None => *source,
                        Step::Up => source.above(),
                        Step::Source => source.of_source_before(),
                    };
                }
            }
            // SAFETY: the destination has `lanes` elements.
            unsafe { store_bits(path, args, with.bytes.into(), i, out) }
        }
    }
}

/// Converts to multiples of 1/64 in the range of a byte; a NaN becomes the largest.
#[inline(always)]
fn fixed(x: Block<f64>, cut: bool, least: f64) -> Block<u32> {
    /// Adding this number to a number of up to 2^51 rounds it to an integer, which is then in the low bits of the
    /// sum.
    const INTEGERS: f64 = (3u64 << 51) as f64;
    let number = |x: f64| {
        let x = if x.is_nan() { 127.0 } else { (x * 64.0).clamp(-200.0, 200.0) };
        let nearest = (x + INTEGERS) - INTEGERS;
        let beyond = if nearest.abs() > x.abs() { 1.0f64.copysign(x) } else { 0.0 };
        let rounded = if cut { nearest - beyond } else { nearest };
        rounded.max(least).min(127.0) as i32 as u32 & 0xff
    };
    apply1(number, x)
}

/// The handler of a form on these formats that no other file handles.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    match opcode {
        Opcode::Cvt => convert(sources, picks, path),
        _ => arithmetic(opcode, sources, picks, path),
    }
}

/// `sem::alternate`
fn arithmetic(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (dtype, types) = (picks.ty(0), picks.types());
    if !matches!(dtype, Type::E4m3x4 | Type::E5m2x4) {
        return None;
    }
    let (a, b) = (picks.ty(1), picks.ty(2));
    let element = |n: usize, ty: Type| Element::new(n, ty, 0, false);
    let lowest = match (opcode, sources, types.len()) {
        (Opcode::Add, 2, 2) => [element(0, a)?, element(1, dtype)?, Element::ONE],
        (Opcode::Sub, 2, 2) => [element(0, a)?, element(1, dtype)?.negated(), Element::ONE],
        (Opcode::Mul, 2, 3) => [element(0, a)?, element(1, b)?, Element::ONE],
        (Opcode::Fma, 3, 3) => [element(0, a)?, element(1, b)?, element(2, dtype)?],
        _ => return None,
    };
    let with = ElementsWith {
        sources: lowest,
        steps: [Step::Up, Step::Up, if sources == 3 { Step::Up } else { Step::None }],
        count: 4,
        width: 8,
        bytes: 4,
        unit: 1.0,
        flushed: 0.0,
        target: Target::Float(Encoding::new(dtype, Direction::NearestEven, clamp_of(picks))?),
    };
    Some(match opcode {
        Opcode::Mul => version_with::<Elements<MUL>>(path, with),
        Opcode::Fma => version_with::<Elements<FMA>>(path, with),
        _ => version_with::<Elements<ADD>>(path, with),
    })
}

/// `sem::convert::packed` with scales, or of `.s2f6`.
fn convert(sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[dtype, atype] = picks.types() else { return None };
    let (one_scale, two_scales) = (picks.has(Mod::ScaledN1Ue8m0), picks.has(Mod::ScaledN2Ue8m0));
    let is_fixed = dtype == Type::S2f6x2 || atype == Type::S2f6x2;
    if !(one_scale || two_scales || is_fixed) {
        return None;
    }
    let numbers = sources - usize::from(one_scale || two_scales);
    let (source, step) = match (numbers, atype) {
        (1, _) => (Element::new(0, atype, 0, false)?, Step::Up),
        // The first source is the highest element.
        _ => (Element::new(1, atype, 0, false)?, Step::Source),
    };
    let (scale, scale_step) = match (one_scale, two_scales) {
        (true, _) => (Element::new(numbers, Type::Ue8m0, 0, false)?, Step::None),
        (_, true) => (Element::new(numbers, Type::Ue8m0x2, 0, false)?, Step::Up),
        _ => (Element::ONE, Step::None),
    };
    let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
    let target = if dtype == Type::S2f6x2 {
        let relu = matches!(clamp_of(picks), Clamp::Relu | Clamp::ReluFinite);
        Target::Fixed { cut: rounding == Rounding::TowardZero, least: if relu { 0.0 } else { -128.0 } }
    } else {
        let encoding = Encoding::new(dtype, Direction::of(rounding), clamp_of(picks))?;
        Target::Float(encoding.with_positive_zeros(picks.has(Mod::Pzo)))
    };
    // The smallest normal number.
    let normal = |format: &Format| f32::from_bits(((127 + format.min_exponent()) as u32) << 23);
    let with = ElementsWith {
        sources: [source, scale, Element::ONE],
        steps: [step, scale_step, Step::None],
        count: 2,
        width: (dtype.bits() / 2) as u8,
        bytes: (dtype.bits().max(16) / 8) as u8,
        unit: if atype == Type::S2f6x2 { 1.0 / 64.0 } else { 1.0 },
        flushed: if one_scale { normal(Format::of(atype)?) } else { 0.0 },
        target,
    };
    // A conversion to bfloat16 multiplies by the scale; the others divide by it.
    Some(match dtype {
        Type::Bf16x2 => version_with::<Elements<MUL>>(path, with),
        _ => version_with::<Elements<DIV>>(path, with),
    })
}
