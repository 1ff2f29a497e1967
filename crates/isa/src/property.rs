//! What ptxas does with a row beyond its syntax: properties, and limits of constants.

use crate::picks::Picks;
use crate::{Condition, Form};

macro_rules! properties {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// What ptxas does with the instructions of a row; `has NAME` in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property {
            $($(#[$doc])* $variant,)*
        }

        impl Property {
            /// The property of this name.
            pub fn from_name(name: &str) -> Option<Property> {
                match name { $($name => Some(Property::$variant),)* _ => None }
            }
        }
    };
}

properties! {
    /// The coordinates in an operand are counted as an operand of their own.
    CountedCoordinates "counted-coordinates",
    /// A mask of 32 bits is taken in the place of one of 16, and then its size is reported.
    CtaMask "cta-mask",
}

/// What a constant must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Not less than the first and not greater than the second.
    Range(i64, i64),
    /// One of these.
    OneOf(&'static [i64]),
    /// A multiple.
    MultipleOf(i64),
    /// A power of two.
    PowerOfTwo,
    /// Zero or more.
    NotNegative,
    /// More than zero.
    Positive,
    /// Anything else than zero.
    NotZero,
}

impl Limit {
    /// Is the constant within it?
    pub fn holds(self, value: i64) -> bool {
        match self {
            Limit::Range(least, greatest) => (least..=greatest).contains(&value),
            Limit::OneOf(values) => values.contains(&value),
            Limit::MultipleOf(unit) => value % unit == 0,
            Limit::PowerOfTwo => (value as u64).is_power_of_two(),
            Limit::NotNegative => value >= 0,
            Limit::Positive => value > 0,
            Limit::NotZero => value != 0,
        }
    }
}

/// The limits of a constant operand; `constant NAME LIMIT` in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// It applies when all of these hold.
    pub when: &'static [Condition],
    /// The operand.
    pub operand: &'static str,
    /// Limits, and what ptxas says of a constant beyond them. It says so of the first only.
    pub limits: &'static [(Limit, &'static str)],
    /// The way out.
    pub help: Option<&'static str>,
}

impl Form {
    /// Do instructions with these picks have the property?
    pub fn has(&self, property: Property, picks: &Picks) -> bool {
        let applies = |when: &[Condition]| when.iter().all(|condition| condition.holds(picks));
        self.properties.iter().any(|(known, when)| *known == property && applies(when))
    }
}
