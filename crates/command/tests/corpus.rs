//! Kernels of real compilers, launched with recorded inputs: every bit must be the expected one (`tests/corpus`), also while tools
//! watch, which find nothing that is an error.
//!
//! The kernels are not in this repository (tests/corpus/README.md). Cases of files that are not at hand are skipped, by
//! name and counted.

mod common;

use libtest_mimic::{Arguments, Trial};

/// Where synccheck finds what the kernels do wrong: they compute with registers of `tcgen05.ld`, and `tcgen05.wait::ld` comes behind that.
const NOT_AWAITED: [&str; 2] = ["triton39/matmul_f16_sm100.ptx", "triton-3.9/matmul_f16_sm100.ptx"];

fn main() {
    let arguments = Arguments::from_args();
    let folder = common::root().join("tests/corpus");
    let corpus = common::corpus::found();
    let mut trials = Vec::new();
    for (number, case) in common::cases(&folder).into_iter().flat_map(common::Case::launches).enumerate() {
        let tools =
            if NOT_AWAITED.contains(&case.kernel.as_str()) { "racecheck,initcheck,leakcheck" } else { "all" };
        for (way, options) in [
            ("interpreter", ["--engine", "interpreter"]),
            ("reference", ["--engine", "reference"]),
            ("tools", ["--tool", tools]),
        ] {
            let kernel =
                corpus.as_ref().map(|corpus| corpus.join(&case.kernel)).filter(|path| path.is_file());
            let (missing, name) = (kernel.is_none(), format!("{}::{way}", case.name(number)));
            let (folder, case) = (folder.clone(), case.clone());
            let run =
                move || Ok(case.run(&kernel.ok_or(common::corpus::MISSING)?, &folder, &options, None)?);
            trials.push(Trial::test(name, run).with_ignored_flag(missing));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
