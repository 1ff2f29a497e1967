//! Vector handlers: what `sem` computes for one lane, for all lanes of a chunk at once.
//!
//! A handler is a lowering of a pure instruction and must return the bits that `sem` returns. Each is written once, as
//! a function of scalars or of blocks of 16 lanes, and compiled for every [`HostPath`]; what several instructions have in
//! common is one function, which is told what they differ in ([`LaneFn`]). A form without a handler is left to `sem`, lane by
//! lane: there is none today. The [`Helpers`] are what the interpreter needs besides, compiled the same way.
//!
//! - `path`, `x86`, `macros`: how one body becomes a function for every instruction set of the host
//! - `drive`: loops that apply a function to every lane
//! - `integer`, `divide`, `carry`, `bits`, `logic`, `video`: handlers of integers and bits
//! - `compare`, `select`, `property`: handlers that compare, choose and test
//! - `float`, `half`, `pairs`, `directed`, `directed64`, `embedded`, `approx`, `approx64`: handlers of floating point, each by the host's
//!   own arithmetic
//! - `rounded`, `alternate`: those of all other roundings and formats, by exact numbers (`numbers`) that are rounded once (`encoding`)
//! - `convert`: conversions
//! - `handler`: a way to run handlers without `unsafe`
//! - `helpers`, `mask_ops`, `gather`, `spread`, `alike`, `chain`: what is no instruction of its own
//! - [`memory`]: reads and writes of memory that others may use at the same time
//! - `matrix`, `product`, `fragment`, `quads`: products of matrices
//!
//! Narrowest tests: `tests/handlers`, `handlers_compute_what_sem_computes`, `all_values_of_short_sources` and `every_form_has_a_handler`,
//! on every path of the machine; `parts_of_operands` for what one function for many forms is told; `cargo exhaustive`.

mod alternate;
mod approx;
mod approx64;
mod bits;
mod carry;
mod chain;
mod compare;
mod convert;
mod directed;
mod directed64;
mod divide;
mod drive;
#[cfg(target_arch = "x86_64")]
mod embedded;
mod encoding;
mod equal_lanes;
mod float;
mod fragment;
mod gather;
mod half;
mod handler;
mod helpers;
mod integer;
mod logic;
mod macros;
mod mask_ops;
mod matrix;
pub mod memory;
mod numbers;
mod pairs;
mod path;
mod product;
mod property;
mod quads;
mod rounded;
mod select;
mod spread;
mod video;
#[cfg(target_arch = "x86_64")]
mod x86;

use isa::{Form, Mod, Picks};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

pub use chain::{Factor, Shape};
pub use fragment::{MatrixElement, SmallFloat, Tiles, Tiling};
pub use handler::{Handler, LaneBits, Operand, Signature};
pub use helpers::{Element, Extend, Helpers, LaneWidth, MemoryRows, helpers};
pub use matrix::{MatrixHelpers, Multiply};
pub use product::{ProductRoom, TileProduct, TileRegisters, WarpProduct};
pub use select::select_pair;
pub use spread::Spread;

/// Operands of a handler.
///
/// Registers are arrays of one element a lane: 2 bytes for types of 8 and 16 bits, 4 for 32, 8 for 64, and one
/// bit a lane for predicates (a `u16` for every 16 lanes). 8-bit values are zero- or sign-extended by their type.
/// A negated predicate operand (`!c`) is passed negated.
#[repr(C)]
pub struct LaneArgs {
    /// Destinations; the second, a predicate, is null when the form or the instruction has none, and may be where it is the
    /// carry. The first one may be null in forms that have a second (`_|q`).
    pub dst: [*mut u8; 2],
    /// Sources in operand order; behind them the carry, a predicate, of a form that reads it.
    pub src: [*const u8; LaneArgs::SOURCES],
    /// For each source, the bytes from 16 lanes to the next 16: those of 16 elements where the elements of all lanes
    /// stand one after the other, 0 where all groups of 16 have the same. Predicates are always arrays of bits.
    pub step: [usize; LaneArgs::SOURCES],
    /// Number of lanes to compute: a multiple of 16, at least 16.
    pub lanes: usize,
}

