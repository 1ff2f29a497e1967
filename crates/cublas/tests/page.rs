//! docs/cublas.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cublas --test page` writes it.

use std::fmt::Write;

use ptxvm_cublas::{Function, functions};

/// What holds for all functions.
const HEAD: &str = "# The functions of libcublas.so and libcublasLt.so, 12 and 13

From the declarations in crates/cublas, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cublas --test page`. The symbols are those of cuBLAS 12.9 and 13; all \
names are one library.

`ptxvm exec` gives it to a program that links or opens cuBLAS, before NVIDIA's own. It needs ptxvm's [driver](libcuda.md): with another one, \
`cublasCreate` returns `CUBLAS_STATUS_NOT_INITIALIZED` and stderr says why.

- Work runs in the stream of the handle, in order with kernels and copies, on all cores. A stream that captures a graph gets a node. With pointer mode \
`DEVICE`, scalars are read when the work runs.
- A matrix that is longer than its allocation is `CUBLAS_STATUS_INVALID_VALUE`. stderr names the function, the matrix, what it needs and what there \
is, and the report of `ptxvm exec` counts it as a fault. A batch whose pointers are in device memory is checked when it runs, and breaks the context.
- With `alpha` of 0 the factors are not read, with `beta` of 0 the result is not. What a function must not read (gaps between columns, the other \
triangle, a unit diagonal) it does not.
- Not like NVIDIA's: matrices must be in one allocation, aligned to their numbers; memory that `cuMemMap` maps piece by piece is refused where a matrix \
crosses pieces that do not lie together. Level 3 copies triangular, symmetric and Hermitian matrices, so it needs as much memory again. The workspace of `cublasSetWorkspace` is not used.

## The order of sums

Results have the same bits for any number of threads, and on every machine whose processor has FMA (x86-64 since 2013, AArch64). Elsewhere \
each product is rounded before it is added.

| functions | sums |
|---|---|
| `gemm` in all forms, `gemv` in all forms, `symm`, `hemm`, `syrk`, `herk` and the like | `k` is cut into the fewest blocks of at most 512, as even as can be, longer ones first. A block is one chain `sum = fma(a, b, sum)` from 0, in ascending order. The sums of blocks are added in ascending order. Then `alpha` multiplies the sum, and `beta C` is added. |
| complex ones of these | four real products: in each block `re re`, then `- im im` for the real part; `re im`, then `im re` for the imaginary part. `gemm3m` is the same. |
| `trmm`, `trsm` in all forms | blocks of 64 rows: those of the diagonal in ascending order, products and sums rounded separately; the rest as `gemm`, added to that (`trmm`) or subtracted first (`trsm`). |
| `dot`, `asum`, `nrm2` | parts of 4096 elements, each 8 sums of the elements whose index has the same rest; these pairwise, the parts in ascending order. `nrm2` is computed in double precision. |
| level 2 but `gemv` | ascending order of columns; for systems of equations in the order of the solution. |
| `getrf`, `geqrf` and the like | column by column, as LAPACK's unblocked routines do. |

## Bounds of errors

With `u` the unit of rounding of the type in which sums are made (2^-24 for singles, halves and brain floats, 2^-53 for doubles), `gamma(n) = n u / (1 - n u)`, and \
`|A|` the magnitudes of A, an element of `alpha A B + beta C` is within `gamma(k + 4) (|alpha| |A| |B| + |beta| |C|)` of the exact value, for complex numbers \
within `gamma(2 k + 8)` with magnitudes `|re| + |im|`. Triangular systems have residuals within `2 gamma(n + 8) |A| |X|`. The \
tests compare with sums in twice the precision: `PTXVM_SHAPES=10000 cargo test -p ptxvm-cublas --test differential` (last run 2026-11-29).

| computation | what is rounded |
|---|---|
| `CUBLAS_COMPUTE_32F` on halves or brain floats | sums are singles; the result is rounded once, to nearest even. |
| `CUBLAS_COMPUTE_16F` | as `CUBLAS_COMPUTE_32F`, which is more exact than a GPU. |
| `CUBLAS_COMPUTE_32F_FAST_TF32`, `CUBLAS_TF32_TENSOR_OP_MATH` | factors are rounded as `cvt.rna.tf32.f32` does, to 10 bits of fraction, ties away from zero. |
| `CUBLAS_COMPUTE_32F_FAST_16F`, `_FAST_16BF`, emulated ones | nothing: as `CUBLAS_COMPUTE_32F` or `_64F`, of which they are permitted approximations. |
| `CUBLAS_COMPUTE_32I` | nothing: integers are exact, and wrap around. |

`GemmEx` and the like take `f16`, `bf16`, `int8` (to `int32` or `float`), `float`, `double`, `cuComplex` and `cuDoubleComplex`; other types are \
`CUBLAS_STATUS_NOT_SUPPORTED`.

## cuBLASLt

The same file is `libcublasLt.so.12` and `.13`, because a handle of cuBLAS is also one of cuBLASLt. There is one algorithm, under any number; it needs no workspace, \
and what a program chooses of it (tiles, stages, split sums) is remembered without effect. The sums are those of `gemm`.

- **Layouts**: by columns, by rows, and the three orders of tiles (`COL32`, `COL4_4R2_8C`, `COL32_2R_4R4`), all in `cublasLtMatmul` and `cublasLtMatrixTransform`; \
batches at strides or by pointers. Planar complex matrices and groups are refused.
- **Types** (A and B, then C and D): halves, brain floats, singles, doubles, both complex ones; halves and brain floats to singles; int8 to int32, int8 or singles; \
E4M3 and E5M2 (not both E5M2), with C of halves, brain floats or singles and D of these or of 8 bits. What is too large for 8 bits becomes the largest finite number.
- **Scales**: one for each matrix, or one for each row of A and each column of B (`OUTER_VEC_32F`). `AMAX_D` is the largest magnitude before the scale of D. \
Block scales and 4-bit types are refused.
- **Factors**: in memory of the host or of the device, one for each row too.
- **Epilogues**: bias, ReLU and GELU with and without the matrix beside the result, their gradients, gradients of the bias (`BGRADA` and `BGRADB` as well), for \
real results. GELU is the approximation by a hyperbolic tangent, computed in double precision. The sums of a bias's gradient are in ascending order.
- Unverified, as no machine with a GPU was asked: that a bit of ReLU's mask is set where the argument is greater than 0 (rather than not less), and lies lowest \
first; that `D` of int8 rounds ties to even.

## What they do

A name with `_64` behind it takes 64-bit integers and does the same; it is left out here.

| functions | what they do |
|---|---|
";

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for Function { symbol, summary, .. } in functions().filter(|function| function.supported) {
        if symbol.ends_with("_64") {
            continue;
        }
        match known.last_mut().filter(|(last, _)| last == summary) {
            Some((_, symbols)) => symbols.push(symbol),
            None => known.push((summary, vec![symbol])),
        }
    }
    for (summary, symbols) in known {
        let symbols: Vec<_> = symbols.iter().map(|symbol| format!("`{symbol}`")).collect();
        let _ = writeln!(text, "| {} | {} |", symbols.join(" "), summary.trim());
    }
    text += "\n## What is refused\n\nThese return `CUBLAS_STATUS_NOT_SUPPORTED`, and say so once on stderr: functions without handles, of before cuBLAS 4; \
             `cublasXt`, which divides work among devices; `cublasLt` for groups; and a few without a manual.\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("cublas.md", &page());
}

#[test]
fn no_function_is_declared_twice() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as cuBLAS 12.4 exports, 14 newer ones, and 62 of cuBLASLt.
    assert_eq!((symbols.len(), functions().count()), (754 + 62, 754 + 62));
    assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
}
