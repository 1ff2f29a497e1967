//! Constant operands whose values ptxas limits.

use diag::Code;
use isa::{Action, Effect, Form, Limit, Mod, Property, Suffix, Target};

use crate::context::Context;
use crate::literal::Const;
use crate::module::Operand;
use crate::order::Stage;
use crate::sink::Sink;
use crate::value::{Lowered, Value};

/// The stage at which ptxas checks the constants of a form. It checks sizes of copies before it rejects modifiers,
/// others in between, as the table says, and those of the remaining forms at the end.
pub(crate) fn stage(form: &Form) -> (Stage, usize) {
    isa::stage_of_constants(form.opcode).map_or((Stage::Range, 0), Stage::of_table)
}

/// Checks the constants of an instruction whose operands fit. For forms of [`Stage::Range`], it does so only if the
/// instruction is otherwise correct (`is_right`).
pub(crate) fn check(
    sink: &mut Sink,
    context: &Context,
    target: Target,
    operands: &[Operand],
    lowered: &[Lowered],
    is_right: bool,
) {
    if !is_right && stage(context.form).0 == Stage::Range {
        return;
    }
    for (index, (spec, lowered)) in context.form.operands_with(context.picks).zip(lowered).enumerate() {
        let of_field = context.form.action == Action::Effect(Effect::TensorMapReplace) && index == 1;
        match lowered.value {
            Value::Const(Const::Int { value, .. }) if of_field => {
                tensor_map_field(sink, context, target, value as i64, lowered.span);
            }
            Value::Const(Const::Int { value, .. }) => {
                let limited = Limited { index, spec, value: value as i64, span: lowered.span };
                limits(sink, context, operands, &limited);
            }
            Value::Const(fraction) if spec.name == "fraction" => {
                policy_fraction(sink, context, index, fraction, lowered.span);
            }
            // If there are other errors, ptxas reports a constant that is no integer elsewhere.
            Value::Const(_) if !is_right => {}
            _ if of_field && context.picks.mods().iter().any(|m| TENSOR_MAP_ENUMERATIONS.contains(m)) => {
                let message = "Integer constant expression expected";
                sink.error(Code::IntegerConstantExpected, lowered.span, message);
            }
            _ => {}
        }
    }
    if is_right && context.picks.has(Mod::KindF8f6f4) {
        scale_of_sum(sink, context, lowered);
    }
    if is_right && context.picks.has(Mod::BlockScale) {
        scale_selectors(sink, context, operands, lowered);
    }
    policy_range(sink, context, lowered);
    if context.form.action == Action::Effect(Effect::Barrier) {
        barrier(sink, context, operands, lowered);
    }
}

/// An integer constant in the place of an operand.
struct Limited<'s> {
    index: usize,
    spec: &'s isa::OperandSpec,
    value: i64,
    span: diag::Span,
}

/// Checks an integer constant as the table says.
fn limits(sink: &mut Sink, context: &Context, operands: &[Operand], limited: &Limited) {
    let &Limited { index, spec, value, span } = limited;
    let Context { form, picks, name } = *context;
    let product = crate::product::group_name(form, picks);
    let name = product.as_deref().unwrap_or(name);
    // If the operand of a report stands before it, ptxas checks no constant.
    if form.operands_with(picks).any(|spec| spec.name == "report") {
        return;
    }
    let mut says = |limit: Limit, argument: usize, text: &str, help: Option<&'static str>| {
        let texts =
            [("{op}", name.to_owned()), ("{value}", value.to_string()), ("{argument}", argument.to_string())];
        let message =
            texts.iter().fold(text.to_owned(), |text, (placeholder, word)| text.replace(placeholder, word));
        sink.error(Code::OutOfRange, span, message).maybe_help(help.map(str::to_owned));
        // A CTA mask that is too long is also an operand of the wrong type.
        if spec.name == "mask" && form.has(Property::CtaMask, picks) && matches!(limit, Limit::Range(..)) {
            let message = format!("Arguments mismatch for instruction '{name}'");
            sink.error(Code::ArgumentsMismatch, span, message);
        }
    };
    let mut own = form.constants.iter().filter(|constant| constant.operand == spec.name).peekable();
    if own.peek().is_none()
        && let Some((least, greatest)) = range(operands, spec)
        && !(least..=greatest).contains(&value)
    {
        // ptxas counts the coordinates after a tensor as an operand.
        let argument = index + usize::from(form.has(Property::CountedCoordinates, picks));
        let limit = Limit::Range(least, greatest);
        let expected = match least == greatest {
            true => format!("unexpected value '{{value}}', expected to be {least}"),
            false => format!("value '{{value}}' out of range, expected to be in range [{least}..{greatest}]"),
        };
        says(limit, argument, &format!("Argument {{argument}} of instruction '{{op}}': {expected}"), None);
    }
    for constant in own.filter(|constant| constant.when.iter().all(|condition| condition.holds(picks))) {
        if let Some(&(limit, text)) = constant.limits.iter().find(|(limit, _)| !limit.holds(value)) {
            says(limit, index, text, constant.help);
        }
    }
}

