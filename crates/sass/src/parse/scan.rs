//! Characters and words.

use diag::{Code, Diagnostic, Span};

use super::{Parser, Result};

impl<'t> Parser<'t> {
    /// Skips blanks and comments, and returns the new position.
    pub(super) fn skip(&mut self) -> usize {
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let rest = &self.text[self.at..];
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                0
            };
            if comment == 0 {
                return self.at;
            }
            self.at += comment;
        }
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        self.skip();
        let found = self.text[self.at..].starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    pub(super) fn comma(&mut self) -> Result<()> {
        if self.eat(",") { Ok(()) } else { self.fail(self.at, "expected `,`", None) }
    }

    pub(super) fn bracket(&mut self, bracket: &str) -> Result<()> {
        if self.eat(bracket) { Ok(()) } else { self.fail(self.at, format!("expected `{bracket}`"), None) }
    }

    /// A 16-bit number with an optional sign, possibly hexadecimal.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let start = self.skip();
        let negative = self.eat("-");
        let word = self.word();
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) if !digits.starts_with('+') => i64::from_str_radix(digits, 16).ok(),
            Some(_) => None,
            None => word.parse().ok(),
        };
        match value.filter(|value| (0..=0xffff).contains(value)) {
            Some(value) => Ok(if negative { -value } else { value }),
            None => self.fail(start, format!("`{word}` is no number of 16 bits"), None),
        }
    }

    /// Letters, digits and `_`; for a number, also its point and the sign of its exponent.
    pub(super) fn word(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let number = bytes.get(start).is_some_and(|b| b.is_ascii_digit() || *b == b'.');
        let hex = self.text[start..].starts_with("0x");
        while let Some(&byte) = bytes.get(self.at) {
            let exponent = number
                && !hex
                && self.at > start
                && matches!(bytes[self.at - 1], b'e' | b'E')
                && matches!(byte, b'+' | b'-');
            if !(byte.is_ascii_alphanumeric() || byte == b'_' || number && byte == b'.' || exponent) {
                break;
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    pub(super) fn span(&self, start: usize) -> Span {
        Span::new(start as u32, self.at.max(start) as u32)
    }

    pub(super) fn fail<T>(
        &self,
        start: usize,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Result<T> {
        let mut diagnostic = Diagnostic::error(Code::SassSyntax, self.span(start), message);
        diagnostic.help = help;
        Err(Box::new(diagnostic))
    }
}
