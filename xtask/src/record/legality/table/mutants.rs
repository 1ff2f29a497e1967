//! Seeds with one or two things wrong.

use fastrand::Rng;
use isa::{FORMS, Mod, SpecialRegister, Target, Type, Version};

use super::super::errors::split;
use super::seeds::{REGISTERS, home, rows, seed, some_spellings};
use super::{Kind, NEWEST, Question, targets};

/// So many spellings of a row are changed, each in so many ways.
const SPELLINGS: usize = 40;
const CHANGES: usize = 8;

/// Operands that seldom fit.
const OPERANDS: [&str; 66] = [
    "!%p1",
    "%p1|%p2",
    "_",
    "_|%p1",
    "%b32_1|%p1",
    "-%b32_1",
    "-%b64_1",
    "!%b32_1",
    "%v2",
    "%v4",
    "%v2.y",
    "%v4.w",
    "%b32_1.h0",
    "%b32_1.b3",
    "%b32_1+4",
    "%tid",
    "%tid.x",
    "%clock64",
    "%laneid",
    "%nope",
    "nope",
    "%nope+4",
    "0",
    "1",
    "-1",
    "3",
    "16",
    "31",
    "32",
    "33",
    "63",
    "64",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "0xffffffff",
    "4294967296",
    "0xffffffffffffffff",
    "5U",
    "1.5",
    "-0.0",
    "0f3F800000",
    "0d3FF0000000000000",
    "1/0",
    "1+2",
    "WARP_SZ",
    "{%b32_1}",
    "{%b32_1, %b32_2}",
    "{%b32_1, %b32_2, %b32_3, %b32_4}",
    "{%b64_1, %b64_2}",
    "{%b16_1, %b16_2}",
    "{%f1, %b32_2, %f3, %f4}",
    "{1, 2}",
    "in_global",
    "in_global+4",
    "in_global[4]",
    "[in_global]",
    "[in_shared]",
    "[%f1]",
    "[%b64_1]",
    "[in_global+-4]",
    "[5]",
    "callee",
    "label",
];

const STRANGE: [&str; 8] = ["foo", "u128", "x2", "g", "wide", "b4", "v3", "L2::foo"];

pub fn all(rng: &mut Rng) -> Vec<Question> {
    let specials: Vec<&str> = SpecialRegister::all().map(SpecialRegister::name).collect();
    let (versions, targets): (Vec<Version>, Vec<Target>) = (Version::all().collect(), targets().collect());
    let mut all = Vec::new();
    for form in rows() {
        // What other rows of the opcode have is a likely mistake.
        let kin: Vec<&str> = FORMS
            .iter()
            .filter(|other| other.opcode == form.opcode)
            .flat_map(|other| other.slots)
            .flat_map(|slot| slot.choices)
            .map(|choice| choice.token.name())
            .collect();
        let mut spellings = some_spellings(form, 6 * SPELLINGS, rng);
        spellings.retain(|spelling| spelling.is_legal());
        if spellings.is_empty() {
            continue;
        }
        for _ in 0..SPELLINGS {
            let spelling = &spellings[rng.usize(..spellings.len())];
            let text = seed(spelling, rng);
            let home = home(spelling);
            for _ in 0..CHANGES {
                let mut line = Line::of(&text);
                for _ in 0..1 + usize::from(rng.u8(..4) == 0) {
                    line.change(&kin, &specials, rng);
                }
                let at = match rng.u8(..16) {
                    0 => (versions[rng.usize(..versions.len())], home.1),
                    1 => (NEWEST.0, targets[rng.usize(..targets.len())]),
                    _ => home,
                };
                all.push(Question::line(Kind::Mutant, line.text(), at));
            }
        }
    }
    all
}

/// An instruction in parts.
struct Line {
    guard: String,
    words: Vec<String>,
    operands: Vec<String>,
}

