//! Launches of `tests/run` through the library, in the process of the test.

use ptxvm::{Arg, Array, Device, Function, LaunchConfig, LaunchReport, Loaded, LowerOptions, Module};

use test_utils::header::{self, Launch};

/// What runs a launch.
pub type Engine = fn(ptxvm::Launch) -> Result<LaunchReport, ptxvm::Error>;

/// Makes all launches that the header of a text asks for, with these passes of the lowering.
pub fn run(text: &str, passes: &LowerOptions, configure: fn(&mut LaunchConfig)) -> Result<(), String> {
    run_on(text, passes, configure, ptxvm::Launch::run)
}

/// Like [`run`], on another engine.
pub fn run_on(
    text: &str,
    passes: &LowerOptions,
    configure: fn(&mut LaunchConfig),
    engine: Engine,
) -> Result<(), String> {
    let mut module = Module::from_ptx(text).map_err(|error| error.to_string())?;
    if *passes != LowerOptions::ALL {
        module = module.lowered_with(passes);
    }
    for launch in header::parse(text)? {
        check(&module, &launch, configure, engine)
            .map_err(|error| format!("RUN: {}\n{error}", launch.words.join(" ")))?;
    }
    Ok(())
}

/// Whether all launches can be made in the process: with options that [`run`] knows, and arguments that are not files.
#[allow(dead_code)] // each test uses a part
pub fn can_run(text: &str) -> bool {
    let known = |launch: &Launch| {
        let mut words = launch.words.iter();
        while let Some(option) = words.next() {
            let mut value = || words.next().map_or("", String::as_str);
            let fits = match option.as_str() {
                "--cooperative" | "--deterministic" => true,
                "--grid" | "--block" | "--cluster" | "--shared" | "--entry" | "--max-steps" | "--heap"
                | "--threads" => !value().is_empty(),
                "--set" => value().contains("=@data/"),
                "--arg" => {
                    let value = value();
                    value.parse::<u64>().is_ok() || elements(value).is_ok()
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        launch.stdout.is_empty()
    };
    header::parse(text).is_ok_and(|launches| launches.iter().all(known))
}

/// One launch, and whether what comes out is what the header says.
fn check(
    module: &Module,
    launch: &Launch,
    configure: fn(&mut LaunchConfig),
    engine: Engine,
) -> Result<(), String> {
    let device = Device::for_module(module);
    let loaded = device.load(module).map_err(|error| error.to_string())?;
    for (name, data) in launch.variables()? {
        loaded.write_variable(&name, 0, &data).map_err(|error| error.to_string())?;
        // A part of it would leave zeros behind.
        let bytes = module.program().module.variables.iter().find(|v| v.name == name).map_or(0, |v| v.bytes);
        if bytes != data.len() as u64 {
            return Err(format!("`{name}` has {bytes} bytes, and its array {}", data.len()));
        }
    }
    let mut entry = None;
    let mut arguments: Vec<Argument> = Vec::new();
    let mut asked = LaunchConfig::new([1; 3], [1; 3]);
    let mut words = launch.words.iter();
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{option}` needs a value"));
        match option.as_str() {
            "--grid" => asked.grid = extents(value()?)?,
            "--block" => asked.block = extents(value()?)?,
            "--cluster" => asked.cluster = Some(extents(value()?)?),
            "--cooperative" => asked.cooperative = true,
            "--deterministic" => asked.deterministic = true,
            "--shared" => asked.dynamic_shared = value()?.parse().map_err(|_| "--shared wants a number")?,
            "--entry" => entry = Some(value()?.clone()),
            "--max-steps" => asked.max_steps = value()?.parse().ok(),
            "--threads" => asked.threads = value()?.parse().ok(),
            "--heap" => device.set_heap_limit(value()?.parse().map_err(|_| "--heap wants a number")?),
            "--arg" => arguments.push(Argument::new(&device, value()?)?),
            "--set" => drop(value()?),
            other => return Err(format!("`{other}` is not for tests in the process")),
        }
    }
    let entry = match entry {
        Some(entry) => entry,
        None => match only_kernel(module) {
            Some(entry) => entry,
            None if launch.exit != 0 => return Ok(()),
            None => return Err("several kernels, and no --entry".to_owned()),
        },
    };
    let kernel = module.kernel(&entry).map_err(|error| error.to_string())?;
    let result = start(&loaded, kernel, &arguments, engine, |config| {
        let threads = asked.threads;
        *config = asked;
        configure(config);
        config.threads = threads.or(config.threads);
    });
    match (launch.exit, result) {
        (0, Ok(())) => {}
        (0, Err(error)) => return Err(error),
        (_, Ok(())) => return Err("no fault".to_owned()),
        // Messages name files and arguments as the command knows them: that is for `run`.
        (_, Err(_)) => return Ok(()),
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
    kernel: &Function,
    arguments: &[Argument],
    engine: Engine,
    configure: impl FnOnce(&mut LaunchConfig),
) -> Result<(), String> {
    let launch = loaded.launch(&kernel.name).configure(configure);
    let launch =
        arguments.iter().zip(&kernel.params).fold(launch, |launch, (argument, param)| match argument {
            // As many bytes as the parameter has.
            Argument::Number(number) => launch.arg(Arg::bytes(&number.to_le_bytes()[..param.bytes as usize])),
            Argument::Array(array) => launch.arg(array),
        });
    engine(launch).map(drop).map_err(|error| error.to_string())
}

enum Argument {
    Number(u64),
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

/// `8`, `8,2` or `8x2x1`.
fn extents(text: &str) -> Result<[u32; 3], String> {
    let mut all = [1; 3];
    for (place, part) in all.iter_mut().zip(text.split([',', 'x'])) {
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
