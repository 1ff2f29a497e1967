//! Loops that run as native code.
//!
//! The code takes 16 lanes at a time from the start of the loop to its exits. So a path becomes a path at each exit that
//! has lanes, as if its branches had been interpreted. Other lanes of a group keep their values.
//!
//! The code takes a limited number of backward branches. Then lanes that are left in the loop become paths there, and
//! the gang gives others their time slice.
//!
//! Narrowest test: `ptxvm/tests/native.rs`.

use ir::BlockId;
use jit::Frame;
use machine::mask::{GROUP_LANES, Mask};
use smallvec::SmallVec;

use super::{Gang, Path};
use crate::code::NativeLoop;
use crate::registers::Window;

/// The most backward branches of all groups together until the gang looks whether the launch has been cancelled, and lets
/// other gangs run.
const FUEL: i64 = 1 << 20;
/// Bytes of a group of words.
const GROUP_BYTES: usize = 4 * GROUP_LANES;

impl Gang<'_> {
    /// Takes a path that is at the start of a loop through the loop. Returns false if lanes may be left in it.
    pub(super) fn run_native(
        &mut self,
        path: &mut Path,
        native: &NativeLoop,
        code: &jit::Native,
        window: Window,
    ) -> bool {
        self.registers.expand();
        let words: SmallVec<[(*mut u8, usize); 16]> = native
            .words
            .iter()
            .map(|&(slot, defined)| {
                if defined {
                    return (self.registers.update(window, slot), GROUP_BYTES);
                }
                let source = self.registers.source(window, slot);
                (source.array.cast_mut(), source.step)
            })
            .collect();
        let predicates: SmallVec<[Mask; 4]> =
            native.predicates.iter().map(|&(slot, _)| self.registers.predicate(window, slot)).collect();

        // The lanes that have been in the loop, and their predicates.
        let (mut ran, mut results) = (Mask::EMPTY, predicates.clone());
        results.fill(Mask::EMPTY);
        let (first, end) = path.mask.group_span();
        let places = native.plan.blocks.len() + native.plan.exits.len();
        let mut arrived: SmallVec<[Mask; 4]> = SmallVec::from_elem(Mask::EMPTY, places);
        let mut frame = Frame::new(FUEL);
        for group in (first..end).step_by(code.parts()) {
            // Behind the last group stands the last group once more, without lanes.
            let next = (group + 1).min(end - 1);
            let two = next > group && code.parts() == 2;
            let both = |mask: &Mask| {
                u32::from(mask.group(group)) | if two { u32::from(mask.group(next)) << 16 } else { 0 }
            };
            let add_both = |mask: &mut Mask, lanes: u32| {
                mask.set_group(group, lanes as u16);
                if two {
                    mask.set_group(next, (lanes >> 16) as u16);
                }
            };
            let lanes = both(&path.mask);
            if lanes == 0 {
                continue;
            }
            if frame.fuel < 0 {
                add_both(&mut arrived[0], lanes);
                continue;
            }
            for (places, &(array, step)) in frame.words.iter_mut().zip(&words) {
                *places = [group, next].map(|group| array.wrapping_add(group * step));
            }
            for (place, predicate) in frame.predicates.iter_mut().zip(&predicates) {
                *place = both(predicate);
            }
            add_both(&mut ran, lanes);
            frame.lanes = lanes;
            frame.pending[..places].fill(0);
            frame.pending[0] = lanes;
            // SAFETY: the code is that of the loop, and was made for a host with AVX-512. The words are arrays of elements
            // of 4 bytes with room for both groups; those that the loop writes are the gang's own.
            unsafe { code.run(&mut frame) }
            for (&place, predicate) in frame.predicates.iter().zip(&mut results) {
                add_both(predicate, place);
            }
            for (&lanes, arrived) in frame.pending.iter().zip(&mut arrived) {
                if lanes != 0 {
                    add_both(arrived, lanes);
                }
            }
        }
        for (&(slot, defined), &value) in native.predicates.iter().zip(&results) {
            if defined {
                self.registers.set_predicate(window, slot, value, ran);
            }
        }
        self.steps.instructions += frame.instructions;

        let inside = native.plan.blocks.clone().map(BlockId);
        let mut places: SmallVec<[(BlockId, Mask); 4]> = inside
            .chain(native.plan.exits.iter().copied())
            .zip(arrived)
            .filter(|(_, lanes)| !lanes.is_empty())
            .collect();
        // The lowest basic block runs first.
        places.sort_by_key(|(block, _)| *block);
        if let [(first, _), others @ ..] = &places[..] {
            for (block, lanes) in others {
                self.split(path, *lanes, block.0);
                self.scheduler.needed_changed = true;
            }
            path.block = first.0;
        }
        frame.fuel >= 0
    }
}
