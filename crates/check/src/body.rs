//! Bodies of functions: scopes, labels and the statements that are not instructions.

use diag::{Code, Span};
use std::collections::HashMap;
use std::rc::Rc;
use std::slice;

use smallvec::SmallVec;
use syntax::tree::{Block, CallPrototype, Function as FunctionTree, Name, Statement, Targets};

use crate::checker::Checker;
use crate::function::Owner;
use crate::module::{
    Body, BranchTargetsId, FuncId, Label, LabelId, Node, Param, Prototype, PrototypeId, RegId, Register,
};
use crate::scope::{Entity, Scope};
use crate::selection::Selection;
use crate::sink::Sink;
use crate::variable::Place;

/// Components of vectors, as written after the dot.
pub(crate) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// A vector and the register that it is passed in.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(crate) whole: RegId,
    pub(crate) elements: SmallVec<[RegId; 4]>,
}

/// The body that is being checked.
pub(crate) struct BodyChecker<'c, 'a> {
    pub(crate) module: &'c mut Checker<'a>,
    pub(crate) function: FuncId,
    pub(crate) params: Vec<Param>,
    pub(crate) returns: Vec<Param>,
    pub(crate) body: Body,
    /// The open scopes, from the outermost `{ }` to the innermost.
    pub(crate) scopes: Vec<Scope<'a>>,
    /// Selections so far, by spelling and number of operands. A file repeats a few of them many times.
    pub(crate) selections: HashMap<(&'a str, usize), Rc<Selection>>,
    /// `.branchtargets` whose labels may follow.
    pending_targets: Vec<(BranchTargetsId, Vec<Name<'a>>)>,
    /// Vectors that the function returns, each packed into one register.
    pub(crate) vector_returns: Vec<Packed>,
    /// Vectors that the current call returns.
    pub(crate) returned_vectors: Vec<(Packed, Span)>,
    /// The functions of each `.calltargets`.
    pub(crate) call_targets: Vec<Vec<FuncId>>,
    /// Greatest number of elements of an operand of the current instruction, by the table.
    pub(crate) longest_vector: usize,
    /// Vectors in the current instruction whose length no instruction takes.
    pub(crate) illegal_vectors: Vec<(usize, Span)>,
    /// Is the current instruction one on textures or surfaces?
    pub(crate) accesses_texels: bool,
    /// Does ptxas make a call of the current instruction?
    pub(crate) becomes_call: bool,
    /// Does the current instruction have tensor coordinates?
    pub(crate) names_tensor: bool,
    /// See [`crate::texture::has_plain_offset`].
    pub(crate) has_plain_offset: bool,
    /// Modifiers of the current instruction that a message has named as excluding each other.
    pub(crate) apart: crate::context::Apart<'a>,
}

impl<'a> Checker<'a> {
    /// Checks the body of a function that is already declared.
    pub(crate) fn body(&mut self, node: &FunctionTree<'a>, block: &Block<'a>, function: FuncId) {
        let entry = &self.functions[function.index()];
        let (params, returns) = (entry.params.clone(), entry.returns.clone());
        let mut checker = BodyChecker {
            module: self,
            function,
            params,
            returns,
            body: Body::new(function),
            scopes: vec![Scope::default()],
            selections: HashMap::new(),
            pending_targets: Vec::new(),
            vector_returns: Vec::new(),
            returned_vectors: Vec::new(),
            call_targets: Vec::new(),
            longest_vector: 1,
            illegal_vectors: Vec::new(),
            accesses_texels: false,
            becomes_call: false,
            names_tensor: false,
            has_plain_offset: false,
            apart: Default::default(),
        };
        checker.declare_per_function();
        checker.declare_params(node);
        checker.statements(&block.statements);
        // The end of the body is an implicit return.
        checker.pack_returns(Span::at(block.span.end.saturating_sub(1)));
        let BodyChecker { params, returns, body, .. } = checker;
        let entry = &mut self.functions[function.index()];
        entry.params = params;
        entry.returns = returns;
        entry.body = Some(body);
    }
}

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn sink(&mut self) -> &mut Sink<'a> {
        &mut self.module.sink
    }

