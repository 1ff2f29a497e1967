//! Values that step evenly from lane to lane: how pure instructions map them.

use ir::Width;
use isa::{CmpOp, Form, Mod, Picks, Type};

use crate::registers::Scalar;

/// What an instruction makes of sources of the form `base + lane * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linear {
    /// Nothing that is known; only uniform sources give a uniform result.
    No,
    Add,
    Sub,
    /// `mul.lo` with one uniform factor.
    Mul,
    /// `mad.lo` likewise.
    Mad,
    /// Sources are extended from this type first.
    MulWide(Type),
    MadWide(Type),
    /// `shl` by a uniform amount below the width.
    Shl,
    /// `setp` of integers of this type: uniform if the sources do not cross.
    Compare(CmpOp, Type),
    /// Conversion between integer types without saturation: source type, result type.
    Convert(Type, Type),
}

impl Linear {
    /// The rule for an instruction.
    pub fn of(form: &Form, picks: &Picks) -> Linear {
        let ty = picks.ty(0);
        let integer = !ty.is_float() && ty.lanes() == 1;
        if !integer || form.carry.reads || form.carry.writes || picks.has(Mod::Sat) {
            return Linear::No;
        }
        match form.opcode {
            "add" => Linear::Add,
            "sub" => Linear::Sub,
            "mul" if picks.has(Mod::Wide) => Linear::MulWide(ty),
            "mad" if picks.has(Mod::Wide) => Linear::MadWide(ty),
            "mul" if picks.has(Mod::Lo) => Linear::Mul,
            "mad" if picks.has(Mod::Lo) => Linear::Mad,
            "shl" => Linear::Shl,
            "setp" if picks.bool_op().is_none() => match picks.cmp() {
                Some(op) => Linear::Compare(op, ty),
                None => Linear::No,
            },
            "cvt" if picks.types().len() == 2 && !picks.ty(1).is_float() => Linear::Convert(picks.ty(1), ty),
            _ => Linear::No,
        }
    }

    /// The result for these sources, if it steps evenly too. `width` is the result's, `lanes` their number.
    pub fn apply(self, src: &[Scalar], width: Width, lanes: usize) -> Option<Scalar> {
        let product = |a: Scalar, b: Scalar| match (a.stride, b.stride) {
            (_, 0) => {
                Some(Scalar { base: a.base.wrapping_mul(b.base), stride: a.stride.wrapping_mul(b.base) })
            }
            (0, _) => {
                Some(Scalar { base: a.base.wrapping_mul(b.base), stride: b.stride.wrapping_mul(a.base) })
            }
            _ => None,
        };
        let sum = |a: Scalar, b: Scalar| Scalar {
            base: a.base.wrapping_add(b.base),
            stride: a.stride.wrapping_add(b.stride),
        };
        Some(match (self, src) {
            (Linear::Add, &[a, b]) => sum(a, b),
            (Linear::Sub, &[a, b]) => {
                Scalar { base: a.base.wrapping_sub(b.base), stride: a.stride.wrapping_sub(b.stride) }
            }
            (Linear::Mul, &[a, b]) => product(a, b)?,
            (Linear::Mad, &[a, b, c]) => sum(product(a, b)?, c),
            (Linear::MulWide(ty), &[a, b]) => product(extend(a, ty, lanes)?, extend(b, ty, lanes)?)?,
            (Linear::MadWide(ty), &[a, b, c]) => {
                sum(product(extend(a, ty, lanes)?, extend(b, ty, lanes)?)?, c)
            }
            (Linear::Shl, &[a, b]) if b.stride == 0 && b.base < u64::from(width.bits()) => {
                Scalar { base: a.base << b.base, stride: a.stride << b.base }
            }
            (Linear::Compare(op, ty), &[a, b]) => {
                let (a, b) = (extend(a, ty, lanes)?, extend(b, ty, lanes)?);
                let wide = |v: u64| if ty.is_signed() { i128::from(v as i64) } else { i128::from(v) };
                let difference = |lane: i128| {
                    let at = |s: Scalar| wide(s.base) + i128::from(s.stride as i64) * lane;
                    at(a) - at(b)
                };
                // The difference steps evenly too: what holds of its sign in the first and the last lane holds
                // between them.
                let (first, last) = (difference(0).signum(), difference(lanes as i128 - 1).signum());
                if first != last {
                    return None;
                }
                Scalar::uniform(u64::from(match op {
                    CmpOp::Eq => first == 0,
                    CmpOp::Ne => first != 0,
                    CmpOp::Lt | CmpOp::Lo => first < 0,
                    CmpOp::Le | CmpOp::Ls => first <= 0,
                    CmpOp::Gt | CmpOp::Hi => first > 0,
                    CmpOp::Ge | CmpOp::Hs => first >= 0,
                    _ => return None,
                }))
            }
            (Linear::Convert(from, to), &[a]) => {
                let narrow = to.bits().min(from.bits());
                if narrow < width.bits() {
                    // The result is extended from the narrower of the two.
                    let ty = if from.bits() <= to.bits() { from } else { to };
                    extend(a, ty, lanes)?
                } else {
                    a
                }
            }
            _ => return None,
        })
    }
}

