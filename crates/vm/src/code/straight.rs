//! Basic blocks whose operations on all lanes may run as native code together (crate `jit`).
//!
//! Such a basic block has its operations twice: as the interpreter runs them, fused, and for native code. There, one operation
//! ([`Straight`]) stands for all of a section, in the place of the last of them. Which ones run is measured.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ir::Slot;
use jit::{Form, Host};
use machine::NativeCode;

use super::Op;
use super::build::Builder;
use super::native::steps_in_line;
use super::{Block, Guard, Kind, Trace, perf};
use crate::registers::SlotRef;

/// Operations that may run as native code together.
pub(crate) struct Straight {
    pub plan: jit::Straight,
    name: String,
    host: Host,
    /// The operations themselves, for the interpreter. A trace has none.
    pub ops: Vec<Op>,
    /// The operations that vector handlers compute.
    pub calls: Vec<Op>,
    /// The slots of `plan.pointers`.
    pub pointers: Vec<SlotRef>,
    /// Those of `plan.guards`.
    guards: Vec<Guard>,
    /// The slots of `plan.predicates`. The second part: the code writes it.
    pub predicates: Vec<(SlotRef, bool)>,
    /// Index of its first pointer among the regions of all code. Behind these are those of the accesses that it checks itself.
    pub first_region: usize,
    /// The function's slots.
    slots: Arc<[SlotRef]>,
    /// For different forms of the slots, in the order in which they have come.
    versions: [OnceLock<Option<CompiledStraight>>; 4],
}

/// Machine code for a section.
pub(crate) struct CompiledStraight {
    pub native: jit::Native,
    pub words: Vec<Word>,
    /// The slots of its evens.
    pub evens: Vec<SlotRef>,
    /// How the slots of its pointers step.
    forms: Vec<Option<Form>>,
}

/// A slot that the code reads or writes lane by lane.
pub(crate) struct Word {
    pub slot: SlotRef,
    pub defined: bool,
    /// The code reads it before it writes it.
    pub enters: bool,
}

/// A basic block with sections.
pub(crate) struct StraightBlock {
    pub ops: Vec<Op>,
    /// All sections are small.
    is_small: bool,
    pace: Pace,
}

/// A basic block's code for the threads of many blocks.
#[derive(Default)]
pub(crate) struct OfBlocks {
    /// The operations, if some are in sections.
    pub ops: Option<Vec<Op>>,
    pub trace: Option<Trace>,
}

/// Whether code that has been visited so often is worth compiling.
pub(super) fn is_hot(when: NativeCode, visits: &AtomicU32) -> bool {
    match when {
        NativeCode::Hot => visits.load(Ordering::Relaxed) >= COLD,
        NativeCode::Always => true,
        _ => false,
    }
}

/// Whether a guard holds in all lanes. `uniform`: the value of a slot that is the same in all of them.
pub(super) fn holds(guard: &Guard, uniform: impl Fn(SlotRef) -> Option<u64>) -> bool {
    uniform(guard.slot).is_some_and(|value| (value != 0) != guard.negated)
}

impl Straight {
    /// Whether the guards hold in all lanes. `uniform`: the value of a slot that is the same in all of them.
    pub fn guards_hold(&self, uniform: impl Fn(SlotRef) -> Option<u64>) -> bool {
        self.guards.iter().all(|guard| holds(guard, &uniform))
    }

