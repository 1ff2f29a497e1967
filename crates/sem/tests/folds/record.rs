//! Recordings of what the code of ptxas computes.

use std::fs;
use std::path::Path;

/// The text of a recording in `conformance/values`, without its header; panics if `check` finds lines wrong, and shows the first of them.
pub fn agrees(name: &str, check: impl Fn(&str) -> Result<(), String>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/values").join(name);
    let bytes =
        zstd::decode_all(fs::File::open(path).expect("the record is there")).expect("it is compressed");
    let text = String::from_utf8(bytes).expect("it is text");
    let (_, vectors) = text.split_once('\n').expect("a header");
    let failures: Vec<String> = vectors.lines().filter_map(|line| check(line).err()).collect();
    let shown = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    let count = vectors.lines().count();
    assert!(failures.is_empty(), "{} of {count} differ:\n{shown}", failures.len());
    vectors.to_owned()
}
