//! Kernels whose threads share data within a block, or within a warp.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::Criterion;
use half::f16;
use half::slice::HalfFloatSliceExt;
use ptxvm::{Arg, Device};

use super::{Kernel, Row, Work, bits, compare, floats, native, sequence};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches").join(name)
}

fn bits_of(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

pub fn all(c: &mut Criterion, rows: &mut Vec<Row>) {
    stencil(c, rows);
    transpose(c, rows);
    normalize(c, rows);
    scan(c, rows);
    attention(c, rows);
}

fn stencil(c: &mut Criterion, rows: &mut Vec<Row>) {
    let grid = [WIDTH as u32 / 32, WIDTH as u32 / 8, 1];
    let input = floats((WIDTH + 2) * (WIDTH + 2), 12);
    image(c, rows, ["stencil", "stencil 2048^2"], grid, &input, native::stencil);
}

fn transpose(c: &mut Criterion, rows: &mut Vec<Row>) {
    let grid = [WIDTH as u32 / 32, WIDTH as u32 / 32, 1];
    let input = floats(WIDTH * WIDTH, 13);
    image(c, rows, ["transpose", "transpose 2048^2"], grid, &input, native::transpose);
}

/// Columns and rows of an image.
const WIDTH: usize = 2048;

/// A kernel that makes an image of another, by blocks of 32 by 8 threads. `names`: of the kernel, and of its row.
fn image(
    c: &mut Criterion,
    rows: &mut Vec<Row>,
    names: [&'static str; 2],
    grid: [u32; 3],
    input: &[f32],
    native: fn(&[f32], &mut [f32], usize),
) {
    let device = Device::new();
    let mut output = vec![0f32; WIDTH * WIDTH];
    let (din, dout) = (device.array(input).expect("room"), device.zeros::<f32>(output.len()).expect("room"));
    let args = vec![Arg::from(&dout), Arg::from(&din), Arg::from(WIDTH as u32)];
    let [name, row] = names;
    let kernel = Kernel::of_file(&file("blocks.ptx"), &device, name, grid, [32, 8, 1], args);
    kernel.run(1, None);
    native(input, &mut output, WIDTH);
    assert_eq!(bits(&dout), bits_of(&output), "{name}");
    compare(c, rows, row, Work::Bytes(output.len() * 8), &kernel, || {
        native(black_box(input), black_box(&mut output), WIDTH);
    });
}

/// Blocks of 32 threads.
fn normalize(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let count = 32768usize;
    let input = floats(count * native::NORMALIZED, 14);
    let mut output = vec![0f32; input.len()];
    let (din, dout) = (device.array(&input).expect("room"), device.zeros::<f32>(input.len()).expect("room"));
    let args = vec![Arg::from(&dout), Arg::from(&din)];
    let grid = [count as u32, 1, 1];
    let kernel = Kernel::of_file(&file("blocks.ptx"), &device, "normalize", grid, [32, 1, 1], args);
    kernel.run(1, None);
    native::normalize(&input, &mut output);
    assert_eq!(bits(&dout), bits_of(&output), "normalize");
    compare(c, rows, "32K blocks of a warp", Work::Bytes(input.len() * 8), &kernel, || {
        native::normalize(black_box(&input), black_box(&mut output));
    });
}

fn scan(c: &mut Criterion, rows: &mut Vec<Row>) {
    let device = Device::new();
    let count = 16usize << 20;
    let input: Vec<u32> = sequence(15).take(count).map(|value| (value * 1e6) as u32).collect();
    let mut output = vec![0u32; count];
    let (din, dout) = (device.array(&input).expect("room"), device.zeros::<u32>(count).expect("room"));
    let tiles = device.zeros::<u64>(count / 1024).expect("room");
    let args = vec![Arg::from(&dout), Arg::from(&din), Arg::from(&tiles)];
    let grid = [(count / 1024) as u32, 1, 1];
    let kernel =
        Kernel::of_file(&file("blocks.ptx"), &device, "scan", grid, [256, 1, 1], args).clearing(tiles);
    kernel.run(1, None);
    native::scan(&input, &mut output);
    assert_eq!(dout.read().expect("a readable array"), output, "scan");
    compare(c, rows, "look-back scan 16M", Work::Bytes(count * 8), &kernel, || {
        native::scan(black_box(&input), black_box(&mut output));
    });
}

/// Triton's, of 4 heads of 512 rows of 64 halves each (benches/attention.py).
fn attention(c: &mut Criterion, rows: &mut Vec<Row>) {
    const D: usize = native::HEAD;
    let device = Device::new();
    let (heads, length) = (4usize, 512usize);
    let halves = |seed| -> Vec<f16> {
        sequence(seed).take(heads * length * D).map(|value| f16::from_f32(value * 2.0 - 1.0)).collect()
    };
    let (q, k, v) = (halves(16), halves(17), halves(18));
    let array = |values: &[f16]| device.array(values).expect("room");
    let inputs = [array(&q), array(&k), array(&v)];
    let output = device.zeros::<f16>(q.len()).expect("room");
    let mut args: Vec<Arg> = inputs.iter().map(Arg::from).collect();
    let scale = 0.125f32;
    args.extend([Arg::from(&output), Arg::from(length as u32), Arg::from(scale), Arg::from(0u64)]);
    let grid = [length as u32 / 64, heads as u32, 1];
    let kernel = Kernel::of_file(&file("attention.ptx"), &device, "attention", grid, [128, 1, 1], args);
    let kernel = kernel.with_dynamic_shared(24576);
    kernel.run(1, None);
    let mut wide = [&q, &k, &v].map(|values| vec![0f32; values.len()]);
    let mut sums = vec![0f32; q.len()];
    let mut native = |sums: &mut Vec<f32>| {
        for (wide, halves) in wide.iter_mut().zip([&q, &k, &v]) {
            black_box(halves).convert_to_f32_slice(wide);
        }
        native::attention(&wide, sums, length, scale);
    };
    native(&mut sums);
    // The kernel rounds weights to halves, and what it stores.
    let close = |(a, b): (&f16, &f32)| (a.to_f32() - b).abs() <= 2e-3;
    assert!(output.read().expect("a readable array").iter().zip(&sums).all(close), "attention");
    let work = Work::Flops(4.0 * (heads * length * length * D) as f64);
    compare(c, rows, "Triton attention 4 x 512 x 64", work, &kernel, || native(black_box(&mut sums)));
}
