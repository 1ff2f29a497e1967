//! What all launches of a kernel have in common. It is computed once and kept with the loaded module.
//!
//! This includes the functions that the kernel reaches, why it is refused, the layout of its parameters and of shared
//! memory, and what an engine keeps with it. Everything else that differs between launches (parameters, extents, special
//! registers) is looked up at run time. So a launch of a small kernel costs about 2 microseconds (benches/RESULTS.md,
//! "Launches that own what they need").

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use check::module::{FuncId, Function};
use ir::{SlotKind, Width};

use crate::builtin::Builtin;
use crate::error::LaunchError;
use crate::shared::{RESERVED_SHARED_BYTES, SharedLayout, SharedVariable, append};
use crate::undefined::undefined;

/// The most threads of a block.
pub(crate) const BLOCK_LIMIT: u64 = 1024;

/// The resources of a kernel (`cuFuncGetAttribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// 32-bit registers of a thread: the largest number that is live at the start of a basic block of the kernel or of
    /// a function that it reaches. ptxas would report another number.
    pub registers: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u64,
    /// Bytes of local memory of a thread: those of the kernel, without its callees.
    pub local_bytes: u64,
    /// Bytes of `.const` memory of the module.
    pub const_bytes: u64,
    /// Bytes of the kernel's parameters.
    pub param_bytes: u64,
    /// The most threads of a block (`.maxntid`, `.reqntid`, and the limit of every GPU).
    pub max_threads: u32,
}

impl KernelAttributes {
    /// An estimate of the registers that a compiler would use, which needs some more for addresses.
    pub fn estimated_registers(&self) -> u32 {
        (self.registers + 8).clamp(16, 255)
    }
}

/// A kernel of a loaded module.
pub struct Kernel {
    /// Its function.
    pub entry: FuncId,
    /// By `FuncId`: whether the kernel reaches the function. Includes the kernel itself.
    pub reached: Vec<bool>,
    /// Why it cannot be launched.
    pub refused: Option<LaunchError>,
    /// Offset of each parameter.
    pub param_offsets: Vec<u64>,
    /// Bytes of all parameters.
    pub param_bytes: u64,
    /// It may call `vprintf`.
    pub prints: bool,
    /// It may wait at the barrier of the grid.
    pub waits_for_grid: bool,
    /// The shared variables of the functions that it can reach.
    shared: Vec<SharedVariable>,
    /// Bytes of shared memory that are reserved for the system.
    reserved: u64,
    /// The layout of the last launch, with its bytes of dynamic shared memory.
    layout: Mutex<Option<(u64, Arc<SharedLayout>)>>,
    /// What engines keep with it.
    kept: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl Kernel {
    pub(crate) fn new(program: &ir::Program, entry: FuncId) -> Kernel {
        let module = &program.module;
        let reached = program.reachable(entry);
        let missing = undefined(module, &reached);
        let refused = if missing.is_empty() {
            program.unsupported(&reached).map(LaunchError::Unsupported)
        } else {
            Some(LaunchError::Undefined(missing))
        };
        let (layout, param_bytes) = param_layout(&module.functions[entry.index()]);
        let functions = || reached.iter().zip(&program.functions).filter(|(reached, _)| **reached);
        let names = reached.iter().zip(&module.functions).filter(|(reached, _)| **reached);
        let names = || names.clone().map(|(_, function)| function.name.as_str());
        let calls = |builtin| names().any(|name| Builtin::of(name) == Some(builtin));
        Kernel {
            entry,
            refused,
            param_offsets: layout.iter().map(|&(offset, _)| offset).collect(),
            param_bytes,
            prints: calls(Builtin::Printf),
            waits_for_grid: calls(Builtin::GridSynchronize),
            shared: SharedVariable::used(module, &reached),
            reserved: match functions().filter_map(|(_, f)| f.as_ref()).any(asks_for_reserved_memory) {
                true => RESERVED_SHARED_BYTES,
                false => 0,
            },
            layout: Mutex::default(),
            kept: Mutex::default(),
            reached,
        }
    }

    /// The layout of shared memory with `dynamic` bytes of dynamic shared memory.
    pub fn shared_layout(&self, dynamic: u64) -> Arc<SharedLayout> {
        let mut last = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((bytes, layout)) if *bytes == dynamic => Arc::clone(layout),
            _ => {
                let layout = Arc::new(SharedLayout::new(&self.shared, dynamic, self.reserved));
                *last = Some((dynamic, Arc::clone(&layout)));
                layout
            }
        }
    }

    /// What an engine keeps with the kernel: one value of each type, made on first use.
    pub fn kept<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().find_map(|kept| Arc::clone(kept).downcast().ok()) {
            return found;
        }
        let made = Arc::new(make());
        kept.push(Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        made
    }

    /// Its attributes in a module with `const_bytes` bytes of `.const` memory.
    pub fn attributes(&self, program: &ir::Program, const_bytes: u64) -> KernelAttributes {
        let entry = self.entry.index();
        let bounds = &program.module.functions[entry].bounds;
        let required = bounds.required.map(|[x, y, z]| u64::from(x) * u64::from(y) * u64::from(z));
        let max_threads = required.or(bounds.max_threads).unwrap_or(BLOCK_LIMIT).min(BLOCK_LIMIT);
        let reached = self.reached.iter().zip(&program.functions).filter(|(reached, _)| **reached);
        let live = reached.filter_map(|(_, function)| Some(live_registers(function.as_ref()?)));
        KernelAttributes {
            registers: live.max().unwrap_or(0),
            shared_bytes: self.shared_layout(0).bytes,
            local_bytes: program.functions[entry].as_ref().map_or(0, |function| function.frame_bytes.into()),
            const_bytes,
            param_bytes: self.param_bytes,
            max_threads: max_threads as u32,
        }
    }
}

/// Whether a function reads the offset of the shared memory that is reserved for the system.
fn asks_for_reserved_memory(function: &ir::Function) -> bool {
    let asks = |kind: &SlotKind| match kind {
        SlotKind::Special(special) => special.name().starts_with("%reserved_smem_offset"),
        _ => false,
    };
    function.slots.iter().any(|slot| asks(&slot.kind))
}

/// The largest number of 32-bit registers that are live at the start of a basic block.
fn live_registers(function: &ir::Function) -> u32 {
    let words = |slot: &ir::Slot| match function.slots[slot.index()].width {
        Width::Pred => 0,
        Width::W16 | Width::W32 => 1,
        Width::W64 => 2,
    };
    function.blocks.iter().map(|block| block.live_in.iter().map(words).sum()).max().unwrap_or(0)
}

/// Offset and size in bytes of each parameter of a kernel, and the size of all.
pub fn param_layout(function: &Function) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0u64;
    let layout = function
        .params
        .iter()
        .map(|param| {
            let offset;
            (offset, end) = append(end, param.bytes, param.align);
            (offset, param.bytes)
        })
        .collect();
    (layout, end)
}
