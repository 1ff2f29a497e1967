//! Singular values and vectors.

use crate::rig::{Buffer, Dense, Handle, Stored, Ty, at, norm, ok, times, unitary};
use crate::{
    bound, cases, close, diagonal, info, ld, named, orthonormal, part, pick, room, rounded, size, values,
    vector, whole, workspace,
};

/// A matrix with these singular values, rounded.
fn made(random: &mut fastrand::Rng, ty: Ty, [m, n]: [usize; 2], values: &[f64]) -> Dense {
    let (u, v) = (unitary(ty, m, random), unitary(ty, n, random));
    let s: Vec<[f64; 2]> = values.iter().map(|&value| [value, 0.0]).collect();
    rounded(ty, &times(&times(&u, 0, &diagonal(&s, m, n), 0), 0, &v, 2))
}

/// Checks values and vectors.
fn check(what: &str, ty: Ty, a: &Dense, wanted: &[f64], s: &[[f64; 2]], vectors: Option<(&Dense, &Dense)>) {
    let size = norm(a).max(wanted.iter().map(|value| value * value).sum::<f64>().sqrt());
    assert!(s.is_sorted_by(|a, b| a[0] >= b[0]) && s.iter().all(|s| s[0] >= 0.0), "{what}: {s:?}");
    for (got, want) in s.iter().zip(wanted) {
        let most = bound(ty, a.rows.max(a.columns), size);
        assert!((got[0] - want).abs() <= most, "{what}: {:e}, not {want:e}; > {most:e}", got[0]);
    }
    if let Some((u, v)) = vectors {
        orthonormal(what, ty, u);
        orthonormal(what, ty, v);
        let middle = diagonal(s, u.columns, v.columns);
        close(what, ty, &times(&times(u, 0, &middle, 0), 0, v, 2), a, size);
    }
}

#[test]
fn adjoint_vectors() {
    cases(21, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (a, b) = (size(random), size(random));
        let (m, n) = (a.max(b), a.min(b));
        let wanted = values(random, n, true);
        let a = made(random, ty, [m, n], &wanted);
        let stored = whole(random, ty, &a);
        let (s, told) = (vector(ty.real(), n), info());
        let jobs = pick(random, &[*b"AA", *b"SS", *b"NN", *b"OS", *b"SO", *b"AN", *b"NA", *b"AS"]);
        let (u, vt) = (room(random, ty, m, if jobs[0] == b'A' { m } else { n }), room(random, ty, n, n));
        let name = named(ty, "gesvd", "gesvd");
        let (work, length) = workspace(&name, ty, &[handle.0, m as u64, n as u64]);
        ok(
            &name,
            &[
                handle.0,
                jobs[0].into(),
                jobs[1].into(),
                m as u64,
                n as u64,
                stored.buffer.address,
                stored.ld as u64,
                s.buffer.address,
                u.buffer.address,
                u.ld as u64,
                vt.buffer.address,
                vt.ld as u64,
                work.address,
                length,
                0,
                told.address,
            ],
        );
        assert_eq!(told.integers(), [0]);
        stored.untouched(&name, [m, n], |_, _| jobs.contains(&b'O'));
        let taken = |job: u8| job == b'A' || job == b'S';
        u.untouched(&name, [m, u.values.len()], |_, _| taken(jobs[0]));
        vt.untouched(&name, [n, n], |_, _| taken(jobs[1]));
        let left = match jobs[0] {
            b'A' => Some(u.read(m, m)),
            b'S' => Some(u.read(m, n)),
            b'O' => Some(stored.read(m, n)),
            _ => None,
        };
        let right = match jobs[1] {
            b'O' => Some(part(&stored.read(m, n), n, n, |_, _| true)),
            b'N' => None,
            _ => Some(vt.read(n, n)),
        };
        let right = right.map(|right| right.operated(2));
        let s = s.read(n, 1).values;
        check(&name, ty, &a, &wanted, &s, left.as_ref().zip(right.as_ref()));
        left.iter().chain(&right).for_each(|vectors| orthonormal(&name, ty, vectors));
    });
}

/// An object with options.
fn options() -> u64 {
    let mut options = 0;
    ok("cusolverDnCreateGesvdjInfo", &[at(&mut options)]);
    options
}

#[test]
fn plain_vectors() {
    cases(22, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (m, n) = (size(random), size(random));
        let least = m.min(n);
        let (vectors, econ) = (random.u8(..4) > 0, random.bool());
        let wanted = values(random, least, true);
        let a = made(random, ty, [m, n], &wanted);
        let stored = whole(random, ty, &a);
        let (s, told) = (vector(ty.real(), least), info());
        let columns = |all: usize| if econ { least } else { all };
        let (u, v) = (room(random, ty, m, columns(m)), room(random, ty, n, columns(n)));
        let name = named(ty, "gesvdj", "gesvdj");
        let params = options();
        let arguments = [
            handle.0,
            vectors.into(),
            econ.into(),
            m as u64,
            n as u64,
            stored.buffer.address,
            stored.ld as u64,
            s.buffer.address,
            u.buffer.address,
            u.ld as u64,
            v.buffer.address,
            v.ld as u64,
        ];
        let (work, length) = workspace(&name, ty, &arguments);
        ok(&name, &[&arguments[..], &[work.address, length, told.address, params]].concat());
        assert_eq!(told.integers(), [0]);
        u.untouched(&name, [m, columns(m)], |_, _| vectors);
        v.untouched(&name, [n, columns(n)], |_, _| vectors);
        let (u, v) = (u.read(m, columns(m)), v.read(n, columns(n)));
        check(&name, ty, &a, &wanted, &s.read(least, 1).values, vectors.then_some((&u, &v)));
        let mut residual = 9.0f64;
        ok("cusolverDnXgesvdjGetResidual", &[handle.0, params, at(&mut residual)]);
        assert!(residual <= (m + n) as f64 * bound(ty, m.max(n), norm(&a)), "{residual:e}");
        ok("cusolverDnDestroyGesvdjInfo", &[params]);
    });
}

