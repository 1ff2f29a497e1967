//! The operations that native code has, and how lowered operations become them.
//!
//! The interpreter runs loops with any other operation.

use crate::MOST_SOURCES;
use ir::{Base, OpKind, SimpleOp, Slot, Width};
use isa::{BoolOp, CmpOp, Form, Mod, Picks, Rounding, Space, Type};

/// An arithmetic operation of f32 or f64. The host computes it as PTX does, but for the bits of NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    Add,
    Sub,
    Mul,
    /// `a * b + c`, rounded once.
    Fma,
    Div,
    /// `1 / a`.
    Rcp,
    Sqrt,
    /// Of a number and a NaN the number; +0 is greater than -0.
    Min,
    Max,
}

/// An operation on the bits of 32-bit or 64-bit values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    Add,
    Sub,
    /// The low half of the product.
    Mul,
    /// The low half of `a * b`, plus `c`.
    Mad,
    MinSigned,
    MinUnsigned,
    MaxSigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    Not,
    /// Shifts by the number of bits or more shift out every bit. The distance has 32 bits.
    Shl,
    ShrSigned,
    ShrUnsigned,
    /// `0 - a`.
    Neg,
    AbsSigned,
    /// Clears the sign bit of f32 or f64. A NaN of f32 becomes PTX's, and one of f64 becomes quiet.
    AbsFloat,
    /// Changes the sign bit of f32 or f64. A NaN of f32 becomes PTX's, and one of f64 becomes quiet.
    NegFloat,
    /// An integer as f32, rounded to nearest.
    FromSigned,
    FromUnsigned,
    Copy,
}

/// A conversion from or to f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// From integers of 32 bits.
    FromSigned,
    FromUnsigned,
    /// From integers of 64 bits.
    FromSigned64,
    FromUnsigned64,
    FromSingle,
    ToSingle,
    /// To an integer of 32 bits. Numbers that are too large become the nearest one, and a NaN becomes the least one.
    ToSigned,
}

/// How values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    Signed,
    Unsigned,
    Float,
}

/// A checked access to memory: `count` contiguous elements of `bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Index in [`Loop::accesses`](crate::Loop::accesses).
    pub index: usize,
    pub base: Slot,
    pub offset: i64,
    /// Bytes of an element: those of its slot.
    pub bytes: u32,
    pub count: u32,
}

/// An operation. `wide`: on slots of 8 bytes, otherwise of 4.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Float {
        op: Float,
        wide: bool,
        rounding: Rounding,
        dst: Slot,
        src: [Slot; 3],
    },
    Convert {
        conversion: Conversion,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
    },
    Bits {
        op: Bits,
        wide: bool,
        dst: Slot,
        src: [Slot; 3],
    },
    /// `src + addend`.
    Offset {
        wide: bool,
        dst: Slot,
        src: Slot,
        addend: i64,
    },
    /// The whole product of two 32-bit values, plus a 64-bit one.
    MulWide {
        signed: bool,
        dst: Slot,
        src: [Slot; 2],
        addend: Option<Slot>,
    },
    /// A 32-bit value as a 64-bit one.
    Widen {
        signed: bool,
        dst: Slot,
        src: Slot,
    },
    /// The low half.
    Narrow {
        dst: Slot,
        src: Slot,
    },
    /// f32 as an integer of 32 bits. Numbers that are too large become the nearest one, and a NaN becomes 0.
    ToInteger {
        signed: bool,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
    },
    /// An operation that the interpreter's vector handler computes.
    Call {
        /// Index in [`Loop::calls`](crate::Loop::calls).
        index: usize,
        dst: Slot,
        src: Vec<Slot>,
    },
    Load {
        access: Access,
        dst: Vec<Option<Slot>>,
    },
    Store {
        access: Access,
        src: Vec<Slot>,
    },
    Compare {
        op: CmpOp,
        wide: bool,
        ordering: Ordering,
        dst: [Option<Slot>; 2],
        src: [Slot; 2],
        with: Option<(BoolOp, Slot)>,
    },
    Select {
        wide: bool,
        dst: Slot,
        src: [Slot; 2],
        pred: Slot,
    },
    /// On predicates.
    Logic {
        op: BoolOp,
        dst: Slot,
        src: [Slot; 2],
    },
    /// On predicates: the negation, or a copy.
    Pass {
        dst: Slot,
        src: Slot,
        negated: bool,
    },
}

