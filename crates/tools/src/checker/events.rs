//! What the observer of the tools does with each event.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use diag::Span;
use isa::Space;
use machine::{
    AccessEvent, AccessKind, AsyncEvent, AsyncStep, BarrierArrival, BarrierRelease, BarrierWait, BlockAccess,
    CopyGroupEvent, DeviceCall, DeviceFunction, EnterEvent, ExitEvent, FenceEvent, LaneAccess, Launch,
    LaunchObserver, MbarrierEvent, MbarrierOp, ObserverHandle, OperationEvent, TensorMemoryEvent, WarpEvent,
    WarpKind, WarpLane,
};

use crate::block::{Threads, WARP, insert};
use crate::finding::{Site, Tool};
use crate::init::Values;
use crate::place::Extents;
use crate::race::Races;
use crate::results::Results;
use crate::sync::Misuse;
use crate::tensor::TensorMemories;
use crate::usage::Usage;
use crate::waits::Work;

use super::{CLUSTER_BARRIER, Checker, lock};

impl LaunchObserver for Checker {
    fn begin(&mut self, launch: &Launch) {
        let (config, module) = (launch.config(), launch.module());
        if self.kernel != launch.kernel_name() {
            self.kernel = launch.kernel_name().to_owned();
            self.look_at_code(module);
        }
        self.block = config.block;
        self.threads = config.block_threads() as u32;
        // Before sm_70, the lanes of a warp run in lockstep.
        let lock_step = module.target.number < 70;
        let extents = Extents { grid: config.grid, cluster: launch.cluster() };
        self.races = Races::new(extents, self.threads, lock_step);
        if self.tools.has(Tool::Racecheck) {
            self.usage = Usage::begin(&self.usage, module, &self.kernel);
        }
        self.uses.clear();
        self.values = Values::new(Arc::clone(&self.memory), self.tools.has(Tool::Initcheck));
        self.values.reserved_shared = launch.reserved_shared_bytes();
        self.races.reserved_shared = self.values.reserved_shared;
        self.races.signals.clone_from(&self.asynchronous.signals);
        self.races.has_async_reads = self.asynchronous.reads;
        self.races.only_copies =
            !self.tools.has(Tool::Racecheck) && !self.asynchronous.reads && !self.races.has_clusters();
        self.results = Results::default();
        self.tensors = TensorMemories::default();
        self.races.reductions.clone_from(&self.reductions);
    }

    fn wants_accesses(&self) -> bool {
        self.watches_memory() || self.tools.has(Tool::Initcheck)
    }

