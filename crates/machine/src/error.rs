//! Why a module could not be loaded, and why a launch did not finish.

use std::fmt;

use diag::Span;

use crate::fault::Fault;
use crate::memory::OutOfMemory;
use crate::texture::ObjectError;
use crate::undefined::Undefined;

/// Why a module could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No room for its variables.
    OutOfMemory(OutOfMemory),
    /// `.const` variables take more than the 64 KiB that the manual allows.
    TooMuchConst(u64),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::OutOfMemory(error) => error.fmt(f),
            LoadError::TooMuchConst(bytes) => {
                write!(f, ".const variables take {bytes} bytes, the limit is 65536")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Why a launch did not finish.
#[derive(Clone, Debug)]
pub enum LaunchError {
    /// The configuration is invalid. The text explains why and how to fix it.
    Invalid(String),
    /// The cluster size is invalid or conflicts with the kernel. The text explains why and how to fix it.
    InvalidCluster(String),
    /// A variable cannot be bound as [`LaunchConfig::bindings`](crate::LaunchConfig::bindings) says.
    Binding(ObjectError),
    /// The kernel can reach an instruction that no engine executes.
    Unsupported(ir::Unsupported),
    /// The kernel needs functions or variables that are declared but not defined.
    Undefined(Vec<Undefined>),
    /// A thread faulted. The results of other blocks up to then are in memory.
    Fault(Box<Fault>),
    /// ptxvm itself or a callback (an observer, an output) panicked, with this message.
    Panicked(String),
    /// [`LaunchConfig::max_steps`](crate::LaunchConfig::max_steps) ran out.
    StepLimit {
        /// The limit.
        limit: u64,
        /// The place of some thread, if any was running.
        place: Option<Place>,
    },
    /// [`LaunchConfig::cancel`](crate::LaunchConfig::cancel) was set.
    Cancelled {
        /// The place of some thread, if any was running.
        place: Option<Place>,
    },
}

/// The position of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instruction that the thread executes next or waits at.
    pub span: Span,
    /// `%ctaid` of its block.
    pub block: [u32; 3],
    /// Its `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Invalid(what) | LaunchError::InvalidCluster(what) => f.write_str(what),
            LaunchError::Binding(error) => error.fmt(f),
            LaunchError::Unsupported(what) => {
                write!(f, "`{}` is not executed", what.form.name(&what.picks))
            }
            LaunchError::Undefined(names) => {
                let lines = names
                    .iter()
                    .map(|undefined| format!("{}, which `{}` needs", undefined.why, undefined.user));
                f.write_str(&lines.collect::<Vec<_>>().join("\n"))
            }
            LaunchError::Fault(fault) => fault.fmt(f),
            LaunchError::Panicked(message) => write!(f, "the launch panicked: {message}"),
            LaunchError::StepLimit { limit, .. } => {
                write!(f, "stopped: the limit of {limit} thread-instructions ran out")
            }
            LaunchError::Cancelled { .. } => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for LaunchError {}
