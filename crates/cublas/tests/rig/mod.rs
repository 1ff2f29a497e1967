//! What the tests of cuBLAS share beside what they share with others: its handle, vectors, scalars.

// The tests need the shared objects of both.
use ptxvm_cublas as _;
use ptxvm_libcuda as _;

#[path = "../../../linalg/tests/rig/mod.rs"]
mod shared;

pub use shared::*;

/// The library's file, and how its functions' names begin.
const LIBRARY: [&str; 2] = ["libptxvm_cublas.so", "cublas"];

/// A handle of the library.
pub struct Handle(pub u64);

impl Handle {
    pub fn new() -> Handle {
        call("cuInit", &[0]);
        let mut handle = 0;
        ok("cublasCreate_v2", &[at(&mut handle)]);
        Handle(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        call("cublasDestroy_v2", &[self.0]);
    }
}

impl Ty {
    /// A random factor: often 0 or 1.
    pub fn factor(self, random: &mut fastrand::Rng) -> Num {
        match random.u8(..8) {
            0 => [0.0, 0.0],
            1 | 2 => [1.0, 0.0],
            _ => self.random(random),
        }
    }
}

impl Stored {
    /// A vector with a step.
    pub fn vector(ty: Ty, numbers: &[Num], step: i64) -> Stored {
        let by = step.unsigned_abs() as usize;
        let mut values = vec![NAN; if numbers.is_empty() { 0 } else { (numbers.len() - 1) * by + 1 }];
        for (i, &number) in numbers.iter().enumerate() {
            let place = if step < 0 { numbers.len() - 1 - i } else { i };
            values[place * by] = number;
        }
        let buffer = Buffer::new(&ty.encode(&values));
        Stored { ty, ld: by, values, buffer }
    }

    /// Compares it with what it should be now. What is not expected to change must be the same bits.
    pub fn check(
        &self,
        what: &str,
        place: impl Fn(usize, usize) -> Option<usize>,
        wanted: &Dense,
        bound: &Dense,
    ) {
        let got = self.buffer.read();
        let numbers = self.ty.decode(&got);
        let mut expected = vec![false; numbers.len()];
        for j in 0..wanted.columns {
            for i in 0..wanted.rows {
                let Some(place) = place(i, j) else { continue };
                expected[place] = true;
                let (value, want, most) = (numbers[place], wanted.at(i, j), bound.at(i, j)[0]);
                for part in 0..2 {
                    let same = value[part] == want[part] || value[part].is_nan() && want[part].is_nan();
                    let error = (value[part] - want[part]).abs();
                    assert!(
                        same || error <= most,
                        "{what}: ({i}, {j}) is {value:?}, not {want:?}; {error:e} > {most:e}"
                    );
                }
            }
        }
        let before = self.ty.encode(&self.values);
        let bytes = before.len() / numbers.len().max(1);
        for (i, _) in expected.iter().enumerate().filter(|(_, expected)| !**expected) {
            assert!(
                got[i * bytes..][..bytes] == before[i * bytes..][..bytes],
                "{what}: element {i} was written"
            );
        }
    }
}

/// A scalar where the pointer mode of a handle says.
pub struct Scalar {
    host: Vec<u8>,
    device: Option<Buffer>,
}

impl Scalar {
    pub fn new(ty: Ty, value: Num, on_device: bool) -> Scalar {
        let host = ty.encode(&[value]);
        Scalar { device: on_device.then(|| Buffer::new(&host)), host }
    }

    pub fn address(&self) -> u64 {
        self.device.as_ref().map_or(self.host.as_ptr().expose_provenance() as u64, |device| device.address)
    }

    /// The value that is there.
    pub fn read(&self, ty: Ty) -> Num {
        let bytes = self.device.as_ref().map_or(self.host.clone(), Buffer::read);
        ty.decode(&bytes)[0]
    }
}
