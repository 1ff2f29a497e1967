//! Loops that run as native code.
//!
//! The code takes one or two groups of 16 lanes at a time from the start of the loop to its exits. So a path becomes a path
//! at each exit that has lanes, as if its branches had been interpreted. Other lanes of a group keep their values.
//!
//! An access to memory is checked against the region that it has used last. If lanes are outside, the code asks for
//! another region (`find_region`). If no single one holds all their accesses, the lanes leave before the operation. Then
//! the interpreter goes on with them from there, and lanes that have not been in the loop yet wait at its start.
//!
//! The code takes a limited number of backward branches. Then lanes that are left in the loop become paths there, and
//! the gang gives others their time slice. Every group gets its share, because it may wait for another one.
//!
//! Narrowest test: `ptxvm/tests/native`.

use std::cell::Cell;
use std::time::Instant;

use ir::BlockId;
use isa::Space;
use jit::{Form, Frame, Held};
use lanes::{LaneArgs, ProductScratch, WarpProduct};
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};
use machine::memory::HEAP_BASE;
use smallvec::SmallVec;

use super::addresses::Region;
use super::request::Request;
use super::strips::{Strips, keep_frame, spare_frame};
use super::{Gang, Path};
use crate::affine::{Affine, LaneRows};
use crate::code::{Compiled, Kind, Lap, MatrixOp, NativeLoop, Op, Turn, WarpOp};
use crate::local_memory::Part;
use crate::registers::{SlotRef, Window};
use crate::shared::Shared;

/// The most backward branches of all groups together until the gang looks whether the launch has been cancelled, and lets
/// other gangs run.
const FUEL: i64 = 1 << 20;

thread_local! {
    /// Buffers for products, which a host thread keeps.
    static SCRATCH: Cell<ProductScratch> = Cell::default();
}

/// How native code ended.
pub(super) enum Ran<'c> {
    /// All lanes have left the loop.
    Through,
    /// Lanes may be left in it.
    OutOfFuel,
    /// The lanes of the path left before the first of these operations of their basic block.
    Left(&'c [Op]),
}

/// Memory that an access has used.
#[derive(Clone, Copy)]
pub(super) struct KnownRegion {
    region: jit::Region,
    /// Bytes from the copy of one CTA to that of the next.
    stride: usize,
}

impl From<jit::Region> for KnownRegion {
    /// Memory that is the same for all CTAs.
    fn from(region: jit::Region) -> KnownRegion {
        KnownRegion { region, stride: 0 }
    }
}

/// What `find_region` needs.
struct Context<'r, 'g> {
    gang: &'r Gang<'g>,
    shared: &'r Shared,
    native: &'r NativeLoop,
    code: &'r Compiled,
    regions: &'r mut [Option<KnownRegion>],
    local: [Part; 2],
    /// See [`Strips::by_block`].
    by_block: bool,
}

impl KnownRegion {
    /// Memory for accesses of so many bytes.
    pub fn new(region: Region, bytes: u64) -> Option<KnownRegion> {
        let room = (region.end - region.base + 1).checked_sub(bytes)?;
        let stride = region.stride;
        Some(KnownRegion { region: jit::Region { start: region.base, room, host: region.storage }, stride })
    }

    /// It has all bytes from `start` to `end`, exclusive. Its own accesses are of one byte.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        let jit::Region { start: first, room, .. } = self.region;
        start >= first && end - first <= room
    }

    /// Where the host has an address.
    pub fn address(&self, address: u64) -> usize {
        self.region.host.wrapping_add(address.wrapping_sub(self.region.start) as usize).addr()
    }

    /// Bytes from the copy of one CTA to that of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The same memory for all CTAs. `None`: no memory.
    pub fn of(known: Option<KnownRegion>) -> jit::Region {
        known.map_or(jit::Region::NONE, |known| known.region)
    }

    fn of_block(self, block: usize) -> jit::Region {
        jit::Region { host: self.region.host.wrapping_add(block * self.stride), ..self.region }
    }
}

/// A slot's affine form, with its parts extended to 64 bits.
pub(super) fn signed(affine: Affine, slot: SlotRef) -> Affine {
    match slot.width {
        ir::Width::W32 => affine.map(|part| part as i32 as u64),
        _ => affine,
    }
}

