//! Lowered code of ptxvm: control-flow graph, layout order, liveness, and operations on slots.
//!
//! [`lower`] turns a checked module into a [`Program`], which every engine reads. The order of basic blocks encodes
//! the reconvergence rule (see [`Function::blocks`]), and each basic block lists its live-in slots.
//!
//! Operations work on slots only: PTX registers, literals and special registers all have one (`op.rs`). Each says once
//! what it does with its operands (`operands.rs`), which may also be those of an engine: `simple.rs`, `warp.rs`, and
//! with accesses to memory `memory/`. Lanes wait only at the start of a basic block (`lower/control.rs`), so engines need
//! liveness only there. An instruction that no engine executes becomes [`OpKind::Unsupported`], and a kernel that can
//! reach one (`reach.rs`) is not launched.
//!
//! `lower/mod.rs` builds the basic blocks, orders them (`order.rs`), runs the passes that [`Options`] selects
//! (`passes/mod.rs`), and gives values their slots (`liveness.rs`). [`Function::place_of`] finds a PTX register in every
//! basic block, and [`Function::operations_of`] the operations of an instruction.
//!
//! Narrowest tests: `tests/passes.rs` and `ptxvm`'s `kernels` leave out each pass. Kernels of `tests/run`: lowering
//! and order `low_bytes`, `negated_predicates`, `divergence_nested`; prologue `team_of_blocks`, `fresh_registers`.
#![forbid(unsafe_code)]

mod emit;
mod function;
mod liveness;
mod lower;
mod memory;
mod op;
mod operands;
mod order;
mod passes;
mod reach;
mod semantics;
mod shuffle;
mod simple;
mod tensor_memory;
mod visit;
mod warp;

use check::module::{FuncId, Module};

pub use function::*;
pub use liveness::{MOST_BETWEEN, MOST_JOINED};
pub use memory::*;
pub use op::*;
pub use operands::MapOperands;
pub use passes::Options;
pub use reach::Unsupported;
pub use semantics::{Order, Scope, Semantics};
pub use shuffle::{ShufflePattern, shuffle_source};
pub use simple::SimpleOp;
pub use tensor_memory::{TensorMemoryKind, TensorMemoryOp};
pub use visit::{Touch, accesses, orders_memory};
pub use warp::WarpOp;

/// A lowered module.
#[derive(Clone, Debug)]
pub struct Program {
    /// The module that it was lowered from: names, parameters, variables, launch bounds.
    pub module: Module,
    /// Lowered bodies by [`FuncId`]; `None` for declarations.
    pub functions: Vec<Option<Function>>,
}

impl Program {
    /// The kernels, in source order.
    pub fn kernels(&self) -> impl Iterator<Item = (FuncId, &check::module::Function)> {
        let functions = self.module.functions.iter().enumerate();
        functions.filter(|(_, f)| f.is_entry && f.body.is_some()).map(|(i, f)| (FuncId(i as u32), f))
    }

    /// The kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<FuncId> {
        self.kernels().find(|(_, f)| f.name == name).map(|(id, _)| id)
    }
}

/// Lowers a checked module. Lowering never fails: what no engine executes becomes [`OpKind::Unsupported`].
pub fn lower(module: Module, options: &Options) -> Program {
    let ids = (0..module.functions.len()).map(|i| FuncId(i as u32));
    let functions = ids.map(|id| lower::function(&module, id, options)).collect();
    Program { module, functions }
}
