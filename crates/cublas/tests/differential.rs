//! Random shapes, layouts and factors against sums in twice the precision, within the documented bounds. What must not be read is NaN, and
//! what must not be written is compared.
//!
//! `PTXVM_SHAPES=10000 cargo test -p ptxvm-cublas --test differential` takes so many of each kind; 300 without it.

mod rig;

use rig::{Buffer, Dense, Handle, NAN, Num, Scalar, Stored, Ty, call, conj, exact, gamma, ok};

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

#[test]
fn gemm() {
    cases(1, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let (m, n) = (size(random), size(random));
        let k = if random.u8(..8) == 0 { random.usize(500..1300) } else { size(random) };
        let ops = [random.u32(..3), random.u32(..3)];
        let (alpha, beta) = (ty.factor(random), ty.factor(random));
        let count = pick(random, &[1, 1, 3]);
        let stored = |op: u32, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let (a_shape, b_shape) = (stored(ops[0], m, k), stored(ops[1], k, n));
        let lds = [ld(random, a_shape.0), ld(random, b_shape.0), ld(random, m)];
        let unread = alpha == [0.0; 2];
        let operand = |random: &mut fastrand::Rng, shape: (usize, usize)| match unread {
            true => Dense::new(shape.0, shape.1, |_, _| NAN),
            false => Dense::random(ty, shape.0, shape.1, random),
        };
        let mut all = Vec::new();
        for _ in 0..count {
            let (a, b, c) =
                (operand(random, a_shape), operand(random, b_shape), before(ty, m, n, beta, random));
            let stores = [
                Stored::new(ty, &a, lds[0], |_, _| true),
                Stored::new(ty, &b, lds[1], |_, _| true),
                Stored::new(ty, &c, lds[2], |_, _| true),
            ];
            all.push((a, b, c, stores));
        }
        let (factor, by) = (Scalar::new(ty, alpha, on_device), Scalar::new(ty, beta, on_device));
        let [mut pa, mut pb, mut pc] = [0, 1, 2].map(|i| all[0].3[i].buffer.address);
        let lists = [0, 1, 2].map(|i| {
            Buffer::new(
                &all.iter().flat_map(|one| one.3[i].buffer.address.to_ne_bytes()).collect::<Vec<u8>>(),
            )
        });
        let name = if count == 1 { named(random, ty, "gemm_v2") } else { named(random, ty, "gemmBatched") };
        if count > 1 {
            [pa, pb, pc] = [lists[0].address, lists[1].address, lists[2].address];
        }
        let [lda, ldb, ldc] = lds.map(|ld| ld as u64);
        let (m64, n64, k64) = (m as u64, n as u64, k as u64);
        let (x, y) = (factor.address(), by.address());
        ok(
            &name,
            &[
                handle.0,
                ops[0].into(),
                ops[1].into(),
                m64,
                n64,
                k64,
                x,
                pa,
                lda,
                pb,
                ldb,
                y,
                pc,
                ldc,
                count as u64,
            ],
        );
        for (a, b, c, stores) in &all {
            let (want, sizes) = exact(alpha, &a.operated(ops[0]), &b.operated(ops[1]), beta, c);
            let what = format!("{name} {m} {n} {k} {ops:?} {alpha:?} {beta:?}");
            stores[2].check(&what, |i, j| Some(i + j * lds[2]), &want, &bounds(&sizes, gamma(ty, k)));
        }
    });
}

