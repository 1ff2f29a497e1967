//! Attributes of kernels, and occupancy (CUDA Runtime API, "Execution Control", "Occupancy").

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::Handle;
use crate::api::{Default, api};
use crate::driver::cu;
use crate::error::Error;
use crate::launch::of_driver;
use crate::pointers::{In, Out};
use crate::registry::{function, kernel};
use crate::types::{FuncAttributes, LaunchConfig};

/// The function of a host address. If there is none, the error is that of an invalid device function.
fn known(host: *const c_void) -> Result<Handle, Error> {
    function(host).map_err(|error| {
        if error == Error::INVALID_RESOURCE_HANDLE { Error::INVALID_DEVICE_FUNCTION } else { error }
    })
}

fn attributes(host: *const c_void) -> Result<FuncAttributes, Error> {
    let function = known(host)?;
    let get = |attribute: c_int| {
        let mut value = 0;
        // SAFETY: the arguments meet the requirements of the function.
        unsafe { cu!(cuFuncGetAttribute(&raw mut value, attribute, function)) }.map(|()| value).map_err(
            |error| {
                if error == Error::INVALID_RESOURCE_HANDLE { Error::INVALID_DEVICE_FUNCTION } else { error }
            },
        )
    };
    // The numbers are those of `CUfunction_attribute`.
    Ok(FuncAttributes {
        max_threads: get(0)?,
        shared: get(1)? as usize,
        constant: get(2)? as usize,
        local: get(3)? as usize,
        registers: get(4)?,
        ptx_version: get(5)?,
        binary_version: get(6)?,
        cache_mode: get(7)?,
        most_dynamic: get(8)?,
        carveout: get(9)?,
        cluster_must_be_set: get(10)?,
        cluster: [get(11)?, get(12)?, get(13)?],
        non_portable_cluster: get(14)?,
        cluster_scheduling: get(15)?,
        reserved: [0; 16],
    })
}

api! { API:
    /// The attributes of a kernel.
    cudaFuncGetAttributes(result: Out<FuncAttributes>, host: *const c_void) {
        result.write(attributes(host)?)
    }
    /// Changes an attribute of a kernel.
    cudaFuncSetAttribute(host: *const c_void, attribute: c_int, value: c_int) => cuFuncSetAttribute(known(host)?, attribute, value);
    /// What a kernel prefers of L1 cache and shared memory.
    cudaFuncSetCacheConfig(host: *const c_void, config: c_int) => cuFuncSetCacheConfig(known(host)?, config);
    /// The width of banks of shared memory for a kernel.
    cudaFuncSetSharedMemConfig(host: *const c_void, config: c_int) => cuFuncSetSharedMemConfig(known(host)?, config);
    /// The name of a kernel.
    cudaFuncGetName(name: *mut *const c_char, host: *const c_void) => cuFuncGetName(name, known(host)?);
    /// Offset and size of a parameter of a kernel.
    cudaFuncGetParamInfo(host: *const c_void, index: usize, offset: *mut usize, bytes: *mut usize)
        => cuFuncGetParamInfo(known(host)?, index, offset, bytes);
    /// How many parameters a kernel has.
    cudaFuncGetParamCount[13](host: *const c_void, count: *mut usize) => cuFuncGetParamCount(known(host)?, count);
    /// Changes an attribute of a kernel on a device.
    cudaKernelSetAttributeForDevice(handle: Handle, attribute: c_int, value: c_int, device: c_int)
        => cuKernelSetAttribute(attribute, value, kernel(handle)?, device);
    /// How many blocks of a kernel run on a multiprocessor at a time.
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(result: *mut c_int, host: *const c_void, block: c_int, dynamic: usize)
        => cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(result, known(host)?, block, dynamic, 0);
    /// How many blocks of a kernel run on a multiprocessor at a time, with flags.
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(result: *mut c_int, host: *const c_void, block: c_int, dynamic: usize, flags: c_uint)
        => cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(result, known(host)?, block, dynamic, flags);
    /// Bytes of dynamic shared memory that let so many blocks run at a time.
    cudaOccupancyAvailableDynamicSMemPerBlock(result: *mut usize, host: *const c_void, blocks: c_int, block: c_int)
        => cuOccupancyAvailableDynamicSMemPerBlock(result, known(host)?, blocks, block);
    /// The largest cluster of a kernel.
    cudaOccupancyMaxPotentialClusterSize(result: *mut c_int, host: *const c_void, config: In<LaunchConfig>)
        => cuOccupancyMaxPotentialClusterSize(result, known(host)?, &of_driver(config, Default::Legacy)?);
    /// How many clusters of a kernel run at a time.
    cudaOccupancyMaxActiveClusters(result: *mut c_int, host: *const c_void, config: In<LaunchConfig>)
        => cuOccupancyMaxActiveClusters(result, known(host)?, &of_driver(config, Default::Legacy)?);
}
