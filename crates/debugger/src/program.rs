//! What a debugger knows of a program before it runs: places in its sources, and how its registers are used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ptxvm::debug::{
    Access, Body, FuncId, Function, Instruction, Kind, Node, Operand, RegId, Space, Span, Symbol, Type,
    VarId, Variable,
};
use ptxvm::{Module, OriginalPlace, OriginalPlaces};

use crate::expression::Expression;

/// A place in a source of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the source in [`Module::sources`].
    pub source: usize,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// What the compiler made it from, if it says so.
    pub original: Option<OriginalPlace>,
}

/// The registers of a function by name, and the types of their values.
pub struct Registers {
    by_name: HashMap<String, RegId>,
    types: Vec<Type>,
}

/// A program and its sources.
pub struct Program {
    module: Module,
    original: Vec<OriginalPlaces>,
    /// By the function's name.
    registers: RefCell<HashMap<String, Arc<Registers>>>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("source", &self.module.source().name()).finish_non_exhaustive()
    }
}

/// The instructions of a body, in order.
fn instructions(body: &Body) -> impl Iterator<Item = &Instruction> {
    body.code.iter().filter_map(|node| match node {
        Node::Instruction(instruction) => Some(instruction),
        Node::Label(_) => None,
    })
}

/// Whether two names may be those of one file: one has all last parts of the other.
fn is_file(name: &str, asked: &str) -> bool {
    let ends = |long: &str, short: &str| {
        let rest = long.strip_suffix(short);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    !asked.is_empty() && (ends(name, asked) || ends(asked, name))
}

impl Program {
    /// A module, and where its instructions come from.
    pub fn new(module: Module) -> Program {
        let original = module.sources().map(|source| OriginalPlaces::of(source)).collect();
        Program { module, original, registers: RefCell::default() }
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The functions with a body.
    fn functions(&self) -> impl Iterator<Item = (&Function, &Body)> {
        let functions = &self.module.program().module.functions;
        functions.iter().filter_map(|function| Some((function, function.body.as_ref()?)))
    }

    /// The place of a span.
    pub fn place(&self, span: Span) -> Place {
        let (source, span) = self.module.locate(span);
        let file = self.module.sources().nth(source);
        let (line, column) = file.map_or((0, 0), |file| {
            let position = file.position(span.start);
            (position.line, position.column)
        });
        let original = self.original.get(source).and_then(|places| places.at(span.start));
        Place { source, line, column, original }
    }

    /// The name of a source.
    pub fn source_name(&self, source: usize) -> &str {
        self.module.sources().nth(source).map_or("", |source| source.name())
    }

    /// A line of a source, without its end.
    pub fn line(&self, source: usize, line: u32) -> Option<&str> {
        let file = self.module.sources().nth(source)?;
        (1..=file.line_count()).contains(&line).then(|| file.slice(file.line_span(line)).trim_end())
    }

    /// The text of a span, on one line.
    pub fn text(&self, span: Span) -> String {
        let (source, span) = self.module.locate(span);
        let text = self.module.sources().nth(source).map_or("", |source| source.slice(span));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// `saxpy.ptx:19`, `saxpy.ptx:19 (saxpy.cu:12)`
    pub fn name(&self, place: &Place) -> String {
        let file = self.source_name(place.source);
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        match &place.original {
            Some(original) => format!("{file}:{} ({})", place.line, original.short()),
            None => format!("{file}:{}", place.line),
        }
    }

    /// The instructions that a breakpoint at a line of a source stops before: that line's, or the first one of a
    /// later line in the same function. For a line of an original source, wherever the code comes to it.
    pub fn at_line(&self, file: Option<&str>, line: u32) -> Vec<Span> {
        let mut at = Vec::new();
        for (_, body) in self.functions() {
            let mut best: Option<(u32, Span)> = None;
            for instruction in instructions(body) {
                let place = self.place(instruction.span);
                let fits = file.is_none_or(|file| is_file(self.source_name(place.source), file));
                let first = body.code.first().map(|node| match node {
                    Node::Instruction(i) => self.place(i.span).line,
                    Node::Label(label) => self.place(body.labels[label.index()].span).line,
                });
                let within = first.is_some_and(|first| first <= line) || place.line == line;
                if fits && within && place.line >= line && best.is_none_or(|(best, _)| place.line < best) {
                    best = Some((place.line, instruction.span));
                }
            }
            at.extend(best.map(|(_, span)| span));
        }
        // Of several functions, the one that has the line; a function above it ends before.
        if let Some(nearest) = at.iter().map(|span| self.place(*span).line).min() {
            at.retain(|span| self.place(*span).line == nearest);
        }
        let Some(file) = file.filter(|_| at.is_empty()) else { return at };
        for (_, body) in self.functions() {
            let is_there = |span| {
                let original = self.place(span).original;
                original.is_some_and(|place| {
                    place.chain().any(|place| place.line == u64::from(line) && is_file(&place.file, file))
                })
            };
            let mut before = false;
            for instruction in instructions(body) {
                let here = is_there(instruction.span);
                at.extend((here && !before).then_some(instruction.span));
                before = here;
            }
        }
        at
    }

    /// The instructions that a place means: `19`, `saxpy.cu:12`, a function, or a label.
    ///
    /// # Errors
    /// If there is none.
    pub fn resolve(&self, place: &str) -> Result<Vec<Span>, String> {
        let (file, line) = match place.rsplit_once(':') {
            Some((file, line)) => (Some(file), line),
            None => (None, place),
        };
        if let Ok(line) = line.parse() {
            let at = self.at_line(file, line);
            return if at.is_empty() {
                Err(format!("no instruction at or behind `{place}`"))
            } else {
                Ok(at)
            };
        }
        let mut at = Vec::new();
        for (function, body) in self.functions() {
            if function.name == place || ptxvm::short_name(&function.name) == place {
                at.extend(instructions(body).next().map(|instruction| instruction.span));
            }
            for (index, node) in body.code.iter().enumerate() {
                if let Node::Label(label) = node
                    && body.labels[label.index()].name == place
                {
                    let behind = body.code[index..].iter().find_map(|node| match node {
                        Node::Instruction(instruction) => Some(instruction.span),
                        Node::Label(_) => None,
                    });
                    at.extend(behind);
                }
            }
        }
        if at.is_empty() {
            return Err(format!("`{place}` is no line (19, saxpy.cu:12), function or label of the program"));
        }
        Ok(at)
    }

    /// The function that contains a span.
    pub fn function_at(&self, span: Span) -> Option<(&Function, &Body)> {
        self.functions().find(|(_, body)| {
            let mut spans = instructions(body).map(|instruction| instruction.span);
            spans.any(|other| other == span)
        })
    }

    /// Checks that a function sees all names of an expression.
    ///
    /// # Errors
    /// The first one that it does not see.
    pub fn has_names(&self, function: &Function, body: &Body, expression: &Expression) -> Result<(), String> {
        let registers = self.registers(function, body);
        let is_known = |name| registers.find(name).is_some() || self.symbol(function, body, name).is_some();
        match expression.names().into_iter().find(|name| !is_known(name)) {
            Some(name) => {
                let function = ptxvm::short_name(&function.name);
                Err(format!("`{function}` has no register, variable or parameter `{name}`"))
            }
            None => Ok(()),
        }
    }

    /// The registers of a function.
    pub fn registers(&self, function: &Function, body: &Body) -> Arc<Registers> {
        let mut all = self.registers.borrow_mut();
        if let Some(known) = all.get(&function.name) {
            return Arc::clone(known);
        }
        let registers = Arc::new(Registers::of(body));
        all.insert(function.name.clone(), Arc::clone(&registers));
        registers
    }

    /// A variable, parameter or function by its name, as a function sees it, and its state space.
    pub fn symbol(&self, function: &Function, body: &Body, name: &str) -> Option<Symbol> {
        let short = |full: &str| full == name || ptxvm::short_name(full) == name;
        let param = |param: &str| param == name || ptxvm::short_param(&function.name, param) == name;
        if let Some(index) = function.params.iter().position(|p| param(&p.name)) {
            return Some(Symbol::Param(index as u32));
        }
        let module = &self.module.program().module;
        let mut variables = module.variables.iter().enumerate();
        let fits = |(_, variable): &(usize, &Variable)| {
            variable.space != Space::Reg
                && variable.function.is_none_or(|function| function == body.owner)
                && short(&variable.name)
        };
        if let Some((index, _)) = variables.find(fits) {
            return Some(Symbol::Variable(VarId(index as u32)));
        }
        let index = module.functions.iter().position(|function| short(&function.name))?;
        Some(Symbol::Function(FuncId(index as u32)))
    }
}

impl Registers {
    fn of(body: &Body) -> Registers {
        let by_name = body.registers.iter().enumerate();
        let by_name = by_name.map(|(index, register)| (register.name.clone(), RegId(index as u32))).collect();
        let mut types: Vec<_> = body.registers.iter().map(|register| register.ty).collect();
        // Compilers declare bits. What instructions write there, or else read, says more.
        for wants_writes in [true, false] {
            for instruction in instructions(body) {
                for (operand, spec) in
                    instruction.operands.iter().zip(instruction.form.operands_with(&instruction.picks))
                {
                    let parts = match operand {
                        Operand::Vector(parts) => parts.as_slice(),
                        one => std::slice::from_ref(one),
                    };
                    let Some(ty) = spec.resolve(&instruction.picks) else { continue };
                    let is_write = spec.access != Access::Read;
                    for part in parts {
                        let Operand::Reg(register) = part else { continue };
                        let known = &mut types[register.index()];
                        if is_write == wants_writes
                            && is_bits(*known)
                            && !is_bits(ty)
                            && known.bits() == ty.bits()
                        {
                            *known = ty;
                        }
                    }
                }
            }
        }
        Registers { by_name, types }
    }

    pub fn find(&self, name: &str) -> Option<RegId> {
        self.by_name.get(name).copied()
    }

    /// The type by which a register's value is shown.
    pub fn ty(&self, register: RegId) -> Type {
        self.types[register.index()]
    }
}

fn is_bits(ty: Type) -> bool {
    ty.kind() == Kind::Bits
}
