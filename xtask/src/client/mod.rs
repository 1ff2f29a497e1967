//! `cargo xtask client NAME`: installs a program that uses CUDA, as its registry has it, and runs its own tests, or a script of ours that
//! uses it, on our driver. docs/clients.md has the results.
//!
//! Nothing of these programs is part of the repository: they are installed into a scratch folder.

mod candle;
mod cargo;
mod cudarc;
mod frameworks;
mod jax;
mod jobs;
mod library_samples;
mod numba;
mod outcome;
mod pycuda;
mod pytest;
mod samples;
mod scripts;
mod thrust;
mod toolkit;
mod torch;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::codegen::root;
use outcome::Outcome;

/// Which client to run, and where.
#[derive(clap::Args)]
pub struct Options {
    /// The client.
    #[arg(value_enum)]
    name: Name,
    /// The folder where it is installed. It is kept, so that the next run installs nothing [default: a fresh one, which is removed].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The GPU that it sees. (The script for Triton goes through two of its own.)
    #[arg(long, value_name = "sm_XX", default_value = "sm_90")]
    device: String,
    /// The tools that watch every launch, as `--tool` of `ptxvm exec`. No bar is held against such a run.
    #[arg(long, value_name = "LIST")]
    tool: Option<String>,
    /// Take target/release as it is.
    #[arg(long)]
    no_build: bool,
    /// Arguments for the tests of the client: a name to choose by. No bar is held against such a run.
    #[arg(last = true)]
    words: Vec<String>,
}

/// A program that uses CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// Tensors and their gradients in Rust: the tests of its core on its CUDA device.
    Candle,
    /// NVIDIA's bindings of the driver, its compiler and its linker, for Python: its own tests.
    CudaCore,
    /// NVIDIA's samples on the CUDA runtime.
    CudaSamples,
    /// Rust bindings of the driver and NVRTC: the tests of its library.
    Cudarc,
    /// NumPy's functions on a GPU, in the release that links the CUDA runtime: its own tests.
    Cupy12,
    /// A compiler of traced arrays that writes PTX itself: its own tests.
    Drjit,
    /// A compiler of image pipelines that writes PTX itself: a script of ours.
    Halide,
    /// NVIDIA's header: a C program that calls every function in it.
    Headers,
    /// JAX from its wheels: its own tests, and Pallas with kernels of Triton.
    Jax,
    /// The jobs of docs/ci.md.
    Jobs,
    /// NVIDIA's samples of cuBLAS, cuBLASLt, cuFFT, cuRAND, cuSOLVER and cuSPARSE.
    LibrarySamples,
    /// Python's compiler of kernels: its own CUDA tests.
    Numba,
    /// numba's CUDA part as NVIDIA maintains it: its own tests.
    NumbaCuda,
    /// Bindings for Python: its own tests and examples.
    Pycuda,
    /// Python on kernels of the language Slang, which NVRTC compiles: its own tests.
    Slangpy,
    /// A language in Python that writes PTX itself: its own tests.
    Taichi,
    /// NVIDIA's algorithms, with CUB: a program of ours.
    Thrust,
    /// Its PTX and NVRTC backends: a script of ours.
    Tinygrad,
    /// PyTorch in two releases, from the wheel of the Python package: operators of its own tables, and a script of ours.
    Torch,
    /// A language for kernels: a script of ours.
    Triton,
}

/// Where a client is installed and run.
pub struct Site {
    /// The folder of the client.
    scratch: PathBuf,
    /// The `ptxvm` command with the libraries beside it.
    ptxvm: PathBuf,
    device: String,
    tool: Option<String>,
    words: Vec<String>,
}

