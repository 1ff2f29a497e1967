//! Pending copies (`cp.async`) of a block's threads, while no access touches what they write.
//!
//! They are kept beside the log of the segment, and across barriers. An access to a word that a pending copy writes sends the
//! segment to the shadow memory for good. A copy that its thread has waited for counts as a write by the thread at that time.
//! synccheck without racecheck needs nothing else, while no access touches a pending copy.

use std::collections::VecDeque;

use crate::clock::Epoch;

/// What a thread's copy writes to shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub thread: u32,
    pub address: u64,
    pub bytes: u64,
    pub place: u32,
    /// Its group of copies.
    pub group: Epoch,
    /// The segment in which the copy was issued, and the number of entries in the log then.
    segment: u32,
    entries: usize,
}

/// The copies of all threads of a block.
#[derive(Default)]
pub(crate) struct Pending {
    /// By thread, oldest first.
    pieces: Vec<VecDeque<Piece>>,
    count: usize,
    /// The copies that were waited for in this segment.
    done: Vec<Piece>,
    /// By word of shared memory: whether a copy writes it.
    words: Vec<u8>,
}

impl Pending {
    /// Whether copies are pending.
    pub fn is_any(&self) -> bool {
        self.count > 0
    }

    /// Whether pending copies write some of these words.
    pub fn has(&self, word: usize, count: usize) -> bool {
        let words = self.words.get(word.min(self.words.len())..).unwrap_or(&[]);
        words[..count.min(words.len())].iter().any(|&copies| copies != 0)
    }

    /// Adds a copy to words that no pending copy writes.
    pub fn add(
        &mut self,
        (thread, address, bytes): (u32, u64, u64),
        (place, group): (u32, Epoch),
        when: (u32, usize),
    ) {
        let (segment, entries) = when;
        if self.pieces.len() <= thread as usize {
            self.pieces.resize_with(thread as usize + 1, VecDeque::new);
        }
        self.pieces[thread as usize].push_back(Piece {
            thread,
            address,
            bytes,
            place,
            group,
            segment,
            entries,
        });
        self.count += 1;
        let words = address as usize / 4..(address + bytes) as usize / 4;
        if self.words.len() < words.end {
            self.words.resize(words.end.next_multiple_of(256), 0);
        }
        self.words[words].fill(1);
    }

    /// A thread has waited for its copies of groups before `groups`: calls `done` for each.
    pub fn wait(&mut self, thread: u32, groups: Epoch, mut done: impl FnMut(&Piece)) {
        let Some(pieces) = self.pieces.get_mut(thread as usize) else { return };
        while let Some(piece) = pieces.front().copied().filter(|piece| piece.group < groups) {
            pieces.pop_front();
            self.count -= 1;
            self.words[piece.address as usize / 4..(piece.address + piece.bytes) as usize / 4].fill(0);
            done(&piece);
            self.done.push(piece);
        }
    }

    /// All threads have met: they know of every copy that was waited for.
    pub fn begin_segment(&mut self) {
        self.done.clear();
    }

    /// Takes all copies that other threads may not know of, each with the number of log entries before it in the segment.
    pub fn take(&mut self, segment: u32) -> Vec<(usize, Piece)> {
        let left = self.pieces.iter_mut().flat_map(|pieces| pieces.drain(..));
        let when = |piece: Piece| (if piece.segment == segment { piece.entries } else { 0 }, piece);
        let mut all: Vec<(usize, Piece)> = self.done.drain(..).chain(left).map(when).collect();
        all.sort_by_key(|&(entries, _)| entries);
        self.count = 0;
        self.words.fill(0);
        all
    }
}