impl LaneArgs {
    /// The most sources that a form has.
    pub const SOURCES: usize = 5;
}

/// The most lanes that an array has: the threads of the largest block.
pub const MAX_LANES: usize = 1024;

/// A vector handler: one function, and what [`lookup`] tells it.
#[derive(Clone, Copy)]
pub struct LaneFn {
    function: RawFn,
    /// The function that `function` builds on, if there is one.
    inner: RawFn,
    parameters: Parameters,
}

/// The function of a handler.
type RawFn = unsafe fn(&LaneArgs, &LaneFn);

impl LaneFn {
    /// Does nothing.
    pub const NOTHING: LaneFn = {
        unsafe fn nothing(_: &LaneArgs, _: &LaneFn) {}
        LaneFn::plain(nothing)
    };

    /// A function that is told nothing.
    const fn plain(function: RawFn) -> LaneFn {
        LaneFn { function, inner: function, parameters: Parameters::NONE }
    }

    /// Computes all lanes.
    ///
    /// # Safety
    /// Every pointer that the form uses must be valid for `lanes` elements of its operand's width, in groups of 16 that
    /// follow each other by the operand's step, and null (with a step of 0) where the form uses it not; a destination is a
    /// source's very array or does not overlap it. The host must have the instructions of the path that it was looked up for.
    #[inline]
    pub unsafe fn call(&self, args: &LaneArgs) {
        // SAFETY: the caller's promise.
        unsafe { (self.function)(args, self) }
    }
}

impl std::fmt::Debug for LaneFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LaneFn({:p})", self.function as *const ())
    }
}

/// What a handler was told when it was looked up: a plain value, which only the function that it was made for reads.
#[derive(Clone, Copy)]
struct Parameters([MaybeUninit<u64>; Parameters::WORDS]);

impl Parameters {
    /// Words that a value may take.
    const WORDS: usize = 20;
    const NONE: Parameters = Parameters([MaybeUninit::uninit(); Parameters::WORDS]);

    fn new<T: Copy + 'static>(value: T) -> Parameters {
        const {
            assert!(size_of::<T>() <= size_of::<Parameters>() && align_of::<T>() <= align_of::<Parameters>());
        }
        let mut parameters = Parameters::NONE;
        // SAFETY: there is room, which is aligned.
        unsafe { parameters.0.as_mut_ptr().cast::<T>().write(value) }
        parameters
    }

    /// The value.
    ///
    /// # Safety
    /// They must have been made of a `T`.
    #[inline(always)]
    unsafe fn get<T: Copy + 'static>(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.0.as_ptr().cast::<T>() }
    }
}

/// Instruction sets of the host that handlers exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPath {
    /// What every x86-64 or aarch64 machine has.
    Portable,
    /// AVX2, FMA, F16C, BMI2.
    Avx2,
    /// AVX-512 F, BW, DQ, VL.
    Avx512,
}

impl HostPath {
    /// Every path, the slowest first.
    pub const ALL: [HostPath; 3] = [HostPath::Portable, HostPath::Avx2, HostPath::Avx512];

    /// The name that [`HOST_PATH_VARIABLE`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            HostPath::Portable => "portable",
            HostPath::Avx2 => "avx2",
            HostPath::Avx512 => "avx512",
        }
    }

    /// Whether handlers write their results by the instructions of [`memory`], so that these may stand in memory that others use.
    /// (Where vectors are narrow, instructions that the compiler cannot choose would cost most handlers more than half their speed.)
    pub const fn shares_results(self) -> bool {
        !matches!(self, HostPath::Portable) && !cfg!(miri)
    }

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            macro_rules! has {
                ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
            }
            let avx2 = || has!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt");
            match self {
                HostPath::Portable => true,
                HostPath::Avx2 => avx2(),
                HostPath::Avx512 => avx2() && has!("avx512f" "avx512bw" "avx512dq" "avx512vl"),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == HostPath::Portable
        }
    }
}

/// The environment variable that forces a path: `portable`, `avx2` or `avx512`.
pub const HOST_PATH_VARIABLE: &str = "PTXVM_HOST_PATH";

