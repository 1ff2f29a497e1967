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

/// Triton, in the release that most programs have and in a newer one: kernels against numpy, then those with tensor descriptors, scaled
/// blocks and specialised warps.
///
/// # Errors
/// When a script cannot be run.
pub fn triton(site: &Site) -> Result<Outcome, String> {
    let common = site.scratch.join("triton_common.py");
    std::fs::write(&common, include_str!("scripts/triton_common.py"))
        .map_err(|error| format!("{}: {error}", common.display()))?;
    let kernels = ("kernels", include_str!("scripts/triton_kernels.py"), 33);
    let tensors = ("tensors", include_str!("scripts/triton_tensors.py"), 33);
    let mut outcome = Outcome::default();
    for release in ["3.4.0", "3.9.0"] {
        let variables = [
            ("TRITON_CACHE_DIR", site.scratch.join("cache").display().to_string()),
            ("TRITON_DEFAULT_FP_FUSION", "1".to_owned()),
        ];
        let packages = [&format!("triton=={release}"), "numpy", "ml_dtypes"];
        // Whose matrix products become `mma`, `wgmma` and `tcgen05.mma`.
        for (device, scripts) in
            [("sm_80", &[kernels][..]), ("sm_90", &[kernels, tensors]), ("sm_100", &[kernels, tensors])]
        {
            for &(name, script, least) in scripts {
                let name = format!("triton-{release}-{name}-{device}");
                let text = run(site, device, &packages, &name, script, &variables)?;
                outcome.add(Outcome::of_script(&text, least)?);
            }
        }
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
