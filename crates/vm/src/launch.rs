//! The door to the machine: a device, modules loaded on it, and launches.
//!
//! `grid.rs` hands out blocks. A block whose loops may wait for others lets others start and run. So does one that has used up eight
//! budgets in a row, then after four, two and each: a loop of weak loads may wait for a block, and nothing shows it. A fault ends the
//! launch for the blocks above; those below that are in flight go on for some turns, since the fault of the lowest block counts. Apart from
//! that, what may differ from run to run is what races, and what clocks say.
//!
//! With `--schedule` every warp is a gang of its own, warps take their turns in a shuffled order with small budgets, blocks start in a
//! shuffled order, and while few are in flight they give their turns away at any time.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use diag::Span;

use crate::cooperative::COOPERATIVE_BLOCKS;
use crate::fault::Fault;
use crate::grid::RESIDENT_BLOCKS;
use crate::memory::OutOfMemory;
use crate::observer::ObserverHandle;
use crate::output::Output;
use crate::pool;
use crate::profile::Profile;
use crate::texture::ObjectError;
use crate::undefined::Undefined;
use lanes::HostPath;

/// Nanoseconds that `nanosleep` takes at most (PTX ISA, "nanosleep").
pub const MAX_SLEEP: u64 = 1_000_000;

/// WebAssembly without its threads: what asks for some gets an error.
const HOST_HAS_NO_THREADS: bool = cfg!(all(target_family = "wasm", not(target_feature = "atomics")));

/// How to launch a kernel.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    /// Blocks in x, y and z (`%nctaid`).
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z (`%ntid`).
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z (`%cluster_nctaid`), at most [`MOST_CLUSTER_BLOCKS`](crate::MOST_CLUSTER_BLOCKS) in all. The
    /// grid must be a multiple of it. `None` for what the kernel says (`.reqnctapercluster`), or one block.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u64,
    /// Launch cooperatively, as `cudaLaunchCooperativeKernel` does: blocks may wait for one another
    /// (`cooperative_groups::grid_group::sync`). There may be at most [`COOPERATIVE_BLOCKS`](crate::COOPERATIVE_BLOCKS).
    pub cooperative: bool,
    /// Number of host threads; `None` for all cores. WebAssembly has one.
    pub threads: Option<usize>,
    /// Run blocks one after the other in ascending order, on one host thread: the next one starts when the one before has ended,
    /// or waits for others. Those that wait then get turns in ascending order. So the first fault is that of the lowest
    /// block, lines of `printf` come in the order of their blocks, and racing kernels give the same bits in every run on every
    /// machine, unless they read `%globaltimer`.
    ///
    /// Without it the same holds for what a kernel computes without races; but blocks run next to each other, also on one
    /// host thread. Which fault of several is reported may then differ from run to run and from machine to machine. A block that
    /// faults ends the launch for those above it; those below that are in flight go on for some turns, and the lowest that has
    /// faulted by then is named. Small blocks that run together, as a CTA batch, go from instruction to instruction side by side,
    /// and all of them end where the first one faults: so a block is named that faults at an earlier instruction than one
    /// below it, and of those that fault at the same instruction the lowest. What the blocks of a CTA batch print comes out block by block, up to
    /// the one that faulted; where it faulted in a path of its own, those below it run to their ends first.
    pub deterministic: bool,
    /// Run warps in an order shuffled by this seed, with small budgets: brings out missing barriers.
    pub schedule: Option<u64>,
    /// Stop after this many thread-instructions.
    pub max_steps: Option<u64>,
    /// Stop soon after this becomes true.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Run these blocks of the grid only, by their linear index; all see the whole grid (`%nctaid`). Several launches that have all blocks
    /// between them do what one does, if no block depends on another. Not of cooperative launches.
    pub blocks: Option<Range<u64>>,
    /// Texture, sampler and surface references of the module, by name, that are bound to objects of the device, by handle, for this
    /// launch alone.
    pub bindings: Vec<(String, u64)>,
    /// How many blocks have ended is added here while the launch runs.
    pub progress: Option<Arc<AtomicU64>>,
    /// Host instruction set for the vector handlers; `None` for the best one that the machine has.
    pub host_path: Option<HostPath>,
    /// Where `printf` goes.
    pub output: Output,
    /// Find out where the time goes. What the launch did, up to its end or its fault, is added here. Counting takes time.
    pub profile: Option<Arc<Mutex<Profile>>>,
    /// Where accesses are noted that run over the end of a block's shared memory, but stay within the granule of 128 bytes that a GPU allocates:
    /// they go on there, as on a GPU. `None`: they fault. The reference engine always faults.
    pub overruns: Option<Arc<Mutex<Vec<Fault>>>>,
    /// Sees accesses and barriers, and can end the launch. Not together with [`LaunchConfig::profile`]. The reference engine tells
    /// nothing.
    pub observer: Option<ObserverHandle>,
}

