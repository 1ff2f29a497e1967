//! Operands, pure instructions and moves.

use check::module::{Instruction, Operand, RegId, Symbol};
use isa::{Access, Action, Effect, Mod, Space, Type};
use smallvec::SmallVec;

use super::Lowering;
use crate::op::{Guard, MatrixKind, OpKind, Slot, SlotKind, StackOp, Width};
use crate::semantics::Semantics;
use crate::simple::SimpleOp;
use crate::tensor_memory::TensorMemoryKind;

/// Default alignment of `alloca`, in bytes.
const STACK_ALIGN: u32 = 8;

impl Lowering<'_> {
    pub(super) fn instruction(&mut self, instruction: &Instruction) {
        self.span = instruction.span;
        let is_predicate = |register: &RegId| self.body.registers[register.index()].ty == Type::Pred;
        // The meaning of `p+1` for a predicate is unknown.
        if instruction.operands.iter().any(|o| matches!(o, Operand::RegPlus(r, _) if is_predicate(r))) {
            return self.unsupported(instruction);
        }
        match instruction.form.action {
            Action::Pure(function) => self.pure(instruction, function),
            Action::Effect(effect) => self.effect(instruction, effect),
        }
    }

    /// Lowers an instruction that no engine executes. A kernel that can reach it is not launched.
    pub(super) fn unsupported(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        self.push(guard, OpKind::Unsupported { form: i.form, picks: i.picks });
    }

    fn effect(&mut self, i: &Instruction, effect: Effect) {
        match effect {
            Effect::Mov => self.mov(i),
            Effect::Cvta => self.cvta(i),
            Effect::IsSpaceP => self.is_space(i),
            // A multimem operation acts on a single device.
            Effect::Ld | Effect::MultimemLd => self.load(i),
            Effect::St | Effect::MultimemSt => self.store(i),
            Effect::Atom | Effect::Red | Effect::MultimemRed => self.atomic(i),
            Effect::Bra | Effect::BrxIdx | Effect::Ret | Effect::Exit | Effect::Trap | Effect::Brkpt => {
                self.control(i, effect);
            }
            Effect::Call => self.call(i),
            Effect::Barrier => self.barrier(i),
            Effect::BarrierCluster => self.cluster_barrier(i),
            Effect::Mapa | Effect::GetCtaRank => self.block_of_cluster(i, effect),
            Effect::Shfl
            | Effect::Vote
            | Effect::MatchSync
            | Effect::Redux
            | Effect::Elect
            | Effect::BarWarpSync => self.warp(i, effect),
            Effect::Mma => self.matrix(i, MatrixKind::Multiply),
            Effect::Wgmma => self.matrix(i, MatrixKind::GroupMultiply),
            // Where the rows of 4-bit elements are in memory is unknown.
            Effect::LdMatrix if i.picks.types().contains(&Type::S4) => self.unsupported(i),
            Effect::LdMatrix => self.matrix(i, MatrixKind::LoadRows),
            Effect::StMatrix => self.matrix(i, MatrixKind::StoreRows),
            Effect::MovMatrix => self.matrix(i, MatrixKind::Transpose),
            Effect::WmmaLoad => self.matrix(i, MatrixKind::Load),
            Effect::WmmaStore => self.matrix(i, MatrixKind::Store),
            Effect::CpAsync => self.copy_async(i),
            Effect::CpAsyncBulk => self.copy_bulk(i),
            Effect::CopyTensor | Effect::PrefetchTensor => self.copy_tensor(i),
            Effect::TensorMapReplace => self.tensor_map_replace(i),
            Effect::TensorMapCopy => self.tensor_map_copy(i),
            Effect::CpAsyncGroup => self.copy_group(i),
            Effect::TryCancel => self.try_cancel(i),
            Effect::StoreAsync => self.store_async(i),
            Effect::StoreBulk => self.store_bulk(i),
            Effect::QueryCancel => self.query_cancel(i),
            Effect::CpAsyncArrive | Effect::Mbarrier => self.mbarrier(i),
            Effect::Alloca => {
                let align = match i.operands.get(2) {
                    Some(Operand::Imm(align)) => (*align as u32).max(STACK_ALIGN),
                    _ => STACK_ALIGN,
                };
                self.stack(i, StackOp::Allocate { align });
            }
            Effect::StackSave => self.stack(i, StackOp::Save),
            Effect::StackRestore => self.stack(i, StackOp::Restore),
            Effect::Tex | Effect::Txq | Effect::Suld | Effect::Sust | Effect::Sured => self.texel(i, effect),
            Effect::TensorAlloc => self.tensor_memory_warp(i, allocation_kind(i)),
            Effect::TensorLd => self.tensor_memory_warp(i, TensorMemoryKind::Load),
            Effect::TensorSt => self.tensor_memory_warp(i, TensorMemoryKind::Store),
            Effect::TensorMma => self.tensor_memory_thread(i, TensorMemoryKind::Multiply),
            Effect::TensorCp => self.tensor_memory_thread(i, TensorMemoryKind::Copy),
            Effect::TensorShift => self.tensor_memory_thread(i, TensorMemoryKind::Shift),
            Effect::TensorCommit => self.tensor_commit(i),
            Effect::Activemask => {
                let guard = self.guard(i);
                if let Some(dst) = self.destination(i, 0) {
                    self.push(guard, SimpleOp::ActiveMask { dst });
                }
            }
            Effect::Fence => {
                self.block().may_spin = true;
                let guard = self.guard(i);
                self.push(guard, SimpleOp::Fence { semantics: Semantics::of_fence(i.form.opcode, &i.picks) });
            }
            Effect::Nanosleep => {
                self.block().may_spin = true;
                let guard = self.guard(i);
                let duration = self.source(&i.operands[0], Type::U32);
                self.push(guard, SimpleOp::Sleep { duration });
            }
            // No fabric work is ever pending. A kernel that would access another device is not launched.
            Effect::Fabric if matches!(i.picks.mods().first(), Some(Mod::Submit | Mod::Wait)) => {}
            Effect::Fabric | Effect::SparseData => self.unsupported(i),
            // Hints that do not affect results.
            Effect::ApplyPriority
            | Effect::Discard
            | Effect::GridDepControl
            | Effect::PmEvent
            | Effect::Prefetch => {}
            Effect::TensorOrder | Effect::WgmmaGroup | Effect::SetMaxNReg => self.async_step(i),
            // An opaque value that only cache hints read; no tensor map is of the large allocation class.
            Effect::CreatePolicy | Effect::TensorMapQuery => {
                let guard = self.guard(i);
                if let Some(dst) = self.destination(i, 0) {
                    let src = self.constant(self.width(dst), 0);
                    self.push(guard, SimpleOp::Copy { dst, src });
                }
            }
        }
    }

    /// The slot of a destination register, if operand `index` is one.
    pub(crate) fn destination(&mut self, i: &Instruction, index: usize) -> Option<Slot> {
        match i.operands.get(index)? {
            Operand::Reg(register) | Operand::Pair(Some(register), _) => Some(self.register(*register)),
            _ => None,
        }
    }

    /// The second destination of `d|p`, if there is one and it differs from the first (in `p|p` the first result
    /// wins).
    pub(crate) fn second_destination(&mut self, i: &Instruction, index: usize) -> Option<Slot> {
        match i.operands.get(index)? {
            Operand::Pair(first, Some(second)) if *first != Some(*second) => Some(self.register(*second)),
            _ => None,
        }
    }

    /// The slot that holds a source operand as type `ty`. Values are truncated from wider registers, and 8-bit values
    /// are extended, so engines see one element width per type.
    pub(crate) fn source(&mut self, operand: &Operand, ty: Type) -> Slot {
        let width = Width::of(ty);
        let slot = match operand {
            Operand::Reg(register) => self.register(*register),
            Operand::NotReg(register) => {
                let src = self.register(*register);
                let dst = self.temporary(Width::Pred);
                self.push(None, SimpleOp::Not { dst, src });
                dst
            }
            Operand::RegPlus(register, addend) => {
                let src = self.register(*register);
                let dst = self.temporary(self.width(src));
                self.push(None, SimpleOp::Offset { dst, src, addend: *addend });
                dst
            }
            Operand::Imm(value) => return self.constant(width, extend(*value, ty)),
            Operand::Special(special) => self.special(*special),
            Operand::Symbol(symbol, offset) => self.address_of(*symbol, *offset),
            _ => return self.constant(width, 0), // the checker lets nothing else through
        };
        self.resized(slot, ty)
    }

    /// `slot` as a value of type `ty`.
    fn resized(&mut self, slot: Slot, ty: Type) -> Slot {
        let (have, want) = (self.width(slot), Width::of(ty));
        if have == Width::Pred || (have == want && ty.bits() != 8) {
            return slot;
        }
        let dst = self.temporary(want);
        let bits = ty.bits().min(have.bits());
        self.push(None, SimpleOp::Resize { dst, src: slot, bits, signed: ty.is_signed() });
        dst
    }

    fn pure(&mut self, i: &Instruction, function: &'static str) {
        let guard = self.guard(i);
        let mut dst = [None, None];
        let mut src = SmallVec::new();
        let mut widened = None;
        for (index, (spec, operand)) in i.form.operands_with(&i.picks).zip(&i.operands).enumerate() {
            let ty = spec.resolve(&i.picks).unwrap_or(Type::B32);
            match spec.access {
                Access::Write => {
                    dst = [self.destination(i, index), self.second_destination(i, index)];
                    // A register wider than the type receives the extended value.
                    if let Some(register) = dst[0]
                        && self.width(register) != Width::of(ty)
                    {
                        let narrow = self.temporary(Width::of(ty));
                        widened = Some((register, narrow, ty));
                        dst[0] = Some(narrow);
                    } else if let Some(register) = dst[0]
                        && ty.bits() == 8
                    {
                        widened = Some((register, register, ty));
                    }
                }
                Access::Read => match operand {
                    // `sem` takes the elements one by one.
                    Operand::Vector(parts) => src.extend(parts.iter().map(|part| self.source(part, ty))),
                    operand => src.push(self.source(operand, ty)),
                },
                Access::ReadWrite => {
                    dst[0] = self.destination(i, index);
                    src.push(self.source(operand, ty));
                }
            }
        }
        if i.form.carry.reads || i.form.carry.writes {
            let carry = self.carry();
            if i.form.carry.reads {
                src.push(carry);
            }
            if i.form.carry.writes {
                dst[1] = Some(carry);
            }
        }
        if dst == [None, None] {
            return; // pure, and without a destination
        }
        let main_guard =
            if widened.is_some_and(|(register, narrow, _)| register != narrow) { None } else { guard };
        self.push(main_guard, OpKind::Pure { form: i.form, picks: i.picks, function, dst, src });
        if let Some((register, narrow, ty)) = widened {
            self.push(
                guard,
                SimpleOp::Resize { dst: register, src: narrow, bits: ty.bits(), signed: ty.is_signed() },
            );
        }
    }

    fn carry(&mut self) -> Slot {
        match self.carry {
            Some(slot) => slot,
            None => {
                let slot = self.value(Width::Pred, SlotKind::Carry);
                self.carry = Some(slot);
                slot
            }
        }
    }

    /// A slot with the value of a special register.
    fn special(&mut self, special: isa::SpecialRegister) -> Slot {
        let width = Width::of(special.ty());
        if special.value().is_clock() {
            let dst = self.temporary(width);
            self.block().may_spin = true; // loops that wait for time to pass
            self.push(None, SimpleOp::ReadClock { dst, register: special });
            return dst;
        }
        if let Some(slot) = self.specials.get(&special) {
            return *slot;
        }
        let slot = self.value(width, SlotKind::Special(special));
        self.specials.insert(special, slot);
        slot
    }

    pub(super) fn address_of(&mut self, symbol: Symbol, offset: i64) -> Slot {
        let (_, base) = self.symbol_base(symbol);
        let opaque = match symbol {
            Symbol::Variable(id) => self.module.variables[id.index()].opaque,
            Symbol::Param(index) if self.function.is_entry => {
                self.function.params.get(index as usize).and_then(|param| param.opaque)
            }
            _ => None,
        };
        // Addresses leave the upper bits unused; a handle has its kind mark there.
        let offset = opaque.map_or(offset, |opaque| offset.wrapping_add(opaque.mark() as i64));
        let dst = self.temporary(self.address_width());
        self.push(None, OpKind::AddressOf { dst, base, offset });
        dst
    }

    // Moves.

    fn mov(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let [dst, src] = &i.operands[..] else { return };
        let ty = i.picks.ty(0);
        match (dst, src) {
            (Operand::Vector(parts), Operand::Vector(from)) => {
                // All sources are read before any destination is written: `{a, b}, {b, a}` swaps them.
                let mut copies: SmallVec<[(Slot, Slot); 4]> = SmallVec::new();
                for (to, from) in parts.iter().zip(from) {
                    if let Operand::Reg(register) = to {
                        let ty = self.register_type(*register);
                        let mut src = self.source(from, ty);
                        let dst = self.register(*register);
                        if parts.iter().any(|part| part == from) && dst != src {
                            let kept = self.temporary(self.width(src));
                            self.push(guard, SimpleOp::Copy { dst: kept, src });
                            src = kept;
                        }
                        copies.push((dst, src));
                    }
                }
                for (dst, src) in copies {
                    self.copy_slot(guard, dst, src, ty);
                }
            }
            (Operand::Vector(parts), _) if i.picks.vector() > 1 => self.split(guard, parts, src, ty),
            (Operand::Vector(parts), _) => self.unpack(guard, parts, src, ty),
            (Operand::Reg(register), Operand::Vector(parts)) => self.pack(guard, *register, parts, ty),
            (Operand::Reg(register), _) if ty.bits() > 64 => {
                for half in 0..2 {
                    let dst = self.register_half(*register, half);
                    let src = self.half(src, half);
                    self.push(guard, SimpleOp::Copy { dst, src });
                }
            }
            (Operand::Reg(register), _) => self.copy(guard, *register, src, ty),
            _ => {}
        }
    }

    /// `mov` of one scalar.
    fn copy(&mut self, guard: Option<Guard>, register: RegId, src: &Operand, ty: Type) {
        let dst = self.register(register);
        let slot = self.source(src, ty);
        self.copy_slot(guard, dst, slot, ty);
    }

    fn copy_slot(&mut self, guard: Option<Guard>, dst: Slot, src: Slot, ty: Type) {
        if self.width(src) == self.width(dst) {
            self.push(guard, SimpleOp::Copy { dst, src });
        } else {
            let bits = self.width(src).bits().min(ty.bits());
            self.push(guard, SimpleOp::Resize { dst, src, bits, signed: ty.is_signed() });
        }
    }

    /// One half of a 128-bit source operand.
    pub(crate) fn half(&mut self, operand: &Operand, half: u8) -> Slot {
        match operand {
            Operand::Reg(register) => self.register_half(*register, half),
            Operand::Imm(value) if half == 0 => self.constant(Width::W64, *value),
            _ => self.constant(Width::W64, 0),
        }
    }

    fn pack(&mut self, guard: Option<Guard>, register: RegId, parts: &[Operand], ty: Type) {
        let bits = ty.bits() / parts.len().max(1) as u32;
        let part_ty = Type::of_bits(bits);
        let src: SmallVec<[Slot; 4]> = parts.iter().map(|p| self.source(p, part_ty)).collect();
        if ty.bits() <= 64 {
            let dst = self.register(register);
            self.push(guard, SimpleOp::Pack { dst, src, bits });
            return;
        }
        for half in 0..2u8 {
            let dst = self.register_half(register, half);
            let count = src.len() / 2;
            let src = &src[usize::from(half) * count..][..count];
            match src {
                [only] => self.push(guard, SimpleOp::Copy { dst, src: *only }),
                _ => self.push(guard, SimpleOp::Pack { dst, src: src.into(), bits }),
            }
        }
    }

    fn unpack(&mut self, guard: Option<Guard>, parts: &[Operand], src: &Operand, ty: Type) {
        let bits = ty.bits() / parts.len().max(1) as u32;
        let dst: SmallVec<[Option<Slot>; 4]> = parts
            .iter()
            .map(|part| match part {
                Operand::Reg(register) => Some(self.register(*register)),
                _ => None,
            })
            .collect();
        if ty.bits() <= 64 {
            let src = self.source(src, ty);
            self.push(guard, SimpleOp::Unpack { dst, src, bits });
            return;
        }
        for half in 0..2u8 {
            let src = self.half(src, half);
            let count = dst.len() / 2;
            match &dst[usize::from(half) * count..][..count] {
                [Some(only)] => self.push(guard, SimpleOp::Copy { dst: *only, src }),
                [None] => {}
                parts => self.push(guard, SimpleOp::Unpack { dst: parts.into(), src, bits }),
            }
        }
    }

    /// `mov.v2.b32 {a, b}, c`: each register is as wide as the part of the scalar that it receives.
    fn split(&mut self, guard: Option<Guard>, parts: &[Operand], src: &Operand, ty: Type) {
        let bits = ty.bits() / parts.len().max(1) as u32;
        let width = Width::of(Type::of_bits(bits));
        let dst: SmallVec<[Option<Slot>; 4]> = parts.iter().map(|_| Some(self.temporary(width))).collect();
        let src = self.source(src, ty);
        self.push(guard, SimpleOp::Unpack { dst: dst.clone(), src, bits });
        for (part, src) in parts.iter().zip(dst) {
            if let (Operand::Reg(register), Some(src)) = (part, src) {
                let dst = self.register(*register);
                self.copy_slot(guard, dst, src, Type::of_bits(bits));
            }
        }
    }

    // Addresses as values.

    fn cvta(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let (Some(dst), Some(operand)) = (self.destination(i, 0), i.operands.get(1)) else { return };
        let ty = if self.width(dst) == Width::W32 { Type::U32 } else { Type::U64 };
        let src = self.source(operand, ty);
        let space = match operand {
            // Parameters of a function are in its caller's local memory.
            Operand::Symbol(symbol, _) => self.symbol_base(*symbol).0,
            _ if i.picks.space() == Space::Param && !self.function.is_entry => Space::Local,
            _ => i.picks.space(),
        };
        self.push(guard, OpKind::Cvta { dst, src, space, to_space: i.picks.has(Mod::To) });
    }

    /// `mapa`, `getctarank`
    fn block_of_cluster(&mut self, i: &Instruction, effect: Effect) {
        let guard = self.guard(i);
        let (Some(dst), Some(operand)) = (self.destination(i, 0), i.operands.get(1)) else { return };
        let src = self.source(operand, i.picks.ty(0));
        let generic = i.picks.space() == Space::Generic;
        let kind = match (effect, i.operands.get(2)) {
            (Effect::Mapa, Some(rank)) => {
                SimpleOp::MapShared { dst, src, rank: self.source(rank, Type::U32), generic }
            }
            _ => SimpleOp::RankOf { dst, src, generic },
        };
        self.push(guard, kind);
    }

    fn is_space(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let (Some(dst), Some(src)) = (self.destination(i, 0), i.operands.get(1)) else { return };
        let src = match src {
            Operand::Reg(register) => self.register(*register),
            other => self.source(other, if self.module.address_size == 32 { Type::U32 } else { Type::U64 }),
        };
        let space = i.picks.space();
        let own = space == Space::Shared && !i.picks.has(Mod::SharedCluster);
        self.push(guard, SimpleOp::IsSpace { dst, src, space, own });
    }

    /// `alloca`, `stacksave`, `stackrestore`.
    pub(super) fn stack(&mut self, i: &Instruction, op: StackOp) {
        let guard = self.guard(i);
        let ty = i.picks.ty(0);
        let (dst, value) = match op {
            StackOp::Allocate { .. } => (self.destination(i, 0), i.operands.get(1)),
            StackOp::Save => (self.destination(i, 0), None),
            StackOp::Restore => (None, i.operands.first()),
        };
        let value = value.map(|value| self.source(value, ty));
        self.push(guard, SimpleOp::Stack { op, dst, value });
    }

    /// Pushes an operation whose result of type `ty` goes to a register that may be wider.
    pub(crate) fn wide_destination<K: Into<OpKind>>(
        &mut self,
        guard: Option<Guard>,
        register: Option<Slot>,
        ty: Type,
        op: impl FnOnce(Option<Slot>) -> K,
    ) {
        match register {
            Some(wide) if self.width(wide) != Width::of(ty) => {
                let narrow = self.temporary(Width::of(ty));
                self.push(guard, op(Some(narrow)));
                self.push(
                    guard,
                    SimpleOp::Resize { dst: wide, src: narrow, bits: ty.bits(), signed: ty.is_signed() },
                );
            }
            _ => self.push(guard, op(register)),
        }
    }
}

/// What an allocation instruction does.
fn allocation_kind(i: &Instruction) -> TensorMemoryKind {
    match () {
        () if i.picks.has(Mod::Alloc) => TensorMemoryKind::Allocate,
        () if i.picks.has(Mod::Dealloc) => TensorMemoryKind::Release,
        () => TensorMemoryKind::Relinquish,
    }
}

/// `value` of type `ty` in the representation of its slot: 8-bit values fill 16-bit slots.
fn extend(value: u64, ty: Type) -> u64 {
    if ty == Type::S8 { value as u8 as i8 as u64 } else { value }
}
