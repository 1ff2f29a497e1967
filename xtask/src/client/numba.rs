//! numba: its CUDA tests, which its wheel has.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::{Outcome, Site};

const PACKAGES: &[&str] = &[
    "numba==0.60.0",
    "numpy<2.1",
    "cffi",
    "nvidia-cuda-nvcc-cu12==12.4.*",
    "nvidia-cuda-nvrtc-cu12==12.4.*",
    "nvidia-cuda-runtime-cu12==12.4.*",
];

/// Runs the tests.
///
/// # Errors
/// When they cannot be run.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let python = site.python(PACKAGES)?;
    let toolkit = toolkit(site).map_err(|error| format!("the toolkit: {error}"))?;
    let tests: &[String] = if site.words.is_empty() { &["numba.cuda.tests".to_owned()] } else { &site.words };
    let script = site.scratch.join("run-numba.py");
    fs::write(&script, include_str!("scripts/numba_tests.py"))
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let mut command = site.exec(python);
    command.arg(&script).arg("-v").args(tests).env("CUDA_HOME", &toolkit);
    // One test fills half of the device's memory.
    command.env("LD_LIBRARY_PATH", toolkit.join("lib64")).env("PTXVM_DEVICE_MEMORY", "2G");
    let mut outcome = outcome(&site.output(&mut command, "numba")?)?;
    outcome.failed.push(
        "test_localmem.TestCudaLocalMem.test_struct_model_type_arr (not run: it writes past its array)"
            .to_owned(),
    );
    Ok(outcome)
}

/// A folder laid out as NVIDIA's toolkit, which numba looks for, of links to the packages.
fn toolkit(site: &Site) -> std::io::Result<PathBuf> {
    let (folder, nvidia) = (site.scratch.join("toolkit"), site.packages().join("nvidia"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("lib64"))?;
    fs::create_dir_all(folder.join("nvvm/lib64"))?;
    symlink(nvidia.join("cuda_nvcc/nvvm/libdevice"), folder.join("nvvm/libdevice"))?;
    // It wants a version behind the name.
    symlink(nvidia.join("cuda_nvcc/nvvm/lib64/libnvvm.so"), folder.join("nvvm/lib64/libnvvm.so.4"))?;
    symlink(nvidia.join("cuda_runtime/include"), folder.join("include"))?;
    for package in ["cuda_nvrtc", "cuda_runtime"] {
        for file in fs::read_dir(nvidia.join(package).join("lib"))? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            // What else is there belongs to Python, under the same name in each package.
            let Some((stem, _)) = name.split_once(".so.") else { continue };
            // `libnvrtc.so.12` also under the name without a version.
            for link in [&name, &format!("{stem}.so")] {
                symlink(file.path(), folder.join("lib64").join(link))?;
            }
        }
    }
    Ok(folder)
}

/// Reads what Python's unittest wrote.
///
/// # Errors
/// When the tests did not come to their end.
pub fn outcome(text: &str) -> Result<Outcome, String> {
    let ran = text.lines().rfind(|line| line.starts_with("Ran ") && line.contains(" test"));
    let ran = ran.ok_or("the tests did not come to their end")?;
    let total: usize = ran.split_whitespace().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0);
    let verdict =
        text.lines().rfind(|line| line.starts_with("OK") || line.starts_with("FAILED")).unwrap_or_default();
    let number = |what: &str| -> usize {
        let digits = verdict.split_once(what).map_or("", |(_, rest)| rest);
        digits.split(|c: char| !c.is_ascii_digit()).next().and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    let failed: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("ERROR: ").or_else(|| line.strip_prefix("FAIL: ")))
        .map(str::to_owned)
        .collect();
    // Subtests fail more than once.
    let mut names: Vec<&str> = failed.iter().map(|name| test_of(name)).collect();
    names.sort_unstable();
    names.dedup();
    let skipped = number("skipped=");
    Ok(Outcome {
        passed: total.saturating_sub(skipped + names.len()),
        skipped,
        failed: names.into_iter().map(str::to_owned).collect(),
        share: 98,
        least: 1200,
        seconds: ran.rsplit_once(" in ").map(|(_, seconds)| seconds.trim_end_matches('s').to_owned()),
    })
}

/// The test of a subtest, whose parameters stand behind `test_a (module.Class.test_a)`.
fn test_of(name: &str) -> &str {
    name.find(')').map_or(name, |end| &name[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unittest_writes_is_read() {
        let text = "FAIL: test_a (numba.cuda.tests.T.test_a) [1]\nFAIL: test_a (numba.cuda.tests.T.test_a) (index=2)\n\
                    ERROR: test_b (numba.cuda.tests.T.test_b)\nRan 1478 tests in 183.1s\n\nFAILED (failures=2, errors=1, skipped=100)\n";
        let outcome = outcome(text).unwrap();
        assert_eq!((outcome.passed, outcome.skipped), (1376, 100));
        assert_eq!(outcome.failed.len(), 2);
        assert_eq!(outcome.seconds.as_deref(), Some("183.1"));
        assert!(outcome.hold().is_ok());
    }
}
