//! Options and arguments of every subcommand, and their help.

mod debug;
mod exec;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use debug::DebugOptions;
pub use exec::{EnvOptions, ExecOptions, FilterOptions};
pub use run::{Output, RunOptions};

/// Runs, checks and tests NVIDIA PTX kernels on a CPU, bit for bit.
#[derive(Debug, Parser)]
#[command(name = "ptxvm", version, arg_required_else_help = true, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

pub const EXAMPLES: &str = "\
Examples:
  ptxvm check kernel.ptx
  ptxvm run saxpy.ptx --grid 4 --block 256 --arg 2.0 --arg @x.npy --arg @y.npy --arg 1024 --print 2

Exit codes:
  0    everything went well
  1    an input is bad: PTX with errors, an array that cannot be read
  2    the command line is wrong, or an output cannot be written
  3    the kernel faulted, or --max-steps ran out
  4    ptxvm itself failed, which is a defect of it
  130  stopped with Ctrl-C
  141  stopped since nobody reads what the kernel prints (| head)";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report every error of PTX files
    Check(CheckOptions),
    /// Run a kernel and show or save its results
    Run(Box<RunOptions>),
    /// Step through a kernel: breakpoints, lanes, registers, forward and backward
    Debug(Box<DebugOptions>),
    /// Show what an instruction returns for given operands, and why
    Eval(EvalOptions),
    /// Explain an instruction, a form of it, a modifier, an intrinsic function of CUDA, or the code of an error
    Explain(ExplainOptions),
    /// List the instructions: what is checked, what is executed, what backs it
    Isa(IsaOptions),
    /// Help editors with PTX: a language server on standard input and output
    Lsp,
    /// Assemble, disassemble, execute HSETP2, the machine instruction behind setp on halves
    Sass(super::sass::SassOptions),
    /// Run a program, with ptxvm as its CUDA driver
    Exec(ExecOptions),
    /// Print the environment in which programs find ptxvm as their CUDA driver
    Env(EnvOptions),
    /// Write libraries in place of those of NVIDIA's that PyTorch links and does not need
    Stubs(StubsOptions),
    /// Stand in for NVIDIA's assembler: check PTX in ptxas's words, write it as it is
    #[command(disable_help_flag = true)]
    AsPtxas {
        /// ptxas's options and a file
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Stand in for NVIDIA's nvidia-smi: show the devices that programs see under `exec`
    #[cfg(target_os = "linux")]
    #[command(disable_help_flag = true)]
    AsNvidiaSmi {
        /// nvidia-smi's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the script that completes this command's words in a shell
    Completions(CompletionOptions),
    /// Print the manual page
    Man(ManOptions),
}

impl Command {
    /// The output format of the subcommand.
    pub fn format(&self) -> Format {
        match self {
            Command::Check(options) => options.format,
            Command::Run(options) => options.format,
            // `--format` may also follow the operands.
            Command::Eval(options) => {
                options.clone().split_operands().map_or(options.format, |options| options.format)
            }
            Command::Explain(options) => options.format,
            Command::Isa(_) | Command::Lsp | Command::Debug(_) => Format::Human,
            Command::Sass(options) => options.format(),
            #[cfg(target_os = "linux")]
            Command::AsNvidiaSmi { .. } => Format::Human,
            Command::Exec(_)
            | Command::Env(_)
            | Command::Stubs(_)
            | Command::AsPtxas { .. }
            | Command::Completions(_)
            | Command::Man(_) => Format::Human,
        }
    }
}

const STUBS_HELP: &str = "\
PyTorch links NVIDIA's libraries (2 GB), which its CPU kernels, and so `ptxvm exec`, do without. A stub has the functions that
PyTorch's libraries name. Each writes its name when it is first called, and returns an error. Libraries that are there stay.

Examples:
  pip install --no-deps torch && pip install ptxvm filelock fsspec jinja2 networkx sympy typing-extensions && ptxvm stubs
  ptxvm stubs venv/lib/python3.12/site-packages/torch
  ptxvm stubs --output stubs program        and LD_LIBRARY_PATH=stubs ptxvm exec -- ./program";

/// `ptxvm stubs`
#[derive(Args, Debug)]
#[command(after_help = STUBS_HELP)]
pub struct StubsOptions {
    /// Programs and libraries, and folders of them [default: PyTorch's, in this command's Python environment]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Where to write them [default: beside the libraries that link them]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Human,
    /// JSON for programs
    Json,
}

/// What `check --emit` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The syntax tree, as PTX in one layout
    Tree,
    /// The checked module: names resolved, forms chosen
    Module,
    /// The lowered code
    Ir,
    /// Its native code, beside the PTX
    Asm,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  ptxvm check kernel.ptx
  ptxvm check --format json *.ptx          one JSON object for each file, on a line of its own
  ptxvm check --target sm_70 kernel.ptx    would it be legal for an older GPU?
  ptxvm check --emit ir kernel.ptx         what will run
  ptxvm check --emit asm kernel.ptx        its native code
  generate | ptxvm check -                 from standard input";

/// `ptxvm check`
#[derive(Args, Debug)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckOptions {
    /// PTX, or programs, libraries, objects, archives, fat binaries and cubins with PTX in them; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How to report: text for people on stderr, or a JSON object for each file on stdout
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// Check against this target instead of the file's `.target`
    #[arg(long, value_name = "sm_XX")]
    pub target: Option<String>,
    /// Accept forms that ptxas rejects and tinygrad emits (`sin.approx.f64`), with a warning
    #[arg(long)]
    pub lenient: bool,
    /// Accept functions that another file may define, as `ptxas -c` does
    #[arg(short = 'c', long)]
    pub relocatable: bool,
    /// Also print what the file became, on stdout
    #[arg(long, value_enum)]
    pub emit: Option<Emit>,
}

