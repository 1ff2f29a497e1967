//! Lays a file out as the printer does, and keeps its comments and tokens as they are.
//!
//! The white space before a token is what the printer writes before it. The printer knows no comments, and leaves out
//! parentheses without a meaning; so tokens of the file are compared with those of the print, and what only the
//! file has stays as it stands there. A blank line between statements stays, too; of several, one does.

use diag::SourceFile;

use crate::lexer::{Kind, Lexer, comments};

/// How far to look for the next token that file and print have in common.
const LOOKAHEAD: usize = 8;

/// A token, and the text between the token before it and this one.
struct Piece<'a> {
    gap: &'a str,
    text: &'a str,
}

/// The file in the layout of the printer, with all of its comments. `None` if the file has syntax errors: what the
/// tree lacks cannot be laid out.
pub fn format(source: &SourceFile) -> Option<String> {
    let (tree, errors) = crate::parse(source);
    if errors.iter().any(diag::Diagnostic::is_error) {
        return None;
    }
    let print = tree.to_string();
    let (own, own_end) = pieces(source.text());
    let (printed, _) = pieces(&print);
    let mut out = Layout { text: String::with_capacity(print.len()), depth: 0 };
    let mut at = 0;
    // Whether the token before is a parenthesis that only the file has.
    let mut opened = false;
    for (index, piece) in own.iter().enumerate() {
        let here = match printed.get(at) {
            Some(there) if there.text == piece.text => Some(at),
            // One of the two has tokens that the other lacks.
            _ => skipped(&own[index..], printed.get(at..).unwrap_or_default()).map(|skip| at + skip),
        };
        at = here.unwrap_or(at);
        let between = match printed.get(at) {
            _ if index == 0 => "\n",
            _ if opened || here.is_none() && piece.text == ")" => "",
            Some(there) => there.gap,
            None => " ",
        };
        opened = here.is_none() && piece.text == "(";
        at += usize::from(here.is_some());
        out.gap(piece.gap, between, piece.text == "}");
        out.text.push_str(piece.text);
    }
    out.gap(own_end, "\n", false);
    // A comment at the end of the file has its line feed already.
    let end = out.text.trim_end().len();
    out.text.truncate(end);
    if !out.text.is_empty() {
        out.text.push('\n');
    }
    Some(out.text)
}

/// The number of tokens that only the print has here; `None` if the next token is one that only the file has.
fn skipped(own: &[Piece], printed: &[Piece]) -> Option<usize> {
    let next = own.first()?.text;
    let in_print = printed.iter().take(LOOKAHEAD).position(|piece| piece.text == next)?;
    let expected = printed.first()?.text;
    let in_file = own.iter().take(LOOKAHEAD).position(|piece| piece.text == expected);
    (in_file.is_none_or(|in_file| in_print < in_file)).then_some(in_print)
}

/// The tokens of a text, and what follows the last one.
fn pieces(text: &str) -> (Vec<Piece<'_>>, &str) {
    let mut lexer = Lexer::new(text);
    let (mut pieces, mut end) = (Vec::new(), 0);
    loop {
        let token = lexer.token();
        if matches!(token.kind, Kind::End | Kind::EndInComment) {
            return (pieces, &text[end..]);
        }
        let range = token.span.range();
        pieces.push(Piece { gap: &text[end..range.start], text: &text[range.clone()] });
        end = range.end;
    }
}

struct Layout {
    text: String,
    /// The number of tabs at the start of the current line.
    depth: usize,
}

impl Layout {
    /// Writes what is between two tokens: `between` of the printer, and the comments and blank lines of `gap`.
    /// `closes` if a closing brace follows: comments before it are indented as what it closes.
    fn gap(&mut self, gap: &str, between: &str, closes: bool) {
        let breaks = between.contains('\n');
        if breaks {
            self.depth = between.len() - between.rfind('\n').map_or(0, |at| at + 1);
        }
        let depth = self.depth;
        let inner = depth + usize::from(closes);
        let mut end = 0;
        let mut on_line = !self.text.is_empty();
        let mut must_break = false;
        for comment in comments(gap) {
            let lines = gap[end..comment.start].matches('\n').count();
            if on_line && lines == 0 && !must_break {
                self.text.push_str(if self.text.ends_with([' ', '\t', '\n']) { "" } else { " " });
            } else {
                self.line(lines > 1 && on_line, if breaks { inner } else { depth + 1 });
            }
            self.text.push_str(gap[comment.clone()].trim_end());
            must_break = !gap[comment.clone()].starts_with("/*") && !gap[comment.clone()].starts_with("@@");
            on_line = true;
            end = comment.end;
        }
        let lines = gap[end..].matches('\n').count();
        if breaks {
            if on_line {
                self.line(lines > 1 && !closes, depth);
            }
        } else if must_break {
            self.line(false, depth + 1);
        } else if end > 0 && self.text.ends_with("@@DWARF") {
            self.text.push(' ');
        } else if end > 0 && lines > 0 {
            // A comment with its own lines, in front of what the printer puts on the same line.
            self.line(false, if self.text.is_empty() { 0 } else { depth });
        } else if end > 0 {
            self.text.push_str(if between.is_empty() { " " } else { between });
        } else {
            self.text.push_str(between);
        }
    }

    /// Begins a line, after a blank one if that is asked for.
    fn line(&mut self, blank: bool, depth: usize) {
        let length = self.text.trim_end_matches([' ', '\t']).len();
        self.text.truncate(length);
        if length > 0 {
            self.text.push_str(if blank { "\n\n" } else { "\n" });
        }
        self.text.extend(std::iter::repeat_n('\t', depth));
    }
}
