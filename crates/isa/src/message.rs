//! What ptxas says of modifiers that are missing, repeated or illegal: the lines of `isa/messages.isa`.

use crate::generated::MESSAGES;
use crate::{Form, Mod, Opcode, SelectError, Token, Type};

/// A line: an error in modifiers of which ptxas says something of its own, and what.
#[derive(Debug)]
pub struct Message {
    pub(crate) about: About,
    /// The instructions of which ptxas says so; all, if there is none.
    pub(crate) opcodes: &'static [Opcode],
    pub(crate) when: &'static [When],
    /// The messages, with placeholders in braces; `None` if ptxas says what it says of other instructions, too.
    pub texts: Option<&'static [&'static str]>,
}

/// The error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// A required slot is empty that has one of these names, or that takes one of these modifiers first.
    Missing { slots: &'static [&'static str], first: &'static [Mod] },
}

/// What else must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// One of these modifiers is written.
    Has(&'static [Mod]),
    /// None of them is.
    HasNot(&'static [Mod]),
    /// The first type is one of these.
    FirstType(&'static [Type]),
    /// No type is written.
    NoType,
}

/// An instruction with an error in its modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Faulty<'a> {
    /// The form that it may mean.
    pub form: &'a Form,
    /// The modifiers as written, types included.
    pub modifiers: &'a [&'a str],
    /// The types that count.
    pub types: &'a [Type],
}

impl Message {
    /// The lines that apply to an error, the first of which counts.
    pub fn about<'a>(
        error: &'a SelectError,
        faulty: Faulty<'a>,
    ) -> impl Iterator<Item = &'static Message> + use<'a> {
        MESSAGES.iter().filter(move |message| message.applies(error, faulty))
    }

    fn applies(&self, error: &SelectError, faulty: Faulty) -> bool {
        let is_about_it = match (self.about, error) {
            (About::Missing { slots, first }, SelectError::Missing { slot, .. }) => {
                slots.contains(slot) || is_first_choice(first, faulty.form, slot)
            }
            _ => false,
        };
        let of_opcode = self.opcodes.is_empty() || self.opcodes.contains(&faulty.form.opcode);
        is_about_it && of_opcode && self.when.iter().all(|when| when.holds(faulty))
    }

    /// The first written modifier of those that the line asks for last.
    pub fn with<'a>(&self, modifiers: &[&'a str]) -> Option<&'a str> {
        let asked = self.when.iter().rev().find_map(|when| match when {
            When::Has(mods) => Some(*mods),
            _ => None,
        })?;
        modifiers.iter().copied().find(|word| is_one_of(asked, word))
    }
}

impl When {
    fn holds(self, faulty: Faulty) -> bool {
        let has = |mods: &[Mod]| faulty.modifiers.iter().any(|word| is_one_of(mods, word));
        match self {
            When::Has(mods) => has(mods),
            When::HasNot(mods) => !has(mods),
            When::FirstType(types) => faulty.types.first().is_some_and(|ty| types.contains(ty)),
            When::NoType => faulty.types.is_empty(),
        }
    }
}

fn is_one_of(mods: &[Mod], word: &str) -> bool {
    mods.iter().any(|modifier| modifier.name() == word)
}

/// Puts values in the place of the placeholders of a text: `{op}`. `None` if one of them has no value.
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (placeholder, after) = behind.split_once('}')?;
        filled += before;
        filled += &value(placeholder)?;
        rest = after;
    }
    Some(filled + rest)
}

/// Is the first choice of the slot one of these?
fn is_first_choice(mods: &[Mod], form: &Form, slot: &str) -> bool {
    let slot = form.slots.iter().find(|other| other.name == slot);
    let first = slot.and_then(|slot| slot.choices.first());
    first.is_some_and(|choice| mods.iter().any(|&modifier| choice.token == Token::Mod(modifier)))
}
