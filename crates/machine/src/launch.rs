//! The configuration of a launch, and its report.
//!
//! `grid.rs` schedules the blocks. A block whose loops may wait for others lets other blocks start and run. So does a
//! block that has used up its budget in eight time slices in a row, then in four, in two and in each: a loop of weak
//! loads may wait for another block without showing it. A fault ends the launch for the blocks above it. The blocks
//! below it that are in flight run for some more time slices, since the launch reports the fault of the lowest block.
//! Apart from that, runs differ only in the results of data races and in clock values.
//!
//! With `--schedule` every warp is a gang of its own. Warps take turns in a shuffled order with small budgets, blocks
//! start in a shuffled order, and while few blocks are in flight they yield at any time.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::cooperative::COOPERATIVE_BLOCKS;
use crate::fault::Fault;
use crate::memory::Withheld;
use crate::native_code::NativeCode;
use crate::observer::ObserverHandle;
use crate::output::Output;
use crate::pool;
use crate::profile::Profile;
use lanes::HostPath;

/// The most blocks that one host thread keeps in flight while they wait for one another, unless the launch is
/// cooperative. The host thread starts more if all of them are blocked and the grid has at most as many blocks as all
/// host threads may keep in flight: the other host threads may be busy elsewhere.
pub const RESIDENT_BLOCKS: usize = 1024;

/// The longest sleep of `nanosleep` in nanoseconds (PTX ISA, "nanosleep").
pub const MAX_SLEEP: u64 = 1_000_000;

/// WebAssembly without threads: starting one returns an error.
const HOST_HAS_NO_THREADS: bool = cfg!(all(target_family = "wasm", not(target_feature = "atomics")));

