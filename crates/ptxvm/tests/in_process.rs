//! Small kernels of `tests/run` launched through the library, in the process of the test: what sanitizers can watch
//! (`cargo xtask sanitize`).
//!
//! `alone` is one host thread on the portable path, which is what Miri can run; `together` is four host threads.

#[path = "common/mod.rs"]
mod common;
#[path = "common/header.rs"]
mod header;

use header::Launch;
use ptxvm::{Array, Device, HostPath, LaunchConfig, Loaded, Module};

/// A test for each kernel, in both ways. Miri leaves out those of the second list, each for the reason that it names.
macro_rules! kernels {
    (quick { $($name:ident)* } slow { $($slow:ident: $why:literal,)* }) => {
        mod alone {
            $(#[test] fn $name() { super::run(stringify!($name), super::alone); })*
            $(#[test] #[cfg_attr(miri, ignore = $why)] fn $slow() { super::run(stringify!($slow), super::alone); })*
        }
        mod together {
            $(#[test] fn $name() { super::run(stringify!($name), super::together); })*
            $(#[test] #[cfg_attr(miri, ignore = $why)] fn $slow() { super::run(stringify!($slow), super::together); })*
        }
    };
}

kernels! {
    quick {
        alias_locals
        alloca
        atomics_old_value
        atomics_vector
        atomics_wide
        call_indirect
        call_param
        divergence_nested
        generic_addresses
        local_memory
        loop_divergent
        mbarrier_state
        narrow_memory
        predication
        select_pairs
        shared_reverse
        shfl
        vector_memory
        vote
    }
    slow {
        atomics_b128: "Miri has no compare-and-swap of 128 bits",
        atomics_u32: "its threads wait for the first, by turns of many instructions",
        barrier_reduce: "320 threads",
        cp_async_groups: "thousands of bytes, one by one",
        device_heap: "allocations of many threads",
        fma_chain: "expected values of thousands of products",
        grid_barrier: "1200 threads, which wait for one another",
        mma_f16_k16: "tables of places and of halves",
        recursion: "thousands of calls",
        spin_lock: "a thousand threads that take turns",
        team_barriers: "thousands of threads",
        team_of_blocks: "thousands of threads",
        team_shared: "thousands of threads",
    }
}

fn alone(config: &mut LaunchConfig) {
    config.deterministic = true;
    config.host_path = Some(HostPath::Portable);
}

fn together(config: &mut LaunchConfig) {
    config.threads = Some(4);
}

#[track_caller]
fn run(name: &str, configure: fn(&mut LaunchConfig)) {
    let path = common::root().join(format!("tests/run/{name}.ptx"));
    let text = std::fs::read_to_string(&path).expect("a kernel of tests/run");
    let module = Module::from_ptx(&text).expect("a module that can be run");
    for launch in header::parse(&text).expect("a header") {
        check(&module, &launch, configure)
            .unwrap_or_else(|error| panic!("{name}, RUN: {}\n{error}", launch.words.join(" ")));
    }
}

fn check(module: &Module, launch: &Launch, configure: fn(&mut LaunchConfig)) -> Result<(), String> {
    let device = Device::new();
    let loaded = device.load(module).map_err(|error| error.to_string())?;
    let (mut grid, mut block, mut entry) = ([1; 3], [1; 3], None);
    let mut arguments: Vec<Argument> = Vec::new();
    let mut words = launch.words.iter();
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{option}` needs a value"));
        match option.as_str() {
            "--grid" => grid = extents(value()?)?,
            "--block" => block = extents(value()?)?,
            "--entry" => entry = Some(value()?.clone()),
            // Every host thread has a turn at last.
            "--max-steps" => drop(value()?),
            "--heap" => device.set_heap_limit(value()?.parse().map_err(|_| "--heap wants a number")?),
            "--arg" => arguments.push(Argument::new(&device, value()?)?),
            other => return Err(format!("`{other}` is not for tests in the process")),
        }
    }
    let entry = match entry {
        Some(entry) => entry,
        None => only_kernel(module).ok_or("several kernels, and no --entry")?,
    };
    let result = start(&loaded, &entry, grid, block, &arguments, configure);
    match (launch.exit, result) {
        (0, Ok(())) => {}
        (0, Err(error)) => return Err(error),
        (_, Ok(())) => return Err("no fault".to_owned()),
        (_, Err(error)) => match launch.stderr.iter().find(|part| !error.contains(*part)) {
            Some(part) => return Err(format!("no `{part}` in:\n{error}")),
            None => return Ok(()),
        },
    }
    for (index, words) in &launch.out {
        let Argument::Array(array) = &arguments[*index] else { return Err(format!("{index} is no array")) };
        let got = array.read().map_err(|error| error.to_string())?;
        launch.compare(*index, words, &got)?;
    }
    Ok(())
}

fn start(
    loaded: &Loaded,
    entry: &str,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: &[Argument],
    configure: fn(&mut LaunchConfig),
) -> Result<(), String> {
    let launch = loaded.launch(entry).configure(|config| {
        (config.grid, config.block) = (grid, block);
        configure(config);
    });
    let launch = arguments.iter().fold(launch, |launch, argument| match argument {
        Argument::Number(number) => launch.arg(*number),
        Argument::Array(array) => launch.arg(array),
    });
    launch.run().map(drop).map_err(|error| error.to_string())
}

enum Argument {
    Number(u32),
    Array(Array<u8>),
}

impl Argument {
    fn new(device: &Device, spec: &str) -> Result<Argument, String> {
        Ok(match spec.parse() {
            Ok(number) => Argument::Number(number),
            Err(_) => Argument::Array(device.array(&elements(spec)?).map_err(|error| error.to_string())?),
        })
    }
}

/// `8`, `8,2` or `8,2,1`.
fn extents(text: &str) -> Result<[u32; 3], String> {
    let mut all = [1; 3];
    for (place, part) in all.iter_mut().zip(text.split(',')) {
        *place = part.parse().map_err(|_| format!("`{text}` is no extent"))?;
    }
    Ok(all)
}

/// The bytes of `u32[64]`, `u32[32x5]` or `u32[1]=7`.
fn elements(spec: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{spec}` is not for tests in the process");
    let (array, value) = spec.split_once('=').unwrap_or((spec, "0"));
    let (ty, counts) = array.strip_suffix(']').and_then(|array| array.split_once('[')).ok_or_else(wrong)?;
    let counts = counts.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|_| wrong())?;
    let words = [format!("{value}*{}", counts.iter().product::<usize>())];
    Ok(header::expand(&words, ty)?.concat())
}

fn only_kernel(module: &Module) -> Option<String> {
    let mut kernels = module.kernels();
    let first = kernels.next()?;
    kernels.next().is_none().then(|| first.name.clone())
}
