//! nvJitLink that gives PTX where a program wants machine code: `libptxvm_nvjitlink.so` (nvJitLink documentation).
//!
//! NVIDIA's library does everything as without ptxvm: it checks options and inputs, compiles, links, and writes the logs.
//! Only what it made is not machine code but the PTX of its inputs in one image, which our driver links when it loads it.
//! Intermediate code for link-time optimisation (LTO IR) becomes PTX by a second link of NVIDIA's, with `-ptx`.
//!
//! `crates/wrapper` says how it comes before NVIDIA's.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod input;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fatbin::linked::{Part, pack};
use wrapper::{Library, Word};

use input::{Contents, contents};

/// `NVJITLINK_SUCCESS`.
const SUCCESS: Word = 0;

/// NVIDIA's library; `NVJITLINK_ERROR_INTERNAL` where it is missing.
static NVJITLINK: Library = Library::new("nvJitLink", 6);

/// Kinds of inputs.
mod kind {
    pub const CUBIN: usize = 1;
    pub const PTX: usize = 2;
    pub const LTO_IR: usize = 3;
    pub const LIBRARY: usize = 6;
    pub const ANY: usize = 10;
}

/// A link: what NVIDIA's handle does not know.
struct Link {
    options: Vec<CString>,
    parts: Vec<Part>,
    /// Whether an input is machine code without PTX.
    lacks_ptx: bool,
    /// NVIDIA's handle of the link that makes PTX of LTO IR.
    to_ptx: Option<Word>,
    /// What the program gets for machine code.
    image: Option<Vec<u8>>,
}

/// The links, by NVIDIA's handle.
static LINKS: Mutex<BTreeMap<Word, Link>> = Mutex::new(BTreeMap::new());

fn links() -> MutexGuard<'static, BTreeMap<Word, Link>> {
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `f` makes of a link; `None` if there is no such link.
fn with<T>(handle: Word, f: impl FnOnce(&mut Link) -> T) -> Option<T> {
    links().get_mut(&handle).map(f)
}

/// A function that is NVIDIA's, unchanged.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn forward(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise.
    unsafe { NVJITLINK.call(name, words) }
}

/// The address of a value, as an argument.
fn address_of<T>(value: &mut T) -> Word {
    (&raw mut *value).expose_provenance()
}

/// `nvJitLinkCreate`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn create(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise.
    let result = unsafe { forward(name, words) };
    let [place, count, options, ..] = words;
    if result != SUCCESS {
        return result;
    }
    // SAFETY: after a success, the place has a handle, and there are so many options, each a string of C.
    let (handle, options) = unsafe {
        let options = std::ptr::with_exposed_provenance::<*const c_char>(options);
        let option = |at| CStr::from_ptr(options.add(at).read()).to_owned();
        let handle = std::ptr::with_exposed_provenance::<Word>(place).read();
        (handle, (0..count as u32 as usize).map(option).collect())
    };
    links().insert(handle, Link { options, parts: Vec::new(), lacks_ptx: false, to_ptx: None, image: None });
    SUCCESS
}

/// `nvJitLinkDestroy`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn destroy(name: &CStr, words: [Word; 6]) -> Word {
    let place = std::ptr::with_exposed_provenance::<Word>(words[0]);
    if !place.is_null() {
        // SAFETY: the place has a handle.
        let link = links().remove(unsafe { &*place });
        if let Some(mut handle) = link.and_then(|link| link.to_ptx) {
            // SAFETY: it is a handle of NVIDIA's, which nobody else has.
            unsafe { forward(c"nvJitLinkDestroy", [address_of(&mut handle), 0, 0, 0, 0, 0]) };
        }
    }
    // SAFETY: the program's promise.
    unsafe { forward(name, words) }
}

/// `nvJitLinkAddData`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn add_data(name: &CStr, words: [Word; 6]) -> Word {
    let [handle, kind, data, size, label, _] = words;
    // SAFETY: the program promises so many bytes, and a string of C or nothing.
    let (bytes, label) = unsafe {
        (
            slice(data, size),
            if label == 0 { c"" } else { CStr::from_ptr(std::ptr::with_exposed_provenance(label)) },
        )
    };
    // SAFETY: the program's promise, with another kind only where the bytes are of that.
    let theirs = |kind| unsafe { forward(name, [handle, kind, data, size, words[4], 0]) };
    // SAFETY: the handle is one that the program has.
    unsafe { add(handle, kind as u32 as usize, bytes, &label.to_string_lossy(), theirs) }
}

