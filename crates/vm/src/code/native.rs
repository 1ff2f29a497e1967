//! Loops of a function that may run as native code (crate `jit`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use jit::Value;
use machine::NativeCode;

use super::build::Builder;
use super::linear::Linear;
use crate::registers::SlotRef;

/// How many iterations of a loop gangs interpret before it is compiled. Compiling takes about as long as interpreting
/// these.
const HOT: u32 = 64;

/// A loop that may run as native code.
pub(crate) struct NativeLoop {
    pub plan: jit::Loop,
    /// The slots of `plan.words` and of `plan.predicates`. The second part: the loop writes it.
    pub words: Vec<(SlotRef, bool)>,
    pub predicates: Vec<(SlotRef, bool)>,
    visits: AtomicU32,
    code: OnceLock<Option<jit::Native>>,
}

impl NativeLoop {
    /// The machine code for a gang at the start of the loop, if it is time for it.
    #[inline]
    pub fn code(&self, when: NativeCode) -> Option<&jit::Native> {
        match when {
            NativeCode::Always => {}
            NativeCode::Hot => {
                if self.visits.load(Ordering::Relaxed) < HOT {
                    self.visits.fetch_add(1, Ordering::Relaxed);
                    return None;
                }
            }
            _ => return None,
        }
        self.code.get_or_init(|| self.plan.compile()).as_ref()
    }
}

impl Builder<'_> {
    /// The loops of the function that may run as native code, by their first basic blocks.
    pub(super) fn native_loops(&self) -> Vec<(u32, Box<NativeLoop>)> {
        let steps =
            |form: &_, picks: &_| !matches!(Linear::of(form, picks), Linear::No | Linear::Compare(..));
        let loops = jit::loops(self.function, steps).into_iter();
        let slots =
            |values: &[Value]| values.iter().map(|value| (self.slot(value.slot), value.defined)).collect();
        loops
            .map(|plan| {
                let (words, predicates) = (slots(&plan.words), slots(&plan.predicates));
                let (visits, code) = (AtomicU32::new(0), OnceLock::new());
                (plan.blocks.start, Box::new(NativeLoop { plan, words, predicates, visits, code }))
            })
            .collect()
    }
}
