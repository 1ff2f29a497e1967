//! One instruction outside of a module, for `eval` and `explain`.

use std::fmt::Write;

use check::module::{Instruction, Node};
use diag::SourceFile;
use isa::{Access, Action, Form, Kind, OperandKind, OperandSpec, Picks, Second, SelectError, Target, Type};
use isa::{Selected, Version};
use sem::PureFn;

use super::explain::lower_case;

/// An upper bound of the sources of all pure forms.
pub const MAX_SOURCES: usize = 8;

/// A source operand, or one element of a vector operand.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in the table; `CC.CF` for the carry.
    pub name: String,
    /// Its instruction type.
    pub ty: Type,
    /// Inclusive range, for constants with limits.
    pub range: Option<(i64, i64)>,
}

/// A pure instruction, legal for its target.
#[derive(Clone, Debug)]
pub struct Alone {
    /// The row.
    pub form: &'static Form,
    /// The picks, including those that the target implies (`.ftz` on sm_1x).
    pub picks: Picks,
    /// The target that it was checked for.
    pub target: Target,
    /// Sources, in order; the carry comes last.
    pub sources: Vec<Source>,
    /// Names and types of its results: one or two.
    pub results: Vec<(&'static str, Type)>,
    /// The function that computes it.
    pub function: PureFn,
}

impl Alone {
    /// The instruction with this mnemonic and number of source values, for `target` or by default for the newest
    /// target that has it.
    ///
    /// # Errors
    /// Why there is none, and what to do about it.
    pub fn resolve(mnemonic: &str, count: usize, target: Option<Target>) -> Result<Alone, String> {
        let words = words(mnemonic)?;
        let (selected, operands, sources) = select(&words, count)?;
        let Action::Pure(name) = selected.form().action else {
            let opcode = selected.form().opcode;
            return Err(format!("{opcode} is not pure: its result depends on more than its operands"));
        };
        let function = sem::lookup(name).ok_or_else(|| format!("{name} is missing"))?;
        let text = instruction_text(&words, &selected, operands);
        let (target, instruction) = check_somewhere(&text, target)?;
        let Instruction { form, picks, .. } = instruction;
        Ok(Alone { form, picks, target, sources, results: results(form, &picks), function })
    }

    /// The results, in the order of [`Alone::results`].
    pub fn compute(&self, sources: &[u64]) -> [u64; 2] {
        let mut values = (self.function)(&self.picks, sources);
        for (value, (_, ty)) in values.iter_mut().zip(&self.results) {
            *value &= ones(ty.bits());
        }
        values
    }
}

/// The lowest `bits` bits set.
pub fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The words of a mnemonic: `setp`, `lt`, `f16x2`. White space may precede a dot.
///
/// # Errors
/// When it is not a mnemonic.
pub fn words(mnemonic: &str) -> Result<Vec<&str>, String> {
    let words: Vec<&str> = mnemonic.split('.').map(str::trim).collect();
    let is_word = |word: &&str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'))
    };
    if mnemonic.trim().is_empty() {
        return Err("there is no instruction".to_owned());
    }
    if !words.iter().all(is_word) {
        let shown: String = mnemonic.chars().take(60).collect();
        return Err(format!("'{}' is no instruction: write its name and modifiers", shown.escape_debug()));
    }
    Ok(words)
}

