//! Where basic blocks one behind the other read and write slots.

use std::collections::{HashMap, HashSet};

use ir::{Block, Function, Slot, Terminator, Touch};

use crate::kinds::Flow;

/// Where operations read and write slots.
#[derive(Default)]
pub(crate) struct Liveness {
    /// By slot, in ascending order: the index of the operation, and whether it reads the slot. One that reads and writes it reads it
    /// first.
    touches: HashMap<Slot, Vec<(usize, bool)>>,
    /// The slots that are live behind the last operation.
    out: HashSet<Slot>,
}

impl Liveness {
    /// `block`: the last one. `flows`: the operations, and whether they have a guard.
    pub fn of<'a>(
        function: &Function,
        block: &Block,
        flows: impl Iterator<Item = (usize, (&'a Flow, bool))>,
    ) -> Liveness {
        let mut live = Liveness::default();
        let next = block.terminator.successors().into_iter();
        live.out.extend(next.flat_map(|next| function.blocks[next.index()].live_in.iter().copied()));
        if matches!(block.terminator, Terminator::Return) {
            live.out.extend(function.returns.iter().flatten());
        }
        for wanted in [Touch::Def, Touch::Use] {
            block.terminator.clone().visit(&mut |slot, touch| match touch {
                _ if touch != wanted => {}
                Touch::Def => drop(live.out.remove(slot)),
                Touch::Use => drop(live.out.insert(*slot)),
            });
        }
        for (at, (flow, guarded)) in flows {
            let mut note = |slot: &Slot, reads| live.touches.entry(*slot).or_default().push((at, reads));
            flow.uses.iter().for_each(|slot| note(slot, true));
            // Lanes for which the guard does not hold keep their values.
            if !guarded {
                flow.defs.iter().for_each(|slot| note(slot, false));
            }
        }
        live
    }

    /// The slot is live before operation `at`.
    pub fn before(&self, at: usize, slot: Slot) -> bool {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        match touches.get(touches.partition_point(|&(other, _)| other < at)) {
            Some(&(_, reads)) => reads,
            None => self.out.contains(&slot),
        }
    }

    /// The operations that read what operation `at` gives a slot.
    pub fn readers(&self, at: usize, slot: Slot) -> impl Iterator<Item = usize> {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        let behind = touches[touches.partition_point(|&(other, _)| other <= at)..].iter();
        behind.take_while(|(_, reads)| *reads).map(|&(reader, _)| reader)
    }

    /// Some lane may need what operation `at` gives a slot behind the basic block.
    pub fn leaves(&self, at: usize, slot: Slot) -> bool {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        let written = touches.iter().any(|&(other, reads)| other > at && !reads);
        !written && self.out.contains(&slot)
    }
}
