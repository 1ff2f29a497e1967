//! The operations that native code has.
//!
//! The interpreter runs loops with any other operation. `translate` makes operations of lowered ones.

use ir::{Guard, ShufflePattern, Slot};
use isa::{BoolOp, CmpOp, Rounding};

mod slots;

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

/// An operation on the bits of values. Those of slots of 2 bytes are computed as values of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    Add,
    Sub,
    /// The low half of the product.
    Mul,
    /// The low half of `a * b`, plus `c`.
    Mad,
    /// The high half of the product of 32-bit values.
    MulHighSigned,
    MulHighUnsigned,
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
    /// As these, of f32. What is subnormal becomes 0.
    AbsFlushed,
    NegFlushed,
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
    /// As numbers of f32, of which those that are subnormal are zeros.
    Flushed,
    /// As signed integers of 16 bits.
    Short,
    /// As numbers of 16 bits.
    Half(Half),
}

/// A format of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    F16,
    Bf16,
}

/// A checked access to memory: `count` contiguous elements of `bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Index in [`Loop::accesses`](crate::Loop::accesses).
    pub index: usize,
    pub base: Slot,
    pub offset: i64,
    /// Bytes of an element: those of its slot, or fewer.
    pub bytes: u32,
    pub count: u32,
    /// What each address is a multiple of.
    pub align: u32,
    /// In straight-line code: where addresses are that do not step evenly.
    pub within: Option<Within>,
    /// In straight-line code: nothing is known of the addresses before the code runs, so it checks them itself.
    pub checked: bool,
}

/// Addresses are a number that is the same in all lanes and known before the code runs, plus one of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within {
    pub base: Slot,
    pub low: i64,
    pub high: i64,
}

/// How an atomic operation changes an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    And,
    Or,
    Xor,
    /// A sum of f32.
    AddFloat,
    /// A sum of f32. What is subnormal becomes 0.
    AddFlushed,
}

