//! PyCUDA: compiled from the source that its registry has, then its own tests and examples.
//!
//! It asks nvcc for machine code. The toolkit that it finds has `ptxvm` for its assembler, so that what it loads is PTX.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Outcome, Site, succeed};

const VERSION: &str = "2026.1";

/// What it is compiled with, what it needs, and what its tests need.
const PACKAGES: &[&str] = &[
    "numpy",
    "setuptools",
    "wheel",
    "mako",
    "platformdirs",
    "pytools",
    "pytest",
    "nvidia-cuda-nvcc==13.*",
    "nvidia-nvvm==13.*",
    "nvidia-cuda-crt==13.*",
    "nvidia-cuda-runtime==13.*",
    "nvidia-cuda-profiler-api==13.*",
    "nvidia-curand==10.*",
];

/// Those of its examples that need nothing else and make a context, which the others forget.
const EXAMPLES: &[&str] = &["demo.py", "dump_properties.py"];

/// At least so many of its tests pass.
const LEAST: usize = 280;

/// Runs all of it; with words, those of its tests that they choose.
///
/// # Errors
/// When it cannot be compiled, or the tests break off.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let python = site.python(PACKAGES)?;
    let toolkit = toolkit(site).map_err(|error| format!("the toolkit: {error}"))?;
    let source = install(site, &python, &toolkit)?;
    let cache = site.scratch.join("cache");
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let command = |program: &Path| {
        let mut command = site.exec(program);
        // One of the examples fills all of the device's memory.
        command.env("PTXVM_DEVICE_MEMORY", "1G").env("LD_LIBRARY_PATH", toolkit.join("lib"));
        command.env("PATH", path_with(&toolkit)).env("PYCUDA_CACHE_DIR", &cache);
        command
    };
    let mut tests = command(&python);
    tests.args(["-m", "pytest", "-v", "-p", "no:cacheprovider", "--color=no"]);
    tests.current_dir(source.join("test"));
    if !site.words.is_empty() {
        tests.args(["-k", &site.words.join(" or ")]);
    }
    let mut outcome = outcome(&site.output(&mut tests, "pycuda-tests")?)?;
    if !site.words.is_empty() {
        return Ok(outcome);
    }
    for name in EXAMPLES {
        let mut example = command(&python);
        example.arg(source.join("examples").join(name));
        let log = format!("pycuda-{}", name.trim_end_matches(".py"));
        // Python says so when it ends with an error.
        if site.output(&mut example, &log)?.contains("Traceback") {
            outcome.failed.push(format!("examples/{name}"));
        } else {
            outcome.passed += 1;
        }
    }
    Ok(outcome)
}

/// The folders of programs, a toolkit's first.
fn path_with(toolkit: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(toolkit.join("bin")).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}

/// A folder laid out as NVIDIA's toolkit, of links to the packages, with `ptxvm` as its assembler.
fn toolkit(site: &Site) -> std::io::Result<PathBuf> {
    let (folder, package) = (site.scratch.join("toolkit"), site.packages().join("nvidia/cu13"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in ["bin", "lib"] {
        fs::create_dir_all(folder.join(part))?;
        for file in fs::read_dir(package.join(part))? {
            let file = file?;
            symlink(file.path(), folder.join(part).join(file.file_name()))?;
        }
    }
    for part in ["include", "nvvm"] {
        symlink(package.join(part), folder.join(part))?;
    }
    fs::remove_file(folder.join("bin/ptxas"))?;
    symlink(&site.ptxvm, folder.join("bin/ptxas"))?;
    // What its extension is linked with.
    symlink(package.join("lib/libcurand.so.10"), folder.join("lib/libcurand.so"))?;
    symlink(site.ptxvm.with_file_name("libptxvm_libcuda.so"), folder.join("lib/libcuda.so"))?;
    Ok(folder)
}

/// Compiles it, unless that was done before; returns its source, which has the tests.
fn install(site: &Site, python: &Path, toolkit: &Path) -> Result<PathBuf, String> {
    let folder = site.scratch.join("source");
    let source = folder.join(format!("pycuda-{VERSION}"));
    if source.exists() && site.packages().join("pycuda").exists() {
        return Ok(source);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]);
    pip.args(["--no-binary", "pycuda", &format!("pycuda=={VERSION}"), "-d"]).arg(&folder);
    succeed(&mut pip)?;
    let archive = folder.join(format!("pycuda-{VERSION}.tar.gz"));
    succeed(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(&folder))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]).arg(&archive);
    pip.env("CUDA_ROOT", toolkit).env("PATH", path_with(toolkit)).env("CPATH", toolkit.join("include"));
    succeed(pip.env("LIBRARY_PATH", toolkit.join("lib")))?;
    Ok(source)
}

/// Reads what pytest wrote.
fn outcome(text: &str) -> Result<Outcome, String> {
    let last = text.lines().rfind(|line| line.starts_with('=') && line.contains(" in "));
    let last = last.ok_or("the tests did not come to their end")?;
    let count = |word: &str| {
        let mut found = text.lines().filter_map(|line| line.split_once("::"));
        found.by_ref().filter(|(_, line)| line.split_whitespace().nth(1) == Some(word)).count()
    };
    let failed = text.lines().filter_map(|line| line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")));
    let seconds = last.rsplit_once(" in ").and_then(|(_, rest)| rest.split_once('s'));
    Ok(Outcome {
        passed: count("PASSED"),
        skipped: count("SKIPPED"),
        failed: failed.map(|line| line.split(" - ").next().unwrap_or(line).to_owned()).collect(),
        share: 98,
        least: LEAST,
        seconds: seconds.map(|(seconds, _)| seconds.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pytest_writes_is_read() {
        let text = "test_driver.py::TestDriver::test_a PASSED [ 25%]\ntest_driver.py::TestDriver::test_b FAILED [ 50%]\n\
                    test_driver.py::test_c[float32] SKIPPED (no) [ 75%]\ntest_gpuarray.py::test_d PASSED [100%]\n\
                    FAILED test_driver.py::TestDriver::test_b - ValueError: x\n\
                    = 1 failed, 2 passed, 1 skipped in 12.50s =\n";
        let outcome = outcome(text).unwrap();
        assert_eq!((outcome.passed, outcome.skipped), (2, 1));
        assert_eq!(outcome.failed, ["test_driver.py::TestDriver::test_b"]);
        assert_eq!(outcome.seconds.as_deref(), Some("12.50"));
        assert!(super::outcome("nothing").is_err());
    }
}
