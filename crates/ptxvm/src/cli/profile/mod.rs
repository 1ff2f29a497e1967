//! `ptxvm run --profile`: where a kernel's time goes, by lines of the source.

mod html;
mod locations;
mod table;

use std::path::Path;

use diag::SourceFile;
use ptxvm::{Accesses, Counts, Profile};
use serde::Serialize;

use super::report::Failure;
use locations::Locations;

/// What a launch did, by lines. As JSON it is the value of `profile`.
#[derive(Serialize)]
pub struct Report<'a> {
    /// The file of the lines.
    file: &'a str,
    /// Time of all host threads in instructions, in seconds.
    seconds: f64,
    /// Every line with instructions, in order.
    lines: Vec<Line<'a>>,
    #[serde(skip)]
    source: &'a SourceFile,
}

/// A line with instructions.
#[derive(Serialize)]
struct Line<'a> {
    /// Its number, from 1.
    line: u32,
    /// Its text, without the white space around it.
    text: &'a str,
    /// Where `.loc` says that it comes from: `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    executions: u64,
    threads: u64,
    /// Threads of an execution on average, of 32.
    active_lanes: f64,
    diverged: u64,
    accesses: Kinds,
    seconds: f64,
    /// Of the time of all lines, from 0 to 1.
    share: f64,
}

#[derive(Clone, Copy, Serialize)]
struct Kinds {
    vector: u64,
    broadcast: u64,
    gather: u64,
}

impl From<Accesses> for Kinds {
    fn from(Accesses { vector, broadcast, gather }: Accesses) -> Kinds {
        Kinds { vector, broadcast, gather }
    }
}

impl Kinds {
    /// The kinds that occurred, with their share of the accesses.
    fn shares(self) -> impl Iterator<Item = (&'static str, f64)> {
        let total = (self.vector + self.broadcast + self.gather) as f64;
        [("vector", self.vector), ("broadcast", self.broadcast), ("gather", self.gather)]
            .into_iter()
            .filter(|&(_, count)| count > 0)
            .map(move |(name, count)| (name, count as f64 / total))
    }

    /// `vector`, or `vector 75% gather 25%`.
    fn words(self) -> String {
        let kinds: Vec<_> = self.shares().collect();
        match kinds[..] {
            [(name, _)] => name.to_owned(),
            _ => kinds
                .iter()
                .map(|(name, share)| format!("{name} {}", percent(*share)))
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

impl<'a> Report<'a> {
    /// Sorts what the instructions did into the lines of their source.
    pub fn new(source: &'a SourceFile, profile: &Profile) -> Report<'a> {
        let locations = Locations::of(source);
        let mut lines: Vec<(u32, u32, Counts)> = Vec::new();
        for (span, counts) in &profile.instructions {
            let line = source.position(span.start).line;
            match lines.last_mut() {
                Some((last, _, sum)) if *last == line => sum.add(counts),
                _ => lines.push((line, span.start, *counts)),
            }
        }
        let seconds: f64 = lines.iter().map(|(.., counts)| counts.seconds).sum();
        let lines = lines.into_iter().map(|(line, start, counts)| Line {
            line,
            text: source.slice(source.line_span(line)).trim(),
            source: locations.at(start),
            executions: counts.executions,
            threads: counts.threads,
            active_lanes: counts.active_lanes(),
            diverged: counts.diverged,
            accesses: counts.accesses.into(),
            seconds: counts.seconds,
            share: if seconds > 0.0 { counts.seconds / seconds } else { 0.0 },
        });
        Report { file: source.name(), seconds, lines: lines.collect(), source }
    }

    /// The lines with the most time first; those that were never reached are left out.
    fn hottest(&self) -> Vec<&Line<'a>> {
        let mut lines: Vec<_> = self.lines.iter().filter(|line| line.executions > 0).collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share));
        lines
    }

    /// Saves it as the ending of the file's name says. `title` says what ran.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path, title: &str) -> Result<(), Failure> {
        let text = match ending(path) {
            Some("html") => self.html(title),
            Some("json") => {
                serde_json::to_string(self).map_err(|error| Failure::usage(error.to_string()))? + "\n"
            }
            _ => self.table(),
        };
        std::fs::write(path, text)
            .map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// Reads the value of `--profile`.
///
/// # Errors
/// When the name of the file does not say what to write.
pub fn parse_file(text: &str) -> Result<std::path::PathBuf, String> {
    let path = std::path::PathBuf::from(text);
    match ending(&path) {
        Some("html" | "json" | "txt") => Ok(path),
        _ => Err(format!("`{text}` must end in .html, .json or .txt: the name says what to write")),
    }
}

/// `12.3%`
fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use diag::Span;

    /// Two lines with instructions, one of them twice.
    fn profile(text: &str) -> Profile {
        let mut profile = Profile::default();
        let counts = Counts { executions: 4, threads: 96, seconds: 3.0, ..Counts::default() };
        let at = |word: &str| text.find(word).expect("it is there") as u32;
        profile.instructions.insert(Span::new(at("first"), at("first") + 5), counts);
        profile.instructions.insert(Span::new(at("second"), at("second") + 6), counts);
        let diverged = Counts { executions: 8, diverged: 2, seconds: 4.0, ..Counts::default() };
        profile.instructions.insert(Span::new(at("third"), at("third") + 5), diverged);
        profile
    }

    #[test]
    fn instructions_are_added_up_by_line() {
        let text = "// <b> & \"quotes\"\n  first; second;\n\nthird;\n";
        let source = SourceFile::new("f.ptx", text);
        let report = Report::new(&source, &profile(text));
        let lines: Vec<_> = report.lines.iter().map(|l| (l.line, l.executions, l.threads, l.share)).collect();
        assert_eq!(lines, [(2, 8, 192, 0.6), (4, 8, 0, 0.4)]);
        assert_eq!(report.lines[0].active_lanes, 24.0);
        assert_eq!(report.lines[0].text, "first; second;");
        let html = report.html("<script>");
        assert!(html.contains("// &lt;b&gt; &amp; &quot;quotes&quot;") && html.contains("&lt;script&gt;"));
        assert!(!html.contains("<b>") && !html.contains("<script>"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn kinds_of_access_are_named() {
        let words = |vector, broadcast, gather| Kinds { vector, broadcast, gather }.words();
        assert_eq!(words(0, 0, 0), "");
        assert_eq!(words(0, 7, 0), "broadcast");
        assert_eq!(words(3, 0, 1), "vector 75.0% gather 25.0%");
    }

    #[test]
    fn the_name_says_what_to_write() {
        assert!(["a.html", "a.json", "d/a.txt"].iter().all(|name| parse_file(name).is_ok()));
        assert!(["", "html", "a.ptx", "a.html.gz"].iter().all(|name| parse_file(name).is_err()));
    }
}
