//! `cublasSgemm` of 1024 x 1024 matrices beside the same product by faer, by turns, on one thread and on all.
//!
//! `target/release/ptxvm exec -- cargo run --release --manifest-path benches/peers/Cargo.toml --bin products` prints the rows of
//! benches/RESULTS.md.

use std::ffi::c_void;
use std::time::Instant;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use libloading::{Library, Symbol};

const N: usize = 1024;
const TIMES: usize = 15;

type Address = u64;
type Sgemm = unsafe extern "C" fn(
    *mut c_void,
    i32,
    i32,
    i32,
    i32,
    i32,
    *const f32,
    Address,
    i32,
    Address,
    i32,
    *const f32,
    Address,
    i32,
) -> i32;

/// Calls a function whose status is 0.
macro_rules! ok {
    ($library:expr, $name:literal, $($argument:expr => $ty:ty),*) => {{
        // SAFETY: the functions have these signatures in NVIDIA's headers.
        let function: Symbol<unsafe extern "C" fn($($ty),*) -> i32> = unsafe { $library.get($name) }.expect("it is there");
        // SAFETY: arguments are valid for the function.
        assert_eq!(unsafe { function($($argument),*) }, 0);
    }};
}

fn main() {
    // SAFETY: libraries without surprises when they are loaded.
    let open = |name: &str| unsafe { Library::new(name) }.expect("`ptxvm exec` sets the path");
    let (driver, runtime, cublas) = (open("libcuda.so.1"), open("libcudart.so.12"), open("libcublas.so.12"));
    ok!(driver, b"cuInit", 0 => u32);
    let mut handle = std::ptr::null_mut::<c_void>();
    ok!(cublas, b"cublasCreate_v2", &mut handle => *mut *mut c_void);
    let (mut random, bytes) = (1u32, 4 * N * N);
    let mut numbers = || {
        let next = |_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..N * N).map(next).collect::<Vec<f32>>()
    };
    let host = [numbers(), numbers(), vec![0.0; N * N]];
    let device = host.each_ref().map(|numbers| {
        let mut address = 0;
        ok!(runtime, b"cudaMalloc", &mut address => *mut Address, bytes => usize);
        ok!(runtime, b"cudaMemcpy", address => Address, numbers.as_ptr() as Address => Address, bytes => usize, 1 => i32);
        address
    });
    let [a, b] = [0, 1].map(|i| Mat::from_fn(N, N, |row, column| host[i][column * N + row]));
    let mut c = Mat::<f32>::zeros(N, N);
    // SAFETY: as above.
    let sgemm: Symbol<Sgemm> = unsafe { cublas.get(b"cublasSgemm_v2") }.expect("it is there");
    let ours = || {
        let (one, zero, n) = (1.0, 0.0, N as i32);
        let [a, b, c] = device;
        // SAFETY: three matrices of this size.
        assert_eq!(unsafe { sgemm(handle, 0, 0, n, n, n, &one, a, n, b, n, &zero, c, n) }, 0);
        ok!(runtime, b"cudaDeviceSynchronize",);
    };
    let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
    let mut theirs = || matmul(c.as_mut(), Accum::Replace, a.as_ref(), b.as_ref(), 1.0, par);
    let mut least = [f64::INFINITY; 2];
    for _ in 0..TIMES {
        let start = Instant::now();
        ours();
        let middle = Instant::now();
        theirs();
        let times = [middle - start, middle.elapsed()].map(|time| time.as_secs_f64() * 1e3);
        least = [0, 1].map(|i| least[i].min(times[i]));
    }
    let mut result = vec![0.0f32; N * N];
    ok!(runtime, b"cudaMemcpy", result.as_mut_ptr() as Address => Address, device[2] => Address, bytes => usize, 2 => i32);
    let differ = (0..N * N).filter(|&i| (result[i] - c[(i % N, i / N)]).abs() > 1e-4).count();
    assert_eq!(differ, 0, "elements that differ by more than rounding");
    println!("| threads | cublasSgemm 1024^3 ms | faer ms | ratio |\n|---|---|---|---|");
    println!("| {threads} | {:.2} | {:.2} | {:.2} |", least[0], least[1], least[0] / least[1]);
}
