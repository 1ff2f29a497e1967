//! synccheck: barriers and warp-level operations that break the rules of the manual.

use std::collections::{BTreeMap, HashMap};

use diag::Span;
use machine::{BarrierArrival, WarpEvent, WarpKind};

use crate::block::{Threads, WARP, contains, insert, join, members, range, set_of};

/// A misuse, with its places and threads.
pub(crate) enum Misuse {
    /// Threads of a warp arrive at a whole-warp barrier by different instances of the instruction, or not all of them arrive.
    Divergent {
        here: (Span, u32),
        /// The lanes of the warp that are `elsewhere`.
        absent: u32,
        elsewhere: Elsewhere,
    },
    Counts {
        first: (Span, u32, Option<u64>),
        second: (Span, u32, Option<u64>),
    },
    CountNotWarps {
        here: (Span, u32),
        count: u64,
    },
    ExitBefore {
        barrier: (Span, u32),
        exit: (Span, u32),
        exited: u32,
    },
    Inactive {
        here: (Span, u32),
        source: u32,
    },
    Aligned {
        here: (Span, u32),
        present: u32,
    },
    ObjectAgain {
        here: (Span, u32),
        before: (Span, u32),
    },
    Overwritten {
        here: (Span, u32),
        made: (Span, u32),
    },
}

/// Where lanes are that do not arrive at a barrier with the others of their warp, with one of their threads.
#[derive(Clone, Copy)]
pub(crate) enum Elsewhere {
    /// They arrive by another instruction.
    Comes((Span, u32)),
    /// They have ended.
    Ended((Span, u32)),
    Unknown,
}

/// Who has arrived at a barrier in its current phase, and how.
#[derive(Default)]
struct Use {
    arrivals: Vec<(Span, Threads)>,
    count: Option<(Span, u32, Option<u64>)>,
    whole_block: bool,
}

/// The barriers and mbarrier objects of a block.
#[derive(Default)]
pub(crate) struct BlockUse {
    barriers: HashMap<u64, Use>,
    /// By barrier: the thread count of its previous phase.
    counts: HashMap<u64, (Span, u32, Option<u64>)>,
    /// Where threads have ended, and which threads.
    exits: Vec<(Span, Threads)>,
    /// The mbarrier objects, and who initialized them.
    objects: BTreeMap<u64, (Span, u32)>,
}

/// The size of an mbarrier object.
const OBJECT_BYTES: u64 = 8;

/// The lanes of a warp in a set.
fn warp(set: &Threads, warp: u32) -> u32 {
    (set[warp as usize / 2 % 16] >> (warp % 2 * WARP)) as u32
}

impl BlockUse {
    pub fn arrive(&mut self, arrival: &BarrierArrival, found: &mut Vec<Misuse>) {
        let Some(&thread) = arrival.threads.first() else { return };
        let (span, count) = (arrival.span, arrival.count);
        let barrier = self.barriers.entry(arrival.barrier).or_default();
        match barrier.count {
            Some(first) if first.2 != count => {
                found.push(Misuse::Counts { first, second: (span, thread, count) });
            }
            Some(_) => {}
            None => barrier.count = Some((span, thread, count)),
        }
        if let Some(count) = count.filter(|count| count % u64::from(WARP) != 0) {
            found.push(Misuse::CountNotWarps { here: (span, thread), count });
        }
        barrier.whole_block |= count.is_none();
        let place = barrier.arrivals.iter().position(|(known, _)| *known == span);
        let place = place.unwrap_or_else(|| {
            barrier.arrivals.push((span, [0; 16]));
            barrier.arrivals.len() - 1
        });
        join(&mut barrier.arrivals[place].1, &set_of(arrival.threads));
    }

