//! The register file of a chunk.
//!
//! Registers are structures of arrays: a slot is one array with an element a lane. Beside its array each slot has
//! a *scalar form*: if the lanes' values are `base + lane * stride`, that is noted, and the array is only filled
//! when some operation wants to read it. So work that is the same for all threads of a block, or steps evenly from
//! thread to thread (indices, addresses), is done once a chunk and not once a lane.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use ir::Width;

use crate::mask::{CHUNK_LANES, GROUP_LANES, Mask};
use lanes::{Helpers, HostPath};

/// Bytes, aligned for the widest vector loads.
pub(crate) struct AlignedBytes {
    storage: NonNull<u8>,
    layout: Layout,
}

impl AlignedBytes {
    const ALIGN: usize = 64;

    /// `bytes` zero bytes.
    pub fn zeroed(bytes: usize) -> AlignedBytes {
        let layout =
            Layout::from_size_align(bytes.max(Self::ALIGN), Self::ALIGN).unwrap_or(Layout::new::<u64>());
        // SAFETY: the layout is not empty.
        let storage = NonNull::new(unsafe { alloc_zeroed(layout) });
        AlignedBytes { storage: storage.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.storage.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.storage.as_ptr(), self.layout) }
    }
}

// SAFETY: it owns its bytes.
unsafe impl Send for AlignedBytes {}

/// The width in the terms of the vector handlers.
pub(crate) fn lane_width(width: Width) -> lanes::Width {
    match width {
        Width::Pred => lanes::Width::Bit,
        Width::W16 => lanes::Width::B2,
        Width::W32 => lanes::Width::B4,
        Width::W64 => lanes::Width::B8,
    }
}

/// Where a slot lies, relative to its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotRef {
    /// Index of its scalar form.
    pub index: u32,
    /// Byte offset of its array.
    pub offset: u32,
    /// Bytes of 16 lanes.
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

/// The registers of one activation of a function: where its slots start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub index: u32,
    pub offset: u32,
}

/// The lanes' values are `base + lane * stride`, cut to the slot's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub base: u64,
    pub stride: u64,
}

impl Scalar {
    pub fn uniform(base: u64) -> Scalar {
        Scalar { base, stride: 0 }
    }

    pub fn is_uniform(self) -> bool {
        self.stride == 0
    }
}

/// What the values of a slot have in common in some lanes: found once for all accesses that use it as an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// The lanes it holds for.
    mask: Mask,
    pub least: u64,
    pub greatest: u64,
    /// Bits in which any lane differs from the least.
    pub differ: u64,
    /// The step that all groups share, if they are whole and do: rows of a matrix, or one value for each group.
    pub common_step: Option<u64>,
    /// For each group, the step from lane to lane, or [`Pattern::NO_STEP`]; of all its lanes.
    steps: [u32; CHUNK_LANES / GROUP_LANES],
}

impl Pattern {
    const NO_STEP: u32 = u32::MAX;

    /// The step from lane to lane in a group, if it is even.
    #[inline]
    pub fn step(&self, group: usize) -> Option<u64> {
        (self.steps[group] != Self::NO_STEP).then_some(self.steps[group].into())
    }

    /// Some group has an even step.
    pub fn has_steps(&self) -> bool {
        self.steps.iter().any(|&step| step != Self::NO_STEP)
    }

