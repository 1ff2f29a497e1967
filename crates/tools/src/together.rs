//! Accesses of a whole block: to shared memory ([`Segment`](crate::segment::Segment)) and to rows of global memory, while they clearly
//! race with nothing and order nothing. All other accesses are checked thread by thread.
//!
//! An access of a block's threads arrives as one event ([`BlockAccess`]), with affine addresses or an array of addresses. Threads whose
//! access is not clear arrive again one by one (`AccessEvent`); both ways give the same findings. racecheck never asks for weak loads
//! of global memory again. It asks for weak stores only if they race or overlap within one instruction, because only then the stored
//! values matter.

use isa::Space;
use machine::{AccessKind, BlockAccess, BlockAddresses, LaneAccess, Order};

use crate::block::{BlockOrder, Threads, members};
use crate::clock::Stamp;
use crate::meeting::found;
use crate::now::Now;
use crate::place::Place;
use crate::race::{Races, RunningBlock};
use crate::segment::{How, even_address};
use crate::shadow::{ROW_BYTES, Record, Shadow};

impl Races {
    /// Records an access of a whole block. Returns the threads whose accesses must be recorded one by one ([`Races::access`]).
    pub fn block_access(&mut self, access: &BlockAccess) -> Threads {
        const NONE: Threads = [0; 16];
        let all = *access.threads;
        let BlockAccess { span, kind, semantics, space, bytes, .. } = *access;
        if !matches!(space, Space::Shared | Space::Global) || bytes == 0 {
            return NONE;
        }
        if self.only_copies && space == Space::Global {
            let is_untouched = |address, bytes| self.global.is_untouched(address, bytes);
            return if !kind.writes() || access.parts(is_untouched) { NONE } else { all };
        }
        let reduction = self.reductions.contains(&span.start);
        let place =
            self.place(Place { span, kind, semantics, space, bytes, work: None, signal: false, reduction });
        self.block(access.block);
        let index = self.index(access.block);
        let Some(block) = self.blocks.get_mut(&index) else { return all };
        // After a release or a relaxed write, a strong access may release or acquire something.
        let variables = if space == Space::Shared { &block.variables } else { &self.variables };
        let tells = semantics.order != Order::Relaxed || !block.patterns.is_empty() || !variables.is_empty();
        let how = match kind {
            AccessKind::Load if !semantics.is_strong() => How::Read,
            AccessKind::Store if !semantics.is_strong() => How::Write,
            AccessKind::Atomic if !tells => How::Atomic,
            // It orders nothing that pending copies depend on.
            _ if self.only_copies => How::Read,
            _ => return all,
        };
        match space {
            Space::Shared if self.has_async_reads => all,
            // Shared atomic operations are recorded together only in 4 bytes, where all of them are morally strong with each other.
            Space::Shared if how == How::Atomic && bytes != 4 && !self.only_copies => all,
            Space::Shared if block.segment.note(access, place, how) => NONE,
            Space::Shared => all,
            _ => {
                let mut now = Now::new(
                    &block.order,
                    &self.places,
                    self.extents,
                    self.lock_step,
                    place,
                    (&self.waits, &self.proxies),
                );
                let left = access_rows(&mut self.global, access, &block.order, &mut now);
                if left == NONE || how == How::Atomic {
                    return left;
                }
                if how == How::Write && !may_write(&self.global, access, &left, &mut now, &mut self.sorted) {
                    return left;
                }
                let address_of = addresses(access);
                for thread in members(&left) {
                    let (address, epoch) = (address_of(thread), block.order.epoch(thread));
                    let stamp = Stamp { block: index, thread: thread as u16, epoch };
                    now.thread = thread;
                    self.global.access(address, bytes, Record::new(stamp, place, false), &mut now);
                    // Only loads can race here: stores were checked before.
                    for race in now.races.drain(..) {
                        let (block_id, owner) = (access.block, access.block);
                        let lane = LaneAccess { block: block_id, thread, space, address, owner, bytes };
                        self.found.push(found(race, &lane, place, &block.misses, None, self.extents));
                    }
                }
                NONE
            }
        }
    }

    /// Records the accesses of a block to its shared memory thread by thread, until its next barrier or for good.
    pub fn settle(&mut self, ctaid: [u32; 3], for_good: bool) {
        let index = self.index(ctaid);
        if self.only_copies && !for_good {
            return;
        }
        let Some(mut block) = self.blocks.remove(&index) else { return };
        let mut log = block.segment.end(for_good);
        // The log is replayed with what the threads knew at its start.
        let after = log.before.take().map(|mut before| {
            before.swap_copies(&mut block.order);
            std::mem::replace(&mut block.order, *before)
        });
        let mut meetings = log.meetings.iter().peekable();
        let mut copies = log.copies.iter().peekable();
        for (number, entry) in log.entries.iter().map(Some).chain([None]).enumerate() {
            while let Some((_, piece)) = copies.next_if(|(before, _)| *before <= number || entry.is_none()) {
                let (thread, address, bytes) = (piece.thread, piece.address, piece.bytes);
                let stamp = Stamp { block: index, thread: thread as u16, epoch: piece.group };
                let lane =
                    LaneAccess { block: ctaid, thread, space: Space::Shared, address, owner: ctaid, bytes };
                self.note(&mut block, &lane, Record::new(stamp, piece.place, true), None);
            }
            let Some(entry) = entry else { break };
            while let Some(&(_, warp, lanes)) = meetings.next_if(|(before, ..)| *before <= number) {
                block.order.synchronize_warp(warp, lanes);
            }
            for (thread, address) in log.accesses(entry) {
                let stamp = Stamp { block: index, thread: thread as u16, epoch: block.order.epoch(thread) };
                let (space, bytes) = (Space::Shared, entry.bytes);
                let lane = LaneAccess { block: ctaid, thread, space, address, owner: ctaid, bytes };
                self.note(&mut block, &lane, Record::new(stamp, entry.place, false), None);
            }
        }
        if let Some(mut after) = after {
            after.swap_copies(&mut block.order);
            block.order = after;
        }
        self.blocks.insert(index, block);
    }

