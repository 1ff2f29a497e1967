//! What a program chooses for products that are emulated in narrower types (cuBLAS, "Floating Point Emulation").
//!
//! No product is: `f32` and `f64` have the processor's own precision here, which the emulation approximates. So choices are remembered,
//! and have no effect.

use std::ffi::{c_int, c_uint};

use caller::Out;
use mathlib::{api, log};

use crate::declare::Ptr;
use crate::handle::{Cublas, Handle};
use crate::status::Status;

/// `cudaEmulationSpecialValuesSupport`: infinities, NaN, and the library's own choice.
const SPECIAL_VALUES: [c_uint; 5] = [0, 1, 2, 3, 0xffff];

/// The choices.
#[derive(Clone, Copy, Debug)]
pub struct Emulation {
    /// When (`cublasEmulationStrategy_t`).
    strategy: c_uint,
    special_values: c_uint,
    /// Whether data decide how many bits of the mantissa are kept (`cudaEmulationMantissaControl`).
    control: c_uint,
    /// The most bits. 0 is the library's choice.
    most_bits: c_int,
    /// Bits more than the data ask for.
    offset: c_int,
}

impl Default for Emulation {
    fn default() -> Emulation {
        Emulation { strategy: 0, special_values: 0xffff, control: 0, most_bits: 0, offset: 0 }
    }
}

/// Changes the choices, if they are valid.
fn choose(handle: Ptr, is_valid: bool, change: impl FnOnce(&mut Emulation)) -> Result<(), Status> {
    let handle = Handle::of(handle)?;
    if !is_valid {
        return Err(Status::INVALID_VALUE);
    }
    change(&mut handle.settings().emulation);
    Ok(())
}

fn chosen(handle: Ptr) -> Result<Emulation, Status> {
    Ok(Handle::of(handle)?.settings().emulation)
}

api! { API: Status, name;
    /// Chooses when products are emulated in other types: remembered, and never done.
    cublasSetEmulationStrategy (handle: Ptr, strategy: c_uint) {
        choose(handle, strategy <= 2, |emulation| emulation.strategy = strategy)
    }
    /// When products are emulated, as chosen.
    cublasGetEmulationStrategy (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(chosen(handle)?.strategy)
    }
    /// Chooses which of infinities and NaN emulated products heed: remembered.
    cublasSetEmulationSpecialValuesSupport (handle: Ptr, mask: c_uint) {
        choose(handle, SPECIAL_VALUES.contains(&mask), |emulation| emulation.special_values = mask)
    }
    /// Which of infinities and NaN emulated products heed, as chosen.
    cublasGetEmulationSpecialValuesSupport (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(chosen(handle)?.special_values)
    }
    /// Chooses whether data decide how many bits of the mantissa emulated products keep: remembered.
    cublasSetFixedPointEmulationMantissaControl (handle: Ptr, control: c_uint) {
        choose(handle, control <= 1, |emulation| emulation.control = control)
    }
    /// Whether data decide how many bits of the mantissa emulated products keep, as chosen.
    cublasGetFixedPointEmulationMantissaControl (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(chosen(handle)?.control)
    }
    /// Chooses the most bits of the mantissa that emulated products keep: remembered.
    cublasSetFixedPointEmulationMaxMantissaBitCount (handle: Ptr, bits: c_int) {
        choose(handle, bits >= 0, |emulation| emulation.most_bits = bits)
    }
    /// The most bits of the mantissa that emulated products keep, as chosen.
    cublasGetFixedPointEmulationMaxMantissaBitCount (handle: Ptr, result: Out<c_int, Cublas>) {
        result.write(chosen(handle)?.most_bits)
    }
    /// Chooses how many bits more than data ask for emulated products keep: remembered.
    cublasSetFixedPointEmulationMantissaBitOffset (handle: Ptr, offset: c_int) {
        choose(handle, true, |emulation| emulation.offset = offset)
    }
    /// How many bits more than data ask for emulated products keep, as chosen.
    cublasGetFixedPointEmulationMantissaBitOffset (handle: Ptr, result: Out<c_int, Cublas>) {
        result.write(chosen(handle)?.offset)
    }
    /// Chooses where products report how many bits they kept: only nowhere, since none is emulated.
    cublasSetFixedPointEmulationMantissaBitCountPointer (handle: Ptr, place: Ptr) {
        Handle::of(handle)?;
        if place.is_null() {
            return Ok(());
        }
        log!(error, "{name} is not supported: no product is emulated, and none has a count to report");
        Err(Status::NOT_SUPPORTED)
    }
    /// Where products report how many bits they kept: nowhere.
    cublasGetFixedPointEmulationMantissaBitCountPointer (handle: Ptr, result: Out<Ptr, Cublas>) {
        Handle::of(handle)?;
        result.write(std::ptr::null_mut())
    }
}
