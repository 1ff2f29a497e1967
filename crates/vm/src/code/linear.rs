//! Affine forms: how pure instructions map them.

use ir::Width;
use isa::{CmpOp, Form, Mod, Opcode, Picks, Type};

use crate::affine::{Affine, LaneRows, MOST_LANES};

/// The range of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    bits: u32,
    signed: bool,
}

impl From<Type> for Range {
    fn from(ty: Type) -> Range {
        Range { bits: ty.bits(), signed: ty.is_signed() }
    }
}

/// The rule by which an instruction maps affine sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linear {
    /// No rule. The result is uniform if all sources are, and otherwise unknown.
    No,
    Add,
    Sub,
    /// `mul.lo` with one uniform factor.
    Mul,
    /// `mad.lo` with one uniform factor.
    Mad,
    /// The sources are first extended from this range.
    MulWide(Range),
    MadWide(Range),
    /// `shl` by a uniform amount below the width.
    Shl,
    /// `shr` by a uniform amount, if the bits that are shifted out never carry.
    Shr(Range),
    /// `and` with a mask whose set bits follow each other.
    And(Range),
    /// `or` and `xor` of values that have no set bit in common in any lane: the sum.
    Or(Range),
    /// `setp` of integers of this range. Uniform if the comparison has the same result in all lanes.
    Compare(CmpOp, Range),
    /// Conversion between integer types without saturation. The range is that of the narrower type, for a result that is extended.
    Convert(Range),
}

impl Linear {
    /// The rule for an instruction.
    pub fn of(form: &Form, picks: &Picks) -> Linear {
        let ty = picks.ty(0);
        let integer = !ty.is_float() && ty.lanes() == 1 && ty != Type::Pred;
        if !integer || form.carry.reads || form.carry.writes || picks.has(Mod::Sat) {
            return Linear::No;
        }
        match form.opcode {
            Opcode::Add => Linear::Add,
            Opcode::Sub => Linear::Sub,
            Opcode::Mul if picks.has(Mod::Wide) => Linear::MulWide(ty.into()),
            Opcode::Mad if picks.has(Mod::Wide) => Linear::MadWide(ty.into()),
            Opcode::Mul if picks.has(Mod::Lo) => Linear::Mul,
            Opcode::Mad if picks.has(Mod::Lo) => Linear::Mad,
            Opcode::Shl => Linear::Shl,
            Opcode::Shr => Linear::Shr(ty.into()),
            Opcode::And => Linear::And(Range { bits: ty.bits(), signed: false }),
            Opcode::Or | Opcode::Xor => Linear::Or(Range { bits: ty.bits(), signed: false }),
            Opcode::Setp if picks.bool_op().is_none() => match picks.cmp() {
                Some(op) => Linear::Compare(op, ty.into()),
                None => Linear::No,
            },
            Opcode::Cvt if picks.types().len() == 2 && !picks.ty(1).is_float() => {
                // A result that is wider than its source is extended according to the source's type.
                let (to, from) = (ty, picks.ty(1));
                Linear::Convert(if from.bits() <= to.bits() { from } else { to }.into())
            }
            _ => Linear::No,
        }
    }

    /// The rule for the low `bits` bits of a value, extended or cut off to the width of the result.
    pub fn of_resize(bits: u32, signed: bool) -> Linear {
        Linear::Convert(Range { bits, signed })
    }

