//! What clients rely on beyond the manual's words, or ask for in ways of their own; each is named.

mod driver;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null_mut;

use driver::*;

/// A kernel that has some values at a time.
const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 data)
{
    .reg .b64 %a, %v<8>;
    ld.param.u64 %a, [data];
    ld.global.u64 %v0, [%a];
    ld.global.u64 %v1, [%a+8];
    ld.global.u64 %v2, [%a+16];
    ld.global.u64 %v3, [%a+24];
    ld.global.u64 %v4, [%a+32];
loop:
    add.u64 %v0, %v0, %v1;
    add.u64 %v1, %v1, %v2;
    add.u64 %v2, %v2, %v3;
    add.u64 %v3, %v3, %v4;
    .reg .pred %p;
    setp.lt.u64 %p, %v0, 100;
    @%p bra loop;
    st.global.u64 [%a], %v0;
    st.global.u64 [%a+8], %v1;
    st.global.u64 [%a+16], %v2;
    st.global.u64 [%a+24], %v3;
    ret;
}
";

/// numba pops its context before it gives back what belongs to it.
#[test]
fn what_belongs_to_a_context_can_be_given_back_without_a_current_one() {
    start();
    let (mut data, mut host, mut module) = (0, null_mut(), null_mut());
    let mut registered = vec![0u8; 4096];
    let pointer = registered.as_mut_ptr().cast();
    ok!(cuMemAlloc_v2(&raw mut data, 64));
    ok!(cuMemAllocHost_v2(&raw mut host, 64));
    ok!(cuMemHostRegister_v2(pointer, 4096, 0));
    ok!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()));
    ok!(cuCtxSetCurrent(null_mut()));
    // What is nobody's cannot.
    ends!(INVALID_CONTEXT, cuMemFree_v2(data + (1 << 40)));
    ok!(cuMemFree_v2(data));
    ok!(cuMemFreeHost(host));
    ok!(cuMemHostUnregister(pointer));
    ok!(cuModuleUnload(module));
    start();
    ends!(INVALID_VALUE, cuMemFree_v2(data));
}

/// Dr.Jit records events and launches in streams of its own while no context is current.
#[test]
fn a_stream_of_ones_own_needs_no_current_context() {
    start();
    let (mut data, mut module, mut function) = (0, null_mut(), null_mut());
    let (mut library, mut kernel, mut stream, mut event) = (null_mut(), null_mut(), null_mut(), null_mut());
    ok!(cuMemAlloc_v2(&raw mut data, 64));
    ok!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()));
    ok!(cuModuleGetFunction(&raw mut function, module, c"sum".as_ptr()));
    let none: Handle = null_mut();
    ok!(cuLibraryLoadData(
        &raw mut library,
        PTX.as_ptr().cast(),
        none.cast(),
        none.cast(),
        0,
        none.cast(),
        none.cast(),
        0
    ));
    ok!(cuLibraryGetKernel(&raw mut kernel, library, c"sum".as_ptr()));
    ok!(cuStreamCreate(&raw mut stream, 1));
    ok!(cuEventCreate(&raw mut event, 0));
    ok!(cuCtxSetCurrent(null_mut()));

    unsafe extern "C-unwind" fn set(place: *mut c_void) {
        // SAFETY: the test passes a number.
        unsafe { place.cast::<u32>().write(7) };
    }
    let (mut read, mut called) = ([0u64; 8], 0u32);
    let mut params = [(&raw mut data).cast::<c_void>()];
    ok!(cuMemsetD8Async(data, 1, 64, stream));
    for kernel in [function, kernel] {
        ok!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params.as_mut_ptr(), null_mut()));
    }
    ok!(cuEventRecord(event, stream));
    ok!(cuStreamWaitEvent(stream, event, 0));
    ok!(cuLaunchHostFunc(stream, Some(set), (&raw mut called).cast()));
    ok!(cuMemcpyDtoHAsync_v2(read.as_mut_ptr().cast(), data, 64, stream));
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamQuery(stream));
    ok!(cuEventSynchronize(event));
    ok!(cuEventQuery(event));
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    assert_eq!((read[0], read[3], called), (4 * ONES, 3 * ONES, 7));
    let mut more = 0;
    ok!(cuMemAllocAsync(&raw mut more, 64, stream));
    ok!(cuMemFreeAsync(more, stream));
    // A default stream is one of the current context.
    ends!(INVALID_CONTEXT, cuStreamSynchronize(null_mut()));
    ends!(INVALID_CONTEXT, cuEventRecord(event, null_mut()));
    ends!(INVALID_CONTEXT, cuMemsetD8Async(data, 1, 64, null_mut()));
}