    /// Finds the pattern of an array in the lanes of `mask`, which is not empty.
    ///
    /// # Safety
    /// The array must have elements for all groups with lanes in the mask.
    unsafe fn find<T: Copy + Into<u64>>(array: *const T, mask: Mask) -> Pattern {
        let (first, end) = mask.group_span();
        let mut pattern = Pattern {
            mask,
            least: u64::MAX,
            greatest: 0,
            differ: 0,
            common_step: None,
            steps: [Self::NO_STEP; CHUNK_LANES / GROUP_LANES],
        };
        let (mut ones, mut zeros) = (0, 0);
        let mut whole = true;
        for group in first..end {
            let lanes = mask.group(group);
            // SAFETY: the caller's promise.
            let values: [u64; GROUP_LANES] =
                std::array::from_fn(|i| unsafe { (*array.add(group * GROUP_LANES + i)).into() });
            if lanes == u16::MAX {
                let step = values[1].wrapping_sub(values[0]);
                let even = (0..GROUP_LANES)
                    .fold(0, |d, i| d | (values[i] ^ values[0].wrapping_add(step.wrapping_mul(i as u64))));
                if even == 0 && step < u64::from(Self::NO_STEP) {
                    pattern.steps[group] = step as u32;
                    // Ascending: the ends are the bounds.
                    pattern.least = pattern.least.min(values[0]);
                    pattern.greatest = pattern.greatest.max(values[GROUP_LANES - 1]);
                } else {
                    pattern.least = values.iter().fold(pattern.least, |m, &v| m.min(v));
                    pattern.greatest = values.iter().fold(pattern.greatest, |m, &v| m.max(v));
                }
                ones |= values.iter().fold(0, |b, &v| b | v);
                zeros |= values.iter().fold(0, |b, &v| b | !v);
            } else {
                whole = false;
                for (_, &v) in values.iter().enumerate().filter(|(i, _)| lanes >> i & 1 != 0) {
                    pattern.least = pattern.least.min(v);
                    pattern.greatest = pattern.greatest.max(v);
                    ones |= v;
                    zeros |= !v;
                }
            }
        }
        pattern.differ = ones & zeros;
        if whole && pattern.steps[first..end].iter().all(|&step| step == pattern.steps[first]) {
            pattern.common_step = pattern.step(first);
        }
        pattern
    }
}

/// Which forms of a slot are valid.
mod form {
    pub const ARRAY: u8 = 1;
    pub const SCALAR: u8 = 2;
    /// The pattern of the array is known.
    pub const PATTERN: u8 = 4;
}

pub(crate) struct Registers {
    data: AlignedBytes,
    forms: Vec<u8>,
    scalars: Vec<Scalar>,
    patterns: Vec<Option<Box<Pattern>>>,
    /// Two arrays for results that are merged into their slots afterwards.
    scratch: [AlignedBytes; 2],
    /// Lanes of an array.
    lanes: usize,
    helpers: &'static Helpers,
}

impl Registers {
    pub fn new(slots: usize, bytes: usize, lanes: usize, path: HostPath) -> Registers {
        Registers {
            data: AlignedBytes::zeroed(bytes),
            forms: vec![form::ARRAY; slots],
            scalars: vec![Scalar::uniform(0); slots],
            patterns: vec![None; slots],
            scratch: [AlignedBytes::zeroed(CHUNK_LANES * 8), AlignedBytes::zeroed(CHUNK_LANES * 8)],
            lanes,
            helpers: lanes::helpers(path),
        }
    }

