//! `ldmatrix` and `stmatrix`: each lane gives the address of a row.

use diag::Span;
use machine::FaultKind;
use machine::mask::{GANG_LANES, Mask, WARP_LANES};
use smallvec::SmallVec;

use super::Words;
use crate::code::{MatrixRows, RowFormat};
use crate::exec::addresses::{ROOM, address_of};
use crate::exec::request::{Request, Resolved};
use crate::exec::{Active, Gang, Step};
use crate::registers::SlotRef;
use crate::shared::Shared;

/// Bytes of the row at one lane's address.
const ROW_BYTES: usize = 16;
pub(in crate::exec) type RowBytes = [u8; ROW_BYTES];

impl Gang<'_> {
    /// `ldmatrix` of 16-bit elements for all warps. Returns false unless all warps are whole and all rows lie in one
    /// region. Each register of a warp holds the rows, or the columns, of its matrix.
    pub(super) fn load_row_tiles(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> bool {
        let Some(slots) = rows.registers.iter().copied().collect::<Option<SmallVec<[SlotRef; 4]>>>() else {
            return false;
        };
        let (mut warps, mut whole) = (0, true);
        active.mask.warps().for_each(|(warp, lanes)| {
            warps |= 1 << warp;
            whole &= lanes == u32::MAX;
        });
        if rows.format != RowFormat::Halves || !whole {
            return false;
        }
        // The lanes whose addresses count.
        let mut naming = *active;
        let named = u32::MAX >> (WARP_LANES - 8 * slots.len());
        let mut mask = Mask::EMPTY;
        active.mask.warps().for_each(|(warp, _)| mask.set_warp(warp, named));
        if mask != active.mask {
            naming.set_mask(mask, self.threads.lanes);
        }
        let request = Request { space: rows.address.space, bytes: ROW_BYTES as u64, write: false, span };
        let mut addresses = self.addresses(&rows.address, &naming);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, mask) else { return false };
        // The register that holds the addresses may be a destination: copy them first.
        let mut room = ROOM;
        let all = addresses.all(active, &mut room);
        let arrays: SmallVec<[*mut u8; 4]> =
            slots.into_iter().map(|slot| self.registers.update(active.window, slot)).collect();
        let load_tiles = self.registers.helpers().load_tiles;
        let base = region.storage.wrapping_sub(region.base as usize);
        // SAFETY: the region holds the rows at the addresses of these warps' lanes, and the arrays have all lanes.
        unsafe { load_tiles(&arrays, base, all, warps, rows.transposed) }
        true
    }

    /// The checked host addresses of the rows of a warp's matrices.
    fn row_places(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
        write: bool,
    ) -> Step<Vec<*mut u8>> {
        let request = &Request { space: rows.address.space, bytes: ROW_BYTES as u64, write, span };
        let addresses = self.addresses(&rows.address, active);
        let first = warp * WARP_LANES;
        let mut places = Vec::with_capacity(WARP_LANES);
        for lane in first..first + rows.registers.len() * 8 {
            let address = address_of(&addresses, lane.min(self.threads.lanes - 1));
            match self.place(shared, request, address) {
                Ok(Resolved::Host(at)) => places.push(at),
                Ok(Resolved::Local(_)) => {
                    return Err(self.access_fault(FaultKind::OutOfBounds, request, lane, address));
                }
                Err(kind) => return Err(self.access_fault(kind, request, lane, address)),
            }
        }
        Ok(places)
    }

    pub(super) fn load_rows(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step<[RowBytes; GANG_LANES / 8]> {
        let places = self.row_places(rows, active, warp, shared, span, false)?;
        let mut bytes = [[0; ROW_BYTES]; GANG_LANES / 8];
        for (row, at) in bytes.iter_mut().zip(places) {
            // SAFETY: the place holds the bytes of a row.
            *row = unsafe { at.cast::<RowBytes>().read_unaligned() };
        }
        Ok(bytes)
    }

    pub(super) fn store_rows(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step {
        let places = self.row_places(rows, active, warp, shared, span, true)?;
        let registers: Vec<Words> =
            rows.registers.iter().flatten().map(|&slot| self.words(active.window, slot, warp)).collect();
        for (row, at) in places.into_iter().enumerate() {
            let bytes = rows.row(row, |register, lane| registers[register][lane]);
            // SAFETY: the place holds the bytes of a row.
            unsafe { at.cast::<RowBytes>().write_unaligned(bytes) }
        }
        Ok(())
    }
}

impl MatrixRows {
    /// The bytes of a row that a warp stores, from the words in its registers (PTX ISA, "stmatrix").
    pub(in crate::exec) fn row(&self, row: usize, word: impl Fn(usize, usize) -> u64) -> RowBytes {
        let (register, row) = (row / 8, row % 8);
        std::array::from_fn(|byte| {
            // The lane that holds the byte, and the byte's index in the lane's word.
            let (lane, part) = match (self.format, self.transposed) {
                (RowFormat::Halves, false) => (row * 4 + byte / 4, byte % 4),
                (RowFormat::Halves, true) => (byte / 2 * 4 + row / 2, row % 2 * 2 + byte % 2),
                // `.m16n8`, transposed: a row in memory is a column of 16 bytes.
                (RowFormat::Packed { .. }, _) => (byte % 8 * 4 + row / 2, byte / 8 * 2 + row % 2),
            };
            (word(register, lane) >> (part * 8)) as u8
        })
    }

    /// The word that a lane's register gets from the rows (PTX ISA, "ldmatrix").
    pub(super) fn word(&self, rows: &[RowBytes], register: usize, lane: usize) -> u64 {
        let (group, within) = (lane / 4, lane % 4);
        match self.format {
            RowFormat::Halves if self.transposed => {
                let half = |row: usize| {
                    let row = &rows[register * 8 + within * 2 + row];
                    u64::from(u16::from_le_bytes([row[group * 2], row[group * 2 + 1]]))
                };
                half(0) | half(1) << 16
            }
            RowFormat::Halves => {
                let row = &rows[register * 8 + group];
                u64::from(u32::from_le_bytes(std::array::from_fn(|i| row[within * 4 + i])))
            }
            RowFormat::Packed { bits, rows: 16 } => {
                // A matrix fills two registers. It is transposed: memory holds its columns.
                let (matrix, row) = (register / 2, group + register % 2 * 8);
                let bytes = std::array::from_fn(|i| unpacked(&rows[matrix * 16 + within * 4 + i], bits, row));
                u64::from(u32::from_le_bytes(bytes))
            }
            RowFormat::Packed { bits, .. } => {
                let row = &rows[register * 8 + group];
                u64::from(u32::from_le_bytes(std::array::from_fn(|i| unpacked(row, bits, within * 4 + i))))
            }
        }
    }
}

/// An element of 4, 6 or 8 bits, in the low bits of a byte. (Products that expect 4 bits in the middle of a byte need
/// a shift.)
fn unpacked(row: &RowBytes, bits: u32, index: usize) -> u8 {
    let all = u128::from_le_bytes(*row);
    (all >> (index as u32 * bits)) as u8 & (u8::MAX >> (8 - bits))
}
