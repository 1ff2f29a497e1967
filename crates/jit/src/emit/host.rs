//! What the emitter asks of a host's vectors.
//!
//! `avx512` and `avx2` say how a host does it. A primitive works on one vector, a *chunk* of a slot: `wide` means that its
//! elements have 8 bytes, otherwise 4.

use std::ops::{Deref, DerefMut};

use iced_x86::Register;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, AsmRegisterXmm, CodeAssembler, CodeLabel, get_xmm, ptr,
};
use isa::{BoolOp, CmpOp, Rounding};

use super::{Refused, Result};
use crate::operation::{Bits, Conversion, Float, Half};

/// A vector register of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vector(pub u8);

/// A register with a bit or an element for each lane of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask(pub u8);

/// The mask that any primitive may change.
pub(super) const MASK: Mask = Mask(7);

/// The bit that makes a NaN of f64 quiet.
pub(super) const QUIET: u64 = 1 << 51;

/// Where a result goes: other lanes than those of the mask keep their elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    pub register: Vector,
    pub mask: Option<Mask>,
}

impl From<Vector> for Destination {
    fn from(register: Vector) -> Destination {
        Destination { register, mask: None }
    }
}

/// Where a predicate is.
#[derive(Clone, Copy)]
pub(super) enum Chooser {
    Register(Mask),
    Memory(AsmMemoryOperand),
}

/// Where an access to scattered places goes: a base, offsets from it, and bytes.
#[derive(Clone, Copy)]
pub(super) struct Scattered<'o> {
    /// For each chunk of 4 bytes its offsets, or for each chunk of 8 bytes.
    pub offsets: &'o [Vector],
    /// Offsets have 8 bytes.
    pub wide: bool,
    pub bytes: i32,
}

/// `mxcsr` with all exceptions masked, and the bits of it by which subnormal sources and results become zeros.
pub(super) const USUAL_CONTROL: u32 = 0x1f80;
pub(super) const FLUSHES: u32 = 0x8040;

/// The lowest number of a register.
pub(super) fn low_number(register: Vector) -> Result<AsmRegisterXmm> {
    get_xmm(Register::XMM0 + u32::from(register.0)).ok_or(Refused)
}

/// An assembler, and the constants behind its code.
pub(super) struct Assembler {
    code: CodeAssembler,
    /// Vectors.
    pub constants: Vec<(CodeLabel, [u64; 8])>,
    /// Arithmetic flushes what is subnormal.
    pub flushes: bool,
}

impl Assembler {
    pub fn new() -> Result<Assembler> {
        Ok(Assembler { code: CodeAssembler::new(64)?, constants: Vec::new(), flushes: false })
    }

    /// A vector of constants behind the code. Shorter vectors are its beginning.
    pub fn constant(&mut self, lanes: [u64; 8]) -> AsmMemoryOperand {
        let known = self.constants.iter().find(|(_, other)| *other == lanes);
        let label = known.map(|(label, _)| *label).unwrap_or_else(|| {
            let label = self.create_label();
            self.constants.push((label, lanes));
            label
        });
        ptr(label)
    }
}

impl Deref for Assembler {
    type Target = CodeAssembler;

    fn deref(&self) -> &CodeAssembler {
        &self.code
    }
}

impl DerefMut for Assembler {
    fn deref_mut(&mut self) -> &mut CodeAssembler {
        &mut self.code
    }
}

