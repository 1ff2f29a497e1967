//! The native part of the Python package `ptxvm`. `python/ptxvm` has the rest, and type stubs (`_native.pyi`).
//!
//! Code that runs often is in Rust: modules and kernels (`module.rs`), arguments (`arguments.rs`), launches
//! (`launch.rs`) and what they look for (`observe.rs`), one instruction on arrays (`evaluate.rs`). The rest is in Python: exceptions, profiles, jobs, the
//! pytest plugin. mypy's stubtest compares the stubs with the package.
//!
//! One wheel serves all versions from 3.9 on: it uses the stable ABI and `PyObject_GetBuffer` (`memory.rs`). The
//! crate is a cdylib without tests of its own, because only an interpreter can load it. The build needs no
//! interpreter. `.ci/python` builds the wheel and tests it.

mod arguments;
mod dlpack;
mod error;
mod evaluate;
mod interrupt;
mod launch;
mod memory;
mod module;
mod observe;
mod order;
mod place;
mod texture;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Everything that there is to say about PTX, warnings included.
#[pyfunction]
#[pyo3(signature = (source, lenient = false, target = None))]
fn check<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    lenient: bool,
    target: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    error::unless_panics(py, || {
        let source = module::source(py, source)?;
        let options = module::options(py, lenient, target)?;
        let options = ::check::Options { assembly: ::check::Assembly::Whole, ..options };
        let diagnostics = py.detach(|| {
            let (tree, parsed) = syntax::parse(&source);
            ::check::check(&source, &tree, parsed, &options).1
        });
        diagnostics.iter().map(|one| error::diagnostic(py, &source, one)).collect()
    })
}

/// The page of an instruction, a form of it, or `.modifier`, as Markdown.
#[pyfunction]
fn explain(py: Python<'_>, name: &str) -> PyResult<String> {
    let page = || command::page(name.trim());
    error::unless_panics(py, || {
        page().map_err(|failure| {
            let advice = failure.advice().map(|advice| format!("\nhelp: {advice}")).unwrap_or_default();
            error::other(py, "no-such-name", &(failure.message.clone() + &advice))
        })
    })
}

/// Ends all launches that run now, on whatever thread: they raise an :class:`Error` with the code ``cancelled``.
#[pyfunction]
fn stop() {
    interrupt::stop();
}

/// Does what the `ptxvm` command does with these words, and returns its exit code. `again` runs it again, `libraries` is the folder of those that
/// `ptxvm exec` gives to programs.
#[pyfunction]
fn command_main(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>, libraries: PathBuf) -> u8 {
    let call = command::Call { words, again: Some(again), libraries: Some(libraries) };
    py.detach(|| command::main(&call))
}

/// The module `ptxvm._native`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    machine::report_briefly();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("OPTIMIZED", !cfg!(debug_assertions))?;
    module.add_class::<module::Module>()?;
    module.add_class::<module::Kernel>()?;
    module.add_class::<launch::Launcher>()?;
    module.add_class::<launch::Report>()?;
    module.add_class::<evaluate::Instruction>()?;
    module.add_class::<texture::Object>()?;
    module.add_function(wrap_pyfunction!(crate::check, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(stop, module)?)?;
    module.add_function(wrap_pyfunction!(command_main, module)?)
}