/// The least and the greatest value of an operand. `cp.async` reads no more bytes than it writes.
fn range(operands: &[Operand], spec: &isa::OperandSpec) -> Option<(i64, i64)> {
    match operands.get(2) {
        Some(&Operand::Imm(size)) if spec.name == "src-size" => Some((0, size as i64)),
        _ => spec.range,
    }
}

/// `createpolicy.range`: the part of a range that a policy applies to.
fn policy_range(sink: &mut Sink, context: &Context, lowered: &[Lowered]) {
    let is_it = context.form.operands.iter().any(|spec| spec.name == "total-size");
    let [.., part, whole] = lowered else { return };
    let (true, Value::Const(Const::Int { value: size, .. }), Value::Const(Const::Int { value: total, .. })) =
        (is_it, &part.value, &whole.value)
    else {
        return;
    };
    let (size, total) = (*size as u32, *total as u32);
    if size > total {
        let message = format!(
            "Argument 3 of instruction '{}': value '{}' must be less than or equal to the value '{}' of argument 4",
            context.name, size as i32, total as i32
        );
        sink.error(Code::OutOfRange, part.span, message);
    }
}

/// A product of this kind has no scale: ptxas names the modifier that is in the way.
fn scale_of_sum(sink: &mut Sink, context: &Context, lowered: &[Lowered]) {
    let mut specs = context.form.operands_with(context.picks);
    let place = specs.position(|spec| spec.name == "scale-input-d");
    if let Some(lowered) = place.and_then(|place| lowered.get(place)) {
        let message = format!(
            "Illegal modifier '.kind::f8f6f4' for instruction '{}' with 'arg scale-inp-d-imm'",
            context.name
        );
        sink.error(Code::IllegalModifier, lowered.span, message);
    }
}

/// `createpolicy.fractional`: the fraction of accesses that a policy applies to.
fn policy_fraction(sink: &mut Sink, context: &Context, index: usize, fraction: Const, span: diag::Span) {
    let value = match fraction {
        Const::Int { .. } => return,
        Const::F32(bits) => f64::from(f32::from_bits(bits)),
        Const::F64(bits) => f64::from_bits(bits),
        Const::Decimal(value) => value,
    };
    if !(value > 0.0 && value <= 1.0) {
        let message = format!(
            "Argument {} of instruction '{}': value '{value:.6}' out of range, expected to be in range (0.000000 .. 1.000000]",
            index + 1,
            context.name
        );
        sink.error(Code::OutOfRange, span, message);
    }
}

/// `tensormap.replace`: the index of a dimension, or a value of an enumeration. Newer targets have more values.
fn tensor_map_field(sink: &mut Sink, context: &Context, target: Target, value: i64, span: diag::Span) {
    let Some(field) = context.picks.mods().iter().find(|m| TENSOR_MAP_FIELDS.contains(m)) else { return };
    let has_more_swizzles = matches!(target.number, 103 | 107) && target.suffix == Suffix::Architecture;
    let greatest = match field {
        Mod::Elemtype if target.number < 100 => 12,
        Mod::Elemtype => 15,
        Mod::SwizzleMode if has_more_swizzles => 4,
        Mod::SwizzleMode | Mod::SwizzleAtomicity => 3,
        Mod::InterleaveLayout => 2,
        Mod::FillMode => 1,
        _ => 4,
    };
    if !(0..=greatest).contains(&value) {
        let message = format!(
            "Argument 1 of instruction '{}': value '{value}' expected to be in range [0..{greatest}] when .{} modifier is used.",
            context.name,
            field.name()
        );
        sink.error(Code::OutOfRange, span, message);
    }
}

