//! Device memory: the arena of global allocations and the windows of the generic address space.
//!
//! A device address is an opaque number in an arena of its own, the same in every run. Allocations have ascending
//! addresses, aligned to 256 bytes, with gaps as wide as the address space allows, so that a wrong index does not reach
//! the next allocation. The arena never reuses an address, so a stale pointer is always recognised.
//!
//! The gap before an allocation is 64 GiB wide at first (8 MiB with 32-bit addresses), and shrinks as the region fills
//! (`table.rs`). Shared, local, constant and parameter space, and functions, have windows in the generic address space,
//! at the end of its first 4 GiB. The device heap of `malloc` follows the arena. Memory of the host is another
//! allocation, without bounds, which the caller must open explicitly
//! ([`Device::open_host_memory`](crate::Device::open_host_memory); `capi` does).

mod arena;
mod extent;
mod heap;
pub mod host;
mod storage;
mod table;

use std::ops::Range;

pub(crate) use arena::Arena;
pub use arena::{Held, HostMemoryError, OutOfMemory};
pub use extent::Extent;
pub use heap::Heap;
pub use table::Table;
pub use table::{AddressTaken, Keeper, Withheld};

use isa::Space;

/// Alignment of every allocation in bytes, as `cudaMalloc` promises.
const ALIGN: u64 = 256;

/// The first window of the generic address space (PTX ISA, "Generic Addressing"). The windows are in the first 4 GiB,
/// so that `.address_size 32` has the same layout, and at their end, where no pointer of a host process points. They
/// are adjacent and [`WINDOW_BYTES`] long each. The window of shared memory is as long for each block that a cluster
/// can have, in the order of ranks, and for one more, which is always empty.
pub const SHARED_WINDOW: u64 = LOCAL_WINDOW - (MOST_CLUSTER_BLOCKS as u64 + 1) * WINDOW_BYTES;
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
/// The most blocks of a cluster (CUDA Programming Guide, "Thread Block Clusters": more than 8 are not portable).
pub const MOST_CLUSTER_BLOCKS: u32 = 16;
/// First address of the arena of `.global` memory.
pub const ARENA_BASE: u64 = 1 << 36;
/// First address of the arena of 32-bit addresses, below the windows.
pub const NARROW_BASE: u64 = 0x1000_0000;
/// First of the addresses between the arena and the device heap, which are free for
/// [`Device::map_at`](crate::Device::map_at).
pub const MAPPED_BASE: u64 = HEAP_BASE - (1 << 52);
/// First address of the device heap, after the arena.
pub const HEAP_BASE: u64 = 1 << 56;
/// Addresses of the host, once its memory is opened to kernels. Lower addresses are free, so null pointers fault.
pub(crate) const HOST_MEMORY: Range<u64> = 1 << 16..1 << 48;

/// The start of the `alloca` stack in local memory: after the space for frames, and with the largest alignment that an
/// instruction can request.
pub const STACK_BASE: u64 = 1 << 23;

/// Distance between the "addresses" of functions.
pub const CODE_STRIDE: u64 = 16;

/// The "address" of a function, which indirect calls take.
#[inline]
pub fn function_address(id: check::module::FuncId) -> u64 {
    CODE_WINDOW + u64::from(id.0) * CODE_STRIDE
}

/// Offset to add to an address of `space` to make it generic (`cvta`). Zero for spaces whose addresses are
/// generic addresses already.
#[inline]
pub fn generic_offset(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Const => CONST_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

/// The space that contains a generic address, and the address within that space.
#[inline]
pub fn resolve_generic(address: u64) -> (Space, u64) {
    let shared = address.wrapping_sub(SHARED_WINDOW);
    if shared < LOCAL_WINDOW - SHARED_WINDOW {
        return (Space::Shared, shared);
    }
    let inner = address % WINDOW_BYTES;
    match address - inner {
        LOCAL_WINDOW => (Space::Local, inner),
        CONST_WINDOW => (Space::Const, inner),
        PARAM_WINDOW => (Space::Param, inner),
        _ => (Space::Global, address),
    }
}

/// The space and address that an address of `space` resolves to. A generic address of a constant is also valid in
/// `.global`: a GPU has one base for both, and ptxas generates the same load for `ld.global` and `ld` there.
#[inline]
pub fn resolve(space: Space, address: u64) -> (Space, u64) {
    match (space, resolve_generic(address)) {
        (Space::Generic, resolved) | (Space::Global, resolved @ (Space::Const, _)) => resolved,
        _ => (space, address),
    }
}

/// First address of a block's shared memory in the `.shared::cluster` window, by the block's rank in the cluster.
#[inline]
pub fn shared_base(rank: u32) -> u64 {
    u64::from(rank.min(MOST_CLUSTER_BLOCKS)) * WINDOW_BYTES
}

/// Splits an address of `.shared::cluster` into the rank of the block whose shared memory contains it, and the offset
/// in that memory.
#[inline]
pub fn shared_rank(address: u64) -> (u32, u64) {
    (u32::try_from(address / WINDOW_BYTES).unwrap_or(u32::MAX), address % WINDOW_BYTES)
}

/// `mapa`: the address in the shared memory of the block `rank` that corresponds to an address of `.shared::cluster`,
/// or to a `generic` one. If no cluster can have this rank, the result is an address without memory. A generic address
/// of other memory is returned unchanged.
#[inline]
pub fn map_shared(address: u64, rank: u32, generic: bool) -> u64 {
    match generic {
        true => match resolve_generic(address) {
            (Space::Shared, inner) => SHARED_WINDOW + map_shared(inner, rank, false),
            _ => address,
        },
        false => shared_base(rank) + shared_rank(address).1,
    }
}

/// The generic address of the mbarrier object that `tcgen05.commit` names. The machine code reads only the low half of
/// the register, as an address of `.shared::cluster` (ptxas 13.5 emits `UTCBAR [UR4]` for a pair of registers). So
/// programs work that widen such an address instead of converting it to a generic one (Triton 3.4).
#[inline]
pub fn shared_object(address: u64) -> u64 {
    if address < LOCAL_WINDOW - SHARED_WINDOW { SHARED_WINDOW + address } else { address }
}

/// `getctarank`: the rank of the block whose shared memory contains an address. 0 for other memory.
#[inline]
pub fn rank_of_address(address: u64, generic: bool) -> u32 {
    match (generic, resolve_generic(address)) {
        (false, _) => shared_rank(address).0,
        (true, (Space::Shared, inner)) => shared_rank(inner).0,
        (true, _) => 0,
    }
}