/// Types of GemmEx: of A and B, of C, of the scalars, the computation, and how exact numbers are made.
#[test]
fn gemm_of_mixed_types() {
    use half::{bf16, f16};
    cases(2, |random, handle| {
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        let (m, n, k) = (size(random), size(random), size(random));
        // cudaDataType of A and C, compute type.
        let (of, into, compute): (u32, u32, u32) = pick(
            random,
            &[
                (2, 2, 68),
                (2, 0, 68),
                (14, 14, 68),
                (14, 0, 68),
                (3, 10, 72),
                (3, 0, 68),
                (0, 0, 77),
                (2, 2, 64),
            ],
        );
        let number = |random: &mut fastrand::Rng, kind: u32| match kind {
            2 => f16::from_f32(random.f32() - 0.5).to_f64(),
            14 => bf16::from_f32(random.f32() - 0.5).to_f64(),
            3 => f64::from(random.i8(..)),
            10 => f64::from(random.i32(-1000..1000)),
            _ => f64::from(random.f32() - 0.5),
        };
        let encode = |kind: u32, value: f64| match kind {
            2 => f16::from_f64(value).to_ne_bytes().to_vec(),
            14 => bf16::from_f64(value).to_ne_bytes().to_vec(),
            3 => (value as i8).to_ne_bytes().to_vec(),
            10 => (value as i32).to_ne_bytes().to_vec(),
            _ => (value as f32).to_ne_bytes().to_vec(),
        };
        let mut matrix = |rows: usize, columns: usize, kind: u32| {
            Dense::new(rows, columns, |_, _| [number(random, kind), 0.0])
        };
        let (a, b, c) = (matrix(m, k, of), matrix(k, n, of), matrix(m, n, into));
        let store = |dense: &Dense, kind: u32| {
            Buffer::new(&dense.values.iter().flat_map(|number| encode(kind, number[0])).collect::<Vec<u8>>())
        };
        let (da, db, dc) = (store(&a, of), store(&b, of), store(&c, into));
        let (alpha, beta) = (pick(random, &[0.0, 1.0, 2.0]), pick(random, &[0.0, 1.0, -1.0]));
        let scale = match compute {
            72 => 10,
            64 => 2,
            _ => 0,
        };
        let (mut x, mut y) = (encode(scale, alpha), encode(scale, beta));
        let ldc = m.max(1) as u64;
        let arguments = [
            handle.0,
            0,
            0,
            m as u64,
            n as u64,
            k as u64,
            rig::at(&mut x[..]),
            da.address,
            of.into(),
            ldc,
            db.address,
            of.into(),
            k.max(1) as u64,
            rig::at(&mut y[..]),
            dc.address,
            into.into(),
            ldc,
            compute.into(),
            u64::from(u32::MAX),
        ];
        ok("cublasGemmEx", &arguments);
        // A single is rounded as the conversion of the hardware does, whose result is within half a unit of 2^-11.
        let (want, sizes) = exact([alpha, 0.0], &a, &b, [beta, 0.0], &c);
        let bytes = dc.read();
        let got = |i: usize| match into {
            2 => f16::from_ne_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f64(),
            14 => bf16::from_ne_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f64(),
            10 => f64::from(i32::from_ne_bytes(bytes[4 * i..][..4].try_into().expect("4"))),
            _ => f64::from(f32::from_ne_bytes(bytes[4 * i..][..4].try_into().expect("4"))),
        };
        for i in 0..m * n {
            let (want, size) = (want.values[i][0], sizes.values[i][0]);
            let rounding = match into {
                2 => f64::powi(2.0, -11),
                14 => f64::powi(2.0, -8),
                _ => 0.0,
            };
            let factors = if compute == 77 { f64::powi(2.0, -10) * 1.001 } else { 0.0 };
            let most = match into {
                10 => 0.0,
                _ => size * (gamma(Ty::S, k) * 1.01 + factors) + want.abs() * rounding * 1.01 + 1e-7,
            };
            assert!(
                (got(i) - want).abs() <= most,
                "{of} {into} {compute} {m} {n} {k} {alpha} {beta}: {} {want} {most}",
                got(i)
            );
        }
    });
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

#[test]
fn products_with_vectors() {
    cases(3, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let (alpha, beta) = (ty.factor(random), ty.factor(random));
        let (factor, by) = (Scalar::new(ty, alpha, on_device), Scalar::new(ty, beta, on_device));
        let (incx, incy) = (step(random), step(random));
        let is_symmetric = random.bool();
        let (dense, stored, name, mut arguments, form_arguments);
        let rows;
        if is_symmetric {
            let n = size(random);
            let upper = random.bool();
            let hermitian = ty.is_complex();
            let (form, which) = form(random, n);
            let whole = Dense::random(ty, n, n, random);
            dense = Dense::new(n, n, |i, j| {
                let (low, high) = if (i <= j) == upper || i == j { (i, j) } else { (j, i) };
                if place(form, upper, n, low, high).is_none() {
                    return [0.0; 2];
                }
                let value = whole.at(low, high);
                match hermitian {
                    true if i == j => [value[0], 0.0],
                    true if (low, high) != (i, j) => conj(value),
                    _ => value,
                }
            });
            stored = triangle(ty, form, upper, &whole);
            let real = [["sy", "sb", "sp"], ["he", "hb", "hp"]][usize::from(hermitian)][which];
            name = named(random, ty, &format!("{real}mv_v2"));
            arguments = vec![handle.0, upper.into(), n as u64];
            form_arguments = form;
            rows = n;
        } else {
            let (m, n) = (size(random), size(random));
            let op = random.u32(..3);
            let is_band = random.bool();
            let mut whole = Dense::random(ty, m, n, random);
            let lda = ld(random, m);
            arguments = vec![handle.0, op.into(), m as u64, n as u64];
            if is_band {
                let (kl, ku) = (random.usize(..5), random.usize(..5));
                whole =
                    Dense::new(m, n, |i, j| if i > j + kl || j > i + ku { [0.0; 2] } else { whole.at(i, j) });
                let ldb = ld(random, kl + ku + 1);
                let band = Dense::new(kl + ku + 1, n, |row, j| match (row + j).checked_sub(ku) {
                    Some(i) if i < m => whole.at(i, j),
                    _ => NAN,
                });
                stored = Stored::new(ty, &band, ldb, |_, _| true);
                name = named(random, ty, "gbmv_v2");
                arguments.extend([kl as u64, ku as u64]);
                form_arguments = Form::Full(ldb);
            } else {
                stored = Stored::new(ty, &whole, lda, |_, _| true);
                name = named(random, ty, "gemv_v2");
                form_arguments = Form::Full(lda);
            }
            dense = whole.operated(op);
            rows = dense.rows;
        }
        let x = Dense::random(ty, dense.columns, 1, random);
        let y = before(ty, rows, 1, beta, random);
        let (dx, dy) = (Stored::vector(ty, &x.values, incx), Stored::vector(ty, &y.values, incy));
        if let Form::Band(k, _) = form_arguments {
            arguments.push(k as u64);
        }
        arguments.extend([factor.address(), stored.buffer.address]);
        match form_arguments {
            Form::Full(ld) | Form::Band(_, ld) => arguments.push(ld as u64),
            Form::Packed => {}
        }
        arguments.extend([dx.buffer.address, incx as u64, by.address(), dy.buffer.address, incy as u64]);
        ok(&name, &arguments);
        if dense.columns == 0 || rows == 0 {
            return;
        }
        let (want, sizes) = exact(alpha, &dense, &x, beta, &y);
        let place =
            |i: usize, _| Some(if incy < 0 { rows - 1 - i } else { i } * incy.unsigned_abs() as usize);
        dy.check(
            &format!("{name} {alpha:?} {beta:?}"),
            place,
            &want,
            &bounds(&sizes, gamma(ty, dense.columns)),
        );
    });
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

#[test]
fn triangles_and_vectors() {
    cases(4, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let n = size(random);
        let (upper, unit, op, incx) = (random.bool(), random.bool(), random.u32(..3), step(random));
        let (form, which) = form(random, n);
        let (dense, stored) = triangular(random, ty, n, form, upper, unit);
        let is_solved = random.bool();
        let x = Dense::random(ty, n, 1, random);
        let dx = Stored::vector(ty, &x.values, incx);
        let name = format!("{}{}", ["tr", "tb", "tp"][which], if is_solved { "sv_v2" } else { "mv_v2" });
        let name = named(random, ty, &name);
        let mut arguments = vec![handle.0, upper.into(), op.into(), unit.into(), n as u64];
        match form {
            Form::Full(ld) => arguments.extend([stored.buffer.address, ld as u64]),
            Form::Band(k, ld) => arguments.extend([k as u64, stored.buffer.address, ld as u64]),
            Form::Packed => arguments.push(stored.buffer.address),
        }
        arguments.extend([dx.buffer.address, incx as u64]);
        ok(&name, &arguments);
        let dense = dense.operated(op);
        let place = |i: usize, _| Some(if incx < 0 { n - 1 - i } else { i } * incx.unsigned_abs() as usize);
        let none = Dense::new(n, 1, |_, _| [0.0; 2]);
        if is_solved {
            // The residual is within the bound.
            let numbers = ty.decode(&dx.buffer.read());
            let solution = Dense::new(n, 1, |i, j| numbers[place(i, j).expect("a place")]);
            let (product, sizes) = exact([1.0, 0.0], &dense, &solution, [0.0; 2], &none);
            for i in 0..n {
                let most = sizes.at(i, 0)[0] * gamma(ty, n + 8) * 2.0;
                let error =
                    (0..2).map(|part| (product.at(i, 0)[part] - x.at(i, 0)[part]).abs()).fold(0.0, f64::max);
                assert!(error <= most, "{name}: row {i}, {error:e} > {most:e}");
            }
        } else {
            let (want, sizes) = exact([1.0, 0.0], &dense, &x, [0.0; 2], &none);
            dx.check(&name, place, &want, &bounds(&sizes, gamma(ty, n)));
        }
    });
}

