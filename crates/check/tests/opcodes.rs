//! The words that the checker takes for instructions are those that ptxas knows (`conformance/opcodes.tsv`).

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_instruction_that_ptxas_knows_is_known_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/opcodes.tsv");
    let text = std::fs::read_to_string(path).expect("the record");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let recorded: BTreeSet<&str> = lines.filter_map(|line| line.split('\t').next()).collect();
    let known: BTreeSet<&str> = check::opcodes().collect();
    assert_eq!(recorded.difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(known.difference(&recorded).collect::<Vec<_>>(), Vec::<&&str>::new());
}