/// `nvJitLinkAddFile`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn add_file(name: &CStr, words: [Word; 6]) -> Word {
    let [handle, kind, path, ..] = words;
    // SAFETY: the program's promise, with another kind only where the bytes are of that.
    let theirs = |kind| unsafe { forward(name, [handle, kind, path, 0, 0, 0]) };
    if path == 0 {
        return theirs(kind);
    }
    // SAFETY: the path is a string of C.
    let path = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(path)) };
    match std::fs::read(OsStr::from_bytes(path.to_bytes())) {
        // SAFETY: the handle is one that the program has.
        Ok(bytes) => unsafe { add(handle, kind as u32 as usize, &bytes, &path.to_string_lossy(), theirs) },
        Err(_) => theirs(kind),
    }
}

/// Adds an input, to NVIDIA's link by `theirs`, and if that takes it to ours.
///
/// # Safety
/// The handle must be one of NVIDIA's.
unsafe fn add(handle: Word, kind: usize, bytes: &[u8], name: &str, theirs: impl Fn(usize) -> Word) -> Word {
    let contents = match contents(kind, bytes, name) {
        // A fat binary without PTX may have LTO IR, which is used if the program has asked for that.
        Contents::Embedded { parts, lacks_ptx: true } if parts.is_empty() && optimises(handle) => {
            Contents::LtoIr
        }
        contents => contents,
    };
    match contents {
        Contents::Ptx(part) => {
            let result = theirs(kind::PTX);
            if result == SUCCESS {
                with(handle, |link| link.take(vec![part], false));
            }
            result
        }
        Contents::Linked(parts) => {
            for part in &parts {
                // SAFETY: the caller's promise; the text is alive.
                let result = unsafe { add_to(handle, kind::PTX, &part.text, name) };
                if result != SUCCESS {
                    return result;
                }
            }
            with(handle, |link| link.take(parts, false));
            SUCCESS
        }
        Contents::LtoIr => {
            let result = theirs(kind);
            if result == SUCCESS {
                // SAFETY: the caller's promise.
                unsafe { add_lto_ir(handle, kind, bytes, name) };
            }
            result
        }
        Contents::Embedded { parts, lacks_ptx } => {
            let result = theirs(kind);
            if result == SUCCESS {
                with(handle, |link| link.take(parts, lacks_ptx));
            }
            result
        }
    }
}

/// Whether a link does link-time optimisation.
fn optimises(handle: Word) -> bool {
    with(handle, |link| link.options.iter().any(|option| **option == *c"-lto")).unwrap_or(false)
}

/// Adds an input to a link of NVIDIA's.
///
/// # Safety
/// The handle must be one of NVIDIA's.
unsafe fn add_to(handle: Word, kind: usize, bytes: &[u8], name: &str) -> Word {
    let label = CString::new(name).unwrap_or_default();
    let (data, label) = (bytes.as_ptr().expose_provenance(), label.as_ptr().expose_provenance());
    // SAFETY: the caller's promise; bytes and name are alive.
    unsafe { forward(c"nvJitLinkAddData", [handle, kind, data, bytes.len(), label, 0]) }
}

/// Adds LTO IR to the link that makes PTX, which is made for the first.
///
/// # Safety
/// The handle must be one of NVIDIA's.
unsafe fn add_lto_ir(handle: Word, kind: usize, bytes: &[u8], name: &str) {
    let Some((known, mut options)) = with(handle, |link| (link.to_ptx, link.options.clone())) else { return };
    if options.iter().any(|option| **option == *c"-ptx") {
        return;
    }
    let to_ptx = known.or_else(|| {
        options.push(c"-ptx".to_owned());
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let mut made: Word = 0;
        let words = [address_of(&mut made), options.len(), options.as_ptr().expose_provenance(), 0, 0, 0];
        // SAFETY: a place for the handle, and so many options.
        let result = unsafe { forward(c"nvJitLinkCreate", words) };
        (result == SUCCESS).then_some(made)
    });
    // SAFETY: it is a handle of NVIDIA's.
    let is_taken = to_ptx.is_some_and(|link| unsafe { add_to(link, kind, bytes, name) } == SUCCESS);
    with(handle, |link| {
        link.to_ptx = to_ptx;
        link.lacks_ptx |= !is_taken;
    });
}