    /// The result for these sources, if it is affine as well. An instruction reads only as many of them as it has.
    /// `width` is the width of the result.
    #[inline]
    pub fn apply(self, [&a, &b, &c]: [&Affine; 3], width: Width, rows: LaneRows) -> Option<Affine> {
        Some(match self {
            Linear::Add => a.plus(&b),
            Linear::Sub => a.plus(&scaled(b, u64::MAX)),
            Linear::Mul => product(a, b)?,
            Linear::Mad => product(a, b)?.plus(&c),
            Linear::MulWide(range) => product(extend(a, range, rows)?, extend(b, range, rows)?)?,
            Linear::MadWide(range) => product(extend(a, range, rows)?, extend(b, range, rows)?)?.plus(&c),
            Linear::Shl if b.is_uniform() && b.base < u64::from(width.bits()) => scaled(a, 1 << b.base),
            Linear::Shr(range) if b.is_uniform() && b.base < u64::from(range.bits) => {
                let a = extend(a, range, rows)?;
                let (_, high) = split(a, b.base as u32, rows)?;
                let shift = |v: u64| (v as i64 >> b.base) as u64;
                let base = if range.signed { shift(high.base) } else { high.base >> b.base };
                Affine { base, ..high.map(shift) }
            }
            Linear::And(range) => {
                let (value, mask) = if b.is_uniform() { (a, b.base) } else { (b, a.base) };
                if !(a.is_uniform() || b.is_uniform()) {
                    return None;
                }
                let value = extend(value, range, rows)?;
                let mask = if range.bits == 64 { mask } else { mask & ((1 << range.bits) - 1) };
                let first = mask.trailing_zeros();
                let end = first + (mask.checked_shr(first).unwrap_or(0)).trailing_ones();
                if mask.checked_shr(end).unwrap_or(0) != 0 {
                    return None;
                }
                let below = if end < range.bits { split(value, end, rows)?.0 } else { value };
                split(below, first, rows)?.1
            }
            Linear::Or(range) => {
                let (a, b) = (extend(a, range, rows)?, extend(b, range, rows)?);
                let ((a_low, a_high), (b_low, b_high)) = (bits_in_use(a, rows)?, bits_in_use(b, rows)?);
                if a_high > b_low && b_high > a_low {
                    return None;
                }
                a.plus(&b)
            }
            Linear::Compare(op, range) => compare(op, range, a, b, rows)?,
            Linear::Convert(range) if range.bits < width.bits() => extend(a, range, rows)?,
            Linear::Convert(_) => a,
            _ => return None,
        })
    }
}

fn scaled(a: Affine, factor: u64) -> Affine {
    a.map(|part| part.wrapping_mul(factor))
}

fn product(a: Affine, b: Affine) -> Option<Affine> {
    if b.is_uniform() { Some(scaled(a, b.base)) } else { a.is_uniform().then(|| scaled(b, a.base)) }
}

/// The lowest bit that some lane may have set, and one past the highest. The value has been extended to 64 bits.
fn bits_in_use(value: Affine, rows: LaneRows) -> Option<(u32, u32)> {
    let (_, greatest) = value.span(rows)?;
    let most = value.base.checked_add_signed(greatest)?;
    let Affine { base, step, pitch, block_stride } = value;
    Some(((base | step | pitch | block_stride).trailing_zeros(), u64::BITS - most.leading_zeros()))
}

/// Splits a value into its low `bits` bits and the rest, if both are affine: each of the three steps belongs to one of
/// them, and the low part never carries. The value has been extended to 64 bits.
fn split(value: Affine, bits: u32, rows: LaneRows) -> Option<(Affine, Affine)> {
    let mask = if bits >= 64 { !0 } else { (1u64 << bits) - 1 };
    if value.is_uniform() {
        return Some((Affine::uniform(value.base & mask), Affine::uniform(value.base & !mask)));
    }
    let base = value.base & mask;
    let low = Affine { base, ..value.map(|step| if step & mask == 0 { 0 } else { step }) };
    let high =
        Affine { base: value.base & !mask, ..value.map(|step| if step & mask == 0 { step } else { 0 }) };
    let (least, greatest) = low.span(rows)?;
    let inside = |end: i64| base.checked_add_signed(end).is_some_and(|v| v <= mask);
    (inside(least) && inside(greatest)).then_some((low, high))
}

