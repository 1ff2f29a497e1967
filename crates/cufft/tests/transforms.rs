//! Transforms of random sizes, layouts and types against sums that follow the definition; graphs; mistakes of the program.

use std::sync::OnceLock;

use fastrand::Rng;
use half::{bf16, f16};
// The tests need their shared objects.
use {ptxvm_cufft as _, ptxvm_libcuda as _};

type Function =
    unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

/// Calls a function of the driver or of cuFFT, whose arguments are integers and pointers.
fn call(name: &str, arguments: &[u64]) -> u32 {
    static LIBRARIES: OnceLock<[libloading::Library; 2]> = OnceLock::new();
    let [driver, cufft] = LIBRARIES.get_or_init(|| {
        ["libptxvm_libcuda.so", "libptxvm_cufft.so"].map(|name| {
            let path = std::env::current_exe().expect("a path").with_file_name(name);
            // SAFETY: loading them has no effects that could harm this process.
            unsafe { libloading::Library::new(path) }.expect("the test built it")
        })
    });
    let library = if name.starts_with("cufft") { cufft } else { driver };
    let mut all = [0; 15];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = all;
    // SAFETY: the function is of C, and the caller passes what it takes. More arguments do no harm.
    unsafe {
        let function = library.get::<Function>(name.as_bytes()).expect("a function");
        function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    }
}

fn good(name: &str, arguments: &[u64]) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

fn place<T>(place: &mut T) -> u64 {
    (&raw mut *place).expose_provenance() as u64
}

fn start<T>(values: &[T]) -> u64 {
    values.as_ptr().expose_provenance() as u64
}

/// Device memory with these bytes.
fn memory(bytes: &[u8]) -> u64 {
    let (mut context, mut address) = (0u64, 0u64);
    good("cuInit", &[0]);
    good("cuDevicePrimaryCtxRetain", &[place(&mut context), 0]);
    good("cuCtxSetCurrent", &[context]);
    good("cuMemAlloc_v2", &[place(&mut address), bytes.len() as u64]);
    good("cuMemcpyHtoD_v2", &[address, start(bytes), bytes.len() as u64]);
    address
}

fn read(address: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0u8; bytes];
    good("cuMemcpyDtoH_v2", &[data.as_mut_ptr().expose_provenance() as u64, address, bytes as u64]);
    data
}

/// A `cudaDataType` of real numbers, the one of complex numbers, the bytes of a number, and the relative error of a rounding.
#[derive(Clone, Copy, Debug)]
struct Precision {
    real: u64,
    complex: u64,
    bytes: usize,
    unit: f64,
}

const HALF: Precision = Precision { real: 2, complex: 6, bytes: 2, unit: 1.0 / 2048.0 };
const BFLOAT16: Precision = Precision { real: 14, complex: 15, bytes: 2, unit: 1.0 / 256.0 };
const SINGLE: Precision = Precision { real: 0, complex: 4, bytes: 4, unit: f32::EPSILON as f64 / 2.0 };
const DOUBLE: Precision = Precision { real: 1, complex: 5, bytes: 8, unit: f64::EPSILON / 2.0 };

impl Precision {
    fn encode(self, value: f64) -> Vec<u8> {
        match (self.bytes, self.real) {
            (2, 2) => f16::from_f64(value).to_le_bytes().to_vec(),
            (2, _) => bf16::from_f64(value).to_le_bytes().to_vec(),
            (4, _) => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        }
    }

    fn decode(self, bytes: &[u8]) -> f64 {
        match (bytes, self.real) {
            (&[a, b], 2) => f16::from_le_bytes([a, b]).to_f64(),
            (&[a, b], _) => bf16::from_le_bytes([a, b]).to_f64(),
            (&[a, b, c, d], _) => f32::from_le_bytes([a, b, c, d]).into(),
            (bytes, _) => f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        }
    }
}

/// A complex number.
type Pair = [f64; 2];

/// One side of a plan: extents of the storage, stride, distance.
#[derive(Clone, Debug)]
struct Side {
    counts: Vec<usize>,
    extents: Vec<usize>,
    stride: usize,
    distance: usize,
    width: usize,
}

impl Side {
    /// The manual's formula: `b * dist + ((x * embed[1] + y) * embed[2] + z) * stride`, in scalars.
    fn at(&self, of_batch: usize, index: &[usize]) -> usize {
        let inner = index.iter().zip(&self.extents).fold(0, |sum, (&index, &extent)| sum * extent + index);
        (of_batch * self.distance + inner * self.stride) * self.width
    }

