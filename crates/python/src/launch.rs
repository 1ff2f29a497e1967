//! Launching a kernel from Python.
//!
//! A launch runs on the calling thread, detached from the interpreter, because handing it to another thread costs
//! more than a small kernel takes. With a progress bar, or an event that stops it, the launch runs on another thread,
//! which this one polls. `interrupt.rs` ends a launch on Ctrl-C.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(debug_assertions)]
use ptxvm::ObserverHandle;
use ptxvm::{Engine, Error, LaunchReport, Output, Profile, signature};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyTuple};

use crate::arguments::{Parameters, Referred, Target};
use crate::error::{other, to_python, unless_panics};
use crate::interrupt::Watch;
use crate::module::Kernel;
#[cfg(debug_assertions)]
use crate::observe::Planted;
use crate::observe::{Arrays, Observation, Questions};
use crate::texture::Object;

/// The polling interval of a launch with a progress bar.
const LOOK: Duration = Duration::from_millis(50);

/// One, two or three extents: `4`, `(4, 4)`.
pub fn extents(object: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let wrong = || PyValueError::new_err("extents are one to three numbers: 4, (4, 4), (4, 4, 4)");
    if object.is_instance_of::<PyFloat>() {
        let message =
            format!("an extent is the float {object}: so many blocks for n threads are -(-n // 256)");
        return Err(PyTypeError::new_err(message));
    }
    if let Ok(x) = object.extract::<u32>() {
        return Ok([x, 1, 1]);
    }
    let all: Vec<u32> = object.extract().map_err(|_| wrong())?;
    match all[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(wrong()),
    }
}

/// A kernel with its grid and block: `kernel[grid, block]`.
#[pyclass(frozen, module = "ptxvm")]
pub struct Launcher {
    pub kernel: Kernel,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u64,
}

/// What a launch did.
#[pyclass(frozen, module = "ptxvm", get_all)]
pub struct Report {
    /// Wall-clock time in seconds.
    seconds: f64,
    /// Instructions executed, each counted once for every thread that executed it.
    thread_instructions: u64,
    /// What the tools found; `None` without `tool=`.
    findings: Option<Py<PyAny>>,
    /// The instructions of a thread; `None` without `trace=`.
    trace: Option<Py<PyAny>>,
    /// The writes to elements; `None` without `watch=`.
    watch: Option<Py<PyAny>>,
    /// Where NaNs and infinities come from; `None` without `first_nan=`.
    first_nan: Option<Py<PyAny>>,
}

#[pymethods]
impl Report {
    /// Raises an error if a tool found one: the first, with all findings in `findings`. Warnings raise nothing.
    fn raise_for_findings(&self, py: Python<'_>) -> PyResult<()> {
        py.import("ptxvm._observed")?.call_method1("raise_for_findings", (&self.findings,))?;
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Report { seconds, thread_instructions, findings, trace, watch, first_nan } = self;
        let mut text = format!("Report(seconds={seconds}, thread_instructions={thread_instructions}");
        let lists = [(findings, "finding"), (trace, "step"), (watch, "watched element"), (first_nan, "flow")];
        for (list, name) in lists {
            if let Some(list) = list {
                let count = list.bind(py).len()?;
                text += &format!(", {count} {name}{}", if count == 1 { "" } else { "s" });
            }
        }
        Ok(text + ")")
    }
}

/// The options of a launch.
#[derive(Default)]
struct Options<'py> {
    threads: Option<usize>,
    deterministic: bool,
    schedule: Option<u64>,
    max_steps: Option<u64>,
    cooperative: bool,
    cluster: Option<[u32; 3]>,
    engine: Engine,
    blocks: Option<Range<u64>>,
    shared: Option<u64>,
    progress: Option<Bound<'py, PyAny>>,
    output: Option<Bound<'py, PyAny>>,
    stop: Option<Bound<'py, PyAny>>,
    bind: Option<Bound<'py, PyDict>>,
    questions: Questions<'py>,
    /// Where tests want a panic: `before` the launch, or at an `access`.
    #[cfg(debug_assertions)]
    planted: Option<String>,
}

