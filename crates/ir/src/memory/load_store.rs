//! Loads and stores.
#![allow(missing_docs)] // fields are the operands of the manual

use smallvec::{SmallVec, smallvec};

use super::{Access, AccessKind, Accesses, Extent};
use crate::op::{Address, Slot};
use crate::operands::MapOperands;
use crate::semantics::Semantics;

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
