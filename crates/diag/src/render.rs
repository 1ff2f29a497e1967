//! Diagnostics for people.

use annotate_snippets::renderer::Renderer;
use annotate_snippets::{AnnotationKind, Element, Level, Origin, Snippet};

use crate::{Diagnostic, Severity, SourceFile, Span};

/// Characters of a source line that are shown before and after the place. A longer line is cut, so that a message
/// stays small and fast to make when a file is one line of megabytes.
const WINDOW: usize = 120;

/// Whether to use ANSI colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// A diagnostic with its source line, carets, labels, notes and help, ending in a line feed.
///
/// The time it takes does not depend on the size of the file.
pub fn render(source: &SourceFile, diagnostic: &Diagnostic, color: Color) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let position = source.position(diagnostic.span.start);
    let origin =
        Origin::path(source.name()).line(position.line as usize).char_column(position.column as usize);
    let mut group =
        level.primary_title(diagnostic.message.as_str()).id(diagnostic.code).element(Element::from(origin));

    let primary = (diagnostic.span, AnnotationKind::Primary, None);
    let secondary =
        diagnostic.labels.iter().map(|l| (l.span, AnnotationKind::Context, Some(l.text.as_str())));
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for (span, kind, text) in std::iter::once(primary).chain(secondary) {
        let excerpt = match excerpts.iter_mut().find(|excerpt| excerpt.contains(span)) {
            Some(excerpt) => excerpt,
            None => {
                excerpts.push(Excerpt::around(source, span));
                excerpts.last_mut().expect("one was just pushed")
            }
        };
        excerpt.marks.push((span, kind, text));
    }
    for excerpt in excerpts {
        group = group.element(excerpt.into_snippet());
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = match color {
        Color::Never => Renderer::plain(),
        Color::Always => Renderer::styled(),
    };
    let mut text = renderer.render(&[group]);
    text.push('\n');
    text
}

/// The part of one source line that is shown, and the places to mark in it.
struct Excerpt<'a> {
    /// What part of the text it is.
    window: Span,
    /// Line number of it.
    line: u32,
    /// The part, with an ellipsis where the line was cut.
    text: String,
    /// Length of the ellipsis before it.
    shift: usize,
    marks: Vec<(Span, AnnotationKind, Option<&'a str>)>,
}

impl<'a> Excerpt<'a> {
    /// The surroundings of a span within the line in which it starts.
    fn around(source: &SourceFile, span: Span) -> Excerpt<'a> {
        let line = source.position(span.start).line;
        let whole = source.line_span(line);
        let text = source.text();
        let at = (span.start as usize).clamp(whole.start as usize, whole.end as usize);
        let before = &text[whole.start as usize..text.floor_char_boundary(at)];
        let start = before.char_indices().rev().nth(WINDOW - 1).map_or(0, |(i, _)| i) + whole.start as usize;
        let after = &text[text.floor_char_boundary(at)..whole.end as usize];
        let end =
            after.char_indices().nth(WINDOW).map_or(after.len(), |(i, _)| i) + text.floor_char_boundary(at);
        let window = Span::new(start as u32, end as u32);
        let head = if window.start > whole.start { "..." } else { "" };
        let tail = if window.end < whole.end { "..." } else { "" };
        let text = format!("{head}{}{tail}", source.slice(window));
        Excerpt { window, line, text, shift: head.len(), marks: Vec::new() }
    }

    /// Whether a span starts in it.
    fn contains(&self, span: Span) -> bool {
        self.window.start <= span.start && span.start <= self.window.end
    }

    fn into_snippet(self) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let Excerpt { window, line, text, shift, marks } = self;
        let in_excerpt =
            |offset: u32| (offset.clamp(window.start, window.end) - window.start) as usize + shift;
        let annotations: Vec<_> = marks
            .into_iter()
            .map(|(span, kind, label)| {
                let start = text.floor_char_boundary(in_excerpt(span.start));
                let end = text.ceil_char_boundary(in_excerpt(span.end.max(span.start)));
                kind.span(start..end).label(label)
            })
            .collect();
        Snippet::source(text).line_start(line as usize).annotations(annotations)
    }
}
