//! Tridiagonal and bidiagonal forms, systems of mixed precision, and sparse ones.

use crate::rig::{Buffer, Dense, Ty, at, call_with, norm, ok, times};
use crate::{
    cases, close, hermitian, info, named, orthonormal, pick, room, size, triangle, vector, whole, workspace,
};

#[test]
fn tridiagonal_forms() {
    cases(31, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper) = (size(random), random.bool());
        let spectrum: Vec<f64> = (0..n).map(|_| random.f64() - 0.5).collect();
        let a = hermitian(random, ty, &spectrum);
        let stored = triangle(random, ty, &a, upper);
        let rest = n.saturating_sub(1);
        let [d, e, tau] = [vector(ty.real(), n), vector(ty.real(), rest), vector(ty, rest)];
        let told = info();
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let h = [handle.0, upper.into(), n as u64, pa, lda];
        let name = named(ty, "sytrd", "hetrd");
        let arguments = [&h[..], &[d.buffer.address, e.buffer.address, tau.buffer.address]].concat();
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        stored.untouched(&name, [n, n], |i, j| i == j || (i < j) == upper);
        let (d, e) = (d.read(n, 1), e.read(rest, 1));
        let middle = Dense::new(n, n, |i, j| match i.abs_diff(j) {
            0 => d.at(i, 0),
            1 => e.at(i.min(j), 0),
            _ => [0.0; 2],
        });
        // What is stored is the form itself beside the vectors.
        let form = stored.read(n, n);
        for i in 0..rest {
            let at = if upper { form.at(i, i + 1) } else { form.at(i + 1, i) };
            assert_eq!((at, form.at(i, i)), (e.at(i, 0), d.at(i, 0)));
        }
        // The product with Q, and Q itself, where the form was.
        let (right, op) = (random.bool(), pick(random, &[0, if ty.is_complex() { 2 } else { 1 }]));
        let c = Dense::random(ty, n, n, random);
        let place = whole(random, ty, &c);
        let name = named(ty, "ormtr", "unmtr");
        let arguments = [
            handle.0,
            right.into(),
            upper.into(),
            u64::from(op),
            n as u64,
            n as u64,
            pa,
            lda,
            tau.buffer.address,
            place.buffer.address,
            place.ld as u64,
        ];
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        let name = named(ty, "orgtr", "ungtr");
        let arguments = [&h[..], &[tau.buffer.address]].concat();
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        assert_eq!(told.integers(), [0]);
        let q = stored.read(n, n);
        orthonormal(&name, ty, &q);
        close(&name, ty, &times(&times(&q, 0, &middle, 0), 0, &q, 2), &a, norm(&a));
        let wanted = if right { times(&c, 0, &q, op) } else { times(&q, op, &c, 0) };
        close("ormtr", ty, &place.read(n, n), &wanted, 1.0 + norm(&c));
    });
}

#[test]
fn bidiagonal_forms() {
    cases(32, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (x, y) = (size(random), size(random));
        let (m, n) = (x.max(y), x.min(y));
        let a = Dense::random(ty, m, n, random);
        let stored = whole(random, ty, &a);
        let rest = n.saturating_sub(1);
        let [d, e] = [vector(ty.real(), n), vector(ty.real(), rest)];
        let [tauq, taup] = [vector(ty, n), vector(ty, n)];
        let told = info();
        let name = named(ty, "gebrd", "gebrd");
        let h = [handle.0, m as u64, n as u64];
        let (work, length) = workspace(&name, ty, &h);
        let (pa, lda) = (stored.buffer.address, stored.ld as u64);
        let places = [&d, &e, &tauq, &taup].map(|place| place.buffer.address);
        ok(&name, &[&h[..], &[pa, lda], &places, &[work.address, length, told.address]].concat());
        assert_eq!(told.integers(), [0]);
        let (form, d, e) = (stored.read(m, n), d.read(n, 1), e.read(rest, 1));
        let middle = Dense::new(n, n, |i, j| match j.wrapping_sub(i) {
            0 => d.at(i, 0),
            1 => e.at(i, 0),
            _ => [0.0; 2],
        });
        let make =
            |side: u64, rows: usize, columns: usize, k: usize, tau: u64, random: &mut fastrand::Rng| {
                let place = whole(random, ty, &Dense::new(rows, columns, |i, j| form.at(i, j)));
                let arguments = [
                    handle.0,
                    side,
                    rows as u64,
                    columns as u64,
                    k as u64,
                    place.buffer.address,
                    place.ld as u64,
                    tau,
                ];
                let name = named(ty, "orgbr", "ungbr");
                let (work, length) = workspace(&name, ty, &arguments);
                ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
                place.read(rows, columns)
            };
        let q = make(0, m, n, n, tauq.buffer.address, random);
        let p = make(1, n, n, m, taup.buffer.address, random);
        orthonormal(&name, ty, &q);
        orthonormal(&name, ty, &p);
        close(&name, ty, &times(&times(&q, 0, &middle, 0), 0, &p, 0), &a, norm(&a));
    });
}

