//! cuBLASLt: random types, orders, batches, factors, scales and epilogues, against sums in twice the precision.

use half::{bf16, f16};
use rustc_apfloat::ieee::{Double, Float8E4M3FN, Float8E5M2};
use rustc_apfloat::{Float, FloatConvert};

use crate::rig::{Buffer, Dense, Handle, NAN, Num, Ty, at, call, exact, gamma, ok};
use crate::{cases, pick, size};

const R32: u32 = 0;
const R64: u32 = 1;
const R16: u32 = 2;
const I8: u32 = 3;
const C32: u32 = 4;
const C64: u32 = 5;
const I32: u32 = 10;
const B16: u32 = 14;
const E4M3: u32 = 28;
const E5M2: u32 = 29;

/// Compute type, scale type, types of A, B, C and D.
const TYPES: &[(u32, u32, [u32; 4])] = &[
    (64, R16, [R16; 4]),
    (72, I32, [I8, I8, I32, I32]),
    (72, R32, [I8; 4]),
    (70, R64, [R64; 4]),
    (70, C64, [C64; 4]),
    (68, C32, [C32; 4]),
    (68, R32, [R32; 4]),
    (77, R32, [R32; 4]),
    (68, R32, [R16; 4]),
    (68, R32, [R16, R16, R32, R32]),
    (68, R32, [B16; 4]),
    (68, R32, [B16, B16, R32, R32]),
    (68, R32, [I8, I8, R32, R32]),
    (68, R32, [E4M3, E4M3, B16, E4M3]),
    (68, R32, [E4M3, E5M2, R16, E5M2]),
    (68, R32, [E5M2, E4M3, R32, R32]),
    (68, R32, [E4M3, E4M3, B16, B16]),
];

fn bytes_of(kind: u32) -> usize {
    match kind {
        I8 | E4M3 | E5M2 => 1,
        R16 | B16 => 2,
        R32 | I32 => 4,
        R64 | C32 => 8,
        _ => 16,
    }
}

fn narrow<F: Float>(value: f64) -> u8
where
    Double: FloatConvert<F>,
{
    let rounded: F = Double::from_bits(value.to_bits().into()).convert(&mut false).value;
    rounded.to_bits() as u8
}

fn widen<F: Float + FloatConvert<Double>>(bits: u8) -> f64 {
    let value: Double = F::from_bits(bits.into()).convert(&mut false).value;
    f64::from_bits(value.to_bits() as u64)
}

fn encode(kind: u32, number: Num) -> Vec<u8> {
    let [re, im] = number;
    match kind {
        R32 => (re as f32).to_ne_bytes().to_vec(),
        R64 => re.to_ne_bytes().to_vec(),
        R16 => f16::from_f64(re).to_ne_bytes().to_vec(),
        B16 => bf16::from_f64(re).to_ne_bytes().to_vec(),
        I8 => (re as i8).to_ne_bytes().to_vec(),
        I32 => (re as i32).to_ne_bytes().to_vec(),
        C32 => [(re as f32).to_ne_bytes(), (im as f32).to_ne_bytes()].concat(),
        C64 => [re.to_ne_bytes(), im.to_ne_bytes()].concat(),
        E4M3 => vec![narrow::<Float8E4M3FN>(re)],
        _ => vec![narrow::<Float8E5M2>(re)],
    }
}

fn decode(kind: u32, bytes: &[u8]) -> Num {
    let single = |at: usize| f64::from(f32::from_ne_bytes(bytes[at..][..4].try_into().expect("4")));
    let double = |at: usize| f64::from_ne_bytes(bytes[at..][..8].try_into().expect("8"));
    match kind {
        R32 => [single(0), 0.0],
        R64 => [double(0), 0.0],
        R16 => [f16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(), 0.0],
        B16 => [bf16::from_ne_bytes([bytes[0], bytes[1]]).to_f64(), 0.0],
        I8 => [f64::from(bytes[0] as i8), 0.0],
        I32 => [f64::from(i32::from_ne_bytes(bytes[..4].try_into().expect("4"))), 0.0],
        C32 => [single(0), single(4)],
        C64 => [double(0), double(8)],
        E4M3 => [widen::<Float8E4M3FN>(bytes[0]), 0.0],
        _ => [widen::<Float8E5M2>(bytes[0]), 0.0],
    }
}

