//! Copies that threads have issued and not waited for yet.
//!
//! They form batches, one for each executed instruction. A batch whose destinations are contiguous is written by one
//! copy.

use machine::mask::{GANG_LANES, Mask};

use super::transfer::Transfer;

/// Bytes of the largest copy.
pub(super) const LONGEST: usize = 16;

/// The copies that lanes issued by executing one instruction.
struct Batch {
    lanes: Mask,
    /// Lanes whose copy is still pending.
    left: Mask,
    /// How often each lane had committed before: the number of the copy's group.
    groups: Commits,
    /// Bytes of each copy.
    bytes: usize,
    copies: Data,
}

/// The data of a batch's copies and where it goes, in ascending order of lanes.
#[derive(Default)]
pub(super) struct Data {
    /// The bytes of all copies, contiguous.
    pub bytes: Vec<u8>,
    /// The destinations.
    pub places: Places,
}

/// The destinations of copies.
pub(super) enum Places {
    /// Contiguous from this address on.
    Row(*mut u8),
    Each(Vec<*mut u8>),
}

impl Default for Places {
    fn default() -> Self {
        Places::Each(Vec::new())
    }
}

/// How often each lane has committed.
#[derive(Clone)]
pub(super) enum Commits {
    /// All lanes equally often.
    All(u32),
    Each(Box<[u32; GANG_LANES]>),
}

impl Commits {
    pub fn of(&self, lane: usize) -> u32 {
        match self {
            Commits::All(count) => *count,
            Commits::Each(counts) => counts[lane],
        }
    }

    /// Counts a commit of these lanes. `all` says that no other lane is alive.
    pub fn add(&mut self, lanes: Mask, all: bool) {
        match self {
            Commits::All(count) if all => *count += 1,
            Commits::All(count) => {
                *self = Commits::Each(Box::new([*count; GANG_LANES]));
                self.add(lanes, false);
            }
            Commits::Each(counts) => lanes.for_each(|lane| counts[lane] += 1),
        }
    }

    /// The lanes among `lanes` that have committed at least `more` times since these counts.
    pub fn behind(&self, now: &Commits, more: u32, lanes: Mask) -> Mask {
        let due = |lane| self.of(lane).checked_add(more).is_some_and(|due| due <= now.of(lane));
        match (self, now) {
            (Commits::All(_), Commits::All(_)) => {
                if due(0) {
                    lanes
                } else {
                    Mask::EMPTY
                }
            }
            _ => {
                let mut behind = Mask::EMPTY;
                lanes.into_iter().filter(|&lane| due(lane)).for_each(|lane| behind.insert(lane));
                behind
            }
        }
    }
}

impl Data {
    /// Reads the data of the active lanes' copies and notes the destinations.
    ///
    /// # Safety
    /// The regions of the transfers must hold the copies of all active lanes, and the region of `to` must be the
    /// CTA's shared memory.
    pub unsafe fn take(&mut self, from: &Transfer, to: &Transfer) {
        let (count, bytes) = (from.active.count, from.bytes as usize);
        self.bytes.clear();
        self.bytes.reserve(count * bytes);
        let room = self.bytes.as_mut_ptr();
        // SAFETY: the caller's promise; `bytes` and `places` have room for all copies, which are written one after
        // the other.
        unsafe {
            match (from.consecutive(), bytes) {
                (Some((start, ..)), _) => room.copy_from_nonoverlapping(start, count * bytes),
                (None, 4) => from.take_each::<4>(room),
                (None, 8) => from.take_each::<8>(room),
                _ => from.take_each::<LONGEST>(room),
            }
            self.bytes.set_len(count * bytes);
            if let Some((start, ..)) = to.consecutive() {
                self.places = Places::Row(start);
                return;
            }
            let mut places = match std::mem::take(&mut self.places) {
                Places::Each(places) => places,
                Places::Row(_) => Vec::new(),
            };
            places.clear();
            places.reserve(count);
            let (list, mut next) = (places.as_mut_ptr(), 0);
            to.each_lane(|_, place| {
                list.add(next).write(place);
                next += 1;
            });
            places.set_len(next);
            self.places = Places::Each(places);
        }
    }
}