    /// A barrier of a block of `threads` threads is complete. `aligned`: whether all lanes of a warp must execute the same instance of an
    /// instruction.
    pub fn complete(
        &mut self,
        number: u64,
        threads: u32,
        aligned: impl Fn(Span) -> bool,
        found: &mut Vec<Misuse>,
    ) {
        let Some(barrier) = self.barriers.remove(&number) else { return };
        if let Some(count) = barrier.count {
            self.counts.insert(number, count);
        }
        let all = range(0, threads);
        let mut are_whole = true;
        for (span, set) in barrier.arrivals.iter().filter(|(span, _)| aligned(*span)) {
            let absent = |number: u32| warp(&all, number) & !warp(set, number);
            let divergent = |number: &u32| warp(set, *number) != 0 && absent(*number) != 0;
            if let Some(number) = (0..WARP).find(divergent) {
                are_whole = false;
                let here = (*span, number * WARP + warp(set, number).trailing_zeros());
                let other = number * WARP + absent(number).trailing_zeros();
                let with = |places: &[(Span, Threads)]| {
                    places
                        .iter()
                        .find(|(_, set)| contains(set, other))
                        .map(|&(span, set)| (span, warp(&set, number)))
                };
                let (elsewhere, there) = match (with(&barrier.arrivals), with(&self.exits)) {
                    (Some((span, there)), _) => (Elsewhere::Comes((span, other)), there),
                    (None, Some((span, there))) => (Elsewhere::Ended((span, other)), there),
                    (None, None) => (Elsewhere::Unknown, u32::MAX),
                };
                found.push(Misuse::Divergent { here, absent: absent(number) & there, elsewhere });
            }
        }
        let exit = self.exits.first().map(|(span, set)| (*span, members(set).next().unwrap_or(0)));
        // Either whole warps have ended, or parts of warps where this is allowed.
        if let (true, true, Some(exit), Some((span, set))) =
            (are_whole, barrier.whole_block, exit, barrier.arrivals.first())
        {
            let count = |set: &Threads| set.iter().map(|word| word.count_ones()).sum::<u32>();
            let exited = self.exits.iter().map(|(_, set)| count(set)).sum();
            let thread = members(set).next().unwrap_or(0);
            found.push(Misuse::ExitBefore { barrier: (*span, thread), exit, exited });
        }
    }

    /// The launch has ended with threads at barriers. Reports barriers whose previous phase had another thread count.
    pub fn abandon(&self, found: &mut Vec<Misuse>) {
        for (number, barrier) in &self.barriers {
            if let (Some(&first), Some(second)) = (self.counts.get(number), barrier.count)
                && first.2 != second.2
            {
                found.push(Misuse::Counts { first, second });
            }
        }
    }

    pub fn exit(&mut self, span: Span, threads: &[u32]) {
        match self.exits.iter_mut().find(|(place, _)| *place == span) {
            Some((_, set)) => join(set, &set_of(threads)),
            None => self.exits.push((span, set_of(threads))),
        }
    }

    /// Lanes execute a warp-level operation in a block of `threads` threads.
    pub fn warp(&self, event: &WarpEvent, threads: u32, found: &mut Vec<Misuse>) {
        let mut active = [0; 16];
        event.lanes.iter().for_each(|lane| insert(&mut active, lane.thread));
        match event.kind {
            WarpKind::Shuffle => {
                for lane in event.lanes {
                    let Some(source) = lane.source else { continue };
                    let named = lane.members.is_none_or(|members| members >> (source % WARP) & 1 != 0);
                    if source >= threads || !contains(&active, source) || !named {
                        found.push(Misuse::Inactive { here: (event.span, lane.thread), source });
                    }
                }
            }
            WarpKind::Matrix => {
                for number in 0..threads.div_ceil(WARP) {
                    let here = warp(&active, number);
                    if here != 0 && here != u32::MAX {
                        let first = number * WARP + here.trailing_zeros();
                        let present = here.count_ones();
                        found.push(Misuse::Aligned { here: (event.span, first), present });
                    }
                }
            }
            WarpKind::Sync | WarpKind::Collective => {}
        }
    }

    pub fn make_object(&mut self, address: u64, here: (Span, u32), found: &mut Vec<Misuse>) {
        if let Some(before) = self.objects.insert(address, here) {
            found.push(Misuse::ObjectAgain { here, before });
        }
    }

    /// Who initialized the mbarrier object that overlaps these bytes.
    pub fn object_in(&self, address: u64, bytes: u64) -> Option<(Span, u32)> {
        let first = address.saturating_sub(OBJECT_BYTES - 1);
        self.objects.range(first..address.saturating_add(bytes)).next().map(|(_, &made)| made)
    }

    pub fn end_object(&mut self, address: u64) {
        self.objects.remove(&address);
    }
}
