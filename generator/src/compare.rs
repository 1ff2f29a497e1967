//! Runs a kernel on the reference engine, and on the interpreter in every way.
//!
//! All memory, and what each thread printed, must be the same: on each host path with one or two host threads, with
//! shuffled warps, with one block after the other, and for code lowered without passes.

use ptxvm::{
    Arg, Buffer, Device, Engine, Error, HostPath, LaunchConfig, LowerOptions, Module, NativeCode, Output,
};

use crate::generate::{COUNTER_BYTES, INDEX_BYTES, INPUT_BYTES, result_bytes};
use crate::program::Kernel;

/// A kernel that executes more thread-instructions than this counts as an error of the generator.
const STEPS: u64 = 50_000_000;

/// A difference between the interpreter and the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// How the engine ran; empty if the kernel does not compile.
    pub way: String,
    /// The difference.
    pub what: String,
    /// The reference engine finished without an error.
    pub reference_ends: bool,
}

impl Difference {
    /// Whether the engines differ. Otherwise no engine runs the kernel.
    pub fn engines_differ(&self) -> bool {
        self.reference_ends || self.what.starts_with("only")
    }

    /// The kind of the difference, without values and places.
    pub fn kind(&self) -> (bool, &str) {
        let code = self.what.split(':').next().unwrap_or_default();
        (self.reference_ends, if self.what.starts_with("only") { code } else { "" })
    }
}

/// The final contents of all arrays, or the code of the fault.
type Outcome = Result<Vec<Vec<u8>>, String>;

/// Names of the arrays, in the order of the arguments.
const ARRAYS: [&str; 5] = ["in", "own", "all", "counters", "results"];

/// Edge values, for which instructions behave differently.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    0x8000,
    0x7c00,
    0xfc00,
    0x7e01,
    0x0001,
    0x3c00_3c00,
    0x7c00_fe00,
    0x8000_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x3f80_0000,
    0x7f80_0000,
    0xff80_0001,
    0x0000_0001_0000_0000,
    0x3ff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff8_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x4330_0000_0000_0001,
    0xffff_ffff_ffff_ffff,
];

/// Random bytes; half of the numbers are edge values.
fn contents(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut all = Vec::with_capacity(bytes + 8);
    while all.len() < bytes {
        match rng.u8(..4) {
            0 => all.extend(EDGES[rng.usize(..EDGES.len())].to_le_bytes()),
            1 => all.extend((rng.u32(..100)).to_le_bytes()),
            2 => all.extend((rng.f32() * 8.0 - 4.0).to_le_bytes()),
            _ => all.extend(rng.u64(..).to_le_bytes()),
        }
    }
    all.truncate(bytes);
    all
}

/// The initial contents of the arrays.
fn arrays(kernel: &Kernel) -> Vec<Vec<u8>> {
    let stride = kernel.stride;
    let mut input = contents(INPUT_BYTES, kernel.data);
    for (i, number) in input[..INDEX_BYTES].chunks_mut(4).enumerate() {
        number.copy_from_slice(&((kernel.data >> (i % 32) & 3) as u32).to_le_bytes());
    }
    vec![
        input,
        contents(stride * kernel.own_bytes, kernel.data ^ 1),
        contents(stride * kernel.all_bytes, kernel.data ^ 2),
        vec![0; COUNTER_BYTES],
        vec![0; stride * result_bytes()],
    ]
}

/// Launches a compiled kernel.
fn launch(
    module: &Module,
    kernel: &Kernel,
    initial: &[Vec<u8>],
    engine: Engine,
    configure: impl FnOnce(&mut LaunchConfig),
) -> Outcome {
    let fault = |error: Error| match &error {
        Error::Fault { fault, .. } => format!("{}: {error}", fault.kind.code()),
        other => format!("{other}"),
    };
    let device = Device::new();
    let make = |(data, name): (&Vec<u8>, &str)| -> Result<Buffer, Error> {
        let buffer = device.allocate(data.len() as u64, name)?;
        buffer.write(0, data)?;
        Ok(buffer)
    };
    let buffers = initial.iter().zip(ARRAYS).map(make).collect::<Result<Vec<_>, _>>().map_err(fault)?;
    let loaded = device.load(module).map_err(fault)?;
    let mut launch = loaded.launch("k").grid(kernel.grid).block(kernel.block).engine(engine);
    if kernel.cluster != [1; 3] {
        launch = launch.cluster(kernel.cluster);
    }
    for buffer in &buffers {
        launch = launch.arg(buffer);
    }
    launch = launch.arg(kernel.data as u32).arg(Arg::bytes(contents(32, kernel.data ^ 3)));
    let output = Output::buffer();
    launch = launch.configure(|config| config.max_steps = Some(STEPS)).configure(configure);
    launch.configure(|config| config.output = output.clone()).run().map_err(fault)?;
    let read = |buffer: &Buffer| {
        let mut data = vec![0; buffer.bytes() as usize];
        buffer.read(0, &mut data).map(|()| data)
    };
    let arrays = buffers.iter().map(read).chain([Ok(by_threads(&output.take()))]);
    arrays.collect::<Result<_, _>>().map_err(fault)
}

