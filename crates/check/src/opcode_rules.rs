//! Rules of single opcodes that are not in the table. They concern the modifiers and operands as written: pairs of
//! state spaces of copies, orders and scopes, shapes, and modifiers that exclude each other. ptxas checks them once
//! the operands fit, and before it rejects modifiers that no form takes.

use diag::{Code, Span};
use isa::{Access, Mod, Opcode, Property, Type};
use smallvec::SmallVec;
use syntax::tree::Instruction as Tree;

use crate::context::{Apart, Context};
use crate::order::{SPACE, Stage, WAY};
use crate::value::{Lowered, Value};

/// What is wrong, and which modifiers the messages name as ones that exclude each other.
#[derive(Default)]
struct Found<'a> {
    /// Places, codes and messages.
    errors: Vec<(u16, Code, String)>,
    apart: Apart<'a>,
}

impl<'a> Found<'a> {
    fn push(&mut self, error: (u16, Code, String)) {
        self.errors.push(error);
    }

    /// Adds an error that names modifiers as excluding each other.
    fn push_apart(&mut self, words: &[&'a str], error: (u16, Code, String)) {
        self.apart.extend_from_slice(words);
        self.errors.push(error);
    }
}

/// An error, and its place in its stage.
pub(crate) struct Finding {
    pub(crate) stage: Stage,
    pub(crate) place: usize,
    pub(crate) code: Code,
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// Errors that are reported at [`Stage::Other`], with other missing modifiers.
const LATE: u16 = 4;

const ORDERS: &[&str] = &["acquire", "relaxed", "release"];
const SCOPES: &[&str] = &["cta", "cluster", "gpu", "sys"];

/// The errors in an instruction whose types and operands fit, in ptxas's order; and the modifiers that they name as excluding each other.
pub(crate) fn check<'a>(
    node: &Tree<'a>,
    context: &Context,
    operands: &[Lowered],
) -> (Vec<Finding>, Apart<'a>) {
    let words = Words(node.modifiers.iter().map(|m| m.text).collect());
    let span = node.head();
    let mut found = Found::default();
    match context.form.opcode {
        Opcode::Cp => copy(&words, context, &mut found),
        Opcode::Mbarrier => {
            mbarrier(&words, context, operands, &mut found);
            // It reads no memory that other threads write, so a scope has no meaning.
            if !words.has("check_layout") {
                order_and_scope(&words, context, &mut found);
            }
        }
        Opcode::Fabric if words.has("relaxed") => order_and_scope(&words, context, &mut found),
        Opcode::Multimem => {
            if words.has("bulk") {
                copy(&words, context, &mut found);
            }
            order_and_scope(&words, context, &mut found);
        }
        Opcode::Fence | Opcode::Membar if words.has("proxy") => proxy(&words, context, &mut found),
        Opcode::Fence => fence(&words, &mut found),
        Opcode::Ld | Opcode::St if !words.has("async") => eviction(&words, context, &mut found),
        Opcode::Tcgen05 if words.has("commit") && !words.has("mbarrier::arrive::one") => {
            let message =
                format!(".completion_mechanism modifier required for instruction '{}'", context.name);
            found.push((WAY, Code::MissingModifier, message));
        }
        _ => {}
    }
    let apart = found.apart;
    let mut found: Vec<Finding> = found
        .errors
        .into_iter()
        .map(|(place, code, message)| {
            let stage = if place == LATE { Stage::Other } else { Stage::OpcodeRules };
            Finding { stage, place: place.into(), code, span, message }
        })
        .collect();
    let (stage, place) = crate::order::SHAPE;
    if context.has(Property::ShapeFirst) && !words.0.iter().any(|word| crate::words::is_shape(word)) {
        let message = format!("Shape modifier required for instruction '{}'", context.name);
        found.push(Finding { stage, place: place - 2, code: Code::MissingModifier, span, message });
    }
    if let Some(message) = matrix_types(&words, context) {
        found.push(Finding { stage, place, code: Code::InstructionTypes, span, message });
    }
    (found, apart)
}

/// The modifiers of an instruction.
struct Words<'a>(SmallVec<[&'a str; 8]>);

impl<'a> Words<'a> {
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    /// Do they name the generic proxy and that of the fabric?
    fn are_of_fabric(&self) -> bool {
        self.has("generic::fabric") || self.has("fabric::generic")
    }

    fn first(&self, among: &[&str]) -> Option<&'a str> {
        self.0.iter().copied().find(|word| among.contains(word))
    }

    fn last(&self, among: &[&str]) -> Option<&'a str> {
        self.0.iter().copied().rfind(|word| among.contains(word))
    }

    fn spaces(&self) -> SmallVec<[Mod; 4]> {
        let mods = self.0.iter().filter_map(|word| Mod::from_name(word));
        mods.filter(|modifier| modifier.space().is_some()).collect()
    }
}

