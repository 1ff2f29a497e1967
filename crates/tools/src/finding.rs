//! What the tools report.
//!
//! Each pair of source places has at most one finding. If several pairs of threads cause it, the finding shows the lowest threads.
//! `ptxvm::by_cause` joins findings of the same source lines before they are shown.

use std::collections::HashMap;
use std::fmt;

use diag::{Severity, Span};
use isa::Space;

/// The tool that finds something. The names are those of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Conflicting accesses that nothing orders.
    Racecheck,
    /// Uses of values that were never written.
    Initcheck,
    /// Barriers, warp-level operations and asynchronous copies.
    Synccheck,
    /// Memory that is never freed.
    Leakcheck,
}

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 4] = [Tool::Racecheck, Tool::Initcheck, Tool::Synccheck, Tool::Leakcheck];

    /// The tool's name in options and output: `racecheck`.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Racecheck => "racecheck",
            Tool::Initcheck => "initcheck",
            Tool::Synccheck => "synccheck",
            Tool::Leakcheck => "leakcheck",
        }
    }
}

/// Which tools run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    chosen: [bool; 4],
}

impl Tools {
    /// All tools run.
    pub const ALL: Tools = Tools { chosen: [true; 4] };

    /// The same set with one more tool.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Tools {
        self.chosen[tool as usize] = true;
        self
    }

    /// Whether the tool runs.
    pub fn has(self, tool: Tool) -> bool {
        self.chosen[tool as usize]
    }

    /// The tools that the environment variable `PTXVM_TOOL` names. The libraries read it because they have no options.
    ///
    /// # Errors
    /// If the variable names an unknown tool.
    pub fn from_environment() -> Result<Tools, String> {
        std::env::var("PTXVM_TOOL").map_or(Ok(Tools::default()), |names| names.parse())
    }

    /// The same set without one tool.
    #[must_use]
    pub fn without(mut self, tool: Tool) -> Tools {
        self.chosen[tool as usize] = false;
        self
    }

    /// Whether no tool runs.
    pub fn is_empty(self) -> bool {
        self == Tools::default()
    }
}

/// Parses a list of names: `racecheck,initcheck`, `all`. `memcheck` is always on; the list may name it.
impl std::str::FromStr for Tools {
    type Err = String;

    fn from_str(text: &str) -> Result<Tools, String> {
        let mut tools = Tools::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if name == "all" {
                tools = Tools::ALL;
            } else if let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.name() == name) {
                tools = tools.with(tool);
            } else if name != "memcheck" {
                let names = Tool::ALL.map(Tool::name).join(", ");
                return Err(format!("there is no tool `{name}`: there are memcheck, {names}, all"));
            }
        }
        Ok(tools)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $Kind:ident $tool:ident $severity:ident,)*) => {
        /// The kind of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[$doc])* $Kind,)*
        }

        impl FindingKind {
            /// Every kind.
            pub const ALL: &'static [FindingKind] = &[$(FindingKind::$Kind,)*];

            /// Its name, which never changes: `race-write-read`.
            pub const fn code(self) -> &'static str {
                self.diagnostic().name()
            }

            /// The code of its diagnostic.
            pub const fn diagnostic(self) -> diag::Code {
                match self {
                    $(FindingKind::$Kind => diag::Code::$Kind,)*
                }
            }

            /// The tool that finds it.
            pub const fn tool(self) -> Tool {
                match self {
                    $(FindingKind::$Kind => Tool::$tool,)*
                }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(FindingKind::$Kind => Severity::$severity,)*
                }
            }
        }
    };
}

kinds! {
    /// One access writes, the other reads.
    RaceWriteRead Racecheck Error,
    /// Both accesses write.
    RaceWriteWrite Racecheck Error,
    /// One access writes, the other reads, but the value read is never used.
    RaceUnusedRead Racecheck Warning,
    /// Both accesses write the same value.
    RaceSameValue Racecheck Warning,
    /// Both accesses are strong, but not morally strong: a scope does not include the other thread, or the sizes differ.
    RaceScope Racecheck Error,
    /// One access is strong (such as atomic), the other is weak.
    RaceAtomic Racecheck Error,
    /// A thread writes memory that an asynchronous copy or a matrix product reads, and no proxy fence is between them.
    RaceProxy Racecheck Error,
    /// A thread accesses shared memory of another block of its cluster, which may not have started.
    ClusterStart Racecheck Error,
    /// A thread accesses shared memory of another block of its cluster, which may have ended.
    ClusterExit Racecheck Error,
    /// A stream may use memory before another stream has allocated it (`cuMemAllocAsync`). The driver reports it.
    StreamUseBeforeAlloc Racecheck Error,
    /// A stream may use memory after another stream has freed it (`cuMemFreeAsync`). The driver reports it.
    StreamUseAfterFree Racecheck Error,
    /// A thread uses the destination of its own asynchronous copy, or changes its source, before it has waited for the copy.
    CopyNotAwaited Synccheck Error,
    /// A thread reads a register that an asynchronous instruction writes, before it has waited for that instruction.
    ResultNotAwaited Synccheck Error,
    /// `wgmma` uses a register that the thread wrote, and no `wgmma.fence` is between them.
    ProductNotFenced Synccheck Error,
    /// Only some warps of a warpgroup execute `setmaxnreg`.
    RegisterCounts Synccheck Error,
    /// Lanes of one warp execute different instances of a barrier that needs whole warps.
    DivergentBarrier Synccheck Error,
    /// Threads arrive at one barrier with different thread counts.
    BarrierCounts Synccheck Error,
    /// The thread count of a barrier is no multiple of the warp size.
    BarrierCountWarps Synccheck Error,
    /// A barrier of the block completes although some threads ended before they arrived.
    ExitBeforeBarrier Synccheck Warning,
    /// A lane reads the register of a lane that does not participate.
    InactiveLane Synccheck Error,
    /// Only some lanes of a warp execute an instruction that needs the whole warp.
    DivergentAligned Synccheck Error,
    /// `mbarrier.init` initializes an object that is already initialized.
    MbarrierInitAgain Synccheck Error,
    /// A thread writes data over an mbarrier object.
    MbarrierOverwritten Synccheck Error,
    /// An unwritten register or unwritten memory decides control flow or an address.
    Uninitialized Initcheck Error,
    /// Unwritten memory reaches an output.
    UninitializedOutput Initcheck Error,
    /// Unwritten memory is copied to the host. The driver reports it, without a place in a kernel.
    UninitializedMemcpy Initcheck Error,
    /// Memory is allocated and never written. The driver reports it on request, without a place in a kernel.
    UnusedMemory Initcheck Warning,
    /// `malloc` had no room, and returned 0.
    DeviceMallocFailed Leakcheck Warning,
    /// The kernel does not free an allocation of `malloc`.
    DeviceLeak Leakcheck Error,
    /// A program does not free memory of the CUDA driver. The driver reports it, without a place in a kernel.
    DriverLeak Leakcheck Error,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One of the two sides of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The instruction.
    pub span: Span,
    /// `%ctaid` of the block, z first.
    block: [u32; 3],
    /// Index of the thread in the block.
    pub thread: u32,
    /// What the access does: `write`, `atomic read and write`.
    pub access: &'static str,
}

