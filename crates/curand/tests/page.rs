//! docs/curand.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-curand --test page` writes it.

use std::fmt::Write;

use ptxvm_curand::{Function, functions};

const HEAD: &str = "\
# The functions of libcurand.so.10

From the declarations in crates/curand, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-curand --test page`. The symbols are those of cuRAND
10.3.10 (CUDA 12.9).

A generator gives the same numbers as NVIDIA's for memory of the host, bit for bit, whatever the machine and the number of threads: what
NVIDIA's library returns is in `conformance/curand.txt`, recorded by a command (`crates/curand/tests/vectors.rs`) and compared in each run of
the tests. Uniform numbers and numbers of Poisson's distribution below 8000 are exact; normal numbers agree within 4 units in the last place
of the larger of the number and 1, their exponentials within 16. A generator of the device gives what one of the host gives. Nothing has been
recorded on a GPU.

## Sequences

| sequence | where number n comes from | what backs it |
|---|---|---|
| XORWOW | default, best, legacy: subsequence n mod 4096; seeded: the sequence of seed + 3133713 (n mod 4096) | NVIDIA's host generators |
| MRG32k3a | default, best: subsequence n mod 81920; legacy: n mod 4096 | NVIDIA's host generators; RngStreams' first number |
| Philox4x32-10 | all orderings: four in turn from subsequence (n / 4) mod 65536 | NVIDIA's host generators; Random123's known answers |
| MTGP32 | 256 in turn of 192 sets of parameters; legacy: of 64 | NVIDIA's host generators |
| MT19937 | row n / 65536 of eight threads of each of 8192 generators | NVIDIA's host generators for n mod 65536 < 8; **the other numbers are not NVIDIA's** |
| Sobol32, Sobol64 | point n of 1 to 20,000 dimensions, one dimension behind the other, in the order of Gray codes | NVIDIA's host generators |
| scrambled Sobol32, Sobol64 | refused: `CURAND_STATUS_TYPE_ERROR` | |

Not verified, or different:

- MT19937: the manual's text of 8192 generators does not say how far apart they are. Ours are 2^1000 numbers apart; NVIDIA's are no power of
  2 up to 2^1199 apart. The first generator is NVIDIA's.
- Numbers of Poisson's distribution with a mean between 1300 and 2000 have the right distribution, and up to some 30 % of them differ from
  NVIDIA's, whose table of aliases begins or ends elsewhere. With a mean of 8000 or more some differ by 1.
- Normal numbers of MTGP32 in double precision have the precision of `f32`, as those of NVIDIA's host generators have it.
- `CURAND_ORDERING_PSEUDO_DYNAMIC` depends on a chip: `CURAND_STATUS_OUT_OF_RANGE`, as for NVIDIA's host generators.
- The functions that make or use tables of discrete distributions for kernels (`curandCreatePoissonDistribution`), and scrambled Sobol
  sequences: how NVIDIA scrambles its direction vectors is not published.

## Functions

| functions | what they do |
|---|---|
";

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = String::from(HEAD);
    let mut known: Vec<_> = functions().filter(|function| function.supported).collect();
    known.sort_by_key(|function| function.symbol);
    for Function { symbol, summary, .. } in known {
        let _ = writeln!(text, "| `{symbol}` | {} |", summary.trim());
    }
    text += "\n## Refused\n\nThese return `CURAND_STATUS_INTERNAL_ERROR` and say so once:\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("curand.md", &page());
}

#[test]
fn all_functions_of_the_library_are_there() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as libcurand.so.10 of CUDA 12.9 exports.
    assert_eq!((symbols.len(), functions().count()), (27, 27));
}