    pub fn helpers(&self) -> &'static Helpers {
        self.helpers
    }

    /// Makes room for windows up to `slots` slots and `bytes` bytes.
    pub fn grow(&mut self, slots: usize, bytes: usize) {
        if slots > self.forms.len() {
            self.forms.resize(slots, form::ARRAY);
            self.scalars.resize(slots, Scalar::uniform(0));
            self.patterns.resize(slots, None);
        }
        if bytes > self.data.len() {
            let data = AlignedBytes::zeroed(bytes.next_power_of_two());
            // SAFETY: both are at least as long as the old one and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(self.data.as_ptr(), data.as_ptr(), self.data.len()) }
            self.data = data;
        }
    }

    /// The scalar form, if the slot has one.
    #[inline]
    pub fn scalar(&self, w: Window, slot: SlotRef) -> Option<Scalar> {
        let i = (w.index + slot.index) as usize;
        (self.forms[i] & form::SCALAR != 0).then(|| self.scalars[i])
    }

    /// The slot has a scalar form.
    #[inline]
    pub fn has_scalar(&self, w: Window, slot: SlotRef) -> bool {
        self.forms[(w.index + slot.index) as usize] & form::SCALAR != 0
    }

    /// The scalar form of a slot that has one.
    #[inline]
    pub fn known_scalar(&self, w: Window, slot: SlotRef) -> Scalar {
        self.scalars[(w.index + slot.index) as usize]
    }

    /// The value that all lanes share, if they do and it is noted.
    #[inline]
    pub fn uniform(&self, w: Window, slot: SlotRef) -> Option<u64> {
        self.scalar(w, slot).filter(|s| s.is_uniform()).map(|s| s.base)
    }

    /// Sets all lanes to a scalar form.
    #[inline]
    pub fn set_scalar(&mut self, w: Window, slot: SlotRef, scalar: Scalar) {
        let i = (w.index + slot.index) as usize;
        self.forms[i] = form::SCALAR;
        self.scalars[i] =
            Scalar { base: slot.width.truncate(scalar.base), stride: slot.width.truncate(scalar.stride) };
    }

    /// Sets a slot to zero.
    pub fn reset(&mut self, w: Window, index: u32) {
        let i = (w.index + index) as usize;
        self.forms[i] = form::SCALAR;
        self.scalars[i] = Scalar::uniform(0);
    }

    /// The array of a slot, filled from its scalar form where necessary, for reading.
    #[inline]
    pub fn read(&mut self, w: Window, slot: SlotRef) -> *const u8 {
        let i = (w.index + slot.index) as usize;
        if self.forms[i] & form::ARRAY == 0 {
            self.fill(w, slot, i);
        }
        self.array(w, slot)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, w: Window, slot: SlotRef, i: usize) {
        let Scalar { base, stride } = self.scalars[i];
        let array = self.array(w, slot);
        // SAFETY: the slot's array has `lanes` elements of its width.
        unsafe {
            if stride == 0 {
                (self.helpers.fill)(array, lane_width(slot.width), base, self.lanes);
            } else {
                (self.helpers.ramp)(array, lane_width(slot.width), base, stride, self.lanes);
            }
        }
        self.forms[i] |= form::ARRAY;
    }

    /// The pattern of a slot's array, which must have been [`read`](Self::read), in the lanes of `mask`.
    #[inline]
    pub fn pattern(&mut self, w: Window, slot: SlotRef, mask: Mask) -> Pattern {
        let i = (w.index + slot.index) as usize;
        if self.forms[i] & form::PATTERN != 0
            && let Some(pattern) = &self.patterns[i]
            && pattern.mask == mask
        {
            return **pattern;
        }
        let array = self.array(w, slot).cast_const();
        // SAFETY: the array has elements of its width for all lanes.
        let pattern = unsafe {
            match slot.width {
                Width::W64 => Pattern::find(array.cast::<u64>(), mask),
                _ => Pattern::find(array.cast::<u32>(), mask),
            }
        };
        self.forms[i] |= form::PATTERN;
        match &mut self.patterns[i] {
            Some(place) => **place = pattern,
            place => *place = Some(Box::new(pattern)),
        }
        pattern
    }

    /// The array of a slot for writing all lanes: its old values may be lost.
    #[inline]
    pub fn overwrite(&mut self, w: Window, slot: SlotRef) -> *mut u8 {
        self.forms[(w.index + slot.index) as usize] = form::ARRAY;
        self.array(w, slot)
    }

    /// The array of a slot for writing some lanes: the others keep their values.
    #[inline]
    pub fn update(&mut self, w: Window, slot: SlotRef) -> *mut u8 {
        self.read(w, slot);
        self.overwrite(w, slot)
    }

    /// Where the results of output `which` go before they are merged.
    #[inline]
    pub fn scratch(&self, which: usize) -> *mut u8 {
        self.scratch[which].as_ptr()
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

    #[inline]
    fn array(&self, w: Window, slot: SlotRef) -> *mut u8 {
        debug_assert!((w.offset + slot.offset) as usize + slot.width.bytes() * self.lanes <= self.data.len());
        // SAFETY: windows lie within the file (`grow`), and slots within their window.
        unsafe { self.data.as_ptr().add((w.offset + slot.offset) as usize) }
    }

    /// The value of one lane.
    #[inline]
    pub fn get(&self, w: Window, slot: SlotRef, lane: usize) -> u64 {
        let i = (w.index + slot.index) as usize;
        if self.forms[i] & form::ARRAY == 0 {
            let Scalar { base, stride } = self.scalars[i];
            return slot.width.truncate(base.wrapping_add(stride.wrapping_mul(lane as u64)));
        }
        // SAFETY: `lane` is below `lanes`, and arrays are aligned.
        unsafe { load(self.array(w, slot), slot.width, lane) }
    }

    /// Sets one lane; the others keep their values.
    #[inline]
    pub fn set(&mut self, w: Window, slot: SlotRef, lane: usize, value: u64) {
        let array = self.update(w, slot);
        // SAFETY: `lane` is below `lanes`, and arrays are aligned.
        unsafe { store(array, slot.width, lane, value) }
    }

    /// A predicate as a set of lanes. Bits past the existing lanes mean nothing.
    #[inline]
    pub fn predicate(&self, w: Window, slot: SlotRef) -> Mask {
        let i = (w.index + slot.index) as usize;
        if self.forms[i] & form::SCALAR != 0 {
            return if self.scalars[i].base != 0 { Mask::ALL } else { Mask::EMPTY };
        }
        // SAFETY: the array of a predicate is a `Mask` (32 bytes, aligned).
        unsafe { *self.array(w, slot).cast::<Mask>() }
    }

    /// Sets the lanes of `mask` to those of `value`.
    #[inline]
    pub fn set_predicate(&mut self, w: Window, slot: SlotRef, value: Mask, mask: Mask) {
        let old = self.predicate(w, slot);
        let array = self.overwrite(w, slot);
        // SAFETY: the array of a predicate is a `Mask` (32 bytes, aligned).
        unsafe { *array.cast::<Mask>() = old.without(mask) | (value & mask) }
    }

    /// The low `bits` bits of every element of `src`, extended to the elements of `dst`, which are at least as wide.
    ///
    /// # Safety
    /// Both arrays must have `lanes` elements of their widths; neither may be scratch array 1.
    pub unsafe fn resize(
        &self,
        dst: *mut u8,
        dst_width: Width,
        src: *const u8,
        src_width: Width,
        bits: u32,
        signed: bool,
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
                    self.lanes,
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
                std::ptr::copy(src, dst, storage.bytes() * self.lanes);
            } else {
                (self.helpers.extend)(dst, lane_width(dst_width), src, from, self.lanes);
            }
        }
    }

    /// Writes `value` to the lanes of `mask`; `whole` says that the other lanes' values are not needed.
    #[inline]
    pub fn set_all(&mut self, w: Window, slot: SlotRef, value: u64, mask: Mask, whole: bool) {
        if whole {
            self.set_scalar(w, slot, Scalar::uniform(value));
        } else if slot.width == Width::Pred {
            let value = if value & 1 != 0 { Mask::ALL } else { Mask::EMPTY };
            self.set_predicate(w, slot, value, mask);
        } else {
            // SAFETY: the scratch array has room for `lanes` elements.
            unsafe { (self.helpers.fill)(self.scratch(0), lane_width(slot.width), value, self.lanes) }
            self.merge(w, slot, 0, mask);
        }
    }
}

/// Element `lane` of an array.
///
/// # Safety
/// The array must have such an element and be aligned to its width.
#[inline]
pub(crate) unsafe fn load(array: *const u8, width: Width, lane: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            Width::Pred => u64::from(*array.add(lane / 8) >> (lane % 8) & 1),
            Width::W16 => u64::from(*array.cast::<u16>().add(lane)),
            Width::W32 => u64::from(*array.cast::<u32>().add(lane)),
            Width::W64 => *array.cast::<u64>().add(lane),
        }
    }
}

/// Sets element `lane` of an array.
///
/// # Safety
/// The array must have such an element and be aligned to its width.
#[inline]
pub(crate) unsafe fn store(array: *mut u8, width: Width, lane: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            Width::Pred => {
                let byte = array.add(lane / 8);
                *byte = *byte & !(1 << (lane % 8)) | ((value & 1) as u8) << (lane % 8);
            }
            Width::W16 => *array.cast::<u16>().add(lane) = value as u16,
            Width::W32 => *array.cast::<u32>().add(lane) = value as u32,
            Width::W64 => *array.cast::<u64>().add(lane) = value,
        }
    }
}
