//! The register file of a gang.
//!
//! Registers are structures of arrays: a slot is one array with an element for each lane. Beside its array, each slot
//! can have an *affine form*. If the lanes' values step evenly along the rows and columns of the block, the slot keeps
//! only the base and the steps, and fills the array when an operation reads it. So work that is uniform in a block, or
//! steps evenly from thread to thread (indices, addresses), runs once for the gang and not once for each lane. A loaded
//! value may also stay in memory until the single operation that reads it.
//!
//! No lane ever shows a value of an earlier launch, although a host thread keeps the memory of its registers for its
//! next launch: the first partial write to an array clears it. Narrowest test:
//! `no_lane_shows_what_an_earlier_launch_left`.

use compacted::{Compaction, is_compacted_only};
use ir::Width;
use lanes::{Factor, Helpers, HostPath};
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};

use crate::affine::{Affine, LaneRows};
use crate::bytes::{AlignedBytes, store};
use crate::pattern::Pattern;

mod compacted;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use compacted::COMPACTED_LANES;

/// The width as the vector handlers name it.
pub(crate) fn lane_width(width: Width) -> lanes::LaneWidth {
    match width {
        Width::Pred => lanes::LaneWidth::Bit,
        Width::W16 => lanes::LaneWidth::B2,
        Width::W32 => lanes::LaneWidth::B4,
        Width::W64 => lanes::LaneWidth::B8,
    }
}

/// The place of a slot, relative to its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRef {
    /// Index of its state, which includes the affine form.
    pub index: u32,
    /// Byte offset of its array.
    pub offset: u32,
    /// Bytes of one group of 16 lanes.
    pub group_bytes: u8,
    pub width: Width,
}

impl SlotRef {
    pub fn new(index: u32, offset: u32, width: Width) -> SlotRef {
        let group_bytes = match width {
            Width::Pred => 2,
            width => width.bytes() * GROUP_LANES,
        };
        SlotRef { index, offset, group_bytes: group_bytes as u8, width }
    }
}

/// The registers of one activation of a function: where its slots begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub index: u32,
    pub offset: u32,
}

/// Which forms of a slot are valid.
mod form {
    pub const ARRAY: u8 = 1;
    pub const AFFINE: u8 = 2;
    /// The pattern of the array is known.
    pub const PATTERN: u8 = 4;
    /// The first group of the array holds the value that is uniform in all lanes.
    pub const GROUP: u8 = 8;
    /// The values are in memory, one group after the other, as the first two fields of [`State::memory`](super::State) describe.
    pub const MEMORY: u8 = 16;
    /// The values are in memory in rows, as [`State::memory`](super::State) describes.
    pub const ROWS: u8 = 32;
    /// The values of the compacted lanes are stored consecutively; see [`super::compacted`].
    pub const COMPACTED: u8 = 64;
}

/// The forms that decide how a vector handler reads the slot.
#[inline]
pub(crate) fn without_pattern(forms: u8) -> u8 {
    forms & !(form::PATTERN | form::COMPACTED)
}

/// The slot's values are in rows of memory.
#[inline]
pub(crate) fn is_rows(forms: u8) -> bool {
    forms & form::ROWS != 0
}

/// The slot's values are in memory, in consecutive groups.
#[inline]
pub(crate) fn is_memory(forms: u8) -> bool {
    forms & form::MEMORY != 0
}

/// The forms of a slot.
#[derive(Clone, Copy)]
struct State {
    forms: u8,
    affine: Affine,
    memory: Factor,
    /// All lanes of the array have been written or cleared in this launch. No lane holds a value of an earlier launch.
    written: bool,
}

impl State {
    const ZERO: State =
        State { forms: form::AFFINE, affine: Affine::uniform(0), memory: Factor::NONE, written: false };
}

/// Values of lanes as vector handlers read them: groups of 16 lanes, the first at `array`, with a stride of `step` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Groups {
    pub array: *const u8,
    pub step: usize,
}

impl Groups {
    /// The address of group `group`.
    #[inline]
    pub fn at_group(self, group: usize) -> *const u8 {
        self.array.wrapping_add(group.wrapping_mul(self.step))
    }
}

/// The most bytes that the registers of all calls in progress of a gang may take.
pub(crate) const REGISTER_LIMIT: u64 = 1 << 30;
/// Bytes of an array of the widest elements.
const SCRATCH_BYTES: usize = 8 * GANG_LANES;

