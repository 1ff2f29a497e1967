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

/// A change of the source that does what the help says, for editors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The span to replace; it may be empty.
    pub span: Span,
    /// The new text; empty to remove the old one.
    pub text: String,
}

/// What to write instead: a sentence and, if one word says it all, that word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// The sentence.
    pub text: String,
    /// What the span of the diagnostic should be.
    pub instead: Option<String>,
}

impl Help {
    /// `did you mean 'near'?`
    pub fn did_you_mean(near: &str) -> Help {
        Help { text: format!("did you mean '{near}'?"), instead: Some(near.to_owned()) }
    }
}

impl<T: Into<String>> From<T> for Help {
    fn from(text: T) -> Help {
        Help { text: text.into(), instead: None }
    }
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
    /// Changes of which each does what the help says. No rendering shows them.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// A diagnostic without labels, notes and help.
    pub fn new(severity: Severity, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        let (labels, notes, fixes) = (Vec::new(), Vec::new(), Vec::new());
        Diagnostic { code, severity, message: message.into(), span, labels, notes, help: None, fixes }
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
    pub fn help(mut self, help: impl Into<Help>) -> Diagnostic {
        self.set_help(help.into());
        self
    }

    /// The same for a diagnostic that others have, too.
    pub fn set_help(&mut self, help: Help) {
        self.help = Some(help.text);
        self.fixes.extend(help.instead.map(|text| Fix { span: self.span, text }));
    }

    /// Adds a change that does what the help says.
    pub fn fix(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.fixes.push(Fix { span, text: text.into() });
        self
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
