//! The messages of the tools.

use std::collections::HashMap;

use diag::Span;
use isa::Space;
use machine::{AccessKind, DeviceCall};

use crate::asynchronous::Issue;
use crate::block::WARP;
use crate::checker::Checker;
use crate::clock::OBJECTS;
use crate::finding::{Finding, FindingKind, Findings, Site, Tool};
use crate::init::{Matter, Origin, Use};
use crate::meeting::Race;
use crate::place::Place;
use crate::release::Miss;
use crate::results;
use crate::sync::{Elsewhere, Misuse};
use crate::usage::Matters;
use crate::waits::Work;
use crate::warpgroup::PartOfWarpgroup;

impl Checker {
    /// Allocations of `malloc` that are not freed, one finding for each call site.
    pub(crate) fn leaks(&self) -> Vec<Finding> {
        let mut leaks = Findings::default();
        let mut sums: HashMap<Span, u64> = HashMap::new();
        self.heap.values().for_each(|(site, bytes)| *sums.entry(site.span).or_default() += bytes);
        for (address, (site, bytes)) in &self.heap {
            leaks.add(FindingKind::DeviceLeak, &self.kernel, (*site, None), |finding| {
                let sum = sums[&site.span];
                finding.message = format!(
                    "`malloc` of {bytes} bytes by {} is never freed; all that are left from here have {sum} bytes",
                    self.who(site)
                );
                (finding.space, finding.address) = (Some(Space::Global), Some(*address));
                finding.missing = "`free` of the address before the kernel ends, or in a later one".to_owned();
            });
        }
        leaks.sorted()
    }

    /// `malloc` of `bytes` bytes has returned 0.
    pub(crate) fn add_failed_malloc(&mut self, call: &DeviceCall, bytes: u64) {
        if !self.tools.has(Tool::Leakcheck) {
            return;
        }
        let site = Site::new(call.span, call.block, call.thread, "allocates");
        let message = format!("`malloc` of {bytes} bytes by {} has no room, and returns 0", self.who(&site));
        self.findings.add(FindingKind::DeviceMallocFailed, &self.kernel, (site, None), |finding| {
            finding.message = message;
            finding.missing =
                "a larger heap (`cudaLimitMallocHeapSize`), or `free` of what is not needed".to_owned();
        });
    }

    /// `%tid` of a thread.
    fn tid(&self, thread: u32) -> [u32; 3] {
        let [nx, ny, _] = self.block.map(|n| n.max(1));
        [thread % nx, thread / nx % ny, thread / nx / ny]
    }

    /// A thread in words: `thread (3,0,0) of block (0,0,0)`.
    pub fn who(&self, site: &Site) -> String {
        let text = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
        format!("thread {} of block {}", text(self.tid(site.thread)), text(site.block()))
    }

    /// The message for two threads whose accesses nothing orders.
    pub(crate) fn unordered(&self, one: &Site, other: &Site, space: Option<Space>) -> String {
        let text = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
        let who = match (one.block(), other.block()) {
            (block, same) if block == same => {
                let [one, other] = [one, other].map(|site| text(self.tid(site.thread)));
                format!("threads {one} and {other} of block {}", text(block))
            }
            _ => format!("{} and {}", self.who(one), self.who(other)),
        };
        let space = if space == Some(Space::Shared) { "shared" } else { "global" };
        format!("{who} access the same {space} memory, and nothing orders them")
    }

    /// Formulates the races that were found.
    pub(crate) fn take_races(&mut self) {
        for race in std::mem::take(&mut self.races.found) {
            self.add_race(race);
        }
        self.take_absent();
    }

    /// Whether the value matters that a thread reads at a place.
    fn matters(&mut self, reader: &Site, place: &Place) -> Matters {
        if place.kind != AccessKind::Load || place.work.is_some() {
            return Matters::Yes;
        }
        let block = self.races.index(reader.block());
        let is_running = self.races.blocks.contains_key(&block);
        self.usage.matters((block, is_running), place.span.start, reader.thread)
    }

