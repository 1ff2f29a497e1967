//! The messages of ptxas for modifiers that mean no form: the texts of [`SelectError`].

use crate::field::Field;
use crate::select::is_refused_early;
use crate::spelling::is_part_of_name;
use crate::{Mod, SelectError, Token, Type, is_alternate};

/// The most forms of an instruction that a help line lists.
const MOST_FORMS: usize = 8;

impl SelectError {
    /// Does ptxas report this while it reads the modifiers, before it checks types and operands?
    pub fn comes_first(&self, modifiers: &[&str]) -> bool {
        let modifier = |index: usize| modifiers.get(index).and_then(|name| Mod::from_name(name));
        match *self {
            SelectError::UnknownModifier { .. } => true,
            SelectError::Repeated { index } => {
                !modifier(index).is_some_and(|m| m.is_operation() || m.space().is_some())
            }
            SelectError::Illegal { index, form } => {
                modifier(index).is_some_and(|m| is_refused_early(form.form(), m))
            }
            _ => false,
        }
    }

    /// The message, in ptxas's words.
    pub fn message(&self, opcode: &str, modifiers: &[&str]) -> String {
        let modifier = |index: usize| modifiers.get(index).copied().unwrap_or_default();
        match *self {
            SelectError::UnknownInstruction => format!("Not a name of any known instruction: '{opcode}'"),
            SelectError::UnknownModifier { index } => format!("Unknown modifier '.{}'", modifier(index)),
            SelectError::Repeated { index } => repeated(opcode, modifier(index)),
            SelectError::Operation { index, .. } => {
                let types = modifiers.iter().filter(|m| matches!(Token::from_name(m), Some(Token::Type(_))));
                if types.clone().any(|ty| ty.starts_with("e4m3") || ty.starts_with("e5m2")) {
                    return SelectError::Types.message(opcode, modifiers);
                }
                let types: String = types.map(|ty| format!(".{ty}")).collect();
                let operation = modifier(index);
                format!("Incorrect type '{types}' for operation '.{operation}' in instruction '{opcode}'")
            }
            SelectError::Mixture { form } if opcode == "mma" => {
                let is_apart =
                    |m: &&&str| matches!(Token::from_name(m), Some(Token::Type(ty)) if is_alternate(ty));
                let takes = |wanted: &[Type]| {
                    let mut choices = form.form().type_slots().flat_map(|slot| slot.choices);
                    choices.any(|choice| wanted.iter().any(|&ty| choice.token == Token::Type(ty)))
                };
                let is_sparse = modifiers.iter().any(|m| matches!(*m, "sp" | "sp::ordered_metadata"));
                let of_bytes = is_sparse && takes(&[Type::S8, Type::U8]);
                let of_nibbles = is_sparse && takes(&[Type::S4, Type::U4]);
                let counts = of_nibbles || takes(&[Type::B1]);
                let what = match modifiers.iter().filter(is_apart).count() {
                    _ if of_bytes => "Unexpected number of instruction types",
                    count if counts && count != 2 => "Unexpected number of instruction types",
                    _ => "Incorrect instruction type",
                };
                let opcode = if of_bytes || of_nibbles { "Sparse mma" } else { "mma" };
                let shape = modifiers.iter().find(|m| {
                    Mod::from_name(m).is_some_and(|m| Field::of(m) == Some(Field::Kind("matrix shape")))
                });
                let shape = shape.copied().unwrap_or_default();
                format!("{what} specified for {opcode} with shape '.{shape}'")
            }
            SelectError::Types | SelectError::Alternate { .. } | SelectError::Mixture { .. } => {
                format!("Unexpected instruction types specified for '{opcode}'")
            }
            SelectError::Arguments { .. } => format!("Arguments mismatch for instruction '{opcode}'"),
            SelectError::Illegal { index, .. } => illegal(opcode, modifier(index)),
            SelectError::Says { text, .. } => text.replace("{op}", opcode),
            SelectError::Geometries { .. } => "Multiple texture modifiers specified".into(),
            SelectError::Vector { .. } => "Vector type too large, exceeds 128 bit limit".into(),
            SelectError::Fragment { .. } => {
                format!("Argument vector size mismatch for instruction '{opcode}'")
            }
            SelectError::Comparison { .. } => {
                "Mismatch between instruction type and comparison qualifier".into()
            }
            SelectError::Missing { slot, .. } => match slot {
                "CmpOp" => format!("Comparison modifier required for instruction '{opcode}'"),
                "BoolOp" => format!("Boolean operation is required for instruction '{opcode}'"),
                "rn" | "rnd" | "frnd" | "irnd" => {
                    format!("Rounding modifier required for instruction '{opcode}'")
                }
                _ => format!(".{slot} modifier required for instruction '{opcode}'"),
            },
        }
    }

