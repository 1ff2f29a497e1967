//! A program in C on the CUDA runtime, as the dynamic linker finds it. These tests need `gcc`.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Where cargo puts the libraries that it builds for this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().expect("the folder of this test").to_owned()
}

/// Compiles the program for a major version of CUDA, and runs it with each list of arguments.
fn registered<const N: usize>(major: u32, runs: [&[&str]; N]) -> [Output; N] {
    let folder = tempfile::tempdir().expect("a folder");
    for (library, name) in [
        (format!("libptxvm_cudart{major}.so"), format!("libcudart.so.{major}")),
        ("libptxvm_libcuda.so".to_owned(), "libcuda.so.1".to_owned()),
    ] {
        std::os::unix::fs::symlink(libraries().join(library), folder.path().join(name)).expect("a link");
    }
    let program = folder.path().join("registered");
    let source = crate::root().join("crates/libcudart/tests/registered.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-prio-ctor-dtor", "-pthread"]);
    gcc.arg(format!("-DMAJOR={major}")).arg(source).arg("-o").arg(&program);
    gcc.arg("-L")
        .arg(folder.path())
        .arg(format!("-l:libcudart.so.{major}"))
        .args(["-ldl", "-Wl,--allow-shlib-undefined"]);
    let compiled = gcc.output().expect("gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    runs.map(|arguments| {
        let mut run = Command::new(&program);
        run.args(arguments).env("LD_LIBRARY_PATH", folder.path()).env("PTXVM_DEVICE", "sm_90");
        run.env("PTXVM_DEVICE_COUNT", if arguments == ["devices"] { "2" } else { "1" });
        run.output().expect("the program")
    })
}

/// Runs it, and asserts that everything is as it says.
pub fn works(major: u32) {
    let [output, last, devices] = registered(major, [&[], &["last"], &["devices"]]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{errors}", output.status);
    assert_eq!(output.stdout, b"done\n");
    // Calls from a destructor of the program, when the values of its thread are gone.
    assert!(
        last.status.success() && last.stdout == b"last calls\n",
        "{}",
        String::from_utf8_lossy(&last.stderr)
    );
    let of_devices = String::from_utf8_lossy(&devices.stderr);
    assert!(devices.status.success() && devices.stdout == b"two devices\n", "{of_devices}");
    assert!(of_devices.contains("memory of device 1: `cudaDeviceEnablePeerAccess`"), "{of_devices}");
    // The fault of its last kernel is reported.
    assert!(errors.contains("scale"), "{errors}");
    // So is where the memory is from: the call of the program, not that of the runtime.
    assert!(errors.contains("called by registered+0x"), "{errors}");
}
