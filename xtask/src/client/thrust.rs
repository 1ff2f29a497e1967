//! Thrust and CUB, as NVIDIA's package has them: a program of ours with their algorithms, compiled by nvcc.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{Outcome, Site, succeed};

/// nvcc and the headers; those of NVIDIA unpack into one tree.
const PACKAGES: [&str; 5] = [
    "nvidia-cuda-nvcc==13.*",
    "nvidia-nvvm==13.*",
    "nvidia-cuda-crt==13.*",
    "nvidia-cuda-runtime==13.*",
    "nvidia-cuda-cccl==13.*",
];
/// Algorithms.
const BAR: usize = 19;

/// Runs each algorithm 200 times, or with the arguments that are given: number of elements, and how often.
///
/// # Errors
/// When the program cannot be compiled, or breaks off.
pub fn run(site: &Site) -> Result<Outcome, String> {
    site.python(&PACKAGES)?;
    let toolkit = site.packages().join("nvidia/cu13");
    let failed = |error: std::io::Error| format!("{}: {error}", site.scratch.display());
    let (source, program) = (site.scratch.join("thrust_lookback.cu"), site.scratch.join("thrust_lookback"));
    fs::write(&source, include_str!("scripts/thrust_lookback.cu")).map_err(failed)?;
    // The linker looks for the name without a version, which the package does not have.
    let link = site.scratch.join("libcudart.so");
    let _ = fs::remove_file(&link);
    symlink(toolkit.join("lib/libcudart.so.13"), &link).map_err(failed)?;
    let mut nvcc = Command::new(toolkit.join("bin/nvcc"));
    nvcc.args(["-std=c++17", "--extended-lambda", "-cudart", "shared", "-arch", "compute_80", "-L"]);
    succeed(nvcc.arg(&site.scratch).arg("-o").arg(&program).arg(&source))?;
    let text = site.output(site.exec(&program).args(&site.words), "thrust")?;
    Outcome::of_script(&text, BAR)
}