#[test]
fn updates_by_vectors() {
    cases(5, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let (incx, incy) = (step(random), step(random));
        if random.bool() {
            let (m, n) = (size(random), size(random));
            let conjugated = ty.is_complex() && random.bool();
            let rest = if !ty.is_complex() {
                "ger_v2"
            } else if conjugated {
                "gerc_v2"
            } else {
                "geru_v2"
            };
            let name = named(random, ty, rest);
            let alpha = ty.factor(random);
            let factor = Scalar::new(ty, alpha, on_device);
            let (x, y, a) = (
                Dense::random(ty, m, 1, random),
                Dense::random(ty, n, 1, random),
                Dense::random(ty, m, n, random),
            );
            let lda = ld(random, m);
            let (dx, dy, da) = (
                Stored::vector(ty, &x.values, incx),
                Stored::vector(ty, &y.values, incy),
                Stored::new(ty, &a, lda, |_, _| true),
            );
            ok(
                &name,
                &[
                    handle.0,
                    m as u64,
                    n as u64,
                    factor.address(),
                    dx.buffer.address,
                    incx as u64,
                    dy.buffer.address,
                    incy as u64,
                    da.buffer.address,
                    lda as u64,
                ],
            );
            let (want, sizes) = exact(alpha, &x, &y.operated(if conjugated { 2 } else { 1 }), [1.0, 0.0], &a);
            da.check(&name, |i, j| Some(i + j * lda), &want, &bounds(&sizes, gamma(ty, 3)));
            return;
        }
        let n = size(random);
        let (upper, twice, packed) = (random.bool(), random.bool(), random.bool());
        let hermitian = ty.is_complex() && (packed || random.bool());
        let form = if packed { Form::Packed } else { Form::Full(ld(random, n)) };
        let kind = match (hermitian, packed) {
            (true, true) => "hpr",
            (true, false) => "her",
            (false, true) => "spr",
            (false, false) => "syr",
        };
        let name = named(random, ty, &format!("{kind}{}_v2", if twice { "2" } else { "" }));
        let scalar_type = if hermitian && !twice { ty.real() } else { ty };
        let alpha = scalar_type.factor(random);
        let factor = Scalar::new(scalar_type, alpha, on_device);
        let (x, y) = (Dense::random(ty, n, 1, random), Dense::random(ty, n, 1, random));
        let mut a = Dense::random(ty, n, n, random);
        if hermitian {
            (0..n).for_each(|i| a.values[i + i * n][1] = 0.0);
        }
        let stored = triangle(ty, form, upper, &a);
        let (dx, dy) = (Stored::vector(ty, &x.values, incx), Stored::vector(ty, &y.values, incy));
        let mut arguments =
            vec![handle.0, upper.into(), n as u64, factor.address(), dx.buffer.address, incx as u64];
        if twice {
            arguments.extend([dy.buffer.address, incy as u64]);
        }
        arguments.push(stored.buffer.address);
        if let Form::Full(ld) = form {
            arguments.push(ld as u64);
        }
        ok(&name, &arguments);
        let turned = if hermitian { 2 } else { 1 };
        // Both terms as one product of two columns and two rows.
        let other = if twice { &y } else { &x };
        let second = if hermitian { conj(alpha) } else { alpha };
        let scaled = |number: Num, by: Num| {
            [by[0] * number[0] - by[1] * number[1], by[0] * number[1] + by[1] * number[0]]
        };
        let left = Dense::new(n, 2, |i, j| match j {
            0 => scaled(x.at(i, 0), alpha),
            _ if twice => scaled(y.at(i, 0), second),
            _ => [0.0; 2],
        });
        let right =
            Dense::new(n, 2, |i, j| if j == 0 { other.at(i, 0) } else { x.at(i, 0) }).operated(turned);
        let (want, sizes) = exact([1.0, 0.0], &left, &right, [1.0, 0.0], &a);
        let sizes = Dense::new(n, n, |i, j| [sizes.at(i, j)[0] * 4.0; 2]);
        let wanted =
            Dense::new(
                n,
                n,
                |i, j| if hermitian && i == j { [want.at(i, j)[0], 0.0] } else { want.at(i, j) },
            );
        stored.check(&name, |i, j| place(form, upper, n, i, j), &wanted, &bounds(&sizes, gamma(ty, 4)));
    });
}

