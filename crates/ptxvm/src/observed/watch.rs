//! The writes to some elements.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tools::{WatchedWrite, WriteWatch};

use super::{instruction, json_place, who};
use crate::Places;

/// A watched element.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its name: `2[17]`, `0x1000000044`.
    pub name: String,
    /// Its addresses.
    pub range: Range<u64>,
    /// The type of an array's element.
    pub ty: Option<String>,
}

/// A write, with names.
#[derive(Debug)]
pub struct Writer {
    /// The line and the instruction: `saxpy.ptx:35  st.global.f32 [%rd6], %f4;`
    pub instruction: String,
    /// `thread (17,0,0) of block (0,0,0)`
    pub who: String,
    /// The same for programs.
    pub json: Value,
    write: WatchedWrite,
}

/// The writes of all ranges.
#[derive(Debug)]
pub struct Writers {
    /// By range: the number of all writes, and the last ones.
    pub of: Vec<(u64, Vec<Writer>)>,
}

impl Writers {
    /// What an observer recorded of a launch that has ended. `block` are the extents of a block, and `read` returns
    /// what memory holds now.
    pub fn of(
        watch: &Mutex<WriteWatch>,
        places: &Places,
        block: [u32; 3],
        read: impl Fn(&Range<u64>) -> Option<u128>,
    ) -> Writers {
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.finish(read);
        let mut of: Vec<(u64, Vec<Writer>)> =
            (0..watch.ranges()).map(|range| (watch.count(range), Vec::new())).collect();
        for write in watch.writes() {
            let who = who(write.block, write.thread, block);
            let instruction = instruction(&places.at(write.span));
            let mut json = json_place(places, write.span);
            json["block"] = json!(write.block);
            json["thread"] = json!(write.thread);
            of[write.range].1.push(Writer { instruction, who, json, write: write.clone() });
        }
        Writers { of }
    }
}

/// The writes to one element for people. `show` shows its bits.
pub fn text(
    element: &Element,
    (count, writes): &(u64, Vec<Writer>),
    show: impl Fn(u128) -> String,
) -> String {
    let show = |bits: Option<u128>| bits.map_or_else(|| "?".to_owned(), &show);
    let name = match &element.ty {
        Some(ty) => format!("{} ({ty} at {:#x})", element.name, element.range.start),
        None => format!("{} ({} bytes)", element.name, element.range.end - element.range.start),
    };
    let mut lines = vec![match count {
        0 => format!("{name}: nobody wrote it"),
        1 => format!("{name} was written once:"),
        count => format!("{name} was written {count} times:"),
    }];
    let earlier = count - writes.len() as u64;
    if earlier > 0 {
        lines.push(format!("    {earlier} earlier writes"));
    }
    for Writer { instruction, who, write, .. } in writes {
        let (before, after) = (show(write.before), show(write.after));
        lines.push(format!("    {instruction}  {who}: {before} -> {after}"));
    }
    lines.join("\n")
}

/// The writes to one element for programs.
pub fn json(element: &Element, (count, writes): &(u64, Vec<Writer>)) -> Value {
    let width = 2 + 2 * (element.range.end - element.range.start) as usize;
    let bits = |bits: Option<u128>| bits.map(|bits| format!("{bits:#0width$x}"));
    let write = |writer: &Writer| {
        let mut object = writer.json.clone();
        object["before"] = json!(bits(writer.write.before));
        object["after"] = json!(bits(writer.write.after));
        object
    };
    json!({
        "element": element.name,
        "address": element.range.start,
        "bytes": element.range.end - element.range.start,
        "count": count,
        "writes": writes.iter().map(write).collect::<Vec<_>>(),
    })
}
