//! What ptxas makes of every `setp` on halves (`conformance/sass/lowering.tsv.zst`), against `lower`: no difference is allowed.

use std::collections::BTreeMap;
use std::path::Path;

use sass::{Arch, Field, Form, Instruction, Operands, Origin, Source};

/// The number of `R5`, `P0`; of `!P0` too.
fn number(name: &str) -> u8 {
    name.trim_start_matches(['!', 'P', 'R']).parse().unwrap()
}

/// Where a source comes from, as the record writes it: `b`, `0x3c00`, `[v]`, `cvt.rz(b)`, `cvt.rz([w])`. Registers and addresses
/// that ptxas chose are `theirs`.
fn source(written: &str, register: &str, theirs: &Instruction) -> Source {
    let converted = written.starts_with("cvt.rz");
    let origin = match written.strip_prefix("0x") {
        Some(digits) => Origin::Literal(u32::from_str_radix(digits, 16).unwrap()),
        None if !written.contains('[') => Origin::Register,
        None => Origin::Parameter { bank: theirs.get(Field::Bank), address: theirs.get(Field::Address) },
    };
    let register = match theirs.form() {
        _ if register != "-" => number(register),
        Form::Uniform => theirs.get(Field::Ur) as u8,
        // What is not loaded is the other of the two.
        _ => u8::MAX,
    };
    Source { origin, register, converted }
}

#[test]
fn setp_becomes_what_ptxas_makes_of_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sass/lowering.tsv.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let mut kinds = BTreeMap::new();
    let mut differences = Vec::new();
    for line in String::from_utf8(text).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [release, target, ptx, p, q, a, b, c, constant, text] = columns[..] else { panic!("{line}") };
        let arch = Arch::parse(target).unwrap();
        let (mnemonic, operands) = ptx.split_once(' ').unwrap();
        let modifiers: Vec<&str> = mnemonic.split('.').skip(1).collect();
        let operands: Vec<&str> = operands.split(", ").collect();
        let picks = isa::select("setp", &modifiers, operands.len()).unwrap().picks;
        let theirs = sass::parse(arch, text).unwrap().instruction;
        let mut sources = [operands[1], operands[2]]
            .map(|written| source(written, if written == "a" { a } else { b }, &theirs));
        let conversion = sources.iter().any(|source| source.converted);
        if conversion && !(60..=75).contains(&arch.number()) {
            // A conversion of its own: what is compared is in a register.
            assert!(
                theirs.form() == Form::Register && theirs.get(Field::ASwizzle) == 2 && !text.contains("F32")
            );
            continue;
        }
        // Of a source that the kernel does not load from [x+4] only the listing says where it is.
        let (ra, rb) = (theirs.get(Field::Ra) as u8, theirs.get(Field::Rb) as u8);
        let other = if ra == number(a) { rb } else { ra };
        for source in &mut sources {
            if source.register == u8::MAX {
                source.register = other;
            }
        }
        let registers = Operands {
            destinations: (number(p), (q != "-").then(|| number(q))),
            sources: (sources[0], sources[1]),
            c: operands.get(3).map(|name| (number(c), name.starts_with('!'))),
        };
        let lowered = sass::lower(arch, &picks, &registers).unwrap();
        let ours = without_control(lowered.instruction).to_string();
        // What ptxas made for another instruction is not the compare's.
        let constant = if text.contains("c[0x2]") { constant } else { "-" };
        let made = lowered.constant.map_or_else(|| "-".to_owned(), |bits| format!("{bits:#x}"));
        if (ours.as_str(), made.as_str()) != (without_control(theirs).to_string().as_str(), constant)
            || lowered.inverted != p.starts_with('!')
        {
            differences.push(format!(
                "{release} {target} {ptx}\n  ptxas {p} {text} {constant}\n  ours  {ours} {made}"
            ));
        }
        let kind = operands[1..3].iter().find(|name| **name != "a").unwrap().trim_start_matches("0x");
        let kind = if kind.starts_with(|c: char| c.is_ascii_digit()) { "literal" } else { kind };
        let counts: &mut BTreeMap<_, usize> = kinds.entry(kind.to_owned()).or_default();
        *counts.entry(format!("{release} {target}")).or_default() += 1;
    }
    differences.truncate(30);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    // 14 comparisons and 7 operators; a pair with q and without. BF16 has no .ftz.
    let registers = &kinds["b"];
    let of = |asked: &str| registers[asked];
    assert_eq!((of("12.9 sm_53"), of("12.9 sm_70")), (14 * (7 + 14) * 2, 14 * (7 + 14) * 2));
    assert_eq!((of("13.5 sm_80"), of("13.5 sm_90")), (14 * (7 + 14) * 2, 14 * (7 + 14) * 3));
    // With 3 of the operators, either source.
    assert_eq!(kinds["[v]"]["12.9 sm_53"], 14 * 3 * 2 * 6);
    assert_eq!(kinds["cvt.rz([w])"].keys().count(), 4);
}

/// Scheduling is not the compare's own.
fn without_control(instruction: Instruction) -> Instruction {
    use sass::Field::{Monitor, ReadBarrier, Reuse, Sched, Wait, WriteBarrier};
    let clear = [Sched, Wait, Reuse, Monitor].into_iter().fold(instruction, |i, field| i.with(field, 0));
    clear.with(ReadBarrier, 7).with(WriteBarrier, 7)
}
