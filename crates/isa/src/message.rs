//! What ptxas says of modifiers that are missing, repeated or illegal, and when: the lines of `isa/messages.isa`.

use crate::field::is_matrix_shape;
use crate::generated::{MESSAGES, STAGES};
use crate::{Mod, Opcode, SelectError, Stage, Token, Type};

/// An error in modifiers of which ptxas says something of its own, and what.
#[derive(Debug)]
pub struct Message {
    pub(crate) case: Case,
    /// The messages, with placeholders in braces; `None` if ptxas says what it says of other instructions, too.
    pub texts: Option<&'static [&'static str]>,
}

/// An error in modifiers, on certain instructions and under conditions.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) about: About,
    /// The instructions; all, if there is none.
    pub(crate) opcodes: &'static [Opcode],
    pub(crate) when: &'static [When],
}

/// The error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// A required slot is empty that has one of these names, or that takes one of these modifiers first.
    Missing { slots: &'static [&'static str], first: &'static [Mod] },
    /// One of these modifiers fills a field that another one fills already; any, if there is none.
    Repeated(&'static [Mod]),
    /// The instruction does not take one of these modifiers; any, if there is none.
    Illegal(&'static [Mod]),
    /// The instruction does not take a shape.
    IllegalShape,
    /// [`SelectError::Types`]
    Types,
    /// [`SelectError::Alternate`]
    Alternate,
    /// A constant is out of range.
    Constants,
}

/// What else must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// One of these modifiers is written.
    Has(&'static [Mod]),
    /// None of them is.
    HasNot(&'static [Mod]),
    /// The first modifier of all is one of these.
    First(&'static [Mod]),
    /// One of these stands before the modifier that is wrong.
    After(&'static [Mod]),
    /// The first type is one of these.
    FirstType(&'static [Type]),
    /// The last type is one of these.
    LastType(&'static [Type]),
    /// One of the types is one of these.
    AnyType(&'static [Type]),
    /// No type is written.
    NoType,
    /// One type is.
    OneType,
    /// At least one type is.
    SomeType,
}

/// An instruction with an error in its modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Faulty<'a> {
    /// The opcode; `None` asks for what holds for all.
    pub opcode: Option<Opcode>,
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
        MESSAGES.iter().filter(move |message| message.case.applies(error, faulty))
    }

    /// The first written modifier of those that the line asks for last.
    pub fn with<'a>(&self, modifiers: &[&'a str]) -> Option<&'a str> {
        let asked = self.case.when.iter().rev().find_map(|when| match when {
            When::Has(mods) => Some(*mods),
            _ => None,
        })?;
        modifiers.iter().copied().find(|word| is_one_of(asked, word))
    }
}

/// When ptxas reports an error in modifiers, if the table says so.
pub fn stage_of(error: &SelectError, faulty: Faulty) -> Option<Stage> {
    STAGES.iter().find(|(case, _)| case.applies(error, faulty)).map(|&(_, stage)| stage)
}

/// When ptxas checks the constants of an instruction, if the table says so.
pub fn stage_of_constants(opcode: Opcode) -> Option<Stage> {
    let is_it = |case: &Case| matches!(case.about, About::Constants) && case.opcodes.contains(&opcode);
    STAGES.iter().find(|(case, _)| is_it(case)).map(|&(_, stage)| stage)
}

impl Case {
    fn applies(&self, error: &SelectError, faulty: Faulty) -> bool {
        let wrong = match *error {
            SelectError::Repeated { index } | SelectError::Illegal { index, .. } => Some(index),
            _ => None,
        };
        let is_wrong = |mods: &[Mod]| {
            let word = wrong.and_then(|index| faulty.modifiers.get(index));
            mods.is_empty() || word.is_some_and(|word| is_one_of(mods, word))
        };
        let is_about_it = match (self.about, error) {
            (About::Missing { slots, first }, SelectError::Missing { slot, form }) => {
                slots.contains(slot) || is_first_choice(first, form.form(), slot)
            }
            (About::Repeated(mods), SelectError::Repeated { .. }) => is_wrong(mods),
            (About::Illegal(mods), SelectError::Illegal { .. }) => is_wrong(mods),
            (About::IllegalShape, SelectError::Illegal { index, .. }) => {
                faulty.modifiers.get(*index).is_some_and(|word| is_matrix_shape(word))
            }
            (About::Types, SelectError::Types) | (About::Alternate, SelectError::Alternate { .. }) => true,
            _ => false,
        };
        let of_opcode =
            self.opcodes.is_empty() || faulty.opcode.is_some_and(|opcode| self.opcodes.contains(&opcode));
        is_about_it && of_opcode && self.when.iter().all(|when| when.holds(faulty, wrong))
    }
}

impl When {
    fn holds(self, faulty: Faulty, wrong: Option<usize>) -> bool {
        let Faulty { modifiers, types, .. } = faulty;
        let has = |words: &[&str], mods: &[Mod]| words.iter().any(|word| is_one_of(mods, word));
        match self {
            When::Has(mods) => has(modifiers, mods),
            When::HasNot(mods) => !has(modifiers, mods),
            When::First(mods) => has(&modifiers[..modifiers.len().min(1)], mods),
            When::After(mods) => has(&modifiers[..wrong.unwrap_or(0)], mods),
            When::FirstType(among) => types.first().is_some_and(|ty| among.contains(ty)),
            When::LastType(among) => types.last().is_some_and(|ty| among.contains(ty)),
            When::AnyType(among) => types.iter().any(|ty| among.contains(ty)),
            When::NoType => types.is_empty(),
            When::OneType => types.len() == 1,
            When::SomeType => !types.is_empty(),
        }
    }
}

fn is_one_of(mods: &[Mod], word: &str) -> bool {
    mods.iter().any(|modifier| modifier.name() == word)
}

macro_rules! placeholders {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// What stands in braces in a text: `{op}`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Placeholder {
            $($(#[$doc])* $variant,)*
        }

        impl Placeholder {
            /// The placeholder of this name.
            pub fn from_name(name: &str) -> Option<Placeholder> {
                match name { $($name => Some(Placeholder::$variant),)* _ => None }
            }
        }
    };
}

placeholders! {
    /// The instruction's name.
    Op "op",
    /// The modifier that is wrong.
    Word "word",
    /// What stands before its `::`.
    WordFront "word front",
    /// What stands behind its `::`.
    WordBack "word back",
    /// The slot that is empty.
    Slot "slot",
    /// The modifier that the line's last condition asks for.
    With "with",
    /// What stands behind its `::`.
    WithBack "with back",
    /// All modifiers.
    Modifiers "modifiers",
    /// All types.
    Types "types",
    /// The first type.
    Type0 "type0",
    /// The second type.
    Type1 "type1",
    /// The shape.
    Shape "shape",
    /// The only type, if other instructions of the name have it.
    KnownType "known type",
    /// The third layout of a matrix.
    ThirdLayout "third layout",
    /// A product of matrices, with its types.
    Product "product",
    /// The message about a shape of `wgmma`.
    WrongShape "wrong shape",
}

/// Puts values in the place of the placeholders of a text. `None` if one of them has no value.
pub fn fill(text: &str, value: impl Fn(Placeholder) -> Option<String>) -> Option<String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (placeholder, after) = behind.split_once('}')?;
        filled += before;
        filled += &value(Placeholder::from_name(placeholder)?)?;
        rest = after;
    }
    Some(filled + rest)
}

/// Is the first choice of the slot one of these?
fn is_first_choice(mods: &[Mod], form: &crate::Form, slot: &str) -> bool {
    let slot = form.slots.iter().find(|other| other.name == slot);
    let first = slot.and_then(|slot| slot.choices.first());
    first.is_some_and(|choice| mods.iter().any(|&modifier| choice.token == Token::Mod(modifier)))
}
