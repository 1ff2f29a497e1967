//! Every operand in every place of the legal core instructions, and every two register types together.

use std::collections::HashSet;

use super::registers::{DECLARED, operands, own};

const BITS: [&str; 3] = ["b16", "b32", "b64"];
const NUMBERS: [&str; 11] = ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"];

/// Constants and constant expressions of every kind. Those that overflow stand in tests/fail: ptxas remembers it and
/// says it again about the next constant.
const LITERALS: [&str; 42] = [
    "0",
    "1",
    "-1",
    "5U",
    "0x1F",
    "0X1fU",
    "017",
    "0b101",
    "0B1U",
    "65536",
    "4294967296",
    "-9223372036854775808",
    "18446744073709551615",
    "1.5",
    "-1.5",
    "+1.5",
    "1e3",
    "1.",
    ".5",
    "1E-3",
    "0f3F800000",
    "0F7fc00000",
    "0d3FF0000000000000",
    "0D7ff8000000000000",
    "1+2",
    "1?2:3",
    "(1)",
    "~5",
    "!5",
    "!0",
    "-(-3)",
    "1.5+2.5",
    "1.5*2",
    "1<2",
    "1/0",
    "1<<40",
    "(.s64)-1",
    "(.u64)5",
    "(.u32)5",
    "WARP_SZ",
    "-WARP_SZ",
    "WARP_SZ*2",
];

/// Whatever else might be written as an operand.
const OTHERS: [&str; 48] = [
    "!%pred_1",
    "!%b32_1",
    "!%f32_1",
    "!array",
    "!nope",
    "-%b32_1",
    "-%f32_1",
    "-%s64_1",
    "%b32_1+4",
    "%f32_1+4",
    "%f64_1+0",
    "%b16_1+-4",
    "%s64_1+4",
    "%f16_1+1",
    "array",
    "scalar",
    "number",
    "shared",
    "constant",
    "local",
    "parameter",
    "array+4",
    "scalar+0",
    "number+4",
    "array[1]",
    "function",
    "function+4",
    "label",
    "probe",
    "nope",
    "nope+4",
    "%nope",
    "[%b64_1]",
    "[array]",
    "[%b32_1+4]",
    "[8]",
    "{%b32_1,%b32_2}",
    "{%b16_1,%b16_2}",
    "{%f32_1}",
    "{1,2}",
    "v2",
    "v4",
    "v2.x",
    "v4.w",
    "%b32_1.h0",
    "%tid",
    "%tid.x",
    "%laneid",
];

/// Special registers of other widths and with gates, and pairs.
const MORE: [&str; 10] = [
    "%clock64",
    "%clock",
    "%gridid",
    "%is_explicit_cluster",
    "%lanemask_eq",
    "%envreg3",
    "%pm0",
    "%ctaid.w",
    "%globaltimer",
    "%total_smem_size",
];

/// What ends a run of ptxas where it does not parse: tried on fewer instructions, as each costs a run.
const SYNTAX: [&str; 14] = [
    "0f3F8",
    "0d3FF",
    "-0f3F800000",
    "7%2",
    "!%tid.x",
    "~%b32_1",
    "%b32_1-4",
    "%b32_1*4",
    "(%b32_1)",
    "_|_",
    "!%pred_1|%pred_2",
    "%pred_1|5",
    "v2.z",
    "%pred_1+1",
];

/// What may stand in the place of a destination and is no syntax elsewhere.
const DESTINATIONS: [&str; 6] =
    ["_", "%pred_1|%pred_2", "_|%pred_1", "%pred_1|_", "%b32_1|%pred_1", "%pred_1|%b32_1"];

/// One instruction of so many is asked about syntax.
const SYNTAX_EVERY: usize = 15;

/// An instruction with a register of its own type in each place.
struct Base {
    mnemonic: String,
    operands: Vec<String>,
}

#[derive(Default)]
struct Collection {
    seen: HashSet<String>,
    all: Vec<String>,
}

