//! Random shapes, layouts and matrices: factors multiplied again, residuals, what should be unitary, and spectra that are known because
//! the matrix was made from them, within the documented bounds. What must not be read is NaN, and what must not be written is compared.
//!
//! `PTXVM_SHAPES=10000 cargo test -p ptxvm-cusolver --test differential` takes so many of each kind; 60 without it.

#[path = "../rig/mod.rs"]
mod rig;

mod contract;
mod forms;
mod general;
mod singular;
mod solve;
mod spectrum;

use rig::{Buffer, Dense, Handle, Num, Stored, Ty, at, ok};

/// Does so many random cases.
fn cases(seed: u64, mut case: impl FnMut(&mut fastrand::Rng, &Handle)) {
    let count = std::env::var("PTXVM_SHAPES").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let handle = Handle::new();
    for number in 0..count {
        let mut random = fastrand::Rng::with_seed(seed * 1_000_003 + number);
        case(&mut random, &handle);
    }
}

/// A size: often 0 or 1, rarely large.
fn size(random: &mut fastrand::Rng) -> usize {
    match random.u8(..20) {
        0 => 0,
        1 | 2 => 1,
        3 => random.usize(40..110),
        _ => random.usize(1..24),
    }
}

fn pick<T: Copy>(random: &mut fastrand::Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

fn ld(random: &mut fastrand::Rng, rows: usize) -> usize {
    rows.max(1) + pick(random, &[0, 0, 1, 5])
}

/// The name of a function for a type, which complex numbers may have another one for.
fn named(ty: Ty, real: &str, complex: &str) -> String {
    format!("cusolverDn{}{}", ty.letter(), if ty.is_complex() { complex } else { real })
}

/// A whole matrix in memory.
fn whole(random: &mut fastrand::Rng, ty: Ty, dense: &Dense) -> Stored {
    let ld = ld(random, dense.rows);
    Stored::new(ty, dense, ld, |_, _| true)
}

/// A triangle in memory.
fn triangle(random: &mut fastrand::Rng, ty: Ty, dense: &Dense, upper: bool) -> Stored {
    let ld = ld(random, dense.rows);
    Stored::new(ty, dense, ld, |i, j| i == j || (i < j) == upper)
}

/// Room for results: NaN.
fn room(random: &mut fastrand::Rng, ty: Ty, rows: usize, columns: usize) -> Stored {
    let ld = ld(random, rows);
    Stored::new(ty, &Dense::new(rows, columns, |_, _| rig::NAN), ld, |_, _| true)
}

/// A vector in memory.
fn vector(ty: Ty, count: usize) -> Stored {
    Stored::new(ty, &Dense::new(count, 1, |_, _| rig::NAN), count.max(1), |_, _| true)
}

/// A workspace as long as the library says.
fn workspace(name: &str, ty: Ty, arguments: &[u64]) -> (Buffer, u64) {
    let mut length = 0i32;
    let mut all = arguments.to_vec();
    all.push(at(&mut length));
    ok(&format!("{name}_bufferSize"), &all);
    assert!(length > 0, "{name}");
    (Buffer::new(&ty.encode(&vec![rig::NAN; length as usize])), length as u64)
}

/// An integer of the device: 9.
fn info() -> Buffer {
    Buffer::new(&9i32.to_ne_bytes())
}

/// The bound for results of matrices of an order and norm. Below the least normal number, an error is not in proportion to what is
/// rounded.
fn bound(ty: Ty, n: usize, norm: f64) -> f64 {
    let least = match ty.real() {
        Ty::S => f64::from(f32::MIN_POSITIVE),
        _ => f64::MIN_POSITIVE,
    };
    40.0 * (n + 4) as f64 * ty.unit() * norm.max(least)
}

/// A matrix rounded to a type.
fn rounded(ty: Ty, dense: &Dense) -> Dense {
    let values = ty.decode(&ty.encode(&dense.values));
    Dense { values, ..*dense }
}

/// A Hermitian matrix with these eigenvalues, rounded.
fn hermitian(random: &mut fastrand::Rng, ty: Ty, values: &[f64]) -> Dense {
    let n = values.len();
    let q = rig::unitary(ty, n, random);
    let scaled = Dense::new(n, n, |i, j| q.at(i, j).map(|part| part * values[j]));
    let a = rig::times(&scaled, 0, &q, 2);
    let even = |i: usize, j: usize| {
        let (x, y) = (a.at(i, j), rig::conj(a.at(j, i)));
        [0.5 * (x[0] + y[0]), if i == j { 0.0 } else { 0.5 * (x[1] + y[1]) }]
    };
    rounded(ty, &Dense::new(n, n, even))
}

/// Random values: of one size, repeated, zero for a part, or graded over many sizes. Descending.
fn values(random: &mut fastrand::Rng, n: usize, positive: bool) -> Vec<f64> {
    let kind = random.u8(..5);
    let mut values: Vec<f64> = (0..n)
        .map(|i| {
            let value: f64 = match kind {
                0 => f64::from(random.u8(..3)),
                1 if i > n / 2 => 0.0,
                2 => 2f64.powi(-random.i32(0..60)),
                _ => random.f64() + 0.01,
            };
            if positive || random.bool() { value } else { -value }
        })
        .collect();
    // Sizes at the ends of what the type has.
    let scale = pick(random, &[1.0, 1.0, 1.0, 1e-30, 1e30]);
    values.iter_mut().for_each(|value| *value *= scale);
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// Checks that columns are orthonormal.
fn orthonormal(what: &str, ty: Ty, of: &Dense) {
    let error = rig::distance(&rig::times(of, 2, of, 0), &rig::unit(of.columns));
    let most = bound(ty, of.rows, 1.0);
    assert!(error <= most, "{what} {} x {}: {error:e} > {most:e}", of.rows, of.columns);
}

/// Checks that two matrices differ by no more than the bound for a norm.
fn close(what: &str, ty: Ty, got: &Dense, wanted: &Dense, norm: f64) {
    let (error, most) = (rig::distance(got, wanted), bound(ty, got.rows.max(got.columns), norm));
    assert!(error <= most, "{what} {} x {}: {error:e} > {most:e}", got.rows, got.columns);
}

/// A part of a matrix.
fn part(of: &Dense, rows: usize, columns: usize, is_there: impl Fn(usize, usize) -> bool) -> Dense {
    Dense::new(rows, columns, |i, j| if is_there(i, j) { of.at(i, j) } else { [0.0; 2] })
}

/// Real numbers as a diagonal.
fn diagonal(values: &[Num], rows: usize, columns: usize) -> Dense {
    Dense::new(rows, columns, |i, j| if i == j { values[i] } else { [0.0; 2] })
}
