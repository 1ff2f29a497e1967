//! Compiled texts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ptxvm::{Device, Loaded, Module, Options, SourceFile, Tools};

use crate::run::Failure;

/// A text, compiled and loaded on its own device. Its variables live from launch to launch.
pub struct Compiled {
    pub loaded: Loaded,
    pub kernel: ptxvm::Function,
}

/// Maximum number of texts; when there are more, all are dropped.
const MOST: usize = 4096;

/// Modules by their texts.
type ByText = HashMap<Box<[u8]>, Arc<Compiled>>;

static CACHE: Mutex<Option<ByText>> = Mutex::new(None);

/// The compiled form of a text, from the cache if it was seen before.
///
/// # Safety
/// Kernels of the text may access any memory of the process.
pub unsafe fn compiled(text: &[u8]) -> Result<Arc<Compiled>, Failure> {
    let lock = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().as_ref().and_then(|cache| cache.get(text)) {
        return Ok(Arc::clone(found));
    }
    // SAFETY: the caller's promise.
    let compiled = Arc::new(unsafe { compile(text) }?);
    let mut guard = lock();
    let cache = guard.get_or_insert_default();
    if cache.len() >= MOST {
        cache.clear();
    }
    Ok(Arc::clone(cache.entry(text.into()).or_insert(compiled)))
}

/// # Safety
/// Kernels of the text may access any memory of the process.
unsafe fn compile(text: &[u8]) -> Result<Compiled, Failure> {
    let options = Options { lenient: true, ..Options::default() };
    let module = Module::compile(SourceFile::from_bytes("<ptx>", text), &options)?;
    let module = module.for_tools(Tools::from_environment().unwrap_or_default());
    let kernel = module.kernels().next().cloned();
    let kernel = kernel.ok_or_else(|| Failure::ptx("error: the PTX text has no kernel (.entry)\n"))?;
    let device = machine::Device::new();
    // SAFETY: the caller's promise.
    let opened = unsafe { device.open_host_memory() };
    opened.map_err(|error| Failure::launch(error.to_string()))?;
    let loaded = Device::from(device).load(&module)?;
    Ok(Compiled { loaded, kernel })
}
