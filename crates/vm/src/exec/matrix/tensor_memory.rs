//! Tensor memory: allocations, loads, stores, copies, shifts. [`sem::tensor_memory`] defines the contents of cells.
//! All operations complete at once.

use diag::Span;
use isa::Space;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::{shared_base, shared_rank};
use machine::{Fault, FaultKind};
use sem::tensor_memory::{Cell, Copy, Fragment, LANES_OF_WARP, Misuse, Shift, reduce};

use super::Words;
use crate::code::{Address, TensorMemory};
use crate::exec::request::{Request, Resolved};
use crate::exec::{Active, Gang, Step};
use crate::registers::{SlotRef, Window};
use crate::shared::Shared;
use crate::tensor_memory::TensorMemoryOf;

/// Bytes of a unit, the building block of matrices and rows in shared memory.
const UNIT_BYTES: usize = 16;
/// Bytes of an address in tensor memory.
const ADDRESS_BYTES: u64 = 4;

/// The lane that issues an instruction on tensor memory, and its context.
pub(super) struct Issue<'a> {
    pub shared: &'a Shared,
    pub window: Window,
    pub lane: usize,
    pub span: Span,
}

impl Gang<'_> {
    #[inline(never)]
    pub(in crate::exec) fn tensor_memory(
        &mut self,
        op: &TensorMemory,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        match op {
            TensorMemory::Allocate { address, columns, done } => {
                self.allocate(address, [*columns, *done], active, shared, span)
            }
            TensorMemory::Release { at, columns } => {
                for lane in warp_leaders(active) {
                    let [at, columns] =
                        [*at, *columns].map(|slot| self.registers.get(active.window, slot, lane));
                    let released = shared.tensor_memory.borrow_mut().allocations.release(at, columns);
                    released.map_err(|misuse| self.misuse(misuse, span, lane))?;
                    shared.note_change();
                }
                Ok(())
            }
            TensorMemory::Relinquish => {
                shared.tensor_memory.borrow_mut().allocations.relinquish();
                Ok(())
            }
            TensorMemory::Load { at, fragment, registers, reduction } => {
                let results = self.for_each_warp(active, registers.len(), |gang, warp, out| {
                    let Some(picks) = reduction else {
                        return gang.load_cells(*at, fragment, active, warp, shared, span, out);
                    };
                    let Some((reduced, out)) = out.split_last_mut() else { return Ok(()) };
                    gang.load_cells(*at, fragment, active, warp, shared, span, out)?;
                    for (lane, reduced) in reduced.iter_mut().enumerate() {
                        *reduced = reduce(picks, out.iter().map(|words| words[lane]));
                    }
                    Ok(())
                })?;
                self.write_registers(registers, active, &results);
                Ok(())
            }
            TensorMemory::Store { at, fragment, registers } => {
                self.for_each_warp(active, 0, |gang, warp, _| {
                    gang.store_cells(*at, fragment, registers, active, warp, shared, span)
                })?;
                Ok(())
            }
            TensorMemory::Multiply(multiply) => {
                for lane in active.mask {
                    self.tensor_multiply(multiply, &Issue { shared, window: active.window, lane, span })?;
                }
                Ok(())
            }
            TensorMemory::Copy { at, descriptor, copy } => {
                for lane in active.mask {
                    let issue = Issue { shared, window: active.window, lane, span };
                    self.copy_to_cells(*at, *descriptor, copy, &issue)?;
                }
                Ok(())
            }
            TensorMemory::Shift { at, pair } => {
                for lane in active.mask {
                    let issue = Issue { shared, window: active.window, lane, span };
                    self.shift_cells(*at, *pair, &issue)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn misuse(&self, misuse: Misuse, span: Span, lane: usize) -> Box<Fault> {
        self.fault(misuse.into(), span, Mask::single(lane), None, &misuse.to_string())
    }

    /// `tcgen05.alloc`. Writes to `done`, for each warp, whether there was room.
    fn allocate(
        &mut self,
        address: &Address,
        [columns, done]: [SlotRef; 2],
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        let (mut finished, mut in_vain) = (Mask::EMPTY, Mask::EMPTY);
        for (warp, lanes) in active.mask.warps() {
            let lane = warp * WARP_LANES + lanes.trailing_zeros() as usize;
            let columns = self.registers.get(active.window, columns, lane);
            let to = self.lane_addresses(address, active)(lane);
            let request = Request { space: address.space, bytes: ADDRESS_BYTES, write: true, span };
            let place = match self.place(shared, &request, to) {
                Ok(Resolved::Host(at)) if shared.has(at) => at,
                Ok(_) => return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, to)),
                Err(kind) => return Err(self.access_fault(kind, &request, lane, to)),
            };
            let allocated = shared.tensor_memory.borrow_mut().allocate(columns, span);
            match allocated.map_err(|misuse| self.misuse(misuse, span, lane))? {
                Some(at) => {
                    // SAFETY: the place holds 4 bytes of shared memory of the cluster, which only this host thread
                    // accesses.
                    unsafe { place.cast::<u32>().write_unaligned(at as u32) }
                    finished.set_warp(warp, lanes);
                    shared.note_change();
                }
                None => in_vain.set_warp(warp, lanes),
            }
        }
        self.registers.set_predicate(active.window, done, finished, active.mask);
        if !in_vain.is_empty() && self.waits_for_long(shared, in_vain) && shared.waiting.blocked.is_none() {
            let note =
                "every thread of the block waits, some for columns of tensor memory that nobody gives back";
            shared.waiting.blocked = Some(self.fault(FaultKind::Deadlock, span, in_vain, None, note));
        }
        Ok(())
    }

    /// The cell that a warp's address names. Checks that the whole fragment is allocated and accessible to the warp.
    fn fragment_start(
        &self,
        at: SlotRef,
        fragment: &Fragment,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step<Cell> {
        let lane = warp * WARP_LANES + active.mask.warp(warp).trailing_zeros() as usize;
        let cell = Cell::at(self.registers.get(active.window, at, lane));
        let memory = shared.tensor_memory.borrow();
        let number = self.threads.first_thread as usize / WARP_LANES + warp;
        let checked = fragment.check(cell, number).and_then(|()| {
            fragment.columns().try_for_each(|(start, count)| {
                memory.check(cell.plus(Cell { lane: 0, column: start }), 1, count)
            })
        });
        checked.map(|()| cell).map_err(|misuse| self.misuse(misuse, span, lane))
    }

    /// `tcgen05.ld`
    #[expect(clippy::too_many_arguments, reason = "what, who, and where to")]
    fn load_cells(
        &self,
        at: SlotRef,
        fragment: &Fragment,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
        out: &mut [Words],
    ) -> Step {
        let start = self.fragment_start(at, fragment, active, warp, shared, span)?;
        let memory = shared.tensor_memory.borrow();
        for (register, words) in out.iter_mut().enumerate() {
            for (lane, word) in words.iter_mut().enumerate() {
                let row = memory.row(start.plus(fragment.cell(lane, register)));
                *word = match fragment.packed {
                    true => u64::from(row[0] & 0xffff | row[1] << 16),
                    false => row[0].into(),
                };
            }
        }
        Ok(())
    }

    /// `tcgen05.st`
    #[expect(clippy::too_many_arguments, reason = "what, who, and where from")]
    fn store_cells(
        &mut self,
        at: SlotRef,
        fragment: &Fragment,
        registers: &[SlotRef],
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step {
        let start = self.fragment_start(at, fragment, active, warp, shared, span)?;
        let mut memory = shared.tensor_memory.borrow_mut();
        for (register, &slot) in registers.iter().enumerate() {
            let words = self.words(active.window, slot, warp);
            for (lane, &word) in words.iter().enumerate() {
                let row = memory.row_mut(start.plus(fragment.cell(lane, register)));
                match fragment.packed {
                    true => (row[0], row[1]) = (word as u32 & 0xffff, (word >> 16) as u32 & 0xffff),
                    false => row[0] = word as u32,
                }
            }
        }
        Ok(())
    }

    /// The CTAs that an instruction of a lane uses, by rank, with their tensor memory: the lane's CTA, or both of its
    /// pair.
    pub(super) fn blocks_of(&self, pair: bool, issue: &Issue) -> Step<Vec<(u32, TensorMemoryOf)>> {
        if !pair {
            return Ok(vec![(issue.shared.rank(), TensorMemoryOf::clone(&issue.shared.tensor_memory))]);
        }
        match issue.shared.pair() {
            Ok(pair) => Ok(pair.into()),
            Err(misuse) => Err(self.misuse(misuse, issue.span, issue.lane)),
        }
    }

    /// Reads the 16 bytes at each of these addresses of `.shared::cluster`.
    pub(super) fn shared_units(&self, addresses: &[u64], issue: &Issue) -> Step<Vec<u128>> {
        let request =
            Request { space: Space::Shared, bytes: UNIT_BYTES as u64, write: false, span: issue.span };
        let (least, greatest) = (addresses.iter().min(), addresses.iter().max());
        let whole = least
            .zip(greatest)
            .and_then(|(&least, &greatest)| self.region(issue.shared, &request, least, greatest));
        let unit = |&address: &u64| {
            // The units may lie in several variables.
            let region = whole.or_else(|| self.region(issue.shared, &request, address, address));
            let Some(region) = region else {
                let kind = Self::why_outside(issue.shared, Space::Shared, address);
                return Err(self.access_fault(kind, &request, issue.lane, address));
            };
            // SAFETY: the region holds the unit.
            Ok(u128::from_le_bytes(unsafe { region.at(address).cast::<[u8; UNIT_BYTES]>().read_unaligned() }))
        };
        addresses.iter().map(unit).collect()
    }

    /// `tcgen05.cp`
    fn copy_to_cells(&self, at: SlotRef, descriptor: SlotRef, copy: &Copy, issue: &Issue) -> Step {
        let number = |slot| self.registers.get(issue.window, slot, issue.lane);
        let at = Cell::at(number(at));
        let fault = |misuse| self.misuse(misuse, issue.span, issue.lane);
        copy.check(at).map_err(fault)?;
        let addresses = copy.addresses(number(descriptor)).map_err(fault)?;
        for (rank, memory) in self.blocks_of(copy.pair, issue)? {
            let addresses: Vec<u64> = addresses.iter().map(|inner| shared_base(rank) + inner).collect();
            let units = self.shared_units(&addresses, issue)?;
            let mut memory = memory.borrow_mut();
            memory.check(at, 1, copy.units * 4).map_err(fault)?;
            for (i, &unit) in units.iter().enumerate() {
                for cell in copy.cells(i / copy.units, i % copy.units) {
                    memory.row_mut(at.plus(cell))[..4].copy_from_slice(&copy.words(unit));
                }
            }
        }
        Ok(())
    }

    /// `tcgen05.shift`
    fn shift_cells(&self, at: SlotRef, pair: bool, issue: &Issue) -> Step {
        let at = Cell::at(self.registers.get(issue.window, at, issue.lane));
        let fault = |misuse| self.misuse(misuse, issue.span, issue.lane);
        Shift::check(at).map_err(fault)?;
        for (_, memory) in self.blocks_of(pair, issue)? {
            let mut memory = memory.borrow_mut();
            memory.check(at, LANES_OF_WARP, Shift::COLUMNS).map_err(fault)?;
            for (from, to) in Shift::moves() {
                let value = memory.row(at.plus(from))[0];
                memory.row_mut(at.plus(to))[0] = value;
            }
        }
        Ok(())
    }

    /// The addresses that an instruction of a lane reads through the descriptor in a slot. They are not checked.
    pub(in crate::exec) fn tensor_units(
        &self,
        op: &TensorMemory,
        slot: SlotRef,
        window: Window,
        lane: usize,
    ) -> Vec<u64> {
        let number = |slot| self.registers.get(window, slot, lane);
        let (found, pair) = match op {
            TensorMemory::Copy { descriptor, copy, .. } => {
                (copy.addresses(number(*descriptor)).unwrap_or_default(), copy.pair)
            }
            TensorMemory::Multiply(multiply) => self.factor_addresses(multiply, slot, window, lane),
            _ => return Vec::new(),
        };
        let own = shared_rank(self.threads.shared_base).0;
        let ranks = if pair { vec![own & !1, own | 1] } else { vec![own] };
        ranks.iter().flat_map(|&rank| found.iter().map(move |inner| shared_base(rank) + inner)).collect()
    }
}

/// The lowest active lane of every warp.
fn warp_leaders(active: &Active) -> impl Iterator<Item = usize> {
    active.mask.warps().map(|(warp, lanes)| warp * WARP_LANES + lanes.trailing_zeros() as usize)
}
