//! The core instructions on values that ptxas 13.5 and libnvvm 12.9 fold: NaNs, zeros, subnormals, infinities, extremes
//! of integers, both values of the predicate. `cargo xtask record values` recorded them in `conformance/values`.

use std::collections::BTreeMap;

use test_utils::folds::{check, is_folding_error, with_one_nan};
use test_utils::record;

/// Replays a record, of so many vectors and forms at least.
fn replay(name: &str, vectors: usize, least_forms: usize) {
    let text = record::read(name);
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in text.lines() {
        *forms.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        if !is_folding_error(line)
            && let Err(message) = check(&with_one_nan(line))
        {
            failures.push(message);
        }
    }
    let count: usize = forms.values().sum();
    assert!(
        failures.is_empty(),
        "{} of {count} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(40)].join("\n")
    );
    assert!(count >= vectors, "only {count} vectors");
    assert!(forms.len() > least_forms, "only {} forms", forms.len());
}

#[test]
fn equal_to_what_ptxas_folds() {
    replay("values/folds.txt.zst", 100_000, 1000);
}

#[test]
fn equal_to_what_libnvvm_folds() {
    replay("values/libnvvm.txt.zst", 100_000, 1500);
}
