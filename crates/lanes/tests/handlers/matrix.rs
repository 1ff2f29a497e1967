//! Products of matrices against `sem::matrix`, bit for bit.

use super::values::Random;
use isa::{Mod, Picks, Type};
use lanes::{
    MatrixElement, MatrixHelpers, ProductScratch, SmallFloat, TileProduct, TileRegisters, Tiles, Tiling,
    WarpProduct, available_paths,
};
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

/// A matrix of so many rows and columns, and the words that hold it in the registers of two warps, of which the second has it.
struct Fragment {
    tiles: Tiles,
    element: MatrixElement,
    /// Row by row.
    bits: Vec<u64>,
    registers: Vec<Vec<u64>>,
}

impl Fragment {
    fn new(tiling: Tiling, element: MatrixElement, [rows, columns]: [usize; 2], bits: Vec<u64>) -> Fragment {
        let in_word = element.in_word();
        let tiles = Tiles::grid(tiling, in_word, rows, columns);
        let each = if tiling == Tiling::Pairs { 2 } else { 1 };
        let mut registers = vec![vec![0; 64]; tiles.registers()];
        for (pair, (row, column)) in registers.chunks_exact_mut(each).zip(tiles.starts()) {
            for (parity, register) in pair.iter_mut().enumerate() {
                for (lane, part) in (0..32).flat_map(|lane| (0..in_word).map(move |part| (lane, part))) {
                    let (line, along) = (lane / 4, lane % 4 * in_word + part);
                    let place = match tiling {
                        Tiling::Rows => (row + line) * columns + column + along,
                        Tiling::Columns => (row + along) * columns + column + line,
                        Tiling::Pairs => (row + line) * columns + column + 2 * along + parity,
                    };
                    register[32 + lane] |= bits[place] << (part * 32 / in_word % 64);
                }
            }
        }
        Fragment { tiles, element, bits, registers }
    }

    /// The registers' bytes.
    fn bytes(&self) -> Vec<Vec<u8>> {
        let width = if matches!(self.element, MatrixElement::Double) { 8 } else { 4 };
        let bytes = |register: &Vec<u64>| {
            register.iter().flat_map(|word| word.to_le_bytes().into_iter().take(width)).collect()
        };
        self.registers.iter().map(bytes).collect()
    }

    fn operand(&self) -> (&Tiles, MatrixElement) {
        (&self.tiles, self.element)
    }
}

