//! Kernels and functions: heads, prototypes and parameters (PTX ISA, "Kernel and Function Directives").

use diag::Code;
use isa::{Opaque, Space, Target, Type, Version};
use syntax::tree::{Function as FunctionTree, FunctionKind, Name, Parameter, Pointer};

use crate::checker::Checker;
use crate::module::{FuncId, Function, Linkage, Param};
use crate::order::Stage;
use crate::scope::Entity;

/// Bytes of parameters that every kernel may have.
const SMALL_PARAMETERS: u64 = 4352;
/// Bytes of parameters from PTX 8.1 and sm_70 on.
const LARGE_PARAMETERS: u64 = 32764;

/// The kind of construct that parameters belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Entry,
    Func,
    /// `.callprototype`: the names of its parameters have no meaning.
    Prototype,
}

impl<'a> Checker<'a> {
    pub(crate) fn function(&mut self, node: &FunctionTree<'a>) {
        let is_entry = node.kind == FunctionKind::Entry;
        let owner = if is_entry { Owner::Entry } else { Owner::Func };
        let linkage = self.linkage(node.linkage.as_ref());
        self.attributes(&node.attributes);
        if linkage == Linkage::Common {
            let word = if is_entry { ".entry" } else { ".func" };
            self.misplaced(node.linkage.as_ref().map_or(node.span, |l| l.span), word);
        }
        let (parameters, has_body) = (node.parameters.as_deref(), node.body.is_some());
        if is_entry && parameters.is_some_and(|list| !list.is_empty()) {
            self.need(node.name.span, "kernel parameter list", Some(Version::new(1, 4)), None);
        }
        if is_entry && !has_body {
            self.need(node.name.span, "kernel function prototype", Some(Version::new(3, 0)), None);
        }
        let (params, returns) = self.signature(parameters, node.returns.as_deref(), owner, has_body);
        if is_entry {
            if has_body {
                self.parameter_space(node.name, &params);
            }
            if let Some(first) = node.returns.as_ref().and_then(|r| r.first()) {
                let message = "Parsing error near '(': syntax error";
                self.sink.error(Code::Misplaced, first.span, message).help("kernels return nothing");
            }
        }
        let (bounds, noreturn) = self.launch_bounds(&node.directives, is_entry);
        if let Some(directive) =
            node.directives.iter().find(|d| d.name.text == "noreturn").filter(|_| noreturn)
        {
            self.need(directive.name.span, ".noreturn", Some(Version::new(6, 4)), Some(Target::sm(30)));
            if !returns.is_empty() {
                let message = format!("Invalid directive '.noreturn' for function '{}'", node.name.text);
                let help = "a function that does not return has no return parameters";
                self.sink.error(Code::IllegalNoreturn, directive.span, message).help(help);
            }
        }
        if linkage == Linkage::Extern && node.body.is_some() {
            self.extern_definition(node.name);
        }
        let function = Function {
            name: node.name.text.to_owned(),
            is_entry,
            linkage,
            noreturn,
            params,
            returns,
            bounds,
            body: None,
            span: node.name.span,
        };
        let id = self.enter_function(node, function);
        if let Some(block) = &node.body {
            self.body(node, block, id);
        }
    }

    fn extern_definition(&mut self, name: Name<'a>) {
        let message =
            format!("Function definition conflicts with '.extern' declaration for function '{}'", name.text);
        let help = "a function with a body is not `.extern`: use `.visible`";
        self.sink.error(Code::ExternDefinition, name.span, message).help(help);
    }

    /// Declares the function, or merges it with an earlier declaration.
    fn enter_function(&mut self, node: &FunctionTree<'a>, function: Function) -> FuncId {
        let name = node.name;
        let next = FuncId(self.functions.len() as u32);
        match self.globals.get(name.text).copied() {
            None => {
                // No declaration has this name, so this cannot fail.
                let _ = self.globals.declare(name.text, Entity::Function(next), name.span);
            }
            Some(declared) => match declared.entity {
                Entity::Function(id) => {
                    if self.agree(node, &function, id) {
                        let old = &mut self.functions[id.index()];
                        // An earlier declaration may have made the function visible.
                        let linkage = match function.linkage {
                            Linkage::Internal => old.linkage,
                            other => other,
                        };
                        *old = Function { linkage, ..function };
                        return id;
                    }
                }
                _ => {
                    let message = format!("Inconsistent redefinition of variable '{}'", name.text);
                    self.sink
                        .error(Code::InconsistentRedefinition, name.span, message)
                        .label(declared.span, "first declared here");
                    let message = format!("Inconsistent redefinition of symbol '{}'", name.text);
                    self.sink.error(Code::InconsistentRedefinition, name.span, message);
                }
            },
        }
        self.functions.push(function);
        next
    }

