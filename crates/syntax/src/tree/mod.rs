//! The syntax tree of a PTX module.
//!
//! The tree records what is written, not what it means. It knows no instruction, and it may contain every error that
//! is not a syntax error. Names borrow from the source. Two trees are equal if they contain the same text; spans are
//! not compared.
//!
//! Names of modifiers and directives omit their leading dot (`f32`, `shared::cta`, `maxntid`); their spans include
//! it.

use diag::Span;

/// A word of the source: an identifier, or a modifier or directive without its dot.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The word.
    pub text: &'a str,
    /// Its span; for modifiers and directives, with the dot.
    pub span: Span,
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A number or a string as it is written; [`value`](Self::value) evaluates it.
#[derive(Clone, Copy, Debug)]
pub struct Literal<'a> {
    /// The literal as written: `0x1F`, `2U`, `0f3F800000`, `1.5e3`, `"text"` with its quotes. PTX strings have
    /// no escapes.
    pub text: &'a str,
    /// Its span.
    pub span: Span,
}

impl PartialEq for Literal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Declares node types: each is a struct of the given fields and a span. Equality of nodes ignores the span.
macro_rules! nodes {
    ($($(#[$meta:meta])* struct $node:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $node<'a> {
            $($(#[$about])* pub $field: $type,)*
            /// From the node's first token to its last.
            pub span: Span,
        }

        impl<'a> PartialEq for $node<'a> {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field == other.$field)&&*
            }
        }
    )*};
}

mod operand;

pub use operand::{
    Address, Apply, Binary, BinaryOp, Cast, Element, Index, Operand, OperandList, Pair, Ternary, Unary,
    UnaryOp,
};

/// A whole file (PTX ISA, "PTX Statements").
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree<'a> {
    /// The items outside functions, in order.
    pub items: Vec<Item<'a>>,
}

