//! What an operation touches: its slots, and memory.
//!
//! [`accesses`] lists every memory access of an operation. Fusing, CTA batches, footprints and observers of `vm`, and
//! jobs of the Python package, rely on this list alone: they miss any access that is missing here. Narrowest test:
//! `tests/observer.rs` of `vm`.

use isa::matrix::{Matrix, Shape};
use isa::{Elements, Mod, OperandKind};
use smallvec::{SmallVec, smallvec};

use crate::function::{Argument, Callee, Returned, Terminator};
use crate::op::{
    Address, Base, BlockId, BulkMask, Guard, MatrixKind, MatrixOp, MbarrierOp, Op, OpKind, Slot, TensorKind,
    TensorOp, TexelKind, WarpOp,
};
use crate::semantics::{Order, Scope, Semantics};
use crate::tensor_memory::TensorMemoryOp;

/// How an operation touches a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Use,
    /// Writes it (in the executing lanes).
    Def,
}

type Visitor<'a> = &'a mut dyn FnMut(&mut Slot, Touch);

fn address(address: &mut Address, f: Visitor) {
    base(&mut address.base, f);
}

fn base(base: &mut Base, f: Visitor) {
    if let Base::Slot(slot) = base {
        f(slot, Touch::Use);
    }
}

fn defs<'a>(slots: impl IntoIterator<Item = &'a mut Option<Slot>>, f: Visitor) {
    for slot in slots.into_iter().flatten() {
        f(slot, Touch::Def);
    }
}

fn uses<'a>(slots: impl IntoIterator<Item = &'a mut Slot>, f: Visitor) {
    for slot in slots {
        f(slot, Touch::Use);
    }
}

fn tensor_memory(op: &mut TensorMemoryOp, f: Visitor) {
    op.address.iter_mut().for_each(|a| address(a, f));
    uses(&mut op.src, f);
    defs(&mut op.dst, f);
}