    /// Reports the differences between two declarations. Returns `false` if they cannot be the same function.
    fn agree(&mut self, node: &FunctionTree<'a>, new: &Function, id: FuncId) -> bool {
        let name = node.name;
        let old = &self.functions[id.index()];
        let previous = old.span;
        let (was_entry, was_defined) = (old.is_entry, old.body.is_some());
        let was_extern = old.linkage == Linkage::Extern;
        let mut differences = self::differences(&old.returns, &new.returns);
        differences.extend(self::differences(&old.params, &new.params));
        // ptxas reports these errors before it checks the parameters.
        self.sink.enter(Stage::Redefinition);
        if was_defined {
            self.duplicate("function", name.text, name.span, previous);
        }
        if was_entry != new.is_entry {
            let message = format!("Inconsistent redefinition of '{}' as entry and function", name.text);
            self.sink
                .error(Code::InconsistentRedefinition, name.span, message)
                .label(previous, "first declared here");
        } else {
            if was_extern != (new.linkage == Linkage::Extern) {
                let message = format!("Inconsistent redefinition of variable '{}'", name.text);
                self.sink
                    .error(Code::InconsistentRedefinition, name.span, message)
                    .label(previous, "first declared here")
                    .help("either both declarations are `.extern`, or neither is");
                if was_extern && node.body.is_some() {
                    self.extern_definition(name);
                }
            }
            for difference in &differences {
                let message = format!("Inconsistent prototypes of '{}', {difference} differ", name.text);
                self.sink
                    .error(Code::InconsistentPrototypes, name.span, message)
                    .label(previous, "first declared here");
            }
        }
        self.sink.enter(Stage::Guard);
        !was_defined && was_entry == new.is_entry
    }

