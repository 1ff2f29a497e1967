//! A launch.

use std::ffi::{c_int, c_void};
use std::io::Write;

use ptxvm::{Arg, Checker, Color, Error, Severity, Tools, by_cause};

use crate::cache::compiled;
use crate::{PTXVM_BAD_LAUNCH, PTXVM_BAD_PTX, PTXVM_DEFECT, PTXVM_FAULT};

/// The launch that the caller requested, without the text.
pub struct Launch {
    /// The number of arguments.
    pub n_args: c_int,
    /// Points to the first argument.
    pub args: *const *mut c_void,
    pub block: [c_int; 3],
    pub grid: [c_int; 3],
    pub shared_bytes: c_int,
}

/// Why the launch failed.
pub struct Failure {
    pub code: c_int,
    /// The message; it ends in a line feed.
    pub message: String,
}

impl Failure {
    pub fn launch(message: impl std::fmt::Display) -> Failure {
        Failure { code: PTXVM_BAD_LAUNCH, message: format!("error: {message}\n") }
    }

    pub fn ptx(message: &str) -> Failure {
        Failure { code: PTXVM_BAD_PTX, message: message.to_owned() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Bad { .. } | Error::Undefined { .. } => Failure::ptx(&error.render(Color::Never)),
            Error::Fault { .. } => Failure { code: PTXVM_FAULT, message: error.render(Color::Never) },
            Error::Panicked(message) => {
                Failure { code: PTXVM_DEFECT, message: format!("error: {message}\n") }
            }
            other => Failure::launch(other),
        }
    }
}

/// Writes to stderr. An error is ignored, because there is nobody else to report it to.
pub fn say(message: &str) {
    let _ = std::io::stderr().write_all(message.as_bytes());
}

impl Launch {
    /// The arguments of a kernel with `takes` parameters.
    ///
    /// # Safety
    /// There must be as many as `n_args` says.
    unsafe fn arguments(&self, takes: usize) -> Result<&[*mut c_void], String> {
        let given = usize::try_from(self.n_args)
            .map_err(|_| format!("the number of arguments is {}", self.n_args))?;
        // Nothing is read unless the number is right.
        if given != takes {
            return Err(format!("it takes {takes} arguments, and {given} were given"));
        }
        match given {
            0 => Ok(&[]),
            _ if self.args.is_null() => Err("the arguments are a null pointer".to_owned()),
            // SAFETY: the caller's promise.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.args, given) }),
        }
    }
}

/// Compiles the text unless it was seen before, and runs its first kernel.
///
/// # Safety
/// The arguments must be as many as the launch says. Every address that the kernel computes must be good for what it does there.
pub unsafe fn run(text: &[u8], launch: &Launch) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let compiled = unsafe { compiled(text) }?;
    let kernel = &compiled.kernel;
    let in_kernel = |message: String| Failure::launch(format!("kernel `{}`: {message}", kernel.name));
    let extents = |what: &str, extents: [c_int; 3]| -> Result<[u32; 3], Failure> {
        let [x, y, z] = extents.map(u32::try_from);
        match (x, y, z) {
            (Ok(x), Ok(y), Ok(z)) => Ok([x, y, z]),
            _ => Err(in_kernel(format!("the {what} is {extents:?}"))),
        }
    };
    let shared = u64::try_from(launch.shared_bytes)
        .map_err(|_| in_kernel(format!("{} bytes of shared memory", launch.shared_bytes)))?;
    let mut prepared = compiled
        .loaded
        .launch(&kernel.name)
        .grid(extents("grid", launch.grid)?)
        .block(extents("block", launch.block)?)
        .configure(|config| config.dynamic_shared = shared);
    // SAFETY: the caller's promise.
    let args = unsafe { launch.arguments(kernel.params.len()) }.map_err(in_kernel)?;
    for (value, param) in args.iter().zip(&kernel.params) {
        let bytes = (value.expose_provenance() as u64).to_le_bytes();
        let low = usize::try_from(param.bytes).ok().and_then(|count| bytes.get(..count));
        let low = low.ok_or_else(|| {
            let (name, bytes) = (&param.name, param.bytes);
            in_kernel(format!("parameter `{name}` has {bytes} bytes, and an argument here 8 at most"))
        })?;
        prepared = prepared.arg(Arg::bytes(low));
    }
    let tools =
        Tools::from_environment().map_err(|message| Failure::launch(format!("PTXVM_TOOL: {message}")))?;
    let checker = (!tools.is_empty()).then(|| Checker::shared(tools));
    if let Some(checker) = &checker {
        prepared = prepared.check(checker);
    }
    let result = prepared.run();
    let findings =
        checker.map_or(Vec::new(), |checker| by_cause(compiled.loaded.module().findings(&checker)));
    findings.iter().for_each(|found| say(&found.render(Color::Never)));
    if result.is_ok() && findings.iter().any(|found| found.finding.kind.severity() == Severity::Error) {
        return Err(Failure { code: PTXVM_FAULT, message: String::new() });
    }
    result.map(drop).map_err(|error| match Failure::from(error) {
        Failure { code: PTXVM_BAD_LAUNCH, message } => {
            in_kernel(message.trim_start_matches("error: ").trim_end().to_owned())
        }
        other => other,
    })
}