impl Operation {
    /// The slots that the operation reads.
    pub fn uses(&self) -> Vec<Slot> {
        match self {
            Operation::Float { op: Float::Fma, src, .. } | Operation::Bits { op: Bits::Mad, src, .. } => {
                src.to_vec()
            }
            Operation::Float { op: Float::Rcp | Float::Sqrt, src, .. } => src[..1].to_vec(),
            Operation::Float { src, .. } => src[..2].to_vec(),
            Operation::Bits { op, src, .. } => src[..if op.is_unary() { 1 } else { 2 }].to_vec(),
            Operation::MulWide { src, addend, .. } => src.iter().copied().chain(*addend).collect(),
            Operation::Compare { src, with, .. } => src.iter().copied().chain(with.map(|(_, c)| c)).collect(),
            Operation::Select { src: [a, b], pred, .. } => vec![*a, *b, *pred],
            Operation::Logic { src, .. } => src.to_vec(),
            Operation::Pass { src, .. }
            | Operation::Offset { src, .. }
            | Operation::ToInteger { src, .. }
            | Operation::Convert { src, .. }
            | Operation::Widen { src, .. }
            | Operation::Narrow { src, .. } => vec![*src],
            Operation::Call { src, .. } => src.clone(),
            Operation::Load { access, .. } => vec![access.base],
            Operation::Store { access, src } => [access.base].iter().chain(src).copied().collect(),
        }
    }

    /// The slots that the operation writes.
    pub fn defs(&self) -> Vec<Slot> {
        match self {
            Operation::Compare { dst, .. } => dst.iter().flatten().copied().collect(),
            Operation::Load { dst, .. } => dst.iter().flatten().copied().collect(),
            Operation::Store { .. } => Vec::new(),
            Operation::Float { dst, .. }
            | Operation::Bits { dst, .. }
            | Operation::Offset { dst, .. }
            | Operation::ToInteger { dst, .. }
            | Operation::Call { dst, .. }
            | Operation::Convert { dst, .. }
            | Operation::MulWide { dst, .. }
            | Operation::Widen { dst, .. }
            | Operation::Narrow { dst, .. }
            | Operation::Select { dst, .. }
            | Operation::Logic { dst, .. }
            | Operation::Pass { dst, .. } => vec![*dst],
        }
    }

    /// Whether the operation sees which NaN a source is.
    pub fn sees_bits(&self) -> bool {
        match self {
            Operation::Bits { op, .. } => !op.is_arithmetic(),
            Operation::Compare { ordering, .. } => *ordering != Ordering::Float,
            Operation::Float { .. }
            | Operation::ToInteger { .. }
            | Operation::Logic { .. }
            | Operation::Pass { .. } => false,
            Operation::Offset { .. }
            | Operation::Call { .. }
            | Operation::Convert { .. }
            | Operation::MulWide { .. }
            | Operation::Widen { .. }
            | Operation::Narrow { .. }
            | Operation::Load { .. }
            | Operation::Store { .. }
            | Operation::Select { .. } => true,
        }
    }

