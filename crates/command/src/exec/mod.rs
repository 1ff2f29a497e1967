//! `ptxvm exec`: runs a program with ptxvm's CUDA driver instead of NVIDIA's; `ptxvm env` prints the environment for that.
//!
//! It sets the environment so that the program finds our libraries, forwards signals to it (`signals.rs`), and
//! combines the reports of its processes (`report.rs`), including live reports of processes that ended without a
//! final one (`live.rs`).

mod live;
mod report;
mod signals;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use debugger::remote::Host;
use ptxvm::Suppressions;

use self::report::Report;
use self::signals::Forwarded;
use super::Call;
use super::options::{EnvOptions, ExecOptions, FilterOptions};
use super::report::{Failure, say};
use super::runtime::has_static_runtime;

/// The names under which programs look for our libraries, and the file names beside this command: installed, or after
/// `cargo build`.
const LIBRARIES: &[(&[&str], &[&str])] = &[
    (&["libcuda.so.1", "libcuda.so"], &["libcuda.so.1", "libptxvm_libcuda.so"]),
    // numba opens the runtime without a version; its toolkits have version 12.
    (&["libcudart.so.12", "libcudart.so"], &["libcudart.so.12", "libptxvm_cudart12.so"]),
    (&["libcudart.so.13"], &["libcudart.so.13", "libptxvm_cudart13.so"]),
    (&[AUDIT], &[AUDIT]),
    (&["libnvidia-ml.so.1", "libnvidia-ml.so"], &["libnvidia-ml.so.1", "libptxvm_nvml.so"]),
    (&["libcublas.so.12", "libcublas.so"], &["libcublas.so.12", "libptxvm_cublas.so"]),
    (&["libcublas.so.13"], &["libcublas.so.13", "libptxvm_cublas.so"]),
    // The same file: a handle of the one is a handle of the other.
    (&["libcublasLt.so.12", "libcublasLt.so"], &["libcublas.so.12", "libptxvm_cublas.so"]),
    (&["libcublasLt.so.13"], &["libcublas.so.13", "libptxvm_cublas.so"]),
    (&["libcufft.so.11", "libcufft.so"], &["libcufft.so.11", "libptxvm_cufft.so"]),
    (&["libcufft.so.12"], &["libcufft.so.12", "libptxvm_cufft.so"]),
    (&["libcurand.so.10", "libcurand.so"], &["libcurand.so.10", "libptxvm_curand.so"]),
    (&["libnccl.so.2", "libnccl.so"], &["libnccl.so.2", "libptxvm_nccl.so"]),
    (&["libcusparse.so.12", "libcusparse.so"], &["libcusparse.so.12", "libptxvm_cusparse.so"]),
    (&["libcusolver.so.11", "libcusolver.so"], &["libcusolver.so.11", "libptxvm_cusolver.so"]),
    (&["libcusolver.so.12"], &["libcusolver.so.12", "libptxvm_cusolver.so"]),
];

/// What the dynamic linker asks where libraries are (`crates/audit`).
const AUDIT: &str = "libptxvm_audit.so";

/// What stands before a library of NVIDIA's (`crates/wrapper`).
struct Wrapper {
    /// Its file.
    file: &'static str,
    /// The name that it has inside.
    inside: &'static str,
    /// The names of NVIDIA's library.
    names: &'static [&'static str],
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        file: "libptxvm_nvrtc.so",
        inside: "libnvrtc.so.of-this-release",
        names: &["libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13"],
    },
    Wrapper {
        file: "libptxvm_nvjitlink.so",
        inside: "libnvJitLink.so.of-this-release",
        names: &["libnvJitLink.so.12", "libnvJitLink.so.13"],
    },
];

/// Has PyTorch allocate and free each tensor by itself.
const UNCACHED: &str = "PYTORCH_NO_CUDA_MEMORY_CACHING";

/// Has JAX allocate and free each array by itself, where the variable is not set to something else.
const XLA_ALLOCATOR: &str = "XLA_PYTHON_CLIENT_ALLOCATOR";

/// What only one framework reads, each set to 1 unless it is set already: the parts of the Python package for PyTorch and
/// JAX, and PTX instead of machine code from CuPy.
const SWITCHES: [&str; 3] = ["PTXVM_TORCH", "PTXVM_JAX", "CUPY_COMPILE_WITH_PTX"];

/// Puts links to the libraries into a folder that stays, and prints the variables with which programs find them.
///
/// # Errors
/// When the folder or what belongs into it cannot be made.
pub fn env(options: &EnvOptions, call: &Call) -> Result<(), Failure> {
    let failed = |error| Failure::usage(format!("cannot make `{}`: {error}", options.folder.display()));
    std::fs::create_dir_all(&options.folder).map_err(failed)?;
    let folder = std::fs::canonicalize(&options.folder).map_err(failed)?;
    link_libraries(&folder, call)?;
    let mut command = Command::new("env");
    if let Some(tools) = &options.tool {
        set_tools(&mut command, tools);
    }
    set_environment(&mut command, &folder, options.device.as_deref())?;
    let mut out = std::io::stdout().lock();
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let written = match options.shell {
            true => writeln!(out, "export {name}='{}'", value.replace('\'', r"'\''")),
            false => writeln!(out, "{name}={value}"),
        };
        crate::report::written(written)?;
    }
    Ok(())
}

