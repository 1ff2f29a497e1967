//! What HSETP2 computes. Comparison and conversion are those of `sem`; this is what stands around them.
//!
//! `docs/sass.md` says where decoders in the wild disagree, what is done here, and what is unverified.

use std::fmt;

use isa::{CmpOp, Rounding};
use sem::compare::{holds, order_float};
use sem::convert::convert_float;
use sem::format::{BF16, F16, F32, Format};
use sem::round::{Clamp, Mode};

use crate::arch::{Arch, Generation};
use crate::instruction::Instruction;
use crate::layout::{Field, Form};

/// What an instruction reads: the state of one thread.
pub trait Thread {
    /// `Rn`, below 255 (RZ reads 0 without asking).
    fn register(&self, n: u8) -> u32;
    /// `URn`
    fn uniform(&self, n: u8) -> u32;
    /// `Pn`, below 7 (PT is true without asking).
    fn predicate(&self, n: u8) -> bool;
    /// 32 bits at a byte address of a constant bank.
    fn constant(&self, bank: u16, address: u16) -> u32;
    /// The same in the bank that a uniform register names.
    fn bound_constant(&self, uniform: u8, address: u16) -> u32;
}

/// The values for the destinations; what goes to PT is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For the first destination.
    pub pu: bool,
    /// For the second.
    pub pv: bool,
}

/// Why an instruction cannot be executed: nvdisasm prints it, but it has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaningless {
    /// `bop` is 3.
    BoolOp,
    /// The format is 1 or 3.
    Format,
    /// Swizzle 1 from Hopper on.
    Swizzle,
}

impl fmt::Display for Meaningless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Meaningless::BoolOp => "Boolean operator 3 has no meaning",
            Meaningless::Format => "formats 1 and 3 have no meaning",
            Meaningless::Swizzle => "swizzle 1 has no meaning on this target: .F32 ends with sm_89",
        })
    }
}

impl std::error::Error for Meaningless {}

/// Executes an instruction. `None` if its guard is false: the destinations keep their values.
///
/// # Errors
/// When the encoding has no meaning.
pub fn execute(instruction: &Instruction, thread: &impl Thread) -> Result<Option<Outcome>, Meaningless> {
    let format = match instruction.get(Field::Format) {
        0 => &F16,
        2 => &BF16,
        _ => return Err(Meaningless::Format),
    };
    let combine: fn(bool, bool) -> bool = match instruction.get(Field::Bop) {
        0 => |a, b| a & b,
        1 => |a, b| a | b,
        2 => |a, b| a ^ b,
        _ => return Err(Meaningless::BoolOp),
    };
    let a = halves(instruction, format, thread, true)?;
    let b = halves(instruction, format, thread, false)?;
    if !predicate(instruction, thread, Field::Pg, Field::PgNot) {
        return Ok(None);
    }
    let compare = |lane: usize| compare(instruction, format, a[lane], b[lane]);
    let (mut pu, mut pv) = (compare(0), compare(1));
    if instruction.is(Field::HAnd) {
        // The complement is taken before the Boolean operator.
        (pu, pv) = (pu & pv, !(pu & pv));
    }
    let p = predicate(instruction, thread, Field::Pp, Field::PpNot);
    Ok(Some(Outcome { pu: combine(pu, p), pv: combine(pv, p) }))
}

fn predicate(instruction: &Instruction, thread: &impl Thread, field: Field, not: Field) -> bool {
    let value = match instruction.get(field) {
        7 => true,
        n => thread.predicate(n as u8),
    };
    value != instruction.is(not)
}

fn compare(instruction: &Instruction, format: &Format, a: u16, b: u16) -> bool {
    let op = match instruction.get(Field::Cmp) {
        1 => CmpOp::Lt,
        2 => CmpOp::Eq,
        3 => CmpOp::Le,
        4 => CmpOp::Gt,
        5 => CmpOp::Ne,
        6 => CmpOp::Ge,
        7 => CmpOp::Num,
        8 => CmpOp::Nan,
        9 => CmpOp::Ltu,
        10 => CmpOp::Equ,
        11 => CmpOp::Leu,
        12 => CmpOp::Gtu,
        13 => CmpOp::Neu,
        14 => CmpOp::Geu,
        constant => return constant != 0,
    };
    holds(op, order_float(format, instruction.is(Field::Ftz), a.into(), b.into()))
}

/// The two halves of a source, low first: swizzled, then `| |`, then `-`.
fn halves(
    instruction: &Instruction,
    format: &'static Format,
    thread: &impl Thread,
    first: bool,
) -> Result<[u16; 2], Meaningless> {
    let register = |n: u16| if n == 255 { 0 } else { thread.register(n as u8) };
    let arch = instruction.arch();
    let maxwell = arch.generation() == Generation::Maxwell;
    let (address, ur) = (instruction.get(Field::Address), instruction.get(Field::Ur));
    let last = if arch.generation() >= Generation::Blackwell { 255 } else { 63 };
    let mut swizzle = instruction.get(if first { Field::ASwizzle } else { Field::BSwizzle });
    let value = match instruction.form() {
        _ if first => register(instruction.get(Field::Ra)),
        Form::Register => register(instruction.get(Field::Rb)),
        Form::Immediate => return Ok([instruction.get(Field::H0), instruction.get(Field::H1)]),
        Form::Constant => {
            if maxwell {
                swizzle = 1;
            }
            thread.constant(instruction.get(Field::Bank), address)
        }
        Form::BoundConstant => thread.bound_constant(ur as u8, address),
        Form::Uniform if ur == last => 0,
        Form::Uniform => thread.uniform(ur as u8),
    };
    let (low, high) = (value as u16, (value >> 16) as u16);
    let pair = match swizzle {
        0 => [low, high],
        1 if arch.generation() >= Generation::Hopper => return Err(Meaningless::Swizzle),
        1 => [truncate(arch, format, value); 2],
        2 => [low; 2],
        _ => [high; 2],
    };
    let (neg, abs) = if first { (Field::ANeg, Field::AAbs) } else { (Field::BNeg, Field::BAbs) };
    let clear = if instruction.is(abs) { 0x8000 } else { 0 };
    let flip = if instruction.is(neg) { 0x8000 } else { 0 };
    Ok(pair.map(|half| half & !clear ^ flip))
}

/// `.F32`: to FP16 toward zero, with the target's treatment of the denormals that this makes.
fn truncate(arch: Arch, format: &Format, value: u32) -> u16 {
    let mode = Mode { rounding: Rounding::TowardZero, ftz: false, clamp: Clamp::None };
    let half = convert_float(&F32, format, mode, value.into());
    (if arch.truncation_flushes() && !format.is_nan(half) { format.flush(half) } else { half }) as u16
}
