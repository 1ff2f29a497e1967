//! Bodies of functions: blocks, statements, instructions.

use smallvec::SmallVec;

use super::{MAX_DEPTH, Parsed, Parser, is_directive};
use crate::lexer::{Kind, Token};
use crate::tree::{Block, CallPrototype, Guard, Instruction, Name, Operand, OperandList, Statement, Targets};

impl<'a> Parser<'a> {
    /// `{ … }`; the current token is the `{`. An unclosed block ends where the next function begins. Nested blocks
    /// are on an explicit stack, so that nesting does not use the thread's stack.
    pub(super) fn block(&mut self) -> Block<'a> {
        let mut outer = Vec::new();
        let (mut statements, mut brace) = (Vec::new(), self.advance().span);
        loop {
            let unclosed = self.cannot_be_in_body();
            if unclosed.is_some() || self.eat(Kind::RightBrace) {
                if let Some(token) = unclosed {
                    self.unclosed(brace, token);
                }
                let block = Block { statements, span: self.since(brace.start) };
                let Some(around) = outer.pop() else { return block };
                (statements, brace) = around;
                statements.push(Statement::Block(Box::new(block)));
                continue;
            }
            self.statement_node();
            if !self.at(Kind::LeftBrace) {
                match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(_) => self.recover_in_body(),
                }
            } else if outer.len() + 1 < MAX_DEPTH as usize {
                outer.push((
                    std::mem::take(&mut statements),
                    std::mem::replace(&mut brace, self.advance().span),
                ));
            } else {
                let start = self.token.span.start;
                self.too_deep("blocks");
                self.skip_block();
                statements.push(Statement::Block(Box::new(Block {
                    statements: Vec::new(),
                    span: self.since(start),
                })));
            }
        }
    }

    /// The token that no body may contain, if the current position is the end of the file or the declaration of a
    /// kernel or of a linked variable: a brace is missing.
    fn cannot_be_in_body(&self) -> Option<Token> {
        let token = match self.dotted() {
            None => return self.at_end().then_some(self.token),
            Some("entry") => self.token,
            Some("visible" | "weak" | "extern" | "common") => self.peek(),
            Some(_) => return None,
        };
        let refused = matches!(self.text_of(token), ".entry" | ".global" | ".const" | ".shared");
        refused.then_some(token)
    }

    /// A statement. It takes at least one token; otherwise the next statement would fail at the same token forever.
    fn statement(&mut self) -> Parsed<Statement<'a>> {
        if self.backslash() {
            let name = self.identifier("an opcode follows a backslash")?;
            return Ok(self.instruction(None, name, name.span.start));
        }
        match self.token.kind {
            Kind::Identifier => {
                let name = self.take_name();
                if self.eat(Kind::Colon) {
                    return self.labelled(name);
                }
                Ok(self.instruction(None, name, name.span.start))
            }
            Kind::At => {
                let start = self.advance().span.start;
                let negated = self.eat(Kind::Exclamation);
                let help = "a guard is a predicate register: `@%p1` or `@!%p1`";
                let predicate = self.identifier(help)?;
                let guard = Box::new(Guard { negated, predicate, span: self.since(start) });
                self.backslash();
                let Ok(opcode) = self.identifier("an instruction follows a guard") else {
                    let span = self.since(start);
                    self.recover_in_body();
                    let opcode = Name { text: "", span: guard.span };
                    let (modifiers, operands) = (Box::default(), Box::default());
                    let instruction = Instruction { guard: Some(guard), opcode, modifiers, operands, span };
                    return Ok(Statement::Unfinished(Box::new(instruction)));
                };
                Ok(self.instruction(Some(guard), opcode, start))
            }
            Kind::Dotted => self.directive_statement(),
            _ => {
                let failed = self.fail("a statement begins with an opcode, a label, `@`, `{` or a directive");
                self.advance();
                Err(failed)
            }
        }
    }

    /// Takes the backslash that ptxas allows before an opcode, where a multi-line macro leaves one.
    fn backslash(&mut self) -> bool {
        let is_backslash = self.at(Kind::Unknown) && self.text_of(self.token) == "\\";
        if is_backslash {
            self.advance();
        }
        is_backslash
    }

    fn directive_statement(&mut self) -> Parsed<Statement<'a>> {
        let statement = match self.dotted().unwrap_or_default() {
            "loc" => Statement::Loc(Box::new(self.loc()?)),
            "pragma" => Statement::Directive(Box::new(self.pragma()?)),
            "target" => Statement::Directive(Box::new(self.target()?)),
            "alias" => Statement::Alias(Box::new(self.alias()?)),
            "visible" | "extern" | "weak" | "common" | "func" => {
                let linkage = self.linkage();
                if self.dotted() != Some("func") {
                    return Err(self.fail("in a body, only functions are declared with a linking directive"));
                }
                match self.function(linkage, false)? {
                    Some(function) => Statement::Function(function),
                    None => return Err(super::Failed),
                }
            }
            _ if self.starts_variable() => Statement::Variable(self.variable(None)?),
            word => {
                let failed = self.fail(match word {
                    "branchtargets" | "calltargets" | "callprototype" => {
                        "a label stands in front of this directive"
                    }
                    "file" | "section" | "address_size" => "this directive stands outside functions",
                    _ => "this directive does not stand in a body",
                });
                self.advance();
                return Err(failed);
            }
        };
        Ok(statement)
    }

    /// The statement after a label: a table or a prototype, which takes its name from the label, or any other
    /// statement.
    fn labelled(&mut self, label: Name<'a>) -> Parsed<Statement<'a>> {
        let start = label.span.start;
        match self.dotted() {
            Some("branchtargets" | "calltargets") => {
                let directive = self.take_name();
                let targets = self.separated(|p| {
                    p.node();
                    p.identifier("names stand here, separated by `,`")
                })?;
                self.semicolon("directive")?;
                let span = self.since(start);
                Ok(Statement::Targets(Box::new(Targets { label, directive, targets: targets.into(), span })))
            }
            Some("callprototype") => {
                self.advance();
                let returns = if self.at(Kind::LeftParen) { Some(self.parameters()?) } else { None };
                self.expect(Kind::Underscore, "a prototype is written `.callprototype (ret) _ (params);`")?;
                let parameters = if self.at(Kind::LeftParen) { Some(self.parameters()?) } else { None };
                let directives = self.prototype_directives()?;
                self.semicolon("prototype")?;
                let span = self.since(start);
                let prototype = CallPrototype { label, returns, parameters, directives, span };
                Ok(Statement::CallPrototype(Box::new(prototype)))
            }
            _ => Ok(Statement::Label(label)),
        }
    }

    /// The rest of an instruction after its opcode, as far as it can be parsed.
    fn instruction(&mut self, guard: Option<Box<Guard<'a>>>, opcode: Name<'a>, start: u32) -> Statement<'a> {
        let mut modifiers: SmallVec<[Name<'a>; 8]> = SmallVec::new();
        let mut operands: SmallVec<[Operand<'a>; 6]> = SmallVec::new();
        let read = self.modifiers_and_operands(opcode, &mut modifiers, &mut operands);
        let ended = read.is_ok() && self.at(Kind::Semicolon);
        let read = read.and_then(|()| self.semicolon("instruction"));
        let (modifiers, operands) = (modifiers.into_boxed_slice(), operands.into_boxed_slice());
        let instruction = Instruction { guard, opcode, modifiers, operands, span: self.since(start) };
        if read.is_err() {
            self.recover_in_body();
        }
        if ended { Statement::Instruction(instruction) } else { Statement::Unfinished(Box::new(instruction)) }
    }

    fn modifiers_and_operands(
        &mut self,
        opcode: Name<'a>,
        modifiers: &mut SmallVec<[Name<'a>; 8]>,
        operands: &mut SmallVec<[Operand<'a>; 6]>,
    ) -> Parsed<()> {
        while let Some(word) = self.dotted() {
            if is_directive(word) {
                return Err(self.fail("this word is a directive, not a modifier"));
            }
            self.node();
            modifiers.push(self.take_name());
        }
        if opcode.text == "call" {
            self.call_operands(operands)?;
        } else if !self.at(Kind::Semicolon) {
            operands.push(self.destination()?);
            while self.eat(Kind::Comma) {
                operands.push(self.operand()?);
            }
        }
        Ok(())
    }

    /// `{(ret),} target {, (arguments)} {, prototype}`
    fn call_operands(&mut self, operands: &mut SmallVec<[Operand<'a>; 6]>) -> Parsed<()> {
        if self.at(Kind::LeftParen) {
            operands.push(self.call_list()?);
            self.expect(Kind::Comma, "a call is written `call (ret), function, (arguments);`")?;
        }
        self.node();
        operands.push(Operand::Name(self.identifier("the function to call stands here")?));
        if self.at(Kind::Comma) && self.peek().kind == Kind::LeftParen {
            self.advance();
            operands.push(self.call_list()?);
        }
        if self.eat(Kind::Comma) {
            self.node();
            let help = "arguments in parentheses or the name of a prototype stand here";
            operands.push(Operand::Name(self.identifier(help)?));
        }
        Ok(())
    }

    /// `(a, 1, _)`
    fn call_list(&mut self) -> Parsed<Operand<'a>> {
        let start = self.advance().span.start;
        let arguments = match self.at(Kind::RightParen) {
            true => Vec::new(),
            false => self.separated(|p| {
                p.node();
                match p.token.kind {
                    Kind::Identifier => Ok(Operand::Name(p.take_name())),
                    Kind::Underscore => Ok(Operand::Sink(p.take_name())),
                    _ => p.expression(),
                }
            })?,
        };
        self.expect(Kind::RightParen, "arguments are separated by `,` and end with `)`")?;
        let operands = arguments.into();
        Ok(Operand::List(Box::new(OperandList { operands, span: self.since(start) })))
    }
}
