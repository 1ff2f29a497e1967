//! The choice of halves against the loop that it stands for.

use super::values::{Random, turns};
use super::{LANES, Register, available_paths};
use lanes::{LaneArgs, select_pair};

fn random_register(random: &mut Random) -> Register {
    let mut register = Register::new();
    register.0.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&random.next().to_le_bytes()));
    register
}

#[test]
fn each_half_of_a_pair_follows_its_predicate() {
    for path in available_paths() {
        let mut random = Random::new(17);
        for turn in 0..turns(40) {
            let sources: [Register; 4] = std::array::from_fn(|_| random_register(&mut random));
            let word = |n: usize, lane: usize| {
                u32::from_le_bytes(std::array::from_fn(|i| sources[n].0[4 * lane + i]))
            };
            let holds = |n: usize, lane: usize| sources[n].0[lane / 8] >> (lane % 8) & 1 != 0;
            // The first source is sometimes one group for all, the result sometimes in the place of the second.
            let (repeated, in_place) = (turn % 3 == 0, turn % 2 == 0);
            let mut dst = if in_place { sources[1].clone() } else { Register::new() };
            let pointer = dst.0.as_mut_ptr();
            let args = LaneArgs {
                dst: [pointer, std::ptr::null_mut()],
                src: std::array::from_fn(|n| match n {
                    4 => std::ptr::null(),
                    1 if in_place => pointer.cast_const(),
                    _ => sources[n].0.as_ptr(),
                }),
                step: [if repeated { 0 } else { 64 }, 64, 2, 2, 0],
                lanes: LANES,
            };
            // SAFETY: the machine has the path, and the registers have the lanes.
            unsafe { select_pair(path).call(&args) }
            for lane in 0..LANES {
                let (a, b) = (word(0, if repeated { lane % 16 } else { lane }), word(1, lane));
                let half = |n: usize, mask: u32| if holds(n, lane) { a & mask } else { b & mask };
                let got = u32::from_le_bytes(std::array::from_fn(|i| dst.0[4 * lane + i]));
                assert_eq!(got, half(2, 0xffff) | half(3, 0xffff_0000), "{path:?} lane {lane}");
            }
        }
    }
}
