//! Asynchronous copies and the mbarrier objects that track them.

use check::module::{Instruction, Operand};
use isa::{Addition, Effect, Mod, Opcode, OperandKind, Space, Type, Validity};
use smallvec::SmallVec;

use super::Lowering;
use super::memory::atomic_op;
use crate::memory::{
    BulkMask, CopyAsync, CopyBulk, Mbarrier, MbarrierOp, Reduction, StoreAsync, StoreBulk, TensorKind,
    TensorMapCopy, TensorMapReplace, TensorOp, TryCancel,
};
use crate::op::{AsyncStep, CopyGroup, Guard, Slot};
use crate::semantics::{Order, Semantics};
use crate::simple::SimpleOp;

impl Lowering<'_> {
    /// The operand with this name.
    pub(super) fn named<'i>(&self, i: &'i Instruction, name: &str) -> Option<&'i Operand> {
        let place = i.form.operands_with(&i.picks).position(|spec| spec.name == name)?;
        i.operands.get(place)
    }

    /// The CTAs of a `.multicast::cluster`, a bit for each rank.
    pub(super) fn blocks(&mut self, i: &Instruction) -> Option<Slot> {
        let is_wide = i.picks.has(Mod::MulticastCluster32b);
        let mask = self.named(i, "mask")?;
        Some(self.source(mask, if is_wide { Type::U32 } else { Type::U16 }))
    }

    pub(super) fn copy_async(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let [dst, src, Operand::Imm(bytes), ..] = &i.operands[..] else { return };
        let size = self.named(i, "src-size").map(|operand| self.source(operand, Type::U32));
        let ignore = match self.named(i, "ignore-src") {
            Some(Operand::NotReg(register)) => Some(Guard { slot: self.register(*register), negated: true }),
            Some(operand) => Some(Guard { slot: self.source(operand, Type::Pred), negated: false }),
            None => None,
        };
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        self.push(guard, CopyAsync { dst, src, bytes: *bytes as u32, size, ignore });
    }

    pub(super) fn copy_bulk(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, src, size, rest @ ..] = &i.operands[..] else { return };
        let size = self.source(size, Type::U32);
        // The mbarrier object is in the state space of the destination.
        let mbarrier = rest.iter().find(|operand| matches!(operand, Operand::Address(..)));
        let mbarrier = mbarrier.map(|operand| self.address(operand, i.picks.space_of(0)));
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        let mask = match i.picks.has(Mod::CpMask) {
            true => self.named(i, "mask").map(|mask| BulkMask::Bytes(self.source(mask, Type::U16))),
            false => self.blocks(i).map(BulkMask::Blocks),
        };
        let [left, right] = ["left", "right"].map(|name| self.named(i, name));
        let ends = left.zip(right).map(|(left, right)| [left, right].map(|end| self.source(end, Type::U32)));
        let addition = if dst.space == Space::Shared { Addition::Shared } else { Addition::Bulk };
        let reduction = atomic_op(i).map(|op| Reduction { op, ty: i.picks.ty(0), addition });
        let report = Validity::of(&i.picks);
        self.push(guard, CopyBulk { dst, src, size, mbarrier, mask, ends, report, reduction });
    }

    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`
    pub(super) fn copy_tensor(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        self.block().may_spin = true;
        let tensor = i.operands.iter().find_map(|operand| match operand {
            Operand::Tensor(tensor) => Some(&**tensor),
            _ => None,
        });
        let (Some(tensor), kind) = (tensor, tensor_kind(i)) else { return };
        // For a load, the other addresses are in shared memory; the mbarrier object is in the destination's state
        // space.
        let space = i.picks.space_of(if kind == TensorKind::Load { 0 } else { 1 });
        let mut others = i.operands.iter().filter(|operand| matches!(operand, Operand::Address(..)));
        let shared = others.next().map(|operand| self.address(operand, space));
        let mbarrier = others.next().map(|operand| self.address(operand, space));
        let coordinates = tensor.coordinates.iter().map(|part| self.source(part, Type::B32)).collect();
        let offsets = match self.named(i, "offsets") {
            Some(Operand::Vector(parts)) => parts.iter().map(|part| self.source(part, Type::U16)).collect(),
            _ => SmallVec::new(),
        };
        let blocks = self.blocks(i);
        let map = self.address(&tensor.map, Space::Generic);
        let (picks, shared) = (i.picks, shared.unwrap_or(map));
        let op = TensorOp { kind, picks, map, shared, coordinates, offsets, mbarrier, blocks };
        self.push(guard, op);
    }

    /// `tensormap.replace`
    pub(super) fn tensor_map_replace(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let (Some(address), Some(value)) = (i.operands.first(), i.operands.last()) else { return };
        let address = self.address(address, i.picks.space());
        let value = self.source(value, i.picks.ty(0));
        let ordinal = match self.named(i, "ordinal") {
            Some(Operand::Imm(ordinal)) => *ordinal,
            _ => 0,
        };
        self.push(guard, TensorMapReplace { address, picks: i.picks, ordinal, value });
    }

    /// `tensormap.cp_fenceproxy`
    pub(super) fn tensor_map_copy(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, src, ..] = &i.operands[..] else { return };
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        self.push(guard, TensorMapCopy { dst, src });
        self.push(None, SimpleOp::Fence { semantics: Semantics::of_fence(i.form.opcode, &i.picks) });
    }

    /// `clusterlaunchcontrol.try_cancel`
    pub(super) fn try_cancel(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, mbarrier] = &i.operands[..] else { return };
        let (dst, mbarrier) = (self.address(dst, i.picks.space()), self.address(mbarrier, i.picks.space()));
        let all = i.picks.has(Mod::MulticastClusterAll);
        self.push(guard, TryCancel { dst, mbarrier, all });
    }

    /// `st.bulk` writes zeros.
    pub(super) fn store_bulk(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let [address, size, ..] = &i.operands[..] else { return };
        let size = self.source(size, i.form.operands[1].resolve(&i.picks).unwrap_or(Type::U64));
        let address = self.address(address, i.picks.space());
        self.push(guard, StoreBulk { address, size });
    }

    /// `st.async`, `red.async`
    pub(super) fn store_async(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [address, src, mbarrier] = &i.operands[..] else { return };
        let (ty, space) = (i.picks.ty(0), i.picks.space());
        let (address, mbarrier) = (self.address(address, space), self.address(mbarrier, space));
        let parts = match src {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let src = parts.iter().map(|part| self.source(part, ty)).collect();
        let reduction = atomic_op(i).map(|op| Reduction { op, ty, addition: Addition::Shared });
        self.push(guard, StoreAsync { address, src, bytes: ty.bytes(), reduction, mbarrier });
    }

    /// `clusterlaunchcontrol.query_cancel`: no request is ever granted, and in that case the manual does
    /// not define the coordinates.
    pub(super) fn query_cancel(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let destinations = match i.operands.first() {
            Some(Operand::Vector(parts)) => &parts[..],
            first => first.map_or(&[][..], std::slice::from_ref),
        };
        for destination in destinations {
            if let Operand::Reg(register) = destination {
                let dst = self.register(*register);
                let src = self.constant(self.width(dst), 0);
                self.push(guard, SimpleOp::Copy { dst, src });
            }
        }
    }

    pub(super) fn copy_group(&mut self, i: &Instruction) {
        if i.picks.has(Mod::Bulk) {
            return self.async_step(i);
        }
        let guard = self.guard(i);
        let group = match i.operands.first() {
            Some(Operand::Imm(pending)) => CopyGroup::Wait(*pending as u32),
            _ if i.picks.has(Mod::WaitAll) => CopyGroup::WaitAll,
            _ => CopyGroup::Commit,
        };
        self.push(guard, SimpleOp::CopyGroup(group));
    }

    /// Instructions about work that is already done here: bulk copy groups, `wgmma`, `tcgen05`. Also `setmaxnreg`.
    pub(super) fn async_step(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let has = |modifier| i.picks.has(modifier);
        let number = || match i.operands.first() {
            Some(Operand::Imm(number)) => *number as u32,
            _ => 0,
        };
        let step = match i.form.opcode {
            Opcode::Setmaxnreg => AsyncStep::SetRegisters { increase: has(Mod::Inc), count: number() },
            Opcode::Wgmma if has(Mod::CommitGroup) => AsyncStep::CommitProducts,
            Opcode::Wgmma if has(Mod::WaitGroup) => AsyncStep::WaitProducts(number()),
            Opcode::Wgmma => AsyncStep::FenceProducts,
            Opcode::Tcgen05 if has(Mod::WaitLd) => AsyncStep::WaitTensorLoads,
            Opcode::Tcgen05 if has(Mod::WaitSt) => AsyncStep::WaitTensorStores,
            Opcode::Tcgen05 => AsyncStep::FenceTensor { before: has(Mod::FenceBeforeThreadSync) },
            _ if has(Mod::CommitGroup) => AsyncStep::CommitBulk,
            _ => AsyncStep::WaitBulk { pending: number(), read: has(Mod::Read) },
        };
        self.push(guard, SimpleOp::AsyncStep(step));
    }

    pub(super) fn mbarrier(&mut self, i: &Instruction) {
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

fn tensor_kind(i: &Instruction) -> TensorKind {
    match atomic_op(i) {
        Some(op) => TensorKind::Reduce(op),
        None if i.picks.has(Mod::BulkGroup) => TensorKind::Store,
        None if i.picks.has(Mod::Prefetch) => TensorKind::Prefetch,
        None => TensorKind::Load,
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
