//! Missing modifiers for which ptxas has messages of their own.

use isa::{Mod, Opcode, Type};
use smallvec::SmallVec;
use syntax::tree::Instruction as Tree;

use crate::words::{is_layout, is_operation};

/// The message for a missing or superfluous modifier of an instruction whose types and operands fit.
pub(crate) fn missing(node: &Tree, opcode: Opcode, name: &str) -> Option<String> {
    let words = || node.modifiers.iter().map(|m| m.text);
    let mods: SmallVec<[Mod; 8]> = words().filter_map(Mod::from_name).collect();
    let has = |modifier: Mod| mods.contains(&modifier);
    let required = |what: &str| Some(format!("{what} required for instruction '{name}'"));
    let layouts = || words().filter(|word| is_layout(word)).count();
    match opcode {
        Opcode::Wmma if has(Mod::Load) || has(Mod::Store) => {
            (layouts() != 1).then(|| required("layout modifier"))?
        }
        Opcode::Mma | Opcode::Wmma => match layouts() {
            0 => required("'.alayout.blayout' modifier"),
            1 => required("'.blayout' modifier"),
            _ => None,
        },
        Opcode::Tcgen05 if has(Mod::Mma) && !has(Mod::BlockScale) => {
            let scale = words().find(|word| is_scale(word))?;
            Some(format!("Modifier '.{scale}' requires modifier '.block_scale' for instruction '{name}'"))
        }
        Opcode::Atom | Opcode::Red if !has(Mod::Async) && !words().any(is_operation) => {
            Some(format!("Illegal operation '' for instruction '{name}'"))
        }
        // To ptxas, `.lo` or `.hi` after a type is not a mode.
        Opcode::Dp2a if !words().next().is_some_and(|first| ["lo", "hi"].contains(&first)) => {
            required("'.hi/.lo' modifier")
        }
        Opcode::Min | Opcode::Max if node.operands.len() < 4 && words().any(is_of_sign) => {
            match (has(Mod::Abs), has(Mod::Xorsign)) {
                (true, false) => Some("Modifier '.abs' requires modifier '.xorsign'".into()),
                (false, true) => Some("Modifier '.xorsign' requires modifier '.abs'".into()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Is this the size of a block that shares a scale, or of a vector of scales?
fn is_scale(word: &str) -> bool {
    let is_block = matches!(Mod::from_name(word), Some(Mod::Block16 | Mod::Block32));
    is_block || word.starts_with("scale_vec::")
}

/// Is this a type of numbers whose sign is a bit?
fn is_of_sign(word: &str) -> bool {
    let ty = Type::from_name(word);
    matches!(ty, Some(Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32))
}

/// Reports `.sat` together with another kind of saturation, whatever the operands.
pub(crate) fn saturates_twice(node: &Tree, opcode: Opcode) -> Option<String> {
    let has = |modifier: Mod| node.modifiers.iter().any(|m| m.text == modifier.name());
    let other = [Mod::Satfinite, Mod::Relu].into_iter().find(|&modifier| has(modifier))?;
    let is_it = opcode == Opcode::Cvt && has(Mod::Sat);
    is_it.then(|| format!("Modifier '.{}' cannot be combined with modifier '.sat'", other.name()))
}

/// The error in the state spaces of an asynchronous copy. It has two spaces; the first is the destination.
pub(crate) fn wrong_spaces(name: &str, is_bulk: bool, spaces: &[Mod]) -> Option<&'static str> {
    const NUMBER: &str = "Unexpected number of state spaces specified in instruction";
    const SPACE: &str = "State space incorrect for instruction";
    let reduces = name.starts_with("cp.reduce");
    let is_known = match *spaces {
        // `.shared` is that of the executing CTA.
        [to, from] if name == "cp.async" => matches!(to, Mod::Shared | Mod::SharedCta) && from == Mod::Global,
        _ if name == "cp.async" => return Some(NUMBER),
        _ if !is_bulk => true,
        [Mod::Global, from] => from == Mod::SharedCta,
        _ if name.starts_with("multimem") => false,
        [Mod::SharedCluster, from] => from == Mod::SharedCta || from == Mod::Global && !reduces,
        [Mod::SharedCta, from] => from == Mod::Global && !reduces,
        _ => false,
    };
    (!is_known).then_some(SPACE)
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
