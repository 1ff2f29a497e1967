//! HSETP2 in files: raw instruction memory and cubins.

use object::read::{Object as _, ObjectSection as _};
use object::{FileFlags, SectionKind};

use crate::arch::Arch;
use crate::instruction::{Illegal, Instruction, Unencodable};
use crate::layout::SLOT_BITS;
use crate::print::Style;

/// One instruction word of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Byte offset in the section or file.
    pub address: u64,
    /// The word.
    pub word: u128,
    /// The decoded word.
    pub content: Content,
    /// Whether it is issued together with its neighbour.
    pub pair: Pair,
}

impl Line {
    /// The instruction as text, if it is a HSETP2, with nvdisasm's braces around a pair.
    pub fn text(&self, style: Style) -> Option<String> {
        let Content::Hsetp2(instruction) = self.content else { return None };
        let text = instruction.text(style);
        Some(match self.pair {
            Pair::None => text,
            Pair::First => format!("{{ {text}"),
            Pair::Second => format!("{} }}", text.trim_end_matches([' ', ';'])),
        })
    }
}

/// Whether Maxwell issues an instruction together with a neighbour, in one cycle; nvdisasm prints braces around such
/// a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Issued alone.
    None,
    /// The first of two: its scheduling value is 16.
    First,
    /// The second.
    Second,
}

/// The contents of a word of a file.
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
    /// Its instruction words.
    pub lines: Vec<Line>,
}

/// Whether the bytes are an ELF file rather than raw instruction memory.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The target number in a cubin's header: 53 for `sm_53`.
pub fn target(bytes: &[u8]) -> Option<u32> {
    let FileFlags::Elf { abi_version, e_flags, .. } = object::File::parse(bytes).ok()?.flags() else {
        return None;
    };
    // The second version of CUDA's ELF (sm_100 and later) moved the field.
    Some(if abi_version < 8 { e_flags & 0xff } else { e_flags >> 8 & 0xffff })
}

/// The code sections of a cubin.
///
/// # Errors
/// When the bytes are not a readable ELF file, or its sections overlap.
pub fn cubin(arch: Arch, bytes: &[u8]) -> Result<Vec<Section>, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let mut sections = Vec::new();
    let mut left = bytes.len();
    for section in file.sections() {
        let name = section.name().unwrap_or_default().to_owned();
        if section.kind() == SectionKind::Text || name.starts_with(".text") {
            let data = section.data().map_err(|error| error.to_string())?;
            // Otherwise a small file could list more code than memory holds.
            left = left.checked_sub(data.len()).ok_or("its code sections overlap")?;
            sections.push(Section { name, lines: raw(arch, data) });
        }
    }
    Ok(sections)
}

/// Decodes raw instruction memory. A trailing part shorter than a word is ignored.
pub fn raw(arch: Arch, bytes: &[u8]) -> Vec<Line> {
    let size = arch.word_bytes();
    let mut control = 0;
    let mut paired = false;
    let mut lines = Vec::with_capacity(bytes.len() / size);
    for (index, chunk) in bytes.chunks_exact(size).enumerate() {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        let address = (index * size) as u64;
        let slot = (index % GROUP) as u32;
        if size == 8 && slot == 0 {
            control = word as u64;
            lines.push(Line { address, word, content: Content::Control, pair: Pair::None });
            continue;
        }
        let decoded = Instruction::decode(arch, word).and_then(|mut instruction| {
            if size == 8 {
                instruction.set_slot(control, slot - 1)?;
            }
            Ok(instruction)
        });
        let first = size == 8 && !paired && control >> (SLOT_BITS * (slot - 1)) & 31 == DUAL_ISSUE;
        let pair = match (first, paired) {
            (true, _) => Pair::First,
            (false, true) => Pair::Second,
            (false, false) => Pair::None,
        };
        paired = first;
        let content = decoded.map_or_else(Content::Other, Content::Hsetp2);
        lines.push(Line { address, word, content, pair });
    }
    lines
}

/// Assembles instructions and their control information. Before sm_70, the words form groups of a control word and
/// three instructions; NOPs fill the last group.
///
/// # Errors
/// The index of the first instruction without an encoding.
pub fn assemble(arch: Arch, instructions: &[Instruction]) -> Result<Vec<u8>, (usize, Unencodable)> {
    let size = arch.word_bytes();
    let mut words = Vec::with_capacity(instructions.len());
    for (index, instruction) in instructions.iter().enumerate() {
        words.push((instruction.encode().map_err(|error| (index, error))?, instruction.slot()));
    }
    let mut bytes = Vec::with_capacity(words.len() * size * 2);
    for group in words.chunks(if size == 8 { GROUP - 1 } else { words.len().max(1) }) {
        if size == 8 {
            let mut filled = [NOP; GROUP - 1];
            filled[..group.len()].copy_from_slice(group);
            let control =
                filled.iter().rev().fold(0, |control, (_, slot)| control << SLOT_BITS | u64::from(*slot));
            bytes.extend(control.to_le_bytes());
            bytes.extend(filled.iter().flat_map(|(word, _)| (*word as u64).to_le_bytes()));
        } else {
            bytes.extend(group.iter().flat_map(|(word, _)| word.to_le_bytes()));
        }
    }
    Ok(bytes)
}

/// Words of a Maxwell group: a control word and three instructions.
const GROUP: usize = 4;
/// The scheduling value of the first instruction of a pair.
const DUAL_ISSUE: u64 = 16;
/// Maxwell's NOP, and its slot of the control word: no barriers.
const NOP: (u128, u32) = (0x50b0_0000_0007_0f00, 0x7e0);
