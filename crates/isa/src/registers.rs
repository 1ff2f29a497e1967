//! Which declared register types and which literals an operand's instruction type accepts
//! (PTX ISA, "Operand Type Checking" and "Operand Size Exceeding Instruction-Type Size").

use crate::{Kind, Type};

/// May a register declared `register` stand where the instruction type is `instruction`? With `wider`, as `ld`, `st` and
/// `cvt` relax it: a register of more bits than the type is accepted too, unless both are floating point.
pub fn register_allowed(instruction: Type, register: Type, wider: bool) -> bool {
    if instruction == Type::Pred || register == Type::Pred {
        return instruction == register;
    }
    let same_width = instruction.bits() == register.bits();
    if !same_width && !(wider && register.bits() > instruction.bits()) {
        return false;
    }
    match (instruction.kind(), register.kind()) {
        (_, Kind::Bits) => true,
        (Kind::Bits, _) => same_width || register.kind() != Kind::Float,
        // `.f16x2` registers are 32-bit containers and stand for integers too.
        (Kind::Unsigned | Kind::Signed, Kind::Float) => register == Type::F16x2 && same_width,
        (Kind::Unsigned | Kind::Signed, _) => true,
        // Only formats that can be declared; the others live in bit-size registers.
        (Kind::Float, Kind::Float) => instruction == register,
        (Kind::Float, _) => false,
        (Kind::Predicate, _) => false,
    }
}

/// How a literal is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralForm {
    /// `1`, `-1`, `0x1`, `1U`, and constant expressions of integers.
    Integer,
    /// `1.5`, `1e3`
    Decimal,
    /// `0f3F800000`
    F32Bits,
    /// `0d3FF0000000000000`
    F64Bits,
}

/// May a literal of this form stand where the instruction type is `instruction`? Integers are truncated to its width.
pub fn literal_allowed(instruction: Type, literal: LiteralForm) -> bool {
    match instruction {
        Type::F32 | Type::F64 => literal != LiteralForm::Integer,
        Type::B32 => matches!(literal, LiteralForm::Integer | LiteralForm::F32Bits),
        Type::B64 => matches!(literal, LiteralForm::Integer | LiteralForm::Decimal | LiteralForm::F64Bits),
        _ => !instruction.is_float() && literal == LiteralForm::Integer,
    }
}
