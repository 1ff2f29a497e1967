//! `ptxvm run --tool`: what the tools found, for people and for programs.

use ptxvm::{Located, OriginalPlace, PlaceInSource, Site};
use serde_json::{Value, json};

use super::options::RunOptions;
use super::report::{say_text, stderr_color};

/// Shows findings on stderr.
pub fn show(findings: &[Located]) {
    for found in findings {
        say_text(&found.render(stderr_color()));
    }
}

/// One of them is an error.
pub fn has_errors(findings: &[Located]) -> bool {
    findings.iter().any(|found| found.finding.kind.severity() == ptxvm::Severity::Error)
}

/// The object of a launch that faulted, with what the tools found before, if any ran.
pub fn add_to(object: String, options: &RunOptions, findings: &[Located]) -> String {
    match serde_json::from_str::<Value>(&object) {
        Ok(mut value) if !options.tool.is_empty() => {
            value["findings"] = findings.iter().map(self::object).collect();
            value.to_string()
        }
        _ => object,
    }
}

/// What a line was compiled from, for programs.
pub fn original_object(place: &OriginalPlace) -> Value {
    json!({ "file": place.file, "line": place.line, "column": place.column })
}

/// A finding as an element of `findings`.
pub fn object(found: &Located) -> Value {
    let finding = &found.finding;
    let side = |place: &PlaceInSource, site: &Site| {
        let position = place.position();
        json!({
            "file": place.source.name(),
            "line": position.line,
            "column": position.column,
            "original": place.original.as_ref().map(original_object),
            "block": site.block(),
            "thread": site.thread,
            "access": site.access,
        })
    };
    json!({
        "tool": finding.kind.tool().name(),
        "code": finding.kind.code(),
        "severity": finding.kind.severity().name(),
        "space": finding.space.map(|space| format!("{space:?}").to_lowercase()),
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
