//! `ptxvm.Error` and its diagnostics.

use diag::{Code, Color, Diagnostic, SourceFile, render};
use ptxvm::{Error, Named};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};

/// An exception class of `ptxvm/_error.py`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Error,
    Argument,
    Name,
}

impl Class {
    fn get(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASSES: [PyOnceLock<Py<PyType>>; 3] = [const { PyOnceLock::new() }; 3];
        let name = ["Error", "ArgumentError", "KernelNotFoundError"][self as usize];
        CLASSES[self as usize].import(py, "ptxvm._error", name)
    }
}

/// A diagnostic as a Python object.
pub fn diagnostic<'py>(
    py: Python<'py>,
    source: &SourceFile,
    diagnostic: &Diagnostic,
) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let start = source.position(diagnostic.span.start);
    let end = source.position(diagnostic.span.end.max(diagnostic.span.start));
    let labels: Vec<(u32, u32, &str)> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let at = source.position(label.span.start);
            (at.line, at.column, label.text.as_str())
        })
        .collect();
    CLASS.import(py, "ptxvm._error", "Diagnostic")?.call1((
        diagnostic.code.name(),
        diagnostic.severity.name(),
        &diagnostic.message,
        source.name(),
        start.line,
        start.column,
        end.line,
        end.column,
        diagnostic.help.as_deref(),
        &diagnostic.notes,
        labels,
        render(source, diagnostic, Color::Never),
    ))
}

/// The attributes of an error besides its text.
fn facts<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    let (code, source) = match error {
        Error::Bad { source, diagnostics } | Error::Undefined { source, diagnostics } => {
            let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
            (first.map_or("bad-ptx", |first| first.code.name()), Some(source))
        }
        Error::Unsupported { source, diagnostic } => (diagnostic.code.name(), Some(source)),
        Error::Fault { source, fault } => {
            facts.set_item("kernel", &fault.kernel)?;
            facts.set_item("block", fault.block)?;
            facts.set_item("thread", fault.thread)?;
            facts.set_item("address", fault.access.as_ref().map(|access| access.address))?;
            (fault.kind.code(), Some(source))
        }
        Error::StepLimit { at, .. } | Error::Cancelled { at } => {
            if let Some(at) = at {
                facts.set_item("kernel", &at.kernel)?;
                facts.set_item("block", at.place.block)?;
                facts.set_item("thread", at.place.thread)?;
            }
            let code =
                if matches!(error, Error::StepLimit { .. }) { Code::StepLimit } else { Code::Cancelled };
            (code.name(), at.as_ref().map(|at| &at.source))
        }
        Error::Io { .. } => (Code::UnreadableFile.name(), None),
        Error::OutOfMemory(_) => ("out-of-memory", None),
        Error::Load(_) => ("load", None),
        Error::Memory(kind) => (kind.code(), None),
        Error::NoSuchName { .. } => ("no-such-name", None),
        Error::Arguments { .. } => ("arguments", None),
        Error::Launch(_) | Error::Cluster(_) => ("launch", None),
        Error::Panicked(_) => ("defect", None),
        _ => ("error", None),
    };
    facts.set_item("code", code)?;
    if let Some(source) = source {
        let diagnostics = error.diagnostics();
        let list: Vec<_> =
            diagnostics.iter().map(|one| diagnostic(py, source, one)).collect::<PyResult<_>>()?;
        if let Some(first) = diagnostics.iter().find(|one| one.is_error()) {
            let position = source.position(first.span.start);
            facts.set_item("message", &first.message)?;
            facts.set_item("file", source.name())?;
            facts.set_item("line", position.line)?;
            facts.set_item("column", position.column)?;
        }
        facts.set_item("diagnostics", PyList::new(py, list)?)?;
    }
    Ok(facts)
}

/// The Python exception for an error.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::NoSuchName { what: Named::Kernel, .. } => Class::Name,
        Error::Arguments { .. } => Class::Argument,
        _ => Class::Error,
    };
    let made = facts(py, error).and_then(|facts| make(class, error.render(Color::Never).trim_end(), &facts));
    made.unwrap_or_else(|error| error)
}

/// The same for callers that have no token of the attached thread.
pub fn plain(error: &Error) -> PyErr {
    Python::attach(|py| to_python(py, error))
}

/// An error of the Python package itself.
pub fn other(py: Python<'_>, code: &str, text: &str) -> PyErr {
    let class = if code == "arguments" { Class::Argument } else { Class::Error };
    let facts = PyDict::new(py);
    let made = facts.set_item("code", code).and_then(|()| make(class, text, &facts));
    made.unwrap_or_else(|error| error)
}

/// Runs some work. A panic becomes an ordinary exception, instead of PyO3's, which nobody expects.
///
/// # Errors
/// Those of the work; after a panic, one with the code `defect`.
pub fn unless_panics<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    machine::caught(work).unwrap_or_else(|message| {
        let text = format!("ptxvm itself failed, which is a defect of it: {message}");
        Err(other(py, "defect", &text))
    })
}

fn make(class: Class, text: &str, facts: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    Ok(PyErr::from_value(class.get(facts.py())?.call((text,), Some(facts))?))
}
