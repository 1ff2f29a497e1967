//! Every litmus test, some thousand times: nothing comes out that the model forbids, and what is accessed at once is whole.
//! `cargo litmus` runs them as often as one likes.

use litmus::{run, variants};

/// Runs of each test.
const RUNS: u64 = if cfg!(debug_assertions) { 2000 } else { 20_000 };

/// One test in `shares`, from `first` on.
fn share(first: usize, shares: usize) {
    for variant in variants().iter().skip(first).step_by(shares) {
        let tally = run(variant, RUNS).unwrap_or_else(|error| panic!("{}: {error}", variant.name));
        let forbidden = &tally.forbidden;
        assert!(forbidden.is_empty(), "{}: {forbidden:?} of {:?}", variant.name, tally.seen);
    }
}

#[test]
fn nothing_forbidden_comes_out() {
    share(0, 2);
}

#[test]
fn nothing_forbidden_comes_out_of_the_others() {
    share(1, 2);
}
