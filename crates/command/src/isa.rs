//! `ptxvm isa`: the whole instruction table, with what is parsed, checked, executed and backed by an oracle.

use std::fmt::Write;
use std::path::Path;

use isa::{Action, Form, since};
use serde::Serialize;

use super::evidence::{UNVERIFIED, oracles, row_gates, rows};
use super::executed::is_executed;
use super::explain::explain_opcode;
use super::options::{IsaFormat, IsaOptions};
use super::report::{Failure, code, print};

/// One row of the JSON output.
#[derive(Serialize)]
struct Row {
    opcode: &'static str,
    form: &'static str,
    section: &'static str,
    since_version: Option<String>,
    since_target: Option<String>,
    parsed: bool,
    checked: bool,
    executed: bool,
    action: String,
    oracles: Vec<String>,
}

/// Shows the table.
///
/// # Errors
/// When it cannot be written.
pub fn isa(options: &IsaOptions) -> Result<(), Failure> {
    if let Some(folder) = &options.pages {
        return write_pages(folder);
    }
    let mut rows = table();
    if options.unsupported {
        rows.retain(|row| !row.executed);
    }
    match options.format {
        IsaFormat::Markdown => print(markdown(&rows, options.unsupported).trim_end()),
        IsaFormat::Json => {
            let text = serde_json::to_string_pretty(&rows)
                .map_err(|error| Failure::new(code::USAGE, error.to_string()))?;
            print(text)
        }
    }
}

fn table() -> Vec<Row> {
    rows()
        .map(|(id, form)| {
            let since = since(&row_gates(id));
            Row {
                opcode: form.opcode.name(),
                form: form.syntax,
                section: form.section,
                since_version: since.map(|(version, _)| version.to_string()),
                since_target: since.map(|(_, target)| target.to_string()),
                parsed: true,
                checked: true,
                executed: is_executed(id),
                action: action(form),
                oracles: oracles(form),
            }
        })
        .collect()
}

fn action(form: &Form) -> String {
    match form.action {
        Action::Pure(function) => function.to_owned(),
        Action::Effect(effect) => format!("effect {effect:?}"),
    }
}

fn markdown(rows: &[Row], unsupported: bool) -> String {
    let mut text = String::new();
    let executed = rows.iter().filter(|row| row.executed).count();
    let backed = rows.iter().filter(|row| !row.oracles.is_empty()).count();
    if !unsupported {
        let _ = writeln!(
            text,
            "{} forms: all parsed and checked, {executed} executed, {backed} with results held against an oracle.\n",
            rows.len()
        );
    }
    text += "| form | manual | since | parsed | checked | executed | results held against |\n|---|---|---|---|---|---|---|\n";
    for row in rows {
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        let since = match (&row.since_version, &row.since_target) {
            (Some(version), Some(target)) => format!("PTX {version}, {target}"),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {since} | {} | {} | {} | {} |",
            row.form.replace('|', "\\|"),
            row.section,
            yes(row.parsed),
            yes(row.checked),
            yes(row.executed),
            row.oracles.join(", ")
        );
    }
    text
}

/// Writes a page for each opcode, and one with the whole table.
fn write_pages(folder: &Path) -> Result<(), Failure> {
    let failure = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("cannot write `{}`: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    let mut opcodes: Vec<&str> = isa::FORMS.iter().map(|form| form.opcode.name()).collect();
    opcodes.dedup();
    let write = |name: &str, text: String| {
        let path = folder.join(format!("{name}.md"));
        std::fs::write(&path, text).map_err(|error| failure(&path, error))
    };
    let mut index =
        "# The instructions\n\nWritten by `cargo xtask docs` from the instruction table. Do not edit.\n\n"
            .to_owned();
    for opcode in &opcodes {
        write(opcode, explain_opcode(opcode)?)?;
        let _ =
            writeln!(index, "- [{opcode}]({opcode}.md): {}", isa::prose::opcode(opcode).unwrap_or_default());
    }
    index += "\n## All forms\n\n";
    index += &markdown(&table(), false);
    index += "\n## Not executed\n\n";
    let mut missing = table();
    missing.retain(|row| !row.executed);
    index += &markdown(&missing, true);
    index += "\n## Lenient\n\nptxas rejects these; `ptxvm run --lenient` executes them.\n\n";
    for form in isa::LENIENT {
        let _ = writeln!(index, "- `{}`", form.syntax);
    }
    index += "\n## Not backed\n\nWhat no oracle backs is on [a page of its own](unverified.md).\n";
    index += "\nThe same by opcode is on [the coverage page](coverage.md).\n";
    write("unverified", unverified())?;
    write("coverage", coverage())?;
    write("README", index)
}

/// The state of each opcode.
fn coverage() -> String {
    let rows = table();
    let by_opcode: Vec<&[Row]> = rows.chunk_by(|a, b| a.opcode == b.opcode).collect();
    let whole = by_opcode.iter().filter(|rows| rows.iter().all(|row| row.executed)).count();
    let none = by_opcode.iter().filter(|rows| !rows.iter().any(|row| row.executed)).count();
    let mut text = format!(
        "# Coverage\n\nWritten by `cargo xtask docs`. Do not edit. Every opcode of PTX ISA {} that ptxas 13.5 knows: {} in \
         all, each parsed and checked; {whole} executed in all forms, {} in some, {none} in none. A form is executed \
         if both engines took a kernel with it when this page was written. A kernel that can reach what is not executed is refused \
         when it is launched.\n\n\
         | opcode | forms | parsed | checked | executed | forms with results held against an oracle |\n\
         |---|---|---|---|---|---|\n",
        isa::Version::MAX,
        by_opcode.len(),
        by_opcode.len() - whole - none,
    );
    for rows in by_opcode {
        let count = |holds: &dyn Fn(&Row) -> bool| match rows.iter().filter(|row| holds(row)).count() {
            0 => "no".to_owned(),
            all if all == rows.len() => "yes".to_owned(),
            some => format!("{some} of {}", rows.len()),
        };
        let opcode = rows[0].opcode;
        let _ = writeln!(
            text,
            "| [{opcode}]({opcode}.md) | {} | {} | {} | {} | {} |",
            rows.len(),
            count(&|row| row.parsed),
            count(&|row| row.checked),
            count(&|row| row.executed),
            count(&|row| !row.oracles.is_empty()),
        );
    }
    let refused: Vec<_> = rows.iter().filter(|row| !row.executed).collect();
    if refused.is_empty() {
        text += "\nBoth engines execute every form.\n";
        return text;
    }
    text += "\n## What is not executed\n\n";
    for row in refused {
        let _ = writeln!(text, "- `{}`", row.form);
    }
    text
}

/// Facts that no oracle backs.
fn unverified() -> String {
    let mut text =
        "# What no oracle backs\n\nWritten by `cargo xtask docs`. Do not edit. What backs the rest is in \
                    [the table](README.md#all-forms); the recordings are in conformance/.\n\n"
            .to_owned();
    for (what, why) in UNVERIFIED {
        let _ = writeln!(text, "- {what}: {why}");
    }
    text += "\n## Forms whose results were held against none\n\n";
    let rows = table();
    let unbacked = rows.iter().filter(|row| row.executed && row.oracles.is_empty());
    for row in unbacked.filter(|row| !row.action.starts_with("effect")) {
        let _ = writeln!(text, "- `{}`", row.form);
    }
    text
}
