//! The errors of the library, each with what is needed to say where it is and what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use diag::{Code, Color, Diagnostic, SourceFile};
use machine::{Fault, FaultKind, LoadError, ObjectError, OutOfMemory, Place};

use crate::original::OriginalPlaces;

/// Why PTX could not be compiled, loaded or launched. `Display` shows it with source lines, carets and help.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: Arc<std::io::Error>,
    },
    /// The PTX is wrong; at least one of the diagnostics is an error.
    Bad {
        /// The source that the diagnostics point into.
        source: Arc<SourceFile>,
        /// All diagnostics, warnings included.
        diagnostics: Vec<Diagnostic>,
    },
    /// The module's variables could not be placed on the device.
    Load(LoadError),
    /// The host has no room for an array.
    OutOfMemory(OutOfMemory),
    /// The host accessed device memory that does not exist.
    Memory(FaultKind),
    /// A texture, sampler or surface cannot be made, or bound.
    Texture(ObjectError),
    /// A copy from one device to another.
    OtherDevice,
    /// A stream did not do this work, because earlier work failed.
    NotRun {
        /// What failed.
        cause: Box<Error>,
    },
    /// The module has no kernel, or no variable, of this name.
    NoSuchName {
        /// What kind of name it is.
        what: Named,
        /// The name.
        name: String,
        /// The names that the module has.
        available: Vec<String>,
    },
    /// The arguments do not fit the kernel's parameters.
    Arguments {
        /// What is wrong.
        kind: ArgumentError,
        /// The same in words.
        message: String,
        /// The kernel's parameters, one a line.
        signature: String,
    },
    /// The launch itself is wrong (grid, block, shared memory).
    Launch(String),
    /// The device has no such clusters, or the kernel requires others.
    Cluster(String),
    /// The kernel needs functions or variables that are declared but not defined. Nothing has run.
    Undefined {
        /// The source that the diagnostics point into.
        source: Arc<SourceFile>,
        /// Each name, where the kernel needs it, and why it is undefined.
        diagnostics: Vec<Diagnostic>,
    },
    /// The kernel can reach an instruction that ptxvm does not execute. Nothing has run.
    Unsupported {
        /// The source that the diagnostic points into.
        source: Arc<SourceFile>,
        /// Which instruction, where, and why.
        diagnostic: Box<Diagnostic>,
    },
    /// A thread faulted. Memory keeps what was written before.
    Fault {
        /// The source that the fault points into.
        source: Arc<SourceFile>,
        /// What happened, where, and in which thread.
        fault: Box<Fault>,
    },
    /// The launch was stopped at the requested limit of thread-instructions. Memory keeps what was written before.
    StepLimit {
        /// The limit.
        limit: u64,
        /// Where a thread was, if any was running.
        at: Option<Box<Stopped>>,
    },
    /// The launch was cancelled. Memory keeps what was written before.
    Cancelled {
        /// Where a thread was, if any was running.
        at: Option<Box<Stopped>>,
    },
    /// A launch or the work of a stream panicked; the string describes it. The panic of a launch is a defect of ptxvm
    /// or of the observer or output that it was given. Memory keeps what was written before.
    Panicked(String),
}

/// What can be looked up in a module by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Named {
    /// A kernel.
    Kernel,
    /// A variable.
    Variable,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Named::Kernel => "kernel",
            Named::Variable => "variable",
        })
    }
}

/// What is wrong with the arguments of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentError {
    /// There are too many, or too few.
    Count {
        /// The number of the kernel's parameters.
        takes: usize,
        /// The number of arguments.
        given: usize,
    },
    /// The argument with this index, from 0, is an array of another device.
    OtherDevice(usize),
    /// The argument with this index has an address that the module's 32-bit pointers cannot hold.
    BeyondAddresses(usize),
    /// The argument with this index has another type or size than its parameter.
    Type(usize),
    /// The parameters are too large for the host.
    TooLarge,
}

/// Where a thread was when its launch was stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The source that the place is in.
    pub source: Arc<SourceFile>,
    /// The kernel.
    pub kernel: String,
    /// The thread, and the instruction that it would have executed next.
    pub place: Place,
}

impl Error {
    /// The error of a launch that panicked with this message.
    pub(crate) fn panicked_launch(message: &str) -> Error {
        let whose = "which is a defect of ptxvm, or of what watches the launch or takes its output";
        Error::Panicked(format!("the launch panicked, {whose}: {message}"))
    }

    /// The error as text that ends in a line feed, in colour if `color` says so.
    pub fn render(&self, color: Color) -> String {
        match self {
            Error::Bad { source, diagnostics } | Error::Undefined { source, diagnostics } => {
                diagnostics.iter().map(|diagnostic| diag::render(source, diagnostic, color)).collect()
            }
            Error::Unsupported { source, diagnostic } => diag::render(source, diagnostic, color),
            Error::Fault { source, fault } => diag::render(source, &fault_diagnostic(source, fault), color),
            Error::StepLimit { at: Some(at), .. } | Error::Cancelled { at: Some(at) } => {
                diag::render(&at.source, &self.stop_diagnostic(at), color)
            }
            other => format!("{other}\n"),
        }
    }

