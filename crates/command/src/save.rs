//! Saves arrays atomically: a whole file or none.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::array::{DType, HostArray};
use super::report::say;
use super::{npy, picture};

/// Saves an array in the format of the file's extension. An existing file is kept until the new one is complete.
///
/// # Errors
/// When the file cannot be written.
pub fn save(array: &HostArray, path: &Path) -> io::Result<()> {
    let_large_files_fail();
    let is_other = |data: std::fs::Metadata| !data.is_file();
    if std::fs::symlink_metadata(path).is_ok_and(is_other) {
        // A link, a pipe or a device is written to, not replaced.
        return write(array, path, File::create(path)?);
    }
    let beside = beside(path);
    let file = match File::create_new(&beside) {
        // The folder may not allow new files although the file itself is writable.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path.exists() => {
            return write(array, path, File::options().write(true).truncate(true).open(path)?);
        }
        file => file?,
    };
    let replaced = write(array, path, file).and_then(|()| {
        if let Ok(data) = std::fs::metadata(path) {
            std::fs::set_permissions(&beside, data.permissions())?;
        }
        std::fs::rename(&beside, path)
    });
    if replaced.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    replaced
}

/// Turns exceeding the file size limit into a write error. The signal (SIGXFSZ) would end the process, and leave a
/// partial file.
fn let_large_files_fail() {
    #[cfg(target_os = "linux")]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// The part of a name after its last dot, which determines the format; also for the name `.npy`, which has no
/// extension.
pub fn ending(path: &Path) -> Option<&[u8]> {
    let name = path.file_name()?.as_encoded_bytes();
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    Some(&name[dot + 1..])
}

/// An unused name in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

/// Writes an array in the format that the extension of `path` gives.
fn write(array: &HostArray, path: &Path, file: File) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    match ending(path) {
        Some(b"png") => picture::write(array, &mut file)?,
        Some(b"npy") => npy::write(array, &mut file)?,
        _ => file.write_all(&array.data)?,
    }
    file.flush()?;
    if array.dtype == DType::Bf16 && ending(path) == Some(b"npy") {
        let path = path.display();
        say(format_args!("note: `{path}` holds the bits of bf16 as uint16; read it back with @{path}:bf16"));
    }
    Ok(())
}
