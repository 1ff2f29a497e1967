//! Machine code for a loop: AVX-512, one or two groups of 16 lanes (*parts*). Two hide each other's latencies.
//!
//! A slot of 4 bytes takes one vector for each part, a slot of 8 bytes two: these are its *chunks*.
//!
//! What lies where while the code runs:
//! - `rdi`: the frame; `eax`: the lanes at the current basic block, also in `k1` and, of the second part, in `k2`; `rcx`,
//!   `rdx`: scratch
//! - `r10`: fuel; `r11`: instructions; `PENDING`: the lanes at the start of the first basic blocks, others in the frame
//! - `zmm0` and up: the words of the loop, then values of one basic block; `zmm30`: scratch; `zmm31`: the NaN of PTX
//! - `k3` to `k6`: predicates of one basic block; `k7`: scratch. Other predicates are in the frame.
//! - Values that step evenly are in the frame, one number for all lanes (`scalar`).
//! - What has no register is in memory: a word in the register file, another value in the frame (`registers`).

use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, AsmRegisterK, AsmRegisterZmm, CodeAssembler, CodeLabel,
    dword_ptr, eax, ebp, ebx, ecx, esi, k1, k2, k3, k4, k5, k6, k7, qword_ptr, r8, r8d, r9, r9d, r10, r11,
    r12, r12d, r13, r13d, r14, r14d, r15, r15d, rbp, rbx, rcx, rdi, rsi, zmm0, zmm1, zmm2, zmm3, zmm4, zmm5,
    zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16, zmm17, zmm18, zmm19, zmm20,
    zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29, zmm30, zmm31,
};
use ir::Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

/// The last operand of an instruction, with its rounding.
macro_rules! rounded {
    ($last:expr, $rounding:expr) => {
        match $rounding {
            isa::Rounding::NearestEven => $last.rn_sae(),
            isa::Rounding::TowardZero => $last.rz_sae(),
            isa::Rounding::TowardNegative => $last.rd_sae(),
            isa::Rounding::TowardPositive => $last.ru_sae(),
            _ => return Err($crate::emit::Refused),
        }
    };
}

mod access;
mod double;
mod leave;
mod operations;
mod registers;
mod scalar;

use crate::forms::{Form, forms};
use crate::loops::{Body, End, Loop, Value, operations};
use crate::native::{Even, Frame, Layout, Native};
use crate::operation::Operation;
use crate::{MOST_EVENS, MOST_WORDS};
use leave::Stub;

/// Registers for the words of a loop and for the values of a basic block.
const VECTORS: [AsmRegisterZmm; 30] = [
    zmm0, zmm1, zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15,
    zmm16, zmm17, zmm18, zmm19, zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29,
];
const SCRATCH: AsmRegisterZmm = zmm30;
const NAN: AsmRegisterZmm = zmm31;
/// The NaN that arithmetic on f32 makes.
const NAN_BITS: u32 = sem::format::F32.nan as u32;
/// The register, for a merge under a mask.
fn masked(register: AsmRegisterZmm, mask: AsmRegisterK) -> AsmRegisterZmm {
    match mask {
        m if m == k1 => register.k1(),
        m if m == k2 => register.k2(),
        m if m == k3 => register.k3(),
        m if m == k4 => register.k4(),
        m if m == k5 => register.k5(),
        m if m == k6 => register.k6(),
        _ => register.k7(),
    }
}

/// The place, for a store under a mask.
fn masked_place(place: AsmMemoryOperand, mask: AsmRegisterK) -> AsmMemoryOperand {
    match mask {
        m if m == k1 => place.k1(),
        m if m == k2 => place.k2(),
        _ => place.k7(),
    }
}

/// Registers for the predicates of a basic block.
const MASKS: [AsmRegisterK; 4] = [k3, k4, k5, k6];
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

type Result<T = ()> = std::result::Result<T, Refused>;

/// The vectors that words take at most: basic blocks need the others.
const WORD_VECTORS: usize = 22;

/// Machine code that takes `parts` groups through the loop: a function of type `extern "sysv64" fn(*mut Frame)`. `form`: how
/// a slot steps at the start of the loop. `spills`: values may be in memory, if the host has too few registers.
pub(crate) fn emit(
    source: &Loop,
    parts: usize,
    spills: bool,
    form: impl Fn(Slot) -> Option<Form>,
) -> Option<Native> {
    let mut emitter = Emitter {
        asm: CodeAssembler::new(64).ok()?,
        source,
        parts,
        spills,
        forms: forms(source, form),
        clean: double::clean(source),
        layout: Layout::default(),
        words: BTreeMap::new(),
        block: Block::default(),
        stubs: Vec::new(),
        constants: Vec::new(),
    };
    emitter.lay_out().ok()?;
    emitter.whole().ok()?;
    let code = emitter.asm.assemble(0).ok()?;
    Native::new(&code, parts, emitter.layout)
}

