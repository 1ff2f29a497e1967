//! The table as the `.isa` files say it.

use isa::{Property, Stage, Type};
use std::collections::BTreeMap;

/// Everything in the `.isa` files.
#[derive(Default)]
pub struct Table {
    /// Slot definitions that every file shares (`sets.isa`).
    pub sets: BTreeMap<String, Vec<Choice>>,
    /// What modifiers and types need wherever they stand.
    pub token_gates: BTreeMap<String, Vec<Gate>>,
    /// What ptxas asks of modifiers on instructions that do not take them, and whether it asks late.
    pub elsewhere: BTreeMap<String, (bool, Vec<Gate>)>,
    /// What ptxas says of modifiers (`messages.isa`).
    pub messages: Vec<super::message::Message>,
    /// When it says so.
    pub stages: Vec<super::message::Message>,
    /// The rows, in the order of the files; sorted by opcode afterwards.
    pub rows: Vec<Row>,
}

/// One alternative of a slot.
#[derive(Clone, PartialEq)]
pub struct Choice {
    /// Spelling without the dot.
    pub name: String,
    /// What it needs.
    pub gates: Vec<Gate>,
    /// It needs nothing of what it needs elsewhere.
    pub is_free: bool,
}

impl Choice {
    /// The type that it is, if it is one.
    pub fn ty(&self) -> Option<Type> {
        Type::from_name(&self.name)
    }
}

/// What a gate asks for.
#[derive(Clone, PartialEq)]
pub enum Requirement {
    /// `ptx 7.8`
    Version(isa::Version),
    /// `sm 53`, `sm 90a/100a`
    Targets(Vec<isa::Target>),
    /// `until 6.4/70`; `until 1.4` on every target
    Until(isa::Version, isa::Target),
    /// `since 8.1/89/90`
    Since(isa::Version, isa::Target, isa::Target),
}

/// One gate.
#[derive(Clone, PartialEq)]
pub struct Gate {
    /// `Feature '.bf16'`
    pub subject: String,
    /// What it asks for.
    pub requires: Requirement,
    /// When it is reported.
    pub stage: Stage,
}

/// One modifier slot of a row.
#[derive(Clone)]
pub struct Slot {
    pub name: String,
    pub optional: bool,
    pub choices: Vec<Choice>,
}

/// A condition of a rule.
#[derive(Clone)]
pub enum Condition {
    TypeIn(usize, Vec<Type>),
    Has(Vec<String>),
    HasNot(Vec<String>),
}

/// Why a rule fails.
#[derive(Clone)]
pub enum Fault {
    Illegal(Vec<String>),
    Says(String, String),
    Comparison,
    Types,
    Vector,
    Missing(String),
}

/// What follows from a rule's conditions.
#[derive(Clone)]
pub enum Consequence {
    Gates(Vec<Gate>),
    /// `default .rn until 3.2/20`
    Default(String, Vec<Gate>),
    Needs(Vec<Condition>, Fault),
}

/// A rule.
#[derive(Clone)]
pub struct Rule {
    pub when: Vec<Condition>,
    pub then: Consequence,
}

/// Limits of a constant operand.
#[derive(Clone)]
pub struct Constant {
    pub when: Vec<Condition>,
    pub operand: String,
    /// Rust texts of `Limit`, and what ptxas says.
    pub limits: Vec<(String, String)>,
    pub help: Option<String>,
}

/// A row.
pub struct Row {
    pub opcode: String,
    pub syntax: String,
    pub section: String,
    pub slots: Vec<Slot>,
    pub operands: Vec<super::operand::Operand>,
    /// Types that mean nothing.
    pub ignored: Vec<Type>,
    /// Other modifiers that mean nothing.
    pub ignored_mods: Vec<String>,
    /// So many slots at the front are part of the name.
    pub head: usize,
    pub rules: Vec<Rule>,
    pub gates: Vec<Gate>,
    /// What ptxas does with it, as names of `Property`, and when.
    pub properties: Vec<(Property, Vec<Condition>)>,
    pub constants: Vec<Constant>,
    pub reads_carry: bool,
    pub writes_carry: bool,
    /// ptxas rejects it: only lenient checking accepts it.
    pub lenient: bool,
    /// `sem path` or `effect Name`.
    pub action: (String, String),
}

impl Row {
    /// The type slots, in order.
    pub fn type_slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.choices.first().is_some_and(|c| c.ty().is_some()))
    }

    /// The place among the type slots of the slot with this name.
    pub fn type_slot(&self, name: &str) -> Option<usize> {
        self.type_slots().position(|slot| slot.name == name)
    }
}
