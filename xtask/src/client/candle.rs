//! candle: the tests of candle-core on its CUDA device, in a copy of its source from crates.io. Its kernels are compiled by nvcc.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cargo::{package_source, tests};
use super::toolkit::Toolkit;
use super::{Outcome, Site, copy_folder};

const VERSION: &str = "0.11.1";
/// A release that its bindings of CUDA know.
const PACKAGES: &[&str] = &[
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-curand==10.*",
    "nvidia-cuda-nvrtc==13.0.*",
];
/// At least so many must pass.
const LEAST: usize = 82;

/// candle asks nvcc for machine code alone; this asks for PTX in its place.
const NVCC: &str = r#"#!/bin/sh
for word; do
    shift
    case $word in
        -gencode=*) word=${word%code=*}code=compute_${word##*code=sm_} ;;
    esac
    set -- "$@" "$word"
done
exec "$NVCC_OF_NVIDIA" "$@"
"#;

/// Runs the tests.
///
/// # Errors
/// When they cannot be run.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let copy = site.scratch.join("candle-core");
    if !copy.exists() {
        copy_folder(&source(&site.scratch)?, &copy)
            .map_err(|error| format!("{}: {error}", copy.display()))?;
    }
    let toolkit = Toolkit::install(site, PACKAGES)?;
    // Its bindings of CUDA look for one on the path, too.
    let folder = site.scratch.join("bin");
    let nvcc = folder.join("nvcc");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::write(&nvcc, NVCC)
        .and_then(|()| fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", nvcc.display()))?;
    let mut command = site.exec("cargo");
    command.args(["test", "--features", "cuda", "--tests", "--no-fail-fast", "--"]).args(&site.words);
    if site.words.is_empty() {
        // The same tests on the processor say nothing of ours.
        command.arg("gpu");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.current_dir(&copy).env("NVCC", nvcc).env("NVCC_OF_NVIDIA", toolkit.compiler());
    command.env("CUDA_COMPUTE_CAP", site.device.trim_start_matches("sm_"));
    command.env("LIBRARY_PATH", &toolkit.libraries).env("CARGO_TARGET_DIR", site.scratch.join("target"));
    command.env("LD_LIBRARY_PATH", toolkit.packages.join("nvidia/cu13/lib"));
    command.envs([("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "false")]);
    tests(&site.output(&mut command, "candle")?, LEAST)
}

/// Where cargo has the source, after a package of ours that has it as a dependency.
fn source(scratch: &Path) -> Result<PathBuf, String> {
    let package = scratch.join("package");
    let failed = |error: std::io::Error| format!("{}: {error}", package.display());
    fs::create_dir_all(package.join("src")).map_err(failed)?;
    fs::write(package.join("src/lib.rs"), "").map_err(failed)?;
    let manifest = format!(
        "[package]\nname = \"package\"\nedition = \"2024\"\n\n[dependencies]\ncandle-core = \"={VERSION}\"\n\n[workspace]\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).map_err(failed)?;
    package_source(Command::new("cargo").current_dir(package), "candle-core")
}
