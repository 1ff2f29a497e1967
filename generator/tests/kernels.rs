//! The first random kernels: every engine computes the same with them. `cargo kernels` runs as many as one likes.

use generator::run_seed;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Kernels of an ordinary test run.
const COUNT: u64 = 3000;

#[test]
fn engines_agree() {
    let failure = (0..COUNT).into_par_iter().find_map_any(|seed| Some((seed, run_seed(seed).1?)));
    if let Some((seed, failure)) = failure {
        panic!("{}", failure.text(seed));
    }
}
