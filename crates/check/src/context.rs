//! Where diagnostics are collected, and what the whole module has declared.

use diag::{Code, Diagnostic, Span};

/// Collects diagnostics in ptxas's order.
#[derive(Default)]
pub(crate) struct Sink {
    /// What was found, each with its phase.
    found: Vec<(Phase, Diagnostic)>,
    errors: usize,
}

/// When ptxas says something, among the errors of one line; the last among all errors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Main,
    /// What does not parse. What comes before it was read already.
    Syntax,
    /// Names that nothing declares.
    Symbols,
    /// At the end of the file.
    Module,
}

/// A diagnostic that can still be given a help text and labels.
pub(crate) struct Reported<'s>(&'s mut Diagnostic);

impl Reported<'_> {
    /// Says what to write instead.
    pub(crate) fn help(self, text: impl Into<String>) -> Self {
        self.0.help = Some(text.into());
        self
    }

    /// Says what to write instead, if anything is known.
    pub(crate) fn maybe_help(self, text: Option<String>) -> Self {
        if text.is_some() {
            self.0.help = text;
        }
        self
    }

    /// Points to another place.
    pub(crate) fn label(self, span: Span, text: impl Into<String>) -> Self {
        self.0.labels.push(diag::Label { span, text: text.into() });
        self
    }
}

impl Sink {
    /// Reports an error.
    pub(crate) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Reported<'_> {
        self.push(Phase::Main, Diagnostic::error(code, span, message))
    }

    /// Reports a warning.
    pub(crate) fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> Reported<'_> {
        self.push(Phase::Main, Diagnostic::warning(code, span, message))
    }

    /// Reports an error that ptxas finds at the end of the function.
    pub(crate) fn late_error(&mut self, code: Code, span: Span, message: String, help: String) {
        self.push(Phase::Symbols, Diagnostic::error(code, span, message)).help(help);
    }

    /// Reports an error that ptxas finds at the end of the module.
    pub(crate) fn last_error(&mut self, code: Code, span: Span, message: String, help: String) {
        self.push(Phase::Module, Diagnostic::error(code, span, message)).help(help);
    }

    /// Takes what the parser reported.
    pub(crate) fn syntax_errors(&mut self, errors: Vec<Diagnostic>) {
        self.found.extend(errors.into_iter().map(|error| (Phase::Syntax, error)));
    }

    /// Reports a name that nothing declares.
    pub(crate) fn unknown_symbol(&mut self, span: Span, name: &str, help: Option<String>) {
        let diagnostic = Diagnostic::error(Code::UnknownSymbol, span, format!("Unknown symbol '{name}'"));
        self.push(Phase::Symbols, diagnostic).maybe_help(help);
    }

    fn push(&mut self, phase: Phase, diagnostic: Diagnostic) -> Reported<'_> {
        self.errors += usize::from(diagnostic.is_error());
        self.found.push((phase, diagnostic));
        Reported(&mut self.found.last_mut().expect("just pushed").1)
    }

    /// Number of errors so far.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Everything that was found, in ptxas's order: by line, except what it says last.
    pub(crate) fn into_sorted(mut self, source: &diag::SourceFile) -> Vec<Diagnostic> {
        let line = |d: &Diagnostic| source.position(d.span.start).line;
        self.found.sort_by_cached_key(|(phase, d)| (*phase == Phase::Module, line(d), *phase));
        self.found.into_iter().map(|(_, d)| d).collect()
    }
}
