//! What the tools cost: the kernels of the other benches with each tool against the same launches without, on one host thread.
//!
//! `cargo bench -p ptxvm --bench tools` prints the ratios of the shortest processor times of several launches; with names of kernels
//! behind `--`, of those.

use std::path::Path;

use cpu_time::ProcessTime;
use ptxvm::{Arg, Checker, Device, Module, Tools};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// A kernel and its launch.
struct Case {
    name: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    args: fn(&Device) -> Vec<Arg>,
}

fn floats(device: &Device, count: usize) -> Arg {
    let values: Vec<f32> = (0..count).map(|i| (i % 1000) as f32 * 0.25).collect();
    Arg::from(&device.array(&values).expect("room"))
}

const CASES: [Case; 6] = [
    Case {
        name: "saxpy",
        grid: [1024, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let count = 1 << 18;
            vec![Arg::from(count as u32), Arg::from(0.5f32), floats(device, count), floats(device, count)]
        },
    },
    Case {
        name: "mandelbrot",
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
        grid: [1024, 1, 1],
        block: [256, 1, 1],
        args: |device| vec![floats(device, 1 << 18), Arg::from(1u32 << 18), floats(device, 1024)],
    },
    Case {
        name: "softmax",
        grid: [256, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let (rows, columns) = (256usize, 1024usize);
            vec![floats(device, rows * columns), floats(device, rows * columns), Arg::from(columns as u32)]
        },
    },
    Case {
        name: "histogram",
        grid: [64, 1, 1],
        block: [256, 1, 1],
        args: |device| {
            let data: Vec<u8> = (0..1usize << 20).map(|i| (i * 7 % 251) as u8).collect();
            let data = device.array(&data).expect("room");
            let bins = device.zeros::<u32>(256).expect("room");
            vec![Arg::from(&data), Arg::from(1u32 << 20), Arg::from(&bins)]
        },
    },
];

/// Seconds of the shortest of several launches.
fn time(case: &Case, tools: Tools) -> Result<f64, ptxvm::Error> {
    let file = Path::new(EXAMPLES).join(case.name).join(format!("{}.ptx", case.name));
    let module = Module::from_file(file)?.for_tools(tools);
    let device = Device::new();
    let loaded = device.load(&module)?;
    let args = (case.args)(&device);
    let mut best = f64::INFINITY;
    for _ in 0..9 {
        let mut launch = loaded.launch(case.name).grid(case.grid).block(case.block);
        launch = args.iter().fold(launch, |launch, arg| launch.arg(arg.clone()));
        launch = launch.configure(|config| config.threads = Some(1));
        if !tools.is_empty() {
            launch = launch.check(&Checker::shared(tools));
        }
        let start = ProcessTime::now();
        launch.run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn main() {
    println!("| kernel | without | racecheck | initcheck | synccheck | all |\n|---|---|---|---|---|---|");
    // `--bench` comes from cargo.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for case in CASES.iter().filter(|case| wanted.is_empty() || wanted.iter().any(|name| name == case.name)) {
        let row = ["", "racecheck", "initcheck", "synccheck", "all"].map(|names| {
            names
                .parse()
                .map_err(|error: String| error)
                .and_then(|tools| time(case, tools).map_err(|error| error.to_string()))
        });
        match row {
            [Ok(plain), rest @ ..] => {
                let ratios =
                    rest.map(|time| time.map_or_else(|error| error, |t| format!("{:.1}x", t / plain)));
                println!("| {} | {:.2} ms | {} |", case.name, plain * 1e3, ratios.join(" | "));
            }
            [Err(error), ..] => println!("| {} | {error} |", case.name),
        }
    }
}
