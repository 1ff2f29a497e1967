//! Operations on tensor memory, with resolved operands.

use ir::{TensorMemoryKind, TensorMemoryOp};
use isa::{Mod, Picks};
use lanes::MatrixHelpers;
use sem::tensor_memory::{Copy, Fragment};
use smallvec::SmallVec;

use super::Address;
use crate::registers::SlotRef;

/// An operation on tensor memory: [`ir::TensorMemoryOp`]. `at` is an address in tensor memory.
pub(crate) enum TensorMemory {
    Allocate {
        address: Address,
        columns: SlotRef,
        done: SlotRef,
    },
    Release {
        at: SlotRef,
        columns: SlotRef,
    },
    Relinquish,
    Load {
        at: SlotRef,
        fragment: Fragment,
        /// The registers of the fragment, followed by the result of `.red`.
        registers: Vec<Option<SlotRef>>,
        /// `.red`
        reduction: Option<Picks>,
    },
    Store {
        at: SlotRef,
        fragment: Fragment,
        registers: Vec<SlotRef>,
    },
    Multiply(Box<TensorMultiply>),
    Copy {
        at: SlotRef,
        descriptor: SlotRef,
        copy: Copy,
    },
    Shift {
        at: SlotRef,
        pair: bool,
    },
}

/// `tcgen05.mma`
pub(crate) struct TensorMultiply {
    pub picks: Picks,
    pub d: SlotRef,
    pub a: TensorFactor,
    pub b: SlotRef,
    /// The instruction descriptor.
    pub instruction: SlotRef,
    /// The address of the metadata of a sparse A.
    pub metadata: Option<SlotRef>,
    /// The addresses of the scales of A and B.
    pub scales: Option<[SlotRef; 2]>,
    /// Words of a mask of lanes whose elements of D stay unchanged.
    pub disabled: SmallVec<[SlotRef; 8]>,
    /// Whether the product is added to D.
    pub accumulate: SlotRef,
    /// D is first multiplied by 2 to the power of minus this.
    pub input_scale: Option<SlotRef>,
    /// `.ws`: the columns of B that count as zero.
    pub zero_mask: Option<SlotRef>,
    pub helpers: &'static MatrixHelpers,
}

/// The location of A.
pub(crate) enum TensorFactor {
    /// In shared memory, behind a matrix descriptor.
    Shared(SlotRef),
    /// In tensor memory.
    Tensor(SlotRef),
}

impl TensorMemory {
    /// `None` for an operation that no engine executes. `slot` maps slots, and `literal` returns the value of a slot
    /// that holds a literal.
    pub fn new(
        op: &TensorMemoryOp,
        address: Option<Address>,
        helpers: &'static MatrixHelpers,
        slot: impl Fn(ir::Slot) -> SlotRef,
        literal: impl Fn(ir::Slot) -> Option<u64>,
    ) -> Option<TensorMemory> {
        let first = |name: &str| op.operand(name).and_then(|slots| slots.first().copied());
        let named = |name: &str| first(name).map(&slot);
        let fragment = |registers: usize| {
            let split = first("split").and_then(&literal).unwrap_or(0);
            Fragment::of(&op.picks, registers, split)
        };
        Some(match op.kind {
            TensorMemoryKind::Allocate => TensorMemory::Allocate {
                address: address?,
                columns: named("columns")?,
                done: slot(*op.dst.first()?.as_ref()?),
            },
            TensorMemoryKind::Release => {
                TensorMemory::Release { at: named("taddr")?, columns: named("columns")? }
            }
            TensorMemoryKind::Relinquish => TensorMemory::Relinquish,
            TensorMemoryKind::Load => {
                let reduction = op.picks.has(Mod::Red).then_some(op.picks);
                TensorMemory::Load {
                    at: named("taddr")?,
                    fragment: fragment(op.dst.len() - usize::from(reduction.is_some())),
                    registers: op.dst.iter().map(|dst| dst.map(&slot)).collect(),
                    reduction,
                }
            }
            TensorMemoryKind::Store => {
                let registers: Vec<SlotRef> = op.operand("b")?.iter().map(|&b| slot(b)).collect();
                TensorMemory::Store { at: named("taddr")?, fragment: fragment(registers.len()), registers }
            }
            TensorMemoryKind::Multiply => TensorMemory::Multiply(Box::new(TensorMultiply {
                picks: op.picks,
                d: named("d-tmem")?,
                a: match named("a-desc") {
                    Some(descriptor) => TensorFactor::Shared(descriptor),
                    None => TensorFactor::Tensor(named("a")?),
                },
                b: named("b-desc")?,
                instruction: named("idesc")?,
                metadata: named("sparse-meta"),
                scales: match (named("scale-a"), named("scale-b")) {
                    (Some(a), Some(b)) => Some([a, b]),
                    _ => None,
                },
                disabled: op.operand("lanes").unwrap_or_default().iter().map(|&lane| slot(lane)).collect(),
                accumulate: named("enable-input-d")?,
                input_scale: named("scale-input-d"),
                zero_mask: named("zero-column-mask"),
                helpers,
            })),
            TensorMemoryKind::Copy => TensorMemory::Copy {
                at: named("taddr")?,
                descriptor: named("desc")?,
                copy: Copy::of(&op.picks),
            },
            TensorMemoryKind::Shift => {
                TensorMemory::Shift { at: named("taddr")?, pair: op.picks.has(isa::Mod::CtaGroup2) }
            }
        })
    }
}
