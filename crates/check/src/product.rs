//! The names of products of matrices in ptxas's messages.

use isa::{Action, Effect, Type};

use crate::context::Context;

/// The name of `wgmma.mma_async` in ptxas's messages about its shape or its constants.
pub(crate) fn group_name(form: &isa::Form, picks: &isa::Picks) -> Option<String> {
    if form.action != Action::Effect(Effect::Wgmma) || picks.types().len() < 3 {
        return None;
    }
    let factor = picks.ty(1);
    let kind = match factor {
        Type::B1 => "boolean type",
        _ if !factor.is_float() && factor != picks.ty(2) => "mixed integer types",
        _ if !factor.is_float() => "integer types",
        _ if factor.bits() == 8 => "FP8 types",
        _ => "floating point types",
    };
    let sparse = if isa::matrix::is_sparse(picks) { "Sparse " } else { "" };
    Some(format!("{sparse}wgmma.mma_async with {kind}"))
}

/// The message of ptxas for a shape of `wgmma.mma_async` that its types do not have. Floating-point types share their
/// shapes.
pub(crate) fn wrong_shape(shape: &str, form: &isa::Form, picks: &isa::Picks) -> Option<String> {
    let name = group_name(form, picks)?;
    let factor = picks.ty(1);
    let columns = if isa::matrix::is_sparse(picks) { ["k16", "k32"] } else { ["k8", "k16"] };
    let is_known = factor.is_float() && factor.bits() > 8 && columns.iter().any(|k| shape.ends_with(k));
    Some(match is_known {
        true => format!("Illegal instruction types specified for '{name}' with shape '.{shape}'"),
        false => format!("Illegal matrix shape '.{shape}' for instruction '{name}'"),
    })
}

/// The name of a product in ptxas's messages about its fragments. For `wgmma`, it is the name in its gates.
pub(crate) fn product_name(context: &Context) -> Option<&'static str> {
    if context.form.action == Action::Effect(Effect::Wgmma) {
        let gates = context.form.gates(context.picks);
        let subject = gates.iter().find_map(|gate| gate.subject.strip_prefix("Instruction '"))?;
        return subject.strip_suffix('\'');
    }
    let is_narrow = |ty: &Type| matches!(ty.bits(), 4 | 6 | 8) && ty.is_float();
    let is_named = is_sparse(context) && !context.picks.types().iter().any(is_narrow);
    is_named.then_some("Sparse mma")
}

/// Is this a product with a sparse matrix?
pub(crate) fn is_sparse(context: &Context) -> bool {
    context.form.action == isa::Action::Effect(Effect::Mma)
        && context.form.operands.iter().any(|spec| spec.name == "e")
}
