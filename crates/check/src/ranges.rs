//! Constant operands whose values ptxas limits.

use diag::Code;
use isa::{Action, Effect, Form, Mod, Opcode, Suffix, Target};

use crate::context::Sink;
use crate::instruction::Context;
use crate::literal::Const;
use crate::module::Operand;
use crate::operand::{Lowered, Value};
use crate::order::Stage;

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
    for (i, (spec, lowered)) in context.form.operands_with(context.picks).zip(lowered).enumerate() {
        let is_enumeration = |modifier: &Mod| TENSOR_MAP_ENUMERATIONS.contains(modifier);
        if context.form.action == Action::Effect(Effect::TensorMapReplace)
            && i == 1
            && context.picks.mods().iter().any(is_enumeration)
            && match lowered.value {
                Value::Const(Const::Int { .. }) => false,
                // If there are other errors, ptxas reports this one elsewhere.
                Value::Const(_) => is_right,
                _ => true,
            }
        {
            let message = "Integer constant expression expected";
            sink.error(Code::IntegerConstantExpected, lowered.span, message);
        }
        if let (Opcode::Createpolicy, "fraction", Value::Const(fraction)) =
            (context.form.opcode, spec.name, &lowered.value)
        {
            policy_fraction(sink, context, i, *fraction, lowered.span);
        }
        let Value::Const(Const::Int { value, .. }) = lowered.value else { continue };
        let range = match (context.form.opcode, spec.name) {
            // Position and length of a bit field.
            (Opcode::Bfe, _) if i >= 2 => Some((0, 255)),
            (Opcode::Bfi, _) if i >= 3 => Some((0, 255)),
            // Integer products have no scale, so ptxas does not check it.
            (Opcode::Tcgen05, "scale-input-d") if context.picks.has(Mod::KindI8) => None,
            (Opcode::Cp, "src-size") => copied(operands).map(|size| (0, size)),
            // All lanes, as a signed number.
            (Opcode::Fabric, "membermask") if value == u64::MAX => None,
            _ => spec.range,
        };
        if context.form.opcode == Opcode::Cp && spec.name == "cp-size" {
            copy_size(sink, context, i, value as i64, lowered.span);
        } else if context.form.action == Action::Effect(Effect::WgmmaGroup) && (value as i64) < 0 {
            let message = format!(
                "Argument {i} of instruction '{}': unexpected value '{}', expected to be non-negative integer",
                context.name, value as i64
            );
            sink.error(Code::OutOfRange, lowered.span, message);
        } else if context.picks.has(Mod::Bulk)
            && spec.name == "size"
            && value as i64 % bulk_unit(context) != 0
        {
            let message = format!(
                "Argument {i} of instruction '{}': unexpected value '{}', expected to be multiple of {}",
                context.name,
                value as i64,
                bulk_unit(context)
            );
            sink.error(Code::OutOfRange, lowered.span, message);
        } else if context.form.opcode == Opcode::Setmaxnreg && value % 8 != 0 {
            let message = format!(
                "Argument {} of instruction '{}': unexpected value '{}', expected to be multiple of 8",
                i + 1,
                context.name,
                value as i64
            );
            sink.error(Code::OutOfRange, lowered.span, message);
        } else if context.form.opcode == Opcode::Alloca && spec.name == "immAlign" {
            if !value.is_power_of_two() {
                sink.error(Code::OutOfRange, lowered.span, "Alignment must be a power of two");
            }
        } else if context.form.opcode == Opcode::Tcgen05 && spec.name == "columns" {
            tensor_columns(sink, context, value as i64, lowered.span);
        } else if context.form.action == Action::Effect(Effect::TensorMapReplace) && i == 1 {
            tensor_map_field(sink, context, target, value as i64, lowered.span);
        } else if context.form.action == Action::Effect(Effect::Wgmma) {
            group_constant(sink, context, i, spec, value as i64, lowered.span);
        } else if context.form.opcode == Opcode::Mbarrier
            && spec.name.contains("parity")
            && !has_report(context)
        {
            if !matches!(value, 0 | 1) {
                let message = format!(
                    "Argument {i} of instruction '{}': unexpected value '{}', expected to be 0 or 1",
                    context.name, value as i64
                );
                sink.error(Code::OutOfRange, lowered.span, message);
            }
        } else if context.form.opcode == Opcode::Mma && spec.name == "selector" {
            sparsity_selector(sink, context, i, range, value as i64, lowered.span);
        } else if context.form.opcode == Opcode::Mbarrier && spec.name == "count" && range.is_none() {
            if value as i64 <= 0 {
                let message = format!(
                    "Argument {i} of instruction '{}' : value '{}' expected to be a non-zero positive",
                    context.name, value as i64
                );
                sink.error(Code::OutOfRange, lowered.span, message);
            }
        } else if let Some((least, greatest)) = range
            && !(least..=greatest).contains(&(value as i64))
        {
            let (name, value) = (context.name, value as i64);
            // ptxas counts the coordinates after a tensor as an operand.
            let i = i + usize::from(context.form.action == Action::Effect(Effect::CopyTensor));
            let message = match least == greatest {
                true if spec.name == "initval" => {
                    format!(
                        "Argument {i} of instruction '{name}': unexpected value '{value}', expected to be zero"
                    )
                }
                // For `applypriority`, ptxas counts operands from one.
                true => format!(
                    "Argument {} of instruction '{name}': unexpected value '{value}', expected to be {least}",
                    i + usize::from(context.form.opcode == Opcode::Applypriority)
                ),
                false => format!(
                    "Argument {i} of instruction '{name}': value '{value}' out of range, expected to be in range [{least}..{greatest}]"
                ),
            };
            sink.error(Code::OutOfRange, lowered.span, message);
            // A CTA mask of more than 16 bits is also an operand of the wrong type.
            if spec.name == "mask" && matches!(context.form.opcode, Opcode::Cp | Opcode::Tcgen05) {
                let message = format!("Arguments mismatch for instruction '{name}'");
                sink.error(Code::ArgumentsMismatch, lowered.span, message);
            }
        }
    }
    if is_right
        && context.picks.has(Mod::KindF8f6f4)
        && let Some(place) =
            context.form.operands_with(context.picks).position(|spec| spec.name == "scale-input-d")
        && let Some(lowered) = lowered.get(place)
    {
        let message = format!(
            "Illegal modifier '.kind::f8f6f4' for instruction '{}' with 'arg scale-inp-d-imm'",
            context.name
        );
        sink.error(Code::IllegalModifier, lowered.span, message);
    }
    if is_right && context.picks.has(Mod::BlockScale) {
        scale_selectors(sink, context, operands, lowered);
    }
    if context.name == "createpolicy.range" {
        policy_range(sink, context, lowered);
    }
    if context.form.action == Action::Effect(Effect::Barrier) {
        barrier(sink, context, operands, lowered);
    }
}

