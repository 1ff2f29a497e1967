//! What the tools say about what they have found.

use std::collections::HashMap;

use diag::Span;
use isa::Space;

use crate::block::WARP;
use crate::checker::Checker;
use crate::clock::OBJECTS;
use crate::finding::{Finding, FindingKind, Findings, Site, Tool};
use crate::init::{Matter, Origin, Use};
use crate::place::Place;
use crate::race::Race;
use crate::release::Miss;
use crate::sync::Misuse;

impl Checker {
    /// Allocations of `malloc` that are still there, one finding for each place.
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

    /// Two threads, and what is wrong between them.
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

    /// Words the races that were found.
    pub(crate) fn take_races(&mut self) {
        for race in std::mem::take(&mut self.races.found) {
            self.add_race(&race);
        }
    }

    fn add_race(&mut self, race: &Race) {
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
            () if race.earlier.is_copy() && same_thread => FindingKind::CopyNotAwaited,
            () if is_strong(&before) && is_strong(&later) => FindingKind::RaceScope,
            () if is_strong(&before) || is_strong(&later) => FindingKind::RaceAtomic,
            () if both_write && race.same_value => FindingKind::RaceSameValue,
            () if both_write => FindingKind::RaceWriteWrite,
            () => FindingKind::RaceWriteRead,
        };
        if !self.tools.has(kind.tool()) {
            return;
        }
        let (missing, because) = self.explain(kind, race, &before, &later);
        let [one, other] = if second < earlier { [&second, &earlier] } else { [&earlier, &second] };
        let message = match kind {
            FindingKind::CopyNotAwaited => format!(
                "{} uses what its own asynchronous copy brings, and has not waited for it",
                self.who(&second)
            ),
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

    /// What would order two accesses.
    fn explain(
        &self,
        kind: FindingKind,
        race: &Race,
        before: &Place,
        later: &Place,
    ) -> (String, Vec<(Span, String)>) {
        let place = |number: u32| &self.races.places[number as usize];
        if kind == FindingKind::CopyNotAwaited {
            return (
                "`cp.async.wait_group` or `cp.async.wait_all` in this thread before it".to_owned(),
                vec![],
            );
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
            "`cp.async.wait_group` in the thread that copies, and then a barrier of the block"
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

    /// Words the uses of values that nobody wrote.
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
            Matter::Output => (FindingKind::UninitializedOutput, "stores it"),
        };
        let site = Site::new(found.span, found.block, found.thread, access);
        let (what, born, missing) = match &found.origin {
            Origin::Register { name, .. } => {
                let missing = format!("a value for `{name}` on every way that leads here");
                (format!("register `{name}`, which nobody wrote"), None, missing)
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
            Matter::Output => "stores to global memory what comes from",
        };
        let message = format!("{} {does} {what}", self.who(&site));
        self.findings.add(kind, &self.kernel, (site, born), |finding| {
            finding.message = message;
            finding.missing = missing;
            if let Some(address) = found.address {
                finding.address = Some(address);
                finding.space = match &found.origin {
                    Origin::Memory { space, .. } if found.matter == Matter::Atomic => Some(*space),
                    _ => Some(Space::Global).filter(|_| found.matter == Matter::Output),
                };
            }
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
        };
        let (first, second, what, missing) = match *misuse {
            Misuse::Divergent { here, elsewhere } => (
                site(here, "comes to the barrier"),
                elsewhere.map(|there| site(there, "comes to it by another instruction")),
                "comes to a barrier for whole warps without all lanes of its warp".to_owned(),
                "one barrier that all lanes of the warp come to, or `barrier.sync` without `.aligned`",
            ),
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
        };
        let message = format!("{} {what}", self.who(&first));
        self.findings.add(kind, &self.kernel, (first, second), |finding| {
            finding.message = message;
            finding.missing = missing.to_owned();
        });
    }
}
