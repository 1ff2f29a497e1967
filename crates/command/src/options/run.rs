//! Options of `ptxvm run`.

use std::path::PathBuf;

use check::module::Function;
use clap::{Args, ValueEnum};

use super::Format;
use crate::arguments::{Part, Place};
use crate::expect::{Expectation, Tolerance};
use crate::numbers::parse_size;
use crate::observe::{ThreadPlace, Watched};
use crate::profile::parse_file;
use crate::report::Failure;
use crate::spec::Spec;
use crate::texture::Binding;
use crate::variables::{Assignment, Query};

const RUN_EXAMPLES: &str = "\
Arguments (--arg), one for each parameter of the kernel, in order:
  42  -1.5  inf  nan     a number, read by the parameter's declared type
  0x3c00                 a number given by its bits
  @x.npy                 an array: copied to device memory, its address passed
  @x.npy:bf16            the same, its elements read as another type of the same
                         size (bf16 from uint16)
  @x.npz[weights]        an array of an archive, by its name
  @x.bin  @x.bin:f32     an array of raw little-endian bytes
  f16[1024]              a new array of zeros
  u32[64x64]=7           a new array filled with a number
  f32[3]=1,2.5,-3        a new array of these numbers
  f32[1024]=undef        a new array that nobody has written, for
                         --tool initcheck (it holds zeros)
  bytes[4096]            a new array of bytes
  bytes:0011223344..     bytes by value, for structures (`.param .b8 p[16]`);
                         so does @x.bin for such a parameter
  {@x.npy, 4, 2.5:f64}   a structure by value, laid out as C does: addresses of
                         arrays, integers of 4 bytes (4:u64: of 8), decimals as
                         f32 (2.5:f64: as f64, 2:f16: as f16); its arrays are
                         2.0, 2.1 .. for --print and --out
  texture(@x.npy, filter=linear, address=wrap, normalized)
  surface(f32[64x64])  sampler(..)
                         the handle of a new object; docs/textures.md has all
                         options
  tensormap(@x.npy, box=64x64, swizzle=128B)
                         the tensor map of a new array, for TMA; docs/tensors.md
                         has all options
  numba:@x.npy           an array for the 5 + 2 d parameters that numba makes of
                         one of d dimensions
Element types: u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 bool bytes, or numpy's names.

Examples:
  ptxvm run saxpy.ptx --grid 4 --block 256 --arg 2 --arg @x.npy --arg @y.npy --arg 1024 --out 2=z.npy
  ptxvm run matmul.ptx --grid 32,32 --block 16x16 --arg @a.npy --arg @b.npy --arg f32[512x512] --print 2
  ptxvm run reduce.ptx --block 256 --arg f32[4096]=1 --arg f32[1] --print 1 --format json
  ptxvm run racy.ptx --block 256 --arg u32[256] --tool all
  ptxvm run racy.ptx --block 256 --arg u32[256] --schedule 7 --max-steps 1000000
  ptxvm run kernel.ptx library.ptx --arg f32[256] --print 0
  ptxvm run wrong.ptx --block 256 --arg @x.npy --arg f32[256] --expect 1=right.npy --watch 1[17]
  ptxvm run slow.ptx --grid 64 --block 256 --arg f32[16384] --profile=slow.html

A profile counts by warps of 32 threads: how often one came to the line, how many of its lanes
were active on average, how often its threads went different ways; whether the accesses of its
halves were to consecutive elements (vector), to one address (broadcast) or to others (gather).
Times are shares of the time in all lines, without the counting.";

