//! The driver as a program uses it: through its C functions.

mod driver;

use std::ffi::{CStr, c_uint, c_void};
use std::ptr::null_mut;

use driver::*;

const INVALID_HANDLE: u32 = 400;
const ILLEGAL_ADDRESS: u32 = 700;

const PTX: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 counter = 5;
.visible .const .align 4 .u32 factor[2] = {3, 4};
.global .attribute(.managed) .u32 shared_with_host;

.visible .entry add(.param .u64 data, .param .u32 value) {
    .reg .b64 %p;  .reg .u32 %i, %v, %x;
    ld.param.u64 %p, [data];
    ld.param.u32 %v, [value];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %p, %i, 4, %p;
    ld.global.u32 %x, [%p];
    add.u32 %x, %x, %v;
    st.global.u32 [%p], %x;
    ret;
}
.visible .entry variables(.param .u64 data) {
    .reg .b64 %p;  .reg .u32 %x, %y;
    ld.param.u64 %p, [data];
    ld.global.u32 %x, [counter];
    ld.const.u32 %y, [factor + 4];
    st.global.u32 [%p], %x;
    st.global.u32 [%p + 4], %y;
    st.global.u32 [shared_with_host], %y;
    ret;
}
";

/// The primary context, current in this thread, and the module.
fn module() -> Handle {
    driver::start();
    driver::load(PTX)
}

fn allocate(bytes: usize) -> u64 {
    let address = driver::allocate(bytes);
    ok!(cuMemsetD32_v2(address, 0, bytes / 4));
    // Other streams do not wait for the default one.
    ok!(cuStreamSynchronize(null_mut()));
    address
}

/// Launches `add` with one block.
fn add(function: Handle, stream: Handle, threads: u32, address: u64, value: u32) -> u32 {
    let (mut address, mut value) = (address, value);
    let mut params = [(&raw mut address).cast::<c_void>(), (&raw mut value).cast()];
    // SAFETY: the parameters are those of the kernel.
    unsafe { cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, params.as_mut_ptr(), null_mut()) }
}

fn event() -> Handle {
    let mut event = null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    event
}

#[test]
fn kernels_variables_and_constants() {
    let module = module();
    let data = allocate(8);
    let (mut address, mut bytes) = (0, 0);
    ok!(cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, c"factor".as_ptr()));
    assert_eq!((bytes, word(address), word(address + 4)), (8, 3, 4));
    ok!(cuMemsetD32_v2(address + 4, 77, 1));
    let mut params = [(&raw const data).cast_mut().cast::<c_void>()];
    let variables = function(module, c"variables");
    ok!(cuLaunchKernel(variables, 1, 1, 1, 1, 1, 1, 0, null_mut(), params.as_mut_ptr(), null_mut()));
    assert_eq!((word(data), word(data + 4)), (5, 77));
    ok!(cuModuleGetGlobal_v2(&raw mut address, null_mut(), module, c"shared_with_host".as_ptr()));
    // SAFETY: managed memory has the same address here.
    assert_eq!(unsafe { std::ptr::with_exposed_provenance::<u32>(address as usize).read() }, 77);
    // All parameters in one buffer, as the `extra` argument has it.
    let (mut buffer, mut size) = ([0u8; 16], 12usize);
    buffer[..8].copy_from_slice(&data.to_le_bytes());
    buffer[8] = 9;
    let pointer = |n: usize| std::ptr::without_provenance_mut::<c_void>(n);
    let mut extra = [pointer(1), buffer.as_mut_ptr().cast(), pointer(2), (&raw mut size).cast(), null_mut()];
    let add = function(module, c"add");
    ok!(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), extra.as_mut_ptr()));
    assert_eq!(word(data), 14);
    ok!(cuMemFree_v2(data));
    ok!(cuModuleUnload(module));
    ends!(INVALID_HANDLE, cuModuleUnload(module));
}

