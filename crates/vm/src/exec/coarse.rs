//! Block coarsening: native code takes the threads of many blocks in one go, without a gang.
//!
//! In a kernel such as `y[i] = a * x[i] + y[i]`, everything but one section of straight-line native code steps evenly through the
//! whole grid. A gang computes that again for each 1024 threads, and this takes longer than the section. Here it is computed
//! once for up to [`MOST_LANES`] threads, in affine form: no slot has an array. The basic blocks are followed as far as all
//! threads take the same way.
//!
//! Nothing is written before all is known: the sections of the whole way, and the memory of all their pointers. If something
//! does not fit, the blocks run in gangs as if nothing had been tried. So faults are found there.
//!
//! Narrowest test: `ptxvm/tests/native`, `coarse`.

use std::ops::Range;
use std::sync::atomic::Ordering;

use ir::SimpleOp;
use jit::{Form, Frame, MOST_POINTERS};
use machine::NativeCode;
use machine::mask::{GANG_LANES, GROUP_LANES, WARP_LANES};
use smallvec::SmallVec;

use super::access::region_of_launch;
use super::moves::param;
use super::native::{KnownRegion, form, signed};
use super::request::Request;
use super::straight::{Context, call, fetched_ahead, locate};
use super::strips::{keep_frame, spare_frame};
use crate::affine::{Affine, LaneRows, MOST_LANES};
use crate::code::{
    Base, Code, CompiledStraight, Function, Kind, MAX_SOURCES, Op, Pure, Straight, StraightBlock, Terminator,
    Trace, affine,
};
use crate::cta_batch::{CtaBatch, CtaBatches, axis_along};
use crate::registers::SlotRef;
use crate::run::Run;

/// Threads whose way has more basic blocks run in gangs.
const MOST_BLOCKS: usize = 64;
/// After so many failures in a row, all blocks run in gangs.
const MOST_FAILURES: u32 = 8;

/// Runs ranges of blocks of one launch.
pub(crate) struct Coarse<'l> {
    launch: &'l Run<'l>,
    code: &'l Code,
    function: &'l Function,
    /// The basic blocks with sections, and those that begin traces.
    straight: Vec<&'l StraightBlock>,
    traces: Vec<&'l Trace>,
    /// How the threads of the range form rows.
    rows: LaneRows,
    /// The values of slots by index, if they are affine.
    values: Vec<Option<Affine>>,
    /// Those that are the same on entry in every range with such rows.
    entry: Option<(LaneRows, Vec<Option<Affine>>)>,
    /// The memory that each pointer of a section has had.
    regions: Vec<Option<KnownRegion>>,
    /// How many CTA batches are tried next, and failures since the last success. Where many do not fit, half of them may.
    most: u64,
    failures: u32,
}

/// Blocks that have run to their end.
pub(crate) struct Done {
    pub blocks: u64,
    /// Thread-instructions.
    pub instructions: u64,
}

/// A section on the way of the threads.
struct Section<'l> {
    straight: &'l Straight,
    code: &'l CompiledStraight,
    rows: LaneRows,
    /// The host's addresses for each pointer. They are a line in each block.
    pointers: SmallVec<[Affine; MOST_POINTERS]>,
    /// The values of each even, likewise.
    evens: SmallVec<[Affine; 8]>,
}

