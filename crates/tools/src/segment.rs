//! The accesses of a block to its shared memory between two barriers of all its threads, while none of them can race.
//!
//! For each word, a segment keeps marks: who wrote it, and who accessed it otherwise, each as one thread or as "several". The marks
//! decide whether a race is possible, but not with which access. If one is possible, or if something other than a barrier of all
//! threads orders the accesses, the log of the segment is replayed into the shadow memory thread by thread ([`crate::race`]), and
//! later accesses go there directly until the next barrier. That barrier forgets the segment.
//!
//! While the log has only reads, or only atomic operations, its words need no marks.
//!
//! Where whole warps meet, the segment continues with a new part: a mark of an earlier part is no race for a warp that has met since.
//! The segment keeps what the threads knew before the first meeting, because the log is replayed with that knowledge.

mod marks;

use machine::{BlockAccess, BlockAddresses, LaneAccess};

use crate::block::{BlockOrder, Threads, contains, members};

use crate::clock::Epoch;
use crate::pending::{Pending, Piece};
pub(crate) use marks::How;
use marks::{ATOMIC, MARKS, Met, SEVERAL};

/// An access of several threads, kept for replay.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub place: u32,
    pub bytes: u64,
    pub threads: Threads,
    addresses: Addresses,
    /// The marks of its words are this number plus the thread index.
    now: u32,
}

#[derive(Clone, Copy)]
enum Addresses {
    Even {
        start: u64,
        width: u32,
        step: u64,
        pitch: u64,
    },
    /// An address per accessing thread; the first one's index in [`Log::addresses`].
    Each(usize),
}

/// Accesses in order.
#[derive(Default)]
pub(crate) struct Log {
    pub entries: Vec<Entry>,
    addresses: Vec<u64>,
    /// What the threads knew of each other before the first meeting.
    pub before: Option<Box<BlockOrder>>,
    /// Warps that have met since: the number of entries before the meeting, the warp, and its lanes.
    pub meetings: Vec<(usize, u32, u32)>,
    /// Copies, each with the number of entries before it.
    pub copies: Vec<(usize, Piece)>,
}

impl Log {
    fn clear(&mut self) {
        self.entries.clear();
        self.addresses.clear();
        self.before = None;
        self.meetings.clear();
    }

    /// The threads in ascending order, with their addresses.
    pub fn accesses<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (u32, u64)> + 'a {
        members(&entry.threads).enumerate().map(|(index, thread)| match entry.addresses {
            Addresses::Even { start, width, step, pitch } => {
                (thread, even_address(start, (width, step, pitch), thread))
            }
            Addresses::Each(first) => (thread, self.addresses[first + index]),
        })
    }

    /// Appends an access.
    fn push(&mut self, access: &BlockAccess, place: u32, now: u32) {
        let addresses = match access.addresses {
            BlockAddresses::Even { start, width, step, pitch } => {
                Addresses::Even { start, width, step, pitch }
            }
            BlockAddresses::Each(all) => {
                let first = self.addresses.len();
                members(access.threads).for_each(|thread| self.addresses.push(all[thread as usize]));
                Addresses::Each(first)
            }
        };
        self.entries.push(Entry { place, bytes: access.bytes, threads: *access.threads, addresses, now });
    }

    /// Removes the last access.
    fn pop(&mut self) {
        if let Some(Entry { addresses: Addresses::Each(first), .. }) = self.entries.pop() {
            self.addresses.truncate(first);
        }
    }
}

/// The address of a thread in an access with even steps.
pub(crate) fn even_address(start: u64, (width, step, pitch): (u32, u64, u64), thread: u32) -> u64 {
    let (column, row) = (u64::from(thread % width), u64::from(thread / width));
    start.wrapping_add(column.wrapping_mul(step)).wrapping_add(row.wrapping_mul(pitch))
}

