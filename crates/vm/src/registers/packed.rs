//! Registers of few lanes: their values one after the other, so that an operation in them takes as long as in so few lanes.
//!
//! Where lanes have taken different ways, those of one are spread over the chunk. A slot's *packed form* has the values of these
//! lanes only; the array has those of all others, and what it holds in their place no longer counts. Whoever wants the array
//! gets them written there first. Predicates have no packed form: branches want them as masks.
//!
//! A path packs its lanes where they take at most half of a chunk and are spread over at least twice as many lanes, once it has run eight
//! operations and one for every 32 of its lanes (`exec/active.rs`): lanes that leave a loop one after the other gain nothing. Pure
//! operations and moves then cost what so few lanes cost. Measured (benches/RESULTS.md, "Diverging paths"): 2 paths cost 1.5 times one, 8
//! cost 3.4 times, 32 cost 11 times.
//!
//! Narrowest tests: `tests/run`: `few_lanes`, `half_of_lanes`; unit tests of `registers.rs` and `mask.rs`; `lanes`:
//! `tests/handlers/helpers.rs`.

use super::{Groups, Registers, SlotRef, Window, form, lane_width};
use crate::bytes::{AlignedBytes, load};
use crate::mask::{CHUNK_LANES, GROUP_LANES, Mask};
use ir::Width;

/// The most lanes that are packed.
pub(crate) const PACKED_LANES: usize = CHUNK_LANES / 2;

/// The lanes that are packed, and the packed forms of the slots of one window.
pub(super) struct Packing {
    mask: Mask,
    window: Window,
    /// Groups that the values of a slot take. 0: nothing is packed.
    groups: usize,
    /// By the index of the slot.
    data: AlignedBytes,
    /// Slots that have got a packed form, and a bit by the index of each.
    slots: Vec<SlotRef>,
    noted: Vec<u64>,
}

impl Packing {
    fn new() -> Packing {
        Packing {
            mask: Mask::EMPTY,
            window: Window::default(),
            groups: 0,
            data: AlignedBytes::zeroed(0),
            slots: Vec::new(),
            noted: Vec::new(),
        }
    }

    /// Notes that a slot has got a packed form.
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
        // SAFETY: there is room for every slot of the window (`Registers::pack`).
        unsafe { self.data.as_ptr().add(offset) }
    }
}

impl Registers {
    /// Packs the lanes of a mask, at most [`PACKED_LANES`] of them, from now on, unless they are; the slots are those of a window. Returns
    /// the groups that packed forms have. No others may be packed.
    #[inline]
    pub fn pack(&mut self, w: Window, mask: &Mask) -> usize {
        if let Some(packing) = &self.packing
            && packing.groups != 0
        {
            debug_assert!(packing.mask == *mask && packing.window == w, "one set of lanes at a time");
            return packing.groups;
        }
        self.begin_packing(w, mask)
    }

    #[inline(never)]
    fn begin_packing(&mut self, w: Window, mask: &Mask) -> usize {
        let packing = self.packing.get_or_insert_with(|| Box::new(Packing::new()));
        (packing.mask, packing.window) = (*mask, w);
        packing.groups = (mask.count() as usize).div_ceil(GROUP_LANES);
        let bytes = (self.states.len() - w.index as usize) * packing.stride();
        if bytes > packing.data.len() {
            packing.data = AlignedBytes::zeroed(bytes.next_power_of_two());
        }
        packing.groups
    }

    /// Ends what [`Registers::pack`] began: all values are in the arrays again.
    #[inline]
    pub fn unpack(&mut self) {
        if self.packing.as_ref().is_some_and(|packing| packing.groups != 0) {
            self.unpack_slots();
        }
    }

    #[inline(never)]
    fn unpack_slots(&mut self) {
        let Some(packing) = &mut self.packing else { return };
        let (w, mut slots) = (packing.window, std::mem::take(&mut packing.slots));
        for slot in slots.drain(..) {
            self.unpack_slot(w, slot);
            self.state_mut(w, slot).forms &= !form::PACKED;
        }
        if let Some(packing) = &mut self.packing {
            packing.slots = slots;
            packing.noted.fill(0);
            packing.groups = 0;
        }
    }

    /// Writes the values of a slot's packed form to its array, if they are there only.
    pub(super) fn unpack_slot(&mut self, w: Window, slot: SlotRef) {
        if !is_packed_only(self.state(w, slot).forms) {
            return;
        }
        if let Some(packing) = &self.packing {
            let (array, width) = (self.array(w, slot), lane_width(slot.width));
            // SAFETY: the slot's array has an element for every lane, its packed form for each of the mask's, and a group behind them.
            unsafe { (self.helpers.expand)(array, packing.at(slot), width, &packing.mask.0) }
        }
        self.state_mut(w, slot).forms |= form::ARRAY;
    }

