//! Asks nvdisasm about words that stand in no file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::Result;
use test_utils::words::{ILLEGAL, OTHER};

/// A control word of Maxwell that says nothing: no stall, no barriers.
const SILENT: u64 = 0x7e0 | 0x7e0 << 21 | 0x7e0 << 42;

/// The text of each word, without the padding between the columns of the listing; [`ILLEGAL`] for a word that is refused,
/// [`OTHER`] for another instruction. Words of Maxwell are asked about behind silent control words.
pub fn texts(nvdisasm: &Path, target: &str, words: &[u128], bits: u32) -> Result<Vec<String>> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let slots = if bits == 64 { 3 } else { 1 };
    let place = |n: usize| match bits {
        64 => 32 * (n / 3) + 8 * (n % 3 + 1),
        _ => 16 * n,
    };
    let mut asked = words.to_vec();
    asked.resize(words.len().next_multiple_of(slots), nop(bits));
    let mut illegal = BTreeSet::new();
    // One bad word keeps all others from being printed, but every bad one is named.
    let listing = loop {
        let mut bytes = Vec::with_capacity(words.len() * 16);
        for group in asked.chunks(slots) {
            if bits == 64 {
                bytes.extend(SILENT.to_le_bytes());
            }
            for word in group {
                bytes.extend(&word.to_le_bytes()[..bits as usize / 8]);
            }
        }
        match disassemble(nvdisasm, target, &bytes)? {
            Ok(listing) => break listing,
            Err(bad) => {
                for n in (0..words.len()).filter(|n| bad.contains(&place(*n))) {
                    illegal.insert(n);
                    asked[n] = nop(bits);
                }
            }
        }
    };
    let mut texts = vec![String::new(); words.len()];
    for (address, text) in lines(&listing) {
        let n = if bits == 64 { address / 32 * 3 + (address % 32 / 8) - 1 } else { address / 16 };
        if let Some(place) = texts.get_mut(n) {
            *place = text;
        }
    }
    for (n, text) in texts.iter_mut().enumerate() {
        if illegal.contains(&n) {
            *text = ILLEGAL.to_owned();
        } else if !is_hsetp2(text) {
            // A few opcodes are passed over in silence.
            *text = OTHER.to_owned();
        }
    }
    Ok(texts)
}

/// An instruction of which no column is empty.
fn nop(bits: u32) -> u128 {
    if bits == 64 { 0x50b0_0000_0007_0f00 } else { 0x000f_c000_0000_0000_0000_0000_0000_7918 }
}

fn is_hsetp2(text: &str) -> bool {
    let name = if text.starts_with('@') { text.split(' ').nth(1) } else { text.split(' ').next() };
    name.is_some_and(|name| name.starts_with("HSETP2."))
}

/// The listing of raw instruction memory, or the addresses of the words that are refused.
pub fn disassemble(
    nvdisasm: &Path,
    target: &str,
    bytes: &[u8],
) -> Result<std::result::Result<String, BTreeSet<usize>>> {
    let scratch = tempfile::tempdir()?;
    let path = scratch.path().join("words.bin");
    fs::write(&path, bytes)?;
    let output = Command::new(nvdisasm).args(["-b", &target.replace("sm_", "SM")]).arg(&path).output()?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8(output.stdout)?));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let address = |line: &str| {
        let digits = line.rsplit_once("at address 0x")?.1.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        usize::from_str_radix(digits, 16).ok()
    };
    let bad: BTreeSet<usize> = said.lines().filter_map(address).collect();
    if bad.is_empty() {
        return Err(format!("nvdisasm: {}", said.lines().next().unwrap_or("no output")).into());
    }
    Ok(Err(bad))
}

/// The instructions of a listing with their addresses. Runs of blanks are reduced to one.
pub fn lines(listing: &str) -> impl Iterator<Item = (usize, String)> {
    listing.lines().filter_map(|line| {
        let (address, text) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
        let address = usize::from_str_radix(address, 16).ok()?;
        let text: Vec<&str> = text.split_whitespace().collect();
        Some((address, text.join(" ")))
    })
}
