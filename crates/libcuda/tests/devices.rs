//! Several devices: what each has of its own, and who reaches what of whom.

mod driver;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::process::{Command, Output};
use std::ptr::null_mut;

use driver::*;

unsafe extern "C" {
    fn cuCtxDisablePeerAccess(peer: Handle) -> c_uint;
    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) -> c_uint;
    fn cuCtxGetDevice(device: *mut c_int) -> c_uint;
    fn cuDeviceCanAccessPeer(result: *mut c_int, device: c_int, peer: c_int) -> c_uint;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_uint;
    fn cuDeviceGetCount(count: *mut c_int) -> c_uint;
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_uint;
    fn cuDeviceSetMemPool(device: c_int, pool: Handle) -> c_uint;
    fn cuMemGetAccess(flags: *mut u64, location: *const [c_int; 2], address: u64) -> c_uint;
    fn cuMemPoolGetAccess(flags: *mut c_uint, pool: Handle, location: *const [c_int; 2]) -> c_uint;
    fn cuMemPoolSetAccess(pool: Handle, access: *const [c_int; 3], count: usize) -> c_uint;
    fn cuMemSetAccess(address: u64, bytes: usize, access: *const [c_int; 3], count: usize) -> c_uint;
    fn cuMemcpyPeer(to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize) -> c_uint;
    fn cuMemcpyPeerAsync(
        to: u64,
        to_context: Handle,
        from: u64,
        from_context: Handle,
        bytes: usize,
        stream: Handle,
    ) -> c_uint;
}

const INVALID_DEVICE: u32 = 101;
const INVALID_HANDLE: u32 = 400;
const ALREADY_ENABLED: u32 = 704;
const NOT_ENABLED: u32 = 705;
const ILLEGAL_ADDRESS: u32 = 700;
/// `CU_POINTER_ATTRIBUTE_CONTEXT`, `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const CONTEXT: c_uint = 1;
const ORDINAL: c_uint = 9;
const GRANULE: usize = 2 << 20;
/// `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const DEVICE: c_int = 1;
const READ_AND_WRITE: c_int = 3;

const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 own = 40;
.visible .entry next(.param .u64 to, .param .u64 from)
{
    .reg .b64 %a, %b;
    .reg .b32 %x;
    ld.param.u64 %a, [to];
    ld.param.u64 %b, [from];
    ld.global.u32 %x, [%b];
    add.u32 %x, %x, 1;
    st.global.u32 [%a], %x;
    ret;
}";

/// A device with its primary context, and a kernel there that writes what follows a number.
#[derive(Clone, Copy)]
struct Device {
    context: Handle,
    module: Handle,
    next: Handle,
}

impl Device {
    fn new(number: c_int) -> Device {
        let mut context = null_mut();
        ok!(cuInit(0));
        ok!(cuDevicePrimaryCtxRetain(&raw mut context, number));
        ok!(cuCtxSetCurrent(context));
        let module = load(PTX);
        Device { context, module, next: function(module, c"next") }
    }

    fn select(self) {
        ok!(cuCtxSetCurrent(self.context));
    }

    /// Memory of this device with a number in it.
    fn number(self, value: u32) -> u64 {
        self.select();
        let address = allocate(4);
        ok!(cuMemsetD32_v2(address, value, 1));
        // Other devices do not wait for this one.
        ok!(cuCtxSynchronize());
        address
    }

    fn launch(self, mut to: u64, mut from: u64, stream: Handle) -> u32 {
        let mut params: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut from).cast()];
        // SAFETY: the kernel takes two addresses.
        unsafe { cuLaunchKernel(self.next, 1, 1, 1, 1, 1, 1, 0, stream, params.as_mut_ptr(), null_mut()) }
    }

    /// Runs the kernel, and returns how it ended.
    fn run(self, to: u64, from: u64) -> u32 {
        self.select();
        assert_eq!(self.launch(to, from, null_mut()), 0);
        // SAFETY: there is a context.
        unsafe { cuCtxSynchronize() }
    }
}