/// The form, its number of operands and its sources, for a number of source values.
fn select(words: &[&str], count: usize) -> Result<(Selected, usize, Vec<Source>), String> {
    let (opcode, modifiers) = (words[0], &words[1..]);
    let forms = isa::forms(opcode);
    if !forms.is_empty() && !forms.iter().any(|form| matches!(form.action, Action::Pure(_))) {
        return Err(format!("{opcode} is not pure: its result depends on more than its operands"));
    }
    let mut wanted: Vec<String> = Vec::new();
    // Most instructions have one destination. Those that read the carry have one operand less than values.
    for operands in (0..=MAX_SOURCES).rev() {
        let Ok(selected) = isa::select(opcode, modifiers, operands) else { continue };
        let sources = sources(&selected, operands);
        if sources.len() == count {
            return Ok((selected, operands, sources));
        }
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let count = sources.len();
        let noun = if count == 1 { "source operand" } else { "source operands" };
        wanted.push(format!("{count} {noun} ({})", names.join(", ")));
    }
    let name = words.join(".");
    if !wanted.is_empty() {
        wanted.reverse();
        let given = if count > MAX_SOURCES { "more".to_owned() } else { count.to_string() };
        return Err(format!("{name} takes {}, not {given}", wanted.join(" or ")));
    }
    // An error about something other than the number of operands is more helpful.
    let mut errors = (0..=MAX_SOURCES).filter_map(|operands| isa::select(opcode, modifiers, operands).err());
    let telling = errors.rfind(|errors| !matches!(errors[..], [SelectError::Arguments { .. }]));
    let Some(error) = telling.into_iter().flatten().next() else {
        return Err(format!("Arguments mismatch for instruction '{opcode}'"));
    };
    Err(with_help(error.message(&check::instruction_name(opcode, modifiers), modifiers), help(&error, words)))
}

/// What to write instead of an instruction that is not in the table.
pub fn help(error: &SelectError, words: &[&str]) -> Option<String> {
    let opcode = words[0];
    match error {
        SelectError::UnknownInstruction if check::opcodes().any(|known| known == opcode) => {
            Some("it is an instruction of PTX, but ptxvm does not know it".to_owned())
        }
        SelectError::UnknownInstruction if lower_case(opcode).is_some() => {
            lower_case(opcode).map(|known| format!("PTX is written in lower case: '{known}'"))
        }
        SelectError::UnknownInstruction => {
            let near = check::nearest(opcode, check::opcodes());
            near.map(|near| format!("did you mean '{near}'?"))
        }
        SelectError::UnknownModifier { index } => {
            let slots = isa::forms(opcode).iter().flat_map(|form| form.slots);
            let names = slots.flat_map(|slot| slot.choices).map(|choice| choice.token.name());
            let near = check::nearest(words.get(index + 1)?, names);
            near.map(|near| format!("did you mean '.{near}'?")).or_else(|| error.help(opcode))
        }
        _ => error.help(opcode),
    }
}

/// A message and its help, on one line.
fn with_help(message: String, help: Option<String>) -> String {
    match help {
        Some(help) => format!("{message} ({help})"),
        None => message,
    }
}

fn sources(selected: &Selected, operands: usize) -> Vec<Source> {
    let mut sources = Vec::new();
    for spec in selected.form().operands_with(&selected.picks).take(operands) {
        if spec.access == Access::Write {
            continue;
        }
        let ty = meaning(spec, &selected.picks);
        let (elements, _) = spec.count(selected.form(), &selected.picks);
        for i in 0..elements {
            let name = if elements == 1 { spec.name.to_owned() } else { format!("{}[{i}]", spec.name) };
            sources.push(Source { name, ty, range: spec.range });
        }
    }
    if selected.form().carry.reads {
        sources.push(Source { name: CARRY.to_owned(), ty: Type::Pred, range: None });
    }
    sources
}

const CARRY: &str = "CC.CF";

/// The type that determines the meaning of an operand's bits. Registers cannot be declared with some formats
/// (`.tf32`, `.e4m3x2`): an operand of a bit-size type holds them, in `cvt` the destination and `a`.
fn meaning(spec: &OperandSpec, picks: &Picks) -> Type {
    let ty = spec.resolve(picks).unwrap_or(Type::B32);
    let written = match (spec.access, spec.name) {
        (Access::Read, "a") => picks.types().last(),
        (Access::Read, _) => None,
        _ => picks.types().first(),
    };
    let is_narrow = |written: &&Type| written.element().bits() <= 8 || **written == Type::Tf32;
    let fits = |written: &&Type| written.is_float() && written.bits() == ty.bits() && is_narrow(written);
    written.filter(|written| ty.kind() == Kind::Bits && fits(written)).copied().unwrap_or(ty)
}

