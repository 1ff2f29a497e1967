//! What the interpreter keeps with a kernel: whether its blocks run in CTA batches, and its code for each number of
//! lanes, host path and gap between shared variables.

use std::sync::{Arc, Mutex, PoisonError};

use ir::Width;
use lanes::HostPath;
use machine::Launch;

use crate::code::{Code, array_bytes, build};
use crate::cta_batch::{keeps_blocks_apart, sees_warps};
use crate::footprint::Undoable;

/// The most codes that a kernel keeps. More are needed only if launches alternate between many numbers of lanes.
const MOST_CODES: usize = 16;

/// What the interpreter knows of a kernel.
pub(crate) struct KernelInfo {
    /// Its blocks must not run together in a CTA batch.
    pub apart: bool,
    /// It has instructions that see the lanes of a warp.
    pub sees_warps: bool,
    /// Whether its effects on memory can be recorded and undone.
    pub undoable: Undoable,
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

impl KernelInfo {
    pub fn new(launch: &Launch) -> KernelInfo {
        let (program, reached) = (launch.program(), &launch.kernel().reached);
        let functions = || reached.iter().zip(&program.functions).filter(|(reached, _)| **reached);
        let names = reached.iter().zip(&program.module.functions).filter(|(reached, _)| **reached);
        let names = names.map(|(_, function)| function.name.as_str());
        KernelInfo {
            sees_warps: sees_warps(functions().map(|(_, function)| function.as_ref())),
            apart: keeps_blocks_apart(names.zip(functions().map(|(_, function)| function.as_ref()))),
            undoable: Undoable::default(),
            widths: functions().filter_map(|(_, function)| Some(widths(function.as_ref()?))).collect(),
            codes: Mutex::default(),
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
    pub fn code(&self, launch: &Launch, lanes: usize, path: HostPath) -> Arc<Code> {
        let key = CodeKey { lanes, path, gap: launch.shared().gap };
        let codes = || self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, code)) = codes().iter().find(|(other, _)| *other == key) {
            return Arc::clone(code);
        }
        // Build without the lock. Another launch may build the same code at the same time, which is harmless.
        let code = Arc::new(build(launch, lanes, path));
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
