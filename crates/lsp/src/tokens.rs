//! The kinds of all words of a file, for colours.

use check::names::{Kind as NameKind, Names};
use lsp_types::{SemanticToken, SemanticTokenType, SemanticTokensLegend};
use syntax::lexer::{Kind, comments};

use crate::document::{Document, tokens};

/// The kinds, in the order of their numbers.
const KINDS: [&str; 13] = [
    "comment",
    "string",
    "number",
    "operator",
    "keyword",
    "modifier",
    "type",
    "macro",
    "variable",
    "parameter",
    "property",
    "function",
    "label",
];

/// What the numbers mean.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: KINDS.map(SemanticTokenType::new).to_vec(),
        token_modifiers: Vec::new(),
    }
}

fn number_of(kind: &str) -> u32 {
    KINDS.iter().position(|known| *known == kind).unwrap_or_default() as u32
}

/// The words of a file.
pub fn semantic_tokens(document: &Document, names: &Names) -> Vec<SemanticToken> {
    let text = document.text();
    let mut out = Writer { text, at: 0, line: 0, column: 0, last: (0, 0), found: Vec::new() };
    let mut names_left = names.occurrences.iter().peekable();
    // Whether a statement begins, and whether modifiers may follow.
    let (mut begins, mut in_head, mut in_guard) = (true, false, 0);
    for token in tokens(text) {
        let range = token.span.range();
        out.comments(range.start);
        while names_left.next_if(|one| one.span.start < token.span.start).is_some() {}
        let name = names_left.peek().filter(|one| one.span == token.span);
        let kind = match token.kind {
            Kind::String => "string",
            Kind::Integer | Kind::Double | Kind::Single => "number",
            Kind::WarpSize => "variable",
            Kind::Version => "macro",
            Kind::Dotted if in_head => match isa::Token::from_name(&text[range.start + 1..range.end]) {
                Some(isa::Token::Type(_)) => "type",
                _ => "modifier",
            },
            Kind::Dotted => match isa::Type::from_name(&text[range.start + 1..range.end]) {
                Some(_) => "type",
                None if text[..range.start].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                    "property"
                }
                None => "macro",
            },
            Kind::Identifier => match name.map(|one| names.symbols[one.symbol].kind) {
                Some(NameKind::Register | NameKind::Variable) => "variable",
                Some(NameKind::Parameter) => "parameter",
                Some(NameKind::Kernel | NameKind::Function) => "function",
                Some(NameKind::Label | NameKind::Table) => "label",
                None if begins && in_guard == 0 => "keyword",
                None => "variable",
            },
            _ => "operator",
        };
        in_head = kind == "keyword" || in_head && token.kind == Kind::Dotted;
        in_guard = match token.kind {
            Kind::At => 1,
            Kind::Exclamation if in_guard == 1 => 1,
            _ => 0,
        };
        let starts = matches!(
            token.kind,
            Kind::Semicolon | Kind::LeftBrace | Kind::RightBrace | Kind::Colon | Kind::At
        );
        // What follows a guard begins the instruction.
        begins = starts || begins && matches!(token.kind, Kind::Exclamation) || begins && kind == "variable";
        if kind != "operator" {
            out.word(range, number_of(kind));
        } else {
            out.skip(range.end);
        }
    }
    out.comments(text.len());
    out.found
}

/// Counts lines and units of UTF-16 while it goes through the text.
struct Writer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    column: u32,
    /// The line and the column of the last token.
    last: (u32, u32),
    found: Vec<SemanticToken>,
}

impl Writer<'_> {
    /// Goes to an offset.
    fn skip(&mut self, to: usize) {
        let between = &self.text[self.at..to];
        let bytes = between.as_bytes();
        let is_end = |at: usize| {
            bytes[at] == b'\n'
                || bytes[at] == b'\r' && self.text.as_bytes().get(self.at + at + 1) != Some(&b'\n')
        };
        let mut start = None;
        for at in 0..bytes.len() {
            if is_end(at) {
                self.line += 1;
                start = Some(at + 1);
            }
        }
        let on_line = &between[start.unwrap_or(0)..];
        let units = if on_line.is_ascii() { on_line.len() } else { on_line.encode_utf16().count() };
        self.column = units as u32 + if start.is_some() { 0 } else { self.column };
        self.at = to;
    }

    /// Writes a token that is on one line.
    fn word(&mut self, range: std::ops::Range<usize>, token_type: u32) {
        self.skip(range.start);
        let (line, column) = (self.line, self.column);
        self.skip(range.end);
        if self.line != line || self.column == column {
            return;
        }
        let delta_line = line - self.last.0;
        let delta_start = if delta_line == 0 { column - self.last.1 } else { column };
        self.last = (line, column);
        let length = self.column - column;
        self.found.push(SemanticToken {
            delta_line,
            delta_start,
            length,
            token_type,
            token_modifiers_bitset: 0,
        });
    }

    /// Writes the comments before an offset, line by line.
    fn comments(&mut self, to: usize) {
        let start = self.at;
        let gap = &self.text[start..to];
        if gap.bytes().all(|byte| byte.is_ascii_whitespace()) {
            return;
        }
        for comment in comments(gap) {
            let mut at = start + comment.start;
            for line in gap[comment].split_inclusive(['\n', '\r']) {
                let shown = line.trim_end_matches(['\r', '\n']).len();
                self.word(at..at + shown, 0);
                at += line.len();
            }
        }
    }
}