    /// The operation for a lowered one, if there is one. `width`: of a slot. `index` and `calls`: of the next access and
    /// call.
    pub fn of(op: &ir::Op, width: impl Fn(Slot) -> Width, index: usize, calls: usize) -> Option<Operation> {
        if op.guard.is_some() {
            return None;
        }
        let made = match &op.kind {
            OpKind::Pure { form, picks, function, dst, src } => {
                let native = pure(form, picks, function, *dst, src);
                native.or_else(|| call(form, function, *dst, src, &width, calls))?
            }
            OpKind::Cvta { dst, src, space: Space::Global, .. } if width(*src) == width(*dst) => {
                Operation::copy(*dst, *src, width(*dst))
            }
            OpKind::Simple(SimpleOp::Copy { dst, src }) => Operation::copy(*dst, *src, width(*dst)),
            OpKind::Simple(SimpleOp::Not { dst, src }) => {
                Operation::Pass { dst: *dst, src: *src, negated: true }
            }
            OpKind::Simple(SimpleOp::Offset { dst, src, addend }) => {
                let wide = width(*dst) == Width::W64;
                Operation::Offset { wide, dst: *dst, src: *src, addend: *addend }
            }
            OpKind::Simple(SimpleOp::Resize { dst, src, bits: 32, signed }) => {
                match (width(*src), width(*dst)) {
                    (Width::W32, Width::W64) => Operation::Widen { signed: *signed, dst: *dst, src: *src },
                    (Width::W64, Width::W32) => Operation::Narrow { dst: *dst, src: *src },
                    (Width::W32, Width::W32) => Operation::copy(*dst, *src, Width::W32),
                    _ => return None,
                }
            }
            OpKind::Load(load) if !load.semantics.is_strong() => {
                let access = access(&load.address, load.bytes, load.dst.len(), index, &width)?;
                let fits = |slot: &Slot| width(*slot).bytes() == load.bytes as usize;
                if !load.dst.iter().flatten().all(fits) {
                    return None;
                }
                Operation::Load { access, dst: load.dst.to_vec() }
            }
            OpKind::Store(store) if !store.semantics.is_strong() => {
                let access = access(&store.address, store.bytes, store.src.len(), index, &width)?;
                if !store.src.iter().all(|slot| width(*slot).bytes() == store.bytes as usize) {
                    return None;
                }
                Operation::Store { access, src: store.src.to_vec() }
            }
            _ => return None,
        };
        let fits = |slot: Slot| width(slot) != Width::W16;
        made.uses().into_iter().chain(made.defs()).all(fits).then_some(made)
    }

    /// Whether the operation computes with numbers of f64, or compares them: their NaNs must be the one that arithmetic
    /// makes.
    pub fn computes_double(&self) -> bool {
        match self {
            Operation::Float { wide, .. } => *wide,
            _ => false,
        }
    }

    /// Whether a NaN among the results of f64 is the one that arithmetic makes, if those among the sources are.
    pub fn keeps_clean(&self) -> bool {
        match self {
            Operation::Float { wide, .. } => *wide,
            Operation::Bits { op: Bits::Copy | Bits::AbsFloat | Bits::NegFloat, .. }
            | Operation::Select { .. } => true,
            Operation::Convert { conversion, .. } => {
                !matches!(conversion, Conversion::FromSingle | Conversion::ToSingle)
            }
            _ => false,
        }
    }

    /// The access of a load or store.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Operation::Load { access, .. } | Operation::Store { access, .. } => Some(access),
            _ => None,
        }
    }

    fn copy(dst: Slot, src: Slot, width: Width) -> Operation {
        match width {
            Width::Pred => Operation::Pass { dst, src, negated: false },
            width => Operation::Bits { op: Bits::Copy, wide: width == Width::W64, dst, src: [src; 3] },
        }
    }
}

/// Operations that take so long that a call hardly matters.
const HEAVY: [&str; 12] = [
    "float::cos_approx",
    "float::cos_cycles",
    "float::div_approx",
    "float::ex2_approx",
    "float::lg2_approx",
    "float::rcp_approx",
    "float::rsqrt_approx",
    "float::sin_approx",
    "float::sin_cycles",
    "float::tanh_approx",
    "integer::div",
    "integer::rem",
];

/// A call of the vector handler of a pure operation.
fn call(
    form: &Form,
    function: &str,
    dst: [Option<Slot>; 2],
    src: &[Slot],
    width: impl Fn(Slot) -> Width,
    index: usize,
) -> Option<Operation> {
    let [Some(dst), None] = dst else { return None };
    let fits = |slot: &Slot| matches!(width(*slot), Width::W32 | Width::W64);
    let suits = HEAVY.contains(&function) && !form.carry.reads && !form.carry.writes;
    (suits && src.len() <= MOST_SOURCES && src.iter().all(fits)).then(|| Operation::Call {
        index,
        dst,
        src: src.to_vec(),
    })
}

