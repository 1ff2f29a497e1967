//! Debugging directives: `.file`, `.loc`, `.section` (PTX ISA, "Debugging Directives").

use diag::Span;

use super::{Parsed, Parser, is_directive, is_space, is_type};
use crate::lexer::{Kind, Token};
use crate::tree::{
    Binary, BinaryOp, File, Inlined, Loc, Name, Operand, Section, SectionData, SectionLine, Unary, UnaryOp,
};

impl<'a> Parser<'a> {
    /// `.file index "name" {, timestamp {, size}}`
    pub(super) fn file(&mut self) -> Parsed<File<'a>> {
        let start = self.advance().span.start;
        let help = "write `.file 1 \"name\"`";
        let index = self.integer(help)?;
        if !self.at(Kind::String) {
            return Err(self.fail(help));
        }
        let name = self.take_string();
        let (mut timestamp, mut size) = (None, None);
        if self.eat(Kind::Comma) {
            timestamp = Some(self.integer("the time stamp of the file is a number")?);
            if self.eat(Kind::Comma) {
                size = Some(self.integer("the size of the file is a number")?);
            }
        }
        Ok(File { index, name, timestamp, size, span: self.since(start) })
    }

    /// `.loc file line column {, function_name label {+ offset}, inlined_at file line column}`
    pub(super) fn loc(&mut self) -> Parsed<Loc<'a>> {
        let start = self.advance().span.start;
        let help = "write `.loc file line column`, three numbers";
        let (file, line, column) = (self.integer(help)?, self.integer(help)?, self.integer(help)?);
        let inlined = if self.at(Kind::Comma) { Some(self.inlined()?) } else { None };
        Ok(Loc { file, line, column, inlined, span: self.since(start) })
    }

    fn inlined(&mut self) -> Parsed<Inlined<'a>> {
        let help = "write `, function_name label+offset, inlined_at file line column`";
        let start = self.advance().span.start;
        self.word("function_name", help)?;
        let function_name = self.identifier(help)?;
        let offset = if self.eat(Kind::Plus) { Some(self.integer(help)?) } else { None };
        self.expect(Kind::Comma, help)?;
        self.word("inlined_at", help)?;
        let (file, line, column) = (self.integer(help)?, self.integer(help)?, self.integer(help)?);
        Ok(Inlined { function_name, offset, file, line, column, span: self.since(start) })
    }

    fn word(&mut self, word: &str, help: &'static str) -> Parsed<()> {
        if self.at(Kind::Identifier) && self.text_of(self.token) == word {
            self.advance();
            return Ok(());
        }
        Err(self.fail(help))
    }

    /// `.section .name { … }`. After an error in a line, parsing continues with the next.
    pub(super) fn section(&mut self) -> Parsed<Section<'a>> {
        let start = self.advance().span.start;
        let named =
            self.dotted().is_some_and(|word| !is_directive(word) && !is_space(word) && !is_type(word));
        if !named {
            return Err(self.fail("the name of a section begins with a dot: `.debug_info`"));
        }
        let name = self.take_name();
        let brace = self.expect(Kind::LeftBrace, "the data of a section stands in braces")?;
        let mut lines = Vec::new();
        while !self.eat(Kind::RightBrace) {
            if self.at_end() {
                self.unclosed(brace.span, self.token);
                break;
            }
            self.statement_node();
            match self.section_line() {
                Ok(line) => lines.push(line),
                Err(_) => {
                    if self.at(Kind::LeftBrace) {
                        self.skip_block();
                    }
                    let resumes = |p: &Self| p.at(Kind::Dotted) && p.token.first_on_line;
                    while !self.at_end() && !self.at(Kind::RightBrace) && !resumes(self) {
                        self.advance();
                    }
                    // Skip a token that cannot begin a line, so that the loop always advances.
                    if self.at(Kind::Dotted) && !self.dotted().is_some_and(is_type) {
                        self.advance();
                    }
                }
            }
        }
        Ok(Section { name, lines, span: self.since(start) })
    }

    fn section_line(&mut self) -> Parsed<SectionLine<'a>> {
        if self.at(Kind::Identifier) {
            let label = self.take_name();
            self.expect(Kind::Colon, "a label ends with `:`")?;
            return Ok(SectionLine::Label(label));
        }
        if !self.dotted().is_some_and(is_type) {
            return Err(self.fail("a section holds labels and lines like `.b8 1, 2`"));
        }
        let width = self.take_name();
        let values = match self.token.kind {
            Kind::Identifier | Kind::Dotted => vec![self.section_address()?],
            _ => self.separated(Self::section_number)?,
        };
        Ok(SectionLine::Data(SectionData {
            width,
            values: values.into(),
            span: self.since(width.span.start),
        }))
    }

    fn section_number(&mut self) -> Parsed<Operand<'a>> {
        self.node();
        let help = "a number, a label or the name of a section stands here";
        let start = self.token.span.start;
        if !self.eat(Kind::Minus) {
            return Ok(Operand::Literal(self.integer(help)?));
        }
        let value = Operand::Literal(self.integer(help)?);
        Ok(Operand::Unary(Box::new(Unary { op: UnaryOp::Minus, value, span: self.since(start) })))
    }

    /// `label`, `label+4`, `end-begin`, `.debug_str`, `.debug_str+4`
    fn section_address(&mut self) -> Parsed<Operand<'a>> {
        let token = self.token;
        let is_section = match self.dotted() {
            Some(word) if is_directive(word) || is_space(word) || is_type(word) => {
                return Err(self.fail("a number, a label or the name of a section stands here"));
            }
            dotted => dotted.is_some(),
        };
        self.advance();
        let left = Operand::Name(Name { text: self.text_of(token), span: token.span });
        let (op, right) = if self.eat(Kind::Plus) {
            (BinaryOp::Add, Operand::Literal(self.integer("the offset is a number")?))
        } else if !is_section && self.eat(Kind::Minus) {
            (
                BinaryOp::Sub,
                Operand::Name(self.identifier("write the difference of two labels: `end-begin`")?),
            )
        } else {
            return Ok(left);
        };
        Ok(Operand::Binary(Box::new(Binary { op, left, right, span: self.since(token.span.start) })))
    }

    /// Reports, at `token`, a brace that is not closed.
    pub(super) fn unclosed(&mut self, brace: Span, token: Token) {
        let error = self.unexpected_at(token, "close it with `}`").label(brace, "this `{` is never closed");
        self.report(error);
    }
}
