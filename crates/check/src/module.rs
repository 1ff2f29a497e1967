//! The checked module: every name resolved, every form legal for its `.version` and `.target`.
//!
//! Only [`crate::check`] makes one. Indices (`RegId`, `VarId`, ...) point into the vectors of the
//! [`Module`] or [`Body`] that owns them.

use diag::Span;
use isa::{Form, Opaque, Picks, Space, SpecialRegister, Target, Type, Version};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into its vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}

ids! {
    /// A scalar register: index into [`Body::registers`]. Vector registers are split into their elements.
    RegId;
    /// A variable: index into [`Module::variables`].
    VarId;
    /// A function or kernel: index into [`Module::functions`].
    FuncId;
    /// A label: index into [`Body::labels`].
    LabelId;
    /// A `.branchtargets` list: index into [`Body::branch_targets`].
    BranchTargetsId;
    /// A `.callprototype`: index into [`Body::prototypes`].
    PrototypeId;
}

/// A whole PTX file that passed the checker.
#[derive(Clone, Debug)]
pub struct Module {
    /// `.version`
    pub version: Version,
    /// `.target` (the architecture; texture mode and debug are dropped)
    pub target: Target,
    /// `.address_size`: 32 or 64 bits.
    pub address_size: u32,
    /// Variables of the module and of all function bodies, in source order.
    pub variables: Vec<Variable>,
    /// Functions and kernels. A declaration and its later definition are one entry.
    pub functions: Vec<Function>,
}

/// Linking directive before a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Linkage {
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// A variable in `.global`, `.const`, `.shared`, `.local` or (inside a body) `.param` space.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name as written.
    pub name: String,
    /// State space.
    pub space: Space,
    /// Element type. A handle has `.b64`; a `.reg` vector has bits as wide as all its elements, because it is passed
    /// as one register.
    pub ty: Type,
    /// The kind of handle, if it is one.
    pub opaque: Option<Opaque>,
    /// Fields in the initial value of a handle, each with its value, a name or a number: `addr_mode_0`, `wrap`.
    pub fields: Vec<(String, String)>,
    /// Declared as an array or a vector.
    pub array: bool,
    /// Size in bytes; 0 for an unsized `.extern .shared x[]`, which starts where dynamic shared memory starts.
    pub bytes: u64,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Initial contents. If shorter than `bytes`, zeros follow; if empty, all bytes are zero.
    pub init: Vec<u8>,
    /// Addresses to write over `init` once variables have addresses.
    pub relocations: Vec<Relocation>,
    /// Linking directive.
    pub linkage: Linkage,
    /// `.attribute(.managed)`: the host reaches it at the same address.
    pub managed: bool,
    /// The function whose body declares it; `None` at module scope.
    pub function: Option<FuncId>,
    /// The span of its name.
    pub span: Span,
}

/// An address inside an initialiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the variable.
    pub offset: u64,
    /// Number of bytes to write (1 to 8).
    pub bytes: u32,
    /// The symbol whose address is written.
    pub symbol: Symbol,
    /// Added to the address.
    pub addend: i64,
    /// `generic(x)`: the generic address instead of the address in the variable's own space.
    pub generic: bool,
    /// `mask(...)` initialisers select one byte of the address: the right shift in bits before truncation.
    pub shift: u32,
}

/// A named object that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable.
    Variable(VarId),
    /// A function (function pointers).
    Function(FuncId),
    /// A parameter of the function whose body uses it: index into [`Function::params`].
    Param(u32),
    /// A return parameter of the function whose body uses it: index into [`Function::returns`].
    Return(u32),
}

/// A parameter of a kernel or function, or a return parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name as written; empty in prototypes with `_`.
    pub name: String,
    /// Element type; of a handle `.b64`.
    pub ty: Type,
    /// The kind of handle, if it is one.
    pub opaque: Option<Opaque>,
    /// Size in bytes (arrays and structures are `.b8 x[N]`).
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Declared as an array.
    pub array: bool,
    /// `.ptr`: the state space of the pointer (Generic by default) and the alignment of the memory that it points to.
    pub pointer: Option<(Space, u64)>,
    /// Declared in `.reg` space (functions and prototypes only).
    pub in_register: bool,
    /// The register of the body that holds it, if it is `in_register` and there is a body.
    pub register: Option<RegId>,
    /// The span of its name.
    pub span: Span,
}

impl Param {
    /// An array without a length.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.array && self.bytes == 0
    }
}

/// A kernel or a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name as written.
    pub name: String,
    /// `.entry`
    pub is_entry: bool,
    /// Linking directive.
    pub linkage: Linkage,
    /// `.noreturn`
    pub noreturn: bool,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Return parameters, in order.
    pub returns: Vec<Param>,
    /// Performance directives that bound a launch.
    pub bounds: LaunchBounds,
    /// `None` for a declaration without a definition.
    pub body: Option<Body>,
    /// The span of its name.
    pub span: Span,
}

