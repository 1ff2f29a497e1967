//! Diagnostics about spans of a source file.

use crate::{Code, Span};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The input cannot be used.
    Error,
    /// The input can be used, but is probably not what its author intended.
    Warning,
}

impl Severity {
    /// Its name: `error` or `warning`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A second span that belongs to a diagnostic, and how it is related.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// A description, e.g. `first declared here`.
    pub text: String,
}

/// One message about one span in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a diagnostic that nobody collects is lost"]
pub struct Diagnostic {
    /// The kind of message.
    pub code: Code,
    /// Its severity.
    pub severity: Severity,
    /// The problem, in one sentence; in ptxas's words if ptxas has a message for it.
    pub message: String,
    /// The span.
    pub span: Span,
    /// Other spans that matter.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without labels, notes and help.
    pub fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        let (labels, notes) = (Vec::new(), Vec::new());
        Diagnostic { code, severity, message: message.into(), span, labels, notes, help: None }
    }

    /// An error.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, span, message)
    }

    /// A warning.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, span, message)
    }

    /// Adds a second place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Says what to write instead. The last call wins.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
