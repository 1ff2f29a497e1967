//! Missing modifiers for which ptxas has messages of their own.

use isa::Opcode;
use smallvec::SmallVec;
use syntax::tree::Instruction as Tree;

/// The message for a missing or superfluous modifier of an instruction whose types and operands fit.
pub(crate) fn missing(node: &Tree, name: &str) -> Option<String> {
    if !OPCODES.contains(&node.opcode.text) {
        return None;
    }
    let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
    let has = |words: &[&str]| modifiers.iter().any(|m| words.contains(m));
    let required = |what: &str| Some(format!("{what} required for instruction '{name}'"));
    let layouts = || modifiers.iter().filter(|m| is_layout(m)).count();
    match node.opcode.text {
        "wmma" if has(&["load", "store"]) => (layouts() != 1).then(|| required("layout modifier"))?,
        "mma" | "wmma" => match layouts() {
            0 => required("'.alayout.blayout' modifier"),
            1 => required("'.blayout' modifier"),
            _ => None,
        },
        "tcgen05" if has(&["mma"]) && !has(&["block_scale"]) => {
            let scale = modifiers.iter().find(|m| m.starts_with("scale_vec::") || BLOCKS.contains(m))?;
            Some(format!("Modifier '.{scale}' requires modifier '.block_scale' for instruction '{name}'"))
        }
        "atom" | "red" if !has(&["async"]) && !modifiers.iter().any(|m| crate::messages::is_operation(m)) => {
            Some(format!("Illegal operation '' for instruction '{name}'"))
        }
        // To ptxas, `.lo` or `.hi` after a type is not a mode.
        "dp2a" if !matches!(modifiers.first(), Some(&("lo" | "hi"))) => required("'.hi/.lo' modifier"),
        "min" | "max" if node.operands.len() < 4 && has(&["f16", "f16x2", "bf16", "bf16x2", "f32"]) => {
            match (has(&["abs"]), has(&["xorsign"])) {
                (true, false) => Some("Modifier '.abs' requires modifier '.xorsign'".into()),
                (false, true) => Some("Modifier '.xorsign' requires modifier '.abs'".into()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The opcodes to which [`missing`] applies.
const OPCODES: &[&str] = &["mma", "wmma", "tcgen05", "atom", "red", "min", "max", "dp2a"];
const BLOCKS: &[&str] = &["block16", "block32"];

/// Reports `.sat` together with another kind of saturation, whatever the operands.
pub(crate) fn saturates_twice(node: &Tree) -> Option<String> {
    let has = |word: &str| node.modifiers.iter().any(|m| m.text == word);
    let other = ["satfinite", "relu"].into_iter().find(|word| has(word))?;
    let is_it = node.opcode.text == "cvt" && has("sat");
    is_it.then(|| format!("Modifier '.{other}' cannot be combined with modifier '.sat'"))
}

/// The error in the state spaces of an asynchronous copy. It has two spaces; the first is the destination.
pub(crate) fn wrong_spaces(name: &str, is_bulk: bool, spaces: &[&str]) -> Option<&'static str> {
    const NUMBER: &str = "Unexpected number of state spaces specified in instruction";
    const SPACE: &str = "State space incorrect for instruction";
    let reduces = name.starts_with("cp.reduce");
    let is_known = match spaces {
        [to, from] if name == "cp.async" => is_shared(to) && *from == "global",
        _ if name == "cp.async" => return Some(NUMBER),
        _ if !is_bulk => true,
        ["global", from] => *from == "shared::cta",
        _ if name.starts_with("multimem") => false,
        ["shared::cluster", from] => *from == "shared::cta" || *from == "global" && !reduces,
        ["shared::cta", from] => *from == "global" && !reduces,
        _ => false,
    };
    (!is_known).then_some(SPACE)
}

/// Is this `.shared` of the executing CTA?
fn is_shared(space: &str) -> bool {
    matches!(space, "shared" | "shared::cta")
}

/// `.row` or `.col`
pub(crate) fn is_layout(word: &str) -> bool {
    matches!(word, "row" | "col")
}

/// `.m16n8k16`, `.m8n8`, `.16x64b`
pub(crate) fn is_shape(word: &str) -> bool {
    let digit_at = |i: usize| word.as_bytes().get(i).is_some_and(u8::is_ascii_digit);
    let of_matrix = word.starts_with('m') && digit_at(1) && word.contains('n');
    of_matrix || digit_at(0) && word.contains('x') && word.contains('b')
}

/// Is this the format of a matrix in memory, or the format that it is widened to?
pub(crate) fn is_format(word: &str) -> bool {
    matches!(word, "b8x16" | "b4x16_p64" | "b6x16_p32")
}

/// Does the modifier of this slot add an operand? Without the modifier, the instruction has one operand too many.
pub(crate) fn brings_operand(opcode: Opcode, slot: &str, operands: usize) -> bool {
    match slot {
        "L2::cache_hint" => operands != 5 || opcode != Opcode::Cp,
        "multicast" | "im2col" | "cp_mask" => true,
        "sp" => opcode == Opcode::Tcgen05,
        _ => false,
    }
}
