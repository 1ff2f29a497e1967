//! The order in which ptxas finds fault: the one key by which diagnostics are sorted.
//!
//! The key is compared field by field: end of the file, line, phase, statement, stage, and the number of the modifier. The parser's syntax
//! errors have the phase [`Phase::Syntax`]; so what ptxas says of an instruction that does not parse to its end
//! (`syntax::tree::Statement::Unfinished`) comes before the syntax error of the same line. Some stages are final: ptxas looks no further
//! ([`Stage::is_final`]), and what belongs to later stages of the same statement is dropped.

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
    /// A function that was declared before, and in another way.
    Redefinition,
    /// The guard. Statements that are no instructions have no later stage.
    Guard,
    /// Each modifier as it is read: unknown, repeated, or missing in the module's version or target.
    Word,
    /// What modifiers together need of version and target.
    Words,
    /// What is wrong with operands whatever the instruction.
    Operand,
    /// Sizes of vectors, once all operands are read.
    VectorSize,
    /// There is no such instruction. The last thing said of it.
    Name,
    /// A modifier of those in [`EARLY`], which no form of the name takes. The first of them is the last thing said of the instruction.
    EarlyModifier,
    /// Signs at operands that cannot have any.
    Signs,
    /// It has no such types. The last thing said of it.
    Types,
    /// An operand that looks like a cache policy.
    CachePolicy,
    /// It takes another number of operands. The last thing said of it.
    Count,
    /// It takes operands of other types. The last thing said of it.
    Mismatch,
    /// A number of dimensions, of an instruction that has none.
    Dimension,
    /// What the instruction as a whole needs of version and target.
    FormGate,
    /// What `.ftz` needs.
    ModifierGate,
    /// What it asks of its own spaces, sizes and constants, and of modifiers that some of its forms take.
    OpcodeRules,
    /// Elements of vectors that are unlike.
    Elements,
    /// More than one Boolean operator.
    Operation,
    /// A rounding that sums of `.bf16` do not take.
    RoundingFirst,
    /// A modifier that it does not take, of those in [`FIRST`].
    Modifier,
    /// Its result cannot be discarded. The last thing said of it.
    Discard,
    /// What it needs once its result is known to be kept.
    ResultGate,
    /// `.sat` on integers.
    Saturation,
    /// Special registers that it does not read.
    SpecialRegister,
    /// A scope that it does not take.
    Scope,
    /// Whatever else of its modifiers is missing or does not go together.
    Other,
    /// What does not fit of its operands, though types do.
    Fit,
    /// The comparison operator.
    Comparison,
    /// A reduction that it does not take.
    Reduction,
    /// Results that go into no register.
    Result,
    /// A modifier that it does not take, of those in [`KINDS`].
    Kind,
    /// A rounding that it does not take, or none where there must be one.
    Rounding,
    /// A rounding that it takes on newer targets.
    RoundingGate,
    /// What it needs of version and target for its types.
    LateGate,
    /// A modifier that it does not take, of those in [`LAST`].
    ModifierLast,
    /// A missing Boolean operator.
    Combination,
    /// Signs at operands of an instruction that has none.
    Negation,
    /// Values where registers belong.
    FitLast,
    /// Constants that are out of range, in an instruction that is right but for them.
    Range,
}

impl Stage {
    /// Does ptxas look no further once it has found fault with this?
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

