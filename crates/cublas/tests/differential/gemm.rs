//! Products of general matrices.

use crate::rig;
use crate::rig::{Buffer, Dense, NAN, Num, Scalar, Stored, Ty, exact, gamma, ok};
use crate::{before, bounds, cases, ld, mode, named, pick, size};

#[test]
fn gemm() {
    cases(1, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let (m, n) = (size(random), size(random));
        let k = if random.u8(..8) == 0 { random.usize(500..1300) } else { size(random) };
        let ops = [random.u32(..3), random.u32(..3)];
        let (alpha, beta) = (ty.factor(random), ty.factor(random));
        let count = pick(random, &[1, 1, 3]);
        let stored = |op: u32, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let (a_shape, b_shape) = (stored(ops[0], m, k), stored(ops[1], k, n));
        let lds = [ld(random, a_shape.0), ld(random, b_shape.0), ld(random, m)];
        let unread = alpha == [0.0; 2];
        let operand = |random: &mut fastrand::Rng, shape: (usize, usize)| match unread {
            true => Dense::new(shape.0, shape.1, |_, _| NAN),
            false => Dense::random(ty, shape.0, shape.1, random),
        };
        let mut all = Vec::new();
        for _ in 0..count {
            let (a, b, c) =
                (operand(random, a_shape), operand(random, b_shape), before(ty, m, n, beta, random));
            let stores = [
                Stored::new(ty, &a, lds[0], |_, _| true),
                Stored::new(ty, &b, lds[1], |_, _| true),
                Stored::new(ty, &c, lds[2], |_, _| true),
            ];
            all.push((a, b, c, stores));
        }
        let (factor, by) = (Scalar::new(ty, alpha, on_device), Scalar::new(ty, beta, on_device));
        let [mut pa, mut pb, mut pc] = [0, 1, 2].map(|i| all[0].3[i].buffer.address);
        let lists = [0, 1, 2].map(|i| {
            Buffer::new(
                &all.iter().flat_map(|one| one.3[i].buffer.address.to_ne_bytes()).collect::<Vec<u8>>(),
            )
        });
        let name = if count == 1 { named(random, ty, "gemm_v2") } else { named(random, ty, "gemmBatched") };
        if count > 1 {
            [pa, pb, pc] = [lists[0].address, lists[1].address, lists[2].address];
        }
        let [lda, ldb, ldc] = lds.map(|ld| ld as u64);
        let (m64, n64, k64) = (m as u64, n as u64, k as u64);
        let (x, y) = (factor.address(), by.address());
        ok(
            &name,
            &[
                handle.0,
                ops[0].into(),
                ops[1].into(),
                m64,
                n64,
                k64,
                x,
                pa,
                lda,
                pb,
                ldb,
                y,
                pc,
                ldc,
                count as u64,
            ],
        );
        for (a, b, c, stores) in &all {
            let (want, sizes) = exact(alpha, &a.operated(ops[0]), &b.operated(ops[1]), beta, c);
            let what = format!("{name} {m} {n} {k} {ops:?} {alpha:?} {beta:?}");
            stores[2].check(&what, |i, j| Some(i + j * lds[2]), &want, &bounds(&sizes, gamma(ty, k)));
        }
    });
}

/// Types of GemmEx: of A and B, of C, of the scalars, the computation, and how exact numbers are made.
#[test]
fn gemm_of_mixed_types() {
    use half::{bf16, f16};
    cases(2, |random, handle| {
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        let (m, n, k) = (size(random), size(random), size(random));
        // cudaDataType of A and C, compute type.
        let (of, into, compute): (u32, u32, u32) = pick(
            random,
            &[
                (2, 2, 68),
                (2, 0, 68),
                (14, 14, 68),
                (14, 0, 68),
                (3, 10, 72),
                (3, 0, 68),
                (0, 0, 77),
                (2, 2, 64),
            ],
        );
        let number = |random: &mut fastrand::Rng, kind: u32| match kind {
            2 => f16::from_f32(random.f32() - 0.5).to_f64(),
            14 => bf16::from_f32(random.f32() - 0.5).to_f64(),
            3 => f64::from(random.i8(..)),
            10 => f64::from(random.i32(-1000..1000)),
            _ => f64::from(random.f32() - 0.5),
        };
        let encode = |kind: u32, value: f64| match kind {
            2 => f16::from_f64(value).to_ne_bytes().to_vec(),
            14 => bf16::from_f64(value).to_ne_bytes().to_vec(),
            3 => (value as i8).to_ne_bytes().to_vec(),
            10 => (value as i32).to_ne_bytes().to_vec(),
            _ => (value as f32).to_ne_bytes().to_vec(),
        };
        let mut matrix = |rows: usize, columns: usize, kind: u32| {
            Dense::new(rows, columns, |_, _| [number(random, kind), 0.0])
        };
        let (a, b, c) = (matrix(m, k, of), matrix(k, n, of), matrix(m, n, into));
        let store = |dense: &Dense, kind: u32| {
            Buffer::new(&dense.values.iter().flat_map(|number| encode(kind, number[0])).collect::<Vec<u8>>())
        };
        let (da, db, dc) = (store(&a, of), store(&b, of), store(&c, into));
        let (alpha, beta) = (pick(random, &[0.0, 1.0, 2.0]), pick(random, &[0.0, 1.0, -1.0]));
        let scale = match compute {
            72 => 10,
            64 => 2,
            _ => 0,
        };
        let (mut x, mut y) = (encode(scale, alpha), encode(scale, beta));
        let ldc = m.max(1) as u64;
        let arguments = [
            handle.0,
            0,
            0,
            m as u64,
            n as u64,
            k as u64,
            rig::at(&mut x[..]),
            da.address,
            of.into(),
            ldc,
            db.address,
            of.into(),
            k.max(1) as u64,
            rig::at(&mut y[..]),
            dc.address,
            into.into(),
            ldc,
            compute.into(),
            u64::from(u32::MAX),
        ];
        ok("cublasGemmEx", &arguments);
        // A single is rounded as the conversion of the hardware does, whose result is within half a unit of 2^-11.
        let (want, sizes) = exact([alpha, 0.0], &a, &b, [beta, 0.0], &c);
        let bytes = dc.read();
        let got = |i: usize| match into {
            2 => f16::from_ne_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f64(),
            14 => bf16::from_ne_bytes([bytes[2 * i], bytes[2 * i + 1]]).to_f64(),
            10 => f64::from(i32::from_ne_bytes(bytes[4 * i..][..4].try_into().expect("4"))),
            _ => f64::from(f32::from_ne_bytes(bytes[4 * i..][..4].try_into().expect("4"))),
        };
        for i in 0..m * n {
            let (want, size) = (want.values[i][0], sizes.values[i][0]);
            let rounding = match into {
                2 => f64::powi(2.0, -11),
                14 => f64::powi(2.0, -8),
                _ => 0.0,
            };
            let factors = if compute == 77 { f64::powi(2.0, -10) * 1.001 } else { 0.0 };
            let most = match into {
                10 => 0.0,
                _ => size * (gamma(Ty::S, k) * 1.01 + factors) + want.abs() * rounding * 1.01 + 1e-7,
            };
            assert!(
                (got(i) - want).abs() <= most,
                "{of} {into} {compute} {m} {n} {k} {alpha} {beta}: {} {want} {most}",
                got(i)
            );
        }
    });
}