fn access(
    address: &ir::Address,
    bytes: u32,
    count: usize,
    index: usize,
    width: impl Fn(Slot) -> Width,
) -> Option<Access> {
    let Base::Slot(base) = address.base else { return None };
    let suits = matches!(address.space, Space::Global | Space::Generic | Space::Shared | Space::Const);
    let wide = width(base) == Width::W64;
    let offset = i32::try_from(address.offset).ok()?;
    (suits && matches!(bytes, 4 | 8) && (wide || address.space == Space::Shared)).then_some(Access {
        index,
        base,
        offset: offset.into(),
        bytes,
        count: count as u32,
    })
}

impl Float {
    /// Native code has it for a single number, too.
    pub fn is_scalar(self, wide: bool) -> bool {
        !wide && !matches!(self, Float::Min | Float::Max)
    }
}

impl Bits {
    /// All NaNs are one to the operation, and its own are the host's.
    pub fn is_arithmetic(self) -> bool {
        matches!(self, Bits::AbsFloat | Bits::NegFloat)
    }

    fn is_unary(self) -> bool {
        use Bits::{AbsFloat, AbsSigned, Copy, FromSigned, FromUnsigned, Neg, NegFloat, Not};
        matches!(self, AbsFloat | AbsSigned | Copy | FromSigned | FromUnsigned | Neg | NegFloat | Not)
    }
}

/// `function`: of `sem`, as the row of the table names it.
fn pure(
    form: &Form,
    picks: &Picks,
    function: &str,
    dst: [Option<Slot>; 2],
    src: &[Slot],
) -> Option<Operation> {
    // What a modifier changes is not native yet, unless its operation below looks at it.
    let known = |&m: &Mod| {
        m.rounding().is_some()
            || m.cmp().is_some()
            || m.bool_op().is_some()
            || matches!(m, Mod::Lo | Mod::Wide)
            || m == Mod::Approx && function == "float::sqrt_approx"
    };
    if form.carry.reads || form.carry.writes || !picks.mods().iter().all(known) {
        return None;
    }
    let ty = picks.ty(0);
    let at = |i: usize| src.get(i).or(src.last()).copied();
    let all = [at(0)?, at(1)?, at(2)?];
    if let "compare::setp" = function {
        let ordering = ordering(ty)?;
        let wide = ty.bits() == 64;
        let with = match (picks.bool_op(), src.len()) {
            (None, 2) => None,
            (Some(op), 3) => Some((op, src[2])),
            _ => return None,
        };
        return Some(Operation::Compare {
            op: picks.cmp()?,
            wide,
            ordering,
            dst,
            src: [src[0], src[1]],
            with,
        });
    }
    let [Some(dst), None] = dst else { return None };
    if ty == Type::Pred {
        let op = match function {
            "logic::and" => BoolOp::And,
            "logic::or" => BoolOp::Or,
            "logic::xor" => BoolOp::Xor,
            "logic::not" => return Some(Operation::Pass { dst, src: src[0], negated: true }),
            _ => return None,
        };
        return Some(Operation::Logic { op, dst, src: [all[0], all[1]] });
    }
    if !matches!(ty.bits(), 32 | 64) || ty.lanes() != 1 {
        return None;
    }
    let wide = ty.bits() == 64;
    if function == "compare::selp" {
        return Some(Operation::Select { wide, dst, src: [all[0], all[1]], pred: all[2] });
    }
    if let Some(conversion) = conversion(function, ty, picks) {
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        return Some(Operation::Convert { conversion, rounding, dst, src: src[0] });
    }
    if matches!(ty, Type::F32 | Type::F64) {
        let op = match function {
            "float::add" => Float::Add,
            "float::sub" => Float::Sub,
            "float::mul" => Float::Mul,
            "float::fma" => Float::Fma,
            "float::div" => Float::Div,
            "float::rcp" => Float::Rcp,
            // Both round: the approximation is the nearest number here.
            "float::sqrt" => Float::Sqrt,
            "float::sqrt_approx" if !wide => Float::Sqrt,
            "float::min" => Float::Min,
            "float::max" => Float::Max,
            _ => {
                let op = match function {
                    "float::abs" => Bits::AbsFloat,
                    "float::neg" => Bits::NegFloat,
                    "convert::int_to_float" if wide || !rounds_to_nearest(picks) => return None,
                    "convert::int_to_float" if picks.ty(1) == Type::S32 => Bits::FromSigned,
                    "convert::int_to_float" if picks.ty(1) == Type::U32 => Bits::FromUnsigned,
                    _ => return None,
                };
                return Some(Operation::Bits { op, wide, dst, src: all });
            }
        };
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        // `add.f32.f16` has a second type.
        let plain = picks.types().len() == 1 && rounding != Rounding::NearestAway;
        return plain.then_some(Operation::Float { op, wide, rounding, dst, src: all });
    }
    if function == "convert::int_to_int" && !picks.has(Mod::Sat) {
        let signed = picks.ty(1).is_signed();
        return match (picks.ty(1).bits(), ty.bits()) {
            (32, 64) => Some(Operation::Widen { signed, dst, src: src[0] }),
            (64, 32) => Some(Operation::Narrow { dst, src: src[0] }),
            (32, 32) | (64, 64) => Some(Operation::Bits { op: Bits::Copy, wide, dst, src: all }),
            _ => None,
        };
    }
    if function == "convert::float_to_int" && picks.ty(1) == Type::F32 && !wide {
        let rounding = picks.rounding()?;
        return Some(Operation::ToInteger { signed: ty.is_signed(), rounding, dst, src: src[0] });
    }
    if picks.types().len() != 1 || ty.is_float() {
        return None;
    }
    let signed = ty.is_signed();
    let low = picks.has(Mod::Lo);
    if matches!(function, "integer::mul_wide" | "integer::mad_wide") {
        let addend = (function == "integer::mad_wide").then_some(all[2]);
        return (!wide).then_some(Operation::MulWide { signed, dst, src: [all[0], all[1]], addend });
    }
    let op = match function {
        "integer::add" => Bits::Add,
        "integer::sub" => Bits::Sub,
        "integer::mul" if low => Bits::Mul,
        "integer::mad" if low => Bits::Mad,
        "integer::min" if signed => Bits::MinSigned,
        "integer::min" => Bits::MinUnsigned,
        "integer::max" if signed => Bits::MaxSigned,
        "integer::max" => Bits::MaxUnsigned,
        "integer::neg" => Bits::Neg,
        "integer::abs" => Bits::AbsSigned,
        "logic::and" => Bits::And,
        "logic::or" => Bits::Or,
        "logic::xor" => Bits::Xor,
        "logic::not" => Bits::Not,
        "logic::shl" => Bits::Shl,
        "logic::shr" if signed => Bits::ShrSigned,
        "logic::shr" => Bits::ShrUnsigned,
        _ => return None,
    };
    Some(Operation::Bits { op, wide, dst, src: all })
}

