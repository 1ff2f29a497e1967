//! Matrices in shared memory behind descriptors: the factors of `wgmma`.

use isa::Space;
use isa::matrix::Matrix;
use sem::matrix::Descriptor;

use super::Warp;
use crate::code::{Factor, Source};
use crate::exec::access::Request;
use crate::exec::{Chunk, Step};
use crate::fault::FaultKind;
use crate::mask::WARP_LANES;

/// Bytes that stand together.
const UNIT: u32 = 16;

impl Chunk<'_> {
    /// Calls `f` with the place and the bits of every element of a factor.
    pub(super) fn each_of_factor(
        &mut self,
        factor: &Factor,
        warp: &Warp,
        mut f: impl FnMut(usize, u64),
    ) -> Step {
        let &Source::Shared { descriptor, transposed, matrix, bits } = &factor.source else {
            if let Source::Registers(fragment) = &factor.source {
                self.each_element(fragment, warp.window, warp.index, f);
            }
            return Ok(());
        };
        let lane = warp.index * WARP_LANES;
        let descriptor = Descriptor::new(self.number(descriptor, warp));
        let transposed = transposed.is_some_and(|slot| self.number(slot, warp) != 0);
        // Lines are rows of A, of which a warp has 16 of 64, or columns of B.
        let (first, lines, k) = match matrix {
            Matrix::A => {
                ((self.first_thread as usize / WARP_LANES + warp.index) % 4 * 16, factor.rows, factor.columns)
            }
            _ => (0, factor.columns, factor.rows),
        };
        let in_unit = (UNIT * 8 / bits) as usize;
        // The address of each 16 bytes, and the line and k of their first element.
        let units: Vec<(u64, usize, usize)> = if transposed {
            let unit = |i: usize| (i / k * in_unit, i % k);
            (0..lines / in_unit * k)
                .map(unit)
                .map(|(line, k)| (descriptor.across_k((first + line) / in_unit, k), line, k))
                .collect()
        } else {
            let across = k / in_unit;
            (0..lines * across)
                .map(|i| {
                    (descriptor.along_k(first + i / across, i % across), i / across, i % across * in_unit)
                })
                .collect()
        };
        let request = Request { space: Space::Shared, bytes: UNIT.into(), write: false, span: warp.span };
        let addresses = || units.iter().map(|unit| unit.0);
        let (least, greatest) = (addresses().min().unwrap_or(0), addresses().max().unwrap_or(0));
        let whole = self.region(warp.shared, &request, least, greatest);
        let mask = u128::MAX >> (128 - bits);
        for &(address, line, first_k) in &units {
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
}