fn attribute(attribute: c_uint, address: u64) -> u64 {
    let mut value = 0u64;
    ok!(cuPointerGetAttribute((&raw mut value).cast(), attribute, address));
    value
}

/// A pool of a device.
fn pool(device: c_int) -> Handle {
    let (mut pool, mut properties) = (null_mut(), [0u32; 32]);
    (properties[0], properties[2], properties[3]) = (1, DEVICE as u32, device as u32);
    // The manual's structure has bytes, the declaration too: the numbers are the first of them.
    ok!(cuMemPoolCreate(&raw mut pool, (&raw const properties).cast()));
    pool
}

/// Memory of a device, mapped.
fn mapped(device: c_int) -> u64 {
    let (mut handle, mut address) = (0, 0);
    let properties: [c_int; 8] = [1, 0, DEVICE, device, 0, 0, 0, 0];
    ok!(cuMemCreate(&raw mut handle, GRANULE, (&raw const properties).cast(), 0));
    ok!(cuMemAddressReserve(&raw mut address, GRANULE, 0, 0, 0));
    ok!(cuMemMap(address, GRANULE, 0, handle, 0));
    address
}

/// Runs a test of this file that needs more than one device.
fn with_devices(test: &str, case: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("CASE", case);
    for variable in ["CUDA_VISIBLE_DEVICES", "PTXVM_DEVICE", "PTXVM_TOOL", "PTXVM_REPORT"] {
        command.env_remove(variable);
    }
    command.env("PTXVM_DEVICE_COUNT", "3").output().unwrap()
}

fn passes(test: &str) {
    let output = with_devices(test, "");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
}

#[test]
fn each_device_has_its_own() {
    passes("of_each_device");
}

#[test]
fn what_is_opened_is_reached() {
    passes("reached");
}

#[test]
#[ignore = "it needs several devices"]
fn of_each_device() {
    let devices = [0, 1, 2].map(Device::new);
    let (mut count, mut device, mut uuids) = (0, 0, [[0; 16]; 3]);
    ok!(cuDeviceGetCount(&raw mut count));
    assert_eq!(count, 3);
    ends!(INVALID_DEVICE, cuDeviceGet(&raw mut device, 3));
    for (i, uuid) in (0..).zip(&mut uuids) {
        ok!(cuDeviceGetUuid_v2(uuid, i));
    }
    assert!(uuids[0] != uuids[1] && uuids[1] != uuids[2]);
    let numbers = [10, 20, 30].map(|value| devices[value as usize / 10 - 1].number(value));
    for (i, of) in devices.iter().enumerate() {
        of.select();
        ok!(cuCtxGetDevice(&raw mut device));
        assert_eq!(device, i as c_int);
        // What is known of memory does not depend on who asks.
        for (other, number) in numbers.into_iter().enumerate() {
            assert_eq!(attribute(ORDINAL, number), other as u64);
            assert_eq!(attribute(CONTEXT, number), devices[other].context.addr() as u64);
        }
        let (mut free, mut total) = (0, 0);
        ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
        assert!(total - free < 1 << 20);
    }
    // A large allocation is one of its device alone.
    let free = |device: Device| {
        let (mut free, mut total) = (0, 0);
        device.select();
        ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
        free
    };
    let before = devices.map(free);
    devices[1].select();
    let large = allocate(1 << 20);
    assert_eq!(devices.map(free), [before[0], before[1] - (1 << 20), before[2]]);
    // Another device gives it back.
    devices[2].select();
    ok!(cuMemFree_v2(large));
    assert_eq!(devices.map(free), before);
    // Variables too are of each device.
    let variables = devices.map(|device| {
        let (mut address, mut bytes) = (0, 0);
        device.select();
        ok!(cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, device.module, c"own".as_ptr()));
        address
    });
    assert_eq!(
        (devices[1].run(variables[1], variables[1]), word(variables[0]), word(variables[1])),
        (0, 40, 41)
    );
    // Streams and events.
    let [streams, events] = [0, 1].map(|what| {
        devices.map(|device| {
            device.select();
            let mut event = null_mut();
            match what {
                0 => stream(1),
                _ => {
                    ok!(cuEventCreate(&raw mut event, 0));
                    event
                }
            }
        })
    });
    devices[0].select();
    assert_eq!(devices[0].launch(numbers[0], numbers[0], streams[1]), INVALID_HANDLE);
    ends!(INVALID_HANDLE, cuEventRecord(events[0], streams[1]));
    for i in 0..3 {
        // Neither needs the right context.
        assert_eq!(devices[i].launch(numbers[i], numbers[i], streams[i]), 0);
        ok!(cuEventRecord(events[i], streams[i]));
        ok!(cuStreamWaitEvent(streams[(i + 1) % 3], events[i], 0));
        ok!(cuEventSynchronize(events[i]));
    }
    let mut time = 0.0;
    ok!(cuEventElapsedTime(&raw mut time, events[1], events[1]));
    ends!(INVALID_HANDLE, cuEventElapsedTime(&raw mut time, events[0], events[1]));
    assert_eq!(numbers.map(word), [11, 21, 31]);
    // One device is reset; the others have what they had.
    ok!(cuDevicePrimaryCtxReset_v2(1));
    devices[0].select();
    let mut value = 0u32;
    ends!(INVALID_VALUE, cuMemcpyDtoH_v2((&raw mut value).cast(), numbers[1], 4));
    assert_eq!((word(numbers[0]), word(numbers[2])), (11, 31));
}

