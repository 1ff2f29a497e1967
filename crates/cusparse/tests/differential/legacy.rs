//! Functions without generic descriptors.

use fastrand::Rng;

use crate::rig::*;
use crate::sparse::*;

/// `cusparseMatDescr_t` of a general matrix with a base.
pub fn description(base: i64) -> u64 {
    let mut descriptor = 0;
    ok("cusparseCreateMatDescr", &[at(&mut descriptor)]);
    ok("cusparseSetMatIndexBase", &[descriptor, base as u64]);
    assert_eq!(call("cusparseGetMatIndexBase", &[descriptor]), base as u32);
    descriptor
}

/// A matrix by compressed rows: offsets, columns, values.
pub fn stored(ty: Ty, sample: &Sample, base: i64) -> [Buffer; 3] {
    let ints = |values: Vec<i64>| Buffer::indices(&values, 2, base);
    [ints(sample.offsets()), ints(sample.columns()), ty.buffer(&sample.values())]
}

/// A count where the pointer mode says.
pub fn count(handle: &Handle) -> Scalar {
    Scalar::new(handle, Ty::I32, [-7.0, 0.0])
}

pub fn read_count(count: &Scalar) -> usize {
    Ty::I32.decode(&count.read())[0][0] as usize
}

#[test]
fn indices() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(false);
        let base = i64::from(rng.bool());
        let sample = Sample::random(Ty::D, [rng.usize(..10), rng.usize(..10)], rng);
        let ([m, n], nnz) = (sample.size, sample.entries.len());
        let [offsets, columns, values] = stored(Ty::D, &sample, base);
        let rows = Buffer::indices(&sample.rows(), 2, base);
        let (to_rows, to_offsets) = (Buffer::ints(&vec![-7; nnz]), Buffer::ints(&vec![-7; m + 1]));
        ok(
            "cusparseXcsr2coo",
            &[handle.0, offsets.address, nnz as u64, m as u64, to_rows.address, base as u64],
        );
        assert_eq!(to_rows.read(), rows.read(), "seed {seed}");
        ok(
            "cusparseXcoo2csr",
            &[handle.0, rows.address, nnz as u64, m as u64, to_offsets.address, base as u64],
        );
        assert_eq!(to_offsets.read(), offsets.read(), "seed {seed}");

        // Transposition, and back.
        let turned = sample.transposed();
        let wanted = stored(Ty::D, &turned, base);
        let got =
            [Buffer::ints(&vec![-7; n + 1]), Buffer::ints(&vec![-7; nnz]), Ty::D.buffer(&vec![NAN; nnz])];
        let mut bytes = 0usize;
        let sizes =
            [handle.0, m as u64, n as u64, nnz as u64, values.address, offsets.address, columns.address];
        let to = [got[2].address, got[0].address, got[1].address, 1, 1, base as u64, 1];
        ok("cusparseCsr2cscEx2_bufferSize", &[&sizes[..], &to, &[at(&mut bytes)]].concat());
        ok("cusparseCsr2cscEx2", &[&sizes[..], &to, &[0]].concat());
        got.iter()
            .zip(&wanted)
            .for_each(|(got, wanted)| assert_eq!(got.read(), wanted.read(), "seed {seed}"));

        // Sorting what is in another order.
        let mut order: Vec<usize> = (0..nnz).collect();
        rng.shuffle(&mut order);
        let shuffled = |all: Vec<i64>| order.iter().map(|&at| all[at]).collect::<Vec<i64>>();
        for by_column in [false, true] {
            let (x, y) = (shuffled(sample.rows()), shuffled(sample.columns()));
            let (bx, by) = (Buffer::indices(&x, 2, base), Buffer::indices(&y, 2, base));
            let places = Buffer::ints(&vec![-7; nnz]);
            ok("cusparseCreateIdentityPermutation", &[handle.0, nnz as u64, places.address]);
            let name = if by_column { "cusparseXcoosortByColumn" } else { "cusparseXcoosortByRow" };
            let sizes = [handle.0, m as u64, n as u64, nnz as u64];
            ok(name, &[&sizes[..], &[bx.address, by.address, places.address, 0]].concat());
            let wanted =
                if by_column { (turned.columns(), turned.rows()) } else { (sample.rows(), sample.columns()) };
            assert_eq!((bx.read_indices(2, base), by.read_indices(2, base)), wanted, "seed {seed}");
            for (at, place) in places.read_ints().into_iter().enumerate() {
                assert_eq!(
                    (x[place as usize], y[place as usize]),
                    (wanted.0[at], wanted.1[at]),
                    "seed {seed}"
                );
            }
        }
        let mut mixed = sample.columns();
        for row in 0..m {
            let of = sample.offsets();
            rng.shuffle(&mut mixed[of[row] as usize..of[row + 1] as usize]);
        }
        let (indices, places) =
            (Buffer::indices(&mixed, 2, base), Buffer::ints(&(0..nnz as i64).collect::<Vec<_>>()));
        let of = description(base);
        let sizes = [handle.0, m as u64, n as u64, nnz as u64, of];
        ok(
            "cusparseXcsrsort",
            &[&sizes[..], &[offsets.address, indices.address, places.address, 0]].concat(),
        );
        assert_eq!(indices.read_indices(2, base), sample.columns(), "seed {seed}");
        let places = places.read_ints();
        assert!(
            places.iter().zip(sample.columns()).all(|(&at, column)| mixed[at as usize] == column),
            "seed {seed}"
        );
    }
}

