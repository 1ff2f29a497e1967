//! The first random kernels: every engine computes the same with them. `cargo kernels` runs as many as one likes.

use generator::{Random, generate, run};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Kernels of an ordinary test run.
const COUNT: u64 = 3000;

#[test]
fn engines_agree() {
    let failure = (0..COUNT)
        .into_par_iter()
        .find_map_any(|seed| Some((seed, run(&generate(&mut Random::seeded(seed)))?)));
    if let Some((seed, failure)) = failure {
        panic!("{}", failure.text(&format!("Seed {seed}")));
    }
}
