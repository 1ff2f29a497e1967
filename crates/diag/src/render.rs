//! Diagnostics for people.

use annotate_snippets::renderer::Renderer;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Snippet};

use crate::{Diagnostic, Severity, SourceFile, Span};

/// Number of characters of a source line to show before and after the position. A longer line is cut, so that a
/// message remains small and fast to render if a file is one line of megabytes.
const WINDOW: usize = 120;

/// Greatest distance in lines between a label and the position for one excerpt to show both.
const MOST_LINES: u32 = 12;
/// Largest size of such an excerpt.
const MOST_BYTES: usize = 2048;

/// Whether to use ANSI colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// A diagnostic with its source line, carets, labels, notes and help. It ends in a line feed.
///
/// The time to render it does not depend on the size of the file.
pub fn render(source: &SourceFile, diagnostic: &Diagnostic, color: Color) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut excerpt = Excerpt::around(source, diagnostic.span);
    excerpt.marks.push((diagnostic.span, AnnotationKind::Primary, None));
    // An excerpt shows the labels near the position; other labels get excerpts of their own.
    let mut elsewhere = Vec::new();
    for label in &diagnostic.labels {
        if excerpt.reaches(source, label.span) {
            excerpt.marks.push((label.span, AnnotationKind::Context, Some(label.text.as_str())));
        } else {
            let mut there = Excerpt::around(source, label.span);
            there.marks.push((label.span, AnnotationKind::Primary, None));
            let title = Level::NOTE.secondary_title(label.text.as_str());
            elsewhere.push(there.put_into(Group::with_title(title), source));
        }
    }
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.name());
    let mut group = excerpt.put_into(Group::with_title(title), source);
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
    elsewhere.insert(0, group);
    let text = renderer.render(&elsewhere);
    text.lines().filter(|line| !is_bare_continuation(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Whether a rendered line contains only `:::`. annotate-snippets puts that before an excerpt without a file name.
fn is_bare_continuation(line: &str) -> bool {
    let mut plain = line.split('\x1b').enumerate().map(|(i, part)| match part.split_once('m') {
        Some((_, after)) if i > 0 => after,
        _ => part,
    });
    line.contains(":::") && plain.all(|part| part.chars().all(|c| c == ' ' || c == ':'))
}

/// The part of the source to show, and the spans to mark in it.
struct Excerpt<'a> {
    /// The span of the part: within one line, or whole lines.
    window: Span,
    /// Number of its first line.
    line: u32,
    /// Whether the line is cut at its start, and at its end.
    cut: (bool, bool),
    /// The text of the part.
    text: &'a str,
    marks: Vec<(Span, AnnotationKind, Option<&'a str>)>,
}

impl<'a> Excerpt<'a> {
    /// The surroundings of a span within the line in which it starts.
    fn around(source: &'a SourceFile, span: Span) -> Excerpt<'a> {
        let line = source.position(span.start).line;
        let whole = source.line_span(line);
        let text = source.text();
        let at =
            text.floor_char_boundary((span.start as usize).clamp(whole.start as usize, whole.end as usize));
        let before = &text[whole.start as usize..at];
        let start = at - before.chars().rev().take(WINDOW).map(char::len_utf8).sum::<usize>();
        let after = &text[at..whole.end as usize];
        let end = at + after.chars().take(WINDOW).map(char::len_utf8).sum::<usize>();
        let window = Span::new(start as u32, end as u32);
        let cut = (window.start > whole.start, window.end < whole.end);
        Excerpt { window, line, cut, text: source.slice(window), marks: Vec::new() }
    }

    /// Whether a span starts in the excerpt. If the lines up to the span are few and short, the excerpt grows to
    /// contain them.
    fn reaches(&mut self, source: &'a SourceFile, span: Span) -> bool {
        if self.window.start <= span.start && span.start <= self.window.end {
            return true;
        }
        let there = source.position(span.start).line;
        let last_here = source.position(self.window.end).line;
        let (first, last) = (self.line.min(there), last_here.max(there));
        let window = source.line_span(first).to(source.line_span(last));
        if last - first > MOST_LINES || window.len() > MOST_BYTES {
            return false;
        }
        (self.window, self.line, self.cut, self.text) = (window, first, (false, false), source.slice(window));
        true
    }

    /// Adds the excerpt to a group, with file, line and column of the first mark. The snippet cannot compute the
    /// position itself: it does not know the columns of a cut line, and treats the end of the file as the end of a
    /// line.
    fn put_into(self, group: Group<'a>, source: &'a SourceFile) -> Group<'a> {
        let position = source.position(self.marks.first().map_or(self.window.start, |(span, ..)| span.start));
        let origin = Origin::path(source.name());
        let origin = origin.line(position.line as usize).char_column(position.column as usize);
        group.element(origin).element(self.into_snippet())
    }

    fn into_snippet(self) -> Snippet<'a, Annotation<'a>> {
        let head = if self.cut.0 { "..." } else { "" };
        let tail = if self.cut.1 { "..." } else { "" };
        let text = format!("{head}{}{tail}", self.text);
        let place = |offset: u32| {
            (offset.clamp(self.window.start, self.window.end) - self.window.start) as usize + head.len()
        };
        let annotations: Vec<_> = self
            .marks
            .iter()
            .map(|&(span, kind, label)| {
                let start = text.floor_char_boundary(place(span.start));
                let end = text.ceil_char_boundary(place(span.end.max(span.start)));
                // Only the first line of a long span is marked.
                let end = text[start..end].find('\n').map_or(end, |length| start + length);
                kind.span(start..end).label(label)
            })
            .collect();
        Snippet::source(text).line_start(self.line as usize).annotations(annotations)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Code;

    fn show(source: &SourceFile, diagnostic: &Diagnostic) -> String {
        render(source, diagnostic, Color::Never)
    }

    #[test]
    fn a_message_shows_its_line_and_what_to_do() {
        let source = SourceFile::new("k.ptx", "\tadd.u32 a, b\n\tret;\n");
        let error =
            Diagnostic::error(Code::SyntaxError, Span::new(16, 19), "Parsing error near 'ret': syntax error")
                .label(Span::new(13, 14), "a `;` is missing after this")
                .note("a fact")
                .help("end it with `;`");
        insta::assert_snapshot!(show(&source, &error), @r#"
        error[syntax-error]: Parsing error near 'ret': syntax error
         --> k.ptx:2:3
          |
        1 |     add.u32 a, b
          |                 - a `;` is missing after this
        2 |     ret;
          |      ^^^
          |
          = note: a fact
          = help: end it with `;`
        "#);
        assert!(render(&source, &error, Color::Always).contains("\x1b["));
        assert!(!show(&source, &error).contains('\x1b'));
    }

    #[test]
    fn a_far_label_is_shown_on_its_own() {
        let source = SourceFile::new("k.ptx", format!("{{\n{}}}", "x;\n".repeat(1000)));
        let error =
            Diagnostic::warning(Code::Deprecated, Span::at(3002), "m").label(Span::new(0, 1), "opened here");
        insta::assert_snapshot!(show(&source, &error), @r#"
        warning[deprecated]: m
            --> k.ptx:1002:1
             |
        1002 | }
             | ^
             |
        note: opened here
            --> k.ptx:1:1
             |
           1 | {
             | ^
        "#);
    }

    #[test]
    fn odd_spans_and_texts_do_not_panic() {
        for text in ["", "\n", "\0\u{7f}\u{1b}[31m", "\u{e9}\u{4e2d}\u{1f600}", "a\r\nb", "\t\t\n\n"] {
            let source = SourceFile::new("f", text);
            for start in 0..8 {
                for end in 0..8 {
                    let error = Diagnostic::error(Code::Unsupported, Span::new(start, end), "")
                        .label(Span::new(end, start), "l");
                    let shown = show(&source, &error);
                    assert!(!shown.contains('\u{1b}') && !shown.contains('\0'), "{shown:?}");
                    crate::json(&source, &[error]);
                }
            }
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        let text = format!("{}%bad{}", "\u{e9}\u{4e2d}".repeat(1_000_000), "y ".repeat(1_000_000));
        let at = text.find("%bad").expect("it is there") as u32;
        let source = SourceFile::new("f", text);
        let error = Diagnostic::error(Code::Unsupported, Span::new(at, at + 4), "m")
            .label(Span::at(0), "far in the same line");
        let shown = show(&source, &error);
        assert!(render(&source, &error, Color::Always).len() < 5000);
        assert!(!shown.contains(":::"));
        assert!(shown.len() < 4000 && shown.contains("f:1:2000001") && shown.contains("%bad"), "{shown}");
    }

    #[test]
    fn many_messages_take_linear_time() {
        // A position in a line of 5 MB, and one in the last of 1,000,000 lines. This would take minutes if finding a
        // position meant counting from the start of the line or file.
        let started = Instant::now();
        for text in ["\u{e9} ".repeat(2_000_000), "\u{e9};\n".repeat(1_000_000)] {
            let source = SourceFile::new("f", text);
            let at = source.text().len() as u32 - 4;
            let error =
                Diagnostic::error(Code::Unsupported, Span::at(at), "m").help("h").label(Span::at(0), "l");
            for _ in 0..1_000 {
                assert!(!show(&source, &error).is_empty());
            }
            assert!(crate::json(&source, &vec![error; 100_000]).len() > 10_000_000);
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
}
