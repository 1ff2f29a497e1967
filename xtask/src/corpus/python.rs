//! Compilers that Python packages hold: each has an environment of its own, and a script in `tests/corpus/sources` that
//! writes PTX into the folder it is given.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::succeed;

/// A compiler in an environment.
pub struct Script {
    /// Relative to `tests/corpus/sources`.
    path: &'static str,
    /// What pip installs.
    packages: &'static [&'static str],
}

pub const NVRTC: Script = Script {
    path: "cuda/nvrtc.py",
    packages: &[
        "nvidia-cuda-nvrtc-cu12==12.9.86",
        "nvidia-cuda-runtime-cu12==12.9.79",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ],
};

pub const NUMBA_CUDA: Script = Script {
    path: "numba/build.py",
    packages: &[
        "numba-cuda[cu12]==0.30.4",
        "numba==0.68.1",
        "llvmlite==0.50.0",
        "numpy==2.4.6",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ],
};

pub const TINYGRAD: Script = Script { path: "tinygrad/build.py", packages: &["tinygrad==0.14.0"] };

pub const TRITON_3_4: Script =
    Script { path: "triton/build.py", packages: &["triton==3.4.0", "numpy==2.4.6"] };

pub const TRITON_3_9: Script =
    Script { path: "triton/build.py", packages: &["triton==3.9.0", "numpy==2.4.6"] };

/// Where Python and its packages are.
pub struct Environment {
    python: PathBuf,
    /// The folder that pip installs into.
    pub packages: PathBuf,
}

/// Has a script write its PTX into `out`.
pub fn run(script: &Script, sources: &Path, home: &Path, out: &Path) -> Result<(), String> {
    let environment = environment(home, script.packages)?;
    let mut command = Command::new(environment.python);
    // Caches of the compiler stay with it, and the folder of the sources stays clean.
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("TRITON_CACHE_DIR", home.join("cache"));
    // What the newer Triton asks to be said.
    command.env("TRITON_DEFAULT_FP_FUSION", "1");
    succeed(command.env("XDG_CACHE_HOME", home.join("cache")).arg(sources.join(script.path)).arg(out))
}

/// The environment in `home`, which is made when it is not there or has other packages.
pub fn environment(home: &Path, packages: &[&str]) -> Result<Environment, String> {
    let (installed, wanted) = (home.join("installed.txt"), packages.join("\n"));
    let python = home.join("bin/python");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(Environment { packages: site_packages(home)?, python });
    }
    let _ = fs::remove_dir_all(home);
    let host = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    succeed(Command::new(host).args(["-m", "venv"]).arg(home))?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"];
    succeed(Command::new(&python).args(pip).args(packages))?;
    fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))?;
    Ok(Environment { packages: site_packages(home)?, python })
}

/// `lib/python3.11/site-packages`, whatever the release of Python.
fn site_packages(home: &Path) -> Result<PathBuf, String> {
    let library = home.join("lib");
    let entries = fs::read_dir(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    let folders = entries.flatten().map(|entry| entry.path().join("site-packages"));
    folders.into_iter().find(|folder| folder.is_dir()).ok_or(format!("{} has no packages", library.display()))
}
