//! Warp-level operations: shuffles, votes, matches, reductions. All lanes that must take part are active.

use diag::Span;
use ir::{ReduxOp, ShuffleMode, VoteMode};
use isa::{Mod, Picks, Type};

use super::{Active, Chunk, Step};
use crate::code::{ShufflePattern, WarpOp, shuffle_source};
use crate::cta::Shared;
use crate::mask::{CHUNK_LANES, Mask, WARP_LANES};
use crate::registers::SlotRef;

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn warp(
        &mut self,
        op: &WarpOp,
        members: Option<SlotRef>,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        match *op {
            WarpOp::Shuffle { mode, dst, pred, a, b, c, ref pattern } => {
                self.shuffle(mode, [dst, pred], [a, b, c], pattern.as_deref(), active);
            }
            WarpOp::Vote { mode, dst, a, negated } => self.vote(mode, dst, a, negated, members, active),
            WarpOp::Match { all, dst, pred, a } => self.match_sync(all, dst, pred, a, members, active),
            WarpOp::Redux { op, ty, dst, a, nan, abs } => {
                if let Some(dst) = dst {
                    let reduce = Reduce { op, ty, nan, abs };
                    self.redux(&reduce, dst, a, members, active);
                }
            }
            WarpOp::Elect { dst, pred } => self.elect(dst, pred, members, active),
            WarpOp::Sync => {}
            WarpOp::Matrix(ref matrix) => return self.matrix(matrix, active, shared, span),
            WarpOp::Unsupported { opcode } => return Err(self.unsupported(opcode, active, span)),
        }
        Ok(())
    }

    /// The member mask of a lane, cut to the lanes that are there.
    fn members(&self, members: Option<SlotRef>, active: &Active, lane: usize) -> u32 {
        let here = active.mask.warp(lane / WARP_LANES);
        match members {
            Some(slot) => self.registers.get(active.window, slot, lane) as u32 & here,
            None => here,
        }
    }

    fn values(&self, slot: SlotRef, active: &Active) -> [u64; CHUNK_LANES] {
        let mut values = [0; CHUNK_LANES];
        for lane in active.mask {
            values[lane] = self.registers.get(active.window, slot, lane);
        }
        values
    }

    /// `shfl` (PTX ISA, "shfl.sync"). Reads of lanes that are not active are undefined: they give what the register
    /// holds there.
    fn shuffle(
        &mut self,
        mode: ShuffleMode,
        [dst, pred]: [Option<SlotRef>; 2],
        [a, b, c]: [SlotRef; 3],
        pattern: Option<&ShufflePattern>,
        active: &Active,
    ) {
        let uniform = (self.registers.uniform(active.window, b), self.registers.uniform(active.window, c));
        let found = match uniform {
            (Some(b), Some(c)) if pattern.is_none() => Some(ShufflePattern::new(mode, b as u32, c as u32)),
            _ => None,
        };
        let Some(pattern) = pattern.or(found.as_ref()) else {
            return self.shuffle_lanes(mode, [dst, pred], [a, b, c], active);
        };
        if let Some(dst) = dst {
            let values = self.registers.read(active.window, a);
            let lanes = self.lanes;
            self.produce(dst, active, |registers, target| {
                // SAFETY: both arrays have `lanes` elements of 4 bytes.
                unsafe { (registers.helpers().permute_warps)(target, values, &pattern.from, lanes) }
            });
        }
        if let Some(pred) = pred {
            let mut in_range = Mask::EMPTY;
            (0..self.lanes.div_ceil(WARP_LANES)).for_each(|warp| in_range.set_warp(warp, pattern.in_range));
            self.registers.set_predicate(active.window, pred, in_range, active.mask);
        }
    }

    /// The same where lanes shuffle in different ways.
    fn shuffle_lanes(
        &mut self,
        mode: ShuffleMode,
        [dst, pred]: [Option<SlotRef>; 2],
        [a, b, c]: [SlotRef; 3],
        active: &Active,
    ) {
        let mut in_range = Mask::EMPTY;
        let mut results = [0; CHUNK_LANES];
        for lane in active.mask {
            let [b, c] = [b, c].map(|slot| self.registers.get(active.window, slot, lane) as u32);
            let (source, within) = shuffle_source(mode, (lane % WARP_LANES) as u32, b, c);
            let source = lane / WARP_LANES * WARP_LANES + source as usize;
            if source < self.lanes {
                results[lane] = self.registers.get(active.window, a, source);
            }
            if within {
                in_range.insert(lane);
            }
        }
        if let Some(dst) = dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
        if let Some(pred) = pred {
            self.registers.set_predicate(active.window, pred, in_range, active.mask);
        }
    }

    /// `vote` (PTX ISA, "vote.sync").
    fn vote(
        &mut self,
        mode: VoteMode,
        dst: Option<SlotRef>,
        a: SlotRef,
        negated: bool,
        members: Option<SlotRef>,
        active: &Active,
    ) {
        let Some(dst) = dst else { return };
        let predicate = self.registers.predicate(active.window, a);
        let predicate = active.mask & if negated { !predicate } else { predicate };
        self.write_lanes(dst, active, |chunk, lane| {
            let members = chunk.members(members, active, lane);
            let votes = predicate.warp(lane / WARP_LANES) & members;
            match mode {
                VoteMode::All => u64::from(votes == members),
                VoteMode::Any => u64::from(votes != 0),
                VoteMode::Uniform => u64::from(votes == members || votes == 0),
                VoteMode::Ballot => votes.into(),
            }
        });
    }

    /// `match` (PTX ISA, "match.sync").
    fn match_sync(
        &mut self,
        all: bool,
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
        a: SlotRef,
        members: Option<SlotRef>,
        active: &Active,
    ) {
        let values = self.values(a, active);
        let mut agree = Mask::EMPTY;
        let mut results = [0; CHUNK_LANES];
        for lane in active.mask {
            let members = self.members(members, active, lane);
            let first = lane / WARP_LANES * WARP_LANES;
            let same = (0..WARP_LANES)
                .filter(|l| members >> l & 1 != 0 && values[first + l] == values[lane])
                .fold(0u32, |mask, l| mask | 1 << l);
            if same == members {
                agree.insert(lane);
            }
            results[lane] = if all && same != members { 0 } else { same.into() };
        }
        if let Some(dst) = dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
        if let Some(pred) = pred {
            self.registers.set_predicate(active.window, pred, agree, active.mask);
        }
    }

    fn redux(
        &mut self,
        reduce: &Reduce,
        dst: SlotRef,
        a: SlotRef,
        members: Option<SlotRef>,
        active: &Active,
    ) {
        let values = self.values(a, active);
        self.write_lanes(dst, active, |chunk, lane| {
            let members = chunk.members(members, active, lane);
            let first = lane / WARP_LANES * WARP_LANES;
            let taking_part = (0..WARP_LANES).filter(|l| members >> l & 1 != 0).map(|l| values[first + l]);
            reduce.all(taking_part)
        });
    }

    /// `elect.sync`: the lowest member is the leader.
    fn elect(
        &mut self,
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
        members: Option<SlotRef>,
        active: &Active,
    ) {
        let mut leaders = Mask::EMPTY;
        let mut results = [0; CHUNK_LANES];
        for lane in active.mask {
            let leader = self.members(members, active, lane).trailing_zeros();
            results[lane] = leader.into();
            if leader as usize == lane % WARP_LANES {
                leaders.insert(lane);
            }
        }
        if let Some(dst) = dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
        if let Some(pred) = pred {
            self.registers.set_predicate(active.window, pred, leaders, active.mask);
        }
    }
}

