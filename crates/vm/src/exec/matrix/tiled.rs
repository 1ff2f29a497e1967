//! Products whose fragments are tiles: a vector function multiplies whole warps in the order of their registers
//! ([`lanes::TileProduct`]). All other products gather their elements one by one.

use diag::Span;
use isa::matrix::Matrix;
use lanes::{ProductScratch, TileProduct, TileRegisters, WarpProduct};
use machine::mask::{GANG_LANES, Mask, WARP_LANES};
use smallvec::SmallVec;

use super::Warp;
use super::shared::{TILE_LINES, UNIT_BYTES};
use crate::code::{Multiply, TileSource, Tiled};
use crate::exec::{Active, Gang, Step};
use crate::registers::SlotRef;
use crate::shared::Shared;

/// Buffers for the matrices of a warp's product, reused for later products.
#[derive(Default)]
pub(in crate::exec) struct Matrices {
    scratch: ProductScratch,
    /// The units of A and of B that come from shared memory, in the order of registers.
    a_units: Vec<[u8; UNIT_BYTES]>,
    b_units: Vec<[u8; UNIT_BYTES]>,
    addresses: Vec<[u64; TILE_LINES]>,
}

/// The arguments that the products of all warps share.
struct OfAllWarps<'a> {
    op: &'a Multiply,
    tiled: &'a Tiled,
    product: &'a TileProduct,
    registers: TileRegisters,
    active: &'a Active,
    shared: &'a Shared,
    span: Span,
}

impl Gang<'_> {
    /// Computes the product for all warps. Returns false if its fragments are not tiles, or if a warp is not whole.
    pub(super) fn multiply_tiles(
        &mut self,
        op: &Multiply,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> Step<bool> {
        let Some(tiled) = &op.tiled else { return Ok(false) };
        let Some(lane) = active.mask.lowest().filter(|_| active.mask.is_whole_warps_of(Mask::ALL)) else {
            return Ok(false);
        };
        let transposed = |source: &TileSource| match source {
            TileSource::Shared { transposed: Some(slot), .. } => {
                self.registers.get(active.window, *slot, lane) != 0
            }
            _ => false,
        };
        let Some(product) = tiled.product(transposed(&tiled.a), transposed(&tiled.b)) else {
            return Ok(false);
        };
        let mut matrices = self.scratch.matrices.take().unwrap_or_default();
        let registers = self.tile_registers(tiled, active, &mut matrices);
        let all = OfAllWarps { op, tiled, product, registers, active, shared, span };
        let result = self.multiply_warps(&all, &mut matrices);
        self.scratch.matrices = Some(matrices);
        result.map(|()| true)
    }

    fn multiply_warps(&mut self, all: &OfAllWarps, matrices: &mut Matrices) -> Step {
        let &OfAllWarps { op, tiled, active, shared, span, .. } = all;
        let is_shared = |source: &TileSource| matches!(source, TileSource::Shared { .. });
        // The units from shared memory overwrite those of the previous warp.
        let one_by_one = is_shared(&tiled.a) || is_shared(&tiled.b);
        // The descriptor of B whose units were read for a previous warp.
        let mut taken = None;
        let mut warps: SmallVec<[WarpProduct; GANG_LANES / WARP_LANES]> = SmallVec::new();
        for (index, _) in active.mask.warps() {
            let warp = Warp { window: active.window, index, shared, span };
            let lane = index * WARP_LANES;
            let a_first = match &tiled.a {
                TileSource::Registers { .. } => lane,
                TileSource::Shared { .. } => {
                    self.take_units(op, Matrix::A, &warp, matrices)?;
                    0
                }
            };
            let b_first = match &tiled.b {
                TileSource::Registers { .. } => Some(lane),
                TileSource::Shared { descriptor, .. } => {
                    let descriptor = Some(self.number(*descriptor, &warp));
                    if taken == descriptor {
                        None
                    } else {
                        self.take_units(op, Matrix::B, &warp, matrices)?;
                        taken = descriptor;
                        Some(0)
                    }
                }
            };
            let accumulates = self.accumulates(op, &warp);
            let negated = op.signs.is_some_and(|[a, b]| self.number(a, &warp) != self.number(b, &warp));
            warps.push(WarpProduct { first: lane, a_first, b_first, accumulates, negated });
            if one_by_one {
                self.multiply_these(all, &warps, matrices)?;
                warps.clear();
            }
        }
        self.multiply_these(all, &warps, matrices)
    }

    /// Computes the products of warps; element by element where the vector function cannot.
    fn multiply_these(&mut self, all: &OfAllWarps, warps: &[WarpProduct], matrices: &mut Matrices) -> Step {
        let &OfAllWarps { op, product, ref registers, active, shared, span, .. } = all;
        // SAFETY: the host has the instructions of the path; the arrays have the warps' words.
        let odd = unsafe { (op.helpers.multiply_tiles)(product, registers, warps, &mut matrices.scratch) };
        for (_, warp) in warps.iter().enumerate().filter(|(i, _)| odd >> i & 1 != 0) {
            let index = warp.first / WARP_LANES;
            self.multiply_warp(op, active, &Warp { window: active.window, index, shared, span })?;
        }
        Ok(())
    }

    /// The registers of all matrices. A matrix in shared memory has the buffer of its units instead.
    fn tile_registers(&mut self, tiled: &Tiled, active: &Active, matrices: &mut Matrices) -> TileRegisters {
        let mut read = |slots: &[SlotRef]| -> SmallVec<[*const u8; 8]> {
            slots.iter().map(|&slot| self.registers.read(active.window, slot)).collect()
        };
        let mut factor = |source: &TileSource, units: &mut Vec<[u8; UNIT_BYTES]>| match source {
            TileSource::Registers { slots, .. } => read(slots),
            TileSource::Shared { registers, .. } => {
                units.resize(registers * TILE_LINES, [0; UNIT_BYTES]);
                let place = units.as_mut_ptr();
                (0..*registers)
                    .map(|register| place.wrapping_add(register * TILE_LINES).cast_const().cast())
                    .collect()
            }
        };
        let a = factor(&tiled.a, &mut matrices.a_units);
        let b = factor(&tiled.b, &mut matrices.b_units);
        let c = read(&tiled.c);
        // A warp reads everything that it needs before it writes its own lanes, so D may share registers with other
        // matrices.
        let d = tiled.d.iter().map(|&slot| self.registers.update(active.window, slot)).collect();
        TileRegisters { a, b, c, d, d_is_read: tiled.d_is_read }
    }

    /// Reads the units of A or B of a warp from shared memory, in the order of registers.
    fn take_units(&self, op: &Multiply, matrix: Matrix, warp: &Warp, matrices: &mut Matrices) -> Step {
        let Matrices { a_units, b_units, addresses, .. } = matrices;
        let (factor, units) = if matrix == Matrix::A { (&op.a, a_units) } else { (&op.b, b_units) };
        addresses.clear();
        self.each_tile(factor, warp.index, warp.window, |tile| addresses.push(tile.addresses));
        debug_assert_eq!(addresses.len() * TILE_LINES, units.len(), "as many as registers hold");
        let (units, mut next) = (units.as_mut_ptr(), 0);
        self.each_checked_unit(addresses, warp, |bytes| {
            // SAFETY: there are as many units as addresses. The write avoids the `Vec`, because the registers'
            // pointers point into its memory.
            unsafe { units.add(next).write(bytes) }
            next += 1;
        })
    }
}
