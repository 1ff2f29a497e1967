//! The parser: recursive descent over tokens, for the grammar that ptxas accepts.
//!
//! A parsing function has two outcomes. It returns what it parsed, and the parser is after the last token of that; or
//! it records a diagnostic and returns [`Failed`], and the parser is at the token that does not fit. The first caller
//! that can continue recovers.

mod debug;
mod declaration;
mod item;
mod operand;
mod recovery;
mod statement;

use std::borrow::Cow;

use diag::{Code, Diagnostic, SourceFile, Span};

use crate::lexer::{Kind, Lexer, Token};
use crate::tree::{Literal, Name, Operand, Tree};

/// Greatest nesting depth of blocks and initializers, and greatest number of operators in an expression. Both bound
/// the recursion over the tree, here and in every later stage.
pub const MAX_DEPTH: u32 = 256;

/// Greatest number of nodes in a tree, so that a hostile file cannot exhaust memory. Nodes are operands, modifiers,
/// values and statements; a statement counts as four. Files with 100 MB of real code remain below.
pub const MAX_NODES: u32 = 3 << 24;

/// The memory of a statement, in operands.
const STATEMENT_WEIGHT: u32 = 4;

/// The number of diagnostics after which parsing stops.
pub const MAX_ERRORS: usize = 1_000_000;

/// Longest piece of source that a message quotes.
const MAX_QUOTE: usize = 512;

/// A diagnostic has been recorded for what did not fit.
#[derive(Debug)]
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Parses a file. The result always has a tree. What could not be parsed is missing from the tree and has a
/// diagnostic; diagnostics are in source order.
pub fn parse(source: &SourceFile) -> (Tree<'_>, Vec<Diagnostic>) {
    if source.too_large() {
        let error = Diagnostic::error(Code::FileTooLarge, Span::at(0), "The file is larger than 4 GiB")
            .help("split the module into several files");
        return (Tree::default(), vec![error]);
    }
    let mut parser = Parser::new(source);
    let tree = parser.tree();
    (tree, parser.diagnostics)
}

struct Parser<'a> {
    source: &'a SourceFile,
    text: &'a str,
    lexer: Lexer<'a>,
    /// The next token to parse.
    token: Token,
    /// End of the token before it.
    previous_end: u32,
    diagnostics: Vec<Diagnostic>,
    /// Start of the last error: each position has one syntax error at most.
    last_error: Option<u32>,
    /// A limit was reached, so nothing more is reported.
    halted: bool,
    nodes: u32,
    /// Current nesting depth of initializers.
    depth: u32,
    /// Number of open braces of vectors and initializers.
    braces: u32,
    /// Number of operators in the current expression so far.
    operators: u32,
}

impl<'a> Parser<'a> {
    fn new(source: &'a SourceFile) -> Parser<'a> {
        let mut lexer = Lexer::new(source.text());
        let token = lexer.token();
        Parser {
            source,
            text: source.text(),
            lexer,
            token,
            previous_end: 0,
            diagnostics: Vec::new(),
            last_error: None,
            halted: false,
            nodes: 0,
            depth: 0,
            braces: 0,
            operators: 0,
        }
    }

    /// Takes the current token.
    #[inline]
    fn advance(&mut self) -> Token {
        let token = self.token;
        if !self.at_end() {
            self.previous_end = token.span.end;
            self.token = self.lexer.token();
        }
        token
    }

    /// The token after the current one.
    fn peek(&self) -> Token {
        self.lexer.clone().token()
    }

    fn at(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    fn at_end(&self) -> bool {
        matches!(self.token.kind, Kind::End | Kind::EndInComment)
    }

    /// Takes the current token if it is of this kind.
    fn eat(&mut self, kind: Kind) -> bool {
        let eaten = self.at(kind);
        if eaten {
            self.advance();
        }
        eaten
    }

    /// Takes a token of this kind. If it is missing, `help` tells the user what to write.
    fn expect(&mut self, kind: Kind, help: &'static str) -> Parsed<Token> {
        if self.at(kind) { Ok(self.advance()) } else { Err(self.fail(help)) }
    }

    /// The text of a token.
    fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.span.range()]
    }

