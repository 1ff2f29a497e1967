//! Accesses to local memory by all active lanes at once.
//!
//! Nearly always all lanes use one local address. The lanes' words at one address are a row of memory
//! ([`crate::local_memory::LocalMemory`]).
//!
//! Narrowest tests (`tests/run`): `local_memory`, `vector_memory`.

use ir::Width;
use isa::Space;
use lanes::LaneWidth;
use machine::memory::resolve_generic;

use super::addresses::{Addresses, ROOM};
use super::request::Request;
use super::transfer::extend;
use super::{Active, Gang};
use crate::bytes::{load, store};
use crate::code::{Load, Store};
use crate::registers::{SlotRef, lane_width};

/// The local addresses of the active lanes.
enum Place {
    /// All lanes at one address.
    One(u64),
    /// Each lane at its own address minus the first number, the start of the local window. The second number is the
    /// least local address.
    Each(u64, u64),
}

impl Gang<'_> {
    /// The local addresses of an access, if it is to local memory, aligned and in bounds in all active lanes.
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

    /// Loads from local memory. Returns false if the access is to other memory or a lane faults.
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
        // The register that holds the addresses may be a destination: copy them first.
        let mut room = ROOM;
        let all = addresses.all(active, &mut room);
        for (i, slot) in op.dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let array = self.registers.update(active.window, slot);
            if op.bytes == 4 && slot.width == Width::W32 {
                let (words, lanes) = (self.local.words(first), self.threads.lanes);
                active.mask.for_each(|lane| {
                    let word = (all[lane] - window - words.1) as usize / 4 + i;
                    // SAFETY: arrays have an element for every lane.
                    unsafe { *array.cast::<u32>().add(lane) = words.0[word * lanes + lane] }
                });
                continue;
            }
            for lane in active.mask {
                let address = all[lane] - window + i as u64 * u64::from(op.bytes);
                let value = self.local.read(lane, address, op.bytes);
                // SAFETY: arrays have an element for every lane.
                unsafe { store(array, slot.width, lane, extend(value, op.bytes, op.signed)) }
            }
        }
        true
    }

    /// Loads the element at one local address for all lanes.
    fn load_row(&mut self, slot: SlotRef, address: u64, op: &Load, active: &Active) {
        let lanes = self.threads.lanes;
        let (bytes, signed, shift) = (op.bytes, op.signed, address % 4 * 8);
        // Both words come from one borrow: a second borrow would end the first.
        let (words, base) = self.local.words(address);
        let word = |address: u64| words[((address - base) / 4) as usize * lanes..][..lanes].as_ptr();
        let low = word(address & !3);
        let high = if bytes == 8 { word(address + 4) } else { low };
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
                (8, Width::W64) => {
                    // SAFETY: all three arrays have an element for every lane.
                    unsafe {
                        let words = [low.cast::<u8>(), high.cast()];
                        (registers.helpers().interleave)(target, &words, LaneWidth::B4, lanes);
                    }
                }
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

    /// Stores to local memory. Returns false if the access is to other memory or a lane faults.
    pub(super) fn store_local(
        &mut self,
        op: &Store,
        active: &Active,
        request: &Request,
        addresses: &Addresses,
    ) -> bool {
        let Some(place) = self.local_place(request, addresses, active) else { return false };
        let mut room = ROOM;
        let all = match place {
            Place::One(_) => &[],
            Place::Each(..) => addresses.all(active, &mut room),
        };
        for (i, &slot) in op.src.iter().enumerate() {
            let array = self.registers.read(active.window, slot);
            let offset = i as u64 * u64::from(op.bytes);
            match place {
                Place::One(address) => self.store_row(slot, array, address + offset, op.bytes, active),
                Place::Each(window, _) => {
                    let local = &mut self.local;
                    active.mask.for_each(|lane| {
                        // SAFETY: arrays have an element for every lane.
                        let value = unsafe { load(array, slot.width, lane) };
                        local.write(lane, all[lane] - window + offset, op.bytes, value);
                    });
                }
            }
        }
        true
    }

    /// Stores the element at one local address for all active lanes.
    fn store_row(&mut self, slot: SlotRef, array: *const u8, address: u64, bytes: u32, active: &Active) {
        let (lanes, shift) = (self.threads.lanes, address % 4 * 8);
        // The scratch array has 8 bytes for every lane.
        let scratch = self.registers.scratch(0).cast::<u32>();
        let parts = if bytes == 8 { 2 } else { 1 };
        let halves = [scratch, scratch.wrapping_add(lanes)].map(|half| half.cast::<u8>());
        let split = bytes == 8 && slot.width == Width::W64;
        if split {
            // SAFETY: all arrays have an element for every lane.
            unsafe { (self.registers.helpers().deinterleave)(&halves, array, 8, LaneWidth::B4, lanes) }
        }
        for part in 0..parts {
            let row = self.local.word_to_write((address & !3) + 4 * part).as_mut_ptr();
            let words = if bytes == 4 && slot.width == Width::W32 {
                array
            } else if split {
                halves[part as usize].cast_const()
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
