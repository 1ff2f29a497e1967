//! What HSETP2 computes. `sem` orders and converts the numbers; this module does the rest.
//!
//! `docs/sass.md` says where existing decoders disagree, what this module does, and what is unverified.

use std::cmp::Ordering;
use std::fmt;

use isa::Rounding;
use sem::compare::order_float;
use sem::convert::convert_float;
use sem::format::{BF16, F16, F32};
use sem::round::{Clamp, Mode};

use crate::arch::{Arch, Generation};
use crate::instruction::Instruction;
use crate::layout::{Field, Form};

/// The state of one thread that an instruction reads.
pub trait Thread {
    /// `Rn` for n below 255 (RZ is 0 without a call).
    fn register(&self, n: u8) -> u32;
    /// `URn`
    fn uniform(&self, n: u8) -> u32;
    /// `Pn` for n below 7 (PT is true without a call).
    fn predicate(&self, n: u8) -> bool;
    /// 32 bits at a byte address of a constant bank.
    fn constant(&self, bank: u16, address: u16) -> u32;
    /// The same in the bank that a uniform register selects.
    fn bound_constant(&self, uniform: u8, address: u16) -> u32;
}

/// The values for the destinations; a value for PT is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For the first destination.
    pub pu: bool,
    /// For the second.
    pub pv: bool,
}

/// Why an instruction cannot be executed: nvdisasm prints it, but its encoding has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaningless {
    /// `bop` is 3.
    BoolOp,
    /// The format is 1 or 3.
    Format,
    /// Swizzle 1 from Hopper on.
    Swizzle,
    /// `.BF16_V2` with `.FTZ`: an H100 faults.
    Flush,
}

impl fmt::Display for Meaningless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Meaningless::BoolOp => "Boolean operator 3 has no meaning",
            Meaningless::Format => "formats 1 and 3 have no meaning",
            Meaningless::Flush => ".BF16_V2 with .FTZ is an illegal instruction",
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
    Ok(Executable::new(instruction)?.run(thread))
}

/// An instruction with its fields decoded, ready to be executed many times.
#[derive(Clone, Copy, Debug)]
pub struct Executable {
    arch: Arch,
    /// Guard predicate, and whether it is negated.
    guard: (u8, bool),
    a: Source,
    b: Source,
    bf16: bool,
    ftz: bool,
    /// The comparison holds for these outcomes: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered. The encoding
    /// numbers comparisons in this way.
    outcomes: u16,
    horizontal: bool,
    /// AND, OR, XOR.
    bop: u16,
    /// The predicate operand, and whether it is negated.
    p: (u8, bool),
}

/// A source: where its 32 bits are, and how they are read.
#[derive(Clone, Copy, Debug)]
struct Source {
    value: Value,
    swizzle: u16,
    /// The sign bits that are cleared, and those that are then inverted.
    clear: u16,
    flip: u16,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Register(u8),
    Uniform(u8),
    Constant { bank: u16, address: u16 },
    BoundConstant { uniform: u8, address: u16 },
    Known(u32),
}

impl Executable {
    /// Decodes the fields.
    ///
    /// # Errors
    /// When the encoding has no meaning.
    pub fn new(instruction: &Instruction) -> Result<Executable, Meaningless> {
        let get = |field| instruction.get(field);
        let predicate = |field, not| (get(field) as u8, instruction.is(not));
        if get(Field::Bop) > 2 {
            return Err(Meaningless::BoolOp);
        }
        Ok(Executable {
            arch: instruction.arch(),
            guard: predicate(Field::Pg, Field::PgNot),
            a: Source::a(instruction)?,
            b: Source::b(instruction)?,
            bf16: match get(Field::Format) {
                0 => false,
                2 if instruction.is(Field::Ftz) => return Err(Meaningless::Flush),
                2 => true,
                _ => return Err(Meaningless::Format),
            },
            ftz: instruction.is(Field::Ftz),
            outcomes: get(Field::Cmp),
            horizontal: instruction.is(Field::HAnd),
            bop: get(Field::Bop),
            p: predicate(Field::Pp, Field::PpNot),
        })
    }

    /// Executes the instruction. `None` if its guard is false: the destinations keep their values.
    #[inline]
    pub fn run(&self, thread: &impl Thread) -> Option<Outcome> {
        if !predicate(self.guard, thread) {
            return None;
        }
        let (a, b) = (self.halves(&self.a, thread), self.halves(&self.b, thread));
        let (mut pu, mut pv) = (self.compare(a[0], b[0]), self.compare(a[1], b[1]));
        if self.horizontal {
            // The complement comes before the Boolean operator.
            (pu, pv) = (pu & pv, !(pu & pv));
        }
        let p = predicate(self.p, thread);
        let combine = |x: bool| match self.bop {
            0 => x & p,
            1 => x | p,
            _ => x ^ p,
        };
        Some(Outcome { pu: combine(pu), pv: combine(pv) })
    }

