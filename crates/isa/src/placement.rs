//! Which slots of a row the modifiers and types of an instruction fill, and which fill none.

use crate::field::Field;
use crate::spelling::Written;
use crate::{Form, FormId, Mod, Opcode, SelectError, Slot, Token, Type};

/// The modifiers of an instruction, distributed to the slots of one row.
#[derive(Default)]
pub(crate) struct Placed {
    /// One for each slot of the row.
    pub(crate) slots: Vec<Option<Mod>>,
    pub(crate) types: Vec<Type>,
    pub(crate) repeated: Vec<SelectError>,
    pub(crate) illegal: Vec<SelectError>,
    /// `.texref`, `.samplerref` or `.surfref` is written without a slot for it.
    pub(crate) opaque: bool,
    /// More than two formats of a matrix conversion are written.
    pub(crate) formats: bool,
    /// The index of a second geometry of a texture, of another kind than the first.
    pub(crate) geometries: Option<usize>,
}

/// Distributes modifiers and types to the slots of a row.
pub(crate) fn place(id: FormId, written: &[Written]) -> Placed {
    let form = id.form();
    let mut placed = Placed { slots: vec![None; form.slots.len()], ..Placed::default() };
    for (index, written_here) in written.iter().enumerate() {
        let modifier = match *written_here {
            Written::Token(Token::Type(ty)) => {
                if !form.ignores(ty, placed.types.len()) {
                    placed.types.push(ty);
                }
                continue;
            }
            Written::Token(Token::Mod(modifier)) => modifier,
            Written::Foreign => {
                placed.illegal.push(SelectError::Illegal { index, form: id });
                continue;
            }
            Written::Ignored(modifier) => {
                if repeats(&written[..index], modifier) {
                    placed.repeated.push(SelectError::Repeated { index });
                }
                continue;
            }
            Written::Unknown => continue,
        };
        // Modifiers of the name fill no field, and a modifier after the name is not part of it.
        let is_scope = matches!(written[0].modifier(), Some(Mod::Cta | Mod::Cluster));
        let of_barrier = is_scope && matches!(form.opcode, Opcode::Bar | Opcode::Barrier);
        let before = &written[form.head.max(usize::from(of_barrier)).min(index)..index];
        let takes = |slot: usize| {
            (slot >= form.head || slot == index) && form.slots[slot].choice(Token::Mod(modifier)).is_some()
        };
        let places: Vec<usize> = (0..placed.slots.len()).filter(|&slot| takes(slot)).collect();
        match places.iter().find(|&&slot| placed.slots[slot].is_none()) {
            Some(&slot) => {
                placed.slots[slot] = Some(modifier);
                let is_named = index < form.head && slot < form.head;
                let is_free = modifier.is_operation() && combines_twice(form);
                if !is_named && places.len() == 1 && !is_free && repeats(before, modifier) {
                    placed.repeated.push(SelectError::Repeated { index });
                }
            }
            // Rows that ignore `.pred` also ignore these.
            _ if is_opaque(modifier) => placed.opaque |= !form.ignored.contains(&Type::Pred),
            // `bar.cta` ignores nothing.
            None if form.ignored_mods.contains(&modifier) && !of_barrier => {
                if repeats(before, modifier) {
                    placed.repeated.push(SelectError::Repeated { index });
                }
            }
            // A second state space of an instruction that takes one.
            None if places.is_empty()
                && form.opcode != Opcode::Cp
                && is_second_space(form, before, modifier) =>
            {
                placed.repeated.push(SelectError::Repeated { index });
            }
            None if places.is_empty() => {
                if repeats(before, modifier) || form.opcode == Opcode::Vote && repeats_vote(before, modifier)
                {
                    placed.repeated.push(SelectError::Repeated { index });
                    // Only the first operation is an error.
                    if modifier.is_operation() {
                        continue;
                    }
                }
                placed.illegal.push(SelectError::Illegal { index, form: id });
            }
            None if repeats_silently(modifier) && placed.slots.contains(&Some(modifier)) => {}
            None if modifier.is_format() => placed.formats = true,
            // One `.lo` or `.hi` belongs to the name, wherever it is written; further ones are comparisons, which are
            // illegal here.
            None if form.opcode == Opcode::Dp2a => {
                placed.illegal.push(SelectError::Illegal { index, form: id });
            }
            // The scope of a barrier belongs to the name.
            None if of_barrier && modifier == Mod::Cta && !repeats(before, modifier) => {
                placed.illegal.push(SelectError::Illegal { index, form: id });
            }
            // A texture has either a number of dimensions or another geometry. ptxas keeps the two in different
            // fields and compares them later.
            None if Field::of(modifier) == Some(Field::Kind("dimension")) && !repeats(before, modifier)
                || Field::of(modifier) == Some(Field::Kind("texture")) && !repeats(before, modifier) =>
            {
                placed.geometries = Some(index);
            }
            None => {
                // The last modifier written wins.
                if let Some(&slot) = places.last() {
                    placed.slots[slot] = Some(modifier);
                }
                placed.repeated.push(SelectError::Repeated { index });
            }
        }
    }
    placed
}

/// Does ptxas accept this modifier twice?
fn repeats_silently(modifier: Mod) -> bool {
    matches!(modifier, Mod::Sat | Mod::Cc | Mod::Approx | Mod::Relu | Mod::Satfinite | Mod::Sync | Mod::Uni)
        || matches!(modifier, Mod::NaN | Mod::Shiftamt)
}

/// `.texref`, `.samplerref` and `.surfref`, which are types to ptxas.
fn is_opaque(modifier: Mod) -> bool {
    matches!(modifier, Mod::Texref | Mod::Samplerref | Mod::Surfref)
}

/// Does the modifier repeat one of its kind, whatever the row?
pub(crate) fn repeats(before: &[Written], modifier: Mod) -> bool {
    let any = |wanted: &dyn Fn(Mod) -> bool| before.iter().any(|w| w.modifier().is_some_and(wanted));
    let field = Field::of(modifier);
    field.is_some() && any(&|m| Field::of(m) == field) || modifier.is_operation() && any(&Mod::is_operation)
}

/// Is this a second state space in an instruction that has one slot for a state space?
fn is_second_space(form: &Form, before: &[Written], modifier: Mod) -> bool {
    let is_space = |m: Mod| m.space().is_some();
    let takes = |slot: &&Slot| slot.choices.iter().any(|c| matches!(c.token, Token::Mod(m) if is_space(m)));
    let spaces = form.slots[form.head..].iter().filter(takes).count();
    is_space(modifier) && spaces == 1 && before.iter().any(|w| w.modifier().is_some_and(is_space))
}

/// The modes of `vote` are one field.
fn repeats_vote(before: &[Written], modifier: Mod) -> bool {
    let is_mode = |m: Mod| matches!(m, Mod::All | Mod::Any | Mod::Ballot | Mod::Uni);
    is_mode(modifier) && before.iter().any(|w| w.modifier().is_some_and(is_mode))
}

/// Does the form combine bits with one operation and results with another (`mma` with `.xor.popc`)?
fn combines_twice(form: &Form) -> bool {
    let combines = |choice: &crate::Choice| matches!(choice.token, Token::Mod(m) if m.is_operation());
    form.slots.iter().filter(|slot| slot.choices.iter().any(combines)).count() > 1
}
