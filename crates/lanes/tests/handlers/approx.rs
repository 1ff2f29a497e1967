//! The approximate functions of binary32 on operands that are hard for them, against `sem`.

use super::{all_spellings, expected};
use isa::{Opcode, Type};
use lanes::{Handler, LaneWidth, Operand, available_paths};

/// As many operands as a call has lanes.
const LANES: usize = 16;

/// Operands whose values lie next to the middle between two numbers of binary32, by 2^-53 to 2^-47 of the value, so that one
/// computed in binary64 may lie on the other side: some of those of least distance among all there are. The last
/// two angles of the sine are the greatest below 2^-126 turns.
const HARD: [(Opcode, [u32; LANES]); 5] = [
    (
        Opcode::Sin,
        [
            0x3ec718b0, 0x3dbb7e7c, 0x3d9de4d1, 0x3e9bf8fe, 0x3d84e1d2, 0x3ef39c97, 0x3dbbf53b, 0x3e968d0e,
            0x3f82d9c0, 0x40853e5e, 0x40a8596c, 0x40e9c64c, 0x3fb4d6ce, 0xbf838693, 0x01c90fdb, 0x81c90fdb,
        ],
    ),
    (
        Opcode::Cos,
        [
            0x3f9749b0, 0x3ffad608, 0x3fbd57f4, 0x3fafc67b, 0x3e8c97bd, 0x3dc171a8, 0x3d9c43b7, 0x3df97009,
            0x3df9700a, 0x40b78255, 0x40da9d63, 0x40c2429a, 0x40ebf3bd, 0x418662e2, 0x419f84dd, 0xc1a734e8,
        ],
    ),
    (
        Opcode::Lg2,
        [
            0x3ea07ab9, 0x40207ab9, 0x002452a4, 0x0048a548, 0x00914a90, 0x01114a90, 0x02114a90, 0x04114a90,
            0x08114a90, 0x01914a90, 0x02914a90, 0x03114a90, 0x05114a90, 0x06114a90, 0x09914a90, 0x0a114a90,
        ],
    ),
    (
        Opcode::Ex2,
        [
            0x3b429d37, 0xb52d1f9a, 0xbcf3a937, 0x3a07857c, 0xb8d3d026, 0xbaec2b40, 0x3c02a9ad, 0x36879cf7,
            0xbe1f29de, 0x33b8aa3b, 0x3dc9abe2, 0xb466d4cb, 0xb338aa3b, 0xb8bbd3a2, 0xb5160a52, 0x3d036455,
        ],
    ),
    (
        Opcode::Tanh,
        [
            0x3ac37de2, 0x3eee0566, 0x3cd41b91, 0x40acb4d0, 0x3d7c3055, 0x40c5e8ca, 0xbd7c3055, 0xc0c5e8ca,
            0x3c96ae2e, 0x40a6ef82, 0x3f20b67f, 0x3ff8bc7e, 0x4013cd84, 0x3bc8b605, 0x3f97fbc7, 0x3adbc904,
        ],
    ),
];

#[test]
fn values_next_to_the_middle_between_two_numbers() {
    let (mut source, mut result) = (Operand::new(LaneWidth::B4, LANES), Operand::new(LaneWidth::B4, LANES));
    for (opcode, operands) in HARD {
        operands.iter().enumerate().for_each(|(lane, &x)| source.set(lane, x.into()));
        let mut count = 0;
        for spelling in all_spellings() {
            let (form, picks) = (spelling.form.form(), &spelling.picks);
            if form.opcode != opcode || picks.types() != [Type::F32] {
                continue;
            }
            for path in available_paths() {
                Handler::new(form, picks, path).expect("it has a handler").run(&mut result, None, &[&source]);
                for (lane, &x) in operands.iter().enumerate() {
                    let [want, _] = expected(form, picks, &[x.into()]).expect("a pure form");
                    let (got, name) = (result.get(lane), spelling.mnemonic());
                    assert_eq!(got, want, "{name} on {}: {x:#x}: {got:#x}, not {want:#x}", path.name());
                }
                count += 1;
            }
        }
        assert_ne!(count, 0);
    }
}