impl LaunchConfig {
    /// A launch of `grid` blocks of `block` threads with everything else at its default.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
        LaunchConfig {
            grid,
            block,
            cluster: None,
            dynamic_shared: 0,
            cooperative: false,
            threads: None,
            deterministic: false,
            schedule: None,
            max_steps: None,
            cancel: None,
            blocks: None,
            bindings: Vec::new(),
            progress: None,
            host_path: None,
            output: Output::stdout(),
            profile: None,
            overruns: None,
            observer: None,
        }
    }

    /// Threads of a block.
    pub fn block_threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of the host that run blocks, if there are enough blocks.
    pub(crate) fn host_threads(&self) -> usize {
        match self.threads {
            _ if self.deterministic || self.schedule.is_some() || HOST_HAS_NO_THREADS => 1,
            Some(n) => n.max(1),
            None => pool::host_threads(),
        }
    }

    /// Blocks that one host thread keeps in flight while they wait for one another: of a cooperative launch all that there can be.
    pub fn resident_blocks(&self) -> usize {
        if self.cooperative { COOPERATIVE_BLOCKS as usize } else { RESIDENT_BLOCKS }
    }

    /// The blocks that are run, by their linear index.
    pub fn block_range(&self) -> Range<u64> {
        let blocks = self.grid_blocks();
        self.blocks.as_ref().map_or(0..blocks, |range| range.start.min(blocks)..range.end.min(blocks))
    }

    /// So many blocks have ended.
    pub fn report_ended(&self, blocks: u64) {
        if let Some(progress) = &self.progress {
            progress.fetch_add(blocks, Ordering::Relaxed);
        }
    }

    /// Blocks of a cluster.
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster.map_or(1, |extents| extents.iter().product())
    }

    /// Blocks of the grid.
    pub fn grid_blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchReport {
    /// Instructions executed, each counted once for every thread that executed it.
    pub thread_instructions: u64,
    /// Wall-clock time in seconds. Of a host without a clock (wasm32-unknown-unknown), a microsecond for each look at it.
    pub seconds: f64,
}

/// Why a module could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No room for its variables.
    OutOfMemory(OutOfMemory),
    /// `.const` variables take more than the 64 KiB that the manual allows.
    TooMuchConst(u64),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::OutOfMemory(error) => error.fmt(f),
            LoadError::TooMuchConst(bytes) => {
                write!(f, ".const variables take {bytes} bytes, the limit is 65536")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Why a launch did not finish.
#[derive(Clone, Debug)]
pub enum LaunchError {
    /// The launch itself is wrong; says what and how to mend it.
    Invalid(String),
    /// There are no such clusters, or the kernel wants others; says what and how to mend it.
    InvalidCluster(String),
    /// A variable cannot be bound as [`LaunchConfig::bindings`] says.
    Binding(ObjectError),
    /// The kernel can reach an instruction that no engine executes.
    Unsupported(ir::Unsupported),
    /// The kernel needs functions or variables that are declared and defined nowhere.
    Undefined(Vec<Undefined>),
    /// A thread faulted. Other blocks' results so far are in memory.
    Fault(Box<Fault>),
    /// ptxvm itself panicked, or what was given to it: an observer, an output. What it said.
    Panicked(String),
    /// [`LaunchConfig::max_steps`] ran out.
    StepLimit {
        /// The limit.
        limit: u64,
        /// Where a thread stood, if any was under way.
        place: Option<Place>,
    },
    /// [`LaunchConfig::cancel`] was set.
    Cancelled {
        /// Where a thread stood, if any was under way.
        place: Option<Place>,
    },
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instruction that it executes next, or waits at.
    pub span: Span,
    /// `%ctaid` of its block.
    pub block: [u32; 3],
    /// Its `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Invalid(what) | LaunchError::InvalidCluster(what) => f.write_str(what),
            LaunchError::Binding(error) => error.fmt(f),
            LaunchError::Unsupported(what) => {
                write!(f, "`{}` is not executed", what.form.name(&what.picks))
            }
            LaunchError::Undefined(names) => {
                let lines = names
                    .iter()
                    .map(|undefined| format!("{}, which `{}` needs", undefined.why, undefined.user));
                f.write_str(&lines.collect::<Vec<_>>().join("\n"))
            }
            LaunchError::Fault(fault) => fault.fmt(f),
            LaunchError::Panicked(message) => write!(f, "the launch panicked: {message}"),
            LaunchError::StepLimit { limit, .. } => {
                write!(f, "stopped: the limit of {limit} thread-instructions (--max-steps) ran out")
            }
            LaunchError::Cancelled { .. } => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for LaunchError {}
