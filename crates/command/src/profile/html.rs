//! The profile as a self-contained page, without scripts or network access.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::numbers::grouped;

use super::{Line, Report, kinds, percent};

/// Lines in the list of the hottest lines.
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
             <h1>{title}</h1>\n<h2>Most time</h2>\n<table>\n<tr>{COLUMNS}<th>line<th class=t>instruction\n",
        );
        // The hottest line has the full colour.
        let most = hottest.first().map_or(1.0, |line| line.share).max(f64::MIN_POSITIVE);
        for line in hottest.iter().take(HOTTEST) {
            let Line { index, line: number, text, .. } = *line;
            let file = if self.sources.len() > 1 { format!("{}:", escape(line.file)) } else { String::new() };
            let _ = writeln!(
                page,
                "{}<td class=n><a href=\"#L{index}-{number}\">{file}{number}</a><td class=c>{}",
                cells(Some(line), "", most),
                escape(text)
            );
        }
        page += "</table>\n";
        for index in 0..self.sources.len() {
            self.annotate(index, most, &mut page);
        }
        page
    }

    /// One source, with the counts of its lines.
    fn annotate(&self, index: usize, most: f64, page: &mut String) {
        let source = self.sources[index];
        let lines: HashMap<u32, &Line> =
            self.lines.iter().filter(|line| line.index == index).map(|line| (line.line, line)).collect();
        let has_source = lines.values().any(|line| line.source.is_some());
        let source_column = if has_source { "<th class=t>source" } else { "" };
        let name = escape(source.name());
        let _ = writeln!(page, "<h2>{name}</h2>\n<table>\n<tr>{COLUMNS}{source_column}<th>line<th class=t>");
        for number in 1..=source.line_count() {
            let line = lines.get(&number).copied();
            *page += &cells(line, &format!(" id=L{index}-{number}"), most);
            if has_source {
                let place = line.and_then(|line| line.source.as_deref()).unwrap_or("");
                let _ = write!(page, "<td class=t>{}", escape(place));
            }
            let text = escape(source.slice(source.line_span(number)));
            let _ = writeln!(page, "<td class=n>{number}<td class=c>{text}");
        }
        *page += "</table>\n";
    }
}

/// The start of a row.
fn cells(line: Option<&Line>, id: &str, most: f64) -> String {
    let Some(line) = line else { return format!("<tr{id}><td><td><td><td><td>") };
    let counts = &line.counts;
    if counts.executions == 0 {
        return format!("<tr{id}><td><td>0<td><td><td>");
    }
    let diverged = if counts.diverged == 0 { String::new() } else { grouped(counts.diverged) };
    format!(
        "<tr{id} style=\"--h:{:.3}\"><td>{}<td>{}<td>{:.1}<td>{diverged}<td class=t>{}",
        line.share / most,
        percent(line.share),
        grouped(counts.executions),
        counts.active_lanes(),
        kinds(counts.accesses)
    )
}

/// Escapes text for HTML.
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
