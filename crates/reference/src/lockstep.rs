//! How the lanes of a warp take turns in a launch that is debugged: together, as on a GPU.
//!
//! A *turn* is one instruction, executed by the lanes of a warp that are at it: a *path*. The path that stands deepest
//! in calls and first in the code goes first, so that lanes that have diverged meet again as early as possible. The
//! warps of a CTA take turns one after another. A path that takes many turns while others of its warp could run, or
//! executes several atomics, makes room for them: a lane that spins may wait for one of those.

use std::cmp::Reverse;
use std::rc::Rc;

use diag::Span;

use crate::block::{Block, Progress};
use crate::grid::Stepper;
use crate::thread::Wait;
use crate::warp::lanes;
use crate::{Step, WARP_LANES};

/// Turns that a path takes before it makes room for other paths of its warp, and how many of them an atomic or volatile
/// access counts for.
const PATIENCE: u32 = 1024;
const ATOMIC: u32 = 256;
/// Rounds of turns in a step of a CTA, as [`Block::step`] gives each thread so many instructions.
const ROUNDS: u32 = 1000;

/// Where lanes are: first the deepest in calls, then the first in the code. Lanes with the same place form a path.
type Place = (Reverse<usize>, usize, usize);

/// Lanes of a warp that went different ways and have not met again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The instruction after which they were apart.
    pub span: Span,
    /// Index of its function in the module.
    pub function: usize,
    /// The turn in which they executed it.
    pub time: u64,
    /// The lanes of each way, in the order of the ways in the code. Lanes that have ended come last.
    pub ways: Vec<u32>,
}

/// The turns of a warp.
#[derive(Default)]
pub(crate) struct Turns {
    /// Lanes that make room for the others.
    parked: u32,
    /// Turns that a path has taken while others could have.
    preferred: u32,
    pub divergences: Vec<Divergence>,
}

/// Who decides before each turn whether it is taken.
pub(crate) trait Gate<'l>: Stepper<'l> {
    /// Lanes of a warp of one of the CTAs in flight are about to execute an instruction.
    fn turn(&mut self, flight: &mut [Block<'l>], index: usize, turn: Turn) -> Result<(), Self::Halt>;
}

/// The lanes of a warp that execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Index of the warp in its block.
    pub warp: usize,
    /// Its lanes that execute the instruction, or do nothing because their guard does not hold.
    pub lanes: u32,
}

impl Block<'_> {
    /// Where a thread is that can run or waits; `None` once it has ended.
    fn place_of(&mut self, thread: usize) -> Option<Place> {
        if self.threads[thread].wait == Wait::Ended {
            return None;
        }
        let cpu = self.cpu(thread);
        let (depth, function, pc) = (cpu.thread.frames.len(), cpu.frame().function, cpu.frame().pc);
        let labels = cpu.code().body.code[pc.min(cpu.code().body.code.len())..].iter();
        let labels = labels.take_while(|node| matches!(node, check::module::Node::Label(_))).count();
        Some((Reverse(depth), function, pc + labels))
    }

    /// The path of a warp whose turn it is; `None` if no lane can run.
    fn path(&mut self, warp: usize) -> Option<Turn> {
        let first = warp * WARP_LANES;
        let count = (self.threads.len() - first).min(WARP_LANES);
        let can_run = (0..count).filter(|lane| self.threads[first + lane].wait == Wait::Nothing);
        let can_run = can_run.fold(0u32, |mask, lane| mask | 1 << lane);
        if can_run & !self.turns[warp].parked == 0 {
            self.turns[warp].parked = 0;
        }
        let ready = can_run & !self.turns[warp].parked;
        let places: Vec<_> =
            lanes(ready).filter_map(|lane| Some((self.place_of(first + lane)?, lane))).collect();
        let &(lowest, _) = places.iter().min()?;
        let path =
            places.iter().filter(|(place, _)| *place == lowest).fold(0, |mask, (_, lane)| mask | 1 << lane);
        let turns = &mut self.turns[warp];
        turns.preferred = if path == can_run { 0 } else { turns.preferred + 1 };
        if turns.preferred > PATIENCE {
            turns.preferred = 0;
            turns.parked |= path;
        }
        Some(Turn { warp, lanes: path })
    }

