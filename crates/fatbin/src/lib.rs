//! Fat binaries: nvcc's container for PTX, for one or several architectures, plain or compressed; and the files that
//! have fat binaries in them. NVIDIA does not document the layout; this is what the output of nvcc 13.5 contains.
#![forbid(unsafe_code)]

mod file;
pub mod linked;

use std::fmt;
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

pub use file::{Embedded, embedded};

/// First word of the wrapper, a structure with a pointer to the fat binary. Programs pass the wrapper to the runtime.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// First word of a fat binary.
pub const MAGIC: u32 = 0xba55_ed50;
/// Bytes of a fat binary before its first entry.
pub const HEADER_BYTES: usize = 16;

/// Maximum bytes of a decompressed image: far more than any compiler emits.
const MOST_BYTES: u64 = 1 << 30;

const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
const ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FAMILY_SPECIFIC: u64 = 0x20_0000;

/// Why a fat binary has no usable image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not a fat binary, or is truncated.
    Malformed,
    /// Its compression is unknown or damaged.
    Compression(String),
    /// It has no PTX that the device can run; these are its images.
    NoPtx(Vec<String>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed => f.write_str("the fat binary is malformed"),
            Error::Compression(what) => write!(f, "the fat binary cannot be decompressed: {what}"),
            Error::NoPtx(images) if images.is_empty() => f.write_str("the fat binary is empty"),
            Error::NoPtx(images) => {
                write!(f, "the fat binary has no PTX that the device could run, only {}", images.join(", "))
            }
        }
    }
}

impl std::error::Error for Error {}

/// The kind of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// Machine code.
    Cubin,
    /// Another kind, such as an intermediate form for link-time optimisation.
    Other(u16),
}

/// An image of a fat binary.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its compute capability: 90 is sm_90.
    pub capability: u32,
    flags: u64,
    compressed_bytes: u32,
    bytes: u64,
    payload: &'a [u8],
}

impl Image<'_> {
    /// Whether a device of this capability can run the image's PTX.
    fn fits(&self, capability: u32) -> bool {
        match () {
            () if self.flags & ARCHITECTURE_SPECIFIC != 0 => self.capability == capability,
            () if self.flags & FAMILY_SPECIFIC != 0 => {
                self.capability / 10 == capability / 10 && self.capability <= capability
            }
            () => self.capability <= capability,
        }
    }

    /// Whether it is machine code that a device of this capability runs.
    fn is_code_for(&self, capability: u32) -> bool {
        let same_major = self.capability / 10 == capability / 10;
        self.kind == Kind::Cubin && same_major && self.fits(capability)
    }

    /// The contents, decompressed.
    ///
    /// # Errors
    /// When the compression is unknown or damaged.
    pub fn contents(&self) -> Result<Vec<u8>, Error> {
        if self.flags & (LZ4 | ZSTD) == 0 || self.compressed_bytes == 0 {
            return Ok(self.payload.to_vec());
        }
        let packed = self.payload.get(..self.compressed_bytes as usize).ok_or(Error::Malformed)?;
        if self.bytes > MOST_BYTES {
            return Err(Error::Malformed);
        }
        let damaged = |error: &dyn fmt::Display| Error::Compression(error.to_string());
        if self.flags & ZSTD != 0 {
            let decoder = StreamingDecoder::new(packed).map_err(|error| damaged(&error))?;
            let mut contents = Vec::new();
            decoder.take(self.bytes).read_to_end(&mut contents).map_err(|error| damaged(&error))?;
            return if contents.len() as u64 == self.bytes { Ok(contents) } else { Err(Error::Malformed) };
        }
        lz4_flex::block::decompress(packed, self.bytes as usize).map_err(|error| damaged(&error))
    }

    /// The contents of PTX: decompressed, without trailing zeros.
    fn text(&self) -> Result<Vec<u8>, Error> {
        let mut text = self.contents()?;
        text.truncate(text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
        Ok(text)
    }

    /// Whether it is for one architecture or one family of them alone.
    fn is_specific(&self) -> bool {
        self.flags & (ARCHITECTURE_SPECIFIC | FAMILY_SPECIFIC) != 0
    }

    /// What it is for, as nvcc writes it: `compute_90` for PTX, else `sm_90a`.
    fn architecture(&self) -> String {
        let prefix = if self.kind == Kind::Ptx { "compute" } else { "sm" };
        let suffix = match () {
            () if self.flags & ARCHITECTURE_SPECIFIC != 0 => "a",
            () if self.flags & FAMILY_SPECIFIC != 0 => "f",
            () => "",
        };
        format!("{prefix}_{}{suffix}", self.capability)
    }

    fn describe(&self) -> String {
        let what = match self.kind {
            Kind::Ptx => "PTX".to_owned(),
            Kind::Cubin => "machine code".to_owned(),
            Kind::Other(kind) => format!("an image of kind {kind}"),
        };
        format!("{what} for {}", self.architecture())
    }
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Bytes of the fat binary that begins with this header; `None` if it is not one.
pub fn size(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    let entries = u64_at(header, 8).filter(|_| u32_at(header, 0) == Some(MAGIC))?;
    usize::try_from(entries).ok()?.checked_add(usize::from(u16_at(header, 6)?))
}

/// The images of a fat binary.
///
/// # Errors
/// [`Error::Malformed`]
pub fn images(fat_binary: &[u8]) -> Result<Vec<Image<'_>>, Error> {
    let header = fat_binary.first_chunk::<HEADER_BYTES>().ok_or(Error::Malformed)?;
    let end = size(header).filter(|&end| end <= fat_binary.len()).ok_or(Error::Malformed)?;
    let start = usize::from(u16_at(header, 6).ok_or(Error::Malformed)?);
    let mut rest = fat_binary.get(start..end).ok_or(Error::Malformed)?;
    let mut images = Vec::new();
    while !rest.is_empty() {
        let (image, bytes) = image(rest).ok_or(Error::Malformed)?;
        images.push(image);
        rest = rest.get(bytes..).ok_or(Error::Malformed)?;
    }
    Ok(images)
}