    fn scalars(&self, batch: usize) -> usize {
        let last: Vec<usize> = self.counts.iter().map(|count| count - 1).collect();
        self.at(batch - 1, &last) + self.width
    }
}

/// All indices within counts, the last one fastest.
fn indices(counts: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &count in counts {
        all = all
            .into_iter()
            .flat_map(|index| (0..count).map(move |at| [index.clone(), vec![at]].concat()))
            .collect();
    }
    all
}

/// The transform by its definition, along one dimension after the other, with sums that carry what they lose.
fn transform(values: &mut [Pair], sizes: &[usize], sign: f64) {
    let mut inner = values.len();
    for &size in sizes {
        inner /= size;
        let old = values.to_vec();
        for (at, value) in values.iter_mut().enumerate() {
            let (block, k, rest) = (at / inner / size * size, at / inner % size, at % inner);
            let (mut sum, mut lost) = ([0.0; 2], [0.0; 2]);
            for j in 0..size {
                let angle = sign * std::f64::consts::TAU * ((j * k % size) as f64) / size as f64;
                let ([re, im], (sin, cos)) = (old[(block + j) * inner + rest], angle.sin_cos());
                for (part, term) in [re * cos, -im * sin, re * sin, im * cos].into_iter().enumerate() {
                    let (part, old) = (part / 2, sum[part / 2]);
                    sum[part] = old + term;
                    let taken = sum[part] - old;
                    lost[part] += (old - (sum[part] - taken)) + (term - taken);
                }
            }
            *value = [sum[0] + lost[0], sum[1] + lost[1]];
        }
    }
}

