//! Reports instructions to the observer of a launch: the values that they read, and those that they wrote.

use std::ops::ControlFlow;

use check::module::{AddressBase, Instruction, Node, Operand, RegId};
use isa::{Access, Effect, Elements, OperandSpec, Space, Type};
use machine::{FaultKind, InstructionEvent, OperandValue};

use crate::Step;
use crate::call::Call;
use crate::effect::{DataFlow, effect};
use crate::thread::Cpu;

/// An instruction that a thread has begun and that its observer has not heard of.
pub(crate) struct Begun<'l> {
    instruction: &'l Instruction,
    executes: bool,
    /// The thread's active calls.
    depth: usize,
    reads: Vec<OperandValue<'l>>,
    address: Option<(Space, u64)>,
}

/// Whether an operand is memory: the instruction reads its registers even if it writes there.
fn has_address(operand: &Operand) -> bool {
    matches!(operand, Operand::Address(..) | Operand::Texels(_) | Operand::Tensor(_))
}

/// The type by which an instruction reads or writes the registers of an operand.
fn operand_type(spec: &OperandSpec, i: &Instruction) -> Option<Type> {
    match spec.element(&i.picks).filter(|_| spec.elements == Elements::Fragment) {
        Some(Type::E4m3) => Some(Type::E4m3x4),
        Some(Type::E5m2) => Some(Type::E5m2x4),
        _ => spec.resolve(&i.picks),
    }
}

/// The operands of an instruction, each with its access and the type by which it is read or written.
fn operands(i: &Instruction) -> Vec<(&Operand, Access, Option<Type>)> {
    match Call::of(i).filter(|_| effect(i) == Some(Effect::Call)) {
        Some(Call { callee, results, arguments }) => {
            let sources = std::iter::once(callee).chain(arguments);
            let results = results.iter().map(|result| (result, Access::Write, None));
            results.chain(sources.map(|source| (source, Access::Read, None))).collect()
        }
        None => {
            let all = i.operands.iter().zip(i.form.operands_with(&i.picks));
            all.map(|(operand, spec)| (operand, spec.access, operand_type(spec, i))).collect()
        }
    }
}

impl<'l> Cpu<'_, 'l> {
    /// Keeps what the thread's observer wants to hear of an instruction that begins.
    pub fn begin_instruction(&mut self, i: &'l Instruction, executes: bool) {
        let mut addresses = i.operands.iter().filter(|operand| matches!(operand, Operand::Address(..)));
        let address = match (addresses.next(), addresses.next()) {
            (Some(only), None) => Some(Self::resolve(self.address(only, i.picks.space()))),
            _ => None,
        };
        let mut reads = Vec::new();
        if let Some((register, _)) = i.guard {
            self.collect_register(register, None, &mut reads);
        }
        for (operand, access, ty) in operands(i) {
            let is_read = access != Access::Write || has_address(operand);
            if is_read && (address.is_none() || !matches!(operand, Operand::Address(..))) {
                self.collect(operand, ty, &mut reads);
            }
        }
        let depth = self.thread.frames.len();
        self.thread.begun = Some(Box::new(Begun { instruction: i, executes, depth, reads, address }));
    }

    /// Tells the observer of the instruction that the thread began: it has been executed.
    ///
    /// # Errors
    /// The observer ends the launch.
    pub fn end_instruction(&mut self) -> Step {
        let Some(begun) = self.thread.begun.take() else { return Ok(()) };
        let Begun { instruction: i, executes, depth, reads, address } = *begun;
        let mut writes = Vec::new();
        if self.thread.frames.len() < depth {
            // The function has returned: its results are in registers of its caller.
            let call = self.frame().pc.checked_sub(1).and_then(|pc| self.code().body.code.get(pc));
            if let Some(Node::Instruction(call)) = call {
                let results = Call::of(call).map_or(&[][..], |call| call.results);
                results.iter().for_each(|result| self.collect(result, None, &mut writes));
            }
        } else if executes && self.thread.frames.len() == depth {
            for (operand, access, ty) in operands(i) {
                if access != Access::Read && !has_address(operand) {
                    self.collect(operand, ty, &mut writes);
                }
            }
        }
        let Some(observer) = &self.cta.launch.config().observer else { return Ok(()) };
        let (block, thread) = (self.cta.launch.ctaid(self.cta.index), self.thread.index as u32);
        let DataFlow { from_memory, from_lanes, to_memory } = DataFlow::of(i);
        let event = InstructionEvent::new(
            i.span,
            block,
            thread,
            executes,
            &reads,
            &writes,
            address,
            from_memory,
            from_lanes,
            to_memory,
        );
        match observer.notify(|observer| observer.instruction(&event)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.cta.fault(FaultKind::Stopped, self.thread.index, i.span, "")),
        }
    }

    /// Appends the values of all scalars in an operand of this instruction type.
    fn collect(&self, operand: &'l Operand, ty: Option<Type>, values: &mut Vec<OperandValue<'l>>) {
        let mut all = |parts: &'l [Operand], ty| parts.iter().for_each(|part| self.collect(part, ty, values));
        match operand {
            Operand::Reg(register) | Operand::NotReg(register) | Operand::RegPlus(register, _) => {
                self.collect_register(*register, ty, values);
            }
            Operand::Imm(bits) => {
                values.extend(ty.map(|ty| OperandValue::new("", ty, u128::from(*bits))));
            }
            Operand::Special(special) => {
                let bits = u128::from(self.special(*special));
                values.push(OperandValue::new(special.name(), special.ty(), bits));
            }
            Operand::Address(base, _) => self.collect_base(*base, values),
            Operand::Vector(parts) => all(parts, ty),
            Operand::List(parts) => all(parts, None),
            Operand::Pair(first, second) => {
                first.iter().for_each(|register| self.collect_register(*register, ty, values));
                second.iter().for_each(|register| self.collect_register(*register, None, values));
            }
            Operand::Resident(texels, resident) => {
                all(texels, ty);
                self.collect_register(*resident, None, values);
            }
            Operand::Texels(texels) => {
                all(&texels.coordinates, None);
                self.collect_base(texels.handle, values);
                texels.sampler.iter().for_each(|sampler| self.collect_base(*sampler, values));
            }
            Operand::Tensor(tensor) => {
                all(std::slice::from_ref(&tensor.map), None);
                all(&tensor.coordinates, None);
            }
            Operand::Symbol(..)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::Function(_)
            | Operand::Prototype(_) => {}
        }
    }

    fn collect_base(&self, base: AddressBase, values: &mut Vec<OperandValue<'l>>) {
        if let AddressBase::Reg(register) = base {
            self.collect_register(register, None, values);
        }
    }

    fn collect_register(&self, register: RegId, ty: Option<Type>, values: &mut Vec<OperandValue<'l>>) {
        let declared = &self.code().body.registers[register.index()];
        let ty = ty.filter(|ty| ty.bits() == declared.ty.bits()).unwrap_or(declared.ty);
        values.push(OperandValue::new(&declared.name, ty, self.register(register)));
    }
}
