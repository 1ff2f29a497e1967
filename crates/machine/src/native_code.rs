//! When loops run as native code.

use std::ffi::OsStr;
use std::fmt;
use std::sync::LazyLock;

/// The environment variable that says which engine runs launches that choose none: `auto`, `interpreter` or `native`.
pub const ENGINE_VARIABLE: &str = "PTXVM_ENGINE";

/// When the interpreter runs a loop as native code. The results are the same bits.
///
/// Only loops of common operations, in which no lane looks at others, have native code, and only on hosts with AVX-512 or
/// AVX2. A launch that is observed, profiled, shuffled, deterministic or limited in its steps has none: native code
/// takes time slices of other lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NativeCode {
    /// Once a loop has run often enough to repay its compilation.
    #[default]
    Hot,
    /// From the first iteration on. For tests.
    Always,
    /// Never.
    Never,
}

/// [`ENGINE_VARIABLE`] names no engine that it may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ENGINE_VARIABLE}={}: not one of auto, interpreter, native", self.0)
    }
}

impl std::error::Error for EngineError {}

/// What [`ENGINE_VARIABLE`] says. It is read once.
///
/// # Errors
/// When it names no such engine.
pub fn native_code() -> Result<NativeCode, EngineError> {
    static CHOICE: LazyLock<Result<NativeCode, EngineError>> =
        LazyLock::new(|| parse(std::env::var_os(ENGINE_VARIABLE).as_deref()));
    CHOICE.clone()
}

fn parse(name: Option<&OsStr>) -> Result<NativeCode, EngineError> {
    match name.map(OsStr::to_string_lossy).as_deref() {
        None | Some("" | "auto") => Ok(NativeCode::Hot),
        Some("native") => Ok(NativeCode::Always),
        Some("interpreter") => Ok(NativeCode::Never),
        Some(other) => Err(EngineError(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_an_engine() {
        let parse = |name: &str| super::parse(Some(name.as_ref()));
        assert_eq!(super::parse(None), Ok(NativeCode::Hot));
        assert_eq!(parse(""), Ok(NativeCode::Hot));
        assert_eq!(parse("auto"), Ok(NativeCode::Hot));
        assert_eq!(parse("native"), Ok(NativeCode::Always));
        assert_eq!(parse("interpreter"), Ok(NativeCode::Never));
        let error = parse("reference").unwrap_err().to_string();
        assert_eq!(error, "PTXVM_ENGINE=reference: not one of auto, interpreter, native");
    }
}
