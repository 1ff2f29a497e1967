//! `.local` memory and the `.param` variables of function bodies: private to each lane.

use machine::STACK_BASE;
use machine::mask::Mask;

/// Private memory of the lanes of a gang.
///
/// Words of four bytes are interleaved by lane, because the lanes of a gang nearly always access the same
/// address together: word `w` of lane `l` is at index `w * lanes + l`.
pub(crate) struct LocalMemory {
    lanes: usize,
    frames: Words,
    /// The memory of `alloca`, from [`STACK_BASE`] on.
    stack: Words,
}

/// Where the frames or the stack are, until they grow.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// The first address.
    pub start: u64,
    /// Bytes of each lane.
    pub bytes: u64,
    /// The word at the first address, in all lanes, and behind them the next words.
    pub rows: *mut u32,
}

/// The frames or the stack.
#[derive(Default)]
struct Words {
    words: Vec<u32>,
    /// Words of each lane that may be nonzero. All later words are zero.
    written: usize,
}

impl Words {
    fn grow(&mut self, bytes: u64, lanes: usize) {
        let words = bytes.div_ceil(4) as usize * lanes;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    fn reset(&mut self, lanes: usize) {
        // A `memset` of zero bytes takes 0.1 us on AVX-512: its masked store still touches the page.
        if self.written > 0 {
            self.words[..std::mem::take(&mut self.written) * lanes].fill(0);
        }
    }
}

impl LocalMemory {
    /// Empty memory for `lanes` lanes.
    pub fn new(lanes: usize) -> LocalMemory {
        LocalMemory { lanes, frames: Words::default(), stack: Words::default() }
    }

    /// Makes addresses below `bytes` valid. New memory is zero.
    pub fn grow(&mut self, bytes: u64) {
        self.frames.grow(bytes, self.lanes);
    }

    /// Makes the first `bytes` of the stack valid.
    pub fn grow_stack(&mut self, bytes: u64) {
        self.stack.grow(bytes, self.lanes);
    }

    /// The words of a row.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Its parts. `writes`: any word may be written.
    pub fn parts(&mut self, writes: bool) -> [Part; 2] {
        [(0, &mut self.frames), (STACK_BASE, &mut self.stack)].map(|(start, part)| {
            let words = part.words.len() / self.lanes;
            if writes {
                part.written = words;
            }
            Part { start, bytes: 4 * words as u64, rows: part.words.as_mut_ptr() }
        })
    }

    /// Zeroes all of it, as at the start of a block.
    pub fn reset(&mut self) {
        self.frames.reset(self.lanes);
        self.stack.reset(self.lanes);
    }

    /// Zeroes whole words of frames from address `start` to `end`, in the lanes of a mask.
    pub fn clear(&mut self, mask: &Mask, start: u64, end: u64) {
        let (start, end) = ((start / 4) as usize, (end.div_ceil(4) as usize).min(self.frames.written));
        for word in start..end {
            let word = &mut self.frames.words[word * self.lanes..][..self.lanes];
            for (lanes, &mask) in word.chunks_mut(64).zip(&mask.0) {
                match mask {
                    0 => {}
                    u64::MAX => lanes.fill(0),
                    _ => lanes
                        .iter_mut()
                        .enumerate()
                        .filter(|(i, _)| mask >> i & 1 != 0)
                        .for_each(|(_, w)| *w = 0),
                }
            }
        }
    }

    /// Whether these bytes are valid.
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        let size = |part: &Words| (part.words.len() / self.lanes * 4) as u64;
        let within = |start: u64, size: u64| start.checked_add(bytes).is_some_and(|end| end <= size);
        match address.checked_sub(STACK_BASE) {
            Some(offset) => within(offset, size(&self.stack)),
            None => within(address, size(&self.frames)),
        }
    }

    /// The words of all lanes in the part that contains an address, and the first address of that part.
    pub fn words(&self, address: u64) -> (&[u32], u64) {
        if address >= STACK_BASE { (&self.stack.words, STACK_BASE) } else { (&self.frames.words, 0) }
    }