    fn wants_block_access(&self, kind: AccessKind, space: Space) -> bool {
        self.watches_memory() || self.tools.has(Tool::Initcheck) && self.values.wants(kind, space)
    }

    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), Threads> {
        if self.may_overwrite_objects(access.kind, access.space)
            && let Some(uses) = self.uses.get(&access.block)
            && !access.parts(|address, bytes| uses.object_in(address, bytes).is_none())
        {
            return ControlFlow::Continue(*access.threads);
        }
        if self.tools.has(Tool::Racecheck) && access.kind.writes() {
            self.usage.execute(self.races.index(access.block), access.span.start, access.threads);
        }
        let is_initialized = !self.tools.has(Tool::Initcheck) || self.values.block_access(access);
        ControlFlow::Continue(match () {
            () if !is_initialized => *access.threads,
            () if self.watches_memory() => {
                let left = self.races.block_access(access);
                self.take_races();
                left
            }
            () => [0; 16],
        })
    }

    fn access(&mut self, event: &AccessEvent) -> ControlFlow<()> {
        if self.tools.has(Tool::Racecheck) && event.kind.writes() {
            for lanes in event.lanes.chunk_by(|one, other| one.block == other.block) {
                let mut threads = [0; 16];
                lanes.iter().for_each(|lane| insert(&mut threads, lane.thread));
                self.usage.execute(self.races.index(lanes[0].block), event.span.start, &threads);
            }
        }
        if self.may_overwrite_objects(event.kind, event.space) {
            self.check_objects(event);
        }
        if self.watches_memory() {
            self.races.access(event);
            self.take_races();
        }
        if self.tools.has(Tool::Initcheck) {
            let is_param = event.space == Space::Param || self.param_loads.contains(&event.span.start);
            self.values.access(event, is_param);
            self.take_uses();
        }
        ControlFlow::Continue(())
    }

    fn barrier_arrive(&mut self, arrival: &BarrierArrival) -> ControlFlow<()> {
        let BarrierArrival { block, barrier, threads, waits, count, .. } = *arrival;
        if !self.watches_memory() {
            // No tool needs the order.
        } else if barrier == CLUSTER_BARRIER && self.races.has_clusters() {
            let relaxed = self.relaxed.contains(&arrival.span.start);
            self.races.arrive_at_cluster(block, threads, relaxed);
        } else {
            if !waits {
                self.races.settle(block, false);
            }
            self.races.block(block).order.arrive(barrier, threads, waits, count.is_some());
        }
        self.check_use(block, |uses, found| uses.arrive(arrival, found));
        ControlFlow::Continue(())
    }

    fn barrier_wait(&mut self, wait: &BarrierWait) {
        if !self.watches_memory() {
            return;
        }
        if wait.barrier == CLUSTER_BARRIER && self.races.has_clusters() {
            return self.races.wait_for_cluster(wait.block, wait.threads);
        }
        self.races.block(wait.block).order.wait(wait.barrier, wait.threads);
    }

    fn barrier_release(&mut self, release: &BarrierRelease) -> ControlFlow<()> {
        let of_cluster = release.barrier == CLUSTER_BARRIER && self.races.has_clusters();
        if self.watches_memory() && of_cluster {
            self.races.complete_cluster(release.block);
        } else if self.watches_memory() {
            self.races.complete_barrier(release.block, release.barrier);
        }
        if !self.tools.has(Tool::Synccheck) {
            return ControlFlow::Continue(());
        }
        let blocks = if of_cluster { self.races.cluster(release.block) } else { vec![release.block] };
        let (aligned, threads) = (std::mem::take(&mut self.aligned), self.threads);
        for block in blocks {
            self.check_use(block, |uses, found| {
                let is_aligned = |span: Span| aligned.get(&span.start).copied().unwrap_or(false);
                uses.complete(release.barrier, threads, is_aligned, found);
            });
        }
        self.aligned = aligned;
        ControlFlow::Continue(())
    }

    fn fence(&mut self, fence: &FenceEvent) {
        self.races.fence(fence.block, fence.semantics, fence.span, fence.threads);
        if self.asynchronous.proxy_fences.contains(&fence.span.start) {
            self.races.fence_proxies(fence.block, fence.threads);
        }
    }

    fn async_step(&mut self, event: &AsyncEvent) {
        let AsyncEvent { block, step, span, threads, .. } = *event;
        self.races.step(block, step, threads);
        if self.follows_results() {
            self.results.step(block, step, threads);
        }
        if step == AsyncStep::WaitTensorStores {
            self.tensors.wait(block, threads);
        }
        if matches!(step, AsyncStep::SetRegisters { .. }) {
            self.warpgroups.entry(block).or_default().execute(span, threads);
        }
    }

    fn wants_tensor_memory(&self) -> bool {
        self.tools.has(Tool::Initcheck) || self.tools.has(Tool::Synccheck)
    }

    fn tensor_memory(&mut self, event: &TensorMemoryEvent) {
        let undefined = self.tensors.access(event);
        self.take_early_cells();
        if self.tools.has(Tool::Initcheck) {
            self.values.load_cells(event.span, undefined);
        }
    }

    fn wants_warp(&self, kind: WarpKind, whole: bool) -> bool {
        match kind {
            WarpKind::Sync => self.watches_memory(),
            WarpKind::Shuffle => {
                self.tools.has(Tool::Synccheck) && !whole || self.values.has_undefined_registers()
            }
            WarpKind::Matrix => self.tools.has(Tool::Synccheck) && !whole,
            WarpKind::Collective => self.watches_memory() && self.asynchronous.ends_objects,
        }
    }

    fn warp(&mut self, event: &WarpEvent) {
        if event.kind == WarpKind::Sync {
            self.races.meet(event.block, &groups_of(event.lanes));
            return;
        }
        if event.kind == WarpKind::Collective {
            // Without a member mask, no lane waits for another.
            if event.lanes.iter().all(|lane| lane.members.is_some()) {
                self.races.meet_in_collective(event.block, &groups_of(event.lanes));
            }
            return;
        }
        if event.kind == WarpKind::Shuffle {
            self.values.shuffle(event);
        }
        if !self.tools.has(Tool::Synccheck) {
            return;
        }
        let mut found = Vec::new();
        self.uses.entry(event.block).or_default().warp(event, self.threads, &mut found);
        for misuse in found {
            match misuse {
                // The kernel may discard the value that it read there.
                Misuse::Inactive { here, source } => self.values.read_absent(event.block, here, source),
                misuse => self.add_misuse(event.block, &misuse),
            }
        }
    }

    fn copy_group(&mut self, event: &CopyGroupEvent) {
        self.races.copy_group(event.block, event.threads, event.group);
    }

    fn mbarrier(&mut self, event: &MbarrierEvent) {
        let MbarrierEvent { block, thread, address, owner, op, .. } = *event;
        if event.by_copy {
            self.races.name_work(Work::Object, block, thread, owner, address);
        } else if self.asynchronous.commits.contains(&event.span.start) {
            self.races.name_work(Work::Tensor, block, thread, owner, address);
        }
        self.take_races();
        let is_relaxed = self.asynchronous.relaxed.contains(&event.span.start);
        match op {
            MbarrierOp::Init { .. } => {
                self.check_use(owner, |uses, found| uses.make_object(address, (event.span, thread), found));
                return;
            }
            MbarrierOp::Invalidate => {
                self.check_use(owner, |uses, _| uses.end_object(address));
                return;
            }
            MbarrierOp::Test { .. } => {
                if event.over && !is_relaxed {
                    self.races.wait_object(block, thread, owner, address, event.later);
                }
                return;
            }
            MbarrierOp::ArriveAfterCopies { .. } => {
                // The thread does not wait: a thread that sees the phase over knows that the copies are done.
                let copies = self.races.block(block).order.copies_stamp(thread);
                let arrivals = self.races.block(owner).order.arrivals(address);
                arrivals.raise(copies.block, copies.thread, copies.epoch + 1);
                self.races.arrive_object(block, thread, owner, address);
            }
            MbarrierOp::Arrive { .. } | MbarrierOp::ArriveExpecting { .. } if is_relaxed => {}
            MbarrierOp::Arrive { .. } | MbarrierOp::ArriveExpecting { .. } => {
                self.races.arrive_object(block, thread, owner, address);
            }
            MbarrierOp::ExpectTransactions
            | MbarrierOp::CompleteTransactions
            | MbarrierOp::Report
            | MbarrierOp::CheckLayout { .. }
            | MbarrierOp::PendingCount => {}
        }
        if event.completes {
            self.races.block(owner).order.complete_object(address);
        }
    }

    fn exit(&mut self, event: &ExitEvent) {
        let is_over = self.races.exit(event.block, event.threads);
        self.take_absent();
        if is_over {
            if self.tools.has(Tool::Racecheck) {
                let known = self.usage.end_block(self.races.index(event.block), self.threads);
                known.into_iter().for_each(|race| self.add_race(race));
            }
            if !self.uses.is_empty() {
                self.uses.remove(&event.block);
            }
            self.values.end_block(event.block);
            self.results.end_block(event.block);
            self.tensors.end_block(event.block);
            if !self.warpgroups.is_empty()
                && let Some(warpgroups) = self.warpgroups.remove(&event.block)
            {
                warpgroups.finish().for_each(|part| self.add_part(event.block, &part));
            }
        } else {
            self.check_use(event.block, |uses, _| uses.exit(event.span, event.threads));
        }
    }

    fn wants_operations(&self) -> bool {
        // synccheck follows what shuffles read from lanes that do not participate.
        self.tools.has(Tool::Initcheck) || self.tools.has(Tool::Synccheck)
    }

    fn follows_operations(&self) -> bool {
        self.values.are_any_undefined() || self.follows_results()
    }

    fn operation(&mut self, event: &OperationEvent) {
        if self.follows_results() {
            let issue = self.asynchronous.issues.get(&event.span.start).copied();
            self.results.operation(event, issue.filter(|issue| issue.is_made_by(event.kind)));
            self.take_results();
        }
        self.values.operation(event);
        self.take_uses();
    }

    fn enter(&mut self, event: &EnterEvent) {
        self.results.enter(event.gang, event.window);
        self.values.enter(event);
    }

    fn device_call(&mut self, call: &DeviceCall) {
        match call.function {
            DeviceFunction::Malloc { bytes, address: 0 } if bytes > 0 => self.add_failed_malloc(call, bytes),
            DeviceFunction::Malloc { address: 0, .. } | DeviceFunction::Free { address: 0 } => {}
            DeviceFunction::Malloc { bytes, address } => {
                let site = Site::new(call.span, call.block, call.thread, "allocates");
                self.heap.insert(address, (site, bytes));
                self.values.allocate(address, bytes);
            }
            DeviceFunction::Free { address } => {
                self.heap.remove(&address);
                self.values.free(address);
            }
            DeviceFunction::Stored { space, address, bytes } => {
                let (block, thread) = (call.block, call.thread);
                self.values.write(&LaneAccess { block, thread, space, address, owner: block, bytes });
            }
            DeviceFunction::GridSynchronize => self.races.arrive_at_grid_barrier(),
        }
    }

    fn fork(&self, launch: &Launch) -> Option<ObserverHandle> {
        let mut fork = Checker::new(self.tools);
        // Writes of other parts do not matter: if blocks depend on each other, the launch runs again.
        fork.memory = Arc::new(Mutex::new(lock(&self.memory).only_unwritten()));
        (fork.learned, fork.is_fork) = (Arc::clone(&self.learned), true);
        fork.watched = self.watched.clone();
        fork.usage = self.usage.of_same_code();
        fork.begin(launch);
        Some(ObserverHandle::new(Arc::new(Mutex::new(fork))))
    }

    fn has_found(&self) -> bool {
        !self.findings.is_empty() || self.usage.has_open() || !self.heap.is_empty() || self.values.forgot
    }

    fn wants_one_thread(&self) -> bool {
        true
    }

    fn undone(&mut self) {
        lock(&self.learned).clear();
        self.watched.clear();
    }

    fn end(&mut self, launch: &Launch) {
        if self.is_fork {
            let memory = std::mem::take(&mut *lock(&self.memory));
            lock(&self.learned).push(memory);
        } else {
            let learned = std::mem::take(&mut *lock(&self.learned));
            learned.iter().for_each(|of_fork| lock(&self.memory).join(of_fork));
        }
        for (block, uses) in std::mem::take(&mut self.uses) {
            let mut found = Vec::new();
            uses.abandon(&mut found);
            found.iter().for_each(|misuse| self.add_misuse(block, misuse));
        }
        let races = self.usage.end();
        races.into_iter().for_each(|race| self.add_race(race));
        self.findings.describe(|space, address| launch.describe(space, address, 1));
        self.watched.find(&self.races);
        self.races = Races::default();
    }
}

/// Lanes that meet: those of a warp that name the same members.
fn groups_of(lanes: &[WarpLane]) -> Vec<(u32, u32)> {
    let mut groups: Vec<(u32, u32, u32)> = Vec::new();
    for lane in lanes {
        let (warp, members) = (lane.thread / WARP, lane.members.unwrap_or(u32::MAX));
        let bit = 1 << (lane.thread % WARP);
        match groups.iter_mut().find(|group| (group.0, group.1) == (warp, members)) {
            Some(group) => group.2 |= bit,
            None => groups.push((warp, members, bit)),
        }
    }
    groups.into_iter().map(|(warp, _, lanes)| (warp, lanes)).collect()
}
