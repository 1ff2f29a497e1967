//! Machine code for a loop or straight-line code: one or two groups of 16 lanes at a time. Two hide each other's latencies.
//!
//! A slot of 4 bytes takes one vector for each *part*, a slot of 8 bytes two: these are its *chunks*. A part has the lanes of a
//! vector: `host` says what a host's vectors can do, and `avx512` and `avx2` how. A slot of 2 bytes is as one of 4 whose upper
//! halves are 0, but for its elements in the register file.
//!
//! What lies where while the code runs:
//! - `rdi`: the frame; `eax`: the lanes at the current basic block, also in masks of the host; `rcx`, `rdx`: scratch
//! - `r10`: fuel; `r11`: instructions; `PENDING`: the lanes at the start of the first basic blocks, others in the frame
//! - the first vectors: the words of the loop, then values of one basic block
//! - Values that step evenly are in the frame, one number for all lanes (`scalar`).
//! - What has no register is in memory: a word in the register file, another value in the frame (`registers`).

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, dword_ptr, eax, ebp, ebx, ecx, esi, qword_ptr, r8, r8d,
    r9, r9d, r10, r11, r12, r12d, r13, r13d, r14, r14d, r15, r15d, rbp, rbx, rcx, rdi, rsi,
};
use iced_x86::{BlockEncoderOptions, IcedError};
use ir::Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

mod access;
mod atomic;
mod avx2;
mod avx512;
mod double;
mod flow;
mod host;
mod lanes;
mod leave;
mod matrix;
mod operations;
mod registers;
mod scalar;
mod shifts;
mod short;
mod straight;
mod strips;

use crate::forms::{Form, at_entry, forms};
use crate::loops::{Body, End, Loop, Value, operations};
use crate::native::{Even, Frame, Layout, Mark, Native, Part};
use crate::operation::Operation;
use crate::straight::Straight;
use crate::{MOST_EVENS, MOST_WORDS};
use avx2::Avx2;
use avx512::Avx512;
use flow::Labels;
use host::{Assembler, Destination, FLUSHES, HostVectors, Mask, USUAL_CONTROL, Vector};
use leave::Stub;

/// The NaN that arithmetic on f32 makes.
const NAN_BITS: u32 = sem::format::F32.nan as u32;

/// Registers for the lanes that are at the start of basic blocks, and whether a function must keep them.
const PENDING: [(AsmRegister32, AsmRegister64, bool); 9] = [
    (esi, rsi, false),
    (r8d, r8, false),
    (r9d, r9, false),
    (ebx, rbx, true),
    (ebp, rbp, true),
    (r12d, r12, true),
    (r13d, r13, true),
    (r14d, r14, true),
    (r15d, r15, true),
];

/// Why there is no code: the loop needs too many registers, or the assembler refused an instruction.
struct Refused;

impl From<IcedError> for Refused {
    fn from(_: IcedError) -> Refused {
        Refused
    }
}

/// Lanes of a group.
const GROUP_LANES: usize = 16;

type Result<T = ()> = std::result::Result<T, Refused>;

/// Machine code for a host that takes groups through the loop: a function of type `extern "sysv64" fn(*mut Frame)`. `form`: how
/// a slot steps at the start of the loop.
pub(crate) fn emit(source: &Loop, host: crate::Host, form: impl Fn(Slot) -> Option<Form>) -> Option<Native> {
    // What a warp computes needs all its lanes.
    let fewest = if source.whole_warps { 2 } else { 1 };
    match host {
        crate::Host::Avx512 => {
            // Two groups hide each other's latencies, but not those of values that have no register.
            let two = emit_for::<Avx512>(source, 2, false, &form);
            two.or_else(|| emit_for::<Avx512>(source, fewest, true, &form))
        }
        crate::Host::Avx2 => {
            let two = emit_for::<Avx2>(source, 2, false, &form);
            two.or_else(|| emit_for::<Avx2>(source, fewest, true, &form))
        }
    }
}

