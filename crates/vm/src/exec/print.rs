//! What blocks print that run together: it comes out as if they had run one after the other.
//!
//! The lowest block of a CTA batch that has not ended prints at once; what the others print waits for it. Where a block faults in a path of its
//! own, the blocks below it go on to their ends before the fault is reported, and what those above have printed is forgotten. Narrowest
//! test (`tests/run`): `print_of_teams`.

use super::{Gang, Path, Step};
use crate::fault::Fault;
use crate::mask::Mask;

/// Bytes that may wait until the blocks below have ended.
const MOST_WAITING: usize = 16 << 20;
/// Turns, in which they wait for others, that blocks below one that has faulted get to end.
const GRACE: u32 = 64;

/// What the blocks of a gang have printed.
#[derive(Default)]
pub(super) struct Printed {
    /// By block: what waits for blocks below.
    waiting: Vec<Vec<u8>>,
    /// Bytes of all of it.
    bytes: usize,
    /// The lowest block that has not ended: what it prints comes out at once.
    first: usize,
}

/// A fault that is reported when the blocks below have ended.
pub(super) struct PutOff {
    fault: Box<Fault>,
    /// Turns that are left to them.
    grace: u32,
}

impl Gang<'_> {
    /// A thread of a block has printed some text.
    pub(super) fn print_text(&mut self, block: usize, text: &[u8]) {
        let output = &self.launch.config.output;
        let printed = &mut self.printed;
        if self.block_masks.len() == 1 || block <= printed.first {
            return output.write(text);
        }
        printed.waiting.resize_with(self.block_masks.len(), Vec::new);
        printed.waiting[block].extend_from_slice(text);
        printed.bytes += text.len();
        if printed.bytes > MOST_WAITING {
            self.hand_out(self.block_masks.len());
        }
    }

    /// The blocks of the gang start.
    pub(super) fn begin_printing(&mut self) {
        self.printed.first = 0;
        self.put_off = None;
    }

    /// What waits for blocks that have ended comes out.
    pub(super) fn print_ended(&mut self) {
        if !self.launch.kernel.prints {
            return;
        }
        let ended = |block: &Mask| (self.alive & *block).is_empty();
        let first = self.block_masks.iter().position(|block| !ended(block)).unwrap_or(self.block_masks.len());
        self.hand_out(first + 1);
        self.printed.first = first;
    }

    /// What blocks have printed that faulted, or stand below one that did, comes out; what those above have printed is forgotten.
    pub fn print_until(&mut self, fault: &Fault) {
        let block = self.block_at(fault.block).unwrap_or(0);
        self.forget_above(block);
        self.hand_out(block + 1);
    }

    /// What blocks above this one have printed is forgotten.
    fn forget_above(&mut self, block: usize) {
        for text in self.printed.waiting.iter_mut().skip(block + 1) {
            self.printed.bytes -= text.len();
            text.clear();
        }
    }

    /// What the blocks below `end` have printed comes out.
    fn hand_out(&mut self, end: usize) {
        for text in self.printed.waiting.iter_mut().take(end).filter(|text| !text.is_empty()) {
            self.launch.config.output.write(text);
            self.printed.bytes -= text.len();
            text.clear();
        }
    }

    /// The block of the gang with this `%ctaid`.
    fn block_at(&self, ctaid: [u32; 3]) -> Option<usize> {
        (0..self.batch.blocks).find(|&block| self.ctaid_of(block) == ctaid)
    }

    /// What to do about a fault in a path: the blocks from that of the fault on end. Those below go on, and the fault is reported when they
    /// have ended, if it did not come in the midst of what they were doing, too.
    pub(super) fn end_blocks(&mut self, fault: Box<Fault>, path: &mut Path) -> Step {
        let block = if self.launch.kernel.prints { self.block_at(fault.block).unwrap_or(0) } else { 0 };
        let below = match block {
            0 => Mask::EMPTY,
            _ => Mask::range(0, block * self.registers.rows().block_lanes()),
        };
        if !(path.mask & below).is_empty() || (self.alive & below).is_empty() {
            return Err(fault);
        }
        // Frames keep their users until the next blocks start.
        path.mask = Mask::EMPTY;
        self.forget_above(block);
        self.alive &= below;
        for other in &mut self.paths {
            other.mask &= below;
        }
        self.paths.retain(|other| !other.mask.is_empty());
        self.put_off = Some(PutOff { fault, grace: GRACE });
        Ok(())
    }

    /// The fault that was put off, once the blocks below have ended, or waited for others for long.
    pub(super) fn report_put_off(&mut self, waits: bool) -> Step {
        let Some(put_off) = &mut self.put_off else { return Ok(()) };
        put_off.grace -= u32::from(waits);
        if self.alive.is_empty() || put_off.grace == 0 {
            return self.put_off.take().map_or(Ok(()), |put_off| Err(put_off.fault));
        }
        Ok(())
    }
}

impl Drop for Gang<'_> {
    /// Its blocks end because the launch does.
    fn drop(&mut self) {
        // A second panic would end the process: an output may be what panicked.
        if !std::thread::panicking() {
            self.hand_out(self.block_masks.len());
        }
    }
}
