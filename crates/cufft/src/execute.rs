//! Functions that run plans.

use std::ffi::{c_int, c_void};

use mathlib::{Range, api, driver, submit};
use rustfft::FftDirection;

use crate::layout::{Kind, Precision, Side};
use crate::plan::{Handle, Plan};
use crate::status::Status;

/// Queues the transforms of a plan. `wanted` is what the function is for, if it is not for all plans; `direction` is `CUFFT_FORWARD` or
/// `CUFFT_INVERSE`, where it matters.
fn execute(
    name: &'static str,
    handle: Handle,
    [input, output]: [*mut c_void; 2],
    direction: c_int,
    wanted: Option<(Kind, Precision)>,
) -> Result<(), Status> {
    let plan = Plan::of(handle)?;
    let settings = plan.settings().clone();
    let transform = settings.transform.ok_or(Status::INVALID_PLAN)?;
    let layout = &transform.layout;
    if wanted.is_some_and(|wanted| wanted != (layout.kind, layout.precision)) {
        return Err(Status::INVALID_TYPE);
    }
    let direction = match (layout.kind, direction) {
        (Kind::RealToComplex, _) | (Kind::ComplexToComplex, -1) => FftDirection::Forward,
        (Kind::ComplexToReal, _) | (Kind::ComplexToComplex, 1) => FftDirection::Inverse,
        _ => return Err(Status::INVALID_VALUE),
    };
    if input.is_null() || output.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let sides = layout.sides(input == output);
    let range = |pointer, what, side: &Side| {
        let checked = match layout.precision {
            Precision::Half | Precision::Bfloat16 => range::<u16>(pointer, what, side),
            Precision::Single => range::<f32>(pointer, what, side),
            Precision::Double => range::<f64>(pointer, what, side),
        };
        checked.map_err(|error| {
            driver::failed(name, &error.to_string());
            Status::EXEC_FAILED
        })
    };
    let (from, to) = (range(input, "the input", &sides[0])?, range(output, "the output", &sides[1])?);
    submit(settings.stream, name, move || {
        let (from, to) = (from.reach(name)?, to.reach(name)?);
        transform.run(direction, [&from, &to], &sides);
        Ok(())
    })?;
    Ok(())
}

/// The memory of a side, whose scalars have this type.
fn range<T: mathlib::Value>(
    pointer: *mut c_void,
    what: &str,
    side: &Side,
) -> Result<Range, mathlib::OutOfBounds> {
    let width = if side.is_complex { 2 } else { 1 };
    Range::of(pointer.cast::<T>().cast_const(), side.span() * width, what, || {
        let counts: Vec<_> = side.counts.iter().map(usize::to_string).collect();
        let numbers = if side.is_complex { "complex numbers" } else { "real numbers" };
        format!(
            "{} x {} {numbers}, strides {:?}, distance {}",
            side.batch,
            counts.join(" x "),
            side.strides,
            side.distance
        )
    })
}

api! { API: Status, name;
    /// Runs a plan of complex numbers of type `float`, forward or backward.
    cufftExecC2C(plan: Handle, input: *mut c_void, output: *mut c_void, direction: c_int) {
        execute(name, plan, [input, output], direction, Some((Kind::ComplexToComplex, Precision::Single)))
    }

    /// Runs a plan of complex numbers of type `double`, forward or backward.
    cufftExecZ2Z(plan: Handle, input: *mut c_void, output: *mut c_void, direction: c_int) {
        execute(name, plan, [input, output], direction, Some((Kind::ComplexToComplex, Precision::Double)))
    }

    /// Runs a plan from real to complex numbers of type `float`.
    cufftExecR2C(plan: Handle, input: *mut c_void, output: *mut c_void) {
        execute(name, plan, [input, output], 0, Some((Kind::RealToComplex, Precision::Single)))
    }

    /// Runs a plan from real to complex numbers of type `double`.
    cufftExecD2Z(plan: Handle, input: *mut c_void, output: *mut c_void) {
        execute(name, plan, [input, output], 0, Some((Kind::RealToComplex, Precision::Double)))
    }

    /// Runs a plan from complex to real numbers of type `float`.
    cufftExecC2R(plan: Handle, input: *mut c_void, output: *mut c_void) {
        execute(name, plan, [input, output], 0, Some((Kind::ComplexToReal, Precision::Single)))
    }

    /// Runs a plan from complex to real numbers of type `double`.
    cufftExecZ2D(plan: Handle, input: *mut c_void, output: *mut c_void) {
        execute(name, plan, [input, output], 0, Some((Kind::ComplexToReal, Precision::Double)))
    }

    /// Runs a plan of any kind. The direction matters if both sides are complex.
    cufftXtExec(plan: Handle, input: *mut c_void, output: *mut c_void, direction: c_int) {
        execute(name, plan, [input, output], direction, None)
    }
}
