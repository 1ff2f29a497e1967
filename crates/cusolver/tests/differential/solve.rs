//! Cholesky's factors, LU and QR, and what is solved with them.

use crate::rig::{Buffer, Dense, NAN, Ty, norm, ok, times};
use crate::{
    bound, cases, close, hermitian, info, named, orthonormal, part, pick, room, rounded, size, triangle,
    vector, whole, workspace,
};

#[test]
fn cholesky() {
    cases(1, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, columns, upper) = (size(random), random.usize(..6), random.bool());
        let spectrum: Vec<f64> = (0..n).map(|_| 0.5 + random.f64()).collect();
        let a = hermitian(random, ty, &spectrum);
        let stored = triangle(random, ty, &a, upper);
        let told = info();
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let h = [handle.0, upper.into(), n as u64];
        let name = named(ty, "potrf", "potrf");
        let (work, length) = workspace(&name, ty, &[h[0], h[1], h[2], pa, lda]);
        ok(&name, &[h[0], h[1], h[2], pa, lda, work.address, length, told.address]);
        assert_eq!(told.integers(), [0]);
        stored.untouched(&name, [n, n], |i, j| i == j || (i < j) == upper);
        let factor = part(&stored.read(n, n), n, n, |i, j| i == j || (i < j) == upper);
        let product = if upper { times(&factor, 2, &factor, 0) } else { times(&factor, 0, &factor, 2) };
        close(&name, ty, &product, &a, norm(&a));
        // Solutions.
        let b = Dense::random(ty, n, columns, random);
        let right = whole(random, ty, &b);
        ok(
            &named(ty, "potrs", "potrs"),
            &[h[0], h[1], h[2], columns as u64, pa, lda, right.buffer.address, right.ld as u64, told.address],
        );
        right.untouched("potrs", [n, columns], |_, _| true);
        let x = right.read(n, columns);
        close("potrs", ty, &times(&a, 0, &x, 0), &b, norm(&a) * (1.0 + norm(&x)));
        // The inverse, and the product of the factors in the other order.
        let again = triangle(random, ty, &factor, upper);
        let (pa, lda) = (again.buffer.address, again.ld as u64);
        let name = named(ty, "lauum", "lauum");
        let (work, length) = workspace(&name, ty, &[h[0], h[1], h[2], pa, lda]);
        ok(&name, &[h[0], h[1], h[2], pa, lda, work.address, length, told.address]);
        again.untouched(&name, [n, n], |i, j| i == j || (i < j) == upper);
        let got = part(&again.read(n, n), n, n, |i, j| i == j || (i < j) == upper);
        let other = if upper { times(&factor, 0, &factor, 2) } else { times(&factor, 2, &factor, 0) };
        close(&name, ty, &got, &part(&other, n, n, |i, j| i == j || (i < j) == upper), norm(&a));
        let name = named(ty, "potri", "potri");
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let (work, length) = workspace(&name, ty, &[h[0], h[1], h[2], pa, lda]);
        ok(&name, &[h[0], h[1], h[2], pa, lda, work.address, length, told.address]);
        stored.untouched(&name, [n, n], |i, j| i == j || (i < j) == upper);
        let got = stored.read(n, n);
        let inverse = Dense::new(n, n, |i, j| match (i == j, (i < j) == upper) {
            (true, _) | (_, true) => got.at(i, j),
            _ => crate::rig::conj(got.at(j, i)),
        });
        let unit = crate::rig::unit(n);
        close(&name, ty, &times(&a, 0, &inverse, 0), &unit, norm(&a) * (1.0 + norm(&inverse)));
    });
}

#[test]
fn minors_that_are_not_positive_are_named() {
    cases(2, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper) = (random.usize(1..80), random.bool());
        let bad = random.usize(..n);
        // Dominant diagonals, but for one.
        let small = Dense::random(ty, n, n, random);
        let value = |i: usize, j: usize| {
            let number = if i <= j { small.at(i, j) } else { crate::rig::conj(small.at(j, i)) };
            let sign = if i == bad { pick(&mut random.clone(), &[-3.0, f64::NAN]) } else { 3.0 };
            if i == j { [sign, 0.0] } else { number.map(|part| part / n as f64) }
        };
        let a = rounded(ty, &Dense::new(n, n, value));
        let stored = triangle(random, ty, &a, upper);
        let told = Buffer::new(&[9; 8]);
        let places = Buffer::new(&[stored.buffer.address; 1].map(u64::to_ne_bytes).concat());
        ok(
            &named(ty, "potrfBatched", "potrfBatched"),
            &[handle.0, upper.into(), n as u64, places.address, stored.ld as u64, told.address, 1],
        );
        assert_eq!(told.integers()[0], bad as i32 + 1);
    });
}

