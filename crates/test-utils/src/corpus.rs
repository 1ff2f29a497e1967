//! Where the corpus is: a folder of PTX that compilers wrote, in sub-folders of any depth.

use std::path::{Path, PathBuf};

/// The folder that `PTXVM_CORPUS` names, or `target/corpus`; relative to the root of the repository.
pub fn path() -> PathBuf {
    let named = std::env::var_os("PTXVM_CORPUS").filter(|name| !name.is_empty());
    crate::root().join(named.unwrap_or_else(|| "target/corpus".into()))
}

/// The folder, if it is there; says how to make it otherwise.
pub fn found() -> Option<PathBuf> {
    let corpus = path();
    if !corpus.is_dir() {
        eprintln!("{MISSING}");
        return None;
    }
    Some(corpus)
}

/// What a test says that finds no corpus.
pub const MISSING: &str = "there is no corpus: `cargo xtask corpus` makes one in target/corpus, and PTXVM_CORPUS names another folder";

/// The PTX files in a folder and its sub-folders, in the order of their paths.
pub fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
