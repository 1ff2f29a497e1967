//! Calls: how arguments and results are passed.
//!
//! Arguments are in `.param` variables of the caller, in its frame of local memory. The callee reads them there and
//! writes its results there. Values of `.reg` parameters are copied from slot to slot; the upper halves of 128-bit
//! ones follow after all others.

use check::module::{Instruction, Operand, Param, Symbol};
use isa::Space;

use super::Lowering;
use crate::function::{Argument, Call, Callee, Returned, Terminator};
use crate::memory::{Load, Store};
use crate::op::{Address, Base, OpKind, Slot, Width};
use crate::semantics::Semantics;

impl Lowering<'_> {
    pub(super) fn call(&mut self, i: &Instruction) {
        let guard = self.guard(i);
        let Some(at) = i.operands.iter().position(|o| matches!(o, Operand::Function(_) | Operand::Reg(_)))
        else {
            return;
        };
        let list = |operand: Option<&Operand>| match operand {
            Some(Operand::List(items)) => items.clone(),
            _ => Vec::new(),
        };
        let results = list(at.checked_sub(1).and_then(|before| i.operands.get(before)));
        let arguments = list(i.operands.get(at + 1));
        let module = self.module;
        let (callee, params, returns): (_, &[Param], &[Param]) = match i.operands[at] {
            Operand::Function(id) => {
                let function = &module.functions[id.index()];
                (Callee::Direct(id), &function.params, &function.returns)
            }
            Operand::Reg(register) => {
                let prototype = i.operands.iter().find_map(|o| match o {
                    Operand::Prototype(id) => Some(*id),
                    _ => None,
                });
                // The checker rejects indirect calls without a prototype.
                let Some(id) = prototype else { return };
                let prototype = &self.body.prototypes[id.index()];
                (Callee::Indirect(self.register(register), id), &prototype.params, &prototype.returns)
            }
            _ => return,
        };
        let after = self.enter_guarded(guard);
        let mut passed: Vec<Argument> =
            params.iter().zip(&arguments).map(|(p, a)| self.argument(p, a)).collect();
        let wide = params.iter().zip(&arguments).filter(|(param, _)| is_wide(param));
        passed.extend(wide.map(|(_, operand)| Argument::Slot(self.argument_half(operand, 1))));
        // Results of `.param` returns whose destination is a register are loaded after the call.
        let mut loads = Vec::new();
        let mut returned: Vec<Returned> = returns
            .iter()
            .zip(&results)
            .map(|(param, operand)| self.returned(param, operand, &mut loads))
            .collect();
        let wide = returns.iter().zip(&results).filter(|(param, _)| is_wide(param));
        returned.extend(wide.map(|(_, operand)| self.returned_half(operand, 1)));
        let next = self.new_block();
        self.end_block(Terminator::Call(Box::new(Call { callee, arguments: passed, returned, next })), next);
        for load in loads {
            self.push(None, OpKind::Load(load));
        }
        self.fall_into(after);
    }

    /// Half of the argument for a 128-bit `.reg` parameter.
    fn argument_half(&mut self, operand: &Operand, half: u8) -> Slot {
        let Some(offset) = self.param_variable(operand) else { return self.half(operand, half) };
        let dst = self.temporary(Width::W64);
        let address = frame(offset + 8 * u32::from(half));
        let dsts = [Some(dst)].into_iter().collect();
        let semantics = Semantics::WEAK;
        self.push(None, OpKind::Load(Load { address, dst: dsts, bytes: 8, signed: false, semantics }));
        dst
    }

    /// The destination of half of a 128-bit `.reg` result.
    fn returned_half(&mut self, operand: &Operand, half: u8) -> Returned {
        match (self.param_variable(operand), operand) {
            (Some(offset), _) => Returned::Frame(offset + 8 * u32::from(half)),
            (None, Operand::Reg(register)) => Returned::Slot(self.register_half(*register, half)),
            _ => Returned::Ignored,
        }
    }

    fn argument(&mut self, param: &Param, operand: &Operand) -> Argument {
        if is_wide(param) {
            return Argument::Slot(self.argument_half(operand, 0));
        }
        let place = self.param_variable(operand);
        if param.in_register {
            let width = Width::of(param.ty);
            return Argument::Slot(match place {
                // A variable passed to a `.reg` parameter.
                Some(offset) => {
                    let dst = self.temporary(width);
                    let load = load(param, offset, dst);
                    self.push(None, OpKind::Load(load));
                    dst
                }
                None => self.source(operand, param.ty),
            });
        }
        Argument::Frame(place.unwrap_or_else(|| {
            // A register or literal passed to a `.param` parameter.
            let offset = self.reserve_frame(param.bytes, param.align);
            let src = self.source(operand, param.ty);
            let address = frame(offset);
            let (src, bytes) = ([src].into_iter().collect(), param.ty.bytes());
            self.push(None, OpKind::Store(Store { address, src, bytes, semantics: Semantics::WEAK }));
            offset
        }))
    }

    fn returned(&mut self, param: &Param, operand: &Operand, loads: &mut Vec<Load>) -> Returned {
        let register_param = param.in_register;
        if is_wide(param) {
            return self.returned_half(operand, 0);
        }
        match (self.param_variable(operand), operand) {
            (Some(offset), _) => Returned::Frame(offset),
            (None, Operand::Reg(register)) if register_param => Returned::Slot(self.register(*register)),
            (None, Operand::Reg(register)) => {
                let offset = self.reserve_frame(param.bytes, param.align);
                let dst = self.register(*register);
                loads.push(load(param, offset, dst));
                Returned::Frame(offset)
            }
            _ if register_param => Returned::Ignored,
            // The callee writes its result even if the caller ignores it.
            _ => Returned::Frame(self.reserve_frame(param.bytes, param.align)),
        }
    }

    /// The frame offset of a `.param` variable of this function.
    fn param_variable(&self, operand: &Operand) -> Option<u32> {
        match operand {
            Operand::Symbol(Symbol::Variable(id), _) => self.frame.get(id).copied(),
            _ => None,
        }
    }
}

/// Whether a parameter takes two slots.
pub(super) fn is_wide(param: &Param) -> bool {
    param.in_register && param.ty.bits() > 64
}

/// An address in the caller's frame.
fn frame(offset: u32) -> Address {
    Address { space: Space::Local, base: Base::Frame(offset), offset: 0 }
}

fn load(param: &Param, offset: u32, dst: Slot) -> Load {
    let address = frame(offset);
    Load {
        address,
        dst: [Some(dst)].into_iter().collect(),
        bytes: param.ty.bytes(),
        signed: param.ty.is_signed(),
        semantics: Semantics::WEAK,
    }
}
