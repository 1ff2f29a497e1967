//! The mapping from cells to threads' registers (`tcgen05.ld`, `tcgen05.st`).
//!
//! PTX ISA 9.7.16.2.3 "Data Movement Shape": [`Fragment::cell`] implements its figures. CUTLASS has the same as
//! `Copy_Traits<SM100_TMEM_LOAD_*>`.

use isa::{Mod, Picks};

use super::{Cell, LANES_OF_WARP, Misuse};

/// The shape of the cells that a warp moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `.32x32b`
    Rows32,
    /// `.16x64b`
    Bits64,
    /// `.16x128b`
    Bits128,
    /// `.16x256b`
    Bits256,
    /// `.16x32bx2`; the field is the column offset of the second half from the first.
    Halves(usize),
}

/// The cells that a warp moves, and the registers that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    shape: Shape,
    /// Registers of a thread.
    registers: usize,
    /// `.pack::16b`, `.unpack::16b`: a register holds the low halves of two adjacent cells.
    pub packed: bool,
}

impl Fragment {
    /// The fragment that the picks of `tcgen05.ld` and `.st` describe; `split` is the operand of `.16x32bx2`.
    pub fn of(picks: &Picks, registers: usize, split: u64) -> Fragment {
        let has = |m| picks.has(m);
        let shape = match () {
            () if has(Mod::N16x64b) => Shape::Bits64,
            () if has(Mod::N16x128b) => Shape::Bits128,
            () if has(Mod::N16x256b) => Shape::Bits256,
            () if has(Mod::N16x32bx2) => Shape::Halves(split.min(0xffff) as usize),
            () => Shape::Rows32,
        };
        Fragment { shape, registers, packed: has(Mod::Pack16b) || has(Mod::Unpack16b) }
    }

    /// Registers of a thread.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// The cell that a register of a lane of the warp holds, relative to the address. If [`Fragment::packed`], it is
    /// the first of two; the second is in the next column.
    pub fn cell(&self, lane: usize, register: usize) -> Cell {
        let pair = if self.packed { 2 } else { 1 };
        let cell = |lane, column: usize| Cell { lane, column: column * pair };
        match self.shape {
            Shape::Rows32 => cell(lane, register),
            Shape::Bits64 => cell(lane / 4 + lane % 2 * 8, register * 2 + lane / 2 % 2),
            Shape::Bits128 => cell(lane / 4 + register % 2 * 8, register / 2 * 4 + lane % 4),
            Shape::Bits256 => {
                let (part, next) = (register % 2, register / 2);
                cell(lane / 4 + next % 2 * 8, next / 2 * 8 + lane % 4 * 2 + part)
            }
            Shape::Halves(split) => {
                let first = cell(lane % 16, register);
                Cell { column: first.column + lane / 16 * split, ..first }
            }
        }
    }

    /// The column ranges that the warp accesses, relative to the address: the start and length of each.
    pub fn columns(&self) -> impl Iterator<Item = (usize, usize)> {
        let pair = if self.packed { 2 } else { 1 };
        let (count, second) = match self.shape {
            Shape::Rows32 => (self.registers, None),
            Shape::Bits64 | Shape::Bits128 | Shape::Bits256 => (self.registers * 2, None),
            Shape::Halves(split) => (self.registers, Some(split)),
        };
        [Some(0), second].into_iter().flatten().map(move |start| (start, count * pair))
    }

    /// Checks that the warp with this index in its CTA may access the lanes.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self, at: Cell, warp: usize) -> Result<(), Misuse> {
        let step = if self.shape == Shape::Rows32 { 32 } else { 16 };
        if at.lane >= super::LANES {
            return Err(Misuse::Outside);
        }
        if at.lane / LANES_OF_WARP != warp % 4 {
            return Err(Misuse::WarpLanes);
        }
        if !at.lane.is_multiple_of(step) { Err(Misuse::LaneAlignment) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cell of a shape is in exactly one register of one lane, and no register holds anything else.
    #[test]
    fn fragments_cover_their_cells() {
        let shapes =
            [(Mod::N32x32b, 32, 1), (Mod::N16x64b, 16, 1), (Mod::N16x128b, 16, 2), (Mod::N16x256b, 16, 4)];
        for (shape, lanes, registers) in shapes {
            for (times, packed) in [(1, false), (2, false), (4, true), (8, false)] {
                let mods: &[Mod] = if packed { &[shape, Mod::Pack16b] } else { &[shape] };
                let fragment = Fragment::of(&Picks::new(&[], mods), registers * times, 0);
                let step = if packed { 2 } else { 1 };
                let columns = registers * times * 32 / lanes * step;
                assert_eq!(fragment.columns().collect::<Vec<_>>(), [(0, columns)]);
                let mut seen = vec![0; lanes * columns];
                for (lane, register) in
                    (0..32).flat_map(|lane| (0..registers * times).map(move |r| (lane, r)))
                {
                    let cell = fragment.cell(lane, register);
                    seen[cell.lane * columns + cell.column] += 1;
                }
                assert!(seen.iter().enumerate().all(|(at, &count)| count == usize::from(at % step == 0)));
            }
        }
    }
}
