//! Instructions that make the order of blocks matter: ordered or atomic accesses to memory that other blocks can
//! access.
//!
//! Jobs (`python/ptxvm/jobs.py`) launch parts of a grid separately (`LaunchConfig::blocks`). They refuse kernels with
//! such accesses, except for atomic operations whose old value is unused; a named reduction combines their results.

use diag::Span;
use ir::{AccessKind, MemoryOp, OpKind, Order, Start};
use isa::Space;

use crate::module::Shared;

/// An instruction: its file, its line, its text, and whether it only combines a value with memory.
pub type Place = (String, u32, String, bool);

/// The instructions reachable from a kernel through which blocks may learn of each other.
pub fn between_blocks(shared: &Shared, kernel: &str) -> Vec<Place> {
    let module = shared.loaded.module();
    let program = module.program();
    let Some(entry) = program.module.functions.iter().position(|f| f.is_entry && f.name == kernel) else {
        return Vec::new();
    };
    let reached = program.reachable(check::module::FuncId(entry as u32));
    let sources: Vec<_> = module.sources().collect();
    let mut places: Vec<Place> = Vec::new();
    let mut add = |span: Span, combines: bool| {
        let (index, span) = module.locate(span);
        let source = sources[index];
        let line = source.position(span.start).line;
        let place = (source.name().to_owned(), line, source.slice(span).to_owned(), combines);
        if !places.contains(&place) {
            places.push(place);
        }
    };
    for function in
        reached.iter().zip(&program.functions).filter_map(|(&reached, f)| f.as_ref().filter(|_| reached))
    {
        for op in &function.ops {
            for access in ir::accesses(&op.kind) {
                let space = match access.start {
                    Start::Address(address) | Start::Box(address) => address.space,
                    Start::Descriptor(_) => Space::Shared,
                    Start::Texels | Start::Tensor => Space::Global,
                };
                if !matches!(space, Space::Global | Space::Generic) {
                    continue;
                }
                match access.kind {
                    AccessKind::Atomic | AccessKind::CopyReduce | AccessKind::TexelAtomic => {
                        add(op.span, combines(&op.kind));
                    }
                    // An ordered load expects values that other threads write.
                    AccessKind::Load if access.semantics.order != Order::Weak => add(op.span, false),
                    _ => {}
                }
            }
        }
    }
    places
}

/// Whether the operation does not read the old value.
fn combines(op: &OpKind) -> bool {
    match op.memory() {
        Some(MemoryOp::Atomic(atomic)) => atomic.dst.is_none(),
        Some(MemoryOp::AtomicWide(_)) => false,
        _ => true,
    }
}
