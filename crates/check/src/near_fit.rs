//! Near fits: operands that fit their place except that they are of the wrong kind. ptxas then names what is wrong,
//! instead of reporting mismatched types.

use diag::{Code, Span};
use isa::{Effect, Property, Type, register_allowed};

use crate::module::Operand;
use crate::place::{Complaints, Place, Verdict, complain, takes_vectors};
use crate::value::{Base, Lowered, SymbolValue, Value};

/// Is a special register as wide as the instruction type?
pub(crate) fn special_width_fits(register: isa::SpecialRegister, place: &Place) -> bool {
    match place.ty {
        None => false,
        Some(Type::Pred) => register.readable_as(Type::Pred),
        Some(ty) if place.spec.wider => register.ty().bits() >= ty.bits(),
        Some(ty) => register.readable_as(Type::of_bits(ty.bits())),
    }
}

/// Refuses a vector, if it would fit here but for being one.
pub(crate) fn refuse_vector(
    lowered: &Lowered,
    ty: Type,
    place: &Place,
    complaints: &mut Complaints,
) -> Verdict {
    let fits = match &lowered.value {
        Value::Vector(_, None) => holds_integers(ty),
        Value::Vector(elements, Some(element)) => vector_fits(*element, elements.len(), ty, place),
        Value::VectorRegister(ids, element) => vector_fits(*element, ids.len(), ty, place),
        _ => false,
    };
    if fits { vector_not_allowed(lowered.span, place, complaints) } else { Verdict::Mismatch }
}

/// Would a vector fit here if vectors were allowed? In a place of bits it must fill the type; elsewhere its elements
/// must be as wide as the type.
pub(crate) fn vector_fits(element: Type, count: usize, ty: Type, place: &Place) -> bool {
    match ty.kind() {
        isa::Kind::Bits if takes_vectors(place) && count > 1 && element.bits() < ty.bits() => {
            element.bits() * count as u32 >= ty.bits()
        }
        _ if takes_vectors(place) => register_allowed(ty, element, place.spec.wider),
        _ if place.spec.wider => element.bits() >= ty.bits(),
        isa::Kind::Bits => element.bits() * count as u32 == ty.bits(),
        isa::Kind::Unsigned | isa::Kind::Signed if element.is_float() => {
            element == Type::F16x2 && ty.bits() == 32
        }
        isa::Kind::Float if element.is_float() => element == ty,
        _ => element.bits() == ty.bits(),
    }
}

/// Would `%tid` fit here if vectors were allowed?
pub(crate) fn special_vector_fits(ty: Type) -> bool {
    ty.kind() != isa::Kind::Bits && matches!(ty.bits(), 16 | 32)
}

/// Would the address of a variable fit here if a register were not required?
pub(crate) fn symbol_fits(symbol: &SymbolValue, ty: Type) -> bool {
    match ty.kind() {
        isa::Kind::Float => {
            (symbol.ty.kind() == isa::Kind::Bits || takes_floats(ty) && symbol.ty.is_float()) && !symbol.sum
        }
        isa::Kind::Unsigned | isa::Kind::Signed => {
            !symbol.ty.is_float() && (ty.element() == ty || !symbol.sum)
        }
        kind => kind != isa::Kind::Predicate,
    }
}

/// Would `reg+imm` fit here if a register were not required?
pub(crate) fn sum_fits(register: Type, ty: Type) -> bool {
    match ty.kind() {
        isa::Kind::Predicate => register == Type::Pred,
        isa::Kind::Unsigned | isa::Kind::Signed => {
            (!register.is_float() || register == Type::F16x2) && register != Type::Pred
        }
        isa::Kind::Bits => register != Type::Pred,
        isa::Kind::Float if register == Type::F16x2 => ty == Type::F16x2,
        isa::Kind::Float => register.kind() == isa::Kind::Bits || takes_floats(ty) && register.is_float(),
    }
}

