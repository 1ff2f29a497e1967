//! What the interpreter keeps with a kernel: whether its blocks run in CTA batches, and its code for each number of
//! lanes, host path and gap between shared variables.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ir::{AccessKind, OpKind, SimpleOp, Terminator, WarpOp, Width};
use lanes::HostPath;
use machine::builtin::Builtin;
use machine::{Launch, NativeCode};

use crate::code::{Code, array_bytes, build};

/// The most codes that a kernel keeps. More are needed only if launches alternate between many numbers of lanes.
const MOST_CODES: usize = 16;

/// What the interpreter knows of a kernel.
pub(crate) struct KernelInfo {
    /// Its blocks must not run together in a CTA batch.
    pub apart: bool,
    /// It has instructions that see the lanes of a warp.
    pub sees_warps: bool,
    /// Whether its effects on memory can be recorded and undone (`footprint.rs`), once that is known.
    pub undoable: OnceLock<bool>,
    /// For each function that it can reach: the number of slots of each width.
    widths: Vec<[(Width, usize); 4]>,
    codes: Mutex<Vec<(CodeKey, Arc<Code>)>>,
    /// CTA batches of launches so far.
    batches: AtomicU64,
}

/// What code depends on, in addition to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CodeKey {
    /// Lanes of a gang.
    lanes: usize,
    path: HostPath,
    /// Bytes between shared variables, which determine their layout.
    gap: u64,
    /// Basic blocks that run once for each gang have native code, too.
    sections: bool,
}

/// Fewer CTA batches run faster than native code for their basic blocks is planned.
const FEW_BATCHES: u64 = 32;

impl KernelInfo {
    pub fn new(launch: &Launch) -> KernelInfo {
        let (program, reached) = (launch.program(), &launch.kernel().reached);
        let functions = || reached.iter().zip(&program.functions).filter(|(reached, _)| **reached);
        let names = reached.iter().zip(&program.module.functions).filter(|(reached, _)| **reached);
        let names = names.map(|(_, function)| function.name.as_str());
        KernelInfo {
            sees_warps: sees_warps(functions().map(|(_, function)| function.as_ref())),
            apart: keeps_blocks_apart(names.zip(functions().map(|(_, function)| function.as_ref()))),
            undoable: OnceLock::new(),
            widths: functions().filter_map(|(_, function)| Some(widths(function.as_ref()?))).collect(),
            codes: Mutex::default(),
            batches: AtomicU64::new(0),
        }
    }

    /// The most bytes that the registers of one of its functions take, in a gang of `lanes` lanes.
    pub fn most_register_bytes(&self, lanes: usize) -> u64 {
        let bytes = |widths: &[(Width, usize); 4]| -> u64 {
            widths.iter().map(|&(width, count)| (array_bytes(width, lanes) * count) as u64).sum()
        };
        self.widths.iter().map(bytes).max().unwrap_or(0)
    }

    /// Whether basic blocks that run once for each gang should have native code in a launch of so many CTA batches.
    pub fn wants_sections(&self, when: NativeCode, batches: u64) -> bool {
        match when {
            NativeCode::Always => true,
            NativeCode::Hot => self.batches.fetch_add(batches, Ordering::Relaxed) + batches > FEW_BATCHES,
            _ => false,
        }
    }

    /// Its code for gangs of `lanes` lanes, built on first use. `sections`: see [`KernelInfo::wants_sections`].
    pub fn code(&self, launch: &Launch, lanes: usize, path: HostPath, sections: bool) -> Arc<Code> {
        let key = CodeKey { lanes, path, gap: launch.shared().gap, sections };
        let codes = || self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, code)) = codes().iter().find(|(other, _)| *other == key) {
            return Arc::clone(code);
        }
        // Build without the lock. Another launch may build the same code at the same time, which is harmless.
        let code = Arc::new(build(launch, lanes, path, sections));
        let mut codes = codes();
        if codes.len() >= MOST_CODES {
            codes.remove(0);
        }
        codes.push((key, Arc::clone(&code)));
        code
    }
}

/// The number of slots of each width in a function.
fn widths(function: &ir::Function) -> [(Width, usize); 4] {
    [Width::Pred, Width::W16, Width::W32, Width::W64]
        .map(|width| (width, function.slots.iter().filter(|slot| slot.width == width).count()))
}

/// Whether the functions that a kernel can reach contain an instruction that works on one block only, or whose order
/// among the blocks is visible. Functions without a body are recognised by their names.
fn keeps_blocks_apart<'a>(functions: impl Iterator<Item = (&'a str, Option<&'a ir::Function>)>) -> bool {
    let mut functions = functions;
    functions.any(|(name, function)| match function {
        // Later blocks get the memory that earlier blocks free.
        None => matches!(
            Builtin::of(name),
            Some(
                Builtin::Malloc
                    | Builtin::Free
                    | Builtin::GroupHandle
                    | Builtin::GridSynchronize
                    | Builtin::Runtime(_)
            )
        ),
        Some(function) => {
            function.ops.iter().any(|op| is_alone(&op.kind))
                || function.blocks.iter().any(|b| matches!(b.terminator, Terminator::ClusterBarrier { .. }))
        }
    })
}

/// Whether these functions contain an instruction that sees the lanes of a warp.
fn sees_warps<'a>(functions: impl Iterator<Item = Option<&'a ir::Function>>) -> bool {
    functions
        .flatten()
        .flat_map(|function| &function.ops)
        .any(|op| matches!(op.kind, OpKind::Warp { .. } | OpKind::Simple(SimpleOp::ActiveMask { .. })))
}

/// The operation works on the shared and local memory of one block only.
fn is_alone(op: &OpKind) -> bool {
    if op.computes() {
        return false;
    }
    matches!(
        op,
        OpKind::Simple(SimpleOp::CopyGroup(_) | SimpleOp::Stack { .. })
            | OpKind::TensorMemory(_)
            | OpKind::Warp { op: WarpOp::Matrix(_) | WarpOp::TensorMemory(_), .. }
    ) || ir::accesses(op).iter().any(|access| match access.kind {
        AccessKind::Load
        | AccessKind::Store
        | AccessKind::Atomic
        | AccessKind::TexelLoad
        | AccessKind::TexelStore
        | AccessKind::TexelAtomic => false,
        AccessKind::CopyRead
        | AccessKind::CopyWrite
        | AccessKind::CopyReduce
        | AccessKind::Mbarrier
        | AccessKind::MbarrierTest
        | AccessKind::MatrixLoad
        | AccessKind::MatrixStore => true,
    })
}
