//! Loads and stores.
#![allow(missing_docs)] // fields are the operands of the manual

use check::module::{Instruction, Operand, RegId};
use isa::{Action, FORMS, Opcode, Picks, Type};
use smallvec::{SmallVec, smallvec};

use super::{Access, AccessKind, Accesses, Extent};
use crate::lower::Lowering;
use crate::op::{Address, Guard, OpKind, Slot, Width};
use crate::operands::MapOperands;
use crate::semantics::{Order, Semantics};
use crate::simple::SimpleOp;

/// Loads contiguous elements of `bytes` bytes each, sign- or zero-extended to their slot's width.
#[derive(Clone, Debug, PartialEq)]
pub struct Load<S = Slot, A = Address> {
    pub address: A,
    pub dst: SmallVec<[Option<S>; 4]>,
    pub bytes: u32,
    pub signed: bool,
    pub semantics: Semantics,
}

impl<S: Copy, A: Copy> Load<S, A> {
    /// The load with other operands.
    pub fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> Load<M::Slot, M::Address> {
        let Load { bytes, signed, semantics, .. } = *self;
        let address = to.address(self.address);
        let dst = self.dst.iter().map(|&slot| to.maybe_result(slot)).collect();
        Load { address, dst, bytes, signed, semantics }
    }

    pub(crate) fn accesses(&self) -> Accesses<S, A> {
        let extent = Extent::Bytes(self.bytes * self.dst.len() as u32);
        smallvec![Access::new(AccessKind::Load, &self.address, extent, self.semantics)]
    }
}

/// Stores contiguous elements of `bytes` bytes each.
#[derive(Clone, Debug, PartialEq)]
pub struct Store<S = Slot, A = Address> {
    pub address: A,
    pub src: SmallVec<[S; 4]>,
    pub bytes: u32,
    pub semantics: Semantics,
}

impl<S: Copy, A: Copy> Store<S, A> {
    /// The store with other operands.
    pub fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> Store<M::Slot, M::Address> {
        let Store { bytes, semantics, .. } = *self;
        let address = to.address(self.address);
        Store { address, src: self.src.iter().map(|&slot| to.source(slot)).collect(), bytes, semantics }
    }

    pub(crate) fn accesses(&self) -> Accesses<S, A> {
        let extent = Extent::Bytes(self.bytes * self.src.len() as u32);
        smallvec![Access::new(AccessKind::Store, &self.address, extent, self.semantics)]
    }
}

/// Faults where an address is no multiple of `bytes`: before a store that leaves elements out.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckAlignment<A = Address> {
    pub address: A,
    pub bytes: u32,
}

impl<A: Copy> CheckAlignment<A> {
    pub(super) fn map<S: Copy, M: MapOperands<S, A>>(&self, to: &mut M) -> CheckAlignment<M::Address> {
        CheckAlignment { address: to.address(self.address), bytes: self.bytes }
    }

    pub(super) fn accesses<S>(&self) -> Accesses<S, A> {
        Accesses::new()
    }
}

