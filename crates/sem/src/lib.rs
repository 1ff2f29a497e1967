//! What each PTX instruction computes: pure functions on bits.
//!
//! `sem` is the law: scalar, readable beside the PTX manual, and independent of machine and memory. An engine's own
//! code for an instruction must return the same bits. For instructions without such code, engines call the functions
//! here through [`lookup`].
//!
//! Two layers:
//! - The core takes a [`format::Format`], a [`round::Mode`] and bits. Floating point is exact integer arithmetic over
//!   one description of all formats: [`round::unpack`] an encoding to its exact value, compute exactly ([`arith`],
//!   [`approx`], [`convert`], [`compare`]), [`round::pack`] with one rounding. It does not use the host's floating
//!   point.
//! - The instructions ([`float`], [`half`], [`mixed`], [`integer`], [`logic`] and the rest of [`convert`] and
//!   [`compare`]) read the modifiers of a table row and call the core, lane by lane if the type is packed.
//!
//! Tests compare the core with rustc_apfloat, and the instructions with thousands of constants that ptxas folds.
//!
//! # What nothing backs
//!
//! Without a GPU these are *unverified*; each is marked where it is decided:
//! - `.f64` NaNs: the first NaN operand is kept and made quiet; an invalid operation gives 0xfff8000000000000
//!   ([`arith`], [`round::INVALID`]). The NaN of `rcp.approx.ftz.f64`. The result of `min.f64` and `max.f64` of two
//!   NaNs.
//! - NaN to integer follows the manual's text ([`convert::float_to_integer`]); `cvt.{rn,rz}.tf32` of NaN;
//!   `abs.bf16x2` and `neg.bf16x2` of NaN.
//! - `.relu` of -0.0 (+0 here), `.ftz` on half types, the sign that `.xorsign` gives beside a NaN operand.
//! - The small formats: NaN to `.e2m3`, `.e3m2`, `.e2m1`; zero and negative numbers to `.ue8m0`; the alignment of the
//!   random bits of `.rs` ([`convert::round_stochastically`]).
//! - The out-of-bounds NaN of `fma.oob` ([`half::fma`]).
//! - The order in which matrix products are summed ([`matrix`]), and the layout of the fragments of `wmma`.
//! - The layouts of tensor memory that the manual shows in figures only ([`tensor_memory`]).
//! - Tensor maps: the permutation of a 64-byte swizzle atom, and the fill for floats that are out of bounds
//!   ([`tensormap`]).
//! - Textures: how GPUs round, and all that the manual leaves open ([`texture`]).
//! - The approximate functions return the exact value rounded to nearest, which no GPU does throughout ([`approx`]).
#![forbid(unsafe_code)]

pub mod alternate;
pub mod approx;
pub mod arith;
pub mod bits;
pub mod compare;
pub mod convert;
pub mod float;
pub mod format;
pub mod half;
pub mod half_compare;
pub mod integer;
pub mod logic;
mod lookup;
pub mod matrix;
pub mod mixed;
mod operands;
pub mod round;
pub mod tensor_memory;
pub mod tensormap;
pub mod texture;
pub mod validity;
pub mod video;

pub use lookup::lookup;
pub use operands::PureFn;