impl Op {
    /// Calls `f` for every slot, uses before definitions; `f` may rename the slot.
    pub fn visit(&mut self, f: Visitor) {
        if let Some(Guard { slot, .. }) = &mut self.guard {
            f(slot, Touch::Use);
        }
        match &mut self.kind {
            OpKind::Pure { dst, src, .. } => {
                uses(src, f);
                defs(dst, f);
            }
            OpKind::Copy { dst, src }
            | OpKind::Not { dst, src }
            | OpKind::Resize { dst, src, .. }
            | OpKind::Offset { dst, src, .. } => {
                f(src, Touch::Use);
                f(dst, Touch::Def);
            }
            OpKind::AddressOf { dst, base: b, .. } => {
                base(b, f);
                f(dst, Touch::Def);
            }
            OpKind::Pack { dst, src, .. } => {
                uses(src, f);
                f(dst, Touch::Def);
            }
            OpKind::Unpack { dst, src, .. } => {
                f(src, Touch::Use);
                defs(dst, f);
            }
            OpKind::SelectPair { dst, pairs, preds } => {
                uses(pairs.iter_mut().chain(preds), f);
                f(dst, Touch::Def);
            }
            OpKind::Load { address: a, dst, .. } => {
                address(a, f);
                defs(dst, f);
            }
            OpKind::Store { address: a, src, .. } => {
                address(a, f);
                uses(src, f);
            }
            OpKind::Atomic { address: at, dst, a, b, .. } => {
                address(at, f);
                f(a, Touch::Use);
                uses(b, f);
                defs([dst], f);
            }
            OpKind::AtomicWide { address: at, dst, compare, new, .. } => {
                address(at, f);
                uses(compare.iter_mut().flatten(), f);
                uses(new, f);
                defs(dst, f);
            }
            OpKind::Stack { dst, value, .. } => {
                uses(value, f);
                defs([dst], f);
            }
            OpKind::IsSpace { dst, src, .. }
            | OpKind::Cvta { dst, src, .. }
            | OpKind::RankOf { dst, src, .. }
            | OpKind::SharedObject { dst, src } => {
                f(src, Touch::Use);
                f(dst, Touch::Def);
            }
            OpKind::MapShared { dst, src, rank, .. } => {
                f(src, Touch::Use);
                f(rank, Touch::Use);
                f(dst, Touch::Def);
            }
            OpKind::ReadClock { dst, .. } | OpKind::ActiveMask { dst } => f(dst, Touch::Def),
            OpKind::Sleep { duration } => f(duration, Touch::Use),
            OpKind::Warp { op, members } => {
                uses(members, f);
                match op {
                    WarpOp::Shuffle { dst, pred, a, b, c, .. } => {
                        uses([a, b, c], f);
                        defs([dst, pred], f);
                    }
                    WarpOp::Vote { dst, a, .. } | WarpOp::Redux { dst, a, .. } => {
                        f(a, Touch::Use);
                        defs([dst], f);
                    }
                    WarpOp::Match { dst, pred, a, .. } => {
                        f(a, Touch::Use);
                        defs([dst, pred], f);
                    }
                    WarpOp::Elect { dst, pred } => defs([dst, pred], f),
                    WarpOp::Matrix(op) => {
                        op.address.iter_mut().for_each(|a| address(a, f));
                        uses(&mut op.src, f);
                        uses(&mut op.stride, f);
                        defs(&mut op.dst, f);
                    }
                    WarpOp::TensorMemory(op) => tensor_memory(op, f),
                    WarpOp::Sync => {}
                }
            }
            OpKind::CopyAsync { dst, src, size, ignore, .. } => {
                address(dst, f);
                address(src, f);
                uses(size, f);
                uses(ignore.as_mut().map(|guard| &mut guard.slot), f);
            }
            OpKind::CopyBulk { dst, src, size, mbarrier, mask, ends, .. } => {
                address(dst, f);
                address(src, f);
                f(size, Touch::Use);
                if let Some(BulkMask::Bytes(mask) | BulkMask::Blocks(mask)) = mask {
                    f(mask, Touch::Use);
                }
                uses(ends.iter_mut().flatten(), f);
                mbarrier.iter_mut().for_each(|a| address(a, f));
            }
            OpKind::CopyTensor(op) => {
                address(&mut op.map, f);
                address(&mut op.shared, f);
                uses(op.coordinates.iter_mut().chain(&mut op.offsets), f);
                op.mbarrier.iter_mut().for_each(|a| address(a, f));
                uses(&mut op.blocks, f);
            }
            OpKind::TensorMemory(op) => tensor_memory(op, f),
            OpKind::TensorMapReplace { address: a, value, .. } => {
                address(a, f);
                f(value, Touch::Use);
            }
            OpKind::TensorMapCopy { dst, src } => {
                address(src, f);
                address(dst, f);
            }
            OpKind::TryCancel { dst, mbarrier, .. } => {
                address(dst, f);
                address(mbarrier, f);
            }
            OpKind::StoreBulk { address: at, size } => {
                address(at, f);
                f(size, Touch::Use);
            }
            OpKind::StoreAsync { address: at, src, mbarrier, .. } => {
                address(at, f);
                uses(src, f);
                address(mbarrier, f);
            }
            OpKind::Mbarrier { address: a, dst, report, value, blocks, .. } => {
                a.iter_mut().for_each(|a| address(a, f));
                uses(value.iter_mut().chain(blocks), f);
                defs([dst, report], f);
            }
            OpKind::Texel(op) => {
                f(&mut op.handle, Touch::Use);
                uses(&mut op.sampler, f);
                uses(&mut op.src, f);
                defs(&mut op.dst, f);
            }
            OpKind::CopyGroup(_)
            | OpKind::AsyncStep(_)
            | OpKind::Fence { .. }
            | OpKind::Unsupported { .. } => {}
        }
    }
}

