//! Tensor copies: they move a box of a tensor between global and shared memory, and complete at once. `sem` maps the
//! bytes of the tensor to the bytes of shared memory.
//!
//! A tensor map is 128 bytes in memory (`sem::tensormap`). Both engines read it when a copy is issued, so kernels can
//! also create maps. docs/tensors.md lists the open questions. Narrowest tests: `ptxvm`: `tensor`; `tests/run`:
//! `tensor_*`.

use diag::Span;
use ir::{MbarrierOp, TensorKind, TensorMapCopy, TensorMapReplace};
use isa::{Space, Validity};
use machine::mask::{Mask, WARP_LANES};
use machine::memory::{rank_of_address, resolve};
use machine::{Fault, FaultKind};
use sem::tensormap::{BYTES, Elements, Field, Place, Row, TensorMap};
use sem::validity::is_found;

use super::addresses::Region;
use super::atomic::reduce_elements;
use super::copy::ranks;
use super::request::Request;
use super::{Active, Execute, Gang, Step};
use crate::code::{Address, Kind, MemoryOp, Op};
use crate::registers::SlotRef;
use crate::shared::Shared;

type TensorOp = ir::TensorOp<SlotRef, Address>;

/// Alignment of a box in shared memory (9.7.9.25.5.2 cp.async.bulk.tensor).
const BOX_ALIGN: u64 = 128;
/// Alignment of a tensor map in memory (CUDA Driver API, `cuTensorMapEncodeTiled`).
const MAP_ALIGN: u64 = 64;

/// A buffer for one row of a box, aligned for any element.
struct Line(Vec<u64>);

impl Line {
    fn new(map: &TensorMap) -> Line {
        Line(vec![0; map.row_bytes().div_ceil(8)])
    }

