//! Finds what a launch does wrong without failing: races, misuse of barriers, unwritten values, leaks.
//!
//! A [`Checker`] is a [`machine::LaunchObserver`]: it sees every access of every thread, and everything that orders accesses. Its
//! [`Finding`]s name the two places that conflict, the threads, and a repair.
//!
//! The checker gets every event of a launch and passes it to the tools that want it; no tool sees more than any [`machine::LaunchObserver`]
//! does. racecheck is `race.rs` and what it uses (`block.rs` and `clock.rs` for what threads know, `segment.rs` and `shadow.rs` for
//! recorded accesses), initcheck is `init.rs`, synccheck is `sync.rs`, `results.rs` and `tensor.rs`.
//!
//! Other observers answer questions: [`WriteWatch`] who wrote some bytes, [`FirstNonFinite`] where the first NaN comes from, and
//! [`Counters`] how many sectors and bank conflicts each access costs on a GPU.
//!
//! Narrowest tests: `tests/tools`, each a bug and its correct twin, under several schedules (`command`: `tools`); `ptxvm`: `graphs` for
//! graph codes of nvcc. Asynchronous work and proxies: `bulk_*`, `wgmma_*`, `tcgen05_*` of `tests/tools`.
#![forbid(unsafe_code)]

mod asynchronous;
mod block;
mod checker;
mod clock;
mod cluster;
mod counters;
mod finding;
mod groups;
mod init;
mod lifetime;
mod meeting;
mod nonfinite;
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
mod write_watch;
mod written;

pub use checker::Checker;
pub use counters::{Counters, RequestCounts};
pub use finding::{Finding, FindingKind, Site, Tool, Tools};
pub use init::{GlobalMemory, is_padding};
pub use nonfinite::{FirstNonFinite, Flow, NamedValue, NonFinite, Origin, Passage, Source};
pub use write_watch::{WatchedWrite, WriteWatch};