#[test]
fn sums_of_sparse_matrices() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let size = [rng.usize(..10), rng.usize(..10)];
        let (a, b) = (Sample::random(ty, size, rng), Sample::random(ty, size, rng));
        let bases = [0; 3].map(|_| i64::from(rng.bool()));
        let [da, db, dc] = bases.map(description);
        let (sa, sb) = (stored(ty, &a, bases[0]), stored(ty, &b, bases[1]));
        let factors = [ty.random(rng), ty.random(rng)];
        let [alpha, beta] = factors.map(|factor| Scalar::new(&handle, ty, factor));
        let mut wanted = Sample { size, entries: Default::default() };
        for (sample, factor) in [(&a, factors[0]), (&b, factors[1])] {
            for (&key, &value) in &sample.entries {
                let sum = wanted.entries.entry(key).or_default();
                *sum = plus(*sum, times(factor, value));
            }
        }
        let (offsets, total) = (Buffer::ints(&vec![-7; size[0] + 1]), count(&handle));
        let [m, n] = size.map(|size| size as u64);
        let of_a = [da, a.entries.len() as u64, sa[0].address, sa[1].address];
        let of_b = [db, b.entries.len() as u64, sb[0].address, sb[1].address];
        ok(
            "cusparseXcsrgeam2Nnz",
            &[&[handle.0, m, n][..], &of_a, &of_b, &[dc, offsets.address, total.address(), 0]].concat(),
        );
        assert_eq!(offsets.read_indices(2, bases[2]), wanted.offsets(), "seed {seed}");
        assert_eq!(read_count(&total), wanted.entries.len(), "seed {seed}");
        let (columns, values) =
            (Buffer::ints(&vec![-7; wanted.entries.len()]), ty.buffer(&vec![NAN; wanted.entries.len()]));
        let of_a = [alpha.address(), da, a.entries.len() as u64, sa[2].address, sa[0].address, sa[1].address];
        let of_b = [beta.address(), db, b.entries.len() as u64, sb[2].address, sb[0].address, sb[1].address];
        ok(
            &format!("cusparse{}csrgeam2", ty.letter()),
            &[
                &[handle.0, m, n][..],
                &of_a,
                &of_b,
                &[dc, values.address, offsets.address, columns.address, 0],
            ]
            .concat(),
        );
        assert_eq!(columns.read_indices(2, bases[2]), wanted.columns(), "seed {seed}");
        compare(&format!("seed {seed}"), &ty.read(&values), &wanted.values(), 0.0);
    }
}

