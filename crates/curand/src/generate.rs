//! Results: numbers into memory of the device, in stream order, or into memory of the host, at once.

use std::convert::Infallible;
use std::ffi::{c_double, c_float, c_uint, c_ulonglong};
use std::sync::{Arc, PoisonError};

use mathlib::{Range, Value};

use crate::distribution::{Shape, Wanted};
use crate::engine::Cell;
use crate::generator::{Handle, get};
use crate::kind::Kind;
use crate::poisson::{MOST, Poisson};
use crate::status::Status;

/// Writes the next `count` values of a generator.
fn generate<T: Value + Cell>(
    name: &'static str,
    generator: Handle,
    out: *mut T,
    count: usize,
    wanted: impl FnOnce(Kind) -> Result<Wanted, Status>,
) -> Result<(), Status> {
    let generator = get(generator)?;
    let mut state = generator.state();
    let kind = state.settings.kind;
    let wanted = wanted(kind)?;
    if kind.is_quasi() && !count.is_multiple_of(state.settings.dimensions as usize) {
        return Err(Status::LENGTH_NOT_MULTIPLE);
    }
    let normal = matches!(wanted, Wanted::Normal(_) | Wanted::NormalDouble(_));
    if normal && kind.has_pairs() && !count.is_multiple_of(2) {
        return Err(Status::LENGTH_NOT_MULTIPLE);
    }
    if count == 0 {
        return Ok(());
    }
    let engine = state.engine();
    if generator.host {
        if out.is_null() {
            return Err(Status::OUT_OF_RANGE);
        }
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        let done = engine.generate(&wanted, count, |at, values: &[T]| {
            // SAFETY: the program gives memory for `count` values, as the manual demands.
            unsafe {
                out.cast::<u8>()
                    .add(at * size_of::<T>())
                    .copy_from(values.as_ptr().cast(), size_of_val(values))
            };
            Ok::<(), Infallible>(())
        });
        return done.map_err(|never| match never {});
    }
    mathlib::driver::enter(None).map_err(|_| Status::INITIALIZATION_FAILED)?;
    let range =
        Range::of(out.cast_const(), count, "the result", || format!("{count} values")).map_err(|bad| {
            mathlib::driver::failed(name, &bad.to_string());
            Status::LAUNCH_FAILURE
        })?;
    let stream = state.stream;
    drop(state);
    let work = move || {
        let memory = range.reach(name)?;
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.generate(&wanted, count, |at, values: &[T]| {
            // SAFETY: the memory has `count` values, and is held. Whoever accesses it meanwhile has a race, as on a GPU.
            unsafe { memory.pointer::<T>().add(at).copy_from(values.as_ptr(), values.len()) };
            Ok(())
        })?;
        memory.wrote::<T>(0, count);
        Ok(())
    };
    mathlib::submit(stream, name, work).map_err(|_| Status::PREEXISTING_FAILURE)
}

/// Wants normal numbers of `f32`.
fn normal(mean: f32, deviation: f32, log: bool) -> impl FnOnce(Kind) -> Result<Wanted, Status> {
    move |_| Ok(Wanted::Normal(Shape { mean, deviation, log }))
}

/// Wants normal numbers of `f64`.
fn normal_double(mean: f64, deviation: f64, log: bool) -> impl FnOnce(Kind) -> Result<Wanted, Status> {
    move |_| Ok(Wanted::NormalDouble(Shape { mean, deviation, log }))
}

mathlib::api! { API: Status, name;
    /// Random bits, 32 each. Sequences of 64 bits have none.
    curandGenerate (generator: Handle, out: *mut c_uint, count: usize) {
        generate(name, generator, out, count, |kind| match kind {
            Kind::Sobol64 => Err(Status::TYPE_ERROR),
            _ => Ok(Wanted::Bits),
        })
    }
    /// Random bits, 64 each, of sequences of 64 bits.
    curandGenerateLongLong (generator: Handle, out: *mut c_ulonglong, count: usize) {
        generate(name, generator, out, count, |kind| match kind {
            Kind::Sobol64 => Ok(Wanted::Bits),
            _ if count == 0 => Ok(Wanted::Bits),
            _ => Err(Status::TYPE_ERROR),
        })
    }
    /// Uniform numbers from 0 (excluded) to 1.
    curandGenerateUniform (generator: Handle, out: *mut c_float, count: usize) {
        generate(name, generator, out.cast::<u32>(), count, |_| Ok(Wanted::Uniform))
    }
    /// The same in double precision.
    curandGenerateUniformDouble (generator: Handle, out: *mut c_double, count: usize) {
        generate(name, generator, out.cast::<u64>(), count, |_| Ok(Wanted::UniformDouble))
    }
    /// Normal numbers.
    curandGenerateNormal (generator: Handle, out: *mut c_float, count: usize, mean: c_float, deviation: c_float) {
        generate(name, generator, out.cast::<u32>(), count, normal(mean, deviation, false))
    }
    /// The same in double precision.
    curandGenerateNormalDouble (generator: Handle, out: *mut c_double, count: usize, mean: c_double, deviation: c_double) {
        generate(name, generator, out.cast::<u64>(), count, normal_double(mean, deviation, false))
    }
    /// Exponentials of normal numbers.
    curandGenerateLogNormal (generator: Handle, out: *mut c_float, count: usize, mean: c_float, deviation: c_float) {
        generate(name, generator, out.cast::<u32>(), count, normal(mean, deviation, true))
    }
    /// The same in double precision.
    curandGenerateLogNormalDouble (generator: Handle, out: *mut c_double, count: usize, mean: c_double, deviation: c_double) {
        generate(name, generator, out.cast::<u64>(), count, normal_double(mean, deviation, true))
    }
    /// Numbers of Poisson's distribution with a mean above 0, at most 400,000.
    curandGeneratePoisson (generator: Handle, out: *mut c_uint, count: usize, mean: c_double) {
        generate(name, generator, out, count, |kind| {
            if mean <= 0.0 || mean > MOST {
                return Err(Status::OUT_OF_RANGE);
            }
            Ok(Wanted::Poisson(Arc::new(Poisson::new(mean, kind.way()))))
        })
    }
}
