//! Functions with generic descriptors.

use fastrand::Rng;

use crate::rig::*;
use crate::sparse::*;

/// Types of A, X, Y, and the compute type.
const PRODUCTS: [[Ty; 4]; 10] = [
    [Ty::S; 4],
    [Ty::D; 4],
    [Ty::C; 4],
    [Ty::Z; 4],
    [Ty::H, Ty::H, Ty::S, Ty::S],
    [Ty::H, Ty::H, Ty::H, Ty::S],
    [Ty::B, Ty::B, Ty::B, Ty::S],
    [Ty::B, Ty::B, Ty::S, Ty::S],
    [Ty::I8, Ty::I8, Ty::I32, Ty::I32],
    [Ty::I8, Ty::I8, Ty::S, Ty::S],
];

/// Sizes, of which one in eight is 0; those of blocks are even.
fn length(format: Format, rng: &mut Rng) -> usize {
    let length = if rng.u8(..8) == 0 { 0 } else { rng.usize(1..14) };
    if matches!(format, Format::Bsr | Format::BlockedEll) { length.div_ceil(2) * 2 } else { length }
}

#[test]
fn sparse_times_vector() {
    let formats = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::SlicedEll];
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let format = formats[rng.usize(..formats.len())];
        let [ta, tx, ty, tc] = match rng.usize(..PRODUCTS.len() + 2) {
            10 => [Ty::S, Ty::C, Ty::C, Ty::C],
            11 => [Ty::D, Ty::Z, Ty::Z, Ty::Z],
            which => PRODUCTS[which],
        };
        let op = if matches!(format, Format::Bsr | Format::SlicedEll) { 0 } else { rng.u64(..3) };
        let sample = Sample::random(ta, [length(format, rng), length(format, rng)], rng);
        let (alpha, beta) = (tc.factor(rng), tc.factor(rng));
        let a = SparseMatrix::new(ta, format, &sample, rng);
        let dense = sample.dense().operated(op);
        let mut x = Dense::random(tx, dense.columns, 1, rng);
        let mut y = Dense::random(ty, dense.rows, 1, rng);
        let wanted = dense.product(alpha, &x, beta, &y);
        // What does not count may be anything.
        if alpha == [0.0; 2] && !matches!(tx, Ty::I8) {
            x.values.fill(NAN);
        }
        if beta == [0.0; 2] && ty != Ty::I32 {
            y.values.fill(NAN);
        }
        let (x, y) = (DenseVector::new(tx, &x.values), DenseVector::new(ty, &y.values));
        let (alpha, beta) = (Scalar::new(&handle, tc, alpha), Scalar::new(&handle, tc, beta));
        let mut bytes = 1usize;
        let head = [
            handle.0,
            op,
            alpha.address(),
            a.descriptor,
            x.descriptor,
            beta.address(),
            y.descriptor,
            tc as u64,
            0,
        ];
        ok("cusparseSpMV_bufferSize", &[&head[..], &[at(&mut bytes)]].concat());
        ok("cusparseSpMV_preprocess", &[&head[..], &[0]].concat());
        ok("cusparseSpMV", &[&head[..], &[0]].concat());
        y.check(&format!("seed {seed}: {format:?} {ta:?} op {op} {:?}", sample.size), &wanted.values, 0.0);
    }
}

