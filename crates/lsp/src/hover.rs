//! What a word means: instructions, modifiers, numbers, names, special registers, directives.

use std::fmt::Write;

use check::names::Kind as NameKind;
use isa::{SelectError, SpecialRegister, Target, Token as Modifier, Type, Version, since_text};
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use sem::bits::{hex, value};
use syntax::lexer::{Kind, Token};
use syntax::tree::{Instruction, Literal};
use syntax::{DIRECTIVES, Value};

use crate::cursor;
use crate::document::{Analysis, Document, module_of};

/// The most errors of an instruction that are shown.
const MOST_ERRORS: usize = 3;

/// The hover at an offset.
pub fn hover(
    document: &Document,
    analysis: &Analysis,
    offset: u32,
    options: &check::Options,
) -> Option<Hover> {
    let token = document.token(offset)?;
    let text = document.source().slice(token.span);
    let tree = document.tree();
    let module = module_of(&tree, options);
    let instruction = cursor::instruction(&tree, token.span.start);
    let of_head =
        instruction.filter(|node| node.head().start <= token.span.start && token.span.end <= node.head().end);
    let page = match token.kind {
        Kind::Integer | Kind::Double | Kind::Single => literal(text, token)?,
        _ if of_head.is_some() => head(of_head?, token, analysis),
        Kind::Identifier => match analysis.names.at(token.span.start) {
            Some(_) => declaration(document, analysis, token)?,
            None => {
                // `%tid.x`
                let register =
                    SpecialRegister::from_name(text).or_else(|| SpecialRegister::element(text, 0))?;
                special(register, text, module)
            }
        },
        Kind::Dotted | Kind::Version => {
            let before = document.token(token.span.start.checked_sub(1)?);
            let base =
                before.filter(|base| base.kind == Kind::Identifier && base.span.end == token.span.start);
            let name = base.map(|base| format!("{}{text}", document.source().slice(base.span)));
            match name.and_then(|name| SpecialRegister::from_name(&name)) {
                Some(register) => special(register, register.name(), module),
                None => directive(text.split_whitespace().next()?.strip_prefix('.')?)?,
            }
        }
        _ => return None,
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: page });
    Some(Hover { contents, range: Some(document.range(token.span)) })
}

/// An instruction, and the modifier under the cursor first.
fn head(node: &Instruction, token: Token, analysis: &Analysis) -> String {
    let opcode = node.opcode.text;
    let modifiers: Vec<&str> = node.modifiers.iter().map(|modifier| modifier.text).collect();
    let mut page = String::new();
    let meaning = |word: &str| isa::prose::token(Modifier::from_name(word)?);
    if let Some(modifier) = node.modifiers.iter().find(|modifier| modifier.span == token.span) {
        let meaning = meaning(modifier.text).unwrap_or_else(|| "part of this instruction".into());
        let _ = writeln!(page, "**.{}**: {meaning}\n", modifier.text);
    }
    let name = cursor::mnemonic(opcode, &modifiers);
    let _ = writeln!(page, "**{name}**: {}\n", isa::prose::opcode(opcode).unwrap_or("no instruction of PTX"));
    match isa::select(opcode, &modifiers, node.operands.len()) {
        Ok(selected) => {
            let form = selected.form();
            let since = since_text(&form.gates(&selected.picks));
            let _ = writeln!(page, "`{}`\n\nPTX manual {}. Legal since {since}.", form.syntax, form.section);
        }
        Err(errors) => {
            let form = errors.iter().find_map(form_of).or_else(|| isa::forms(opcode).first());
            if let Some(form) = form {
                let _ = writeln!(page, "`{}`\n\nPTX manual {}.", form.syntax, form.section);
            }
        }
    }
    // Why it is not legal here, the check has said.
    let head = node.head();
    let inside = |one: &&diag::Diagnostic| head.start <= one.span.start && one.span.end <= head.end;
    for error in analysis.diagnostics.iter().filter(|one| one.is_error()).filter(inside).take(MOST_ERRORS) {
        let _ = writeln!(page, "\nNot legal: {}.", error.message);
        if let Some(help) = &error.help {
            let _ = writeln!(page, "\nHelp: {help}");
        }
    }
    if token.span == node.opcode.span {
        for word in &modifiers {
            if let Some(meaning) = meaning(word) {
                let _ = write!(page, "\n- `.{word}`: {meaning}");
            }
        }
    }
    page
}

