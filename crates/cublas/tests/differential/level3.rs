//! Symmetric, Hermitian and triangular matrices.

use crate::rig::{Dense, NAN, Scalar, Stored, Ty, conj, exact, gamma, ok};
use crate::{Form, before, bounds, cases, ld, mode, named, pick, place, size, triangle, triangular};

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
