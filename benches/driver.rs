//! What a launch through the C functions of the driver costs: a kernel of one block that adds 1 to 128 numbers, loaded once.
//!
//! `cargo bench -p ptxvm-libcuda --bench driver`. A launch and `cuCtxSynchronize` must take less than 10 microseconds
//! together; benches/RESULTS.md has recorded runs.

// Cargo knows no library of benches and examples.
#[path = "../crates/libcuda/examples/calls/mod.rs"]
mod calls;

use std::time::{Duration, Instant};

use calls::Kernel;
use criterion::Criterion;

/// A launch that is waited for may take so long.
const LIMIT: Duration = Duration::from_micros(10);
const LAUNCHES: u32 = 1000;

fn main() {
    calls::start();
    let kernel = Kernel::new();
    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("launch, then synchronize", |bencher| {
        bencher.iter(|| {
            kernel.launch();
            calls::synchronize();
        });
    });
    criterion.bench_function("1000 launches, then synchronize", |bencher| {
        bencher.iter(|| {
            (0..LAUNCHES).for_each(|_| kernel.launch());
            calls::synchronize();
        });
    });
    // Criterion holds nothing against a limit: the best of 20 runs stands for a machine without other work.
    let time = |_| {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            kernel.launch();
            calls::synchronize();
        }
        start.elapsed() / LAUNCHES
    };
    let best = (0..20).map(time).min().unwrap_or_default();
    println!("a launch that is waited for: {best:?} (best of 20 times {LAUNCHES})");
    assert!(best < LIMIT, "a launch takes {best:?}, and {LIMIT:?} is the limit");
    criterion.final_summary();
}
