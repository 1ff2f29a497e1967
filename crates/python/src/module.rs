//! `ptxvm.Module` and its kernels.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use diag::SourceFile;
use ptxvm::{Device, Function, Loaded, Tool, Tools, demangle, short_param, signature};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::arguments::Slot;
use crate::error::{plain, to_python, unless_panics};
use crate::launch::{Launcher, extents};
use crate::place::Places;

/// The state that a Python module and its kernels share.
pub struct Shared {
    /// The module, on its own device.
    pub loaded: Loaded,
    /// Places arrays on that device.
    pub places: Places,
    /// Bytes of an address.
    pub address_bytes: usize,
    /// The same, lowered for initcheck, once a launch has asked for that.
    for_initcheck: OnceLock<Loaded>,
    kernels: Mutex<HashMap<String, Arc<Entry>>>,
    lenient: bool,
    target: Option<String>,
}

/// A kernel, with all that its launches need.
pub struct Entry {
    /// Its name as in the PTX.
    pub name: String,
    /// Its parameters.
    pub slots: Vec<Slot>,
    /// The names of the arguments in messages.
    pub names: Vec<String>,
    /// Bytes of all parameters.
    pub bytes: usize,
}

impl Entry {
    fn new(kernel: &Function) -> Entry {
        let (layout, bytes) = machine::param_layout(kernel);
        let slots = kernel.params.iter().zip(layout);
        let slots = slots.map(|(param, (offset, _))| Slot { param: param.clone(), offset: offset as usize });
        let name = |(i, param): (usize, &ptxvm::Param)| {
            format!("argument {i} (`{}`)", short_param(&kernel.name, &param.name))
        };
        let names = kernel.params.iter().enumerate().map(name).collect();
        Entry { name: kernel.name.clone(), slots: slots.collect(), names, bytes: bytes as usize }
    }
}

impl Shared {
    /// The module, lowered as these tools need it. All lowerings share the variables.
    pub fn loaded_for(&self, tools: Tools) -> &Loaded {
        match tools.has(Tool::Initcheck) {
            true => self.for_initcheck.get_or_init(|| self.loaded.for_tools(tools)),
            false => &self.loaded,
        }
    }

    /// The checked function of a kernel.
    ///
    /// # Errors
    /// When there is no kernel of this name.
    pub fn function(&self, name: &str) -> PyResult<&Function> {
        self.loaded.module().kernel(name).map_err(|error| plain(&error))
    }

    /// A kernel by its name, as in the PTX or demangled, or by a part of its name that no other has.
    fn kernel(&self, name: &str) -> PyResult<Arc<Entry>> {
        let kernels = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kernels().get(name) {
            return Ok(Arc::clone(entry));
        }
        let module = self.loaded.module();
        let by = |test: &dyn Fn(&Function) -> bool| {
            module.kernels().filter(|kernel| test(kernel)).collect::<Vec<_>>()
        };
        let tests: [&dyn Fn(&Function) -> bool; 3] =
            [&|kernel| kernel.name == name, &|kernel| demangle(&kernel.name) == name, &|kernel| {
                kernel.name.contains(name) || demangle(&kernel.name).contains(name)
            }];
        let found = tests.iter().find_map(|test| match by(test)[..] {
            [kernel] => Some(kernel),
            _ => None,
        });
        let kernel = found.map_or_else(|| self.function(name), Ok)?;
        let entry = Arc::new(Entry::new(kernel));
        kernels().insert(name.to_owned(), Arc::clone(&entry));
        Ok(entry)
    }
}

/// PTX that passed the checker, on a device of its own: `Module("saxpy.ptx")`, `Module(text)`.
#[pyclass(frozen, module = "ptxvm")]
pub struct Module(pub Arc<Shared>);

