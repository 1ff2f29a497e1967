//! What ptxas says of modifiers: lines of `isa/messages.isa`, read and written as Rust.

use super::emit::{HEADER, variant};
use super::parse::{Sets, names};
use super::table::{Row, Table};
use isa::Type;
use std::fmt::Write;

/// A line, as parts of a Rust expression.
pub struct Message {
    about: String,
    opcodes: Vec<String>,
    when: Vec<String>,
    texts: String,
}

/// `SUBJECTS [of OPCODES], CONDITION, ... : TEXT ; TEXT`, behind the word that says what the line is about.
pub fn line(about: &str, line: &str, sets: &Sets) -> Result<Message, String> {
    let (head, texts) = line.split_once(" : ").ok_or("` : ` expected")?;
    let mut parts = head.split(',').map(str::trim);
    let first = format!(" {}", parts.next().unwrap_or_default());
    let (subjects, opcodes) = first.split_once(" of ").unwrap_or((&first, ""));
    let texts = match texts.trim() {
        "default" => "None".into(),
        "nothing" => "Some(&[])".into(),
        texts => format!("Some(&{:?})", texts.split(" ; ").collect::<Vec<_>>()),
    };
    Ok(Message {
        about: self::about(about, subjects, sets)?,
        opcodes: opcodes.split_whitespace().map(str::to_owned).collect(),
        when: parts.map(|part| condition(part, sets)).collect::<Result<_, _>>()?,
        texts,
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
    out += "use crate::message::{About, Message, When};\nuse crate::{Mod, Opcode, Type};\n\n";
    out += "/// What ptxas says of modifiers; the first line that applies counts.\npub static MESSAGES: &[Message] = &[\n";
    for Message { about, opcodes, when, texts } in &table.messages {
        let mut of: Vec<String> = opcodes.iter().flat_map(|word| opcodes_of(word, table)).collect();
        of.dedup();
        let _ = writeln!(
            out,
            "Message {{ about: {about}, opcodes: &[{}], when: &[{}], texts: {texts} }},",
            of.join(", "),
            when.join(", ")
        );
    }
    out + "];\n"
}

/// An opcode, or those of a section of the manual (`9.7.18.2`).
fn opcodes_of<'a>(word: &'a str, table: &'a Table) -> impl Iterator<Item = String> + 'a {
    let is_of = move |row: &&Row| {
        row.opcode == word || row.section.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
    };
    table.rows.iter().filter(is_of).map(|row| format!("Opcode::{}", variant(&row.opcode)))
}
