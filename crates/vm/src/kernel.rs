//! What all launches of a kernel have in common. It is computed once and kept with the loaded module.
//!
//! This includes the functions that the kernel reaches, why it is refused, whether its blocks run in CTA batches, and
//! its code for each number of lanes, host path and gap between shared variables. Everything else that differs between
//! launches (parameters, extents, special registers) is looked up at run time. So a launch of a small kernel costs
//! about 2 microseconds (benches/RESULTS.md, "Launches that own what they need").

use std::sync::{Arc, Mutex, PoisonError};

use check::module::{FuncId, Function};
use ir::{SlotKind, Width};
use lanes::HostPath;

use crate::builtin::Builtin;
use crate::code::{Code, array_bytes, build};
use crate::cta_batch::{keeps_blocks_apart, sees_warps};
use crate::footprint::Undoable;
use crate::launch::LaunchError;
use crate::loaded::{Image, KernelAttributes};
use crate::shared::{RESERVED_SHARED_BYTES, SharedLayout, SharedVariable, append};
use crate::undefined::undefined;

/// The most threads of a block.
pub(crate) const BLOCK_LIMIT: u64 = 1024;
/// The most codes that a kernel keeps. More are needed only if launches alternate between many numbers of lanes.
const MOST_CODES: usize = 16;

/// A kernel of a loaded module.
pub(crate) struct Kernel {
    pub entry: FuncId,
    /// By `FuncId`: whether the kernel reaches the function. Includes the kernel itself.
    pub reached: Vec<bool>,
    /// Why it cannot be launched.
    pub refused: Option<LaunchError>,
    /// Offset of each parameter, and bytes of all parameters.
    pub param_offsets: Vec<u64>,
    pub param_bytes: u64,
    /// Its blocks must not run together in a CTA batch.
    pub apart: bool,
    /// It may call `vprintf`.
    pub prints: bool,
    /// It has instructions that see the lanes of a warp.
    pub sees_warps: bool,
    /// It may wait at the barrier of the grid.
    pub waits_for_grid: bool,
    /// Whether its effects on memory can be recorded and undone.
    pub undoable: Undoable,
    /// The shared variables of the functions that it can reach.
    shared: Vec<SharedVariable>,
    /// Bytes of shared memory that are reserved for the system.
    reserved: u64,
    /// The layout of the last launch, with its bytes of dynamic shared memory.
    layout: Mutex<Option<(u64, Arc<SharedLayout>)>>,
    /// For each function that it can reach: the number of slots of each width.
    widths: Vec<[(Width, usize); 4]>,
    codes: Mutex<Vec<(CodeKey, Arc<Code>)>>,
}

/// What code depends on, in addition to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CodeKey {
    /// Lanes of a gang.
    lanes: usize,
    path: HostPath,
    /// Bytes between shared variables, which determine their layout.
    gap: u64,
}

impl Kernel {
    pub fn new(program: &ir::Program, entry: FuncId) -> Kernel {
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
            sees_warps: sees_warps(functions().map(|(_, function)| function.as_ref())),
            apart: keeps_blocks_apart(names().zip(functions().map(|(_, function)| function.as_ref()))),
            prints: calls(Builtin::Printf),
            undoable: Undoable::default(),
            waits_for_grid: calls(Builtin::GridSynchronize),
            shared: SharedVariable::used(module, &reached),
            reserved: match functions().filter_map(|(_, f)| f.as_ref()).any(asks_for_reserved_memory) {
                true => RESERVED_SHARED_BYTES,
                false => 0,
            },
            layout: Mutex::default(),
            widths: functions().filter_map(|(_, function)| Some(widths(function.as_ref()?))).collect(),
            codes: Mutex::default(),
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

    /// The most bytes that the registers of one of its functions take, in a gang of `lanes` lanes.
    pub fn most_register_bytes(&self, lanes: usize) -> u64 {
        let bytes = |widths: &[(Width, usize); 4]| -> u64 {
            widths.iter().map(|&(width, count)| (array_bytes(width, lanes) * count) as u64).sum()
        };
        self.widths.iter().map(bytes).max().unwrap_or(0)
    }

    /// Its code for gangs of `lanes` lanes, built on first use.
    pub fn code(&self, image: &Image, lanes: usize, path: HostPath, shared: &SharedLayout) -> Arc<Code> {
        let key = CodeKey { lanes, path, gap: shared.gap };
        let codes = || self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, code)) = codes().iter().find(|(other, _)| *other == key) {
            return Arc::clone(code);
        }
        // Build without the lock. Another launch may build the same code at the same time, which is harmless.
        let code = Arc::new(build(image, self, lanes, path, shared));
        let mut codes = codes();
        if codes.len() >= MOST_CODES {
            codes.remove(0);
        }
        codes.push((key, Arc::clone(&code)));
        code
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

/// The number of slots of each width in a function.
fn widths(function: &ir::Function) -> [(Width, usize); 4] {
    [Width::Pred, Width::W16, Width::W32, Width::W64]
        .map(|width| (width, function.slots.iter().filter(|slot| slot.width == width).count()))
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
