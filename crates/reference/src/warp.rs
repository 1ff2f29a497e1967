//! Warp-level instructions (PTX ISA, "Parallel Synchronization and Communication Instructions").

use std::collections::BTreeMap;

use check::module::{Instruction, Operand};
use diag::Span;
use isa::{Effect, Mod, Picks, Type};
use machine::{Fault, FaultKind};

use crate::block::Block;
use crate::effect::effect;
use crate::thread::Wait;
use crate::{Step, WARP_LANES};

/// A value for each lane.
pub(crate) type Lanes<T = u64> = [T; WARP_LANES];

/// The lanes of a mask.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP_LANES).filter(move |lane| mask >> lane & 1 != 0)
}

/// The lanes that an instruction waits for.
enum Members<'i> {
    /// As many lanes as can arrive: the forms without a member mask.
    Whoever,
    /// All live lanes.
    All,
    Mask(Option<&'i Operand>),
}

impl Members<'_> {
    fn of(i: &Instruction) -> Members<'_> {
        match effect(i) {
            Some(Effect::BarWarpSync) => Members::Mask(i.operands.last()),
            Some(Effect::Shfl | Effect::Vote | Effect::MatchSync | Effect::Redux | Effect::Elect)
                if i.picks.has(Mod::Sync) =>
            {
                Members::Mask(i.operands.last())
            }
            Some(Effect::Activemask | Effect::Shfl | Effect::Vote) => Members::Whoever,
            _ => Members::All,
        }
    }
}

impl<'l> Block<'l> {
    /// Executes the warp-level instructions whose members have all arrived. Returns whether there were any.
    pub fn warps(&mut self) -> Step<bool> {
        let mut any = false;
        for warp in 0..self.threads.len().div_ceil(WARP_LANES) {
            any |= self.warp(warp)?;
        }
        Ok(any)
    }

    /// The thread of a lane, if the CTA has that many threads.
    fn thread(&self, warp: usize, lane: usize) -> Option<usize> {
        let thread = warp * WARP_LANES + lane;
        (thread < self.threads.len()).then_some(thread)
    }

    /// The same for one warp.
    pub fn warp(&mut self, warp: usize) -> Step<bool> {
        // The positions of waiting lanes, by function, index in its code and member mask. Lanes that execute together
        // must agree on the mask, but may come from different calls. The value holds the lanes and the greatest call
        // depth among them.
        let mut places: BTreeMap<(usize, usize, Option<u32>), (u32, usize)> = BTreeMap::new();
        let mut can_run = false;
        for lane in 0..WARP_LANES {
            let Some(thread) = self.thread(warp, lane) else { break };
            can_run |= matches!(self.threads[thread].wait, Wait::Nothing | Wait::Slice);
            if self.threads[thread].wait == Wait::Warp
                && let Some(i) = self.instruction(warp, 1 << lane)
            {
                let members = self.members(i, warp, lane)?;
                let depth = self.threads[thread].frames.len();
                let frame = &self.threads[thread].frames[depth - 1];
                let place = places.entry((frame.function, frame.pc, members)).or_default();
                *place = (place.0 | 1 << lane, place.1.max(depth));
            }
        }
        let alive = self.cta.alive(warp);
        let mut done = false;
        // `bar.warp.sync` at different places can converge.
        let mut syncs: BTreeMap<u32, u32> = BTreeMap::new();
        for (&(.., members), &(here, _)) in &places {
            let (Some(i), Some(members)) = (self.instruction(warp, here), members) else { continue };
            if effect(i) == Some(Effect::BarWarpSync) {
                *syncs.entry(members).or_default() |= here;
            }
            if members & alive & !here == 0 {
                done |= self.together(i, warp, here)?;
            }
        }
        for (members, here) in syncs {
            if !done && members & alive & !here == 0 {
                lanes(here).for_each(|lane| self.threads[warp * WARP_LANES + lane].wake());
                done = true;
            }
        }
        // Without a member mask: once no other lane can arrive, the deepest in calls goes first, then the first in
        // the code.
        if !done && !can_run {
            let first = places.iter().min_by_key(|(place, (_, depth))| (usize::MAX - depth, **place));
            if let Some((&(.., None), &(here, _))) = first
                && let Some(i) = self.instruction(warp, here)
            {
                done |= self.together(i, warp, here)?;
            }
        }
        Ok(done)
    }