    /// Packs the vectors that the function returns.
    pub(crate) fn pack_returns(&mut self, span: Span) {
        for packed in self.vector_returns.clone() {
            self.pack(&packed, span);
        }
    }

    /// Declares the registers and local memory of the module in a scope around the function's own.
    fn declare_per_function(&mut self) {
        let declarations = std::mem::take(&mut self.module.per_function);
        for node in &declarations {
            let place = Place { scopes: &mut self.scopes, function: self.function };
            self.module.variables(node, Some(place));
        }
        self.module.per_function = declarations;
        self.scopes.push(Scope::default());
    }

    fn declare_params(&mut self, node: &FunctionTree<'a>) {
        let returns = node.returns.as_deref().unwrap_or_default();
        let params = node.parameters.as_deref().unwrap_or_default();
        for (is_return, trees) in [(true, returns), (false, params)] {
            for (i, tree) in trees.iter().enumerate() {
                let list = if is_return { &mut self.returns } else { &mut self.params };
                let Some(param) = list.get_mut(i) else { continue };
                let entity = if param.in_register {
                    let id = RegId(self.body.registers.len() as u32);
                    self.body.registers.push(Register { name: param.name.clone(), ty: param.ty });
                    param.register = Some(id);
                    let ty = param.ty;
                    match self.vector_parameter(tree, id) {
                        Some((entity, packed)) if is_return => {
                            self.vector_returns.push(packed);
                            entity
                        }
                        Some((entity, packed)) => {
                            self.unpack(&packed, tree.name.span);
                            entity
                        }
                        None => Entity::Register(ty, Some(id)),
                    }
                } else if is_return {
                    Entity::Return(i as u32)
                } else {
                    Entity::Param(i as u32)
                };
                self.declare(tree.name, entity, "variable");
            }
        }
    }

    /// Enters a name into the innermost scope.
    fn declare(&mut self, name: Name<'a>, entity: Entity, what: &str) {
        let Some(scope) = self.scopes.last_mut() else { return };
        if let Err(conflict) = scope.declare(name.text, entity, name.span) {
            self.module.duplicate(what, &conflict.name, name.span, conflict.previous);
        }
    }

