//! Video instructions: arithmetic on bytes, halves and words that selectors extract from 32-bit operands.
//!
//! PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions". [`Picks::parts`] has the selectors and signs.

use crate::integer::{number, saturate, sign_extend};
use crate::operands::{Sources, low_bits, one};
use isa::{CmpOp, Mod, Picks, Selector, Type, Unit};

/// The operands of an instruction: `d`, `a`, `b`, `c`.
const D: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// The lowest bit and the width of the part that a scalar selector extracts.
fn field(selector: Option<Selector>) -> (u32, u32) {
    let Some(selector) = selector else { return (0, 32) };
    let width = width(selector.unit);
    (width * u32::from(selector.digits().first().copied().unwrap_or(0)), width)
}

fn width(unit: Unit) -> u32 {
    match unit {
        Unit::Byte => 8,
        Unit::Half => 16,
    }
}

/// The low `width` bits as a number, signed if `ty` is.
fn extend(ty: Type, x: u64, width: u32) -> i128 {
    if ty.is_signed() { sign_extend(x, width).into() } else { low_bits(x, width).into() }
}

/// A source of a scalar instruction (`partSelectSignExtend`).
fn part(picks: &Picks, s: &[u64], source: usize, ty: Type) -> i128 {
    let (low, width) = field(picks.selector(source + 1));
    extend(ty, s.bits(source) >> low, width)
}

/// `x` clamped to the numbers of `width` bits, signed if `ty` is.
fn clamp(ty: Type, width: u32, x: i128) -> i128 {
    let narrow = match (width, ty.is_signed()) {
        (8, true) => Type::S8,
        (8, false) => Type::U8,
        (16, true) => Type::S16,
        (16, false) => Type::U16,
        _ => ty,
    };
    saturate(narrow, x)
}

/// The kind of a scalar instruction, which determines its saturation and secondary operation.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `vadd`, `vsub`.
    Sum,
    /// `vabsdiff`, `vmin`, `vmax`, `vset`.
    Choice,
    /// `vshl`, `vshr`.
    Shift,
}

/// The effect of `.sat` on a result.
///
/// The manual's text clamps it to the range of `.dtype`, or of the part of `d` that receives it. ptxas's code does so
/// for signed results in whole words; otherwise
/// - an unsigned result has only the lower bound: 2^32 becomes 0;
/// - a result for a part has only the upper bound: a negative result becomes the greatest number of the part;
/// - a shift has a 34-bit result and is clamped as a word, for any part of `d`.
fn saturated(kind: Kind, dtype: Type, part: Option<u32>, x: i128) -> i128 {
    match part {
        _ if kind == Kind::Shift => saturate(dtype, sign_extend(x as u64, 34).into()),
        Some(width) if (0..1 << 32).contains(&x) => clamp(dtype, width, x),
        Some(width) => clamp(dtype, width, i128::MAX),
        None if dtype.is_signed() => saturate(dtype, x),
        None => x.max(0),
    }
}

/// The end of a scalar instruction: saturation, then the secondary operation with `c` or the merge into it.
///
/// As in ptxas's code, `.min` and `.max` compare 64-bit numbers. `c` is extended as a number of `.dtype`. The result
/// has the width with which it was computed; that of `vadd`, `vsub` and a saturated shift is sign-extended from 32
/// bits. So 0x80000000 of `vadd.u32.u32.u32.min` is greater than every `c`, whereas the manual's text compares 32-bit
/// numbers.
fn finish(picks: &Picks, kind: Kind, dtype: Type, result: i128, c: u64) -> [u64; 2] {
    let (low, width) = field(picks.selector(D));
    let sat = picks.has(Mod::Sat);
    let result = if sat { saturated(kind, dtype, picks.selector(D).map(|_| width), result) } else { result };
    let extended = match kind {
        Kind::Sum => number(Type::S32, result as u64),
        Kind::Shift if sat => number(Type::S32, result as u64),
        _ => result,
    };
    let wide = if dtype.is_signed() { Type::S64 } else { Type::U64 };
    let (word, addend) = (number(wide, extended as u64), number(dtype, c));
    let combined = if picks.has(Mod::Add) {
        word + addend
    } else if picks.has(Mod::Min) {
        word.min(addend)
    } else if picks.has(Mod::Max) {
        word.max(addend)
    } else {
        let mask = low_bits(u64::MAX, width) << low;
        return one(low_bits(((result as u64) << low) & mask | c & !mask, 32));
    };
    one(low_bits(combined as u64, 32))
}

