//! Video instructions: arithmetic on bytes, halves and words that selectors cut out of 32-bit operands.
//!
//! PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions". Selectors and signs stand in
//! [`Picks::parts`].

use crate::integer::{number, saturate, sign_extend};
use crate::operands::{Sources, low_bits, one};
use isa::{CmpOp, Mod, Picks, Selector, Type, Unit};

/// The operands of an instruction: `d`, `a`, `b`, `c`.
const D: usize = 0;
const A: usize = 1;
const B: usize = 2;

/// What a scalar selector cuts out of an operand: the lowest bit and the width.
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

/// `x` as the number that `width` bits of a type like `ty` hold nearest to it.
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

/// The end of a scalar instruction: saturation, the secondary operation with `c`, or the merge into it.
fn finish(picks: &Picks, dtype: Type, result: i128, c: u64) -> [u64; 2] {
    let (low, width) = field(picks.selector(D));
    let result = if picks.has(Mod::Sat) { clamp(dtype, width, result) } else { result };
    let (word, addend) = (number(dtype, result as u64), number(dtype, c));
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

/// How the elements of a packed instruction lie: their width, and the elements of `a` and `b` together that each source
/// and the destination take.
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

    /// Applies `operation` to each element that the mask names.
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

/// `vadd`, `vsub` and their kin: an operation on two numbers.
macro_rules! scalar_and_packed {
    ($($(#[$doc:meta])* $name:ident $name2:ident $name4:ident = |$a:ident, $b:ident| $result:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(picks: &Picks, s: &[u64]) -> [u64; 2] {
            let [dtype, atype, btype] = types(picks);
            let ($a, $b) = (part(picks, s, 0, atype), part(picks, s, 1, btype));
            finish(picks, dtype, $result, s.bits(2))
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
    add add2 add4 = |a, b| a + b;
    /// `vsub`: a - b.
    sub sub2 sub4 = |a, b| a - b;
    /// `vabsdiff`: |a - b|.
    absdiff absdiff2 absdiff4 = |a, b| (a - b).abs();
    /// `vmin`: the lesser.
    min min2 min4 = |a, b| a.min(b);
    /// `vmax`: the greater.
    max max2 max4 = |a, b| a.max(b);
}

/// The mean of two numbers; of halves between two integers the one away from zero.
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
    let [dtype, atype, btype] = types(picks);
    let (a, b) = (part(picks, s, 0, atype), part(picks, s, 1, btype));
    finish(picks, dtype, compare(picks, a, b), s.bits(2))
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
    finish(picks, dtype, part(picks, s, 0, atype) << amount(picks, s), s.bits(2))
}

/// `vshr`: a >> b, arithmetic if `.atype` is signed.
pub fn shr(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [dtype, atype, _] = types(picks);
    finish(picks, dtype, part(picks, s, 0, atype) >> amount(picks, s), s.bits(2))
}

/// `vmad`: ±(a * b) ± c, plus one with `.po`, shifted right by `.shr7` or `.shr15`. Signs are taken as the manual's text
/// has them, complement and add one, so that -c of an unsigned c is a signed number of 32 bits.
pub fn mad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [_, atype, btype] = types(picks);
    let parts = picks.parts;
    let signed = atype.is_signed() || btype.is_signed() || parts.negated_product || parts.negated_addend;
    let result_type = if signed { Type::S32 } else { Type::U32 };
    let product = part(picks, s, 0, atype) * part(picks, s, 1, btype);
    let (product, addend) = match (parts.negated_product, parts.negated_addend) {
        (true, _) => (!product, s.bits(2)),
        (false, true) => (product, !s.bits(2)),
        (false, false) => (product, s.bits(2)),
    };
    let one_more = picks.has(Mod::Po) || parts.negated_product || parts.negated_addend;
    let sum = product + number(result_type, low_bits(addend, 32)) + i128::from(one_more);
    let scaled = if picks.has(Mod::Shr7) {
        sum >> 7
    } else if picks.has(Mod::Shr15) {
        sum >> 15
    } else {
        sum
    };
    let result = if picks.has(Mod::Sat) { saturate(result_type, scaled) } else { scaled };
    one(low_bits(result as u64, 32))
}
