//! What blocks on several host threads tell each other by the decoupled look-back of CUB (`tests/lookback`): a flag and a value in one
//! word of 2 to 16 bytes, or values beside flags. Every run is compared with the host.
//!
//! `cargo xtask client thrust` runs the algorithms of Thrust themselves, for which it needs NVIDIA's compiler.

use std::fmt::Debug;

use ptxvm::{Device, Element, Module};

const BLOCKS: usize = 48;
const ELEMENTS: usize = BLOCKS * 128;
const RUNS: usize = 200;
/// Enough for the look-back: a state is up to 16 bytes and two values of 16 for each block and for 32 in front.
const STATES: usize = (BLOCKS + 32) * 64;

/// Runs a kernel on two host threads. It has the keys if there are any, the elements, and their sums.
fn compare<T: Element + PartialEq + Debug>(kernel: &str, keys: Option<&[u32]>, elements: &[T], sums: &[T]) {
    let device = Device::new();
    let module = Module::from_ptx(include_str!("../../../tests/lookback/lookback.ptx")).unwrap();
    let module = device.load(&module).unwrap();
    let [elements, written] = [elements, elements].map(|elements| device.array(elements).unwrap());
    let keys = keys.map(|keys| device.array(keys).unwrap());
    let states = device.zeros::<u8>(STATES).unwrap();
    for run in 0..RUNS {
        // What earlier runs left must not be taken for what this one needs.
        states.fill(0xff).unwrap();
        written.copy_from(&elements).unwrap();
        let init = module.launch(&format!("{kernel}_init")).grid(1).block(128);
        init.arg(&states).arg(BLOCKS as u32).run().unwrap();
        let launch = module.launch(kernel).grid(BLOCKS as u32).block(128);
        let launch = keys.iter().fold(launch, |launch, keys| launch.arg(keys));
        let launch = launch.arg(&elements).arg(&written).arg(&states).arg(BLOCKS as u32);
        launch.configure(|config| config.threads = Some(2)).run().unwrap();
        assert_eq!(written.read().unwrap(), sums, "{kernel}, run {run}");
    }
}

/// Numbers without a pattern.
fn elements() -> impl Iterator<Item = u64> {
    (0..ELEMENTS as u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Sums up to each element.
fn sums(elements: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    elements.scan(0, |sum: &mut u64, element| {
        *sum = sum.wrapping_add(element);
        Some(*sum)
    })
}

macro_rules! sums {
    ($($name:ident: $T:ty;)*) => { $(
        #[test]
        fn $name() {
            let narrow = |values: &mut dyn Iterator<Item = u64>| values.map(|value| value as $T).collect::<Vec<_>>();
            compare(stringify!($name), None, &narrow(&mut elements()), &narrow(&mut sums(elements())));
        }
    )* };
}

sums! {
    sums_u8: u8;
    sums_u16: u16;
    sums_u32: u32;
    sums_u64: u64;
}

#[test]
fn sums_wide() {
    let pairs = |values: &mut dyn Iterator<Item = u64>| {
        values.flat_map(|value| [value, value << 1]).collect::<Vec<_>>()
    };
    compare("sums_wide", None, &pairs(&mut elements()), &pairs(&mut sums(elements())));
}

macro_rules! by_key {
    ($($name:ident: $T:ty;)*) => { $(
        #[test]
        fn $name() {
            // Runs of equal keys are longer than two blocks.
            let keys: Vec<u32> = (0..ELEMENTS as u32).map(|i| i / 300).collect();
            let elements: Vec<$T> = elements().map(|value| value as $T).collect();
            let mut sums = elements.clone();
            for i in 1..ELEMENTS {
                if keys[i] == keys[i - 1] {
                    sums[i] = sums[i].wrapping_add(sums[i - 1]);
                }
            }
            compare(stringify!($name), Some(&keys), &elements, &sums);
        }
    )* };
}

by_key! {
    by_key_u32: u32;
    by_key_u64: u64;
}
