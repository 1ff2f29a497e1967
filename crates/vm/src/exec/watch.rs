//! Reports to an external observer: accesses with resolved addresses, and everything that orders them.

use std::ops::ControlFlow;

use diag::Span;
use ir::{AccessKind, MbarrierOp, Multicast, SimpleOp, Start, shuffle_source};
use isa::Space;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::{resolve, shared_rank};
use machine::{
    AccessEvent, AsyncEvent, BarrierArrival, BarrierRelease, BarrierWait, Completion, CopyGroupEvent,
    DeviceCall, FaultKind, FenceEvent, LaneAccess, LaunchObserver, MbarrierEvent, ObserverHandle,
    OperationKind, TensorMemoryEvent, Values, WarpEvent, WarpKind, WarpLane,
};
use smallvec::SmallVec;

use super::mbarrier::Foreseen;
use super::observe::Observer;
use super::watch_values::Operands;
use super::{Active, Gang, Step};
use crate::code::{
    Access, Address, Block, Flow, Kind, MemoryOp, Op, Returned, TensorMemory, Terminator, WarpOp, flows,
};
use crate::footprint::{Footprint, Touch};
use crate::registers::SlotRef;
use crate::shared::{CLUSTER_BARRIER, Shared};

/// Reports to an observer what a host thread executes.
pub(crate) struct Watcher {
    pub(super) observer: ObserverHandle,
    /// A buffer, reused for each access.
    lanes: Vec<LaneAccess>,
    pub(super) addresses: Vec<u64>,
    threads: Vec<u32>,
    /// What `threads` holds: the CTA's number in its gang, the index of the gang's first thread, and the lanes. In a
    /// gang of several CTAs, one common key means all threads of any CTA.
    threads_of: (usize, u32, Mask),
    /// How often each barrier had completed before the terminator ran.
    generations: Vec<u32>,
    /// No thread had arrived at a barrier by then.
    unused: bool,
    /// The observer wants accesses.
    pub(super) accesses: bool,
    /// The observer wants operations; `follows` says whether it wants them at present.
    pub(super) operations: bool,
    follows: bool,
    /// The observer wants accesses to tensor memory.
    tensor_memory: bool,
    /// The accesses of CTAs to global memory, if they are recorded. `noted` says that the current access is already
    /// recorded.
    pub(super) footprint: Option<Footprint>,
    pub(super) noted: bool,
}

