//! docs/cusolver.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cusolver --test page` writes it.

use std::fmt::Write;

use ptxvm_cusolver::{Function, functions};

/// What holds for all functions.
const HEAD: &str = "# The functions of libcusolver.so.11 and .12

From the declarations in crates/cusolver, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cusolver --test page`. The symbols are those of cuSOLVER 11.7 (CUDA 12.9) \
and 12.4 (CUDA 13); both names are one library.

`ptxvm exec` gives it to a program that links or opens cuSOLVER, before NVIDIA's own. It needs ptxvm's [driver](libcuda.md): with another one, \
`cusolverDnCreate` returns `CUSOLVER_STATUS_NOT_INITIALIZED` and stderr says why.

- Work runs in the stream of the handle, in order with kernels and copies, on all cores. A stream that captures a graph gets a node.
- A matrix that is longer than its allocation is `CUSOLVER_STATUS_INVALID_VALUE`. stderr names the function, the matrix, what it needs and what there \
is, and the report of `ptxvm exec` counts it as a fault. A batch whose pointers are in device memory is checked when it runs, and breaks the context.
- `devInfo` is as the manual has it: 0, the first pivot or minor that fails from 1, or how many values have not been found. For a wrong \
argument only the status says so, and `devInfo` is not written. A null pointer is allowed.
- Workspaces must be as long as the `bufferSize` functions say, and allocated; nothing is written there. The workspace of the host may be empty.
- What is not a result is not written: the other triangle of a matrix of which one is named, gaps between columns. The other triangle is not read.
- Not like NVIDIA's: a matrix must be in one allocation. The work needs as much memory again as the matrices.

## How it is computed

| functions | algorithm |
|---|---|
| `potrf`, `getrf`, `geqrf` and what uses their factors | LAPACK's, in blocks of 48 columns (QR: 32): pivots are the first of the largest `|re| + |im|` of a column. |
| `syevd`, `syevdx`, `syevj`, `sygvd` and their kin | Householder's tridiagonal form, then implicit QL steps in double precision. A range is chosen from all values. `syevj` is not Jacobi's method: \
its tolerance and sweeps are remembered, it tells 1 sweep and the residual that it has reached, and values always ascend. |
| `cusolverDnXgeev` | Hessenberg's form, then Francis' steps (of complex matrices, steps with one shift) in double precision, and vectors by substitution. Nothing is \
balanced. Values stand as on the diagonal of Schur's form. Left vectors are `CUSOLVER_STATUS_INVALID_VALUE`. |
| `gesvd`, `gesvdj`, `gesvdaStridedBatched`, `gesvdp`, `gesvdr` | Golub and Kahan's bidiagonal form (of R, if there are many more rows than columns), then the steps of Demmel and Kahan in double precision. All \
are exact to the same bound: nothing is perturbed, approximated or sampled. |
| `gesv` and `gels` of mixed precision | factors in the type of the matrix: nothing is refined, and the iterations that they tell are 0. |
| `csrlsvqr`, `csrlsvchol`, `csrlsvlu` | factors of the dense matrix, so the order is at most 8192 (beyond it, `CUSOLVER_STATUS_ALLOC_FAILED`). They wait for the result. |
| `sytrd`, `gebrd` and what makes their matrices | Householder's, column by column; an upper triangle in the reverse order of rows and columns, as LAPACK's. |

Large matrices are multiplied with a power of two first, if squares of their elements would overflow or vanish. Methods that iterate stop after \
60 steps for an eigenvalue, or 6 n^2 rotations for singular values, so a NaN ends as `devInfo` > 0.

## The order of sums

Results have the same bits for any number of threads, and on every machine whose processor has FMA. Products of blocks are those of [cuBLAS](cublas.md#the-order-of-sums). \
Sums along vectors are eight chains, of the elements whose index has the same rest, added pairwise; products and sums are rounded separately. \
Nothing is computed by functions of C's mathematical library.

## Bounds of errors

With `u` the unit of rounding of the type (2^-24, 2^-53), `n` the larger size and `c = 40 (n + 4) u`: every element of `A - L L^H`, `A - Q R`, `A - U S V^H` and \
`A - V W V^H` is within `c |A|` (Frobenius norm; the least normal number of the type, if it is larger), of `P A - L U` within `c |L| |U|`. `Q`, `U` and `V` are unitary within `c`. Eigenvalues and singular values \
are within `c |A|`. `A V - V W` of a matrix without symmetry is within `c |A|`, too. Residuals of solutions are within `c |A| (1 + |X|)`, with factors LU `c |L| |U| (1 + |X|)`. The tests check all this with products of twice the precision, \
and spectra that are known because the matrix was made from them: `PTXVM_SHAPES=10000 cargo test -p ptxvm-cusolver --test differential` (last run 2026-11-30).

## What they do

| functions | what they do |
|---|---|
";

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for Function { symbol, summary, .. } in functions().filter(|function| function.supported) {
        match known.last_mut().filter(|(last, _)| last == summary) {
            Some((_, symbols)) => symbols.push(symbol),
            None => known.push((summary, vec![symbol])),
        }
    }
    for (summary, symbols) in known {
        let symbols: Vec<_> = symbols.iter().map(|symbol| format!("`{symbol}`")).collect();
        let _ = writeln!(text, "| {} | {} |", symbols.join(" "), summary.trim());
    }
    text += "\n## What is refused\n\nThese return `CUSOLVER_STATUS_NOT_SUPPORTED`, and say so once on stderr.\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("cusolver.md", &page());
}

#[test]
fn no_function_is_declared_twice() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as cuSOLVER 11.7 and 12.4 export together.
    assert_eq!((symbols.len(), functions().count()), (942, 942));
    assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
}
