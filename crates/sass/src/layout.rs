//! The position of every field of HSETP2: one table of forms by generations.
//!
//! Decoding, encoding, range checks of values, the report of ignored bits and the features of a generation all use
//! this table.

use crate::arch::{Arch, Generation};

/// The kind of the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A register.
    Register,
    /// Two FP16 (or BF16) numbers.
    Immediate,
    /// `c[bank][address]`
    Constant,
    /// `cx[UR][address]`
    BoundConstant,
    /// A uniform register.
    Uniform,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] =
        [Form::Register, Form::Immediate, Form::Constant, Form::BoundConstant, Form::Uniform];

    /// The name of the operand, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Register => "register",
            Form::Immediate => "immediate",
            Form::Constant => "constant",
            Form::BoundConstant => "bound constant",
            Form::Uniform => "uniform register",
        }
    }
}

/// A field of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Guard predicate; 7 is PT.
    Pg,
    /// `@!`
    PgNot,
    /// Comparison, 0 to 15 in the order F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T.
    Cmp,
    /// `.H_AND`
    HAnd,
    /// `.FTZ`
    Ftz,
    /// 0 AND, 1 OR, 2 XOR; 3 is invalid.
    Bop,
    /// 0 FP16, 2 BF16_V2; 1 and 3 are invalid.
    Format,
    /// First destination.
    Pu,
    /// Second destination.
    Pv,
    /// First source register; 255 is RZ.
    Ra,
    /// Its `-`
    ANeg,
    /// Its `| |`
    AAbs,
    /// 0 H1_H0, 1 F32, 2 H0_H0, 3 H1_H1
    ASwizzle,
    /// Second source register.
    Rb,
    /// Second source as uniform register, or that of `cx[UR]`.
    Ur,
    /// `-` of the second source.
    BNeg,
    /// `| |` of the second source.
    BAbs,
    /// Swizzle of the second source.
    BSwizzle,
    /// Constant bank.
    Bank,
    /// Constant address in bytes.
    Address,
    /// Bits of the low half of an immediate.
    H0,
    /// Bits of its high half.
    H1,
    /// Predicate source.
    Pp,
    /// Its `!`
    PpNot,
    /// Stall count and yield: `?trans1`
    Sched,
    /// Barrier that the result sets; 7 is none.
    WriteBarrier,
    /// Barrier that reading the sources sets; 7 is none.
    ReadBarrier,
    /// Barriers to wait for.
    Wait,
    /// Operands to keep in the reuse cache; with a stall that ends a group, a batch position.
    Reuse,
    /// Performance monitor.
    Monitor,
}

impl Field {
    pub(crate) const COUNT: usize = Field::Monitor as usize + 1;

    /// The value of a field that a word lacks, and of one that text omits.
    pub(crate) const fn default(self) -> u16 {
        match self {
            Field::Pg | Field::Pu | Field::Pv | Field::Pp | Field::WriteBarrier | Field::ReadBarrier => 7,
            _ => 0,
        }
    }
}

/// Bits `low..low+width` of a field are at bit `at` of the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub field: Field,
    pub low: u32,
    pub at: u32,
    pub width: u32,
}

impl Piece {
    /// The bits of the word that the piece takes.
    pub(crate) const fn mask(&self) -> u128 {
        ((1 << self.width) - 1) << self.at
    }

    /// The part of the field's value that the word has there.
    pub(crate) const fn extract(&self, word: u128) -> u16 {
        (((word >> self.at) as u16) & (((1u32 << self.width) - 1) as u16)) << self.low
    }

    /// The part of the field's value, at its position in the word.
    pub(crate) const fn insert(&self, value: u16) -> u128 {
        ((value >> self.low) as u128 & ((1 << self.width) - 1)) << self.at
    }

    /// The bits of the field's value that the piece holds.
    pub(crate) const fn covers(&self) -> u16 {
        (((1u32 << self.width) - 1) << self.low) as u16
    }
}

const fn piece(field: Field, at: u32, width: u32) -> Piece {
    Piece { field, low: 0, at, width }
}

const fn part(field: Field, low: u32, at: u32, width: u32) -> Piece {
    Piece { field, low, at, width }
}

