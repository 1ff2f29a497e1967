//! Kernels in ptxvm against a native loop of the same function, in one run.
//!
//! `cargo bench -p ptxvm --bench kernels` times both with Criterion, checks that they computed the same, and ends with a
//! table of ratios: on one host thread and on two, and on the slower instruction sets of the machine.
//! benches/RESULTS.md has recorded runs and says where the time goes.

mod blocks;
mod native;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use criterion::Criterion;
use half::f16;
use half::slice::HalfFloatSliceExt;
use machine::HostPath;
use ptxvm::{Arg, Array, Device, Loaded, Module};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// A loaded example kernel with one launch of it.
struct Kernel {
    loaded: Loaded,
    name: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    args: Vec<Arg>,
    dynamic_shared: u64,
    /// What is 0 before each launch.
    cleared: Option<Array<u64>>,
}

impl Kernel {
    fn new(device: &Device, name: &'static str, grid: [u32; 3], block: [u32; 3], args: Vec<Arg>) -> Kernel {
        let file = Path::new(EXAMPLES).join(name).join(format!("{name}.ptx"));
        Kernel::of_file(&file, device, name, grid, block, args)
    }

    fn of_file(
        file: &Path,
        device: &Device,
        name: &'static str,
        grid: [u32; 3],
        block: [u32; 3],
        args: Vec<Arg>,
    ) -> Kernel {
        let module = Module::from_file(file);
        let loaded = device.load(&module.expect("an example that checks")).expect("room for its variables");
        Kernel { loaded, name, grid, block, args, dynamic_shared: 0, cleared: None }
    }

    fn with_dynamic_shared(self, dynamic_shared: u64) -> Kernel {
        Kernel { dynamic_shared, ..self }
    }

    fn clearing(self, array: Array<u64>) -> Kernel {
        Kernel { cleared: Some(array), ..self }
    }

    /// One launch; returns the thread-instructions executed.
    fn run(&self, threads: usize, path: Option<HostPath>) -> u64 {
        if let Some(array) = &self.cleared {
            array.fill(0).expect("a writable array");
        }
        let mut launch = self.loaded.launch(self.name).grid(self.grid).block(self.block);
        for arg in &self.args {
            launch = launch.arg(arg.clone());
        }
        let configured = launch.configure(|c| {
            c.threads = Some(threads);
            c.host_path = path;
            c.dynamic_shared = self.dynamic_shared;
        });
        configured.run().expect("a launch that ends").thread_instructions
    }
}

/// What a kernel does at least, whoever computes it.
#[derive(Clone, Copy)]
enum Work {
    /// Bytes read and written.
    Bytes(usize),
    /// Floating-point operations, two for a fused multiply-add.
    Flops(f64),
    /// Operations on integers.
    Operations(f64),
}

impl Work {
    /// Done in so many nanoseconds.
    fn rate(self, nanoseconds: f64) -> String {
        match self {
            Work::Bytes(bytes) => format!("{:.2} GB/s", bytes as f64 / nanoseconds),
            Work::Operations(operations) => format!("{:.2} Gop/s", operations / nanoseconds),
            Work::Flops(flops) => format!("{:.2} GFLOP/s", flops / nanoseconds),
        }
    }
}

/// One row of the table.
struct Row {
    name: &'static str,
    work: Work,
    thread_instructions: u64,
}

/// Times both sides of a row.
fn compare(
    c: &mut Criterion,
    rows: &mut Vec<Row>,
    name: &'static str,
    work: Work,
    kernel: &Kernel,
    mut native: impl FnMut(),
) {
    let mut group = c.benchmark_group(name);
    group.bench_function("native", |b| b.iter(&mut native));
    group.bench_function("ptxvm", |b| b.iter(|| black_box(kernel.run(1, None))));
    group.bench_function("ptxvm 2 threads", |b| b.iter(|| black_box(kernel.run(2, None))));
    for path in slower_paths() {
        let name = format!("ptxvm {}", path.name());
        group.bench_function(name, |b| b.iter(|| black_box(kernel.run(1, Some(path)))));
    }
    group.finish();
    rows.push(Row { name, work, thread_instructions: kernel.run(1, None) });
}

