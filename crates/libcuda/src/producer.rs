//! Who made machine code without PTX, and what to do so that there is PTX.

/// A producer of machine code, known by the file that hands it to the driver. Words in other places of a path mean nothing.
struct Producer {
    /// How the file's name begins.
    files: &'static [&'static str],
    /// Packages of Python that the file is in.
    packages: &'static [&'static str],
    /// What its users do.
    advice: &'static str,
}

/// The first that fits counts.
const PRODUCERS: &[Producer] = &[
    Producer {
        files: &["libtorch", "libc10"],
        packages: &["torchvision", "torchaudio"],
        advice: "PyTorch's wheels have no PTX of its own kernels: with PyTorch 2.8 or newer, `pip install ptxvm` beside it and \
                 `ptxvm exec -- python ...` run its operators as CPU kernels",
    },
    Producer {
        files: &[],
        packages: &["cupy", "cupy_backends"],
        advice: "CuPy compiles to PTX with CUPY_COMPILE_WITH_PTX=1, as `ptxvm exec` sets it; a library of CuPy's own \
                 needs a build with PTX (CUPY_NVCC_GENERATE_CODE=arch=compute_80,code=compute_80)",
    },
    Producer {
        files: &["cuda_utils"],
        packages: &["triton"],
        advice: "Triton hands PTX to the driver where ptxas is ptxvm's: run the program with `ptxvm exec`",
    },
    Producer {
        files: &["xla_cuda_plugin"],
        packages: &[],
        advice: "XLA hands PTX to the driver where ptxas is ptxvm's and its own compilers are off: run the program with `ptxvm exec`",
    },
    Producer {
        // numba calls the driver by Python's ctypes.
        files: &["libffi", "_ctypes"],
        packages: &["cuda", "numba", "numba_cuda"],
        advice: "NVRTC and nvJitLink give PTX if the program is run with `ptxvm exec`; in cuda.core, compile to \"ptx\"",
    },
    Producer {
        files: &[
            "libcublas",
            "libcudnn",
            "libcufft",
            "libcurand",
            "libcusolver",
            "libcusparse",
            "libnccl",
            "libnpp",
        ],
        packages: &[],
        advice: "This library of NVIDIA's has machine code alone, which ptxvm does not run",
    },
];

/// Where PyTorch puts the extensions that it builds.
const EXTENSIONS: (&str, &str) = (
    "torch_extensions",
    "This extension of PyTorch was built for GPUs alone: set TORCH_CUDA_ARCH_LIST=9.0+PTX and build it again",
);

/// What anybody does who has the sources.
const COMPILE: &str =
    "with nvcc, build with `-gencode arch=compute_80,code=compute_80` (or any other `code=compute_NN`)";

/// What to do so that there is PTX, by who calls the driver.
pub fn advice() -> String {
    advice_for(&crate::origin::file().unwrap_or_default())
}

fn advice_for(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let file = parts.last().copied().unwrap_or_default();
    let package = parts.windows(2).find(|two| two[0] == "site-packages" || two[0] == "dist-packages");
    let package = package.map(|two| two[1]).unwrap_or_default();
    let is_of = |producer: &&Producer| {
        producer.packages.contains(&package) || producer.files.iter().any(|start| file.starts_with(start))
    };
    let advice = match parts.contains(&EXTENSIONS.0) {
        true => Some(EXTENSIONS.1),
        false => PRODUCERS.iter().find(is_of).map(|producer| producer.advice),
    };
    match advice {
        Some(advice) => format!("ptxvm runs PTX. {advice}"),
        None => format!("ptxvm runs PTX: {COMPILE}; with Triton, run the program with `ptxvm exec`"),
    }
}

#[cfg(test)]
mod tests {
    use super::advice_for;

    #[test]
    fn each_producer_has_its_switch() {
        for (path, switch) in [
            ("/venv/site-packages/torch/lib/libtorch_cuda.so", "PyTorch's wheels have no PTX"),
            ("/home/me/.cache/torch_extensions/py311_cu128/add/add.so", "TORCH_CUDA_ARCH_LIST=9.0+PTX"),
            ("/venv/site-packages/cupy_backends/cuda/api/driver.cpython-311.so", "CUPY_COMPILE_WITH_PTX=1"),
            ("/home/me/.triton/cache/ABC/cuda_utils.cpython-311.so", "ptxas is ptxvm's"),
            ("/venv/site-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "its own compilers are off"),
            ("/venv/site-packages/nvidia/cublas/lib/libcublasLt.so.12", "machine code alone"),
            ("/usr/lib/libffi.so.8", "NVRTC and nvJitLink"),
            // What a path is called besides says nothing.
            ("/home/jaxon/cupy-tests/triton/program", "-gencode arch=compute_80,code=compute_80"),
            ("/home/me/program", "-gencode arch=compute_80,code=compute_80"),
            ("", "-gencode arch=compute_80,code=compute_80"),
        ] {
            assert!(advice_for(path).contains(switch), "{path}: {}", advice_for(path));
        }
    }
}
