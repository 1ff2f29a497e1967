//! Release and acquire patterns: what strong writes pass to the threads that read them (PTX ISA 8.8, "Release and acquire patterns").
//!
//! A variable that strong writes access keeps what was released with it, by block and scope. If a read acquires nothing because a
//! scope, a release or an acquire is missing, a near miss ([`NearMiss`]) records that and explains the race that follows.
//!
//! The order of two `fence.sc` becomes known from values: if a read after fence A finds an older value than the one that the thread
//! of fence B wrote or saw before B, then A comes first.

use std::collections::HashMap;
use std::sync::Arc;

use diag::Span;
use isa::Space;
use machine::{AccessKind, LaneAccess, Order, Scope, Semantics};

use crate::block::{BlockOrder, Mark, range};
use crate::clock::{Clock, Stamp};
use crate::place::{Extents, Place};
use crate::race::{Races, RunningBlock};

/// What was released with the value of a variable.
#[derive(Clone)]
pub(crate) struct Release {
    block: u32,
    scope: Scope,
    clock: Arc<Clock>,
    place: u32,
}

/// A memory location that strong writes access.
#[derive(Default)]
pub(crate) struct Variable {
    releases: Vec<Release>,
    /// The latest strong write that releases nothing.
    relaxed: Option<(Stamp, u32)>,
    /// The fences before reads of the current value, and the fences before reads of values that strong writes have replaced.
    looks: Vec<SequentialFence>,
    missed: Vec<SequentialFence>,
}

/// A `fence.sc` of a thread (PTX ISA 8.9.3, "Fence-SC order").
#[derive(Clone)]
struct SequentialFence {
    block: u32,
    /// The smaller of the scopes of the fence and of the read after it.
    scope: Scope,
    /// What its thread knew and had done.
    clock: Arc<Clock>,
}

/// Adds a fence to a list.
fn add(fences: &mut Vec<SequentialFence>, new: SequentialFence) {
    match fences.iter_mut().find(|known| (known.block, known.scope) == (new.block, new.scope)) {
        Some(known) if Arc::ptr_eq(&known.clock, &new.clock) => {}
        Some(known) => Arc::make_mut(&mut known.clock).join(&new.clock),
        None => fences.push(new),
    }
}

/// A released value that a thread has read without acquiring.
pub(crate) struct SeenRelease {
    /// The location: the block, if it is in shared memory, and the address.
    variable: (Option<u32>, u64),
    /// The scope of the read.
    scope: Scope,
    release: Release,
}

/// What a thread did that may become part of a pattern.
#[derive(Default)]
pub(crate) struct Patterns {
    /// The latest fence: strong writes after it release what the thread knew then.
    fence: Option<(Scope, Mark, u32)>,
    /// Strong reads of released values: a later fence acquires these.
    read: Vec<SeenRelease>,
    /// The latest `fence.sc` of each scope.
    sequential: Vec<SequentialFence>,
    /// Fences of other threads that precede the next one of this thread in Fence-SC order: a read after them found an older value than
    /// this thread had written or seen, which the opposite order forbids.
    before: Vec<SequentialFence>,
}

/// Why a read acquired nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Miss {
    /// The scope of the release does not include the other block.
    ReleaseScope,
    /// The scope of the acquire does not include the other block.
    AcquireScope,
    /// The write does not release.
    NoRelease,
    /// The read does not acquire.
    NoAcquire,
}

/// A write and a read that would order accesses, but for one reason do not.
#[derive(Clone)]
pub(crate) struct NearMiss {
    pub miss: Miss,
    /// The places of the write and of the read.
    pub write: u32,
    pub read: u32,
    /// What the read would have acquired.
    pub clock: Clock,
}

/// A block keeps at most this many misses, each pair of places once.
const MOST_MISSES: usize = 64;

