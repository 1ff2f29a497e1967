//! The order and the scope of every access stand in the lowered code as the manual says, also where they are not written.

use ir::{Atomic, AtomicWide, Load, Mbarrier, MemoryOp, OpKind, Order, Scope, Semantics, SimpleOp, Store};

/// What stands in the kernel of one instruction.
fn semantics(instruction: &str) -> Option<Semantics> {
    let text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.shared .b64 bar;\n.visible .entry test(.param .u64 out) {{\n\
         .reg .u64 %a, %d; .reg .u32 %r; .reg .pred %p;\n{instruction}\nret;\n}}\n"
    );
    let source = diag::SourceFile::new("test.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    let program =
        ir::lower(module.unwrap_or_else(|| panic!("{instruction}: {diagnostics:?}")), &ir::Options::ALL);
    let function = program.functions[0].as_ref()?;
    function.ops.iter().find_map(|op| match op.kind {
        OpKind::Load(Load { semantics, .. })
        | OpKind::Store(Store { semantics, .. })
        | OpKind::Simple(SimpleOp::Fence { semantics }) => Some(semantics),
        OpKind::Memory(ref op) => match **op {
            MemoryOp::Atomic(Atomic { semantics, .. })
            | MemoryOp::AtomicWide(AtomicWide { semantics, .. })
            | MemoryOp::Mbarrier(Mbarrier { semantics, .. }) => Some(semantics),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn every_access_has_the_order_and_scope_of_the_manual() {
    for (instruction, order, scope) in [
        ("ld.global.u32 %r, [%a];", Order::Weak, None),
        ("ld.weak.global.u32 %r, [%a];", Order::Weak, None),
        ("ld.global.nc.u32 %r, [%a];", Order::Weak, None),
        ("ld.volatile.global.u32 %r, [%a];", Order::Volatile, Some(Scope::Sys)),
        ("ld.relaxed.gpu.global.u32 %r, [%a];", Order::Relaxed, Some(Scope::Gpu)),
        ("ld.acquire.cluster.u32 %r, [%a];", Order::Acquire, Some(Scope::Cluster)),
        ("ld.mmio.relaxed.sys.global.u32 %r, [%a];", Order::Relaxed, Some(Scope::Sys)),
        ("st.shared.u64 [bar], %d;", Order::Weak, None),
        ("st.volatile.u32 [%a], %r;", Order::Volatile, Some(Scope::Sys)),
        ("st.release.cta.global.u32 [%a], %r;", Order::Release, Some(Scope::Cta)),
        ("atom.global.add.u32 %r, [%a], 1;", Order::Relaxed, Some(Scope::Gpu)),
        ("atom.acq_rel.sys.global.cas.b32 %r, [%a], 1, 2;", Order::AcquireRelease, Some(Scope::Sys)),
        ("atom.cta.shared.exch.b64 %d, [bar], %d;", Order::Relaxed, Some(Scope::Cta)),
        ("red.release.gpu.global.add.u32 [%a], 1;", Order::Release, Some(Scope::Gpu)),
        ("membar.cta;", Order::Sequential, Some(Scope::Cta)),
        ("membar.gl;", Order::Sequential, Some(Scope::Gpu)),
        ("membar.sys;", Order::Sequential, Some(Scope::Sys)),
        ("fence.gpu;", Order::AcquireRelease, Some(Scope::Gpu)),
        ("fence.sc.cluster;", Order::Sequential, Some(Scope::Cluster)),
        ("fence.acquire.gpu;", Order::Acquire, Some(Scope::Gpu)),
        ("fence.mbarrier_init.release.cluster;", Order::Release, Some(Scope::Cluster)),
        ("fence.proxy.async;", Order::AcquireRelease, None),
        ("mbarrier.init.shared.b64 [bar], 1;", Order::Weak, None),
        ("mbarrier.expect_tx.shared.b64 [bar], 16;", Order::Relaxed, Some(Scope::Cta)),
        ("mbarrier.arrive.shared.b64 %d, [bar];", Order::Release, Some(Scope::Cta)),
        ("mbarrier.arrive.relaxed.cluster.shared.b64 %d, [bar];", Order::Relaxed, Some(Scope::Cluster)),
        ("mbarrier.test_wait.shared.b64 %p, [bar], %d;", Order::Acquire, Some(Scope::Cta)),
        (
            "mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p, [bar], %r;",
            Order::Acquire,
            Some(Scope::Cluster),
        ),
    ] {
        assert_eq!(semantics(instruction), Some(Semantics { order, scope }), "{instruction}");
    }
}

#[test]
fn they_are_printed_as_the_manual_writes_them() {
    let print = |instruction| format!("{:?}", semantics(instruction).expect("an access"));
    assert_eq!(print("ld.acquire.gpu.global.u32 %r, [%a];"), "acquire.gpu");
    assert_eq!(print("membar.sys;"), "sc.sys");
    assert_eq!(print("st.global.u32 [%a], %r;"), "weak");
}