impl Line {
    fn of(text: &str) -> Line {
        let (guard, text) = match text.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((guard, rest)) => (format!("@{guard} "), rest),
            None => (String::new(), text),
        };
        let text = text.trim_end_matches(';');
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        Line { guard, words: mnemonic.split('.').map(str::to_owned).collect(), operands: split(operands) }
    }

    fn text(&self) -> String {
        format!("{}{} {};", self.guard, self.words.join("."), self.operands.join(", "))
    }

    fn change(&mut self, kin: &[&str], specials: &[&str], rng: &mut Rng) {
        match rng.u8(..21) {
            0..10 => self.change_words(kin, rng),
            10..20 => self.change_operands(specials, rng),
            _ => {
                let guards = ["@%p1 ", "@!%p1 ", "@%b32_1 ", "@!%f1 ", "@nope ", "@%tid.x ", "@1 "];
                guards[rng.usize(..guards.len())].clone_into(&mut self.guard);
            }
        }
    }

    /// Drops, replaces, doubles, moves or adds a modifier.
    fn change_words(&mut self, kin: &[&str], rng: &mut Rng) {
        let word = match rng.u8(..10) {
            0 => STRANGE[rng.usize(..STRANGE.len())],
            1..=2 => Type::ALL[rng.usize(..Type::ALL.len())].name(),
            3..=6 if !kin.is_empty() => kin[rng.usize(..kin.len())],
            _ => Mod::ALL[rng.usize(..Mod::ALL.len())].name(),
        };
        let words = &mut self.words;
        let place = rng.usize(1..=words.len());
        let other = rng.usize(1..=words.len());
        match rng.u8(..8) {
            0 | 1 if place < words.len() => drop(words.remove(place)),
            2 | 3 if place < words.len() => word.clone_into(&mut words[place]),
            4 if place < words.len() => words.insert(other, words[place].clone()),
            5 if place < words.len() && other < words.len() => words.swap(place, other),
            _ => words.insert(place, word.to_owned()),
        }
    }

    /// Drops, replaces, doubles, moves, adds or changes an operand.
    fn change_operands(&mut self, specials: &[&str], rng: &mut Rng) {
        let new = match rng.u8(..8) {
            0..=2 => format!("{}{}", REGISTERS[rng.usize(..REGISTERS.len())].1, rng.u8(1..9)),
            3 => specials[rng.usize(..specials.len())].to_owned(),
            _ => OPERANDS[rng.usize(..OPERANDS.len())].to_owned(),
        };
        let operands = &mut self.operands;
        if operands.is_empty() {
            return operands.push(new);
        }
        let (place, other) = (rng.usize(..operands.len()), rng.usize(..operands.len()));
        match rng.u8(..14) {
            0 => drop(operands.remove(place)),
            1 => operands.insert(rng.usize(..=operands.len()), new),
            2 => operands.insert(other, operands[place].clone()),
            3 => operands.swap(place, other),
            4..=6 => within(&mut operands[place], &new, rng),
            _ => operands[place] = new,
        }
    }
}

/// Changes an element of a vector or an address, or puts braces, brackets, a sign or a part around or behind a scalar.
fn within(operand: &mut String, new: &str, rng: &mut Rng) {
    if let Some(inner) = operand.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let mut elements = split(inner);
        change_list(&mut elements, new, rng);
        *operand = format!("{{{}}}", elements.join(", "));
    } else if let Some(inner) = operand.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let mut elements = split(inner);
        match rng.u8(..4) {
            0 => elements[0] += "+4",
            1 => elements[0] += "+-1",
            _ => change_list(&mut elements, new, rng),
        }
        *operand = format!("[{}]", elements.join(", "));
    } else {
        let around = ["{$}", "[$]", "-$", "!$", "$.x", "$.b0", "$+4", "$|%p1", "$|_", "($)", "$[0]", "~$"];
        *operand = around[rng.usize(..around.len())].replace('$', operand);
    }
}

fn change_list(elements: &mut Vec<String>, new: &str, rng: &mut Rng) {
    let place = rng.usize(..=elements.len());
    match rng.u8(..4) {
        0 => elements.insert(place, new.to_owned()),
        1 if place < elements.len() && elements.len() > 1 => drop(elements.remove(place)),
        2 if place < elements.len() => elements.insert(place, elements[place].clone()),
        _ if place < elements.len() => new.clone_into(&mut elements[place]),
        _ => elements.push(new.to_owned()),
    }
}
