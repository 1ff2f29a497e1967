//! What operands mean before they are matched with an instruction (PTX ISA, "Instruction Operands").

use diag::Span;
use isa::{Opaque, Selector, Space, SpecialRegister, Type};
use smallvec::SmallVec;

use crate::literal::Const;
use crate::module::{BranchTargetsId, FuncId, LabelId, RegId, Symbol};

/// An operand and its span.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub(crate) value: Value,
    pub(crate) span: Span,
    /// `-r`; the value is that of `r`.
    pub(crate) negated: bool,
}

/// The meaning of an operand.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Register(RegId, Type),
    /// A vector register as a whole.
    VectorRegister(SmallVec<[RegId; 4]>, Type),
    /// `!p`
    NotRegister(RegId),
    /// `reg+imm`
    RegisterPlus(RegId, Type, i64),
    /// `r.h0` and the like, which only the video instructions take. `None` for an invalid selector.
    Part(RegId, Type, Option<Selector>),
    Const(Const),
    Special(SpecialRegister),
    /// `%tid` without a component: all its components.
    SpecialVector([SpecialRegister; 4]),
    Symbol(SymbolValue),
    /// `array[3]`, in brackets or not: the element's address.
    Indexed(SymbolValue),
    Function(FuncId, i64),
    Label(LabelId, i64),
    BranchTargets(BranchTargetsId),
    Prototype,
    CallTargets,
    Address(Base, i64),
    /// `[map, {x, y}]`: a tensor map, texture or surface, and coordinates.
    Tensor(Base, i64, SmallVec<[Box<Lowered>; 2]>),
    /// `{a, b}`: the elements, and the type of those that are registers.
    Vector(SmallVec<[Box<Lowered>; 4]>, Option<Type>),
    Pair(Box<Lowered>, Box<Lowered>),
    /// `(a, b)`
    List,
    /// `_`
    Sink,
    /// `nope+4`, where `nope` is undeclared.
    UnknownSum,
    /// An undeclared name, or a name that cannot be an operand.
    Unknown,
    /// Already reported; it fits every place.
    Reported,
}

/// A variable or parameter used as an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolValue {
    pub(crate) symbol: Symbol,
    pub(crate) offset: i64,
    pub(crate) space: Space,
    pub(crate) array: bool,
    /// The declared type.
    pub(crate) ty: Type,
    /// The kind of handle, if it is one.
    pub(crate) opaque: Option<Opaque>,
    /// A constant was added to it, even if that was 0.
    pub(crate) sum: bool,
    /// The register with the address of an element, if the index is in a register.
    pub(crate) element: Option<RegId>,
}

/// The base of an address in brackets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Register(RegId, Type),
    Symbol(SymbolValue),
    Absolute(u64),
    /// A function or label.
    Code,
    Unknown,
    /// Its error was reported.
    Reported,
}

/// The type that an element counts as; `None` for elements that are already reported.
pub(crate) fn element_type(element: &Lowered) -> Option<Type> {
    match element.value {
        Value::Register(_, ty) | Value::RegisterPlus(_, ty, _) => Some(ty),
        Value::Const(Const::Int { .. }) => Some(Type::S32),
        Value::Const(_) => Some(Type::F32),
        Value::Special(_) => Some(Type::B32),
        Value::Symbol(_) => Some(Type::U64),
        _ => None,
    }
}

/// The elements of a vector that are unlike their predecessors. To ptxas, floats of one type are alike, integers are
/// alike, and bits are like everything.
pub(crate) fn unlike_elements(elements: &[Box<Lowered>]) -> impl Iterator<Item = Span> {
    elements.windows(2).filter_map(|pair| {
        let (first, second) = (element_type(&pair[0])?, element_type(&pair[1])?);
        // Registers of different sizes have an error of their own.
        let is_register = |lowered: &Lowered| matches!(lowered.value, Value::Register(..));
        let are_alike = first == second
            || first.bits() != second.bits() && pair.iter().all(|element| is_register(element))
            || [first, second].iter().any(|ty| ty.kind() == isa::Kind::Bits)
            || ![first, second].iter().any(|ty| ty.is_float() || *ty == Type::Pred);
        (!are_alike).then_some(pair[1].span)
    })
}

pub(crate) fn unlike_message(name: &str) -> String {
    format!("Vector with elements of different types are not allowed in {name} instruction")
}
