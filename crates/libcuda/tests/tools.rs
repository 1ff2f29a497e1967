//! What `PTXVM_TOOL` makes the driver say of a program.

mod driver;

use std::process::{Command, Stdio};
use std::ptr::null_mut;

use driver::{cuCtxSynchronize, cuLaunchKernel, cuMemAlloc_v2};

unsafe extern "C" {
    fn cuMemFree_v2(address: u64) -> u32;
    fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32;
}

/// All threads write one word, which comes from shared memory that nobody wrote.
const PTX: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry racy(.param .u64 out) {
    .reg .b32 %t, %x;
    .reg .b64 %o;
    .shared .align 4 .b32 word;
    ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x;
    ld.shared.u32 %x, [word];
    add.u32 %x, %x, %t;
    st.global.u32 [%o], %x;
    ret;
}
";

/// Launches the kernel twice with one allocation, and frees one of three others. It is a test like any other, and a program for the next ones.
#[test]
fn a_program_with_faults_of_its_own() {
    driver::start();
    let module = driver::load(PTX);
    let function = driver::function(module, c"racy");
    // SAFETY: every pointer is good for its call.
    unsafe {
        let mut places = [0; 4];
        for (place, bytes) in places.iter_mut().zip([64, 1000, 1000, 3000]) {
            assert_eq!(cuMemAlloc_v2(place, bytes), 0);
        }
        for _ in 0..2 {
            let mut params = [(&raw mut places[0]).cast()];
            let params = params.as_mut_ptr();
            assert_eq!(cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, null_mut(), params, null_mut()), 0);
            assert_eq!(cuCtxSynchronize(), 0);
        }
        assert_eq!(cuMemFree_v2(places[3]), 0);
    }
}

/// The same, and it ends its context. A program for the last test.
#[test]
#[ignore = "it ends the context that others use"]
fn a_program_that_resets_its_device() {
    a_program_with_faults_of_its_own();
    // SAFETY: it takes no pointers.
    unsafe { assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0) };
}

/// What the program says on stderr with these tools.
fn stderr(program: &str, tools: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", program, "--include-ignored"]).env("PTXVM_TOOL", tools).stdout(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn tools_say_what_they_find_in_launches_once() {
    let said = stderr("a_program_with_faults_of_its_own", "racecheck,initcheck");
    for code in ["error[race-write-write]", "error[uninitialized-output]"] {
        assert_eq!(said.matches(code).count(), 1, "{code}: {said}");
    }
    assert!(said.contains("threads (0,0,0) and (1,0,0) of block (0,0,0)"), "{said}");
    assert!(!said.contains("leak"), "{said}");
    assert_eq!(stderr("a_program_with_faults_of_its_own", "synccheck"), "");
    assert!(stderr("a_program_with_faults_of_its_own", "raceczech").contains("there is no tool `raceczech`"));
}

#[test]
fn memory_that_is_not_given_back_is_told_when_the_process_or_its_context_ends() {
    for program in ["a_program_with_faults_of_its_own", "a_program_that_resets_its_device"] {
        let said = stderr(program, "leakcheck");
        let expected = "ptxvm: error[driver-leak]: 3 allocations of 2064 bytes, never given back: cuMemAlloc";
        assert_eq!(said.matches("driver-leak").count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
