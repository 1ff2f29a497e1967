//! Vector handlers: each computes for all lanes of a gang what `sem` computes for one lane.
//!
//! A handler is a lowering of a pure instruction and must return the same bits as `sem`. Each handler is written
//! once, as a function of scalars or of blocks of 16 lanes, and compiled for every [`HostPath`]. Similar instructions
//! share one function, which takes their differences as parameters ([`LaneFn`]). The interpreter falls back to `sem`,
//! lane by lane, for a form without a handler; at present there is none. The [`Helpers`] are the interpreter's other
//! vector functions, compiled in the same way.
//!
//! - `path`, `x86`, `macros`: compile one body for every instruction set of the host
//! - `drive`: loops that apply a function to every lane
//! - `integer`, `divide`, `carry`, `bits`, `logic`, `video`: handlers of integers and bits
//! - `compare`, `select`, `property`: comparisons, selections and tests
//! - `float`, `half`, `pairs`, `directed`, `directed64`, `embedded`, `approx`, `approx64`: floating point by the
//!   host's own arithmetic
//! - `rounded`, `alternate`: all other roundings and formats, by exact numbers (`numbers`) that are rounded once
//!   (`encoding`)
//! - `convert`: conversions
//! - `handler`: a way to run handlers without `unsafe`
//! - `helpers`, `mask_ops`, `gather`, `spread`, `equal_lanes`, `chain`: functions that are not handlers of an
//!   instruction
//! - [`memory`]: accesses to memory that other threads may use at the same time
//! - `matrix`, `product`, `fragment`, `quads`: matrix products
//!
//! Narrowest tests: `tests/handlers`, `handlers_compute_what_sem_computes`, `all_values_of_short_sources` and
//! `every_form_has_a_handler`, on every path of the machine; `parts_of_operands` for the parameters of functions that
//! serve many forms; `cargo exhaustive`.

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
pub use product::{ProductScratch, TileProduct, TileRegisters, WarpProduct};
pub use select::select_pair;
pub use spread::Spread;

/// Operands of a handler.
///
/// Registers are arrays of one element per lane: 2 bytes for types of 8 and 16 bits, 4 for 32, 8 for 64. Predicates
/// have one bit per lane (a `u16` for every 16 lanes). 8-bit values are zero- or sign-extended by their type. A
/// negated predicate operand (`!c`) is passed negated.
#[repr(C)]
pub struct LaneArgs {
    /// Destinations. The second is a predicate; it is null if the form or the instruction has none, and may be null
    /// if it is the carry. The first may be null in forms that have a second (`_|q`).
    pub dst: [*mut u8; 2],
    /// Sources in operand order, followed by the carry (a predicate) if the form reads it.
    pub src: [*const u8; LaneArgs::SOURCES],
    /// For each source, the stride in bytes between groups of 16 lanes: 16 elements for a contiguous array, 0 if all
    /// groups have the same values. Predicates are always contiguous bits.
    pub step: [usize; LaneArgs::SOURCES],
    /// Number of lanes to compute: a multiple of 16, at least 16.
    pub lanes: usize,
}

impl LaneArgs {
    /// The maximum number of sources of a form.
    pub const SOURCES: usize = 5;
}

/// The maximum number of lanes of an array: the threads of the largest CTA.
pub const MAX_LANES: usize = 1024;

/// A vector handler: a function and the parameters that [`lookup`] gave it.
#[derive(Clone, Copy)]
pub struct LaneFn {
    function: RawFn,
    /// The function that `function` calls, if any; otherwise `function` itself.
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

    /// A function without parameters.
    const fn plain(function: RawFn) -> LaneFn {
        LaneFn { function, inner: function, parameters: Parameters::NONE }
    }

