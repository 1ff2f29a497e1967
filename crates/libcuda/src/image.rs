//! The images that a program loads: PTX text, a fat binary, a wrapper that points to one, or the result of `cuLinkComplete`.

use std::ffi::{CStr, c_char, c_void};

use fatbin::{HEADER_BYTES, MAGIC, WRAPPER_MAGIC};
use ptxvm::{Color, Module, SourceFile};

use crate::Status;
use crate::cache::compiled;
use crate::config::Config;
use crate::log::log;

/// PTX text and its name in messages.
#[derive(Clone, Debug)]
pub struct Source {
    pub name: String,
    pub text: Vec<u8>,
    /// The register limit that the program gave the compiler. It has no effect here, but programs query it.
    pub max_registers: u32,
}

impl Source {
    fn new(name: impl Into<String>, text: Vec<u8>) -> Source {
        Source { name: name.into(), text, max_registers: MAX_REGISTERS }
    }
}

/// The most registers that a thread may have.
const MAX_REGISTERS: u32 = 255;

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

/// The image of our own linker starts with this. Each source follows: its name, its text (both with their lengths), and its register limit.
const LINKED: &[u8; 8] = b"\x01PTXVML\n";

/// Packs sources into one image.
pub fn pack(sources: &[Source]) -> Vec<u8> {
    let mut image = LINKED.to_vec();
    image.extend((sources.len() as u64).to_le_bytes());
    for source in sources {
        for part in [source.name.as_bytes(), &source.text] {
            image.extend((part.len() as u64).to_le_bytes());
            image.extend(part);
        }
        image.extend(u64::from(source.max_registers).to_le_bytes());
    }
    image
}

/// Advice for users whose compiler made only machine code.
const ADVICE: &str = "ptxvm runs PTX: with nvcc, build with `-gencode arch=compute_80,code=compute_80` (or any other `code=compute_NN`); with \
                      Triton, run the program with `ptxvm exec`";

/// The sources in an image.
///
/// # Errors
/// If it has no PTX that the device can run.
///
/// # Safety
/// `image` must point to an image of any kind.
pub unsafe fn sources(image: *const c_void, name: &str) -> Result<Vec<Source>, Refusal> {
    if image.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE.into());
    }
    let bytes = image.cast::<u8>();
    // SAFETY: every binary image has these bytes; a text ends in a zero, which the comparison does not pass.
    let starts_with =
        |magic: &[u8]| magic.iter().enumerate().all(|(i, byte)| unsafe { bytes.add(i).read() } == *byte);
    // SAFETY: the first bytes identify the format, and so what follows.
    unsafe {
        if starts_with(&WRAPPER_MAGIC.to_le_bytes()) {
            return wrapped(image, name);
        }
        if starts_with(&MAGIC.to_le_bytes()) {
            return from_fat_binary(bytes, name).map_err(reported);
        }
        if starts_with(b"\x7fELF") {
            return Err(reported(no_ptx(format!("`{name}` is machine code without PTX"))));
        }
        if starts_with(LINKED) {
            return Ok(unpack(bytes.add(LINKED.len())));
        }
        let text = CStr::from_ptr(bytes.cast::<c_char>()).to_bytes().to_vec();
        Ok(vec![Source::new(name, text)])
    }
}

/// The sources in an image whose size is known.
///
/// # Errors
/// As for [`sources`].
pub fn sources_of_bytes(image: &[u8], name: &str) -> Result<Vec<Source>, Refusal> {
    let is = |magic: &[u8]| image.starts_with(magic);
    if is(&MAGIC.to_le_bytes()) {
        return fat_binary(image, name).map_err(reported);
    }
    if is(b"\x7fELF") {
        return Err(reported(no_ptx(format!("`{name}` is machine code without PTX"))));
    }
    let end = image.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if is(LINKED) || is(&WRAPPER_MAGIC.to_le_bytes()) {
        // SAFETY: the image is complete, contains its own size, and was made here; or it is a wrapper in memory.
        return unsafe { sources(image.as_ptr().cast(), name) };
    }
    Ok(vec![Source::new(name, image[..end].to_vec())])
}

fn no_ptx(what: String) -> Refusal {
    Refusal { status: Status::CUDA_ERROR_NO_BINARY_FOR_GPU, message: format!("{what}: {ADVICE}") }
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
        Ok(text) => Ok(vec![Source::new(name, text)]),
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
unsafe fn wrapped(image: *const c_void, name: &str) -> Result<Vec<Source>, Refusal> {
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
                    all.extend(sources.into_iter().filter(|source| !is_device_runtime(&source.text)))
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

/// Whether PTX is the library of device-side launches, which defines such names.
fn is_device_runtime(text: &[u8]) -> bool {
    let name = b"cudaCDP2";
    let text = &text[..text.len().min(1 << 16)];
    text.windows(name.len()).any(|window| window == name)
        && text.windows(9).any(|window| window == b"CNPRT_VER")
}

/// The sources of an image that [`pack`] made, after its magic number.
///
/// # Safety
/// `at` must point into such an image.
unsafe fn unpack(at: *const u8) -> Vec<Source> {
    let mut at = at;
    // SAFETY: the caller's promise; each length is followed by that many bytes.
    let number = |at: &mut *const u8| unsafe {
        let value = at.cast::<u64>().read_unaligned();
        *at = at.add(8);
        value as usize
    };
    let part = |at: &mut *const u8| {
        let length = number(at);
        // SAFETY: as above.
        unsafe {
            let bytes = std::slice::from_raw_parts(*at, length).to_vec();
            *at = at.add(length);
            bytes
        }
    };
    let count = number(&mut at);
    (0..count)
        .map(|_| {
            let name = String::from_utf8_lossy(&part(&mut at)).into_owned();
            let text = part(&mut at);
            Source { name, text, max_registers: number(&mut at) as u32 }
        })
        .collect()
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
