//! The file of a stub: a shared library (ELF, 64 bits) that defines functions and needs nothing.

use std::collections::BTreeMap;

use object::build::elf::{
    Builder, Dynamic, Section, SectionData, SectionId, Segment, SegmentId, VersionData, VersionDef, VersionId,
};
use object::{Endianness, elf};

use super::code::{Code, Function, Returned};
use super::needs::Symbol;

/// What tells a stub from other libraries.
pub const MARK: &[u8] = b"stub of ptxvm\0";

/// The largest page that a host has, to whose multiples segments are aligned.
const PAGE: u64 = 0x1_0000;

/// The bytes of each piece of code that functions share.
const SHARED: u64 = 64;

/// The pieces, for functions with each kind of result.
const fn pieces(result: u16) -> [Returned; 3] {
    [Returned::Error(result), Returned::Message, Returned::MessageInPlace]
}

/// Which piece a function goes to. Some return what an error means, as text.
fn piece_of(function: &str) -> u64 {
    const TEXT: [&str; 5] = ["ErrorString", "StatusString", "ErrorName", "StatusName", "GetLastError"];
    match function {
        "cuptiGetResultString" => 2,
        _ if TEXT.iter().any(|end| function.ends_with(end)) => 1,
        _ => 0,
    }
}

/// The bytes of a library with a name, whose functions return a number.
///
/// # Errors
/// When the machine is unknown, or the library would be too large.
pub fn library(name: &str, machine: u16, symbols: &[Symbol], result: u16) -> Result<Vec<u8>, String> {
    let code = Code::for_machine(machine).ok_or_else(|| format!("no code for machine {machine} of ELF"))?;
    let mut builder = Builder::new(Endianness::Little, true);
    builder.header.e_type = elf::ET_DYN;
    builder.header.e_machine = machine;
    builder.header.e_phoff = 64;
    let parts = Parts::new(name, symbols);
    let sections = add_sections(&mut builder, &code, &parts, symbols.len());
    add_symbols(&mut builder, name, symbols, sections.text);
    builder.gnu_hash_bloom_count = 1;
    builder.gnu_hash_bloom_shift = 1;
    builder.gnu_hash_bucket_count = symbols.len().max(1) as u32;
    add_dynamic(&mut builder, name, sections.dynamic);
    lay_out(&mut builder, &sections);
    fill_text(&mut builder, &code, &parts, &sections, symbols, result)?;
    let mut image = Vec::new();
    builder.write(&mut image).map_err(|error| error.to_string())?;
    Ok(image)
}

/// The messages of functions, one after the other, behind the mark.
struct Parts {
    bytes: Vec<u8>,
    /// Where each begins, and how long it is.
    places: Vec<(i32, u16)>,
}

impl Parts {
    fn new(name: &str, symbols: &[Symbol]) -> Parts {
        let mut parts = Parts { bytes: MARK.to_vec(), places: Vec::new() };
        for symbol in symbols {
            let message =
                format!("ptxvm: `{}` does nothing: {name} is a stub (ptxvm stubs)\n\0", symbol.name);
            parts.places.push((parts.bytes.len() as i32, message.len() as u16 - 1));
            parts.bytes.extend(message.into_bytes());
        }
        parts
    }
}

/// The sections that others refer to, and all in their order, with the rights of each.
struct Sections {
    text: SectionId,
    messages: SectionId,
    called: SectionId,
    dynamic: SectionId,
    in_order: Vec<(SectionId, u32)>,
}

fn add_sections(builder: &mut Builder<'_>, code: &Code, parts: &Parts, functions: usize) -> Sections {
    let mut in_order = Vec::new();
    let mut add = |name: &'static str, kind: u32, rights: u32, align: u64, data: SectionData<'static>| {
        let section: &mut Section<'_> = builder.sections.add();
        section.name = name.into();
        section.sh_type = kind;
        section.sh_addralign = align;
        section.data = data;
        let write = if rights & elf::PF_W != 0 { elf::SHF_WRITE } else { 0 };
        let execute = if rights & elf::PF_X != 0 { elf::SHF_EXECINSTR } else { 0 };
        section.sh_flags = u64::from(elf::SHF_ALLOC | write | execute);
        in_order.push((section.id(), rights));
        section.id()
    };
    let (read, execute, write) = (elf::PF_R, elf::PF_R | elf::PF_X, elf::PF_R | elf::PF_W);
    let messages = add(".rodata", elf::SHT_PROGBITS, read, 1, SectionData::Data(parts.bytes.clone().into()));
    add(".gnu.hash", elf::SHT_GNU_HASH, read, 8, SectionData::GnuHash);
    let symbols = add(".dynsym", elf::SHT_DYNSYM, read, 8, SectionData::DynamicSymbol);
    let strings = add(".dynstr", elf::SHT_STRTAB, read, 1, SectionData::DynamicString);
    let versions = add(".gnu.version", elf::SHT_GNU_VERSYM, read, 2, SectionData::GnuVersym);
    let definitions = add(".gnu.version_d", elf::SHT_GNU_VERDEF, read, 8, SectionData::GnuVerdef);
    let bytes = vec![0; code.stride as usize * functions + pieces(0).len() * SHARED as usize];
    let text = add(".text", elf::SHT_PROGBITS, execute, 16, SectionData::Data(bytes.into()));
    let dynamic = add(".dynamic", elf::SHT_DYNAMIC, write, 8, SectionData::Dynamic(Vec::new()));
    let called = vec![0; functions];
    let called = add(".data", elf::SHT_PROGBITS, write, 1, SectionData::Data(called.into()));
    for (section, linked) in
        [(symbols, strings), (versions, symbols), (definitions, strings), (dynamic, strings)]
    {
        builder.sections.get_mut(section).sh_link_section = Some(linked);
    }
    let names = builder.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = elf::SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = SectionData::SectionString;
    Sections { text, messages, called, dynamic, in_order }
}

