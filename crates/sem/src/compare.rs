//! Comparison and selection: set, setp, selp, slct, and the order of min and max.
//!
//! PTX ISA, "Comparison and Selection Instructions" and "Half Precision Comparison Instructions".

use crate::format::{F32, F64, Format};
use crate::integer::sign_extend;
use crate::operands::{Sources, one};
use isa::{BoolOp, CmpOp, Kind, Mod, Picks, Type};
use std::cmp::Ordering;

/// How two floating-point numbers compare; `None` if either is NaN. Zeros of both signs are equal.
#[inline]
pub fn order_float(f: &Format, ftz: bool, a: u64, b: u64) -> Option<Ordering> {
    if f.is_nan(a) || f.is_nan(b) {
        return None;
    }
    let key = |x: u64| {
        let magnitude = (x & f.magnitude_mask()) as i64;
        match ftz && (magnitude as u64) < f.min_normal() {
            true => 0,
            false if x & f.sign() != 0 => -magnitude,
            false => magnitude,
        }
    };
    Some(key(a).cmp(&key(b)))
}

/// How two values of a type compare; `None` if they are unordered.
pub fn order(ty: Type, ftz: bool, a: u64, b: u64) -> Option<Ordering> {
    match (Format::of(ty), ty.kind()) {
        (Some(f), _) => order_float(f, ftz, a, b),
        (None, Kind::Signed) => Some(sign_extend(a, ty.bits()).cmp(&sign_extend(b, ty.bits()))),
        (None, _) => Some(a.cmp(&b)),
    }
}

/// Whether a comparison operator holds. `lo` to `hs` are the unsigned `lt` to `ge`; `equ` to `geu` also hold for
/// unordered operands.
pub fn holds(op: CmpOp, order: Option<Ordering>) -> bool {
    let unordered = order.is_none();
    let (less, equal, greater) =
        (order == Some(Ordering::Less), order == Some(Ordering::Equal), order == Some(Ordering::Greater));
    match op {
        CmpOp::Eq => equal,
        CmpOp::Ne => less | greater,
        CmpOp::Lt | CmpOp::Lo => less,
        CmpOp::Le | CmpOp::Ls => less | equal,
        CmpOp::Gt | CmpOp::Hi => greater,
        CmpOp::Ge | CmpOp::Hs => greater | equal,
        CmpOp::Equ => equal | unordered,
        CmpOp::Neu => !equal,
        CmpOp::Ltu => less | unordered,
        CmpOp::Leu => !greater,
        CmpOp::Gtu => greater | unordered,
        CmpOp::Geu => !less,
        CmpOp::Num => !unordered,
        CmpOp::Nan => unordered,
    }
}

/// `BoolOp(t, c)`; without an operator, t.
fn combine(op: Option<BoolOp>, t: bool, c: bool) -> bool {
    match op {
        None => t,
        Some(BoolOp::And) => t & c,
        Some(BoolOp::Or) => t | c,
        Some(BoolOp::Xor) => t ^ c,
    }
}

/// `(a CmpOp b)` in a lane. The caller has a form with a comparison.
fn compare_lane(picks: &Picks, ty: Type, s: &[u64], lane: u32) -> bool {
    let element = ty.element();
    let [a, b] = [0, 1].map(|i| s.lane(i, lane, element.bits()));
    holds(picks.cmp().unwrap_or(CmpOp::Eq), order(element, picks.has(Mod::Ftz), a, b))
}

/// `setp`: p and q.
///
/// With packed halves, p is the result of the low lane and q that of the high lane; otherwise q is the result for the
/// complement.
pub fn setp(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (ty, op, c) = (picks.ty(0), picks.bool_op(), s.bit(2));
    let t = compare_lane(picks, ty, s, 0);
    let second = if ty.lanes() == 2 { compare_lane(picks, ty, s, 1) } else { !t };
    [combine(op, t, c) as u64, combine(op, second, c) as u64]
}

/// `set`: all ones or 1.0 in the destination type. The comparison is in the source type, lane by lane if it is
/// packed. Packed integers have one type for both; all ones in the lanes that hold are our reading of it.
pub fn set(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let dtype = picks.ty(0);
    let stype = picks.types().last().copied().unwrap_or(dtype);
    let (op, c) = (picks.bool_op(), s.bit(2));
    let width = dtype.bits() / stype.lanes();
    let yes = match Format::of(dtype) {
        Some(f) => f.one(),
        None => u64::MAX >> (64 - width),
    };
    let lane = |i: u32| if combine(op, compare_lane(picks, stype, s, i), c) { yes << (i * width) } else { 0 };
    one((0..stype.lanes()).fold(0, |d, i| d | lane(i)))
}

/// `selp`: a if c, else b; no bit is changed.
pub fn selp(_: &Picks, s: &[u64]) -> [u64; 2] {
    one(if s.bit(2) { s.bits(0) } else { s.bits(1) })
}

/// `slct`: a if c >= 0, else b; no bit is changed. NaN selects b, -0.0 selects a.
pub fn slct(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let c = s.bits(2);
    let a = match picks.ty(1) {
        Type::F32 => holds(CmpOp::Ge, order_float(&F32, picks.has(Mod::Ftz), c, 0)),
        _ => sign_extend(c, 32) >= 0,
    };
    one(if a { s.bits(0) } else { s.bits(1) })
}

/// The modifiers of `min` and `max`: `.ftz`, `.NaN`, `.xorsign.abs` (with three operands, `.abs` alone).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinMax {
    /// Subnormal operands become zero of the same sign.
    pub ftz: bool,
    /// The result is NaN if any operand is NaN; otherwise only if all operands are.
    pub nan: bool,
    /// Magnitudes are compared and returned.
    pub abs: bool,
    /// With `abs`: the result's sign is the xor of the operands' signs.
    pub xorsign: bool,
}

/// Floating-point `min` or `max`. -0.0 is less than +0.0; a NaN result is the canonical one, in `.f64` (as on an H100) b
/// made quiet.
pub fn min_max_float(f: &Format, keep: Ordering, mode: MinMax, a: u64, b: u64) -> u64 {
    let prepare = |x: u64| {
        let x = if mode.ftz && !f.is_nan(x) { f.flush(x) } else { x };
        if mode.abs { x & f.magnitude_mask() } else { x }
    };
    let (x, y) = (prepare(a), prepare(b));
    // The key is larger for larger numbers, with -0.0 just below +0.0.
    let key = |x: u64| if x & f.sign() != 0 { !((x & f.magnitude_mask()) as i64) } else { x as i64 };
    let magnitude = match (f.is_nan(x), f.is_nan(y)) {
        (true, _) | (_, true) if mode.nan => return f.nan,
        (true, true) if *f == F64 => return f.quieted(b),
        (true, true) => return f.nan,
        (true, false) => y,
        (false, true) => x,
        (false, false) if key(x).cmp(&key(y)) == keep => x,
        (false, false) => y,
    };
    if mode.xorsign { magnitude | ((a ^ b) & f.sign()) } else { magnitude }
}
