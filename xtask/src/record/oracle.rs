//! NVIDIA's assembler `ptxas` as an oracle: what does it say about a piece of PTX? And where nvdisasm is.
//!
//! The binaries come from PyPI (pinned by version and SHA-256 in `oracles.txt`) and are unpacked into the
//! git-ignored `.oracles/` of the repository. They need no GPU and no driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs, result};

use serde::{Deserialize, Serialize};

use super::Result;

/// The requirement lines, with hashes, that pip installs; see [`requirement`].
const REQUIREMENTS: &str = include_str!("oracles.txt");

/// So many files are given to one run.
const SOURCES_PER_RUN: usize = 500;

/// A release of ptxas that verdicts are recorded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Release {
    /// CUDA 13.5, the newest one: PTX ISA 1.0 to 9.5. Where releases differ, this one is the law.
    #[value(name = "13.5")]
    V13_5,
    /// CUDA 12.9, the last one of the previous major version.
    #[value(name = "12.9")]
    V12_9,
}

impl Release {
    /// All releases, the newest first.
    pub const ALL: [Release; 2] = [Release::V13_5, Release::V12_9];

    /// The release as NVIDIA numbers it.
    pub fn name(self) -> &'static str {
        match self {
            Release::V13_5 => "13.5",
            Release::V12_9 => "12.9",
        }
    }

    fn package(self) -> &'static Package {
        match self {
            Release::V13_5 => {
                &Package { name: "nvidia-cuda-nvcc", options: &[], binary: "nvidia/cu13/bin/ptxas" }
            }
            Release::V12_9 => {
                &Package { name: "nvidia-cuda-nvcc-cu12", options: &[], binary: "nvidia/cuda_nvcc/bin/ptxas" }
            }
        }
    }
}

/// What PyPI has and what of it is wanted.
struct Package {
    name: &'static str,
    /// For pip, where it would not choose the pinned file by itself.
    options: &'static [&'static str],
    /// Where the package puts the program.
    binary: &'static str,
}

impl Package {
    /// The program in `home`, installed there first when it is not there.
    fn open(&self, home: &Path) -> Result<PathBuf> {
        open(&[self.name], self.options, &home.join(self.binary), home)
    }
}

/// The line of `oracles.txt` that pins a package.
fn requirement(name: &str) -> Option<&'static str> {
    REQUIREMENTS.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with("==")))
}

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A remark; the file is accepted.
    Info,
    /// A warning; the file is accepted.
    Warning,
    /// An error; checking goes on behind it.
    Error,
    /// An error that ends the run: what follows it in the file goes unreported.
    Fatal,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::Fatal => "fatal",
        })
    }
}

/// One thing that the assembler said about a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// The line it is about, counted from 1; 0 when it is about the file as a whole.
    pub line: u32,
    /// How bad it is.
    pub severity: Severity,
    /// The assembler's words.
    pub text: String,
}

impl Message {
    /// Old versions do not go with the option that spares us code, which is said when all else is well.
    pub fn is_about_options(&self) -> bool {
        self.text.starts_with("'Compile only(-c)'")
    }
}

/// Everything the assembler said about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the file is legal PTX.
    pub accepted: bool,
    /// In the order in which they were said, without the closing "aborted due to errors".
    pub messages: Vec<Message>,
}

/// An installed assembler that can be asked.
pub struct Oracle {
    release: Release,
    ptxas: PathBuf,
    /// The `compute_*` architectures that it was built for.
    architectures: Vec<String>,
    scratch: tempfile::TempDir,
}

impl Oracle {
    /// Finds `release` under `folder`, installing it from PyPI first when it is not there.
    pub fn open(folder: &Path, release: Release) -> Result<Oracle> {
        let home = folder.join(format!("ptxas-{}", release.name()));
        Oracle::at(&release.package().open(&home)?, release)
    }

    /// The assembler at this path, which says what `release` does, or more.
    pub fn at(ptxas: &Path, release: Release) -> Result<Oracle> {
        let ptxas = ptxas.to_owned();
        let scratch = tempfile::tempdir()?;
        let help = Command::new(&ptxas).arg("--help").output()?;
        let architectures = architectures(&String::from_utf8_lossy(&help.stdout));
        if architectures.is_empty() {
            return Err(format!("{} lists no architectures in its help", ptxas.display()).into());
        }
        Ok(Oracle { release, ptxas, architectures, scratch })
    }