/// What a host computes. Primitives change [`MASK`] and [`HostVectors::SECOND`], but none of the other registers.
pub(super) trait Arithmetic: DerefMut<Target = Assembler> {
    fn add_vectors(&mut self, dst: Destination, a: Vector, b: Vector, wide: bool) -> Result;
    fn add_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand, wide: bool) -> Result;
    /// Extends one half of 32-bit values to 64 bits.
    fn widen(&mut self, to: Vector, from: Vector, upper: bool, signed: bool) -> Result;
    /// The low halves of two vectors, in the scratch register. Changes `other`.
    fn narrow(&mut self, first: Vector, second: Vector, other: Vector) -> Result;
    /// Puts the low half of a vector behind that of the scratch register.
    fn join_low(&mut self, upper: Vector) -> Result;
    /// `a` and the constant.
    fn and_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand) -> Result;
    /// Shifts the bits of 32-bit elements up (positive) or down, signed or not.
    fn shift(&mut self, to: Vector, from: Vector, distance: i32, signed: bool) -> Result;
    /// The upper halves of 64-bit elements, below.
    fn upper_down(&mut self, to: Vector, from: Vector) -> Result;
    /// Puts the low halves of 64-bit elements up.
    fn lower_up(&mut self, to: Vector, from: Vector) -> Result;
    /// f32 as f16 or bf16 in the low bits of elements, in the scratch register. Changes `other`, which is not `from`.
    fn single_to_half(&mut self, from: Vector, format: Half, rounding: Rounding, other: Vector) -> Result;
    /// f32 as integral numbers.
    fn integral(&mut self, dst: Destination, from: Vector, rounding: Rounding) -> Result;
    /// The high halves of products of 32-bit values, in the scratch register. Changes `other`, which is neither source.
    fn multiply_high(&mut self, a: Vector, b: Vector, signed: bool, other: Vector) -> Result;
    /// One 16-bit half of each element as f32.
    fn half_to_single(&mut self, to: Vector, from: Vector, upper: bool, format: Half) -> Result;
    /// Puts the low 16 bits of each element below the high 16 bits of the scratch register's.
    fn join_low_and_high(&mut self, low: Vector) -> Result;
    /// Multiplies the scratch register by the low halves of elements.
    fn multiply_halves(&mut self, other: Vector, signed: bool) -> Result;
    /// The low halves of products, in the scratch register.
    fn multiply(&mut self, a: Vector, b: Vector, wide: bool) -> Result;
    /// `b` may be the scratch register, which is zero for a negation.
    fn bits(&mut self, dst: Destination, op: Bits, wide: bool, a: Vector, b: Vector) -> Result;
    /// Arithmetic but for minima and maxima. NaNs are the host's.
    fn float(
        &mut self,
        dst: Destination,
        op: Float,
        wide: bool,
        rounding: Rounding,
        sources: [Vector; 3],
    ) -> Result;
    /// The minimum or maximum, in the scratch register.
    fn extreme(&mut self, op: Float, wide: bool, a: Vector, b: Vector) -> Result;
    /// `x = x op y` on single f32 numbers. `Rcp`: `y / x`, `Fma`: `x * factor + y`.
    fn float_scalar(
        &mut self,
        op: Float,
        rounding: Rounding,
        x: AsmRegisterXmm,
        y: AsmRegisterXmm,
        factor: AsmRegisterXmm,
    ) -> Result;
    /// Makes the NaNs of f32 those of PTX.
    fn canonicalize(&mut self, register: Vector) -> Result;
    /// f32 as integers, in the scratch register. `other`: for unsigned ones, if the host needs it.
    fn round_to_integer(
        &mut self,
        a: Vector,
        signed: bool,
        rounding: Rounding,
        other: Option<Vector>,
    ) -> Result;
    /// The absolute value or the negation of f64, in the scratch register.
    fn double_sign(&mut self, op: Bits, a: Vector) -> Result;
    /// Integers of 64 bits as f64.
    fn double_from_wide(&mut self, dst: Destination, a: Vector, signed: bool, rounding: Rounding) -> Result;
    /// One half of 32-bit values as f64, exactly.
    fn double_from_half(
        &mut self,
        dst: Destination,
        from: Vector,
        upper: bool,
        conversion: Conversion,
    ) -> Result;
    /// f64 as values of 32 bits, in the low half of a register.
    fn narrow_double(&mut self, to: Vector, a: Vector, conversion: Conversion, rounding: Rounding) -> Result;
    fn compare_float(&mut self, to: Mask, op: CmpOp, wide: bool, a: Vector, b: Vector) -> Result;
    fn compare_integer(
        &mut self,
        to: Mask,
        op: CmpOp,
        unsigned: bool,
        wide: bool,
        a: Vector,
        b: Vector,
    ) -> Result;
    /// The lanes whose element is a NaN of f64, but not this one.
    fn other_nans(&mut self, a: Vector, nan: AsmMemoryOperand) -> Result;
    /// Puts the NaNs of f64, made quiet, into their lanes of the scratch register.
    fn keep_nans(&mut self, from: Vector) -> Result;
}

