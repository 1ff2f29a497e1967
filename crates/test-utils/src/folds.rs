//! Reading a vector of constants that ptxas folds, and comparing it with what `sem` computes.

use isa::{Action, Rounding};
use sem::arith;
use sem::format::{BF16, F16, F32, F64};
use sem::round::Mode;

/// One line: the instruction, its operands, `=`, the result; numbers in hexadecimal, as wide as their registers.
pub fn check(line: &str) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{line}: {what}"));
    let Some((left, result)) = line.split_once(" = ") else { return fail("no result") };
    let Ok(expected) = u64::from_str_radix(result, 16) else { return fail("bad result") };
    let mut words = left.split(' ');
    let mut instruction = words.next().unwrap_or("").split('.');
    let opcode = instruction.next().unwrap_or("");
    let modifiers: Vec<&str> = instruction.collect();
    let Ok(sources) = words.map(|w| u64::from_str_radix(w, 16)).collect::<Result<Vec<_>, _>>() else {
        return fail("bad operand");
    };
    let form = match isa::select(opcode, &modifiers, sources.len() + 1) {
        Ok(form) => form,
        Err(errors) => return fail(&format!("not in the table: {errors:?}")),
    };
    let Action::Pure(name) = form.form().action else { return fail("not pure") };
    let Some(function) = sem::lookup(name) else { return fail("no function") };
    let [d, q] = function(&form.picks, &sources);
    // Comparisons of scalar halves have one result.
    let two = form.form().operands.first().is_some_and(|p| p.second != isa::Second::None);
    let actual = match opcode {
        "setp" => d | if two { q << 1 } else { 0 },
        _ => d & (u64::MAX >> (64 - 4 * result.len())),
    };
    if actual == expected { Ok(()) } else { fail(&format!("got {actual:x}")) }
}

/// Vectors that no machine computes, with the reason. ptxas's own code for operands that are not constant does
/// otherwise.
pub fn is_folding_error(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        // 16-bit shifts take their constant amount modulo 2^16; the code clamps it, as the manual says.
        ["shl.b16" | "shr.u16" | "shr.s16", _, amount, ..] => amount > "0000ffff",
        // min(x, x) and max(x, x) are x, even for a NaN.
        [minmax, a, b, ..] if minmax.starts_with("min.") || minmax.starts_with("max.") => a == b,
        // abs and neg of a NaN, and its conversion from `.f64`: an H100 computes other NaNs.
        [name, a, "=", _]
            if ["abs.", "neg.", "cvt.rn.f16.f64"].iter().any(|start| name.starts_with(start)) =>
        {
            has_nan(name, a)
        }
        // Some differences halfway between two numbers round to the odd one.
        [name, a, b, ..] if name.starts_with("add.") || name.starts_with("sub.") => is_halfway(name, a, b),
        _ => false,
    }
}

/// Whether an operand of the type that a name ends with has a NaN in one of its lanes.
fn has_nan(name: &str, operand: &str) -> bool {
    let ty = name.rsplit('.').next().unwrap_or_default();
    let format = [("f16", &F16), ("bf16", &BF16), ("f32", &F32), ("f64", &F64)];
    let format = format.iter().find(|(known, _)| ty.trim_end_matches("x2") == *known);
    let (Some((_, format)), Ok(bits)) = (format, u64::from_str_radix(operand, 16)) else { return false };
    let lanes = if ty.ends_with("x2") { 2 } else { 1 };
    (0..lanes).any(|lane| format.is_nan(bits >> (lane * format.bits()) & (u64::MAX >> (64 - format.bits()))))
}

/// Whether a sum of two `.f32` rounded to nearest lies halfway between two numbers.
fn is_halfway(name: &str, a: &str, b: &str) -> bool {
    let operation = if name.starts_with("add") { arith::add } else { arith::sub };
    let [Ok(a), Ok(b)] = [a, b].map(|x| u64::from_str_radix(x, 16)) else { return false };
    let round = |rounding| {
        let bits = operation(&F32, Mode::rounding(rounding), a, b);
        f32::from_bits(bits as u32) as f64
    };
    let [x, y] = [a, b].map(|bits| f32::from_bits(bits as u32) as f64);
    let exact = if name.starts_with("add") { x + y } else { x - y };
    let (down, up) = (round(Rounding::TowardNegative), round(Rounding::TowardPositive));
    let directed = [".rz", ".rm", ".rp"].iter().any(|rnd| name.contains(rnd));
    name.ends_with(".f32") && !directed && down != up && exact == (down + up) / 2.0
}

/// LLVM passes a NaN operand of arithmetic on; PTX instructions have one NaN for all (ptxas folds it so).
pub fn with_one_nan(line: &str) -> String {
    match line.split_once(" = ") {
        Some((left, result)) if !line.starts_with('s') || line.starts_with("sub") => {
            let nan = u32::from_str_radix(result, 16).is_ok_and(|bits| f32::from_bits(bits).is_nan());
            format!("{left} = {}", if nan { "7fffffff" } else { result })
        }
        _ => line.to_owned(),
    }
}
