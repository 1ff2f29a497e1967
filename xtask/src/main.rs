//! Chores of the workspace: `cargo xtask codegen` and its kin.

mod client;
mod codegen;
mod corpus;
mod docs;
mod mutants;
mod record;
mod sanitize;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Chores of the ptxvm workspace.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run a program that uses CUDA, with its own tests, on our driver.
    Client(client::Options),
    /// Compile isa/*.isa into crates/isa/src/generated.
    Codegen(codegen::Options),
    /// Compile the kernels of tests/corpus/sources with compilers of the public registries.
    Corpus(corpus::Options),
    /// Write docs/isa, and which recordings back which instruction.
    Docs(docs::Options),
    /// Plant one fault after the other in a copy of the tree, and see whether the tests notice.
    Mutants(mutants::Options),
    /// Run tests under Miri, AddressSanitizer and ThreadSanitizer, with a nightly toolchain.
    Sanitize(sanitize::Options),
    /// Hold the instruction table against an assembler.
    Verify(verify::Options),
    /// Ask an oracle, and write down what it said.
    #[command(subcommand)]
    Record(record::Record),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Client(options) => client::run(&options),
        Chore::Codegen(options) => codegen::run(&options),
        Chore::Corpus(options) => corpus::run(&options),
        Chore::Docs(options) => docs::run(&options),
        Chore::Mutants(options) => mutants::run(&options),
        Chore::Sanitize(options) => sanitize::run(&options),
        Chore::Verify(options) => verify::run(&options),
        Chore::Record(what) => record::run(&what).map_err(|error| error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
