//! Functions of blocks without generic descriptors.

use fastrand::Rng;

use crate::legacy::{count, description, read_count, solid, stored};
use crate::rig::*;
use crate::sparse::*;

/// The blocks of a sample: their elements by blocks, as functions of blocks name them, and the offsets and columns of the blocks.
fn grouped(sample: &Sample, [down, across]: [usize; 2], by_columns: bool) -> (Sample, Vec<(usize, usize)>) {
    let [m, n] = sample.size;
    let keys = sample.entries.keys().map(|&(i, j)| ((i / down, j / across), [0.0; 2]));
    let blocks = Sample { size: [m.div_ceil(down), n.div_ceil(across)], entries: keys.collect() };
    let elements = blocks.entries.keys().flat_map(|&(i, j)| {
        (0..down * across).map(move |at| match by_columns {
            false => (i * down + at / across, j * across + at % across),
            true => (i * down + at % down, j * across + at / down),
        })
    });
    let elements = elements.collect();
    (blocks, elements)
}

/// The values of elements, 0 where there is none.
fn values_of(sample: &Sample, elements: &[(usize, usize)]) -> Vec<Num> {
    elements.iter().map(|key| sample.entries.get(key).copied().unwrap_or_default()).collect()
}

#[test]
fn conversions_of_blocks() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let (letter, by_columns, bases) = (ty.letter(), rng.bool(), [0; 2].map(|_| i64::from(rng.bool())));
        let [da, dc] = bases.map(description);
        let sample = Sample::random(ty, [rng.usize(1..10), rng.usize(1..10)], rng);
        let square = rng.bool();
        let down = rng.usize(1..4);
        let shape = [down, if square { down } else { rng.usize(1..4) }];
        let (blocks, elements) = grouped(&sample, shape, by_columns);
        let [m, n] = sample.size.map(|size| size as u64);
        let [mb, nb] = blocks.size.map(|size| size as u64);
        let [r, c] = shape.map(|size| size as u64);
        let from = stored(ty, &sample, bases[0]);
        let [fo, fc, fv] = [0, 1, 2].map(|which| from[which].address);
        let nnzb = blocks.entries.len();
        let to = [
            Buffer::ints(&vec![-7; blocks.size[0] + 1]),
            Buffer::ints(&vec![-7; nnzb]),
            ty.buffer(&vec![NAN; elements.len()]),
        ];
        let [to_o, to_c, to_v] = [0, 1, 2].map(|which| to[which].address);
        let (direction, total) = (u64::from(by_columns), count(&handle));
        let head = [handle.0, direction, m, n, da];
        match square {
            true => {
                ok("cusparseXcsr2bsrNnz", &[&head[..], &[fo, fc, r, dc, to_o, total.address()]].concat());
                let name = format!("cusparse{letter}csr2bsr");
                ok(&name, &[&head[..], &[fv, fo, fc, r, dc, to_v, to_o, to_c]].concat());
            }
            false => {
                ok(
                    "cusparseXcsr2gebsrNnz",
                    &[&head[..], &[fo, fc, dc, to_o, r, c, total.address(), 0]].concat(),
                );
                let name = format!("cusparse{letter}csr2gebsr");
                ok(&name, &[&head[..], &[fv, fo, fc, dc, to_v, to_o, to_c, r, c, 0]].concat());
            }
        }
        let what = format!("seed {seed}: {ty:?} {shape:?}");
        let check = |arrays: &[Buffer; 3], blocks: &Sample, values: &[Num]| {
            assert_eq!(arrays[0].read_indices(2, bases[1]), blocks.offsets(), "{what}");
            assert_eq!(arrays[1].read_indices(2, bases[1]), blocks.columns(), "{what}");
            compare(&what, &ty.read(&arrays[2]), values, 0.0);
        };
        assert_eq!(read_count(&total), nnzb, "{what}");
        check(&to, &blocks, &values_of(&sample, &elements));

        // Back: all elements of the blocks, with the zeros.
        let mut full = Sample { size: [(mb * r) as usize, (nb * c) as usize], entries: Default::default() };
        full.entries = elements.iter().copied().zip(values_of(&sample, &elements)).collect();
        let count_of = full.entries.len();
        let back = [
            Buffer::ints(&vec![-7; full.size[0] + 1]),
            Buffer::ints(&vec![-7; count_of]),
            ty.buffer(&vec![NAN; count_of]),
        ];
        let [bo, bc, bv] = [0, 1, 2].map(|which| back[which].address);
        let head = [handle.0, direction, mb, nb, dc, to_v, to_o, to_c];
        match square {
            true => ok(&format!("cusparse{letter}bsr2csr"), &[&head[..], &[r, dc, bv, bo, bc]].concat()),
            false => {
                ok(&format!("cusparse{letter}gebsr2csr"), &[&head[..], &[r, c, dc, bv, bo, bc]].concat())
            }
        }
        check(&back, &full, &full.values());

        // Blocks of another shape: every element of a block counts as one that is there.
        let other = [rng.usize(1..4), rng.usize(1..4)];
        let (regrouped, places) = grouped(&full, other, by_columns);
        let [r2, c2] = other.map(|size| size as u64);
        let next = [
            Buffer::ints(&vec![-7; regrouped.size[0] + 1]),
            Buffer::ints(&vec![-7; regrouped.entries.len()]),
            ty.buffer(&vec![NAN; places.len()]),
        ];
        let [no, nc, nv] = [0, 1, 2].map(|which| next[which].address);
        let head = [handle.0, direction, mb, nb, nnzb as u64, dc];
        let tail = [dc, no, r2, c2, total.address(), 0];
        ok("cusparseXgebsr2gebsrNnz", &[&head[..], &[to_o, to_c, r, c], &tail].concat());
        let tail = [dc, nv, no, nc, r2, c2, 0];
        ok(&format!("cusparse{letter}gebsr2gebsr"), &[&head[..], &[to_v, to_o, to_c, r, c], &tail].concat());
        check(&next, &regrouped, &values_of(&full, &places));

        // The transposed blocks, each as it was.
        let turned = blocks.transposed();
        let area = shape[0] * shape[1];
        let keys: Vec<_> = blocks.entries.keys().collect();
        let old = values_of(&sample, &elements);
        let wanted: Vec<Num> = turned
            .entries
            .keys()
            .flat_map(|&(j, i)| {
                let block = keys.iter().position(|&&key| key == (i, j)).expect("a block");
                old[block * area..][..area].to_vec()
            })
            .collect();
        let arrays = [
            Buffer::ints(&vec![-7; turned.size[0] + 1]),
            Buffer::ints(&vec![-7; nnzb]),
            ty.buffer(&vec![NAN; old.len()]),
        ];
        let to = [arrays[2].address, arrays[1].address, arrays[0].address, 1, bases[1] as u64, 0];
        let head = [handle.0, mb, nb, nnzb as u64, to_v, to_o, to_c, r, c];
        ok(&format!("cusparse{letter}gebsr2gebsc"), &[&head[..], &to].concat());
        check(&arrays, &turned, &wanted);
    }
}

