//! The PTX instruction table: types, modifiers, versions, targets, and every instruction form, generated from `isa/*.isa`.
//!
//! [`select`] finds the form that an instruction's modifiers and number of operands mean; [`Form`] describes an
//! instruction completely.
#![forbid(unsafe_code)]

mod addition;
mod complete;
pub mod enumerate;
mod field;
mod form;
mod gate;
mod generated;
pub mod matrix;
mod message;
mod modifier;
mod opaque;
mod part;
mod picks;
mod placement;
mod property;
pub mod prose;
mod refusal;
mod registers;
mod select;
mod special;
mod spelling;
pub mod texture;
mod types;
mod validity;

pub use addition::Addition;
pub use complete::{Next, next_modifiers};
pub use form::{
    Access, Action, CarryFlag, Choice, Condition, Consequence, Elements, Fault, Form, FormId, OperandKind,
    OperandSpec, OperandType, Presence, Rule, Second, Slot, Token,
};
pub use gate::{Gate, Requirement, Stage, Suffix, Target, Version, since, since_text};
use generated::ELSEWHERE;
pub use generated::{Effect, FORMS, LENIENT, Mod, Opcode};
pub use message::{Faulty, Message, Placeholder, fill, stage_of, stage_of_constants};
pub use opaque::Opaque;
pub use part::{Parts, Selectable, Selector, Unit};
pub use picks::Picks;
pub use property::{Constant, Limit, Property};
pub use registers::{LiteralForm, literal_allowed, register_allowed};
pub use select::{
    SelectError, Selected, candidates, is_alternate, mixture, overload, select, select_lenient,
};
pub use special::{SpecialRegister, SpecialValue};
pub use spelling::is_part_of_name;
pub use types::{BoolOp, CmpOp, Kind, Rounding, Space, Type};
pub use validity::Validity;

/// The number of dimensions of the tensor, for an instruction on tensor maps.
pub fn tensor_dimensions(picks: &Picks) -> Option<usize> {
    let all = [Mod::N1d, Mod::N2d, Mod::N3d, Mod::N4d, Mod::N5d];
    all.iter().position(|&modifier| picks.has(modifier)).map(|index| index + 1)
}

/// The number of coordinates of the tensor: one for each dimension, or a column and four rows.
pub fn tensor_coordinates(picks: &Picks) -> Option<usize> {
    let names_rows = picks.has(Mod::TileGather4) || picks.has(Mod::TileScatter4);
    if names_rows { Some(5) } else { tensor_dimensions(picks) }
}

/// The rows of one opcode; none for a word that is not an opcode.
pub fn forms(opcode: &str) -> &'static [Form] {
    let (start, end) = Opcode::from_name(opcode).map_or((0, 0), form_range);
    &FORMS[start..end]
}

/// The gates that ptxas checks as soon as it reads a modifier or type: those in this form or, if the form does not
/// take it, those that the table has for other instructions. A subject may contain `{op}`, the instruction's name.
pub fn token_gates(form: &Form, token: Token) -> impl Iterator<Item = Gate> {
    let find = |form: &Form| form.slots.iter().find_map(|slot| slot.choice(token)).map(|choice| choice.gates);
    // For these, a row without gates does not show that the modifier itself has none.
    let needs_by_itself = matches!(token, Token::Mod(Mod::SpOrderedMetadata | Mod::Weak));
    let own = find(form).filter(|gates| !(needs_by_itself && gates.is_empty()));
    let (_, elsewhere) = elsewhere(token).unwrap_or_default();
    // A gate on an instruction because of its modifier does not apply to other instructions.
    let is_of_word =
        |gate: &Gate| gate.subject.starts_with("Feature '.") || gate.subject.starts_with("Modifier '.");
    let foreign = || match elsewhere {
        [] => FORMS.iter().filter_map(find).find(|gates| gates.iter().any(is_of_word)),
        gates => Some(gates),
    };
    let gates = own.or_else(foreign).unwrap_or_default();
    let applies = move |gate: &Gate| own.is_some() || !elsewhere.is_empty() || is_of_word(gate);
    gates.iter().copied().filter(move |gate| gate.stage == Stage::Token && applies(gate))
}

/// The gates of a modifier on instructions that do not take it (none, if they are those of one that does), and
/// whether ptxas checks them late.
fn elsewhere(token: Token) -> Option<(bool, &'static [Gate])> {
    let Token::Mod(modifier) = token else { return None };
    let index = ELSEWHERE.binary_search_by_key(&modifier.name(), |(modifier, ..)| modifier.name()).ok()?;
    let (_, late, gates) = ELSEWHERE[index];
    Some((late, gates))
}

/// Does ptxas check the gates of this modifier, wherever it stands, just before it rejects modifiers?
pub fn is_gated_late(token: Token) -> bool {
    elsewhere(token).is_some_and(|(late, _)| late)
}

/// Does ptxas check the gates of a modifier or type even on instructions that do not take it?
pub fn is_gated_elsewhere(token: Token) -> bool {
    match token {
        Token::Type(ty) => is_alternate(ty),
        Token::Mod(_) => elsewhere(token).is_some(),
    }
}

/// The id of a row.
pub fn form_id(form: &Form) -> Option<FormId> {
    let (start, end) = form_range(form.opcode);
    (start..end).find(|&id| std::ptr::eq(&FORMS[id], form)).map(|id| FormId(id as u16))
}

fn form_range(opcode: Opcode) -> (usize, usize) {
    // Every instruction asks several times; searching the rows would read many of them.
    static STARTS: std::sync::LazyLock<Vec<usize>> = std::sync::LazyLock::new(|| {
        let last = FORMS.last().map_or(0, |form| form.opcode as usize);
        (0..=last + 1).map(|opcode| FORMS.partition_point(|form| (form.opcode as usize) < opcode)).collect()
    });
    let start = |opcode: usize| STARTS.get(opcode).copied().unwrap_or(FORMS.len());
    (start(opcode as usize), start(opcode as usize + 1))
}
