//! Clients without tests of their own that run without PyTorch: scripts of ours.

use super::{Outcome, Site};

/// Runs a script on our driver with a GPU, and returns what it wrote.
fn run(
    site: &Site,
    device: &str,
    packages: &[&str],
    name: &str,
    script: &str,
    variables: &[(&str, String)],
) -> Result<String, String> {
    let python = site.python(packages)?;
    // Not the name of the module that it imports.
    let path = site.scratch.join(format!("run-{name}.py"));
    std::fs::write(&path, script).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut command = site.exec_on(device, python);
    command.arg(&path).args(&site.words).envs(variables.iter().map(|(name, value)| (name, value)));
    site.output(&mut command, name)
}

/// tinygrad, with PTX that it writes itself and with NVRTC: operations in all types, forward and backward, against numpy.
///
/// # Errors
/// When the script cannot be run.
pub fn tinygrad(site: &Site) -> Result<Outcome, String> {
    let packages =
        ["tinygrad==0.14.*", "numpy", "nvidia-cuda-nvrtc-cu12==12.9.*", "nvidia-cuda-runtime-cu12==12.9.*"];
    let script = include_str!("scripts/tinygrad_operations.py");
    let of_package = |path: &str| site.packages().join("nvidia").join(path).display().to_string();
    let mut outcome = Outcome::default();
    for (name, backend) in [("tinygrad-ptx", "CUDA:PTX"), ("tinygrad-nvrtc", "CUDA")] {
        let variables = [
            ("DEV", backend.to_owned()),
            ("LD_LIBRARY_PATH", of_package("cuda_nvrtc/lib")),
            ("CUDA_PATH", of_package("cuda_runtime")),
            // Its PTX has forms that ptxas rejects (`ex2.approx.f64`).
            ("PTXVM_LENIENT", "1".to_owned()),
        ];
        let text = run(site, &site.device, &packages, name, script, &variables)?;
        outcome.add(Outcome::of_script(&text, 279)?);
    }
    Ok(outcome)
}

/// Triton: kernels against numpy.
///
/// # Errors
/// When the script cannot be run.
pub fn triton(site: &Site) -> Result<Outcome, String> {
    let cache = site.scratch.join("cache").display().to_string();
    let packages = ["triton==3.4.0", "numpy", "ml_dtypes"];
    let (script, variables) = (include_str!("scripts/triton_kernels.py"), [("TRITON_CACHE_DIR", cache)]);
    let mut outcome = Outcome::default();
    // Whose matrix products become `mma`, and `wgmma`.
    for device in ["sm_80", "sm_90"] {
        let text = run(site, device, &packages, &format!("triton-{device}"), script, &variables)?;
        outcome.add(Outcome::of_script(&text, 33)?);
    }
    Ok(outcome)
}

/// A C program that is compiled against `cuda.h` of CUDA 13 and calls every function in it, with arguments that are good for nothing.
///
/// # Errors
/// When it cannot be compiled: a function is missing.
pub fn headers(site: &Site) -> Result<Outcome, String> {
    let packages = ["nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl"];
    let text = run(site, &site.device, &packages, "headers", include_str!("scripts/header_calls.py"), &[])?;
    Outcome::of_script(&text, 1400)
}
