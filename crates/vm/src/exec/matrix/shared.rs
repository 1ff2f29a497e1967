//! Matrices in shared memory behind descriptors: the factors of `wgmma`.

use isa::Space;
use isa::matrix::Matrix;
use sem::matrix::Descriptor;

use super::Warp;
use crate::code::{MatrixFactor, MatrixSource};
use crate::exec::access::Request;
use crate::exec::{Chunk, Step};
use crate::fault::FaultKind;
use crate::mask::WARP_LANES;
use crate::registers::Window;

/// Bytes that stand together.
pub(super) const UNIT_BYTES: usize = 16;
const UNIT: u32 = UNIT_BYTES as u32;

/// Lines of a tile: units of a register.
pub(super) const TILE_LINES: usize = 8;

/// Elements that stand together, along k or (`transposed`) across it: where they are, and the line and k of the first.
pub(in crate::exec) struct Unit {
    pub address: u64,
    line: usize,
    k: usize,
    transposed: bool,
}

impl Unit {
    /// The place of its first element in the matrix, and how far it is from each to the next.
    pub(super) fn places(&self, factor: &MatrixFactor, matrix: Matrix) -> (usize, usize) {
        let &Unit { line, k, transposed, .. } = self;
        match matrix {
            Matrix::A => (line * factor.columns + k, if transposed { factor.columns } else { 1 }),
            _ => (k * factor.columns + line, if transposed { 1 } else { factor.columns }),
        }
    }
}

impl Chunk<'_> {
    /// Calls `f` with the place and the bits of every element of a factor.
    pub(super) fn each_of_factor(
        &mut self,
        factor: &MatrixFactor,
        warp: &Warp,
        mut f: impl FnMut(usize, u64),
    ) -> Step {
        let (matrix, bits, units) = match &factor.source {
            MatrixSource::Registers(fragment) => {
                self.each_element(fragment, warp.window, warp.index, f);
                return Ok(());
            }
            &MatrixSource::Shared { matrix, bits, .. } => {
                (matrix, bits, self.units(factor, warp.index, warp.window))
            }
        };
        let in_unit = (UNIT * 8 / bits) as usize;
        let mask = u128::MAX >> (128 - bits);
        let addresses: Vec<u64> = units.iter().map(|unit| unit.address).collect();
        let mut units = units.iter();
        self.each_checked_unit(&addresses, warp, |bytes| {
            let Some(unit) = units.next() else { return };
            let (all, (start, step)) = (u128::from_le_bytes(bytes), unit.places(factor, matrix));
            for i in 0..in_unit {
                f(start + i * step, (all >> (i as u32 * bits) & mask) as u64);
            }
        })
    }

    /// Calls `f` with the bytes of the unit at each address, all of which are checked.
    #[inline]
    pub(super) fn each_checked_unit(
        &self,
        addresses: &[u64],
        warp: &Warp,
        mut f: impl FnMut([u8; UNIT_BYTES]),
    ) -> Step {
        let request = Request { space: Space::Shared, bytes: UNIT.into(), write: false, span: warp.span };
        let (mut least, mut greatest) = (u64::MAX, 0);
        for &address in addresses {
            (least, greatest) = (least.min(address), greatest.max(address));
        }
        let whole = self.region(warp.shared, &request, least, greatest);
        for &address in addresses {
            // They may lie in several variables.
            let region = whole.or_else(|| self.region(warp.shared, &request, address, address));
            let Some(region) = region else {
                let lane = warp.index * WARP_LANES;
                return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, address));
            };
            // SAFETY: the region holds the unit.
            f(unsafe { region.at(address).cast::<[u8; UNIT_BYTES]>().read_unaligned() });
        }
        Ok(())
    }

    /// The units of a factor of this warp; none if it stands in registers.
    pub(in crate::exec) fn units(&self, factor: &MatrixFactor, warp: usize, window: Window) -> Vec<Unit> {
        let mut units = Vec::new();
        self.each_unit_of_factor(factor, warp, window, |unit| units.push(unit));
        units
    }

    /// Calls `f` with the units of a factor of this warp, if it is in shared memory: as [`lanes::Tiles::grid`] has them, tile by tile, of each its
    /// lines. Nothing is checked. Descriptors have no room for the rank of the block whose memory it is: they mean the warp's own.
    #[inline]
    pub(super) fn each_unit_of_factor(
        &self,
        factor: &MatrixFactor,
        warp: usize,
        window: Window,
        mut f: impl FnMut(Unit),
    ) {
        let &MatrixSource::Shared { descriptor, transposed, matrix, bits } = &factor.source else { return };
        let number = |slot| self.registers.get(window, slot, warp * WARP_LANES);
        let descriptor = Descriptor::new(number(descriptor));
        let transposed = transposed.is_some_and(|slot| number(slot) != 0);
        // Lines are rows of A, of which a warp has 16 of 64, or columns of B.
        let (first, lines, length) = match matrix {
            Matrix::A => {
                ((self.first_thread as usize / WARP_LANES + warp) % 4 * 16, factor.rows, factor.columns)
            }
            _ => (0, factor.columns, factor.rows),
        };
        let in_unit = (UNIT * 8 / bits) as usize;
        // Tiles across k and along it.
        let (across, along) = match transposed {
            true => (lines / in_unit, length / TILE_LINES),
            false => (lines / TILE_LINES, length / in_unit),
        };
        // Rows of tiles are along k in A, and across it in B.
        let (rows, columns) = if matrix == Matrix::A { (across, along) } else { (along, across) };
        for row in 0..rows {
            for column in 0..columns {
                let (line, k) = if matrix == Matrix::A { (row, column) } else { (column, row) };
                for within in 0..TILE_LINES {
                    let (line, k, address) = if transposed {
                        let (unit, k) = (line, k * TILE_LINES + within);
                        (unit * in_unit, k, descriptor.across_k(first / in_unit + unit, k))
                    } else {
                        let (line, unit) = (line * TILE_LINES + within, k);
                        (line, unit * in_unit, descriptor.along_k(first + line, unit))
                    };
                    f(Unit { address: self.shared_base + address, line, k, transposed });
                }
            }
        }
    }
}
