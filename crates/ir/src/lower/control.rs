//! Branches, exits, barriers and warp-level instructions.
//!
//! Lanes wait only at the start of a basic block. Hence a warp-level operation is the first of its basic block, a
//! barrier ends its basic block, and a barrier with a thread count has a basic block of its own. A guarded
//! instruction of these kinds becomes a branch around a separate basic block.
//!
//! A warp-level operation with a member mask also ends its basic block if the lanes that converge at it may continue
//! at different places. That happens in called functions, where lanes of several calls converge, and at
//! `bar.warp.sync`.

use check::module::{Instruction, Operand};
use isa::{Effect, Mod, Type};

use super::Lowering;
use crate::function::{Barrier, BarrierResult, Terminator};
use crate::op::{BarrierReduction, BlockId, Guard, OpKind, ReduxOp, ShuffleMode, Slot, VoteMode, Width};
use crate::warp::WarpOp;

impl Lowering<'_> {
    /// Starts the basic block in which a guarded instruction runs; returns the basic block where all lanes continue.
    pub(super) fn enter_guarded(&mut self, guard: Option<Guard>) -> BlockId {
        let next = self.new_block();
        if let Some(Guard { slot, negated }) = guard {
            let inside = self.new_block();
            self.end_block(
                Terminator::Branch { pred: slot, negated, taken: inside, otherwise: next },
                inside,
            );
        }
        next
    }

    pub(super) fn control(&mut self, i: &Instruction, effect: Effect) {
        let guard = self.guard(i);
        if effect == Effect::Bra {
            let Some(Operand::Label(label)) = i.operands.first() else { return };
            let taken = self.label_block(*label);
            let next = self.new_block();
            let terminator = match guard {
                None => Terminator::Jump(taken),
                Some(Guard { slot, negated }) => {
                    Terminator::Branch { pred: slot, negated, taken, otherwise: next }
                }
            };
            return self.end_block(terminator, next);
        }
        let next = self.enter_guarded(guard);
        let terminator = match effect {
            Effect::BrxIdx => {
                let [index, Operand::BranchTargets(list)] = &i.operands[..] else { return };
                let index = self.source(index, Type::U32);
                let labels = self.body.branch_targets[list.index()].clone();
                let targets = labels.into_iter().map(|l| self.label_block(l)).collect();
                Terminator::BranchIndexed { index, targets }
            }
            Effect::Ret => Terminator::Return,
            Effect::Exit => Terminator::Exit,
            // A breakpoint without a debugger ends the kernel with an error, as a trap does.
            _ => Terminator::Trap,
        };
        self.end_block(terminator, next);
    }

    pub(super) fn barrier(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let next = self.enter_guarded(guard);
        let mods = i.picks.mods();
        let op = mods.iter().find_map(|m| match m {
            Mod::Popc => Some(BarrierReduction::PopulationCount),
            Mod::And => Some(BarrierReduction::And),
            Mod::Or => Some(BarrierReduction::Or),
            _ => None,
        });
        let arrive = mods.contains(&Mod::Arrive);
        let mut operands = &i.operands[..];
        let mut reduction = None;
        if let Some(op) = op
            && let [_, middle @ .., predicate] = operands
        {
            let (negated, register) = match predicate {
                Operand::NotReg(register) => (true, Some(*register)),
                Operand::Reg(register) => (false, Some(*register)),
                _ => (false, None),
            };
            let src = match register {
                Some(register) => self.register(register),
                None => self.source(predicate, Type::Pred),
            };
            let ty = if op == BarrierReduction::PopulationCount { Type::U32 } else { Type::Pred };
            let dst = self.destination(i, 0).unwrap_or_else(|| self.temporary(Width::of(ty)));
            reduction = Some(BarrierResult { op, dst, negated, src });
            operands = middle;
        }
        let barrier = match operands.first() {
            Some(operand) => self.source(operand, Type::U32),
            None => self.constant(Width::W32, 0),
        };
        let threads = operands.get(1).map(|operand| self.source(operand, Type::U32));
        if threads.is_some() {
            // The barrier may complete before all lanes of a path have arrived. The remaining lanes then execute this
            // basic block again.
            self.start_block();
        }
        let barrier = Barrier { barrier, threads, arrive, reduction, next };
        self.end_block(Terminator::Barrier(Box::new(barrier)), next);
    }

    pub(super) fn cluster_barrier(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let next = self.enter_guarded(guard);
        let arrive = i.picks.has(Mod::Arrive);
        self.end_block(Terminator::ClusterBarrier { arrive, next }, next);
    }

    pub(super) fn warp(&mut self, i: &Instruction, effect: Effect) {
        let guard = self.guard(i);
        let o = &i.operands[..];
        // The member mask comes last; the old forms of shfl and vote have none.
        let sync = i.picks.has(Mod::Sync) || matches!(effect, Effect::BarWarpSync);
        // The sources are computed before the basic block starts, so that the warp-level operation is its first
        // operation.
        let members = if sync { o.last().map(|m| self.source(m, Type::B32)) } else { None };
        let dst = self.destination(i, 0);
        let pred = self.second_destination(i, 0);
        let ty = i.picks.ty(0);
        let op = match effect {
            Effect::Shfl => {
                let [_, a, b, c, ..] = o else { return };
                let mode = match () {
                    () if i.picks.has(Mod::Up) => ShuffleMode::Up,
                    () if i.picks.has(Mod::Down) => ShuffleMode::Down,
                    () if i.picks.has(Mod::Bfly) => ShuffleMode::Butterfly,
                    () => ShuffleMode::Index,
                };
                let (a, b) = (self.source(a, Type::B32), self.source(b, Type::B32));
                let c = self.source(c, Type::B32);
                WarpOp::Shuffle { mode, dst, pred, a, b, c }
            }
            Effect::Vote => {
                let mode = match () {
                    () if i.picks.has(Mod::All) => VoteMode::All,
                    () if i.picks.has(Mod::Any) => VoteMode::Any,
                    () if i.picks.has(Mod::Uni) => VoteMode::Uniform,
                    () => VoteMode::Ballot,
                };
                let (a, negated) = match o.get(1) {
                    Some(Operand::NotReg(register)) => (self.register(*register), true),
                    Some(operand) => (self.source(operand, Type::Pred), false),
                    None => return,
                };
                WarpOp::Vote { mode, dst, a, negated }
            }
            Effect::MatchSync => {
                let Some(a) = o.get(1) else { return };
                WarpOp::Match { all: i.picks.has(Mod::All), dst, pred, a: self.source(a, ty) }
            }
            Effect::Redux => {
                let Some(a) = o.get(1) else { return };
                let op = i.picks.mods().iter().find_map(|m| {
                    Some(match m {
                        Mod::Add => ReduxOp::Add,
                        Mod::Min => ReduxOp::Min,
                        Mod::Max => ReduxOp::Max,
                        Mod::And => ReduxOp::And,
                        Mod::Or => ReduxOp::Or,
                        Mod::Xor => ReduxOp::Xor,
                        _ => return None,
                    })
                });
                let Some(op) = op else { return };
                let (nan, abs) = (i.picks.has(Mod::NaN), i.picks.has(Mod::Abs));
                WarpOp::Redux { op, ty, dst, a: self.source(a, ty), nan, abs }
            }
            Effect::Elect => WarpOp::Elect { dst, pred },
            _ => WarpOp::Sync,
        };
        self.warp_operation(guard, op, members);
    }

    /// Starts a basic block with a warp-level operation. The basic block also ends there if the lanes that converge
    /// at the operation may continue at different places: lanes reach `bar.warp.sync` at different places, and other
    /// operations in different calls of a function.
    pub(super) fn warp_operation(&mut self, guard: Option<Guard>, op: WarpOp, members: Option<Slot>) {
        let ends = members.is_some() && (!self.function.is_entry || matches!(op, WarpOp::Sync));
        if guard.is_none() && !ends {
            self.start_block();
            return self.push(None, OpKind::Warp { op, members });
        }
        let next = self.enter_guarded(guard);
        if guard.is_none() {
            self.start_block();
        }
        self.push(None, OpKind::Warp { op, members });
        self.fall_into(next);
    }
}
