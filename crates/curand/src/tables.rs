//! The tables of quasi-random sequences, and the version.

use std::ffi::{c_int, c_uint, c_void};

use crate::engine::sobol;
use crate::status::{Status, refuse_scrambled};

/// The version whose behaviour this is: 10.3.10, of CUDA 12.9.
const VERSION: [c_int; 3] = [10, 3, 10];

/// Writes a result.
fn write<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::OUT_OF_RANGE);
    }
    // SAFETY: the program gives a place for the result, as the manual demands.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

mathlib::api! { API: Status, name;
    /// The direction vectors of Sobol32: set 101, of S. Joe and F. Y. Kuo. The scrambled set 102 is refused.
    curandGetDirectionVectors32 (vectors: *mut *const c_void, set: c_uint) {
        match set {
            101 => write(vectors, sobol::directions32().as_ptr().cast()),
            102 => Err(refuse_scrambled(name)),
            _ => Err(Status::OUT_OF_RANGE),
        }
    }
    /// The direction vectors of Sobol64: set 103, of S. Joe and F. Y. Kuo. The scrambled set 104 is refused.
    curandGetDirectionVectors64 (vectors: *mut *const c_void, set: c_uint) {
        match set {
            103 => write(vectors, sobol::directions().as_ptr().cast()),
            104 => Err(refuse_scrambled(name)),
            _ => Err(Status::OUT_OF_RANGE),
        }
    }
    /// The version: 10310.
    curandGetVersion (version: *mut c_int) {
        write(version, 1000 * VERSION[0] + 100 * VERSION[1] + VERSION[2])
    }
    /// A part of the version: major, minor, patch.
    curandGetProperty (part: c_uint, value: *mut c_int) {
        write(value, *VERSION.get(part as usize).ok_or(Status::OUT_OF_RANGE)?)
    }
}

mathlib::refused! { REFUSED: Status;
    curandGetScrambleConstants32 curandGetScrambleConstants64
    curandCreatePoissonDistribution curandDestroyDistribution curandGeneratePoissonMethod
}