/// `nvJitLinkComplete`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn complete(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise.
    let result = unsafe { forward(name, words) };
    if result == SUCCESS {
        let to_ptx = with(words[0], |link| link.to_ptx).flatten();
        // SAFETY: it is a handle of NVIDIA's.
        let made = to_ptx.map(|link| unsafe { ptx_of(link) });
        with(words[0], |link| link.complete(made));
    }
    result
}

/// Completes a link that makes PTX.
///
/// # Safety
/// The handle must be one of NVIDIA's.
unsafe fn ptx_of(link: Word) -> Option<Vec<u8>> {
    let mut size: usize = 0;
    // SAFETY: the caller's promise; the places are as large as the functions want them.
    unsafe {
        if forward(c"nvJitLinkComplete", [link, 0, 0, 0, 0, 0]) != SUCCESS
            || forward(c"nvJitLinkGetLinkedPtxSize", [link, address_of(&mut size), 0, 0, 0, 0]) != SUCCESS
        {
            return None;
        }
        let mut text = vec![0u8; size];
        let place = text.as_mut_ptr().expose_provenance();
        (forward(c"nvJitLinkGetLinkedPtx", [link, place, 0, 0, 0, 0]) == SUCCESS).then_some(text)
    }
}

impl Link {
    /// Takes the PTX of an input.
    fn take(&mut self, parts: Vec<Part>, lacks_ptx: bool) {
        self.parts.extend(parts);
        self.lacks_ptx |= lacks_ptx;
    }

    /// Makes the image, from the inputs and what NVIDIA's library has made of LTO IR. If PTX is missing there is none: the
    /// program gets the machine code, which the driver refuses with what to do.
    fn complete(&mut self, made: Option<Option<Vec<u8>>>) {
        let options = self.options.iter().map(|option| option.to_string_lossy());
        let limit =
            options.filter_map(|option| option.strip_prefix("-maxrregcount=")?.parse().ok()).next_back();
        match made {
            Some(None) => self.lacks_ptx = true,
            Some(Some(text)) => self.parts.push(input::part("link-time optimisation", text)),
            None => {}
        }
        for part in &mut self.parts {
            part.max_registers = part.max_registers.min(limit.unwrap_or(u32::MAX));
        }
        self.image = (!self.lacks_ptx && !self.parts.is_empty()).then(|| pack(&self.parts));
    }
}

/// `nvJitLinkGetLinkedCubinSize`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn cubin_size(name: &CStr, words: [Word; 6]) -> Word {
    let place = std::ptr::with_exposed_provenance_mut::<usize>(words[1]);
    match with(words[0], |link| link.image.as_ref().map(Vec::len)).flatten().filter(|_| !place.is_null()) {
        Some(size) => {
            // SAFETY: the program's promise.
            unsafe { place.write(size) };
            SUCCESS
        }
        // SAFETY: the program's promise.
        None => unsafe { forward(name, words) },
    }
}

/// `nvJitLinkGetLinkedCubin`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn cubin(name: &CStr, words: [Word; 6]) -> Word {
    let place = std::ptr::with_exposed_provenance_mut::<u8>(words[1]);
    match with(words[0], |link| link.image.clone()).flatten().filter(|_| !place.is_null()) {
        Some(image) => {
            // SAFETY: the place is as large as `cubin_size` has said.
            unsafe { place.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
            SUCCESS
        }
        // SAFETY: the program's promise.
        None => unsafe { forward(name, words) },
    }
}

/// Bytes of the program.
///
/// # Safety
/// There must be so many.
unsafe fn slice<'a>(data: Word, size: usize) -> &'a [u8] {
    match data {
        0 => &[],
        // SAFETY: the caller's promise.
        data => unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(data), size) },
    }
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
