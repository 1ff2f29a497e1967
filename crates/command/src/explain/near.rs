//! Suggestions for names that are not in the table.

use isa::{Form, FormId, SpecialRegister, Token};

use super::super::evidence::rows;
use super::super::report::Failure;
use super::{all_tokens, forms_page};

/// The page for an incomplete name: the forms with all of its modifiers. `lacks` says what is missing.
pub fn incomplete(words: &[&str], lacks: &str) -> Option<String> {
    let (opcode, modifiers) = (words[0], &words[1..]);
    let takes = |form: &Form, word: &str| {
        form.slots.iter().any(|slot| slot.choices.iter().any(|choice| choice.token.name() == word))
    };
    let forms: Vec<(FormId, &Form)> = rows()
        .filter(|(_, form)| form.opcode.name() == opcode && modifiers.iter().all(|word| takes(form, word)))
        .collect();
    if forms.is_empty() {
        return None;
    }
    let name = words.join(".");
    let beginning = format!(
        "# {name}\n\nNot a whole instruction: {}. The forms of {opcode} that have what it has:\n\n",
        lacks.trim_end_matches('.')
    );
    Some(forms_page(&beginning, opcode, &forms))
}

/// The error for a name that no row has.
pub fn unknown(opcode: &str) -> Failure {
    if check::opcodes().any(|known| known == opcode) {
        return Failure::bad(format!("ptxvm does not know the instruction '{opcode}' of PTX"));
    }
    let failure = Failure::bad(format!("Not a name of any known instruction: '{opcode}'"));
    if Token::from_name(opcode).is_some() {
        return failure.help(format!("for the modifier write `.{opcode}`"));
    }
    if let Some(known) = lower_case(opcode) {
        return failure.help(format!("PTX is written in lower case: '{known}'"));
    }
    if is_directive(opcode) {
        return failure.help(directive(opcode));
    }
    if let Some(near) = check::nearest(opcode, check::opcodes()) {
        return failure.help(format!("did you mean '{near}'?"));
    }
    match nearest_modifier(opcode) {
        Some(near) => failure.help(format!("did you mean the modifier '.{near}'?")),
        None => failure.help("`ptxvm isa` lists all instructions"),
    }
}

/// The opcode that an upper-case name means.
pub fn lower_case(opcode: &str) -> Option<&'static str> {
    let lower = opcode.to_ascii_lowercase();
    (lower != opcode).then(|| check::opcodes().find(|known| *known == lower))?
}

/// The error for a modifier that no row has.
pub fn unknown_modifier(name: &str) -> Failure {
    let failure = Failure::bad(format!("Unknown modifier '.{name}'"));
    if is_directive(name) {
        return failure.help(directive(name));
    }
    match nearest_modifier(name) {
        Some(near) => failure.help(format!("did you mean '.{near}'?")),
        None => failure.help("`ptxvm explain add` lists the modifiers of `add`"),
    }
}

/// The error for the name of a register.
pub fn register(name: &str) -> Option<Failure> {
    let register = name.strip_prefix('%')?;
    let base = register.split('.').next().unwrap_or(register);
    let component = || SpecialRegister::from_name(&format!("%{base}.x")).is_some();
    let known = SpecialRegister::from_name(name).is_some() || component();
    let failure = Failure::bad(format!("'{name}' is a register, and no instruction or modifier"));
    Some(if known {
        let full = if component() && !register.contains('.') { format!("{name}.x") } else { name.to_owned() };
        failure.help(format!("it is a special register, which `mov` reads: `mov.u32 %r, {full};`"))
    } else {
        failure.help("`ptxvm isa` lists all instructions")
    })
}

fn is_directive(name: &str) -> bool {
    syntax::DIRECTIVES.iter().any(|directive| directive.name == name)
}

fn directive(name: &str) -> String {
    format!("`.{name}` is a directive: there are pages for instructions, their modifiers and their types")
}

fn nearest_modifier(name: &str) -> Option<&'static str> {
    check::nearest(name, all_tokens().map(Token::name))
}
