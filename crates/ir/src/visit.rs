//! Walks over the slots of an operation.

use crate::op::{
    Address, Argument, Base, BulkMask, Callee, Guard, Op, OpKind, Returned, Slot, Terminator, WarpOp,
};

/// How an operation touches a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Use,
    /// Writes it (in the lanes that execute).
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
            OpKind::AtomicWide { address: at, dst, compare, new } => {
                address(at, f);
                uses(compare.iter_mut().flatten(), f);
                uses(new, f);
                defs(dst, f);
            }
            OpKind::Stack { dst, value, .. } => {
                uses(value, f);
                defs([dst], f);
            }
            OpKind::IsSpace { dst, src, .. } | OpKind::Cvta { dst, src, .. } => {
                f(src, Touch::Use);
                f(dst, Touch::Def);
            }
            OpKind::ReadClock { dst, .. } | OpKind::ActiveMask { dst } => f(dst, Touch::Def),
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
                    WarpOp::Sync => {}
                }
            }
            OpKind::CopyAsync { dst, src, size, ignore, .. } => {
                address(dst, f);
                address(src, f);
                uses(size, f);
                uses(ignore.as_mut().map(|guard| &mut guard.slot), f);
            }
            OpKind::CopyBulk { dst, src, size, mbarrier, mask, .. } => {
                address(dst, f);
                address(src, f);
                f(size, Touch::Use);
                if let Some(BulkMask::Bytes(mask) | BulkMask::Blocks(mask)) = mask {
                    f(mask, Touch::Use);
                }
                mbarrier.iter_mut().for_each(|a| address(a, f));
            }
            OpKind::Mbarrier { address: a, dst, value, .. } => {
                a.iter_mut().for_each(|a| address(a, f));
                uses(value, f);
                defs([dst], f);
            }
            OpKind::CopyGroup(_) | OpKind::Fence | OpKind::Unsupported { .. } => {}
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

    /// The blocks that may come next in this function.
    pub fn successors(&self) -> Vec<crate::op::BlockId> {
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

    /// Renames the blocks that may come next.
    pub(crate) fn rename(&mut self, name: impl Fn(crate::op::BlockId) -> crate::op::BlockId) {
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
