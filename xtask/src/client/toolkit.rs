//! NVIDIA's toolkit from PyPI: programs that its nvcc compiles, on our runtime, driver and libraries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Site, succeed};

/// nvcc and the headers of NVIDIA's libraries, which unpack into one tree. Its samples are older than Thrust without `thrust::make_tuple`.
pub const PACKAGES: &[&str] = &[
    "nvidia-cuda-nvcc==13.*",
    "nvidia-nvvm==13.*",
    "nvidia-cuda-crt==13.*",
    "nvidia-cuda-runtime==13.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cuda-profiler-api==13.*",
    "nvidia-nvtx==13.*",
    "nvidia-cublas==13.*",
    "nvidia-cufft==12.*",
    "nvidia-curand==10.*",
    "nvidia-cusolver==12.*",
    "nvidia-cusparse==12.*",
    "nvidia-nvjitlink==13.*",
    "nvidia-cuda-nvrtc==13.*",
    "libboost-headers==1.88.*",
];
/// Seconds that the processors may spend on one program, and that may pass.
const CPU_SECONDS: u64 = 900;
const SECONDS: u64 = 1800;
/// So many are compiled at a time: a compiler takes up to 1 GiB.
const COMPILERS: usize = 2;

/// The libraries of ours that linkers look for, and which crate has them.
const LIBRARIES: &[(&str, &str)] = &[
    ("cuda", "libcuda"),
    ("cudart", "cudart13"),
    ("nvrtc", "nvrtc"),
    ("cublas", "cublas"),
    ("cublasLt", "cublas"),
    ("curand", "curand"),
];

/// nvcc with its headers, and the libraries that its programs get.
pub struct Toolkit {
    /// Where packages of Python are.
    pub packages: PathBuf,
    /// Where our libraries are under the names that linkers look for.
    pub libraries: PathBuf,
    ptxvm: PathBuf,
    device: String,
}

impl Toolkit {
    /// Installs what is not there yet, and puts our libraries under the names that programs look for.
    ///
    /// # Errors
    /// When there is no Python, no way to its packages, or no build of ours.
    pub fn install(site: &Site, packages: &[&str]) -> Result<Toolkit, String> {
        let (scratch, built) = (&site.scratch, site.ptxvm.parent().ok_or("there is no folder of libraries")?);
        site.python(packages)?;
        let libraries = scratch.join("lib");
        fs::create_dir_all(&libraries).map_err(|error| format!("{}: {error}", libraries.display()))?;
        for (name, of) in LIBRARIES {
            let link = libraries.join(format!("lib{name}.so"));
            let _ = fs::remove_file(&link);
            symlink(built.join(format!("libptxvm_{of}.so")), &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
        Ok(Toolkit {
            packages: site.packages(),
            libraries,
            ptxvm: site.ptxvm.clone(),
            device: site.device.clone(),
        })
    }

    /// nvcc itself.
    pub fn compiler(&self) -> PathBuf {
        self.packages.join("nvidia/cu13/bin/nvcc")
    }

    /// nvcc for an architecture (`80`), at low priority.
    pub fn nvcc(&self, architecture: &str) -> Command {
        let mut nvcc = Command::new("nice");
        nvcc.arg(self.compiler()).args(["-std=c++17", "-gencode"]);
        nvcc.arg(format!("arch=compute_{architecture},code=compute_{architecture}"));
        nvcc
    }

    /// Where NVIDIA's libraries are.
    fn folder(&self) -> PathBuf {
        self.packages.join("nvidia/cu13/lib")
    }

    /// Has nvcc link a program with these libraries of NVIDIA (`cublas`): it finds ours when it runs. Of the driver there is only ours.
    pub fn link(&self, nvcc: &mut Command, libraries: &[&str]) {
        let folder = self.folder();
        nvcc.args(["-cudart", "shared", "-Xlinker", "--allow-shlib-undefined", "-L"]).arg(&folder);
        nvcc.arg("-L").arg(&self.libraries);
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let files: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
        for library in libraries {
            let stem = format!("lib{library}.so.");
            nvcc.args(files.iter().find(|name| name.starts_with(&stem)).map(|name| format!("-l:{name}")));
        }
        nvcc.args(["-lcuda", "-ldl"]);
    }

    /// A command that runs a program on our libraries, with limited time.
    pub fn program(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t \"$0\" && exec \"$@\"", &CPU_SECONDS.to_string()]);
        command.arg(&self.ptxvm).args(["exec", "--device", &self.device, "--"]).arg(program);
        command.env("LD_LIBRARY_PATH", self.folder());
        command
    }

    /// Runs a program of [`Toolkit::program`], and looks at how it ended. It gives what it said.
    ///
    /// # Errors
    /// Why it failed: its exit code and what it complained of, or that it took too long.
    pub fn run(program: &mut Command, log: &Path) -> Result<String, String> {
        let status = run_to_end(program, log);
        let text = fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        match status {
            None => Err(format!("it takes more than {CPU_SECONDS} s of processor time")),
            Some(status) if !status.success() => {
                Err(format!("{status}: {}", first(&text, &["not supported", "rror", "FAIL", "ptxvm:"])))
            }
            Some(_) if text.contains("FAILED") => Err(first(&text, &["FAILED"])),
            Some(_) => Ok(text),
        }
    }
}

/// A repository, cloned into the scratch folder unless it is there.
///
/// # Errors
/// When there is no git, or no way to it.
pub fn cloned(site: &Site, address: &str) -> Result<PathBuf, String> {
    let folder = site.scratch.join(address.rsplit('/').next().unwrap_or(address));
    if !folder.exists() {
        succeed(Command::new("git").args(["clone", "--quiet", "--depth", "1", address]).arg(&folder))?;
    }
    Ok(folder)
}

/// Does something with all of a list, a few at a time: for compilers.
pub fn a_few_at_a_time<T: Sync>(all: &[T], compile: impl Fn(&T) + Sync) {
    let waiting = Mutex::new(all.iter());
    std::thread::scope(|scope| {
        for _ in 0..COMPILERS {
            scope.spawn(|| {
                while let Some(one) = { waiting.lock().map(|mut all| all.next()).unwrap_or_default() } {
                    compile(one);
                }
            });
        }
    });
}

/// The first line with one of these words, the first of the words before the others.
pub fn first(text: &str, words: &[&str]) -> String {
    let mut lines = words.iter().filter_map(|word| text.lines().find(|line| line.contains(word)));
    lines.next().unwrap_or_default().trim().to_owned()
}

/// Runs a command, with a file for what it says. Nothing if it takes too long.
pub fn run_to_end(command: &mut Command, log: &Path) -> Option<ExitStatus> {
    use std::os::unix::process::ExitStatusExt;
    const SIGXCPU: i32 = 24;
    const SIGKILL: i32 = 9;
    let file = fs::File::create(log).ok()?;
    command.stdin(Stdio::null()).stdout(file.try_clone().ok()?).stderr(file);
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    loop {
        match child.try_wait().ok()? {
            Some(status) if matches!(status.signal(), Some(SIGXCPU | SIGKILL)) => return None,
            Some(status) => return Some(status),
            None if start.elapsed() > Duration::from_secs(SECONDS) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
