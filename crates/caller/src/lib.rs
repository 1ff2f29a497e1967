//! The program that calls the driver, the runtime or NVML: pointers that it passes, and messages to it.

pub mod log;
mod pointers;

pub use pointers::{In, Library, Out, Text};
