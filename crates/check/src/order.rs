//! The order in which ptxas reports errors: the one key that sorts diagnostics.
//!
//! Keys are compared field by field: end of the file, line, phase, statement, stage, index of the modifier. The
//! parser's syntax errors have the phase [`Phase::Syntax`]; so the errors of an instruction that does not parse to
//! its end (`syntax::tree::Statement::Unfinished`) come before the syntax error of the same line. Some stages are
//! final ([`Stage::is_final`]): ptxas stops there, and errors of later stages of the same statement are dropped.

use diag::Code;
use isa::{Faulty, Mod, Opcode, SelectError, Type};

/// When ptxas reports an error. Fields are compared in order; errors with equal keys keep the order in which they
/// were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    /// Reported at the end of the file.
    pub(crate) at_end: bool,
    pub(crate) line: u32,
    pub(crate) phase: Phase,
    /// Index of the statement or declaration, in the order in which ptxas reads them.
    pub(crate) statement: u32,
    pub(crate) stage: Stage,
    /// Index of the modifier, where ptxas reads modifiers one by one.
    pub(crate) index: u16,
}

/// What ptxas does when it finds an error on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It has read a whole statement.
    Statement,
    /// It reads text that does not parse.
    Syntax,
    /// It resolves names at the end of a function.
    Names,
}

/// How far ptxas has checked an instruction. "Final" stages end the check of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// A function that was declared differently before.
    Redefinition,
    /// The guard. Statements that are not instructions have no later stage.
    Guard,
    /// Each modifier as it is read: unknown, repeated, or missing in the module's version or target.
    Word,
    /// What combinations of modifiers require of version and target.
    Words,
    /// Errors in operands that do not depend on the instruction.
    Operand,
    /// Lengths of vectors, once all operands are read.
    VectorSize,
    /// No instruction has this name. Final.
    Name,
    /// A modifier of [`EARLY`] that no form of the name takes. The first such modifier is final.
    EarlyModifier,
    /// Signs on operands that cannot have one.
    Signs,
    /// The instruction does not have these types. Final.
    Types,
    /// An operand that looks like a cache policy.
    CachePolicy,
    /// Another number of operands is required. Final.
    Count,
    /// Operands of other types are required. Final.
    Mismatch,
    /// A number of dimensions, on an instruction that has none.
    Dimension,
    /// What the instruction as a whole requires of version and target.
    FormGate,
    /// What `.ftz` requires.
    ModifierGate,
    /// Rules of the opcode on its state spaces, sizes and constants, and on modifiers that only some of its forms
    /// take.
    OpcodeRules,
    /// Elements of a vector that have different types.
    Elements,
    /// More than one Boolean operator.
    Operation,
    /// A rounding that sums of `.bf16` do not have.
    RoundingFirst,
    /// A modifier of [`FIRST`] that the instruction does not take.
    Modifier,
    /// A result that cannot be discarded. Final.
    Discard,
    /// What the instruction requires if its result is kept.
    ResultGate,
    /// `.sat` on integers.
    Saturation,
    /// Special registers that the instruction does not read.
    SpecialRegister,
    /// A scope that the instruction does not take.
    Scope,
    /// Other modifiers that are missing or do not fit together.
    Other,
    /// Operands that do not fit, although their types do.
    Fit,
    /// The comparison operator.
    Comparison,
    /// A reduction that the instruction does not take.
    Reduction,
    /// Destinations that are not registers.
    Result,
    /// A modifier of [`KINDS`] that the instruction does not take.
    Kind,
    /// A rounding that the instruction does not take, or a missing one that it requires.
    Rounding,
    /// A rounding that only newer targets have.
    RoundingGate,
    /// What the instruction's types require of version and target.
    LateGate,
    /// A modifier of [`LAST`] that the instruction does not take.
    ModifierLast,
    /// A missing Boolean operator.
    Combination,
    /// Signs on operands of an instruction that takes none.
    Negation,
    /// Operands that must be registers and are not.
    FitLast,
    /// Constants that are out of range, in an instruction that is otherwise correct.
    Range,
}

/// The places in [`Stage::OpcodeRules`], in this order: a missing number of dimensions or level, a wrong pair of
/// state spaces or combination of modifiers, constants that are out of range, missing state spaces.
pub(crate) const DIMENSION: u16 = 0;
pub(crate) const WAY: u16 = 1;
pub(crate) const RANGE: u16 = 2;
pub(crate) const SPACE: u16 = 3;

impl Stage {
    /// Does ptxas stop checking the instruction after an error of this stage?
    pub(crate) fn is_final(self) -> bool {
        matches!(
            self,
            Stage::Name
                | Stage::EarlyModifier
                | Stage::Types
                | Stage::Count
                | Stage::Mismatch
                | Stage::Discard
        )
    }