impl Batch {
    /// Writes the copies of these lanes, in ascending order.
    fn write(&mut self, lanes: Mask) {
        match self.bytes {
            4 => self.write_lanes::<4>(lanes),
            8 => self.write_lanes::<8>(lanes),
            _ => self.write_lanes::<LONGEST>(lanes),
        }
        self.left = self.left.without(lanes);
    }

    /// [`Batch::write`] for copies of `N` bytes.
    fn write_lanes<const N: usize>(&self, lanes: Mask) {
        let whole = lanes == self.lanes;
        let data = self.copies.bytes.as_ptr().cast::<[u8; N]>();
        // SAFETY (of all accesses here): the destinations were checked for `N` bytes when the copies were issued.
        // They are in the CTA's shared memory, which only this host thread accesses, and which outlives the gang. The
        // batch has data for every one of its lanes.
        match &self.copies.places {
            Places::Row(start) => {
                let start = start.cast::<[u8; N]>();
                if whole {
                    // SAFETY: as above.
                    return unsafe { start.copy_from_nonoverlapping(data, self.copies.bytes.len() / N) };
                }
                self.each(lanes, |next| {
                    // SAFETY: as above.
                    unsafe { start.add(next).write_unaligned(data.add(next).read_unaligned()) }
                });
            }
            Places::Each(places) if whole => {
                for (next, place) in places.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { place.cast::<[u8; N]>().write_unaligned(data.add(next).read_unaligned()) }
                }
            }
            Places::Each(places) => self.each(lanes, |next| {
                // SAFETY: as above.
                unsafe { places[next].cast::<[u8; N]>().write_unaligned(data.add(next).read_unaligned()) }
            }),
        }
    }

    /// Calls `f` with the index in the batch of each of these lanes' copies.
    fn each(&self, lanes: Mask, mut f: impl FnMut(usize)) {
        let mut next = 0;
        self.lanes.for_each(|lane| {
            if lanes.contains(lane) {
                f(next);
            }
            next += 1;
        });
    }
}

/// The pending copies of a gang's threads, in the order in which they were issued.
pub(super) struct Copies {
    pending: Vec<Batch>,
    commits: Commits,
    /// Threads of this CTA have issued copies or committed groups.
    used: bool,
    /// Buffers of finished batches, for reuse.
    spare: Vec<Data>,
}

impl Default for Copies {
    fn default() -> Self {
        Copies { pending: Vec::new(), commits: Commits::All(0), used: false, spare: Vec::new() }
    }
}

impl Copies {
    /// Resets the state for the start of a CTA.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.used) {
            self.pending.clear();
            self.commits = Commits::All(0);
        }
    }

    /// Issues one copy of `bytes` bytes for each of the lanes.
    pub fn issue(&mut self, lanes: Mask, bytes: usize, copies: Data) {
        self.used = true;
        self.pending.push(Batch { lanes, left: lanes, groups: self.commits.clone(), bytes, copies });
    }

    /// Commits what these lanes have issued. `all`: they are all that are alive.
    pub fn commit(&mut self, lanes: Mask, all: bool) {
        self.used = true;
        self.commits.add(lanes, all);
    }

    /// A buffer for the copies of one instruction. It may still hold earlier copies.
    pub fn room(&mut self) -> Data {
        self.spare.pop().unwrap_or_default()
    }

    /// Completes all copies of these lanes.
    pub fn finish(&mut self, lanes: Mask) {
        self.finish_groups(lanes, None);
    }

    /// Completes the copies of these lanes, except those of the latest `keep` groups and those not yet committed.
    /// `None` completes all.
    pub fn finish_groups(&mut self, lanes: Mask, keep: Option<u32>) {
        let Copies { pending, commits, spare, .. } = self;
        pending.retain_mut(|batch| {
            let mut due = batch.left & lanes;
            if let Some(keep) = keep {
                due = batch.groups.behind(commits, keep.saturating_add(1), due);
            }
            if !due.is_empty() {
                batch.write(due);
            }
            let keeps = !batch.left.is_empty();
            if !keeps {
                spare.push(std::mem::take(&mut batch.copies));
            }
            keeps
        });
    }
}
