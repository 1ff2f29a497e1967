//! Finds the form that an instruction's modifiers mean, as ptxas does: the modifiers are a bag, and only the order of the
//! types among themselves matters.

use crate::form::{Consequence, Fault};
use crate::{Condition, Form, FormId, Mod, Picks, Token, Type};

/// The form of an instruction and what was picked in its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selected {
    /// The row.
    pub id: FormId,
    /// The picks.
    pub picks: Picks,
}

impl Selected {
    /// The row.
    pub fn form(&self) -> &'static Form {
        self.id.form()
    }
}

/// Why an instruction's modifiers mean no form. `index` counts the written modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// No row has this opcode.
    UnknownInstruction,
    /// No row of any opcode has this modifier.
    UnknownModifier {
        /// Which.
        index: usize,
    },
    /// A modifier of a slot that another one fills already.
    Repeated {
        /// Which.
        index: usize,
    },
    /// No row of the opcode has these types.
    Types,
    /// The row that has these types and modifiers takes another number of operands.
    Arguments {
        /// The row.
        form: FormId,
    },
    /// The row has no place for this modifier, or it does not go with the rest.
    Illegal {
        /// Which.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// So many elements of this type are too large for one access.
    Vector {
        /// The row.
        form: FormId,
    },
    /// The comparison operator does not go with the type.
    Comparison {
        /// Which.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// A modifier of this slot must be given.
    Missing {
        /// The slot's name.
        slot: &'static str,
        /// The row.
        form: FormId,
    },
}

/// How one row fits.
struct Fit {
    picks: Picks,
    errors: Vec<SelectError>,
    /// Smaller is better: types, modifiers without a place, operands, modifiers missing.
    rank: [usize; 4],
}

/// The form that `opcode` with these modifiers (without their dots, in written order) and this number of operands means.
/// Errors come in ptxas's order; wrong types and a wrong number of operands hide those that follow.
pub fn select(opcode: &str, modifiers: &[&str], operands: usize) -> Result<Selected, Vec<SelectError>> {
    let tokens: Vec<Option<Token>> = modifiers.iter().map(|name| Token::from_name(name)).collect();
    let mut errors: Vec<SelectError> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is_none())
        .map(|(index, _)| SelectError::UnknownModifier { index })
        .collect();
    let (start, end) = crate::form_range(opcode);
    let fits = (start..end).map(|id| fit(FormId(id as u16), &tokens, operands));
    let mut best: Option<(FormId, Fit)> = None;
    for (id, fit) in (start..end).map(|id| FormId(id as u16)).zip(fits) {
        if fit.errors.is_empty() && errors.is_empty() {
            return Ok(Selected { id, picks: fit.picks });
        }
        if best.as_ref().is_none_or(|(_, so_far)| fit.rank < so_far.rank) {
            best = Some((id, fit));
        }
    }
    match best {
        None => errors.push(SelectError::UnknownInstruction),
        Some((_, fit)) => errors.extend(fit.errors),
    }
    Err(errors)
}

/// ptxas lets these be said twice.
fn repeats_silently(modifier: Mod) -> bool {
    matches!(modifier, Mod::Sat | Mod::Cc | Mod::Approx | Mod::Relu | Mod::Satfinite | Mod::Sync | Mod::Uni)
}

