//! The PTX in files that compilers write: programs, libraries, objects and archives with fat binaries in them, and
//! machine code with the PTX that it was assembled from.
//!
//! A fat binary is found by its header, wherever it lies, so that the container does not matter: ELF, PE, an archive.
//! No other bytes of these files begin like one and are one as a whole.

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use crate::{Error, HEADER_BYTES, Image, Kind, MAGIC, images, size};

/// The first bytes of files that may have PTX in them.
const CONTAINERS: [&[u8]; 4] = [b"\x7fELF", b"!<arch>\n", b"MZ", &MAGIC_BYTES];

/// How a fat binary begins.
const MAGIC_BYTES: [u8; 4] = MAGIC.to_le_bytes();

/// Where assemblers keep the PTX (`ptxas -g`). The lines end with zeros.
const ASSEMBLED_FROM: &str = ".nv_debug_ptx_txt";

/// A PTX module that lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// What it was compiled for, such as `compute_90a`; empty if the file does not say.
    pub architecture: String,
    /// The text, without trailing zeros.
    pub text: Vec<u8>,
}

/// The PTX modules of a file, in the order of the file: of each fat binary the one for the newest architecture.
/// `None` if the file is no container of PTX, so that it may be PTX itself.
///
/// # Errors
/// [`Error::NoPtx`] with the images that there are instead; [`Error::Compression`] and [`Error::Malformed`] of the
/// first module that cannot be read.
pub fn embedded(file: &[u8]) -> Option<Result<Vec<Embedded>, Error>> {
    CONTAINERS.iter().any(|start| file.starts_with(start)).then(|| {
        let fat_binaries: Vec<_> = fat_binaries(file).collect();
        let newest = fat_binaries.iter().filter_map(|images| {
            let ptx = images.iter().filter(|image| image.kind == Kind::Ptx);
            ptx.max_by_key(|image| (image.capability, image.is_specific()))
        });
        let found =
            newest.map(|image| Ok(Embedded { architecture: image.architecture(), text: image.text()? }));
        let mut found = found.collect::<Result<Vec<_>, Error>>()?;
        found.extend(assembled_from(file));
        match found.is_empty() {
            true => Err(Error::NoPtx(fat_binaries.iter().flatten().map(Image::describe).collect())),
            false => Ok(found),
        }
    })
}

/// The images of each fat binary of a file.
fn fat_binaries(file: &[u8]) -> impl Iterator<Item = Vec<Image<'_>>> {
    let mut end = 0;
    memchr::memmem::find_iter(file, &MAGIC_BYTES).filter_map(move |start| {
        let header = file[start..].first_chunk::<HEADER_BYTES>().filter(|_| start >= end)?;
        let fat_binary = file.get(start..start.checked_add(size(header)?)?)?;
        let images = images(fat_binary).ok()?;
        end = start + fat_binary.len();
        Some(images)
    })
}

/// The PTX that machine code was assembled from, if the assembler kept it.
fn assembled_from(file: &[u8]) -> Option<Embedded> {
    let elf = ElfFile64::<object::Endianness>::parse(file).ok()?;
    let section = elf.section_by_name(ASSEMBLED_FROM)?;
    let lines = section.uncompressed_data().ok()?;
    let start = lines.iter().position(|&byte| byte != 0)?;
    let text = lines[start..].iter().map(|&byte| if byte == 0 { b'\n' } else { byte }).collect();
    Some(Embedded { architecture: String::new(), text })
}