/// `groups`: of 16 lanes. `spills`: values may be in memory, if the host has too few registers.
fn emit_for<H: HostVectors>(
    source: &Loop,
    groups: usize,
    spills: bool,
    form: impl Fn(Slot) -> Option<Form>,
) -> Option<Native> {
    H::WORD_VECTORS.iter().find_map(|&words| emit_with::<H>(source, groups, spills, words, &form))
}

/// `word_vectors`: the vectors that words take at most.
fn emit_with<H: HostVectors>(
    source: &Loop,
    groups: usize,
    spills: bool,
    word_vectors: usize,
    form: impl Fn(Slot) -> Option<Form>,
) -> Option<Native> {
    let mut emitter =
        Emitter::new(source, H::new(Assembler::new().ok()?, groups), groups, forms(source, form));
    (emitter.word_vectors, emitter.spills) = (word_vectors, spills);
    emitter.lay_out().ok()?;
    emitter.whole().ok()?;
    emitter.finish()
}

/// Machine code for straight-line code, as [`emit`]. `pointers`: how the addresses step.
pub(crate) fn emit_straight(
    straight: &Straight,
    host: crate::Host,
    pointers: Vec<Option<Form>>,
    form: impl Fn(Slot) -> Option<Form>,
) -> Option<Native> {
    match host {
        crate::Host::Avx512 => emit_straight_for::<Avx512>(straight, pointers, form),
        crate::Host::Avx2 => emit_straight_for::<Avx2>(straight, pointers, form),
    }
}

fn emit_straight_for<H: HostVectors>(
    straight: &Straight,
    pointers: Vec<Option<Form>>,
    form: impl Fn(Slot) -> Option<Form>,
) -> Option<Native> {
    let source = &straight.source;
    let groups = 2;
    let forms = at_entry(source, form);
    let mut emitter = Emitter::new(source, H::new(Assembler::new().ok()?, groups), groups, forms);
    (emitter.straight, emitter.pointers, emitter.spills) = (Some(straight), pointers, true);
    emitter.lay_out().ok()?;
    emitter.whole_straight(straight).ok()?;
    emitter.finish()
}

impl<'l, H: HostVectors> Emitter<'l, H> {
    fn new(source: &'l Loop, asm: H, groups: usize, forms: BTreeMap<Slot, Form>) -> Emitter<'l, H> {
        Emitter {
            word_vectors: 0,
            asm,
            source,
            straight: None,
            pointers: Vec::new(),
            groups,
            parts: groups * GROUP_LANES / H::lanes(false),
            spills: false,
            forms,
            clean: double::clean(source),
            layout: Layout::default(),
            by_lane: BTreeSet::new(),
            words: BTreeMap::new(),
            block: Block::default(),
            stubs: Vec::new(),
        }
    }

    fn finish(mut self) -> Option<Native> {
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let mut result = self.asm.assemble_options(0, options).ok()?.inner;
        result.new_instruction_offsets.push(u32::try_from(result.code_buffer.len()).ok()?);
        for mark in &mut self.layout.marks {
            mark.offset = *result.new_instruction_offsets.get(mark.offset)? as usize;
        }
        Native::new(&result.code_buffer, self.groups, self.layout)
    }
}

struct Emitter<'l, H> {
    word_vectors: usize,
    asm: H,
    source: &'l Loop,
    /// There is no control flow, and accesses to memory have been checked.
    straight: Option<&'l Straight>,
    /// How its pointers step.
    pointers: Vec<Option<Form>>,
    /// Groups of 16 lanes.
    groups: usize,
    /// Vectors for a slot of 4 bytes.
    parts: usize,
    /// Values may be in memory.
    spills: bool,
    forms: BTreeMap<Slot, Form>,
    /// The slots of f64 whose NaNs are those that arithmetic makes.
    clean: BTreeSet<Slot>,
    layout: Layout,
    /// The accesses of straight-line code that take lane by lane.
    by_lane: BTreeSet<usize>,
    /// By slot and chunk.
    words: BTreeMap<(Slot, usize), Vector>,
    block: Block,
    /// Code behind the loop.
    stubs: Vec<Stub>,
}

