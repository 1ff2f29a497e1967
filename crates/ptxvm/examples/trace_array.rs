//! A tool of one's own: who accesses which elements of one array, in the order of the launch.
//!
//! `cargo run -p ptxvm --example trace_array`

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ptxvm::observe::{AccessEvent, LaunchObserver};
use ptxvm::{Device, Module};

/// Prints the accesses to an array that begins at an address.
struct Trace {
    start: u64,
    bytes: u64,
}

impl LaunchObserver for Trace {
    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        for lane in access.lanes {
            if let Some(offset) = lane.address.checked_sub(self.start).filter(|&offset| offset < self.bytes) {
                println!("block {:?} thread {}: {:?} [{}]", lane.block, lane.thread, access.kind, offset / 4);
            }
        }
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), ptxvm::Error> {
    let module = Module::from_file("examples/block_sum/block_sum.ptx")?;
    let device = Device::new();
    let (data, sums) = (device.array(&[1.0f32; 64])?, device.zeros::<f32>(2)?);
    let trace = Trace { start: sums.address(), bytes: 8 };
    let launch = device.load(&module)?.launch("block_sum").grid(2).block(32);
    launch.arg(&data).arg(64u32).arg(&sums).observe(Arc::new(Mutex::new(trace))).run()?;
    println!("{:?}", sums.read()?);
    Ok(())
}
