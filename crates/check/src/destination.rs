//! Operands that an instruction writes.

use diag::Code;
use isa::{Opcode, OperandKind, Second, Type, register_allowed};

use crate::literal::Const;
use crate::module::{Operand, RegId};
use crate::near_fit::{
    address_fits, holds_integers, must_be_register, read_only, refuse_vector, result_discarded,
    result_required, special_not_allowed, special_vector, special_vector_fits, special_width_fits, sum_fits,
    symbol_fits, takes_address, vector_fits, vector_not_allowed,
};
use crate::place::{Complaints, Place, Verdict, complain, fit_const, takes_vectors};
use crate::value::{Lowered, SymbolValue, Value};

/// Fits a destination: one match over all that can be written in its place.
pub(crate) fn fit_destination(
    lowered: &Lowered,
    ty: Type,
    place: &Place,
    complaints: &mut Complaints,
) -> Verdict {
    let span = lowered.span;
    let of_tf32 = place.takes_only_bits(ty) && place.context.picks.ty(0) == Type::Tf32;
    let fits = |register: Type| {
        register_allowed(ty, register, place.spec.wider) && (!of_tf32 || register == Type::B32)
    };
    match &lowered.value {
        Value::Register(id, register) if fits(*register) => {
            if place.spec.second == Second::Required {
                predicate_expected(lowered, place, Some("write `d|p`"), complaints);
            }
            if place.text.contains('.') {
                crate::video::unselected(span, place, complaints);
            }
            Verdict::Fits(Operand::Reg(*id))
        }
        // ptxas takes what could not hold a report, and drops it.
        Value::RegisterPlus(_, register, _) if place.spec.name == "report" && fits(*register) => {
            Verdict::Fits(Operand::Sink)
        }
        Value::Const(Const::Int { .. }) if place.spec.name == "report" => Verdict::Fits(Operand::Sink),
        Value::RegisterPlus(_, register, _) if sum_fits(*register, ty) => {
            result_required(span, place, complaints)
        }
        Value::Symbol(SymbolValue { sum: true, .. }) if takes_address(ty) => {
            result_required(span, place, complaints)
        }
        Value::UnknownSum if ty != Type::Pred => result_required(span, place, complaints),
        Value::NotRegister(_) if ty == Type::Pred => result_required(span, place, complaints),
        Value::Const(_) if place.takes_only_bits(ty) => Verdict::Mismatch,
        Value::Const(value) => match fit_const(*value, ty) {
            Verdict::Fits(_) => result_required(span, place, complaints),
            Verdict::Mismatch => Verdict::Mismatch,
        },
        Value::Special(register) if place.spec.kind != OperandKind::MovDestination => {
            if !special_width_fits(*register, place) {
                return Verdict::Mismatch;
            }
            if crate::special::anywhere(place.context) {
                return read_only(span, complaints);
            }
            special_not_allowed(span, place, complaints)
        }
        Value::SpecialVector(_) if special_vector_fits(ty) => special_vector(span, place, complaints),
        Value::Special(_) => read_only(span, complaints),
        Value::Symbol(symbol) if symbol_fits(symbol, ty) => must_be_register(span, place, complaints),
        Value::Indexed(symbol) if fits(symbol.ty) => must_be_register(span, place, complaints),
        Value::Function(..) if ty != Type::Pred => result_required(span, place, complaints),
        Value::Address(base, _) if address_fits(*base, ty, place, &fits) => {
            crate::video::unselected(span, place, complaints);
            must_be_register(span, place, complaints)
        }
        Value::Vector(elements, None)
            if holds_integers(ty) && !elements.is_empty() && !takes_vectors(place) =>
        {
            result_required(span, place, complaints)
        }
        Value::Vector(..) | Value::VectorRegister(..) => refuse_vector(lowered, ty, place, complaints),
        Value::Sink if place.spec.sink => Verdict::Fits(Operand::Sink),
        Value::Sink => result_discarded(span, place, complaints),
        Value::Pair(first, second) => fit_pair(first, second, lowered, ty, place, complaints),
        Value::Part(id, register, selector) if fits(*register) => {
            crate::video::destination(*id, *selector, span, place, complaints)
        }
        _ => Verdict::Mismatch,
    }
}

/// `p|q`
pub(crate) fn fit_pair(
    first: &Lowered,
    second: &Lowered,
    whole: &Lowered,
    ty: Type,
    place: &Place,
    complaints: &mut Complaints,
) -> Verdict {
    match &first.value {
        Value::Register(_, found) if register_allowed(ty, *found, place.spec.wider) => {}
        Value::Sink if place.spec.sink => {}
        Value::Symbol(symbol) if symbol_fits(symbol, ty) => {}
        Value::VectorRegister(ids, element) if vector_fits(*element, ids.len(), ty, place) => {}
        Value::Function(..) if ty != Type::Pred => {}
        Value::Sink => {
            let message =
                format!("Result discard mode is not allowed for instruction '{}'", place.context.name);
            complain(complaints, Code::DiscardedResult, first.span, message, None);
        }
        _ => return Verdict::Mismatch,
    }
    if matches!(second.value, Value::Unknown | Value::Function(..) | Value::Label(..)) {
        predicate_expected(second, place, None, complaints);
    }
    // `d|_` means the same as `d`.
    if place.spec.second == Second::None
        && let (Value::Register(id, _), Value::Sink) = (&first.value, &second.value)
    {
        return Verdict::Fits(Operand::Reg(*id));
    }
    check_second(second, whole, place, complaints);
    match first.value {
        Value::Function(..) => {
            let message = format!("Result register required for instruction '{}'", place.context.name);
            complain(complaints, Code::FunctionAsResult, first.span, message, None);
            Verdict::Fits(Operand::Sink)
        }
        Value::VectorRegister(..) => vector_not_allowed(first.span, place, complaints),
        Value::Symbol(_) => must_be_register(first.span, place, complaints),
        _ => Verdict::Fits(Operand::Pair(register(first), register(second))),
    }
}

/// Reports a second destination where there is none, and one that is no predicate.
fn check_second(second: &Lowered, whole: &Lowered, place: &Place, complaints: &mut Complaints) {
    if place.spec.second == Second::None && !matches!(second.value, Value::Sink) {
        let any = if place.context.form.opcode == Opcode::Match { ".any" } else { "" };
        let message = format!("Predicate output not allowed for instruction '{}{any}'", place.context.name);
        let help = format!("the form is `{}`", place.context.form.syntax);
        complain(complaints, Code::PredicateOutput, whole.span, message, Some(&help));
    }
    let is_expected = match second.value {
        Value::Register(_, Type::Pred) | Value::Reported => true,
        Value::Sink => place.spec.second != Second::Required,
        _ => false,
    };
    if !is_expected {
        let help = "the second destination is a register declared `.reg .pred`";
        predicate_expected(second, place, Some(help), complaints);
    }
}

/// Reports a destination that should have been a predicate, or should have had one beside it.
fn predicate_expected(lowered: &Lowered, place: &Place, help: Option<&str>, complaints: &mut Complaints) {
    let message = format!("Predicate output expected for instruction '{}'", place.context.name);
    complain(complaints, Code::PredicateOutput, lowered.span, message, help);
}

fn register(lowered: &Lowered) -> Option<RegId> {
    match lowered.value {
        Value::Register(id, _) => Some(id),
        _ => None,
    }
}
