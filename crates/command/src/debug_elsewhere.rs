//! In place of `debug` where there is no terminal.

use super::Call;
use super::options::DebugOptions;
use super::report::Failure;

/// Says that there is no debugger.
///
/// # Errors
/// Always.
pub fn debug(_: &DebugOptions, _: &Call) -> Result<(), Failure> {
    Err(Failure::usage("the debugger needs a terminal or an editor"))
}
