//! Values of single lanes, and predicates as masks.

use ir::Width;
use lanes::Factor;
use machine::mask::{GROUP_LANES, Mask};

use super::compacted::is_compacted_only;
use super::{Registers, SlotRef, Window, form};
use crate::bytes::{load, load_unaligned, store};

impl Registers {
    /// The value of one lane.
    #[inline]
    pub fn get(&self, w: Window, slot: SlotRef, lane: usize) -> u64 {
        let state = self.state(w, slot);
        if state.forms & form::AFFINE != 0 {
            let uniform = state.affine.is_uniform();
            let value = if uniform { state.affine.base } else { state.affine.at(lane, self.rows) };
            return slot.width.truncate(value);
        }
        if state.forms & form::MEMORY != 0 {
            let group = self.memory(w, slot).at_group(lane / GROUP_LANES);
            // SAFETY: memory that is a form of a slot has a value for every lane and stays alive (see `fill`).
            return unsafe { load_unaligned(group, slot.width, lane % GROUP_LANES) };
        }
        if state.forms & form::ROWS != 0 {
            let Factor { array, step, pitch, block_stride, splat } = state.memory;
            let (groups, rows, _) = self.rows.groups();
            let (group, in_group) = (lane / GROUP_LANES, lane % GROUP_LANES);
            let (row, group) = (group / groups, group % groups);
            let at =
                array.wrapping_add(group.wrapping_mul(step)).wrapping_add((row % rows).wrapping_mul(pitch));
            let at = at.wrapping_add((row / rows).wrapping_mul(block_stride));
            // SAFETY: as for the form above.
            return unsafe { load_unaligned(at, slot.width, if splat { 0 } else { in_group }) };
        }
        if is_compacted_only(state.forms)
            && let Some(value) = self.get_compacted(slot, lane)
        {
            return value;
        }
        // SAFETY: `lane` is below `lanes`, and arrays are aligned.
        unsafe { load(self.array(w, slot), slot.width, lane) }
    }

    /// The values of the first lanes as 64-bit numbers. Changes no form, for observers.
    pub fn peek(&self, w: Window, slot: SlotRef, values: &mut [u64]) {
        let forms = self.state(w, slot).forms;
        let in_array = forms & (form::AFFINE | form::MEMORY | form::ROWS) == 0 && !is_compacted_only(forms);
        match slot.width {
            Width::W32 if in_array => {
                let array = self.array(w, slot).cast::<u32>();
                // SAFETY: the array has an element for every lane, and is aligned.
                values.iter_mut().enumerate().for_each(|(i, value)| *value = unsafe { *array.add(i) }.into());
            }
            Width::W64 if in_array => {
                let array = self.array(w, slot).cast::<u64>();
                // SAFETY: as above.
                values.iter_mut().enumerate().for_each(|(i, value)| *value = unsafe { *array.add(i) });
            }
            _ => values.iter_mut().enumerate().for_each(|(lane, value)| *value = self.get(w, slot, lane)),
        }
    }

    /// The values of the first lanes as 64-bit numbers. `values` covers whole groups.
    pub fn widen(&mut self, w: Window, slot: SlotRef, values: &mut [u64]) {
        if let Some(value) = self.uniform(w, slot) {
            return values.fill(value);
        }
        let array = self.read(w, slot);
        let (to, lanes) = (values.as_mut_ptr().cast(), values.len());
        // SAFETY: the array has an element for every lane.
        unsafe {
            match slot.width {
                Width::W32 => {
                    (self.helpers.extend)(to, lanes::LaneWidth::B8, array, lanes::Extend::U32, lanes)
                }
                Width::W64 => std::ptr::copy_nonoverlapping(array, to, 8 * lanes),
                width => values.iter_mut().enumerate().for_each(|(i, v)| *v = load(array, width, i)),
            }
        }
    }

    /// Sets one lane. The other lanes keep their values.
    #[inline]
    pub fn set(&mut self, w: Window, slot: SlotRef, lane: usize, value: u64) {
        let array = self.update(w, slot);
        // SAFETY: `lane` is below `lanes`, and arrays are aligned.
        unsafe { store(array, slot.width, lane, value) }
    }

    /// A predicate as a set of lanes. Bits beyond the existing lanes are meaningless.
    #[inline]
    pub fn predicate(&self, w: Window, slot: SlotRef) -> Mask {
        let state = self.state(w, slot);
        if state.forms & form::AFFINE != 0 {
            return if state.affine.base != 0 { Mask::ALL } else { Mask::EMPTY };
        }
        // SAFETY: the array of a predicate is a `Mask`: `array_bytes` gives it the size, and every array is aligned as one.
        unsafe { *self.array(w, slot).cast::<Mask>() }
    }

    /// Sets the lanes of `mask` to their values in `value`.
    #[inline]
    pub fn set_predicate(&mut self, w: Window, slot: SlotRef, value: Mask, mask: Mask) {
        let old = self.predicate(w, slot);
        let array = self.overwrite(w, slot);
        // SAFETY: the array of a predicate is a `Mask`: `array_bytes` gives it the size, and every array is aligned as one.
        unsafe { *array.cast::<Mask>() = old.without(mask) | (value & mask) }
    }
}
