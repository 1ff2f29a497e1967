//! What ptxas makes of every `setp` on halves (`conformance/sass/lowering.tsv.zst`), against `lower`: no difference is allowed.

use std::collections::BTreeSet;
use std::path::Path;

use sass::{Arch, Instruction, Operands};

/// The number of `R5`, `P0`; of `!P0` too.
fn number(name: &str) -> u8 {
    name.trim_start_matches(['!', 'P', 'R']).parse().unwrap()
}

#[test]
fn setp_becomes_what_ptxas_makes_of_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/sass/lowering.tsv.zst");
    let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    let mut seen = BTreeSet::new();
    let mut differences = Vec::new();
    for line in String::from_utf8(text).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [release, target, ptx, p, q, a, b, c, text] = columns[..] else { panic!("{line}") };
        let arch = Arch::parse(target).unwrap();
        let (mnemonic, operands) = ptx.split_once(' ').unwrap();
        let modifiers: Vec<&str> = mnemonic.split('.').skip(1).collect();
        let operands: Vec<&str> = operands.split(", ").collect();
        let picks = isa::select("setp", &modifiers, operands.len()).unwrap().picks;
        let theirs = sass::parse(arch, text).unwrap().instruction;
        let registers = Operands {
            destinations: (number(p), (q != "-").then(|| number(q))),
            sources: (number(a), number(b)),
            c: operands.get(3).map(|name| (number(c), name.starts_with('!'))),
        };
        let lowered = sass::lower(arch, &picks, &registers).unwrap();
        let ours = without_control(lowered.instruction).to_string();
        if ours != without_control(theirs).to_string() || lowered.inverted != p.starts_with('!') {
            differences.push(format!("{release} {target} {ptx}\n  ptxas {p} {text}\n  ours  {ours}"));
        }
        seen.insert((release.to_owned(), target.to_owned(), ptx.to_owned()));
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    // 14 comparisons and 7 operators; a pair with q and without.
    let of = |target: &str| seen.iter().filter(|(_, name, ..)| name == target).count();
    assert_eq!((of("sm_53"), of("sm_70")), (14 * (7 + 14) * 2, 14 * (7 + 14) * 2));
    // Both releases know the later ones; BF16 has no .ftz.
    assert_eq!((of("sm_80"), of("sm_90")), (14 * (7 + 14) * 4, 14 * (7 + 14) * 6));
}

/// Scheduling is not the compare's own.
fn without_control(instruction: Instruction) -> Instruction {
    use sass::Field::{Monitor, ReadBarrier, Reuse, Sched, Wait, WriteBarrier};
    let clear = [Sched, Wait, Reuse, Monitor].into_iter().fold(instruction, |i, field| i.with(field, 0));
    clear.with(ReadBarrier, 7).with(WriteBarrier, 7)
}