#[test]
fn many_small_matrices() {
    cases(23, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let (m, n, count) = (random.usize(1..33), random.usize(1..33), random.usize(..4));
        let least = m.min(n);
        let wanted: Vec<Vec<f64>> = (0..count).map(|_| values(random, least, true)).collect();
        let all: Vec<Dense> = wanted.iter().map(|values| made(random, ty, [m, n], values)).collect();
        let jacobi = random.bool();
        let rank = if jacobi { least } else { random.usize(1..=least) };
        let beside =
            |of: &dyn Fn(usize, usize, usize) -> [f64; 2], rows: usize, columns: usize, ld: usize| {
                let dense = Dense::new(rows, columns * count, |i, j| of(j / columns, i, j % columns));
                Stored::new(ty, &dense, ld, |_, _| true)
            };
        let nothing = |_: usize, _: usize, _: usize| crate::rig::NAN;
        let columns = |all: usize| if jacobi { all } else { rank };
        let stored = beside(&|k, i, j| all[k].at(i, j), m, n, ld(random, m));
        let u = beside(&nothing, m, columns(m), ld(random, m));
        let v = beside(&nothing, n, columns(n), ld(random, n));
        let (s, told) = (vector(ty.real(), rank * count), Buffer::new(&vec![9; 4 * count]));
        let mut norms = vec![9.0f64; count];
        if jacobi {
            jacobi_batch(handle, ty, [m, n, count], [&stored, &s, &u, &v], &told);
        } else {
            strided_batch(handle, ty, [m, n, rank, count], [&stored, &s, &u, &v], &told, &mut norms);
        }
        assert!(told.integers().iter().all(|&info| info == 0));
        // The last column may be followed by nothing.
        u.untouched("a batch", [m, columns(m) * count], |_, _| true);
        v.untouched("a batch", [n, columns(n) * count], |_, _| true);
        let (us, vs) = (u.read(m, columns(m) * count), v.read(n, columns(n) * count));
        let s = s.read(rank * count, 1).values;
        for (k, a) in all.iter().enumerate() {
            let u = Dense::new(m, columns(m), |i, j| us.at(i, k * columns(m) + j));
            let v = Dense::new(n, columns(n), |i, j| vs.at(i, k * columns(n) + j));
            let s = &s[k * rank..(k + 1) * rank];
            let whole = rank == least;
            check("a batch", ty, a, &wanted[k][..rank], s, whole.then_some((&u, &v)));
            orthonormal("a batch", ty, &u);
            if !jacobi {
                let rest = wanted[k][rank..].iter().map(|value| value * value).sum::<f64>().sqrt();
                let most = (m + n) as f64 * bound(ty, m.max(n), norm(a));
                assert!((norms[k] - rest).abs() <= most, "{:e}, not {rest:e}", norms[k]);
            }
        }
    });
}

/// `gesvdjBatched`.
fn jacobi_batch(handle: &Handle, ty: Ty, [m, n, count]: [usize; 3], places: [&Stored; 4], told: &Buffer) {
    let [a, s, u, v] = places;
    let name = named(ty, "gesvdjBatched", "gesvdjBatched");
    let params = options();
    let arguments = [
        handle.0,
        1,
        m as u64,
        n as u64,
        a.buffer.address,
        a.ld as u64,
        s.buffer.address,
        u.buffer.address,
        u.ld as u64,
        v.buffer.address,
        v.ld as u64,
    ];
    let mut length = 0i32;
    ok(&format!("{name}_bufferSize"), &[&arguments[..], &[at(&mut length), params, count as u64]].concat());
    let work = Buffer::new(&vec![0; length as usize * 16]);
    ok(&name, &[&arguments[..], &[work.address, length as u64, told.address, params, count as u64]].concat());
    ok("cusolverDnDestroyGesvdjInfo", &[params]);
}

/// `gesvdaStridedBatched`.
fn strided_batch(
    handle: &Handle,
    ty: Ty,
    [m, n, rank, count]: [usize; 4],
    places: [&Stored; 4],
    told: &Buffer,
    norms: &mut [f64],
) {
    let [a, s, u, v] = places;
    let name = named(ty, "gesvdaStridedBatched", "gesvdaStridedBatched");
    let stride = |of: &Stored, columns: usize| (of.ld * columns) as u64;
    let arguments = [
        handle.0,
        1,
        rank as u64,
        m as u64,
        n as u64,
        a.buffer.address,
        a.ld as u64,
        stride(a, n),
        s.buffer.address,
        rank as u64,
        u.buffer.address,
        u.ld as u64,
        stride(u, rank),
        v.buffer.address,
        v.ld as u64,
        stride(v, rank),
    ];
    let mut length = 0i32;
    ok(&format!("{name}_bufferSize"), &[&arguments[..], &[at(&mut length), count as u64]].concat());
    let work = Buffer::new(&vec![0; length as usize * 16]);
    ok(
        &name,
        &[&arguments[..], &[work.address, length as u64, told.address, at(norms), count as u64]].concat(),
    );
}