impl Watcher {
    pub fn new(observer: ObserverHandle) -> Watcher {
        let (lanes, addresses, threads, generations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (accesses, operations, follows) = observer.notify(|observer| {
            (observer.wants_accesses(), observer.wants_operations(), observer.follows_operations())
        });
        let tensor_memory = observer.notify(|observer| observer.wants_tensor_memory());
        Watcher {
            observer,
            lanes,
            addresses,
            threads,
            threads_of: (0, 0, Mask::EMPTY),
            generations,
            unused: false,
            accesses,
            operations,
            follows,
            tensor_memory,
            footprint: None,
            noted: false,
        }
    }

    /// A watcher that also records the CTAs' accesses to global memory.
    pub fn with_footprint(observer: ObserverHandle) -> Watcher {
        Watcher { footprint: Some(Footprint::default()), ..Watcher::new(observer) }
    }

    /// The observer's handle, and the recorded accesses to global memory.
    pub fn into_parts(self) -> (ObserverHandle, Option<Footprint>) {
        (self.observer, self.footprint)
    }

    /// Whether the observer wants operations at present.
    fn watches_operations(&self) -> bool {
        self.operations && self.follows
    }

    /// Reports an event to the observer, then asks whether it wants operations from now on.
    pub(super) fn notify_and_ask<T>(&mut self, event: impl FnOnce(&mut dyn LaunchObserver) -> T) -> T {
        let (answer, follows) = self.observer.notify(|observer| {
            let answer = event(observer);
            (answer, observer.follows_operations())
        });
        self.follows = follows;
        answer
    }

    /// Calls `f` with `%ctaid` and the threads of each CTA that has lanes in `mask`.
    pub(super) fn each_block(
        &mut self,
        gang: &Gang,
        mask: Mask,
        mut f: impl FnMut(&ObserverHandle, [u32; 3], &[u32]),
    ) {
        for (block, mask) in gang.parts(mask) {
            // The lanes are usually whole CTAs, and the same ones again and again.
            let several = gang.threads.block_masks.len() > 1;
            let which = match several && mask == gang.threads.block_masks[block] {
                true => (0, u32::MAX, Mask::EMPTY),
                false => (block, gang.threads.first_thread, mask),
            };
            if self.threads.is_empty() || self.threads_of != which {
                self.threads.clear();
                let first = match several {
                    false => gang.threads.first_thread,
                    true => 0u32.wrapping_sub((block * gang.registers.rows().block_lanes()) as u32),
                };
                mask.for_each(|lane| self.threads.push(first.wrapping_add(lane as u32)));
                self.threads_of = which;
            }
            f(&self.observer, gang.ctaid_of(block), &self.threads);
        }
    }

    /// Reports the effects of an operation other than its memory accesses.
    fn notify_effect(&mut self, gang: &Gang, shared: &Shared, op: &Op, mask: Mask, active: &Active) {
        let span = op.span;
        match &op.kind {
            Kind::Simple(SimpleOp::Fence { semantics }) => {
                self.each_block(gang, mask, |observer, block, threads| {
                    let event = FenceEvent::new(block, *semantics, span, threads);
                    observer.notify(|observer| observer.fence(&event));
                })
            }
            Kind::Simple(SimpleOp::CopyGroup(group)) => {
                self.each_block(gang, mask, |observer, block, threads| {
                    let event = CopyGroupEvent::new(block, *group, span, threads);
                    observer.notify(|observer| observer.copy_group(&event));
                })
            }
            Kind::Simple(SimpleOp::AsyncStep(step)) => {
                self.each_block(gang, mask, |observer, block, threads| {
                    let event = AsyncEvent::new(block, *step, span, threads);
                    observer.notify(|observer| observer.async_step(&event));
                })
            }
            Kind::TensorMemory(op) => self.notify_tensor_memory(gang, op, span, mask, active),
            Kind::Warp { op, members: members_slot, .. } => {
                if let WarpOp::TensorMemory(Ok(op)) = &**op {
                    self.notify_tensor_memory(gang, op, span, mask, active);
                }
                let members =
                    |lane| members_slot.map(|slot| gang.registers.get(active.window, slot, lane) as u32);
                let kind = match &**op {
                    WarpOp::Sync => WarpKind::Sync,
                    WarpOp::Shuffle { .. } => WarpKind::Shuffle,
                    // The PTX manual's example reads the address after this instruction without another barrier.
                    WarpOp::TensorMemory(Ok(op)) if matches!(**op, TensorMemory::Allocate { .. }) => {
                        WarpKind::Sync
                    }
                    WarpOp::Matrix(_) | WarpOp::TensorMemory(_) => WarpKind::Matrix,
                    _ => WarpKind::Collective,
                };
                let all_lanes = |members: u64| members as u32 == u32::MAX;
                let is_member = |slot| gang.registers.uniform(active.window, slot).is_some_and(all_lanes);
                let is_whole = mask.is_whole_warps_of(Mask::ALL) && members_slot.is_none_or(is_member);
                if !self.observer.notify(|observer| observer.wants_warp(kind, is_whole)) {
                    return;
                }
                let source = |lane: usize| {
                    let WarpOp::Shuffle { mode, b, c, .. } = **op else { return None };
                    let [b, c] = [b, c].map(|slot| gang.registers.get(active.window, slot, lane) as u32);
                    let (source, _) = shuffle_source(mode, (lane % WARP_LANES) as u32, b, c);
                    Some((gang.thread_of(lane) / WARP_LANES * WARP_LANES) as u32 + source)
                };
                self.notify_warp(gang, kind, span, mask, members, source);
            }
            Kind::Memory(op) => self.notify_mbarrier_operation(gang, shared, op, span, mask, active),
            _ => {}
        }
    }

    /// Reports what an operation does to an mbarrier object, if to any: most complete bytes.
    fn notify_mbarrier_operation(
        &mut self,
        gang: &Gang,
        shared: &Shared,
        op: &MemoryOp,
        span: Span,
        mask: Mask,
        active: &Active,
    ) {
        let is_of_object = |kind| matches!(kind, AccessKind::Mbarrier | AccessKind::MbarrierTest);
        let object = op.accesses().into_iter().find(|access| is_of_object(access.kind));
        let Some(Access { start: Start::Address(address), multicast, .. }) = object else { return };
        let number = |slot, lane| gang.registers.get(active.window, slot, lane);
        let value = |lane| match op {
            MemoryOp::Mbarrier(mbarrier) => mbarrier.value.map_or(1, |slot| number(slot, lane)),
            MemoryOp::CopyBulk(copy) => number(copy.size, lane),
            MemoryOp::CopyTensor(copy) => gang.tensor_bytes(copy, active, lane),
            MemoryOp::TryCancel(_) => ir::RESPONSE_BYTES.into(),
            MemoryOp::StoreAsync(store) => u64::from(store.bytes) * store.src.len() as u64,
            MemoryOp::Atomic(_)
            | MemoryOp::AtomicWide(_)
            | MemoryOp::CheckAlignment(_)
            | MemoryOp::CopyAsync(_)
            | MemoryOp::TensorMapReplace(_)
            | MemoryOp::TensorMapCopy(_)
            | MemoryOp::StoreBulk(_) => 0,
        };
        let what = match op {
            MemoryOp::Mbarrier(mbarrier) => (span, mbarrier.op, false),
            _ => (span, MbarrierOp::CompleteTransactions, true),
        };
        self.notify_mbarrier(gang, shared, what, (&address, multicast), mask, active, value);
    }

    /// Reports an instruction's accesses to tensor memory.
    fn notify_tensor_memory(
        &mut self,
        gang: &Gang,
        op: &TensorMemory,
        span: Span,
        mask: Mask,
        active: &Active,
    ) {
        if !self.tensor_memory {
            return;
        }
        // CTAs that have tensor memory run alone, in no CTA batch.
        let Some((access, cells, sources)) = gang.tensor_access(op, mask, active) else { return };
        let block = gang.block_of(mask.lowest().unwrap_or(0));
        let event = TensorMemoryEvent::new(block, span, access, &cells, &sources);
        self.notify_and_ask(|observer| observer.tensor_memory(&event));
    }

    /// Reports that barriers of the gang's CTAs are complete.
    fn notify_released(&self, gang: &Gang, span: Span, released: &[(usize, u64)], mask: Mask) -> Step {
        for &(of_gang, barrier) in released {
            let release = BarrierRelease::new(gang.ctaid_of(of_gang), barrier, span);
            let flow = self.observer.notify(|observer| observer.barrier_release(&release));
            proceed(flow, gang, span, mask)?;
        }
        Ok(())
    }

    fn notify_warp(
        &mut self,
        gang: &Gang,
        kind: WarpKind,
        span: Span,
        mask: Mask,
        members: impl Fn(usize) -> Option<u32>,
        source: impl Fn(usize) -> Option<u32>,
    ) {
        for (block, mask) in gang.parts(mask) {
            let lane = |lane: usize| WarpLane::new(gang.thread_of(lane) as u32, members(lane), source(lane));
            let lanes: Vec<WarpLane> = mask.into_iter().map(lane).collect();
            let event = WarpEvent::new(gang.ctaid_of(block), kind, span, &lanes);
            self.notify_and_ask(|observer| observer.warp(&event));
        }
    }

    #[allow(clippy::too_many_arguments)] // an operation, its operands, and who executes it
    fn notify_mbarrier(
        &mut self,
        gang: &Gang,
        shared: &Shared,
        (span, op, by_copy): (Span, MbarrierOp, bool),
        (address, multicast): (&Address, Option<Multicast<SlotRef>>),
        mask: Mask,
        active: &Active,
        value: impl Fn(usize) -> u64,
    ) {
        let at = gang.lane_addresses(address, active);
        let mut words = SmallVec::new();
        let mut notify = |lane: usize, inner: u64, value: u64| {
            let foreseen = match op {
                // Without `.noinc`, the instruction adds one pending arrival and then arrives: no net effect.
                MbarrierOp::ArriveAfterCopies { counted: true } => {
                    Some(Foreseen { exists: true, completes: false, over: false, later: 0 })
                }
                op => gang.foresee_mbarrier(op, value, address.space, inner, shared, &mut words),
            };
            let Some(foreseen) = foreseen else { return };
            let block = gang.block_of(lane);
            let (_, inner, owner) = gang.owner(address.space, inner, block);
            let event = MbarrierEvent::new(
                block,
                gang.thread_of(lane) as u32,
                span,
                op,
                by_copy,
                inner,
                owner,
                foreseen.exists,
                foreseen.completes,
                foreseen.over,
                foreseen.later,
            );
            self.observer.notify(|observer| observer.mbarrier(&event));
        };
        for lane in mask {
            match multicast {
                None => notify(lane, at(lane), value(lane)),
                Some(multicast) => {
                    gang.each_receiver(multicast, address, active, lane, |at| notify(lane, at, value(lane)));
                }
            }
        }
    }
}

impl Gang<'_> {
    /// Resolves an address that a thread of a CTA uses: its space, the address in that space, and the CTA that owns
    /// the memory.
    fn owner(&self, space: Space, address: u64, block: [u32; 3]) -> (Space, u64, [u32; 3]) {
        let (space, inner) = resolve(space, address);
        if space != Space::Shared || self.launch.cluster_blocks() == 1 {
            return (space, inner, block);
        }
        let (rank, inner) = shared_rank(inner);
        let rank = rank.min(self.launch.cluster_blocks() - 1);
        (space, inner, self.launch.neighbour(block, rank))
    }
}