/// The values of a basic block that do not leave it.
#[derive(Default)]
struct Block {
    index: usize,
    /// The operation.
    at: usize,
    /// The index of the operation that reads a slot last.
    last: BTreeMap<Slot, usize>,
    /// By slot and chunk: the register, and whether its NaNs are still the host's.
    vectors: BTreeMap<(Slot, usize), (Vector, bool)>,
    /// By slot and chunk: the index in `Frame::locals`, and whether its NaNs are still the host's.
    stored: BTreeMap<(Slot, usize), (usize, bool)>,
    /// A register for each part.
    masks: BTreeMap<Slot, Vec<Mask>>,
    /// The index in `Frame::local_predicates`.
    stored_masks: BTreeMap<Slot, usize>,
    free_vectors: Vec<Vector>,
    free_masks: Vec<Mask>,
    /// Other slots of f64 of which that is known.
    checked: BTreeSet<Slot>,
    /// The registers that the current operation uses.
    pinned: Vec<Vector>,
    /// What the host fetches ahead, by pointer and line.
    fetched: BTreeSet<(usize, i32)>,
}

fn pending_place(place: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, pending) + 4 * place))
}

impl<H: HostVectors> Emitter<'_, H> {
    /// Decides where each slot is.
    fn lay_out(&mut self) -> Result {
        let (mut scalar, mut vector) = (BTreeSet::new(), BTreeSet::new());
        for operation in operations(&self.source.bodies) {
            let uses = operation.uses();
            match operation.access() {
                _ if self.is_scalar(operation) => scalar.extend(uses),
                Some(access) if self.straight.is_some() && access.within.is_none() && !access.checked => {
                    vector.extend(uses.into_iter().skip(1));
                }
                Some(access) if self.even_address(access).is_some() => {
                    scalar.insert(access.base);
                    vector.extend(uses.into_iter().skip(1));
                }
                _ => vector.extend(uses),
            }
        }
        let defined: BTreeSet<Slot> = operations(&self.source.bodies).flat_map(Operation::defs).collect();
        // What is read most is in registers.
        let mut reads: BTreeMap<Slot, u32> = BTreeMap::new();
        for body in &self.source.bodies {
            for slot in body.operations.iter().flat_map(|op| [op.uses(), op.defs()].concat()) {
                *reads.entry(slot).or_default() += body.weight;
            }
        }
        let is_even = |value: &Value| self.forms.contains_key(&value.slot);
        let in_vectors = |value: &&Value| !is_even(value) || !value.defined && vector.contains(&value.slot);
        let mut words: Vec<Value> = self.source.words.iter().filter(in_vectors).copied().collect();
        words.sort_by_key(|value| (is_even(value), std::cmp::Reverse(reads.get(&value.slot).copied())));
        let mut free = (0..H::VECTORS).map(Vector);
        for value in words {
            let chunks = self.chunks(value.slot);
            let fits = self.words.len() + chunks <= self.word_vectors;
            if !fits && self.forms.contains_key(&value.slot) {
                continue;
            }
            if fits {
                self.words.extend((0..chunks).map(|chunk| (value.slot, chunk)).zip(&mut free));
            } else if !self.spills {
                return Err(Refused);
            }
            self.layout.words.push(value);
        }
        for (&slot, &form) in &self.forms {
            let is_read = scalar.contains(&slot)
                || vector.contains(&slot) && !self.words.contains_key(&(slot, 0))
                || defined.contains(&slot);
            if is_read && !self.source.literals.contains_key(&slot) {
                let defined = defined.contains(&slot);
                let enters = !defined || self.source.live_in.contains(&slot);
                self.layout.evens.push(Even { slot, form, enters, defined });
            }
        }
        let fits = self.layout.words.len() <= MOST_WORDS && self.layout.evens.len() <= MOST_EVENS;
        let accesses = operations(&self.source.bodies).filter_map(Operation::access);
        self.layout.addresses = accesses.map(|access| self.even_address(access)).collect();
        if fits { Ok(()) } else { Err(Refused) }
    }

    /// What the code from here on is for.
    fn mark(&mut self, part: Part) {
        self.layout.marks.push(Mark { offset: self.asm.instructions().len(), part });
    }

    fn is_defined(&self, slot: Slot) -> bool {
        operations(&self.source.bodies).any(|operation| operation.defs().contains(&slot))
    }

    fn is_wide(&self, slot: Slot) -> bool {
        self.source.wide.contains(&slot)
    }

    /// The slot has 2 bytes.
    fn is_short(&self, slot: Slot) -> bool {
        self.source.short.contains(&slot)
    }

    /// How many vectors a slot takes.
    fn chunks(&self, slot: Slot) -> usize {
        if self.is_wide(slot) { 2 * self.parts } else { self.parts }
    }

    fn whole(&mut self) -> Result {
        let kept: Vec<AsmRegister64> =
            self.registers().filter(|(.., keep)| *keep).map(|(_, whole, _)| whole).collect();
        self.mark(Part::Entry);
        for &register in &kept {
            self.asm.push(register)?;
        }
        self.asm.begin()?;
        self.asm.mov(r10, qword_ptr(rdi + offset_of!(Frame, fuel)))?;
        self.asm.mov(r11, qword_ptr(rdi + offset_of!(Frame, instructions)))?;
        let [mut next, mut none, mut stop, mut finish] = std::array::from_fn(|_| self.asm.create_label());
        self.asm.set_label(&mut next)?;
        self.begin_strip(none)?;
        self.check_clean()?;
        let mut labels = Labels {
            done: self.asm.create_label(),
            some: self.source.bodies.iter().map(|_| self.asm.create_label()).collect(),
            all: self.source.bodies.iter().map(|_| self.asm.create_label()).collect(),
        };
        let source = self.source;
        for (index, body) in source.bodies.iter().enumerate() {
            self.asm.set_label(&mut labels.some[index])?;
            if body.end == End::Joined {
                // A label stands before an instruction.
                self.asm.nop()?;
                continue;
            }
            self.mark(Part::Block { index, all: false });
            self.take_pending(index, labels.behind(index))?;
            let mut some = self.asm.create_label();
            let all = self.all_lanes();
            self.asm.cmp(eax, all)?;
            self.asm.jne(some)?;
            self.mark(Part::Block { index, all: true });
            self.asm.set_label(&mut labels.all[index])?;
            self.begin_block(index, body, true)?;
            self.operations(body)?;
            self.end_of_all(index, body, &labels)?;
            self.asm.set_label(&mut some)?;
            self.mark(Part::Block { index, all: false });
            self.begin_block(index, body, false)?;
            self.operations(body)?;
            self.end(index, body, &labels)?;
        }
        self.asm.set_label(&mut labels.done)?;
        self.mark(Part::Exit);
        self.end_strip(stop)?;
        self.asm.set_label(&mut none)?;
        self.next_strip(next, finish)?;

        self.asm.set_label(&mut stop)?;
        for (place, (register, ..)) in self.registers().enumerate() {
            self.asm.mov(pending_place(place), register)?;
        }
        self.asm.set_label(&mut finish)?;
        self.asm.mov(qword_ptr(rdi + offset_of!(Frame, instructions)), r11)?;
        self.asm.mov(qword_ptr(rdi + offset_of!(Frame, fuel)), r10)?;
        self.asm.vzeroupper()?;
        for &register in kept.iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        self.mark(Part::Behind);
        self.behind(labels.done)
    }

    /// The group that a chunk is of, and its first lane there.
    fn place(&self, slot: Slot, chunk: usize) -> (usize, usize) {
        let lane = chunk * H::lanes(self.is_wide(slot));
        (lane / GROUP_LANES, lane % GROUP_LANES)
    }

    /// The lanes of a chunk that the host has taken. Changes the scratch mask.
    fn lanes_of(&mut self, slot: Slot, chunk: usize) -> Result<Mask> {
        self.asm.lanes_of(chunk, self.is_wide(slot))
    }

    /// A register beside the scratch register, until `give_back`.
    fn second(&mut self) -> Result<Vector> {
        H::SECOND.map_or_else(|| self.temporary(), Ok)
    }

    fn give_back(&mut self, register: Vector) {
        if H::SECOND != Some(register) {
            self.block.free_vectors.push(register);
        }
    }

    /// The registers with the lanes of the first basic blocks.
    fn registers(&self) -> impl Iterator<Item = (AsmRegister32, AsmRegister64, bool)> + use<H> {
        PENDING.into_iter().take(self.source.bodies.len())
    }

    /// Begins with the lanes `eax`. `all`: these are all of the vectors.
    fn begin_block(&mut self, index: usize, body: &Body, all: bool) -> Result {
        self.asm.set_all(all);
        let in_memory = |slot| !self.words.contains_key(&(slot, 0));
        let masks = |slot| self.is_word(slot) && (body.needed.contains(&slot) || in_memory(slot));
        let accesses = body.operations.iter().any(|operation| operation.access().is_some());
        if !all && (accesses || body.operations.iter().flat_map(Operation::defs).any(masks)) {
            self.asm.take_lanes()?;
        }
        let number = |cost: u32| i32::try_from(cost).map_err(|_| Refused);
        if all {
            self.asm.add(r11, number((self.groups * GROUP_LANES) as u32 * body.cost)?)?;
        } else {
            self.asm.popcnt(ecx, eax)?;
            self.asm.imul_3(rcx, rcx, number(body.cost)?)?;
            self.asm.add(r11, rcx)?;
        }
        self.new_block(index, body);
        Ok(())
    }

    /// Lets the host's arithmetic flush what is subnormal to zero, or keep it as usual. Code begins and ends so that it keeps it.
    fn set_flushing(&mut self, flushes: bool) -> Result {
        if flushes == self.asm.flushes {
            return Ok(());
        }
        let usual = dword_ptr(rdi + offset_of!(Frame, usual_control));
        if flushes {
            let control = self.asm.constant([u64::from(USUAL_CONTROL | FLUSHES); 8]);
            self.asm.vstmxcsr(usual)?;
            self.asm.vldmxcsr(control)?;
        } else {
            self.asm.vldmxcsr(usual)?;
        }
        self.asm.flushes = flushes;
        Ok(())
    }

    /// No value has a register yet.
    fn new_block(&mut self, index: usize, body: &Body) {
        self.block = Block {
            index,
            free_vectors: (self.words.len() as u8..H::VECTORS).map(Vector).collect(),
            free_masks: H::MASKS.to_vec(),
            ..Block::default()
        };
        for (at, operation) in body.operations.iter().enumerate() {
            self.block.last.extend(operation.uses().into_iter().map(|slot| (slot, at)));
        }
        if let End::Branch { pred, .. } = body.end {
            self.block.last.insert(pred, body.operations.len());
        }
    }

    fn operations(&mut self, body: &Body) -> Result {
        for (at, operation) in body.operations.iter().enumerate() {
            self.block.at = at;
            self.block.pinned.clear();
            self.mark(Part::Instruction(body.spans[at]));
            if let Some(flushes) = operation.flushes() {
                self.set_flushing(flushes)?;
            }
            self.operation(operation)?;
            self.release(at);
        }
        self.set_flushing(false)?;
        self.mark(Part::Instruction(body.spans[body.operations.len()]));
        Ok(())
    }
}
