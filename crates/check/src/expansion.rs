//! Instructions that ptxas expands into several others. If an operand does not fit one of those, ptxas reports the
//! error under that instruction's name.

use diag::{Code, Span};
use isa::{Action, Effect, Form, Mod, Opcode, Property, Rounding, Target, Type};

use crate::Assembly;
use crate::body::BodyChecker;
use crate::context::Context;
use crate::literal::Const;
use crate::value::{Base, Lowered, SymbolValue, Value};

impl BodyChecker<'_, '_> {
    /// The first label or function address with an offset. ptxas rejects such addresses when it generates code.
    fn code_address(&self, operands: &[Lowered]) -> Option<(String, Span)> {
        if self.module.options.assembly == Assembly::FrontEnd {
            return None;
        }
        let (what, name, span) = operands.iter().find_map(|lowered| match lowered.value {
            Value::Label(id, offset) if offset != 0 => {
                Some(("label", &self.body.labels[id.index()].name, lowered.span))
            }
            Value::Function(id, offset) if offset != 0 => {
                Some(("function", &self.module.functions[id.index()].name, lowered.span))
            }
            _ => None,
        })?;
        Some((format!("Cannot take address of {what} '{name}' in arithmetic expressions"), span))
    }

    /// The position of an operand that ptxas cannot parse after expansion. ptxas pastes sums into the PTX of the
    /// expansion, and lacks fragments of some shapes there.
    fn unreadable(&self, context: &Context, operands: &[Lowered]) -> Option<(char, Span)> {
        if self.module.options.assembly == Assembly::FrontEnd {
            return None;
        }
        if let Some(span) = operands.first().map(|lowered| lowered.span).filter(|_| has_no_halves(context)) {
            return Some((')', span));
        }
        let (pasted, near) = match context.form.action {
            _ if context.has(Property::Pasted) => (operands, '+'),
            Action::Pure(name) if name.starts_with("video") && crate::video::takes_one_part(context.form) => {
                (operands.get(1..=2)?, ';')
            }
            _ => return None,
        };
        let is_sum = |lowered: &&Lowered| {
            matches!(lowered.value, Value::RegisterPlus(..) | Value::Symbol(SymbolValue { sum: true, .. }))
        };
        pasted.iter().find(is_sum).map(|lowered| (near, lowered.span))
    }

    /// Reports the operand that fits its place in the instruction but not in the expansion.
    pub(crate) fn check_inside(&mut self, context: &Context, operands: &[Lowered]) {
        let at = (self.module.target, self.module.options.assembly);
        let found = operands.iter().enumerate().find_map(|(i, lowered)| {
            let text = self.module.source.slice(lowered.span);
            Some((does_not_fit(context, at, i, lowered, text)?, lowered.span))
        });
        if let Some((message, span)) = self.code_address(operands) {
            self.sink().error(Code::IllegalExpression, span, message);
        } else if let Some((near, span)) = self.unreadable(context, operands) {
            let message = format!("Parsing error near '{near}': syntax error");
            let help =
                format!("ptxas writes `{}` as other PTX, which it cannot read with this", context.name);
            self.sink().error(Code::SyntaxError, span, message).help(help);
        } else if let Some(span) = tensor_symbol(context, operands) {
            let message = "Argument 1 of instruction 'add': must be register";
            let help = match context.form.action {
                Action::Effect(Effect::StoreBulk) => "put the address of the variable into a register first",
                _ => "tensor memory has no variables: an address in it is in a register",
            };
            self.sink().error(Code::RegisterExpected, span, message).help(help);
        } else if let Some(span) = narrowed_constant(context, operands) {
            let message = "Rounding modifier required for instruction 'cvt'";
            let help = "ptxas converts the constant from f64: write its bits, such as 0f3F800000";
            self.sink().error(Code::MissingModifier, span, message).help(help);
        } else if let Some((message, span)) =
            matrix_without_code(context).zip(operands.first().map(|lowered| lowered.span))
        {
            let help = "ptxas knows this shape and has no code for it with this type";
            self.sink().error(Code::ArgumentsMismatch, span, message).help(help);
        } else if let Some((inner, span)) = discarded(context, at, operands) {
            let message = format!("Result discard mode is not allowed for instruction '{inner}'");
            let help = "on this target ptxas adds up products whose elements must all be registers";
            self.sink().error(Code::DiscardedResult, span, message).help(help);
        } else if let Some((inner, span)) = found {
            let message = format!("Arguments mismatch for instruction '{inner}'");
            let help = format!(
                "ptxas makes several instructions of `{}`: it does not fit into one of them",
                context.name
            );
            self.sink().error(Code::ArgumentsMismatch, span, message).help(help);
        }
    }
}

