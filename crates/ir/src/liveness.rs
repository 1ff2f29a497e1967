//! Liveness, and which values may share a slot.
//!
//! A value that is live on entry to some basic block has a slot of its own, and basic blocks list these slots in
//! `live_in`: an engine that runs some of the lanes must not change such slots in the waiting lanes. All other values
//! live within one basic block and share a few temporaries.
//!
//! Narrowest tests (`tests/run`): `live_on_one_way`, `many_live_values`.

use std::collections::HashMap;

use crate::function::{Function, RegisterPlace, Terminator};
use crate::memory::Load;
use crate::op::{Address, BlockId, Op, OpKind, Slot, SlotInfo, SlotKind, Width};
use crate::visit::Touch;

/// Computes `live_in` of every basic block and replaces values by slots, those of cross-block values first. If
/// `share` is set, the other values share slots.
pub(crate) fn assign_slots(function: &mut Function, share: bool) {
    let exposed = upward_exposed(function);
    let mut cross: Vec<u32> = exposed.iter().flatten().copied().collect();
    cross.extend(function.params.iter().chain(&function.returns).flatten().map(|slot| slot.0));
    cross.sort_unstable();
    cross.dedup();

    // Dense slot numbers for the values that can be live across basic blocks.
    let mut name: Vec<Option<Slot>> = vec![None; function.slots.len()];
    let mut slots = Vec::with_capacity(cross.len());
    for &value in &cross {
        name[value as usize] = Some(Slot(slots.len() as u32));
        slots.push(function.slots[value as usize]);
    }
    solve(function, &exposed, &name, cross.len());
    for (value, info) in function.slots.iter().enumerate() {
        if is_fixed(info) {
            name[value] = Some(Slot(slots.len() as u32));
            slots.push(*info);
        }
    }
    if !share {
        for (value, info) in function.slots.iter().enumerate() {
            name[value].get_or_insert_with(|| {
                slots.push(*info);
                Slot(slots.len() as u32 - 1)
            });
        }
    }
    let mut places = Places::new(function, &name);
    share_temporaries(function, &mut name, &mut slots, &mut places);
    function.registers = places.finish();
    for op in &mut function.prologue {
        op.visit(&mut |slot, _| *slot = name[slot.index()].unwrap_or(*slot));
    }
    for slot in function.params.iter_mut().chain(&mut function.returns).flatten() {
        *slot = name[slot.index()].unwrap_or(*slot);
    }
    function.slots = slots;
}

/// Where the PTX registers are.
struct Places {
    /// Registers whose values live within one basic block, by value.
    local: Vec<RegisterPlace>,
    found: Vec<RegisterPlace>,
}

impl Places {
    fn new(function: &mut Function, name: &[Option<Slot>]) -> Places {
        let mut places = Places { local: Vec::new(), found: Vec::new() };
        for place in std::mem::take(&mut function.registers) {
            match name[place.slot.index()] {
                Some(slot) => places.found.push(RegisterPlace { slot, ..place }),
                None => places.local.push(place),
            }
        }
        places.local.sort_unstable_by_key(|place| place.slot);
        places
    }

    /// Records that a slot holds a value in this basic block.
    fn note(&mut self, value: Slot, block: usize, slot: Slot) {
        let first = self.local.partition_point(|place| place.slot < value);
        let its = self.local[first..].iter().take_while(|place| place.slot == value);
        let block = Some(BlockId(block as u32));
        self.found.extend(its.map(|&place| RegisterPlace { block, slot, ..place }));
    }

    fn finish(mut self) -> Vec<RegisterPlace> {
        self.found.sort_unstable();
        self.found
    }
}

/// Whether the slot is set on entry and never written by a basic block.
fn is_fixed(info: &SlotInfo) -> bool {
    matches!(info.kind, SlotKind::Constant(_) | SlotKind::Special(_) | SlotKind::Invariant)
}

impl Function {
    /// Visits the slots of a basic block in execution order. Passes the operation's number in the basic block (the
    /// terminator is last) and whether it is guarded.
    fn visit_block(&mut self, block: usize, f: &mut dyn FnMut(usize, bool, &mut Slot, Touch)) {
        let range = self.blocks[block].ops.clone();
        let count = range.len();
        for (position, op) in self.ops[range.start as usize..range.end as usize].iter_mut().enumerate() {
            let guarded = op.guard.is_some();
            op.visit(&mut |slot, touch| f(position, guarded, slot, touch));
        }
        self.blocks[block].terminator.visit(&mut |slot, touch| f(count, false, slot, touch));
    }
}

/// For each basic block, the values that it reads before it has written them in all its lanes.
pub(crate) fn upward_exposed(function: &mut Function) -> Vec<Vec<u32>> {
    let fixed: Vec<bool> = function.slots.iter().map(is_fixed).collect();
    let returns: Vec<u32> = function.returns.iter().flatten().map(|s| s.0).collect();
    // The last basic block that wrote, or exposed, each value.
    let mut written = vec![u32::MAX; fixed.len()];
    let mut noted = vec![u32::MAX; fixed.len()];
    let mut all = Vec::with_capacity(function.blocks.len());
    for block in 0..function.blocks.len() as u32 {
        let mut exposed = Vec::new();
        let mut expose = |value: u32, written: &[u32]| {
            let v = value as usize;
            if !fixed[v] && written[v] != block && noted[v] != block {
                noted[v] = block;
                exposed.push(value);
            }
        };
        function.visit_block(block as usize, &mut |_, guarded, slot, touch| {
            // A guarded write keeps the old value in the other lanes, so it counts as a read.
            if touch == Touch::Use || guarded {
                expose(slot.0, &written);
            }
            if touch == Touch::Def && !guarded {
                written[slot.index()] = block;
            }
        });
        if matches!(function.blocks[block as usize].terminator, Terminator::Return) {
            returns.iter().for_each(|&value| expose(value, &written));
        }
        all.push(exposed);
    }
    all
}