#[test]
fn sparse_times_dense() {
    let formats = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::BlockedEll];
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let format = formats[rng.usize(..formats.len())];
        let [ta, tb, tc, compute] = PRODUCTS[rng.usize(..PRODUCTS.len())];
        let op_a = if matches!(format, Format::Bsr | Format::BlockedEll) { 0 } else { rng.u64(..3) };
        let op_b = rng.u64(..3);
        let sample = Sample::random(ta, [length(format, rng), length(format, rng)], rng);
        let (alpha, beta) = (compute.factor(rng), compute.factor(rng));
        let a = SparseMatrix::new(ta, format, &sample, rng);
        let dense = sample.dense().operated(op_a);
        let (columns, count) = (rng.usize(..6), rng.usize(1..4));
        let b: Vec<Dense> = (0..count)
            .map(|_| match op_b {
                0 => Dense::random(tb, dense.columns, columns, rng),
                _ => Dense::random(tb, columns, dense.columns, rng),
            })
            .collect();
        let mut c: Vec<Dense> = (0..count).map(|_| Dense::random(tc, dense.rows, columns, rng)).collect();
        let one = |(b, c): (&Dense, &Dense)| dense.product(alpha, &b.operated(op_b), beta, c);
        let wanted: Vec<Dense> = b.iter().zip(&c).map(one).collect();
        if beta == [0.0; 2] && tc != Ty::I32 {
            c.iter_mut().for_each(|c| c.values.fill(NAN));
        }
        let (b, c) = (DenseMatrix::new(tb, &b, rng), DenseMatrix::new(tc, &c, rng));
        let (alpha, beta) = (Scalar::new(&handle, compute, alpha), Scalar::new(&handle, compute, beta));
        let mut bytes = 1usize;
        let head = [
            handle.0,
            op_a,
            op_b,
            alpha.address(),
            a.descriptor,
            b.descriptor,
            beta.address(),
            c.descriptor,
            compute as u64,
            0,
        ];
        ok("cusparseSpMM_bufferSize", &[&head[..], &[at(&mut bytes)]].concat());
        ok("cusparseSpMM_preprocess", &[&head[..], &[0]].concat());
        ok("cusparseSpMM", &[&head[..], &[0]].concat());
        c.check(&format!("seed {seed}: {format:?} {ta:?} {op_a} {op_b} {:?}", sample.size), &wanted, 0.0);
    }
}

#[test]
fn batches_of_sparse_matrices() {
    for seed in 0..shapes() / 4 {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(false);
        let ty = Ty::FULL[rng.usize(..4)];
        let first = Sample::random(ty, [5, 4], rng);
        let mut second = first.clone();
        second.entries.values_mut().for_each(|value| *value = ty.random(rng));
        let nnz = first.entries.len();
        let offsets = Buffer::ints(&[first.offsets(), second.offsets()].concat());
        let columns = Buffer::ints(&[first.columns(), second.columns()].concat());
        let values = ty.buffer(&[first.values(), second.values()].concat());
        let mut a = 0;
        let arrays = [offsets.address, columns.address, values.address];
        ok(
            "cusparseCreateCsr",
            &[&[at(&mut a), 5, 4, nnz as u64][..], &arrays, &[2, 2, 0, ty as u64]].concat(),
        );
        ok("cusparseCsrSetStridedBatch", &[a, 2, 6, nnz as u64]);
        let b: Vec<Dense> = (0..2).map(|_| Dense::random(ty, 4, 3, rng)).collect();
        let c: Vec<Dense> = (0..2).map(|_| Dense::random(ty, 5, 3, rng)).collect();
        let factors = [ty.random(rng), ty.random(rng)];
        let one =
            |which: usize, of: &Sample| of.dense().product(factors[0], &b[which], factors[1], &c[which]);
        let wanted = [one(0, &first), one(1, &second)];
        let (b, c) = (DenseMatrix::new(ty, &b, rng), DenseMatrix::new(ty, &c, rng));
        let [alpha, beta] = factors.map(|factor| Scalar::new(&handle, ty, factor));
        ok(
            "cusparseSpMM",
            &[
                handle.0,
                0,
                0,
                alpha.address(),
                a,
                b.descriptor,
                beta.address(),
                c.descriptor,
                ty as u64,
                0,
                0,
            ],
        );
        c.check(&format!("seed {seed}"), &wanted, 0.0);
        ok("cusparseDestroySpMat", &[a]);
    }
}