impl Collection {
    fn add(&mut self, mnemonic: &str, operands: &[String]) {
        let text = format!("{mnemonic} {};", operands.join(", "));
        self.whole(text);
    }

    fn with(&mut self, base: &Base, place: usize, word: &str) {
        let mut operands = base.operands.clone();
        word.clone_into(&mut operands[place]);
        self.add(&base.mnemonic, &operands);
    }

    fn whole(&mut self, text: String) {
        if self.seen.insert(text.clone()) {
            self.all.push(text);
        }
    }
}

/// All of them.
pub fn all() -> Vec<String> {
    let mut all = Collection::default();
    let bases = bases();
    for (number, base) in bases.iter().enumerate() {
        one_place(&mut all, base);
        counts(&mut all, base);
        for word in DESTINATIONS {
            all.with(base, 0, word);
        }
        if number % SYNTAX_EVERY == 0 {
            for word in SYNTAX.iter().chain(&DESTINATIONS) {
                for place in 0..base.operands.len() {
                    all.with(base, place, word);
                }
            }
        }
    }
    for base in &bases {
        two_places(&mut all, base);
    }
    pairs(&mut all);
    guards(&mut all);
    all.all
}

/// Something else in one place.
fn one_place(all: &mut Collection, base: &Base) {
    let registers = DECLARED.iter().map(|ty| format!("%{ty}_1"));
    let words = LITERALS.iter().chain(&OTHERS).chain(&MORE).map(|&word| word.to_owned());
    for word in registers.chain(words) {
        for place in 0..base.operands.len() {
            all.with(base, place, &word);
        }
    }
}

/// Too few and too many operands.
fn counts(all: &mut Collection, base: &Base) {
    for count in 0..=base.operands.len() + 2 {
        let operands: Vec<String> = base.operands.iter().cycle().take(count).cloned().collect();
        all.add(&base.mnemonic, &operands);
    }
    for extra in ["%pred_1", "5", "array", "%tid.x", "nope"] {
        let mut operands = base.operands.clone();
        operands.push(extra.to_owned());
        all.add(&base.mnemonic, &operands);
    }
}

/// Every two register types in the first and each other place, and something wrong in two places.
fn two_places(all: &mut Collection, base: &Base) {
    for first in DECLARED {
        for second in DECLARED {
            let mut operands = base.operands.clone();
            if let [d, a, ..] = operands.as_mut_slice() {
                *d = format!("%{first}_1");
                *a = format!("%{second}_2");
            }
            all.add(&base.mnemonic, &operands);
        }
    }
    let wrong = ["1.5", "nope", "array", "%tid.x", "!%pred_1", "-%b32_1", "v2", "%b32_1+4", "5", "function"];
    for first in wrong {
        for second in wrong {
            for (i, j) in [(0, 1), (1, 2), (0, base.operands.len() - 1)] {
                let mut operands = base.operands.clone();
                operands[i] = first.to_owned();
                operands[j] = second.to_owned();
                all.add(&base.mnemonic, &operands);
            }
        }
    }
}

/// What may stand on either side of `p|q`.
fn pairs(all: &mut Collection) {
    let words = ["_", "nope", "array", "v2", "function", "label"];
    let registers = DECLARED.iter().map(|ty| format!("%{ty}_1"));
    let sides: Vec<String> = registers.chain(words.into_iter().map(str::to_owned)).collect();
    for ty in NUMBERS.into_iter().chain(["f16", "f16x2", "bf16", "bf16x2"]) {
        let mut pair = |mnemonic: &str, first: &str, second: &str, tail: &str| {
            let sources = [own(ty, 2), own(ty, 3)].join(", ");
            all.whole(format!("{mnemonic}.{ty} {first}|{second}, {sources}{tail};"));
        };
        for (first, second) in sides.iter().flat_map(|p| sides.iter().map(move |q| (p, q))) {
            // That does not parse, and is among the words of SYNTAX.
            if first == "_" && second == "_" {
                continue;
            }
            pair("setp.eq", first, second, "");
            if matches!(ty, "b32" | "f16x2" | "bf16x2" | "bf16") {
                pair("setp.ne.or", first, second, ", !%pred_3");
                pair("set.eq.u32", first, second, "");
            }
            if ty == "f32" {
                pair("add", first, second, "");
                pair("selp", first, second, ", %pred_2");
            }
        }
        if matches!(ty, "u32" | "f16x2") {
            for odd in ["5", "%tid.x", "v2.x", "%pred_1+1", "!%pred_3"] {
                for side in ["%pred_1", "%b32_1", "_", odd] {
                    pair("setp.eq", side, odd, "");
                    pair("setp.eq", odd, side, "");
                }
            }
        }
    }
}