/// The types of the result and of sources `a` and `b`; comparisons make `.u32`.
fn types(picks: &Picks) -> [Type; 3] {
    match *picks.types() {
        [d, a, b] => [d, a, b],
        [a, b] => [Type::U32, a, b],
        _ => [Type::U32; 3],
    }
}

/// The elements of a packed instruction: their width, and which elements of `a` and `b` together each source and the
/// destination use.
struct Layout {
    width: u32,
    sources: [[u32; 4]; 2],
    mask: [bool; 4],
}

impl Layout {
    fn new(picks: &Picks, unit: Unit) -> Layout {
        let count = 32 / width(unit);
        let digits = |operand: usize| -> Option<[u32; 4]> {
            let selector = picks.selector(operand)?;
            let mut elements = [0; 4];
            for (element, &digit) in elements.iter_mut().zip(selector.digits().iter().rev()) {
                *element = digit.into();
            }
            Some(elements)
        };
        let whole = |first: u32| [0, 1, 2, 3].map(|i| first + i);
        let mask = match picks.selector(D) {
            Some(selector) => [0, 1, 2, 3].map(|i| selector.digits().contains(&i)),
            None => [true; 4],
        };
        let sources = [digits(A).unwrap_or(whole(0)), digits(B).unwrap_or(whole(count))];
        Layout { width: width(unit), sources, mask }
    }

    /// Applies `operation` to each element that the mask selects.
    fn apply(&self, picks: &Picks, s: &[u64], operation: impl Fn(i128, i128) -> i128) -> [u64; 2] {
        let [dtype, atype, btype] = types(picks);
        let both = low_bits(s.bits(0), 32) | s.bits(1) << 32;
        let (c, accumulates) = (s.bits(2), picks.has(Mod::Add));
        let mut d = c;
        for (i, _) in (0..32 / self.width).zip(self.mask).filter(|(_, masked)| *masked) {
            let [a, b] = [(0, atype), (1, btype)].map(|(source, ty)| {
                extend(ty, both >> (self.width * self.sources[source][i as usize]), self.width)
            });
            let result = operation(a, b);
            let result = if picks.has(Mod::Sat) { clamp(dtype, self.width, result) } else { result };
            if accumulates {
                d = d.wrapping_add(result as u64);
            } else {
                let mask = low_bits(u64::MAX, self.width) << (self.width * i);
                d = (result as u64) << (self.width * i) & mask | d & !mask;
            }
        }
        one(low_bits(d, 32))
    }
}

/// `vadd`, `vsub` and similar instructions: an operation on two numbers.
macro_rules! scalar_and_packed {
    ($($(#[$doc:meta])* $name:ident $name2:ident $name4:ident, $kind:expr => |$a:ident, $b:ident| $result:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(picks: &Picks, s: &[u64]) -> [u64; 2] {
            let [dtype, atype, btype] = types(picks);
            let ($a, $b) = (part(picks, s, 0, atype), part(picks, s, 1, btype));
            finish(picks, $kind, dtype, $result, s.bits(2))
        }

        #[doc = concat!("[`", stringify!($name), "`] on two halves.")]
        pub fn $name2(picks: &Picks, s: &[u64]) -> [u64; 2] {
            Layout::new(picks, Unit::Half).apply(picks, s, |$a, $b| $result)
        }

        #[doc = concat!("[`", stringify!($name), "`] on four bytes.")]
        pub fn $name4(picks: &Picks, s: &[u64]) -> [u64; 2] {
            Layout::new(picks, Unit::Byte).apply(picks, s, |$a, $b| $result)
        }
    )* };
}

scalar_and_packed! {
    /// `vadd`: a + b.
    add add2 add4, Kind::Sum => |a, b| a + b;
    /// `vsub`: a - b.
    sub sub2 sub4, Kind::Sum => |a, b| a - b;
    /// `vabsdiff`: |a - b|.
    absdiff absdiff2 absdiff4, Kind::Choice => |a, b| (a - b).abs();
    /// `vmin`: the lesser.
    min min2 min4, Kind::Choice => |a, b| a.min(b);
    /// `vmax`: the greater.
    max max2 max4, Kind::Choice => |a, b| a.max(b);
}

