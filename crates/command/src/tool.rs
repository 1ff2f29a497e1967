//! `ptxvm run --tool`: the findings of the tools, for people and for programs.

use ptxvm::{Located, json};
use serde_json::Value;

use super::observe::Observed;
use super::options::RunOptions;
use super::report::{say_text, stderr_color};

/// Shows findings on stderr.
pub fn show(findings: &[Located]) {
    for found in findings {
        say_text(&found.render(stderr_color()));
    }
}

/// Whether one of them is an error.
pub fn has_errors(findings: &[Located]) -> bool {
    findings.iter().any(|found| found.finding.kind.severity() == ptxvm::Severity::Error)
}

/// The JSON object of a launch that faulted, with what tools found and an observer saw before, if there were any.
pub fn add_to(
    object: String,
    options: &RunOptions,
    findings: &[Located],
    observed: Option<&Observed>,
) -> String {
    if options.tool.is_empty() && observed.is_none() {
        return object;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&object) else { return object };
    if !options.tool.is_empty() {
        value["findings"] = findings.iter().map(json::finding).collect();
    }
    if let Some((name, seen)) = observed {
        value[*name] = seen.clone();
    }
    value.to_string()
}
