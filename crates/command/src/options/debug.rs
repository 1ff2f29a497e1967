//! Options of `ptxvm debug`.

use clap::Args;

use super::RunOptions;

const DEBUG_HELP: &str = "\
The kernel gets its arguments as with `ptxvm run`. `help` lists the debugger's commands. The kernel runs on the reference engine, the lanes
of a warp together. To debug a kernel of a program: ptxvm exec --debug -- PROGRAM.

Examples:
  ptxvm debug saxpy.ptx --block 64 --arg 2.0 --arg f32[64]=1 --arg f32[64]=2 --arg 64
  ptxvm exec --debug --kernel-name kns=softmax --launch-skip 2 -- python train.py
  ptxvm debug --dap                     for editors: see docs/debugger.md";

/// `ptxvm debug`
#[derive(Args, Debug)]
#[command(after_help = DEBUG_HELP, mut_arg("files", |files| files.required(false).required_unless_present("dap")))]
pub struct DebugOptions {
    /// Speak the Debug Adapter Protocol on standard input and output
    #[arg(long, exclusive = true)]
    pub dap: bool,
    /// Step by lines of the source that a compiler made the PTX from, where it names them
    #[arg(long)]
    pub original: bool,
    #[command(flatten)]
    pub run: RunOptions,
}
