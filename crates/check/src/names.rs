//! Where the names of a file are declared and used, for editors: what [`check`](crate::check) resolves, but for files with errors,
//! too, and with every place.
//!
//! The rules are those of the check: a name is declared before its use, labels are known in their whole block, and an
//! inner block hides the names of the outer ones. A name that nothing declares is not here.

use std::collections::HashMap;

use diag::Span;
use syntax::Tree;
use syntax::tree::{
    Block, Declarator, Function, Initializer, InitializerList, Instruction, Item, Name, Operand, Parameter,
    SectionLine, Statement, Variable,
};

use crate::scope::split_number;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A register.
    Register,
    /// A variable in memory.
    Variable,
    /// A parameter of a function, or what it returns.
    Parameter,
    /// A kernel.
    Kernel,
    /// A function that is no kernel.
    Function,
    /// A label of the code, or of debug information.
    Label,
    /// The label of a `.branchtargets`, `.calltargets` or `.callprototype`.
    Table,
}

/// A name with a meaning. A range `%r<100>` is one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its kind.
    pub kind: Kind,
    /// The name; of a range, what all its names begin with.
    pub name: String,
    /// The number of names of a range.
    pub count: Option<u64>,
    /// The name where it is declared first, and for a function with a body, where the body is.
    pub definition: Span,
    /// The words before the name in its declaration: `.reg .b32`, `.visible .entry`.
    pub head: Span,
    /// The name in its declaration, and what follows it: `%r<100>`, `table[4] = {…}`, a function's parameters.
    pub declarator: Span,
    /// Where it can be named: its block, its function, or the file.
    pub scope: Span,
    /// The offset from which on it can be named: the end of the name in its first declaration, for labels the start of the
    /// block.
    pub visible_from: u32,
}

/// A place at which a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The span of the name.
    pub span: Span,
    /// The index of its symbol.
    pub symbol: usize,
    /// The number of a name of a range.
    pub member: Option<u64>,
    /// Whether it is declared here.
    pub declares: bool,
}

/// The names of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// What they stand for, in the order of their declarations.
    pub symbols: Vec<Symbol>,
    /// Where they stand, in the order of the file.
    pub occurrences: Vec<Occurrence>,
}

impl Names {
    /// The names of a tree.
    pub fn of(tree: &Tree) -> Names {
        let mut finder = Finder { scopes: vec![Names::whole()], ..Finder::default() };
        for item in &tree.items {
            finder.item(item);
        }
        finder.finish()
    }

    fn whole<'a>() -> Scope<'a> {
        Scope { span: Span::new(0, u32::MAX), ..Scope::default() }
    }

    /// The name at an offset, or just before it.
    pub fn at(&self, offset: u32) -> Option<&Occurrence> {
        let after = self.occurrences.partition_point(|one| one.span.start <= offset);
        let one = self.occurrences.get(after.checked_sub(1)?)?;
        (offset <= one.span.end).then_some(one)
    }

    /// The names that can be used at an offset, the innermost first.
    pub fn visible(&self, offset: u32) -> Vec<&Symbol> {
        let is_visible = |symbol: &&Symbol| {
            symbol.scope.start <= offset && offset <= symbol.scope.end && symbol.visible_from <= offset
        };
        let mut found: Vec<&Symbol> = self.symbols.iter().filter(is_visible).collect();
        found.sort_by_key(|symbol| symbol.scope.len());
        let mut seen = std::collections::HashSet::new();
        found.retain(|symbol| seen.insert((symbol.name.as_str(), symbol.count.is_some())));
        found
    }
}

/// The names of one block.
#[derive(Default)]
struct Scope<'a> {
    span: Span,
    names: HashMap<&'a str, usize>,
    ranges: HashMap<&'a str, usize>,
    labels: HashMap<&'a str, usize>,
}

