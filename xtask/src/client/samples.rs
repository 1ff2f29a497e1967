//! NVIDIA's cuda-samples, as they are, compiled by nvcc with `-cudart shared` and run on our runtime and driver. `samples.txt` lists them;
//! docs/samples.md has the results.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Outcome, Site, succeed};

const REPOSITORY: &str = "https://github.com/NVIDIA/cuda-samples";
/// nvcc and what samples include; those of NVIDIA unpack into one tree. The samples are older than Thrust without `thrust::make_tuple`.
const PACKAGES: &[&str] = &[
    "nvidia-cuda-nvcc==13.*",
    "nvidia-nvvm==13.*",
    "nvidia-cuda-crt==13.*",
    "nvidia-cuda-runtime==13.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cuda-profiler-api==13.*",
    "nvidia-nvtx==13.*",
    "nvidia-curand==10.*",
    "libboost-headers==1.88.*",
];
/// At least so many must pass.
const BAR: usize = 70;
/// Seconds that the processors may spend on one sample, and that may pass.
const CPU_SECONDS: u64 = 240;
const SECONDS: u64 = 1800;
/// So many are compiled at a time: a compiler takes up to 1 GiB.
const COMPILERS: usize = 2;

/// A line of `samples.txt`.
struct Sample<'t> {
    /// `0_Introduction/vectorAdd`
    path: &'t str,
    options: Vec<&'t str>,
    arguments: Vec<&'t str>,
    success: &'t str,
}