/// The paths of this machine but the fastest.
fn slower_paths() -> Vec<HostPath> {
    let mut paths = machine::available_paths();
    paths.pop();
    paths.reverse();
    paths
}

/// A deterministic sequence of numbers in [0, 1).
fn sequence(seed: u32) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    })
}

fn floats(count: usize, seed: u32) -> Vec<f32> {
    sequence(seed).take(count).collect()
}

fn bits(array: &Array<f32>) -> Vec<u32> {
    array.read().expect("a readable array").into_iter().map(f32::to_bits).collect()
}

fn saxpy(c: &mut Criterion, rows: &mut Vec<Row>, name: &'static str, count: usize) {
    let device = Device::new();
    let (x, mut y) = (floats(count, 1), floats(count, 2));
    let (dx, dy) = (device.array(&x).expect("room"), device.array(&y).expect("room"));
    let args = vec![Arg::from(count as u32), Arg::from(0.5f32), Arg::from(&dx), Arg::from(&dy)];
    let kernel = Kernel::new(&device, "saxpy", [count.div_ceil(256) as u32, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    native::saxpy(0.5, &x, &mut y);
    assert_eq!(bits(&dy), y.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), "{name}");
    let work = Work::Bytes(count * 12);
    compare(c, rows, name, work, &kernel, || native::saxpy(0.5, black_box(&x), black_box(&mut y)));
}

fn clamp(c: &mut Criterion, rows: &mut Vec<Row>, name: &'static str, halves: usize) {
    let device = Device::new();
    let x: Vec<u16> =
        sequence(3).take(halves).map(|v| half::f16::from_f32(v * 8.0 - 4.0).to_bits()).collect();
    let mut y = vec![0u16; halves];
    let (dx, dy) = (device.array(&x).expect("room"), device.zeros::<u16>(halves).expect("room"));
    let pairs = (halves / 2) as u32;
    let (low, high) = (0xbc00u16, 0x3c00u16);
    let pair = |h: u16| Arg::from(u32::from(h) << 16 | u32::from(h));
    let args = vec![Arg::from(&dx), Arg::from(&dy), pair(low), pair(high), Arg::from(pairs)];
    let kernel = Kernel::new(&device, "f16x2_clamp", [pairs.div_ceil(256), 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    native::clamp(low, high, &x, &mut y);
    assert_eq!(dy.read().expect("a readable array"), y, "{name}");
    compare(c, rows, name, Work::Bytes(halves * 4), &kernel, || {
        native::clamp(low, high, black_box(&x), black_box(&mut y))
    });
}

fn mandelbrot(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let size = 1024usize;
    let counts = device.zeros::<u32>(size * size).expect("room");
    let (left, top, step) = (-2.2f32, 1.5f32, 3.0 / 1024.0f32);
    let args = vec![
        Arg::from(&counts),
        Arg::from(size as u32),
        Arg::from(size as u32),
        Arg::from(256u32),
        Arg::from(left),
        Arg::from(top),
        Arg::from(step),
    ];
    let kernel = Kernel::new(&device, "mandelbrot", [64, 128, 1], [16, 8, 1], args);
    kernel.run(1, None);
    let mut native_counts = vec![0u32; size * size];
    native::mandelbrot(&mut native_counts, size, 256, left, top, step);
    assert_eq!(counts.read().expect("a readable array"), native_counts, "mandelbrot");
    // Eight in each turn of the loop, a fused multiply-add counted twice.
    let flops = native_counts.iter().map(|&count| f64::from(count) * 8.0).sum();
    compare(c, rows, "mandelbrot 1024^2 x 256", Work::Flops(flops), &kernel, || {
        native::mandelbrot(black_box(&mut native_counts), size, 256, left, top, step);
    });
}

/// Loops of integers: one that lanes leave at very different times, and one that they leave together.
fn integers(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let file = Path::new(EXAMPLES).join("../benches/loops.ptx");
    let (count, grid) = (1usize << 20, [4096, 1, 1]);
    let out = device.zeros::<u32>(count).expect("room");
    let read = || out.read().expect("a readable array");

    let (first, limit) = (1u32, 1000u32);
    let args = vec![Arg::from(&out), Arg::from(first), Arg::from(limit)];
    let kernel = Kernel::of_file(&file, &device, "collatz", grid, [256, 1, 1], args);
    kernel.run(1, None);
    let mut steps = vec![0u32; count];
    native::collatz(&mut steps, first, limit);
    assert_eq!(read(), steps, "collatz");
    let work = Work::Operations(steps.iter().map(|&steps| f64::from(steps) * 5.0).sum());
    compare(c, rows, "collatz 1M", work, &kernel, || {
        native::collatz(black_box(&mut steps), first, limit);
    });

    let rounds = 64u32;
    let args = vec![Arg::from(&out), Arg::from(rounds)];
    let kernel = Kernel::of_file(&file, &device, "hash", grid, [256, 1, 1], args);
    kernel.run(1, None);
    let mut hashes = vec![0u32; count];
    native::hash(&mut hashes, rounds);
    assert_eq!(read(), hashes, "hash");
    let work = Work::Operations(f64::from(rounds) * 9.0 * count as f64);
    compare(c, rows, "integer hash 1M x 64", work, &kernel, || {
        native::hash(black_box(&mut hashes), rounds);
    });
}

/// Loops that read memory: the same elements in all lanes, and elements that are far apart; and one of f64.
fn numbers(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let file = Path::new(EXAMPLES).join("../benches/loops.ptx");

    let count = 4096usize;
    let bodies: Vec<[f32; 4]> = floats(4 * count, 7).as_chunks().0.to_vec();
    let (input, out) = (device.array(bodies.as_flattened()), device.zeros::<f32>(4 * count));
    let (input, out) = (input.expect("room"), out.expect("room"));
    let args = vec![Arg::from(&out), Arg::from(&input), Arg::from(count as u32)];
    let kernel = Kernel::of_file(&file, &device, "nbody", [16, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut accelerations = vec![[0f32; 4]; count];
    native::nbody(&mut accelerations, &bodies);
    let expected: Vec<u32> = accelerations.as_flattened().iter().map(|value| value.to_bits()).collect();
    assert_eq!(bits(&out), expected, "nbody");
    compare(c, rows, "N-body 4096", Work::Flops(18.0 * (count * count) as f64), &kernel, || {
        native::nbody(black_box(&mut accelerations), black_box(&bodies));
    });

    let (count, columns) = (16384usize, 256usize);
    let matrix = floats(count * columns, 8);
    let (input, out) = (device.array(&matrix).expect("room"), device.zeros::<f32>(count).expect("room"));
    let args = vec![Arg::from(&out), Arg::from(&input), Arg::from(columns as u32)];
    let kernel = Kernel::of_file(&file, &device, "row_sums", [64, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut sums = vec![0f32; count];
    native::row_sums(&mut sums, &matrix, columns);
    assert_eq!(bits(&out), sums.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), "row sums");
    compare(c, rows, "row sums 16K x 256", Work::Flops((count * columns) as f64), &kernel, || {
        native::row_sums(black_box(&mut sums), black_box(&matrix), columns);
    });

    let (count, rounds) = (1usize << 20, 64u32);
    let out = device.zeros::<f64>(count).expect("room");
    let args = vec![Arg::from(&out), Arg::from(rounds)];
    let kernel = Kernel::of_file(&file, &device, "logistic", [4096, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut values = vec![0f64; count];
    native::logistic(&mut values, rounds);
    assert_eq!(out.read().expect("a readable array"), values, "logistic");
    let flops = 3.0 * f64::from(rounds) * count as f64;
    compare(c, rows, "f64 logistic map 1M x 64", Work::Flops(flops), &kernel, || {
        native::logistic(black_box(&mut values), rounds);
    });

    let input: Vec<f64> = floats(count, 9).into_iter().map(f64::from).collect();
    let source = device.array(&input).expect("room");
    let args = vec![Arg::from(&out), Arg::from(&source)];
    let kernel = Kernel::of_file(&file, &device, "rational", [4096, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    native::rational(&input, &mut values);
    assert_eq!(out.read().expect("a readable array"), values, "rational");
    compare(c, rows, "f64 rational function 1M", Work::Bytes(count * 16), &kernel, || {
        native::rational(black_box(&input), black_box(&mut values));
    });

    let table = floats(4 << 16, 12);
    let index: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 9 & 0xffff).collect();
    let (places, elements) = (device.array(&index).expect("room"), device.array(&table).expect("room"));
    let out = device.zeros::<f32>(count).expect("room");
    let args = vec![Arg::from(&out), Arg::from(&places), Arg::from(&elements)];
    let kernel = Kernel::of_file(&file, &device, "gather", [4096, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut sums = vec![0f32; count];
    native::gather(&mut sums, &index, &table);
    assert_eq!(bits(&out), sums.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), "gather");
    compare(c, rows, "gather of rows 1M x 4", Work::Bytes(count * 28), &kernel, || {
        native::gather(black_box(&mut sums), black_box(&index), black_box(&table));
    });
}

fn matmul(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let n = 512usize;
    let (a, b) = (floats(n * n, 5), floats(n * n, 6));
    let mut product = vec![0f32; n * n];
    let (da, db) = (device.array(&a).expect("room"), device.array(&b).expect("room"));
    let dc = device.zeros::<f32>(n * n).expect("room");
    let extent = Arg::from(n as u32);
    let args = vec![Arg::from(&da), Arg::from(&db), Arg::from(&dc), extent.clone(), extent.clone(), extent];
    let kernel = Kernel::new(&device, "matmul", [32, 32, 1], [16, 16, 1], args);
    kernel.run(1, None);
    native::matmul(&a, &b, &mut product, n);
    assert_eq!(bits(&dc), product.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), "matmul");
    compare(c, rows, "matmul 512^3", Work::Flops(2.0 * (n * n * n) as f64), &kernel, || {
        native::matmul(black_box(&a), black_box(&b), black_box(&mut product), n);
    });
}

/// The same product on `mma.sync`, from halves (benches/mma.ptx).
fn mma(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let n = 512usize;
    let halves = |seed| -> Vec<f16> { sequence(seed).take(n * n).map(f16::from_f32).collect() };
    let (a, b) = (halves(10), halves(11));
    // Tiles as the lanes of mma.m16n8k16 hold them (PTX ISA, "Matrix Fragments for mma.m16n8k16").
    let (mut tiles_a, mut tiles_b) = (Vec::new(), Vec::new());
    for (tile, step, lane) in lanes_of_tiles(n / 16, n / 16) {
        for element in 0..8 {
            let row = tile * 16 + lane / 4 + element / 2 % 2 * 8;
            let k = step * 16 + lane % 4 * 2 + element % 2 + element / 4 * 8;
            tiles_a.push(a[row * n + k]);
        }
    }
    for (tile, step, lane) in lanes_of_tiles(n / 8, n / 16) {
        for element in 0..4 {
            let k = step * 16 + lane % 4 * 2 + element % 2 + element / 2 * 8;
            tiles_b.push(b[k * n + tile * 8 + lane / 4]);
        }
    }
    let (da, db) = (device.array(&tiles_a).expect("room"), device.array(&tiles_b).expect("room"));
    let dc = device.zeros::<f32>(n * n).expect("room");
    let args = vec![Arg::from(&da), Arg::from(&db), Arg::from(&dc)];
    let file = Path::new(EXAMPLES).join("../benches/mma.ptx");
    let kernel = Kernel::of_file(&file, &device, "mma", [512, 1, 1], [128, 1, 1], args);
    kernel.run(1, None);
    let mut wide = [vec![0f32; n * n], vec![0f32; n * n]];
    let mut product = vec![0f32; n * n];
    let mut native = move |product: &mut [f32]| {
        black_box(&a).convert_to_f32_slice(&mut wide[0]);
        black_box(&b).convert_to_f32_slice(&mut wide[1]);
        native::matmul(&wide[0], &wide[1], product, n);
    };
    native(&mut product);
    assert_eq!(bits(&dc), product.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), "mma");
    let work = Work::Flops(2.0 * (n * n * n) as f64);
    compare(c, rows, "mma.sync f16 512^3", work, &kernel, || native(black_box(&mut product)));
}

/// Every lane of every step of every tile, in the order of memory.
fn lanes_of_tiles(tiles: usize, steps: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..tiles)
        .flat_map(move |tile| (0..steps).flat_map(move |step| (0..32).map(move |lane| (tile, step, lane))))
}

fn block_sum(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let count = 16usize << 20;
    // Integers, so that every order of additions gives the same sums.
    let x: Vec<f32> = sequence(7).take(count).map(|v| (v * 16.0).floor()).collect();
    let blocks = count / (256 * 8);
    let (dx, sums) = (device.array(&x).expect("room"), device.zeros::<f32>(blocks).expect("room"));
    let args = vec![Arg::from(&dx), Arg::from(count as u32), Arg::from(&sums)];
    let kernel = Kernel::new(&device, "block_sum", [blocks as u32, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut native_sums = vec![0f32; blocks];
    native::block_sum(&x, &mut native_sums);
    assert_eq!(sums.read().expect("a readable array"), native_sums, "block_sum");
    compare(c, rows, "block reduction 16M", Work::Bytes(count * 4), &kernel, || {
        native::block_sum(black_box(&x), black_box(&mut native_sums))
    });
}

fn softmax(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let (height, width) = (4096usize, 1024usize);
    let x: Vec<f32> = sequence(8).take(height * width).map(|v| v * 16.0 - 8.0).collect();
    let (dx, dy) = (device.array(&x).expect("room"), device.zeros::<f32>(height * width).expect("room"));
    let args = vec![Arg::from(&dx), Arg::from(&dy), Arg::from(width as u32)];
    let kernel = Kernel::new(&device, "softmax", [height as u32, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut y = vec![0f32; height * width];
    native::softmax(&x, &mut y, width);
    // The sums are taken in other orders.
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs();
    assert!(dy.read().expect("a readable array").iter().zip(&y).all(close), "softmax");
    compare(c, rows, "softmax 4096 x 1024", Work::Bytes(height * width * 8), &kernel, || {
        native::softmax(black_box(&x), black_box(&mut y), width);
    });
}

fn histogram(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let count = 16usize << 20;
    let data: Vec<u8> = sequence(9).take(count).map(|v| (v * 256.0) as u8).collect();
    let (ddata, bins) = (device.array(&data).expect("room"), device.zeros::<u32>(256).expect("room"));
    let args = vec![Arg::from(&ddata), Arg::from(count as u32), Arg::from(&bins)];
    let kernel = Kernel::new(&device, "histogram", [(count / 4096) as u32, 1, 1], [256, 1, 1], args);
    kernel.run(1, None);
    let mut native_bins = [0u32; 256];
    native::histogram(&data, &mut native_bins);
    assert_eq!(bins.read().expect("a readable array"), native_bins, "histogram");
    compare(c, rows, "histogram 16M", Work::Bytes(count), &kernel, || {
        native::histogram(black_box(&data), black_box(&mut native_bins));
    });
}

/// Median of a benchmark in nanoseconds, from the estimates that Criterion has just written.
fn median(directory: &Path, group: &str, function: &str) -> Option<f64> {
    // Criterion replaces what file systems might refuse.
    let group: String = group.chars().map(|c| if "?\"/\\*<>:|^".contains(c) { '_' } else { c }).collect();
    let text =
        std::fs::read_to_string(directory.join(group).join(function).join("new/estimates.json")).ok()?;
    serde_json::from_str::<serde_json::Value>(&text).ok()?["median"]["point_estimate"].as_f64()
}

fn table(rows: &[Row], directory: &Path) -> String {
    let mut text = String::from("| kernel | native ms | ptxvm ms | ratio | 2 threads |");
    slower_paths().iter().for_each(|path| {
        let _ = write!(text, " {} |", path.name());
    });
    text += " thread-instructions/s | ptxvm does | native does |\n|---|---|---|---|---|---|---|---|";
    text += &"---|".repeat(slower_paths().len());
    text.push('\n');
    for row in rows {
        let time = |function: &str| median(directory, row.name, function);
        let (Some(native), Some(ours)) = (time("native"), time("ptxvm")) else { continue };
        let (n, o, ratio) = (native / 1e6, ours / 1e6, ours / native);
        let _ = write!(text, "| {} | {n:.3} | {o:.3} | {ratio:.1} |", row.name);
        let faster = time("ptxvm 2 threads").map_or(f64::NAN, |two| ours / two);
        let _ = write!(text, " {faster:.2}x |");
        for path in slower_paths() {
            let other = time(&format!("ptxvm {}", path.name())).map_or(f64::NAN, |other| other / native);
            let _ = write!(text, " {other:.1} |");
        }
        let _ = write!(text, " {:.2e} |", row.thread_instructions as f64 / (ours / 1e9));
        let _ = writeln!(text, " {} | {} |", row.work.rate(ours), row.work.rate(native));
    }
    text
}

/// What the machine can do on one thread: bytes copied a second, read and written, and operations of its widest fused
/// multiply-add. And how many times as much two threads do: they may share a core.
fn machine() -> String {
    let best = |f: &mut dyn FnMut()| {
        let time = |_| {
            let start = Instant::now();
            f();
            start.elapsed().as_nanos() as f64
        };
        (0..20).map(time).fold(f64::INFINITY, f64::min)
    };
    let (from, mut to) = (vec![1u8; 256 << 20], vec![0u8; 256 << 20]);
    let bytes = Work::Bytes(from.len() + to.len());
    let copy = [1, 2].map(|threads| {
        let part = from.len() / threads;
        best(&mut || {
            thread::scope(|scope| {
                for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
                    scope.spawn(|| black_box(to).copy_from_slice(black_box(from)));
                }
            });
        })
    });
    let turns = 1_000_000;
    let flops = Work::Flops(f64::from(turns) * native::FMA_LANES as f64 * 2.0);
    let fma = [1, 2].map(|threads| {
        best(&mut || {
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| native::fma_peak(black_box(&mut [1.0; native::FMA_LANES]), turns));
                }
            });
        })
    });
    format!(
        "one thread copies {} and multiplies and adds {}; two copy {:.2} and compute {:.2} times as much",
        bytes.rate(copy[0]),
        flops.rate(fma[0]),
        copy[0] / copy[1],
        2.0 * fma[0] / fma[1]
    )
}

fn main() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
    let mut c = Criterion::default()
        .output_directory(&directory)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut rows = Vec::new();
    saxpy(&mut c, &mut rows, "saxpy f32 16M", 16 << 20);
    saxpy(&mut c, &mut rows, "saxpy f32 32K", 32 << 10);
    clamp(&mut c, &mut rows, "f16x2 clamp 16M halves", 16 << 20);
    clamp(&mut c, &mut rows, "f16x2 clamp 128K halves", 128 << 10);
    mandelbrot(&mut c, &mut rows);
    integers(&mut c, &mut rows);
    numbers(&mut c, &mut rows);
    matmul(&mut c, &mut rows);
    mma(&mut c, &mut rows);
    block_sum(&mut c, &mut rows);
    softmax(&mut c, &mut rows);
    histogram(&mut c, &mut rows);
    blocks::all(&mut c, &mut rows);
    c.final_summary();
    println!(
        "\nhost path {}; {}; 2 threads: times as fast as one; other paths: ratio to native\n{}",
        vm_path(),
        machine(),
        table(&rows, &directory)
    );
}

fn vm_path() -> String {
    std::env::var("PTXVM_HOST_PATH").unwrap_or_else(|_| "the fastest of this machine".to_owned())
}