#[test]
fn counts_of_entries() {
    type Compress = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, f64) -> u32;
    type Drop = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, f64) -> u32;
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let sample = Sample::random(ty, [rng.usize(..10), rng.usize(..10)], rng);
        let ([m, n], dense, of) = (sample.size, sample.dense(), description(0));
        let ld = m + rng.usize(1..3);
        let mut values = vec![NAN; ld * n];
        (0..m * n).for_each(|at| values[at / n + at % n * ld] = dense.values[at]);
        let values = ty.buffer(&values);
        let by_columns = rng.bool();
        let of_line = if by_columns { dense.operated(1) } else { dense.clone() };
        let wanted: Vec<i64> = (0..of_line.rows)
            .map(|i| (0..of_line.columns).filter(|&j| of_line.at(i, j) != [0.0; 2]).count() as i64)
            .collect();
        let (counts, total) = (Buffer::ints(&vec![-7; wanted.len()]), count(&handle));
        let arguments = [handle.0, by_columns.into(), m as u64, n as u64, of, values.address, ld as u64];
        ok(
            &format!("cusparse{}nnz", ty.letter()),
            &[&arguments[..], &[counts.address, total.address()]].concat(),
        );
        assert_eq!(counts.read_ints(), wanted, "seed {seed}");
        assert_eq!(read_count(&total) as i64, wanted.iter().sum::<i64>(), "seed {seed}");

        // Entries above a bound, which is passed by value.
        let bound = 0.5;
        let base = i64::from(rng.bool());
        let of = description(base);
        let [offsets, columns, values] = stored(Ty::D, &sample, base);
        let mut kept_real = sample.clone();
        kept_real.entries.retain(|_, value| value[0].abs() > bound);
        let lengths: Vec<i64> = kept_real.offsets().windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (counts, total) = (Buffer::ints(&vec![-7; m]), count(&handle));
        let library = library("cusparse");
        // SAFETY: the functions have these types.
        unsafe {
            let function = library.get::<Compress>(b"cusparseDnnz_compress").expect("a function");
            let (to, total) = (counts.address, total.address());
            assert_eq!(
                function(handle.0, m as u64, of, values.address, offsets.address, to, total, bound),
                0
            );
        }
        assert_eq!(counts.read_ints(), lengths, "seed {seed}");
        assert_eq!(read_count(&total), kept_real.entries.len(), "seed {seed}");
        let count = kept_real.entries.len();
        let to =
            [Buffer::ints(&vec![-7; m + 1]), Buffer::ints(&vec![-7; count]), Ty::D.buffer(&vec![NAN; count])];
        // SAFETY: as above.
        unsafe {
            let function = library.get::<Drop>(b"cusparseDcsr2csr_compress").expect("a function");
            let nnz = sample.entries.len() as u64;
            let [v, c, o] = [values.address, columns.address, offsets.address];
            let [tv, tc, to] = [to[2].address, to[1].address, to[0].address];
            assert_eq!(
                function(handle.0, m as u64, n as u64, of, v, c, o, nnz, counts.address, tv, tc, to, bound),
                0
            );
        }
        assert_eq!(to[0].read_indices(2, base), kept_real.offsets(), "seed {seed}");
        assert_eq!(to[1].read_indices(2, base), kept_real.columns(), "seed {seed}");
        let real: Vec<Num> = kept_real.values().iter().map(|value| [value[0], 0.0]).collect();
        compare(&format!("seed {seed}"), &Ty::D.read(&to[2]), &real, 0.0);
    }
}

/// A matrix that has factors: its diagonal is large.
pub fn solid(ty: Ty, n: usize, hermitian: bool, rng: &mut Rng) -> Sample {
    let mut sample = Sample::random(ty, [n, n], rng);
    if hermitian {
        let lower: Vec<_> = sample
            .entries
            .iter()
            .filter(|(key, _)| key.0 > key.1)
            .map(|(&key, &value)| (key, value))
            .collect();
        sample.entries = lower
            .into_iter()
            .flat_map(|((i, j), [re, im])| [((i, j), [re, im]), ((j, i), [re, -im])])
            .collect();
    }
    for i in 0..n {
        sample.entries.insert((i, i), [20.0, 0.0]);
    }
    sample
}