impl<'py> Options<'py> {
    fn new(named: Option<&Bound<'py, PyDict>>) -> PyResult<Options<'py>> {
        let mut options = Options::default();
        let mut engine = None;
        for (name, value) in named.into_iter().flatten() {
            let name: &str = &name.extract::<String>()?;
            if value.is_none() {
                continue;
            }
            match name {
                "threads" => options.threads = Some(value.extract()?),
                "deterministic" => options.deterministic = value.is_truthy()?,
                "schedule" => options.schedule = Some(value.extract()?),
                "max_steps" => options.max_steps = Some(value.extract()?),
                "cooperative" => options.cooperative = value.is_truthy()?,
                "cluster" => options.cluster = Some(extents(&value)?),
                "shared" => options.shared = Some(value.extract()?),
                "engine" => {
                    engine = Some(match &*value.extract::<String>()? {
                        "auto" => Engine::Auto,
                        "interpreter" => Engine::Interpreter,
                        "native" => Engine::Native,
                        "reference" => Engine::Reference,
                        other => {
                            let text =
                                format!("`{other}` is no engine: auto, interpreter, native, reference");
                            return Err(PyValueError::new_err(text));
                        }
                    });
                }
                "blocks" => {
                    let (start, end) = value.extract()?;
                    options.blocks = Some(start..end);
                }
                "progress" => options.progress = Some(value),
                "output" => options.output = Some(value),
                "stop" => options.stop = Some(value),
                "bind" => options.bind = Some(value.cast_into()?),
                "tool" => options.questions.tool = Some(value),
                "undefined" => options.questions.undefined = Some(value),
                "trace" => options.questions.trace = Some(value),
                "watch" => options.questions.watch = Some(value),
                #[cfg(debug_assertions)]
                "_planted" => options.planted = value.extract()?,
                "first_nan" => options.questions.first_nan = value.is_truthy()?,
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "`{name}` is no option of a launch: threads, deterministic, schedule, max_steps, cooperative, \
                         cluster, engine, shared, blocks, bind, progress, stop, output, tool, undefined, trace, watch, \
                         first_nan"
                    )));
                }
            }
        }
        options.engine = match (options.questions.given()?, engine) {
            // Only the reference engine executes instructions one by one.
            (Some(name @ ("trace" | "first_nan")), Some(Engine::Interpreter | Engine::Native)) => {
                return Err(PyValueError::new_err(format!(
                    "{name}= runs the reference engine: leave engine= out"
                )));
            }
            (Some("trace" | "first_nan"), _) => Engine::Reference,
            (Some(name @ ("tool" | "watch")), Some(Engine::Reference)) => {
                return Err(PyValueError::new_err(format!("the reference engine has no {name}=")));
            }
            (_, engine) => engine.unwrap_or_default(),
        };
        Ok(options)
    }
}