#[test]
fn products_and_systems_of_blocks() {
    for seed in 0..shapes() {
        let rng = &mut Rng::with_seed(seed);
        let handle = Handle::new(rng.bool());
        let ty = Ty::FULL[rng.usize(..4)];
        let (letter, by_columns, base, block) =
            (ty.letter(), rng.bool(), i64::from(rng.bool()), rng.usize(1..4));
        let size = [rng.usize(1..4) * block, rng.usize(1..4) * block];
        let sample = Sample::random(ty, size, rng);
        let (blocks, elements) = grouped(&sample, [block; 2], by_columns);
        let of = description(base);
        let keep = |blocks: &Sample, values: &[Num]| {
            let ints = |values: Vec<i64>| Buffer::indices(&values, 2, base);
            [ints(blocks.offsets()), ints(blocks.columns()), ty.buffer(values)]
        };
        let arrays = keep(&blocks, &values_of(&sample, &elements));
        let [offsets, columns, values] = [0, 1, 2].map(|which| arrays[which].address);
        let [mb, nb] = blocks.size.map(|size| size as u64);
        let (nnzb, block_dim, direction) = (blocks.entries.len() as u64, block as u64, u64::from(by_columns));
        let factors = [ty.factor(rng), ty.factor(rng)];
        let [alpha, beta] = factors.map(|factor| Scalar::new(&handle, ty, factor));
        let what = format!("seed {seed}: {ty:?}");

        let (x, y) = (Dense::random(ty, size[1], 1, rng), Dense::random(ty, size[0], 1, rng));
        let wanted = sample.dense().product(factors[0], &x, factors[1], &y);
        let (vx, vy) = (ty.buffer(&x.values), ty.buffer(&y.values));
        let matrix = [of, values, offsets, columns, block_dim];
        let head = [handle.0, direction, 0, mb, nb, nnzb, alpha.address()];
        ok(
            &format!("cusparse{letter}bsrmv"),
            &[&head[..], &matrix, &[vx.address, beta.address(), vy.address]].concat(),
        );
        compare(&what, &ty.read(&vy), &wanted.values, 0.0);

        // Some rows of blocks alone.
        let mask: Vec<i64> = (0..mb as i64).filter(|_| rng.bool()).collect();
        let (mask_buffer, ends) =
            (Buffer::indices(&mask, 2, base), Buffer::indices(&blocks.offsets()[1..], 2, base));
        let vy = ty.buffer(&y.values);
        let head = [handle.0, direction, 0, mask.len() as u64, mb, nb, nnzb, alpha.address(), of, values];
        let tail = [
            mask_buffer.address,
            offsets,
            ends.address,
            columns,
            block_dim,
            vx.address,
            beta.address(),
            vy.address,
        ];
        ok(&format!("cusparse{letter}bsrxmv"), &[&head[..], &tail].concat());
        let masked = |row: usize| {
            if mask.contains(&((row / block) as i64)) { wanted.at(row, 0) } else { y.at(row, 0) }
        };
        compare(&what, &ty.read(&vy), &(0..size[0]).map(masked).collect::<Vec<_>>(), 0.0);

        let (n, op) = (rng.usize(1..5), rng.u64(..2));
        let (b, c) = (Dense::random(ty, size[1], n, rng), Dense::random(ty, size[0], n, rng));
        let wanted = sample.dense().product(factors[0], &b, factors[1], &c);
        // By columns: a matrix by rows is its transposed one.
        let (vb, vc) = (ty.buffer(&b.operated(1 - op).values), ty.buffer(&c.operated(1).values));
        let ldb = if op == 0 { size[1] } else { n } as u64;
        let head = [handle.0, direction, 0, op, mb, n as u64, nb, nnzb, alpha.address()];
        let tail = [vb.address, ldb, beta.address(), vc.address, size[0] as u64];
        ok(&format!("cusparse{letter}bsrmm"), &[&head[..], &matrix, &tail].concat());
        compare(&what, &ty.read(&vc), &wanted.operated(1).values, 0.0);

        // Systems with a triangle.
        let m = size[0];
        let solid = solid(ty, m, false, rng);
        let (blocks, elements) = grouped(&solid, [block; 2], by_columns);
        let arrays = keep(&blocks, &values_of(&solid, &elements));
        let [offsets, columns, values] = [0, 1, 2].map(|which| arrays[which].address);
        let (upper, unit, op) = (rng.bool(), rng.bool(), rng.u64(..3));
        ok("cusparseSetMatFillMode", &[of, upper.into()]);
        ok("cusparseSetMatDiagType", &[of, unit.into()]);
        let triangle = Dense::new(m, m, |i, j| match (i == j, if upper { j > i } else { j < i }) {
            (true, _) if unit => [1.0, 0.0],
            (true, _) | (_, true) => solid.dense().at(i, j),
            _ => [0.0; 2],
        });
        let (x, none) = (Dense::random(ty, m, n, rng), Dense::new(m, n, |_, _| NAN));
        let side = triangle.operated(op).product([2.0, 0.0], &x, [0.0; 2], &none);
        let half = Scalar::new(&handle, ty, [0.5, 0.0]);
        let most = if matches!(ty, Ty::S | Ty::C) { 1e-2 } else { 1e-9 };
        let [mut info, nnzb] = [0, blocks.entries.len() as u64];
        ok("cusparseCreateBsrsv2Info", &[at(&mut info)]);
        let matrix = [of, values, offsets, columns, block_dim, info];
        let position = count(&handle);
        let single = |dense: &Dense| Dense::new(m, 1, |row, _| dense.at(row, 0)).values;
        let (f, solution) = (ty.buffer(&single(&side)), ty.buffer(&vec![NAN; m]));
        ok(
            &format!("cusparse{letter}bsrsv2_analysis"),
            &[&[handle.0, direction, op, mb, nnzb][..], &matrix, &[0, 0]].concat(),
        );
        let head = [handle.0, direction, op, mb, nnzb, half.address()];
        ok(
            &format!("cusparse{letter}bsrsv2_solve"),
            &[&head[..], &matrix, &[f.address, solution.address, 0, 0]].concat(),
        );
        ok("cusparseXbsrsv2_zeroPivot", &[handle.0, info, position.address()]);
        compare(&what, &ty.read(&solution), &single(&x), most);
        let turned = rng.u64(..2);
        let place = |dense: &Dense| dense.operated(1 - turned).values;
        let ld = if turned == 0 { m } else { n } as u64;
        let (b, solution) = (ty.buffer(&place(&side)), ty.buffer(&vec![NAN; m * n]));
        let head = [handle.0, direction, op, turned, mb, n as u64, nnzb, half.address()];
        ok(
            &format!("cusparse{letter}bsrsm2_solve"),
            &[&head[..], &matrix, &[b.address, ld, solution.address, ld, 0, 0]].concat(),
        );
        compare(&what, &ty.read(&solution), &place(&x), most);
    }
}
