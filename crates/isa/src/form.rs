//! The shape of a row of the instruction table: modifier slots, operands, rules, gates and what the row does.

use crate::picks::Picks;
use crate::{Constant, Effect, Gate, Mod, Opcode, Property, Selectable, Type};

/// One alternative of a modifier slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A type: `.f32`.
    Type(Type),
    /// Any other word after a dot.
    Mod(Mod),
}

impl Token {
    /// The spelling without its dot.
    pub fn name(self) -> &'static str {
        match self {
            Token::Type(ty) => ty.name(),
            Token::Mod(modifier) => modifier.name(),
        }
    }

    /// The token with this spelling (without its dot), if any row of the table uses it.
    pub fn from_name(name: &str) -> Option<Token> {
        match Type::from_name(name) {
            // A single element, of which no instruction has a type.
            Some(Type::S2f6 | Type::Ue5m3) => None,
            Some(ty) => Some(Token::Type(ty)),
            None => Mod::from_name(name).map(Token::Mod),
        }
    }
}

/// An alternative and its gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The alternative.
    pub token: Token,
    /// What it requires of `.version` and `.target`.
    pub gates: &'static [Gate],
}

/// One place for a modifier in a row: `.type`, `{.ftz}`. A slot holds either types or other modifiers, never both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its name in the row's text, without the dot; for a literal slot, the literal.
    pub name: &'static str,
    /// The row's text has it in braces.
    pub optional: bool,
    /// The alternatives.
    pub choices: &'static [Choice],
}

impl Slot {
    /// Does it hold types?
    pub fn is_type(&self) -> bool {
        matches!(self.choices.first(), Some(Choice { token: Token::Type(_), .. }))
    }

    /// The choice that is `token`.
    pub fn choice(&self, token: Token) -> Option<&'static Choice> {
        self.choices.iter().find(|choice| choice.token == token)
    }
}

/// How an instruction uses an operand's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Source.
    Read,
    /// Destination.
    Write,
    /// Both (accumulators).
    ReadWrite,
}

/// The kinds of operands that a place accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A register, or an element of a vector register.
    Register,
    /// A register, a literal, a constant expression, a special register that is constant (`WARP_SZ`).
    Source,
    /// `mov`'s source: also special registers, symbols (their addresses), labels, functions, vectors to pack.
    MovSource,
    /// `mov`'s destination: a register, or a vector to unpack into.
    MovDestination,
    /// `[a]`, `[a+imm]`, `[symbol]`, `[imm]`.
    Address,
    /// `[a, {x, y}]`, `[a, b, {x, y}]`: a texture or surface, a sampler, coordinates.
    Texels,
    /// `[a]`: the handle of a texture or surface.
    Handle,
    /// A constant expression only.
    Immediate,
    /// A label of this function.
    Label,
    /// The label of a `.branchtargets` list.
    BranchTargets,
    /// The operands of `call`: `(ret), function, (params), prototype`.
    Call,
    /// A register that holds an address (without brackets), or a symbol whose address is meant.
    AddressValue,
}

/// An operand's instruction type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandType {
    /// No type (labels, calls).
    None,
    /// The type written i-th.
    Pick(u8),
    /// Always this type.
    Fixed(Type),
    /// The type written i-th at twice its width (`mul.wide`).
    Wide(u8),
    /// Bits as wide as the type written i-th (the integer bits of a float).
    Bits(u8),
    /// Unsigned bits, as wide as an address of the module (`.address_size`).
    Address,
}

/// The second destination of `p|q` and `d|p`; always a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Second {
    /// It has none.
    None,
    /// It is optional.
    Optional,
    /// It is required.
    Required,
}

/// How many elements an operand has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elements {
    /// A scalar.
    One,
    /// As many as `.v2`, `.v4`, `.v8` say ([`Picks::vector`]); a scalar without them.
    Vector,
    /// This many, in braces.
    Fixed(u8),
    /// As many as the matrix fragment has ([`crate::matrix::fragment_registers`]), in braces. The operand's type is
    /// that of the matrix's elements.
    Fragment,
    /// A scalar, or a vector of such elements in its place, of which the first counts.
    Braced,
    /// A scalar or a vector, depending on the geometry.
    Geometry,
    /// A scalar; a selector may name a part of it (`a.h0`).
    Selected(Selectable),
}

/// Whether an operand must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// It is required.
    Always,
    /// It and the operands after it may be omitted.
    Optional,
    /// It is written if and only if this modifier is.
    With(Mod),
}

/// One operand of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// Its name in the row's text.
    pub name: &'static str,
    /// Read, written or both.
    pub access: Access,
    /// What it accepts.
    pub kind: OperandKind,
    /// Its instruction type.
    pub ty: OperandType,
    /// The second destination `|q`.
    pub second: Second,
    /// Scalar or vector.
    pub elements: Elements,
    /// `!`, or `-` for numbers, may precede it.
    pub negatable: bool,
    /// Whether it must be written.
    pub presence: Presence,
    /// It accepts registers that are wider than the instruction type (`ld`, `st`, `cvt`).
    pub wider: bool,
    /// It may be `_`.
    pub sink: bool,
    /// Its type is a number of bits, as if a modifier said it: registers of other kinds fit as well.
    pub open: bool,
    /// Least and greatest value of an immediate; they are equal if only one value is allowed.
    pub range: Option<(i64, i64)>,
}