#[test]
fn mixed_precision() {
    cases(33, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, columns, squares) = (random.usize(1..40), random.usize(..5), random.bool());
        let m = if squares { n } else { n + random.usize(..20) };
        let mut a = Dense::random(ty, m, n, random);
        (0..n).for_each(|i| a.values[i + i * m][0] += n as f64);
        let a = crate::rounded(ty, &a);
        let b = Dense::random(ty, m, columns, random);
        let (pa, pb, x) = (whole(random, ty, &a), whole(random, ty, &b), room(random, ty, n, columns));
        let pivots = Buffer::new(&vec![0; 4 * n]);
        let told = info();
        let lower = pick(random, if ty.is_complex() { &["C", "K", "Y"] } else { &["S", "H", "X"] });
        let lower = if ty == Ty::C && lower == "C" { "E" } else { lower };
        let name = format!("cusolverDn{}{lower}{}", ty.letter(), if squares { "gesv" } else { "gels" });
        let mut arguments = vec![handle.0];
        arguments.extend(if squares { vec![] } else { vec![m as u64] });
        arguments.extend([n as u64, columns as u64, pa.buffer.address, pa.ld as u64]);
        arguments.extend(squares.then_some(pivots.address));
        arguments.extend([pb.buffer.address, pb.ld as u64, x.buffer.address, x.ld as u64]);
        let mut bytes = 0u64;
        ok(&format!("{name}_bufferSize"), &[&arguments[..], &[0, at(&mut bytes)]].concat());
        let (work, mut iterations) = (Buffer::new(&vec![0; bytes as usize]), 9i32);
        ok(&name, &[&arguments[..], &[work.address, bytes, at(&mut iterations), told.address]].concat());
        assert_eq!((told.integers(), iterations), (vec![0], 0));
        pa.untouched(&name, [0, 0], |_, _| false);
        x.untouched(&name, [n, columns], |_, _| true);
        let x = x.read(n, columns);
        let product = times(&a, 0, &x, 0);
        let rest = Dense::new(m, columns, |i, j| [0, 1].map(|p| product.at(i, j)[p] - b.at(i, j)[p]));
        // The rest is orthogonal to the columns, and nothing for a square matrix.
        let none = Dense::new(n, columns, |_, _| [0.0; 2]);
        let size = norm(&a) * norm(&a) * (1.0 + norm(&x)) * (1.0 + norm(&b));
        close(&name, ty, &times(&a, 2, &rest, 0), &none, size);
        if squares {
            close(&name, ty, &rest, &none, norm(&a) * (1.0 + norm(&x)) * 4.0);
        }
    });
}

#[test]
fn sparse_systems() {
    cases(34, |random, _| {
        let ty = pick(random, &Ty::ALL);
        let (n, base) = (random.usize(1..20), random.i32(0..2));
        let kind = pick(random, &["qr", "chol", "qrHost", "cholHost", "luHost"]);
        let spectrum: Vec<f64> = (0..n).map(|_| random.f64() + 0.5).collect();
        let full = hermitian(random, ty, &spectrum);
        let dense = Dense::new(n, n, |i, j| match (i * j + i + j) % 3 {
            0 if i != j => [0.0; 2],
            _ if i == j => [full.at(i, j)[0] + n as f64, 0.0],
            _ => full.at(i, j),
        });
        let dense = crate::rounded(ty, &dense);
        let (mut rows, mut columns, mut values) = (vec![base], vec![], vec![]);
        for i in 0..n {
            for j in (0..n).filter(|&j| dense.at(i, j) != [0.0; 2]) {
                columns.push(j as i32 + base);
                values.push(dense.at(i, j));
            }
            rows.push(columns.len() as i32 + base);
        }
        let b = Dense::random(ty, n, 1, random);
        let bytes = |integers: &[i32]| integers.iter().flat_map(|i| i.to_ne_bytes()).collect::<Vec<u8>>();
        let mut memory = [
            ty.encode(&values),
            bytes(&rows),
            bytes(&columns),
            ty.encode(&b.values),
            ty.encode(&vec![crate::rig::NAN; n]),
        ];
        let on_host = kind.ends_with("Host");
        let buffers: Vec<Buffer> = memory.iter().map(|bytes| Buffer::new(bytes)).collect();
        let places: Vec<u64> = match on_host {
            true => memory.iter_mut().map(|bytes| at(&mut bytes[..])).collect(),
            false => buffers.iter().map(|buffer| buffer.address).collect(),
        };
        let mut handles = 0u64;
        ok("cusolverSpCreate", &[at(&mut handles)]);
        let (mut singular, count) = (9i32, values.len() as u64);
        let name = format!("cusolverSp{}csrlsv{kind}", ty.letter());
        let arguments = [
            handles,
            n as u64,
            count,
            0,
            places[0],
            places[1],
            places[2],
            places[3],
            0,
            places[4],
            at(&mut singular),
        ];
        assert_eq!(call_with(&name, [0.0; 2], &arguments), 0);
        ok("cusolverSpDestroy", &[handles]);
        assert_eq!(singular, -1, "{name}");
        let result = if on_host { memory[4].clone() } else { buffers[4].read() };
        let x = Dense { rows: n, columns: 1, values: ty.decode(&result) };
        close(&name, ty, &times(&dense, 0, &x, 0), &b, 4.0 * norm(&dense) * (1.0 + norm(&x)));
    });
}