#[test]
fn bad_arguments_are_refused() {
    let module = module();
    let add = function(module, c"add");
    let data = allocate(4096);
    let launch = |grid: u32, block: [u32; 3], shared: u32| {
        let (mut address, mut value) = (data, 1u32);
        let mut params = [(&raw mut address).cast::<c_void>(), (&raw mut value).cast()];
        let [x, y, z] = block;
        // SAFETY: the parameters are those of the kernel.
        unsafe {
            cuLaunchKernel(add, grid, 1, 1, x, y, z, shared, null_mut(), params.as_mut_ptr(), null_mut())
        }
    };
    for (grid, block, shared) in [
        (0, [1, 1, 1], 0),
        (1, [1025, 1, 1], 0),
        (1, [64, 64, 1], 0),
        (1, [1, 1, 65], 0),
        (1, [32, 1, 1], 1 << 20),
    ] {
        assert_eq!(launch(grid, block, shared), INVALID_VALUE, "{block:?} {shared}");
    }
    let mut function = null_mut();
    ends!(500, cuModuleGetFunction(&raw mut function, module, c"nothing".as_ptr()));
    ends!(INVALID_VALUE, cuMemFree_v2(data + 4));
    ends!(INVALID_VALUE, cuMemcpyHtoD_v2(data + 4000, [0u8; 200].as_ptr().cast(), 200));
    ends!(INVALID_VALUE, cuMemcpyDtoH_v2(null_mut(), data, 4));
    ends!(INVALID_VALUE, cuMemcpyHtoD_v2(0, data.to_le_bytes().as_ptr().cast(), 4));
    ends!(INVALID_VALUE, cuMemsetD32_v2(data + 2, 0, 1));
    ends!(INVALID_HANDLE, cuStreamSynchronize(std::ptr::without_provenance_mut(0x1234)));
    ends!(INVALID_VALUE, cuDeviceGetAttribute(null_mut(), 1, 0));
    let (mut value, mut module) = (0, null_mut());
    ends!(101, cuDeviceGetAttribute(&raw mut value, 1, 7));
    // NVIDIA's runtime asks for all that there are.
    (1..=161).for_each(|attribute| ok!(cuDeviceGetAttribute(&raw mut value, attribute, 0)));
    for none in [0, 162, 1 << 31, c_uint::MAX] {
        ends!(INVALID_VALUE, cuDeviceGetAttribute(&raw mut value, none, 0));
    }
    ends!(
        218,
        cuModuleLoadData(
            &raw mut module,
            c".version 7.0 .target sm_70 .entry k() { nonsense; }".as_ptr().cast()
        )
    );
    // A byte more than the 48 KiB that a kernel may declare.
    const TOO_MUCH: &CStr = c".version 7.0 .target sm_70 .entry k() { .shared .b8 much[49153]; ret; }";
    ends!(218, cuModuleLoadData(&raw mut module, TOO_MUCH.as_ptr().cast()));
    ends!(209, cuModuleLoadData(&raw mut module, c"\x7fELF and so on".as_ptr().cast()));
    ok!(cuMemFree_v2(data));
}

#[test]
fn memory_of_all_kinds() {
    let module = module();
    let kernel = function(module, c"add");
    let mut managed = 0;
    ok!(cuMemAllocManaged(&raw mut managed, 4096, 1));
    // SAFETY: managed memory has the same address here.
    let seen =
        || unsafe { std::ptr::with_exposed_provenance::<u32>(managed as usize).add(31).read_volatile() };
    assert_eq!(add(kernel, null_mut(), 32, managed, 7), 0);
    ok!(cuCtxSynchronize());
    assert_eq!(seen(), 7);
    let mut own = vec![1u32; 1000];
    ok!(cuMemHostRegister_v2(own.as_mut_ptr().cast(), 4000, 0));
    ends!(712, cuMemHostRegister_v2(own.as_mut_ptr().cast(), 4000, 0));
    assert_eq!(add(kernel, null_mut(), 1000, own.as_ptr().expose_provenance() as u64, 2), 0);
    ok!(cuCtxSynchronize());
    assert_eq!(own[999], 3);
    ok!(cuMemHostUnregister(own.as_mut_ptr().cast()));
    ends!(713, cuMemHostUnregister(own.as_mut_ptr().cast()));
    let (mut base, mut bytes) = (0, 0);
    ok!(cuMemGetAddressRange_v2(&raw mut base, &raw mut bytes, managed + 100));
    assert_eq!((base, bytes), (managed, 4096));
    // Rows of a pitched fill.
    let data = allocate(64);
    ok!(cuMemsetD2D8_v2(data, 16, 0xff, 4, 3));
    assert_eq!([word(data), word(data + 4), word(data + 32), word(data + 48)], [u32::MAX, 0, u32::MAX, 0]);
    ok!(cuMemcpy(managed, data, 8));
    ok!(cuMemFree_v2(managed));
    ok!(cuMemFree_v2(data));
    let mut pinned = null_mut();
    ok!(cuMemAllocHost_v2(&raw mut pinned, 64));
    assert_eq!(add(kernel, null_mut(), 16, pinned.expose_provenance() as u64, 5), 0);
    ok!(cuCtxSynchronize());
    // SAFETY: it has 16 words.
    assert_eq!(unsafe { pinned.cast::<u32>().add(15).read() }, 5);
}