/// A shift for [`Segment::note_words`] that assigns all words to one thread: no access has 2^31 words.
const ONE_THREAD: u32 = 31;

/// The log keeps at most this many entries, and this many addresses.
const MOST_ENTRIES: usize = 4096;
const MOST_ADDRESSES: usize = 1 << 17;
/// Shared memory ends before this address.
const MOST_BYTES: u64 = 1 << 18;

/// The accesses of a block's threads to shared memory since the last barrier of all of them.
pub(crate) struct Segment {
    /// The marks of new accesses are this number plus the thread index.
    now: u32,
    met: Met,
    /// By word: the mark of the thread that wrote it.
    writes: Vec<u32>,
    /// By word: the mark of who read it, or accessed it atomically.
    others: Vec<u32>,
    log: Log,
    pending: Pending,
    /// Only races with pending copies matter: synccheck without racecheck.
    only_copies: bool,
    /// The kind of all accesses in the log. While it is `Read` or `Atomic`, which cannot race with themselves, words have no marks.
    only: Option<How>,
    /// Accesses go to the shadow memory one by one; `for_good`: even after the next barrier.
    apart: bool,
    for_good: bool,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment {
            now: MARKS,
            met: Met { first: MARKS, warps: [0; 32] },
            writes: Vec::new(),
            others: Vec::new(),
            log: Log::default(),
            pending: Pending::default(),
            only_copies: false,
            only: None,
            apart: false,
            for_good: false,
        }
    }
}

impl Segment {
    /// All threads have met: no earlier access races with a later one. Returns false if accesses go to the shadow one by one for good.
    pub fn begin(&mut self) -> bool {
        self.log.clear();
        self.pending.begin_segment();
        self.only = None;
        self.apart = self.for_good;
        match self.now.checked_add(2 * MARKS) {
            Some(_) => self.now += MARKS,
            None => {
                self.now = MARKS;
                self.writes.fill(0);
                self.others.fill(0);
                self.met.warps = [0; 32];
            }
        }
        self.met.first = self.now;
        !self.apart
    }

    /// Lanes are about to meet, all lanes of each warp. Returns false if the caller must replay the segment and go on one by one.
    pub fn meet(&mut self, order: &BlockOrder, warps: &[(u32, u32)]) -> bool {
        if self.apart || self.log.entries.is_empty() {
            // No access has been recorded that the meeting could order.
            return true;
        }
        if self.now.checked_add(2 * MARKS).is_none() || self.log.meetings.len() >= MOST_ENTRIES {
            return false;
        }
        self.log.before.get_or_insert_with(|| Box::new(order.snapshot()));
        self.now += MARKS;
        for &(warp, lanes) in warps {
            self.log.meetings.push((self.log.entries.len(), warp, lanes));
            self.met.warps[warp as usize % 32] = self.now;
        }
        true
    }

    /// Starts the segment of another block; `for_good`: all its accesses go to the shadow one by one.
    pub fn begin_block(&mut self, for_good: bool, only_copies: bool) {
        (self.for_good, self.only_copies) = (for_good, only_copies);
        if self.pending.is_any() {
            self.pending.take(0);
        }
        self.begin();
    }

    /// Ends the segment: accesses go to the shadow one by one until the next barrier, or `for_good`. Returns the log for replay.
    pub fn end(&mut self, for_good: bool) -> Log {
        let copies = self.pending.take(self.met.first);
        // A barrier does not order pending copies.
        self.for_good |= for_good || !copies.is_empty();
        self.apart = true;
        Log { copies, ..std::mem::take(&mut self.log) }
    }

    /// Whether accesses go to the shadow one by one.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Whether a pending copy writes some of these bytes.
    pub fn is_pending(&self, address: u64, bytes: u64) -> bool {
        let words = (bytes + address % 4).div_ceil(4);
        address < MOST_BYTES && self.pending.has(address as usize / 4, words.min(MOST_BYTES) as usize)
    }

