//! `ptxvm run --profile`: the time of a kernel, by lines of the source.

mod html;
mod processes;
mod table;

use std::path::Path;

use diag::SourceFile;
use ptxvm::{Accesses, Counts, Module, OriginalPlaces, Profile};
use serde::{Serialize, Serializer};

use super::report::Failure;
pub use processes::{Modules, OfModule};

/// The profile of a launch, by lines. It is the value of `profile` in JSON.
#[derive(Serialize)]
pub struct Report<'a> {
    /// Time of all host threads in instructions, in seconds.
    seconds: f64,
    /// Every line with instructions, in order.
    lines: Vec<Line<'a>>,
    #[serde(skip)]
    sources: Vec<&'a SourceFile>,
}

/// A line with instructions.
#[derive(Serialize)]
struct Line<'a> {
    /// Index of the file in the report's sources.
    #[serde(skip)]
    index: usize,
    file: &'a str,
    /// Its number, from 1.
    line: u32,
    /// Its text, trimmed.
    text: &'a str,
    /// The original place from `.loc`: `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(flatten, serialize_with = "serialize_counts")]
    counts: Counts,
    /// The fraction of the time of all lines, from 0 to 1.
    share: f64,
}

/// The keys of a line's counts.
fn serialize_counts<S: Serializer>(counts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Keys {
        executions: u64,
        threads: u64,
        active_lanes: f64,
        diverged: u64,
        accesses: Kinds,
        seconds: f64,
    }
    #[derive(Serialize)]
    struct Kinds {
        vector: u64,
        broadcast: u64,
        gather: u64,
    }
    let Counts { executions, threads, diverged, seconds, .. } = *counts;
    let Accesses { vector, broadcast, gather } = counts.accesses;
    let accesses = Kinds { vector, broadcast, gather };
    Keys { executions, threads, active_lanes: counts.active_lanes(), diverged, accesses, seconds }
        .serialize(serializer)
}

/// `vector`, or `vector 75.0% gather 25.0%`: the kinds of access that occurred.
fn kinds(accesses: Accesses) -> String {
    let Accesses { vector, broadcast, gather } = accesses;
    let total = (vector + broadcast + gather) as f64;
    let kinds = [("vector", vector), ("broadcast", broadcast), ("gather", gather)];
    let occurred: Vec<_> = kinds.into_iter().filter(|&(_, count)| count > 0).collect();
    match occurred[..] {
        [(name, _)] => name.to_owned(),
        _ => occurred
            .iter()
            .map(|(name, count)| format!("{name} {}", percent(*count as f64 / total)))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

impl<'a> Report<'a> {
    /// Attributes the counts of a module's instructions to the lines of its sources.
    pub fn new(module: &'a Module, profile: &Profile) -> Report<'a> {
        let instructions = profile.instructions.iter().map(|(&span, counts)| {
            let (index, span) = module.locate(span);
            ((index, span.start), counts)
        });
        Report::of_sources(module.sources().map(|source| &**source).collect(), instructions)
    }

    /// Attributes counts of instructions to lines. The instructions are ordered by source and offset.
    pub fn of_sources<'c>(
        sources: Vec<&'a SourceFile>,
        instructions: impl Iterator<Item = ((usize, u32), &'c Counts)>,
    ) -> Report<'a> {
        let originals: Vec<OriginalPlaces> =
            sources.iter().map(|source| OriginalPlaces::of(source)).collect();
        let mut lines: Vec<Line> = Vec::new();
        for ((index, offset), counts) in instructions {
            let (source, line) = (sources[index], sources[index].position(offset).line);
            match lines.last_mut() {
                Some(last) if (last.index, last.line) == (index, line) => last.counts.add(counts),
                _ => lines.push(Line {
                    index,
                    file: source.name(),
                    line,
                    text: source.slice(source.line_span(line)).trim(),
                    source: originals[index].at(offset).map(|place| place.short()),
                    counts: *counts,
                    share: 0.0,
                }),
            }
        }
        let seconds: f64 = lines.iter().map(|line| line.counts.seconds).sum();
        if seconds > 0.0 {
            lines.iter_mut().for_each(|line| line.share = line.counts.seconds / seconds);
        }
        Report { seconds, lines, sources }
    }

    /// The lines with the most time first, without lines that were never executed.
    fn hottest(&self) -> Vec<&Line<'a>> {
        let mut lines: Vec<_> = self.lines.iter().filter(|line| line.counts.executions > 0).collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share));
        lines
    }

    /// As JSON.
    ///
    /// # Errors
    /// None in practice.
    pub fn json(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|error| Failure::usage(error.to_string()))
    }

    /// Saves it in the format of the file's extension. `title` describes the run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path, title: &str) -> Result<(), Failure> {
        let text = match ending(path) {
            Some("html") => self.html(title),
            Some("json") => self.json()? + "\n",
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
/// When the file's extension is not a known format.
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

#[cfg(test)]
mod tests {
    use super::*;
    use diag::Span;

    /// A module of two lines with three instructions, and its counts.
    fn example() -> (Module, Profile) {
        let text = ".version 7.0 .target sm_70 .address_size 64 // <b> & \"quotes\"\n\
            .entry k() {\n  membar.cta; membar.gl;\n\nret; }\n";
        let module = Module::from_ptx(text).expect("it is legal");
        let mut profile = Profile::default();
        let mut add = |word: &str, counts| {
            let start = text.find(word).expect("it is there") as u32;
            profile.instructions.insert(Span::new(start, start + 3), counts);
        };
        let counts = Counts { executions: 4, threads: 96, seconds: 3.0, ..Counts::default() };
        add("membar.cta", counts);
        add("membar.gl", counts);
        add("ret", Counts { executions: 8, diverged: 2, seconds: 4.0, ..Counts::default() });
        (module, profile)
    }

    #[test]
    fn instructions_are_added_up_by_line() {
        let (module, profile) = example();
        let report = Report::new(&module, &profile);
        let lines: Vec<_> =
            report.lines.iter().map(|l| (l.line, l.counts.executions, l.counts.threads, l.share)).collect();
        assert_eq!(lines, [(3, 8, 192, 0.6), (5, 8, 0, 0.4)]);
        assert_eq!(report.lines[0].counts.active_lanes(), 24.0);
        assert_eq!(report.lines[0].text, "membar.cta; membar.gl;");
        let html = report.html("<script>");
        assert!(html.contains("// &lt;b&gt; &amp; &quot;quotes&quot;") && html.contains("&lt;script&gt;"));
        assert!(!html.contains("<b>") && !html.contains("<script>"));
    }

    #[test]
    fn kinds_of_access_are_named() {
        let words = |vector, broadcast, gather| kinds(Accesses { vector, broadcast, gather });
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