/// A random number that the kind has.
fn number(random: &mut fastrand::Rng, kind: u32) -> Num {
    let mut part = || match kind {
        I8 => f64::from(random.i8(..)),
        I32 => f64::from(random.i32(-1000..1000)),
        _ => f64::from(random.f32() - 0.5),
    };
    let number = [part(), if matches!(kind, C32 | C64) { part() } else { 0.0 }];
    decode(kind, &encode(kind, number))
}

/// How far a number may be from what is rounded to a kind.
fn rounding(kind: u32, value: f64) -> f64 {
    let (relative, least) = match kind {
        R16 => (2.0_f64.powi(-11), 2.0_f64.powi(-25)),
        B16 => (2.0_f64.powi(-8), 0.0),
        E4M3 => (2.0_f64.powi(-4), 2.0_f64.powi(-10)),
        E5M2 => (2.0_f64.powi(-3), 2.0_f64.powi(-17)),
        I8 => (0.0, 0.5),
        R32 => (2.0_f64.powi(-24), 0.0),
        _ => (0.0, 0.0),
    };
    (value.abs() * relative).max(least) * 1.001
}

/// The elements of a matrix in the order of memory: rows and columns, or none for a gap.
fn elements(order: u32, rows: usize, columns: usize, extra: usize) -> (usize, Vec<Option<[usize; 2]>>) {
    let mut places = Vec::new();
    let mut add = |i: usize, j: usize| places.push((i < rows && j < columns).then_some([i, j]));
    let (groups, tall) = (columns.div_ceil(32), |of: usize| rows.div_ceil(of) * of);
    let mut ld = 0;
    match order {
        0 | 1 => {
            let (outer, inner) = if order == 0 { (columns, rows) } else { (rows, columns) };
            ld = inner.max(1) + extra;
            for o in 0..outer {
                for i in 0..ld {
                    match (i < inner, order) {
                        (true, 0) => add(i, o),
                        (true, _) => add(o, i),
                        _ => add(usize::MAX, 0),
                    }
                }
            }
        }
        2 => {
            ld = 32 * rows.max(1);
            for g in 0..groups {
                for i in 0..rows {
                    (0..32).for_each(|j| add(i, g * 32 + j));
                }
            }
        }
        3 => {
            ld = 32 * tall(8).max(8);
            for (g, tile) in (0..groups).flat_map(|g| (0..tall(8) / 8).map(move |tile| (g, tile))) {
                for (odd, eight) in [0, 1].into_iter().flat_map(|odd| (0..4).map(move |eight| (odd, eight))) {
                    for (half, pair) in (0..2).flat_map(|half| (0..4).map(move |pair| (half, pair))) {
                        (0..4).for_each(|c| {
                            add(tile * 8 + pair * 2 + odd, g * 32 + eight * 8 + half * 4 + c);
                        });
                    }
                }
            }
        }
        _ => {
            ld = ld.max(32 * tall(32).max(32));
            for (g, tile) in (0..groups).flat_map(|g| (0..tall(32) / 32).map(move |tile| (g, tile))) {
                for pair in 0..4 {
                    for (eight, odd) in (0..4).flat_map(|eight| [0, 1].map(|odd| (eight, odd))) {
                        (0..32).for_each(|c| add(tile * 32 + eight * 8 + pair * 2 + odd, g * 32 + c));
                    }
                }
            }
        }
    }
    (ld, places)
}

