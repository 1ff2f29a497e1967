//! `ptxvm explain`: the table's contents about an instruction, one of its forms, or a modifier, as a page of
//! Markdown; what nvcc makes of an intrinsic function of CUDA; the meaning of an error's code.

mod codes;
mod example;
mod intrinsics;
mod nan;
mod near;

use std::fmt::Write;

use isa::enumerate::Spelling;
use isa::{Access, Action, Form, FormId, Gate, LiteralForm, Mod, OperandSpec, Presence, Requirement, Second};
use isa::{Consequence, OperandKind, OperandType, Picks, Token, Type, since_text};
use serde_json::json;

use super::alone::{help, words};
use super::evidence::{oracles, row_gates, rows, spelling};
use super::executed::is_executed;
use super::options::{ExplainOptions, Format};
use super::report::{Failure, print};
use near::unknown;

pub use example::example;
pub use near::lower_case;

/// Explains each name.
///
/// # Errors
/// When a name is neither an instruction nor a modifier.
pub fn explain(options: &ExplainOptions) -> Result<(), Failure> {
    let name = options.name.trim();
    let page = page(name)?;
    match options.format {
        Format::Human => print(page.trim_end()),
        Format::Json => print(json!({ "name": name, "forms": forms_of(&page), "page": page })),
    }
}

/// The page of an instruction, a form of it, or `.modifier`, as Markdown.
///
/// # Errors
/// When there is no such name.
pub fn page(name: &str) -> Result<String, Failure> {
    if let Some(failure) = near::register(name) {
        return Err(failure);
    }
    if intrinsics::is_intrinsic(name) {
        return intrinsics::page(name);
    }
    if let Some(code) = codes::find(name) {
        // `trap` is an instruction, and what a launch ends with that executes one.
        let instruction = words(name).ok().and_then(|words| explain_opcode(words[0]).ok());
        return Ok(instruction.map(|page| page + "\n").unwrap_or_default() + &codes::page(code));
    }
    if name.contains('-') {
        return Err(codes::unknown(name));
    }
    match name.strip_prefix('.') {
        Some(modifier) => explain_modifier(modifier),
        None => {
            let words = words(name).map_err(Failure::bad)?;
            match words[..] {
                [opcode] => explain_opcode(opcode),
                _ => explain_instruction(&words),
            }
        }
    }
}

/// The forms on a page: they are its headings, or the first column of its table.
fn forms_of(page: &str) -> Vec<String> {
    let forms = page.lines().filter_map(|line| {
        let form = line.strip_prefix("## `").or_else(|| line.strip_prefix("| `"))?;
        let form = form.split_once('`')?.0.replace("\\|", "|");
        form.contains(' ').then_some(form)
    });
    let mut seen = std::collections::HashSet::new();
    forms.filter(|form| seen.insert(form.clone())).collect()
}

/// A page with one blank line between its parts.
fn tidy(page: &str) -> String {
    let mut text = page.to_owned();
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

/// The page of all forms of an opcode.
///
/// # Errors
/// When there is none.
pub fn explain_opcode(opcode: &str) -> Result<String, Failure> {
    let forms: Vec<(FormId, &Form)> = rows().filter(|(_, form)| form.opcode.name() == opcode).collect();
    if forms.is_empty() {
        return Err(unknown(opcode));
    }
    let meaning = sentence(isa::prose::opcode(opcode).unwrap_or_default());
    Ok(forms_page(&format!("# {opcode}\n\n{meaning}\n\n"), opcode, &forms))
}

/// A page about some forms of an opcode, after `beginning`.
fn forms_page(beginning: &str, opcode: &str, forms: &[(FormId, &Form)]) -> String {
    let mut page = beginning.to_owned();
    page += "| form | manual | legal since | executed | results held against |\n|---|---|---|---|---|\n";
    for (id, form) in forms {
        let oracles = Some(oracles(form).join(", ")).filter(|text| !text.is_empty());
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            form.syntax.replace('|', "\\|"),
            form.section,
            since_text(&row_gates(*id)),
            if is_executed(*id) { "yes" } else { "no" },
            oracles.as_deref().unwrap_or("nothing")
        );
    }
    for (_, form) in forms {
        let _ = write!(page, "\n## `{}`\n\n", form.syntax);
        form_details(form, &mut page);
    }
    modifier_meanings(forms.iter().map(|(_, form)| *form), &mut page);
    registers(forms.iter().flat_map(|(_, form)| operand_types(form)), &mut page);
    page += &nan::tables(opcode, None);
    // For pure instructions the last form, which has the most operands. Other examples are the same for all forms.
    let mut executed = forms.iter().filter(|(id, _)| is_executed(*id));
    let shown = match forms[0].1.action {
        Action::Pure(_) => executed.next_back(),
        Action::Effect(_) => executed.next(),
    };
    if let Some(spelling) = shown.and_then(|(id, _)| spelling(*id)) {
        show_example(&spelling, &mut page);
    }
    tidy(&page)
}