/// A host function sees no context. Whoever waits for the stream may be the one that calls it, and has its contexts afterwards.
#[test]
fn a_host_function_takes_no_context_away() {
    unsafe extern "C-unwind" fn look(place: *mut c_void) {
        // SAFETY: the test passes a handle.
        unsafe { assert_eq!(cuCtxGetCurrent(place.cast()), 0) };
    }
    let (context, stream) = (start(), stream(1));
    for _ in 0..200 {
        let mut seen = context;
        ok!(cuCtxPushCurrent_v2(context));
        ok!(cuCtxPushCurrent_v2(context));
        ok!(cuLaunchHostFunc(stream, Some(look), (&raw mut seen).cast()));
        ok!(cuStreamSynchronize(stream));
        assert!(seen.is_null());
        let mut popped = [null_mut(); 2];
        ok!(cuCtxPopCurrent_v2(&raw mut popped[0]));
        ok!(cuCtxPopCurrent_v2(&raw mut popped[1]));
        ok!(cuCtxGetCurrent(&raw mut seen));
        assert_eq!((popped, seen), ([context; 2], context));
    }
}

fn registers(module: Handle) -> c_int {
    const NUM_REGS: c_uint = 4;
    let mut count = 0;
    ok!(cuFuncGetAttribute(&raw mut count, NUM_REGS, function(module, c"sum")));
    count
}

/// numba's `max_registers` is an option of the linker; others pass it when they load.
#[test]
fn kernels_have_no_more_registers_than_the_compiler_was_told() {
    const MAX_REGISTERS: c_uint = 0;
    start();
    let (mut module, mut linker, mut image) = (null_mut(), null_mut(), null_mut());
    ok!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()));
    let free = registers(module);
    assert!(free > 16, "{free}");
    let (mut options, mut values) = ([MAX_REGISTERS], [std::ptr::without_provenance_mut::<c_void>(16)]);
    ok!(cuModuleLoadDataEx(
        &raw mut module,
        PTX.as_ptr().cast(),
        1,
        options.as_mut_ptr(),
        values.as_mut_ptr()
    ));
    assert_eq!(registers(module), 16);
    ok!(cuLinkCreate_v2(1, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut linker));
    let (data, bytes) = (PTX.as_ptr().cast_mut().cast(), PTX.count_bytes() + 1);
    ok!(cuLinkAddData_v2(linker, 1, data, bytes, c"sum".as_ptr(), 0, null_mut(), null_mut()));
    ok!(cuLinkComplete(linker, &raw mut image, null_mut()));
    ok!(cuModuleLoadData(&raw mut module, image));
    ok!(cuLinkDestroy(linker));
    assert_eq!(registers(module), 16);
}

