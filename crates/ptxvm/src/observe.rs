//! Watch a launch: the observer, its events, and every type that they name.
//!
//! [`Launch::observe`](crate::Launch::observe) attaches a [`LaunchObserver`]. Each of its methods has a default, so that an observer
//! implements only what it needs:
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::{Arc, Mutex};
//!
//! use ptxvm::observe::{AccessEvent, LaunchObserver};
//! use ptxvm::{Device, Module};
//!
//! #[derive(Default)]
//! struct Stores(usize);
//!
//! impl LaunchObserver for Stores {
//!     fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
//!         self.0 += usize::from(access.kind.writes()) * access.lanes.len();
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! # fn main() -> Result<(), ptxvm::Error> {
//! let module = Module::from_ptx(
//!     ".version 7.0  .target sm_70  .address_size 64
//!      .visible .entry clear(.param .u64 data) {
//!          .reg .b32 %i;  .reg .b64 %p, %o;
//!          mov.u32        %i, %tid.x;
//!          ld.param.u64   %p, [data];
//!          mad.wide.u32   %o, %i, 4, %p;
//!          st.global.u32  [%o], 0;
//!          ret;
//!      }",
//! )?;
//! let device = Device::new();
//! let data = device.array(&[1u32; 4])?;
//! let stores = Arc::new(Mutex::new(Stores::default()));
//! device.load(&module)?.launch("clear").block(4).arg(&data).observe(stores.clone()).run()?;
//! assert_eq!(stores.lock().unwrap().0, 4);
//! # Ok(())
//! # }
//! ```

pub use diag::Span;
pub use isa::Space;
pub use machine::{
    AccessEvent, AccessKind, AsyncEvent, AsyncStep, BarrierArrival, BarrierRelease, BarrierWait, BlockAccess,
    BlockAddresses, Completion, Compute, CopyGroup, CopyGroupEvent, DeviceCall, DeviceFunction, EnterEvent,
    ExitEvent, FenceEvent, Guard, InstructionEvent, LaneAccess, LaneSet, Launch as LaunchInProgress,
    LaunchObserver, MbarrierEvent, MbarrierOp, ObserverHandle, OperandValue, OperationEvent, OperationKind,
    Order, ReadValues, Scope, Semantics, TensorCells, TensorMemoryAccess, TensorMemoryEvent, Values,
    WarpEvent, WarpKind, WarpLane,
};
pub use tools::{
    Counters, FirstNonFinite, Flow, NamedValue, NonFinite, Origin, Passage, RequestCounts, Source,
    WatchedWrite, WriteWatch,
};
