//! `cargo xtask record sass --check`: words that are in no record, between nvdisasm 12.8 and `crates/sass`; nothing is written.

use std::path::Path;

use ::sass::{Arch, Instruction};

use super::super::Result;
use super::super::oracle::Disassembler;
use super::{ask, words};
use test_utils::words::{ILLEGAL, OTHER, Section};

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
        let mut tally = Tally::default();
        check_section(&nvdisasm, section, &mut tally)?;
        let (target, form) = (&section.targets[0], &section.form);
        println!("{target} {form}: {} words, {} differences", tally.words, tally.differences.len());
        total.words += tally.words;
        total.legal += tally.legal;
        total.differences.extend(tally.differences);
    }
    println!(
        "{} words, {} of them HSETP2, {} differences",
        total.words,
        total.legal,
        total.differences.len()
    );
    total.differences.truncate(20);
    if total.differences.is_empty() { Ok(()) } else { Err(total.differences.join("\n").into()) }
}

fn check_section(nvdisasm: &Path, section: &Section, tally: &mut Tally) -> Result<()> {
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
    Ok(())
}