/// tinygrad emits `sin.approx.f64` and its kin, which ptxas rejects: only a driver that was told so takes them.
#[test]
fn a_lenient_driver_takes_what_ptxas_rejects() {
    const INVALID_PTX: u32 = 218;
    let lenient = std::env::var_os("PTXVM_LENIENT").is_some();
    let text = c".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry f(.param .u64 p)
        { .reg .b64 %a; .reg .f64 %x; ld.param.u64 %a, [p]; ld.global.f64 %x, [%a]; sin.approx.f64 %x, %x; st.global.f64 [%a], %x; ret; }";
    let mut module = null_mut();
    start();
    ends!(if lenient { 0 } else { INVALID_PTX }, cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    if !lenient {
        // The environment is read once: another process does the same.
        let mut same = std::process::Command::new(std::env::current_exe().unwrap());
        same.args(["--exact", "a_lenient_driver_takes_what_ptxas_rejects"]).env("PTXVM_LENIENT", "1");
        assert!(same.output().unwrap().status.success());
    }
}

/// With `PTXVM_HOST_ACCESS=1` the host reads and writes device memory at its device address; without it they are apart.
#[test]
fn the_host_reaches_device_memory_where_it_wants_to() {
    let has_access = std::env::var_os("PTXVM_HOST_ACCESS").is_some();
    start();
    let address = allocate(64);
    ok!(cuMemsetD32_v2(address, 7, 16));
    ok!(cuCtxSynchronize());
    let mut kind = 0u32;
    ok!(cuPointerGetAttribute((&raw mut kind).cast(), 2, address));
    assert_eq!(kind, 2, "it is device memory");
    if !has_access {
        assert!(address >= 1 << 48, "a host has no such address: {address:#x}");
        let mut same = std::process::Command::new(std::env::current_exe().unwrap());
        same.args(["--exact", "the_host_reaches_device_memory_where_it_wants_to"])
            .env("PTXVM_HOST_ACCESS", "1");
        let output = same.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let host = std::ptr::with_exposed_provenance_mut::<u32>(address as usize);
    // SAFETY: the driver promises it, and nothing else uses this memory.
    unsafe {
        assert_eq!(*host.add(15), 7);
        *host = 9;
    }
    assert_eq!(word(address), 9);
    ok!(cuMemFree_v2(address));
}

/// With `PTXVM_PAD_VARIABLES=1` a kernel may read behind a variable, up to a multiple of 256 bytes: zeros. XLA's kernels do.
/// They read behind arrays, too: up to a multiple of 16 bytes.
#[test]
fn variables_have_zeros_behind_them_where_that_is_wanted() {
    // Faults break the context, which the tests of a process share.
    for value in ["0", "1", "late"] {
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "read_behind_a_variable", "--ignored"]);
        match value {
            "late" => program.env_remove("PTXVM_PAD_VARIABLES"),
            value => program.env("PTXVM_PAD_VARIABLES", value),
        };
        let output = program.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
#[ignore = "a program that a test runs"]
fn read_behind_a_variable() {
    const PTX: &CStr = c".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n\
        .visible .entry k(.param .u64 out, .param .u32 offset)\n{\n\
        .reg .b32 %v, %o; .reg .b64 %p, %t;\n\
        ld.param.u64 %p, [out]; ld.param.u32 %o, [offset];\n\
        mov.u64 %t, table; cvt.u64.u32 %p, %o; add.u64 %t, %t, %p; ld.global.b32 %v, [%t];\n\
        ld.param.u64 %p, [out]; st.global.b32 [%p], %v; ret;\n}\n";
    start();
    if std::env::var_os("PTXVM_PAD_VARIABLES").is_none() {
        // As ptxvm's part of JAX does, when JAX has started the driver.
        // SAFETY: no other thread of this process reads its environment now.
        unsafe { std::env::set_var("PTXVM_PAD_VARIABLES", "1") };
    }
    let is_padded = std::env::var("PTXVM_PAD_VARIABLES").unwrap() == "1";
    let (kernel, address) = (function(load(PTX), c"k"), allocate(4));
    let read = |mut offset: u32| {
        let (mut out, mut word) = (address, 0u32);
        let mut arguments = [(&raw mut out).cast::<c_void>(), (&raw mut offset).cast()];
        ok!(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, null_mut(), arguments.as_mut_ptr(), null_mut()));
        // SAFETY: a place for the word.
        let status = unsafe { cuMemcpyDtoH_v2((&raw mut word).cast(), address, 4) };
        (status == 0).then_some(word)
    };
    let (inside, value, behind) = if is_padded { (252, 0, 256) } else { (4, 0x0807_0605, 8) };
    let (mut array, mut bytes) = (0, 0);
    ok!(cuMemAllocAsync(&raw mut array, 12, null_mut()));
    ok!(cuMemGetAddressRange_v2(null_mut(), &raw mut bytes, array));
    assert_eq!(bytes, if is_padded { 16 } else { 12 });
    assert_eq!((read(inside), read(behind)), (Some(value), None));
}