    /// Checks the statements of a function. Open blocks are on an explicit stack, so that nesting does not use the
    /// thread's stack.
    fn statements(&mut self, statements: &[Statement<'a>]) {
        let mut open = vec![self.enter(statements)];
        while let Some((rest, first_pending)) = open.last_mut() {
            match rest.next() {
                Some(Statement::Block(block)) => {
                    self.sink().begin_statement();
                    self.scopes.push(Scope::default());
                    open.push(self.enter(&block.statements));
                }
                Some(statement) => self.statement(statement),
                None => {
                    for (id, targets) in self.pending_targets.split_off(*first_pending) {
                        self.sink().begin_statement();
                        self.resolve_targets(id, &targets);
                    }
                    open.pop();
                    if !open.is_empty() {
                        self.scopes.pop();
                    }
                }
            }
        }
    }

    /// Enters the innermost scope. Returns its statements and the number of pending `.branchtargets`. Declares the
    /// labels of the scope first, because branches may go forward.
    fn enter<'s>(&mut self, statements: &'s [Statement<'a>]) -> (slice::Iter<'s, Statement<'a>>, usize) {
        if let Some(scope) = self.scopes.last_mut() {
            let labels = &mut self.body.labels;
            for statement in statements {
                match statement {
                    Statement::Label(name) => scope.foresee_label(name.text, || {
                        labels.push(Label { name: name.text.to_owned(), span: name.span });
                        LabelId(labels.len() as u32 - 1)
                    }),
                    Statement::Targets(node) => scope.foresee_table(node.label.text),
                    Statement::CallPrototype(node) => scope.foresee_table(node.label.text),
                    _ => {}
                }
            }
        }
        (statements.iter(), self.pending_targets.len())
    }

    fn statement(&mut self, statement: &Statement<'a>) {
        self.sink().begin_statement();
        match statement {
            Statement::Label(name) => self.label(*name),
            Statement::Instruction(node) => self.instruction(node),
            Statement::Unfinished(node) => self.unfinished(node),
            Statement::Variable(node) => {
                let place = Place { scopes: &mut self.scopes, function: self.function };
                self.module.variables(node, Some(place));
            }
            // [`BodyChecker::statements`] handles blocks.
            Statement::Block(_) => {}
            Statement::Targets(node) => self.targets(node),
            Statement::CallPrototype(node) => self.call_prototype(node),
            Statement::Loc(node) => self.module.loc(node),
            Statement::Function(node) => self.module.function(node),
            Statement::Alias(node) => self.module.alias(node),
            Statement::Directive(node) if node.name.text == "pragma" => self.module.pragma(node, true),
            Statement::Directive(node) => {
                self.module.misplaced(node.name.span, &format!(".{}", node.name.text));
            }
        }
    }

    fn label(&mut self, name: Name<'a>) {
        let Some(id) = self.scopes.last().and_then(|scope| scope.label(name.text)) else { return };
        self.declare(name, Entity::Label(id), "label");
        self.body.code.push(Node::Label(id));
    }

    /// `label: .branchtargets a, b;` or `label: .calltargets f, g;`
    fn targets(&mut self, node: &Targets<'a>) {
        let branches = node.directive.text == "branchtargets";
        let entity = if branches {
            let id = BranchTargetsId(self.body.branch_targets.len() as u32);
            self.body.branch_targets.push(Vec::new());
            let targets = node.targets.to_vec();
            self.pending_targets.push((id, targets));
            Entity::BranchTargets(id)
        } else {
            let mut functions = Vec::new();
            for name in &node.targets {
                match self.resolve(name.text) {
                    Some(Entity::Function(id)) => functions.push(id),
                    Some(_) => {
                        let message = "Illegal call target, device function expected";
                        self.sink().error(Code::IllegalCallTarget, name.span, message);
                    }
                    None => self.unknown(*name),
                }
            }
            self.call_targets.push(functions);
            Entity::CallTargets(self.call_targets.len() - 1)
        };
        self.declare(node.label, entity, "label");
    }

    fn resolve_targets(&mut self, id: BranchTargetsId, targets: &[Name<'a>]) {
        for name in targets {
            let found = self.resolve(name.text);
            match found {
                Some(Entity::Label(label)) => self.body.branch_targets[id.index()].push(label),
                Some(_) => {
                    let message = "Illegal branch target, label expected";
                    self.sink().error(Code::IllegalBranchTarget, name.span, message);
                }
                None => self.unknown(*name),
            }
        }
    }

    /// `label: .callprototype (ret) _ (params);`
    fn call_prototype(&mut self, node: &CallPrototype<'a>) {
        let (parameters, returns) = (node.parameters.as_deref(), node.returns.as_deref());
        let (params, returns) = self.module.signature(parameters, returns, Owner::Prototype, false);
        for directive in node.directives.iter() {
            if directive.name.text.starts_with("abi_preserve") {
                self.module.abi_preserve(directive);
            }
        }
        let id = PrototypeId(self.body.prototypes.len() as u32);
        self.body.prototypes.push(Prototype { returns, params });
        self.declare(node.label, Entity::Prototype(id), "label");
    }

    /// The meaning of a name in the innermost scope. A register gets its id here.
    pub(crate) fn resolve(&mut self, name: &'a str) -> Option<Entity> {
        let registers = &mut self.body.registers;
        for scope in self.scopes.iter_mut().rev() {
            let Some(declared) = scope.get_mut(name) else { continue };
            let mut make = |name: String, ty| {
                registers.push(Register { name, ty });
                Some(RegId(registers.len() as u32 - 1))
            };
            match &mut declared.entity {
                Entity::Register(ty, id @ None) => *id = make(name.to_owned(), *ty),
                Entity::VectorRegister(ty, lanes, ids) if ids[0].is_none() => {
                    for (id, component) in ids.iter_mut().zip(COMPONENTS).take(usize::from(*lanes)) {
                        *id = make(format!("{name}.{component}"), *ty);
                    }
                }
                _ => {}
            }
            return Some(declared.entity);
        }
        if let Some(declared) = self.module.globals.get(name) {
            return Some(declared.entity);
        }
        self.scopes.iter().rev().find_map(|scope| scope.label(name)).map(Entity::Label)
    }
}
