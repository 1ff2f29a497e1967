//! Footprints: they let several host threads run checked blocks, each thread with its own observer, as long as no block
//! depends on another.
//!
//! A footprint records, word by word, what each CTA batch reads and writes in global memory. If two CTA batches access
//! the same word and one of them writes it, all writes are undone. The blocks of one CTA batch run side by side on one
//! host thread, as they would in a sequential run.
//!
//! Atomic operations without results on the same word do not conflict. If CTA batches depend on each other, or an observer has a
//! finding, the launch runs again from the start on one host thread with one observer. The CTA batches are the same for every
//! number of host threads, so findings do not depend on that number. Narrowest test: `ptxvm`: `checked`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::{AccessKind, Atomic, Extent, MemoryOp, OpKind, Order, Scope, Semantics, Start};
use isa::Space;
use machine::builtin::Builtin;

use crate::run::Run;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Words of the bitmap of a page: one bit for each 4 bytes.
const BITS: usize = PAGE as usize / 4 / 64;

/// How an access touches a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    /// An atomic operation on the whole word whose old value is not used. The order of such operations is not visible.
    Combine,
}

impl Touch {
    /// The kind of an access to global memory.
    pub fn of(kind: AccessKind, semantics: Semantics, bytes: u64) -> Touch {
        match kind {
            AccessKind::Atomic if bytes == 4 && semantics.scope >= Some(Scope::Gpu) => Touch::Combine,
            _ if kind.writes() => Touch::Write,
            _ => Touch::Read,
        }
    }
}

/// The words of a page, by kind of access.
#[derive(Clone, Default)]
struct Words {
    read: [u64; BITS],
    written: [u64; BITS],
    combined: [u64; BITS],
}

impl Words {
    fn add(&mut self, index: usize, words: u64, touch: Touch) {
        match touch {
            Touch::Read => self.read[index] |= words,
            Touch::Write => self.written[index] |= words,
            Touch::Combine => self.combined[index] |= words,
        }
    }

    /// Whether the order matters between this access of one CTA batch and the recorded accesses of another one.
    fn excludes(&self, index: usize, words: u64, touch: Touch) -> bool {
        let (read, written, combined) = (self.read[index], self.written[index], self.combined[index]);
        let excluded = match touch {
            Touch::Read => written | combined,
            Touch::Write => read | written | combined,
            Touch::Combine => read | written,
        };
        excluded & words != 0
    }

    fn join(&mut self, other: &Words) {
        for index in 0..BITS {
            self.read[index] |= other.read[index];
            self.written[index] |= other.written[index];
            self.combined[index] |= other.combined[index];
        }
    }

    /// The same for all words of a page.
    fn excludes_any(&self, other: &Words) -> bool {
        (0..BITS).any(|index| {
            self.excludes(index, other.read[index], Touch::Read)
                || self.excludes(index, other.written[index], Touch::Write)
                || self.excludes(index, other.combined[index], Touch::Combine)
        })
    }
}

/// The contents of a part of a page before a host thread wrote there.
struct Saved {
    /// Orders the copies of the same bytes. The copy with the lowest number is older than all writes.
    order: u64,
    start: u64,
    bytes: Vec<u8>,
}

/// Numbers the copies.
static COPIES: AtomicU64 = AtomicU64::new(0);

impl Saved {
    /// Copies the part of the page that belongs to the allocation at this address.
    fn new(launch: &Run, address: u64) -> Option<Saved> {
        let extent = launch.allocation(address)?;
        let start = (address / PAGE * PAGE).max(extent.base);
        let end = (address | (PAGE - 1)).saturating_add(1).min(extent.base.saturating_add(extent.bytes));
        let mut bytes = vec![0; end.checked_sub(start)? as usize];
        launch.read_global(start, &mut bytes).ok()?;
        // A host thread with a higher number writes after this copy was made.
        Some(Saved { order: COPIES.fetch_add(1, Ordering::AcqRel), start, bytes })
    }

    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.bytes.len() as u64
    }
}

struct Page {
    number: u64,
    /// The first block of the CTA batch that accessed the page last; its accesses; the accesses of other CTA batches.
    batch: [u32; 3],
    own: Words,
    others: Words,
    saved: Vec<Saved>,
}

/// The accesses of the blocks of one host thread to global memory.
#[derive(Default)]
pub(crate) struct Footprint {
    indices: HashMap<u64, usize>,
    pages: Vec<Page>,
    /// Index of the page that was accessed last.
    latest: usize,
    /// Whether one CTA batch depends on another.
    depends: bool,
}

impl Footprint {
    fn page(&mut self, number: u64, batch: [u32; 3]) -> &mut Page {
        if self.pages.get(self.latest).is_none_or(|page| page.number != number) {
            let next = self.pages.len();
            self.latest = *self.indices.entry(number).or_insert(next);
            if self.latest == next {
                let (own, others) = (Words::default(), Words::default());
                self.pages.push(Page { number, batch, own, others, saved: Vec::new() });
            }
        }
        &mut self.pages[self.latest]
    }

