//! Memory and events of two processes: this one and one that it starts, which is this program with another test.

mod driver;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use driver::*;

type Bytes = [u8; 64];

unsafe extern "C" {
    fn cuIpcGetMemHandle(handle: *mut IpcHandle, address: u64) -> c_uint;
    fn cuIpcOpenMemHandle_v2(address: *mut u64, handle: IpcHandle, flags: c_uint) -> c_uint;
    fn cuIpcCloseMemHandle(address: u64) -> c_uint;
    fn cuIpcGetEventHandle(handle: *mut IpcHandle, event: Handle) -> c_uint;
    fn cuIpcOpenEventHandle(event: *mut Handle, handle: IpcHandle) -> c_uint;
    fn cuEventDestroy_v2(event: Handle) -> c_uint;
    fn cuMemExportToShareableHandle(result: *mut c_int, handle: u64, kind: c_uint, flags: u64) -> c_uint;
    fn cuMemPoolExportPointer(data: *mut IpcHandle, address: u64) -> c_uint;
    fn cuMemPoolImportPointer(address: *mut u64, pool: Handle, data: *mut IpcHandle) -> c_uint;
    fn cuMemPoolExportToShareableHandle(
        result: *mut c_void,
        pool: Handle,
        kind: c_uint,
        flags: u64,
    ) -> c_uint;
    fn cuMemPoolImportFromShareableHandle(
        pool: *mut Handle,
        handle: *mut c_void,
        kind: c_uint,
        flags: u64,
    ) -> c_uint;
    fn cuMemImportFromShareableHandle(result: *mut u64, handle: *mut c_void, kind: c_uint) -> c_uint;
}

/// `CUipcMemHandle`, `CUipcEventHandle`.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcHandle(Bytes);

const MAP_FAILED: u32 = 205;
/// Interprocess, without timing.
const EVENT: c_uint = 6;
const BYTES: usize = 1_000_000;

const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 data)
{
    .reg .b64 %a;
    .reg .b32 %i, %x;
    ld.param.u64 %a, [data];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %a, %i, 4, %a;
    ld.global.u32 %x, [%a];
    add.u32 %x, %x, 1;
    st.global.u32 [%a], %x;
    ret;
}";

fn text(handle: IpcHandle) -> String {
    handle.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn handle(text: &str) -> IpcHandle {
    let mut bytes = [0; 64];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    }
    IpcHandle(bytes)
}

fn handle_of(address: u64) -> IpcHandle {
    let mut handle = IpcHandle([0; 64]);
    ok!(cuIpcGetMemHandle(&raw mut handle, address));
    handle
}

fn open(handle: IpcHandle) -> u64 {
    let mut address = 0;
    ok!(cuIpcOpenMemHandle_v2(&raw mut address, handle, 1));
    address
}

fn shared_event() -> (Handle, IpcHandle) {
    let (mut event, mut handle) = (null_mut(), IpcHandle([0; 64]));
    ok!(cuEventCreate(&raw mut event, EVENT));
    ok!(cuIpcGetEventHandle(&raw mut handle, event));
    (event, handle)
}

fn open_event(handle: IpcHandle) -> Handle {
    let mut event = null_mut();
    ok!(cuIpcOpenEventHandle(&raw mut event, handle));
    event
}

