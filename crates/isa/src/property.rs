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
    /// A narrower register than one of 32 bits does not fit the copy of an address that it makes first.
    AddressOf32 "address-of-32",
    /// A narrower register than one of 64 bits does not.
    AddressOf64 "address-of-64",
    /// Vectors may have any length when they are read: later they are fragments of the right one or not.
    AnyLength "any-length",
    /// Braces around a scalar mean nothing.
    BracedScalars "braced-scalars",
    /// The instruction becomes a call, whose arguments are the elements of its vectors.
    Calls "calls",
    /// The coordinates in an operand are counted as an operand of their own.
    CountedCoordinates "counted-coordinates",
    /// A mask of 32 bits is taken in the place of one of 16, and then its size is reported.
    CtaMask "cta-mask",
    /// Registers are no wider than the types, where one of these is `.bf16`.
    ExactBf16 "exact-bf16",
    /// Vectors are fragments of matrices: of another operand, its type is checked first.
    Fragments "fragments",
    /// A handle is no operand where an address is asked for.
    NoHandles "no-handles",
    /// `.b2`, an index of sparse data, is not one more type without a meaning.
    NoPairs "no-pairs",
    /// A sum of a symbol and a number is no integer.
    NoSums "no-sums",
    /// Registers in the place of bits are declared as bits, and a constant is no result there.
    OnlyBits "only-bits",
    /// Operands with the type of a modifier are integers, as if the row said so.
    OnlyIntegers "only-integers",
    /// Operands are pasted into other PTX as they are written, in which a sum is a syntax error.
    Pasted "pasted",
    /// One operand too many is a cache policy.
    PolicyLast "policy-last",
    /// A missing shape is reported before a missing type.
    ShapeFirst "shape-first",
    /// A missing vector is reported with its size.
    SizedVectors "sized-vectors",
    /// Special registers are sources like others.
    SpecialRegisters "special-registers",
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
