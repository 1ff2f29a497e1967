//! What `PTXVM_TOOL=racecheck` makes the driver say of memory in the order of streams.

mod driver;

use std::ffi::{CStr, CString, c_void};
use std::process::{Command, Stdio};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driver::*;

const BYTES: usize = 4096;
/// Streams without and with the order of the default stream.
const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;

/// The program's kernels: each thread of 16 blocks writes a word.
struct Kernels(Handle);

impl Kernels {
    fn load(names: &[&str]) -> Kernels {
        let kernel = |name: &&str| {
            format!(
                ".visible .entry {name}(.param .u64 to) {{
                    .reg .b32 %t, %b; .reg .b64 %o;
                    ld.param.u64 %o, [to];
                    mov.u32 %t, %tid.x;
                    mov.u32 %b, %ctaid.x;
                    mad.lo.u32 %t, %b, 64, %t;
                    mad.wide.u32 %o, %t, 4, %o;
                    st.global.b32 [%o], %t;
                    ret;
                }}"
            )
        };
        let all: String = names.iter().map(kernel).collect();
        let ptx = CString::new(format!(".version 8.0 .target sm_80 .address_size 64 {all}")).unwrap();
        Kernels(driver::load(&ptx))
    }

    fn run(&self, name: &CStr, mut to: u64, stream: Handle) {
        let mut params = [(&raw mut to).cast()];
        let (function, params) = (driver::function(self.0, name), params.as_mut_ptr());
        // SAFETY: the kernel has one parameter.
        unsafe { assert_eq!(cuLaunchKernel(function, 16, 1, 1, 64, 1, 1, 0, stream, params, null_mut()), 0) };
    }
}

fn allocate(stream: Handle) -> u64 {
    let mut address = 0;
    ok!(cuMemAllocAsync(&raw mut address, BYTES, stream));
    address
}

/// An event that a stream records.
fn record(stream: Handle) -> Handle {
    let mut event = null_mut();
    ok!(cuEventCreate(&raw mut event, 2));
    ok!(cuEventRecord(event, stream));
    event
}

/// One stream waits for what another one has been asked for.
fn wait_for(waits: Handle, other: Handle) {
    ok!(cuStreamWaitEvent(waits, record(other), 0));
}

