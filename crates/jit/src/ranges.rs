//! Which numbers a value can be: what is enough to know where an access goes whose addresses do not step evenly, such as that of a
//! counter among 256 by a byte.

use std::collections::BTreeMap;

use ir::{Slot, Width};

use crate::operation::{Access, Bits, Operation, Within};

/// Greater numbers are not followed.
const MOST: i64 = 1 << 31;

/// A value is that of `base`, or 0, plus one of these numbers. Sums wrap around at the width of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub base: Option<Slot>,
    pub low: i64,
    pub high: i64,
    /// A power of two of which all numbers are multiples.
    pub factor: i64,
}

/// The ranges of slots at a place.
#[derive(Default)]
pub(crate) struct Ranges(BTreeMap<Slot, Range>);

/// What is known of a function's slots.
pub(crate) trait Slots {
    fn literal(&self, slot: Slot) -> Option<u64>;
    fn width(&self, slot: Slot) -> Width;
    /// The slot that has this value before the code runs, if it is the same in all lanes.
    fn known(&self, slot: Slot) -> Option<Slot>;
}

impl Range {
    /// Of a number of so many bits, extended by its sign or by zeros.
    fn of_bits(bits: u32, signed: bool) -> Option<Range> {
        let (low, high) = match signed {
            true => (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
            false => (0, 1i64.checked_shl(bits)?.checked_sub(1)?),
        };
        Range::new(None, low, high, 1)
    }

    fn new(base: Option<Slot>, low: i64, high: i64, factor: i64) -> Option<Range> {
        (low >= -MOST && high <= MOST).then_some(Range { base, low, high, factor: factor.clamp(1, MOST) })
    }

    fn of_literal(value: i64) -> Option<Range> {
        let factor = if value == 0 { MOST } else { 1i64 << value.trailing_zeros().min(31) };
        Range::new(None, value, value, factor)
    }

    /// The numbers are the values, read as numbers without a sign.
    fn is_exact(&self, width: Width) -> bool {
        self.base.is_none() && self.low >= 0 && (width == Width::W64 || self.high < 1 << width.bits())
    }

    fn plus(self, other: Range) -> Option<Range> {
        let base = match (self.base, other.base) {
            (base, None) | (None, base) => base,
            _ => return None,
        };
        Range::new(base, self.low + other.low, self.high + other.high, self.factor.min(other.factor))
    }

    fn negated(self) -> Option<Range> {
        self.base.is_none().then(|| Range { low: -self.high, high: -self.low, ..self })
    }

    fn times(self, other: Range) -> Option<Range> {
        if self.base.or(other.base).is_some() {
            return None;
        }
        let ends =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let (low, high) =
            ends.iter().fold((i64::MAX, i64::MIN), |(low, high), &end| (low.min(end), high.max(end)));
        Range::new(None, low, high, self.factor.saturating_mul(other.factor))
    }

    /// A value of one range or of the other.
    fn or(self, other: Range) -> Option<Range> {
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        (self.base == other.base).then(|| Range::new(self.base, low, high, self.factor.min(other.factor)))?
    }
}

impl Ranges {
    /// The bounds of an access's addresses, if they are known and aligned.
    pub fn of_access(&self, access: &Access) -> Option<Within> {
        let &Range { base, low, high, factor } = self.0.get(&access.base)?;
        let bytes = i64::from(access.bytes * access.count);
        (factor % bytes == 0).then_some(Within { base: base?, low, high })
    }

    /// Goes on behind an operation with these results.
    pub fn define(&mut self, slots: &[Slot], range: Option<Range>) {
        for &slot in slots {
            self.forget(slot);
            if let Some(range) = range.filter(|range| range.base != Some(slot)) {
                self.0.insert(slot, range);
            }
        }
    }

    /// The slot has another value.
    pub fn forget(&mut self, slot: Slot) {
        self.0.retain(|of, range| *of != slot && range.base != Some(slot));
    }