struct Emitter<'l> {
    asm: CodeAssembler,
    source: &'l Loop,
    parts: usize,
    /// Values may be in memory.
    spills: bool,
    forms: BTreeMap<Slot, Form>,
    /// The slots of f64 whose NaNs are those that arithmetic makes.
    clean: BTreeSet<Slot>,
    layout: Layout,
    /// By slot and chunk.
    words: BTreeMap<(Slot, usize), AsmRegisterZmm>,
    block: Block,
    /// Code behind the loop.
    stubs: Vec<Stub>,
    /// Vectors of constants behind the code.
    constants: Vec<(CodeLabel, [u64; 8])>,
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
    vectors: BTreeMap<(Slot, usize), (AsmRegisterZmm, bool)>,
    /// By slot and chunk: the index in `Frame::locals`, and whether its NaNs are still the host's.
    stored: BTreeMap<(Slot, usize), (usize, bool)>,
    /// A register for each part.
    masks: BTreeMap<Slot, Vec<AsmRegisterK>>,
    /// The index in `Frame::local_predicates`.
    stored_masks: BTreeMap<Slot, usize>,
    free_vectors: Vec<AsmRegisterZmm>,
    free_masks: Vec<AsmRegisterK>,
    /// Other slots of f64 of which that is known.
    checked: BTreeSet<Slot>,
    /// The registers that the current operation uses.
    pinned: Vec<AsmRegisterZmm>,
}

fn pending_place(place: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, pending) + 4 * place))
}

