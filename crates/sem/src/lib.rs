//! What each PTX instruction computes: pure functions on bits.
//!
//! `sem` is the law: scalar, readable beside the PTX manual, knowing no machine and no memory. The engines' own code
//! for an instruction must return the same bits, and what they have no code for they call here, through [`lookup`].
//!
//! Two layers:
//! - The core takes a [`format::Format`], a [`round::Mode`] and bits. Floating point is exact integer arithmetic over
//!   one description of all formats: [`round::unpack`] an encoding to its exact value, compute exactly ([`arith`],
//!   [`approx`], [`convert`], [`compare`]), [`round::pack`] with one rounding. No host floating point.
//! - The instructions ([`float`], [`half`], [`mixed`], [`integer`], [`logic`] and the rest of [`convert`] and
//!   [`compare`]) read the modifiers of a table row and call the core, lane by lane if the type is packed.
//!
//! Tests hold the core against rustc_apfloat, and the instructions against thousands of constants that ptxas folds.
//!
//! # What nothing backs
//!
//! Without a GPU these are *unverified*; each is marked so where it is decided:
//! - `.f64` NaNs: the first NaN operand is kept, made quiet; an invalid operation makes 0xfff8000000000000 ([`arith`],
//!   [`round::INVALID`]). The NaN of `rcp.approx.ftz.f64`. NaN operands of `min.f64` and `max.f64`, if both are.
//! - NaN to integer is the manual's text ([`convert::float_to_integer`]); `cvt.{rn,rz}.tf32` of NaN; `abs.bf16x2` and
//!   `neg.bf16x2` of NaN.
//! - `.relu` of -0.0 (+0 here), `.ftz` on half types, the sign that `.xorsign` gives beside a NaN operand.
//! - The small formats: NaN to `.e2m3`, `.e3m2`, `.e2m1`; what `.ue8m0` makes of zero and negative numbers; where
//!   `.rs` puts its random bits ([`convert::round_stochastically`]).
//! - The out-of-bounds NaN of `fma.oob` ([`half::fma`]).
//! - The order in which matrix products are summed ([`matrix`]), and the layout of the fragments of `wmma`.
//! - The layouts of tensor memory that the manual shows in figures only ([`tensor_memory`]).
//! - Of tensor maps what a swizzle by 64 bytes exchanges, and what fills floats that are out of bounds ([`tensormap`]).
//! - Of textures how GPUs round, and what the manual leaves open ([`texture`]).
//! - The approximate functions return the exact value rounded to nearest, which no GPU does throughout ([`approx`]).
#![forbid(unsafe_code)]

pub mod alternate;
pub mod approx;
pub mod arith;
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
