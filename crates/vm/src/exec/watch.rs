//! What an observer from outside is told: accesses with their addresses resolved, and what becomes of barriers.

use std::ops::ControlFlow;

use diag::Span;
use ir::Width;
use isa::Space;

use super::observe::{Observer, ROW_BYTES};
use super::{Active, Chunk, Step};
use crate::code::{
    Access, Address, Block, Extent, Guard, Kind, MatrixOp, MatrixSource, Op, Start, Terminator, WarpOp,
};
use crate::cta::{CLUSTER_BARRIER, Shared};
use crate::fault::FaultKind;
use crate::mask::{Mask, WARP_LANES};
use crate::memory::resolve_generic;
use crate::observer::{AccessEvent, BarrierArrival, BarrierRelease, LaneAccess, ObserverHandle};

/// Tells an observer what a host thread executes.
pub(crate) struct Watcher {
    observer: ObserverHandle,
    /// Used again and again.
    lanes: Vec<LaneAccess>,
    /// How often each barrier was complete before the block ended.
    generations: Vec<u32>,
    /// Nobody had come to a barrier by then.
    unused: bool,
}

impl Watcher {
    pub fn new(observer: ObserverHandle) -> Watcher {
        Watcher { observer, lanes: Vec::new(), generations: Vec::new(), unused: false }
    }
}

/// The run ends where the observer says so.
fn proceed(flow: ControlFlow<()>, chunk: &Chunk, span: Span, mask: Mask) -> Step {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(chunk.fault(FaultKind::Stopped, span, mask, None, "")),
    }
}

impl Observer for Watcher {
    fn before(&mut self, chunk: &Chunk, block: &Block, index: usize, active: &Active) -> Step {
        let op = &block.ops[index];
        if block.accesses[index].is_empty() {
            return Ok(());
        }
        let mut mask = active.mask;
        if let Some(guard) = op.guard {
            mask &= chunk.holds(guard, active);
        }
        if mask.is_empty() {
            return Ok(());
        }
        for access in &block.accesses[index] {
            self.lanes.clear();
            let space = match &access.start {
                Start::Address(address) => address.space,
                Start::Descriptor(_) => Space::Shared,
                Start::Texels => Space::Global,
            };
            chunk.resolve_access(op, access, mask, active, |lane, address, bytes| {
                let (space, address) = match space {
                    Space::Generic => resolve_generic(address),
                    space => (space, address),
                };
                let (block, thread) = (chunk.block_of(lane), chunk.thread_of(lane) as u32);
                self.lanes.push(LaneAccess { block, thread, space, address, bytes });
            });
            let (kind, semantics) = (access.kind, access.semantics);
            let event = AccessEvent { kind, semantics, space, span: op.span, lanes: &self.lanes };
            proceed(self.observer.tell(|observer| observer.access(&event)), chunk, op.span, mask)?;
        }
        Ok(())
    }

    fn before_end(&mut self, chunk: &Chunk, shared: &Shared, block: &Block, active: &Active) -> Step {
        self.generations.clear();
        self.generations.extend(shared.generations());
        self.unused = shared.no_barrier_used();
        let (numbers, waits) = match &block.terminator {
            Terminator::Barrier(barrier) => (chunk.distinct(barrier.barrier, active), !barrier.arrive),
            Terminator::ClusterBarrier { arrive: true, .. } => {
                ([(CLUSTER_BARRIER as u64, active.mask)].into_iter().collect(), false)
            }
            _ => return Ok(()),
        };
        for (barrier, mask) in numbers {
            for (_, mask) in chunk.parts(active.mask & mask) {
                let threads: Vec<u32> = mask.into_iter().map(|lane| chunk.thread_of(lane) as u32).collect();
                let ctaid = chunk.block_of(mask.lowest().unwrap_or(0));
                let arrival =
                    BarrierArrival { block: ctaid, barrier, waits, span: block.span, threads: &threads };
                let flow = self.observer.tell(|observer| observer.barrier_arrive(&arrival));
                proceed(flow, chunk, block.span, mask)?;
            }
        }
        Ok(())
    }

