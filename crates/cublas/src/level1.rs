//! Level 1: vectors. Sums of many elements (dot products, norms) are made of 8 sums, of the elements whose index has the same rest, for
//! every 4096 elements; these 8 are added pairwise, and the sums of the parts in ascending order. The norm and its squares are `f64`.

use linalg::{C32, C64, Kind, Scalar, Vector, list};
use mathlib::Error;

use crate::call::{Call, size};
use crate::declare::{Ptr, routines};
use crate::gemm::with_type;
use crate::operand::kind;
use crate::status::Status;

/// Elements of a part of a sum.
const PART: usize = 4096;
/// Sums of a part.
const LANES: usize = 8;

/// The sum of terms, in the documented order.
pub fn sum<T: Scalar>(count: usize, term: impl Fn(usize) -> T + Send + Sync) -> T {
    let parts = list(count.div_ceil(PART), count, |part| {
        let mut lanes = [T::default(); LANES];
        for i in part * PART..((part + 1) * PART).min(count) {
            lanes[i % LANES] = lanes[i % LANES] + term(i);
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    });
    parts.into_iter().fold(T::default(), |sum, part| sum + part)
}

/// The types of a function: of the vectors, of the scalar or the result.
#[derive(Clone, Copy)]
pub struct Types {
    /// Of x.
    pub x: Kind,
    /// Of y.
    pub y: Kind,
    /// Of the scalar or the result.
    pub scalar: Kind,
}

impl Types {
    /// All of one type.
    pub fn of<T: Scalar>() -> Types {
        Types { x: T::KIND, y: T::KIND, scalar: T::KIND }
    }
}

/// The type to compute with, of a function of types that the arguments name (`cudaDataType`): of x, y, the scalar, the execution.
///
/// # Errors
/// If the library does not have this combination.
pub fn mixed([x, y, scalar, execution]: [u32; 4]) -> Result<(Types, Kind), Status> {
    let types = Types { x: kind(x)?, y: kind(y)?, scalar: kind(scalar)? };
    let execution = kind(execution)?;
    let is_half = |kind| matches!(kind, Kind::R16 | Kind::B16);
    let fits = match execution {
        Kind::R32 => {
            let all = [types.x, types.y, types.scalar];
            all.iter().all(|&kind| kind == Kind::R32 || is_half(kind)) && (types.x == types.y)
        }
        Kind::R64 | Kind::C32 | Kind::C64 => {
            let is_scaled = types.scalar == execution || types.scalar == real_of(execution);
            types.x == execution && types.y == execution && is_scaled
        }
        _ => false,
    };
    if fits { Ok((types, execution)) } else { Err(Status::NOT_SUPPORTED) }
}

/// The real type of a complex one.
pub fn real_of(kind: Kind) -> Kind {
    match kind {
        Kind::C32 => Kind::R32,
        Kind::C64 => Kind::R64,
        other => other,
    }
}

/// No elements: the length is not positive. Functions do nothing then, or result in 0.
pub fn length(n: i64) -> usize {
    size(n).unwrap_or(0)
}

/// y = alpha x + y.
fn axpy<T: Scalar>(
    call: Call,
    types: Types,
    n: i64,
    alpha: Ptr,
    x: (Ptr, i64),
    y: (Ptr, i64),
) -> Result<(), Status> {
    let n = length(n);
    if n == 0 {
        return Ok(());
    }
    let alpha = call.scalar_of::<T>("alpha", alpha, types.scalar)?;
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    call.submit(move || {
        let alpha = alpha.get(call)?;
        if alpha.is_zero() {
            return Ok(());
        }
        let (x, old) = (x.load::<T>(call.name)?, y.load::<T>(call.name)?);
        let new: Vec<T> = x.into_iter().zip(old).map(|(x, y)| alpha * x + y).collect();
        y.store(call.name, &new)
    })
}

/// x = alpha x. `alpha` may be real.
fn scal<T: Scalar>(call: Call, types: Types, n: i64, alpha: Ptr, x: (Ptr, i64)) -> Result<(), Status> {
    let n = length(n);
    if n == 0 || x.1 <= 0 {
        return Ok(());
    }
    let alpha = call.scalar_of::<T>("alpha", alpha, types.scalar)?;
    let is_real = types.scalar != T::KIND || !T::IS_COMPLEX;
    let x = call.vector("x", types.x, x.0, n, x.1)?;
    call.submit(move || {
        let alpha = alpha.get(call)?;
        let scaled = x.load::<T>(call.name)?.into_iter().map(|value| match is_real {
            true => T::from_parts(alpha.re() * value.re(), alpha.re() * value.im()),
            false => alpha * value,
        });
        x.store(call.name, &scaled.collect::<Vec<T>>())
    })
}

/// y = x.
fn copy<T: Scalar>(call: Call, types: Types, n: i64, x: (Ptr, i64), y: (Ptr, i64)) -> Result<(), Status> {
    let n = length(n);
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    if n == 0 { Ok(()) } else { call.submit(move || y.store(call.name, &x.load::<T>(call.name)?)) }
}

/// x and y change places.
fn swap<T: Scalar>(call: Call, types: Types, n: i64, x: (Ptr, i64), y: (Ptr, i64)) -> Result<(), Status> {
    let n = length(n);
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    if n == 0 {
        return Ok(());
    }
    call.submit(move || {
        let (first, second) = (x.load::<T>(call.name)?, y.load::<T>(call.name)?);
        x.store(call.name, &second)?;
        y.store(call.name, &first)
    })
}

/// The sum of x y, or of conj(x) y.
fn dot<T: Scalar>(
    call: Call,
    types: Types,
    conjugated: bool,
    n: i64,
    [x, y]: [(Ptr, i64); 2],
    result: Ptr,
) -> Result<(), Status> {
    let n = length(n);
    let to = call.destination(result, types.scalar)?;
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    call.deliver(to, move || {
        let (x, y) = (x.load::<T>(call.name)?, y.load::<T>(call.name)?);
        Ok(sum(n, |i| x[i].conjugate_if(conjugated) * y[i]))
    })
}

/// A vector of a function that takes only positive steps: an empty one for others.
fn positive(call: &Call, kind: Kind, n: i64, x: (Ptr, i64)) -> Result<(usize, Vector), Status> {
    let n = if x.1 <= 0 { 0 } else { length(n) };
    Ok((n, call.vector("x", kind, x.0, n, x.1)?))
}

/// The Euclidean norm.
fn nrm2<T: Scalar>(call: Call, types: Types, n: i64, x: (Ptr, i64), result: Ptr) -> Result<(), Status> {
    let to = call.destination(result, types.scalar)?;
    let (n, x) = positive(&call, types.x, n, x)?;
    call.deliver(to, move || {
        let x = x.load::<T>(call.name)?;
        let wide = |i: usize| x[i].wide();
        let largest = (0..n)
            .flat_map(wide)
            .fold(0.0, |most: f64, part| if part.is_nan() { f64::NAN } else { part.abs().max(most) });
        let any_nan = (0..n).flat_map(wide).any(f64::is_nan);
        let norm = match largest {
            _ if any_nan => f64::NAN,
            most if most == 0.0 || most.is_infinite() => most,
            most => {
                // A power of two near the largest keeps squares from overflow and underflow, and rounds nothing.
                let exponent = ((most.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
                let (down, up) = (f64::powi(2.0, -exponent), f64::powi(2.0, exponent));
                let square = |i: usize| {
                    let [re, im] = x[i].wide().map(|part| part * down);
                    re * re + im * im
                };
                sum(n, square).sqrt() * up
            }
        };
        Ok(T::of(norm, 0.0))
    })
}

/// The sum of |re| + |im|.
fn asum<T: Scalar>(call: Call, types: Types, n: i64, x: (Ptr, i64), result: Ptr) -> Result<(), Status> {
    let to = call.destination(result, types.scalar)?;
    let (n, x) = positive(&call, types.x, n, x)?;
    call.deliver(to, move || {
        let x = x.load::<T>(call.name)?;
        Ok(T::real(sum(n, |i| x[i].taxi())))
    })
}

/// The first element with the largest or smallest |re| + |im|, from 1; 0 for none. NaN is passed over.
fn extreme<T: Scalar>(
    call: Call,
    kind: Kind,
    is_largest: bool,
    n: i64,
    x: (Ptr, i64),
    result: Ptr,
) -> Result<(), Status> {
    let to = call.destination(result, if call.is_wide { Kind::R64 } else { Kind::I32 })?;
    let (n, x) = positive(&call, kind, n, x)?;
    let work = move || -> Result<i64, Error> {
        let x = x.load::<T>(call.name)?;
        let mut best: Option<(usize, T::Real)> = None;
        for (i, value) in x.iter().map(|value| value.taxi()).enumerate() {
            let is_better = match best {
                None => !Into::<f64>::into(value).is_nan(),
                Some((_, old)) if is_largest => value > old,
                Some((_, old)) => value < old,
            };
            if is_better {
                best = Some((i, value));
            }
        }
        Ok(best.map_or(i64::from(n > 0), |(i, _)| i as i64 + 1))
    };
    call.deliver_with(to, work, move |_, place, index: i64| {
        // SAFETY: the place is for an integer of this width.
        unsafe {
            match call.is_wide {
                true => place.cast::<i64>().write_unaligned(index),
                false => place.cast::<i32>().write_unaligned(index as i32),
            }
        }
    })
}

/// Types of vectors and scalars, where only the scalar is real.
pub fn with_real<T: Scalar>() -> Types {
    Types { scalar: T::Real::KIND, ..Types::of::<T>() }
}

routines! { API:
    /// y = alpha x + y.
    "axpy_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int) |call| {
        axpy::<T>(call, Types::of::<T>(), n, alpha, (x, incx), (y, incy))
    }
    /// y = alpha x + y, for the types that the arguments name.
    "AxpyEx" ["" f32] (n: Int, alpha: Ptr, alphatype: u32, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int, execution: u32) |call| {
        let (types, works) = mixed([xtype, ytype, alphatype, execution])?;
        with_type!(works, W => axpy::<W>(call, types, n, alpha, (x, incx), (y, incy)))
    }
    /// x = alpha x.
    "scal_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (n: Int, alpha: Ptr, x: Ptr, incx: Int) |call| {
        scal::<T>(call, Types::of::<T>(), n, alpha, (x, incx))
    }
    /// x = alpha x, with real alpha.
    "scal_v2" ["Cs" C32, "Zd" C64] (n: Int, alpha: Ptr, x: Ptr, incx: Int) |call| {
        scal::<T>(call, with_real::<T>(), n, alpha, (x, incx))
    }
    /// x = alpha x, for the types that the arguments name.
    "ScalEx" ["" f32] (n: Int, alpha: Ptr, alphatype: u32, x: Ptr, xtype: u32, incx: Int, execution: u32) |call| {
        let (types, works) = mixed([xtype, xtype, alphatype, execution])?;
        with_type!(works, W => scal::<W>(call, types, n, alpha, (x, incx)))
    }
    /// y = x.
    "copy_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int) |call| {
        copy::<T>(call, Types::of::<T>(), n, (x, incx), (y, incy))
    }
    /// y = x, for the types that the arguments name: the same.
    "CopyEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int) |call| {
        let (types, works) = same(xtype, ytype)?;
        with_type!(works, W => copy::<W>(call, types, n, (x, incx), (y, incy)))
    }
    /// x and y change places.
    "swap_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int) |call| {
        swap::<T>(call, Types::of::<T>(), n, (x, incx), (y, incy))
    }
    /// x and y change places, for the types that the arguments name: the same.
    "SwapEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int) |call| {
        let (types, works) = same(xtype, ytype)?;
        with_type!(works, W => swap::<W>(call, types, n, (x, incx), (y, incy)))
    }
    /// The dot product of x and y.
    "dot_v2" ["S" f32, "D" f64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, result: Ptr) |call| {
        dot::<T>(call, Types::of::<T>(), false, n, [(x, incx), (y, incy)], result)
    }
    /// The dot product of x and y, neither conjugated.
    "dotu_v2" ["C" C32, "Z" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, result: Ptr) |call| {
        dot::<T>(call, Types::of::<T>(), false, n, [(x, incx), (y, incy)], result)
    }
    /// The dot product of the conjugate of x and y.
    "dotc_v2" ["C" C32, "Z" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, result: Ptr) |call| {
        dot::<T>(call, Types::of::<T>(), true, n, [(x, incx), (y, incy)], result)
    }
    /// The dot product of x and y, for the types that the arguments name.
    "DotEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int, result: Ptr, resulttype: u32, execution: u32) |call| {
        let (types, works) = mixed([xtype, ytype, resulttype, execution])?;
        with_type!(works, W => dot::<W>(call, types, false, n, [(x, incx), (y, incy)], result))
    }
    /// The dot product of the conjugate of x and y, for the types that the arguments name.
    "DotcEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int, result: Ptr, resulttype: u32, execution: u32) |call| {
        let (types, works) = mixed([xtype, ytype, resulttype, execution])?;
        with_type!(works, W => dot::<W>(call, types, true, n, [(x, incx), (y, incy)], result))
    }
    /// The Euclidean norm of x.
    "nrm2_v2" ["S" f32, "D" f64, "Sc" C32, "Dz" C64] (n: Int, x: Ptr, incx: Int, result: Ptr) |call| {
        nrm2::<T>(call, with_real::<T>(), n, (x, incx), result)
    }
    /// The Euclidean norm of x, for the types that the arguments name.
    "Nrm2Ex" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, result: Ptr, resulttype: u32, execution: u32) |call| {
        let (types, works) = of_norm(xtype, resulttype, execution)?;
        with_type!(works, W => nrm2::<W>(call, types, n, (x, incx), result))
    }
    /// The sum of the magnitudes of the parts of x.
    "asum_v2" ["S" f32, "D" f64, "Sc" C32, "Dz" C64] (n: Int, x: Ptr, incx: Int, result: Ptr) |call| {
        asum::<T>(call, with_real::<T>(), n, (x, incx), result)
    }
    /// The sum of the magnitudes of the parts of x, for the types that the arguments name.
    "AsumEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, result: Ptr, resulttype: u32, execution: u32) |call| {
        let (types, works) = of_norm(xtype, resulttype, execution)?;
        with_type!(works, W => asum::<W>(call, types, n, (x, incx), result))
    }
    /// The first element of x with the largest |re| + |im|, from 1.
    "amax_v2" ["Is" f32, "Id" f64, "Ic" C32, "Iz" C64] (n: Int, x: Ptr, incx: Int, result: Ptr) |call| {
        extreme::<T>(call, T::KIND, true, n, (x, incx), result)
    }
    /// The first element of x with the smallest |re| + |im|, from 1.
    "amin_v2" ["Is" f32, "Id" f64, "Ic" C32, "Iz" C64] (n: Int, x: Ptr, incx: Int, result: Ptr) |call| {
        extreme::<T>(call, T::KIND, false, n, (x, incx), result)
    }
    /// The first element of x with the largest |re| + |im|, from 1, for the type that the arguments name.
    "IamaxEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, result: Ptr) |call| {
        let (types, works) = same(xtype, xtype)?;
        with_type!(works, W => extreme::<W>(call, types.x, true, n, (x, incx), result))
    }
    /// The first element of x with the smallest |re| + |im|, from 1, for the type that the arguments name.
    "IaminEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, result: Ptr) |call| {
        let (types, works) = same(xtype, xtype)?;
        with_type!(works, W => extreme::<W>(call, types.x, false, n, (x, incx), result))
    }
}

/// Two vectors of the same type, and the type to compute with.
fn same(x: u32, y: u32) -> Result<(Types, Kind), Status> {
    let (x, y) = (kind(x)?, kind(y)?);
    let works = match x {
        Kind::R16 | Kind::B16 => Kind::R32,
        other => other,
    };
    if x != y || matches!(x, Kind::I8 | Kind::I32) {
        Err(Status::NOT_SUPPORTED)
    } else {
        Ok((Types { x, y, scalar: x }, works))
    }
}

/// A vector and a real result, and the type to compute with.
fn of_norm(x: u32, result: u32, execution: u32) -> Result<(Types, Kind), Status> {
    let (types, works) = same(x, x)?;
    let (result, execution) = (kind(result)?, kind(execution)?);
    let fits = result == real_of(types.x) && (execution == real_of(works) || execution == works);
    if fits { Ok((Types { scalar: result, ..types }, works)) } else { Err(Status::NOT_SUPPORTED) }
}
