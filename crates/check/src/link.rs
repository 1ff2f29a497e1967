//! Links several modules into one: `.extern` declarations find the definitions of other modules (PTX ISA, "Linking
//! Directives").
//!
//! The rules for which definition wins, the errors and their wording follow NVIDIA's linker.
//!
//! Modules are linked after the check and before they are lowered. [`Part::offset`] is added to the spans of each
//! part, so that each span of the result belongs to one source; `ptxvm::Module::locate` finds the file of a span.

use std::collections::HashMap;

use diag::{Code, Diagnostic, SourceFile, Span};

use crate::module::{
    AddressBase, FuncId, Function, Linkage, Module, Node, Operand, Param, Symbol, VarId, Variable,
};

/// One of the modules to link.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The module.
    pub module: &'a Module,
    /// Its source.
    pub source: &'a SourceFile,
    /// Added to its spans, so that spans in the result identify the part.
    pub offset: u32,
}

/// Links modules into one. Names without a linking directive remain private to their module, except kernels, which
/// are always visible.
///
/// # Errors
/// All errors, each with the index of the part that it is about. Its span is in that part's source.
pub fn link(parts: &[Part]) -> Result<Module, Vec<(usize, Diagnostic)>> {
    let mut linker = Linker { parts, errors: Vec::new() };
    linker.compare_address_sizes();
    let winners = linker.winners();
    if !linker.errors.is_empty() {
        return Err(linker.errors);
    }
    Ok(merge(parts, &winners))
}

/// A name that is visible to other modules.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    part: usize,
    /// Index of the variable or function in its module.
    index: usize,
    entity: Entity<'a>,
    rank: Rank,
    bytes: u64,
    span: Span,
}

#[derive(Clone, Copy)]
enum Entity<'a> {
    Variable(&'a Variable),
    Function(&'a Function),
}

/// The strength of a claim to a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A declaration that is not a definition.
    Reference,
    Common,
    Weak,
    Strong,
}

impl<'a> Candidate<'a> {
    /// The claim of a variable, unless it is private.
    fn variable(part: usize, index: usize, variable: &'a Variable) -> Option<Candidate<'a>> {
        let rank = match variable.linkage {
            _ if variable.function.is_some() => return None,
            Linkage::Internal => return None,
            Linkage::Extern => Rank::Reference,
            Linkage::Common => Rank::Common,
            Linkage::Weak => Rank::Weak,
            Linkage::Visible => Rank::Strong,
        };
        let Variable { bytes, span, .. } = *variable;
        Some(Candidate { part, index, entity: Entity::Variable(variable), rank, bytes, span })
    }

    /// The claim of a function, unless it is private.
    fn function(part: usize, index: usize, function: &'a Function) -> Option<Candidate<'a>> {
        let rank = match function.linkage {
            _ if function.body.is_none() => Rank::Reference,
            Linkage::Weak => Rank::Weak,
            Linkage::Internal if !function.is_entry => return None,
            _ => Rank::Strong,
        };
        let entity = Entity::Function(function);
        Some(Candidate { part, index, entity, rank, bytes: 0, span: function.span })
    }

    fn name(&self) -> &'a str {
        match self.entity {
            Entity::Variable(variable) => &variable.name,
            Entity::Function(function) => &function.name,
        }
    }
}

struct Linker<'a> {
    parts: &'a [Part<'a>],
    errors: Vec<(usize, Diagnostic)>,
}

impl<'a> Linker<'a> {
    fn compare_address_sizes(&mut self) {
        let Some((first, others)) = self.parts.split_first() else { return };
        for (i, part) in others.iter().enumerate() {
            let (ours, theirs) = (part.module.address_size, first.module.address_size);
            if ours != theirs {
                let message = format!("Address size {ours} doesn't match that of '{}'", first.source.name());
                let diagnostic = Diagnostic::error(Code::AddressSize, Span::at(0), message)
                    .note(format!("`{}` says `.address_size {theirs}`", first.source.name()));
                self.errors.push((i + 1, diagnostic));
            }
        }
    }

    /// The winning candidate for each name.
    fn winners(&mut self) -> HashMap<&'a str, Candidate<'a>> {
        let mut winners: HashMap<&'a str, Candidate<'a>> = HashMap::new();
        for (index, part) in self.parts.iter().enumerate() {
            for candidate in variables(index, part).chain(functions(index, part)).flatten() {
                match winners.get_mut(candidate.name()) {
                    None => drop(winners.insert(candidate.name(), candidate)),
                    Some(winner) => self.compete(winner, candidate),
                }
            }
        }
        winners
    }