/// Matrices at strides, and in groups, have the bits of single ones.
#[test]
fn batches_are_the_same_bits() {
    cases(9, |random, handle| {
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        let ty = pick(random, &[Ty::S, Ty::D]);
        let l = ty.letter();
        let (m, n, k, count) =
            (random.usize(1..20), random.usize(1..20), random.usize(1..20), random.usize(1..5));
        let (alpha, beta) = (Scalar::new(ty, ty.random(random), false), Scalar::new(ty, [0.0; 2], false));
        let numbers = |random: &mut fastrand::Rng, of: usize| -> Vec<Num> {
            (0..of * count).map(|_| ty.random(random)).collect()
        };
        let (a, b) = (
            Buffer::new(&ty.encode(&numbers(random, m * k))),
            Buffer::new(&ty.encode(&numbers(random, k * n))),
        );
        let none = ty.encode(&vec![NAN; m * n * count]);
        let [one, strided, grouped] = [0; 3].map(|_| Buffer::new(&none));
        let width = if ty.is_single() { 4 } else { 8 };
        let (m64, n64, k64, count64) = (m as u64, n as u64, k as u64, count as u64);
        let place = |buffer: &Buffer, i: usize, of: usize| buffer.address + (i * of * width) as u64;
        for i in 0..count {
            let (a, b, c) = (place(&a, i, m * k), place(&b, i, k * n), place(&one, i, m * n));
            ok(
                &format!("cublas{l}gemm_v2"),
                &[handle.0, 0, 0, m64, n64, k64, alpha.address(), a, m64, b, k64, beta.address(), c, m64],
            );
        }
        ok(
            &format!("cublas{l}gemmStridedBatched"),
            &[
                handle.0,
                0,
                0,
                m64,
                n64,
                k64,
                alpha.address(),
                a.address,
                m64,
                m64 * k64,
                b.address,
                k64,
                k64 * n64,
                beta.address(),
                strided.address,
                m64,
                m64 * n64,
                count64,
            ],
        );
        // Two groups of the same shape.
        let first = random.usize(..count + 1);
        let list = |buffer: &Buffer, of: usize| {
            Buffer::new(&(0..count).flat_map(|i| place(buffer, i, of).to_ne_bytes()).collect::<Vec<u8>>())
        };
        let (pa, pb, pc) = (list(&a, m * k), list(&b, k * n), list(&grouped, m * n));
        let mut ops = [0u32; 2];
        let [mut ms, mut ns, mut ks] = [m, n, k].map(|size| [size as i32; 2]);
        let (mut alphas, mut betas) = (ty.encode(&[alpha.read(ty); 2]), ty.encode(&[[0.0; 2]; 2]));
        let mut counts = [first as i32, (count - first) as i32];
        let (ops, ms, ns, ks) = (rig::at(&mut ops), rig::at(&mut ms), rig::at(&mut ns), rig::at(&mut ks));
        ok(
            &format!("cublas{l}gemmGroupedBatched"),
            &[
                handle.0,
                ops,
                ops,
                ms,
                ns,
                ks,
                rig::at(&mut alphas[..]),
                pa.address,
                ms,
                pb.address,
                ks,
                rig::at(&mut betas[..]),
                pc.address,
                ms,
                2,
                rig::at(&mut counts),
            ],
        );
        assert!(strided.read() == one.read() && grouped.read() == one.read(), "{l} {m} {n} {k} {count}");
    });
}
