//! `ptxvm run --tool`: the findings of the tools, for people and for programs.

use ptxvm::{Located, json};
use serde_json::Value;

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

/// The JSON object of a launch that faulted, with earlier findings of the tools, if any ran.
pub fn add_to(object: String, options: &RunOptions, findings: &[Located]) -> String {
    match serde_json::from_str::<Value>(&object) {
        Ok(mut value) if !options.tool.is_empty() => {
            value["findings"] = findings.iter().map(json::finding).collect();
            value.to_string()
        }
        _ => object,
    }
}
