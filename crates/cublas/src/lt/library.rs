//! The library: its handle, versions, texts, logs.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};

use caller::{In, Out};
use mathlib::{Function, api};

use crate::declare::Ptr;
use crate::handle::{self, Cublas};
use crate::status::{self, Status};

/// How many suggestions the program wants to be kept: none are.
static CAPACITY: AtomicUsize = AtomicUsize::new(8192);

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    handle::version_number() as usize
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetCudartVersion() -> usize {
    handle::runtime_version()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusName(status: c_uint) -> *const c_char {
    status::name(status).as_ptr()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusString(status: c_uint) -> *const c_char {
    status::describe(status).as_ptr()
}

/// The mask of instruction sets that may not be used has no effect, and was 0.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasLtDisableCpuInstructionsSetMask(_mask: c_uint) -> c_uint {
    0
}

/// The functions that return no status.
pub static VALUES: &[&[Function]] = &[
    &[Function { symbol: "cublasLtGetVersion", supported: true, summary: " The version of the library." }],
    &[Function {
        symbol: "cublasLtGetCudartVersion",
        supported: true,
        summary: " The version of the CUDA runtime that belongs to the library.",
    }],
    &[Function { symbol: "cublasLtGetStatusName", supported: true, summary: " The name of a status." }],
    &[Function { symbol: "cublasLtGetStatusString", supported: true, summary: " What a status means." }],
    &[Function {
        symbol: "cublasLtDisableCpuInstructionsSetMask",
        supported: true,
        summary: " Forbids instruction sets of the host's processor: without effect.",
    }],
];

api! { API: Status, name;
    /// Makes a handle, in the current context. One of cuBLAS does as well.
    cublasLtCreate (result: Out<Ptr, Cublas>) { handle::create(result) }
    /// Gives a handle back.
    cublasLtDestroy (handle: Ptr) { handle::destroy(handle) }
    /// A part of the version: major, minor or patch.
    cublasLtGetProperty (which: c_uint, result: Out<c_int, Cublas>) { handle::property(which, result) }
    /// How many suggestions of algorithms are kept: what the program has said, without effect.
    cublasLtHeuristicsCacheGetCapacity (result: Out<usize, Cublas>) { result.write(CAPACITY.load(Ordering::Relaxed)) }
    /// Chooses how many suggestions of algorithms are kept.
    cublasLtHeuristicsCacheSetCapacity (capacity: usize) {
        CAPACITY.store(capacity, Ordering::Relaxed);
        Ok(())
    }
    /// Chooses the log of calls: it is `PTXVM_LOG` that does so here.
    cublasLtLoggerSetCallback cublasLtLoggerSetFile (_target: Ptr) { Ok(()) }
    /// The same, by name.
    cublasLtLoggerOpenFile (_name: In<c_char, Cublas>) { Ok(()) }
    /// Chooses how much the log has: without effect.
    cublasLtLoggerSetLevel cublasLtLoggerSetMask (_level: c_int) { Ok(()) }
    /// Switches the log off, which is never on.
    cublasLtLoggerForceDisable () { Ok(()) }
}
