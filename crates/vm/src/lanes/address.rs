//! How the addresses of a chunk lie: one address, evenly spaced, or any.

use super::helpers::Width;
use super::mask_ops::group;
use super::path::{BLOCK, Block, Path};
use super::select::Select;

/// The pattern of a chunk's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One address for all lanes.
    Uniform,
    /// Lane i has address base + i * stride (wrapping), for the base of lane 0, active or not.
    Linear {
        /// The address of lane 0.
        base: u64,
        /// The distance from one lane to the next, not 0.
        stride: i64,
    },
    /// Neither.
    Other,
}

/// How the addresses of some lanes lie. Without any lane: uniform, from `u64::MAX` to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressShape {
    /// The pattern.
    pub shape: Shape,
    /// The lowest address of an active lane.
    pub min: u64,
    /// The highest address of an active lane.
    pub max: u64,
}

/// An address as it lies in a register.
trait Address: Select {
    const ZERO: Self;
    const MAX: Self;
    fn to_u64(self) -> u64;
    fn from_u64(x: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn differs(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
}

macro_rules! address {
    ($($T:ident)*) => {
        $(impl Address for $T {
            const ZERO: $T = 0;
            const MAX: $T = $T::MAX;
            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn from_u64(x: u64) -> $T {
                x as $T
            }
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn differs(self, other: $T) -> $T {
                self ^ other
            }
            #[inline(always)]
            fn or(self, other: $T) -> $T {
                self | other
            }
            #[inline(always)]
            fn least(self, other: $T) -> $T {
                self.min(other)
            }
            #[inline(always)]
            fn greatest(self, other: $T) -> $T {
                self.max(other)
            }
        })*
    };
}
address!(u32 u64);

/// See [`Helpers`](super::Helpers).
#[inline(always)]
pub(super) unsafe fn shape<P: Path>(addresses: *const u8, width: Width, mask: &[u64; 4]) -> AddressShape {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            Width::B4 => shape_of::<P, u32>(addresses.cast(), mask),
            _ => shape_of::<P, u64>(addresses.cast(), mask),
        }
    }
}

/// The lowest lane of a mask and the next one; the highest.
#[inline(always)]
fn corners(mask: &[u64; 4]) -> Option<(usize, usize, usize)> {
    let mut rest = *mask;
    let lowest = |rest: &mut [u64; 4]| {
        let word = rest.iter().position(|&word| word != 0)?;
        let bit = rest[word].trailing_zeros() as usize;
        rest[word] &= rest[word] - 1;
        Some(word * 64 + bit)
    };
    let first = lowest(&mut rest)?;
    let second = lowest(&mut rest).unwrap_or(first);
    let word = mask.iter().rposition(|&word| word != 0)?;
    Some((first, second, word * 64 + 63 - mask[word].leading_zeros() as usize))
}

/// # Safety
/// The groups that have lanes in the mask must be valid.
#[inline(always)]
unsafe fn shape_of<P: Path, A: Address>(addresses: *const A, mask: &[u64; 4]) -> AddressShape {
    let Some((first, second, last)) = corners(mask) else {
        return AddressShape { shape: Shape::Uniform, min: u64::MAX, max: 0 };
    };
    // SAFETY: these lanes are in the mask.
    let at = |lane: usize| unsafe { addresses.add(lane).read().to_u64() };
    let (lowest, next, highest) = (at(first), at(second), at(last));
    if first == last {
        return AddressShape { shape: Shape::Uniform, min: lowest, max: lowest };
    }
    let groups = first / BLOCK..last / BLOCK + 1;
    let gap = (second - first) as i64;
    let distance = next.wrapping_sub(lowest) as i64;
    // The pattern that the first two lanes suggest, held against all of them.
    let suggested = (distance % gap == 0).then(|| distance / gap);
    if let Some(stride) = suggested {
        let base = lowest.wrapping_sub((stride as u64).wrapping_mul(first as u64));
        // SAFETY: the caller's promise.
        let fits = unsafe { is_linear::<P, A>(addresses, mask, groups.clone(), base, stride as u64) };
        // Its ends are the lowest and the highest unless it wraps around.
        let span = i128::from(stride) * (last - first) as i128;
        if fits && i128::from(lowest) + span == i128::from(highest) {
            let shape = if stride == 0 { Shape::Uniform } else { Shape::Linear { base, stride } };
            return AddressShape { shape, min: lowest.min(highest), max: lowest.max(highest) };
        }
    }
    // SAFETY: the caller's promise.
    let (min, max) = unsafe { range::<P, A>(addresses, mask, groups) };
    AddressShape { shape: Shape::Other, min, max }
}

/// Whether every lane of the mask has address base + lane * stride.
///
/// # Safety
/// The groups must be valid.
#[inline(always)]
unsafe fn is_linear<P: Path, A: Address>(
    addresses: *const A,
    mask: &[u64; 4],
    groups: std::ops::Range<usize>,
    base: u64,
    stride: u64,
) -> bool {
    let mut expected = [A::ZERO; BLOCK];
    for (i, expected) in expected.iter_mut().enumerate() {
        let lane = (groups.start * BLOCK + i) as u64;
        *expected = A::from_u64(base.wrapping_add(stride.wrapping_mul(lane)));
    }
    let step = A::from_u64(stride.wrapping_mul(BLOCK as u64));
    for i in groups {
        let bits = group(mask, i);
        if bits != 0 {
            // SAFETY: the caller's promise; `P` by contract.
            unsafe {
                let block = addresses.cast::<Block<A>>().add(i).read();
                let block = if bits == !0 { block } else { A::select::<P>(bits, block, expected) };
                let mut difference = A::ZERO;
                for k in 0..BLOCK {
                    difference = difference.or(block[k].differs(expected[k]));
                }
                if difference.to_u64() != 0 {
                    return false;
                }
            }
        }
        for expected in &mut expected {
            *expected = expected.add(step);
        }
    }
    true
}

/// The lowest and the highest address of the mask's lanes.
///
/// # Safety
/// The groups must be valid.
#[inline(always)]
unsafe fn range<P: Path, A: Address>(
    addresses: *const A,
    mask: &[u64; 4],
    groups: std::ops::Range<usize>,
) -> (u64, u64) {
    let (mut min, mut max) = ([A::MAX; BLOCK], [A::ZERO; BLOCK]);
    for i in groups {
        let bits = group(mask, i);
        if bits == 0 {
            continue;
        }
        // SAFETY: the caller's promise; `P` by contract.
        unsafe {
            let block = addresses.cast::<Block<A>>().add(i).read();
            let (low, high) = match bits {
                0xffff => (block, block),
                _ => (A::select::<P>(bits, block, min), A::select::<P>(bits, block, max)),
            };
            for k in 0..BLOCK {
                min[k] = min[k].least(low[k]);
                max[k] = max[k].greatest(high[k]);
            }
        }
    }
    let min = min.iter().fold(A::MAX, |a, &b| a.least(b));
    (min.to_u64(), max.iter().fold(A::ZERO, |a, &b| a.greatest(b)).to_u64())
}
