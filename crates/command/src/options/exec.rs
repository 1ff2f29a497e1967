//! Options of `ptxvm exec`.

use std::path::PathBuf;

use clap::Args;

use crate::profile::parse_file;

const EXEC_HELP: &str = "\
The program finds ptxvm's CUDA driver (libcuda.so.1), where they were built its CUDA runtime (libcudart.so.12, .13), NVML
(libnvidia-ml.so.1) and what stands before NVRTC and nvJitLink, and its stand-ins for ptxas and nvidia-smi, through LD_AUDIT, LD_LIBRARY_PATH,
PATH, NUMBA_CUDA_DRIVER, TRITON_LIBCUDA_PATH and TRITON_PTXAS_PATH. The libraries must lie beside this command, or in ../lib:
`cargo build --release -p ptxvm-libcuda -p ptxvm-command` puts them there.

What else the program's environment may say: PTXVM_DEVICE_NAME, PTXVM_DEVICE_COUNT, PTXVM_DEVICE_MEMORY (16G),
PTXVM_LOG=warn|info|trace (what the program asks for and does not get; calls that fail; all calls), PTXVM_TOOL=racecheck,initcheck
(as --tool of `ptxvm run`), PTXVM_TORCH=0 (PyTorch's own operators are left alone), PTXVM_JAX=0 (as is JAX), CUDA_VISIBLE_DEVICES. With a value of PTXVM_* that means nothing the driver does not start, and says why.

Signals are handed on to the program. What it did is reported however it ends.

Examples:
  ptxvm exec -- python train.py
  ptxvm exec --device sm_80 -- python -m pytest tests/gpu
  ptxvm exec --report report.json -- ./a.out --size 1024
  ptxvm exec --tool racecheck,initcheck -- ./a.out
  ptxvm exec --tool all --error-exitcode 1 --suppressions known.supp -- ./a.out
  ptxvm exec --tool racecheck --kernel-name kns=reduce --launch-count 10 -- python train.py
  ptxvm exec --profile slow.html -- python train.py
  ptxvm exec --debug --kernel-name kns=softmax --launch-skip 2 -- python train.py

Exit codes: the program's; 128 and its number if a signal ended it; 2 it cannot be started; with --error-exitcode N: N if a kernel
faulted, or a tool found an error (not for warnings).";

/// Checks the value of `--tool`; the program's driver gets the text unchanged.
fn parse_tools(text: &str) -> Result<String, String> {
    text.parse::<ptxvm::Tools>().map(|_| text.to_owned())
}

/// Checks a list of patterns for kernel names; the driver gets the text unchanged.
fn parse_patterns(text: &str) -> Result<String, String> {
    text.parse::<ptxvm::KernelPatterns>().map(|_| text.to_owned())
}

/// Which launches of a program tools check, or a debugger leads.
#[derive(Args, Debug)]
pub struct FilterOptions {
    /// Check (or debug) these kernels only: kernel_name=NAME (kne=), kernel_substring=PART (kns=), separated by commas, or regex=REGEX; of the name
    /// in PTX, or demangled. May be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_patterns)]
    pub kernel_name: Vec<String>,
    /// Not these kernels
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_patterns)]
    pub kernel_name_exclude: Vec<String>,
    /// Not the first N launches of these kernels
    #[arg(long, short = 's', value_name = "N")]
    pub launch_skip: Option<u64>,
    /// N launches of these kernels at most; 0: all
    #[arg(long, short = 'c', value_name = "N")]
    pub launch_count: Option<u64>,
}

/// `ptxvm exec`
#[derive(Args, Debug)]
#[command(after_help = EXEC_HELP)]
pub struct ExecOptions {
    /// The GPU that the program sees [default: sm_90]
    #[arg(long, value_name = "sm_XX")]
    pub device: Option<String>,
    /// Write kernels, launches, times and faults to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Tools that watch every launch, as those of `ptxvm run --tool`
    #[arg(long, value_name = "NAMES", conflicts_with = "profile", value_parser = parse_tools)]
    pub tool: Option<String>,
    /// Debug the launches: the first one stops at its beginning. `help` lists the debugger's commands
    #[arg(long, conflicts_with_all = ["tool", "profile"])]
    pub debug: bool,
    /// With --debug: step by lines of the source that a compiler made the PTX from, where it names them
    #[arg(long, requires = "debug")]
    pub original: bool,
    /// Which launches they check
    #[command(flatten)]
    pub filter: FilterOptions,
    /// File of known findings, which are not reported: a line for each, see docs/tools.md
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// Of initcheck: report memory of the driver that nobody has written when it is freed, or the program ends
    #[arg(long)]
    pub track_unused_memory: bool,
    /// Exit with this code if a kernel faulted, or a tool found an error, whatever the program's is
    #[arg(long, value_name = "N")]
    pub error_exitcode: Option<u8>,
    /// Write where the time of all kernels goes, line by line: .html, .json or .txt
    #[arg(long, value_name = "FILE", value_parser = parse_file)]
    pub profile: Option<PathBuf>,
    /// Write the PTX that the program loads to files in this folder
    #[arg(long, value_name = "DIR")]
    pub save_ptx: Option<PathBuf>,
    /// Say nothing of what ran at the end
    #[arg(long)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub program: Vec<std::ffi::OsString>,
}

const ENV_HELP: &str = "\
For jobs in which `exec` cannot stand before each program. What programs find then is what they find under `exec`; each process
reports for itself.

Examples:
  eval \"$(ptxvm env --shell ~/.cache/ptxvm/env)\"
  ptxvm env --device sm_80 \"$RUNNER_TEMP/ptxvm\" >> \"$GITHUB_ENV\"";

/// `ptxvm env`
#[derive(Args, Debug)]
#[command(after_help = ENV_HELP)]
pub struct EnvOptions {
    /// The folder for links to the libraries. It must stay as long as the variables are used
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The GPU that programs see [default: sm_90]
    #[arg(long, value_name = "sm_XX")]
    pub device: Option<String>,
    /// Tools that watch every launch, as those of `ptxvm run --tool`
    #[arg(long, value_name = "NAMES", value_parser = parse_tools)]
    pub tool: Option<String>,
    /// Print commands for a POSIX shell, instead of NAME=VALUE
    #[arg(long)]
    pub shell: bool,
}
