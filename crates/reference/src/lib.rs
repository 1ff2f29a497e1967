//! The reference engine: executes the *checked module*, one thread at a time, through [`sem`].
//!
//! Tests compare the interpreter of crate `vm` with this engine. So the two must share nothing that could be wrong in
//! both: this engine has no lowered code, no vector handlers, no gangs and no inline caches. From `machine` it takes
//! the checked launch (the addresses of variables and parameters), global memory through checked copies, the text of
//! `printf`, and the messages of faults. It is written to be compared with the manual; nothing in it is fast.
//!
//! - A [`thread`] is a stack of frames: registers as 128-bit numbers, and an index in [`check::module::Body::code`].
//! - A [`block`] gives each of its threads a time slice. Then it resumes the threads that waited for one another, at
//!   barriers and at warp-level instructions.
//! - The [`grid`] runs CTAs in ascending order. It starts the next CTA before the last one has ended only if that one
//!   waits for another CTA.
//!
//! Instructions that depend on which threads run together (`activemask`, and `shfl` and `vote` without `.sync`)
//! execute only when no other thread of the warp can run. So they see as many lanes as possible.
//!
//! A time slice of a thread ends at atomics and volatile accesses. So spinning threads let others run, and code from
//! before sm_70 finds the lanes of a warp in lockstep, as it expects. CTAs run in the order of `--deterministic`; the
//! CTAs of a cooperative launch start together.
//!
//! A debugger may lead a launch ([`debug()`]): then the lanes of a warp run together, and the launch can go back in time.
//!
//! An observer may ask for the instructions of some threads, with the values that they read and write ([`trace`]).
#![forbid(unsafe_code)]

mod asynchronous;
mod atomic;
mod block;
mod builtin;
mod call;
mod cluster;
mod debug;
mod effect;
mod function;
mod grid;
mod instruction;
mod journal;
mod lockstep;
mod matrix;
mod memory;
mod tensor;
mod tensor_memory;
mod texture;
mod thread;
mod trace;
mod warp;

pub use debug::{Call, Debugger, Next, Status, Stop, debug};
pub use grid::run;
pub use lockstep::{Divergence, Turn};

/// Result of executing something that may fault.
type Step<T = ()> = Result<T, Box<machine::Fault>>;

/// Lanes of a warp.
const WARP_LANES: usize = 32;
