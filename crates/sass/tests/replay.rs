//! What nvdisasm 12.8 said of recorded words (`conformance/sass`), against this crate: no difference is allowed.

use std::fs;
use std::path::Path;

use sass::{Arch, Instruction};

/// One recorded answer.
struct Entry {
    arch: Arch,
    word: u128,
    /// The text; `None` if nvdisasm refused the word, or it is another instruction.
    text: Option<String>,
}

fn records() -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sass");
    let mut entries = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(arch) = name.strip_prefix("texts-").and_then(|rest| rest.strip_suffix(".tsv.zst")) else {
            continue;
        };
        let arch = Arch::parse(arch).unwrap();
        let text = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        for line in String::from_utf8(text).unwrap().lines().filter(|line| !line.starts_with('#')) {
            let (word, text) = line.split_once('\t').unwrap();
            let text = (text != "illegal" && text != "other").then(|| text.to_owned());
            entries.push(Entry { arch, word: u128::from_str_radix(word, 16).unwrap(), text });
        }
    }
    entries
}

/// The first few of many messages, as one.
fn report(differences: &[String]) {
    let shown = differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}

#[test]
fn words_have_the_text_that_nvdisasm_prints() {
    let entries = records();
    assert!(entries.len() > 100_000, "only {} recorded words", entries.len());
    for arch in Arch::ALL {
        assert!(entries.iter().any(|entry| entry.arch == arch), "nothing recorded for {arch}");
    }
    let mut differences = Vec::new();
    for Entry { arch, word, text } in &entries {
        let ours = Instruction::decode(*arch, *word).map(|instruction| instruction.to_string());
        if ours.as_ref().ok() != text.as_ref() {
            differences.push(format!("{arch} {word:x}\n  nvdisasm {text:?}\n  ours     {ours:?}"));
        }
    }
    report(&differences);
}

#[test]
fn words_come_back_but_for_ignored_bits() {
    let mut differences = Vec::new();
    for Entry { arch, word, .. } in records() {
        let Ok(instruction) = Instruction::decode(arch, word) else { continue };
        let canonical = word & !instruction.ignored_bits();
        if instruction.encode() != Ok(canonical) {
            differences.push(format!("{arch} {word:x}: {:x?}", instruction.encode()));
        }
    }
    report(&differences);
}

#[test]
fn texts_give_their_words_back() {
    let mut differences = Vec::new();
    for Entry { arch, text, .. } in records() {
        let Some(text) = text else { continue };
        let again = match sass::parse(arch, &text) {
            Ok(parsed) => parsed.instruction.to_string(),
            Err(diagnostic) => format!("{diagnostic:?}"),
        };
        // A target whose listing does not show the stall: text that leaves it out gets one.
        if again.replace(" ;", ";") != text.replace(" ;", ";") {
            differences.push(format!("{arch}\n  nvdisasm {text}\n  ours     {again}"));
        }
    }
    report(&differences);
}