impl<'l> Coarse<'l> {
    /// `None`: no blocks of this launch can run so.
    pub fn new(launch: &'l Run<'l>, code: &'l Code) -> Option<Coarse<'l>> {
        let function = code.functions.get(launch.entry().0 as usize)?.as_ref()?;
        let native = launch.native_code != NativeCode::Never;
        let whole_warps = launch.config().block_threads().is_multiple_of(WARP_LANES as u64);
        let straight: Vec<_> = function.blocks.iter().filter_map(|block| block.straight.as_deref()).collect();
        let traces: Vec<_> = function.blocks.iter().filter_map(|block| block.trace.as_deref()).collect();
        let none = straight.is_empty() && traces.is_empty();
        if !native || !whole_warps || launch.cluster_blocks() > 1 || none {
            return None;
        }
        Some(Coarse {
            launch,
            code,
            function,
            straight,
            traces,
            rows: LaneRows::of([0; 3], 0, 1),
            values: Vec::new(),
            entry: None,
            regions: vec![None; code.native_accesses],
            most: u64::MAX,
            failures: 0,
        })
    }

    /// Runs the first of these CTA batches to their end, as many as fit, and takes them out of the range. `None`: nothing has run.
    pub fn run(&mut self, batches: &CtaBatches, range: &mut Range<u64>) -> Option<Done> {
        let when = self.launch.native_code;
        let is_hot = self.straight.iter().any(|block| block.is_hot(when));
        if !is_hot && !self.traces.iter().any(|trace| trace.is_hot(when)) {
            return None;
        }
        while !range.is_empty() && !self.gives_up() {
            let count = self.most.min(range.end - range.start);
            let some = range.start..range.start + count;
            if let Some(done) = batches.joined(&some).and_then(|blocks| self.run_blocks(blocks)) {
                (self.most, self.failures) = (2 * count, 0);
                range.start = some.end;
                self.code.coarsens.store(true, Ordering::Relaxed);
                return Some(done);
            }
            (self.most, self.failures) = ((count / 2).max(1), self.failures + 1);
            self.code.coarsens.store(false, Ordering::Relaxed);
            if count == 1 {
                break;
            }
        }
        None
    }

    /// Large ranges of CTA batches are likely to run at once. Where they do not, other host threads should have a part of them.
    pub fn is_likely(&self) -> bool {
        self.code.coarsens.load(Ordering::Relaxed)
    }

    /// It has failed too often.
    pub fn gives_up(&self) -> bool {
        self.failures >= MOST_FAILURES
    }

    fn run_blocks(&mut self, blocks: CtaBatch) -> Option<Done> {
        let config = self.launch.config();
        let lanes = config.block_threads() as usize * blocks.blocks;
        if lanes > MOST_LANES {
            return None;
        }
        let first = self.launch.ctaid(blocks.first);
        let along = axis_along(config.grid, first, blocks)?;
        let mut last = first;
        last[along] += blocks.blocks as u32 - 1;
        self.enter(LaneRows::of(config.block, lanes, blocks.blocks), ([first, last], Some(along)))?;
        let (sections, cost) = self.follow()?;
        for section in &sections {
            section.run();
        }
        Some(Done { blocks: blocks.blocks as u64, instructions: cost * lanes as u64 })
    }

    /// Sets the slots that have a value on entry.
    fn enter(&mut self, rows: LaneRows, ctaids: ([[u32; 3]; 2], Option<usize>)) -> Option<()> {
        let (function, launch) = (self.function, self.launch);
        let special = |special| affine(special, launch, ctaids, 0, rows);
        self.rows = rows;
        match &self.entry {
            Some((known, entry)) if *known == rows => self.values.clone_from(entry),
            _ => {
                self.values.clear();
                self.values.resize(function.slots as usize, None);
                for &(slot, value) in &function.constants {
                    self.set(slot, Some(Affine::uniform(value)));
                }
                for &(slot, register) in &function.specials {
                    self.set(slot, special(register));
                }
                for op in &function.prologue {
                    self.execute(op)?;
                }
                self.entry = Some((rows, self.values.clone()));
            }
        }
        for &(slot, register) in &function.block_specials {
            self.set(slot, special(register));
        }
        for &index in &function.zeros {
            self.values[index as usize] = Some(Affine::uniform(0));
        }
        Some(())
    }

    /// Follows the way of the threads to its end. Returns its sections, and the instructions of a thread.
    fn follow(&mut self) -> Option<(SmallVec<[Section<'l>; 2]>, u64)> {
        let (mut sections, mut cost, mut index) = (SmallVec::new(), 0, 0);
        for _ in 0..MOST_BLOCKS {
            let mut block = &self.function.blocks[index as usize];
            if let Some(trace) = &block.trace
                && let Some(section) = self.trace(trace)
            {
                sections.push(section);
                cost += trace.cost;
                block = &self.function.blocks[trace.last as usize];
            } else {
                let ops = match &block.straight {
                    Some(straight) if straight.is_hot(self.launch.native_code) => &straight.ops,
                    Some(_) => return None,
                    None => &block.ops,
                };
                for op in ops {
                    match &op.kind {
                        Kind::Straight(straight) => sections.push(self.section(straight)?),
                        _ => self.execute(op)?,
                    }
                }
                cost += block.cost;
            }
            index = match block.terminator {
                Terminator::Jump(next) => next.0,
                Terminator::Branch { pred, negated, taken, otherwise } => {
                    if (self.uniform(pred)? != 0) == negated { otherwise.0 } else { taken.0 }
                }
                Terminator::Return | Terminator::Exit => return Some((sections, cost)),
                _ => return None,
            };
        }
        None
    }

    /// What native code computes of a trace, if all threads go its way.
    fn trace(&mut self, trace: &'l Trace) -> Option<Section<'l>> {
        trace.before.iter().try_for_each(|op| self.execute(op))?;
        if !trace.some.is_empty() || !trace.is_way(|slot| self.uniform(slot)) {
            return None;
        }
        let section = self.section(&trace.section)?;
        trace.after.iter().try_for_each(|op| self.execute(op))?;
        Some(section)
    }

    fn value(&self, slot: SlotRef) -> Option<&Affine> {
        self.values[slot.index as usize].as_ref()
    }

    fn uniform(&self, slot: SlotRef) -> Option<u64> {
        self.value(slot).filter(|value| value.is_uniform()).map(|value| value.base)
    }

    fn set(&mut self, slot: SlotRef, value: Option<Affine>) {
        self.values[slot.index as usize] = value.map(|value| value.map(|part| slot.width.truncate(part)));
    }

    /// Executes an operation on affine forms. `None`: it may do more than define registers.
    fn execute(&mut self, op: &Op) -> Option<()> {
        if let Some(guard) = op.guard
            && (self.uniform(guard.slot)? != 0) == guard.negated
        {
            return Some(());
        }
        let (dst, value) = match op.kind {
            Kind::Pure(ref pure) => {
                for (dst, value) in pure.dst.iter().zip(self.results(pure)) {
                    if let Some(dst) = *dst {
                        self.set(dst, value);
                    }
                }
                return Some(());
            }
            Kind::Param { dst, offset, bytes, signed } => {
                (dst, Some(Affine::uniform(param(self.launch, offset, bytes, signed))))
            }
            Kind::AddressOf { dst, base: Base::Zero, offset } => (dst, Some(Affine::uniform(offset))),
            Kind::Simple(SimpleOp::Copy { dst, src }) => (dst, self.value(src).copied()),
            Kind::Simple(SimpleOp::Not { dst, src }) => {
                (dst, self.uniform(src).map(|value| Affine::uniform(value ^ 1)))
            }
            Kind::Simple(SimpleOp::Offset { dst, src, addend }) => {
                (dst, self.value(src).map(|value| value.plus(&Affine::uniform(addend as u64))))
            }
            _ => return None,
        };
        self.set(dst, value);
        Some(())
    }

    /// What a pure operation computes.
    fn results(&self, op: &Pure) -> [Option<Affine>; 2] {
        if let [Some(dst), None] = op.dst
            && let [Some(a), Some(b), Some(c)] = op.linear_src.map(|slot| self.value(slot))
            && let Some(result) = op.linear.apply([a, b, c], dst.width, self.rows)
        {
            return [Some(result), None];
        }
        let mut values = [0; MAX_SOURCES];
        for (value, &slot) in values.iter_mut().zip(op.src()) {
            let Some(uniform) = self.uniform(slot) else { return [None; 2] };
            *value = uniform;
        }
        (op.sem)(&op.picks, &values[..op.sources]).map(|result| Some(Affine::uniform(result)))
    }

    /// A value that steps evenly from thread to thread of a block.
    fn line(&self, affine: Affine) -> Option<Affine> {
        affine.is_linear_in_block(affine.step, self.rows).then_some(affine)
    }

    /// A section whose only operands are memory and values that step evenly.
    fn section(&mut self, straight: &'l Straight) -> Option<Section<'l>> {
        if !straight.guards_hold(|slot| self.uniform(slot)) {
            return None;
        }
        let code = straight.code(|slot| self.form(slot))?;
        if !code.words.is_empty() || !straight.predicates.is_empty() {
            return None;
        }
        let mut evens = SmallVec::new();
        for &slot in &code.evens {
            evens.push(self.line(signed(*self.value(slot)?, slot))?);
        }
        let mut pointers = SmallVec::new();
        for (index, pointer) in straight.plan.pointers.iter().enumerate() {
            let affine = *self.value(straight.pointers[index])?;
            let known = &mut self.regions[straight.first_region + index];
            let find =
                |request: &Request, least, greatest| region_of_launch(self.launch, request, least, greatest);
            let (place, _) = locate(known, pointer, affine, self.rows, find)?;
            pointers.push(self.line(place)?);
        }
        Some(Section { straight, code, rows: self.rows, pointers, evens })
    }

    /// How a slot steps, as native code must know it.
    fn form(&self, slot: SlotRef) -> Option<Form> {
        form(signed(*self.value(slot)?, slot), self.rows)
    }
}

impl Section<'_> {
    /// Takes all threads through the code: as many blocks at a time as a frame has lanes for.
    fn run(&self) {
        let of_strip = self.code.native.parts() * GROUP_LANES;
        let of_block = self.rows.block_lanes();
        let mut context = Context { calls: &self.straight.calls, lanes: of_strip };
        let mut frame = spare_frame();
        frame.lanes = [u64::MAX; GANG_LANES / 64];
        (frame.call, frame.context) = (call, (&raw mut context).cast());
        // A run of strips is a block.
        let steps = |affine: &Affine| {
            let advance = affine.step.wrapping_mul(of_strip as u64);
            let to_last = affine.step.wrapping_mul((of_block - of_strip) as u64);
            (advance, affine.block_stride.wrapping_sub(to_last))
        };
        for (index, pointer) in self.pointers.iter().enumerate() {
            (frame.advance.pointers[index], frame.jump.pointers[index]) = steps(pointer);
            frame.ahead[index] = fetched_ahead(pointer);
        }
        for (index, even) in self.evens.iter().enumerate() {
            (frame.advance.evens[index], frame.jump.evens[index]) = steps(even);
        }
        frame.run = (of_block / of_strip) as u64;
        let (blocks, at_once) = (self.rows.blocks(), GANG_LANES / of_block);
        for first in (0..blocks).step_by(at_once) {
            let at =
                |affine: &Affine| affine.base.wrapping_add(affine.block_stride.wrapping_mul(first as u64));
            for (place, pointer) in frame.pointers.iter_mut().zip(&self.pointers) {
                *place = at(pointer);
            }
            for (index, (even, slot)) in self.evens.iter().zip(&self.code.evens).enumerate() {
                let base = slot.width.truncate(at(even));
                (frame.bases[index], frame.entered[index]) = (base, base);
            }
            (frame.strip, frame.left_in_run) = (0, frame.run);
            frame.end = frame.run * (blocks - first).min(at_once) as u64;
            self.call(&mut frame);
        }
        keep_frame(frame);
    }

    fn call(&self, frame: &mut Frame) {
        // SAFETY: the code was made for the machine's vectors. It has no words. Its pointers are into memory of the launch, which
        // lives as long as that, and have been checked for all threads.
        unsafe { self.code.native.run(frame) }
    }
}