    /// Executes a turn, and what its warp can execute together then. Returns whether threads woke that had waited.
    fn take(&mut self, turn: Turn, time: u64) -> Step<bool> {
        let first = turn.warp * WARP_LANES;
        let leader = first + turn.lanes.trailing_zeros() as usize;
        let function = self.cpu(leader).frame().function;
        let span = self.cpu(leader).next_instruction().map(|instruction| instruction.span);
        let mut yields = false;
        for lane in lanes(turn.lanes) {
            yields |= self.cpu(first + lane).run_slice(1)?;
        }
        if yields {
            self.turns[turn.warp].preferred += ATOMIC;
        }
        let woken = self.wake();
        let together = self.warp(turn.warp)?;
        self.note_divergence(turn, span, function, time);
        Ok(woken || together)
    }

    /// Records that the lanes of a path went different ways, and forgets the lanes that have met again.
    fn note_divergence(&mut self, turn: Turn, span: Option<Span>, function: usize, time: u64) {
        let first = turn.warp * WARP_LANES;
        let ways = |block: &mut Self, mask: u32| {
            // Lanes that have ended are behind all others.
            let mut ways: Vec<(Option<Reverse<Place>>, u32)> = Vec::new();
            for lane in lanes(mask) {
                let place = block.place_of(first + lane).map(Reverse);
                match ways.iter_mut().find(|(other, _)| *other == place) {
                    Some((_, mask)) => *mask |= 1 << lane,
                    None => ways.push((place, 1 << lane)),
                }
            }
            ways.sort_by_key(|&(place, _)| Reverse(place));
            ways
        };
        let mut old = std::mem::take(&mut self.turns[turn.warp].divergences);
        old.retain(|divergence| {
            let all = divergence.ways.iter().fold(0, |all, way| all | way);
            let now = ways(self, all);
            // Apart: two that live are at different places.
            now.iter().filter(|(place, _)| place.is_some()).count() > 1
        });
        let now = ways(self, turn.lanes);
        if let Some(span) = span.filter(|_| now.len() > 1) {
            let ways = now.into_iter().map(|(_, lanes)| lanes).collect();
            old.push(Divergence { span, function, time, ways });
        }
        self.turns[turn.warp].divergences = old;
    }
}

/// A step of a CTA: rounds in which each of its warps takes a turn.
pub(crate) fn step<'l, G: Gate<'l>>(
    flight: &mut [Block<'l>],
    index: usize,
    gate: &mut G,
) -> Result<Progress, G::Halt> {
    let cluster = Rc::clone(&flight[index].cta.cluster);
    let generation = cluster.generation();
    let changes = flight[index].cta.changes;
    let (mut any, mut woken) = (false, false);
    let mut polled = vec![false; flight[index].threads.len()];
    let mut ran = polled.clone();
    flight[index].cta.steps = flight[index].steps();
    for _ in 0..ROUNDS {
        let mut moved = flight[index].wake();
        woken |= moved;
        for thread in &mut flight[index].threads {
            if thread.wait == Wait::Slice {
                thread.wake();
            }
        }
        for warp in 0..flight[index].turns.len() {
            let Some(turn) = flight[index].path(warp) else { continue };
            gate.turn(flight, index, turn)?;
            let block = &mut flight[index];
            let time = block.cta.grid.tick();
            match block.take(turn, time) {
                Ok(others) => woken |= others,
                Err(fault) => return Err(gate.fault(flight, index, fault)),
            }
            for lane in lanes(turn.lanes) {
                let thread = warp * WARP_LANES + lane;
                ran[thread] = true;
                polled[thread] |= block.threads[thread].wait == Wait::Slice;
            }
            moved = true;
        }
        let block = &mut flight[index];
        match block.warps() {
            Ok(together) => (moved, woken) = (moved | together, woken | together),
            Err(fault) => return Err(gate.fault(flight, index, fault)),
        }
        any |= moved;
        if block.threads.iter().all(|thread| thread.wait == Wait::Ended) {
            return match block.cta.check_tensor_memory() {
                Ok(()) => Ok(Progress::Ended),
                Err(fault) => Err(gate.fault(flight, index, fault)),
            };
        }
        if !moved || cluster.generation() != generation {
            break;
        }
    }
    let polling = !woken
        && changes == flight[index].cta.changes
        && ran.iter().zip(&polled).all(|(ran, polled)| ran <= polled);
    Ok(if any { Progress::Running { polling } } else { Progress::Waiting })
}
