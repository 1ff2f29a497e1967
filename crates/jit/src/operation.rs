//! The operations that native code has, and how lowered operations become them.
//!
//! The interpreter runs loops with any other operation.

use ir::{OpKind, SimpleOp, Slot, Width};
use isa::{BoolOp, CmpOp, Form, Mod, Picks, Rounding, Type};

/// An arithmetic operation of f32. The host computes it as PTX does, but for the bits of NaNs.
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

/// An operation on the bits of 32-bit values.
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
    /// Shifts by 32 or more shift out every bit.
    Shl,
    ShrSigned,
    ShrUnsigned,
    /// `0 - a`.
    Neg,
    AbsSigned,
    /// Clears the sign bit of f32. Of a NaN it makes PTX's.
    AbsFloat,
    /// Changes the sign bit of f32. Of a NaN it makes PTX's.
    NegFloat,
    /// An integer as f32, rounded to nearest.
    FromSigned,
    FromUnsigned,
    Copy,
}

/// How values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordering {
    Signed,
    Unsigned,
    Float,
}

/// An operation on 16 lanes. Slots of 4 bytes, and predicates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Float {
        op: Float,
        rounding: Rounding,
        dst: Slot,
        src: [Slot; 3],
    },
    Bits {
        op: Bits,
        dst: Slot,
        src: [Slot; 3],
    },
    Compare {
        op: CmpOp,
        ordering: Ordering,
        dst: [Option<Slot>; 2],
        src: [Slot; 2],
        with: Option<(BoolOp, Slot)>,
    },
    Select {
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
            Operation::Compare { src, with, .. } => src.iter().copied().chain(with.map(|(_, c)| c)).collect(),
            Operation::Select { src: [a, b], pred, .. } => vec![*a, *b, *pred],
            Operation::Logic { src, .. } => src.to_vec(),
            Operation::Pass { src, .. } => vec![*src],
        }
    }

    /// The slots that the operation writes.
    pub fn defs(&self) -> Vec<Slot> {
        match self {
            Operation::Compare { dst, .. } => dst.iter().flatten().copied().collect(),
            Operation::Float { dst, .. }
            | Operation::Bits { dst, .. }
            | Operation::Select { dst, .. }
            | Operation::Logic { dst, .. }
            | Operation::Pass { dst, .. } => vec![*dst],
        }
    }

    /// Whether the operation sees which NaN a source is.
    pub fn sees_bits(&self) -> bool {
        matches!(self, Operation::Bits { op, .. } if !op.is_arithmetic())
            || matches!(self, Operation::Select { .. })
            || matches!(self, Operation::Compare { ordering, .. } if *ordering != Ordering::Float)
    }

    /// The operation for a lowered one, if there is one. `width`: of a slot.
    pub fn of(op: &ir::Op, width: impl Fn(Slot) -> Width) -> Option<Operation> {
        if op.guard.is_some() {
            return None;
        }
        let made = match &op.kind {
            OpKind::Pure { form, picks, function, dst, src } => pure(form, picks, function, *dst, src)?,
            OpKind::Simple(SimpleOp::Copy { dst, src }) if width(*dst) == Width::Pred => {
                Operation::Pass { dst: *dst, src: *src, negated: false }
            }
            OpKind::Simple(SimpleOp::Copy { dst, src }) => {
                Operation::Bits { op: Bits::Copy, dst: *dst, src: [*src; 3] }
            }
            OpKind::Simple(SimpleOp::Not { dst, src }) => {
                Operation::Pass { dst: *dst, src: *src, negated: true }
            }
            _ => return None,
        };
        let fits = |slot: Slot| matches!(width(slot), Width::W32 | Width::Pred);
        made.uses().into_iter().chain(made.defs()).all(fits).then_some(made)
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
            || matches!(m, Mod::Lo)
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
        let with = match (picks.bool_op(), src.len()) {
            (None, 2) => None,
            (Some(op), 3) => Some((op, src[2])),
            _ => return None,
        };
        return Some(Operation::Compare { op: picks.cmp()?, ordering, dst, src: [src[0], src[1]], with });
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
    if ty.bits() != 32 || ty.lanes() != 1 {
        return None;
    }
    if function == "compare::selp" {
        return Some(Operation::Select { dst, src: [all[0], all[1]], pred: all[2] });
    }
    if ty == Type::F32 {
        let op = match function {
            "float::add" => Float::Add,
            "float::sub" => Float::Sub,
            "float::mul" => Float::Mul,
            "float::fma" => Float::Fma,
            "float::div" => Float::Div,
            "float::rcp" => Float::Rcp,
            // Both round: the approximation is the nearest number here.
            "float::sqrt" | "float::sqrt_approx" => Float::Sqrt,
            "float::min" => Float::Min,
            "float::max" => Float::Max,
            _ => {
                let op = match function {
                    "float::abs" => Bits::AbsFloat,
                    "float::neg" => Bits::NegFloat,
                    "convert::cvt" if picks.ty(1) == Type::S32 && rounds_to_nearest(picks) => {
                        Bits::FromSigned
                    }
                    "convert::cvt" if picks.ty(1) == Type::U32 && rounds_to_nearest(picks) => {
                        Bits::FromUnsigned
                    }
                    _ => return None,
                };
                return Some(Operation::Bits { op, dst, src: all });
            }
        };
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        // `add.f32.f16` has a second type.
        let plain = picks.types().len() == 1 && rounding != Rounding::NearestAway;
        return plain.then_some(Operation::Float { op, rounding, dst, src: all });
    }
    if picks.types().len() != 1 || ty.is_float() {
        return None;
    }
    let signed = ty.is_signed();
    let low = picks.has(Mod::Lo);
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
    Some(Operation::Bits { op, dst, src: all })
}

fn rounds_to_nearest(picks: &Picks) -> bool {
    picks.rounding() == Some(Rounding::NearestEven)
}

fn ordering(ty: Type) -> Option<Ordering> {
    match ty {
        _ if ty.bits() != 32 || ty.lanes() != 1 => None,
        Type::F32 => Some(Ordering::Float),
        _ if ty.is_float() => None,
        _ if ty.is_signed() => Some(Ordering::Signed),
        _ => Some(Ordering::Unsigned),
    }
}
