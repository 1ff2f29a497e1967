//! Operands and constant expressions (PTX ISA, "Instruction Operands", "Constant Expressions").

use super::{MAX_DEPTH, Parsed, Parser, is_directive, is_space, is_type};
use crate::lexer::Kind;
use crate::tree::{
    Address, Binary, BinaryOp, Cast, Element, Index, Name, Operand, OperandList, Pair, Ternary, Unary,
    UnaryOp,
};

impl<'a> Parser<'a> {
    /// The first operand. Only this one may be `_`, `p|q`, `_|q`, `p|_` or `{…}|p`.
    pub(super) fn destination(&mut self) -> Parsed<Operand<'a>> {
        let start = self.token.span.start;
        let sink = self.at(Kind::Underscore);
        let plain = self.at(Kind::Identifier);
        let first = if sink {
            self.node();
            Operand::Sink(self.take_name())
        } else {
            self.operand()?
        };
        let may_pair = match first {
            Operand::Sink(_) | Operand::Vector(_) => true,
            Operand::Name(_) => plain,
            _ => false,
        };
        if !may_pair || !self.eat(Kind::Bar) {
            return Ok(first);
        }
        self.node();
        let second = match self.token.kind {
            Kind::Identifier => Operand::Name(self.take_name()),
            Kind::Underscore if plain => Operand::Sink(self.take_name()),
            _ => {
                return Err(
                    self.fail("the second destination is a predicate register, or `_` if the first is not")
                );
            }
        };
        Ok(Operand::Pair(Box::new(Pair { first, second, span: self.since(start) })))
    }

    /// Any other operand.
    pub(super) fn operand(&mut self) -> Parsed<Operand<'a>> {
        self.node();
        self.operators = 0;
        match self.token.kind {
            Kind::Identifier => self.named(),
            Kind::LeftBracket => self.address(),
            Kind::LeftBrace => self.vector(),
            Kind::Minus | Kind::Exclamation if self.peek().kind == Kind::Identifier => {
                let token = self.advance();
                let op = if token.kind == Kind::Minus { UnaryOp::Minus } else { UnaryOp::Not };
                let name = self.take_name();
                let value = match op {
                    UnaryOp::Minus => self.element(name)?,
                    _ => Operand::Name(name),
                };
                Ok(Operand::Unary(Box::new(Unary { op, value, span: self.since(token.span.start) })))
            }
            _ => self.constant(),
        }
    }

    /// `name`, `name.x`, `name+4`, `name[4]`
    fn named(&mut self) -> Parsed<Operand<'a>> {
        let name = self.take_name();
        match self.token.kind {
            Kind::Dotted => self.element(name),
            Kind::Plus => self.offset(name),
            Kind::LeftBracket => {
                self.advance();
                let index = match self.token.kind {
                    Kind::Identifier => {
                        let name = self.take_name();
                        self.offset(name)?
                    }
                    _ => self.constant()?,
                };
                self.expect(Kind::RightBracket, "close the index with `]`")?;
                Ok(Operand::Index(Box::new(Index { base: name, index, span: self.since(name.span.start) })))
            }
            _ => Ok(Operand::Name(name)),
        }
    }

    /// A name, with its element if it has one.
    fn element(&mut self, base: Name<'a>) -> Parsed<Operand<'a>> {
        match self.dotted() {
            None => Ok(Operand::Name(base)),
            Some(word) if is_directive(word) || is_space(word) || matches!(word, "v2" | "v4" | "v8") => {
                Err(self.fail("an element is named `.x`, `.y`, `.z` or `.w`"))
            }
            Some(_) => {
                let component = self.take_name();
                let span = self.since(base.span.start);
                Ok(Operand::Element(Box::new(Element { base, component, span })))
            }
        }
    }

    /// A name, with `+ constant` if that follows.
    fn offset(&mut self, name: Name<'a>) -> Parsed<Operand<'a>> {
        let left = Operand::Name(name);
        if !self.eat(Kind::Plus) {
            return Ok(left);
        }
        let right = self.constant()?;
        let span = self.since(name.span.start);
        Ok(Operand::Binary(Box::new(Binary { op: BinaryOp::Add, left, right, span })))
    }

    /// `{a, 1, _}`
    fn vector(&mut self) -> Parsed<Operand<'a>> {
        let start = self.advance().span.start;
        self.braces += 1;
        let elements = self.separated(|p| {
            p.node();
            match p.token.kind {
                Kind::Underscore => Ok(Operand::Sink(p.take_name())),
                Kind::Identifier => {
                    let name = p.take_name();
                    p.element(name)
                }
                _ => p.expression(),
            }
        })?;
        self.expect(Kind::RightBrace, "the elements of a vector are separated by `,` and end with `}`")?;
        self.braces -= 1;
        let operands = elements.into();
        Ok(Operand::Vector(Box::new(OperandList { operands, span: self.since(start) })))
    }

    /// `[name]`, `[name+4]`, `[4]`, `[tensor, {x, y}]`, `[texture, sampler, {x, y}]`
    fn address(&mut self) -> Parsed<Operand<'a>> {
        let start = self.advance().span.start;
        let mut coordinates = Vec::new();
        let help = "an address is written `[name]`, `[name+4]` or `[name+-4]`";
        let location = if self.at(Kind::Identifier) {
            let name = self.take_name();
            if self.at(Kind::Plus) {
                self.offset(name)?
            } else {
                self.coordinates(&mut coordinates)?;
                Operand::Name(name)
            }
        } else if self.at(Kind::RightBracket) {
            return Err(self.fail(help));
        } else {
            self.constant()?
        };
        self.expect(Kind::RightBracket, help)?;
        let coordinates = coordinates.into();
        Ok(Operand::Address(Box::new(Address { location, coordinates, span: self.since(start) })))
    }

    /// Names, and a vector at the end.
    fn coordinates(&mut self, coordinates: &mut Vec<Operand<'a>>) -> Parsed<()> {
        while self.eat(Kind::Comma) {
            match self.token.kind {
                Kind::Identifier => {
                    self.node();
                    coordinates.push(Operand::Name(self.take_name()));
                }
                Kind::LeftBrace => {
                    self.node();
                    coordinates.push(self.vector()?);
                    return Ok(());
                }
                _ => return Err(self.fail("coordinates are a vector: `[texture, {x, y}]`")),
            }
        }
        // Without a vector, an address has at most three names, its location included.
        if coordinates.len() > 2 { Err(self.fail("a vector of coordinates is missing")) } else { Ok(()) }
    }

    /// A whole constant expression.
    pub(super) fn expression(&mut self) -> Parsed<Operand<'a>> {
        self.operators = 0;
        self.constant()
    }

    /// A constant expression, or part of one: a `0f` literal or operators over everything else.
    fn constant(&mut self) -> Parsed<Operand<'a>> {
        if self.at(Kind::Single) {
            return Ok(Operand::Literal(self.take_literal()));
        }
        let start = self.token.span.start;
        let condition = self.binary(1)?;
        if !self.at(Kind::Question) {
            return Ok(condition);
        }
        self.operator()?;
        self.advance();
        let yes = self.constant()?;
        self.expect(Kind::Colon, "a condition is written `a ? b : c`")?;
        let no = self.constant()?;
        Ok(Operand::Ternary(Box::new(Ternary { condition, yes, no, span: self.since(start) })))
    }

    /// Operators of at least this level, by precedence climbing.
    fn binary(&mut self, level: u8) -> Parsed<Operand<'a>> {
        let start = self.token.span.start;
        let mut left = self.unary()?;
        while let Some(op) = binary_op(self.token.kind).filter(|op| op.level() >= level) {
            self.operator()?;
            self.advance();
            let right = self.binary(op.level() + 1)?;
            left = Operand::Binary(Box::new(Binary { op, left, right, span: self.since(start) }));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Operand<'a>> {
        let start = self.token.span.start;
        let op = match self.token.kind {
            Kind::Integer | Kind::Double => return Ok(Operand::Literal(self.take_literal())),
            Kind::WarpSize => return Ok(Operand::WarpSize(self.take_name())),
            Kind::LeftParen => return self.parenthesis(),
            Kind::Plus => UnaryOp::Plus,
            Kind::Minus => UnaryOp::Minus,
            Kind::Exclamation => UnaryOp::Not,
            Kind::Tilde => UnaryOp::Complement,
            Kind::Dotted
                if matches!(
                    self.dotted(),
                    Some("tid" | "ntid" | "ctaid" | "nctaid" | "laneid" | "warpid")
                ) =>
            {
                return Err(self.fail("special registers begin with a percent sign: `%tid.x`"));
            }
            _ => return Err(self.fail("an operand is missing here, or is of a kind that cannot stand here")),
        };
        self.operator()?;
        self.advance();
        let value = self.unary()?;
        Ok(Operand::Unary(Box::new(Unary { op, value, span: self.since(start) })))
    }

    /// `(constant)` or `(.s64) constant`
    fn parenthesis(&mut self) -> Parsed<Operand<'a>> {
        self.operator()?;
        let start = self.advance().span.start;
        let help = "close it with `)`";
        if !self.at(Kind::Dotted) {
            let value = self.constant()?;
            self.expect(Kind::RightParen, help)?;
            return Ok(value);
        }
        if !self.dotted().is_some_and(is_type) {
            return Err(self.fail("a cast is written `(.s64)` or `(.u64)`"));
        }
        let ty = self.take_name();
        self.expect(Kind::RightParen, help)?;
        let value = self.unary()?;
        Ok(Operand::Cast(Box::new(Cast { ty, value, span: self.since(start) })))
    }

    /// Counts an operator, and rejects it if there are too many.
    fn operator(&mut self) -> Parsed<()> {
        self.node();
        self.operators += 1;
        if self.operators > MAX_DEPTH { Err(self.too_deep("operators")) } else { Ok(()) }
    }
}

/// The binary operator of a token.
fn binary_op(kind: Kind) -> Option<BinaryOp> {
    Some(match kind {
        Kind::Star => BinaryOp::Mul,
        Kind::Slash => BinaryOp::Div,
        Kind::Percent => BinaryOp::Rem,
        Kind::Plus => BinaryOp::Add,
        Kind::Minus => BinaryOp::Sub,
        Kind::ShiftLeft => BinaryOp::Shl,
        Kind::ShiftRight => BinaryOp::Shr,
        Kind::Less => BinaryOp::Lt,
        Kind::Greater => BinaryOp::Gt,
        Kind::LessEqual => BinaryOp::Le,
        Kind::GreaterEqual => BinaryOp::Ge,
        Kind::Equal => BinaryOp::Eq,
        Kind::NotEqual => BinaryOp::Ne,
        Kind::Ampersand => BinaryOp::And,
        Kind::Caret => BinaryOp::Xor,
        Kind::Bar => BinaryOp::Or,
        Kind::AndAnd => BinaryOp::LogicalAnd,
        Kind::OrOr => BinaryOp::LogicalOr,
        _ => return None,
    })
}
