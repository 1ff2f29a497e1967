//! Operands that an instruction reads.

use diag::{Code, Diagnostic};
use isa::{Effect, Opcode, OperandKind, Space, Type, register_allowed};

use crate::destination::fit_pair;
use crate::module::{Operand, Symbol};
use crate::near_fit::{
    address_fits, address_of_parameter, must_be_register, refuse_vector, result_required,
    special_not_allowed, special_vector, special_vector_fits, special_width_fits, sum_fits, symbol_fits,
    takes_address, vector_not_allowed,
};
use crate::order::Stage;
use crate::place::{Complaints, Place, Verdict, complain, fit_const};
use crate::value::{Lowered, SymbolValue, Value};
/// Fits a source: one match over all that can be written in its place.
pub(crate) fn fit_source(lowered: &Lowered, ty: Type, place: &Place, complaints: &mut Complaints) -> Verdict {
    let span = lowered.span;
    let fits = |register: Type| register_allowed(ty, register, place.spec.wider);
    let mov = place.context.form.action == isa::Action::Effect(Effect::Mov);
    match &lowered.value {
        Value::Register(id, register) if fits(*register) => {
            // `v.x`, an element of a vector, already has a selector.
            if place.text.contains('.') {
                crate::video::unselected(span, place, complaints);
            }
            Verdict::Fits(Operand::Reg(*id))
        }
        Value::Const(_) | Value::RegisterPlus(..) | Value::Function(..)
            if place.context.form.opcode == Opcode::Stackrestore =>
        {
            result_required(span, place, complaints)
        }
        Value::RegisterPlus(id, register, offset) if sum_fits(*register, ty) => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::RegPlus(*id, *offset))
        }
        // To the grammar of ptxas, the first operand is a destination.
        Value::Pair(first, second) if place.index == 0 => {
            fit_pair(first, second, lowered, ty, place, complaints)
        }
        // The unknown symbol was reported.
        Value::UnknownSum if ty != Type::Pred => Verdict::Fits(Operand::Sink),
        Value::NotRegister(id) if ty == Type::Pred => Verdict::Fits(Operand::NotReg(*id)),
        Value::Part(id, register, selector) if fits(*register) => {
            crate::video::source(*id, *selector, span, place, complaints)
        }
        // ptxas rejects a constant as the predicate of a bf16 comparison, but only after it has checked the
        // comparison's gates.
        Value::Const(_) if ty == Type::Pred && place.compares_bf16() => {
            let message = format!("Arguments mismatch for instruction '{}'", place.context.name);
            complaints.push((Stage::OpcodeRules, Diagnostic::error(Code::ArgumentsMismatch, span, message)));
            Verdict::Fits(Operand::Sink)
        }
        Value::Const(value) if place.spec.kind != OperandKind::Register => {
            crate::video::unselected(span, place, complaints);
            fit_const(*value, ty)
        }
        Value::Special(register) => {
            if !special_width_fits(*register, place) {
                return Verdict::Mismatch;
            }
            if ty.is_float() {
                return special_not_allowed(span, place, complaints);
            }
            if mov || crate::special::anywhere(place.context) {
                return Verdict::Fits(Operand::Special(*register));
            }
            special_not_allowed(span, place, complaints)
        }
        Value::SpecialVector(_) if mov && special_vector_fits(ty) => {
            vector_not_allowed(span, place, complaints)
        }
        Value::SpecialVector(_) if mov => Verdict::Mismatch,
        Value::SpecialVector(_) if special_vector_fits(ty) => special_vector(span, place, complaints),
        Value::Symbol(SymbolValue { symbol: Symbol::Variable(_), space: Space::Param, .. })
            if mov && takes_address(ty) =>
        {
            address_of_parameter(span, place, complaints)
        }
        Value::Symbol(symbol) | Value::Indexed(symbol) if mov && takes_address(ty) => {
            let address = Operand::Symbol(symbol.symbol, symbol.offset);
            Verdict::Fits(symbol.element.map_or(address, Operand::Reg))
        }
        // ptxas treats `sym+4` and functions as values, but not the bare name of a variable.
        Value::Symbol(symbol) if symbol.sum && takes_address(ty) => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::Symbol(symbol.symbol, symbol.offset))
        }
        Value::Function(..) if mov && !matches!(ty.bits(), 32 | 64) && takes_address(ty) => {
            let name = place.context.name;
            let message = format!(
                "Unexpected instruction types specified for '{name} instruction with function address operand'"
            );
            complain(complaints, Code::InstructionTypes, span, message, Some("write `mov.u64`"));
            Verdict::Fits(Operand::Sink)
        }
        Value::Function(id, offset) if ty != Type::Pred => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::Symbol(Symbol::Function(*id), *offset))
        }
        // `check_inside` reports this, because ptxas rejects it only when it generates code.
        Value::Label(_, offset) if *offset != 0 && ty != Type::Pred => Verdict::Fits(Operand::Sink),
        Value::Indexed(symbol) if !mov && fits(symbol.ty) => must_be_register(span, place, complaints),
        Value::Symbol(symbol) if !mov && symbol_fits(symbol, ty) => must_be_register(span, place, complaints),
        Value::Address(base, _) if address_fits(*base, ty, place, &fits) => {
            must_be_register(span, place, complaints)
        }
        Value::Vector(..) | Value::VectorRegister(..) => refuse_vector(lowered, ty, place, complaints),
        _ => Verdict::Mismatch,
    }
}