    fn of(&self, slot: Slot, slots: &impl Slots) -> Option<Range> {
        if let Some(value) = slots.literal(slot) {
            let shift = 64 - slots.width(slot).bits();
            return Range::of_literal((value << shift) as i64 >> shift);
        }
        let known = |base| Range { base: Some(base), low: 0, high: 0, factor: MOST };
        self.0.get(&slot).copied().or_else(|| slots.known(slot).map(known))
    }

    /// What the results of an operation can be.
    pub fn result(&self, operation: &Operation, slots: &impl Slots) -> Option<Range> {
        let of = |slot: Slot| self.of(slot, slots);
        let exact = |slot: Slot| of(slot).filter(|range| range.is_exact(slots.width(slot)));
        match *operation {
            Operation::Load { ref access, signed, .. } if access.bytes < 4 => {
                Range::of_bits(8 * access.bytes, signed)
            }
            Operation::Offset { src, addend, .. } => of(src)?.plus(Range::of_literal(addend)?),
            Operation::Widen { signed: false, src, .. } => exact(src),
            Operation::Widen { signed: true, src, .. } => {
                of(src).filter(|range| range.base.is_none() && range.high < MOST)
            }
            Operation::Narrow { src, .. } => of(src).filter(|range| range.base.is_none()),
            Operation::Resize { bits, signed, src, .. } => {
                let all = Range::of_bits(bits, signed)?;
                let fits = |range: &Range| range.low >= all.low && range.high <= all.high;
                exact(src).filter(fits).or(Some(all))
            }
            Operation::MulWide { signed, src: [a, b], addend, .. } => {
                let factor = |slot| match signed {
                    true => of(slot).filter(|range| range.base.is_none() && range.high < MOST),
                    false => exact(slot),
                };
                let product = factor(a)?.times(factor(b)?)?;
                addend.map_or(Some(product), |addend| product.plus(of(addend)?))
            }
            Operation::Select { src: [a, b], .. } => of(a)?.or(of(b)?),
            Operation::Bits { op, dst, src: [a, b, c], .. } => {
                // What is shorter than the result is extended by zeros.
                let width = slots.width(dst);
                let of = |slot: Slot| if slots.width(slot) == width { of(slot) } else { exact(slot) };
                let distance = || slots.literal(b).filter(|&distance| distance < width.bits().into());
                match op {
                    Bits::Copy => of(a),
                    Bits::Add => of(a)?.plus(of(b)?),
                    Bits::Sub => of(a)?.plus(of(b)?.negated()?),
                    Bits::Mul => of(a)?.times(of(b)?),
                    Bits::Mad => of(a)?.times(of(b)?)?.plus(of(c)?),
                    Bits::Shl => of(a)?.times(Range::of_literal(1i64.checked_shl(distance()? as u32)?)?),
                    Bits::ShrUnsigned => {
                        let all = Range::of_bits(width.bits() - distance()? as u32, false);
                        let shifted = |range: Range| {
                            Range::new(None, range.low >> distance()?, range.high >> distance()?, 1)
                        };
                        exact(a).and_then(shifted).or(all)
                    }
                    Bits::And => {
                        let (a, b) = (exact(a), exact(b));
                        let least = a.into_iter().chain(b).min_by_key(|range| range.high)?;
                        let factor = a.into_iter().chain(b).map(|range| range.factor).max()?;
                        Range::new(None, 0, least.high, factor)
                    }
                    Bits::MinUnsigned => {
                        let least = exact(a).into_iter().chain(exact(b)).map(|range| range.high).min()?;
                        Range::new(None, 0, least, 1)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots 0 to 9 are bytes that were loaded, those from 100 on literals, and 50 and 51 known numbers.
    struct Few;

    impl Slots for Few {
        fn literal(&self, slot: Slot) -> Option<u64> {
            (slot.0 >= 100).then(|| u64::from(slot.0 - 100))
        }
        fn width(&self, slot: Slot) -> Width {
            if matches!(slot.0, 51 | 52) { Width::W64 } else { Width::W32 }
        }
        fn known(&self, slot: Slot) -> Option<Slot> {
            matches!(slot.0, 50 | 51).then_some(slot)
        }
    }

    fn bits(op: Bits, dst: u32, src: [u32; 2]) -> Operation {
        Operation::Bits { op, wide: false, dst: Slot(dst), src: [Slot(src[0]), Slot(src[1]), Slot(src[1])] }
    }

    fn after(operations: &[Operation]) -> Ranges {
        let mut ranges = Ranges::default();
        let load =
            Operation::Load { access: access(99, 1), signed: false, dst: vec![Some(Slot(0))], guard: None };
        for operation in [load].iter().chain(operations) {
            let range = ranges.result(operation, &Few);
            ranges.define(&operation.defs(), range);
        }
        ranges
    }

    fn access(base: u32, bytes: u32) -> Access {
        Access {
            index: 0,
            base: Slot(base),
            offset: 0,
            bytes,
            count: 1,
            align: bytes,
            within: None,
            checked: false,
        }
    }

    fn within(base: u32, low: i64, high: i64) -> Option<Within> {
        Some(Within { base: Slot(base), low, high })
    }

    #[test]
    fn a_counter_by_a_byte() {
        let ranges = after(&[bits(Bits::Shl, 20, [0, 102]), bits(Bits::Add, 21, [50, 20])]);
        assert_eq!(ranges.of_access(&access(21, 4)), within(50, 0, 1020));
        assert_eq!(ranges.of_access(&access(21, 8)), None, "multiples of 4 only");
        assert_eq!(ranges.of_access(&access(20, 4)), None, "it has no base");
    }

    #[test]
    fn what_is_redefined_is_forgotten() {
        let mut ranges = after(&[bits(Bits::Shl, 20, [0, 102]), bits(Bits::Add, 21, [50, 20])]);
        ranges.forget(Slot(50));
        assert_eq!(ranges.of_access(&access(21, 4)), None);
        let ranges = after(&[bits(Bits::Add, 50, [50, 0])]);
        assert_eq!(ranges.of_access(&access(50, 1)), None, "the base is another number now");
        let ranges = after(&[bits(Bits::Add, 0, [0, 99]), bits(Bits::Add, 21, [50, 0])]);
        assert_eq!(ranges.of_access(&access(21, 1)), None, "nothing is known of slot 99");
    }

    #[test]
    fn numbers_that_wrap_around_are_not_taken_for_small_ones() {
        // Where the byte is 0, `(byte - 1) >> 8` has 24 bits, and `(byte - 1) & 7` is 7.
        let less = bits(Bits::Sub, 20, [0, 101]);
        let ranges =
            after(&[less.clone(), bits(Bits::ShrUnsigned, 21, [20, 108]), bits(Bits::Add, 22, [50, 21])]);
        assert_eq!(ranges.of_access(&access(22, 1)), within(50, 0, 0xff_ffff));
        let ranges = after(&[less.clone(), bits(Bits::And, 21, [20, 107]), bits(Bits::Add, 22, [50, 21])]);
        assert_eq!(ranges.of_access(&access(22, 1)), within(50, 0, 7));
        let ranges = after(&[less.clone(), bits(Bits::Add, 22, [50, 20])]);
        assert_eq!(ranges.of_access(&access(22, 1)), within(50, -1, 254));
        let widen = Operation::Widen { signed: false, dst: Slot(52), src: Slot(20) };
        assert_eq!(after(&[less, widen]).of(Slot(52), &Few), None);
    }

    #[test]
    fn products_selections_and_bits() {
        let ranges = after(&[
            bits(Bits::Mul, 20, [0, 112]),
            bits(Bits::And, 21, [20, 360]),
            bits(Bits::MinUnsigned, 22, [99, 116]),
            Operation::Select { wide: false, dst: Slot(23), src: [Slot(20), Slot(22)], pred: Slot(98) },
        ]);
        let of = |slot| ranges.of(Slot(slot), &Few).map(|range| (range.low, range.high, range.factor));
        assert_eq!(of(20), Some((0, 255 * 12, 4)));
        assert_eq!(of(21), Some((0, 260, 4)));
        assert_eq!(of(22), Some((0, 16, 1)));
        assert_eq!(of(23), Some((0, 255 * 12, 1)));
    }
}
