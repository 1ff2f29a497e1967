//! ptxvm beside ptoxide, on one thread, with the same PTX and the same inputs; processor time.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml` prints the table of benches/RESULTS.md.

use std::hint::black_box;
use std::path::Path;

use cpu_time::ProcessTime;
use ptoxide::{Argument, Context, LaunchParams};
use ptxvm::{Arg, Device, Module};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A kernel with its launch; the last array is the result.
struct Row {
    name: &'static str,
    file: &'static str,
    grid: (u32, u32),
    block: u32,
    arguments: Vec<Given>,
}

#[derive(Clone)]
enum Given {
    Array(Vec<f32>),
    Number(u32),
    Float(f32),
}

/// The least of five times in seconds, and the result of the first run.
fn fastest(mut run: impl FnMut() -> (f64, Vec<f32>)) -> (f64, Vec<f32>) {
    let (first, result) = run();
    ((0..4).map(|_| run().0).fold(first, f64::min), result)
}

fn time<T>(f: impl FnOnce() -> T) -> (f64, T) {
    let start = ProcessTime::now();
    let result = black_box(f());
    (start.elapsed().as_secs_f64(), result)
}

fn ptoxide(row: &Row, text: &str) -> (f64, Vec<f32>) {
    fastest(|| {
        let mut context = Context::new_with_module(text).expect("it runs this PTX");
        let mut last = None;
        let mut arguments = Vec::new();
        for given in &row.arguments {
            arguments.push(match given {
                Given::Array(elements) => {
                    let pointer = context.alloc::<f32>(elements.len());
                    context.write(pointer, elements);
                    last = Some((pointer, elements.len()));
                    Argument::ptr(pointer)
                }
                Given::Number(number) => Argument::U32(*number),
                Given::Float(number) => Argument::U32(number.to_bits()),
            });
        }
        let launch = LaunchParams::func_id(0).grid2d(row.grid.0, row.grid.1).block1d(row.block);
        let (seconds, done) = time(|| context.run(launch, &arguments));
        done.expect("it ends");
        let (pointer, length) = last.expect("an array");
        let mut result = vec![0.0; length];
        context.read(pointer, &mut result);
        (seconds, result)
    })
}

/// The same, and the thread-instructions.
fn ours(row: &Row, text: &str) -> (f64, Vec<f32>, u64) {
    let module = Module::from_ptx(text).expect("it is legal");
    let mut instructions = 0;
    let (seconds, result) = fastest(|| {
        let device = Device::new();
        let loaded = device.load(&module).expect("room");
        let mut arrays = Vec::new();
        let kernel = module.kernels().next().expect("a kernel").name.clone();
        let mut launch = loaded.launch(&kernel).grid(row.grid).block(row.block);
        for given in &row.arguments {
            launch = match given {
                Given::Array(elements) => {
                    arrays.push(device.array(elements).expect("room"));
                    launch.arg(arrays.last().expect("it was pushed"))
                }
                Given::Number(number) => launch.arg(Arg::from(*number)),
                Given::Float(number) => launch.arg(Arg::from(*number)),
            };
        }
        let (seconds, report) = time(|| launch.configure(|config| config.threads = Some(1)).run());
        instructions = report.expect("it ends").thread_instructions;
        (seconds, arrays.last().expect("an array").read().expect("it is there"))
    });
    (seconds, result, instructions)
}

fn main() {
    let floats =
        |count: u32, step: f32| (0..count).map(|i| (i % 1000) as f32 * step - 1.0).collect::<Vec<f32>>();
    let array = |count, step| Given::Array(floats(count, step));
    let (n, size) = (1 << 20, 128);
    let rows = [
        Row {
            name: "saxpy f32 1M",
            file: "examples/saxpy/saxpy.ptx",
            grid: (n / 256, 1),
            block: 256,
            arguments: vec![Given::Number(n), Given::Float(0.3), array(n, 0.003), array(n, 0.007)],
        },
        Row {
            name: "gemm f32 128^3",
            file: "benches/peers/gemm.ptx",
            grid: (1, size),
            block: size,
            arguments: vec![
                array(size * size, 0.003),
                array(size * size, 0.007),
                Given::Array(vec![0.0; (size * size) as usize]),
                Given::Number(size),
            ],
        },
    ];
    println!(
        "| kernel | ptxvm ms | ptoxide ms | ratio | thread-instructions/s: ptxvm | ptoxide | elements that differ |"
    );
    println!("|---|---|---|---|---|---|---|");
    for row in rows {
        let text = std::fs::read_to_string(Path::new(ROOT).join(row.file)).expect("a readable file");
        let (seconds, result, instructions) = ours(&row, &text);
        let (theirs, other) = ptoxide(&row, &text);
        let differ = result.iter().zip(&other).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        let rate = |seconds: f64| instructions as f64 / seconds;
        println!(
            "| {} | {:.3} | {:.1} | {:.0} | {:.2e} | {:.2e} | {differ} of {} |",
            row.name,
            seconds * 1e3,
            theirs * 1e3,
            theirs / seconds,
            rate(seconds),
            rate(theirs),
            result.len()
        );
    }
}
