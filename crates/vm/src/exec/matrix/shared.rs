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
const UNIT: u32 = 16;

/// Elements that stand together, along k or (`transposed`) across it: where they are, and the line and k of the first.
pub(in crate::exec) struct Unit {
    pub address: u64,
    line: usize,
    k: usize,
    transposed: bool,
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
        let lane = warp.index * WARP_LANES;
        let in_unit = (UNIT * 8 / bits) as usize;
        let request = Request { space: Space::Shared, bytes: UNIT.into(), write: false, span: warp.span };
        let addresses = || units.iter().map(|unit| unit.address);
        let (least, greatest) = (addresses().min().unwrap_or(0), addresses().max().unwrap_or(0));
        let whole = self.region(warp.shared, &request, least, greatest);
        let mask = u128::MAX >> (128 - bits);
        for &Unit { address, line, k: first_k, transposed } in &units {
            // They may lie in several variables.
            let region = whole.or_else(|| self.region(warp.shared, &request, address, address));
            let Some(region) = region else {
                return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, address));
            };
            // SAFETY: the region holds the unit.
            let all = unsafe { region.at(address).cast::<u128>().read_unaligned() };
            for i in 0..in_unit {
                let (line, k) = if transposed { (line + i, first_k) } else { (line, first_k + i) };
                let place = match matrix {
                    Matrix::A => line * factor.columns + k,
                    _ => k * factor.columns + line,
                };
                f(place, (all >> (i as u32 * bits) & mask) as u64);
            }
        }
        Ok(())
    }

    /// The units of a factor of this warp; none if it stands in registers. Nothing is checked.
    pub(in crate::exec) fn units(&self, factor: &MatrixFactor, warp: usize, window: Window) -> Vec<Unit> {
        let &MatrixSource::Shared { descriptor, transposed, matrix, bits } = &factor.source else {
            return Vec::new();
        };
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
        if transposed {
            let unit = |i: usize| {
                let (line, k) = (i / length * in_unit, i % length);
                Unit { address: descriptor.across_k((first + line) / in_unit, k), line, k, transposed }
            };
            return (0..lines / in_unit * length).map(unit).collect();
        }
        let across = length / in_unit;
        let unit = |i: usize| {
            let (line, unit) = (i / across, i % across);
            Unit { address: descriptor.along_k(first + line, unit), line, k: unit * in_unit, transposed }
        };
        (0..lines * across).map(unit).collect()
    }
}
