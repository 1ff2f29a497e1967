//! cudarc: the tests of its library, in a copy of its source from crates.io.

use std::path::Path;
use std::process::Command;

use super::cargo::{package_source, tests};
use super::{Outcome, Site, copy_folder};
use crate::codegen::root;

/// Its bindings of the libraries that we have.
const FEATURES: &str =
    "std,driver,nvrtc,cublas,cublaslt,cufft,curand,cusolver,cusparse,nccl,dynamic-loading,cuda-12090,f16";

/// Tests that are left out, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "cublaslt::safe::tests::test_matmul_f32",
        "it allows TF32 and wants the accuracy of f32; a GPU with TF32 fails it too, with nearly the same number (its issue 317)",
    ),
    (
        "driver::safe::core::tests::test_default_pinned_host_reads_are_faster_than_write_combined",
        "it measures that reads of write-combining memory are slow, and memory of the host is all alike here",
    ),
    (
        "driver::safe::launch::tests::test_par_launch",
        "it measures that two launches take half the time on two streams, which needs two host cores without other work",
    ),
];

/// Runs the tests.
///
/// # Errors
/// When they cannot be run.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let copy = site.scratch.join("cudarc");
    if !copy.exists() {
        let source = package_source(Command::new("cargo").current_dir(root()).arg("--locked"), "cudarc")?;
        copy_folder(&source, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    site.python(&["nvidia-cuda-nvrtc-cu12==12.9.*", "nvidia-cuda-runtime-cu12==12.9.*"])?;
    let nvidia = site.packages().join("nvidia");
    // One test looks for NVIDIA's headers there.
    replace(
        &copy.join("src/driver/safe/launch.rs"),
        "/usr/include",
        &nvidia.join("cuda_runtime/include").display().to_string(),
    )?;
    let mut command = site.exec("cargo");
    command.args(["test", "--lib", "--no-default-features", "--features", FEATURES, "--"]).args(&site.words);
    // Some tests read how much memory is free before and after.
    command.arg("--test-threads=1").current_dir(&copy);
    for (name, why) in LEFT_OUT.iter().filter(|_| site.words.is_empty()) {
        eprintln!("left out: {name}: {why}");
        command.args(["--skip", name]);
    }
    command
        .env("LD_LIBRARY_PATH", nvidia.join("cuda_nvrtc/lib"))
        .env("CUDA_PATH", nvidia.join("cuda_runtime"));
    command.env("CARGO_TARGET_DIR", site.scratch.join("target"));
    tests(&site.output(&mut command, "cudarc")?, 50)
}

/// Replaces words of a file.
fn replace(path: &Path, words: &str, by: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(failed)?;
    std::fs::write(path, text.replace(words, by)).map_err(failed)
}
