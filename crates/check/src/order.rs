//! The order in which ptxas finds fault: the one key by which diagnostics are sorted.

use diag::Code;
use isa::{Mod, Opcode, SelectError, Type};

/// When ptxas says something. Fields are compared one after the other; what has the same key stays as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    /// Said at the end of the file.
    pub(crate) at_end: bool,
    pub(crate) line: u32,
    pub(crate) phase: Phase,
    /// Number of the statement or declaration, in the order in which they are read.
    pub(crate) statement: u32,
    pub(crate) stage: Stage,
    /// Number of the modifier, where modifiers are read one after the other.
    pub(crate) index: u16,
}

/// What ptxas is doing when it finds fault with something on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It has read the whole statement.
    Statement,
    /// It comes to a place that does not parse.
    Syntax,
    /// It looks for names at the end of the function.
    Names,
}

/// How far ptxas has come with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The guard. Statements that are no instructions have this stage only.
    Guard,
    /// Each modifier as it is read: unknown, repeated, or missing in the module's version or target.
    Word,
    /// What modifiers together need of version and target.
    Words,
    /// Modifiers that are refused whatever the instruction.
    EarlyModifier,
    /// What is wrong with operands whatever the instruction.
    Operand,
    /// Sizes of vectors, once all operands are read.
    VectorSize,
    /// There is no such instruction. The last thing said of it.
    Name,
    /// It has no such types. The last thing said of it.
    Types,
    /// An operand that looks like a cache policy.
    CachePolicy,
    /// It takes another number of operands. The last thing said of it.
    Count,
    /// Signs at operands that cannot have any.
    Signs,
    /// It takes operands of other types. The last thing said of it.
    Mismatch,
    /// What the instruction as a whole needs of version and target.
    FormGate,
    /// What `.ftz` needs.
    ModifierGate,
    /// Elements of vectors that are unlike.
    Elements,
    /// More than one Boolean operator.
    Operation,
    /// A rounding that sums of `.bf16` do not take.
    RoundingFirst,
    /// A modifier that it does not take.
    Modifier,
    /// `.ftz`
    Flush,
    /// Its result cannot be discarded. The last thing said of it.
    Discard,
    /// What it needs once its result is known to be kept.
    ResultGate,
    /// `.sat` on integers.
    Saturation,
    /// Special registers that it does not read.
    SpecialRegister,
    /// A rounding that it does not take.
    Rounding,
    /// A rounding that it takes on newer targets.
    RoundingGate,
    /// A modifier that says what kind of access or reduction it is.
    Kind,
    /// Results that go into no register.
    Result,
    /// Whatever else of its modifiers is missing or does not go together.
    Other,
    /// What does not fit of its operands, though types do.
    Fit,
    /// The comparison operator.
    Comparison,
    /// Any rounding, on comparisons.
    RoundingLast,
    /// [`Stage::Kind`], on comparisons.
    KindLast,
    /// A modifier that ptxas has for few instructions.
    ModifierLast,
    /// What it needs of version and target for its types.
    LateGate,
    /// A missing Boolean operator.
    Combination,
    /// [`Stage::Result`], on comparisons.
    ResultLast,
    /// Signs at operands of an instruction that has none.
    Negation,
    /// [`Stage::Fit`] of values where registers belong, on comparisons and where there are signs.
    FitLast,
    /// Constants that are out of range, in an instruction that is right but for them.
    Range,
}

impl Stage {
    /// Does ptxas look no further once it has found fault with this?
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Stage::Name | Stage::Types | Stage::Count | Stage::Mismatch | Stage::Discard)
    }

    /// The stage of an error of an instruction of this opcode (where that matters) with these modifiers and types.
    pub(crate) fn of_modifiers(
        error: &SelectError,
        opcode: Option<Opcode>,
        modifiers: &[&str],
        types: &[Type],
    ) -> Stage {
        let compares = opcode.is_some_and(compares);
        let sums = matches!(opcode, Some(Opcode::Add | Opcode::Sub));
        let written = |index: usize| modifiers.get(index).and_then(|name| Mod::from_name(name));
        match *error {
            SelectError::UnknownInstruction => Stage::Name,
            SelectError::Types => Stage::Types,
            SelectError::Arguments { .. } => Stage::Count,
            SelectError::Illegal { .. } if error.comes_first(modifiers) => Stage::EarlyModifier,
            _ if error.comes_first(modifiers) => Stage::Word,
            SelectError::Repeated { index } => {
                let is_space = written(index).is_some_and(|m| m.space().is_some());
                if is_space { Stage::Other } else { Stage::Operation }
            }
            SelectError::Illegal { index, .. } => match (written(index), types) {
                (Some(m), _) if compares && rounds(m) => Stage::RoundingLast,
                (Some(Mod::Rz | Mod::Rm | Mod::Rp), [Type::Bf16 | Type::Bf16x2]) if sums => {
                    Stage::RoundingFirst
                }
                (Some(m), _) if rounds(m) => Stage::Rounding,
                (Some(Mod::Ftz), _) => Stage::Flush,
                (Some(Mod::Sat), [ty]) if sums && is_plain_integer(opcode, *ty) => Stage::Saturation,
                (Some(m), _) if is_kind(m) && compares => Stage::KindLast,
                (Some(m), _) if is_kind(m) => Stage::Kind,
                (Some(m), _) if is_rare(m) => Stage::ModifierLast,
                (None, _) => Stage::ModifierLast,
                _ => Stage::Modifier,
            },
            SelectError::Alternate { .. } if types.last() == Some(&Type::U32) => Stage::Other,
            SelectError::Alternate { .. } => Stage::Flush,
            SelectError::Missing { slot: "CmpOp", .. } | SelectError::Comparison { .. } => Stage::Comparison,
            SelectError::Missing { slot: "BoolOp", .. } => Stage::Combination,
            _ => Stage::Other,
        }
    }

    /// The stage of what is wrong with an operand whose type fits, in an instruction of `opcode`. `is_signed`: an operand
    /// has a sign, and the instruction takes none.
    pub(crate) fn of_operand(code: Code, opcode: Opcode, is_signed: bool) -> Stage {
        let compares = compares(opcode);
        match code {
            Code::DiscardedResult => Stage::Discard,
            Code::UnlikeElements => Stage::Elements,
            Code::SpecialRegister => Stage::SpecialRegister,
            Code::ResultRegister if compares => Stage::ResultLast,
            Code::VectorOperand | Code::RegisterExpected if compares || is_signed => Stage::FitLast,
            Code::VideoSelector if compares => Stage::FitLast,
            Code::ResultRegister | Code::ReadOnlyRegister => Stage::Result,
            _ => Stage::Fit,
        }
    }
}

/// Is it a comparison? ptxas looks at its modifiers in an order of its own.
fn compares(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Set | Opcode::Setp)
}

fn rounds(modifier: Mod) -> bool {
    modifier.rounding().is_some() || modifier == Mod::Rs
}

/// An integer whose sum ptxas never saturated.
fn is_plain_integer(opcode: Option<Opcode>, ty: Type) -> bool {
    let once_saturated = opcode == Some(Opcode::Add) && matches!(ty, Type::U32 | Type::U16x2 | Type::S16x2);
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