/// Waits until `flag` is set.
unsafe extern "C-unwind" fn hold(flag: *mut c_void) {
    // SAFETY: what the callers pass.
    let flag = unsafe { &*flag.cast::<AtomicBool>() };
    while !flag.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sets `flag`.
unsafe extern "C-unwind" fn set(flag: *mut c_void) {
    // SAFETY: what the callers pass.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Ordering::Release);
}

/// Streams that use each other's memory, and nothing orders that: a program for a test.
#[test]
fn a_program_with_streams_that_race() {
    driver::start();
    let kernels = Kernels::load(&["early", "before_free", "behind_free"]);
    let (one, two) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
    // SAFETY: handles of this program, and addresses of so many bytes.
    unsafe {
        kernels.run(c"early", allocate(one), two);
        assert_eq!(cuMemsetD8Async(allocate(one), 0, BYTES, two), 0);
        let [from, to] = [allocate(two), allocate(one)];
        assert_eq!(cuMemcpyDtoDAsync_v2(to, from, BYTES, two), 0);
        assert_eq!(cuMemFreeAsync(allocate(one), two), 0);
        assert_eq!(cuCtxSynchronize(), 0);
        // The first stream is held until the second one is done, so that nothing faults.
        for name in [c"before_free", c"behind_free"] {
            let (memory, done) = (allocate(one), AtomicBool::new(false));
            wait_for(two, one);
            assert_eq!(cuLaunchHostFunc(one, Some(hold), (&raw const done).cast_mut().cast()), 0);
            if name == c"before_free" {
                kernels.run(name, memory, two);
            }
            assert_eq!(cuMemFreeAsync(memory, one), 0);
            if name == c"behind_free" {
                kernels.run(name, memory, two);
            }
            assert_eq!(cuStreamSynchronize(two), 0);
            done.store(true, Ordering::Release);
            assert_eq!(cuCtxSynchronize(), 0);
        }
    }
}

/// The same with all that orders streams: a program for a test.
#[test]
fn a_program_with_streams_in_order() {
    driver::start();
    let kernels = Kernels::load(&["works"]);
    let [one, two, three] = [NON_BLOCKING; 3].map(stream);
    let use_and_free = |memory: u64| {
        kernels.run(c"works", memory, two);
        // SAFETY: handles of this program.
        unsafe {
            wait_for(one, two);
            assert_eq!(cuMemFreeAsync(memory, one), 0);
        }
    };
    // SAFETY: handles of this program, and addresses of so many bytes.
    unsafe {
        let memory = allocate(one);
        wait_for(two, one);
        use_and_free(memory);
        // By way of a third stream.
        let memory = allocate(one);
        wait_for(three, one);
        wait_for(two, three);
        use_and_free(memory);
        // By the program, which waits or asks.
        let memory = allocate(one);
        assert_eq!(cuStreamSynchronize(one), 0);
        use_and_free(memory);
        let memory = allocate(one);
        while cuStreamQuery(one) != 0 {}
        use_and_free(memory);
        let memory = allocate(one);
        assert_eq!(cuEventSynchronize(record(one)), 0);
        use_and_free(memory);
        let memory = allocate(one);
        let event = record(one);
        while cuEventQuery(event) != 0 {}
        use_and_free(memory);
        let memory = allocate(one);
        assert_eq!(cuCtxSynchronize(), 0);
        use_and_free(memory);
        // By a function of the program.
        let (memory, done) = (allocate(one), AtomicBool::new(false));
        let flag = (&raw const done).cast_mut().cast();
        assert_eq!(cuLaunchHostFunc(one, Some(set), flag), 0);
        hold(flag);
        use_and_free(memory);
        // By a value in memory.
        let values = allocate(one);
        assert_eq!(cuMemsetD8Async(values, 0, BYTES, one), 0);
        assert_eq!(cuStreamSynchronize(one), 0);
        let memory = allocate(one);
        assert_eq!(cuStreamWriteValue32_v2(one, values, 1, 0), 0);
        assert_eq!(cuStreamWaitValue32_v2(three, values, 1, 1), 0);
        kernels.run(c"works", memory, three);
    }
}

/// The same with the default stream, a stream that ends, and a graph: a program for a test.
#[test]
fn a_program_with_other_streams_in_order() {
    driver::start();
    let kernels = Kernels::load(&["works"]);
    let (blocking, two) = (stream(BLOCKING), stream(NON_BLOCKING));
    // SAFETY: handles of this program, and addresses of so many bytes.
    unsafe {
        let memory = allocate(null_mut());
        kernels.run(c"works", memory, blocking);
        assert_eq!(cuMemFreeAsync(memory, null_mut()), 0);
        // A copy to the host waits for itself.
        let (memory, mut host) = (allocate(blocking), [0u8; BYTES]);
        assert_eq!(cuMemsetD8Async(memory, 0, BYTES, blocking), 0);
        assert_eq!(cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), memory, BYTES), 0);
        kernels.run(c"works", memory, two);
        assert_eq!(cuCtxSynchronize(), 0);
        assert_eq!(cuMemFreeAsync(memory, blocking), 0);
        let ends = stream(NON_BLOCKING);
        let memory = allocate(ends);
        assert_eq!(cuStreamDestroy_v2(ends), 0);
        assert_eq!(cuCtxSynchronize(), 0);
        kernels.run(c"works", memory, two);
        assert_eq!(cuMemFreeAsync(memory, two), 0);
        // Its memory has an order of its own.
        assert_eq!(cuStreamBeginCapture_v2(two, 0), 0);
        let memory = allocate(two);
        kernels.run(c"works", memory, two);
        assert_eq!(cuMemFreeAsync(memory, two), 0);
        let (mut graph, mut exec) = (null_mut(), null_mut());
        assert_eq!(cuStreamEndCapture(two, &raw mut graph), 0);
        assert_eq!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0), 0);
        for stream in [two, blocking, two] {
            assert_eq!(cuGraphLaunch(exec, stream), 0);
            wait_for(blocking, two);
            wait_for(two, blocking);
        }
        assert_eq!(cuCtxSynchronize(), 0);
    }
}

/// What a program says on stderr under racecheck.
fn said(program: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", program]).env("PTXVM_TOOL", "racecheck").stdout(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn uses_of_memory_of_other_streams_that_nothing_orders_are_told() {
    let said = said("a_program_with_streams_that_race");
    let mut told: Vec<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix("ptxvm: error[stream-use-")?.split_once(" in stream"))
        .map(|(told, _)| told)
        .collect();
    told.sort_unstable();
    let expected = [
        "after-free]: kernel `before_free`",
        "after-free]: kernel `behind_free`",
        "before-alloc]: `cuMemFreeAsync`",
        "before-alloc]: a copy",
        "before-alloc]: a fill",
        "before-alloc]: kernel `early`",
    ];
    assert_eq!(told, expected, "{said}");
    let place = ": it writes at <module>:8:21\n  = note: the memory is 4096 bytes at 0x";
    assert_eq!(said.matches(place).count(), 1, "{said}");
}

#[test]
fn nothing_is_said_of_streams_in_order() {
    for program in ["a_program_with_streams_in_order", "a_program_with_other_streams_in_order"] {
        assert_eq!(said(program), "");
    }
}
