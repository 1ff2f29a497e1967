//! Device memory: the arena of global allocations and the windows of the generic address space.
//!
//! A device address is an opaque number. It lies in an arena of its own, the same in every run: allocations are placed
//! one after the other, aligned to 256 bytes, with gaps as wide as the address space allows, so that a wrong index does
//! not land in the next array; and an address is never given out twice, so that a stale pointer is always recognised.

mod arena;
mod extent;
mod heap;
pub(crate) mod host;
mod local;
mod storage;
mod table;

use std::ops::Range;

pub(crate) use arena::Arena;
pub use arena::{HostMemoryError, OutOfMemory};
pub(crate) use extent::Extent;
pub(crate) use heap::Heap;
pub(crate) use local::LocalMemory;
pub use local::STACK_BASE;
pub use table::AddressTaken;
pub(crate) use table::Table;

use isa::Space;

/// Alignment of every allocation in bytes, as `cudaMalloc` promises.
const ALIGN: u64 = 256;

/// Where the windows of the generic address space lie (PTX ISA, "Generic Addressing"). They fit in 32 bits,
/// so that `.address_size 32` sees the same layout, and lie at their end, where no pointer of a host process
/// points. Each is [`WINDOW_BYTES`] long, one after the other.
pub const SHARED_WINDOW: u64 = 0xfa00_0000;
/// Window of `.local` memory; see [`SHARED_WINDOW`].
pub const LOCAL_WINDOW: u64 = 0xfb00_0000;
/// Window of `.const` memory; see [`SHARED_WINDOW`].
pub const CONST_WINDOW: u64 = 0xfc00_0000;
/// Window of kernel parameters; see [`SHARED_WINDOW`].
pub const PARAM_WINDOW: u64 = 0xfd00_0000;
/// "Addresses" of functions, for indirect calls; see [`SHARED_WINDOW`].
pub const CODE_WINDOW: u64 = 0xfe00_0000;
/// Size of each window in bytes.
pub const WINDOW_BYTES: u64 = 0x0100_0000;
/// First address of the arena of `.global` memory.
pub const ARENA_BASE: u64 = 1 << 36;
/// The same for addresses of 32 bits, below the windows.
pub const NARROW_BASE: u64 = 0x1000_0000;
/// First of the addresses between the arena and the device heap, where nothing lies but what [`Device::map_at`](crate::Device::map_at) is
/// told to put there.
pub const MAPPED_BASE: u64 = HEAP_BASE - (1 << 52);
/// First address of the device heap, behind the arena.
pub const HEAP_BASE: u64 = 1 << 56;
/// Addresses of the host, once its memory is opened to kernels. Nothing lies below: null pointers fault.
pub(crate) const HOST_MEMORY: Range<u64> = 1 << 16..1 << 48;

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
    let inner = address % WINDOW_BYTES;
    match address - inner {
        SHARED_WINDOW => (Space::Shared, inner),
        LOCAL_WINDOW => (Space::Local, inner),
        CONST_WINDOW => (Space::Const, inner),
        PARAM_WINDOW => (Space::Param, inner),
        _ => (Space::Global, address),
    }
}
