//! The HSETP2 for a PTX `setp` on halves; `tests/lowering.rs` compares it with ptxas.

use std::fmt;

use isa::{BoolOp, CmpOp, Mod, Picks, Type};
use sem::convert::convert_float;
use sem::format::{F16, F32};
use sem::round::Mode;

use crate::arch::{Arch, Generation};
use crate::instruction::Instruction;
use crate::layout::{Field, Form};

/// How a source got its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Computed in a register.
    Register,
    /// A `mov` of these bits (PTX does not allow literals as sources of `setp` on halves).
    Literal(u32),
    /// `ld.param` of a parameter in a constant bank.
    Parameter {
        /// The bank: 0.
        bank: u16,
        /// The byte address in the bank.
        address: u16,
    },
}

/// A source of a `setp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The origin of its value.
    pub origin: Origin,
    /// The register (before sm_90, or for a pair) or uniform register that holds it, where one is needed.
    pub register: u8,
    /// Whether the value is a binary32 that `cvt.rz.f16.f32` converts to the source.
    pub converted: bool,
}

impl Source {
    /// A source in a register.
    pub const fn register(register: u8) -> Source {
        Source { origin: Origin::Register, register, converted: false }
    }
}

/// The registers of a lowered `setp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// p, and q if the instruction has it.
    pub destinations: (u8, Option<u8>),
    /// a and b.
    pub sources: (Source, Source),
    /// The predicate c and whether it is negated.
    pub c: Option<(u8, bool)>,
}

/// The result of lowering a `setp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The instruction.
    pub instruction: Instruction,
    /// Whether the first destination receives the complement of p.
    pub inverted: bool,
    /// The FP32 that ptxas puts into constant memory for a literal that does not fit an immediate.
    pub constant: Option<u32>,
}

impl Lowered {
    /// The instruction that computes p itself, not its complement. ptxas emits it only where it folds an operation on
    /// p into the comparison.
    pub fn as_written(self) -> Instruction {
        let cmp = self.instruction.get(Field::Cmp);
        self.instruction.with(Field::Cmp, if self.inverted { complement(cmp) } else { cmp })
    }
}

/// Why a `setp` is not lowered to HSETP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLowered {
    /// It is not a comparison of halves, or the target has no comparison of such halves.
    Target(Arch),
    /// ptxas folds it, because both sources are literals, or one is a NaN.
    Folded,
    /// HSETP2 contains only the conversion to FP16, only from sm_60 to sm_75, and only of one source that is not a
    /// literal.
    Conversion,
}

impl fmt::Display for NotLowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotLowered::Target(arch) => write!(f, "{arch} has no HSETP2 for this"),
            NotLowered::Folded => f.write_str("ptxas computes this itself and leaves no instruction"),
            NotLowered::Conversion => {
                f.write_str("ptxas makes `.F32` of one converted source, in f16 compares for sm_60 to sm_75")
            }
        }
    }
}

impl std::error::Error for NotLowered {}

/// The complement of a comparison. A comparison is a set of outcomes: bit 0 less, bit 1 equal, bit 2 greater, bit 3
/// unordered.
const fn complement(cmp: u16) -> u16 {
    15 - cmp
}

/// The comparison with its sources swapped.
const fn mirrored(cmp: u16) -> u16 {
    cmp & 0b1010 | (cmp & 1) << 2 | cmp >> 2 & 1
}