impl Terminator {
    /// Calls `f` for every slot, uses before definitions; `f` may rename the slot.
    pub fn visit(&mut self, f: Visitor) {
        match self {
            Terminator::Branch { pred, .. } => f(pred, Touch::Use),
            Terminator::BranchIndexed { index, .. } => f(index, Touch::Use),
            Terminator::Call { callee, arguments, returned, .. } => {
                if let Callee::Indirect(slot, _) = callee {
                    f(slot, Touch::Use);
                }
                for argument in arguments {
                    if let Argument::Slot(slot) = argument {
                        f(slot, Touch::Use);
                    }
                }
                for place in returned {
                    if let Returned::Slot(slot) = place {
                        f(slot, Touch::Def);
                    }
                }
            }
            Terminator::Barrier { barrier, threads, reduction, .. } => {
                f(barrier, Touch::Use);
                uses(threads, f);
                if let Some((_, dst, _, src)) = reduction {
                    f(src, Touch::Use);
                    f(dst, Touch::Def);
                }
            }
            Terminator::Jump(_)
            | Terminator::ClusterBarrier { .. }
            | Terminator::Return
            | Terminator::Exit
            | Terminator::Trap => {}
        }
    }

    /// The possible successors in this function.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Terminator::Jump(next)
            | Terminator::Call { next, .. }
            | Terminator::Barrier { next, .. }
            | Terminator::ClusterBarrier { next, .. } => vec![*next],
            Terminator::Branch { taken, otherwise, .. } => vec![*taken, *otherwise],
            Terminator::BranchIndexed { targets, .. } => targets.clone(),
            Terminator::Return | Terminator::Exit | Terminator::Trap => vec![],
        }
    }

    /// Renames the possible successors.
    pub(crate) fn rename(&mut self, name: impl Fn(BlockId) -> BlockId) {
        match self {
            Terminator::Jump(next)
            | Terminator::Call { next, .. }
            | Terminator::Barrier { next, .. }
            | Terminator::ClusterBarrier { next, .. } => *next = name(*next),
            Terminator::Branch { taken, otherwise, .. } => {
                *taken = name(*taken);
                *otherwise = name(*otherwise);
            }
            Terminator::BranchIndexed { targets, .. } => targets.iter_mut().for_each(|t| *t = name(*t)),
            Terminator::Return | Terminator::Exit | Terminator::Trap => {}
        }
    }
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        match self {
            AccessKind::Load
            | AccessKind::Atomic
            | AccessKind::CopyRead
            | AccessKind::CopyReduce
            | AccessKind::Mbarrier
            | AccessKind::MbarrierTest
            | AccessKind::MatrixLoad
            | AccessKind::TexelLoad
            | AccessKind::TexelAtomic => true,
            AccessKind::Store | AccessKind::CopyWrite | AccessKind::MatrixStore | AccessKind::TexelStore => {
                false
            }
        }
    }
}

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At an address, one for each lane.
    Address(Address),
    /// In shared memory, at the address in the matrix descriptor that this slot holds: 9.7.15.5.
    Descriptor(Slot),
    /// In global memory, at the texels of the operation's coordinates.
    Texels,
    /// In global memory, at the lines of the tensor's box at the operation's coordinates.
    Tensor,
    /// In shared memory: the lines of the box at this address.
    Box(Address),
}

/// How much an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes in every lane.
    Bytes(u32),
    /// At most this many bytes in every lane.
    AtMost {
        /// The upper bound.
        bytes: u32,
        /// The number of bytes, if that is smaller.
        size: Option<Slot>,
        /// No access where this guard holds.
        ignore: Option<Guard>,
    },
    /// In every lane, the number of bytes that the slot holds.
    Slot(Slot),
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
        stride: Option<Slot>,
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
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// Where it begins.
    pub start: Start,
    /// How much it touches.
    pub extent: Extent,
    /// Its order and scope.
    pub semantics: Semantics,
    /// The access happens at the same offset in the shared memory of several CTAs of the cluster.
    pub multicast: Option<Multicast>,
}

/// Which CTAs of the cluster an access reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicast {
    /// The CTAs whose bit (their rank) is set.
    Mask(Slot),
    /// All.
    All,
}

impl Access {
    fn new(kind: AccessKind, address: &Address, extent: Extent, semantics: Semantics) -> Access {
        Access { kind, start: Start::Address(*address), extent, semantics, multicast: None }
    }
}

/// Bytes of an mbarrier object.
const MBARRIER_BYTES: u32 = 8;
/// Bytes of the response to a request for a cluster (9.7.13.16.1 clusterlaunchcontrol.try_cancel).
pub const RESPONSE_BYTES: u32 = 16;

