//! cudarc: the tests of its library, in a copy of its source from crates.io.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Outcome, Site, copy_folder};
use crate::codegen::root;

/// Without its bindings of cuBLAS and other libraries that only NVIDIA has.
const FEATURES: &str = "std,driver,nvrtc,dynamic-loading,cuda-12090,f16";

/// Tests that are left out, and why.
const LEFT_OUT: &[(&str, &str)] = &[
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
        copy_folder(&source()?, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
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
    outcome(&site.output(&mut command, "cudarc")?)
}

/// Replaces words of a file.
fn replace(path: &Path, words: &str, by: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(failed)?;
    std::fs::write(path, text.replace(words, by)).map_err(failed)
}

/// Where cargo has the source of the release that this workspace uses.
fn source() -> Result<PathBuf, String> {
    let mut command = Command::new("cargo");
    let output = command.current_dir(root()).args(["metadata", "--format-version", "1", "--locked"]).output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    let data: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = data["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let package = packages.iter().find(|package| package["name"] == "cudarc").ok_or("cudarc is not there")?;
    let manifest = PathBuf::from(package["manifest_path"].as_str().ok_or("cudarc has no manifest")?);
    Ok(manifest.parent().ok_or("cudarc has no folder")?.to_owned())
}

/// Reads what the test harness of Rust wrote.
fn outcome(text: &str) -> Result<Outcome, String> {
    let last = text.lines().rfind(|line| line.starts_with("test result:"));
    let last = last.ok_or_else(|| format!("the tests did not come to their end:\n{text}"))?;
    let number = |what: &str| -> usize {
        let words: Vec<&str> = last.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        let place = words.iter().position(|word| *word == what).unwrap_or(0);
        words.get(place.wrapping_sub(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    Ok(Outcome {
        passed: number("passed"),
        skipped: number("ignored") + number("filtered"),
        failed: failed.map(str::to_owned).collect(),
        share: 100,
        least: 50,
        seconds: last
            .rsplit_once("finished in ")
            .map(|(_, seconds)| seconds.trim_end_matches('s').to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_harness_writes_is_read() {
        let text = "test driver::a ... ok\ntest driver::b ... FAILED\n\
                    test result: FAILED. 51 passed; 1 failed; 2 ignored; 0 measured; 1 filtered out; finished in 31.25s\n";
        let outcome = outcome(text).unwrap();
        assert_eq!((outcome.passed, outcome.skipped), (51, 3));
        assert_eq!(outcome.failed, ["driver::b"]);
        assert_eq!(outcome.seconds.as_deref(), Some("31.25"));
    }
}
