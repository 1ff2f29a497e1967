//! The observer that all tools share: passes each event to the tools that want it, and formulates what they find.
//!
//! Findings are the same for every number of host threads, and checkers do not depend on each other. If blocks can affect each other
//! only by loads, stores and atomic operations without results, each host thread has its own checker ([`LaunchObserver::fork`]; `vm`,
//! `footprint.rs`). If two CTA batches turn out to depend on each other, or a checker finds anything, the launch is undone and runs
//! from the start on one host thread with one checker.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use check::Module;
use diag::Span;
use isa::{Mod, Opcode, Space};
use machine::{AccessEvent, AccessKind};

use crate::asynchronous::{Asynchronous, instructions};
use crate::finding::{Finding, FindingKind, Findings, Site, Tool, Tools};
use crate::init::{GlobalMemory, Values};
use crate::race::Races;
use crate::results::Results;
use crate::sync::{BlockUse, Misuse};
use crate::tensor::TensorMemories;
use crate::usage::Usage;
use crate::warpgroup::Warpgroups;
use crate::watched::Watched;

mod events;

/// The number of the cluster barrier in events.
const CLUSTER_BARRIER: u64 = 16;

/// Watches launches and reports what is wrong with them.
///
/// One checker can watch several launches of one module, one after the other.
pub struct Checker {
    pub(crate) tools: Tools,
    pub(crate) kernel: String,
    /// The dimensions of a block.
    pub(crate) block: [u32; 3],
    threads: u32,
    pub(crate) races: Races,
    pub(crate) usage: Usage,
    uses: HashMap<[u32; 3], BlockUse>,
    /// Barrier instructions by start of their spans: whether all lanes of a warp must execute the same instance.
    aligned: HashMap<u32, bool>,
    /// Relaxed arrivals at the cluster barrier, by start of their spans: they release nothing.
    relaxed: HashSet<u32>,
    /// Atomic operations that return nothing, by start of their spans.
    reductions: HashSet<u32>,
    /// The kernel has asynchronous copies, or matrix products that read memory later.
    copies: bool,
    /// Loads of parameters, by start of their spans.
    param_loads: HashSet<u32>,
    asynchronous: Asynchronous,
    pub(crate) results: Results,
    pub(crate) tensors: TensorMemories,
    /// By block.
    warpgroups: HashMap<[u32; 3], Warpgroups>,
    pub(crate) values: Values,
    /// The state of global memory: read when a launch begins, updated when it ends.
    memory: Arc<Mutex<GlobalMemory>>,
    /// What the checkers of parts of a launch learned about global memory.
    learned: Arc<Mutex<Vec<GlobalMemory>>>,
    /// This checker watches a part of a launch for another checker.
    is_fork: bool,
    pub(crate) watched: Watched,
    pub(crate) findings: Findings,
    /// Live allocations of `malloc`, each with its call and size.
    pub(crate) heap: BTreeMap<u64, (Site, u64)>,
}

impl Checker {
    /// A checker that runs these tools.
    pub fn new(tools: Tools) -> Checker {
        Checker {
            tools,
            kernel: String::new(),
            block: [1; 3],
            threads: 1,
            races: Races::default(),
            usage: Usage::default(),
            uses: HashMap::new(),
            aligned: HashMap::new(),
            relaxed: HashSet::new(),
            reductions: HashSet::new(),
            copies: false,
            param_loads: HashSet::new(),
            asynchronous: Asynchronous::default(),
            results: Results::default(),
            tensors: TensorMemories::default(),
            warpgroups: HashMap::new(),
            values: Values::default(),
            memory: Arc::default(),
            learned: Arc::default(),
            is_fork: false,
            watched: Watched::default(),
            findings: Findings::default(),
            heap: BTreeMap::new(),
        }
    }

    /// A new checker that a launch can share.
    pub fn shared(tools: Tools) -> Arc<Mutex<Checker>> {
        Arc::new(Mutex::new(Checker::new(tools)))
    }

