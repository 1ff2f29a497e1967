//! The core instructions on values that ptxas 13.5 folds: NaNs, zeros, subnormals, infinities, extremes of integers,
//! both values of the predicate. `cargo xtask record values` recorded them in `conformance/values`.

#[path = "folds/check.rs"]
mod check;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use check::{check, is_folding_error};

#[test]
fn equal_to_what_ptxas_folds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/values/folds.txt.zst");
    let bytes =
        zstd::decode_all(fs::File::open(path).expect("the record is there")).expect("it is compressed");
    let text = String::from_utf8(bytes).expect("it is text");
    // The first line says how the record was made.
    let vectors = text.lines().skip(1);
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in vectors {
        *forms.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        if !is_folding_error(line)
            && let Err(message) = check(line)
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
    assert!(count >= 100_000, "only {count} vectors");
    assert!(forms.len() > 1000, "only {} forms", forms.len());
}
