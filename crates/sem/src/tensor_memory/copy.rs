//! Copies from shared to tensor memory (`tcgen05.cp`), and shifts of rows (`tcgen05.shift`).
//!
//! PTX ISA 9.7.16.9 "Tensor Memory Data Movement". The mapping of rows to lanes is that of CUTLASS
//! (`Copy_Traits<SM100_UTCCP_*>`).

use isa::{Mod, Picks};

use super::{Cell, LANES, LANES_OF_WARP, Misuse};
use crate::matrix::Descriptor;

/// What `tcgen05.cp` copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Rows that the copy reads.
    pub rows: usize,
    /// 16-byte units of a row.
    pub units: usize,
    /// Lane strides: from row to row within 32 rows, and from 32 rows to the next.
    step: usize,
    group: usize,
    /// How often each row is written, and the lane stride between these copies.
    times: usize,
    between: usize,
    /// Bits of the packed elements, which the copy unpacks to bytes.
    padded: Option<u32>,
    /// Both CTAs of the pair copy, each to its own tensor memory.
    pub pair: bool,
}

impl Copy {
    /// The copy that the picks of `tcgen05.cp` describe.
    pub fn of(picks: &Picks) -> Copy {
        let has = |m| picks.has(m);
        // Rows, units, lane strides of rows and of groups of 32 rows, repetitions and their lane stride.
        let (rows, units, step, group, times, between) = match () {
            () if has(Mod::N128x256b) => (128, 2, 1, 32, 1, 0),
            () if has(Mod::N4x256b) => (4, 2, 32, 0, 1, 0),
            () if has(Mod::N64x128b) && has(Mod::Warpx20123) => (64, 1, 1, 64, 2, 32),
            () if has(Mod::N64x128b) => (64, 1, 1, 32, 2, 64),
            () if has(Mod::N32x128b) => (32, 1, 1, 0, 4, 32),
            () => (128, 1, 1, 32, 1, 0),
        };
        let padded = match () {
            () if has(Mod::B6x16P32) => Some(6),
            () if has(Mod::B4x16P64) => Some(4),
            () => None,
        };
        Copy { rows, units, step, group, times, between, padded, pair: has(Mod::CtaGroup2) }
    }

    /// The addresses of the units of all rows in a CTA's shared memory, row by row. A row is a line along k.
    ///
    /// # Errors
    /// When the matrix descriptor has an invalid swizzle mode.
    pub fn addresses(&self, descriptor: u64) -> Result<Vec<u64>, Misuse> {
        let descriptor = Descriptor::of_tensor_core(descriptor).filter(|found| !found.has_wide_atoms());
        let descriptor = descriptor.ok_or(Misuse::Swizzle)?;
        let units = (0..self.rows).flat_map(|row| (0..self.units).map(move |unit| (row, unit)));
        Ok(units.map(|(row, unit)| descriptor.along_k(row, unit)).collect())
    }

    /// The destinations of a unit of a row, relative to the address: for each, the first of four cells.
    pub fn cells(&self, row: usize, unit: usize) -> impl Iterator<Item = Cell> {
        let (times, between) = (self.times, self.between);
        let lane = row / LANES_OF_WARP * self.group + row % LANES_OF_WARP * self.step;
        (0..times).map(move |i| Cell { lane: lane + i * between, column: unit * 4 })
    }

    /// The contents of the four cells for a unit. A 4-bit element occupies the middle of its byte, as `tcgen05.mma`
    /// reads it.
    pub fn words(&self, unit: u128) -> [u32; 4] {
        let bytes = match self.padded {
            None => unit.to_le_bytes(),
            Some(bits) => std::array::from_fn(|i| {
                let element = (unit >> (i as u32 * bits)) as u8 & (u8::MAX >> (8 - bits));
                element << if bits == 4 { 2 } else { 0 }
            }),
        };
        let (words, _) = bytes.as_chunks::<4>();
        std::array::from_fn(|i| u32::from_le_bytes(words[i]))
    }

    /// Checks that the shape may begin at the lane of an address.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self, at: Cell) -> Result<(), Misuse> {
        let most = if self.step > 1 { LANES_OF_WARP } else { 1 };
        if at.lane >= LANES {
            return Err(Misuse::Outside);
        }
        if at.lane < most { Ok(()) } else { Err(Misuse::LaneAlignment) }
    }
}

/// What `tcgen05.shift.down` moves: in each of 32 lanes but the last, 32 bytes are replaced by those of the next
/// lane.
///
/// *Ours*: the manual gives the shape `.31x256b` without a figure. `tcgen05.cp.4x256b` then fills the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift;

impl Shift {
    /// Columns that move.
    pub const COLUMNS: usize = 8;

    /// Pairs of source and destination, relative to the address, ordered so that each cell is read before it is
    /// overwritten.
    pub fn moves() -> impl Iterator<Item = (Cell, Cell)> {
        let lanes = 0..LANES_OF_WARP - 1;
        lanes.flat_map(|lane| {
            (0..Shift::COLUMNS).map(move |column| (Cell { lane: lane + 1, column }, Cell { lane, column }))
        })
    }

    /// Checks that 32 lanes may begin at the lane of an address.
    ///
    /// # Errors
    /// When they may not.
    pub fn check(at: Cell) -> Result<(), Misuse> {
        match at.lane {
            0 | 32 | 64 | 96 => Ok(()),
            lane if lane < LANES => Err(Misuse::LaneAlignment),
            _ => Err(Misuse::Outside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_to_the_lanes_of_their_shape() {
        let lanes = |mods: &[Mod], row| -> Vec<usize> {
            Copy::of(&Picks::new(&[], mods)).cells(row, 0).map(|cell| cell.lane).collect()
        };
        assert_eq!(lanes(&[Mod::N128x256b], 100), [100]);
        assert_eq!(lanes(&[Mod::N128x128b], 127), [127]);
        assert_eq!(lanes(&[Mod::N4x256b], 3), [96]);
        assert_eq!(lanes(&[Mod::N64x128b, Mod::Warpx20213], 40), [40, 104]);
        assert_eq!(lanes(&[Mod::N64x128b, Mod::Warpx20123], 40), [72, 104]);
        assert_eq!(lanes(&[Mod::N32x128b, Mod::Warpx4], 5), [5, 37, 69, 101]);
    }

    #[test]
    fn narrow_elements_get_a_byte_each() {
        let words = |mods: &[Mod], unit| Copy::of(&Picks::new(&[], mods)).words(unit);
        let unit = 0xffff_ffff_ffff_ffff_8765_4321_0fed_cba9;
        assert_eq!(words(&[Mod::N128x128b], unit)[..2], [0x0fed_cba9, 0x8765_4321]);
        let four = words(&[Mod::N128x128b, Mod::B4x16P64], unit);
        assert_eq!(four, [0x302c_2824, 0x003c_3834, 0x100c_0804, 0x201c_1814]);
        let six = words(&[Mod::N128x128b, Mod::B6x16P32], unit);
        assert_eq!(
            six[0],
            u32::from_le_bytes([
                0xa9 & 0x3f,
                0xcba9_u32.wrapping_shr(6) as u8 & 0x3f,
                0x0d_cba9_u32.wrapping_shr(12) as u8 & 0x3f,
                0xfe_dcba9_u32.wrapping_shr(18) as u8 & 0x3f
            ])
        );
    }
}