/// When an access of an operation is complete.
fn completion(op: &Kind, access: &Access) -> Completion {
    let kind = access.kind;
    let op = match op {
        Kind::Memory(op) => &**op,
        Kind::Warp { .. } if matches!(access.start, Start::Descriptor(_)) => return Completion::ProductGroup,
        Kind::TensorMemory(_) => return Completion::Commit,
        _ => return Completion::AtOnce,
    };
    match op {
        MemoryOp::CopyAsync(_) => Completion::Group,
        MemoryOp::CopyBulk(copy) if copy.mbarrier.is_none() => Completion::BulkGroup,
        MemoryOp::CopyTensor(copy) if copy.mbarrier.is_none() && kind != AccessKind::Load => {
            Completion::BulkGroup
        }
        MemoryOp::CopyTensor(_) if !matches!(kind, AccessKind::CopyRead | AccessKind::CopyWrite) => {
            Completion::AtOnce
        }
        MemoryOp::CopyBulk(_)
        | MemoryOp::CopyTensor(_)
        | MemoryOp::TryCancel(_)
        | MemoryOp::StoreAsync(_)
            if kind != AccessKind::Mbarrier =>
        {
            Completion::Mbarrier
        }
        _ => Completion::AtOnce,
    }
}

/// Whether an operation may do more than compute and access memory ([`Watcher::notify_effect`]).
fn has_effect(kind: &Kind) -> bool {
    match kind {
        Kind::Pure(_) | Kind::Param { .. } | Kind::AddressOf { .. } | Kind::Link(_) => false,
        Kind::Simple(op) => !op.computes(),
        _ => true,
    }
}

