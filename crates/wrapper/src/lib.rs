//! For libraries that stand before one of NVIDIA's (`crates/nvrtc`, `crates/nvjitlink`): finds that one, and calls it.
//!
//! `ptxvm exec` puts a copy of such a library in the way of NVIDIA's (`crates/audit`), which the copy opens by the path
//! that the program's search led to. The copy has NVIDIA's name inside (`DT_SONAME`), so that whoever asks for that name
//! later finds the copy, which was there first.
//!
//! The exports are written by the library's build script ([`exports`]).

pub mod exports;

#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
pub use library::{Library, Word};