#[test]
fn elimination() {
    cases(3, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let square = random.bool();
        let m = size(random);
        let n = if square { m } else { size(random) };
        let least = m.min(n);
        let a = Dense::random(ty, m, n, random);
        let stored = whole(random, ty, &a);
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let (told, wide) = (info(), random.bool());
        let pivots = Buffer::new(&vec![0; 8 * least]);
        let h = [handle.0, m as u64, n as u64];
        if wide {
            let kind = [0, 1, 4, 5][ty as usize];
            let [mut device, mut host] = [0u64; 2];
            let places = [crate::at(&mut device), crate::at(&mut host)];
            ok(
                "cusolverDnXgetrf_bufferSize",
                &[h[0], 0, h[1], h[2], kind, pa, lda, kind, places[0], places[1]],
            );
            let work = Buffer::new(&vec![0; device as usize]);
            ok(
                "cusolverDnXgetrf",
                &[
                    h[0],
                    0,
                    h[1],
                    h[2],
                    kind,
                    pa,
                    lda,
                    pivots.address,
                    kind,
                    work.address,
                    device,
                    0,
                    host,
                    told.address,
                ],
            );
        } else {
            let name = named(ty, "getrf", "getrf");
            let (work, _) = workspace(&name, ty, &[h[0], h[1], h[2], pa, lda]);
            ok(&name, &[h[0], h[1], h[2], pa, lda, work.address, pivots.address, told.address]);
        }
        stored.untouched("getrf", [m, n], |_, _| true);
        let factors = stored.read(m, n);
        let lower = Dense::new(m, least, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => [0.0; 2],
            std::cmp::Ordering::Equal => [1.0, 0.0],
            std::cmp::Ordering::Greater => factors.at(i, j),
        });
        let upper = part(&factors, least, n, |i, j| i <= j);
        let step = if wide { 2 } else { 1 };
        let chosen: Vec<usize> =
            pivots.integers().iter().step_by(step).take(least).map(|&pivot| pivot as usize).collect();
        let mut order: Vec<usize> = (0..m).collect();
        for (k, &pivot) in chosen.iter().enumerate() {
            assert!((k + 1..=m).contains(&pivot), "pivot {pivot}");
            order.swap(k, pivot - 1);
        }
        let moved = Dense::new(m, n, |i, j| a.at(order[i], j));
        close("getrf", ty, &times(&lower, 0, &upper, 0), &moved, norm(&lower) * norm(&upper));
        // No factor of an elimination is larger than its pivot.
        let most = if ty.is_complex() { 1.5 } else { 1.0 };
        assert!(lower.values.iter().all(|value| value[0].hypot(value[1]) <= most), "getrf does not exchange");
        let zero = (0..least).find(|&i| upper.at(i, i) == [0.0; 2]).map_or(0, |i| i as i32 + 1);
        assert_eq!(told.integers(), [zero]);
        if !square || zero != 0 {
            return;
        }
        let (columns, op) = (random.usize(..6), random.u32(..3));
        let b = Dense::random(ty, n, columns, random);
        let right = whole(random, ty, &b);
        let (pb, ldb) = (right.buffer.address, right.ld as u64);
        if wide {
            let kind = [0, 1, 4, 5][ty as usize];
            ok(
                "cusolverDnXgetrs",
                &[
                    h[0],
                    0,
                    op.into(),
                    h[2],
                    columns as u64,
                    kind,
                    pa,
                    lda,
                    pivots.address,
                    kind,
                    pb,
                    ldb,
                    told.address,
                ],
            );
        } else {
            ok(
                &named(ty, "getrs", "getrs"),
                &[h[0], op.into(), h[2], columns as u64, pa, lda, pivots.address, pb, ldb, told.address],
            );
        }
        right.untouched("getrs", [n, columns], |_, _| true);
        let x = right.read(n, columns);
        let size = norm(&lower) * norm(&upper) * (1.0 + norm(&x));
        close("getrs", ty, &times(&a, op, &x, 0), &b, size);
    });
}

