//! `.local` memory and the `.param` variables of function bodies: private to each lane.

/// Private memory of the lanes of a chunk.
///
/// Words of four bytes are interleaved by lane, because the lanes of a chunk nearly always access the same
/// address together: word `w` of lane `l` is at index `w * lanes + l`.
pub(crate) struct LocalMemory {
    lanes: usize,
    words: Vec<u32>,
    /// What `alloca` hands out, from [`STACK_BASE`] on.
    stack: Vec<u32>,
}

/// Where the stack of `alloca` begins in local memory: behind all that frames may take, and aligned to all that an
/// instruction can ask for.
pub const STACK_BASE: u64 = 1 << 23;

impl LocalMemory {
    /// For so many lanes, which have nothing yet.
    pub fn new(lanes: usize) -> LocalMemory {
        LocalMemory { lanes, words: Vec::new(), stack: Vec::new() }
    }

    /// Makes addresses below `bytes` valid; new memory is zero.
    pub fn grow(&mut self, bytes: u64) {
        let words = bytes.div_ceil(4) as usize * self.lanes;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Makes the first `bytes` of the stack valid.
    pub fn grow_stack(&mut self, bytes: u64) {
        let words = bytes.div_ceil(4) as usize * self.lanes;
        if self.stack.len() < words {
            self.stack.resize(words, 0);
        }
    }

    /// Are these bytes valid?
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        let size = |words: &[u32]| (words.len() / self.lanes * 4) as u64;
        let within = |start: u64, size: u64| start.checked_add(bytes).is_some_and(|end| end <= size);
        match address.checked_sub(STACK_BASE) {
            Some(offset) => within(offset, size(&self.stack)),
            None => within(address, size(&self.words)),
        }
    }

    /// Reads `bytes` (at most 8) little-endian bytes of `lane`; the caller has checked the bounds.
    pub fn read(&self, lane: usize, address: u64, bytes: u32) -> u64 {
        let (words, address) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&self.stack, offset),
            None => (&self.words, address),
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

    /// Writes the low `bytes` (at most 8) bytes of `value`; the caller has checked the bounds.
    pub fn write(&mut self, lane: usize, address: u64, bytes: u32, value: u64) {
        let (words, address) = match address.checked_sub(STACK_BASE) {
            Some(offset) => (&mut self.stack, offset),
            None => (&mut self.words, address),
        };
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
