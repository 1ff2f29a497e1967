//! The memory that holds all addresses of an access.

use isa::Space;
use machine::memory::resolve;

use super::addresses::Region;
use super::request::Request;
use crate::run::Run;

/// The end of an access of all addresses from `least` to `greatest`, and the space that all of them are in.
pub(super) fn space_of(request: &Request, least: u64, greatest: u64) -> Option<(u64, Space)> {
    let end = greatest.checked_add(request.bytes)?;
    let space = resolve(request.space, least).0;
    (resolve(request.space, end.saturating_sub(1)).0 == space).then_some((end, space))
}

/// [`Gang::region`], if the memory is shared memory of a block: where it is on the host, and its first address in the window.
pub(super) fn region_of_shared(
    launch: &Run,
    (memory, start): (*mut u8, u64),
    request: &Request,
    least: u64,
    greatest: u64,
) -> Option<Region> {
    let Some((end, Space::Shared)) = space_of(request, least, greatest) else { return None };
    let inner = resolve(request.space, least).1;
    let extent = launch.shared().find(inner.checked_sub(start)?)?;
    let storage = memory.wrapping_add(extent.base as usize);
    let base = least - inner + start + extent.base;
    let end_of_extent = base + (extent.end - extent.base);
    Region { storage, base, end: end_of_extent, stride: 0, passing: false }.holding(least, end)
}

/// [`Gang::region`], if the memory is of the launch and not of a block or a thread.
pub(super) fn region_of_launch(launch: &Run, request: &Request, least: u64, greatest: u64) -> Option<Region> {
    let (end, space) = space_of(request, least, greatest)?;
    let offset = least - resolve(request.space, least).1;
    let (storage, base, bytes) = match space {
        Space::Const if !request.write => {
            let constants = launch.constants();
            (constants.as_ptr().cast_mut(), offset, constants.len() as u64)
        }
        Space::Param if !request.write => {
            let params = launch.params();
            (params.as_ptr().cast_mut(), offset, params.len() as u64)
        }
        Space::Global => {
            let allocation = launch.allocation(least)?;
            (allocation.storage?, allocation.base, allocation.bytes)
        }
        _ => return None,
    };
    Region { storage, base, end: base + bytes, stride: 0, passing: false }.holding(least, end)
}