    /// The values of a slot in the packed lanes for a vector handler.
    #[inline]
    pub fn packed_source(&mut self, w: Window, slot: SlotRef) -> Groups {
        if self.state(w, slot).forms & form::PACKED != 0 {
            return Groups { array: self.packed_target(slot), step: slot.group_bytes.into() };
        }
        self.pack_slot(w, slot)
    }

    /// The same of a slot that has no packed form. It gets one, but for predicates and where all lanes share a value.
    #[inline(never)]
    fn pack_slot(&mut self, w: Window, slot: SlotRef) -> Groups {
        if slot.width == Width::Pred {
            return self.packed_predicate(w, slot);
        }
        if self.uniform(w, slot).is_some() {
            // One group stands for all; its array may have others, too.
            return Groups { step: 0, ..self.source(w, slot) };
        }
        let array = self.read(w, slot);
        if let Some(packing) = &mut self.packing {
            let width = lane_width(slot.width);
            // SAFETY: the array has an element for every lane; there is room for those of the mask and a group behind them.
            unsafe { (self.helpers.compress)(packing.at(slot), array, width, &packing.mask.0) }
            packing.note(slot);
        }
        self.state_mut(w, slot).forms |= form::PACKED;
        Groups { array: self.packed_target(slot), step: slot.group_bytes.into() }
    }

    /// A predicate in the packed lanes.
    fn packed_predicate(&mut self, w: Window, slot: SlotRef) -> Groups {
        let (value, to) = (self.predicate(w, slot), self.packed_target(slot));
        if let Some(packing) = &self.packing {
            let packed = value.compress(&packing.mask);
            for group in 0..packing.groups {
                // SAFETY: there is room for so many groups.
                unsafe { to.cast::<u16>().add(group).write(packed.group(group)) }
            }
        }
        Groups { array: to, step: slot.group_bytes.into() }
    }

    /// Where the results of the packed lanes go.
    #[inline]
    pub fn packed_target(&self, slot: SlotRef) -> *mut u8 {
        self.packing.as_ref().map_or(std::ptr::null_mut(), |packing| packing.at(slot))
    }

    /// The packed lanes of a slot have been written there; `whole` says that other lanes' values are not needed.
    #[inline]
    pub fn set_packed(&mut self, w: Window, slot: SlotRef, whole: bool) {
        // Where it was alone already, the array has what others need.
        if self.state(w, slot).forms != form::PACKED {
            self.keep_packed_only(w, slot, whole);
        }
    }

    #[inline(never)]
    fn keep_packed_only(&mut self, w: Window, slot: SlotRef, whole: bool) {
        if slot.width == Width::Pred {
            return self.set_packed_predicate(w, slot);
        }
        if let Some(packing) = &mut self.packing {
            packing.note(slot);
        }
        if whole {
            self.overwrite(w, slot);
        } else if self.state(w, slot).forms & (form::ARRAY | form::PACKED) == 0 {
            // The values of the other lanes.
            self.fill(w, slot);
        }
        self.state_mut(w, slot).forms = form::PACKED;
    }

    /// The packed lanes of a predicate have been written.
    fn set_packed_predicate(&mut self, w: Window, slot: SlotRef) {
        if let Some(packing) = &self.packing {
            let mut packed = Mask::EMPTY;
            for group in 0..packing.groups {
                // SAFETY: a group has been written for 16 lanes each.
                packed.set_group(group, unsafe { packing.at(slot).cast::<u16>().add(group).read() });
            }
            let mask = packing.mask;
            self.set_predicate(w, slot, packed.expand(&mask), mask);
        }
    }

    /// The value of a lane of a slot that has a packed form.
    pub(super) fn get_packed(&self, slot: SlotRef, lane: usize) -> Option<u64> {
        let packing = self.packing.as_ref()?;
        if !packing.mask.contains(lane) {
            return None;
        }
        let before = (packing.mask & Mask::first(lane)).count();
        // SAFETY: there is a value for each of the lanes.
        Some(unsafe { load(packing.at(slot), slot.width, before as usize) })
    }
}

/// Values stand in the packed form that the array does not have.
#[inline]
pub(super) fn is_packed_only(forms: u8) -> bool {
    forms & (form::ARRAY | form::PACKED) == form::PACKED
}
