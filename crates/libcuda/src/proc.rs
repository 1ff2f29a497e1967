//! How a program looks up the driver's functions.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::api::{Function, api, functions};
use crate::log::log;
use crate::pointers::{In, Out, Text};
use crate::stream::Default;
use crate::{INVALID, Status};

/// Flags that select the default stream.
const LEGACY_STREAM: u64 = 1;
const PER_THREAD_STREAM: u64 = 2;

/// The results of a look-up (`CUdriverProcAddressQueryResult`).
const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const VERSION_TOO_OLD: u32 = 2;

/// The tables that NVIDIA's runtime requests first, as observed with its releases 12.9 and 13.5. NVRTC requests another one, but works
/// without it.
const RUNTIME_TABLES: [[u8; 16]; 2] = [
    0xf8cf_f951_2146_8b4e_b9e2_fb46_9e7c_0dd9_u128.to_be_bytes(),
    0x6bd5_fb6c_5bf4_e74a_8987_d939_12fd_9df9_u128.to_be_bytes(),
];

/// The functions by name, each with its versions in ascending order.
fn table() -> &'static HashMap<&'static str, Vec<&'static Function>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<&'static Function>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<_, Vec<_>> = HashMap::new();
        functions().for_each(|function| table.entry(function.name).or_default().push(function));
        table.values_mut().for_each(|versions| versions.sort_by_key(|function| function.since));
        table
    })
}

/// The newest version of a function that a program of this CUDA version knows.
///
/// # Errors
/// The reason if there is none.
fn find(name: &[u8], version: i32, flags: u64) -> Result<&'static Function, u32> {
    let name = std::str::from_utf8(name).map_err(|_| NOT_FOUND)?;
    let versions = table().get(name).ok_or(NOT_FOUND)?;
    let known = |per_thread: bool| {
        let mut known = versions.iter().rev().filter(|function| function.since <= version);
        known.find(|function| function.per_thread == per_thread).copied()
    };
    let of_thread = if flags & PER_THREAD_STREAM != 0 { known(true) } else { None };
    of_thread.or_else(|| known(false)).ok_or(VERSION_TOO_OLD)
}

/// Answers `cuGetProcAddress`.
fn look_up(
    name: Text,
    result: Out<*mut c_void>,
    version: c_int,
    flags: u64,
    found: Option<Out<u32>>,
) -> Result<(), Status> {
    if flags > LEGACY_STREAM + PER_THREAD_STREAM || result.is_null() || version < 0 {
        return Err(INVALID);
    }
    let name = name.bytes()?;
    let function = find(name, version, flags);
    let (address, outcome) = match function {
        Ok(function) => (function.address.0.cast_mut().cast(), FOUND),
        Err(why) => (std::ptr::null_mut(), why),
    };
    result.write(address)?;
    match found {
        // The newer function returns this separately, and fails only for invalid arguments.
        Some(found) if !found.is_null() => found.write(outcome),
        _ => match function {
            Ok(_) => Ok(()),
            Err(_) => Err(Status::CUDA_ERROR_NOT_FOUND),
        },
    }
}

api! { API:
    /// Looks a function up, in the newest version that a program of this CUDA version knows.
    cuGetProcAddress 11030 "cuGetProcAddress" (name: Text, result: Out<*mut c_void>, version: c_int, flags: u64) {
        look_up(name, result, version, flags, None)
    }
    /// Looks a function up. The status says why it was not found.
    cuGetProcAddress 12000 "cuGetProcAddress_v2" / 12000 "cuGetProcAddress_v2_ptsz" (name: Text, result: Out<*mut c_void>, version: c_int, flags: u64, found: Out<u32>) |default| {
        let flags = match default {
            Default::PerThread if flags == 0 => PER_THREAD_STREAM,
            _ => flags,
        };
        look_up(name, result, version, flags, Some(found))
    }
    /// Tables that NVIDIA's own runtime asks for: there are none here.
    cuGetExportTable 3000 "cuGetExportTable" (result: Out<*const c_void>, id: In<[u8; 16]>) {
        if id.read().is_ok_and(|id| RUNTIME_TABLES.contains(&id)) {
            log!(error_once, "this program uses NVIDIA's CUDA runtime, which runs on NVIDIA's driver only: build it with `nvcc -cudart shared`, and it \
                   finds ptxvm's runtime");
        }
        result.write_if_wanted(std::ptr::null());
        Err(Status::CUDA_ERROR_NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_known_version_is_found() {
        let symbol = |name: &str, version, flags| {
            find(name.as_bytes(), version, flags).map(|function| function.symbol)
        };
        assert_eq!(symbol("cuMemAlloc", 12000, 0), Ok("cuMemAlloc_v2"));
        assert_eq!(symbol("cuCtxCreate", 11030, 0), Ok("cuCtxCreate_v2"));
        assert_eq!(symbol("cuCtxCreate", 13000, 0), Ok("cuCtxCreate_v4"));
        assert_eq!(symbol("cuMemcpyHtoDAsync", 12000, 2), Ok("cuMemcpyHtoDAsync_v2_ptsz"));
        assert_eq!(symbol("cuMemcpyHtoDAsync", 12000, 1), Ok("cuMemcpyHtoDAsync_v2"));
        assert_eq!(symbol("cuMemAlloc", 12000, 2), Ok("cuMemAlloc_v2"));
        assert_eq!(symbol("cuLibraryLoadData", 11000, 0), Err(VERSION_TOO_OLD));
        assert_eq!(symbol("cuNothing", 12000, 0), Err(NOT_FOUND));
    }

    #[test]
    fn no_symbol_is_declared_twice() {
        let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
        let count = symbols.len();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), count);
        assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
    }
}