/// Has the driver watch every launch.
fn set_tools(command: &mut Command, tools: &str) {
    command.env("PTXVM_TOOL", tools);
    // PyTorch takes memory in large blocks, inside which no tool can tell one tensor from the next. It only looks
    // whether the variable is there.
    match env::var_os(UNCACHED).is_some_and(|value| value == "0") {
        true => command.env_remove(UNCACHED),
        false => command.env(UNCACHED, "1"),
    };
    if env::var_os(XLA_ALLOCATOR).is_none() {
        command.env(XLA_ALLOCATOR, "cuda_async");
    }
}

/// Runs the program to its end.
///
/// # Errors
/// When the program cannot be started, or a report cannot be written.
pub fn exec(options: &ExecOptions, call: &Call) -> Result<u8, Failure> {
    // Outputs are opened first, so that the program does not run in vain.
    let mut report_file = options.report.as_deref().map(create).transpose()?;
    if let Some(path) = &options.profile {
        OpenOptions::new().append(true).create(true).open(path).map_err(|error| unwritable(path, &error))?;
    }
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
        set_tools(&mut command, tools);
    }
    if let Some(file) = &options.suppressions {
        Suppressions::read(file).map_err(|error| Failure::usage(format!("--suppressions: {error}")))?;
        let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        command.env("PTXVM_SUPPRESSIONS", file);
    }
    if let Some(folder) = &options.save_ptx {
        command.env("PTXVM_SAVE_PTX", std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    }
    if options.track_unused_memory {
        command.env("PTXVM_TRACK_UNUSED_MEMORY", "1");
    }
    options.filter.set_environment(&mut command);
    if options.profile.is_some() {
        // A launch can have either a profile or tools.
        command.env("PTXVM_PROFILE", "1").env_remove("PTXVM_TOOL");
    }
    if options.debug {
        let host = Host::new(folder.path());
        let host = host.map_err(|error| Failure::usage(format!("cannot make a socket: {error}")))?;
        command.env(debugger::remote::VARIABLE, host.path());
        let original = options.original;
        std::thread::spawn(move || host.lead(&mut crate::debug::Input::new(), original));
    }
    set_environment(&mut command, folder.path(), options.device.as_deref())?;
    let mut signals = Forwarded::begin();
    let start = Instant::now();
    let mut program = command.spawn().map_err(|error| cannot_run(name, &error))?;
    signals.to(&program);
    let status = program.wait().map_err(|error| Failure::usage(error.to_string()))?;
    signals.end();
    let (report, modules) = Report::read(&reports, start.elapsed(), status);
    let code = options.error_exitcode.filter(|_| report.errors > 0).unwrap_or_else(|| exit_code(status));
    let mut written = Ok(());
    if let Some((file, path)) = report_file.as_mut().zip(options.report.as_deref()) {
        let text =
            serde_json::to_string_pretty(&report).map_err(|error| Failure::usage(error.to_string()))?;
        written = file.write_all((text + "\n").as_bytes()).map_err(|error| unwritable(path, &error));
    }
    if let Some(path) = &options.profile {
        written = written.and(modules.report().save(path, &format!("ptxvm exec {}", name.display())));
    }
    if !options.quiet {
        report.say();
    }
    match written {
        // The program's own exit code is more informative.
        Err(failure) if code != 0 => {
            failure.show();
            Ok(code)
        }
        written => written.map(|()| code),
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
}

/// Why a program does not start.
fn cannot_run(name: &OsStr, error: &std::io::Error) -> Failure {
    let why = match find_program(name).filter(|program| program.exists()) {
        _ if error.kind() != ErrorKind::NotFound => error.to_string(),
        None => "there is no such program".to_owned(),
        Some(program) => match interpreter(&program) {
            Some(interpreter) => format!("there is no `{interpreter}`, which is to read it"),
            None => "the dynamic linker that it names is not there".to_owned(),
        },
    };
    Failure::usage(format!("cannot run `{}`: {why}", name.display()))
}

/// The interpreter that a script's `#!` line names.
fn interpreter(script: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).split_whitespace().next()?.to_owned())
}