/// The encoding of a form in a range of generations.
#[derive(Debug)]
pub(crate) struct Layout {
    pub form: Form,
    first: Generation,
    last: Generation,
    /// Mask and value of the bits that identify the form.
    pub opcode: (u128, u128),
    pieces: [&'static [Piece]; 4],
}

impl Layout {
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &'static Piece> {
        self.pieces.into_iter().flatten()
    }

    /// The bits with a meaning.
    pub(crate) fn used_bits(&self) -> u128 {
        self.pieces().fold(self.opcode.0, |bits, piece| bits | piece.mask())
    }

    /// Whether the form has the field.
    pub(crate) fn has(&self, field: Field) -> bool {
        self.pieces().any(|piece| piece.field == field)
    }
}

use Field::*;

/// Maxwell: the pieces common to all forms, without the two fields that move.
const MAXWELL: &[Piece] = &[
    piece(Pv, 0, 3),
    piece(Pu, 3, 3),
    piece(Ftz, 6, 1),
    piece(Ra, 8, 8),
    piece(Pg, 16, 3),
    piece(PgNot, 19, 1),
    piece(Pp, 39, 3),
    piece(PpNot, 42, 1),
    piece(ANeg, 43, 1),
    piece(AAbs, 44, 1),
    piece(Bop, 45, 2),
    piece(ASwizzle, 47, 2),
];
const MAXWELL_REGISTER: &[Piece] = &[
    piece(Rb, 20, 8),
    piece(BSwizzle, 28, 2),
    piece(BAbs, 30, 1),
    piece(BNeg, 31, 1),
    piece(Cmp, 35, 4),
    piece(HAnd, 49, 1),
];
const MAXWELL_CONSTANT: &[Piece] = &[
    part(Address, 2, 20, 14),
    piece(Bank, 34, 5),
    piece(Cmp, 49, 4),
    piece(HAnd, 53, 1),
    piece(BAbs, 54, 1),
    piece(BNeg, 56, 1),
];
const MAXWELL_IMMEDIATE: &[Piece] =
    &[part(H0, 6, 20, 10), part(H1, 6, 30, 9), part(H1, 15, 56, 1), piece(Cmp, 49, 4), piece(HAnd, 53, 1)];

/// Slot `n` of a Maxwell control word, from bit `21 * n`.
pub(crate) const SLOT: &[Piece] = &[
    piece(Sched, 0, 5),
    piece(WriteBarrier, 5, 3),
    piece(ReadBarrier, 8, 3),
    piece(Wait, 11, 6),
    piece(Reuse, 17, 4),
];
/// Bits of such a slot.
pub(crate) const SLOT_BITS: u32 = 21;

/// Volta and later: the pieces common to all forms. The control information is [`SLOT`] at bit 105.
const VOLTA: &[Piece] = &[
    piece(Pg, 12, 3),
    piece(PgNot, 15, 1),
    piece(Ra, 24, 8),
    piece(Bop, 69, 2),
    piece(HAnd, 71, 1),
    piece(ANeg, 72, 1),
    piece(AAbs, 73, 1),
    piece(ASwizzle, 74, 2),
    piece(Cmp, 76, 4),
    piece(Ftz, 80, 1),
    piece(Pu, 81, 3),
    piece(Pv, 84, 3),
    piece(Pp, 87, 3),
    piece(PpNot, 90, 1),
    piece(Sched, 105, 5),
    piece(WriteBarrier, 110, 3),
    piece(ReadBarrier, 113, 3),
    piece(Wait, 116, 6),
    piece(Reuse, 122, 3),
];
const VOLTA_B: [Piece; 3] = [piece(BSwizzle, 60, 2), piece(BAbs, 62, 1), piece(BNeg, 63, 1)];
const VOLTA_REGISTER: &[Piece] = &[piece(Rb, 32, 8), VOLTA_B[0], VOLTA_B[1], VOLTA_B[2]];
const VOLTA_IMMEDIATE: &[Piece] = &[piece(H0, 32, 16), piece(H1, 48, 16)];
const VOLTA_CONSTANT: &[Piece] =
    &[part(Address, 2, 40, 14), piece(Bank, 54, 5), VOLTA_B[0], VOLTA_B[1], VOLTA_B[2]];
const TURING_BOUND: &[Piece] =
    &[piece(Ur, 32, 6), part(Address, 2, 40, 14), VOLTA_B[0], VOLTA_B[1], VOLTA_B[2]];