    fn bytes(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// One lane's tensor copy.
struct Transfer<'a> {
    op: &'a TensorOp,
    map: TensorMap,
    place: Place,
    /// How a reduction computes.
    elements: Option<Elements>,
    lane: usize,
    span: Span,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`
impl Execute for TensorOp {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        for lane in active.mask {
            let (map, place) = gang.tensor(self, active, lane, span)?;
            let elements = map
                .fits_instruction(&self.picks, &place)
                .map_err(|misfit| gang.map_fault(span, lane, &misfit.to_string()))?;
            if self.kind == TensorKind::Prefetch {
                continue;
            }
            let at = gang.lane_addresses(&self.shared, active)(lane);
            let transfer = Transfer { op: self, map, place, elements, lane, span };
            if self.kind != TensorKind::Load {
                gang.store_box(&transfer, shared, at)?;
                continue;
            }
            let blocks = self.blocks.map(|slot| gang.registers.get(active.window, slot, lane));
            let object = self.mbarrier.as_ref().map(|a| (a.space, gang.lane_addresses(a, active)(lane)));
            for rank in ranks(blocks) {
                let to = gang.in_block(at, self.shared.space, rank);
                let is_reported = gang.load_box(&transfer, shared, to)?;
                let Some((space, object)) = object else { continue };
                let rank = rank_of_address(to, self.shared.space == Space::Generic);
                let object = match self.is_pair() {
                    // The object is in the pair of CTAs that receives the data; its address says in which of the two.
                    true => {
                        let of_pair = rank_of_address(object, space == Space::Generic) & 1;
                        gang.in_block(object, space, Some(rank & !1 | of_pair))
                    }
                    false if blocks.is_some() => gang.in_block(object, space, Some(rank)),
                    false => object,
                };
                let to = if self.is_pair() { (space, object) } else { (self.shared.space, to) };
                if is_reported {
                    gang.apply_mbarrier(MbarrierOp::Report, 0, space, object, lane, shared, span)?;
                }
                gang.complete_copy(map.box_bytes(&place), (space, object), to, lane, shared, span)?;
            }
        }
        Ok(())
    }
}

/// `tensormap.replace`
impl Execute for TensorMapReplace<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let Some(field) = Field::of(&self.picks, self.ordinal) else { return Ok(()) };
        for lane in active.mask {
            let at = gang.lane_addresses(&self.address, active)(lane);
            let value = gang.registers.get(active.window, self.value, lane);
            let place = gang.map_place(shared, &self.address, at, true, lane, span)?;
            let copy = gang.registers.helpers().copy;
            let mut bytes = [0; BYTES];
            // SAFETY: the place holds a tensor map, and the parts lie within it.
            unsafe {
                copy(bytes.as_mut_ptr(), place, BYTES);
                for part in field.replace(&mut bytes, value) {
                    copy(place.add(part.start), bytes.as_ptr().add(part.start), part.len());
                }
            }
        }
        Ok(())
    }
}

/// `tensormap.cp_fenceproxy`
impl Execute for TensorMapCopy<Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        for (warp, lanes) in active.mask.warps() {
            let lane = warp * WARP_LANES + lanes.trailing_zeros() as usize;
            let [to, from] = [&self.dst, &self.src].map(|address| gang.lane_addresses(address, active)(lane));
            let to = gang.map_place(shared, &self.dst, to, true, lane, span)?;
            let from = gang.map_place(shared, &self.src, from, false, lane, span)?;
            // SAFETY: both places hold a tensor map.
            unsafe { (gang.registers.helpers().copy)(to, from, BYTES) }
        }
        Ok(())
    }
}

impl Gang<'_> {
    fn map_fault(&self, span: Span, lane: usize, note: &str) -> Box<Fault> {
        self.fault(FaultKind::TensorMap, span, Mask::single(lane), None, note)
    }

    /// The tensor map of a lane, and the place in the tensor that the lane's coordinates name.
    fn tensor(&self, op: &TensorOp, active: &Active, lane: usize, span: Span) -> Step<(TensorMap, Place)> {
        let at = self.lane_addresses(&op.map, active)(lane);
        let request = Request { space: op.map.space, bytes: BYTES as u64, write: false, span };
        if !at.is_multiple_of(MAP_ALIGN) {
            return Err(self.access_fault(FaultKind::Misaligned, &request, lane, at));
        }
        let Some(bytes) = self.map_bytes(op.map.space, at) else {
            return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, at));
        };
        let map = TensorMap::from_bytes(&bytes)
            .map_err(|_| self.map_fault(span, lane, "there is no tensor map at this address"))?;
        Ok((map, self.tensor_place(op, active, lane)))
    }

    fn tensor_place(&self, op: &TensorOp, active: &Active, lane: usize) -> Place {
        let numbers = |slots: &[_]| -> smallvec::SmallVec<[u64; 5]> {
            slots.iter().map(|&slot| self.registers.get(active.window, slot, lane)).collect()
        };
        Place::of(&op.picks, &numbers(&op.coordinates), &numbers(&op.offsets))
    }

    /// The bytes of a tensor map, which is in global memory, constant memory or a parameter.
    fn map_bytes(&self, space: Space, address: u64) -> Option<[u8; BYTES]> {
        let (space, at) = resolve(space, address);
        let memory: &[u8] = match space {
            Space::Const => self.launch.constants(),
            Space::Param => self.launch.params(),
            Space::Global => {
                let allocation = self.launch.allocation(at)?;
                let end = allocation.base + allocation.bytes;
                if at.checked_add(BYTES as u64)? > end {
                    return None;
                }
                let from = allocation.storage?.wrapping_add((at - allocation.base) as usize);
                // SAFETY: the allocation holds these bytes. Bytes have no alignment.
                return Some(unsafe { from.cast::<[u8; BYTES]>().read() });
            }
            _ => return None,
        };
        let start = usize::try_from(at).ok()?;
        memory.get(start..start.checked_add(BYTES)?)?.try_into().ok()
    }

    /// The region of the box in shared memory.
    fn box_region(&self, transfer: &Transfer, shared: &Shared, at: u64, write: bool) -> Step<Region> {
        let space = transfer.op.shared.space;
        let request =
            Request { space, bytes: transfer.map.shared_bytes(&transfer.place), write, span: transfer.span };
        let fault = |kind| Err(self.access_fault(kind, &request, transfer.lane, at));
        if !at.is_multiple_of(BOX_ALIGN) {
            return fault(FaultKind::Misaligned);
        }
        match self.region(shared, &request, at, at) {
            Some(region) => Ok(region),
            None => fault(Self::why_outside(shared, space, at)),
        }
    }

    /// The host address of a row in the tensor. `last` is the region of the previous row, which usually holds this
    /// one, too.
    fn line_region(
        &self,
        transfer: &Transfer,
        shared: &Shared,
        row: &Row,
        write: bool,
        last: &mut Option<Region>,
    ) -> Step<*mut u8> {
        let (bytes, start) = (row.inside.len() as u64, row.global);
        let request = Request { space: Space::Global, bytes, write, span: transfer.span };
        let known = last.and_then(|region| region.holding(start, start.checked_add(bytes)?));
        *last = known.or_else(|| self.region(shared, &request, start, start));
        match last {
            // SAFETY: the region holds this line.
            Some(region) => Ok(unsafe { region.at(start) }),
            None => {
                let kind = Self::why_outside(shared, Space::Global, start);
                Err(self.access_fault(kind, &request, transfer.lane, start))
            }
        }
    }

    /// Copies a box to shared memory. Returns whether the data contains what the instruction asks to be reported.
    fn load_box(&self, transfer: &Transfer, shared: &Shared, at: u64) -> Step<bool> {
        let map = &transfer.map;
        let (report, mut is_reported) = (Validity::of(&transfer.op.picks), false);
        let region = self.box_region(transfer, shared, at, true)?;
        let (mut line, mut last, length) = (Line::new(map), None, map.row_bytes());
        for row in map.rows(&transfer.place) {
            // SAFETY: the line has room for a row, and the region holds all of the box. It is shared memory of the
            // cluster, which only this host thread accesses.
            unsafe {
                let bytes = line.bytes();
                if row.inside.len() < length {
                    map.fill(std::slice::from_raw_parts_mut(bytes, length));
                }
                if !row.inside.is_empty() {
                    let from = self.line_region(transfer, shared, &row, false, &mut last)?;
                    std::ptr::copy_nonoverlapping(from, bytes.add(row.inside.start), row.inside.len());
                    let read = bytes.add(row.inside.start);
                    let read = std::slice::from_raw_parts_mut(read, row.inside.len());
                    is_reported |= report.is_some_and(|report| is_found(report, row.global, read));
                    map.convert(read);
                }
                map.each_piece(at.wrapping_add(row.shared), |part, place| {
                    std::ptr::copy_nonoverlapping(bytes.add(part.start), region.at(place), part.len());
                });
            }
        }
        Ok(is_reported)
    }

    /// The row as a store or a reduction writes it: whole units of 16 bytes, as far as the tensor's memory goes. (That
    /// of a GPU goes on to the next multiple of 256 bytes.)
    fn with_tail(&self, map: &TensorMap, row: Row) -> Row {
        if row.tail == 0 || row.inside.is_empty() {
            return row;
        }
        let end = row.global.wrapping_add(row.inside.len() as u64);
        let allocation = self.launch.allocation(end.wrapping_sub(1));
        let room =
            allocation.map_or(0, |allocation| (allocation.base + allocation.bytes).saturating_sub(end));
        let tail = room.min(row.tail as u64) as usize / map.element_bytes().max(1) * map.element_bytes();
        Row { inside: row.inside.start..row.inside.end + tail, ..row }
    }

    fn store_box(&self, transfer: &Transfer, shared: &Shared, at: u64) -> Step {
        let map = &transfer.map;
        let region = self.box_region(transfer, shared, at, false)?;
        let (mut line, mut last, copy) = (Line::new(map), None, self.registers.helpers().copy);
        for row in map.rows(&transfer.place).filter(|row| !row.inside.is_empty()) {
            let row = self.with_tail(map, row);
            let to = self.line_region(transfer, shared, &row, true, &mut last)?;
            // SAFETY: the line has room for a row. The regions hold the box and the row's part inside the tensor. The
            // tensor's elements are aligned, because its address and its strides are.
            unsafe {
                let bytes = line.bytes();
                map.each_piece(at.wrapping_add(row.shared), |part, place| {
                    std::ptr::copy_nonoverlapping(region.at(place), bytes.add(part.start), part.len());
                });
                let (from, count) = (bytes.add(row.inside.start), row.inside.len());
                match (transfer.op.kind, transfer.elements) {
                    (TensorKind::Reduce(op), Some(elements)) => {
                        let Elements { ty, addition } = elements;
                        reduce_elements(&ir::Reduction { op, ty, addition }, from, to, count);
                    }
                    _ => copy(to, from, count),
                }
            }
        }
        Ok(())
    }

    /// The host address of a tensor map.
    fn map_place(
        &self,
        shared: &Shared,
        address: &Address,
        at: u64,
        write: bool,
        lane: usize,
        span: Span,
    ) -> Step<*mut u8> {
        let request = Request { space: address.space, bytes: BYTES as u64, write, span };
        if !at.is_multiple_of(MAP_ALIGN) {
            return Err(self.access_fault(FaultKind::Misaligned, &request, lane, at));
        }
        match self.region(shared, &request, at, at) {
            // SAFETY: the region was found for this address.
            Some(region) => Ok(unsafe { region.at(at) }),
            None => {
                let kind = Self::why_outside(shared, address.space, at);
                Err(self.access_fault(kind, &request, lane, at))
            }
        }
    }

    /// Calls `f` with lane, address and size of every part of the box of a copy: in shared memory if `side` is its
    /// address there, else in global memory. Both sides have the same parts in the same order. A part outside the
    /// tensor has no bytes in global memory.
    pub(super) fn each_line(
        &self,
        op: &Op,
        side: Option<&Address>,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let Kind::Memory(op) = &op.kind else { return };
        let MemoryOp::CopyTensor(op) = &**op else { return };
        for lane in mask {
            // Faults are skipped: executing the instruction will report them.
            let Ok((map, place)) = self.tensor(op, active, lane, Span::default()) else { continue };
            if map.fits_instruction(&op.picks, &place).is_err() {
                continue;
            }
            let at = side.map(|address| (address.space, self.lane_addresses(address, active)(lane)));
            let blocks = op.blocks.map(|slot| self.registers.get(active.window, slot, lane));
            let blocks = if side.is_some() { ranks(blocks) } else { ranks(None) };
            for rank in blocks {
                let start = at.map_or(0, |(space, at)| self.in_block(at, space, rank));
                for row in map.rows(&place) {
                    let row = if op.kind == TensorKind::Load { row } else { self.with_tail(&map, row) };
                    map.each_piece(start.wrapping_add(row.shared), |part, to| {
                        let inside = part.start.max(row.inside.start)..part.end.min(row.inside.end);
                        match at {
                            // A load also writes the bytes outside the tensor: it fills them.
                            Some(_) if op.kind == TensorKind::Load => f(lane, to, part.len() as u64),
                            Some(_) => {
                                let skipped = inside.start.saturating_sub(part.start) as u64;
                                f(lane, to + skipped, inside.len() as u64);
                            }
                            None => {
                                let skipped = inside.start.saturating_sub(row.inside.start) as u64;
                                f(lane, row.global.wrapping_add(skipped), inside.len() as u64);
                            }
                        }
                    });
                }
            }
        }
    }

    /// Bytes that a lane's copy completes at its mbarrier object.
    pub(super) fn tensor_bytes(&self, op: &TensorOp, active: &Active, lane: usize) -> u64 {
        self.tensor(op, active, lane, Span::default()).map_or(0, |(map, place)| map.box_bytes(&place))
    }
}
