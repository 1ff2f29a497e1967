//! Saving arrays: whole files or none.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::array::{DType, HostArray};
use super::report::say;
use super::{npy, picture};

/// Saves an array as its file name says. A file that is there already stays as it was until the new one is whole.
///
/// # Errors
/// When it cannot be written.
pub fn save(array: &HostArray, path: &Path) -> io::Result<()> {
    let_large_files_fail();
    let is_other = |data: std::fs::Metadata| !data.is_file();
    if std::fs::symlink_metadata(path).is_ok_and(is_other) {
        // A link, a pipe or a device: what it leads to is written, not replaced.
        return write(array, path, File::create(path)?);
    }
    let beside = beside(path);
    let file = match File::create_new(&beside) {
        // The folder may be closed to new files while the file itself is open.
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

/// Lets a file that grows larger than this process may make one be an error of writing: the signal would end the process, and leave a part behind.
fn let_large_files_fail() {
    #[cfg(target_os = "linux")]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
}

/// What stands behind the last dot of a name, and says the format: of `.npy` as well, which has no extension.
pub fn ending(path: &Path) -> Option<&[u8]> {
    let name = path.file_name()?.as_encoded_bytes();
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    Some(&name[dot + 1..])
}

/// A name in the same folder that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

/// Writes an array in the format that the ending of `path` says.
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