#[test]
fn sampled_products() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let format = [Format::Csr, Format::Bsr][rng.usize(..2)];
        let [ta, tc, compute] = match rng.usize(..6) {
            4 => [Ty::H, Ty::H, Ty::S],
            5 => [Ty::H, Ty::S, Ty::S],
            which => [Ty::FULL[which]; 3],
        };
        let (op_a, op_b) = (rng.u64(..2), rng.u64(..2));
        let sample = Sample::random(tc, [length(format, rng), length(format, rng)], rng);
        let inner = rng.usize(..6);
        let sizes =
            |[rows, columns]: [usize; 2], op: u64| if op == 0 { [rows, columns] } else { [columns, rows] };
        let [a, b] = [sizes([sample.size[0], inner], op_a), sizes([inner, sample.size[1]], op_b)];
        let (a, b) = (Dense::random(ta, a[0], a[1], rng), Dense::random(ta, b[0], b[1], rng));
        let (alpha, beta) = (compute.factor(rng), compute.factor(rng));
        let wanted = a.operated(op_a).product(alpha, &b.operated(op_b), beta, &sample.dense());
        let c = SparseMatrix::new(tc, format, &sample, rng);
        let (a, b) = (DenseMatrix::new(ta, &[a], rng), DenseMatrix::new(ta, &[b], rng));
        let (alpha, beta) = (Scalar::new(&handle, compute, alpha), Scalar::new(&handle, compute, beta));
        let head = [
            handle.0,
            op_a,
            op_b,
            alpha.address(),
            a.descriptor,
            b.descriptor,
            beta.address(),
            c.descriptor,
            compute as u64,
            0,
        ];
        ok("cusparseSDDMM_preprocess", &[&head[..], &[0]].concat());
        ok("cusparseSDDMM", &[&head[..], &[0]].concat());
        let wanted: Vec<Num> = c.elements.iter().map(|e| e.map_or(NAN, |(i, j)| wanted.at(i, j))).collect();
        compare(&format!("seed {seed}: {format:?}"), &tc.read(&c.arrays[2]), &tc.rounded(&wanted), 0.0);
    }
}

#[test]
fn sparse_times_sparse() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = [Ty::S, Ty::D, Ty::C, Ty::Z, Ty::H, Ty::B][rng.usize(..6)];
        let compute = if matches!(ty, Ty::H | Ty::B) { Ty::S } else { ty };
        let [m, k, n] = [0; 3].map(|_| length(Format::Csr, rng));
        let (a, b) = (Sample::random(ty, [m, k], rng), Sample::random(ty, [k, n], rng));
        let alpha = compute.random(rng);
        let dense = a.dense().product(alpha, &b.dense(), [0.0; 2], &Dense::new(m, n, |_, _| NAN));
        // An entry is where there is a product, even if their sum is zero.
        let there = |i: usize, j: usize| {
            (0..k).any(|l| a.entries.contains_key(&(i, l)) && b.entries.contains_key(&(l, j)))
        };
        let places: Vec<_> = (0..m * n).map(|at| (at / n, at % n)).filter(|&(i, j)| there(i, j)).collect();
        let wanted = Sample {
            size: [m, n],
            entries: places.into_iter().map(|(i, j)| ((i, j), dense.at(i, j))).collect(),
        };
        let (a, b) =
            (SparseMatrix::new(ty, Format::Csr, &a, rng), SparseMatrix::new(ty, Format::Csr, &b, rng));
        let [alpha, zero] = [alpha, [0.0; 2]].map(|value| Scalar::new(&handle, compute, value));
        let offsets = Buffer::ints(&vec![-7; m + 1]);
        let (mut c, mut plan, mut bytes) = (0, 0, 0usize);
        let sizes = [m as u64, n as u64, 0, offsets.address, 0, 0, 2, 2, 0, ty as u64];
        ok("cusparseCreateCsr", &[&[at(&mut c)][..], &sizes].concat());
        ok("cusparseSpGEMM_createDescr", &[at(&mut plan)]);
        let work = Buffer::new(&[0; 256]);
        let again = rng.bool();
        let finish = |c: u64| {
            let [mut rows, mut columns, mut nnz] = [0i64; 3];
            ok("cusparseSpMatGetSize", &[c, at(&mut rows), at(&mut columns), at(&mut nnz)]);
            assert_eq!(
                [rows, columns, nnz],
                [m as i64, n as i64, wanted.entries.len() as i64],
                "seed {seed}"
            );
            let indices = Buffer::ints(&vec![-7; nnz as usize]);
            let values = ty.buffer(&vec![NAN; nnz as usize]);
            ok("cusparseCsrSetPointers", &[c, offsets.address, indices.address, values.address]);
            (indices, values)
        };
        let with = [alpha.address(), a.descriptor, b.descriptor, zero.address(), c, compute as u64, 0, plan];
        let (indices, values) = match again {
            false => {
                let head = [&[handle.0, 0, 0][..], &with].concat();
                for step in ["cusparseSpGEMM_workEstimation", "cusparseSpGEMM_compute"] {
                    ok(step, &[&head[..], &[at(&mut bytes), 0]].concat());
                    assert!(bytes > 0 && bytes <= 256);
                    ok(step, &[&head[..], &[at(&mut bytes), work.address]].concat());
                }
                let arrays = finish(c);
                ok("cusparseSpGEMM_copy", &head);
                arrays
            }
            true => {
                let head = [handle.0, 0, 0, a.descriptor, b.descriptor, c, 0, plan];
                let mut ask = |step: &str, times: usize| {
                    for buffer in [0, work.address] {
                        let pairs: Vec<u64> = (0..times).flat_map(|_| [at(&mut bytes), buffer]).collect();
                        ok(step, &[&head[..], &pairs].concat());
                    }
                };
                ask("cusparseSpGEMMreuse_workEstimation", 1);
                ask("cusparseSpGEMMreuse_nnz", 3);
                let arrays = finish(c);
                ask("cusparseSpGEMMreuse_copy", 1);
                ok("cusparseSpGEMMreuse_compute", &[&[handle.0, 0, 0][..], &with].concat());
                arrays
            }
        };
        assert_eq!(offsets.read_ints(), wanted.offsets(), "seed {seed}");
        assert_eq!(indices.read_ints(), wanted.columns(), "seed {seed}");
        compare(&format!("seed {seed}"), &ty.read(&values), &ty.rounded(&wanted.values()), 0.0);
        ok("cusparseSpGEMM_destroyDescr", &[plan]);
        ok("cusparseDestroySpMat", &[c]);
    }
}

