//! One launch: a device, its arrays, and the output of these.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use check::module::Function;
use ptxvm::observe::ObserverHandle;
use ptxvm::{
    Arg, Buffer, Checker, Device, Engine, Error, KernelAttributes, LaunchReport, Loaded, Located, Module,
    Profile, Suppressions, by_cause,
};

use super::arguments::{Arguments, Place};
use super::array::{DType, HostArray, Style, show_shape};
use super::expect::{Comparison, Expected, Tolerance};
use super::options::{Format, Output, RunOptions};
use super::profile::Report;
use super::report::{Failure, print, say};
use super::run::Runner;
use super::save::save;
use super::spec::Value;
use super::texture::Made;
use super::variables::{self, Query};

/// A device with the module and the arguments of one launch.
pub struct Session {
    device: Device,
    /// The buffers of each parameter: one for an array, several for a structure.
    buffers: Vec<Vec<Buffer>>,
    /// By parameter: the texture, sampler or surface that its handle refers to.
    objects: Vec<Option<Made>>,
    /// The objects that variables are bound to, and their memory.
    bound: Vec<(String, Made, Option<Buffer>)>,
    profile: Arc<Mutex<Profile>>,
    checker: Option<Arc<Mutex<Checker>>>,
    /// The module, once it is loaded.
    loaded: Option<Loaded>,
    /// Watches the launch.
    observer: Option<ObserverHandle>,
    /// The kernel has run before, with its output shown.
    again: bool,
    /// The launch is profiled, whatever the options say.
    profiles: bool,
    /// The reader of the kernel's output has gone.
    unread: Arc<AtomicBool>,
    /// Where the kernel prints, instead of the standard output.
    output: Option<ptxvm::Output>,
}

/// The destination of `printf`: stops the kernel when the reader has gone.
struct Console<W> {
    to: W,
    cancel: Arc<AtomicBool>,
    unread: Arc<AtomicBool>,
}

impl<W: Write> Console<W> {
    fn see<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.unread.store(true, Ordering::SeqCst);
            self.cancel.store(true, Ordering::SeqCst);
        }
        result
    }
}

impl<W: Write> Write for Console<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.to.write(bytes);
        self.see(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.to.flush();
        self.see(result)
    }
}

/// Bytes per write when an array of zeros is initialised.
const ZEROS: usize = 1 << 16;
/// Larger arrays of zeros get host memory only when the kernel touches it.
const MOST_TOUCHED: u64 = 1 << 30;

