//! Nothing panics, and what parses prints to something stable: arbitrary bytes, soups of tokens, and files of
//! `tests/roundtrip` with pieces cut out, doubled and exchanged.

use std::path::Path;

use diag::SourceFile;
use proptest::prelude::*;

/// Parses, prints and parses again. Returns whether there was nothing to complain about.
fn survives(bytes: &[u8]) -> bool {
    let source = SourceFile::from_bytes("f", bytes);
    let (tree, diagnostics) = syntax::parse(&source);
    for diagnostic in &diagnostics {
        let _ = source.position(diagnostic.span.start);
        assert!(diagnostic.span.start <= diagnostic.span.end);
        assert!(source.text().get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
        assert!(diagnostic.labels.iter().all(|label| source.text().get(label.span.range()).is_some()));
    }
    assert!(diagnostics.is_sorted_by_key(|diagnostic| diagnostic.span.start), "{diagnostics:?}");
    let printed = SourceFile::new("printed", tree.to_string());
    let (again, complaints) = syntax::parse(&printed);
    if diagnostics.is_empty() {
        assert!(complaints.is_empty(), "{complaints:?}\n{}", printed.text());
        assert!(again == tree, "{}", printed.text());
    }
    diagnostics.is_empty()
}

const WORDS: &[&str] = &[
    ".version 8.8",
    ".target",
    "sm_90",
    ".address_size",
    "64",
    ".visible",
    ".extern",
    ".weak",
    ".entry",
    ".func",
    ".param",
    ".reg",
    ".global",
    ".const",
    ".shared",
    ".local",
    ".align",
    ".b32",
    ".u64",
    ".f32",
    ".pred",
    ".bf16",
    ".v2",
    ".ptr",
    ".maxntid",
    ".pragma",
    "\"s\"",
    ".loc",
    ".file",
    ".section",
    ".debug_info",
    ".alias",
    ".noreturn",
    ".branchtargets",
    ".calltargets",
    ".callprototype",
    ".attribute(.managed)",
    "add",
    "call",
    "foo",
    "%r1",
    "%p1",
    "L",
    "generic",
    "_",
    "WARP_SZ",
    "0",
    "1U",
    "0x1F",
    "0f3F800000",
    "1.5",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    ">",
    "<<",
    "==",
    "=",
    "?",
    "~",
    "&&",
    "\"",
    "#",
    "/*",
    "*/",
    "//",
    ".",
    "::",
    "$",
    "\\",
    "\0",
    "\u{e9}",
    "(.s64)",
    "function_name",
    "inlined_at",
    "@@DWARF",
    "{ret;}",
    "()",
];

fn soup(words: impl Iterator<Item = (usize, bool)>) -> String {
    words
        .map(|(word, line)| format!("{}{}", WORDS[word % WORDS.len()], if line { "\n" } else { " " }))
        .collect()
}

fn seeds() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/roundtrip");
    let entries = std::fs::read_dir(directory).expect("tests/roundtrip");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("a file")).collect();
    assert!(seeds.len() >= 5);
    seeds
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survives(&bytes);
    }

    #[test]
    fn arbitrary_text_in_a_body(text in "\\PC{0,80}") {
        survives(format!(".version 8.8 .target sm_90 .entry f() {{ {text} }}").as_bytes());
    }

    #[test]
    fn soups_of_tokens(words in proptest::collection::vec(any::<(usize, bool)>(), 0..80), place in 0..3) {
        let soup = soup(words.into_iter());
        let text = match place {
            0 => soup,
            1 => format!(".version 8.8\n.target sm_90\n{soup}"),
            _ => format!(".version 8.8\n.target sm_90\n.entry f() {{\n{soup}\n}}"),
        };
        survives(text.as_bytes());
    }

    #[test]
    fn one_operand_of_tokens(words in proptest::collection::vec(any::<usize>(), 0..8)) {
        let soup = soup(words.into_iter().map(|word| (word, false)));
        survives(format!(".version 8.8\n.target sm_90\n.entry f() {{\nfoo a, {soup};\n}}").as_bytes());
    }

    #[test]
    fn mutated_files(
        seed in any::<usize>(),
        edits in proptest::collection::vec((any::<(usize, usize, usize)>(), 0..5_u8), 1..6),
    ) {
        let seeds = seeds();
        let mut bytes = seeds[seed % seeds.len()].clone();
        for ((at, length, other), edit) in edits {
            let at = at % (bytes.len() + 1);
            let end = (at + length % 40).min(bytes.len());
            match edit {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.truncate(at),
                2 => {
                    let piece = bytes[at..end].to_vec();
                    let to = other % (bytes.len() + 1);
                    bytes.splice(to..to, piece);
                }
                3 => {
                    let word = WORDS[other % WORDS.len()].bytes();
                    bytes.splice(at..at, word);
                }
                _ => if let Some(byte) = bytes.get_mut(at) { *byte = other as u8 },
            }
        }
        survives(&bytes);
    }
}

#[test]
fn every_prefix_of_a_file() {
    for seed in seeds() {
        for end in 0..seed.len() {
            survives(&seed[..end]);
        }
        assert!(survives(&seed));
    }
}

#[test]
fn soups_that_parse_are_found() {
    // The tests above would prove little if nothing random ever parsed.
    assert!(survives(b".version 8.8\n.target sm_90\n.entry f() { foo a, %r1 + 1 ? - 2 : WARP_SZ ; }"));
    assert!(!survives(b".version 8.8\n.target sm_90\n.entry f() { foo a, + ; }"));
}
