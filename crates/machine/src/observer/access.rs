//! Events of accesses to memory.

use std::fmt;

use diag::Span;
use ir::{AccessKind, Semantics};
use isa::Space;

use crate::mask::Mask;

event! {
    /// One operation's access to memory, by all threads that execute it together.
    #[derive(Clone, Debug)]
    pub struct AccessEvent<'a> {
        /// What the access does. An instruction that copies makes two or more accesses; the sources come first.
        pub kind: AccessKind,
        /// Order and scope.
        pub semantics: Semantics,
        /// The space that the instruction names; [`Space::Generic`] if none.
        pub space: Space,
        /// The instruction, in the PTX source.
        pub span: Span,
        /// The accesses of the threads that execute the instruction, in ascending order of threads. For a matrix that a
        /// warp accesses as a whole there is one entry for each row, with the thread that provides the row's address.
        pub lanes: &'a [LaneAccess],
        /// When the access completes.
        pub completion: Completion,
        /// The bytes to be written, and those in memory now.
        pub values: Values<'a>,
    }
}

/// When an access completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Before the thread continues.
    AtOnce,
    /// When the thread has waited for the `cp.async` group that contains the copy.
    Group,
    /// When the phase of an mbarrier object completes. The [`MbarrierEvent`] follows.
    Mbarrier,
    /// When the thread has waited for the bulk group that contains the copy.
    BulkGroup,
    /// When the warp has waited for the `wgmma` group that contains the operation.
    ProductGroup,
    /// When the phase completes of the mbarrier object that the thread's next `tcgen05.commit` names.
    Commit,
}

/// The bytes of an access. They are read only when the observer asks for them.
#[derive(Clone, Copy)]
pub struct Values<'a>(&'a dyn ReadValues);

/// Reads the bytes of an access, for [`Values`].
pub trait ReadValues {
    /// [`Values::stored`]
    fn stored(&self, lane: &LaneAccess) -> Option<u128>;
    /// [`Values::memory`]
    fn memory(&self, lane: &LaneAccess) -> Option<u128>;
}

impl<'a> Values<'a> {
    /// The bytes that an engine reads so.
    pub fn new(values: &'a dyn ReadValues) -> Values<'a> {
        Values(values)
    }

    /// The value that a thread is about to store, little-endian. `None` unless the access stores up to 16 bytes from registers.
    pub fn stored(&self, lane: &LaneAccess) -> Option<u128> {
        self.0.stored(lane)
    }

    /// The bytes in memory before the access, little-endian: up to 16 bytes of shared or global memory.
    pub fn memory(&self, lane: &LaneAccess) -> Option<u128> {
        self.0.memory(lane)
    }
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}

/// One thread's part of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAccess {
    /// `%ctaid` of its block.
    pub block: [u32; 3],
    /// Its linear index in the block: `%tid.x` varies fastest.
    pub thread: u32,
    /// The space of the resolved address. It is generic only if the address is in no space.
    pub space: Space,
    /// The address in that space. For shared memory, an address in the owner's shared memory.
    pub address: u64,
    /// `%ctaid` of the block that owns the memory: another block of the cluster if the access is to its shared memory,
    /// otherwise `block`.
    pub owner: [u32; 3],
    /// Size in bytes. 0 if a copy copies nothing.
    pub bytes: u64,
}

/// A memory access of one operation by threads of one block, with the same size and space for each thread. It is a
/// load, a store or an atomic operation that completes before the threads continue. Launches with clusters of several
/// blocks do not report it.
#[derive(Clone, Copy, Debug)]
pub struct BlockAccess<'a> {
    /// What it does.
    pub kind: AccessKind,
    /// Order and scope.
    pub semantics: Semantics,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The space of the resolved addresses. Never generic.
    pub space: Space,
    /// Bytes for each thread.
    pub bytes: u64,
    /// The threads that execute it: one bit for each thread of the block.
    pub threads: &'a [u64; 16],
    /// The address of each thread.
    pub addresses: BlockAddresses<'a>,
}

impl BlockAccess<'_> {
    /// Calls `f` with the address and size of each part of the accessed memory until `f` returns false. Returns whether
    /// every call returned true. Memory that several threads access may be passed only once.
    pub fn parts(&self, mut f: impl FnMut(u64, u64) -> bool) -> bool {
        let (bytes, threads) = (self.bytes, Mask(*self.threads));
        let BlockAddresses::Even { start, width, step, pitch } = self.addresses else {
            return threads.into_iter().all(|thread| f(self.addresses.of(thread as u32), bytes));
        };
        let end =
            threads.words().last().map_or(0, |last| 64 * threads.words().len() as u32 - last.leading_zeros());
        let are_all = threads.count() == end;
        if !are_all || step != 0 && step != bytes {
            return threads.into_iter().all(|thread| f(self.addresses.of(thread as u32), bytes));
        }
        let is_linear = pitch == step.wrapping_mul(width.into());
        let width = if is_linear { end } else { width.min(end) }.max(1);
        // With a pitch of 0 all rows access the same memory: one row is enough.
        let end = if pitch == 0 { width.min(end) } else { end };
        (0..end).step_by(width as usize).zip(0u64..).all(|(first, row)| {
            let count = if step == 0 { 1 } else { width.min(end - first).into() };
            f(start.wrapping_add(row.wrapping_mul(pitch)), count * bytes)
        })
    }
}

impl BlockAddresses<'_> {
    /// The address of a thread.
    pub fn of(&self, thread: u32) -> u64 {
        match *self {
            BlockAddresses::Each(all) => all.get(thread as usize).copied().unwrap_or(0),
            BlockAddresses::Even { start, width, step, pitch } => {
                let (column, row) = (u64::from(thread % width), u64::from(thread / width));
                start.wrapping_add(column.wrapping_mul(step)).wrapping_add(row.wrapping_mul(pitch))
            }
        }
    }
}

/// The addresses of a block's threads, in the resolved space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAddresses<'a> {
    /// Thread `t` has the address `start + t % width * step + t / width * pitch`.
    Even {
        /// The address of thread 0, even if thread 0 does not execute the operation.
        start: u64,
        /// Threads in a row.
        width: u32,
        /// From one thread of a row to the next, modulo 2^64.
        step: u64,
        /// From one row to the next, modulo 2^64.
        pitch: u64,
    },
    /// One address for each thread. The entries of threads that do not execute the operation are arbitrary.
    Each(&'a [u64]),
}
