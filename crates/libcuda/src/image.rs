//! The images that a program loads: PTX text, a fat binary, a wrapper that points to one, or the result of `cuLinkComplete`.

use std::ffi::CStr;
use std::marker::PhantomData;

pub use fatbin::linked::Part as Source;
use fatbin::{HEADER_BYTES, MAGIC, WRAPPER_MAGIC, linked};
use ptxvm::{Color, Module, SourceFile};

use crate::cache::compiled;
use crate::config::Config;
use crate::log::log;
use crate::{INVALID, Status};

/// The most registers that a thread may have.
const MAX_REGISTERS: u32 = 255;

/// PTX text of which the program has said no more. (A register limit has no effect here, but programs query it.)
fn source(name: impl Into<String>, text: Vec<u8>) -> Source {
    Source { name: name.into(), text, max_registers: MAX_REGISTERS }
}

/// Why something could not be loaded, with a message.
#[derive(Debug)]
pub struct Refusal {
    pub status: Status,
    pub message: String,
}

impl Refusal {
    /// A refusal that is also added to the report.
    pub fn noted(status: Status, message: String) -> Refusal {
        crate::report::refused(&message);
        Refusal { status, message }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal { status, message: String::new() }
    }
}

/// An image of any kind that the program passes, or null. Only a call of the program makes it.
#[repr(transparent)]
pub struct Image<'a>(*const u8, PhantomData<&'a u8>);

impl Image<'_> {
    /// Its sources.
    ///
    /// # Errors
    /// If it has no PTX that the device can run.
    pub fn sources(self, name: &str) -> Result<Vec<Source>, Refusal> {
        let image = self.0;
        if image.is_null() {
            return Err(INVALID.into());
        }
        // SAFETY: every binary image has these bytes; a text ends in a zero, which the comparison does not pass.
        let starts_with =
            |magic: &[u8]| magic.iter().enumerate().all(|(i, byte)| unsafe { image.add(i).read() } == *byte);
        // SAFETY: the first bytes identify the format, and so what follows.
        unsafe {
            if starts_with(&WRAPPER_MAGIC.to_le_bytes()) {
                return wrapped(image, name);
            }
            if starts_with(&MAGIC.to_le_bytes()) {
                return from_fat_binary(image, name).map_err(reported);
            }
            if starts_with(b"\x7fELF") {
                return Err(reported(no_ptx(format!("`{name}` is machine code without PTX"))));
            }
            if starts_with(linked::MARK) {
                return unpacked(image);
            }
            let text = CStr::from_ptr(image.cast()).to_bytes().to_vec();
            Ok(vec![source(name, text)])
        }
    }
}

/// The sources in an image whose size is known.
///
/// # Errors
/// As for [`Image::sources`].
pub fn sources_of_bytes(image: &[u8], name: &str) -> Result<Vec<Source>, Refusal> {
    let is = |magic: &[u8]| image.starts_with(magic);
    if is(&MAGIC.to_le_bytes()) {
        return fat_binary(image, name).map_err(reported);
    }
    if is(b"\x7fELF") {
        return Err(reported(no_ptx(format!("`{name}` is machine code without PTX"))));
    }
    let end = image.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if is(linked::MARK) {
        return linked::unpack(image).ok_or_else(|| Status::CUDA_ERROR_INVALID_IMAGE.into());
    }
    if is(&WRAPPER_MAGIC.to_le_bytes()) {
        // SAFETY: it is a wrapper in memory.
        return unsafe { wrapped(image.as_ptr(), name) };
    }
    Ok(vec![source(name, image[..end].to_vec())])
}

fn no_ptx(what: String) -> Refusal {
    Refusal {
        status: Status::CUDA_ERROR_NO_BINARY_FOR_GPU,
        message: format!("{what}: {}", crate::producer::advice()),
    }
}

/// Prints why there is no PTX, and returns the refusal.
fn reported(refusal: Refusal) -> Refusal {
    if refusal.status == Status::CUDA_ERROR_NO_BINARY_FOR_GPU {
        log!(error, "{}", refusal.message);
    }
    match refusal.message.as_str() {
        "" => crate::report::refused(&format!("{:?}", refusal.status)),
        message => crate::report::refused(message),
    }
    refusal
}

