//! Matrices in memory with a stride: `wmma.load` and `wmma.store`.

use diag::Span;

use crate::code::{Address, Fragment, Strided};
use crate::cta::Shared;
use crate::exec::access::Request;
use crate::exec::transfer::{Region, address_of, read, write};
use crate::exec::{Active, Chunk, Step};
use crate::fault::FaultKind;
use crate::mask::WARP_LANES;

impl Chunk<'_> {
    /// The memory of a warp's matrix, all of it checked. The lowest lane's address and stride count: they must be the
    /// same in all.
    pub(super) fn area(
        &mut self,
        op: &Strided,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
        write: bool,
    ) -> Step<Area> {
        let lane = warp * WARP_LANES + active.mask.warp(warp).trailing_zeros() as usize;
        let Address { space, .. } = op.address;
        let base = address_of(&self.addresses(&op.address, active), lane);
        let Fragment { rows, columns, bits, .. } = op.fragment;
        let stride = match op.stride {
            Some(slot) => self.registers.get(active.window, slot, lane),
            None => (if op.by_column { rows } else { columns }) as u64,
        };
        let request = Request { space, bytes: u64::from(bits.div_ceil(8)), write, span };
        let mut area = Area {
            region: Region { storage: std::ptr::null_mut(), base: 0, end: 0, stride: 0 },
            base,
            stride,
            columns,
            bits,
            by_column: op.by_column,
        };
        let last = area.address(rows * columns - 1);
        if base.is_multiple_of(request.bytes)
            && base <= last
            && let Some(region) = self.region(shared, &request, base, last)
        {
            area.region = region;
            return Ok(area);
        }
        // Who is at fault?
        for place in 0..rows * columns {
            let address = area.address(place);
            if let Err(kind) = self.place(shared, &request, address) {
                return Err(self.access_fault(kind, &request, lane, address));
            }
        }
        // Its elements may lie in several variables of shared memory.
        match self.all_shared(shared, space, base) {
            Some(region) => Ok(Area { region, ..area }),
            None => Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, base)),
        }
    }
}

/// A matrix in memory.
pub(super) struct Area {
    region: Region,
    base: u64,
    /// Elements from one row (column) to the next.
    stride: u64,
    columns: usize,
    bits: u32,
    by_column: bool,
}

impl Area {
    /// Offset of an element in bits.
    fn offset(&self, place: usize) -> u64 {
        let (row, column) = (place as u64 / self.columns as u64, place as u64 % self.columns as u64);
        let (line, within) = if self.by_column { (column, row) } else { (row, column) };
        line.wrapping_mul(self.stride).wrapping_add(within).wrapping_mul(self.bits.into())
    }

    fn address(&self, place: usize) -> u64 {
        self.base.wrapping_add(self.offset(place) / 8)
    }

    pub(super) fn read(&self, place: usize) -> u64 {
        // SAFETY: the region holds every element of the matrix.
        let value = unsafe { read(self.region.at(self.address(place)), self.bits.div_ceil(8), false) };
        match self.bits {
            1 | 4 => value >> (self.offset(place) % 8) & ((1 << self.bits) - 1),
            _ => value,
        }
    }

    /// Elements that are stored fill bytes.
    pub(super) fn write(&self, place: usize, bits: u64) {
        // SAFETY: the region holds every element of the matrix.
        unsafe { write(self.region.at(self.address(place)), self.bits.div_ceil(8), bits) }
    }
}
