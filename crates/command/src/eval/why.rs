//! Explains the result of an instruction: the comparison, flushed operands, and the rule that applies.

use std::cmp::Ordering;

use isa::{BoolOp, CmpOp, Mod, Opcode, Type};
use sem::format::Format;

use super::bits::{hex, lanes, value};
use crate::alone::Alone;

/// Lines that explain the result for these sources.
pub fn why(alone: &Alone, mnemonic: &str, sources: &[u64]) -> Vec<String> {
    let mut lines = Vec::new();
    let picks = &alone.picks;
    if picks.has(Mod::Ftz) && !mnemonic.split('.').any(|word| word.trim() == "ftz") {
        lines.push(format!("{} implies .ftz", alone.target));
    }
    let explained = match alone.form.opcode {
        Opcode::Set | Opcode::Setp => compare(alone, sources, &mut lines),
        Opcode::Selp => choose(sources, 2, "c is true", "c is false", |c| c != 0, &mut lines),
        Opcode::Slct => slct(alone, sources, &mut lines),
        Opcode::Min | Opcode::Max => min_max(alone, sources, &mut lines),
        Opcode::Lop3 => table_of_bits(alone, sources, &mut lines),
        _ => None,
    };
    if explained.is_none() {
        for &modifier in picks.mods() {
            if let Some(meaning) = isa::prose::modifier(modifier)
                && (modifier.rounding().is_some()
                    || matches!(modifier, Mod::Ftz | Mod::Sat | Mod::Satfinite | Mod::Relu | Mod::Cc))
            {
                lines.push(format!(".{}: {meaning}", modifier.name()));
            }
        }
    }
    lines
}

/// An `immLut` of `lop3` with more than 8 bits, which ptxas accepts.
fn table_of_bits(alone: &Alone, sources: &[u64], lines: &mut Vec<String>) -> Option<()> {
    let at = alone.sources.iter().position(|source| source.name == "immLut")?;
    let table = *sources.get(at)?;
    if table > 0xff {
        lines.push(format!("immLut has 8 bits: {table:#x} counts as {:#04x}", table & 0xff));
    }
    Some(())
}

/// The comparison, lane by lane.
fn compare(alone: &Alone, sources: &[u64], lines: &mut Vec<String>) -> Option<()> {
    let picks = &alone.picks;
    let (ty, op) = (alone.sources.first()?.ty, picks.cmp()?);
    let element = ty.element();
    let c = sources.get(2).map(|&c| c != 0);
    let scalar_setp = ty.lanes() == 1 && alone.results.len() == 2;
    let pairs = lanes(ty, *sources.first()?).zip(lanes(ty, *sources.get(1)?));
    for (lane, (a, b)) in pairs.enumerate() {
        let place = if ty.lanes() > 1 { format!("lane {lane}: ") } else { String::new() };
        let ftz = picks.has(Mod::Ftz);
        for (name, bits) in [("a", a), ("b", b)] {
            if let Some(flushed) = flushed(element, ftz, bits) {
                let zero = value(element, flushed);
                lines.push(format!("{place}.ftz makes {name} = {} {zero}", value(element, bits)));
            }
        }
        let [x, y] = [a, b].map(|bits| value(element, flushed(element, ftz, bits).unwrap_or(bits)));
        let order = sem::compare::order(element, ftz, a, b);
        let t = sem::compare::holds(op, order);
        let mut line = format!("{place}{x} {} {y} is {t}", symbol(op));
        if order.is_none() {
            line += match op {
                CmpOp::Nan => " (an operand is NaN)",
                _ if t => " (an operand is NaN: unordered, and this operator is true of that)",
                _ => " (an operand is NaN: unordered)",
            };
        } else if order == Some(Ordering::Equal) && a != b {
            line += " (zeros are equal)";
        }
        if let (Some(bool_op), Some(c)) = (picks.bool_op(), c) {
            line += &format!("; {t} {} c = {}", bool_name(bool_op), apply(bool_op, t, c));
        }
        lines.push(line);
        if scalar_setp {
            let q = !t;
            lines.push(match (picks.bool_op(), c) {
                (Some(bool_op), Some(c)) => {
                    format!("q: not {t} is {q}; {q} {} c = {}", bool_name(bool_op), apply(bool_op, q, c))
                }
                _ => format!("q: not {t} is {q}"),
            });
        }
    }
    if ty.lanes() > 1 && alone.results.len() == 2 {
        lines.push("p is lane 0 (the low half), q is lane 1".to_owned());
    }
    Some(())
}

