//! Accesses of a block as a whole: to shared memory ([`Segment`](crate::segment::Segment)) and to rows of global memory, as long as it is
//! clear at once that they race with nothing and order nothing. Whatever else they may be is found out thread by thread.

use isa::Space;
use vm::{AccessKind, BlockAccess, BlockAddresses, LaneAccess, Order};

use crate::clock::Stamp;
use crate::place::Place;
use crate::race::{Now, Races};
use crate::segment::{How, even_address};
use crate::shadow::{ROW_BYTES, Record};

impl Races {
    /// Notes an access of a block as a whole. False if it has to be noted thread by thread ([`Races::access`]), all of it.
    pub fn block_access(&mut self, access: &BlockAccess) -> bool {
        let BlockAccess { span, kind, semantics, space, bytes, .. } = *access;
        if !matches!(space, Space::Shared | Space::Global) || bytes == 0 {
            return true;
        }
        let index = self.index(access.block);
        let place = self.place(Place { span, kind, semantics, space, bytes });
        if !self.blocks.contains_key(&index) {
            self.block(access.block);
        }
        let Some(block) = self.blocks.get_mut(&index) else { return false };
        if semantics.is_strong() {
            // Whoever has released or relaxed something may tell or learn something by it.
            let variables = if space == Space::Shared { &block.variables } else { &self.variables };
            let tells =
                semantics.order != Order::Relaxed || !block.patterns.is_empty() || !variables.is_empty();
            if tells || kind != AccessKind::Atomic {
                return false;
            }
        }
        if space == Space::Shared {
            let how = match kind {
                AccessKind::Load => How::Read,
                AccessKind::Store => How::Write,
                // Those of other sizes are not atomic to these.
                _ if semantics.is_strong() && bytes == 4 => How::Atomic,
                _ => return false,
            };
            return block.segment.note(access, place, how);
        }
        // Of an atomic operation without semantics nothing is known.
        if kind == AccessKind::Atomic && !semantics.is_strong() {
            return false;
        }
        self.access_rows(access, index, place)
    }

    /// Notes an access to global memory if it is to whole rows, each element by the next thread.
    fn access_rows(&mut self, access: &BlockAccess, index: u32, place: u32) -> bool {
        let bytes = access.bytes;
        let (Some(block), BlockAddresses::Even { start, width, step, pitch }) =
            (self.blocks.get(&index), access.addresses)
        else {
            return false;
        };
        if !block.order.is_even_alone() || step != bytes || !matches!(bytes, 1 | 2 | 4 | 8 | 16) {
            return false;
        }
        let count = access.threads.iter().map(|word| word.count_ones()).sum::<u32>();
        let last = access.threads.iter().rposition(|&word| word != 0);
        let end = last.map_or(0, |last| 64 * last as u32 + access.threads[last].ilog2() + 1);
        // Rows of threads that go on in each other are one.
        let is_linear = pitch == step.wrapping_mul(width.into()) || width >= end;
        let width = if is_linear { end } else { width };
        let in_row = (ROW_BYTES / bytes) as u32;
        let begins = start.is_multiple_of(ROW_BYTES) && (is_linear || pitch.is_multiple_of(ROW_BYTES));
        if count != end || end == 0 || !width.is_multiple_of(in_row) || !end.is_multiple_of(in_row) || !begins
        {
            return false;
        }
        let mut now = Now::new(&block.order, &self.places, self.extents, self.lock_step, place);
        (0..end).step_by(in_row as usize).all(|thread| {
            let stamp = Stamp { block: index, thread: thread as u16, epoch: block.order.floor() };
            let address = even_address(start, (width, step, pitch), thread);
            now.thread = thread;
            self.global.access_row(address, Record::new(stamp, place, false), bytes, &mut now)
        })
    }

    /// From now on accesses to the shared memory of a block are noted thread by thread, until its next barrier or for good.
    pub fn settle(&mut self, ctaid: [u32; 3], for_good: bool) {
        let index = self.index(ctaid);
        let Some(mut block) = self.blocks.remove(&index) else { return };
        for entry in block.segment.end(for_good) {
            for (thread, address) in entry.accesses() {
                let stamp = Stamp { block: index, thread: thread as u16, epoch: block.order.epoch(thread) };
                let (space, bytes) = (Space::Shared, entry.bytes);
                let lane = LaneAccess { block: ctaid, thread, space, address, owner: ctaid, bytes };
                self.note(&mut block, &lane, Record::new(stamp, entry.place, false), None);
            }
        }
        self.blocks.insert(index, block);
    }

    /// A barrier of a block is complete.
    pub fn complete_barrier(&mut self, ctaid: [u32; 3], barrier: u64) {
        if !self.block(ctaid).order.is_complete_for_all(barrier) {
            self.settle(ctaid, false);
            self.block(ctaid).order.complete(barrier);
            return;
        }
        let block = self.block(ctaid);
        block.order.complete(barrier);
        if block.segment.begin() {
            block.shared.clear();
        }
    }
}
