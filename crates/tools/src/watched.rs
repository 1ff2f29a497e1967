//! Global memory for which the caller asks whether a launch accesses it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use diag::Span;

use crate::checker::{Checker, lock};
use crate::race::Races;

/// The watched ranges, and an access to each. Checkers of parts of a launch share it.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    /// Address and size of each range.
    ranges: Arc<[(u64, u64)]>,
    /// By range index: an access.
    accesses: Arc<Mutex<BTreeMap<usize, Access>>>,
}

/// The place of an access, and what it does.
type Access = (Span, &'static str);

impl Watched {
    /// Looks for accesses in a launch, or a part of one, that has ended.
    pub fn find(&self, races: &Races) {
        for (index, &(address, bytes)) in self.ranges.iter().enumerate() {
            if let Some(record) = races.global.any_access(address, bytes) {
                let place = &races.places[record.place as usize];
                let access = (place.span, place.access());
                // Keeps the access that is first in the source, independent of the order in which parts end.
                let mut accesses = lock(&self.accesses);
                let known = accesses.entry(index).or_insert(access);
                *known = access.min(*known);
            }
        }
    }

    /// The launch was undone.
    pub fn clear(&self) {
        lock(&self.accesses).clear();
    }
}

impl Checker {
    /// Watches these ranges of global memory (address and size) in the next launch. With racecheck, [`Checker::watched_access`] then
    /// reports whether the launch accesses them.
    pub fn watch_memory(&mut self, ranges: &[(u64, u64)]) {
        self.watched = Watched { ranges: ranges.into(), ..Watched::default() };
    }

    /// An access of the launch to the range of this index: its place in the source, and what it does in words (`reads`).
    pub fn watched_access(&self, index: usize) -> Option<(Span, &'static str)> {
        lock(&self.watched.accesses).get(&index).copied()
    }
}
