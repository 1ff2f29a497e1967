//! Whether launches leave anything behind: ten threads launch for some time, then one launches a million times, and the memory of the process
//! must not have grown.
//!
//! `cargo run --release -p ptxvm-libcuda --example endurance -- [SECONDS [LAUNCHES]]`

mod calls;

use std::time::{Duration, Instant};

use calls::Kernel;

const THREADS: usize = 10;
/// Bytes that the process may have more: what the allocator has not given back.
const ALLOWED: u64 = 8 << 20;

/// Bytes of memory that the process has in use.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("Linux tells it");
    pages * 4096
}

/// Loads a kernel, launches it so often, and looks at what it counted.
fn launch(count: u32) {
    let kernel = Kernel::new();
    for i in 0..count {
        kernel.launch();
        if i % 100 == 0 {
            calls::synchronize();
        }
    }
    calls::synchronize();
    assert!(kernel.counts().iter().all(|&sum| sum == count));
}

fn in_threads(time: Duration) -> u64 {
    let work = || {
        calls::start();
        let (start, mut launches) = (Instant::now(), 0);
        while start.elapsed() < time {
            launch(1000);
            launches += 1000;
        }
        launches
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    })
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u32>().expect("a number"));
    let (seconds, launches) = (words.next().unwrap_or(60), words.next().unwrap_or(1_000_000));
    calls::start();
    // What is made once is made.
    in_threads(Duration::from_secs(2));
    launch(1000);
    let before = resident();
    let in_threads = in_threads(Duration::from_secs(seconds.into()));
    let between = resident();
    launch(launches);
    let after = resident();
    println!(
        "{before} bytes in use; {between} after {in_threads} launches of {THREADS} threads in {seconds} s; {after} after {launches} more of one"
    );
    assert!(after <= before + ALLOWED, "the process has grown by {} bytes", after - before);
}
