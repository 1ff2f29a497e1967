//! Operands; instructions that `sem` computes; moves, addresses, loads, stores and the stack.

use check::module::{Instruction, Operand, RegId, Symbol};
use isa::{Access, Effect, Mod, Space, SpecialRegister, SpecialValue, Type};
use machine::{FaultKind, STACK_BASE, Special};

use crate::Step;
use crate::memory::{Address, number};
use crate::thread::{Cpu, Flow, LOCAL_LIMIT};

/// Default alignment of `alloca`, in bytes.
const STACK_ALIGN: u64 = 8;

/// The maximum number of sources of a pure instruction: two vectors of four.
const MOST_SOURCES: usize = 8;

/// The maximum size of a load or store, in bytes.
const MOST_BYTES: usize = 32;

/// The low `bits` bits.
fn cut(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

impl Cpu<'_, '_> {
    // Operands.

    pub fn register_type(&self, register: RegId) -> Type {
        self.code().body.registers[register.index()].ty
    }

    /// All bits of a register.
    pub fn register(&self, register: RegId) -> u128 {
        self.frame().registers[register.index()]
    }

    /// The value of a source operand, as type `ty`.
    pub fn value(&self, operand: &Operand, ty: Type) -> u128 {
        let bits = match operand {
            Operand::Reg(register) => self.register(*register),
            Operand::NotReg(register) => self.register(*register) ^ 1,
            Operand::RegPlus(register, addend) => {
                let sum = self.register(*register).wrapping_add(*addend as i128 as u128);
                cut(sum, self.register_type(*register).bits())
            }
            Operand::Imm(bits) => u128::from(*bits),
            Operand::Special(special) => self.special(*special).into(),
            Operand::Symbol(symbol, offset) => {
                let address = self.symbol(*symbol).at.wrapping_add(*offset as u64);
                let wide = self.cta.launch.module().address_size > 32;
                let address = if wide { address } else { address & u64::from(u32::MAX) };
                u128::from(address.wrapping_add(self.mark(*symbol)))
            }
            // The checker rejects all other operands.
            _ => 0,
        };
        cut(bits, ty.bits())
    }

    /// The value of a special register in this thread.
    pub fn special(&self, register: SpecialRegister) -> u64 {
        // The cycle clock: one cycle per instruction and per nanosecond of sleep.
        let cycles = self.cta.steps + self.thread.steps + self.thread.slept;
        let (launch, ctaid) = (self.cta.launch, self.cta.launch.ctaid(self.cta.index));
        // Time goes by the turn where a launch may go back: its threads must do the same again.
        if let Some(journal) = &self.cta.grid.journal {
            let nanoseconds = journal.time.get() + self.thread.slept;
            match register.value() {
                SpecialValue::Nanoseconds => return nanoseconds,
                SpecialValue::NanosecondsHigh => return nanoseconds >> 32,
                _ => {}
            }
        }
        Special::of(register).value(launch, ctaid, self.thread.index as u32, cycles)
    }

    /// The kind mark in the handle of a texture, sampler or surface.
    pub fn mark(&self, symbol: Symbol) -> u64 {
        let opaque = match symbol {
            Symbol::Variable(id) => self.cta.launch.module().variables[id.index()].opaque,
            Symbol::Param(i) if self.code().function.is_entry => {
                self.code().function.params[i as usize].opaque
            }
            _ => None,
        };
        opaque.map_or(0, |opaque| opaque.mark())
    }

    /// Writes a value of type `ty` to a register. A wider register receives the sign- or zero-extended value.
    pub fn set(&mut self, register: RegId, value: u128, ty: Type) {
        let bits = self.register_type(register).bits();
        let mut value = cut(value, ty.bits());
        if ty.is_signed() && value >> (ty.bits() - 1) & 1 != 0 {
            value |= u128::MAX << (ty.bits() - 1);
        }
        self.frame_mut().registers[register.index()] = cut(value, bits);
    }

    /// Like [`Cpu::set`], for a destination operand; for a pair, its first register.
    pub fn set_operand(&mut self, operand: Option<&Operand>, value: u128, ty: Type) {
        if let Some(Operand::Reg(register) | Operand::Pair(Some(register), _)) = operand {
            self.set(*register, value, ty);
        }
    }

    /// Writes the second destination of `p|q`. In `p|p` the first result wins.
    pub fn set_second(&mut self, operand: Option<&Operand>, value: bool) {
        if let Some(Operand::Pair(first, Some(second))) = operand
            && *first != Some(*second)
        {
            self.set(*second, value.into(), Type::Pred);
        }
    }

    /// The operand with this name.
    pub fn named<'i>(&self, i: &'i Instruction, name: &str) -> Option<&'i Operand> {
        let place = i.form.operands_with(&i.picks).position(|spec| spec.name == name)?;
        i.operands.get(place)
    }

    // Instructions.

    /// A pure instruction: `sem` computes it.
    pub fn pure(&mut self, i: &Instruction, function: &str) -> Step<Flow> {
        let Some(pure) = &self.code().pure[self.frame().pc] else {
            return Err(self.fault(FaultKind::Unsupported, function));
        };
        let mut sources = [0; MOST_SOURCES];
        let mut count = 0;
        let mut source = |value: u64| {
            sources[count] = value;
            count += 1;
        };
        let mut destination = None;
        for (&(access, ty), operand) in pure.operands.iter().zip(&i.operands) {
            if access != Access::Read {
                destination = Some((operand, ty));
            }
            if access != Access::Write {
                let parts = match operand {
                    Operand::Vector(parts) => parts.as_slice(),
                    one => std::slice::from_ref(one),
                };
                parts.iter().for_each(|part| source(self.value(part, ty) as u64));
            }
        }
        if i.form.carry.reads {
            source(self.frame().carry.into());
        }
        let [first, second] = (pure.compute)(&i.picks, &sources[..count]);
        if let Some((operand, ty)) = destination {
            self.set_operand(Some(operand), first.into(), ty);
            self.set_second(Some(operand), second & 1 != 0);
        }
        if i.form.carry.writes {
            self.frame_mut().carry = second & 1 != 0;
        }
        Ok(Flow::Next)
    }

    /// `mov` of a scalar, packing or unpacking.
    pub fn mov(&mut self, i: &Instruction) {
        let ty = i.picks.ty(0);
        let [dst, src] = &i.operands[..] else { return };
        let part_bits = |parts: usize| ty.bits() / parts.max(1) as u32;
        let value = match (dst, src) {
            (Operand::Vector(to), Operand::Vector(from)) => {
                let types = to.iter().map(|part| match part {
                    Operand::Reg(register) => self.register_type(*register),
                    _ => Type::B32,
                });
                let values: Vec<_> =
                    from.iter().zip(types).map(|(part, ty)| (self.value(part, ty), ty)).collect();
                for (part, (value, ty)) in to.iter().zip(values) {
                    self.set_operand(Some(part), value, ty);
                }
                return;
            }
            (_, Operand::Vector(parts)) => {
                let bits = part_bits(parts.len());
                let parts = parts.iter().rev().map(|part| self.value(part, Type::of_bits(bits)));
                parts.fold(0, |all, part| all << bits | part)
            }
            (_, scalar) => self.value(scalar, ty),
        };
        match dst {
            Operand::Vector(parts) => {
                let bits = part_bits(parts.len());
                for (index, part) in parts.iter().enumerate() {
                    self.set_operand(Some(part), value >> (index as u32 * bits), Type::of_bits(bits));
                }
            }
            scalar => self.set_operand(Some(scalar), value, ty),
        }
    }

    /// The address in an operand without brackets.
    pub fn address_value(&self, operand: &Operand) -> u64 {
        match operand {
            Operand::Reg(register) => self.register(*register) as u64,
            other => self.value(other, Type::B64) as u64,
        }
    }

    /// `cvta`: conversion between an address in a state space and a generic one.
    pub fn cvta(&mut self, i: &Instruction) {
        let [dst, src, ..] = &i.operands[..] else { return };
        let space = match src {
            Operand::Symbol(symbol, _) => self.symbol(*symbol).space,
            // Parameters of a function are in local memory.
            _ if i.picks.space() == Space::Param && !self.code().function.is_entry => Space::Local,
            _ => i.picks.space(),
        };
        let (at, window) = (self.address_value(src), machine::generic_offset(space));
        let result = if i.picks.has(Mod::To) { at.wrapping_sub(window) } else { at.wrapping_add(window) };
        self.set_operand(Some(dst), result.into(), i.picks.ty(0));
    }

    pub fn ld(&mut self, i: &Instruction) -> Step {
        let [dst, address, ..] = &i.operands[..] else { return Ok(()) };
        let parts = match dst {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let ty = i.picks.ty(0);
        let bytes = ty.bytes() as usize;
        let mut data = [0; MOST_BYTES];
        let data = &mut data[..bytes * parts.len()];
        self.read_into(self.address(address, i.picks.space()), data)?;
        for (part, data) in parts.iter().zip(data.chunks(bytes)) {
            self.set_operand(Some(part), number(data), ty);
        }
        Ok(())
    }

    pub fn st(&mut self, i: &Instruction) -> Step {
        let [address, src, ..] = &i.operands[..] else { return Ok(()) };
        let parts = match src {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let ty = i.picks.ty(0);
        let bytes = ty.bytes() as usize;
        let address = self.address(address, i.picks.space());
        if parts.contains(&Operand::Sink) {
            return self.st_some(address, parts, ty);
        }
        let mut data = [0; MOST_BYTES];
        for (part, place) in parts.iter().zip(data.chunks_mut(bytes)) {
            place.copy_from_slice(&self.value(part, ty).to_le_bytes()[..bytes]);
        }
        self.write(address, &data[..bytes * parts.len()])
    }

    /// A store that leaves elements out. Its address is aligned as that of one with all of them.
    fn st_some(&mut self, address: Address, parts: &[Operand], ty: Type) -> Step {
        let bytes = u64::from(ty.bytes());
        let all = bytes * parts.len() as u64;
        if !address.at.is_multiple_of(all) {
            return Err(self.access_fault(FaultKind::Misaligned, address, all, true));
        }
        let stored = (0..).zip(parts).filter(|(_, part)| **part != Operand::Sink);
        for (place, part) in stored {
            self.store(address.offset(place * bytes), bytes, self.value(part, ty))?;
        }
        Ok(())
    }

    pub fn brx_idx(&mut self, i: &Instruction) -> Step<Flow> {
        let [index, Operand::BranchTargets(list)] = &i.operands[..] else { return Ok(Flow::Next) };
        let index = self.value(index, Type::U32) as usize;
        let targets = &self.code().body.branch_targets[list.index()];
        match targets.get(index) {
            Some(&label) => Ok(Flow::Jump(label)),
            None => {
                let note = format!("index {index} is past the end of a list of {} targets", targets.len());
                Err(self.fault(FaultKind::InvalidTarget, &note))
            }
        }
    }

    /// `alloca`, `stacksave`, `stackrestore` (PTX ISA, "Stack Manipulation Instructions").
    pub fn stack(&mut self, i: &Instruction, effect: Effect) -> Step {
        let ty = i.picks.ty(0);
        let end = self.thread.stack.len() as u64;
        let (result, end) = match effect {
            Effect::Alloca => {
                let align = match i.operands.get(2) {
                    Some(Operand::Imm(align)) => (*align).max(STACK_ALIGN),
                    _ => STACK_ALIGN,
                };
                let start = end.next_multiple_of(align);
                (start, start.saturating_add(self.value(&i.operands[1], ty) as u64))
            }
            Effect::StackSave => (end, end),
            _ => (0, (self.value(&i.operands[0], ty) as u64).wrapping_sub(STACK_BASE)),
        };
        if end > LOCAL_LIMIT {
            let note = match effect {
                Effect::StackRestore => {
                    format!("{:#x} is nothing that stacksave returned", self.value(&i.operands[0], ty))
                }
                _ => format!("a thread's stack is {LOCAL_LIMIT} bytes, {end} are needed"),
            };
            return Err(self.fault(FaultKind::StackOverflow, &note));
        }
        self.thread.stack.resize(end as usize, 0);
        if effect != Effect::StackRestore {
            self.set_operand(i.operands.first(), u128::from(STACK_BASE + result), ty);
        }
        Ok(())
    }
}
