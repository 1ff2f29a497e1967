//! The vector handlers on the values that ptxas and libnvvm fold (`conformance/values`), on every path of this machine:
//! against the records themselves, not against `sem`. Every instruction that was recorded has a handler.

use std::collections::BTreeMap;

use lanes::{Handler, HostPath, LaneWidth, Operand, available_paths};
use test_utils::folds::{is_folding_error, with_one_nan};
use test_utils::record;

/// Operands and result, as the record has them.
type Vector = (Vec<u64>, u64);

/// The vectors of a record by instruction.
fn read(name: &str) -> BTreeMap<String, Vec<Vector>> {
    let text = record::read(name);
    let mut vectors: BTreeMap<String, Vec<Vector>> = BTreeMap::new();
    let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    for line in text.lines().filter(|line| !is_folding_error(line)).map(with_one_nan) {
        let (left, result) = line.split_once(" = ").expect("a result");
        let mut words = left.split(' ');
        let instruction = words.next().expect("an instruction").to_owned();
        vectors.entry(instruction).or_default().push((words.map(number).collect(), number(result)));
    }
    vectors
}

/// The handler of an instruction.
fn handler(instruction: &str, sources: usize, path: HostPath) -> Option<Handler> {
    let mut words = instruction.split('.');
    let opcode = words.next()?;
    let modifiers: Vec<&str> = words.collect();
    let selected = isa::select(opcode, &modifiers, 1 + sources).ok()?;
    Handler::new(selected.form(), &selected.picks, path)
}

/// How many of the vectors come out otherwise than recorded; the first in words.
fn differences(instruction: &str, handler: &Handler, vectors: &[Vector]) -> Vec<String> {
    let lanes = vectors.len().next_multiple_of(16);
    let mut sources: Vec<Operand> =
        handler.sources().iter().map(|&width| Operand::new(width, lanes)).collect();
    for (lane, (operands, _)) in vectors.iter().enumerate() {
        sources.iter_mut().zip(operands).for_each(|(source, &operand)| source.set(lane, operand));
    }
    let mut destination = Operand::new(handler.destination(), lanes);
    let mut second = Operand::new(LaneWidth::Bit, lanes);
    let sources: Vec<&Operand> = sources.iter().collect();
    handler.run(&mut destination, handler.has_second().then_some(&mut second), &sources);
    let mut differences = Vec::new();
    for (lane, (operands, result)) in vectors.iter().enumerate() {
        let got = destination.get(lane) | second.get(lane) << 1;
        if got != *result {
            differences.push(format!("{instruction} of {operands:x?}: {got:x}, not {result:x}"));
        }
    }
    differences
}

/// Replays a record on every path; it must have so many instructions.
fn replay(name: &str, least: usize) {
    let record = read(name);
    for path in available_paths() {
        let (mut count, mut failures) = (0, Vec::new());
        for (instruction, vectors) in &record {
            let handler = handler(instruction, vectors[0].0.len(), path);
            let handler = handler.unwrap_or_else(|| panic!("{instruction} has no handler"));
            count += vectors.len();
            failures.extend(differences(instruction, &handler, vectors));
        }
        let shown = failures[..failures.len().min(20)].join("\n");
        assert!(failures.is_empty(), "{}: {} of {count} differ:\n{shown}", path.name(), failures.len());
        println!("{}: {count} vectors of {} instructions", path.name(), record.len());
    }
    assert!(record.len() >= least, "only {} instructions", record.len());
}

#[test]
fn equal_to_what_ptxas_folds() {
    replay("values/folds.txt.zst", 500);
}

#[test]
fn equal_to_what_libnvvm_folds() {
    replay("values/libnvvm.txt.zst", 400);
}
