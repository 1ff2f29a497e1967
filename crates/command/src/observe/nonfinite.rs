//! `ptxvm run --first-nan`: where the first NaN and the first infinity come from, and what passed them on.

use ptxvm::Places;
use ptxvm::observe::{Flow, NamedValue, NonFinite, Passage, Source, Span};
use serde_json::{Value, json};

use super::trace::show_address;
use super::{json_place, line, value, who};
use crate::arguments::Arguments;
use crate::session::Session;

/// Instructions of one flow that are shown.
const SHOWN: usize = 30;

/// What names places, addresses and threads.
pub struct Context<'a> {
    pub places: &'a Places,
    pub session: &'a Session,
    pub values: &'a Arguments,
    /// The extents of a block.
    pub block: [u32; 3],
}

impl Context<'_> {
    fn line(&self, span: Span) -> String {
        let place = self.places.at(span);
        format!("{}  {}", line(&place), place.text())
    }

    /// `[global 0x1000000044], element 17 of argument 2`
    fn address(&self, address: (isa::Space, u64)) -> String {
        let name =
            (address.0 == isa::Space::Global).then(|| self.session.element(self.values, address.1)).flatten();
        match name {
            Some(name) => format!("{}, which is {name}", show_address(address)),
            None => show_address(address),
        }
    }
}

fn triples(values: &[NamedValue]) -> impl Iterator<Item = (&str, isa::Type, u128)> {
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

/// The flows for people.
pub fn text(flows: &[Flow], context: &Context) -> String {
    let mut lines = Vec::new();
    for number in [NonFinite::Nan, NonFinite::Infinity] {
        match flows.iter().find(|flow| flow.number == number) {
            Some(flow) => add(&mut lines, flow, context),
            None => lines.push(format!("no {}: no instruction computed or loaded one", name(number))),
        }
    }
    lines.join("\n")
}

fn add(lines: &mut Vec<String>, flow: &Flow, context: &Context) {
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
}

/// The same for programs.
pub fn json(flows: &[Flow], context: &Context) -> Value {
    let address = |address: Option<(isa::Space, u64)>| {
        address.map(
            |(space, address)| json!({ "space": format!("{space:?}").to_lowercase(), "address": address }),
        )
    };
    let counted = |span: Span, count: u64| {
        let mut object = json_place(context.places, span);
        object["count"] = json!(count);
        object
    };
    let object = |flow: &Flow| {
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
        of["address"] = json!(address(origin.address));
        let passage = |passage: &Passage| {
            let mut object = counted(passage.span, passage.count);
            object["stored"] = json!(address(passage.stored));
            object
        };
        json!({
            "number": name(flow.number),
            "origin": of,
            "passages": flow.passages.iter().map(passage).collect::<Vec<_>>(),
            "others": flow.others.iter().map(|(span, count)| counted(*span, *count)).collect::<Vec<_>>(),
        })
    };
    flows.iter().map(object).collect()
}