impl Lowering<'_> {
    /// Order and scope of `ld` and `st`. A loop around a strong access may wait for other threads, so it must let
    /// them run. A release alone waits for nothing.
    fn semantics(&mut self, i: &Instruction) -> Semantics {
        let semantics = Semantics::of_access(&i.picks);
        self.block().may_spin |= semantics.is_strong() && semantics.order != Order::Release;
        semantics
    }

    pub(crate) fn load(&mut self, i: &Instruction) {
        let semantics = self.semantics(i);
        let guard = self.guard(i);
        let [dst, address, ..] = &i.operands[..] else { return };
        let ty = i.picks.ty(0);
        let address = self.address(address, i.picks.space());
        let parts = match dst {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let halves = if ty.bits() > 64 { 2 } else { 1 };
        let mut slots: SmallVec<[Option<Slot>; 4]> = SmallVec::new();
        for part in parts {
            for half in 0..halves {
                slots.push(match part {
                    Operand::Reg(register) => Some(self.register_half(*register, half)),
                    _ => None,
                });
            }
        }
        let bytes = ty.bytes() / u32::from(halves);
        let signed = ty.is_signed();
        self.push(guard, OpKind::Load(Load { address, dst: slots, bytes, signed, semantics }));
        if halves == 1 {
            let registers = parts.iter().filter_map(|part| match part {
                Operand::Reg(register) if self.register_type(*register).bits() > 64 => Some(*register),
                _ => None,
            });
            for register in registers.collect::<Vec<_>>() {
                self.extend_to_high_half(guard, register, ty);
            }
        }
    }

    /// Writes the high half of a 128-bit register after its low half received a number of type `ty`, extended to 64
    /// bits: zeros, or copies of the sign bit.
    fn extend_to_high_half(&mut self, guard: Option<Guard>, register: RegId, ty: Type) {
        let [low, high] = [0, 1].map(|half| self.register_half(register, half));
        let shift = FORMS.iter().find(|form| form.opcode == Opcode::Shr);
        let kind = match shift.map(|form| (form, form.action)) {
            Some((form, Action::Pure(function))) if ty.is_signed() => {
                let (picks, src) =
                    (Picks::new(&[Type::S64], &[]), smallvec![low, self.constant(Width::W32, 63)]);
                OpKind::Pure { form, picks, function, dst: [Some(high), None], src }
            }
            _ => SimpleOp::Copy { dst: high, src: self.constant(Width::W64, 0) }.into(),
        };
        self.push(guard, kind);
    }

    pub(crate) fn store(&mut self, i: &Instruction) {
        let semantics = self.semantics(i);
        let guard = self.guard(i);
        let [address, src, ..] = &i.operands[..] else { return };
        let ty = i.picks.ty(0);
        let address = self.address(address, i.picks.space());
        let parts = match src {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        if parts.contains(&Operand::Sink) {
            return self.store_some(guard, address, parts, ty, semantics);
        }
        let mut slots: SmallVec<[Slot; 4]> = SmallVec::new();
        for part in parts {
            if ty.bits() > 64 {
                for half in 0..2 {
                    slots.push(self.half(part, half));
                }
            } else {
                slots.push(self.stored(part, ty));
            }
        }
        let bytes = if ty.bits() > 64 { ty.bytes() / 2 } else { ty.bytes() };
        self.push(guard, OpKind::Store(Store { address, src: slots, bytes, semantics }));
    }

    /// Stores all but the elements that `_` leaves out: a store for each run of the others. Runs have the length and alignment of
    /// a vector. ptxas compiles all to one instruction, so the address of all is aligned to the whole.
    fn store_some(
        &mut self,
        guard: Option<Guard>,
        address: Address,
        parts: &[Operand],
        ty: Type,
        semantics: Semantics,
    ) {
        let bytes = ty.bytes();
        self.push(guard, CheckAlignment { address, bytes: bytes * parts.len() as u32 });
        let mut at = 0;
        while at < parts.len() {
            let fits = |&count: &usize| {
                at.is_multiple_of(count)
                    && parts.get(at..at + count).is_some_and(|run| !run.contains(&Operand::Sink))
            };
            let Some(count) = [4, 2, 1].into_iter().find(fits) else {
                at += 1;
                continue;
            };
            let src = parts[at..at + count].iter().map(|part| self.stored(part, ty)).collect();
            let address = Address { offset: address.offset + i64::from(bytes) * at as i64, ..address };
            self.push(guard, OpKind::Store(Store { address, src, bytes, semantics }));
            at += count;
        }
    }

    /// The source of a store: the low bytes of a register of any width.
    pub(crate) fn stored(&mut self, operand: &Operand, ty: Type) -> Slot {
        match operand {
            Operand::Reg(register) => self.register(*register),
            other => self.source(other, ty),
        }
    }
}