    /// The current token's word, without its dot, if the token is dotted.
    fn dotted(&self) -> Option<&'a str> {
        self.at(Kind::Dotted).then(|| &self.text_of(self.token)[1..])
    }

    /// Takes the current token as a word.
    fn take_name(&mut self) -> Name<'a> {
        let token = self.advance();
        let text = self.text_of(token);
        Name { text: text.strip_prefix('.').unwrap_or(text), span: token.span }
    }

    /// Takes the current token as a literal.
    fn take_literal(&mut self) -> Literal<'a> {
        let token = self.advance();
        Literal { text: self.text_of(token), span: token.span }
    }

    /// Takes a string. Its characters must be ASCII, as for ptxas.
    fn take_string(&mut self) -> Literal<'a> {
        let literal = self.take_literal();
        if let Some((at, character)) = literal.text.char_indices().find(|(_, c)| !c.is_ascii()) {
            let start = literal.span.start + at as u32;
            let error = self.non_ascii(Span::new(start, start + character.len_utf8() as u32), character);
            self.report(error);
        }
        literal
    }

    fn non_ascii(&self, span: Span, character: char) -> Diagnostic {
        let line = self.source.position(span.start).line;
        let message = format!("Unexpected non-ASCII character encountered on line {line}");
        Diagnostic::error(Code::NonAsciiCharacter, span, message).help(match character {
            '\u{FEFF}' => "save the file without a byte-order mark",
            '\u{FFFD}' => "this is not UTF-8; outside comments, PTX is written in ASCII",
            _ => "outside comments, PTX is written in ASCII",
        })
    }

    fn identifier(&mut self, help: &'static str) -> Parsed<Name<'a>> {
        if self.at(Kind::Identifier) { Ok(self.take_name()) } else { Err(self.fail(help)) }
    }

    fn integer(&mut self, help: &'static str) -> Parsed<Literal<'a>> {
        if self.at(Kind::Integer) { Ok(self.take_literal()) } else { Err(self.fail(help)) }
    }

    /// An integer or `WARP_SZ`: the only lengths and alignments that the grammar takes.
    fn length(&mut self, help: &'static str) -> Parsed<Operand<'a>> {
        match self.token.kind {
            Kind::Integer => Ok(Operand::Literal(self.take_literal())),
            Kind::WarpSize => Ok(Operand::WarpSize(self.take_name())),
            _ => Err(self.fail(help)),
        }
    }

    /// One or more elements, separated by commas.
    fn separated<T>(&mut self, mut element: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut elements = vec![element(self)?];
        while self.eat(Kind::Comma) {
            elements.push(element(self)?);
        }
        Ok(elements)
    }

    /// Takes the `;` after `what`. If it is missing and a new statement begins, the current statement counts as
    /// finished.
    fn semicolon(&mut self, what: &'static str) -> Parsed<()> {
        if self.eat(Kind::Semicolon) {
            return Ok(());
        }
        let mut error = self.unexpected(format!("end the {what} with `;`"));
        let finished = match self.token.kind {
            Kind::RightBrace => true,
            Kind::Identifier | Kind::Dotted | Kind::At => self.token.first_on_line,
            _ => false,
        };
        if finished {
            let end = Span::new(self.previous_end.saturating_sub(1), self.previous_end);
            error = error.label(end, "a `;` is missing after this").fix(Span::at(self.previous_end), ";");
        }
        let failed = self.report(error);
        if finished { Ok(()) } else { Err(failed) }
    }

    /// From the start of a node to the end of the last token taken.
    fn since(&self, start: u32) -> Span {
        Span::new(start, self.previous_end.max(start))
    }

    /// Counts a node of the tree.
    fn node(&mut self) {
        self.nodes += 1;
        if self.nodes >= MAX_NODES {
            let error = Diagnostic::error(Code::FileTooLarge, self.token.span, "The module is too large")
                .note(format!(
                    "more than {MAX_NODES} operands and modifiers, or a quarter as many statements"
                ))
                .help("split the module into several files");
            self.halt(error);
        }
    }

    /// Counts a statement, or something that takes as much memory.
    fn statement_node(&mut self) {
        self.nodes += STATEMENT_WEIGHT - 1;
        self.node();
    }

    /// Reports that the current token does not fit.
    #[cold]
    #[inline(never)]
    fn fail(&mut self, help: impl Into<Cow<'static, str>>) -> Failed {
        let error = self.unexpected(help);
        self.report(error)
    }

    /// A diagnostic at the current token, worded like ptxas.
    fn unexpected(&self, help: impl Into<Cow<'static, str>>) -> Diagnostic {
        self.unexpected_at(self.token, help)
    }

    fn unexpected_at(&self, token: Token, help: impl Into<Cow<'static, str>>) -> Diagnostic {
        let text = self.text_of(token);
        let line = || self.source.position(token.span.start).line;
        match (token.kind, text.chars().next()) {
            (Kind::EndInComment, _) => {
                let comment = self.lexer.open_comment;
                let message = "Parsing error near '': unexpected EOF while scanning";
                Diagnostic::error(Code::UnterminatedComment, token.span, message)
                    .label(Span::new(comment, comment + 2), "this comment is never closed")
                    .help("close the comment with `*/`")
                    .fix(token.span, "*/")
            }
            (Kind::Unknown, Some('\0')) => {
                let message = format!("Unexpected EOF encountered on line {}", line());
                Diagnostic::error(Code::NulByte, token.span, message)
                    .help("remove the NUL byte: PTX is ASCII text")
                    .fix(token.span, "")
            }
            (Kind::Unknown, Some(other)) if !other.is_ascii() => self.non_ascii(token.span, other),
            (Kind::Unknown, Some('"')) => {
                Diagnostic::error(Code::SyntaxError, token.span, "Parsing error near '\"': syntax error")
                    .help("close the string with `\"`")
            }
            (_, first) => {
                let printable = !first.is_some_and(|c| c.is_ascii_control());
                // Quote only the first line of a multi-line string.
                let line = text.lines().next().unwrap_or_default();
                let quoted = if printable { &line[..line.floor_char_boundary(MAX_QUOTE)] } else { "" };
                let dots = if printable && quoted.len() < text.len() { "..." } else { "" };
                let message = format!("Parsing error near '{quoted}{dots}': syntax error");
                Diagnostic::error(Code::SyntaxError, token.span, message).help(help.into())
            }
        }
    }

    /// Records a diagnostic, unless its position already has one.
    fn report(&mut self, error: Diagnostic) -> Failed {
        if self.halted || self.last_error == Some(error.span.start) {
            return Failed;
        }
        self.last_error = Some(error.span.start);
        self.diagnostics.push(error);
        if self.diagnostics.len() == MAX_ERRORS {
            let error = Diagnostic::error(Code::TooManyErrors, self.token.span, "Too many syntax errors")
                .note("the rest of the file was not read");
            self.halt(error);
        }
        Failed
    }

    /// Records a last diagnostic and goes to the end of the file.
    fn halt(&mut self, error: Diagnostic) {
        if !self.halted {
            self.halted = true;
            self.diagnostics.push(error);
        }
        self.lexer.finish();
        self.token = self.lexer.token();
    }

    /// Reports that the construct at the current token would nest too deeply.
    #[cold]
    #[inline(never)]
    fn too_deep(&mut self, what: &'static str) -> Failed {
        let message = format!("Parsing error near '{}': nested too deep", self.text_of(self.token));
        let error = Diagnostic::error(Code::NestingTooDeep, self.token.span, message)
            .note(format!("at most {MAX_DEPTH} {what} may stand within one another"));
        self.report(error)
    }
}

/// Words that the grammar uses as directives, so that they cannot be modifiers. The parser tests every modifier; the
/// match on the first letter keeps the test fast.
fn is_directive(word: &str) -> bool {
    match word.as_bytes().first() {
        Some(b'a') => {
            matches!(word, "abi_preserve" | "abi_preserve_control" | "address_size" | "align" | "attribute")
        }
        Some(b'b') => matches!(word, "blocksareclusters" | "branchtargets"),
        Some(b'c') => matches!(word, "callprototype" | "calltargets" | "common"),
        Some(b'e') => matches!(word, "entry" | "explicitcluster" | "extern"),
        Some(b'f') => matches!(word, "file" | "func"),
        Some(b'l') => matches!(word, "language" | "loc" | "local_maxnreg"),
        Some(b'm') => {
            matches!(
                word,
                "managed"
                    | "maxclusterrank"
                    | "maxnctapersm"
                    | "maxnreg"
                    | "maxntid"
                    | "minnctapersm"
                    | "minperctamemory"
            )
        }
        Some(b'n') => word == "noreturn",
        Some(b'p') => matches!(word, "pragma" | "ptr"),
        Some(b'r') => matches!(word, "reg" | "reqnctapercluster" | "reqntid"),
        Some(b's') => word == "section",
        Some(b't') => word == "target",
        Some(b'u') => word == "unified",
        Some(b'v') => word == "visible",
        _ => false,
    }
}

/// State spaces in which variables are declared.
fn is_space(word: &str) -> bool {
    matches!(word, "reg" | "param" | "global" | "const" | "shared" | "local" | "tex")
        || word.starts_with("const[")
}

/// The types of registers, variables and parameters (PTX ISA, "Fundamental Types", ".f16x2").
pub const DECLARED_TYPES: [&str; 18] = [
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16",
    "f16x2", "f32", "f64",
];

/// Types that the grammar of declarations and casts knows. The checker rejects some of them later, with a better
/// message.
fn is_type(word: &str) -> bool {
    DECLARED_TYPES.contains(&word)
        || matches!(
            word,
            "texref" | "samplerref" | "surfref"
            // Instruction types that ptxas parses and then rejects in a declaration.
            | "e4m3" | "e5m2" | "e4m3x2" | "e5m2x2" | "e2m1x2" | "e2m3x2" | "e3m2x2" | "ue8m0x2"
            | "e4m3x4" | "e5m2x4" | "e2m1x4" | "e2m3x4" | "e3m2x4" | "ue8m0x4"
            | "u16x2" | "s16x2" | "f32x2" | "s2f6x2"
        )
}
