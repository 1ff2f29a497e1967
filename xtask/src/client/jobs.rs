//! The jobs of docs/ci.md, each as a fresh machine runs it: an environment of its own, the packages, and pytest under `exec`.

use std::fs;
use std::process::Command;

use super::torch::wheel;
use super::{Outcome, Site, root, succeed};

/// A job.
struct Job {
    name: &'static str,
    /// What `pip install` gets, beside ptxvm.
    packages: &'static [&'static str],
    /// Whether its search path must lead to the packages of NVIDIA's libraries.
    is_told_where: bool,
}

const JOBS: [Job; 5] = [
    Job { name: "triton", packages: &["torch"], is_told_where: false },
    Job { name: "jax", packages: &["jax[cuda12]"], is_told_where: false },
    Job { name: "numba", packages: &["numba-cuda[cu12]"], is_told_where: false },
    Job {
        name: "cupy",
        packages: &[
            "cupy-cuda12x==12.3.0",
            "numpy<1.25",
            "nvidia-cublas-cu12==12.4.*",
            "nvidia-cuda-nvrtc-cu12==12.4.*",
            "nvidia-cuda-runtime-cu12==12.4.*",
            "nvidia-cufft-cu12==11.2.*",
            "nvidia-curand-cu12==10.3.*",
            "nvidia-cusolver-cu12==11.6.*",
            "nvidia-cusparse-cu12==12.3.*",
        ],
        is_told_where: true,
    },
    Job { name: "drjit", packages: &["drjit", "numpy"], is_told_where: false },
];

/// Runs them, or those whose names are given.
///
/// # Errors
/// When an environment cannot be made.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let wheel = wheel()?;
    let mut outcome = Outcome { least: JOBS.len(), share: 100, ..Outcome::default() };
    for job in &JOBS {
        if !site.words.is_empty() && !site.words.iter().any(|word| word == job.name) {
            continue;
        }
        let site = site.within(job.name)?;
        let python = site.python(&[job.packages, &["pytest"]].concat())?;
        let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
        succeed(Command::new(&python).args(install).arg(&wheel))?;
        let ptxvm = python.with_file_name("ptxvm");
        let mut command = Command::new(ptxvm);
        command.args(["exec", "--tool", "memcheck,racecheck", "--error-exitcode", "1", "--"]).arg(&python);
        command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        command.arg(root().join(format!("examples/ci/test_{}.py", job.name))).current_dir(&site.scratch);
        if job.is_told_where {
            command.env("LD_LIBRARY_PATH", libraries(&site)?);
        }
        let (succeeded, text) = site.end(&mut command, job.name)?;
        println!("{}:\n{text}", job.name);
        match succeeded {
            true => outcome.passed += 1,
            false => outcome.failed.push(job.name.to_owned()),
        }
    }
    Ok(outcome)
}

/// The folders of NVIDIA's libraries, as a search path.
fn libraries(site: &Site) -> Result<String, String> {
    let nvidia = site.packages().join("nvidia");
    let packages = fs::read_dir(&nvidia).map_err(|error| format!("{}: {error}", nvidia.display()))?;
    let folders = packages.flatten().map(|package| package.path().join("lib").display().to_string());
    Ok(folders.collect::<Vec<_>>().join(":"))
}