    /// The machine code. `form`: how a slot steps now.
    pub fn code(&self, form: impl Fn(SlotRef) -> Option<Form>) -> Option<&CompiledStraight> {
        let fits = |code: &CompiledStraight| {
            let mut evens = code.native.evens().iter().zip(&code.evens);
            let mut pointers = code.forms.iter().zip(&self.pointers);
            evens.all(|(even, &slot)| form(slot) == Some(even.form))
                && pointers.all(|(known, &slot)| form(slot) == *known)
        };
        for version in &self.versions {
            match version.get_or_init(|| self.compile(&form)) {
                Some(code) if fits(code) => return Some(code),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }

    fn compile(&self, form: impl Fn(SlotRef) -> Option<Form>) -> Option<CompiledStraight> {
        let native = self.plan.compile(self.host, |slot: Slot| form(self.slots[slot.index()]))?;
        perf::note(&self.name, native.code());
        let word = |value: &jit::Value| Word {
            slot: self.slots[value.slot.index()],
            defined: value.defined,
            enters: self.plan.enters(value.slot),
        };
        Some(CompiledStraight {
            words: native.words().iter().map(word).collect(),
            evens: native.evens().iter().map(|even| self.slots[even.slot.index()]).collect(),
            forms: self.pointers.iter().map(|&slot| form(slot)).collect(),
            native,
        })
    }
}

/// How often a basic block is interpreted before both ways are tried.
pub(super) const COLD: u32 = 32;
/// So many visits go one way, and then as many the other. The first of them are not measured.
const TURN: u32 = 8;
const FIRST: u32 = 2;
/// How many visits of both ways are tried together.
const TRIAL: u32 = 24 * TURN;
/// What native code must take of the interpreter's time at most, so that chance does not decide.
const GAIN: f64 = 0.95;
/// After so many more interpreted visits both are tried again: the data may be others.
const AGAIN: u32 = 1 << 14;

/// Which way a basic block goes.
struct Pace {
    /// Visits so far. They are counted until native code is chosen.
    visits: AtomicU32,
    is_native: AtomicBool,
    /// The least time of a lane, in 2^-20 nanoseconds: interpreted, and as native code. Means would tell of what else the host does.
    least: [AtomicU64; 2],
}

/// What a visit is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Interpret,
    Native,
}

/// A visit that is measured.
pub(crate) struct Measured {
    start: Instant,
    visit: Visit,
}

impl StraightBlock {
    /// How a visit runs, and whether it is measured.
    #[inline]
    pub fn visit(&self, when: NativeCode) -> (Visit, Option<Measured>) {
        match when {
            _ if self.is_small => (Visit::Interpret, None),
            NativeCode::Hot => self.pace.visit(),
            NativeCode::Always => (Visit::Native, None),
            _ => (Visit::Interpret, None),
        }
    }

    /// Whether native code is worth compiling. Without a gang it is the faster way, too, where the interpreter is as fast in a gang.
    pub fn is_hot(&self, when: NativeCode) -> bool {
        is_hot(when, &self.pace.visits)
    }

    /// Whether the threads of many blocks may go through the sections: they are hot, or small ones beside hot ones.
    pub fn is_ready(&self, when: NativeCode) -> bool {
        self.is_small || self.is_hot(when)
    }

    /// Notes how long a visit of so many lanes took.
    pub fn note(&self, measured: &Measured, lanes: usize) {
        let time = measured.start.elapsed().as_nanos() as u64;
        let of_lane = (time << 20) / lanes.max(1) as u64;
        self.pace.least[usize::from(measured.visit == Visit::Native)].fetch_min(of_lane, Ordering::Relaxed);
    }
}

impl Pace {
    fn new() -> Pace {
        let least = [0; 2].map(|_| AtomicU64::new(u64::MAX));
        Pace { visits: AtomicU32::new(0), is_native: AtomicBool::new(false), least }
    }