#[test]
fn triangular_systems() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let formats = [Format::Csr, Format::Csc, Format::Coo, Format::SlicedEll];
        let format = formats[rng.usize(..4)];
        let ty = Ty::FULL[rng.usize(..4)];
        let op = if format == Format::SlicedEll { 0 } else { rng.u64(..3) };
        let (upper, unit, n) = (rng.bool(), rng.bool(), rng.usize(1..10));
        // Both triangles have entries; a diagonal that is taken for ones has others.
        let mut sample = Sample::random(ty, [n, n], rng);
        sample.entries.extend((0..n).map(|i| ((i, i), [8.0, 0.0])));
        let a = SparseMatrix::new(ty, format, &sample, rng);
        let counts = |i: usize, j: usize| if upper { j > i } else { j < i };
        let triangle = |sample: &Sample| {
            Dense::new(n, n, |i, j| match i == j {
                true if unit => [1.0, 0.0],
                true => sample.dense().at(i, j),
                false if counts(i, j) => sample.dense().at(i, j),
                false => [0.0; 2],
            })
        };
        for (attribute, value) in [(0, upper), (1, unit)] {
            let mut value = u32::from(value);
            ok("cusparseSpMatSetAttribute", &[a.descriptor, attribute, at(&mut value), 4]);
        }
        let columns = rng.usize(1..4);
        let x = Dense::random(ty, n, columns, rng);
        let halves = Scalar::new(&handle, ty, [0.5, 0.0]);
        let none = Dense::new(n, columns, |_, _| [0.0; 2]);
        let product = |sample: &Sample, x: &Dense, columns: usize| {
            let none = Dense::new(n, columns, |_, _| [0.0; 2]);
            triangle(sample).operated(op).product([2.0, 0.0], x, [0.0; 2], &none)
        };
        let most = if matches!(ty, Ty::S | Ty::C) { 1e-3 } else { 1e-10 };
        let what = format!("seed {seed}: {format:?} {ty:?} op {op} upper {upper} unit {unit}");
        let mut new = sample.clone();
        new.entries.iter_mut().filter(|(key, _)| key.0 == key.1).for_each(|(_, value)| *value = [4.0, 0.0]);
        let update_all = rng.bool() || format == Format::SlicedEll;
        let fresh = match update_all {
            true => {
                ty.buffer(&a.elements.iter().map(|e| e.map_or(NAN, |e| new.entries[&e])).collect::<Vec<_>>())
            }
            false => ty.buffer(&vec![[4.0, 0.0]; n]),
        };
        if columns == 1 {
            let mut plan = 0;
            ok("cusparseSpSV_createDescr", &[at(&mut plan)]);
            let solution = DenseVector::new(ty, &[NAN].repeat(n));
            let solve = |sample: &Sample, is_new: bool| {
                let side = DenseVector::new(ty, &product(sample, &x, 1).values);
                let head = [
                    handle.0,
                    op,
                    halves.address(),
                    a.descriptor,
                    side.descriptor,
                    solution.descriptor,
                    ty as u64,
                    0,
                    plan,
                ];
                if is_new {
                    ok("cusparseSpSV_bufferSize", &[&head[..], &[at(&mut 0usize)]].concat());
                    assert_eq!(call("cusparseSpSV_solve", &head), 3, "before the analysis");
                    ok("cusparseSpSV_analysis", &[&head[..], &[0]].concat());
                }
                ok("cusparseSpSV_solve", &head);
                solution.check(&what, &x.values, most);
            };
            solve(&sample, true);
            ok("cusparseSpSV_updateMatrix", &[handle.0, plan, fresh.address, u64::from(!update_all)]);
            solve(&new, false);
            ok("cusparseSpSV_destroyDescr", &[plan]);
        } else {
            let mut plan = 0;
            let op_b = rng.u64(..2);
            ok("cusparseSpSM_createDescr", &[at(&mut plan)]);
            let mut solve = |sample: &Sample, is_new: bool| {
                let side = DenseMatrix::new(ty, &[product(sample, &x, columns).operated(op_b)], rng);
                let solution = DenseMatrix::new(ty, std::slice::from_ref(&none), rng);
                let head = [
                    handle.0,
                    op,
                    op_b,
                    halves.address(),
                    a.descriptor,
                    side.descriptor,
                    solution.descriptor,
                    ty as u64,
                    0,
                    plan,
                ];
                if is_new {
                    ok("cusparseSpSM_analysis", &[&head[..], &[0]].concat());
                }
                ok("cusparseSpSM_solve", &head);
                solution.check(&what, std::slice::from_ref(&x), most);
            };
            solve(&sample, true);
            ok("cusparseSpSM_updateMatrix", &[handle.0, plan, fresh.address, u64::from(!update_all)]);
            solve(&new, false);
            ok("cusparseSpSM_destroyDescr", &[plan]);
        }
    }
}

