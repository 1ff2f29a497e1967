//! Who watches the interpreter: nobody, the profiler, or an observer from outside (`watch.rs`).
//!
//! What runs a gang is generic over who watches it ([`Observer`]). Nobody, `()`, costs nothing. The profiler counts and measures by block
//! and operation, and sorts its counts by instruction (`profile.rs`) when its host thread is done.

use diag::Span;
use isa::Space;

use super::{Active, Gang, Step};
use crate::code::{Access, Block, Callee, Code, Extent, Start, Terminator};
use crate::cta::Shared;
use crate::grid::Launch;
use crate::mask::{GROUP_LANES, Mask, WARP_LANES};
use crate::memory::resolve_generic;
use crate::profile::{Accesses, Counts, Profile};
use crate::stopwatch::Stopwatch;

/// Sees everything that a host thread executes, and may end the run with a fault. Whoever does nothing costs nothing.
pub(crate) trait Observer {
    /// Somebody watches.
    const WATCHES: bool = true;
    /// Blocks of a cooperative launch give their turns away wherever they may tell others something.
    const GIVES_WAY: bool = false;
    /// Blocks begin: a gang has its threads at the entry of the kernel, in this frame.
    #[inline(always)]
    fn start(&mut self, _gang: &Gang, _frame: u32, _mask: Mask) {}
    /// A path comes to a block.
    #[inline(always)]
    fn enter(&mut self, _function: u32, _block: u32, _mask: Mask) {}
    /// An operation of the block, by its number, is about to run.
    #[inline(always)]
    fn before(
        &mut self,
        _gang: &Gang,
        _shared: &Shared,
        _block: &Block,
        _op: usize,
        _active: &Active,
    ) -> Step {
        Ok(())
    }
    /// Lanes meet at `bar.warp.sync` from different places, each with its member mask.
    #[inline(always)]
    fn warp_sync(&mut self, _gang: &Gang, _span: Span, _mask: Mask, _members: impl Fn(usize) -> u32) {}
    /// It has run.
    #[inline(always)]
    fn after(&mut self) {}
    /// It has faulted.
    #[inline(always)]
    fn fault(&mut self) {}
    /// The block is about to end.
    #[inline(always)]
    fn before_end(&mut self, _gang: &Gang, _shared: &Shared, _block: &Block, _active: &Active) -> Step {
        Ok(())
    }
    /// It has ended.
    #[inline(always)]
    fn after_end(&mut self, _gang: &Gang, _shared: &Shared, _block: &Block, _active: &Active) -> Step {
        Ok(())
    }
}

impl Observer for () {
    const WATCHES: bool = false;
}

/// Counts what a host thread executes, and measures how long it takes.
pub(crate) struct Recorder<'l> {
    launch: &'l Launch,
    code: &'l Code,
    start: Stopwatch,
    start_ticks: u64,
    /// What reading the clock adds to a measurement.
    clock_cost: u64,
    /// By function and block.
    blocks: Vec<Vec<BlockRecord>>,
    /// The block that runs, and how many of its operations have run.
    function: usize,
    block: usize,
    op: usize,
    /// Warps and threads in it.
    warps: u64,
    threads: u64,
    /// When the last operation began.
    began: u64,
}

#[derive(Clone, Default)]
struct BlockRecord {
    executions: u64,
    threads: u64,
    diverged: u64,
    /// Of its end.
    time: Time,
    ops: Vec<OpRecord>,
}

#[derive(Clone, Default)]
struct OpRecord {
    time: Time,
    guarded_off: u64,
    accesses: Accesses,
    /// Warps and threads that came no further, since it faulted.
    faulted: (u64, u64),
    /// The first operation of its instruction that has a guard, and that accesses memory.
    has_guard: bool,
    has_access: bool,
}

/// How long something took, in ticks.
#[derive(Clone, Copy, Default)]
struct Time {
    sum: u64,
    count: u64,
}

impl Time {
    /// Adds a measurement. One that is far off the others was interrupted by the host, and counts as they do.
    fn add(&mut self, ticks: u64) {
        let mean = self.sum / self.count.max(1);
        let interrupted = self.count >= 8 && ticks > 100 * mean.max(100);
        self.sum += if interrupted { mean } else { ticks };
        self.count += 1;
    }
}

