//! Accesses of a block as a whole: to shared memory ([`Segment`](crate::segment::Segment)) and to rows of global memory, as long as it is
//! clear at once that they race with nothing and order nothing. Whatever else they may be is found out thread by thread.
//!
//! An access of a block's threads comes as one event ([`BlockAccess`]) of evenly stepping addresses or an array of them. What is not clear
//! comes again thread by thread (`AccessEvent`), and both ways find the same. racecheck never asks for weak loads of global memory again,
//! and for weak stores only if they race or meet in one instruction, since only then does it matter what they write.

use isa::Space;
use vm::{AccessKind, BlockAccess, BlockAddresses, LaneAccess, Order};

use crate::block::{BlockOrder, Threads, members};
use crate::clock::Stamp;
use crate::meeting::found;
use crate::now::Now;
use crate::place::Place;
use crate::race::{Races, RunningBlock};
use crate::segment::{How, even_address};
use crate::shadow::{ROW_BYTES, Record, Shadow};

impl Races {
    /// Notes an access of a block as a whole. Returns the threads of which it has to be noted one by one ([`Races::access`]).
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
        // Whoever has released or relaxed something may tell or learn something by a strong access.
        let variables = if space == Space::Shared { &block.variables } else { &self.variables };
        let tells = semantics.order != Order::Relaxed || !block.patterns.is_empty() || !variables.is_empty();
        let how = match kind {
            AccessKind::Load if !semantics.is_strong() => How::Read,
            AccessKind::Store if !semantics.is_strong() => How::Write,
            AccessKind::Atomic if !tells => How::Atomic,
            // Orders nothing that copies are asked for.
            _ if self.only_copies => How::Read,
            _ => return all,
        };
        match space {
            Space::Shared if self.has_async_reads => all,
            // Atomic operations of other sizes are not atomic to each other.
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
                    // Only of loads: stores have been looked at before.
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

    /// From now on accesses to the shared memory of a block are noted thread by thread, until its next barrier or for good.
    pub fn settle(&mut self, ctaid: [u32; 3], for_good: bool) {
        let index = self.index(ctaid);
        if self.only_copies && !for_good {
            return;
        }
        let Some(mut block) = self.blocks.remove(&index) else { return };
        let mut log = block.segment.end(for_good);
        // They are noted with what the threads knew then.
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

    /// Lanes meet: of which warps which, as their member masks say.
    pub fn meet(&mut self, ctaid: [u32; 3], warps: &[(u32, u32)]) {
        let block = self.block(ctaid);
        let are_whole = warps.iter().all(|&(warp, lanes)| block.order.is_whole_warp(warp, lanes));
        if !(are_whole && block.segment.meet(&block.order, warps)) {
            self.settle(ctaid, false);
        }
        let order = &mut self.block(ctaid).order;
        warps.iter().for_each(|&(warp, lanes)| order.synchronize_lanes(warp, lanes));
    }

    /// Lanes met in an operation that orders nothing but what they did to mbarrier objects: there is something of that since the last barrier
    /// where accesses are noted one by one.
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
        // A barrier orders what was before it, but for reads through the async proxy, which a fence must precede, too.
        let is_over = !self.has_async_reads;
        let block = self.block(ctaid);
        block.order.complete(barrier);
        if block.segment.begin() && is_over {
            block.shared.clear();
        }
    }
}

/// Notes an access to global memory where it is to whole rows, each element by the next thread. Returns the threads of all others.
fn access_rows(global: &mut Shadow, access: &BlockAccess, order: &BlockOrder, now: &mut Now) -> Threads {
    let (bytes, mut left) = (access.bytes, *access.threads);
    let BlockAddresses::Even { start, width, step, pitch } = access.addresses else { return left };
    if !order.is_alone() || step != bytes || !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
        return left;
    }
    let last = left.iter().rposition(|&word| word != 0);
    let end = last.map_or(0, |last| 64 * last as u32 + left[last].ilog2() + 1);
    // Rows of threads that go on in each other are one.
    let is_linear = pitch == step.wrapping_mul(width.into()) || width >= end;
    let in_row = (ROW_BYTES / bytes) as u32;
    let is_aligned = start.is_multiple_of(ROW_BYTES)
        && (is_linear || width.is_multiple_of(in_row) && pitch.is_multiple_of(ROW_BYTES));
    // Where threads are missing the others' addresses must be theirs alone.
    let count = left.iter().map(|word| word.count_ones()).sum::<u32>();
    if !is_aligned || !is_linear && (count != end || !end.is_multiple_of(in_row)) {
        return left;
    }
    for first in (0..end).step_by(in_row as usize) {
        // Threads of a row are in one word.
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

/// The address of each thread. Of rows that go on in each other it is found without a division.
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

/// Stores of threads to global memory race with nothing, neither before nor among each other.
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
