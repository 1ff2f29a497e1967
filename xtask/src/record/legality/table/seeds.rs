//! Spellings of every row, with operands of the right kinds: what should be legal.

use std::collections::HashSet;

use fastrand::Rng;
use isa::enumerate::{Spelling, instruction, spelling, spellings};
use isa::{Access, FORMS, Form, FormId, OperandKind, OperandSpec, Presence, Second, Target, Type, Version};

use super::super::errors::split;
use super::{Kind, NEWEST, Point, Question, exists, targets};

/// So many spellings of a row are asked about: all where it has no more.
const SPELLINGS: usize = 90;

/// The rows that are asked about line by line; calls are asked about in modules.
pub fn rows() -> impl Iterator<Item = &'static Form> {
    FORMS.iter().filter(|form| form.operands.iter().all(|spec| spec.kind != OperandKind::Call))
}

pub fn all(rng: &mut Rng) -> Vec<Question> {
    let mut all = Vec::new();
    for form in rows() {
        for spelling in some_spellings(form, SPELLINGS, rng) {
            let at = home(&spelling);
            all.push(Question::line(Kind::Seed, plain(&spelling, rng), at));
            all.push(Question::line(Kind::Seed, seed(&spelling, rng), at));
        }
    }
    all
}

/// Up to `count` spellings of a row, those that a rule forbids included.
pub fn some_spellings(form: &'static Form, count: usize, rng: &mut Rng) -> Vec<Spelling> {
    let Some(id) = isa::form_id(form) else { return Vec::new() };
    let sizes = form.slots.iter().map(|slot| slot.choices.len() + usize::from(slot.optional));
    if sizes.product::<usize>() <= count {
        return spellings(id).collect();
    }
    let mut seen = HashSet::new();
    let drawn = (0..3 * count).map(|_| random_spelling(id, rng));
    let mut all: Vec<Spelling> = drawn.filter(|spelling| seen.insert(spelling.modifiers.clone())).collect();
    // Where rules forbid most, there are still some that are legal.
    all.sort_by_key(|spelling| !spelling.is_legal());
    all.truncate(count);
    all
}

fn random_spelling(id: FormId, rng: &mut Rng) -> Spelling {
    let mut tokens = Vec::new();
    for slot in id.form().slots {
        if !(slot.optional && rng.bool()) {
            tokens.push(slot.choices[rng.usize(..slot.choices.len())].token);
        }
    }
    spelling(id, &tokens)
}

/// The newest version, and the newest target that has what the spelling needs; older ones if need be.
pub fn home(spelling: &Spelling) -> Point {
    let gates = spelling.form.form().gates(&spelling.picks);
    let permits = |(version, target): Point| {
        exists((version, target)) && gates.iter().all(|gate| gate.permits(version, target))
    };
    if permits(NEWEST) {
        return NEWEST;
    }
    let targets: Vec<Target> = targets().collect();
    let versions: Vec<Version> = Version::all().collect();
    let mut points =
        versions.iter().rev().flat_map(|&v| targets.iter().rev().map(move |&target| (v, target)));
    points.find(|&point| permits(point)).unwrap_or(NEWEST)
}

/// Registers of bits, and maybe fewer operands.
fn plain(spelling: &Spelling, rng: &mut Rng) -> String {
    instruction(spelling, if rng.bool() { left_out(spelling, rng) } else { 0 })
}

/// How many operands are left out at the end.
fn left_out(spelling: &Spelling, rng: &mut Rng) -> usize {
    let specs: Vec<&OperandSpec> = spelling.form.form().operands_with(&spelling.picks).collect();
    let optional = specs.iter().rev().take_while(|spec| spec.presence == Presence::Optional).count();
    rng.usize(..=optional)
}