impl Launcher {
    /// The bytes of the parameters.
    fn parameters(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Parameters> {
        let Kernel { shared, entry } = &self.kernel;
        let mut parameters = Parameters { bytes: vec![0; entry.bytes], referred: Referred::default() };
        if arguments.len() != entry.slots.len() {
            let (takes, given) = (entry.slots.len(), arguments.len());
            let text = format!("kernel `{}` takes {takes} arguments, but {given} were given", entry.name);
            return Err(self.wrong(py, &text));
        }
        for (index, (slot, value)) in entry.slots.iter().zip(arguments).enumerate() {
            parameters.put(index, slot, &value, shared.address_bytes).map_err(|error| {
                let expected = error.is_instance_of::<PyTypeError>(py)
                    || error.is_instance_of::<pyo3::exceptions::PyOverflowError>(py);
                if !expected {
                    return error;
                }
                let (what, declared) = (error.value(py).to_string(), ptxvm::describe(&slot.param));
                let name = &entry.names[index];
                self.wrong(
                    py,
                    // These messages are about the array itself, not about the parameter.
                    &match what.starts_with("its ") || what.starts_with("the ") {
                        true => format!("{name}: {what}"),
                        false => format!("{name} {what}, but the parameter is {declared}"),
                    },
                )
            })?;
        }
        Ok(parameters)
    }

    /// The error for wrong arguments.
    fn wrong(&self, py: Python<'_>, text: &str) -> PyErr {
        match self.kernel.shared.function(&self.kernel.entry.name) {
            Ok(function) => other(py, "arguments", &format!("{text}\n{}", signature(function))),
            Err(error) => error,
        }
    }

    fn run(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Options<'_>,
        profile: Option<&Arc<Mutex<Profile>>>,
    ) -> PyResult<Report> {
        unless_panics(py, || self.run_now(py, arguments, options, profile))
    }

    fn run_now(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Options<'_>,
        profile: Option<&Arc<Mutex<Profile>>>,
    ) -> PyResult<Report> {
        let Kernel { shared, entry } = &self.kernel;
        let mut parameters = self.parameters(py, arguments)?;
        let mut names = Cow::Borrowed(&entry.names);
        for (name, object) in options.bind.iter().flatten() {
            let name: String = name.extract()?;
            let object = object.cast::<Object>()?;
            let index = names.len();
            names.to_mut().push(format!("what `{name}` is bound to"));
            parameters.referred.add_object(py, index, object.get(), Target::Variable(name))?;
        }
        let mut placed = shared.places.place(&mut parameters, &names)?;
        let objects = parameters.make_objects(shared.loaded.device(), &placed);
        let mut objects = objects.map_err(|error| to_python(py, &error))?;
        let module = &shared.loaded;
        let arrays = Arrays { arguments: arguments.len(), referred: &parameters.referred, placed: &placed };
        let observation = options.questions.observation(module, [self.grid, self.block], arrays)?;
        let module =
            observation.as_ref().map_or(module, |observation| shared.loaded_for(observation.tools()));
        let output = Output::buffer();
        let Options {
            threads, deterministic, schedule, max_steps, cooperative, cluster, engine, blocks, ..
        } = options;
        let dynamic_shared = options.shared.unwrap_or(self.dynamic_shared);
        let launch = module.launch(&entry.name).grid(self.grid).block(self.block).engine(engine);
        let launch = launch.params(std::mem::take(&mut parameters.bytes)).configure(|config| {
            config.threads = threads;
            config.deterministic = deterministic;
            config.schedule = schedule;
            config.max_steps = max_steps;
            config.cooperative = cooperative;
            config.cluster = cluster;
            config.blocks = blocks;
            config.bindings = std::mem::take(&mut objects.bindings);
            config.dynamic_shared = dynamic_shared;
            config.output = output.clone();
            config.profile = profile.map(Arc::clone);
            config.observer = observation.as_ref().map(Observation::handle);
            #[cfg(debug_assertions)]
            match options.planted.as_deref() {
                Some("access") => config.observer = Some(ObserverHandle::new(Arc::new(Mutex::new(Planted)))),
                Some(_) => panic!("planted before the launch"),
                None => {}
            }
        });
        let print = |text: Vec<u8>| print(py, options.output.as_ref(), text);
        let result = if options.progress.is_none() && options.stop.is_none() {
            here(py, launch)?
        } else {
            let bar =
                options.progress.as_ref().map(|bar| Bar::new(bar, self.grid, &entry.name)).transpose()?;
            let result = beside(py, launch, |done| {
                print(output.take())?;
                bar.as_ref().map_or(Ok(()), |bar| bar.advance_to(done))?;
                options.stop.as_ref().map_or(Ok(false), |stop| stop.call_method0("is_set")?.is_truthy())
            });
            bar.map_or(Ok(()), |bar| bar.close())?;
            result?
        };
        print(output.take())?;
        drop(objects);
        let arrays = Arrays { arguments: arguments.len(), referred: &parameters.referred, placed: &placed };
        let seen = observation.as_ref().map(|observation| observation.finish(py, module, self.block, arrays));
        let refused = py.detach(|| placed.bring_back());
        drop(placed);
        let seen = seen.transpose()?;
        let report = result.map_err(|error| {
            let error = to_python(py, &error);
            match &seen {
                Some((name, seen)) => {
                    error.value(py).setattr(*name, seen).map_or_else(|failed| failed, |()| error)
                }
                None => error,
            }
        })?;
        if let Some(&index) = refused.first() {
            let name = &names[index];
            return Err(other(
                py,
                "read-only",
                &format!("the kernel wrote to {name}, which is a read-only array"),
            ));
        }
        let seen = |name| seen.as_ref().filter(|(of, _)| *of == name).map(|(_, seen)| seen.clone().unbind());
        Ok(Report {
            seconds: report.seconds,
            thread_instructions: report.thread_instructions,
            findings: seen("findings"),
            trace: seen("trace"),
            watch: seen("watch"),
            first_nan: seen("first_nan"),
        })
    }
}

/// Runs a launch on this thread. Ctrl-C ends it.
fn here(py: Python<'_>, launch: ptxvm::Launch) -> PyResult<Result<LaunchReport, Error>> {
    let watch = Watch::begin();
    let launch = launch.configure(|config| config.cancel = Some(watch.flag()));
    let result = py.detach(|| launch.run());
    let stopped = watch.is_stopped();
    drop(watch);
    if stopped {
        // On Python's main thread this raises KeyboardInterrupt; on others it does nothing.
        py.check_signals()?;
    }
    Ok(result)
}

/// Runs a launch on another thread, and polls it from this one. The launch ends early on a signal, when `look`
/// returns true, and when `look` fails.
fn beside(
    py: Python<'_>,
    launch: ptxvm::Launch,
    look: impl Fn(u64) -> PyResult<bool>,
) -> PyResult<Result<LaunchReport, Error>> {
    let (cancel, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let launch = launch.configure(|config| {
        config.cancel = Some(Arc::clone(&cancel));
        config.progress = Some(Arc::clone(&done));
    });
    let watch = Watch::begin();
    let (tell, told) = sync_channel(1);
    let told = Mutex::new(told);
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, move || tell.send(launch.run()));
        started.map_err(|error| {
            other(py, "no-thread", &format!("no thread for a launch that is looked at: {error}"))
        })?;
        let wait = || lock(&told).recv_timeout(LOOK);
        let mut trouble = Ok(());
        loop {
            match py.detach(wait) {
                Ok(result) => {
                    trouble?;
                    look(done.load(Ordering::Relaxed))?;
                    return Ok(result);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The launch's thread always sends a result.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(other(py, "defect", "the thread of the launch has gone"));
                }
            }
            if trouble.is_ok() {
                match py.check_signals().and_then(|()| look(done.load(Ordering::Relaxed))) {
                    Ok(enough) if !enough && !watch.is_stopped() => {}
                    looked => {
                        cancel.store(true, Ordering::Relaxed);
                        trouble = looked.map(|_| ());
                    }
                }
            }
        }
    })
}

