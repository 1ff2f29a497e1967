//! Declarations of variables and registers (PTX ISA, "State Spaces", "Variables").

use diag::{Code, Help, Span};
use isa::{Opaque, Space, Target, Type, Version};
use syntax::tree::{Attribute, Declarator, Name, Operand as Tree, Qualifiers, Variable as VariableTree};

use crate::checker::Checker;
use crate::module::{FuncId, Linkage, VarId, Variable};
use crate::scope::{Entity, Range, Scope};

/// The function body that contains a declaration.
pub(crate) struct Place<'s, 'a> {
    pub(crate) scopes: &'s mut [Scope<'a>],
    pub(crate) function: FuncId,
}

/// Type, shape and alignment of a declaration.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) ty: Type,
    /// Elements of `.v2` and `.v4`; 1 for scalars.
    pub(crate) lanes: u8,
    /// `.align`
    pub(crate) align: Option<u64>,
}

impl Shape {
    /// Bytes of one element of an array of this shape.
    pub(crate) fn element_bytes(self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.lanes)
    }

    /// Alignment in bytes.
    pub(crate) fn alignment(self) -> u64 {
        self.align.unwrap_or_else(|| self.element_bytes().max(1).next_power_of_two())
    }
}

/// The state space with this name.
fn space_of(name: &str) -> Option<Space> {
    Some(match name {
        "reg" => Space::Reg,
        "param" => Space::Param,
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "tex" => Space::Tex,
        "const" => Space::Const,
        bank if bank.starts_with("const[") => Space::Const,
        _ => return None,
    })
}

impl<'a> Checker<'a> {
    /// Checks a declaration outside functions.
    pub(crate) fn module_variables(&mut self, node: &VariableTree<'a>) {
        self.variables(node, None);
    }

    /// Checks a declaration in any state space, inside or outside functions.
    pub(crate) fn variables(&mut self, node: &VariableTree<'a>, mut place: Option<Place<'_, 'a>>) {
        let linkage = self.linkage(node.linkage.as_ref());
        let (space_name, space_span) = node.space.map_or(("", node.span), |s| (s.text, s.span));
        let Some(space) = space_of(space_name) else {
            return self.misplaced(space_span, &format!(".{space_name}"));
        };
        if let (Some(_), Some(first)) = (&place, node.linkage.as_ref()) {
            let message = format!("Parsing error near '.{space_name}': syntax error");
            let help = "linking directives belong to declarations outside functions";
            self.sink.error(Code::Misplaced, first.span.to(space_span), message).help(help);
        }
        if space_name.starts_with("const[") && self.version >= Version::new(2, 2) {
            let message = "Deprecated feature: 'explicit constant banks' not supported as of PTX version 2.2";
            self.sink
                .error(Code::Deprecated, space_span, message)
                .help(Help { text: "write `.const`".into(), instead: Some(".const".into()) });
        }
        if place.is_none() {
            for declarator in &node.declarators {
                self.module_scope_space(space, space_name, declarator.name);
            }
        }
        let errors_before = self.sink.errors();
        self.attributes(&node.qualifiers.attributes);
        if linkage == Linkage::Common && space != Space::Global {
            let message = ".common variables must be declared in .global space";
            self.sink.error(Code::IllegalLinkage, space_span, message);
        }
        let shape = self.shape(&node.qualifiers);
        for declarator in &node.declarators {
            let opaque = Opaque::named(node.qualifiers.ty.text);
            let managed = node.qualifiers.attributes.iter().any(|attribute| attribute.name.text == "managed");
            if managed && space != Space::Global {
                let message = format!("Illegal attribute '.managed' for symbol '{}'", declarator.name.text);
                self.sink.error(Code::IllegalLinkage, declarator.name.span, message);
            }
            let mut declared = Declaration { space, linkage, shape, opaque, managed };
            if space == Space::Tex {
                declared = self.texture(declarator, declared, place.is_some());
            }
            self.declarator(declarator, &declared, &mut place);
        }
        let is_per_function = place.is_none() && matches!(space, Space::Reg | Space::Local);
        if is_per_function && self.sink.errors() == errors_before {
            self.per_function.push(VariableTree { linkage: None, ..node.clone() });
        }
    }