    /// Records copies to shared memory, one per lane, each in its thread's current group. Returns false if one may race, or must be
    /// recorded one by one for another reason.
    pub fn copy(&mut self, lanes: &[LaneAccess], place: u32, group: impl Fn(u32) -> Epoch) -> bool {
        let when = (self.met.first, self.log.entries.len());
        if self.apart || !self.mark_all() {
            return false;
        }
        for lane in lanes {
            let LaneAccess { thread, address, bytes, .. } = *lane;
            if !matches!(bytes, 4 | 8 | 16) || !self.has_room(address, address, bytes) {
                return false;
            }
            let (word, count) = (address as usize / 4, bytes as usize / 4);
            let is_fine = match self.only_copies {
                true => !self.pending.has(word, count),
                false => self.note_words(word, count, thread, ONE_THREAD, (How::Write, self.now)),
            };
            if !is_fine {
                return false;
            }
            self.pending.add((thread, address, bytes), (place, group(thread)), when);
        }
        true
    }

    /// Threads have waited for all their copies of groups below `groups(thread)`: the destinations count as written by the thread now.
    /// Returns false if the caller must replay the segment and go on one by one.
    pub fn wait_for_copies(&mut self, threads: &[u32], groups: impl Fn(u32) -> Epoch) -> bool {
        if !self.pending.is_any() {
            return true;
        }
        if !self.mark_all() {
            return false;
        }
        let (now, writes) = (self.now, &mut self.writes);
        for &thread in threads {
            self.pending.wait(thread, groups(thread), |piece| {
                writes[piece.address as usize / 4..(piece.address + piece.bytes) as usize / 4]
                    .fill(now + thread);
            });
        }
        true
    }

    /// Marks the words of all entries, and of all later accesses. Returns false in the same cases as [`Segment::note`].
    fn mark_all(&mut self) -> bool {
        let last = self.log.entries.len();
        match self.only.replace(How::Write) {
            Some(only) if only != How::Write => (0..last).all(|index| self.mark(index, only)),
            _ => true,
        }
    }

    /// Records an access. Returns false if it may race with another one, or must be recorded thread by thread for another reason.
    pub fn note(&mut self, access: &BlockAccess, place: u32, how: How) -> bool {
        let bytes = access.bytes;
        let fits = matches!(bytes, 1 | 2 | 4 | 8 | 16);
        let is_full = self.log.entries.len() >= MOST_ENTRIES || self.log.addresses.len() >= MOST_ADDRESSES;
        if self.apart || !fits || is_full {
            return false;
        }
        if self.only_copies {
            return !self.pending.is_any() || access.parts(|address, bytes| !self.is_pending(address, bytes));
        }
        self.log.push(access, place, self.now);
        // Reads do not race with reads, and atomic operations do not race with atomic operations.
        let only = *self.only.get_or_insert(how);
        if how != How::Write && only == how && !self.pending.is_any() {
            return true;
        }
        let last = self.log.entries.len() - 1;
        let unmarked = if only == How::Write { last } else { 0 };
        self.only = Some(How::Write);
        let fine = (unmarked..last).all(|index| self.mark(index, only)) && self.mark(last, how);
        if !fine {
            self.log.pop();
        }
        fine
    }

    /// Marks the words of an entry of the log. Returns false if the access may race with another one, or must be recorded thread by
    /// thread for another reason.
    fn mark(&mut self, index: usize, how: How) -> bool {
        let Entry { bytes, threads, addresses, now, .. } = self.log.entries[index];
        let words = bytes.div_ceil(4) as usize;
        let first = match addresses {
            Addresses::Even { start, width, step, pitch } => {
                return self.note_even(&threads, start, (width, step, pitch), bytes, (how, now));
            }
            Addresses::Each(first) => first,
        };
        let count = threads.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        // Restored at the end.
        let all = std::mem::take(&mut self.log.addresses);
        let accessed = &all[first..][..count];
        let (least, greatest, either) =
            accessed.iter().fold((u64::MAX, 0, 0), |(least, greatest, either), &at| {
                (at.min(least), at.max(greatest), at | either)
            });
        let mut each = members(&threads).zip(accessed.iter().copied());
        let fine = self.has_room(least, greatest, bytes)
            && either.is_multiple_of(bytes)
            && match words {
                1 => self.note_each(each, (how, now)),
                _ => each.all(|(thread, address)| {
                    self.note_words(address as usize / 4, words, thread, ONE_THREAD, (how, now))
                }),
            };
        self.log.addresses = all;
        fine
    }