/// Locks a mutex, even if a thread that held it panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a kernel's output to `sys.stdout`, or to any object with `write`.
fn print(py: Python<'_>, to: Option<&Bound<'_, PyAny>>, text: Vec<u8>) -> PyResult<()> {
    if text.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text);
    let write = intern!(py, "write");
    match to {
        Some(to) => to.call_method1(write, (text,))?,
        None => py.import("sys")?.getattr("stdout")?.call_method1(write, (text,))?,
    };
    Ok(())
}

/// A progress bar of tqdm, or any object with `total` and `update`.
struct Bar<'py> {
    bar: Bound<'py, PyAny>,
    ours: bool,
    shown: std::cell::Cell<u64>,
}

impl<'py> Bar<'py> {
    fn new(progress: &Bound<'py, PyAny>, grid: [u32; 3], kernel: &str) -> PyResult<Bar<'py>> {
        let py = progress.py();
        let total = grid.iter().map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul);
        let ours = progress.is_instance_of::<PyBool>();
        let bar = if ours {
            let named = PyDict::new(py);
            named.set_item("total", total)?;
            named.set_item("unit", "block")?;
            named.set_item("desc", kernel)?;
            named.set_item("disable", !progress.is_truthy()?)?;
            py.import("tqdm.auto")?.getattr("tqdm")?.call((), Some(&named))?
        } else {
            let total_now = progress.getattr_opt("total")?;
            if total_now.is_none_or(|total| total.is_none()) {
                progress.setattr("total", total)?;
            }
            progress.clone()
        };
        Ok(Bar { bar, ours, shown: std::cell::Cell::new(0) })
    }

    fn advance_to(&self, done: u64) -> PyResult<()> {
        let more = done.saturating_sub(self.shown.replace(done));
        if more > 0 {
            self.bar.call_method1("update", (more,))?;
        }
        Ok(())
    }

    fn close(&self) -> PyResult<()> {
        if self.ours {
            self.bar.call_method0("close")?;
        }
        Ok(())
    }
}

#[pymethods]
impl Launcher {
    #[pyo3(signature = (*arguments, **options))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Report> {
        self.run(py, arguments, Options::new(options)?, None)
    }

    /// The kernel.
    #[getter]
    fn kernel(&self) -> Kernel {
        self.kernel.clone()
    }

    /// Blocks in x, y and z.
    #[getter]
    fn grid(&self) -> (u32, u32, u32) {
        self.grid.into()
    }

    /// Threads of a block in x, y and z.
    #[getter]
    fn block(&self) -> (u32, u32, u32) {
        self.block.into()
    }

    /// Bytes of dynamic shared memory.
    #[getter]
    fn shared_bytes(&self) -> u64 {
        self.dynamic_shared
    }

    /// Runs it and finds out where the time goes: the report, and the profile as JSON, as a table and as a page.
    #[pyo3(signature = (*arguments, **options))]
    fn _profile(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Report, String, String, String)> {
        let profile = Arc::new(Mutex::new(Profile::default()));
        let options = Options::new(options)?;
        if let Some(name) = options.questions.given()? {
            let text =
                format!("{name}= and a profile both watch the launch: ask for one, then for the other");
            return Err(PyValueError::new_err(text));
        }
        let report = self.run(py, arguments, options, Some(&profile))?;
        let profile = lock(&profile);
        unless_panics(py, || {
            let lines = command::Report::new(self.kernel.shared.loaded.module(), &profile);
            let failed = |failure: command::Failure| other(py, "profile", &failure.message);
            let title = format!("{}: grid {:?}, block {:?}", self.kernel.entry.name, self.grid, self.block);
            Ok((report, lines.json().map_err(failed)?, lines.table(), lines.html(&title)))
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Kernel, Shape))> {
        let shape = (self.grid, self.block, self.dynamic_shared);
        Ok((py.import("operator")?.getattr("getitem")?, (self.kernel(), shape)))
    }

    fn __repr__(&self) -> String {
        format!("<ptxvm.Launcher {}[{:?}, {:?}]>", self.kernel.entry.name, self.grid, self.block)
    }
}

/// Grid, block, bytes of dynamic shared memory.
type Shape = ([u32; 3], [u32; 3], u64);