/// The page of one spelling.
fn explain_instruction(words: &[&str]) -> Result<String, Failure> {
    let (opcode, modifiers) = (words[0], &words[1..]);
    let counts = 0..=isa::Picks::MAX_MODS;
    let selected: Vec<(usize, isa::Selected)> = counts
        .filter_map(|operands| Some((operands, isa::select(opcode, modifiers, operands).ok()?)))
        .collect();
    let Some(&(_, first)) = selected.first() else {
        let errors = (0..8).filter_map(|operands| isa::select(opcode, modifiers, operands).err());
        let telling =
            |errors: &Vec<isa::SelectError>| !matches!(errors[..], [isa::SelectError::Arguments { .. }]);
        let error = errors.filter(telling).flatten().next();
        return Err(match error {
            Some(isa::SelectError::UnknownInstruction) | None => unknown(opcode),
            Some(error) => {
                let name = check::instruction_name(opcode, modifiers);
                let message = error.message(&name, modifiers);
                if let Some(page) = near::incomplete(words, &message) {
                    return Ok(page);
                }
                let failure = Failure::bad(message);
                match help(&error, words) {
                    Some(help) => failure.help(help),
                    None => failure,
                }
            }
        });
    };
    let name = words.join(".");
    let mut page = format!("# {name}\n\n{}\n", sentence(isa::prose::opcode(opcode).unwrap_or_default()));
    for token in modifiers.iter().filter_map(|word| Token::from_name(word)) {
        if let Token::Mod(modifier) = token
            && let Some(meaning) = isa::prose::modifier(modifier)
        {
            let _ = write!(page, "\n- `.{}`: {meaning}", modifier.name());
        }
    }
    page.push('\n');
    let mut seen = Vec::new();
    for (_, selected) in &selected {
        if seen.contains(&selected.id) {
            continue;
        }
        seen.push(selected.id);
        let form = selected.form();
        let _ = write!(
            page,
            "\n## `{}`\n\nPTX manual {}. Legal since {}. {}",
            form.syntax,
            form.section,
            since_text(&form.gates(&selected.picks)),
            backing(selected.id)
        );
        page += "\n\n| operand | use | type | registers | literals |\n|---|---|---|---|---|\n";
        for spec in form.operands_with(&selected.picks) {
            operand_row(spec, &selected.picks, &mut page);
        }
    }
    page += &nan::tables(opcode, Some(&first.picks));
    let spelling = Spelling { form: first.id, modifiers: token_names(modifiers), picks: first.picks };
    if is_executed(first.id) {
        show_example(&spelling, &mut page);
    }
    Ok(tidy(&page))
}

/// The modifiers as the table spells them.
fn token_names(modifiers: &[&str]) -> Vec<&'static str> {
    modifiers.iter().filter_map(|word| Token::from_name(word)).map(Token::name).collect()
}

/// The page of a modifier or a type.
fn explain_modifier(name: &str) -> Result<String, Failure> {
    let Some(token) = Token::from_name(name) else {
        return Err(near::unknown_modifier(name));
    };
    let meaning = isa::prose::token(token).unwrap_or_else(|| "part of the instructions below".to_owned());
    let mut page = format!("# .{name}\n\n{}\n", sentence(&meaning));
    if let Token::Type(ty) = token {
        registers([ty], &mut page);
    }
    page += "\n## Forms that take it\n\n| form | legal with it since |\n|---|---|\n";
    for (id, form) in rows().filter(|(_, form)| form.slots.iter().any(|slot| slot.choice(token).is_some())) {
        let with = isa::enumerate::spellings(id).filter(|spelling| match token {
            Token::Type(ty) => spelling.picks.types().contains(&ty),
            Token::Mod(modifier) => spelling.picks.has(modifier),
        });
        if let Some(spelling) = with.take(20_000).find(Spelling::is_legal) {
            let since = since_text(&form.gates(&spelling.picks));
            let _ = writeln!(page, "| `{}` | {since} |", form.syntax.replace('|', "\\|"));
        }
    }
    Ok(page)
}

