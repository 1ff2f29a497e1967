//! NVIDIA's cuda-samples, as they are, compiled by nvcc with `-cudart shared` and run on our runtime and driver. `samples.txt` lists them;
//! docs/samples.md has the results.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::toolkit::{PACKAGES, Toolkit, a_few_at_a_time, cloned, first, run_to_end};
use super::{Outcome, Site};

const REPOSITORY: &str = "https://github.com/NVIDIA/cuda-samples";
/// At least so many must pass.
const BAR: usize = 70;

/// A line of `samples.txt`.
struct Sample<'t> {
    /// `0_Introduction/vectorAdd`
    path: &'t str,
    /// What nvcc is told.
    options: Vec<&'t str>,
    /// What it becomes of a kernel beside it, and the file that it is looked for in.
    kernel: Option<[&'t str; 2]>,
    /// NVIDIA's libraries that it uses.
    libraries: Vec<&'t str>,
    /// How many devices it wants.
    devices: &'t str,
    arguments: Vec<&'t str>,
    success: &'t str,
}

impl<'t> Sample<'t> {
    fn of(line: &'t str) -> Option<Sample<'t>> {
        let mut parts = line.split('|').map(str::trim);
        let path = parts.next().filter(|path| !path.is_empty() && !path.starts_with('#'))?;
        let mut next = || parts.next().unwrap_or_default();
        let (options, arguments, success) = (next(), next(), next());
        let arguments = arguments.split_whitespace().collect();
        let (kernel, libraries) = (None, Vec::new());
        let mut sample =
            Sample { path, options: Vec::new(), kernel, libraries, devices: "1", arguments, success };
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "fatbin" | "ptx" => sample.kernel = Some([word, words.next()?]),
                "libraries" => sample.libraries = words.next()?.split(',').collect(),
                "devices" => sample.devices = words.next()?,
                _ => sample.options.push(word),
            }
        }
        Some(sample)
    }

    fn name(&self) -> &'t str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// Where everything is.
struct Place {
    samples: PathBuf,
    toolkit: Toolkit,
}

/// Compiles and runs the samples whose names have one of the words in them, or all.
///
/// # Errors
/// When there is no compiler, or there are no samples.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let place = Place {
        samples: cloned(site, REPOSITORY)?.join("Samples"),
        toolkit: Toolkit::install(site, PACKAGES)?,
    };
    let all = include_str!("samples.txt").lines().filter_map(Sample::of);
    let chosen = |sample: &Sample<'_>| {
        site.words.is_empty() || site.words.iter().any(|word| sample.path.contains(word))
    };
    let samples: Vec<_> = all.filter(chosen).collect();
    a_few_at_a_time(&samples, |sample| place.compile(sample));
    let mut outcome = Outcome { share: BAR, least: BAR, ..Outcome::default() };
    let start = Instant::now();
    for sample in &samples {
        let began = Instant::now();
        outcome.note(sample.path, began, place.judge(sample));
    }
    outcome.seconds = Some(format!("{:.0}", start.elapsed().as_secs_f64()));
    Ok(outcome)
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

    /// nvcc in the folder of a sample, with what all have in common.
    fn nvcc(&self, sample: &Sample<'_>) -> Command {
        let mut nvcc = self.toolkit.nvcc("80");
        nvcc.current_dir(self.folder(sample)).args(["--extended-lambda", "-I../../../Common", "-Iinc", "-I"]);
        nvcc.arg(self.toolkit.packages.join("libboost_headers/include"));
        nvcc
    }

    /// Compiles a sample, unless that was done before. What fails is seen when there is no program to run.
    fn compile(&self, sample: &Sample<'_>) {
        if self.program(sample).exists() {
            return;
        }
        let mut nvcc = self.nvcc(sample);
        nvcc.args(self.sources(sample)).args(&sample.options);
        self.toolkit.link(&mut nvcc, &sample.libraries);
        nvcc.arg("-o").arg(self.program(sample));
        let log = self.log(sample, "compile.log");
        run_to_end(&mut nvcc, &log);
        if let Some([kind, file]) = sample.kernel {
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
        if !self.program(sample).exists() {
            let log = fs::read_to_string(self.log(sample, "compile.log")).unwrap_or_default();
            return Err(format!("nvcc: {}", first(&log, &["error"])));
        }
        let mut program = self.toolkit.program(&self.program(sample));
        program.args(&sample.arguments).current_dir(self.folder(sample));
        program.env("PTXVM_DEVICE_COUNT", sample.devices);
        let text = Toolkit::run(&mut program, &self.log(sample, "run.log"))?;
        if text.contains(sample.success) {
            Ok(())
        } else {
            Err(format!("it does not say `{}`", sample.success))
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
        assert_eq!(samples.len(), 128);
        assert!(samples.iter().all(|sample| sample.path.matches('/').count() == 1));
        let matrix = samples.iter().find(|sample| sample.name() == "matrixMul").unwrap();
        assert_eq!((matrix.arguments.len(), matrix.success), (4, "Result = PASS"));
    }
}
