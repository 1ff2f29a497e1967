//! The place of an allocation.

use crate::fault::FaultKind;

/// Addresses and storage of an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// First device address.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Host address of the first byte; `None` once freed, or if it is withheld.
    pub storage: Option<*mut u8>,
    /// Whether it is kept from the launch ([`LaunchConfig::withheld`](crate::LaunchConfig::withheld)).
    pub withheld: bool,
}

impl Extent {
    /// Host address of `bytes` bytes at device address `address`.
    ///
    /// # Errors
    /// When they are not all within this allocation, or it was freed or is withheld.
    #[inline]
    pub fn resolve(&self, address: u64, bytes: u64) -> Result<*mut u8, FaultKind> {
        let offset = address.checked_sub(self.base).ok_or(FaultKind::OutOfBounds)?;
        if offset > self.bytes || bytes > self.bytes - offset {
            return Err(FaultKind::OutOfBounds);
        }
        let gone = if self.withheld { FaultKind::PeerAccess } else { FaultKind::UseAfterFree };
        let storage = self.storage.ok_or(gone)?;
        // The window of host memory contains many Rust objects, and a pointer must not be offset from one object into another.
        Ok(storage.wrapping_add(offset as usize))
    }
}