    fn after_end(&mut self, chunk: &Chunk, shared: &Shared, block: &Block, active: &Active) -> Step {
        let mut released = Vec::new();
        if let (Terminator::Barrier(barrier), true, true) =
            (&block.terminator, self.unused, shared.no_barrier_used())
        {
            // All threads of the chunk's blocks came together, and went on at once.
            for (number, mask) in chunk.distinct(barrier.barrier, active) {
                released.extend(chunk.parts(active.mask & mask).map(|(block, _)| (block, number)));
            }
        }
        let before = self.generations.iter().copied().chain(std::iter::repeat(0));
        for (place, (after, before)) in shared.generations().zip(before).enumerate() {
            let (block, barrier) = (place / (CLUSTER_BARRIER + 1), place % (CLUSTER_BARRIER + 1));
            if after != before {
                released.push((block, barrier as u64));
            }
        }
        for (of_chunk, barrier) in released {
            let release = BarrierRelease { block: chunk.ctaid_of(of_chunk), barrier, span: block.span };
            let flow = self.observer.tell(|observer| observer.barrier_release(&release));
            proceed(flow, chunk, block.span, active.mask)?;
        }
        Ok(())
    }
}

impl Chunk<'_> {
    /// The lanes where a guard lets an operation execute, of all.
    pub(super) fn holds(&self, guard: Guard, active: &Active) -> Mask {
        let predicate = self.registers.predicate(active.window, guard.slot);
        if guard.negated { !predicate } else { predicate }
    }

    /// The address of a lane in the instruction's space. Changes nothing in the registers.
    pub(super) fn lane_addresses(
        &self,
        address: &Address,
        active: &Active,
    ) -> impl Fn(usize) -> u64 + use<'_> {
        let (even, window, offset) = (self.even(address, active), active.window, address.offset);
        move |lane| match even {
            Ok(even) => even.at(lane),
            Err(slot) => {
                let value = self.registers.get(window, slot, lane).wrapping_add(offset);
                if slot.width == Width::W64 { value } else { value & 0xffff_ffff }
            }
        }
    }

    /// Calls `f` with the lane, the address in the instruction's space and the size of every part of an access. Changes
    /// nothing in the registers, so that an observed operation runs as it does unobserved.
    fn resolve_access(
        &self,
        op: &Op,
        access: &Access,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let address = match &access.start {
            Start::Address(address) => address,
            Start::Descriptor(_) => return self.each_unit(op, access, mask, active, f),
            Start::Texels => return self.each_texel(op, mask, active, f),
        };
        let at = self.lane_addresses(address, active);
        let number = |slot, lane| self.registers.get(active.window, slot, lane);
        match access.extent {
            Extent::Bytes(bytes) => mask.into_iter().for_each(|lane| f(lane, at(lane), bytes.into())),
            Extent::AtMost { bytes, size, ignore } => {
                let ignored = ignore.map_or(Mask::EMPTY, |guard| self.holds(guard, active));
                for lane in mask {
                    let size = size.map_or(bytes.into(), |size| number(size, lane).min(bytes.into()));
                    f(lane, at(lane), if ignored.contains(lane) { 0 } else { size });
                }
            }
            Extent::Slot(size) => mask.into_iter().for_each(|lane| f(lane, at(lane), number(size, lane))),
            Extent::Rows(rows) => {
                for (warp, _) in mask.warps() {
                    let first = warp * WARP_LANES;
                    let lanes = first..(first + rows as usize).min(self.lanes);
                    lanes.for_each(|lane| f(lane, at(lane), ROW_BYTES));
                }
            }
            Extent::Matrix { lines, line_bits, element_bits, stride } => {
                for (warp, lanes) in mask.warps() {
                    let lane = warp * WARP_LANES + lanes.trailing_zeros() as usize;
                    let step = stride.map_or(line_bits.into(), |stride| {
                        number(stride, lane).wrapping_mul(element_bits.into())
                    });
                    for line in 0..u64::from(lines) {
                        let start = at(lane).wrapping_add(line.wrapping_mul(step) / 8);
                        f(lane, start, line_bits.div_ceil(8).into());
                    }
                }
            }
            Extent::Factor | Extent::Texels => {}
        }
    }

    /// The same for a factor of `wgmma` in shared memory: 16 bytes after the other.
    fn each_unit(
        &self,
        op: &Op,
        access: &Access,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let (Kind::Warp { op: warp_op, .. }, Start::Descriptor(slot)) = (&op.kind, access.start) else {
            return;
        };
        let WarpOp::Matrix(MatrixOp::Multiply(multiply)) = &**warp_op else { return };
        for (warp, _) in mask.warps() {
            for factor in [&multiply.a, &multiply.b] {
                if matches!(factor.source, MatrixSource::Shared { descriptor, .. } if descriptor == slot) {
                    let units = self.units(factor, warp, active.window);
                    units.iter().for_each(|unit| f(warp * WARP_LANES, unit.address, ROW_BYTES));
                }
            }
        }
    }
}