/// Is this a `wmma.load` or `wmma.store` of halves in a shape of `.s32` accumulators?
fn has_no_halves(context: &Context) -> bool {
    let picks = context.picks;
    matches!(context.form.action, Action::Effect(Effect::WmmaLoad | Effect::WmmaStore))
        && (picks.has(Mod::M8n8k32) || picks.has(Mod::M8n8k128))
        && picks.ty(0) == Type::F16
}

/// The variable that is the address of a tensor memory instruction or of `st.bulk.shared::cta`. ptxas adds the address to an
/// offset, which needs a register.
fn tensor_symbol(context: &Context, operands: &[Lowered]) -> Option<Span> {
    let Action::Effect(effect) = context.form.action else { return None };
    let adds = match effect {
        Effect::TensorLd | Effect::TensorSt | Effect::TensorCp | Effect::TensorShift => true,
        Effect::StoreBulk => context.picks.space_of(0) != isa::Space::Generic,
        _ => false,
    };
    let is_symbol = |lowered: &&Lowered| matches!(lowered.value, Value::Address(Base::Symbol(_), _));
    operands.iter().find(is_symbol).filter(|_| adds).map(|lowered| lowered.span)
}

/// The constant of 64 bits that `multimem.st.async` stores as f32.
fn narrowed_constant(context: &Context, operands: &[Lowered]) -> Option<Span> {
    let stores = context.form.action == Action::Effect(Effect::MultimemSt)
        && context.picks.has(Mod::Async)
        && context.picks.ty(0) == Type::F32;
    let value = operands.get(1).filter(|_| stores)?;
    matches!(value.value, Value::Const(Const::F64(_) | Const::Decimal(_))).then_some(value.span)
}

/// The element `_` of a result that ptxas computes from several products, and the instruction that would write it.
fn discarded(
    context: &Context,
    (target, assembly): (Target, Assembly),
    operands: &[Lowered],
) -> Option<(&'static str, Span)> {
    let picks = context.picks;
    if context.form.action != Action::Effect(Effect::Mma) || assembly == Assembly::FrontEnd {
        return None;
    }
    let has_kind = [Mod::KindF8f6f4, Mod::KindMxf8f6f4].iter().any(|&kind| picks.has(kind));
    let inner = match picks.ty(1) {
        Type::E4m3 | Type::E5m2 if (90..120).contains(&target.number) && !has_kind => "add",
        // Only `.m8n8k4` is a single instruction.
        Type::F64 if target.number >= 100 && !picks.has(Mod::M8n8k4) => "mov",
        _ => return None,
    };
    let Value::Vector(elements, _) = &operands.first()?.value else { return None };
    let sink = elements.iter().find(|element| matches!(element.value, Value::Sink))?;
    Some((inner, sink.span))
}

/// The instruction of the expansion that operand `i` does not fit.
fn does_not_fit(
    context: &Context,
    (target, assembly): (Target, Assembly),
    i: usize,
    lowered: &Lowered,
    text: &str,
) -> Option<&'static str> {
    let Context { form, picks, .. } = context;
    let address = match lowered.value {
        Value::Address(Base::Register(_, ty), _) | Value::Tensor(Base::Register(_, ty), ..) => ty.bits(),
        _ => 64,
    };
    let (refused, inner) = match (form.opcode, form.action) {
        (Opcode::Cvt, _) => (does_not_convert(context, i, lowered), "mov"),
        _ if context.has(Property::AddressOf32) => (address < 32, "mov"),
        _ if context.has(Property::AddressOf64) => (address < 64, "mov"),
        (_, Action::Effect(Effect::TensorCp | Effect::TensorShift)) => {
            (address != 32 && matches!(lowered.value, Value::Address(..)), "add")
        }
        (_, Action::Effect(Effect::TensorMapReplace)) => {
            // The expansion subtracts one from all values except ranks.
            let subtracts = !picks.has(Mod::Rank);
            (subtracts && matches!(lowered.value, Value::Register(_, Type::F32)), "sub")
        }
        (_, Action::Effect(Effect::CpAsyncBulk | Effect::CopyTensor)) => {
            // From sm_120 on, ptxas expands the load, with the addresses in registers of at least these sizes.
            let least = if i == 1 { 64 } else { 32 };
            let name = form.operands_with(picks).nth(i).map(|spec| spec.name);
            let loads = picks.has(Mod::SharedCluster) && picks.has(Mod::Global);
            let is_narrow = match lowered.value {
                // An address without brackets.
                Value::Register(_, ty) if i == 0 => ty.is_float() && ty.bits() < 64,
                Value::Register(_, ty) => ty.bits() < 32 && name == Some("mbar"),
                _ => address < least,
            };
            (loads && target.number >= 120 && is_narrow, "mov")
        }
        (_, Action::Effect(Effect::Tex)) if picks.has(Mod::Grad) && picks.has(Mod::V4) => {
            let mut names = form.operands_with(picks).map(|spec| spec.name);
            // Bits are copied, whatever they contain.
            let is_number = match lowered.value {
                Value::Register(_, ty) => ty.kind() != isa::Kind::Bits,
                Value::Const(_) => true,
                _ => false,
            };
            let is_offset = names.nth(i) == Some("e") && names.next() == Some("f");
            // Older targets do not expand this. A front-end check assumes the newest target.
            let stores = target.number >= 90 || assembly == Assembly::FrontEnd;
            (is_offset && is_number && stores, "st")
        }
        // Elements of vectors do not fit the expansion of video instructions.
        (_, Action::Pure(name)) if name.starts_with("video") => {
            (matches!(lowered.value, Value::Register(..)) && text.contains('.'), "mov")
        }
        _ => return None,
    };
    refused.then_some(inner)
}

