//! Rotations of pairs of numbers.

use crate::call::{Call, Destination};
use crate::declare::{Ptr, routines};
use crate::gemm::with_type;
use crate::level1::{Types, length, mixed, real_of, with_real};
use crate::status::Status;
use linalg::{C32, C64, Kind, Scalar};

/// Rotates points (x, y): x = c x + s y, y = c y - conj(s) x.
fn rot<T: Scalar>(
    call: Call,
    types: Types,
    n: i64,
    [x, y]: [(Ptr, i64); 2],
    [c, s]: [Ptr; 2],
    c_kind: Kind,
) -> Result<(), Status> {
    let n = length(n);
    if n == 0 {
        return Ok(());
    }
    let (c, s) = (call.scalar_of::<T>("c", c, c_kind)?, call.scalar_of::<T>("s", s, types.scalar)?);
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    call.submit(move || {
        let (c, s) = (c.get(call)?, s.get(call)?);
        let pairs: Vec<(T, T)> = x.load::<T>(call.name)?.into_iter().zip(y.load::<T>(call.name)?).collect();
        let scale = |by: T, value: T| match by.im() == T::Real::default() {
            true => T::from_parts(by.re() * value.re(), by.re() * value.im()),
            false => by * value,
        };
        let first: Vec<T> = pairs.iter().map(|&(x, y)| scale(c, x) + scale(s, y)).collect();
        let second: Vec<T> = pairs.iter().map(|&(x, y)| scale(c, y) - scale(s.conjugate(), x)).collect();
        x.store(call.name, &first)?;
        y.store(call.name, &second)
    })
}

/// Rotates points by a matrix that the first of 5 parameters gives a form.
fn rotm<T: Scalar>(
    call: Call,
    types: Types,
    n: i64,
    [x, y]: [(Ptr, i64); 2],
    param: Ptr,
) -> Result<(), Status> {
    let n = length(n);
    if n == 0 {
        return Ok(());
    }
    let param = parameters(&call, param, types.scalar)?;
    let (x, y) = (call.vector("x", types.x, x.0, n, x.1)?, call.vector("y", types.y, y.0, n, y.1)?);
    call.submit(move || {
        let [flag, h11, h21, h12, h22] = param.map(|value| value.get(call));
        let (flag, h11, h21, h12, h22): (T, T, T, T, T) = (flag?, h11?, h21?, h12?, h22?);
        let matrix = match flag.wide()[0] {
            -1.0 => [h11, h12, h21, h22],
            0.0 => [T::ONE, h12, h21, T::ONE],
            1.0 => [h11, T::ONE, -T::ONE, h22],
            _ => return Ok(()),
        };
        let pairs: Vec<(T, T)> = x.load::<T>(call.name)?.into_iter().zip(y.load::<T>(call.name)?).collect();
        let first: Vec<T> = pairs.iter().map(|&(x, y)| matrix[0] * x + matrix[1] * y).collect();
        let second: Vec<T> = pairs.iter().map(|&(x, y)| matrix[2] * x + matrix[3] * y).collect();
        x.store(call.name, &first)?;
        y.store(call.name, &second)
    })
}

/// The 5 parameters.
fn parameters<T: Scalar>(
    call: &Call,
    at: Ptr,
    kind: Kind,
) -> Result<[crate::call::Coefficient<T>; 5], Status> {
    let one = |i: usize| call.scalar_of::<T>("param", at.wrapping_byte_add(i * kind.bytes()), kind);
    Ok([one(0)?, one(1)?, one(2)?, one(3)?, one(4)?])
}

/// Computes values from values of the program, in memory of the host or of the device, whichever the handle says.
fn small<T: Scalar, const IN: usize, const OUT: usize>(
    call: Call,
    from: [(Ptr, Kind); IN],
    to: [(Ptr, Kind); OUT],
    compute: impl Fn([T; IN]) -> [T; OUT] + Send + Sync + 'static,
) -> Result<(), Status> {
    let mut inputs = Vec::new();
    for (pointer, kind) in from {
        inputs.push(call.scalar_of::<T>("a parameter", pointer, kind)?);
    }
    let mut places = Vec::new();
    for (pointer, kind) in to {
        places.push(call.destination(pointer, kind)?);
    }
    let work = move || {
        let mut values = [T::default(); IN];
        for (value, input) in values.iter_mut().zip(&inputs) {
            *value = input.get(call)?;
        }
        for (place, value) in places.iter().zip(compute(values)) {
            match *place {
                Destination::Device(range, kind) => {
                    let memory = range.reach(call.name)?;
                    // SAFETY: the range is one element of the kind.
                    unsafe { linalg::write(kind, memory.pointer(), 0, value) };
                    memory.wrote::<u8>(0, kind.bytes());
                }
                // SAFETY: the program promises room for the result.
                Destination::Host(place, kind) => unsafe {
                    linalg::write(kind, std::ptr::with_exposed_provenance_mut(place), 0, value);
                },
            }
        }
        Ok(())
    };
    // With memory of the host, nothing is waited for, as on a GPU.
    if call.on_device { call.submit(work) } else { Ok(work()?) }
}