/// Performance-tuning directives that a launch must respect (PTX ISA, "Performance-Tuning Directives").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchBounds {
    /// `.maxntid`: at most this many threads in all (product of the extents).
    pub max_threads: Option<u64>,
    /// `.reqntid`: exactly these extents.
    pub required: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// `.minperctamemory`: the least number of bytes of global memory that each CTA has for itself; 0 without the
    /// directive.
    pub per_cta_memory: u64,
    /// `.maxclusterrank`: the greatest number of CTAs of a cluster.
    pub max_cluster: Option<u32>,
    /// `.explicitcluster`: a launch must give the size of clusters.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`: the grid of a launch counts clusters, not CTAs.
    pub blocks_are_clusters: bool,
}

/// The code of a function.
#[derive(Clone, Debug)]
pub struct Body {
    /// The function whose variables the body uses. For an alias, this is the aliasee.
    pub owner: FuncId,
    /// Scalar registers of all scopes of the body, but only those that an instruction names or that hold a `.reg`
    /// parameter.
    pub registers: Vec<Register>,
    /// Labels of all scopes.
    pub labels: Vec<Label>,
    /// Instructions and label positions in source order; scopes are flattened.
    pub code: Vec<Node>,
    /// `.branchtargets` lists.
    pub branch_targets: Vec<Vec<LabelId>>,
    /// `.callprototype` signatures.
    pub prototypes: Vec<Prototype>,
}

impl Body {
    /// The empty body of a function.
    pub(crate) fn new(owner: FuncId) -> Body {
        Body {
            owner,
            registers: Vec::new(),
            labels: Vec::new(),
            code: Vec::new(),
            branch_targets: Vec::new(),
            prototypes: Vec::new(),
        }
    }

    /// The instructions, in source order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.instructions_from(0)
    }

    /// The instructions from an index in [`Body::code`] on.
    pub fn instructions_from(&self, index: usize) -> impl Iterator<Item = &Instruction> {
        self.code.get(index..).unwrap_or_default().iter().filter_map(|node| match node {
            Node::Instruction(instruction) => Some(instruction),
            Node::Label(_) => None,
        })
    }
}

/// A scalar register.
#[derive(Clone, Debug)]
pub struct Register {
    /// Name as written (`%r1`; `%v.x` for an element of a vector register).
    pub name: String,
    /// Declared type.
    pub ty: Type,
}

/// A label.
#[derive(Clone, Debug)]
pub struct Label {
    /// Name as written.
    pub name: String,
    /// The span of its name.
    pub span: Span,
}

/// Signature of an indirect call.
#[derive(Clone, Debug)]
pub struct Prototype {
    /// Return parameters.
    pub returns: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
}

/// One element of a body.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // almost all nodes are instructions
pub enum Node {
    /// The position of a label.
    Label(LabelId),
    /// An instruction.
    Instruction(Instruction),
}

/// A checked instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The table row that it is an instance of.
    pub form: &'static Form,
    /// The modifiers written, and `.ftz` where `.target sm_1x` implies it.
    pub picks: Picks,
    /// `@p` / `@!p`: the register, and whether it is negated.
    pub guard: Option<(RegId, bool)>,
    /// Operands in the order of `form.operands`; optional trailing operands may be missing.
    pub operands: Vec<Operand>,
    /// The whole instruction in the source.
    pub span: Span,
}

/// A checked operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// `!p`
    NotReg(RegId),
    /// `reg+imm` as a source value.
    RegPlus(RegId, i64),
    /// A literal or constant expression: the bits in the operand's instruction type, zero-extended.
    Imm(u64),
    /// A special register, component included (`%tid.x`).
    Special(SpecialRegister),
    /// A symbol used as a value (`mov.u64 %rd, sym+4`).
    Symbol(Symbol, i64),
    /// `[base+offset]`
    Address(AddressBase, i64),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `p|q`: either may be `_`.
    Pair(Option<RegId>, Option<RegId>),
    /// `{a, b}|p`: the texels that an instruction reads, and the predicate that reports whether they were resident in
    /// memory.
    Resident(Vec<Operand>, RegId),
    /// `[texture, {x, y}]`, `[texture, sampler, {x, y}]`
    Texels(Box<Texels>),
    /// `[map, {x, y}]`
    Tensor(Box<Tensor>),
    /// `_`
    Sink,
    /// A label (bra).
    Label(LabelId),
    /// A `.branchtargets` list (brx.idx).
    BranchTargets(BranchTargetsId),
    /// A function called by name.
    Function(FuncId),
    /// Prototype of an indirect call.
    Prototype(PrototypeId),
    /// `(a, b)`: arguments or return destinations of a call.
    List(Vec<Operand>),
}

/// A texture or surface, and coordinates in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Texels {
    /// Its handle: in a register, or the one bound to a variable or parameter.
    pub handle: AddressBase,
    /// The handle of the sampler, if it is separate.
    pub sampler: Option<AddressBase>,
    /// Coordinates as written; there are at least as many as the geometry needs.
    pub coordinates: Vec<Operand>,
}

/// A tensor map in memory, and coordinates in its tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The address of the map: [`Operand::Address`].
    pub map: Operand,
    /// One for each dimension of the instruction, innermost first.
    pub coordinates: Vec<Operand>,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBase {
    /// A register of the address width.
    Reg(RegId),
    /// A variable or parameter.
    Symbol(Symbol),
    /// An absolute address.
    Absolute(u64),
}
