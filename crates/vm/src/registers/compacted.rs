//! Compacted registers: the values of few active lanes, stored consecutively, so that an operation costs only as much
//! as those lanes.
//!
//! After a divergent branch, the lanes of one path are scattered over the gang. A slot's *compacted form* holds the
//! values of these lanes only. The array holds the values of all other lanes; its elements for the compacted lanes are
//! stale. An operation that needs the array first writes the compacted values back to it. Predicates have no compacted
//! form, because branches need them as masks.
//!
//! A path compacts its lanes if they are at most half of the gang and spread over at least twice as many lanes. It first runs eight
//! operations, and one more for every 32 of its lanes (`exec/active.rs`): lanes that leave a loop one after the other would gain
//! nothing. Pure operations and moves then cost what a gang of that many lanes costs. Measured (benches/RESULTS.md, "Diverging
//! paths"): 2 paths cost 1.5 times one path, 8 cost 3.4 times, 32 cost 11 times.
//!
//! Narrowest tests: `tests/run`: `few_lanes`, `half_of_lanes`; unit tests of `registers.rs` and `mask.rs`; `lanes`:
//! `tests/handlers/helpers.rs`.

use ir::Width;
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};

use super::{Groups, Registers, SlotRef, Window, form, lane_width};
use crate::bytes::{AlignedBytes, load};

/// The most lanes that can be compacted.
pub(crate) const COMPACTED_LANES: usize = GANG_LANES / 2;

/// The compacted lanes, and the compacted forms of the slots of one window.
pub(super) struct Compaction {
    mask: Mask,
    window: Window,
    /// Groups of a compacted form. 0: no lanes are compacted.
    groups: usize,
    /// Compacted forms, by index of the slot.
    data: AlignedBytes,
    /// Slots that have had a compacted form, and one bit for each by its index.
    slots: Vec<SlotRef>,
    noted: Vec<u64>,
}

impl Compaction {
    fn new() -> Compaction {
        Compaction {
            mask: Mask::EMPTY,
            window: Window::default(),
            groups: 0,
            data: AlignedBytes::zeroed(0),
            slots: Vec::new(),
            noted: Vec::new(),
        }
    }

    /// Notes that a slot has a compacted form.
    fn note(&mut self, slot: SlotRef) {
        let (word, bit) = (slot.index as usize / 64, 1 << (slot.index % 64));
        if word >= self.noted.len() {
            self.noted.resize(word + 1, 0);
        }
        if self.noted[word] & bit == 0 {
            self.noted[word] |= bit;
            self.slots.push(slot);
        }
    }

    /// Bytes from slot to slot. After the lanes there is room for one more group of any width.
    fn stride(&self) -> usize {
        (self.groups + 1) * GROUP_LANES * size_of::<u64>()
    }

    /// The address of a slot's compacted form.
    fn at(&self, slot: SlotRef) -> *mut u8 {
        let offset = slot.index as usize * self.stride();
        debug_assert!(offset + self.stride() <= self.data.len());
        // SAFETY: there is room for every slot of the window (`Registers::compact`).
        unsafe { self.data.as_ptr().add(offset) }
    }
}

impl Registers {
    /// Starts to compact the lanes of a mask, at most [`COMPACTED_LANES`], in the slots of a window. If lanes are compacted
    /// already, they must be the same lanes of the same window. Returns the number of groups of a compacted form.
    #[inline]
    pub fn compact(&mut self, w: Window, mask: &Mask) -> usize {
        if let Some(compaction) = &self.compaction
            && compaction.groups != 0
        {
            debug_assert!(compaction.mask == *mask && compaction.window == w, "one set of lanes at a time");
            return compaction.groups;
        }
        self.begin_compaction(w, mask)
    }

    #[inline(never)]
    fn begin_compaction(&mut self, w: Window, mask: &Mask) -> usize {
        let compaction = self.compaction.get_or_insert_with(|| Box::new(Compaction::new()));
        (compaction.mask, compaction.window) = (*mask, w);
        compaction.groups = (mask.count() as usize).div_ceil(GROUP_LANES);
        let bytes = (self.states.len() - w.index as usize) * compaction.stride();
        if bytes > compaction.data.len() {
            compaction.data = AlignedBytes::zeroed(bytes.next_power_of_two());
        }
        compaction.groups
    }

    /// Ends the compaction: all values are in the arrays again.
    #[inline]
    pub fn expand(&mut self) {
        if self.compaction.as_ref().is_some_and(|compaction| compaction.groups != 0) {
            self.expand_slots();
        }
    }

    #[inline(never)]
    fn expand_slots(&mut self) {
        let Some(compaction) = &mut self.compaction else { return };
        let (w, mut slots) = (compaction.window, std::mem::take(&mut compaction.slots));
        for slot in slots.drain(..) {
            self.expand_slot(w, slot);
            self.state_mut(w, slot).forms &= !form::COMPACTED;
        }
        if let Some(compaction) = &mut self.compaction {
            compaction.slots = slots;
            compaction.noted.fill(0);
            compaction.groups = 0;
        }
    }

