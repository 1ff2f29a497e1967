//! The approximate functions of binary32 on operands that are hard for them, against `sem`.

use super::{all_spellings, expected};
use isa::{Opcode, Type};
use lanes::{Handler, LaneWidth, Operand, available_paths};

/// As many operands as a call has lanes.
const LANES: usize = 16;

/// Operands whose values lie next to the middle between two numbers of binary32, by 2^-53 to 2^-47 of the value, so that one
/// computed in binary64 may lie on the other side: some of those of least distance among all there are.
const HARD: [(Opcode, [u32; LANES]); 5] = [
    (
        Opcode::Sin,
        [
            0x46199998, 0x73243f06, 0x4371ade3, 0x55cafb2a, 0x5f208d82, 0x3ef3830f, 0x45a8abb3, 0x5dadd689,
            0x61dfc847, 0x653cee8f, 0x7a5aacdb, 0x7a817b08, 0xc6199998, 0xc371ade3, 0xdf208d82, 0xbef3830f,
        ],
    ),
    (
        Opcode::Cos,
        [
            0x5f18b878, 0x55e5235d, 0x5922aa80, 0x61703976, 0x42378db8, 0x4a01dca4, 0x47a0e238, 0x4986afee,
            0x76d7173f, 0x543f6e04, 0x6978e912, 0x4e5b65ff, 0x504be581, 0x51abf5aa, 0xd5e5235d, 0xc2378db8,
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
