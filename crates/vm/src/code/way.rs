//! Ways between two basic blocks that some threads can go alone, while the others wait at the second one.
//!
//! Such a thread may stop within any basic block, which then begins again elsewhere.

use std::collections::BTreeMap;

use ir::SimpleOp;
use isa::Space;

use super::{Address, Base, Block, Function, Kind, MemoryOp, Op, Terminator, flows};
use crate::registers::SlotRef;

/// The most basic blocks of a way.
const MOST_BLOCKS: usize = 32;

/// The way of few threads.
pub(crate) struct Way {
    /// Its first basic block.
    pub head: u32,
    /// Where the other threads are.
    pub join: u32,
    /// By basic block: the slots that it reads and writes, which have their values back when it begins again.
    pub kept: BTreeMap<u32, Vec<SlotRef>>,
    /// Slots with a value at the head that the threads need.
    pub inputs: Vec<SlotRef>,
    /// The slots that the threads write. None is live where all meet.
    pub defined: Vec<SlotRef>,
    /// The slots that are live at the head or where all meet.
    pub live: Vec<SlotRef>,
    /// It goes back somewhere.
    pub loops: bool,
    /// Perhaps to wait for other blocks.
    pub waits: bool,
}

impl Way {
    /// The way from `head` to `join`, if threads can go it alone.
    pub fn of(function: &Function, head: u32, join: u32) -> Option<Way> {
        let (mut waiting, mut kept, mut loops) = (vec![head], BTreeMap::new(), false);
        let (mut used, mut defined) = (BTreeMap::new(), BTreeMap::new());
        while let Some(index) = waiting.pop() {
            if kept.contains_key(&index) {
                continue;
            }
            if index >= join || kept.len() == MOST_BLOCKS {
                return None;
            }
            let block = &function.blocks[index as usize];
            if block.warp || block.native.is_some() || !can_begin_again(block) {
                return None;
            }
            let mut of_block = Vec::new();
            for op in &block.ops {
                used.extend(op.guard.map(|guard| (guard.slot.index, guard.slot)));
                for flow in flows(op) {
                    used.extend(flow.uses.iter().chain(&flow.decides).map(|slot| (slot.index, *slot)));
                    of_block.extend(flow.defs.into_iter().flatten());
                }
            }
            defined.extend(of_block.iter().map(|slot: &SlotRef| (slot.index, *slot)));
            of_block.retain(|slot| block.is_live(slot.index));
            kept.insert(index, of_block);
            let next = match block.terminator {
                Terminator::Jump(next) => [next.0; 2],
                Terminator::Branch { pred, taken, otherwise, .. } => {
                    used.insert(pred.index, pred);
                    [taken.0, otherwise.0]
                }
                _ => return None,
            };
            loops |= next.iter().any(|&to| to <= index);
            waiting.extend(next.into_iter().filter(|&to| to != join));
        }
        let (first, meeting) = (&function.blocks[head as usize], &function.blocks[join as usize]);
        if defined.keys().any(|&slot| meeting.is_live(slot)) {
            return None;
        }
        let enters = |(index, _): &(u32, SlotRef)| first.is_live(*index) || !defined.contains_key(index);
        let inputs = used.into_iter().filter(enters).map(|(_, slot)| slot).collect();
        let is_live = |slot: &&SlotRef| first.is_live(slot.index) || meeting.is_live(slot.index);
        let live = function.all.iter().filter(is_live).copied().collect();
        let defined = defined.into_values().collect();
        let looks = |block: &u32| function.blocks[*block as usize].ops.iter().any(may_wait);
        let waits = loops && kept.keys().any(looks);
        Some(Way { head, join, kept, inputs, defined, live, loops, waits })
    }
}

/// Whether a basic block can begin again when any of its accesses fails: what it has done before, it does once more. So an atomic
/// operation is its last access, as is a store behind a load, which would find what has been stored.
fn can_begin_again(block: &Block) -> bool {
    let (mut has_loaded, mut is_over) = (false, false);
    block.ops.iter().all(|op| {
        let (loads, ends) = match &op.kind {
            Kind::Pure(_) | Kind::Param { .. } | Kind::Link(_) => return true,
            Kind::AddressOf { base, .. } => return matches!(base, Base::Zero | Base::Shared),
            Kind::Simple(op) => return is_plain(op),
            Kind::Load(op) | Kind::LoadStrong(op) if is_of_block(&op.address) => (true, false),
            Kind::Store(op) | Kind::StoreStrong(op) if is_of_block(&op.address) => (false, has_loaded),
            Kind::PureStore(op) if is_of_block(&op.store.address) => (false, has_loaded),
            Kind::Memory(op) => match &**op {
                MemoryOp::Atomic(op) if op.vector == 0 && matches!(op.ty.bytes(), 4 | 8) => (false, true),
                _ => return false,
            },
            _ => return false,
        };
        let follows = is_over;
        has_loaded |= loads;
        is_over |= ends;
        !follows
    })
}

/// It sees what other blocks do.
fn may_wait(op: &Op) -> bool {
    matches!(op.kind, Kind::LoadStrong(_) | Kind::Memory(_))
}

/// The memory may be another one than the thread's own.
fn is_of_block(address: &Address) -> bool {
    address.space != Space::Local && matches!(address.base, Base::Slot(_) | Base::Zero | Base::Shared)
}

fn is_plain<S>(op: &SimpleOp<S>) -> bool {
    matches!(
        op,
        SimpleOp::Copy { .. }
            | SimpleOp::Not { .. }
            | SimpleOp::Resize { .. }
            | SimpleOp::Offset { .. }
            | SimpleOp::Fence { .. }
    )
}
