//! Modifiers that do not fit together, and modifiers whose order in the source matters.

use diag::Code;
use isa::{Action, Effect, Mod, Property, Target};
use syntax::tree::Instruction as Tree;

use crate::body::BodyChecker;
use crate::context::Context;

/// A code and the message of ptxas.
type Complaint = (Code, String);

impl BodyChecker<'_, '_> {
    /// Reports the combination of modifiers of an instruction whose modifiers are each legal and whose operands all
    /// fit.
    pub(crate) fn check_combination(&mut self, node: &Tree<'_>, context: &Context) {
        let written = |among: &[&'static str]| -> Option<&'static str> {
            let mut modifiers = node.modifiers.iter();
            modifiers.find_map(|m| among.iter().copied().find(|&name| name == m.text.trim_start_matches('.')))
        };
        let found = layouts(context, written(&["row", "col"]))
            .or_else(|| product_without_code(context))
            .or_else(|| {
                proxies(
                    context,
                    written(&["proxy", "tensormap::generic", "async::generic", "async", "alias"]),
                )
            })
            .or_else(|| {
                let message = format!("Arguments mismatch for instruction '{}'", context.name);
                scales_bytes(context, node.operands.len()).then_some((Code::ArgumentsMismatch, message))
            });
        if let Some((code, message)) = found {
            self.sink().error(code, node.span, message);
        }
    }
}

/// A bulk copy names its destination space first. How it completes must fit its direction.
pub(crate) fn bulk_copy(context: &Context, to: Option<Mod>) -> Option<Complaint> {
    let Context { name, form, picks } = context;
    let illegal = |modifier: &str| {
        Some((Code::IllegalModifier, format!("Illegal modifier '{modifier}' for instruction '{name}'")))
    };
    match (form.action, to?) {
        (Action::Effect(Effect::CpAsyncBulk | Effect::CopyTensor), Mod::Global)
            if picks.has(Mod::MbarrierCompleteTxBytes) =>
        {
            illegal(".mbarrier::complete_tx::bytes")
        }
        (Action::Effect(Effect::CpAsyncBulk | Effect::CopyTensor), to)
            if to != Mod::Global && picks.has(Mod::BulkGroup) =>
        {
            illegal(".bulk_group")
        }
        _ => None,
    }
}

/// A product that takes only `.row.col`.
fn layouts(context: &Context, first: Option<&str>) -> Option<Complaint> {
    let is_fixed = context.form.slots.iter().any(|slot| slot.name == "row")
        && context.form.slots.iter().any(|slot| slot.name == "col");
    let message = format!("Illegal alayout '.col' for instruction '{}'", context.name);
    (is_fixed && first == Some("col")).then_some((Code::IllegalModifier, message))
}

/// The gate of the operand `scale-input-d`, which is stricter than that of the instruction.
pub(crate) fn scaled_input(context: &Context, target: Target, operands: usize) -> Option<Complaint> {
    let at = context.form.operands_with(context.picks).position(|spec| spec.name == "scale-input-d")?;
    let is_scaled = !context.picks.has(Mod::KindI8);
    let is_closed = is_scaled && operands > at && !target.has(Target::new(100, isa::Suffix::Family));
    let message = format!("Feature 'argument scale-inp-d-imm' not supported on .target '{target}'");
    is_closed.then_some((Code::RequiresTarget, message))
}

/// Is there a `scale-input-d` on a sparse product of bytes, which has no scale?
fn scales_bytes(context: &Context, operands: usize) -> bool {
    let names = || context.form.operands_with(context.picks).map(|spec| spec.name);
    let at = names().position(|name| name == "scale-input-d");
    context.picks.has(Mod::KindI8)
        && at.is_some_and(|at| operands > at)
        && names().any(|name| name == "sparse-meta")
        && names().any(|name| name == "lanes")
}

/// A shape that ptxas knows and that no target has.
fn product_without_code(context: &Context) -> Option<Complaint> {
    let is_it = context.form.action == Action::Effect(Effect::Mma)
        && !context.has(Property::Calls)
        && isa::matrix::is_without_code(context.form, context.picks);
    let message = "Illegal instruction types specified for '_mma' with shape '.m16n8k16'";
    is_it.then(|| (Code::InstructionTypes, message.to_owned()))
}

/// `fence.proxy.KIND`: the kind follows `.proxy`.
fn proxies(context: &Context, first: Option<&str>) -> Option<Complaint> {
    let kind = first.filter(|&first| first != "proxy" && context.picks.has(Mod::Proxy))?;
    Some((Code::UnknownModifier, format!("Unknown modifier '.{kind}'")))
}