#[derive(Default)]
struct Finder<'a> {
    names: Names,
    scopes: Vec<Scope<'a>>,
    /// Names of debug information, which may stand before their declaration.
    late: Vec<Name<'a>>,
    sections: HashMap<&'a str, usize>,
    /// The labels of all functions: debug information names them.
    labels: HashMap<&'a str, usize>,
}

/// What a declaration says besides the name.
struct Declaration {
    kind: Kind,
    head: Span,
    declarator: Span,
    count: Option<u64>,
}

impl<'a> Finder<'a> {
    fn finish(mut self) -> Names {
        for name in std::mem::take(&mut self.late) {
            let found = self.sections.get(name.text).or_else(|| self.labels.get(name.text)).copied();
            match found.or_else(|| self.scopes[0].names.get(name.text).copied()) {
                Some(symbol) => self.occurs(name, symbol, None, false),
                None => continue,
            }
        }
        self.names.occurrences.sort_by_key(|one| (one.span.start, !one.declares));
        self.names
    }

    fn occurs(&mut self, name: Name<'a>, symbol: usize, member: Option<u64>, declares: bool) {
        self.names.occurrences.push(Occurrence { span: name.span, symbol, member, declares });
    }

    /// A new symbol in the innermost scope.
    fn symbol(&mut self, name: Name<'a>, declaration: &Declaration) -> usize {
        let Declaration { kind, head, declarator, count } = *declaration;
        let scope = self.scopes.last().map_or(Span::default(), |scope| scope.span);
        self.names.symbols.push(Symbol {
            kind,
            name: name.text.to_owned(),
            count,
            definition: name.span,
            head,
            declarator,
            scope,
            visible_from: if kind == Kind::Label { scope.start } else { name.span.end },
        });
        self.names.symbols.len() - 1
    }

    /// Declares a name in the innermost scope. A second declaration is another place of the first.
    fn declare(&mut self, name: Name<'a>, declaration: &Declaration) {
        if name.text == "_" {
            return;
        }
        let is_range = declaration.count.is_some();
        let known = self.scopes.last().and_then(|scope| {
            let table = if is_range { &scope.ranges } else { &scope.names };
            table.get(name.text).copied()
        });
        let symbol = known.unwrap_or_else(|| self.symbol(name, declaration));
        self.occurs(name, symbol, None, true);
        let Some(scope) = self.scopes.last_mut() else { return };
        match declaration.count {
            // A range takes over single names that were declared before it.
            Some(count) => {
                scope.ranges.insert(name.text, symbol);
                scope.names.retain(|known, _| {
                    split_number(known).is_none_or(|(base, number)| base != name.text || number >= count)
                });
            }
            None => {
                scope.names.insert(name.text, symbol);
            }
        }
    }

    /// A use of a name.
    fn names(&mut self, name: Name<'a>) {
        let numbered = split_number(name.text);
        let found = self.scopes.iter().rev().find_map(|scope| {
            let member = || {
                let (base, number) = numbered?;
                let &symbol = scope.ranges.get(base)?;
                let count = self.names.symbols[symbol].count?;
                (number < count).then_some((symbol, Some(number)))
            };
            scope.names.get(name.text).map(|&symbol| (symbol, None)).or_else(member)
        });
        let label = || self.scopes.iter().rev().find_map(|scope| scope.labels.get(name.text)).copied();
        if let Some((symbol, member)) = found.or_else(|| label().map(|symbol| (symbol, None))) {
            self.occurs(name, symbol, member, false);
        }
    }

    fn item(&mut self, item: &Item<'a>) {
        match item {
            Item::Directive(_) | Item::File(_) => {}
            Item::Variable(node) => self.variable(node),
            Item::Function(node) => self.function(node),
            Item::Alias(node) => {
                self.names(node.alias);
                self.names(node.aliasee);
            }
            Item::Section(node) => {
                for line in &node.lines {
                    match line {
                        SectionLine::Label(name) => {
                            let declaration = Declaration::label(Kind::Label, *name);
                            let symbol = self.symbol(*name, &declaration);
                            self.sections.insert(name.text, symbol);
                            self.occurs(*name, symbol, None, true);
                        }
                        SectionLine::Data(data) => data.values.iter().for_each(|value| self.late(value)),
                    }
                }
            }
        }
    }

