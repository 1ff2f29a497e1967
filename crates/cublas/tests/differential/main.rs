//! Random shapes, layouts and factors against sums in twice the precision, within the documented bounds. What must not be read is NaN, and
//! what must not be written is compared.
//!
//! `PTXVM_SHAPES=10000 cargo test -p ptxvm-cublas --test differential` takes so many of each kind; 300 without it.

#[path = "../rig/mod.rs"]
mod rig;

mod contract;
mod gemm;
mod level1;
mod level2;
mod level3;
mod lt;
mod systems;

use rig::{Buffer, Dense, Handle, NAN, Num, Stored, Ty, ok};

/// Does so many random cases.
fn cases(seed: u64, mut case: impl FnMut(&mut fastrand::Rng, &Handle)) {
    let count = std::env::var("PTXVM_SHAPES").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
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
        3 => random.usize(40..150),
        _ => random.usize(1..24),
    }
}

fn pick<T: Copy>(random: &mut fastrand::Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

fn step(random: &mut fastrand::Rng) -> i64 {
    pick(random, &[1, 1, 1, 2, 3, -1, -2])
}

fn ld(random: &mut fastrand::Rng, rows: usize) -> usize {
    rows.max(1) + pick(random, &[0, 0, 1, 5])
}

/// The name for one of both widths of integers.
fn named(random: &mut fastrand::Rng, ty: Ty, rest: &str) -> String {
    format!("cublas{}{rest}{}", ty.letter(), if random.bool() { "_64" } else { "" })
}

/// Chooses the pointer mode.
fn mode(random: &mut fastrand::Rng, handle: &Handle) -> bool {
    let on_device = random.bool();
    ok("cublasSetPointerMode_v2", &[handle.0, on_device.into()]);
    on_device
}

/// The bound for each element.
fn bounds(sizes: &Dense, factor: f64) -> Dense {
    Dense::new(sizes.rows, sizes.columns, |i, j| [sizes.at(i, j)[0] * factor + f64::MIN_POSITIVE; 2])
}

/// A matrix that is `beta C` before.
fn before(ty: Ty, rows: usize, columns: usize, beta: Num, random: &mut fastrand::Rng) -> Dense {
    if beta == [0.0; 2] {
        Dense::new(rows, columns, |_, _| NAN)
    } else {
        Dense::random(ty, rows, columns, random)
    }
}

/// How a square matrix of level 2 is stored: by columns, as a band, packed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Full(usize),
    Band(usize, usize),
    Packed,
}

/// The place of an element of a triangle.
fn place(form: Form, upper: bool, n: usize, i: usize, j: usize) -> Option<usize> {
    if if upper { i > j } else { i < j } {
        return None;
    }
    match form {
        Form::Full(ld) => Some(i + j * ld),
        Form::Band(k, _) if i.abs_diff(j) > k => None,
        Form::Band(k, ld) => Some(if upper { k + i - j } else { i - j } + j * ld),
        // Columns one behind the other, counted.
        Form::Packed if upper => Some((0..j).map(|c| c + 1).sum::<usize>() + i),
        Form::Packed => Some((0..j).map(|c| n - c).sum::<usize>() + i - j),
    }
}

/// A triangle in memory.
fn triangle(ty: Ty, form: Form, upper: bool, dense: &Dense) -> Stored {
    let n = dense.rows;
    let count = match form {
        _ if n == 0 => 0,
        Form::Full(ld) => ld * (n - 1) + n,
        Form::Band(k, ld) => ld * (n - 1) + k + 1,
        Form::Packed => n * (n + 1) / 2,
    };
    let mut values = vec![NAN; count];
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        if let Some(place) = place(form, upper, n, i, j) {
            values[place] = dense.at(i, j);
        }
    }
    let buffer = Buffer::new(&ty.encode(&values));
    Stored { ty, ld: 1, values, buffer }
}

/// A random form, with the letters that it has in names, and its arguments.
fn form(random: &mut fastrand::Rng, n: usize) -> (Form, usize) {
    match random.u8(..3) {
        0 => (Form::Full(ld(random, n)), 0),
        1 => {
            let k = random.usize(..6);
            (Form::Band(k, ld(random, k + 1)), 1)
        }
        _ => (Form::Packed, 2),
    }
}

/// A triangular matrix with a heavy diagonal: whole, and what memory has.
fn triangular(
    random: &mut fastrand::Rng,
    ty: Ty,
    n: usize,
    form: Form,
    upper: bool,
    unit: bool,
) -> (Dense, Stored) {
    let scale = 1.0 / (n.max(1) as f64);
    let scale = if ty.is_single() { f64::from(scale as f32) } else { scale };
    let mut memory = Dense::new(n, n, |i, j| {
        let value = ty.random(random);
        let value = if i == j { [2.0 + value[0], value[1]] } else { value.map(|part| part * scale) };
        ty.decode(&ty.encode(&[value]))[0]
    });
    let dense = Dense::new(n, n, |i, j| match place(form, upper, n, i, j) {
        Some(_) if i == j && unit => [1.0, 0.0],
        Some(_) => memory.at(i, j),
        None => [0.0; 2],
    });
    if unit {
        (0..n).for_each(|i| memory.values[i + i * n] = NAN);
    }
    let stored = triangle(ty, form, upper, &memory);
    (dense, stored)
}
