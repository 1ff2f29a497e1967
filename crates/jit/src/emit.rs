//! Machine code for a loop: AVX-512, one or two vectors of 16 lanes (*parts*). Two hide each other's latencies.
//!
//! What lies where while the code runs:
//! - `rdi`: the frame; `eax`: the lanes at the current basic block, also in `k1` and, of the second part, in `k2`; `ecx`,
//!   `edx`: scratch
//! - `r10`: fuel; `r11`: instructions; `PENDING`: the lanes at the start of the first basic blocks, others in the frame
//! - `zmm0` and up: the words of the loop, then values of one basic block; `zmm30`: scratch; `zmm31`: the NaN of PTX
//! - `k3` to `k6`: predicates of one basic block; `k7`: scratch. Other predicates are in the frame.

use iced_x86::IcedError;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, AsmRegisterK, AsmRegisterZmm, CodeAssembler, CodeLabel,
    dword_ptr, eax, ebp, ebx, ecx, edx, esi, k1, k2, k3, k4, k5, k6, k7, ptr, qword_ptr, r8, r8d, r9, r9d,
    r10, r11, r12, r12d, r13, r13d, r14, r14d, r15, r15d, rbp, rbx, rcx, rdi, rsi, zmm0, zmm1, zmm2, zmm3,
    zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15, zmm16, zmm17, zmm18, zmm19,
    zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29, zmm30, zmm31,
};
use ir::Slot;
use std::collections::BTreeMap;
use std::mem::offset_of;

mod operations;

use crate::Frame;
use crate::loops::{Body, End, Loop};
use crate::operation::Operation;

/// Registers for the words of a loop and for the values of a basic block.
const VECTORS: [AsmRegisterZmm; 30] = [
    zmm0, zmm1, zmm2, zmm3, zmm4, zmm5, zmm6, zmm7, zmm8, zmm9, zmm10, zmm11, zmm12, zmm13, zmm14, zmm15,
    zmm16, zmm17, zmm18, zmm19, zmm20, zmm21, zmm22, zmm23, zmm24, zmm25, zmm26, zmm27, zmm28, zmm29,
];
const SCRATCH: AsmRegisterZmm = zmm30;
const NAN: AsmRegisterZmm = zmm31;
/// The NaN that arithmetic on f32 makes.
const NAN_BITS: u32 = sem::format::F32.nan as u32;
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

/// The machine code of a function of type `extern "sysv64" fn(*mut Frame)` that takes `parts` vectors through the loop.
pub(crate) fn emit(source: &Loop, parts: usize) -> Option<Vec<u8>> {
    let values = source.words.iter().flat_map(|value| (0..parts).map(|part| (value.slot, part)));
    let words: BTreeMap<_, _> = values.zip(VECTORS).collect();
    if words.len() < source.words.len() * parts {
        return None;
    }
    let mut emitter =
        Emitter { asm: CodeAssembler::new(64).ok()?, source, parts, words, block: Block::default() };
    emitter.whole().ok()?;
    emitter.asm.assemble(0).ok()
}

struct Emitter<'l> {
    asm: CodeAssembler,
    source: &'l Loop,
    parts: usize,
    /// By slot and part.
    words: BTreeMap<(Slot, usize), AsmRegisterZmm>,
    block: Block,
}

/// The values of a basic block that do not leave it.
#[derive(Default)]
struct Block {
    index: usize,
    /// The index of the operation that reads a slot last.
    last: BTreeMap<Slot, usize>,
    /// By slot and part: the register, and whether its NaNs are still the host's.
    vectors: BTreeMap<(Slot, usize), (AsmRegisterZmm, bool)>,
    /// A register for each part.
    masks: BTreeMap<Slot, Vec<AsmRegisterK>>,
    free_vectors: Vec<AsmRegisterZmm>,
    free_masks: Vec<AsmRegisterK>,
}

fn word_place(index: usize, part: usize) -> AsmMemoryOperand {
    qword_ptr(rdi + (offset_of!(Frame, words) + 8 * (2 * index + part)))
}

fn pending_place(place: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, pending) + 4 * place))
}

