//! Asynchronous copies and stores, and tensor maps.
#![allow(missing_docs)] // fields are the operands of the manual

use check::module::{Instruction, Operand};
use isa::{Addition, Mod, Picks, Space, Type, Validity};
use smallvec::{SmallVec, smallvec};

use super::atomic::atomic_op;
use super::mbarrier::completion;
use super::{Access, AccessKind, Accesses, AtomicOp, Extent, Multicast, Start};
use crate::lower::Lowering;
use crate::op::{Address, Guard, Slot};
use crate::operands::MapOperands;
use crate::semantics::{Order, Scope, Semantics};
use crate::simple::SimpleOp;

/// Bytes of the response to a request for a cluster (9.7.13.16.1 clusterlaunchcontrol.try_cancel).
pub const RESPONSE_BYTES: u32 = 16;

/// Bytes of a tensor map.
const TENSOR_MAP_BYTES: u32 = 128;

/// `cp.async`: copies the first `size` of `bytes` bytes and fills the rest with zeros. The copy takes effect when the
/// thread waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyAsync<S = Slot, A = Address> {
    pub dst: A,
    pub src: A,
    /// Bytes that are written.
    pub bytes: u32,
    /// Bytes that are read; `None`: all.
    pub size: Option<S>,
    /// Nothing is read where this holds.
    pub ignore: Option<Guard<S>>,
}

impl<S: Copy, A: Copy> CopyAsync<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> CopyAsync<M::Slot, M::Address> {
        CopyAsync {
            dst: to.address(self.dst),
            src: to.address(self.src),
            bytes: self.bytes,
            size: self.size.map(|size| to.control(size)),
            ignore: self.ignore.map(|guard| guard.map(|slot| to.control(slot))),
        }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let CopyAsync { bytes, size, ignore, .. } = *self;
        let whole = size.is_none() && ignore.is_none();
        let read = if whole { Extent::Bytes(bytes) } else { Extent::AtMost { bytes, size, ignore } };
        smallvec![
            Access::new(AccessKind::CopyRead, &self.src, read, Semantics::WEAK),
            Access::new(AccessKind::CopyWrite, &self.dst, Extent::Bytes(bytes), Semantics::WEAK),
        ]
    }
}

/// Which part of a bulk copy takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkMask<S = Slot> {
    /// `.cp_mask`: of each 16 bytes, only the bytes whose mask bit is set are copied.
    Bytes(S),
    /// `.multicast::cluster`: each CTA of the cluster whose bit (its rank) is set receives the data at the same
    /// offset in its shared memory.
    Blocks(S),
}

