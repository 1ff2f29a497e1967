//! Warp-level operations: shuffles, votes, matches, reductions. All lanes that must take part are active.

use ir::{ReduxOp, ShuffleMode, VoteMode};
use isa::{Mod, Picks, Type};

use super::{Active, Chunk};
use crate::code::WarpOp;
use crate::mask::{CHUNK_LANES, Mask, WARP_LANES};
use crate::registers::SlotRef;

impl Chunk<'_> {
    pub(super) fn warp(&mut self, op: &WarpOp, members: Option<SlotRef>, active: Active) {
        match *op {
            WarpOp::Shuffle { mode, dst, pred, a, b, c } => self.shuffle(mode, dst, pred, [a, b, c], active),
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
        }
    }

    /// The member mask of a lane, cut to the lanes that are there.
    fn members(&self, members: Option<SlotRef>, active: Active, lane: usize) -> u32 {
        let here = active.mask.warp(lane / WARP_LANES);
        match members {
            Some(slot) => self.registers.get(active.window, slot, lane) as u32 & here,
            None => here,
        }
    }

    fn values(&self, slot: SlotRef, active: Active) -> [u64; CHUNK_LANES] {
        let mut values = [0; CHUNK_LANES];
        for lane in active.mask {
            values[lane] = self.registers.get(active.window, slot, lane);
        }
        values
    }

    /// `shfl` (PTX ISA, "shfl.sync", its pseudo-code).
    fn shuffle(
        &mut self,
        mode: ShuffleMode,
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
        [a, b, c]: [SlotRef; 3],
        active: Active,
    ) {
        let values = self.values(a, active);
        let mut results = [0; CHUNK_LANES];
        let mut in_range = Mask::EMPTY;
        let uniform = (self.registers.uniform(active.window, b), self.registers.uniform(active.window, c));
        for lane in active.mask {
            let (b, c) = match uniform {
                (Some(b), Some(c)) => (b as u32, c as u32),
                _ => (
                    self.registers.get(active.window, b, lane) as u32,
                    self.registers.get(active.window, c, lane) as u32,
                ),
            };
            let warp = lane / WARP_LANES;
            let own = (lane % WARP_LANES) as u32;
            let (bound, segment) = (c & 0x1f, c >> 8 & 0x1f);
            let max_lane = own & segment | bound & !segment;
            let min_lane = own & segment;
            let (from, inside) = match mode {
                ShuffleMode::Up => {
                    let from = own.wrapping_sub(b & 0x1f);
                    (from, from as i32 >= max_lane as i32)
                }
                ShuffleMode::Down => {
                    let from = own + (b & 0x1f);
                    (from, from <= max_lane)
                }
                ShuffleMode::Butterfly => {
                    let from = own ^ (b & 0x1f);
                    (from, from <= max_lane)
                }
                ShuffleMode::Index => {
                    let from = min_lane | b & 0x1f & !segment;
                    (from, from <= max_lane)
                }
            };
            let from = if inside { from } else { own };
            if inside {
                in_range.insert(lane);
            }
            // Reading a lane that is not there is undefined: here it reads zero.
            results[lane] = values[warp * WARP_LANES + from as usize % WARP_LANES];
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
        active: Active,
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
        active: Active,
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

    fn redux(&mut self, reduce: &Reduce, dst: SlotRef, a: SlotRef, members: Option<SlotRef>, active: Active) {
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
        active: Active,
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
        values
            .map(absolute)
            .reduce(|x, y| {
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
            })
            .unwrap_or(0)
    }
}
