//! Groups of asynchronous copies, waiting for asynchronous work, and what its instructions have in common.

use check::module::{Instruction, Operand};
use isa::{Mod, Opcode, Type};

use super::Lowering;
use crate::op::{AsyncStep, CopyGroup, Slot};
use crate::simple::SimpleOp;

impl Lowering<'_> {
    /// The operand with this name.
    pub(crate) fn named<'i>(&self, i: &'i Instruction, name: &str) -> Option<&'i Operand> {
        let place = i.form.operands_with(&i.picks).position(|spec| spec.name == name)?;
        i.operands.get(place)
    }

    /// The CTAs of a `.multicast::cluster`, a bit for each rank.
    pub(crate) fn blocks(&mut self, i: &Instruction) -> Option<Slot> {
        let is_wide = i.picks.has(Mod::MulticastCluster32b);
        let mask = self.named(i, "mask")?;
        Some(self.source(mask, if is_wide { Type::U32 } else { Type::U16 }))
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
}
