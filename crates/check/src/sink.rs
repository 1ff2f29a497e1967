//! Collects diagnostics.

use diag::{Code, Diagnostic, Fix, Help, SourceFile, Span};

use crate::order::{Order, Phase, Stage};

/// Collects diagnostics, each with its key in ptxas's order, and sorts them at the end.
pub(crate) struct Sink<'a> {
    source: &'a SourceFile,
    found: Vec<(Order, Diagnostic)>,
    errors: usize,
    /// Index of the current statement.
    statement: u32,
    /// Index of its first diagnostic in [`Sink::found`].
    start: usize,
    /// The current stage of its check.
    stage: Stage,
    /// The place within the stage.
    place: u16,
}

/// A diagnostic that can still get a help text and labels.
pub(crate) struct Reported<'s>(&'s mut Diagnostic);

impl Reported<'_> {
    /// Says what to write instead.
    pub(crate) fn help(self, help: impl Into<Help>) -> Self {
        self.0.set_help(help.into());
        self
    }

    /// Says what to write instead, if anything is known.
    pub(crate) fn maybe_help(self, help: Option<impl Into<Help>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// Adds changes of which each does what the help says.
    pub(crate) fn fixes(self, fixes: impl IntoIterator<Item = Fix>) -> Self {
        self.0.fixes.extend(fixes);
        self
    }

    /// Points to another span.
    pub(crate) fn label(self, span: Span, text: impl Into<String>) -> Self {
        self.0.labels.push(diag::Label { span, text: text.into() });
        self
    }
}

impl<'a> Sink<'a> {
    pub(crate) fn new(source: &'a SourceFile) -> Sink<'a> {
        Sink { source, found: Vec::new(), errors: 0, statement: 0, start: 0, stage: Stage::Guard, place: 0 }
    }

    /// Begins a statement or declaration.
    pub(crate) fn begin_statement(&mut self) {
        self.end_statement();
        self.statement += 1;
        self.enter(Stage::Guard);
    }

    /// Sets the stage for errors that are reported without one.
    pub(crate) fn enter(&mut self, stage: Stage) {
        self.enter_at(stage, 0);
    }

    /// Sets the stage, and the place within it, for errors that are reported without one.
    pub(crate) fn enter_at(&mut self, stage: Stage, place: u16) {
        (self.stage, self.place) = (stage, place);
    }

    /// Drops the errors of the statement that ptxas does not reach because of an error of a final stage.
    fn end_statement(&mut self) {
        let start = std::mem::replace(&mut self.start, self.found.len());
        // Among modifiers that are rejected early, only the first is reported.
        let place =
            |order: &Order| (order.stage, if order.stage == Stage::EarlyModifier { order.index } else { 0 });
        let last = self.found[start..].iter().filter(|(order, _)| order.stage.is_final());
        if let Some(last) = last.map(|(order, _)| place(order)).min() {
            let mut index = 0;
            self.found.retain(|(order, _)| {
                index += 1;
                index <= start || place(order) <= last || order.phase == Phase::Names
            });
            self.start = self.found.len();
        }
    }

    /// Reports an error at the current stage.
    pub(crate) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> Reported<'_> {
        self.report(self.stage, usize::from(self.place), Diagnostic::error(code, span, message))
    }

    /// Reports an error at a stage.
    pub(crate) fn error_at(
        &mut self,
        stage: Stage,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> Reported<'_> {
        self.report(stage, 0, Diagnostic::error(code, span, message))
    }

    /// Reports a warning.
    pub(crate) fn warning(&mut self, code: Code, span: Span, message: impl Into<String>) -> Reported<'_> {
        self.report(self.stage, 0, Diagnostic::warning(code, span, message))
    }

    /// Reports a diagnostic at a stage of an instruction, for the modifier of this index.
    pub(crate) fn report(&mut self, stage: Stage, index: usize, diagnostic: Diagnostic) -> Reported<'_> {
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        self.push(Order { stage, index, ..self.order(&diagnostic) }, diagnostic)
    }

    /// Reports an error that ptxas finds at the end of the function.
    pub(crate) fn late_error(&mut self, code: Code, span: Span, message: String) -> Reported<'_> {
        let diagnostic = Diagnostic::error(code, span, message);
        self.push(Order { phase: Phase::Names, ..self.order(&diagnostic) }, diagnostic)
    }

    /// Reports an error that ptxas finds at the end of the file.
    pub(crate) fn last_error(&mut self, code: Code, span: Span, message: String) -> Reported<'_> {
        let diagnostic = Diagnostic::error(code, span, message);
        self.push(Order { at_end: true, ..self.order(&diagnostic) }, diagnostic)
    }

    /// Reports an error that ptxas finds when it generates code.
    pub(crate) fn last(&mut self, diagnostic: Diagnostic) {
        self.push(Order { at_end: true, ..self.order(&diagnostic) }, diagnostic);
    }

    /// Reports an undeclared name.
    pub(crate) fn unknown_symbol(&mut self, span: Span, name: &str, help: Option<Help>) {
        self.late_error(Code::UnknownSymbol, span, format!("Unknown symbol '{name}'")).maybe_help(help);
    }

    /// Adds the diagnostics of the parser.
    pub(crate) fn syntax_errors(&mut self, errors: Vec<Diagnostic>) {
        for error in errors {
            self.push(Order { phase: Phase::Syntax, ..self.order(&error) }, error);
        }
    }

    /// The key of a diagnostic in the current statement and stage.
    fn order(&self, diagnostic: &Diagnostic) -> Order {
        Order {
            at_end: false,
            line: self.source.position(diagnostic.span.start).line,
            phase: Phase::Statement,
            statement: self.statement,
            stage: self.stage,
            index: 0,
        }
    }

    fn push(&mut self, order: Order, diagnostic: Diagnostic) -> Reported<'_> {
        self.errors += usize::from(diagnostic.is_error());
        self.found.push((order, diagnostic));
        Reported(&mut self.found.last_mut().expect("just pushed").1)
    }

    /// Number of errors so far.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// All diagnostics, in ptxas's order.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.end_statement();
        self.found.sort_by_key(|(order, _)| *order);
        self.found.into_iter().map(|(_, diagnostic)| diagnostic).collect()
    }
}