impl Races {
    /// What a strong access acquires and releases.
    pub fn answer(&mut self, block: &mut RunningBlock, lane: &LaneAccess, place: u32) {
        let Place { kind, semantics, .. } = self.places[place as usize];
        let Some(scope) = semantics.scope else { return };
        let (own, thread) = (block.order.index, lane.thread);
        let shared = lane.space == Space::Shared;
        let key = (shared.then_some(self.index(lane.owner)), lane.address);
        let (extents, threads) = (self.extents, self.threads);
        let is_reserved = shared && lane.address < self.reserved_shared;
        let mut other = self.take_owner(block, lane);
        let RunningBlock { order, variables, patterns, misses, .. } = block;
        let variables = match &mut other {
            Some((_, other)) => &mut other.variables,
            None if shared => variables,
            None => &mut self.variables,
        };
        if kind.reads()
            && let Some(variable) = variables.get(&lane.address)
        {
            let mut miss = |miss, write, clock: &Clock| {
                let is_this = |m: &NearMiss| (m.miss, m.write, m.read) == (miss, write, place);
                if let Some(known) = misses.iter_mut().find(|m| is_this(m)) {
                    known.clock.join(clock);
                } else if misses.len() < MOST_MISSES {
                    misses.push(NearMiss { miss, write, read: place, clock: clock.clone() });
                }
            };
            let pattern = patterns.entry(thread).or_default();
            pattern.read.retain(|seen| seen.variable != key);
            for release in &variable.releases {
                let clock = &release.clock;
                let least = extents.scope(release.block, own);
                if release.scope < least {
                    miss(Miss::ReleaseScope, release.place, clock);
                } else if scope < least {
                    miss(Miss::AcquireScope, release.place, clock);
                } else if semantics.order.acquires() && is_reserved {
                    // Cooperative groups keep barriers of several warps here: one lane of each warp acquires, and a shuffle
                    // informs the others.
                    let first = thread & !31;
                    order.acquire_all(&range(first, threads.min(first + 32)), clock);
                } else if semantics.order.acquires() {
                    order.acquire(thread, &release.clock);
                } else {
                    pattern.read.push(SeenRelease { variable: key, scope, release: release.clone() });
                    miss(Miss::NoAcquire, release.place, clock);
                }
            }
            if let Some((stamp, write)) = variable.relaxed {
                let mut clock = Clock::default();
                clock.raise(stamp.block, stamp.thread, stamp.epoch + 1);
                miss(Miss::NoRelease, write, &clock);
            }
        }
        follow_fences(order, variables, patterns, lane, kind, scope, extents);
        if kind.writes() {
            publish(order, variables, patterns, lane, (kind, semantics, scope), place);
        }
        self.blocks.extend(other);
    }

    /// Threads execute a fence.
    pub fn fence(&mut self, ctaid: [u32; 3], semantics: Semantics, span: Span, threads: &[u32]) {
        // Proxy fences have no scope and order no threads.
        let Some(scope) = semantics.scope else { return };
        self.settle(ctaid, false);
        let (kind, space, reduction) = (AccessKind::Load, Space::Generic, false);
        let place = self.place(Place {
            span,
            kind,
            semantics,
            space,
            bytes: 0,
            work: None,
            signal: false,
            reduction,
        });
        let (own, extents) = (self.index(ctaid), self.extents);
        let block = self.block(ctaid);
        for &thread in threads {
            let pattern = block.patterns.entry(thread).or_default();
            if semantics.order.acquires() {
                for SeenRelease { scope: of_read, release, .. } in std::mem::take(&mut pattern.read) {
                    let reaches = scope.min(of_read) >= extents.scope(release.block, own);
                    if reaches {
                        block.order.acquire(thread, &release.clock);
                    }
                }
            }
            if semantics.order == Order::Sequential {
                let pattern = block.patterns.entry(thread).or_default();
                let known = std::mem::take(&mut pattern.before);
                for fence in known {
                    if fence.scope.min(scope) >= extents.scope(fence.block, own) {
                        block.order.acquire(thread, &fence.clock);
                    }
                }
                let mut clock = Clock::default();
                block.order.release(thread, &mut clock);
                pattern.sequential.retain(|fence| fence.scope != scope);
                pattern.sequential.push(SequentialFence { block: own, scope, clock: Arc::new(clock) });
            }
            if semantics.order.releases() {
                let pattern = block.patterns.entry(thread).or_default();
                pattern.fence = Some((scope, block.order.mark(thread), place));
            }
        }
    }
}

