//! Finds what a launch does wrong without failing: races, misuse of barriers, values that nobody wrote, leaks.
//!
//! A [`Checker`] is a [`vm::LaunchObserver`]: it sees every access of every thread and everything that orders them, and says in
//! [`Finding`]s which two places are at odds, which threads, and what would mend it.
//!
//! The checker gets every event of a launch and hands it to the tools that want it; no tool sees more than any [`vm::LaunchObserver`] does.
//! racecheck is `race.rs` and what it uses (`block.rs` and `clock.rs` for what threads know, `segment.rs` and `shadow.rs` for what was
//! accessed), initcheck is `init.rs`, synccheck is `sync.rs`, `results.rs` and `tensor.rs`.
//!
//! Narrowest tests: `tests/tools`: a bug and its clean twin, under several schedules (`command`: `tools`); `ptxvm`: `graphs` for graph
//! codes of nvcc. Asynchronous work and proxies: `bulk_*`, `wgmma_*`, `tcgen05_*` of `tests/tools`.
#![forbid(unsafe_code)]

mod asynchronous;
mod block;
mod checker;
mod clock;
mod cluster;
mod finding;
mod groups;
mod init;
mod lifetime;
mod meeting;
mod now;
mod pending;
mod place;
mod proxies;
mod race;
mod release;
mod results;
mod segment;
mod shadow;
mod sync;
mod tensor;
mod together;
mod usage;
mod waits;
mod warpgroup;
mod watched;
mod words;
mod written;

pub use checker::Checker;
pub use finding::{Finding, FindingKind, Site, Tool, Tools};
pub use init::{GlobalMemory, is_padding};
