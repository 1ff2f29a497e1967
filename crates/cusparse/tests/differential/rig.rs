//! What the tests share: the driver and the library as a program opens them, memory of the device, numbers, dense matrices.

use std::sync::OnceLock;

use fastrand::Rng;
use half::{bf16, f16};
// The tests need the shared objects of both.
use {ptxvm_cusparse as _, ptxvm_libcuda as _};

/// Arguments of C functions that are integers and pointers. More than a function takes do no harm.
type Function = unsafe extern "C" fn(
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

/// The driver (`cu...`) and the library (`cusparse...`).
pub fn library(name: &str) -> &'static libloading::Library {
    static LIBRARIES: OnceLock<[libloading::Library; 2]> = OnceLock::new();
    let libraries = LIBRARIES.get_or_init(|| {
        ["libptxvm_libcuda.so", "libptxvm_cusparse.so"].map(|name| {
            let path = std::env::current_exe().expect("a path").with_file_name(name);
            // SAFETY: loading them has no effects that could harm this process.
            unsafe { libloading::Library::new(path) }.expect("the test built it")
        })
    });
    &libraries[usize::from(name.starts_with("cusparse"))]
}

/// Calls a function whose arguments are integers and pointers.
pub fn call(name: &str, arguments: &[u64]) -> u32 {
    let mut all = [0; 20];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = all;
    // SAFETY: the function is of C, and the caller passes what it takes.
    unsafe {
        let function = library(name).get::<Function>(name.as_bytes()).expect("a function");
        function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
    }
}

/// The same, and it must succeed.
pub fn ok(name: &str, arguments: &[u64]) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

/// The address of a place of the host.
pub fn at<T>(place: &mut T) -> u64 {
    (&raw mut *place).expose_provenance() as u64
}

/// Memory of the device, given back at the end.
pub struct Buffer {
    pub address: u64,
    bytes: usize,
}

impl Buffer {
    pub fn new(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer { address: 0, bytes: bytes.len() };
        ok("cuMemAlloc_v2", &[at(&mut buffer.address), bytes.len().max(1) as u64]);
        if !bytes.is_empty() {
            let from = bytes.as_ptr().expose_provenance() as u64;
            ok("cuMemcpyHtoD_v2", &[buffer.address, from, bytes.len() as u64]);
        }
        buffer
    }

    pub fn ints(values: &[i64]) -> Buffer {
        Buffer::indices(values, 2, 0)
    }

    /// Indices of a width (`cusparseIndexType_t`) from a base on.
    pub fn indices(values: &[i64], width: u64, base: i64) -> Buffer {
        let bytes = values.iter().flat_map(|value| match width {
            2 => ((value + base) as i32).to_ne_bytes().to_vec(),
            _ => (value + base).to_ne_bytes().to_vec(),
        });
        Buffer::new(&bytes.collect::<Vec<u8>>())
    }

    pub fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; self.bytes];
        if self.bytes > 0 {
            let to = bytes.as_mut_ptr().expose_provenance() as u64;
            ok("cuMemcpyDtoH_v2", &[to, self.address, self.bytes as u64]);
        }
        bytes
    }

    pub fn read_ints(&self) -> Vec<i64> {
        self.read_indices(2, 0)
    }

    pub fn read_indices(&self, width: u64, base: i64) -> Vec<i64> {
        let wide = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => i32::from_ne_bytes([a, b, c, d]).into(),
            _ => i64::from_ne_bytes(bytes.try_into().expect("eight bytes")),
        };
        self.read().chunks_exact(if width == 2 { 4 } else { 8 }).map(|bytes| wide(bytes) - base).collect()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        call("cuMemFree_v2", &[self.address]);
    }
}

/// A handle of the library, whose scalars are on the host or on the device.
pub struct Handle(pub u64, pub bool);

impl Handle {
    pub fn new(on_device: bool) -> Handle {
        call("cuInit", &[0]);
        let mut handle = 0;
        ok("cusparseCreate", &[at(&mut handle)]);
        ok("cusparseSetPointerMode", &[handle, on_device.into()]);
        Handle(handle, on_device)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        call("cusparseDestroy", &[self.0]);
    }
}

/// A number: its parts.
pub type Num = [f64; 2];

pub fn times(a: Num, b: Num) -> Num {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

pub fn plus(a: Num, b: Num) -> Num {
    [a[0] + b[0], a[1] + b[1]]
}

/// The types of numbers, with their `cudaDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    S = 0,
    D = 1,
    H = 2,
    I8 = 3,
    C = 4,
    Z = 5,
    I32 = 10,
    B = 14,
}

impl Ty {
    pub const FULL: [Ty; 4] = [Ty::S, Ty::D, Ty::C, Ty::Z];

