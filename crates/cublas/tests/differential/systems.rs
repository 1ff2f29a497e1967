//! Small systems of equations, and what is beyond the BLAS.

use crate::rig;
use crate::rig::{Buffer, Dense, NAN, Num, Scalar, Stored, Ty, exact, gamma, ok};
use crate::{Form, bounds, cases, ld, mode, pick, place, size, step, triangle};

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
