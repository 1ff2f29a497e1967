//! Device memory of the program, in place.

use std::ffi::{CString, c_void};
use std::fmt;

use crate::driver::{Driver, Error, checked};

/// Types of which any bytes are a value, and all of whose bytes are initialized.
///
/// # Safety
/// That must hold.
pub unsafe trait Value: Copy + Send + Sync + 'static {}

macro_rules! values {
    ($($ty:ty)*) => { $(
        // SAFETY: any bytes are such a number.
        unsafe impl Value for $ty {}
    )* };
}
values!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 usize);

// SAFETY: any bytes are such values, and arrays have no padding.
unsafe impl<T: Value, const N: usize> Value for [T; N] {}

/// Bytes of device memory (or pinned or managed memory) that are allocated, or will be when a graph is launched. It is checked when the
/// program calls, and reached when the work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    address: u64,
    bytes: u64,
}

/// Why a range is refused, in words for the program's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds(String);

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Range {
    /// The `count` values at a pointer of the program, checked against the allocation there. `what` names them in the error: "A",
    /// "the pointers of B"; `shape` says why there are so many: "64 columns of 32 rows, lda 100".
    ///
    /// # Errors
    /// If the pointer is not aligned to the values, or not all of them are allocated. Nothing need be allocated for no values.
    pub fn of<T: Value>(
        pointer: *const T,
        count: usize,
        what: &str,
        shape: impl FnOnce() -> String,
    ) -> Result<Range, OutOfBounds> {
        let address = pointer.expose_provenance() as u64;
        let Some(bytes) = count.checked_mul(size_of::<T>()).and_then(|bytes| u64::try_from(bytes).ok())
        else {
            return Err(OutOfBounds(format!("{what} has more bytes than there are addresses: {}", shape())));
        };
        if bytes == 0 {
            return Ok(Range { address: 0, bytes: 0 });
        }
        if !address.is_multiple_of(align_of::<T>() as u64) {
            let align = align_of::<T>();
            return Err(OutOfBounds(format!("{what} at {address:#x} is not aligned to {align} bytes")));
        }
        let Ok(driver) = Driver::get() else { return Err(OutOfBounds("there is no driver of ptxvm".into())) };
        let (mut base, mut size) = (0, 0);
        // SAFETY: both are places for results.
        if unsafe { (driver.range)(address, bytes, &raw mut base, &raw mut size) } == 0 {
            return Ok(Range { address, bytes });
        }
        let allocation = match size {
            0 => "no device memory is allocated there".to_owned(),
            _ => format!(
                "the allocation there has {size} bytes at {base:#x}, {} from here on",
                base + size - address
            ),
        };
        let shape = shape();
        Err(OutOfBounds(format!("{what} at {address:#x} needs {bytes} bytes ({shape}), and {allocation}")))
    }

    /// Its first address.
    pub fn address(self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// The memory itself, for work that runs in a stream. `who` is the function that uses it.
    ///
    /// # Errors
    /// If it has been freed in the meantime, or lies in pieces that the program mapped one behind the other.
    pub fn reach(self, who: &str) -> Result<Memory, Error> {
        let mut memory = Memory { range: self, start: std::ptr::null_mut(), hold: std::ptr::null_mut() };
        if self.bytes == 0 {
            return Ok(memory);
        }
        let driver = Driver::get()?;
        let who = CString::new(who).unwrap_or_default();
        // SAFETY: the text is zero-terminated, and the others are places for results.
        checked(unsafe {
            (driver.borrow)(
                self.address,
                self.bytes,
                who.as_ptr(),
                &raw mut memory.start,
                &raw mut memory.hold,
            )
        })?;
        Ok(memory)
    }
}

/// Whether a pointer of the program names device memory (or managed or pinned memory), so that work in a stream can reach it.
pub fn is_of_device<T>(pointer: *const T) -> bool {
    let address = pointer.expose_provenance() as u64;
    let none = std::ptr::null_mut();
    // SAFETY: no results are wanted.
    Driver::get().is_ok_and(|driver| unsafe { (driver.range)(address, 1, none, none) } == 0)
}

/// Device memory as memory of the host. It stays valid while this lives, even if the program frees it. Kernels of other streams may
/// access it at the same time: such a program has a race, as on a GPU, so it is reached through pointers.
#[derive(Debug)]
pub struct Memory {
    range: Range,
    start: *mut c_void,
    hold: *mut c_void,
}

// SAFETY: the memory may be reached from any thread while it is held.
unsafe impl Send for Memory {}
// SAFETY: as above; whoever writes through the pointers answers for what others do at the same time.
unsafe impl Sync for Memory {}

impl Memory {
    /// Its first value. For an empty range it is dangling.
    pub fn pointer<T: Value>(&self) -> *mut T {
        if self.start.is_null() {
            std::ptr::without_provenance_mut(align_of::<T>())
        } else {
            self.start.cast()
        }
    }

    /// How many values it has.
    pub fn count<T: Value>(&self) -> usize {
        self.range.bytes as usize / size_of::<T>()
    }

    /// A copy of its values.
    pub fn read<T: Value>(&self) -> Vec<T> {
        // SAFETY: the values are there, and any bytes are values.
        (0..self.count::<T>()).map(|i| unsafe { self.pointer::<T>().add(i).read_unaligned() }).collect()
    }

    /// Writes a value, and tells the driver.
    ///
    /// # Panics
    /// If it has no such value.
    pub fn write<T: Value>(&self, index: usize, value: T) {
        assert!(index < self.count::<T>(), "a value beyond the memory");
        // SAFETY: there is such a value.
        unsafe { self.pointer::<T>().add(index).write_unaligned(value) };
        self.wrote::<T>(index, 1);
    }

    /// Tells the driver that values have been written: `count` from `index` on. The program's tools (initcheck) go by it.
    pub fn wrote<T: Value>(&self, index: usize, count: usize) {
        let (at, bytes) = ((index * size_of::<T>()) as u64, (count * size_of::<T>()) as u64);
        let bytes = bytes.min(self.range.bytes.saturating_sub(at));
        if let Ok(driver) = Driver::get()
            && bytes > 0
        {
            // SAFETY: the function takes any numbers.
            unsafe { (driver.wrote)(self.range.address + at, bytes) }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(driver) = Driver::get()
            && !self.hold.is_null()
        {
            // SAFETY: the driver gave it for this, once.
            unsafe { (driver.give_back)(self.hold) }
        }
    }
}