    /// Whether accesses from `least` to `greatest` are aligned and within shared memory. Makes room for their marks.
    fn has_room(&mut self, least: u64, greatest: u64, bytes: u64) -> bool {
        if greatest > MOST_BYTES - 16 || least > greatest || !least.is_multiple_of(bytes) {
            return false;
        }
        let words = (greatest + bytes).div_ceil(4) as usize;
        if words > self.writes.len() {
            self.writes.resize(words.next_multiple_of(256), 0);
            self.others.resize(words.next_multiple_of(256), 0);
        }
        true
    }

    /// Marks the words of an access with even steps, row by row.
    fn note_even(
        &mut self,
        threads: &Threads,
        start: u64,
        (width, step, pitch): (u32, u64, u64),
        bytes: u64,
        (how, now): (How, u32),
    ) -> bool {
        let words = bytes.div_ceil(4) as usize;
        let last = threads.iter().rposition(|&word| word != 0);
        let end = last.map_or(0, |last| 64 * last as u32 + threads[last].ilog2() + 1);
        let all = threads.iter().map(|word| word.count_ones()).sum::<u32>() == end;
        // Contiguous rows count as one row.
        let is_linear = pitch == step.wrapping_mul(width.into());
        let width = if is_linear { end } else { width.min(end) };
        let has_met = self.now != self.met.first;
        if !has_met
            && all
            && pitch == 0
            && step == bytes
            && bytes >= 4
            && end > width
            && end.is_multiple_of(width)
        {
            // All rows of threads access the same words.
            let greatest = start.saturating_add(bytes * u64::from(width - 1));
            return self.has_room(start, greatest, bytes)
                && self.note_together(start as usize / 4, width as usize * words, how);
        }
        let mut first = 0;
        while first < end {
            let count = width.min(end - first);
            let from = even_address(start, (width, step, pitch), first);
            let to = from.wrapping_add(step.wrapping_mul(u64::from(count - 1)));
            if !self.has_room(from.min(to), from.max(to), bytes) || !step.is_multiple_of(bytes) {
                return false;
            }
            let word = from as usize / 4;
            let fine = if all && step == bytes && bytes >= 4 {
                self.note_words(word, count as usize * words, first, words.ilog2(), (how, now))
            } else if !has_met && all && step == 0 && count > 1 {
                self.note_together(word, words, how)
            } else {
                let mut fine = true;
                for thread in (first..first + count).filter(|&thread| contains(threads, thread)) {
                    let at = from.wrapping_add(step.wrapping_mul((thread - first).into()));
                    fine &= self.note_words(at as usize / 4, words, thread, ONE_THREAD, (how, now));
                }
                fine
            };
            if !fine {
                return false;
            }
            first += count;
        }
        true
    }