impl OperandSpec {
    /// The operand's instruction type for these picks. `None` for labels and the like, and for
    /// [`OperandType::Address`], because only the module knows the address size.
    pub fn resolve(&self, picks: &Picks) -> Option<Type> {
        match self.elements {
            Elements::Fragment => self.element(picks).map(crate::matrix::register_type),
            _ => self.element(picks),
        }
    }

    /// The type of the matrix elements in the operand's registers; for other operands, the instruction type.
    pub fn element(&self, picks: &Picks) -> Option<Type> {
        match self.ty {
            OperandType::None | OperandType::Address => None,
            OperandType::Fixed(ty) => Some(ty),
            OperandType::Pick(i) => picks.types().get(i as usize).copied(),
            OperandType::Wide(i) => picks.types().get(i as usize).copied().and_then(Type::widened),
            OperandType::Bits(i) => picks.types().get(i as usize).map(|ty| Type::of_bits(ty.bits())),
        }
    }
}

impl OperandSpec {
    /// The number of registers of the operand in an instruction of `form`, and whether they are in braces.
    pub fn count(&self, form: &Form, picks: &Picks) -> (usize, bool) {
        match self.elements {
            Elements::One | Elements::Braced | Elements::Geometry | Elements::Selected(_) => (1, false),
            Elements::Vector => (picks.vector(), picks.vector() > 1),
            Elements::Fixed(count) => (count.into(), true),
            Elements::Fragment => (crate::matrix::fragment_registers(form, picks, self), true),
        }
    }
}

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Computes destinations from sources: the function of crate `sem` with this name (`compare::setp`).
    Pure(&'static str),
    /// The engines execute it.
    Effect(Effect),
}

