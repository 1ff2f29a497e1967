//! What the tests of the command share: running it, and comparing arrays.
#![allow(dead_code)] // each test uses a part

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

#[allow(unused_imports)] // each test uses a part
pub use test_utils::{compare, corpus, root};

/// A command that has ended.
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Both outputs, for messages of failed tests.
    pub fn transcript(&self) -> String {
        format!("exit code {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// The command, ready for arguments.
pub fn ptxvm() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
    command.env_remove("PTXVM_HOST_PATH");
    command
}

/// Longest time that a launch of these tests may take; a hang is a failure.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Result<Outcome, String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let mut stderr = child.stderr.take().ok_or("no stderr")?;
    let read_stdout = std::thread::spawn(move || read_all(&mut stdout));
    let read_stderr = std::thread::spawn(move || read_all(&mut stderr));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it did not end within {} s", LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let stdout = read_stdout.join().map_err(|_| "reading failed")?;
    let stderr = read_stderr.join().map_err(|_| "reading failed")?;
    Ok(Outcome { code: status.code(), stdout, stderr })
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The host paths that this machine has.
pub fn host_paths() -> Vec<&'static str> {
    ptxvm::HostPath::ALL.into_iter().filter(|path| path.is_available()).map(|path| path.name()).collect()
}

/// A launch with expected outputs, as `examples/cases.json` and `tests/corpus/cases.json` list them.
#[derive(Clone, Deserialize)]
pub struct Case {
    pub kernel: String,
    /// A kernel that `cargo xtask corpus` makes, which takes the same arguments and must do the same.
    pub made: Option<String>,
    pub entry: Option<String>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u64,
    /// Run with `--lenient`.
    #[serde(default)]
    pub lenient: bool,
    pub args: Vec<String>,
    pub outputs: Vec<ExpectedOutput>,
}

/// What an argument must hold afterwards.
#[derive(Clone, Deserialize)]
pub struct ExpectedOutput {
    pub arg: usize,
    pub expected: String,
    /// Units in the last place by which floats may be off.
    pub tolerance: u64,
}

/// The cases that a `cases.json` lists.
pub fn cases(folder: &Path) -> Vec<Case> {
    let path = folder.join("cases.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Case {
    /// The case itself, and the same launch of the kernel that `cargo xtask corpus` makes, if there is one.
    pub fn launches(self) -> impl Iterator<Item = Case> {
        let made = self.made.clone().map(|kernel| Case { kernel, made: None, ..self.clone() });
        [self].into_iter().chain(made)
    }

    /// A name to select it by.
    pub fn name(&self, number: usize) -> String {
        let entry = self.entry.as_deref().unwrap_or_default();
        let mut name = format!("{number:02} {} {entry}", self.kernel);
        name.truncate(name.floor_char_boundary(110));
        name.trim_end().to_owned()
    }

    /// Launches the kernel and compares what it wrote. Paths of arrays are relative to `folder`.
    pub fn run(
        &self,
        kernel: &Path,
        folder: &Path,
        options: &[&str],
        host_path: Option<&str>,
    ) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let extents = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join(",");
        let mut command = ptxvm();
        command.current_dir(folder).arg("run").arg(kernel).args(options);
        command.args(["--grid", &extents(self.grid), "--block", &extents(self.block)]);
        command.args(["--shared", &self.shared.to_string()]);
        if self.lenient {
            command.arg("--lenient");
        }
        if let Some(entry) = &self.entry {
            command.args(["--entry", entry]);
        }
        if let Some(path) = host_path {
            command.env("PTXVM_HOST_PATH", path);
        }
        for arg in &self.args {
            command.args(["--arg", arg]);
        }
        let saved = |output: &ExpectedOutput| directory.path().join(format!("{}.npy", output.arg));
        for output in &self.outputs {
            command.arg("--out").arg(format!("{}={}", output.arg, saved(output).display()));
        }
        let outcome = finish(&mut command)?;
        if outcome.code != Some(0) {
            return Err(outcome.transcript());
        }
        for output in &self.outputs {
            let (wanted_type, wanted) = read_npy(&folder.join(&output.expected))?;
            let (got_type, got) = read_npy(&saved(output))?;
            if wanted_type != got_type {
                return Err(format!("argument {} is {got_type}, expected {wanted_type}", output.arg));
            }
            let result = match output.tolerance {
                0 => compare(&got, &wanted, npy_width(&wanted_type)),
                ulps => compare_floats(&got, &wanted, npy_width(&wanted_type), ulps),
            };
            result.map_err(|text| format!("argument {}: {text}", output.arg))?;
        }
        Ok(())
    }
}