const EVAL_HELP: &str = "\
Operands are the instruction's sources in order; the carry of addc, subc and madc comes last. Each is
  0x3c00  0f3F800000     bits
  42  -1  1.5  inf  nan  a number, converted by the operand's type
  1.5,2                  the lanes of a packed value, from the lowest on
  true  false            a predicate

Batch: tab-separated lines without a header, an instruction and its operands as bare hexadecimal bits (3c00), predicates
0 or 1. Each is answered by a line: its columns as they are, then d (p for a predicate), and where the instruction has
a second result (q of p|q, the carry out of .cc) that too, or `error: ...`. Lines with errors do not end the batch.

Examples:
  ptxvm eval setp.lt.and.f16x2 0x3c004000 0x40003c00 true
  ptxvm eval fma.rn.f32.f16 1.5 2 0x3f800000
  ptxvm eval slct.f32.f32 1 2 -0.0 --target sm_13
  printf 'setp.lt.f32\\t3f800000\\t40000000\\n' | ptxvm eval --batch -

Exit codes: 0 it was evaluated, a batch whatever its lines are; 1 the instruction or an operand is wrong, or FILE cannot
be read; 2 the command line is wrong.";

/// `ptxvm eval`
#[derive(Args, Clone, Debug)]
#[command(after_help = EVAL_HELP, arg_required_else_help = true)]
pub struct EvalOptions {
    /// Instruction with its modifiers, without operands
    #[arg(value_name = "INSTRUCTION", required_unless_present = "batch", conflicts_with = "batch")]
    pub instruction: Option<String>,
    /// Its source operands: see below
    #[arg(value_name = "OPERAND", allow_hyphen_values = true)]
    pub operands: Vec<String>,
    /// Evaluate every line of a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub batch: Option<PathBuf>,
    /// As on this target [default: the newest that has the instruction]
    #[arg(long, value_name = "sm_XX")]
    pub target: Option<String>,
    /// Text (of a batch: tab-separated columns), or JSON: an object, of a batch one for each line
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

const EXPLAIN_HELP: &str = "\
Examples:
  ptxvm explain setp              all forms of an instruction
  ptxvm explain setp.lt.f16x2     one form: operands, registers, since when
  ptxvm explain .ftz              a modifier or a type, and what takes it
  ptxvm explain __hgt2            an intrinsic function of CUDA: the PTX that nvcc makes of it
  ptxvm explain requires-target   the code of an error, a fault or a finding

Exit codes: 0; 1 there is no such name; 2 the command line is wrong.";

/// `ptxvm explain`
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP, arg_required_else_help = true)]
pub struct ExplainOptions {
    /// Instruction, instruction with modifiers, `.modifier`, intrinsic function, or code of an error
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The page as Markdown, or a JSON object with its name, the forms that it is about, and the page
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// What `isa` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IsaFormat {
    /// JSON for programs
    Json,
    /// A table in Markdown
    Markdown,
}

/// `ptxvm isa`
#[derive(Args, Debug)]
pub struct IsaOptions {
    /// How to print the table
    #[arg(long, value_enum, default_value_t = IsaFormat::Markdown)]
    pub format: IsaFormat,
    /// Only what is not executed, and instructions of PTX that are not known
    #[arg(long)]
    pub unsupported: bool,
    /// Write the page of every instruction, and this table, as Markdown files into a folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["format", "unsupported"])]
    pub pages: Option<PathBuf>,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  ptxvm completions bash > ~/.local/share/bash-completion/completions/ptxvm
  ptxvm completions zsh > ~/.zfunc/_ptxvm
  ptxvm completions fish > ~/.config/fish/completions/ptxvm.fish";

/// `ptxvm completions`
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_HELP, arg_required_else_help = true)]
pub struct CompletionOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `ptxvm man`
#[derive(Args, Debug)]
pub struct ManOptions {
    /// Write the page, and one for each subcommand, into this folder instead
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

impl EvalOptions {
    /// Moves `--target` and `--format` out of the operands. Operands may begin with a hyphen (`-inf`, `-1,2`), so
    /// clap takes all that follows the first one as operands.
    ///
    /// # Errors
    /// When there is another option among the operands.
    pub fn split_operands(mut self) -> Result<EvalOptions, String> {
        let mut words = std::mem::take(&mut self.operands).into_iter();
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--") else {
                self.operands.push(word);
                continue;
            };
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            let mut value = |example: &str| {
                value
                    .clone()
                    .or_else(|| words.next())
                    .ok_or_else(|| format!("--{name} needs a value: {example}"))
            };
            match name {
                "target" => self.target = Some(value("sm_90")?),
                "format" => self.format = Format::from_str(&value("json")?, false)?,
                _ => return Err(format!("`{word}` is no operand; options stand before the instruction")),
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