    /// The diagnostics about places in the PTX source: those of a bad file, or the fault of a launch.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Error::Bad { diagnostics, .. } | Error::Undefined { diagnostics, .. } => diagnostics.clone(),
            Error::Unsupported { diagnostic, .. } => vec![diagnostic.as_ref().clone()],
            Error::Fault { source, fault } => vec![fault_diagnostic(source, fault)],
            Error::StepLimit { at: Some(at), .. } | Error::Cancelled { at: Some(at) } => {
                vec![self.stop_diagnostic(at)]
            }
            _ => Vec::new(),
        }
    }

    /// A stopped launch as a diagnostic about the place where a thread was.
    fn stop_diagnostic(&self, at: &Stopped) -> Diagnostic {
        let (code, help) = match self {
            Error::StepLimit { .. } => (Code::StepLimit, Some(ENDLESS)),
            _ => (Code::Cancelled, None),
        };
        let diagnostic = Diagnostic::error(code, at.place.span, self.stop_message())
            .note(format!("{} stood here", whereabouts(&at.kernel, at.place.block, at.place.thread)));
        help.into_iter().fold(note_originals(&at.source, diagnostic), Diagnostic::help)
    }

    /// The message for a stopped launch.
    fn stop_message(&self) -> String {
        match self {
            Error::StepLimit { limit, .. } => {
                format!("the kernel did not end within {limit} thread-instructions")
            }
            _ => "cancelled before the kernel ended".to_owned(),
        }
    }
}

/// What to do when the step limit is reached.
const ENDLESS: &str = "it has an endless loop, or needs a larger limit";

fn whereabouts(kernel: &str, [bx, by, bz]: [u32; 3], [tx, ty, tz]: [u32; 3]) -> String {
    format!("in kernel `{kernel}`, block ({bx},{by},{bz}), thread ({tx},{ty},{tz})")
}

/// Adds the original place of each span of a diagnostic, where `.loc` gives one: a note for each distinct line.
fn note_originals(source: &SourceFile, mut diagnostic: Diagnostic) -> Diagnostic {
    let originals = OriginalPlaces::of(source);
    let labels = diagnostic.labels.iter().map(|label| label.span);
    let spans: Vec<_> = std::iter::once(diagnostic.span).chain(labels).collect();
    let mut said = Vec::new();
    for text in spans.into_iter().filter_map(|span| originals.note(source, span)) {
        if !said.contains(&text) {
            diagnostic = diagnostic.note(text.as_str());
            said.push(text);
        }
    }
    diagnostic
}

/// A fault as a diagnostic about the instruction that faulted.
fn fault_diagnostic(source: &SourceFile, fault: &Fault) -> Diagnostic {
    let message = match &fault.access {
        Some(access) => {
            let verb = if access.write { "write" } else { "read" };
            format!("{}: {verb} of {} bytes at {:#x}", fault.kind, access.bytes, access.address)
        }
        None => fault.kind.to_string(),
    };
    let mut diagnostic = Diagnostic::error(fault.kind.into(), fault.span, message).note(whereabouts(
        &fault.kernel,
        fault.block,
        fault.thread,
    ));
    if let Some(nearest) = fault.access.as_ref().and_then(|access| access.nearest.as_ref()) {
        diagnostic = diagnostic.note(nearest.as_str());
    }
    for (text, span) in &fault.notes {
        diagnostic = match span {
            Some(span) => diagnostic.label(*span, text.as_str()),
            None => diagnostic.note(text.as_str()),
        };
    }
    note_originals(source, diagnostic)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, error } => write!(f, "cannot read `{}`: {error}", path.display()),
            Error::Bad { .. } | Error::Undefined { .. } | Error::Unsupported { .. } | Error::Fault { .. } => {
                f.write_str(self.render(Color::Never).trim_end())
            }
            Error::Load(error) => error.fmt(f),
            Error::OutOfMemory(error) => error.fmt(f),
            Error::Memory(kind) => write!(f, "{kind} by the host"),
            Error::Texture(error) => error.fmt(f),
            Error::OtherDevice => f.write_str("the arrays are of different devices: copy by way of the host"),
            Error::NotRun { cause } => {
                write!(f, "not run, because earlier work of the stream failed: {cause}")
            }
            Error::NoSuchName { what, name, available } if available.is_empty() => {
                write!(f, "no {what} named `{name}`: the module has none")
            }
            Error::NoSuchName { what, name, available } => {
                write!(f, "no {what} named `{name}`: the module has `{}`", available.join("`, `"))
            }
            Error::Arguments { message, signature, .. } => write!(f, "{message}\n{signature}"),
            Error::Launch(message) | Error::Cluster(message) | Error::Panicked(message) => {
                f.write_str(message)
            }
            Error::StepLimit { at: Some(_), .. } | Error::Cancelled { at: Some(_) } => {
                f.write_str(self.render(Color::Never).trim_end())
            }
            Error::StepLimit { at: None, .. } | Error::Cancelled { at: None } => {
                f.write_str(&self.stop_message())
            }
        }
    }
}

/// `Display` includes the cause, so that [`source`](std::error::Error::source) has none to add.
impl std::error::Error for Error {}

impl From<OutOfMemory> for Error {
    fn from(error: OutOfMemory) -> Error {
        Error::OutOfMemory(error)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        Error::Load(error)
    }
}