#[test]
#[ignore = "it needs several devices"]
fn reached() {
    let [first, second, third] = [0, 1, 2].map(Device::new);
    let [own, other] = [first.number(1), second.number(100)];
    let mut can = 0;
    ok!(cuDeviceCanAccessPeer(&raw mut can, 0, 1));
    assert_eq!(can, 1);
    // Copies need nothing.
    first.select();
    ok!(cuMemcpyPeer(own, first.context, other, second.context, 4));
    assert_eq!(word(own), 100);
    let stream = stream(0);
    ok!(cuMemsetD32Async(own, 7, 1, stream));
    ok!(cuMemcpyPeerAsync(other, second.context, own, first.context, 4, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(word(other), 7);
    ok!(cuMemcpyDtoD_v2(own, other, 4));
    // Peer access goes one way, from a context to another of another device.
    ends!(NOT_ENABLED, cuCtxDisablePeerAccess(second.context));
    ends!(INVALID_VALUE, cuCtxEnablePeerAccess(second.context, 1));
    ends!(INVALID_DEVICE, cuCtxEnablePeerAccess(first.context, 0));
    ends!(INVALID_CONTEXT, cuCtxEnablePeerAccess(null_mut(), 0));
    ok!(cuCtxEnablePeerAccess(second.context, 0));
    ends!(ALREADY_ENABLED, cuCtxEnablePeerAccess(second.context, 0));
    assert_eq!((first.run(own, other), word(own)), (0, 8));
    // Also what is allocated later.
    let later = second.number(50);
    assert_eq!((first.run(later, later), word(later)), (0, 51));
    // Memory of the host and managed memory are open to all.
    let (mut host, mut managed) = (null_mut(), 0);
    first.select();
    ok!(cuMemAllocHost_v2(&raw mut host, 4));
    ok!(cuMemAllocManaged(&raw mut managed, 4, 1));
    let host = host.addr() as u64;
    ok!(cuMemsetD32_v2(host, 5, 1));
    assert_eq!((second.run(managed, host), third.run(host, managed), word(host)), (0, 0, 7));
    // A pool is opened to devices; a stream may take memory of a pool of another device.
    let pool = pool(1);
    let mut piece = 0;
    ok!(cuMemAllocFromPoolAsync(&raw mut piece, 4, pool, stream));
    assert_eq!(attribute(ORDINAL, piece), 1);
    let access_of = |device: c_int| {
        let mut flags = 9;
        ok!(cuMemPoolGetAccess(&raw mut flags, pool, &[DEVICE, device]));
        flags
    };
    assert_eq!([0, 1, 2].map(access_of), [0, 3, 0]);
    ok!(cuMemPoolSetAccess(pool, &[DEVICE, 2, READ_AND_WRITE], 1));
    ends!(INVALID_VALUE, cuMemPoolSetAccess(pool, &[DEVICE, 1, 0], 1));
    ends!(INVALID_DEVICE, cuMemPoolSetAccess(pool, &[DEVICE, 3, READ_AND_WRITE], 1));
    assert_eq!([0, 1, 2].map(access_of), [0, 3, 3]);
    let third_own = third.number(60);
    assert_eq!((third.run(piece, third_own), word(piece)), (0, 61));
    ends!(INVALID_VALUE, cuDeviceSetMemPool(0, pool));
    ok!(cuDeviceSetMemPool(1, pool));
    // What is mapped is opened by address.
    let mapped = mapped(1);
    assert_eq!(attribute(ORDINAL, mapped), 1);
    let access_of = |device: c_int| {
        let mut flags = 9;
        ok!(cuMemGetAccess(&raw mut flags, &[DEVICE, device], mapped));
        flags
    };
    assert_eq!([0, 1, 2].map(access_of), [0, 3, 0]);
    ok!(cuMemSetAccess(mapped, GRANULE, &[DEVICE, 2, READ_AND_WRITE], 1));
    assert_eq!([0, 1, 2].map(access_of), [0, 3, 3]);
    assert_eq!((third.run(mapped, third_own), word(mapped)), (0, 61));
}

#[test]
fn what_is_not_opened_faults() {
    for (case, words) in [
        ("never", "`cudaDeviceEnablePeerAccess`"),
        ("disabled", "`cudaDeviceEnablePeerAccess`"),
        ("wrong way", "`cudaDeviceEnablePeerAccess`"),
        ("reset", "`cudaDeviceEnablePeerAccess`"),
        ("variable", "variable `own`"),
        ("pool", "`cudaMemPoolSetAccess`"),
        ("mapped", "`cuMemSetAccess`"),
    ] {
        let output = with_devices("not_reached", case);
        let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success() && out.contains("1 passed"), "{case}: {out}\n{errors}");
        let says =
            ["access to memory of another device", "memory of device 1", "let device 0 reach it", words];
        assert!(says.iter().all(|words| errors.contains(words)), "{case}: {errors}");
    }
}

#[test]
#[ignore = "it needs several devices"]
fn not_reached() {
    let [first, mut second] = [0, 1].map(Device::new);
    let [own, mut other] = [first.number(1), second.number(2)];
    let enable = |from: Device, to: Device| {
        from.select();
        ok!(cuCtxEnablePeerAccess(to.context, 0));
    };
    match std::env::var("CASE").unwrap().as_str() {
        "never" => {}
        "disabled" => {
            enable(first, second);
            assert_eq!(first.run(own, other), 0);
            ok!(cuCtxDisablePeerAccess(second.context));
        }
        "wrong way" => enable(second, first),
        "reset" => {
            enable(first, second);
            ok!(cuDevicePrimaryCtxReset_v2(1));
            second = Device::new(1);
            other = second.number(2);
        }
        "variable" => {
            let mut bytes = 0;
            second.select();
            ok!(cuModuleGetGlobal_v2(&raw mut other, &raw mut bytes, second.module, c"own".as_ptr()));
        }
        "pool" => {
            // Peer access does not open pools.
            enable(first, second);
            ok!(cuMemAllocFromPoolAsync(&raw mut other, 4, pool(1), null_mut()));
        }
        "mapped" => {
            enable(first, second);
            other = mapped(1);
        }
        other => panic!("{other}"),
    }
    assert_eq!(first.run(own, other), ILLEGAL_ADDRESS);
    // It broke one context alone.
    let number = second.number(3);
    assert_eq!((second.run(number, number), word(number)), (0, 4));
}
