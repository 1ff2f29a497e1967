//! What the tests of cuBLAS and cuSOLVER share: the driver and the library as a program opens them, memory of the device, numbers of
//! all types, matrices. Whoever includes it says which library, as `LIBRARY`: its file, and how its functions' names begin.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, OnceLock};

use super::LIBRARY;

/// Arguments of C functions: two numbers in registers of their own, then integers and pointers. More than a function takes do no harm.
type Function = unsafe extern "C" fn(
    f64,
    f64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u32;

/// Calls a function of the driver (`cu...`) or of the library.
pub fn call(name: &str, arguments: &[u64]) -> u32 {
    call_with(name, [0.0; 2], arguments)
}

/// The same with numbers, which stand anywhere among the arguments. Singles are the lower bits.
pub fn call_with(name: &str, numbers: [f64; 2], arguments: &[u64]) -> u32 {
    static LIBRARIES: OnceLock<[usize; 2]> = OnceLock::new();
    static KNOWN: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
    let libraries = LIBRARIES.get_or_init(|| {
        ["libptxvm_libcuda.so", LIBRARY[0]].map(|file| {
            let path = std::env::current_exe().expect("a path").with_file_name(file);
            let path = CString::new(path.as_os_str().as_bytes()).expect("a path without zeros");
            // SAFETY: both may be loaded.
            let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
            assert!(!library.is_null(), "{path:?} does not load");
            library.expose_provenance()
        })
    });
    let mut known = KNOWN.lock().expect("no panic");
    let address = *known.get_or_insert_default().entry(name.to_owned()).or_insert_with(|| {
        let symbol = CString::new(name).expect("a name");
        let library =
            std::ptr::with_exposed_provenance_mut(libraries[usize::from(name.starts_with(LIBRARY[1]))]);
        // SAFETY: the library stays open.
        unsafe { libc::dlsym(library, symbol.as_ptr()) }.expose_provenance()
    });
    drop(known);
    assert!(address != 0, "there is no {name}");
    let mut all = [0; 28];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb] = all;
    // SAFETY: the function is there, and the caller passes what it takes.
    unsafe {
        let function: Function = std::mem::transmute(std::ptr::with_exposed_provenance::<c_void>(address));
        function(
            numbers[0], numbers[1], a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x,
            y, z, aa, bb,
        )
    }
}

/// The same, and it must succeed.
pub fn ok(name: &str, arguments: &[u64]) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

/// The address of a place of the host.
pub fn at<T: ?Sized>(place: &mut T) -> u64 {
    (&raw mut *place).cast::<u8>().expose_provenance() as u64
}

/// Memory of the device, given back at the end.
pub struct Buffer {
    pub address: u64,
    bytes: usize,
}

impl Buffer {
    /// With these bytes.
    pub fn new(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer { address: 0, bytes: bytes.len() };
        ok("cuMemAlloc_v2", &[at(&mut buffer.address), bytes.len().max(1) as u64]);
        if !bytes.is_empty() {
            ok(
                "cuMemcpyHtoD_v2",
                &[buffer.address, bytes.as_ptr().expose_provenance() as u64, bytes.len() as u64],
            );
        }
        buffer
    }

    /// Of addresses.
    pub fn pointers(buffers: &[Buffer]) -> Buffer {
        Buffer::new(&buffers.iter().flat_map(|buffer| buffer.address.to_ne_bytes()).collect::<Vec<u8>>())
    }

    /// What is there.
    pub fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        if self.bytes > 0 {
            ok("cuMemcpyDtoH_v2", &[at(&mut bytes[..]), self.address, self.bytes as u64]);
        }
        bytes
    }

    /// Integers that are there.
    pub fn integers(&self) -> Vec<i32> {
        self.read().chunks_exact(4).map(|four| i32::from_ne_bytes(four.try_into().expect("4"))).collect()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        call("cuMemFree_v2", &[self.address]);
    }
}

/// A number: its parts.
pub type Num = [f64; 2];

/// A type of numbers of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    S,
    D,
    C,
    Z,
}

impl Ty {
    pub const ALL: [Ty; 4] = [Ty::S, Ty::D, Ty::C, Ty::Z];

    pub fn letter(self) -> &'static str {
        ["S", "D", "C", "Z"][self as usize]
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Ty::C | Ty::Z)
    }

    pub fn is_single(self) -> bool {
        matches!(self, Ty::S | Ty::C)
    }

    /// The type of its parts.
    pub fn real(self) -> Ty {
        if self.is_single() { Ty::S } else { Ty::D }
    }

    /// The unit of rounding.
    pub fn unit(self) -> f64 {
        if self.is_single() { f64::powi(2.0, -24) } else { f64::powi(2.0, -53) }
    }

    /// Numbers as bytes.
    pub fn encode(self, numbers: &[Num]) -> Vec<u8> {
        let part = |value: f64| match self.is_single() {
            true => (value as f32).to_ne_bytes().to_vec(),
            false => value.to_ne_bytes().to_vec(),
        };
        let parts = if self.is_complex() { 2 } else { 1 };
        numbers
            .iter()
            .flat_map(|number| number[..parts].iter().flat_map(|&value| part(value)).collect::<Vec<u8>>())
            .collect()
    }

    /// Bytes as numbers.
    pub fn decode(self, bytes: &[u8]) -> Vec<Num> {
        let parts: Vec<f64> = match self.is_single() {
            true => bytes
                .chunks_exact(4)
                .map(|four| f32::from_ne_bytes(four.try_into().expect("4")).into())
                .collect(),
            false => {
                bytes.chunks_exact(8).map(|eight| f64::from_ne_bytes(eight.try_into().expect("8"))).collect()
            }
        };
        match self.is_complex() {
            true => parts.chunks_exact(2).map(|two| [two[0], two[1]]).collect(),
            false => parts.into_iter().map(|part| [part, 0.0]).collect(),
        }
    }

    /// A random number between -1 and 1.
    pub fn random(self, random: &mut fastrand::Rng) -> Num {
        let mut part = || match random.u8(..) {
            0..8 => 0.0,
            _ if self.is_single() => f64::from(random.f32() * 2.0 - 1.0),
            _ => random.f64() * 2.0 - 1.0,
        };
        [part(), if self.is_complex() { part() } else { 0.0 }]
    }
}

