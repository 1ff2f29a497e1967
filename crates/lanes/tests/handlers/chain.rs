//! Chains of `fma` against `sem`, one step after the other.

use super::values::{Random, turns};
use super::{LANES, Register, available_paths};
use isa::Picks;
use lanes::{Factor, Shape, helpers};

/// Bytes of a group.
const GROUP: usize = 64;

/// Shapes of up to `LANES` lanes.
const SHAPES: [Shape; 5] = [
    Shape { groups: 1, rows: 16, blocks: 1 },
    Shape { groups: 2, rows: 7, blocks: 1 },
    Shape { groups: 1, rows: 1, blocks: 5 },
    Shape { groups: 3, rows: 2, blocks: 2 },
    Shape { groups: 2, rows: 4, blocks: 2 },
];

/// Numbers of all kinds, many of them of about the same size.
fn number(random: &mut Random) -> u32 {
    const SPECIAL: [u32; 8] =
        [0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc1_2345, 0x7f81_0000, 1, 0x7f7f_ffff];
    match random.below(12) {
        0 => SPECIAL[random.below(8)],
        1 => random.next() as u32,
        _ => (0x3f80_0000 + (random.next() as u32 & 0x03ff_ffff)) ^ (random.next() as u32 & 0x8000_0000),
    }
}

/// A factor with random distances that lies in a memory of numbers.
fn factor(random: &mut Random, memory: &[u32]) -> Factor {
    let spread = |random: &mut Random, most| 4 * random.below(most);
    let (step, pitch, block_stride) = (spread(random, 20), spread(random, 20), spread(random, 20));
    let array = memory[random.below(40)..].as_ptr().cast();
    Factor { array, step, pitch, block_stride, splat: random.below(2) == 0 }
}

/// The value that a factor has in a lane.
fn value(factor: &Factor, shape: Shape, lane: usize) -> u32 {
    let (group, in_group) = (lane / 16, lane % 16);
    let (row, column) = (group / shape.groups, group % shape.groups);
    let (block, row) = (row / shape.rows, row % shape.rows);
    let offset = block * factor.block_stride + row * factor.pitch + column * factor.step;
    let at = factor.array.wrapping_add(offset + if factor.splat { 0 } else { 4 * in_group });
    // SAFETY: the memory is larger than all distances together.
    unsafe { at.cast::<u32>().read_unaligned() }
}

#[test]
fn every_step_of_a_chain_is_an_fma() {
    let fma = isa::select("fma", &["rn", "f32"], 4).expect("a form");
    let isa::Action::Pure(name) = fma.form().action else { panic!("not pure") };
    let step = |picks: &Picks, a: u32, b: u32, c: u32| {
        sem::lookup(name).expect("a function")(picks, &[a.into(), b.into(), c.into()])[0] as u32
    };
    for path in available_paths() {
        let mut random = Random::new(11);
        for _ in 0..turns(200) {
            let memory: Vec<u32> = (0..1000).map(|_| number(&mut random)).collect();
            let shape = SHAPES[random.below(5)];
            let lanes = 16 * shape.groups * shape.rows * shape.blocks;
            assert!(lanes <= LANES);
            let first = factor(&mut random, &memory);
            let products: Vec<[Factor; 2]> = (0..random.below(6))
                .map(|_| [factor(&mut random, &memory), factor(&mut random, &memory)])
                .collect();
            let mut want: Vec<u32> = (0..lanes).map(|lane| value(&first, shape, lane)).collect();
            for (lane, sum) in want.iter_mut().enumerate() {
                for [a, b] in &products {
                    *sum = step(&fma.picks, value(a, shape, lane), value(b, shape, lane), *sum);
                }
                if f32::from_bits(*sum).is_nan() {
                    *sum = 0x7fff_ffff;
                }
            }
            let mut dst = Register::new();
            // SAFETY: the machine has the path, the factors lie within the memory, and the register has the lanes.
            unsafe { (helpers(path).fma_chain)(dst.0.as_mut_ptr(), first, &products, shape) }
            let got = |lane: usize| u32::from_le_bytes(std::array::from_fn(|i| dst.0[4 * lane + i]));
            assert!((0..lanes).all(|lane| got(lane) == want[lane]), "{path:?} {shape:?}");
            assert!(dst.0[4 * lanes..].iter().all(|&byte| byte == 0xa5));
        }
    }
}

#[test]
fn a_factor_may_be_the_result() {
    for path in available_paths() {
        let mut random = Random::new(13);
        for shape in SHAPES {
            let mut dst = Register::new();
            dst.0.chunks_exact_mut(4).for_each(|b| b.copy_from_slice(&number(&mut random).to_le_bytes()));
            let copy = dst.clone();
            let in_place = |array| Factor {
                array,
                step: GROUP,
                pitch: GROUP * shape.groups,
                block_stride: GROUP * shape.groups * shape.rows,
                splat: false,
            };
            // One pointer for both: what is read is written through it.
            let to = dst.0.as_mut_ptr();
            let (own, other) = (in_place(to.cast_const()), in_place(copy.0.as_ptr()));
            let mut want = Register::new();
            // SAFETY: the machine has the path, and all registers have the lanes.
            unsafe {
                (helpers(path).fma_chain)(want.0.as_mut_ptr(), other, &[[other, other]; 3], shape);
                (helpers(path).fma_chain)(to, own, &[[own, own]; 3], shape);
            }
            let bytes = 4 * 16 * shape.groups * shape.rows * shape.blocks;
            assert!(dst.0[..bytes] == want.0[..bytes], "{path:?} {shape:?}");
        }
    }
}
