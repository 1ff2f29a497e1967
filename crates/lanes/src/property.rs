//! testp and istypep: tests of the bits of an operand.

use super::drive::{load, store_mask};
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Mod, Opaque, Opcode, Picks, Type};
use sem::format::Format;

/// Whether the tested bits of a number are in one of two open ranges.
struct InRange<const WIDE: bool>;

#[derive(Clone, Copy)]
struct InRangeWith {
    mask: u64,
    ranges: [[u64; 2]; 2],
}

impl<const WIDE: bool> Parametric for InRange<WIDE> {
    type With = InRangeWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &InRangeWith) {
        macro_rules! test {
            ($T:ident, $i:expr, $top_bits:ident) => {{
                let (mask, [[a, b], [c, d]]) =
                    (with.mask as $T, with.ranges.map(|ends| ends.map(|end| end as $T)));
                let numbers: Block<$T> = load(args, 0, $i);
                let mut bits = [0; BLOCK];
                for k in 0..BLOCK {
                    let x = numbers[k] & mask;
                    bits[k] = $T::from((x >= a) & (x < b) | (x >= c) & (x < d)).wrapping_neg();
                }
                path.$top_bits(bits)
            }};
        }
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source has `lanes` elements, the destination is a predicate.
            unsafe {
                let mask = if WIDE { test!(u64, i, top_bits64) } else { test!(u32, i, top_bits32) };
                store_mask(args, 0, i, mask);
            }
        }
    }
}

/// The handler of a form that tests bits.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    const NONE: [u64; 2] = [0, 0];
    let &[property] = picks.mods() else { return None };
    match (opcode, sources) {
        (Opcode::Testp, 1) => {
            let ty = picks.ty(0);
            let f = Format::of(ty)?;
            let (least, infinity, end) = (f.min_normal(), f.infinity(), f.sign());
            let ranges = match property {
                Mod::Finite => [[0, infinity], NONE],
                Mod::Infinite => [[infinity, infinity + 1], NONE],
                Mod::Number => [[0, infinity + 1], NONE],
                Mod::Notanumber => [[infinity + 1, end], NONE],
                // Zeros are normal too.
                Mod::Normal => [[0, 1], [least, infinity]],
                Mod::Subnormal => [[1, least], NONE],
                _ => return None,
            };
            let with = InRangeWith { mask: f.magnitude_mask(), ranges };
            Some(match ty {
                Type::F64 => version_with::<InRange<true>>(path, with),
                _ => version_with::<InRange<false>>(path, with),
            })
        }
        (Opcode::Istypep, 1) => {
            let kind = match property {
                Mod::Texref => Opaque::Texture,
                Mod::Samplerref => Opaque::Sampler,
                Mod::Surfref => Opaque::Surface,
                _ => return None,
            };
            let with = InRangeWith { mask: kind.mark(), ranges: [[1, u64::MAX], NONE] };
            Some(version_with::<InRange<true>>(path, with))
        }
        _ => None,
    }
}