/// How the values step in each pair of groups, the first of which has an even number. `None`: not in all of them alike.
pub(super) fn form(affine: Affine, rows: LaneRows) -> Option<Form> {
    let (step, pitch) = (affine.step as i64, affine.pitch as i64);
    let linear = Some(Form { step, span: step.wrapping_mul(GROUP_LANES as i64) });
    match rows.width() {
        _ if affine.is_uniform() => Some(Form::UNIFORM),
        _ if affine.is_linear(affine.step, rows) => linear,
        _ if !rows.has_whole_groups() => None,
        width if width.is_multiple_of(2 * GROUP_LANES) => linear,
        GROUP_LANES if rows.blocks() == 1 || rows.in_block().is_multiple_of(2) => {
            Some(Form { step, span: pitch })
        }
        _ => None,
    }
}

impl Gang<'_> {
    /// How the values of a slot step, as native code must know it.
    pub(super) fn native_form(&self, window: Window, slot: SlotRef) -> Option<Form> {
        let affine = *self.registers.affine_if_known(window, slot)?;
        form(signed(affine, slot), self.registers.rows())
    }

    /// Whether these lanes run a loop as native code now. Otherwise it may be measured.
    pub(super) fn runs_native(&mut self, native: &NativeLoop, lanes: Mask) -> bool {
        let rows = self.registers.rows();
        // The accesses of a call are those of one CTA.
        let fits = native.plan.accesses.is_empty()
            || rows.blocks() == 1
            || rows.block_lanes().is_multiple_of(2 * GROUP_LANES);
        // Parts of a warp would leave it before they exchange values, and come back without having done anything.
        let fits = fits && (!native.plan.whole_warps || lanes.is_whole_warps_of(self.alive));
        match native.turn(self.launch.native_code) {
            _ if !fits => false,
            Turn::Native => true,
            Turn::Interpret => false,
            Turn::Measure => {
                Lap::next(&mut self.lap, &native.paces, self.steps.instructions);
                false
            }
        }
    }

    /// Takes a path that is at the start of a loop through the loop.
    pub(super) fn run_native<'c>(
        &mut self,
        path: &mut Path,
        native: &'c NativeLoop,
        code: &Compiled,
        window: Window,
        shared: &Shared,
    ) -> Ran<'c> {
        let start = Instant::now();
        self.registers.expand();
        let rows = self.registers.rows();
        let parts = code.native.parts();
        let mut strips = Strips::new(rows, parts, &code.evens);
        code.words.iter().for_each(|&(slot, defined)| strips.words.push(self.word(window, slot, defined)));
        code.evens.iter().for_each(|&slot| strips.evens.push(self.form_of(window, slot)));
        let predicates: SmallVec<[Mask; 4]> =
            native.predicates.iter().map(|&(slot, _)| self.registers.predicate(window, slot)).collect();

        let (first, end) = path.mask.group_span();
        let first = first / parts * parts;
        let blocks = native.plan.blocks.len();
        let accesses = native.first_access..native.first_access + native.plan.accesses.len();
        let mut frame = spare_frame();
        frame.lanes = path.mask.0;
        for (place, predicate) in frame.predicates.iter_mut().zip(&predicates) {
            *place = predicate.0;
        }
        frame.exits[..native.plan.exits.len()].fill(Mask::EMPTY.0);
        strips.plan(&mut frame, std::iter::empty());
        let count = (end - first).div_ceil(parts) as i64;
        frame.share = if native.plan.accesses.is_empty() { FUEL } else { FUEL / count.max(1) };
        frame.fuel = frame.share;
        (frame.find_region, frame.call) = (find_region, call);
        let mut regions = std::mem::take(&mut self.caches.regions);
        // Calls of functions move local memory.
        let is_local = |access: &jit::Access| access.space == Space::Local;
        for (known, access) in regions[accesses.clone()].iter_mut().zip(&native.plan.accesses) {
            *known = known.filter(|_| !is_local(access));
        }
        let writes = native.plan.accesses.iter().any(|access| is_local(access) && access.write);
        let local = self.local.parts(writes);
        frame.local_lanes = self.local.lanes() as u64;

        // The lanes that are at the start of each basic block of the loop.
        let mut inside: SmallVec<[Mask; 8]> = SmallVec::from_elem(Mask::EMPTY, blocks);
        let (mut left, mut out_of_fuel) = (None, false);
        let (first, end) = (first / parts, end.div_ceil(parts));
        let mut next = first;
        while next < end {
            strips.begin(&mut frame, next, end);
            let (block, by_block) = (strips.block(next), strips.by_block());
            for (index, known) in regions[accesses.clone()].iter().enumerate() {
                frame.regions[index] = known.map_or(jit::Region::NONE, |known| known.of_block(block));
                frame.strides[index] = known.map_or(0, |known| known.stride * usize::from(by_block));
            }
            frame.left = 0;
            let known = &mut regions[accesses.clone()];
            let mut context = Context { gang: self, shared, native, code, regions: known, local, by_block };
            frame.context = (&raw mut context).cast();
            // SAFETY: the code was made for the machine's vectors. The words are arrays with room for the elements of all
            // groups; those that the loop writes are the gang's own. Regions are memory of the launch that holds the access,
            // and lives as long as the gang.
            unsafe { code.native.run(&mut frame) }
            next = frame.strip as usize;
            if frame.left == 0 && frame.fuel >= 0 {
                continue;
            }
            // Lanes of this strip are still inside.
            let group = next * parts;
            let of_strip = |lanes: u32| {
                let mut mask = Mask::EMPTY;
                mask.set_group(group, lanes as u16);
                if lanes >> 16 != 0 {
                    mask.set_group(group + 1, (lanes >> 16) as u16);
                }
                mask
            };
            let mut all = of_strip(frame.left);
            for (&lanes, inside) in frame.pending.iter().zip(&mut inside) {
                *inside |= of_strip(lanes);
                all |= of_strip(lanes);
            }
            self.keep_evens(code, &frame, &strips.evens, group, all, window);
            next += 1;
            if frame.left != 0 {
                let lanes = of_strip(frame.left);
                self.keep_spilled(code, &frame, group, lanes, window);
                left = Some((lanes, &code.native.points()[frame.point as usize]));
                break;
            }
            out_of_fuel = true;
            if native.plan.accesses.is_empty() {
                break;
            }
            frame.fuel = frame.share;
        }
        // The lanes that have been in the loop. Others wait at its start.
        let ran = path.mask & Mask::first(strips.first_lane(next).min(GANG_LANES));
        inside[0] |= path.mask & !ran;
        let calls = (next - first) as u32;
        self.caches.regions = regions;
        native.note(calls, left.is_some());
        for (&(slot, defined), &value) in native.predicates.iter().zip(&frame.predicates) {
            if defined {
                self.registers.set_predicate(window, slot, Mask(value), ran);
            }
        }
        let instructions = std::mem::take(&mut frame.instructions);
        self.steps.instructions += instructions;
        native.paces.note_native(start.elapsed(), instructions);
        self.lap = None;

        let exits = native.plan.exits.iter().copied().zip(frame.exits.iter().map(|&lanes| Mask(lanes)));
        let mut places: SmallVec<[(BlockId, Mask); 4]> = native
            .plan
            .blocks
            .clone()
            .map(BlockId)
            .zip(inside)
            .chain(exits)
            .filter(|(_, lanes)| !lanes.is_empty())
            .collect();
        keep_frame(frame);
        if let Some((_, point)) = left {
            for (block, lanes) in places {
                self.split(path, lanes, block.0);
            }
            self.scheduler.needed_changed = true;
            path.block = native.plan.blocks.start + point.block as u32;
            return Ran::Left(&native.operations[point.block][point.operation..]);
        }
        // The lowest basic block runs first.
        places.sort_by_key(|(block, _)| *block);
        if let [(first, _), others @ ..] = &places[..] {
            for (block, lanes) in others {
                self.split(path, *lanes, block.0);
                self.scheduler.needed_changed = true;
            }
            path.block = first.0;
        }
        if out_of_fuel { Ran::OutOfFuel } else { Ran::Through }
    }

    /// Writes the values that step evenly, for lanes that are still in the loop.
    fn keep_evens(
        &mut self,
        code: &Compiled,
        frame: &Frame,
        entered: &[Affine],
        group: usize,
        lanes: Mask,
        window: Window,
    ) {
        let evens = code.native.evens().iter().zip(&code.evens).zip(entered).zip(&frame.bases);
        for (((even, &slot), entered), &base) in evens.filter(|(((even, _), _), _)| even.defined) {
            let first = group * GROUP_LANES;
            let old = slot.width.truncate(entered.at(first, self.registers.rows()));
            // The slot keeps its form.
            if even.enters && old == base {
                continue;
            }
            for lane in lanes {
                let offset = even.form.offset((lane - first) / GROUP_LANES, lane % GROUP_LANES);
                self.registers.set(window, slot, lane, base.wrapping_add_signed(offset));
            }
        }
    }

    /// Writes the values that the basic block has computed for the operations that the lanes have not executed yet.
    fn keep_spilled(&mut self, code: &Compiled, frame: &Frame, group: usize, lanes: Mask, window: Window) {
        let first = group * GROUP_LANES;
        for &(slot, held) in &code.points[frame.point as usize] {
            match held {
                Held::Vectors(index) => {
                    let bytes = &frame.spilled.as_flattened()[index..];
                    let width = slot.width.bytes().max(4);
                    for lane in lanes {
                        let mut value = [0; 8];
                        value[..width].copy_from_slice(&bytes[(lane - first) * width..][..width]);
                        self.registers.set(window, slot, lane, u64::from_le_bytes(value));
                    }
                }
                Held::Mask(index) => {
                    let [a, b, c, d, ..] = frame.spilled[index];
                    let bits = u32::from_le_bytes([a, b, c, d]);
                    let mut value = Mask::EMPTY;
                    value.set_group(group, bits as u16);
                    if bits >> 16 != 0 {
                        value.set_group(group + 1, (bits >> 16) as u16);
                    }
                    self.registers.set_predicate(window, slot, value, lanes);
                }
            }
        }
    }
}

