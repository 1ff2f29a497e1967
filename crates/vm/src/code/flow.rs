//! How values pass through an operation, for observers.

use machine::OperationKind;
use smallvec::SmallVec;

use super::{
    Address, Base, BulkMask, Fragment, Kind, MatrixOp, MatrixSource, Op, Pure, Store, TensorFactor,
    TensorMemory, WarpOp,
};
use crate::registers::SlotRef;

type Slots = SmallVec<[SlotRef; 6]>;

/// One step of an operation: it reads some slots and defines others.
pub(crate) struct Flow<'c> {
    pub kind: OperationKind,
    /// The slots that the results depend on, or that are stored.
    pub uses: Slots,
    /// The slots that are written. `None` for unused results.
    pub defs: SmallVec<[Option<SlotRef>; 4]>,
    /// The slots that decide where something happens, without the guard.
    pub decides: Slots,
    /// The pure operation that computes the results, if there is one.
    pub pure: Option<&'c Pure>,
    /// The vote or reduction of the step, with its member mask.
    pub warp: Option<(&'c WarpOp, Option<SlotRef>)>,
    /// The uses after the first `optional.1` are read only if the slot `optional.0` is true.
    pub optional: Option<(SlotRef, usize)>,
}

/// The steps of an operation.
pub(crate) fn flows(op: &Op) -> SmallVec<[Flow<'_>; 2]> {
    let mut all: SmallVec<[Flow<'_>; 2]> = SmallVec::new();
    let mut add = |kind, uses: &[SlotRef], defs: &[Option<SlotRef>], decides: Slots, pure| {
        let (uses, defs) = (uses.iter().copied().collect(), defs.iter().copied().collect());
        all.push(Flow { kind, uses, defs, decides, pure, warp: None, optional: None });
    };
    let none = Slots::new;
    use OperationKind::{Collective, Compute, Copy, Defined, Load, Shuffle, Unpack};
    match &op.kind {
        Kind::Pure(pure) => add(Compute, pure.src(), &pure.dst, none(), Some(&**pure)),
        Kind::Link(link) => add(Compute, link.pure.src(), &link.pure.dst, none(), None),
        Kind::PureStore(both) => {
            add(Compute, both.pure.src(), &both.pure.dst, none(), Some(&both.pure));
            store(&both.store, &mut add);
        }
        Kind::Copy { dst, src } => add(Copy { bits: 64 }, &[*src], &[Some(*dst)], none(), None),
        Kind::Resize { dst, src, bits, signed: false } => {
            add(Copy { bits: *bits }, &[*src], &[Some(*dst)], none(), None);
        }
        Kind::Not { dst, src }
        | Kind::Resize { dst, src, .. }
        | Kind::Offset { dst, src, .. }
        | Kind::IsSpace { dst, src, .. }
        | Kind::RankOf { dst, src, .. }
        | Kind::SharedObject { dst, src } => {
            add(Compute, &[*src], &[Some(*dst)], none(), None);
        }
        Kind::MapShared { dst, src, rank, .. } => add(Compute, &[*src, *rank], &[Some(*dst)], none(), None),
        Kind::Param { dst, .. }
        | Kind::AddressOf { dst, .. }
        | Kind::ReadClock { dst, .. }
        | Kind::ActiveMask { dst } => add(Defined, &[], &[Some(*dst)], none(), None),
        Kind::Pack { dst, src, bits } => {
            add(OperationKind::Pack { bits: *bits }, src, &[Some(*dst)], none(), None);
        }
        Kind::Unpack { dst, src, bits } => add(Unpack { bits: *bits }, &[*src], dst, none(), None),
        Kind::Load(load) | Kind::LoadStrong(load) => {
            add(Load { bytes: load.bytes }, &[], &load.dst, base(&load.address), None);
        }
        Kind::Store(what) | Kind::StoreStrong(what) => store(what, &mut add),
        Kind::Atomic(atomic) => {
            let uses: Slots = [Some(atomic.a), atomic.b].into_iter().flatten().collect();
            add(OperationKind::Atomic, &uses, &[atomic.dst], base(&atomic.address), None);
        }
        Kind::AtomicWide(atomic) => {
            let uses: Slots = atomic.compare.into_iter().flatten().chain(atomic.new).collect();
            add(OperationKind::Atomic, &uses, &atomic.dst, base(&atomic.address), None);
        }
        Kind::Stack { dst, value, .. } => {
            add(Defined, &[], &[*dst], value.iter().copied().collect(), None);
        }
        Kind::Sleep { .. }
        | Kind::Fence(_)
        | Kind::CopyGroup(_)
        | Kind::AsyncStep(_)
        | Kind::Unsupported { .. } => {}
        Kind::CopyAsync(copy) => {
            let mut decides = base(&copy.dst);
            decides.extend(base(&copy.src));
            decides.extend(copy.size);
            add(OperationKind::CopyMemory, &[], &[], decides, None);
        }
        Kind::CopyBulk(copy) => {
            let mut decides = base(&copy.dst);
            decides.extend(base(&copy.src));
            decides.push(copy.size);
            if let Some(BulkMask::Bytes(mask) | BulkMask::Blocks(mask)) = copy.mask {
                decides.push(mask);
            }
            decides.extend(copy.ends.into_iter().flatten());
            add(OperationKind::CopyMemory, &[], &[], decides, None);
        }
        Kind::CopyTensor(copy) => {
            let mut decides = base(&copy.shared);
            decides.extend(base(&copy.map));
            decides.extend(copy.coordinates.iter().chain(&copy.offsets).copied());
            decides.extend(copy.blocks);
            add(OperationKind::CopyMemory, &[], &[], decides, None);
        }
        Kind::TensorMemory(op) => tensor_memory(op, &mut add),
        Kind::TensorMapReplace(replace) => {
            let mut decides = base(&replace.address);
            decides.push(replace.value);
            add(Defined, &[], &[], decides, None);
        }
        Kind::TensorMapCopy(places) => {
            let decides = places.iter().flat_map(base).collect();
            add(OperationKind::CopyMemory, &[], &[], decides, None);
        }
        Kind::StoreBulk(store) => {
            let mut decides = base(&store.address);
            decides.push(store.size);
            add(OperationKind::CopyMemory, &[], &[], decides, None);
        }
        Kind::StoreAsync(store) => {
            let mut decides = base(&store.address);
            decides.extend(base(&store.mbarrier));
            add(OperationKind::CopyMemory, &store.src, &[], decides, None);
        }
        Kind::TryCancel(request) => add(Defined, &[], &[], base(&request.dst), None),
        Kind::Mbarrier(mbarrier) => {
            let mut decides = mbarrier.address.as_ref().map_or(none(), base);
            decides.extend(mbarrier.value.into_iter().chain(mbarrier.blocks));
            add(Defined, &[], &[mbarrier.dst, mbarrier.report], decides, None);
        }
        Kind::Texel(texel) => {
            let mut decides: Slots = texel.src.iter().copied().collect();
            decides.push(texel.handle);
            decides.extend(texel.sampler);
            add(Defined, &[], &texel.dst, decides, None);
        }
        Kind::Warp { op: warp, members } => {
            let mask = *members;
            let members = || mask.iter().copied().collect::<Slots>();
            match &**warp {
                WarpOp::Shuffle { dst, pred, a, b, c, .. } => {
                    let mut decides = members();
                    decides.extend([*b, *c]);
                    add(Shuffle, &[*a], &[*dst], decides, None);
                    add(Defined, &[], &[*pred], none(), None);
                }
                WarpOp::Vote { dst, a, .. } | WarpOp::Redux { dst, a, .. } => {
                    add(Collective, &[*a], &[*dst], members(), None);
                    all[0].warp = Some((&**warp, mask));
                }
                WarpOp::Match { dst, pred, a, .. } => add(Collective, &[*a], &[*dst, *pred], members(), None),
                WarpOp::Elect { dst, pred } => add(Defined, &[], &[*dst, *pred], members(), None),
                WarpOp::TensorMemory(op) => tensor_memory(op, &mut add),
                WarpOp::Sync | WarpOp::Unsupported { .. } => {}
                WarpOp::Matrix(matrix) => {
                    self::matrix(matrix, &mut add);
                    if let (MatrixOp::Multiply(multiply), [flow, ..]) = (matrix, &mut all[..])
                        && let (Some(slot), MatrixSource::Registers(c)) =
                            (multiply.accumulate, &multiply.c.source)
                    {
                        let others = flow.uses.len() - c.registers.iter().flatten().count();
                        flow.optional = Some((slot, others));
                    }
                }
            }
        }
    }
    all
}

/// The slot of an address.
pub(crate) fn base(address: &Address) -> Slots {
    match address.base {
        Base::Slot(slot) => [slot].into_iter().collect(),
        Base::Zero | Base::Shared | Base::Frame | Base::FrameParam(_) | Base::FrameReturn(_) => Slots::new(),
    }
}

fn store<'c>(
    store: &Store,
    add: &mut impl FnMut(OperationKind, &[SlotRef], &[Option<SlotRef>], Slots, Option<&'c Pure>),
) {
    add(OperationKind::Store { bytes: store.bytes }, &store.src, &[], base(&store.address), None);
}

/// Values from tensor memory count as defined here, since observers get separate events for its cells.
fn tensor_memory<'c>(
    op: &TensorMemory,
    add: &mut impl FnMut(OperationKind, &[SlotRef], &[Option<SlotRef>], Slots, Option<&'c Pure>),
) {
    let slots = |slots: &[SlotRef]| slots.iter().copied().collect::<Slots>();
    let kind = OperationKind::Defined;
    match op {
        TensorMemory::Allocate { address, columns, done } => {
            let mut decides = base(address);
            decides.push(*columns);
            add(kind, &[], &[Some(*done)], decides, None);
        }
        TensorMemory::Release { at, columns } => add(kind, &[], &[], slots(&[*at, *columns]), None),
        TensorMemory::Relinquish => {}
        TensorMemory::Load { at, registers, .. } => add(kind, &[], registers, slots(&[*at]), None),
        TensorMemory::Store { at, registers, .. } => {
            let mut decides = slots(registers);
            decides.push(*at);
            add(kind, &[], &[], decides, None);
        }
        TensorMemory::Multiply(multiply) => {
            let a = match multiply.a {
                TensorFactor::Shared(slot) | TensorFactor::Tensor(slot) => slot,
            };
            let mut decides = slots(&[multiply.d, a, multiply.b, multiply.instruction, multiply.accumulate]);
            decides.extend(multiply.metadata.into_iter().chain(multiply.scales.into_iter().flatten()));
            decides.extend(multiply.disabled.iter().copied().chain(multiply.zero_mask));
            add(kind, &[], &[], decides, None);
        }
        TensorMemory::Copy { at, descriptor, .. } => add(kind, &[], &[], slots(&[*at, *descriptor]), None),
        TensorMemory::Shift { at, .. } => add(kind, &[], &[], slots(&[*at]), None),
    }
}

fn matrix<'c>(
    op: &MatrixOp,
    add: &mut impl FnMut(OperationKind, &[SlotRef], &[Option<SlotRef>], Slots, Option<&'c Pure>),
) {
    let of = |fragment: &Fragment| fragment.registers.iter().copied().flatten().collect::<Slots>();
    let kind = OperationKind::Collective;
    match op {
        MatrixOp::Multiply(multiply) => {
            let mut uses = Slots::new();
            for factor in [&multiply.a, &multiply.b, &multiply.c] {
                if let MatrixSource::Registers(fragment) = &factor.source {
                    uses.extend(of(fragment));
                }
            }
            add(kind, &uses, &multiply.d.registers, Slots::new(), None);
        }
        MatrixOp::LoadRows(rows) => {
            add(OperationKind::LoadMatrix, &[], &rows.registers, base(&rows.address), None);
        }
        MatrixOp::StoreRows(rows) => {
            let uses: Slots = rows.registers.iter().copied().flatten().collect();
            add(OperationKind::StoreMatrix, &uses, &[], base(&rows.address), None);
        }
        MatrixOp::Transpose { dst, src } => add(kind, &[*src], &[*dst], Slots::new(), None),
        MatrixOp::Load(strided) => {
            let decides = base(&strided.address);
            add(OperationKind::LoadMatrix, &[], &strided.fragment.registers, decides, None);
        }
        MatrixOp::Store(strided) => {
            add(OperationKind::StoreMatrix, &of(&strided.fragment), &[], base(&strided.address), None);
        }
    }
}
