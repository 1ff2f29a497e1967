//! Copy propagation: readers of a copy's destination read its source instead.
//!
//! Compilers emit many copies: of bits between registers of different types, and of literals to registers.
//!
//! Narrowest test (`tests/run`): `previous_value`.

use crate::function::{Function, Terminator};
use crate::op::{OpKind, Slot, SlotInfo, SlotKind};
use crate::simple::SimpleOp;
use crate::visit::Touch;

/// Where a value is defined, if it has exactly one unguarded definition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Definition {
    None,
    At { block: usize, position: usize },
    Several,
}

/// Replaces destinations of copies by their sources. Values must not share slots yet.
///
/// The destination must have no other definition. The source must be a literal or a special register, or have exactly
/// one definition, earlier in the same basic block, with no read of the destination between the two. Then every read
/// of the destination, in any iteration of a loop, finds the same value in the source.
pub(crate) fn propagate(function: &mut Function) {
    let definitions = definitions(function);
    let fixed = |info: &SlotInfo| matches!(info.kind, SlotKind::Constant(_) | SlotKind::Special(_));
    let mut name: Vec<Slot> = (0..function.slots.len() as u32).map(Slot).collect();
    // The last read of each value: basic block and position in it.
    let mut read = vec![(usize::MAX, 0); function.slots.len()];
    for block in 0..function.blocks.len() {
        let range = function.blocks[block].ops.clone();
        for (position, op) in function.ops[range.start as usize..range.end as usize].iter_mut().enumerate() {
            if let (None, &OpKind::Simple(SimpleOp::Copy { dst, src })) = (op.guard, &op.kind) {
                let here = Definition::At { block, position };
                let source = match definitions[src.index()] {
                    Definition::At { block: other, position } => (other == block).then_some(position),
                    Definition::None => fixed(&function.slots[src.index()]).then_some(0),
                    Definition::Several => None,
                };
                let (last, at) = read[dst.index()];
                let unread = |since: usize| last != block || at < since;
                if definitions[dst.index()] == here
                    && source.is_some_and(|defined| defined <= position && unread(defined))
                {
                    name[dst.index()] = name[src.index()];
                }
            }
            op.visit(&mut |slot, touch| {
                if touch == Touch::Use {
                    read[slot.index()] = (block, position);
                }
            });
        }
    }
    let is_gone = |op: &OpKind| match op {
        OpKind::Simple(SimpleOp::Copy { dst, .. }) => name[dst.index()] != *dst,
        _ => false,
    };
    let mut ops = Vec::with_capacity(function.ops.len());
    let mut rest = std::mem::take(&mut function.ops).into_iter();
    for block in &mut function.blocks {
        let start = ops.len() as u32;
        ops.extend(rest.by_ref().take(block.ops.len()).filter(|op| !is_gone(&op.kind)));
        block.ops = start..ops.len() as u32;
    }
    let mut rename = |slot: &mut Slot, _: Touch| *slot = name[slot.index()];
    ops.iter_mut().for_each(|op| op.visit(&mut rename));
    function.blocks.iter_mut().for_each(|block| block.terminator.visit(&mut rename));
    function.registers.iter_mut().for_each(|place| place.slot = name[place.slot.index()]);
    function.ops = ops;
}

fn definitions(function: &mut Function) -> Vec<Definition> {
    let mut definitions = vec![Definition::None; function.slots.len()];
    // Callers and callees write these too.
    for slot in function.params.iter().chain(&function.returns).flatten() {
        definitions[slot.index()] = Definition::Several;
    }
    let mut define = |slot: &mut Slot, touch: Touch, place: Definition| {
        if touch == Touch::Def {
            let definition = &mut definitions[slot.index()];
            *definition = if *definition == Definition::None { place } else { Definition::Several };
        }
    };
    for (block, data) in function.blocks.iter_mut().enumerate() {
        let ops = &mut function.ops[data.ops.start as usize..data.ops.end as usize];
        for (position, op) in ops.iter_mut().enumerate() {
            let place = match op.guard {
                None => Definition::At { block, position },
                Some(_) => Definition::Several,
            };
            op.visit(&mut |slot, touch| define(slot, touch, place));
        }
        let terminator: &mut Terminator = &mut data.terminator;
        terminator.visit(&mut |slot, touch| define(slot, touch, Definition::Several));
    }
    definitions
}
