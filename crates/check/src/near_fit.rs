//! Could an operand of another kind stand in a place but for its kind? ptxas says then what is wrong, and nothing of types.

use isa::{Opcode, Type, register_allowed};

use crate::instruction::Context;
use crate::matching::{Place, takes_vectors};
use crate::operand::{Base, SymbolValue};

/// Does `cvt` write a format that no register has?
pub(crate) fn becomes_bits(place: &Place) -> bool {
    let to = place.context.picks.types().first();
    let is_narrow = |ty: Type| ty == Type::Tf32 || ty.lanes() > 1 && ty.element().bits() <= 8;
    place.context.form.opcode == Opcode::Cvt && to.is_some_and(|&ty| is_narrow(ty))
}

/// Places of bits where ptxas takes no constant: packed narrow formats that `cvt` reads, its random bits, metadata of sparse matrices.
pub(crate) fn needs_register(place: &Place) -> bool {
    let Context { form, picks, .. } = place.context;
    let reads_narrow = || picks.types().last().is_some_and(|ty| ty.lanes() > 1 && ty.element().bits() <= 8);
    match form.opcode {
        Opcode::Cvt => place.spec.name == "rbits" || place.spec.name == "a" && reads_narrow(),
        Opcode::Mma => matches!(place.spec.name, "e" | "scale-a" | "scale-b"),
        Opcode::Wgmma => place.spec.name == "sp-meta",
        _ => false,
    }
}

/// Is a special register as wide as the instruction type?
pub(crate) fn special_width_fits(register: isa::SpecialRegister, place: &Place) -> bool {
    match place.ty {
        None => false,
        Some(Type::Pred) => register.readable_as(Type::Pred),
        Some(ty) if place.spec.wider => register.ty().bits() >= ty.bits(),
        Some(ty) => register.readable_as(Type::of_bits(ty.bits())),
    }
}

/// Could a vector stand here but for being one? Of bits it must fill the type, of others its elements must be as wide.
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

/// Could `%tid` stand here but for being a vector?
pub(crate) fn special_vector_fits(ty: Type) -> bool {
    ty.kind() != isa::Kind::Bits && matches!(ty.bits(), 16 | 32)
}

/// Could the address of a variable stand here but for being no register?
pub(crate) fn symbol_fits(symbol: &SymbolValue, ty: Type) -> bool {
    match ty.kind() {
        isa::Kind::Float => {
            (symbol.ty.kind() == isa::Kind::Bits || takes_floats(ty) && symbol.ty.is_float()) && !symbol.sum
        }
        isa::Kind::Unsigned | isa::Kind::Signed => !symbol.ty.is_float(),
        kind => kind != isa::Kind::Predicate,
    }
}

/// Could `reg+imm` stand here but for being no register?
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

/// Would what an address starts from fit without the brackets?
pub(crate) fn address_fits(base: Base, ty: Type, place: &Place, fits: &impl Fn(Type) -> bool) -> bool {
    match base {
        Base::Symbol(_) if ty.is_float() => false,
        Base::Absolute(_) => ty.bits() == 64 && !ty.is_float(),
        Base::Register(_, register) => fits(register),
        Base::Symbol(_) => ty.bits() == place.address_bits,
        _ => false,
    }
}

/// Floating-point types for which ptxas lets any other stand where it takes no register at all.
pub(crate) fn takes_floats(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F32 | Type::F64)
}

/// Types that ptxas lets vectors of integers stand for.
pub(crate) fn holds_integers(ty: Type) -> bool {
    takes_address(ty) || ty == Type::F64
}

/// Types that the address of a variable can have.
pub(crate) fn takes_address(ty: Type) -> bool {
    !ty.is_float() && ty != Type::Pred && (16..=64).contains(&ty.bits())
}
