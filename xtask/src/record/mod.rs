//! `cargo xtask record ...`: ask an oracle, and write down what it said.
//!
//! Each sub-command names what it records and where to; the records are checked in under `conformance/` or beside
//! the tests that read them, so that a normal build and test run needs no oracle.

mod code;
mod corpus;
mod fail;
mod hardware;
mod intrinsics;
mod legality;
pub mod lines;
pub mod oracle;
mod sass;
pub mod tools;
mod values;

use std::path::{Path, PathBuf};
use std::{error, fs, result};

use serde::Serialize;

use oracle::Oracle;

/// The outcome of a chore: nothing but a message for the person who started it.
pub type Result<T> = result::Result<T, Box<dyn error::Error>>;

/// An assembler, as the header of a record names it.
#[derive(Serialize)]
struct Tool {
    release: &'static str,
    /// The build string.
    build: String,
}

impl Tool {
    fn of(oracle: &Oracle) -> Result<Tool> {
        Ok(Tool { release: oracle.release().name(), build: oracle.build()? })
    }
}

/// What to record.
#[derive(Debug, clap::Subcommand)]
pub enum Record {
    /// What ptxas says about each bad file of tests/fail
    Fail {
        /// Write nothing; fail if a record would change
        #[arg(long)]
        check: bool,
    },
    /// What nvcc makes of each pair of kernels of tests/tools/cuda, with its bug and without
    Tools {
        /// Compile all of them again, not only those that have changed
        #[arg(long)]
        all: bool,
    },
    /// Which PTX nvcc makes of each intrinsic function of CUDA's headers
    Intrinsics,
    /// What ptxas 13.5 and 12.9 say about each file of the corpus of real PTX
    Corpus {
        /// The folder that holds the corpus [default: what PTXVM_CORPUS names, or target/corpus]
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// What ptxas 13.5 and 12.9 say about every form of the core instructions, and 13.5 about random lines and modules of all others
    Legality {
        /// Record one part only
        #[arg(long, value_enum)]
        only: Option<legality::Part>,
        /// Write no record: ask ptxas 13.5 about other random lines and modules, and show how far the checker agrees
        #[arg(long, conflicts_with = "only")]
        seed: Option<u64>,
        /// Of the questions of `--seed` ask one in so many
        #[arg(long, default_value_t = 1, requires = "seed", value_parser = clap::value_parser!(u16).range(1..))]
        share: u16,
        /// Have ptxas make code of the lines of `--seed`: the checker is to say what it says then
        #[arg(long, requires = "seed")]
        code: bool,
        /// Where to put its answers to `--seed`
        #[arg(long, default_value = "target/table.txt.zst", requires = "seed")]
        to: PathBuf,
    },
    /// Write no record: tell which forms a ptxas takes and the table lacks, and which it has too many
    Isa {
        /// The assembler [default: ptxas 13.5]
        #[arg(long)]
        ptxas: Option<PathBuf>,
        /// The checker: `cargo build --release -p ptxvm-command`
        #[arg(long, default_value = "target/release/ptxvm")]
        ours: PathBuf,
        /// A file of words with blanks between: of these those are told that ptxas knows as modifiers, and the table does not
        #[arg(long)]
        words: Option<PathBuf>,
    },
    /// What ptxas 13.5 says about random instructions of the whole table with several errors each
    Errors {
        /// Where the random instructions start: another seed, other instructions
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of instructions
        #[arg(long, default_value_t = 6_000)]
        count: usize,
        /// The file to write
        #[arg(long, default_value = "conformance/legality/errors.txt.zst")]
        to: PathBuf,
    },
    /// What ptxas and libnvvm compute when they fold constants of the core instructions
    Values {
        /// Number of vectors of each
        #[arg(long, default_value_t = 100_000)]
        count: usize,
    },
    /// What an NVIDIA GPU of this machine computes, if it has one
    Hardware {
        /// The instructions (default: all that compute one result from registers)
        opcodes: Vec<String>,
        /// Number of vectors of each spelling
        #[arg(long, default_value_t = 256)]
        count: usize,
        /// What it makes of the kernels of tests/run instead, launch by launch; of those whose names contain one of the words
        #[arg(long, conflicts_with = "count")]
        kernels: bool,
        /// What it makes of HSETP2 instead, of encodings too that no compiler writes
        #[arg(long, conflicts_with_all = ["kernels", "count", "opcodes"])]
        hsetp2: bool,
        /// What its tensor cores make of random numbers instead
        #[arg(long, conflicts_with_all = ["kernels", "hsetp2", "count", "opcodes"])]
        mma: bool,
        /// Print what it makes of one launch of tests/run, and write nothing
        #[arg(long, value_name = "FILE:NUMBER", conflicts_with_all = ["kernels", "count"])]
        launch: Option<hardware::LaunchName>,
        /// The folder to write to [default: conformance/hardware, of kernels conformance/launches]
        #[arg(long)]
        to: Option<PathBuf>,
    },
    /// What the code computes that ptxas makes of video instructions
    Video {
        /// Number of vectors
        #[arg(long, default_value_t = 20_000)]
        count: usize,
    },
    /// What the code computes that ptxas makes of carry chains and of 64-bit bfe and bfi
    Integer {
        /// Number of vectors
        #[arg(long, default_value_t = 20_000)]
        count: usize,
    },
    /// What nvdisasm prints for words of HSETP2, and what ptxas makes of setp on halves
    Sass {
        /// Where the words start: another seed, other words
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of random words of each form and generation
        #[arg(long, default_value_t = 100_000)]
        count: usize,
        /// Record one part only
        #[arg(long, value_enum)]
        only: Option<sass::Part>,
        /// Keep the answers about all words, not a sample
        #[arg(long)]
        all: bool,
        /// Write nothing: compare what nvdisasm 12.8 says of words with what ptxvm does. Take a seed that no record has; with
        /// `--all`, the words are all those of the records, and nvdisasm must say what it said then
        #[arg(long, conflicts_with_all = ["only", "to"])]
        check: bool,
        /// The folder to write to [default: conformance/sass, which has samples alone]
        #[arg(long)]
        to: Option<PathBuf>,
    },
}

/// Does what `what` says, in the repository that this program was built from.
pub fn run(what: &Record) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let oracles = root.join(".oracles");
    match what {
        Record::Fail { check } => fail::record(&oracles, &root.join("tests/fail"), *check),
        Record::Tools { all } => tools::record(&oracles, &root.join("tests/tools"), *all),
        Record::Intrinsics => {
            intrinsics::record(&oracles, &root.join("crates/command/src/explain/intrinsics.tsv"))
        }
        Record::Corpus { from } => {
            let from = from.as_ref().map_or_else(test_utils::corpus::path, |from| root.join(from));
            corpus::record(&oracles, &from, &root.join("conformance/corpus"))
        }
        Record::Values { count } => values::record(&root, &oracles, *count),
        Record::Hardware { launch: Some(name), .. } => hardware::print_launch(&root, name),
        Record::Hardware { hsetp2: true, to, .. } => {
            let folder = to.clone().unwrap_or_else(|| root.join("conformance/hardware"));
            hardware::record_hsetp2(&folder)
        }
        Record::Hardware { mma: true, to, .. } => {
            let folder = to.clone().unwrap_or_else(|| root.join("conformance/hardware"));
            hardware::record_mma(&folder)
        }
        Record::Hardware { opcodes, kernels: true, to, .. } => {
            let folder = to.clone().unwrap_or_else(|| root.join("conformance/launches"));
            hardware::record_kernels(&root, &folder, opcodes)
        }
        Record::Hardware { opcodes, count, to, .. } => {
            let folder = to.clone().unwrap_or_else(|| root.join("conformance/hardware"));
            hardware::record(&folder, opcodes, *count)
        }
        Record::Video { count } => code::record_video(&root, &oracles, *count),
        Record::Integer { count } => code::record_integer(&root, &oracles, *count),
        Record::Sass { all: true, check: true, .. } => {
            sass::check_record(&oracles, &root.join("conformance/sass"))
        }
        Record::Sass { seed, count, check: true, .. } => sass::check(&oracles, *seed, *count),
        Record::Sass { all: true, to: None, .. } => {
            Err("--all writes 22 MB, which do not belong into conformance/sass: say where, with --to".into())
        }
        Record::Sass { seed, count, all, only, to, .. } => {
            let folder = root.join(to.as_deref().unwrap_or(Path::new("conformance/sass")));
            sass::record(&oracles, &folder, (*seed, *count), *all, *only)
        }
        Record::Isa { ptxas, ours, words } => {
            let oracle = match ptxas {
                Some(ptxas) => Oracle::at(ptxas, oracle::Release::V13_5)?,
                None => Oracle::open(&oracles, oracle::Release::V13_5)?,
            };
            legality::sweep::compare(&oracle, &root.join(ours), words.as_deref())
        }
        Record::Errors { seed, count, to } => {
            legality::record_errors(&oracles, &root.join(to), *seed, *count)
        }
        Record::Legality { seed: Some(seed), share, code, to, .. } => {
            legality::table::compare(&root, &oracles, (*seed, *share), *code, &root.join(to))
        }
        Record::Legality { only, .. } => {
            legality::record(&oracles, &root.join("conformance/legality"), *only)
        }
    }
}

/// The files under `folder`, at any depth, whose name ends in `.extension`, in the order of their paths.
fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
