//! Device memory: the arena of global allocations and the windows of the generic address space.
//!
//! A device address is an opaque number. It lies in an arena of its own, the same in every run:
//! allocations are placed one after the other, aligned to 256 bytes, with a red zone behind each, and an
//! address is never given out twice, so that a stale pointer is always recognised.

mod arena;
mod local;

pub use arena::{Allocation, Arena, OutOfMemory};
pub(crate) use local::LocalMemory;

use isa::Space;

/// Where the windows of the generic address space lie (PTX ISA, "Generic Addressing"). They fit in 32 bits,
/// so that `.address_size 32` sees the same layout. Each is [`WINDOW_BYTES`] long.
pub const SHARED_WINDOW: u64 = 0x0100_0000;
/// Window of `.local` memory; see [`SHARED_WINDOW`].
pub const LOCAL_WINDOW: u64 = 0x0200_0000;
/// Window of `.const` memory; see [`SHARED_WINDOW`].
pub const CONST_WINDOW: u64 = 0x0300_0000;
/// Window of kernel parameters; see [`SHARED_WINDOW`].
pub const PARAM_WINDOW: u64 = 0x0400_0000;
/// "Addresses" of functions, for indirect calls; see [`SHARED_WINDOW`].
pub const CODE_WINDOW: u64 = 0x0500_0000;
/// Size of each window in bytes.
pub const WINDOW_BYTES: u64 = 0x0100_0000;
/// First address of the arena of `.global` memory.
pub const ARENA_BASE: u64 = 0x1000_0000;

/// Distance between the "addresses" of functions.
pub const CODE_STRIDE: u64 = 16;

/// Offset to add to an address of `space` to make it generic (`cvta`). Zero for spaces whose addresses are
/// generic addresses already.
pub fn generic_offset(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Const => CONST_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

/// The space that a generic address lies in, and the address within it.
pub fn resolve_generic(address: u64) -> (Space, u64) {
    let in_window = |base: u64| address.wrapping_sub(base) < WINDOW_BYTES;
    if address >= ARENA_BASE {
        (Space::Global, address)
    } else if in_window(SHARED_WINDOW) {
        (Space::Shared, address - SHARED_WINDOW)
    } else if in_window(LOCAL_WINDOW) {
        (Space::Local, address - LOCAL_WINDOW)
    } else if in_window(CONST_WINDOW) {
        (Space::Const, address - CONST_WINDOW)
    } else if in_window(PARAM_WINDOW) {
        (Space::Param, address - PARAM_WINDOW)
    } else {
        (Space::Global, address)
    }
}
