//! What the tools find.
//!
//! There is one finding for each pair of places; of several the one of the lowest threads is shown. `ptxvm::by_cause` joins findings of the
//! same source lines before anybody sees them.

use std::collections::HashMap;
use std::fmt;

use diag::{Severity, Span};
use isa::Space;

/// Who finds something. The names are those of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Accesses that nothing orders.
    Racecheck,
    /// Values that nobody wrote.
    Initcheck,
    /// Barriers, warp-level operations and asynchronous copies.
    Synccheck,
    /// Memory that is never given back.
    Leakcheck,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 4] = [Tool::Racecheck, Tool::Initcheck, Tool::Synccheck, Tool::Leakcheck];

    /// `racecheck`
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
    /// All.
    pub const ALL: Tools = Tools { chosen: [true; 4] };

    /// One runs, too.
    #[must_use]
    pub fn with(mut self, tool: Tool) -> Tools {
        self.chosen[tool as usize] = true;
        self
    }

    /// Whether it runs.
    pub fn has(self, tool: Tool) -> bool {
        self.chosen[tool as usize]
    }

    /// Those that the environment variable `PTXVM_TOOL` names, for libraries that have no options.
    ///
    /// # Errors
    /// When it names one that there is not.
    pub fn from_environment() -> Result<Tools, String> {
        std::env::var("PTXVM_TOOL").map_or(Ok(Tools::default()), |names| names.parse())
    }

    /// One does not run.
    #[must_use]
    pub fn without(mut self, tool: Tool) -> Tools {
        self.chosen[tool as usize] = false;
        self
    }

    /// None runs.
    pub fn is_empty(self) -> bool {
        self == Tools::default()
    }
}

/// A list of names: `racecheck,initcheck`, `all`. `memcheck` is always on, and may be named.
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
        /// What kind of finding it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[$doc])* $Kind,)*
        }

        impl FindingKind {
            /// Every kind.
            pub const ALL: &'static [FindingKind] = &[$(FindingKind::$Kind,)*];

            /// Its name, which is stable: `race-write-read`.
            pub const fn code(self) -> &'static str {
                self.diagnostic().name()
            }

            /// The kind of its diagnostic.
            pub const fn diagnostic(self) -> diag::Code {
                match self {
                    $(FindingKind::$Kind => diag::Code::$Kind,)*
                }
            }

            /// Who finds it.
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
    /// One writes, the other reads.
    RaceWriteRead Racecheck Error,
    /// Both write.
    RaceWriteWrite Racecheck Error,
    /// One writes, the other reads, and what it has read goes nowhere.
    RaceUnusedRead Racecheck Warning,
    /// Both write the same value.
    RaceSameValue Racecheck Warning,
    /// Both are atomic, or strong, but not for each other: their scopes do not reach.
    RaceScope Racecheck Error,
    /// One is atomic, the other is not.
    RaceAtomic Racecheck Error,
    /// A thread writes what an asynchronous copy or a product reads, and no fence is between the proxies.
    RaceProxy Racecheck Error,
    /// A thread accesses shared memory of another block of its cluster, which may not have started.
    ClusterStart Racecheck Error,
    /// A thread accesses shared memory of another block of its cluster, which may have ended.
    ClusterExit Racecheck Error,
    /// A stream uses memory before the stream that allocates it (`cuMemAllocAsync`) surely has: the driver tells of it.
    StreamUseBeforeAlloc Racecheck Error,
    /// A stream uses memory when another one may have given it back (`cuMemFreeAsync`): the driver tells of it.
    StreamUseAfterFree Racecheck Error,
    /// A thread uses what its own asynchronous copy writes, or changes what it reads, before it has waited for it.
    CopyNotAwaited Synccheck Error,
    /// A thread reads a register that an asynchronous instruction writes before it has waited for that.
    ResultNotAwaited Synccheck Error,
    /// A product uses a register that was written, and no `wgmma.fence` is between.
    ProductNotFenced Synccheck Error,
    /// A part of a warpgroup executes `setmaxnreg`.
    RegisterCounts Synccheck Error,
    /// Lanes of a warp execute different instances of a barrier for whole warps.
    DivergentBarrier Synccheck Error,
    /// Threads come to one barrier with different numbers of threads.
    BarrierCounts Synccheck Error,
    /// The number of threads is no multiple of a warp.
    BarrierCountWarps Synccheck Error,
    /// A barrier of the block is complete although threads have ended before they came to it.
    ExitBeforeBarrier Synccheck Warning,
    /// A lane reads the register of a lane that does not take part.
    InactiveLane Synccheck Error,
    /// An instruction for whole warps is executed by a part of one.
    DivergentAligned Synccheck Error,
    /// An mbarrier object is made where there is one.
    MbarrierInitAgain Synccheck Error,
    /// A thread writes data over an mbarrier object.
    MbarrierOverwritten Synccheck Error,
    /// A register, or memory, that nobody wrote decides something.
    Uninitialized Initcheck Error,
    /// Memory that nobody wrote reaches an output.
    UninitializedOutput Initcheck Error,
    /// Memory that nobody wrote is copied to the host: the driver tells of it, without a place in a kernel.
    UninitializedMemcpy Initcheck Error,
    /// Memory that nobody ever writes: the driver tells of it, if asked, without a place in a kernel.
    UnusedMemory Initcheck Warning,
    /// `malloc` had no room, and returned 0.
    DeviceMallocFailed Leakcheck Warning,
    /// An allocation of `malloc` that the kernel does not free.
    DeviceLeak Leakcheck Error,
    /// Memory of the CUDA driver that a program does not give back: the driver tells of it, without a place in a kernel.
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
    /// What it did: `write`, `atomic read and write`.
    pub access: &'static str,
}