/// The source that an object specifies: a path, text, or bytes of text.
pub fn source(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<SourceFile> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(SourceFile::from_bytes("<ptx>", bytes.as_bytes()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_cow()?;
        // Every module has this directive, and no file name does.
        if text.contains('\n') || text.contains(".version") {
            return Ok(SourceFile::new("<ptx>", text));
        }
    }
    let path: PathBuf = object.extract()?;
    let bytes = py.detach(|| std::fs::read(&path));
    let failed = |error: std::io::Error| ptxvm::Error::Io { path: path.clone(), error: Arc::new(error) };
    let bytes = bytes.map_err(|error| to_python(py, &failed(error)))?;
    Ok(SourceFile::from_bytes(path.display().to_string(), bytes))
}

/// The options of the checker.
pub fn options(py: Python<'_>, lenient: bool, target: Option<&str>) -> PyResult<ptxvm::Options> {
    let parse = |name: &str| {
        isa::Target::parse(name).ok_or_else(|| {
            let known: Vec<String> = isa::Target::all().map(|target| target.to_string()).collect();
            crate::error::other(
                py,
                "usage",
                &format!("`{name}` is no target; there are {}", known.join(", ")),
            )
        })
    };
    Ok(ptxvm::Options { lenient, target: target.map(parse).transpose()?, ..ptxvm::Options::default() })
}

impl Module {
    fn load(
        py: Python<'_>,
        sources: Vec<SourceFile>,
        lenient: bool,
        target: Option<String>,
    ) -> PyResult<Module> {
        let options = options(py, lenient, target.as_deref())?;
        let load = || {
            let modules = sources.into_iter().map(|source| ptxvm::Module::compile(source, &options));
            let modules = modules.collect::<Result<Vec<_>, _>>()?;
            let module = match &modules[..] {
                [first, others @ ..] if !others.is_empty() => first.link(others)?,
                [module, ..] => module.clone(),
                [] => return Ok(None),
            };
            let machine = machine::Device::new();
            let narrow = module.program().module.address_size == 32;
            if narrow {
                machine.use_narrow_addresses();
            }
            let loaded = Device::from(machine.clone()).load(&module)?;
            Ok(Some((loaded, Places::new(machine, narrow), narrow)))
        };
        let load = || py.detach(load).map_err(|error| to_python(py, &error));
        let made = unless_panics(py, load)?;
        let (loaded, places, narrow) = made.ok_or_else(|| PyValueError::new_err("there is no source"))?;
        let address_bytes = if narrow { 4 } else { 8 };
        let (for_initcheck, kernels) = (OnceLock::new(), Mutex::default());
        let shared = Shared { loaded, places, address_bytes, for_initcheck, kernels, lenient, target };
        Ok(Module(Arc::new(shared)))
    }
}

#[pymethods]
impl Module {
    #[new]
    #[pyo3(signature = (source, *others, lenient = false, target = None))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        others: &Bound<'_, PyTuple>,
        lenient: bool,
        target: Option<String>,
    ) -> PyResult<Module> {
        let mut sources = vec![self::source(py, source)?];
        for other in others {
            sources.push(self::source(py, &other)?);
        }
        Module::load(py, sources, lenient, target)
    }

    /// The module of sources that are named: what a pickled module is made of again.
    #[staticmethod]
    fn _of(
        py: Python<'_>,
        sources: Vec<(String, String)>,
        lenient: bool,
        target: Option<String>,
    ) -> PyResult<Module> {
        let sources = sources.into_iter().map(|(name, text)| SourceFile::new(name, text)).collect();
        Module::load(py, sources, lenient, target)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Module>().getattr("_of")?;
        let arguments = (self.sources(), self.0.lenient, self.0.target.as_deref()).into_pyobject(py)?;
        Ok((make, arguments))
    }

    /// Names and texts of the files that it is made of.
    #[getter]
    fn sources(&self) -> Vec<(String, String)> {
        let sources = self.0.loaded.module().sources();
        sources.map(|source| (source.name().to_owned(), source.text().to_owned())).collect()
    }

    /// The names of its kernels, as in the PTX.
    #[getter]
    fn kernels(&self) -> Vec<String> {
        self.0.loaded.module().kernels().map(|kernel| kernel.name.clone()).collect()
    }

    /// What is worth knowing about the text although it was accepted.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let module = self.0.loaded.module();
        module.warnings().iter().map(|one| crate::error::diagnostic(py, module.source(), one)).collect()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Kernel> {
        Ok(Kernel { shared: Arc::clone(&self.0), entry: self.0.kernel(name)? })
    }

    fn __len__(&self) -> usize {
        self.0.loaded.module().kernels().count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.kernels().into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.loaded.module().kernels().any(|kernel| kernel.name == name)
    }

    /// Copies the bytes out of a `.global` or `.const` variable.
    fn read_variable<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let read = || {
            let (_, size) = self.0.loaded.variable(name)?;
            let mut bytes = vec![0; size as usize];
            self.0.loaded.read_variable(name, 0, &mut bytes).map(|()| bytes)
        };
        let bytes = unless_panics(py, || read().map_err(|error| to_python(py, &error)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Copies bytes, or an array, into a `.global` or `.const` variable, from an offset on.
    #[pyo3(signature = (name, value, offset = 0))]
    fn write_variable(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        offset: u64,
    ) -> PyResult<()> {
        let memory = crate::memory::HostMemory::of(value)?;
        let memory = memory.ok_or_else(|| {
            let list = crate::arguments::list_advice(value);
            crate::error::other(py, "arguments", &format!("it is no array and no bytes{list}"))
        })?;
        let write = || self.0.loaded.write_variable(name, offset, &memory.copy());
        unless_panics(py, || write().map_err(|error| to_python(py, &error)))
    }

    fn __repr__(&self) -> String {
        let module = self.0.loaded.module();
        let kernels: Vec<&str> = module.kernels().map(|kernel| kernel.name.as_str()).collect();
        format!("<ptxvm.Module {}: {}>", module.source().name(), kernels.join(", "))
    }
}

/// A kernel of a module. `kernel[grid, block]` is what is called with arguments.
#[pyclass(frozen, module = "ptxvm")]
#[derive(Clone)]
pub struct Kernel {
    pub shared: Arc<Shared>,
    pub entry: Arc<Entry>,
}

#[pymethods]
impl Kernel {
    /// Its name, as in the PTX.
    #[getter]
    fn name(&self) -> &str {
        &self.entry.name
    }

    /// Its parameters for people, one a line.
    #[getter]
    fn signature(&self) -> PyResult<String> {
        self.shared.function(&self.entry.name).map(signature)
    }

    /// Name and declared type of every parameter.
    #[getter]
    fn parameters(&self) -> Vec<(String, String)> {
        let slots = self.entry.slots.iter();
        slots.map(|Slot { param, .. }| (param.name.clone(), ptxvm::describe(param))).collect()
    }

    /// The module that it is a kernel of.
    #[getter]
    fn module(&self) -> Module {
        Module(Arc::clone(&self.shared))
    }

    /// Registers, shared, local, constant and parameter memory in bytes, and the most threads of a block.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let attributes = self.shared.loaded.attributes(&self.entry.name);
        let attributes = attributes.map_err(|error| to_python(py, &error))?;
        let dictionary = PyDict::new(py);
        dictionary.set_item("registers", attributes.registers)?;
        dictionary.set_item("shared_bytes", attributes.shared_bytes)?;
        dictionary.set_item("local_bytes", attributes.local_bytes)?;
        dictionary.set_item("const_bytes", attributes.const_bytes)?;
        dictionary.set_item("param_bytes", attributes.param_bytes)?;
        dictionary.set_item("max_threads", attributes.max_threads)?;
        Ok(dictionary)
    }

    /// Why parts of its grid must not be launched apart from each other: of each access that other blocks may see in an order, its line, its
    /// text, and whether it only combines (an atomic operation whose old value nobody reads).
    fn _order_between_blocks(&self, py: Python<'_>) -> PyResult<Vec<(String, u32, String, bool)>> {
        unless_panics(py, || Ok(crate::order::between_blocks(&self.shared, &self.entry.name)))
    }

    fn __getitem__(&self, shape: &Bound<'_, PyAny>) -> PyResult<Launcher> {
        let wrong = || PyValueError::new_err("kernel[grid, block] or kernel[grid, block, shared_bytes]");
        let shape = shape.cast::<PyTuple>().map_err(|_| wrong())?;
        if !(2..=3).contains(&shape.len()) {
            return Err(wrong());
        }
        let (grid, block) = (extents(&shape.get_item(0)?)?, shape.get_item(1)?);
        let block = if block.is_none() {
            self.shared.function(&self.entry.name)?.bounds.required.unwrap_or([1; 3])
        } else {
            extents(&block)?
        };
        let dynamic_shared = if shape.len() == 3 { shape.get_item(2)?.extract()? } else { 0 };
        Ok(Launcher { kernel: self.clone(), grid, block, dynamic_shared })
    }

    #[pyo3(signature = (*_arguments, **_options))]
    fn __call__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "a kernel is launched with the number of blocks and of threads in a block: kernel[grid, block](...)\n{}",
            self.signature()?
        )))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Module, &str))> {
        Ok((py.import("operator")?.getattr("getitem")?, (self.module(), &self.entry.name)))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<ptxvm.Kernel {}>", self.signature()?))
    }
}