    /// What has been found so far, by tool and in source order.
    pub fn findings(&self) -> Vec<Finding> {
        let mut all = self.findings.sorted();
        // If a racing read decides what is stored, the stored values may be the same by chance.
        let uncertain: Vec<Span> = all
            .iter()
            .filter(|finding| finding.kind == FindingKind::RaceWriteRead)
            .flat_map(|finding| [Some(finding.first), finding.second])
            .flatten()
            .map(|site| site.span)
            .collect();
        for finding in &mut all {
            let sides = [Some(finding.first), finding.second];
            if finding.kind == FindingKind::RaceSameValue
                && sides.iter().flatten().any(|site| uncertain.contains(&site.span))
                && let [Some(first), Some(second)] = sides
            {
                finding.kind = FindingKind::RaceWriteWrite;
                finding.message = self.unordered(&first, &second, finding.space);
            }
        }
        if self.tools.has(Tool::Leakcheck) {
            all.extend(self.leaks());
        }
        all
    }

    fn watches_memory(&self) -> bool {
        let by_sync = self.copies || self.asynchronous.makes_objects;
        self.tools.has(Tool::Racecheck) || self.tools.has(Tool::Synccheck) && by_sync
    }

    /// Whether accesses of this kind may write data over mbarrier objects.
    fn may_overwrite_objects(&self, kind: AccessKind, space: Space) -> bool {
        self.asynchronous.makes_objects
            && self.tools.has(Tool::Synccheck)
            && space != Space::Global
            && kind.writes()
            && !matches!(kind, AccessKind::Mbarrier | AccessKind::MbarrierTest)
    }

    /// Looks for data that is written over mbarrier objects.
    fn check_objects(&mut self, event: &AccessEvent) {
        for lane in event.lanes.iter().filter(|lane| lane.space == Space::Shared) {
            let uses = self.uses.get(&lane.owner);
            if let Some(made) = uses.and_then(|uses| uses.object_in(lane.address, lane.bytes)) {
                let here = (event.span, lane.thread);
                self.add_misuse(lane.block, &Misuse::Overwritten { here, made });
            }
        }
    }

    /// This memory is unwritten when the next launch begins.
    pub fn undefined_memory(&mut self, address: u64, bytes: u64) {
        lock(&self.memory).allocate(address, bytes);
    }

    /// This memory is written when the next launch begins. A kernel may still copy unwritten values there.
    pub fn defined_memory(&mut self, address: u64, bytes: u64) {
        lock(&self.memory).allocate_written(address, bytes);
    }

    /// Sets the state of global memory. A driver shares it between several checkers.
    pub fn set_memory(&mut self, memory: Arc<Mutex<GlobalMemory>>) {
        self.memory = memory;
    }

    /// Whether the checker follows registers that asynchronous instructions write.
    fn follows_results(&self) -> bool {
        self.tools.has(Tool::Synccheck) && !self.asynchronous.issues.is_empty()
    }

    /// Scans the code that a launch of the kernel may execute.
    fn look_at_code(&mut self, module: &Module) {
        self.asynchronous = Asynchronous::of(module, &self.kernel);
        self.copies = false;
        for set in [&mut self.reductions, &mut self.param_loads, &mut self.relaxed] {
            set.clear();
        }
        self.aligned.clear();
        for instruction in instructions(module, &self.kernel) {
            let (start, picks) = (instruction.span.start, &instruction.picks);
            match instruction.form.opcode {
                Opcode::Red => drop(self.reductions.insert(start)),
                Opcode::Cp | Opcode::Wgmma => self.copies = true,
                Opcode::Ld if picks.mods().iter().any(|m| m.name().starts_with("param")) => {
                    self.param_loads.insert(start);
                }
                opcode @ (Opcode::Bar | Opcode::Barrier) => {
                    if opcode == Opcode::Barrier && picks.has(Mod::Cluster) && picks.has(Mod::Relaxed) {
                        self.relaxed.insert(start);
                    }
                    self.aligned.insert(start, opcode == Opcode::Bar || picks.has(Mod::Aligned));
                }
                _ => {}
            }
        }
    }

    /// Runs a synchronization check, if synccheck is on.
    fn check_use(&mut self, block: [u32; 3], check: impl FnOnce(&mut BlockUse, &mut Vec<Misuse>)) {
        let mut found = Vec::new();
        if !self.tools.has(Tool::Synccheck) {
            return;
        }
        check(self.uses.entry(block).or_default(), &mut found);
        found.iter().for_each(|misuse| self.add_misuse(block, misuse));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