fn fat_binary(bytes: &[u8], name: &str) -> Result<Vec<Source>, Refusal> {
    match fatbin::ptx_for(bytes, Config::get().chip.capability) {
        Ok(text) => Ok(vec![source(name, text)]),
        Err(error @ fatbin::Error::NoPtx(_)) => Err(no_ptx(error.to_string())),
        Err(error) => Err(Refusal { status: Status::CUDA_ERROR_INVALID_IMAGE, message: error.to_string() }),
    }
}

/// The PTX of a fat binary in memory.
///
/// # Safety
/// Its header must be readable, and as many bytes as the header says.
unsafe fn from_fat_binary(bytes: *const u8, name: &str) -> Result<Vec<Source>, Refusal> {
    // SAFETY: the caller's promise.
    let header = unsafe { bytes.cast::<[u8; HEADER_BYTES]>().read_unaligned() };
    let size = fatbin::size(&header).ok_or(Status::CUDA_ERROR_INVALID_IMAGE)?;
    // SAFETY: the caller's promise.
    fat_binary(unsafe { std::slice::from_raw_parts(bytes, size) }, name)
}

/// The wrapper of a fat binary, which nvcc puts into `.nvFatBinSegment`.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    data: *const u8,
    /// Version 2 (`-rdc=true`): the fat binaries of all objects, ended by a null pointer.
    parts: *const *const u8,
}

/// The PTX behind a wrapper. With relocatable device code there are several modules, which are linked. The device runtime library is
/// left out: it comes as machine code, with PTX for only one architecture.
///
/// # Safety
/// `image` must point to a wrapper.
unsafe fn wrapped(image: *const u8, name: &str) -> Result<Vec<Source>, Refusal> {
    // SAFETY: the caller's promise.
    unsafe {
        let wrapper = image.cast::<Wrapper>().read_unaligned();
        if wrapper.version < 2 || wrapper.parts.is_null() {
            return from_fat_binary(wrapper.data, name).map_err(reported);
        }
        let mut all = Vec::new();
        let mut refused = None;
        for i in 0.. {
            let part = wrapper.parts.add(i).read();
            if part.is_null() {
                break;
            }
            match from_fat_binary(part, &format!("{name} part {i}")) {
                Ok(sources) => {
                    all.extend(sources.into_iter().filter(|source| !fatbin::is_device_runtime(&source.text)))
                }
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if all.is_empty() => Err(reported(refusal)),
            _ => Ok(all),
        }
    }
}

/// The sources of an image that a linker of ours made.
///
/// # Safety
/// `image` must point to such an image.
unsafe fn unpacked(image: *const u8) -> Result<Vec<Source>, Refusal> {
    // SAFETY: the caller's promise; the header says how many bytes the image has.
    let bytes = unsafe {
        let size = linked::size(&image.cast::<[u8; linked::HEADER_BYTES]>().read_unaligned());
        std::slice::from_raw_parts(image, size.ok_or(Status::CUDA_ERROR_INVALID_IMAGE)?)
    };
    linked::unpack(bytes).ok_or_else(|| Status::CUDA_ERROR_INVALID_IMAGE.into())
}

/// Compiles sources, and links them if there are several.
///
/// # Errors
/// The message of the checker or the linker.
pub fn compile(sources: &[Source]) -> Result<Module, Refusal> {
    let capability = Config::get().chip.capability;
    let mut modules = Vec::new();
    for source in sources {
        let module = compiled(source)?;
        let target = module.program().module.target;
        if u32::from(target.number) > capability {
            let message = format!("`{}` is for {target}, and the device is sm_{capability}", source.name);
            log!(warn, "{message}: PTXVM_DEVICE chooses another");
            return Err(Refusal::noted(Status::CUDA_ERROR_INVALID_PTX, message));
        }
        modules.push(module);
    }
    let (first, others) = modules.split_first().ok_or(Status::CUDA_ERROR_INVALID_IMAGE)?;
    if others.is_empty() {
        return Ok(first.clone().for_tools(crate::tool::tools()));
    }
    first.link(others).map(|module| module.for_tools(crate::tool::tools())).map_err(|error| {
        let message = error.render(Color::Never);
        log!(error, "{message}");
        Refusal::noted(Status::CUDA_ERROR_INVALID_PTX, message)
    })
}

/// A source file for the checker.
pub fn source_file(source: &Source) -> SourceFile {
    SourceFile::from_bytes(source.name.clone(), source.text.clone())
}
