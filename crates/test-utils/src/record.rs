//! Records that are lines of text, compressed.

use std::fs;

use crate::root;

/// The text of a record in `conformance`, without the line that says how it was made.
pub fn read(name: &str) -> String {
    let path = root().join("conformance").join(name);
    let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::from_utf8(zstd::decode_all(file).expect("it is compressed")).expect("it is text");
    let header = text.find('\n').expect("a header");
    text.drain(..=header);
    text
}

/// The text of a record; panics if `check` finds lines wrong, and shows the first of them.
pub fn agrees(name: &str, check: impl Fn(&str) -> Result<(), String>) -> String {
    let vectors = read(name);
    let failures: Vec<String> = vectors.lines().filter_map(|line| check(line).err()).collect();
    let shown = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    let count = vectors.lines().count();
    assert!(failures.is_empty(), "{} of {count} differ:\n{shown}", failures.len());
    vectors
}

/// The manual has `fma.bf16` to nearest alone (not `fma.f32.bf16`, which has all roundings). ptxas takes the other roundings,
/// and makes code of them that computes in `.f16`, or rounds to nearest: no meaning to compare with.
pub fn is_other_code(line: &str) -> bool {
    let mnemonic = line.split(' ').next().unwrap_or_default();
    let rounded = ["fma.rm.", "fma.rp.", "fma.rz."].iter().any(|fma| mnemonic.starts_with(fma));
    rounded && mnemonic.contains("bf16") && !mnemonic.contains(".f32.")
}

#[test]
fn mixed_precision_is_compared_in_all_roundings() {
    assert!(is_other_code("fma.rz.oob.relu.bf16x2 0 0 0 = 0"));
    for line in ["fma.rz.f32.bf16 0 0 0 = 0", "fma.rn.bf16 0 0 0 = 0", "fma.rz.f16 0 0 0 = 0"] {
        assert!(!is_other_code(line), "{line}");
    }
}
