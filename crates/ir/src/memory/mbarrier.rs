//! Operations on mbarrier objects.
#![allow(missing_docs)] // fields are the operands of the manual

use check::module::{Instruction, Operand};
use isa::{Effect, Mod, OperandKind, Type};
use smallvec::SmallVec;

use super::{Access, AccessKind, Accesses, Extent, Multicast};
use crate::lower::Lowering;
use crate::op::{Address, Slot};
use crate::operands::MapOperands;
use crate::semantics::{Order, Scope, Semantics};
use crate::simple::SimpleOp;

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

impl Lowering<'_> {
    pub(crate) fn mbarrier(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let Some(op) = mbarrier_op(i) else { return };
        let value = ["count", "tx", "state", "parity"].into_iter().find_map(|name| {
            let ty = if name == "state" { Type::B64 } else { Type::U32 };
            Some((self.named(i, name)?, ty))
        });
        let value = value.map(|(operand, ty)| self.source(operand, ty));
        let address = i.form.operands.iter().zip(&i.operands).find_map(|(spec, operand)| {
            (spec.kind == OperandKind::Address).then(|| self.address(operand, i.picks.space()))
        });
        let dst = if address_first(i) { None } else { self.destination(i, 0) };
        let report = self.second_destination(i, 0);
        let blocks = self.blocks(i);
        let semantics = Semantics::of_mbarrier(order(op), &i.picks);
        self.push(guard, Mbarrier { op, address, dst, report, value, blocks, semantics });
        // Reports have no value here: only whether there was a report is known.
        if let Some(Operand::Reg(register)) = self.named(i, "report") {
            let dst = self.register(*register);
            let src = self.constant(self.width(dst), 0);
            self.push(guard, SimpleOp::Copy { dst, src });
        }
    }
}

/// The default order of an operation on an mbarrier object (9.7.13.15): arrivals release, tests acquire, and byte
/// counts are relaxed.
fn order(op: MbarrierOp) -> Order {
    match op {
        MbarrierOp::Init { .. }
        | MbarrierOp::CheckLayout { .. }
        | MbarrierOp::Invalidate
        | MbarrierOp::PendingCount => Order::Weak,
        MbarrierOp::ExpectTransactions | MbarrierOp::CompleteTransactions | MbarrierOp::Report => {
            Order::Relaxed
        }
        MbarrierOp::Arrive { .. }
        | MbarrierOp::ArriveExpecting { .. }
        | MbarrierOp::ArriveAfterCopies { .. } => Order::Release,
        MbarrierOp::Test { .. } => Order::Acquire,
    }
}

fn address_first(i: &Instruction) -> bool {
    i.form.operands.first().is_some_and(|spec| spec.kind == OperandKind::Address)
}

fn mbarrier_op(i: &Instruction) -> Option<MbarrierOp> {
    let has = |m: Mod| i.picks.has(m);
    if i.form.action == isa::Action::Effect(Effect::CpAsyncArrive) {
        return Some(MbarrierOp::ArriveAfterCopies { counted: !has(Mod::Noinc) });
    }
    Some(match i.picks.mods().first()? {
        Mod::Init => MbarrierOp::Init { reports: has(Mod::LayoutV1) },
        Mod::CheckLayout => MbarrierOp::CheckLayout { reports: has(Mod::LayoutV1) },
        Mod::Inval => MbarrierOp::Invalidate,
        Mod::ExpectTx => MbarrierOp::ExpectTransactions,
        Mod::CompleteTx => MbarrierOp::CompleteTransactions,
        m @ (Mod::Arrive | Mod::ArriveDrop) => {
            let drop = *m == Mod::ArriveDrop;
            match has(Mod::ExpectTx) {
                true => MbarrierOp::ArriveExpecting { drop },
                false => MbarrierOp::Arrive { drop, no_complete: has(Mod::NoComplete) },
            }
        }
        Mod::TestWait | Mod::TryWait => {
            MbarrierOp::Test { parity: has(Mod::Parity), conditional: has(Mod::PhaseTypeConditional) }
        }
        Mod::PendingCount => MbarrierOp::PendingCount,
        _ => return None,
    })
}