    /// A CTA batch, given by its first block, is about to access global memory.
    pub fn note(&mut self, launch: &Run, batch: [u32; 3], touch: Touch, address: u64, bytes: u64) {
        let (mut at, end) = (address, address.saturating_add(bytes));
        let mut depends = false;
        while at < end {
            let next = (at | (PAGE - 1)).saturating_add(1).min(end);
            let page = self.page(at / PAGE, batch);
            if page.batch != batch {
                let own = std::mem::take(&mut page.own);
                page.others.join(&own);
                page.batch = batch;
            }
            if touch != Touch::Read && !page.saved.iter().any(|saved| saved.has(at)) {
                page.saved.extend(Saved::new(launch, at));
            }
            let (first, last) = (at % PAGE / 4, (next - 1) % PAGE / 4);
            for index in first / 64..=last / 64 {
                let low = first.saturating_sub(64 * index);
                let high = (last - 64 * index).min(63);
                let words = u64::MAX << low & u64::MAX >> (63 - high);
                depends |= page.others.excludes(index as usize, words, touch);
                page.own.add(index as usize, words, touch);
            }
            at = next;
        }
        self.depends |= depends;
    }

    /// Whether a CTA batch depends on another one of any host thread.
    pub fn any_depends(all: &[Footprint]) -> bool {
        let mut sums: HashMap<u64, Words> = HashMap::new();
        all.iter().any(|footprint| footprint.depends)
            || all.iter().flat_map(|footprint| &footprint.pages).any(|page| {
                let sum = sums.entry(page.number).or_default();
                let excludes = sum.excludes_any(&page.own) || sum.excludes_any(&page.others);
                sum.join(&page.own);
                sum.join(&page.others);
                excludes
            })
    }

    /// Undoes all writes.
    pub fn undo(all: Vec<Footprint>, launch: &Run) {
        let pages = all.into_iter().flat_map(|footprint| footprint.pages);
        let mut saved: Vec<(Saved, [u64; BITS])> = Vec::new();
        for page in pages {
            let of = |words: &Words, index: usize| words.written[index] | words.combined[index];
            let written = std::array::from_fn(|index| of(&page.own, index) | of(&page.others, index));
            saved.extend(page.saved.into_iter().map(|saved| (saved, written)));
        }
        // The oldest copy is written back last.
        saved.sort_by_key(|(saved, _)| std::cmp::Reverse(saved.order));
        for (saved, written) in saved {
            let page = saved.start / PAGE * PAGE;
            for word in (0..PAGE / 4).filter(|word| written[*word as usize / 64] >> (word % 64) & 1 != 0) {
                let start = (page + 4 * word).max(saved.start);
                let end = (page + 4 * word + 4).min(saved.start + saved.bytes.len() as u64);
                if start < end {
                    let bytes = &saved.bytes[(start - saved.start) as usize..(end - saved.start) as usize];
                    // The copy was read from here, so it can be written.
                    let _ = launch.write_global(start, bytes);
                }
            }
        }
    }
}

impl Run<'_> {
    /// Whether the blocks may run on separate host threads and be undone: a [`Footprint`] records every way in which
    /// they can depend on each other.
    pub(crate) fn may_be_undone(&self) -> bool {
        let config = self.config();
        let is_simple = self.cluster_blocks() == 1 && !config.cooperative && config.progress.is_none();
        is_simple
            && self.arena().is_memory_once()
            && *self.info.undoable.get_or_init(|| self.has_own_memory())
    }

    /// Whether the kernel's only effects outside of a block are loads, stores and atomic operations without results.
    fn has_own_memory(&self) -> bool {
        let program = self.program();
        let reached = self.kernel().reached.iter().zip(&program.functions).zip(&program.module.functions);
        reached.filter(|((reached, _), _)| **reached).all(|((_, function), checked)| {
            Builtin::of(&checked.name).is_none_or(|builtin| builtin == Builtin::AssertFail)
                && function.iter().flat_map(|function| function.prologue.iter().chain(&function.ops)).all(
                    |op| {
                        !matches!(op.kind.memory(), Some(MemoryOp::TryCancel(_)))
                            && ir::accesses(&op.kind).iter().all(|access| is_noted(&op.kind, access))
                    },
                )
        })
    }
}

/// Whether a footprint records the whole access.
fn is_noted(op: &OpKind, access: &ir::Access) -> bool {
    let address = match access.start {
        Start::Address(address) => address,
        Start::Descriptor(_) => return true,
        Start::Texels | Start::Tensor | Start::Box(_) => return false,
    };
    if !matches!(address.space, Space::Global | Space::Generic) {
        return true;
    }
    let order = access.semantics.order;
    match access.kind {
        AccessKind::Load | AccessKind::Store | AccessKind::MatrixLoad | AccessKind::MatrixStore => {
            order == Order::Weak
        }
        AccessKind::CopyRead => {
            order == Order::Weak && matches!(access.extent, Extent::Bytes(_) | Extent::AtMost { .. })
        }
        AccessKind::Atomic => {
            order == Order::Relaxed && matches!(op.memory(), Some(MemoryOp::Atomic(Atomic { dst: None, .. })))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_touches_of_two_batches_exclude_each_other() {
        let all = [Touch::Read, Touch::Write, Touch::Combine];
        for (before, after) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
            let mut words = Words::default();
            words.add(3, 0b100, before);
            assert_eq!(words.excludes(3, 0b110, after), before != after || after == Touch::Write);
            assert!(!words.excludes(3, 0b011, after) && !words.excludes(2, 0b100, after));
        }
    }
}
