//! Observers of the interpreter: none, the profiler, or an external observer (`watch.rs`).
//!
//! The code that runs a gang is generic over its [`Observer`]. The observer `()` compiles to nothing. The profiler
//! counts and measures for each basic block and operation; when its host thread ends, it sums its counts by
//! instruction (`profile.rs`).

use diag::Span;
use ir::{Callee, Extent, Start};
use isa::Space;
use machine::mask::{GROUP_LANES, Mask, WARP_LANES};
use machine::memory::resolve_generic;
use machine::{Accesses, Counts, Profile, Stopwatch};

use super::{Active, Gang, Step};
use crate::code::{Access, Block, Code, Terminator};
use crate::run::Run;
use crate::shared::Shared;

/// Is called for everything that a host thread executes, and may end the run with a fault. The empty default methods
/// cost nothing.
pub(crate) trait Observer {
    /// Whether this is more than the empty observer.
    const WATCHES: bool = true;
    /// CTAs of a cooperative launch yield after each basic block that may communicate with other threads.
    const GIVES_WAY: bool = false;
    /// CTAs begin: the gang's threads are at the entry of the kernel, in this frame.
    #[inline(always)]
    fn start(&mut self, _gang: &Gang, _frame: u32, _mask: Mask) {}
    /// A path enters a basic block.
    #[inline(always)]
    fn enter(&mut self, _function: u32, _block: u32, _mask: Mask) {}
    /// Operation number `_op` of the basic block is about to run.
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
    /// The operation has run.
    #[inline(always)]
    fn after(&mut self) {}
    /// The operation has faulted.
    #[inline(always)]
    fn fault(&mut self) {}
    /// The terminator of the basic block is about to run.
    #[inline(always)]
    fn before_end(&mut self, _gang: &Gang, _shared: &Shared, _block: &Block, _active: &Active) -> Step {
        Ok(())
    }
    /// The terminator has run.
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
    launch: &'l Run<'l>,
    code: &'l Code,
    start: Stopwatch,
    start_ticks: u64,
    /// The time that reading the clock adds to a measurement.
    clock_cost: u64,
    /// Indexed by function and basic block.
    blocks: Vec<Vec<BlockRecord>>,
    /// The running basic block, and how many of its operations have run.
    function: usize,
    block: usize,
    op: usize,
    /// Warps and threads that execute it.
    warps: u64,
    threads: u64,
    /// When the current operation began.
    began: u64,
}

#[derive(Clone, Default)]
struct BlockRecord {
    executions: u64,
    threads: u64,
    diverged: u64,
    /// Time of the terminator.
    time: Time,
    ops: Vec<OpRecord>,
}

#[derive(Clone, Default)]
struct OpRecord {
    time: Time,
    guarded_off: u64,
    accesses: Accesses,
    /// Warps and threads that stopped here because the operation faulted.
    faulted: (u64, u64),
    /// Whether this is the first operation of its instruction with a guard, and the first that accesses memory.
    has_guard: bool,
    has_access: bool,
}

/// Time measurements, in ticks.
#[derive(Clone, Copy, Default)]
struct Time {
    sum: u64,
    count: u64,
}

impl Time {
    /// Adds a measurement. One far above the mean was interrupted by the host and counts as the mean.
    fn add(&mut self, ticks: u64) {
        let mean = self.sum / self.count.max(1);
        let interrupted = self.count >= 8 && ticks > 100 * mean.max(100);
        self.sum += if interrupted { mean } else { ticks };
        self.count += 1;
    }
}

impl<'l> Recorder<'l> {
    pub fn new(launch: &'l Run<'l>, code: &'l Code) -> Recorder<'l> {
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

    /// Time since the current operation began.
    fn elapsed(&self) -> u64 {
        ticks(&self.start).saturating_sub(self.began).saturating_sub(self.clock_cost)
    }

    /// Adds all counts to a profile, by instruction.
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
            // Threads that faulted did not reach the instructions after the fault.
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
        // For a copy, this is the source.
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
    /// Counts the accesses of the warps of `mask` by kind. Changes no registers, so that an observed operation runs
    /// exactly as an unobserved one.
    fn classify(&self, access: &Access, mut mask: Mask, active: &Active, counts: &mut Accesses) {
        let address = match &access.start {
            Start::Address(address) => address,
            // The warp reads the matrix as a whole.
            Start::Descriptor(_) => return counts.vector += mask.warps().count() as u64,
            // The texels lie in several rows.
            Start::Texels => return counts.gather += mask.warps().count() as u64,
            // One thread executes the copy, however long it is.
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
                // Each thread has its own local memory; a GPU interleaves the local memory of a warp's threads.
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

    /// The number of warps whose active threads leave a basic block for different targets.
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

/// Ticks of the host's cheapest clock.
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