/// The rotation that makes (a, b) to (r, 0): r, z, c, s. Real numbers as in LAPACK's `la_xisnan` free form of the BLAS.
fn rotation<T: Scalar>([a, b]: [T; 2]) -> [T; 4] {
    let zero = T::default();
    if T::IS_COMPLEX {
        let (size, other) = (a.magnitude(), b.magnitude());
        if a.is_zero() {
            return [b, zero, zero, T::ONE];
        }
        let scale = size.into() + other.into();
        let parts = [size.into() / scale, other.into() / scale];
        let norm = scale * (parts[0] * parts[0] + parts[1] * parts[1]).sqrt();
        let unit = a / T::of(size.into(), 0.0);
        let s = unit * b.conjugate() / T::of(norm, 0.0);
        return [unit * T::of(norm, 0.0), zero, T::of(size.into() / norm, 0.0), s];
    }
    let [x, y] = [a.wide()[0], b.wide()[0]];
    let roe = if x.abs() > y.abs() { x } else { y };
    let scale = x.abs() + y.abs();
    if scale == 0.0 {
        return [zero, zero, T::ONE, zero];
    }
    let r = (scale * ((x / scale) * (x / scale) + (y / scale) * (y / scale)).sqrt()).copysign(roe);
    let (c, s) = (x / r, y / r);
    let z = match () {
        () if x.abs() > y.abs() => s,
        () if c != 0.0 => 1.0 / c,
        () => 1.0,
    };
    [r, z, c, s].map(|value| T::of(value, 0.0))
}

/// The modified rotation: d1, d2, x1 and the 5 parameters, as the BLAS has it.
fn modified<T: Scalar>(of: [T; 4]) -> [T; 8] {
    const GAMMA: f64 = 4096.0;
    let [mut d1, mut d2, mut x1, y1] = of.map(|value| value.wide()[0]);
    let (flag, mut h): (f64, [f64; 4]);
    let result = |d1: f64, d2: f64, x1: f64, flag: f64, h: [f64; 4]| {
        let [h11, h21, h12, h22] = h;
        [d1, d2, x1, flag, h11, h21, h12, h22].map(|value| T::of(value, 0.0))
    };
    if d1 < 0.0 {
        return result(0.0, 0.0, 0.0, -1.0, [0.0; 4]);
    }
    let p2 = d2 * y1;
    if p2 == 0.0 {
        return result(d1, d2, x1, -2.0, [0.0; 4]);
    }
    let (p1, q2) = (d1 * x1, p2 * y1);
    let q1 = p1 * x1;
    if q1.abs() > q2.abs() {
        let (h21, h12) = (-y1 / x1, p2 / p1);
        let u = 1.0 - h12 * h21;
        if u <= 0.0 {
            return result(0.0, 0.0, 0.0, -1.0, [0.0; 4]);
        }
        (flag, h) = (0.0, [1.0, h21, h12, 1.0]);
        (d1, d2, x1) = (d1 / u, d2 / u, x1 * u);
    } else {
        if q2 < 0.0 {
            return result(0.0, 0.0, 0.0, -1.0, [0.0; 4]);
        }
        let (h11, h22) = (p1 / p2, x1 / y1);
        let u = 1.0 + h11 * h22;
        (flag, h) = (1.0, [h11, -1.0, 1.0, h22]);
        (d1, d2, x1) = (d2 / u, d1 / u, y1 * u);
    }
    let mut flag = flag;
    let rescale = |d: &mut f64, x: Option<&mut f64>, row: usize, h: &mut [f64; 4], flag: &mut f64| {
        let mut factor = 1.0;
        while *d != 0.0 && d.abs() <= 1.0 / (GAMMA * GAMMA) {
            *d *= GAMMA * GAMMA;
            factor /= GAMMA;
        }
        while d.abs() >= GAMMA * GAMMA && d.is_finite() {
            *d /= GAMMA * GAMMA;
            factor *= GAMMA;
        }
        if factor != 1.0 {
            *flag = -1.0;
            if let Some(x) = x {
                *x *= factor;
            }
            h[row] *= factor;
            h[row + 2] *= factor;
        }
    };
    rescale(&mut d1, Some(&mut x1), 0, &mut h, &mut flag);
    rescale(&mut d2, None, 1, &mut h, &mut flag);
    result(d1, d2, x1, flag, h)
}