    pub fn letter(self) -> &'static str {
        match self {
            Ty::S => "S",
            Ty::D => "D",
            Ty::C => "C",
            _ => "Z",
        }
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Ty::C | Ty::Z)
    }

    pub fn encode(self, numbers: &[Num]) -> Vec<u8> {
        let part = |value: f64| match self {
            Ty::S | Ty::C => (value as f32).to_ne_bytes().to_vec(),
            Ty::D | Ty::Z => value.to_ne_bytes().to_vec(),
            Ty::H => f16::from_f64(value).to_ne_bytes().to_vec(),
            Ty::B => bf16::from_f64(value).to_ne_bytes().to_vec(),
            Ty::I8 => (value as i8).to_ne_bytes().to_vec(),
            Ty::I32 => (value as i32).to_ne_bytes().to_vec(),
        };
        let parts = if self.is_complex() { 2 } else { 1 };
        numbers
            .iter()
            .flat_map(|number| number[..parts].iter().flat_map(|&value| part(value)).collect::<Vec<u8>>())
            .collect()
    }

    pub fn decode(self, bytes: &[u8]) -> Vec<Num> {
        let size = match self {
            Ty::S | Ty::C | Ty::I32 => 4,
            Ty::D | Ty::Z => 8,
            Ty::H | Ty::B => 2,
            Ty::I8 => 1,
        };
        let part = |bytes: &[u8]| match (self, bytes) {
            (Ty::H, &[a, b]) => f16::from_ne_bytes([a, b]).to_f64(),
            (_, &[a, b]) => bf16::from_ne_bytes([a, b]).to_f64(),
            (Ty::I32, &[a, b, c, d]) => i32::from_ne_bytes([a, b, c, d]).into(),
            (_, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]).into(),
            (_, &[a]) => f64::from(a as i8),
            (_, bytes) => f64::from_ne_bytes(bytes.try_into().expect("eight bytes")),
        };
        let parts: Vec<f64> = bytes.chunks_exact(size).map(part).collect();
        match self.is_complex() {
            true => parts.chunks_exact(2).map(|two| [two[0], two[1]]).collect(),
            false => parts.into_iter().map(|part| [part, 0.0]).collect(),
        }
    }

    /// A small number whose sums and products are exact: quarters, or integers.
    pub fn random(self, rng: &mut Rng) -> Num {
        let step = if matches!(self, Ty::I8 | Ty::I32) { 1.0 } else { 0.25 };
        let mut part = || f64::from(rng.i32(-6..7)) * step;
        [part(), if self.is_complex() { part() } else { 0.0 }]
    }

    /// A factor: often 0 or 1.
    pub fn factor(self, rng: &mut Rng) -> Num {
        match rng.u8(..6) {
            0 => [0.0, 0.0],
            1 | 2 => [1.0, 0.0],
            _ => self.random(rng),
        }
    }

    /// What numbers become in memory.
    pub fn rounded(self, numbers: &[Num]) -> Vec<Num> {
        self.decode(&self.encode(numbers))
    }

    pub fn buffer(self, numbers: &[Num]) -> Buffer {
        Buffer::new(&self.encode(numbers))
    }

    pub fn read(self, buffer: &Buffer) -> Vec<Num> {
        self.decode(&buffer.read())
    }
}

/// A scalar where the pointer mode of a handle says.
pub struct Scalar(Vec<u8>, Option<Buffer>);

impl Scalar {
    pub fn new(handle: &Handle, ty: Ty, value: Num) -> Scalar {
        let bytes = ty.encode(&[value]);
        let device = handle.1.then(|| Buffer::new(&bytes));
        Scalar(bytes, device)
    }

    pub fn address(&self) -> u64 {
        self.1.as_ref().map_or(self.0.as_ptr().expose_provenance() as u64, |buffer| buffer.address)
    }

    pub fn read(&self) -> Vec<u8> {
        self.1.as_ref().map_or(self.0.clone(), Buffer::read)
    }
}

/// A dense matrix of the host, by rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<Num>,
}

impl Dense {
    pub fn new(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> Num) -> Dense {
        let values = (0..rows * columns).map(|at| value(at / columns, at % columns)).collect();
        Dense { rows, columns, values }
    }

    pub fn random(ty: Ty, rows: usize, columns: usize, rng: &mut Rng) -> Dense {
        Dense::new(rows, columns, |_, _| ty.random(rng))
    }

    pub fn at(&self, row: usize, column: usize) -> Num {
        self.values[row * self.columns + column]
    }

    /// What an operation makes of it: 0 nothing, 1 transposed, 2 conjugated and transposed.
    pub fn operated(&self, op: u64) -> Dense {
        let conjugate = |[re, im]: Num| if op == 2 { [re, -im] } else { [re, im] };
        match op {
            0 => self.clone(),
            _ => Dense::new(self.columns, self.rows, |i, j| conjugate(self.at(j, i))),
        }
    }

