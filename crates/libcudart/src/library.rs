//! Libraries (CUDA Runtime API, "Library Management").

use std::ffi::{c_char, c_uint, c_void};

use crate::Handle;
use crate::api::api;

api! { API:
    /// Loads a library from PTX text or a fat binary in memory.
    cudaLibraryLoadData(
        result: *mut Handle, code: *const c_void, jit: *mut c_void, jit_values: *mut Handle, jit_count: c_uint, options: *mut c_void,
        values: *mut Handle, count: c_uint
    ) => cuLibraryLoadData(result, code, jit, jit_values, jit_count, options, values, count);
    /// Loads a library from a file.
    cudaLibraryLoadFromFile(
        result: *mut Handle, path: *const c_char, jit: *mut c_void, jit_values: *mut Handle, jit_count: c_uint, options: *mut c_void,
        values: *mut Handle, count: c_uint
    ) => cuLibraryLoadFromFile(result, path, jit, jit_values, jit_count, options, values, count);
    /// Unloads a library.
    cudaLibraryUnload(library: Handle) => cuLibraryUnload(library);
    /// A kernel of a library.
    cudaLibraryGetKernel(result: *mut Handle, library: Handle, name: *const c_char) => cuLibraryGetKernel(result, library, name);
    /// How many kernels a library has.
    cudaLibraryGetKernelCount(count: *mut c_uint, library: Handle) => cuLibraryGetKernelCount(count, library);
    /// The kernels of a library.
    cudaLibraryEnumerateKernels(result: *mut Handle, count: c_uint, library: Handle) => cuLibraryEnumerateKernels(result, count, library);
    /// Address and size of a variable of a library.
    cudaLibraryGetGlobal(address: *mut *mut c_void, bytes: *mut usize, library: Handle, name: *const c_char)
        => cuLibraryGetGlobal(address, bytes, library, name);
    /// Address and size of a managed variable of a library.
    cudaLibraryGetManaged(address: *mut *mut c_void, bytes: *mut usize, library: Handle, name: *const c_char)
        => cuLibraryGetManaged(address, bytes, library, name);
    /// The address of a function that host and device share.
    cudaLibraryGetUnifiedFunction(result: *mut Handle, library: Handle, name: *const c_char)
        => cuLibraryGetUnifiedFunction(result, library, name);
}
