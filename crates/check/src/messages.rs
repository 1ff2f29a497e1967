//! Messages of ptxas about modifiers that differ for some instructions: the table has most of them.

use isa::{Faulty, Form, Message, Mod, Picks, Placeholder, SelectError, Target, Token, Version, fill};

/// The messages for an error of selection, if they differ from the general message of `isa`.
pub(crate) fn special(
    error: &SelectError,
    form: &Form,
    name: &str,
    picks: &Picks,
    modifiers: &[&str],
    (version, target): (Version, Target),
) -> Option<Vec<String>> {
    if let SelectError::Illegal { index, .. } = *error {
        let word = *modifiers.get(index)?;
        let written = Mod::from_name(word)?;
        if is_tensor_memory(written) && !has_tensor_memory(written, target) {
            let illegal = format!("{}, for arch '{target}'", error.message(name, modifiers));
            let feature =
                format!("Feature '.{word}' requires PTX ISA .version {FIRST_WITH_TENSOR_MEMORY} or later");
            let is_old = version < FIRST_WITH_TENSOR_MEMORY;
            return Some(is_old.then_some(feature).into_iter().chain([illegal]).collect());
        }
        // The check of proxies reports it.
        if crate::opcode_rules::refuses_space_of_proxy(form, modifiers, written) {
            return Some(Vec::new());
        }
        if name.ends_with(".tensor")
            && let Some(messages) = load_mode(name, modifiers)
        {
            return Some(messages);
        }
    }
    by_table(error, form, name, picks, modifiers)
}

/// The messages that the table has for an error, by the first line that applies.
fn by_table(
    error: &SelectError,
    form: &Form,
    name: &str,
    picks: &Picks,
    modifiers: &[&str],
) -> Option<Vec<String>> {
    let wrong = match *error {
        SelectError::Repeated { index } | SelectError::Illegal { index, .. } => modifiers.get(index).copied(),
        _ => None,
    };
    let shape = || modifiers.iter().copied().find(|m| crate::words::is_shape(m));
    let half = |word: &str, back: bool| {
        word.split_once("::").map(|(front, rest)| if back { rest } else { front }.to_owned())
    };
    Message::about(error, Faulty { opcode: Some(form.opcode), modifiers, types: picks.types() }).find_map(
        |message| {
            let value = |placeholder: Placeholder| match placeholder {
                Placeholder::Op => Some(name.to_owned()),
                Placeholder::Modifiers => Some(modifiers.iter().map(|word| format!(".{word}")).collect()),
                Placeholder::Product => {
                    crate::product::group_name(form, picks).or_else(|| Some(name.to_owned()))
                }
                Placeholder::Shape => shape().map(|shape| format!(".{shape}")),
                Placeholder::Slot => match error {
                    SelectError::Missing { slot, .. } => Some((*slot).to_owned()),
                    _ => None,
                },
                Placeholder::ThirdLayout => {
                    let layouts = modifiers.iter().filter(|m| crate::words::is_layout(m));
                    layouts.skip(2).map(|word| (*word).to_owned()).next()
                }
                Placeholder::Type0 => Some(picks.ty(0).to_string()),
                Placeholder::Type1 => Some(picks.ty(1).to_string()),
                Placeholder::Types => Some(picks.types().iter().map(ToString::to_string).collect()),
                Placeholder::KnownType => known_type(form, picks, modifiers),
                Placeholder::With => message.with(modifiers).map(str::to_owned),
                Placeholder::WithBack => half(message.with(modifiers)?, true),
                Placeholder::Word => wrong.map(str::to_owned),
                Placeholder::WordBack => half(wrong?, true),
                Placeholder::WordFront => half(wrong?, false),
                Placeholder::WrongShape => crate::product::wrong_shape(wrong.or_else(shape)?, form, picks),
            };
            match message.texts {
                None => Some(None),
                Some(texts) => texts.iter().map(|text| fill(text, value)).collect::<Option<_>>().map(Some),
            }
        },
    )?
}

/// The only type of the instruction, if there are instructions of its name that have it.
fn known_type(form: &Form, picks: &Picks, modifiers: &[&str]) -> Option<String> {
    let &[ty] = picks.types() else { return None };
    let rows = isa::forms(form.opcode.name()).iter().filter(|row| row.has_name(modifiers));
    let mut slots = rows.flat_map(Form::type_slots);
    slots.any(|slot| slot.choice(Token::Type(ty)).is_some()).then(|| ty.to_string())
}

const FIRST_WITH_TENSOR_MEMORY: Version = Version::new(8, 6);

/// Modifiers of tcgen05 instructions. On targets without tensor memory, ptxas has a message of its own for them on
/// other instructions.
fn is_tensor_memory(modifier: Mod) -> bool {
    matches!(
        modifier.name(),
        "alloc" | "cp" | "dealloc" | "ld" | "mma" | "pack::16b" | "shift" | "st" | "unpack::16b" | "warpx4"
    ) || modifier.name().starts_with("warpx2::")
}

fn has_tensor_memory(modifier: Mod, target: Target) -> bool {
    let has_family = matches!(target.number, 100..120) && target.suffix != isa::Suffix::None;
    has_family && (modifier.name() != "shift" || target.suffix == isa::Suffix::Architecture)
}

/// The messages for a tensor copy whose load mode belongs to the other direction, or to another number of dimensions.
fn load_mode(name: &str, modifiers: &[&str]) -> Option<Vec<String>> {
    let written = |is: fn(&str) -> bool| modifiers.iter().copied().find(|&m| is(m));
    let mode = written(|m| m.starts_with("im2col") || matches!(m, "tile::gather4" | "tile::scatter4"))?;
    let dimension = written(|m| matches!(m, "1d" | "2d" | "3d" | "4d" | "5d"))?;
    let space = |name: &str| modifiers.iter().position(|m| m.starts_with(name));
    // The spaces of a prefetch do not include shared memory.
    let stores = space("global") < space("shared");
    let mut messages = Vec::new();
    if stores != matches!(mode, "im2col_no_offs" | "tile::scatter4") {
        messages.push(format!("Illegal modifier '.{mode}' for instruction '{name}'"));
    }
    if mode.starts_with("tile") != (dimension == "2d") || dimension == "1d" {
        messages.push(format!("Modifier '.{dimension}' cannot be combined with modifier '.{mode}'"));
    }
    (!messages.is_empty()).then_some(messages)
}
