//! Loads, stores and atomics.

use check::module::{Instruction, Operand, RegId};
use isa::{Action, Addition, FORMS, Mod, Opcode, Picks, Space, Type};
use smallvec::{SmallVec, smallvec};

use super::Lowering;
use crate::memory::{Atomic, AtomicOp, AtomicWide, Load, Store};
use crate::op::{Address, Base, Guard, OpKind, Slot, StackOp, Width};
use crate::semantics::{Order, Semantics};
use crate::simple::SimpleOp;

impl Lowering<'_> {
    /// Order and scope of `ld` and `st`. A loop around a strong access may wait for other threads, so it must let
    /// them run. A release alone waits for nothing.
    fn semantics(&mut self, i: &Instruction) -> Semantics {
        let semantics = Semantics::of_access(&i.picks);
        self.block().may_spin |= semantics.is_strong() && semantics.order != Order::Release;
        semantics
    }

    pub(super) fn load(&mut self, i: &Instruction) {
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

    pub(super) fn store(&mut self, i: &Instruction) {
        let semantics = self.semantics(i);
        let guard = self.guard(i);
        let [address, src, ..] = &i.operands[..] else { return };
        let ty = i.picks.ty(0);
        let address = self.address(address, i.picks.space());
        let parts = match src {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
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

    /// The source of a store: the low bytes of a register of any width.
    pub(super) fn stored(&mut self, operand: &Operand, ty: Type) -> Slot {
        match operand {
            Operand::Reg(register) => self.register(*register),
            other => self.source(other, ty),
        }
    }

    pub(super) fn atomic(&mut self, i: &Instruction) {
        let has_destination = i.form.opcode == Opcode::Atom;
        self.block().may_spin |= has_destination;
        self.block().reduces |= !has_destination;
        let guard = self.guard(i);
        let ty = i.picks.ty(0);
        let semantics = Semantics::of_atomic(i.form.opcode, &i.picks);
        let (dst, rest) = match &i.operands[..] {
            [dst, rest @ ..] if has_destination => (Some(dst), rest),
            rest => (None, rest),
        };
        let ([address, a, more @ ..], Some(op)) = (rest, atomic_op(i)) else { return };
        let address = self.address(address, i.picks.space());
        if ty.bits() > 64 {
            let halves =
                |operand: &Operand, lowering: &mut Self| [0, 1].map(|half| lowering.half(operand, half));
            let (a, b) = (halves(a, self), more.first().map(|b| halves(b, self)));
            let dst = match dst {
                Some(Operand::Reg(register)) => [0, 1].map(|half| Some(self.register_half(*register, half))),
                _ => [None, None],
            };
            let (compare, new) = match (op, b) {
                (AtomicOp::CompareAndSwap, Some(b)) => (Some(a), b),
                _ => (None, a),
            };
            return self.push(guard, AtomicWide { address, dst, compare, new, semantics });
        }
        if let Operand::Vector(parts) = a {
            return self.atomic_vector(guard, op, ty, (address, semantics), dst, parts);
        }
        let a = self.source(a, ty);
        let b = match (op, more.first()) {
            (AtomicOp::CompareAndSwap, Some(b)) => Some(self.source(b, ty)),
            _ => None,
        };
        let register = match dst {
            Some(Operand::Reg(register)) => Some(self.register(*register)),
            _ => None,
        };
        // For a generic address, this is decided at run time.
        let addition = if address.space == Space::Shared { Addition::Shared } else { Addition::Global };
        self.wide_destination(guard, register, ty, |dst| Atomic {
            op,
            ty,
            addition,
            address,
            vector: 0,
            dst,
            a,
            b,
            semantics,
        });
    }

    /// Atomics on vectors: each element is a separate atomic access (9.7.13.6 atom).
    fn atomic_vector(
        &mut self,
        guard: Option<Guard>,
        op: AtomicOp,
        ty: Type,
        (address, semantics): (Address, Semantics),
        dst: Option<&Operand>,
        parts: &[Operand],
    ) {
        // All sources must be read before the first destination is written.
        let sources: Vec<Slot> = parts.iter().map(|part| self.source(part, ty)).collect();
        let base = match address.base {
            Base::Slot(slot) => {
                let copy = self.temporary(self.width(slot));
                self.push(None, SimpleOp::Copy { dst: copy, src: slot });
                Base::Slot(copy)
            }
            other => other,
        };
        let mut results = Vec::with_capacity(sources.len());
        for (i, &a) in sources.iter().enumerate() {
            let register = match dst {
                Some(Operand::Vector(parts)) => match parts.get(i) {
                    Some(Operand::Reg(register)) => Some(self.register(*register)),
                    _ => None,
                },
                _ => None,
            };
            let old = register.map(|_| self.temporary(Width::of(ty)));
            let offset = address.offset + i as i64 * i64::from(ty.bytes());
            let address = Address { base, offset, ..address };
            let vector = if i == 0 { ty.bytes() * sources.len() as u32 } else { 0 };
            let (dst, b, addition) = (old, None, Addition::Global);
            self.push(guard, Atomic { op, ty, addition, address, vector, dst, a, b, semantics });
            results.extend(register.zip(old));
        }
        for (dst, src) in results {
            let same = self.width(dst) == self.width(src);
            let (bits, signed) = (ty.bits(), ty.is_signed());
            let kind =
                if same { SimpleOp::Copy { dst, src } } else { SimpleOp::Resize { dst, src, bits, signed } };
            self.push(guard, kind);
        }
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
    pub(super) fn wide_destination<K: Into<OpKind>>(
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

pub(super) fn atomic_op(i: &Instruction) -> Option<AtomicOp> {
    i.picks.mods().iter().find_map(|m| {
        Some(match m {
            Mod::And => AtomicOp::And,
            Mod::Or => AtomicOp::Or,
            Mod::Xor => AtomicOp::Xor,
            Mod::Exch => AtomicOp::Exchange,
            Mod::Cas => AtomicOp::CompareAndSwap,
            Mod::Add => AtomicOp::Add,
            Mod::Inc => AtomicOp::Inc,
            Mod::Dec => AtomicOp::Dec,
            Mod::Min => AtomicOp::Min,
            Mod::Max => AtomicOp::Max,
            _ => return None,
        })
    })
}
