//! Matrices in memory with a stride: `wmma.load` and `wmma.store`.

use diag::Span;
use lanes::{Tiling, memory};
use machine::FaultKind;
use machine::mask::WARP_LANES;
use smallvec::SmallVec;

use crate::code::{Address, Fragment, Strided};
use crate::exec::addresses::{Addresses, Region, address_of};
use crate::exec::request::Request;
use crate::exec::transfer::{read, write};
use crate::exec::{Active, Gang, Step};
use crate::registers::SlotRef;
use crate::shared::Shared;

/// The bytes of one line of a tile: 4 lanes of a register.
type Line = [u32; 4];

impl Gang<'_> {
    /// Loads or stores the matrices of all warps line by line. Returns false unless the warps are whole and the lines
    /// of tiles are contiguous in memory.
    pub(super) fn move_tiles(
        &mut self,
        op: &Strided,
        active: &Active,
        shared: &Shared,
        span: Span,
        write: bool,
    ) -> Step<bool> {
        let Fragment { registers, bits, tiles: Some(tiles), .. } = &op.fragment else { return Ok(false) };
        let by_column = tiles.tiling() == Tiling::Columns;
        let whole_warps = active.mask.warps().all(|(_, lanes)| lanes == u32::MAX);
        let Some(slots) = registers.iter().copied().collect::<Option<SmallVec<[SlotRef; 8]>>>() else {
            return Ok(false);
        };
        if !whole_warps || by_column != op.by_column || *bits > 32 {
            return Ok(false);
        }
        let addresses = self.addresses(&op.address, active);
        let mut areas: SmallVec<[(usize, Area); 8]> = SmallVec::new();
        for (warp, _) in active.mask.warps() {
            areas.push((warp, self.area(op, &addresses, active, warp, shared, span, write)?));
        }
        let arrays: SmallVec<[*mut u32; 8]> = slots
            .iter()
            .map(|&slot| match write {
                true => self.registers.read(active.window, slot).cast_mut().cast(),
                false => self.registers.update(active.window, slot).cast(),
            })
            .collect();
        let each = if tiles.tiling() == Tiling::Pairs { 2 } else { 1 };
        for (warp, area) in areas {
            for (registers, (row, column)) in arrays.chunks_exact(each).zip(tiles.starts()) {
                let (line, within) = if by_column { (column, row) } else { (row, column) };
                for i in 0..8 {
                    let offset =
                        (line as u64 + i as u64).wrapping_mul(area.stride).wrapping_add(within as u64);
                    let address = area.base.wrapping_add(offset.wrapping_mul(u64::from(*bits)) / 8);
                    // SAFETY: the region holds every element of the matrix, and the arrays have the words of the
                    // warp.
                    unsafe {
                        let memory = area.region.at(address);
                        let lanes =
                            |register: *mut u32| register.add(warp * WARP_LANES).cast::<Line>().add(i);
                        match *registers {
                            [register] if write => memory::write(memory, lanes(register).read_unaligned()),
                            [register] => {
                                lanes(register).write_unaligned(memory.cast::<Line>().read_unaligned())
                            }
                            [even, odd] if write => {
                                let (even, odd) = (lanes(even).read_unaligned(), lanes(odd).read_unaligned());
                                let line: [u32; 8] = std::array::from_fn(|i| [even, odd][i % 2][i / 2]);
                                memory::write(memory, line);
                            }
                            [even, odd] => {
                                let line = memory.cast::<[u32; 8]>().read_unaligned();
                                lanes(even).write_unaligned(std::array::from_fn(|i| line[2 * i]));
                                lanes(odd).write_unaligned(std::array::from_fn(|i| line[2 * i + 1]));
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Checks and returns the memory of a warp's matrix. The address and stride of the lowest lane apply; they must
    /// be the same in all lanes.
    #[expect(clippy::too_many_arguments, reason = "where, who, and what for")]
    pub(super) fn area(
        &self,
        op: &Strided,
        addresses: &Addresses,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
        write: bool,
    ) -> Step<Area> {
        let lane = warp * WARP_LANES + active.mask.warp(warp).trailing_zeros() as usize;
        let Address { space, .. } = op.address;
        let base = address_of(addresses, lane);
        let Fragment { rows, columns, bits, .. } = op.fragment;
        let stride = match op.stride {
            Some(slot) => self.registers.get(active.window, slot, lane),
            None => (if op.by_column { rows } else { columns }) as u64,
        };
        let request = Request { space, bytes: u64::from(bits.div_ceil(8)), write, span };
        let mut area = Area {
            region: Region { storage: std::ptr::null_mut(), base: 0, end: 0, stride: 0, passing: false },
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
        // Find the element that faults.
        for place in 0..rows * columns {
            let address = area.address(place);
            if let Err(kind) = self.place(shared, &request, address) {
                return Err(self.access_fault(kind, &request, lane, address));
            }
        }
        // No single element faults, so they lie in several variables of shared memory.
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
    /// Distance between rows (or columns), in elements.
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

    /// Stored elements always fill whole bytes.
    pub(super) fn write(&self, place: usize, bits: u64) {
        // SAFETY: the region holds every element of the matrix.
        unsafe { write(self.region.at(self.address(place)), self.bits.div_ceil(8), bits) }
    }
}
