//! Operands that are one value: scalars, masks and labels.

use diag::{Code, Diagnostic};
use isa::{Access, Property, Type, register_allowed};

use crate::destination::fit_destination;
use crate::literal::Const;
use crate::module::Operand;
use crate::near_fit::{must_be_register, special_not_allowed};
use crate::order::Stage;
use crate::place::{Complaints, Place, Verdict, complain, is_bits, takes_vectors};
use crate::source::fit_source;
use crate::value::{Lowered, Value};
pub(crate) fn fit_scalar(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let Some(ty) = place.ty else { return Verdict::Mismatch };
    if place.is_plain_integer() && !is_plain_integer(lowered, ty, place) {
        return Verdict::Mismatch;
    }
    // `ld.b32 {%r1}`: braces around a single element have no effect.
    let lowered = match &lowered.value {
        Value::Vector(elements, _) if elements.len() == 1 && takes_braces(place) => &elements[0],
        _ => lowered,
    };
    if place.spec.access == Access::Write {
        fit_destination(lowered, ty, place, complaints)
    } else {
        fit_source(lowered, ty, place, complaints)
    }
}

/// The CTA mask of a multicast copy or commit, which has 16 bits. ptxas accepts 32-bit operands at first and then
/// reports the size.
pub(crate) fn fit_mask(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    if let fits @ Verdict::Fits(_) = fit_scalar(lowered, place, complaints) {
        return fits;
    }
    let could_be_wide = match &lowered.value {
        Value::Register(_, ty) => !ty.is_float(),
        Value::Vector(_, ty) => ty.is_none(),
        Value::VectorRegister(..) => false,
        _ => place.context.picks.has(isa::Mod::MulticastCluster),
    };
    if !could_be_wide || place.context.picks.has(isa::Mod::CpMask) {
        return Verdict::Mismatch;
    }
    let wide = Place { ty: Some(Type::U32), ..*place };
    let mut others = Complaints::new();
    let Verdict::Fits(_) = fit_source(lowered, Type::U32, &wide, &mut others) else {
        return Verdict::Mismatch;
    };
    if matches!(lowered.value, Value::Address(..)) {
        complaints.append(&mut others);
        return Verdict::Fits(Operand::Sink);
    }
    let name = place.context.name;
    let size = format!("Argument {} of instruction '{name}': must be 16-bit size", place.index);
    for message in [size, format!("Arguments mismatch for instruction '{name}'")] {
        complaints
            .push((Stage::OpcodeRules, Diagnostic::error(Code::ArgumentsMismatch, lowered.span, message)));
    }
    complaints.append(&mut others);
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn fit_label(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let name = place.context.name;
    let label_expected = |complaints: &mut Complaints| {
        let message = format!("Label expected for argument {} of instruction '{name}'", place.index);
        complain(complaints, Code::LabelExpected, lowered.span, message, None);
        Verdict::Fits(Operand::Sink)
    };
    match lowered.value {
        // `label|_` means the same as `label`.
        Value::Pair(ref first, ref second) if matches!(second.value, Value::Sink) => {
            fit_label(first, place, complaints)
        }
        Value::Label(id, 0) => Verdict::Fits(Operand::Label(id)),
        // The unknown symbol was reported.
        Value::Unknown => Verdict::Fits(Operand::Sink),
        Value::NotRegister(_) | Value::Register(_, Type::Pred) => Verdict::Mismatch,
        Value::Symbol(symbol) if symbol.array => Verdict::Mismatch,
        Value::Symbol(_) | Value::Address(..) => {
            label_expected(complaints);
            must_be_register(lowered.span, place, complaints)
        }
        Value::Vector(..) => Verdict::Mismatch,
        Value::Special(_) => {
            special_not_allowed(lowered.span, place, complaints);
            label_expected(complaints)
        }
        _ => label_expected(complaints),
    }
}

/// Does this fit a place that accepts only integer registers and integer constants?
fn is_plain_integer(lowered: &Lowered, ty: Type, place: &Place) -> bool {
    match &lowered.value {
        Value::Register(_, register) | Value::RegisterPlus(_, register, _) => {
            let is_integer = match place.takes_only_bits(ty) {
                true => is_bits(Some(*register)),
                false => !register.is_float() && *register != Type::Pred,
            };
            is_integer && register_allowed(ty, *register, place.spec.wider)
        }
        Value::Const(value) => matches!(value, Const::Int { .. }),
        Value::Pair(first, _) => is_plain_integer(first, ty, place),
        // ptxas treats `sym+4` as a value.
        Value::Symbol(symbol) => symbol.sum && ty.bits() >= 32 && !place.context.has(Property::NoSums),
        Value::Indexed(_)
        | Value::Function(..)
        | Value::Address(..)
        | Value::Vector(..)
        | Value::VectorRegister(..)
        | Value::SpecialVector(_)
        | Value::UnknownSum => false,
        _ => true,
    }
}

/// Does the place accept braces around a scalar?
fn takes_braces(place: &Place) -> bool {
    takes_vectors(place) || place.context.has(Property::BracedScalars)
}