impl Emitter<'_> {
    fn whole(&mut self) -> Result {
        let kept: Vec<AsmRegister64> =
            self.registers().filter(|(.., keep)| *keep).map(|(_, whole, _)| whole).collect();
        for &register in &kept {
            self.asm.push(register)?;
        }
        for (index, value) in self.source.words.iter().enumerate() {
            for part in 0..self.parts {
                self.asm.mov(rcx, word_place(index, part))?;
                self.asm.vmovdqu32(self.words[&(value.slot, part)], ptr(rcx))?;
            }
        }
        self.asm.mov(ecx, NAN_BITS)?;
        self.asm.vpbroadcastd(NAN, ecx)?;
        self.asm.mov(r10, qword_ptr(rdi + offset_of!(Frame, fuel)))?;
        self.asm.mov(r11, qword_ptr(rdi + offset_of!(Frame, instructions)))?;
        for (place, (register, ..)) in self.registers().enumerate() {
            self.asm.mov(register, pending_place(place))?;
        }

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
        for (index, value) in self.source.words.iter().enumerate().filter(|(_, value)| value.defined) {
            for part in 0..self.parts {
                let to = ptr(rcx);
                self.asm.mov(rcx, word_place(index, part))?;
                let to = if part == 0 { to.k1() } else { to.k2() };
                self.asm.vmovdqu32(to, self.words[&(value.slot, part)])?;
            }
        }
        self.asm.vzeroupper()?;
        for &register in kept.iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        Ok(())
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
        let masks = |slot| body.needed.contains(&slot) && self.words.contains_key(&(slot, 0));
        if body.operations.iter().flat_map(Operation::defs).any(masks) {
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

    /// Frees the registers of values that no operation behind `at` reads.
    fn release(&mut self, at: usize) {
        let Block { last, vectors, masks, free_vectors, free_masks, .. } = &mut self.block;
        let is_over = |slot: &Slot| last.get(slot).is_none_or(|&last| last <= at);
        vectors.retain(|(slot, _), (register, _)| {
            let over = is_over(slot);
            if over {
                free_vectors.push(*register);
            }
            !over
        });
        masks.retain(|slot, registers| {
            let over = is_over(slot);
            if over {
                free_masks.append(registers);
            }
            !over
        });
    }

    /// The register of a value whose NaNs may be the host's.
    fn number(&self, slot: Slot, part: usize) -> Result<AsmRegisterZmm> {
        let local = self.block.vectors.get(&(slot, part)).map(|(register, _)| *register);
        local.or_else(|| self.words.get(&(slot, part)).copied()).ok_or(Refused)
    }

    /// The register of a value with the NaNs of PTX.
    fn bits(&mut self, slot: Slot, part: usize) -> Result<AsmRegisterZmm> {
        let register = self.number(slot, part)?;
        if let Some((_, raw @ true)) = self.block.vectors.get_mut(&(slot, part)) {
            *raw = false;
            self.canonicalize(register)?;
        }
        Ok(register)
    }

    fn canonicalize(&mut self, register: AsmRegisterZmm) -> Result {
        self.asm.vcmpunordps(k7, register, register)?;
        self.asm.vmovdqa32(register.k7(), NAN)?;
        Ok(())
    }

    /// Defines a slot of 4 bytes: `write` emits what computes it, into the register that it gets. `raw`: its NaNs are the
    /// host's. The register may be masked, so it is written last, and once.
    fn define(
        &mut self,
        (slot, part): (Slot, usize),
        raw: bool,
        write: impl FnOnce(&mut CodeAssembler, AsmRegisterZmm) -> std::result::Result<(), IcedError>,
    ) -> Result {
        let Some(&word) = self.words.get(&(slot, part)) else {
            let register = match self.block.vectors.get(&(slot, part)) {
                Some((register, _)) => *register,
                None => self.block.free_vectors.pop().ok_or(Refused)?,
            };
            write(&mut self.asm, register)?;
            self.block.vectors.insert((slot, part), (register, raw));
            return Ok(());
        };
        let visible = self.source.words.iter().any(|value| value.slot == slot && value.visible);
        let needed = self.source.bodies[self.block.index].needed.contains(&slot);
        // What reads a value under a mask waits for the mask. So the basic block has a copy for itself.
        let copy = match self.block.vectors.get(&(slot, part)) {
            Some((register, _)) => Some(*register),
            None if needed => self.block.free_vectors.pop(),
            None => None,
        };
        if let Some(copy) = copy {
            self.block.vectors.insert((slot, part), (copy, false));
        }
        let target = match part {
            _ if !needed => word,
            0 => word.k1(),
            _ => word.k2(),
        };
        let first = copy.unwrap_or(if raw && visible { SCRATCH } else { target });
        write(&mut self.asm, first)?;
        if raw && visible {
            self.canonicalize(first)?;
        }
        if first != target {
            self.asm.vmovdqa32(target, first)?;
        }
        Ok(())
    }

    /// Loads a predicate.
    fn predicate(&mut self, slot: Slot, to: AsmRegister32) -> Result {
        match self.block.masks.get(&slot).map(Vec::as_slice) {
            Some(&[low, high]) => {
                self.asm.kunpckwd(k7, high, low)?;
                self.asm.kmovd(to, k7)?;
            }
            Some(masks) => self.asm.kmovw(to, *masks.first().ok_or(Refused)?)?,
            None => self.asm.mov(to, self.predicate_place(slot)?)?,
        }
        Ok(())
    }

    fn predicate_place(&self, slot: Slot) -> Result<AsmMemoryOperand> {
        let index = self.source.predicates.iter().position(|value| value.slot == slot).ok_or(Refused)?;
        Ok(dword_ptr(rdi + (offset_of!(Frame, predicates) + 4 * index)))
    }

    /// Defines a predicate by `ecx`. Changes `edx`.
    fn define_predicate(&mut self, slot: Slot) -> Result {
        if self.is_passed(slot) {
            // The lanes that are not here keep theirs.
            let place = self.predicate_place(slot)?;
            self.asm.mov(edx, place)?;
            self.asm.xor(ecx, edx)?;
            self.asm.and(ecx, eax)?;
            self.asm.xor(edx, ecx)?;
            self.asm.mov(place, edx)?;
            return Ok(());
        }
        let masks = self.masks_of(slot)?;
        self.asm.kmovd(masks[0], ecx)?;
        if let [low, high] = masks[..] {
            self.asm.kshiftrd(high, low, 16)?;
        }
        Ok(())
    }

    /// The predicate passes between basic blocks.
    fn is_passed(&self, slot: Slot) -> bool {
        self.source.predicates.iter().any(|value| value.slot == slot)
    }

    /// The registers of a predicate that the basic block defines for itself.
    fn masks_of(&mut self, slot: Slot) -> Result<Vec<AsmRegisterK>> {
        if let Some(masks) = self.block.masks.get(&slot) {
            return Ok(masks.clone());
        }
        let start = self.block.free_masks.len().checked_sub(self.parts).ok_or(Refused)?;
        let masks = self.block.free_masks.split_off(start);
        self.block.masks.insert(slot, masks.clone());
        Ok(masks)
    }
}
