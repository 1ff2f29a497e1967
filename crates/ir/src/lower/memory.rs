//! Loads, stores and atomics.

use check::module::{Instruction, Operand};
use isa::{Mod, Space, Type};
use smallvec::SmallVec;

use super::Lowering;
use crate::op::{AtomicOp, Guard, OpKind, Slot, Width};

impl Lowering<'_> {
    /// Accesses that another thread may answer: whoever loops around them must let others run.
    fn note_ordering(&mut self, i: &Instruction) {
        if i.picks.mods().iter().any(|m| matches!(m, Mod::Volatile | Mod::Acquire | Mod::Relaxed | Mod::Mmio))
        {
            self.block().may_spin = true;
        }
    }

    pub(super) fn load(&mut self, i: &Instruction) {
        self.note_ordering(i);
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
        self.push(guard, OpKind::Load { address, dst: slots, bytes, signed: ty.is_signed() });
    }

    pub(super) fn store(&mut self, i: &Instruction) {
        self.note_ordering(i);
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
        self.push(guard, OpKind::Store { address, src: slots, bytes });
    }

    /// A source of a store: the low bytes of a register of any width.
    fn stored(&mut self, operand: &Operand, ty: Type) -> Slot {
        match operand {
            Operand::Reg(register) => self.register(*register),
            other => self.source(other, ty),
        }
    }

    pub(super) fn atomic(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let ty = i.picks.ty(0);
        let has_destination = i.form.opcode == "atom";
        let (dst, rest) = match &i.operands[..] {
            [dst, rest @ ..] if has_destination => (Some(dst), rest),
            rest => (None, rest),
        };
        let ([address, a, more @ ..], Some(op)) = (rest, atomic_op(i)) else { return };
        // Vectors and 128 bits: no engine executes them yet.
        if matches!(a, Operand::Vector(_)) || ty.bits() > 64 {
            self.push(guard, OpKind::Unsupported { form: i.form });
            return;
        }
        let address = self.address(address, i.picks.space());
        let a = self.source(a, ty);
        let b = match (op, more.first()) {
            (AtomicOp::CompareAndSwap, Some(b)) => Some(self.source(b, ty)),
            _ => None,
        };
        let register = match dst {
            Some(Operand::Reg(register)) => Some(self.register(*register)),
            _ => None,
        };
        // f32 atomics on global memory flush subnormals, on shared memory they keep them (9.7.13.5 atom).
        let flush = ty == Type::F32 && !matches!(address.space, Space::Shared);
        self.wide_destination(guard, register, ty, |dst| OpKind::Atomic {
            op,
            ty,
            flush,
            address,
            dst,
            a,
            b,
        });
    }

    /// Pushes an operation whose result of type `ty` goes to a register that may be wider.
    pub(super) fn wide_destination(
        &mut self,
        guard: Option<Guard>,
        register: Option<Slot>,
        ty: Type,
        op: impl FnOnce(Option<Slot>) -> OpKind,
    ) {
        match register {
            Some(wide) if self.width(wide) != Width::of(ty) => {
                let narrow = self.temporary(Width::of(ty));
                self.push(guard, op(Some(narrow)));
                self.push(
                    guard,
                    OpKind::Resize { dst: wide, src: narrow, bits: ty.bits(), signed: ty.is_signed() },
                );
            }
            _ => self.push(guard, op(register)),
        }
    }
}

fn atomic_op(i: &Instruction) -> Option<AtomicOp> {
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