const TURING_UNIFORM: &[Piece] = &[piece(Ur, 32, 6), VOLTA_B[0], VOLTA_B[1], VOLTA_B[2]];
const BLACKWELL_UNIFORM: &[Piece] = &[piece(Ur, 32, 8), VOLTA_B[0], VOLTA_B[1], VOLTA_B[2]];
/// Bits 103:102; sm_75 and sm_80 ignore them ([`Arch::has_monitors`]).
const MONITOR: &[Piece] = &[piece(Monitor, 102, 2)];
const FORMAT: &[Piece] = &[piece(Format, 64, 2)];
const NONE: &[Piece] = &[];

const fn maxwell(form: Form, mask: u128, value: u128, own: &'static [Piece]) -> Layout {
    let (first, last) = (Generation::Maxwell, Generation::Maxwell);
    Layout { form, first, last, opcode: (mask, value), pieces: [MAXWELL, own, NONE, NONE] }
}

const fn volta(form: Form, opcode: u128, own: &'static [Piece]) -> Layout {
    let (first, last) = (Generation::Volta, Generation::Volta);
    Layout { form, first, last, opcode: (0xfff, opcode), pieces: [VOLTA, own, NONE, NONE] }
}

/// `opcode` with bit 91, from Turing on.
const fn turing(
    form: Form,
    (first, last): (Generation, Generation),
    (opcode, bit_91): (u128, u128),
    own: &'static [Piece],
    format: &'static [Piece],
) -> Layout {
    let opcode = (0xfff | 1 << 91, opcode | bit_91 << 91);
    Layout { form, first, last, opcode, pieces: [VOLTA, own, format, MONITOR] }
}

use Form::*;
use Generation::{Blackwell, Hopper, Turing};

/// The layouts, by form and generation.
static LAYOUTS: [Layout; 17] = [
    maxwell(Register, 0x1fff << 51, 0b0101110100100 << 51, MAXWELL_REGISTER),
    maxwell(Constant, 0x7f << 57 | 1 << 55, 0b0111111 << 57 | 1 << 55, MAXWELL_CONSTANT),
    maxwell(Immediate, 0x7f << 57 | 1 << 55, 0b0111111 << 57, MAXWELL_IMMEDIATE),
    volta(Register, 0x234, VOLTA_REGISTER),
    volta(Immediate, 0x434, VOLTA_IMMEDIATE),
    volta(Constant, 0x634, VOLTA_CONSTANT),
    turing(Register, (Turing, Turing), (0x234, 0), VOLTA_REGISTER, NONE),
    turing(Immediate, (Turing, Turing), (0x434, 0), VOLTA_IMMEDIATE, NONE),
    turing(Constant, (Turing, Turing), (0x634, 0), VOLTA_CONSTANT, NONE),
    turing(BoundConstant, (Turing, Turing), (0x634, 1), TURING_BOUND, NONE),
    turing(Uniform, (Turing, Turing), (0xe34, 1), TURING_UNIFORM, NONE),
    turing(Register, (Hopper, Blackwell), (0x234, 0), VOLTA_REGISTER, FORMAT),
    turing(Immediate, (Hopper, Blackwell), (0x434, 0), VOLTA_IMMEDIATE, FORMAT),
    turing(Constant, (Hopper, Hopper), (0x634, 0), VOLTA_CONSTANT, FORMAT),
    turing(BoundConstant, (Hopper, Hopper), (0x634, 1), TURING_BOUND, FORMAT),
    turing(Uniform, (Hopper, Hopper), (0xe34, 1), TURING_UNIFORM, FORMAT),
    turing(Uniform, (Blackwell, Blackwell), (0xe34, 1), BLACKWELL_UNIFORM, FORMAT),
];

/// The layouts of a target.
pub(crate) fn layouts(arch: Arch) -> impl Iterator<Item = &'static Layout> {
    let generation = arch.generation();
    LAYOUTS.iter().filter(move |layout| (layout.first..=layout.last).contains(&generation))
}

/// The layout of a form, if the target has the form.
pub(crate) fn layout(arch: Arch, form: Form) -> Option<&'static Layout> {
    layouts(arch).find(|layout| layout.form == form)
}
