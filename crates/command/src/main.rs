//! The `ptxvm` command as a program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(command::main(&command::Call::of_process()))
}