/// `ptxvm run`
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunOptions {
    /// PTX, or a program, library, object, archive, fat binary or cubin with PTX in it; `-` is standard input. Several are
    /// linked: what one declares .extern, another defines
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Kernel to run: its name, as in the PTX or demangled, or a part that no other has; may be left out when there is one
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Blocks of the grid [default: 1]
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_grid, allow_negative_numbers = true)]
    pub grid: Option<[u32; 3]>,
    /// Threads of a block [default: the kernel's .reqntid, or 1]
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_block, allow_negative_numbers = true)]
    pub block: Option<[u32; 3]>,
    /// Blocks of a cluster, at most 16 in all; the grid must be a multiple of it [default: the kernel's .reqnctapercluster, or 1]
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_cluster, allow_negative_numbers = true)]
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block in bytes: 4096, 48K
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_size, allow_negative_numbers = true)]
    pub shared: u64,
    /// Launch cooperatively: blocks may wait for one another (grid_group::sync). At most 4736 blocks
    #[arg(long)]
    pub cooperative: bool,
    /// Argument for the next parameter of the kernel: see below
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    pub args: Vec<Spec>,
    /// Bind a .texref, .samplerref or .surfref variable: NAME=texture(@x.npy, filter=linear)
    #[arg(long, value_name = "NAME=OBJECT")]
    pub bind: Vec<Binding>,
    /// Set a variable of the module before the launch: table=@x.npy, table=@x.npz[table], scale=2.5
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<Assignment>,
    /// Show a variable of the module afterwards, or save it: counts, counts=y.npy
    #[arg(long, value_name = "NAME[=PATH]")]
    pub get: Vec<Query>,
    /// Save the array of argument I (from 0; 2.0 is the first one in structure 2) afterwards, as .npy, .bin or (a picture of
    /// HxW values) .png
    #[arg(long, value_name = "I=PATH")]
    pub out: Vec<Output>,
    /// Show the array of argument I (from 0) afterwards, or some of its elements: 0, 0[10:20], 0[5]
    #[arg(long, value_name = "I")]
    pub print: Vec<Part>,
    /// Show the elements as bits, in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Compare the array of argument I (from 0) with this one: 2=expected.npy, 2=all.npz[y], 2=f32[64]=1. A difference makes the exit code 3
    #[arg(long, value_name = "I=FILE")]
    pub expect: Vec<Expectation>,
    /// How far a result may be from the expected one, relative to that: 1e-5 [default: the same bits]
    #[arg(long, value_name = "R", requires = "expect", default_value_t = 0.0, hide_default_value = true)]
    pub rtol: f64,
    /// How far it may be besides
    #[arg(long, value_name = "A", requires = "expect", default_value_t = 0.0, hide_default_value = true)]
    pub atol: f64,
    /// Run the blocks one after the other in ascending order, on one host thread: the same bits, faults and output every time
    #[arg(long)]
    pub deterministic: bool,
    /// Run the warps in an order shuffled by this seed: brings out missing barriers
    #[arg(long, value_name = "SEED")]
    pub schedule: Option<u64>,
    /// Tools that look for what is wrong without failing, separated by commas: racecheck, initcheck, synccheck, leakcheck, all
    /// (memcheck is always on). What they find goes to stderr; an error among it makes the exit code 3
    #[arg(long, value_name = "NAMES", default_value = "memcheck")]
    pub tool: ptxvm::Tools,
    /// File of known findings, which are not reported: a line for each, see docs/tools.md
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// Exit with this code if the kernel faulted, or a tool found an error [default: 3]
    #[arg(long, value_name = "N")]
    pub error_exitcode: Option<u8>,
    /// What executes the kernel
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub engine: EngineName,
    /// Host threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Show each instruction of a thread with the values it reads and writes: 0,3, or (1,0,0),(3,0,0). The reference engine runs
    #[arg(long, value_name = "BLOCK,THREAD")]
    pub trace: Option<ThreadPlace>,
    /// Show every write to these elements of argument I, or to bytes at an address: 2[17], 2[3,5], 2[10:20], 0x1000000044:8
    #[arg(long, value_name = "I[J]|ADDRESS")]
    pub watch: Vec<Watched>,
    /// Show where the first NaN and the first infinity come from, and what passes them on. The reference engine runs
    #[arg(long)]
    pub first_nan: bool,
    /// Show counters: occupancy, instruction mix, sectors and bank conflicts, with Nsight Compute's names where it counts the same
    #[arg(long)]
    pub counters: bool,
    /// Launch this many times, each on freshly copied inputs, and report the median time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Stop after this many thread-instructions: 1000000, 1e6
    #[arg(long, value_name = "N", value_parser = parse_size, allow_negative_numbers = true)]
    pub max_steps: Option<u64>,
    /// Run forms too that ptxas rejects and tinygrad emits (`sin.approx.f64`), with a warning
    #[arg(long)]
    pub lenient: bool,
    /// Memory that the kernel may have from `malloc` at a time, in bytes [default: 8M]
    #[arg(long, value_name = "BYTES", value_parser = parse_size, allow_negative_numbers = true)]
    pub heap: Option<u64>,
    /// Show where the time goes, line by line; or write it to a file: .html (the annotated source), .json or .txt
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_parser = parse_file)]
    pub profile: Option<Option<PathBuf>>,
    /// How to report: text for people, or a JSON object on the last line of stdout
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// `--engine`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The interpreter, and native code for loops that run often
    Auto,
    /// Fast, on all cores
    Interpreter,
    /// Native code for every loop that can have it, from its first iteration on
    Native,
    /// Slow and plain: what the interpreter is held against
    Reference,
}

