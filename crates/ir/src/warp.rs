//! Operations of the lanes of a warp together.

use isa::Type;

use crate::op::{MatrixOp, ReduxOp, ShuffleMode, Slot, VoteMode};
use crate::operands::MapOperands;
use crate::tensor_memory::TensorMemoryOp;

/// A warp-level operation, with matrices and tensor memory described by `M` and `T`. It executes once the lanes of its
/// member mask have converged.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields are the operands of the manual
pub enum WarpOp<S = Slot, M = Box<MatrixOp>, T = Box<TensorMemoryOp>> {
    Shuffle {
        mode: ShuffleMode,
        dst: Option<S>,
        pred: Option<S>,
        a: S,
        b: S,
        c: S,
    },
    Vote {
        mode: VoteMode,
        dst: Option<S>,
        a: S,
        negated: bool,
    },
    /// `match.any` / `match.all`
    Match {
        all: bool,
        dst: Option<S>,
        pred: Option<S>,
        a: S,
    },
    Redux {
        op: ReduxOp,
        ty: Type,
        dst: Option<S>,
        a: S,
        nan: bool,
        abs: bool,
    },
    Elect {
        dst: Option<S>,
        pred: Option<S>,
    },
    /// `bar.warp.sync`
    Sync,
    Matrix(M),
    TensorMemory(T),
}

impl<S: Copy, M, T> WarpOp<S, M, T> {
    /// The operation with other operands.
    pub fn map<A, O: MapOperands<S, A>, N, U>(
        &self,
        to: &mut O,
        matrix: impl FnOnce(&M) -> N,
        tensor_memory: impl FnOnce(&T) -> U,
    ) -> WarpOp<O::Slot, N, U> {
        match *self {
            WarpOp::Shuffle { mode, dst, pred, a, b, c } => {
                let (a, b, c) = (to.source(a), to.control(b), to.control(c));
                WarpOp::Shuffle { mode, a, b, c, dst: to.maybe_result(dst), pred: to.maybe_result(pred) }
            }
            WarpOp::Vote { mode, dst, a, negated } => {
                WarpOp::Vote { mode, a: to.source(a), dst: to.maybe_result(dst), negated }
            }
            WarpOp::Match { all, dst, pred, a } => {
                let a = to.source(a);
                WarpOp::Match { all, a, dst: to.maybe_result(dst), pred: to.maybe_result(pred) }
            }
            WarpOp::Redux { op, ty, dst, a, nan, abs } => {
                WarpOp::Redux { op, ty, a: to.source(a), dst: to.maybe_result(dst), nan, abs }
            }
            WarpOp::Elect { dst, pred } => {
                WarpOp::Elect { dst: to.maybe_result(dst), pred: to.maybe_result(pred) }
            }
            WarpOp::Sync => WarpOp::Sync,
            WarpOp::Matrix(ref op) => WarpOp::Matrix(matrix(op)),
            WarpOp::TensorMemory(ref op) => WarpOp::TensorMemory(tensor_memory(op)),
        }
    }
}