#[test]
fn incomplete_factors() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let (n, cholesky, base) = (rng.usize(1..9), rng.bool(), i64::from(rng.bool()));
        let sample = solid(ty, n, cholesky, rng);
        let (of, arrays) = (description(base), stored(ty, &sample, base));
        let kind = if cholesky { "csric02" } else { "csrilu02" };
        let mut info = 0;
        ok(&format!("cusparseCreate{}{}Info", kind[..1].to_uppercase(), &kind[1..]), &[at(&mut info)]);
        let nnz = sample.entries.len() as u64;
        let [offsets, columns, values] = [0, 1, 2].map(|which| arrays[which].address);
        let head = [handle.0, n as u64, nnz, of, values, offsets, columns, info];
        ok(&format!("cusparse{}{kind}_analysis", ty.letter()), &[&head[..], &[0, 0]].concat());
        ok(&format!("cusparse{}{kind}", ty.letter()), &[&head[..], &[0, 0]].concat());
        let position = count(&handle);
        ok(&format!("cusparseX{kind}_zeroPivot"), &[handle.0, info, position.address()]);
        assert_eq!(Ty::I32.decode(&position.read())[0][0], -1.0);
        // The product of the factors is the matrix at its entries.
        let got = Sample {
            size: [n, n],
            entries: sample.entries.keys().copied().zip(ty.read(&arrays[2])).collect(),
        };
        let got = got.dense();
        let part = |keep: &dyn Fn(usize, usize) -> bool, unit: bool| {
            Dense::new(n, n, |i, j| match (i == j && unit, keep(i, j)) {
                (true, _) => [1.0, 0.0],
                (_, true) => got.at(i, j),
                _ => [0.0; 2],
            })
        };
        let lower = part(&|i, j| i > j || cholesky && i == j, !cholesky);
        let upper = if cholesky { lower.operated(2) } else { part(&|i, j| i <= j, false) };
        let none = Dense::new(n, n, |_, _| NAN);
        let product = lower.product([1.0, 0.0], &upper, [0.0; 2], &none);
        let keys: Vec<_> = sample.entries.keys().filter(|key| !cholesky || key.0 >= key.1).collect();
        let pick = |dense: &Dense| keys.iter().map(|&&(i, j)| dense.at(i, j)).collect::<Vec<_>>();
        let most = if matches!(ty, Ty::S | Ty::C) { 1e-4 } else { 1e-12 };
        compare(&format!("seed {seed}: {kind} {ty:?}"), &pick(&product), &pick(&sample.dense()), most);

        // Without an element of the diagonal there is a zero pivot.
        let hole = rng.usize(..n);
        let mut holed = sample.clone();
        holed.entries.remove(&(hole, hole));
        let arrays = stored(ty, &holed, base);
        let [offsets, columns, values] = [0, 1, 2].map(|which| arrays[which].address);
        let head = [handle.0, n as u64, nnz - 1, of, values, offsets, columns, info];
        ok(&format!("cusparse{}{kind}_analysis", ty.letter()), &[&head[..], &[0, 0]].concat());
        assert_eq!(call(&format!("cusparseX{kind}_zeroPivot"), &[handle.0, info, position.address()]), 9);
        assert_eq!(Ty::I32.decode(&position.read())[0][0], hole as f64 + base as f64, "seed {seed}");
    }
}

/// The least magnitude of a pivot, with exchanges of rows: 0 if the matrix is singular.
fn least_pivot(of: &Dense) -> f64 {
    let size = |[re, im]: Num| re.hypot(im);
    let mut rows: Vec<Vec<Num>> = of.values.chunks_exact(of.columns).map(<[Num]>::to_vec).collect();
    let mut least = f64::INFINITY;
    for column in 0..rows.len() {
        let best =
            (column..rows.len()).max_by(|&a, &b| size(rows[a][column]).total_cmp(&size(rows[b][column])));
        rows.swap(column, best.expect("a row"));
        let pivot = rows[column].clone();
        let [re, im] = pivot[column];
        let square = re * re + im * im;
        least = least.min(square.sqrt());
        for row in rows.iter_mut().skip(column + 1).filter(|_| square > 0.0) {
            let factor = times(row[column], [-re / square, im / square]);
            row.iter_mut().zip(&pivot).for_each(|(x, &above)| *x = plus(*x, times(factor, above)));
        }
    }
    least
}