/// Computes `live_in` (in terms of the new slots) by the usual backward data-flow equations.
fn solve(function: &mut Function, exposed: &[Vec<u32>], name: &[Option<Slot>], count: usize) {
    let blocks = function.blocks.len();
    let words = count.div_ceil(64);
    let bit = |slot: Slot| (slot.index() / 64, 1u64 << (slot.index() % 64));
    let mut live = vec![vec![0u64; words]; blocks];
    let mut defined = vec![vec![0u64; words]; blocks];
    for block in 0..blocks {
        for &value in &exposed[block] {
            if let Some(slot) = name[value as usize] {
                let (word, bit) = bit(slot);
                live[block][word] |= bit;
            }
        }
        let defs = &mut defined[block];
        function.visit_block(block, &mut |_, guarded, slot, touch| {
            if let (Touch::Def, false, Some(slot)) = (touch, guarded, name[slot.index()]) {
                let (word, bit) = bit(slot);
                defs[word] |= bit;
            }
        });
    }
    let successors: Vec<Vec<usize>> = function
        .blocks
        .iter()
        .map(|b| b.terminator.successors().into_iter().map(|s| s.index()).collect())
        .collect();
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..blocks).rev() {
            for &next in &successors[block] {
                for word in 0..words {
                    let new = live[next][word] & !defined[block][word];
                    let grown = live[block][word] | new;
                    changed |= grown != live[block][word];
                    live[block][word] = grown;
                }
            }
        }
    }
    for (block, live) in live.into_iter().enumerate() {
        function.blocks[block].live_in = (0..count as u32)
            .filter(|&slot| live[slot as usize / 64] >> (slot % 64) & 1 != 0)
            .map(Slot)
            .collect();
    }
}

/// Native code loads so many elements together.
pub const MOST_JOINED: u32 = 4;
/// How far behind a load native code looks for loads of the elements behind it.
pub const MOST_BETWEEN: usize = 32;

/// Results of loads that have their slots before these operations already, in ascending order: native code loads them together with those of
/// the operation.
fn early(function: &Function, block: usize) -> Vec<(usize, Slot)> {
    let range = function.blocks[block].ops.clone();
    let ops = &function.ops[range.start as usize..range.end as usize];
    let mut found = Vec::new();
    for (at, first) in ops.iter().enumerate().filter_map(|(at, op)| Some((at, load(op)?))) {
        let mut count = first.dst.len();
        for next in ops[at + 1..].iter().take(MOST_BETWEEN).filter_map(load) {
            let end = first.address.offset + count as i64 * i64::from(first.bytes);
            let is_next =
                (next.address, next.bytes) == (Address { offset: end, ..first.address }, first.bytes);
            if is_next && count + next.dst.len() <= MOST_JOINED as usize {
                found.extend(next.dst.iter().flatten().map(|slot| (at, *slot)));
                count += next.dst.len();
            }
        }
    }
    found
}

/// The load, if it is weak.
fn load(op: &Op) -> Option<&Load> {
    match &op.kind {
        OpKind::Load(load) if !load.semantics.is_strong() => Some(load),
        _ => None,
    }
}

/// Assigns shared slots to the values that live within one basic block, and renames every operand.
fn share_temporaries(
    function: &mut Function,
    name: &mut [Option<Slot>],
    slots: &mut Vec<SlotInfo>,
    places: &mut Places,
) {
    let widths: Vec<Width> = function.slots.iter().map(|info| info.width).collect();
    let mut free: HashMap<Width, Vec<Slot>> = HashMap::new();
    let mut last = vec![0; widths.len()];
    for block in 0..function.blocks.len() {
        function.visit_block(block, &mut |position, _, slot, _| last[slot.index()] = position);
        let mut held: Vec<(usize, Slot, Width)> = Vec::new();
        let mut local: Vec<u32> = Vec::new();
        let mut done = 0;
        let early = early(function, block);
        let mut early = early.iter().peekable();
        function.visit_block(block, &mut |position, _, slot, _| {
            // A slot becomes free only after the operation with its last use. So a destination never partly overlaps
            // another operand of the same operation.
            if position > done {
                held.retain(|&(until, slot, width)| {
                    let keep = until >= position;
                    if !keep {
                        free.entry(width).or_default().push(slot);
                    }
                    keep
                });
                done = position;
            }
            let mut place = |value: usize| {
                *name[value].get_or_insert_with(|| {
                    let width = widths[value];
                    let place = free.entry(width).or_default().pop().unwrap_or_else(|| {
                        slots.push(SlotInfo { width, kind: SlotKind::Temporary });
                        Slot(slots.len() as u32 - 1)
                    });
                    places.note(Slot(value as u32), block, place);
                    held.push((last[value], place, width));
                    local.push(value as u32);
                    place
                })
            };
            *slot = place(slot.index());
            while let Some(&(_, value)) = early.next_if(|(at, _)| *at <= position) {
                place(value.index());
            }
        });
        for (_, slot, width) in held {
            free.entry(width).or_default().push(slot);
        }
        for value in local {
            name[value as usize] = None;
        }
    }
}