    /// The stage of an error of an instruction with these modifiers and types, and its place within the stage.
    /// `opcode` is needed for some errors only.
    pub(crate) fn of_modifiers(
        error: &SelectError,
        opcode: Option<Opcode>,
        modifiers: &[&str],
        types: &[Type],
    ) -> (Stage, usize) {
        if let Some(stage) = isa::stage_of(error, Faulty { opcode, modifiers, types }) {
            return Stage::of_table(stage);
        }
        let word = |index: usize| modifiers.get(index).copied().unwrap_or_default();
        let stage = match *error {
            SelectError::UnknownInstruction => Stage::Name,
            SelectError::Types => Stage::Types,
            SelectError::Arguments { .. } => Stage::Count,
            SelectError::UnknownModifier { index } => return (Stage::Word, index),
            SelectError::Repeated { index } if error.comes_first(modifiers) => return (Stage::Word, index),
            SelectError::Illegal { index, .. } if error.comes_first(modifiers) => {
                return (Stage::EarlyModifier, place_of(word(index), EARLY).unwrap_or(EARLY.len()));
            }
            SelectError::Repeated { index }
                if Mod::from_name(word(index)).is_some_and(|m| m.space().is_some()) =>
            {
                // Just before state spaces that the instruction does not take.
                return (Stage::Modifier, 2 * place_of("global", FIRST).unwrap_or_default() - 1);
            }
            SelectError::Repeated { .. } => Stage::Operation,
            SelectError::Operation { .. } => return Stage::of_table(isa::Stage::Combined),
            // ptxas rejects these before all others.
            SelectError::Illegal { index, .. } if is_dimension(word(index)) => Stage::Dimension,
            SelectError::Illegal { index, .. } | SelectError::Says { index, .. } => {
                return refusal(word(index));
            }
            SelectError::Comparison { .. } => Stage::Comparison,
            _ => Stage::Other,
        };
        (stage, 0)
    }

    /// The stage that the table names, and the place within it.
    pub(crate) fn of_table(stage: isa::Stage) -> (Stage, usize) {
        let rules = |place: u16| (Stage::OpcodeRules, place.into());
        match stage {
            isa::Stage::Token => (Stage::Words, 0),
            isa::Stage::Untaken => (Stage::EarlyModifier, 0),
            // Gates of the form come after early gates and after restrictions.
            isa::Stage::Early => (Stage::FormGate, 0),
            isa::Stage::Form => (Stage::FormGate, 2),
            isa::Stage::AfterForm => (Stage::FormGate, 3),
            isa::Stage::Modifier => (Stage::ModifierGate, 0),
            isa::Stage::Dimension => rules(DIMENSION),
            isa::Stage::Combined => rules(WAY),
            isa::Stage::Range => rules(RANGE),
            isa::Stage::Space => rules(SPACE),
            isa::Stage::SumRounding => (Stage::RoundingFirst, 0),
            isa::Stage::BeforeShape => (Stage::Modifier, SHAPES - 1),
            isa::Stage::Shape => SHAPE,
            isa::Stage::AfterModifiers => (Stage::Modifier, LAST_OF_FIRST),
            isa::Stage::Result => (Stage::ResultGate, 0),
            isa::Stage::Saturation => (Stage::Saturation, 0),
            isa::Stage::Missing => (Stage::Other, 0),
            isa::Stage::Comparison => (Stage::Comparison, 0),
            isa::Stage::Kind => (Stage::Kind, 0),
            isa::Stage::MissingRounding => (Stage::Rounding, 0),
            isa::Stage::Rounding => (Stage::RoundingGate, 0),
            isa::Stage::Late => (Stage::LateGate, 0),
            isa::Stage::Boolean => (Stage::Combination, 0),
        }
    }

    /// The stage of an error in an operand whose type fits.
    pub(crate) fn of_operand(code: Code) -> Stage {
        match code {
            Code::DiscardedResult => Stage::Discard,
            Code::UnlikeElements => Stage::Elements,
            Code::SpecialRegister => Stage::SpecialRegister,
            Code::VectorOperand | Code::RegisterExpected | Code::VideoSelector => Stage::FitLast,
            Code::ResultRegister | Code::ReadOnlyRegister => Stage::Result,
            _ => Stage::Fit,
        }
    }
}

/// When ptxas rejects this modifier on an instruction that does not take it.
pub(crate) fn refusal(name: &str) -> (Stage, usize) {
    let is_space = Mod::from_name(name).is_some_and(|m| m.space().is_some());
    // One state space stands for all.
    let name = if is_space { "global" } else { name };
    let place = |list| place_of(name, list);
    match Mod::from_name(name) {
        Some(m) if m.rounding().is_some() || m == Mod::Rs => return (Stage::Rounding, 0),
        Some(m) if m.cmp().is_some() => return (Stage::Comparison, 0),
        Some(Mod::Inc | Mod::Dec | Mod::Exch) => return (Stage::Reduction, 0),
        Some(Mod::Cta | Mod::Cluster | Mod::Gpu | Mod::Sys | Mod::Gl) => return (Stage::Scope, 0),
        _ => {}
    }
    if let Some(place) = place(KINDS) {
        return (Stage::Kind, place);
    }
    if let Some(place) = place(LAST) {
        return (Stage::ModifierLast, place);
    }
    if crate::words::is_shape(name) {
        return (Stage::Modifier, SHAPES);
    }
    // The rest are words that are part of the opcode (`.try_wait`). Their place was not measured with ptxas.
    (Stage::Modifier, place(FIRST).map_or(LAST_OF_FIRST, |place| 2 * place))
}

