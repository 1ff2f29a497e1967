//! Lead a launch turn by turn: what its threads are doing, their registers and memory, and back in time.
//!
//! [`Launch::debug`](crate::Launch::debug) asks a [`Debugger`] before each *turn*: one instruction, executed by the
//! lanes of a warp that are at it. The crate `ptxvm-debugger` has breakpoints, steps and two user interfaces on top.
//!
//! ```
//! use ptxvm::debug::{Debugger, Next, Stop};
//! use ptxvm::{Device, Fault, Module};
//!
//! /// Counts the turns, goes back once, and then lets the launch end.
//! #[derive(Default)]
//! struct Twice { turns: u64, was_back: bool }
//!
//! impl Debugger for Twice {
//!     fn turn(&mut self, _: &mut Stop<'_, '_>) -> Next {
//!         self.turns += 1;
//!         Next::Go
//!     }
//!     fn fault(&mut self, _: &mut Stop<'_, '_>, _: &Fault) -> Next {
//!         Next::Go
//!     }
//!     fn end(&mut self, stop: &mut Stop<'_, '_>) -> Next {
//!         assert_eq!(stop.time(), 3);
//!         if std::mem::replace(&mut self.was_back, true) { Next::Go } else { Next::Back(1) }
//!     }
//! }
//!
//! # fn main() -> Result<(), ptxvm::Error> {
//! let module = Module::from_ptx(
//!     ".version 7.0  .target sm_70  .address_size 64
//!      .visible .entry add(.param .u64 data) {
//!          .reg .b64 %p;
//!          ld.param.u64 %p, [data];
//!          red.global.add.u32 [%p], 1;
//!          ret;
//!      }",
//! )?;
//! let device = Device::new();
//! let data = device.array(&[40u32])?;
//! let mut twice = Twice::default();
//! device.load(&module)?.launch("add").block(2).arg(&data).debug(&mut twice)?;
//! assert_eq!(data.read()?, [42]);
//! assert_eq!(twice.turns, 6);
//! # Ok(())
//! # }
//! ```

pub use check::module::{
    Body, FuncId, Function, Instruction, Label, LabelId, Node, Operand, RegId, Register, Symbol, VarId,
    Variable,
};
pub use diag::Span;
pub use isa::{Access, Kind, Space, SpecialRegister, Type};
pub use machine::Launch as LaunchInProgress;
pub use reference::{Call, Debugger, Divergence, Next, Status, Stop, Turn};