/// `rotg` with places.
fn rotg<T: Scalar>(call: Call, kinds: [Kind; 2], [a, b, c, s]: [Ptr; 4]) -> Result<(), Status> {
    let [of, c_kind] = kinds;
    if T::IS_COMPLEX {
        let work = |from: [T; 2]| {
            let [r, _, c, s] = rotation(from);
            [r, c, s]
        };
        return small(call, [(a, of), (b, of)], [(a, of), (c, c_kind), (s, of)], work);
    }
    small(call, [(a, of), (b, of)], [(a, of), (b, of), (c, c_kind), (s, of)], rotation::<T>)
}

/// `rotmg` with places.
fn rotmg<T: Scalar>(call: Call, kind: Kind, [d1, d2, x1, y1, param]: [Ptr; 5]) -> Result<(), Status> {
    let at = |i: usize| (param.wrapping_byte_add(i * kind.bytes()), kind);
    let to = [(d1, kind), (d2, kind), (x1, kind), at(0), at(1), at(2), at(3), at(4)];
    small(call, [(d1, kind), (d2, kind), (x1, kind), (y1, kind)], to, modified::<T>)
}

routines! { API:
    /// Rotates the points of x and y.
    "rot_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, c: Ptr, s: Ptr) |call| {
        rot::<T>(call, Types::of::<T>(), n, [(x, incx), (y, incy)], [c, s], <T as Scalar>::Real::KIND)
    }
    /// Rotates the points of x and y, with a real sine.
    "rot_v2" ["Cs" C32, "Zd" C64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, c: Ptr, s: Ptr) |call| {
        rot::<T>(call, with_real::<T>(), n, [(x, incx), (y, incy)], [c, s], <T as Scalar>::Real::KIND)
    }
    /// Rotates the points of x and y, for the types that the arguments name.
    "RotEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int, c: Ptr, s: Ptr, cstype: u32, execution: u32) |call| {
        let (types, works) = mixed([xtype, ytype, cstype, execution])?;
        with_type!(works, W => rot::<W>(call, types, n, [(x, incx), (y, incy)], [c, s], real_of(types.scalar)))
    }
    /// The rotation that makes the second of two numbers zero.
    "rotg_v2" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (a: Ptr, b: Ptr, c: Ptr, s: Ptr) |call| {
        rotg::<T>(call, [T::KIND, <T as Scalar>::Real::KIND], [a, b, c, s])
    }
    /// The rotation that makes the second of two numbers zero, for the types that the arguments name.
    "RotgEx" ["" f32; narrow] (a: Ptr, b: Ptr, abtype: u32, c: Ptr, s: Ptr, cstype: u32, execution: u32) |call| {
        let (types, works) = mixed([abtype, abtype, cstype, execution])?;
        with_type!(works, W => rotg::<W>(call, [types.x, real_of(types.scalar)], [a, b, c, s]))
    }
    /// Rotates the points of x and y by a modified rotation.
    "rotm_v2" ["S" f32, "D" f64] (n: Int, x: Ptr, incx: Int, y: Ptr, incy: Int, param: Ptr) |call| {
        rotm::<T>(call, Types::of::<T>(), n, [(x, incx), (y, incy)], param)
    }
    /// Rotates the points of x and y by a modified rotation, for the types that the arguments name.
    "RotmEx" ["" f32] (n: Int, x: Ptr, xtype: u32, incx: Int, y: Ptr, ytype: u32, incy: Int, param: Ptr, paramtype: u32, execution: u32) |call| {
        let (types, works) = mixed([xtype, ytype, paramtype, execution])?;
        with_type!(works, W => rotm::<W>(call, types, n, [(x, incx), (y, incy)], param))
    }
    /// The modified rotation that makes the second of two numbers zero.
    "rotmg_v2" ["S" f32, "D" f64; narrow] (d1: Ptr, d2: Ptr, x1: Ptr, y1: Ptr, param: Ptr) |call| {
        rotmg::<T>(call, T::KIND, [d1, d2, x1, y1, param])
    }
    /// The modified rotation that makes the second of two numbers zero, for the types that the arguments name: the same.
    "RotmgEx" ["" f32; narrow] (d1: Ptr, d1type: u32, d2: Ptr, d2type: u32, x1: Ptr, x1type: u32, y1: Ptr, y1type: u32, param: Ptr, paramtype: u32, execution: u32) |call| {
        if [d2type, x1type, y1type, paramtype].iter().any(|&other| other != d1type) {
            return Err(Status::NOT_SUPPORTED);
        }
        let (types, works) = mixed([d1type, d1type, d1type, execution])?;
        with_type!(works, W => rotmg::<W>(call, types.x, [d1, d2, x1, y1, param]))
    }
}