    /// Lanes meet: pairs of a warp and its meeting lanes, which the member masks determine.
    pub fn meet(&mut self, ctaid: [u32; 3], warps: &[(u32, u32)]) {
        let block = self.block(ctaid);
        let are_whole = warps.iter().all(|&(warp, lanes)| block.order.is_whole_warp(warp, lanes));
        if !(are_whole && block.segment.meet(&block.order, warps)) {
            self.settle(ctaid, false);
        }
        let order = &mut self.block(ctaid).order;
        warps.iter().for_each(|&(warp, lanes)| order.synchronize_lanes(warp, lanes));
    }

    /// Lanes meet in an operation that orders only their earlier uses of mbarrier objects. If accesses are not recorded one by one, there
    /// have been no such uses since the last barrier.
    pub fn meet_in_collective(&mut self, ctaid: [u32; 3], warps: &[(u32, u32)]) {
        let RunningBlock { order, segment, .. } = self.block(ctaid);
        if segment.is_apart() {
            warps.iter().for_each(|&(warp, lanes)| order.meet_in_collective(warp, lanes));
        }
    }

    /// A barrier of a block is complete.
    pub fn complete_barrier(&mut self, ctaid: [u32; 3], barrier: u64) {
        if !self.block(ctaid).order.is_complete_for_all(barrier) {
            self.settle(ctaid, false);
            self.block(ctaid).order.complete(barrier);
            return;
        }
        // The barrier orders everything before it, except for reads through the async proxy, which also need a proxy fence.
        let is_over = !self.has_async_reads;
        let block = self.block(ctaid);
        block.order.complete(barrier);
        if block.segment.begin() && is_over {
            block.shared.clear();
        }
    }
}

/// Records a global access by whole rows, each element by the next thread. Returns the threads that this does not cover.
fn access_rows(global: &mut Shadow, access: &BlockAccess, order: &BlockOrder, now: &mut Now) -> Threads {
    let (bytes, mut left) = (access.bytes, *access.threads);
    let BlockAddresses::Even { start, width, step, pitch } = access.addresses else { return left };
    if !order.is_alone() || step != bytes || !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
        return left;
    }
    let last = left.iter().rposition(|&word| word != 0);
    let end = last.map_or(0, |last| 64 * last as u32 + left[last].ilog2() + 1);
    // Contiguous rows of threads count as one row.
    let is_linear = pitch == step.wrapping_mul(width.into()) || width >= end;
    let in_row = (ROW_BYTES / bytes) as u32;
    let is_aligned = start.is_multiple_of(ROW_BYTES)
        && (is_linear || width.is_multiple_of(in_row) && pitch.is_multiple_of(ROW_BYTES));
    // If threads are missing, no two threads may share an address.
    let count = left.iter().map(|word| word.count_ones()).sum::<u32>();
    if !is_aligned || !is_linear && (count != end || !end.is_multiple_of(in_row)) {
        return left;
    }
    for first in (0..end).step_by(in_row as usize) {
        // All threads of a row are in the same 64-bit word.
        let (word, row) = (first as usize / 64, u64::MAX >> (64 - in_row) << (first % 64));
        if row & !left[word] != 0 {
            continue;
        }
        let Some(epoch) = order.epoch_of(first, in_row) else {
            if is_linear {
                continue;
            }
            return *access.threads;
        };
        let stamp = Stamp { block: order.index, thread: first as u16, epoch };
        let address = match is_linear {
            true => start.wrapping_add(step.wrapping_mul(first.into())),
            false => even_address(start, (width, step, pitch), first),
        };
        now.thread = first;
        if global.access_row(address, Record::new(stamp, now.number(), false), bytes, now) {
            left[word] &= !row;
        } else if !is_linear {
            return *access.threads;
        }
    }
    left
}

/// The address of each thread. If the rows are contiguous, it needs no division.
fn addresses<'a>(access: &BlockAccess<'a>) -> impl Fn(u32) -> u64 + use<'a> {
    let addresses = access.addresses;
    let linear = match addresses {
        BlockAddresses::Even { start, width, step, pitch }
            if pitch == step.wrapping_mul(width.into()) || width >= 1024 =>
        {
            Some((start, step))
        }
        _ => None,
    };
    move |thread| match linear {
        Some((start, step)) => start.wrapping_add(step.wrapping_mul(thread.into())),
        None => addresses.of(thread),
    }
}

/// Whether stores of threads to global memory race neither with earlier accesses nor with each other.
fn may_write(
    global: &Shadow,
    access: &BlockAccess,
    threads: &Threads,
    now: &mut Now,
    sorted: &mut Vec<u64>,
) -> bool {
    let bytes = access.bytes;
    let apart = |before: u64, next: u64| next.checked_sub(before).is_some_and(|distance| distance >= bytes);
    let address_of = addresses(access);
    sorted.clear();
    sorted.extend(members(threads).map(&address_of));
    let are_apart = sorted.is_sorted_by(|&before, &next| apart(before, next)) || {
        sorted.sort_unstable();
        sorted.is_sorted_by(|&before, &next| apart(before, next))
    };
    are_apart
        && members(threads).all(|thread| {
            now.thread = thread;
            global.is_free(address_of(thread), bytes, now)
        })
}
