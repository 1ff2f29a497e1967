//! Kernels that Triton made of our sources (`tests/triton`): every bit must be the expected one on both engines, also while tools watch,
//! which find nothing that is an error.

mod common;

use libtest_mimic::{Arguments, Trial};

/// Where Triton specialises warps, each warp of a warpgroup executes a `setmaxnreg` of its own, which the manual wants to be one instruction
/// for all four: synccheck says so.
const SPECIALISED: &str = "specialised";

fn main() {
    let arguments = Arguments::from_args();
    let folder = common::root().join("tests/triton");
    let mut trials = Vec::new();
    for (number, case) in common::cases(&folder).into_iter().enumerate() {
        let tools = if case.kernel.contains(SPECIALISED) { "racecheck,initcheck,leakcheck" } else { "all" };
        for (way, options) in [
            ("interpreter", ["--engine", "interpreter"]),
            ("reference", ["--engine", "reference"]),
            ("schedule_1", ["--schedule", "1"]),
            ("tools", ["--tool", tools]),
        ] {
            let (folder, case) = (folder.clone(), case.clone());
            trials.push(Trial::test(format!("{}::{way}", case.name(number)), move || {
                Ok(case.run(&folder.join(&case.kernel), &folder, &options, None)?)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