/// A conversion with `.ftz` between 32 and 64 bits uses registers of exactly these sizes, and rounding to `.tf32`
/// uses a register that accepts no double-precision constant.
fn does_not_convert(context: &Context, i: usize, lowered: &Lowered) -> bool {
    let picks = context.picks;
    let [to, from] = [picks.ty(0), picks.ty(1)];
    match lowered.value {
        Value::Const(Const::Decimal(_) | Const::F64(_)) => to == Type::Tf32 && picks.has(Mod::Rna),
        Value::Register(_, register) | Value::RegisterPlus(_, register, _) if i < 2 => {
            let own = [to, from][i];
            let is_replaced = picks.has(Mod::Ftz) && to.bits() + from.bits() == 32 + 64 && from.is_float();
            let may_be_wider = i == 1 || picks.rounding() == Some(Rounding::NearestEven);
            let limit = if own == Type::F32 && may_be_wider { 64 } else { own.bits() };
            is_replaced && register.bits() > limit
        }
        _ => false,
    }
}

/// An operand of `tcgen05.mma` in tensor memory whose address does not have 32 bits.
pub(crate) fn wide_tensor_address(form: &Form, operands: &[Lowered]) -> Option<Span> {
    let is_wide = |lowered: &&Lowered| match lowered.value {
        Value::Address(Base::Register(_, ty), _) => ty.bits() != 32 || ty.is_float(),
        _ => false,
    };
    let is_product = form.action == Action::Effect(Effect::TensorMma);
    operands.iter().find(is_wide).filter(|_| is_product).map(|lowered| lowered.span)
}

/// The message for a `wmma.load` or `wmma.store` of a shape that its type does not have: ptxas names the library
/// function that it lacks.
fn matrix_without_code(context: &Context) -> Option<String> {
    let picks = context.picks;
    if !matches!(context.form.action, Action::Effect(Effect::WmmaLoad | Effect::WmmaStore)) {
        return None;
    }
    let has = |choices: &[(Mod, &'static str)]| {
        choices.iter().find(|(modifier, _)| picks.has(*modifier)).map(|&(_, name)| name)
    };
    if !isa::matrix::is_without_code(context.form, picks) {
        return None;
    }
    let ty = picks.ty(0);
    let is_k8 = picks.has(Mod::M16n16k8);
    let part = has(&[(Mod::A, "a"), (Mod::B, "b"), (Mod::C, "c"), (Mod::D, "d")])?;
    if !is_k8 && part != "c" {
        return Some("Arguments mismatch for instruction 'mov'".into());
    }
    // ptxas implements `.m8n32k16` as the transposed `m32n8k16`.
    let is_transposed = picks.has(Mod::M8n32k16);
    let shape = has(&[(Mod::M16n16k8, "m16n16k8"), (Mod::M16n16k16, "m16n16k16")]).unwrap_or("m32n8k16");
    let layout = if picks.has(Mod::Row) != is_transposed { "row" } else { "col" };
    let spaces = [(Mod::Global, "_global"), (Mod::Shared, "_shared"), (Mod::SharedCta, "_shared")];
    // Functions for accumulators do not depend on the state space.
    let space = has(&spaces).filter(|_| part != "c").unwrap_or("");
    let kind = if ty == Type::S32 { "sm72_Integer_wmma" } else { "sm7x_wmma" };
    let name = match (part, ty) {
        ("c", Type::S32) => format!("acc_{layout}{space}_update_ptr"),
        ("c", _) => format!("acc_{}_{layout}{space}_update_ptr", ty.name()),
        ("d", Type::S32) => format!("store_d_{layout}_s32{space}"),
        ("d", _) => format!("store_d_{layout}_f16{space}"),
        (part, _) => format!("load_{part}_{layout}{space}_update_ptr"),
    };
    Some(format!("Call to '__cuda_{kind}_{shape}_{name}' requires call prototype"))
}