fn all_tokens() -> impl Iterator<Item = Token> {
    isa::FORMS.iter().flat_map(|form| form.slots).flat_map(|slot| slot.choices).map(|choice| choice.token)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    // The name of an operand keeps its case.
    let named = text.len() > 1 && !text.as_bytes()[1].is_ascii_alphabetic();
    if named { format!("{text}.") } else { format!("{first}{}.", letters.as_str()) }
}

fn backing(id: FormId) -> String {
    let executed = if is_executed(id) { "Executed" } else { "Not executed by ptxvm" };
    match oracles(id.form()) {
        list if list.is_empty() => format!("{executed}; no recorded result backs it."),
        list => format!("{executed}; results held against {}.", list.join(", ")),
    }
}

/// The choices of each slot, their requirements, and excluded combinations.
fn form_details(form: &Form, page: &mut String) {
    for slot in form
        .slots
        .iter()
        .filter(|slot| slot.choices.len() > 1 || slot.choices.iter().any(|c| !c.gates.is_empty()))
    {
        let names: Vec<String> = slot
            .choices
            .iter()
            .map(|choice| match gates_text(choice.gates) {
                text if text.is_empty() => format!("`.{}`", choice.token.name()),
                text => format!("`.{}` ({text})", choice.token.name()),
            })
            .collect();
        let _ = writeln!(page, "- `.{}`: {}", slot.name, names.join(" "));
    }
    if !form.gates.is_empty() {
        let _ = writeln!(page, "- needs {}", gates_text(form.gates));
    }
    for rule in form.rules {
        let when = conditions(form, rule.when);
        let _ = match rule.then {
            Consequence::Gates(gates) => writeln!(page, "- with {when}: needs {}", gates_text(gates)),
            Consequence::Default(default, until) => {
                writeln!(page, "- {}, `.{}` is the default", gates_text(until), default.name())
            }
            Consequence::Needs([isa::Condition::HasNot(others)], _) => {
                writeln!(page, "- never {when} with {}", conditions(form, &[isa::Condition::Has(others)]))
            }
            Consequence::Needs(needs, _) => writeln!(page, "- {when} only with {}", conditions(form, needs)),
        };
    }
    for spec in form.operands.iter().filter(|spec| spec.second == Second::Optional) {
        let _ = writeln!(page, "- `{}|q` gives both results; either may be `_`", spec.name);
    }
    if matches!(form.action, isa::Action::Pure(name) if name.ends_with("_approx")) {
        *page += "- here the exact value is rounded to nearest; a GPU's last bits may differ, within the manual's bound\n";
    }
    match (form.carry.reads, form.carry.writes) {
        (true, true) => *page += "- reads and writes the carry flag `CC.CF`\n",
        (true, false) => *page += "- reads the carry flag `CC.CF`\n",
        (false, true) => *page += "- writes the carry flag `CC.CF`\n",
        (false, false) => {}
    }
    if page.ends_with("\n\n") {
        *page += "No choices, and legal in every version for every target.\n";
    }
}

/// `PTX 7.8, sm_90`
fn gates_text(gates: &[Gate]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for gate in gates {
        let part = match gate.requires {
            Requirement::Version(version) => format!("PTX {version}"),
            Requirement::Target(targets) => {
                targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
            }
            Requirement::Until(version, isa::Target { number: 0, .. }) => format!("before PTX {version}"),
            Requirement::Until(version, target) => format!("before PTX {version} or before {target}"),
            Requirement::Since(version, new, old) => format!("{old}, {new} from PTX {version} on"),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", ")
}

fn conditions(form: &Form, conditions: &[isa::Condition]) -> String {
    let list = |names: Vec<&str>| names.iter().map(|name| format!("`.{name}`")).collect::<Vec<_>>().join(" ");
    let mods = |mods: &[Mod]| list(mods.iter().map(|m| m.name()).collect());
    let parts: Vec<String> = conditions
        .iter()
        .map(|condition| match *condition {
            isa::Condition::TypeIn(i, types) => {
                let slot = form.type_slots().nth(i.into()).map_or("type", |slot| slot.name);
                format!("`.{slot}` of {}", list(types.iter().map(|ty| ty.name()).collect()))
            }
            isa::Condition::Has(list) => mods(list),
            isa::Condition::HasNot(list) => format!("none of {}", mods(list)),
        })
        .collect();
    parts.join(" and ")
}

fn modifier_meanings<'f>(forms: impl Iterator<Item = &'f Form>, page: &mut String) {
    let mut seen: Vec<Mod> = Vec::new();
    for choice in forms.flat_map(|form| form.slots).flat_map(|slot| slot.choices) {
        if let Token::Mod(modifier) = choice.token
            && !seen.contains(&modifier)
            && isa::prose::modifier(modifier).is_some()
        {
            seen.push(modifier);
        }
    }
    if seen.is_empty() {
        return;
    }
    *page += "\n## Modifiers\n\n";
    for modifier in seen {
        let _ = writeln!(
            page,
            "- `.{}`: {}",
            modifier.name(),
            isa::prose::modifier(modifier).unwrap_or_default()
        );
    }
}

