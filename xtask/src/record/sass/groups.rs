//! `groups.zst`: what nvdisasm 12.8 prints for groups of Maxwell behind random control words.
//!
//! A line of the record is a target, a control word, and the three texts behind it, separated by tabs; `illegal` for one that is
//! refused. The three words of a group are those of its place in the file: the control words are what is tried out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::super::Result;
use super::super::oracle::Disassembler;
use super::{ask, provenance};
use test_utils::words::{ILLEGAL, Random, group};

const TARGETS: [&str; 5] = ["sm_52", "sm_53", "sm_60", "sm_61", "sm_62"];

/// Asks about `count` groups of each target, and writes the file into `folder`.
pub fn record(oracles: &Path, folder: &Path, seed: u64, count: usize) -> Result<()> {
    let nvdisasm = Disassembler::V12_8.open(oracles)?;
    let mut text = format!("# {}\n", provenance(oracles, Disassembler::V12_8)?);
    let mut illegal = 0;
    for (target, seed) in TARGETS.into_iter().zip(seed..) {
        let mut random = Random(seed);
        let controls: Vec<u64> = (0..count).map(|n| control(n, &mut random)).collect();
        for (control, texts) in controls.iter().zip(texts(&nvdisasm, target, &controls)?) {
            illegal += texts.iter().filter(|text| *text == ILLEGAL).count();
            writeln!(text, "{target}\t{control:016x}\t{}", texts.join("\t"))?;
        }
    }
    let path = folder.join("groups.zst");
    let bytes = zstd::encode_all(text.as_bytes(), 19)?;
    let words = TARGETS.len() * count * 3;
    println!("{}: {words} words, {illegal} illegal, {} bytes", path.display(), bytes.len());
    Ok(fs::write(path, bytes)?)
}

/// What HSETP2 cannot have: this bit of a slot's reuse field.
const REFUSED: u64 = 8 << 17;

/// A quarter is anything. In the others the bit that is refused is clear, and in one of those that are left some are issued
/// together: but never the last with what is in the next group, which nvdisasm then refuses.
fn control(n: usize, random: &mut Random) -> u64 {
    let any = random.bits();
    let mut control = if n.is_multiple_of(8) { any & 1 << 63 } else { 0 };
    for slot in 0..3 {
        let mut bits = any >> (21 * slot) & 0x1f_ffff;
        if !n.is_multiple_of(4) {
            bits &= !REFUSED;
        }
        if n % 4 == 1 && random.below(3) == 0 {
            bits = bits & !0x1f | 0x10;
        }
        if slot == 2 && bits & 0x1f == 0x10 {
            bits ^= 1;
        }
        control |= bits << (21 * slot);
    }
    control
}

/// The three texts behind each control word.
fn texts(nvdisasm: &Path, target: &str, controls: &[u64]) -> Result<Vec<[String; 3]>> {
    let mut controls = controls.to_vec();
    let mut texts = vec![[const { String::new() }; 3]; controls.len()];
    // One bad word keeps all others from being printed, but every bad one is named: its bit is cleared.
    let listing = loop {
        let mut bytes = Vec::with_capacity(controls.len() * 32);
        for (n, control) in controls.iter().enumerate() {
            bytes.extend(control.to_le_bytes());
            bytes.extend(group(n).into_iter().flat_map(u64::to_le_bytes));
        }
        match ask::disassemble(nvdisasm, target, &bytes)? {
            Ok(listing) => break listing,
            Err(bad) if texts.iter().flatten().any(|text| *text == ILLEGAL) => {
                return Err(format!("{} words are refused for another reason", bad.len()).into());
            }
            Err(bad) => {
                for address in bad {
                    let (n, slot) = (address / 32, (address % 32 / 8).saturating_sub(1));
                    texts[n][slot] = ILLEGAL.to_owned();
                    controls[n] &= !(REFUSED << (21 * slot));
                }
            }
        }
    };
    for (address, text) in ask::lines(&listing) {
        let place =
            texts.get_mut(address / 32).and_then(|texts| texts.get_mut((address % 32 / 8).checked_sub(1)?));
        if let Some(place) = place.filter(|place| place.is_empty()) {
            *place = text;
        }
    }
    Ok(texts)
}
