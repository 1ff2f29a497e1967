//! Native code for loops of lowered PTX, on hosts with AVX-512.
//!
//! The interpreter takes all lanes of a gang through one operation, and then through the next: values pass through
//! memory between operations. Inside a loop that computes only, lanes are independent. So native code takes 16 lanes
//! through the whole loop, with their values in registers of the host, and then the next 16.
//!
//! - `loops`: which loops can be compiled ([`loops`])
//! - `operation`: the operations that native code has
//! - `emit`: machine code for a loop (`iced-x86`)
//! - `native`: machine code in memory, and its calling convention
//!
//! Lanes that diverge wait at basic blocks: each basic block has a mask of lanes that are at its start. The code visits
//! the basic blocks in layout order and skips those without lanes; a backward branch goes back at once. This is the
//! rule by which the interpreter chooses paths, so lanes meet again at the earliest place.
//!
//! The host's NaNs are not PTX's. Native code makes them PTX's only where an operation sees the bits, or where a value
//! leaves the loop. Nothing here touches memory of a kernel.
//!
//! Narrowest test: `ptxvm/tests/native.rs`. Every kernel of `tests/run` runs so, too, and random kernels do.

// Other hosts find loops and compile none.
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code))]

#[cfg(all(target_arch = "x86_64", unix))]
mod emit;
mod loops;
mod native;
mod operation;

pub use loops::{Loop, Value, loops};
pub use native::{Frame, Native};

/// The most slots of 4 bytes that pass from block to block of a loop, or into it: each has a register of the host.
pub const MOST_WORDS: usize = 22;
/// The most predicates that pass from block to block.
pub const MOST_PREDICATES: usize = 16;
/// The most basic blocks of a loop, together with its exits.
pub const MOST_BLOCKS: usize = 32;

impl Loop {
    /// Machine code for the loop. `None` on other hosts, if the loop needs too many registers, and if the system gives no
    /// memory for code.
    pub fn compile(&self) -> Option<Native> {
        #[cfg(all(target_arch = "x86_64", unix))]
        return [2, 1].into_iter().find_map(|parts| Native::new(&emit::emit(self, parts)?, parts));
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        return None;
    }
}
