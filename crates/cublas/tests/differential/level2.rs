//! A matrix and vectors.

use crate::rig::{Dense, NAN, Num, Scalar, Stored, Ty, conj, exact, gamma, ok};
use crate::{
    Form, before, bounds, cases, form, ld, mode, named, pick, place, size, step, triangle, triangular,
};

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