    /// Replaces `winner` by `next` if the claim of `next` is stronger.
    fn compete(&mut self, winner: &mut Candidate<'a>, next: Candidate<'a>) {
        let name = next.name();
        let (here, there) = (self.parts[next.part].source.name(), self.parts[winner.part].source.name());
        if !same_space(winner, &next) {
            let message =
                format!("Memory space doesn't match for '{name}' in '{here}', first specified in '{there}'");
            return self.error(Code::MemorySpace, &next, winner, message);
        }
        if let (Entity::Function(ours), Entity::Function(theirs)) = (next.entity, winner.entity)
            && !same_prototype(ours, theirs)
        {
            let message =
                format!("Prototype doesn't match for '{name}' in '{here}', first defined in '{there}'");
            return self.error(Code::Prototype, &next, winner, message);
        }
        if next.rank == Rank::Strong && winner.rank == Rank::Strong {
            let message = format!("Multiple definition of '{name}' in '{here}', first defined in '{there}'");
            return self.error(Code::MultipleDefinition, &next, winner, message);
        }
        let is_common = |candidate: &Candidate| candidate.rank == Rank::Common;
        // A declaration may omit the size of an array that another module defines.
        let is_unsized = |candidate: &Candidate| candidate.rank == Rank::Reference && candidate.bytes == 0;
        let any = |test: &dyn Fn(&Candidate) -> bool| test(winner) || test(&next);
        if winner.bytes != next.bytes && !any(&is_common) && !any(&is_unsized) {
            let message =
                format!("Size doesn't match for '{name}' in '{here}', first specified in '{there}'");
            return self.error(Code::Size, &next, winner, message);
        }
        let (common, defined) = if is_common(&next) { (&next, &*winner) } else { (&*winner, &next) };
        if is_common(common) && defined.rank > Rank::Common && common.bytes > defined.bytes {
            let file = self.parts[common.part].source.name();
            let message =
                format!("Common symbol '{name}' in file '{file}' has larger size than initialization");
            return self.error(Code::Size, &next, winner, message);
        }
        // Among equal claims, the first wins; among common variables and among declarations, the larger wins.
        let larger = next.rank <= Rank::Common && next.bytes > winner.bytes;
        if next.rank > winner.rank || next.rank == winner.rank && larger {
            *winner = next;
        }
    }

    fn error(&mut self, code: Code, next: &Candidate, first: &Candidate, message: String) {
        let source = self.parts[first.part].source;
        let position = source.position(first.span.start);
        let place = format!("{}:{}:{}", source.name(), position.line, position.column);
        let diagnostic =
            Diagnostic::error(code, next.span, message).note(format!("first declared at {place}"));
        self.errors.push((next.part, diagnostic));
    }
}

fn same_space(a: &Candidate, b: &Candidate) -> bool {
    match (a.entity, b.entity) {
        (Entity::Variable(a), Entity::Variable(b)) => a.space == b.space,
        (Entity::Function(_), Entity::Function(_)) => true,
        _ => false,
    }
}

fn same_prototype(a: &Function, b: &Function) -> bool {
    let same = |a: &[Param], b: &[Param]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| {
                (a.ty, a.bytes, a.align, a.array, a.in_register)
                    == (b.ty, b.bytes, b.align, b.array, b.in_register)
            })
    };
    a.is_entry == b.is_entry && same(&a.params, &b.params) && same(&a.returns, &b.returns)
}

/// The claims of a part's variables.
fn variables<'a>(index: usize, part: &Part<'a>) -> impl Iterator<Item = Option<Candidate<'a>>> {
    part.module.variables.iter().enumerate().map(move |(i, v)| Candidate::variable(index, i, v))
}

/// The claims of a part's functions.
fn functions<'a>(index: usize, part: &Part<'a>) -> impl Iterator<Item = Option<Candidate<'a>>> {
    part.module.functions.iter().enumerate().map(move |(i, f)| Candidate::function(index, i, f))
}

/// For each part and each index in it: the index in the result.
type Numbers = Vec<Vec<u32>>;

