//! Copies of a block's threads (`cp.async`) that have not been waited for, as long as nobody touches what they bring.
//!
//! They are kept beside the log of the segment, across barriers. Whoever touches a word that a copy writes sends the segment to the shadow
//! memory, for good; a copy that has been waited for is as if its thread had written then. synccheck without racecheck looks at nothing
//! else, as long as no access meets a copy.

use std::collections::VecDeque;

use crate::clock::Epoch;

/// What a thread's copy writes to shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub thread: u32,
    pub address: u64,
    pub bytes: u64,
    pub place: u32,
    /// The group of copies that it belongs to.
    pub group: Epoch,
    /// The segment in which it was given, and how many accesses the log had.
    segment: u32,
    entries: usize,
}

/// The copies of all threads of a block.
#[derive(Default)]
pub(crate) struct Pending {
    /// By thread, oldest first.
    pieces: Vec<VecDeque<Piece>>,
    count: usize,
    /// Those that were waited for in this segment.
    done: Vec<Piece>,
    /// By word of shared memory: copies that write there.
    words: Vec<u8>,
}

impl Pending {
    /// Some copies have not been waited for.
    pub fn is_any(&self) -> bool {
        self.count > 0
    }

    /// Copies write to some of so many words.
    pub fn has(&self, word: usize, count: usize) -> bool {
        let words = self.words.get(word.min(self.words.len())..).unwrap_or(&[]);
        words[..count.min(words.len())].iter().any(|&copies| copies != 0)
    }

    /// A thread gives a copy that writes to words that no copy writes to.
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

    /// A thread has waited for its copies of groups before this one: calls `done` for each.
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

    /// All threads have met: they know of all that has been waited for.
    pub fn begin_segment(&mut self) {
        self.done.clear();
    }

    /// Takes all copies that others may not know of, with the number of accesses of the log that came before them in a segment.
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