#[test]
fn bands() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(false);
        let ty = Ty::FULL[rng.usize(..4)];
        let below = if rng.bool() { 1 } else { 2 };
        let form = if below == 2 { 2 } else { rng.usize(..4) };
        let (m, count) = (rng.usize(3..12), rng.usize(1..5));
        // Without exchanges, the diagonal must be large.
        let large = if form == 3 { 20.0 } else { 0.0 };
        let systems: Vec<Dense> = (0..count)
            .map(|_| {
                Dense::new(m, m, |i, j| match i.abs_diff(j) {
                    0 => plus(ty.random(rng), [large, 0.0]),
                    distance if distance <= below => plus(ty.random(rng), [0.1, 0.0]),
                    _ => [0.0; 2],
                })
            })
            .collect();
        let x: Vec<Dense> = (0..count).map(|_| Dense::random(ty, m, 1, rng)).collect();
        let none = Dense::new(m, 1, |_, _| NAN);
        let shared = matches!(form, 0 | 3);
        let system = |which: usize| &systems[if shared { 0 } else { which }];
        let sides: Vec<Dense> =
            (0..count).map(|at| system(at).product([1.0, 0.0], &x[at], [0.0; 2], &none)).collect();
        let stride = m + 2;
        let place = |row: usize, which: usize| match form {
            2 => row * count + which,
            _ => which * stride + row,
        };
        let spread = |of: &dyn Fn(usize, usize) -> Num| {
            let mut all = vec![NAN; count * stride];
            (0..count * m).for_each(|at| all[place(at % m, at / m)] = of(at % m, at / m));
            ty.buffer(&all)
        };
        let diagonal = |by: i64| {
            spread(&|row, which| match usize::try_from(row as i64 + by).ok().filter(|&column| column < m) {
                Some(column) => system(which).at(row, column),
                None => NAN,
            })
        };
        let diagonals: Vec<Buffer> = (-(below as i64)..=below as i64).map(diagonal).collect();
        let side = spread(&|row, which| sides[which].at(row, 0));
        let [m, n, ld] = [m, count, stride].map(|size| size as u64);
        let mut head = vec![handle.0];
        let name = match form {
            0 => "gtsv2",
            1 => "gtsv2StridedBatch",
            2 if below == 1 => "gtsvInterleavedBatch",
            2 => "gpsvInterleavedBatch",
            _ => "gtsv2_nopivot",
        };
        head.extend(match form {
            0 | 3 => vec![m, n],
            1 => vec![m],
            _ => vec![0, m],
        });
        head.extend(diagonals.iter().map(|diagonal| diagonal.address));
        head.push(side.address);
        head.extend(match form {
            0 | 3 => vec![ld, 0],
            1 => vec![n, ld, 0],
            _ => vec![n, 0],
        });
        ok(&format!("cusparse{}{name}", ty.letter()), &head);
        // The residual is small, whatever the condition of the system, if it is not singular.
        let got = ty.read(&side);
        for which in (0..count).filter(|&which| least_pivot(system(which)) > 1e-3) {
            let solution = Dense::new(m as usize, 1, |row, _| got[place(row, which)]);
            let largest = solution
                .values
                .iter()
                .fold(1.0, |most: f64, value| most.max(value[0].abs()).max(value[1].abs()));
            assert!(
                solution.values.iter().all(|value| value[0].is_finite() && value[1].is_finite()),
                "seed {seed}: {name}"
            );
            let back = system(which).product([1.0 / largest, 0.0], &solution, [0.0; 2], &none);
            let wanted: Vec<Num> =
                sides[which].values.iter().map(|&value| times([1.0 / largest, 0.0], value)).collect();
            let most = if matches!(ty, Ty::S | Ty::C) { 1e-4 } else { 1e-12 };
            compare(&format!("seed {seed}: {name} {ty:?}"), &back.values, &wanted, most);
        }
    }
}

