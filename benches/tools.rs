//! What the tools cost: the kernels of the other benches, and those of `tools.cu`, with each tool against the same launches without, on
//! one host thread; and how much faster launches that are checked are on all host threads than on one.
//!
//! `cargo bench -p ptxvm --bench tools` prints the medians of several ratios, each of the shortest of several launches, and for all host
//! threads the ratio of the shortest of all; with names of kernels behind `--`, of those.

use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use ptxvm::{Arg, Checker, Device, Module, Tools};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A kernel and its launch.
struct Case {
    name: &'static str,
    /// Relative to the root; that of an example if absent.
    file: Option<&'static str>,
    grid: [u32; 3],
    block: [u32; 3],
    args: fn(&Device) -> Vec<Arg>,
}

fn floats(device: &Device, count: usize) -> Arg {
    let values: Vec<f32> = (0..count).map(|i| (i % 1000) as f32 * 0.25).collect();
    Arg::from(&device.array(&values).expect("room"))
}

fn random(device: &Device, count: u32) -> Arg {
    let values: Vec<u32> = (0..count).map(|i| (i ^ i >> 7).wrapping_mul(0x9e37_79b9)).collect();
    Arg::from(&device.array(&values).expect("room"))
}

fn zeros(device: &Device, count: usize) -> Arg {
    Arg::from(&device.zeros::<u32>(count).expect("room"))
}

/// What nvcc made of `tools.cu`.
const BLOCKS: Option<&str> = Some("benches/tools.ptx");

static CASES: [Case; 12] = [
    Case {
        name: "saxpy",
        file: None,
        grid: [1024, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let count = 1 << 18;
            vec![Arg::from(count as u32), Arg::from(0.5f32), floats(device, count), floats(device, count)]
        },
    },
    Case {
        name: "mandelbrot",
        file: None,
        grid: [16, 16, 1],
        block: [16, 16, 1],
        args: |device| {
            let image = device.zeros::<u32>(256 * 256).expect("room");
            let view = [-2.2f32, 1.5, 3.0 / 256.0].map(Arg::from);
            [Arg::from(&image)].into_iter().chain([256u32; 3].map(Arg::from)).chain(view).collect()
        },
    },
    Case {
        name: "matmul",
        file: None,
        grid: [8, 8, 1],
        block: [16, 16, 1],
        args: |device| {
            let n = 128usize;
            let arrays = [(); 3].map(|()| floats(device, n * n));
            arrays.into_iter().chain([n as u32; 3].map(Arg::from)).collect()
        },
    },
    Case {
        name: "block_sum",
        file: None,
        grid: [1024, 1, 1],
        block: [256, 1, 1],
        args: |device| vec![floats(device, 1 << 18), Arg::from(1u32 << 18), floats(device, 1024)],
    },
    Case {
        name: "softmax",
        file: None,
        grid: [256, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let (rows, columns) = (256usize, 1024usize);
            vec![floats(device, rows * columns), floats(device, rows * columns), Arg::from(columns as u32)]
        },
    },
    Case {
        name: "histogram",
        file: None,
        grid: [64, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let data: Vec<u8> = (0..1usize << 20).map(|i| (i * 7 % 251) as u8).collect();
            let data = device.array(&data).expect("room");
            let bins = device.zeros::<u32>(256).expect("room");
            vec![Arg::from(&data), Arg::from(1u32 << 20), Arg::from(&bins)]
        },
    },
    Case {
        name: "block_scan",
        file: BLOCKS,
        grid: [256, 1, 1],
        block: [256, 1, 1],
        args: |device| vec![random(device, 1 << 18), zeros(device, 1 << 18)],
    },
    Case {
        name: "block_scan_warps",
        file: BLOCKS,
        grid: [256, 1, 1],
        block: [256, 1, 1],
        args: |device| vec![random(device, 1 << 18), zeros(device, 1 << 18)],
    },
    Case {
        name: "block_radix_sort",
        file: BLOCKS,
        grid: [64, 1, 1],
        block: [128, 1, 1],
        args: |device| vec![random(device, 1 << 15), zeros(device, 1 << 15)],
    },
    Case {
        name: "copy_ring",
        file: BLOCKS,
        grid: [64, 1, 1],
        block: [128, 1, 1],
        args: |device| vec![floats(device, 1 << 19), zeros(device, 1 << 15), Arg::from(16u32)],
    },
    Case {
        // 1 KiB apart.
        name: "scattered",
        file: BLOCKS,
        grid: [128, 1, 1],
        block: [256, 1, 1],
        args: |device| vec![zeros(device, 1 << 23), Arg::from(256u32)],
    },
    Case {
        name: "merge",
        file: BLOCKS,
        grid: [64, 1, 1],
        block: [128, 1, 1],
        args: |device| {
            let sorted = |step: u32| {
                let values: Vec<u32> = (0..1u32 << 16).map(|i| i * step + (i * 7919 % step)).collect();
                Arg::from(&device.array(&values).expect("room"))
            };
            vec![sorted(1021), sorted(1013), zeros(device, 1 << 17), Arg::from(1u32 << 16), Arg::from(16u32)]
        },
    },
];

