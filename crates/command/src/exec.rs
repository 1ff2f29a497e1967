//! `ptxvm exec`: runs a program with ptxvm's CUDA driver in the place of NVIDIA's.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::{BufReader, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use ptxvm::Suppressions;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Call;
use super::options::{ExecOptions, FilterOptions};
use super::profile::{Modules, OfModule};
use super::report::{Failure, say};
use super::runtime::has_static_runtime;

/// The names under which programs look for our libraries, and those that they may have beside this command: after `cargo build`, or installed.
const LIBRARIES: &[(&[&str], &[&str])] = &[
    (&["libcuda.so.1", "libcuda.so"], &["libcuda.so.1", "libptxvm_libcuda.so"]),
    (&["libcudart.so.12"], &["libcudart.so.12", "libptxvm_cudart12.so"]),
    (&["libcudart.so.13"], &["libcudart.so.13", "libptxvm_cudart13.so"]),
];

/// Runs the program to its end.
///
/// # Errors
/// When it cannot be started.
pub fn exec(options: &ExecOptions, call: &Call) -> Result<u8, Failure> {
    let folder = tempfile::Builder::new().prefix("ptxvm-exec-").tempdir();
    let folder =
        folder.map_err(|error| Failure::usage(format!("cannot make a temporary folder: {error}")))?;
    link_libraries(folder.path(), call)?;
    let (name, words) = options.program.split_first().ok_or_else(|| Failure::usage("no program"))?;
    if let Some(program) = find_program(name)
        && has_static_runtime(&program)
    {
        say(format_args!(
            "ptxvm: `{}` has NVIDIA's CUDA runtime inside (nvcc's default), which runs on NVIDIA's driver only: build it with `nvcc -cudart shared` \
             (CMake: CMAKE_CUDA_RUNTIME_LIBRARY=Shared)",
            program.display()
        ));
    }
    let reports = folder.path().join("reports");
    std::fs::create_dir(&reports)
        .map_err(|error| Failure::usage(format!("cannot make a folder: {error}")))?;
    let mut command = Command::new(name);
    command.args(words).env("PTXVM_REPORT", reports.join("%p.json"));
    if let Some(tools) = &options.tool {
        command.env("PTXVM_TOOL", tools);
    }
    if let Some(file) = &options.suppressions {
        Suppressions::read(file).map_err(|error| Failure::usage(format!("--suppressions: {error}")))?;
        let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        command.env("PTXVM_SUPPRESSIONS", file);
    }
    if options.track_unused_memory {
        command.env("PTXVM_TRACK_UNUSED_MEMORY", "1");
    }
    options.filter.set_environment(&mut command);
    if options.profile.is_some() {
        // A launch can have a profile or tools, not both.
        command.env("PTXVM_PROFILE", "1").env_remove("PTXVM_TOOL");
    }
    set_environment(&mut command, folder.path(), options.device.as_deref())?;
    // Ctrl-C goes to the program, too, which decides.
    let _ = ctrlc::set_handler(|| ());
    let start = Instant::now();
    let status = command.status().map_err(|error| {
        let why = if error.kind() == ErrorKind::NotFound {
            "there is no such program".to_owned()
        } else {
            error.to_string()
        };
        Failure::usage(format!("cannot run `{}`: {why}", name.display()))
    })?;
    let (report, modules) = Report::read(&reports, start.elapsed(), status);
    if let Some(path) = &options.report {
        let text =
            serde_json::to_string_pretty(&report).map_err(|error| Failure::usage(error.to_string()))?;
        std::fs::write(path, text + "\n")
            .map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
    }
    if let Some(path) = &options.profile {
        modules.report().save(path, &format!("ptxvm exec {}", name.display()))?;
    }
    if !options.quiet {
        report.say();
    }
    Ok(options.error_exitcode.filter(|_| report.errors > 0).unwrap_or_else(|| exit_code(status)))
}