/// The instruction types that operands of a form can have.
fn operand_types(form: &Form) -> Vec<Type> {
    let mut types: Vec<Type> = Vec::new();
    let slots: Vec<_> = form.type_slots().collect();
    for spec in form.operands {
        match spec.ty {
            OperandType::Fixed(ty) => types.push(ty),
            OperandType::Pick(i) | OperandType::Wide(i) | OperandType::Bits(i) => {
                let choices = slots.get(usize::from(i)).map(|slot| slot.choices).unwrap_or_default();
                for choice in choices {
                    if let Token::Type(ty) = choice.token {
                        types.extend(match spec.ty {
                            OperandType::Wide(_) => ty.widened(),
                            OperandType::Bits(_) => Some(Type::of_bits(ty.bits())),
                            _ => Some(ty),
                        });
                    }
                }
            }
            OperandType::None | OperandType::Address => {}
        }
    }
    types
}

/// The registers and literals that each type allows.
fn registers(types: impl IntoIterator<Item = Type>, page: &mut String) {
    let mut unique: Vec<Type> = types.into_iter().collect();
    unique.sort();
    unique.dedup();
    if unique.is_empty() {
        return;
    }
    *page += "\n## Operands\n\n| instruction type | registers declared as | literals |\n|---|---|---|\n";
    for ty in unique {
        let _ = writeln!(page, "| `{ty}` | {} | {} |", allowed_registers(ty, false), allowed_literals(ty));
    }
}

/// Types that registers can be declared with.
const DECLARABLE: [Type; 18] = [
    Type::Pred,
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::F16x2,
    Type::F32,
    Type::F64,
];

fn allowed_registers(ty: Type, wider: bool) -> String {
    let allowed = DECLARABLE.into_iter().filter(|&register| isa::register_allowed(ty, register, wider));
    allowed.map(|ty| format!("`{ty}`")).collect::<Vec<_>>().join(" ")
}

fn allowed_literals(ty: Type) -> String {
    let forms = [
        (LiteralForm::Integer, "integers"),
        (LiteralForm::Decimal, "decimals"),
        (LiteralForm::F32Bits, "`0f...`"),
        (LiteralForm::F64Bits, "`0d...`"),
    ];
    let allowed = forms.into_iter().filter(|(form, _)| isa::literal_allowed(ty, *form)).map(|(_, name)| name);
    let text = allowed.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

fn operand_row(spec: &OperandSpec, picks: &Picks, page: &mut String) {
    let usage = match spec.access {
        Access::Read => "read",
        Access::Write => "written",
        Access::ReadWrite => "read and written",
    };
    let optional = if spec.presence == Presence::Optional { ", may be left out" } else { "" };
    let ty = spec.resolve(picks);
    let (registers, literals) = match (spec.kind, ty) {
        (OperandKind::Immediate, _) => ("none".to_owned(), "a constant".to_owned()),
        (OperandKind::Register, Some(ty)) => (allowed_registers(ty, spec.wider), "none".to_owned()),
        (OperandKind::Source, Some(ty)) => (allowed_registers(ty, spec.wider), allowed_literals(ty)),
        (OperandKind::MovSource | OperandKind::MovDestination, Some(ty)) => {
            (format!("{}, or a vector", allowed_registers(ty, false)), allowed_literals(ty))
        }
        (OperandKind::Address, _) => ("an address `[a+4]`".to_owned(), String::new()),
        _ => ("see the manual".to_owned(), String::new()),
    };
    let second = if spec.second == Second::None { "" } else { "\\|q" };
    let ty = ty.map_or_else(|| "-".to_owned(), |ty| format!("`{ty}`"));
    let _ = writeln!(page, "| {}{second} | {usage}{optional} | {ty} | {registers} | {literals} |", spec.name);
}

fn show_example(spelling: &Spelling, page: &mut String) {
    if let Some(text) = example(spelling) {
        let _ = write!(page, "\n## Example\n\n```ptx\n{text}```\n\n```\n{}\n```\n", example::COMMAND);
    }
}
