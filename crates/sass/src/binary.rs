//! HSETP2 in files: raw instruction memory and cubins.

use object::SectionKind;
use object::read::{Object as _, ObjectSection as _};

use crate::arch::Arch;
use crate::instruction::{Illegal, Instruction};

/// One instruction word of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte offset in the section or file.
    pub address: u64,
    /// The word.
    pub word: u128,
    /// What it is.
    pub content: Content,
}

/// What a word of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An HSETP2, with its control information.
    Hsetp2(Instruction),
    /// The control word of a Maxwell group.
    Control,
    /// Something else, or an illegal HSETP2.
    Other(Illegal),
}

/// Code of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name; empty for a raw file.
    pub name: String,
    /// Its words.
    pub lines: Vec<Line>,
}

/// Whether the bytes are an ELF file rather than raw instruction memory.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The code sections of a cubin.
///
/// # Errors
/// When it is no ELF file that can be read.
pub fn cubin(arch: Arch, bytes: &[u8]) -> Result<Vec<Section>, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let mut sections = Vec::new();
    for section in file.sections() {
        let name = section.name().unwrap_or_default().to_owned();
        if section.kind() == SectionKind::Text || name.starts_with(".text") {
            let data = section.data().map_err(|error| error.to_string())?;
            sections.push(Section { name, lines: raw(arch, data) });
        }
    }
    Ok(sections)
}

/// Decodes raw instruction memory. A rest shorter than a word is left out.
pub fn raw(arch: Arch, bytes: &[u8]) -> Vec<Line> {
    let size = arch.word_bytes();
    let mut control = 0;
    let mut lines = Vec::with_capacity(bytes.len() / size);
    for (index, chunk) in bytes.chunks_exact(size).enumerate() {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        let slot = (index % 4) as u32;
        let content = if size == 8 && slot == 0 {
            control = word as u64;
            Content::Control
        } else {
            let decoded = Instruction::decode(arch, word).and_then(|mut instruction| {
                if size == 8 {
                    instruction.set_slot(control, slot - 1)?;
                }
                Ok(instruction)
            });
            decoded.map_or_else(Content::Other, Content::Hsetp2)
        };
        lines.push(Line { address: (index * size) as u64, word, content });
    }
    lines
}