    pub(crate) fn add_race(&mut self, mut race: Race) {
        let places = &self.races.places;
        let (before, later) = (places[race.earlier.place as usize], places[race.later_place as usize]);
        let block = self.races.ctaid(race.earlier.block);
        let by_object = race.earlier.thread >= OBJECTS;
        let thread = if by_object { 0 } else { race.earlier.thread.into() };
        let earlier = Site::new(before.span, block, thread, before.access());
        let second = Site::new(later.span, race.later.block, race.later.thread, later.access());
        let same_thread = earlier.block() == second.block() && thread == second.thread && !by_object;
        let both_write = before.kind.writes() && later.kind.writes();
        let is_strong = |place: &Place| place.semantics.is_strong();
        let kind = match () {
            () if race.proxies => FindingKind::RaceProxy,
            () if race.earlier.is_copy() && same_thread => FindingKind::CopyNotAwaited,
            () if is_strong(&before) && is_strong(&later) => FindingKind::RaceScope,
            () if is_strong(&before) || is_strong(&later) => FindingKind::RaceAtomic,
            () if both_write && race.same_value => FindingKind::RaceSameValue,
            () if both_write => FindingKind::RaceWriteWrite,
            () => FindingKind::RaceWriteRead,
        };
        if !self.tools.has(kind.tool()) || kind == FindingKind::RaceSameValue && race.together {
            return;
        }
        let mut kind = kind;
        if kind == FindingKind::RaceWriteRead {
            let (reader, place) = if before.kind.writes() { (&second, &later) } else { (&earlier, &before) };
            match self.matters(reader, place) {
                Matters::Yes => {}
                Matters::No => kind = FindingKind::RaceUnusedRead,
                Matters::NotYet => {
                    let block = self.races.index(reader.block());
                    match self.usage.keep(block, race) {
                        None => return,
                        Some(full) => race = full,
                    }
                }
            }
        }
        if self.findings.is_repeated(kind, (earlier, Some(second))) {
            return;
        }
        let (missing, because) = self.explain(kind, &race, &before, &later);
        let [one, other] = if second < earlier { [&second, &earlier] } else { [&earlier, &second] };
        let message = match kind {
            FindingKind::RaceProxy => {
                let space = if race.space == Space::Shared { "shared" } else { "global" };
                format!(
                    "{} has {space} memory read by the async proxy that {} wrote, and no fence is between the proxies",
                    self.who(&second),
                    if same_thread { "it".to_owned() } else { self.who(&earlier) }
                )
            }
            FindingKind::CopyNotAwaited if !before.kind.writes() => format!(
                "{} changes what its own asynchronous copy or product reads, and has not waited for it",
                self.who(&second)
            ),
            FindingKind::CopyNotAwaited => format!(
                "{} uses what its own asynchronous copy brings, and has not waited for it",
                self.who(&second)
            ),
            FindingKind::RaceUnusedRead => {
                format!("{}, but what is read goes nowhere", self.unordered(one, other, Some(race.space)))
            }
            FindingKind::RaceSameValue => format!(
                "{}: the same value, benign today and undefined in the memory model",
                self.unordered(one, other, Some(race.space))
            ),
            _ => self.unordered(one, other, Some(race.space)),
        };
        self.findings.add(kind, &self.kernel, (earlier, Some(second)), |finding| {
            finding.space = Some(race.space);
            finding.address = Some(self.races.shared_address(race.space, race.later.owner, race.address));
            finding.message = message;
            finding.missing = missing;
            finding.because = because;
        });
    }