/// Type and bytes of a `.npy` file, read by a crate that the command does not use.
pub fn read_npy(path: &Path) -> Result<(String, Vec<u8>), String> {
    let context = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = npyz::NpyFile::new(std::fs::File::open(path).map_err(context)?).map_err(context)?;
    let descr = file.dtype().descr();
    let mut bytes = Vec::new();
    file.into_inner().read_to_end(&mut bytes).map_err(context)?;
    Ok((descr, bytes))
}

/// Size of the elements of `'<f4'`.
fn npy_width(descr: &str) -> usize {
    descr.trim_end_matches('\'').chars().last().and_then(|digit| digit.to_digit(10)).unwrap_or(1) as usize
}

/// Whether all floats of `width` bytes are within `ulps` units in the last place; a NaN is like any other.
pub fn compare_floats(got: &[u8], wanted: &[u8], width: usize, ulps: u64) -> Result<(), String> {
    if got.len() != wanted.len() {
        return Err(format!("{} bytes, expected {}", got.len(), wanted.len()));
    }
    // Integers in the order of the floats: neighbours differ by one.
    let ordinal = |bytes: &[u8]| {
        let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        let sign = 1u64 << (width * 8 - 1);
        let magnitude = (bits & (sign - 1)) as i128;
        let infinity = match width {
            2 => 0x7c00,
            4 => 0x7f80_0000,
            _ => 0x7ff0_0000_0000_0000,
        };
        let value = if bits & sign != 0 { -magnitude } else { magnitude };
        (magnitude <= infinity).then_some(value)
    };
    let pairs = got.chunks_exact(width).zip(wanted.chunks_exact(width)).enumerate();
    let distances = pairs.map(|(i, (got, wanted))| match (ordinal(got), ordinal(wanted)) {
        (Some(got), Some(wanted)) => (got.abs_diff(wanted), i),
        (None, None) => (0, i),
        _ => (u128::MAX, i),
    });
    match distances.max() {
        Some((distance, i)) if distance > u128::from(ulps) => {
            Err(format!("element {i} is off by {distance} units in the last place, {ulps} are allowed"))
        }
        _ => Ok(()),
    }
}

/// A kernel that multiplies an array in place, for a block.
pub const SCALE: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor)
{
    .reg .u32 %i;
    .reg .u64 %p;
    .reg .f32 %x, %f;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [data];
    ld.param.f32 %f, [factor];
    mad.wide.u32 %p, %i, 4, %p;
    ld.global.f32 %x, [%p];
    mul.f32 %x, %x, %f;
    st.global.f32 [%p], %x;
    ret;
}
";

/// A folder with files for one test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("scale.ptx", SCALE);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Puts the command here, and beside it libraries that cargo has built for this test. An empty file stands for the driver.
    pub fn put_libraries(&self, libraries: &[&str]) -> PathBuf {
        let command = self.path("ptxvm");
        if std::fs::hard_link(env!("CARGO_BIN_EXE_ptxvm"), &command).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_ptxvm"), &command).unwrap();
        }
        self.write("libcuda.so.1", "");
        let test = std::env::current_exe().unwrap();
        for library in libraries {
            std::fs::copy(test.with_file_name(library), self.path(library)).unwrap();
        }
        command
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = ptxvm();
        command.current_dir(self.0.path()).args(words.split_whitespace());
        command
    }

    /// Runs `ptxvm` with these words in the folder.
    pub fn run(&self, words: &str) -> Outcome {
        finish(&mut self.command(words)).unwrap()
    }

    /// The same, and the exit code and parts of stderr must be these.
    #[track_caller]
    pub fn fails(&self, words: &str, code: i32, parts: &[&str]) -> Outcome {
        let outcome = self.run(words);
        assert_eq!(outcome.code, Some(code), "{words}\n{}", outcome.transcript());
        for part in parts {
            assert!(outcome.stderr.contains(part), "{words}: no `{part}`\n{}", outcome.transcript());
        }
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.transcript());
        outcome
    }
}

/// A file of numpy.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// The bytes of numbers.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