#[test]
fn physical_memory_needs_no_context() {
    module();
    const BYTES: usize = 2 << 20;
    let properties: [u32; 8] = [1, 0, 1, 0, 0, 0, 0, 0];
    let (mut context, mut range, mut handle) = (null_mut(), 0, 0);
    ok!(cuCtxSetCurrent(null_mut()));
    ok!(cuMemCreate(&raw mut handle, BYTES, properties.as_ptr().cast(), 0));
    ok!(cuCtxCreate_v2(&raw mut context, 0, 0));
    ok!(cuMemAddressReserve(&raw mut range, BYTES, 0, 0, 0));
    ok!(cuMemMap(range, BYTES, 0, handle, 0));
    ok!(cuMemRelease(handle));
    ok!(cuCtxDestroy_v2(context));
    ok!(cuMemUnmap(range, BYTES));
    ok!(cuMemAddressFree(range, BYTES));
}

#[test]
fn virtual_memory_is_mapped_piece_by_piece() {
    let module = module();
    let kernel = function(module, c"add");
    const PIECE: usize = 2 << 20;
    // CUmemAllocationProp: pinned, no handles, on device 0, compressible.
    let properties: [u32; 8] = [1, 0, 1, 0, 0, 0, 1, 0];
    let (mut range, mut first, mut second) = (0, 0, 0);
    ok!(cuMemAddressReserve(&raw mut range, 2 * PIECE, 0, 0, 0));
    ok!(cuMemCreate(&raw mut first, PIECE, properties.as_ptr().cast(), 0));
    ok!(cuMemCreate(&raw mut second, PIECE, properties.as_ptr().cast(), 0));
    let mut made = [0u32; 8];
    ok!(cuMemGetAllocationPropertiesFromHandle(made.as_mut_ptr().cast(), first));
    assert_eq!(made, properties);
    let middle = range + PIECE as u64;
    ok!(cuMemMap(range, PIECE, 0, first, 0));
    ends!(INVALID_VALUE, cuMemMap(range, PIECE, 0, second, 0));
    ends!(INVALID_VALUE, cuMemsetD32_v2(middle - 64, 1, 32));
    ok!(cuMemMap(middle, PIECE, 0, second, 0));
    ok!(cuMemsetD32_v2(middle - 64, 1, 32));
    assert_eq!(add(kernel, null_mut(), 32, middle - 64, 1), 0);
    assert_eq!([word(middle - 64), word(middle + 60), word(middle + 64)], [2, 2, 0]);
    ends!(INVALID_VALUE, cuMemAddressFree(range, 2 * PIECE));
    ok!(cuMemUnmap(range, 2 * PIECE));
    ok!(cuMemMap(range, PIECE, 0, second, 0));
    assert_eq!(word(range + 60), 2);
    ok!(cuMemUnmap(range, PIECE));
    ok!(cuMemAddressFree(range, 2 * PIECE));
    ok!(cuMemRelease(first));
    ok!(cuMemRelease(second));
}

