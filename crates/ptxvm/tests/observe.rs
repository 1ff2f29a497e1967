//! What a program needs to watch launches is in `ptxvm::observe`: an observer of every event, written with names from there alone.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ptxvm::observe::{
    AccessEvent, AccessKind, AsyncEvent, BarrierArrival, BarrierRelease, BarrierWait, BlockAccess,
    CopyGroupEvent, DeviceCall, EnterEvent, ExitEvent, FenceEvent, LaunchInProgress, LaunchObserver,
    MbarrierEvent, ObserverHandle, OperationEvent, Space, TensorMemoryEvent, WarpEvent, WarpKind,
};
use ptxvm::{Device, Module};

/// The words that events begin with, in order.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn note(&mut self, event: &dyn Debug) {
        let text = format!("{event:?}");
        self.0.push(text.split([' ', '{']).next().unwrap_or_default().to_owned());
    }
}

impl LaunchObserver for Log {
    fn begin(&mut self, launch: &LaunchInProgress) {
        self.note(launch);
    }
    fn wants_block_access(&self, _: AccessKind, space: Space) -> bool {
        space == Space::Global
    }
    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        self.note(access);
        ControlFlow::Continue(())
    }
    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        self.note(access);
        ControlFlow::Continue([0; 16])
    }
    fn barrier_arrive(&mut self, arrival: &BarrierArrival) -> ControlFlow<()> {
        self.note(arrival);
        ControlFlow::Continue(())
    }
    fn barrier_wait(&mut self, wait: &BarrierWait) {
        self.note(wait);
    }
    fn barrier_release(&mut self, release: &BarrierRelease) -> ControlFlow<()> {
        self.note(release);
        ControlFlow::Continue(())
    }
    fn fence(&mut self, fence: &FenceEvent) {
        self.note(fence);
    }
    fn wants_warp(&self, _: WarpKind, _: bool) -> bool {
        true
    }
    fn warp(&mut self, warp: &WarpEvent) {
        self.note(warp);
    }
    fn copy_group(&mut self, group: &CopyGroupEvent) {
        self.note(group);
    }
    fn async_step(&mut self, step: &AsyncEvent) {
        self.note(step);
    }
    fn tensor_memory(&mut self, access: &TensorMemoryEvent) {
        self.note(access);
    }
    fn mbarrier(&mut self, mbarrier: &MbarrierEvent) {
        self.note(mbarrier);
    }
    fn exit(&mut self, exit: &ExitEvent) {
        self.note(exit);
    }
    fn device_call(&mut self, call: &DeviceCall) {
        self.note(call);
    }
    fn wants_operations(&self) -> bool {
        true
    }
    fn operation(&mut self, operation: &OperationEvent) {
        self.note(operation);
    }
    fn enter(&mut self, function: &EnterEvent) {
        self.note(function);
    }
    fn fork(&self, _: &LaunchInProgress) -> Option<ObserverHandle> {
        None
    }
}

#[test]
fn every_event_has_a_name_in_observe() {
    let module = Module::from_ptx(
        ".version 7.0  .target sm_70  .address_size 64
         .visible .entry turn(.param .u64 data) {
             .reg .b32 %i, %v;  .reg .b64 %p, %o;
             .shared .align 4 .b8 tile[128];
             mov.u32 %i, %tid.x;
             ld.param.u64 %p, [data];
             mad.wide.u32 %o, %i, 4, %p;
             ld.global.u32 %v, [%o];
             shfl.sync.bfly.b32 %v, %v, 1, 31, 0xffffffff;
             bar.sync 0;
             membar.gl;
             st.global.u32 [%o], %v;
             ret;
         }",
    )
    .expect("it is right");
    let device = Device::new();
    let data = device.array(&(0..32u32).collect::<Vec<_>>()).expect("there is memory");
    let log = Arc::new(Mutex::new(Log::default()));
    let loaded = device.load(&module).expect("it loads");
    loaded.launch("turn").block(32).arg(&data).observe(log.clone()).run().expect("it ends");
    assert_eq!(data.read().expect("it is there")[..4], [1, 0, 3, 2]);
    let log = log.lock().expect("nothing panicked");
    let count = |name: &str| log.0.iter().filter(|event| *event == name).count();
    assert_eq!(log.0[0], "Launch");
    for name in ["EnterEvent", "WarpEvent", "BarrierArrival", "BarrierRelease", "FenceEvent", "ExitEvent"] {
        assert_eq!(count(name), 1, "{name}: {:?}", log.0);
    }
    assert_eq!(count("BlockAccess"), 2, "{:?}", log.0);
    assert!(count("OperationEvent") > 3, "{:?}", log.0);
}

/// Handles can be printed wherever a program prints what it has.
#[test]
fn handles_are_printed() {
    let device = Device::new();
    let data = device.array(&[1u32, 2]).expect("there is memory");
    assert_eq!(format!("{device:?}"), "Device { .. }");
    assert_eq!(format!("{data:?}"), format!("Array {{ address: {}, len: 2 }}", data.address()));
}
