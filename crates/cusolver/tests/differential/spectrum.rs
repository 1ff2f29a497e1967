//! Eigenvalues and eigenvectors.

use crate::rig::{Buffer, Dense, Stored, Ty, at, call_with, norm, ok, times};
use crate::{
    bound, cases, close, diagonal, hermitian, info, ld, named, orthonormal, part, pick, size, triangle,
    values, vector, workspace,
};

/// Compares eigenvalues with those from which a matrix was made, which descend.
fn same_values(what: &str, ty: Ty, got: &[f64], wanted: &[f64], norm: f64) {
    for (got, want) in got.iter().zip(wanted) {
        let most = bound(ty, wanted.len(), norm);
        assert!((got - want).abs() <= most, "{what}: {got:e}, not {want:e}; > {most:e}");
    }
}

#[test]
fn eigenvalues() {
    cases(11, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper, vectors, jacobi) = (size(random), random.bool(), random.bool(), random.bool());
        let mut wanted = values(random, n, false);
        let a = hermitian(random, ty, &wanted);
        wanted.reverse();
        let stored = triangle(random, ty, &a, upper);
        let (w, told) = (vector(ty.real(), n), info());
        let name = if jacobi { named(ty, "syevj", "heevj") } else { named(ty, "syevd", "heevd") };
        let arguments = [
            handle.0,
            vectors.into(),
            upper.into(),
            n as u64,
            stored.buffer.address,
            stored.ld as u64,
            w.buffer.address,
        ];
        let mut options = 0u64;
        if jacobi {
            ok("cusolverDnCreateSyevjInfo", &[at(&mut options)]);
        }
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address, options]].concat());
        assert_eq!(told.integers(), [0]);
        let got: Vec<f64> = w.read(n, 1).values.iter().map(|value| value[0]).collect();
        assert!(got.is_sorted(), "{name}: {got:?}");
        let size = norm(&a).max(wanted.iter().map(|value| value * value).sum::<f64>().sqrt());
        same_values(&name, ty, &got, &wanted, size);
        if vectors {
            stored.untouched(&name, [n, n], |_, _| true);
            let v = stored.read(n, n);
            orthonormal(&name, ty, &v);
            let scaled = times(&v, 0, &diagonal(&w.read(n, 1).values, n, n), 0);
            close(&name, ty, &times(&scaled, 0, &v, 2), &a, size);
        }
        if jacobi {
            let (mut residual, mut sweeps) = (9.0, 9);
            ok("cusolverDnXsyevjGetResidual", &[handle.0, options, at(&mut residual)]);
            ok("cusolverDnXsyevjGetSweeps", &[handle.0, options, at(&mut sweeps)]);
            assert!(sweeps == 1 && residual <= n as f64 * bound(ty, n, size), "{residual:e}");
            ok("cusolverDnDestroySyevjInfo", &[options]);
        }
    });
}

#[test]
fn ranges_of_eigenvalues() {
    cases(12, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper, vectors) = (random.usize(1..30), random.bool(), random.bool());
        let spectrum: Vec<f64> = (0..n).map(|i| i as f64 + 1.0).collect();
        let a = hermitian(random, ty, &spectrum);
        let stored = triangle(random, ty, &a, upper);
        let (w, told) = (vector(ty.real(), n), info());
        let (first, last) = (random.usize(..n), random.usize(1..=n));
        let (first, last) = (first.min(last - 1), last);
        let range = pick(random, &[1001, 1002, 1003]);
        let (from, to) = if range == 1001 { (0, n) } else { (first, last) };
        let bits =
            |value: f64| if ty.is_single() { f64::from_bits((value as f32).to_bits().into()) } else { value };
        let limits = [bits(first as f64 + 0.5), bits(last as f64 + 0.5)];
        let name = named(ty, "syevdx", "heevdx");
        let mut count = -1i32;
        let arguments = [
            handle.0,
            vectors.into(),
            range,
            upper.into(),
            n as u64,
            stored.buffer.address,
            stored.ld as u64,
            first as u64 + 1,
            last as u64,
            at(&mut count),
            w.buffer.address,
        ];
        let mut length = 0i32;
        let sizes = [&arguments[..], &[at(&mut length)]].concat();
        assert_eq!(call_with(&format!("{name}_bufferSize"), limits, &sizes), 0);
        let work = Buffer::new(&vec![0; length as usize * 16]);
        let all = [&arguments[..], &[work.address, length as u64, told.address]].concat();
        assert_eq!(call_with(&name, limits, &all), 0);
        assert_eq!((told.integers(), count), (vec![0], (to - from) as i32));
        let got: Vec<f64> = w.read(to - from, 1).values.iter().map(|value| value[0]).collect();
        same_values(&name, ty, &got, &spectrum[from..to], norm(&a));
        w.untouched(&name, [to - from, 1], |_, _| true);
        if vectors {
            stored.untouched(&name, [n, to - from], |_, _| true);
            let v = stored.read(n, to - from);
            let scaled = Dense::new(n, to - from, |i, j| v.at(i, j).map(|part| part * got[j]));
            close(&name, ty, &times(&a, 0, &v, 0), &scaled, norm(&a));
        }
    });
}

