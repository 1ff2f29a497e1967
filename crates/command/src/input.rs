//! Reading PTX files.

use std::io::Read;
use std::path::Path;

use diag::{Code, Diagnostic, SourceFile, Span};

/// A file that cannot be read.
pub struct Unreadable {
    /// An empty source with the file's name, which the diagnostic refers to.
    pub source: SourceFile,
    /// Why it cannot be read.
    pub diagnostic: Diagnostic,
}

/// A PTX file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<SourceFile, Box<Unreadable>> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = if stdin {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    match result {
        Ok(_) => Ok(SourceFile::from_bytes(name, bytes)),
        Err(error) => {
            let message = format!("cannot read `{name}`: {error}");
            let diagnostic = Diagnostic::error(Code::UnreadableFile, Span::at(0), message);
            Err(Box::new(Unreadable { source: SourceFile::new(name, ""), diagnostic }))
        }
    }
}
