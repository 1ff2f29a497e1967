//! The first random kernels: every engine computes the same with them. `cargo kernels` runs as many as one likes.

use generator::{Random, generate, run};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Kernels of an ordinary test run.
const COUNT: u64 = 3000;
/// Seeds that have shown something: parts of a warp came to a native loop of shuffles again and again.
const FOUND: [u64; 1] = [2_016_290];

#[test]
fn engines_agree() {
    let failure = (0..COUNT)
        .into_par_iter()
        .chain(FOUND)
        .find_map_any(|seed| Some((seed, run(&generate(&mut Random::seeded(seed)))?)));
    if let Some((seed, failure)) = failure {
        panic!("{}", failure.text(&format!("Seed {seed}")));
    }
}
