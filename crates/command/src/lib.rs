//! The `ptxvm` command: its command line and subcommands. It is a library for programs that provide the command in
//! another form ([`main`]), or that need its results as data rather than text.
#![forbid(unsafe_code)]

mod alone;
mod arguments;
mod array;
mod check;
mod compile;
#[cfg(unix)]
mod dap;
#[cfg(not(target_family = "wasm"))]
mod debug;
#[cfg(target_family = "wasm")]
mod debug_elsewhere;
mod eval;
mod evidence;
#[cfg(target_os = "linux")]
mod exec;
#[cfg(not(target_os = "linux"))]
mod exec_elsewhere;
mod executed;
mod expect;
mod explain;
mod fill;
pub mod in_process;
mod input;
mod isa;
mod npy;
#[cfg(not(target_family = "wasm"))]
mod npz;
#[cfg(target_family = "wasm")]
mod npz_elsewhere;
mod numbers;
#[cfg(target_os = "linux")]
mod nvidia_smi;
mod observe;
#[cfg_attr(not(target_os = "linux"), allow(unused_imports))] // `exec` uses more of it
mod options;
mod pages;
mod picture;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))] // `exec` uses more of it
mod profile;
#[cfg(not(target_family = "wasm"))]
mod progress;
#[cfg(target_family = "wasm")]
mod progress_elsewhere;
mod ptxas;
mod recording;
mod report;
mod run;
#[cfg(target_os = "linux")]
mod runtime;
mod sass;
mod save;
mod session;
mod spec;
mod structure;
mod stubs;
mod summary;
mod tensor_map;
mod texture;
mod tool;
mod variables;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

#[cfg(not(target_os = "linux"))]
use exec_elsewhere as exec;
use options::{Cli, Command};
use report::code;
#[cfg(target_family = "wasm")]
use {debug_elsewhere as debug, npz_elsewhere as npz, progress_elsewhere as progress};

pub use alone::{Alone, Source, ones};
pub use array::{DType, HostArray};
pub use explain::page;
pub use profile::Report;
pub use recording::Recording;
pub use report::Failure;
pub use texture::{Kind as ObjectKind, object};

/// How the command was called.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name and the words behind it.
    pub words: Vec<OsString>,
    /// The words that run the command again, if the path of this process's program is not enough. Programs that call
    /// an assembler use them.
    pub again: Option<Vec<OsString>>,
    /// The folder of the libraries that `ptxvm exec` gives to programs, if it is not the one of this process's
    /// program.
    pub libraries: Option<PathBuf>,
}

impl Call {
    /// The call of this process, whose program is the command.
    pub fn of_process() -> Call {
        Call { words: std::env::args_os().collect(), again: None, libraries: None }
    }
}

/// Executes the words, and returns the exit code.
pub fn main(call: &Call) -> u8 {
    ptxvm::report_briefly();
    code_unless_panics(|| dispatch(call))
}

/// The exit code of some work, or the one for a defect if the work panicked.
fn code_unless_panics(work: impl FnOnce() -> u8) -> u8 {
    ptxvm::caught(work).unwrap_or_else(|message| {
        let failure = format!("ptxvm itself failed, which is a defect of it: {message}");
        Failure::new(code::DEFECT, failure).show();
        code::DEFECT
    })
}

fn dispatch(call: &Call) -> u8 {
    let name = call.words.first().map(PathBuf::from).unwrap_or_default();
    let words =
        || call.words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    if name.file_stem().is_some_and(|name| name == "ptxas") {
        return ptxas::ptxas(&words());
    }
    #[cfg(target_os = "linux")]
    if name.file_stem().is_some_and(|name| name == "nvidia-smi") {
        return nvidia_smi::nvidia_smi(&words());
    }
    let cli = match Cli::try_parse_from(&call.words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, errors to stderr. A reader that has closed the pipe is not an error.
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            if !error.use_stderr() {
                return report::written(printed).map_or_else(
                    |failure| {
                        failure.show();
                        failure.code
                    },
                    |()| code::OK,
                );
            }
            if asks_for_json(&call.words) {
                // clap's output is for people.
                let text = error.render().to_string();
                let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                Failure::usage(message).print_json();
            }
            return code::USAGE;
        }
    };
    let format = cli.command.format();
    let result = match cli.command {
        Command::Check(options) => check::check(&options),
        Command::Run(options) => run::run(&options),
        Command::Debug(options) => debug::debug(&options, call),
        Command::Eval(options) => eval::eval(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Isa(options) => isa::isa(&options),
        Command::Lsp => serve_editor(),
        Command::Sass(options) => sass::sass(&options),
        Command::Env(options) => exec::env(&options, call),
        Command::Stubs(options) => stubs::stubs(&options, call),
        Command::Exec(options) => match exec::exec(&options, call) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::AsPtxas { words } => return ptxas::ptxas(&words),
        #[cfg(target_os = "linux")]
        Command::AsNvidiaSmi { words } => return nvidia_smi::nvidia_smi(&words),
        Command::Completions(options) => pages::completions(&options),
        Command::Man(options) => pages::man(&options),
    };
    match result {
        Ok(()) => code::OK,
        Err(failure) => {
            failure.report(format);
            failure.code
        }
    }
}

/// `ptxvm lsp`: serves an editor.
///
/// # Errors
/// When the editor ends without saying so, or does not read.
fn serve_editor() -> Result<(), Failure> {
    match lsp::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout().lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::silent(code::BAD_INPUT)),
        Err(error) => Err(Failure::new(code::USAGE, format!("cannot write to the editor: {error}"))),
    }
}

/// Whether a command line that failed to parse asks for JSON.
fn asks_for_json(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_exit_code_that_is_documented() {
        assert_eq!(code_unless_panics(|| 7), 7);
        assert_eq!(code_unless_panics(|| panic!("this is part of the test")), code::DEFECT);
        let documented = format!("  {}    ptxvm itself failed", code::DEFECT);
        assert!(options::EXAMPLES.contains(&documented));
    }
}
