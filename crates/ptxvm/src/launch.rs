//! Launching a kernel.

use std::sync::{Arc, Mutex};

use check::module::{Function, Param};
use diag::{Code, Diagnostic, Span};
use isa::{Action, Effect, Kind, Type};
use machine::device_runtime::{Child, Work};
use machine::{
    Fault, LaunchConfig, LaunchError, LaunchObserver, LaunchReport, NativeCode, ObserverHandle, Output,
    Place, Undefined,
};

use reference::Debugger;
use tools::Checker;

use crate::name::{short_name, short_param};
use crate::texture::Handle;
use crate::{
    ArgumentError, Array, Buffer, Element, Error, Loaded, Module, SamplerState, Slice, Stopped, Surface,
    Texture,
};

/// An argument of a launch, made from a number, an array or raw bytes.
#[derive(Clone)]
pub struct Arg {
    bytes: Vec<u8>,
    /// The type of the number; `None` for raw bytes, which fit every parameter of their size.
    ty: Option<Type>,
    /// The argument is an address in this memory. Any parameter of the module's address size takes it.
    memory: Option<Buffer>,
    /// The argument is the handle of this object.
    object: Option<Arc<Handle>>,
}

impl Arg {
    /// Raw bytes, for structures and for anything else of exactly this size.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Arg {
        Arg { bytes: bytes.into(), ty: None, memory: None, object: None }
    }

    /// An address within a buffer.
    fn address(address: u64, buffer: &Buffer) -> Arg {
        Arg { bytes: address.to_le_bytes().to_vec(), ty: None, memory: Some(buffer.clone()), object: None }
    }

    /// The bytes that the parameter gets, if it can take this argument. Addresses have `address_bytes` bytes.
    fn fit(&self, param: &Param, address_bytes: usize) -> Option<&[u8]> {
        let wanted = usize::try_from(param.bytes).ok()?;
        if self.memory.is_some() {
            let fits = !param.array && !param.ty.is_float() && wanted == address_bytes;
            let (low, high) = self.bytes.split_at_checked(wanted)?;
            return (fits && high.iter().all(|&byte| byte == 0)).then_some(low);
        }
        let kind_fits = match self.ty {
            None => true,
            Some(_) if param.array => false,
            Some(ty) => param.ty.kind() == Kind::Bits || ty.is_float() == param.ty.is_float(),
        };
        (kind_fits && self.bytes.len() == wanted).then_some(&self.bytes)
    }

    /// What the argument is, for messages.
    fn description(&self) -> String {
        match self.ty {
            _ if self.memory.is_some() => "an array".to_owned(),
            _ if self.object.is_some() => "a texture, sampler or surface".to_owned(),
            Some(ty) => format!("a .{}", ty.name()),
            None => format!("{} bytes", self.bytes.len()),
        }
    }
}

impl<T: Element> From<T> for Arg {
    fn from(value: T) -> Arg {
        let mut bytes = vec![0; T::BYTES];
        value.store(&mut bytes);
        Arg { bytes, ty: Some(T::TYPE), memory: None, object: None }
    }
}

impl<T: Element> From<&Array<T>> for Arg {
    fn from(array: &Array<T>) -> Arg {
        Arg::from(array.buffer())
    }
}

impl<T: Element> From<&Slice<T>> for Arg {
    fn from(slice: &Slice<T>) -> Arg {
        Arg::address(slice.address(), slice.buffer())
    }
}

impl From<&Buffer> for Arg {
    fn from(buffer: &Buffer) -> Arg {
        Arg::address(buffer.address(), buffer)
    }
}

macro_rules! from_object {
    ($($Name:ident)*) => { $(
        impl From<&$Name> for Arg {
            fn from(object: &$Name) -> Arg {
                let bytes = object.handle().to_le_bytes().to_vec();
                Arg { bytes, ty: None, memory: None, object: Some(Arc::clone(&object.0)) }
            }
        }
    )* };
}
from_object!(Texture Surface SamplerState);

/// Extents in x, y and z, made from one, two or three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents(pub [u32; 3]);