    /// The stage of an error of an instruction of this opcode (where that matters) with these modifiers and types, and the place
    /// within it.
    pub(crate) fn of_modifiers(
        error: &SelectError,
        opcode: Option<Opcode>,
        modifiers: &[&str],
        types: &[Type],
    ) -> (Stage, usize) {
        let sums = matches!(opcode, Some(Opcode::Add | Opcode::Sub));
        let written = |index: usize| modifiers.get(index).and_then(|name| Mod::from_name(name));
        let stage = match *error {
            SelectError::UnknownInstruction => Stage::Name,
            SelectError::Types => Stage::Types,
            SelectError::Arguments { .. } => Stage::Count,
            SelectError::UnknownModifier { index } => return (Stage::Word, index),
            // Modes of votes, and priorities of accesses, are looked at later.
            SelectError::Repeated { index }
                if opcode == Some(Opcode::Vote) && crate::messages::votes_twice(modifiers, index) =>
            {
                return (Stage::OpcodeRules, crate::opcode_rules::WAY.into());
            }
            SelectError::Repeated { index }
                if matches!(opcode, Some(Opcode::Ld | Opcode::St))
                    && modifiers.get(index).is_some_and(|word| word.contains("::evict")) =>
            {
                return (Stage::OpcodeRules, crate::opcode_rules::WAY.into());
            }
            // Behind gates.
            SelectError::Repeated { index }
                if matches!(opcode, Some(Opcode::Applypriority | Opcode::Prefetch))
                    && modifiers.get(index).is_some_and(|word| word.contains("::evict")) =>
            {
                return (Stage::FormGate, 3);
            }
            SelectError::Repeated { index } if error.comes_first(modifiers) => return (Stage::Word, index),
            SelectError::Illegal { index, .. } if error.comes_first(modifiers) => {
                let name = modifiers.get(index).copied().unwrap_or_default();
                return (Stage::EarlyModifier, place_of(name, EARLY).unwrap_or(EARLY.len()));
            }
            SelectError::Repeated { index } => {
                if written(index).is_some_and(|m| m.space().is_some()) {
                    // Before spaces that it does not take.
                    return (Stage::Modifier, 2 * place_of("global", FIRST).unwrap_or_default() - 1);
                }
                Stage::Operation
            }
            SelectError::Operation { .. } => return (Stage::OpcodeRules, crate::opcode_rules::WAY.into()),
            SelectError::Illegal { index, .. } if is_dimension(modifiers, index) => Stage::Dimension,
            SelectError::Missing { slot: "op" | "popc", .. }
                if matches!(opcode, Some(Opcode::Bar | Opcode::Barrier)) =>
            {
                return (Stage::Modifier, SHAPES - 1);
            }
            SelectError::Missing { slot: "bitOp" | "popc", .. } => return SHAPE,
            SelectError::Missing { slot: "sp", .. } if opcode == Some(Opcode::Wgmma) => return SHAPE,
            SelectError::Missing { slot: "m8n8", .. } => return SHAPE,
            SelectError::Illegal { index, .. } => match (written(index), types) {
                (Some(Mod::Rz | Mod::Rm | Mod::Rp), [Type::Bf16 | Type::Bf16x2]) if sums => {
                    Stage::RoundingFirst
                }
                (Some(Mod::Sat), [ty]) if sums && is_plain_integer(opcode, *ty) => Stage::Saturation,
                _ => return refusal(modifiers.get(index).copied().unwrap_or_default()),
            },
            SelectError::Alternate { .. } if types.last() == Some(&Type::U32) => Stage::Other,
            SelectError::Alternate { .. } => return (Stage::Modifier, LAST_OF_FIRST),
            SelectError::Missing { slot: "CmpOp", .. } | SelectError::Comparison { .. } => Stage::Comparison,
            SelectError::Missing { slot: "BoolOp", .. } => Stage::Combination,
            SelectError::Missing { slot: "rnd" | "frnd" | "irnd", .. } if !has_approximation(opcode) => {
                Stage::Rounding
            }
            SelectError::Missing { slot: "rn" | "frnd2" | "frnd3" | "rna" | "rs", .. } => Stage::Rounding,
            // Levels and dimensions come before sizes, spaces behind them.
            SelectError::Missing { slot: "level" | "dim", .. } if opcode == Some(Opcode::Cp) => {
                return (Stage::OpcodeRules, crate::opcode_rules::DIMENSION.into());
            }
            SelectError::Missing { slot: "global" | "target" | "shared::cta", .. }
                if opcode == Some(Opcode::Cp) =>
            {
                return (Stage::OpcodeRules, crate::opcode_rules::SPACE.into());
            }
            SelectError::Missing { slot: "order" | "relaxed", .. } => Stage::Kind,
            SelectError::Missing { slot: "red", .. } => Stage::EarlyModifier,
            SelectError::Missing { slot: "sync", .. } if opcode == Some(Opcode::Setmaxnreg) => return SHAPE,
            SelectError::Missing { slot: "aligned", .. } if opcode == Some(Opcode::Setmaxnreg) => {
                return (Stage::OpcodeRules, crate::opcode_rules::WAY.into());
            }
            SelectError::Missing { slot: "kind" | "cta_group" | "cta_group::1", .. }
                if opcode == Some(Opcode::Tcgen05) =>
            {
                return (Stage::OpcodeRules, crate::opcode_rules::WAY.into());
            }
            SelectError::Missing { slot: "op" | "bitwise" | "add" | "minmax", .. }
                if opcode == Some(Opcode::Multimem) =>
            {
                return (Stage::OpcodeRules, crate::opcode_rules::WAY.into());
            }
            SelectError::Missing { slot: "tile", .. } => return (Stage::Modifier, SHAPES - 1),
            // Before shapes.
            SelectError::Missing { slot: "sync" | "aligned" | "cta_group" | "cta_group::1", .. } => {
                return (Stage::Modifier, SHAPES - 1);
            }
            _ => Stage::Other,
        };
        (stage, 0)
    }