/// A spelling with other operands that fit.
pub fn seed(spelling: &Spelling, rng: &mut Rng) -> String {
    let text = instruction(spelling, left_out(spelling, rng));
    let (mnemonic, operands) = text.trim_end_matches(';').split_once(' ').unwrap_or((&text, ""));
    let specs = spelling.form.form().operands_with(&spelling.picks);
    let operands: Vec<String> = split(operands)
        .into_iter()
        .zip(specs)
        .map(|(text, spec)| vary(text, spec, spec.resolve(&spelling.picks), rng))
        .collect();
    let guard = match rng.u8(..20) {
        0 => "@%p7 ",
        1 => "@!%p6 ",
        _ => "",
    };
    format!("{guard}{mnemonic} {};", operands.join(", "))
}

/// The types of registers, and how their names begin.
pub const REGISTERS: [(Type, &str); 18] = [
    (Type::Pred, "%p"),
    (Type::B8, "%b8_"),
    (Type::U8, "%u8_"),
    (Type::S8, "%s8_"),
    (Type::B16, "%b16_"),
    (Type::U16, "%u16_"),
    (Type::S16, "%sh"),
    (Type::F16, "%h"),
    (Type::B32, "%b32_"),
    (Type::U32, "%u"),
    (Type::S32, "%s32_"),
    (Type::F16x2, "%f16x2_"),
    (Type::F32, "%f"),
    (Type::B64, "%b64_"),
    (Type::U64, "%u64_"),
    (Type::S64, "%sd"),
    (Type::F64, "%d"),
    (Type::B128, "%b128_"),
];

fn vary(text: String, spec: &OperandSpec, ty: Option<Type>, rng: &mut Rng) -> String {
    match spec.kind {
        OperandKind::Register | OperandKind::Source if text.starts_with('%') => {
            let Some(ty) = ty else { return text };
            let mut varied = match rng.u8(..4) {
                0 if spec.kind == OperandKind::Source && spec.access == Access::Read => literal(ty, rng),
                1 if spec.negatable => format!("!{text}"),
                _ => register(ty, spec.wider, rng),
            };
            if spec.sink && rng.u8(..6) == 0 {
                varied = "_".into();
            }
            match spec.second {
                Second::Optional if rng.bool() => varied + "|%p7",
                Second::Required => varied + "|%p7",
                _ => varied,
            }
        }
        OperandKind::Address if text.starts_with('[') && !text.contains('{') => {
            let inner = text.trim_matches(['[', ']']).to_owned();
            match rng.u8(..5) {
                0 => format!("[{inner}+64]"),
                // Tensor memory has addresses of 32 bits.
                _ if inner == "%b32_8" => format!("[%b32_{}]", rng.u8(1..9)),
                1 => "[%b64_8+16]".into(),
                2 => "[%b32_7]".into(),
                3 => "[%b64_7]".into(),
                _ => text,
            }
        }
        OperandKind::Immediate => match spec.range {
            Some((least, most)) => rng.i64(least..=most).to_string(),
            None => text,
        },
        _ => text,
    }
}

/// A register that the type takes.
fn register(ty: Type, wider: bool, rng: &mut Rng) -> String {
    let fit: Vec<_> =
        REGISTERS.iter().filter(|(declared, _)| isa::register_allowed(ty, *declared, wider)).collect();
    match fit.as_slice() {
        [] => "%b32_1".into(),
        fit => format!("{}{}", fit[rng.usize(..fit.len())].1, rng.u8(1..9)),
    }
}

/// A literal that the type takes, where there is one.
fn literal(ty: Type, rng: &mut Rng) -> String {
    let of_integers = ["0", "1", "2", "7", "-1", "31", "0xff", "5U"];
    let of_numbers = ["0.0", "1.5", "-2.0", "0f3F800000", "0d3FF0000000000000"];
    match ty {
        Type::F32 | Type::F64 => of_numbers[rng.usize(..of_numbers.len())].into(),
        Type::Pred => "1".into(),
        ty if !ty.is_float() => of_integers[rng.usize(..of_integers.len())].into(),
        _ => register(ty, false, rng),
    }
}
