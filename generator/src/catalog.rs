//! All pure instructions of a target, with the registers that they take.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use isa::enumerate::{Spelling, spellings};
use isa::{
    Access, Action, Effect, Elements, FORMS, FormId, Opcode, OperandKind, Presence, Second, Target, Type,
    Version,
};

/// What a kernel is written for.
pub struct Dialect {
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
    /// Instructions by opcode: those that are pure, and products of matrices.
    pub pure: BTreeMap<&'static str, Vec<Spelling>>,
    /// `mma`
    pub matrix: Vec<Spelling>,
}

impl Dialect {
    fn new(version: &str, target: &str) -> Dialect {
        let (Some(version), Some(target)) = (Version::parse(version), Target::parse(target)) else {
            panic!("no such version or target: {version}, {target}");
        };
        let mut pure = BTreeMap::new();
        let mut matrix = Vec::new();
        for (index, form) in FORMS.iter().enumerate() {
            let legal = |spelling: &Spelling| {
                let gates = form.gates(&spelling.picks);
                spelling.is_legal() && gates.iter().all(|gate| gate.permits(version, target))
            };
            let spellings = spellings(FormId(index as u16)).filter(legal);
            match form.action {
                // Texture handles are for those who have textures.
                Action::Pure(_) if form.opcode != Opcode::Istypep => {
                    pure.entry(form.opcode.name()).or_insert_with(Vec::new).extend(spellings);
                }
                Action::Effect(Effect::Mma) if form.opcode == Opcode::Mma => matrix.extend(spellings),
                _ => {}
            }
        }
        pure.retain(|_, list: &mut Vec<Spelling>| !list.is_empty());
        Dialect { version, target, pure, matrix }
    }

    /// `.target` is at least this.
    pub fn sm(&self, number: u32) -> bool {
        u32::from(self.target.number) >= number
    }
}

/// The dialects that kernels are written in, the newest first.
pub static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let all = [("9.0", "sm_100a"), ("9.0", "sm_120a"), ("8.0", "sm_90a"), ("6.3", "sm_70")];
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
