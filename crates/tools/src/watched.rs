//! Global memory of which whoever launches asks whether the launch accesses it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use diag::Span;

use crate::checker::{Checker, lock};
use crate::race::Races;

/// Memory, and what is known of it. Checkers that watch parts of a launch share it.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    /// Addresses and bytes.
    ranges: Arc<[(u64, u64)]>,
    /// By the index of the range, an access.
    accesses: Arc<Mutex<BTreeMap<usize, Access>>>,
}

/// Where an access stands, and what it does.
type Access = (Span, &'static str);

impl Watched {
    /// Looks for accesses among those of a launch, or of a part of it, that has ended.
    pub fn find(&self, races: &Races) {
        for (index, &(address, bytes)) in self.ranges.iter().enumerate() {
            if let Some(record) = races.global.any_access(address, bytes) {
                let place = &races.places[record.place as usize];
                let access = (place.span, place.access());
                // Of those that parts have found the first in the source, whichever part ends first.
                let mut accesses = lock(&self.accesses);
                let known = accesses.entry(index).or_insert(access);
                *known = access.min(*known);
            }
        }
    }

    /// What was found has been undone.
    pub fn clear(&self) {
        lock(&self.accesses).clear();
    }
}

impl Checker {
    /// With racecheck, [`Checker::watched_access`] tells whether the next launch accesses these pieces of global memory: addresses and bytes.
    pub fn watch_memory(&mut self, ranges: &[(u64, u64)]) {
        self.watched = Watched { ranges: ranges.into(), ..Watched::default() };
    }

    /// An access of the launch to the piece of memory of this index: where it stands in the source, and in words what it does (`reads`).
    pub fn watched_access(&self, index: usize) -> Option<(Span, &'static str)> {
        lock(&self.watched.accesses).get(&index).copied()
    }
}
