//! The instructions of a thread, with the values that it reads and writes.

use machine::{InstructionEvent, OperandValue};
use serde_json::{Value, json};

use super::{instruction, json_address, json_place, show_address, value};
use crate::Places;

/// Columns of the instruction and its place, before its values.
const COLUMNS: usize = 80;

fn triples<'a>(values: &'a [OperandValue<'a>]) -> impl Iterator<Item = value::Named<'a>> {
    values.iter().map(|value| (value.name, value.ty, value.bits))
}

/// A step for people.
pub fn text(places: &Places, event: &InstructionEvent) -> String {
    let text = instruction(&places.at(event.span));
    let mut values = value::list(triples(event.reads));
    if let Some(address) = event.address {
        let comma = if values.is_empty() { "" } else { ", " };
        values = format!("{}{comma}{values}", show_address(address));
    }
    if !event.executes {
        values += ": not executed";
    } else if !event.writes.is_empty() {
        let space = if values.is_empty() { "" } else { " " };
        values = format!("{values}{space}-> {}", value::list(triples(event.writes)));
    }
    if values.is_empty() { text } else { format!("{text:<COLUMNS$}  {values}") }
}

/// A step for programs.
pub fn json(places: &Places, event: &InstructionEvent) -> Value {
    let mut step = json_place(places, event.span);
    step["executes"] = json!(event.executes);
    step["reads"] = value::json(triples(event.reads));
    step["writes"] = value::json(triples(event.writes));
    step["address"] = json!(event.address.map(json_address));
    step
}
