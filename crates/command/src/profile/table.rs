//! The profile as a table, for a terminal.

use std::fmt::Write as _;

use crate::numbers::grouped;

use super::{Line, Report, kinds, percent};

/// Maximum number of lines shown.
const ROWS: usize = 24;
/// Maximum number of characters of a line's text.
const TEXT: usize = 60;

const HEADER: [&str; 7] = ["time", "executions", "lanes", "diverged", "memory", "source", "line"];

impl Report<'_> {
    /// The lines with the most time, in the order of the source.
    pub fn table(&self) -> String {
        let hottest = self.hottest();
        let (shown, rest) = hottest.split_at(hottest.len().min(ROWS));
        let mut shown = shown.to_vec();
        shown.sort_by_key(|line| (line.index, line.line));

        let several = self.sources.len() > 1;
        let rows: Vec<[String; 7]> = shown.iter().map(|line| row(line, several)).collect();
        let mut widths = HEADER.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let mut write = |cells: &[&str; 7], code: &str| {
            let mut line = String::new();
            for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                let _ = match HEADER[column] {
                    // The column is omitted if no line has a source.
                    "source" if shown.iter().all(|line| line.source.is_none()) => Ok(()),
                    "memory" | "source" => write!(line, "{cell:width$}  "),
                    _ => write!(line, "{cell:>width$}  "),
                };
            }
            let _ = writeln!(text, "{}", (line + code).trim_end());
        };
        write(&HEADER, "");
        for (row, line) in rows.iter().zip(&shown) {
            write(&row.each_ref().map(String::as_str), &cut(line.text));
        }
        if !rest.is_empty() {
            let share = rest.iter().map(|line| line.share).sum();
            let _ = writeln!(text, "{} more lines take {} of the time", rest.len(), percent(share));
        }
        text
    }
}

fn row(line: &Line, several: bool) -> [String; 7] {
    let counts = &line.counts;
    [
        percent(line.share),
        grouped(counts.executions),
        format!("{:.1}", counts.active_lanes()),
        if counts.diverged == 0 { String::new() } else { grouped(counts.diverged) },
        kinds(counts.accesses),
        line.source.clone().unwrap_or_default(),
        if several { format!("{}:{}", line.file, line.line) } else { line.line.to_string() },
    ]
}

/// The beginning of a long line, with runs of blanks reduced to one.
fn cut(text: &str) -> String {
    let words = text.replace(char::is_control, " ").split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}
