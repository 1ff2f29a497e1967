//! Formats of a byte, and where tiles lie.

use isa::Type;
use lanes::{SmallFloat, Tiles, Tiling};
use sem::format::Format;

#[test]
fn small_numbers_are_those_of_sem() {
    let formats = [(Type::E4m3, 0), (Type::E5m2, 0), (Type::E2m3, 0), (Type::E3m2, 0), (Type::E2m1, 2)];
    for (ty, shift) in formats {
        let format = Format::of(ty).unwrap();
        for byte in 0..=u8::MAX {
            let value = SmallFloat::new(format, shift).value(byte);
            let bits = u64::from(byte) >> shift & ((1 << format.bits()) - 1);
            let mode = sem::round::Mode::NEAREST;
            let expected = sem::convert::convert_float(format, &sem::format::F32, mode, bits);
            if value.is_nan() {
                assert!(f32::from_bits(expected as u32).is_nan(), "{ty} {byte:x}");
            } else {
                assert_eq!(u64::from(value.to_bits()), expected, "{ty} {byte:x}");
            }
        }
    }
}

#[test]
fn tiles_fill_a_matrix_or_do_not() {
    let tiles = Tiles::grid(Tiling::Rows, 2, 16, 16);
    assert_eq!((tiles.registers(), tiles.fill(16, 16)), (4, true));
    // Some of it is left out, or what it has is not all within.
    assert!(!tiles.fill(16, 24) && !tiles.fill(24, 16) && !tiles.fill(16, 8) && !tiles.fill(8, 16));
    // Tiles that are there twice count once.
    let mut twice = tiles.clone();
    twice.starts.extend_from_slice(&tiles.starts[1..]);
    assert!(!twice.fill(16, 16) && twice.distinct().0.fill(16, 16));
    assert_eq!(twice.distinct().1, [0, 4, 5, 6]);
    assert!(Tiles::grid(Tiling::Pairs, 1, 8, 16).fill(8, 16));
    assert!(Tiles::grid(Tiling::Columns, 4, 16, 16).fill(16, 16));
    // Not where tiles of this size begin.
    let mut odd = Tiles::grid(Tiling::Rows, 2, 8, 8);
    odd.starts = vec![(0, 4)];
    assert!(!odd.fill(8, 16));
}
