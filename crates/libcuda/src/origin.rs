//! Finds the place in the program that called the driver, for reports about what the call allocated.
//!
//! The name of an allocation in fault reports includes the first function on the stack that is in neither the driver nor the runtime.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use crate::lock;

/// The context of the unwinder that Rust's panics use.
#[repr(C)]
struct UnwindContext {
    _private: [u8; 0],
}
const GO_ON: c_int = 0;
const STOP: c_int = 5;

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C-unwind" fn(*mut UnwindContext, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

/// At most this many functions are examined: the driver and the runtime have fewer on the stack.
const DEEPEST: usize = 32;

/// At most this many call sites are kept.
const MOST_KNOWN: usize = 10_000;

/// The addresses of this library; `None` if it is linked into the program, whose functions then cannot be distinguished from ours.
fn own_addresses() -> Option<Range<usize>> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _bytes: usize, found: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a description with as many headers as it says, and our own argument.
        unsafe {
            let info = &*info;
            let base = info.dlpi_addr as usize;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
            let part = |header: &libc::Elf64_Phdr| {
                let start = base + header.p_vaddr as usize;
                start..start + header.p_memsz as usize
            };
            let parts = loaded.map(part);
            let all = parts.reduce(|first, next| first.start.min(next.start)..first.end.max(next.end));
            let is_ours = all.as_ref().is_some_and(|all| all.contains(&(visit as *const () as usize)));
            let is_program = info.dlpi_name.is_null() || info.dlpi_name.read() == 0;
            if is_ours && !is_program {
                found.cast::<Option<Range<usize>>>().write(all);
            }
            is_ours.into()
        }
    }
    static OWN: OnceLock<Option<Range<usize>>> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let mut found = None;
        // SAFETY: the argument points to a place for what `visit` finds.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
        found
    });
    own.clone()
}

/// A call site in the program.
#[derive(Clone)]
struct Site {
    /// The function and the file, in the form that `addr2line -e FILE OFFSET` takes.
    text: String,
    /// The path of the file.
    path: String,
}

/// The state of a walk up the stack.
struct Walk {
    own: Range<usize>,
    seen: usize,
    found: Option<Site>,
}

impl Walk {
    /// Examines the function that contains a return address. Returns true if the walk is over.
    fn look_at(&mut self, address: usize) -> bool {
        self.seen += 1;
        if self.own.contains(&address) {
            return self.seen == DEEPEST;
        }
        self.found = known(address.wrapping_sub(1));
        let is_runtime = self.found.as_ref().is_some_and(|found| {
            ["libcudart.so", "libptxvm_cudart"].iter().any(|name| found.text.contains(name))
        });
        if is_runtime {
            self.found = None;
        }
        !is_runtime || self.seen == DEEPEST
    }
}

/// The cached result of [`describe`], which is slow compared with the rest of the walk.
fn known(address: usize) -> Option<Site> {
    static KNOWN: Mutex<BTreeMap<usize, Option<Site>>> = Mutex::new(BTreeMap::new());
    let mut known = lock(&KNOWN);
    // A program that generates code at run time calls from ever new addresses.
    if known.len() > MOST_KNOWN {
        known.clear();
    }
    known.entry(address).or_insert_with(|| describe(address)).clone()
}

/// The function and the file that contain an address.
fn describe(address: usize) -> Option<Site> {
    // SAFETY: all zeros is a valid value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the call only looks the address up, and does not access memory there.
    if unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) } == 0
        || info.dli_fname.is_null()
    {
        return None;
    }
    // SAFETY: the dynamic linker's strings are zero-terminated and live as long as the library.
    let text = |text| unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let path = text(info.dli_fname);
    let file = Path::new(&*path).file_name().map_or(path.clone(), |name| name.to_string_lossy());
    let offset = address.wrapping_sub(info.dli_fbase.addr());
    let text = match info.dli_sname.is_null() {
        true => format!("{file}+{offset:#x}"),
        false => format!("`{}` in {file}+{offset:#x}", text(info.dli_sname)),
    };
    Some(Site { text, path: path.into_owned() })
}

/// The call site in the program, in the form that `addr2line -e FILE OFFSET` takes: the first return address on the stack in neither
/// this library nor the runtime. `None` if it cannot be determined.
pub fn caller() -> Option<String> {
    site().map(|site| site.text)
}

/// The path of the program or library that called the driver.
pub fn file() -> Option<String> {
    site().map(|site| site.path)
}

fn site() -> Option<Site> {
    unsafe extern "C-unwind" fn visit(context: *mut UnwindContext, walk: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes its own context and our argument.
        let (address, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
        if walk.look_at(address) { STOP } else { GO_ON }
    }
    let mut walk = Walk { own: own_addresses()?, seen: 0, found: None };
    // SAFETY: the argument has the type that `visit` expects.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    walk.found
}
