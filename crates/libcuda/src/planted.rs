//! Panics that the tests below plant behind the driver's entry points: a launch, a copy, a fill, a host function, a graph. Each must
//! become an error that stays, a counted fault, and a line on stderr.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ops::ControlFlow;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

use ptxvm::observe::AccessEvent;
use ptxvm::{Launch, LaunchObserver};

use crate::context::Context;
use crate::lock;
use crate::operation::Operation;

/// The contexts whose copies, fills and launches panic.
static CONTEXTS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether an observer that panics watches the thread's next launch.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Panics below an operation, if its context is planted. Below a launch, the panic comes when a thread stores.
pub fn panic_below(operation: &Operation, context: &Context) {
    if !lock(&CONTEXTS).contains(&context.id) {
        return;
    }
    match operation {
        Operation::Kernel(_) => WATCHED.set(true),
        Operation::Copy(_) | Operation::Fill(_) => panic!("planted below an operation"),
        _ => {}
    }
}

/// Adds the observer that panics, if that is planted.
pub fn watch(launch: Launch) -> Launch {
    match WATCHED.take() {
        true => launch.observe(Arc::new(Mutex::new(Panics))),
        false => launch,
    }
}

struct Panics;

impl LaunchObserver for Panics {
    fn access(&mut self, _: &AccessEvent) -> ControlFlow<()> {
        panic!("planted in an observer")
    }
}

const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 at) {
    .reg .u64 %p;
    ld.param.u64 %p, [at];
    st.global.u32 [%p], 7;
    ret;
}
";

#[path = "../tests/driver/functions.rs"]
#[allow(dead_code, reason = "tests call the others")]
mod functions;

use functions::*;

/// A context with a module, a stream and memory.
struct Place {
    context: Handle,
    function: Handle,
    stream: Handle,
    memory: u64,
}

impl Place {
    fn new() -> Place {
        let mut place = Place { context: null_mut(), function: null_mut(), stream: null_mut(), memory: 0 };
        let mut module = null_mut();
        // SAFETY: every pointer is valid for its call.
        unsafe {
            assert_eq!(cuInit(0), 0);
            assert_eq!(cuCtxCreate_v2(&raw mut place.context, 0, 0), 0);
            assert_eq!(cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()), 0);
            assert_eq!(cuModuleGetFunction(&raw mut place.function, module, c"store".as_ptr()), 0);
            assert_eq!(cuStreamCreate(&raw mut place.stream, 1), 0);
            assert_eq!(cuMemAlloc_v2(&raw mut place.memory, 64), 0);
        }
        place
    }

    fn launch(&self, blocks: u32) -> u32 {
        let mut at = self.memory;
        let mut params = [(&raw mut at).cast::<c_void>()];
        let params = params.as_mut_ptr();
        // SAFETY: every pointer is valid for its call.
        unsafe { cuLaunchKernel(self.function, blocks, 1, 1, 32, 1, 1, 0, self.stream, params, null_mut()) }
    }
}

extern "C-unwind" fn panicking_function(_: *mut c_void) {
    panic!("planted in a host function")
}

extern "C-unwind" fn panicking_callback(_: Handle, _: u32, _: *mut c_void) {
    panic!("planted in a callback")
}

/// The name of an entry point, and a use of it.
type Door = (&'static str, fn(&Place) -> u32);

/// The uses. Each either queues the operation without an error, or returns one after it ran.
const DOORS: [Door; 8] = [
    ("launch", |place| place.launch(1)),
    ("large launch", |place| place.launch(1000)),
    // SAFETY: every pointer is valid for its call.
    ("copy", |place| unsafe { cuMemcpyDtoDAsync_v2(place.memory, place.memory + 32, 32, place.stream) }),
    // SAFETY: every pointer is valid for its call.
    ("copy that is waited for", |place| unsafe {
        cuMemcpyHtoD_v2(place.memory, [0u8; 64].as_ptr().cast(), 64)
    }),
    // SAFETY: every pointer is valid for its call.
    ("fill", |place| unsafe { cuMemsetD32Async(place.memory, 1, 16, place.stream) }),
    // SAFETY: every pointer is valid for its call.
    ("host function", |place| unsafe {
        cuLaunchHostFunc(place.stream, Some(panicking_function), null_mut())
    }),
    // SAFETY: every pointer is valid for its call.
    ("callback", |place| unsafe {
        cuStreamAddCallback(place.stream, Some(panicking_callback), null_mut(), 0)
    }),
    // SAFETY: every pointer is valid for its call.
    ("graph", |place| unsafe {
        let (mut graph, mut exec) = (null_mut(), null_mut());
        assert_eq!(cuStreamBeginCapture_v2(place.stream, 1), 0);
        assert_eq!(place.launch(1), 0);
        assert_eq!(cuStreamEndCapture(place.stream, &raw mut graph), 0);
        assert_eq!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0), 0);
        cuGraphLaunch(exec, place.stream)
    }),
];

/// An ordinary test, and also the program that the next test runs.
#[test]
fn a_panic_below_any_door_is_an_error_that_stays() {
    const LAUNCH_FAILED: u32 = 719;
    let other = Place::new();
    for (name, door) in DOORS {
        let place = Place::new();
        CONTEXTS.lock().unwrap().push(crate::context::top().unwrap().id);
        let (status, mut word) = (door(&place), 0u32);
        let waits = name == "copy that is waited for";
        assert_eq!(status, if waits { LAUNCH_FAILED } else { 0 }, "{name}");
        // SAFETY: every pointer is valid for its call.
        unsafe {
            assert_eq!(cuStreamSynchronize(place.stream), LAUNCH_FAILED, "{name}");
            assert_eq!(cuCtxSynchronize(), LAUNCH_FAILED, "{name}");
            assert_eq!(cuMemcpyDtoH_v2((&raw mut word).cast(), place.memory, 4), LAUNCH_FAILED, "{name}");
            // Another context still works.
            assert_eq!(cuCtxSetCurrent(other.context), 0);
            assert_eq!(other.launch(1), 0);
            assert_eq!(cuCtxSynchronize(), 0);
            assert_eq!(cuMemcpyDtoH_v2((&raw mut word).cast(), other.memory, 4), 0);
            assert_eq!(word, 7);
        }
    }
}

#[test]
fn panics_are_counted_and_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "planted::a_panic_below_any_door_is_an_error_that_stays", "--nocapture"]);
    command.env("PTXVM_REPORT", folder.path().join("report.json")).env_remove("RUST_BACKTRACE");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("panicked")).collect();
    let planted = lines.iter().filter(|line| line.starts_with("ptxvm: ") && line.contains(": planted "));
    assert_eq!((lines.len(), planted.count()), (DOORS.len(), DOORS.len()), "{said}");
    assert!(lines.iter().all(|line| line.contains("planted.rs:")), "{said}");
    let report = std::fs::read(folder.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["faults"].as_array().unwrap().len(), DOORS.len(), "{report}");
}
