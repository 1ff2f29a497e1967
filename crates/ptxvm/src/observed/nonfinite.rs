//! Where the first NaN and the first infinity come from, and what passed them on.

use diag::Span;
use isa::Space;
use serde_json::{Value, json};
use tools::{Flow, NamedValue, NonFinite, Passage, Source};

use super::{Address, instruction, json_address, json_place, show_address, value, who};
use crate::Places;

/// Instructions of one flow that are shown.
const SHOWN: usize = 30;

/// What names places, addresses and threads.
#[expect(missing_debug_implementations, reason = "a closure has none")]
pub struct Context<'a> {
    /// The sources.
    pub places: &'a Places,
    /// The name of the element at an address of global memory: `2[17]`.
    pub element: &'a dyn Fn(u64) -> Option<String>,
    /// The extents of a block.
    pub block: [u32; 3],
}

impl Context<'_> {
    fn line(&self, span: Span) -> String {
        instruction(&self.places.at(span))
    }

    /// `[global 0x1000000044], which is 2[17]`
    fn address(&self, address: Address) -> String {
        let (space, at) = address;
        match (self.element)(at).filter(|_| space == Space::Global) {
            Some(name) => format!("{}, which is {name}", show_address(address)),
            None => show_address(address),
        }
    }
}

fn triples(values: &[NamedValue]) -> impl Iterator<Item = value::Named<'_>> {
    values.iter().map(|value| (value.name.as_str(), value.ty, value.bits))
}

fn name(number: NonFinite) -> &'static str {
    match number {
        NonFinite::Nan => "NaN",
        NonFinite::Infinity => "infinity",
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// All flows for people, with a line for a number that did not occur.
pub fn text(flows: &[Flow], context: &Context) -> String {
    let mut lines = Vec::new();
    for number in [NonFinite::Nan, NonFinite::Infinity] {
        match flows.iter().find(|flow| flow.number == number) {
            Some(flow) => lines.push(flow_text(flow, context)),
            None => lines.push(format!("no {}: no instruction computed or loaded one", name(number))),
        }
    }
    lines.join("\n")
}

/// One flow for people.
pub fn flow_text(flow: &Flow, context: &Context) -> String {
    let mut lines = Vec::new();
    let Flow { number, origin, count, passages, others, .. } = flow;
    let number = name(*number);
    let how = match origin.source {
        Source::Computed => "computed",
        Source::Memory => "read from memory",
        Source::Lanes => "computed from values of several lanes",
        Source::Bits => "made from bits",
    };
    let who = who(origin.block, origin.thread, context.block);
    lines.push(format!("the first {number} is {how} by {who}, here {}:", times(*count)));
    lines.push(format!("    {}", context.line(origin.span)));
    let mut values = value::list(triples(&origin.reads));
    if let Some(address) = origin.address {
        let comma = if values.is_empty() { "" } else { "; " };
        values = format!("{}{comma}{values}", context.address(address));
    }
    lines.push(format!("        {values} -> {}", value::list(triples(&origin.writes))));
    if !passages.is_empty() {
        lines.push("  it is passed on by".to_owned());
    }
    for Passage { span, count, stored, .. } in passages.iter().take(SHOWN) {
        let stored = match stored {
            Some(address) => format!(", first to {}", context.address(*address)),
            None => String::new(),
        };
        lines.push(format!("    {}    {}{stored}", context.line(*span), times(*count)));
    }
    if passages.len() > SHOWN {
        lines.push(format!("    and {} more instructions", passages.len() - SHOWN));
    }
    if !others.is_empty() {
        lines.push(format!("  {number} comes from here, too"));
    }
    for (span, count) in others.iter().take(SHOWN) {
        lines.push(format!("    {}    {}", context.line(*span), times(*count)));
    }
    lines.join("\n")
}

/// One flow for programs.
pub fn json(flow: &Flow, context: &Context) -> Value {
    let counted = |span: Span, count: u64| {
        let mut object = json_place(context.places, span);
        object["count"] = json!(count);
        object
    };
    let origin = &flow.origin;
    let mut of = counted(origin.span, flow.count);
    of["source"] = json!(match origin.source {
        Source::Computed => "computed",
        Source::Memory => "memory",
        Source::Lanes => "lanes",
        Source::Bits => "bits",
    });
    of["block"] = json!(origin.block);
    of["thread"] = json!(origin.thread);
    of["reads"] = value::json(triples(&origin.reads));
    of["writes"] = value::json(triples(&origin.writes));
    of["address"] = json!(origin.address.map(json_address));
    let passage = |passage: &Passage| {
        let mut object = counted(passage.span, passage.count);
        object["stored"] = json!(passage.stored.map(json_address));
        object
    };
    json!({
        "number": name(flow.number),
        "origin": of,
        "passages": flow.passages.iter().map(passage).collect::<Vec<_>>(),
        "others": flow.others.iter().map(|(span, count)| counted(*span, *count)).collect::<Vec<_>>(),
    })
}