/// Asynchronous copies: their state spaces and how they complete.
fn copy<'a>(words: &Words<'a>, context: &Context, found: &mut Found<'a>) {
    let name = context.name;
    let is_bulk =
        words.has("bulk") && !["prefetch", "commit_group", "wait_group"].iter().any(|w| words.has(w));
    let wrong = crate::required::wrong_spaces(name, is_bulk, &words.spaces());
    if let Some(message) = wrong {
        let place = if is_bulk { WAY } else { SPACE };
        found.push((place, Code::MemorySpace, format!("{message} '{name}'")));
    }
    if !is_bulk || wrong.is_some() || context.form.opcode == Opcode::Multimem {
        return;
    }
    if !words.has("bulk_group") && !words.has("mbarrier::complete_tx::bytes") {
        let message = format!(".completion_mechanism modifier required for instruction '{name}'");
        found.push((WAY, Code::MissingModifier, message));
    }
    let spaces = words.spaces();
    if spaces[..] == [Mod::SharedCta, Mod::Global] {
        let illegal = if name == "cp.async.bulk" { "cp_mask" } else { "multicast::cluster" };
        if words.has(illegal) {
            let message =
                format!("Illegal modifier '.{illegal}' for instruction '{name}' with '.shared::cta.global'");
            found.push((WAY, Code::IllegalModifier, message));
        }
    }
    if let Some((code, message)) = crate::combination::bulk_copy(context, spaces.first().copied()) {
        found.push((WAY, code, message));
    }
}

/// Arrivals at mbarrier objects of other CTAs, and `.noComplete`.
fn mbarrier<'a>(words: &Words<'a>, context: &Context, operands: &[Lowered], found: &mut Found<'a>) {
    let writes = context.form.operands.first().is_some_and(|spec| spec.access == Access::Write);
    let arrives = words.has("arrive") || words.has("arrive_drop");
    let is_sink =
        matches!(operands.first().map(|lowered| &lowered.value), Some(Value::Sink | Value::Reported));
    // An arrival at another CTA of the cluster returns no state.
    if writes && arrives && words.spaces().first() == Some(&Mod::SharedCluster) && !is_sink {
        let message = format!(
            "Sink '_' is expected as a destination operand for instruction '{}' with '.shared::cluster'",
            context.name
        );
        found.push((WAY, Code::SinkExpected, message));
    }
    if arrives && words.has("noComplete") {
        for word in ["shared::cluster", "relaxed", "cluster"].into_iter().filter(|word| words.has(word)) {
            let message = format!("Modifier '.{word}' cannot be combined with modifier '.noComplete'");
            found.push_apart(&[word, "noComplete"], (WAY, Code::IllegalModifier, message));
        }
    }
}

/// A memory order needs a scope, and a scope an order.
fn order_and_scope<'a>(words: &Words<'a>, context: &Context, found: &mut Found<'a>) {
    let name = context.name;
    // The last order and the last scope count.
    let (order, scope) = (words.last(ORDERS), words.last(SCOPES));
    let is_bulk_copy = name.ends_with(".async.bulk");
    let message = match (order, scope) {
        (order, Some(scope)) if is_bulk_copy && order != Some("relaxed") => {
            format!("Modifier '.{scope}' requires modifier '.order'")
        }
        (Some(order), None) => format!("Modifier '.{order}' requires scope with '{name}' instruction"),
        (None, Some(_)) if words.are_of_fabric() => return,
        (None, Some(scope)) if words.has("weak") => {
            let message = format!("Modifier '.weak' cannot be combined with modifier '.{scope}'");
            return found.push_apart(&["weak", scope], (WAY, Code::MissingModifier, message));
        }
        (None, Some(scope)) => format!("Modifier '.{scope}' requires order with '{name}' instruction"),
        _ => return,
    };
    found.push((WAY, Code::MissingModifier, message));
}

/// Fences between proxies.
fn proxy<'a>(words: &Words<'a>, context: &Context, found: &mut Found<'a>) {
    let name = context.name;
    let direction = words.has("tensormap::generic") || words.has("async::generic");
    let kind = words.first(&["alias", "async"]);
    if let Some(kind) = kind.filter(|_| direction) {
        let message = format!("Illegal modifier '.{kind}' for instruction '{name}' with 'proxy direction'");
        found.push((WAY, Code::IllegalModifier, message));
    }
    if !direction && kind != Some("async") {
        order_and_scope(words, context, found);
    }
    if !direction && kind.is_none() {
        let message = format!(".proxykind modifier required for instruction '{name}'");
        found.push((WAY, Code::MissingModifier, message));
    }
    let spaces = words.spaces();
    if spaces.len() == 1 && refuses_space(words, spaces[0]) {
        found.push((WAY, Code::MemorySpace, format!("State space incorrect for instruction '{name}'")));
    }
}