fn add_symbols(builder: &mut Builder<'_>, name: &str, symbols: &[Symbol], text: SectionId) {
    builder.version_base = Some(name.to_owned().into_bytes().into());
    let mut versions: BTreeMap<&str, VersionId> = BTreeMap::new();
    for (version, _) in symbols.iter().filter_map(|symbol| symbol.version.as_ref()) {
        versions.entry(version).or_insert_with(|| {
            let names = vec![version.to_owned().into_bytes().into()];
            builder.versions.add(VersionData::Def(VersionDef { names, flags: 0 }))
        });
    }
    for symbol in symbols {
        let version = symbol.version.as_ref().map(|(version, _)| versions[version.as_str()]);
        let defined = builder.dynamic_symbols.add();
        defined.name = symbol.name.clone().into_bytes().into();
        defined.section = Some(text);
        // What counts symbols looks here, what writes them at the section.
        defined.st_shndx = elf::SHN_ABS;
        defined.set_st_info(elf::STB_GLOBAL, elf::STT_FUNC);
        defined.version = version.unwrap_or(VersionId::global());
    }
}

fn add_dynamic(builder: &mut Builder<'_>, name: &str, dynamic: SectionId) {
    let mut entries = vec![Dynamic::String { tag: elf::DT_SONAME, val: name.to_owned().into_bytes().into() }];
    let tags = [
        elf::DT_GNU_HASH,
        elf::DT_STRTAB,
        elf::DT_SYMTAB,
        elf::DT_STRSZ,
        elf::DT_VERSYM,
        elf::DT_VERDEF,
        elf::DT_VERDEFNUM,
    ];
    entries.extend(tags.map(|tag| Dynamic::Auto { tag }));
    entries.push(Dynamic::Integer { tag: elf::DT_SYMENT, val: size_of::<elf::Sym64<Endianness>>() as u64 });
    builder.sections.get_mut(dynamic).data = SectionData::Dynamic(entries);
}

/// Gives sections their addresses: one segment for each kind of rights, the first with the headers of the file.
fn lay_out(builder: &mut Builder<'_>, sections: &Sections) {
    builder.set_section_sizes();
    let mut segments: Vec<(SegmentId, u32)> = Vec::new();
    // Its size counts in the headers, so it is there before them.
    let dynamic = add_segment(builder, elf::PT_DYNAMIC, elf::PF_R | elf::PF_W, 8);
    add_segment(builder, elf::PT_GNU_STACK, elf::PF_R | elf::PF_W, 16);
    for rights in [elf::PF_R, elf::PF_R | elf::PF_X, elf::PF_R | elf::PF_W] {
        segments.push((add_segment(builder, elf::PT_LOAD, rights, PAGE), rights));
    }
    let headers = (builder.file_header_size() + builder.program_headers_size()) as u64;
    let mut end = headers;
    for (index, (segment, rights)) in segments.into_iter().enumerate() {
        let segment = builder.segments.get_mut(segment);
        if index == 0 {
            (segment.p_filesz, segment.p_memsz) = (headers, headers);
        } else {
            segment.p_offset = end.next_multiple_of(16);
            segment.p_vaddr = segment.p_offset + index as u64 * PAGE;
            segment.p_paddr = segment.p_vaddr;
        }
        for (section, _) in sections.in_order.iter().filter(|(_, of_section)| *of_section == rights) {
            segment.append_section(builder.sections.get_mut(*section));
        }
        end = segment.p_offset + segment.p_filesz;
    }
    let section = builder.sections.get_mut(sections.dynamic);
    builder.segments.get_mut(dynamic).append_section(section);
}

fn add_segment(builder: &mut Builder<'_>, kind: u32, rights: u32, align: u64) -> SegmentId {
    let segment: &mut Segment<'_> = builder.segments.add();
    segment.p_type = kind;
    segment.p_flags = rights;
    segment.p_align = align;
    segment.id()
}

/// Writes the code and the addresses of functions, which are known now.
fn fill_text(
    builder: &mut Builder<'_>,
    code: &Code,
    parts: &Parts,
    sections: &Sections,
    symbols: &[Symbol],
    result: u16,
) -> Result<(), String> {
    let address = |section: SectionId| builder.sections.get(section).sh_addr;
    let (text, messages, called) =
        (address(sections.text), address(sections.messages), address(sections.called));
    let shared = code.stride * symbols.len() as u64;
    // An instruction of AArch64 reaches a megabyte.
    if called + symbols.len() as u64 > 1 << 20 {
        return Err("too many functions".to_owned());
    }
    let mut bytes = Vec::new();
    for (index, &(place, length)) in parts.places.iter().enumerate() {
        let here = text + bytes.len() as u64;
        let distance = |there: u64| (there as i64 - here as i64) as i32;
        bytes.extend(code.function(Function {
            message: distance(messages) + place,
            length,
            called: distance(called + index as u64),
            shared: distance(text + shared + piece_of(&symbols[index].name) * SHARED),
        }));
    }
    for (piece, returned) in pieces(result).into_iter().enumerate() {
        bytes.extend(code.shared(returned));
        bytes.resize((shared + (piece as u64 + 1) * SHARED) as usize, 0);
    }
    builder.sections.get_mut(sections.text).data = SectionData::Data(bytes.into());
    for (index, symbol) in builder.dynamic_symbols.iter_mut().enumerate() {
        symbol.st_value = text + index as u64 * code.stride;
        symbol.st_size = code.stride;
    }
    Ok(())
}
