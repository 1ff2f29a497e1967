//! What the recorded instructions refer to.

use isa::Type;

/// The types that registers are declared with.
pub const DECLARED: [&str; 18] = [
    "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16",
    "f16x2", "f32", "f64",
];

/// Variables and a function of the module, and the head of the entry.
const MODULE: &str = "\
.global .align 8 .b32 array[4];
.global .u32 scalar;
.global .f32 number;
.shared .b64 shared;
.const .b16 constant;
.func function(.reg .b32 a) { ret; }
.entry probe(.param .u64 parameter) {
";

/// What closes a module.
pub const AFTER: &str = "exit;\n}\n";

/// Declarations of everything, before the first instruction.
pub fn before() -> String {
    let mut text = MODULE.to_owned();
    for ty in DECLARED {
        text += &format!(".reg .{ty} %{ty}_<4>;\n");
    }
    text + ".reg .v2 .b32 v2;\n.reg .v4 .f32 v4;\n.local .b32 local;\nlabel:\n"
}

/// Declarations that every version and target takes: registers of bits, and none wider than 64.
pub fn plain() -> String {
    let mut text = ".entry probe {\n".to_owned();
    for ty in ["pred", "b8", "b16", "b32", "b64"] {
        text += &format!(".reg .{ty} %{ty}_<4>;\n");
    }
    text
}

/// A register of bits as wide as an instruction type; what is no type is 32 bits wide.
pub fn bits(ty: &str, number: u32) -> String {
    let bits = match Type::from_name(ty).map_or(32, Type::bits) {
        1 => return format!("%pred_{number}"),
        bits => bits.max(8),
    };
    format!("%b{bits}_{number}")
}

/// A register declared with the instruction's own type, where there can be one.
pub fn own(ty: &str, number: u32) -> String {
    if DECLARED.contains(&ty) { format!("%{ty}_{number}") } else { bits(ty, number) }
}

/// The operands of a core instruction with these types, with a register for each; `c` says whether the predicate that
/// a boolean operator combines with is there.
pub fn operands(opcode: &str, types: &[&str], c: bool, register: fn(&str, u32) -> String) -> Vec<String> {
    let first = types.first().copied().unwrap_or("b32");
    let last = types.last().copied().unwrap_or("b32");
    let mut operands = match opcode {
        "set" => vec![register(first, 1), register(last, 2), register(last, 3)],
        "setp" => {
            let compared = types.iter().copied().find(|&ty| ty != "pred").unwrap_or(first);
            vec![register("pred", 1), register(compared, 2), register(compared, 3)]
        }
        "selp" => vec![register(first, 1), register(first, 2), register(first, 3), register("pred", 2)],
        "slct" => vec![register(first, 1), register(first, 2), register(first, 3), register(last, 1)],
        "fma" => vec![register(first, 1), register(last, 2), register(last, 3), register(first, 3)],
        _ => vec![register(first, 1), register(last, 2), register(first, 3)],
    };
    if c {
        operands.push(register("pred", 2));
    }
    operands
}