    /// The instruction at which the lanes of a mask are.
    fn instruction(&mut self, warp: usize, here: u32) -> Option<&'l Instruction> {
        self.cpu(warp * WARP_LANES + here.trailing_zeros() as usize).instruction()
    }

    /// The member mask of a lane; `None` if its instruction has none.
    fn members(&mut self, i: &Instruction, warp: usize, lane: usize) -> Step<Option<u32>> {
        let members = match Members::of(i) {
            Members::Whoever => return Ok(None),
            Members::All => u32::MAX,
            Members::Mask(operand) => operand
                .map_or(0, |operand| self.cpu(warp * WARP_LANES + lane).value(operand, Type::B32) as u32),
        };
        if members >> lane & 1 == 0 {
            let note = format!("its member mask is {members:#010x}, its lane {lane}");
            return Err(self.warp_fault(FaultKind::NotInMemberMask, warp, lane, i.span, &note));
        }
        Ok(Some(members))
    }

    pub fn warp_fault(
        &self,
        kind: FaultKind,
        warp: usize,
        lane: usize,
        span: Span,
        note: &str,
    ) -> Box<Fault> {
        self.cta.fault(kind, warp * WARP_LANES + lane, span, note)
    }

    /// The value of an operand in the lanes of a mask; zero in the other lanes.
    pub fn values(&mut self, operand: &Operand, ty: Type, warp: usize, here: u32) -> Lanes {
        let mut values = [0; WARP_LANES];
        lanes(here)
            .for_each(|lane| values[lane] = self.cpu(warp * WARP_LANES + lane).value(operand, ty) as u64);
        values
    }

    /// Executes an instruction for the lanes of a mask, all of which are at it, and moves them past it. `false` if
    /// they must wait.
    fn together(&mut self, i: &Instruction, warp: usize, here: u32) -> Step<bool> {
        match effect(i) {
            Some(Effect::TensorAlloc | Effect::TensorLd | Effect::TensorSt) => {
                if !self.tensor_memory(i, warp, here)? {
                    return Ok(false);
                }
            }
            _ if matches!(Members::of(i), Members::All) => self.matrix(i, warp, here)?,
            _ => self.exchange(i, warp, here),
        }
        lanes(here).for_each(|lane| self.threads[warp * WARP_LANES + lane].wake());
        Ok(true)
    }

    /// Shuffles, votes, matches, reductions.
    fn exchange(&mut self, i: &Instruction, warp: usize, here: u32) {
        let ty = i.picks.ty(0);
        let has = |m: Mod| i.picks.has(m);
        let mut results: Lanes<(u64, bool)> = [(0, false); WARP_LANES];
        let source = match effect(i) {
            Some(Effect::Vote) => Type::Pred,
            Some(Effect::Shfl) => Type::B32,
            _ => ty,
        };
        let a = i.operands.get(1).map_or([0; WARP_LANES], |a| self.values(a, source, warp, here));
        for lane in lanes(here) {
            let among = || lanes(here).map(|l| a[l]);
            results[lane] = match effect(i) {
                Some(Effect::Shfl) => {
                    let [b, c] =
                        [2, 3].map(|n| self.values(&i.operands[n], Type::B32, warp, 1 << lane)[lane]);
                    let (from, within) = shuffle(&i.picks, lane as i64, b as i64, c as i64);
                    let value = match here >> from & 1 != 0 {
                        true => a[from],
                        // Undefined in PTX: the value that the source register holds in that lane.
                        false => self.elsewhere(&i.operands[1], warp, lane, from),
                    };
                    (value, within)
                }
                Some(Effect::Vote) => {
                    let votes = lanes(here).filter(|&l| a[l] != 0).fold(0u32, |mask, l| mask | 1 << l);
                    let holds = match () {
                        () if has(Mod::All) => votes == here,
                        () if has(Mod::Any) => votes != 0,
                        () => votes == here || votes == 0,
                    };
                    (if has(Mod::Ballot) { votes.into() } else { holds.into() }, false)
                }
                Some(Effect::MatchSync) => {
                    let same = lanes(here).filter(|&l| a[l] == a[lane]).fold(0u32, |mask, l| mask | 1 << l);
                    let agree = same == here;
                    (if has(Mod::All) && !agree { 0 } else { same.into() }, agree)
                }
                Some(Effect::Redux) => (
                    // A single float is reduced too: for `.abs`, and to make a NaN canonical.
                    match among().reduce(|x, y| reduce(&i.picks, x, y)) {
                        Some(x) if ty.is_float() => reduce(&i.picks, x, x),
                        x => x.unwrap_or(0),
                    },
                    false,
                ),
                Some(Effect::Elect) => {
                    let leader = here.trailing_zeros() as usize;
                    (leader as u64, leader == lane)
                }
                Some(Effect::Activemask) => (here.into(), false),
                _ => return,
            };
        }
        let ty = if effect(i) == Some(Effect::Vote) && !has(Mod::Ballot) { Type::Pred } else { Type::B32 };
        let ty = if effect(i) == Some(Effect::Redux) { i.picks.ty(0) } else { ty };
        for lane in lanes(here) {
            let mut cpu = self.cpu(warp * WARP_LANES + lane);
            cpu.set_operand(i.operands.first(), results[lane].0.into(), ty);
            cpu.set_second(i.operands.first(), results[lane].1);
        }
    }

    /// The value of a source operand in a lane that does not take part, if that lane is in the same function.
    fn elsewhere(&mut self, operand: &Operand, warp: usize, lane: usize, from: usize) -> u64 {
        let function = self.cpu(warp * WARP_LANES + lane).frame().function;
        match self.thread(warp, from) {
            Some(thread) if self.cpu(thread).frame().function == function => {
                self.cpu(thread).value(operand, Type::B32) as u64
            }
            _ => 0,
        }
    }
}