impl Site {
    /// A side of a finding.
    pub fn new(span: Span, [x, y, z]: [u32; 3], thread: u32, access: &'static str) -> Site {
        Site { span, block: [z, y, x], thread, access }
    }

    /// `%ctaid` of the block.
    pub fn block(&self) -> [u32; 3] {
        let [z, y, x] = self.block;
        [x, y, z]
    }
}

/// What a tool has found: at most one for each pair of places.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What kind it is.
    pub kind: FindingKind,
    /// The kernel that was launched.
    pub kernel: String,
    /// The memory, if it is about memory.
    pub space: Option<Space>,
    /// What was found, in a sentence.
    pub message: String,
    /// The address, in the space.
    pub address: Option<u64>,
    /// What lies there: `12 bytes into shared variable `tile`, 512 bytes at 0x0`.
    pub allocation: Option<String>,
    /// The place, of two the one that stands first in the source.
    pub first: Site,
    /// The other one.
    pub second: Option<Site>,
    /// What would mend it.
    pub missing: String,
    /// Further places that explain it.
    pub because: Vec<(Span, String)>,
    /// How often it was seen.
    pub count: u64,
}

/// Findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    places: HashMap<(Tool, Span, Option<Span>), usize>,
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a finding, or counts it with the one that is there for its places. Of those the one of the lowest threads is kept, so that
    /// it does not depend on the order in which they were found. `complete` says the rest of it.
    pub fn add(
        &mut self,
        kind: FindingKind,
        kernel: &str,
        sites: (Site, Option<Site>),
        complete: impl FnOnce(&mut Finding),
    ) {
        let (first, second) = match sites {
            (a, Some(b)) if b < a => (b, Some(a)),
            other => other,
        };
        let key = (kind.tool(), first.span, second.map(|site| site.span));
        let mut count = 1;
        if let Some(&index) = self.places.get(&key) {
            let known = &mut self.list[index];
            known.count += 1;
            // Errors before warnings.
            if (known.kind.severity(), known.first, known.second) <= (kind.severity(), first, second) {
                return;
            }
            count = known.count;
        }
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
            count,
        };
        complete(&mut finding);
        match self.places.get(&key) {
            Some(&index) => self.list[index] = finding,
            None => {
                self.places.insert(key, self.list.len());
                self.list.push(finding);
            }
        }
    }

    /// Says of those that do not know yet what lies at their addresses.
    pub fn describe(&mut self, describe: impl Fn(Space, u64) -> Option<String>) {
        for finding in self.list.iter_mut().filter(|finding| finding.allocation.is_none()) {
            finding.allocation =
                finding.space.zip(finding.address).and_then(|(space, address)| describe(space, address));
        }
    }

    /// All, in the order of the source.
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn sorted(&self) -> Vec<Finding> {
        let mut all = self.list.clone();
        all.sort_by_key(|finding| (finding.kind.tool(), finding.first.span.start, finding.second));
        all
    }
}
