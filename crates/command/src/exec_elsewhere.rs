//! `ptxvm exec` and `ptxvm env` on systems other than Linux: a refusal.

use super::Call;
use super::options::{EnvOptions, ExecOptions};
use super::report::Failure;

/// Says that the driver exists for Linux only.
///
/// # Errors
/// Always.
pub fn exec(_: &ExecOptions, _: &Call) -> Result<u8, Failure> {
    Err(refusal("exec"))
}

/// The same.
///
/// # Errors
/// Always.
pub fn env(_: &EnvOptions, _: &Call) -> Result<(), Failure> {
    Err(refusal("env"))
}

fn refusal(command: &str) -> Failure {
    let message = format!("`{command}` gives programs a CUDA driver for Linux, and this system is none");
    Failure::usage(message).help(
        "run the program in a container or in WSL; `run` takes the PTX in a program or library here, too",
    )
}
