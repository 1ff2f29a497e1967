//! An HSETP2: its form, its target, and the value of every field.

use std::fmt;

use crate::arch::Arch;
use crate::layout::{Field, Form, SLOT, SLOT_BITS, layout, layouts};

/// An instruction. Fields that its form lacks have their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    arch: Arch,
    form: Form,
    values: [u16; Field::COUNT],
}

/// Why a word is not a legal HSETP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Illegal {
    /// The opcode is not HSETP2's.
    NotHsetp2,
    /// Bits above the width of the target's words are set.
    TooWide(Arch),
    /// This scheduling value does not exist.
    Schedule(u16),
    /// This form does not allow these reuse (or batch) bits with its scheduling value.
    Reuse(u16, u16),
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Illegal::NotHsetp2 => write!(f, "not HSETP2: the opcode is another one"),
            Illegal::TooWide(arch) => write!(f, "a word of {arch} has {} bits", arch.word_bits()),
            Illegal::Schedule(sched) => write!(f, "scheduling value {sched} is none of 0 to 15 and 17 to 27"),
            Illegal::Reuse(reuse, sched) => {
                write!(f, "reuse or batch bits {reuse} do not go with scheduling value {sched} here")
            }
        }
    }
}

impl std::error::Error for Illegal {}

/// Why an instruction has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unencodable {
    /// The target has no such form.
    Form(Form, Arch),
    /// The field's value does not fit its bits.
    Value(Field, u16),
    /// The word would be illegal.
    Illegal(Illegal),
}

impl fmt::Display for Unencodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unencodable::Form(form, arch) => write!(f, "HSETP2 of {arch} has no {} operand", form.name()),
            Unencodable::Value(field, value) => write!(f, "there is no room for {field:?} = {value:#x}"),
            Unencodable::Illegal(illegal) => illegal.fmt(f),
        }
    }
}

impl std::error::Error for Unencodable {}

impl Instruction {
    /// `@PT HSETP2.F.AND PT, PT, R0, <zeros>, PT` in this form, without barriers.
    pub fn new(arch: Arch, form: Form) -> Instruction {
        let mut instruction = Instruction { arch, form, values: [0; Field::COUNT] };
        for field in [Field::Pg, Field::Pu, Field::Pv, Field::Pp, Field::WriteBarrier, Field::ReadBarrier] {
            instruction.set(field, field.default());
        }
        instruction
    }

    /// The target.
    pub const fn arch(&self) -> Arch {
        self.arch
    }

    /// The kind of the second operand.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The value of a field.
    pub const fn get(&self, field: Field) -> u16 {
        self.values[field as usize]
    }

