//! What ptxas says of modifiers, and when: lines of `isa/messages.isa`, read and written as Rust.

use super::emit::{HEADER, variant};
use super::parse::{Sets, names};
use super::table::{Row, Table};
use isa::{Placeholder, Stage, Type};
use std::fmt::Write;

/// A line, as parts of a Rust expression.
pub struct Message {
    about: String,
    opcodes: Vec<String>,
    when: Vec<String>,
    /// Texts, or a stage.
    then: String,
}

/// The errors that a line may be about.
const ERRORS: [&str; 5] = ["missing", "repeated", "illegal", "types", "alternate"];

/// Does the line say what ptxas says of an error?
pub fn is_line(line: &str) -> bool {
    line.split([' ', ',']).next().is_some_and(|word| ERRORS.contains(&word))
}

/// `CASE : TEXT ; TEXT`
pub fn line(line: &str, sets: &Sets) -> Result<Message, String> {
    let (case, texts) = line.split_once(" : ").ok_or("` : ` expected")?;
    let mut placeholders = texts.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    if let Some(unknown) = placeholders.find(|name| Placeholder::from_name(name).is_none()) {
        return Err(format!("no placeholder `{{{unknown}}}`"));
    }
    let then = match texts.trim() {
        "default" => "None".into(),
        "nothing" => "Some(&[])".into(),
        texts => format!("Some(&{:?})", texts.split(" ; ").collect::<Vec<_>>()),
    };
    self::case(case, then, sets)
}

/// `CASE : STAGE`
pub fn stage(line: &str, sets: &Sets) -> Result<Message, String> {
    let (case, name) = line.split_once(" : ").ok_or("` : ` expected")?;
    let found = Stage::NAMES.iter().find(|(known, _)| *known == name);
    let (_, stage) = found.ok_or_else(|| format!("no stage `{name}`"))?;
    self::case(case, format!("Stage::{stage:?}"), sets)
}

/// `ERROR SUBJECTS [of OPCODES], CONDITION, ...`
fn case(case: &str, then: String, sets: &Sets) -> Result<Message, String> {
    let mut parts = case.split(',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let (error, opcodes) = first.split_once(" of ").unwrap_or((first, ""));
    let (error, subjects) = error.split_once(' ').unwrap_or((error, ""));
    Ok(Message {
        about: about(error, subjects, sets)?,
        opcodes: opcodes.split_whitespace().map(str::to_owned).collect(),
        when: parts.map(|part| condition(part, sets)).collect::<Result<_, _>>()?,
        then,
    })
}

fn about(about: &str, subjects: &str, sets: &Sets) -> Result<String, String> {
    let is_modifier = |word: &&str| word.starts_with(['.', '$']);
    let (modifiers, others): (Vec<&str>, Vec<&str>) = subjects.split_whitespace().partition(is_modifier);
    let modifiers = mods(&modifiers.join(" "), sets)?;
    Ok(match (about, &others[..]) {
        ("missing", slots) => format!("About::Missing {{ slots: &{slots:?}, first: {modifiers} }}"),
        ("repeated", []) => format!("About::Repeated({modifiers})"),
        ("illegal", []) => format!("About::Illegal({modifiers})"),
        ("illegal", ["shape"]) => "About::IllegalShape".into(),
        ("types", []) => "About::Types".into(),
        ("alternate", []) => "About::Alternate".into(),
        ("constants", []) => "About::Constants".into(),
        _ => return Err(format!("cannot read `{about} {subjects}`")),
    })
}

/// `.a .b`, `no .a .b`, `first type .f32`, `no type`
fn condition(text: &str, sets: &Sets) -> Result<String, String> {
    for (words, name) in [("no type", "NoType"), ("one type", "OneType"), ("type", "SomeType")] {
        if text == words {
            return Ok(format!("When::{name}"));
        }
    }
    for (words, name) in [("first type ", "FirstType"), ("last type ", "LastType"), ("any type ", "AnyType")]
    {
        if let Some(rest) = text.strip_prefix(words) {
            let types: Result<Vec<String>, String> = names(rest, sets)?
                .iter()
                .map(|name| Type::from_name(name).ok_or_else(|| format!("`.{name}` is no type")))
                .map(|ty| ty.map(|ty| format!("Type::{ty:?}")))
                .collect();
            return Ok(format!("When::{name}(&[{}])", types?.join(", ")));
        }
    }
    let conditions = [("no ", "HasNot"), ("first ", "First"), ("after ", "After")];
    let (rest, name) = conditions
        .into_iter()
        .find_map(|(words, name)| Some((text.strip_prefix(words)?, name)))
        .unwrap_or((text, "Has"));
    Ok(format!("When::{name}({})", mods(rest, sets)?))
}

fn mods(text: &str, sets: &Sets) -> Result<String, String> {
    let mods: Vec<String> = names(text, sets)?.iter().map(|name| format!("Mod::{}", variant(name))).collect();
    Ok(format!("&[{}]", mods.join(", ")))
}

/// `messages.rs`: all lines, in their order.
pub fn messages(table: &Table) -> String {
    let mut out = HEADER.to_string();
    out += "use crate::message::{About, Case, Message, When};\nuse crate::{Mod, Opcode, Stage, Type};\n\n";
    out += "/// What ptxas says of modifiers; the first line that applies counts.\npub static MESSAGES: &[Message] = &[\n";
    for message in &table.messages {
        let _ = writeln!(out, "Message {{ case: {}, texts: {} }},", message.case(table), message.then);
    }
    out += "];\n\n/// When it says so, likewise.\npub static STAGES: &[(Case, Stage)] = &[\n";
    for stage in &table.stages {
        let _ = writeln!(out, "({}, {}),", stage.case(table), stage.then);
    }
    out + "];\n"
}

impl Message {
    fn case(&self, table: &Table) -> String {
        let Message { about, opcodes, when, .. } = self;
        let mut of: Vec<String> = opcodes.iter().flat_map(|word| opcodes_of(word, table)).collect();
        of.dedup();
        format!("Case {{ about: {about}, opcodes: &[{}], when: &[{}] }}", of.join(", "), when.join(", "))
    }
}

/// An opcode, or those of a section of the manual (`9.7.18.2`).
fn opcodes_of<'a>(word: &'a str, table: &'a Table) -> impl Iterator<Item = String> + 'a {
    let is_of = move |row: &&Row| {
        row.opcode == word || row.section.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
    };
    table.rows.iter().filter(is_of).map(|row| format!("Opcode::{}", variant(&row.opcode)))
}
