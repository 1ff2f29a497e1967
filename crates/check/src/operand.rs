//! Operands by themselves: resolves what they mean, before they are matched with an instruction (PTX ISA,
//! "Instruction Operands").

use diag::{Code, Span};
use isa::{Selector, Space, SpecialRegister, Type};
use smallvec::SmallVec;
use syntax::tree::{Binary, BinaryOp, Element, Name, Operand as Tree, OperandList, Unary, UnaryOp};

use crate::body::{BodyChecker, COMPONENTS};
use crate::literal::{Const, fold, fold_integer, is_constant};
use crate::module::{Param, RegId, Register, Symbol, Variable};
use crate::order::Stage;
use crate::scope::Entity;
use crate::value::{Base, Lowered, SymbolValue, Value, unlike_elements, unlike_message};

impl<'a> BodyChecker<'_, 'a> {
    /// Resolves an operand. Reports errors that do not depend on the instruction.
    pub(crate) fn lower(&mut self, tree: &Tree<'a>) -> Lowered {
        let mut negated = false;
        let value = match tree {
            Tree::Unary(node) if node.op == UnaryOp::Minus && !is_constant(tree) => {
                let inner = self.lower(&node.value);
                negated = self.may_be_negated(&inner);
                if negated || matches!(inner.value, Value::SpecialVector(_)) {
                    inner.value
                } else {
                    Value::Unknown
                }
            }
            _ => self.lower_value(tree),
        };
        Lowered { value, span: tree.span(), negated }
    }

    /// Does the parser accept a minus before this? Reports an error if not.
    fn may_be_negated(&mut self, inner: &Lowered) -> bool {
        // Only the video instructions negate operands, and they have 32-bit operands only.
        let may = match inner.value {
            Value::Register(_, ty) | Value::Part(_, ty, _) => ty.bits() == 32 && !ty.is_float(),
            Value::Special(register) => register.ty().bits() == 32,
            _ => false,
        };
        if !may {
            let message = "Illegal argument to unary minus";
            let help = "compute the negative value with `neg` first";
            self.sink().error(Code::IllegalNegation, inner.span, message).help(help);
        }
        may
    }

    pub(crate) fn lower_value(&mut self, tree: &Tree<'a>) -> Value {
        match tree {
            Tree::WarpSize(_) => Value::Const(Const::signed(32)),
            Tree::Name(name) => self.lower_name(*name),
            Tree::Sink(_) => Value::Sink,
            Tree::Index(node) => self.lower_index(node),
            Tree::String(literal) => self.syntax_error(literal.span, literal.text, None),
            Tree::Element(node) => self.lower_element(node),
            Tree::Address(node) => {
                let (base, offset) = self.lower_base(&node.location);
                if node.coordinates.is_empty() {
                    return Value::Address(base, offset);
                }
                let inner = node.coordinates.iter().map(|tree| Box::new(self.lower(tree))).collect();
                Value::Tensor(base, offset, inner)
            }
            Tree::Vector(node) => self.lower_vector(node),
            Tree::List(_) => Value::List,
            Tree::Pair(node) => {
                Value::Pair(Box::new(self.lower(&node.first)), Box::new(self.lower(&node.second)))
            }
            Tree::Apply(node) => self.syntax_error(node.span, "(", None),
            _ if is_constant(tree) => match fold(tree, self.sink()) {
                Some(value) => Value::Const(value),
                None => Value::Reported,
            },
            Tree::Unary(node) => self.lower_unary(node),
            Tree::Binary(node) => self.lower_sum(node),
            // The guards on `is_constant` above have taken the valid ones.
            Tree::Literal(_) | Tree::Ternary(_) | Tree::Cast(_) => {
                self.syntax_error(tree.span(), self.module.source.slice(tree.span()), None)
            }
        }
    }

    /// `!p`
    fn lower_unary(&mut self, node: &Unary<'a>) -> Value {
        let inner = self.lower(&node.value);
        match (node.op, inner.value) {
            (UnaryOp::Not, Value::Register(id, Type::Pred)) => Value::NotRegister(id),
            (UnaryOp::Not, value) => {
                let message = "Illegal argument to predicate negation";
                let help = "`!` stands before predicates; `not` computes a complement";
                self.sink().error(Code::IllegalNegation, inner.span, message).help(help);
                match value {
                    // Treat it as a predicate from here on.
                    Value::Register(id, _) => Value::NotRegister(id),
                    _ => Value::Unknown,
                }
            }
            (op, _) => self.syntax_error(node.span, op.name(), None),
        }
    }

    /// `sym+imm`, `reg+imm`
    fn lower_sum(&mut self, node: &Binary<'a>) -> Value {
        let left = self.lower(&node.left).value;
        let Some(offset) = self.offset(node.op, node.span, &node.right) else {
            return Value::Reported;
        };
        match left {
            Value::Register(id, Type::Pred) => {
                let help = "ptxas accepts this and cannot generate code for it";
                let message = "A predicate is no number to add to";
                self.sink().warning(Code::PredicateSum, node.span, message).help(help);
                Value::RegisterPlus(id, Type::Pred, offset)
            }
            Value::Register(id, ty) => Value::RegisterPlus(id, ty, offset),
            Value::Special(special) => {
                let (id, ty) = self.in_register(special, node.left.span());
                Value::RegisterPlus(id, ty, offset)
            }
            Value::RegisterPlus(id, ty, more) => Value::RegisterPlus(id, ty, more.wrapping_add(offset)),
            Value::Symbol(symbol) => {
                Value::Symbol(SymbolValue { offset: symbol.offset.wrapping_add(offset), sum: true, ..symbol })
            }
            Value::Function(id, more) => Value::Function(id, more.wrapping_add(offset)),
            Value::Label(id, more) => Value::Label(id, more.wrapping_add(offset)),
            Value::Unknown | Value::UnknownSum => Value::UnknownSum,
            Value::Reported => Value::Reported,
            _ => self.syntax_error(node.span, node.op.name(), None),
        }
    }

    fn syntax_error(&mut self, span: Span, word: &str, help: Option<String>) -> Value {
        let message = format!("Parsing error near '{word}': syntax error");
        self.sink().error(Code::SyntaxError, span, message).maybe_help(help);
        Value::Reported
    }

    /// The constant after `sym+` or `reg+`.
    fn offset(&mut self, op: BinaryOp, span: Span, right: &Tree<'a>) -> Option<i64> {
        if !is_constant(right) {
            let word = self.module.source.slice(right.span()).to_owned();
            self.syntax_error(right.span(), &word, Some("an offset is a constant expression".into()));
            return None;
        }
        if op != BinaryOp::Add {
            let help = (op == BinaryOp::Sub).then(|| "write `+-` to subtract".to_owned());
            self.syntax_error(span, op.name(), help);
            return None;
        }
        fold_integer(right, self.sink()).map(|value| value as i64)
    }

    pub(crate) fn lower_name(&mut self, name: Name<'a>) -> Value {
        match self.resolve(name.text) {
            Some(Entity::Register(ty, Some(id))) => Value::Register(id, ty),
            Some(Entity::Register(_, None)) => Value::Unknown,
            Some(Entity::VectorRegister(ty, _, ids)) => {
                Value::VectorRegister(ids.iter().copied().flatten().collect(), ty)
            }
            Some(Entity::Variable(id)) => {
                let Variable { ty, opaque, array, space, .. } = self.module.variables[id.index()];
                let symbol = Symbol::Variable(id);
                Value::Symbol(SymbolValue {
                    symbol,
                    offset: 0,
                    space,
                    array,
                    ty,
                    opaque,
                    sum: false,
                    element: None,
                })
            }
            Some(Entity::Param(i)) => param_symbol(Symbol::Param(i), self.params.get(i as usize)),
            Some(Entity::Return(i)) => param_symbol(Symbol::Return(i), self.returns.get(i as usize)),
            Some(Entity::Function(id)) => Value::Function(id, 0),
            Some(Entity::Label(id)) => Value::Label(id, 0),
            Some(Entity::BranchTargets(id)) => Value::BranchTargets(id),
            Some(Entity::Prototype(_)) => Value::Prototype,
            Some(Entity::CallTargets(_)) => Value::CallTargets,
            None => match crate::special::find(name.text, None) {
                Some(crate::special::Found::Scalar(register)) => self.special(register, name.span),
                Some(crate::special::Found::Vector(first)) => {
                    crate::special::check_gates(self.module, first, name.span);
                    let element = |index| SpecialRegister::element(name.text, index).unwrap_or(first);
                    Value::SpecialVector([0, 1, 2, 3].map(element))
                }
                None => {
                    self.unknown(name);
                    Value::Unknown
                }
            },
        }
    }

    /// Reports an undeclared name.
    pub(crate) fn unknown(&mut self, name: Name<'a>) {
        if self.scopes.iter().any(|scope| scope.foresees_table(name.text)) {
            let message = format!("Label expected for forward reference of '{}'", name.text);
            let help = format!("'{}' stands further down: move it before its use", name.text);
            self.sink().late_error(Code::ForwardReference, name.span, message).help(help);
            return;
        }
        let help = crate::special::without_percent(name.text)
            .or_else(|| self.module.suggest(name.text, &self.scopes))
            .or_else(|| crate::special::nearest(name.text))
            .or_else(|| {
                let declares = || format!("declare the register first: `.reg .b32 {};`", name.text).into();
                name.text.starts_with('%').then(declares)
            });
        self.sink().unknown_symbol(name.span, name.text, help);
    }

    fn special(&mut self, register: SpecialRegister, span: Span) -> Value {
        crate::special::check_gates(self.module, register, span);
        Value::Special(register)
    }

    fn lower_element(&mut self, node: &Element<'a>) -> Value {
        let lane = match node.component.text {
            "x" | "r" => Some(0),
            "y" | "g" => Some(1),
            "z" | "b" => Some(2),
            "w" | "a" => Some(3),
            _ => None,
        };
        match self.resolve(node.base.text) {
            Some(Entity::VectorRegister(ty, lanes, ids)) => {
                let Some(lane) = lane else { return self.unknown_selector("vector", node) };
                match ids[lane].filter(|_| lane < usize::from(lanes)) {
                    Some(id) => Value::Register(id, ty),
                    None => Value::Register(self.missing_element(node, lane, ty), ty),
                }
            }
            Some(Entity::Register(ty, Some(id))) => {
                // The video instructions have 32-bit operands only.
                if ty.bits() != 32 && ty != Type::Pred {
                    self.unknown_field(node);
                    return Value::Reported;
                }
                let selector = Selector::parse(node.component.text);
                if selector.is_none() {
                    self.unknown_selector("video", node);
                }
                Value::Part(id, ty, selector)
            }
            Some(_) => self.unknown_field(node),
            None => match crate::special::find(node.base.text, Some(node.component.text)) {
                Some(crate::special::Found::Scalar(register)) => self.special(register, node.span),
                _ => match crate::special::find(node.base.text, None) {
                    Some(crate::special::Found::Vector(_)) => self.unknown_selector("vector", node),
                    Some(crate::special::Found::Scalar(_)) => {
                        self.unknown_field(node);
                        Value::Reported
                    }
                    None => {
                        self.unknown_field(node);
                        self.unknown(node.base);
                        Value::Reported
                    }
                },
            },
        }
    }

    /// `v.z` of a vector of two: ptxas reports no error and generates no code. Here, it is a separate register.
    fn missing_element(&mut self, node: &Element<'a>, lane: usize, ty: Type) -> RegId {
        let name = format!("{}.{}", node.base.text, COMPONENTS[lane]);
        let message = format!("Vector '{}' has no element '.{}'", node.base.text, node.component.text);
        let help = "declare it `.v4`: ptxas accepts this and cannot generate code for it";
        self.sink().warning(Code::MissingElement, node.component.span, message).help(help);
        let known = self.body.registers.iter().position(|register| register.name == name);
        RegId(known.unwrap_or_else(|| {
            self.body.registers.push(Register { name, ty });
            self.body.registers.len() - 1
        }) as u32)
    }

    fn unknown_field(&mut self, node: &Element<'a>) -> Value {
        let message = format!("Unknown field '.{}'", node.component.text);
        self.sink().error(Code::UnknownField, node.component.span, message);
        Value::Unknown
    }

    fn unknown_selector(&mut self, kind: &str, node: &Element<'a>) -> Value {
        let dot = if kind == "video" { "." } else { "" };
        let message = format!("Unknown {kind} selector: '{dot}{}'", node.component.text);
        let help = match kind {
            "vector" => "elements are .x .y .z .w, as many as the vector has",
            _ => "this is a scalar register: write its name alone, or on video instructions .h0 or .b0",
        };
        self.sink().error(Code::UnknownSelector, node.component.span, message).help(help);
        Value::Reported
    }

    fn lower_base(&mut self, tree: &Tree<'a>) -> (Base, i64) {
        if is_constant(tree) {
            return match fold_integer(tree, self.sink()) {
                Some(value) => (Base::Absolute(value), 0),
                None => (Base::Reported, 0),
            };
        }
        match self.lower_value(tree) {
            Value::Register(id, ty) => (Base::Register(id, ty), 0),
            Value::RegisterPlus(id, ty, offset) => (Base::Register(id, ty), offset),
            Value::Symbol(symbol) => (Base::Symbol(symbol), symbol.offset),
            Value::Function(..) | Value::Label(..) => (Base::Code, 0),
            Value::Special(special) => {
                let (id, ty) = self.in_register(special, tree.span());
                (Base::Register(id, ty), 0)
            }
            Value::Reported => (Base::Reported, 0),
            _ => (Base::Unknown, 0),
        }
    }

    /// ptxas checks the lengths of vectors once it has read all operands.
    pub(crate) fn report_vector_sizes(&mut self) {
        for (count, span) in std::mem::take(&mut self.illegal_vectors) {
            let help = "vectors have 2, 4 or 8 elements";
            let message = format!("Illegal vector size: {count}");
            self.sink().error_at(Stage::VectorSize, Code::IllegalVectorSize, span, message).help(help);
        }
    }

    /// Does not check texture coordinates: they may contain an array index, so `texture` checks them.
    pub(crate) fn report_unlike_elements(&mut self, operands: &[Lowered], name: &str) {
        if self.accesses_texels {
            return;
        }
        let vectors = operands.iter().filter_map(|operand| match &operand.value {
            Value::Vector(elements, _) => Some(elements),
            _ => None,
        });
        for span in vectors.flat_map(|elements| unlike_elements(elements)) {
            self.module.sink.error_at(Stage::Fit, Code::UnlikeElements, span, unlike_message(name));
        }
    }

    /// `{a, b}`: all registers must have the same size.
    fn lower_vector(&mut self, node: &OperandList<'a>) -> Value {
        let trees = node.operands.iter();
        let elements: SmallVec<[Box<Lowered>; 4]> =
            trees.map(|tree| Box::new(self.lower_vector_element(tree))).collect();
        let mut ty = self.type_of_elements(&elements);
        let count = elements.len();
        let legal = matches!(count, 1 | 2 | 4)
            || count == 8 && self.longest_vector >= 8
            || matches!(count, 3 | 5) && self.names_tensor;
        // Fragments of `wgmma` have other lengths.
        if !legal && matches!(self.longest_vector, 0 | 1 | 2 | 4 | 8) {
            self.illegal_vectors.push((count, node.span));
        }
        if elements.iter().all(|e| matches!(e.value, Value::Sink | Value::Unknown)) {
            let message = "Unable to infer type of vector elements (assuming .b8)";
            let help = "at least one element must be a register";
            self.sink().error(Code::UntypedVector, node.span, message).help(help);
            ty = Some(Type::B8);
        }
        Value::Vector(elements, ty)
    }

    /// An element of a vector. Reports one that cannot stand there.
    fn lower_vector_element(&mut self, tree: &Tree<'a>) -> Lowered {
        let mut lowered = self.lower(tree);
        match lowered.value {
            Value::Register(..)
            | Value::NotRegister(_)
            | Value::RegisterPlus(..)
            | Value::Part(..)
            | Value::Const(_)
            | Value::Sink
            | Value::Reported => {}
            // It counts as a register, even as a destination.
            Value::Special(special) if !self.accesses_texels && !self.becomes_call => {
                let (id, ty) = self.in_register(special, lowered.span);
                lowered.value =
                    Value::Register(id, if ty == Type::Pred { ty } else { Type::of_bits(ty.bits()) });
            }
            Value::Special(_) => {}
            _ => {
                let word = self.module.source.slice(lowered.span).to_owned();
                let message = format!("Illegal expression '{word}'");
                self.sink().error(Code::IllegalExpression, lowered.span, message);
                lowered.value = Value::Unknown;
            }
        }
        lowered
    }

    /// The type of the registers in a vector: bits, if they are of different kinds. Reports different sizes.
    fn type_of_elements(&mut self, elements: &[Box<Lowered>]) -> Option<Type> {
        let mut ty: Option<Type> = None;
        let mut bits = None;
        for element in elements {
            let found = match element.value {
                Value::Register(_, found) => found,
                Value::Special(special) => special.ty(),
                _ => continue,
            };
            // On textures and surfaces, a predicate counts as 32 bits.
            let width = if self.accesses_texels && found == Type::Pred { 32 } else { found.bits() };
            if width != *bits.get_or_insert(width) {
                let message = "Incompatible elements of vector expression";
                let help = "all registers of a vector have the same size";
                self.sink().error(Code::IncompatibleElements, element.span, message).help(help);
                continue;
            }
            ty = Some(ty.map_or(found, |first| if first == found { first } else { Type::of_bits(width) }));
        }
        if !self.accesses_texels && unlike_elements(elements).next().is_some() {
            ty = bits.map(Type::of_bits);
        }
        ty
    }
}

/// A parameter in `.param` space of the current function.
fn param_symbol(symbol: Symbol, param: Option<&Param>) -> Value {
    let (ty, array, opaque) =
        param.map_or((Type::B32, false, None), |param| (param.ty, param.array, param.opaque));
    Value::Symbol(SymbolValue {
        symbol,
        offset: 0,
        space: Space::Param,
        array,
        ty,
        opaque,
        sum: false,
        element: None,
    })
}
