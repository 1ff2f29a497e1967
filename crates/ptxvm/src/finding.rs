//! What the tools found, in the sources of a module.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use diag::{Color, Diagnostic, SourceFile, Span};
use tools::{Checker, Finding};

use crate::Module;
use crate::original::{OriginalPlace, OriginalPlaces};

/// A place in one of the sources of a module.
#[derive(Clone, Debug)]
pub struct PlaceInSource {
    /// The source.
    pub source: Arc<SourceFile>,
    /// The place in it.
    pub span: Span,
    /// What that was compiled from, if `.loc` says so.
    pub original: Option<OriginalPlace>,
}

impl PlaceInSource {
    /// Line and column, from 1.
    pub fn position(&self) -> diag::Position {
        self.source.position(self.span.start)
    }
}

/// What a tool found, and where that is. `Display` shows it with its source lines.
#[derive(Clone, Debug)]
pub struct Located {
    /// What was found.
    pub finding: Finding,
    /// Where [`Finding::first`] is.
    pub first: PlaceInSource,
    /// Where [`Finding::second`] is.
    pub second: Option<PlaceInSource>,
    /// Where [`Finding::because`] is.
    because: Vec<(PlaceInSource, String)>,
    /// `%ntid`, for the names of threads.
    who: [String; 2],
}

impl Module {
    /// What a checker has found so far in launches of this module, in the order of the source.
    pub fn findings(&self, checker: &Mutex<Checker>) -> Vec<Located> {
        let checker = checker.lock().unwrap_or_else(PoisonError::into_inner);
        let findings = checker.findings();
        if findings.is_empty() {
            return Vec::new();
        }
        let sources: Vec<_> = self.sources().map(|source| (source, OriginalPlaces::of(source))).collect();
        let place = |span: Span| {
            let (index, span) = self.locate(span);
            let (source, originals) = &sources[index];
            PlaceInSource { source: Arc::clone(source), span, original: originals.at(span.start) }
        };
        findings
            .into_iter()
            .map(|finding| Located {
                first: place(finding.first.span),
                second: finding.second.map(|site| place(site.span)),
                because: finding.because.iter().map(|(span, text)| (place(*span), text.clone())).collect(),
                who: [Some(finding.first), finding.second]
                    .map(|site| site.map_or(String::new(), |site| checker.who(&site))),
                finding,
            })
            .collect()
    }
}

impl Located {
    /// As a diagnostic about the first place, in its source.
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
        if *count > 1 {
            diagnostic = diagnostic.note(format!("seen {count} times at these places"));
        }
        diagnostic.help(format!("missing: {missing}"))
    }

    /// As text, in colour if wanted, ending in a line feed.
    pub fn render(&self, color: Color) -> String {
        diag::render(&self.first.source, &self.diagnostic(), color)
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Color::Never).trim_end())
    }
}