    /// The assembler, in the scratch folder. It hangs on some input and takes all memory, so it may have a minute of processor time and 8 GB.
    fn assembler(&self) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -t 60; ulimit -v 8000000; exec \"$0\" \"$@\""]).arg(&self.ptxas);
        command.current_dir(&self.scratch).env("LC_ALL", "C");
        command
    }

    /// The release behind this oracle.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Where the assembler is.
    pub fn ptxas(&self) -> &Path {
        &self.ptxas
    }

    /// Can it be asked about modules for this target?
    pub fn knows(&self, target: isa::Target) -> bool {
        target.suffix == isa::Suffix::None
            || self.architectures.contains(&target.to_string().replacen("sm_", "compute_", 1))
    }

    /// What the assembler calls itself.
    pub fn build(&self) -> Result<String> {
        build(&self.ptxas)
    }

    /// Has the assembler check `source` without generating code, and returns all that it says.
    ///
    /// The words call the source `input.ptx` where they name it.
    pub fn assemble(&self, source: &[u8]) -> Result<Verdict> {
        self.verdict(source, &["-c", "-arch", &self.architecture(source)])
    }

    /// Has the assembler generate code from `source`, for its own target or the oldest that there is code for, and returns all that it says.
    pub fn compile(&self, source: &[u8]) -> Result<Verdict> {
        let own = target(source).unwrap_or_default();
        let is_known = self.architectures.contains(&own.replacen("sm_", "compute_", 1));
        let number: u32 = own.trim_start_matches("sm_").parse().unwrap_or(0);
        let architecture = match is_known {
            true => &own,
            false if number < 75 => "sm_75",
            false => "sm_121",
        };
        self.verdict(source, &["-arch", architecture])
    }

    fn verdict(&self, source: &[u8], options: &[&str]) -> Result<Verdict> {
        let input = "input.ptx";
        fs::write(self.scratch.path().join(input), source)?;
        let output = self.assembler().args(options).args(["-o", "/dev/null"]).arg(input).output()?;
        if output.status.code().is_none() {
            return Err(format!("ptxas crashed: {}", output.status).into());
        }
        let said = [output.stderr, output.stdout].concat();
        let messages = String::from_utf8_lossy(&said).lines().filter_map(parse_message).collect();
        Ok(Verdict { accepted: output.status.success(), messages })
    }

    /// What the assembler says about each of `sources`, asked about one by one, many in a run; nothing of those that it
    /// crashes on.
    ///
    /// None hides another's errors, but functions that several define are duplicates. The words call each source `input.ptx`.
    pub fn assemble_each(&self, sources: &[String]) -> Result<Vec<Option<Verdict>>> {
        let mut verdicts = vec![None; sources.len()];
        let mut by_architecture: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, source) in sources.iter().enumerate() {
            by_architecture.entry(self.architecture(source.as_bytes())).or_default().push(index);
        }
        for (architecture, indices) in by_architecture {
            for chunk in indices.chunks(SOURCES_PER_RUN) {
                self.assemble_some(sources, &architecture, chunk, &mut verdicts)?;
            }
        }
        Ok(verdicts)
    }

    fn assemble_some(
        &self,
        sources: &[String],
        architecture: &str,
        indices: &[usize],
        verdicts: &mut [Option<Verdict>],
    ) -> Result<()> {
        let name = |index: usize| format!("{index}.ptx");
        for &index in indices {
            fs::write(self.scratch.path().join(name(index)), &sources[index])?;
        }
        let output = self
            .assembler()
            .args(["-c", "-arch", architecture, "-o", "/dev/null"])
            .args(indices.iter().copied().map(name))
            .output()?;
        for &index in indices {
            fs::remove_file(self.scratch.path().join(name(index)))?;
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said);
        let mut sorted: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
        let mut is_clear = output.status.code().is_some();
        for line in said.lines() {
            let Some(mut message) = parse_message(line) else { continue };
            if let Some(index) = source_index(line) {
                message.text = message.text.replace(&format!("'{}'", name(index)), "'input.ptx'");
            }
            match source_index(line) {
                Some(index) => sorted.entry(index).or_default().push(message),
                // It is said of a whole file, and does not say of which.
                None if message.severity >= Severity::Error && !message.is_about_options() => {
                    is_clear = indices.len() == 1 && is_clear;
                    sorted.entry(indices[0]).or_default().push(message);
                }
                None => {}
            }
        }
        if is_clear {
            for &index in indices {
                let messages = sorted.remove(&index).unwrap_or_default();
                let accepted = messages.iter().all(|message| message.severity < Severity::Error);
                verdicts[index] = Some(Verdict { accepted, messages });
            }
        } else if let [_, _, ..] = indices {
            let (first, second) = indices.split_at(indices.len() / 2);
            self.assemble_some(sources, architecture, first, verdicts)?;
            self.assemble_some(sources, architecture, second, verdicts)?;
        }
        Ok(())
    }

    /// The `-arch` with which the assembler accepts every target it knows, and generates no code.
    ///
    /// A plain `.target` may be assembled for any later architecture, so that one choice serves all. A target with a
    /// suffix (`sm_90a`, `sm_100f`) is a set of features that only its own architecture has.
    fn architecture(&self, source: &[u8]) -> String {
        let own = target(source).map(|sm| sm.replacen("sm_", "compute_", 1));
        match own {
            Some(own) if own.ends_with(['a', 'f']) && self.architectures.contains(&own) => own,
            _ => "compute_121".to_owned(),
        }
    }
}