pub fn conj(number: Num) -> Num {
    [number[0], -number[1]]
}

pub const NAN: Num = [f64::NAN, f64::NAN];

/// A sum of products, to about 100 bits.
#[derive(Clone, Copy, Default)]
pub struct Exact(f64, f64);

impl Exact {
    pub fn add(&mut self, value: f64) {
        let sum = self.0 + value;
        let rest = sum - self.0;
        let error = (self.0 - (sum - rest)) + (value - rest);
        (self.0, self.1) = (sum, self.1 + error);
    }

    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        let error = f64::mul_add(a, b, -product);
        self.add(product);
        self.add(error);
    }

    pub fn value(self) -> f64 {
        self.0 + self.1
    }
}

/// A matrix of the host, without gaps.
#[derive(Clone, Debug)]
pub struct Dense {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<Num>,
}

impl Dense {
    pub fn new(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> Num) -> Dense {
        let values =
            (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| value(i, j)).collect();
        Dense { rows, columns, values }
    }

    pub fn random(ty: Ty, rows: usize, columns: usize, random: &mut fastrand::Rng) -> Dense {
        Dense::new(rows, columns, |_, _| ty.random(random))
    }

    pub fn at(&self, row: usize, column: usize) -> Num {
        self.values[row + column * self.rows]
    }

    /// What an operation makes of it: 0 nothing, 1 transposed, 2 conjugated and transposed, 3 conjugated.
    pub fn operated(&self, operation: u32) -> Dense {
        let element = |number| if operation >= 2 { conj(number) } else { number };
        match operation {
            1 | 2 => Dense::new(self.columns, self.rows, |i, j| element(self.at(j, i))),
            _ => Dense::new(self.rows, self.columns, |i, j| element(self.at(i, j))),
        }
    }
}

/// `alpha A B + beta C`, and the sum of the magnitudes.
pub fn exact(alpha: Num, a: &Dense, b: &Dense, beta: Num, c: &Dense) -> (Dense, Dense) {
    let mut sizes = Dense::new(c.rows, c.columns, |_, _| [0.0; 2]);
    let size = |number: Num| number[0].abs() + number[1].abs();
    let result = Dense::new(c.rows, c.columns, |i, j| {
        let (mut sum, mut magnitude) = ([Exact::default(); 2], 0.0);
        if alpha != [0.0; 2] {
            for l in 0..a.columns {
                let (x, y) = (a.at(i, l), b.at(l, j));
                sum[0].add_product(x[0], y[0]);
                sum[0].add_product(-x[1], y[1]);
                sum[1].add_product(x[0], y[1]);
                sum[1].add_product(x[1], y[0]);
                magnitude += size(x) * size(y) * size(alpha);
            }
        }
        let mut total = [Exact::default(); 2];
        let mut add = |factor: Num, re: f64, im: f64| {
            total[0].add_product(factor[0], re);
            total[0].add_product(-factor[1], im);
            total[1].add_product(factor[0], im);
            total[1].add_product(factor[1], re);
        };
        for (re, im) in [(sum[0].0, sum[1].0), (sum[0].1, sum[1].1)] {
            add(alpha, re, im);
        }
        if beta != [0.0; 2] {
            add(beta, c.at(i, j)[0], c.at(i, j)[1]);
            magnitude += size(beta) * size(c.at(i, j));
        }
        sizes.values[i + j * c.rows] = [magnitude, magnitude];
        total.map(Exact::value)
    });
    (result, sizes)
}

/// The bound of a sum of so many terms.
pub fn gamma(ty: Ty, terms: usize) -> f64 {
    let terms = if ty.is_complex() { 2 * terms + 8 } else { terms + 4 };
    let error = terms as f64 * ty.unit();
    error / (1.0 - error)
}

/// Elements of a matrix in memory, with gaps between the columns.
pub struct Stored {
    pub ty: Ty,
    pub ld: usize,
    pub values: Vec<Num>,
    pub buffer: Buffer,
}

impl Stored {
    /// So many rows and columns; what `is_there` leaves out and the gaps are NaN.
    pub fn new(ty: Ty, dense: &Dense, ld: usize, is_there: impl Fn(usize, usize) -> bool) -> Stored {
        let mut values =
            vec![
                NAN;
                if dense.rows * dense.columns == 0 { 0 } else { ld * (dense.columns - 1) + dense.rows }
            ];
        for j in 0..dense.columns {
            for i in (0..dense.rows).filter(|&i| is_there(i, j)) {
                values[i + j * ld] = dense.at(i, j);
            }
        }
        let buffer = Buffer::new(&ty.encode(&values));
        Stored { ty, ld, values, buffer }
    }
}