/// `cargo xtask client`
pub fn run(options: &Options) -> Result<(), String> {
    if !options.no_build {
        let mut build = Command::new("cargo");
        build.current_dir(root()).args(["build", "--release", "-p", "ptxvm-libcuda", "-p", "ptxvm-command"]);
        for library in [
            "cudart12",
            "cudart13",
            "nvml",
            "cublas",
            "cufft",
            "curand",
            "cusparse",
            "cusolver",
            "nccl",
            "audit",
            "nvrtc",
            "nvjitlink",
        ] {
            build.args(["-p".to_owned(), format!("ptxvm-{library}")]);
        }
        succeed(&mut build)?;
    }
    let fresh = match options.scratch {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?),
    };
    let scratch = options.scratch.as_deref().or(fresh.as_ref().map(|fresh| fresh.path()));
    let scratch = scratch.ok_or("no scratch folder")?;
    fs::create_dir_all(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let site = Site {
        scratch: scratch.canonicalize().map_err(|error| format!("{}: {error}", scratch.display()))?,
        ptxvm: target_folder()?.join("release/ptxvm"),
        device: options.device.clone(),
        tool: options.tool.clone(),
        words: options.words.clone(),
    };
    let start = Instant::now();
    let outcome = match options.name {
        Name::Candle => candle::run(&site),
        Name::CudaCore => frameworks::cuda_core(&site),
        Name::CudaSamples => samples::run(&site),
        Name::Cudarc => cudarc::run(&site),
        Name::Cupy12 => frameworks::cupy(&site),
        Name::Drjit => frameworks::drjit(&site),
        Name::Halide => frameworks::halide(&site),
        Name::Headers => scripts::headers(&site),
        Name::Jax => jax::run(&site),
        Name::Jobs => jobs::run(&site),
        Name::LibrarySamples => library_samples::run(&site),
        Name::Numba => numba::run(&site),
        Name::NumbaCuda => frameworks::numba_cuda(&site),
        Name::Pycuda => pycuda::run(&site),
        Name::Slangpy => frameworks::slangpy(&site),
        Name::Taichi => frameworks::taichi(&site),
        Name::Thrust => thrust::run(&site),
        Name::Tinygrad => scripts::tinygrad(&site),
        Name::Torch => torch::run(&site),
        Name::Triton => scripts::triton(&site),
    }?;
    println!("{outcome}, {:.0} s with installing", start.elapsed().as_secs_f64());
    if site.words.is_empty() && site.tool.is_none() { outcome.hold() } else { Ok(()) }
}

/// The folder that cargo builds into.
fn target_folder() -> Result<PathBuf, String> {
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from))
}

/// Runs a command, whose output is shown.
fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

impl Site {
    /// The same with a folder of its own, inside.
    fn within(&self, name: &str) -> Result<Site, String> {
        let scratch = self.scratch.join(name);
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        Ok(Site {
            scratch,
            ptxvm: self.ptxvm.clone(),
            device: self.device.clone(),
            tool: self.tool.clone(),
            words: self.words.clone(),
        })
    }

    /// A command that runs a program on our driver.
    fn exec(&self, program: impl AsRef<OsStr>) -> Command {
        self.exec_on(&self.device, program)
    }

    /// The same with another GPU than the options say.
    fn exec_on(&self, device: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.ptxvm);
        command.args(["exec", "--device", device]).args(self.tool.iter().flat_map(|tool| ["--tool", tool]));
        command.arg("--").arg(program).current_dir(&self.scratch);
        command
    }

    /// The Python of an environment with these packages (`numba==0.60.0`), which is made if it is not there.
    fn python(&self, packages: &[&str]) -> Result<PathBuf, String> {
        let environment = self.scratch.join("venv");
        let python = environment.join("bin/python");
        let (installed, wanted) = (environment.join("installed"), packages.join("\n"));
        if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        // Some of the clients know no newer one.
        succeed(Command::new("python3.11").args(["-m", "venv"]).arg(&environment))?;
        succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
        fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))?;
        Ok(python)
    }

    /// Puts a script of ours into the folder, beside the one that runs the parts of others.
    fn script(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        for (name, text) in [("parts.py", include_str!("scripts/parts.py")), (name, text)] {
            let path = self.scratch.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(self.scratch.join(name))
    }

    /// Where the packages of [`Site::python`] are.
    fn packages(&self) -> PathBuf {
        self.scratch.join("venv/lib/python3.11/site-packages")
    }

    /// Runs a command to its end and returns what it wrote, both streams in one. It is also kept in a file of the scratch folder.
    fn output(&self, command: &mut Command, name: &str) -> Result<String, String> {
        self.end(command, name).map(|(_, text)| text)
    }

    /// The same, and whether the command succeeded.
    fn end(&self, command: &mut Command, name: &str) -> Result<(bool, String), String> {
        let path = self.scratch.join(format!("{name}.log"));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = fs::File::create(&path).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
        eprintln!("{name}: {status}, {}", path.display());
        let bytes = fs::read(&path).map_err(failed)?;
        Ok((status.success(), String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Copies a folder.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &copy)?
        } else {
            fs::copy(entry.path(), copy).map(|_| ())?
        }
    }
    Ok(())
}
