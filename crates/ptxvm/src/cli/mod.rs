//! The command line of `ptxvm`: what can be written, and where it goes.

mod alone;
mod array;
mod check;
mod eval;
mod explain;
mod facts;
mod input;
mod isa;
mod npy;
mod numbers;
mod options;
mod picture;
mod profile;
mod report;
mod run;
mod sass;
mod save;
mod session;
mod spec;
mod summary;

use std::process::ExitCode;

use clap::Parser;

use options::{Cli, Command};
use report::code;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, errors to stderr; a reader that has gone away is no error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { code::USAGE } else { code::OK });
        }
    };
    let result = match cli.command {
        Command::Check(options) => check::check(&options),
        Command::Run(options) => run::run(&options),
        Command::Eval(options) => eval::eval(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Isa(options) => isa::isa(&options),
        Command::Sass(options) => sass::sass(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.show();
            ExitCode::from(failure.code)
        }
    }
}