/// `to`: the result's type.
fn conversion(function: &str, to: Type, picks: &Picks) -> Option<Conversion> {
    let from = *picks.types().get(1)?;
    Some(match (function, from, to) {
        ("convert::int_to_float", Type::S32, Type::F64) => Conversion::FromSigned,
        ("convert::int_to_float", Type::U32, Type::F64) => Conversion::FromUnsigned,
        ("convert::int_to_float", Type::S64, Type::F64) => Conversion::FromSigned64,
        ("convert::int_to_float", Type::U64, Type::F64) => Conversion::FromUnsigned64,
        ("convert::float_to_float", Type::F32, Type::F64) => Conversion::FromSingle,
        ("convert::float_to_float", Type::F64, Type::F32) => Conversion::ToSingle,
        ("convert::float_to_int", Type::F64, Type::S32) => Conversion::ToSigned,
        _ => return None,
    })
}

fn rounds_to_nearest(picks: &Picks) -> bool {
    picks.rounding() == Some(Rounding::NearestEven)
}

fn ordering(ty: Type) -> Option<Ordering> {
    match ty {
        _ if !matches!(ty.bits(), 32 | 64) || ty.lanes() != 1 => None,
        Type::F32 | Type::F64 => Some(Ordering::Float),
        _ if ty.is_float() => None,
        _ if ty.is_signed() => Some(Ordering::Signed),
        _ => Some(Ordering::Unsigned),
    }
}