/// The HSETP2 that ptxas emits for a `setp` with these modifiers whose results are guards, or operands of `selp`.
///
/// ptxas uses only one of a comparison of scalars and its complement: it inverts EQ, LT, LE, their unordered variants
/// and NUM, and the consumers read `!p`. It does not invert where a Boolean operator follows. It swaps the sources
/// and mirrors the comparison if only the second source can have the first one's kind.
///
/// # Errors
/// When it is not a comparison of halves, the target has none, or ptxas emits no HSETP2 for these sources.
pub fn lower(arch: Arch, picks: &Picks, operands: &Operands) -> Result<Lowered, NotLowered> {
    let ty = picks.ty(0);
    let bf16 = match ty {
        Type::F16 | Type::F16x2 => false,
        Type::Bf16 | Type::Bf16x2 if arch.generation() >= Generation::Hopper => true,
        _ => return Err(NotLowered::Target(arch)),
    };
    let cmp = picks.cmp().and_then(encoding).filter(|_| arch.number() >= 53);
    let mut cmp = cmp.ok_or(NotLowered::Target(arch))?;
    let (p, q) = operands.destinations;
    // If only one lane counts, it is read twice.
    let both = ty.lanes() == 2 && q.is_some();
    let chosen = ty.lanes() == 1 && picks.bool_op().is_none();
    let (a, b) = operands.sources;
    check_sources(arch, ty, a, b)?;
    let place = |source| Place::of(arch, source, both, ty.lanes() == 1);
    let (mut first, mut second) = (place(a), place(b));
    let mut turn = |cmp: &mut u16| {
        std::mem::swap(&mut first, &mut second);
        *cmp = mirrored(*cmp);
    };
    let only_second = !matches!(place(a), Place::Register { .. });
    let early = match a.origin {
        Origin::Register => false,
        Origin::Literal(bits) => chosen || !Literal::new(bits, both).is_register(),
        Origin::Parameter { .. } => !a.converted && (only_second || chosen),
    };
    if early {
        turn(&mut cmp);
    }
    let inverted = chosen && matches!(cmp, 1 | 2 | 3 | 7 | 9 | 10 | 11);
    if inverted {
        cmp = complement(cmp);
    }
    if !early && only_second {
        turn(&mut cmp);
    }
    let bop = match picks.bool_op() {
        None | Some(BoolOp::And) => 0,
        Some(BoolOp::Or) => 1,
        Some(BoolOp::Xor) => 2,
    };
    let (c, not) = operands.c.unwrap_or((7, false));
    let silent = arch.word_bits() == 128;
    let instruction = Instruction::new(arch, second.form())
        .with(Field::Cmp, cmp)
        .with(Field::Ftz, picks.has(Mod::Ftz).into())
        .with(Field::Bop, bop)
        .with(Field::Format, if bf16 { 2 } else { 0 })
        .with(Field::Pu, p.into())
        .with(Field::Pv, q.unwrap_or(7).into())
        .with(Field::Pp, c.into())
        .with(Field::PpNot, not.into())
        .with(Field::Sched, silent.into());
    let constant = if let Place::Made(bits) = second { Some(bits) } else { None };
    Ok(Lowered { instruction: second.write_b(first.write_a(instruction)), inverted, constant })
}

const fn encoding(cmp: CmpOp) -> Option<u16> {
    Some(match cmp {
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
    })
}

/// Checks that ptxas's treatment of these sources is known.
fn check_sources(arch: Arch, ty: Type, a: Source, b: Source) -> Result<(), NotLowered> {
    let literal = |source: Source| match source.origin {
        Origin::Literal(bits) => Some(bits),
        _ => None,
    };
    let nan = |bits: u32| {
        let magnitude = if matches!(ty, Type::F16 | Type::F16x2) { 0x7c00 } else { 0x7f80 };
        (0..ty.lanes()).any(|lane| bits >> (16 * lane) & 0x7fff > magnitude)
    };
    let constant = |source: Source| source.origin != Origin::Register;
    if constant(a) && constant(b) || [a, b].into_iter().filter_map(literal).any(nan) {
        return Err(NotLowered::Folded);
    }
    let converting = ty == Type::F16 && (60..=75).contains(&arch.number());
    let converted = [a, b].into_iter().filter(|source| source.converted);
    match converted.clone().count() {
        0 => Ok(()),
        1 if converting && !converted.into_iter().any(|source| literal(source).is_some()) => Ok(()),
        _ => Err(NotLowered::Conversion),
    }
}

/// The halves of a literal that are read.
#[derive(Clone, Copy)]
struct Literal {
    low: u16,
    high: u16,
}

impl Literal {
    /// `both` says that both lanes of a pair are read.
    fn new(bits: u32, both: bool) -> Literal {
        let low = bits as u16;
        Literal { low, high: if both { (bits >> 16) as u16 } else { low } }
    }

    /// Zeros of one sign: RZ represents them.
    fn is_zero(self) -> bool {
        self.low == self.high && self.low & 0x7fff == 0
    }

    /// Whether ptxas chooses a register from the start, rather than for lack of another place: for zeros, and for
    /// literals with a negative zero.
    fn is_register(self) -> bool {
        self.is_zero() || self.low == 0x8000 || self.high == 0x8000
    }
}