    #[inline]
    fn visit(&self) -> (Visit, Option<Measured>) {
        if self.is_native.load(Ordering::Relaxed) {
            return (Visit::Native, None);
        }
        // Host threads may lose some of each other's counts.
        let visits = self.visits.load(Ordering::Relaxed);
        self.visits.store(visits + 1, Ordering::Relaxed);
        match visits {
            0..COLD => (Visit::Interpret, None),
            COLD..TRIED => {
                let visit = if (visits / TURN).is_multiple_of(2) { Visit::Interpret } else { Visit::Native };
                let is_measured = visits % TURN >= FIRST;
                (visit, is_measured.then(|| Measured { start: Instant::now(), visit }))
            }
            TRIED => {
                let [interpreted, native] = [0, 1].map(|way| self.least[way].load(Ordering::Relaxed) as f64);
                self.is_native.store(native < GAIN * interpreted, Ordering::Relaxed);
                (Visit::Interpret, None)
            }
            _ => {
                if visits > AGAIN {
                    self.least.iter().for_each(|least| least.store(u64::MAX, Ordering::Relaxed));
                    self.visits.store(COLD, Ordering::Relaxed);
                }
                (Visit::Interpret, None)
            }
        }
    }
}

const TRIED: u32 = COLD + TRIAL;

impl Builder<'_> {
    /// Makes room for the temporaries of sections, and gives basic blocks their sections and traces.
    pub(super) fn straight_code(&mut self, host: Host, blocks: &mut [Block]) {
        let found = jit::straight(self.function, host, steps_in_line);
        self.add_slots(found.temporaries.iter().copied());
        let slots = Arc::from(&self.slots[..]);
        for (index, items) in found.of_gang.blocks {
            let is_small = items.iter().filter_map(jit::Item::section).all(|section| section.is_small);
            let ops = self.items(index, items, host, &slots);
            blocks[index as usize].straight =
                Some(Box::new(StraightBlock { ops, is_small, pace: Pace::new() }));
        }
        for (index, trace) in self.traces(found.of_gang.traces, host, &slots, blocks) {
            blocks[index as usize].trace = Some(Box::new(trace));
        }
        let Some(of_blocks) = found.of_blocks else { return };
        blocks.iter_mut().for_each(|block| block.of_blocks = Some(Box::default()));
        for (index, items) in of_blocks.blocks {
            if let Some(block) = &mut blocks[index as usize].of_blocks {
                block.ops = Some(self.items(index, items, host, &slots));
            }
        }
        for (index, trace) in self.traces(of_blocks.traces, host, &slots, blocks) {
            if let Some(block) = &mut blocks[index as usize].of_blocks {
                block.trace = Some(trace);
            }
        }
    }

    /// The operations of a basic block, with a section in the place of its operations.
    fn items(&self, index: u32, items: Vec<jit::Item>, host: Host, slots: &Arc<[SlotRef]>) -> Vec<Op> {
        let of_item = |item: jit::Item| match item {
            jit::Item::Op(op) => self.op(&op),
            jit::Item::Section(plan) => {
                let span = plan.operations[0].span;
                let ops = plan.operations.iter().map(|op| self.op(op)).collect();
                let section = Straight { ops, ..self.section(index, plan, host, slots) };
                Op { guard: None, span, kind: Kind::Straight(Box::new(section)) }
            }
        };
        items.into_iter().map(of_item).collect()
    }

    pub(super) fn section(
        &self,
        index: u32,
        plan: jit::Straight,
        host: Host,
        slots: &Arc<[SlotRef]>,
    ) -> Straight {
        let first_region = self.counts.native_accesses.get();
        self.counts.native_accesses.set(first_region + plan.pointers.len() + plan.checked.len());
        let calls: Vec<Op> = plan.calls.iter().map(|&at| self.op(&plan.operations[at])).collect();
        debug_assert!(calls.iter().all(Op::has_function), "products have native code on some host");
        Straight {
            name: format!("{}, in basic block {index}", self.name),
            host,
            ops: Vec::new(),
            calls,
            guards: plan.guards.iter().map(|guard| guard.map(|slot| self.slot(slot))).collect(),
            pointers: plan.pointers.iter().map(|pointer| self.slot(pointer.base)).collect(),
            predicates: plan
                .predicates()
                .iter()
                .map(|value| (self.slot(value.slot), value.defined))
                .collect(),
            first_region,
            slots: Arc::clone(slots),
            versions: std::array::from_fn(|_| OnceLock::new()),
            plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_chosen() {
        for (native, expected) in [(80, Visit::Native), (97, Visit::Interpret), (120, Visit::Interpret)] {
            let pace = Pace::new();
            let mut tried = [0; 2];
            for _ in 0..TRIED {
                let (visit, measured) = pace.visit();
                tried[usize::from(visit == Visit::Native)] += u32::from(measured.is_some());
            }
            assert_eq!(tried, [TRIAL / 2 / TURN * (TURN - FIRST); 2]);
            [100, native]
                .into_iter()
                .zip(&pace.least)
                .for_each(|(time, least)| least.store(time, Ordering::Relaxed));
            pace.visit();
            assert!(pace.visit().0 == expected, "{native}");
            // What is slow is tried again some time later.
            let tried_again = (0..2 * AGAIN).any(|_| pace.visit().1.is_some());
            assert_eq!(tried_again, expected == Visit::Interpret);
        }
    }
}
