//! Calls: arguments and results are copied by value (PTX ISA, "Abstracting the ABI").

use check::module::{Instruction, Operand, Param, Symbol};
use isa::Space;
use machine::{CODE_STRIDE, CODE_WINDOW, FaultKind};

use crate::Step;
use crate::memory::{Address, number};
use crate::thread::{Cpu, Flow};

/// The parts of a call: `(results), function, (arguments), prototype`.
pub(crate) struct Call<'i> {
    pub callee: &'i Operand,
    pub results: &'i [Operand],
    pub arguments: &'i [Operand],
}

fn list(operand: Option<&Operand>) -> &[Operand] {
    match operand {
        Some(Operand::List(items)) => items,
        _ => &[],
    }
}

impl<'i> Call<'i> {
    pub fn of(i: &'i Instruction) -> Option<Call<'i>> {
        let at = i.operands.iter().position(|o| matches!(o, Operand::Function(_) | Operand::Reg(_)))?;
        let before = at.checked_sub(1).and_then(|before| i.operands.get(before));
        Some(Call { callee: &i.operands[at], results: list(before), arguments: list(i.operands.get(at + 1)) })
    }
}

impl Cpu<'_, '_> {
    pub fn call(&mut self, i: &Instruction) -> Step<Flow> {
        let Some(call) = Call::of(i) else { return Ok(Flow::Next) };
        let functions = &self.cta.launch.module().functions;
        let index = match call.callee {
            Operand::Function(id) => id.index(),
            Operand::Reg(register) => {
                let address = self.register(*register) as u64;
                let offset = address.wrapping_sub(CODE_WINDOW);
                let index = offset / CODE_STRIDE;
                if !offset.is_multiple_of(CODE_STRIDE) || index >= functions.len() as u64 {
                    let note = format!("{address:#x} is not the address of a function");
                    return Err(self.fault(FaultKind::InvalidTarget, &note));
                }
                self.check_prototype(i, index as usize)?;
                index as usize
            }
            _ => return Ok(Flow::Next),
        };
        let params = &functions[index].params;
        let arguments =
            params.iter().zip(call.arguments).map(|(param, operand)| self.argument(param, operand));
        let arguments = arguments.collect::<Step<Vec<Vec<u8>>>>()?;
        if !self.cta.has_body(index) {
            let (result, flow) = self.call_builtin(index, &arguments)?;
            if let Some(result) = result {
                let returns = &functions[index].returns;
                let bytes = returns.first().map_or(0, |param| param.bytes as usize).min(8);
                self.deliver(returns, call.results, &[result.to_le_bytes()[..bytes].to_vec()])?;
            }
            return Ok(flow);
        }
        self.enter(index)?;
        let (code, base) = (self.code(), self.frame().base);
        for ((param, bytes), offset) in params.iter().zip(arguments).zip(&code.params) {
            match param.register {
                Some(register) => self.set(register, number(&bytes), param.ty),
                None if param.in_register => {}
                None => self.write_bytes(Address { space: Space::Local, at: base + offset }, &bytes)?,
            }
        }
        Ok(Flow::Called)
    }

    /// Checks that the target of an indirect call has the signature of the call's prototype.
    fn check_prototype(&self, i: &Instruction, index: usize) -> Step {
        let prototype = i.operands.iter().find_map(|o| match o {
            Operand::Prototype(id) => Some(&self.code().body.prototypes[id.index()]),
            _ => None,
        });
        let Some(prototype) = prototype else { return Ok(()) };
        let function = &self.cta.launch.module().functions[index];
        if function.is_entry {
            let note = format!("`{}` is a kernel", function.name);
            return Err(self.fault(FaultKind::InvalidTarget, &note));
        }
        let alike = |a: &[Param], b: &[Param]| {
            let same = |(a, b): (&Param, &Param)| a.bytes == b.bytes && a.in_register == b.in_register;
            a.len() == b.len() && a.iter().zip(b).all(same)
        };
        if alike(&prototype.params, &function.params) && alike(&prototype.returns, &function.returns) {
            return Ok(());
        }
        let note = format!("`{}` is declared otherwise than the call's prototype", function.name);
        Err(self.fault(FaultKind::InvalidTarget, &note))
    }

    /// The bytes of an argument.
    fn argument(&self, param: &Param, operand: &Operand) -> Step<Vec<u8>> {
        if let Some(address) = self.param_variable(operand) {
            return self.read_bytes(address, param.bytes);
        }
        let mut bytes = self.value(operand, param.ty).to_le_bytes().to_vec();
        bytes.resize(param.bytes as usize, 0);
        Ok(bytes)
    }

    /// The address of a `.param` variable of this function, if the operand names one.
    fn param_variable(&self, operand: &Operand) -> Option<Address> {
        match operand {
            Operand::Symbol(symbol @ Symbol::Variable(id), _) if self.code().variables.contains_key(id) => {
                Some(self.symbol(*symbol))
            }
            _ => None,
        }
    }

    /// Writes results to the operands that a call names for them.
    fn deliver(&mut self, returns: &[Param], operands: &[Operand], results: &[Vec<u8>]) -> Step {
        for ((param, operand), bytes) in returns.iter().zip(operands).zip(results) {
            match self.param_variable(operand) {
                Some(address) => self.write_bytes(address, bytes)?,
                None => self.set_operand(Some(operand), number(bytes), param.ty),
            }
        }
        Ok(())
    }

    /// `ret`, or the end of a body.
    pub fn return_from_call(&mut self) -> Step {
        if self.thread.frames.len() == 1 {
            self.end();
            return Ok(());
        }
        let (code, base) = (self.code(), self.frame().base);
        let mut results = Vec::new();
        for (param, offset) in code.function.returns.iter().zip(&code.returns) {
            results.push(match param.register {
                Some(register) => {
                    let mut bytes = self.register(register).to_le_bytes().to_vec();
                    bytes.resize(param.bytes as usize, 0);
                    bytes
                }
                None => self.read_bytes(Address { space: Space::Local, at: base + offset }, param.bytes)?,
            });
        }
        let stack_bytes = self.frame().stack_bytes;
        self.thread.frames.pop();
        self.thread.local.truncate(base as usize);
        self.thread.stack.truncate(stack_bytes);
        if let Some(call) = self.instruction().and_then(Call::of) {
            self.deliver(&code.function.returns, call.results, &results)?;
        }
        self.frame_mut().pc += 1;
        Ok(())
    }
}
