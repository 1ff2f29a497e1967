//! The library as a program uses it: through its C functions.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::ptr::null_mut;

// Its symbols are what is tested; those of the driver are for a process that uses a device.
use ptxvm_libcuda as _;
use ptxvm_nvml as _;

type Handle = *mut c_void;

unsafe extern "C" {
    fn nvmlInit_v2() -> c_uint;
    fn nvmlShutdown() -> c_uint;
    fn nvmlErrorString(status: c_uint) -> *const c_char;
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_uint;
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut Handle) -> c_uint;
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut Handle) -> c_uint;
    fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, device: *mut Handle) -> c_uint;
    fn nvmlDeviceGetHandleBySerial(serial: *const c_char, device: *mut Handle) -> c_uint;
    fn nvmlDeviceGetIndex(device: Handle, index: *mut c_uint) -> c_uint;
    fn nvmlDeviceGetName(device: Handle, name: *mut c_char, length: c_uint) -> c_uint;
    fn nvmlDeviceGetUUID(device: Handle, uuid: *mut c_char, length: c_uint) -> c_uint;
    fn nvmlDeviceGetMemoryInfo(device: Handle, memory: *mut [u64; 3]) -> c_uint;
    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: *mut [u64; 5]) -> c_uint;
    fn nvmlDeviceGetCudaComputeCapability(device: Handle, major: *mut c_int, minor: *mut c_int) -> c_uint;
    fn nvmlDeviceGetTemperature(device: Handle, sensor: c_uint, temperature: *mut c_uint) -> c_uint;
    fn nvmlDeviceGetSupportedMemoryClocks(device: Handle, count: *mut c_uint, clocks: *mut c_uint) -> c_uint;
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: Handle,
        count: *mut c_uint,
        infos: *mut [u64; 3],
    ) -> c_uint;
    fn nvmlSystemGetProcessName(id: c_uint, name: *mut c_char, length: c_uint) -> c_uint;
    fn cuInit(flags: c_uint) -> c_uint;
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_uint;
    fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_uint;
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> c_uint;
    fn cuCtxSetCurrent(context: Handle) -> c_uint;
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_uint;
}

/// Calls a function, whose status has to be 0.
macro_rules! ok {
    ($($call:tt)*) => { fails!(0, $($call)*) };
}

/// Calls a function that has to end with this status.
macro_rules! fails {
    ($status:expr, $($call:tt)*) => {{
        // SAFETY: the pointers are good for the call, or null.
        let status = unsafe { $($call)* };
        assert_eq!(status, $status, "{}", stringify!($($call)*));
    }};
}

/// What a function writes into a buffer.
fn text(write: impl FnOnce(*mut c_char, c_uint) -> c_uint) -> String {
    let mut buffer = [1 as c_char; 96];
    assert_eq!(write(buffer.as_mut_ptr(), 96), 0);
    // SAFETY: functions end texts with a zero.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_str().unwrap().to_owned()
}

fn device(index: c_uint) -> Handle {
    let mut device = null_mut();
    ok!(nvmlDeviceGetHandleByIndex_v2(index, &raw mut device));
    device
}

fn uuid(device: Handle) -> String {
    // SAFETY: the buffer has this length.
    text(|buffer, length| unsafe { nvmlDeviceGetUUID(device, buffer, length) })
}

/// This test's binary as a program of its own, which runs one of the tests below.
fn program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"]);
    command.env_remove("CUDA_VISIBLE_DEVICES").env_remove("PTXVM_REPORT").env_remove("PTXVM_DEVICE_NAME");
    command.env("PTXVM_DEVICE", "sm_90").env("PTXVM_DEVICE_COUNT", "3").env("PTXVM_DEVICE_MEMORY", "1G");
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn devices_are_described() {
    run(&mut program("describe"));
}

