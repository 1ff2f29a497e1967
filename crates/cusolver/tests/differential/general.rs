//! Eigenvalues and eigenvectors of matrices without symmetry.

use crate::rig::{Buffer, Dense, Handle, Num, Ty, at, call, conj, norm, ok, times, unitary};
use crate::{bound, cases, close, diagonal, info, pick, room, rounded, size, vector, whole};

/// What the library finds.
struct Found {
    values: Vec<Num>,
    vectors: Option<Dense>,
    told: i32,
}

/// The number that `cudaDataType` has for a type.
fn kind(ty: Ty) -> u64 {
    match ty {
        Ty::S => 0,
        Ty::D => 1,
        Ty::C => 4,
        Ty::Z => 5,
    }
}

/// Has the library find eigenvalues. Those of real matrices are complex numbers, or all real parts and then all imaginary ones.
fn find(random: &mut fastrand::Rng, handle: &Handle, ty: Ty, a: &Dense, with_vectors: bool) -> Found {
    let n = a.rows;
    let stored = whole(random, ty, a);
    let are_apart = !ty.is_complex() && random.bool();
    let complex = if ty.is_single() { Ty::C } else { Ty::Z };
    let (of_values, count) = if are_apart { (ty, 2 * n) } else { (complex, n) };
    let (w, v, told) = (vector(of_values, count), room(random, ty, n, n), info());
    let head = [
        handle.0,
        0,
        0,
        with_vectors.into(),
        n as u64,
        kind(ty),
        stored.buffer.address,
        stored.ld as u64,
        kind(of_values),
        w.buffer.address,
        kind(ty),
        0,
        1,
        kind(ty),
        v.buffer.address,
        v.ld as u64,
        kind(ty),
    ];
    let (mut device, mut host) = (0u64, 9u64);
    ok("cusolverDnXgeev_bufferSize", &[&head[..], &[at(&mut device), at(&mut host)]].concat());
    let work = Buffer::new(&vec![0xff; device as usize]);
    ok("cusolverDnXgeev", &[&head[..], &[work.address, device, 0, host, told.address]].concat());
    let told = told.integers()[0];
    v.untouched("cusolverDnXgeev", [n, n], |_, _| with_vectors && told == 0);
    let read = w.read(count, 1).values;
    let values = (0..n).map(|i| if are_apart { [read[i][0], read[n + i][0]] } else { read[i] });
    let values: Vec<Num> = values.collect();
    let columns = v.read(n, n);
    let element = |i: usize, j: usize| match values[j][1] {
        _ if ty.is_complex() => columns.at(i, j),
        0.0 => columns.at(i, j),
        im if im > 0.0 => [columns.at(i, j)[0], columns.at(i, j + 1)[0]],
        _ => [columns.at(i, j - 1)[0], -columns.at(i, j)[0]],
    };
    let vectors = (with_vectors && told == 0).then(|| Dense::new(n, n, element));
    Found { values, vectors, told }
}

/// Checks all that holds for any matrix.
fn check(ty: Ty, a: &Dense, found: &Found) {
    let (n, name) = (a.rows, "cusolverDnXgeev");
    assert_eq!(found.told, 0, "{name} {n}");
    let sum = |part: usize| {
        let trace: f64 = (0..n).map(|i| a.at(i, i)[part]).sum();
        found.values.iter().map(|value| value[part]).sum::<f64>() - trace
    };
    let most = n.max(1) as f64 * bound(ty, n, norm(a));
    assert!(sum(0).hypot(sum(1)) <= most, "{name} {n}: the trace is {:?} off", [sum(0), sum(1)]);
    if !ty.is_complex() {
        for (j, value) in found.values.iter().enumerate().filter(|(_, value)| value[1] > 0.0) {
            assert_eq!(found.values[j + 1], conj(*value));
        }
    }
    let Some(v) = &found.vectors else { return };
    let scaled = times(v, 0, &diagonal(&found.values, n, n), 0);
    close(name, ty, &times(a, 0, v, 0), &scaled, norm(a));
    for j in 0..n {
        let vector = Dense::new(n, 1, |i, _| v.at(i, j));
        let most = bound(ty, n, 1.0);
        let size = |x: &Num| x[0].hypot(x[1]);
        let largest = vector.values.iter().map(size).fold(0.0, f64::max);
        // Of several that are as large, one.
        let mut largest = vector.values.iter().filter(|x| size(x) >= largest - most);
        let is_real = largest.any(|x| x[1].abs() <= most);
        assert!((norm(&vector) - 1.0).abs() <= most && is_real, "{name} {n}: {:?}", vector.values);
    }
}

