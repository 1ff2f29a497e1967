//! A launch in progress: blocks handed out to host threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use check::module::VarId;
use isa::Space;

use crate::code::{Code, build};
use crate::cta::{Cta, Progress};
use crate::exec::{Observer, Recorder};
use crate::fault::Fault;
use crate::grid_barrier::GridBarrier;
use crate::launch::{LaunchConfig, LaunchError, LaunchReport};
use crate::mask::{CHUNK_LANES, WARP_LANES};
use crate::memory::{Arena, Extent, HEAP_BASE, Heap, resolve_generic};
use lanes::HostPath;

/// Blocks that one host thread keeps in flight while they wait for one another.
pub(crate) const RESIDENT_BLOCKS: usize = 1024;

/// Addresses of variables and parameters.
pub(crate) struct Places {
    /// By `VarId`, in the variable's own space.
    pub variables: Vec<u64>,
    /// Offsets of the kernel's parameters.
    pub params: Vec<u64>,
}

impl Places {
    pub fn variable(&self, id: VarId) -> u64 {
        self.variables.get(id.index()).copied().unwrap_or(0)
    }

    pub fn param(&self, index: u32) -> u64 {
        self.params.get(index as usize).copied().unwrap_or(0)
    }
}

/// Everything that the threads of a launch read.
pub(crate) struct Launch<'a> {
    pub program: &'a ir::Program,
    pub kernel: &'a str,
    /// Index of the kernel's function.
    pub entry: u32,
    pub config: &'a LaunchConfig,
    pub path: HostPath,
    pub arena: &'a Arena,
    pub heap: &'a Heap,
    pub constants: &'a [u8],
    pub params: &'a [u8],
    pub places: Places,
    /// Static and dynamic shared memory.
    pub shared_bytes: u64,
    /// `--schedule`: chunks of one warp in a shuffled order.
    pub shuffled: bool,
    pub grid_barrier: GridBarrier,
    pub start: Instant,
}

impl Launch<'_> {
    /// `%tid` of a thread.
    pub fn thread(&self, index: usize) -> [u32; 3] {
        let [nx, ny, _] = self.config.block.map(|n| n.max(1) as usize);
        [(index % nx) as u32, (index / nx % ny) as u32, (index / (nx * ny)) as u32]
    }

    /// `%ctaid` of a block.
    pub fn ctaid(&self, index: u64) -> [u32; 3] {
        let [nx, ny, _] = self.config.grid.map(|n| u64::from(n.max(1)));
        [(index % nx) as u32, (index / nx % ny) as u32, (index / (nx * ny)) as u32]
    }

    /// Nanoseconds since the launch began.
    pub fn nanoseconds(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub fn function_name(&self, index: u32) -> &str {
        self.program.module.functions.get(index as usize).map_or("?", |f| &f.name)
    }

    /// The allocation of global memory at or before `address`: the one that contains it, if any does.
    #[inline]
    pub fn allocation(&self, address: u64) -> Option<Extent> {
        match address {
            HEAP_BASE.. => self.heap.find(address),
            _ => Some(self.arena.find(address)?.extent()),
        }
    }

    /// What lies nearest to an access, in words.
    pub fn describe(&self, space: Space, address: u64, bytes: u64) -> Option<String> {
        let (space, inner) = match space {
            Space::Generic => resolve_generic(address),
            space => (space, address),
        };
        let limit = |what: &str, size: u64| Some(format!("{what} has {size} bytes"));
        match space {
            Space::Global => {
                let (name, extent) = match inner {
                    HEAP_BASE.. => ("an allocation of `malloc`", self.heap.find(inner)?),
                    _ => self.arena.nearest(inner).map(|a| (a.name(), a.extent()))?,
                };
                let (base, size) = (extent.base, extent.bytes);
                let freed = if extent.storage.is_none() { ", which was freed" } else { "" };
                let place = if inner < base {
                    format!("{} bytes before", base - inner)
                } else if inner >= base + size {
                    match inner - (base + size) {
                        0 => "just past the end of".to_owned(),
                        n => format!("{n} bytes past the end of"),
                    }
                } else if inner + bytes > base + size {
                    format!("reaching {} bytes past the end of", inner + bytes - (base + size))
                } else {
                    format!("{} bytes into", inner - base)
                };
                Some(format!("{place} {name}, {size} bytes at {base:#x}{freed}"))
            }
            Space::Shared => limit("shared memory of this block", self.shared_bytes),
            Space::Const => limit(".const memory", self.constants.len() as u64),
            Space::Param => limit("the kernel's parameter space", self.params.len() as u64),
            Space::Local => Some("outside the local memory of this thread".to_owned()),
            _ => None,
        }
    }

    /// Runs all blocks.
    pub fn run(&self) -> Result<LaunchReport, LaunchError> {
        let threads = self.config.block_threads() as usize;
        let most = if self.shuffled { WARP_LANES } else { CHUNK_LANES };
        let lanes = threads.next_multiple_of(16).min(most);
        let code = build(self.program, self, lanes);
        let work = Work {
            launch: self,
            code: &code,
            blocks: self.config.grid_blocks(),
            next: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            error: Mutex::new(None),
        };
        let host_threads = (self.config.host_threads() as u64).min(work.blocks).max(1) as usize;
        match host_threads {
            1 => work.run(),
            n if n <= rayon::current_num_threads() => rayon::scope(|scope| {
                (0..n).for_each(|_| scope.spawn(|_| work.run()));
            }),
            n => std::thread::scope(|scope| {
                (0..n).for_each(|_| drop(scope.spawn(|| work.run())));
            }),
        }
        self.config.output.flush();
        let thread_instructions = work.steps.load(Ordering::Relaxed);
        let error = work.error.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        match error {
            Some((_, error)) => Err(error),
            None => Ok(LaunchReport { thread_instructions, seconds: self.start.elapsed().as_secs_f64() }),
        }
    }
}