/// The mean of two numbers; halfway cases round away from zero.
fn average(a: i128, b: i128) -> i128 {
    let sum = a + b;
    (if sum >= 0 { sum + 1 } else { sum }) >> 1
}

/// `vavrg2`: the means of two halves.
pub fn avrg2(picks: &Picks, s: &[u64]) -> [u64; 2] {
    Layout::new(picks, Unit::Half).apply(picks, s, average)
}

/// `vavrg4`: the means of four bytes.
pub fn avrg4(picks: &Picks, s: &[u64]) -> [u64; 2] {
    Layout::new(picks, Unit::Byte).apply(picks, s, average)
}

/// 1 where the comparison of two numbers holds, else 0.
fn compare(picks: &Picks, a: i128, b: i128) -> i128 {
    let holds = match picks.cmp() {
        Some(CmpOp::Eq) => a == b,
        Some(CmpOp::Ne) => a != b,
        Some(CmpOp::Lt | CmpOp::Lo) => a < b,
        Some(CmpOp::Le | CmpOp::Ls) => a <= b,
        Some(CmpOp::Gt | CmpOp::Hi) => a > b,
        Some(CmpOp::Ge | CmpOp::Hs) => a >= b,
        _ => false,
    };
    holds.into()
}

/// `vset`: 1 or 0.
pub fn set(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [_, atype, btype] = types(picks);
    let (a, b) = (part(picks, s, 0, atype), part(picks, s, 1, btype));
    finish(picks, Kind::Choice, atype, compare(picks, a, b), s.bits(2))
}

/// `vset2`: 1 or 0 in each half.
pub fn set2(picks: &Picks, s: &[u64]) -> [u64; 2] {
    Layout::new(picks, Unit::Half).apply(picks, s, |a, b| compare(picks, a, b))
}

/// `vset4`: 1 or 0 in each byte.
pub fn set4(picks: &Picks, s: &[u64]) -> [u64; 2] {
    Layout::new(picks, Unit::Byte).apply(picks, s, |a, b| compare(picks, a, b))
}

/// The amount of a shift: at most 32 with `.clamp`, modulo 32 with `.wrap`.
fn amount(picks: &Picks, s: &[u64]) -> u32 {
    let amount = part(picks, s, 1, Type::U32) as u32;
    if picks.has(Mod::Clamp) { amount.min(32) } else { amount & 31 }
}

/// `vshl`: a << b.
pub fn shl(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [dtype, atype, _] = types(picks);
    finish(picks, Kind::Shift, dtype, part(picks, s, 0, atype) << amount(picks, s), s.bits(2))
}

/// `vshr`: a >> b, arithmetic if `.atype` is signed.
pub fn shr(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [dtype, atype, _] = types(picks);
    finish(picks, Kind::Shift, dtype, part(picks, s, 0, atype) >> amount(picks, s), s.bits(2))
}

/// `vmad`: ±(a * b) ± c, plus one with `.po`, shifted right by `.shr7` or `.shr15`.
///
/// As in ptxas's code, 32-bit factors and addends are signed for all types, and the sum has 64 bits. The result is
/// signed if any of the types is, or if the product or `c` is negated.
pub fn mad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [_, atype, btype] = types(picks);
    let parts = picks.parts;
    let signed = atype.is_signed() || btype.is_signed() || parts.negated_product || parts.negated_addend;
    let factor = |source, ty| number(Type::S32, part(picks, s, source, ty) as u64);
    let negated_if = |negative: bool, x: i128| if negative { -x } else { x };
    let product = negated_if(parts.negated_product, factor(0, atype) * factor(1, btype));
    let addend = negated_if(parts.negated_addend, number(Type::S32, s.bits(2)));
    let sum = product + addend + i128::from(picks.has(Mod::Po));
    let scale = match (picks.has(Mod::Shr7), picks.has(Mod::Shr15)) {
        (true, _) => 7,
        (_, true) => 15,
        _ => 0,
    };
    let (wide, narrow) = if signed { (Type::S64, Type::S32) } else { (Type::U64, Type::U32) };
    let scaled = number(Type::S64, (number(wide, sum as u64) >> scale) as u64);
    let result = if picks.has(Mod::Sat) { saturate(narrow, scaled) } else { scaled };
    one(low_bits(result as u64, 32))
}
