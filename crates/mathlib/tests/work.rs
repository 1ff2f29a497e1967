//! Work of a library on device memory: in stream order, captured by graphs, within bounds, and released.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mathlib::{Error, Range, Stream, is_of_device, submit, synchronize};
// The tests need its shared object.
use ptxvm_libcuda as _;

type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64) -> u32;

/// Calls a function of the driver, whose arguments are integers and pointers.
fn call(name: &CStr, arguments: [u64; 6]) {
    static DRIVER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let driver = *DRIVER.get_or_init(|| {
        let path = std::env::current_exe().expect("a path").with_file_name("libptxvm_libcuda.so");
        let path = CString::new(path.as_os_str().as_bytes()).expect("a path without zeros");
        // SAFETY: the driver may be loaded.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) }.expose_provenance()
    });
    // SAFETY: the function is the driver's, and the caller passes what it takes.
    unsafe {
        let function = libc::dlsym(std::ptr::with_exposed_provenance_mut(driver), name.as_ptr());
        assert!(!function.is_null(), "no {name:?}");
        let function: Function = std::mem::transmute(function);
        let [a, b, c, d, e, f] = arguments;
        assert_eq!(function(a, b, c, d, e, f), 0, "{name:?}");
    }
}

fn place<T>(place: &mut T) -> u64 {
    (&raw mut *place).expose_provenance() as u64
}

/// Memory for 16 numbers, which are zero.
fn memory() -> *const u32 {
    let mut address = 0u64;
    call(c"cuInit", [0; 6]);
    mathlib::driver::enter(None).expect("a context");
    call(c"cuMemAlloc_v2", [place(&mut address), 64, 0, 0, 0, 0]);
    call(c"cuMemsetD32_v2", [address, 0, 16, 0, 0, 0]);
    std::ptr::with_exposed_provenance(address as usize)
}

fn read(from: *const u32) -> [u32; 16] {
    let mut values = [0; 16];
    call(c"cuMemcpyDtoH_v2", [place(&mut values), from.addr() as u64, 64, 0, 0, 0]);
    values
}

/// Queues work that adds 1 to the numbers, and tells when it is released.
fn add_one(stream: Stream, to: *const u32, released: &Arc<AtomicUsize>) {
    struct Released(Arc<AtomicUsize>);
    impl Drop for Released {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let released = Released(Arc::clone(released));
    let range = Range::of(to, 16, "X", String::new).expect("within the allocation");
    let work = move || {
        let _kept = &released;
        let memory = range.reach("addOne")?;
        memory.read::<u32>().into_iter().enumerate().for_each(|(i, value)| memory.write(i, value + 1));
        Ok(())
    };
    submit(stream, "addOne", work).expect("a stream");
}

#[test]
fn work_runs_in_order_and_is_released() {
    let to = memory();
    let released = Arc::new(AtomicUsize::new(0));
    add_one(Stream::default(), to, &released);
    call(c"cuMemsetD32Async", [to.addr() as u64, 5, 8, 0, 0, 0]);
    add_one(Stream::default(), to, &released);
    synchronize(Stream::default()).expect("no error");
    assert_eq!(read(to), [6, 6, 6, 6, 6, 6, 6, 6, 2, 2, 2, 2, 2, 2, 2, 2]);
    assert_eq!(released.load(Ordering::SeqCst), 2);
}

#[test]
fn graphs_capture_it() {
    let to = memory();
    let released = Arc::new(AtomicUsize::new(0));
    let [mut stream, mut graph, mut exec] = [0u64; 3];
    call(c"cuStreamCreate", [place(&mut stream), 1, 0, 0, 0, 0]);
    call(c"cuStreamBeginCapture_v2", [stream, 1, 0, 0, 0, 0]);
    add_one(Stream::of(std::ptr::with_exposed_provenance_mut(stream as usize)), to, &released);
    call(c"cuStreamEndCapture", [stream, place(&mut graph), 0, 0, 0, 0]);
    assert_eq!(read(to)[0], 0);
    call(c"cuGraphInstantiateWithFlags", [place(&mut exec), graph, 0, 0, 0, 0]);
    call(c"cuGraphDestroy", [graph, 0, 0, 0, 0, 0]);
    for _ in 0..3 {
        call(c"cuGraphLaunch", [exec, stream, 0, 0, 0, 0]);
    }
    call(c"cuStreamSynchronize", [stream, 0, 0, 0, 0, 0]);
    assert_eq!((read(to), released.load(Ordering::SeqCst)), ([3; 16], 0));
    call(c"cuGraphExecDestroy", [exec, 0, 0, 0, 0, 0]);
    assert_eq!(released.load(Ordering::SeqCst), 1);
}

#[test]
fn bounds_are_checked_by_name() {
    let to = memory();
    assert!(is_of_device(to) && !is_of_device(&raw const *b"host") && !is_of_device(null::<u8>()));
    let error = Range::of(to.wrapping_add(8), 9, "A", || "3 columns of 3 rows".into()).expect_err("too long");
    let text = error.to_string();
    assert!(text.contains("A at ") && text.contains("needs 36 bytes (3 columns of 3 rows)"), "{text}");
    assert!(text.contains("has 64 bytes") && text.ends_with("32 from here on"), "{text}");
    let error = Range::of(null::<u32>(), 1, "B", || "1 value".into()).expect_err("not allocated");
    assert!(error.to_string().ends_with("no device memory is allocated there"), "{error}");
    let error = Range::of(to.wrapping_byte_add(2), 1, "C", String::new).expect_err("not aligned");
    assert!(error.to_string().contains("not aligned to 4 bytes"), "{error}");
    assert!(Range::of(to, usize::MAX, "D", String::new).is_err());
    let nothing = Range::of(null::<u32>(), 0, "E", String::new).expect("nothing");
    assert!(nothing.reach("f").expect("nothing").read::<u32>().is_empty());
    // Freed memory is not reached.
    let range = Range::of(to, 16, "X", String::new).expect("within the allocation");
    call(c"cuMemFree_v2", [to.addr() as u64, 0, 0, 0, 0, 0]);
    assert_eq!(range.reach("f").err(), Some(Error::ILLEGAL_ADDRESS));
    assert!(submit(Stream::of(null_mut::<c_void>().wrapping_byte_add(77)), "f", || Ok(())).is_err());
}