    /// The stage of what is wrong with an operand whose type fits.
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

/// Is the rounding one way to compute, beside `.approx`? ptxas asks for it earlier.
fn has_approximation(opcode: Option<Opcode>) -> bool {
    matches!(opcode, Some(Opcode::Div | Opcode::Sqrt | Opcode::Rcp))
}

/// Is this a shape, where an instruction on matrices takes others?
pub(crate) fn is_shape_of_matrices(opcode: Option<Opcode>, modifiers: &[&str], index: usize) -> bool {
    let with_shape = match opcode {
        Some(Opcode::Ldmatrix | Opcode::Mma | Opcode::Movmatrix | Opcode::Stmatrix | Opcode::Wmma) => true,
        Some(Opcode::Wgmma) => modifiers.contains(&"mma_async"),
        Some(Opcode::Tcgen05) => matches!(modifiers.first(), Some(&("cp" | "ld" | "st"))),
        _ => false,
    };
    with_shape && modifiers.get(index).is_some_and(|word| crate::required::is_shape(word))
}

/// When ptxas refuses a modifier of an instruction that does not take it.
pub(crate) fn refusal(name: &str) -> (Stage, usize) {
    let is_space = Mod::from_name(name).is_some_and(|m| m.space().is_some());
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
    if crate::required::is_shape(name) {
        return (Stage::Modifier, SHAPES);
    }
    // What is left are words that are a part of the opcode (`.try_wait`): ptxas was not asked for the place of these.
    (Stage::Modifier, place(FIRST).map_or(LAST_OF_FIRST, |place| 2 * place))
}

fn place_of(name: &str, list: &[&[&str]]) -> Option<usize> {
    list.iter().position(|names| names.contains(&name))
}

/// The order in which ptxas refuses modifiers of which no form of an instruction's name takes any.
const EARLY: &[&[&str]] = &[
    &["sync"],
    &["add", "and", "cas", "max", "min", "or", "popc", "xor"],
    &["relu"],
    &["satfinite"],
    &["L1::32B", "L2::128B", "L2::256B", "L2::64B"],
    &["L2::cache_hint"],
    &["multicast::cluster", "multicast::cluster::all"],
    &["im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "tile", "tile::gather4", "tile::scatter4"],
    &["cta_group::1", "cta_group::2"],
    &["noComplete"],
    &["cp_mask"],
];

/// The order in which ptxas refuses modifiers that an instruction does not take: it has one for all instructions. These
/// come first.
const FIRST: &[&[&str]] = &[
    &[
        "L1::32B",
        "L2::128B",
        "L2::256B",
        "L2::64B",
        "L2::cache_hint",
        "add",
        "and",
        "cas",
        "cp_mask",
        "cta_group::1",
        "cta_group::2",
        "im2col",
        "im2col_no_offs",
        "max",
        "min",
        "multicast::cluster",
        "multicast::cluster::all",
        "noComplete",
        "or",
        "popc",
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
    &["uni"],
    &["sp", "sp::ordered_metadata"],
    &["all", "any"],
    &["down"],
    &["warpx2::01_23", "warpx2::02_13", "warpx4"],
    &["alloc", "cp", "dealloc", "ld", "mma", "shift", "st"],
    &["pack::16b", "unpack::16b"],
    &["oob"],
    &["bulk_group", "mbarrier::arrive::one", "mbarrier::complete_tx::bytes"],
    &["b1024"],
    &["async::generic", "tensormap::generic"],
    &["get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z", "is_canceled"],
    &["launch_dependents", "wait"],
    &["mbarrier_init"],
    &["sync_restrict::shared::cluster", "sync_restrict::shared::cta"],
    &["aligned"],
    &["noinc"],
    &["bfly", "idx", "up"],
    &["ballot"],
    &["sat"],
    &["approx"],
    &["ftz"],
    &["noftz"],
    &["col", "row"],
    &["v2", "v4", "v8"],
];

/// The places behind all of [`FIRST`], and of shapes of matrices: behind `.noftz`, and behind what is missing of `.sync.aligned`.
const LAST_OF_FIRST: usize = 2 * FIRST.len();
const SHAPES: usize = 2 * (FIRST.len() - 2) - 1;
pub(crate) const SHAPE: (Stage, usize) = (Stage::Modifier, SHAPES);

/// `.2d`, which is refused before all others.
fn is_dimension(modifiers: &[&str], index: usize) -> bool {
    modifiers.get(index).is_some_and(|word| matches!(*word, "1d" | "2d" | "3d" | "4d" | "5d"))
}

/// Modifiers that say what kind of access it is, or of which matrices.
const KINDS: &[&[&str]] = &[
    &["acq_rel", "acquire", "relaxed", "release", "sc", "volatile", "weak"],
    &["mmio"],
    &["nc"],
    &[
        "kind::f16",
        "kind::f8f6f4",
        "kind::i8",
        "kind::mxf4",
        "kind::mxf4nvf4",
        "kind::mxf8f6f4",
        "kind::tf32",
    ],
    &["block_scale"],
    &["scale_vec::1X", "scale_vec::2X", "scale_vec::4X"],
    &["block16", "block32"],
    &["collector::a::discard", "collector::a::fill", "collector::a::lastuse", "collector::a::use"],
    &["shiftamt"],
    &["cc"],
];

/// What ptxas refuses last.
const LAST: &[&[&str]] = &[
    &["NaN"],
    &["xorsign"],
    &["ca", "cg", "cs", "cv", "lu", "wb", "wt"],
    &["2dms", "a1d", "a2d", "a2dms", "acube", "cube"],
    &["a", "b", "g", "r"],
    &[
        "addr_mode_0",
        "addr_mode_1",
        "addr_mode_2",
        "array_size",
        "channel_data_type",
        "channel_order",
        "depth",
        "filter_mode",
        "force_unnormalized_coords",
        "height",
        "memory_layout",
        "normalized_coords",
        "num_mipmap_levels",
        "num_samples",
        "width",
    ],
    &["clamp", "trap", "wrap", "zero"],
    &["shr15", "shr7"],
    &["po"],
    &["b4e", "ecl", "ecr", "f4e", "rc16", "rc8"],
    &["x1", "x128", "x16", "x2", "x32", "x4", "x64", "x8"],
    &["trans"],
    &["abs"],
    &["alias", "async"],
    &["read"],
];

/// An integer whose sum ptxas never saturated.
fn is_plain_integer(opcode: Option<Opcode>, ty: Type) -> bool {
    let once_saturated = opcode == Some(Opcode::Add) && matches!(ty, Type::U32 | Type::U16x2 | Type::S16x2);
    !(ty.is_float() || once_saturated)
}

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