/// A release of nvdisasm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disassembler {
    /// CUDA 13.5: sm_75 and later.
    V13_5,
    /// CUDA 12.8, the last one that PyPI has that knows Maxwell: sm_50 to sm_120.
    V12_8,
}

impl Disassembler {
    /// The release as NVIDIA numbers it.
    pub fn name(self) -> &'static str {
        match self {
            Disassembler::V13_5 => "13.5",
            Disassembler::V12_8 => "12.8",
        }
    }

    fn package(self) -> &'static Package {
        const BIN: &str = "triton/backends/nvidia/bin/nvdisasm";
        match self {
            Disassembler::V13_5 => {
                &Package { name: "nvidia-cuda-nvdisasm", options: &[], binary: "nvidia/cu13/bin/nvdisasm" }
            }
            // Triton ships the tool; only the file for this Python and platform is pinned.
            Disassembler::V12_8 => &Package {
                name: "triton",
                options: &["--python-version", "3.11", "--platform", "manylinux_2_27_x86_64"],
                binary: BIN,
            },
        }
    }

    /// The program, installed into `folder` from PyPI first when it is not there.
    pub fn open(self, folder: &Path) -> Result<PathBuf> {
        self.package().open(&folder.join(format!("nvdisasm-{}", self.name())))
    }

    /// What it calls itself.
    pub fn build(self, folder: &Path) -> Result<String> {
        build(&self.open(folder)?)
    }
}

/// Which of the sources a message is about: the number in `ptxas 17.ptx, line 7; error   : words`.
fn source_index(line: &str) -> Option<usize> {
    let (name, _) = line.strip_prefix("ptxas ")?.split_once(".ptx, line ")?;
    name.parse().ok()
}

/// The first name behind the first `.target` that begins a line, such as `sm_90a`.
fn target(source: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(source);
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let name = rest.trim_start();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(name[..end].to_owned())
}

/// The `compute_*` names in the assembler's help.
fn architectures(help: &str) -> Vec<String> {
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("compute_")).map(str::to_owned).collect()
}

/// Reads `ptxas FILE, line 7; error   : words` or `ptxas fatal   : words`.
///
/// Anything else, and the closing line that repeats that there were errors, is no message.
fn parse_message(line: &str) -> Option<Message> {
    let (head, text) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
    let (place, severity) = match head.rsplit_once("; ") {
        Some((place, severity)) => (place.rsplit_once(", line ")?.1.parse().ok()?, severity),
        None => (0, head.split_whitespace().nth(1)?),
    };
    let severity = match severity.trim() {
        "info" => Severity::Info,
        "warning" => Severity::Warning,
        "error" => Severity::Error,
        "fatal" => Severity::Fatal,
        _ => return None,
    };
    let text = text.trim();
    // What makes the code says lines in its own way.
    let of_code = text.strip_prefix("Line No: ").and_then(|rest| rest.split_once(": "));
    let (place, text) = match of_code.and_then(|(line, text)| Some((line.parse().ok()?, text))) {
        Some(found) => found,
        None => (place, text),
    };
    (text != "Ptx assembly aborted due to errors").then(|| Message {
        line: place,
        severity,
        text: text.to_owned(),
    })
}

