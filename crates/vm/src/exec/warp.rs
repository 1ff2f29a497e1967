//! Warp-level operations: shuffles, votes, matches, reductions. All lanes that must take part are active
//! (`convergence.rs`).

use diag::Span;
use ir::{ReduxOp, ShuffleMode, ShufflePattern, VoteMode, Width, shuffle_source};
use isa::Type;
use machine::mask::{GANG_LANES, Mask, WARP_LANES};

use super::{Active, Gang, Step};
use crate::code::WarpOp;
use crate::registers::{SlotRef, lane_width};
use crate::shared::Shared;

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn warp(
        &mut self,
        op: &WarpOp,
        members: Option<SlotRef>,
        pattern: Option<&ShufflePattern>,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        match *op {
            WarpOp::Shuffle { mode, dst, pred, a, b, c } => {
                self.shuffle(mode, [dst, pred], [a, b, c], pattern, active);
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
            WarpOp::Matrix(Ok(ref matrix)) => return self.matrix(matrix, active, shared, span),
            WarpOp::TensorMemory(Ok(ref op)) => return self.tensor_memory(op, active, shared, span),
            WarpOp::Matrix(Err(opcode)) | WarpOp::TensorMemory(Err(opcode)) => {
                return Err(self.unsupported(opcode, active, span));
            }
        }
        Ok(())
    }

    /// The member mask of a lane, limited to the active lanes.
    fn members(&self, members: Option<SlotRef>, active: &Active, lane: usize) -> u32 {
        let here = active.mask.warp(lane / WARP_LANES);
        match members {
            Some(slot) => self.registers.get(active.window, slot, lane) as u32 & here,
            None => here,
        }
    }

    /// Writes 32-bit words to the active lanes of a slot.
    fn write_words(&mut self, dst: SlotRef, active: &Active, words: &[u32; GANG_LANES]) {
        if dst.width != Width::W32 {
            return self.write_lanes(dst, active, |_, lane| words[lane].into());
        }
        let lanes = self.threads.lanes;
        // SAFETY: the array has `lanes` elements of 4 bytes.
        self.produce(dst, active, |_, target| unsafe {
            std::ptr::copy_nonoverlapping(words.as_ptr(), target.cast(), lanes);
        });
    }

    /// The member mask, if it is the same in all lanes.
    fn common_members(&self, members: Option<SlotRef>, active: &Active) -> Option<u32> {
        match members {
            Some(slot) => self.registers.uniform(active.window, slot).map(|members| members as u32),
            None => Some(u32::MAX),
        }
    }

    /// Writes `f(warp, members)` to the active lanes. If all lanes have the same member mask, calls `f` once for each
    /// warp, else once for each lane.
    pub(super) fn write_warps(
        &mut self,
        dst: SlotRef,
        members: Option<SlotRef>,
        active: &Active,
        f: impl Fn(usize, u32) -> u64,
    ) {
        let common = self.common_members(members, active);
        let mut words = [0; GANG_LANES];
        let mut holds = Mask::EMPTY;
        for (warp, lanes) in active.mask.warps() {
            let first = warp * WARP_LANES;
            if let Some(common) = common {
                let value = f(warp, common & lanes);
                words[first..first + WARP_LANES].fill(value as u32);
                holds.set_warp(warp, if value & 1 != 0 { u32::MAX } else { 0 });
                continue;
            }
            for lane in (first..first + WARP_LANES).filter(|lane| lanes >> (lane % WARP_LANES) & 1 != 0) {
                let value = f(warp, self.members(members, active, lane));
                words[lane] = value as u32;
                if value & 1 != 0 {
                    holds.insert(lane);
                }
            }
        }
        match dst.width {
            Width::Pred => self.registers.set_predicate(active.window, dst, holds, active.mask),
            _ => self.write_words(dst, active, &words),
        }
    }

    /// `shfl` (PTX ISA, "shfl.sync"). A read from an inactive lane is undefined: it yields the value that the
    /// register holds there.
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
            let lanes = self.threads.lanes;
            self.produce(dst, active, |registers, target| {
                // SAFETY: both arrays have `lanes` elements of 4 bytes.
                unsafe { (registers.helpers().permute_warps)(target, values, &pattern.from, lanes) }
            });
        }
        if let Some(pred) = pred {
            let mut in_range = Mask::EMPTY;
            (0..self.threads.lanes.div_ceil(WARP_LANES))
                .for_each(|warp| in_range.set_warp(warp, pattern.in_range));
            self.registers.set_predicate(active.window, pred, in_range, active.mask);
        }
    }

    /// [`Gang::shuffle`] for operands `b` or `c` that differ between lanes.
    fn shuffle_lanes(
        &mut self,
        mode: ShuffleMode,
        [dst, pred]: [Option<SlotRef>; 2],
        [a, b, c]: [SlotRef; 3],
        active: &Active,
    ) {
        // Each mode has its own call, so that each compiles to a loop without branches.
        match mode {
            ShuffleMode::Up => self.shuffle_from([dst, pred], [a, b, c], active, |own, b, c| {
                shuffle_source(ShuffleMode::Up, own, b, c)
            }),
            ShuffleMode::Down => self.shuffle_from([dst, pred], [a, b, c], active, |own, b, c| {
                shuffle_source(ShuffleMode::Down, own, b, c)
            }),
            ShuffleMode::Butterfly => self.shuffle_from([dst, pred], [a, b, c], active, |own, b, c| {
                shuffle_source(ShuffleMode::Butterfly, own, b, c)
            }),
            ShuffleMode::Index => self.shuffle_from([dst, pred], [a, b, c], active, |own, b, c| {
                shuffle_source(ShuffleMode::Index, own, b, c)
            }),
        }
    }

    /// Shuffles by `source`, which maps a lane's index in its warp and its operands to the lane that it reads and to
    /// whether that is in range.
    #[inline(always)]
    fn shuffle_from(
        &mut self,
        [dst, pred]: [Option<SlotRef>; 2],
        [a, b, c]: [SlotRef; 3],
        active: &Active,
        source: impl Fn(u32, u32, u32) -> (u32, bool),
    ) {
        let [values, b, c] = [a, b, c].map(|slot| self.registers.read(active.window, slot).cast::<u32>());
        let permute = self.registers.helpers().permute_warps;
        let mut in_range = Mask::EMPTY;
        let mut words = [0u32; GANG_LANES];
        for (warp, lanes) in active.mask.warps() {
            let first = warp * WARP_LANES;
            // The gang's last warp may have only 16 lanes.
            let count = WARP_LANES.min(self.threads.lanes - first);
            let (mut from, mut within) = ([0; WARP_LANES], [false; WARP_LANES]);
            for (lane, (from, within)) in from.iter_mut().zip(&mut within).enumerate().take(count) {
                // SAFETY: arrays have an element of 4 bytes for every lane.
                let (b, c) = unsafe { (b.add(first + lane).read(), c.add(first + lane).read()) };
                (*from, *within) = source(lane as u32, b, c);
            }
            // SAFETY: both arrays have `count` elements from there on.
            unsafe { permute(words[first..].as_mut_ptr().cast(), values.add(first).cast(), &from, count) }
            if pred.is_some() {
                let bits = within.iter().enumerate().fold(0, |bits, (lane, &w)| bits | u32::from(w) << lane);
                in_range.set_warp(warp, bits & lanes);
            }
        }
        if let Some(dst) = dst {
            self.write_words(dst, active, &words);
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
        self.write_warps(dst, members, active, |warp, members| {
            vote_result(mode, predicate.warp(warp) & members, members)
        });
    }

    /// The result of a vote or a reduction for a lane if the lanes of its warp had these values.
    pub(super) fn combine(
        &self,
        op: &WarpOp,
        members: Option<SlotRef>,
        active: &Active,
        lane: usize,
        values: &[u64; 32],
    ) -> Option<u64> {
        let members = self.members(members, active, lane);
        match *op {
            WarpOp::Vote { mode, negated, .. } => {
                let votes = ones(members).filter(|&of_warp| (values[of_warp] & 1 != 0) != negated);
                Some(vote_result(mode, votes.fold(0, |all, of_warp| all | 1 << of_warp), members))
            }
            WarpOp::Redux { op, ty, nan, abs, .. } => {
                Some(Reduce { op, ty, nan, abs }.all(ones(members).map(|of_warp| values[of_warp] as u32)))
            }
            _ => None,
        }
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
        let (array, common) = (self.registers.read(active.window, a), self.common_members(members, active));
        let mut of_warps = [0; GANG_LANES / WARP_LANES];
        for (warp, lanes) in active.mask.warps() {
            of_warps[warp] = common.unwrap_or(u32::MAX) & lanes;
        }
        let mut words = [0; GANG_LANES];
        let whole = all && common.is_some();
        // SAFETY: the register has an element for each lane, and there are as many words.
        unsafe {
            let match_warps = self.registers.helpers().match_warps;
            let width = lane_width(a.width);
            match_warps(words.as_mut_ptr().cast(), array, width, &of_warps, whole, self.threads.lanes);
        }
        let mut agree = Mask::EMPTY;
        if common.is_none() {
            // So far each lane was compared with all active lanes of its warp. Keep only its members.
            for lane in active.mask {
                let members = self.members(members, active, lane);
                words[lane] &= members;
                if words[lane] == members {
                    agree.insert(lane);
                } else if all {
                    words[lane] = 0;
                }
            }
        } else if pred.is_some() {
            // A lane is always among its own members.
            active.mask.for_each(|lane| {
                if words[lane] != 0 {
                    agree.insert(lane);
                }
            });
        }
        if let Some(dst) = dst {
            self.write_words(dst, active, &words);
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
        let values = self.registers.read(active.window, a).cast::<u32>();
        self.write_warps(dst, members, active, |warp, members| {
            // SAFETY: the register has an element of 4 bytes for every lane, and members are lanes of the gang.
            unsafe {
                let of_warp = values.add(warp * WARP_LANES);
                match members {
                    u32::MAX => reduce.all((*of_warp.cast::<[u32; WARP_LANES]>()).iter().copied()),
                    _ => reduce.all(ones(members).map(|lane| of_warp.add(lane).read())),
                }
            }
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
        let mut results = [0; GANG_LANES];
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

/// The result of a vote among the members of a warp; the lanes of `votes` have a true predicate.
fn vote_result(mode: VoteMode, votes: u32, members: u32) -> u64 {
    match mode {
        VoteMode::All => u64::from(votes == members),
        VoteMode::Any => u64::from(votes != 0),
        VoteMode::Uniform => u64::from(votes == members || votes == 0),
        VoteMode::Ballot => votes.into(),
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
    fn all(&self, words: impl Iterator<Item = u32>) -> u64 {
        let signed = self.ty.is_signed();
        let result = match self.op {
            ReduxOp::Min | ReduxOp::Max if self.ty.is_float() => return self.all_floats(words).into(),
            ReduxOp::Add => words.reduce(u32::wrapping_add),
            ReduxOp::Min if signed => words.map(|x| x as i32).min().map(|x| x as u32),
            ReduxOp::Max if signed => words.map(|x| x as i32).max().map(|x| x as u32),
            ReduxOp::Min => words.min(),
            ReduxOp::Max => words.max(),
            ReduxOp::And => words.reduce(|x, y| x & y),
            ReduxOp::Or => words.reduce(|x, y| x | y),
            ReduxOp::Xor => words.reduce(|x, y| x ^ y),
        };
        result.unwrap_or(0).into()
    }

    /// Folds with `min.f32` or `max.f32`: NaNs are ignored (with `.NaN`, they win), and -0 is less than +0.
    fn all_floats(&self, words: impl Iterator<Item = u32>) -> u32 {
        const NAN: u32 = 0x7fff_ffff;
        let sign = if self.abs { 0x7fff_ffff } else { u32::MAX };
        // Maps bits to an integer with the order of the numbers; the map is its own inverse.
        let key = |bits: i32| bits ^ (bits >> 31 & i32::MAX);
        // The key of NaNs; no number has it.
        let least = if self.op == ReduxOp::Min { i32::MAX } else { i32::MIN };
        let (mut best, mut any_nan) = (least, false);
        // No branches in the loop, so that it is vectorised for 32 words.
        for bits in words.map(|bits| bits & sign) {
            let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
            any_nan |= is_nan;
            let key = if is_nan { least } else { key(bits as i32) };
            best = if self.op == ReduxOp::Min { key.min(best) } else { key.max(best) };
        }
        if any_nan && self.nan || best == least { NAN } else { key(best) as u32 }
    }
}

/// The indices of the set bits, in ascending order.
pub(super) fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::{Mod, Picks};

    #[test]
    fn floats_are_reduced_as_sem_does() {
        let numbers = [
            0.0f32,
            -0.0,
            1.0,
            -1.0,
            1e-40,
            -1e-40,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -f32::NAN,
            7.5,
        ];
        let none = Picks::new(&[Type::F32], &[]);
        let bits = |x: f32| u64::from(x.to_bits());
        let all = |reduce: &Reduce, words: &[u64]| reduce.all(words.iter().map(|&word| word as u32));
        for case in 0..8 {
            let (nan, abs) = (case & 1 != 0, case & 2 != 0);
            let op = if case & 4 == 0 { ReduxOp::Min } else { ReduxOp::Max };
            let picks = if nan { none.with(Mod::NaN) } else { none };
            let reduce = Reduce { op, ty: Type::F32, nan, abs };
            let two = |x: u64, y: u64| match op {
                ReduxOp::Min => sem::float::min(&picks, &[x, y])[0],
                _ => sem::float::max(&picks, &[x, y])[0],
            };
            let absolute = |x: u64| if abs { sem::float::abs(&none, &[x])[0] } else { x };
            for a in numbers.map(bits) {
                let alone = two(absolute(a), absolute(a));
                assert_eq!(all(&reduce, &[a]), alone, "{op:?} {a:x} {nan} {abs}");
                for b in numbers.map(bits) {
                    for c in numbers.map(bits) {
                        let expected = two(two(absolute(a), absolute(b)), absolute(c));
                        let got = all(&reduce, &[a, b, c]);
                        assert_eq!(got, expected, "{op:?} {a:x} {b:x} {c:x} {nan} {abs}");
                    }
                }
            }
        }
    }
}
