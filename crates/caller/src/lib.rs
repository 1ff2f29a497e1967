//! The program that calls the driver, the runtime or NVML: pointers and structures that it passes, and messages to it.

pub mod log;
mod pointers;
pub mod structures;

pub use pointers::{In, Library, Out, Text};