#[test]
fn products_of_tiles_are_those_of_sem() {
    use MatrixElement::{Bf16, Double, F16, S4, S8, Small, U8, Word};
    use Tiling::{Columns, Pairs, Rows};
    let all = Word(u32::MAX);
    let small = |ty| Small(SmallFloat::new(sem::format::Format::of(ty).unwrap(), 0));
    // Types of D, A, B and C, the tiles of A, B and D, and m, n and k.
    let cases = [
        (
            [Type::F32, Type::F16, Type::F16, Type::F32],
            [F16, F16, all, all],
            [Rows, Columns, Pairs],
            [16, 8, 16],
        ),
        (
            [Type::F32, Type::F16, Type::F16, Type::F32],
            [F16, F16, all, all],
            [Columns, Rows, Pairs],
            [8, 32, 16],
        ),
        (
            [Type::F16, Type::F16, Type::F16, Type::F16],
            [F16, F16, F16, F16],
            [Rows, Columns, Rows],
            [16, 16, 8],
        ),
        (
            [Type::F16, Type::F16, Type::F16, Type::F32],
            [F16, F16, all, F16],
            [Rows, Columns, Rows],
            [16, 8, 16],
        ),
        (
            [Type::F32, Type::Bf16, Type::Bf16, Type::F32],
            [Bf16, Bf16, all, all],
            [Rows, Rows, Pairs],
            [32, 8, 16],
        ),
        (
            [Type::F32, Type::Tf32, Type::Tf32, Type::F32],
            [Word(!0x1fff), Word(!0x1fff), all, all],
            [Rows, Columns, Pairs],
            [16, 8, 8],
        ),
        (
            [Type::F32, Type::Tf32, Type::Tf32, Type::F32],
            [Word(!0x1fff), Word(!0x1fff), all, all],
            [Columns, Rows, Pairs],
            [16, 16, 8],
        ),
        (
            [Type::F32, Type::E4m3, Type::E5m2, Type::F32],
            [small(Type::E4m3), small(Type::E5m2), all, all],
            [Rows, Columns, Pairs],
            [16, 8, 32],
        ),
        ([Type::S32, Type::S8, Type::U8, Type::S32], [S8, U8, all, all], [Rows, Columns, Pairs], [16, 8, 32]),
        (
            [Type::S32, Type::U8, Type::S8, Type::S32],
            [U8, S8, all, all],
            [Columns, Rows, Pairs],
            [16, 16, 16],
        ),
        ([Type::S32, Type::S4, Type::S4, Type::S32], [S4, S4, all, all], [Rows, Columns, Pairs], [8, 8, 32]),
        ([Type::F64, Type::F64, Type::F64, Type::F64], [Double; 4], [Rows, Columns, Pairs], [8, 8, 4]),
        ([Type::F64, Type::F64, Type::F64, Type::F64], [Double; 4], [Rows, Columns, Pairs], [16, 8, 16]),
    ];
    let mut random = Random::new(11);
    for (types, [a, b, c, d], [a_tiling, b_tiling, d_tiling], [m, n, k]) in cases {
        let saturates = types[0] == Type::S32;
        let product = Product::of(&Picks::new(&types, if saturates { &[Mod::Satfinite] } else { &[] }));
        let c_tiling = if matches!(c, F16) { Rows } else { Pairs };
        for round in 0..if cfg!(miri) { 1 } else { 20 } {
            let mut numbers = |ty: Type, count: usize| -> Vec<u64> {
                let bits = |random: &mut Random| match ty {
                    Type::F16 => element(random, 5, 10),
                    Type::Bf16 => element(random, 8, 7),
                    Type::F32 | Type::Tf32 => element(random, 8, 23),
                    // Its NaNs are found otherwise.
                    Type::F64 => (random.below(1 << 20) as f64 - 1e5).to_bits(),
                    ty => random.next() & (u64::MAX >> (64 - ty.bits())),
                };
                (0..count).map(|_| bits(&mut random)).collect()
            };
            let a = Fragment::new(a_tiling, a, [m, k], numbers(types[1], m * k));
            let b = Fragment::new(b_tiling, b, [k, n], numbers(types[2], k * n));
            let c = Fragment::new(c_tiling, c, [m, n], numbers(types[3], m * n));
            let (accumulates, negated) = (round % 4 != 3, round % 5 == 4 && !saturates);
            let expected: Vec<u64> = (0..m * n)
                .map(|place| {
                    let column: Vec<u64> = (0..k).map(|step| b.bits[step * n + place % n]).collect();
                    let sign = if negated { 1 << (types[1].bits() - 1) } else { 0 };
                    let row: Vec<u64> = a.bits[place / n * k..][..k].iter().map(|x| x ^ sign).collect();
                    product.element(&row, &column, if accumulates { c.bits[place] } else { 0 })
                })
                .collect();
            let expected = Fragment::new(d_tiling, d, [m, n], expected);
            let integers = saturates.then_some(true);
            let tiled = TileProduct::new(
                [m, n, k],
                a.operand(),
                b.operand(),
                c.operand(),
                expected.operand(),
                integers,
            )
            .expect("tiles of whole matrices");
            let [a, b, c] = [&a, &b, &c].map(Fragment::bytes);
            for path in available_paths() {
                let mut d: Vec<Vec<u8>> =
                    expected.bytes().iter().map(|register| vec![0; register.len()]).collect();
                fn pointers(registers: &[Vec<u8>]) -> smallvec::SmallVec<[*const u8; 8]> {
                    registers.iter().map(|register| register.as_ptr()).collect()
                }
                let registers = TileRegisters {
                    a: pointers(&a),
                    b: pointers(&b),
                    c: pointers(&c),
                    d: d.iter_mut().map(|register| register.as_mut_ptr()).collect(),
                    d_is_read: false,
                };
                let warp = WarpProduct { first: 32, a_first: 32, b_first: Some(32), accumulates, negated };
                let same_b = WarpProduct { b_first: None, ..warp };
                let mut scratch = ProductScratch::default();
                // SAFETY: the machine has the path; the registers have two warps.
                let odd = unsafe {
                    (MatrixHelpers::of(path).multiply_tiles)(
                        &tiled,
                        &registers,
                        &[warp, same_b],
                        &mut scratch,
                    )
                };
                assert_eq!((odd, &d), (0, &expected.bytes()), "{types:?} {} {m} {n} {k}", path.name());
            }
        }
    }
}

#[test]
fn nans_of_binary64_are_left_to_others() {
    let numbers = |x: f64| vec![x.to_bits(); 64];
    let fragment = |tiling, size, x| Fragment::new(tiling, MatrixElement::Double, size, numbers(x));
    let a = fragment(Tiling::Rows, [8, 4], f64::INFINITY);
    let (b, c) = (fragment(Tiling::Columns, [4, 8], 0.0), fragment(Tiling::Pairs, [8, 8], 1.0));
    let tiled =
        TileProduct::new([8, 8, 4], a.operand(), b.operand(), c.operand(), c.operand(), None).unwrap();
    let [a, b, c] = [&a, &b, &c].map(Fragment::bytes);
    for path in available_paths() {
        let mut d = c.clone();
        let registers = TileRegisters {
            a: a.iter().map(|register| register.as_ptr()).collect(),
            b: b.iter().map(|register| register.as_ptr()).collect(),
            c: c.iter().map(|register| register.as_ptr()).collect(),
            d: d.iter_mut().map(|register| register.as_mut_ptr()).collect(),
            d_is_read: false,
        };
        // The first warp has zeros everywhere.
        let warps = [0, 32].map(|first| WarpProduct {
            first,
            a_first: first,
            b_first: Some(first),
            accumulates: true,
            negated: false,
        });
        // SAFETY: the machine has the path; the registers have two warps.
        let odd = unsafe {
            (MatrixHelpers::of(path).multiply_tiles)(
                &tiled,
                &registers,
                &warps,
                &mut ProductScratch::default(),
            )
        };
        assert_eq!((odd, &d), (0b10, &c), "{}", path.name());
    }
}
