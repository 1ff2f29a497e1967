//! Loops of a function that may run as native code (crate `jit`).

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use diag::Span;
use ir::Slot;
use isa::{Opcode, Picks, Type};
use jit::{Form, Held, Host};
use lanes::HostPath;
use machine::NativeCode;
use machine::mask::GROUP_LANES;

use super::build::Builder;
use super::linear::Linear;
use super::pace::{Paces, Turn};
use super::perf;
use super::{Kind, MatrixOp, Op, WarpOp};
use crate::registers::SlotRef;

/// A loop is interpreted from then on if lanes have left its native code more often than this, and more often than once in
/// `RUNS_PER_LEAVE` runs.
const MANY_LEAVES: u32 = 64;
const RUNS_PER_LEAVE: u32 = 8;

/// A loop that may run as native code.
pub(crate) struct NativeLoop {
    pub plan: jit::Loop,
    /// The function and the loop's first basic block.
    name: String,
    host: Host,
    /// The slots of `plan.predicates`. The second part: the loop writes it.
    pub predicates: Vec<(SlotRef, bool)>,
    /// The operations of each basic block, not fused, for lanes that leave before one of them.
    pub operations: Vec<Vec<Op>>,
    /// The operations that vector handlers compute.
    pub calls: Vec<Op>,
    /// Index of its first access among those of all loops.
    pub first_access: usize,
    /// The function's slots.
    slots: Arc<[SlotRef]>,
    pub paces: Paces,
    runs: AtomicU32,
    leaves: AtomicU32,
    /// For the forms that slots have at the start of the loop when it is compiled, and for any.
    versions: [OnceLock<Option<Compiled>>; 2],
}

/// Machine code for a loop.
pub(crate) struct Compiled {
    pub native: jit::Native,
    /// The slots of its words, and whether the loop writes them.
    pub words: Vec<(SlotRef, bool)>,
    /// The slots of its evens.
    pub evens: Vec<SlotRef>,
    /// The slots of its points.
    pub points: Vec<Vec<(SlotRef, Held)>>,
}

/// The instructions of native code on a host path. `None`: it has no native code.
pub(crate) fn native_host(path: HostPath) -> Option<Host> {
    match path {
        HostPath::Portable => None,
        HostPath::Avx2 => Some(Host::Avx2),
        HostPath::Avx512 => Some(Host::Avx512),
    }
}

impl NativeLoop {
    /// What a gang at the start of the loop is to do.
    #[inline]
    pub fn turn(&self, when: NativeCode) -> Turn {
        match when {
            NativeCode::Always => Turn::Native,
            NativeCode::Hot => {
                let leaves = self.leaves.load(Ordering::Relaxed);
                if leaves > MANY_LEAVES && leaves > self.runs.load(Ordering::Relaxed) / RUNS_PER_LEAVE {
                    return Turn::Interpret;
                }
                self.paces.turn()
            }
            _ => Turn::Interpret,
        }
    }

    /// The machine code. `form`: how a slot steps now.
    pub fn code(&self, form: impl Fn(SlotRef) -> Option<Form>) -> Option<&Compiled> {
        let [special, general] = &self.versions;
        let special = special.get_or_init(|| self.compile(|slot| form(self.slots[slot.index()])));
        let fits = |code: &&Compiled| {
            let evens = code.native.evens().iter().zip(&code.evens);
            evens.filter(|(even, _)| even.enters).all(|(even, &slot)| form(slot) == Some(even.form))
        };
        match special.as_ref().filter(fits) {
            Some(code) => Some(code),
            None => general.get_or_init(|| self.compile(|_| None)).as_ref(),
        }
    }

    fn compile(&self, form: impl Fn(Slot) -> Option<Form>) -> Option<Compiled> {
        let native = self.plan.compile(self.host, form)?;
        perf::note(&self.name, native.code());
        let slot = |slot: Slot| self.slots[slot.index()];
        let held =
            |point: &jit::Point| point.values.iter().map(|&(value, held)| (slot(value), held)).collect();
        Some(Compiled {
            words: native.words().iter().map(|value| (slot(value.slot), value.defined)).collect(),
            evens: native.evens().iter().map(|even| slot(even.slot)).collect(),
            points: native.points().iter().map(held).collect(),
            native,
        })
    }

    /// Notes runs of the code, and whether lanes left it before an operation.
    pub fn note(&self, runs: u32, left: bool) {
        self.runs.fetch_add(runs, Ordering::Relaxed);
        self.leaves.fetch_add(left.into(), Ordering::Relaxed);
    }
}

/// Whether an instruction makes values that step evenly of such values. Bits that are mixed do only if they do not overlap: few loops
/// have such values.
pub(super) fn steps(form: &isa::Form, picks: &Picks) -> bool {
    !matches!(Linear::of(form, picks), Linear::No | Linear::Compare(..) | Linear::Or(_))
}