#[inline(always)]
fn compare(op: CmpOp, range: Range, a: Affine, b: Affine, rows: LaneRows) -> Option<Affine> {
    let (a, b) = (extend(a, range, rows)?, extend(b, range, rows)?);
    // The difference is affine, too, so its minimum and maximum are at corners. Compute their signs.
    let (least, greatest) = if range.bits <= 32 {
        // These values are far from the limits of 64 bits.
        let difference = |a: u64, b: u64| a.wrapping_sub(b) as i64;
        let (step, pitch) = (difference(a.step, b.step), difference(a.pitch, b.pitch));
        let (least, greatest) = rows.ends(step, pitch, difference(a.block_stride, b.block_stride));
        let first = difference(a.base, b.base);
        ((first + least).signum(), (first + greatest).signum())
    } else {
        let difference = |a: u64, b: u64| Some((a as i64).checked_sub(b as i64)? as u64);
        let (step, pitch) = (difference(a.step, b.step)?, difference(a.pitch, b.pitch)?);
        let (least, greatest) =
            Affine { base: 0, step, pitch, block_stride: difference(a.block_stride, b.block_stride)? }
                .span(rows)?;
        let wide = |v: u64| if range.signed { i128::from(v as i64) } else { i128::from(v) };
        let first = wide(a.base) - wide(b.base);
        let sign = |end: i64| (first + i128::from(end)).signum() as i64;
        (sign(least), sign(greatest))
    };
    // A comparison with the same result at the minimum and the maximum has that result in between.
    let holds = |for_least: bool, for_greatest: bool| (for_least == for_greatest).then_some(for_least);
    let equal = match (least, greatest) {
        (0, 0) => Some(true),
        (1, _) | (_, -1) => Some(false),
        _ => None,
    };
    let result = match op {
        CmpOp::Eq => equal?,
        CmpOp::Ne => !equal?,
        CmpOp::Lt | CmpOp::Lo => holds(least < 0, greatest < 0)?,
        CmpOp::Le | CmpOp::Ls => holds(least <= 0, greatest <= 0)?,
        CmpOp::Gt | CmpOp::Hi => holds(least > 0, greatest > 0)?,
        CmpOp::Ge | CmpOp::Hs => holds(least >= 0, greatest >= 0)?,
        _ => return None,
    };
    Some(Affine::uniform(u64::from(result)))
}

/// With a base and steps below this, no lane of [`MOST_LANES`] leaves a range of 31 bits: rows have 16 lanes or more, or there are
/// at most as many lanes as a gang has.
const SMALL: u64 = 1 << 18;
const _: () = assert!(SMALL * (MOST_LANES as u64 / 16 + 256) <= 1 << 31);

