//! The profile as a page that needs nothing else: no script, no network.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Line, Report, grouped, percent};

/// Lines in the list of the hottest.
const HOTTEST: usize = 20;

const STYLE: &str = "\
:root { color-scheme: light dark; --heat: 255, 96, 0; --faint: #777; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; }
th { text-align: right; font-weight: 600; border-bottom: 1px solid var(--faint); position: sticky; top: 0;
  background: Canvas; }
td, th { padding: 0 .7em; white-space: pre; }
td { text-align: right; font-variant-numeric: tabular-nums; }
.t { text-align: left; } .c { text-align: left; font-family: ui-monospace, monospace; tab-size: 4; }
.n, .n a { color: var(--faint); text-decoration: none; }
tr { background: rgba(var(--heat), calc(var(--h, 0) * .6)); }
tr:target { outline: 2px solid; }
";

const COLUMNS: &str = "<th>time<th>executions<th title=\"active lanes of 32, on average\">lanes\
    <th title=\"warps whose threads went different ways\">diverged<th class=t>memory";

impl Report<'_> {
    /// The page.
    pub fn html(&self, title: &str) -> String {
        let (title, hottest) = (escape(title), self.hottest());
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <h1>{}</h1>\n<p>{title}</p>\n<h2>Most time</h2>\n<table>\n<tr>{COLUMNS}<th>line<th class=t>instruction\n",
            escape(self.file)
        );
        // The hottest line has the full colour.
        let most = hottest.first().map_or(1.0, |line| line.share).max(f64::MIN_POSITIVE);
        for line in hottest.iter().take(HOTTEST) {
            let _ = writeln!(
                page,
                "{}<td class=n><a href=\"#L{}\">{}</a><td class=c>{}",
                cells(Some(line), "", most),
                line.line,
                line.line,
                escape(line.text)
            );
        }
        let has_source = self.lines.iter().any(|line| line.source.is_some());
        let source_column = if has_source { "<th class=t>source" } else { "" };
        let _ = write!(
            page,
            "</table>\n<h2>Source</h2>\n<table>\n<tr>{COLUMNS}{source_column}<th>line<th class=t>\n"
        );
        let by_number: HashMap<u32, &Line> = self.lines.iter().map(|line| (line.line, line)).collect();
        for number in 1..=self.source.line_count() {
            let line = by_number.get(&number).copied();
            let text = self.source.slice(self.source.line_span(number));
            let id = format!(" id=L{number}");
            page += &cells(line, &id, most);
            if has_source {
                let place = line.and_then(|line| line.source.as_deref()).unwrap_or("");
                let _ = write!(page, "<td class=t>{}", escape(place));
            }
            let _ = writeln!(page, "<td class=n>{number}<td class=c>{}", escape(text));
        }
        page + "</table>\n"
    }
}

/// The start of a row.
fn cells(line: Option<&Line>, id: &str, most: f64) -> String {
    let Some(line) = line else { return format!("<tr{id}><td><td><td><td><td>") };
    if line.executions == 0 {
        return format!("<tr{id}><td><td>0<td><td><td>");
    }
    let diverged = if line.diverged == 0 { String::new() } else { grouped(line.diverged) };
    format!(
        "<tr{id} style=\"--h:{:.3}\"><td>{}<td>{}<td>{:.1}<td>{diverged}<td class=t>{}",
        line.share / most,
        percent(line.share),
        grouped(line.executions),
        line.active_lanes,
        line.accesses.words()
    )
}

/// Text that no browser takes for markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c => escaped.push(c),
        }
    }
    escaped
}