    /// What would order the two accesses of a race.
    fn explain(
        &self,
        kind: FindingKind,
        race: &Race,
        before: &Place,
        later: &Place,
    ) -> (String, Vec<(Span, String)>) {
        let place = |number: u32| &self.races.places[number as usize];
        if kind == FindingKind::RaceProxy {
            let text =
                "`fence.proxy.async` in the thread that writes, before what orders it with the other one";
            return (text.to_owned(), vec![]);
        }
        let wait = match before.work {
            Some(Work::BulkRead) => "`cp.async.bulk.commit_group` and `cp.async.bulk.wait_group.read`",
            Some(Work::BulkWrite) => "`cp.async.bulk.commit_group` and `cp.async.bulk.wait_group`",
            Some(Work::Product) => "`wgmma.commit_group` and `wgmma.wait_group`",
            _ if kind == FindingKind::CopyNotAwaited => "`cp.async.wait_group` or `cp.async.wait_all`",
            _ => "`cp.async.wait_group`",
        };
        if kind == FindingKind::CopyNotAwaited {
            return (format!("{wait} in this thread before it"), vec![]);
        }
        if kind == FindingKind::RaceScope {
            let text = "both at a scope that includes the other thread (`.gpu`), and of the same size";
            return (text.to_owned(), vec![]);
        }
        if let Some(near) = &race.miss {
            let (write, read) = (place(near.write).span, place(near.read).span);
            let earlier = self.races.ctaid(race.earlier.block);
            let scope = if self.races.has_clusters() && self.races.same_cluster(earlier, race.later.block) {
                ".cluster"
            } else {
                ".gpu"
            };
            let (missing, span, because) = match near.miss {
                Miss::ReleaseScope => (
                    format!("a release at `{scope}` scope"),
                    write,
                    "this releases to the threads of its own block only",
                ),
                Miss::AcquireScope => (
                    format!("an acquire at `{scope}` scope"),
                    read,
                    "this acquires from the threads of its own block only",
                ),
                Miss::NoRelease => (
                    "`.release` where the flag is written, or a fence before it".to_owned(),
                    write,
                    "this write is no release: what its thread wrote before may come later",
                ),
                Miss::NoAcquire => (
                    "`.acquire` where the flag is read, or a fence after it".to_owned(),
                    read,
                    "this read is no acquire: what its thread reads later may come earlier",
                ),
            };
            return (missing, vec![(span, because.to_owned())]);
        }
        let same_block = self.races.ctaid(race.earlier.block) == race.later.block;
        let same_cluster = self.races.same_cluster(self.races.ctaid(race.earlier.block), race.later.block);
        let same_warp = same_block && u32::from(race.earlier.thread) / WARP == race.later.thread / WARP;
        let missing = if race.earlier.is_copy() {
            let order = if same_block { "a barrier of the block" } else { "a release and an acquire" };
            return (format!("{wait} in the thread that issued it, and then {order}"), vec![]);
        } else if before.work == Some(Work::Tensor) {
            "waiting for the mbarrier object that `tcgen05.commit` names"
        } else if race.earlier.thread >= OBJECTS {
            "waiting for the mbarrier object that the copy completes on"
        } else if kind == FindingKind::RaceAtomic && same_block {
            "an atomic operation for both, or a barrier between the two"
        } else if kind == FindingKind::RaceAtomic {
            "an atomic operation for both"
        } else if before.span == later.span && before.kind.writes() {
            "one thread only, an atomic operation, or an address for each thread"
        } else if same_warp {
            "`bar.warp.sync` or a barrier of the block between the two"
        } else if same_block {
            "a barrier of the block (`bar.sync`) between the two"
        } else if same_cluster {
            "a barrier of the cluster (`barrier.cluster`) between the two"
        } else {
            "a release at `.gpu` scope behind the first and an acquire of it before the second, or two launches"
        };
        (missing.to_owned(), vec![])
    }

    /// Formulates the misuse of registers that asynchronous instructions read and write.
    pub(crate) fn take_results(&mut self) {
        for (misuse, (block, thread)) in std::mem::take(&mut self.results.found) {
            let site = |span, access| Site::new(span, block, thread, access);
            let (kind, sites, what, missing) = match misuse {
                results::Misuse::NotAwaited { here, issue, issued } => {
                    let missing = match issue {
                        Issue::Product => "`wgmma.commit_group` and `wgmma.wait_group` before it",
                        Issue::TensorLoad => "`tcgen05.wait::ld` before it",
                    };
                    let sites = (site(here, "reads it"), site(issued, "writes it, later"));
                    let what =
                        "reads a register that an asynchronous instruction writes, and has not waited for it";
                    (FindingKind::ResultNotAwaited, sites, what, missing)
                }
                results::Misuse::NotFenced { here, written } => {
                    let sites = (site(here, "uses it"), site(written, "writes it"));
                    let what = "has a product use a register that was written since the last `wgmma.fence`";
                    let missing = "`wgmma.fence` between the two, by all warps of the warpgroup";
                    (FindingKind::ProductNotFenced, sites, what, missing)
                }
            };
            let message = format!("{} {what}", self.who(&sites.0));
            self.findings.add(kind, &self.kernel, (sites.0, Some(sites.1)), |finding| {
                finding.message = message;
                finding.missing = missing.to_owned();
            });
        }
    }

    /// Formulates the uses of tensor memory before its stores were waited for.
    pub(crate) fn take_early_cells(&mut self) {
        for found in std::mem::take(&mut self.tensors.found) {
            if !self.tools.has(Tool::Synccheck) {
                continue;
            }
            let here = Site::new(found.here, found.thread.0, found.thread.1, "uses it");
            let stored = Site::new(found.stored, found.by.0, found.by.1, "stores it, later");
            let whom = if found.thread == found.by { "it".to_owned() } else { self.who(&stored) };
            let message =
                format!("{} uses tensor memory that {whom} has stored and not waited for", self.who(&here));
            self.findings.add(FindingKind::ResultNotAwaited, &self.kernel, (here, Some(stored)), |finding| {
                finding.message = message;
                finding.missing = "`tcgen05.wait::st` behind the store, in the thread that stores".to_owned();
            });
        }
    }

