//! Products whose fragments are tiles: a vector function multiplies whole warps, in the order of their registers ([`lanes::TileProduct`]).
//! Everything else is moved element by element.

use isa::matrix::Matrix;
use lanes::{ProductRoom, TileProduct, TileRegisters, WarpProduct};
use sem::matrix::Descriptor;
use smallvec::SmallVec;

use super::Warp;
use super::shared::UNIT_BYTES;
use crate::code::{Multiply, TileSource, Tiled};
use crate::cta::Shared;
use crate::exec::{Active, Chunk, Step};
use crate::mask::WARP_LANES;
use crate::registers::SlotRef;
use diag::Span;

/// Units of a register: lines of a tile.
const LINES: usize = 8;

/// The matrices of a warp's product, whose memory is kept from one to the next.
#[derive(Default)]
pub(in crate::exec) struct Matrices {
    room: ProductRoom,
    /// The registers of A and of B that are made of what stands in shared memory.
    a_units: Vec<[u8; UNIT_BYTES]>,
    b_units: Vec<[u8; UNIT_BYTES]>,
    addresses: Vec<u64>,
}

impl Chunk<'_> {
    /// A product for all warps; false if it is not one of tiles, or not of whole warps.
    pub(super) fn multiply_tiles(
        &mut self,
        op: &Multiply,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> Step<bool> {
        let Some(tiled) = &op.tiled else { return Ok(false) };
        let mut warps = active.mask.warps();
        let Some((first, u32::MAX)) = warps.next() else { return Ok(false) };
        if warps.any(|(_, lanes)| lanes != u32::MAX) {
            return Ok(false);
        }
        let lane = first * WARP_LANES;
        let transposed = |source: &TileSource| match source {
            TileSource::Shared { transposed: Some(slot), .. } => {
                self.registers.get(active.window, *slot, lane) != 0
            }
            _ => false,
        };
        let Some(product) = tiled.product(transposed(&tiled.a), transposed(&tiled.b)) else {
            return Ok(false);
        };
        let mut matrices = self.matrices.take().unwrap_or_default();
        let registers = self.tile_registers(tiled, active, &mut matrices);
        let result = self.multiply_warps(op, tiled, product, &registers, active, &mut matrices, shared, span);
        self.matrices = Some(matrices);
        result.map(|()| true)
    }

    #[expect(clippy::too_many_arguments, reason = "where, who, and what for")]
    fn multiply_warps(
        &mut self,
        op: &Multiply,
        tiled: &Tiled,
        product: &TileProduct,
        registers: &TileRegisters,
        active: &Active,
        matrices: &mut Matrices,
        shared: &Shared,
        span: Span,
    ) -> Step {
        let is_shared = |source: &TileSource| matches!(source, TileSource::Shared { .. });
        // What is brought from shared memory lies where that of the warp before lay.
        let one_by_one = is_shared(&tiled.a) || is_shared(&tiled.b);
        // The descriptor of B, if its units were taken for a warp before.
        let mut taken = None;
        let mut warps: SmallVec<[WarpProduct; 8]> = SmallVec::new();
        let mut rest = active.mask.warps().peekable();
        while let Some((index, _)) = rest.next() {
            let warp = Warp { window: active.window, index, shared, span };
            let lane = index * WARP_LANES;
            let a_first = match &tiled.a {
                TileSource::Registers(_) => lane,
                source => {
                    self.take_units(source, Matrix::A, op, &warp, matrices)?;
                    0
                }
            };
            let b_first = match &tiled.b {
                TileSource::Registers(_) => Some(lane),
                source @ TileSource::Shared { descriptor, .. } => {
                    let descriptor = Some(self.number(*descriptor, &warp));
                    if taken == descriptor {
                        None
                    } else {
                        self.take_units(source, Matrix::B, op, &warp, matrices)?;
                        taken = descriptor;
                        Some(0)
                    }
                }
            };
            let accumulates = self.accumulates(op, &warp);
            let negated = op.signs.is_some_and(|[a, b]| self.number(a, &warp) != self.number(b, &warp));
            warps.push(WarpProduct { first: lane, a_first, b_first, accumulates, negated });
            if one_by_one || rest.peek().is_none() {
                // SAFETY: the path is one that the machine has; the arrays have the warps' words.
                let odd =
                    unsafe { (op.helpers.multiply_tiles)(product, registers, &warps, &mut matrices.room) };
                for (_, warp) in warps.drain(..).enumerate().filter(|(i, _)| odd >> i & 1 != 0) {
                    let index = warp.first / WARP_LANES;
                    self.multiply_warp(op, active, &Warp { window: active.window, index, shared, span })?;
                }
            }
        }
        Ok(())
    }

    /// The registers of all matrices; of those in shared memory, the place that their units are brought to.
    fn tile_registers(&mut self, tiled: &Tiled, active: &Active, matrices: &mut Matrices) -> TileRegisters {
        let mut read = |slots: &[SlotRef]| -> SmallVec<[*const u8; 8]> {
            slots.iter().map(|&slot| self.registers.read(active.window, slot)).collect()
        };
        let mut factor = |source: &TileSource, units: &mut Vec<[u8; UNIT_BYTES]>| match source {
            TileSource::Registers(slots) => read(slots),
            TileSource::Shared { registers, .. } => {
                units.resize(registers * LINES, [0; UNIT_BYTES]);
                let place = units.as_mut_ptr();
                (0..*registers)
                    .map(|register| place.wrapping_add(register * LINES).cast_const().cast())
                    .collect()
            }
        };
        let a = factor(&tiled.a, &mut matrices.a_units);
        let b = factor(&tiled.b, &mut matrices.b_units);
        let c = read(&tiled.c);
        // Each warp reads all that it needs before it writes its own lanes: they may be the same registers.
        let d = tiled.d.iter().map(|&slot| self.registers.update(active.window, slot)).collect();
        TileRegisters { a, b, c, d }
    }

    /// Brings the units of A or B of a warp from shared memory into the order of registers.
    fn take_units(
        &mut self,
        source: &TileSource,
        matrix: Matrix,
        op: &Multiply,
        warp: &Warp,
        matrices: &mut Matrices,
    ) -> Step {
        let TileSource::Shared { descriptor, transposed, registers } = source else { return Ok(()) };
        let descriptor = Descriptor::new(self.number(*descriptor, warp));
        let transposed = transposed.is_some_and(|slot| self.number(slot, warp) != 0);
        let Matrices { a_units, b_units, addresses, .. } = matrices;
        addresses.clear();
        addresses.reserve(registers * LINES);
        // Rows of A, of which a warp has 16 of 64, or columns of B.
        let (units, factor, first) = match matrix {
            Matrix::A => (a_units, &op.a, (self.first_thread as usize / WARP_LANES + warp.index) % 4 * 16),
            _ => (b_units, &op.b, 0),
        };
        let (lines, length) = match matrix {
            Matrix::A => (factor.rows, factor.columns),
            _ => (factor.columns, factor.rows),
        };
        // Registers stand row by row of tiles: along k those of a line of A, but across it those of B.
        let (outer, inner, k_is_inner) = match (matrix, transposed) {
            (Matrix::A, false) => (lines / LINES, registers / (lines / LINES), true),
            (Matrix::A, true) => (registers / (length / LINES), length / LINES, true),
            (_, false) => (registers / (lines / LINES), lines / LINES, false),
            (_, true) => (length / LINES, registers / (length / LINES), false),
        };
        let in_unit = if transposed { lines * length / (registers * LINES) } else { 1 };
        for i in 0..outer {
            for j in 0..inner {
                let (line, k) = if k_is_inner { (i, j) } else { (j, i) };
                let mut group = [0; LINES];
                for (within, address) in group.iter_mut().enumerate() {
                    *address = self.shared_base
                        + match transposed {
                            true => descriptor.across_k(first / in_unit + line, k * LINES + within),
                            false => descriptor.along_k(first + line * LINES + within, k),
                        };
                }
                addresses.extend_from_slice(&group);
            }
        }
        let (units, mut next) = (units.as_mut_ptr(), 0);
        self.each_checked_unit(addresses, warp, |bytes| {
            // SAFETY: there are as many units as addresses. Not by the vector: the registers' pointers are its memory.
            unsafe { units.add(next).write(bytes) }
            next += 1;
        })
    }
}
