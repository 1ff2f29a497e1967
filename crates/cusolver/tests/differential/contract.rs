//! What is refused, what graphs capture, and that results do not depend on threads.

use crate::rig::{self, Buffer, Dense, Handle, Stored, Ty, call, ok};
use crate::{info, vector};

#[test]
fn mistakes_are_refused() {
    let handle = Handle::new();
    let memory = Buffer::new(&[0; 64]);
    let p = memory.address;
    let potrf = |handle: u64, uplo: u64, n: i32, lda: u64, length: u64| {
        call("cusolverDnSpotrf", &[handle, uplo, n as u64, p, lda, p, length, p])
    };
    assert_eq!(potrf(handle.0, 0, 4, 4, 4), 0);
    // Negative sizes, leading dimensions and workspaces that are too small, memory that is too small, handles that are none.
    assert_eq!(potrf(handle.0, 0, -1, 4, 4), 3);
    assert_eq!(potrf(handle.0, 2, 4, 4, 4), 3);
    assert_eq!(potrf(handle.0, 0, 4, 3, 4), 3);
    assert_eq!(potrf(handle.0, 0, 4, 4, 3), 3);
    assert_eq!(potrf(handle.0, 0, 4, 100, 4), 3);
    assert_eq!(potrf(handle.0, 0, 4, 4, 100), 3);
    assert_eq!(potrf(0, 0, 4, 4, 4), 1);
    assert_eq!(potrf(77, 0, 4, 4, 4), 1);
    // More columns than rows.
    assert_eq!(call("cusolverDnDgesvd_bufferSize", &[handle.0, 2, 3, p]), 3);
    // Types that do not fit together.
    let mut sizes = [0u64; 2];
    let at = rig::at(&mut sizes);
    assert_eq!(call("cusolverDnXpotrf_bufferSize", &[handle.0, 0, 0, 2, 2, p, 2, 2, at, at + 8]), 3);
    assert_eq!(call("cusolverDnXpotrf_bufferSize", &[handle.0, 0, 0, 2, 5, p, 2, 5, at, at + 8]), 0);
    assert_eq!(call("cusolverDnDgercond", &[0; 8]), 9);
    let stale = Handle::new();
    let number = stale.0;
    drop(stale);
    assert_eq!(potrf(number, 0, 4, 4, 4), 1);
    assert_eq!(call("cusolverDnDestroy", &[number]), 1);
}

#[test]
fn graphs_capture_factors() {
    let handle = Handle::new();
    let [mut stream, mut graph, mut exec] = [0u64; 3];
    ok("cuStreamCreate", &[rig::at(&mut stream), 1]);
    ok("cusolverDnSetStream", &[handle.0, stream]);
    let a = Dense::new(2, 2, |i, j| [if i == j { 4.0 } else { 2.0 }, 0.0]);
    let stored = Stored::new(Ty::S, &a, 2, |_, _| true);
    let (work, told) = (Buffer::new(&[0; 64]), info());
    let pa = stored.buffer.address;
    ok("cuStreamBeginCapture_v2", &[stream, 1]);
    ok("cusolverDnSpotrf", &[handle.0, 0, 2, pa, 2, work.address, 4, told.address]);
    ok("cuStreamEndCapture", &[stream, rig::at(&mut graph)]);
    ok("cuGraphInstantiateWithFlags", &[rig::at(&mut exec), graph, 0]);
    assert_eq!(stored.read(2, 2).values, a.values);
    for corner in [4.0f32, 16.0] {
        // What the graph reads is read when it runs.
        ok("cuMemsetD32Async", &[pa, corner.to_bits().into(), 1, stream]);
        ok("cuMemsetD32Async", &[pa + 4, 2f32.to_bits().into(), 1, stream]);
        ok("cuMemsetD32Async", &[pa + 12, 4f32.to_bits().into(), 1, stream]);
        ok("cuGraphLaunch", &[exec, stream]);
        ok("cuStreamSynchronize", &[stream]);
        let (first, below) = (f64::from(corner).sqrt(), 2.0 / f64::from(corner).sqrt());
        let wanted = [first, below, 2.0, (4.0 - below * below).sqrt()];
        let got: Vec<f64> = stored.read(2, 2).values.iter().map(|value| value[0]).collect();
        assert!(got.iter().zip(wanted).all(|(got, want)| (got - want).abs() < 1e-6), "{got:?}");
        assert_eq!(told.integers(), [0]);
    }
}

/// A NaN must not keep a method from ending, and the program is told.
#[test]
fn nan_ends() {
    let handle = Handle::new();
    for ty in Ty::ALL {
        let n = 40;
        let a = Dense::new(n, n, |i, j| [if (i, j) == (7, 7) { f64::NAN } else { (i + j) as f64 }, 0.0]);
        let stored = Stored::new(ty, &a, n, |_, _| true);
        let (s, told) = (vector(ty.real(), n), info());
        let work = Buffer::new(&[0; 1024]);
        let (pa, n) = (stored.buffer.address, n as u64);
        let name = crate::named(ty, "syevd", "heevd");
        ok(&name, &[handle.0, 1, 0, n, pa, n, s.buffer.address, work.address, n, told.address]);
        assert!(told.integers()[0] > 0);
        let stored = Stored::new(ty, &a, n as usize, |_, _| true);
        let (pa, ps) = (stored.buffer.address, s.buffer.address);
        let jobs = u64::from(b'N');
        let name = crate::named(ty, "gesvd", "gesvd");
        ok(&name, &[handle.0, jobs, jobs, n, n, pa, n, ps, 0, n, 0, n, work.address, n, 0, told.address]);
        assert!(told.integers()[0] > 0);
    }
}