/// Finds the region that holds an access of all lanes that ask.
extern "C" fn find_region(frame: *mut Frame, access: usize) -> bool {
    // SAFETY: `run_native` calls the code with a frame and a context that live until it returns, and uses neither
    // meanwhile.
    let (frame, context) = unsafe {
        let frame = &mut *frame;
        let context = &mut *frame.context.cast::<Context>();
        (frame, context)
    };
    let Some(region) = context.find(frame, access) else { return false };
    context.regions[access] = Some(region);
    let first_lane = frame.strip as usize * context.code.native.parts() * GROUP_LANES;
    frame.regions[access] = region.of_block(context.gang.registers.rows().block_of(first_lane));
    frame.strides[access] = region.stride * usize::from(context.by_block);
    true
}

/// Computes an operation for the lanes of all groups of a call.
extern "C" fn call(frame: *mut Frame, index: usize) {
    // SAFETY: as in `find_region`.
    let (frame, context) = unsafe {
        let frame = &mut *frame;
        let context = &*frame.context.cast::<Context>();
        (frame, context)
    };
    compute(frame, &context.native.calls[index], context.code.native.parts() * GROUP_LANES);
}

/// Computes an operation whose sources [`Frame::operands`] has.
pub(super) fn compute(frame: &mut Frame, op: &Op, lanes: usize) {
    let op = match &op.kind {
        Kind::Pure(op) => op,
        Kind::Warp { op, .. } => return multiply(frame, op),
        _ => return,
    };
    let (sources, results) = frame.operands.split_at_mut(op.sources);
    let Some(result) = results.first_mut() else { return };
    let widths = op.src().iter().map(|slot| slot.width);
    if let (Some(handler), [Some(dst), None]) = (op.lanes, op.dst) {
        let mut args = LaneArgs {
            dst: [result.as_mut_ptr(), std::ptr::null_mut()],
            src: [std::ptr::null(); LaneArgs::SOURCES],
            step: [0; LaneArgs::SOURCES],
            lanes,
        };
        debug_assert!(dst.width.bytes() * lanes <= result.len());
        for (i, (source, width)) in sources.iter().zip(widths).enumerate() {
            (args.src[i], args.step[i]) = (source.as_ptr(), width.bytes() * GROUP_LANES);
        }
        // SAFETY: every operand has an element of its width for all lanes. The handler was looked up for this host.
        unsafe { handler.call(&args) }
        return;
    }
    for lane in 0..lanes {
        let operand = |(source, width): (&[u8; 256], ir::Width)| {
            let mut value = [0; 8];
            let bytes = width.bytes();
            value[..bytes].copy_from_slice(&source[lane * bytes..][..bytes]);
            u64::from_le_bytes(value)
        };
        let values: SmallVec<[u64; 4]> = sources.iter().zip(widths.clone()).map(operand).collect();
        let [value, _] = (op.sem)(&op.picks, &values);
        let bytes = op.dst[0].map_or(0, |slot| slot.width.bytes());
        result[lane * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}

/// Computes a product of matrices in the registers of a warp.
fn multiply(frame: &mut Frame, op: &WarpOp) {
    let WarpOp::Matrix(Ok(MatrixOp::Multiply(multiply))) = op else { return };
    let first = frame.operands.as_mut_ptr();
    let operand = |index| first.wrapping_add(index).cast();
    let Some((product, registers)) = multiply.tiles_at(operand) else { return };
    let warp = WarpProduct { first: 0, a_first: 0, b_first: Some(0), accumulates: true, negated: false };
    let mut scratch = SCRATCH.take();
    // SAFETY: the host has the instructions of the path; the operands have the words of a warp.
    let odd = unsafe { (multiply.helpers.multiply_tiles)(product, &registers, &[warp], &mut scratch) };
    debug_assert_eq!(odd, 0, "only sums of binary64 are computed in another way");
    SCRATCH.set(scratch);
}

/// The least and the greatest address of the lanes that ask. `form`: how addresses step. `None`: one is not allowed.
fn addresses_asked(frame: &Frame, access: &jit::Access, form: Option<Form>) -> Option<(u64, u64)> {
    let &jit::Access { align, offset, narrow, .. } = access;
    let (mut least, mut greatest) = (u64::MAX, 0);
    for lane in (0..u32::BITS as usize).filter(|lane| frame.asking >> lane & 1 != 0) {
        let address = match form {
            Some(form) => {
                let offset = form.offset(lane / GROUP_LANES, lane % GROUP_LANES);
                frame.addresses[0].wrapping_add_signed(offset)
            }
            None if narrow => frame.addresses[lane / 2] >> (lane % 2 * 32),
            None => frame.addresses[lane],
        };
        let address = address.wrapping_add_signed(offset);
        let address = if narrow { address & u64::from(u32::MAX) } else { address };
        if !address.is_multiple_of(align) {
            return None;
        }
        (least, greatest) = (least.min(address), greatest.max(address));
    }
    Some((least, greatest))
}

/// The memory that an access keeps, with the greatest address that is asked for.
fn kept_region(region: Region, access: &jit::Access, greatest: u64) -> Option<KnownRegion> {
    // As for inline caches: memory that may be gone the next time is looked up each time.
    if region.base >= HEAP_BASE || region.passing || !region.base.is_multiple_of(access.align) {
        return None;
    }
    let mut known = KnownRegion::new(region, access.bytes)?;
    // Offsets of narrow addresses are signed.
    if access.narrow {
        known.region.room = known.region.room.min(i32::MAX as u64);
    }
    (greatest - region.base < known.region.room).then_some(known)
}

/// The memory of a straight-line access whose addresses do not step evenly: the same for all blocks.
pub(super) fn asked_region(
    frame: &Frame,
    access: &jit::Access,
    find: impl FnOnce(&Request, u64, u64) -> Option<Region>,
) -> Option<jit::Region> {
    let (least, greatest) = addresses_asked(frame, access, None)?;
    let &jit::Access { space, bytes, write, span, .. } = access;
    let region = find(&Request { space, bytes, write, span }, least, greatest)?;
    kept_region(region, access, greatest).filter(|known| known.stride == 0).map(|known| known.region)
}

impl Context<'_, '_> {
    fn find(&self, frame: &Frame, index: usize) -> Option<KnownRegion> {
        let access = &self.native.plan.accesses[index];
        let (least, greatest) = addresses_asked(frame, access, self.code.native.addresses(index))?;
        let &jit::Access { space, bytes, write, span, .. } = access;
        if space == Space::Local {
            let end = greatest.checked_add(bytes)?;
            let fits = |part: &&Part| least >= part.start && end - part.start <= part.bytes;
            let part = self.local.iter().find(fits)?;
            let region =
                jit::Region { start: part.start, room: part.bytes - bytes + 1, host: part.rows.cast() };
            return Some(KnownRegion { region, stride: 0 });
        }
        let region =
            self.gang.region(self.shared, &Request { space, bytes, write, span }, least, greatest)?;
        kept_region(region, access, greatest)
    }
}
