//! Algorithms: there is one, which does all that the library does. What the program chooses of it is remembered, without effect.

use caller::Out;
use mathlib::api;

use super::descriptor::{self, descriptor, give};
use super::matmul::{Program, Types};
use crate::declare::Ptr;
use crate::handle::{Cublas, Handle};
use crate::operand::kind;
use crate::status::Status;

descriptor! {
    /// An algorithm (`cublasLtMatmulAlgo_t`), and what the program has chosen of it.
    Algorithm, b"LtAl";
    0 id: i32, i32 = 0;
    1 tile: u32, u32 = 0;
    2 splits: u32, u32 = 0;
    3 reduction: u32, u32 = 0;
    4 swizzling: u32, u32 = 0;
    5 option: u32, u32 = 0;
    6 stages: u32, u32 = 0;
    7 inner_shape: u16, u16 = 0;
    8 cluster_shape: u16, u16 = 0;
}

const _: () = assert!(size_of::<Algorithm>() <= 64);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace: usize,
    state: Status,
    waves: f32,
    reserved: [i32; 4],
}

impl Heuristic {
    /// The algorithm, for what it can do or cannot.
    fn of(algorithm: Algorithm, state: Status) -> Heuristic {
        let mut result = Heuristic { algorithm: [0; 8], workspace: 0, state, waves: 1.0, reserved: [0; 4] };
        // SAFETY: the object has room there.
        unsafe { (&raw mut result.algorithm).cast::<Algorithm>().write_unaligned(algorithm) };
        result
    }
}

/// An ability of the algorithm, of a type that the number of the attribute decides.
fn ability(attribute: u32, to: Ptr, bytes: usize, written: Out<usize, Cublas>) -> Result<(), Status> {
    // Every epilogue's bits, and every pointer mode's.
    let (epilogues, pointer_modes) = (0x3ff, 0x1f);
    // SAFETY: the program promises so many bytes.
    unsafe {
        match attribute {
            // Split sums, swizzling, triangles, options, kinds of mathematics, negative leading dimensions, synchronisation, emulation,
            // groups: none.
            0 | 2 | 5 | 7 | 8 | 9 | 14 | 20 | 22 | 23 => give(0_i32, to, bytes, written),
            1 => give(0_u32, to, bytes, written),
            // Batches at strides and by pointers, a result beside C, orders of their own.
            3 | 4 | 10 | 21 => give(1_i32, to, bytes, written),
            // Tiles and stages: one of each, which has no name.
            6 | 13 => give(0_u32, to, bytes, written),
            11 => give(pointer_modes, to, bytes, written),
            12 => give(epilogues, to, bytes, written),
            // Fused multiplication and addition.
            15 => give(1_u64, to, bytes, written),
            16..=19 => give(1_u32, to, bytes, written),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// Suggests an algorithm.
fn suggest(
    handle: Ptr,
    product: Ptr,
    layouts: [Ptr; 4],
    preference: Ptr,
    wanted: i32,
    results: Ptr,
    found: Out<i32, Cublas>,
) -> Result<(), Status> {
    Handle::of(handle)?;
    if results.is_null() || found.is_null() || wanted < 1 {
        return Err(Status::INVALID_VALUE);
    }
    descriptor::read::<descriptor::Preference>(preference)?;
    let result = Program::read(product, layouts);
    found.write(result.is_ok().into())?;
    result?;
    // SAFETY: the program promises room for so many results.
    unsafe {
        results.cast::<Heuristic>().write_unaligned(Heuristic::of(Algorithm::default(), Status::SUCCESS))
    };
    Ok(())
}

/// Says whether an algorithm can do what descriptions say.
fn check(handle: Ptr, product: Ptr, layouts: [Ptr; 4], algorithm: Ptr, result: Ptr) -> Result<(), Status> {
    Handle::of(handle)?;
    let algorithm = descriptor::read::<Algorithm>(algorithm)?;
    Program::read(product, layouts)?;
    if result.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the program promises room for a result.
    unsafe { result.cast::<Heuristic>().write_unaligned(Heuristic::of(algorithm, Status::SUCCESS)) };
    Ok(())
}

api! { API: Status, name;
    /// Suggests an algorithm: the one there is, if the library can do what the descriptions say.
    cublasLtMatmulAlgoGetHeuristic (handle: Ptr, product: Ptr, a: Ptr, b: Ptr, c: Ptr, d: Ptr, preference: Ptr, wanted: i32, results: Ptr, found: Out<i32, Cublas>) {
        suggest(handle, product, [a, b, c, d], preference, wanted, results, found)
    }
    /// The same, for a stream.
    cublasLtMatmulAlgoGetHeuristicForStream (handle: Ptr, product: Ptr, a: Ptr, b: Ptr, c: Ptr, d: Ptr, preference: Ptr, wanted: i32, results: Ptr, found: Out<i32, Cublas>, _stream: Ptr) {
        suggest(handle, product, [a, b, c, d], preference, wanted, results, found)
    }
    /// The numbers of algorithms for such types: 0.
    cublasLtMatmulAlgoGetIds (handle: Ptr, compute: u32, scale: u32, a: u32, b: u32, c: u32, d: u32, wanted: i32, ids: Out<i32, Cublas>, found: Out<i32, Cublas>) {
        Handle::of(handle)?;
        if wanted < 1 {
            return Err(Status::INVALID_VALUE);
        }
        Types::of(compute, scale, [kind(a)?, kind(b)?, kind(c)?, kind(d)?])?;
        ids.write(0)?;
        found.write_if_wanted(1);
        Ok(())
    }
    /// The algorithm with a number: programs know those of NVIDIA's, and all are the same here.
    cublasLtMatmulAlgoInit (handle: Ptr, compute: u32, scale: u32, a: u32, b: u32, c: u32, d: u32, id: i32, algorithm: Out<[u64; 8], Cublas>) {
        Handle::of(handle)?;
        if id < 0 {
            return Err(Status::INVALID_VALUE);
        }
        Types::of(compute, scale, [kind(a)?, kind(b)?, kind(c)?, kind(d)?])?;
        algorithm.write(Heuristic::of(Algorithm { id, ..Algorithm::default() }, Status::SUCCESS).algorithm)
    }
    /// Whether the algorithm can do what the descriptions say.
    cublasLtMatmulAlgoCheck (handle: Ptr, product: Ptr, a: Ptr, b: Ptr, c: Ptr, d: Ptr, algorithm: Ptr, result: Ptr) {
        check(handle, product, [a, b, c, d], algorithm, result)
    }
    /// The same, for a stream.
    cublasLtMatmulAlgoCheckForStream (handle: Ptr, product: Ptr, a: Ptr, b: Ptr, c: Ptr, d: Ptr, algorithm: Ptr, result: Ptr, _stream: Ptr) {
        check(handle, product, [a, b, c, d], algorithm, result)
    }
    /// What the algorithm can do.
    cublasLtMatmulAlgoCapGetAttribute (algorithm: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        descriptor::read::<Algorithm>(algorithm)?;
        ability(attribute, value, bytes, written)
    }
    /// Chooses something of the algorithm: remembered, without effect.
    cublasLtMatmulAlgoConfigSetAttribute (algorithm: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        // Its number is not chosen.
        if attribute == 0 {
            return Err(Status::INVALID_VALUE);
        }
        descriptor::set::<Algorithm>(algorithm, attribute, value, bytes)
    }
    /// What was chosen of the algorithm.
    cublasLtMatmulAlgoConfigGetAttribute (algorithm: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        descriptor::get::<Algorithm>(algorithm, attribute, value, bytes, written)
    }
}