impl RunOptions {
    /// `--rtol` and `--atol`.
    pub fn tolerance(&self) -> Tolerance {
        Tolerance { relative: self.rtol, absolute: self.atol }
    }

    /// The options that are given and watch the launch.
    fn observers(&self) -> Vec<&'static str> {
        let observers = [
            ("--tool", !self.tool.is_empty()),
            ("--profile", self.profile.is_some()),
            ("--watch", !self.watch.is_empty()),
            ("--trace", self.trace.is_some()),
            ("--first-nan", self.first_nan),
            ("--counters", self.counters),
        ];
        observers.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect()
    }

    /// Checks that a debugger can lead the launch.
    ///
    /// # Errors
    /// When another observer is to watch it, another engine to run it, or the PTX comes from standard input.
    pub fn check_for_debugger(&self) -> Result<(), Failure> {
        let others = [
            ("--repeat", self.repeat > 1),
            ("--schedule", self.schedule.is_some()),
            ("--engine", !matches!(self.engine, EngineName::Auto | EngineName::Reference)),
        ];
        if self.files.iter().any(|file| file.as_os_str() == "-") {
            return Err(Failure::usage("the debugger reads its commands from standard input")
                .help("give the PTX in a file"));
        }
        let others = others.iter().filter(|(_, given)| *given).map(|(name, _)| *name);
        match self.observers().into_iter().chain(others).next() {
            Some(name) => Err(Failure::usage(format!("the debugger has no {name}"))
                .help("run the kernel with it once: ptxvm run")),
            None => Ok(()),
        }
    }

    /// Checks combinations of options.
    ///
    /// # Errors
    /// When options exclude each other, a file name is in the wrong place, or two arrays have the same file.
    pub fn check(&self) -> Result<(), Failure> {
        for (option, given) in
            [("--deterministic", self.deterministic), ("--schedule", self.schedule.is_some())]
        {
            if let Some(threads) = self.threads.filter(|&threads| given && threads > 1) {
                let message = format!(
                    "{option} runs the blocks on one host thread, and --threads {threads} on {threads}"
                );
                return Err(Failure::usage(message).help("leave one of the two out"));
            }
        }
        if self.hex && self.print.is_empty() && self.get.is_empty() {
            let help = "name what to show: --print I, --get NAME";
            return Err(Failure::usage("--hex shows nothing by itself").help(help));
        }
        let observers = self.observers();
        if let [one, other, ..] = observers[..] {
            let message = format!("{one} and {other} both watch the launch");
            return Err(Failure::usage(message).help("leave one of the two out"));
        }
        if self.engine == EngineName::Reference
            && (!self.tool.is_empty() || !self.watch.is_empty() || self.counters)
        {
            let message = format!("the reference engine has no {}", observers[0]);
            return Err(Failure::usage(message).help("leave one of the two out"));
        }
        let is_page = |file: &&PathBuf| parse_file(&file.to_string_lossy()).is_ok();
        if let (Some(None), Some(file)) = (&self.profile, self.files.iter().find(is_page)) {
            let file = file.display();
            return Err(Failure::usage(format!("`{file}` stands where PTX files do"))
                .help(format!("to write the profile to it, write --profile={file}")));
        }
        for (i, Output { place, path }) in self.out.iter().enumerate() {
            if let Some(first) = self.out[..i].iter().find(|first| first.path == *path) {
                let message =
                    format!("--out: argument {} and argument {place} would both be saved", first.place);
                return Err(Failure::usage(format!("{message} to `{}`", path.display())));
            }
        }
        Ok(())
    }

    /// The engine that executes the kernel.
    pub fn engine(&self) -> ptxvm::Engine {
        match self.engine {
            // Only the reference engine executes the instructions one by one.
            _ if self.trace.is_some() || self.first_nan => ptxvm::Engine::Reference,
            EngineName::Auto => ptxvm::Engine::Auto,
            EngineName::Interpreter => ptxvm::Engine::Interpreter,
            EngineName::Native => ptxvm::Engine::Native,
            EngineName::Reference => ptxvm::Engine::Reference,
        }
    }

    /// Blocks of the grid.
    pub fn grid(&self) -> [u32; 3] {
        self.grid.unwrap_or([1; 3])
    }

    /// Threads of a block for this kernel.
    pub fn block(&self, kernel: &Function) -> [u32; 3] {
        self.block.or(kernel.bounds.required).unwrap_or([1; 3])
    }
}