/// As [`steps`], for straight-line code. Compilers add numbers without bits in common by `or`, and compare indices with bounds,
/// which all lanes are within. They join what such comparisons find.
pub(super) fn steps_in_line(form: &isa::Form, picks: &Picks) -> bool {
    let linear = Linear::of(form, picks);
    let joins = matches!(form.opcode, Opcode::And | Opcode::Or | Opcode::Not) && picks.ty(0) == Type::Pred;
    steps(form, picks)
        || matches!(linear, Linear::Compare(..))
        || form.opcode == Opcode::Or && linear != Linear::No
        || joins
}

/// The native code of a program as text, beside the PTX that `ptx` gives: as for a launch that makes alike what is alike in
/// every launch, and where straight-line code accesses consecutive elements. On other hosts than x86-64 there is none.
pub fn listing(program: &ir::Program, path: HostPath, ptx: impl Fn(Span) -> String) -> String {
    let mut text = String::new();
    let Some(host) = native_host(path) else { return text };
    let of_code = |what: &str, name: &str, native: Option<jit::Native>| {
        let Some(native) = native else { return String::new() };
        let (threads, bytes) = (16 * native.parts(), native.code().len());
        let head =
            format!("{name}: {what} for {}, {threads} threads at a time, {bytes} bytes\n", path.name());
        head + &native.listing(&ptx)
    };
    for (of, function) in program.module.functions.iter().zip(&program.functions) {
        let Some(function) = function else { continue };
        let form = jit::uniform(function, steps);
        for plan in jit::loops(function, host, steps) {
            text += &of_code("a loop", &of.name, plan.compile(host, &form));
        }
        let found = jit::straight(function, host, steps_in_line);
        for (found, of_blocks) in [(Some(found.of_gang), ""), (found.of_blocks, " of many blocks")] {
            let Some(found) = found else { continue };
            let sections = found.blocks.iter().flat_map(|(_, items)| items).filter_map(jit::Item::section);
            let sections = sections.filter(|section| !section.is_small);
            let sections = sections.map(|plan| (format!("straight-line code{of_blocks}"), plan));
            let of_trace = |trace: &jit::Trace| match trace.path[..] {
                [first, .., last] => format!("basic blocks {} to {}{of_blocks}", first.block, last.block),
                _ => String::new(),
            };
            let traces = found.traces.iter().map(|trace| (of_trace(trace), &trace.section));
            for (what, plan) in sections.chain(traces) {
                let consecutive = |slot: Slot| {
                    let pointer = plan.pointers.iter().find(|pointer| pointer.base == slot)?;
                    let step = pointer.align as i64;
                    Some(Form { step, span: step * GROUP_LANES as i64 })
                };
                let native = plan.compile(host, |slot| form(slot).or_else(|| consecutive(slot)));
                text += &of_code(&what, &of.name, native);
            }
        }
    }
    text
}

impl Op {
    /// A function computes the operation for native code.
    pub(super) fn has_function(&self) -> bool {
        match &self.kind {
            Kind::Pure(_) => true,
            Kind::Warp { op, .. } => match &**op {
                WarpOp::Matrix(Ok(MatrixOp::Multiply(multiply))) => {
                    multiply.tiles_at(|_| null_mut()).is_some()
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl Builder<'_> {
    /// The loops of the function that may run as native code, by their first basic blocks.
    pub(super) fn native_loops(&self, host: Host) -> Vec<(u32, Box<NativeLoop>)> {
        let of_block = |block: &ir::Block| {
            let ops = &self.function.ops[block.ops.start as usize..block.ops.end as usize];
            ops.iter().map(|op| self.op(op)).collect()
        };
        let slots = Arc::from(&self.slots[..]);
        let native = |plan: jit::Loop| -> Option<(u32, Box<NativeLoop>)> {
            let blocks = &self.function.blocks[plan.blocks.start as usize..plan.blocks.end as usize];
            let of_call = |&(block, operation): &(usize, usize)| {
                let first = blocks[block].ops.start as usize;
                self.op(&self.function.ops[first + operation])
            };
            let calls: Vec<Op> = plan.calls.iter().map(of_call).collect();
            if !calls.iter().all(Op::has_function) {
                return None;
            }
            let first_access = self.counts.native_accesses.get();
            self.counts.native_accesses.set(first_access + plan.accesses.len());
            let native = NativeLoop {
                predicates: plan
                    .predicates
                    .iter()
                    .map(|value| (self.slot(value.slot), value.defined))
                    .collect(),
                operations: blocks.iter().map(of_block).collect(),
                calls,
                first_access,
                slots: Arc::clone(&slots),
                paces: Paces::default(),
                runs: AtomicU32::new(0),
                leaves: AtomicU32::new(0),
                versions: [OnceLock::new(), OnceLock::new()],
                name: format!("{}, basic block {}", self.name, plan.blocks.start),
                plan,
                host,
            };
            Some((native.plan.blocks.start, Box::new(native)))
        };
        jit::loops(self.function, host, steps).into_iter().filter_map(native).collect()
    }
}
