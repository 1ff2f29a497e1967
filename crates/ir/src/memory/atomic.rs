//! `atom` and `red`.
#![allow(missing_docs)] // fields are the operands of the manual

use isa::{Addition, Type};
use smallvec::smallvec;

use super::{Access, AccessKind, Accesses, Extent};
use crate::op::{Address, Slot};
use crate::operands::MapOperands;
use crate::semantics::Semantics;

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
