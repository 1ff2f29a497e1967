//! `words-*.zst`: what nvdisasm 12.8 prints for random words, of which a sample is kept, and `nvdisasm-13.5.txt`: where 13.5 prints something else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, thread};

use super::super::Result;
use super::super::oracle::Disassembler;
use super::{ask, provenance};
use test_utils::words::{Record, Section, digest, pack};

/// A form in one generation: how its words are told from others, and which of their bits mean nothing.
struct Form {
    name: &'static str,
    targets: &'static [&'static str],
    bits: u32,
    opcode: (u128, u128),
    ignored: u128,
    /// Formats of 16-bit immediates, where the form has them.
    formats: usize,
}

const MAXWELL: &[&str] = &["sm_52", "sm_53", "sm_60", "sm_61", "sm_62"];
const VOLTA: &[&str] = &["sm_70", "sm_72"];
const TURING: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_87", "sm_89"];
const HOPPER: &[&str] = &["sm_90"];
const BLACKWELL: &[&str] = &["sm_100", "sm_101", "sm_120"];

/// The opcodes of Maxwell's forms stand at the top of the word.
const fn maxwell(name: &'static str, mask: u128, value: u128, ignored: u128) -> Form {
    Form { name, targets: MAXWELL, bits: 64, opcode: (mask << 51, value << 51), ignored, formats: 0 }
}

/// Volta has no bit 91, no format and no control bits above 124 or between 91 and 105.
const fn volta(name: &'static str, opcode: u128, ignored: u128) -> Form {
    let formats = if opcode == 0x434 { 1 } else { 0 };
    Form { name, targets: VOLTA, bits: 128, opcode: (0xfff, opcode), ignored, formats }
}

/// From Turing on bit 91 is part of the opcode, from Hopper on bits 65:64 are the format.
const fn later(
    name: &'static str,
    targets: &'static [&'static str],
    (opcode, bit_91): (u128, u128),
    format: bool,
    ignored: u128,
) -> Form {
    let formats = if opcode != 0x434 {
        0
    } else if format {
        4
    } else {
        1
    };
    let ignored = ignored & !(1 << 91) & !(if format { 3 << 64 } else { 0 });
    Form { name, targets, bits: 128, opcode: (0xfff | 1 << 91, opcode | bit_91 << 91), ignored, formats }
}

/// What no form of the 128-bit words uses, bits 103:102 (performance monitors) among it.
const UNUSED: u128 = 0xe000_01ff_f800_001f_0000_0000_00ff_0000;
const REGISTER: u128 = UNUSED | 0x0fff_ff00 << 32;
const IMMEDIATE: u128 = UNUSED;
const CONSTANT: u128 = UNUSED | 0x0800_00ff << 32;
const BOUND: u128 = UNUSED | 0x0fc0_00c0 << 32;
const UNIFORM: u128 = UNUSED | 0x0fff_ffc0 << 32;
const UNIFORM_8: u128 = REGISTER;

const FORMS: [Form; 19] = [
    maxwell("register", 0x1fff, 0b0101110100100, 0x0004_0007_0000_0080),
    maxwell("constant", 0b1111111010000, 0b0111111010000, 0x80),
    maxwell("immediate", 0b1111111010000, 0b0111111000000, 0x0040_0000_0000_0080),
    volta("register", 0x234, REGISTER),
    volta("constant", 0x634, CONSTANT),
    volta("immediate", 0x434, IMMEDIATE),
    later("register", TURING, (0x234, 0), false, REGISTER),
    later("constant", TURING, (0x634, 0), false, CONSTANT),
    later("immediate", TURING, (0x434, 0), false, IMMEDIATE),
    later("bound", TURING, (0x634, 1), false, BOUND),
    later("uniform", TURING, (0xe34, 1), false, UNIFORM),
    later("register", HOPPER, (0x234, 0), true, REGISTER),
    later("constant", HOPPER, (0x634, 0), true, CONSTANT),
    later("immediate", HOPPER, (0x434, 0), true, IMMEDIATE),
    later("bound", HOPPER, (0x634, 1), true, BOUND),
    later("uniform", HOPPER, (0xe34, 1), true, UNIFORM),
    later("register", BLACKWELL, (0x234, 0), true, REGISTER),
    later("immediate", BLACKWELL, (0x434, 0), true, IMMEDIATE),
    later("uniform", BLACKWELL, (0xe34, 1), true, UNIFORM_8),
];

/// The targets of `FORMS` that nvdisasm 13.5 knows too.
const SHARED: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_101", "sm_120"];

/// The answer about one word in so many is kept. A prime, so that every kind of word is met.
pub const SHARE: usize = 17;

/// A section and the texts of its words that are kept, by target.
type Answered = (Section, Vec<Vec<String>>);