/// The lane that `shfl` reads, and whether it lies within the segment (PTX ISA, "shfl.sync", its pseudo-code).
fn shuffle(picks: &Picks, lane: i64, b: i64, c: i64) -> (usize, bool) {
    let (b, clamp, segment) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f);
    let max_lane = (lane & segment) | (clamp & !segment);
    let min_lane = lane & segment;
    let (j, within) = match () {
        () if picks.has(Mod::Up) => (lane - b, lane - b >= max_lane),
        () if picks.has(Mod::Down) => (lane + b, lane + b <= max_lane),
        () if picks.has(Mod::Bfly) => (lane ^ b, lane ^ b <= max_lane),
        () => {
            let j = min_lane | (b & !segment);
            (j, j <= max_lane)
        }
    };
    (if within { j } else { lane } as usize, within)
}

/// One step of `redux.sync`.
fn reduce(picks: &Picks, x: u64, y: u64) -> u64 {
    let has = |m: Mod| picks.has(m);
    let ty = picks.ty(0);
    if ty.is_float() {
        let mods: &[Mod] = if has(Mod::NaN) { &[Mod::NaN] } else { &[] };
        let only = Picks::new(&[Type::F32], mods);
        let [x, y] = [x, y].map(|v| if has(Mod::Abs) { v & !(1 << 31) } else { v });
        return if has(Mod::Min) {
            sem::float::min(&only, &[x, y])[0]
        } else {
            sem::float::max(&only, &[x, y])[0]
        };
    }
    let signed = |v: u64| if ty.is_signed() { i64::from(v as u32 as i32) } else { v as i64 };
    match () {
        () if has(Mod::Add) => u64::from((x as u32).wrapping_add(y as u32)),
        () if has(Mod::Min) => {
            if signed(x) <= signed(y) {
                x
            } else {
                y
            }
        }
        () if has(Mod::Max) => {
            if signed(x) >= signed(y) {
                x
            } else {
                y
            }
        }
        () if has(Mod::And) => x & y,
        () if has(Mod::Or) => x | y,
        () => x ^ y,
    }
}