    /// Parameters and return parameters. Some restrictions are checked only for functions with a body.
    pub(crate) fn signature(
        &mut self,
        params: Option<&[Parameter<'a>]>,
        returns: Option<&[Parameter<'a>]>,
        owner: Owner,
        has_body: bool,
    ) -> (Vec<Param>, Vec<Param>) {
        let returns = returns.unwrap_or_default();
        let params = params.unwrap_or_default();
        let checked_returns: Vec<Param> =
            returns.iter().map(|node| self.parameter(node, owner, has_body)).collect();
        for param in checked_returns.iter().filter(|param| param.is_incomplete()) {
            let message = "Output parameter cannot be an incomplete array.";
            self.sink.error(Code::IncompleteType, param.span, message);
        }
        if let [_, second, ..] = returns
            && returns.iter().any(|r| r.space.is_some_and(|s| s.text == "param"))
        {
            let message = "Multiple return parameters require .register state space";
            let help = "return one array: `.param .align N .b8 name[N]`";
            self.sink.error(Code::MultipleReturns, second.name.span, message).help(help);
        }
        let checked_params: Vec<Param> =
            params.iter().map(|node| self.parameter(node, owner, has_body)).collect();
        for (i, param) in checked_params.iter().enumerate().filter(|(_, param)| param.is_incomplete()) {
            let message = match owner {
                Owner::Entry if has_body => "Parameter to entry function cannot be an incomplete array.",
                Owner::Entry => continue,
                _ if i + 1 < params.len() => "Only the last input parameter can be an incomplete array.",
                _ => continue,
            };
            self.sink.error(Code::IncompleteType, param.span, message);
        }
        (checked_params, checked_returns)
    }

    fn parameter(&mut self, node: &Parameter<'a>, owner: Owner, has_body: bool) -> Param {
        let name = node.name;
        self.parameter_head(node, owner);
        let in_register = node.space.is_some_and(|space| space.text == "reg");
        let shape = self.shape(&node.qualifiers);
        let mut ty = shape.map_or(Type::B32, |shape| shape.ty);
        let lanes = shape.map_or(1, |shape| shape.lanes);
        let opaque = Opaque::named(node.qualifiers.ty.text);
        if opaque == Some(Opaque::Sampler) && !self.independent_samplers {
            self.unified_sampler(name.span);
        }
        if has_body {
            self.parameter_shape(node, in_register, ty, lanes);
        }
        if in_register && lanes > 1 {
            ty = whole_type(ty, usize::from(lanes));
        }
        let align = shape.map_or(4, |shape| shape.alignment());
        if has_body && owner != Owner::Entry && align > 128 {
            let message = format!(
                "Parameter '{}' has illegal alignment (must be aligned to 1, 2, 4, 8, 16, 32, 64, or 128 bytes)",
                name.text
            );
            let span = node.qualifiers.align.as_ref().map_or(name.span, |tree| tree.span());
            self.sink.error(Code::IllegalAlignment, span, message);
        }
        let pointer = node.pointer.as_ref().map(|pointer| self.pointer(pointer, owner));
        let mut elements = 1u64;
        for dimension in &node.dimensions {
            let length = dimension.as_ref().map_or(0, |tree| self.length(tree));
            elements = elements.saturating_mul(length);
        }
        Param {
            name: if name.text == "_" { String::new() } else { name.text.to_owned() },
            ty,
            opaque,
            bytes: elements.saturating_mul(shape.map_or(4, |shape| shape.element_bytes())),
            align,
            array: !node.dimensions.is_empty(),
            pointer,
            in_register,
            register: None,
            span: name.span,
        }
    }

    /// Checks the state space and the name of a parameter.
    fn parameter_head(&mut self, node: &Parameter<'a>, owner: Owner) {
        let name = node.name;
        let (space, span) = node.space.map_or(("", node.span), |s| (s.text, s.span));
        if owner == Owner::Entry && space != "param" {
            let message = format!("Entry parameter '{}' must have .param state space", name.text);
            self.sink.error(Code::IllegalParameter, span, message);
        } else if !matches!(space, "param" | "reg") {
            let message = format!("Function parameter '{}' has illegal state space", name.text);
            self.sink.error(Code::IllegalParameter, span, message);
        }
        if name.text == "_" && owner != Owner::Prototype {
            self.sink.error(Code::IllegalParameter, name.span, "Illegal parameter name '_'");
        }
    }

    /// Reports a parameter that its state space cannot hold.
    fn parameter_shape(&mut self, node: &Parameter<'a>, in_register: bool, ty: Type, lanes: u8) {
        let name = node.name;
        let is_array = !node.dimensions.is_empty();
        let (code, message) = match in_register {
            true if is_array => {
                let message = format!("Variable '{}' cannot be allocated into a register", name.text);
                (Code::RegisterArray, message)
            }
            false if ty == Type::Pred => {
                let message = format!("Predicate variable '{}' must be in register state space", name.text);
                (Code::PredicateVariable, message)
            }
            false if !is_array && (lanes > 1 || ty.lanes() > 1) => {
                let message = format!("Variable '{}' cannot be allocated in .param state space", name.text);
                (Code::IllegalParameter, message)
            }
            _ => return,
        };
        self.sink.error(code, name.span, message);
    }

    /// What `.ptr` says of a parameter: the state space and the alignment of what it points to.
    fn pointer(&mut self, node: &Pointer<'a>, owner: Owner) -> (Space, u64) {
        let feature = "kernel parameter pointer attribute";
        self.need(node.span, feature, Some(Version::new(2, 2)), None);
        if owner == Owner::Func {
            for _ in 0..1 + usize::from(node.align.is_some()) {
                let message = "Illegal placement of kernel parameter attribute";
                self.sink.error(Code::MisplacedPtr, node.span, message).help("`.ptr` is for kernels only");
            }
        }
        let space = match node.space.map(|space| space.text) {
            Some("global") => Space::Global,
            Some("const") => Space::Const,
            Some("shared") => Space::Shared,
            Some("local") => Space::Local,
            _ => Space::Generic,
        };
        let align = node.align.as_ref().and_then(|tree| self.alignment(tree));
        (space, align.unwrap_or(4))
    }

    /// Checks the size of a kernel's parameters.
    fn parameter_space(&mut self, name: Name<'a>, params: &[Param]) {
        let bytes = params.iter().fold(0u64, |offset, param| {
            let aligned = offset.checked_next_multiple_of(param.align.max(1)).unwrap_or(u64::MAX);
            aligned.saturating_add(param.bytes)
        });
        if bytes <= SMALL_PARAMETERS {
            return;
        }
        let (version, target) = (Version::new(8, 1), Target::sm(70));
        let max = if self.version < version { SMALL_PARAMETERS } else { LARGE_PARAMETERS };
        if bytes > max {
            let message = format!(
                "Entry function '{}' uses too much parameter space ({bytes:#x} bytes, {max:#x} max).",
                name.text
            );
            let help = "pass a pointer to the data instead";
            self.sink.error(Code::TooMuchParameterSpace, name.span, message).help(help);
        }
        let feature = "Kernel parameter size larger than 4352 bytes";
        self.need(name.span, feature, Some(version), Some(target));
    }
}

/// How the parameters of two declarations of a function differ.
pub(crate) fn differences(old: &[Param], new: &[Param]) -> Vec<&'static str> {
    let differs = |different: fn(&Param, &Param) -> bool| old.iter().zip(new).any(|(a, b)| different(a, b));
    let all = [
        ("number of parameters", old.len() != new.len()),
        ("parameter types", differs(|a, b| (a.ty, a.array, a.bytes) != (b.ty, b.array, b.bytes))),
        ("parameter alignment", differs(|a, b| a.align != b.align)),
        ("parameter state space", differs(|a, b| a.in_register != b.in_register)),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
}

/// The type of a register that holds this number of elements.
pub(crate) fn whole_type(element: Type, lanes: usize) -> Type {
    Type::of_bits(element.bits() * lanes as u32)
}
