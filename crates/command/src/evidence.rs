//! Facts about a row of the table besides its own text: the first version and target with it, and the oracles that
//! its results were compared with.

use isa::enumerate::{Spelling, spellings};
use isa::{Action, Form, FormId, Gate, Token, Type, Version, since};

/// The number of recorded results by row, written by `cargo xtask docs`: oracle, number of results, row.
const RECORDED: &str = include_str!("oracles.tsv");

/// The first legal spelling of a row.
pub fn spelling(id: FormId) -> Option<Spelling> {
    spellings(id).find(Spelling::is_legal)
}

/// All rows with their ids.
pub fn rows() -> impl Iterator<Item = (FormId, &'static Form)> {
    isa::FORMS.iter().enumerate().map(|(index, form)| (FormId(index as u16), form))
}

/// The minimum requirements of a row: its own gates, and those of the least demanding choice in each mandatory slot.
pub fn row_gates(id: FormId) -> Vec<Gate> {
    // Most spellings of a row have the same requirements; the first thousand are enough.
    let all = spellings(id).filter(Spelling::is_legal).take(1000).map(|s| id.form().gates(&s.picks));
    all.min_by_key(|gates| since(gates).map_or((1, Version::MAX, 0), |(v, t)| (0, v, t.number)))
        .unwrap_or_default()
}

/// The oracles of a row's results: `ptxas 13.5 (312 vectors)`.
pub fn oracles(form: &Form) -> Vec<String> {
    let rows = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let recorded = rows.filter_map(|line| {
        let (oracle, row) = line.split_once('\t')?;
        (row == form.syntax).then(|| oracle.to_owned())
    });
    recorded.chain(exact(form).map(str::to_owned)).collect()
}

/// Facts that no oracle backs although the forms they concern have one, or that are derived from less than a result.
pub const UNVERIFIED: &[(&str, &str)] = &[
    (
        "NaN results and `.sat` of mixed-precision `add`, `sub`, `fma`",
        "ptxas folds none of them. The one NaN 0x7fffffff and NaN and -0.0 saturated to +0.0 are what it folds for \
         `.f32` `add`, `sub` and `fma`; rounding and saturated numbers are libnvvm's. They need sm_100 to be run.",
    ),
    (
        "`-a, -b`",
        "ptxas accepts two negated operands (`setp.eq.b32 p, -a, -b`) and its code negates neither; so do we. No document \
         mentions it.",
    ),
    (
        "`v.z` of a vector of two, `p+1` of a predicate",
        "ptxas accepts them and cannot generate code. The first is a register that nothing else is; the second ends the run.",
    ),
    (
        "chips other than sm_90",
        "the GPU that was asked is an H100. ptxas makes the same instructions for all targets of what it found (`abs` and `neg` as additions, \
         the multiplication before `sin` and `cos`, `.ftz` of `cvt.f16.f32`).",
    ),
    (
        "`fma.rm`, `.rp`, `.rz` of `.bf16` and `.bf16x2`",
        "rounded as they are spelled. The manual has `.rn` alone; ptxas takes the others and makes code of them that computes in `.f16`, or \
         rounds to nearest.",
    ),
    (
        "`abs`, `neg` and `cvt` of a NaN that is a constant",
        "as of any other NaN. ptxas folds another payload than an H100 computes.",
    ),
    (
        "approximate functions (`.approx`, `ex2`, `lg2`, `sin`, `cos`, `tanh`, `rsqrt`)",
        "within the error bounds of the manual, with its special values; the last bits of a GPU differ. `sin` and `cos` are within 2^-21 of an \
         H100's for every angle.",
    ),
    (
        "conversions among 8-, 6- and 4-bit formats, and arithmetic of their four lanes",
        "ptxas folds none of them; that they round once is what exact arithmetic in binary128 says. Our readings: `.pzo` makes \
         a zero positive after rounding; `.scaled::n1` flushes its sources, keeping their signs, and divides; `.scaled::n2` \
         multiplies what becomes bfloat16 and divides what becomes `.s2f6`; `.ue5m3` drops the sign; a NaN becomes 0x7f, 0xff, \
         or the largest number where there is none; what is too large for `.e4m3` is a NaN with its sign; which random bits `.rs` \
         gives to whom.",
    ),
    (
        "`.2pi`",
        "the sine and cosine rounded to nearest, with the zeros of IEEE 754's sinPi and cosPi. ptxas folds the functions of \
         2 pi a in binary64, which is as near as the manual asks but not zero at half a cycle.",
    ),
    (
        "`clmad`",
        "the product of polynomials over GF(2) plus c, which is their exclusive or: ptxas folds none.",
    ),
    (
        "video instructions (`vadd`, `vmad`, `vset4`, ...)",
        "held against what ptxas 13.5 writes for them, which is plain integer code since sm_50. Where it differs from the \
         manual's text it is followed: `.sat` of unsigned results and into parts, `.min` and `.max` with `c`, and what lies \
         above bit 31 of `vmad` (conformance/README.md).",
    ),
    (
        "`.mbarrier::report::validity`, `.ignore_oob`",
        "of 16 bytes the first element is looked at, where the manual says one of them; that something was reported is all that is told, and \
         its value is 0. Bytes at the ends that need not be there are not copied.",
    ),
    (
        "`multimem`",
        "any global address is one of a team of one GPU: `ld_reduce` reads the only replica, bit for bit, `st` writes it, and \
         `red` combines it as `red` does.",
    ),
    (
        "`%perctamemorysize`, `%perctamemoryoffset`, `%locality_domain_*`",
        "no public document describes them. The machine code of ptxas multiplies a number of the multiprocessor and of the block on it by a \
         size of the launch and adds an address of global memory: each block has that much for itself, here rounded up to 16 bytes and zero \
         at first. One locality domain, number 0.",
    ),
    (
        "`tensormap.query`",
        "false: no tensor map here is of the large allocation class, and no public document says how one is made.",
    ),
    (
        "memory, barriers, collectives",
        "tested by kernels with known results; an H100 runs those that it can as expected (conformance/launches), but for what no document \
         promises.",
    ),
];