#[test]
fn sparse_vectors() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = [Ty::S, Ty::D, Ty::C, Ty::Z, Ty::H, Ty::B][rng.usize(..6)];
        let compute = if matches!(ty, Ty::H | Ty::B) { Ty::S } else { ty };
        let (length, width, base) = (rng.usize(..12), rng.u64(2..4), i64::from(rng.bool()));
        let places: Vec<usize> = (0..length).filter(|_| rng.bool()).collect();
        let x: Vec<Num> = places.iter().map(|_| ty.random(rng)).collect();
        let y: Vec<Num> = (0..length).map(|_| ty.random(rng)).collect();
        let indices = Buffer::indices(&places.iter().map(|&at| at as i64).collect::<Vec<_>>(), width, base);
        let sparse = || {
            let (values, mut descriptor) = (ty.buffer(&x), 0);
            let arrays =
                [length as u64, places.len() as u64, indices.address, values.address, width, base as u64];
            ok("cusparseCreateSpVec", &[&[at(&mut descriptor)][..], &arrays, &[ty as u64]].concat());
            (descriptor, values)
        };
        let factors = [compute.factor(rng), compute.factor(rng)];
        let [one, two] = factors.map(|factor| Scalar::new(&handle, compute, factor));
        let what = |name: &str| format!("seed {seed}: {name} {ty:?}");

        let ((vx, _values), vy) = (sparse(), DenseVector::new(ty, &y));
        ok("cusparseAxpby", &[handle.0, one.address(), vx, two.address(), vy.descriptor]);
        let mut wanted: Vec<Num> = y.iter().map(|&y| times(factors[1], y)).collect();
        places.iter().zip(&x).for_each(|(&at, &x)| wanted[at] = plus(wanted[at], times(factors[0], x)));
        vy.check(&what("Axpby"), &wanted, 0.0);

        let ((vx, values), vy) = (sparse(), DenseVector::new(ty, &y));
        ok("cusparseGather", &[handle.0, vy.descriptor, vx]);
        compare(&what("Gather"), &ty.read(&values), &places.iter().map(|&at| y[at]).collect::<Vec<_>>(), 0.0);

        let ((vx, _values), vy) = (sparse(), DenseVector::new(ty, &y));
        ok("cusparseScatter", &[handle.0, vx, vy.descriptor]);
        let mut wanted = y.clone();
        places.iter().zip(&x).for_each(|(&at, &x)| wanted[at] = x);
        vy.check(&what("Scatter"), &wanted, 0.0);

        if !ty.is_complex() {
            let ((vx, values), vy) = (sparse(), DenseVector::new(ty, &y));
            ok("cusparseRot", &[handle.0, one.address(), two.address(), vx, vy.descriptor]);
            let ([c, s], mut turned) = (factors, y.clone());
            let new = places.iter().zip(&x).map(|(&at, &x)| {
                turned[at] = plus(times(c, y[at]), times([-s[0], 0.0], x));
                plus(times(c, x), times(s, y[at]))
            });
            let new: Vec<Num> = new.collect();
            compare(&what("Rot"), &ty.read(&values), &ty.rounded(&new), 0.0);
            vy.check(&what("Rot"), &turned, 0.0);
        }

        let ((vx, _values), vy) = (sparse(), DenseVector::new(ty, &y));
        let (op, result) = (if rng.bool() { 2 } else { 0 }, Scalar::new(&handle, compute, NAN));
        ok("cusparseSpVV", &[handle.0, op, vx, vy.descriptor, result.address(), compute as u64, 0]);
        let conjugate = |[re, im]: Num| if op == 2 { [re, -im] } else { [re, im] };
        let terms = places.iter().zip(&x).map(|(&at, &x)| times(conjugate(x), y[at]));
        compare(&what("SpVV"), &compute.decode(&result.read()), &[terms.fold([0.0; 2], plus)], 0.0);
    }
}

