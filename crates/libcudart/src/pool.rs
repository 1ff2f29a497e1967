//! Memory pools (CUDA Runtime API, "Stream Ordered Memory Allocator").

use std::ffi::{c_int, c_uint, c_void};

use crate::Handle;
use crate::api::api;
use crate::context::check_device;
use crate::driver::cu;
use crate::types::MemLocation;

api! { API:
    /// Allocates device memory in the order of a stream.
    cudaMallocAsync / cudaMallocAsync_ptsz (pointer: *mut *mut c_void, bytes: usize, stream: Handle) |default|
        => cuMemAllocAsync(pointer, bytes, default.of(stream));
    /// Allocates device memory from a pool in the order of a stream.
    cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz (pointer: *mut *mut c_void, bytes: usize, pool: Handle, stream: Handle) |default|
        => cuMemAllocFromPoolAsync(pointer, bytes, pool, default.of(stream));
    /// Gives device memory back in the order of a stream.
    cudaFreeAsync / cudaFreeAsync_ptsz (pointer: *mut c_void, stream: Handle) |default| => cuMemFreeAsync(pointer, default.of(stream));
    /// The pool that a device had from the start.
    cudaDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int) {
        check_device(device)?;
        cu!(cuDeviceGetDefaultMemPool(pool, device))
    }
    /// The pool of a device.
    cudaDeviceGetMemPool(pool: *mut Handle, device: c_int) {
        check_device(device)?;
        cu!(cuDeviceGetMemPool(pool, device))
    }
    /// Changes the pool of a device.
    cudaDeviceSetMemPool(device: c_int, pool: Handle) {
        check_device(device)?;
        cu!(cuDeviceSetMemPool(device, pool))
    }
    /// The pool that a place had from the start.
    cudaMemGetDefaultMemPool[13](pool: *mut Handle, location: *mut MemLocation, kind: c_int)
        => cuMemGetDefaultMemPool(pool, location, kind);
    /// The pool of a place.
    cudaMemGetMemPool[13](pool: *mut Handle, location: *mut MemLocation, kind: c_int) => cuMemGetMemPool(pool, location, kind);
    /// Changes the pool of a place.
    cudaMemSetMemPool[13](location: *mut MemLocation, kind: c_int, pool: Handle) => cuMemSetMemPool(location, kind, pool);
    /// Makes a pool.
    cudaMemPoolCreate(pool: *mut Handle, properties: *const c_void) => cuMemPoolCreate(pool, properties);
    /// Destroys a pool.
    cudaMemPoolDestroy(pool: Handle) => cuMemPoolDestroy(pool);
    /// Gives memory that a pool does not use back.
    cudaMemPoolTrimTo(pool: Handle, bytes: usize) => cuMemPoolTrimTo(pool, bytes);
    /// An attribute of a pool.
    cudaMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) => cuMemPoolGetAttribute(pool, attribute, value);
    /// Changes an attribute of a pool.
    cudaMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) => cuMemPoolSetAttribute(pool, attribute, value);
    /// Who may use memory of a pool.
    cudaMemPoolGetAccess(flags: *mut c_int, pool: Handle, location: *mut MemLocation) => cuMemPoolGetAccess(flags, pool, location);
    /// Changes who may use memory of a pool.
    cudaMemPoolSetAccess(pool: Handle, access: *const c_void, count: usize) => cuMemPoolSetAccess(pool, access, count);
    /// A handle by which another process opens a pool.
    cudaMemPoolExportToShareableHandle(handle: *mut c_void, pool: Handle, kind: c_int, flags: c_uint)
        => cuMemPoolExportToShareableHandle(handle, pool, kind, flags as u64);
    /// Opens a pool of another process.
    cudaMemPoolImportFromShareableHandle(pool: *mut Handle, handle: *mut c_void, kind: c_int, flags: c_uint)
        => cuMemPoolImportFromShareableHandle(pool, handle, kind, flags as u64);
    /// A handle by which another process finds memory of a pool.
    cudaMemPoolExportPointer(data: *mut c_void, pointer: *mut c_void) => cuMemPoolExportPointer(data, pointer);
    /// Finds memory of a pool of another process.
    cudaMemPoolImportPointer(pointer: *mut *mut c_void, pool: Handle, data: *mut c_void) => cuMemPoolImportPointer(pointer, pool, data);
    /// What memory graphs use on a device.
    cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void) {
        check_device(device)?;
        cu!(cuDeviceGetGraphMemAttribute(device, attribute, value))
    }
    /// Resets the high-water marks of what memory graphs use on a device.
    cudaDeviceSetGraphMemAttribute(device: c_int, attribute: c_int, value: *mut c_void) {
        check_device(device)?;
        cu!(cuDeviceSetGraphMemAttribute(device, attribute, value))
    }
    /// Gives memory back that graphs do not use.
    cudaDeviceGraphMemTrim(device: c_int) {
        check_device(device)?;
        cu!(cuDeviceGraphMemTrim(device))
    }
}