unsafe extern "C-unwind" fn sleep(_: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

#[test]
fn streams_keep_the_order_that_they_promise() {
    let module = module();
    let kernel = function(module, c"add");
    let (data, seen) = (allocate(400), allocate(4));
    let (blocking, free) = (stream(0), stream(1));
    let (start, end) = (event(), event());
    ok!(cuEventRecord(start, blocking));
    ok!(cuLaunchHostFunc(blocking, Some(sleep), null_mut()));
    assert_eq!(add(kernel, blocking, 100, data, 1), 0);
    ok!(cuEventRecord(end, blocking));
    // The default stream waits for the blocking one, so this copy sees what it did.
    assert_eq!(word(data), 1);
    let mut milliseconds = 0.0;
    ok!(cuEventSynchronize(end));
    ok!(cuEventElapsedTime(&raw mut milliseconds, start, end));
    assert!((30.0..10_000.0).contains(&milliseconds), "{milliseconds}");
    // The other one waits when it is told to.
    ok!(cuLaunchHostFunc(blocking, Some(sleep), null_mut()));
    assert_eq!(add(kernel, blocking, 100, data, 10), 0);
    ok!(cuEventRecord(end, blocking));
    ok!(cuStreamWaitEvent(free, end, 0));
    // A copy of pageable memory takes what it finds when it is asked for.
    let mut source = 5u32;
    ok!(cuMemcpyHtoDAsync_v2(seen, (&raw const source).cast(), 4, free));
    source = 6;
    ok!(cuStreamSynchronize(free));
    assert_eq!((word(seen), word(data), source), (5, 11, 6));
    ok!(cuStreamDestroy_v2(blocking));
    ok!(cuStreamDestroy_v2(free));
    ends!(INVALID_HANDLE, cuStreamSynchronize(free));
}

#[test]
fn a_thread_finds_a_kernel_without_a_context() {
    let module = module().expose_provenance();
    let find = move || {
        let mut function = null_mut();
        ok!(cuModuleGetFunction(
            &raw mut function,
            std::ptr::with_exposed_provenance_mut(module),
            c"add".as_ptr()
        ));
    };
    std::thread::spawn(find).join().unwrap();
}

#[test]
fn a_captured_graph_does_it_again() {
    let module = module();
    let kernel = function(module, c"add");
    let data = allocate(400);
    let (first, second) = (stream(1), stream(1));
    let (fork, join) = (event(), event());
    ok!(cuStreamBeginCapture_v2(first, 0));
    assert_eq!(add(kernel, first, 100, data, 1), 0);
    ok!(cuEventRecord(fork, first));
    ok!(cuStreamWaitEvent(second, fork, 0));
    assert_eq!(add(kernel, second, 100, data, 10), 0);
    ok!(cuEventRecord(join, second));
    ok!(cuStreamWaitEvent(first, join, 0));
    let mut memory = 1;
    ok!(cuMemAllocAsync(&raw mut memory, 0, first));
    assert_eq!(memory, 0);
    ok!(cuMemFreeAsync(memory, first));
    ok!(cuMemAllocAsync(&raw mut memory, 400, first));
    ok!(cuMemFreeAsync(memory, first));
    let (mut graph, mut exec, mut count) = (null_mut(), null_mut(), 0);
    ok!(cuStreamEndCapture(first, &raw mut graph));
    ok!(cuGraphGetNodes(graph, null_mut(), &raw mut count));
    assert_eq!((count, word(data)), (4, 0));
    // Launched by kernels, and giving memory back at each launch.
    ends!(INVALID_VALUE, cuGraphInstantiateWithFlags(&raw mut exec, graph, 4 | 1));
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    for _ in 0..3 {
        ok!(cuGraphLaunch(exec, second));
    }
    ok!(cuStreamSynchronize(second));
    assert_eq!(word(data + 396), 33);
    // Work of another stream that nobody waits for.
    ok!(cuStreamBeginCapture_v2(first, 0));
    ok!(cuEventRecord(fork, first));
    ok!(cuStreamWaitEvent(second, fork, 0));
    assert_eq!(add(kernel, second, 100, data, 1), 0);
    ends!(904, cuStreamEndCapture(first, &raw mut graph));
    // What cannot be recorded spoils it.
    ok!(cuStreamBeginCapture_v2(first, 0));
    ends!(900, cuStreamSynchronize(first));
    ends!(901, cuStreamEndCapture(first, &raw mut graph));
    ok!(cuGraphExecDestroy(exec));
    ends!(INVALID_VALUE, cuGraphLaunch(exec, second));
    ends!(INVALID_VALUE, cuGraphDestroy(graph));
}

#[test]
fn modules_are_linked() {
    module();
    let user = c".version 7.0
.target sm_70
.address_size 64
.extern .func (.param .u32 r) twice(.param .u32 x);
.visible .entry use(.param .u64 data) {
    .reg .b64 %p;  .reg .u32 %x;
    ld.param.u64 %p, [data];
    ld.global.u32 %x, [%p];
    { .param .u32 a, r; st.param.u32 [a], %x; call (r), twice, (a); ld.param.u32 %x, [r]; }
    st.global.u32 [%p], %x;
    ret;
}";
    let library = c".version 7.0
.target sm_70
.address_size 64
.visible .func (.param .u32 r) twice(.param .u32 x) {
    .reg .u32 %x;
    ld.param.u32 %x, [x];
    add.u32 %x, %x, %x;
    st.param.u32 [r], %x;
    ret;
}";
    let (mut linker, mut image, mut module) = (null_mut(), null_mut(), null_mut());
    ok!(cuLinkCreate_v2(0, null_mut(), null_mut(), &raw mut linker));
    for text in [user, library] {
        let data = text.as_ptr().cast_mut().cast();
        ok!(cuLinkAddData_v2(
            linker,
            1,
            data,
            text.count_bytes() + 1,
            c"part".as_ptr(),
            0,
            null_mut(),
            null_mut()
        ));
    }
    ok!(cuLinkComplete(linker, &raw mut image, null_mut()));
    ok!(cuModuleLoadData(&raw mut module, image));
    ok!(cuLinkDestroy(linker));
    let data = allocate(4);
    ok!(cuMemsetD32_v2(data, 21, 1));
    let mut params = [(&raw const data).cast_mut().cast::<c_void>()];
    let kernel = function(module, c"use");
    ok!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, null_mut(), params.as_mut_ptr(), null_mut()));
    assert_eq!(word(data), 42);
}