impl<'t> Sample<'t> {
    fn of(line: &'t str) -> Option<Sample<'t>> {
        let mut parts = line.split('|').map(str::trim);
        let path = parts.next().filter(|path| !path.is_empty() && !path.starts_with('#'))?;
        let mut words = || parts.next().unwrap_or_default();
        let (options, arguments) = (words(), words());
        Some(Sample {
            path,
            options: options.split_whitespace().collect(),
            arguments: arguments.split_whitespace().collect(),
            success: words(),
        })
    }

    fn name(&self) -> &'t str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// Where everything is.
struct Place {
    device: String,
    samples: PathBuf,
    toolkit: PathBuf,
    /// Headers of Boost.
    boost: PathBuf,
    libraries: PathBuf,
}

/// Compiles and runs the samples whose names have one of the words in them, or all.
///
/// # Errors
/// When there is no compiler, or there are no samples.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let (place, words) = (prepare(site)?, &site.words);
    let all = include_str!("samples.txt").lines().filter_map(Sample::of);
    let chosen =
        |sample: &Sample<'_>| words.is_empty() || words.iter().any(|word| sample.path.contains(word));
    let samples: Vec<_> = all.filter(chosen).collect();
    let waiting = Mutex::new(samples.iter());
    std::thread::scope(|scope| {
        for _ in 0..COMPILERS {
            scope.spawn(|| {
                while let Some(sample) = { waiting.lock().map(|mut all| all.next()).unwrap_or_default() } {
                    place.compile(sample);
                }
            });
        }
    });
    let mut outcome = Outcome { share: BAR, least: BAR, ..Outcome::default() };
    let start = Instant::now();
    for sample in &samples {
        let began = Instant::now();
        match place.judge(sample) {
            Ok(()) => {
                println!("passed {} {:.1} s", sample.path, began.elapsed().as_secs_f64());
                outcome.passed += 1;
            }
            Err(why) => {
                println!("failed {}: {why}", sample.path);
                outcome.failed.push(format!("{}: {why}", sample.path));
            }
        }
    }
    outcome.seconds = Some(format!("{:.0}", start.elapsed().as_secs_f64()));
    Ok(outcome)
}

/// Fetches what is not there yet, and puts our libraries under the names that programs look for.
fn prepare(site: &Site) -> Result<Place, String> {
    let (scratch, built) = (&site.scratch, site.ptxvm.parent().ok_or("there is no folder of libraries")?);
    let samples = scratch.join("cuda-samples");
    if !samples.exists() {
        succeed(Command::new("git").args(["clone", "--quiet", "--depth", "1", REPOSITORY]).arg(&samples))?;
    }
    let environment = scratch.join("venv");
    let installed = environment.join("installed");
    if fs::read_to_string(&installed).unwrap_or_default() != PACKAGES.join("\n") {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let pip = environment.join("bin/pip");
        succeed(Command::new(pip).args(["install", "--quiet"]).args(PACKAGES))?;
        fs::write(&installed, PACKAGES.join("\n"))
            .map_err(|error| format!("{}: {error}", installed.display()))?;
    }
    let toolkit = fs::read_dir(environment.join("lib")).ok().and_then(|mut folders| folders.next()?.ok());
    let toolkit = toolkit.ok_or("the environment of Python has no packages")?.path().join("site-packages");
    let boost = toolkit.join("libboost_headers/include");
    let toolkit = toolkit.join("nvidia/cu13");
    let libraries = scratch.join("lib");
    fs::create_dir_all(&libraries).map_err(|error| format!("{}: {error}", libraries.display()))?;
    for (name, target) in [
        ("libcuda.so.1", "libptxvm_libcuda.so"),
        ("libcuda.so", "libptxvm_libcuda.so"),
        ("libcudart.so.13", "libptxvm_cudart13.so"),
        ("libcudart.so", "libptxvm_cudart13.so"),
    ] {
        let link = libraries.join(name);
        let _ = fs::remove_file(&link);
        symlink(built.join(target), &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(Place { device: site.device.clone(), samples: samples.join("Samples"), toolkit, boost, libraries })
}

impl Place {
    fn folder(&self, sample: &Sample<'_>) -> PathBuf {
        self.samples.join(sample.path)
    }

    fn program(&self, sample: &Sample<'_>) -> PathBuf {
        self.folder(sample).join(format!("{}.bin", sample.name()))
    }

    fn log(&self, sample: &Sample<'_>, name: &str) -> PathBuf {
        self.folder(sample).join(name)
    }

    /// nvcc in the folder of a sample, at low priority, with what all have in common.
    fn nvcc(&self, sample: &Sample<'_>) -> Command {
        let mut nvcc = Command::new("nice");
        nvcc.arg(self.toolkit.join("bin/nvcc")).current_dir(self.folder(sample));
        nvcc.args(["-std=c++17", "--extended-lambda", "-gencode", "arch=compute_80,code=compute_80"]);
        nvcc.args(["-I../../../Common", "-Iinc", "-I"]).arg(&self.boost);
        nvcc
    }

    /// Compiles a sample, unless that was done before. What fails is seen when there is no program to run.
    fn compile(&self, sample: &Sample<'_>) {
        if self.program(sample).exists() {
            return;
        }
        let (mut options, mut kernel) = (Vec::new(), None);
        let mut words = sample.options.iter();
        while let Some(&word) = words.next() {
            match word {
                "fatbin" | "ptx" => kernel = words.next().map(|&file| (word, file)),
                _ => options.push(word),
            }
        }
        let mut nvcc = self.nvcc(sample);
        nvcc.args(["-cudart", "shared", "-L"]).arg(&self.libraries).args(self.sources(sample)).args(options);
        nvcc.args(["-lcuda", "-ldl", "-o"]).arg(self.program(sample));
        let log = self.log(sample, "compile.log");
        run_to_end(&mut nvcc, &log);
        if let Some((kind, file)) = kernel {
            let mut nvcc = self.nvcc(sample);
            let source =
                fs::read_dir(self.folder(sample)).into_iter().flatten().flatten().map(|entry| entry.path());
            nvcc.arg(format!("-{kind}"))
                .args(source.filter(|path| path.to_string_lossy().ends_with("kernel.cu")));
            run_to_end(nvcc.args(["-o", file]), &self.log(sample, "kernel.log"));
        }
    }

    /// The sources that a sample's own CMake file names.
    fn sources(&self, sample: &Sample<'_>) -> Vec<String> {
        let text = fs::read_to_string(self.folder(sample).join("CMakeLists.txt")).unwrap_or_default();
        let list = text.split_once("add_executable(").and_then(|(_, rest)| rest.split_once(')'));
        list.map_or_else(Vec::new, |(list, _)| list.split_whitespace().skip(1).map(str::to_owned).collect())
    }

    /// Runs a sample, and looks at how it ended and at what it says.
    ///
    /// # Errors
    /// Why it failed.
    fn judge(&self, sample: &Sample<'_>) -> Result<(), String> {
        let first = |text: &str, is: fn(&str) -> bool| {
            text.lines().find(|line| is(line)).unwrap_or_default().trim().to_owned()
        };
        if !self.program(sample).exists() {
            let log = fs::read_to_string(self.log(sample, "compile.log")).unwrap_or_default();
            return Err(format!("nvcc: {}", first(&log, |line| line.contains("error"))));
        }
        let mut program = Command::new("sh");
        program.args(["-c", "ulimit -t \"$0\" && exec \"$@\"", &CPU_SECONDS.to_string()]);
        program.arg(self.program(sample)).args(&sample.arguments).current_dir(self.folder(sample));
        program.env("LD_LIBRARY_PATH", &self.libraries).env("PTXVM_DEVICE", &self.device);
        let log = self.log(sample, "run.log");
        let status = run_to_end(&mut program, &log);
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let complaint =
            || first(&text, |line| ["rror", "FAIL", "ptxvm:"].iter().any(|word| line.contains(word)));
        match status {
            None => Err(format!("it takes more than {CPU_SECONDS} s of processor time")),
            Some(status) if !status.success() => Err(format!("{status}: {}", complaint())),
            Some(_) if !text.contains(sample.success) => Err(format!("it does not say `{}`", sample.success)),
            Some(_) if text.contains("FAILED") => Err(complaint()),
            Some(_) => Ok(()),
        }
    }
}

/// Runs a command, with a file for what it says. Nothing if it takes too long.
fn run_to_end(command: &mut Command, log: &Path) -> Option<ExitStatus> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_sample() {
        let lines =
            include_str!("samples.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples: Vec<_> = lines.filter_map(Sample::of).collect();
        assert_eq!(samples.len(), 100);
        assert!(samples.iter().all(|sample| sample.path.matches('/').count() == 1));
        let matrix = samples.iter().find(|sample| sample.name() == "matrixMul").unwrap();
        assert_eq!((matrix.arguments.len(), matrix.success), (4, "Result = PASS"));
    }
}
