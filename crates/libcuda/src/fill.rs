//! Fills: of contiguous elements, and of boxes of rows (`cuMemset*`).

use std::ffi::{c_uchar, c_uint, c_ushort};

use cudarc::driver::sys::{CUdeviceptr, CUstream};

use crate::api::api;
use crate::driver::driver;
use crate::memory::Kind;
use crate::operation::Operation;
use crate::stream::{Default, Stream};
use crate::stream_order::{self, Use};
use crate::{INVALID, Status};

/// A fill of a box with elements of one value.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub address: u64,
    /// The stride of rows in bytes.
    pub pitch: u64,
    /// The size of an element in bytes, and its value.
    pub element: u64,
    pub value: u32,
    /// Elements per row, and rows.
    pub width: u64,
    pub height: u64,
}

impl Fill {
    /// Checks the destination.
    ///
    /// # Errors
    /// If its memory is not allocated, or not aligned to its elements.
    pub fn check(&self) -> Result<(), Status> {
        let row = self.width.checked_mul(self.element).ok_or(INVALID)?;
        let aligned = |n: u64| n.is_multiple_of(self.element);
        if !aligned(self.address) || self.height > 1 && (self.pitch < row || !aligned(self.pitch)) {
            return Err(INVALID);
        }
        let rows =
            self.pitch.checked_mul(self.height.saturating_sub(1)).and_then(|rows| rows.checked_add(row));
        driver()?.allocations.check(self.address, rows.ok_or(INVALID)?)
    }

    /// Performs the fill.
    ///
    /// # Errors
    /// If the memory has been freed in the meantime.
    pub fn perform(&self) -> Result<(), Status> {
        let driver = driver()?;
        let pattern = &self.value.to_le_bytes()[..self.element as usize];
        for y in 0..self.height {
            let (mut at, mut left) = (self.address + y * self.pitch, self.width * self.element);
            while left > 0 {
                let part = left.min(driver.allocations.rest(at));
                let filled = driver.machine.fill(at, pattern, part);
                filled.map_err(|_| Status::CUDA_ERROR_ILLEGAL_ADDRESS)?;
                crate::initialized::written(at, part);
                stream_order::uses(at, part, || Use::by("a fill"));
                (at, left) = (at + part, left - part);
            }
        }
        crate::module::written(
            self.address,
            self.pitch * self.height.saturating_sub(1) + self.width * self.element,
        );
        Ok(())
    }
}

/// Queues a fill, and waits where the manual requires it: for host memory.
fn fill(stream: &Stream, fill: Fill, wait: bool) -> Result<(), Status> {
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    fill.check()?;
    if wait { stream.submit_and_wait(Operation::Fill(fill)) } else { stream.submit(Operation::Fill(fill)) }
}

fn linear_fill(address: u64, element: u64, value: u32, width: usize) -> Fill {
    Fill { address, pitch: 0, element, value, width: width as u64, height: 1 }
}

fn pitched_fill(address: u64, pitch: usize, element: u64, value: u32, width: usize, height: usize) -> Fill {
    Fill { address, pitch: pitch as u64, element, value, width: width as u64, height: height as u64 }
}

/// Whether a fill of this memory must be waited for, because the host may read it at once.
fn is_host_memory(address: u64) -> Result<bool, Status> {
    let kind = driver()?.allocations.find(address).map(|allocation| allocation.kind);
    Ok(matches!(kind, Some(Kind::Host(_) | Kind::Registered(_))))
}

fn fill_now(default: Default, of: Fill) -> Result<(), Status> {
    fill(&*default.stream(std::ptr::null_mut())?, of, is_host_memory(of.address)?)
}

api! { API:
    /// Fills memory with bytes.
    cuMemsetD8 3020 "cuMemsetD8_v2" / 7000 "cuMemsetD8_v2_ptds" (address: CUdeviceptr, value: c_uchar, count: usize) |default| {
        fill_now(default, linear_fill(address, 1, value.into(), count))
    }
    /// Fills memory with 16-bit values.
    cuMemsetD16 3020 "cuMemsetD16_v2" / 7000 "cuMemsetD16_v2_ptds" (address: CUdeviceptr, value: c_ushort, count: usize) |default| {
        fill_now(default, linear_fill(address, 2, value.into(), count))
    }
    /// Fills memory with 32-bit values.
    cuMemsetD32 3020 "cuMemsetD32_v2" / 7000 "cuMemsetD32_v2_ptds" (address: CUdeviceptr, value: c_uint, count: usize) |default| {
        fill_now(default, linear_fill(address, 4, value, count))
    }
    /// Fills rows with bytes.
    cuMemsetD2D8 3020 "cuMemsetD2D8_v2" / 7000 "cuMemsetD2D8_v2_ptds" (address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize) |default| {
        fill_now(default, pitched_fill(address, pitch, 1, value.into(), width, height))
    }
    /// Fills rows with 16-bit values.
    cuMemsetD2D16 3020 "cuMemsetD2D16_v2" / 7000 "cuMemsetD2D16_v2_ptds" (address: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize) |default| {
        fill_now(default, pitched_fill(address, pitch, 2, value.into(), width, height))
    }
    /// Fills rows with 32-bit values.
    cuMemsetD2D32 3020 "cuMemsetD2D32_v2" / 7000 "cuMemsetD2D32_v2_ptds" (address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize) |default| {
        fill_now(default, pitched_fill(address, pitch, 4, value, width, height))
    }
    /// Fills memory with bytes, in a stream.
    cuMemsetD8Async 3020 "cuMemsetD8Async" / 7000 "cuMemsetD8Async_ptsz" (address: CUdeviceptr, value: c_uchar, count: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, linear_fill(address, 1, value.into(), count), false)
    }
    /// Fills memory with 16-bit values, in a stream.
    cuMemsetD16Async 3020 "cuMemsetD16Async" / 7000 "cuMemsetD16Async_ptsz" (address: CUdeviceptr, value: c_ushort, count: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, linear_fill(address, 2, value.into(), count), false)
    }
    /// Fills memory with 32-bit values, in a stream.
    cuMemsetD32Async 3020 "cuMemsetD32Async" / 7000 "cuMemsetD32Async_ptsz" (address: CUdeviceptr, value: c_uint, count: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, linear_fill(address, 4, value, count), false)
    }
    /// Fills rows with bytes, in a stream.
    cuMemsetD2D8Async 3020 "cuMemsetD2D8Async" / 7000 "cuMemsetD2D8Async_ptsz" (address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, pitched_fill(address, pitch, 1, value.into(), width, height), false)
    }
    /// Fills rows with 16-bit values, in a stream.
    cuMemsetD2D16Async 3020 "cuMemsetD2D16Async" / 7000 "cuMemsetD2D16Async_ptsz" (address: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, pitched_fill(address, pitch, 2, value.into(), width, height), false)
    }
    /// Fills rows with 32-bit values, in a stream.
    cuMemsetD2D32Async 3020 "cuMemsetD2D32Async" / 7000 "cuMemsetD2D32Async_ptsz" (address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize, of: CUstream) |default| {
        fill(&*default.stream(of)?, pitched_fill(address, pitch, 4, value, width, height), false)
    }
}
