//! docs/cufft.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cufft --test page` writes it.

use std::fmt::Write;

use ptxvm_cufft::{Function, functions};

/// What holds for all functions.
const HEAD: &str = "# The functions of libcufft.so.11 and .12

From the declarations in crates/cufft, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-cufft --test page`. The functions are those of cuFFT 11.4 (CUDA 12) and 12 \
(CUDA 13); both names are one library.

`ptxvm exec` gives it to a program that links or opens cuFFT, before NVIDIA's own. It needs ptxvm's [driver](libcuda.md): with another one, making a plan \
returns `CUFFT_SETUP_FAILED` and stderr says why.

- Work runs in the stream of the plan, in order with kernels and copies, on all cores. A stream that captures a graph gets a node, which needs the plan no more.
- Sizes of all lengths are transformed, in one to three dimensions, in batches, with the strides and distances of `cufftPlanMany`. Numbers are `float` and \
`double`, and with the functions of `cufftXt` also `__half` and `__nv_bfloat16`, whose sizes must be powers of two, as the manual says.
- In place, rows of real numbers have the length that the complex ones need, unless the program chooses a layout.
- Of the complex numbers that become real ones, imaginary parts that must be zero are not read.
- A transform that is longer than its memory is `CUFFT_EXEC_FAILED`. stderr says what it needs and what there is, and the report of `ptxvm exec` counts \
it as a fault.
- Plans need no device memory: all sizes of work areas are 0. While a transform runs, it needs up to some three times its size in memory of the host.
- Unverified, because nothing here answers for it: which code an argument has that is wrong in two ways, and `CUFFT_INVALID_TYPE` where a plan is run by a \
function for another type.

## Errors

The crates [rustfft](https://crates.io/crates/rustfft) and [realfft](https://crates.io/crates/realfft) do the arithmetic, without instructions that only some \
machines have: results have the same bits on every machine and for any number of threads. With `u` the unit of rounding (2^-24 for `float`, 2^-53 for \
`double`) and `N` the number of values of a transform, the root of the sum of squared errors is within `4 u (1 + log2 N)` of that of the squared \
results. Numbers of 16 bits are transformed as `float` and rounded once, at the end, which is more exact than a GPU: within 1.5 of their unit. \
The tests compare with the sums of the definition: `PTXVM_SHAPES=10000 cargo test -p ptxvm-cufft --test transforms` (last run 2026-11-29: at most 0.66 of these \
bounds).

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
    text += "\n## What is refused\n\nThese return `CUFFT_NOT_SUPPORTED`, and say so once on stderr: callbacks, which are machine code of the program, \
             transforms that several devices share, and two functions without a manual.\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("cufft.md", &page());
}

#[test]
fn all_functions_of_the_library_are_there() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as libcufft.so.11 of CUDA 12.9 exports, and two of cuFFTMp.
    assert_eq!((symbols.len(), functions().count()), (61, 61));
    assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
}
