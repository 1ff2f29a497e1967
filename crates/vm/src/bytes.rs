//! Memory that the interpreter itself uses, and access to elements of arrays.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;

use ir::Width;

thread_local! {
    /// The registers' memory of an earlier launch. Clearing new memory takes longer than a small launch.
    static SPARE: Cell<Option<AlignedBytes>> = const { Cell::new(None) };
}

/// The most bytes that a host thread keeps for its next launch.
const SPARE_BYTES: usize = 1 << 20;

/// Bytes, aligned for the widest vector loads.
pub(crate) struct AlignedBytes {
    /// The first aligned byte.
    start: NonNull<u8>,
    bytes: usize,
    /// The host allocation that contains the bytes, and its layout.
    storage: NonNull<u8>,
    layout: Layout,
}

impl AlignedBytes {
    const ALIGN: usize = 64;

    /// `bytes` zero bytes. The host provides the pages of a large allocation when they are first touched, but only if
    /// the allocation asks for no more than the default alignment. So the storage is larger, and the bytes begin at an
    /// aligned address in it.
    ///
    /// # Panics
    /// When there can be no array of this size. Callers have limits far below that.
    pub fn zeroed(bytes: usize) -> AlignedBytes {
        let bytes = bytes.max(Self::ALIGN);
        let size = bytes.checked_add(Self::ALIGN);
        let layout = size.and_then(|size| Layout::from_size_align(size, align_of::<u64>()).ok());
        let layout = layout.expect("an array that fits into the address space");
        // SAFETY: the layout is not empty.
        let storage = NonNull::new(unsafe { alloc_zeroed(layout) });
        let storage = storage.unwrap_or_else(|| handle_alloc_error(layout));
        let address = storage.as_ptr().addr();
        // SAFETY: the storage has `ALIGN` bytes more than requested.
        let start = unsafe { storage.add(address.next_multiple_of(Self::ALIGN) - address) };
        AlignedBytes { start, bytes, storage, layout }
    }

    /// The memory that this host thread kept for its next launch, with arbitrary contents.
    pub fn spare() -> Option<AlignedBytes> {
        SPARE.try_with(Cell::take).ok().flatten()
    }

    /// Keeps the memory for the next launch of this host thread, unless it is large.
    pub fn keep(self) {
        if self.len() <= SPARE_BYTES {
            // A thread that is ending keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(Some(self)));
        }
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: the storage was allocated with this layout, and only its owner frees it.
        unsafe { dealloc(self.storage.as_ptr(), self.layout) }
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

/// Element `lane` of an array of numbers at any address.
///
/// # Safety
/// The array must have such an element.
pub(crate) unsafe fn load_unaligned(array: *const u8, width: Width, lane: usize) -> u64 {
    let mut value = [0; 8];
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(array.add(lane * width.bytes()), value.as_mut_ptr(), width.bytes())
    }
    u64::from_le_bytes(value)
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
