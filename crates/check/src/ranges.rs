//! Constant operands whose values ptxas limits.

use isa::{Action, Effect};

use crate::context::Sink;
use crate::instruction::Context;
use crate::literal::Const;
use crate::module::Operand;
use crate::operand::{Lowered, Value};

/// Checks the constants among the operands of an instruction that is otherwise right.
pub(crate) fn check(sink: &mut Sink, context: &Context, operands: &[Operand], lowered: &[Lowered]) {
    for (i, (spec, lowered)) in context.form.operands_with(context.picks).zip(lowered).enumerate() {
        let Value::Const(Const::Int { value, .. }) = lowered.value else { continue };
        let range = match (context.form.opcode, spec.name) {
            // Position and length of a bit field.
            ("bfe", _) if i >= 2 => Some((0, 255)),
            ("bfi", _) if i >= 3 => Some((0, 255)),
            _ => spec.range,
        };
        if context.form.opcode == "cp" && spec.name == "cp-size" {
            copy_size(sink, context, i, value as i64, lowered.span);
        } else if let Some((least, greatest)) = range
            && !(least..=greatest).contains(&(value as i64))
        {
            let message = format!(
                "Argument {i} of instruction '{}': value '{}' out of range, expected to be in range [{least}..{greatest}]",
                context.name, value as i64
            );
            sink.error("out-of-range", lowered.span, message);
        }
    }
    // Another block of the cluster gives no state back.
    if context.form.action == Action::Effect(Effect::Mbarrier)
        && context.picks.has(isa::Mod::SharedCluster)
        && let (Some(Operand::Reg(_)), Some(lowered)) = (operands.first(), lowered.first())
    {
        let message = format!(
            "Sink '_' is expected as a destination operand for instruction '{}' with '.shared::cluster'",
            context.name
        );
        sink.error("sink-expected", lowered.span, message).help("write `_`");
    }
    if context.form.action == Action::Effect(Effect::Barrier) {
        barrier(sink, context, operands, lowered);
    }
}

/// `cp.async`: so many bytes can be copied.
fn copy_size(sink: &mut Sink, context: &Context, index: usize, value: i64, span: diag::Span) {
    let (sizes, text): (&[i64], _) =
        if context.picks.has(isa::Mod::Cg) { (&[16], "16") } else { (&[4, 8, 16], "4 or 8 or 16") };
    if !sizes.contains(&value) {
        let name = context.name;
        let message = format!(
            "Argument {index} of instruction '{name}': unexpected value '{value}', expected to be {text}"
        );
        sink.error("out-of-range", span, message);
    }
}

/// `bar.sync a, b`: the barrier's number and how many threads take part.
fn barrier(sink: &mut Sink, context: &Context, operands: &[Operand], lowered: &[Lowered]) {
    // Of `bar.red`, operand 0 is the result and the last one the predicate.
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
    let names: Vec<&str> = specs.iter().skip(first).map(|spec| spec.name).collect();
    if let Some((number, span)) = names.first().and_then(|name| constant(name))
        && number > 15
    {
        let message = format!("Barrier number '{number}' out of range, expected to be in range [0..15]");
        sink.error("out-of-range", span, message).help("a block has 16 barriers");
    }
    let Some((threads, span)) = constant("b") else { return };
    if threads % 32 != 0 {
        let message = "Number of threads participating in barrier must be in multiple of warp size";
        sink.error("thread-count", span, message).help("write a multiple of 32");
    } else if threads == 0 && context.picks.has(isa::Mod::Arrive) {
        let message = format!("Instruction '{}' requires a non-zero thread count argument", context.name);
        sink.error("thread-count", span, message);
    }
}
