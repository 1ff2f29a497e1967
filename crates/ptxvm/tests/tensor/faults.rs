//! What is no map, what an instruction does not fit, and memory that is not there.

use ptxvm::tensor_map::{Element, Im2col, Interleave, Mode, TensorMap};
use ptxvm::{Device, Error, FaultKind};

use super::{Copy, Direction, ENGINES, Pattern, WIDE, kernel, launch, untouched};

/// A copy of 4 rows of 4 words that nothing is wrong with.
fn good() -> Copy {
    let map = TensorMap::tiled(Element::U32, 0, &[8, 8], &[4, 4]);
    Copy { map, at: [0; 5], offsets: [0; 3], place: 0, bytes: 64 }
}

/// The fault of a copy on both engines, which say the same, with what is said of it.
fn fault(direction: Direction, copy: &Copy) -> (FaultKind, String) {
    fault_of(direction, Pattern::Tile, 2, copy)
}

fn fault_of(direction: Direction, pattern: Pattern, rank: usize, copy: &Copy) -> (FaultKind, String) {
    let all = ENGINES.map(|engine| {
        let module = kernel(direction, rank, pattern);
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
    let (kind, text) = fault_of(Direction::Load, Pattern::Rows, 2, &good());
    assert_eq!(kind, FaultKind::TensorMap);
    assert!(text.contains("more than one row"), "{text}");
    let (kind, text) =
        fault(Direction::Reduce("inc"), &Copy { map: TensorMap { element: Element::S32, ..map }, ..good() });
    assert_eq!(kind, FaultKind::TensorMap);
    assert!(text.contains(".inc is not for elements of the tensor map's type"), "{text}");
}

/// What an H100 takes for illegal instructions.
#[test]
fn places_where_no_copy_begins_are_told_apart() {
    let columns = Im2col { channels: 4, pixels: 4, lower: [-1, 0, 0], upper: [-1, 0, 0] };
    let map = TensorMap::tiled(Element::U32, 0, &[4, 4, 4], &[1; 3]);
    let image = Copy { map: TensorMap { mode: Mode::Im2col(columns), ..map }, ..good() };
    let at = |x, y| Copy { at: [x, y, 0, 0, 0], ..good() };
    let pixel = |w| Copy { at: [0, w, 0, 0, 0], ..image.clone() };
    let (tile, load) = (Pattern::Tile, Direction::Load);
    for (direction, pattern, copy, part) in [
        (load, tile, at(2, 0), "the first coordinate, 2, times 4 bytes of an element"),
        (load, tile, at(-1, 0), "begin at a multiple of 4"),
        (Direction::Store, tile, at(1, 0), "no multiple of 16 bytes"),
        (Direction::Store, tile, at(-4, 0), "coordinate 0 is negative"),
        (Direction::Reduce("add"), tile, at(0, -1), "coordinate 1 is negative"),
        (load, Pattern::Columns, pixel(-2), "coordinate 1 must lie between the corners"),
        (load, Pattern::Columns, pixel(3), "outside of the bounding box"),
        (Direction::Store, Pattern::Columns, pixel(-1), "coordinate 1 is negative"),
    ] {
        let rank = if pattern == tile { 2 } else { 3 };
        let (kind, text) = fault_of(direction, pattern, rank, &copy);
        assert_eq!(kind, FaultKind::TensorMap);
        assert!(text.contains(part), "{text}");
    }
}

/// A store writes whole units of 16 bytes, but nothing behind the memory.
#[test]
fn memory_ends_what_stores_write_behind_rows() {
    for engine in ENGINES {
        let module = kernel(Direction::Store, 2, Pattern::Tile);
        // Rows of 7 words; the second one ends with the memory.
        let map = TensorMap { strides: [32, 0, 0, 0], ..TensorMap::tiled(Element::U32, 0, &[7, 2], &[4, 2]) };
        let copy = Copy { map, at: [4, 0, 0, 0, 0], ..good() };
        let (mut memory, mut shared) = (vec![1; 60], vec![2; super::SHARED]);
        launch(&Device::new(), &module, engine, &copy, &mut memory, &mut shared).unwrap();
        assert_eq!(memory, [vec![1; 16], vec![2; 16], vec![1; 16], vec![2; 12]].concat(), "{engine:?}");
    }
}

#[test]
fn columns_along_the_width_have_limits() {
    let columns = Im2col { channels: 4, pixels: 4, ..Im2col::default() };
    let of = |mode| Copy {
        map: TensorMap { mode, ..TensorMap::tiled(Element::U32, 0, &[4, 4, 4], &[1; 3]) },
        ..good()
    };
    let w = of(Mode::Im2colWide { columns, w128: false });
    let right = Copy { at: [0, 4, 0, 0, 0], ..w.clone() };
    for (pattern, copy, part) in [
        (WIDE[0], Copy { offsets: [512, 0, 0], ..w.clone() }, "wHalo is 512 or more"),
        (WIDE[0], Copy { offsets: [0, 32, 0], ..w.clone() }, "wOffset is 32 or more"),
        (WIDE[0], right, "the first pixel is to the right of the bounding box"),
        (WIDE[1], w, "not of the same mode"),
        (WIDE[1], of(Mode::Im2col(columns)), "not of the same mode"),
        (Pattern::Columns, of(Mode::Im2colWide { columns, w128: true }), "not of the same mode"),
    ] {
        let (kind, text) = fault_of(Direction::Load, pattern, 3, &copy);
        assert_eq!(kind, FaultKind::TensorMap);
        assert!(text.contains(part), "{text}");
    }
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