/// Bytes of a tensor map.
const TENSOR_MAP_BYTES: u32 = 128;

/// The access that completes bytes on an mbarrier object: `.release` at cluster scope (9.7.9.25.4.1 cp.async.bulk).
fn completion(mbarrier: &Address) -> Access {
    let release = Semantics::new(Order::Release, Scope::Cluster);
    Access::new(AccessKind::Mbarrier, mbarrier, Extent::Bytes(MBARRIER_BYTES), release)
}

/// All memory accesses of an operation, reads before writes. Every engine and checker relies on this list: an
/// operation without accesses here touches registers only.
pub fn accesses(op: &OpKind) -> SmallVec<[Access; 3]> {
    let weak = Semantics::WEAK;
    match op {
        OpKind::Pure { .. }
        | OpKind::Copy { .. }
        | OpKind::Not { .. }
        | OpKind::Resize { .. }
        | OpKind::Offset { .. }
        | OpKind::AddressOf { .. }
        | OpKind::Pack { .. }
        | OpKind::Unpack { .. }
        | OpKind::SelectPair { .. }
        | OpKind::Cvta { .. }
        | OpKind::IsSpace { .. }
        | OpKind::MapShared { .. }
        | OpKind::RankOf { .. }
        | OpKind::SharedObject { .. }
        | OpKind::ReadClock { .. }
        | OpKind::Sleep { .. }
        | OpKind::ActiveMask { .. }
        | OpKind::Stack { .. }
        | OpKind::Fence { .. }
        | OpKind::CopyGroup(_)
        | OpKind::AsyncStep(_)
        | OpKind::Unsupported { .. } => SmallVec::new(),
        OpKind::Load { address, dst, bytes, semantics, .. } => {
            let extent = Extent::Bytes(bytes * dst.len() as u32);
            smallvec![Access::new(AccessKind::Load, address, extent, *semantics)]
        }
        OpKind::Store { address, src, bytes, semantics } => {
            let extent = Extent::Bytes(bytes * src.len() as u32);
            smallvec![Access::new(AccessKind::Store, address, extent, *semantics)]
        }
        OpKind::Atomic { address, ty, semantics, .. } => {
            smallvec![Access::new(AccessKind::Atomic, address, Extent::Bytes(ty.bytes()), *semantics)]
        }
        OpKind::AtomicWide { address, semantics, .. } => {
            smallvec![Access::new(AccessKind::Atomic, address, Extent::Bytes(16), *semantics)]
        }
        OpKind::CopyAsync { dst, src, bytes, size, ignore } => {
            let (bytes, size, ignore) = (*bytes, *size, *ignore);
            let whole = size.is_none() && ignore.is_none();
            let read = if whole { Extent::Bytes(bytes) } else { Extent::AtMost { bytes, size, ignore } };
            smallvec![
                Access::new(AccessKind::CopyRead, src, read, weak),
                Access::new(AccessKind::CopyWrite, dst, Extent::Bytes(bytes), weak),
            ]
        }
        OpKind::CopyBulk { dst, src, size, mbarrier, mask, reduction, .. } => {
            let extent = Extent::Slot(*size);
            let multicast = match mask {
                Some(BulkMask::Blocks(mask)) => Some(Multicast::Mask(*mask)),
                Some(BulkMask::Bytes(_)) | None => None,
            };
            let written = match reduction {
                // Each reduction is `.relaxed.gpu` (9.7.9.25.5).
                Some(_) => {
                    let relaxed = Semantics::new(Order::Relaxed, Scope::Gpu);
                    Access::new(AccessKind::CopyReduce, dst, extent, relaxed)
                }
                None => Access::new(AccessKind::CopyWrite, dst, extent, weak),
            };
            let written = Access { multicast, ..written };
            let mut all = smallvec![Access::new(AccessKind::CopyRead, src, extent, weak), written];
            // Completion on the mbarrier object is `.release` at cluster scope.
            all.extend(mbarrier.as_ref().map(|address| Access { multicast, ..completion(address) }));
            all
        }
        OpKind::CopyTensor(op) => op.accesses(),
        OpKind::TensorMemory(op) => op.accesses(),
        OpKind::TensorMapReplace { address, .. } => {
            // The field is changed in place; no register receives the old contents of the map.
            smallvec![Access::new(AccessKind::CopyWrite, address, Extent::Bytes(TENSOR_MAP_BYTES), weak)]
        }
        OpKind::TensorMapCopy { dst, src } => {
            // One copy for the whole warp.
            let line_bits = TENSOR_MAP_BYTES * 8;
            let whole = Extent::Matrix { lines: 1, line_bits, element_bits: 8, stride: None };
            smallvec![
                Access::new(AccessKind::CopyRead, src, whole, weak),
                Access::new(AccessKind::CopyWrite, dst, whole, weak),
            ]
        }
        OpKind::TryCancel { dst, mbarrier, all } => {
            let multicast = all.then_some(Multicast::All);
            let response = Access::new(AccessKind::CopyWrite, dst, Extent::Bytes(RESPONSE_BYTES), weak);
            smallvec![Access { multicast, ..response }, Access { multicast, ..completion(mbarrier) }]
        }
        OpKind::StoreBulk { address, size } => {
            smallvec![Access::new(AccessKind::CopyWrite, address, Extent::Slot(*size), weak)]
        }
        OpKind::StoreAsync { address, src, bytes, reduction, mbarrier } => {
            let extent = Extent::Bytes(bytes * src.len() as u32);
            // 9.7.13.8 red.async
            let relaxed = Semantics::new(Order::Relaxed, Scope::Cluster);
            let written = match reduction {
                Some(_) => Access::new(AccessKind::CopyReduce, address, extent, relaxed),
                None => Access::new(AccessKind::CopyWrite, address, extent, weak),
            };
            smallvec![written, completion(mbarrier)]
        }
        OpKind::Mbarrier { op, address, blocks, semantics, .. } => {
            let kind = match op {
                MbarrierOp::Test { .. } | MbarrierOp::CheckLayout { .. } => AccessKind::MbarrierTest,
                MbarrierOp::Init { .. }
                | MbarrierOp::Report
                | MbarrierOp::Invalidate
                | MbarrierOp::ExpectTransactions
                | MbarrierOp::CompleteTransactions
                | MbarrierOp::Arrive { .. }
                | MbarrierOp::ArriveExpecting { .. }
                | MbarrierOp::ArriveAfterCopies { .. } => AccessKind::Mbarrier,
                MbarrierOp::PendingCount => return SmallVec::new(),
            };
            let multicast = blocks.map(Multicast::Mask);
            let access = |a| Access::new(kind, a, Extent::Bytes(MBARRIER_BYTES), *semantics);
            address.iter().map(|a| Access { multicast, ..access(a) }).collect()
        }
        OpKind::Texel(op) => {
            let (kind, semantics) = match op.kind {
                TexelKind::Query => return SmallVec::new(),
                TexelKind::Fetch | TexelKind::Load => (AccessKind::TexelLoad, weak),
                TexelKind::Store => (AccessKind::TexelStore, weak),
                // Like `red`.
                TexelKind::Reduce(_) => (AccessKind::TexelAtomic, Semantics::new(Order::Relaxed, Scope::Gpu)),
            };
            smallvec![Access {
                kind,
                start: Start::Texels,
                extent: Extent::Texels,
                semantics,
                multicast: None
            }]
        }
        OpKind::Warp { op, .. } => match op {
            WarpOp::Shuffle { .. }
            | WarpOp::Vote { .. }
            | WarpOp::Match { .. }
            | WarpOp::Redux { .. }
            | WarpOp::Elect { .. }
            | WarpOp::Sync => SmallVec::new(),
            WarpOp::Matrix(op) => op.accesses(),
            WarpOp::TensorMemory(op) => op.accesses(),
        },
    }
}