/// Does a fence between these proxies reject a state space? Fences of the async proxy take some, and fences of the
/// fabric proxy ignore some.
fn refuses_space(words: &Words, space: Mod) -> bool {
    if words.has("async") || words.has("tensormap::generic") || words.has("async::generic") {
        return false;
    }
    !(words.are_of_fabric()
        && matches!(space, Mod::Global | Mod::Shared | Mod::SharedCta | Mod::SharedCluster))
}

/// Does [`proxy`] report that the fence rejects this state space? Then it must not be reported again.
pub(crate) fn refuses_space_of_proxy(form: &isa::Form, modifiers: &[&str], space: Mod) -> bool {
    let words = Words(modifiers.iter().copied().collect());
    form.opcode == Opcode::Fence
        && words.has("proxy")
        && *words.spaces() == [space]
        && refuses_space(&words, space)
}

/// The restrictions of fences require one order and one scope each.
fn fence<'a>(words: &Words<'a>, found: &mut Found<'a>) {
    let restrictions = [
        ("mbarrier_init", "release"),
        ("sync_restrict::shared::cta", "release"),
        ("sync_restrict::shared::cluster", "acquire"),
    ];
    // Only the first restriction counts.
    if let Some((restriction, order)) = restrictions.into_iter().find(|(word, _)| words.has(word)) {
        let orders = &["acq_rel", "acquire", "release", "sc"];
        for (kind, among, wanted) in [("scope", SCOPES, "cluster"), ("order", &orders[..], order)] {
            match words.first(among) {
                None => {
                    let message = format!("Modifier '.{restriction}' requires modifier '{kind}'");
                    found.push((LATE, Code::MissingModifier, message));
                }
                Some(word) if word != wanted => {
                    let message =
                        format!("Modifier '.{restriction}' cannot be combined with modifier '.{word}'");
                    found.push_apart(&[restriction, word], (WAY, Code::IllegalModifier, message));
                }
                Some(_) => {}
            }
        }
    }
}

/// Eviction priorities of L2 require accesses of 256 bits.
fn eviction<'a>(words: &Words<'a>, context: &Context, found: &mut Found<'a>) {
    let Some(priority) = words.0.iter().find(|word| word.starts_with("L2::evict")) else { return };
    let bits = |wanted: u32| context.picks.types().first().is_some_and(|ty| ty.bits() == wanted);
    if !(words.has("v8") && bits(32) || words.has("v4") && bits(64)) {
        let message = format!(
            "Instruction '{}' requires '.v8.b32/.v4.b64' type with '.{priority}' modifier.",
            context.name
        );
        found.push_apart(&[priority], (WAY, Code::IllegalModifier, message));
    }
}

/// The error in the types of `ldmatrix` and `stmatrix`, if any: each shape has its own type.
fn matrix_types(words: &Words, context: &Context) -> Option<String> {
    let loads = match context.form.opcode {
        Opcode::Ldmatrix => true,
        Opcode::Stmatrix => false,
        _ => return None,
    };
    let shape = words.first(&["m8n8", "m8n16", "m16n16", "m16n8"])?;
    let name = context.name;
    let types = context.picks.types();
    // In conversions, the format is the type.
    let formats = loads && words.0.iter().any(|word| crate::words::is_format(word));
    let is_one = types.len() + usize::from(formats) == 1;
    let (takes_type, takes_formats) = (shape != "m8n16", matches!(shape, "m8n16" | "m16n16"));
    let wanted = if shape == "m8n8" { Type::B16 } else { Type::B8 };
    if shape == "m8n16" && !formats && types.is_empty() {
        Some(format!("Modifier 'format conversion' require for instruction {name} with shape '.{shape}'"))
    } else if shape == "m8n16" && types == [Type::S8, Type::S4] {
        None
    } else if shape == "m8n16" && types.len() == 2 {
        Some(format!("Incorrect instruction type specified for {name} with shape '.{shape}'"))
    } else if !is_one || !takes_type && !types.is_empty() || !takes_formats && formats {
        Some(format!("Unexpected number of instruction types specified for {name} with shape '.{shape}'"))
    } else if types.first().is_some_and(|&ty| ty != wanted) {
        Some(format!("Incorrect instruction type specified for {name} with shape '.{shape}'"))
    } else {
        None
    }
}
