//! Streams that wait for values in memory and write values to memory.

use std::ffi::c_uint;
use std::time::Duration;

use cudarc::driver::sys::{CUdeviceptr, CUstream};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::memory::DEVICE_BASE;
use crate::operation::Operation;
use crate::stream::Stream;
use crate::stream_order::{self, Use};
use crate::{INVALID, Status};

/// A value in memory, of 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub address: u64,
    pub bytes: usize,
    pub value: u64,
    /// The comparison (`CUstreamWaitValue_flags`): at least (cyclic), equal, any bit, not all bits.
    pub comparison: u32,
}

/// The polling interval.
const PERIOD: Duration = Duration::from_micros(20);

impl Value {
    fn check(self, flags: c_uint, most: c_uint) -> Result<Value, Status> {
        if flags > most || !self.address.is_multiple_of(self.bytes as u64) {
            return Err(INVALID);
        }
        driver()?.allocations.check(self.address, self.bytes as u64)?;
        Ok(self)
    }

    fn read(&self) -> Result<u64, Status> {
        let mut bytes = [0; 8];
        let gone = |_| Status::CUDA_ERROR_ILLEGAL_ADDRESS;
        driver()?.machine.read(self.address, &mut bytes[..self.bytes]).map_err(gone)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Waits until memory has the value, or the context is broken.
    ///
    /// # Errors
    /// If the memory has been freed.
    pub fn wait(&self, context: &Context) -> Result<(), Status> {
        let shift = 64 - 8 * self.bytes as u32;
        while context.check().is_ok() {
            let found = self.read()?;
            let there = match self.comparison {
                0 => ((found.wrapping_sub(self.value) << shift) as i64) >= 0,
                1 => found == self.value,
                2 => found & self.value != 0,
                _ => !(found | self.value) << shift != 0,
            };
            if there {
                break;
            }
            std::thread::sleep(PERIOD);
        }
        Ok(())
    }

    /// Writes the value.
    ///
    /// # Errors
    /// If the memory has been freed.
    pub fn write(&self) -> Result<(), Status> {
        let bytes = self.value.to_le_bytes();
        let written = driver()?.machine.write(self.address, &bytes[..self.bytes]);
        written.map_err(|_| Status::CUDA_ERROR_ILLEGAL_ADDRESS)?;
        crate::initialized::written(self.address, self.bytes as u64);
        stream_order::uses(self.address, self.bytes as u64, || Use::by("a write of a value"));
        if self.address >= DEVICE_BASE {
            crate::module::written(self.address, self.bytes as u64);
        }
        Ok(())
    }
}

/// Flag: operations of others must see the awaited value. They always do.
const FLUSH: c_uint = 1 << 30;

fn wait(stream: &Stream, address: u64, bytes: usize, value: u64, flags: c_uint) -> Result<(), Status> {
    let flags = flags & !FLUSH;
    let value = Value { address, bytes, value, comparison: flags }.check(flags, 3)?;
    stream.submit(Operation::WaitValue(value))
}

fn store(stream: &Stream, address: u64, bytes: usize, value: u64, flags: c_uint) -> Result<(), Status> {
    let value = Value { address, bytes, value, comparison: 0 }.check(flags, 1)?;
    stream.submit(Operation::WriteValue(value))
}

api! { API:
    /// Lets a stream wait for a 32-bit value in memory.
    cuStreamWaitValue32 8000 "cuStreamWaitValue32" / 8000 "cuStreamWaitValue32_ptsz", 11070 "cuStreamWaitValue32_v2" / 11070 "cuStreamWaitValue32_v2_ptsz"
        (of: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) |default| {
        wait(&*default.stream(of)?, address, 4, value.into(), flags)
    }
    /// Lets a stream wait for a 64-bit value in memory.
    cuStreamWaitValue64 9000 "cuStreamWaitValue64" / 9000 "cuStreamWaitValue64_ptsz", 11070 "cuStreamWaitValue64_v2" / 11070 "cuStreamWaitValue64_v2_ptsz"
        (of: CUstream, address: CUdeviceptr, value: u64, flags: c_uint) |default| {
        wait(&*default.stream(of)?, address, 8, value, flags)
    }
    /// Lets a stream write a 32-bit value to memory.
    cuStreamWriteValue32 8000 "cuStreamWriteValue32" / 8000 "cuStreamWriteValue32_ptsz", 11070 "cuStreamWriteValue32_v2" / 11070 "cuStreamWriteValue32_v2_ptsz"
        (of: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) |default| {
        store(&*default.stream(of)?, address, 4, value.into(), flags)
    }
    /// Lets a stream write a 64-bit value to memory.
    cuStreamWriteValue64 9000 "cuStreamWriteValue64" / 9000 "cuStreamWriteValue64_ptsz", 11070 "cuStreamWriteValue64_v2" / 11070 "cuStreamWriteValue64_v2_ptsz"
        (of: CUstream, address: CUdeviceptr, value: u64, flags: c_uint) |default| {
        store(&*default.stream(of)?, address, 8, value, flags)
    }
}