/// The fields of tensor maps that only a constant can replace.
const TENSOR_MAP_ENUMERATIONS: [Mod; 5] =
    [Mod::Elemtype, Mod::FillMode, Mod::InterleaveLayout, Mod::SwizzleAtomicity, Mod::SwizzleMode];

/// The fields of tensor maps whose values ptxas checks, or whose operand is the index of a dimension.
const TENSOR_MAP_FIELDS: [Mod; 9] = [
    Mod::BoxDim,
    Mod::ElementStride,
    Mod::Elemtype,
    Mod::FillMode,
    Mod::GlobalDim,
    Mod::GlobalStride,
    Mod::InterleaveLayout,
    Mod::SwizzleAtomicity,
    Mod::SwizzleMode,
];

/// `mma.block_scale`: `{byte-id, thread-id}` of A and of B (PTX ISA, "Block Scaling for mma.sync").
fn scale_selectors(sink: &mut Sink, context: &Context, operands: &[Operand], lowered: &[Lowered]) {
    let bytes: &[u64] = match isa::matrix::scale_vector(context.picks) {
        1 => &[0, 1, 2, 3],
        2 => &[0, 2],
        _ => &[0],
    };
    let specs = context.form.operands_with(context.picks).zip(operands).zip(lowered).enumerate();
    for (index, ((spec, operand), lowered)) in specs {
        let threads: &[u64] = match spec.name {
            "ids-a" => &[0, 1],
            "ids-b" => &[0, 1, 2, 3],
            _ => continue,
        };
        let Operand::Vector(parts) = operand else { continue };
        for (part, allowed) in parts.iter().zip([bytes, threads]) {
            let Operand::Imm(value) = part else { continue };
            if allowed.contains(value) {
                continue;
            }
            let message = match allowed {
                [0] | [0, 2] => format!(
                    "Argument {index} of instruction 'mma': unexpected value '{value}', expected to be {}",
                    if allowed.len() == 1 { "0" } else { "0 or 2" }
                ),
                _ => format!(
                    "Argument {index} of instruction 'mma': value '{value}' out of range, expected to be in range [0..{}]",
                    allowed.len() - 1
                ),
            };
            sink.error(Code::OutOfRange, lowered.span, message);
        }
    }
}

/// `bar.sync a, b`: the number of the barrier and the thread count.
fn barrier(sink: &mut Sink, context: &Context, operands: &[Operand], lowered: &[Lowered]) {
    // Operand 0 of `bar.red` is the result, and the last one is the predicate.
    let specs: Vec<&isa::OperandSpec> = context.form.operands_with(context.picks).collect();
    let first = usize::from(specs.first().is_some_and(|spec| spec.access == isa::Access::Write));
    let constant = |name: &str| {
        let place = specs.iter().position(|spec| spec.name == name)?;
        match (operands.get(place)?, lowered.get(place)?) {
            (Operand::Imm(_), Lowered { value: Value::Const(Const::Int { value, .. }), span, .. }) => {
                Some((*value, *span))
            }
            _ => None,
        }
    };
    // ptxas checks only the low word of each number.
    let names: Vec<&str> = specs.iter().skip(first).map(|spec| spec.name).collect();
    if let Some((number, span)) = names.first().and_then(|name| constant(name))
        && number as u32 > 15
    {
        let message = format!("Barrier number '{number}' out of range, expected to be in range [0..15]");
        sink.error(Code::OutOfRange, span, message).help("a block has 16 barriers");
    }
    let Some((threads, span)) = constant("b").map(|(threads, span)| (threads as u32, span)) else { return };
    if threads % 32 != 0 {
        let message = "Number of threads participating in barrier must be in multiple of warp size";
        sink.error(Code::ThreadCount, span, message).help("write a multiple of 32");
    } else if threads == 0 && context.picks.has(Mod::Arrive) {
        let message = format!("Instruction '{}' requires a non-zero thread count argument", context.name);
        sink.error(Code::ThreadCount, span, message);
    }
}