    /// Marks `count` words that the threads from `first` on access, 2^`shift` words each.
    #[inline]
    fn note_words(
        &mut self,
        word: usize,
        count: usize,
        first: u32,
        shift: u32,
        (how, now): (How, u32),
    ) -> bool {
        if self.pending.is_any() && self.pending.has(word, count) {
            return false;
        }
        let start = now + first;
        let (writes, others) = (&mut self.writes[word..][..count], &mut self.others[word..][..count]);
        let words = writes.iter_mut().zip(others).zip(0u32..);
        if self.now != self.met.first {
            let met = &self.met;
            return !words.fold(false, |races, ((w, o), i)| {
                races | how.races_since(met, now, first + (i >> shift), w, o)
            });
        }
        let words = words.map(|(marks, i)| (marks, start + (i >> shift)));
        // A separate loop for each kind of access.
        let races = match how {
            How::Read => words.fold(false, |races, ((w, o), own)| races | How::Read.races(now, own, w, o)),
            How::Write => words.fold(false, |races, ((w, o), own)| races | How::Write.races(now, own, w, o)),
            How::Atomic => {
                words.fold(false, |races, ((w, o), own)| races | How::Atomic.races(now, own, w, o))
            }
        };
        !races
    }

    /// Marks one word per thread, at addresses whose marks exist.
    fn note_each(&mut self, accesses: impl Iterator<Item = (u32, u64)>, (how, now): (How, u32)) -> bool {
        if self.pending.is_any() {
            return accesses.fold(true, |fine, (thread, address)| {
                fine & self.note_words(address as usize / 4, 1, thread, ONE_THREAD, (how, now))
            });
        }
        let (met, writes, others) = (&self.met, &mut self.writes[..], &mut self.others[..]);
        if self.now != met.first {
            return !accesses.fold(false, |races, (thread, address)| {
                let word = address as usize / 4;
                races | how.races_since(met, now, thread, &mut writes[word], &mut others[word])
            });
        }
        let mut note = |how: How, (thread, address): (u32, u64)| {
            let word = address as usize / 4;
            how.races(now, now + thread, &mut writes[word], &mut others[word])
        };
        let races = match how {
            How::Read => accesses.fold(false, |races, access| races | note(How::Read, access)),
            How::Write => accesses.fold(false, |races, access| races | note(How::Write, access)),
            How::Atomic => accesses.fold(false, |races, access| races | note(How::Atomic, access)),
        };
        !races
    }

