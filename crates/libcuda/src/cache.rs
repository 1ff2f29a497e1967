//! A cache of compiled PTX, by its text: programs load the same module again for each process or context.

use std::collections::VecDeque;
use std::sync::Mutex;

use ptxvm::{Color, Error, Module};

use crate::Status;
use crate::config::Config;
use crate::image::{Refusal, Source, source_file};
use crate::lock;
use crate::log::log;

/// The most texts that are kept.
const MOST: usize = 64;

static CACHE: Mutex<VecDeque<(Vec<u8>, Module)>> = Mutex::new(VecDeque::new());

/// The compiled module of a source.
///
/// # Errors
/// All errors of the checker.
pub fn compiled(source: &Source) -> Result<Module, Refusal> {
    let cache = || lock(&CACHE);
    if let Some((_, module)) = cache().iter().find(|(text, _)| *text == source.text) {
        return Ok(module.clone());
    }
    crate::save::keep(&source.text);
    // Compiles without holding the lock, because that takes long.
    let options = ptxvm::Options { lenient: Config::get().lenient, ..ptxvm::Options::default() };
    let module = Module::compile(source_file(source), &options).map_err(|error| {
        let message = error.render(Color::Never);
        log!(warn, "{message}");
        Refusal::noted(status(&error), message)
    })?;
    let mut cache = cache();
    if cache.len() >= MOST {
        cache.pop_front();
    }
    cache.push_back((source.text.clone(), module.clone()));
    Ok(module)
}

/// The status for PTX with errors: an unknown PTX version has its own.
fn status(error: &Error) -> Status {
    let versions = error.diagnostics();
    match versions.iter().any(|diagnostic| diagnostic.code == ptxvm::Code::UnsupportedVersion) {
        true => Status::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        false => Status::CUDA_ERROR_INVALID_PTX,
    }
}
