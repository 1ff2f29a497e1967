//! Faults and findings as JSON, which the command and the driver write.

use diag::SourceFile;
use isa::Space;
use machine::Fault;
use serde_json::{Value, json};

use crate::{Located, OriginalPlace, OriginalPlaces, PlaceInSource, Site};

/// The original place of a line.
fn original(place: &OriginalPlace) -> Value {
    let object =
        |place: &OriginalPlace| json!({ "file": place.file, "line": place.line, "column": place.column });
    let mut inner = object(place);
    inner["inlined_at"] = place.chain().skip(1).map(object).collect();
    inner
}

/// A place in a source.
pub fn place(place: &PlaceInSource) -> Value {
    let position = place.position();
    json!({
        "file": place.source.name(),
        "line": position.line,
        "column": position.column,
        "original": place.original.as_ref().map(original),
    })
}

/// The name of a state space: `global`.
pub(crate) fn space(space: Space) -> String {
    format!("{space:?}").to_lowercase()
}

/// A fault, with what a program needs beyond its place in the PTX.
pub fn fault(source: &SourceFile, fault: &Fault) -> Value {
    let access = fault.access.as_ref().map(|access| {
        json!({
            "address": access.address,
            "bytes": access.bytes,
            "write": access.write,
            "space": space(access.space),
            "nearest": access.nearest,
        })
    });
    let notes = fault.notes.iter().map(|(text, span)| {
        let position = span.map(|span| source.position(span.start));
        json!({
            "text": text,
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
        })
    });
    json!({
        "kind": fault.kind.code(),
        "kernel": fault.kernel,
        "block": fault.block,
        "thread": fault.thread,
        "access": access,
        "notes": notes.collect::<Vec<_>>(),
        "original": OriginalPlaces::of(source).at(fault.span.start).as_ref().map(original),
    })
}

/// A finding.
pub fn finding(found: &Located) -> Value {
    let finding = &found.finding;
    let side = |of: &PlaceInSource, site: &Site| {
        let mut side = place(of);
        side["block"] = json!(site.block());
        side["thread"] = json!(site.thread);
        side["access"] = json!(site.access);
        side
    };
    json!({
        "tool": finding.kind.tool().name(),
        "code": finding.kind.code(),
        "severity": finding.kind.severity().name(),
        "space": finding.space.map(space),
        "kernel": finding.kernel,
        "message": finding.message,
        "address": finding.address,
        "allocation": finding.allocation,
        "first": side(&found.first, &finding.first),
        "second": found.second.as_ref().zip(finding.second.as_ref()).map(|(place, site)| side(place, site)),
        "missing": finding.missing,
        "count": finding.count,
        "places": found.places,
    })
}
