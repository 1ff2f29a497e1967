//! Arrays of the archives in `tests/run/data`.

use std::path::Path;
#[cfg(not(target_family = "wasm"))]
use std::{
    fmt::Display,
    io::{Cursor, Read},
};

/// An array: the size of an element, and all bytes.
pub struct Array {
    /// Bytes of an element.
    pub width: usize,
    /// Element after element.
    pub data: Vec<u8>,
}

/// The array that `@data/x.npz[name]` names, in `tests/run`.
pub fn array(place: &str) -> Result<Array, String> {
    let wrong = || format!("`{place}` is no array of an archive: @data/x.npz[name]");
    let named = place.strip_prefix('@').and_then(|place| place.strip_suffix(']')).ok_or_else(wrong)?;
    let (path, name) = named.split_once('[').ok_or_else(wrong)?;
    let path = crate::root().join("tests/run").join(path);
    of_npy(&file(&path, name)?).ok_or_else(|| format!("`{place}`: it is no array of numbers in C order"))
}

/// The `.npy` file of an array.
#[cfg(not(target_family = "wasm"))]
fn file(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn Display| format!("{}: {error}", path.display());
    let mut files =
        open(std::fs::read(path).map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    let file = files.by_name(&format!("{name}.npy"));
    let mut file = file.map_err(|_| format!("{} has no array `{name}`", path.display()))?;
    let mut contents = Vec::new();
    file.read_to_end(&mut contents).map_err(|error| failed(&error))?;
    Ok(contents)
}

#[cfg(target_family = "wasm")]
fn file(path: &Path, _: &str) -> Result<Vec<u8>, String> {
    Err(format!("{}: there are no files here", path.display()))
}

#[cfg(not(target_family = "wasm"))]
fn open(archive: Vec<u8>) -> zip::result::ZipResult<zip::ZipArchive<Cursor<Vec<u8>>>> {
    zip::ZipArchive::new(Cursor::new(archive))
}

/// The array in a `.npy` file of version 1.0.
fn of_npy(file: &[u8]) -> Option<Array> {
    let rest = file.strip_prefix(b"\x93NUMPY\x01\x00")?;
    let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
    let header = std::str::from_utf8(rest.get(2..2 + length)?).ok()?;
    let (_, kind) = header.split_once("'descr': '")?;
    let (kind, _) = kind.split_once('\'')?;
    let width = kind.trim_start_matches(['<', '|', 'u', 'i', 'f']).parse().ok()?;
    let data = rest[2 + length..].to_vec();
    (header.contains("'fortran_order': False") && data.len().is_multiple_of(width))
        .then_some(Array { width, data })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::header;

    /// The most bytes of a kernel's text. What is more than it is arrays, which nobody reads there.
    const LARGEST: usize = 30_000;

    fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }

    #[test]
    fn kernels_are_small_and_use_every_array_of_the_archives() {
        let folder = crate::root().join("tests/run");
        let mut named = BTreeSet::new();
        for path in files(&folder, "ptx") {
            let text = fs::read_to_string(&path).expect("text");
            let bytes = text.len();
            assert!(
                bytes <= LARGEST,
                "{} has {bytes} bytes: large arrays belong in an archive",
                path.display()
            );
            for launch in header::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
                let values = launch.words.iter().filter_map(|word| Some(word.split_once('=')?.1));
                let expected = launch.out.iter().flat_map(|(_, words)| words.iter().map(String::as_str));
                let places = values.chain(expected).filter(|place| place.starts_with("@data/"));
                named.extend(places.map(str::to_owned));
            }
        }
        let mut there = BTreeSet::new();
        for path in files(&folder.join("data"), "npz") {
            let file = path.file_name().expect("a name").to_string_lossy();
            let files = open(fs::read(&path).expect("an archive")).expect("it is whole");
            for name in files.file_names() {
                let name = name.expect("text");
                there.insert(format!("@data/{file}[{}]", name.strip_suffix(".npy").expect("an array")));
            }
        }
        assert_eq!(named, there);
        assert!(there.len() > 200);
        for place in &there {
            assert!(array(place).is_ok_and(|array| !array.data.is_empty()), "{place}");
        }
    }

    #[test]
    fn what_is_not_there_is_told() {
        let error = |place: &str| array(place).err().expect("an error");
        assert!(error("@data/steps.npz").contains("@data/x.npz[name]"));
        assert!(error("@data/none.npz[table]").contains("none.npz"));
        assert!(error("@data/steps.npz[other]").ends_with("steps.npz has no array `other`"));
    }
}
