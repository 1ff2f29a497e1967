//! Findings of the tools, located in the sources of a module.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use diag::{Color, Diagnostic, SourceFile, Span};
use isa::Space;
use tools::{Checker, Finding, FindingKind};

use crate::Module;
use crate::original::{OriginalPlace, OriginalPlaces};

/// A place in one of the sources of a module.
#[derive(Clone, Debug)]
pub struct PlaceInSource {
    /// The source.
    pub source: Arc<SourceFile>,
    /// The place in it.
    pub span: Span,
    /// The original place, if `.loc` gives one.
    pub original: Option<OriginalPlace>,
}

impl PlaceInSource {
    /// Line and column, from 1.
    pub fn position(&self) -> diag::Position {
        self.source.position(self.span.start)
    }

    /// The text there, with each run of white space as one space.
    pub fn text(&self) -> String {
        let text = self.source.text().get(self.span.start as usize..self.span.end as usize);
        text.unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// `saxpy.ptx:14`, `saxpy.ptx:14 (saxpy.cu:9)`, `sum.ptx:61 (standard.py:260 @ sum.py:11)` for a line of an inlined
    /// function
    pub fn short(&self) -> String {
        let name = self.source.name();
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let line = format!("{name}:{}", self.position().line);
        match &self.original {
            Some(original) => {
                let chain: Vec<_> = original.chain().map(OriginalPlace::short).collect();
                format!("{line} ({})", chain.join(" @ "))
            }
            None => line,
        }
    }

    /// The original line, or that of the PTX.
    fn line(&self) -> Line {
        match &self.original {
            Some(original) => (original.file.clone(), original.line),
            None => (self.source.name().to_owned(), self.position().line.into()),
        }
    }
}

/// The sources of a module, to find places in them.
#[derive(Debug)]
pub struct Places {
    module: Module,
    sources: Vec<(Arc<SourceFile>, OriginalPlaces)>,
}

impl Places {
    /// The place of a span of the module, as instructions, faults and events have one.
    pub fn at(&self, span: Span) -> PlaceInSource {
        let (index, span) = self.module.locate(span);
        let (source, originals) = &self.sources[index];
        PlaceInSource { source: Arc::clone(source), span, original: originals.at(span.start) }
    }
}

impl Module {
    /// Finds places in the sources of this module. Reads all of them once.
    pub fn places(&self) -> Places {
        let sources = self.sources().map(|source| (Arc::clone(source), OriginalPlaces::of(source)));
        Places { sources: sources.collect(), module: self.clone() }
    }
}

/// A finding and its places. `Display` shows it with its source lines.
#[derive(Clone, Debug)]
pub struct Located {
    /// What was found.
    pub finding: Finding,
    /// Where [`Finding::first`] is.
    pub first: PlaceInSource,
    /// Where [`Finding::second`] is.
    pub second: Option<PlaceInSource>,
    /// The number of pairs of places with this finding. It exceeds 1 if several pairs were compiled from the same
    /// lines ([`by_cause`]).
    pub places: u64,
    /// Where [`Finding::because`] is.
    because: Vec<(PlaceInSource, String)>,
    /// `%ntid`, for the names of threads.
    who: [String; 2],
}

impl Module {
    /// The findings of a checker so far in launches of this module, in the order of the source.
    pub fn findings(&self, checker: &Mutex<Checker>) -> Vec<Located> {
        let checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
        let findings = checker.findings();
        if findings.is_empty() {
            return Vec::new();
        }
        let places = self.places();
        let place = |span: Span| places.at(span);
        findings
            .into_iter()
            .map(|finding| Located {
                first: place(finding.first.span),
                second: finding.second.map(|site| place(site.span)),
                places: 1,
                because: finding.because.iter().map(|(span, text)| (place(*span), text.clone())).collect(),
                who: [Some(finding.first), finding.second]
                    .map(|site| site.map_or(String::new(), |site| checker.who(&site))),
                finding,
            })
            .collect()
    }
}

/// The key that groups findings of one mistake: kind, kernel, memory, and lines.
type Cause = (FindingKind, String, Option<Space>, Option<String>, Line, Option<Line>);

/// A file and a line: the original one, if it is known.
type Line = (String, u64);

/// Merges findings of one cause into the first of them, with the number of all. Findings have one cause if they have
/// the same kind, kernel, variable or allocation, and the same original lines, or PTX lines where the original ones
/// are unknown.
pub fn by_cause(found: Vec<Located>) -> Vec<Located> {
    let mut known: HashMap<Cause, usize> = HashMap::new();
    let mut all: Vec<Located> = Vec::new();
    for found in found {
        let finding = &found.finding;
        // `4 bytes into argument 0 (u32[64]), 256 bytes at 0x1000000000`
        let memory = finding
            .allocation
            .as_deref()
            .map(|text| text.split_once(" into ").map_or(text, |(_, name)| name));
        let cause = (
            finding.kind,
            finding.kernel.clone(),
            finding.space,
            memory.map(str::to_owned),
            found.first.line(),
            found.second.as_ref().map(PlaceInSource::line),
        );
        match known.entry(cause) {
            Entry::Occupied(index) => {
                let first = &mut all[*index.get()];
                first.finding.count += finding.count;
                first.places += found.places;
            }
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(found);
            }
        }
    }
    all
}

