//! The cells of tensor memory that an instruction uses, for observers.

use machine::mask::{Mask, WARP_LANES};
use machine::memory::shared_rank;
use machine::{TensorCells, TensorMemoryAccess};
use sem::tensor_memory::{Cell, Multiplication, Shift};

use crate::code::{TensorFactor, TensorMemory, TensorMultiply};
use crate::exec::{Active, Gang};
use crate::registers::SlotRef;

/// The kind of access, its cells, and other cells that it reads.
pub(in crate::exec) type TensorAccess = (TensorMemoryAccess, Vec<TensorCells>, Vec<TensorCells>);

impl Gang<'_> {
    /// The access to tensor memory that an instruction of these lanes is about to make. Nothing is checked: for a
    /// misuse, the cells may be incomplete.
    pub(in crate::exec) fn tensor_access(
        &self,
        op: &TensorMemory,
        mask: Mask,
        active: &Active,
    ) -> Option<TensorAccess> {
        let number = |slot: SlotRef, lane| self.registers.get(active.window, slot, lane);
        let (mut cells, mut read) = (Vec::new(), Vec::new());
        let access = match op {
            TensorMemory::Allocate { .. } | TensorMemory::Release { .. } | TensorMemory::Relinquish => {
                return None;
            }
            TensorMemory::Load { at, fragment, .. } | TensorMemory::Store { at, fragment, .. } => {
                for (warp, lanes) in mask.warps() {
                    let first = warp * WARP_LANES;
                    let at = Cell::at(number(*at, first + lanes.trailing_zeros() as usize));
                    let count = if fragment.packed { 2 } else { 1 };
                    let all = (0..WARP_LANES).flat_map(|l| (0..fragment.registers()).map(move |r| (l, r)));
                    cells.extend(all.map(|(lane, register)| {
                        let cell = at.plus(fragment.cell(lane, register));
                        self.cells(first + lane, register, self.block_of(first + lane), cell, count)
                    }));
                }
                match op {
                    TensorMemory::Load { .. } => TensorMemoryAccess::Load,
                    _ => TensorMemoryAccess::Store,
                }
            }
            TensorMemory::Copy { at, descriptor, copy } => {
                for lane in mask {
                    let (at, units) = (Cell::at(number(*at, lane)), copy.units);
                    let count = copy.addresses(number(*descriptor, lane)).map_or(0, |all| all.len());
                    for owner in self.owners(copy.pair, lane) {
                        let to = (0..count).flat_map(|i| copy.cells(i / units, i % units));
                        cells.extend(to.map(|cell| self.cells(lane, 0, owner, at.plus(cell), 4)));
                    }
                }
                TensorMemoryAccess::Copy
            }
            TensorMemory::Shift { at, pair } => {
                for lane in mask {
                    let at = Cell::at(number(*at, lane));
                    for owner in self.owners(*pair, lane) {
                        for (from, to) in Shift::moves() {
                            cells.push(self.cells(lane, 0, owner, at.plus(to), 1));
                            read.push(self.cells(lane, 0, owner, at.plus(from), 1));
                        }
                    }
                }
                TensorMemoryAccess::Copy
            }
            TensorMemory::Multiply(op) => {
                let lane = mask.lowest()?;
                mask.for_each(|lane| self.product_cells(op, active, lane, &mut cells, &mut read));
                match number(op.accumulate, lane) {
                    0 => TensorMemoryAccess::Product,
                    _ => TensorMemoryAccess::Accumulate,
                }
            }
        };
        Some((access, cells, read))
    }

    fn product_cells(
        &self,
        op: &TensorMultiply,
        active: &Active,
        lane: usize,
        cells: &mut Vec<TensorCells>,
        read: &mut Vec<TensorCells>,
    ) {
        let number = |slot: SlotRef| self.registers.get(active.window, slot, lane);
        let Ok(m) = Multiplication::of(&op.picks, number(op.instruction)) else { return };
        let d = Cell::at(number(op.d));
        let disabled: Vec<u32> = op.disabled.iter().map(|&slot| number(slot) as u32).collect();
        for (block, owner) in self.owners(m.pair, lane).into_iter().enumerate() {
            for part in m.parts() {
                for &row in &part.lanes {
                    let place = d.lane + row;
                    let word = disabled.get(block * 4 + place / 32).copied().unwrap_or(0);
                    if word >> (place % 32) & 1 != 0 {
                        continue;
                    }
                    cells.push(self.cells(lane, 0, owner, Cell { lane: place, ..d }, part.columns.len()));
                    if let TensorFactor::Tensor(a) = op.a {
                        let a = Cell::at(number(a));
                        let at = Cell { lane: a.lane + m.lane_of_a(row), ..a };
                        read.push(self.cells(lane, 0, owner, at, m.a.columns(m.stored())));
                    }
                }
            }
        }
    }

    /// The CTA of a lane, or both CTAs of its pair.
    fn owners(&self, pair: bool, lane: usize) -> Vec<[u32; 3]> {
        let block = self.block_of(lane);
        let own = shared_rank(self.threads.shared_base).0;
        match pair && self.launch.cluster_blocks() > 1 {
            true => [own & !1, own | 1].map(|rank| self.launch.neighbour(block, rank)).into(),
            false => vec![block],
        }
    }

    fn cells(&self, lane: usize, register: usize, owner: [u32; 3], at: Cell, count: usize) -> TensorCells {
        let (thread, columns) = (self.thread_of(lane) as u32, at.column as u32..(at.column + count) as u32);
        TensorCells::new(thread, register as u32, owner, at.lane as u32, columns)
    }
}
