//! Cubins of ptxas, against nvdisasm's listings of them (`conformance/sass/cubins`); and what is no cubin.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sass::binary::{self, Content};
use sass::{Arch, Illegal, Style};

const TARGETS: [&str; 6] = ["sm_53", "sm_70", "sm_75", "sm_90", "sm_100", "sm_120"];

fn path(target: &str, extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sass/cubins");
    folder.join(format!("{target}.{extension}"))
}

fn cubin(target: &str) -> Vec<u8> {
    fs::read(path(target, "cubin")).unwrap()
}

/// By section: of each address the word, and the text, which a control word has not.
type Listing = BTreeMap<String, BTreeMap<u64, (u128, Option<String>)>>;

/// Reads a listing of `nvdisasm -c -hex`. Behind an instruction stands its word, but on the next line behind the second of a
/// pair. A group's control word has a line before it, the upper half of 128 bits one behind them.
fn listing(target: &str) -> Listing {
    let text = zstd::decode_all(fs::File::open(path(target, "txt.zst")).unwrap()).unwrap();
    let narrow = Arch::parse(target).unwrap().word_bits() == 64;
    let mut listing = Listing::new();
    let mut section = String::new();
    let mut control = None;
    let mut last = 0;
    for line in String::from_utf8(text).unwrap().lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| name.starts_with(".text")) {
            section = name.to_owned();
        }
        let (before, word) = line.rsplit_once("/* 0x").unwrap_or((line, ""));
        let word = u128::from_str_radix(word.trim_end_matches(" */"), 16).ok();
        let lines = listing.entry(section.clone()).or_default();
        let instruction = before.trim_start().strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
        match (instruction, word) {
            (Some((address, text)), _) => {
                last = u64::from_str_radix(address, 16).unwrap();
                let text: Vec<&str> = text.split_whitespace().collect();
                lines.insert(last, (word.unwrap_or(0), Some(text.join(" "))));
                if let Some(control) = control.take() {
                    lines.insert(last - 8, (control, None));
                }
            }
            (None, Some(word)) if !narrow => lines.get_mut(&last).unwrap().0 |= word << 64,
            (None, Some(word)) => match lines.get_mut(&last) {
                Some((second @ 0, _)) => *second = word,
                _ => control = Some(word),
            },
            (None, None) => {}
        }
    }
    listing.retain(|_, lines| !lines.is_empty());
    listing
}

#[test]
fn cubins_are_listed_as_nvdisasm_lists_them() {
    for target in TARGETS {
        let arch = Arch::parse(target).unwrap();
        let bytes = cubin(target);
        assert_eq!(binary::target(&bytes), Some(arch.number().into()), "{target}");
        let sections = binary::cubin(arch, &bytes).unwrap();
        let theirs = listing(target);
        let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!((names.len(), theirs.len()), (2, 2), "{target} {names:?}");
        let mut compares = 0;
        for section in &sections {
            let theirs = &theirs[&section.name];
            assert_eq!(section.lines.len(), theirs.len(), "{target} {}", section.name);
            for line in &section.lines {
                let (word, text) = &theirs[&line.address];
                assert_eq!(line.word, *word, "{target} {} {:#x}", section.name, line.address);
                let hsetp2 = text.as_ref().filter(|text| text.contains("HSETP2"));
                assert_eq!(line.text(Style::Nvdisasm).as_ref(), hsetp2, "{target}");
                compares += usize::from(hsetp2.is_some());
                if hsetp2.is_none() {
                    let other = Content::Other(Illegal::NotHsetp2);
                    assert_eq!(
                        line.content,
                        if text.is_some() { other } else { Content::Control },
                        "{target}"
                    );
                }
            }
        }
        assert!(compares >= 4, "{target}: {compares}");
    }
}

#[test]
fn sections_that_overlap_are_refused() {
    // Two headers for the same code: the second section's offset and size become those of the first.
    let mut bytes = cubin("sm_70");
    let field = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let headers = field(&bytes, 0x28) as usize;
    let count = usize::from(bytes[0x3c]);
    let code: Vec<usize> =
        (0..count).map(|n| headers + 64 * n).filter(|at| field(&bytes, at + 8) & 4 != 0).collect();
    let whole = bytes.len() as u64;
    for at in &code {
        bytes[at + 0x18..at + 0x20].copy_from_slice(&0u64.to_le_bytes());
        bytes[at + 0x20..at + 0x28].copy_from_slice(&whole.to_le_bytes());
    }
    assert_eq!(code.len(), 2);
    let error = binary::cubin(Arch::parse("sm_70").unwrap(), &bytes).unwrap_err();
    assert_eq!(error, "its code sections overlap");
}

proptest! {
    #[test]
    fn what_is_no_cubin_does_not_panic(
        n in 0..TARGETS.len(),
        arch in 0..Arch::ALL.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        header in prop::collection::vec((0..64usize, any::<u8>()), 0..3),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = cubin(TARGETS[n]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for (at, value) in header {
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        let _ = binary::target(&bytes);
        if let Ok(sections) = binary::cubin(Arch::ALL[arch], &bytes) {
            let words: usize = sections.iter().map(|section| section.lines.len()).sum();
            prop_assert!(words * 8 <= bytes.len());
        }
        binary::raw(Arch::ALL[arch], &bytes);
    }
}
