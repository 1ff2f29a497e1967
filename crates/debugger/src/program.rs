//! What a debugger knows of a program before it runs: places in its sources, and how its registers are used.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ptxvm::debug::{
    Access, Body, FuncId, Function, Kind, Node, Operand, RegId, Space, Span, Symbol, Type, VarId, Variable,
};
use ptxvm::{Module, PlaceInSource, Places};

use crate::expression::Expression;

/// The registers of a function by name, and the types of their values.
pub struct Registers {
    by_name: HashMap<String, RegId>,
    types: Vec<Type>,
}

/// A program and its sources.
pub struct Program {
    module: Module,
    places: Places,
    /// By the function's name.
    registers: RefCell<HashMap<String, Arc<Registers>>>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("source", &self.module.source().name()).finish_non_exhaustive()
    }
}

/// Whether two names may be those of one file: one has all last parts of the other.
pub(crate) fn is_file(name: &str, asked: &str) -> bool {
    let ends = |long: &str, short: &str| {
        let rest = long.strip_suffix(short);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    !asked.is_empty() && (ends(name, asked) || ends(asked, name))
}

impl Program {
    /// A module, and where its instructions come from.
    pub fn new(module: Module) -> Program {
        Program { places: module.places(), module, registers: RefCell::default() }
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
    pub fn place(&self, span: Span) -> PlaceInSource {
        self.places.at(span)
    }

    /// The instructions that a breakpoint at a line of a source stops before: that line's, or the first one of a
    /// later line in the same function. For a line of an original source, wherever the code comes to it.
    pub fn at_line(&self, file: Option<&str>, line: u32) -> Vec<Span> {
        let line_of = |span| self.place(span).position().line;
        let begins_before = |(function, _): &(&Function, &Body)| {
            let start = self.place(function.span);
            file.is_none_or(|file| is_file(start.source.name(), file)) && start.position().line <= line
        };
        let spans = self.functions().filter(begins_before).flat_map(|(_, body)| body.instructions());
        let behind = spans.map(|instruction| instruction.span).filter(|&span| line_of(span) >= line);
        if let Some(first) = behind.min_by_key(|&span| line_of(span)) {
            return vec![first];
        }
        let Some(file) = file else { return Vec::new() };
        let is_there = |span| {
            let original = self.place(span).original;
            original.is_some_and(|place| {
                place.chain().any(|place| place.line == u64::from(line) && is_file(&place.file, file))
            })
        };
        let mut at = Vec::new();
        for (_, body) in self.functions() {
            let mut before = false;
            for instruction in body.instructions() {
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
                at.extend(body.instructions().next().map(|instruction| instruction.span));
            }
            for (index, node) in body.code.iter().enumerate() {
                if let Node::Label(label) = node
                    && body.labels[label.index()].name == place
                {
                    at.extend(body.instructions_from(index).next().map(|instruction| instruction.span));
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
        self.functions().find(|(_, body)| body.instructions().any(|instruction| instruction.span == span))
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
            for instruction in body.instructions() {
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
