//! Declarations of variables and their initializers (PTX ISA, "Variables").

use diag::{Code, Diagnostic};

use super::{MAX_DEPTH, Parsed, Parser, is_directive, is_space, is_type};
use crate::lexer::Kind;
use crate::tree::{
    Apply, Attribute, Binary, BinaryOp, Declarator, Field, Initializer, InitializerList, Linkage, Name,
    Operand, Qualifiers, Variable,
};

impl<'a> Parser<'a> {
    /// Whether the current token begins a declaration.
    pub(super) fn starts_variable(&self) -> bool {
        self.dotted().is_some_and(|word| {
            is_space(word) || is_type(word) || matches!(word, "align" | "attribute" | "v2" | "v4")
        })
    }

    /// A declaration up to its `;`. After an error in its names, the names before it are kept, so that later stages
    /// know them.
    pub(super) fn variable(&mut self, linkage: Option<Linkage<'a>>) -> Parsed<Box<Variable<'a>>> {
        let start = linkage.as_ref().map_or(self.token.span.start, |linkage| linkage.span.start);
        let (space, qualifiers) = self.qualifiers()?;
        let mut declarators = Vec::new();
        let names = match self.token.kind {
            Kind::Semicolon => Ok(()),
            _ => self.declarators(&mut declarators),
        };
        if names.and_then(|()| self.semicolon("declaration")).is_err() {
            self.recover_in_body();
        }
        let span = self.since(start);
        Ok(Box::new(Variable { linkage, space, qualifiers, declarators, span }))
    }

    /// State space, attributes, alignment and vector, in any order that ptxas accepts; the type ends them.
    pub(super) fn qualifiers(&mut self) -> Parsed<(Option<Name<'a>>, Qualifiers<'a>)> {
        let start = self.token.span.start;
        let (mut space, mut attributes, mut align) = (None, Vec::new(), None);
        let help =
            "a declaration is written `.global .align 4 .u32 name;`: state space, alignment, type, name";
        loop {
            let Some(word) = self.dotted() else {
                return Err(self.fail(help));
            };
            match word {
                "align" => {
                    self.advance();
                    align = Some(self.length("an alignment is a number: `.align 8`")?);
                }
                "attribute" => self.attributes(&mut attributes)?,
                _ if is_space(word) => {
                    if let Some(Name { span, .. }) = space {
                        let code = Code::MultipleStateSpaces;
                        let error =
                            Diagnostic::error(code, self.token.span, "Multiple state spaces specified")
                                .label(span, "the first is here")
                                .help("a variable lives in one state space");
                        self.report(error);
                    }
                    space = Some(self.take_name());
                }
                _ => break,
            }
        }
        let vector = matches!(self.dotted(), Some("v2" | "v4")).then(|| self.take_name());
        let Some(word) = self.dotted() else {
            return Err(self.fail(help));
        };
        if !is_type(word) {
            let failed = self.fail(match word {
                "bf16" => "declare it with `.b16`: .bf16 may only be used as an instruction type",
                "bf16x2" | "u8x4" | "s8x4" => {
                    "declare it with `.b32`: packed types may only be used as instruction types"
                }
                "tf32" => "declare it with `.b32`: .tf32 may only be used as an instruction type",
                _ => "write a type like `.u32`, `.b64` or `.f32`",
            });
            // A declaration with a wrong type still declares its names.
            if is_directive(word) || is_space(word) || self.peek().kind != Kind::Identifier {
                return Err(failed);
            }
        }
        let ty = self.take_name();
        Ok((space, Qualifiers { attributes, align, vector, ty, span: self.since(start) }))
    }

    /// `.attribute( .managed, .unified(1, 2) )`, if the current token begins it.
    pub(super) fn attributes(&mut self, attributes: &mut Vec<Attribute<'a>>) -> Parsed<()> {
        while self.dotted() == Some("attribute") {
            self.advance();
            self.expect(Kind::LeftParen, "attributes stand in parentheses: `.attribute(.managed)`")?;
            let list = self.separated(|p| {
                let known = matches!(p.dotted(), Some("managed" | "unified"));
                if !known {
                    return Err(p.fail("the attributes are `.managed` and `.unified(uuid1, uuid2)`"));
                }
                let name = p.take_name();
                let mut arguments = Vec::new();
                if name.text == "unified" {
                    let help = "`.unified` takes two numbers: `.unified(uuid1, uuid2)`";
                    p.expect(Kind::LeftParen, help)?;
                    arguments.push(Operand::Literal(p.integer(help)?));
                    p.expect(Kind::Comma, help)?;
                    arguments.push(Operand::Literal(p.integer(help)?));
                    p.expect(Kind::RightParen, help)?;
                }
                let arguments = arguments.into();
                Ok(Attribute { name, arguments, span: p.since(name.span.start) })
            })?;
            attributes.extend(list);
            self.expect(Kind::RightParen, "close the list of attributes with `)`")?;
        }
        Ok(())
    }

    fn declarators(&mut self, declarators: &mut Vec<Declarator<'a>>) -> Parsed<()> {
        loop {
            self.statement_node();
            let name = self.identifier("the name of a variable stands here")?;
            let mut declarator = Declarator {
                name,
                count: None,
                dimensions: Box::default(),
                initializer: None,
                span: name.span,
            };
            let rest = self.declarator_rest(&mut declarator);
            declarator.span = self.since(name.span.start);
            declarators.push(declarator);
            rest?;
            if !self.eat(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// The rest of a declarator after its name.
    fn declarator_rest(&mut self, declarator: &mut Declarator<'a>) -> Parsed<()> {
        if self.eat(Kind::Less) {
            declarator.count = Some(self.length("the number of names stands here: `%r<100>`")?);
            self.expect(Kind::Greater, "close it with `>`: `%r<100>`")?;
        } else {
            let mut dimensions = Vec::new();
            while self.at(Kind::LeftBracket) {
                self.node();
                dimensions.push(self.dimension(dimensions.is_empty())?);
            }
            declarator.dimensions = dimensions.into();
        }
        if self.eat(Kind::Assign) {
            declarator.initializer = Some(self.initializer()?);
        }
        Ok(())
    }

    /// `[4]`; or `[]`, if `may_be_empty`.
    pub(super) fn dimension(&mut self, may_be_empty: bool) -> Parsed<Option<Operand<'a>>> {
        self.advance();
        if may_be_empty && self.eat(Kind::RightBracket) {
            return Ok(None);
        }
        let length = self.length("the length of an array is a number, not an expression")?;
        self.expect(Kind::RightBracket, "close the length with `]`")?;
        Ok(Some(length))
    }

    /// The initial value after `=`.
    fn initializer(&mut self) -> Parsed<Initializer<'a>> {
        self.node();
        if !self.at(Kind::LeftBrace) {
            return self.initial_value();
        }
        if self.depth == MAX_DEPTH {
            return Err(self.too_deep("braces"));
        }
        let start = self.advance().span.start;
        self.braces += 1;
        self.depth += 1;
        let values = match self.at(Kind::RightBrace) {
            true => Ok(Vec::new()),
            false => self.separated(Self::initializer),
        };
        self.depth -= 1;
        let values = values?;
        self.expect(Kind::RightBrace, "values are separated by `,` and end with `}`")?;
        self.braces -= 1;
        Ok(Initializer::List(Box::new(InitializerList { values, span: self.since(start) })))
    }

    #[inline(never)]
    fn initial_value(&mut self) -> Parsed<Initializer<'a>> {
        if self.at(Kind::Identifier) && self.peek().kind == Kind::Assign {
            let name = self.take_name();
            self.advance();
            let value = match self.token.kind {
                Kind::Identifier => Operand::Name(self.take_name()),
                _ => self.expression()?,
            };
            let span = self.since(name.span.start);
            return Ok(Initializer::Field(Box::new(Field { name, value, span })));
        }
        let start = self.token.span.start;
        let mask = self.at(Kind::Integer) && self.peek().kind == Kind::LeftParen;
        let value = if mask {
            let function = Operand::Literal(self.take_literal());
            self.advance();
            let argument = self.symbol()?;
            self.expect(Kind::RightParen, "close the masked address with `)`")?;
            Operand::Apply(Box::new(Apply { function, argument, span: self.since(start) }))
        } else if self.at(Kind::Identifier) {
            self.symbol()?
        } else {
            self.expression()?
        };
        Ok(Initializer::Value(value))
    }

    /// `sym` or `generic(sym)`, each optionally with `+ constant`.
    fn symbol(&mut self) -> Parsed<Operand<'a>> {
        let name = self.identifier("the name of a variable or function stands here")?;
        let start = name.span.start;
        let mut symbol = Operand::Name(name);
        if name.text == "generic" && self.eat(Kind::LeftParen) {
            let argument = Operand::Name(self.identifier("the name of a variable stands here")?);
            self.expect(Kind::RightParen, "write `generic(name)+offset`")?;
            symbol = Operand::Apply(Box::new(Apply { function: symbol, argument, span: self.since(start) }));
        }
        if self.eat(Kind::Plus) {
            let right = self.expression()?;
            let span = self.since(start);
            symbol = Operand::Binary(Box::new(Binary { op: BinaryOp::Add, left: symbol, right, span }));
        }
        Ok(symbol)
    }
}