/// Before an instruction: what may guard it.
fn guards(all: &mut Collection) {
    let words = [
        "%pred_1", "!%pred_1", "%b32_1", "!%f32_1", "nope", "!nope", "array", "%tid.x", "v2", "v2.x", "label",
    ];
    for word in words {
        for instruction in [
            "setp.eq.u32 %pred_1, %b32_1, 5;",
            "set.eq.u32.f32 %b32_1, %f32_1, 5;",
            "selp.b32 %b32_1, nope, 1, %pred_1;",
            "slct.b32 %b32_1, 1, 2, 3;",
            "add.rn.f32.f16 %f32_1, %f16_1;",
            "fma.rn.f32.f16 %f32_1, %f16_1, %f16_2, %f32_2;",
            "setp.u32 %pred_1, %b32_1, 5;",
            "setp.eq.foo.u32 %pred_1, %b32_1, 5;",
        ] {
            all.whole(format!("@{word} {instruction}"));
        }
    }
}

/// The legal instructions, one of each kind that operands can tell apart.
fn bases() -> Vec<Base> {
    let mut bases = Vec::new();
    let mut add = |opcode: &str, modifiers: &str, types: &[&str], c: bool| {
        let types_written: String = types.iter().map(|ty| format!(".{ty}")).collect();
        let mnemonic = format!("{opcode}{modifiers}{types_written}");
        bases.push(Base { mnemonic, operands: operands(opcode, types, c, own) });
    };
    for ty in NUMBERS.into_iter().chain(["f16", "f16x2", "bf16", "bf16x2"]) {
        add("setp", ".eq", &[ty], false);
        add("setp", ".ne.and", &[ty], true);
    }
    let halves = [
        ("u16", "f16"),
        ("s32", "f16"),
        ("f16", "f16"),
        ("bf16", "f16"),
        ("u32", "f16x2"),
        ("f16x2", "f16x2"),
        ("s16", "bf16"),
        ("u32", "bf16"),
        ("bf16", "bf16"),
        ("s32", "bf16x2"),
        ("bf16x2", "bf16x2"),
        ("f16", "f32"),
        ("f16", "u64"),
        ("f16", "s16"),
        ("bf16", "f64"),
        ("bf16", "b32"),
    ];
    let wide = NUMBERS.iter().map(|&stype| ("u32", stype));
    let more = [("f32", "f32"), ("s32", "f64"), ("f32", "b16"), ("f32", "s64")];
    for (dtype, stype) in wide.chain(more).chain(halves) {
        add("set", ".eq", &[dtype, stype], false);
        if !BITS.contains(&stype) {
            add("set", ".lt.xor", &[dtype, stype], true);
        }
    }
    for ty in NUMBERS {
        add("selp", "", &[ty], false);
        add("slct", "", &[ty, "s32"], false);
        add("slct", "", &[ty, "f32"], false);
    }
    for half in ["f16", "bf16"] {
        for opcode in ["add", "sub", "fma"] {
            add(opcode, ".rn", &["f32", half], false);
        }
        add("add", ".sat", &["f32", half], false);
    }
    add("add", "", &["f32"], false);
    add("fma", ".rn", &["f32"], false);
    bases
}
