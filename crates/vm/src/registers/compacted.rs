//! Registers of few lanes: their values one after the other, so that an operation in them takes as long as in so few lanes.
//!
//! Where lanes have taken different ways, those of one are spread over the gang. A slot's *compacted form* has the values of these
//! lanes only; the array has those of all others, and what it holds in their place no longer counts. Whoever wants the array
//! gets them written there first. Predicates have no compacted form: branches want them as masks.
//!
//! A path compacts its lanes where they take at most half of a gang and are spread over at least twice as many lanes, once it has run eight
//! operations and one for every 32 of its lanes (`exec/active.rs`): lanes that leave a loop one after the other gain nothing. Pure
//! operations and moves then cost what so few lanes cost. Measured (benches/RESULTS.md, "Diverging paths"): 2 paths cost 1.5 times one, 8
//! cost 3.4 times, 32 cost 11 times.
//!
//! Narrowest tests: `tests/run`: `few_lanes`, `half_of_lanes`; unit tests of `registers.rs` and `mask.rs`; `lanes`:
//! `tests/handlers/helpers.rs`.

use super::{Groups, Registers, SlotRef, Window, form, lane_width};
use crate::bytes::{AlignedBytes, load};
use crate::mask::{GANG_LANES, GROUP_LANES, Mask};
use ir::Width;

/// The most lanes that are compacted.
pub(crate) const COMPACTED_LANES: usize = GANG_LANES / 2;

/// The lanes that are compacted, and the compacted forms of the slots of one window.
pub(super) struct Compaction {
    mask: Mask,
    window: Window,
    /// Groups that the values of a slot take. 0: nothing is compacted.
    groups: usize,
    /// By the index of the slot.
    data: AlignedBytes,
    /// Slots that have got a compacted form, and a bit by the index of each.
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

    /// Notes that a slot has got a compacted form.
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

    /// Bytes from slot to slot: behind the lanes there is room for a group of anything.
    fn stride(&self) -> usize {
        (self.groups + 1) * GROUP_LANES * size_of::<u64>()
    }

    /// Where the values of a slot stand.
    fn at(&self, slot: SlotRef) -> *mut u8 {
        let offset = slot.index as usize * self.stride();
        debug_assert!(offset + self.stride() <= self.data.len());
        // SAFETY: there is room for every slot of the window (`Registers::compact`).
        unsafe { self.data.as_ptr().add(offset) }
    }
}

impl Registers {
    /// Compacts the lanes of a mask, at most [`COMPACTED_LANES`] of them, from now on, unless they are; the slots are those of a window. Returns
    /// the groups that compacted forms have. No others may be compacted.
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

    /// Ends what [`Registers::compact`] began: all values are in the arrays again.
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

    /// Writes the values of a slot's compacted form to its array, if they are there only.
    pub(super) fn expand_slot(&mut self, w: Window, slot: SlotRef) {
        if !is_compacted_only(self.state(w, slot).forms) {
            return;
        }
        if let Some(compaction) = &self.compaction {
            let (array, width) = (self.array(w, slot), lane_width(slot.width));
            // SAFETY: the slot's array has an element for every lane, its compacted form for each of the mask's, and a group behind them.
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

    /// The same of a slot that has no compacted form. It gets one, but for predicates and where all lanes share a value.
    #[inline(never)]
    fn compact_slot(&mut self, w: Window, slot: SlotRef) -> Groups {
        if slot.width == Width::Pred {
            return self.compacted_predicate(w, slot);
        }
        if self.uniform(w, slot).is_some() {
            // One group stands for all; its array may have others, too.
            return Groups { step: 0, ..self.source(w, slot) };
        }
        let array = self.read(w, slot);
        if let Some(compaction) = &mut self.compaction {
            let width = lane_width(slot.width);
            // SAFETY: the array has an element for every lane; there is room for those of the mask and a group behind them.
            unsafe { (self.helpers.compress)(compaction.at(slot), array, width, &compaction.mask.0) }
            compaction.note(slot);
        }
        self.state_mut(w, slot).forms |= form::COMPACTED;
        Groups { array: self.compacted_target(slot), step: slot.group_bytes.into() }
    }

    /// A predicate in the compacted lanes.
    fn compacted_predicate(&mut self, w: Window, slot: SlotRef) -> Groups {
        let (value, to) = (self.predicate(w, slot), self.compacted_target(slot));
        if let Some(compaction) = &self.compaction {
            let compacted = value.compress(&compaction.mask);
            for group in 0..compaction.groups {
                // SAFETY: there is room for so many groups.
                unsafe { to.cast::<u16>().add(group).write(compacted.group(group)) }
            }
        }
        Groups { array: to, step: slot.group_bytes.into() }
    }

    /// Where the results of the compacted lanes go.
    #[inline]
    pub fn compacted_target(&self, slot: SlotRef) -> *mut u8 {
        self.compaction.as_ref().map_or(std::ptr::null_mut(), |compaction| compaction.at(slot))
    }

    /// The compacted lanes of a slot have been written there; `whole` says that other lanes' values are not needed.
    #[inline]
    pub fn set_compacted(&mut self, w: Window, slot: SlotRef, whole: bool) {
        // Where it was alone already, the array has what others need.
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
            // The values of the other lanes.
            self.fill(w, slot);
        }
        self.state_mut(w, slot).forms = form::COMPACTED;
    }

    /// The compacted lanes of a predicate have been written.
    fn set_compacted_predicate(&mut self, w: Window, slot: SlotRef) {
        if let Some(compaction) = &self.compaction {
            let mut compacted = Mask::EMPTY;
            for group in 0..compaction.groups {
                // SAFETY: a group has been written for 16 lanes each.
                compacted.set_group(group, unsafe { compaction.at(slot).cast::<u16>().add(group).read() });
            }
            let mask = compaction.mask;
            self.set_predicate(w, slot, compacted.expand(&mask), mask);
        }
    }

    /// The value of a lane of a slot that has a compacted form.
    pub(super) fn get_compacted(&self, slot: SlotRef, lane: usize) -> Option<u64> {
        let compaction = self.compaction.as_ref()?;
        if !compaction.mask.contains(lane) {
            return None;
        }
        let before = (compaction.mask & Mask::first(lane)).count();
        // SAFETY: there is a value for each of the lanes.
        Some(unsafe { load(compaction.at(slot), slot.width, before as usize) })
    }
}

/// Values stand in the compacted form that the array does not have.
#[inline]
pub(super) fn is_compacted_only(forms: u8) -> bool {
    forms & (form::ARRAY | form::COMPACTED) == form::COMPACTED
}
