//! The linker: combines PTX and fat binaries into one image.

use std::ffi::{c_uint, c_void};
use std::sync::Mutex;

use cudarc::driver::sys::CUlinkState;

use crate::api::api;
use crate::context::Context;
use crate::handles::Handles;
use crate::image::{Refusal, Source, compile, sources_of_bytes};
use crate::jit::Options;
use crate::lock;
use crate::pointers::{In, InOut, Out, Text};
use crate::{INVALID, Status};

static LINKERS: Handles<Linker> = Handles::new();

/// A linker and its inputs so far.
struct Linker {
    /// The program keeps their values and buffers as long as the linker (the manual). No lifetime says that, so it is `'static`.
    options: Options<'static>,
    inputs: Mutex<Vec<Source>>,
    /// The image that it made. It lives as long as the linker.
    image: Mutex<Option<Box<[u8]>>>,
}

// SAFETY: as the manual requires, the program uses a linker and its buffers on one thread at a time.
unsafe impl Send for Linker {}
// SAFETY: as above.
unsafe impl Sync for Linker {}

fn linker(handle: CUlinkState) -> Result<std::sync::Arc<Linker>, Status> {
    Context::current()?;
    LINKERS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

impl Linker {
    fn add(&self, bytes: &[u8], name: &str) -> Result<(), Status> {
        let sources = sources_of_bytes(bytes, name).and_then(|sources| {
            // PTX that does not compile fails here.
            sources.iter().try_for_each(|source| crate::cache::compiled(source).map(drop))?;
            Ok(self.options.apply(sources))
        });
        lock(&self.inputs).extend(self.options.report(sources)?);
        Ok(())
    }
}

/// Whether a path names a library of host objects. It has no PTX that is needed: the device runtime is built in.
fn is_library(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|extension| extension == "a")
}

api! { API:
    /// Makes a linker.
    cuLinkCreate 6050 "cuLinkCreate_v2" (count: c_uint, options: In<c_uint>, values: InOut<'static, *mut c_void>, result: Out<CUlinkState>) {
        Context::current()?;
        let options = Options::read(count, options, values)?;
        let linker = std::sync::Arc::new(Linker { options, inputs: Mutex::default(), image: Mutex::default() });
        LINKERS.give(result, linker)
    }
    /// Adds PTX or a fat binary.
    cuLinkAddData 6050 "cuLinkAddData_v2" (
        handle: CUlinkState, _kind: c_uint, data: *mut c_void, bytes: usize, label: Text, _count: c_uint,
        _options: *mut c_uint, _values: *mut *mut c_void
    ) {
        let linker = linker(handle)?;
        if data.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        let label = if label.is_null() { "<link>".into() } else { String::from_utf8_lossy(label.bytes()?) };
        // SAFETY: the program passes so many bytes.
        let data = unsafe { std::slice::from_raw_parts(data.cast(), bytes) };
        linker.add(data, &label)
    }
    /// Adds a file of PTX or a fat binary.
    cuLinkAddFile 6050 "cuLinkAddFile_v2" (
        handle: CUlinkState, _kind: c_uint, path: Text, _count: c_uint, _options: *mut c_uint, _values: *mut *mut c_void
    ) {
        let linker = linker(handle)?;
        let path = std::str::from_utf8(path.bytes()?).map_err(|_| Status::CUDA_ERROR_FILE_NOT_FOUND)?;
        let bytes = std::fs::read(path).map_err(|_| Status::CUDA_ERROR_FILE_NOT_FOUND)?;
        if is_library(path) { Ok(()) } else { linker.add(&bytes, path) }
    }
    /// Links what was added. What it returns can be loaded as a module.
    cuLinkComplete 5050 "cuLinkComplete" (handle: CUlinkState, image: Out<*mut c_void>, bytes: Out<usize>) {
        let linker = linker(handle)?;
        let inputs = lock(&linker.inputs);
        let linked = match &inputs[..] {
            [] => Err(Refusal { status: Status::CUDA_ERROR_INVALID_IMAGE, message: "nothing to link".to_owned() }),
            inputs => compile(inputs).map(|_| fatbin::linked::pack(inputs).into_boxed_slice()),
        };
        let mut linked = linker.options.report(linked)?;
        let mut made = lock(&linker.image);
        image.write(linked.as_mut_ptr().cast())?;
        bytes.write_if_wanted(linked.len());
        *made = Some(linked);
        Ok(())
    }
    /// Destroys a linker, and what it made.
    cuLinkDestroy 5050 "cuLinkDestroy" (handle: CUlinkState) {
        LINKERS.remove(handle).map(drop).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
    }
}
