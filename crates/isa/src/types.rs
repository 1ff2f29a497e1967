//! The scalar and packed types of PTX, and the small closed sets of modifiers that the semantics use.

use std::fmt;

/// The interpretation of a [`Type`]'s bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.pred`
    Predicate,
    /// `.b8` to `.b128`: bits without an interpretation.
    Bits,
    /// `.u8` to `.u64`
    Unsigned,
    /// `.s8` to `.s64`
    Signed,
    /// Binary floating point, packed forms included.
    Float,
}

macro_rules! types {
    ($($variant:ident $name:literal $kind:ident $bits:literal $lanes:literal;)*) => {
        /// A type as it is written after a dot in an instruction or a declaration
        /// (PTX ISA, "Fundamental Types", "Alternate Floating-Point Data Formats", "Packed Data Types").
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Type {
            $(#[doc = concat!("`.", $name, "`")] $variant,)*
        }

        impl Type {
            /// Every type, in declaration order.
            pub const ALL: &'static [Type] = &[$(Type::$variant,)*];

            /// The spelling without its dot.
            pub const fn name(self) -> &'static str {
                match self { $(Type::$variant => $name,)* }
            }

            /// The kind of number.
            pub const fn kind(self) -> Kind {
                match self { $(Type::$variant => Kind::$kind,)* }
            }

            /// Width of the whole value in bits (1 for `.pred`).
            pub const fn bits(self) -> u32 {
                match self { $(Type::$variant => $bits,)* }
            }

            /// Number of packed elements: 1 for scalars, 2 for `.f16x2`.
            pub const fn lanes(self) -> u32 {
                match self { $(Type::$variant => $lanes,)* }
            }

            /// The type with this spelling, without its dot.
            pub fn from_name(name: &str) -> Option<Type> {
                match name { $($name => Some(Type::$variant),)* _ => None }
            }
        }
    };
}

types! {
    Pred "pred" Predicate 1 1;
    B1 "b1" Bits 1 1;
    B2 "b2" Bits 2 1;
    B4 "b4" Bits 4 1;
    B8 "b8" Bits 8 1;
    B16 "b16" Bits 16 1;
    B32 "b32" Bits 32 1;
    B64 "b64" Bits 64 1;
    B128 "b128" Bits 128 1;
    U2 "u2" Unsigned 2 1;
    U4 "u4" Unsigned 4 1;
    U8 "u8" Unsigned 8 1;
    U16 "u16" Unsigned 16 1;
    U32 "u32" Unsigned 32 1;
    U64 "u64" Unsigned 64 1;
    S2 "s2" Signed 2 1;
    S4 "s4" Signed 4 1;
    S8 "s8" Signed 8 1;
    S16 "s16" Signed 16 1;
    S32 "s32" Signed 32 1;
    S64 "s64" Signed 64 1;
    U8x4 "u8x4" Unsigned 32 4;
    S8x4 "s8x4" Signed 32 4;
    U16x2 "u16x2" Unsigned 32 2;
    S16x2 "s16x2" Signed 32 2;
    F16 "f16" Float 16 1;
    F16x2 "f16x2" Float 32 2;
    Bf16 "bf16" Float 16 1;
    Bf16x2 "bf16x2" Float 32 2;
    Tf32 "tf32" Float 32 1;
    F32 "f32" Float 32 1;
    F32x2 "f32x2" Float 64 2;
    F64 "f64" Float 64 1;
    E4m3 "e4m3" Float 8 1;
    E5m2 "e5m2" Float 8 1;
    E3m2 "e3m2" Float 6 1;
    E2m3 "e2m3" Float 6 1;
    E2m1 "e2m1" Float 4 1;
    Ue8m0 "ue8m0" Float 8 1;
    Ue4m3 "ue4m3" Float 8 1;
    Ue5m3 "ue5m3" Float 8 1;
    S2f6 "s2f6" Float 8 1;
    E4m3x2 "e4m3x2" Float 16 2;
    E5m2x2 "e5m2x2" Float 16 2;
    E2m3x2 "e2m3x2" Float 16 2;
    E3m2x2 "e3m2x2" Float 16 2;
    E2m1x2 "e2m1x2" Float 8 2;
    Ue8m0x2 "ue8m0x2" Float 16 2;
    Ue5m3x2 "ue5m3x2" Float 16 2;
    S2f6x2 "s2f6x2" Float 16 2;
    E4m3x4 "e4m3x4" Float 32 4;
    E5m2x4 "e5m2x4" Float 32 4;
    E2m3x4 "e2m3x4" Float 32 4;
    E3m2x4 "e3m2x4" Float 32 4;
    E2m1x4 "e2m1x4" Float 16 4;
    E2m1p4x4 "e2m1p4x4" Float 32 4;
    Ue8m0x4 "ue8m0x4" Float 32 4;
}