    /// A value of a section.
    fn late(&mut self, value: &Operand<'a>) {
        match value {
            Operand::Name(name) => self.late.push(*name),
            Operand::Binary(node) => {
                self.late(&node.left);
                self.late(&node.right);
            }
            _ => {}
        }
    }

    fn variable(&mut self, node: &Variable<'a>) {
        let space = node.space.map_or("", |space| space.text);
        let kind = match space {
            "reg" => Kind::Register,
            _ => Kind::Variable,
        };
        let head = Span::new(node.span.start, node.qualifiers.span.end);
        for declarator in &node.declarators {
            self.declarator(kind, head, declarator);
        }
    }

    fn declarator(&mut self, kind: Kind, head: Span, node: &Declarator<'a>) {
        let count = node.count.as_ref().map(|count| match count {
            Operand::Literal(literal) => match literal.value() {
                Some(syntax::Value::Integer { value, .. }) => value,
                _ => 0,
            },
            // `WARP_SZ`
            _ => 32,
        });
        let shown = node.initializer.as_ref().map_or(node.span.end, |initializer| initializer.span().start);
        let declarator = match &node.initializer {
            // Tables may be long.
            Some(Initializer::List(_)) => Span::new(node.span.start, shown),
            _ => node.span,
        };
        self.declare(node.name, &Declaration { kind, head, declarator, count });
        if let Some(initializer) = &node.initializer {
            self.initializer(initializer);
        }
    }

    fn initializer(&mut self, initializer: &Initializer<'a>) {
        match initializer {
            Initializer::Value(value) => self.operand(value),
            // The names of its values are words of the language.
            Initializer::Field(_) => {}
            Initializer::List(list) => {
                let list: &InitializerList = list;
                list.values.iter().for_each(|value| self.initializer(value));
            }
        }
    }

    fn function(&mut self, node: &Function<'a>) {
        let kind = match node.kind {
            syntax::tree::FunctionKind::Entry => Kind::Kernel,
            syntax::tree::FunctionKind::Func => Kind::Function,
        };
        let head_end = node.body.as_ref().map_or(node.span.end, |body| body.span.start);
        let head = Span::new(node.span.start, node.name.span.start);
        let declarator = Span::new(node.name.span.start, head_end);
        let declaration = Declaration { kind, head, declarator, count: None };
        // A function that is declared in a block belongs to the module.
        let inner = self.scopes.split_off(1);
        self.declare(node.name, &declaration);
        if node.body.is_some()
            && let Some(&symbol) = self.scopes[0].names.get(node.name.text)
        {
            let symbol = &mut self.names.symbols[symbol];
            (symbol.definition, symbol.head, symbol.declarator) = (node.name.span, head, declarator);
        }
        self.scopes.push(Scope { span: node.span, ..Scope::default() });
        self.parameters(node.returns.as_deref());
        self.parameters(node.parameters.as_deref());
        if let Some(body) = &node.body {
            self.foresee(body);
            self.statements(body);
        }
        self.scopes.pop();
        self.scopes.extend(inner);
    }

