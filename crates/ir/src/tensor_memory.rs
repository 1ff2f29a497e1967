//! Operations on tensor memory (`tcgen05`).

use isa::{Form, OperandKind, Picks};
use smallvec::{SmallVec, smallvec};

use crate::op::{Address, Slot};
use crate::semantics::Semantics;
use crate::visit::{Access, AccessKind, Extent, Start};

/// What an instruction does with tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorMemoryKind {
    /// `tcgen05.alloc`; tried again until there is room.
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

/// An instruction on tensor memory, as `form` and `picks` say.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMemoryOp {
    /// What it does.
    pub kind: TensorMemoryKind,
    /// The row of the instruction.
    pub form: &'static Form,
    /// What was picked of its modifiers.
    pub picks: Picks,
    /// The registers of a load; of an allocation whether there was room, a predicate.
    pub dst: SmallVec<[Option<Slot>; 8]>,
    /// The registers of all other operands, addresses in tensor memory among them, one operand after the other.
    pub src: SmallVec<[Slot; 8]>,
    /// Where in shared memory the address of an allocation is written.
    pub address: Option<Address>,
}

/// Bits of an address in tensor memory.
const ADDRESS_BITS: u32 = 32;

impl TensorMemoryOp {
    /// The slots of the operand of this name, among [`TensorMemoryOp::src`].
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

    /// What it does to shared memory; tensor memory is nobody else's.
    pub(crate) fn accesses(&self) -> SmallVec<[Access; 3]> {
        let (semantics, multicast) = (Semantics::WEAK, None);
        let factor = |name| {
            let start = Start::Descriptor(*self.operand(name)?.first()?);
            Some(Access { kind: AccessKind::MatrixLoad, start, extent: Extent::Factor, semantics, multicast })
        };
        match self.kind {
            TensorMemoryKind::Allocate => {
                let extent = Extent::Matrix {
                    lines: 1,
                    line_bits: ADDRESS_BITS,
                    element_bits: ADDRESS_BITS,
                    stride: None,
                };
                let written = |address: &Address| Access {
                    kind: AccessKind::MatrixStore,
                    start: Start::Address(*address),
                    extent,
                    semantics,
                    multicast,
                };
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
