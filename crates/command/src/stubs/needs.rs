//! What a shared library (ELF, 64 bits) needs of others.

use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, SymbolIndex, elf};

use super::Library;

/// What a file needs.
pub struct Needs {
    /// The machine that it is for (`e_machine`).
    pub machine: u16,
    /// The file names of libraries.
    pub libraries: Vec<String>,
    /// The folders in which the dynamic linker looks for them.
    pub search: Vec<String>,
    /// The functions that others define.
    pub symbols: Vec<Symbol>,
}

/// A function that another library defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    pub name: String,
    /// Its version, and the file name of the library that has it.
    pub version: Option<(String, String)>,
}

impl Symbol {
    /// Whether the library with this file name has it.
    pub fn is_of(&self, name: &str, library: &Library) -> bool {
        match &self.version {
            Some((_, file)) => file == name,
            None => library.has(&self.name),
        }
    }
}

impl Needs {
    /// What a file needs; `None` if it is no dynamic library of 64 bits.
    pub fn read(bytes: &[u8]) -> Option<Needs> {
        let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let symbols = sections.symbols(endian, bytes, elf::SHT_DYNSYM).ok()?;
        let (entries, _) = sections.dynamic(endian, bytes).ok()??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let strings = symbols.strings();
        let named = |tags: &[i64]| {
            let entries = entries.iter().filter(|entry| tags.contains(&entry.tag(endian)));
            entries.filter_map(|entry| Some(text(entry.string(endian, strings).ok()?))).collect::<Vec<_>>()
        };
        let versions = sections.versions(endian, bytes).ok()?;
        let version = |index| {
            let versions = versions.as_ref()?;
            let version = versions.version(versions.version_index(endian, index)).ok()??;
            Some((text(version.name()), text(version.file()?)))
        };
        let undefined = symbols.enumerate().filter(|(_, symbol)| symbol.is_undefined(endian));
        let symbol = |(index, symbol): (SymbolIndex, &elf::Sym64<Endianness>)| {
            let name = text(symbol.name(endian, strings).ok()?);
            (!name.is_empty()).then(|| Symbol { name, version: version(index) })
        };
        Some(Needs {
            machine: header.e_machine(endian),
            libraries: named(&[elf::DT_NEEDED]),
            search: named(&[elf::DT_RPATH, elf::DT_RUNPATH])
                .iter()
                .flat_map(|paths| paths.split(':'))
                .map(str::to_owned)
                .collect(),
            symbols: undefined.filter_map(symbol).collect(),
        })
    }
}