    /// `alpha` this times `b`, plus `beta c`. A factor of zero hides what it is of.
    pub fn product(&self, alpha: Num, b: &Dense, beta: Num, c: &Dense) -> Dense {
        Dense::new(self.rows, b.columns, |i, j| {
            let sum = (0..self.columns).fold([0.0; 2], |sum, k| plus(sum, times(self.at(i, k), b.at(k, j))));
            let scaled = if alpha == [0.0; 2] { [0.0; 2] } else { times(alpha, sum) };
            if beta == [0.0; 2] { scaled } else { plus(scaled, times(beta, c.at(i, j))) }
        })
    }
}

pub const NAN: Num = [f64::NAN, f64::NAN];

/// A dense matrix in memory, with gaps.
pub struct DenseMatrix {
    pub descriptor: u64,
    pub buffer: Buffer,
    pub ty: Ty,
    by_rows: bool,
    ld: usize,
    stored: Vec<Num>,
    size: [usize; 2],
    stride: usize,
}

impl DenseMatrix {
    /// One or several of the same size.
    pub fn new(ty: Ty, all: &[Dense], rng: &mut Rng) -> DenseMatrix {
        let (by_rows, gap) = (rng.bool(), rng.usize(..3));
        let size @ [rows, columns] = [all[0].rows, all[0].columns];
        let (lines, length) = if by_rows { (rows, columns) } else { (columns, rows) };
        let ld = length + gap;
        let stride = lines * ld + rng.usize(..4);
        let mut stored = vec![NAN; stride * all.len()];
        for (which, dense) in all.iter().enumerate() {
            for (at, &value) in dense.values.iter().enumerate() {
                let (i, j) = (at / columns, at % columns);
                stored[which * stride + if by_rows { i * ld + j } else { j * ld + i }] = value;
            }
        }
        let (buffer, mut descriptor) = (ty.buffer(&stored), 0);
        let order = if by_rows { 2 } else { 1 };
        ok(
            "cusparseCreateDnMat",
            &[at(&mut descriptor), rows as u64, columns as u64, ld as u64, buffer.address, ty as u64, order],
        );
        if all.len() > 1 {
            ok("cusparseDnMatSetStridedBatch", &[descriptor, all.len() as u64, stride as u64]);
        }
        DenseMatrix { descriptor, buffer, ty, by_rows, ld, stored, size, stride }
    }

    /// Compares with what should be there; gaps must be as they were.
    pub fn check(&self, what: &str, wanted: &[Dense], most: f64) {
        let got = self.ty.read(&self.buffer);
        let mut stored = self.stored.clone();
        for (which, dense) in wanted.iter().enumerate() {
            assert_eq!([dense.rows, dense.columns], self.size);
            for (at, &value) in self.ty.rounded(&dense.values).iter().enumerate() {
                let (i, j) = (at / dense.columns, at % dense.columns);
                stored[which * self.stride + if self.by_rows { i * self.ld + j } else { j * self.ld + i }] =
                    value;
            }
        }
        compare(what, &got, &self.ty.rounded(&stored), most);
    }
}

impl Drop for DenseMatrix {
    fn drop(&mut self) {
        call("cusparseDestroyDnMat", &[self.descriptor]);
    }
}

/// A dense vector in memory.
pub struct DenseVector {
    pub descriptor: u64,
    pub buffer: Buffer,
    pub ty: Ty,
}

impl DenseVector {
    pub fn new(ty: Ty, values: &[Num]) -> DenseVector {
        let (buffer, mut descriptor) = (ty.buffer(values), 0);
        let arguments = [at(&mut descriptor), values.len() as u64, buffer.address, ty as u64];
        ok("cusparseCreateDnVec", &arguments);
        DenseVector { descriptor, buffer, ty }
    }

    pub fn check(&self, what: &str, wanted: &[Num], most: f64) {
        compare(what, &self.ty.read(&self.buffer), &self.ty.rounded(wanted), most);
    }
}

impl Drop for DenseVector {
    fn drop(&mut self) {
        call("cusparseDestroyDnVec", &[self.descriptor]);
    }
}

/// Numbers must be the same, within an error relative to the larger of them and 1.
pub fn compare(what: &str, got: &[Num], wanted: &[Num], most: f64) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (at, (got, want)) in got.iter().zip(wanted).enumerate() {
        for part in 0..2 {
            let (got, want) = (got[part], want[part]);
            let good = got == want
                || got.is_nan() && want.is_nan()
                || (got - want).abs() <= most * want.abs().max(1.0);
            assert!(good, "{what}: number {at} is {got}, not {want}");
        }
    }
}

/// How many random shapes each test has.
pub fn shapes() -> u64 {
    std::env::var("PTXVM_SHAPES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}