/// Whether no thread arrives at a barrier, exits, enters or leaves a function at this terminator.
fn is_quiet(terminator: &Terminator) -> bool {
    matches!(terminator, Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::BranchIndexed { .. })
}

/// Turns an observer's request to stop into a fault that ends the run.
pub(super) fn proceed(flow: ControlFlow<()>, gang: &Gang, span: Span, mask: Mask) -> Step {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(gang.fault(FaultKind::Stopped, span, mask, None, "")),
    }
}

impl Observer for Watcher {
    const GIVES_WAY: bool = true;

    fn before(&mut self, gang: &Gang, shared: &Shared, block: &Block, index: usize, active: &Active) -> Step {
        let op = &block.ops[index];
        // The operation only writes registers.
        let is_plain = block.accesses[index].is_empty() && !has_effect(&op.kind);
        if is_plain && !self.watches_operations() {
            return Ok(());
        }
        let mut mask = active.mask;
        if let Some(guard) = op.guard {
            if self.watches_operations() && !is_plain {
                let (kind, uses, defs) = (OperationKind::Decide, SmallVec::new(), SmallVec::new());
                let decides = [guard.slot].into_iter().collect();
                let flow = Flow { kind, uses, defs, decides, pure: None, warp: None, optional: None };
                self.notify_operation(gang, op.span, &flow, None, active.mask, active);
            }
            mask &= gang.holds(guard, active);
        }
        if is_plain {
            for flow in flows(op) {
                self.notify_operation(gang, op.span, &flow, op.guard.map(|guard| guard.slot), mask, active);
            }
            return Ok(());
        }
        if mask.is_empty() {
            return Ok(());
        }
        let accesses =
            if self.accesses || self.footprint.is_some() { &block.accesses[index][..] } else { &[] };
        for access in accesses {
            self.noted = false;
            let mask = self.notify_blocks(gang, op, access, mask, active)?;
            if mask.is_empty() {
                continue;
            }
            self.lanes.clear();
            let space = match &access.start {
                Start::Address(address) | Start::Box(address) => address.space,
                Start::Descriptor(_) => Space::Shared,
                Start::Texels | Start::Tensor => Space::Global,
            };
            // Looking up the CTA of each lane takes time.
            let single = (gang.threads.block_masks.len() == 1)
                .then_some((gang.threads.ctaids[0], gang.threads.first_thread));
            gang.resolve_access(op, access, mask, active, |lane, address, bytes| {
                let (block, thread) = match single {
                    Some((block, first)) => (block, first + lane as u32),
                    None => (gang.block_of(lane), gang.thread_of(lane) as u32),
                };
                let (space, address, owner) = gang.owner(space, address, block);
                self.lanes.push(LaneAccess { block, thread, space, address, owner, bytes });
            });
            let (kind, semantics) = (access.kind, access.semantics);
            if let Some(footprint) = self.footprint.as_mut().filter(|_| !self.noted) {
                for lane in self.lanes.iter().filter(|lane| lane.space == Space::Global) {
                    let touch = Touch::of(kind, semantics, lane.bytes);
                    footprint.note(gang.launch, gang.threads.ctaids[0], touch, lane.address, lane.bytes);
                }
            }
            if !self.accesses {
                continue;
            }
            let operands = Operands { gang, shared, op, active };
            let values = Values::new(&operands);
            let completion = completion(&op.kind, access);
            let (span, lanes) = (op.span, &self.lanes[..]);
            let event = AccessEvent::new(kind, semantics, space, span, lanes, completion, values);
            let (flow, follows) =
                self.observer.notify(|observer| (observer.access(&event), observer.follows_operations()));
            self.follows = follows;
            proceed(flow, gang, op.span, mask)?;
        }
        self.notify_effect(gang, shared, op, mask, active);
        if self.watches_operations() {
            for flow in flows(op) {
                self.notify_operation(gang, op.span, &flow, None, mask, active);
            }
        }
        Ok(())
    }

