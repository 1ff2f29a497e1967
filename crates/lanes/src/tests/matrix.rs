//! Products of matrices against `sem::matrix`, bit for bit.

use super::super::{MatrixHelpers, available_paths};
use super::values::Random;
use isa::{Mod, Picks, Type};
use sem::matrix::{BlockScale, Product};

/// Bits of a format of `exponent` and `fraction` bits: numbers near 1, tiny ones, and now and then anything at all.
fn element(random: &mut Random, exponent: u32, fraction: u32) -> u64 {
    let bits = random.next();
    let sign_and_fraction = bits & (1 << (exponent + fraction) | ((1 << fraction) - 1));
    let bias = (1 << (exponent - 1)) - 1;
    match random.below(40) {
        0 => bits & ((1 << (1 + exponent + fraction)) - 1),
        1 | 2 => sign_and_fraction,
        _ => sign_and_fraction | (bias - 4 + random.below(8) as u64) << fraction,
    }
}

fn canonical(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

#[test]
fn products_are_those_of_sem() {
    let mut random = Random::new(7);
    for (ty, exponent, fraction) in [(Type::F16, 5, 10), (Type::Bf16, 8, 7)] {
        let picks = Picks::new(&[Type::F32, ty, ty, Type::F32], &[]);
        let product = Product::of(&picks);
        let (m, n, k) = (16, 8, 16);
        for _ in 0..20 {
            let a: Vec<u64> = (0..m * k).map(|_| element(&mut random, exponent, fraction)).collect();
            let b: Vec<u64> = (0..k * n).map(|_| element(&mut random, exponent, fraction)).collect();
            let c: Vec<u64> = (0..m * n).map(|_| element(&mut random, 8, 23)).collect();
            for path in available_paths() {
                let helpers = MatrixHelpers::of(path);
                let values = |bits: &[u64]| {
                    let halves: Vec<u16> = bits.iter().map(|&bits| bits as u16).collect();
                    let mut values = vec![0.0; halves.len()];
                    match ty {
                        // SAFETY: the machine has the path.
                        Type::F16 => unsafe { (helpers.widen)(&halves, &mut values) },
                        _ => values
                            .iter_mut()
                            .zip(halves)
                            .for_each(|(v, h)| *v = f32::from_bits(u32::from(h) << 16)),
                    }
                    values
                };
                let mut d: Vec<f32> = c.iter().map(|&bits| f32::from_bits(bits as u32)).collect();
                // SAFETY: the machine has the path.
                unsafe { (helpers.multiply)(m, n, k, &values(&a), &values(&b), &mut d) }
                for (place, &sum) in d.iter().enumerate() {
                    let column: Vec<u64> = (0..k).map(|step| b[step * n + place % n]).collect();
                    let expected = product.element(&a[place / n * k..][..k], &column, c[place]);
                    assert_eq!(u64::from(canonical(sum)), expected, "{ty} {} {place}", path.name());
                }
            }
        }
    }
}

#[test]
fn sparse_products_are_those_of_sem() {
    let mut random = Random::new(9);
    let picks = Picks::new(&[Type::F32, Type::F32, Type::F32, Type::F32], &[]);
    let product = Product::of(&picks);
    let (m, n, k, stored) = (16, 8, 32, 16);
    for _ in 0..20 {
        let mut numbers =
            |count: usize| -> Vec<u64> { (0..count).map(|_| element(&mut random, 8, 23)).collect() };
        let (a, b, c) = (numbers(m * stored), numbers(k * n), numbers(m * n));
        let columns: Vec<u16> = (0..m * stored).map(|_| random.below(k) as u16).collect();
        let floats = |bits: &[u64]| bits.iter().map(|&bits| f32::from_bits(bits as u32)).collect::<Vec<_>>();
        for path in available_paths() {
            let mut d = floats(&c);
            // SAFETY: the machine has the path.
            unsafe {
                (MatrixHelpers::of(path).multiply_sparse)(
                    n,
                    stored,
                    &floats(&a),
                    &columns,
                    &floats(&b),
                    &mut d,
                )
            }
            for (place, &sum) in d.iter().enumerate() {
                let terms = place / n * stored..place / n * stored + stored;
                let column: Vec<u64> =
                    columns[terms.clone()].iter().map(|&row| b[usize::from(row) * n + place % n]).collect();
                let expected = product.element(&a[terms], &column, c[place]);
                assert_eq!(u64::from(canonical(sum)), expected, "{} {place}", path.name());
            }
        }
    }
}

#[test]
fn scaled_products_are_those_of_sem() {
    let mut random = Random::new(10);
    let kinds =
        [(Mod::KindMxf8f6f4, Type::E4m3, Type::Ue8m0, 32), (Mod::KindMxf4nvf4, Type::E2m1, Type::Ue4m3, 64)];
    for (kind, ty, scale, k) in kinds {
        let mods = [kind, Mod::BlockScale, if k == 64 { Mod::ScaleVec4X } else { Mod::ScaleVec1X }];
        let picks = Picks::new(&[Type::F32, ty, ty, Type::F32, scale], &mods);
        let (product, scale) = (Product::of(&picks), BlockScale::of(&picks).unwrap());
        let (m, n, part) = (4, 8, k / scale.count);
        let one = Product::of(&Picks::new(&[Type::F32, ty, Type::F32, Type::F32], &mods));
        let value =
            |bits: u64| f64::from(f32::from_bits(one.element(&[bits], &[0x3f80_0000], 0x8000_0000) as u32));
        for round in 0..40 {
            let mut bytes = |count: usize, bits: u32| -> Vec<u64> {
                (0..count).map(|_| random.next() & ((1 << bits) - 1)).collect()
            };
            let bits = if product.packed { 4 } else { 8 };
            let (a, b, c) = (bytes(m * k, bits), bytes(k * n, bits), bytes(m * n, 32));
            let mut scales = |count: usize| -> Vec<u64> {
                let near = |bits: u64| if round % 4 == 0 { bits } else { 124 + bits % 8 };
                bytes(count, 8).into_iter().map(near).collect()
            };
            let (row_scales, column_scales) = (scales(m * scale.count), scales(n * scale.count));
            let scaled_a: Vec<f64> = (0..m * k)
                .map(|i| value(a[i]) * scale.to_f64(row_scales[i / k * scale.count + i % k / part]))
                .collect();
            let scaled_b: Vec<f64> = (0..k * n)
                .map(|i| value(b[i]) * scale.to_f64(column_scales[i % n * scale.count + i / n / part]))
                .collect();
            let columns: Vec<u16> = (0..m * k).map(|i| (i % k) as u16).collect();
            for path in available_paths() {
                let mut d: Vec<f32> = c.iter().map(|&bits| f32::from_bits(bits as u32)).collect();
                // SAFETY: the machine has the path.
                unsafe {
                    (MatrixHelpers::of(path).multiply_scaled)(n, k, &scaled_a, &columns, &scaled_b, &mut d)
                }
                for (place, &sum) in d.iter().enumerate() {
                    let (row, column) = (place / n, place % n);
                    let terms: Vec<u64> = (0..k).map(|step| b[step * n + column]).collect();
                    let expected = product.scaled_element(
                        scale,
                        (&a[row * k..][..k], &row_scales[row * scale.count..][..scale.count]),
                        (&terms, &column_scales[column * scale.count..][..scale.count]),
                        c[place],
                    );
                    assert_eq!(u64::from(canonical(sum)), expected, "{ty} {} {place}", path.name());
                }
            }
        }
    }
}

#[test]
fn halves_narrow_as_in_sem() {
    let mut random = Random::new(8);
    let f16 = sem::format::F16;
    for _ in 0..200 {
        let values: [f32; 16] = std::array::from_fn(|_| {
            f32::from_bits(canonical(f32::from_bits(element(&mut random, 8, 23) as u32)))
        });
        for path in available_paths() {
            let mut halves = [0; 16];
            // SAFETY: the machine has the path.
            unsafe { (MatrixHelpers::of(path).narrow)(&values, &mut halves) }
            for (value, half) in values.iter().zip(halves) {
                let bits = u64::from(value.to_bits());
                let expected =
                    sem::convert::convert_float(&sem::format::F32, &f16, sem::round::Mode::NEAREST, bits);
                assert_eq!(u64::from(half), expected, "{value:e} {}", path.name());
            }
        }
    }
}
