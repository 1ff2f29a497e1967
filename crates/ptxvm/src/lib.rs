//! Runs, checks and tests NVIDIA PTX kernels on a CPU, bit for bit.
//!
//! ```
//! use ptxvm::{Device, Module};
//!
//! # fn main() -> Result<(), ptxvm::Error> {
//! let module = Module::from_ptx(
//!     ".version 7.0  .target sm_70  .address_size 64
//!      .visible .entry scale(.param .u64 data, .param .f32 factor) {
//!          .reg .b32 %i;  .reg .b64 %p, %o;  .reg .f32 %x, %f;
//!          mov.u32        %i, %tid.x;
//!          ld.param.u64   %p, [data];
//!          ld.param.f32   %f, [factor];
//!          mad.wide.u32   %o, %i, 4, %p;
//!          ld.global.f32  %x, [%o];
//!          mul.rn.f32     %x, %x, %f;
//!          st.global.f32  [%o], %x;
//!          ret;
//!      }",
//! )?;
//! let device = Device::new();
//! let data = device.array(&[1.0f32, 2.0, 3.0, 4.0])?;
//! device.load(&module)?.launch("scale").block(4).arg(&data).arg(10.0f32).run()?;
//! assert_eq!(data.read()?, [10.0, 20.0, 30.0, 40.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Module`] is PTX that passed the checker. A [`Device`] has memory ([`Array`], [`Buffer`]) and modules loaded on
//! it ([`Loaded`]). A [`Launch`] runs a kernel and returns what it did, or an [`Error`] that names the instruction,
//! the thread and the array:
//!
//! ```
//! # use ptxvm::{Device, Error, Module};
//! # let module = Module::from_ptx(
//! #     ".version 7.0 .target sm_70 .address_size 64
//! #      .visible .entry set(.param .u64 data) {
//! #          .reg .b64 %p;
//! #          ld.param.u64 %p, [data];
//! #          st.global.u32 [%p], 7;
//! #          ret; }")?;
//! # let device = Device::new();
//! let data = device.array(&[0u32])?;
//! let address = data.address();
//! drop(data);
//! let error = device.load(&module)?.launch("set").arg(address).run().unwrap_err();
//! assert!(matches!(&error, Error::Fault { fault, .. } if fault.kind == ptxvm::FaultKind::UseAfterFree));
//! println!("{error}"); // shows the source line with a caret under the store
//! # Ok::<(), Error>(())
//! ```
//!
//! A [`Stream`] does work in order, concurrently with the thread that enqueues it; [`Event`]s order streams:
//!
//! ```
//! # use ptxvm::{Device, Module};
//! # let module = Module::from_ptx(
//! #     ".version 7.0 .target sm_70 .address_size 64
//! #      .visible .entry add(.param .u64 data) {
//! #          .reg .b64 %p;  .reg .u32 %v;
//! #          ld.param.u64 %p, [data];
//! #          red.global.add.u32 [%p], 1;
//! #          ret; }")?;
//! # let device = Device::new();
//! let data = device.array(&[40u32])?;
//! let loaded = device.load(&module)?;
//! let (first, second) = (device.stream(), device.stream());
//! let report = first.launch(loaded.launch("add").arg(&data));
//! second.wait(&first.record());
//! let again = second.launch(loaded.launch("add").arg(&data));
//! assert_eq!(report.wait()?.thread_instructions + again.wait()?.thread_instructions, 6);
//! assert_eq!(data.read()?, [42]);
//! # Ok::<(), ptxvm::Error>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod chip;
pub mod debug;
mod device;
mod element;
mod error;
mod filter;
mod finding;
#[doc(hidden)]
pub mod json;
mod launch;
mod loaded;
mod memory;
mod module;
mod name;
pub mod observe;
#[doc(hidden)]
pub mod observed;
mod opaque;
mod original;
#[doc(hidden)]
pub mod process_report;
mod stream;
mod texture;

pub use check::Options;
pub use check::module::{Function, Param};
pub use chip::{Chip, Occupancy, OccupancyLimit};
pub use device::Device;
pub use diag::{Code, Color, Diagnostic, Severity, SourceFile, nearest};
pub use element::Element;
pub use error::{ArgumentError, Error, Named, Stopped};
pub use filter::{KernelPatterns, LaunchFilter, Suppressions};
pub use finding::{Located, PlaceInSource, Places, by_cause};
pub use half::{bf16, f16};
pub use ir::Options as LowerOptions;
pub use isa::texture::Geometry;
pub use launch::{Arg, Engine, Extents, Launch, describe, signature};
pub use loaded::Loaded;
pub use machine::{
    Accesses, Counts, Fault, FaultKind, HostPath, KernelAttributes, LaunchConfig, LaunchObserver,
    LaunchReport, MOST_CLUSTER_BLOCKS, NativeCode, ObjectError, ObserverHandle, Output, Place, Profile,
    caught, report_briefly,
};
pub use memory::{Array, Buffer, Slice};
pub use module::Module;
pub use name::{demangle, short_name, short_param};
pub use original::{OriginalPlace, OriginalPlaces};
pub use sem::tensormap as tensor_map;
pub use sem::texture::{AddressMode, Channel, Filter, ImageDescriptor, ImageError, Sampler, TexelFormat};
pub use stream::{Event, Pending, Stream};
pub use texture::{Image, Region, SamplerState, Surface, Texture};
pub use tools::{Checker, Finding, FindingKind, GlobalMemory, Site, Tool, Tools, is_padding};
