//! What an operation does to memory.
//!
//! [`Access`]es are all that an operation does to memory. Fusing, CTA batches, footprints and observers of `vm`, and jobs
//! of the Python package, rely on these lists alone: they miss any access that is missing. Narrowest test:
//! `tests/observer.rs` of `vm`.

use crate::op::{Address, Guard, Slot};
use crate::operands::MapOperands;
use crate::semantics::Semantics;

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// Loads into registers.
    Load,
    /// Stores from registers.
    Store,
    /// Reads, modifies and writes, atomically.
    Atomic,
    /// Reads the source of an asynchronous copy.
    CopyRead,
    /// Writes the destination of an asynchronous copy.
    CopyWrite,
    /// Combines the data of an asynchronous copy with memory, each element atomically.
    CopyReduce,
    /// Changes an mbarrier object.
    Mbarrier,
    /// Reads an mbarrier object.
    MbarrierTest,
    /// Reads a part of a matrix.
    MatrixLoad,
    /// Writes a part of a matrix.
    MatrixStore,
    /// Reads texels.
    TexelLoad,
    /// Writes texels.
    TexelStore,
    /// Reads, modifies and writes a texel, atomically.
    TexelAtomic,
}

impl AccessKind {
    /// Whether it changes memory.
    pub fn writes(self) -> bool {
        match self {
            AccessKind::Store
            | AccessKind::Atomic
            | AccessKind::CopyWrite
            | AccessKind::CopyReduce
            | AccessKind::Mbarrier
            | AccessKind::MatrixStore
            | AccessKind::TexelStore
            | AccessKind::TexelAtomic => true,
            AccessKind::Load
            | AccessKind::CopyRead
            | AccessKind::MbarrierTest
            | AccessKind::MatrixLoad
            | AccessKind::TexelLoad => false,
        }
    }

    /// Whether its effect depends on the contents of memory.
    pub fn reads(self) -> bool {
        !matches!(
            self,
            AccessKind::Store | AccessKind::CopyWrite | AccessKind::MatrixStore | AccessKind::TexelStore
        )
    }
}

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<S = Slot, A = Address> {
    /// At an address, one for each lane.
    Address(A),
    /// In shared memory, at the address in the matrix descriptor that this slot holds: 9.7.15.5.
    Descriptor(S),
    /// In global memory, at the texels of the operation's coordinates.
    Texels,
    /// In global memory, at the lines of the tensor's box at the operation's coordinates.
    Tensor,
    /// In shared memory: the lines of the box at this address.
    Box(A),
}

/// How much an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<S = Slot> {
    /// This many bytes in every lane.
    Bytes(u32),
    /// At most this many bytes in every lane.
    AtMost {
        /// The upper bound.
        bytes: u32,
        /// The number of bytes, if that is smaller.
        size: Option<S>,
        /// No access where this guard holds.
        ignore: Option<Guard<S>>,
    },
    /// In every lane, the number of bytes that the slot holds.
    Slot(S),
    /// The first lanes of a warp, this many, each give the address of a row of 16 bytes.
    Rows(u32),
    /// A matrix of the whole warp, at the lowest lane's address.
    Matrix {
        /// Rows (columns, if the matrix is column-major).
        lines: u32,
        /// Bits of a line.
        line_bits: u32,
        /// Bits of an element.
        element_bits: u32,
        /// Stride between lines, in elements. `None`: the lines are contiguous.
        stride: Option<S>,
    },
    /// The factor of a matrix product that a descriptor describes.
    Factor,
    /// All texels that the operation needs, each of the texel size.
    Texels,
    /// The lines of a tensor's box, without the parts outside the tensor.
    Lines,
}

/// An access of an operation to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<S = Slot, A = Address> {
    /// What it does.
    pub kind: AccessKind,
    /// Where it begins.
    pub start: Start<S, A>,
    /// How much it touches.
    pub extent: Extent<S>,
    /// Its order and scope.
    pub semantics: Semantics,
    /// The access happens at the same offset in the shared memory of several CTAs of the cluster.
    pub multicast: Option<Multicast<S>>,
}

/// Which CTAs of the cluster an access reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast<S = Slot> {
    /// The CTAs whose bit (their rank) is set.
    Mask(S),
    /// All.
    All,
}

impl<S, A: Copy> Access<S, A> {
    pub(crate) fn new(
        kind: AccessKind,
        address: &A,
        extent: Extent<S>,
        semantics: Semantics,
    ) -> Access<S, A> {
        Access { kind, start: Start::Address(*address), extent, semantics, multicast: None }
    }

    /// Of a factor in shared memory, behind a matrix descriptor.
    pub(crate) fn factor(descriptor: S) -> Access<S, A> {
        let (kind, start) = (AccessKind::MatrixLoad, Start::Descriptor(descriptor));
        Access { kind, start, extent: Extent::Factor, semantics: Semantics::WEAK, multicast: None }
    }
}

impl<S: Copy, A: Copy> Access<S, A> {
    /// The access with other operands.
    pub fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> Access<M::Slot, M::Address> {
        Access {
            kind: self.kind,
            start: match self.start {
                Start::Address(address) => Start::Address(to.address(address)),
                Start::Descriptor(slot) => Start::Descriptor(to.control(slot)),
                Start::Texels => Start::Texels,
                Start::Tensor => Start::Tensor,
                Start::Box(address) => Start::Box(to.address(address)),
            },
            extent: match self.extent {
                Extent::Bytes(bytes) => Extent::Bytes(bytes),
                Extent::AtMost { bytes, size, ignore } => Extent::AtMost {
                    bytes,
                    size: size.map(|size| to.control(size)),
                    ignore: ignore.map(|guard| guard.map(|slot| to.control(slot))),
                },
                Extent::Slot(slot) => Extent::Slot(to.control(slot)),
                Extent::Rows(rows) => Extent::Rows(rows),
                Extent::Matrix { lines, line_bits, element_bits, stride } => {
                    let stride = stride.map(|stride| to.control(stride));
                    Extent::Matrix { lines, line_bits, element_bits, stride }
                }
                Extent::Factor => Extent::Factor,
                Extent::Texels => Extent::Texels,
                Extent::Lines => Extent::Lines,
            },
            semantics: self.semantics,
            multicast: self.multicast.map(|multicast| match multicast {
                Multicast::Mask(slot) => Multicast::Mask(to.control(slot)),
                Multicast::All => Multicast::All,
            }),
        }
    }
}
