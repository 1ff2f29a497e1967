//! Operations that an engine executes as they are, once it has resolved their operands.

use isa::{Space, SpecialRegister};
use smallvec::SmallVec;

use crate::op::{AsyncStep, CopyGroup, OpKind, Slot, StackOp};
use crate::operands::MapOperands;
use crate::semantics::Semantics;

/// An operation without accesses to memory whose operands say everything: an engine adds nothing to it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields are the operands of the manual
pub enum SimpleOp<S = Slot> {
    /// `dst = src`, of the same width.
    Copy {
        dst: S,
        src: S,
    },
    /// `dst = !src`, both predicates.
    Not {
        dst: S,
        src: S,
    },
    /// `dst` = the low `bits` bits of `src`, sign- or zero-extended, truncated to `dst`'s width.
    Resize {
        dst: S,
        src: S,
        bits: u32,
        signed: bool,
    },
    /// `dst = src + addend`, wrapping.
    Offset {
        dst: S,
        src: S,
        addend: i64,
    },
    /// Concatenates narrow values of `bits` bits each into a wide one, the first in the lowest bits.
    Pack {
        dst: S,
        src: SmallVec<[S; 4]>,
        bits: u32,
    },
    /// The reverse of [`SimpleOp::Pack`].
    Unpack {
        dst: SmallVec<[Option<S>; 4]>,
        src: S,
        bits: u32,
    },
    /// `isspacep`; `own`: only the CTA's own shared memory counts, not that of other CTAs of its cluster.
    IsSpace {
        dst: S,
        src: S,
        space: Space,
        own: bool,
    },
    /// The generic address of the object that `src` names in `.shared::cluster`. `src` is a generic address, or a
    /// `.shared::cluster` address in a wider register.
    SharedObject {
        dst: S,
        src: S,
    },
    /// `mapa`: the address in the shared memory of the CTA with this rank that corresponds to `src`. `src` is a
    /// `.shared::cluster` address, or a generic one if `generic` is set.
    MapShared {
        dst: S,
        src: S,
        rank: S,
        generic: bool,
    },
    /// `getctarank`: the rank of the CTA whose shared memory contains the address.
    RankOf {
        dst: S,
        src: S,
        generic: bool,
    },
    /// A special register whose value changes while the kernel runs.
    ReadClock {
        dst: S,
        register: SpecialRegister,
    },
    /// `activemask`
    ActiveMask {
        dst: S,
    },
    /// `alloca`, `stacksave` and `stackrestore`: `value` is the number of bytes, or the new end of the stack.
    Stack {
        op: StackOp,
        dst: Option<S>,
        value: Option<S>,
    },
    /// `nanosleep`: lets other threads run and advances the cycle clock. The duration is a 32-bit number of nanoseconds.
    Sleep {
        duration: S,
    },
    /// `fence` and `membar`: orders the thread's accesses.
    Fence {
        semantics: Semantics,
    },
    CopyGroup(CopyGroup),
    AsyncStep(AsyncStep),
}

impl<S> SimpleOp<S> {
    /// Whether the operation only computes slot values and has no other effect.
    pub fn computes(&self) -> bool {
        !matches!(self, SimpleOp::ReadClock { .. } | SimpleOp::ActiveMask { .. } | SimpleOp::Sleep { .. })
            && !self.orders_memory()
    }

    /// Whether the operation orders the accesses around it.
    pub(crate) fn orders_memory(&self) -> bool {
        matches!(
            self,
            SimpleOp::Fence { .. } | SimpleOp::CopyGroup(_) | SimpleOp::AsyncStep(_) | SimpleOp::Stack { .. }
        )
    }
}

impl<S: Copy> SimpleOp<S> {
    /// The operation with other operands.
    pub fn map<A, M: MapOperands<S, A>>(&self, to: &mut M) -> SimpleOp<M::Slot> {
        match *self {
            SimpleOp::Copy { dst, src } => SimpleOp::Copy { src: to.source(src), dst: to.result(dst) },
            SimpleOp::Not { dst, src } => SimpleOp::Not { src: to.source(src), dst: to.result(dst) },
            SimpleOp::Resize { dst, src, bits, signed } => {
                SimpleOp::Resize { src: to.source(src), dst: to.result(dst), bits, signed }
            }
            SimpleOp::Offset { dst, src, addend } => {
                SimpleOp::Offset { src: to.source(src), dst: to.result(dst), addend }
            }
            SimpleOp::Pack { dst, ref src, bits } => {
                let src = src.iter().map(|&slot| to.source(slot)).collect();
                SimpleOp::Pack { src, dst: to.result(dst), bits }
            }
            SimpleOp::Unpack { ref dst, src, bits } => {
                let src = to.source(src);
                SimpleOp::Unpack { src, dst: dst.iter().map(|&slot| to.maybe_result(slot)).collect(), bits }
            }
            SimpleOp::IsSpace { dst, src, space, own } => {
                SimpleOp::IsSpace { src: to.source(src), dst: to.result(dst), space, own }
            }
            SimpleOp::SharedObject { dst, src } => {
                SimpleOp::SharedObject { src: to.source(src), dst: to.result(dst) }
            }
            SimpleOp::MapShared { dst, src, rank, generic } => {
                let (src, rank) = (to.source(src), to.source(rank));
                SimpleOp::MapShared { src, rank, dst: to.result(dst), generic }
            }
            SimpleOp::RankOf { dst, src, generic } => {
                SimpleOp::RankOf { src: to.source(src), dst: to.result(dst), generic }
            }
            SimpleOp::ReadClock { dst, register } => SimpleOp::ReadClock { dst: to.result(dst), register },
            SimpleOp::ActiveMask { dst } => SimpleOp::ActiveMask { dst: to.result(dst) },
            SimpleOp::Stack { op, dst, value } => {
                let value = value.map(|value| to.control(value));
                SimpleOp::Stack { op, value, dst: to.maybe_result(dst) }
            }
            SimpleOp::Sleep { duration } => SimpleOp::Sleep { duration: to.control(duration) },
            SimpleOp::Fence { semantics } => SimpleOp::Fence { semantics },
            SimpleOp::CopyGroup(group) => SimpleOp::CopyGroup(group),
            SimpleOp::AsyncStep(step) => SimpleOp::AsyncStep(step),
        }
    }
}

impl From<SimpleOp> for OpKind {
    fn from(op: SimpleOp) -> OpKind {
        OpKind::Simple(op)
    }
}