/// Runs a random transform, and returns its error relative to the documented bound.
fn random(random: &mut Rng) -> f64 {
    let precision = [SINGLE, DOUBLE, SINGLE, DOUBLE, HALF, BFLOAT16][random.usize(0..6)];
    let is_short = precision.bytes == 2;
    let rank = random.usize(1..4);
    let sizes: Vec<usize> = (0..rank)
        .map(|_| if is_short { 1 << random.usize(0..5) } else { random.usize(1..[400, 30, 12][rank - 1]) })
        .collect();
    let batch = random.usize(1..4);
    // C2C forward, C2C backward, R2C, C2R.
    let kind = random.usize(0..4);
    let is_real = [kind == 2, kind == 3];
    let (mut in_place, advanced) = (random.bool(), random.bool());
    in_place &= !advanced;
    let sides: Vec<Side> = is_real
        .map(|is_real| {
            let mut counts = sizes.clone();
            if kind >= 2 && !is_real {
                counts[rank - 1] = counts[rank - 1] / 2 + 1;
            }
            let mut extents = counts.clone();
            if in_place && is_real {
                extents[rank - 1] = (counts[rank - 1] / 2 + 1) * 2;
            }
            let mut side =
                Side { counts, extents, stride: 1, distance: 0, width: if is_real { 1 } else { 2 } };
            if advanced {
                side.extents.iter_mut().for_each(|extent| *extent += random.usize(0..3));
                side.stride = random.usize(1..4);
            }
            side.distance = side.extents.iter().product::<usize>() * side.stride;
            if advanced {
                side.distance += random.usize(0..3);
            }
            side
        })
        .to_vec();

    // What the program has, and what the definition says.
    let sign = if matches!(kind, 1 | 3) { 1.0 } else { -1.0 };
    let full = indices(&sizes);
    let mut scalars: Vec<f64> = (0..sides[0].scalars(batch)).map(|_| random.f64() - 0.5).collect();
    for scalar in &mut scalars {
        *scalar = precision.decode(&precision.encode(*scalar));
    }
    let mut expected = Vec::new();
    for of_batch in 0..batch {
        let mut values = vec![[0.0; 2]; full.len()];
        if kind == 3 {
            // Real results have an input that is its own mirror image.
            for (value, index) in values.iter_mut().zip(&full) {
                let mirrored: Vec<usize> =
                    index.iter().zip(&sizes).map(|(&index, &size)| (size - index) % size).collect();
                let is_lower = index[rank - 1] < sides[0].counts[rank - 1];
                let at = sides[0].at(of_batch, if is_lower { index } else { &mirrored });
                *value = [scalars[at], if is_lower { scalars[at + 1] } else { -scalars[at + 1] }];
            }
            // In the planes that are their own images, one half follows from the other.
            let flat =
                |index: &[usize]| index.iter().zip(&sizes).fold(0, |sum, (&index, &size)| sum * size + index);
            for index in &full {
                let mirrored: Vec<usize> =
                    index.iter().zip(&sizes).map(|(&index, &size)| (size - index) % size).collect();
                if mirrored[rank - 1] == index[rank - 1] {
                    let [re, im] = values[flat(&mirrored)];
                    let image = if *index == mirrored { [re, 0.0] } else { [re, -im] };
                    values[flat(index)] = image;
                    let at = sides[0].at(of_batch, index);
                    [scalars[at], scalars[at + 1]] = image;
                }
            }
        } else {
            for (value, index) in values.iter_mut().zip(&full) {
                let at = sides[0].at(of_batch, index);
                *value = [scalars[at], if kind == 2 { 0.0 } else { scalars[at + 1] }];
            }
        }
        transform(&mut values, &sizes, sign);
        expected.push(values);
    }

    // The memory: the input, and the output with a pattern between its numbers.
    let input: Vec<u8> = scalars.iter().flat_map(|&scalar| precision.encode(scalar)).collect();
    let output_bytes = sides[1].scalars(batch) * precision.bytes;
    let from = memory(&[input.clone(), vec![0x77; output_bytes.saturating_sub(input.len())]].concat());
    let to = if in_place { from } else { memory(&vec![0x77; output_bytes]) };
    let mut plan = 0i32;
    let mut size = 9usize;
    good("cufftCreate", &[place(&mut plan)]);
    let many = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
    let (n, extents) = (many(&sizes), [many(&sides[0].extents), many(&sides[1].extents)]);
    let embed = |at: usize| if advanced { start(&extents[at]) } else { 0 };
    let types = is_real.map(|is_real| if is_real { precision.real } else { precision.complex });
    good(
        "cufftXtMakePlanMany",
        &[
            plan as u64,
            rank as u64,
            start(&n),
            embed(0),
            sides[0].stride as u64,
            sides[0].distance as u64,
            types[0],
            embed(1),
            sides[1].stride as u64,
            sides[1].distance as u64,
            types[1],
            batch as u64,
            place(&mut size),
            precision.complex,
        ],
    );
    assert_eq!(size, 0);
    good("cufftXtExec", &[plan as u64, from, to, sign as i64 as u64]);
    good("cufftDestroy", &[plan as u64]);
    let result = read(to, output_bytes);
    good("cuMemFree_v2", &[from]);
    if !in_place {
        good("cuMemFree_v2", &[to]);
    }

    // The error of all numbers together, and what lies between them.
    let decoded: Vec<f64> = result.chunks(precision.bytes).map(|bytes| precision.decode(bytes)).collect();
    let mut is_number = vec![false; decoded.len()];
    let (mut error, mut whole) = (0.0, 0.0);
    for (of_batch, values) in expected.iter().enumerate() {
        for (index, value) in full.iter().zip(values) {
            if index[rank - 1] >= sides[1].counts[rank - 1] {
                continue;
            }
            let at = sides[1].at(of_batch, index);
            for part in 0..sides[1].width {
                is_number[at + part] = true;
                error += (decoded[at + part] - value[part]).powi(2);
                whole += value[part].powi(2);
            }
        }
    }
    if !in_place {
        for (bytes, _) in result.chunks(precision.bytes).zip(&is_number).filter(|(_, is_number)| !**is_number)
        {
            assert!(bytes.iter().all(|&byte| byte == 0x77), "a place between the numbers was written");
        }
    }
    let bound = if is_short { 1.5 } else { 4.0 * (1.0 + (full.len() as f64).log2()) };
    let error = (error / f64::max(whole, f64::MIN_POSITIVE)).sqrt() / precision.unit / bound;
    assert!(
        error <= 1.0,
        "{error} of the bound: {precision:?} kind {kind} {sizes:?} batch {batch} {sides:?}"
    );
    error
}

#[test]
fn transforms_are_what_the_definition_says() {
    let count = std::env::var("PTXVM_SHAPES").map_or(300, |count| count.parse().expect("a number"));
    let mut rng = Rng::with_seed(1);
    let worst = (0..count).map(|_| random(&mut rng)).fold(0.0, f64::max);
    println!("{count} transforms, at most {worst:.2} of the bound");
}

/// A plan of one dimension.
fn plan(n: i32, kind: u64, batch: i32) -> u64 {
    let mut plan = 0i32;
    good("cufftPlan1d", &[place(&mut plan), n as u64, kind, batch as u64]);
    plan as u64
}

const C2C: u64 = 0x29;
const R2C: u64 = 0x2a;

