//! `cargo xtask corpus`: compiles the kernels of `tests/corpus/sources` with compilers that public registries have, without a GPU.
//!
//! Each compiler is installed under `target/compilers` (nvcc under `.oracles`), in a pinned release, when it is first asked for.

mod directives;
mod python;
mod rustc;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use crate::codegen::root;
use crate::record::{oracle, tools};
use directives::{Job, jobs};
use test_utils::corpus::ptx_files;

/// What to compile, and where to.
#[derive(clap::Args)]
pub struct Options {
    /// The folder to write to, with a sub-folder for each compiler
    #[arg(long, default_value = "target/corpus")]
    out: PathBuf,
    /// Use this compiler only; may be given several times
    #[arg(long, value_enum)]
    only: Vec<Compiler>,
}

/// A compiler in one pinned release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Compiler {
    /// NVIDIA's compiler of CUDA C++; needs g++.
    Nvcc,
    /// The same as a library, for CUDA 12.
    Nvrtc,
    /// The clang in zig's package, with kernels in C.
    Clang,
    /// A nightly toolchain; needs rustup.
    Rustc,
    /// Python's compiler of kernels.
    NumbaCuda,
    /// Its PTX renderer.
    Tinygrad,
    /// Triton, in the release that most programs have.
    #[value(name = "triton-3.4")]
    Triton34,
    /// Triton, in a newer release.
    #[value(name = "triton-3.9")]
    Triton39,
}

impl Compiler {
    const ALL: [Compiler; 8] = [
        Compiler::Nvcc,
        Compiler::Nvrtc,
        Compiler::Clang,
        Compiler::Rustc,
        Compiler::NumbaCuda,
        Compiler::Tinygrad,
        Compiler::Triton34,
        Compiler::Triton39,
    ];

    /// The sub-folder of its PTX, which says its release.
    fn folder(self) -> &'static str {
        match self {
            Compiler::Nvcc => "nvcc-13.5",
            Compiler::Nvrtc => "nvrtc-12.9",
            Compiler::Clang => "clang-22",
            Compiler::Rustc => "rustc-1.97",
            Compiler::NumbaCuda => "numba-cuda-0.30",
            Compiler::Tinygrad => "tinygrad-0.14",
            Compiler::Triton34 => "triton-3.4",
            Compiler::Triton39 => "triton-3.9",
        }
    }

    /// Compiles everything into `out`.
    fn compile(self, sources: &Path, home: &Path, out: &Path) -> Result<(), String> {
        match self {
            Compiler::Nvcc => {
                let nvcc = oracle::nvcc(&root().join(".oracles")).map_err(|error| error.to_string())?;
                let jobs = jobs(&sources.join("cuda"), "cu", "nvcc")?;
                each(&jobs, out, &|job| {
                    let mut command = Command::new(&nvcc);
                    command.args(["-ptx", "-std=c++17", "-arch", &job.target.replacen("sm_", "compute_", 1)]);
                    command
                })
            }
            Compiler::Clang => {
                let zig = python::environment(home, &["ziglang==0.17.1"])?.packages.join("ziglang/zig");
                let jobs = jobs(&sources.join("clang"), "c", "clang")?;
                each(&jobs, out, &|job| {
                    let mut command = Command::new(&zig);
                    command.args(["clang", "-cc1", "-triple", "nvptx64-nvidia-cuda", "-S"]);
                    command.args(["-target-feature", "+ptx88", "-target-cpu"]);
                    command.arg(&job.target);
                    command
                })
            }
            Compiler::Rustc => rustc::compile(&jobs(&sources.join("rustc"), "rs", "rustc")?, home, out),
            Compiler::Nvrtc => python::run(&python::NVRTC, sources, home, out),
            Compiler::NumbaCuda => python::run(&python::NUMBA_CUDA, sources, home, out),
            Compiler::Tinygrad => python::run(&python::TINYGRAD, sources, home, out),
            Compiler::Triton34 => python::run(&python::TRITON_3_4, sources, home, out),
            Compiler::Triton39 => python::run(&python::TRITON_3_9, sources, home, out),
        }
    }
}

/// `cargo xtask corpus`
pub fn run(options: &Options) -> Result<(), String> {
    let (sources, compilers) = (root().join("tests/corpus/sources"), root().join("target/compilers"));
    let chosen = if options.only.is_empty() { &Compiler::ALL[..] } else { &options.only };
    let mut failed = Vec::new();
    for compiler in chosen {
        let folder = compiler.folder();
        let out = root().join(&options.out).join(folder);
        // Nothing of an earlier release or source may stay.
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        let result = compiler.compile(&sources, &compilers.join(folder), &out);
        let files = ptx_files(&out);
        println!("{folder}: {} files", files.len());
        if let Err(message) = result.and_then(|()| files.iter().try_for_each(|file| without_folders(file))) {
            eprintln!("{folder}: {message}");
            failed.push(folder);
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("not all was compiled by {}", failed.join(", "))),
    }
}

/// Runs the compiler that `command` makes for each job, on all cores; it is told the options, the source and the file to write.
fn each(jobs: &[Job], out: &Path, command: &(dyn Fn(&Job) -> Command + Sync)) -> Result<(), String> {
    let (waiting, failed) = (Mutex::new(jobs.iter().collect::<VecDeque<_>>()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let file = out.join(job.file());
                    let mut command = command(job);
                    command.args(&job.options).arg("-o").arg(&file).arg(&job.source);
                    if let Err(message) = succeed(&mut command) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs a command; what it said is the error when it fails.
fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} ended with {}\n{}", output.status, String::from_utf8_lossy(&said)))
}

/// Takes the folders of this machine out of a file, so that it is the same wherever it is made.
fn without_folders(file: &Path) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(failed)?;
    let text: String = text.lines().map(|line| tools::without_folder(line) + "\n").collect();
    fs::write(file, text).map_err(failed)
}