impl Emitter<'_> {
    /// Decides where each slot is.
    fn lay_out(&mut self) -> Result {
        let (mut scalar, mut vector) = (BTreeSet::new(), BTreeSet::new());
        for operation in operations(&self.source.bodies) {
            let uses = operation.uses();
            match operation.access() {
                _ if self.is_scalar(operation) => scalar.extend(uses),
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
        let mut free = VECTORS.into_iter();
        for value in words {
            let chunks = self.chunks(value.slot);
            let fits = self.words.len() + chunks <= WORD_VECTORS;
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

    fn is_defined(&self, slot: Slot) -> bool {
        operations(&self.source.bodies).any(|operation| operation.defs().contains(&slot))
    }

    fn is_wide(&self, slot: Slot) -> bool {
        self.source.wide.contains(&slot)
    }

    /// How many vectors a slot takes.
    fn chunks(&self, slot: Slot) -> usize {
        if self.is_wide(slot) { 2 * self.parts } else { self.parts }
    }

    fn whole(&mut self) -> Result {
        let kept: Vec<AsmRegister64> =
            self.registers().filter(|(.., keep)| *keep).map(|(_, whole, _)| whole).collect();
        for &register in &kept {
            self.asm.push(register)?;
        }
        for ((slot, chunk), register) in self.words.clone() {
            let place = self.word_place(slot, chunk)?;
            self.asm.vmovdqu32(register, place)?;
        }
        self.asm.mov(ecx, NAN_BITS)?;
        self.asm.vpbroadcastd(NAN, ecx)?;
        self.asm.mov(r10, qword_ptr(rdi + offset_of!(Frame, fuel)))?;
        self.asm.mov(r11, qword_ptr(rdi + offset_of!(Frame, instructions)))?;
        for (place, (register, ..)) in self.registers().enumerate() {
            self.asm.mov(register, pending_place(place))?;
        }

        self.check_clean()?;
        let mut labels: Vec<CodeLabel> = self.source.bodies.iter().map(|_| self.asm.create_label()).collect();
        let mut done = self.asm.create_label();
        for (index, body) in self.source.bodies.iter().enumerate() {
            self.asm.set_label(&mut labels[index])?;
            let next = labels.get(index + 1).copied().unwrap_or(done);
            self.body(index, body, next, &labels, done)?;
        }
        self.asm.set_label(&mut done)?;

        for (place, (register, ..)) in self.registers().enumerate() {
            self.asm.mov(pending_place(place), register)?;
        }
        self.asm.mov(qword_ptr(rdi + offset_of!(Frame, instructions)), r11)?;
        self.asm.mov(qword_ptr(rdi + offset_of!(Frame, fuel)), r10)?;
        self.asm.kmovd(k1, dword_ptr(rdi + offset_of!(Frame, lanes)))?;
        self.asm.kshiftrd(k2, k1, 16)?;
        for ((slot, chunk), word) in self.words.clone() {
            if self.layout.words.iter().any(|value| value.slot == slot && value.defined) {
                let (mask, place) = (self.lanes_of(slot, chunk)?, self.word_place(slot, chunk)?);
                self.store_vector(slot, masked_place(place, mask), word)?;
            }
        }
        self.asm.vzeroupper()?;
        for &register in kept.iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        self.behind(done)
    }

    /// The part that a chunk is of, and its byte offset in the elements of that part.
    fn place(&self, slot: Slot, chunk: usize) -> (usize, usize) {
        if self.is_wide(slot) { (chunk / 2, chunk % 2 * 64) } else { (chunk, 0) }
    }

    /// The lanes of a chunk that `k1` and `k2` have. Changes `k7`.
    fn lanes_of(&mut self, slot: Slot, chunk: usize) -> Result<AsmRegisterK> {
        let (part, offset) = self.place(slot, chunk);
        let lanes = if part == 0 { k1 } else { k2 };
        if offset == 0 {
            return Ok(lanes);
        }
        self.asm.kshiftrw(k7, lanes, 8)?;
        Ok(k7)
    }

    /// The registers with the lanes of the first basic blocks.
    fn registers(&self) -> impl Iterator<Item = (AsmRegister32, AsmRegister64, bool)> + use<> {
        PENDING.into_iter().take(self.source.bodies.len())
    }

    fn body(
        &mut self,
        index: usize,
        body: &Body,
        next: CodeLabel,
        labels: &[CodeLabel],
        done: CodeLabel,
    ) -> Result {
        match PENDING.get(index) {
            Some(&(register, ..)) => {
                self.asm.mov(eax, register)?;
                self.asm.test(eax, eax)?;
                self.asm.jz(next)?;
                self.asm.xor(register, register)?;
            }
            None => {
                self.asm.mov(eax, pending_place(index))?;
                self.asm.test(eax, eax)?;
                self.asm.jz(next)?;
                self.asm.mov(pending_place(index), 0)?;
            }
        }
        let masks = |slot| body.needed.contains(&slot) && self.is_word(slot);
        let accesses = body.operations.iter().any(|operation| operation.access().is_some());
        if accesses || body.operations.iter().flat_map(Operation::defs).any(masks) {
            self.asm.kmovd(k1, eax)?;
            self.asm.kshiftrd(k2, k1, 16)?;
        }
        self.asm.popcnt(ecx, eax)?;
        self.asm.imul_3(rcx, rcx, i32::try_from(body.cost).map_err(|_| Refused)?)?;
        self.asm.add(r11, rcx)?;
        self.block = Block {
            index,
            free_vectors: VECTORS[self.words.len()..].to_vec(),
            free_masks: MASKS.to_vec(),
            ..Block::default()
        };
        for (at, operation) in body.operations.iter().enumerate() {
            self.block.last.extend(operation.uses().into_iter().map(|slot| (slot, at)));
        }
        if let End::Branch { pred, .. } = body.end {
            self.block.last.insert(pred, body.operations.len());
        }
        for (at, operation) in body.operations.iter().enumerate() {
            self.block.at = at;
            self.block.pinned.clear();
            self.operation(operation)?;
            self.release(at);
        }
        match body.end {
            End::Jump(place) => {
                self.arrive(place, eax)?;
                self.go(index, place, None, labels, done)
            }
            End::Branch { pred, negated, taken, otherwise } => {
                self.predicate(pred, ecx)?;
                if negated {
                    self.asm.not(ecx)?;
                }
                self.asm.and(ecx, eax)?;
                self.asm.xor(eax, ecx)?;
                self.arrive(taken, ecx)?;
                self.arrive(otherwise, eax)?;
                // The lower one first. If both are the same, either way finds its lanes.
                let mut ways = [(taken, ecx), (otherwise, eax)];
                ways.sort_by_key(|(place, _)| *place);
                for (place, lanes) in ways {
                    self.go(index, place, Some(lanes), labels, done)?;
                }
                Ok(())
            }
        }
    }

    /// Adds lanes to those that are at a place.
    fn arrive(&mut self, place: usize, lanes: AsmRegister32) -> Result {
        match PENDING.get(place).filter(|_| place < self.source.bodies.len()) {
            Some(&(register, ..)) => self.asm.or(register, lanes)?,
            None => self.asm.or(pending_place(place), lanes)?,
        }
        Ok(())
    }

    /// Goes back to a basic block, if `lanes` has any. The code behind this one finds lanes that go forward.
    fn go(
        &mut self,
        from: usize,
        place: usize,
        lanes: Option<AsmRegister32>,
        labels: &[CodeLabel],
        done: CodeLabel,
    ) -> Result {
        if place > from {
            return Ok(());
        }
        let mut forward = self.asm.create_label();
        if let Some(lanes) = lanes {
            self.asm.test(lanes, lanes)?;
            self.asm.jz(forward)?;
        }
        self.asm.dec(r10)?;
        self.asm.js(done)?;
        self.asm.jmp(labels[place])?;
        self.asm.set_label(&mut forward)?;
        // A label stands before an instruction.
        self.asm.nop()?;
        Ok(())
    }
}
