//! What NVIDIA GPUs compute with HSETP2, as `cargo xtask record hardware --hsetp2` wrote it down in `conformance/hardware`.

use std::fs;

use sass::{Arch, Executable, Field, Instruction, Thread};
use test_utils::record::read;
use test_utils::root;

/// The operands of one thread, in the registers of an instruction.
struct Operands<'a> {
    instruction: &'a Instruction,
    a: u32,
    b: u32,
    c: bool,
}

impl Thread for Operands<'_> {
    fn register(&self, n: u8) -> u32 {
        if u16::from(n) == self.instruction.get(Field::Ra) { self.a } else { self.b }
    }

    fn uniform(&self, _: u8) -> u32 {
        unreachable!("the recorded words have none")
    }

    fn predicate(&self, _: u8) -> bool {
        self.c
    }

    fn constant(&self, _: u16, _: u16) -> u32 {
        unreachable!("the recorded words have none")
    }

    fn bound_constant(&self, _: u8, _: u16) -> u32 {
        unreachable!("the recorded words have none")
    }
}

fn hex(text: &str) -> u128 {
    u128::from_str_radix(text, 16).expect("a hexadecimal number")
}

/// Compares a record with this crate. Returns how many words were executed, and how many faulted on the GPU.
fn replay(name: &str) -> (usize, usize) {
    let text = read(&format!("hardware/{name}"));
    let target = name.rsplit('-').next().unwrap_or_default();
    let number = target.trim_end_matches(".txt.zst").trim_end_matches(['a', 'f']);
    let arch = Arch::parse(number).expect("a target of the file's name");
    let mut operands = Vec::new();
    let (mut executed, mut faulted) = (0, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["operands", a, b, c] => operands.push((hex(a) as u32, hex(b) as u32, c == "1")),
            [word, "faults"] => {
                let instruction = Instruction::decode(arch, hex(word)).expect("an HSETP2");
                assert!(
                    Executable::new(&instruction).is_err(),
                    "{}",
                    instruction.text(sass::Style::default())
                );
                faulted += 1;
            }
            [word, p, q] => {
                let instruction = Instruction::decode(arch, hex(word)).expect("an HSETP2");
                let executable = Executable::new(&instruction).expect("it has a meaning");
                for (i, &(a, b, c)) in operands.iter().enumerate() {
                    let outcome = executable.run(&Operands { instruction: &instruction, a, b, c });
                    let outcome = outcome.expect("its guard is PT");
                    let recorded = |text: &str| hex(&text[i / 8 * 2..][..2]) >> (i % 8) & 1 != 0;
                    assert_eq!(
                        (outcome.pu, outcome.pv),
                        (recorded(p), recorded(q)),
                        "{} of {a:08x}, {b:08x}, {c}",
                        instruction.text(sass::Style::default())
                    );
                }
                executed += 1;
            }
            _ => panic!("a line of another form: {line}"),
        }
    }
    (executed, faulted)
}

#[test]
fn equal_to_what_gpus_compute() {
    let folder = root().join("conformance/hardware");
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("there are records") {
        let name = entry.expect("a file").file_name().into_string().expect("a name in UTF-8");
        if name.starts_with("hsetp2-") {
            let (executed, faulted) = replay(&name);
            assert!(executed > 1000, "{name}: only {executed} words");
            println!("{name}: {executed} words executed, {faulted} faulted");
            files += 1;
        }
    }
    assert!(files > 0, "no record");
}