    pub(crate) fn add_part(&mut self, block: [u32; 3], part: &PartOfWarpgroup) {
        if !self.tools.has(Tool::Synccheck) {
            return;
        }
        let site = Site::new(part.here.0, block, part.here.1, "executes it");
        let times = part.executed.map(|count| count.to_string()).join(", ");
        let message = format!(
            "{} executes an instruction for whole warpgroups, whose warps execute it {times} times",
            self.who(&site)
        );
        self.findings.add(FindingKind::RegisterCounts, &self.kernel, (site, None), |finding| {
            finding.message = message;
            finding.missing = "all four warps of the warpgroup, as often".to_owned();
        });
    }

    /// Formulates the uses of unwritten values.
    pub(crate) fn take_uses(&mut self) {
        for found in std::mem::take(&mut self.values.found) {
            self.add_use(&found);
        }
    }

    fn add_use(&mut self, found: &Use) {
        let (kind, access) = match found.matter {
            Matter::Decides => (FindingKind::Uninitialized, "goes where it says"),
            Matter::Address => (FindingKind::Uninitialized, "depends on it"),
            Matter::Atomic => (FindingKind::Uninitialized, "combines with it"),
            Matter::Combined => (FindingKind::Uninitialized, "combines it with memory"),
            Matter::Output => (FindingKind::UninitializedOutput, "stores it"),
        };
        let site = Site::new(found.span, found.block, found.thread, access);
        if let Origin::Lane { span, lane } = found.origin {
            return self.add_absent_lane(found, (span, lane));
        }
        if !self.tools.has(Tool::Initcheck) {
            return;
        }
        let (what, born, missing) = match &found.origin {
            // Handled above.
            Origin::Lane { .. } => return,
            Origin::Register { name, .. } => {
                let missing = format!("a value for `{name}` on every way that leads here");
                (format!("register `{name}`, which nobody wrote"), None, missing)
            }
            Origin::Tensor { span } => {
                let born = Site::new(*span, found.block, found.thread, "reads what nobody wrote");
                let missing = "a store, a copy or a product to the tensor memory before it is read";
                ("tensor memory that nobody wrote".to_owned(), Some(born), missing.to_owned())
            }
            Origin::Memory { span, space } => {
                let space = format!("{space:?}").to_lowercase();
                let born = (*span != found.span)
                    .then(|| Site::new(*span, found.block, found.thread, "reads what nobody wrote"));
                let missing = format!("a store to the {space} memory before it is read");
                (format!("{space} memory that nobody wrote"), born, missing)
            }
        };
        let does = match found.matter {
            Matter::Decides => "goes where it is told by",
            Matter::Address => "accesses memory, or not, depending on",
            Matter::Atomic => "combines atomically with",
            Matter::Combined => "combines memory atomically with",
            Matter::Output => "stores to global memory what comes from",
        };
        let message = format!("{} {does} {what}", self.who(&site));
        self.findings.add(kind, &self.kernel, (site, born), |finding| {
            finding.message = message;
            finding.missing = missing;
            if let Some(address) = found.read {
                (finding.address, finding.space) = (Some(address), Some(Space::Global));
            } else if let Some(address) = found.address {
                finding.address = Some(address);
                finding.space = match &found.origin {
                    Origin::Memory { space, .. } if found.matter == Matter::Atomic => Some(*space),
                    _ => Some(Space::Global).filter(|_| found.matter == Matter::Output),
                };
            }
        });
    }

    /// Reports a value that matters and that a shuffle read from a lane that does not participate.
    fn add_absent_lane(&mut self, found: &Use, (span, lane): (Span, u32)) {
        let site = Site::new(span, found.block, found.thread, "reads");
        let who = self.who(&site);
        let message =
            format!("{who} reads the register of lane {lane} of its warp, which does not take part");
        let does = match found.matter {
            Matter::Decides => "goes where that says",
            Matter::Address => "accesses memory, or not, depending on that",
            Matter::Atomic | Matter::Combined => "combines memory with what comes from there",
            Matter::Output => "stores what comes from there",
        };
        self.findings.add(FindingKind::InactiveLane, &self.kernel, (site, None), |finding| {
            finding.message = message;
            finding.missing =
                "a member mask, and lanes that execute the shuffle, with all lanes that are read".to_owned();
            finding.because = vec![(found.span, format!("{who} {does}"))];
        });
    }