/// Launches of which the shortest counts, and how often that is done.
const LAUNCHES: usize = 9;
const ROUNDS: usize = 7;

/// A case with tools, ready to be launched.
struct Prepared {
    case: &'static Case,
    tools: Tools,
    loaded: ptxvm::Loaded,
    args: Vec<Arg>,
}

impl Prepared {
    fn new(case: &'static Case, tools: Tools) -> Result<Prepared, ptxvm::Error> {
        let example = format!("examples/{0}/{0}.ptx", case.name);
        let file = Path::new(ROOT).join(case.file.unwrap_or(&example));
        let module = Module::from_file(file)?.for_tools(tools);
        let device = Device::new();
        let loaded = device.load(&module)?;
        let args = (case.args)(&device);
        Ok(Prepared { case, tools, loaded, args })
    }

    /// The shortest of several launches on so many host threads, in seconds: of processor time, or as clocks have it.
    fn time(&self, threads: Option<usize>, of_clock: bool) -> Result<f64, ptxvm::Error> {
        let mut best = f64::INFINITY;
        for _ in 0..LAUNCHES {
            let mut launch = self.loaded.launch(self.case.name).grid(self.case.grid).block(self.case.block);
            launch = self.args.iter().fold(launch, |launch, arg| launch.arg(arg.clone()));
            launch = launch.configure(|config| config.threads = threads);
            if !self.tools.is_empty() {
                launch = launch.check(&Checker::shared(self.tools));
            }
            let (start, clock) = (ProcessTime::now(), Instant::now());
            launch.run()?;
            let seconds = if of_clock { clock.elapsed() } else { start.elapsed() }.as_secs_f64();
            best = best.min(seconds);
        }
        Ok(best)
    }
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A row of the table.
fn row(case: &'static Case) -> Result<String, Box<dyn std::error::Error>> {
    let plain = Prepared::new(case, Tools::default())?;
    let (mut cells, mut times) = (Vec::new(), Vec::new());
    for names in ["racecheck", "initcheck", "synccheck", "all"] {
        let checked = Prepared::new(case, names.parse()?)?;
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            // One right after the other, since the machine may be busy otherwise.
            let time = plain.time(Some(1), false)?;
            ratios.push(checked.time(Some(1), false)? / time);
            times.push(time);
        }
        cells.push(format!("{:.1}x", median(ratios)));
    }
    let checked = Prepared::new(case, Tools::ALL)?;
    // The shortest of all: at other times the cores have other things to do.
    let (mut alone, mut together) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        alone = alone.min(checked.time(Some(1), true)?);
        together = together.min(checked.time(None, true)?);
    }
    let time = median(times) * 1e3;
    Ok(format!("| {} | {time:.2} ms | {} | {:.1} |", case.name, cells.join(" | "), alone / together))
}

fn main() {
    println!(
        "| kernel | without | racecheck | initcheck | synccheck | all | all: faster on all host threads |"
    );
    println!("|---|---|---|---|---|---|---|");
    // `--bench` comes from cargo.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for case in CASES.iter().filter(|case| wanted.is_empty() || wanted.iter().any(|name| name == case.name)) {
        match row(case) {
            Ok(row) => println!("{row}"),
            Err(error) => println!("| {} | {error} |", case.name),
        }
    }
}