/// An operation. `wide`: on slots of 8 bytes, otherwise of 4 or, where it says so, 2.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Float {
        op: Float,
        wide: bool,
        rounding: Rounding,
        /// Subnormal sources and results are zeros.
        flushes: bool,
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
    /// `high` shifted up by so many bits, from 1 to 31, and the upper bits of `low` behind it, all of 32 bits.
    Funnel {
        up: u32,
        dst: Slot,
        high: Slot,
        low: Slot,
    },
    /// A value of 32 bits shifted up by `up` bits, and the result down by `down` bits, fewer than 32 each.
    Field {
        up: u32,
        down: u32,
        signed: bool,
        dst: Slot,
        src: Slot,
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
    /// The low `bits` bits, extended or cut off to the width of the result, which may be another one.
    Resize {
        bits: u32,
        signed: bool,
        dst: Slot,
        src: Slot,
    },
    /// Values of `bits` bits one behind the other, the first in the lowest bits.
    Pack {
        bits: u32,
        dst: Slot,
        src: [Slot; 2],
    },
    /// The reverse of `Pack`.
    Unpack {
        bits: u32,
        dst: [Option<Slot>; 2],
        src: Slot,
    },
    /// A number of 16 bits as f32.
    FromHalf {
        format: Half,
        dst: Slot,
        src: Slot,
    },
    /// f32 as a number of 16 bits; or two of them as two, the first of them in the upper half.
    ToHalf {
        format: Half,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
        low: Option<Slot>,
    },
    /// Arithmetic on numbers of 16 bits, or on two of them: computed as f32, and rounded. The first rounding does not matter: a
    /// product is a number of f32, or so small that it becomes 0, and f32 has twice the digits that a sum needs.
    Half {
        op: Float,
        format: Half,
        packed: bool,
        dst: Slot,
        src: [Slot; 2],
    },
    /// Arithmetic of f32 whose sources but the last one are numbers of 16 bits, which are extended before.
    Mixed {
        op: Float,
        format: Half,
        rounding: Rounding,
        dst: Slot,
        src: [Slot; 3],
    },
    /// f32 as the next integral number.
    Integral {
        rounding: Rounding,
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
        /// What is shorter than its slot is extended so.
        signed: bool,
        dst: Vec<Option<Slot>>,
        /// The lanes that load. The others get any value.
        guard: Option<Guard>,
    },
    Store {
        access: Access,
        src: Vec<Slot>,
        /// Only these lanes store.
        guard: Option<Guard>,
    },
    /// Lane by lane, the lowest first.
    Atomic {
        op: Change,
        access: Access,
        /// By a locked instruction of the host: other host threads may access the element meanwhile.
        locked: bool,
        /// The element before the operation.
        dst: Option<Slot>,
        src: Slot,
        /// Only these lanes take part.
        guard: Option<Guard>,
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
    /// Compares the halves of 4 bytes: the first result is that of the low ones.
    CompareHalves {
        op: CmpOp,
        format: Half,
        dst: [Option<Slot>; 2],
        src: [Slot; 2],
    },
    /// The low half of the first source where the first predicate holds, otherwise of the second source, and the high half
    /// likewise by the second predicate.
    SelectHalves {
        dst: Slot,
        src: [Slot; 2],
        preds: [Slot; 2],
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
    /// Counts so many thread-instructions for each of these lanes.
    Count {
        lanes: Guard,
        cost: u32,
    },
    /// Among the lanes of a warp, all of which are there.
    Shuffle {
        dst: Option<Slot>,
        /// The lanes whose source is in their segment.
        pred: Option<Slot>,
        src: Slot,
        pattern: Box<ShufflePattern>,
    },
    /// A product of matrices in the registers of a warp, all of whose lanes are there. Each slot has 4 bytes.
    Product {
        /// Index in [`Loop::calls`](crate::Loop::calls).
        index: usize,
        /// `m16n8k8` or `m16n8k16` of numbers of this format, whose sums are f32: native code has it on some hosts. Elsewhere, the
        /// interpreter's function computes it.
        format: Option<Half>,
        dst: Vec<Slot>,
        src: Vec<Slot>,
    },
}

impl Operation {
    /// Whether the operation sees which NaN a source is.
    pub fn sees_bits(&self) -> bool {
        match self {
            Operation::Bits { op, .. } => !op.is_arithmetic(),
            Operation::Compare { ordering, .. } => !matches!(ordering, Ordering::Float | Ordering::Flushed),
            Operation::Float { .. }
            | Operation::ToInteger { .. }
            | Operation::ToHalf { .. }
            | Operation::Integral { .. }
            | Operation::Logic { .. }
            | Operation::Count { .. }
            | Operation::Pass { .. } => false,
            Operation::Offset { .. }
            | Operation::Call { .. }
            | Operation::Convert { .. }
            | Operation::MulWide { .. }
            | Operation::Funnel { .. }
            | Operation::Field { .. }
            | Operation::Widen { .. }
            | Operation::Narrow { .. }
            | Operation::Resize { .. }
            | Operation::Pack { .. }
            | Operation::Unpack { .. }
            | Operation::FromHalf { .. }
            | Operation::Half { .. }
            | Operation::Mixed { .. }
            | Operation::Load { .. }
            | Operation::Store { .. }
            | Operation::Atomic { .. }
            | Operation::Select { .. }
            | Operation::CompareHalves { .. }
            | Operation::SelectHalves { .. }
            | Operation::Product { .. }
            | Operation::Shuffle { .. } => true,
        }
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

    /// Whether the host's arithmetic must flush what is subnormal to zero. `None`: that makes no difference, and no lane leaves here.
    pub fn flushes(&self) -> Option<bool> {
        match self {
            Operation::Float { flushes, .. } => Some(*flushes),
            Operation::Atomic { op, .. } => Some(*op == Change::AddFlushed),
            Operation::Compare { ordering: Ordering::Flushed, .. }
            | Operation::Bits { op: Bits::AbsFlushed | Bits::NegFlushed, .. } => Some(true),
            Operation::Compare {
                ordering: Ordering::Signed | Ordering::Unsigned | Ordering::Short, ..
            }
            | Operation::Bits { .. }
            | Operation::Offset { .. }
            | Operation::Select { .. }
            | Operation::Logic { .. }
            | Operation::Count { .. }
            | Operation::Pass { .. } => None,
            _ => Some(false),
        }
    }

    /// One of [`Loop::calls`](crate::Loop::calls).
    pub fn is_call(&self) -> bool {
        matches!(self, Operation::Call { .. } | Operation::Product { .. })
    }

    /// All lanes of a warp must be there.
    pub fn is_of_warp(&self) -> bool {
        matches!(self, Operation::Shuffle { .. } | Operation::Product { .. })
    }

    /// The access to memory.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Operation::Load { access, .. }
            | Operation::Store { access, .. }
            | Operation::Atomic { access, .. } => Some(access),
            _ => None,
        }
    }

    /// See [`Operation::access`].
    pub fn access_mut(&mut self) -> Option<&mut Access> {
        match self {
            Operation::Load { access, .. }
            | Operation::Store { access, .. }
            | Operation::Atomic { access, .. } => Some(access),
            _ => None,
        }
    }

    /// It changes memory.
    pub fn writes(&self) -> bool {
        matches!(self, Operation::Store { .. } | Operation::Atomic { .. })
    }

    /// A place for the lanes that access memory, in an operation without results.
    pub fn guard_mut(&mut self) -> Option<&mut Option<Guard>> {
        match self {
            Operation::Store { guard, .. } | Operation::Atomic { guard, dst: None, .. } => Some(guard),
            _ => None,
        }
    }

    /// The lanes that access memory, if not all do.
    pub fn guard(&self) -> Option<Guard> {
        match self {
            Operation::Load { guard, .. }
            | Operation::Store { guard, .. }
            | Operation::Atomic { guard, .. } => *guard,
            _ => None,
        }
    }
}

impl Access {
    /// The slots with the addresses.
    fn uses(&self) -> impl Iterator<Item = Slot> {
        [self.base].into_iter().chain(self.within.map(|within| within.base))
    }

    /// An address that is a multiple of the access's bytes stays one with its offset.
    pub fn bytes_fit(&self) -> bool {
        let bytes = i64::from(self.bytes * self.count);
        bytes.count_ones() == 1 && self.offset % bytes == 0
    }
}

impl Change {
    /// One operation does what all lanes do with one value: with so many times the value, if it is a sum.
    pub fn combines(self) -> bool {
        matches!(self, Change::Add | Change::And | Change::Or)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Change::AddFloat | Change::AddFlushed)
    }
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
        matches!(self, Bits::AbsFloat | Bits::NegFloat | Bits::AbsFlushed | Bits::NegFlushed)
    }

    fn is_unary(self) -> bool {
        use Bits::{AbsSigned, Copy, FromSigned, FromUnsigned, Neg, Not};
        self.is_arithmetic() || matches!(self, AbsSigned | Copy | FromSigned | FromUnsigned | Neg | Not)
    }
}
