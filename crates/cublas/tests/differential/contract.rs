//! What is refused, and what graphs capture.

use crate::rig;
use crate::rig::{Buffer, Dense, Handle, NAN, Scalar, Stored, Ty, call, ok};

#[test]
fn mistakes_are_refused() {
    let handle = Handle::new();
    let memory = Buffer::new(&[0; 64]);
    let one = Scalar::new(Ty::S, [1.0, 0.0], false);
    let (x, p) = (one.address(), memory.address);
    let gemm = |handle: u64, m: i64, n: i64, k: i64, lda: u64, ldc: u64| {
        call("cublasSgemm_v2_64", &[handle, 0, 0, m as u64, n as u64, k as u64, x, p, lda, p, 4, x, p, ldc])
    };
    assert_eq!(gemm(handle.0, 4, 4, 4, 4, 4), 0);
    // Negative sizes, leading dimensions that are too small, memory that is too small, handles that are none.
    assert_eq!(gemm(handle.0, -1, 4, 4, 4, 4), 7);
    assert_eq!(gemm(handle.0, 4, 4, 4, 3, 4), 7);
    assert_eq!(gemm(handle.0, 4, 4, 4, 4, 100), 7);
    assert_eq!(gemm(0, 4, 4, 4, 4, 4), 1);
    assert_eq!(gemm(77, 4, 4, 4, 4, 4), 1);
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 9, 0, 4, 4, 4, x, p, 4, p, 4, x, p, 4]), 7);
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 0, 0, 4, 4, 4, 0, p, 4, p, 4, x, p, 4]), 7);
    // A scalar of the device, where one of the host is wanted.
    assert_eq!(call("cublasSgemm_v2", &[handle.0, 0, 0, 4, 4, 4, p, p, 4, p, 4, x, p, 4]), 7);
    assert_eq!(call("cublasXtSgemm", &[0; 8]), 15);
    let stale = Handle::new();
    let number = stale.0;
    drop(stale);
    assert_eq!(gemm(number, 4, 4, 4, 4, 4), 1);
    assert_eq!(call("cublasDestroy_v2", &[number]), 1);
}

#[test]
fn choices_of_emulation_are_remembered() {
    let handle = Handle::new();
    for (choice, default, valid, invalid) in [
        ("EmulationStrategy", 0, 2, Some(3)),
        ("EmulationSpecialValuesSupport", 0xffff, 3, Some(4)),
        ("FixedPointEmulationMantissaControl", 0, 1, Some(2)),
        ("FixedPointEmulationMaxMantissaBitCount", 0, 55, Some(-1i64 as u64)),
        ("FixedPointEmulationMantissaBitOffset", 0, -8i32 as u32, None),
    ] {
        let chosen = || {
            let mut value = 0u64;
            ok(&format!("cublasGet{choice}"), &[handle.0, rig::at(&mut value)]);
            value as u32
        };
        let choose = |value: u64| call(&format!("cublasSet{choice}"), &[handle.0, value]);
        assert_eq!(chosen(), default, "{choice}");
        assert_eq!(choose(valid.into()), 0, "{choice}");
        assert_eq!(invalid.map_or(7, choose), 7, "{choice}");
        assert_eq!(chosen(), valid, "{choice}");
    }
    let (mut place, memory) = (1u64, Buffer::new(&[0; 4]));
    ok("cublasSetFixedPointEmulationMantissaBitCountPointer", &[handle.0, 0]);
    assert_eq!(call("cublasSetFixedPointEmulationMantissaBitCountPointer", &[handle.0, memory.address]), 15);
    ok("cublasGetFixedPointEmulationMantissaBitCountPointer", &[handle.0, rig::at(&mut place)]);
    assert_eq!(place, 0);
}

#[test]
fn graphs_capture_products() {
    let handle = Handle::new();
    let [mut stream, mut graph, mut exec] = [0u64; 3];
    ok("cuStreamCreate", &[rig::at(&mut stream), 1]);
    ok("cublasSetStream_v2", &[handle.0, stream]);
    ok("cublasSetPointerMode_v2", &[handle.0, 1]);
    let a = Dense::new(2, 2, |i, j| [(1 + i + 2 * j) as f64, 0.0]);
    let stored = [0; 3].map(|_| Stored::new(Ty::S, &a, 2, |_, _| true));
    let [pa, pb, pc] = [0, 1, 2].map(|i: usize| stored[i].buffer.address);
    let (one, zero) = (Scalar::new(Ty::S, [1.0, 0.0], true), Scalar::new(Ty::S, [0.0; 2], true));
    let result = Scalar::new(Ty::S, NAN, true);
    ok("cuStreamBeginCapture_v2", &[stream, 1]);
    ok("cublasSgemm_v2", &[handle.0, 0, 0, 2, 2, 2, one.address(), pa, 2, pb, 2, zero.address(), pc, 2]);
    ok("cublasSdot_v2", &[handle.0, 4, pc, 1, pc, 1, result.address()]);
    ok("cuStreamEndCapture", &[stream, rig::at(&mut graph)]);
    ok("cuGraphInstantiateWithFlags", &[rig::at(&mut exec), graph, 0]);
    assert_eq!(Ty::S.decode(&stored[2].buffer.read()), a.values);
    for by in [1.0f32, 2.0] {
        // What the graph reads is read when it runs.
        ok("cuMemsetD32Async", &[one.address(), by.to_bits().into(), 1, stream]);
        ok("cuGraphLaunch", &[exec, stream]);
        ok("cuStreamSynchronize", &[stream]);
        let wanted = [7.0, 10.0, 15.0, 22.0].map(|value| value * f64::from(by));
        let got: Vec<f64> =
            Ty::S.decode(&stored[2].buffer.read()).into_iter().map(|number| number[0]).collect();
        assert_eq!(got, wanted);
        assert_eq!(result.read(Ty::S)[0], wanted.iter().map(|value| value * value).sum::<f64>());
    }
}
