//! Operations on mbarrier objects.
#![allow(missing_docs)] // fields are the operands of the manual

use smallvec::SmallVec;

use super::{Access, AccessKind, Accesses, Extent, Multicast};
use crate::op::{Address, Slot};
use crate::operands::MapOperands;
use crate::semantics::{Order, Scope, Semantics};

/// Bytes of an mbarrier object.
const MBARRIER_BYTES: u32 = 8;

/// The access that completes bytes on an mbarrier object: `.release` at cluster scope (9.7.9.25.4.1 cp.async.bulk).
pub(super) fn completion<S, A: Copy>(mbarrier: &A) -> Access<S, A> {
    let release = Semantics::new(Order::Release, Scope::Cluster);
    Access::new(AccessKind::Mbarrier, mbarrier, Extent::Bytes(MBARRIER_BYTES), release)
}

/// What an operation does with an mbarrier object in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierOp {
    /// Initializes the object; the value is the number of arrivals that complete a phase.
    Init {
        /// `.layout::v1`: the object records what asynchronous operations report.
        reports: bool,
    },
    /// Records a report. The object must have a layout that records reports.
    Report,
    /// Checks that the object has this layout.
    CheckLayout {
        /// As in [`MbarrierOp::Init`].
        reports: bool,
    },
    /// Ends the object's lifetime.
    Invalidate,
    /// The phase waits for this many more bytes (the value).
    ExpectTransactions,
    /// This many bytes (the value) have arrived.
    CompleteTransactions,
    /// Threads have arrived. The value is their number; without a value it is one.
    Arrive {
        /// The threads do not take part in later phases.
        drop: bool,
        /// This arrival must not complete the phase.
        no_complete: bool,
    },
    /// [`MbarrierOp::ExpectTransactions`], then one arrival.
    ArriveExpecting {
        /// As in [`MbarrierOp::Arrive`].
        drop: bool,
    },
    /// When the thread's copies so far are done, they count as one arrival. If `counted` is set, the operation first
    /// increments the pending count for this arrival, so the phase's count does not change.
    ArriveAfterCopies {
        /// Without `.noinc`.
        counted: bool,
    },
    /// Whether a phase is over. The value identifies the phase by its state, or by its parity.
    Test {
        /// The value is a parity.
        parity: bool,
        /// Tests the conditional phase, which ends only if nothing was reported.
        conditional: bool,
    },
    /// The pending count that a state holds. Touches no memory.
    PendingCount,
}

/// An operation on an mbarrier object.
#[derive(Clone, Debug, PartialEq)]
pub struct Mbarrier<S = Slot, A = Address> {
    pub op: MbarrierOp,
    pub address: Option<A>,
    /// Receives the state before the operation, the count, or whether the phase is over.
    pub dst: Option<S>,
    /// For a test: receives whether anything was reported in the last completed phase.
    pub report: Option<S>,
    pub value: Option<S>,
    /// The CTAs whose objects the operation acts on, a bit for each rank; `None`: the object at the address.
    pub blocks: Option<S>,
    pub semantics: Semantics,
}

impl<S: Copy, A: Copy> Mbarrier<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> Mbarrier<M::Slot, M::Address> {
        Mbarrier {
            op: self.op,
            address: self.address.map(|address| to.address(address)),
            value: self.value.map(|value| to.control(value)),
            blocks: self.blocks.map(|blocks| to.control(blocks)),
            dst: to.maybe_result(self.dst),
            report: to.maybe_result(self.report),
            semantics: self.semantics,
        }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let kind = match self.op {
            MbarrierOp::Test { .. } | MbarrierOp::CheckLayout { .. } => AccessKind::MbarrierTest,
            MbarrierOp::Init { .. }
            | MbarrierOp::Report
            | MbarrierOp::Invalidate
            | MbarrierOp::ExpectTransactions
            | MbarrierOp::CompleteTransactions
            | MbarrierOp::Arrive { .. }
            | MbarrierOp::ArriveExpecting { .. }
            | MbarrierOp::ArriveAfterCopies { .. } => AccessKind::Mbarrier,
            MbarrierOp::PendingCount => return SmallVec::new(),
        };
        let multicast = self.blocks.map(Multicast::Mask);
        let access = |a| Access::new(kind, a, Extent::Bytes(MBARRIER_BYTES), self.semantics);
        self.address.iter().map(|a| Access { multicast, ..access(a) }).collect()
    }
}
