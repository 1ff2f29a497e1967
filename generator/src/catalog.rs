//! All pure instructions of a target, with their register operands.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use isa::enumerate::{Spelling, spelling, spellings};
use isa::{
    Access, Action, Effect, Elements, FORMS, Form, FormId, Mod, Opcode, OperandKind, Presence, Second, Space,
    Target, Token, Type, Version,
};

use crate::random::Random;

/// The version and target of a kernel, and their instructions.
pub struct Dialect {
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
    /// Pure instructions and matrix products, by opcode.
    pub pure: BTreeMap<&'static str, Vec<Spelling>>,
    /// For each pure row, its opcode and the range of its spellings among the opcode's.
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
                // Only kernels with textures have texture handles.
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
                        // `st.async` may complete after the thread has continued.
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

    /// Whether `.target` is at least this.
    pub fn sm(&self, number: u32) -> bool {
        u32::from(self.target.number) >= number
    }
}

/// Whether the instruction exists for this version and target.
fn permits(version: Version, target: Target, spelling: &Spelling) -> bool {
    let gates = spelling.form.form().gates(&spelling.picks);
    spelling.is_legal() && gates.iter().all(|gate| gate.permits(version, target))
}

/// A load or a store: a row of the table, the element type, and the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessForm {
    /// The row.
    pub id: FormId,
    /// The type of an element.
    pub ty: Type,
    /// The number of elements.
    pub vector: usize,
    /// It is a store.
    pub writes: bool,
}

impl AccessForm {
    /// All accesses of a row, including those that no target has.
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

    /// A spelling with random modifiers. Their combination may exist for no target.
    fn any(&self, random: &mut Random) -> Spelling {
        let form = self.id.form();
        let mut tokens = Vec::new();
        for slot in form.slots {
            let vector = slot.choices.iter().any(|choice| choice.token == Token::Mod(Mod::V2));
            match () {
                () if slot.is_type() => tokens.push(Token::Type(self.ty)),
                () if vector => tokens.extend(vector_token(form, self.vector)),
                // Most accesses name their state space.
                () if slot.optional && random.percent(if is_space(slot) { 25 } else { 80 }) => {}
                () => tokens.push(random.pick(slot.choices).token),
            }
        }
        spelling(self.id, &tokens)
    }

    /// A spelling with modifiers that the dialect has, and that belong to this row alone.
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

/// The `.v2` or similar token for a number of elements, if the row has it.
fn vector_token(form: &Form, vector: usize) -> Option<Token> {
    let token = Token::Mod(match vector {
        2 => Mod::V2,
        4 => Mod::V4,
        8 => Mod::V8,
        _ => return None,
    });
    form.slots.iter().any(|slot| slot.choice(token).is_some()).then_some(token)
}

/// Whether the slot's choices are state spaces.
fn is_space(slot: &isa::Slot) -> bool {
    slot.choices.iter().any(|choice| matches!(choice.token, Token::Mod(token) if token.space().is_some()))
}

/// Whether the access is to parameters of functions or calls.
fn is_of_a_function(spelling: &Spelling) -> bool {
    spelling.modifiers.contains(&"param::func")
        || spelling.picks.space() == Space::Param && spelling.form.form().opcode == Opcode::St
}

/// The dialects of kernels. Most kernels are in the first.
pub static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let all =
        [("9.5", "sm_100a"), ("9.0", "sm_120a"), ("9.5", "sm_107a"), ("8.0", "sm_90a"), ("6.3", "sm_70")];
    all.into_iter().map(|(version, target)| Dialect::new(version, target)).collect()
});

/// An operand of an instruction, with all that is needed to write it.
pub struct Slot {
    /// The type of its registers.
    pub ty: Type,
    /// The instruction writes it.
    pub writes: bool,
    /// The instruction reads it.
    pub reads: bool,
    /// It may be a literal.
    pub literal: bool,
    /// It must be a literal in this inclusive range.
    pub range: Option<(i64, i64)>,
    /// The number of registers, and whether braces enclose them.
    pub count: (usize, bool),
    /// Whether a second destination may follow: `|q`.
    pub second: Second,
    /// Registers wider than the type are allowed.
    pub wider: bool,
    /// It may be negated: `!`.
    pub negatable: bool,
}

/// The operands of an instruction.
pub fn slots(spelling: &Spelling) -> Vec<Slot> {
    let form = spelling.form.form();
    let operands = form.operands_with(&spelling.picks);
    // Optional operands are left out: hints, and predicates whose absence is another row.
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
