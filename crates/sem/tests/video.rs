//! Video instructions on what the code computes that ptxas 13.5 makes of them (`cargo xtask record video`).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use isa::{Action, Parts, Selector};

/// May ptxas's code differ from the manual? It
/// - saturates negative results to the greatest number where the destination has a selector or the shift is to the left,
/// - compares `c` as a signed 64-bit number in `.min` and `.max`,
/// - multiplies and adds signed 32-bit numbers in `vmad`, which shows above bit 31, and drops the signs of `-a * -b`.
fn is_emulated_otherwise(line: &str) -> bool {
    let (instruction, values) = line.split_once(" : ").unwrap_or_default();
    let (name, operands) = instruction.split_once(' ').unwrap_or_default();
    let words: Vec<&str> = name.split('.').collect();
    let has = |word: &str| words.contains(&word);
    let destination = operands.split(',').next().unwrap_or_default();
    match words[0] {
        "vmad" => {
            let is_large = |source: usize| {
                let value = values.split([' ', '=']).nth(source).unwrap_or_default();
                let whole =
                    !operands.split(", ").nth(source + 1).is_some_and(|operand| operand.contains('.'));
                let unsigned = source == 2 || words[source + 2] == "u32";
                whole && unsigned && value >= "80000000"
            };
            let product = operands.contains("-a") && operands.contains("-b");
            (has("sat") || has("shr7") || has("shr15")) && (product || (0..3).any(is_large))
        }
        packed if packed.ends_with(['2', '4']) => false,
        _ if has("min") || has("max") => true,
        opcode => has("sat") && (opcode == "vshl" || destination.contains('.')),
    }
}

/// `vadd.s32.u32.s32 d.h0, -a.b1, b, c : 1 2 3 = 4`
fn check(line: &str) -> Result<(), String> {
    let fail = |what: String| Err(format!("{line}: {what}"));
    let Some((instruction, (values, result))) =
        line.split_once(" : ").and_then(|(instruction, rest)| Some((instruction, rest.split_once(" = ")?)))
    else {
        return fail("not a vector".into());
    };
    let (name, operands) = instruction.split_once(' ').unwrap_or_default();
    let operands: Vec<&str> = operands.split(", ").collect();
    let mut words = name.split('.');
    let opcode = words.next().unwrap_or_default();
    let mut selected = match isa::select(opcode, &words.collect::<Vec<_>>(), operands.len()) {
        Ok(selected) => selected,
        Err(errors) => return fail(format!("{errors:?}")),
    };
    let negated = |i: usize| operands.get(i).is_some_and(|operand| operand.starts_with('-'));
    let mut parts =
        Parts { negated_product: negated(1) != negated(2), negated_addend: negated(3), ..Parts::default() };
    for (to, operand) in parts.selectors.iter_mut().zip(&operands) {
        *to = operand.split_once('.').and_then(|(_, selector)| Selector::parse(selector));
        if to.is_some() != operand.contains('.') {
            return fail(format!("no selector in {operand}"));
        }
    }
    selected.picks.parts = parts;
    let bits = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
    let sources: Vec<u64> = values.split(' ').take(operands.len() - 1).map(bits).collect();
    let Action::Pure(function) = selected.form().action else { return fail("not pure".into()) };
    let Some(function) = sem::lookup(function) else { return fail("no function".into()) };
    let [d, _] = function(&selected.picks, &sources);
    if d == bits(result) { Ok(()) } else { fail(format!("got {d:08x}")) }
}

#[test]
fn equal_to_the_code_that_ptxas_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/values/video.txt.zst");
    let bytes =
        zstd::decode_all(fs::File::open(path).expect("the record is there")).expect("it is compressed");
    let text = String::from_utf8(bytes).expect("it is text");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let (known, lines): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| is_emulated_otherwise(line));
    let failures: Vec<String> = lines.iter().filter_map(|line| check(line).err()).collect();
    let shown = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} differ:\n{shown}", failures.len(), lines.len());
    let opcodes: BTreeSet<&str> = lines.iter().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(opcodes.len(), 23, "{opcodes:?}");
    assert_eq!(lines.len() + known.len(), 20_000);
    // Of those that the code computes in its own way most agree all the same.
    assert_eq!((known.len(), known.iter().filter(|line| check(line).is_err()).count()), (4616, 816));
}
