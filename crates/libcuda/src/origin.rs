//! Where in the program a call of the driver came from, for reports of what it allocated.
//!
//! The name of an allocation, which reports of faults have, names the first function on the stack that is neither the driver's nor the
//! runtime's.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Of the unwinder that Rust's own panics use.
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

/// So many functions are looked at: the driver's and the runtime's own are less.
const DEEPEST: usize = 32;

/// So many places of calls are remembered.
const MOST_KNOWN: usize = 10_000;

/// The addresses of this library. Nothing if it is a part of the program itself, whose functions cannot be told from ours.
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
        // SAFETY: the argument is a place for what the function finds.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
        found
    });
    own.clone()
}

/// What a walk up the stack is looking for.
struct Walk {
    own: Range<usize>,
    seen: usize,
    found: Option<String>,
}

impl Walk {
    /// Looks at a function that is to go on at an address. Says whether the walk is over.
    fn look_at(&mut self, address: usize) -> bool {
        self.seen += 1;
        if self.own.contains(&address) {
            return self.seen == DEEPEST;
        }
        self.found = known(address.wrapping_sub(1));
        let is_runtime = self
            .found
            .as_ref()
            .is_some_and(|found| ["libcudart.so", "libptxvm_cudart"].iter().any(|name| found.contains(name)));
        if is_runtime {
            self.found = None;
        }
        !is_runtime || self.seen == DEEPEST
    }
}

/// What [`describe`] says, which takes longer to find out than everything else here.
fn known(address: usize) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<usize, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // A program that makes code while it runs calls from ever new places.
    if known.len() > MOST_KNOWN {
        known.clear();
    }
    known.entry(address).or_insert_with(|| describe(address)).clone()
}

/// The function and the file that an address is in.
fn describe(address: usize) -> Option<String> {
    // SAFETY: all zeros are a value of it.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: it looks the address up and touches nothing there.
    if unsafe { libc::dladdr(std::ptr::without_provenance(address), &raw mut info) } == 0
        || info.dli_fname.is_null()
    {
        return None;
    }
    // SAFETY: the dynamic linker's texts end in a zero and stay as long as the library.
    let text = |text| unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let path = text(info.dli_fname);
    let file = Path::new(&*path).file_name().map_or(path.clone(), |name| name.to_string_lossy());
    let offset = address.wrapping_sub(info.dli_fbase.addr());
    Some(match info.dli_sname.is_null() {
        true => format!("{file}+{offset:#x}"),
        false => format!("`{}` in {file}+{offset:#x}", text(info.dli_sname)),
    })
}

/// The call of the program that led here, as `addr2line -e FILE OFFSET` takes it: the first on the stack that is neither in this library nor in
/// the runtime. Nothing where that cannot be told.
pub fn caller() -> Option<String> {
    unsafe extern "C-unwind" fn visit(context: *mut UnwindContext, walk: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes its own context, and our argument.
        let (address, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
        if walk.look_at(address) { STOP } else { GO_ON }
    }
    let mut walk = Walk { own: own_addresses()?, seen: 0, found: None };
    // SAFETY: the argument is what the function expects.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    walk.found
}