    /// Whether a field of one bit is set.
    pub const fn is(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Sets a field. [`Instruction::encode`] reports whether the value fits.
    pub const fn set(&mut self, field: Field, value: u16) {
        self.values[field as usize] = value;
    }

    /// The same with a field set.
    #[must_use]
    pub const fn with(mut self, field: Field, value: u16) -> Instruction {
        self.set(field, value);
        self
    }

    /// Whether the word has this field. (Maxwell's control information is in another word.)
    pub fn has(&self, field: Field) -> bool {
        layout(self.arch, self.form).is_some_and(|layout| layout.has(field))
    }

    /// Decodes a word.
    ///
    /// # Errors
    /// When it is not HSETP2, or has a combination of control fields that no HSETP2 has.
    pub fn decode(arch: Arch, word: u128) -> Result<Instruction, Illegal> {
        if arch.word_bits() < 128 && word >> arch.word_bits() != 0 {
            return Err(Illegal::TooWide(arch));
        }
        let layout = layouts(arch)
            .find(|layout| word & layout.opcode.0 == layout.opcode.1)
            .ok_or(Illegal::NotHsetp2)?;
        let mut instruction = Instruction::new(arch, layout.form);
        let mut values = [0; Field::COUNT];
        for piece in layout.pieces() {
            values[piece.field as usize] |= piece.extract(word);
        }
        if arch.word_bits() == 64 {
            values[Field::WriteBarrier as usize] = Field::WriteBarrier.default();
            values[Field::ReadBarrier as usize] = Field::ReadBarrier.default();
        }
        if !arch.has_monitors() {
            values[Field::Monitor as usize] = 0;
        }
        instruction.values = values;
        instruction.check_control()?;
        Ok(instruction)
    }

    /// The bits of a word that HSETP2 ignores with this target and form. All other bits determine
    /// [`Instruction::decode`], and [`Instruction::encode`] reproduces them.
    pub fn ignored_bits(&self) -> u128 {
        let all = u128::MAX >> (128 - self.arch.word_bits());
        let monitors = if self.arch.has_monitors() { 0 } else { 3 << 102 };
        let used = layout(self.arch, self.form).map_or(0, |layout| layout.used_bits() & !monitors);
        all & !used
    }

    /// The encoding.
    ///
    /// # Errors
    /// When the target lacks the form, a value does not fit, or the control fields contradict each other.
    pub fn encode(&self) -> Result<u128, Unencodable> {
        let layout = layout(self.arch, self.form).ok_or(Unencodable::Form(self.form, self.arch))?;
        let mut word = layout.opcode.1;
        let mut rest = self.values;
        for piece in layout.pieces() {
            word |= piece.insert(self.get(piece.field));
            rest[piece.field as usize] &= !piece.covers();
        }
        if self.arch.word_bits() == 64 {
            for piece in SLOT {
                rest[piece.field as usize] &= !piece.covers();
            }
        }
        if !self.arch.has_monitors() {
            rest[Field::Monitor as usize] = self.get(Field::Monitor);
        }
        for field in layout.pieces().map(|piece| piece.field).chain(OPTIONAL) {
            let left = rest[field as usize];
            // A field that the form lacks must have the value that text without it gives.
            let fits = if layout.has(field) { left == 0 } else { left == 0 || left == field.default() };
            if !fits {
                return Err(Unencodable::Value(field, self.get(field)));
            }
        }
        self.check_control().map_err(Unencodable::Illegal)?;
        Ok(word)
    }

    /// Reads Maxwell's control information from slot `n` (0 to 2) of a group's control word.
    ///
    /// # Errors
    /// When HSETP2 cannot have these values.
    pub fn set_slot(&mut self, control: u64, n: u32) -> Result<(), Illegal> {
        let slot = u128::from(control) >> (SLOT_BITS * n.min(2));
        for piece in SLOT {
            self.set(piece.field, piece.extract(slot));
        }
        self.check_control()
    }

    /// Maxwell's control information, as a slot of the group's control word.
    pub fn slot(&self) -> u32 {
        SLOT.iter().fold(0, |bits, piece| bits | piece.insert(self.get(piece.field)) as u32)
    }

    /// Whether the reuse field is a batch position, because the stall ends a group (Volta and later).
    pub(crate) const fn is_batch(&self) -> bool {
        matches!(self.get(Field::Sched), 1..=15)
    }

    /// Whether the reuse cache keeps operand A, and operand B.
    pub(crate) fn reuse(&self) -> (bool, bool) {
        let bits = self.get(Field::Reuse);
        match self.arch.word_bits() {
            64 => (bits & 1 != 0, self.form == Form::Register && bits & 2 != 0),
            _ if self.is_batch() => (false, false),
            // Only sm_70 can have bit 1 set here.
            _ => (bits & 1 != 0, bits & 6 != 0),
        }
    }

    /// Checks the combination of scheduling and reuse: nvdisasm accepts only some.
    fn check_control(&self) -> Result<(), Illegal> {
        let (sched, reuse) = (self.get(Field::Sched), self.get(Field::Reuse));
        let legal = match (self.arch.word_bits(), sched) {
            (64, _) => reuse & 8 == 0,
            (_, 0) => reuse == 0,
            (_, 1..=15) => reuse <= 5,
            (_, 17..=27) => match self.form {
                Form::Register if self.arch.number() == 70 => reuse <= 5,
                Form::Register => reuse & !5 == 0,
                _ => reuse <= 1,
            },
            _ => return Err(Illegal::Schedule(sched)),
        };
        if legal { Ok(()) } else { Err(Illegal::Reuse(reuse, sched)) }
    }
}

/// Fields that some forms or targets lack.
const OPTIONAL: [Field; 12] = [
    Field::Format,
    Field::Rb,
    Field::Ur,
    Field::BNeg,
    Field::BAbs,
    Field::BSwizzle,
    Field::Bank,
    Field::Address,
    Field::H0,
    Field::H1,
    Field::Reuse,
    Field::Monitor,
];
