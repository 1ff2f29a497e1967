//! Functions that make plans, and those that tell how much device memory a plan would need.

use std::ffi::{c_int, c_longlong};
use std::sync::Arc;

use caller::In;
use mathlib::api;

use crate::layout::{Advanced, Kind, Layout, Precision};
use crate::plan::{Cufft, Handle, Place, Plan};
use crate::status::Status;
use crate::transform::Transform;

/// An array of sizes.
type Sizes<'a, T> = In<'a, T, Cufft>;

/// What a `cufftType` means.
fn of_type(number: c_int) -> Result<(Kind, Precision), Status> {
    Ok(match number {
        0x29 => (Kind::ComplexToComplex, Precision::Single),
        0x2a => (Kind::RealToComplex, Precision::Single),
        0x2c => (Kind::ComplexToReal, Precision::Single),
        0x69 => (Kind::ComplexToComplex, Precision::Double),
        0x6a => (Kind::RealToComplex, Precision::Double),
        0x6c => (Kind::ComplexToReal, Precision::Double),
        _ => return Err(Status::INVALID_TYPE),
    })
}

/// What two `cudaDataType` mean, those of input and output.
fn of_types(input: c_int, output: c_int, execution: c_int) -> Result<(Kind, Precision), Status> {
    let of = |number| {
        Ok(match number {
            0 => (false, Precision::Single),
            1 => (false, Precision::Double),
            2 => (false, Precision::Half),
            4 => (true, Precision::Single),
            5 => (true, Precision::Double),
            6 => (true, Precision::Half),
            14 => (false, Precision::Bfloat16),
            15 => (true, Precision::Bfloat16),
            _ => return Err(Status::INVALID_TYPE),
        })
    };
    let ((from_complex, precision), (to_complex, to)) = (of(input)?, of(output)?);
    let kind = match (from_complex, to_complex) {
        (true, true) => Kind::ComplexToComplex,
        (false, true) => Kind::RealToComplex,
        (true, false) => Kind::ComplexToReal,
        (false, false) => return Err(Status::INVALID_TYPE),
    };
    // The type of the computation is that of the numbers.
    if to != precision || of(execution)?.1 != precision {
        return Err(Status::INVALID_TYPE);
    }
    Ok((kind, precision))
}

/// The layout of a plan with all that a program can choose. Strides and distances count if it passes the extents of both sides.
fn layout<T: Copy + Into<i64>>(
    [sizes, input, output]: [Sizes<'_, T>; 3],
    rank: c_int,
    [input_stride, input_distance, output_stride, output_distance, batch]: [T; 5],
    types: Result<(Kind, Precision), Status>,
) -> Result<Layout, Status> {
    let (kind, precision) = types?;
    let rank =
        usize::try_from(rank).ok().filter(|rank| (1..=3).contains(rank)).ok_or(Status::INVALID_SIZE)?;
    let read = |array: Sizes<'_, T>| -> Result<Vec<i64>, Status> {
        Ok(array.read_all(rank)?.into_iter().map(Into::into).collect())
    };
    let sizes = read(sizes)?;
    // Transforms of numbers of 16 bits have sizes that are powers of two.
    let is_short = matches!(precision, Precision::Half | Precision::Bfloat16);
    if is_short && sizes.iter().any(|&size| size > 0 && !(size as u64).is_power_of_two()) {
        return Err(Status::INVALID_SIZE);
    }
    if input.pointer().is_null() || output.pointer().is_null() {
        return Layout::new(kind, precision, &sizes, batch.into(), None);
    }
    let (input, output) = (read(input)?, read(output)?);
    let input: Advanced<'_> = (&input, input_stride.into(), input_distance.into());
    let output: Advanced<'_> = (&output, output_stride.into(), output_distance.into());
    Layout::new(kind, precision, &sizes, batch.into(), Some([input, output]))
}

/// The layout of a plan without strides.
fn plain(sizes: &[c_int], number: c_int, batch: c_int) -> Result<Layout, Status> {
    let (kind, precision) = of_type(number)?;
    let sizes: Vec<i64> = sizes.iter().map(|&size| size.into()).collect();
    Layout::new(kind, precision, &sizes, batch.into(), None)
}

