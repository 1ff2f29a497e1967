//! Shifts of 32-bit values by literals, several at once.

use ir::Slot;

use super::{Emitter, HostVectors, Result};
use crate::operation::Bits;

impl<H: HostVectors> Emitter<'_, H> {
    /// Two values one behind the other, shifted.
    pub(super) fn funnel(&mut self, up: u32, dst: Slot, [high, low]: [Slot; 2], part: usize) -> Result {
        let (high, low) = (self.bits(high, part)?, self.bits(low, part)?);
        let upper = self.temporary()?;
        self.asm.shift(upper, high, up as i32, false)?;
        self.asm.shift(H::SCRATCH, low, up as i32 - 32, false)?;
        self.block.free_vectors.push(upper);
        self.define((dst, part), false, |asm, dst| asm.bits(dst, Bits::Or, false, upper, H::SCRATCH))
    }

    /// A bit field: shifted up and down.
    pub(super) fn field(
        &mut self,
        [up, down]: [u32; 2],
        signed: bool,
        dst: Slot,
        src: Slot,
        part: usize,
    ) -> Result {
        let mut value = self.bits(src, part)?;
        for (distance, signed) in [(up as i32, false), (-(down as i32), signed)] {
            if distance != 0 {
                self.asm.shift(H::SCRATCH, value, distance, signed)?;
                value = H::SCRATCH;
            }
        }
        self.define((dst, part), false, |asm, dst| asm.copy(dst, value, false))
    }
}