/// A condition on the picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The type written i-th is one of these.
    TypeIn(u8, &'static [Type]),
    /// At least one of these modifiers is picked.
    Has(&'static [Mod]),
    /// None of these modifiers is picked.
    HasNot(&'static [Mod]),
}

impl Condition {
    /// Does it hold?
    pub fn holds(&self, picks: &Picks) -> bool {
        match *self {
            Condition::TypeIn(i, types) => picks.types().get(i as usize).is_some_and(|ty| types.contains(ty)),
            Condition::Has(mods) => mods.iter().any(|&m| picks.has(m)),
            Condition::HasNot(mods) => !mods.iter().any(|&m| picks.has(m)),
        }
    }
}

/// What follows if a rule's conditions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The module must pass these.
    Gates(&'static [Gate]),
    /// These conditions must hold too; otherwise the form is illegal, for the reason given.
    Needs(&'static [Condition], Fault),
    /// Modules that pass these gates may omit a required modifier; it is then this one.
    Default(Mod, &'static [Gate]),
}

/// Why a rule makes a form illegal; `select` turns it into an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The modifier of this list that is written does not fit the rest.
    Illegal(&'static [Mod]),
    /// What ptxas says of this modifier; `{op}` stands for the instruction's name.
    Says(Mod, &'static str),
    /// The comparison operator does not fit the type.
    Comparison,
    /// These types do not fit together.
    Types,
    /// This many elements of this type are too large for one access.
    Vector,
    /// A modifier of this slot is missing.
    Missing(&'static str),
}

/// A rule that depends on a combination of picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// It applies when all of these hold.
    pub when: &'static [Condition],
    /// What follows then.
    pub then: Consequence,
}

impl Rule {
    /// Does it apply?
    pub fn applies(&self, picks: &Picks) -> bool {
        self.when.iter().all(|condition| condition.holds(picks))
    }
}

/// The implicit condition-code register `CC.CF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CarryFlag {
    /// `addc`, `subc`, `madc`
    pub reads: bool,
    /// `.cc`
    pub writes: bool,
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// The first word of the mnemonic.
    pub opcode: Opcode,
    /// The row's text.
    pub syntax: &'static str,
    /// Its section in the PTX manual.
    pub section: &'static str,
    /// Modifier slots, in the manual's order.
    pub slots: &'static [Slot],
    /// Types that may be written without a meaning; see [`Form::ignores`].
    pub ignored: &'static [Type],
    /// Other modifiers that may be written without a meaning.
    pub ignored_mods: &'static [Mod],
    /// The number of slots at the front that are part of the instruction's name. They must follow it directly, in
    /// order (`mul.hi`).
    pub head: usize,
    /// Operands, in order.
    pub operands: &'static [OperandSpec],
    /// Rules on combinations of modifiers.
    pub rules: &'static [Rule],
    /// What the row as a whole requires.
    pub gates: &'static [Gate],
    /// What ptxas does with it, each under conditions.
    pub properties: &'static [(Property, &'static [Condition])],
    /// Limits of constant operands.
    pub constants: &'static [Constant],
    /// Use of the carry flag.
    pub carry: CarryFlag,
    /// What the instruction does.
    pub action: Action,
}

impl Form {
    /// Is a written type meaningless after `others` other types? `.pred` always is (`setp` accepts it, though no
    /// manual says so). Other ignored types are after the four types of a matrix product, and everywhere in forms
    /// that have no slots for their kind (`movmatrix`; ptxas 13.5). `.b2`, an index of sparse data, is ignored by most
    /// forms.
    pub fn ignores(&self, ty: Type, others: usize) -> bool {
        let is_product = self.type_slots().count() >= 4;
        let takes_pairs = || !self.properties.contains(&(Property::NoPairs, &[]));
        let is_ignored = self.ignored.contains(&ty) || ty == Type::B2 && takes_pairs();
        is_ignored && (ty == Type::Pred || !is_product || others >= 4)
    }

    /// Does the name of this instruction begin with these modifiers? Those behind the name do not matter.
    pub fn has_name(&self, modifiers: &[&str]) -> bool {
        let mut name = self.slots[..self.head].iter().zip(modifiers);
        modifiers.len() >= self.head
            && name.all(|(slot, word)| slot.choices.iter().any(|choice| choice.token.name() == *word))
    }

    /// Do `.v2`, `.v4` and `.v8` mean nothing but a required length of the fragments?
    pub fn ignores_vector_length(&self) -> bool {
        self.ignored_mods.iter().any(|modifier| modifier.vector_length().is_some())
    }

    /// Can an instruction with these picks and this many operands be of this form?
    pub fn accepts_operands(&self, count: usize, picks: &Picks) -> bool {
        if self.operands.iter().any(|o| o.kind == OperandKind::Call) {
            return count > 0;
        }
        let operands = self.operands_with(picks);
        let most = operands.clone().count();
        let least = operands.filter(|o| o.presence != Presence::Optional).count();
        (least..=most).contains(&count)
    }

    /// The operands that an instruction with these picks may have, in order.
    pub fn operands_with(&self, picks: &Picks) -> impl Iterator<Item = &'static OperandSpec> + Clone + use<> {
        let picks = *picks;
        self.operands.iter().filter(move |o| match o.presence {
            Presence::Always | Presence::Optional => true,
            Presence::With(modifier) => picks.has(modifier),
        })
    }

    /// The instruction's name in messages of ptxas: with the modifiers of the head.
    pub fn name(&self, picks: &Picks) -> String {
        let mut name = self.opcode.name().to_string();
        for modifier in picks.mods().iter().take(self.head) {
            let word = modifier.name();
            name.push('.');
            // ptxas names `tcgen05.wait::ld` by its first half.
            name.push_str(word.split_once("::").map_or(word, |(first, _)| first));
        }
        name
    }

    /// The type slots, in written order.
    pub fn type_slots(&self) -> impl Iterator<Item = &'static Slot> {
        self.slots.iter().filter(|slot| slot.is_type())
    }

    /// All gates of an instruction of this form: those of the row, of its tokens and of its rules.
    pub fn gates(&self, picks: &Picks) -> Vec<Gate> {
        let mut gates = self.gates.to_vec();
        let tokens =
            picks.types().iter().map(|&t| Token::Type(t)).chain(picks.mods().iter().map(|&m| Token::Mod(m)));
        for token in tokens {
            if let Some(choice) = self.slots.iter().find_map(|slot| slot.choice(token)) {
                gates.extend_from_slice(choice.gates);
            }
        }
        gates.extend(self.rule_gates(picks));
        // The sort is stable: within a stage, the table has ptxas's order.
        gates.sort_by_key(|gate| gate.stage);
        gates
    }

    /// Does an instruction of this form have the gate whatever its tokens need by themselves?
    pub fn has_gate(&self, gate: &Gate, picks: &Picks) -> bool {
        self.gates.contains(gate) || self.rule_gates(picks).any(|other| other == *gate)
    }

    /// The gates of the rules that apply.
    fn rule_gates(&self, picks: &Picks) -> impl Iterator<Item = Gate> {
        self.rules
            .iter()
            .filter(|rule| rule.applies(picks))
            .flat_map(|rule| match rule.then {
                Consequence::Gates(gates) => gates,
                _ => &[],
            })
            .copied()
    }
}

/// The number of a row in [`FORMS`](crate::FORMS); numbers from `FORMS.len()` on are rows of
/// [`LENIENT`](crate::LENIENT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(pub u16);

impl FormId {
    /// The row.
    pub fn form(self) -> &'static Form {
        let index = self.0 as usize;
        crate::FORMS.get(index).unwrap_or_else(|| &crate::LENIENT[index - crate::FORMS.len()])
    }
}
