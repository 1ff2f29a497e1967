//! Launches leave nothing behind. On its own, since it measures the memory of the process.
#![cfg(target_os = "linux")]

use ptxvm::{Device, Module, Output};

const KERNEL: &str = "\
.version 7.8
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .u64 %p;
    .shared .b32 s[16];
    ld.param.u64 %p, [out];
    red.global.add.u32 [%p], 1;
    ret;
}
";

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// `cargo test --release -p ptxvm --test leaks -- --ignored` does it a million times.
fn launches_leak_nothing(count: u32) {
    let device = Device::new();
    let module = device.load(&Module::from_ptx(KERNEL).unwrap()).unwrap();
    let out = device.zeros::<u32>(1).unwrap();
    let output = Output::buffer();
    let launch = |i: u32| {
        let launch = module.launch("kernel").arg(&out).output(output.clone());
        launch.configure(|config| config.cooperative = i.is_multiple_of(2)).run().unwrap();
    };
    (0..1000).for_each(launch);
    let before = resident();
    (0..count).for_each(launch);
    let grown = resident().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more after {count} launches");
}

#[test]
fn some_launches_leak_nothing() {
    launches_leak_nothing(20_000);
}

#[test]
#[ignore = "a million launches"]
fn a_million_launches_leak_nothing() {
    launches_leak_nothing(1_000_000);
}