#[test]
fn dense_times_sparse_vector() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let (op, base) = (rng.u64(..3), i64::from(rng.bool()));
        let a = Dense::random(ty, rng.usize(..8), rng.usize(..8), rng);
        let turned = a.operated(op);
        let places: Vec<usize> = (0..turned.columns).filter(|_| rng.bool()).collect();
        let x = Dense::new(
            turned.columns,
            1,
            |at, _| if places.contains(&at) { ty.random(rng) } else { [0.0; 2] },
        );
        let y = Dense::random(ty, turned.rows, 1, rng);
        let factors = [ty.factor(rng), ty.factor(rng)];
        let wanted = turned.product(factors[0], &x, factors[1], &y);
        let ld = a.rows.max(1);
        let values = ty.buffer(&a.operated(1).values);
        let indices = Buffer::indices(&places.iter().map(|&at| at as i64).collect::<Vec<_>>(), 2, base);
        let entries = ty.buffer(&places.iter().map(|&at| x.at(at, 0)).collect::<Vec<_>>());
        let y = ty.buffer(&if factors[1] == [0.0; 2] { vec![NAN; turned.rows] } else { y.values });
        let [alpha, beta] = factors.map(|factor| Scalar::new(&handle, ty, factor));
        let head =
            [handle.0, op, a.rows as u64, a.columns as u64, alpha.address(), values.address, ld as u64];
        let tail = [
            places.len() as u64,
            entries.address,
            indices.address,
            beta.address(),
            y.address,
            base as u64,
            0,
        ];
        ok(&format!("cusparse{}gemvi", ty.letter()), &[&head[..], &tail].concat());
        compare(&format!("seed {seed}"), &ty.read(&y), &wanted.values, 0.0);
    }
}

#[test]
fn small_elements_are_left_out() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = [Ty::H, Ty::S, Ty::D][rng.usize(..3)];
        let letter = if ty == Ty::H { "H" } else { ty.letter() };
        let base = i64::from(rng.bool());
        let sample = Sample::random(ty, [rng.usize(1..9), rng.usize(1..9)], rng);
        let (dense, of, bound) = (sample.dense(), description(base), [0.5, 0.0]);
        let mut kept = sample.clone();
        kept.entries.retain(|_, value| value[0].abs() > bound[0]);
        let [m, n] = sample.size.map(|size| size as u64);
        let (a, threshold) = (ty.buffer(&dense.operated(1).values), Scalar::new(&handle, ty, bound));
        let from = stored(ty, &sample, base);
        for is_dense in [true, false] {
            let total = count(&handle);
            let nnz = kept.entries.len();
            let to = [
                Buffer::ints(&vec![-7; m as usize + 1]),
                Buffer::ints(&vec![-7; nnz]),
                ty.buffer(&vec![NAN; nnz]),
            ];
            let [o, c, v] = [0, 1, 2].map(|which| to[which].address);
            let source = match is_dense {
                true => vec![handle.0, m, n, a.address, m, threshold.address(), of],
                false => {
                    let [fo, fc, fv] = [0, 1, 2].map(|which| from[which].address);
                    vec![handle.0, m, n, sample.entries.len() as u64, of, fv, fo, fc, threshold.address(), of]
                }
            };
            let name = if is_dense { "Dense2csr" } else { "Csr2csr" };
            ok(&format!("cusparse{letter}prune{name}Nnz"), &[&source[..], &[o, total.address(), 0]].concat());
            ok(&format!("cusparse{letter}prune{name}"), &[&source[..], &[v, o, c, 0]].concat());
            assert_eq!(read_count(&total), nnz, "seed {seed}");
            assert_eq!(to[0].read_indices(2, base), kept.offsets(), "seed {seed}");
            assert_eq!(to[1].read_indices(2, base), kept.columns(), "seed {seed}");
            compare(&format!("seed {seed}"), &ty.read(&to[2]), &kept.values(), 0.0);
        }
    }
}

