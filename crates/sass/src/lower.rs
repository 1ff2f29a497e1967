//! Which HSETP2 a PTX `setp` on halves becomes: held against ptxas by `tests/lowering.rs`.

use isa::{BoolOp, CmpOp, Mod, Picks, Type};

use crate::arch::{Arch, Generation};
use crate::instruction::Instruction;
use crate::layout::{Field, Form};

/// The registers of a lowered `setp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// p, and q if it is there.
    pub destinations: (u8, Option<u8>),
    /// Registers of a and b.
    pub sources: (u8, u8),
    /// The predicate c and whether it is negated.
    pub c: Option<(u8, bool)>,
}

/// What a `setp` becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The instruction.
    pub instruction: Instruction,
    /// Whether its first destination gets the complement of p.
    pub inverted: bool,
}

impl Lowered {
    /// The instruction that gives p as PTX has it. ptxas emits it only where an operation on p is folded into the compare.
    pub fn as_written(self) -> Instruction {
        let cmp = self.instruction.get(Field::Cmp);
        self.instruction.with(Field::Cmp, if self.inverted { complement(cmp) } else { cmp })
    }
}

/// The comparison that holds where this one does not: F and T, LT and GEU, NUM and NAN.
const fn complement(cmp: u16) -> u16 {
    15 - cmp
}

/// The HSETP2 that ptxas emits for a `setp` with these modifiers whose results are guards, or operands of `selp`.
///
/// Of a comparison of scalars and its complement ptxas has only one: EQ, LT, LE, their unordered kin and NUM are inverted, and
/// the consumers see `!p`. It leaves them alone where a Boolean operator follows.
///
/// `None` if it is no comparison of halves, or the target has none.
pub fn lower(arch: Arch, picks: &Picks, operands: &Operands) -> Option<Lowered> {
    let ty = picks.ty(0);
    let bf16 = match ty {
        Type::F16 | Type::F16x2 => false,
        Type::Bf16 | Type::Bf16x2 if arch.generation() >= Generation::Hopper => true,
        _ => return None,
    };
    if arch.number() < 53 {
        return None;
    }
    let cmp = match picks.cmp()? {
        CmpOp::Lt => 1,
        CmpOp::Eq => 2,
        CmpOp::Le => 3,
        CmpOp::Gt => 4,
        CmpOp::Ne => 5,
        CmpOp::Ge => 6,
        CmpOp::Num => 7,
        CmpOp::Nan => 8,
        CmpOp::Ltu => 9,
        CmpOp::Equ => 10,
        CmpOp::Leu => 11,
        CmpOp::Gtu => 12,
        CmpOp::Neu => 13,
        CmpOp::Geu => 14,
        CmpOp::Lo | CmpOp::Ls | CmpOp::Hi | CmpOp::Hs => return None,
    };
    let (p, q) = operands.destinations;
    // Where only one lane counts, it is read twice.
    let swizzle = if ty.lanes() == 2 && q.is_some() { 0 } else { 2 };
    let inverted = ty.lanes() == 1 && picks.bool_op().is_none() && matches!(cmp, 1 | 2 | 3 | 7 | 9 | 10 | 11);
    let cmp = if inverted { complement(cmp) } else { cmp };
    let bop = match picks.bool_op() {
        None | Some(BoolOp::And) => 0,
        Some(BoolOp::Or) => 1,
        Some(BoolOp::Xor) => 2,
    };
    let (c, not) = operands.c.unwrap_or((7, false));
    let silent = arch.word_bits() == 128;
    let instruction = Instruction::new(arch, Form::Register)
        .with(Field::Cmp, cmp)
        .with(Field::Ftz, picks.has(Mod::Ftz).into())
        .with(Field::Bop, bop)
        .with(Field::Format, if bf16 { 2 } else { 0 })
        .with(Field::Pu, p.into())
        .with(Field::Pv, q.unwrap_or(7).into())
        .with(Field::Ra, operands.sources.0.into())
        .with(Field::ASwizzle, swizzle)
        .with(Field::Rb, operands.sources.1.into())
        .with(Field::BSwizzle, swizzle)
        .with(Field::Pp, c.into())
        .with(Field::PpNot, not.into())
        .with(Field::Sched, silent.into());
    Some(Lowered { instruction, inverted })
}
