//! What an operation touches: its slots, and memory.

use isa::matrix::{Matrix, Shape};
use isa::{Elements, Mod, OperandKind};
use smallvec::{SmallVec, smallvec};

use crate::function::Terminator;
use crate::memory::{Access, AccessKind, Accesses, Extent, Start};
use crate::op::{Address, Base, BlockId, Guard, MatrixKind, MatrixOp, Op, OpKind, Slot, TexelKind};
use crate::operands::Rename;
use crate::semantics::{Order, Scope, Semantics};
use crate::tensor_memory::TensorMemoryOp;
use crate::warp::WarpOp;

/// How an operation touches a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Use,
    /// Writes it (in the executing lanes).
    Def,
}

/// Receives every slot and may rename it.
pub(crate) type Visitor<'a> = &'a mut dyn FnMut(&mut Slot, Touch);

pub(crate) fn visit_address(address: &mut Address, f: Visitor) {
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
    op.address.iter_mut().for_each(|a| visit_address(a, f));
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
            OpKind::Simple(op) => *op = op.map(&mut Rename(f)),
            OpKind::AddressOf { dst, base: b, .. } => {
                base(b, f);
                f(dst, Touch::Def);
            }
            OpKind::SelectPair { dst, pairs, preds } => {
                uses(pairs.iter_mut().chain(preds), f);
                f(dst, Touch::Def);
            }
            OpKind::Load(op) => *op = op.map(&mut Rename(f)),
            OpKind::Store(op) => *op = op.map(&mut Rename(f)),
            OpKind::Cvta { dst, src, .. } => {
                f(src, Touch::Use);
                f(dst, Touch::Def);
            }
            OpKind::Warp { op, members } => {
                uses(members, f);
                match op {
                    WarpOp::Matrix(op) => {
                        op.address.iter_mut().for_each(|a| visit_address(a, f));
                        uses(&mut op.src, f);
                        uses(&mut op.stride, f);
                        defs(&mut op.dst, f);
                    }
                    WarpOp::TensorMemory(op) => tensor_memory(op, f),
                    op => *op = op.map(&mut Rename(f), Clone::clone, Clone::clone),
                }
            }
            OpKind::Memory(op) => **op = op.map(&mut Rename(f)),
            OpKind::TensorMemory(op) => tensor_memory(op, f),
            OpKind::Texel(op) => {
                f(&mut op.handle, Touch::Use);
                uses(&mut op.sampler, f);
                uses(&mut op.src, f);
                defs(&mut op.dst, f);
            }
            OpKind::Unsupported { .. } => {}
        }
    }
}

impl Terminator {
    /// Calls `f` for every slot, uses before definitions; `f` may rename the slot.
    pub fn visit(&mut self, f: Visitor) {
        *self = self.map(&mut Rename(f), |prototype| prototype);
    }

    /// The possible successors in this function.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Terminator::Jump(next) | Terminator::ClusterBarrier { next, .. } => vec![*next],
            Terminator::Call(call) => vec![call.next],
            Terminator::Barrier(barrier) => vec![barrier.next],
            Terminator::Branch { taken, otherwise, .. } => vec![*taken, *otherwise],
            Terminator::BranchIndexed { targets, .. } => targets.clone(),
            Terminator::Return | Terminator::Exit | Terminator::Trap => vec![],
        }
    }

    /// Renames the possible successors.
    pub(crate) fn rename(&mut self, name: impl Fn(BlockId) -> BlockId) {
        match self {
            Terminator::Jump(next) | Terminator::ClusterBarrier { next, .. } => *next = name(*next),
            Terminator::Call(call) => call.next = name(call.next),
            Terminator::Barrier(barrier) => barrier.next = name(barrier.next),
            Terminator::Branch { taken, otherwise, .. } => {
                *taken = name(*taken);
                *otherwise = name(*otherwise);
            }
            Terminator::BranchIndexed { targets, .. } => targets.iter_mut().for_each(|t| *t = name(*t)),
            Terminator::Return | Terminator::Exit | Terminator::Trap => {}
        }
    }
}

/// All memory accesses of an operation, reads before writes. Every engine and checker relies on this list: an
/// operation without accesses here touches registers only.
pub fn accesses(op: &OpKind) -> Accesses {
    let weak = Semantics::WEAK;
    match op {
        OpKind::Pure { .. }
        | OpKind::Simple(_)
        | OpKind::AddressOf { .. }
        | OpKind::SelectPair { .. }
        | OpKind::Cvta { .. }
        | OpKind::Unsupported { .. } => SmallVec::new(),
        OpKind::Load(op) => op.accesses(),
        OpKind::Store(op) => op.accesses(),
        OpKind::Memory(op) => op.accesses(),
        OpKind::TensorMemory(op) => op.accesses(),
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
    match op {
        OpKind::Simple(op) => op.orders_memory(),
        // The lanes of a warp converge at warp-level operations, and `bar.warp.sync` orders their accesses.
        OpKind::Warp { .. } | OpKind::Unsupported { .. } => true,
        _ => accesses(op).iter().any(|access| access.semantics.is_strong()),
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

    fn accesses(&self) -> Accesses {
        let weak = Semantics::WEAK;
        let at =
            |kind, extent| self.address.iter().map(move |a| Access::new(kind, a, extent, weak)).collect();
        match self.kind {
            MatrixKind::Multiply | MatrixKind::Transpose => SmallVec::new(),
            MatrixKind::GroupMultiply => {
                let factor = |name| Some(Access::factor(*self.operand(name)?.first()?));
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