#[test]
#[ignore = "a program that a test runs"]
fn describe() {
    let mut count = 0;
    fails!(1, nvmlDeviceGetCount_v2(&raw mut count));
    fails!(1, nvmlShutdown());
    ok!(nvmlInit_v2());
    ok!(nvmlInit_v2());
    ok!(nvmlShutdown());
    ok!(nvmlDeviceGetCount_v2(&raw mut count));
    assert_eq!(count, 3);
    fails!(2, nvmlDeviceGetCount_v2(null_mut()));
    let (mut found, mut index, last) = (null_mut(), 0, device(2));
    fails!(2, nvmlDeviceGetHandleByIndex_v2(3, &raw mut found));
    // SAFETY: the buffers have these lengths.
    let name = text(|buffer, length| unsafe { nvmlDeviceGetName(last, buffer, length) });
    assert_eq!(name, "NVIDIA H100 80GB HBM3");
    let mut short = [0; 4];
    fails!(7, nvmlDeviceGetName(last, short.as_mut_ptr(), 4));
    let uuid = std::ffi::CString::new(uuid(last)).unwrap();
    ok!(nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &raw mut found));
    ok!(nvmlDeviceGetIndex(found, &raw mut index));
    assert_eq!((found, index), (last, 2));
    ok!(nvmlDeviceGetHandleByPciBusId_v2(c"0000:02:00.0".as_ptr(), &raw mut found));
    assert_eq!(found, device(1));
    fails!(6, nvmlDeviceGetHandleByPciBusId_v2(c"0000:05:00.0".as_ptr(), &raw mut found));
    fails!(6, nvmlDeviceGetHandleBySerial(c"1".as_ptr(), &raw mut found));
    fails!(2, nvmlDeviceGetIndex(null_mut(), &raw mut index));
    let (mut major, mut minor) = (0, 0);
    ok!(nvmlDeviceGetCudaComputeCapability(last, &raw mut major, &raw mut minor));
    assert_eq!((major, minor), (9, 0));
    let mut memory = [0; 3];
    ok!(nvmlDeviceGetMemoryInfo(last, &raw mut memory));
    assert_eq!(memory, [1 << 30, 1 << 30, 0]);
    let mut memory = [40, 1, 1, 1, 1];
    fails!(25, nvmlDeviceGetMemoryInfo_v2(last, &raw mut memory));
    memory[0] |= 2 << 24;
    ok!(nvmlDeviceGetMemoryInfo_v2(last, &raw mut memory));
    assert_eq!(memory[1..], [1 << 30, 0, 1 << 30, 0]);
    fails!(3, nvmlDeviceGetTemperature(last, 0, &raw mut index));
    let (mut room, mut clock) = (0, 0);
    fails!(7, nvmlDeviceGetSupportedMemoryClocks(last, &raw mut room, null_mut()));
    assert_eq!(room, 1);
    ok!(nvmlDeviceGetSupportedMemoryClocks(last, &raw mut room, &raw mut clock));
    assert_eq!(clock, 2619);
    // SAFETY: it gives out texts that stay.
    assert_eq!(unsafe { CStr::from_ptr(nvmlErrorString(25)) }, c"Argument version mismatch");
    ok!(nvmlShutdown());
    fails!(1, nvmlDeviceGetIndex(last, &raw mut index));
}

#[test]
fn the_driver_tells_the_same() {
    run(program("compare").env("CUDA_VISIBLE_DEVICES", "2,0"));
}

#[test]
#[ignore = "a program that a test runs"]
fn compare() {
    ok!(nvmlInit_v2());
    ok!(cuInit(0));
    // The driver's first device is the third of the machine.
    for (ordinal, index) in [(0, 2), (1, 0)] {
        let mut bytes = [0; 16];
        ok!(cuDeviceGetUuid_v2(&raw mut bytes, ordinal));
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(uuid(device(index)).replace('-', ""), format!("GPU{digits}"));
        // SAFETY: the buffer has this length.
        let id = text(|buffer, length| unsafe { cuDeviceGetPCIBusId(buffer, length as c_int, ordinal) });
        let (id, mut found) = (std::ffi::CString::new(id).unwrap(), null_mut());
        ok!(nvmlDeviceGetHandleByPciBusId_v2(id.as_ptr(), &raw mut found));
        assert_eq!(found, device(index));
    }
}

#[test]
fn processes_of_one_exec_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("%p.json");
    let mut user = program("use_a_device");
    user.env("PTXVM_REPORT", &report).env("CUDA_VISIBLE_DEVICES", "1");
    let mut user = user.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(user.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("ready")));
    let id = user.id().to_string();
    run(program("see_the_other").env("PTXVM_REPORT", &report).env("USER_OF_DEVICE", &id));
    // One that is killed leaves its report, but uses nothing.
    user.kill().unwrap();
    user.wait().unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    run(program("see_nobody").env("PTXVM_REPORT", &report));
}

#[test]
#[ignore = "a program that a test runs"]
fn use_a_device() {
    let (mut context, mut address) = (null_mut(), 0);
    ok!(cuInit(0));
    ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
    ok!(cuCtxSetCurrent(context));
    ok!(cuMemAlloc_v2(&raw mut address, 12_345_678));
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().lines().next();
}

/// The processes on a device: numbers and bytes.
fn processes(device: Handle) -> Vec<(u32, u64)> {
    let (mut count, mut infos) = (8, [[0; 3]; 8]);
    ok!(nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut count, infos.as_mut_ptr()));
    // Behind the number is padding.
    infos[..count as usize].iter().map(|info| (info[0] as u32, info[1])).collect()
}

#[test]
#[ignore = "a program that a test runs"]
fn see_the_other() {
    let other = std::env::var("USER_OF_DEVICE").unwrap().parse().unwrap();
    ok!(nvmlInit_v2());
    assert_eq!(processes(device(1)), [(other, 12_345_678)]);
    assert_eq!(processes(device(0)), []);
    let mut memory = [0; 3];
    ok!(nvmlDeviceGetMemoryInfo(device(1), &raw mut memory));
    assert_eq!(memory[2], 12_345_678);
    let own = std::env::args().next().unwrap();
    // SAFETY: the buffers have these lengths.
    let name = |length| text(|buffer, _| unsafe { nvmlSystemGetProcessName(other, buffer, length) });
    assert_eq!(name(8), own[..7]);
    fails!(6, nvmlSystemGetProcessName(u32::MAX, null_mut(), 8));
}

#[test]
#[ignore = "a program that a test runs"]
fn see_nobody() {
    ok!(nvmlInit_v2());
    assert_eq!(processes(device(1)), []);
}
