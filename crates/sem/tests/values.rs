//! The core instructions on values that ptxas 13.5 and libnvvm 12.9 fold: NaNs, zeros, subnormals, infinities, extremes
//! of integers, both values of the predicate. `cargo xtask record values` recorded them in `conformance/values`.

#[path = "folds/check.rs"]
mod check;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use check::{check, is_folding_error, with_one_nan};

/// Replays a record, of so many vectors and forms at least.
fn replay(name: &str, vectors: usize, least_forms: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/values").join(name);
    let bytes =
        zstd::decode_all(fs::File::open(path).expect("the record is there")).expect("it is compressed");
    let text = String::from_utf8(bytes).expect("it is text");
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    // The first line says how the record was made.
    for line in text.lines().skip(1) {
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
    replay("folds.txt.zst", 100_000, 1000);
}

#[test]
fn equal_to_what_libnvvm_folds() {
    replay("libnvvm.txt.zst", 100_000, 1500);
}