/// Other implementations of the arithmetic, with which tests of crate `sem` compare it on random and edge values.
fn exact(form: &Form) -> Option<&'static str> {
    let Action::Pure(name) = form.action else { return None };
    let (module, function) = name.split_once("::")?;
    match (module, function) {
        ("float" | "half" | "mixed", "add" | "sub" | "mul" | "fma" | "mad") => Some("rustc_apfloat"),
        ("mixed", "add_narrow" | "sub_narrow" | "mul_narrow") => Some("rustc_apfloat"),
        ("alternate", _) => Some("rustc_apfloat"),
        ("convert", "pack" | "packed") if is_of_narrow_formats(form) => Some("rustc_apfloat"),
        ("float", "div" | "rcp") => Some("rustc_apfloat"),
        ("convert", "float_to_float" | "float_to_int" | "int_to_float") => Some("rustc_apfloat"),
        _ => None,
    }
}

/// Whether it is a `cvt` to or from an 8-, 6- or 4-bit format with a fraction.
fn is_of_narrow_formats(form: &Form) -> bool {
    let mut choices = form.type_slots().flat_map(|slot| slot.choices);
    choices.any(|choice| match choice.token {
        Token::Type(ty) => ty.is_float() && ty.element().bits() <= 8 && ty.element() != Type::Ue8m0,
        Token::Mod(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executed::is_executed;

    /// `set`, `setp`, `selp`, `slct` and mixed-precision `add`, `sub`, `fma` are executed, and an oracle backs each,
    /// except `set` of packed integers: ptxas fails when it should fold one, so the bits of a lane are our reading
    /// (docs/isa/unverified.md).
    #[test]
    fn core_forms_are_executed_and_backed() {
        let is_core = |form: &Form| match form.action {
            Action::Pure(function) => {
                ["compare::", "half_compare::", "mixed::"].iter().any(|module| function.starts_with(module))
                    && !matches!(form.opcode, isa::Opcode::Min | isa::Opcode::Max)
            }
            Action::Effect(_) => false,
        };
        let core: Vec<_> = rows().filter(|(_, form)| is_core(form)).collect();
        assert!(core.len() >= 25, "{} rows", core.len());
        for (id, form) in core {
            assert!(is_executed(id), "{} is not executed", form.syntax);
            let is_packed_set = form.syntax.starts_with("set.CmpOp.type ");
            assert!(is_packed_set || !oracles(form).is_empty(), "nothing backs {}", form.syntax);
        }
    }
}