    #[inline]
    fn compare(&self, a: u16, b: u16) -> bool {
        let order = match self.bf16 {
            false => order_float(&F16, self.ftz, a.into(), b.into()),
            true => order_float(&BF16, self.ftz, a.into(), b.into()),
        };
        let outcome = match order {
            Some(Ordering::Less) => 0,
            Some(Ordering::Equal) => 1,
            Some(Ordering::Greater) => 2,
            None => 3,
        };
        self.outcomes >> outcome & 1 != 0
    }

    /// The two halves of a source, low first: swizzled, then `| |`, then `-`.
    #[inline]
    fn halves(&self, source: &Source, thread: &impl Thread) -> [u16; 2] {
        let value = match source.value {
            Value::Register(n) => thread.register(n),
            Value::Uniform(n) => thread.uniform(n),
            Value::Constant { bank, address } => thread.constant(bank, address),
            Value::BoundConstant { uniform, address } => thread.bound_constant(uniform, address),
            Value::Known(value) => value,
        };
        let (low, high) = (value as u16, (value >> 16) as u16);
        let pair = match source.swizzle {
            0 => [low, high],
            1 => [truncate(self.arch, self.bf16, value); 2],
            2 => [low; 2],
            _ => [high; 2],
        };
        pair.map(|half| half & !source.clear ^ source.flip)
    }
}

/// The predicate with this number, possibly negated; 7 is true.
#[inline]
fn predicate((number, not): (u8, bool), thread: &impl Thread) -> bool {
    (number == 7 || thread.predicate(number)) != not
}

impl Source {
    fn new(
        instruction: &Instruction,
        value: Value,
        swizzle: u16,
        neg: Field,
        abs: Field,
    ) -> Result<Source, Meaningless> {
        if swizzle == 1 && instruction.arch().generation() >= Generation::Hopper {
            return Err(Meaningless::Swizzle);
        }
        let sign = |field| if instruction.is(field) { 0x8000 } else { 0 };
        Ok(Source { value, swizzle, clear: sign(abs), flip: sign(neg) })
    }

    fn a(instruction: &Instruction) -> Result<Source, Meaningless> {
        let value = register(instruction.get(Field::Ra));
        Source::new(instruction, value, instruction.get(Field::ASwizzle), Field::ANeg, Field::AAbs)
    }

    fn b(instruction: &Instruction) -> Result<Source, Meaningless> {
        let get = |field| instruction.get(field);
        let generation = instruction.arch().generation();
        let last = if generation >= Generation::Blackwell { 255 } else { 63 };
        let address = get(Field::Address);
        let (value, swizzle) = match instruction.form() {
            Form::Register => (register(get(Field::Rb)), get(Field::BSwizzle)),
            Form::Immediate => (Value::Known(u32::from(get(Field::H1)) << 16 | u32::from(get(Field::H0))), 0),
            // Maxwell encodes no swizzle for constants: they are FP32.
            Form::Constant if generation == Generation::Maxwell => {
                (Value::Constant { bank: get(Field::Bank), address }, 1)
            }
            Form::Constant => (Value::Constant { bank: get(Field::Bank), address }, get(Field::BSwizzle)),
            Form::BoundConstant => {
                (Value::BoundConstant { uniform: get(Field::Ur) as u8, address }, get(Field::BSwizzle))
            }
            Form::Uniform if get(Field::Ur) == last => (Value::Known(0), get(Field::BSwizzle)),
            Form::Uniform => (Value::Uniform(get(Field::Ur) as u8), get(Field::BSwizzle)),
        };
        Source::new(instruction, value, swizzle, Field::BNeg, Field::BAbs)
    }
}

/// A register; RZ is 0.
fn register(n: u16) -> Value {
    if n == 255 { Value::Known(0) } else { Value::Register(n as u8) }
}

/// `.F32`: converts to FP16 toward zero, with the target's treatment of denormal results.
fn truncate(arch: Arch, bf16: bool, value: u32) -> u16 {
    let format = if bf16 { &BF16 } else { &F16 };
    let mode = Mode { rounding: Rounding::TowardZero, ftz: false, clamp: Clamp::None };
    let half = convert_float(&F32, format, mode, value.into());
    (if arch.truncation_flushes() && !format.is_nan(half) { format.flush(half) } else { half }) as u16
}
