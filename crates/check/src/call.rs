//! Calls: callee, arguments and return destinations (PTX ISA, "Control Flow Instructions: call", "Function Declarations").

use diag::{Code, Span};
use isa::{Form, Space, Type, register_allowed};
use syntax::tree::{Instruction as Tree, Name, Operand as OperandTree, OperandList};

use crate::body::{BodyChecker, Packed};
use crate::literal::Const;
use crate::module::{
    FuncId, Instruction, Node, Operand, Param, Prototype as Signature, PrototypeId, RegId, Symbol, Variable,
};
use crate::scope::Entity;
use crate::selection::Selection;
use crate::value::{Lowered, SymbolValue, Value};

/// The callee of a call.
struct Called {
    target: Operand,
    /// The signatures that a call must fit: one, or that of each function of a `.calltargets`.
    signatures: Vec<Signature>,
    /// For an indirect call.
    prototype: Option<PrototypeId>,
}

/// The operands of a call by their place.
#[derive(Default)]
struct Parts<'t, 'a> {
    returns: Option<&'t OperandList<'a>>,
    callee: Option<Name<'a>>,
    arguments: Option<&'t OperandList<'a>>,
    prototype: Option<Name<'a>>,
}

/// An argument, or a destination of what is returned.
struct Argument {
    ty: Type,
    bytes: u64,
    align: u64,
    array: bool,
    operand: Operand,
}

impl Argument {
    fn in_register(id: RegId, ty: Type) -> Argument {
        let bytes = u64::from(ty.bytes());
        Argument { ty, bytes, align: bytes, array: false, operand: Operand::Reg(id) }
    }

    /// Is it of the type and size of the parameter?
    fn fits(&self, formal: &Param) -> bool {
        // ptxas distinguishes `.b32 x[1]` and `.b32 x`.
        let formal_array = formal.array || formal.bytes != u64::from(formal.ty.bytes());
        self.bytes == formal.bytes
            && self.array == formal_array
            && (register_allowed(formal.ty, self.ty, false) || register_allowed(self.ty, formal.ty, false))
    }
}