    fn parameters(&mut self, parameters: Option<&[Parameter<'a>]>) {
        for node in parameters.unwrap_or_default() {
            let head = Span::new(node.span.start, node.name.span.start);
            let declarator = Span::new(node.name.span.start, node.span.end);
            let kind = match node.space.map(|space| space.text) {
                Some("reg") => Kind::Register,
                _ => Kind::Parameter,
            };
            self.declare(node.name, &Declaration { kind, head, declarator, count: None });
        }
    }

    /// Declares the labels of a block, to which branches before them may go.
    fn foresee(&mut self, block: &Block<'a>) {
        for statement in &block.statements {
            let Statement::Label(name) = statement else { continue };
            if self.scopes.last().is_some_and(|scope| scope.labels.contains_key(name.text)) {
                continue;
            }
            let symbol = self.symbol(*name, &Declaration::label(Kind::Label, *name));
            self.labels.insert(name.text, symbol);
            if let Some(scope) = self.scopes.last_mut() {
                scope.labels.insert(name.text, symbol);
            }
        }
    }

    fn statements(&mut self, block: &Block<'a>) {
        for statement in &block.statements {
            self.statement(statement);
        }
        // Branches of a `.branchtargets` may go to names that are declared below it.
        for statement in &block.statements {
            if let Statement::Targets(node) = statement
                && node.directive.text == "branchtargets"
            {
                node.targets.iter().for_each(|name| self.names(*name));
            }
        }
    }

    fn statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::Label(name) => {
                let Some(scope) = self.scopes.last_mut() else { return };
                let Some(&symbol) = scope.labels.get(name.text) else { return };
                scope.names.entry(name.text).or_insert(symbol);
                self.occurs(*name, symbol, None, true);
            }
            Statement::Instruction(node) => self.instruction(node),
            Statement::Unfinished(node) => self.instruction(node),
            Statement::Variable(node) => self.variable(node),
            // The parser bounds how deeply blocks nest.
            Statement::Block(node) => {
                self.scopes.push(Scope { span: node.span, ..Scope::default() });
                self.foresee(node);
                self.statements(node);
                self.scopes.pop();
            }
            Statement::Loc(node) => self.late.extend(node.inlined.as_ref().map(|node| node.function_name)),
            Statement::Directive(_) => {}
            Statement::Targets(node) => {
                if node.directive.text != "branchtargets" {
                    node.targets.iter().for_each(|name| self.names(*name));
                }
                self.table(node.label, node.span);
            }
            Statement::CallPrototype(node) => self.table(node.label, node.span),
            Statement::Function(node) => self.function(node),
            Statement::Alias(node) => {
                self.names(node.alias);
                self.names(node.aliasee);
            }
        }
    }

    fn table(&mut self, label: Name<'a>, whole: Span) {
        let declaration = Declaration { declarator: whole, ..Declaration::label(Kind::Table, label) };
        self.declare(label, &declaration);
    }

    fn instruction(&mut self, node: &Instruction<'a>) {
        if let Some(guard) = &node.guard {
            self.names(guard.predicate);
        }
        node.operands.iter().for_each(|operand| self.operand(operand));
    }

    fn operand(&mut self, operand: &Operand<'a>) {
        match operand {
            Operand::Name(name) => self.names(*name),
            Operand::WarpSize(_) | Operand::Sink(_) | Operand::Literal(_) | Operand::String(_) => {}
            Operand::Index(node) => {
                self.names(node.base);
                self.operand(&node.index);
            }
            Operand::Element(node) => self.names(node.base),
            Operand::Unary(node) => self.operand(&node.value),
            Operand::Binary(node) => {
                self.operand(&node.left);
                self.operand(&node.right);
            }
            Operand::Ternary(node) => {
                [&node.condition, &node.yes, &node.no].into_iter().for_each(|part| self.operand(part));
            }
            Operand::Cast(node) => self.operand(&node.value),
            Operand::Apply(node) => self.operand(&node.argument),
            Operand::Pair(node) => {
                self.operand(&node.first);
                self.operand(&node.second);
            }
            Operand::Vector(node) | Operand::List(node) => {
                node.operands.iter().for_each(|part| self.operand(part));
            }
            Operand::Address(node) => {
                self.operand(&node.location);
                node.coordinates.iter().for_each(|part| self.operand(part));
            }
        }
    }
}

impl Declaration {
    fn label(kind: Kind, name: Name) -> Declaration {
        Declaration { kind, head: Span::at(name.span.start), declarator: name.span, count: None }
    }
}
