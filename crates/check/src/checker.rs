//! One pass over the items of a module, in order: PTX names must be declared before they are used.

use std::collections::{HashMap, HashSet};

use diag::{Code, Fix, Help, SourceFile, Span};
use isa::{Opaque, Requirement, Target, Type, Version};
use syntax::Tree;
use syntax::tree::{Item, Linkage as LinkageTree, LinkageKind, Name, Variable as VariableTree};

use crate::Options;
use crate::module::{FuncId, Function, Linkage, Module, Variable};
use crate::scope::{Conflict, Scope};
use crate::sink::Sink;

/// The state of the check: what the module has declared so far.
pub(crate) struct Checker<'a> {
    pub(crate) source: &'a SourceFile,
    pub(crate) options: &'a Options,
    pub(crate) sink: Sink<'a>,
    pub(crate) version: Version,
    pub(crate) target: Target,
    /// The number of `.version`, and the architecture of `.target`, for fixes.
    pub(crate) header: (Option<Span>, Option<Span>),
    /// `texmode_independent`: textures and samplers have separate handles.
    pub(crate) independent_samplers: bool,
    /// Indices of the `.file` directives.
    pub(crate) files: HashSet<u64>,
    /// The span of `debug` in `.target`; `None` once debug information is found.
    pub(crate) debug: Option<Span>,
    /// The positions that `.loc` directives name: file, line and column.
    pub(crate) locations: HashSet<[&'a str; 3]>,
    /// The labels that `.loc` directives name.
    pub(crate) inlined_functions: Vec<Name<'a>>,
    /// Labels of sections.
    pub(crate) section_labels: HashMap<&'a str, Span>,
    /// The aliasee of each function that is an alias.
    pub(crate) aliases: HashMap<FuncId, FuncId>,
    pub(crate) address_size: u32,
    /// There is an `.address_size`. Without one, ptxas checks instructions for 32-bit addresses and generates code
    /// for 64-bit ones.
    pub(crate) says_address_size: bool,
    /// `.version` or `.target` is missing, which the parser reports.
    pub(crate) headless: bool,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
    /// Declarations of registers and local memory outside functions: every function gets its own.
    pub(crate) per_function: Vec<VariableTree<'a>>,
    /// ptxas warns only of the first of these declarations.
    pub(crate) warned_of_scope: bool,
    /// The names of the module.
    pub(crate) globals: Scope<'a>,
    /// Number of suggestions so far. Each compares all visible names, so their number is limited.
    suggestions: u32,
}

const MAX_SUGGESTIONS: u32 = 200;