    /// Marks words that several threads access in one instruction.
    fn note_together(&mut self, word: usize, count: usize, how: How) -> bool {
        if self.pending.is_any() && self.pending.has(word, count) {
            return false;
        }
        let (now, atomic) = (self.now, how == How::Atomic);
        let (writes, others) = (&self.writes[word..][..count], &mut self.others[word..][..count]);
        let mut races = how == How::Write;
        for (write, other) in writes.iter().zip(others) {
            races |= *write >= now || *other >= now && (*other == now + ATOMIC) != atomic;
            *other = now + if atomic { ATOMIC } else { SEVERAL };
        }
        !races
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each access in turn, whether it surely does not race with those before.
    fn fine(accesses: &[(How, u32, u64, u64)]) -> Vec<bool> {
        let mut segment = Segment::default();
        let note = |&(how, thread, address, bytes): &(How, u32, u64, u64)| {
            let mut threads = [0; 16];
            crate::block::insert(&mut threads, thread);
            segment.has_room(address, address, bytes)
                && segment.note_even(&threads, address, (32, 0, 0), bytes, (how, segment.now))
        };
        accesses.iter().map(note).collect()
    }

    #[test]
    fn what_two_threads_may_do_to_a_word() {
        let kinds = [How::Read, How::Write, How::Atomic];
        for (before, after) in kinds.into_iter().flat_map(|a| kinds.map(|b| (a, b))) {
            let meets = |after_thread, after_address| {
                fine(&[(before, 3, 8, 8), (after, after_thread, after_address, 4)])[1]
            };
            let may = before == after && before != How::Write;
            assert_eq!(meets(4, 8), may);
            assert_eq!(meets(4, 12), may);
            assert!(meets(4, 16) && meets(4, 4));
            // A thread does not race with itself, but a thread that mixes atomic and plain accesses is checked one by one.
            assert_eq!(
                meets(3, 8),
                (before == How::Atomic) == (after == How::Atomic) || before == How::Write
            );
        }
        // Two threads read, then one of them writes.
        assert_eq!(
            fine(&[(How::Read, 1, 0, 4), (How::Read, 2, 0, 4), (How::Write, 1, 0, 4)]),
            [true, true, false]
        );
    }

    /// For accesses of a block of 64 threads and meetings of warps, whether each access surely does not race with those before.
    fn fine_with_meetings(steps: &[Result<(How, u32, u64), u32>]) -> Vec<bool> {
        let (mut segment, order) = (Segment::default(), BlockOrder::new(64));
        let access = |segment: &mut Segment, how, thread, address| {
            let mut threads = [0; 16];
            crate::block::insert(&mut threads, thread);
            let access = BlockAccess {
                kind: machine::AccessKind::Load,
                semantics: machine::Semantics::WEAK,
                span: diag::Span { start: 0, end: 0 },
                block: [0; 3],
                space: isa::Space::Shared,
                bytes: 4,
                threads: &threads,
                addresses: BlockAddresses::Even { start: address, width: 64, step: 0, pitch: 0 },
            };
            segment.note(&access, 0, how)
        };
        let mut all = Vec::new();
        for step in steps {
            match *step {
                Ok((how, thread, address)) => all.push(access(&mut segment, how, thread, address)),
                Err(warp) => assert!(segment.meet(&order, &[(warp, u32::MAX)])),
            }
        }
        all
    }

    #[test]
    fn a_warp_that_meets_comes_behind_what_its_lanes_did() {
        use How::{Read, Write};
        // A lane writes and another lane of its warp reads: without a meeting, after one, and after one of the other warp.
        for (meeting, fine) in [(None, false), (Some(0), true), (Some(1), false)] {
            let steps = [Some(Ok((Write, 3, 8))), meeting.map(Err), Some(Ok((Read, 5, 8)))];
            let steps: Vec<_> = steps.into_iter().flatten().collect();
            assert_eq!(fine_with_meetings(&steps), [true, fine], "{meeting:?}");
        }
        // Several lanes read: of the warp that has met, and also of another one.
        let read = [Ok((Read, 1, 0)), Ok((Read, 2, 0))];
        let others = [Ok((Read, 40, 0))];
        let behind = |thread| [Err(0), Ok((Write, thread, 0))];
        assert_eq!(fine_with_meetings(&[&read[..], &behind(7)].concat()), [true, true, true]);
        assert_eq!(fine_with_meetings(&[&read[..], &behind(40)].concat()), [true, true, false]);
        assert_eq!(fine_with_meetings(&[&read[..], &others, &behind(7)].concat()), [true, true, true, false]);
        // An access after the meeting is not ordered by it.
        let late = [Ok((Write, 9, 4)), Err(0), Ok((Write, 9, 0)), Ok((Read, 3, 0))];
        assert_eq!(fine_with_meetings(&late), [true, true, false]);
    }

    #[test]
    fn rows_are_noted_as_their_threads_are() {
        let (mut segment, all) =
            (Segment::default(), [u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // 64 threads write a word each. Then each reads its own word, and then all rows of 16 threads read the same words.
        assert!(segment.note_even(&all, 0, (16, 4, 64), 4, (How::Write, segment.now)));
        assert!(segment.note_even(&all, 0, (64, 4, 0), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 0, (16, 4, 0), 4, (How::Read, segment.now)));
        assert!(segment.begin());
        assert!(segment.note_even(&all, 0, (16, 4, 0), 4, (How::Read, segment.now)));
        assert!(segment.note_even(&all, 0, (16, 0, 4), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 0, (64, 4, 0), 4, (How::Write, segment.now)));
        // Addresses outside of memory.
        assert!(!segment.note_even(&all, u64::MAX - 3, (64, 4, 0), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 2, (64, 4, 0), 4, (How::Read, segment.now)));
    }
}
