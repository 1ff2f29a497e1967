//! Reading source operands and applying scalar operations lane by lane.

use isa::Type;

/// A pure function of the table. It maps the picks, and the sources as raw bits in operand order, to the result and
/// its second part: q, the carry out, or 0. Predicates are 0 or 1. Where the form reads CC.CF, the carry is the last
/// source.
pub type PureFn = fn(&isa::Picks, &[u64]) -> [u64; 2];

/// A single result.
pub(crate) const fn one(d: u64) -> [u64; 2] {
    [d, 0]
}

/// The low `width` bits.
pub(crate) const fn low_bits(x: u64, width: u32) -> u64 {
    if width >= 64 { x } else { x & ((1 << width) - 1) }
}

/// Source operands; a missing one reads as 0.
pub(crate) trait Sources {
    /// All bits of a source.
    fn bits(&self, i: usize) -> u64;

    /// A predicate.
    fn bit(&self, i: usize) -> bool {
        self.bits(i) & 1 != 0
    }

    /// One packed element of a source; `lane` 0 is the lowest.
    fn lane(&self, i: usize, lane: u32, width: u32) -> u64 {
        low_bits(self.bits(i) >> (lane * width), width)
    }
}

impl Sources for [u64] {
    fn bits(&self, i: usize) -> u64 {
        self.get(i).copied().unwrap_or(0)
    }
}

/// Applies an operation to each lane of up to four sources of the same type, since a packed form is by definition its
/// scalar form on each element. The operation gets one element of each source.
#[inline]
pub(crate) fn each_lane(ty: Type, s: &[u64], operation: impl Fn(Type, &[u64]) -> u64) -> [u64; 2] {
    let (element, width) = (ty.element(), ty.element().bits());
    let count = s.len().clamp(1, 4);
    let mut d = 0;
    for lane in 0..ty.lanes() {
        let elements = [0, 1, 2, 3].map(|i| s.lane(i, lane, width));
        d |= low_bits(operation(element, &elements[..count]), width) << (lane * width);
    }
    one(d)
}