    /// `.tex .u64 t`: the older way to write `.global .texref t`.
    fn texture(&mut self, node: &Declarator<'a>, declared: Declaration, in_body: bool) -> Declaration {
        let name = node.name;
        let is_handle = declared.shape.is_none_or(|s| matches!(s.ty, Type::U32 | Type::U64) && s.lanes == 1);
        if !is_handle || !node.dimensions.is_empty() {
            let message = format!("Variable '{}' must be type .u32 or .u64", name.text);
            self.sink.error(Code::NotADeclaredType, name.span, message);
        }
        if in_body {
            let message = "Texture variables must be declared at module scope";
            self.sink.error(Code::IllegalScope, name.span, message);
            return declared;
        }
        let shape = Some(Shape { ty: Type::B64, lanes: 1, align: None });
        Declaration { space: Space::Global, shape, opaque: Some(Opaque::Texture), ..declared }
    }

    /// Reports what `.attribute(.managed)` and `.attribute(.unified(...))` require.
    pub(crate) fn attributes(&mut self, attributes: &[Attribute<'a>]) {
        for attribute in attributes {
            let (name, span) = (attribute.name.text, attribute.name.span);
            if name == "unified" {
                self.need(span, ".unified", Some(Version::new(8, 0)), Some(Target::sm(90)));
            } else {
                self.need(span, ".attribute", Some(Version::new(4, 0)), None);
                self.need(span, ".managed", None, Some(Target::sm(30)));
            }
        }
    }

    /// Reports a sampler without `texmode_independent`: only that mode has separate samplers.
    pub(crate) fn unified_sampler(&mut self, span: Span) {
        let message = "Instruction or declaration violates .target texmode_unified setting";
        let help = "write `.target ..., texmode_independent`";
        self.sink.error(Code::NotADeclaredType, span, message).help(help);
    }

    fn module_scope_space(&mut self, space: Space, space_name: &str, name: Name<'a>) {
        let Name { text, span } = name;
        match space {
            Space::Local | Space::Reg if self.version < Version::new(3, 0) && self.warned_of_scope => {}
            Space::Local | Space::Reg if self.version < Version::new(3, 0) => {
                self.warned_of_scope = true;
                let message =
                    format!("Use of module scoped .local or .reg variable '{text}' found, disabling ABI");
                self.sink.warning(Code::IllegalScope, span, message);
            }
            Space::Local | Space::Reg => {
                let message =
                    format!("Module-scoped variables in .{space_name} state space are not allowed with ABI");
                self.sink.error(Code::IllegalScope, span, message).help("declare it inside a function");
            }
            Space::Param => {
                let message = "Parameter variables may not be declared at module scope";
                self.sink.error(Code::IllegalScope, span, message).help("declare it inside a function");
            }
            Space::Tex if self.version >= Version::new(1, 5) => {
                let message = "Deprecated feature: '.tex' not supported as of PTX version 1.5";
                self.sink.error(Code::Deprecated, span, message).help("declare a `.global .texref`");
            }
            _ => {}
        }
    }

    /// Type, vector and alignment. Reports errors, and returns `None` if the type is wrong.
    pub(crate) fn shape(&mut self, qualifiers: &Qualifiers<'a>) -> Option<Shape> {
        let align = qualifiers.align.as_ref().and_then(|tree| self.alignment(tree));
        let ty = self.declared_type(qualifiers.ty, true)?;
        let mut lanes = 1;
        if let Some(vector) = qualifiers.vector {
            lanes = match vector.text {
                "v2" => 2,
                "v4" => 4,
                _ => {
                    self.misplaced(vector.span, &format!(".{}", vector.text));
                    return None;
                }
            };
            let span = vector.span.to(qualifiers.ty.span);
            if ty == Type::Pred {
                let message = "Predicate type can only be used to define scalar register variables";
                self.sink.error(Code::PredicateVariable, span, message);
                return None;
            }
            if ty.bits() * u32::from(lanes) > 128 {
                let message = "Vector type too large, exceeds 128 bit limit";
                self.sink.error(Code::VectorTooLarge, span, message);
                return None;
            }
        }
        Some(Shape { ty, lanes, align })
    }

    fn declarator(
        &mut self,
        node: &Declarator<'a>,
        declared: &Declaration,
        place: &mut Option<Place<'_, 'a>>,
    ) {
        // A declaration with a wrong type still declares its name; otherwise every use would be an error too.
        let shape = declared.shape.unwrap_or(Shape { ty: Type::B32, lanes: 1, align: None });
        self.space_of_type(node.name, declared, shape, place.is_some());
        if declared.space == Space::Reg {
            return self.register(node, declared, shape, place);
        }
        let bytes = self.bytes(node, declared.linkage, shape);
        let id = VarId(self.variables.len() as u32);
        let variable = Variable {
            name: node.name.text.to_owned(),
            space: declared.space,
            ty: shape.ty,
            opaque: declared.opaque,
            fields: Vec::new(),
            array: !node.dimensions.is_empty() || shape.lanes > 1,
            bytes,
            align: shape.alignment(),
            init: Vec::new(),
            relocations: Vec::new(),
            linkage: declared.linkage,
            managed: declared.managed,
            function: place.as_ref().map(|p| p.function),
            span: node.name.span,
        };
        if place.is_none()
            && let Some(Entity::Variable(previous)) = self.globals.get(node.name.text).map(|d| d.entity)
        {
            return self.declare_again(node, declared, previous, variable);
        }
        self.variables.push(variable);
        self.declare(node, Entity::Variable(id), place);
        self.initialize(node, declared, shape, id, place);
    }

    /// Reports a type that variables of this state space, or in this place, cannot have.
    fn space_of_type(&mut self, name: Name<'a>, declared: &Declaration, shape: Shape, in_body: bool) {
        let space = declared.space;
        if declared.shape.is_some() && shape.ty == Type::Pred && space != Space::Reg {
            let message = format!("Predicate variable '{}' must be in register state space", name.text);
            let help = "keep the predicate in a register, or store 0 or 1 in a .u8";
            self.sink.error(Code::PredicateVariable, name.span, message).help(help);
        }
        if declared.opaque == Some(Opaque::Sampler) && !self.independent_samplers {
            self.unified_sampler(name.span);
        }
        if declared.opaque.is_some() && declared.linkage == Linkage::Common {
            self.sink.error(Code::IllegalLinkage, name.span, "Illegal type for .common symbol");
        }
        if declared.opaque.is_some() && in_body {
            let message = "Texture/surface variable must be at module or entry parameter scope";
            self.sink.error(Code::IllegalScope, name.span, message);
        }
        if space == Space::Param && in_body && (shape.lanes > 1 || shape.ty.lanes() > 1) {
            let message = format!("Variable '{}' cannot be allocated in .param state space", name.text);
            self.sink
                .error(Code::IllegalParameter, name.span, message)
                .help("declare it `.align N .b8 name[N]`");
        }
    }

    /// Declares a register.
    fn register(
        &mut self,
        node: &Declarator<'a>,
        declared: &Declaration,
        shape: Shape,
        place: &mut Option<Place<'_, 'a>>,
    ) {
        let name = node.name;
        if !node.dimensions.is_empty() {
            let message = format!("Variable '{}' cannot be allocated into a register", name.text);
            let help = format!("`{}<N>` declares {}0 to {}N-1", name.text, name.text, name.text);
            self.sink.error(Code::RegisterArray, name.span, message).help(help);
        }
        self.initializer_allowed(node, declared);
        let entity = match shape.lanes {
            1 => Entity::Register(shape.ty, None),
            lanes => Entity::VectorRegister(shape.ty, lanes, [None; 4]),
        };
        self.declare(node, entity, place);
    }

    /// The size of a variable in bytes; 0 if nothing says it.
    fn bytes(&mut self, node: &Declarator<'a>, linkage: Linkage, shape: Shape) -> u64 {
        let (mut elements, mut incomplete) = self.elements(node);
        if let (true, Some(syntax::tree::Initializer::List(list))) = (incomplete, &node.initializer)
            && !list.values.is_empty()
        {
            elements = elements.saturating_mul(list.values.len() as u64);
            incomplete = false;
        }
        if incomplete && linkage != Linkage::Extern {
            let message = format!("Non-external variable '{}' has incomplete type", node.name.text);
            let help = "give the array a length, or declare it `.extern`";
            self.sink.error(Code::IncompleteType, node.name.span, message).help(help);
        }
        if incomplete { 0 } else { elements.saturating_mul(shape.element_bytes()) }
    }

    fn initialize(
        &mut self,
        node: &Declarator<'a>,
        declared: &Declaration,
        shape: Shape,
        id: VarId,
        place: &mut Option<Place<'_, 'a>>,
    ) {
        if !self.initializer_allowed(node, declared) || declared.shape.is_none() {
            return;
        }
        if let (Some(initializer), Some(kind)) = (&node.initializer, declared.opaque) {
            return self.initial_fields(initializer, node.dimensions.len(), kind, id);
        }
        if let Some(initializer) = &node.initializer {
            let scopes: &[Scope<'a>] = place.as_ref().map_or(&[], |p| p.scopes);
            self.initial_value(initializer, &node.dimensions, shape, id, scopes);
        }
    }

    /// Number of elements of all dimensions with a length, and whether a dimension has none (or 0).
    fn elements(&mut self, node: &Declarator<'a>) -> (u64, bool) {
        let mut elements = 1u64;
        let mut incomplete = false;
        for dimension in &node.dimensions {
            match dimension {
                None => incomplete = true,
                Some(tree) => match self.length(tree) {
                    0 => incomplete = true,
                    length => elements = elements.saturating_mul(length),
                },
            }
        }
        (elements, incomplete)
    }

    /// The length of an array.
    pub(crate) fn length(&mut self, tree: &Tree<'a>) -> u64 {
        crate::literal::fold_integer(tree, &mut self.sink).unwrap_or(0)
    }

    /// May this declaration have an initial value? Reports an initial value that it may not have.
    fn initializer_allowed(&mut self, node: &Declarator<'a>, declared: &Declaration) -> bool {
        let Some(initializer) = &node.initializer else { return true };
        let name = node.name.text;
        if declared.linkage == Linkage::Extern {
            let message = format!("No initial value is allowed for external symbol '{name}'");
            self.sink.error(Code::IllegalInitializer, initializer.span(), message);
            return false;
        }
        if matches!(declared.space, Space::Global | Space::Const) {
            return true;
        }
        let message = format!("No initial value is allowed for '{name}' in this state space");
        let help = "only .global and .const variables have initial values: store it at run time";
        self.sink.error(Code::IllegalInitializer, initializer.span(), message).help(help);
        false
    }

    /// Enters a name, or a range of names, into the innermost scope.
    fn declare(&mut self, node: &Declarator<'a>, entity: Entity, place: &mut Option<Place<'_, 'a>>) {
        let name = node.name;
        let count = node.count.as_ref().map(|tree| u64::from(self.small_integer(tree).unwrap_or(0)));
        let scope = match place {
            Some(place) => match place.scopes.last_mut() {
                Some(scope) => scope,
                None => return,
            },
            None => &mut self.globals,
        };
        let result = match count {
            Some(count) => scope.declare_range(name.text, Range { count, entity, span: name.span }),
            None => scope.declare(name.text, entity, name.span),
        };
        if let Err(conflict) = result {
            if place.is_none() && matches!(self.entity_kind(name.text), Some(Entity::Function(_))) {
                let message = format!("Inconsistent redefinition of variable '{}'", name.text);
                self.sink.error(Code::InconsistentRedefinition, name.span, message);
            }
            self.duplicate_variable(&conflict, name.span);
        }
    }

    fn entity_kind(&self, name: &str) -> Option<Entity> {
        self.globals.get(name).map(|declared| declared.entity)
    }

    /// Handles a module variable whose name is already a variable: `.extern` and its definition are one.
    fn declare_again(&mut self, node: &Declarator<'a>, declared: &Declaration, id: VarId, new: Variable) {
        let old = &self.variables[id.index()];
        let (name, span, previous) = (node.name.text, node.name.span, old.span);
        let either_extern = old.linkage == Linkage::Extern || new.linkage == Linkage::Extern;
        if old.ty != new.ty
            || old.array != new.array
            || (old.bytes != new.bytes && old.bytes != 0 && new.bytes != 0)
        {
            let message = format!("Inconsistent redefinition of variable '{name}'");
            self.sink
                .error(Code::InconsistentRedefinition, span, message)
                .label(previous, "first declared here");
        }
        if !either_extern {
            return self.duplicate("variable", name, span, previous);
        }
        if new.linkage == Linkage::Internal {
            let message = format!("'.extern' variable '{name}' cannot be resolved by a '.static'");
            let help = "make the definition `.visible`";
            self.sink.error(Code::InconsistentRedefinition, span, message).help(help);
        }
        if new.linkage != Linkage::Extern {
            self.variables[id.index()] = new;
            if let Some(shape) = declared.shape {
                self.initialize(node, declared, shape, id, &mut None);
            }
        }
    }
}

/// What the declarators of one declaration share.
struct Declaration {
    space: Space,
    linkage: Linkage,
    shape: Option<Shape>,
    opaque: Option<Opaque>,
    managed: bool,
}