/// The first image, and the bytes that its entry takes.
fn image(entry: &[u8]) -> Option<(Image<'_>, usize)> {
    let header = u32_at(entry, 4)? as usize;
    let end = header.checked_add(usize::try_from(u64_at(entry, 8)?).ok()?)?;
    if header < 64 {
        return None;
    }
    let kind = match u16_at(entry, 0)? {
        1 => Kind::Ptx,
        2 => Kind::Cubin,
        other => Kind::Other(other),
    };
    let image = Image {
        kind,
        compressed_bytes: u32_at(entry, 16)?,
        capability: u32_at(entry, 28)?,
        flags: u64_at(entry, 40)?,
        bytes: u64_at(entry, 56)?,
        payload: entry.get(header..end)?,
    };
    Some((image, end))
}

/// The best PTX of a fat binary for a device of this capability: the one for the newest architecture that is not
/// newer than the device. Trailing zeros are removed.
///
/// Some have machine code for each architecture, and PTX for the newest alone. A GPU runs that machine code. Where the
/// device would do so, it gets the PTX for the oldest of the newer architectures, whose `.target` is then the device's.
/// So what only newer architectures can do is refused when it is compiled.
///
/// # Errors
/// When there is none, or the fat binary is damaged.
pub fn ptx_for(fat_binary: &[u8], capability: u32) -> Result<Vec<u8>, Error> {
    let images = images(fat_binary)?;
    let ptx = || images.iter().filter(|image| image.kind == Kind::Ptx);
    let suitable = ptx().filter(|image| image.fits(capability));
    if let Some(best) = suitable.max_by_key(|image| (image.capability, image.is_specific())) {
        return best.text();
    }
    let newer = ptx().filter(|image| !image.is_specific() && image.capability > capability);
    match newer.min_by_key(|image| image.capability) {
        Some(newer) if images.iter().any(|image| image.is_code_for(capability)) => {
            retargeted(newer.text()?, capability)
        }
        _ => Err(Error::NoPtx(images.iter().map(Image::describe).collect())),
    }
}

/// PTX whose `.target` names this device.
fn retargeted(mut text: Vec<u8>, capability: u32) -> Result<Vec<u8>, Error> {
    let directive = b".target sm_";
    let start = memchr::memmem::find_iter(&text, directive)
        .find(|&start| start == 0 || text[start - 1] == b'\n')
        .ok_or(Error::Malformed)?
        + directive.len();
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.splice(start..start + digits, capability.to_string().into_bytes());
    Ok(text)
}