/// The blocks of a launch, and what became of them.
struct Work<'l> {
    launch: &'l Launch<'l>,
    code: &'l Code,
    blocks: u64,
    next: AtomicU64,
    /// Thread-instructions executed.
    steps: AtomicU64,
    stop: AtomicBool,
    /// The error of the lowest block, with its number.
    error: Mutex<Option<(u64, LaunchError)>>,
}

impl<'l> Work<'l> {
    /// Runs blocks until none is left.
    fn run(&self) {
        let Some(profile) = &self.launch.config.profile else { return self.run_observed(&mut ()) };
        let mut recorder = Recorder::new(self.launch, self.code);
        self.run_observed(&mut recorder);
        recorder.add_to(&mut profile.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn run_observed(&self, observer: &mut impl Observer) {
        let mut idle: Vec<Box<Cta<'l>>> = Vec::new();
        let mut flight: VecDeque<(u64, Box<Cta<'l>>)> = VecDeque::new();
        // Blocks wait for one another only if they spin; then others must get their turns.
        let mut start_more = true;
        while !self.stop.load(Ordering::Relaxed) {
            if start_more && flight.len() < RESIDENT_BLOCKS {
                let block = self.next.fetch_add(1, Ordering::Relaxed);
                if block < self.blocks {
                    let mut cta = idle.pop().unwrap_or_else(|| Box::new(Cta::new(self.launch, self.code)));
                    if let Err(fault) = cta.start(block) {
                        return self.fail(block, fault);
                    }
                    flight.push_front((block, cta));
                }
            }
            let Some((block, mut cta)) = flight.pop_front() else { return };
            let progress = cta.step(observer);
            let new = cta.take_instructions();
            let total = self.steps.fetch_add(new, Ordering::Relaxed) + new;
            match progress {
                Err(fault) => return self.fail(block, fault),
                Ok(Progress::Finished) => {
                    idle.push(cta);
                    start_more = flight.is_empty();
                }
                Ok(Progress::Running { spinning }) => {
                    if spinning {
                        flight.push_back((block, cta));
                    } else {
                        flight.push_front((block, cta));
                    }
                    start_more = spinning;
                }
            }
            if self.launch.config.max_steps.is_some_and(|limit| total > limit) {
                let limit = self.launch.config.max_steps.unwrap_or(0);
                return self.end(block, LaunchError::StepLimit { limit });
            }
            if self.launch.config.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
                return self.end(block, LaunchError::Cancelled);
            }
        }
    }

    fn fail(&self, block: u64, fault: Box<Fault>) {
        self.end(block, LaunchError::Fault(fault));
    }

    fn end(&self, block: u64, error: LaunchError) {
        self.stop.store(true, Ordering::Relaxed);
        let mut first = self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|(other, _)| block < *other) {
            *first = Some((block, error));
        }
    }
}
