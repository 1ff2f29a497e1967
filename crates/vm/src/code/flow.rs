//! How values pass through an operation, for observers.

use ir::{MapOperands, SimpleOp};
use machine::OperationKind;
use smallvec::SmallVec;

use super::{
    Address, Base, Fragment, Kind, MatrixOp, MatrixSource, MemoryOp, Op, Pure, Store, TensorFactor,
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
        Kind::Simple(op) => {
            let operands = Operands::of(|to| drop(op.map(to)));
            let kind = match *op {
                SimpleOp::Copy { .. } => Copy { bits: 64 },
                SimpleOp::Resize { bits, signed: false, .. } => Copy { bits },
                SimpleOp::Pack { bits, .. } => OperationKind::Pack { bits },
                SimpleOp::Unpack { bits, .. } => Unpack { bits },
                _ if operands.uses.is_empty() => Defined,
                _ => Compute,
            };
            if !operands.defs.is_empty() {
                add(kind, &operands.uses, &operands.defs, operands.decides, None);
            }
        }
        Kind::Param { dst, .. } | Kind::AddressOf { dst, .. } => {
            add(Defined, &[], &[Some(*dst)], none(), None)
        }
        Kind::Load(load) | Kind::LoadStrong(load) => {
            add(Load { bytes: load.bytes }, &[], &load.dst, base(&load.address), None);
        }
        Kind::Store(what) | Kind::StoreStrong(what) => store(what, &mut add),
        // It has no effect on values.
        Kind::Memory(op) if matches!(**op, MemoryOp::CheckAlignment(_)) => {}
        Kind::Memory(op) => {
            let Operands { uses, defs, decides } = Operands::of(|to| drop(op.map(to)));
            let kind = match (&uses[..], &defs[..]) {
                (_, []) => OperationKind::CopyMemory,
                ([], _) => Defined,
                _ => OperationKind::Atomic,
            };
            add(kind, &uses, &defs, decides, None);
        }
        // Observers see the operations of a section one by one.
        Kind::Straight(_) | Kind::Unsupported { .. } => {}
        Kind::TensorMemory(op) => tensor_memory(op, &mut add),
        Kind::Texel(texel) => {
            let mut decides: Slots = texel.src.iter().copied().collect();
            decides.push(texel.handle);
            decides.extend(texel.sampler);
            add(Defined, &[], &texel.dst, decides, None);
        }
        Kind::Warp { op: warp, members, .. } => {
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
                WarpOp::TensorMemory(Ok(op)) => tensor_memory(op, &mut add),
                WarpOp::Sync | WarpOp::Matrix(Err(_)) | WarpOp::TensorMemory(Err(_)) => {}
                WarpOp::Matrix(Ok(matrix)) => {
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

/// The slots that an operation touches, by what it does with them.
#[derive(Default)]
struct Operands {
    uses: Slots,
    defs: SmallVec<[Option<SlotRef>; 4]>,
    decides: Slots,
}

impl Operands {
    /// Those that `map` passes.
    fn of(map: impl FnOnce(&mut Operands)) -> Operands {
        let mut operands = Operands::default();
        map(&mut operands);
        operands
    }
}

impl MapOperands<SlotRef, Address> for Operands {
    type Slot = ();
    type Address = ();

    fn source(&mut self, slot: SlotRef) {
        self.uses.push(slot);
    }

    fn control(&mut self, slot: SlotRef) {
        self.decides.push(slot);
    }

    fn result(&mut self, slot: SlotRef) {
        self.defs.push(Some(slot));
    }

    fn maybe_result(&mut self, slot: Option<SlotRef>) -> Option<()> {
        self.defs.push(slot);
        None
    }

    fn address(&mut self, address: Address) {
        self.decides.extend(base(&address));
    }
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