/// Objects of the library.
struct Object(&'static str, u64);

impl Object {
    fn new(kind: &'static str, arguments: &[u64]) -> Object {
        let mut object = 0;
        let mut all = vec![at(&mut object)];
        all.extend(arguments);
        ok(&format!("cublasLt{kind}Create"), &all);
        Object(kind, object)
    }

    fn set(&self, attribute: u64, mut value: impl AsMut<[u8]>) {
        let value = value.as_mut();
        let name = format!("cublasLt{}SetAttribute", self.0);
        ok(&name, &[self.1, attribute, at(value), value.len() as u64]);
        let mut back = vec![0_u8; value.len()];
        let mut written = 0_u64;
        let name = format!("cublasLt{}GetAttribute", self.0);
        ok(&name, &[self.1, attribute, at(&mut back[..]), back.len() as u64, at(&mut written)]);
        assert_eq!((&back[..], written), (&*value, value.len() as u64), "{} {attribute}", self.0);
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        ok(&format!("cublasLt{}Destroy", self.0), &[self.1]);
    }
}

/// Matrices of a batch in memory.
struct Batch {
    kind: u32,
    places: Vec<Option<[usize; 2]>>,
    buffers: Vec<Buffer>,
    layout: Object,
    /// What the program passes.
    address: u64,
    _list: Option<Buffer>,
}

impl Batch {
    fn new(random: &mut fastrand::Rng, kind: u32, order: u32, of: &[Dense]) -> Batch {
        let (rows, columns) = (of[0].rows, of[0].columns);
        let (ld, places) = elements(order, rows, columns, pick(random, &[0, 0, 3]));
        let layout = Object::new("MatrixLayout", &[kind.into(), rows as u64, columns as u64, ld as u64]);
        if order != 0 {
            layout.set(1, order.to_ne_bytes());
        }
        let gap = vec![0x7f; bytes_of(kind)];
        let bytes = |dense: &Dense| -> Vec<u8> {
            places
                .iter()
                .flat_map(|place| place.map_or(gap.clone(), |[i, j]| encode(kind, dense.at(i, j))))
                .collect()
        };
        let (mut buffers, mut list) = (Vec::new(), None);
        let address;
        if of.len() > 1 && random.bool() {
            layout.set(5, (of.len() as i32).to_ne_bytes());
            layout.set(8, 1_u32.to_ne_bytes());
            buffers.extend(of.iter().map(|dense| Buffer::new(&bytes(dense))));
            let pointers = Buffer::pointers(&buffers);
            address = pointers.address;
            list = Some(pointers);
        } else {
            if of.len() > 1 {
                layout.set(5, (of.len() as i32).to_ne_bytes());
                layout.set(6, (places.len() as i64).to_ne_bytes());
            }
            buffers.push(Buffer::new(&of.iter().flat_map(bytes).collect::<Vec<u8>>()));
            address = buffers[0].address;
        }
        Batch { kind, places, buffers, layout, address, _list: list }
    }

    /// What is there now; gaps must be as they were.
    fn read(&self, rows: usize, columns: usize, count: usize) -> Vec<Dense> {
        let bytes: Vec<u8> = self.buffers.iter().flat_map(Buffer::read).collect();
        let width = bytes_of(self.kind);
        (0..count)
            .map(|index| {
                let mut dense = Dense::new(rows, columns, |_, _| [0.0; 2]);
                for (at, place) in self.places.iter().enumerate() {
                    let element = &bytes[(index * self.places.len() + at) * width..][..width];
                    match place {
                        Some([i, j]) => dense.values[i + j * rows] = decode(self.kind, element),
                        None => assert!(element.iter().all(|&byte| byte == 0x7f), "a gap was written"),
                    }
                }
                dense
            })
            .collect()
    }
}

fn is_integer(kind: u32) -> bool {
    matches!(kind, I8 | I32)
}

fn times(a: Num, b: Num) -> Num {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

/// By differences, so that a mistake in the formula of the derivative shows.
fn gelu_derivative(x: f64) -> f64 {
    (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5
}

#[test]
fn products() {
    cases(21, |random, handle| {
        let (compute, scale, kinds) = pick(random, TYPES);
        let is_complex = matches!(kinds[3], C32 | C64);
        let (m, n, k) = (size(random), size(random), size(random).min(60));
        let count = pick(random, &[1, 1, 1, 2, 3]);
        let ops: [u32; 2] = [0, 1].map(|_| random.u32(..if is_complex { 3 } else { 2 }));
        let tiled = kinds[0] == I8 && random.bool();
        let orders = [0; 4].map(|_| if tiled { random.u32(..5) } else { random.u32(..2) });
        let epilogue = match is_complex || scale == I32 {
            true => 1_u32,
            false => pick(random, &[1, 1, 2, 4, 6, 32, 36, 130, 134, 136, 152, 160, 164, 192, 208, 256, 512]),
        };
        let has_aux = epilogue & 128 != 0;
        let d_order = if has_aux { 0 } else { orders[3] };
        // Factors: one for all, or one for each row.
        let mode = random.u32(..5);
        let mut factors = |is_rows: bool| -> Vec<Num> {
            let mut one = || match scale {
                I32 => [f64::from(random.i32(-3..3)), 0.0],
                _ => pick(random, &[[0.0, 0.0], [1.0, 0.0], [0.5, 0.0], [-1.25, 0.0]]),
            };
            let first = one();
            (0..m.max(1)).map(|_| if is_rows { one() } else { first }).collect()
        };
        let alpha = factors(mode >= 2);
        let mut beta = factors(mode == 2);
        if mode == 3 {
            beta.fill([0.0; 2]);
        }
        let stored = |op: u32, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let mut matrices = |(rows, columns): (usize, usize), kind| -> Vec<Dense> {
            (0..count).map(|_| Dense::new(rows, columns, |_, _| number(random, kind))).collect()
        };
        let mut a = matrices(stored(ops[0], m, k), kinds[0]);
        let b = matrices(stored(ops[1], k, n), kinds[1]);
        let mut c = matrices((m, n), kinds[2]);
        // What must not be read.
        let none = |factor: &Num| factor[0] == 0.0;
        if alpha.iter().all(none) && epilogue & (256 | 512) == 0 && !is_integer(kinds[0]) {
            a.iter_mut().for_each(|a| a.values.fill(NAN));
        }
        for i in (0..m).filter(|&i| none(&beta[i]) && !is_integer(kinds[2])) {
            c.iter_mut().for_each(|c| (0..n).for_each(|j| c.values[i + j * m] = NAN));
        }
        let d = matrices((m, n), kinds[3]);
        let [pa, pb] = [(kinds[0], orders[0], &a), (kinds[1], orders[1], &b)]
            .map(|(kind, order, of)| Batch::new(random, kind, order, of));
        let pc = Batch::new(random, kinds[2], orders[2], &c);
        let pd = Batch::new(random, kinds[3], d_order, &d);

        let desc = Object::new("MatmulDesc", &[compute.into(), scale.into()]);
        desc.set(2, mode.to_ne_bytes());
        desc.set(3, ops[0].to_ne_bytes());
        desc.set(4, ops[1].to_ne_bytes());
        desc.set(7, epilogue.to_ne_bytes());

        let bytes = |factors: &[Num]| factors.iter().flat_map(|&f| encode(scale, f)).collect::<Vec<u8>>();
        let (mut host_alpha, mut host_beta) = (bytes(&alpha), bytes(&beta));
        let (on_device_alpha, on_device_beta) = (Buffer::new(&host_alpha), Buffer::new(&host_beta));
        let alpha_address = if mode == 0 { at(&mut host_alpha[..]) } else { on_device_alpha.address };
        let beta_address = match mode {
            0 | 4 => at(&mut host_beta[..]),
            3 => 0,
            _ => on_device_beta.address,
        };

        // Scales, of numbers of 8 bits.
        let is_fp8 = |kind: u32| matches!(kind, E4M3 | E5M2);
        let scales: [f32; 4] = [0, 1, 2, 3].map(|i| if is_fp8(kinds[i]) { 0.5 + random.f32() } else { 1.0 });
        let by_rows: Vec<f32> = (0..m.max(1)).map(|_| 0.5 + random.f32()).collect();
        let is_outer = is_fp8(kinds[0]) && random.bool();
        let mut on_device = Vec::new();
        for i in 0..4 {
            if !is_fp8(kinds[i]) {
                continue;
            }
            let values = if i == 0 && is_outer { &by_rows[..] } else { &scales[i..=i] };
            let buffer =
                Buffer::new(&values.iter().flat_map(|scale| scale.to_ne_bytes()).collect::<Vec<u8>>());
            desc.set(17 + i as u64, buffer.address.to_ne_bytes());
            on_device.push(buffer);
        }
        if is_outer {
            desc.set(31, 3_u32.to_ne_bytes());
        }
        let amax = Buffer::new(&[0x55; 4]);
        if is_fp8(kinds[3]) {
            desc.set(21, amax.address.to_ne_bytes());
        }

        // The bias, and the matrix beside the result.
        let bias_kind = match kinds[3] {
            I8 => R32,
            _ if is_fp8(kinds[3]) => kinds[2],
            R32 if is_fp8(kinds[0]) => B16,
            kind => kind,
        };
        let length = if epilogue == 512 { n } else { m };
        let bias: Vec<Num> = (0..length * count)
            .map(|_| number(random, if bias_kind == I8 { R32 } else { bias_kind }))
            .collect();
        let bias_buffer =
            Buffer::new(&bias.iter().flat_map(|&value| encode(bias_kind, value)).collect::<Vec<u8>>());
        if epilogue & (4 | 16 | 256 | 512) != 0 {
            desc.set(8, bias_buffer.address.to_ne_bytes());
            desc.set(10, (length as i64).to_ne_bytes());
        }
        let is_mask = has_aux && epilogue & (2 | 8) != 0;
        let aux_kind = if kinds[3] == I8 { R32 } else { kinds[3] };
        let aux_ld = if is_mask { m.max(1).next_multiple_of(128) } else { m.max(1) + 1 };
        let aux: Vec<Num> = (0..aux_ld * n * count).map(|_| number(random, aux_kind)).collect();
        let aux_bytes: Vec<u8> = match is_mask {
            true => (0..aux_ld / 8 * n * count).map(|_| random.u8(..)).collect(),
            false => aux.iter().flat_map(|&value| encode(aux_kind, value)).collect(),
        };
        let aux_buffer = Buffer::new(&aux_bytes);
        if has_aux {
            desc.set(11, aux_buffer.address.to_ne_bytes());
            desc.set(12, (aux_ld as i64).to_ne_bytes());
            desc.set(13, ((aux_ld * n) as i64).to_ne_bytes());
            if !is_mask {
                desc.set(22, (aux_kind as i32).to_ne_bytes());
            }
        }

        let preference = Object::new("MatmulPreference", &[]);
        preference.set(1, (1_u64 << 20).to_ne_bytes());
        let (mut found, mut result) = (0_i32, [0_u64; 12]);
        let layouts = [pa.layout.1, pb.layout.1, pc.layout.1, pd.layout.1];
        let [la, lb, lc, ld] = layouts;
        let what = format!(
            "{compute} {scale} {kinds:?} {m} {n} {k} x {count} {ops:?} {orders:?} epilogue {epilogue} mode {mode}"
        );
        let status = call(
            "cublasLtMatmulAlgoGetHeuristic",
            &[handle.0, desc.1, la, lb, lc, ld, preference.1, 1, at(&mut result[..]), at(&mut found)],
        );
        assert_eq!((status, found), (0, 1), "{what}");
        ok(
            "cublasLtMatmul",
            &[
                handle.0,
                desc.1,
                alpha_address,
                pa.address,
                la,
                pb.address,
                lb,
                beta_address,
                pc.address,
                lc,
                pd.address,
                ld,
                at(&mut result[..]),
                0,
                0,
                0,
            ],
        );

        let got = pd.read(m, n, count);
        let (bias_now, aux_now) = (bias_buffer.read(), aux_buffer.read());
        let ty = if matches!(kinds[3], R64 | C64) || compute == 72 { Ty::D } else { Ty::S };
        let tf32 = if compute == 77 { 2.0_f64.powi(-10) * 1.001 } else { 0.0 };
        let mut largest: f64 = 0.0;
        for index in 0..count {
            let none = Dense::new(m, n, |_, _| [0.0; 2]);
            let (left, right) = (a[index].operated(ops[0]), b[index].operated(ops[1]));
            let (sums, sizes) = exact([1.0, 0.0], &left, &right, [0.0; 2], &none);
            let mut row_sums = vec![(0.0, 0.0); m];
            for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
                let row_scale = if is_outer { by_rows[i] } else { scales[0] };
                let by = f64::from(row_scale) * f64::from(scales[1]);
                let term = |factor: Num, of: Num| if factor[0] == 0.0 { [0.0; 2] } else { times(factor, of) };
                let first = term(alpha[i], sums.at(i, j)).map(|part| part * by);
                let second = term(beta[i], c[index].at(i, j)).map(|part| part * f64::from(scales[2]));
                let magnitude =
                    if alpha[i][0] == 0.0 { 0.0 } else { sizes.at(i, j)[0] * alpha[i][0].abs() * by }
                        + second.iter().map(|part| part.abs()).sum::<f64>();
                let mut value = [first[0] + second[0], first[1] + second[1]];
                let mut most = magnitude * (gamma(ty, k + 8) * 2.0 + tf32);
                if compute == 72 && scale == I32 {
                    value[0] = f64::from(value[0] as i64 as i32);
                    most = 0.0;
                }
                if epilogue & 4 != 0 {
                    let bias = bias[index * m + i][0];
                    value[0] += bias;
                    most += (value[0].abs() + bias.abs()) * ty.unit() * 2.0;
                }
                let place = i + (j + index * n) * aux_ld;
                if has_aux && epilogue & 2 != 0 {
                    let bit = aux_now[place / 8] >> (place % 8) & 1 == 1;
                    assert!(
                        value[0].abs() <= most || bit == (value[0] > 0.0),
                        "{what}: the mask at ({i}, {j})"
                    );
                }
                if has_aux && epilogue & 32 != 0 {
                    let width = bytes_of(aux_kind);
                    let written = decode(aux_kind, &aux_now[place * width..][..width])[0];
                    let bound = most + rounding(aux_kind, value[0]);
                    assert!((written - value[0]).abs() <= bound, "{what}: the argument at ({i}, {j})");
                }
                match epilogue & !(4 | 16 | 128) {
                    2 => value[0] = value[0].max(0.0),
                    8 => {
                        let bit = aux_bytes[place / 8] >> (place % 8) & 1 == 1;
                        (value[0], most) = if bit { (value[0], most) } else { (0.0, 0.0) };
                    }
                    32 => {
                        value[0] = gelu(value[0]);
                        most = most * 1.2 + value[0].abs() * ty.unit() * 2.0;
                    }
                    64 => {
                        let by = gelu_derivative(aux[place][0]);
                        value[0] *= by;
                        most = most * 1.2
                            + (value[0] / by.min(-1e-3).abs()).abs() * 1e-8
                            + value[0].abs() * ty.unit() * 4.0;
                    }
                    _ => {}
                }
                row_sums[i].0 += value[0];
                row_sums[i].1 += most + value[0].abs() * ty.unit() * (n + 2) as f64;
                largest = largest.max(value[0].abs());
                let scaled = value.map(|part| part * f64::from(scales[3]));
                most = most * f64::from(scales[3]) + scaled[0].abs() * ty.unit() * 2.0;
                let saturated = match kinds[3] {
                    I8 => scaled.map(|part| part.clamp(-128.0, 127.0)),
                    E4M3 => scaled.map(|part| part.clamp(-448.0, 448.0)),
                    _ => scaled,
                };
                let result = got[index].at(i, j);
                for part in 0..2 {
                    let (value, wanted) = (result[part], saturated[part]);
                    let most = most + rounding(kinds[3], wanted) + 1e-45;
                    assert!(
                        (value - wanted).abs() <= most,
                        "{what}: ({i}, {j}) is {value}, not {wanted} ({most:e})"
                    );
                }
            }
            let width = bytes_of(bias_kind);
            let sum = |i: usize| decode(bias_kind, &bias_now[(index * length + i) * width..][..width])[0];
            match epilogue {
                // Without a result, nothing is done.
                _ if m * n == 0 => {}
                152 | 208 => {
                    for (i, &(wanted, most)) in row_sums.iter().enumerate() {
                        let most = most + rounding(bias_kind, wanted) + 1e-6;
                        assert!((sum(i) - wanted).abs() <= most, "{what}: the sum of row {i}");
                    }
                }
                256 | 512 => {
                    for i in 0..length {
                        let terms = (0..k)
                            .map(|l| if epilogue == 256 { left.at(i, l)[0] } else { right.at(l, i)[0] });
                        let (wanted, size) =
                            terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                        let most = size * ty.unit() * k as f64 + rounding(bias_kind, wanted);
                        assert!((sum(i) - wanted).abs() <= most, "{what}: the sum of factor {i}");
                    }
                }
                _ => {}
            }
        }
        if is_fp8(kinds[3]) && m * n * k > 0 {
            let found = f64::from(f32::from_ne_bytes(amax.read()[..4].try_into().expect("4")));
            assert!(
                (found - largest).abs() <= largest * 1e-4 + 1e-6,
                "{what}: the largest is {found}, not {largest}"
            );
        }
    });
}

#[test]
fn transformations() {
    cases(22, |random, handle| {
        let kind = pick(random, &[R32, R16, I8, R64, C32, I32]);
        let scale = match kind {
            R64 | C32 => kind,
            I32 => I32,
            _ => R32,
        };
        let (m, n, count) = (size(random), size(random), pick(random, &[1, 2]));
        let ops = [0, 1].map(|_| random.u32(..2));
        let stored = |op: u32| if op == 0 { (m, n) } else { (n, m) };
        let mut matrices = |(rows, columns): (usize, usize)| -> Vec<Dense> {
            (0..count).map(|_| Dense::new(rows, columns, |_, _| number(random, kind))).collect()
        };
        let (a, b, c) = (matrices(stored(ops[0])), matrices(stored(ops[1])), matrices((m, n)));
        let [pa, pb, pc] = [&a, &b, &c].map(|of| {
            let order = random.u32(..5);
            Batch::new(random, kind, order, of)
        });
        let desc = Object::new("MatrixTransformDesc", &[scale.into()]);
        desc.set(2, ops[0].to_ne_bytes());
        desc.set(3, ops[1].to_ne_bytes());
        let (alpha, beta) = (pick(random, &[1.0, 2.0, 0.0]), pick(random, &[0.0, 1.0, -1.0]));
        let (mut x, mut y) = (encode(scale, [alpha, 0.0]), encode(scale, [beta, 0.0]));
        let (x, y) = (at(&mut x[..]), at(&mut y[..]));
        ok(
            "cublasLtMatrixTransform",
            &[
                handle.0,
                desc.1,
                x,
                pa.address,
                pa.layout.1,
                y,
                pb.address,
                pb.layout.1,
                pc.address,
                pc.layout.1,
                0,
            ],
        );
        let got = pc.read(m, n, count);
        for index in 0..count {
            let (a, b) = (a[index].operated(ops[0]), b[index].operated(ops[1]));
            for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
                for part in 0..2 {
                    let wanted = alpha * a.at(i, j)[part] + beta * b.at(i, j)[part];
                    let wanted = if kind == I8 { wanted.clamp(-128.0, 127.0) } else { wanted };
                    let value = got[index].at(i, j)[part];
                    let most = if kind == I8 {
                        0.0
                    } else {
                        rounding(kind, wanted) + wanted.abs() * 2.0_f64.powi(-23) + 1e-7
                    };
                    assert!((value - wanted).abs() <= most, "{kind} {m} {n} {ops:?}: {value}, not {wanted}");
                }
            }
        }
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let handle = Handle::new();
    const INVALID: u32 = 7;
    const MISSING: u32 = 15;
    let layout =
        |kind: u32, rows: u64, columns: u64| Object::new("MatrixLayout", &[kind.into(), rows, columns, rows]);
    let (a, b, c) = (layout(R32, 4, 3), layout(R32, 3, 5), layout(R32, 4, 5));
    let desc = Object::new("MatmulDesc", &[68, 0]);
    let preference = Object::new("MatmulPreference", &[]);
    let (mut found, mut result) = (7_i32, [0_u64; 12]);
    let (found_at, result_at) = (at(&mut found), at(&mut result[..]));
    let ask = |desc: &Object, [a, b, c]: [&Object; 3]| {
        call(
            "cublasLtMatmulAlgoGetHeuristic",
            &[handle.0, desc.1, a.1, b.1, c.1, c.1, preference.1, 1, result_at, found_at],
        )
    };
    assert_eq!(ask(&desc, [&a, &b, &c]), 0);
    assert_eq!(ask(&desc, [&b, &a, &c]), INVALID);
    assert_eq!(ask(&desc, [&a, &b, &layout(R64, 4, 5)]), MISSING);
    desc.set(6, 0_u32.to_ne_bytes());
    assert_eq!(ask(&desc, [&a, &b, &c]), MISSING);
    assert_eq!(found, 0);
    // What is chosen for emulated products is remembered. There is no count of bits to report.
    let (desc, emulation) = (Object::new("MatmulDesc", &[79, 1]), Object::new("EmulationDesc", &[]));
    emulation.set(3, 55_i32.to_ne_bytes());
    desc.set(38, emulation.1.to_ne_bytes());
    let doubles = [layout(R64, 4, 3), layout(R64, 3, 5), layout(R64, 4, 5)];
    let doubles = doubles.each_ref();
    assert_eq!(ask(&desc, doubles), 0);
    emulation.set(5, 4096_u64.to_ne_bytes());
    assert_eq!(ask(&desc, doubles), MISSING);
    desc.set(38, a.1.to_ne_bytes());
    assert_eq!(ask(&desc, doubles), INVALID);
    // Objects that are no more, or never were.
    let gone = layout(R32, 4, 3).1;
    assert_eq!(call("cublasLtMatrixLayoutDestroy", &[0]), INVALID);
    assert_ne!(gone, 0);
    assert_eq!(ask(&a, [&a, &b, &c]), INVALID);
    // Attributes that there are not, or of another size.
    let mut value = 1_u64;
    let set = |attribute: u64, bytes: u64, value: u64| {
        call("cublasLtMatmulDescSetAttribute", &[desc.1, attribute, value, bytes])
    };
    let place = at(&mut value);
    assert_eq!([set(99, 8, place), set(3, 8, place), set(3, 4, 0)], [INVALID; 3]);
    // Memory of the program that is too small, and that suffices.
    let mut object = [0_u64; 8];
    let place = at(&mut object[..]);
    assert_eq!(call("cublasLtMatrixLayoutInit_internal", &[place, 8, 0, 4, 3, 4]), INVALID);
    ok("cublasLtMatrixLayoutInit_internal", &[place, 64, 0, 4, 3, 4]);
    // Matrices that are longer than their allocation.
    let (small, enough) = (Buffer::new(&[0; 40]), Buffer::new(&[0; 80]));
    let desc = Object::new("MatmulDesc", &[68, 0]);
    let mut one = 1.0_f32;
    let one = at(&mut one);
    let product = |handle: u64, a_address: u64| {
        let (b_at, c_at) = (enough.address, enough.address);
        call(
            "cublasLtMatmul",
            &[handle, desc.1, one, a_address, place, b_at, b.1, one, c_at, c.1, c_at, c.1, 0, 0, 0, 0],
        )
    };
    assert_eq!(product(handle.0, small.address), INVALID);
    assert_eq!(product(handle.0, enough.address), 0);
    assert_eq!(product(17, enough.address), 1);
    // A handle of cuBLASLt is one too.
    let mut light = 0;
    ok("cublasLtCreate", &[at(&mut light)]);
    assert_eq!(product(light, enough.address), 0);
    ok("cublasLtDestroy", &[light]);
    assert_eq!(product(light, enough.address), 1);
}
