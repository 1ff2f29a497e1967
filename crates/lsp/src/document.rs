//! A file that the client has open: its text, positions in it, and what the check finds.

use check::names::Names;
use diag::{Diagnostic, SourceFile, Span};
use isa::{Target, Version};
use lsp_types::{Position, Range, TextDocumentContentChangeEvent};
use syntax::Tree;
use syntax::lexer::{Kind, Lexer, Token};
use syntax::tree::{Item, Operand};

/// An open file.
pub struct Document {
    source: SourceFile,
    /// The client's number of this text.
    pub version: i32,
    /// Offset of the first byte of each line. Unlike for `diag`, a lone carriage return ends one.
    lines: Vec<u32>,
    /// In ASCII, a byte is a unit of UTF-16.
    is_ascii: bool,
    analysis: Option<Analysis>,
}

/// What the check finds.
pub struct Analysis {
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Names and their places.
    pub names: Names,
}

impl Document {
    /// A file with this text.
    pub fn new(name: &str, text: String, version: i32) -> Document {
        let bytes = text.as_bytes();
        let ends =
            |&at: &usize| bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        let starts = (0..bytes.len()).filter(ends).map(|at| at as u32 + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        let is_ascii = text.is_ascii();
        Document { source: SourceFile::new(name, text), version, lines, is_ascii, analysis: None }
    }

    /// Makes the changes, one after the other.
    pub fn change(&mut self, changes: Vec<TextDocumentContentChangeEvent>, version: i32) {
        for change in changes {
            let mut text = self.text().to_owned();
            match change.range {
                None => text = change.text,
                Some(range) => {
                    let span = self.span(range);
                    text.replace_range(span.range(), &change.text);
                }
            }
            *self = Document::new(self.source.name(), text, version);
        }
        self.version = version;
    }

    /// The text and its name.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The tree of the text.
    pub fn tree(&self) -> Tree<'_> {
        syntax::parse(&self.source).0
    }

    /// What the check finds, after [`analyse`](Self::analyse).
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref()
    }

    /// Checks the text, unless that is done.
    pub fn analyse(&mut self, options: &check::Options) -> &Analysis {
        self.analysis.get_or_insert_with(|| {
            let (tree, parsed) = syntax::parse(&self.source);
            let names = Names::of(&tree);
            let (_, diagnostics) = check::check(&self.source, &tree, parsed, options);
            Analysis { diagnostics, names }
        })
    }

    /// The offset of a position. Behind the end of a line it is that end, and behind the last line the end of the text;
    /// within a character it is the character's start.
    pub fn offset(&self, position: Position) -> u32 {
        let line = position.line as usize;
        let Some(&start) = self.lines.get(line) else { return self.text().len() as u32 };
        let end = self.lines.get(line + 1).map_or(self.text().len(), |&next| next as usize);
        let text = self.text()[start as usize..end].trim_end_matches(['\r', '\n']);
        let wanted = position.character as usize;
        if self.is_ascii {
            return start + wanted.min(text.len()) as u32;
        }
        let mut units = 0;
        for (at, character) in text.char_indices() {
            if units + character.len_utf16() > wanted {
                return start + at as u32;
            }
            units += character.len_utf16();
        }
        start + text.len() as u32
    }

    /// The position of an offset.
    pub fn position(&self, offset: u32) -> Position {
        let offset = self.text().floor_char_boundary((offset as usize).min(self.text().len()));
        let line = self.lines.partition_point(|&start| start as usize <= offset) - 1;
        let before = &self.text()[self.lines[line] as usize..offset];
        let character = if self.is_ascii { before.len() } else { before.encode_utf16().count() };
        Position::new(line as u32, character as u32)
    }

    /// The bytes of a range, whose ends may be in any order.
    pub fn span(&self, range: Range) -> Span {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        Span::new(start.min(end), end.max(start))
    }

    /// The range of a span.
    pub fn range(&self, span: Span) -> Range {
        Range::new(self.position(span.start), self.position(span.end.max(span.start)))
    }

    /// The token at an offset or, between tokens, the one that ends there.
    pub fn token(&self, offset: u32) -> Option<Token> {
        let mut ends_here = None;
        for token in tokens(self.text()) {
            if token.span.start > offset {
                break;
            }
            if offset < token.span.end {
                return Some(token);
            }
            ends_here = (token.span.end == offset).then_some(token);
        }
        ends_here
    }
}

/// The tokens of a text.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut lexer = Lexer::new(text);
    std::iter::from_fn(move || {
        let token = lexer.token();
        (!matches!(token.kind, Kind::End | Kind::EndInComment)).then_some(token)
    })
}

/// The version and the target that instructions are checked against. Without them, the newest version, and a target that
/// has everything.
pub fn module_of(tree: &Tree, options: &check::Options) -> (Version, Target) {
    let (mut version, mut target) = (None, None);
    for item in &tree.items {
        let Item::Directive(directive) = item else { break };
        for argument in &directive.arguments {
            match argument {
                Operand::Literal(literal) if directive.name.text == "version" => {
                    version = version.or_else(|| Version::parse(literal.text));
                }
                Operand::Name(name) if directive.name.text == "target" => {
                    target = target.or_else(|| Target::parse(&name.text.replace("compute_", "sm_")));
                }
                _ => {}
            }
        }
    }
    let newest = Target::all().last().unwrap_or(Target::sm(u16::MAX));
    (version.unwrap_or(Version::MAX), options.target.or(target).unwrap_or(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_units_of_utf16() {
        let document = Document::new("f", "a\u{1f600}b\r\nc\rd\u{e9}\n".into(), 0);
        for (offset, line, character) in
            [(0, 0, 0), (1, 0, 1), (5, 0, 3), (6, 0, 4), (8, 1, 0), (10, 2, 0), (13, 2, 2), (14, 3, 0)]
        {
            let position = Position::new(line, character);
            assert_eq!((document.position(offset), document.offset(position)), (position, offset));
        }
        // Within a character, behind a line, behind the text.
        assert_eq!(document.offset(Position::new(0, 2)), 1);
        assert_eq!(document.offset(Position::new(0, 99)), 6);
        assert_eq!(document.offset(Position::new(99, 99)), 14);
        assert_eq!(document.offset(Position::new(u32::MAX, u32::MAX)), 14);
    }
}
