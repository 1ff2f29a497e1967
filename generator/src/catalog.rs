//! All pure instructions of a target, with the registers that they take.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use isa::enumerate::{Spelling, spelling, spellings};
use isa::{
    Access, Action, Effect, Elements, FORMS, Form, FormId, Mod, Opcode, OperandKind, Presence, Second, Space,
    Target, Token, Type, Version,
};

use crate::random::Random;

/// What a kernel is written for.
pub struct Dialect {
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
    /// Instructions by opcode: those that are pure, and products of matrices.
    pub pure: BTreeMap<&'static str, Vec<Spelling>>,
    /// Where the spellings of a pure row stand among those of its opcode.
    pub rows: BTreeMap<FormId, (&'static str, Range<usize>)>,
    /// Loads and stores.
    pub accesses: Vec<AccessForm>,
    /// `mma`
    pub matrix: Vec<Spelling>,
}

impl Dialect {
    fn new(version: &str, target: &str) -> Dialect {
        let (Some(version), Some(target)) = (Version::parse(version), Target::parse(target)) else {
            panic!("no such version or target: {version}, {target}");
        };
        let mut pure: BTreeMap<_, Vec<Spelling>> = BTreeMap::new();
        let (mut rows, mut accesses, mut matrix) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (index, form) in FORMS.iter().enumerate() {
            let id = FormId(index as u16);
            let spellings = spellings(id).filter(|spelling| permits(version, target, spelling));
            match form.action {
                // Texture handles are for those who have textures.
                Action::Pure(_) if form.opcode != Opcode::Istypep => {
                    let all = pure.entry(form.opcode.name()).or_default();
                    let start = all.len();
                    all.extend(spellings);
                    if all.len() > start {
                        rows.insert(id, (form.opcode.name(), start..all.len()));
                    }
                }
                Action::Effect(Effect::Ld | Effect::St) => {
                    let forms = AccessForm::all(id).into_iter();
                    accesses.extend(forms.filter(|form| {
                        let mut random = Random::seeded(0);
                        // `st.async` is not done when the thread goes on.
                        (0..40).any(|_| {
                            let spelling = form.any(&mut random);
                            !spelling.modifiers.contains(&"async") && permits(version, target, &spelling)
                        })
                    }));
                }
                Action::Effect(Effect::Mma) if form.opcode == Opcode::Mma => matrix.extend(spellings),
                _ => {}
            }
        }
        pure.retain(|_, list: &mut Vec<Spelling>| !list.is_empty());
        Dialect { version, target, pure, rows, accesses, matrix }
    }

    /// `.target` is at least this.
    pub fn sm(&self, number: u32) -> bool {
        u32::from(self.target.number) >= number
    }
}

/// The instruction exists for this version and target.
fn permits(version: Version, target: Target, spelling: &Spelling) -> bool {
    let gates = spelling.form.form().gates(&spelling.picks);
    spelling.is_legal() && gates.iter().all(|gate| gate.permits(version, target))
}

/// A load or a store: a row of the table, the type of its elements, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessForm {
    /// The row.
    pub id: FormId,
    /// Of one element.
    pub ty: Type,
    /// Elements.
    pub vector: usize,
    /// A store.
    pub writes: bool,
}

impl AccessForm {
    /// Those of a row, whether they exist or not.
    fn all(id: FormId) -> Vec<AccessForm> {
        let form = id.form();
        let writes = form.action == Action::Effect(Effect::St);
        let types = form.type_slots().flat_map(|slot| slot.choices).filter_map(|choice| match choice.token {
            Token::Type(ty) => Some(ty),
            Token::Mod(_) => None,
        });
        let lengths: Vec<usize> =
            [1, 2, 4, 8].into_iter().filter(|&n| n == 1 || vector_token(form, n).is_some()).collect();
        types
            .flat_map(|ty| lengths.iter().map(move |&vector| AccessForm { id, ty, vector, writes }))
            .collect()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.vector * self.ty.bits() as usize / 8
    }

