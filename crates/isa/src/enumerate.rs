//! Enumerates the spellings of a form, and writes an instruction for each. Recorders and tests pass these to an
//! assembler.

use crate::{
    Action, Consequence, Effect, Form, FormId, Mod, Opcode, OperandKind, OperandSpec, Picks, Rule, Second,
    Space, Token, Type,
};

/// One way to write a form's modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The row.
    pub form: FormId,
    /// The modifiers without their dots, in the order of the slots.
    pub modifiers: Vec<&'static str>,
    /// The picks that they mean.
    pub picks: Picks,
}

impl Spelling {
    /// The mnemonic with its modifiers: `add.rn.f32`.
    pub fn mnemonic(&self) -> String {
        let mut text = self.form.form().opcode.name().to_string();
        for modifier in &self.modifiers {
            text.push('.');
            text.push_str(modifier);
        }
        text
    }

    /// Does every rule of the row allow it, and does ptxas have code for it?
    pub fn is_legal(&self) -> bool {
        let form = self.form.form();
        let is_allowed = |rule: &Rule| match rule.then {
            Consequence::Needs(needs, _) => {
                !rule.applies(&self.picks) || needs.iter().all(|condition| condition.holds(&self.picks))
            }
            Consequence::Gates(_) | Consequence::Default(..) => true,
        };
        form.rules.iter().all(is_allowed) && !crate::matrix::is_without_code(form, &self.picks)
    }
}

/// Every combination of the slots' choices, including combinations that a rule forbids.
pub fn spellings(form: FormId) -> impl Iterator<Item = Spelling> {
    let slots = form.form().slots;
    // An odometer: digit 0 of an optional slot omits the slot.
    let sizes: Vec<usize> =
        slots.iter().map(|slot| slot.choices.len() + usize::from(slot.optional)).collect();
    let total: usize = sizes.iter().product();
    (0..total).map(move |mut number| {
        let mut tokens = Vec::with_capacity(slots.len());
        for (slot, &size) in slots.iter().zip(&sizes).rev() {
            let digit = number % size;
            number /= size;
            match digit.checked_sub(usize::from(slot.optional)) {
                Some(index) => tokens.push(slot.choices[index].token),
                None => continue,
            }
        }
        tokens.reverse();
        spelling(form, &tokens)
    })
}

/// The spelling with these tokens, in the order given.
pub fn spelling(form: FormId, tokens: &[Token]) -> Spelling {
    let (mut types, mut mods) = (Vec::new(), Vec::new());
    for token in tokens {
        match *token {
            Token::Type(ty) => types.push(ty),
            Token::Mod(modifier) => mods.push(modifier),
        }
    }
    let modifiers = tokens.iter().map(|token| token.name()).collect();
    Spelling { form, modifiers, picks: Picks::new(&types, &mods) }
}

/// Declarations at module level that [`instruction`] refers to; addresses are aligned for every access.
pub const MODULE_DECLARATIONS: &str = "\
.global .align 64 .b8 in_global[1024];
.shared .align 64 .b8 in_shared[1024];
.const .align 64 .b8 in_const[1024];
.func callee() { ret; }
";

/// The parameter of the entry that [`instruction`] refers to.
pub const ENTRY_PARAMETER: &str = ".param .align 64 .b8 in_param[1024]";

/// Declarations in the entry that [`instruction`] refers to.
pub const ENTRY_DECLARATIONS: &str = "\
.local .align 64 .b8 in_local[1024];
.param .align 64 .b8 out_param[1024];
.reg .pred %p<9>; .reg .b8 %b8_<9>; .reg .b16 %b16_<9>; .reg .b32 %b32_<10>; .reg .b64 %b64_<9>;
.reg .b128 %b128_<9>;
";

/// Writes one instruction with bit-size registers, without the last `left_out` optional operands.
pub fn instruction(spelling: &Spelling, left_out: usize) -> String {
    let form = spelling.form.form();
    let specs: Vec<&OperandSpec> = form.operands_with(&spelling.picks).collect();
    let operands: Vec<String> = specs[..specs.len().saturating_sub(left_out)]
        .iter()
        .enumerate()
        .map(|(index, spec)| operand(form, spec, index, &spelling.picks))
        .collect();
    format!("{} {};", spelling.mnemonic(), operands.join(", "))
}