/// Keeps the default stream busy until the memory behind the argument is 1.
fn keep_busy(until: &'static std::sync::atomic::AtomicBool) {
    unsafe extern "C-unwind" fn wait(until: *mut c_void) {
        // SAFETY: it is what `keep_busy` passes.
        let until = unsafe { &*until.cast::<std::sync::atomic::AtomicBool>() };
        while !until.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    ok!(cuLaunchHostFunc(null_mut(), Some(wait), std::ptr::from_ref(until).cast_mut().cast()));
}

/// Another process, and what it says.
struct Other {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts a test as a program, with a variable in its environment.
    fn start(test: &str, variable: &str) -> Other {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"])
            .env("GIVEN", variable);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Other { child, input, lines: BufReader::new(output).lines() }
    }

    /// What it says next.
    fn says(&mut self) -> String {
        let line = self.lines.by_ref().map(Result::unwrap).find(|line| line.contains("say "));
        let line = line.expect("the other process has failed");
        line.split_once("say ").unwrap().1.to_owned()
    }

    fn tell(&mut self, text: &str) {
        writeln!(self.input, "{text}").unwrap();
    }

    fn ends_well(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

/// What the other process was given at its start.
fn given() -> Vec<String> {
    std::env::var("GIVEN").unwrap().split_whitespace().map(str::to_owned).collect()
}

fn say(text: &str) {
    println!("say {text}");
    std::io::stdout().flush().unwrap();
}

fn wait_for_line() {
    std::io::stdin().lines().next().unwrap().unwrap();
}

static GO: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

#[test]
fn one_process_uses_what_another_has_allocated() {
    driver::start();
    let address = allocate(BYTES);
    ok!(cuMemsetD32_v2(address, 7, BYTES / 4));
    // An address within it is as good as the first.
    let memory = handle_of(address + 400);
    assert_eq!((handle_of(address).0, word(address)), (memory.0, 7));
    let (event, shared) = shared_event();
    let mut other = Other::start("use_memory_of_another", &format!("{} {}", text(memory), text(shared)));
    assert_eq!(other.says(), "added");
    assert_eq!([word(address), word(address + 124), word(address + 128)], [8, 8, 7]);
    // The other waits for the work here.
    keep_busy(&GO);
    ok!(cuMemsetD32Async(address, 9, 1, null_mut()));
    ok!(cuEventRecord(event, null_mut()));
    other.tell("recorded");
    assert_eq!(other.says(), "not ready");
    GO.store(true, std::sync::atomic::Ordering::Release);
    assert_eq!(other.says(), "9");
    // And this one for the work there: the other has recorded, too.
    ok!(cuEventSynchronize(event));
    assert_eq!(word(address), 10);
    // The other keeps the memory after it has been freed here.
    ok!(cuMemFree_v2(address));
    ok!(cuEventDestroy_v2(event));
    other.tell("freed");
    other.ends_well();
}

/// The same where device memory is at addresses of the host.
#[test]
fn memory_at_addresses_of_the_host_is_shared_too() {
    for test in ["one_process_uses_what_another_has_allocated", "physical_memory_is_shared_by_a_descriptor"] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env("PTXVM_HOST_ACCESS", "1");
        assert!(command.status().unwrap().success());
    }
}

/// What the host finds at an address of the device, if it reaches that.
fn word_on_host(address: u64) -> Option<u32> {
    // SAFETY: with this variable such memory is at an address of the host.
    let read = || unsafe { std::ptr::with_exposed_provenance::<u32>(address as usize).read() };
    std::env::var_os("PTXVM_HOST_ACCESS").map(|_| read())
}

#[test]
#[ignore = "a program that a test runs"]
fn use_memory_of_another() {
    driver::start();
    let given = given();
    let (memory, shared) = (handle(&given[0]), handle(&given[1]));
    let (mut before, mut after, mut total) = (0, 0, 0);
    ok!(cuMemGetInfo_v2(&raw mut before, &raw mut total));
    let address = open(memory);
    assert_eq!(open(memory), address);
    ok!(cuMemGetInfo_v2(&raw mut after, &raw mut total));
    assert_eq!(after, before, "it counts for the other process");
    let (mut base, mut bytes) = (0, 0);
    ok!(cuMemGetAddressRange_v2(&raw mut base, &raw mut bytes, address + 5));
    assert_eq!((base, bytes), (address, BYTES));
    assert_eq!((word(address), word(address + BYTES as u64 - 4)), (7, 7));
    assert!(matches!(word_on_host(address), None | Some(7)));
    let add = driver::function(driver::load(PTX), c"add");
    let launch = || {
        let mut data = address;
        let mut arguments = [(&raw mut data).cast::<c_void>()];
        ok!(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, null_mut(), arguments.as_mut_ptr(), null_mut()));
    };
    launch();
    ok!(cuCtxSynchronize());
    say("added");
    wait_for_line();
    let event = open_event(shared);
    ends!(NOT_READY, cuEventQuery(event));
    ok!(cuStreamWaitEvent(null_mut(), event, 0));
    say("not ready");
    assert_eq!(word(address), 9);
    ok!(cuEventQuery(event));
    launch();
    ok!(cuEventRecord(event, null_mut()));
    ok!(cuCtxSynchronize());
    say("9");
    wait_for_line();
    // Neither memory nor event is gone, but nobody else gets them.
    ok!(cuEventQuery(event));
    ok!(cuEventSynchronize(event));
    ends!(INVALID_VALUE, cuMemFree_v2(address));
    ok!(cuIpcCloseMemHandle(address));
    assert_eq!(word(address), 10);
    ok!(cuIpcCloseMemHandle(address));
    ends!(INVALID_VALUE, cuIpcCloseMemHandle(address));
    let (mut word, mut address) = (0u32, address);
    ends!(INVALID_VALUE, cuMemcpyDtoH_v2((&raw mut word).cast(), address, 4));
    ends!(MAP_FAILED, cuIpcOpenMemHandle_v2(&raw mut address, memory, 1));
}

#[test]
fn what_a_killed_process_has_shared_is_kept_by_who_has_it() {
    driver::start();
    let mut other = Other::start("share_and_hang", "");
    let said = other.says();
    let [memory, more, event] = said.split(' ').map(handle).collect::<Vec<_>>()[..] else { panic!("{said}") };
    let (mut address, event) = (open(memory), open_event(event));
    ends!(NOT_READY, cuEventQuery(event));
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    assert_eq!(word(address), 5);
    let begin = Instant::now();
    ok!(cuEventSynchronize(event));
    assert!(begin.elapsed() < Duration::from_secs(10));
    ok!(cuIpcCloseMemHandle(address));
    ends!(MAP_FAILED, cuIpcOpenMemHandle_v2(&raw mut address, more, 1));
}

#[test]
#[ignore = "a program that a test runs"]
fn share_and_hang() {
    driver::start();
    let (first, second) = (allocate(BYTES), allocate(BYTES));
    ok!(cuMemsetD32_v2(first, 5, 4));
    let (event, shared) = shared_event();
    keep_busy(&GO);
    ok!(cuEventRecord(event, null_mut()));
    // The handles of memory were to wait for the work.
    GO.store(true, std::sync::atomic::Ordering::Release);
    let handles = [handle_of(first), handle_of(second), shared].map(text);
    static NEVER: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    keep_busy(&NEVER);
    ok!(cuEventRecord(event, null_mut()));
    say(&handles.join(" "));
    wait_for_line();
}

#[test]
fn what_is_no_handle_of_another_process_is_refused() {
    driver::start();
    let (mut address, mut event) = (allocate(BYTES), null_mut());
    let own = handle_of(address);
    ends!(INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&raw mut address, own, 1));
    ends!(INVALID_VALUE, cuIpcOpenMemHandle_v2(&raw mut address, own, 2));
    ends!(INVALID_VALUE, cuIpcOpenMemHandle_v2(&raw mut address, IpcHandle([7; 64]), 1));
    ends!(INVALID_VALUE, cuIpcOpenEventHandle(&raw mut event, own));
    ends!(INVALID_VALUE, cuIpcCloseMemHandle(address));
    let mut handle = own;
    ok!(cuMemAllocManaged(&raw mut address, 64, 1));
    ends!(INVALID_VALUE, cuIpcGetMemHandle(&raw mut handle, address));
    // Only an event that was made for several processes has a handle.
    ok!(cuEventCreate(&raw mut event, 2));
    ends!(400, cuIpcGetEventHandle(&raw mut handle, event));
}

