//! Modules of `tests/` with a few words changed.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use isa::{Mod, Type};

use super::NUMBERS;

/// Longer modules are left alone.
const LINES: usize = 60;

/// The modules of `tests/` that are short.
pub fn bases() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let folders = ["fail", "roundtrip", "run"].map(|name| root.join(name));
    let mut paths: Vec<_> = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())))
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    paths.sort();
    let texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    let no_comment = |line: &str| line.split("//").next().unwrap_or_default().trim().to_owned();
    let plain = texts.map(|text| {
        text.lines().map(no_comment).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n") + "\n"
    });
    plain.filter(|text| text.is_ascii() && text.lines().count() <= LINES && text.len() < 3000).collect()
}

/// A module with one to three words dropped, doubled, replaced or swapped.
pub fn changed(base: &str, rng: &mut Rng) -> String {
    let mut words = words(base);
    for _ in 0..rng.usize(1..=2) {
        let seen: Vec<usize> = (0..words.len()).filter(|&i| !words[i].trim().is_empty()).collect();
        let Some(&place) = seen.get(rng.usize(..seen.len().max(1))) else { break };
        let other = seen[rng.usize(..seen.len())];
        match rng.u8(..7) {
            0 => drop(words.remove(place)),
            1 => words.insert(place, words[place].clone()),
            2 => words.swap(place, other),
            3 => words[place] = words[other].clone(),
            4 => words[place] = format!(".{}", Type::ALL[rng.usize(..Type::ALL.len())].name()),
            5 => words[place] = format!(".{}", Mod::ALL[rng.usize(..Mod::ALL.len())].name()),
            _ => NUMBERS[rng.usize(..NUMBERS.len())].clone_into(&mut words[place]),
        }
    }
    words.concat()
}

/// Names with their dots, numbers, runs of blanks and single signs.
fn words(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "_$%:".contains(c) => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(word)
                if kind(c) < 2
                    && (word.chars().last().map(kind) == Some(kind(c)) || kind(c) == 0 && word == ".") =>
            {
                word.push(c);
            }
            _ => words.push(c.into()),
        }
    }
    words
}