    fn start(&mut self, gang: &Gang, frame: u32, mask: Mask) {
        if self.operations {
            self.notify_enter(gang, frame, mask);
        }
    }

    fn warp_sync(&mut self, gang: &Gang, span: Span, mask: Mask, members: impl Fn(usize) -> u32) {
        self.notify_warp(gang, WarpKind::Sync, span, mask, |lane| Some(members(lane)), |_| None);
    }

    fn before_end(&mut self, gang: &Gang, shared: &Shared, block: &Block, active: &Active) -> Step {
        if !is_quiet(&block.terminator) {
            self.generations.clear();
            self.unused = shared.no_barrier_used();
            if !self.unused {
                self.generations.extend(shared.generations());
            }
        }
        let span = block.span;
        if self.watches_operations() {
            let decides: SmallVec<[SlotRef; 6]> = match &block.terminator {
                Terminator::Branch { pred, .. } => [*pred].into_iter().collect(),
                Terminator::BranchIndexed { index, .. } => [*index].into_iter().collect(),
                Terminator::Barrier(barrier) => {
                    let reduced = barrier.reduction.as_ref().map(|reduction| reduction.src);
                    [Some(barrier.barrier), barrier.threads, reduced].into_iter().flatten().collect()
                }
                _ => SmallVec::new(),
            };
            let defs: SmallVec<[Option<SlotRef>; 4]> = match &block.terminator {
                Terminator::Barrier(barrier) => barrier.reduction.iter().map(|r| Some(r.dst)).collect(),
                Terminator::Call(call) => {
                    let slot = |place: &Returned| match place {
                        Returned::Slot(slot) => Some(*slot),
                        Returned::Frame(_) | Returned::Ignored => None,
                    };
                    call.returned.iter().map(slot).collect()
                }
                _ => SmallVec::new(),
            };
            if !decides.is_empty() || !defs.is_empty() {
                let (kind, uses) = (OperationKind::Decide, SmallVec::new());
                let flow = Flow { kind, uses, defs, decides, pure: None, warp: None, optional: None };
                self.notify_operation(gang, span, &flow, None, active.mask, active);
            }
        }
        let (arrivals, waits) = match &block.terminator {
            Terminator::Barrier(barrier) => (gang.arrivals(barrier, active), !barrier.arrive),
            Terminator::ClusterBarrier { arrive: true, .. } => {
                ([(CLUSTER_BARRIER as u64, None, active.mask)].into_iter().collect(), false)
            }
            Terminator::ClusterBarrier { arrive: false, .. } => {
                self.each_block(gang, active.mask, |observer, block, threads| {
                    let wait = BarrierWait::new(block, CLUSTER_BARRIER as u64, span, threads);
                    observer.notify(|observer| observer.barrier_wait(&wait));
                });
                return Ok(());
            }
            Terminator::Exit => return self.notify_exit(gang, span, active),
            Terminator::Return if gang.frames[active.frame].parent.is_none() => {
                return self.notify_exit(gang, span, active);
            }
            _ => return Ok(()),
        };
        for (barrier, count, mask) in arrivals {
            let count = count.map(u64::from);
            let mut flow = ControlFlow::Continue(());
            self.each_block(gang, mask, |observer, block, threads| {
                let arrival = BarrierArrival::new(block, barrier, waits, count, span, threads);
                if flow.is_continue() {
                    flow = observer.notify(|observer| observer.barrier_arrive(&arrival));
                }
            });
            proceed(flow, gang, span, mask)?;
        }
        Ok(())
    }