#[test]
fn level_3() {
    cases(6, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let (upper, right) = (random.bool(), random.bool());
        let (alpha, beta) = (ty.factor(random), ty.factor(random));
        let factor = Scalar::new(ty, alpha, on_device);
        if random.bool() {
            // symm, hemm, trmm, trsm
            let (m, n) = (size(random), size(random));
            let order = if right { n } else { m };
            let (lda, ldb, ldc) = (ld(random, order), ld(random, m), ld(random, m));
            let b = Dense::random(ty, m, n, random);
            let db = Stored::new(ty, &b, ldb, |_, _| true);
            let (m64, n64) = (m as u64, n as u64);
            if random.bool() {
                let hermitian = ty.is_complex() && random.bool();
                let whole = Dense::random(ty, order, order, random);
                let a = Dense::new(order, order, |i, j| {
                    let is_there = if upper { i <= j } else { i >= j };
                    let value = if is_there { whole.at(i, j) } else { whole.at(j, i) };
                    match hermitian {
                        true if i == j => [value[0], 0.0],
                        true if !is_there => conj(value),
                        _ => value,
                    }
                });
                let da = triangle(ty, Form::Full(lda), upper, &whole);
                let c = before(ty, m, n, beta, random);
                let dc = Stored::new(ty, &c, ldc, |_, _| true);
                let by = Scalar::new(ty, beta, on_device);
                let name = named(random, ty, if hermitian { "hemm_v2" } else { "symm_v2" });
                ok(
                    &name,
                    &[
                        handle.0,
                        right.into(),
                        upper.into(),
                        m64,
                        n64,
                        factor.address(),
                        da.buffer.address,
                        lda as u64,
                        db.buffer.address,
                        ldb as u64,
                        by.address(),
                        dc.buffer.address,
                        ldc as u64,
                    ],
                );
                let (want, sizes) =
                    if right { exact(alpha, &b, &a, beta, &c) } else { exact(alpha, &a, &b, beta, &c) };
                dc.check(&name, |i, j| Some(i + j * ldc), &want, &bounds(&sizes, gamma(ty, order)));
                return;
            }
            let (op, unit, solved) = (random.u32(..3), random.bool(), random.bool());
            let (a, da) = triangular(random, ty, order, Form::Full(lda), upper, unit);
            let a = a.operated(op);
            let none = Dense::new(m, n, |_, _| [0.0; 2]);
            let c = Dense::new(m, n, |_, _| NAN);
            let dc = Stored::new(ty, &c, ldc, |_, _| true);
            let name = named(random, ty, if solved { "trsm_v2" } else { "trmm_v2" });
            let mut arguments = vec![
                handle.0,
                right.into(),
                upper.into(),
                op.into(),
                unit.into(),
                m64,
                n64,
                factor.address(),
                da.buffer.address,
                lda as u64,
                db.buffer.address,
                ldb as u64,
            ];
            if !solved {
                arguments.extend([dc.buffer.address, ldc as u64]);
            }
            ok(&name, &arguments);
            let product = |x: &Dense, alpha| {
                if right {
                    exact(alpha, x, &a, [0.0; 2], &none)
                } else {
                    exact(alpha, &a, x, [0.0; 2], &none)
                }
            };
            if !solved {
                let (want, sizes) = product(&b, alpha);
                dc.check(&name, |i, j| Some(i + j * ldc), &want, &bounds(&sizes, gamma(ty, order)));
                return;
            }
            let numbers = ty.decode(&db.buffer.read());
            let x = Dense::new(m, n, |i, j| numbers[i + j * ldb]);
            let (product, sizes) = product(&x, [1.0, 0.0]);
            for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                let (value, got) = (b.at(i, j), product.at(i, j));
                let want =
                    [alpha[0] * value[0] - alpha[1] * value[1], alpha[0] * value[1] + alpha[1] * value[0]];
                let most = (sizes.at(i, j)[0] + want[0].abs() + want[1].abs()) * gamma(ty, order + 8) * 2.0;
                assert!(
                    (0..2).all(|part| (got[part] - want[part]).abs() <= most),
                    "{name}: {got:?} {want:?} {most:e}"
                );
            }
            return;
        }
        // syrk, herk, syr2k, her2k, syrkx, herkx
        let (n, k) = (size(random), size(random));
        let hermitian = ty.is_complex() && random.bool();
        let which = random.usize(..3);
        let turned = random.bool();
        let op: u32 = match (turned, hermitian) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        let shape = if turned { (k, n) } else { (n, k) };
        let (lda, ldb, ldc) = (ld(random, shape.0), ld(random, shape.0), ld(random, n));
        let a = Dense::random(ty, shape.0, shape.1, random);
        let b = if which == 1 { Dense::random(ty, shape.0, shape.1, random) } else { a.clone() };
        let (alpha_type, beta_type) = match (hermitian, which) {
            (true, 0) => (ty.real(), ty.real()),
            (true, _) => (ty, ty.real()),
            _ => (ty, ty),
        };
        let (mut alpha, mut beta) = (alpha_type.factor(random), beta_type.factor(random));
        if hermitian && which == 2 {
            alpha[1] = 0.0;
        }
        beta[1] = if hermitian { 0.0 } else { beta[1] };
        let (factor, by) =
            (Scalar::new(alpha_type, alpha, on_device), Scalar::new(beta_type, beta, on_device));
        let mut c = before(ty, n, n, beta, random);
        if hermitian && beta != [0.0; 2] {
            (0..n).for_each(|i| c.values[i + i * n][1] = 0.0);
        }
        let (da, db) = (Stored::new(ty, &a, lda, |_, _| true), Stored::new(ty, &b, ldb, |_, _| true));
        let dc = triangle(ty, Form::Full(ldc), upper, &c);
        let start = if hermitian { "her" } else { "syr" };
        let name = named(random, ty, &format!("{start}{}", ["k_v2", "2k_v2", "kx"][which]));
        let mut arguments = vec![
            handle.0,
            upper.into(),
            op.into(),
            n as u64,
            k as u64,
            factor.address(),
            da.buffer.address,
            lda as u64,
        ];
        if which > 0 {
            arguments.extend([db.buffer.address, ldb as u64]);
        }
        arguments.extend([by.address(), dc.buffer.address, ldc as u64]);
        ok(&name, &arguments);
        let other = if hermitian { 2 } else { 1 };
        let pair = |x: &Dense, y: &Dense| {
            if turned { (x.operated(other), y.clone()) } else { (x.clone(), y.operated(other)) }
        };
        let (left, right) = pair(&a, &b);
        let (mut want, mut sizes) = exact(alpha, &left, &right, beta, &c);
        if which == 1 {
            let (left, right) = pair(&b, &a);
            let second = if hermitian { conj(alpha) } else { alpha };
            let (more, size) = exact(second, &left, &right, [0.0; 2], &c);
            want = Dense::new(n, n, |i, j| {
                [want.at(i, j)[0] + more.at(i, j)[0], want.at(i, j)[1] + more.at(i, j)[1]]
            });
            sizes = Dense::new(n, n, |i, j| [(sizes.at(i, j)[0] + size.at(i, j)[0]) * 1.001; 2]);
        }
        let wanted =
            Dense::new(
                n,
                n,
                |i, j| if hermitian && i == j { [want.at(i, j)[0], 0.0] } else { want.at(i, j) },
            );
        let what = format!("{name} {n} {k} op {op} upper {upper} {alpha:?} {beta:?}");
        dc.check(
            &what,
            |i, j| place(Form::Full(ldc), upper, n, i, j),
            &wanted,
            &bounds(&sizes, gamma(ty, k + 2)),
        );
    });
}