/// Does the operand of the report stand before the parity? ptxas then checks nothing of it.
fn has_report(context: &Context) -> bool {
    context.form.operands_with(context.picks).any(|spec| spec.name == "report")
}

/// The number of bytes that the size of a bulk copy, or of `st.bulk`, must be a multiple of.
fn bulk_unit(context: &Context) -> i64 {
    if context.form.opcode == Opcode::St { 8 } else { 16 }
}

/// `createpolicy.range`: the part of a range that a policy applies to.
fn policy_range(sink: &mut Sink, context: &Context, lowered: &[Lowered]) {
    let [.., part, whole] = lowered else { return };
    let (Value::Const(Const::Int { value: size, .. }), Value::Const(Const::Int { value: total, .. })) =
        (&part.value, &whole.value)
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

/// `tcgen05.alloc`, `tcgen05.dealloc`: 32, 64, 128, 256 or 512 columns of tensor memory.
fn tensor_columns(sink: &mut Sink, context: &Context, value: i64, span: diag::Span) {
    let name = context.name;
    let mut report = |message: String| {
        sink.error(Code::OutOfRange, span, message).help("write 32, 64, 128, 256 or 512");
    };
    if value == 0 {
        report(format!("Argument 1 of instruction '{name}' : value '0' expected to be a non-zero positive"));
    } else if value % 32 != 0 {
        report(format!(
            "Argument 1 of instruction '{name}': unexpected value '{value}', expected to be multiple of 32"
        ));
    }
    if !(32..=512).contains(&value) {
        report(format!(
            "Argument 1 of instruction '{name}': value '{value}' out of range, expected to be in range [32..512]"
        ));
    } else if !value.unsigned_abs().is_power_of_two() {
        report(format!("Argument 1 of '{name}' instruction: value must be power of 2"));
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

/// `cp.async`: the sizes that can be copied.
fn copy_size(sink: &mut Sink, context: &Context, index: usize, value: i64, span: diag::Span) {
    let (sizes, text): (&[i64], _) =
        if context.picks.has(Mod::Cg) { (&[16], "16") } else { (&[4, 8, 16], "4 or 8 or 16") };
    if !sizes.contains(&value) {
        let name = context.name;
        let message = format!(
            "Argument {index} of instruction '{name}': unexpected value '{value}', expected to be {text}"
        );
        sink.error(Code::OutOfRange, span, message);
    }
}

/// The number of bytes that `cp.async` writes.
fn copied(operands: &[Operand]) -> Option<i64> {
    match operands.get(2) {
        Some(&Operand::Imm(size)) => Some(size as i64),
        _ => None,
    }
}

/// `wgmma.mma_async`: signs, transpositions, whether to add D, and which threads hold the metadata.
fn group_constant(
    sink: &mut Sink,
    context: &Context,
    index: usize,
    spec: &isa::OperandSpec,
    value: i64,
    span: diag::Span,
) {
    if index == 0 || spec.name.ends_with("desc") {
        return;
    }
    let (allowed, text): (&[i64], _) = match (spec.name, spec.range) {
        ("imm-scale-a" | "imm-scale-b", _) => (&[-1, 1], "-1 or 1"),
        ("sp-sel", Some((_, 0))) => (&[0], "0"),
        _ => (&[0, 1], "0 or 1"),
    };
    if allowed.contains(&value) {
        return;
    }
    let name = crate::vector::group_name(context.form, context.picks).unwrap_or_default();
    let message = format!(
        "Argument {index} of instruction '{name}': unexpected value '{value}', expected to be {text}"
    );
    sink.error(Code::OutOfRange, span, message);
}

/// `mma.sp`: which threads hold the metadata. The message for a shape in which all of them do depends on the type.
fn sparsity_selector(
    sink: &mut Sink,
    context: &Context,
    index: usize,
    range: Option<(i64, i64)>,
    value: i64,
    span: diag::Span,
) {
    let Some((least, greatest)) = range.filter(|(least, greatest)| !(least..=greatest).contains(&&value))
    else {
        return;
    };
    let message = if context.picks.types().iter().any(|ty| ty.is_float() && ty.bits() < 16) {
        format!("Argument {index} of instruction 'mma': unexpected value '{value}', expected to be 0")
    } else {
        format!(
            "Argument {} of instruction 'Sparse mma': value '{value}' out of range, expected to be in range [{least}..{greatest}]",
            index + 1
        )
    };
    sink.error(Code::OutOfRange, span, message)
        .help("the manual's \"Sparse matrix storage\" says which threads hold the metadata of a shape");
}

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