/// Whether an operation orders the accesses around it, or ends the lifetime of an object: no access may be moved
/// across it. Among the operations that access memory, these are the strong ones.
pub fn orders_memory(op: &OpKind) -> bool {
    // The lanes of a warp converge at warp-level operations, and `bar.warp.sync` orders their accesses.
    matches!(
        op,
        OpKind::Fence { .. }
            | OpKind::CopyGroup(_)
            | OpKind::AsyncStep(_)
            | OpKind::Stack { .. }
            | OpKind::Warp { .. }
            | OpKind::Unsupported { .. }
    ) || accesses(op).iter().any(|access| access.semantics.is_strong())
}

impl TensorOp {
    fn accesses(&self) -> SmallVec<[Access; 3]> {
        let weak = Semantics::WEAK;
        let multicast = self.blocks.map(Multicast::Mask);
        let access = |kind, start, semantics| Access {
            kind,
            start,
            extent: Extent::Lines,
            semantics,
            multicast: if matches!(start, Start::Box(_)) { multicast } else { None },
        };
        let (tensor, shared) = (Start::Tensor, Start::Box(self.shared));
        let (read, written) = match self.kind {
            TensorKind::Load => (tensor, access(AccessKind::CopyWrite, shared, weak)),
            TensorKind::Store => (shared, access(AccessKind::CopyWrite, tensor, weak)),
            // Like those of `cp.reduce.async.bulk`.
            TensorKind::Reduce(_) => {
                let relaxed = Semantics::new(Order::Relaxed, Scope::Gpu);
                (shared, access(AccessKind::CopyReduce, tensor, relaxed))
            }
        };
        let map = Access::new(AccessKind::Load, &self.map, Extent::Bytes(TENSOR_MAP_BYTES), weak);
        let mut all = smallvec![map, access(AccessKind::CopyRead, read, weak), written];
        all.extend(self.mbarrier.as_ref().map(|address| Access { multicast, ..completion(address) }));
        all
    }
}

