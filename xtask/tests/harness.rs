//! A library that is built without a harness for tests (`test = false`) has none inside: cargo would not run them.

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn libraries_without_a_harness_have_no_tests_inside() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut without = 0;
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let library = manifest.split("[lib]").nth(1).and_then(|rest| rest.split("\n[").next());
        if !library.is_some_and(|library| library.contains("\ntest = false")) {
            continue;
        }
        without += 1;
        for path in
            files(&folder.join("src")).iter().filter(|path| path.extension().is_some_and(|e| e == "rs"))
        {
            let text = fs::read_to_string(path).unwrap();
            assert!(!text.contains("#[test]") && !text.contains("cfg(test)"), "{} has tests", path.display());
        }
    }
    assert!(without > 10, "{without} libraries");
}
