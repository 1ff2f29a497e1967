//! Diagnostics in the protocol's terms, and the changes that they propose.

use diag::{Diagnostic, Fix, Severity, Span};
use lsp_types::{
    CodeAction, CodeActionKind, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    TextEdit, Uri, WorkspaceEdit,
};

use crate::document::{Analysis, Document};

/// A diagnostic as editors show it. The message is the checker's; what helps stands below it.
pub fn diagnostic(document: &Document, uri: &Uri, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
    let mut message = diagnostic.message.clone();
    for note in &diagnostic.notes {
        message += &format!("\nnote: {note}");
    }
    if let Some(help) = &diagnostic.help {
        message += &format!("\nhelp: {help}");
    }
    let related = diagnostic.labels.iter().map(|label| DiagnosticRelatedInformation {
        location: Location::new(uri.clone(), document.range(label.span)),
        message: label.text.clone(),
    });
    let related: Vec<_> = related.collect();
    lsp_types::Diagnostic {
        range: document.range(diagnostic.span),
        severity: Some(match diagnostic.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(diagnostic.code.name().to_owned())),
        source: Some("ptxvm".to_owned()),
        message,
        related_information: Some(related).filter(|related| !related.is_empty()),
        ..lsp_types::Diagnostic::default()
    }
}

/// The changes that the diagnostics in a span propose.
pub fn actions(document: &Document, analysis: &Analysis, uri: &Uri, span: Span) -> Vec<CodeAction> {
    let mut actions = Vec::new();
    for one in &analysis.diagnostics {
        let touches = |other: Span| other.start <= span.end && span.start <= other.end;
        if !touches(one.span) && !one.fixes.iter().any(|fix| touches(fix.span)) {
            continue;
        }
        for fix in &one.fixes {
            let edit = TextEdit { range: document.range(fix.span), new_text: fix.text.clone() };
            actions.push(CodeAction {
                title: title(document, fix),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![diagnostic(document, uri, one)]),
                edit: Some(workspace_edit(uri, vec![edit])),
                is_preferred: Some(one.fixes.len() == 1),
                ..CodeAction::default()
            });
        }
    }
    actions
}

fn title(document: &Document, fix: &Fix) -> String {
    let old = document.source().slice(fix.span);
    match (old, fix.text.as_str()) {
        (old, "") => format!("Remove `{}`", old.escape_debug()),
        ("", new) => format!("Insert `{new}`"),
        (old, new) => format!("Replace `{old}` with `{new}`"),
    }
}

/// Edits of one file.
// The key is the protocol's; nothing changes it.
#[allow(clippy::mutable_key_type)]
pub fn workspace_edit(uri: &Uri, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit { changes: Some([(uri.clone(), edits)].into()), ..WorkspaceEdit::default() }
}