/// Makes a new plan.
fn plan(place: Place<'_, Handle>, layout: Result<Layout, Status>) -> Result<(), Status> {
    let layout = layout?;
    let handle = Plan::create()?;
    Plan::of(handle)?.settings().transform = Some(Arc::new(Transform::new(layout)));
    place.write(handle)
}

/// Says what a plan that was created transforms.
fn make(handle: Handle, size: Place<'_, usize>, layout: Result<Layout, Status>) -> Result<(), Status> {
    let plan = Plan::of(handle)?;
    plan.settings().transform = Some(Arc::new(Transform::new(layout?)));
    size.write(0)
}

/// Tells how much device memory a plan would need: none.
fn size(handle: Handle, place: Place<'_, usize>, layout: Result<Layout, Status>) -> Result<(), Status> {
    Plan::of(handle)?;
    estimate(place, layout)
}

fn estimate(place: Place<'_, usize>, layout: Result<Layout, Status>) -> Result<(), Status> {
    layout?;
    place.write(0)
}

api! { API: Status, name;
    /// Makes a plan that transforms nothing yet.
    cufftCreate(place: Place<'_, Handle>) { place.write(Plan::create()?) }

    /// Makes a plan for transforms of one dimension.
    cufftPlan1d(place: Place<'_, Handle>, n: c_int, kind: c_int, batch: c_int) { plan(place, plain(&[n], kind, batch)) }

    /// Makes a plan for a transform of two dimensions, `y` the inner one.
    cufftPlan2d(place: Place<'_, Handle>, x: c_int, y: c_int, kind: c_int) { plan(place, plain(&[x, y], kind, 1)) }

    /// Makes a plan for a transform of three dimensions, `z` the innermost.
    cufftPlan3d(place: Place<'_, Handle>, x: c_int, y: c_int, z: c_int, kind: c_int) { plan(place, plain(&[x, y, z], kind, 1)) }

    /// Makes a plan for a batch of transforms with strides and distances.
    cufftPlanMany(place: Place<'_, Handle>, rank: c_int, n: Sizes<'_, c_int>, inembed: Sizes<'_, c_int>, istride: c_int, idist: c_int,
        onembed: Sizes<'_, c_int>, ostride: c_int, odist: c_int, kind: c_int, batch: c_int) {
        let numbers = [istride, idist, ostride, odist, batch];
        plan(place, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// Says that a plan is for transforms of one dimension.
    cufftMakePlan1d(handle: Handle, n: c_int, kind: c_int, batch: c_int, size: Place<'_, usize>) {
        make(handle, size, plain(&[n], kind, batch))
    }

    /// Says that a plan is for a transform of two dimensions, `y` the inner one.
    cufftMakePlan2d(handle: Handle, x: c_int, y: c_int, kind: c_int, size: Place<'_, usize>) {
        make(handle, size, plain(&[x, y], kind, 1))
    }

    /// Says that a plan is for a transform of three dimensions, `z` the innermost.
    cufftMakePlan3d(handle: Handle, x: c_int, y: c_int, z: c_int, kind: c_int, size: Place<'_, usize>) {
        make(handle, size, plain(&[x, y, z], kind, 1))
    }

    /// Says that a plan is for a batch of transforms with strides and distances.
    cufftMakePlanMany(handle: Handle, rank: c_int, n: Sizes<'_, c_int>, inembed: Sizes<'_, c_int>, istride: c_int, idist: c_int,
        onembed: Sizes<'_, c_int>, ostride: c_int, odist: c_int, kind: c_int, batch: c_int, size: Place<'_, usize>) {
        let numbers = [istride, idist, ostride, odist, batch];
        make(handle, size, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// `cufftMakePlanMany` with 64-bit sizes.
    cufftMakePlanMany64(handle: Handle, rank: c_int, n: Sizes<'_, c_longlong>, inembed: Sizes<'_, c_longlong>, istride: c_longlong,
        idist: c_longlong, onembed: Sizes<'_, c_longlong>, ostride: c_longlong, odist: c_longlong, kind: c_int, batch: c_longlong,
        size: Place<'_, usize>) {
        let numbers = [istride, idist, ostride, odist, batch];
        make(handle, size, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// `cufftMakePlanMany64` for any types of numbers: `float`, `double`, `__half`, `__nv_bfloat16`.
    cufftXtMakePlanMany(handle: Handle, rank: c_int, n: Sizes<'_, c_longlong>, inembed: Sizes<'_, c_longlong>, istride: c_longlong,
        idist: c_longlong, input: c_int, onembed: Sizes<'_, c_longlong>, ostride: c_longlong, odist: c_longlong, output: c_int,
        batch: c_longlong, size: Place<'_, usize>, execution: c_int) {
        let numbers = [istride, idist, ostride, odist, batch];
        make(handle, size, layout([n, inembed, onembed], rank, numbers, of_types(input, output, execution)))
    }

    /// The device memory that a plan of one dimension would need: none.
    cufftEstimate1d(n: c_int, kind: c_int, batch: c_int, place: Place<'_, usize>) { estimate(place, plain(&[n], kind, batch)) }

    /// The device memory that a plan of two dimensions would need: none.
    cufftEstimate2d(x: c_int, y: c_int, kind: c_int, place: Place<'_, usize>) { estimate(place, plain(&[x, y], kind, 1)) }

    /// The device memory that a plan of three dimensions would need: none.
    cufftEstimate3d(x: c_int, y: c_int, z: c_int, kind: c_int, place: Place<'_, usize>) { estimate(place, plain(&[x, y, z], kind, 1)) }

    /// The device memory that a plan for a batch with strides would need: none.
    cufftEstimateMany(rank: c_int, n: Sizes<'_, c_int>, inembed: Sizes<'_, c_int>, istride: c_int, idist: c_int,
        onembed: Sizes<'_, c_int>, ostride: c_int, odist: c_int, kind: c_int, batch: c_int, place: Place<'_, usize>) {
        let numbers = [istride, idist, ostride, odist, batch];
        estimate(place, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// `cufftEstimate1d` for a plan with settings.
    cufftGetSize1d(handle: Handle, n: c_int, kind: c_int, batch: c_int, place: Place<'_, usize>) {
        size(handle, place, plain(&[n], kind, batch))
    }

    /// `cufftEstimate2d` for a plan with settings.
    cufftGetSize2d(handle: Handle, x: c_int, y: c_int, kind: c_int, place: Place<'_, usize>) {
        size(handle, place, plain(&[x, y], kind, 1))
    }

    /// `cufftEstimate3d` for a plan with settings.
    cufftGetSize3d(handle: Handle, x: c_int, y: c_int, z: c_int, kind: c_int, place: Place<'_, usize>) {
        size(handle, place, plain(&[x, y, z], kind, 1))
    }

    /// `cufftEstimateMany` for a plan with settings.
    cufftGetSizeMany(handle: Handle, rank: c_int, n: Sizes<'_, c_int>, inembed: Sizes<'_, c_int>, istride: c_int, idist: c_int,
        onembed: Sizes<'_, c_int>, ostride: c_int, odist: c_int, kind: c_int, batch: c_int, place: Place<'_, usize>) {
        let numbers = [istride, idist, ostride, odist, batch];
        size(handle, place, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// `cufftGetSizeMany` with 64-bit sizes.
    cufftGetSizeMany64(handle: Handle, rank: c_int, n: Sizes<'_, c_longlong>, inembed: Sizes<'_, c_longlong>, istride: c_longlong,
        idist: c_longlong, onembed: Sizes<'_, c_longlong>, ostride: c_longlong, odist: c_longlong, kind: c_int, batch: c_longlong,
        place: Place<'_, usize>) {
        let numbers = [istride, idist, ostride, odist, batch];
        size(handle, place, layout([n, inembed, onembed], rank, numbers, of_type(kind)))
    }

    /// `cufftGetSizeMany64` for any types of numbers.
    cufftXtGetSizeMany(handle: Handle, rank: c_int, n: Sizes<'_, c_longlong>, inembed: Sizes<'_, c_longlong>, istride: c_longlong,
        idist: c_longlong, input: c_int, onembed: Sizes<'_, c_longlong>, ostride: c_longlong, odist: c_longlong, output: c_int,
        batch: c_longlong, place: Place<'_, usize>, execution: c_int) {
        let numbers = [istride, idist, ostride, odist, batch];
        size(handle, place, layout([n, inembed, onembed], rank, numbers, of_types(input, output, execution)))
    }
}
