//! `cargo xtask record sass --check`: words between nvdisasm 12.8 and `crates/sass`; nothing is written. The words are in no
//! record, or with `--all` they are those of the records.

use std::fs;
use std::path::Path;

use ::sass::{Arch, Instruction};

use super::super::oracle::Disassembler;
use super::super::{Result, files_with_extension};
use super::{ask, words};
use test_utils::words::{ILLEGAL, OTHER, Record, Section, digest};

/// What was found.
#[derive(Default)]
struct Tally {
    words: usize,
    /// Those that nvdisasm takes for HSETP2.
    legal: usize,
    differences: Vec<String>,
}

/// Asks about `count` random words of each form and generation, and about the words that their texts assemble to.
pub fn check(oracles: &Path, seed: u64, count: usize) -> Result<()> {
    let nvdisasm = Disassembler::V12_8.open(oracles)?;
    let mut total = Tally::default();
    for section in words::all_sections(seed, count).iter().filter(|section| !section.halves) {
        total.add(section, check_section(&nvdisasm, section)?.0);
    }
    total.end()
}

/// Asks again about all words of the records in `folder`: the answers must be those that were recorded, kept or not.
pub fn check_record(oracles: &Path, folder: &Path) -> Result<()> {
    let nvdisasm = Disassembler::V12_8.open(oracles)?;
    let mut total = Tally::default();
    let is_words =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"words-"));
    for path in files_with_extension(folder, "zst")?.iter().filter(|path| is_words(path)) {
        let record = Record::read(fs::File::open(path)?)?;
        for (index, section) in record.sections.iter().enumerate() {
            let (mut tally, texts) = check_section(&nvdisasm, section)?;
            let recorded = (0..section.kept_count()).map(|n| record.text(index, 0, n));
            if digest(&texts) != section.digest || !recorded.eq(section.kept(&texts).cloned()) {
                tally.differences.push(format!("{}: other texts were recorded", section.targets[0]));
            }
            total.add(section, tally);
        }
    }
    total.end()
}

impl Tally {
    fn add(&mut self, section: &Section, tally: Tally) {
        let (target, form) = (&section.targets[0], &section.form);
        println!("{target} {form}: {} words, {} differences", tally.words, tally.differences.len());
        self.words += tally.words;
        self.legal += tally.legal;
        self.differences.extend(tally.differences);
    }

    fn end(mut self) -> Result<()> {
        let Tally { words, legal, differences } = &mut self;
        println!("{words} words, {legal} of them HSETP2, {} differences", differences.len());
        differences.truncate(20);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
    }
}

/// What differs, and what nvdisasm says about each word.
fn check_section(nvdisasm: &Path, section: &Section) -> Result<(Tally, Vec<String>)> {
    let mut tally = Tally::default();
    let target = &section.targets[0];
    let arch = Arch::parse(target).ok_or("an unknown target")?;
    let asked = section.words();
    let texts = words::ask(nvdisasm, section, &asked)?;
    let mut back = Vec::new();
    for (word, theirs) in asked.iter().zip(&texts) {
        tally.words += 1;
        let theirs = Some(theirs).filter(|text| *text != ILLEGAL && *text != OTHER);
        let ours = Instruction::decode(arch, *word).ok().map(|instruction| instruction.to_string());
        if ours.as_ref() != theirs {
            tally.differences.push(format!("{target} {word:x}\n  nvdisasm {theirs:?}\n  ours     {ours:?}"));
        }
        let Some(theirs) = theirs else { continue };
        tally.legal += 1;
        match ::sass::parse(arch, theirs).map(|parsed| parsed.instruction.encode()) {
            Ok(Ok(word)) => back.push((theirs, word)),
            other => tally.differences.push(format!("{target} {theirs}: {other:?}")),
        }
    }
    let assembled: Vec<u128> = back.iter().map(|(_, word)| *word).collect();
    let again = ask::texts(nvdisasm, target, &assembled, section.bits)?;
    for ((text, word), again) in back.iter().zip(&again) {
        // A blank before the semicolon stands for control information that the listing hides.
        if text.replace(" ;", ";") != again.replace(" ;", ";") {
            tally.differences.push(format!("{target} {text}\n  assembles to {word:x}\n  which is {again}"));
        }
    }
    Ok((tally, texts))
}
