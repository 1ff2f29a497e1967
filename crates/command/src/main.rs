//! The `ptxvm` command: what can be written on its line, and where it goes.
#![forbid(unsafe_code)]

mod alone;
mod arguments;
mod array;
mod check;
mod eval;
mod exec;
mod executed;
mod explain;
mod facts;
mod input;
mod isa;
mod npy;
mod numbers;
mod options;
mod picture;
mod profile;
mod ptxas;
mod report;
mod run;
mod runtime;
mod sass;
mod save;
mod session;
mod spec;
mod structure;
mod summary;
mod texture;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use options::{Cli, Command};
use report::{Failure, code};

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().map(PathBuf::from).unwrap_or_default();
    if name.file_stem().is_some_and(|name| name == "ptxas") {
        return ptxas::ptxas(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, errors to stderr; a reader that has gone away is no error.
            let _ = error.print();
            if !error.use_stderr() {
                return ExitCode::from(code::OK);
            }
            if asks_for_json() {
                // What clap has printed is for people.
                let text = error.render().to_string();
                let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                Failure::usage(message).print_json();
            }
            return ExitCode::from(code::USAGE);
        }
    };
    let format = cli.command.format();
    let result = match cli.command {
        Command::Check(options) => check::check(&options),
        Command::Run(options) => run::run(&options),
        Command::Eval(options) => eval::eval(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Isa(options) => isa::isa(&options),
        Command::Sass(options) => sass::sass(&options),
        Command::Exec(options) => match exec::exec(&options) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::AsPtxas { words } => return ptxas::ptxas(&words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(format);
            ExitCode::from(failure.code)
        }
    }
}

/// Whether the command line that could not be read asks for JSON.
fn asks_for_json() -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    words.iter().any(|word| word == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}
