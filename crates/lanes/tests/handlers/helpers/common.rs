//! What the values of lanes have in common: a step, or being equal.

use super::super::values::Random;
use super::super::{LANES, Register};
use super::{
    COUNTS, WIDTHS, contains, get, low_bytes, on_every_path, random_mask, random_register, untouched,
};
use lanes::{LaneWidth, Spread};

#[test]
fn what_numbers_have_in_common() {
    on_every_path(|helpers, random| {
        for width in [LaneWidth::B4, LaneWidth::B8] {
            let mut register = random_register(random);
            let mut mask = random_mask(random);
            // The last group has a lane, and often not all.
            let first = random.below(15);
            let end = first + 1 + random.below(16 - first);
            mask[(end - 1) / 4] |= 1 << ((end - 1) % 4 * 16 + 12);
            if random.below(2) == 0 {
                mask[(end - 1) / 4] &= !(1 << ((end - 1) % 4 * 16 + 3));
            }
            let bytes = width.bytes(1);
            let limit = low_bytes(!0, bytes);
            // Every other group steps evenly, also down, far, and over the end.
            for group in (0..16).step_by(2) {
                let base = [random.next(), random.below(1 << 20) as u64, limit - 30][random.below(3)];
                let step = [0, 1, 4, (1 << 27) - 1, 1 << 27, u64::MAX][random.below(6)];
                for i in 0..16 {
                    let value = base.wrapping_add(step.wrapping_mul(i)).to_le_bytes();
                    register.0[(16 * group + i as usize) * bytes..][..bytes].copy_from_slice(&value[..bytes]);
                }
            }
            // SAFETY: as above.
            let got = unsafe { (helpers.spread)(register.0.as_ptr(), width, &mask, first..end) };
            let lanes: Vec<usize> = (16 * first..16 * end).filter(|&lane| contains(&mask, lane)).collect();
            let values = || lanes.iter().map(|&lane| get(&register, width, lane));
            assert_eq!(Some(got.least), values().min());
            assert_eq!(Some(got.greatest), values().max());
            assert_eq!(got.differ, values().fold(0, |bits, v| bits | v ^ got.least));
            let mut scattered = 0;
            for group in 0..16 {
                let at = |i: usize| get(&register, width, 16 * group + i);
                let whole = (first..end).contains(&group) && (0..16).all(|i| contains(&mask, 16 * group + i));
                let step = at(1).wrapping_sub(at(0));
                let even = (1..16).all(|i| at(i - 1).checked_add(step) == Some(at(i)) && at(i) <= limit);
                let steps = whole && even && step < 1 << 27 && scattered < Spread::PATIENCE;
                let expected = if steps { step as u32 } else { Spread::NO_STEP };
                assert_eq!(got.steps[group], expected, "{width:?} group {group}");
                scattered += usize::from(whole && !steps);
            }
        }
    });
}

/// A register whose lanes hold one of a few values, which differ in one bit.
fn few_values(random: &mut Random, width: LaneWidth) -> (Register, [u64; 3]) {
    let any = low_bytes(random.next(), width.bytes(1));
    let bit = |n: usize| any ^ 1 << n;
    let values = [any, bit(random.below(8 * width.bytes(1))), bit(8 * width.bytes(1) - 1)];
    let mut register = random_register(random);
    for lane in 0..LANES {
        if random.below(5) > 0 {
            let value = values[random.below(3)].to_le_bytes();
            register.0[lane * width.bytes(1)..][..width.bytes(1)].copy_from_slice(&value[..width.bytes(1)]);
        }
    }
    (register, values)
}

#[test]
fn lanes_that_hold_a_value() {
    on_every_path(|helpers, random| {
        for width in WIDTHS {
            let (src, values) = few_values(random, width);
            for value in values {
                let (before, first) = (random_mask(random), random.below(4));
                let end = (4 * first + 1 + random.below(16)).min(16);
                let mut mask = before;
                // SAFETY: the mask and the register have all groups.
                unsafe { (helpers.lanes_with)(&mut mask, src.0.as_ptr(), width, value, 4 * first..end) }
                for lane in 0..LANES {
                    let want = match lane / 64 {
                        word if word < first || 4 * word >= end => contains(&before, lane),
                        _ => lane / 16 < end && get(&src, width, lane) == value,
                    };
                    assert_eq!(
                        contains(&mask, lane),
                        want,
                        "{width:?} lane {lane}, groups {first} * 4..{end}"
                    );
                }
            }
        }
    });
}

#[test]
fn lanes_of_a_warp_that_hold_the_same() {
    on_every_path(|helpers, random| {
        for (width, lanes) in WIDTHS.into_iter().flat_map(|w| COUNTS.map(|n| (w, n))) {
            let (src, _) = few_values(random, width);
            let members: [u32; LANES / 32] = std::array::from_fn(|_| match random.below(3) {
                0 => !0,
                1 => 1 << random.below(32) | 1 << random.below(32),
                _ => random.next() as u32,
            });
            for all in [false, true] {
                let mut dst = Register::new();
                // SAFETY: the registers have `MANY` elements.
                unsafe {
                    let (dst, src) = (dst.0.as_mut_ptr(), src.0.as_ptr());
                    (helpers.match_warps)(dst, src, width, &members, all, lanes);
                }
                for lane in 0..lanes {
                    let (start, members) = (lane / 32 * 32, members[lane / 32]);
                    // A warp of 16 lanes has members among them only.
                    let members = if lanes - start < 32 { members & 0xffff } else { members };
                    let value = |other: usize| get(&src, width, other);
                    let same = (0..32).filter(|&other| members >> other & 1 != 0);
                    let same = same.filter(|&other| value(start + other) == value(lane));
                    let same = same.fold(0, |bits, other| bits | 1 << other);
                    let want = if all && same != members { 0 } else { same };
                    let got = get(&dst, LaneWidth::B4, lane) as u32;
                    assert_eq!(got, want, "{width:?} lane {lane} of {lanes}, of {members:#x}");
                }
                untouched(&dst, LaneWidth::B4, lanes);
            }
        }
    });
}
