//! Native code for loops and straight-line code of lowered PTX, on hosts with AVX-512 or AVX2.
//!
//! The interpreter takes all lanes of a gang through one operation, and then through the next: values pass through
//! memory between operations. Inside a loop without barriers, lanes are independent, or those of a warp are if they shuffle or
//! multiply matrices. So native code takes 16 or 32 lanes through the whole loop, with their values in registers of the host, and
//! then the next ones.
//!
//! - `loops`: which loops can be compiled ([`loops`])
//! - `sections`: which operations between barriers can be ([`straight`](fn@straight)): `straight`, those of a basic block; `traces`, of several
//! - `operation`: the operations that native code has; `translate`: how lowered ones become them
//! - `kinds`: how the lanes' values of a slot may be alike
//! - `ranges`: which numbers a value can be, for addresses that do not step evenly
//! - `forms`: the slots whose values step evenly from lane to lane: one number stands for all lanes
//! - `join`: loads of neighbouring elements as one
//! - `emit`: machine code for a loop (`iced-x86`); `emit/host.rs`: what differs between hosts
//! - `listing`: machine code as text, beside the PTX
//! - `native`: machine code in memory, and its calling convention
//!
//! Lanes that diverge wait at basic blocks: each basic block has a mask of lanes that are at its start. The code visits
//! the basic blocks in layout order and skips those without lanes; a backward branch goes back at once. This is the
//! rule by which the interpreter chooses paths, so lanes meet again at the earliest place.
//!
//! The host's NaNs are not PTX's. Native code makes them PTX's only where an operation sees the bits, or where a value
//! leaves the loop.
//!
//! Every access to memory is checked against a region that the interpreter has found ([`Region`]). If lanes are outside of
//! it, the code asks for another one. If there is none, it leaves before the operation, with all values where the
//! interpreter finds them: the interpreter goes on from there, and reports what is wrong.
//!
//! Narrowest test: `ptxvm/tests/native`. Every kernel of `tests/run` runs so, too, and random kernels do.

// Other hosts find loops and compile none.
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code))]

#[cfg(all(target_arch = "x86_64", unix))]
mod emit;
mod forms;
mod join;
mod kinds;
mod listing;
mod live;
mod loops;
mod native;
mod operation;
mod ranges;
mod sections;
mod straight;
mod traces;
mod translate;

use ir::Slot;

pub use forms::Form;
pub use loops::{Access, Loop, Value, loops, uniform};
pub use native::{Even, Frame, Held, Lanes, Native, Point, Region, SPILLED, Steps};
pub use sections::{Sections, StraightCode, straight};
pub use straight::{Item, MOST_POINTERS, Pointer, Straight, Visited};
pub use traces::Trace;

/// The most slots of 4 and 8 bytes that pass from block to block of a loop, or into it.
pub const MOST_WORDS: usize = 256;
/// The most slots whose values step evenly.
pub const MOST_EVENS: usize = 128;
/// The most sources and results of an operation that the interpreter's functions compute.
pub const MOST_OPERANDS: usize = 32;
/// The most accesses to memory in a loop.
pub const MOST_ACCESSES: usize = 64;
/// The most predicates that pass from block to block.
pub const MOST_PREDICATES: usize = 32;
/// The most basic blocks of a loop, together with its exits.
pub const MOST_BLOCKS: usize = 64;

/// The instructions that native code consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// AVX2, FMA and POPCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL besides.
    Avx512,
}

impl Host {
    /// Every host, the slowest first.
    pub const ALL: [Host; 2] = [Host::Avx2, Host::Avx512];

    /// There are registers enough for several values at once of all lanes that code takes together.
    pub(crate) fn has_many_vectors(self) -> bool {
        self == Host::Avx512
    }
}

impl Loop {
    /// Machine code for the loop, for a host, and for launches where the slots that `form` names step evenly at the start of the loop.
    /// `None` on other hosts, if the loop needs too many registers, and if the system gives no memory for code.
    pub fn compile(&self, host: Host, form: impl Fn(Slot) -> Option<Form>) -> Option<Native> {
        #[cfg(all(target_arch = "x86_64", unix))]
        {
            emit::emit(self, host, form)
        }
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            let _ = (host, form);
            None
        }
    }
}