/// The zero that `.ftz` replaces a subnormal with.
fn flushed(ty: Type, ftz: bool, bits: u64) -> Option<u64> {
    let format = Format::of(ty).filter(|_| ftz)?;
    Some(format.flush(bits)).filter(|&flushed| flushed != bits)
}

fn symbol(op: CmpOp) -> &'static str {
    match op {
        CmpOp::Eq => "==",
        CmpOp::Ne => "!=",
        CmpOp::Lt | CmpOp::Lo => "<",
        CmpOp::Le | CmpOp::Ls => "<=",
        CmpOp::Gt | CmpOp::Hi => ">",
        CmpOp::Ge | CmpOp::Hs => ">=",
        CmpOp::Equ => "equ",
        CmpOp::Neu => "neu",
        CmpOp::Ltu => "ltu",
        CmpOp::Leu => "leu",
        CmpOp::Gtu => "gtu",
        CmpOp::Geu => "geu",
        CmpOp::Num => "num",
        CmpOp::Nan => "nan",
    }
}

fn bool_name(op: BoolOp) -> &'static str {
    match op {
        BoolOp::And => "and",
        BoolOp::Or => "or",
        BoolOp::Xor => "xor",
    }
}

fn apply(op: BoolOp, t: bool, c: bool) -> bool {
    match op {
        BoolOp::And => t & c,
        BoolOp::Or => t | c,
        BoolOp::Xor => t ^ c,
    }
}

fn choose(
    sources: &[u64],
    selector: usize,
    yes: &str,
    no: &str,
    holds: impl Fn(u64) -> bool,
    lines: &mut Vec<String>,
) -> Option<()> {
    let chosen = holds(*sources.get(selector)?);
    lines.push(if chosen { format!("{yes}: a") } else { format!("{no}: b") });
    Some(())
}

fn slct(alone: &Alone, sources: &[u64], lines: &mut Vec<String>) -> Option<()> {
    let (ty, ftz) = (alone.sources.get(2)?.ty, alone.picks.has(Mod::Ftz));
    let c = *sources.get(2)?;
    let shown = match flushed(ty, ftz, c) {
        Some(zero) => {
            lines.push(format!(".ftz makes c = {} {}", value(ty, c), value(ty, zero)));
            value(ty, zero)
        }
        None => value(ty, c),
    };
    let nan = Format::of(ty).is_some_and(|format| format.is_nan(c));
    let no = if nan { "c is NaN".to_owned() } else { format!("{shown} < 0") };
    let holds = |c: u64| sem::compare::order(ty, ftz, c, 0).is_some_and(|order| order != Ordering::Less);
    choose(sources, 2, &format!("{shown} >= 0"), &no, holds, lines)
}

fn min_max(alone: &Alone, sources: &[u64], lines: &mut Vec<String>) -> Option<()> {
    let ty = alone.sources.first()?.ty;
    let format = Format::of(ty)?;
    for lane in 0..ty.lanes() as usize {
        let place = if ty.lanes() > 1 { format!("lane {lane}: ") } else { String::new() };
        let operands = alone.sources.iter().zip(sources);
        let elements: Vec<(&str, u64)> = operands
            .filter_map(|(source, &bits)| Some((source.name.as_str(), lanes(ty, bits).nth(lane)?)))
            .collect();
        let nans: Vec<&str> =
            elements.iter().filter(|(_, bits)| format.is_nan(*bits)).map(|(name, _)| *name).collect();
        if nans.is_empty() {
            continue;
        }
        let who = nans.join(" and ");
        let verb = if nans.len() == 1 { "is" } else { "are" };
        let nan = hex(ty.element(), format.nan);
        lines.push(if alone.picks.has(Mod::NaN) {
            format!("{place}{who} {verb} NaN, and .NaN makes the result NaN ({nan})")
        } else if nans.len() == elements.len() {
            format!("{place}all operands are NaN: the result is NaN")
        } else {
            format!("{place}{who} {verb} NaN, and a number wins over it (.NaN would not let it)")
        });
    }
    Some(())
}
