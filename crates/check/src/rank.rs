//! The order in which ptxas finds fault with modifiers.

use isa::{Mod, SelectError, Type};

/// When ptxas says what is wrong with a modifier, once types and operands fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// More than one Boolean operator.
    Operation,
    /// A rounding that sums of `.bf16` do not take.
    RoundingFirst,
    /// A modifier that the instruction does not take.
    Modifier,
    /// `.ftz`
    Flush,
    /// `.sat` on integers.
    Saturation,
    /// A rounding that the instruction does not take.
    Rounding,
    /// A modifier that says what kind of access or reduction it is: on comparisons after the operator.
    Kind,
    /// Whatever else is missing or does not go together.
    Other,
    /// The comparison operator.
    Comparison,
    /// Any rounding, on comparisons.
    RoundingLast,
    /// A modifier that ptxas has for few instructions.
    ModifierLast,
    /// A missing Boolean operator.
    Combination,
}

impl Rank {
    /// The place of an error of an instruction with these modifiers and types.
    pub(crate) fn of(error: &SelectError, opcode: &str, modifiers: &[&str], types: &[Type]) -> Rank {
        let compares = matches!(opcode, "set" | "setp");
        let sums = matches!(opcode, "add" | "sub");
        match *error {
            SelectError::Repeated { index } => {
                let name = modifiers.get(index).copied().unwrap_or_default();
                let is_space = Mod::from_name(name).is_some_and(|m| m.space().is_some());
                if is_space { Rank::Other } else { Rank::Operation }
            }
            SelectError::Illegal { index, .. } => {
                let name = modifiers.get(index).copied().unwrap_or_default();
                match (Mod::from_name(name), types) {
                    (Some(m), _) if compares && (m.rounding().is_some() || m == Mod::Rs) => {
                        Rank::RoundingLast
                    }
                    (Some(Mod::Rz | Mod::Rm | Mod::Rp), [Type::Bf16 | Type::Bf16x2]) if sums => {
                        Rank::RoundingFirst
                    }
                    (Some(m), _) if m.rounding().is_some() || m == Mod::Rs => Rank::Rounding,
                    (Some(Mod::Ftz), _) => Rank::Flush,
                    (Some(Mod::Sat), [ty]) if sums && is_plain_integer(opcode, *ty) => Rank::Saturation,
                    (Some(m), _) if is_kind(m) => Rank::Kind,
                    (Some(m), _) if is_rare(m) => Rank::ModifierLast,
                    (None, _) => Rank::ModifierLast,
                    _ => Rank::Modifier,
                }
            }
            SelectError::Alternate { .. } if types.last() == Some(&Type::U32) => Rank::Other,
            SelectError::Alternate { .. } => Rank::Flush,
            SelectError::Missing { slot: "CmpOp", .. } | SelectError::Comparison { .. } => Rank::Comparison,
            SelectError::Missing { slot: "BoolOp", .. } => Rank::Combination,
            _ => Rank::Other,
        }
    }
}

/// An integer whose sum ptxas never saturated.
fn is_plain_integer(opcode: &str, ty: Type) -> bool {
    let once_saturated = opcode == "add" && matches!(ty, Type::U32 | Type::U16x2 | Type::S16x2);
    !(ty.is_float() || once_saturated)
}

fn is_kind(modifier: Mod) -> bool {
    matches!(
        modifier,
        Mod::AcqRel
            | Mod::Acquire
            | Mod::Cc
            | Mod::Dec
            | Mod::Exch
            | Mod::Inc
            | Mod::Mmio
            | Mod::Nc
            | Mod::Relaxed
            | Mod::Release
            | Mod::Sc
            | Mod::Shiftamt
            | Mod::Volatile
            | Mod::Weak
    )
}

fn is_rare(modifier: Mod) -> bool {
    matches!(
        modifier,
        Mod::A
            | Mod::NaN
            | Mod::Abs
            | Mod::Alias
            | Mod::Async
            | Mod::B
            | Mod::B4e
            | Mod::Ca
            | Mod::Cg
            | Mod::Clamp
            | Mod::Cs
            | Mod::Cv
            | Mod::Ecl
            | Mod::Ecr
            | Mod::F4e
            | Mod::Lu
            | Mod::R
            | Mod::Rc16
            | Mod::Rc8
            | Mod::Wb
            | Mod::Wrap
            | Mod::Wt
            | Mod::X2
            | Mod::Xorsign
    )
}