impl From<u32> for Extents {
    fn from(x: u32) -> Extents {
        Extents([x, 1, 1])
    }
}

impl From<(u32, u32)> for Extents {
    fn from((x, y): (u32, u32)) -> Extents {
        Extents([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Extents {
    fn from((x, y, z): (u32, u32, u32)) -> Extents {
        Extents([x, y, z])
    }
}

impl From<[u32; 3]> for Extents {
    fn from(extents: [u32; 3]) -> Extents {
        Extents(extents)
    }
}

/// What executes a kernel. All engines compute the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// The interpreter, and native code for loops that run often. `PTXVM_ENGINE` and
    /// [`LaunchConfig::native_code`] may choose otherwise.
    #[default]
    Auto,
    /// The block-vectorised interpreter: fast, on all cores.
    Interpreter,
    /// The interpreter, with native code for every loop that can have it ([`NativeCode`]). For tests.
    Native,
    /// One thread at a time, as the manual reads: slow. Tests compare the interpreter with it.
    Reference,
}

/// What runs a prepared launch.
type Run<'r> = &'r mut dyn FnMut(&machine::Launch) -> Result<LaunchReport, LaunchError>;

/// A launch in preparation. The default is one block of one thread (or of the kernel's `.reqntid`) without arguments.
/// It can be sent to another thread, and keeps its module and arrays alive.
#[must_use = "nothing happens before `run`"]
pub struct Launch {
    loaded: Loaded,
    kernel: String,
    config: LaunchConfig,
    engine: Engine,
    /// `None`: `.reqntid`, or one thread.
    block: Option<[u32; 3]>,
    args: Vec<Arg>,
    /// All parameters as bytes, instead of arguments.
    params: Option<Vec<u8>>,
}

impl Launch {
    pub(crate) fn new(loaded: Loaded, kernel: &str) -> Launch {
        let config = LaunchConfig::new([1; 3], [1; 3]);
        Launch {
            loaded,
            kernel: kernel.to_owned(),
            config,
            engine: Engine::default(),
            block: None,
            args: Vec::new(),
            params: None,
        }
    }

    /// The module of the kernel.
    pub fn module(&self) -> &Module {
        self.loaded.module()
    }

    /// Number of blocks: `grid(64)`, `grid((8, 8))`, `grid((4, 4, 4))`.
    pub fn grid(mut self, grid: impl Into<Extents>) -> Launch {
        self.config.grid = grid.into().0;
        self
    }

    /// Blocks of a cluster: `cluster(2)`, `cluster((2, 2))`. The grid must be a multiple of it. A cluster has at most
    /// 16 blocks; only clusters of up to 8 run on every GPU. The default is the kernel's `.reqnctapercluster`, or one
    /// block.
    pub fn cluster(mut self, cluster: impl Into<Extents>) -> Launch {
        self.config.cluster = Some(cluster.into().0);
        self
    }

    /// Threads of a block: `block(256)`, `block((16, 16))`.
    pub fn block(mut self, block: impl Into<Extents>) -> Launch {
        self.block = Some(block.into().0);
        self
    }

    /// The next argument.
    pub fn arg(mut self, arg: impl Into<Arg>) -> Launch {
        self.args.push(arg.into());
        self
    }

    /// All parameters at once, instead of arguments: their bytes, laid out as [`machine::param_layout`] says.
    pub fn params(mut self, bytes: impl Into<Vec<u8>>) -> Launch {
        self.params = Some(bytes.into());
        self
    }

    /// Chooses the engine. The reference engine ignores host threads, host paths,
    /// schedules and profiles.
    pub fn engine(mut self, engine: Engine) -> Launch {
        self.engine = engine;
        self
    }

    /// Launches cooperatively: blocks may wait for one another (`grid_group::sync`). The grid has at most 4,736
    /// blocks.
    pub fn cooperative(self) -> Launch {
        self.configure(|config| config.cooperative = true)
    }

    /// Where `printf` writes; the default is the standard output.
    pub fn output(mut self, output: Output) -> Launch {
        self.config.output = output;
        self
    }

    /// Attaches an observer. It sees every memory access with its addresses, order and scope, and every event at
    /// barriers. It costs time, works with the interpreter only, and excludes a profile.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use ptxvm::observe::{AccessEvent, LaunchObserver};
    /// use ptxvm::{Device, Module};
    ///
    /// /// Ends a launch that writes to an address.
    /// struct Watchpoint(u64);
    ///
    /// impl LaunchObserver for Watchpoint {
    ///     fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
    ///         match access.kind.writes() && access.lanes.iter().any(|lane| lane.address == self.0) {
    ///             true => ControlFlow::Break(()),
    ///             false => ControlFlow::Continue(()),
    ///         }
    ///     }
    /// }
    ///
    /// # let module = Module::from_ptx(
    /// #     ".version 7.0 .target sm_70 .address_size 64
    /// #      .visible .entry fill(.param .u64 data) {
    /// #          .reg .b64 %p;  .reg .u32 %i;
    /// #          ld.param.u64 %p, [data];
    /// #          mov.u32 %i, %tid.x;
    /// #          mad.wide.u32 %p, %i, 4, %p;
    /// #          st.global.u32 [%p], 7;
    /// #          ret; }")?;
    /// let device = Device::new();
    /// let data = device.zeros::<u32>(8)?;
    /// let watchpoint = Arc::new(Mutex::new(Watchpoint(data.address() + 12)));
    /// let launch = device.load(&module)?.launch("fill").block(8).arg(&data).observe(watchpoint);
    /// let error = launch.run().unwrap_err();
    /// assert!(error.to_string().contains("st.global.u32 [%p], 7"), "{error}");
    /// assert_eq!(data.read()?, [0; 8]);
    /// # Ok::<(), ptxvm::Error>(())
    /// ```
    pub fn observe(self, observer: Arc<Mutex<impl LaunchObserver + 'static>>) -> Launch {
        self.configure(|config| config.observer = Some(ObserverHandle::new(observer)))
    }

    /// Attaches tools; [`Module::findings`] returns what they found. The findings are the same for every number of
    /// host threads: if a tool finds something, or one block depends on another, all blocks run again from the
    /// beginning on one host thread, and that run determines the findings.
    ///
    /// ```
    /// use ptxvm::{Checker, Device, Module, Tools};
    ///
    /// # let module = Module::from_ptx(
    /// #     ".version 7.0 .target sm_70 .address_size 64
    /// #      .visible .entry sum(.param .u64 data) {
    /// #          .reg .b64 %p;  .reg .u32 %i;
    /// #          ld.param.u64 %p, [data];
    /// #          ld.global.u32 %i, [%p];
    /// #          add.u32 %i, %i, 1;
    /// #          st.global.u32 [%p], %i;
    /// #          ret; }")?;
    /// let device = Device::new();
    /// let data = device.zeros::<u32>(1)?;
    /// let checker = Checker::shared(Tools::ALL);
    /// device.load(&module)?.launch("sum").block(8).arg(&data).check(&checker).run()?;
    /// let findings = module.findings(&checker);
    /// assert!(findings.iter().any(|found| found.finding.kind.code() == "race-write-read"));
    /// println!("{}", findings[0]); // shows both lines
    /// # Ok::<(), ptxvm::Error>(())
    /// ```
    pub fn check(self, checker: &Arc<Mutex<Checker>>) -> Launch {
        let observer = ObserverHandle::new(Arc::clone(checker));
        self.configure(|config| config.observer = Some(observer))
    }

    /// Changes any other setting of the launch: dynamic shared memory, host threads, order, limits.
    pub fn configure(mut self, change: impl FnOnce(&mut LaunchConfig)) -> Launch {
        change(&mut self.config);
        self
    }

    /// Runs the kernel and waits until it has ended. [`Stream::launch`](crate::Stream::launch) does not wait.
    ///
    /// # Errors
    /// Before anything runs: [`Error::NoSuchName`], [`Error::Arguments`], [`Error::Launch`], [`Error::Cluster`],
    /// [`Error::Undefined`] and [`Error::Unsupported`]. While the kernel runs: [`Error::Fault`],
    /// [`Error::StepLimit`], [`Error::Cancelled`] and [`Error::Panicked`].
    pub fn run(self) -> Result<LaunchReport, Error> {
        let engine = self.engine;
        self.run_on(&mut |launch| match engine {
            Engine::Reference => reference::run(launch),
            Engine::Auto | Engine::Interpreter | Engine::Native => vm::run(launch),
        })
    }

    /// Runs the kernel under a debugger, on the reference engine. Kernels that it launches run after it, without the debugger.
    ///
    /// # Errors
    /// As [`Launch::run`]; [`Error::Cancelled`] if the debugger quits.
    pub fn debug(self, debugger: &mut dyn Debugger) -> Result<LaunchReport, Error> {
        let mut debugger = Some(debugger);
        self.run_on(&mut |launch| match debugger.take() {
            Some(debugger) => reference::debug(launch, debugger),
            None => reference::run(launch),
        })
    }

    fn run_on(self, run: Run<'_>) -> Result<LaunchReport, Error> {
        machine::caught(|| self.run_now(run)).unwrap_or_else(|message| Err(Error::panicked_launch(&message)))
    }

    fn run_now(mut self, run: Run<'_>) -> Result<LaunchReport, Error> {
        let loaded = self.loaded.clone();
        let checked = &loaded.module().program().module;
        let id = loaded.loaded().kernel(&self.kernel);
        let id = id.ok_or_else(|| loaded.module().no_such_kernel(&self.kernel))?;
        let kernel = &checked.functions[id.index()];
        let address_bytes = checked.address_size as usize / 8;
        let params = match self.params.take() {
            Some(params) => params,
            None => pack(kernel, &self.args, address_bytes, loaded.device().number())?,
        };
        if let Some(block) = self.block.or(kernel.bounds.required) {
            self.config.block = block;
        }
        let mut config = self.config.clone();
        match self.engine {
            Engine::Interpreter => config.native_code = Some(NativeCode::Never),
            Engine::Native => config.native_code = Some(NativeCode::Always),
            Engine::Auto | Engine::Reference => {}
        }
        let prepared = loaded.device().machine().prepare(loaded.loaded(), &self.kernel, config, params);
        let (launch, mut report, work) = prepared
            .and_then(|launch| {
                let (report, work) = (run(&launch), launch.take_work());
                Ok((launch, report?, work))
            })
            .map_err(|error| self.error(kernel, error))?;
        for work in work {
            match &work {
                Work::Launch(child) => {
                    let of_child = self.child(child, &report).run_now(run).map_err(|error| match error {
                        // It had what this launch has left.
                        Error::StepLimit { limit, at } => {
                            Error::StepLimit { limit: self.config.max_steps.unwrap_or(limit), at }
                        }
                        error => error,
                    })?;
                    report.thread_instructions += of_child.thread_instructions;
                    report.seconds += of_child.seconds;
                }
                _ => launch.do_work(&work).map_err(|kind| {
                    Error::Launch(format!("a copy that kernel `{}` asked for: {kind:?}", self.kernel))
                })?,
            }
        }
        Ok(report)
    }

    /// The launch of a kernel by this one, which has run.
    fn child(&self, child: &Child, report: &LaunchReport) -> Launch {
        let mut config = self.config.clone();
        config.nesting += 1;
        (config.grid, config.block, config.dynamic_shared) = (child.grid, child.block, child.dynamic_shared);
        (config.cluster, config.cooperative, config.blocks, config.progress) = (None, false, None, None);
        config.bindings.clear();
        config.max_steps = config.max_steps.map(|most| most.saturating_sub(report.thread_instructions));
        let kernel = self.loaded.module().program().module.functions[child.function.index()].name.clone();
        Launch {
            config,
            engine: self.engine,
            block: Some(child.block),
            params: Some(child.params.clone()),
            ..Launch::new(self.loaded.clone(), &kernel)
        }
    }

    /// What an engine or the preparation says, for this launch.
    fn error(&self, kernel: &Function, error: LaunchError) -> Error {
        match error {
            LaunchError::Invalid(message) => Error::Launch(message),
            LaunchError::InvalidCluster(message) => Error::Cluster(message),
            LaunchError::Binding(error) => Error::Texture(error),
            LaunchError::Unsupported(what) => self.unsupported(&what),
            LaunchError::Undefined(names) => self.undefined(&names),
            LaunchError::Fault(fault) => located(self.loaded.module(), kernel, fault),
            LaunchError::Panicked(message) => Error::panicked_launch(&message),
            LaunchError::StepLimit { limit, place } => Error::StepLimit { limit, at: self.stopped(place) },
            LaunchError::Cancelled { place } => Error::Cancelled { at: self.stopped(place) },
        }
    }
}

/// A fault, with the source that contains its spans.
fn located(module: &Module, kernel: &Function, mut fault: Box<Fault>) -> Error {
    if fault.span == Span::default() {
        // No instruction is at fault: the kernel is.
        fault.span = kernel.span;
    }
    module.located(fault)
}

impl Module {
    /// A fault that [`LaunchConfig::overruns`] noted in a launch of this module, with the source that contains its
    /// spans.
    pub fn located(&self, mut fault: Box<Fault>) -> Error {
        let sources: Vec<_> = self.sources().collect();
        let (index, span) = self.locate(fault.span);
        fault.span = span;
        for (text, place) in &mut fault.notes {
            let Some((other, span)) = place.map(|span| self.locate(span)) else { continue };
            *place = Some(span).filter(|_| other == index);
            if other != index {
                let position = sources[other].position(span.start);
                *text = format!("{text}: {}:{}:{}", sources[other].name(), position.line, position.column);
            }
        }
        Error::Fault { source: Arc::clone(sources[index]), fault }
    }
}

impl Launch {
    /// Where a thread was when the launch was stopped, with the source that contains the place.
    fn stopped(&self, place: Option<Place>) -> Option<Box<Stopped>> {
        let place = place?;
        let module = self.loaded.module();
        let (index, span) = module.locate(place.span);
        let source = Arc::clone(module.sources().nth(index)?);
        Some(Box::new(Stopped { source, kernel: self.kernel.clone(), place: Place { span, ..place } }))
    }

    /// The kernel needs names that nothing defines. The message has the words of NVIDIA's linker, and is about the
    /// first source with such a place.
    fn undefined(&self, names: &[Undefined]) -> Error {
        let (kernel, module) = (&self.kernel, self.loaded.module());
        let place = |undefined: &Undefined| module.locate(undefined.span);
        let first = names.iter().map(|undefined| place(undefined).0).min().unwrap_or(0);
        let source = module.sources().nth(first).unwrap_or(module.source());
        let diagnostic = |undefined: &Undefined| {
            let (index, span) = place(undefined);
            let message = format!("Undefined reference to '{}' in '{}'", undefined.name, source.name());
            let user = &undefined.user;
            let needs = if user == kernel {
                format!("kernel `{kernel}` is not launched: it needs it")
            } else {
                format!("kernel `{kernel}` is not launched: it reaches `{user}`, which needs it")
            };
            let diagnostic = Diagnostic::error(Code::UndefinedReference, span, message).note(needs);
            (index == first).then(|| diagnostic.help(undefined.why.clone()))
        };
        let diagnostics = names.iter().filter_map(diagnostic).collect();
        Error::Undefined { source: Arc::clone(source), diagnostics }
    }

    /// The kernel can reach an instruction that no engine executes.
    fn unsupported(&self, what: &machine::Unsupported) -> Error {
        let name = what.form.name(&what.picks);
        let (kernel, module) = (&self.kernel, self.loaded.module());
        let message = format!("kernel `{kernel}` is not launched: ptxvm does not execute `{name}`");
        let (index, span) = module.locate(what.span);
        let (why, help) = match what.form.action {
            Action::Effect(Effect::Fabric) => (
                "it reaches the memory of another device by way of a fabric, and ptxvm has one device",
                "launch kernels that do not need a fabric",
            ),
            Action::Effect(Effect::SparseData) => (
                "no published document says which elements it selects, and where their places stand in the metadata",
                "select the elements with ordinary instructions",
            ),
            Action::Effect(Effect::LdMatrix) => (
                "no document says where in shared memory its elements lie",
                "use `.b8`, or a format between which and eight bits it converts",
            ),
            _ => (
                "it adds a number to a predicate, which ptxas accepts, too, and generates no code for",
                "write the predicate without a number",
            ),
        };
        let mut diagnostic = Diagnostic::error(Code::Unsupported, span, message).note(why);
        let function = module.program().module.functions.get(what.function.index());
        if let Some(function) = function.filter(|function| function.name != *kernel) {
            diagnostic = diagnostic.note(format!("it is in `{}`, which the kernel can call", function.name));
        }
        let diagnostic = diagnostic.help(help);
        let source = module.sources().nth(index).unwrap_or(module.source());
        Error::Unsupported { source: Arc::clone(source), diagnostic: Box::new(diagnostic) }
    }
}

/// The raw parameter bytes.
fn pack(kernel: &Function, args: &[Arg], address_bytes: usize, device: u64) -> Result<Vec<u8>, Error> {
    let wrong = |kind, message| Error::Arguments { kind, message, signature: signature(kernel) };
    let too_large = || wrong(ArgumentError::TooLarge, "the parameters are too large".to_owned());
    if args.len() != kernel.params.len() {
        let (name, takes, given) = (short_name(&kernel.name), kernel.params.len(), args.len());
        let message = format!("kernel `{name}` takes {takes} arguments, but {given} were given");
        return Err(wrong(ArgumentError::Count { takes, given }, message));
    }
    let (layout, total) = machine::param_layout(kernel);
    let mut bytes = Vec::new();
    let total = usize::try_from(total).ok().filter(|&total| bytes.try_reserve_exact(total).is_ok());
    bytes.resize(total.ok_or_else(too_large)?, 0);
    for (i, ((arg, param), (offset, _))) in args.iter().zip(&kernel.params).zip(layout).enumerate() {
        if arg.memory.as_ref().is_some_and(|memory| memory.device().number() != device) {
            let message = format!(
                "argument {i} is an array of another device: make it on the device that the module is loaded on"
            );
            return Err(wrong(ArgumentError::OtherDevice(i), message));
        }
        let high = arg.bytes.get(address_bytes..).unwrap_or_default();
        if arg.memory.is_some() && high.iter().any(|&byte| byte != 0) {
            let message = format!(
                "argument {i} lies beyond the first 4 GiB, where the module's addresses of 32 bits end: make the device \
                 with `Device::for_module`"
            );
            return Err(wrong(ArgumentError::BeyondAddresses(i), message));
        }
        let value = arg.fit(param, address_bytes).ok_or_else(|| {
            let (given, wanted) = (arg.description(), describe(param));
            let name = short_param(&kernel.name, &param.name);
            let message = format!("argument {i} is {given}, but parameter `{name}` is {wanted}");
            wrong(ArgumentError::Type(i), message)
        })?;
        let place =
            usize::try_from(offset).ok().and_then(|start| bytes.get_mut(start..)?.get_mut(..value.len()));
        place.ok_or_else(too_large)?.copy_from_slice(value);
    }
    Ok(bytes)
}

/// The type of a parameter as its declaration writes it: `.u64`, `.b8[16]`.
pub fn describe(param: &Param) -> String {
    if param.array {
        format!(".{}[{}]", param.ty.name(), param.bytes / u64::from(param.ty.bytes()))
    } else {
        format!(".{}", param.ty.name())
    }
}

/// A kernel's parameters for messages, one a line.
pub fn signature(kernel: &Function) -> String {
    let mut text = format!("{} (", short_name(&kernel.name));
    for (i, param) in kernel.params.iter().enumerate() {
        text += &format!("\n    {i}: {} {}", describe(param), short_param(&kernel.name, &param.name));
        if let Some((space, _)) = param.pointer {
            text += &format!("  (pointer to {})", crate::json::space(space));
        }
    }
    text + if kernel.params.is_empty() { ")" } else { "\n)" }
}