pub(crate) struct Registers {
    /// The arrays of the slots, and at the end two scratch arrays for results that are merged into their slots afterwards.
    data: AlignedBytes,
    /// Bytes from this offset on were zero when this launch got them. Bytes before it may hold values of an earlier launch.
    fresh: usize,
    states: Vec<State>,
    /// This launch has made calls, so the bytes after the kernel's own slots have been cleared.
    has_calls: bool,
    patterns: Vec<Option<Box<Pattern>>>,
    /// Present once lanes have been compacted.
    compaction: Option<Box<Compaction>>,
    /// The lanes of an array and their rows.
    rows: LaneRows,
    helpers: &'static Helpers,
}

impl Registers {
    pub fn new(rows: LaneRows, path: HostPath) -> Registers {
        let data = AlignedBytes::spare().unwrap_or_else(|| AlignedBytes::zeroed(2 * SCRATCH_BYTES));
        Registers {
            fresh: data.len(),
            data,
            states: Vec::new(),
            has_calls: false,
            patterns: Vec::new(),
            compaction: None,
            rows,
            helpers: lanes::helpers(path),
        }
    }

    pub fn helpers(&self) -> &'static Helpers {
        self.helpers
    }

    pub fn rows(&self) -> LaneRows {
        self.rows
    }

    /// Makes room for windows up to `slots` slots and `bytes` bytes. The file never shrinks. Returns true if the arrays have moved.
    pub fn grow(&mut self, slots: usize, bytes: usize) -> bool {
        if slots > self.states.len() {
            self.states.resize(slots, State::ZERO);
            self.patterns.resize(slots, None);
        }
        let bytes = bytes + 2 * SCRATCH_BYTES;
        if bytes > self.data.len() {
            let data = AlignedBytes::zeroed(bytes.next_power_of_two());
            let slots = self.data.len() - 2 * SCRATCH_BYTES;
            self.fresh = slots;
            // SAFETY: both have at least `slots` bytes and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(self.data.as_ptr(), data.as_ptr(), slots) }
            self.data = data;
            return true;
        }
        false
    }

    /// Makes room for the window of a call and resets its slots, whose memory other functions may have used. Returns
    /// true if the arrays have moved.
    pub fn open(&mut self, w: Window, slots: usize, bytes: usize) -> bool {
        let moved = self.grow(w.index as usize + slots, w.offset as usize + bytes);
        if !std::mem::replace(&mut self.has_calls, true) {
            let (start, end) = (w.offset as usize, self.data.len() - 2 * SCRATCH_BYTES);
            let end = end.min(self.fresh).max(start);
            // SAFETY: the file has these bytes, and no slot in use is there.
            unsafe { std::ptr::write_bytes(self.data.as_ptr().add(start), 0, end - start) }
        }
        self.states[w.index as usize..][..slots].fill(State { written: true, ..State::ZERO });
        moved
    }

    #[inline]
    fn state(&self, w: Window, slot: SlotRef) -> &State {
        &self.states[(w.index + slot.index) as usize]
    }

    #[inline]
    fn state_mut(&mut self, w: Window, slot: SlotRef) -> &mut State {
        &mut self.states[(w.index + slot.index) as usize]
    }

    /// The affine form, if the slot has one.
    #[inline]
    pub fn affine(&self, w: Window, slot: SlotRef) -> Option<Affine> {
        let state = self.state(w, slot);
        (state.forms & form::AFFINE != 0).then_some(state.affine)
    }

    /// The slot has an affine form.
    #[inline]
    pub fn has_affine(&self, w: Window, slot: SlotRef) -> bool {
        self.state(w, slot).forms & form::AFFINE != 0
    }

    /// The valid forms, for [`without_pattern`] and [`is_memory`].
    #[inline]
    pub fn forms(&self, w: Window, slot: SlotRef) -> u8 {
        self.state(w, slot).forms
    }

    /// A reference to the affine form, if the slot has one.
    #[inline]
    pub fn affine_if_known(&self, w: Window, slot: SlotRef) -> Option<&Affine> {
        let state = self.state(w, slot);
        (state.forms & form::AFFINE != 0).then_some(&state.affine)
    }

    /// The forms of the slot with this index in the file.
    ///
    /// # Safety
    /// A slot of some window must have this index.
    #[inline]
    pub unsafe fn forms_at(&self, place: u32) -> u8 {
        debug_assert!((place as usize) < self.states.len());
        // SAFETY: the caller's promise; windows are within the file (`grow`).
        unsafe { self.states.get_unchecked(place as usize).forms }
    }

    /// Notes that the array of the slot with this index in the file has just been written.
    ///
    /// # Safety
    /// As for [`Registers::forms_at`].
    #[inline]
    pub unsafe fn set_array(&mut self, place: u32) {
        debug_assert!((place as usize) < self.states.len());
        // SAFETY: as in `forms_at`.
        unsafe { self.states.get_unchecked_mut(place as usize).forms = form::ARRAY }
    }

    /// The affine form of a slot that has one.
    #[inline]
    pub fn known_affine(&self, w: Window, slot: SlotRef) -> &Affine {
        &self.state(w, slot).affine
    }

    /// The uniform value of all lanes, if the affine form shows one.
    #[inline]
    pub fn uniform(&self, w: Window, slot: SlotRef) -> Option<u64> {
        self.affine(w, slot).filter(|s| s.is_uniform()).map(|s| s.base)
    }

    /// Sets all lanes to an affine form.
    #[inline]
    pub fn set_affine(&mut self, w: Window, slot: SlotRef, affine: Affine) {
        let bits = slot.width.truncate(u64::MAX);
        let affine = affine.map(|part| part & bits);
        let state = self.state_mut(w, slot);
        // If the value is unchanged, the first group of the array still holds it: keep that form.
        if state.forms & form::GROUP == 0 || state.affine != affine {
            state.forms = form::AFFINE;
            state.affine = affine;
        }
    }

    /// Sets all lanes to values in memory. The caller guarantees that the memory stays unchanged until the slot is
    /// written again or no longer read.
    #[inline]
    pub fn set_memory(&mut self, w: Window, slot: SlotRef, memory: Groups) {
        let state = self.state_mut(w, slot);
        state.forms = form::MEMORY;
        (state.memory.array, state.memory.step) = (memory.array, memory.step);
    }

    /// Like [`Registers::set_memory`], for rows of memory. Only links of chains read rows in place.
    #[inline]
    pub fn set_rows(&mut self, w: Window, slot: SlotRef, memory: Factor) {
        let state = self.state_mut(w, slot);
        state.forms = form::ROWS;
        state.memory = memory;
    }

    /// The values of a slot of 4 bytes, as a factor of a chain.
    pub fn factor(&mut self, w: Window, slot: SlotRef) -> Factor {
        let source = self.source(w, slot);
        self.spaced(source.array, source.step)
    }

    /// Consecutive values of 4 bytes.
    pub fn consecutive(&self, array: *const u8) -> Factor {
        self.spaced(array, 4 * GROUP_LANES)
    }

    /// Groups with a stride of `step` bytes.
    fn spaced(&self, array: *const u8, step: usize) -> Factor {
        let (groups, rows, _) = self.rows.groups();
        let pitch = step * groups;
        Factor { array, step, pitch, block_stride: pitch * rows, splat: false }
    }

    /// Sets a slot to zero.
    pub fn reset(&mut self, w: Window, index: u32) {
        let state = &mut self.states[(w.index + index) as usize];
        *state = State { written: state.written, ..State::ZERO };
    }

    /// The array of a slot for reading, filled from the other forms if necessary.
    #[inline]
    pub fn read(&mut self, w: Window, slot: SlotRef) -> *const u8 {
        if self.state(w, slot).forms & form::ARRAY == 0 {
            self.fill(w, slot);
        }
        self.array(w, slot)
    }

    /// The array of a slot, if it is valid.
    pub fn array_if_read(&self, w: Window, slot: SlotRef) -> Option<*const u8> {
        (self.state(w, slot).forms & form::ARRAY != 0).then(|| self.array(w, slot).cast_const())
    }

    /// The memory that holds the values of a slot. Valid only if the slot has that form.
    #[inline]
    pub fn memory(&self, w: Window, slot: SlotRef) -> Groups {
        let Factor { array, step, .. } = self.state(w, slot).memory;
        Groups { array, step }
    }

    /// The values of a slot for a vector handler.
    #[inline]
    pub fn source(&mut self, w: Window, slot: SlotRef) -> Groups {
        let state = self.state(w, slot);
        match state.forms & (form::ARRAY | form::GROUP | form::MEMORY) {
            form::MEMORY => self.memory(w, slot),
            form::GROUP => Groups { array: self.array(w, slot), step: 0 },
            0 => self.other_source(w, slot),
            _ => Groups { array: self.array(w, slot), step: usize::from(slot.group_bytes) },
        }
    }

    /// Reads a slot that has no array: it has only an affine form, or its values are in rows of memory or compacted.
    #[inline(never)]
    fn other_source(&mut self, w: Window, slot: SlotRef) -> Groups {
        let State { forms, affine, .. } = *self.state(w, slot);
        let array = self.array(w, slot).cast_const();
        if slot.width == Width::Pred || forms & form::AFFINE == 0 || !affine.is_uniform() {
            self.fill(w, slot);
            return Groups { array, step: usize::from(slot.group_bytes) };
        }
        // SAFETY: the array has at least one group.
        unsafe { (self.helpers.fill)(array.cast_mut(), lane_width(slot.width), affine.base, GROUP_LANES) }
        self.state_mut(w, slot).forms |= form::GROUP;
        Groups { array, step: 0 }
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, w: Window, slot: SlotRef) {
        let State { forms, affine, memory, .. } = *self.state(w, slot);
        if is_compacted_only(forms) {
            return self.expand_slot(w, slot);
        }
        let array = self.array(w, slot);
        let (rows, width) = (self.rows, lane_width(slot.width));
        // SAFETY: the slot's array has `lanes` elements of its width. So has the memory: the load that set this form
        // checked it for all lanes. Allocations live as long as the launch, and shared memory as long as the gang;
        // memory of the device heap never becomes a form.
        unsafe {
            if forms & form::MEMORY != 0 {
                let bytes = usize::from(slot.group_bytes);
                let memory = Groups { array: memory.array, step: memory.step };
                for group in 0..rows.lanes / GROUP_LANES {
                    std::ptr::copy_nonoverlapping(memory.at_group(group), array.add(group * bytes), bytes);
                }
            } else if forms & form::ROWS != 0 {
                let (groups, count, blocks) = rows.groups();
                let of_block = lanes::MemoryRows { count, groups, pitch: memory.pitch };
                for block in 0..blocks {
                    let to = array.add(block * count * groups * usize::from(slot.group_bytes));
                    let from = memory.array.wrapping_add(block.wrapping_mul(memory.block_stride));
                    (self.helpers.copy_rows)(to, width, from, of_block, memory.splat);
                }
            } else if affine.is_uniform() {
                (self.helpers.fill)(array, width, affine.base, rows.lanes);
            } else if affine.is_linear(affine.step, rows) {
                (self.helpers.ramp)(array, width, affine.base, affine.step, rows.lanes);
            } else {
                for row in 0..rows.count() {
                    let lane = row * rows.width();
                    let (start, room) = (affine.at(lane, rows), rows.lanes - lane);
                    let to = array.add(lane * slot.width.bytes());
                    // Rows are filled in ascending order: the next row overwrites the elements past the end of a row.
                    let filled = rows.width().next_multiple_of(GROUP_LANES);
                    if filled <= room {
                        (self.helpers.ramp)(to, width, start, affine.step, filled);
                        continue;
                    }
                    for column in 0..rows.width() {
                        let value = start.wrapping_add(affine.step.wrapping_mul(column as u64));
                        store(to, slot.width, column, value);
                    }
                }
            }
        }
        let state = self.state_mut(w, slot);
        state.written = true;
        state.forms = state.forms & !(form::GROUP | form::MEMORY | form::ROWS) | form::ARRAY;
    }

    /// The pattern of a slot's array in the lanes of `mask`. The array must have been [`read`](Self::read).
    #[inline]
    pub fn pattern(&mut self, w: Window, slot: SlotRef, mask: Mask) -> Pattern {
        let i = (w.index + slot.index) as usize;
        if self.states[i].forms & form::PATTERN != 0
            && let Some(pattern) = &self.patterns[i]
            && pattern.mask == mask
        {
            return **pattern;
        }
        let array = self.array(w, slot).cast_const();
        // SAFETY: the array has elements of its width for all lanes.
        let pattern = unsafe { Pattern::find(array, lane_width(slot.width), mask, self.helpers) };
        self.states[i].forms |= form::PATTERN;
        match &mut self.patterns[i] {
            Some(place) => **place = pattern,
            place => *place = Some(Box::new(pattern)),
        }
        pattern
    }

    /// The array of a slot for writing all lanes. The old values may be lost.
    #[inline]
    pub fn overwrite(&mut self, w: Window, slot: SlotRef) -> *mut u8 {
        let state = self.state_mut(w, slot);
        state.forms = form::ARRAY;
        if !state.written {
            self.clear(w, slot);
        }
        self.array(w, slot)
    }

    /// Zeroes the array of a slot.
    #[cold]
    fn clear(&mut self, w: Window, slot: SlotRef) {
        let bytes = usize::from(slot.group_bytes) * self.rows.lanes / GROUP_LANES;
        // SAFETY: the array has `bytes` bytes.
        unsafe { std::ptr::write_bytes(self.array(w, slot), 0, bytes) }
        self.state_mut(w, slot).written = true;
    }

    /// The array of a slot for writing some lanes. The other lanes keep their values.
    #[inline]
    pub fn update(&mut self, w: Window, slot: SlotRef) -> *mut u8 {
        self.read(w, slot);
        self.overwrite(w, slot)
    }

    /// The scratch array for output `which`, from which the results are merged.
    #[inline]
    pub fn scratch(&self, which: usize) -> *mut u8 {
        // SAFETY: the file ends with two scratch arrays.
        unsafe { self.data.as_ptr().add(self.data.len() - (which + 1) * SCRATCH_BYTES) }
    }

    /// Copies the lanes of `mask` from scratch array `which` into a slot.
    #[inline]
    pub fn merge(&mut self, w: Window, slot: SlotRef, which: usize, mask: Mask) {
        let dst = self.update(w, slot);
        let src = self.scratch(which);
        let groups = mask.group_span();
        // SAFETY: both have `lanes` elements of the slot's width.
        unsafe { (self.helpers.merge)(dst, src, lane_width(slot.width), &mask.0, groups.0..groups.1) }
    }

    /// The address of a slot's array.
    #[inline]
    pub fn array(&self, w: Window, slot: SlotRef) -> *mut u8 {
        debug_assert!(
            (w.offset + slot.offset) as usize + slot.width.bytes() * self.rows.lanes <= self.data.len()
        );
        // SAFETY: windows are within the file (`grow`), and slots within their window.
        unsafe { self.data.as_ptr().add((w.offset + slot.offset) as usize) }
    }

    /// Extends the low `bits` bits of every element of `src` to an element of `dst`, which is at least as wide.
    ///
    /// # Safety
    /// Both arrays must have `lanes` elements of their widths; neither may be scratch array 1.
    pub unsafe fn resize(
        &self,
        (dst, dst_width): (*mut u8, Width),
        (src, src_width): (*const u8, Width),
        bits: u32,
        signed: bool,
        lanes: usize,
    ) {
        let storage = if bits <= 16 { Width::W16 } else { Width::W32 };
        let mut src = src;
        // SAFETY: the caller's promise.
        unsafe {
            if src_width > storage {
                (self.helpers.truncate)(
                    self.scratch(1),
                    lane_width(storage),
                    src,
                    lane_width(src_width),
                    lanes,
                );
                src = self.scratch(1);
            }
            let from = match (bits, signed) {
                (8, false) => lanes::Extend::U8,
                (8, true) => lanes::Extend::S8,
                (16, false) => lanes::Extend::U16,
                (16, true) => lanes::Extend::S16,
                (_, false) => lanes::Extend::U32,
                (_, true) => lanes::Extend::S32,
            };
            if storage.bits() == bits && dst_width == storage {
                std::ptr::copy(src, dst, storage.bytes() * lanes);
            } else {
                (self.helpers.extend)(dst, lane_width(dst_width), src, from, lanes);
            }
        }
    }

    /// Writes `value` to the lanes of `mask`. `whole`: the values of the other lanes are not needed.
    #[inline]
    pub fn set_all(&mut self, w: Window, slot: SlotRef, value: u64, mask: Mask, whole: bool) {
        if whole {
            self.set_affine(w, slot, Affine::uniform(value));
        } else if slot.width == Width::Pred {
            let value = if value & 1 != 0 { Mask::ALL } else { Mask::EMPTY };
            self.set_predicate(w, slot, value, mask);
        } else {
            // SAFETY: the scratch array has room for `lanes` elements.
            unsafe { (self.helpers.fill)(self.scratch(0), lane_width(slot.width), value, self.rows.lanes) }
            self.merge(w, slot, 0, mask);
        }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        std::mem::replace(&mut self.data, AlignedBytes::zeroed(0)).keep();
    }
}