/// The vectors of a host, and its memory. What primitives change: as for [`Arithmetic`].
pub(super) trait HostVectors: Arithmetic {
    /// Bytes of a vector.
    const BYTES: usize;
    /// The registers for the words of a loop and for the values of a basic block: the first ones.
    const VECTORS: u8;
    /// The vectors that words take at most, the first try first: basic blocks need the others.
    const WORD_VECTORS: &'static [usize];
    const SCRATCH: Vector;
    /// A second one, if there is one.
    const SECOND: Option<Vector>;
    /// The register that has the NaN of PTX.
    const NAN: Option<Vector>;
    /// Registers for the predicates of a basic block.
    const MASKS: &'static [Mask];
    /// A destination may have a mask whatever writes to it. Otherwise only `copy` knows masks.
    const MERGES: bool;
    /// There are so few registers that the chunks of an operation share them.
    const FEW: bool;
    /// `load_strided` and `store_strided` are there.
    const STRIDES: bool = false;
    /// `load_row` and `transpose_rows` are there.
    const ROWS: bool = false;
    /// `load_quad`, `repeat_lane` and `add_product` are there, and registers enough for products of matrices.
    const PRODUCTS: bool = false;
    /// `is_inside` and `round_to_integer` need a third register.
    const NEEDS_ANOTHER: bool;

    /// `groups`: of 16 lanes, which the vectors of a slot have.
    fn new(assembler: Assembler, groups: usize) -> Self;

    /// Elements of a vector.
    fn lanes(wide: bool) -> usize {
        if wide { Self::BYTES / 8 } else { Self::BYTES / 4 }
    }