/// Why [`HOST_PATH_VARIABLE`] could not be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPathError {
    /// It names no path.
    Unknown(String),
    /// This machine does not have that path.
    Unavailable(HostPath),
}

impl std::fmt::Display for HostPathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostPathError::Unknown(name) => {
                write!(f, "{HOST_PATH_VARIABLE}={name}: not one of portable, avx2, avx512")
            }
            HostPathError::Unavailable(path) => {
                write!(f, "{HOST_PATH_VARIABLE}={}: this machine does not have it", path.name())
            }
        }
    }
}

impl std::error::Error for HostPathError {}

/// The paths that this machine has, the slowest first.
pub fn available_paths() -> Vec<HostPath> {
    HostPath::ALL.into_iter().filter(|path| path.is_available()).collect()
}

/// The path that a value of [`HOST_PATH_VARIABLE`] means; the fastest of the machine without one.
pub fn choose_host_path(forced: Option<&str>) -> Result<HostPath, HostPathError> {
    let Some(name) = forced else {
        return Ok(HostPath::ALL.into_iter().rfind(|path| path.is_available()).unwrap_or(HostPath::Portable));
    };
    match HostPath::ALL.into_iter().find(|path| path.name() == name) {
        None => Err(HostPathError::Unknown(name.to_owned())),
        Some(path) if path.is_available() => Ok(path),
        Some(path) => Err(HostPathError::Unavailable(path)),
    }
}

/// The path to use in this process, found once.
pub fn host_path() -> Result<HostPath, HostPathError> {
    static CHOICE: LazyLock<Result<HostPath, HostPathError>> = LazyLock::new(|| {
        let forced = std::env::var_os(HOST_PATH_VARIABLE);
        choose_host_path(forced.as_ref().map(|name| name.to_string_lossy()).as_deref())
    });
    CHOICE.clone()
}

/// The handler for a form of a rounding that instructions of the path take.
#[cfg(target_arch = "x86_64")]
fn embedded_rounding(opcode: isa::Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    embedded::find(opcode, sources, picks, path)
}

/// No other hosts have such.
#[cfg(not(target_arch = "x86_64"))]
fn embedded_rounding(_: isa::Opcode, _: usize, _: &Picks, _: HostPath) -> Option<LaneFn> {
    None
}

/// No other modifiers than these were picked.
fn only(picks: &Picks, allowed: &[Mod]) -> bool {
    picks.mods().iter().all(|m| allowed.contains(m))
}

/// The handler for a form, if it has one for this path. The path must be one that the machine has.
///
/// Handlers depend on the opcode, the number of operands and the picks alone, and on whether CC.CF is read. `mov` has one for a
/// register moved to a register.
pub fn lookup(form: &'static Form, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let operands: usize = form.operands_with(picks).map(|spec| spec.count(form, picks).0).sum();
    let sources = operands.checked_sub(1)?;
    if form.carry.reads || form.carry.writes {
        return carry::find(form, picks, path);
    }
    let opcode = form.opcode;
    compare::find(opcode, sources, picks, path)
        .or_else(|| select::find(opcode, sources, picks, path))
        .or_else(|| convert::find(opcode, sources, picks, path))
        .or_else(|| logic::find(opcode, sources, picks, path))
        .or_else(|| integer::find(opcode, sources, picks, path))
        .or_else(|| bits::find(opcode, sources, picks, path))
        .or_else(|| divide::find(opcode, sources, picks, path))
        .or_else(|| embedded_rounding(opcode, sources, picks, path))
        .or_else(|| float::find(opcode, sources, picks, path))
        .or_else(|| approx::find(opcode, sources, picks, path))
        .or_else(|| approx64::find(opcode, sources, picks, path))
        .or_else(|| half::find(opcode, sources, picks, path))
        .or_else(|| pairs::find(opcode, sources, picks, path))
        .or_else(|| property::find(opcode, sources, picks, path))
        .or_else(|| directed64::find(opcode, sources, picks, path))
        .or_else(|| alternate::find(opcode, sources, picks, path))
        .or_else(|| rounded::find(opcode, sources, picks, path))
        .or_else(|| video::find(opcode, sources, picks, path))
}
