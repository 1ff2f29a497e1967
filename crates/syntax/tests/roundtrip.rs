//! Files that parse without a word, print, and parse to the same tree again: those of `tests/roundtrip`, and where it
//! is there the corpus of what compilers wrote (`tests/corpus/README.md`).

use std::path::{Path, PathBuf};

use diag::{Color, SourceFile, render};
use test_utils::{corpus, root};

/// What is wrong with a file.
fn complaint(path: &Path) -> Option<String> {
    let source =
        SourceFile::from_bytes(path.display().to_string(), std::fs::read(path).expect("a readable file"));
    let (tree, diagnostics) = syntax::parse(&source);
    if let Some(first) = diagnostics.first() {
        return Some(render(&source, first, Color::Never));
    }
    let printed = SourceFile::new("printed", tree.to_string());
    let (again, diagnostics) = syntax::parse(&printed);
    if let Some(first) = diagnostics.first() {
        return Some(format!("{} as printed: {}", path.display(), render(&printed, first, Color::Never)));
    }
    if again != tree {
        return Some(format!("{}: the tree changed", path.display()));
    }
    (again.to_string() != printed.text()).then(|| format!("{}: the print changed", path.display()))
}

fn check(files: &[PathBuf]) {
    let complaints: Vec<String> = files.iter().filter_map(|path| complaint(path)).collect();
    assert!(
        complaints.is_empty(),
        "{} of {} files:\n{}",
        complaints.len(),
        files.len(),
        complaints.join("\n")
    );
}

#[test]
fn own_files() {
    let files = corpus::ptx_files(&root().join("tests/roundtrip"));
    assert!(files.len() >= 5, "tests/roundtrip is gone");
    check(&files);
}

#[test]
fn corpus() {
    let files = corpus::ptx_files(&corpus::path());
    if files.is_empty() {
        eprintln!("skipped: 1 test, roundtrip::corpus, because {}", corpus::MISSING);
        return;
    }
    check(&files);
    println!("{} files of the corpus parse, print and parse to the same tree", files.len());
}