#[test]
fn graphs_capture_transforms() {
    let ones: Vec<u8> = [1f32, 0.0].repeat(8).into_iter().flat_map(f32::to_le_bytes).collect();
    let data = memory(&ones);
    let plan = plan(8, C2C, 1);
    let (mut stream, mut graph, mut exec) = (0u64, 0u64, 0u64);
    good("cuStreamCreate", &[place(&mut stream), 1]);
    good("cufftSetStream", &[plan, stream]);
    good("cuStreamBeginCapture_v2", &[stream, 1]);
    good("cufftExecC2C", &[plan, data, data, -1i64 as u64]);
    good("cuStreamEndCapture", &[stream, place(&mut graph)]);
    good("cuGraphInstantiateWithFlags", &[place(&mut exec), graph, 0]);
    // A captured transform needs its plan no more.
    good("cufftDestroy", &[plan]);
    assert_eq!(read(data, 64), ones);
    // Twice forward is eight times the mirror image.
    for _ in 0..2 {
        good("cuGraphLaunch", &[exec, stream]);
    }
    good("cuStreamSynchronize", &[stream]);
    let eight: Vec<u8> = [8f32, 0.0].repeat(8).into_iter().flat_map(f32::to_le_bytes).collect();
    assert_eq!(read(data, 64), eight);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = Rng::with_seed(3);
    let values: Vec<u8> = (0..2 * 70 * 1001).flat_map(|_| (rng.f32() - 0.5).to_le_bytes()).collect();
    let run = || {
        let data = memory(&values);
        let mut plan = 0i32;
        good("cufftPlan2d", &[place(&mut plan), 70, 1001, C2C]);
        good("cufftExecC2C", &[plan as u64, data, data, 1]);
        read(data, values.len())
    };
    let (first, alone) = (run(), std::env::var("RAYON_NUM_THREADS").is_ok());
    if alone {
        let sum = first.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
        println!("sum {sum}");
        return;
    }
    let of_threads = |threads: &str| {
        let output = std::process::Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "results_do_not_depend_on_the_number_of_threads", "--nocapture"])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .expect("this program starts");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().find_map(|line| line.split_once("sum ").map(|(_, sum)| sum.to_owned())).expect("a sum")
    };
    assert_eq!(of_threads("1"), of_threads("5"));
}

#[test]
fn mistakes_are_refused() {
    let data = memory(&[0; 64]);
    let mut plan_place = 0i32;
    let new = |n: i32, kind: u64, batch: i32| {
        call(
            "cufftPlan1d",
            &[(&raw const plan_place).expose_provenance() as u64, n as u64, kind, batch as u64],
        )
    };
    assert_eq!([new(0, C2C, 1), new(8, C2C, 0), new(8, 7, 1), new(-3, C2C, 1)], [8, 8, 3, 8]);
    assert_eq!(call("cufftPlan1d", &[0, 8, C2C, 1]), 4);
    good("cufftCreate", &[place(&mut plan_place)]);
    let empty = plan_place as u64;
    assert_eq!(call("cufftExecC2C", &[empty, data, data, 1]), 1, "nothing to transform");
    good("cufftDestroy", &[empty]);
    assert_eq!(
        [call("cufftDestroy", &[empty]), call("cufftSetStream", &[empty, 0])],
        [1, 1],
        "a stale handle"
    );
    assert_eq!(call("cufftExecC2C", &[12345, data, data, 1]), 1);
    let good_plan = plan(8, C2C, 1);
    assert_eq!(call("cufftExecC2C", &[good_plan, data, data, 0]), 4, "no direction");
    assert_eq!(call("cufftExecC2C", &[good_plan, 0, data, 1]), 4, "no input");
    assert_eq!(call("cufftExecZ2Z", &[good_plan, data, data, 1]), 3, "of another type");
    good("cufftExecC2C", &[good_plan, data, data, 1]);
    assert_eq!(call("cufftXtSetCallback", &[good_plan, 0, 0, 0]), 16, "not supported");
    // A size that no memory has costs nothing, and is noticed where it is used.
    let huge = plan(i32::MAX, R2C, 1000);
    assert_eq!(call("cufftExecR2C", &[huge, data, data]), 6);
    // Rows in place are longer than those of real numbers alone: 10 numbers.
    let real = plan(14, R2C, 1);
    good("cufftExecR2C", &[real, data, data]);
    assert_eq!(call("cufftExecR2C", &[plan(16, R2C, 1), data, data]), 6);
}