    /// The word at a multiple of 4, in all lanes. The caller has checked the bounds.
    fn word(&mut self, address: u64) -> &mut [u32] {
        let (part, address) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&mut self.stack, offset),
            None => (&mut self.frames, address),
        };
        &mut part.words[(address / 4) as usize * self.lanes..][..self.lanes]
    }

    /// Like `word`, for writing.
    pub fn word_to_write(&mut self, address: u64) -> &mut [u32] {
        let (part, offset) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&mut self.stack, offset),
            None => (&mut self.frames, address),
        };
        part.written = part.written.max((offset / 4) as usize + 1);
        self.word(address)
    }

    /// Whether all bytes from `first` to `last + bytes` are valid and in one part.
    pub fn contains_all(&self, first: u64, last: u64, bytes: u64) -> bool {
        self.contains(first, 1)
            && last
                .checked_sub(first)
                .and_then(|more| more.checked_add(bytes))
                .is_some_and(|all| self.contains(first, all))
    }

    /// Reads `bytes` (at most 8) little-endian bytes of `lane`. The caller has checked the bounds.
    pub fn read(&self, lane: usize, address: u64, bytes: u32) -> u64 {
        let (words, address) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&self.stack.words, offset),
            None => (&self.frames.words, address),
        };
        let word = |i: u64| u64::from(words[i as usize * self.lanes + lane]);
        let shift = address % 4 * 8;
        let mut value = word(address / 4) >> shift;
        let mut have = 32 - shift;
        while have < u64::from(bytes) * 8 {
            value |= word((address * 8 + have) / 32) << have;
            have += 32;
        }
        if bytes < 8 { value & ((1 << (bytes * 8)) - 1) } else { value }
    }

    /// Writes the low `bytes` (at most 8) bytes of `value`. The caller has checked the bounds.
    pub fn write(&mut self, lane: usize, address: u64, bytes: u32, value: u64) {
        let (Words { words, written }, address) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&mut self.stack, offset),
            None => (&mut self.frames, address),
        };
        *written = (*written).max((address + u64::from(bytes)).div_ceil(4) as usize);
        if bytes == 4 && address.is_multiple_of(4) {
            words[(address / 4) as usize * self.lanes + lane] = value as u32;
            return;
        }
        for i in 0..u64::from(bytes) {
            let at = address + i;
            let word = &mut words[(at / 4) as usize * self.lanes + lane];
            let shift = at % 4 * 8;
            *word = *word & !(0xff << shift) | u32::from((value >> (i * 8)) as u8) << shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_touches_the_lanes_and_words_it_is_told() {
        let mut memory = LocalMemory::new(80);
        memory.grow(64);
        memory.grow_stack(16);
        for lane in 0..80 {
            for address in [0, 16, 20, 40] {
                memory.write(lane, address, 4, 7);
            }
            memory.write(lane, STACK_BASE + 8, 4, 7);
        }
        let mut mask = Mask::first(64);
        mask.insert(70);
        memory.clear(&mask, 16, 64);
        for lane in 0..80 {
            let kept = if mask.contains(lane) { 0 } else { 7 };
            let expected = [7, kept, kept, kept];
            assert_eq!([0, 16, 20, 40].map(|address| memory.read(lane, address, 4)), expected, "{lane}");
        }
        memory.reset();
        for lane in 0..80 {
            assert_eq!([0, 16, 40, STACK_BASE + 8].map(|address| memory.read(lane, address, 4)), [0; 4]);
        }
    }

    #[test]
    fn bytes_come_back_at_every_width_and_offset() {
        let mut memory = LocalMemory::new(256);
        memory.grow(40);
        for lane in [0, 7, 255] {
            for bytes in [1, 2, 4, 8] {
                for address in 0..24 {
                    let value = 0x8899_aabb_ccdd_eeff_u64.rotate_left(address as u32 * 8 + lane as u32);
                    let value = if bytes < 8 { value & ((1 << (bytes * 8)) - 1) } else { value };
                    memory.write(lane, address, bytes, value);
                    assert_eq!(memory.read(lane, address, bytes), value, "{lane} {address} {bytes}");
                    for i in 0..u64::from(bytes) {
                        assert_eq!(memory.read(lane, address + i, 1), value >> (i * 8) & 0xff);
                    }
                }
            }
        }
    }
}