/// A register of the bit-size type as wide as `ty`.
fn register(ty: Option<Type>, index: usize) -> String {
    match ty.map(Type::bits) {
        Some(1) => format!("%p{index}"),
        Some(2..=8) => format!("%b8_{index}"),
        Some(16) => format!("%b16_{index}"),
        Some(32) => format!("%b32_{index}"),
        Some(128) => format!("%b128_{index}"),
        _ => format!("%b64_{index}"),
    }
}

fn operand(form: &Form, spec: &OperandSpec, index: usize, picks: &Picks) -> String {
    let ty = spec.resolve(picks);
    let (count, braces) = spec.count(form, picks);
    let mut text = match spec.kind {
        OperandKind::Texels => return texels(dimensions(picks)),
        OperandKind::Handle => return "[%b64_8]".into(),
        OperandKind::Address if spec.name == "fabric" => {
            let counter = if picks.has(Mod::CountedBytes) { ", %b64_3" } else { "" };
            return format!("[%b32_1, %b64_2{counter}]");
        }
        OperandKind::Address if spec.name == "tensor" => {
            return texels(crate::tensor_coordinates(picks).unwrap_or(1));
        }
        // An address in tensor memory.
        OperandKind::Address if form.opcode == Opcode::Tcgen05 && spec.name == "taddr" => {
            return "[%b32_8]".into();
        }
        OperandKind::Address if form.action == Action::Effect(Effect::TensorMma) => return "[%b32_8]".into(),
        OperandKind::Address => return address(form, picks, picks.space_of(ordinal(form, spec))),
        OperandKind::Label => return "label".into(),
        OperandKind::BranchTargets => return "targets".into(),
        OperandKind::Call => return "callee".into(),
        OperandKind::Immediate if ty == Some(Type::F32) => "0f3F000000".into(),
        OperandKind::Immediate if spec.name == "cp-size" => "16".into(),
        // Signs and transpositions of `wgmma`.
        OperandKind::Immediate if spec.name.starts_with("imm-") => "1".into(),
        OperandKind::Immediate => spec.range.map_or(8, |(least, _)| least).to_string(),
        // Gradients are vectors, whatever the geometry.
        _ if spec.name.starts_with("dP") => registers(ty, dimensions(picks)),
        _ if braces => registers(ty, count),
        _ => register(ty, index + 1),
    };
    if spec.second == Second::Required {
        text.push_str("|%p8");
    }
    text
}

/// `{%b32_0, %b32_1}`
fn registers(ty: Option<Type>, count: usize) -> String {
    let elements: Vec<String> = (0..count).map(|i| register(ty, i)).collect();
    format!("{{{}}}", elements.join(", "))
}

/// Number of coordinates of the geometry, rounded up to the length of a vector.
fn dimensions(picks: &Picks) -> usize {
    let count = picks.mods().iter().find_map(|modifier| match modifier.name() {
        "1d" => Some(1),
        "2d" | "a1d" => Some(2),
        _ => None,
    });
    count.unwrap_or(4)
}

/// A texture, a surface or a tensor map, and coordinates in it.
fn texels(coordinates: usize) -> String {
    format!("[%b64_8, {}]", registers(Some(Type::B32), coordinates))
}

/// The index of an operand among the form's addresses.
fn ordinal(form: &Form, spec: &OperandSpec) -> usize {
    let addresses = form.operands.iter().filter(|operand| operand.kind == OperandKind::Address);
    addresses.take_while(|operand| operand.name != spec.name).count()
}

/// An address in a state space.
fn address(form: &Form, picks: &Picks, space: Space) -> String {
    let name = match space {
        Space::Global => "in_global",
        Space::Shared => "in_shared",
        Space::Const => "in_const",
        Space::Local => "in_local",
        Space::Param if form.opcode == Opcode::St || picks.has(Mod::ParamFunc) => "out_param",
        Space::Param => "in_param",
        _ => "%b64_8",
    };
    format!("[{name}]")
}