/// Asks both releases about `count` random words of each form and generation, its targets in equal parts, and about every
/// value of the immediates' halves. The answer about one word in `share` is kept.
pub fn record(oracles: &Path, folder: &Path, (seed, count): (u64, usize), share: usize) -> Result<()> {
    let law = Disassembler::V12_8.open(oracles)?;
    let other = Disassembler::V13_5.open(oracles)?;
    let mut files: BTreeMap<String, Vec<Answered>> = BTreeMap::new();
    let mut asked = 0;
    let mut differences = Differences::default();
    let sections = all_sections(seed, count);
    let said = thread::scope(|scope| {
        let ask = |section: &Section| -> std::result::Result<Said, String> {
            let words = section.words();
            let ask = |nvdisasm, count| ask(nvdisasm, section, &words[..count]).map_err(|e| e.to_string());
            let newer = SHARED.contains(&section.targets[0].as_str());
            let shared = if section.halves { words.len() } else { words.len() / 5 };
            Ok((ask(&law, words.len())?, newer.then(|| ask(&other, shared)).transpose()?))
        };
        let running: Vec<_> = sections.iter().map(|section| scope.spawn(move || ask(section))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<std::result::Result<Vec<_>, _>>()
    })?;
    for (mut section, (law, newer)) in sections.into_iter().zip(said) {
        if let Some(newer) = newer {
            differences.add(&section, (&law, &newer));
        }
        asked += law.len();
        (section.share, section.digest) = (share, digest(&law));
        let kept = section.kept(&law).cloned().collect();
        files.entry(section.form.clone()).or_default().push((section, vec![kept]));
    }
    let comment = provenance(oracles, Disassembler::V12_8)?;
    for (form, sections) in files {
        let path = folder.join(format!("words-{form}.zst"));
        let bytes = pack(&comment, &sections)?;
        // Whatever was said must be read again.
        let record = Record::read(bytes.as_slice())?;
        for (index, (section, texts)) in sections.iter().enumerate() {
            for (target, texts) in texts.iter().enumerate() {
                if (0..section.kept_count()).any(|n| record.text(index, target, n) != texts[n]) {
                    return Err(format!("{form}: texts are not packed faithfully").into());
                }
            }
        }
        println!("{}: {} bytes", path.display(), bytes.len());
        fs::write(path, bytes)?;
    }
    let path = folder.join("nvdisasm-13.5.txt.zst");
    let text = differences.text(&provenance(oracles, Disassembler::V13_5)?);
    fs::write(&path, zstd::encode_all(text.as_bytes(), 19)?)?;
    println!("{}: {} differing texts\n{asked} answers", path.display(), differences.total);
    Ok(())
}

/// What 12.8 said, and where 13.5 knows the target what it said about the first of the words.
type Said = (Vec<String>, Option<Vec<String>>);

/// What there is to ask about.
pub fn all_sections(seed: u64, count: usize) -> Vec<Section> {
    FORMS.iter().enumerate().flat_map(|(n, form)| sections(form, seed + 100 * n as u64, count)).collect()
}

/// Random words for each target of a form, and the halves for one of them.
fn sections(form: &Form, seed: u64, count: usize) -> Vec<Section> {
    let part = count.div_ceil(form.targets.len());
    let section = |n: usize, halves: bool, count: usize| Section {
        form: form.name.to_owned(),
        targets: vec![form.targets[n].to_owned()],
        bits: form.bits,
        opcode: form.opcode,
        ignored: form.ignored,
        halves,
        count,
        seed: seed + n as u64 + if halves { 50 } else { 0 },
        share: 1,
        digest: 0,
    };
    let random = (0..form.targets.len()).map(|n| section(n, false, part));
    let last = form.targets.len() - 1;
    random.chain((form.formats > 0).then(|| section(last, true, form.formats << 16))).collect()
}

/// What a release says about the first words of a section. Those that may be illegal are asked about apart, since they
/// cost a second run.
pub fn ask(nvdisasm: &Path, section: &Section, words: &[u128]) -> Result<Vec<String>> {
    let target = &section.targets[0];
    let risky = |n: usize| !section.halves && (n.is_multiple_of(4) || n % 32 == 31);
    let mut texts = vec![String::new(); words.len()];
    for kind in [false, true] {
        let places: Vec<usize> = (0..words.len()).filter(|n| risky(*n) == kind).collect();
        let words: Vec<u128> = places.iter().map(|n| words[*n]).collect();
        for (place, text) in places.into_iter().zip(ask::texts(nvdisasm, target, &words, section.bits)?) {
            texts[place] = text;
        }
    }
    Ok(texts)
}

/// Where the newer release prints something else.
#[derive(Default)]
struct Differences {
    total: usize,
    compared: usize,
    /// Number and first example of each kind: target, form, and what stands in place of what.
    kinds: BTreeMap<(String, String, String), (usize, String)>,
}

impl Differences {
    fn add(&mut self, section: &Section, (law, newer): (&[String], &[String])) {
        for ((word, law), newer) in section.words().iter().zip(law).zip(newer) {
            self.compared += 1;
            if law == newer {
                continue;
            }
            self.total += 1;
            let kind = (section.targets[0].clone(), section.form.clone(), change(law, newer));
            let example = || (0, format!("{word:032x}\n  12.8 {law}\n  13.5 {newer}\n"));
            self.kinds.entry(kind).or_insert_with(example).0 += 1;
        }
    }

    fn text(&self, comment: &str) -> String {
        let mut text = format!(
            "# {comment}\n# {} of {} texts differ from those of 12.8. Each kind with its number and first word:\n",
            self.total, self.compared
        );
        for ((target, form, change), (count, example)) in &self.kinds {
            // Writing to a String cannot fail.
            let _ = write!(text, "{target} {form}: {change}, {count} times\n  {example}");
        }
        text
    }
}

/// `+QNAN -> +SNAN`: the words of the texts that differ, registers and numbers aside.
fn change(law: &str, newer: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (law.split(' ').collect(), newer.split(' ').collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    format!("{} -> {}", old[start..old.len() - end].join(" "), new[start..new.len() - end].join(" "))
}