impl MatrixOp {
    /// The slots of the operand with this name, a part of [`MatrixOp::src`].
    pub fn operand(&self, name: &str) -> Option<&[Slot]> {
        let mut start = 0;
        for spec in self.form.operands_with(&self.picks) {
            let read = match (spec.kind, spec.access) {
                (OperandKind::Address, _) => false,
                (_, isa::Access::Write) => self.kind == MatrixKind::GroupMultiply,
                _ => spec.name != "stride",
            };
            let count = if read { spec.count(self.form, &self.picks).0 } else { 0 };
            if spec.name == name {
                return self.src.get(start..start + count);
            }
            start += count;
        }
        None
    }

    fn accesses(&self) -> SmallVec<[Access; 3]> {
        let weak = Semantics::WEAK;
        let at =
            |kind, extent| self.address.iter().map(move |a| Access::new(kind, a, extent, weak)).collect();
        match self.kind {
            MatrixKind::Multiply | MatrixKind::Transpose => SmallVec::new(),
            MatrixKind::GroupMultiply => {
                let factor = |name| {
                    let start = Start::Descriptor(*self.operand(name)?.first()?);
                    Some(Access {
                        kind: AccessKind::MatrixLoad,
                        start,
                        extent: Extent::Factor,
                        semantics: weak,
                        multicast: None,
                    })
                };
                ["a-desc", "b-desc"].into_iter().filter_map(factor).collect()
            }
            MatrixKind::LoadRows => at(AccessKind::MatrixLoad, Extent::Rows(8 * self.dst.len() as u32)),
            MatrixKind::StoreRows => at(AccessKind::MatrixStore, Extent::Rows(8 * self.src.len() as u32)),
            MatrixKind::Load => at(AccessKind::MatrixLoad, self.matrix()),
            MatrixKind::Store => at(AccessKind::MatrixStore, self.matrix()),
        }
    }

    /// The matrix of `wmma.load` and `wmma.store`.
    fn matrix(&self) -> Extent {
        let fragment = self.form.operands.iter().find(|spec| spec.elements == Elements::Fragment);
        let found = fragment.and_then(|spec| {
            let (shape, ty) = (Shape::of(&self.picks)?, spec.element(&self.picks)?);
            Some((Matrix::of(self.form, &self.picks, spec).size(shape, false), ty.bits()))
        });
        let ((rows, columns), element_bits) = found.unwrap_or_default();
        let (lines, length) = if self.picks.has(Mod::Col) { (columns, rows) } else { (rows, columns) };
        let line_bits = length as u32 * element_bits;
        Extent::Matrix { lines: lines as u32, line_bits, element_bits, stride: self.stride }
    }
}
