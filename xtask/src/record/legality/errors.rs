//! Random instructions of the whole table with several errors each, so that the order of errors shows.

use fastrand::Rng;
use isa::enumerate::{MODULE_DECLARATIONS, instruction, spellings};
use isa::{FORMS, FormId, Mod, OperandKind, Type};

/// What stands before the instructions.
pub fn before() -> String {
    format!("{MODULE_DECLARATIONS}.entry probe({PARAMETER})\n{{\n{DECLARATIONS}label:\n")
}

/// Old targets have no room for more.
const PARAMETER: &str = ".param .align 64 .b8 in_param[128]";

/// Variables and registers: those of `isa::enumerate`, more of them, and such of other types.
const DECLARATIONS: &str = "\
.local .align 64 .b8 in_local[1024];
.param .align 64 .b8 out_param[1024];
.reg .pred %p<9>; .reg .b8 %b8_<9>; .reg .b16 %b16_<9>; .reg .b32 %b32_<150>; .reg .b64 %b64_<99>; .reg .b128 %b128_<9>;
.reg .f32 %f<9>; .reg .f64 %d<9>; .reg .s16 %sh<9>; .reg .u32 %u<9>; .reg .s64 %sd<9>; .reg .f16 %h<9>;
.reg .v2 .b32 %v2; .reg .v4 .f32 %v4;
";

/// Operands that seldom fit.
const OPERANDS: [&str; 38] = [
    "%p1",
    "!%p1",
    "%b16_1",
    "%b32_1",
    "%b64_1",
    "-%b32_1",
    "-%b64_1",
    "!%b32_1",
    "%f1",
    "%d1",
    "%sh1",
    "%u1",
    "%sd1",
    "%h1",
    "%v2",
    "%v4",
    "%v2.y",
    "%b32_1.h0",
    "%b32_1+4",
    "%tid",
    "%tid.x",
    "%clock64",
    "%laneid",
    "%nope",
    "%nope+4",
    "_",
    "0",
    "-1",
    "1.5",
    "0f3F800000",
    "1/0",
    "{%b32_1, %b32_2}",
    "{%f1, %b32_2, %f3, %f4}",
    "{%b32_1, %b64_2}",
    "in_global",
    "[in_shared]",
    "[%f1]",
    "callee",
];

const STRANGE: [&str; 6] = ["foo", "u128", "x2", "g", "wide", "b4"];

/// Random instructions. Most have two or three errors.
pub fn some(seed: u64, count: usize) -> Vec<String> {
    let mut rng = Rng::with_seed(seed);
    let opcodes: Vec<&[isa::Form]> = FORMS.chunk_by(|a, b| a.opcode == b.opcode).collect();
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        let forms = opcodes[rng.usize(..opcodes.len())];
        let form = &forms[rng.usize(..forms.len())];
        let jumps = [OperandKind::Label, OperandKind::BranchTargets, OperandKind::Call];
        if form.operands.iter().any(|spec| jumps.contains(&spec.kind)) {
            continue;
        }
        let Some(id) = isa::form_id(form) else { continue };
        let instruction = broken(id, &mut rng);
        // ptxas crashes on these.
        if !(instruction.contains("movmatrix") && instruction.contains(" _,")) {
            all.push(instruction);
        }
    }
    all
}

/// An instruction of the row with something wrong in it.
fn broken(id: FormId, rng: &mut Rng) -> String {
    let legal: Vec<_> = spellings(id).filter(isa::enumerate::Spelling::is_legal).take(5000).collect();
    let spelling = &legal[rng.usize(..legal.len())];
    let text = instruction(spelling, 0);
    let (mnemonic, operands) = text.trim_end_matches(';').split_once(' ').unwrap_or((&text, ""));
    let mut words: Vec<String> = mnemonic.split('.').map(str::to_owned).collect();
    let mut operands = split(operands);
    for _ in 0..rng.usize(1..=3) {
        if rng.bool() { break_words(&mut words, rng) } else { break_operands(&mut operands, rng) }
    }
    let guard = if rng.u8(..20) == 0 { "@%b32_1 " } else { "" };
    format!("{guard}{} {};", words.join("."), operands.join(", "))
}

fn break_words(words: &mut Vec<String>, rng: &mut Rng) {
    let word = match rng.u8(..10) {
        0 => STRANGE[rng.usize(..STRANGE.len())],
        1..=2 => Type::ALL[rng.usize(..Type::ALL.len())].name(),
        _ => Mod::ALL[rng.usize(..Mod::ALL.len())].name(),
    };
    let place = rng.usize(1..=words.len());
    match rng.u8(..6) {
        0 if place < words.len() => drop(words.remove(place)),
        1 if place < words.len() => words[place] = word.to_owned(),
        2 if place < words.len() => words.insert(place, words[place].clone()),
        _ => words.insert(place, word.to_owned()),
    }
}

fn break_operands(operands: &mut Vec<String>, rng: &mut Rng) {
    let other = OPERANDS[rng.usize(..OPERANDS.len())].to_owned();
    match rng.u8(..12) {
        0 => drop(operands.pop()),
        1 => operands.push(other),
        _ if operands.is_empty() => {}
        _ => {
            let place = rng.usize(..operands.len());
            operands[place] = other;
        }
    }
}

/// Operands, apart from each other.
pub fn split(operands: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for c in operands.chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        all.last_mut().expect("it has a first").push(c);
    }
    all.iter().map(|operand| operand.trim().to_owned()).filter(|operand| !operand.is_empty()).collect()
}