#[test]
fn vectors() {
    cases(7, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let n = if random.u8(..6) == 0 { random.usize(4000..9000) } else { size(random) };
        let (incx, incy) = (step(random), step(random));
        let (x, y) = (Dense::random(ty, n, 1, random), Dense::random(ty, n, 1, random));
        let (dx, dy) = (Stored::vector(ty, &x.values, incx), Stored::vector(ty, &y.values, incy));
        let of_x = |i: usize, _| Some(if incx < 0 { n - 1 - i } else { i } * incx.unsigned_abs() as usize);
        let of_y = |i: usize, _| Some(if incy < 0 { n - 1 - i } else { i } * incy.unsigned_abs() as usize);
        let n64 = n as u64;
        let (px, py) = (dx.buffer.address, dy.buffer.address);
        let alpha = ty.factor(random);
        let factor = Scalar::new(ty, alpha, on_device);
        let one = Dense::new(1, 1, |_, _| [1.0, 0.0]);
        let none = Dense::new(n, 1, |_, _| [0.0; 2]);
        match random.u8(..8) {
            0 => {
                let name = named(random, ty, "axpy_v2");
                ok(&name, &[handle.0, n64, factor.address(), px, incx as u64, py, incy as u64]);
                let (want, sizes) = exact(alpha, &x, &one, [1.0, 0.0], &y);
                dy.check(&name, of_y, &want, &bounds(&sizes, gamma(ty, 2)));
            }
            1 => {
                let name = named(random, ty, "scal_v2");
                ok(&name, &[handle.0, n64, factor.address(), px, incx as u64]);
                let (want, sizes) = if incx > 0 {
                    exact([1.0, 0.0], &x, &Dense::new(1, 1, |_, _| alpha), [0.0; 2], &none)
                } else {
                    (x.clone(), none.clone())
                };
                dx.check(&name, of_x, &want, &bounds(&sizes, gamma(ty, 1)));
            }
            2 => {
                let (name, swap) = if random.bool() { ("copy_v2", false) } else { ("swap_v2", true) };
                let name = named(random, ty, name);
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64]);
                dy.check(&name, of_y, &x, &none);
                dx.check(&name, of_x, if swap { &y } else { &x }, &none);
            }
            3 => {
                let conjugated = ty.is_complex() && random.bool();
                let rest = if !ty.is_complex() {
                    "dot_v2"
                } else if conjugated {
                    "dotc_v2"
                } else {
                    "dotu_v2"
                };
                let name = named(random, ty, rest);
                let result = Scalar::new(ty, NAN, on_device);
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64, result.address()]);
                let (want, sizes) = exact(
                    [1.0, 0.0],
                    &x.operated(if conjugated { 2 } else { 1 }),
                    &y,
                    [0.0; 2],
                    &Dense::new(1, 1, |_, _| [0.0; 2]),
                );
                let (got, most) = (result.read(ty), sizes.at(0, 0)[0] * gamma(ty, n));
                assert!(
                    (0..2).all(|part| (got[part] - want.at(0, 0)[part]).abs() <= most),
                    "{name}: {got:?} {:?}",
                    want.at(0, 0)
                );
            }
            4 | 5 => {
                let is_norm = random.bool();
                let letters = match ty {
                    Ty::C => "Sc",
                    Ty::Z => "Dz",
                    other => other.letter(),
                };
                let name = format!("cublas{letters}{}", if is_norm { "nrm2_v2" } else { "asum_v2" });
                let result = Scalar::new(ty.real(), NAN, on_device);
                ok(&name, &[handle.0, n64, px, incx as u64, result.address()]);
                let mut sum = rig::Exact::default();
                for number in x.values.iter().filter(|_| incx > 0).flatten() {
                    if is_norm { sum.add_product(*number, *number) } else { sum.add(number.abs()) }
                }
                let want = if is_norm { sum.value().sqrt() } else { sum.value() };
                let got = result.read(ty.real())[0];
                assert!((got - want).abs() <= want * gamma(ty, n), "{name}: {got} {want}");
            }
            6 => {
                let is_largest = random.bool();
                let name = format!(
                    "cublasI{}{}_v2",
                    ty.letter().to_lowercase(),
                    if is_largest { "amax" } else { "amin" }
                );
                let mut result = -1i32;
                ok("cublasSetPointerMode_v2", &[handle.0, 0]);
                ok(&name, &[handle.0, n64, px, incx as u64, rig::at(&mut result)]);
                let size = |number: &Num| match ty.is_single() {
                    true => f64::from(number[0].abs() as f32 + number[1].abs() as f32),
                    false => number[0].abs() + number[1].abs(),
                };
                let mut best = 0;
                for i in 1..if incx > 0 { n } else { 0 } {
                    let (old, new) = (size(&x.values[best]), size(&x.values[i]));
                    if if is_largest { new > old } else { new < old } {
                        best = i;
                    }
                }
                assert_eq!(result, if n > 0 && incx > 0 { best as i32 + 1 } else { 0 }, "{name}");
            }
            _ => {
                let name = named(random, ty, "rot_v2");
                let real = ty.real();
                let (c, s) = (real.random(random), ty.random(random));
                let (pc, ps) = (Scalar::new(real, c, on_device), Scalar::new(ty, s, on_device));
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64, pc.address(), ps.address()]);
                let minus = [-s[0], s[1]];
                let (first, sizes) = exact(s, &y, &one, c, &x);
                let (second, other) = exact(minus, &x, &one, c, &y);
                dx.check(&name, of_x, &first, &bounds(&sizes, gamma(ty, 2)));
                dy.check(&name, of_y, &second, &bounds(&other, gamma(ty, 2)));
            }
        }
    });
}