    /// What would be legal instead.
    pub fn help(&self, opcode: &str) -> Option<String> {
        match *self {
            SelectError::UnknownInstruction | SelectError::Repeated { .. } => None,
            SelectError::UnknownModifier { .. } => {
                Some(format!("modifiers of {opcode}: {}", all_modifiers(opcode)?))
            }
            SelectError::Types | SelectError::Alternate { .. } | SelectError::Mixture { .. } => {
                let forms: Vec<&str> = crate::forms(opcode).iter().map(|form| form.syntax).collect();
                Some(match forms.len() {
                    ..=MOST_FORMS => format!("the forms of {opcode} are: {}", forms.join("; ")),
                    count => format!("none of the {count} forms of {opcode} has these types"),
                })
            }
            SelectError::Arguments { form }
            | SelectError::Illegal { form, .. }
            | SelectError::Says { form, .. }
            | SelectError::Vector { form }
            | SelectError::Fragment { form }
            | SelectError::Geometries { form, .. }
            | SelectError::Operation { form, .. }
            | SelectError::Comparison { form, .. } => Some(format!("the form is `{}`", form.form().syntax)),
            SelectError::Missing { slot, form } => {
                let slot = form.form().slots.iter().find(|s| s.name == slot)?;
                let names: Vec<String> =
                    slot.choices.iter().map(|c| format!(".{}", c.token.name())).collect();
                Some(format!("one of {}", names.join(" ")))
            }
        }
    }
}

/// The message for a modifier that an instruction does not take.
fn illegal(opcode: &str, name: &str) -> String {
    // The name of the modifier in ptxas's message; for some, it is their effect.
    let called = match Mod::from_name(name) {
        Some(Mod::V2 | Mod::V4 | Mod::V8) => {
            return format!("Vector qualifier is not allowed for instruction '{opcode}'");
        }
        Some(m) if m.cmp().is_some() => {
            return format!("Comparison qualifier is not allowed for instruction '{opcode}'");
        }
        Some(m) if m.rounds() => return format!("Illegal rounding modifier for instruction '{opcode}'"),
        Some(m) if m.space().is_some() => {
            return format!("No state space qualifier expected for instruction '{opcode}'");
        }
        Some(Mod::Mmio) => return "Modifier '.mmio' cannot be applied to '' space".into(),
        // Known only as parts of instruction names.
        Some(m) if is_part_of_name(m) => return format!("Unknown modifier '.{name}'"),
        Some(Mod::Row | Mod::Col) => ".alayout or .blayout",
        Some(Mod::Clamp | Mod::Wrap | Mod::Trap | Mod::Zero) => "Clamp",
        Some(Mod::Shr7 | Mod::Shr15) => "Shift-right",
        _ if matches!(name, "1d" | "2d" | "3d" | "4d" | "5d") => "dimension",
        _ if matches!(name, "a1d" | "a2d" | "cube" | "acube" | "2dms" | "a2dms") => "Geometry",
        Some(Mod::B4e | Mod::Ecl | Mod::Ecr | Mod::F4e | Mod::Rc16 | Mod::Rc8) => "Permute",
        Some(Mod::R) => "Component",
        _ if matches!(name, "a" | "b" | "g") => "Component",
        Some(_) if is_eviction_priority(name) => ".level::eviction_priority",
        _ => return format!("Illegal modifier '.{name}' for instruction '{opcode}'"),
    };
    format!("Illegal modifier '{called}' for instruction '{opcode}'")
}

/// `.L1::evict_last` and the like.
fn is_eviction_priority(name: &str) -> bool {
    name.strip_prefix("L1::")
        .or_else(|| name.strip_prefix("L2::"))
        .is_some_and(|priority| priority.starts_with("evict_") || priority == "no_allocate")
}

/// The message for a modifier whose field another one already fills.
fn repeated(opcode: &str, name: &str) -> String {
    match Mod::from_name(name) {
        Some(m) if m.space().is_some() => {
            format!("Unexpected number of state spaces specified in instruction '{opcode}'")
        }
        Some(m) if m.is_operation() => Field::Operation.message(m),
        Some(_) if is_eviction_priority(name) => {
            "Unexpected number of '.level::eviction_priority' modifiers specified".into()
        }
        Some(m) => Field::of(m).unwrap_or(Field::Twice(m)).message(m),
        None => format!("Duplicate .{name} modifier"),
    }
}

fn all_modifiers(opcode: &str) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for slot in crate::forms(opcode).iter().flat_map(|form| form.slots) {
        for choice in slot.choices {
            let name = format!(".{}", choice.token.name());
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() { None } else { Some(names.join(" ")) }
}