#[test]
fn eigenpairs_of_any_matrix() {
    cases(61, |random, handle| {
        let (ty, n) = (pick(random, &Ty::ALL), size(random));
        let (kind, scale) = (random.u8(..5), pick(random, &[1.0, 1.0, 1e-30, 1e30]));
        let element = |i: usize, j: usize| {
            let value = ty.random(random).map(|part| part * scale);
            match kind {
                // Triangular, with values that are many times there.
                0 if i > j => [0.0; 2],
                0 if i == j => [scale * (i % 3) as f64, 0.0],
                1 if random.u8(..3) > 0 => [0.0; 2],
                // Of many sizes.
                2 => value.map(|part| part * 2f64.powi(-((i + j) as i32 % 20))),
                _ => value,
            }
        };
        let a = rounded(ty, &Dense::new(n, n, element));
        let with_vectors = random.u8(..4) > 0;
        check(ty, &a, &find(random, handle, ty, &a, with_vectors));
    });
}

/// Normal matrices: their eigenvalues are as exact as the matrix.
#[test]
fn spectra_without_symmetry() {
    cases(62, |random, handle| {
        let (ty, n) = (pick(random, &Ty::ALL), size(random));
        let mut wanted: Vec<Num> = (0..n).map(|_| Ty::Z.random(random)).collect();
        if !ty.is_complex() {
            wanted.chunks_mut(2).for_each(|pair| match pair {
                [first, second] => *second = conj(*first),
                rest => rest[0][1] = 0.0,
            });
        }
        // Of real matrices, a pair is a rotation.
        let middle = |i: usize, j: usize| match (i / 2 == j / 2, i == j) {
            (true, false) if !ty.is_complex() => [wanted[j][1], 0.0],
            (_, true) => [wanted[i][0], if ty.is_complex() { wanted[i][1] } else { 0.0 }],
            _ => [0.0; 2],
        };
        let (q, middle) = (unitary(ty, n, random), Dense::new(n, n, middle));
        let a = rounded(ty, &times(&times(&q, 0, &middle, 0), 0, &q, 2));
        let found = find(random, handle, ty, &a, true);
        check(ty, &a, &found);
        for got in &found.values {
            let far = |want: &Num| (got[0] - want[0]).hypot(got[1] - want[1]);
            let nearest = (0..wanted.len()).min_by(|&i, &j| far(&wanted[i]).total_cmp(&far(&wanted[j])));
            let want = wanted.swap_remove(nearest.expect("as many as there are"));
            assert!(far(&want) <= bound(ty, n, norm(&a)), "{n}: {got:?}, not {want:?}");
        }
    });
}

/// Matrices for which methods need more than their usual steps, or that have no values.
#[test]
fn matrices_that_are_hard() {
    let (mut random, handle) = (fastrand::Rng::with_seed(63), Handle::new());
    let numbers = |n: usize, of: &dyn Fn(usize, usize) -> f64| Dense::new(n, n, |i, j| [of(i, j), 0.0]);
    for n in [2, 3, 4, 7, 30] {
        let next = |i: usize, j: usize| (i + 1) % n == j;
        for a in [
            numbers(n, &|_, _| 0.0),
            numbers(n, &|i, j| f64::from(i == j)),
            // A circle, in both directions.
            numbers(n, &|i, j| f64::from(next(i, j))),
            numbers(n, &|i, j| f64::from(next(j, i))),
            // One vector for all values.
            numbers(n, &|i, j| if i == j { 2.0 } else { f64::from(i + 1 == j) }),
            numbers(n, &|i, j| if i == j { 2.0 } else { f64::from(j + 1 == i) }),
            numbers(n, &|_, _| 1.0),
            numbers(n, &|i, j| if i == j { 0.0 } else { f64::from(i < j) - f64::from(j < i) }),
        ] {
            for ty in Ty::ALL {
                check(ty, &a, &find(&mut random, &handle, ty, &a, true));
            }
        }
        for ty in Ty::ALL {
            let a = numbers(n, &|i, j| if i + j == 1 { f64::NAN } else { 1.0 });
            assert!(find(&mut random, &handle, ty, &a, true).told > 0);
        }
    }
    let (mut device, mut host) = (0u64, 0u64);
    let mut status = |left: u64, of_values: u64| {
        let places = [at(&mut device), at(&mut host)];
        let head = [handle.0, 0, left, 1, 2, 0, 0, 2, of_values, 0, 0, 0, 2, 0, 0, 2, 0];
        call("cusolverDnXgeev_bufferSize", &[&head[..], &places].concat())
    };
    assert_eq!([status(0, 0), status(0, 4), status(1, 0), status(0, 1), status(0, 5)], [0, 0, 3, 3, 3]);
}
