//! A launch needs little memory beyond its arrays.
#![cfg(target_os = "linux")]

use std::path::Path;

use ptxvm::{Arg, Device, Module};

/// Elements of the arrays.
const COUNT: usize = 16 << 20;
/// Beyond the arrays, for everything that this process needs: in bytes.
const LIMIT: usize = 64 << 20;

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn example(name: &str) -> Module {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    Module::from_file(folder.join(name).join(format!("{name}.ptx"))).unwrap()
}

// One test, since a process has one peak.
#[test]
fn launches_stay_within_64_mib_beyond_their_arrays() {
    let blocks = (COUNT / 256) as u32;
    {
        let device = Device::new();
        let bytes = device.zeros::<u8>(COUNT).unwrap();
        bytes.write(&vec![7; COUNT >> 4]).unwrap();
        let bins = device.zeros::<u32>(256).unwrap();
        let loaded = device.load(&example("histogram")).unwrap();
        let launch = loaded.launch("histogram").grid(blocks / 16).block(256).arg(&bytes);
        launch.arg(Arg::from(COUNT as u32)).arg(&bins).run().unwrap();
        assert_eq!(bins.read().unwrap().iter().sum::<u32>(), COUNT as u32);
        assert!(peak() < COUNT + LIMIT, "{} bytes for a histogram of {COUNT}", peak());
    }
    let device = Device::new();
    let (x, y) = (device.zeros::<f32>(COUNT).unwrap(), device.zeros::<f32>(COUNT).unwrap());
    let launch = device.load(&example("saxpy")).unwrap();
    let launch = launch.launch("saxpy").grid(blocks).block(256).arg(Arg::from(COUNT as u32)).arg(0.5f32);
    launch.arg(&x).arg(&y).run().unwrap();
    let arrays = 2 * COUNT * size_of::<f32>();
    // The host gives memory to what is written: that of `x` stays zeros that nobody has written.
    assert!(peak() > arrays / 2 && peak() < arrays + LIMIT, "{} bytes for arrays of {arrays}", peak());
}
