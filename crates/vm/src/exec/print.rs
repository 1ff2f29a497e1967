//! Output of CTAs that run together. It appears in the order in which the CTAs would print if each ran alone.
//!
//! The lowest CTA of a batch that has not ended prints at once; the output of the others is held back until it is
//! their time slice. If a CTA faults in a path that has no lanes of lower CTAs, the lower CTAs run to their ends before
//! the fault is reported, and held output of higher CTAs is discarded. Narrowest test (`tests/run`): `print_of_teams`.

use machine::Fault;
use machine::mask::Mask;

use super::{Gang, Path, Step};

/// The most bytes that may be held back.
const MOST_WAITING: usize = 16 << 20;
/// How many time slices the CTAs below a faulted one may end in a waiting loop before the fault is reported anyway.
const GRACE: u32 = 64;

/// The output of a gang's CTAs.
#[derive(Default)]
pub(super) struct Printed {
    /// For each CTA, the held output.
    waiting: Vec<Vec<u8>>,
    /// Bytes of all held output.
    bytes: usize,
    /// The lowest CTA that has not ended: its output is written at once.
    first: usize,
}

/// A fault that will be reported when the lower CTAs have ended.
pub(super) struct PutOff {
    fault: Box<Fault>,
    /// Waiting time slices that the lower CTAs have left.
    grace: u32,
}

impl Gang<'_> {
    /// Prints text of a thread of CTA `block`.
    pub(super) fn print_text(&mut self, block: usize, text: &[u8]) {
        let output = &self.launch.config().output;
        let printed = &mut self.printed;
        if self.threads.block_masks.len() == 1 || block <= printed.first {
            return output.write(text);
        }
        printed.waiting.resize_with(self.threads.block_masks.len(), Vec::new);
        printed.waiting[block].extend_from_slice(text);
        printed.bytes += text.len();
        if printed.bytes > MOST_WAITING {
            self.hand_out(self.threads.block_masks.len());
        }
    }

    /// Resets the state when the gang's CTAs start.
    pub(super) fn begin_printing(&mut self) {
        self.printed.first = 0;
        self.put_off = None;
    }

    /// Writes held output up to the lowest CTA that has not ended.
    pub(super) fn print_ended(&mut self) {
        if !self.launch.kernel().prints {
            return;
        }
        let ended = |block: &Mask| (self.alive & *block).is_empty();
        let first = self
            .threads
            .block_masks
            .iter()
            .position(|block| !ended(block))
            .unwrap_or(self.threads.block_masks.len());
        self.hand_out(first + 1);
        self.printed.first = first;
    }

    /// Writes the held output of the CTA that faulted and of all lower ones; discards that of higher CTAs.
    pub fn print_until(&mut self, fault: &Fault) {
        let block = self.block_at(fault.block).unwrap_or(0);
        self.forget_above(block);
        self.hand_out(block + 1);
    }

    /// Discards held output of CTAs above this one.
    fn forget_above(&mut self, block: usize) {
        for text in self.printed.waiting.iter_mut().skip(block + 1) {
            self.printed.bytes -= text.len();
            text.clear();
        }
    }

    /// Writes the held output of the CTAs below `end`.
    fn hand_out(&mut self, end: usize) {
        for text in self.printed.waiting.iter_mut().take(end).filter(|text| !text.is_empty()) {
            self.launch.config().output.write(text);
            self.printed.bytes -= text.len();
            text.clear();
        }
    }

    /// The gang's CTA with this `%ctaid`.
    fn block_at(&self, ctaid: [u32; 3]) -> Option<usize> {
        (0..self.threads.batch.blocks).find(|&block| self.ctaid_of(block) == ctaid)
    }

    /// Handles a fault in a path. If the path has lanes of lower CTAs, or no lower CTA is still running, returns the
    /// fault. Otherwise ends the faulting CTA and all higher ones; lower CTAs continue, and the fault is reported
    /// when they have ended.
    pub(super) fn end_blocks(&mut self, fault: Box<Fault>, path: &mut Path) -> Step {
        let block = if self.launch.kernel().prints { self.block_at(fault.block).unwrap_or(0) } else { 0 };
        let below = match block {
            0 => Mask::EMPTY,
            _ => Mask::range(0, block * self.registers.rows().block_lanes()),
        };
        if !(path.mask & below).is_empty() || (self.alive & below).is_empty() {
            return Err(fault);
        }
        // The frames of the removed lanes stay in use until the next CTAs start.
        path.mask = Mask::EMPTY;
        self.forget_above(block);
        self.alive &= below;
        for other in &mut self.scheduler.paths {
            other.mask &= below;
        }
        self.scheduler.paths.retain(|other| !other.mask.is_empty());
        self.put_off = Some(PutOff { fault, grace: GRACE });
        Ok(())
    }

    /// Reports the deferred fault once the lower CTAs have ended or have waited for others for long.
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
    /// Writes all held output, because the launch ends.
    fn drop(&mut self) {
        // The output may be what panicked, and a second panic would abort the process.
        if !std::thread::panicking() {
            self.hand_out(self.threads.block_masks.len());
        }
    }
}