/// `call (ret), f, (args), prototype`
fn parts<'t, 'a>(node: &'t Tree<'a>) -> Parts<'t, 'a> {
    let mut parts = Parts::default();
    for operand in &node.operands {
        match operand {
            OperandTree::List(list) if parts.callee.is_none() => parts.returns = Some(list),
            OperandTree::List(list) => parts.arguments = Some(list),
            OperandTree::Name(name) if parts.callee.is_none() => parts.callee = Some(*name),
            OperandTree::Name(name) => parts.prototype = Some(*name),
            _ => {}
        }
    }
    parts
}

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn call(
        &mut self,
        node: &Tree<'a>,
        guard: Option<(RegId, bool)>,
        form: &'static Form,
        selection: &Selection,
        errors_before: usize,
    ) {
        let parts = parts(node);
        self.returned_vectors.clear();
        let Some(callee) = parts.callee else { return };
        if !self.module.per_function.is_empty() {
            let message = "ptxvm has no variables in .reg or .local state space that functions share";
            let help = "declare them inside the functions, and pass what they share as parameters";
            self.sink().error(Code::Unsupported, node.span, message).help(help);
        }
        let Some(Called { target, signatures, prototype }) = self.callee(callee, &parts, node.span) else {
            return;
        };
        let returned = parts.returns.map(|list| self.lower_list(list));
        let arguments = parts.arguments.map(|list| self.lower_list(list));
        let count = |list: &Option<Vec<Lowered>>| list.as_ref().map_or(0, Vec::len);
        let mut lists = (None, None);
        for Signature { returns, params } in &signatures {
            let given = count(&arguments);
            if returns.len() != count(&returned) || params.len() != given && !is_variadic(params, given) {
                let message = "Call has wrong number of parameters";
                let (r, p) = (returns.len(), params.len());
                let help = format!("'{}' returns {r} and takes {p} parameters", callee.text);
                self.sink().error(Code::CallParameterCount, node.span, message).help(help);
            }
            let checked = (
                returned.as_ref().map(|list| self.call_list(list, returns, true)),
                arguments.as_ref().map(|list| self.call_list(list, params, false)),
            );
            // Every function of a `.calltargets` is checked. If all fit, their operands are equal, so that the first
            // ones are used.
            if lists == (None, None) {
                lists = checked;
            }
        }
        let mut operands = Vec::with_capacity(4);
        operands.extend(lists.0);
        operands.push(target);
        operands.extend(lists.1);
        operands.extend(prototype.map(Operand::Prototype));
        if self.sink().errors() == errors_before {
            let picks = selection.picks;
            self.body.code.push(Node::Instruction(Instruction {
                form,
                picks,
                guard,
                operands,
                span: node.span,
            }));
            for (packed, span) in std::mem::take(&mut self.returned_vectors) {
                self.unpack(&packed, span);
            }
        }
    }

    /// The callee; `None` if nothing can be called.
    fn callee(&mut self, name: Name<'a>, parts: &Parts<'_, 'a>, whole: Span) -> Option<Called> {
        match self.resolve(name.text) {
            Some(Entity::Function(id)) => {
                let function = &self.module.functions[id.index()];
                if function.is_entry {
                    let message = "Illegal call target, device function expected";
                    let help = "kernels cannot be called: declare it `.func`";
                    self.sink().error(Code::IllegalCallTarget, name.span, message).help(help);
                }
                if let Some(prototype) = parts.prototype {
                    self.prototype_of_name(prototype, parts);
                }
                let signatures = vec![self.signature_of(id)];
                Some(Called { target: Operand::Function(id), signatures, prototype: None })
            }
            Some(Entity::Register(ty, Some(id))) => self.indirect_callee(name, ty, id, parts),
            Some(Entity::Variable(_)) => {
                let message = "Label expected for argument 0 of instruction 'call'";
                self.sink()
                    .error(Code::LabelExpected, name.span, message)
                    .help("a variable cannot be called");
                let message = "Argument 0 of instruction 'call': must be register";
                self.sink().error(Code::RegisterExpected, name.span, message);
                None
            }
            found => {
                if found.is_none() {
                    self.unknown(name);
                }
                let message = format!("Call to '{}' requires call prototype", name.text);
                let help = match self.module.suggest(name.text, &self.scopes) {
                    Some(near) => near,
                    None => "declare the function before the call: `.func f(...);`".into(),
                };
                let span = if whole.is_empty() { whole } else { name.span };
                self.sink().error(Code::CallPrototypeRequired, span, message).help(help);
                None
            }
        }
    }

    /// A callee whose address is in a register: a prototype or a list of targets says what it takes.
    fn indirect_callee(
        &mut self,
        name: Name<'a>,
        ty: Type,
        register: RegId,
        parts: &Parts<'_, 'a>,
    ) -> Option<Called> {
        let Some(prototype) = parts.prototype else {
            let message = "Label expected for argument 0 of instruction 'call'";
            let help = "an indirect call names its `.callprototype` last";
            self.sink().error(Code::CallPrototypeRequired, name.span, message).help(help);
            if parts.arguments.is_some() || parts.returns.is_some() {
                let message = "Call target not recognized";
                self.sink().error(Code::CallPrototypeRequired, name.span, message);
            }
            return None;
        };
        let (signatures, prototype) = match self.resolve(prototype.text) {
            Some(Entity::Prototype(prototype)) => {
                (vec![self.body.prototypes[prototype.index()].clone()], Some(prototype))
            }
            Some(Entity::CallTargets(list)) => {
                let targets = self.call_targets[list].clone();
                let signatures: Vec<_> = targets.into_iter().map(|id| self.signature_of(id)).collect();
                let prototype = signatures.first().map(|first| {
                    self.body.prototypes.push(first.clone());
                    PrototypeId(self.body.prototypes.len() as u32 - 1)
                });
                (signatures, prototype)
            }
            found => {
                if found.is_none() {
                    self.unknown(prototype);
                }
                self.call_mismatch(prototype.span, "name a `.callprototype` or `.calltargets`");
                return None;
            }
        };
        if ![Type::U32, Type::U64].into_iter().any(|wanted| register_allowed(wanted, ty, false)) {
            self.call_mismatch(name.span, "the address of a function is in a .u64 register");
            return None;
        }
        Some(Called { target: Operand::Reg(register), signatures, prototype })
    }

    /// Reports a prototype on a direct call: only calls through a register take one.
    fn prototype_of_name(&mut self, prototype: Name<'a>, parts: &Parts<'_, 'a>) {
        if self.resolve(prototype.text).is_none() {
            return self.unknown(prototype);
        }
        let index = usize::from(parts.returns.is_some());
        let message = format!("Argument {index} of instruction 'call': must be register");
        let help = "a call by name takes no prototype";
        self.sink().error(Code::RegisterExpected, prototype.span, message).help(help);
    }

    fn call_mismatch(&mut self, span: Span, help: &str) {
        let message = "Arguments mismatch for instruction 'call'";
        self.sink().error(Code::ArgumentsMismatch, span, message).help(help);
    }

    fn signature_of(&self, id: FuncId) -> Signature {
        let function = &self.module.functions[id.index()];
        Signature { returns: function.returns.clone(), params: function.params.clone() }
    }

    fn lower_list(&mut self, list: &OperandList<'a>) -> Vec<Lowered> {
        list.operands.iter().map(|tree| self.lower(tree)).collect()
    }

    /// Checks arguments or return destinations against the formal parameters.
    fn call_list(&mut self, list: &[Lowered], formals: &[Param], returns: bool) -> Operand {
        let operands = list.iter().enumerate();
        Operand::List(operands.map(|(i, lowered)| self.argument(lowered, formals.get(i), returns)).collect())
    }

    fn argument(&mut self, lowered: &Lowered, formal: Option<&Param>, returns: bool) -> Operand {
        let span = lowered.span;
        let name = match formal {
            Some(formal) if !formal.name.is_empty() => formal.name.clone(),
            _ => "_".to_owned(),
        };
        let given = match &lowered.value {
            Value::Register(id, ty) => self.register_argument(*id, *ty, span, formal),
            Value::VectorRegister(ids, element) => {
                let packed = self.packed(ids.clone(), *element);
                self.vector_argument(packed, span, returns)
            }
            Value::Const(value) => return self.constant_argument(*value, span, formal, &name, returns),
            Value::Sink if returns => return Operand::Sink,
            Value::Symbol(SymbolValue { symbol, space: Space::Param, offset: 0, .. }) => match *symbol {
                Symbol::Variable(id) => {
                    let Variable { ty, bytes, align, .. } = self.module.variables[id.index()];
                    let array = bytes != u64::from(ty.bytes());
                    Argument { ty, bytes, align, array, operand: Operand::Symbol(*symbol, 0) }
                }
                Symbol::Param(i) => {
                    let own = self.params.get(i as usize).map_or(String::new(), |p| p.name.clone());
                    return self.own_parameter(&own, span);
                }
                Symbol::Return(i) => {
                    let own = self.returns.get(i as usize).map_or(String::new(), |p| p.name.clone());
                    return self.own_parameter(&own, span);
                }
                Symbol::Function(_) => return Operand::Sink,
            },
            Value::Reported => return Operand::Sink,
            _ => {
                let message = format!("Illegal argument for formal parameter '{name}'");
                self.sink().error(Code::CallArgument, span, message);
                if let Some(formal) = formal {
                    self.argument_mismatch(span, formal, &name, [true, true]);
                }
                return Operand::Sink;
            }
        };
        if let Some(formal) = formal {
            let mismatch = [!given.fits(formal), given.align != formal.align];
            self.argument_mismatch(span, formal, &name, mismatch);
        }
        given.operand
    }

    /// A register, which cannot be passed for an array.
    fn register_argument(&mut self, id: RegId, ty: Type, span: Span, formal: Option<&Param>) -> Argument {
        if formal.is_some_and(|formal| formal.array) {
            let register = self.body.registers[id.index()].name.clone();
            let message = format!("Inconsistent state space for parameter '{register}'");
            let help = "pass an array as a variable declared `.param`";
            self.sink().error(Code::CallArgument, span, message).help(help);
        }
        Argument::in_register(id, ty)
    }

    /// A vector, which is passed as one register.
    fn vector_argument(&mut self, packed: Packed, span: Span, returns: bool) -> Argument {
        let argument = Argument::in_register(packed.whole, self.body.registers[packed.whole.index()].ty);
        // Also pack before the call, because the call may not be executed.
        self.pack(&packed, span);
        if returns {
            self.returned_vectors.push((packed, span));
        }
        argument
    }

    fn own_parameter(&mut self, name: &str, span: Span) -> Operand {
        let message =
            format!("Formal parameter '{name}' declared in .param space cannot be used as argument to call");
        let help = "copy it into a `.param` variable of this function";
        self.sink().error(Code::CallArgument, span, message).help(help);
        Operand::Sink
    }

    fn constant_argument(
        &mut self,
        value: Const,
        span: Span,
        formal: Option<&Param>,
        name: &str,
        returns: bool,
    ) -> Operand {
        if returns {
            return Operand::Sink;
        }
        let Some(formal) = formal else { return Operand::Imm(value.bits(Type::B64)) };
        let fits = !formal.array
            && match formal.ty {
                Type::Pred => false,
                // A parameter of bits accepts any constant.
                ty if ty.kind() == isa::Kind::Bits => true,
                Type::F16 => !matches!(value, Const::Int { .. }),
                Type::F16x2 if matches!(value, Const::F32(_)) => true,
                ty => isa::literal_allowed(ty, value.form()),
            };
        self.argument_mismatch(span, formal, name, [!fits, false]);
        Operand::Imm(value.bits(formal.ty))
    }

    fn argument_mismatch(&mut self, span: Span, formal: &Param, name: &str, [ty, align]: [bool; 2]) {
        let shape = match formal.array {
            true => format!(
                ".align {} {}[{}]",
                formal.align,
                formal.ty,
                formal.bytes / u64::from(formal.ty.bytes())
            ),
            false => formal.ty.to_string(),
        };
        let help = format!("the function declares the parameter {shape}");
        if ty {
            let message = format!("Type of argument does not match formal parameter '{name}'");
            self.sink()
                .error(Code::CallArgumentType, span, message)
                .help(help.clone())
                .label(formal.span, "declared here");
        }
        if align {
            let message = format!("Alignment of argument does not match formal parameter '{name}'");
            self.sink().error(Code::CallArgumentAlignment, span, message).help(help);
        }
    }
}

/// A last parameter without a length accepts any number of bytes, and may be omitted.
fn is_variadic(formals: &[Param], given: usize) -> bool {
    formals.last().is_some_and(|last| last.array && last.bytes == 0) && given + 1 == formals.len()
}
