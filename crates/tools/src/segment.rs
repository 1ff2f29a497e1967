//! What threads of a block do to its shared memory between two barriers of all of them, as long as it races with nothing.
//!
//! Of each word is kept who wrote it and who accessed it besides, in the form of one thread or several. That says whether a
//! race is possible, and not with whom: if one is, the accesses are noted one by one, from a log ([`crate::race`]), and so is what follows
//! until the next barrier.
//!
//! The log has no marks as long as all of it is reads, or all of it atomic operations; otherwise a word has two numbers (who wrote it, who
//! accessed it otherwise: one thread, several, atomic operations). If two threads could race, or if something else than a barrier of all
//! threads orders them, the log goes to the shadow memory thread by thread. The next barrier forgets all of it.
//!
//! Where whole warps meet, the segment goes on in a new part: a mark of an earlier part is no race for a warp that has met since. What the
//! threads knew before the first meeting is kept, so that the log is noted with that.

mod marks;

use vm::{BlockAccess, BlockAddresses, LaneAccess};

use crate::block::{BlockOrder, Threads, contains, members};

use crate::clock::Epoch;
use crate::pending::{Pending, Piece};
pub(crate) use marks::How;
use marks::{ATOMIC, MARKS, Met, SEVERAL};

/// An access of several threads to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub place: u32,
    pub bytes: u64,
    pub threads: Threads,
    addresses: Addresses,
    /// Its words are marked with this number and their threads.
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
    /// Of the threads that access: where they begin in [`Log::addresses`].
    Each(usize),
}

/// Accesses, one after the other.
#[derive(Default)]
pub(crate) struct Log {
    pub entries: Vec<Entry>,
    addresses: Vec<u64>,
    /// What the threads knew of each other before any of them met.
    pub before: Option<Box<BlockOrder>>,
    /// Warps that have met since: behind how many entries, which, and which of their lanes.
    pub meetings: Vec<(usize, u32, u32)>,
    /// Copies, each behind how many entries.
    pub copies: Vec<(usize, Piece)>,
}

impl Log {
    fn clear(&mut self) {
        self.entries.clear();
        self.addresses.clear();
        self.before = None;
        self.meetings.clear();
    }

    /// Threads and their addresses, ascending.
    pub fn accesses<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = (u32, u64)> + 'a {
        members(&entry.threads).enumerate().map(|(index, thread)| match entry.addresses {
            Addresses::Even { start, width, step, pitch } => {
                (thread, even_address(start, (width, step, pitch), thread))
            }
            Addresses::Each(first) => (thread, self.addresses[first + index]),
        })
    }

    /// Adds an access.
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

    /// Takes the last one away.
    fn pop(&mut self) {
        if let Some(Entry { addresses: Addresses::Each(first), .. }) = self.entries.pop() {
            self.addresses.truncate(first);
        }
    }
}

/// The address of a thread where they step evenly.
pub(crate) fn even_address(start: u64, (width, step, pitch): (u32, u64, u64), thread: u32) -> u64 {
    let (column, row) = (u64::from(thread % width), u64::from(thread / width));
    start.wrapping_add(column.wrapping_mul(step)).wrapping_add(row.wrapping_mul(pitch))
}

/// All words are accessed by one thread: more of them than any access has.
const ONE_THREAD: u32 = 31;

/// More entries are not kept, nor more addresses of their threads.
const MOST_ENTRIES: usize = 4096;
const MOST_ADDRESSES: usize = 1 << 17;
/// Shared memory ends before.
const MOST_BYTES: u64 = 1 << 18;

/// Accesses of a block's threads to shared memory since they all met.
pub(crate) struct Segment {
    /// What is done now is marked with this number and the thread.
    now: u32,
    met: Met,
    /// By word: the thread that wrote it.
    writes: Vec<u32>,
    /// By word: who accessed it otherwise.
    others: Vec<u32>,
    log: Log,
    pending: Pending,
    /// Nobody asks what is done to memory but that copies bring it.
    only_copies: bool,
    /// All of the log is of this kind. As long as that excludes no other of its kind, its words have no marks.
    only: Option<How>,
    /// Accesses are noted one by one; and for good.
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
    /// All threads have met: nothing before races with anything after. False if accesses are noted one by one for good.
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