/// The optimiser of CUDA 12.9, a library in the package of ptxas, under `folder`.
pub fn libnvvm(folder: &Path) -> Result<PathBuf> {
    let release = Release::V12_9;
    let package = Package { binary: "nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so", ..*release.package() };
    package.open(&folder.join(format!("ptxas-{}", release.name())))
}

/// nvcc and the headers that kernels include (cooperative groups, libcu++, CUB): these unpack into one tree.
const COMPILER: [&str; 5] =
    ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl"];

/// The compiler nvcc 13.5 under `folder`, installed from PyPI first when it is not there.
pub fn nvcc(folder: &Path) -> Result<PathBuf> {
    let home = folder.join("nvcc-13.5");
    open(&COMPILER, &[], &home.join("nvidia/cu13/bin/nvcc"), &home)
}

/// The program `binary`; where it is not there, pip installs the packages into `home`, and checks the pinned hashes.
fn open(packages: &[&str], options: &[&str], binary: &Path, home: &Path) -> Result<PathBuf> {
    if binary.is_file() {
        return Ok(binary.to_owned());
    }
    let lines = packages.iter().map(|name| requirement(name).ok_or("oracles.txt does not pin this package"));
    let requirements = lines.collect::<result::Result<Vec<_>, _>>()?.join("\n");
    fs::create_dir_all(home)?;
    let list = home.join("requirements.txt");
    fs::write(&list, &requirements)?;
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let status = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--require-hashes", "--only-binary", ":all:", "--target"])
        .arg(home)
        .args(options)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .arg("--requirement")
        .arg(&list)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", python.to_string_lossy()))?;
    match status.success() && binary.is_file() {
        true => Ok(binary.to_owned()),
        false => Err(format!("installing {requirements} did not yield {}", binary.display()).into()),
    }
}

/// What a program calls itself: the line of its `--version` that names the build.
pub fn build(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().last().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_with_their_line() {
        let message = parse_message("ptxas /a/x.ptx, line 7; error   : Unknown symbol 'a : b'").unwrap();
        assert_eq!(
            message,
            Message { line: 7, severity: Severity::Error, text: "Unknown symbol 'a : b'".to_owned() }
        );
        let message =
            parse_message("ptxas x.ptx, line 3; fatal   : Parsing error near '.': syntax error").unwrap();
        assert_eq!((message.line, message.severity), (3, Severity::Fatal));
        assert_eq!(message.text, "Parsing error near '.': syntax error");
    }

    #[test]
    fn messages_about_the_whole_file_have_line_zero() {
        let message =
            parse_message("ptxas fatal   : Program with .target 'sm_90a' cannot be compiled").unwrap();
        assert_eq!((message.line, message.severity), (0, Severity::Fatal));
        let message = parse_message("ptxas info    : (C7510) Potential Performance Loss: x").unwrap();
        assert_eq!(message.text, "(C7510) Potential Performance Loss: x");
        assert_eq!(parse_message("ptxas fatal   : Ptx assembly aborted due to errors"), None);
        assert_eq!(parse_message("Copyright (c) NVIDIA Corporation: all"), None);
    }

    #[test]
    fn the_target_is_found_behind_comments_and_before_options() {
        assert_eq!(
            target(b"// .target sm_10\n.version 8.0\n  .target\tsm_90a, debug\n").as_deref(),
            Some("sm_90a")
        );
        assert_eq!(target(b".version 8.0\n").as_deref(), None);
    }

    #[test]
    fn every_release_is_pinned() {
        for release in Release::ALL {
            let pin = requirement(release.package().name).expect("a line in oracles.txt");
            assert!(pin.contains("--hash=sha256:"), "{pin}");
        }
        for release in [Disassembler::V13_5, Disassembler::V12_8] {
            assert!(requirement(release.package().name).is_some_and(|pin| pin.contains("--hash=sha256:")));
        }
        for name in COMPILER {
            assert!(requirement(name).is_some_and(|pin| pin.contains("--hash=sha256:")), "{name}");
        }
    }
}
