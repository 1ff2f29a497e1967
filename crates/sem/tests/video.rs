//! Video instructions on what the code computes that ptxas 13.5 makes of them (`cargo xtask record video`).

use std::collections::BTreeSet;

use isa::{Action, Parts, Selector};
use test_utils::record;

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
    let text = record::agrees("values/video.txt.zst", check);
    let lines: Vec<&str> = text.lines().collect();
    let opcodes: BTreeSet<&str> = lines.iter().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(opcodes.len(), 23, "{opcodes:?}");
    assert_eq!(lines.len(), 20_000);
}

/// What random operands seldom meet, from vectors of other seeds.
#[test]
fn equal_where_the_code_differs_from_the_manual() {
    let lines = [
        // Unsigned results have no upper bound.
        "vadd.u32.u32.u32.sat d, a, b : 87c48717 7fffffff a0f03dfe = 07c48716",
        "vabsdiff.u32.s32.u32.sat d, a, b : ffffffff ffffffff 00000000 = 00000000",
        // A shift is clamped as a word; its 34 bits are a signed number.
        "vshl.u32.u32.u32.sat.wrap d.h1, a, b.b3, c : 8de739dc 4cd7ae87 57f6bfcf = 0000bfcf",
        "vshr.s32.s32.u32.sat.wrap d.b2, a, b, c : 00007fff ecd8c106 4a7cf909 = 4afff909",
        "vshl.s32.s32.u32.sat.clamp d, a, b.b0 : 0000ffff 000000ff 00000021 = 80000000",
        // The secondary operation takes wide results as they are, and extends sums and saturated shifts.
        "vshl.s32.s32.u32.clamp.max d, a.b2, b.b2, c : acfc34b3 0fa9b690 c8a51a8d = c8a51a8d",
        "vshl.u32.u32.u32.sat.clamp.max d, a.b3, b.b3, c : 75e2d7b1 b4f9f051 d54a4e7e = ffffffff",
        "vabsdiff.u32.u32.u32.sat.max d, a, b.b2, c : 85e8aabc 7fff8000 e153645b = e153645b",
        "vmax.u32.s32.u32.sat.min d, a, b, c : ffffffff 80000000 8201eedf = 80000000",
        "vset.s32.s32.lt.min d, a.b3, b.b3, c : a05d13a5 00000080 ffffffff = ffffffff",
        // Factors are signed.
        "vmad.u32.u32.u32.shr15 d, a, -b.b0, c : a5be74de 0000ffff ffffffff = 00b3ce93",
    ];
    let failures: Vec<String> = lines.iter().filter_map(|line| check(line).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
