//! Operations on tensor memory (`tcgen05`).

use isa::{Form, OperandKind, Picks};
use smallvec::{SmallVec, smallvec};

use crate::memory::{Access, AccessKind, Accesses, Extent};
use crate::op::{Address, Slot};
use crate::semantics::Semantics;

/// What an instruction does with tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorMemoryKind {
    /// `tcgen05.alloc`; repeated until there is room.
    Allocate,
    /// `tcgen05.dealloc`
    Release,
    /// `tcgen05.relinquish_alloc_permit`
    Relinquish,
    /// `tcgen05.ld`
    Load,
    /// `tcgen05.st`
    Store,
    /// `tcgen05.mma`
    Multiply,
    /// `tcgen05.cp`
    Copy,
    /// `tcgen05.shift`
    Shift,
}

/// An instruction on tensor memory. `form` and `picks` define it.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMemoryOp {
    /// What it does.
    pub kind: TensorMemoryKind,
    /// The form of the instruction.
    pub form: &'static Form,
    /// Its modifiers.
    pub picks: Picks,
    /// The registers of a load. For an allocation, a predicate: whether there was room.
    pub dst: SmallVec<[Option<Slot>; 8]>,
    /// The registers of all other operands, one operand after the other, including addresses in tensor memory.
    pub src: SmallVec<[Slot; 8]>,
    /// Where an allocation writes its tensor memory address, in shared memory.
    pub address: Option<Address>,
}

/// Bits of an address in tensor memory.
const ADDRESS_BITS: u32 = 32;

impl TensorMemoryOp {
    /// The slots of the operand with this name, a part of [`TensorMemoryOp::src`].
    pub fn operand(&self, name: &str) -> Option<&[Slot]> {
        let mut start = 0;
        for spec in self.form.operands_with(&self.picks) {
            let is_read = spec.access == isa::Access::Read
                && !(self.kind == TensorMemoryKind::Allocate && spec.kind == OperandKind::Address);
            let count = match spec.kind {
                _ if !is_read => 0,
                OperandKind::Address => 1,
                _ => spec.count(self.form, &self.picks).0,
            };
            if spec.name == name {
                return self.src.get(start..start + count);
            }
            start += count;
        }
        None
    }

    /// Its accesses to shared memory. Tensor memory needs no entry: only these instructions access it.
    pub(crate) fn accesses(&self) -> Accesses {
        let factor = |name| Some(Access::factor(*self.operand(name)?.first()?));
        match self.kind {
            TensorMemoryKind::Allocate => {
                let extent = Extent::Matrix {
                    lines: 1,
                    line_bits: ADDRESS_BITS,
                    element_bits: ADDRESS_BITS,
                    stride: None,
                };
                let written =
                    |address| Access::new(AccessKind::MatrixStore, address, extent, Semantics::WEAK);
                self.address.iter().map(written).collect()
            }
            TensorMemoryKind::Multiply => ["a-desc", "b-desc"].into_iter().filter_map(factor).collect(),
            TensorMemoryKind::Copy => factor("desc").into_iter().collect(),
            TensorMemoryKind::Release
            | TensorMemoryKind::Relinquish
            | TensorMemoryKind::Load
            | TensorMemoryKind::Store
            | TensorMemoryKind::Shift => smallvec![],
        }
    }
}
