//! What the tests of cuSOLVER share beside what they share with others: its handle, norms, unitary matrices.

// The tests need the shared objects of both.
use ptxvm_cusolver as _;
use ptxvm_libcuda as _;

#[path = "../../../linalg/tests/rig/mod.rs"]
mod shared;

pub use shared::*;

/// The library's file, and how its functions' names begin.
const LIBRARY: [&str; 2] = ["libptxvm_cusolver.so", "cusolver"];

/// A handle of the library.
pub struct Handle(pub u64);

impl Handle {
    pub fn new() -> Handle {
        call("cuInit", &[0]);
        let mut handle = 0;
        ok("cusolverDnCreate", &[at(&mut handle)]);
        Handle(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        call("cusolverDnDestroy", &[self.0]);
    }
}

impl Stored {
    /// What is there now.
    pub fn read(&self, rows: usize, columns: usize) -> Dense {
        let numbers = self.ty.decode(&self.buffer.read());
        Dense::new(rows, columns, |i, j| numbers[i + j * self.ld])
    }

    /// Checks that nothing but elements of so many rows and columns has changed, and of those only what may.
    pub fn untouched(&self, what: &str, [rows, columns]: [usize; 2], may: impl Fn(usize, usize) -> bool) {
        let (now, before) = (self.buffer.read(), self.ty.encode(&self.values));
        let bytes = before.len() / self.values.len().max(1);
        for place in 0..self.values.len() {
            let (i, j) = (place % self.ld, place / self.ld);
            let changes = i < rows && j < columns && may(i, j);
            let part = place * bytes..(place + 1) * bytes;
            assert!(changes || now[part.clone()] == before[part], "{what}: ({i}, {j}) was written");
        }
    }
}

/// The largest magnitude of a difference.
pub fn distance(a: &Dense, b: &Dense) -> f64 {
    assert_eq!((a.rows, a.columns), (b.rows, b.columns));
    let parts = a.values.iter().zip(&b.values).map(|(x, y)| (x[0] - y[0]).hypot(x[1] - y[1]));
    parts.fold(0.0, |most, part| if part <= most { most } else { part })
}

/// The Frobenius norm.
pub fn norm(a: &Dense) -> f64 {
    a.values.iter().flatten().map(|part| part * part).sum::<f64>().sqrt()
}

/// The product of two matrices, each as an operation makes it.
pub fn times(a: &Dense, of_a: u32, b: &Dense, of_b: u32) -> Dense {
    let (a, b) = (a.operated(of_a), b.operated(of_b));
    let none = Dense::new(a.rows, b.columns, |_, _| [0.0; 2]);
    exact([1.0, 0.0], &a, &b, [0.0; 2], &none).0
}

/// The unit matrix.
pub fn unit(n: usize) -> Dense {
    Dense::new(n, n, |i, j| [f64::from(i == j), 0.0])
}

/// A unitary matrix: a product of random reflections.
pub fn unitary(ty: Ty, n: usize, random: &mut fastrand::Rng) -> Dense {
    let mut result = unit(n);
    for _ in 0..n.min(4) {
        let v = Dense::new(n, 1, |_, _| ty.random(random));
        let size = norm(&v);
        if size > 0.0 {
            let v = Dense::new(n, 1, |i, _| v.at(i, 0).map(|part| part / size));
            let part = times(&v, 0, &times(&v, 2, &result, 0), 0);
            result = Dense::new(n, n, |i, j| [0, 1].map(|p| result.at(i, j)[p] - 2.0 * part.at(i, j)[p]));
        }
    }
    result
}
