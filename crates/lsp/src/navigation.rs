//! Where a name is declared and used, and renaming it.

use check::names::{Names, Occurrence};
use diag::{SourceFile, Span};
use lsp_types::TextEdit;
use syntax::lexer::Kind;

use crate::document::{Analysis, Document, tokens};

/// Where the name at an offset is declared.
pub fn definition(analysis: &Analysis, offset: u32) -> Option<Span> {
    let one = analysis.names.at(offset)?;
    Some(analysis.names.symbols[one.symbol].definition)
}

/// All places of the name at an offset. A register of a range is one name, its declaration is that of the range.
pub fn references(analysis: &Analysis, offset: u32, with_declarations: bool) -> Vec<Occurrence> {
    let Some(here) = analysis.names.at(offset) else { return Vec::new() };
    let is_same = |one: &&Occurrence| {
        one.symbol == here.symbol
            && (one.member == here.member || here.member.is_none() || one.declares)
            && (with_declarations || !one.declares)
    };
    analysis.names.occurrences.iter().filter(is_same).copied().collect()
}

/// The name at an offset, if it can be renamed.
///
/// # Errors
/// Why not.
pub fn renameable(document: &Document, analysis: &Analysis, offset: u32) -> Result<Span, String> {
    let Some(one) = analysis.names.at(offset) else {
        let word = document.token(offset).map(|token| document.source().slice(token.span));
        return Err(format!("'{}' is no name that this file declares", word.unwrap_or_default()));
    };
    let symbol = &analysis.names.symbols[one.symbol];
    match (one.member, symbol.count) {
        (Some(number), Some(count)) => Err(format!(
            "'{name}{number}' is one of the names that `{name}<{count}>` declares: rename '{name}' there",
            name = symbol.name
        )),
        _ => Ok(one.span),
    }
}

/// The edits that give the name at an offset a new one.
///
/// # Errors
/// Why that cannot be: the new name is none, or the text would then mean something else.
pub fn rename(
    document: &Document,
    analysis: &Analysis,
    offset: u32,
    new: &str,
) -> Result<Vec<TextEdit>, String> {
    let here = renameable(document, analysis, offset)?;
    let old = document.source().slice(here);
    let words: Vec<_> = tokens(new).collect();
    let is_name =
        matches!(words.as_slice(), [word] if word.kind == Kind::Identifier && word.span.len() == new.len());
    if !is_name {
        return Err(format!("'{new}' is no name of PTX"));
    }
    let names = &analysis.names;
    let is_range = names.at(offset).is_some_and(|one| names.symbols[one.symbol].count.is_some());
    if is_range && new.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "`{new}<N>` declares nothing that could be named: the digits would be part of the number"
        ));
    }
    let spans: Vec<Span> = references(analysis, offset, true)
        .iter()
        .map(|one| Span::new(one.span.start, one.span.start + old.len() as u32))
        .collect();
    let (mut text, mut at) = (String::new(), 0);
    for span in &spans {
        text += &document.text()[at..span.start as usize];
        text += new;
        at = span.end as usize;
    }
    text += &document.text()[at..];
    let renamed = SourceFile::new(document.source().name(), text);
    if structure(&Names::of(&syntax::parse(&renamed).0)) != structure(names) {
        return Err(format!("'{new}' is another name already, or would hide one"));
    }
    let edit = |span: &Span| TextEdit { range: document.range(*span), new_text: new.to_owned() };
    Ok(spans.iter().map(edit).collect())
}

/// Which occurrences are of the same symbol.
fn structure(names: &Names) -> Vec<(usize, Option<u64>, bool)> {
    names.occurrences.iter().map(|one| (one.symbol, one.member, one.declares)).collect()
}