#[test]
fn small_systems() {
    cases(8, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, columns, count) = (random.usize(1..20), random.usize(1..5), random.usize(1..4));
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        let l = ty.letter();
        let lda = ld(random, n);
        let all: Vec<Dense> = (0..count).map(|_| Dense::random(ty, n, n, random)).collect();
        let rights: Vec<Dense> = (0..count).map(|_| Dense::random(ty, n, columns, random)).collect();
        let stored: Vec<Stored> = all.iter().map(|a| Stored::new(ty, a, lda, |_, _| true)).collect();
        let right: Vec<Stored> = rights.iter().map(|b| Stored::new(ty, b, n, |_, _| true)).collect();
        let inverse: Vec<Stored> = all.iter().map(|a| Stored::new(ty, a, n, |_, _| true)).collect();
        let list = |stored: &[Stored]| {
            Buffer::new(&stored.iter().flat_map(|one| one.buffer.address.to_ne_bytes()).collect::<Vec<u8>>())
        };
        let (pa, pb, pc) = (list(&stored), list(&right), list(&inverse));
        let (pivots, info) = (Buffer::new(&vec![0; 4 * n * count]), Buffer::new(&vec![9; 4 * count]));
        let (n64, lda64, count64) = (n as u64, lda as u64, count as u64);
        ok(
            &format!("cublas{l}getrfBatched"),
            &[handle.0, n64, pa.address, lda64, pivots.address, info.address, count64],
        );
        if info.integers().iter().any(|&info| info != 0) {
            return;
        }
        let op = random.u32(..3);
        let mut told = 9i32;
        ok(
            &format!("cublas{l}getrsBatched"),
            &[
                handle.0,
                op.into(),
                n64,
                columns as u64,
                pa.address,
                lda64,
                pivots.address,
                pb.address,
                n64,
                rig::at(&mut told),
                count64,
            ],
        );
        assert_eq!(told, 0);
        ok(
            &format!("cublas{l}getriBatched"),
            &[handle.0, n64, pa.address, lda64, pivots.address, pc.address, n64, info.address, count64],
        );
        for i in 0..count {
            // Residuals, against the growth of the factors.
            let factors = ty.decode(&stored[i].buffer.read());
            let at = |row: usize, column: usize| factors[row + column * lda];
            let size = |number: Num| number[0].abs() + number[1].abs();
            let most = (0..n * n).map(|e| size(at(e % n, e / n))).fold(1.0, f64::max);
            let none = Dense::new(n, columns, |_, _| [0.0; 2]);
            let solution = Dense { rows: n, columns, values: ty.decode(&right[i].buffer.read()) };
            let (product, _) = exact([1.0, 0.0], &all[i].operated(op), &solution, [0.0; 2], &none);
            let largest = solution.values.iter().map(|&number| size(number)).fold(1.0, f64::max);
            let bound = gamma(ty, 3 * n) * (n * n) as f64 * most * largest * 4.0;
            for (got, want) in product.values.iter().zip(&rights[i].values) {
                assert!(
                    (0..2).all(|part| (got[part] - want[part]).abs() <= bound),
                    "{l}getrs {n} op {op}: {got:?} {want:?} {bound:e}"
                );
            }
            let inverse = Dense { rows: n, columns: n, values: ty.decode(&inverse[i].buffer.read()) };
            let none = Dense::new(n, n, |_, _| [0.0; 2]);
            let (unit, _) = exact([1.0, 0.0], &all[i], &inverse, [0.0; 2], &none);
            let largest = inverse.values.iter().map(|&number| size(number)).fold(1.0, f64::max);
            let bound = gamma(ty, 3 * n) * (n * n) as f64 * most * largest * 4.0;
            for (e, got) in unit.values.iter().enumerate() {
                let want = if e % n == e / n { 1.0 } else { 0.0 };
                assert!(
                    (got[0] - want).abs() <= bound && got[1].abs() <= bound,
                    "{l}getri {n}: {got:?} {want} {bound:e}"
                );
            }
        }
        // Least squares: the residual is orthogonal to the columns.
        let m = n + random.usize(..6);
        let a = Dense::random(ty, m, n, random);
        let b = Dense::random(ty, m, columns, random);
        let (da, db) = (vec![Stored::new(ty, &a, m, |_, _| true)], vec![Stored::new(ty, &b, m, |_, _| true)]);
        let (pa, pb) = (list(&da), list(&db));
        ok(
            &format!("cublas{l}gelsBatched"),
            &[
                handle.0,
                0,
                m as u64,
                n64,
                columns as u64,
                pa.address,
                m as u64,
                pb.address,
                m as u64,
                rig::at(&mut told),
                info.address,
                1,
            ],
        );
        if info.integers()[0] != 0 {
            return;
        }
        let numbers = ty.decode(&db[0].buffer.read());
        let x = Dense::new(n, columns, |i, j| numbers[i + j * m]);
        let (residual, _) = exact([-1.0, 0.0], &a, &x, [1.0, 0.0], &b);
        let none = Dense::new(n, columns, |_, _| [0.0; 2]);
        let (rest, _) = exact([1.0, 0.0], &a.operated(2), &residual, [0.0; 2], &none);
        let largest = x.values.iter().flatten().fold(1.0, |most: f64, part| most.max(part.abs()));
        let bound = gamma(ty, 8 * m) * (m * n) as f64 * largest * 8.0;
        assert!(
            rest.values.iter().flatten().all(|part| part.abs() <= bound),
            "{l}gels {m} {n}: {:?} {bound:e}",
            rest.values
        );
    });
}

/// Matrices at strides, and in groups, have the bits of single ones.
#[test]
fn batches_are_the_same_bits() {
    cases(9, |random, handle| {
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        let ty = pick(random, &[Ty::S, Ty::D]);
        let l = ty.letter();
        let (m, n, k, count) =
            (random.usize(1..20), random.usize(1..20), random.usize(1..20), random.usize(1..5));
        let (alpha, beta) = (Scalar::new(ty, ty.random(random), false), Scalar::new(ty, [0.0; 2], false));
        let numbers = |random: &mut fastrand::Rng, of: usize| -> Vec<Num> {
            (0..of * count).map(|_| ty.random(random)).collect()
        };
        let (a, b) = (
            Buffer::new(&ty.encode(&numbers(random, m * k))),
            Buffer::new(&ty.encode(&numbers(random, k * n))),
        );
        let none = ty.encode(&vec![NAN; m * n * count]);
        let [one, strided, grouped] = [0; 3].map(|_| Buffer::new(&none));
        let width = if ty.is_single() { 4 } else { 8 };
        let (m64, n64, k64, count64) = (m as u64, n as u64, k as u64, count as u64);
        let place = |buffer: &Buffer, i: usize, of: usize| buffer.address + (i * of * width) as u64;
        for i in 0..count {
            let (a, b, c) = (place(&a, i, m * k), place(&b, i, k * n), place(&one, i, m * n));
            ok(
                &format!("cublas{l}gemm_v2"),
                &[handle.0, 0, 0, m64, n64, k64, alpha.address(), a, m64, b, k64, beta.address(), c, m64],
            );
        }
        ok(
            &format!("cublas{l}gemmStridedBatched"),
            &[
                handle.0,
                0,
                0,
                m64,
                n64,
                k64,
                alpha.address(),
                a.address,
                m64,
                m64 * k64,
                b.address,
                k64,
                k64 * n64,
                beta.address(),
                strided.address,
                m64,
                m64 * n64,
                count64,
            ],
        );
        // Two groups of the same shape.
        let first = random.usize(..count + 1);
        let list = |buffer: &Buffer, of: usize| {
            Buffer::new(&(0..count).flat_map(|i| place(buffer, i, of).to_ne_bytes()).collect::<Vec<u8>>())
        };
        let (pa, pb, pc) = (list(&a, m * k), list(&b, k * n), list(&grouped, m * n));
        let mut ops = [0u32; 2];
        let [mut ms, mut ns, mut ks] = [m, n, k].map(|size| [size as i32; 2]);
        let (mut alphas, mut betas) = (ty.encode(&[alpha.read(ty); 2]), ty.encode(&[[0.0; 2]; 2]));
        let mut counts = [first as i32, (count - first) as i32];
        let (ops, ms, ns, ks) = (rig::at(&mut ops), rig::at(&mut ms), rig::at(&mut ns), rig::at(&mut ks));
        ok(
            &format!("cublas{l}gemmGroupedBatched"),
            &[
                handle.0,
                ops,
                ops,
                ms,
                ns,
                ks,
                rig::at(&mut alphas[..]),
                pa.address,
                ms,
                pb.address,
                ks,
                rig::at(&mut betas[..]),
                pc.address,
                ms,
                2,
                rig::at(&mut counts),
            ],
        );
        assert!(strided.read() == one.read() && grouped.read() == one.read(), "{l} {m} {n} {k} {count}");
    });
}