#[test]
fn memory_of_a_pool_is_shared_by_its_descriptor() {
    driver::start();
    let (mut pool, mut address, mut descriptor) = (null_mut(), 0, 0);
    // Pinned memory of device 0, for a file descriptor.
    let properties = PoolProperties([1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    ok!(cuMemPoolCreate(&raw mut pool, (&raw const properties).cast()));
    ok!(cuMemAllocFromPoolAsync(&raw mut address, 64, pool, null_mut()));
    ok!(cuMemsetD32_v2(address, 3, 1));
    let mut handle = IpcHandle([0; 64]);
    ok!(cuMemPoolExportPointer(&raw mut handle, address));
    ok!(cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), pool, 1, 0));
    // SAFETY: the call takes numbers alone.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) }, 0);
    Other::start("use_memory_of_a_pool", &format!("{descriptor} {}", text(handle))).ends_well();
    assert_eq!(word(address), 4);
    // Memory of a pool that is not shared is not either.
    ok!(cuMemAllocAsync(&raw mut address, 64, null_mut()));
    ends!(INVALID_VALUE, cuMemPoolExportPointer(&raw mut handle, address));
}

/// `CUmemPoolProps`.
#[repr(C, align(8))]
struct PoolProperties([u32; 22]);

#[test]
#[ignore = "a program that a test runs"]
fn use_memory_of_a_pool() {
    driver::start();
    let given = given();
    let (mut pool, mut address, mut other) = (null_mut(), 0, 0);
    let (descriptor, mut memory) =
        (std::ptr::without_provenance_mut(given[0].parse().unwrap()), handle(&given[1]));
    ok!(cuMemPoolImportFromShareableHandle(&raw mut pool, descriptor, 1, 0));
    ok!(cuMemPoolImportPointer(&raw mut address, pool, &raw mut memory));
    assert_eq!(word(address), 3);
    ok!(cuMemsetD32_v2(address, 4, 1));
    // Only the process of the pool allocates from it.
    ends!(INVALID_VALUE, cuMemAllocFromPoolAsync(&raw mut other, 64, pool, null_mut()));
    ok!(cuMemFreeAsync(address, null_mut()));
    ok!(cuCtxSynchronize());
    ends!(INVALID_VALUE, cuMemFree_v2(address));
}

