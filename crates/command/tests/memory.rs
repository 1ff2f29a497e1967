//! Arrays that nobody touches take no memory.
#![cfg(target_os = "linux")]

mod common;

/// The most memory that a process has had, in bytes, while there is one.
fn peak(process: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? << 10)
}

#[test]
fn the_command_does_not_touch_large_arrays_of_zeros() {
    let path = common::root().join("examples/saxpy/saxpy.ptx");
    let words = ["--block", "32", "--arg", "32", "--arg", "2", "--arg", "f32[400M]", "--arg", "f32[400M]"];
    let mut command = common::ptxvm();
    let command = command.arg("run").arg(path).args(words).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut most = 0;
    let status = loop {
        // Touching them would take so long that it is seen.
        most = most.max(peak(child.id()).unwrap_or(0));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    };
    assert!(status.success());
    assert!(most < 256 << 20, "{most} bytes for arrays that nobody touches");
}