#[test]
fn half_of_the_elements_are_left_out() {
    type Count = unsafe extern "C" fn(u64, u64, u64, u64, u64, f32, u64, u64, u64, u64, u64) -> u32;
    let handle = Handle::new(false);
    let values: Vec<Num> = (1..=8).map(|value| [f64::from(value), 0.0]).collect();
    let (a, of, mut info) = (Ty::S.buffer(&values), description(0), 0);
    let (offsets, total) = (Buffer::ints(&[-7; 3]), count(&handle));
    ok("cusparseCreatePruneInfo", &[at(&mut info)]);
    // SAFETY: the function has this type.
    let status = unsafe {
        let function =
            library("cusparse").get::<Count>(b"cusparseSpruneDense2csrNnzByPercentage").expect("a function");
        function(handle.0, 2, 4, a.address, 2, 50.0, of, offsets.address, total.address(), info, 0)
    };
    assert_eq!((status, read_count(&total), offsets.read_ints()), (0, 4, vec![0, 2, 4]));
}

#[test]
fn colours_and_order() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let (m, base) = (rng.usize(1..14), i64::from(rng.bool()));
        let sample = Sample::random(Ty::D, [m, m], rng);
        let (arrays, of, nnz) = (stored(Ty::D, &sample, base), description(base), sample.entries.len());
        let [offsets, columns, values] = [0, 1, 2].map(|which| arrays[which].address);
        let mut info = 0;
        ok("cusparseCreateColorInfo", &[at(&mut info)]);
        let (fraction, used) = (Scalar::new(&handle, Ty::S, [1.0, 0.0]), count(&handle));
        let (colours, places) = (Buffer::ints(&vec![-7; m]), Buffer::ints(&vec![-7; m]));
        let head = [
            handle.0,
            m as u64,
            nnz as u64,
            of,
            values,
            offsets,
            columns,
            fraction.address(),
            used.address(),
        ];
        ok("cusparseDcsrcolor", &[&head[..], &[colours.address, places.address, info]].concat());
        let (colours, mut places) = (colours.read_ints(), places.read_ints());
        assert!(sample.entries.keys().all(|&(i, j)| i == j || colours[i] != colours[j]), "seed {seed}");
        let mut all = colours.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (0..read_count(&used) as i64).collect::<Vec<_>>(), "seed {seed}");
        assert!(
            (0..m).all(|i| (0..m).all(|j| colours[i] >= colours[j] || places[i] < places[j])),
            "seed {seed}"
        );
        places.sort_unstable();
        assert_eq!(places, (0..m as i64).collect::<Vec<_>>(), "seed {seed}");

        // Rows out of order, in order, and as they were.
        let mut order: Vec<usize> = (0..nnz).collect();
        let of_row = sample.offsets();
        (0..m).for_each(|row| rng.shuffle(&mut order[of_row[row] as usize..of_row[row + 1] as usize]));
        let mixed: Vec<i64> = order.iter().map(|&at| sample.columns()[at]).collect();
        let numbers: Vec<Num> = order.iter().map(|&at| sample.values()[at]).collect();
        let (columns, values) = (Buffer::indices(&mixed, 2, base), Ty::D.buffer(&numbers));
        let mut info = 0;
        ok("cusparseCreateCsru2csrInfo", &[at(&mut info)]);
        let arguments =
            [handle.0, m as u64, m as u64, nnz as u64, of, values.address, offsets, columns.address, info, 0];
        ok("cusparseDcsru2csr", &arguments);
        assert_eq!(columns.read_indices(2, base), sample.columns(), "seed {seed}");
        compare("sorted", &Ty::D.read(&values), &sample.values(), 0.0);
        ok("cusparseDcsr2csru", &arguments);
        assert_eq!(columns.read_indices(2, base), mixed, "seed {seed}");
        compare("as before", &Ty::D.read(&values), &numbers, 0.0);
    }
}
