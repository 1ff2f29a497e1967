//! Frameworks for Python that bring their own compilers: each is installed as its registry has it, and runs its own tests.
//!
//! docs/clients.md says of each what cannot pass, and why.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::pytest::Suite;
use super::{Outcome, Site};

/// Modules of Dr.Jit's tests that need no OptiX.
const DRJIT: &str = "annotations arithmetic assert ast autodiff color complex conversion dda detail event format func history \
    if_stmt if_stmt_ad indexing init matrix opt promote quaternion rand reduction resample switch tensor \
    texture traits typing while_loop while_loop_ad";

/// Modules of Taichi's tests.
const TAICHI: &str = "abs atomic basics bitmasked cast compare fill if loops ndrange reduction scan sort";

/// Modules of numba-cuda's tests. `localmem` has a test that writes past its array, which breaks the context for all behind it.
const NUMBA: &str = "array array_args array_methods atomics blackscholes boolean casting complex constmem device_func \
    enums forall globals idiv intrinsics lang minmax powi sm sync warp_ops";

/// Dr.Jit: its tests of the CUDA backend.
///
/// # Errors
/// When it cannot be installed.
pub fn drjit(site: &Site) -> Result<Outcome, String> {
    let suite = Suite {
        python: site.python(&["drjit==1.5.0", "numpy", "pytest"])?,
        folder: site.source("mitsuba-renderer/drjit", "v1.5.0")?.join("tests"),
        modules: tests(DRJIT),
        chosen: "cuda or not llvm",
        limit: 300,
        least: 4000,
        share: 99,
        ..Suite::default()
    };
    suite.run(site)
}

/// SlangPy: the tests of its CUDA device, which its wheel has.
///
/// # Errors
/// When it cannot be installed.
pub fn slangpy(site: &Site) -> Result<Outcome, String> {
    let python = site.python(&[
        "slangpy==0.43.1",
        "numpy",
        "pytest",
        "deepdiff",
        "nvidia-cuda-nvrtc-cu12==12.9.*",
        "nvidia-cuda-runtime-cu12==12.9.*",
    ])?;
    let toolkit = toolkit(site).map_err(|error| format!("the toolkit: {error}"))?;
    let folder = site.packages().join("slangpy/tests");
    let modules = modules(&folder, &["device", "slangpy_tests"], &["torch", "raytracing"])?;
    let suite = Suite {
        python,
        folder,
        modules,
        chosen: "cuda",
        variables: vec![
            ("CUDA_PATH", toolkit.display().to_string()),
            ("LD_LIBRARY_PATH", toolkit.join("lib64").display().to_string()),
        ],
        limit: 300,
        least: 800,
        share: 98,
        ..Suite::default()
    };
    suite.run(site)
}

/// Taichi: its tests of language and memory, on the CUDA backend alone.
///
/// # Errors
/// When it cannot be installed.
pub fn taichi(site: &Site) -> Result<Outcome, String> {
    let source = site.source("taichi-dev/taichi", "v1.7.4")?;
    let folder = source.join("tests/python");
    let suite = Suite {
        python: site.python(&[
            "taichi==1.7.4",
            "numpy<2.3",
            "pytest",
            "pytest-rerunfailures",
            "pytest-xdist",
        ])?,
        folder,
        modules: tests(TAICHI),
        variables: vec![("TI_WANTED_ARCHS", "cuda".to_owned()), ("PYTHONPATH", source.display().to_string())],
        limit: 600,
        least: 150,
        share: 99,
        ..Suite::default()
    };
    suite.run(site)
}

/// Modules of CuPy's tests: arrays and kernels, and what its libraries do.
const CUPY: &str = "
    cupy_tests/core_tests/test_elementwise cupy_tests/core_tests/test_ndarray_indexing
    cupy_tests/core_tests/test_ndarray_reduction cupy_tests/core_tests/test_ndarray_unary_op
    cupy_tests/core_tests/test_scan cupy_tests/core_tests/test_userkernel cupy_tests/logic_tests/test_comparison
    cupy_tests/fft_tests/test_cache cupy_tests/fft_tests/test_callback cupy_tests/fft_tests/test_fft
    cupy_tests/linalg_tests/test_decomposition cupy_tests/linalg_tests/test_eigenvalue
    cupy_tests/linalg_tests/test_einsum cupy_tests/linalg_tests/test_norms cupy_tests/linalg_tests/test_product
    cupy_tests/linalg_tests/test_solve
    cupy_tests/random_tests/test_bit_generator cupy_tests/random_tests/test_distributions
    cupy_tests/random_tests/test_generator cupy_tests/random_tests/test_generator_api
    cupy_tests/random_tests/test_init cupy_tests/random_tests/test_permutations
    cupy_tests/random_tests/test_random cupy_tests/random_tests/test_sample
    cupyx_tests/scipy_tests/sparse_tests/test_base cupyx_tests/scipy_tests/sparse_tests/test_construct
    cupyx_tests/scipy_tests/sparse_tests/test_coo cupyx_tests/scipy_tests/sparse_tests/test_csc
    cupyx_tests/scipy_tests/sparse_tests/test_csr cupyx_tests/scipy_tests/sparse_tests/test_dia
    cupyx_tests/scipy_tests/sparse_tests/test_extract cupyx_tests/scipy_tests/sparse_tests/test_index
    cupyx_tests/scipy_tests/sparse_tests/test_linalg";

