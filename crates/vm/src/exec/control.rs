//! Terminators of basic blocks: branches, calls, barriers, thread exit.

use diag::Span;
use ir::{Argument, BarrierReduction, BarrierResult, BlockId, Callee, Width};
use lanes::Helpers;
use machine::FaultKind;
use machine::mask::{GANG_LANES, GROUP_LANES, Mask, WARP_LANES};
use machine::memory::{CODE_STRIDE, CODE_WINDOW};
use smallvec::SmallVec;

use super::frame::CallRecord;
use super::{Active, Gang, Path, Step, Wait};
use crate::bytes::load;
use crate::code::{Barrier, Block, Call, Code, Terminator};
use crate::registers::{SlotRef, Window, lane_width};
use crate::shared::{BARRIERS, CLUSTER_BARRIER, Shared};

/// Distinct values, each with the lanes that hold it.
pub(super) type Values = SmallVec<[(u64, Mask); 4]>;

/// For each arrival: the barrier, the thread count that the instruction specifies, and the lanes that arrive.
pub(super) type Arrivals = SmallVec<[(u64, Option<u32>, Mask); 2]>;

impl Gang<'_> {
    /// Executes the terminator of a basic block. Returns true if the path continues at its new position. Returns
    /// false if the path has ended (its mask is then empty) or must be scheduled anew.
    pub(super) fn terminate(
        &mut self,
        path: &mut Path,
        block: &Block,
        active: &Active,
        shared: &mut Shared,
    ) -> Step<bool> {
        match &block.terminator {
            Terminator::Jump(next) => {
                path.block = next.0;
                Ok(true)
            }
            Terminator::Branch { pred, negated, taken, otherwise } => {
                Ok(self.branch(path, *pred, *negated, taken.0, otherwise.0, active.window))
            }
            Terminator::BranchIndexed { index, targets } => {
                self.branch_indexed(path, *index, targets, active, block.span)
            }
            Terminator::Call(call) => self.call(path, call, active, shared, block.span),
            Terminator::Barrier(barrier) => self.barrier(path, barrier, active, shared, block.span),
            Terminator::ClusterBarrier { arrive, next } => {
                Ok(self.cluster_barrier(path, *arrive, next.0, active, shared))
            }
            Terminator::Return => {
                match self.frames[path.frame].parent {
                    Some(_) => self.leave(path),
                    None => self.end(path, shared),
                }
                Ok(false)
            }
            Terminator::Exit => {
                self.end(path, shared);
                Ok(false)
            }
            Terminator::Trap => Err(self.fault(FaultKind::Trap, block.span, path.mask, None, "")),
        }
    }

    fn branch(
        &mut self,
        path: &mut Path,
        pred: SlotRef,
        negated: bool,
        taken: u32,
        otherwise: u32,
        window: Window,
    ) -> bool {
        let predicate = self.registers.predicate(window, pred);
        let goes = path.mask & if negated { !predicate } else { predicate };
        if goes == path.mask {
            path.block = taken;
        } else if goes.is_empty() {
            path.block = otherwise;
        } else if taken == otherwise {
            path.block = taken;
        } else {
            // The lower basic block runs first.
            let (low, low_mask, high) = if taken < otherwise {
                (taken, goes, otherwise)
            } else {
                (otherwise, path.mask.without(goes), taken)
            };
            self.split(path, path.mask.without(low_mask), high);
            path.block = low;
            // Another path may be at the same position as the new path, or may read what this one writes.
            self.scheduler.needed_changed = true;
        }
        true
    }

    /// Moves lanes of a path to a new path at `block`.
    pub(super) fn split(&mut self, path: &mut Path, mask: Mask, block: u32) {
        path.mask = path.mask.without(mask);
        self.frames.retain(path.frame);
        self.put(&Path { mask, block, ..*path });
    }

    fn branch_indexed(
        &mut self,
        path: &mut Path,
        index: SlotRef,
        targets: &[BlockId],
        active: &Active,
        span: Span,
    ) -> Step<bool> {
        let (array, helpers) = (self.registers.read(active.window, index), self.registers.helpers());
        let (mut rest, mut mask) = (active.mask, Mask::EMPTY);
        // SAFETY: the array has an element of its width for every lane.
        while let Some(value) = unsafe { take_alike(array, index.width, &mut rest, &mut mask, helpers) } {
            let Some(&target) = usize::try_from(value).ok().and_then(|i| targets.get(i)) else {
                let note = format!("index {value} is past the end of a list of {} targets", targets.len());
                return Err(self.fault(FaultKind::InvalidTarget, span, mask, None, &note));
            };
            self.frames.retain(path.frame);
            self.put(&Path { mask, block: target.0, ..*path });
        }
        // All lanes have moved to other paths; release this path's reference to the frame.
        self.frames.release(path.frame);
        path.mask = Mask::EMPTY;
        Ok(false)
    }

    /// The distinct values of a slot in the active lanes, each with the lanes that hold it, ordered by their lowest
    /// lanes.
    pub(super) fn distinct(&self, slot: SlotRef, active: &Active) -> Values {
        if let Some(value) = self.registers.uniform(active.window, slot) {
            return [(value, active.mask)].into_iter().collect();
        }
        let (mut rest, helpers) = (active.mask, self.registers.helpers());
        let mut values = [0; GANG_LANES];
        let (array, width) = match self.registers.array_if_read(active.window, slot) {
            Some(array) if slot.width != Width::Pred => (array, slot.width),
            _ => {
                active.mask.for_each(|lane| values[lane] = self.registers.get(active.window, slot, lane));
                (values.as_ptr().cast(), Width::W64)
            }
        };
        let mut mask = Mask::EMPTY;
        // SAFETY: the array has an element of the width for every lane.
        let next =
            || unsafe { take_alike(array, width, &mut rest, &mut mask, helpers) }.map(|value| (value, mask));
        std::iter::from_fn(next).collect()
    }

    // Calls.

    fn call(
        &mut self,
        path: &mut Path,
        call: &Call,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> Step<bool> {
        let callees: SmallVec<[(u32, Mask); 4]> = match call.callee {
            Callee::Direct(id) => [(id.0, path.mask)].into_iter().collect(),
            Callee::Indirect(slot, signature) => {
                let mut callees = SmallVec::new();
                for (address, mask) in self.distinct(slot, active) {
                    match self.callee_at(address, signature) {
                        Ok(index) => callees.push((index, mask)),
                        Err(note) => {
                            return Err(self.fault(FaultKind::InvalidTarget, span, mask, None, &note));
                        }
                    }
                }
                callees
            }
        };
        for (index, mask) in callees {
            if self.function(index).is_none() {
                let wait = self.call_builtin(index, call, path, mask, shared, span)?;
                self.frames.retain(path.frame);
                self.scheduler.paths.push(Path { mask, block: call.next.0, wait, ..*path });
                continue;
            }
            let base = self.frames[path.frame].local_base;
            let params = call.arguments.iter().map(|a| match a {
                Argument::Frame(at) => base + at,
                Argument::Slot(_) => 0,
            });
            let record = CallRecord {
                parent: path.frame,
                return_block: call.next.0,
                params: params.collect(),
                returned: &call.returned,
                span,
            };
            let frame = self.enter(index, record, mask)?;
            self.frames.retain(path.frame);
            let window = self.frames[frame].window;
            if let Some(function) = self.function(index) {
                for (argument, param) in call.arguments.iter().zip(&function.params) {
                    if let (Argument::Slot(src), Some(dst)) = (argument, param) {
                        self.move_between(*dst, window, *src, active.window, mask, true);
                    }
                }
            }
            self.scheduler.paths.push(Path { mask, frame, block: 0, wait: Wait::Ready, yields: path.yields });
        }
        self.frames.release(path.frame);
        path.mask = Mask::EMPTY;
        Ok(false)
    }

    /// The function at an address of an indirect call. It must have the signature of the call's prototype; otherwise
    /// the error says why not.
    fn callee_at(&self, address: u64, signature: u32) -> Result<u32, String> {
        let (offset, Code { callable, signatures, .. }) = (address.wrapping_sub(CODE_WINDOW), self.code);
        let index = usize::try_from(offset / CODE_STRIDE).unwrap_or(usize::MAX);
        let Some(&actual) = callable.get(index).filter(|_| offset % CODE_STRIDE == 0) else {
            return Err(format!("{address:#x} is not the address of a function"));
        };
        let index = index as u32;
        let name = self.launch.function_name(index);
        let Some(actual) = actual else {
            return Err(format!(
                "`{name}` is a kernel, or a function whose address the module takes nowhere"
            ));
        };
        if actual != signature
            && let (Some(actual), Some(wanted)) = (signatures.get(actual), signatures.get(signature))
        {
            return Err(format!(
                "`{name}` is declared otherwise than the call's prototype: {actual} against {wanted}"
            ));
        }
        Ok(index)
    }

    /// Returns from a call.
    fn leave(&mut self, path: &mut Path) {
        let frame = &self.frames[path.frame];
        let (Some(parent), return_block, from) = (frame.parent, frame.return_block, frame.window) else {
            return;
        };
        let slots = frame.return_slots.clone();
        let to = self.frames[parent].window;
        if let Some(function) = self.function(frame.function) {
            for (dst, src) in slots.iter().zip(&function.returns) {
                if let (Some(dst), Some(src)) = (dst, src) {
                    self.move_between(*dst, to, *src, from, path.mask, false);
                }
            }
        }
        self.frames.retain(parent);
        self.frames.release(path.frame);
        self.scheduler.paths.push(Path { frame: parent, block: return_block, ..*path });
        path.mask = Mask::EMPTY;
    }

    pub(super) fn end(&mut self, path: &mut Path, shared: &mut Shared) {
        self.copies.finish(path.mask);
        self.alive = self.alive.without(path.mask);
        let mask = path.mask;
        if self.registers.rows().blocks() > 1 && !self.has_whole_warps() {
            if !shared.no_barrier_used() || !self.alive.is_empty() {
                shared.end_warps(self.warps_of_blocks(mask));
            }
        } else {
            shared.end(self.threads.first_thread as usize / WARP_LANES, mask);
        }
        self.launch.grid_barrier.end(|| mask.count());
        self.frames.release(path.frame);
        path.mask = Mask::EMPTY;
        // Warp-level operations no longer wait for these lanes.
        for waiting in &mut self.scheduler.paths {
            if waiting.wait == Wait::Warp {
                waiting.wait = Wait::Ready;
            }
        }
    }

    // Barriers.

    /// Whether the warps of the CTAs are warps of the gang.
    fn has_whole_warps(&self) -> bool {
        self.registers.rows().block_lanes().is_multiple_of(WARP_LANES)
    }

    /// The lanes of `mask` in warp number `warp`, counted over the warps of all CTAs. If CTAs are no multiple of a
    /// warp, these are not warps of the gang.
    fn warp_of_blocks(&self, mask: Mask, warp: usize) -> u32 {
        let threads = self.registers.rows().block_lanes();
        let warps = threads.div_ceil(WARP_LANES);
        let (block, first) = (warp / warps, warp % warps * WARP_LANES);
        mask.lanes_from(block * threads + first)
            & (u64::from(u32::MAX) >> WARP_LANES.saturating_sub(threads - first)) as u32
    }

    /// The warps of the CTAs that have lanes in a mask, with these lanes.
    fn warps_of_blocks(&self, mask: Mask) -> impl Iterator<Item = (usize, u32)> + use<'_> {
        let rows = self.registers.rows();
        let warps = rows.blocks() * rows.block_lanes().div_ceil(WARP_LANES);
        (0..warps).map(move |warp| (warp, self.warp_of_blocks(mask, warp))).filter(|&(_, lanes)| lanes != 0)
    }

    /// Groups the active lanes by the barrier at which they arrive and by the thread count that they specify. Each
    /// thread has its own operands.
    pub(super) fn arrivals(&self, barrier: &Barrier, active: &Active) -> Arrivals {
        let numbers = self.distinct(barrier.barrier, active);
        let counts = match barrier.threads {
            Some(slot) => {
                self.distinct(slot, active).into_iter().map(|(n, mask)| (Some(n as u32), mask)).collect()
            }
            None => SmallVec::<[(Option<u32>, Mask); 4]>::from_iter([(None, active.mask)]),
        };
        let pairs = numbers.into_iter().flat_map(|number| counts.iter().map(move |&count| (number, count)));
        let arrivals = pairs.map(|((number, at_number), (count, at_count))| {
            (number, count, active.mask & at_number & at_count)
        });
        arrivals.filter(|(_, _, together)| !together.is_empty()).collect()
    }

    /// At a barrier with a thread count, keeps only the path's lanes that complete the barrier or wait there. The
    /// barrier restarts when that many threads have arrived, so the other lanes become a path of their own, which
    /// arrives next.
    pub(super) fn divide_at_barrier(&mut self, path: &mut Path, barrier: &Barrier, shared: &Shared) {
        let mut active = Active::new(self.frames[path.frame].window, path.frame);
        active.set_path(path.mask, self.threads.lanes);
        let first_warp = self.threads.first_thread as usize / WARP_LANES;
        let mut later = Mask::EMPTY;
        for (number, threads, together) in self.arrivals(barrier, &active) {
            let Some(threads) = threads.filter(|_| number < BARRIERS as u64) else { continue };
            for (block, mask) in self.parts(together) {
                // Warps of the CTA, which need not be warps of the gang.
                let all = self.threads.block_masks[block];
                let (first, end) = (all.lowest().unwrap_or(0), all.highest().map_or(0, |lane| lane + 1));
                let warps = (first..end).step_by(WARP_LANES).enumerate();
                let warps =
                    warps.map(|(warp, lane)| (warp, mask & Mask::range(lane, end.min(lane + WARP_LANES))));
                let warps: SmallVec<[_; 32]> = warps.filter(|(_, lanes)| !lanes.is_empty()).collect();
                let of_shared = block * self.registers.rows().block_lanes().div_ceil(WARP_LANES) + first_warp;
                let arriving = warps.iter().map(|(warp, lanes)| {
                    let lane = first + warp * WARP_LANES;
                    (of_shared + warp, lanes.lanes_from(lane))
                });
                let taken = shared.until_complete(number as usize, threads, arriving);
                warps[taken..].iter().for_each(|(_, lanes)| later |= *lanes);
            }
        }
        if !later.is_empty() {
            self.split(path, later, path.block);
            self.scheduler.needed_changed = true;
        }
    }

    /// Threads arrive at a barrier. Returns true if the path continues.
    fn barrier(
        &mut self,
        path: &mut Path,
        barrier: &Barrier,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step<bool> {
        let from = path.block;
        path.block = barrier.next.0;
        // The usual case: all threads that have not ended arrive at one barrier, and none has arrived before.
        let plain = barrier.threads.is_none() && barrier.reduction.is_none();
        if plain
            && path.mask == self.alive
            && self.threads.whole_blocks
            && shared.no_barrier_used()
            && self.registers.uniform(active.window, barrier.barrier).is_some_and(|n| n < BARRIERS as u64)
        {
            shared.waiting.reset();
            return Ok(true);
        }
        let predicate = barrier.reduction.as_ref().map(|r| {
            let predicate = self.registers.predicate(active.window, r.src);
            if r.negated { !predicate } else { predicate }
        });
        let mut waiting: SmallVec<[Path; 2]> = SmallVec::new();
        for (number, threads, together) in self.arrivals(barrier, active) {
            if number >= BARRIERS as u64 {
                let note = format!("there is no barrier {number}: a block has {BARRIERS}, from 0 on");
                return Err(self.fault(FaultKind::Barrier, span, together, None, &note));
            }
            let index = number as usize;
            for (block, mask) in self.parts(together) {
                let generation = shared.barrier(block, index).generation;
                if self.registers.rows().blocks() > 1 && !self.has_whole_warps() {
                    let holds = |warp| predicate.map(|p| self.warp_of_blocks(p, warp));
                    for (warp, lanes) in self.warps_of_blocks(mask) {
                        shared.arrive(index, warp, lanes, threads, holds(warp));
                    }
                } else {
                    for (warp, lanes) in mask.warps() {
                        let in_block = self.threads.first_thread as usize / WARP_LANES + warp;
                        shared.arrive(index, in_block, lanes, threads, predicate.map(|p| p.warp(warp)));
                    }
                }
                shared.complete(block, index);
                let wait = Wait::Barrier { block: block as u8, index: index as u8, generation, from };
                waiting.push(Path { mask, wait, ..*path });
            }
        }
        if barrier.arrive {
            return Ok(true);
        }
        let is_over = |path: &Path| match path.wait {
            Wait::Barrier { block, index, generation, .. } => {
                shared.barrier(block.into(), index.into()).generation != generation
            }
            _ => false,
        };
        if self.scheduler.paths.is_empty() && waiting.iter().all(is_over) {
            waiting.iter().for_each(|path| self.finish_reduction(shared, path));
            return Ok(true);
        }
        // The first part remains this path.
        let mut parts = waiting.into_iter();
        if let Some(first) = parts.next() {
            *path = first;
        }
        for part in parts {
            self.frames.retain(part.frame);
            self.scheduler.paths.push(part);
        }
        Ok(false)
    }

    /// The barrier of a cluster of one CTA, where arrive and wait are separate steps. Returns true if the path
    /// continues.
    fn cluster_barrier(
        &mut self,
        path: &mut Path,
        arrive: bool,
        next: u32,
        active: &Active,
        shared: &mut Shared,
    ) -> bool {
        let from = path.block;
        path.block = next;
        let first = self.threads.first_thread as usize / WARP_LANES;
        if arrive {
            for (warp, lanes) in active.mask.warps() {
                shared.arrive(CLUSTER_BARRIER, first + warp, lanes, None, None);
            }
            shared.complete(0, CLUSTER_BARRIER);
            return true;
        }
        // A lane that is still recorded as arrived waits for the others.
        let barrier = shared.barrier(0, CLUSTER_BARRIER);
        let waits = active.mask.warps().any(|(warp, lanes)| barrier.waiting(first + warp) & lanes != 0);
        if waits {
            let generation = barrier.generation;
            path.wait = Wait::Barrier { block: 0, index: CLUSTER_BARRIER as u8, generation, from };
        }
        !waits
    }

    /// Writes the result of a barrier's reduction for a path that waited there.
    pub(super) fn finish_reduction(&mut self, shared: &Shared, path: &Path) {
        let Wait::Barrier { block, index, generation, from } = path.wait else { return };
        let frame = &self.frames[path.frame];
        let (window, function) = (frame.window, self.function(frame.function));
        let Some(Terminator::Barrier(barrier)) = function.map(|f| &f.blocks[from as usize].terminator) else {
            return;
        };
        let Some(BarrierResult { op, dst, .. }) = &barrier.reduction else { return };
        let Some((holds, all)) = shared.barrier(block.into(), index.into()).result(generation) else {
            return;
        };
        let value = match op {
            BarrierReduction::PopulationCount => holds.into(),
            BarrierReduction::And => u64::from(holds == all),
            BarrierReduction::Or => u64::from(holds > 0),
        };
        self.registers.set_all(window, *dst, value, path.mask, false);
    }
}

/// Returns the value of the lowest lane of `rest`, if there is one. Moves all lanes of `rest` with this value to
/// `alike`.
///
/// # Safety
/// The array must have an element of this width, which must not be a predicate, for all groups up to the last one
/// with lanes in `rest`. The host must have the helpers' instructions.
unsafe fn take_alike(
    array: *const u8,
    width: Width,
    rest: &mut Mask,
    alike: &mut Mask,
    helpers: &Helpers,
) -> Option<u64> {
    let lane = rest.lowest()?;
    let end = rest.highest().unwrap_or(lane) / GROUP_LANES + 1;
    *alike = Mask::EMPTY;
    // SAFETY: the caller's promise.
    let value = unsafe {
        let value = load(array, width, lane);
        (helpers.lanes_with)(&mut alike.0, array, lane_width(width), value, lane / 64 * 4..end);
        value
    };
    *alike &= *rest;
    *rest = rest.without(*alike);
    Some(value)
}
