//! Where an allocation lies.

use crate::fault::FaultKind;

/// Place and size of an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// First device address.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Host address of the first byte; `None` once freed.
    pub storage: Option<*mut u8>,
}

impl Extent {
    /// Host address of `bytes` bytes at device address `address`.
    ///
    /// # Errors
    /// When they are not all in this allocation, or it was freed.
    pub fn resolve(&self, address: u64, bytes: u64) -> Result<*mut u8, FaultKind> {
        let offset = address.checked_sub(self.base).ok_or(FaultKind::OutOfBounds)?;
        if offset > self.bytes || bytes > self.bytes - offset {
            return Err(FaultKind::OutOfBounds);
        }
        let storage = self.storage.ok_or(FaultKind::UseAfterFree)?;
        // Memory of the host is many of its objects: no pointer may be offset from one into another.
        Ok(storage.wrapping_add(offset as usize))
    }
}
