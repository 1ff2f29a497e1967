//! Which bytes of shared or local memory have been written.

use std::collections::HashMap;

use machine::{BlockAccess, BlockAddresses};

use crate::block::members;
use crate::init::Taint;

/// The written bytes of a memory, and those that were written with undefined values.
#[derive(Default)]
pub(crate) struct Memory {
    /// The written bytes by units of 64, one bit each: at low addresses, and elsewhere.
    low: Vec<u64>,
    high: HashMap<u64, u64>,
    /// The fully written units of 64 bytes at low addresses, one bit each.
    full: Vec<u64>,
    /// Bytes that were written with undefined values.
    pub tainted: HashMap<u64, Taint>,
}

/// Low addresses are below this, in units of 64 bytes. Shared and local memory are there.
const LOW: u64 = 1 << 16;

impl Memory {
    fn word(&self, index: u64) -> u64 {
        match index {
            ..LOW => self.low.get(index as usize).copied().unwrap_or(0),
            _ => self.high.get(&index).copied().unwrap_or(0),
        }
    }

    fn word_mut(&mut self, index: u64) -> &mut u64 {
        if index >= LOW {
            return self.high.entry(index).or_default();
        }
        let index = index as usize;
        if self.low.len() <= index {
            self.low.resize(index + 1, 0);
        }
        &mut self.low[index]
    }

    pub fn write(&mut self, address: u64, bytes: u64) {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let next = ((at / 64 + 1) * 64).min(end);
            let mask = (u64::MAX >> (64 - (next - at))) << (at % 64);
            let word = self.word_mut(at / 64);
            *word |= mask;
            let is_full = *word == u64::MAX;
            if is_full && at / 64 < LOW {
                let index = at as usize / 64 / 64;
                if self.full.len() <= index {
                    self.full.resize(index + 1, 0);
                }
                self.full[index] |= 1 << (at / 64 % 64);
            }
            at = next;
        }
        if !self.tainted.is_empty() {
            self.tainted.retain(|byte, _| !(address..end).contains(byte));
        }
    }

    /// Whether all bytes from `start` to `end` are surely written. May be false although they are.
    pub fn is_full(&self, start: u64, end: u64) -> bool {
        let (mut unit, end) = (start / 64, end.div_ceil(64));
        if end > LOW || unit >= end {
            return false;
        }
        while unit < end {
            let next = (unit | 63).saturating_add(1).min(end);
            let full = self.full.get(unit as usize / 64).copied().unwrap_or(0);
            if !full >> (unit % 64) & u64::MAX >> (64 - (next - unit)) != 0 {
                return false;
            }
            unit = next;
        }
        true
    }

    /// Whether all of these bytes are written.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let next = (at | 63).saturating_add(1).min(end);
            if !self.word(at / 64) >> (at % 64) & u64::MAX >> (64 - (next - at)) != 0 {
                return false;
            }
            at = next;
        }
        true
    }

    /// The unwritten bytes among up to 64, one bit each.
    pub fn unwritten(&self, address: u64, bytes: u64) -> u64 {
        let mut missing = 0;
        let mut at = address;
        let end = address.saturating_add(bytes.min(64));
        while at < end {
            let next = ((at / 64 + 1) * 64).min(end);
            let word = self.word(at / 64);
            let mask = u64::MAX >> (64 - (next - at));
            missing |= (!(word >> (at % 64)) & mask) << (at - address);
            at = next;
        }
        missing
    }
}

/// The least address of an access and the end of its last access, if they are cheap to find.
pub(crate) fn bounds(access: &BlockAccess) -> Option<(u64, u64)> {
    let (least, greatest) = match access.addresses {
        BlockAddresses::Each(all) => members(access.threads)
            .map(|thread| all[thread as usize])
            .fold((u64::MAX, 0), |(least, greatest), at| (at.min(least), at.max(greatest))),
        BlockAddresses::Even { start, width, step, pitch } => {
            let last = access.threads.iter().rposition(|&word| word != 0)?;
            let last = 64 * last as u32 + access.threads[last].ilog2();
            let (columns, rows) = (u64::from(last.min(width - 1)), u64::from(last / width));
            let across = columns.checked_mul(step)?.checked_add(rows.checked_mul(pitch)?)?;
            (start, start.checked_add(across)?)
        }
    };
    Some((least, greatest.checked_add(access.bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_is_written() {
        let mut memory = Memory::default();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut full = 0;
        for _ in 0..2000 {
            memory.write(random(20_000), 1 + random(64));
            let (start, bytes) = (random(20_000), 1 + random(300));
            if memory.is_full(start, start + bytes) {
                full += 1;
                assert!(memory.is_written(start, bytes), "{start} {bytes}");
            }
        }
        assert!(full > 0);
        memory.write(0, 21_000);
        assert!(memory.is_full(0, 20_992) && !memory.is_full(0, 21_000) && !memory.is_full(0, u64::MAX));
    }
}
