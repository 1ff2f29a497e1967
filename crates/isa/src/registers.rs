//! The declared register types and the literals that an operand's instruction type accepts (PTX ISA, "Operand Type
//! Checking" and "Operand Size Exceeding Instruction-Type Size").

use crate::{Kind, Type};

/// Does an operand of type `instruction` accept a register declared `register`? With `wider`, it also accepts a
/// register with more bits than the type, as for `ld`, `st` and `cvt`.
pub fn register_allowed(instruction: Type, register: Type, wider: bool) -> bool {
    if instruction == Type::Pred || register == Type::Pred {
        return instruction == register;
    }
    let wider = wider && instruction != Type::Bf16;
    if instruction.bits() != register.bits() && !(wider && register.bits() > instruction.bits()) {
        return false;
    }
    match (instruction.kind(), register.kind()) {
        (_, Kind::Bits) | (Kind::Bits, _) => true,
        // Only formats that can be declared; values of other formats are in bit-size registers.
        (Kind::Float, _) => instruction == register,
        // `.f16x2` registers are 32-bit containers, which may hold integers too.
        (_, Kind::Float) => register == Type::F16x2,
        // Packed integers are in bit-size registers.
        _ => instruction.lanes() == 1,
    }
}

/// The form in which a literal is written.
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

/// Does an operand of type `instruction` accept a literal of this form? Integers are truncated to its width.
pub fn literal_allowed(instruction: Type, literal: LiteralForm) -> bool {
    match instruction {
        Type::F32 | Type::F64 => literal != LiteralForm::Integer,
        Type::B32 => matches!(literal, LiteralForm::Integer | LiteralForm::F32Bits),
        Type::B64 => matches!(literal, LiteralForm::Integer | LiteralForm::Decimal | LiteralForm::F64Bits),
        _ => !instruction.is_float() && instruction.lanes() == 1 && literal == LiteralForm::Integer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [&str; 18] = [
        "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
        "f16", "f16x2", "f32", "f64",
    ];

    /// What ptxas 13.5 accepts, register type by register type.
    fn check(wider: bool, rows: &[(&str, &str)]) {
        for (instruction, accepted) in rows {
            let ty = Type::from_name(instruction).unwrap();
            let allowed: Vec<&str> = DECLARED
                .into_iter()
                .filter(|name| register_allowed(ty, Type::from_name(name).unwrap(), wider))
                .collect();
            assert_eq!(allowed.join(" "), *accepted, ".{instruction}, wider: {wider}");
        }
    }

    #[test]
    fn registers_of_the_same_width() {
        check(
            false,
            &[
                ("pred", "pred"),
                ("b16", "b16 u16 s16 f16"),
                ("b32", "b32 u32 s32 f16x2 f32"),
                ("b64", "b64 u64 s64 f64"),
                ("u16", "b16 u16 s16"),
                ("u32", "b32 u32 s32 f16x2"),
                ("s64", "b64 u64 s64"),
                ("f16", "b16 f16"),
                ("f16x2", "b32 f16x2"),
                ("bf16", "b16"),
                ("bf16x2", "b32"),
                ("f32x2", "b64"),
                ("u16x2", "b32 f16x2"),
                ("f32", "b32 f32"),
                ("f64", "b64 f64"),
                ("b128", "b128"),
            ],
        );
    }

    #[test]
    fn wider_registers() {
        check(
            true,
            &[
                ("b8", "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64"),
                ("b32", "b32 b64 b128 u32 u64 s32 s64 f16x2 f32 f64"),
                ("u8", "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16x2"),
                ("s64", "b64 b128 u64 s64"),
                ("f16", "b16 b32 b64 b128 f16"),
                ("bf16", "b16"),
                ("f32", "b32 b64 b128 f32"),
                ("f64", "b64 b128 f64"),
            ],
        );
    }

    #[test]
    fn literals() {
        use LiteralForm::*;
        assert!(literal_allowed(Type::F64, F32Bits));
        assert!(literal_allowed(Type::B64, Decimal) && !literal_allowed(Type::B32, Decimal));
        assert!(!literal_allowed(Type::F16, Integer) && !literal_allowed(Type::Bf16x2, F32Bits));
        assert!(literal_allowed(Type::U16, Integer) && !literal_allowed(Type::U32, F32Bits));
    }
}