impl Session {
    /// Allocates and fills the arrays.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn new(module: &Module, values: &Arguments) -> Result<Session, Error> {
        let device = Device::for_module(module);
        let (mut buffers, mut objects, mut bound) = (Vec::new(), Vec::new(), Vec::new());
        for (name, object) in &values.bound {
            let array = object.image.as_ref().map(|(array, _)| fill(&device, name, array)).transpose()?;
            let made = object.make(&device, array.as_ref().map_or(0, Buffer::address))?;
            bound.push((name.clone(), made, array));
        }
        for (param, value) in values.values.iter().enumerate() {
            let index = values.option(param);
            buffers.push(match value {
                Value::Bytes(_) => Vec::new(),
                Value::Structure { arrays, .. } => {
                    let arrays = arrays.iter().enumerate();
                    arrays
                        .map(|(field, (_, array))| {
                            fill(&device, &Place { index, field: Some(field) }.to_string(), array)
                        })
                        .collect::<Result<_, _>>()?
                }
                Value::Object(object) => {
                    let arrays =
                        object.image.iter().map(|(array, _)| fill(&device, &index.to_string(), array));
                    arrays.collect::<Result<_, _>>()?
                }
                array => vec![fill(&device, &index.to_string(), array)?],
            });
            objects.push(match (value, buffers.last().and_then(|of_param: &Vec<Buffer>| of_param.first())) {
                (Value::Object(object), array) => {
                    Some(object.make(&device, array.map_or(0, Buffer::address))?)
                }
                _ => None,
            });
        }
        let (checker, loaded, observer, again) = (None, None, None, false);
        let (profile, unread) = (Arc::default(), Arc::default());
        Ok(Session {
            device,
            buffers,
            objects,
            bound,
            profile,
            checker,
            loaded,
            observer,
            again,
            profiles: false,
            unread,
            output: None,
        })
    }

    /// The kernel prints here.
    pub fn print_to(&mut self, output: ptxvm::Output) {
        self.output = Some(output);
    }

    /// The launch gets this observer.
    pub fn observe(&mut self, observer: ObserverHandle) {
        self.observer = Some(observer);
    }

    /// The launch repeats another one, for its profile only: without output and tools.
    pub fn profile_again(&mut self) {
        (self.again, self.profiles) = (true, true);
    }

    /// The launch repeats another one, for whoever leads it: without output, tools and profile.
    pub fn lead_again(&mut self) {
        self.again = true;
    }

    /// The launch repeats another one, for this observer of accesses only: without output, tools and profile.
    pub fn observe_again(&mut self, observer: ObserverHandle) {
        self.observer = Some(observer);
        self.again = true;
    }

    /// Loads the module and runs the kernel.
    ///
    /// # Errors
    /// Those of [`ptxvm::Launch::run`] and [`Device::load`].
    pub fn launch(
        &mut self,
        module: &Module,
        kernel: &Function,
        values: &Arguments,
        options: &RunOptions,
        cancel: &Arc<AtomicBool>,
        runner: Runner<'_>,
    ) -> Result<LaunchReport, Error> {
        if let Some(bytes) = options.heap {
            self.device.set_heap_limit(bytes);
        }
        let loaded = self.device.load(module)?;
        for (name, data) in &values.variables {
            loaded.write_variable(name, 0, data)?;
        }
        self.loaded = Some(loaded.clone());
        for (name, made, _) in &self.bound {
            match made {
                Made::Texture(texture) => loaded.bind_texture(name, texture)?,
                Made::Surface(surface) => loaded.bind_surface(name, surface)?,
                Made::Sampler(sampler) => loaded.bind_sampler(name, sampler)?,
            }
        }
        let mut launch = loaded.launch(&kernel.name).configure(|config| {
            config.dynamic_shared = options.shared;
            config.cooperative = options.cooperative;
            config.cluster = options.cluster;
            config.threads = options.threads.map(usize::from);
            config.deterministic = options.deterministic;
            config.schedule = options.schedule;
            config.max_steps = options.max_steps;
            config.cancel = Some(Arc::clone(cancel));
            config.observer = self.observer.clone();
            config.profile = (self.profiles || options.profile.is_some() && !self.again)
                .then(|| Arc::clone(&self.profile));
            config.output = match options.format {
                _ if self.again => ptxvm::Output::to(io::sink()),
                _ if self.output.is_some() => self.output.clone().unwrap_or_default(),
                Format::Human => self.console(io::stdout(), cancel),
                // A program reads the report from the standard output.
                Format::Json => self.console(io::stderr(), cancel),
            };
        });
        let engine = if self.again { Engine::Interpreter } else { options.engine() };
        launch = launch.grid(options.grid()).block(options.block(kernel)).engine(engine);
        for ((value, buffers), object) in values.values.iter().zip(&self.buffers).zip(&self.objects) {
            launch = match (value, &buffers[..]) {
                (Value::Object(_), _) => match object {
                    Some(Made::Texture(texture)) => launch.arg(texture),
                    Some(Made::Surface(surface)) => launch.arg(surface),
                    Some(Made::Sampler(sampler)) => launch.arg(sampler),
                    None => launch,
                },
                (Value::Bytes(bytes), _) => launch.arg(Arg::bytes(bytes.as_slice())),
                (Value::Structure { bytes, arrays }, buffers) => {
                    let mut bytes = bytes.clone();
                    for ((offset, _), buffer) in arrays.iter().zip(buffers) {
                        bytes[*offset..*offset + 8].copy_from_slice(&buffer.address().to_le_bytes());
                    }
                    launch.arg(Arg::bytes(bytes))
                }
                (_, [buffer, ..]) => launch.arg(buffer),
                (_, []) => launch,
            };
        }
        if !options.tool.is_empty() && !self.again {
            let checker = Checker::shared(options.tool);
            for (value, buffers) in values.values.iter().zip(&self.buffers) {
                let mut checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
                for buffer in buffers {
                    if matches!(value, Value::Zeros { undefined: true, .. }) {
                        checker.undefined_memory(buffer.address(), buffer.bytes());
                    } else {
                        checker.defined_memory(buffer.address(), buffer.bytes());
                    }
                }
            }
            launch = launch.check(self.checker.insert(checker));
        }
        runner(launch)
    }

    /// The findings of the tools, without suppressed ones.
    pub fn findings(&self, module: &Module, known: &Suppressions) -> Vec<Located> {
        let mut found = self.checker.as_ref().map_or(Vec::new(), |checker| module.findings(checker));
        found.retain(|found| !known.has(found));
        by_cause(found)
    }

    fn console(&self, to: impl Write + Send + 'static, cancel: &Arc<AtomicBool>) -> ptxvm::Output {
        ptxvm::Output::to(Console { to, cancel: Arc::clone(cancel), unread: Arc::clone(&self.unread) })
    }

    /// Whether the reader of the kernel's output has gone.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::SeqCst)
    }

    /// The profile as counted.
    pub fn counted(&self) -> Profile {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The attributes of a kernel, once the module is loaded.
    pub fn attributes(&self, kernel: &Function) -> Option<KernelAttributes> {
        self.loaded.as_ref()?.attributes(&kernel.name).ok()
    }

    /// The profile by lines of the module, if it was requested.
    pub fn profile<'a>(&self, module: &'a Module, options: &RunOptions) -> Option<Report<'a>> {
        options.profile.as_ref()?;
        let profile = self.profile.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Report::new(module, &profile))
    }

    /// Shows and saves the requested arrays.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn deliver(&self, values: &Arguments, options: &RunOptions) -> Result<(), Failure> {
        for part in &options.print {
            if let Some(mut array) = self.array(values, part.place)? {
                if let Some(elements) = &part.elements {
                    array = array.part(elements.clone());
                }
                let style = Style { bits: options.hex, whole: part.elements.is_some() };
                let text = format!("{part}: {}", array.show(style));
                match options.format {
                    Format::Human => print(text)?,
                    Format::Json => say(text),
                }
            }
        }
        for Query { name, path } in &options.get {
            let Some(loaded) = &self.loaded else { continue };
            let array = variables::read(loaded, variables::find(loaded.module(), name)?)?;
            let text = format!("{name}: {}", array.show(Style { bits: options.hex, whole: false }));
            match (path, options.format) {
                (Some(path), _) => save_as(&array, path)?,
                (None, Format::Human) => print(text)?,
                (None, Format::Json) => say(text),
            }
        }
        for Output { place, path } in &options.out {
            if let Some(array) = self.array(values, *place)? {
                save_as(&array, path)?;
            }
        }
        Ok(())
    }

    /// Compares arrays with what they should hold.
    ///
    /// # Errors
    /// When an array cannot be read.
    pub fn compare(
        &self,
        values: &Arguments,
        expected: &[Expected],
        tolerance: Tolerance,
    ) -> Result<Vec<Comparison>, Failure> {
        let arrays = expected.iter().map(|expected| {
            let array = self.array(values, expected.place())?;
            Ok(array.map(|array| expected.compare(&array, tolerance)))
        });
        arrays.filter_map(Result::transpose).collect()
    }

    /// The type of an array's elements, and its addresses.
    pub fn addresses(&self, values: &Arguments, place: Place) -> Option<(DType, Range<u64>)> {
        let param = values.param(place.index)?;
        let (dtype, _) = values.values[param].at(place.field).and_then(Value::array)?;
        let buffer = self.buffers[param].get(place.field.unwrap_or(0))?;
        Some((dtype, buffer.address()..buffer.address() + buffer.bytes()))
    }

    /// The element of an argument's array at an address: `2[17]`.
    pub fn element(&self, values: &Arguments, address: u64) -> Option<String> {
        for (param, buffers) in self.buffers.iter().enumerate() {
            for (field, buffer) in buffers.iter().enumerate() {
                let offset = address.checked_sub(buffer.address()).filter(|&offset| offset < buffer.bytes());
                let is_structure = matches!(values.values[param], Value::Structure { .. });
                let place = Place { index: values.option(param), field: is_structure.then_some(field) };
                if let Some((offset, (dtype, _))) = offset.zip(self.addresses(values, place)) {
                    return Some(format!("{place}[{}]", offset / dtype.bytes() as u64));
                }
            }
        }
        None
    }

    /// The current contents of up to 16 bytes, little-endian.
    pub fn bytes(&self, addresses: &Range<u64>) -> Option<u128> {
        let mut bytes = [0; 16];
        let count = usize::try_from(addresses.end - addresses.start).ok()?;
        self.device.read_at(addresses.start, bytes.get_mut(..count)?).ok()?;
        Some(u128::from_le_bytes(bytes))
    }

    /// The current contents of an argument's array.
    pub fn array(&self, values: &Arguments, place: Place) -> Result<Option<HostArray>, Failure> {
        let Some(param) = values.param(place.index) else { return Ok(None) };
        let array = values.values[param].at(place.field).and_then(Value::array);
        let buffer = self.buffers[param].get(place.field.unwrap_or(0));
        let (Some((dtype, shape)), Some(buffer)) = (array, buffer) else { return Ok(None) };
        let mut data = vec![0; buffer.bytes() as usize];
        buffer.read(0, &mut data).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Some(HostArray { dtype, shape: shape.to_vec(), data }))
    }
}

fn save_as(array: &HostArray, path: &Path) -> Result<(), Failure> {
    save(array, path).map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))
}

/// Allocates and fills an array; `index` is its name in messages.
fn fill(device: &Device, index: &str, value: &Value) -> Result<Buffer, Error> {
    let name = match value.array() {
        Some((dtype, shape)) => format!("argument {index} ({}[{}])", dtype.name(), show_shape(shape)),
        None => format!("argument {index}"),
    };
    let buffer = device.allocate(value.array_bytes(), name)?;
    if let Value::Array(array) = value {
        buffer.write(0, &array.data)?;
    } else {
        // New memory is zero already. Writing to it makes the host provide the pages now, rather than while the
        // kernel is timed. Very large arrays are left alone, so that only the pages that the kernel touches exist.
        let zeros = vec![0; ZEROS];
        let touched = if buffer.bytes() > MOST_TOUCHED { 0 } else { buffer.bytes() };
        for offset in (0..touched).step_by(ZEROS) {
            let part = (touched - offset).min(ZEROS as u64) as usize;
            buffer.write(offset, &zeros[..part])?;
        }
    }
    Ok(buffer)
}