/// `--out I=PATH`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The argument.
    pub place: Place,
    /// Where to save its array.
    pub path: PathBuf,
}

impl std::str::FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Output, String> {
        let (index, path) = text.split_once('=').ok_or("write it as I=PATH: 2=y.npy")?;
        let place = index.parse()?;
        if ![".npy", ".bin", ".png"].iter().any(|ending| path.ends_with(ending)) {
            return Err(format!(
                "`{path}` must end in .npy, .bin or .png: the name says how to save the array"
            ));
        }
        Ok(Output { place, path: path.into() })
    }
}

/// Limits of CUDA on the extents of a grid, compute capability 3.0 and later.
const GRID_LIMITS: [u32; 3] = [0x7fff_ffff, 65535, 65535];
/// Limits of CUDA on the extents of a block.
const BLOCK_LIMITS: [u32; 3] = [1024, 1024, 64];
/// Limit of CUDA on the number of threads of a block.
const BLOCK_THREADS: u64 = 1024;

fn parse_grid(text: &str) -> Result<[u32; 3], String> {
    parse_extents(text, GRID_LIMITS)
}

fn parse_block(text: &str) -> Result<[u32; 3], String> {
    let block = parse_extents(text, BLOCK_LIMITS)?;
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    if threads > BLOCK_THREADS {
        return Err(format!("a block has at most {BLOCK_THREADS} threads, and this one {threads}"));
    }
    Ok(block)
}

fn parse_cluster(text: &str) -> Result<[u32; 3], String> {
    let most = ptxvm::MOST_CLUSTER_BLOCKS;
    let cluster = parse_extents(text, [most; 3])?;
    let blocks: u32 = cluster.iter().product();
    if blocks > most {
        return Err(format!("a cluster has at most {most} blocks, and this one {blocks}"));
    }
    Ok(cluster)
}

/// `X`, `X,Y`, `X,Y,Z`, or with `x` between the extents.
fn parse_extents(text: &str, limits: [u32; 3]) -> Result<[u32; 3], String> {
    let mut extents = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).map(str::trim).collect();
    if parts.len() > 3 {
        return Err("there are three dimensions: X,Y,Z".to_owned());
    }
    for (axis, part) in parts.into_iter().enumerate() {
        let extent: u64 = part.parse().map_err(|_| format!("`{part}` is no number of blocks or threads"))?;
        let (limit, name) = (limits[axis], ['x', 'y', 'z'][axis]);
        extents[axis] = u32::try_from(extent)
            .ok()
            .filter(|&extent| extent >= 1 && extent <= limit)
            .ok_or_else(|| format!("{name} is {extent}, and must be 1 to {limit}"))?;
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read_and_limited() {
        assert_eq!(parse_grid("7"), Ok([7, 1, 1]));
        assert_eq!(parse_grid("2147483647,65535,65535"), Ok([2147483647, 65535, 65535]));
        assert_eq!(parse_block("16x8x2"), Ok([16, 8, 2]));
        for grid in
            ["", "0", "1,0", "2147483648", "1,65536", "1,1,65536", "1,1,1,1", "-1", "99999999999999999999"]
        {
            assert!(parse_grid(grid).is_err(), "{grid}");
        }
        assert_eq!(parse_cluster("2x4"), Ok([2, 4, 1]));
        for cluster in ["17", "4,5", "0"] {
            assert!(parse_cluster(cluster).is_err(), "{cluster}");
        }
        for block in ["1025", "1,1025", "1,1,65", "32,33", "0"] {
            assert!(parse_block(block).is_err(), "{block}");
        }
    }

    #[test]
    fn outputs_are_read() {
        assert_eq!(
            "2=a=b.npy".parse(),
            Ok(Output { place: Place { index: 2, field: None }, path: "a=b.npy".into() })
        );
        for wrong in ["", "y.npy", "x=y.npy", "1=y.txt", "-1=y.npy", "1.=y.npy", "1.x=y.npy"] {
            assert!(wrong.parse::<Output>().is_err(), "{wrong}");
        }
    }
}