#[test]
fn extensions() {
    cases(10, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let l = ty.letter();
        let (m, n) = (size(random), size(random));
        let (m64, n64) = (m as u64, n as u64);
        let ldc = ld(random, m);
        let none = Dense::new(m, n, |_, _| NAN);
        match random.u8(..3) {
            0 => {
                let ops = [random.u32(..3), random.u32(..3)];
                let shape = |op: u32| if op == 0 { (m, n) } else { (n, m) };
                let (alpha, beta) = (ty.factor(random), ty.factor(random));
                let (factor, by) = (Scalar::new(ty, alpha, on_device), Scalar::new(ty, beta, on_device));
                let matrix = |random: &mut fastrand::Rng, op: u32, unread: bool| match unread {
                    true => Dense::new(shape(op).0, shape(op).1, |_, _| NAN),
                    false => Dense::random(ty, shape(op).0, shape(op).1, random),
                };
                let (a, b) =
                    (matrix(random, ops[0], alpha == [0.0; 2]), matrix(random, ops[1], beta == [0.0; 2]));
                let (lda, ldb) = (ld(random, a.rows), ld(random, b.rows));
                let (da, db) = (Stored::new(ty, &a, lda, |_, _| true), Stored::new(ty, &b, ldb, |_, _| true));
                let dc = Stored::new(ty, &none, ldc, |_, _| true);
                ok(
                    &format!("cublas{l}geam"),
                    &[
                        handle.0,
                        ops[0].into(),
                        ops[1].into(),
                        m64,
                        n64,
                        factor.address(),
                        da.buffer.address,
                        lda as u64,
                        by.address(),
                        db.buffer.address,
                        ldb as u64,
                        dc.buffer.address,
                        ldc as u64,
                    ],
                );
                let (a, b) = (a.operated(ops[0]), b.operated(ops[1]));
                let unit = Dense::new(n, n, |i, j| if i == j { [1.0, 0.0] } else { [0.0; 2] });
                let (want, sizes) = exact(alpha, &a, &unit, beta, &b);
                dc.check("geam", |i, j| Some(i + j * ldc), &want, &bounds(&sizes, gamma(ty, 2)));
            }
            1 => {
                let right = random.bool();
                let (a, lda, incx) = (Dense::random(ty, m, n, random), ld(random, m), step(random));
                let x = Dense::random(ty, if right { n } else { m }, 1, random);
                let (da, dx) = (Stored::new(ty, &a, lda, |_, _| true), Stored::vector(ty, &x.values, incx));
                let dc = Stored::new(ty, &none, ldc, |_, _| true);
                ok(
                    &format!("cublas{l}dgmm"),
                    &[
                        handle.0,
                        right.into(),
                        m64,
                        n64,
                        da.buffer.address,
                        lda as u64,
                        dx.buffer.address,
                        incx as u64,
                        dc.buffer.address,
                        ldc as u64,
                    ],
                );
                let want = Dense::new(m, n, |i, j| {
                    let (a, x) = (a.at(i, j), x.at(if right { j } else { i }, 0));
                    [a[0] * x[0] - a[1] * x[1], a[0] * x[1] + a[1] * x[0]]
                });
                dc.check(
                    "dgmm",
                    |i, j| Some(i + j * ldc),
                    &want,
                    &Dense::new(m, n, |_, _| [4.0 * gamma(ty, 2); 2]),
                );
            }
            _ => {
                let upper = random.bool();
                let (a, lda) = (Dense::random(ty, n, n, random), ld(random, n));
                let full = triangle(ty, Form::Full(lda), upper, &a);
                let packed = triangle(ty, Form::Packed, upper, &Dense::new(n, n, |_, _| NAN));
                let exactly = Dense::new(n, n, |_, _| [0.0; 2]);
                ok(
                    &format!("cublas{l}trttp"),
                    &[handle.0, upper.into(), n64, full.buffer.address, lda as u64, packed.buffer.address],
                );
                packed.check("trttp", |i, j| place(Form::Packed, upper, n, i, j), &a, &exactly);
                let back = triangle(ty, Form::Full(lda), upper, &Dense::new(n, n, |_, _| NAN));
                ok(
                    &format!("cublas{l}tpttr"),
                    &[handle.0, upper.into(), n64, packed.buffer.address, back.buffer.address, lda as u64],
                );
                back.check("tpttr", |i, j| place(Form::Full(lda), upper, n, i, j), &a, &exactly);
            }
        }
    });
}

