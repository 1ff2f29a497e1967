//! What nvdisasm 12.8 said of recorded words (`conformance/sass`), against this crate: no difference is allowed.
//!
//! The repository has a sample. `cargo xtask record sass --all --only words --to target/sass` records all answers, and
//! `PTXVM_RECORD=target/sass cargo test --release -p ptxvm-sass --test replay` replays them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use sass::{Arch, Field, Form, Generation, Instruction, Style, binary};
use test_utils::words::{self, ILLEGAL, OTHER, Record, Section};

/// One recorded answer.
struct Entry {
    arch: Arch,
    word: u128,
    /// The text; `None` if nvdisasm refused the word, or it is another instruction.
    text: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sass")
}

const FORMS: [&str; 5] = ["register", "constant", "immediate", "bound", "uniform"];

fn open(form: &str) -> Record {
    let folder = std::env::var_os("PTXVM_RECORD").map_or_else(folder, |all| test_utils::root().join(all));
    let path = folder.join(format!("words-{form}.zst"));
    Record::read(fs::File::open(path).unwrap()).unwrap()
}

/// Passes the recorded answers to `each` and returns how many there were.
fn for_each(mut each: impl FnMut(&Entry)) -> usize {
    let mut count = 0;
    for form in FORMS {
        let record = open(form);
        for (index, section) in record.sections.iter().enumerate() {
            let words = section.words();
            for (target, name) in section.targets.iter().enumerate() {
                let arch = Arch::parse(name).unwrap();
                for (n, &word) in section.kept(&words).enumerate() {
                    let text = record.text(index, target, n);
                    let text = (text != ILLEGAL && text != OTHER).then_some(text);
                    each(&Entry { arch, word, text });
                    count += 1;
                }
            }
        }
    }
    count
}

/// Differences that were found: their number, and the first few.
#[derive(Default)]
struct Differences(usize, Vec<String>);

impl Differences {
    fn add(&mut self, message: impl FnOnce() -> String) {
        self.0 += 1;
        if self.0 <= 20 {
            self.1.push(message());
        }
    }

    fn none(&self) {
        assert!(self.0 == 0, "{} differences:\n{}", self.0, self.1.join("\n"));
    }
}

#[test]
fn what_is_packed_comes_back() {
    let section = Section {
        form: "register".to_owned(),
        targets: vec!["sm_70".to_owned(), "sm_72".to_owned()],
        bits: 128,
        opcode: (0xfff, 0x234),
        ignored: 0,
        halves: false,
        count: 8,
        seed: 1,
        share: 3,
        digest: 7,
    };
    let texts = [
        [
            "@!P0 HSETP2.F.AND P0, PT, |R1|.reuse.F32, +INF , -QNAN , !P1 ?WAIT1_END_GROUP ?PM1;",
            "illegal",
            "a",
        ],
        ["HSETP2.F.AND PT, PT, RZ, -|c[0x0] [0x4].F32|, PT &req={1} ?trans1;", "c]d, e", ""],
    ];
    let texts: Vec<Vec<String>> = texts.iter().map(|texts| texts.map(str::to_owned).to_vec()).collect();
    let packed =
        words::pack("a comment", &[(section.clone(), texts.clone()), (section.clone(), texts.clone())]);
    let record = Record::read(packed.unwrap().as_slice()).unwrap();
    assert_eq!(record.sections, [section.clone(), section]);
    for (target, n) in (0..6).map(|n| (n / 3, n % 3)) {
        assert_eq!(record.text(0, target, n), texts[target][n]);
        assert_eq!(record.text(1, target, n), texts[target][n]);
    }
}

#[test]
fn enough_is_recorded() {
    let mut targets = BTreeSet::new();
    let mut counts = BTreeMap::new();
    for form in FORMS {
        for section in open(form).sections.iter().filter(|section| !section.halves) {
            for target in &section.targets {
                let arch = Arch::parse(target).unwrap();
                *counts.entry((form, arch.generation())).or_insert(0) += section.count;
                targets.insert(arch);
            }
        }
    }
    assert!(targets.into_iter().eq(Arch::ALL));
    // Three forms before Turing and from Blackwell on, five between.
    assert_eq!(counts.len(), 3 + 3 + 5 + 5 + 3);
    for (form, count) in counts {
        assert!(count >= 100_000, "{form:?}: {count}");
    }
}

