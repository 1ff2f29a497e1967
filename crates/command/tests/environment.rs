//! docs/environment.md lists each variable `PTXVM_*` that code or tests read, and no other.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::root;
use regex::Regex;

/// The files of a folder that may read variables.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, files);
        } else if name.ends_with(".rs") || name.ends_with(".py") {
            files.push(path);
        }
    }
}

#[test]
fn the_page_has_every_variable() {
    let mut files = Vec::new();
    for folder in ["crates", "benches", "exhaustive", "fuzz", "generator", "litmus", "xtask"] {
        sources(&root().join(folder), &mut files);
    }
    let quoted = Regex::new(r#"["'](PTXVM_[A-Z_]*[A-Z])\b"#).unwrap();
    let mut read = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        read.extend(quoted.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    let page = std::fs::read_to_string(root().join("docs/environment.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `(PTXVM_[A-Z_]+)`").unwrap();
    let listed: BTreeSet<_> = row.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    assert!(read.len() > 20);
    assert_eq!(read, listed, "read by code (left), in the tables of docs/environment.md (right)");
}