fn fit(id: FormId, tokens: &[Option<Token>], operands: usize) -> Fit {
    let form = id.form();
    let mut slots: Vec<Option<Mod>> = vec![None; form.slots.len()];
    let mut types: Vec<Type> = Vec::new();
    let (mut repeated, mut illegal) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        let modifier = match *token {
            Some(Token::Type(ty)) => {
                if !form.ignored.contains(&ty) {
                    types.push(ty);
                }
                continue;
            }
            Some(Token::Mod(modifier)) => modifier,
            None => continue,
        };
        let takes = |slot: usize| form.slots[slot].choice(Token::Mod(modifier)).is_some();
        let places: Vec<usize> = (0..slots.len()).filter(|&slot| takes(slot)).collect();
        match places.iter().find(|&&slot| slots[slot].is_none()) {
            Some(&slot) => slots[slot] = Some(modifier),
            None if places.is_empty() => illegal.push(SelectError::Illegal { index, form: id }),
            // ptxas lets these be said twice.
            None if repeats_silently(modifier) && slots.contains(&Some(modifier)) => {}
            None => {
                // The last one said stands.
                if let Some(&slot) = places.last() {
                    slots[slot] = Some(modifier);
                }
                repeated.push(SelectError::Repeated { index });
            }
        }
    }
    let types_fit = types.len() == form.type_slots().count()
        && form.type_slots().zip(&types).all(|(slot, &ty)| slot.choice(Token::Type(ty)).is_some());
    let mods: Vec<Mod> = slots.iter().copied().flatten().collect();
    let picks = Picks::new(&types, &mods);
    let mut types_bad = usize::from(!types_fit);
    let (mut late, mut missing) = (Vec::new(), Vec::new());
    for (slot, filled) in form.slots.iter().zip(&slots) {
        if !slot.optional && !slot.is_type() && filled.is_none() {
            missing.push(SelectError::Missing { slot: slot.name, form: id });
        }
    }
    if types_fit {
        for rule in form.rules.iter().filter(|rule| rule.applies(&picks)) {
            if let Consequence::Needs(needs, fault) = rule.then
                && !needs.iter().all(|condition: &Condition| condition.holds(&picks))
            {
                let written = |wanted: &dyn Fn(Mod) -> bool| {
                    tokens.iter().position(|t| matches!(t, Some(Token::Mod(m)) if wanted(*m))).unwrap_or(0)
                };
                match fault {
                    Fault::Types => types_bad += 1,
                    Fault::Illegal(mods) => {
                        let index = written(&|m| mods.contains(&m));
                        illegal.push(SelectError::Illegal { index, form: id });
                    }
                    Fault::Vector => late.push(SelectError::Vector { form: id }),
                    Fault::Comparison => {
                        let index = written(&|m| m.cmp().is_some());
                        late.push(SelectError::Comparison { index, form: id });
                    }
                    Fault::Missing(slot) => missing.push(SelectError::Missing { slot, form: id }),
                }
            }
        }
    }
    let operands_fit = form.accepts_operands(operands, &picks);
    let head_fits = form.slots[..form.head]
        .iter()
        .enumerate()
        .all(|(i, slot)| tokens.get(i).copied().flatten().is_some_and(|token| slot.choice(token).is_some()));
    if !head_fits {
        return Fit { picks, errors: vec![SelectError::UnknownInstruction], rank: [usize::MAX; 4] };
    }
    let rank = [types_bad, illegal.len(), usize::from(!operands_fit), missing.len() + late.len()];
    let mut errors = repeated;
    if types_bad != 0 {
        errors.push(SelectError::Types);
    } else if !operands_fit && illegal.is_empty() {
        errors.push(SelectError::Arguments { form: id });
    } else {
        errors.extend(illegal);
        errors.extend(late);
        errors.extend(missing);
    }
    Fit { picks, errors, rank }
}

