//! The values of accesses, which an observer may ask for while an operation stands before it.

use isa::Space;
use machine::mask::WARP_LANES;
use machine::memory::shared_base;
use machine::{LaneAccess, ReadValues};
use smallvec::SmallVec;

use super::request::{Request, Resolved};
use super::{Active, Gang};
use crate::code::{Kind, MatrixOp, Op, Store, WarpOp};
use crate::registers::SlotRef;
use crate::shared::Shared;

/// Reads the values of an access, for the observer.
pub(super) struct Operands<'a, 'l> {
    pub(super) gang: &'a Gang<'l>,
    pub(super) shared: &'a Shared,
    pub(super) op: &'a Op,
    pub(super) active: &'a Active,
}

impl Operands<'_, '_> {
    /// The lane of the gang that made a part of an access, and its CTA's number in the gang. `None` for an access
    /// that the gang did not make, since the observer can pass any.
    fn lane(&self, access: &LaneAccess) -> Option<(usize, usize)> {
        let mut blocks = 0..self.gang.threads.block_masks.len();
        let block = blocks.find(|&block| self.gang.ctaid_of(block) == access.block)?;
        let first = self.gang.threads.block_masks[block].lowest().unwrap_or(0);
        let lane = first + (access.thread as usize).checked_sub(self.gang.threads.first_thread as usize)?;
        (lane < self.gang.threads.lanes).then_some((lane, block))
    }

    /// The elements of a store, contiguous, the first one in the lowest bits.
    fn elements(store: &Store, value: impl Fn(usize) -> u64) -> Option<u128> {
        let bits = 8 * store.bytes as usize;
        (bits * store.src.len() <= 128).then(|| {
            let element = |i: usize| u128::from(value(i)) & (u128::MAX >> (128 - bits));
            (0..store.src.len()).fold(0, |all, i| all | element(i) << (i * bits))
        })
    }
}

impl ReadValues for Operands<'_, '_> {
    fn stored(&self, access: &LaneAccess) -> Option<u128> {
        let (lane, _) = self.lane(access)?;
        let read_in = |slot, lane| self.gang.registers.get(self.active.window, slot, lane);
        let read = |slot| read_in(slot, lane);
        match &self.op.kind {
            Kind::Store(store) | Kind::StoreStrong(store) => Self::elements(store, |i| read(store.src[i])),
            Kind::PureStore(both) => {
                let values: SmallVec<[u64; 5]> = both.pure.src().iter().map(|&slot| read(slot)).collect();
                Self::elements(&both.store, |_| (both.pure.sem)(&both.pure.picks, &values)[0])
            }
            Kind::Warp { op, .. } => match &**op {
                WarpOp::Matrix(Ok(MatrixOp::StoreRows(rows))) => {
                    // The thread that gives the address of a row has the row's number in its warp.
                    let (warp, row) = (lane / WARP_LANES * WARP_LANES, lane % WARP_LANES);
                    let slots: SmallVec<[SlotRef; 4]> = rows.registers.iter().flatten().copied().collect();
                    let word = |register: usize, lane| read_in(slots[register], warp + lane);
                    (row / 8 < slots.len()).then(|| u128::from_le_bytes(rows.row(row, word)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn memory(&self, access: &LaneAccess) -> Option<u128> {
        let space = access.space;
        if !matches!(space, Space::Shared | Space::Global) || access.bytes > 16 {
            return None;
        }
        let (_, block) = self.lane(access)?;
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate().take(access.bytes as usize) {
            let request = Request { space, bytes: 1, write: false, span: self.op.span };
            let start = match space {
                Space::Shared => shared_base(self.gang.launch.cluster_rank(access.owner)) + access.address,
                _ => access.address,
            };
            let at = match self.gang.place(self.shared, &request, start.wrapping_add(i as u64)) {
                Ok(Resolved::Host(at)) if space == Space::Shared => {
                    at.wrapping_add(block * self.shared.stride)
                }
                Ok(Resolved::Host(at)) => at,
                _ => return None,
            };
            // SAFETY: the place holds a byte of a CTA's memory or of a live allocation; no reference points there.
            *byte = unsafe { at.read() };
        }
        Some(u128::from_le_bytes(bytes))
    }
}
