//! `ptxvm exec` on systems other than Linux: a refusal.

use super::Call;
use super::options::ExecOptions;
use super::report::Failure;

/// Says that the driver exists for Linux only.
///
/// # Errors
/// Always.
pub fn exec(_: &ExecOptions, _: &Call) -> Result<u8, Failure> {
    let failure = Failure::usage("`exec` gives programs a CUDA driver for Linux, and this system is none");
    Err(failure.help(
        "run the program in a container or in WSL; `run` takes the PTX in a program or library here, too",
    ))
}
