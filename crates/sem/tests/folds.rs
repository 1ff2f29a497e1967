//! What ptxas 13.5 computes when it folds constants, recorded by `folds/record.py`: the closest thing to hardware.
//!
//! `SEM_TEST_FOLDS` names another file of vectors to check instead.

use test_utils::folds::{check, is_folding_error};

#[test]
fn equal_to_what_ptxas_folds() {
    let file =
        std::env::var("SEM_TEST_FOLDS").map(|path| std::fs::read_to_string(path).expect("a readable file"));
    let vectors = file.as_deref().unwrap_or(include_str!("folds/vectors.txt"));
    let failures: Vec<String> =
        vectors.lines().filter(|line| !is_folding_error(line)).filter_map(|line| check(line).err()).collect();
    assert!(vectors.lines().count() > 1000, "too few vectors");
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