impl<'l> Recorder<'l> {
    pub fn new(launch: &'l Launch, code: &'l Code) -> Recorder<'l> {
        let blocks =
            code.functions.iter().map(|f| f.iter().flat_map(|f| f.blocks.iter().map(record)).collect());
        let start = Stopwatch::start();
        Recorder {
            launch,
            code,
            start_ticks: ticks(&start),
            clock_cost: (0..100).map(|_| ticks(&start).abs_diff(ticks(&start))).min().unwrap_or(0),
            start,
            blocks: blocks.collect(),
            function: 0,
            block: 0,
            op: 0,
            warps: 0,
            threads: 0,
            began: 0,
        }
    }

    /// Time since the last operation began.
    fn elapsed(&self) -> u64 {
        ticks(&self.start).saturating_sub(self.began).saturating_sub(self.clock_cost)
    }

    /// Adds everything up, by instruction.
    pub fn add_to(self, profile: &mut Profile) {
        let ticks = ticks(&self.start).saturating_sub(self.start_ticks).max(1);
        let tick = self.start.elapsed().as_secs_f64() / ticks as f64;
        let functions = self.launch.program().functions.iter().zip(&self.code.functions).zip(self.blocks);
        for ((lowered, code), records) in functions {
            let (Some(lowered), Some(code)) = (lowered, code) else { continue };
            for ((lowered, block), record) in lowered.blocks.iter().zip(&code.blocks).zip(records) {
                record.add_to(profile, &lowered.instructions, block, tick);
            }
        }
    }
}

fn record(block: &Block) -> BlockRecord {
    let mut ops: Vec<OpRecord> = Vec::with_capacity(block.ops.len());
    let (mut guarded, mut accessed) = (None, None);
    for (op, accesses) in block.ops.iter().zip(&block.accesses) {
        let first = |seen: &mut Option<Span>, is: bool| is && seen.replace(op.span) != Some(op.span);
        ops.push(OpRecord {
            has_guard: first(&mut guarded, op.guard.is_some()),
            has_access: first(&mut accessed, !accesses.is_empty()),
            ..OpRecord::default()
        });
    }
    BlockRecord { ops, ..BlockRecord::default() }
}

impl BlockRecord {
    fn add_to(&self, profile: &mut Profile, instructions: &[Span], block: &Block, tick: f64) {
        let (mut executions, mut threads) = (self.executions, self.threads);
        let mut faulted =
            block.ops.iter().zip(&self.ops).filter(|(_, record)| record.faulted.0 > 0).peekable();
        for &span in instructions {
            // Nobody came to what stands behind a fault.
            while let Some((_, record)) = faulted.next_if(|(op, _)| op.span < span) {
                executions -= record.faulted.0;
                threads -= record.faulted.1;
            }
            profile.add(span, &Counts { executions, threads, ..Counts::default() });
        }
        for (op, record) in block.ops.iter().zip(&self.ops) {
            let OpRecord { guarded_off, accesses, .. } = *record;
            let seconds = record.time.sum as f64 * tick;
            profile.add(op.span, &Counts { guarded_off, accesses, seconds, ..Counts::default() });
        }
        let seconds = self.time.sum as f64 * tick;
        if seconds > 0.0 || self.diverged > 0 {
            profile.add(block.span, &Counts { diverged: self.diverged, seconds, ..Counts::default() });
        }
    }
}

impl Observer for Recorder<'_> {
    fn enter(&mut self, function: u32, block: u32, mask: Mask) {
        (self.function, self.block, self.op) = (function as usize, block as usize, 0);
        self.warps = mask.warps().count() as u64;
        self.threads = mask.count().into();
        let record = &mut self.blocks[self.function][self.block];
        record.executions += self.warps;
        record.threads += self.threads;
    }

    fn before(&mut self, gang: &Gang, _: &Shared, block: &Block, index: usize, active: &Active) -> Step {
        let op = &block.ops[index];
        let record = &mut self.blocks[self.function][self.block].ops[self.op];
        let mut mask = active.mask;
        if let Some(guard) = op.guard {
            mask &= gang.holds(guard, active);
            if record.has_guard {
                record.guarded_off += u64::from(active.mask.count() - mask.count());
            }
        }
        // Of a copy the source.
        if record.has_access
            && let Some(access) = block.accesses[index].first()
        {
            gang.classify(access, mask, active, &mut record.accesses);
        }
        self.began = ticks(&self.start);
        Ok(())
    }

    fn after(&mut self) {
        let ticks = self.elapsed();
        self.blocks[self.function][self.block].ops[self.op].time.add(ticks);
        self.op += 1;
    }

    fn fault(&mut self) {
        let record = &mut self.blocks[self.function][self.block].ops[self.op];
        record.faulted.0 += self.warps;
        record.faulted.1 += self.threads;
    }

    fn before_end(&mut self, gang: &Gang, _: &Shared, block: &Block, active: &Active) -> Step {
        self.blocks[self.function][self.block].diverged += gang.diverging_warps(block, active);
        self.began = ticks(&self.start);
        Ok(())
    }

    fn after_end(&mut self, _: &Gang, _: &Shared, _: &Block, _: &Active) -> Step {
        let ticks = self.elapsed();
        self.blocks[self.function][self.block].time.add(ticks);
        Ok(())
    }
}