fn place_of(name: &str, list: &[&[&str]]) -> Option<usize> {
    let modifier = Mod::from_name(name)?;
    let is_like = |other: &&str| Mod::from_name(other).is_some_and(|other| modifier.fills_field_of(other));
    list.iter().position(|names| names.iter().any(is_like))
}

/// The order in which ptxas rejects modifiers that no form of an instruction's name takes. In this list and the
/// others, one modifier stands for all that fill the same field.
const EARLY: &[&[&str]] = &[
    &["sync"],
    &["add", "and", "cas", "max", "min", "or", "popc", "xor"],
    &["relu"],
    &["satfinite"],
    &["L1::32B"],
    &["L2::cache_hint"],
    &["multicast::cluster"],
    &["tile"],
    &["cta_group::1"],
    &["noComplete"],
    &["cp_mask"],
    &["counted::bytes"],
    &["pzo"],
];

/// The order in which ptxas rejects modifiers that an instruction does not take, which is the same for all
/// instructions. The modifiers of this list come first, all of [`EARLY`] before the others.
const FIRST: &[&[&str]] = &[
    &[
        "L1::32B",
        "L2::cache_hint",
        "add",
        "and",
        "cas",
        "counted::bytes",
        "cp_mask",
        "cta_group::1",
        "max",
        "min",
        "multicast::cluster",
        "noComplete",
        "or",
        "popc",
        "pzo",
        "relu",
        "satfinite",
        "sync",
        "tile",
        "xor",
    ],
    &["L1", "L2", "tensormap"],
    &[
        "L1::evict_first",
        "L1::evict_last",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::no_allocate",
        "L2::evict_first",
        "L2::evict_last",
        "L2::evict_normal",
        "L2::evict_unchanged",
    ],
    &["global"],
    &["valid_addr"],
    &["uni"],
    &["sp"],
    &["all"],
    &["down"],
    &["proxy::readonly"],
    &["warpx4"],
    &["mma"],
    &["pack::16b"],
    &["layout::v0"],
    &["phase_type::primary"],
    &["mbarrier::report::disabled"],
    &["scaled::n1::ue8m0"],
    &["oob"],
    &["mbarrier"],
    &["b1024"],
    &["async::generic"],
    &["is_canceled"],
    &["launch_dependents", "wait"],
    &["mbarrier_init"],
    &["sync_restrict::read"],
    &["op_restrict::fetching"],
    &["multimem"],
    &["mbarrier::report::fabric"],
    &["aligned"],
    &["noinc"],
    &["ignore_oob"],
    &["exclusive"],
    &["bfly"],
    &["ballot"],
    &["sat"],
    &["approx"],
    &["ftz"],
    &["2pi"],
    &["noftz"],
    &["col", "row"],
    &["v2"],
];

/// Places in the stage [`Stage::Modifier`]. `LAST_OF_FIRST` is after all of [`FIRST`]. `SHAPES` is that of matrix
/// shapes: after `.noftz`, and after a missing `.sync` or `.aligned`.
const LAST_OF_FIRST: usize = 2 * FIRST.len();
const SHAPES: usize = 2 * (FIRST.len() - 2) - 1;
pub(crate) const SHAPE: (Stage, usize) = (Stage::Modifier, SHAPES);

/// Is this modifier a number of dimensions?
fn is_dimension(word: &str) -> bool {
    matches!(word, "1d" | "2d" | "3d" | "4d" | "5d")
}

/// Modifiers that name the kind of an access or of matrices.
const KINDS: &[&[&str]] = &[
    &["weak"],
    &["mmio"],
    &["nc"],
    &["kind::f16"],
    &["block_scale"],
    &["scale_vec::1X"],
    &["block16"],
    &["ashift"],
    &["collector::a::use"],
    &["collector::b0::use"],
    &["shiftamt"],
    &["cc"],
];

/// The modifiers that ptxas rejects last.
const LAST: &[&[&str]] = &[
    &["NaN"],
    &["xorsign"],
    &["ca"],
    &["no_membermask_overlap"],
    &["cube"],
    &["r"],
    &["width"],
    &["clamp"],
    &["shr7"],
    &["po"],
    &["f4e"],
    &["x1"],
    &["trans"],
    &["abs"],
    &["async"],
    &["read"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_modifier_of_the_lists_is_one_of_the_table_and_stands_once() {
        let mut names: Vec<&str> = [FIRST, KINDS, LAST].concat().concat();
        let unknown: Vec<_> = names.iter().filter(|name| Mod::from_name(name).is_none()).collect();
        assert_eq!(unknown, Vec::<&&str>::new());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