impl SelectError {
    /// The message, in ptxas's words.
    pub fn message(&self, opcode: &str, modifiers: &[&str]) -> String {
        let modifier = |index: usize| modifiers.get(index).copied().unwrap_or_default();
        match *self {
            SelectError::UnknownInstruction => format!("Not a name of any known instruction: '{opcode}'"),
            SelectError::UnknownModifier { index } => format!("Unknown modifier '.{}'", modifier(index)),
            SelectError::Repeated { index } => repeated(opcode, modifier(index)),
            SelectError::Types => format!("Unexpected instruction types specified for '{opcode}'"),
            SelectError::Arguments { .. } => format!("Arguments mismatch for instruction '{opcode}'"),
            SelectError::Illegal { index, .. } => match Mod::from_name(modifier(index)) {
                Some(Mod::V2 | Mod::V4 | Mod::V8) => {
                    format!("Vector qualifier is not allowed for instruction '{opcode}'")
                }
                Some(m) if m.cmp().is_some() => {
                    format!("Comparison qualifier is not allowed for instruction '{opcode}'")
                }
                Some(m) if m.rounding().is_some() => {
                    format!("Illegal rounding modifier for instruction '{opcode}'")
                }
                Some(m) if m.space().is_some() => {
                    format!("No state space qualifier expected for instruction '{opcode}'")
                }
                // ptxas knows these only as parts of other instructions' names.
                Some(
                    Mod::Full | Mod::Wide | Mod::To | Mod::Pack | Mod::Idx | Mod::Range | Mod::Fractional,
                ) => {
                    format!("Unknown modifier '.{}'", modifier(index))
                }
                _ => format!("Illegal modifier '.{}' for instruction '{opcode}'", modifier(index)),
            },
            SelectError::Vector { .. } => "Vector type too large, exceeds 128 bit limit".into(),
            SelectError::Comparison { .. } => {
                "Mismatch between instruction type and comparison qualifier".into()
            }
            SelectError::Missing { slot, .. } => match slot {
                "CmpOp" => format!("Comparison modifier required for instruction '{opcode}'"),
                "BoolOp" => format!("Boolean operation is required for instruction '{opcode}'"),
                "rnd" | "frnd" | "irnd" => format!("Rounding modifier required for instruction '{opcode}'"),
                _ => format!("Modifier '.{slot}' required for instruction '{opcode}'"),
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
            SelectError::Types => {
                let forms: Vec<&str> = crate::forms(opcode).iter().map(|form| form.syntax).collect();
                Some(format!("the forms of {opcode} are: {}", forms.join("; ")))
            }
            SelectError::Arguments { form }
            | SelectError::Illegal { form, .. }
            | SelectError::Vector { form }
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

/// What ptxas says of a modifier for which another one stands already.
fn repeated(opcode: &str, name: &str) -> String {
    let compares =
        || crate::forms(opcode).iter().any(|form| form.slots.iter().any(|slot| slot.name == "CmpOp"));
    let kind = match Mod::from_name(name) {
        Some(m) if m.cmp().is_some() && compares() => {
            return "Multiple comparisons set".into();
        }
        Some(m) if m.rounding().is_some() => "rounding",
        Some(m) if m.space().is_some() => "state space",
        Some(
            Mod::And
            | Mod::Or
            | Mod::Xor
            | Mod::Add
            | Mod::Inc
            | Mod::Dec
            | Mod::Min
            | Mod::Max
            | Mod::Exch
            | Mod::Cas,
        ) => return "Multiple instruction post-operation flags set".into(),
        Some(Mod::Cta | Mod::Cluster | Mod::Gpu | Mod::Sys) => "scope",
        Some(Mod::V2 | Mod::V4 | Mod::V8) => "vector",
        Some(Mod::Clamp | Mod::Wrap) => "clamp",
        Some(Mod::Any | Mod::All) => ".any/.all",
        Some(Mod::Ca | Mod::Cg | Mod::Cs | Mod::Lu | Mod::Cv | Mod::Wb | Mod::Wt | Mod::L1 | Mod::L2) => {
            "cache operation"
        }
        Some(Mod::Finite | Mod::Infinite | Mod::Number | Mod::Notanumber | Mod::Normal | Mod::Subnormal) => {
            "testp operation"
        }
        Some(Mod::Abs | Mod::Xorsign | Mod::Mmio) => return format!("Multiple .{name} modifiers specified"),
        _ => return format!("Duplicate .{name} modifier"),
    };
    format!("Multiple {kind} modifiers specified")
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