impl<'a> Checker<'a> {
    pub(crate) fn new(source: &'a SourceFile, options: &'a Options) -> Checker<'a> {
        Checker {
            source,
            options,
            sink: Sink::new(source),
            version: Version::MAX,
            target: Target::sm(u16::MAX),
            header: (None, None),
            independent_samplers: false,
            address_size: 32,
            says_address_size: false,
            headless: false,
            variables: Vec::new(),
            functions: Vec::new(),
            per_function: Vec::new(),
            warned_of_scope: false,
            globals: Scope::default(),
            suggestions: 0,
            files: HashSet::new(),
            debug: None,
            locations: HashSet::new(),
            inlined_functions: Vec::new(),
            section_labels: HashMap::new(),
            aliases: HashMap::new(),
        }
    }

    pub(crate) fn module(&mut self, tree: &Tree<'a>) {
        let items = self.header(tree);
        for item in items {
            self.sink.begin_statement();
            match item {
                Item::Directive(node) => self.late_directive(node),
                Item::Variable(node) => self.module_variables(node),
                Item::Function(node) => self.function(node),
                Item::Alias(node) => self.alias(node),
                Item::File(node) => self.file(node),
                Item::Section(node) => self.section(node),
            }
        }
        self.inlined_functions();
        if let Some(span) = self.debug {
            let message = "Debug information not found in presence of .target debug";
            let help = "compilers write `debug` together with `.section .debug_info`";
            self.sink.last_error(Code::MissingDebugInformation, span, message.into()).help(help);
        }
        if self.sink.errors() == 0 && !self.headless {
            self.assemble();
        }
    }

    /// The module, if it has no errors, and all diagnostics.
    pub(crate) fn finish(self) -> (Option<Module>, Vec<diag::Diagnostic>) {
        let Checker { sink, version, target, address_size, variables, functions, headless, .. } = self;
        let diagnostics = sink.into_sorted();
        let good = !headless && !diagnostics.iter().any(diag::Diagnostic::is_error);
        (good.then_some(Module { version, target, address_size, variables, functions }), diagnostics)
    }

    /// Reports a construct that the grammar of ptxas does not allow here.
    pub(crate) fn misplaced(&mut self, span: Span, word: &str) {
        self.sink.error(Code::Misplaced, span, format!("Parsing error near '{word}': syntax error"));
    }

    /// The linking directive of a declaration; more than one is an error.
    pub(crate) fn linkage(&self, linkage: Option<&LinkageTree<'a>>) -> Linkage {
        match linkage.map(|l| l.kind) {
            None => Linkage::Internal,
            Some(LinkageKind::Visible) => Linkage::Visible,
            Some(LinkageKind::Extern) => Linkage::Extern,
            Some(LinkageKind::Weak) => Linkage::Weak,
            Some(LinkageKind::Common) => Linkage::Common,
        }
    }

    /// Reports what a feature requires of `.version` and `.target`.
    pub(crate) fn need(
        &mut self,
        span: Span,
        feature: &str,
        version: Option<Version>,
        target: Option<Target>,
    ) {
        let needs_version = |checker: &mut Self| {
            if let Some(version) = version.filter(|&v| checker.version < v) {
                let message = format!("Feature '{feature}' requires PTX ISA .version {version} or later");
                let fix = checker.version_fix(version);
                checker.need_version(span, message, fix);
            }
        };
        // In this case only, ptxas checks the target first.
        let target_first = feature == ".f16x2 packed data-type";
        if !target_first {
            needs_version(self);
        }
        if let Some(target) = target.filter(|&t| self.knows_target() && !self.target.has(t)) {
            let message = format!("Feature '{feature}' requires .target {target} or higher");
            let fix = self.target_fix(target);
            self.need_target(span, message, fix);
        }
        if target_first {
            needs_version(self);
        }
    }

    /// Was `.target` valid? If not, no error about the target is reported.
    pub(crate) fn knows_target(&self) -> bool {
        self.target.number != u16::MAX
    }

    pub(crate) fn need_version(&mut self, span: Span, message: String, fix: Option<Fix>) {
        let help = self.version_help();
        self.sink.error(Code::RequiresVersion, span, message).help(help).fixes(fix);
    }

    pub(crate) fn need_target(&mut self, span: Span, message: String, fix: Option<Fix>) {
        let help = self.target_help();
        self.sink.error(Code::RequiresTarget, span, message).help(help).fixes(fix);
    }

    /// The change of `.version` or `.target` that meets a requirement.
    pub(crate) fn gate_fix(&self, requires: Requirement) -> Option<Fix> {
        match requires {
            Requirement::Version(version) => self.version_fix(version),
            Requirement::Target(targets) => self.target_fix(*targets.first()?),
            Requirement::Since(first, new, old) => {
                self.target_fix(if self.version >= first { new } else { old })
            }
            Requirement::Until(..) => None,
        }
    }

    pub(crate) fn version_fix(&self, version: Version) -> Option<Fix> {
        self.header.0.map(|span| Fix { span, text: version.to_string() })
    }

    fn target_fix(&self, target: Target) -> Option<Fix> {
        // With another `Options::target`, it is not the file that decides.
        let span = self.header.1.filter(|_| self.options.target.is_none())?;
        Some(Fix { span, text: target.to_string() })
    }

    pub(crate) fn version_help(&self) -> String {
        format!("the module says `.version {}`", self.version)
    }

    pub(crate) fn target_help(&self) -> String {
        format!("the module says `.target {}`", self.target)
    }

    pub(crate) fn duplicate(&mut self, what: &str, name: &str, span: Span, previous: Span) {
        self.sink
            .error(Code::DuplicateDefinition, span, format!("Duplicate definition of {what} '{name}'"))
            .label(previous, "first declared here");
    }

    pub(crate) fn duplicate_variable(&mut self, conflict: &Conflict, span: Span) {
        self.duplicate("variable", &conflict.name, span, conflict.previous);
    }

    /// The type of a declaration. Reports errors and returns `None` for them.
    pub(crate) fn declared_type(&mut self, ty: Name, version_gate: bool) -> Option<Type> {
        let found = Type::from_name(ty.text);
        match found {
            // Opaque types are 64-bit handles.
            None if Opaque::named(ty.text).is_some() => return Some(Type::B64),
            None => {}
            Some(Type::F16x2) if version_gate => {
                let feature = ".f16x2 packed data-type";
                self.need(ty.span, feature, Some(Version::new(4, 2)), Some(Target::sm(53)));
            }
            Some(Type::B128) if version_gate => {
                self.need(ty.span, "Type .b128", Some(Version::new(8, 3)), Some(Target::sm(70)));
            }
            Some(_) => {}
        }
        match found {
            // The parser has reported these.
            None
            | Some(
                Type::B1
                | Type::B4
                | Type::U4
                | Type::S4
                | Type::U8x4
                | Type::S8x4
                | Type::Bf16
                | Type::Bf16x2
                | Type::Tf32,
            ) => None,
            Some(
                ty_found @ (Type::U16x2
                | Type::S16x2
                | Type::F32x2
                | Type::E4m3
                | Type::E5m2
                | Type::E4m3x2
                | Type::E5m2x2
                | Type::E2m3x2
                | Type::E3m2x2
                | Type::E2m1x2
                | Type::Ue8m0x2
                | Type::E4m3x4
                | Type::E5m2x4),
            ) => {
                let message = format!("Type {ty_found} may only be used as an instruction type");
                let bits = format!(".b{}", ty_found.bits());
                let help = Help { text: format!("declare it {bits}"), instead: Some(bits) };
                self.sink.error(Code::NotADeclaredType, ty.span, message).help(help);
                None
            }
            Some(found) => Some(found),
        }
    }

    /// The nearest visible name: at module scope and in `scopes`.
    pub(crate) fn suggest(&mut self, name: &str, scopes: &[Scope<'a>]) -> Option<Help> {
        self.suggestions += 1;
        if self.suggestions > MAX_SUGGESTIONS {
            return None;
        }
        if let Some((base, _)) = crate::scope::split_number(name)
            && let Some(range) = scopes.iter().rev().find_map(|scope| scope.range(base))
        {
            let text = match range.count {
                0 => format!("`{base}<0>` declares nothing"),
                count => format!("`{base}<{count}>` declares {base}0 to {base}{}", count - 1),
            };
            return Some(text.into());
        }
        let names = scopes.iter().chain(std::iter::once(&self.globals)).flat_map(Scope::candidates);
        diag::nearest(name, names).map(Help::did_you_mean)
    }
}
