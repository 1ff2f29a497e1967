//! Programs and libraries in C, which need `gcc`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source with more words for gcc to a file of a folder.
///
/// # Panics
/// When there is no gcc, or it has errors.
pub fn compile(folder: &Path, source: &str, name: &str, words: &[&str]) -> PathBuf {
    let (text, made) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&text, source).expect("a source");
    let compiled = Command::new("gcc").arg(&text).args(words).arg("-o").arg(&made).output().expect("gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    made
}