#[test]
fn reflections() {
    cases(4, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (m, n) = (size(random), size(random));
        let least = m.min(n);
        let mut a = Dense::random(ty, m, n, random);
        if random.u8(..4) == 0 && n > 1 {
            // A rank that is not full.
            (0..m).for_each(|i| a.values[i + (n - 1) * m] = a.values[i]);
        }
        let stored = whole(random, ty, &a);
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let (told, tau) = (info(), vector(ty, least));
        let h = [handle.0, m as u64, n as u64];
        let name = named(ty, "geqrf", "geqrf");
        let (work, length) = workspace(&name, ty, &[h[0], h[1], h[2], pa, lda]);
        ok(&name, &[h[0], h[1], h[2], pa, lda, tau.buffer.address, work.address, length, told.address]);
        assert_eq!(told.integers(), [0]);
        stored.untouched(&name, [m, n], |_, _| true);
        let factors = stored.read(m, n);
        let r = part(&factors, least, n, |i, j| i <= j);
        assert!((0..least).all(|i| r.at(i, i)[1] == 0.0), "the diagonal of R is not real");
        // Q, with fewer or more columns than there are reflections.
        let columns = if random.bool() { least } else { m };
        let wide = Dense::new(m, columns, |i, j| if j < least { factors.at(i, j) } else { NAN });
        let q = whole(random, ty, &wide);
        let name = named(ty, "orgqr", "ungqr");
        let arguments =
            [h[0], h[1], columns as u64, least as u64, q.buffer.address, q.ld as u64, tau.buffer.address];
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        q.untouched(&name, [m, columns], |_, _| true);
        let q = q.read(m, columns);
        orthonormal(&name, ty, &q);
        let few = part(&q, m, least, |_, _| true);
        close("geqrf", ty, &times(&few, 0, &r, 0), &a, norm(&a));
        if columns < m {
            return;
        }
        // Products with Q.
        let (right, op) = (random.bool(), pick(random, &[0, if ty.is_complex() { 2 } else { 1 }]));
        let other = random.usize(..8);
        let shape = if right { [other, m] } else { [m, other] };
        let c = Dense::random(ty, shape[0], shape[1], random);
        let place = whole(random, ty, &c);
        let name = named(ty, "ormqr", "unmqr");
        let arguments = [
            h[0],
            right.into(),
            u64::from(op),
            shape[0] as u64,
            shape[1] as u64,
            least as u64,
            pa,
            lda,
            tau.buffer.address,
            place.buffer.address,
            place.ld as u64,
        ];
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        place.untouched(&name, shape, |_, _| true);
        let wanted = if right { times(&c, 0, &q, op) } else { times(&q, op, &c, 0) };
        let got = place.read(shape[0], shape[1]);
        let most = bound(ty, m, 1.0 + norm(&c));
        assert!(crate::rig::distance(&got, &wanted) <= most, "{name} {m} {other}");
    });
}

#[test]
fn triangular_inverses() {
    cases(5, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper, unit) = (size(random), random.bool(), random.bool());
        let a = Dense::random(ty, n, n, random);
        let scale = 1.0 / n.max(1) as f64;
        let a = Dense::new(n, n, |i, j| match i == j {
            true if unit => NAN,
            true => [1.5, 0.25].map(|part| if ty.is_complex() || part > 1.0 { part } else { 0.0 }),
            false => a.at(i, j).map(|part| part * scale),
        });
        let a = rounded(ty, &a);
        let stored = triangle(random, ty, &a, upper);
        let kind = [0, 1, 4, 5][ty as usize];
        let [mut device, mut host] = [0u64; 2];
        let arguments =
            [handle.0, upper.into(), unit.into(), n as u64, kind, stored.buffer.address, stored.ld as u64];
        let places = [crate::at(&mut device), crate::at(&mut host)];
        ok("cusolverDnXtrtri_bufferSize", &[&arguments[..], &places].concat());
        let (work, told) = (Buffer::new(&vec![0; device as usize]), info());
        ok("cusolverDnXtrtri", &[&arguments[..], &[work.address, device, 0, host, told.address]].concat());
        assert_eq!(told.integers(), [0]);
        stored.untouched("Xtrtri", [n, n], |i, j| (i == j && !unit) || (i != j && (i < j) == upper));
        let with_unit = |of: &Dense| {
            Dense::new(n, n, |i, j| match (i == j, (i < j) == upper) {
                (true, _) if unit => [1.0, 0.0],
                (true, _) | (_, true) => of.at(i, j),
                _ => [0.0; 2],
            })
        };
        let (a, inverse) = (with_unit(&a), with_unit(&stored.read(n, n)));
        close("Xtrtri", ty, &times(&a, 0, &inverse, 0), &crate::rig::unit(n), norm(&a) * norm(&inverse));
        let _ = room;
    });
}
