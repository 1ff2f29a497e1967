//! Operations on tensor memory (`tcgen05`).
//!
//! `tcgen05.alloc` becomes a loop around an operation that reports whether there was room. `tcgen05.commit` becomes
//! an arrival at the mbarrier object: engines do the work that it waits for at once, so this work is already done.

use check::module::{AddressBase, Instruction, Operand};
use isa::{Access, OperandKind, Space, Type};
use smallvec::SmallVec;

use super::Lowering;
use crate::function::Terminator;
use crate::memory::{Mbarrier, MbarrierOp};
use crate::op::{Base, OpKind, Slot, Width};
use crate::semantics::{Order, Scope, Semantics};
use crate::simple::SimpleOp;
use crate::tensor_memory::{TensorMemoryKind, TensorMemoryOp};
use crate::warp::WarpOp;

impl Lowering<'_> {
    /// Operations of a warp: allocations, loads, stores.
    pub(super) fn tensor_memory_warp(&mut self, i: &Instruction, kind: TensorMemoryKind) {
        let guard = self.guard(i);
        let mut op = self.tensor_memory(i, kind);
        // Every live lane of the warp takes part.
        let members = Some(self.constant(Width::W32, u32::MAX.into()));
        if kind != TensorMemoryKind::Allocate {
            return self.warp_operation(guard, WarpOp::TensorMemory(Box::new(op)), members);
        }
        // Repeat until there is room.
        let done = self.temporary(Width::Pred);
        op.dst.push(Some(done));
        let next = self.enter_guarded(guard);
        if guard.is_none() {
            self.start_block();
        }
        self.block().may_spin = true;
        self.push(None, OpKind::Warp { op: WarpOp::TensorMemory(Box::new(op)), members });
        let again = self.current;
        self.end_block(
            Terminator::Branch { pred: done, negated: false, taken: next, otherwise: again },
            next,
        );
    }

    /// Operations that a single thread issues.
    pub(super) fn tensor_memory_thread(&mut self, i: &Instruction, kind: TensorMemoryKind) {
        let guard = self.guard(i);
        let op = self.tensor_memory(i, kind);
        self.push(guard, OpKind::TensorMemory(Box::new(op)));
    }

    fn tensor_memory(&mut self, i: &Instruction, kind: TensorMemoryKind) -> TensorMemoryOp {
        let (mut dst, mut src, mut address) = (SmallVec::new(), SmallVec::new(), None);
        for (spec, operand) in i.form.operands_with(&i.picks).zip(&i.operands) {
            let parts = match operand {
                Operand::Vector(parts) => &parts[..],
                one => std::slice::from_ref(one),
            };
            let ty = spec.resolve(&i.picks).unwrap_or(Type::B32);
            match (spec.kind, spec.access) {
                (OperandKind::Address, _) if kind == TensorMemoryKind::Allocate => {
                    address = Some(self.address(operand, i.picks.space()));
                }
                (OperandKind::Address, _) => src.push(self.tensor_address(operand)),
                (_, Access::Write) => dst.extend(parts.iter().map(|part| self.part(part))),
                _ => src.extend(parts.iter().map(|part| self.source(part, ty))),
            }
        }
        TensorMemoryOp { kind, form: i.form, picks: i.picks, dst, src, address }
    }

    /// A tensor memory address as a number.
    fn tensor_address(&mut self, operand: &Operand) -> Slot {
        match operand {
            Operand::Address(AddressBase::Reg(register), 0) => {
                self.source(&Operand::Reg(*register), Type::B32)
            }
            Operand::Address(AddressBase::Reg(register), offset) => {
                self.source(&Operand::RegPlus(*register, *offset), Type::B32)
            }
            Operand::Address(AddressBase::Absolute(at), offset) => {
                self.constant(Width::W32, at.wrapping_add_signed(*offset) & u64::from(u32::MAX))
            }
            Operand::Address(AddressBase::Symbol(symbol), offset) => {
                self.source(&Operand::Symbol(*symbol, *offset), Type::B32)
            }
            other => self.source(other, Type::B32),
        }
    }

    /// `tcgen05.commit`: the work that it waits for is already done, so it is just an arrival (9.7.16.11.1:
    /// `.release` at cluster scope).
    pub(super) fn tensor_commit(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let Some(object) = i.operands.first() else { return };
        let mut address = self.address(object, i.picks.space());
        // Programs also give the object's shared memory address, although the instruction has no `.shared::cluster`:
        // machine code reads only the low half of the address.
        if let (Space::Generic, Base::Slot(src)) = (address.space, address.base) {
            let dst = self.temporary(Width::W64);
            self.push(None, SimpleOp::SharedObject { dst, src });
            address.base = Base::Slot(dst);
        }
        let address = Some(address);
        let blocks = self.blocks(i);
        let op = MbarrierOp::Arrive { drop: false, no_complete: false };
        let semantics = Semantics::new(Order::Release, Scope::Cluster);
        self.push(guard, Mbarrier { op, address, dst: None, report: None, value: None, blocks, semantics });
    }
}
