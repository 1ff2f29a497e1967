//! Tables of the results of comparisons, `min` and `max` for NaN, computed by crate `sem`.

use std::cmp::Ordering;
use std::fmt::Write;

use isa::{CmpOp, Mod, Picks, Type};
use sem::compare::{MinMax, holds, min_max_float};
use sem::format::F32;

/// The tables for an opcode. A comparison with a given operator has only the row of that operator.
pub fn tables(opcode: &str, picks: Option<&Picks>) -> String {
    let concerns_floats = picks.is_none_or(|picks| picks.types().iter().any(|ty| ty.is_float()));
    match opcode {
        "set" | "setp" => compare_table(picks),
        "min" | "max" if concerns_floats => min_max_table(opcode == "max"),
        "slct" if picks.is_none_or(|picks| picks.ty(1) == Type::F32) => "\n## NaN\n\n\
             | c | result |\n|---|---|\n| NaN of any sign and payload | b |\n| -0.0 | a |\n\
             | negative subnormal | b; with `.ftz` a |\n"
            .to_owned(),
        _ => String::new(),
    }
}

const OPERATORS: [Mod; 18] = [
    Mod::Eq,
    Mod::Ne,
    Mod::Lt,
    Mod::Le,
    Mod::Gt,
    Mod::Ge,
    Mod::Lo,
    Mod::Ls,
    Mod::Hi,
    Mod::Hs,
    Mod::Equ,
    Mod::Neu,
    Mod::Ltu,
    Mod::Leu,
    Mod::Gtu,
    Mod::Geu,
    Mod::Num,
    Mod::Nan,
];

fn compare_table(picks: Option<&Picks>) -> String {
    let mut text =
        "\n## Comparisons\n\n| operator | a < b | a = b | a > b | a or b is NaN |\n|---|---|---|---|---|\n"
            .to_owned();
    let wanted = picks.and_then(Picks::cmp);
    for modifier in OPERATORS {
        let Some(op) = modifier.cmp().filter(|op| wanted.is_none_or(|wanted| wanted == *op)) else {
            continue;
        };
        let unsigned = matches!(op, CmpOp::Lo | CmpOp::Ls | CmpOp::Hi | CmpOp::Hs);
        let nan = if unsigned { "-".to_owned() } else { holds(op, None).to_string() };
        let [less, equal, greater] =
            [Ordering::Less, Ordering::Equal, Ordering::Greater].map(|order| holds(op, Some(order)));
        let _ = writeln!(text, "| `.{}` | {less} | {equal} | {greater} | {nan} |", modifier.name());
    }
    text
}

fn min_max_table(max: bool) -> String {
    let keep = if max { Ordering::Greater } else { Ordering::Less };
    let (nan, one) = (0x7fc0_0000, F32.one());
    let show = |bits: u64| match bits {
        _ if F32.is_nan(bits) => "NaN",
        _ if bits == one => "1.0",
        _ if bits == F32.sign() => "-0.0",
        _ => "+0.0",
    };
    let mut text = "\n## NaN\n\n| a | b | result | with `.NaN` |\n|---|---|---|---|\n".to_owned();
    for (a, b) in [(nan, one), (one, nan), (nan, nan), (F32.sign(), 0)] {
        let [plain, canonical] =
            [false, true].map(|nan| min_max_float(&F32, keep, MinMax { nan, ..MinMax::default() }, a, b));
        let _ = writeln!(text, "| {} | {} | {} | {} |", show(a), show(b), show(plain), show(canonical));
    }
    text + "\nA NaN result has the bits 0x7fffffff (`.f32`) or 0x7fff (`.f16`, `.bf16`).\n"
}