/// CuPy in the last release whose wheel opens the CUDA runtime, instead of having NVIDIA's inside.
///
/// # Errors
/// When it cannot be installed.
pub fn cupy(site: &Site) -> Result<Outcome, String> {
    let python = site.python(&[
        "cupy-cuda12x==12.3.0",
        "numpy<1.25",
        "scipy<1.12",
        "pytest",
        "hypothesis",
        "nvidia-cuda-nvrtc-cu12==12.4.*",
        "nvidia-cuda-runtime-cu12==12.4.*",
        "nvidia-cublas-cu12==12.4.*",
        "nvidia-cufft-cu12==11.2.*",
        "nvidia-curand-cu12==10.3.*",
        "nvidia-cusolver-cu12==11.6.*",
        "nvidia-cusparse-cu12==12.3.*",
    ])?;
    let nvidia = site.packages().join("nvidia");
    let libraries =
        ["cuda_nvrtc", "cuda_runtime", "cublas", "cufft", "curand", "cusolver", "cusparse", "nvjitlink"];
    let libraries = libraries.map(|library| nvidia.join(library).join("lib").display().to_string());
    let suite = Suite {
        python,
        folder: site.source("cupy/cupy", "v12.3.0")?.join("tests"),
        modules: CUPY.split_whitespace().map(|module| format!("{module}.py")).collect(),
        variables: vec![
            ("LD_LIBRARY_PATH", libraries.join(":")),
            ("CUDA_PATH", nvidia.join("cuda_runtime").display().to_string()),
            // Block reductions want to see an nvcc, and are compiled by NVRTC.
            ("NVCC", "nvcc".to_owned()),
            // Tests of several devices are skipped.
            ("CUPY_TEST_GPU_LIMIT", "1".to_owned()),
            ("CUPY_CACHE_DIR", site.scratch.join("cache").display().to_string()),
        ],
        // Some modules have ten thousand tests and a million launches.
        limit: 10_800,
        least: 160,
        share: 99,
        ..Suite::default()
    };
    suite.run(site)
}

/// numba's CUDA part: its tests of the language, which its wheel has.
///
/// # Errors
/// When it cannot be installed, or the tests break off.
pub fn numba_cuda(site: &Site) -> Result<Outcome, String> {
    let python = site.python(&["numba-cuda[cu12]==0.30.4", "cffi", "filecheck", "psutil", "pytest"])?;
    let modules = NUMBA.split(' ');
    let mut command = site.exec(python);
    command.args(["-m", "numba.runtests", "-v"]);
    match site.words.is_empty() {
        true => command.args(modules.map(|module| format!("numba.cuda.tests.cudapy.test_{module}"))),
        false => command.args(&site.words),
    };
    let outcome = super::numba::outcome(&site.output(&mut command, "numba-cuda")?)?;
    Ok(Outcome { share: 98, least: 380, ..outcome })
}

/// Halide: pipelines of ours against numpy. Its wheel has no tests.
///
/// # Errors
/// When the script cannot be run.
pub fn halide(site: &Site) -> Result<Outcome, String> {
    let python = site.python(&["halide==21.0.0", "numpy"])?;
    script(site, &python, "halide", include_str!("scripts/halide_pipelines.py"), 6)
}

/// cuda.core: what it wraps, by a script of ours. Its wheel has no tests.
///
/// # Errors
/// When the script cannot be run.
pub fn cuda_core(site: &Site) -> Result<Outcome, String> {
    let python = site.python(&["cuda-core[cu12]==1.2.2", "numpy"])?;
    script(site, &python, "cuda-core", include_str!("scripts/cuda_core_parts.py"), 8)
}

/// Runs a script of ours.
fn script(site: &Site, python: &Path, name: &str, text: &str, least: usize) -> Result<Outcome, String> {
    let path = site.script(&format!("run-{name}.py"), text)?;
    Outcome::of_script(&site.output(site.exec(python).arg(&path), name)?, least)
}

/// A folder laid out as NVIDIA's toolkit, of links to the packages for CUDA 12.
fn toolkit(site: &Site) -> std::io::Result<PathBuf> {
    let (folder, nvidia) = (site.scratch.join("toolkit"), site.packages().join("nvidia"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let libraries = folder.join("lib64");
    fs::create_dir_all(&libraries)?;
    symlink(nvidia.join("cuda_runtime/include"), folder.join("include"))?;
    for file in fs::read_dir(nvidia.join("cuda_nvrtc/lib"))? {
        let file = file?;
        symlink(file.path(), libraries.join(file.file_name()))?;
    }
    symlink(nvidia.join("cuda_nvrtc/lib/libnvrtc.so.12"), libraries.join("libnvrtc.so"))?;
    Ok(folder)
}

/// The modules of tests with these names.
fn tests(names: &str) -> Vec<String> {
    names.split_whitespace().map(|name| format!("test_{name}.py")).collect()
}

/// The modules of tests in folders, but for those with one of these words in their names.
fn modules(folder: &Path, within: &[&str], not: &[&str]) -> Result<Vec<String>, String> {
    let mut modules = Vec::new();
    for part in within {
        let path = folder.join(part);
        let files = fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let names = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
        let names = names.filter(|name| name.starts_with("test_") && name.ends_with(".py"));
        modules.extend(
            names
                .filter(|name| !not.iter().any(|word| name.contains(word)))
                .map(|name| format!("{part}/{name}")),
        );
    }
    modules.sort();
    Ok(modules)
}