/// Where ptxas places a source, and how it reads it.
#[derive(Clone, Copy)]
enum Place {
    Register {
        number: u8,
        neg: bool,
        swizzle: u16,
    },
    Uniform {
        number: u8,
    },
    Constant {
        bank: u16,
        address: u16,
        swizzle: u16,
    },
    /// An FP32 among the constants that ptxas emits for the kernel.
    Made(u32),
    Immediate {
        low: u16,
        high: u16,
    },
}

/// Swizzles.
const BOTH: u16 = 0;
const SINGLE: u16 = 1;
const LOW: u16 = 2;

impl Place {
    /// `both` says that both lanes of a pair are read.
    fn of(arch: Arch, source: Source, both: bool, scalar: bool) -> Place {
        let number = source.register;
        let swizzle = match (source.converted, both) {
            (true, _) => SINGLE,
            (false, true) => BOTH,
            (false, false) => LOW,
        };
        let register = Place::Register { number, neg: false, swizzle };
        match (source.origin, arch.generation()) {
            (Origin::Register, _) => register,
            (Origin::Literal(bits), _) => Place::of_literal(arch, Literal::new(bits, both), number, scalar),
            // Maxwell's constants are FP32.
            (Origin::Parameter { .. }, Generation::Maxwell) if !source.converted => register,
            (Origin::Parameter { .. }, Generation::Hopper | Generation::Blackwell) if both => register,
            (Origin::Parameter { .. }, Generation::Hopper | Generation::Blackwell) => {
                Place::Uniform { number }
            }
            (Origin::Parameter { bank, address }, _) => Place::Constant { bank, address, swizzle },
        }
    }

    fn of_literal(arch: Arch, literal: Literal, number: u8, scalar: bool) -> Place {
        let Literal { low, high } = literal;
        let neg = low & 0x8000 != 0;
        if literal.is_zero() {
            // The sign of a scalar zero is irrelevant.
            return Place::Register { number: 255, neg: neg && !scalar, swizzle: LOW };
        }
        let register = Place::Register { number, neg: false, swizzle: BOTH };
        if literal.is_register() {
            return register;
        }
        if arch.generation() != Generation::Maxwell || (low | high) & 0x3f == 0 {
            return Place::Immediate { low, high };
        }
        let denormal = low & 0x7c00 == 0;
        match low == high {
            true if denormal && arch.truncation_flushes() => Place::Register { number, neg, swizzle: LOW },
            true => Place::Made(convert_float(&F16, &F32, Mode::NEAREST, low.into()) as u32),
            false => register,
        }
    }

    fn form(self) -> Form {
        match self {
            Place::Register { .. } => Form::Register,
            Place::Uniform { .. } => Form::Uniform,
            Place::Constant { .. } | Place::Made(_) => Form::Constant,
            Place::Immediate { .. } => Form::Immediate,
        }
    }

    /// Sets the first source, which must be a register.
    fn write_a(self, instruction: Instruction) -> Instruction {
        let Place::Register { number, neg, swizzle } = self else { return instruction };
        instruction
            .with(Field::Ra, number.into())
            .with(Field::ANeg, neg.into())
            .with(Field::ASwizzle, swizzle)
    }

    fn write_b(self, instruction: Instruction) -> Instruction {
        match self {
            Place::Register { number, neg, swizzle } => instruction
                .with(Field::Rb, number.into())
                .with(Field::BNeg, neg.into())
                .with(Field::BSwizzle, swizzle),
            Place::Uniform { number } => {
                instruction.with(Field::Ur, number.into()).with(Field::BSwizzle, LOW)
            }
            Place::Constant { bank, address, swizzle } => {
                let encoded = instruction.has(Field::BSwizzle);
                let swizzle = if encoded { swizzle } else { 0 };
                let instruction = instruction.with(Field::BSwizzle, swizzle);
                instruction.with(Field::Bank, bank).with(Field::Address, address)
            }
            // The first constant; ptxas may have others before it.
            Place::Made(_) => instruction.with(Field::Bank, 2),
            Place::Immediate { low, high } => instruction.with(Field::H0, low).with(Field::H1, high),
        }
    }
}
