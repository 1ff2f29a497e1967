//! Every mnemonic of the core instructions, legal or not: all modifiers with all types, in all orders that matter,
//! with too few, too many and foreign ones.

use std::collections::HashSet;

use isa::{Mod, Type};

use super::registers::{operands, own};

/// Types that core instructions take or might be thought to take.
const TYPES: [&str; 25] = [
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16",
    "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2", "f64", "u16x2", "s16x2", "e4m3x2",
];

/// Types in the orders of modifiers that are tried in every permutation.
const PAIRS: [(&str, &str); 12] = [
    ("u32", "f32"),
    ("f32", "u32"),
    ("u16", "f16"),
    ("f16", "f32"),
    ("bf16", "f32"),
    ("u32", "bf16"),
    ("f16x2", "f16x2"),
    ("u32", "bf16x2"),
    ("f32", "f16"),
    ("f32", "bf16"),
    ("f64", "s32"),
    ("s32", "pred"),
];

/// The comparison operators, and none.
const COMPARISONS: [&str; 19] = [
    "", "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
    "num", "nan",
];
const BOOLS: [&str; 4] = ["", "and", "or", "xor"];
const FLUSH: [&str; 2] = ["", "ftz"];
const ROUNDINGS: [&str; 7] = ["", "rn", "rz", "rm", "rp", "rna", "rzi"];
const SATURATE: [&str; 2] = ["", "sat"];

/// Instructions without repeats, in the order in which they were thought of.
#[derive(Default)]
struct Collection {
    seen: HashSet<String>,
    all: Vec<String>,
}

impl Collection {
    /// Adds one instruction with the operands that its types ask for. Empty modifiers are left out.
    fn add(&mut self, opcode: &str, modifiers: &[&str]) {
        let modifiers: Vec<&str> = modifiers.iter().copied().filter(|m| !m.is_empty()).collect();
        let mut types: Vec<&str> =
            modifiers.iter().copied().filter(|m| Type::from_name(m).is_some()).collect();
        // `.pred` means nothing beside another type.
        if types.iter().any(|ty| *ty != "pred") {
            types.retain(|ty| *ty != "pred");
        }
        let combines =
            matches!(opcode, "set" | "setp") && modifiers.iter().any(|m| matches!(*m, "and" | "or" | "xor"));
        let operands = operands(opcode, &types, combines, own).join(", ");
        let mnemonic: String = modifiers.iter().map(|m| format!(".{m}")).collect();
        let text = format!("{opcode}{mnemonic} {operands};");
        if self.seen.insert(text.clone()) {
            self.all.push(text);
        }
    }

    /// Adds every order of the modifiers.
    fn permutations(&mut self, opcode: &str, modifiers: &mut Vec<&str>, done: usize) {
        if done == modifiers.len() {
            return self.add(opcode, modifiers);
        }
        for next in done..modifiers.len() {
            modifiers.swap(done, next);
            self.permutations(opcode, modifiers, done + 1);
            modifiers.swap(done, next);
        }
    }
}

/// All of them.
pub fn all() -> Vec<String> {
    let mut all = Collection::default();
    comparisons(&mut all);
    selections(&mut all);
    arithmetic(&mut all);
    orders(&mut all);
    strangers(&mut all);
    all.all
}

fn comparisons(all: &mut Collection) {
    for cmp in COMPARISONS {
        for bool_op in BOOLS {
            for ftz in FLUSH {
                for first in TYPES {
                    all.add("setp", &[cmp, bool_op, ftz, first]);
                    all.add("set", &[cmp, bool_op, ftz, first]);
                    all.add("setp", &[cmp, bool_op, ftz, "pred", first]);
                    for second in TYPES {
                        all.add("set", &[cmp, bool_op, ftz, first, second]);
                    }
                }
                all.add("set", &[cmp, bool_op, ftz]);
                all.add("setp", &[cmp, bool_op, ftz]);
            }
        }
    }
    for first in TYPES {
        for second in TYPES {
            for third in TYPES {
                all.add("set", &["eq", first, second, third]);
            }
            for cmp in ["lt", "lo", "ltu"] {
                all.add("setp", &[cmp, first, second]);
            }
        }
    }
}

