//! Reading `.npz` files: ZIP archives with a `.npy` file for each array, as `numpy.savez` and `savez_compressed` write them.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::npy::{Refusal, refuse_with};

type Files<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The `.npy` file of an array.
///
/// # Errors
/// When it is no archive or damaged, or has no such array.
pub fn read(archive: &[u8], name: &str) -> Result<Vec<u8>, Refusal> {
    let mut files = open(archive)?;
    if !arrays(&files).iter().any(|array| array == name) {
        return Err(refuse_with(format!("it has no array `{name}`"), listing(&files)));
    }
    let file = files.by_name(&format!("{name}.npy")).map_err(|error| refusal(name, error))?;
    let size = file.size();
    let mut contents = Vec::new();
    // No more than it says it has, and one byte to see that there is more. The sum is looked at behind the last byte.
    match file.take(size.saturating_add(1)).read_to_end(&mut contents) {
        Ok(read) if read as u64 == size => Ok(contents),
        Ok(_) => Err(damaged()),
        Err(error) => Err(error.downcast().map_or_else(|_| damaged(), |error| refusal(name, error))),
    }
}

/// What to say to somebody who names the archive alone, as `@x.npz`.
pub fn which(archive: &[u8], spelling: &str) -> Refusal {
    let files = match open(archive) {
        Ok(files) => files,
        Err(refusal) => return refusal,
    };
    let first = arrays(&files).into_iter().next().unwrap_or_else(|| "name".to_owned());
    refuse_with(
        "it is an archive of arrays, of which one must be named",
        format!("{}: write {spelling}[{first}]", listing(&files)),
    )
}

fn open(archive: &[u8]) -> Result<Files<'_>, Refusal> {
    if !archive.starts_with(b"PK") {
        return Err(refuse_with("it is no .npz file", "write it with numpy.savez"));
    }
    ZipArchive::new(Cursor::new(archive)).map_err(|_| damaged())
}

/// The names of the arrays that there are.
fn arrays(files: &Files) -> Vec<String> {
    let names = files.file_names().flatten();
    names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned()).collect()
}

/// The arrays that there are, in words.
fn listing(files: &Files) -> String {
    let names = arrays(files);
    if names.is_empty() { "it has no arrays".to_owned() } else { format!("it has {}", names.join(", ")) }
}

fn refusal(name: &str, error: ZipError) -> Refusal {
    let message = match error {
        ZipError::UnsupportedArchive(why) => format!("its array `{name}` cannot be read: {why}"),
        ZipError::CompressionMethodNotSupported(method) => {
            format!("its array `{name}` is compressed by method {method}")
        }
        _ => return damaged(),
    };
    refuse_with(message, "save it with numpy.savez_compressed")
}

fn damaged() -> Refusal {
    refuse_with("it is damaged or truncated", "save the arrays again")
}

#[cfg(test)]
mod tests {
    use super::*;

    // As numpy writes them: savez and savez_compressed, and the latter where all sizes count as large (`zipfile.ZIP64_LIMIT = 10`),
    // with a comment that begins as an end does.
    const STORED: &[u8] = include_bytes!("../tests/archives/stored.npz");
    const DEFLATED: &[u8] = include_bytes!("../tests/archives/deflated.npz");
    const LONG: &[u8] = include_bytes!("../tests/archives/long.npz");

    #[test]
    fn arrays_are_read_from_what_numpy_writes() {
        for archive in [STORED, DEFLATED, LONG] {
            let x = super::super::npy::read(read(archive, "x").unwrap(), None).unwrap();
            assert_eq!((x.shape, x.data), (vec![4], [0f32, 1., 2., 3.].map(f32::to_le_bytes).concat()));
            let w = super::super::npy::read(read(archive, "w").unwrap(), None).unwrap();
            assert_eq!((w.shape, w.data), (vec![1, 2], vec![0x80, 0x3f, 0, 0x40]));
        }
    }

    #[test]
    fn the_directory_of_a_large_archive_is_found() {
        let mut archive = LONG.to_vec();
        let end = archive.windows(4).position(|bytes| bytes == b"PK\x05\x06").unwrap();
        for (from, to) in [(10, 12), (16, 20)] {
            archive[end + from..end + to].fill(0xff);
            assert_eq!(read(&archive, "w"), read(LONG, "w"));
        }
        // Without what says where it is.
        archive[end - 20] = 0;
        assert!(read(&archive, "w").is_err());
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_there_is() {
        let refusal = read(STORED, "y").unwrap_err();
        assert_eq!(
            (refusal.message.as_str(), refusal.help.as_deref()),
            ("it has no array `y`", Some("it has x, w"))
        );
        assert_eq!(which(LONG, "@a.npz").help.as_deref(), Some("it has x, w: write @a.npz[x]"));
        let empty = [&b"PK\x05\x06"[..], &[0; 18]].concat();
        assert_eq!(read(&empty, "x").unwrap_err().help.as_deref(), Some("it has no arrays"));
        assert!(read(b"\x93NUMPY", "x").unwrap_err().message.contains("no .npz file"));
    }

    #[test]
    fn damage_is_refused() {
        for archive in [STORED, DEFLATED, LONG] {
            let whole: Vec<_> = ["x", "w"].map(|name| read(archive, name).unwrap()).into();
            for length in 0..archive.len() {
                assert!(read(&archive[..length], "x").is_err(), "{length}");
            }
            // A changed byte is noticed, or stands where nothing depends on it.
            for (at, bit) in (0..archive.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                let mut changed = archive.to_vec();
                changed[at] ^= 1 << bit;
                for (name, whole) in ["x", "w"].into_iter().zip(&whole) {
                    let file = read(&changed, name);
                    assert!(file.is_err() || file.as_ref() == Ok(whole), "{name}: bit {bit} of {at}");
                }
            }
        }
    }

    #[test]
    fn what_numpy_does_not_write_is_refused_by_name() {
        // In the directory, and before the file.
        let changed = |at: usize, to: u8| {
            let mut archive = STORED.to_vec();
            archive[at - 2] = to;
            let entry = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
            archive[entry + at] = to;
            read(&archive, "x").unwrap_err().message
        };
        assert_eq!(changed(8, 1), "its array `x` cannot be read: Password required to decrypt file");
        assert_eq!(changed(10, 14), "its array `x` is compressed by method 14");
    }
}
