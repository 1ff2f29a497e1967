//! The access being recorded, as the shadow memory queries it: what it is ordered with, and what it does not conflict with.

use machine::{AccessKind, Scope};

use crate::block::{BlockOrder, WARP};
use crate::clock::{Epoch, OBJECTS, Stamp};
use crate::place::{Extents, Place};
use crate::proxies::Proxies;
use crate::shadow::{Context, Record};
use crate::waits::{Waits, Work};

/// The access being recorded.
pub(crate) struct Now<'a> {
    extents: Extents,
    order: &'a BlockOrder,
    places: &'a [Place],
    place: &'a Place,
    number: u32,
    writes: bool,
    pub thread: u32,
    lock_step: bool,
    waits: &'a Waits,
    proxies: &'a Proxies,
    pub races: Vec<Meeting>,
}

/// An earlier access that races, the address, and whether only a proxy fence is missing.
pub(crate) type Meeting = (Record, u64, bool);

impl<'a> Now<'a> {
    /// An access by a thread of a block; the caller sets `thread` next.
    pub fn new(
        order: &'a BlockOrder,
        places: &'a [Place],
        extents: Extents,
        lock_step: bool,
        number: u32,
        (waits, proxies): (&'a Waits, &'a Proxies),
    ) -> Now<'a> {
        let (place, races) = (&places[number as usize], Vec::new());
        let writes = place.kind.writes();
        Now { extents, order, places, place, number, writes, thread: 0, lock_step, waits, proxies, races }
    }

    /// The index of its place.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether the earlier access is done before this one. Its proxy may still hide it.
    fn is_before(&self, earlier: &Record) -> bool {
        let (block, thread) = (self.order.index, self.thread);
        if earlier.is_copy()
            && let Some(work) = self.places[earlier.place as usize].work.filter(|&work| work != Work::Copy)
        {
            return self.waits.is_done(work, earlier, self.order, thread);
        }
        if earlier.block == block && earlier.thread < OBJECTS {
            let issuer = u32::from(earlier.thread);
            if earlier.is_copy() {
                return self.order.knows_copy(thread, earlier.thread, earlier.epoch);
            }
            if self.lock_step && issuer / WARP == thread / WARP && earlier.place != self.number {
                return true;
            }
        }
        self.order.knows(thread, earlier.stamp())
            || self.place.makes_or_ends_object()
                && self.places[earlier.place as usize].is_of_object()
                && self.order.knows_use(thread, earlier.stamp())
    }
}

impl Context for Now<'_> {
    fn ordered(&self, earlier: &Record) -> bool {
        self.is_before(earlier)
            && (!self.place.is_async_read()
                || !self.places[earlier.place as usize].is_generic_write()
                || self.proxies.are_linked(earlier.stamp(), self.order, self.thread))
    }

    #[inline]
    fn compatible(&self, earlier: &Record) -> bool {
        if earlier.place == self.number && !self.writes {
            return true;
        }
        let other = &self.places[earlier.place as usize];
        if !self.writes && !other.kind.writes() {
            return true;
        }
        other.is_strong_with(self.place, self.extents.scope(earlier.block, self.order.index))
    }

    #[inline]
    fn compatible_by_all(&self, earlier: &Record) -> bool {
        let other = &self.places[earlier.place as usize];
        !self.writes && !other.kind.writes() || other.is_strong_with(self.place, Scope::Gpu)
    }

    #[inline]
    fn dominates(&self, earlier: &Record) -> bool {
        let (before, now) = (&self.places[earlier.place as usize], self.place);
        if earlier.place == self.number {
            return true;
        }
        if !now.is_strong() {
            return now.kind.writes() || !before.kind.writes();
        }
        let as_strong = before.is_strong() && before.semantics.scope == now.semantics.scope;
        as_strong && before.bytes == now.bytes && (now.kind.writes() || !before.kind.writes())
    }

    fn floor(&self) -> Epoch {
        self.order.floor()
    }

    #[inline]
    fn is_weak_write(&self) -> bool {
        self.writes && !self.place.is_strong()
    }

    fn is_strong(&self) -> bool {
        self.place.is_strong()
    }

    fn is_store(&self) -> bool {
        self.place.is_strong() && self.place.kind == AccessKind::Store
    }

    fn observes(&self, write: &Record) -> bool {
        self.place.is_strong()
            && matches!(self.place.kind, AccessKind::Load | AccessKind::Atomic)
            && !self.place.reduction
            && self.is_observable(write)
            && self.compatible(write)
    }

    fn is_observable(&self, record: &Record) -> bool {
        let place = &self.places[record.place as usize];
        place.is_strong() && matches!(place.kind, AccessKind::Store | AccessKind::Atomic)
    }

    fn knows(&self, stamp: Stamp) -> bool {
        self.order.knows(self.thread, stamp)
    }

    fn race(&mut self, earlier: &Record, address: u64) {
        self.races.push((*earlier, address, self.is_before(earlier)));
    }
}