/// How to launch a kernel. [`LaunchConfig::new`] makes one; its fields may be set, and more may come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// Blocks in x, y and z (`%nctaid`).
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z (`%ntid`).
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z (`%cluster_nctaid`), at most
    /// [`MOST_CLUSTER_BLOCKS`](crate::MOST_CLUSTER_BLOCKS) in all. The grid must be a multiple of it. `None`: the
    /// kernel's own size (`.reqnctapercluster`), or one block.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u64,
    /// How many kernels are above it that have launched one another.
    pub nesting: u32,
    /// The number of the device among those that the program sees, and how many these are: for the device runtime.
    pub device: [u32; 2],
    /// Launch cooperatively, as `cudaLaunchCooperativeKernel` does: blocks may wait for one another
    /// (`cooperative_groups::grid_group::sync`). There may be at most [`COOPERATIVE_BLOCKS`].
    pub cooperative: bool,
    /// Number of host threads. `None`: one for each core. WebAssembly has one.
    pub threads: Option<usize>,
    /// Run blocks one after the other in ascending order on one host thread. The next block starts when the previous
    /// one has ended or waits for others; waiting blocks get time slices in ascending order. So the reported fault is
    /// that of the lowest block, `printf` output comes in the order of the blocks, and racing kernels give the same
    /// bits in every run on every machine, unless they read `%globaltimer`.
    ///
    /// Without this option, race-free results are the same as well, but blocks run concurrently, even on one host
    /// thread. Which of several faults is reported may then differ between runs and machines. A block that faults ends
    /// the launch for the blocks above it. The blocks below it that are in flight run for some more time slices, and
    /// the launch reports the lowest block that has faulted by then.
    ///
    /// The blocks of a CTA batch execute in lockstep, and a fault ends all of them. So the launch reports a block that
    /// faults at an earlier instruction than a lower block does, and the lowest of the blocks that fault at the same
    /// instruction. The text that a CTA batch prints comes out block by block, up to the block that faulted. If that
    /// block faulted on a divergent path, the blocks below it first run to their ends.
    pub deterministic: bool,
    /// Run warps in an order shuffled by this seed, with small budgets. Exposes missing barriers.
    pub schedule: Option<u64>,
    /// Stop after this many thread-instructions.
    pub max_steps: Option<u64>,
    /// Stop soon after this becomes true.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Run only these blocks of the grid, by linear index. All of them see the whole grid (`%nctaid`). If no block
    /// depends on another, several launches that together cover all blocks have the effect of one launch. Not for
    /// cooperative launches.
    pub blocks: Option<Range<u64>>,
    /// Objects of the device, by handle, to bind to texture, sampler and surface references of the module, by name, for
    /// this launch only.
    pub bindings: Vec<(String, u64)>,
    /// The launch adds the number of ended blocks here while it runs.
    pub progress: Option<Arc<AtomicU64>>,
    /// Host instruction set for the vector handlers. `None`: the best one that the machine has.
    pub host_path: Option<HostPath>,
    /// When loops run as native code. `None`: as [`ENGINE_VARIABLE`](crate::ENGINE_VARIABLE) says, or
    /// [`NativeCode::Hot`].
    pub native_code: Option<NativeCode>,
    /// Where `printf` goes.
    pub output: Output,
    /// Measure where the time goes. The launch adds its counts here, up to its end or its fault. Counting takes time.
    pub profile: Option<Arc<Mutex<Profile>>>,
    /// Collects accesses that run over the end of a block's shared memory but stay within the granule of 128 bytes that
    /// a GPU allocates. They succeed, as on a GPU. `None`: they fault. The reference engine always faults.
    pub overruns: Option<Arc<Mutex<Vec<Fault>>>>,
    /// Allocations that this launch may not reach: memory of another device. Accesses to them fault
    /// ([`FaultKind::PeerAccess`](crate::FaultKind::PeerAccess)). Launches with one list share what is made of it.
    pub withheld: Option<Arc<Withheld>>,
    /// Watches accesses and barriers, or in the reference engine instructions, and can end the launch. Cannot be combined
    /// with [`LaunchConfig::profile`].
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
            nesting: 0,
            device: [0, 1],
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
            native_code: None,
            output: Output::stdout(),
            profile: None,
            overruns: None,
            withheld: None,
            observer: None,
        }
    }

    /// Threads of a block.
    #[inline]
    pub fn block_threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// The number of host threads that run blocks, if there are enough blocks.
    pub fn host_threads(&self) -> usize {
        match self.threads {
            _ if self.deterministic || self.schedule.is_some() || HOST_HAS_NO_THREADS => 1,
            Some(n) => n.max(1),
            None => pool::host_threads(),
        }
    }

    /// The most blocks that one host thread keeps in flight while they wait for one another. For a cooperative launch,
    /// the most blocks that a grid can have.
    #[inline]
    pub fn resident_blocks(&self) -> usize {
        if self.cooperative { COOPERATIVE_BLOCKS as usize } else { RESIDENT_BLOCKS }
    }

    /// The range of blocks to run, by linear index.
    #[inline]
    pub fn block_range(&self) -> Range<u64> {
        let blocks = self.grid_blocks();
        self.blocks.as_ref().map_or(0..blocks, |range| range.start.min(blocks)..range.end.min(blocks))
    }

    /// Adds ended blocks to the progress.
    pub fn report_ended(&self, blocks: u64) {
        if let Some(progress) = &self.progress {
            progress.fetch_add(blocks, Ordering::Relaxed);
        }
    }

    /// Blocks of a cluster.
    #[inline]
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster.map_or(1, |extents| extents.iter().product())
    }

    /// Blocks of the grid.
    #[inline]
    pub fn grid_blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LaunchReport {
    /// Instructions executed, each counted once for every thread that executed it.
    pub thread_instructions: u64,
    /// Wall-clock time in seconds. On a host without a clock (wasm32-unknown-unknown), one microsecond for each
    /// reading.
    pub seconds: f64,
}

impl LaunchReport {
    /// The report of an engine.
    pub fn new(thread_instructions: u64, seconds: f64) -> LaunchReport {
        LaunchReport { thread_instructions, seconds }
    }
}
