//! Predicates that depend on the thread's place in its block alone, such as `%tid.x == 0`: the same in every block.

use std::collections::HashMap;

use machine::mask::Mask;
use smallvec::SmallVec;

use crate::affine::{Affine, LaneRows};
use crate::code::{MAX_SOURCES, Pure};
use crate::registers::SlotRef;

/// A source of an operation.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Source {
    /// A value that steps evenly, the same in every block.
    Affine(Affine),
    Pattern(Mask),
}

/// The patterns that slots have.
#[derive(Clone, Default)]
pub(super) struct Patterns(Vec<(u32, Mask)>);

impl Patterns {
    pub fn get(&self, slot: SlotRef) -> Option<Mask> {
        self.0.iter().find(|(index, _)| *index == slot.index).map(|(_, lanes)| *lanes)
    }

    pub fn set(&mut self, slot: SlotRef, lanes: Mask) {
        self.remove(slot);
        self.0.push((slot.index, lanes));
    }

    pub fn remove(&mut self, slot: SlotRef) {
        self.0.retain(|(index, _)| *index != slot.index);
    }
}

/// What operations have computed last, by [`Pure::cached`]: in the next blocks it is the same.
#[derive(Default)]
pub(super) struct Computed(HashMap<usize, Last>);

struct Last {
    sources: SmallVec<[Source; 3]>,
    lanes: usize,
    results: [Option<Mask>; 2],
}

impl Computed {
    /// The results of an operation on predicates or values that are the same in every block.
    pub fn of(&mut self, op: &Pure, sources: SmallVec<[Source; 3]>, rows: LaneRows) -> [Option<Mask>; 2] {
        let lanes = rows.block_lanes();
        if let Some(known) = self.0.get(&op.cached)
            && known.lanes == lanes
            && known.sources == sources
        {
            return known.results;
        }
        let mut results = [Mask::EMPTY; 2];
        for lane in 0..lanes {
            let mut values = [0; MAX_SOURCES];
            for ((value, source), slot) in values.iter_mut().zip(&sources).zip(op.src()) {
                *value = match source {
                    Source::Affine(affine) => slot.width.truncate(affine.at(lane, rows)),
                    Source::Pattern(lanes) => u64::from(!(*lanes & Mask::single(lane)).is_empty()),
                };
            }
            for (result, value) in results.iter_mut().zip((op.sem)(&op.picks, &values[..op.sources])) {
                if value & 1 != 0 {
                    *result |= Mask::single(lane);
                }
            }
        }
        let results = [0, 1].map(|index| op.dst[index].map(|_| results[index]));
        self.0.insert(op.cached, Last { sources, lanes, results });
        results
    }
}
