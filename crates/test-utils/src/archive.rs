//! Arrays of the archives in `tests/run/data`. The command has a reader of its own: a mistake of one is not one of the other.

use std::io::Read;

use flate2::read::DeflateDecoder;

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
    let archive = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let members = members(&archive).ok_or_else(|| format!("{}: it is damaged", path.display()))?;
    let file = members.into_iter().find(|(file, _)| file.strip_suffix(".npy") == Some(name));
    let (_, file) = file.ok_or_else(|| format!("{} has no array `{name}`", path.display()))?;
    of_npy(&file).ok_or_else(|| format!("`{place}`: it is no array of numbers in C order"))
}

/// The names of an archive's arrays.
pub fn names(archive: &[u8]) -> Option<Vec<String>> {
    members(archive)?.into_iter().map(|(file, _)| file.strip_suffix(".npy").map(str::to_owned)).collect()
}

/// Names and contents of the files of an archive, one behind the other. `reference/archive.py` writes their sizes before them.
fn members(mut archive: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut members = Vec::new();
    while let Some(rest) = archive.strip_prefix(b"PK\x03\x04") {
        let size = |at: usize, bytes: usize| {
            Some(rest.get(at..at + bytes)?.iter().rev().fold(0, |size, &byte| size << 8 | usize::from(byte)))
        };
        let (method, packed, whole) = (size(4, 2)?, size(14, 4)?, size(18, 4)?);
        let name = rest.get(26..26 + size(22, 2)?)?;
        let start = 26 + name.len() + size(24, 2)?;
        let mut data = rest.get(start..start + packed)?.to_vec();
        if method == 8 {
            let mut plain = Vec::new();
            DeflateDecoder::new(&data[..]).read_to_end(&mut plain).ok()?;
            data = plain;
        }
        if data.len() != whole {
            return None;
        }
        members.push((String::from_utf8(name.to_vec()).ok()?, data));
        archive = rest.get(start + packed..)?;
    }
    // Behind them is the directory.
    archive.starts_with(b"PK\x01\x02").then_some(members)
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
            let names = names(&fs::read(&path).expect("an archive")).expect("it is whole");
            there.extend(names.into_iter().map(|name| format!("@data/{file}[{name}]")));
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

    #[test]
    fn a_cut_archive_is_damaged() {
        let whole = fs::read(crate::root().join("tests/run/data/steps.npz")).expect("an archive");
        assert_eq!(names(&whole), Some(vec!["table".to_owned()]));
        let directory = whole.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a directory");
        assert!((0..directory).all(|length| names(&whole[..length]).is_none()));
    }
}
