//! Keeps the PTX that a program loads (`PTXVM_SAVE_PTX`, `ptxvm exec --save-ptx`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::log::log;

/// Most bytes of a kernel's name in the name of a file.
const NAME_BYTES: usize = 80;

/// Writes PTX to the folder that `PTXVM_SAVE_PTX` names, if it is set. A text has the same file name in each process,
/// so that the processes of a program write it once.
pub fn keep(text: &[u8]) {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let wanted = || std::env::var_os("PTXVM_SAVE_PTX").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let Some(folder) = FOLDER.get_or_init(wanted) else { return };
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if let Err(error) = write(folder, &text[..end]) {
        log!(error, "PTXVM_SAVE_PTX: cannot write to {}: {error}", folder.display());
    }
}

fn write(folder: &Path, text: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let file = folder.join(file_name(text));
    match file.exists() {
        true => Ok(()),
        false => std::fs::write(file, text),
    }
}

/// The first kernel's name and a number that depends on the text.
fn file_name(text: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let lossy = String::from_utf8_lossy(text);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let after_entry = lossy.split_once(".entry").map_or("", |(_, rest)| rest.trim_start());
    let kernel: String = after_entry.chars().take_while(|&c| is_part(c)).take(NAME_BYTES).collect();
    let kernel = if kernel.is_empty() { "module" } else { &kernel };
    format!("{kernel}-{:016x}.ptx", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_file_named_after_its_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let text = b".version 8.0\n.target sm_80\n.visible .entry _Z5saxpyfPKf(\n.param .u64 x)\n{ ret; }\n";
        let other = b".version 8.0\n.target sm_80\n.func f()\n{ ret; }\n";
        for text in [&text[..], other, text] {
            write(&folder.path().join("new"), text).unwrap();
        }
        let files = std::fs::read_dir(folder.path().join("new")).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, [file_name(text), file_name(other)]);
        assert!(names[0].starts_with("_Z5saxpyfPKf-") && names[1].starts_with("module-"), "{names:?}");
        assert_eq!(std::fs::read(folder.path().join("new").join(&names[0])).unwrap(), text);
    }
}