/// Extends a value of this range to 64 bits. `None` if some lane would wrap around in the range.
#[inline]
fn extend(value: Affine, range: Range, rows: LaneRows) -> Option<Affine> {
    let shift = 64 - range.bits.min(64);
    let signed = |v: u64| ((v << shift) as i64 >> shift) as u64;
    let base = if range.signed { signed(value.base) } else { value.base << shift >> shift };
    if value.is_uniform() {
        return Some(Affine::uniform(base));
    }
    let extended = Affine { base, ..value.map(signed) };
    // Fast path: most values are small and step upwards.
    let largest = base.max(extended.step).max(extended.pitch).max(extended.block_stride);
    if largest < SMALL && range.bits >= 32 {
        return Some(extended);
    }
    let (least, greatest) = extended.span(rows)?;
    let inside = match range.signed {
        true => {
            let (low, high) = ((i64::MIN >> shift), (i64::MAX >> shift));
            let within = |end: i64| (base as i64).checked_add(end).is_some_and(|v| (low..=high).contains(&v));
            within(least) && within(greatest)
        }
        false => {
            let within = |end: i64| base.checked_add_signed(end).is_some_and(|v| v <= u64::MAX >> shift);
            within(least) && within(greatest)
        }
    };
    inside.then_some(extended)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gang of one row, for a block of one row.
    fn row(lanes: usize) -> LaneRows {
        LaneRows::of([lanes as u32, 1, 1], lanes, 1)
    }

    const U32: Range = Range { bits: 32, signed: false };
    const S32: Range = Range { bits: 32, signed: true };

    fn lane(s: Affine, i: usize, rows: LaneRows) -> u64 {
        s.at(i, rows)
    }

    #[test]
    fn widening_is_refused_where_a_lane_wraps() {
        let near_top = |rows| Affine::linear(0xffff_fff0, 1, rows);
        assert_eq!(extend(near_top(row(16)), U32, row(16)), Some(near_top(row(16))));
        assert_eq!(extend(near_top(row(48)), U32, row(48)), None);
        // The same bits as small negative numbers may cross zero.
        let got = extend(near_top(row(256)), S32, row(256)).unwrap();
        assert_eq!(lane(got, 16, row(256)), 0);
        assert_eq!(lane(got, 0, row(256)), -16i64 as u64);
        assert_eq!(extend(Affine::linear(0x7fff_fff0, 1, row(48)), S32, row(48)), None);
    }

    #[test]
    fn a_comparison_is_uniform_only_if_no_lane_differs() {
        let less = |n: u64, lanes| {
            let tid = Affine::linear(0, 1, row(lanes));
            Linear::Compare(CmpOp::Lt, U32).apply([&tid, &Affine::uniform(n), &tid], Width::Pred, row(lanes))
        };
        assert_eq!(less(256, 256), Some(Affine::uniform(1)));
        assert_eq!(less(255, 256), None);
        // Lane 0 is equal and the others are greater, so no lane is less.
        assert_eq!(less(0, 256), Some(Affine::uniform(0)));
        let tid = Affine::linear(0, 1, row(256));
        let equal = |b| Linear::Compare(CmpOp::Eq, S32).apply([&tid, &b, &b], Width::Pred, row(256));
        assert_eq!(equal(tid), Some(Affine::uniform(1)));
        assert_eq!(equal(Affine::uniform(17)), None);
        assert_eq!(equal(Affine::uniform(u64::from(u32::MAX))), Some(Affine::uniform(0)));
    }

    #[test]
    fn products_of_two_stepping_values_are_not_linear() {
        let tid = Affine::linear(0, 1, row(256));
        assert_eq!(Linear::Mul.apply([&tid; 3], Width::W32, row(256)), None);
        let four = Affine::uniform(4);
        let got = Linear::MulWide(U32).apply([&tid, &four, &four], Width::W64, row(256)).unwrap();
        assert_eq!(got, Affine::linear(0, 4, row(256)));
        // A factor of all ones is -1 when signed.
        let minus = Affine::uniform(0xffff_ffff);
        let got = Linear::MulWide(S32).apply([&tid, &minus, &minus], Width::W64, row(256)).unwrap();
        assert_eq!(lane(got, 3, row(256)), -3i64 as u64);
    }

    #[test]
    fn a_mask_of_middle_bits_keeps_them_alone() {
        let rows = row(256);
        // `(4 * %tid.x + 3) & 124`, whose rows are warps.
        let value = Affine { base: 3, ..Affine::linear(0, 4, rows) };
        let and = Linear::And(Range { bits: 32, signed: false });
        let masked = |mask| and.apply([&value, &Affine::uniform(mask), &value], Width::W32, rows);
        let of_lane = Affine { base: 0, step: 4, pitch: 0, block_stride: 0 };
        assert_eq!(masked(124), Some(of_lane));
        assert_eq!(masked(0), Some(Affine::uniform(0)));
        assert_eq!(masked(5), None);
    }

    /// Compares every rule with `sem`, for all kinds of steps, also near the ends of the ranges.
    #[test]
    fn every_rule_agrees_with_every_lane() {
        let spellings = [
            "add.u32",
            "sub.s32",
            "add.u64",
            "sub.u64",
            "mul.lo.u32",
            "mul.lo.s64",
            "mul.wide.u32",
            "mul.wide.s32",
            "mul.wide.u16",
            "shl.b32",
            "shl.b64",
            "shr.u32",
            "shr.s32",
            "shr.u64",
            "shr.s64",
            "and.b32",
            "and.b64",
            "or.b32",
            "or.b64",
            "xor.b32",
            "setp.lt.u32",
            "setp.le.s32",
            "setp.eq.u64",
            "setp.ne.s64",
            "setp.hi.u32",
            "setp.ge.s64",
            "cvt.u64.u32",
            "cvt.s64.s32",
            "cvt.u32.u16",
            "cvt.s32.s16",
            "cvt.u16.u32",
            "cvt.u32.u64",
            "cvt.s64.u32",
            "cvt.u64.s32",
        ];
        let bases = [0, 1, 31, 32, 0x7fff_fff0, 0x8000_0000, 0xffff_ffe0, 0x7fff, u64::MAX - 40, 1 << 63, 77];
        let steps = [0, 1, 4, 32, 64, u64::MAX, u64::from(u32::MAX), 1 << 31, 1 << 40, 1 << 60];
        let shapes = [
            row(256),
            row(48),
            LaneRows::of([16, 16, 1], 256, 1),
            LaneRows::of([64, 4, 1], 256, 1),
            LaneRows::of([96, 1, 1], 288, 3),
            LaneRows::of([16, 8, 1], 1024, 8),
        ];
        let (mut asked, mut answered) = (0, 0);
        let mut random = 1u64;
        let mut pick = |list: &[u64]| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            list[(random >> 33) as usize % list.len()]
        };
        for spelling in spellings {
            let parts: Vec<&str> = spelling.split('.').collect();
            let selected = isa::select(parts[0], &parts[1..], 3 - usize::from(spelling.starts_with("cvt")));
            let selected = selected.expect("a form");
            let (form, picks) = (selected.form(), selected.picks);
            let linear = Linear::of(form, &picks);
            let isa::Action::Pure(name) = form.action else { panic!("{spelling} is not pure") };
            let function = sem::lookup(name).expect("a function");
            let shift = spelling.starts_with("sh");
            let unary = spelling.starts_with("cvt");
            let source = Width::of(*picks.types().last().unwrap());
            let result = match form.opcode {
                Opcode::Setp => Width::Pred,
                Opcode::Mul if picks.has(Mod::Wide) && source == Width::W16 => Width::W32,
                Opcode::Mul if picks.has(Mod::Wide) => Width::W64,
                _ => Width::of(picks.ty(0)),
            };
            for rows in shapes {
                for _ in 0..400 {
                    let cut = |s: Affine| Affine {
                        base: source.truncate(s.base),
                        step: source.truncate(s.step),
                        pitch: if rows.in_block() > 1 { source.truncate(s.pitch) } else { 0 },
                        block_stride: if rows.blocks() > 1 { source.truncate(s.block_stride) } else { 0 },
                    };
                    let any = |pick: &mut dyn FnMut(&[u64]) -> u64| {
                        let [base, step, pitch, block_stride] =
                            [&bases[..], &steps, &steps, &steps].map(pick);
                        cut(Affine { base, step, pitch, block_stride })
                    };
                    let a = any(&mut pick);
                    let b = match shift {
                        true => Affine::uniform(pick(&bases) % 64),
                        false if pick(&[0, 1]) == 0 => cut(Affine::uniform(pick(&bases).wrapping_sub(1))),
                        false => any(&mut pick),
                    };
                    let sources = if unary { &[a][..] } else { &[a, b][..] };
                    asked += 1;
                    let Some(got) = linear.apply([&a, &b, &b], result, rows) else { continue };
                    answered += 1;
                    for i in 0..rows.count() * rows.width() {
                        let values: Vec<u64> =
                            sources.iter().map(|s| source.truncate(s.at(i, rows))).collect();
                        let want = function(&picks, &values)[0];
                        let got = result.truncate(result_at(got, result, i, rows));
                        assert_eq!(got, result.truncate(want), "{spelling} {sources:x?} lane {i}");
                    }
                }
            }
        }
        assert!(answered * 3 > asked, "{answered} of {asked} questions were answered");
    }

    /// As in the register file: every part is truncated to the width.
    fn result_at(s: Affine, width: Width, lane: usize, rows: LaneRows) -> u64 {
        s.map(|part| width.truncate(part)).at(lane, rows)
    }
}
