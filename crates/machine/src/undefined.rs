//! Names that a module declares but does not define. NVIDIA's linker rejects them.

use check::module::{AddressBase, FuncId, Function, Linkage, Module, Node, Operand, Symbol, VarId, Variable};
use diag::Span;
use isa::Space;

use crate::builtin::{Builtin, is_rust_panic, why_missing};

/// An undefined name that a kernel needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The name.
    pub name: String,
    /// Why there is no definition, and how to fix that.
    pub why: String,
    /// What needs it: a function, or a variable whose initial value refers to it.
    pub user: String,
    /// The first use.
    pub span: Span,
}

/// Whether a function has no body and CUDA provides none. A panic of Rust needs none, since it never returns.
fn is_undefined_function(function: &Function, address_bytes: u64) -> bool {
    let name = &function.name;
    let provided = || Builtin::of(name).is_some_and(|builtin| builtin.fits(function, address_bytes));
    function.body.is_none() && !is_rust_panic(name) && !provided()
}

/// Whether a variable has no definition. An undefined `.extern .shared` variable denotes dynamic shared memory instead.
fn is_undefined_variable(variable: &Variable) -> bool {
    variable.linkage == Linkage::Extern && matches!(variable.space, Space::Global | Space::Const)
}

/// The undefined names that a kernel needs, in source order, each once. A kernel needs the names that its `reached`
/// functions use, and those in the initial values of the variables that it needs.
pub(crate) fn undefined(module: &Module, reached: &[bool]) -> Vec<Undefined> {
    let mut search = Search { module, variables: vec![false; module.variables.len()], found: Vec::new() };
    for (function, _) in module.functions.iter().zip(reached).filter(|(_, reached)| **reached) {
        let Some(body) = &function.body else { continue };
        for node in &body.code {
            if let Node::Instruction(instruction) = node {
                let user = User { name: &function.name, span: instruction.span };
                instruction.operands.iter().for_each(|operand| search.operand(operand, user));
            }
        }
    }
    search.found.sort_by_key(|undefined| undefined.span.start);
    let mut names = std::collections::HashSet::new();
    search.found.retain(|undefined| names.insert(undefined.name.clone()));
    search.found
}

struct Search<'a> {
    module: &'a Module,
    /// The variables that have been visited.
    variables: Vec<bool>,
    found: Vec<Undefined>,
}

/// The user of a symbol, and the place of the use.
#[derive(Clone, Copy)]
struct User<'a> {
    name: &'a str,
    span: Span,
}

impl<'a> Search<'a> {
    fn operand(&mut self, operand: &Operand, user: User<'a>) {
        match operand {
            Operand::Function(id) => self.function(*id, user),
            Operand::Symbol(symbol, _) | Operand::Address(AddressBase::Symbol(symbol), _) => {
                self.symbol(*symbol, user);
            }
            Operand::Texels(texels) => {
                for base in [Some(texels.handle), texels.sampler].into_iter().flatten() {
                    if let AddressBase::Symbol(symbol) = base {
                        self.symbol(symbol, user);
                    }
                }
            }
            Operand::Tensor(tensor) => self.operand(&tensor.map, user),
            Operand::Vector(operands) | Operand::List(operands) => {
                operands.iter().for_each(|operand| self.operand(operand, user));
            }
            _ => {}
        }
    }

    fn symbol(&mut self, symbol: Symbol, user: User<'a>) {
        match symbol {
            Symbol::Variable(id) => self.variable(id, user),
            Symbol::Function(id) => self.function(id, user),
            Symbol::Param(_) | Symbol::Return(_) => {}
        }
    }

    fn function(&mut self, id: FuncId, user: User<'a>) {
        let function = &self.module.functions[id.index()];
        if is_undefined_function(function, u64::from(self.module.address_size / 8)) {
            self.missing(&function.name, why_missing(&function.name), user);
        }
    }

    fn variable(&mut self, first: VarId, user: User<'a>) {
        let mut work = vec![(first, user)];
        while let Some((id, user)) = work.pop() {
            let variable = &self.module.variables[id.index()];
            if is_undefined_variable(variable) {
                let name = &variable.name;
                let why = format!(
                    "`{name}` is declared .extern, but no module defines it: give the file that does to the same run"
                );
                self.missing(name, why, user);
            }
            if std::mem::replace(&mut self.variables[id.index()], true) {
                continue;
            }
            let user = User { name: &variable.name, span: variable.span };
            for relocation in &variable.relocations {
                match relocation.symbol {
                    Symbol::Variable(id) => work.push((id, user)),
                    symbol => self.symbol(symbol, user),
                }
            }
        }
    }

    fn missing(&mut self, name: &str, why: String, user: User<'a>) {
        self.found.push(Undefined {
            name: name.to_owned(),
            why,
            user: user.name.to_owned(),
            span: user.span,
        });
    }
}