    pub(crate) fn add_misuse(&mut self, block: [u32; 3], misuse: &Misuse) {
        if !self.tools.has(Tool::Synccheck) {
            return;
        }
        let site = |(span, thread): (Span, u32), access| Site::new(span, block, thread, access);
        let kind = match misuse {
            Misuse::Divergent { .. } => FindingKind::DivergentBarrier,
            Misuse::Counts { .. } => FindingKind::BarrierCounts,
            Misuse::CountNotWarps { .. } => FindingKind::BarrierCountWarps,
            Misuse::ExitBefore { .. } => FindingKind::ExitBeforeBarrier,
            Misuse::Inactive { .. } => FindingKind::InactiveLane,
            Misuse::Aligned { .. } => FindingKind::DivergentAligned,
            Misuse::ObjectAgain { .. } => FindingKind::MbarrierInitAgain,
            Misuse::Overwritten { .. } => FindingKind::MbarrierOverwritten,
        };
        let (first, second, what, missing) = match *misuse {
            Misuse::Divergent { here, absent, elsewhere } => {
                let (there, what) = match elsewhere {
                    Elsewhere::Comes(there) => (
                        Some(site(there, "comes to it by another instruction")),
                        "come by another instruction",
                    ),
                    Elsewhere::Ended(there) => (Some(site(there, "ends")), "have ended"),
                    Elsewhere::Unknown => (None, "do not come"),
                };
                (
                    site(here, "comes to the barrier"),
                    there,
                    format!(
                        "comes to a barrier for whole warps without {} of its warp, which {what}",
                        lanes(absent)
                    ),
                    "one barrier that all lanes of the warp come to, or `barrier.sync` without `.aligned`",
                )
            }
            Misuse::Counts { first, second } => {
                let text = |count: Option<u64>| {
                    count.map_or("all threads of the block".to_owned(), |n| format!("{n} threads"))
                };
                (
                    site((second.0, second.1), "comes to the barrier"),
                    Some(site((first.0, first.1), "came to the barrier")),
                    format!("comes to a barrier for {}, another one for {}", text(second.2), text(first.2)),
                    "the same number of threads wherever one barrier is used",
                )
            }
            Misuse::CountNotWarps { here, count } => (
                site(here, "comes to the barrier"),
                None,
                format!("comes to a barrier for {count} threads, which are no whole warps"),
                "a multiple of 32",
            ),
            Misuse::ExitBefore { barrier, exit, exited } => (
                site(barrier, "comes to the barrier"),
                Some(site(exit, "ends")),
                format!("comes to a barrier of the block, of which {exited} threads have ended before"),
                "an end behind the last barrier",
            ),
            Misuse::Inactive { here, source } => (
                site(here, "reads"),
                None,
                format!("reads the register of lane {} of its warp, which does not take part", source % WARP),
                "a member mask, and lanes that execute the shuffle, with all lanes that are read",
            ),
            Misuse::Aligned { here, present } => (
                site(here, "executes it"),
                None,
                format!("executes an instruction for whole warps with {present} lanes of its warp"),
                "all 32 lanes of the warp, at the same time",
            ),
            Misuse::ObjectAgain { here, before } => (
                site(here, "makes it again"),
                Some(site(before, "made the object")),
                "makes an mbarrier object where there is one".to_owned(),
                "`mbarrier.inval` before",
            ),
            Misuse::Overwritten { here, made } => (
                site(here, "writes data"),
                Some(site(made, "made the object")),
                "writes data over an mbarrier object".to_owned(),
                "`mbarrier.inval` before, or other memory",
            ),
        };
        let message = format!("{} {what}", self.who(&first));
        self.findings.add(kind, &self.kernel, (first, second), |finding| {
            finding.message = message;
            finding.missing = missing.to_owned();
        });
    }
}

/// The lanes of a warp in words: `lanes 0 to 7 and 16`, or as a mask if there are more than four runs.
fn lanes(all: u32) -> String {
    let mut runs = Vec::new();
    let mut mask = all;
    while mask != 0 {
        let first = mask.trailing_zeros();
        let count = (!(mask >> first)).trailing_zeros().max(1);
        let last = first + count.min(WARP - first) - 1;
        runs.push(if first == last { first.to_string() } else { format!("{first} to {last}") });
        mask &= u32::MAX.checked_shl(last + 1).unwrap_or(0);
    }
    if runs.len() > 4 {
        return format!("the {} lanes {all:#010x}", all.count_ones());
    }
    let word = if runs.len() == 1 && !runs[0].contains(' ') { "lane" } else { "lanes" };
    match runs.as_slice() {
        [all @ .., one, last] => {
            let all: String = all.iter().map(|run| format!("{run}, ")).collect();
            format!("{word} {all}{one} and {last}")
        }
        _ => format!("{word} {}", runs.concat()),
    }
}