impl FilterOptions {
    /// Tells the driver.
    fn set_environment(&self, command: &mut Command) {
        for (name, patterns) in [
            ("PTXVM_KERNEL_NAME", &self.kernel_name),
            ("PTXVM_KERNEL_NAME_EXCLUDE", &self.kernel_name_exclude),
        ] {
            if !patterns.is_empty() {
                command.env(name, patterns.join("\n"));
            }
        }
        for (name, number) in
            [("PTXVM_LAUNCH_SKIP", self.launch_skip), ("PTXVM_LAUNCH_COUNT", self.launch_count)]
        {
            if let Some(number) = number {
                command.env(name, number.to_string());
            }
        }
    }
}

/// The program's own exit code; as shells have it for one that a signal ended.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Puts links to our libraries, and this command under the name of ptxas, into a folder.
fn link_libraries(folder: &Path, call: &Call) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot make a link: {error}"));
    let command = env::current_exe().and_then(std::fs::canonicalize).map_err(failed)?;
    match &call.again {
        Some(words) => write_script(&folder.join("ptxas"), words).map_err(failed)?,
        None => symlink(&command, folder.join("ptxas")).map_err(failed)?,
    }
    let places = match (&call.libraries, command.parent().unwrap_or(Path::new("/"))) {
        (Some(folder), _) => vec![folder.clone()],
        (None, beside) => vec![beside.to_owned(), beside.join("../lib")],
    };
    for (links, names) in LIBRARIES {
        let mut candidates = places.iter().flat_map(|place| names.iter().map(|name| place.join(name)));
        match candidates.find(|candidate| candidate.is_file()) {
            Some(found) => {
                for link in *links {
                    symlink(&found, folder.join(link)).map_err(failed)?;
                }
            }
            None if links.contains(&"libcuda.so.1") => {
                let message = match &call.libraries {
                    Some(folder) => format!("ptxvm's libcuda.so.1 is not in `{}`", folder.display()),
                    None => format!("ptxvm's libcuda.so.1 is not beside `{}`", command.display()),
                };
                return Err(Failure::usage(message)
                    .help("build it there: cargo build --release -p ptxvm-libcuda -p ptxvm-command"));
            }
            None => {}
        }
    }
    Ok(())
}

/// A script that runs this command as an assembler.
fn write_script(path: &Path, words: &[OsString]) -> std::io::Result<()> {
    let mut script = b"#!/bin/sh\nexec".to_vec();
    for word in words {
        script.extend(b" '");
        // A quotation mark ends the quotation, stands for itself, and begins another.
        script.extend(word.as_bytes().split(|&byte| byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]));
        script.push(b'\'');
    }
    script.extend(b" as-ptxas \"$@\"\n");
    std::fs::write(path, script)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

/// Tells the program where to look.
fn set_environment(command: &mut Command, folder: &Path, device: Option<&str>) -> Result<(), Failure> {
    let before = env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty());
    let paths = std::iter::once(folder.to_owned()).chain(before.iter().flat_map(env::split_paths));
    let paths: OsString =
        env::join_paths(paths).map_err(|error| Failure::usage(format!("LD_LIBRARY_PATH: {error}")))?;
    command.env("LD_LIBRARY_PATH", paths);
    command.env("NUMBA_CUDA_DRIVER", folder.join("libcuda.so.1"));
    command.env("TRITON_LIBCUDA_PATH", folder);
    command.env("TRITON_PTXAS_PATH", folder.join("ptxas"));
    command.env("TRITON_PTXAS_BLACKWELL_PATH", folder.join("ptxas"));
    if let Some(device) = device {
        super::check::parse_target(device)?;
        command.env("PTXVM_DEVICE", device);
    }
    Ok(())
}

/// The file behind the name of a program, as `execvp` finds it.
fn find_program(name: &OsString) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(path)).find(|candidate| candidate.is_file())
}

/// What `--report` writes.
#[derive(Serialize)]
struct Report {
    /// Of the program; none if a signal ended it.
    exit_code: Option<i32>,
    /// From its start to its end.
    seconds: f64,
    launches: u64,
    /// In all kernels together.
    kernel_seconds: f64,
    /// Calls of the driver's functions.
    calls: u64,
    /// In all of them together, kernels that they waited for included.
    call_seconds: f64,
    /// Of all processes.
    kernels: Vec<Kernel>,
    faults: Vec<Fault>,
    /// Faults, and what tools found and call an error.
    errors: u64,
    not_supported: Vec<String>,
    /// What each process with a driver said.
    processes: Vec<serde_json::Value>,
}