/// A way to run the interpreter.
struct Way {
    path: HostPath,
    threads: usize,
    schedule: Option<u64>,
    deterministic: bool,
    /// Lowered without any pass.
    plain: bool,
    /// Loops run as native code. Then no limit of steps ends a kernel; the reference engine has ended.
    native: bool,
}

impl Way {
    /// All ways: every host path of the machine, one and two host threads, shuffled warps, one block after the other,
    /// code lowered without any pass, and native code of each kind.
    fn all(seed: u64) -> Vec<Way> {
        let way = |path, threads| Way {
            path,
            threads,
            schedule: None,
            deterministic: false,
            plain: false,
            native: false,
        };
        let paths = HostPath::ALL.into_iter().filter(|path| path.is_available());
        let mut ways: Vec<Way> =
            paths.enumerate().map(|(i, path)| way(path, 1 + (i + seed as usize) % 2)).collect();
        let path = |i: u64| ways[(i % ways.len() as u64) as usize].path;
        let shuffled = Way { schedule: Some(seed), ..way(path(seed), 1) };
        let deterministic = Way { deterministic: true, ..way(path(seed + 1), 1) };
        let plain = Way { plain: true, ..way(path(seed + 2), 1) };
        let native: Vec<Way> = ways
            .iter()
            .filter(|way| way.path != HostPath::Portable)
            .map(|with| Way { native: true, plain: seed.is_multiple_of(2), ..way(with.path, 1) })
            .collect();
        ways.extend([shuffled, deterministic, plain]);
        ways.extend(native);
        ways
    }

    fn name(&self) -> String {
        let mut name = format!("PTXVM_HOST_PATH={}", self.path.name());
        match self.schedule {
            Some(seed) => name += &format!(" --schedule {seed}"),
            None if self.native && self.plain => name += " --engine native without passes",
            None if self.native => name += " --engine native",
            None if self.deterministic => name += " --deterministic",
            None if self.plain => name += " without passes",
            None => name += &format!(" --threads {}", self.threads),
        }
        name
    }

    fn configure(&self, config: &mut LaunchConfig) {
        config.host_path = Some(self.path);
        config.threads = Some(self.threads);
        config.schedule = self.schedule;
        config.deterministic = self.deterministic;
        if self.native {
            config.max_steps = None;
            config.native_code = Some(NativeCode::Always);
        }
    }
}

/// Runs a kernel on all engines.
///
/// # Errors
/// The first difference, in any byte of memory or in how the launch ended.
pub fn compare(kernel: &Kernel) -> Result<(), Difference> {
    let differs = |way: &str, what: String, reference_ends: bool| {
        Err(Difference { way: way.to_owned(), what, reference_ends })
    };
    let module = match Module::from_ptx(&kernel.text()) {
        Ok(module) => module,
        Err(error) => return differs("", error.to_string(), false),
    };
    let plain = module.lowered_with(&LowerOptions::NONE);
    let initial = arrays(kernel);
    let expected = launch(&module, kernel, &initial, Engine::Reference, |_| {});
    for way in Way::all(kernel.data % 1000) {
        let module = if way.plain { &plain } else { &module };
        let found = launch(module, kernel, &initial, Engine::Auto, |config| way.configure(config));
        if let Some(what) = difference(&expected, &found) {
            return differs(&way.name(), what, expected.is_ok());
        }
    }
    match expected {
        // Every kernel ends, by construction.
        Err(error) => differs("--engine reference", error, false),
        Ok(_) => Ok(()),
    }
}

/// The output sorted by thread, because the order of threads is unspecified.
fn by_threads(text: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_by_key(|line| line.split(|&byte| byte == b':').next());
    lines.concat()
}

/// The difference between two outcomes, if there is one.
fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let arrays = expected.iter().zip(found).zip(ARRAYS.into_iter().chain(["what is printed"]));
            arrays.filter_map(|((expected, found), name)| different_bytes(name, expected, found)).next()
        }
        (Err(expected), Err(found)) => {
            let code = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
            (code(expected) != code(found)).then(|| format!("reference: {expected}\ninterpreter: {found}"))
        }
        (Ok(_), Err(found)) => Some(format!("only the interpreter ends with {found}")),
        (Err(expected), Ok(_)) => Some(format!("only the reference engine ends with {expected}")),
    }
}

fn different_bytes(name: &str, expected: &[u8], found: &[u8]) -> Option<String> {
    if expected.len() != found.len() {
        return Some(format!("{name}: {} bytes, reference {}", found.len(), expected.len()));
    }
    let first = expected.iter().zip(found).position(|(a, b)| a != b)?;
    let count = expected.iter().zip(found).filter(|(a, b)| a != b).count();
    let start = first & !7;
    let word =
        |bytes: &[u8]| bytes[start..].iter().take(8).rev().map(|b| format!("{b:02x}")).collect::<String>();
    let (expected, found) = (word(expected), word(found));
    Some(format!("{name}: {count} bytes differ; at {start}: {found}, reference {expected}"))
}
