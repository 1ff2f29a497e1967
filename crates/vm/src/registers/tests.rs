//! All forms of a slot show the same values, lane by lane and as an array.

use super::*;
use crate::bytes::load;

const W: Window = Window { index: 0, offset: 0 };

/// One row, rows of a block, several blocks.
fn shapes() -> [LaneRows; 4] {
    let of = |block, lanes, blocks| LaneRows::of(block, lanes, blocks);
    [of([64, 1, 1], 64, 1), of([16, 6, 1], 96, 1), of([32, 1, 1], 96, 3), of([16, 4, 1], 192, 3)]
}

/// A file with one slot of each width.
fn file(rows: LaneRows) -> (Registers, [SlotRef; 4]) {
    let mut registers = Registers::new(rows, HostPath::Portable);
    let mut offset = 0;
    let slots = [Width::Pred, Width::W16, Width::W32, Width::W64].map(|width| {
        let slot = SlotRef::new(offset / 8192, offset, width);
        offset += 8192;
        slot
    });
    registers.grow(slots.len(), offset as usize);
    (registers, slots)
}

/// The values of all lanes, one by one. The filled array must hold the same values.
fn values(registers: &mut Registers, slot: SlotRef) -> Vec<u64> {
    let lanes = 0..registers.rows().lanes;
    let one_by_one: Vec<u64> = lanes.clone().map(|lane| registers.get(W, slot, lane)).collect();
    let array = registers.read(W, slot);
    // SAFETY: `read` has just filled it.
    let filled: Vec<u64> = lanes.map(|lane| unsafe { load(array, slot.width, lane) }).collect();
    assert_eq!(one_by_one, filled);
    filled
}

#[test]
fn scalar_forms_fill_arrays() {
    for rows in shapes() {
        let (mut registers, slots) = file(rows);
        for slot in &slots[1..] {
            for (step, pitch, block_stride) in
                [(0, 0, 0), (1, 0, 0), (3, 100, 0), (0, 7, 5), (u64::MAX, 1, 1000)]
            {
                let affine = Affine { base: 40, step, pitch, block_stride };
                registers.set_affine(W, *slot, affine);
                let wanted: Vec<u64> =
                    (0..rows.lanes).map(|lane| slot.width.truncate(affine.at(lane, rows))).collect();
                assert_eq!(values(&mut registers, *slot), wanted, "{rows:?} {affine:?}");
            }
        }
    }
}

#[test]
fn one_group_stands_for_a_uniform_value_until_another_is_set() {
    let rows = LaneRows::of([64, 1, 1], 64, 1);
    let (mut registers, [_, _, slot, _]) = file(rows);
    registers.set_affine(W, slot, Affine::uniform(5));
    assert_eq!(registers.source(W, slot).step, 0);
    registers.set_affine(W, slot, Affine::uniform(5));
    assert_eq!(registers.source(W, slot).step, 0);
    // The same base, with a step.
    registers.set_affine(W, slot, Affine::linear(5, 2, rows));
    let source = registers.source(W, slot);
    assert_eq!(source.step, usize::from(slot.group_bytes));
    assert_eq!(values(&mut registers, slot)[63], 5 + 2 * 63);
}

#[test]
fn values_may_stay_in_memory() {
    for rows in shapes() {
        let (mut registers, [_, _, slot, _]) = file(rows);
        let memory: Vec<u32> = (0..4096).map(|i| i * 3).collect();
        let array = memory.as_ptr().cast::<u8>();
        // A group of 16 every 80 bytes.
        registers.set_memory(W, slot, Groups { array, step: 80 });
        let wanted: Vec<u64> = (0..rows.lanes as u64).map(|lane| (lane / 16 * 20 + lane % 16) * 3).collect();
        assert_eq!(values(&mut registers, slot), wanted);
        // Rows. Each block has its own.
        for splat in [false, true] {
            let step = if splat { 0 } else { 64 };
            registers.set_rows(W, slot, Factor { array, step, pitch: 160, block_stride: 2000, splat });
            let wanted: Vec<u64> = (0..rows.lanes)
                .map(|lane| {
                    let (column, row, block) = rows.place(lane);
                    (row * 40 + block * 500 + if splat { 0 } else { column }) * 3
                })
                .collect();
            assert_eq!(values(&mut registers, slot), wanted, "{rows:?} {splat}");
        }
    }
}

#[test]
fn other_lanes_keep_their_values() {
    for rows in shapes() {
        let (mut registers, slots) = file(rows);
        let mask = Mask::range(5, 40) | Mask::single(50);
        for slot in &slots[1..] {
            registers.set_affine(W, *slot, Affine { step: 1, ..Affine::uniform(7) });
            let before = values(&mut registers, *slot);
            registers.set_all(W, *slot, 99, mask, false);
            let after = values(&mut registers, *slot);
            for lane in 0..rows.lanes {
                assert_eq!(after[lane], if mask.contains(lane) { 99 } else { before[lane] });
            }
        }
        let predicate = slots[0];
        registers.set_affine(W, predicate, Affine::uniform(1));
        registers.set_predicate(W, predicate, Mask::single(6), mask);
        let got = registers.predicate(W, predicate);
        assert!((0..rows.lanes).all(|lane| got.contains(lane) == (!mask.contains(lane) || lane == 6)));
        registers.set_all(W, predicate, 1, Mask::single(7), false);
        let got = registers.predicate(W, predicate);
        assert!(got.contains(6) && got.contains(7) && !got.contains(8));
    }
}