    /// Lanes are about to meet, all of each warp. False if accesses are to be noted one by one from now on.
    pub fn meet(&mut self, order: &BlockOrder, warps: &[(u32, u32)]) -> bool {
        if self.apart || self.log.entries.is_empty() {
            // There is nothing that this would order.
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

    /// The same for another block; `for_good`: all its accesses are noted one by one.
    pub fn begin_block(&mut self, for_good: bool, only_copies: bool) {
        (self.for_good, self.only_copies) = (for_good, only_copies);
        if self.pending.is_any() {
            self.pending.take(0);
        }
        self.begin();
    }

    /// From now on accesses are noted one by one, until the next barrier or `for_good`. Returns those so far.
    pub fn end(&mut self, for_good: bool) -> Log {
        let copies = self.pending.take(self.met.first);
        // A barrier ends nothing that copies do.
        self.for_good |= for_good || !copies.is_empty();
        self.apart = true;
        Log { copies, ..std::mem::take(&mut self.log) }
    }

    /// Accesses are noted one by one.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Copies have not been waited for that write some of so many bytes.
    pub fn is_pending(&self, address: u64, bytes: u64) -> bool {
        let words = (bytes + address % 4).div_ceil(4);
        address < MOST_BYTES && self.pending.has(address as usize / 4, words.min(MOST_BYTES) as usize)
    }

    /// Notes that threads copy to shared memory, each in a group of its own. False if that could race with something, or has to be noted
    /// one by one for other reasons.
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

    /// Threads have waited for their copies of groups before the ones that `groups` says: it is as if they wrote what these brought. False
    /// if accesses are to be noted one by one from now on.
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

    /// From now on all words that are accessed have marks. False as of [`Segment::note`].
    fn mark_all(&mut self) -> bool {
        let last = self.log.entries.len();
        match self.only.replace(How::Write) {
            Some(only) if only != How::Write => (0..last).all(|index| self.mark(index, only)),
            _ => true,
        }
    }

    /// Notes an access. False if that could race with another one, or has to be noted thread by thread for other reasons.
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
        // Reads do not race with reads, nor atomic operations with such.
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

    /// Marks the words of an access of the log. False if that could race with another one, or has to be noted thread by thread for other
    /// reasons.
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
        // To be put back.
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

    /// All accesses from `least` to `greatest` are aligned, in memory that can be, and have their marks.
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

    /// Notes accesses whose addresses step evenly, row by row.
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
        // Rows that go on in each other are one.
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

    /// Notes so many words that threads from `first` on access, 2^`shift` each.
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
        // Each way in a loop of its own.
        let races = match how {
            How::Read => words.fold(false, |races, ((w, o), own)| races | How::Read.races(now, own, w, o)),
            How::Write => words.fold(false, |races, ((w, o), own)| races | How::Write.races(now, own, w, o)),
            How::Atomic => {
                words.fold(false, |races, ((w, o), own)| races | How::Atomic.races(now, own, w, o))
            }
        };
        !races
    }

    /// Notes that threads access a word each, at addresses that have marks.
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

    /// Notes words that several threads access at the same time.
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

    /// What becomes of accesses of words by threads, one after the other: of each whether it surely races with nothing before.
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
            // A thread does not race with itself; where it mixes atomic and plain accesses that is looked at more closely.
            assert_eq!(
                meets(3, 8),
                (before == How::Atomic) == (after == How::Atomic) || before == How::Write
            );
        }
        // Two readers, and one of them writes.
        assert_eq!(
            fine(&[(How::Read, 1, 0, 4), (How::Read, 2, 0, 4), (How::Write, 1, 0, 4)]),
            [true, true, false]
        );
    }

    /// Threads of a block of 64, and what they do to a word, or warps that meet: of each access whether it surely races with nothing.
    fn fine_with_meetings(steps: &[Result<(How, u32, u64), u32>]) -> Vec<bool> {
        let (mut segment, order) = (Segment::default(), BlockOrder::new(64));
        let access = |segment: &mut Segment, how, thread, address| {
            let mut threads = [0; 16];
            crate::block::insert(&mut threads, thread);
            let access = BlockAccess {
                kind: vm::AccessKind::Load,
                semantics: vm::Semantics::WEAK,
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
        // A lane writes, another one of its warp reads: without a meeting, behind one, behind one of the other warp.
        for (meeting, fine) in [(None, false), (Some(0), true), (Some(1), false)] {
            let steps = [Some(Ok((Write, 3, 8))), meeting.map(Err), Some(Ok((Read, 5, 8)))];
            let steps: Vec<_> = steps.into_iter().flatten().collect();
            assert_eq!(fine_with_meetings(&steps), [true, fine], "{meeting:?}");
        }
        // Reads of several lanes: of the warp that has met, and of another one, too.
        let read = [Ok((Read, 1, 0)), Ok((Read, 2, 0))];
        let others = [Ok((Read, 40, 0))];
        let behind = |thread| [Err(0), Ok((Write, thread, 0))];
        assert_eq!(fine_with_meetings(&[&read[..], &behind(7)].concat()), [true, true, true]);
        assert_eq!(fine_with_meetings(&[&read[..], &behind(40)].concat()), [true, true, false]);
        assert_eq!(fine_with_meetings(&[&read[..], &others, &behind(7)].concat()), [true, true, true, false]);
        // What comes behind the meeting is not before it.
        let late = [Ok((Write, 9, 4)), Err(0), Ok((Write, 9, 0)), Ok((Read, 3, 0))];
        assert_eq!(fine_with_meetings(&late), [true, true, false]);
    }

    #[test]
    fn rows_are_noted_as_their_threads_are() {
        let (mut segment, all) =
            (Segment::default(), [u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // 64 threads write a word each; then each reads its own, and all rows of 16 the same.
        assert!(segment.note_even(&all, 0, (16, 4, 64), 4, (How::Write, segment.now)));
        assert!(segment.note_even(&all, 0, (64, 4, 0), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 0, (16, 4, 0), 4, (How::Read, segment.now)));
        assert!(segment.begin());
        assert!(segment.note_even(&all, 0, (16, 4, 0), 4, (How::Read, segment.now)));
        assert!(segment.note_even(&all, 0, (16, 0, 4), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 0, (64, 4, 0), 4, (How::Write, segment.now)));
        // Addresses that no memory has.
        assert!(!segment.note_even(&all, u64::MAX - 3, (64, 4, 0), 4, (How::Read, segment.now)));
        assert!(!segment.note_even(&all, 2, (64, 4, 0), 4, (How::Read, segment.now)));
    }
}