fn form_of(error: &SelectError) -> Option<&'static isa::Form> {
    match error {
        SelectError::Arguments { form }
        | SelectError::Illegal { form, .. }
        | SelectError::Says { form, .. }
        | SelectError::Missing { form, .. }
        | SelectError::Comparison { form, .. }
        | SelectError::Vector { form } => Some(form.form()),
        _ => None,
    }
}

/// A number in every type that its bits may have.
fn literal(text: &str, token: Token) -> Option<String> {
    let (bits, exact) = match (Literal { text, span: token.span }).value()? {
        Value::Integer { value, .. } => (value, None),
        Value::F32(bits) => (bits.into(), Some(f64::from(f32::from_bits(bits)))),
        Value::F64(bits) => (bits, Some(f64::from_bits(bits))),
    };
    let mut page = format!("**{text}**\n\n| type | bits | value |\n|---|---|---|\n");
    let mut row = |ty: Type, bits: u64| {
        let _ = writeln!(page, "| `{ty}` | `{}` | {} |", hex(ty, bits), value(ty, bits));
    };
    if let Some(exact) = exact {
        row(Type::F64, exact.to_bits());
        row(Type::F32, (exact as f32).to_bits().into());
        let _ = writeln!(
            page,
            "| in PTX | `0f{:08X}` | `0d{:016X}` |",
            (exact as f32).to_bits(),
            exact.to_bits()
        );
        return Some(page);
    }
    for (ty, width) in [
        (Type::U64, 64),
        (Type::S64, 64),
        (Type::F64, 64),
        (Type::U32, 32),
        (Type::S32, 32),
        (Type::F32, 32),
        (Type::U16, 16),
        (Type::S16, 16),
        (Type::F16, 16),
        (Type::Bf16, 16),
        (Type::U8, 8),
        (Type::S8, 8),
    ] {
        if bits >> (width - 1) <= 1 {
            row(ty, bits);
        }
    }
    Some(page)
}

/// The declaration of the name at a token.
fn declaration(document: &Document, analysis: &Analysis, token: Token) -> Option<String> {
    let occurrence = analysis.names.at(token.span.start)?;
    let symbol = &analysis.names.symbols[occurrence.symbol];
    let what = match symbol.kind {
        NameKind::Register => "register",
        NameKind::Variable => "variable",
        NameKind::Parameter => "parameter",
        NameKind::Kernel => "kernel",
        NameKind::Function => "function",
        NameKind::Label => "label",
        NameKind::Table => "table of targets",
    };
    let line = document.position(symbol.definition.start).line + 1;
    let text = document.source().slice(token.span);
    Some(format!("**{text}**: {what}, declared in line {line}\n\n```ptx\n{}\n```", summary(document, symbol)))
}

/// The declaration of a name, on few lines.
pub fn summary(document: &Document, symbol: &check::names::Symbol) -> String {
    let source = document.source();
    let (head, rest) = (source.slice(symbol.head).trim(), source.slice(symbol.declarator).trim());
    let colon = if symbol.kind == NameKind::Label { ":" } else { "" };
    let text = format!("{head} {}{colon}", rest.trim_end_matches('=').trim_end());
    let lines: Vec<&str> = text.trim().lines().take(24).collect();
    lines.join("\n")
}

/// A special register, with its name as it stands in the text.
fn special(register: SpecialRegister, name: &str, (version, target): (Version, Target)) -> String {
    let gates = register.gates();
    let mut page = format!(
        "**{name}**: {}\n\nSpecial register of type `{}`, legal since {}.",
        register.meaning(),
        register.ty(),
        since_text(gates)
    );
    if let Some(gate) = gates.iter().find(|gate| !gate.permits(version, target)) {
        let message = gate.message(version, target);
        let _ = write!(page, "\n\nNot legal in this module (PTX {version}, {target}): {message}.");
    }
    page
}

fn directive(name: &str) -> Option<String> {
    if let Some(directive) = DIRECTIVES.iter().find(|directive| directive.name == name) {
        return Some(format!("**.{name}**: {}", directive.meaning));
    }
    let ty = Type::from_name(name)?;
    Some(format!("**.{name}**: {}", isa::prose::ty(ty)))
}