    fn after_end(&mut self, gang: &Gang, shared: &Shared, block: &Block, active: &Active) -> Step {
        if is_quiet(&block.terminator) {
            return Ok(());
        }
        if let Terminator::Call(call) = &block.terminator {
            if self.operations {
                for path in gang.scheduler.paths.iter().filter(|path| path.block == 0) {
                    if gang.frames[path.frame].parent == Some(active.frame) {
                        self.notify_enter(gang, path.frame, path.mask);
                    }
                }
            }
            gang.called(call, active, |lane, function| {
                let (ctaid, thread) = (gang.block_of(lane), gang.thread_of(lane) as u32);
                let call = DeviceCall::new(ctaid, thread, block.span, function);
                self.observer.notify(|observer| observer.device_call(&call));
            });
        }
        let mut released = Vec::new();
        if self.unused && shared.no_barrier_used() {
            if let Terminator::Barrier(barrier) = &block.terminator {
                // All threads of the gang's CTAs arrived together and continued at once.
                for (number, mask) in gang.distinct(barrier.barrier, active) {
                    released.extend(gang.parts(active.mask & mask).map(|(block, _)| (block, number)));
                }
            }
            // A cluster barrier may have completed without these threads.
            if gang.launch.cluster_blocks() == 1 {
                return self.notify_released(gang, block.span, &released, active.mask);
            }
        }
        let before = self.generations.iter().copied().chain(std::iter::repeat(0));
        for (place, (after, before)) in shared.generations().zip(before).enumerate() {
            let (block, barrier) = (place / (CLUSTER_BARRIER + 1), place % (CLUSTER_BARRIER + 1));
            if after != before {
                released.push((block, barrier as u64));
            }
        }
        self.notify_released(gang, block.span, &released, active.mask)
    }
}