/// A reduction over the lanes of a warp (PTX ISA, "redux.sync").
struct Reduce {
    op: ReduxOp,
    ty: Type,
    nan: bool,
    abs: bool,
}

impl Reduce {
    fn all(&self, values: impl Iterator<Item = u64>) -> u64 {
        let none = Picks::new(&[Type::F32], &[]);
        let picks = if self.nan { none.with(Mod::NaN) } else { none };
        let absolute = |v: u64| if self.abs { sem::float::abs(&none, &[v])[0] } else { v };
        let pair = |x: u64, y: u64| {
            if self.ty.is_float() {
                return match self.op {
                    ReduxOp::Min => sem::float::min(&picks, &[x, y])[0],
                    _ => sem::float::max(&picks, &[x, y])[0],
                };
            }
            let (a, b) = (x as u32, y as u32);
            let signed = self.ty.is_signed();
            u64::from(match self.op {
                ReduxOp::Add => a.wrapping_add(b),
                ReduxOp::Min if signed => (a as i32).min(b as i32) as u32,
                ReduxOp::Max if signed => (a as i32).max(b as i32) as u32,
                ReduxOp::Min => a.min(b),
                ReduxOp::Max => a.max(b),
                ReduxOp::And => a & b,
                ReduxOp::Or => a | b,
                ReduxOp::Xor => a ^ b,
            })
        };
        let result = values.map(absolute).reduce(pair).unwrap_or(0);
        // A NaN that is the result is the canonical one, also if it is the only member's.
        if self.ty.is_float() { pair(result, result) } else { result }
    }
}