#[test]
fn no_lane_shows_what_an_earlier_launch_left() {
    let rows = LaneRows::of([64, 1, 1], 64, 1);
    {
        let (registers, _) = file(rows);
        let bytes = registers.data.len();
        // SAFETY: the file has these bytes.
        unsafe { std::ptr::write_bytes(registers.data.as_ptr(), 0xff, bytes) }
        // The memory goes to the next launch of this thread.
    }
    let (mut registers, slots) = file(rows);
    for slot in slots {
        // A partial write, as by an operation for which the other lanes' values are not needed.
        registers.overwrite(W, slot);
        let values = values(&mut registers, slot);
        assert!(values.iter().all(|&value| value == 0), "{slot:?}: {values:x?}");
    }
}

#[test]
fn a_call_begins_with_zeros() {
    let (mut registers, slots) = file(LaneRows::of([64, 1, 1], 64, 1));
    for slot in slots {
        registers.set_all(W, slot, 1, Mask::ALL, true);
    }
    registers.open(W, slots.len(), 4 * 8192);
    for slot in slots {
        assert!(values(&mut registers, slot).iter().all(|&value| value == 0));
    }
}

#[test]
fn compacted_forms_have_the_values_of_their_lanes() {
    let rows = LaneRows::of([192, 1, 1], 192, 1);
    let few = [3, 40, 41, 63, 64, 129, 191];
    let mask = few.into_iter().fold(Mask::EMPTY, |mask, lane| mask | Mask::single(lane));
    let compacted = |groups: Groups, slot: SlotRef, i: usize| {
        // SAFETY: a compacted form has a value for each compacted lane.
        unsafe { load(groups.array, slot.width, i) }
    };
    for (linear, whole) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut registers, slots) = file(rows);
        let mut wanted: Vec<Vec<u64>> = Vec::new();
        for slot in slots {
            let of_lane = |lane: usize| {
                slot.width.truncate(if linear { 7 * lane as u64 } else { (lane * lane) as u64 })
            };
            if linear && slot.width != Width::Pred {
                registers.set_affine(W, slot, Affine::linear(0, 7, rows));
            } else {
                (0..rows.lanes).for_each(|lane| registers.set(W, slot, lane, of_lane(lane)));
            }
            wanted.push((0..rows.lanes).map(of_lane).collect());
        }
        assert_eq!(registers.compact(W, &mask), 1);
        for (slot, wanted) in slots.iter().zip(&mut wanted) {
            let source = registers.compacted_source(W, *slot);
            assert!(few.iter().enumerate().all(|(i, &lane)| compacted(source, *slot, i) == wanted[lane]));
            for (i, &lane) in few.iter().enumerate() {
                wanted[lane] = slot.width.truncate(1000 + 3 * i as u64);
                // SAFETY: as above.
                unsafe { store(registers.compacted_target(*slot), slot.width, i, wanted[lane]) }
            }
            registers.set_compacted(W, *slot, whole);
        }
        for (slot, wanted) in slots.iter().zip(&wanted) {
            let of_few = |values: &[u64]| few.map(|lane| values[lane]);
            let mut seen = vec![0; rows.lanes];
            registers.peek(W, *slot, &mut seen);
            let all = !whole || slot.width == Width::Pred;
            assert_eq!(if all { seen.clone() } else { wanted.clone() }, *wanted);
            assert_eq!(of_few(&seen), of_few(wanted));
            // Read two of the slots while they are compacted.
            if slot.index % 2 == 0 {
                assert_eq!(of_few(&values(&mut registers, *slot)), of_few(wanted));
            }
        }
        registers.expand();
        for (slot, wanted) in slots.iter().zip(&wanted) {
            let seen = values(&mut registers, *slot);
            assert!((0..rows.lanes).all(|lane| whole && !mask.contains(lane) || seen[lane] == wanted[lane]));
        }
        // Other lanes, which the forms of the first lanes do not cover.
        assert_eq!(registers.compact(W, &Mask::range(16, 64)), 3);
        let source = registers.compacted_source(W, slots[2]);
        assert!((0..48).all(|i| compacted(source, slots[2], i) == registers.get(W, slots[2], 16 + i)));
        registers.expand();
    }
}

#[test]
fn compacted_forms_have_room_behind_their_lanes() {
    let rows = LaneRows::of([64, 1, 1], 64, 1);
    // One group of lanes. A whole vector moves the last lane.
    let mask = Mask::first(15) | Mask::single(16);
    for path in lanes::available_paths() {
        let mut registers = Registers::new(rows, path);
        let [first, second] = [0, 1].map(|index| SlotRef::new(index, index * 8192, Width::W64));
        registers.grow(2, 2 * 8192);
        for slot in [first, second] {
            (0..rows.lanes).for_each(|lane| registers.set(W, slot, lane, 100 + lane as u64));
        }
        registers.compact(W, &mask);
        registers.compacted_source(W, second);
        for i in 0..16 {
            // SAFETY: a compacted form has a value for each compacted lane.
            unsafe { store(registers.compacted_target(second), Width::W64, i, i as u64) }
        }
        registers.set_compacted(W, second, false);
        registers.compacted_source(W, first);
        registers.expand();
        for (i, lane) in mask.into_iter().enumerate() {
            assert_eq!(registers.get(W, second, lane), i as u64);
            assert_eq!(registers.get(W, first, lane), 100 + lane as u64);
        }
    }
}
