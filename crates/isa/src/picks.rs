//! The modifiers that an instruction has in its form's slots.

use crate::{BoolOp, CmpOp, Mod, Parts, Rounding, Selector, Space, Type};

/// The types and modifiers of one instruction, in the order of its form's slots.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Picks {
    types: [Type; Picks::MAX_TYPES],
    mods: [Mod; Picks::MAX_MODS],
    type_count: u8,
    mod_count: u8,
    /// Selectors and signs of the operands, on video instructions.
    pub parts: Parts,
}

impl Picks {
    /// No form of the table has more type slots (a test checks this).
    pub const MAX_TYPES: usize = 5;
    /// No form of the table has more other slots (a test checks this); two are reserved for [`Picks::with`].
    pub const MAX_MODS: usize = 14;

    /// Nothing picked.
    pub const EMPTY: Picks = Picks {
        types: [Type::Pred; Picks::MAX_TYPES],
        mods: [Mod::FIRST; Picks::MAX_MODS],
        type_count: 0,
        mod_count: 0,
        parts: Parts { selectors: [None; 4], negated_product: false, negated_addend: false },
    };

    /// These types and modifiers; those beyond the limits are dropped.
    pub fn new(types: &[Type], mods: &[Mod]) -> Picks {
        let mut picks = Picks::EMPTY;
        for &ty in types.iter().take(Picks::MAX_TYPES) {
            picks.types[picks.type_count as usize] = ty;
            picks.type_count += 1;
        }
        for &modifier in mods {
            picks = picks.with(modifier);
        }
        picks
    }

    /// The types in written order.
    pub fn types(&self) -> &[Type] {
        &self.types[..self.type_count as usize]
    }

    /// The i-th type written. If there is none, `.b32`, which no code treats specially.
    pub fn ty(&self, i: usize) -> Type {
        self.types().get(i).copied().unwrap_or(Type::B32)
    }

    /// The other modifiers in the order of the form's slots, with repeats (`.row.row`).
    pub fn mods(&self) -> &[Mod] {
        &self.mods[..self.mod_count as usize]
    }

    /// Was this modifier written or implied?
    pub fn has(&self, modifier: Mod) -> bool {
        self.mods().contains(&modifier)
    }

    /// The same with one more modifier (a form may imply one: `.ftz` on sm_1x).
    #[must_use]
    pub fn with(mut self, modifier: Mod) -> Picks {
        if let Some(place) = self.mods.get_mut(self.mod_count as usize) {
            *place = modifier;
            self.mod_count += 1;
        }
        self
    }

    /// The same without this modifier.
    #[must_use]
    pub fn without(self, modifier: Mod) -> Picks {
        let mods: Vec<Mod> = self.mods().iter().copied().filter(|&m| m != modifier).collect();
        Picks { parts: self.parts, ..Picks::new(self.types(), &mods) }
    }

    /// The selector of operand `i` of a video instruction, counted from the destination.
    pub fn selector(&self, i: usize) -> Option<Selector> {
        self.parts.selectors.get(i).copied().flatten()
    }

    fn first<T>(&self, convert: impl Fn(Mod) -> Option<T>) -> Option<T> {
        self.mods().iter().copied().find_map(convert)
    }

    /// The rounding direction, of `.rn` and of `.rni` alike.
    pub fn rounding(&self) -> Option<Rounding> {
        self.first(Mod::rounding)
    }

    /// Does it round to an integer (`.rni`, `.rzi`, `.rmi`, `.rpi`)?
    pub fn rounds_to_integer(&self) -> bool {
        self.mods().iter().any(|m| matches!(m, Mod::Rni | Mod::Rzi | Mod::Rmi | Mod::Rpi))
    }

    /// The comparison operator.
    pub fn cmp(&self) -> Option<CmpOp> {
        self.first(Mod::cmp)
    }

    /// The operator that combines with predicate `c`.
    pub fn bool_op(&self) -> Option<BoolOp> {
        self.first(Mod::bool_op)
    }

    /// The (first) state space; [`Space::Generic`] if there is none.
    pub fn space(&self) -> Space {
        self.first(Mod::space).unwrap_or(Space::Generic)
    }

    /// The state space of the address with this index among the operands, if each address has its own (`cp.async`);
    /// otherwise the first state space.
    pub fn space_of(&self, address: usize) -> Space {
        let mut spaces = self.mods().iter().copied().filter_map(Mod::space);
        spaces.nth(address).unwrap_or_else(|| self.space())
    }

    /// Number of elements by `.v2`, `.v4`, `.v8`; 1 without them.
    pub fn vector(&self) -> usize {
        self.first(Mod::vector_length).unwrap_or(1)
    }
}

impl std::fmt::Debug for Picks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for m in self.mods() {
            write!(f, ".{}", m.name())?;
        }
        for t in self.types() {
            write!(f, ".{}", t.name())?;
        }
        Ok(())
    }
}