impl Gang<'_> {
    /// Counts the accesses of the warps of `mask` by kind. Changes nothing in the registers, so that an observed
    /// operation runs as it does unobserved.
    fn classify(&self, access: &Access, mut mask: Mask, active: &Active, counts: &mut Accesses) {
        let address = match &access.start {
            Start::Address(address) => address,
            // The warp reads a matrix as a whole.
            Start::Descriptor(_) => return counts.vector += mask.warps().count() as u64,
            // Texels lie in several rows.
            Start::Texels => return counts.gather += mask.warps().count() as u64,
            // A copy is done by one thread, however long it is.
            Start::Tensor | Start::Box(_) => return counts.vector += mask.warps().count() as u64,
        };
        let bytes = match access.extent {
            Extent::Bytes(bytes) | Extent::AtMost { bytes, .. } => bytes.into(),
            Extent::Slot(size) => {
                let lane = mask.lowest().unwrap_or(0);
                self.registers.get(active.window, size, lane)
            }
            Extent::Rows(rows) => {
                for (warp, lanes) in mask.warps().collect::<Vec<_>>() {
                    mask.set_warp(warp, lanes & (u32::MAX >> (32 - rows.clamp(1, 32))));
                }
                ROW_BYTES
            }
            Extent::Matrix { .. } | Extent::Factor | Extent::Texels | Extent::Lines => {
                counts.vector += mask.warps().count() as u64;
                return;
            }
        };
        let at = self.lane_addresses(address, active);
        for (warp, _) in mask.warps() {
            let (mut same, mut consecutive, mut own) = (true, true, false);
            for group in [0, 1].map(|half| warp * WARP_LANES + half * GROUP_LANES) {
                let mut lanes = (group..group + GROUP_LANES).filter(|&lane| mask.contains(lane)).peekable();
                let Some(&lowest) = lanes.peek() else { continue };
                let first = at(lowest);
                for lane in lanes {
                    let distance = at(lane).wrapping_sub(first);
                    same &= distance == 0;
                    consecutive &= distance == ((lane - lowest) as u64).wrapping_mul(bytes);
                }
                // Every thread has local memory of its own, and a GPU lays those of a warp side by side.
                own |= match address.space {
                    Space::Generic => resolve_generic(first).0 == Space::Local,
                    space => space == Space::Local,
                };
            }
            match (same, consecutive) {
                (true, _) if own => counts.vector += 1,
                (true, _) => counts.broadcast += 1,
                (_, true) if !own => counts.vector += 1,
                _ => counts.gather += 1,
            }
        }
    }

    /// Warps whose active threads leave a block for different places.
    fn diverging_warps(&self, block: &Block, active: &Active) -> u64 {
        let ways: Vec<Mask> = match &block.terminator {
            Terminator::Branch { pred, taken, otherwise, .. } if taken != otherwise => {
                let goes = active.mask & self.registers.predicate(active.window, *pred);
                vec![goes, active.mask.without(goes)]
            }
            Terminator::BranchIndexed { index: slot, .. } => self.ways(*slot, active),
            Terminator::Call(call) => match call.callee {
                Callee::Indirect(slot, _) => self.ways(slot, active),
                Callee::Direct(_) => return 0,
            },
            _ => return 0,
        };
        let leaves_by_several =
            |&(warp, _): &(usize, u32)| ways.iter().filter(|way| way.warp(warp) != 0).count() > 1;
        active.mask.warps().filter(leaves_by_several).count() as u64
    }

    fn ways(&self, slot: crate::registers::SlotRef, active: &Active) -> Vec<Mask> {
        self.distinct(slot, active).into_iter().map(|(_, mask)| mask).collect()
    }
}

/// Bytes of a row of a matrix whose address one lane gives.
pub(super) const ROW_BYTES: u64 = 16;

/// Ticks of the fastest clock that the host has.
fn ticks(start: &Stopwatch) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let _ = start;
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        start.elapsed().as_nanos() as u64
    }
}