#[test]
fn many_small_spectra() {
    cases(13, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, count, upper) = (random.usize(..12), random.usize(..5), random.bool());
        let lda = ld(random, n);
        let mut made = |_| {
            let values = values(random, n, false);
            hermitian(random, ty, &values)
        };
        let all: Vec<Dense> = (0..count).map(&mut made).collect();
        let side = Dense::new(n, n * count, |i, j| all[j / n].at(i, j % n));
        let stored = Stored::new(ty, &side, lda, |i, j| i == j % n || (i < j % n) == upper);
        let w = vector(ty.real(), n * count);
        let told = Buffer::new(&vec![9; 4 * count]);
        let name = named(ty, "syevjBatched", "heevjBatched");
        let mut options = 0u64;
        ok("cusolverDnCreateSyevjInfo", &[at(&mut options)]);
        let arguments =
            [handle.0, 1, upper.into(), n as u64, stored.buffer.address, lda as u64, w.buffer.address];
        let mut length = 0i32;
        ok(
            &format!("{name}_bufferSize"),
            &[&arguments[..], &[at(&mut length), options, count as u64]].concat(),
        );
        let work = Buffer::new(&vec![0; length as usize * 16]);
        let rest = [work.address, length as u64, told.address, options, count as u64];
        ok(&name, &[&arguments[..], &rest].concat());
        ok("cusolverDnDestroySyevjInfo", &[options]);
        assert!(told.integers().iter().all(|&info| info == 0));
        stored.untouched(&name, [n, n * count], |_, _| true);
        let (vectors, values) = (stored.read(n, n * count), w.read(n * count, 1).values);
        for (i, a) in all.iter().enumerate() {
            let v = Dense::new(n, n, |row, column| vectors.at(row, i * n + column));
            orthonormal(&name, ty, &v);
            let scaled = times(&v, 0, &diagonal(&values[i * n..], n, n), 0);
            close(&name, ty, &times(&scaled, 0, &v, 2), a, norm(a));
        }
    });
}

#[test]
fn pairs() {
    cases(14, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (n, upper, itype) = (size(random).min(40), random.bool(), random.u32(1..4));
        let spectrum: Vec<f64> = (0..n).map(|_| random.f64() * 2.0 - 1.0).collect();
        let a = hermitian(random, ty, &spectrum);
        let positive: Vec<f64> = (0..n).map(|_| 0.5 + random.f64()).collect();
        let b = hermitian(random, ty, &positive);
        let (place, factor) = (triangle(random, ty, &a, upper), triangle(random, ty, &b, upper));
        let (w, told) = (vector(ty.real(), n), info());
        let name = named(ty, "sygvd", "hegvd");
        let arguments = [
            handle.0,
            itype.into(),
            1,
            upper.into(),
            n as u64,
            place.buffer.address,
            place.ld as u64,
            factor.buffer.address,
            factor.ld as u64,
            w.buffer.address,
        ];
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address]].concat());
        assert_eq!(told.integers(), [0]);
        factor.untouched(&name, [n, n], |i, j| i == j || (i < j) == upper);
        let (v, w) = (place.read(n, n), w.read(n, 1).values);
        let scaled = times(&v, 0, &diagonal(&w, n, n), 0);
        let (left, right) = match itype {
            1 => (times(&a, 0, &v, 0), times(&b, 0, &scaled, 0)),
            2 => (times(&a, 0, &times(&b, 0, &v, 0), 0), scaled),
            _ => (times(&b, 0, &times(&a, 0, &v, 0), 0), scaled),
        };
        close(&name, ty, &left, &right, (1.0 + norm(&a)) * (1.0 + norm(&v)) * (1.0 + norm(&b)));
        // Vectors are normalized by B, or by its inverse.
        let product = match itype {
            3 => {
                let factor = part(&factor.read(n, n), n, n, |i, j| i == j || (i < j) == upper);
                // V^H B^-1 V = 1, so V V^H = B.
                let other = if upper { times(&factor, 2, &factor, 0) } else { times(&factor, 0, &factor, 2) };
                close(&name, ty, &times(&v, 0, &v, 2), &other, 2.0 + norm(&b));
                return;
            }
            _ => times(&v, 2, &times(&b, 0, &v, 0), 0),
        };
        close(&name, ty, &product, &crate::rig::unit(n), (1.0 + norm(&b)) * (1.0 + norm(&v)));
    });
}
