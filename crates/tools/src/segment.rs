//! What threads of a block do to its shared memory between two barriers of all of them, as long as it races with nothing.
//!
//! Of each word is kept who wrote it and who accessed it besides, in the form of one thread or several. That says whether a
//! race is possible, and not with whom: if one is, the accesses are noted one by one, from a log ([`crate::race`]), and so is what follows
//! until the next barrier.

use vm::{BlockAccess, BlockAddresses};

use crate::block::{Threads, contains, members};

/// An access of several threads to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub place: u32,
    pub bytes: u64,
    pub threads: Threads,
    addresses: Addresses,
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
}

impl Log {
    fn clear(&mut self) {
        self.entries.clear();
        self.addresses.clear();
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
    fn push(&mut self, access: &BlockAccess, place: u32) {
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
        self.entries.push(Entry { place, bytes: access.bytes, threads: *access.threads, addresses });
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

/// How a word is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Read,
    Write,
    /// By atomic operations, which may meet.
    Atomic,
}

impl How {
    /// Marks a word as accessed by a thread. True if that could race with what its marks say.
    #[inline(always)]
    fn races(self, now: u32, own: u32, write: &mut u32, other: &mut u32) -> bool {
        let is_written = *write >= now && *write != own;
        match self {
            How::Read => {
                let races = is_written || *other == now + ATOMIC;
                *other = if *other < now || *other == own { own } else { now + SEVERAL };
                races
            }
            How::Write => {
                *write = own;
                is_written || *other >= now && *other != own
            }
            How::Atomic => {
                let races = is_written || *other >= now && *other != now + ATOMIC;
                *other = now + ATOMIC;
                races
            }
        }
    }
}

/// Words are marked with the number of the segment and one of these, or the index of a thread.
const SEVERAL: u32 = 1024;
const ATOMIC: u32 = 1025;
const MARKS: u32 = 2048;

/// All words are accessed by one thread: more of them than any access has.
const ONE_THREAD: u32 = 31;

/// More entries are not kept, nor more addresses of their threads.
const MOST_ENTRIES: usize = 4096;
const MOST_ADDRESSES: usize = 1 << 17;
/// Shared memory ends before.
const MOST_BYTES: u64 = 1 << 18;

/// Accesses of a block's threads to shared memory since they all met.
pub(crate) struct Segment {
    /// Marks from here on are of this segment.
    now: u32,
    /// By word: the thread that wrote it.
    writes: Vec<u32>,
    /// By word: who accessed it otherwise.
    others: Vec<u32>,
    log: Log,
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
            writes: Vec::new(),
            others: Vec::new(),
            log: Log::default(),
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
        self.only = None;
        self.apart = self.for_good;
        match self.now.checked_add(2 * MARKS) {
            Some(_) => self.now += MARKS,
            None => {
                self.now = MARKS;
                self.writes.fill(0);
                self.others.fill(0);
            }
        }
        !self.apart
    }

    /// The same for another block; `for_good`: all its accesses are noted one by one.
    pub fn begin_block(&mut self, for_good: bool) {
        self.for_good = for_good;
        self.begin();
    }

    /// From now on accesses are noted one by one, until the next barrier or `for_good`. Returns those so far.
    pub fn end(&mut self, for_good: bool) -> Log {
        self.for_good |= for_good;
        self.apart = true;
        std::mem::take(&mut self.log)
    }

    /// Notes an access. False if that could race with another one, or has to be noted thread by thread for other reasons.
    pub fn note(&mut self, access: &BlockAccess, place: u32, how: How) -> bool {
        let bytes = access.bytes;
        let fits = matches!(bytes, 4 | 8 | 16) || how == How::Read && matches!(bytes, 1 | 2);
        let is_full = self.log.entries.len() >= MOST_ENTRIES || self.log.addresses.len() >= MOST_ADDRESSES;
        if self.apart || !fits || is_full {
            return false;
        }
        self.log.push(access, place);
        // Reads do not race with reads, nor atomic operations with such.
        let only = *self.only.get_or_insert(how);
        if how != How::Write && only == how {
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
        let Entry { bytes, threads, addresses, .. } = self.log.entries[index];
        let words = bytes.div_ceil(4) as usize;
        let first = match addresses {
            Addresses::Even { start, width, step, pitch } => {
                return self.note_even(&threads, start, (width, step, pitch), bytes, how);
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
                1 => self.note_each(each, how),
                _ => each.all(|(thread, address)| {
                    self.note_words(address as usize / 4, words, thread, ONE_THREAD, how)
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
        how: How,
    ) -> bool {
        let words = bytes.div_ceil(4) as usize;
        let last = threads.iter().rposition(|&word| word != 0);
        let end = last.map_or(0, |last| 64 * last as u32 + threads[last].ilog2() + 1);
        let all = threads.iter().map(|word| word.count_ones()).sum::<u32>() == end;
        // Rows that go on in each other are one.
        let is_linear = pitch == step.wrapping_mul(width.into());
        let width = if is_linear { end } else { width.min(end) };
        if all && pitch == 0 && step == bytes && bytes >= 4 && end > width && end.is_multiple_of(width) {
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
                self.note_words(word, count as usize * words, first, words.ilog2(), how)
            } else if all && step == 0 && count > 1 {
                self.note_together(word, words, how)
            } else {
                let mut fine = true;
                for thread in (first..first + count).filter(|&thread| contains(threads, thread)) {
                    let at = from.wrapping_add(step.wrapping_mul((thread - first).into()));
                    fine &= self.note_words(at as usize / 4, words, thread, ONE_THREAD, how);
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
    fn note_words(&mut self, word: usize, count: usize, first: u32, shift: u32, how: How) -> bool {
        let (now, start) = (self.now, self.now + first);
        let (writes, others) = (&mut self.writes[word..][..count], &mut self.others[word..][..count]);
        let words = writes.iter_mut().zip(others).zip(0u32..).map(|(marks, i)| (marks, start + (i >> shift)));
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
    fn note_each(&mut self, accesses: impl Iterator<Item = (u32, u64)>, how: How) -> bool {
        let (now, writes, others) = (self.now, &mut self.writes[..], &mut self.others[..]);
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
                && segment.note_even(&threads, address, (32, 0, 0), bytes, how)
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

    #[test]
    fn rows_are_noted_as_their_threads_are() {
        let (mut segment, all) =
            (Segment::default(), [u64::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // 64 threads write a word each; then each reads its own, and all rows of 16 the same.
        assert!(segment.note_even(&all, 0, (16, 4, 64), 4, How::Write));
        assert!(segment.note_even(&all, 0, (64, 4, 0), 4, How::Read));
        assert!(!segment.note_even(&all, 0, (16, 4, 0), 4, How::Read));
        assert!(segment.begin());
        assert!(segment.note_even(&all, 0, (16, 4, 0), 4, How::Read));
        assert!(segment.note_even(&all, 0, (16, 0, 4), 4, How::Read));
        assert!(!segment.note_even(&all, 0, (64, 4, 0), 4, How::Write));
        // Addresses that no memory has.
        assert!(!segment.note_even(&all, u64::MAX - 3, (64, 4, 0), 4, How::Read));
        assert!(!segment.note_even(&all, 2, (64, 4, 0), 4, How::Read));
    }
}