fn results(form: &Form, picks: &Picks) -> Vec<(&'static str, Type)> {
    let Some(spec) = form.operands_with(picks).find(|spec| spec.access != Access::Read) else {
        return Vec::new();
    };
    let ty = meaning(spec, picks);
    let mut results = vec![(if ty == Type::Pred { spec.name } else { "d" }, ty)];
    if spec.second != Second::None {
        results.push((if ty == Type::Pred { "q" } else { "p" }, Type::Pred));
    } else if form.carry.writes {
        results.push((CARRY, Type::Pred));
    }
    results
}

/// Declarations of bit-size registers, and the instruction with these operands.
fn instruction_text(words: &[&str], selected: &Selected, operands: usize) -> String {
    let mut declarations = String::new();
    let mut register = |ty: Type, name: String| {
        let bits = if ty == Type::Pred { Type::Pred } else { Type::of_bits(ty.bits()) };
        let _ = write!(declarations, ".reg {bits} %{name}; ");
        format!("%{name}")
    };
    let mut list = Vec::new();
    for (i, spec) in selected.form().operands_with(&selected.picks).take(operands).enumerate() {
        let ty = spec.resolve(&selected.picks).unwrap_or(Type::B32);
        let (count, _) = spec.count(selected.form(), &selected.picks);
        let mut text = match spec.kind {
            OperandKind::Immediate => spec.range.map_or(0, |(least, _)| least).to_string(),
            _ if count > 1 => {
                let parts: Vec<String> = (0..count).map(|j| register(ty, format!("v{i}_{j}"))).collect();
                format!("{{{}}}", parts.join(", "))
            }
            _ => register(ty, format!("r{i}")),
        };
        if spec.second == Second::Required {
            let second = register(Type::Pred, format!("q{i}"));
            text = format!("{text}|{second}");
        }
        list.push(text);
    }
    format!("{declarations}\n{} {};", words.join("."), list.join(", "))
}

/// Checks the instruction for the target, or for targets from the newest on until one has it.
fn check_somewhere(text: &str, target: Option<Target>) -> Result<(Target, Instruction), String> {
    if let Some(target) = target {
        return check_for(text, target).map(|instruction| (target, instruction));
    }
    let mut targets: Vec<Target> = Target::all().collect();
    targets.reverse();
    let mut first = None;
    for target in targets {
        match check_for(text, target) {
            Ok(instruction) => return Ok((target, instruction)),
            Err(message) => _ = first.get_or_insert(message),
        }
    }
    Err(first.unwrap_or_default())
}

fn check_for(text: &str, target: Target) -> Result<Instruction, String> {
    let module = module_for(&format!(".entry e() {{ {text} ret; }}\n"), Version::MAX, target)?;
    let body = module.functions.into_iter().next().and_then(|function| function.body);
    let nodes = body.map(|body| body.code).unwrap_or_default();
    let instruction = nodes.into_iter().find_map(|node| match node {
        Node::Instruction(instruction) => Some(instruction),
        Node::Label(_) => None,
    });
    instruction.ok_or_else(|| "it is no instruction".to_owned())
}

/// The module with these declarations.
///
/// # Errors
/// The first error in it.
pub fn module_for(declarations: &str, version: Version, target: Target) -> Result<check::Module, String> {
    let text = format!(".version {version}\n.target {target}\n.address_size 64\n{declarations}");
    let source = SourceFile::new("instruction", text);
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    match (diagnostics.into_iter().find(|diagnostic| diagnostic.is_error()), module) {
        (Some(error), _) => Err(with_help(error.message, error.help)),
        (None, Some(module)) => Ok(module),
        (None, None) => Err("it is no module".to_owned()),
    }
}
