//! The CUDA runtime of a program: NVIDIA's, statically linked; ours, statically linked; or one that the dynamic
//! linker finds.

use std::fs::File;
use std::path::Path;

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadCache, ReadRef};

/// Whether a file is a program from nvcc (it has a section of fat binaries) that neither needs libcudart nor contains
/// our runtime: then it contains NVIDIA's.
pub fn has_static_runtime(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    looks_static(&cache).unwrap_or(false)
}

fn looks_static<'data>(data: impl ReadRef<'data>) -> object::Result<bool> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let has = |name: &[u8]| sections.section_by_name(endian, name).is_some();
    if !has(b".nvFatBinSegment") || has(b".ptxvm.cudart") {
        return Ok(false);
    }
    let Some((entries, strings)) = sections.dynamic(endian, data)? else { return Ok(true) };
    let strings = sections.strings(endian, data, strings)?;
    let is_runtime = |entry: &object::elf::Dyn64<Endianness>| {
        let name = entry.string(endian, strings);
        entry.d_tag.get(endian) == DT_NEEDED && name.is_ok_and(|name| name.starts_with(b"libcudart.so"))
    };
    Ok(!entries.iter().any(is_runtime))
}
