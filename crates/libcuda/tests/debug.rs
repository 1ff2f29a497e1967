//! `PTXVM_DEBUG`: the driver connects with a debugger in another process, which leads its launches.

mod driver;

use std::process::Command;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

use debugger::remote::{Host, VARIABLE};
use debugger::terminal::Console;
use driver::{cuCtxSynchronize, cuLaunchKernel};

const PTX: &std::ffi::CStr = cr#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry other() { ret; }
.visible .entry count()
{
    .reg .u32 %x;
    mov.u32 %x, %tid.x;
    add.u32 %x, %x, 100;
    ret;
}
"#;

/// Launches kernels. It is a test like any other, and a program for the next one.
#[test]
fn launches_end_well() {
    driver::start();
    let module = driver::load(PTX);
    for name in [c"count", c"other", c"count", c"other", c"count"] {
        let function = driver::function(module, name);
        // SAFETY: every pointer is good for its call.
        unsafe {
            assert_eq!(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null_mut(), null_mut(), null_mut()), 0);
            assert_eq!(cuCtxSynchronize(), 0, "{name:?}");
        }
    }
}

/// A user who types some lines.
struct Script {
    lines: std::vec::IntoIter<&'static str>,
    shown: Arc<Mutex<String>>,
}

impl Console for Script {
    fn read(&mut self, _: &str) -> Option<String> {
        self.lines.next().map(str::to_owned)
    }

    fn write(&mut self, text: &str) {
        *self.shown.lock().unwrap() += text;
    }
}

/// What a user sees who types these lines while the program runs with these variables.
fn debugged(variables: &[(&str, &str)], lines: Vec<&'static str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new(folder.path()).unwrap();
    let path = host.path().to_owned();
    let shown = Arc::<Mutex<String>>::default();
    let mut script = Script { lines: lines.into_iter(), shown: Arc::clone(&shown) };
    std::thread::spawn(move || host.lead(&mut script, false));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "launches_end_well", "--nocapture"]).env(VARIABLE, path);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    shown.lock().unwrap().clone()
}

#[test]
fn the_launches_of_a_program_are_led() {
    // The first launch stops at its beginning, later ones at breakpoints.
    let lines = vec![
        "break 10 if lane == 3",
        "continue",
        "print %x",
        "step",
        "print %x",
        "continue",
        "continue",
        "detach",
    ];
    let shown = debugged(&[("PTXVM_KERNEL_NAME", "kernel_name=count")], lines);
    assert!(shown.contains("kernel `count`") && !shown.contains("kernel `other`"), "{shown}");
    assert!(shown.contains("%x = 3\n") && shown.contains("%x = 103\n"), "{shown}");
    let stops = shown.matches("breakpoint 1\n").count();
    assert_eq!(stops, 2, "in the first launch, and in the second, where the user leaves: {shown}");
}

#[test]
fn the_launch_that_is_wanted_is_led() {
    let variables =
        [("PTXVM_KERNEL_NAME", "kernel_name=count"), ("PTXVM_LAUNCH_SKIP", "2"), ("PTXVM_LAUNCH_COUNT", "1")];
    let shown = debugged(&variables, vec!["step", "goto 0", "print time", "continue", "continue", "quit"]);
    assert_eq!(shown.matches("kernel `count`").count(), 1, "{shown}");
    assert!(shown.contains("time = 0") && shown.contains("the kernel has ended"), "{shown}");
}

#[test]
fn a_debugger_that_is_not_there_is_named() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "launches_end_well", "--nocapture"]).env(VARIABLE, "/no/such/socket");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("no debugger at `/no/such/socket`"), "{text}");
}