/// Would the base of an address fit without the brackets?
pub(crate) fn address_fits(base: Base, ty: Type, place: &Place, fits: &impl Fn(Type) -> bool) -> bool {
    match base {
        Base::Symbol(_) if ty.is_float() => false,
        Base::Absolute(_) => ty.bits() == 64 && !ty.is_float(),
        Base::Register(_, register) => fits(register),
        Base::Symbol(_) => ty.bits() == place.address_bits,
        _ => false,
    }
}

/// Types that accept a symbol or a sum of any floating-point type.
pub(crate) fn takes_floats(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F32 | Type::F64)
}

/// Types for which a vector of integers is a near fit.
pub(crate) fn holds_integers(ty: Type) -> bool {
    takes_address(ty) || ty == Type::F64
}

/// Types that the address of a variable can have. Packed integers are none.
pub(crate) fn takes_address(ty: Type) -> bool {
    !ty.is_float() && ty != Type::Pred && (16..=64).contains(&ty.bits()) && ty.element() == ty
}

pub(crate) fn must_be_register(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    // Those of a tensor do not count here.
    let counts = place.context.has(Property::CountedCoordinates) && place.context.form.accesses_texels();
    let coordinates = usize::from(counts && place.index > 1);
    let index = place.index + coordinates;
    let message = format!("Argument {index} of instruction '{}': must be register", place.context.name);
    let help = "move the address into a register first";
    complain(complaints, Code::RegisterExpected, span, message, Some(help));
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn special_not_allowed(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let message = format!("Special register argument not allowed for instruction '{}'", place.context.name);
    let help = "move the special register into a register first";
    complain(complaints, Code::SpecialRegister, span, message, Some(help));
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn vector_not_allowed(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let name = place.context.name;
    if takes_vectors(place) {
        let message = format!("Argument vector size mismatch for instruction '{name}'");
        let help = "say `.v2` or `.v4`, or use one register";
        complain(complaints, Code::VectorSize, span, message, Some(help));
    } else if matches!(place.context.form.action, isa::Action::Effect(Effect::Atom | Effect::Red))
        && !place.context.picks.has(isa::Mod::Async)
    {
        // Other forms of these instructions take vectors.
        let message = format!("Vector is not expected for argument {} of instruction '{name}'", place.index);
        complain(complaints, Code::VectorSize, span, message, None);
    } else {
        let message = format!("Vector operand is not allowed for instruction '{name}'");
        complain(complaints, Code::VectorOperand, span, message, None);
    }
    Verdict::Fits(Operand::Sink)
}

/// `%tid` where a scalar is required.
pub(crate) fn special_vector(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    special_not_allowed(span, place, complaints);
    vector_not_allowed(span, place, complaints)
}

pub(crate) fn result_discarded(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let message = format!("Result discard mode is not allowed for instruction '{}'", place.context.name);
    let help = "name a register, even if it is never read";
    complain(complaints, Code::DiscardedResult, span, message, Some(help));
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn result_required(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    // ptxas expands video instructions, and names the `mov` of the expansion.
    let is_video = matches!(place.context.form.action, isa::Action::Pure(name) if name.starts_with("video"));
    if is_video {
        crate::video::unselected(span, place, complaints);
    }
    let name = if is_video { "mov" } else { place.context.name };
    let message = format!("Result register required for instruction '{name}'");
    complain(complaints, Code::ResultRegister, span, message, None);
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn read_only(span: Span, complaints: &mut Complaints) -> Verdict {
    let message = "Read-only special register cannot be destination argument".to_owned();
    complain(complaints, Code::ReadOnlyRegister, span, message, None);
    Verdict::Fits(Operand::Sink)
}

/// A `.param` variable of a body has no address.
pub(crate) fn address_of_parameter(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let message = format!("Illegal to take address of parameter '{}'", place.text);
    complain(complaints, Code::ParameterAddress, span, message, None);
    Verdict::Fits(Operand::Sink)
}