/// How `cp.reduce.async.bulk` combines each incoming element with the one in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    pub op: AtomicOp,
    pub ty: Type,
    pub addition: Addition,
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`: copies `size` bytes and then completes them on the mbarrier object.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyBulk<S = Slot, A = Address> {
    pub dst: A,
    pub src: A,
    pub size: S,
    pub mbarrier: Option<A>,
    /// What takes place of the copy; `None`: all.
    pub mask: Option<BulkMask<S>>,
    /// `.ignore_oob`: the numbers of bytes at the beginning and at the end that are not copied. These bytes need not be
    /// accessible.
    pub ends: Option<[S; 2]>,
    /// What the copy reports to the mbarrier object.
    pub report: Option<Validity>,
    /// How the data are combined with memory; `None`: they replace it.
    pub reduction: Option<Reduction>,
}

impl<S: Copy, A: Copy> CopyBulk<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> CopyBulk<M::Slot, M::Address> {
        CopyBulk {
            dst: to.address(self.dst),
            src: to.address(self.src),
            size: to.control(self.size),
            mask: self.mask.map(|mask| match mask {
                BulkMask::Bytes(slot) => BulkMask::Bytes(to.control(slot)),
                BulkMask::Blocks(slot) => BulkMask::Blocks(to.control(slot)),
            }),
            ends: self.ends.map(|ends| ends.map(|end| to.control(end))),
            mbarrier: self.mbarrier.map(|address| to.address(address)),
            report: self.report,
            reduction: self.reduction,
        }
    }

    /// The CTAs that receive the data, if there may be several.
    pub fn multicast(&self) -> Option<Multicast<S>> {
        match self.mask {
            Some(BulkMask::Blocks(mask)) => Some(Multicast::Mask(mask)),
            Some(BulkMask::Bytes(_)) | None => None,
        }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let (extent, multicast) = (Extent::Slot(self.size), self.multicast());
        let (kind, semantics) = match self.reduction {
            // Each reduction is `.relaxed.gpu` (9.7.9.25.5).
            Some(_) => (AccessKind::CopyReduce, Semantics::new(Order::Relaxed, Scope::Gpu)),
            None => (AccessKind::CopyWrite, Semantics::WEAK),
        };
        let written = Access { multicast, ..Access::new(kind, &self.dst, extent, semantics) };
        let read = Access::new(AccessKind::CopyRead, &self.src, extent, Semantics::WEAK);
        let mut all = smallvec![read, written];
        all.extend(self.mbarrier.as_ref().map(|address| Access { multicast, ..completion(address) }));
        all
    }
}

/// What a copy of a tensor's box does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// From global to shared memory.
    Load,
    /// From shared to global memory.
    Store,
    /// From shared to global memory; each element is combined with the one in memory.
    Reduce(AtomicOp),
    /// Nothing is copied, but the map and the coordinates must fit.
    Prefetch,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and `cp.async.bulk.prefetch.tensor`. `picks` define the
/// operation.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorOp<S = Slot, A = Address> {
    pub kind: TensorKind,
    pub picks: Picks,
    pub map: A,
    /// Address of the box in shared memory; of a prefetch, which has none, that of the map.
    pub shared: A,
    /// Coordinates of the first element, innermost dimension first.
    pub coordinates: SmallVec<[S; 4]>,
    /// Offsets added to the inner coordinates of each pixel (`.im2col`).
    pub offsets: SmallVec<[S; 4]>,
    /// The mbarrier object on which a load completes its bytes.
    pub mbarrier: Option<A>,
    /// `.multicast::cluster`: the CTAs that receive a load, a bit for each rank.
    pub blocks: Option<S>,
}

impl<S: Copy, A: Copy> TensorOp<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> TensorOp<M::Slot, M::Address> {
        TensorOp {
            kind: self.kind,
            picks: self.picks,
            map: to.address(self.map),
            shared: to.address(self.shared),
            coordinates: self.coordinates.iter().map(|&slot| to.control(slot)).collect(),
            offsets: self.offsets.iter().map(|&slot| to.control(slot)).collect(),
            mbarrier: self.mbarrier.map(|address| to.address(address)),
            blocks: self.blocks.map(|blocks| to.control(blocks)),
        }
    }

    /// Whether the mbarrier object may be in the other CTA of a pair (`.cta_group::2`).
    pub fn is_pair(&self) -> bool {
        self.picks.has(isa::Mod::CtaGroup2)
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let weak = Semantics::WEAK;
        let multicast = self.blocks.map(Multicast::Mask);
        let access = |kind, start, semantics| Access {
            kind,
            start,
            extent: Extent::Lines,
            semantics,
            multicast: if matches!(start, Start::Box(_)) { multicast } else { None },
        };
        let map = Access::new(AccessKind::Load, &self.map, Extent::Bytes(TENSOR_MAP_BYTES), weak);
        let (tensor, shared) = (Start::Tensor, Start::Box(self.shared));
        let (read, written) = match self.kind {
            TensorKind::Load => (tensor, access(AccessKind::CopyWrite, shared, weak)),
            TensorKind::Store => (shared, access(AccessKind::CopyWrite, tensor, weak)),
            // Like those of `cp.reduce.async.bulk`.
            TensorKind::Reduce(_) => {
                let relaxed = Semantics::new(Order::Relaxed, Scope::Gpu);
                (shared, access(AccessKind::CopyReduce, tensor, relaxed))
            }
            TensorKind::Prefetch => return smallvec![map],
        };
        let mut all = smallvec![map, access(AccessKind::CopyRead, read, weak), written];
        all.extend(self.mbarrier.as_ref().map(|address| Access { multicast, ..completion(address) }));
        all
    }
}

/// `tensormap.replace`: changes the field given by `picks` and `ordinal`.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMapReplace<S = Slot, A = Address> {
    pub address: A,
    pub picks: Picks,
    pub ordinal: u64,
    pub value: S,
}

impl<S: Copy, A: Copy> TensorMapReplace<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> TensorMapReplace<M::Slot, M::Address> {
        let TensorMapReplace { picks, ordinal, .. } = *self;
        TensorMapReplace { address: to.address(self.address), picks, ordinal, value: to.control(self.value) }
    }

    /// The field is changed in place; no register receives the old contents of the map.
    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let extent = Extent::Bytes(TENSOR_MAP_BYTES);
        smallvec![Access::new(AccessKind::CopyWrite, &self.address, extent, Semantics::WEAK)]
    }
}

/// `tensormap.cp_fenceproxy`: each warp copies a tensor map, once.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMapCopy<A = Address> {
    pub dst: A,
    pub src: A,
}

impl<A: Copy> TensorMapCopy<A> {
    pub(super) fn map<S, M: MapOperands<S, A>>(&self, to: &mut M) -> TensorMapCopy<M::Address> {
        TensorMapCopy { src: to.address(self.src), dst: to.address(self.dst) }
    }

    /// One copy for the whole warp.
    pub(super) fn accesses<S: Copy>(&self) -> Accesses<S, A> {
        let line_bits = TENSOR_MAP_BYTES * 8;
        let whole = Extent::Matrix { lines: 1, line_bits, element_bits: 8, stride: None };
        smallvec![
            Access::new(AccessKind::CopyRead, &self.src, whole, Semantics::WEAK),
            Access::new(AccessKind::CopyWrite, &self.dst, whole, Semantics::WEAK),
        ]
    }
}

/// `clusterlaunchcontrol.try_cancel`: asks for the work of a cluster that has not started. Every request is refused,
/// because all clusters count as started. A 16-byte response that says so is written to `dst` and completed on the
/// mbarrier object.
#[derive(Clone, Debug, PartialEq)]
pub struct TryCancel<A = Address> {
    pub dst: A,
    pub mbarrier: A,
    /// In every CTA of the cluster.
    pub all: bool,
}

impl<A: Copy> TryCancel<A> {
    pub(super) fn map<S, M: MapOperands<S, A>>(&self, to: &mut M) -> TryCancel<M::Address> {
        TryCancel { dst: to.address(self.dst), mbarrier: to.address(self.mbarrier), all: self.all }
    }

    pub(super) fn accesses<S: Copy>(&self) -> Accesses<S, A> {
        let multicast = self.all.then_some(Multicast::All);
        let extent = Extent::Bytes(RESPONSE_BYTES);
        let response = Access::new(AccessKind::CopyWrite, &self.dst, extent, Semantics::WEAK);
        smallvec![Access { multicast, ..response }, Access { multicast, ..completion(&self.mbarrier) }]
    }
}

/// `st.bulk`: writes zeros to the CTA's shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreBulk<S = Slot, A = Address> {
    pub address: A,
    /// Bytes: a 32- or 64-bit number, a multiple of 8.
    pub size: S,
}

impl<S: Copy, A: Copy> StoreBulk<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> StoreBulk<M::Slot, M::Address> {
        StoreBulk { address: to.address(self.address), size: to.control(self.size) }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let extent = Extent::Slot(self.size);
        smallvec![Access::new(AccessKind::CopyWrite, &self.address, extent, Semantics::WEAK)]
    }
}

/// `st.async`, `red.async`: stores elements, or combines one with the value in memory. The bytes then complete on the
/// mbarrier object.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreAsync<S = Slot, A = Address> {
    pub address: A,
    pub src: SmallVec<[S; 4]>,
    /// Bytes of each.
    pub bytes: u32,
    /// How the element is combined with memory; `None`: it replaces it.
    pub reduction: Option<Reduction>,
    pub mbarrier: A,
}

impl<S: Copy, A: Copy> StoreAsync<S, A> {
    pub(super) fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> StoreAsync<M::Slot, M::Address> {
        StoreAsync {
            address: to.address(self.address),
            src: self.src.iter().map(|&slot| to.source(slot)).collect(),
            mbarrier: to.address(self.mbarrier),
            bytes: self.bytes,
            reduction: self.reduction,
        }
    }

    pub(super) fn accesses(&self) -> Accesses<S, A> {
        let (kind, semantics) = match self.reduction {
            // 9.7.13.8 red.async
            Some(_) => (AccessKind::CopyReduce, Semantics::new(Order::Relaxed, Scope::Cluster)),
            None => (AccessKind::CopyWrite, Semantics::WEAK),
        };
        let extent = Extent::Bytes(self.bytes * self.src.len() as u32);
        smallvec![Access::new(kind, &self.address, extent, semantics), completion(&self.mbarrier)]
    }
}

impl Lowering<'_> {
    pub(crate) fn copy_async(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let [dst, src, Operand::Imm(bytes), ..] = &i.operands[..] else { return };
        let size = self.named(i, "src-size").map(|operand| self.source(operand, Type::U32));
        let ignore = match self.named(i, "ignore-src") {
            Some(Operand::NotReg(register)) => Some(Guard { slot: self.register(*register), negated: true }),
            Some(operand) => Some(Guard { slot: self.source(operand, Type::Pred), negated: false }),
            None => None,
        };
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        self.push(guard, CopyAsync { dst, src, bytes: *bytes as u32, size, ignore });
    }

    pub(crate) fn copy_bulk(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, src, size, rest @ ..] = &i.operands[..] else { return };
        let size = self.source(size, Type::U32);
        // The mbarrier object is in the state space of the destination.
        let mbarrier = rest.iter().find(|operand| matches!(operand, Operand::Address(..)));
        let mbarrier = mbarrier.map(|operand| self.address(operand, i.picks.space_of(0)));
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        let mask = match i.picks.has(Mod::CpMask) {
            true => self.named(i, "mask").map(|mask| BulkMask::Bytes(self.source(mask, Type::U16))),
            false => self.blocks(i).map(BulkMask::Blocks),
        };
        let [left, right] = ["left", "right"].map(|name| self.named(i, name));
        let ends = left.zip(right).map(|(left, right)| [left, right].map(|end| self.source(end, Type::U32)));
        let addition = if dst.space == Space::Shared { Addition::Shared } else { Addition::Bulk };
        let reduction = atomic_op(i).map(|op| Reduction { op, ty: i.picks.ty(0), addition });
        let report = Validity::of(&i.picks);
        self.push(guard, CopyBulk { dst, src, size, mbarrier, mask, ends, report, reduction });
    }

    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`
    pub(crate) fn copy_tensor(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        self.block().may_spin = true;
        let tensor = i.operands.iter().find_map(|operand| match operand {
            Operand::Tensor(tensor) => Some(&**tensor),
            _ => None,
        });
        let (Some(tensor), kind) = (tensor, tensor_kind(i)) else { return };
        // For a load, the other addresses are in shared memory; the mbarrier object is in the destination's state
        // space.
        let space = i.picks.space_of(if kind == TensorKind::Load { 0 } else { 1 });
        let mut others = i.operands.iter().filter(|operand| matches!(operand, Operand::Address(..)));
        let shared = others.next().map(|operand| self.address(operand, space));
        let mbarrier = others.next().map(|operand| self.address(operand, space));
        let coordinates = tensor.coordinates.iter().map(|part| self.source(part, Type::B32)).collect();
        let offsets = match self.named(i, "offsets") {
            Some(Operand::Vector(parts)) => parts.iter().map(|part| self.source(part, Type::U16)).collect(),
            _ => SmallVec::new(),
        };
        let blocks = self.blocks(i);
        let map = self.address(&tensor.map, Space::Generic);
        let (picks, shared) = (i.picks, shared.unwrap_or(map));
        let op = TensorOp { kind, picks, map, shared, coordinates, offsets, mbarrier, blocks };
        self.push(guard, op);
    }

    /// `tensormap.replace`
    pub(crate) fn tensor_map_replace(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let (Some(address), Some(value)) = (i.operands.first(), i.operands.last()) else { return };
        let address = self.address(address, i.picks.space());
        let value = self.source(value, i.picks.ty(0));
        let ordinal = match self.named(i, "ordinal") {
            Some(Operand::Imm(ordinal)) => *ordinal,
            _ => 0,
        };
        self.push(guard, TensorMapReplace { address, picks: i.picks, ordinal, value });
    }

    /// `tensormap.cp_fenceproxy`
    pub(crate) fn tensor_map_copy(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, src, ..] = &i.operands[..] else { return };
        let dst = self.address(dst, i.picks.space_of(0));
        let src = self.address(src, i.picks.space_of(1));
        self.push(guard, TensorMapCopy { dst, src });
        self.push(None, SimpleOp::Fence { semantics: Semantics::of_fence(i.form.opcode, &i.picks) });
    }

    /// `clusterlaunchcontrol.try_cancel`
    pub(crate) fn try_cancel(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [dst, mbarrier] = &i.operands[..] else { return };
        let (dst, mbarrier) = (self.address(dst, i.picks.space()), self.address(mbarrier, i.picks.space()));
        let all = i.picks.has(Mod::MulticastClusterAll);
        self.push(guard, TryCancel { dst, mbarrier, all });
    }

    /// `st.bulk` writes zeros.
    pub(crate) fn store_bulk(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let [address, size, ..] = &i.operands[..] else { return };
        let size = self.source(size, i.form.operands[1].resolve(&i.picks).unwrap_or(Type::U64));
        let address = self.address(address, i.picks.space());
        self.push(guard, StoreBulk { address, size });
    }

    /// `st.async`, `red.async`
    pub(crate) fn store_async(&mut self, i: &Instruction) {
        self.block().may_spin = true;
        let guard = self.guard(i);
        let [address, src, mbarrier] = &i.operands[..] else { return };
        let (ty, space) = (i.picks.ty(0), i.picks.space());
        let (address, mbarrier) = (self.address(address, space), self.address(mbarrier, space));
        let parts = match src {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let src = parts.iter().map(|part| self.source(part, ty)).collect();
        let reduction = atomic_op(i).map(|op| Reduction { op, ty, addition: Addition::Shared });
        self.push(guard, StoreAsync { address, src, bytes: ty.bytes(), reduction, mbarrier });
    }
}

fn tensor_kind(i: &Instruction) -> TensorKind {
    match atomic_op(i) {
        Some(op) => TensorKind::Reduce(op),
        None if i.picks.has(Mod::BulkGroup) => TensorKind::Store,
        None if i.picks.has(Mod::Prefetch) => TensorKind::Prefetch,
        None => TensorKind::Load,
    }
}