/// What the driver says of its process (crates/libcuda/src/report.rs).
#[derive(Deserialize)]
struct OfProcess {
    calls: u64,
    call_seconds: f64,
    kernels: Vec<Kernel>,
    faults: Vec<Fault>,
    #[serde(default)]
    errors: u64,
    not_supported: Vec<String>,
    #[serde(default)]
    profiles: Vec<OfModule>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Kernel {
    name: String,
    launches: u64,
    seconds: f64,
}

#[derive(Clone, Deserialize, Serialize)]
struct Fault {
    kernel: String,
    message: String,
}

impl Report {
    /// Puts together what the driver wrote in each process: the report, and what instructions did if that was asked for.
    fn read(folder: &Path, time: Duration, status: ExitStatus) -> (Report, Modules) {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        files.sort();
        let of_file =
            |path: &PathBuf| serde_json::from_reader(BufReader::new(std::fs::File::open(path).ok()?)).ok();
        let mut processes: Vec<serde_json::Value> = files.iter().filter_map(of_file).collect();
        let mut modules = Modules::default();
        let mut kernels: BTreeMap<String, Kernel> = BTreeMap::new();
        let (mut faults, mut not_supported) = (Vec::new(), Vec::new());
        let (mut calls, mut call_seconds, mut errors) = (0, 0.0, 0);
        for value in &mut processes {
            let Ok(process) = OfProcess::deserialize(&*value) else { continue };
            // A profile has a file of its own.
            if let Some(object) = value.as_object_mut() {
                object.remove("profiles");
            }
            process.profiles.into_iter().for_each(|module| modules.add(module));
            for kernel in process.kernels {
                let name = kernel.name.clone();
                let sum = kernels.entry(name.clone()).or_insert(Kernel { name, launches: 0, seconds: 0.0 });
                sum.launches += kernel.launches;
                sum.seconds += kernel.seconds;
            }
            calls += process.calls;
            call_seconds += process.call_seconds;
            faults.extend(process.faults);
            errors += process.errors;
            not_supported.extend(process.not_supported);
        }
        not_supported.sort();
        not_supported.dedup();
        let mut kernels: Vec<Kernel> = kernels.into_values().collect();
        kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let report = Report {
            exit_code: status.code(),
            seconds: time.as_secs_f64(),
            launches: kernels.iter().map(|kernel| kernel.launches).sum(),
            kernel_seconds: kernels.iter().fold(0.0, |sum, kernel| sum + kernel.seconds),
            calls,
            call_seconds,
            kernels,
            faults,
            errors,
            not_supported,
            processes,
        };
        (report, modules)
    }

    /// Tells people.
    fn say(&self) {
        if self.processes.is_empty() {
            say("ptxvm: the program did not use the CUDA driver");
            return;
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        say(format_args!(
            "ptxvm: {} launched {}, {:.3} s in kernels of {:.3} s, {}",
            count(self.kernels.len(), "kernel"),
            count(self.launches as usize, "time"),
            self.kernel_seconds,
            self.seconds,
            count(self.faults.len(), "fault"),
        ));
        say(format_args!(
            "ptxvm: {:.3} s in {} of the driver, kernels that they waited for included",
            self.call_seconds,
            count(self.calls as usize, "call"),
        ));
        let mut faulty: Vec<&str> = self.faults.iter().map(|fault| fault.kernel.as_str()).collect();
        faulty.dedup();
        if !faulty.is_empty() {
            say(format_args!(
                "ptxvm: faults in {}",
                faulty.iter().map(|name| json!(name).to_string()).collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.not_supported.is_empty() {
            say(format_args!("ptxvm: not supported, and asked for: {}", self.not_supported.join(", ")));
        }
    }
}