#[test]
fn dense_to_sparse_and_back() {
    let formats = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::BlockedEll];
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(false);
        let format = formats[rng.usize(..formats.len())];
        let ty = [Ty::S, Ty::D, Ty::C, Ty::Z, Ty::H, Ty::B, Ty::I8][rng.usize(..7)];
        let mut sample = Sample::random(ty, [length(format, rng), length(format, rng)], rng);
        sample.entries.retain(|_, value| *value != [0.0; 2]);
        let what = format!("seed {seed}: {format:?} {ty:?} {:?}", sample.size);
        // The sparse matrix that should come out has the same arrays.
        let wanted = SparseMatrix::new(ty, format, &sample, rng);
        let dense = DenseMatrix::new(ty, &[Dense::new(sample.size[0], sample.size[1], |_, _| [0.0; 2])], rng);
        ok("cusparseSparseToDense", &[handle.0, wanted.descriptor, dense.descriptor, 0, 0]);
        dense.check(&what, &[sample.dense()], 0.0);

        let before: Vec<Vec<u8>> = wanted.arrays.iter().map(Buffer::read).collect();
        let [mut rows, mut columns, mut nnz] = [0i64; 3];
        ok("cusparseSpMatGetSize", &[wanted.descriptor, at(&mut rows), at(&mut columns), at(&mut nnz)]);
        for (which, array) in wanted.arrays.iter().enumerate() {
            // The indices of Blocked-ELL are the program's.
            if format != Format::BlockedEll || which == 2 {
                ok("cuMemsetD8_v2", &[array.address, 0x7f, before[which].len() as u64]);
            }
        }
        let arguments = [handle.0, dense.descriptor, wanted.descriptor, 0, 0];
        ok("cusparseDenseToSparse_analysis", &arguments);
        let mut found = 0i64;
        ok("cusparseSpMatGetSize", &[wanted.descriptor, at(&mut rows), at(&mut columns), at(&mut found)]);
        assert_eq!(found, nnz, "{what}");
        ok("cusparseDenseToSparse_convert", &arguments);
        for (array, before) in wanted.arrays.iter().zip(&before).take(2) {
            assert_eq!(&array.read(), before, "{what}");
        }
        let (got, want) = (ty.read(&wanted.arrays[2]), ty.decode(&before[2]));
        for ((got, want), element) in got.into_iter().zip(want).zip(&wanted.elements) {
            assert!(element.is_none() || got == want, "{what}");
        }
    }
}