    /// Computes all lanes.
    ///
    /// # Safety
    /// Every pointer that the form uses must be valid for `lanes` elements of its operand's width, in groups of 16
    /// whose distance is the operand's step. Pointers that the form does not use must be null, with a step of 0. A
    /// destination must be exactly the array of a source or not overlap it. The host must have the instructions of
    /// the path that the handler was looked up for.
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

/// The parameters of a handler, fixed at lookup: a plain value that only the handler's own function reads.
#[derive(Clone, Copy)]
struct Parameters([MaybeUninit<u64>; Parameters::WORDS]);

impl Parameters {
    /// Maximum size of the value, in words.
    const WORDS: usize = 20;
    const NONE: Parameters = Parameters([MaybeUninit::uninit(); Parameters::WORDS]);

    fn new<T: Copy + 'static>(value: T) -> Parameters {
        const {
            assert!(size_of::<T>() <= size_of::<Parameters>() && align_of::<T>() <= align_of::<Parameters>());
        }
        let mut parameters = Parameters::NONE;
        // SAFETY: the assertion above guarantees room and alignment.
        unsafe { parameters.0.as_mut_ptr().cast::<T>().write(value) }
        parameters
    }

    /// The value.
    ///
    /// # Safety
    /// The value must have been made from a `T`.
    #[inline(always)]
    unsafe fn get<T: Copy + 'static>(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.0.as_ptr().cast::<T>() }
    }
}

/// Instruction sets of the host that handlers exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPath {
    /// The baseline of every x86-64 or aarch64 machine.
    Portable,
    /// AVX2, FMA, F16C, BMI2.
    Avx2,
    /// AVX-512 F, BW, DQ, VL.
    Avx512,
}

impl HostPath {
    /// Every path, the slowest first.
    pub const ALL: [HostPath; 3] = [HostPath::Portable, HostPath::Avx2, HostPath::Avx512];

    /// The name of the path in [`HOST_PATH_VARIABLE`].
    pub const fn name(self) -> &'static str {
        match self {
            HostPath::Portable => "portable",
            HostPath::Avx2 => "avx2",
            HostPath::Avx512 => "avx512",
        }
    }

    /// Whether handlers write their results by the instructions of [`memory`], so that destinations may be in memory
    /// that other threads use. (With narrow vectors, instructions that the compiler cannot choose would more than
    /// halve the speed of most handlers.)
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

/// Why the path in [`HOST_PATH_VARIABLE`] could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPathError {
    /// It names no known path.
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

/// The available paths of this machine, the slowest first.
pub fn available_paths() -> Vec<HostPath> {
    HostPath::ALL.into_iter().filter(|path| path.is_available()).collect()
}

/// The path that a value of [`HOST_PATH_VARIABLE`] names; without a value, the machine's fastest path.
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

/// The path to use in this process, determined once.
pub fn host_path() -> Result<HostPath, HostPathError> {
    static CHOICE: LazyLock<Result<HostPath, HostPathError>> = LazyLock::new(|| {
        let forced = std::env::var_os(HOST_PATH_VARIABLE);
        choose_host_path(forced.as_ref().map(|name| name.to_string_lossy()).as_deref())
    });
    CHOICE.clone()
}

/// The handler of a form whose rounding the host's instructions can encode.
#[cfg(target_arch = "x86_64")]
fn embedded_rounding(opcode: isa::Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    embedded::find(opcode, sources, picks, path)
}

/// Other hosts have no instructions with embedded rounding.
#[cfg(not(target_arch = "x86_64"))]
fn embedded_rounding(_: isa::Opcode, _: usize, _: &Picks, _: HostPath) -> Option<LaneFn> {
    None
}

/// Whether no modifiers other than these were picked.
fn only(picks: &Picks, allowed: &[Mod]) -> bool {
    picks.mods().iter().all(|m| allowed.contains(m))
}

/// The handler of a form, if there is one for this path. The machine must have the path.
///
/// A handler depends only on the opcode, the number of operands, the picks, and whether CC.CF is read. The handler of
/// `mov` moves a register to a register.
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