    /// It with any modifiers, also those that go with it for no target.
    fn any(&self, random: &mut Random) -> Spelling {
        let form = self.id.form();
        let mut tokens = Vec::new();
        for slot in form.slots {
            let vector = slot.choices.iter().any(|choice| choice.token == Token::Mod(Mod::V2));
            match () {
                () if slot.is_type() => tokens.push(Token::Type(self.ty)),
                () if vector => tokens.extend(vector_token(form, self.vector)),
                // The space of most accesses is said.
                () if slot.optional && random.percent(if is_space(slot) { 25 } else { 80 }) => {}
                () => tokens.push(random.pick(slot.choices).token),
            }
        }
        spelling(self.id, &tokens)
    }

    /// It with modifiers that a dialect has, and that mean this row and no other.
    pub fn draw(&self, dialect: &Dialect, random: &mut Random) -> Option<Spelling> {
        (0..100).map(|_| self.any(random)).find(|spelling| {
            let operands = 2 + usize::from(spelling.modifiers.contains(&"L2::cache_hint"));
            let selected = || isa::select(self.id.form().opcode.name(), &spelling.modifiers, operands);
            permits(dialect.version, dialect.target, spelling)
                && !is_of_a_function(spelling)
                && selected().is_ok_and(|selected| selected.id == self.id)
        })
    }
}

/// `.v2` where a row has it.
fn vector_token(form: &Form, vector: usize) -> Option<Token> {
    let token = Token::Mod(match vector {
        2 => Mod::V2,
        4 => Mod::V4,
        8 => Mod::V8,
        _ => return None,
    });
    form.slots.iter().any(|slot| slot.choice(token).is_some()).then_some(token)
}

/// The choices are state spaces.
fn is_space(slot: &isa::Slot) -> bool {
    slot.choices.iter().any(|choice| matches!(choice.token, Token::Mod(token) if token.space().is_some()))
}

/// Accesses to parameters of functions and calls belong to those.
fn is_of_a_function(spelling: &Spelling) -> bool {
    spelling.modifiers.contains(&"param::func")
        || spelling.picks.space() == Space::Param && spelling.form.form().opcode == Opcode::St
}

/// The dialects that kernels are written in. Most are written in the first.
pub static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let all =
        [("9.5", "sm_100a"), ("9.0", "sm_120a"), ("9.5", "sm_107a"), ("8.0", "sm_90a"), ("6.3", "sm_70")];
    all.into_iter().map(|(version, target)| Dialect::new(version, target)).collect()
});

/// An operand of an instruction, as far as writing it goes.
pub struct Slot {
    /// The type of its registers.
    pub ty: Type,
    /// It is written.
    pub writes: bool,
    /// It is read.
    pub reads: bool,
    /// A literal may stand there.
    pub literal: bool,
    /// Nothing but a literal, from the first value to the last.
    pub range: Option<(i64, i64)>,
    /// How many registers, and whether braces stand around them.
    pub count: (usize, bool),
    /// `|q`
    pub second: Second,
    /// Registers that are wider than the type go, too.
    pub wider: bool,
    /// `!`
    pub negatable: bool,
}

/// The operands of an instruction.
pub fn slots(spelling: &Spelling) -> Vec<Slot> {
    let form = spelling.form.form();
    let operands = form.operands_with(&spelling.picks);
    // What may be left out is: hints, and predicates whose absence is another row.
    let operands = operands.filter(|spec| spec.presence != Presence::Optional);
    operands
        .map(|spec| Slot {
            ty: spec.resolve(&spelling.picks).unwrap_or(Type::B32),
            writes: spec.access != Access::Read,
            reads: spec.access != Access::Write,
            literal: spec.kind == OperandKind::Source && !matches!(spec.elements, Elements::Selected(_)),
            range: (spec.kind == OperandKind::Immediate).then(|| spec.range.unwrap_or((0, 7))),
            count: spec.count(form, &spelling.picks),
            second: spec.second,
            wider: spec.wider,
            negatable: spec.negatable,
        })
        .collect()
}
