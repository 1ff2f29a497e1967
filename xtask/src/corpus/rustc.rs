//! Kernels in Rust: rustc compiles its `core` for the target with them, as no registry has that.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::directives::Job;
use super::succeed;

/// rustc 1.97.0-nightly; the ABI of kernels is unstable.
const TOOLCHAIN: &str = "nightly-2026-05-20";
const TARGET: &str = "nvptx64-nvidia-cuda";

/// Compiles each job in a package under `home`.
pub fn compile(jobs: &[Job], home: &Path, out: &Path) -> Result<(), String> {
    succeed(Command::new("rustup").args(["run", TOOLCHAIN, "rustc", "--version"])).map_err(|error| {
        format!(
            "{error}\ninstall it: rustup toolchain install {TOOLCHAIN} --profile minimal --component rust-src"
        )
    })?;
    fs::create_dir_all(home).map_err(|error| format!("{}: {error}", home.display()))?;
    for job in jobs {
        compile_one(job, home, &out.join(job.file()))?;
    }
    Ok(())
}

fn compile_one(job: &Job, home: &Path, file: &Path) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", home.display());
    let package = format!(
        "[package]\nname = \"kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\npath = {:?}\n[workspace]\n",
        job.source
    );
    fs::write(home.join("Cargo.toml"), package).map_err(failed)?;
    let mut command = Command::new("rustup");
    let folder = job.source.parent().unwrap_or(&job.source);
    // These are meant for our own crates.
    command.env_remove("RUSTFLAGS").env_remove("RUSTC").current_dir(home).args(["run", TOOLCHAIN]);
    command.args(["cargo", "rustc", "--quiet", "--release", "-Zbuild-std=core"]);
    command.args(["--target", TARGET, "--target-dir", "target", "--", "--emit"]);
    command.arg(format!("asm={}", file.display())).arg(format!("-Ctarget-cpu={}", job.target));
    // Messages of panics name the source.
    command.arg(format!("--remap-path-prefix={}=.", folder.display()));
    succeed(command.args(&job.options))
}
