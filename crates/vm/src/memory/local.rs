//! `.local` memory and the `.param` variables of function bodies: private to each lane.

use crate::mask::CHUNK_LANES;

/// Private memory of the lanes of a chunk.
///
/// Words of four bytes are interleaved by lane, because the lanes of a chunk nearly always access the same
/// address together: word `w` of lane `l` is at index `w * 256 + l`.
#[derive(Default)]
pub(crate) struct LocalMemory {
    words: Vec<u32>,
}

impl LocalMemory {
    /// Makes addresses below `bytes` valid; new memory is zero.
    pub fn grow(&mut self, bytes: u64) {
        let words = bytes.div_ceil(4) as usize * CHUNK_LANES;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Number of valid bytes a lane.
    pub fn bytes(&self) -> u64 {
        (self.words.len() / CHUNK_LANES * 4) as u64
    }

    /// Reads `bytes` (at most 8) little-endian bytes of `lane`; the caller has checked the bounds.
    pub fn read(&self, lane: usize, address: u64, bytes: u32) -> u64 {
        let word = |i: u64| u64::from(self.words[i as usize * CHUNK_LANES + lane]);
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
        if bytes == 4 && address.is_multiple_of(4) {
            self.words[(address / 4) as usize * CHUNK_LANES + lane] = value as u32;
            return;
        }
        for i in 0..u64::from(bytes) {
            let at = address + i;
            let word = &mut self.words[(at / 4) as usize * CHUNK_LANES + lane];
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
        let mut memory = LocalMemory::default();
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
