//! Allocation of columns (9.7.16.7.1 tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit).

use std::ops::Range;

use super::{COLUMNS, Misuse};

/// The allocated columns of a CTA's tensor memory.
///
/// *Ours*: an allocation begins at the lowest multiple of its size where it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    live: Vec<Range<usize>>,
    /// Columns of the most recent allocation.
    last: Option<usize>,
    relinquished: bool,
}

impl Allocations {
    /// Allocates columns and returns their address; `None` while there is no room.
    ///
    /// # Errors
    /// When the CTA may not allocate this number.
    pub fn allocate(&mut self, columns: u64) -> Result<Option<u64>, Misuse> {
        let columns = count(columns)?;
        if self.relinquished {
            return Err(Misuse::Relinquished);
        }
        if self.last.is_some_and(|last| columns > last) {
            return Err(Misuse::Growing);
        }
        let is_free =
            |start: &usize| self.live.iter().all(|live| live.end <= *start || *start + columns <= live.start);
        let Some(start) = (0..COLUMNS).step_by(columns).find(is_free) else { return Ok(None) };
        self.last = Some(columns);
        self.live.push(start..start + columns);
        Ok(Some(start as u64))
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// When no allocation of this number of columns begins at the address.
    pub fn release(&mut self, address: u64, columns: u64) -> Result<(), Misuse> {
        let columns = count(columns)?;
        let start = usize::try_from(address).map_err(|_| Misuse::NotAllocated)?;
        let found = self.live.iter().position(|live| live.start == start && live.len() == columns);
        self.live.swap_remove(found.ok_or(Misuse::NotAllocated)?);
        Ok(())
    }

    /// Ends the CTA's permission to allocate.
    pub fn relinquish(&mut self) {
        self.relinquished = true;
    }

    /// Whether nothing is allocated.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Checks that all of these columns are allocated. They may belong to several adjacent allocations.
    ///
    /// # Errors
    /// When one is not allocated, or does not exist.
    pub fn check(&self, columns: Range<usize>) -> Result<(), Misuse> {
        if columns.end > COLUMNS {
            return Err(Misuse::Outside);
        }
        let mut from = columns.start;
        while from < columns.end {
            let holding = self.live.iter().find(|live| live.contains(&from));
            from = holding.ok_or(Misuse::Unallocated)?.end;
        }
        Ok(())
    }
}

fn count(columns: u64) -> Result<usize, Misuse> {
    match columns {
        32 | 64 | 128 | 256 | 512 => Ok(columns as usize),
        _ => Err(Misuse::Columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_given_out_once_and_waited_for() {
        let mut all = Allocations::default();
        assert_eq!(all.allocate(256), Ok(Some(0)));
        assert_eq!(all.allocate(128), Ok(Some(256)));
        assert_eq!(all.allocate(128), Ok(Some(384)));
        assert_eq!(all.allocate(32), Ok(None));
        assert_eq!(all.check(200..512), Ok(()));
        assert_eq!(all.release(256, 128), Ok(()));
        assert_eq!(all.check(200..512), Err(Misuse::Unallocated));
        assert_eq!(all.check(500..513), Err(Misuse::Outside));
        assert_eq!(all.allocate(32), Ok(Some(256)));
        assert_eq!(all.allocate(64), Err(Misuse::Growing));
        assert_eq!(all.release(256, 64), Err(Misuse::NotAllocated));
        assert_eq!(all.release(257, 32), Err(Misuse::NotAllocated));
        all.relinquish();
        assert_eq!(all.allocate(32), Err(Misuse::Relinquished));
        assert_eq!(all.release(256, 32), Ok(()));
        assert_eq!(all.release(384, 128), Ok(()));
        assert_eq!(all.release(0, 256), Ok(()));
        assert!(all.is_empty());
        assert_eq!(Allocations::default().allocate(48), Err(Misuse::Columns));
    }
}
