//! What stands at a place: the instruction of the tree, and the tokens of an unfinished statement.

use syntax::Tree;
use syntax::lexer::{Kind, Token};
use syntax::tree::{Block, Instruction, Item, Statement};

use crate::document::tokens;

/// The instruction at an offset.
pub fn instruction<'t, 'a>(tree: &'t Tree<'a>, offset: u32) -> Option<&'t Instruction<'a>> {
    let has = |span: diag::Span| span.start <= offset && offset <= span.end;
    let body = tree.items.iter().find_map(|item| match item {
        Item::Function(function) if has(function.span) => function.body.as_ref(),
        _ => None,
    })?;
    let mut block: &Block = body;
    loop {
        let after = block.statements.partition_point(|statement| statement.span().start <= offset);
        match block.statements.get(after.checked_sub(1)?)? {
            Statement::Block(inner) if has(inner.span) => block = inner,
            Statement::Instruction(node) => return has(node.span).then_some(node),
            Statement::Unfinished(node) => return has(node.span).then_some(node),
            _ => return None,
        }
    }
}

/// An opcode with its modifiers: `add.rn.f32`.
pub fn mnemonic(opcode: &str, modifiers: &[&str]) -> String {
    [&[opcode], modifiers].concat().join(".")
}

/// The tokens of a statement before an offset.
pub struct Unfinished<'a> {
    text: &'a str,
    /// The tokens after a guard, without the one that ends at the offset if that is a word.
    pub tokens: Vec<Token>,
    /// The word that ends at the offset.
    pub word: Option<Token>,
    /// Whether the statement is in a body.
    pub in_body: bool,
    /// Whether the statement is a guard so far: `@`, `@!`.
    pub in_guard: bool,
}

impl<'a> Unfinished<'a> {
    /// The statement at an offset; `None` within a comment or a string.
    pub fn at(text: &'a str, offset: u32) -> Option<Unfinished<'a>> {
        let before = &text[..offset as usize];
        let mut statement: Vec<Token> = Vec::new();
        let (mut depth, mut lists) = (0usize, 0usize);
        let mut end = 0;
        for token in tokens(before) {
            end = token.span.end;
            let starts_block = lists == 0
                && !statement
                    .first()
                    .is_some_and(|first| first.kind == Kind::Identifier || first.kind == Kind::At);
            match token.kind {
                Kind::Semicolon => (statement, lists) = (Vec::new(), 0),
                Kind::LeftBrace if starts_block => {
                    depth += 1;
                    statement.clear();
                }
                Kind::RightBrace if lists == 0 => {
                    depth = depth.saturating_sub(1);
                    statement.clear();
                }
                Kind::LeftBrace => {
                    lists += 1;
                    statement.push(token);
                }
                Kind::RightBrace => {
                    lists -= 1;
                    statement.push(token);
                }
                Kind::Colon if statement.len() == 1 => statement.clear(),
                // Directives of modules end with their line.
                Kind::Dotted | Kind::Version
                    if depth == 0 && token.first_on_line && is_header(before, &statement) =>
                {
                    statement = vec![token];
                }
                _ => statement.push(token),
            }
        }
        let tail = &before[end as usize..];
        if syntax::lexer::comments(tail)
            .last()
            .is_some_and(|last| last.end == tail.len() && !tail.ends_with("*/"))
        {
            return None;
        }
        let is_word = |token: &Token| {
            token.span.end == offset
                && matches!(token.kind, Kind::Identifier | Kind::Dotted | Kind::Percent | Kind::Unknown)
        };
        let word = statement.pop_if(|token| is_word(token));
        if word.is_some_and(|word| before[word.span.range()].starts_with('"')) {
            return None;
        }
        let guard = match statement.as_slice() {
            [at, not, ..] if at.kind == Kind::At && not.kind == Kind::Exclamation => 3,
            [at, ..] if at.kind == Kind::At => 2,
            _ => 0,
        };
        let in_guard = statement.len() < guard;
        statement.drain(..guard.min(statement.len()));
        Some(Unfinished { text, tokens: statement, word, in_body: depth > 0, in_guard })
    }

    /// The text of a token.
    pub fn text(&self, token: Token) -> &'a str {
        &self.text[token.span.range()]
    }

    /// The opcode and the modifiers behind it, and the tokens after these; `None` if this is no instruction.
    pub fn instruction(&self) -> Option<(&'a str, Vec<&'a str>, &[Token])> {
        let (opcode, rest) =
            self.tokens.split_first().filter(|(first, _)| first.kind == Kind::Identifier && self.in_body)?;
        let mut end = opcode.span.end;
        let count = rest.iter().take_while(|token| {
            let follows = token.kind == Kind::Dotted && token.span.start == end;
            end = token.span.end;
            follows
        });
        let count = count.count();
        let modifiers = rest[..count].iter().map(|&token| &self.text(token)[1..]).collect();
        Some((self.text(*opcode), modifiers, &rest[count..]))
    }

    /// Does the word at the offset stand directly behind another token? Then that token.
    pub fn joined(&self) -> Option<Token> {
        let last = *self.tokens.last()?;
        (last.span.end == self.word?.span.start).then_some(last)
    }
}

/// Is the statement so far a directive that its line ends?
fn is_header(text: &str, statement: &[Token]) -> bool {
    let first = statement.first().map(|first| &text[first.span.range()]);
    first.is_some_and(|first| {
        first.starts_with(".version") || matches!(first, ".target" | ".address_size" | ".file" | ".loc")
    })
}