impl Type {
    /// Width in memory in bytes (a `.pred`, which has none, counts as 1).
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Floating point, packed forms included.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// `.s8` to `.s64` and packed signed.
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }

    /// `.f16x2` -> `.f16`, `.bf16x2` -> `.bf16`, `.u16x2` -> `.u16` ...; scalars are their own element.
    pub const fn element(self) -> Type {
        match self {
            Type::F16x2 => Type::F16,
            Type::Bf16x2 => Type::Bf16,
            Type::F32x2 => Type::F32,
            Type::U8x4 => Type::U8,
            Type::S8x4 => Type::S8,
            Type::U16x2 => Type::U16,
            Type::S16x2 => Type::S16,
            Type::E4m3x2 | Type::E4m3x4 => Type::E4m3,
            Type::E5m2x2 | Type::E5m2x4 => Type::E5m2,
            Type::E2m3x2 | Type::E2m3x4 => Type::E2m3,
            Type::E3m2x2 | Type::E3m2x4 => Type::E3m2,
            Type::E2m1x2 | Type::E2m1x4 | Type::E2m1p4x4 => Type::E2m1,
            Type::Ue8m0x2 | Type::Ue8m0x4 => Type::Ue8m0,
            Type::Ue5m3x2 => Type::Ue5m3,
            Type::S2f6x2 => Type::S2f6,
            other => other,
        }
    }
}

impl Type {
    /// The type of the same kind and twice the width (the destination of `mul.wide`).
    pub const fn widened(self) -> Option<Type> {
        Some(match self {
            Type::U8 => Type::U16,
            Type::U16 => Type::U32,
            Type::U32 => Type::U64,
            Type::S8 => Type::S16,
            Type::S16 => Type::S32,
            Type::S32 => Type::S64,
            Type::B8 => Type::B16,
            Type::B16 => Type::B32,
            Type::B32 => Type::B64,
            Type::B64 => Type::B128,
            _ => return None,
        })
    }

    /// The bit-size type of this width; `.b128` for widths that have none.
    pub const fn of_bits(bits: u32) -> Type {
        match bits {
            1 => Type::Pred,
            4 => Type::B4,
            8 => Type::B8,
            16 => Type::B16,
            32 => Type::B32,
            64 => Type::B64,
            _ => Type::B128,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

/// Rounding of a floating-point result to its format (IEEE 754 names in brackets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn` (roundTiesToEven)
    NearestEven,
    /// `.rna` (roundTiesToAway)
    NearestAway,
    /// `.rz` (roundTowardZero)
    TowardZero,
    /// `.rm` (roundTowardNegative)
    TowardNegative,
    /// `.rp` (roundTowardPositive)
    TowardPositive,
}

/// Comparison operator of `set` and `setp`, named as the manual spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Unsigned lower.
    Lo,
    /// Unsigned lower or same.
    Ls,
    /// Unsigned higher.
    Hi,
    /// Unsigned higher or same.
    Hs,
    /// Equal or unordered (either operand is NaN); likewise the next five.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Neither operand is NaN.
    Num,
    /// Either operand is NaN.
    Nan,
}

/// Boolean operator that combines a comparison with predicate `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// State space of a variable or a memory access (PTX ISA, "State Spaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Space {
    /// No space given: an address in the generic window.
    Generic,
    Global,
    Shared,
    Local,
    Const,
    /// Kernel and function parameters.
    Param,
    Reg,
    /// `.sreg`: special registers.
    SpecialRegister,
    Tex,
}
