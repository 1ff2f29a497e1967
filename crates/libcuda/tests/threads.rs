//! A host that has no more threads.

mod driver;

use std::process::Command;
use std::ptr::null_mut;

use driver::*;

/// Blocks of which each leaves a number, many enough for all threads of the host; waited for, and asked about until they are done. It is a test
/// like any other, and a program for the next one.
#[test]
fn all_blocks_leave_their_numbers() {
    const PTX: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry number(.param .u64 at) {
    .reg .u64 %p; .reg .u32 %i, %n, %t;
    ld.param.u64 %p, [at];
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    mad.wide.u32 %p, %i, 4, %p;
    st.global.u32 [%p], %i;
    ret;
}
";
    if std::env::var_os("NO_THREADS").is_some() {
        std::thread::Builder::new().spawn(|| ()).expect_err("the limit holds");
    }
    start();
    let number = function(load(PTX), c"number");
    let (mut at, mut numbers) = (0, vec![0u32; 1 << 20]);
    // SAFETY: every pointer is good for its call.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&raw mut at, 8 << 20), 0);
        let launch = |mut at: u64| {
            let mut params = [(&raw mut at).cast()];
            let params = params.as_mut_ptr();
            assert_eq!(cuLaunchKernel(number, 4096, 1, 1, 256, 1, 1, 0, null_mut(), params, null_mut()), 0);
        };
        launch(at);
        assert_eq!(cuCtxSynchronize(), 0);
        launch(at + (4 << 20));
        while cuStreamQuery(null_mut()) == NOT_READY {
            std::thread::yield_now();
        }
        for half in [at, at + (4 << 20)] {
            assert_eq!(cuMemcpyDtoH_v2(numbers.as_mut_ptr().cast(), half, 4 << 20), 0);
            assert!(numbers.iter().zip(0..).all(|(&number, i)| number == i));
        }
    }
}

/// Where the host has no more threads, the one that asks does all the work.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_undone_for_want_of_threads() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;

    let mut command = Command::new("sh");
    // The limit is that of a user, and root has none.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    // Shells call it by different letters.
    command.args(["-c", "ulimit -u 1 2>/dev/null || ulimit -p 1; exec \"$@\"", "sh"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "all_blocks_leave_their_numbers"]);
    let output = command.current_dir("/").env("NO_THREADS", "1").output().unwrap();
    let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}\n{said}");
}
