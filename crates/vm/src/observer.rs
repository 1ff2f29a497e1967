//! Who may watch a launch from outside: sees accesses to memory and barriers, and can stop the run.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use diag::Span;
use ir::{AccessKind, Semantics};
use isa::Space;

/// Watches a launch on the interpreter ([`LaunchConfig::observer`](crate::LaunchConfig::observer)).
///
/// Events come from every host thread that runs blocks, one at a time; those of one block come in the order in which it
/// executes. Returning [`ControlFlow::Break`] ends the launch with a fault of the kind
/// [`FaultKind::Stopped`](crate::FaultKind::Stopped) that names the instruction, before that has done anything.
///
/// Parameters of kernels are known when it is launched: reading them is no access.
pub trait LaunchObserver: Send {
    /// Threads are about to access memory. The access may still fault: its addresses have not been checked.
    fn access(&mut self, _access: &AccessEvent) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads are about to arrive at a barrier of their block.
    fn barrier_arrive(&mut self, _arrival: &BarrierArrival) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A barrier has let those go that waited there.
    fn barrier_release(&mut self, _release: &BarrierRelease) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// One operation's access to memory, by all threads that execute it together.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessEvent<'a> {
    /// What it does. An instruction that copies is two accesses or more: sources come first.
    pub kind: AccessKind,
    /// Order and scope.
    pub semantics: Semantics,
    /// The space that the instruction names; [`Space::Generic`] if none.
    pub space: Space,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// Who accesses what, in ascending order of threads; threads that do not execute the instruction are not here. Of what a
    /// warp reads or writes as a whole (matrices) it is the thread that gives the address, once for each row.
    pub lanes: &'a [LaneAccess],
}

/// One thread's part of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAccess {
    /// `%ctaid` of its block.
    pub block: [u32; 3],
    /// Its index in the block: `%tid.x` first.
    pub thread: u32,
    /// The space that the address leads to: never generic, unless it leads nowhere.
    pub space: Space,
    /// The address in that space.
    pub address: u64,
    /// Size in bytes; 0 where a copy copies nothing.
    pub bytes: u64,
}

/// Threads arrive at a barrier (`bar`, `barrier`, `barrier.cluster`).
#[derive(Clone, Debug, PartialEq)]
pub struct BarrierArrival<'a> {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The barrier's number; 16 for that of the cluster.
    pub barrier: u64,
    /// They wait there: not `.arrive`.
    pub waits: bool,
    /// The instruction.
    pub span: Span,
    /// Their indices in the block, ascending.
    pub threads: &'a [u32],
}

/// A barrier is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierRelease {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The barrier's number; 16 for that of the cluster.
    pub barrier: u64,
    /// The instruction that completed it: of the last to arrive, or one that ended threads.
    pub span: Span,
}

/// A handle on an observer, shared by the host threads of a launch.
#[derive(Clone)]
pub struct ObserverHandle(Arc<Mutex<dyn LaunchObserver>>);

impl ObserverHandle {
    /// Shares an observer; keep a clone of the [`Arc`] to ask it afterwards.
    pub fn new(observer: Arc<Mutex<impl LaunchObserver + 'static>>) -> ObserverHandle {
        ObserverHandle(observer)
    }

    /// Tells it something.
    pub(crate) fn tell(
        &self,
        event: impl FnOnce(&mut dyn LaunchObserver) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        event(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObserverHandle")
    }
}
