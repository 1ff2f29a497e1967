//! Carry chains and 64-bit bit fields on what the code computes that ptxas 13.5 makes of them (`cargo xtask record integer`).

use std::collections::{BTreeMap, BTreeSet};

use isa::Action;
use test_utils::record;

/// What the destinations of a chain hold: `sub.cc.u32 d0, a, b; addc.u32 d1, 0, 0` of a, b and c.
fn run(chain: &str, values: &[u64]) -> Result<Vec<u64>, String> {
    let mut registers: BTreeMap<String, u64> =
        ["a", "b", "c"].iter().zip(values).map(|(name, &value)| (name.to_string(), value)).collect();
    let (mut carry, mut results) = (0, Vec::new());
    for instruction in chain.split("; ") {
        let (name, operands) = instruction.split_once(' ').ok_or("no operands")?;
        let operands: Vec<&str> = operands.split(", ").collect();
        let mut words = name.split('.');
        let opcode = words.next().unwrap_or_default();
        let selected = isa::select(opcode, &words.collect::<Vec<_>>(), operands.len())
            .map_err(|errors| format!("{errors:?}"))?;
        let width = selected.picks.ty(0).bits();
        let value = |operand: &&str| match registers.get(*operand) {
            Some(&value) => value & (u64::MAX >> (64 - width)),
            None => operand.parse::<i64>().expect("a register or a number") as u64,
        };
        let mut sources: Vec<u64> = operands[1..].iter().map(value).collect();
        sources.extend(selected.form().carry.reads.then_some(carry));
        let Action::Pure(function) = selected.form().action else { return Err("not pure".into()) };
        let [d, out] = sem::lookup(function).ok_or("no function")?(&selected.picks, &sources);
        if selected.form().carry.writes {
            carry = out;
        }
        registers.insert(operands[0].to_owned(), d);
        results.push(d);
    }
    Ok(results)
}

fn check(line: &str) -> Result<(), String> {
    let numbers = |text: &str| {
        text.split(' ').map(|x| u64::from_str_radix(x, 16).expect("hexadecimal")).collect::<Vec<_>>()
    };
    let (chain, rest) = line.split_once(" : ").expect("instructions");
    let (values, results) = rest.split_once(" = ").expect("results");
    let found = run(chain, &numbers(values)).map_err(|error| format!("{line}: {error}"))?;
    if found == numbers(results) { Ok(()) } else { Err(format!("{line}: got {found:x?}")) }
}

#[test]
fn equal_to_the_code_that_ptxas_makes() {
    let text = record::agrees("values/integer.txt.zst", check);
    let lines: Vec<&str> = text.lines().collect();
    let instructions = lines.iter().flat_map(|line| line.split(" : ").next().unwrap_or_default().split("; "));
    let opcodes: BTreeSet<&str> =
        instructions.filter_map(|instruction| instruction.split('.').next()).collect();
    let all = ["add", "addc", "bfe", "bfi", "mad", "madc", "sub", "subc"];
    assert_eq!(opcodes, BTreeSet::from(all));
    assert_eq!(lines.len(), 20_000);
}

/// What chains of one kind never show.
#[test]
fn the_flag_of_a_difference_is_the_carry_of_a_sum() {
    for line in [
        "add.cc.u32 d0, a, b; subc.u32 d1, 0, 0 : 1 2 0 = 3 ffffffff",
        "sub.cc.u32 d0, a, b; addc.u32 d1, 0, 0 : 1 2 0 = ffffffff 0",
        "sub.cc.u32 d0, a, b; addc.u32 d1, 0, 0 : 2 1 0 = 1 1",
        "mad.lo.cc.u32 d0, a, b, 0; subc.u32 d1, 0, 0 : 1 2 0 = 2 ffffffff",
        "add.cc.u64 d0, a, b; subc.u64 d1, 0, 0 : 1 2 0 = 3 ffffffffffffffff",
    ] {
        assert_eq!(check(line), Ok(()));
    }
}