/// Updates what a strong access shows about the order of `fence.sc` in different threads. Of two morally strong fences one comes
/// first: if a read after one finds an older value than a thread wrote or saw before the other, the one before the read is first.
fn follow_fences(
    order: &BlockOrder,
    variables: &mut HashMap<u64, Variable>,
    patterns: &mut HashMap<u32, Patterns>,
    lane: &LaneAccess,
    kind: AccessKind,
    scope: Scope,
    extents: Extents,
) {
    let fences = patterns.get(&lane.thread).map_or(&[][..], |pattern| &pattern.sequential);
    if fences.is_empty() && !variables.contains_key(&lane.address) {
        return;
    }
    let variable = variables.entry(lane.address).or_default();
    if kind.writes() {
        for look in std::mem::take(&mut variable.looks) {
            if look.scope.min(scope) >= extents.scope(look.block, order.index) {
                add(&mut variable.missed, look);
            }
        }
    }
    if kind.reads() {
        for fence in fences {
            add(&mut variable.looks, SequentialFence { scope: fence.scope.min(scope), ..fence.clone() });
        }
    }
    if !variable.missed.is_empty() {
        let pattern = patterns.entry(lane.thread).or_default();
        for missed in &variable.missed {
            if missed.scope.min(scope) >= extents.scope(missed.block, order.index) {
                add(
                    &mut pattern.before,
                    SequentialFence { scope: missed.scope.min(scope), ..missed.clone() },
                );
            }
        }
    }
}

/// What a strong write releases.
fn publish(
    order: &mut BlockOrder,
    variables: &mut HashMap<u64, Variable>,
    patterns: &HashMap<u32, Patterns>,
    lane: &LaneAccess,
    (kind, semantics, scope): (AccessKind, Semantics, Scope),
    place: u32,
) {
    let (own, thread) = (order.index, lane.thread);
    let is_atomic = kind.reads();
    let mut releases = Vec::new();
    if let Some((fence_scope, mark, fence)) =
        patterns.get(&thread).and_then(|patterns| patterns.fence.as_ref())
    {
        let mut clock = Clock::default();
        order.notify(thread, mark, &mut clock);
        // The place with the smaller scope explains a miss.
        let by = if *fence_scope < scope { *fence } else { place };
        releases.push((scope.min(*fence_scope), clock, by));
    }
    if semantics.order.releases() {
        let mut clock = Clock::default();
        let mark = order.mark(thread);
        order.notify(thread, &mark, &mut clock);
        releases.push((scope, clock, place));
    }
    if releases.is_empty() && is_atomic {
        // Earlier releases stay in effect.
        return;
    }
    let variable = variables.entry(lane.address).or_default();
    if !is_atomic {
        variable.releases.clear();
    }
    variable.relaxed = None;
    if releases.is_empty() {
        let stamp = Stamp { block: own, thread: thread as u16, epoch: order.epoch(thread) };
        variable.relaxed = Some((stamp, place));
    }
    for (scope, clock, place) in releases {
        match variable.releases.iter_mut().find(|known| known.block == own && known.scope == scope) {
            Some(known) => {
                Arc::make_mut(&mut known.clock).join(&clock);
                known.place = place;
            }
            None => {
                variable.releases.push(Release { block: own, scope, clock: Arc::new(clock), place });
            }
        }
    }
}
