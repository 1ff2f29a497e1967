//! Values of 16 bits, and what is put together of them or taken apart.
//!
//! A slot of 2 bytes is in vectors as one of 4 whose upper halves are 0. So what changes these halves clears them, and what
//! looks at signs extends the values before.

use ir::Slot;
use isa::Rounding;

use super::{Emitter, HostVectors, Result, Vector};
use crate::operation::{Bits, Float, Half, Operation};

/// The low half of each element.
pub(super) const LOW: [u64; 8] = [0xffff_0000_ffff; 8];

impl<H: HostVectors> Emitter<'_, H> {
    /// An operation on the bits of 16-bit values.
    pub(super) fn short_bits(&mut self, op: Bits, dst: Slot, src: [Slot; 3], part: usize) -> Result {
        let uses = Operation::Bits { op, wide: false, dst, src }.uses();
        let a = self.bits(uses[0], part)?;
        let b = uses.get(1).map_or(Ok(a), |&slot| self.bits(slot, part))?;
        if let Bits::Copy
        | Bits::And
        | Bits::Or
        | Bits::Xor
        | Bits::ShrUnsigned
        | Bits::MinUnsigned
        | Bits::MaxUnsigned = op
        {
            return self.define((dst, part), false, |asm, dst| asm.bits(dst, op, false, a, b));
        }
        let result = self.temporary()?;
        match op {
            Bits::Mad => {
                let c = self.bits(src[2], part)?;
                self.asm.multiply(a, b, false)?;
                self.asm.add_vectors(result.into(), H::SCRATCH, c, false)?;
            }
            Bits::ShrSigned | Bits::AbsSigned => {
                self.extend(result, a, 16, true)?;
                self.asm.bits(result.into(), op, false, result, b)?;
            }
            Bits::MinSigned | Bits::MaxSigned => {
                let other = self.temporary()?;
                self.extend(result, a, 16, true)?;
                self.extend(other, b, 16, true)?;
                self.asm.bits(result.into(), op, false, result, other)?;
                self.block.free_vectors.push(other);
            }
            _ => {
                if op == Bits::Neg {
                    self.asm.bits(H::SCRATCH.into(), Bits::Xor, false, H::SCRATCH, H::SCRATCH)?;
                }
                self.asm.bits(result.into(), op, false, a, b)?;
            }
        }
        let low = self.asm.constant(LOW);
        self.block.free_vectors.push(result);
        self.define((dst, part), false, |asm, dst| asm.and_place(dst, result, low))
    }

    /// The low bits of 32-bit elements, extended to 32 bits.
    pub(super) fn extend(&mut self, to: Vector, from: Vector, bits: u32, signed: bool) -> Result {
        let distance = 32 - bits as i32;
        if distance == 0 {
            return self.asm.copy(to.into(), from, false);
        }
        if signed {
            self.asm.shift(to, from, distance, false)?;
            return self.asm.shift(to, to, -distance, true);
        }
        let low = self.asm.constant([(u64::from(u32::MAX) >> distance) * 0x1_0000_0001; 8]);
        self.asm.and_place(to.into(), from, low)
    }

    /// See [`Operation::Resize`].
    pub(super) fn resize(&mut self, bits: u32, signed: bool, dst: Slot, src: Slot, part: usize) -> Result {
        let low = if self.is_wide(src) {
            self.low_halves(src, part)?;
            H::SCRATCH
        } else {
            self.bits(src, part)?
        };
        self.define_extended(dst, part, low, (bits, signed))
    }

    /// Defines a part of a slot by the low bits of 32-bit elements, extended to the slot's width.
    pub(super) fn define_extended(
        &mut self,
        dst: Slot,
        part: usize,
        from: Vector,
        (bits, signed): (u32, bool),
    ) -> Result {
        let result = self.temporary()?;
        self.extend(result, from, bits, signed)?;
        if self.is_wide(dst) {
            for half in 0..2 {
                self.asm.widen(H::SCRATCH, result, half == 1, signed)?;
                self.define((dst, 2 * part + half), false, |asm, dst| asm.copy(dst, H::SCRATCH, true))?;
            }
            self.block.free_vectors.push(result);
            return Ok(());
        }
        let low = self.asm.constant(LOW);
        let clears = signed && self.is_short(dst);
        self.block.free_vectors.push(result);
        self.define((dst, part), false, |asm, dst| match clears {
            true => asm.and_place(dst, result, low),
            false => asm.copy(dst, result, false),
        })
    }

    /// The low halves of a part of a 64-bit slot, in the scratch register.
    fn low_halves(&mut self, src: Slot, part: usize) -> Result {
        let (first, second) = (self.bits(src, 2 * part)?, self.bits(src, 2 * part + 1)?);
        let other = self.second()?;
        self.asm.narrow(first, second, other)?;
        self.give_back(other);
        Ok(())
    }

    pub(super) fn pack(&mut self, bits: u32, dst: Slot, [low, high]: [Slot; 2], part: usize) -> Result {
        let (low, high) = (self.bits(low, part)?, self.bits(high, part)?);
        let upper = self.temporary()?;
        if bits == 16 {
            self.asm.shift(upper, high, 16, false)?;
            self.block.free_vectors.push(upper);
            return self.define((dst, part), false, |asm, dst| asm.bits(dst, Bits::Or, false, upper, low));
        }
        let whole = self.temporary()?;
        for half in 0..2 {
            self.asm.widen(upper, high, half == 1, false)?;
            self.asm.lower_up(upper, upper)?;
            self.asm.widen(whole, low, half == 1, false)?;
            self.asm.bits(whole.into(), Bits::Or, true, whole, upper)?;
            self.define((dst, 2 * part + half), false, |asm, dst| asm.copy(dst, whole, true))?;
        }
        self.block.free_vectors.extend([upper, whole]);
        Ok(())
    }

    pub(super) fn unpack(&mut self, bits: u32, dst: [Option<Slot>; 2], src: Slot, part: usize) -> Result {
        let [low, high] = dst;
        if bits == 16 {
            let a = self.bits(src, part)?;
            if let Some(low) = low {
                let constant = self.asm.constant(LOW);
                self.define((low, part), false, |asm, dst| asm.and_place(dst, a, constant))?;
            }
            if let Some(high) = high {
                self.asm.shift(H::SCRATCH, a, -16, false)?;
                self.define((high, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))?;
            }
            return Ok(());
        }
        if let Some(low) = low {
            self.low_halves(src, part)?;
            self.define((low, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))?;
        }
        if let Some(high) = high {
            let (first, second) = (self.bits(src, 2 * part)?, self.bits(src, 2 * part + 1)?);
            let (upper, other) = (self.temporary()?, self.temporary()?);
            self.asm.upper_down(upper, first)?;
            self.asm.upper_down(other, second)?;
            let scratch = self.second()?;
            self.asm.narrow(upper, other, scratch)?;
            self.give_back(scratch);
            self.block.free_vectors.extend([upper, other]);
            self.define((high, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))?;
        }
        Ok(())
    }

    /// Of f16 the NaNs are the host's, and bf16 is shifted.
    pub(super) fn half_as_single(&mut self, format: Half, dst: Slot, src: Slot, part: usize) -> Result {
        let a = self.bits(src, part)?;
        self.asm.half_to_single(H::SCRATCH, a, false, format)?;
        let raw = format == Half::F16;
        self.define((dst, part), raw, |asm, dst| match dst.register == H::SCRATCH {
            true => Ok(()),
            false => asm.copy(dst, H::SCRATCH, false),
        })
    }

    pub(super) fn singles_as_halves(
        &mut self,
        (format, rounding): (Half, Rounding),
        dst: Slot,
        src: Slot,
        low: Option<Slot>,
        part: usize,
    ) -> Result {
        let a = self.number(src, part)?;
        let b = low.map(|low| self.number(low, part)).transpose()?;
        let other = self.temporary()?;
        self.asm.single_to_half(a, format, rounding, other)?;
        let Some(b) = b else {
            self.block.free_vectors.push(other);
            return self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false));
        };
        let upper = self.temporary()?;
        self.asm.shift(upper, H::SCRATCH, 16, false)?;
        self.asm.single_to_half(b, format, rounding, other)?;
        self.block.free_vectors.extend([other, upper]);
        self.define((dst, part), false, |asm, dst| asm.bits(dst, Bits::Or, false, upper, H::SCRATCH))
    }

    /// See [`Operation::Half`].
    pub(super) fn half(
        &mut self,
        (op, format, packed): (Float, Half, bool),
        dst: Slot,
        [a, b]: [Slot; 2],
        part: usize,
    ) -> Result {
        let (a, b) = (self.bits(a, part)?, self.bits(b, part)?);
        let (x, y) = (self.temporary()?, self.temporary()?);
        let low = if packed { Some(self.temporary()?) } else { None };
        for upper in [false, true] {
            self.asm.half_to_single(x, a, upper, format)?;
            self.asm.half_to_single(y, b, upper, format)?;
            if let Float::Min | Float::Max = op {
                self.asm.extreme(op, false, x, y)?;
                self.asm.copy(x.into(), H::SCRATCH, false)?;
            } else {
                self.asm.float(x.into(), op, false, Rounding::NearestEven, [x, y, x])?;
            }
            self.asm.single_to_half(x, format, Rounding::NearestEven, y)?;
            match low {
                Some(low) if !upper => self.asm.copy(low.into(), H::SCRATCH, false)?,
                _ => break,
            }
        }
        self.block.free_vectors.extend([x, y].into_iter().chain(low));
        let Some(low) = low else {
            return self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false));
        };
        self.asm.shift(x, H::SCRATCH, 16, false)?;
        self.define((dst, part), false, |asm, dst| asm.bits(dst, Bits::Or, false, x, low))
    }

    /// See [`Operation::Mixed`]. Its NaNs are the host's.
    pub(super) fn mixed(
        &mut self,
        (op, format): (Float, Half),
        rounding: Rounding,
        dst: Slot,
        [a, b, c]: [Slot; 3],
        part: usize,
    ) -> Result {
        let first = self.bits(a, part)?;
        let (x, y) = (self.temporary()?, self.temporary()?);
        self.asm.half_to_single(x, first, false, format)?;
        let sources = if op == Float::Fma {
            let second = self.bits(b, part)?;
            self.asm.half_to_single(y, second, false, format)?;
            [x, y, self.number(c, part)?]
        } else {
            let other = self.number(c, part)?;
            [x, other, other]
        };
        self.block.free_vectors.extend([x, y]);
        self.define((dst, part), true, |asm, dst| asm.float(dst, op, false, rounding, sources))
    }

    /// Its NaNs are the host's.
    pub(super) fn integral(&mut self, rounding: Rounding, dst: Slot, src: Slot, part: usize) -> Result {
        let a = self.number(src, part)?;
        self.define((dst, part), true, |asm, dst| asm.integral(dst, a, rounding))
    }

    pub(super) fn mul_high(&mut self, signed: bool, dst: Slot, [a, b]: [Slot; 2], part: usize) -> Result {
        let (a, b) = (self.bits(a, part)?, self.bits(b, part)?);
        let other = self.temporary()?;
        self.asm.multiply_high(a, b, signed, other)?;
        self.block.free_vectors.push(other);
        self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))
    }
}