    /// Fills the registers that are always the same. Changes `ecx`.
    fn begin(&mut self) -> Result;
    /// Whether all lanes of the vectors are at the basic block: they need not be taken then.
    fn set_all(&mut self, all: bool);
    /// Whether they are.
    fn has_all(&self) -> bool;
    /// Takes the lanes `eax`, for `lanes_of`.
    fn take_lanes(&mut self) -> Result;
    /// The lanes of a chunk. May be `MASK`.
    fn lanes_of(&mut self, chunk: usize, wide: bool) -> Result<Mask>;
    /// Saves or loads the masks that functions may change.
    fn save_masks(&mut self, saves: bool) -> Result;
    fn load(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result;
    fn store(&mut self, place: AsmMemoryOperand, from: Vector, wide: bool) -> Result;
    /// Loads elements of 2 bytes and extends them by zeros.
    fn load_short(&mut self, to: Vector, place: AsmMemoryOperand) -> Result;
    /// Stores the low 2 bytes of elements, whose others are 0.
    fn store_short(&mut self, place: AsmMemoryOperand, from: Vector) -> Result;
    /// As `merge`, elements of 2 bytes.
    fn merge_short(&mut self, place: AsmMemoryOperand, from: Vector, mask: Mask) -> Result;
    /// Merges into memory of the gang.
    fn merge(&mut self, place: AsmMemoryOperand, from: Vector, wide: bool, mask: Mask) -> Result;
    fn copy(&mut self, dst: Destination, from: Vector, wide: bool) -> Result;
    /// Loads the result of a function, whatever the destination.
    fn load_result(&mut self, dst: Destination, place: AsmMemoryOperand, wide: bool) -> Result;
    /// Loads elements of these lanes or of all, or one element for them. Touches no other memory.
    fn load_lanes(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        mask: Option<Mask>,
        one: bool,
        wide: bool,
    ) -> Result;
    /// As `load_lanes`, elements of so many bytes that are extended, by their signs or zeros.
    fn load_extended(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        mask: Option<Mask>,
        extension: (u32, bool),
        wide: bool,
    ) -> Result;
    /// Loads two or four elements of 4 bytes for each lane, which follow each other: one register for each element of a lane. `place`:
    /// so many bytes behind the first one.
    fn deinterleave(&mut self, to: &[Vector], place: impl Fn(i32) -> AsmMemoryOperand) -> Result;
    /// The two halves of 16 bytes of a register, those with this number. Changes the scratch register.
    fn take_16_bytes(&mut self, to: [AsmRegister64; 2], from: Vector, number: usize) -> Result;
    /// Loads four elements of 4 bytes, which are those of one lane, to the part of a register with this number. That with number 0 comes
    /// first.
    fn load_row(&mut self, _to: Vector, _place: AsmMemoryOperand, _part: usize) -> Result {
        Err(Refused)
    }
    /// Takes the elements of rows apart: of lane `4 p + j`, they are in part `p` of register `j`. Returns a register for each element.
    fn transpose_rows(&mut self, _rows: [Vector; 4]) -> Result<[Vector; 4]> {
        Err(Refused)
    }
    /// For each lane of a chunk of 4-byte elements the element of another lane, in the scratch register. `from`: all chunks.
    fn permute(&mut self, from: &[Vector], lanes: &[u32]) -> Result;
    /// Loads four elements of 4 bytes to each four lanes.
    fn load_quad(&mut self, _to: Vector, _place: AsmMemoryOperand) -> Result {
        Err(Refused)
    }
    /// For each four lanes the element of one of them, in the scratch register.
    fn repeat_lane(&mut self, _from: Vector, _lane: usize) -> Result {
        Err(Refused)
    }
    /// Adds to f32 the products of those in the scratch register and a factor, rounded once. NaNs are the host's.
    fn add_product(&mut self, _sum: Vector, _factor: Vector) -> Result {
        Err(Refused)
    }
    /// The reverse of `deinterleave`. Changes `others`.
    fn interleave(
        &mut self,
        from: &[Vector],
        others: [Vector; 2],
        place: impl Fn(i32) -> AsmMemoryOperand,
    ) -> Result;
    /// Stores elements of the lanes `eax`. Touches no other memory.
    fn store_lanes(&mut self, place: AsmMemoryOperand, from: Vector, chunk: usize, wide: bool) -> Result;
    /// As `store_lanes`, the low bytes of elements: those of all lanes, or of some if destinations may have masks. `wide`: only then.
    fn store_truncated(
        &mut self,
        place: AsmMemoryOperand,
        from: Vector,
        chunk: usize,
        bytes: u32,
        wide: bool,
    ) -> Result;
    /// Loads an element of 1 or 2 bytes for each lane of a group, so many bytes from one to the next: to the low bits of elements of
    /// the scratch register. Changes `others`. Touches no memory behind the last element.
    fn load_strided(
        &mut self,
        _: impl Fn(i32) -> AsmMemoryOperand,
        _step: usize,
        _bytes: u32,
        _others: [Vector; 2],
    ) -> Result {
        Err(Refused)
    }
    /// Stores the low bytes of elements likewise. Touches no other memory.
    fn store_strided(
        &mut self,
        _: impl Fn(i32) -> AsmMemoryOperand,
        _from: Vector,
        _step: usize,
        _bytes: u32,
        _other: Vector,
    ) -> Result {
        Err(Refused)
    }
    /// Clears the scratch register and takes the lanes, for `gather`.
    fn prepare_gather(&mut self, chunk: usize, wide: bool) -> Result;
    /// Loads a chunk from `rcx` and offsets to the scratch register. `other`: unless offsets are as wide as elements.
    fn gather(&mut self, from: Scattered, chunk: usize, wide: bool, other: Option<Vector>) -> Result;
    /// Stores a chunk of the lanes `eax`. Changes `rdx`.
    fn scatter(&mut self, to: Scattered, chunk: usize, wide: bool, value: Vector) -> Result;
    /// `narrow` is `rcx`, or its low half.
    fn broadcast(&mut self, to: Vector, from: AsmRegister64, low: AsmRegister32, wide: bool) -> Result;
    fn broadcast_place(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result;
    /// The lanes of a chunk for which a predicate holds.
    fn chosen(&mut self, chooser: Chooser, chunk: usize, wide: bool) -> Result<Mask>;
    /// `a` for the lanes of the mask, otherwise `b`.
    fn choose(&mut self, to: Vector, a: Vector, b: Vector, mask: Mask, wide: bool) -> Result;
    /// Loads the number that offsets must be below, for `is_inside`.
    fn bound(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result;
    /// The lanes whose offset is below the bound in the scratch register and has none of some bits.
    fn is_inside(
        &mut self,
        offset: Vector,
        unaligned: AsmMemoryOperand,
        other: Option<Vector>,
        wide: bool,
    ) -> Result;
    /// A bit for each lane of a mask.
    fn mask_bits(&mut self, to: AsmRegister32, mask: Mask, wide: bool) -> Result;
    /// Combines the lanes of two masks.
    fn combine_masks(&mut self, op: BoolOp, to: Mask, a: Mask, b: Mask) -> Result;
    /// Puts the bits of `MASK` below those of a mask.
    fn join_halves(&mut self, to: Mask) -> Result;
    /// The bits of masks of all parts.
    fn joined(&mut self, masks: &[Mask], to: AsmRegister32) -> Result;
    /// Masks of all parts from the bits in `ecx`.
    fn split(&mut self, masks: &[Mask]) -> Result;
}
