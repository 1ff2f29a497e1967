//! Executes one operation for the active lanes.

use diag::Span;
use ir::SimpleOp;
use isa::Opcode;
use machine::{Fault, FaultKind};

use super::moves::param;
use super::strong::execute_fence;
use super::{Active, Execute, Gang, Step};
use crate::code::{Guard, Kind, MemoryOp, Op};
use crate::registers::SlotRef;
use crate::shared::Shared;

impl Gang<'_> {
    #[inline(always)]
    pub(super) fn execute_op(&mut self, op: &Op, active: &Active, shared: &mut Shared) -> Step {
        match op.guard {
            None => self.execute(op, active, shared),
            Some(guard) => self.execute_guarded(op, guard, active, shared),
        }
    }

    #[inline(never)]
    fn execute_guarded(&mut self, op: &Op, guard: Guard, active: &Active, shared: &mut Shared) -> Step {
        let predicate = self.registers.predicate(active.window, guard.slot);
        let mask = active.mask & if guard.negated { !predicate } else { predicate };
        if mask.is_empty() {
            return Ok(());
        }
        if mask == active.mask {
            return self.execute(op, active, shared);
        }
        // In a loop, a guard often selects the same lanes as the last one.
        let mut some =
            self.scratch.guarded.take().unwrap_or_else(|| Box::new(Active::new(active.window, active.frame)));
        if some.mask != mask || some.window != active.window {
            *some = Active { guarded: true, ..Active::new(active.window, active.frame) };
            some.set_mask(mask, self.threads.lanes);
        }
        some.frame = active.frame;
        let done = self.execute(op, &some, shared);
        self.scratch.guarded = Some(some);
        done
    }

    #[inline(always)]
    pub(super) fn execute(&mut self, op: &Op, active: &Active, shared: &mut Shared) -> Step {
        match &op.kind {
            Kind::Pure(pure) => self.pure(pure, active),
            Kind::Simple(simple) => return self.simple(simple, active, op.span),
            Kind::Param { dst, offset, bytes, signed } => {
                let (value, whole) = (param(self.launch, *offset, *bytes, *signed), self.whole(active, *dst));
                self.registers.set_all(active.window, *dst, value, active.mask, whole);
            }
            Kind::AddressOf { dst, base, offset } => {
                let value = self.fixed_base(*base, active.frame).wrapping_add(*offset);
                let whole = self.whole(active, *dst);
                self.registers.set_all(active.window, *dst, value, active.mask, whole);
            }
            Kind::Load(load) => return self.load(load, active, shared, op.span),
            Kind::Store(store) => return self.store(store, active, shared, op.span),
            Kind::LoadStrong(load) => return self.load_strong(load, active, shared, op.span),
            Kind::StoreStrong(store) => return self.store_strong(store, active, shared, op.span),
            Kind::Link(link) => self.link(link, active),
            Kind::PureStore(both) => return self.pure_store(both, active, shared, op.span),
            Kind::Memory(memory) => return self.memory(memory, active, shared, op.span),
            Kind::TensorMemory(op_of_thread) => {
                return self.tensor_memory(op_of_thread, active, shared, op.span);
            }
            Kind::Warp { op: warp, members, pattern } => {
                return self.warp(warp, *members, pattern.as_deref(), active, shared, op.span);
            }
            Kind::Texel(texel) => return self.texel(texel, active, op.span),
            Kind::Straight(straight) => return self.straight(straight, active, shared),
            Kind::Unsupported { opcode } => return Err(self.unsupported(*opcode, active, op.span)),
        }
        Ok(())
    }

    #[inline(always)]
    fn simple(&mut self, op: &SimpleOp<SlotRef>, active: &Active, span: Span) -> Step {
        match *op {
            SimpleOp::Copy { dst, src } => self.copy(dst, src, active),
            SimpleOp::Not { dst, src } => self.not(dst, src, active),
            SimpleOp::Resize { dst, src, bits, signed } => self.resize(dst, src, bits, signed, active),
            SimpleOp::Offset { dst, src, addend } => self.offset(dst, src, addend as u64, active),
            SimpleOp::Pack { dst, ref src, bits } => self.pack(dst, src, bits, active),
            SimpleOp::Unpack { ref dst, src, bits } => self.unpack(dst, src, bits, active),
            SimpleOp::IsSpace { dst, src, space, own } => self.is_space(dst, src, space, own, active),
            SimpleOp::SharedObject { dst, src } => self.shared_object(dst, src, active),
            SimpleOp::MapShared { dst, src, rank, generic } => {
                self.map_shared(dst, src, rank, generic, active);
            }
            SimpleOp::RankOf { dst, src, generic } => self.rank_of(dst, src, generic, active),
            SimpleOp::ReadClock { dst, register } => self.read_clock(dst, register, active),
            SimpleOp::ActiveMask { dst } => self.active_mask(dst, active),
            SimpleOp::Stack { op, dst, value } => return self.stack(op, dst, value, active, span),
            SimpleOp::Sleep { duration } => self.sleep(duration, active),
            SimpleOp::Fence { semantics } => execute_fence(semantics.order),
            SimpleOp::CopyGroup(group) => self.copy_group(group, active.mask),
            SimpleOp::AsyncStep(_) => {}
        }
        Ok(())
    }

    fn memory(&mut self, op: &MemoryOp, active: &Active, shared: &mut Shared, span: Span) -> Step {
        ir::with_memory_operation!(op, |op| op.execute(self, active, shared, span))
    }

    pub(super) fn unsupported(&self, opcode: Opcode, active: &Active, span: Span) -> Box<Fault> {
        let note = format!("`{opcode}` is known and checked, but not executed yet");
        self.fault(FaultKind::Unsupported, span, active.mask, None, &note)
    }
}
