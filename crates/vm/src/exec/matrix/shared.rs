//! Matrices in shared memory that descriptors name: the factors of `wgmma`.

use isa::Space;
use isa::matrix::Matrix;
use machine::FaultKind;
use machine::mask::WARP_LANES;
use sem::matrix::Descriptor;

use super::Warp;
use crate::code::{MatrixFactor, MatrixSource};
use crate::exec::request::Request;
use crate::exec::{Gang, Step};
use crate::registers::Window;

/// Bytes of a unit: elements that are contiguous in memory.
pub(super) const UNIT_BYTES: usize = 16;
const UNIT: u32 = UNIT_BYTES as u32;

/// Lines of a tile: the units in one register.
pub(super) const TILE_LINES: usize = 8;

/// The units of one register. The elements of a unit are consecutive along k or (`transposed`) across it.
pub(in crate::exec) struct Tile {
    pub addresses: [u64; TILE_LINES],
    /// Line and k of the first element.
    line: usize,
    k: usize,
    transposed: bool,
}

impl Tile {
    /// The index of a unit's first element in the matrix, and the distance between its elements.
    fn places(&self, unit: usize, factor: &MatrixFactor, matrix: Matrix) -> (usize, usize) {
        let &Tile { line, k, transposed, .. } = self;
        let (line, k) = if transposed { (line, k + unit) } else { (line + unit, k) };
        match matrix {
            Matrix::A => (line * factor.columns + k, if transposed { factor.columns } else { 1 }),
            _ => (k * factor.columns + line, if transposed { 1 } else { factor.columns }),
        }
    }
}

impl Gang<'_> {
    /// Calls `f` with the index and the bits of every element of a factor.
    pub(super) fn each_of_factor(
        &mut self,
        factor: &MatrixFactor,
        warp: &Warp,
        mut f: impl FnMut(usize, u64),
    ) -> Step {
        let (matrix, bits) = match &factor.source {
            MatrixSource::Registers(fragment) => {
                self.each_element(fragment, warp.window, warp.index, f);
                return Ok(());
            }
            &MatrixSource::Shared { matrix, bits, .. } => (matrix, bits),
        };
        let mut tiles = Vec::new();
        self.each_tile(factor, warp.index, warp.window, |tile| tiles.push(tile));
        let in_unit = (UNIT * 8 / bits) as usize;
        let mask = u128::MAX >> (128 - bits);
        let addresses: Vec<_> = tiles.iter().map(|tile| tile.addresses).collect();
        let mut places =
            tiles.iter().flat_map(|tile| (0..TILE_LINES).map(move |unit| tile.places(unit, factor, matrix)));
        self.each_checked_unit(&addresses, warp, |bytes| {
            let Some((start, step)) = places.next() else { return };
            let all = u128::from_le_bytes(bytes);
            for i in 0..in_unit {
                f(start + i * step, (all >> (i as u32 * bits) & mask) as u64);
            }
        })
    }

    /// Checks the units at the addresses of tiles, and calls `f` with the bytes of each.
    #[inline]
    pub(super) fn each_checked_unit(
        &self,
        tiles: &[[u64; TILE_LINES]],
        warp: &Warp,
        mut f: impl FnMut([u8; UNIT_BYTES]),
    ) -> Step {
        let request = Request { space: Space::Shared, bytes: UNIT.into(), write: false, span: warp.span };
        let (mut least, mut greatest) = (u64::MAX, 0);
        for tile in tiles {
            debug_assert!(tile.is_sorted(), "a swizzle moves units within their rows");
            (least, greatest) = (least.min(tile[0]), greatest.max(tile[TILE_LINES - 1]));
        }
        if let Some(region) = self.region(warp.shared, &request, least, greatest) {
            for &address in tiles.as_flattened() {
                // SAFETY: the region holds the unit.
                f(unsafe { region.at(address).cast::<[u8; UNIT_BYTES]>().read_unaligned() });
            }
            return Ok(());
        }
        // The units may lie in several variables.
        for &address in tiles.as_flattened() {
            let Some(region) = self.region(warp.shared, &request, address, address) else {
                let lane = warp.index * WARP_LANES;
                return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, address));
            };
            // SAFETY: as above.
            f(unsafe { region.at(address).cast::<[u8; UNIT_BYTES]>().read_unaligned() });
        }
        Ok(())
    }

    /// If a factor of this warp is in shared memory, calls `f` with its tiles in the order of [`lanes::Tiles::grid`].
    /// Nothing is checked. A descriptor has no field for a CTA's rank: it names the shared memory of the warp's own
    /// CTA.
    #[inline]
    pub(in crate::exec) fn each_tile(
        &self,
        factor: &MatrixFactor,
        warp: usize,
        window: Window,
        mut f: impl FnMut(Tile),
    ) {
        let &MatrixSource::Shared { descriptor, transposed, matrix, bits } = &factor.source else { return };
        let number = |slot| self.registers.get(window, slot, warp * WARP_LANES);
        let descriptor = Descriptor::new(number(descriptor));
        let transposed = transposed.is_some_and(|slot| number(slot) != 0);
        // Lines are rows of A or columns of B. Each warp has 16 of the 64 rows of A.
        let (first, lines, length) = match matrix {
            Matrix::A => (
                (self.threads.first_thread as usize / WARP_LANES + warp) % 4 * 16,
                factor.rows,
                factor.columns,
            ),
            _ => (0, factor.columns, factor.rows),
        };
        let in_unit = (UNIT * 8 / bits) as usize;
        // Number of tiles across k and along k.
        let (across, along) = match transposed {
            true => (lines / in_unit, length / TILE_LINES),
            false => (lines / TILE_LINES, length / in_unit),
        };
        // A row of tiles runs along k in A and across k in B.
        let (rows, columns) = if matrix == Matrix::A { (across, along) } else { (along, across) };
        for row in 0..rows {
            for column in 0..columns {
                let (line, k) = if matrix == Matrix::A { (row, column) } else { (column, row) };
                let (line, k, mut addresses) = if transposed {
                    let (unit, k) = (line, k * TILE_LINES);
                    let address = |within| descriptor.across_k(first / in_unit + unit, k + within);
                    (unit * in_unit, k, std::array::from_fn(address))
                } else {
                    let addresses = descriptor.group_along_k(first / TILE_LINES + line, k);
                    (line * TILE_LINES, k * in_unit, addresses)
                };
                for address in &mut addresses {
                    *address += self.threads.shared_base;
                }
                f(Tile { addresses, line, k, transposed });
            }
        }
    }
}