/// Keeps all private variables and functions, and the winner of each name. Variables of a body remain even if the
/// body does not, because an alias may still use them.
fn merge(parts: &[Part], winners: &HashMap<&str, Candidate>) -> Module {
    let winner = |candidate: &Candidate| {
        let winner = &winners[candidate.name()];
        (winner.part, winner.index)
    };
    let stays = |candidate: &Option<Candidate>| {
        candidate.as_ref().is_none_or(|candidate| winner(candidate) == (candidate.part, candidate.index))
    };
    let number = |candidates: Vec<Vec<Option<Candidate>>>| {
        let mut next = 0..;
        let numbers = candidates.iter().map(|candidates| {
            candidates.iter().map(|c| if stays(c) { next.next().unwrap_or(0) } else { 0 }).collect()
        });
        let mut numbers: Numbers = numbers.collect();
        for candidate in candidates.iter().flatten().flatten() {
            let (part, index) = winner(candidate);
            numbers[candidate.part][candidate.index] = numbers[part][index];
        }
        numbers
    };
    let of_parts = || parts.iter().enumerate();
    let variable_numbers = number(of_parts().map(|(i, part)| variables(i, part).collect()).collect());
    let function_numbers = number(of_parts().map(|(i, part)| functions(i, part).collect()).collect());

    let first = parts[0].module;
    let mut whole = Module { variables: Vec::new(), functions: Vec::new(), ..*first };
    for (i, part) in of_parts() {
        let Module { version, target, .. } = *part.module;
        (whole.version, whole.target) = (whole.version.max(version), whole.target.max(target));
        let mover =
            Mover { variables: &variable_numbers[i], functions: &function_numbers[i], offset: part.offset };
        let kept = part.module.variables.iter().zip(variables(i, part)).filter(|(_, c)| stays(c));
        whole.variables.extend(kept.map(|(variable, _)| mover.variable(variable.clone())));
        let kept = part.module.functions.iter().zip(functions(i, part)).filter(|(_, c)| stays(c));
        whole.functions.extend(kept.map(|(function, _)| mover.function(function.clone())));
    }
    whole
}

/// Renumbers the ids of one part for the result.
struct Mover<'a> {
    variables: &'a [u32],
    functions: &'a [u32],
    offset: u32,
}

impl Mover<'_> {
    fn variable(&self, mut variable: Variable) -> Variable {
        self.span(&mut variable.span);
        variable.relocations.iter_mut().for_each(|relocation| self.symbol(&mut relocation.symbol));
        variable.function = variable.function.map(|id| FuncId(self.functions[id.index()]));
        variable
    }

    fn function(&self, mut function: Function) -> Function {
        self.span(&mut function.span);
        self.params(&mut function.params);
        self.params(&mut function.returns);
        if let Some(body) = &mut function.body {
            body.owner = FuncId(self.functions[body.owner.index()]);
            body.labels.iter_mut().for_each(|label| self.span(&mut label.span));
            for prototype in &mut body.prototypes {
                self.params(&mut prototype.params);
                self.params(&mut prototype.returns);
            }
            for node in &mut body.code {
                if let Node::Instruction(instruction) = node {
                    self.span(&mut instruction.span);
                    instruction.operands.iter_mut().for_each(|operand| self.operand(operand));
                }
            }
        }
        function
    }

    fn params(&self, params: &mut [Param]) {
        params.iter_mut().for_each(|param| self.span(&mut param.span));
    }

    fn operand(&self, operand: &mut Operand) {
        match operand {
            Operand::Symbol(symbol, _) | Operand::Address(AddressBase::Symbol(symbol), _) => {
                self.symbol(symbol)
            }
            Operand::Function(id) => *id = FuncId(self.functions[id.index()]),
            Operand::Texels(texels) => {
                for base in [Some(&mut texels.handle), texels.sampler.as_mut()].into_iter().flatten() {
                    if let AddressBase::Symbol(symbol) = base {
                        self.symbol(symbol);
                    }
                }
                texels.coordinates.iter_mut().for_each(|operand| self.operand(operand));
            }
            Operand::Tensor(tensor) => {
                self.operand(&mut tensor.map);
                tensor.coordinates.iter_mut().for_each(|operand| self.operand(operand));
            }
            Operand::Vector(operands) | Operand::List(operands) | Operand::Resident(operands, _) => {
                operands.iter_mut().for_each(|operand| self.operand(operand));
            }
            Operand::Address(AddressBase::Reg(_) | AddressBase::Absolute(_), _)
            | Operand::Reg(_)
            | Operand::NotReg(_)
            | Operand::RegPlus(..)
            | Operand::Imm(_)
            | Operand::Special(_)
            | Operand::Pair(..)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::Prototype(_) => {}
        }
    }

    fn symbol(&self, symbol: &mut Symbol) {
        match symbol {
            Symbol::Variable(id) => *id = VarId(self.variables[id.index()]),
            Symbol::Function(id) => *id = FuncId(self.functions[id.index()]),
            Symbol::Param(_) | Symbol::Return(_) => {}
        }
    }

    fn span(&self, span: &mut Span) {
        span.start += self.offset;
        span.end += self.offset;
    }
}
