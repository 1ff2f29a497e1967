//! `atom` and `red`.
#![allow(missing_docs)] // fields are the operands of the manual

use check::module::{Instruction, Operand};
use isa::{Addition, Mod, Opcode, Space, Type};
use smallvec::smallvec;

use super::{Access, AccessKind, Accesses, Extent};
use crate::lower::Lowering;
use crate::op::{Address, Base, Guard, Slot, Width};
use crate::operands::MapOperands;
use crate::semantics::Semantics;
use crate::simple::SimpleOp;

/// Operation of `atom` and `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// `atom` (with `dst`) and `red`.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic<S = Slot, A = Address> {
    pub op: AtomicOp,
    pub ty: Type,
    /// How it adds, unless the address (which may be generic) lies in shared memory.
    pub addition: Addition,
    pub address: A,
    /// For the first element of a vector, the bytes of the vector; 0 otherwise. A vector is aligned as a whole and
    /// lies in global memory.
    pub vector: u32,
    pub dst: Option<S>,
    /// The operand; for [`AtomicOp::CompareAndSwap`], the compare value.
    pub a: S,
    /// The new value of [`AtomicOp::CompareAndSwap`].
    pub b: Option<S>,
    pub semantics: Semantics,
}

impl<S: Copy, A: Copy> Atomic<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> Atomic<M::Slot, M::Address> {
        let Atomic { op, ty, addition, vector, semantics, .. } = *self;
        let address = to.address(self.address);
        let (a, b) = (to.source(self.a), self.b.map(|b| to.source(b)));
        Atomic { op, ty, addition, address, vector, a, b, dst: to.maybe_result(self.dst), semantics }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let extent = Extent::Bytes(self.ty.bytes());
        smallvec![Access::new(AccessKind::Atomic, &self.address, extent, self.semantics)]
    }
}

/// `atom.exch.b128` and `atom.cas.b128`. Values have two halves, low half first.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomicWide<S = Slot, A = Address> {
    pub address: A,
    pub dst: [Option<S>; 2],
    /// `new` is written if memory holds this value, or always.
    pub compare: Option<[S; 2]>,
    pub new: [S; 2],
    pub semantics: Semantics,
}

impl<S: Copy, A: Copy> AtomicWide<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> AtomicWide<M::Slot, M::Address> {
        AtomicWide {
            address: to.address(self.address),
            compare: self.compare.map(|halves| halves.map(|half| to.source(half))),
            new: self.new.map(|half| to.source(half)),
            dst: self.dst.map(|half| to.maybe_result(half)),
            semantics: self.semantics,
        }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        smallvec![Access::new(AccessKind::Atomic, &self.address, Extent::Bytes(16), self.semantics)]
    }
}

impl Lowering<'_> {
    pub(crate) fn atomic(&mut self, i: &Instruction) {
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
}

pub(crate) fn atomic_op(i: &Instruction) -> Option<AtomicOp> {
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
