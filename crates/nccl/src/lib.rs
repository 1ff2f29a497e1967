//! NVIDIA's library of collective communication (NCCL) on a CPU: `libnccl.so.2` on ptxvm's CUDA driver.
//!
//! The ranks of a communicator are threads, or devices of one thread, or processes of one machine. All of them map one file of shared
//! memory (`segment.rs`), in which each pair of ranks has a ring of bytes for each direction. An operation is work of a stream
//! (`mathlib`): it sends and receives through the rings, without ever waiting for one of them alone (`transfer.rs`), and reduces what
//! comes in the order of the ranks (`reduce.rs`). So ranks cannot block each other's way, and all get the same bits.
//!
//! `comm.rs` has communicators, `group.rs` what `ncclGroupEnd` does, `operation.rs` the operations, and `calls.rs` their functions.
//! Functions are declared with `api!`; `docs/nccl.md` lists them all.

mod calls;
mod comm;
mod communicators;
mod element;
mod group;
mod operation;
mod reduce;
mod segment;
mod status;
mod transfer;
mod unsupported;

pub use mathlib::Function;
pub use status::Status;

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] =
    &[communicators::API, calls::API, group::API, status::API, unsupported::API];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