impl FilterOptions {
    /// Sets the environment variables that the driver reads.
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

/// The program's exit code; for one that a signal ended, the code that shells use.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The tools of NVIDIA's whose names this command takes, and its subcommands for them.
const TOOLS: &[(&str, &str)] = &[("ptxas", "as-ptxas"), ("nvidia-smi", "as-nvidia-smi")];

/// Creates links to our libraries in a folder, and links to this command under the names of tools.
fn link_libraries(folder: &Path, call: &Call) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("cannot make a link: {error}"));
    let command = env::current_exe().and_then(std::fs::canonicalize).map_err(failed)?;
    for (name, subcommand) in TOOLS {
        let path = folder.join(name);
        match &call.again {
            Some(words) => write_script(&path, words, subcommand),
            None => link(&command, &path),
        }
        .map_err(failed)?;
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
                    self::link(&found, &folder.join(link)).map_err(failed)?;
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
    let wrappers = folder.join("wrappers");
    for wrapper in WRAPPERS {
        if let Some(file) = places.iter().map(|place| place.join(wrapper.file)).find(|file| file.is_file()) {
            wrapper.copy(&file, &wrappers).map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes a link, in place of one that is there.
fn link(file: &Path, path: &Path) -> std::io::Result<()> {
    if path.is_symlink() {
        std::fs::remove_file(path)?;
    }
    symlink(file, path)
}

impl Wrapper {
    /// Makes copies of its file, each with the name of one of NVIDIA's releases.
    fn copy(&self, file: &Path, folder: &Path) -> std::io::Result<()> {
        let bytes = std::fs::read(file)?;
        let Some(place) = memchr::memmem::find(&bytes, self.inside.as_bytes()) else { return Ok(()) };
        std::fs::create_dir_all(folder)?;
        for name in self.names {
            let mut copy = bytes.clone();
            let inside = &mut copy[place..][..self.inside.len()];
            inside.fill(0);
            inside[..name.len()].copy_from_slice(name.as_bytes());
            std::fs::write(folder.join(name), copy)?;
        }
        Ok(())
    }
}

/// A script that runs a subcommand of this command.
fn write_script(path: &Path, words: &[OsString], subcommand: &str) -> std::io::Result<()> {
    let mut script = b"#!/bin/sh\nexec".to_vec();
    for word in words {
        script.extend(b" '");
        // An apostrophe ends the quotation, appears escaped, and begins another quotation.
        script.extend(word.as_bytes().split(|&byte| byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]));
        script.push(b'\'');
    }
    script.extend(format!(" {subcommand} \"$@\"\n").into_bytes());
    std::fs::write(path, script)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

/// Sets the environment variables with which the program finds the libraries.
fn set_environment(command: &mut Command, folder: &Path, device: Option<&str>) -> Result<(), Failure> {
    command.env("PATH", with_first("PATH", folder, "/bin:/usr/bin")?);
    command.env("LD_LIBRARY_PATH", with_first("LD_LIBRARY_PATH", folder, "")?);
    let audit = folder.join(AUDIT);
    if audit.exists() {
        command.env("LD_AUDIT", with_first("LD_AUDIT", &audit, "")?).env("PTXVM_LIBRARIES", folder);
        command.env("GLIBC_TUNABLES", tunables(env::var_os("GLIBC_TUNABLES").unwrap_or_default()));
    }
    for name in SWITCHES.iter().filter(|name| env::var_os(name).is_none()) {
        command.env(name, "1");
    }
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

/// The tunables of glibc, with more room for thread-local variables that libraries want at a fixed place. Where a program is audited,
/// the libraries that it is linked with take it from there too, and 512 bytes do not suffice for a library such as rustc's.
fn tunables(mut before: OsString) -> OsString {
    const ROOM: &str = "glibc.rtld.optional_static_tls";
    if !before.to_string_lossy().contains(ROOM) {
        before.push(if before.is_empty() { "" } else { ":" });
        before.push(format!("{ROOM}=32768"));
    }
    before
}

/// A list of paths in a variable: one of ours before those that this process has there, or else before the usual ones.
fn with_first(variable: &str, path: &Path, usual: &str) -> Result<OsString, Failure> {
    let before = env::var_os(variable).unwrap_or_else(|| usual.into());
    let before = Some(before).filter(|paths| !paths.is_empty());
    let paths = std::iter::once(path.to_owned()).chain(before.iter().flat_map(env::split_paths));
    env::join_paths(paths).map_err(|error| Failure::usage(format!("{variable}: {error}")))
}

/// The path of a program, found as `execvp` does.
fn find_program(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(path)).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::tunables;

    #[test]
    fn tunables_of_the_user_are_kept() {
        let with = |before: &str| tunables(before.into()).into_string().unwrap();
        assert_eq!(with(""), "glibc.rtld.optional_static_tls=32768");
        assert_eq!(with("glibc.malloc.check=3"), "glibc.malloc.check=3:glibc.rtld.optional_static_tls=32768");
        assert_eq!(with("glibc.rtld.optional_static_tls=9"), "glibc.rtld.optional_static_tls=9");
    }
}