/// Pinned memory of device 0, for a file descriptor if it is to be shared.
fn physical(shared: bool) -> u64 {
    let (mut memory, properties) = (0, [1u32, shared.into(), 1, 0, 0, 0, 0, 0]);
    ok!(cuMemCreate(&raw mut memory, 2 << 20, (&raw const properties).cast(), 0));
    memory
}

/// Maps physical memory.
fn map(memory: u64) -> u64 {
    let mut address = 0;
    ok!(cuMemAddressReserve(&raw mut address, 2 << 20, 0, 0, 0));
    ok!(cuMemMap(address, 2 << 20, 0, memory, 0));
    address
}

#[test]
fn physical_memory_is_shared_by_a_descriptor() {
    driver::start();
    let (memory, mut descriptor) = (physical(true), 0);
    let address = map(memory);
    ok!(cuMemsetD32_v2(address, 3, 1));
    ok!(cuCtxSynchronize());
    ok!(cuMemExportToShareableHandle(&raw mut descriptor, memory, 1, 0));
    // SAFETY: the call takes numbers alone.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) }, 0);
    Other::start("use_physical_memory", &descriptor.to_string()).ends_well();
    assert_eq!(word(address), 4);
    ends!(801, cuMemExportToShareableHandle(&raw mut descriptor, memory, 8, 0));
    ends!(INVALID_VALUE, cuMemExportToShareableHandle(&raw mut descriptor, physical(false), 1, 0));
    let (mut imported, stdin) = (0, null_mut());
    ends!(INVALID_VALUE, cuMemImportFromShareableHandle(&raw mut imported, stdin, 1));
}

#[test]
#[ignore = "a program that a test runs"]
fn use_physical_memory() {
    driver::start();
    let mut memory = 0;
    let descriptor = std::ptr::without_provenance_mut(given()[0].parse().unwrap());
    ok!(cuMemImportFromShareableHandle(&raw mut memory, descriptor, 1));
    let address = map(memory);
    assert_eq!(word(address), 3);
    ok!(cuMemsetD32_v2(address, 4, 1));
    ok!(cuCtxSynchronize());
    assert!(matches!(word_on_host(address), None | Some(4)));
    // Taken away, it makes room for other memory.
    ok!(cuMemUnmap(address, 2 << 20));
    ok!(cuMemMap(address, 2 << 20, 0, physical(false), 0));
    assert_eq!(word(address), 0);
    ok!(cuMemUnmap(address, 2 << 20));
    ok!(cuMemAddressFree(address, 2 << 20));
}
