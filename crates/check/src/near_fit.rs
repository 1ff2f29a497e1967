//! Near fits: operands that fit their place except that they are of the wrong kind. ptxas then names what is wrong,
//! instead of reporting mismatched types.

use isa::{Type, register_allowed};

use crate::matching::{Place, takes_vectors};
use crate::operand::{Base, SymbolValue};

/// Is a special register as wide as the instruction type?
pub(crate) fn special_width_fits(register: isa::SpecialRegister, place: &Place) -> bool {
    match place.ty {
        None => false,
        Some(Type::Pred) => register.readable_as(Type::Pred),
        Some(ty) if place.spec.wider => register.ty().bits() >= ty.bits(),
        Some(ty) => register.readable_as(Type::of_bits(ty.bits())),
    }
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