impl Located {
    /// The finding as a diagnostic about the first place, in its source.
    pub fn diagnostic(&self) -> Diagnostic {
        let Finding { kind, message, missing, count, .. } = &self.finding;
        let mut diagnostic =
            Diagnostic::new(kind.severity(), kind.diagnostic(), self.first.span, message.as_str());
        let mut say = |place: &PlaceInSource, text: String| {
            let shown =
                std::mem::replace(&mut diagnostic, Diagnostic::error(kind.diagnostic(), place.span, ""));
            diagnostic = if Arc::ptr_eq(&place.source, &self.first.source) {
                shown.label(place.span, text)
            } else {
                let position = place.position();
                shown.note(format!("{text}: {}:{}:{}", place.source.name(), position.line, position.column))
            };
        };
        let [first, second] = &self.who;
        if let (Some(site), Some(place)) = (self.finding.second, &self.second) {
            if place.span == self.first.span {
                let access = self.finding.first.access;
                say(
                    &self.first,
                    match site.access == access {
                        true => format!("{first} {access}, and so does {second}"),
                        false => format!("{first} {access}, {second} {}", site.access),
                    },
                );
            } else {
                say(&self.first, format!("{first} {}", self.finding.first.access));
                say(place, format!("{second} {}", site.access));
            }
        }
        for (place, text) in &self.because {
            say(place, text.clone());
        }
        let second = self.second.as_ref().filter(|second| second.span != self.first.span);
        for place in std::iter::once(&self.first).chain(second) {
            if let Some(original) = &place.original {
                diagnostic = diagnostic.note(original.note(place.position().line));
            }
        }
        if let Some((address, allocation)) = self.finding.address.zip(self.finding.allocation.as_ref()) {
            diagnostic = diagnostic.note(format!("the address is {address:#x}, {allocation}"));
        }
        let others = self.places - 1;
        if others > 0 {
            let places = if others == 1 { "pair" } else { "pairs" };
            let text =
                format!("seen {count} times at these places and {others} more {places} of the same lines");
            diagnostic = diagnostic.note(text);
        } else if *count > 1 {
            diagnostic = diagnostic.note(format!("seen {count} times at these places"));
        }
        diagnostic.help(format!("missing: {missing}"))
    }

    /// The finding as text that ends in a line feed, in colour if `color` says so.
    pub fn render(&self, color: Color) -> String {
        diag::render(&self.first.source, &self.diagnostic(), color)
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Color::Never).trim_end())
    }
}
