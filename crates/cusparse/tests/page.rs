//! docs/cusparse.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cusparse --test page` writes it.

use std::fmt::Write;

use ptxvm_cusparse::{Function, functions};

/// What holds for all functions.
const HEAD: &str = "# The functions of libcusparse.so.12

From the declarations in crates/cusparse, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cusparse --test page`. The functions are those of cuSPARSE 12.5 (CUDA 12.9).

`ptxvm exec` gives it to a program that links or opens cuSPARSE, before NVIDIA's own. It needs ptxvm's [driver](libcuda.md): with another one, \
`cusparseCreate` returns `CUSPARSE_STATUS_NOT_INITIALIZED` and stderr says why.

- Work runs in the stream of the handle, in order with kernels and copies, on all cores. A stream that captures a graph gets a node. A sum for \
the host is written whenever the graph has run. Functions that return counts to the host wait for the stream, so a stream that captures cannot have them.
- Matrices may be CSR, CSC, COO, BSR, Blocked-ELL and Sliced-ELL where the manual's tables have them, with indices of 32 and 64 bits from 0 or 1. Rows need \
not be sorted, and may have an element twice, which then counts as the sum. An index below the base is padding in the two ELL formats.
- Numbers are `float`, `double` and their complex types; products also take `__half` and `__nv_bfloat16` with sums of `float`, and integers of 8 bits \
with sums of 32. Complex numbers of 16 bits are `CUSPARSE_STATUS_NOT_SUPPORTED`.
- Offsets and indices are checked when the work runs: one that is out of range is a fault that names the matrix, the index and the limits, and nothing is \
read or written beyond the arrays. The first offset of a matrix must be its base.
- An array that is shorter than its matrix needs is `CUSPARSE_STATUS_INVALID_VALUE`. stderr says what it needs and what there is, and the report of \
`ptxvm exec` counts it as a fault.
- With `beta` 0 results are not read; with `alpha` 0 the factors are not. In the analysis of a triangular system, the matrix is taken from memory; new \
values count when `updateMatrix` passes them. An element of the diagonal that is missing is 0.
- No function needs device memory: sizes of buffers are 0, or 256 where a program takes a null pointer for the question how large the buffer must be.
- The entries of a product of sparse matrices are in the order of columns. A product of more than 2^28 entries is \
`CUSPARSE_STATUS_INSUFFICIENT_RESOURCES`; so is a matrix, other than CSR, of more than 2^26 rows beyond its values.
- Unverified, because nothing here answers for it: which code an argument has that is wrong in two ways; how elements of several blocks of Blocked-ELL lie \
in a row (here by rows of the whole matrix).

## Sums

Sums are in the order of a row's entries; products and sums are rounded separately in the compute type, and the result is rounded once to its own type. So \
results have the same bits for any number of threads. Sums of integers are computed as `double`, exactly below 2^53. With `u` the unit of rounding and \
`n` the terms of a sum, the error of a real result is within `(n + 4) u / (1 - (n + 4) u)` of the sum of the terms' magnitudes. \
The tests compare with dense sums: `PTXVM_SHAPES=10000 cargo test -p ptxvm-cusparse --test differential` (last run 2026-11-29).

## What they do

| functions | what they do |
|---|---|
";

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = HEAD.to_owned();
    for Function { symbol, summary, .. } in functions().filter(|function| function.supported) {
        let _ = writeln!(text, "| `{symbol}` | {} |", summary.trim());
    }
    text += "\n## What is refused\n\nThese return `CUSPARSE_STATUS_NOT_SUPPORTED`, and say so once on stderr: operations that a program passes as machine code.\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("cusparse.md", &page());
}

#[test]
fn all_functions_of_the_library_are_there() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as libcusparse.so.12 of CUDA 12.9 exports.
    assert_eq!((symbols.len(), functions().count()), (423, 423));
    assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
}