/// A source of type `ty`, extended to 64 bits: possible if no lane leaves the type's range on the way.
fn extend(value: Scalar, ty: Type, lanes: usize) -> Option<Scalar> {
    let bits = ty.bits();
    if bits >= 64 {
        // No room to see a wrap in: only what steps little and stays far from the ends.
        let small = (value.stride as i64).unsigned_abs() < 1 << 40;
        let inside = if ty.is_signed() { (value.base as i64).unsigned_abs() } else { value.base } < 1 << 62;
        let above = ty.is_signed() || value.stride as i64 >= 0 || value.base > 1 << 50;
        return (value.stride == 0 || small && inside && above).then_some(value);
    }
    let shift = 64 - bits;
    let signed = |v: u64| (v << shift) as i64 >> shift;
    let stride = signed(value.stride);
    let (base, least, greatest) = if ty.is_signed() {
        (signed(value.base), -(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        ((value.base << shift >> shift) as i64, 0, (1i64 << bits) - 1)
    };
    let last = base + stride * (lanes as i64 - 1);
    ((least..=greatest).contains(&last)).then_some(Scalar { base: base as u64, stride: stride as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(s: Scalar, i: u64) -> u64 {
        s.base.wrapping_add(s.stride.wrapping_mul(i))
    }

    #[test]
    fn widening_is_refused_where_a_lane_wraps() {
        let near_top = Scalar { base: 0xffff_fff0, stride: 1 };
        assert_eq!(extend(near_top, Type::U32, 16), Some(near_top));
        assert_eq!(extend(near_top, Type::U32, 17), None);
        // The same bits are small negative numbers, and cross zero freely.
        let got = extend(near_top, Type::S32, 256).unwrap();
        assert_eq!(lane(got, 16), 0);
        assert_eq!(lane(got, 0), -16i64 as u64);
        assert_eq!(extend(Scalar { base: 0x7fff_fff0, stride: 1 }, Type::S32, 17), None);
    }

    #[test]
    fn a_comparison_is_uniform_only_if_no_lane_differs() {
        let tid = Scalar { base: 0, stride: 1 };
        let less = |n: u64, lanes| {
            Linear::Compare(CmpOp::Lt, Type::U32).apply(&[tid, Scalar::uniform(n)], Width::Pred, lanes)
        };
        assert_eq!(less(256, 256), Some(Scalar::uniform(1)));
        assert_eq!(less(255, 256), None);
        assert_eq!(less(0, 256), None); // lane 0 is equal, the others are greater
        let equal = |b| Linear::Compare(CmpOp::Eq, Type::S32).apply(&[tid, b], Width::Pred, 256);
        assert_eq!(equal(tid), Some(Scalar::uniform(1)));
        assert_eq!(equal(Scalar::uniform(17)), None);
        assert_eq!(equal(Scalar::uniform(u64::from(u32::MAX))), Some(Scalar::uniform(0)));
    }

    #[test]
    fn products_of_two_stepping_values_are_not_linear() {
        let tid = Scalar { base: 0, stride: 1 };
        assert_eq!(Linear::Mul.apply(&[tid, tid], Width::W32, 256), None);
        let four = Scalar::uniform(4);
        let got = Linear::MulWide(Type::U32).apply(&[tid, four], Width::W64, 256).unwrap();
        assert_eq!(got, Scalar { base: 0, stride: 4 });
        // A factor of all ones is -1 when signed.
        let minus = Scalar::uniform(0xffff_ffff);
        let got = Linear::MulWide(Type::S32).apply(&[tid, minus], Width::W64, 256).unwrap();
        assert_eq!(lane(got, 3), -3i64 as u64);
    }
}
