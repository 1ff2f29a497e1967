//! Reading `.npz` files: ZIP archives with a `.npy` file for each array, as `numpy.savez` and `savez_compressed` write them.
//!
//! Only what these write is read (APPNOTE.TXT of PKWARE, 4.3): files that are stored or deflated, with sizes of 32 or 64
//! bits. What an archive says of itself is not believed: whatever lies outside of it is a refusal.

use std::io::Read;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::npy::{Refusal, refuse, refuse_with};

/// The least bytes of an entry of the directory, and of what stands before a file.
const ENTRY: usize = 46;
const BEFORE_FILE: usize = 30;
/// The least bytes of the end of an archive, and the most of the comment behind it.
const END: usize = 22;
const COMMENT: usize = 0xffff;

/// The `.npy` file of an array.
///
/// # Errors
/// When it is no archive or damaged, or has no such array.
pub fn read(archive: &[u8], name: &str) -> Result<Vec<u8>, Refusal> {
    let entries = entries(archive)?;
    let entry = entries
        .iter()
        .find(|entry| entry.array() == name)
        .ok_or_else(|| refuse_with(format!("it has no array `{name}`"), listing(&entries)))?;
    entry.contents(archive)
}

/// What to say to somebody who names the archive alone, as `@x.npz`.
pub fn which(archive: &[u8], spelling: &str) -> Refusal {
    let entries = match entries(archive) {
        Ok(entries) => entries,
        Err(refusal) => return refusal,
    };
    let first = entries.first().map_or("name", Entry::array);
    refuse_with(
        "it is an archive of arrays, of which one must be named",
        format!("{}: write {spelling}[{first}]", listing(&entries)),
    )
}

/// The arrays that there are, in words.
fn listing(entries: &[Entry]) -> String {
    let names: Vec<_> = entries.iter().map(Entry::array).collect();
    if names.is_empty() { "it has no arrays".to_owned() } else { format!("it has {}", names.join(", ")) }
}

fn damaged() -> Refusal {
    refuse_with("it is damaged or truncated", "save the arrays again")
}

/// A file of the archive, as the directory at its end has it.
struct Entry {
    name: String,
    method: u16,
    is_encrypted: bool,
    crc: u32,
    packed: u64,
    size: u64,
    /// Where it begins.
    at: u64,
}

impl Entry {
    /// The name of the array: that of the file without `.npy`.
    fn array(&self) -> &str {
        self.name.strip_suffix(".npy").unwrap_or(&self.name)
    }

    fn contents(&self, archive: &[u8]) -> Result<Vec<u8>, Refusal> {
        if self.is_encrypted {
            return Err(refuse(format!("its array `{}` is encrypted", self.array())));
        }
        let before = part(archive, self.at, BEFORE_FILE as u64).filter(|b| b.starts_with(b"PK\x03\x04"));
        let before = before.ok_or_else(damaged)?;
        let names = u64::from(u16_at(before, 26)) + u64::from(u16_at(before, 28));
        let start = self.at.saturating_add(BEFORE_FILE as u64 + names);
        let packed = part(archive, start, self.packed).ok_or_else(damaged)?;
        let contents = match self.method {
            0 => packed.to_vec(),
            8 => {
                let mut contents = Vec::new();
                // No more than it says it has, and one byte to see that there is more.
                let mut decoder = DeflateDecoder::new(packed).take(self.size.saturating_add(1));
                decoder.read_to_end(&mut contents).map_err(|_| damaged())?;
                contents
            }
            method => {
                return Err(refuse_with(
                    format!("its array `{}` is compressed by method {method}", self.array()),
                    "save it with numpy.savez_compressed",
                ));
            }
        };
        let mut crc = Crc::new();
        crc.update(&contents);
        if contents.len() as u64 != self.size || crc.sum() != self.crc {
            return Err(damaged());
        }
        Ok(contents)
    }
}

/// The files of an archive.
fn entries(archive: &[u8]) -> Result<Vec<Entry>, Refusal> {
    if !archive.starts_with(b"PK") {
        return Err(refuse_with("it is no .npz file", "write it with numpy.savez"));
    }
    let (count, mut at) = directory(archive).ok_or_else(damaged)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (entry, length) = entry(archive, at).ok_or_else(damaged)?;
        entries.push(entry);
        at += length;
    }
    Ok(entries)
}

/// How many files the directory has, and where it begins.
fn directory(archive: &[u8]) -> Option<(u64, u64)> {
    let last = archive.len().checked_sub(END)?;
    let mut ends = (last.saturating_sub(COMMENT)..=last).rev();
    // The comment behind the end has as many bytes as it says.
    let is_end = |&at: &usize| {
        archive[at..].starts_with(b"PK\x05\x06") && usize::from(u16_at(archive, at + 20)) == last - at
    };
    let end = ends.find(is_end)?;
    let (count, at) = (u16_at(archive, end + 10), u32_at(archive, end + 16));
    if count != u16::MAX && at != u32::MAX {
        return Some((count.into(), at.into()));
    }
    // The end for sizes of 64 bits, and before it the place where that stands.
    let place = part(archive, (end as u64).checked_sub(20)?, 20)?;
    let end = part(archive, u64_at(place, 8), 56)?;
    let is_there = place.starts_with(b"PK\x06\x07") && end.starts_with(b"PK\x06\x06");
    is_there.then(|| (u64_at(end, 32), u64_at(end, 48)))
}

/// The entry at a place of the directory, and its length.
fn entry(archive: &[u8], at: u64) -> Option<(Entry, u64)> {
    let fixed = part(archive, at, ENTRY as u64)?;
    let [name, extra, comment] = [28, 30, 32].map(|at| u64::from(u16_at(fixed, at)));
    let behind = at.checked_add(ENTRY as u64)?;
    let text = part(archive, behind, name)?;
    let mut long = long_sizes(part(archive, behind + name, extra)?);
    let mut size = |at| match u32_at(fixed, at) {
        u32::MAX => long.next(),
        size => Some(size.into()),
    };
    let entry = Entry {
        name: String::from_utf8_lossy(text).into_owned(),
        is_encrypted: u16_at(fixed, 8) & 1 != 0,
        method: u16_at(fixed, 10),
        crc: u32_at(fixed, 16),
        // In this order they stand among the long ones.
        size: size(24)?,
        packed: size(20)?,
        at: size(42)?,
    };
    fixed.starts_with(b"PK\x01\x02").then_some((entry, ENTRY as u64 + name + extra + comment))
}

/// The sizes of 64 bits among the extra fields of an entry.
fn long_sizes(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut found: &[u8] = &[];
    while extra.len() >= 4 {
        let (kind, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let Some(field) = extra.get(4..4 + length) else { break };
        if kind == 1 {
            found = field;
        }
        extra = &extra[4 + length..];
    }
    found.chunks_exact(8).map(|bytes| u64_at(bytes, 0))
}

/// So many bytes from a place on, if they are there.
fn part(archive: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    archive.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
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
        let changed = |at: usize, to: u8| {
            let mut archive = STORED.to_vec();
            let entry = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
            archive[entry + at] = to;
            read(&archive, "x").unwrap_err().message
        };
        assert_eq!(changed(8, 1), "its array `x` is encrypted");
        assert_eq!(changed(10, 14), "its array `x` is compressed by method 14");
    }
}