    /// Writes the values of a slot's compacted form to its array, if the array does not have them.
    pub(super) fn expand_slot(&mut self, w: Window, slot: SlotRef) {
        if !is_compacted_only(self.state(w, slot).forms) {
            return;
        }
        if let Some(compaction) = &self.compaction {
            let (array, width) = (self.array(w, slot), lane_width(slot.width));
            // SAFETY: the slot's array has an element for every lane. Its compacted form has one for each lane of the
            // mask, and one more group.
            unsafe { (self.helpers.expand)(array, compaction.at(slot), width, &compaction.mask.0) }
        }
        self.state_mut(w, slot).forms |= form::ARRAY;
    }

    /// The values of a slot in the compacted lanes for a vector handler.
    #[inline]
    pub fn compacted_source(&mut self, w: Window, slot: SlotRef) -> Groups {
        if self.state(w, slot).forms & form::COMPACTED != 0 {
            return Groups { array: self.compacted_target(slot), step: slot.group_bytes.into() };
        }
        self.compact_slot(w, slot)
    }

    /// Like [`Registers::compacted_source`], for a slot without a compacted form. Gives it one, except for a predicate
    /// or a uniform value.
    #[inline(never)]
    fn compact_slot(&mut self, w: Window, slot: SlotRef) -> Groups {
        if slot.width == Width::Pred {
            return self.compacted_predicate(w, slot);
        }
        if self.uniform(w, slot).is_some() {
            // One group serves for all groups, even if the array has more.
            return Groups { step: 0, ..self.source(w, slot) };
        }
        let array = self.read(w, slot);
        if let Some(compaction) = &mut self.compaction {
            let width = lane_width(slot.width);
            // SAFETY: the array has an element for every lane. The compacted form has room for the lanes of the mask
            // and one more group.
            unsafe { (self.helpers.compress)(compaction.at(slot), array, width, &compaction.mask.0) }
            compaction.note(slot);
        }
        self.state_mut(w, slot).forms |= form::COMPACTED;
        Groups { array: self.compacted_target(slot), step: slot.group_bytes.into() }
    }

    /// A predicate in the compacted lanes, as groups of bits.
    fn compacted_predicate(&mut self, w: Window, slot: SlotRef) -> Groups {
        let (value, to) = (self.predicate(w, slot), self.compacted_target(slot));
        if let Some(compaction) = &self.compaction {
            let compacted = value.compress(&compaction.mask);
            for group in 0..compaction.groups {
                // SAFETY: there is room for `compaction.groups` groups.
                unsafe { to.cast::<u16>().add(group).write(compacted.group(group)) }
            }
        }
        Groups { array: to, step: slot.group_bytes.into() }
    }

    /// The place for the results of the compacted lanes.
    #[inline]
    pub fn compacted_target(&self, slot: SlotRef) -> *mut u8 {
        self.compaction.as_ref().map_or(std::ptr::null_mut(), |compaction| compaction.at(slot))
    }

    /// Notes that the compacted lanes of a slot have been written. `whole`: the values of the other lanes are not needed.
    #[inline]
    pub fn set_compacted(&mut self, w: Window, slot: SlotRef, whole: bool) {
        // If the slot had only the compacted form already, its array holds the values of the other lanes.
        if self.state(w, slot).forms != form::COMPACTED {
            self.keep_compacted_only(w, slot, whole);
        }
    }

    #[inline(never)]
    fn keep_compacted_only(&mut self, w: Window, slot: SlotRef, whole: bool) {
        if slot.width == Width::Pred {
            return self.set_compacted_predicate(w, slot);
        }
        if let Some(compaction) = &mut self.compaction {
            compaction.note(slot);
        }
        if whole {
            self.overwrite(w, slot);
        } else if self.state(w, slot).forms & (form::ARRAY | form::COMPACTED) == 0 {
            // The array gets the values of the other lanes.
            self.fill(w, slot);
        }
        self.state_mut(w, slot).forms = form::COMPACTED;
    }

    /// The compacted lanes of a predicate have been written.
    fn set_compacted_predicate(&mut self, w: Window, slot: SlotRef) {
        if let Some(compaction) = &self.compaction {
            let mut compacted = Mask::EMPTY;
            for group in 0..compaction.groups {
                // SAFETY: the handler has written one group of bits for each 16 lanes.
                compacted.set_group(group, unsafe { compaction.at(slot).cast::<u16>().add(group).read() });
            }
            let mask = compaction.mask;
            self.set_predicate(w, slot, compacted.expand(&mask), mask);
        }
    }

    /// The value of a lane in the compacted form. `None` if the lane is not compacted.
    pub(super) fn get_compacted(&self, slot: SlotRef, lane: usize) -> Option<u64> {
        let compaction = self.compaction.as_ref()?;
        if !compaction.mask.contains(lane) {
            return None;
        }
        let before = (compaction.mask & Mask::first(lane)).count();
        // SAFETY: the compacted form has a value for each compacted lane.
        Some(unsafe { load(compaction.at(slot), slot.width, before as usize) })
    }
}

/// The compacted form has values that the array does not have.
#[inline]
pub(super) fn is_compacted_only(forms: u8) -> bool {
    forms & (form::ARRAY | form::COMPACTED) == form::COMPACTED
}
