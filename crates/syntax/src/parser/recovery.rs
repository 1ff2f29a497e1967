//! Error recovery: finds the token at which parsing continues, so that one run reports every error of a file.

use super::Parser;
use crate::lexer::{Kind, Token};

impl<'a> Parser<'a> {
    /// Skips the rest of a statement: past its `;`, or to a brace or a line that begins a new statement.
    fn skip_statement_to(&mut self, stop_at_block: bool) {
        while !self.at_end() {
            match self.token.kind {
                Kind::Semicolon => {
                    self.advance();
                    break;
                }
                // The braces of a vector or an initializer belong to the statement.
                Kind::RightBrace if self.braces > 0 => {
                    self.braces -= 1;
                    self.advance();
                }
                Kind::RightBrace => break,
                Kind::LeftBrace if stop_at_block && self.braces == 0 && self.token.first_on_line => break,
                Kind::LeftBrace => {
                    self.braces += 1;
                    self.advance();
                }
                _ if self.starts_line_of_code() => break,
                _ => {
                    self.advance();
                }
            }
        }
        self.braces = 0;
    }

    /// After an error in a statement of a body.
    pub(super) fn recover_in_body(&mut self) {
        self.skip_statement_to(true);
    }

    /// After an error outside functions: goes to the next directive that begins an item. The directive must begin a
    /// line or follow a finished construct, because `.global` is also a modifier.
    pub(super) fn recover_at_top(&mut self) {
        self.braces = 0;
        let mut finished = false;
        while !self.at_end() && !((self.token.first_on_line || finished) && self.starts_item(self.token)) {
            let token = self.advance();
            finished = matches!(token.kind, Kind::Semicolon | Kind::RightBrace);
        }
    }

    /// After an error in the head of a function: goes to its body, its `;`, or the next item.
    pub(super) fn recover_in_head(&mut self) {
        let ends = |p: &Self| {
            matches!(p.token.kind, Kind::LeftBrace | Kind::RightBrace | Kind::Semicolon)
                || (p.token.first_on_line && p.starts_item(p.token))
        };
        loop {
            if self.dotted() == Some("pragma") {
                // In a head, the `;` after a `.pragma` ends only the `.pragma`.
                while !self.at_end() && !self.eat(Kind::Semicolon) {
                    self.advance();
                }
            } else if self.at_end() || ends(self) {
                break;
            } else {
                self.advance();
            }
        }
    }

    /// Skips a block that nests too deeply, with everything in it.
    pub(super) fn skip_block(&mut self) {
        let mut open = 0_usize;
        while !self.at_end() {
            match self.advance().kind {
                Kind::LeftBrace => open += 1,
                Kind::RightBrace => open -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
    }

    /// Whether the current token begins a line and could begin a statement.
    fn starts_line_of_code(&self) -> bool {
        if !self.token.first_on_line {
            return false;
        }
        match self.token.kind {
            Kind::At => true,
            Kind::Dotted => self.starts_item(self.token) || self.starts_declaration(self.token),
            Kind::Identifier => match self.peek().kind {
                Kind::Dotted | Kind::Colon | Kind::Semicolon | Kind::Identifier => true,
                Kind::LeftParen => self.text_of(self.token) == "call",
                _ => false,
            },
            _ => false,
        }
    }

    fn starts_declaration(&self, token: Token) -> bool {
        matches!(self.text_of(token), ".reg" | ".param" | ".local" | ".loc" | ".pragma")
    }

    /// Whether a token may begin an item.
    fn starts_item(&self, token: Token) -> bool {
        let word = || self.text_of(token);
        token.kind == Kind::Dotted
            && matches!(
                word(),
                ".visible"
                    | ".extern"
                    | ".weak"
                    | ".common"
                    | ".entry"
                    | ".func"
                    | ".global"
                    | ".const"
                    | ".shared"
                    | ".tex"
                    | ".alias"
                    | ".file"
                    | ".section"
                    | ".pragma"
            )
    }
}