fn selections(all: &mut Collection) {
    for opcode in ["selp", "slct"] {
        for ftz in FLUSH {
            all.add(opcode, &[ftz]);
            for first in TYPES {
                all.add(opcode, &[ftz, first]);
                for second in TYPES {
                    all.add(opcode, &[ftz, first, second]);
                    all.add(opcode, &[ftz, first, second, "s32"]);
                }
            }
        }
    }
}

fn arithmetic(all: &mut Collection) {
    for opcode in ["add", "sub", "fma"] {
        for rounding in ROUNDINGS {
            for ftz in FLUSH {
                for saturate in SATURATE {
                    for first in TYPES {
                        all.add(opcode, &[rounding, ftz, saturate, first]);
                        for second in TYPES {
                            all.add(opcode, &[rounding, ftz, saturate, first, second]);
                        }
                    }
                }
            }
        }
    }
}

fn orders(all: &mut Collection) {
    for (first, second) in PAIRS {
        for cmp in ["eq", "lo", "ltu"] {
            all.permutations("set", &mut vec![cmp, "and", "ftz", first, second], 0);
            all.permutations("set", &mut vec![cmp, first, second], 0);
            all.permutations("setp", &mut vec![cmp, "xor", "ftz", "pred", second], 0);
        }
        all.permutations("slct", &mut vec!["ftz", first, second], 0);
        for opcode in ["add", "sub", "fma"] {
            all.permutations(opcode, &mut vec!["rz", "sat", "ftz", first, second], 0);
            all.permutations(opcode, &mut vec!["rm", "sat", first, second], 0);
        }
    }
    for ty in TYPES {
        for cmp in COMPARISONS {
            all.permutations("setp", &mut vec![cmp, "or", "ftz", ty], 0);
        }
        for opcode in ["selp", "add", "sub", "fma"] {
            all.permutations(opcode, &mut vec!["sat", "rp", ty], 0);
        }
    }
}

/// Modifiers of any other instruction, unknown ones, and one too many of each kind.
fn strangers(all: &mut Collection) {
    let unknown = ["foo", "f", "rnd", "EQ", "b", "u128", "f128", "sat2", "eqq", "f16x4", "x2"];
    let mods = Mod::ALL.iter().map(|m| m.name()).chain(unknown);
    for name in mods {
        for (opcode, modifiers) in bases() {
            for place in 0..=modifiers.len() {
                let mut with = modifiers.clone();
                with.insert(place, name);
                all.add(opcode, &with);
                if let Some(replaced) = modifiers.get(place)
                    && *replaced != name
                {
                    with.remove(place + 1);
                    all.add(opcode, &with);
                }
            }
        }
    }
    // Every modifier twice, and two of a kind.
    for (opcode, modifiers) in bases() {
        let kinds: &[&str] = match opcode {
            "set" | "setp" => &["eq", "ne", "lo", "num", "and", "or", "xor", "ftz", "pred", "u32"],
            _ => &["rn", "rz", "rm", "rp", "ftz", "sat", "f32", "f16"],
        };
        for first in kinds {
            for second in kinds {
                let mut with = vec![*first, *second];
                with.extend(&modifiers);
                all.add(opcode, &with);
            }
        }
    }
}

/// Plain legal instructions that something is added to.
fn bases() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("set", vec!["eq", "u32", "s32"]),
        ("set", vec!["eq", "and", "ftz", "f32", "f32"]),
        ("set", vec!["eq", "f16x2", "f16x2"]),
        ("set", vec!["eq", "bf16", "bf16"]),
        ("setp", vec!["eq", "b32"]),
        ("setp", vec!["ltu", "or", "f32"]),
        ("setp", vec!["lt", "f16"]),
        ("setp", vec!["lt", "bf16x2"]),
        ("selp", vec!["b32"]),
        ("slct", vec!["u64", "s32"]),
        ("slct", vec!["f32", "f32"]),
        ("add", vec!["rz", "f32", "bf16"]),
        ("sub", vec!["sat", "f32", "f16"]),
        ("fma", vec!["rn", "f32", "f16"]),
    ]
}
