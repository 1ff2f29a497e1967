//! Accesses of local memory by all active lanes at once.
//!
//! Nearly always they are at one address, and then a word of all lanes is a row of memory ([`crate::memory::LocalMemory`]).

use ir::Width;
use isa::Space;
use lanes::LaneWidth;

use super::access::Request;
use super::transfer::{Addresses, address_of, extend};
use super::{Active, Chunk};
use crate::bytes::{load, store};
use crate::code::{Load, Store};
use crate::mask::CHUNK_LANES;
use crate::memory::resolve_generic;
use crate::registers::{SlotRef, lane_width};

/// Where all active lanes access their local memory.
enum Place {
    /// All at one address.
    One(u64),
    /// At the address that each has, less so much: some have this one then.
    Each(u64, u64),
}

impl Chunk<'_> {
    /// Where an access goes, if it is to local memory, aligned and in bounds in all active lanes.
    fn local_place(&self, request: &Request, addresses: &Addresses, active: &Active) -> Option<Place> {
        if !matches!(request.space, Space::Local | Space::Generic) || !request.bytes.is_power_of_two() {
            return None;
        }
        let (least, greatest) = match addresses {
            Addresses::Even(even) if even.aligned(request.bytes) => even.bounds_of(active.mask)?,
            Addresses::Each(each) if each.aligned(request.bytes) => each.bounds()?,
            _ => return None,
        };
        let window = match request.space {
            Space::Generic => match resolve_generic(least) {
                (Space::Local, inner) => least - inner,
                _ => return None,
            },
            _ => 0,
        };
        let (first, last) = (least - window, greatest - window);
        if !self.local.contains_all(first, last, request.bytes) {
            return None;
        }
        Some(if least == greatest { Place::One(first) } else { Place::Each(window, first) })
    }

    /// A load from local memory; false if it is not one, or a lane is at fault.
    pub(super) fn load_local(
        &mut self,
        op: &Load,
        active: &Active,
        request: &Request,
        addresses: &Addresses,
    ) -> bool {
        let Some(place) = self.local_place(request, addresses, active) else { return false };
        let (window, first) = match place {
            Place::One(address) => {
                for (i, slot) in op.dst.iter().enumerate() {
                    if let Some(slot) = *slot {
                        self.load_row(slot, address + i as u64 * u64::from(op.bytes), op, active);
                    }
                }
                return true;
            }
            Place::Each(window, first) => (window, first),
        };
        // Addresses may stand in a register that is loaded.
        let mut all = [0; CHUNK_LANES];
        active.mask.for_each(|lane| all[lane] = address_of(addresses, lane) - window);
        for (i, slot) in op.dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let array = self.registers.update(active.window, slot);
            if op.bytes == 4 && slot.width == Width::W32 {
                let (words, lanes) = (self.local.words(first), self.lanes);
                active.mask.for_each(|lane| {
                    let word = (all[lane] - words.1) as usize / 4 + i;
                    // SAFETY: arrays have an element for every lane.
                    unsafe { *array.cast::<u32>().add(lane) = words.0[word * lanes + lane] }
                });
                continue;
            }
            for lane in active.mask {
                let value = self.local.read(lane, all[lane] + i as u64 * u64::from(op.bytes), op.bytes);
                // SAFETY: arrays have an element for every lane.
                unsafe { store(array, slot.width, lane, extend(value, op.bytes, op.signed)) }
            }
        }
        true
    }

    /// Loads the element at an address of all lanes.
    fn load_row(&mut self, slot: SlotRef, address: u64, op: &Load, active: &Active) {
        let lanes = self.lanes;
        let low = self.local.word(address & !3).as_ptr();
        let (bytes, signed, shift) = (op.bytes, op.signed, address % 4 * 8);
        let high = if bytes == 8 { self.local.word(address + 4).as_ptr() } else { low };
        self.produce(slot, active, |registers, target| {
            let extend_words = |from| {
                // SAFETY: both have an element for every lane.
                unsafe {
                    (registers.helpers().extend)(target, lane_width(slot.width), low.cast(), from, lanes)
                }
            };
            match (bytes, slot.width) {
                (4, _) if signed => extend_words(lanes::Extend::S32),
                (4, _) => extend_words(lanes::Extend::U32),
                _ => {
                    for lane in 0..lanes {
                        // SAFETY: as above.
                        unsafe {
                            let word = u64::from(*low.add(lane));
                            let value = match bytes {
                                8 => word | u64::from(*high.add(lane)) << 32,
                                _ => extend(word >> shift & ((1 << (8 * bytes)) - 1), bytes, signed),
                            };
                            store(target, slot.width, lane, value);
                        }
                    }
                }
            }
        });
    }

    /// A store to local memory; false if it is not one, or a lane is at fault.
    pub(super) fn store_local(
        &mut self,
        op: &Store,
        active: &Active,
        request: &Request,
        addresses: &Addresses,
    ) -> bool {
        let Some(place) = self.local_place(request, addresses, active) else { return false };
        for (i, &slot) in op.src.iter().enumerate() {
            let array = self.registers.read(active.window, slot);
            let offset = i as u64 * u64::from(op.bytes);
            match place {
                Place::One(address) => self.store_row(slot, array, address + offset, op.bytes, active),
                Place::Each(window, _) => {
                    for lane in active.mask {
                        let address = address_of(addresses, lane) - window + offset;
                        // SAFETY: arrays have an element for every lane.
                        let value = unsafe { load(array, slot.width, lane) };
                        self.local.write(lane, address, op.bytes, value);
                    }
                }
            }
        }
        true
    }

    /// Stores the element at an address of all active lanes.
    fn store_row(&mut self, slot: SlotRef, array: *const u8, address: u64, bytes: u32, active: &Active) {
        let (lanes, shift) = (self.lanes, address % 4 * 8);
        let scratch = self.registers.scratch(0).cast::<u32>();
        let parts = if bytes == 8 { 2 } else { 1 };
        for part in 0..parts {
            let row = self.local.word_to_write((address & !3) + 4 * part).as_mut_ptr();
            let words = if bytes == 4 && slot.width == Width::W32 {
                array
            } else {
                let mask = if bytes < 4 { ((1u32 << (8 * bytes)) - 1) << shift } else { u32::MAX };
                for lane in 0..lanes {
                    // SAFETY: the arrays have an element for every lane.
                    unsafe {
                        let value = (load(array, slot.width, lane) >> (32 * part)) as u32;
                        *scratch.add(lane) = row.add(lane).read() & !mask | value << shift & mask;
                    }
                }
                scratch.cast::<u8>().cast_const()
            };
            // SAFETY: both have an element for every lane.
            unsafe {
                if active.all_lanes {
                    std::ptr::copy_nonoverlapping(words.cast(), row, lanes);
                } else {
                    let (first, end) = active.groups;
                    let merge = self.registers.helpers().merge;
                    merge(row.cast(), words, LaneWidth::B4, &active.mask.0, first..end);
                }
            }
        }
    }
}
