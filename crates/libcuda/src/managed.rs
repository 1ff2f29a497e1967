//! Advice on managed memory. It is host memory, so advice has no effect.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::{CUdevice, CUdeviceptr, CUmemLocation, CUstream};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::memory::Kind;
use crate::operation::Operation;
use crate::pointers::{In, Out};
use crate::{INVALID, Status};

/// Answers `cuMemRangeGetAttribute` for managed memory. That memory is in host memory, equally near to all devices, so advice has no
/// effect and is not kept. All attributes are numbers of 4 bytes.
fn range_attribute(
    data: Out<c_int>,
    bytes: usize,
    attribute: u32,
    address: u64,
    count: usize,
) -> Result<(), Status> {
    let allocations = &driver()?.allocations;
    let is_managed = allocations.find(address).is_some_and(|allocation| allocation.kind == Kind::Managed);
    if data.is_null() || count == 0 || !is_managed {
        return Err(INVALID);
    }
    allocations.check(address, count as u64)?;
    // Read mostly; preferred location, accessed by, last prefetch: nowhere (-2); then the newer attributes with separate kind and number.
    let (value, fits): (c_int, bool) = match attribute {
        1 => (0, bytes == 4),
        2 | 4 => (-2, bytes == 4),
        3 => (-2, bytes >= 4 && bytes.is_multiple_of(4)),
        5..=8 => (0, bytes == 4),
        _ => return Err(INVALID),
    };
    if !fits {
        return Err(INVALID);
    }
    (0..bytes / 4).try_for_each(|i| data.write_at(i, value))
}

api! { API:
    /// What advice there is for managed memory.
    cuMemRangeGetAttribute 8000 "cuMemRangeGetAttribute" (data: Out<c_int>, bytes: usize, attribute: c_uint, address: CUdeviceptr, count: usize) {
        Context::current()?;
        range_attribute(data, bytes, attribute, address, count)
    }
    /// What advice there is for managed memory, several kinds at a time.
    cuMemRangeGetAttributes 8000 "cuMemRangeGetAttributes" (data: In<Out<c_int>>, sizes: In<usize>, attributes: In<c_uint>, attribute_count: usize, address: CUdeviceptr, count: usize) {
        Context::current()?;
        let (places, sizes) = (data.read_all(attribute_count)?, sizes.read_all(attribute_count)?);
        let attributes = attributes.read_all(attribute_count)?;
        if attribute_count == 0 {
            return Err(INVALID);
        }
        for ((place, bytes), attribute) in places.into_iter().zip(sizes).zip(attributes) {
            range_attribute(place, bytes, attribute, address, count)?;
        }
        Ok(())
    }
    /// Advice on the use of managed memory: has no effect here.
    cuMemAdvise 8000 "cuMemAdvise" (address: CUdeviceptr, bytes: usize, advice: c_uint, _device: CUdevice) {
        Context::current()?;
        if !(1..=6).contains(&advice) {
            return Err(INVALID);
        }
        driver()?.allocations.check(address, bytes as u64)
    }
    /// Advice on the use of managed memory: has no effect here.
    cuMemAdvise 12020 "cuMemAdvise_v2" (address: CUdeviceptr, bytes: usize, advice: c_uint, _location: CUmemLocation) {
        Context::current()?;
        if !(1..=6).contains(&advice) {
            return Err(INVALID);
        }
        driver()?.allocations.check(address, bytes as u64)
    }
    /// Moves managed memory to where it will be used: has no effect here.
    cuMemPrefetchAsync 8000 "cuMemPrefetchAsync" / 8000 "cuMemPrefetchAsync_ptsz" (address: CUdeviceptr, bytes: usize, _device: CUdevice, of: CUstream) |default| {
        let stream = default.stream(of)?;
        driver()?.allocations.check(address, bytes as u64)?;
        stream.submit(Operation::Nothing)
    }
    /// Moves managed memory to where it will be used: has no effect here.
    cuMemPrefetchAsync 12020 "cuMemPrefetchAsync_v2" / 12020 "cuMemPrefetchAsync_v2_ptsz" (address: CUdeviceptr, bytes: usize, _location: CUmemLocation, _flags: c_uint, of: CUstream) |default| {
        let stream = default.stream(of)?;
        driver()?.allocations.check(address, bytes as u64)?;
        stream.submit(Operation::Nothing)
    }
}
