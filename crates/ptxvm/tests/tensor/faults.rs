//! What is no map, what an instruction does not fit, and memory that is not there.

use ptxvm::tensor_map::{Element, Im2col, Interleave, Mode, TensorMap};
use ptxvm::{Device, Error, FaultKind};

use super::{Copy, Direction, ENGINES, Pattern, kernel, launch, untouched};

/// A copy of 4 rows of 4 words that nothing is wrong with.
fn good() -> Copy {
    let map = TensorMap::tiled(Element::U32, 0, &[8, 8], &[4, 4]);
    Copy { map, at: [0; 5], offsets: [0; 3], place: 0, bytes: 64 }
}

/// The fault of a copy on both engines, which say the same, with what is said of it.
fn fault(direction: Direction, copy: &Copy) -> (FaultKind, String) {
    fault_of(direction, Pattern::Tile, copy)
}

fn fault_of(direction: Direction, pattern: Pattern, copy: &Copy) -> (FaultKind, String) {
    let all = ENGINES.map(|engine| {
        let module = kernel(direction, 2, pattern);
        let (mut memory, mut shared) = (vec![0; 256], untouched());
        match launch(&Device::new(), &module, engine, copy, &mut memory, &mut shared) {
            Err(Error::Fault { fault, .. }) => {
                let notes: Vec<String> = fault.notes.iter().map(|(note, _)| note.clone()).collect();
                let access = fault
                    .access
                    .map(|access| (access.bytes, access.write, access.nearest.unwrap_or_default()));
                (fault.kind, format!("{} {access:?}", notes.join(" ")))
            }
            other => panic!("{engine:?}: {other:?}"),
        }
    });
    assert_eq!(all[0], all[1]);
    all[0].clone()
}

#[test]
fn maps_that_do_not_fit_are_told_apart() {
    let map = good().map;
    let image = Mode::Im2col(Im2col { channels: 4, pixels: 4, ..Im2col::default() });
    for (map, part) in [
        (TensorMap { rank: 3, ..map }, "the tensor map has 3 dimensions, not as many as the instruction"),
        (TensorMap { mode: image, ..map }, "not of the same mode"),
        (TensorMap { interleave: Interleave::Bytes16, ..map }, "interleaved channels"),
        (TensorMap { strides: [40, 0, 0, 0], ..map }, "multiple of 16"),
        (TensorMap { steps: [1, 9, 1, 1, 1], ..map }, "there is no tensor map at this address"),
    ] {
        let (kind, text) = fault(Direction::Load, &Copy { map, ..good() });
        assert_eq!(kind, FaultKind::TensorMap);
        assert!(text.contains(part), "{text}");
    }
    let (kind, text) = fault_of(Direction::Load, Pattern::Rows, &good());
    assert_eq!(kind, FaultKind::TensorMap);
    assert!(text.contains("more than one row"), "{text}");
    let (kind, text) =
        fault(Direction::Reduce("inc"), &Copy { map: TensorMap { element: Element::S32, ..map }, ..good() });
    assert_eq!(kind, FaultKind::TensorMap);
    assert!(text.contains(".inc is not for elements of the tensor map's type"), "{text}");
}

#[test]
fn memory_that_is_not_there_is_told() {
    // The map says 8 rows; there is memory for the first 8 words each of 8 rows, and not of the ninth.
    let longer =
        Copy { map: TensorMap { extents: [8, 9, 1, 1, 1], ..good().map }, at: [4, 6, 0, 0, 0], ..good() };
    let (kind, text) = fault(Direction::Load, &longer);
    assert_eq!(kind, FaultKind::OutOfBounds);
    assert!(text.contains("(16, false") && text.contains("past the end of array of 256 u8"), "{text}");
    let (kind, text) = fault(Direction::Store, &longer);
    assert_eq!(kind, FaultKind::OutOfBounds);
    assert!(text.contains("(16, true"), "{text}");
    let far = Copy { place: super::SHARED as u32 - 32, ..good() };
    assert_eq!(fault(Direction::Load, &far).0, FaultKind::Misaligned);
    let behind = Copy { place: super::SHARED as u32, ..good() };
    assert_eq!(fault(Direction::Load, &behind).0, FaultKind::OutOfBounds);
    assert_eq!(fault(Direction::Store, &Copy { place: 64, ..good() }).0, FaultKind::Misaligned);
}
