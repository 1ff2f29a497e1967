//! The reference engine: executes the *checked module*, one thread at a time, through [`sem`].
//!
//! It is what the interpreter of crate `vm` is held against, so it shares nothing with it that could be wrong in both: no
//! lowered code, no vector handlers, no chunks, no plans. Of `vm` it takes the launch that was checked (where variables and
//! parameters lie), global memory through checked copies, the text of `printf`, and the words of faults. It is written to be read
//! beside the manual; nothing in it is fast.
//!
//! - A [`thread`] is a stack of frames: registers as 128-bit numbers, a place in [`check::module::Body::code`].
//! - A [`block`] gives each of its threads a turn, then lets those go on who wait for one another: at barriers, at warp-level
//!   instructions.
//! - The [`grid`] runs blocks in ascending order; it starts the next one before the last has ended only if that one waits for
//!   another block.
//!
//! What depends on which threads run together (`activemask`, and `shfl` and `vote` without `.sync`) is done when no other
//! thread of the warp can run: with as many lanes as can ever be there.
//!
//! A turn of a thread ends at atomics and volatile accesses, so that spinning threads wait for others, and code from before sm_70 gets what
//! it relies on where lanes of a warp go in step. The order of blocks is that of `--deterministic`; blocks of a cooperative launch start
//! together.
#![forbid(unsafe_code)]

mod asynchronous;
mod atomic;
mod block;
mod builtin;
mod call;
mod cluster;
mod function;
mod grid;
mod instruction;
mod matrix;
mod memory;
mod special;
mod tensor;
mod tensor_memory;
mod texture;
mod thread;
mod warp;

pub use grid::run;

/// Result of executing something that may fault.
type Step<T = ()> = Result<T, Box<vm::Fault>>;

/// Lanes of a warp.
const WARP_LANES: usize = 32;
