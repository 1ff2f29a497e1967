//! Functions of C, ranks of this process, and ranks that are processes.
#![allow(dead_code, reason = "each test calls some of them")]

use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

// The tests need their shared objects.
use {ptxvm_libcuda as _, ptxvm_nccl as _};

pub type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

pub fn library(name: &str) -> &'static libloading::Library {
    static LIBRARIES: OnceLock<[libloading::Library; 2]> = OnceLock::new();
    let [driver, nccl] = LIBRARIES.get_or_init(|| {
        ["libptxvm_libcuda.so", "libptxvm_nccl.so"].map(|name| {
            let path = std::env::current_exe().expect("a path").with_file_name(name);
            // SAFETY: loading them has no effects that could harm this process.
            unsafe { libloading::Library::new(path) }.expect("the test built it")
        })
    });
    if name.starts_with("nccl") { nccl } else { driver }
}

/// Calls a function of the driver or of NCCL, whose arguments are integers and pointers.
pub fn call(name: &str, arguments: &[u64]) -> u32 {
    let mut all = [0; 8];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f, g, h] = all;
    // SAFETY: the function is of C, and the caller passes what it takes. More arguments do no harm.
    unsafe {
        let function = library(name).get::<Function>(name.as_bytes()).expect("a function");
        function(a, b, c, d, e, f, g, h)
    }
}

pub fn good(name: &str, arguments: &[u64]) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

pub fn place<T>(place: &mut T) -> u64 {
    (&raw mut *place).expose_provenance() as u64
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Id(pub [u8; 128]);

pub fn new_id() -> Id {
    let mut id = Id([0; 128]);
    good("ncclGetUniqueId", &[place(&mut id)]);
    id
}

/// `ncclCommInitRank`, which takes its id by value.
pub fn init(ranks: usize, id: Id, rank: usize) -> Result<u64, u32> {
    type Init = unsafe extern "C" fn(*mut u64, i32, Id, i32) -> u32;
    let mut comm = 0u64;
    // SAFETY: the function has this type.
    let status = unsafe {
        let init = library("nccl").get::<Init>(b"ncclCommInitRank").expect("a function");
        init(&raw mut comm, ranks as i32, id, rank as i32)
    };
    if status == 0 { Ok(comm) } else { Err(status) }
}

/// Makes the primary context of a device current.
pub fn select(device: usize) {
    let mut context = 0u64;
    good("cuInit", &[0]);
    good("cuDevicePrimaryCtxRetain", &[place(&mut context), device as u64]);
    good("cuCtxSetCurrent", &[context]);
}

pub fn stream() -> u64 {
    let mut stream = 0u64;
    good("cuStreamCreate", &[place(&mut stream), 1]);
    stream
}

/// Memory of the current device with these bytes.
pub fn memory(bytes: &[u8]) -> u64 {
    let mut address = 0u64;
    good("cuMemAlloc_v2", &[place(&mut address), bytes.len().max(1) as u64]);
    good("cuMemcpyHtoD_v2", &[address, bytes.as_ptr().expose_provenance() as u64, bytes.len() as u64]);
    address
}

pub fn read(address: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0u8; bytes];
    good("cuMemcpyDtoH_v2", &[data.as_mut_ptr().expose_provenance() as u64, address, bytes as u64]);
    data
}

/// Runs an ignored test of this file in another process, with so many devices.
pub fn command(test: &str, devices: usize, case: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("CASE", case);
    for variable in ["CUDA_VISIBLE_DEVICES", "PTXVM_DEVICE", "PTXVM_TOOL", "PTXVM_REPORT"] {
        command.env_remove(variable);
    }
    command.env("PTXVM_DEVICE_COUNT", devices.to_string());
    command
}

pub fn passed(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
    errors.into_owned()
}

/// Starts the two ranks of a test as processes, and waits for them.
pub fn two_processes(test: &str, cases: [&str; 2]) -> [Output; 2] {
    let id = new_id().0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let start = |rank: usize| {
        let mut command = command(test, 1, cases[rank]);
        command.env("RANK", rank.to_string()).env("ID", &id).env("PTXVM_NCCL_TIMEOUT", "5");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    [start(0), start(1)].map(|child| child.wait_with_output().unwrap())
}

/// The rank of this process, with its communicator.
pub fn of_environment() -> (u64, usize) {
    let (rank, text) = (std::env::var("RANK").unwrap().parse().unwrap(), std::env::var("ID").unwrap());
    let id = std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
    select(0);
    (init(2, Id(id), rank).unwrap(), rank)
}