/// Whether PTX is the library of device-side launches, which defines such names.
pub fn is_device_runtime(text: &[u8]) -> bool {
    let name = b"cudaCDP2";
    let text = &text[..text.len().min(1 << 16)];
    text.windows(name.len()).any(|window| window == name)
        && text.windows(9).any(|window| window == b"CNPRT_VER")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 8.0\n.target sm_80\n.address_size 64\n";

    /// An entry as nvcc writes it.
    fn entry(kind: u16, capability: u32, flags: u64, payload: &[u8], bytes: usize) -> Vec<u8> {
        let padded = payload.len().next_multiple_of(8);
        let mut entry = vec![0; 64 + padded];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        if flags & (LZ4 | ZSTD) != 0 {
            entry[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
            entry[56..64].copy_from_slice(&(bytes as u64).to_le_bytes());
        }
        entry[28..32].copy_from_slice(&capability.to_le_bytes());
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        entry[64..64 + payload.len()].copy_from_slice(payload);
        entry
    }

    fn fat_binary(entries: &[Vec<u8>]) -> Vec<u8> {
        let entries = entries.concat();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((entries.len() as u64).to_le_bytes());
        bytes.extend(entries);
        bytes
    }

    #[test]
    fn ptx_is_found_plain_and_compressed() {
        let packed = zstd::encode_all(TEXT, 3).unwrap();
        let lz4 = lz4_flex::block::compress(TEXT);
        for entry in [
            entry(1, 80, 1, TEXT, 0),
            entry(1, 80, 1 | ZSTD, &packed, TEXT.len()),
            entry(1, 80, 1 | LZ4, &lz4, TEXT.len()),
        ] {
            assert_eq!(ptx_for(&fat_binary(&[entry]), 90).unwrap(), TEXT);
        }
    }

    #[test]
    fn the_newest_suitable_architecture_is_chosen() {
        let ptx = |capability, flags| {
            entry(1, capability, flags, format!("for {capability} {flags:x}").as_bytes(), 0)
        };
        let all = fat_binary(&[
            ptx(70, 1),
            ptx(90, ARCHITECTURE_SPECIFIC),
            ptx(90, 1),
            ptx(100, FAMILY_SPECIFIC),
            ptx(120, 1),
            entry(2, 90, 1, b"\x7fELF", 0),
        ]);
        let chosen = |capability| String::from_utf8(ptx_for(&all, capability).unwrap()).unwrap();
        assert_eq!(chosen(75), "for 70 1");
        assert_eq!(chosen(90), "for 90 100000");
        assert_eq!(chosen(100), "for 100 200000");
        assert_eq!(chosen(103), "for 100 200000");
        assert_eq!(chosen(110), "for 90 1");
        assert_eq!(chosen(121), "for 120 1");
        assert!(matches!(ptx_for(&all, 60), Err(Error::NoPtx(images)) if images.len() == 6));
        let only_code = fat_binary(&[entry(2, 90, 1, b"\x7fELF", 0)]);
        let error = ptx_for(&only_code, 90).unwrap_err().to_string();
        assert!(error.contains("only machine code for sm_90"), "{error}");
    }

    #[test]
    fn newer_ptx_stands_for_machine_code_of_the_device() {
        let text = |capability: u32| {
            format!("//\n// .target sm_1\n.version 8.8\n.target sm_{capability}, debug\n.address_size 64")
        };
        let ptx = |capability, flags| entry(1, capability, flags, text(capability).as_bytes(), 0);
        let code = |capability, flags| entry(2, capability, flags, b"\x7fELF", 0);
        let all = fat_binary(&[
            code(70, 1),
            code(80, 1),
            code(90, ARCHITECTURE_SPECIFIC),
            code(100, 1),
            ptx(130, 1),
            ptx(110, FAMILY_SPECIFIC),
            ptx(120, 1),
        ]);
        let chosen = |capability| ptx_for(&all, capability).map(|text| String::from_utf8(text).unwrap());
        for capability in [70, 75, 80, 86, 90, 100, 103] {
            assert_eq!(chosen(capability).unwrap(), text(capability));
        }
        assert_eq!(chosen(120).unwrap(), text(120));
        assert_eq!(chosen(110).unwrap(), text(110));
        assert!(matches!(chosen(60), Err(Error::NoPtx(_))));
        let without_target = fat_binary(&[code(90, 1), entry(1, 120, 1, b".version 8.8\n", 0)]);
        assert_eq!(ptx_for(&without_target, 90), Err(Error::Malformed));
    }

    #[test]
    fn damage_is_an_error() {
        let good = fat_binary(&[entry(1, 80, ZSTD, &zstd::encode_all(TEXT, 3).unwrap(), TEXT.len())]);
        for length in 0..good.len() {
            assert!(ptx_for(&good[..length], 90).is_err());
        }
        for index in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[index] = value;
                // Any result is fine, except a panic.
                let _ = ptx_for(&bad, 90);
            }
        }
    }
}
