//! The addresses of an access, lane by lane, for observers. Nothing here changes registers.

use ir::{Extent, Multicast, Start, Width};
use isa::Space;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::map_shared;

use super::copy::ranks;
use super::observe::ROW_BYTES;
use super::{Active, Gang};
use crate::code::{Access, Address, Guard, Kind, MatrixOp, MatrixSource, Op, WarpOp};
use crate::registers::SlotRef;

/// The most bytes reported for a bulk access. One side of it is in shared memory, which is smaller, so a longer
/// access faults.
const MOST_BULK: u64 = 1 << 20;

impl Gang<'_> {
    /// The lanes of the gang in which a guard holds.
    pub(super) fn holds(&self, guard: Guard, active: &Active) -> Mask {
        let predicate = self.registers.predicate(active.window, guard.slot);
        if guard.negated { !predicate } else { predicate }
    }

    /// A function from a lane to its address in the instruction's space. Changes no registers.
    pub(super) fn lane_addresses(
        &self,
        address: &Address,
        active: &Active,
    ) -> impl Fn(usize) -> u64 + use<'_> {
        let (even, window, offset) = (self.even(address, active), active.window, address.offset);
        move |lane| match even {
            Ok(even) => even.at(lane),
            Err(slot) => {
                let value = self.registers.get(window, slot, lane).wrapping_add(offset);
                if slot.width == Width::W64 { value } else { value & 0xffff_ffff }
            }
        }
    }

    /// Calls `f` with lane, address in the instruction's space and size of every part of an access. Changes no
    /// registers, so that an observed operation runs exactly as an unobserved one.
    pub(super) fn resolve_access(
        &self,
        op: &Op,
        access: &Access,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let address = match &access.start {
            Start::Address(address) => address,
            Start::Descriptor(_) => return self.each_unit(op, access, mask, active, f),
            Start::Texels => return self.each_texel(op, mask, active, f),
            Start::Tensor => return self.each_line(op, None, mask, active, f),
            Start::Box(address) => return self.each_line(op, Some(address), mask, active, f),
        };
        let at = self.lane_addresses(address, active);
        let number = |slot, lane| self.registers.get(active.window, slot, lane).min(MOST_BULK);
        if let Some(multicast) = access.multicast {
            for lane in mask {
                let bytes = match access.extent {
                    Extent::Bytes(bytes) => bytes.into(),
                    Extent::Slot(size) => number(size, lane),
                    _ => 0,
                };
                self.each_receiver(multicast, address, active, lane, |address| f(lane, address, bytes));
            }
            return;
        }
        match access.extent {
            Extent::Bytes(bytes) => mask.into_iter().for_each(|lane| f(lane, at(lane), bytes.into())),
            Extent::AtMost { bytes, size, ignore } => {
                let ignored = ignore.map_or(Mask::EMPTY, |guard| self.holds(guard, active));
                for lane in mask {
                    let size = size.map_or(bytes.into(), |size| number(size, lane).min(bytes.into()));
                    f(lane, at(lane), if ignored.contains(lane) { 0 } else { size });
                }
            }
            Extent::Slot(size) => mask.into_iter().for_each(|lane| f(lane, at(lane), number(size, lane))),
            Extent::Rows(rows) => {
                for (warp, _) in mask.warps() {
                    let first = warp * WARP_LANES;
                    let lanes = first..(first + rows as usize).min(self.threads.lanes);
                    lanes.for_each(|lane| f(lane, at(lane), ROW_BYTES));
                }
            }
            Extent::Matrix { lines, line_bits, element_bits, stride } => {
                for (warp, lanes) in mask.warps() {
                    let lane = warp * WARP_LANES + lanes.trailing_zeros() as usize;
                    let step = stride.map_or(line_bits.into(), |stride| {
                        number(stride, lane).wrapping_mul(element_bits.into())
                    });
                    for line in 0..u64::from(lines) {
                        let start = at(lane).wrapping_add(line.wrapping_mul(step) / 8);
                        f(lane, start, line_bits.div_ceil(8).into());
                    }
                }
            }
            Extent::Factor | Extent::Texels | Extent::Lines => {}
        }
    }

    /// Calls `f` with the addresses in the CTAs of the cluster that receive a multicast to a lane's address.
    pub(super) fn each_receiver(
        &self,
        multicast: Multicast<SlotRef>,
        address: &Address,
        active: &Active,
        lane: usize,
        mut f: impl FnMut(u64),
    ) {
        let mask = match multicast {
            Multicast::Mask(slot) => self.registers.get(active.window, slot, lane),
            Multicast::All => (1 << self.launch.cluster_blocks()) - 1,
        };
        let at = self.lane_addresses(address, active)(lane);
        let generic = address.space == Space::Generic;
        ranks(Some(mask)).into_iter().flatten().for_each(|rank| f(map_shared(at, rank, generic)));
    }

    /// [`Gang::resolve_access`] for a matrix behind a descriptor (a factor of `wgmma`, or what `tcgen05` reads):
    /// calls `f` for each 16 bytes.
    fn each_unit(
        &self,
        op: &Op,
        access: &Access,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let Start::Descriptor(slot) = access.start else { return };
        if let Kind::TensorMemory(op) = &op.kind {
            for lane in mask {
                let units = self.tensor_units(op, slot, active.window, lane);
                units.into_iter().for_each(|address| f(lane, address, ROW_BYTES));
            }
        }
        let Kind::Warp { op: warp_op, .. } = &op.kind else { return };
        let WarpOp::Matrix(Ok(MatrixOp::Multiply(multiply))) = &**warp_op else { return };
        for (warp, _) in mask.warps() {
            for factor in [&multiply.a, &multiply.b] {
                if matches!(factor.source, MatrixSource::Shared { descriptor, .. } if descriptor == slot) {
                    self.each_tile(factor, warp, active.window, |tile| {
                        tile.addresses.iter().for_each(|&address| f(warp * WARP_LANES, address, ROW_BYTES));
                    });
                }
            }
        }
    }
}
