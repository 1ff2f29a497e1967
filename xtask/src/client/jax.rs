//! JAX as users have it: its wheels from PyPI beside ours, and its own tests, from the archive of its release.

use std::process::Command;

use super::pytest::Suite;
use super::torch::wheel;
use super::{Outcome, Site, succeed};

/// The newest release for Python 3.11.
const RELEASE: &str = "0.10.2";

const MODULES: [&str; 15] = [
    "lax_control_flow_test.py",
    "nn_test.py",
    "lax_numpy_reducers_test.py",
    "lax_vmap_op_test.py",
    "lax_scipy_test.py",
    "image_test.py",
    "lax_vmap_test.py",
    "lax_numpy_indexing_test.py",
    // Libraries of ptxvm's.
    "fft_test.py",
    "linalg_test.py",
    "lobpcg_test.py",
    "qdwh_test.py",
    "svd_test.py",
    // Pallas, with kernels of Triton.
    "pallas/triton_pallas_test.py",
    "pallas/gpu_ops_test.py",
];

const LEFT_OUT: &[(&str, &str)] = &[("DotProductAttention", "half of them ask for cuDNN's attention")];

/// Runs the tests.
///
/// # Errors
/// When JAX cannot be installed.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let wheel = wheel()?;
    let tests = ["pytest", "absl-py", "hypothesis", "scipy"];
    let jax = format!("jax[cuda12]=={RELEASE}");
    let python = site.python(&[&[jax.as_str()], &tests[..]].concat())?;
    let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
    succeed(Command::new(&python).args(install).arg(&wheel))?;
    let source = site.source("jax-ml/jax", &format!("jax-v{RELEASE}"))?;
    let suite = Suite {
        ptxvm: Some(python.with_file_name("ptxvm")),
        python,
        folder: source.join("tests"),
        modules: MODULES.map(str::to_owned).to_vec(),
        left_out: LEFT_OUT,
        variables: vec![
            // So many of the combinations of arguments that most tests can draw.
            ("JAX_NUM_GENERATED_CASES", "2".to_owned()),
            ("JAX_SKIP_SLOW_TESTS", "1".to_owned()),
            ("TF_CPP_MIN_LOG_LEVEL", "3".to_owned()),
        ],
        // Control flow takes 15 minutes on two cores, and more beside other work.
        limit: 3600,
        least: 1600,
        share: 99,
        ..Suite::default()
    };
    suite.run(site)
}
