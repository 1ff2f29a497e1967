//! Items outside functions, and the heads of functions.

use diag::{Code, Diagnostic, Span};

use super::{Parsed, Parser, is_directive};
use crate::lexer::Kind;
use crate::tree::{
    Alias, Directive, Function, FunctionKind, Item, Linkage, LinkageKind, Literal, Name, Operand, Parameter,
    Pointer, Tree,
};

impl<'a> Parser<'a> {
    pub(super) fn tree(&mut self) -> Tree<'a> {
        let mut tree = Tree::default();
        self.header(&mut tree);
        while !self.at_end() {
            self.statement_node();
            match self.item() {
                Ok(item) => tree.items.extend(item),
                Err(_) => self.recover_at_top(),
            }
        }
        if self.at(Kind::EndInComment) {
            self.fail("");
        }
        tree
    }

    /// `.version`, `.target` and `.address_size`, in this order at the start of the file.
    fn header(&mut self, tree: &mut Tree<'a>) {
        let has_version = self.at(Kind::Version);
        if has_version {
            let span = self.token.span;
            let whole = self.text_of(self.token);
            let digits = whole.find(|c: char| c.is_ascii_digit()).unwrap_or(whole.len());
            let word = Span::new(span.start, span.start + ".version".len() as u32);
            let name = Name { text: "version", span: word };
            let number = Span::new(span.start + digits as u32, span.end);
            let argument = Operand::Literal(Literal { text: &whole[digits..], span: number });
            self.advance();
            tree.items.push(Item::Directive(Directive { name, arguments: Box::new([argument]), span }));
        } else {
            self.missing_header(".version", "begin the file with a line like `.version 8.5`");
        }
        if self.dotted() == Some("target") {
            match self.target() {
                Ok(target) => tree.items.push(Item::Directive(target)),
                Err(_) => self.recover_at_top(),
            }
        } else if has_version {
            self.missing_header(
                ".target",
                "name the target after `.version`, with a line like `.target sm_90`",
            );
        }
        if self.dotted() == Some("address_size") {
            let name = self.take_name();
            match self.integer("write `.address_size 64`") {
                Ok(size) => {
                    let arguments = Box::new([Operand::Literal(size)]);
                    let span = self.since(name.span.start);
                    tree.items.push(Item::Directive(Directive { name, arguments, span }));
                }
                Err(_) => self.recover_at_top(),
            }
        }
    }

    fn missing_header(&mut self, directive: &str, help: &str) {
        if matches!(self.token.kind, Kind::Unknown | Kind::EndInComment) {
            self.fail("");
            return;
        }
        let message = format!("Missing {directive} directive at start of file '{}'", self.source.name());
        let code = if directive == ".version" { Code::MissingVersion } else { Code::MissingTarget };
        self.report(Diagnostic::error(code, self.token.span, message).help(help));
    }

    /// `.target name, …`
    pub(super) fn target(&mut self) -> Parsed<Directive<'a>> {
        let name = self.take_name();
        let help = "name the target as in `.target sm_90`, options after commas";
        let arguments = self.separated(|p| p.identifier(help).map(Operand::Name))?.into();
        Ok(Directive { name, arguments, span: self.since(name.span.start) })
    }

    /// One item; `None` for a function whose name could not be parsed.
    fn item(&mut self) -> Parsed<Option<Item<'a>>> {
        let help = "outside functions stand variables, `.func`, `.entry` and directives";
        let Some(word) = self.dotted() else {
            return Err(self.fail(help));
        };
        let item = match word {
            "visible" | "extern" | "weak" | "common" => {
                let linkage = self.linkage();
                match self.dotted() {
                    Some("entry" | "func") => return Ok(self.function(linkage, true)?.map(Item::Function)),
                    _ => Item::Variable(self.variable(linkage)?),
                }
            }
            "entry" | "func" => return Ok(self.function(None, true)?.map(Item::Function)),
            "alias" => Item::Alias(Box::new(self.alias()?)),
            "pragma" => Item::Directive(self.pragma()?),
            "file" => Item::File(Box::new(self.file()?)),
            "section" => Item::Section(Box::new(self.section()?)),
            "version" => return Err(self.fail("`.version` stands once, at the start of the file")),
            "target" => return Err(self.fail("`.target` stands once, after `.version`")),
            "address_size" => return Err(self.fail("`.address_size` stands once, after `.target`")),
            word if is_directive(word) && !matches!(word, "align" | "attribute" | "reg") => {
                return Err(self.fail("this directive does not stand here"));
            }
            _ if self.starts_variable() => Item::Variable(self.variable(None)?),
            _ => return Err(self.fail(help)),
        };
        Ok(Some(item))
    }

    /// The linking directive at the current token, if it is one.
    pub(super) fn linkage(&mut self) -> Option<Linkage<'a>> {
        let kind = match self.dotted()? {
            "extern" => LinkageKind::Extern,
            "visible" => LinkageKind::Visible,
            "weak" => LinkageKind::Weak,
            "common" => LinkageKind::Common,
            _ => return None,
        };
        let name = self.take_name();
        Some(Linkage { kind, name, span: name.span })
    }

    /// `.alias a, b;`
    pub(super) fn alias(&mut self) -> Parsed<Alias<'a>> {
        let start = self.advance().span.start;
        let help = "write `.alias new_name, function;`";
        let alias = self.identifier(help)?;
        self.expect(Kind::Comma, help)?;
        let aliasee = self.identifier(help)?;
        self.semicolon("directive")?;
        Ok(Alias { alias, aliasee, span: self.since(start) })
    }

    /// `.pragma "text", …;`
    pub(super) fn pragma(&mut self) -> Parsed<Directive<'a>> {
        let name = self.take_name();
        let arguments = self.separated(|p| match p.token.kind {
            Kind::String => Ok(Operand::String(p.take_string())),
            _ => Err(p.fail("a pragma is a string: `.pragma \"nounroll\";`")),
        })?;
        self.semicolon("directive")?;
        Ok(Directive { name, arguments: arguments.into(), span: self.since(name.span.start) })
    }

    /// `.entry` or `.func` with everything that follows. If the name cannot be parsed, the body is still parsed for
    /// its errors, but no function is returned.
    pub(super) fn function(
        &mut self,
        linkage: Option<Linkage<'a>>,
        body_allowed: bool,
    ) -> Parsed<Option<Box<Function<'a>>>> {
        let keyword = self.take_name();
        let start = linkage.as_ref().map_or(keyword.span.start, |linkage| linkage.span.start);
        let kind = if keyword.text == "entry" { FunctionKind::Entry } else { FunctionKind::Func };
        let mut attributes = Vec::new();
        let (mut returns, mut parameters, mut directives) = (None, None, Vec::new());
        let mut name = None;
        let head = (|| {
            if kind == FunctionKind::Func {
                self.attributes(&mut attributes)?;
                if self.at(Kind::LeftParen) {
                    returns = Some(self.parameters()?);
                }
            }
            name = Some(self.identifier("a name stands here")?);
            if self.at(Kind::LeftParen) {
                parameters = Some(self.parameters()?);
            }
            self.function_directives(kind, &mut directives)
        })();
        if head.is_err() {
            self.recover_in_head();
        }
        let declared_at_top = body_allowed && kind == FunctionKind::Func;
        let mut body = None;
        if self.at(Kind::LeftBrace) && body_allowed {
            body = Some(self.block());
        } else if self.at(Kind::Semicolon) && (kind == FunctionKind::Func || directives.is_empty()) {
            self.advance();
        } else if head.is_err() {
            self.eat(Kind::Semicolon);
        } else if !declared_at_top {
            // At the top level, ptxas makes the `;` of a `.func` optional.
            return Err(match body_allowed {
                true => self.fail("the body in braces follows; a declaration ends with `;`"),
                false => self.fail("a function is declared here, and ends with `;`: bodies do not nest"),
            });
        }
        let span = self.since(start);
        Ok(name.map(|name| {
            Box::new(Function {
                linkage,
                attributes,
                kind,
                returns,
                name,
                parameters,
                directives,
                body,
                span,
            })
        }))
    }

    /// `( parameter, … )`. After an error in a parameter, parsing continues with the next.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter<'a>>> {
        self.advance();
        let mut parameters = Vec::new();
        if self.eat(Kind::RightParen) {
            return Ok(parameters);
        }
        loop {
            self.statement_node();
            match self.parameter() {
                Ok(parameter) => parameters.push(parameter),
                Err(failed) => {
                    let end = |kind| {
                        matches!(
                            kind,
                            Kind::RightParen | Kind::LeftBrace | Kind::RightBrace | Kind::Semicolon
                        )
                    };
                    while !self.at_end() && !self.at(Kind::Comma) && !end(self.token.kind) {
                        self.advance();
                    }
                    if !self.at(Kind::Comma) && !self.at(Kind::RightParen) {
                        return Err(failed);
                    }
                }
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightParen, "parameters are separated by `,` and end with `)`")?;
        Ok(parameters)
    }

    fn parameter(&mut self) -> Parsed<Parameter<'a>> {
        let start = self.token.span.start;
        let (space, mut qualifiers) = self.qualifiers()?;
        let mut pointer = None;
        if self.dotted() == Some("ptr") {
            let start = self.advance().span.start;
            let space = match self.dotted() {
                Some("global" | "const" | "shared" | "local") => Some(self.take_name()),
                _ => None,
            };
            let align = self.alignment()?;
            pointer = Some(Pointer { space, align, span: self.since(start) });
        } else if let Some(align) = self.alignment()? {
            qualifiers.align = Some(align);
        }
        let name = match self.token.kind {
            Kind::Identifier | Kind::Underscore => self.take_name(),
            _ => return Err(self.fail("a parameter is written `.param .u64 name`")),
        };
        // One pair of brackets at most.
        let mut dimensions = Vec::new();
        if self.at(Kind::LeftBracket) {
            dimensions.push(self.dimension(true)?);
        }
        let dimensions = dimensions.into();
        Ok(Parameter { space, qualifiers, pointer, name, dimensions, span: self.since(start) })
    }

    /// `.align N`, if the current token begins it.
    fn alignment(&mut self) -> Parsed<Option<Operand<'a>>> {
        if self.dotted() != Some("align") {
            return Ok(None);
        }
        self.advance();
        self.length("an alignment is a number: `.align 8`").map(Some)
    }

    /// The directives between the head of a function and its body.
    fn function_directives(&mut self, kind: FunctionKind, list: &mut Vec<Directive<'a>>) -> Parsed<()> {
        while let Some(word) = self.dotted() {
            // Greatest number of integers that may follow.
            let most = match (kind, word) {
                (FunctionKind::Entry, "maxntid" | "reqntid" | "reqnctapercluster") => 3,
                (
                    FunctionKind::Entry,
                    "minnctapersm" | "maxnctapersm" | "maxnreg" | "local_maxnreg" | "maxclusterrank"
                    | "language" | "minperctamemory",
                ) => 1,
                (FunctionKind::Entry, "explicitcluster" | "blocksareclusters") => 0,
                (FunctionKind::Entry, "pragma") => {
                    list.push(self.pragma()?);
                    continue;
                }
                (FunctionKind::Func, "noreturn")
                    if list.iter().all(|given| given.name.text != "noreturn") =>
                {
                    0
                }
                (FunctionKind::Func, "abi_preserve" | "abi_preserve_control" | "local_maxnreg") => 1,
                (FunctionKind::Entry, _) => {
                    return Err(self.unless_item("this directive does not follow an `.entry`"));
                }
                (FunctionKind::Func, _) if self.follows_prototype() => return Ok(()),
                (FunctionKind::Func, _) => return Err(self.fail("this directive does not follow a `.func`")),
            };
            self.node();
            let name = self.take_name();
            let mut arguments = Vec::new();
            while arguments.len() < most && (arguments.is_empty() || self.eat(Kind::Comma)) {
                arguments.push(Operand::Literal(self.integer("this directive takes numbers")?));
            }
            let arguments = arguments.into();
            list.push(Directive { name, arguments, span: self.since(name.span.start) });
        }
        Ok(())
    }

    /// Whether the directive at the current token does not belong to a `.func` but begins the next item: the `;` of a
    /// declaration is optional.
    fn follows_prototype(&self) -> bool {
        self.dotted().is_some_and(|word| {
            !is_directive(word)
                || matches!(
                    word,
                    "visible"
                        | "extern"
                        | "common"
                        | "entry"
                        | "func"
                        | "file"
                        | "section"
                        | "pragma"
                        | "align"
                        | "attribute"
                        | "reg"
                )
        })
    }

    fn unless_item(&mut self, help: &'static str) -> super::Failed {
        match self.follows_prototype() {
            true => self.fail("the body in braces follows; a declaration ends with `;`"),
            false => self.fail(help),
        }
    }

    /// The directives of a prototype.
    pub(super) fn prototype_directives(&mut self) -> Parsed<Vec<Directive<'a>>> {
        let mut list = Vec::new();
        while matches!(
            self.dotted(),
            Some("noreturn" | "abi_preserve" | "abi_preserve_control" | "local_maxnreg")
        ) {
            self.function_directives(FunctionKind::Func, &mut list)?;
        }
        Ok(list)
    }
}