impl Site {
    /// One side of a finding.
    pub fn new(span: Span, [x, y, z]: [u32; 3], thread: u32, access: &'static str) -> Site {
        Site { span, block: [z, y, x], thread, access }
    }

    /// `%ctaid` of the block.
    pub fn block(&self) -> [u32; 3] {
        let [z, y, x] = self.block;
        [x, y, z]
    }
}

/// What a tool has found: at most one finding for each pair of places.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What kind it is.
    pub kind: FindingKind,
    /// The kernel that was launched.
    pub kernel: String,
    /// The state space, if the finding is about memory.
    pub space: Option<Space>,
    /// What was found, as a sentence.
    pub message: String,
    /// The address in the state space.
    pub address: Option<u64>,
    /// The allocation at the address: `12 bytes into shared variable `tile`, 512 bytes at 0x0`.
    pub allocation: Option<String>,
    /// The place. If there are two, the one that is first in the source.
    pub first: Site,
    /// The other place.
    pub second: Option<Site>,
    /// What would repair it.
    pub missing: String,
    /// Further places that explain it.
    pub because: Vec<(Span, String)>,
    /// How often it was seen.
    pub count: u64,
}

/// The lower site first.
fn in_order(sites: (Site, Option<Site>)) -> (Site, Option<Site>) {
    match sites {
        (a, Some(b)) if b < a => (b, Some(a)),
        other => other,
    }
}

/// The findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    places: HashMap<(Tool, Span, Option<Span>), usize>,
    list: Vec<Finding>,
}

impl Findings {
    /// Counts a finding if its pair of places already has one that stays: that of the lowest threads, so that the result does not depend
    /// on the order in which findings arrive. Otherwise it must be added. Many findings are repetitions, which need no words.
    pub fn is_repeated(&mut self, kind: FindingKind, sites: (Site, Option<Site>)) -> bool {
        let (first, second) = in_order(sites);
        let Some(known) = self.known(kind, (first, second)) else { return false };
        // Errors rank before warnings.
        let stays = (known.kind.severity(), known.first, known.second) <= (kind.severity(), first, second);
        known.count += u64::from(stays);
        stays
    }

    fn known(&mut self, kind: FindingKind, (first, second): (Site, Option<Site>)) -> Option<&mut Finding> {
        let key = (kind.tool(), first.span, second.map(|site| site.span));
        self.places.get(&key).map(|&index| &mut self.list[index])
    }

    /// Adds a finding, unless it [is repeated](Findings::is_repeated). `complete` fills in the remaining fields.
    pub fn add(
        &mut self,
        kind: FindingKind,
        kernel: &str,
        sites: (Site, Option<Site>),
        complete: impl FnOnce(&mut Finding),
    ) {
        if self.is_repeated(kind, sites) {
            return;
        }
        let (first, second) = in_order(sites);
        let (message, missing) = (String::new(), String::new());
        let mut finding = Finding {
            kind,
            kernel: kernel.to_owned(),
            space: None,
            message,
            address: None,
            allocation: None,
            first,
            second,
            missing,
            because: Vec::new(),
            count: 1,
        };
        complete(&mut finding);
        match self.known(kind, (first, second)) {
            Some(known) => {
                finding.count += known.count;
                *known = finding;
            }
            None => {
                let key = (kind.tool(), first.span, second.map(|site| site.span));
                self.places.insert(key, self.list.len());
                self.list.push(finding);
            }
        }
    }

    /// Looks up the allocation of each finding that has an address but no allocation yet.
    pub fn describe(&mut self, describe: impl Fn(Space, u64) -> Option<String>) {
        for finding in self.list.iter_mut().filter(|finding| finding.allocation.is_none()) {
            finding.allocation =
                finding.space.zip(finding.address).and_then(|(space, address)| describe(space, address));
        }
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All findings, by tool and in source order.
    pub fn sorted(&self) -> Vec<Finding> {
        let mut all = self.list.clone();
        all.sort_by_key(|finding| (finding.kind.tool(), finding.first.span.start, finding.second));
        all
    }
}