/// Rotations turn what they are made for: the second number becomes zero, and the length stays.
#[test]
fn rotations() {
    cases(11, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let l = ty.letter();
        let (a, b) = (ty.random(random), ty.random(random));
        let [pa, pb, pc, ps] = [(ty, a), (ty, b), (ty.real(), NAN), (ty, NAN)]
            .map(|(ty, value)| Scalar::new(ty, value, on_device));
        ok(&format!("cublas{l}rotg_v2"), &[handle.0, pa.address(), pb.address(), pc.address(), ps.address()]);
        let (r, c, s) = (pa.read(ty), pc.read(ty.real())[0], ps.read(ty));
        let most = 8.0 * ty.unit();
        let close =
            |got: f64, want: f64| assert!((got - want).abs() <= most, "{l} {a:?} {b:?}: {r:?} {c} {s:?}");
        // c a + s b = r, c b - conj(s) a = 0.
        close(c * a[0] + s[0] * b[0] - s[1] * b[1], r[0]);
        close(c * a[1] + s[0] * b[1] + s[1] * b[0], r[1]);
        close(c * b[0] - s[0] * a[0] - s[1] * a[1], 0.0);
        close(c * b[1] - s[0] * a[1] + s[1] * a[0], 0.0);
        close(c * c + s[0] * s[0] + s[1] * s[1], 1.0);
        if ty.is_complex() {
            return;
        }
        // The modified rotation: the same for sqrt(d1) x1 and sqrt(d2) y1.
        let scale = pick(random, &[1.0, 1e-10, 1e10]);
        let [d1, d2, x1, y1] = [random.f64() * scale, random.f64(), a[0], b[0]]
            .map(|value| if ty.is_single() { f64::from(value as f32) } else { value });
        let [p1, p2, px, py] = [d1, d2, x1, y1].map(|value| Scalar::new(ty, [value, 0.0], false));
        let mut param = ty.encode(&[[9.0, 0.0]; 5]);
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        ok(
            &format!("cublas{l}rotmg_v2"),
            &[handle.0, p1.address(), p2.address(), px.address(), py.address(), rig::at(&mut param[..])],
        );
        let param: Vec<f64> = ty.decode(&param).into_iter().map(|number| number[0]).collect();
        let [flag, h11, h21, h12, h22] = param[..] else { panic!("5 parameters") };
        let h = match flag as i32 {
            -1 => [h11, h12, h21, h22],
            0 => [1.0, h12, h21, 1.0],
            1 => [h11, 1.0, -1.0, h22],
            _ => [1.0, 0.0, 0.0, 1.0],
        };
        let (n1, n2) = (p1.read(ty)[0], p2.read(ty)[0]);
        let (first, second) = (h[0] * x1 + h[1] * y1, h[2] * x1 + h[3] * y1);
        let length = d1 * x1 * x1 + d2 * y1 * y1;
        let most = 64.0 * ty.unit() * length;
        assert!(
            (n1 * first * first - length).abs() <= most,
            "{l}rotmg {d1} {d2} {x1} {y1}: {param:?} {n1} {n2}"
        );
        assert!(
            flag == -2.0 || n2 * second * second <= most,
            "{l}rotmg {d1} {d2} {x1} {y1}: {param:?} {n1} {n2}"
        );
        // rotm does what the parameters say.
        let (x, y) = (Dense::random(ty, 5, 1, random), Dense::random(ty, 5, 1, random));
        let (dx, dy) = (Stored::vector(ty, &x.values, 1), Stored::vector(ty, &y.values, 1));
        let mut param = ty.encode(&param.iter().map(|&value| [value, 0.0]).collect::<Vec<Num>>());
        ok(
            &format!("cublas{l}rotm_v2"),
            &[handle.0, 5, dx.buffer.address, 1, dy.buffer.address, 1, rig::at(&mut param[..])],
        );
        let row = |a: f64, b: f64| Dense::new(5, 1, |i, _| [a * x.at(i, 0)[0] + b * y.at(i, 0)[0], 0.0]);
        let bound = |a: f64, b: f64| Dense::new(5, 1, |_, _| [(a.abs() + b.abs()) * gamma(ty, 2); 2]);
        dx.check("rotm", |i, _| Some(i), &row(h[0], h[1]), &bound(h[0], h[1]));
        dy.check("rotm", |i, _| Some(i), &row(h[2], h[3]), &bound(h[2], h[3]));
    });
}

#[test]
fn mistakes_are_refused() {
    let handle = Handle::new();
    let memory = Buffer::new(&[0; 64]);
    let one = Scalar::new(Ty::S, [1.0, 0.0], false);
    let (x, p) = (one.address(), memory.address);
    let gemm = |handle: u64, m: i64, n: i64, k: i64, lda: u64, ldc: u64| {
        call("cublasSgemm_v2_64", &[handle, 0, 0, m as u64, n as u64, k as u64, x, p, lda, p, 4, x, p, ldc])
    };
    assert_eq!(gemm(handle.0, 4, 4, 4, 4, 4), 0);
    // Negative sizes, leading dimensions that are too small, memory that is too small, handles that are none.
    assert_eq!(gemm(handle.0, -1, 4, 4, 4, 4), 7);
    assert_eq!(gemm(handle.0, 4, 4, 4, 3, 4), 7);
    assert_eq!(gemm(handle.0, 4, 4, 4, 4, 100), 7);
    assert_eq!(gemm(0, 4, 4, 4, 4, 4), 1);
    assert_eq!(gemm(77, 4, 4, 4, 4, 4), 1);
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 9, 0, 4, 4, 4, x, p, 4, p, 4, x, p, 4]), 7);
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 0, 0, 4, 4, 4, 0, p, 4, p, 4, x, p, 4]), 7);
    // A scalar of the device, where one of the host is wanted.
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 0, 0, 4, 4, 4, p, p, 4, p, 4, x, p, 4]), 7);
    assert_eq!(call("cublasXtSgemm", &[0; 8]), 15);
    let stale = Handle::new();
    let number = stale.0;
    drop(stale);
    assert_eq!(gemm(number, 4, 4, 4, 4, 4), 1);
    assert_eq!(call("cublasDestroy_v2", &[number]), 1);
}

#[test]
fn graphs_capture_products() {
    let handle = Handle::new();
    let [mut stream, mut graph, mut exec] = [0u64; 3];
    ok("cuStreamCreate", &[rig::at(&mut stream), 1]);
    ok("cublasSetStream_v2", &[handle.0, stream]);
    ok("cublasSetPointerMode_v2", &[handle.0, 1]);
    let a = Dense::new(2, 2, |i, j| [(1 + i + 2 * j) as f64, 0.0]);
    let stored = [0; 3].map(|_| Stored::new(Ty::S, &a, 2, |_, _| true));
    let [pa, pb, pc] = [0, 1, 2].map(|i: usize| stored[i].buffer.address);
    let (one, zero) = (Scalar::new(Ty::S, [1.0, 0.0], true), Scalar::new(Ty::S, [0.0; 2], true));
    let result = Scalar::new(Ty::S, NAN, true);
    ok("cuStreamBeginCapture_v2", &[stream, 1]);
    ok("cublasSgemm_v2", &[handle.0, 0, 0, 2, 2, 2, one.address(), pa, 2, pb, 2, zero.address(), pc, 2]);
    ok("cublasSdot_v2", &[handle.0, 4, pc, 1, pc, 1, result.address()]);
    ok("cuStreamEndCapture", &[stream, rig::at(&mut graph)]);
    ok("cuGraphInstantiateWithFlags", &[rig::at(&mut exec), graph, 0]);
    assert_eq!(Ty::S.decode(&stored[2].buffer.read()), a.values);
    for by in [1.0f32, 2.0] {
        // What the graph reads is read when it runs.
        ok("cuMemsetD32Async", &[one.address(), by.to_bits().into(), 1, stream]);
        ok("cuGraphLaunch", &[exec, stream]);
        ok("cuStreamSynchronize", &[stream]);
        let wanted = [7.0, 10.0, 15.0, 22.0].map(|value| value * f64::from(by));
        let got: Vec<f64> =
            Ty::S.decode(&stored[2].buffer.read()).into_iter().map(|number| number[0]).collect();
        assert_eq!(got, wanted);
        assert_eq!(result.read(Ty::S)[0], wanted.iter().map(|value| value * value).sum::<f64>());
    }
}
