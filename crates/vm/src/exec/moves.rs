//! Copies, packing, addresses as values, special registers.

use ir::{Clock, Width};
use isa::Space;
use smallvec::SmallVec;

use super::{Active, Chunk};
use crate::code::{Base, Special};
use crate::mask::{Mask, WARP_LANES};
use crate::memory::resolve_generic;
use crate::registers::{Scalar, SlotRef, Window};

impl Chunk<'_> {
    pub(super) fn copy(&mut self, dst: SlotRef, src: SlotRef, active: Active) {
        let whole = self.whole(&active, dst);
        self.move_between(dst, active.window, src, active.window, active.mask, whole);
    }

    /// Copies a slot of one window to a slot of the same width of another.
    pub(super) fn move_between(
        &mut self,
        dst: SlotRef,
        to: Window,
        src: SlotRef,
        from: Window,
        mask: Mask,
        whole: bool,
    ) {
        match self.registers.scalar(from, src) {
            Some(scalar) if whole => return self.registers.set_scalar(to, dst, scalar),
            Some(scalar) if scalar.is_uniform() => {
                return self.registers.set_all(to, dst, scalar.base, mask, false);
            }
            _ => {}
        }
        if dst.width == Width::Pred {
            let value = self.registers.predicate(from, src);
            let mask = if whole { Mask::ALL } else { mask };
            return self.registers.set_predicate(to, dst, value, mask);
        }
        let source = self.registers.read(from, src);
        let target = if whole { self.registers.overwrite(to, dst) } else { self.registers.scratch(0) };
        // SAFETY: both arrays have `lanes` elements of this width; they are the same or do not overlap.
        unsafe { std::ptr::copy(source, target, dst.width.bytes() * self.lanes) }
        if !whole {
            self.registers.merge(to, dst, 0, mask);
        }
    }

    pub(super) fn not(&mut self, dst: SlotRef, src: SlotRef, active: Active) {
        let value = !self.registers.predicate(active.window, src);
        if let Some(uniform) = self.registers.uniform(active.window, src)
            && self.whole(&active, dst)
        {
            return self.registers.set_scalar(active.window, dst, Scalar::uniform(uniform ^ 1));
        }
        let mask = if self.whole(&active, dst) { Mask::ALL } else { active.mask };
        self.registers.set_predicate(active.window, dst, value, mask);
    }

    pub(super) fn resize(&mut self, dst: SlotRef, src: SlotRef, bits: u32, signed: bool, active: Active) {
        let extend = |value: u64| {
            let shift = 64 - bits;
            if signed { ((value << shift) as i64 >> shift) as u64 } else { value << shift >> shift }
        };
        if let Some(value) = self.registers.uniform(active.window, src) {
            let whole = self.whole(&active, dst);
            return self.registers.set_all(active.window, dst, extend(value), active.mask, whole);
        }
        self.registers.read(active.window, src);
        self.write_lanes(dst, active, |chunk, lane| extend(chunk.registers.get(active.window, src, lane)));
    }

    pub(super) fn offset(&mut self, dst: SlotRef, src: SlotRef, addend: u64, active: Active) {
        if let Some(scalar) = self.registers.scalar(active.window, src)
            && self.whole(&active, dst)
        {
            let base = scalar.base.wrapping_add(addend);
            return self.registers.set_scalar(active.window, dst, Scalar { base, ..scalar });
        }
        self.write_lanes(dst, active, |chunk, lane| {
            chunk.registers.get(active.window, src, lane).wrapping_add(addend)
        });
    }

    pub(super) fn pack(&mut self, dst: SlotRef, src: &[SlotRef], bits: u32, active: Active) {
        let join = |parts: &mut dyn Iterator<Item = u64>| {
            let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
            parts.enumerate().fold(0, |all, (i, part)| all | (part & mask) << (i as u32 * bits))
        };
        let uniform: Option<SmallVec<[u64; 8]>> =
            src.iter().map(|&s| self.registers.uniform(active.window, s)).collect();
        if let Some(values) = uniform {
            let whole = self.whole(&active, dst);
            let value = join(&mut values.into_iter());
            return self.registers.set_all(active.window, dst, value, active.mask, whole);
        }
        self.write_lanes(dst, active, |chunk, lane| {
            join(&mut src.iter().map(|&s| chunk.registers.get(active.window, s, lane)))
        });
    }

    pub(super) fn unpack(&mut self, dst: &[Option<SlotRef>], src: SlotRef, bits: u32, active: Active) {
        let part = |value: u64, i: usize| {
            let value = value >> (i as u32 * bits);
            if bits == 64 { value } else { value & ((1 << bits) - 1) }
        };
        let uniform = self.registers.uniform(active.window, src);
        // The source may be one of the destinations: read it before they are written.
        let values: Vec<u64> = match uniform {
            Some(_) => Vec::new(),
            None => (0..self.lanes).map(|lane| self.registers.get(active.window, src, lane)).collect(),
        };
        for (i, slot) in dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            match uniform {
                Some(value) => {
                    let whole = self.whole(&active, slot);
                    self.registers.set_all(active.window, slot, part(value, i), active.mask, whole);
                }
                None => self.write_lanes(slot, active, |_, lane| part(values[lane], i)),
            }
        }
    }

    /// Start of an address that does not come from a slot.
    pub(super) fn fixed_base(&self, base: Base, frame: u32) -> u64 {
        let frame = &self.frames[frame];
        match base {
            Base::Slot(_) | Base::Zero => 0,
            Base::Frame => frame.local_base.into(),
            Base::FrameParam(i) => frame.params.get(i as usize).copied().unwrap_or(0).into(),
            Base::FrameReturn(i) => frame.returns.get(i as usize).copied().unwrap_or(0).into(),
        }
    }

    pub(super) fn is_space(&mut self, dst: SlotRef, src: SlotRef, space: Space, active: Active) {
        self.write_lanes(dst, active, |chunk, lane| {
            u64::from(resolve_generic(chunk.registers.get(active.window, src, lane)).0 == space)
        });
    }

    pub(super) fn read_clock(&mut self, dst: SlotRef, clock: Clock, active: Active) {
        let (value, high) = match clock {
            Clock::Cycles { high } => (self.instructions, high),
            Clock::Nanoseconds { high } => (self.launch.nanoseconds(), high),
        };
        let whole = self.whole(&active, dst);
        let value = if high { value >> 32 } else { value };
        self.registers.set_all(active.window, dst, value, active.mask, whole);
    }

    pub(super) fn active_mask(&mut self, dst: SlotRef, active: Active) {
        self.write_lanes(dst, active, |_, lane| active.mask.warp(lane / WARP_LANES).into());
    }

    /// Sets the slot of a special register; with `all` even if it is the same in every block.
    pub(super) fn set_special(&mut self, window: Window, slot: SlotRef, special: Special, all: bool) {
        if !all && !special.depends_on_block() {
            return;
        }
        match special.scalar(self.launch, self.ctaid, self.first_thread, self.lanes) {
            Some(scalar) => self.registers.set_scalar(window, slot, scalar),
            None => {
                for lane in 0..self.lanes {
                    let thread = self.first_thread + lane as u32;
                    let value = special.value(self.launch, self.ctaid, thread);
                    self.registers.set(window, slot, lane, value);
                }
            }
        }
    }
}