/// An item outside functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// `.version`, `.target`, `.address_size`, `.pragma`.
    Directive(Directive<'a>),
    /// A declaration of variables in a state space.
    Variable(Box<Variable<'a>>),
    /// `.entry` or `.func`, with or without a body.
    Function(Box<Function<'a>>),
    /// `.alias`
    Alias(Box<Alias<'a>>),
    /// `.file`
    File(Box<File<'a>>),
    /// `.section`
    Section(Box<Section<'a>>),
}

nodes! {
    /// A directive that is a name and its arguments.
    ///
    /// As an item: `.version 8.5` (one literal `8.5`), `.target sm_90a, texmode_independent` (names),
    /// `.address_size 64`, `.pragma "nounroll";`. After the head of a function (PTX ISA,
    /// "Performance-Tuning Directives", "Cluster Dimension Directives"): `.maxntid 32, 4`, `.minnctapersm 2`,
    /// `.noreturn`, `.explicitcluster`. As a statement: `.pragma`.
    struct Directive {
        /// Its name: `version`, `maxntid`.
        name: Name<'a>,
        /// Its arguments.
        arguments: Box<[Operand<'a>]>,
    }

    /// `.alias new_name, old_name;` (PTX ISA, "Performance-Tuning Directives: .alias").
    struct Alias {
        /// The function that is declared.
        alias: Name<'a>,
        /// The function that the alias refers to.
        aliasee: Name<'a>,
    }

    /// `.file index "name" {, timestamp, size}` (PTX ISA, "Debugging Directives: .file").
    struct File {
        /// Number by which `.loc` refers to it.
        index: Literal<'a>,
        /// The name of the file, a string.
        name: Literal<'a>,
        /// Time of the last modification.
        timestamp: Option<Literal<'a>>,
        /// Size in bytes; only after a time stamp.
        size: Option<Literal<'a>>,
    }

    /// `.loc file line column {, function_name label{+offset}, inlined_at file line column}`
    /// (PTX ISA, "Debugging Directives: .loc").
    struct Loc {
        /// Index of the file.
        file: Literal<'a>,
        /// Line.
        line: Literal<'a>,
        /// Column.
        column: Literal<'a>,
        /// Where the code was inlined.
        inlined: Option<Inlined<'a>>,
    }

    /// `function_name label{+offset}, inlined_at file line column` of a `.loc`.
    struct Inlined {
        /// The label in `.debug_str`.
        function_name: Name<'a>,
        /// Offset from the label.
        offset: Option<Literal<'a>>,
        /// Index of the file.
        file: Literal<'a>,
        /// Line.
        line: Literal<'a>,
        /// Column.
        column: Literal<'a>,
    }

    /// `.section name { … }` (PTX ISA, "Debugging Directives: .section").
    struct Section {
        /// Its name, without the dot: `debug_info`.
        name: Name<'a>,
        /// Its lines.
        lines: Vec<SectionLine<'a>>,
    }

    /// `.b8 1, 2`, `.b32 label`, `.b64 label+4`, `.b32 end-begin`, `.b32 .debug_str+4` in a section. The name of a
    /// section is an [`Operand::Name`] that keeps its dot, so that it differs from a label.
    struct SectionData {
        /// `b8`, `b16`, `b32` or `b64`.
        width: Name<'a>,
        /// The values.
        values: Box<[Operand<'a>]>,
    }
}

/// A line of a `.section`.
#[derive(Clone, Debug, PartialEq)]
pub enum SectionLine<'a> {
    /// `label:`
    Label(Name<'a>),
    /// Data.
    Data(SectionData<'a>),
}

/// `.extern`, `.visible`, `.weak`, `.common` (PTX ISA, "Linking Directives").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LinkageKind {
    Extern,
    Visible,
    Weak,
    Common,
}

impl LinkageKind {
    /// The spelling without its dot.
    pub const fn name(self) -> &'static str {
        match self {
            LinkageKind::Extern => "extern",
            LinkageKind::Visible => "visible",
            LinkageKind::Weak => "weak",
            LinkageKind::Common => "common",
        }
    }
}

nodes! {
    /// A linking directive in front of a declaration; the grammar allows one.
    struct Linkage {
        /// Which directive.
        kind: LinkageKind,
        /// Its spelling in the source.
        name: Name<'a>,
    }

    /// `{linkage} .space {.attribute} {.align N} {.vN} .type name {[dims]} {= init}, …;`
    /// (PTX ISA, "State Spaces", "Variables").
    ///
    /// A `.reg` or `.param` declaration in a body is one too, and so are `.tex .u64 name` and `.global .texref name`.
    struct Variable {
        /// Linking directive in front.
        linkage: Option<Linkage<'a>>,
        /// The state space: `reg`, `param`, `global`, `const`, `const[3]`, `shared`, `local`, `tex`. The grammar of
        /// ptxas makes it optional.
        space: Option<Name<'a>>,
        /// The qualifiers of all names that follow.
        qualifiers: Qualifiers<'a>,
        /// The declared names. The grammar of ptxas allows an empty list.
        declarators: Vec<Declarator<'a>>,
    }

    /// Type, vector, alignment and attributes of a variable or a parameter.
    struct Qualifiers {
        /// `.attribute(.managed)`, `.attribute(.unified(1, 2))` (PTX ISA, "Variable and Function Attributes").
        attributes: Vec<Attribute<'a>>,
        /// N of `.align N`.
        align: Option<Operand<'a>>,
        /// `v2`, `v4`
        vector: Option<Name<'a>>,
        /// The type, `f32`, or an opaque type, `texref`. After an error it may be another word.
        ty: Name<'a>,
    }

    /// One attribute of `.attribute( … )`.
    struct Attribute {
        /// `managed`, `unified`
        name: Name<'a>,
        /// Arguments in parentheses.
        arguments: Box<[Operand<'a>]>,
    }

    /// `name`, `name<100>`, `name[4][8]`, `name[]`, `name = init`.
    struct Declarator {
        /// The name, or the prefix of a parameterised name.
        name: Name<'a>,
        /// N of `name<N>`: declares `name0` to `nameN-1` (PTX ISA, "Parameterized Variable Names").
        count: Option<Operand<'a>>,
        /// Lengths in brackets; `None` for `[]`.
        dimensions: Box<[Option<Operand<'a>>]>,
        /// The initial value.
        initializer: Option<Initializer<'a>>,
    }

    /// `.entry` or `.func`: a definition, or a declaration if it has no body
    /// (PTX ISA, "Kernel and Function Directives").
    struct Function {
        /// Linking directive in front.
        linkage: Option<Linkage<'a>>,
        /// `.attribute( … )` after `.func`.
        attributes: Vec<Attribute<'a>>,
        /// Kernel or function.
        kind: FunctionKind,
        /// The return parameters in parentheses, if there are parentheses.
        returns: Option<Vec<Parameter<'a>>>,
        /// Its name.
        name: Name<'a>,
        /// The parameters, if there are parentheses.
        parameters: Option<Vec<Parameter<'a>>>,
        /// The directives between the head and the body: `.maxntid`, `.noreturn`, `.pragma`, `.abi_preserve`.
        directives: Vec<Directive<'a>>,
        /// The body.
        body: Option<Block<'a>>,
    }

    /// `.param .u64 .ptr .global .align 8 name`, `.param .align 8 .b8 name[16]`, `.reg .f32 name`;
    /// in a prototype the name may be `_`.
    struct Parameter {
        /// `param` or `reg`. The grammar of ptxas makes it optional.
        space: Option<Name<'a>>,
        /// Type and alignment of the parameter itself.
        qualifiers: Qualifiers<'a>,
        /// `.ptr …`: what the parameter points to (PTX ISA, "Kernel Parameter Attribute: .ptr").
        pointer: Option<Pointer<'a>>,
        /// Its name; `_` where a prototype leaves it out.
        name: Name<'a>,
        /// Lengths in brackets; `None` for `[]`.
        dimensions: Box<[Option<Operand<'a>>]>,
    }

    /// `.ptr {.space} {.align N}`
    struct Pointer {
        /// The state space that it points into.
        space: Option<Name<'a>>,
        /// N of `.align N`.
        align: Option<Operand<'a>>,
    }

    /// `{ … }`
    struct Block {
        /// Its statements, in order.
        statements: Vec<Statement<'a>>,
    }

    /// `label: .branchtargets a, b;`, `label: .calltargets f, g;` (PTX ISA, "Control Flow Directives").
    struct Targets {
        /// Its label.
        label: Name<'a>,
        /// `branchtargets` or `calltargets`.
        directive: Name<'a>,
        /// The labels or functions.
        targets: Box<[Name<'a>]>,
    }

    /// `label: .callprototype (ret) _ (params) directives;` (PTX ISA, "Control Flow Directives").
    struct CallPrototype {
        /// Its label.
        label: Name<'a>,
        /// The return parameters in parentheses, if there are parentheses.
        returns: Option<Vec<Parameter<'a>>>,
        /// The parameters, if there are parentheses.
        parameters: Option<Vec<Parameter<'a>>>,
        /// `.noreturn`, `.abi_preserve N`.
        directives: Vec<Directive<'a>>,
    }

    /// `{@guard} opcode{.modifier}* {operand, …};` (PTX ISA, "Instruction Statements").
    struct Instruction {
        /// `@p` or `@!p`.
        guard: Option<Box<Guard<'a>>>,
        /// The word before the first dot.
        opcode: Name<'a>,
        /// The words after dots, types included, in order: `rn`, `ftz`, `f32`, `L1::evict_last`, `16x64b`.
        modifiers: Box<[Name<'a>]>,
        /// The operands, in order.
        operands: Box<[Operand<'a>]>,
    }

    /// `@p`, `@!p` (PTX ISA, "Predicated Execution").
    struct Guard {
        /// Whether there is a `!`.
        negated: bool,
        /// The predicate.
        predicate: Name<'a>,
    }
}

/// Kernel or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// `name:`
    Label(Name<'a>),
    /// An instruction.
    Instruction(Instruction<'a>),
    /// An instruction up to the token that does not parse.
    Unfinished(Box<Instruction<'a>>),
    /// A declaration.
    Variable(Box<Variable<'a>>),
    /// `{ … }`
    Block(Box<Block<'a>>),
    /// `.loc`
    Loc(Box<Loc<'a>>),
    /// `.pragma "nounroll";`, and `.target`, which ptxas accepts here.
    Directive(Box<Directive<'a>>),
    /// `.branchtargets`, `.calltargets`
    Targets(Box<Targets<'a>>),
    /// `.callprototype`
    CallPrototype(Box<CallPrototype<'a>>),
    /// A declaration of a function, without a body.
    Function(Box<Function<'a>>),
    /// `.alias`, which ptxas accepts here.
    Alias(Box<Alias<'a>>),
}

/// The initial value of a variable (PTX ISA, "Initializers").
#[derive(Clone, Debug, PartialEq)]
pub enum Initializer<'a> {
    /// A constant expression, a symbol, `sym+4`, `generic(sym)`, `0xFF(sym)`.
    Value(Operand<'a>),
    /// `addr_mode_0 = wrap` in the list of an opaque variable (PTX ISA, "Texture, Sampler, and Surface Types").
    Field(Box<Field<'a>>),
    /// `{a, b, …}`
    List(Box<InitializerList<'a>>),
}

nodes! {
    /// `name = value` in the initializer of an opaque variable.
    struct Field {
        /// Name of the property.
        name: Name<'a>,
        /// A name or a number.
        value: Operand<'a>,
    }

    /// `{a, {b, c}, …}` of an initializer.
    struct InitializerList {
        /// The values.
        values: Vec<Initializer<'a>>,
    }
}

impl Instruction<'_> {
    /// The span of the opcode and its modifiers.
    pub fn head(&self) -> Span {
        self.modifiers.last().map_or(self.opcode.span, |last| self.opcode.span.to(last.span))
    }
}

impl Statement<'_> {
    /// The statement's span.
    pub fn span(&self) -> Span {
        match self {
            Statement::Label(name) => name.span,
            Statement::Instruction(node) => node.span,
            Statement::Unfinished(node) => node.span,
            Statement::Variable(node) => node.span,
            Statement::Block(node) => node.span,
            Statement::Loc(node) => node.span,
            Statement::Directive(node) => node.span,
            Statement::Targets(node) => node.span,
            Statement::CallPrototype(node) => node.span,
            Statement::Function(node) => node.span,
            Statement::Alias(node) => node.span,
        }
    }
}

impl Item<'_> {
    /// The item's span.
    pub fn span(&self) -> Span {
        match self {
            Item::Directive(node) => node.span,
            Item::Variable(node) => node.span,
            Item::Function(node) => node.span,
            Item::Alias(node) => node.span,
            Item::File(node) => node.span,
            Item::Section(node) => node.span,
        }
    }
}

impl Initializer<'_> {
    /// The initial value's span.
    pub fn span(&self) -> Span {
        match self {
            Initializer::Value(value) => value.span(),
            Initializer::Field(field) => field.span,
            Initializer::List(list) => list.span,
        }
    }
}