#[test]
fn every_immediate_is_recorded() {
    let record = open("immediate");
    let (mut all, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for section in &record.sections {
        let arch = Arch::parse(&section.targets[0]).unwrap();
        let halves = |&word: &u128| {
            let instruction = Instruction::decode(arch, word).ok().filter(|i| i.form() == Form::Immediate);
            [Field::H0, Field::H1].into_iter().filter_map(move |half| {
                let format = instruction?.get(Field::Format);
                Some((arch.generation(), format, half == Field::H1, instruction?.get(half)))
            })
        };
        let words = section.words();
        all.extend(words.iter().flat_map(halves));
        kept.extend(section.kept(&words).flat_map(halves));
    }
    // Of Maxwell's halves 10 bits are encoded; from Hopper on there are four formats.
    assert_eq!(all.len(), 2 * (1024 + 65536 + 65536 + 4 * 65536 + 4 * 65536));
    // The sample has every sign and exponent.
    let exponents = |halves: &BTreeSet<(Generation, u16, bool, u16)>| -> BTreeSet<_> {
        let fraction = |format| if format == 2 { 7 } else { 10 };
        let cut = |&(generation, format, high, bits)| (generation, format, high, bits >> fraction(format));
        halves.iter().map(cut).collect()
    };
    assert_eq!(exponents(&kept), exponents(&all));
}

/// What a word says beside the bits of immediates and addresses, of which a sample cannot have every value.
const NARROW: [Field; 27] = [
    Field::Pg,
    Field::PgNot,
    Field::Cmp,
    Field::HAnd,
    Field::Ftz,
    Field::Bop,
    Field::Format,
    Field::Pu,
    Field::Pv,
    Field::Ra,
    Field::ANeg,
    Field::AAbs,
    Field::ASwizzle,
    Field::Rb,
    Field::Ur,
    Field::BNeg,
    Field::BAbs,
    Field::BSwizzle,
    Field::Bank,
    Field::Pp,
    Field::PpNot,
    Field::Sched,
    Field::WriteBarrier,
    Field::ReadBarrier,
    Field::Wait,
    Field::Reuse,
    Field::Monitor,
];

#[test]
fn samples_have_every_form_modifier_and_operand() {
    let (mut all, mut kept) = (HashSet::new(), HashSet::new());
    for section in FORMS.into_iter().flat_map(|form| open(form).sections) {
        let arch = Arch::parse(&section.targets[0]).unwrap();
        let values = |&word: &u128| {
            let instruction = Instruction::decode(arch, word).ok();
            let value = move |field| {
                let instruction = instruction?;
                Some((arch.generation(), instruction.form(), field, instruction.get(field)))
            };
            NARROW.into_iter().filter_map(value)
        };
        let words = section.words();
        all.extend(words.iter().flat_map(values));
        kept.extend(section.kept(&words).flat_map(values));
    }
    let missing: Vec<_> = all.difference(&kept).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn words_have_the_text_that_nvdisasm_prints() {
    let mut differences = Differences::default();
    let count = for_each(|Entry { arch, word, text }| {
        let ours = Instruction::decode(*arch, *word).map(|instruction| instruction.to_string());
        if ours.as_ref().ok() != text.as_ref() {
            differences.add(|| format!("{arch} {word:x}\n  nvdisasm {text:?}\n  ours     {ours:?}"));
        }
    });
    println!("{count} words");
    assert!(count > 100_000, "only {count}");
    differences.none();
}

#[test]
fn words_come_back_but_for_ignored_bits() {
    let mut differences = Differences::default();
    for_each(|Entry { arch, word, .. }| {
        let Ok(instruction) = Instruction::decode(*arch, *word) else { return };
        let canonical = word & !instruction.ignored_bits();
        if instruction.encode() != Ok(canonical) {
            differences.add(|| format!("{arch} {word:x}: {:x?}", instruction.encode()));
        }
    });
    differences.none();
}

/// What text says: NaN payloads are lost, and so is control information where the listing does not show it.
fn sayable(instruction: Instruction) -> Instruction {
    let mut said = instruction;
    for half in [Field::H0, Field::H1] {
        let bf16 = instruction.get(Field::Format) == 2;
        let (infinity, quiet) = if bf16 { (0x7f80, 0x7fc0) } else { (0x7c00, 0x7e00) };
        let bits = instruction.get(half);
        if bits & 0x7fff > infinity {
            said.set(half, bits & 0x8000 | quiet);
        }
    }
    if instruction.arch().word_bits() == 128 {
        said.set(Field::ReadBarrier, 7);
        said.set(Field::WriteBarrier, 7);
        if instruction.arch().number() != 120 {
            for field in [Field::Sched, Field::Wait, Field::Reuse] {
                said.set(field, 0);
            }
        }
    }
    said
}

#[test]
fn texts_give_their_words_back() {
    let mut differences = Differences::default();
    for_each(|Entry { arch, word, text }| {
        let Some(text) = text else { return };
        let word = Instruction::decode(*arch, *word).map(sayable);
        match sass::parse(*arch, text) {
            Ok(parsed) => {
                let again = parsed.instruction.to_string();
                // The blank stands for control information that the listing hides, and text leaves out.
                let same = again.replace(" ;", ";") == text.replace(" ;", ";");
                if !same || Ok(sayable(parsed.instruction)) != word {
                    differences.add(|| format!("{arch}\n  nvdisasm {text}\n  ours     {again}"));
                }
            }
            Err(diagnostic) => differences.add(|| format!("{arch} {text}: {diagnostic:?}")),
        }
    });
    differences.none();
}

#[test]
fn groups_have_the_text_that_nvdisasm_prints() {
    let text = zstd::decode_all(fs::File::open(folder().join("groups.zst")).unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut differences = Differences::default();
    let mut targets = BTreeMap::new();
    let mut kinds = [0; 3];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let arch = Arch::parse(columns[0]).unwrap();
        let n: &mut usize = targets.entry(arch).or_default();
        let control = u64::from_str_radix(columns[1], 16).unwrap();
        let words: Vec<u8> =
            [&[control], &words::group(*n)[..]].concat().into_iter().flat_map(u64::to_le_bytes).collect();
        let lines = binary::raw(arch, &words);
        for (line, theirs) in lines[1..].iter().zip(&columns[2..]) {
            let ours = line.text(Style::Nvdisasm).unwrap_or_else(|| ILLEGAL.to_owned());
            // nvdisasm passes over the third where the second of a pair is marked as the first of another.
            let passed_over =
                theirs.is_empty() && line.address == 24 && control & 0x1f == 16 && control >> 21 & 0x1f == 16;
            if ours != *theirs && !passed_over {
                differences.add(|| format!("{arch} {control:x}\n  nvdisasm {theirs}\n  ours     {ours}"));
            }
            for (kind, mark) in kinds.iter_mut().zip([ILLEGAL, "{", ".reuse"]) {
                *kind += usize::from(theirs.contains(mark));
            }
        }
        // What the control word says goes through the fuller style.
        for (slot, line) in lines[1..].iter().enumerate() {
            let binary::Content::Hsetp2(instruction) = line.content else { continue };
            let reusable = if instruction.form() == Form::Register { 3 } else { 1 };
            let said = instruction.with(Field::Reuse, instruction.get(Field::Reuse) & reusable);
            let again = sass::parse(arch, &said.text(Style::Full)).unwrap().instruction;
            let unsaid = u64::from(!reusable & 15) << 17;
            if again != said || u64::from(again.slot()) != control >> (21 * slot) & 0x1f_ffff & !unsaid {
                differences.add(|| format!("{arch} {control:x}: {}", said.text(Style::Full)));
            }
        }
        *n += 1;
    }
    assert!(targets.len() == 5 && targets.values().all(|&count| count >= 2000), "{targets:?}");
    assert!(kinds.iter().all(|&count| count > 1000), "{kinds:?}");
    differences.none();
}