#[test]
fn a_fault_breaks_its_context_only() {
    let others = module();
    let mut context = null_mut();
    ok!(cuCtxCreate_v2(&raw mut context, 0, 0));
    let mut module = null_mut();
    ok!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()));
    let kernel = function(module, c"add");
    let data = allocate(400);
    assert_eq!(add(kernel, null_mut(), 101, data, 1), 0);
    ends!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    ends!(ILLEGAL_ADDRESS, cuMemFree_v2(data));
    assert_eq!(add(kernel, null_mut(), 1, data, 1), ILLEGAL_ADDRESS);
    ok!(cuCtxDestroy_v2(context));
    // The one below it is the current one again, and works.
    let data = allocate(400);
    assert_eq!(add(function(others, c"add"), null_mut(), 100, data, 1), 0);
    assert_eq!(word(data), 1);
    // A thread of its own has no context.
    let status = std::thread::spawn(move || {
        let mut address = 0;
        // SAFETY: there is a place for the address.
        unsafe { cuMemAlloc_v2(&raw mut address, 4) }
    });
    assert_eq!(status.join().unwrap(), INVALID_CONTEXT);
}

#[test]
fn memory_that_was_given_back_is_noticed() {
    module();
    let mut context = null_mut();
    ok!(cuCtxCreate_v2(&raw mut context, 0, 0));
    let mut module = null_mut();
    ok!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()));
    let data = allocate(400);
    ok!(cuMemFree_v2(data));
    ends!(INVALID_VALUE, cuMemFree_v2(data));
    assert_eq!(add(function(module, c"add"), null_mut(), 1, data, 1), 0);
    ends!(ILLEGAL_ADDRESS, cuCtxSynchronize());
    ok!(cuCtxDestroy_v2(context));
}
