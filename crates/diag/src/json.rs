//! Diagnostics for programs.

use serde::Serialize;

use crate::{Diagnostic, SourceFile};

#[derive(Serialize)]
struct File<'a, T> {
    file: &'a str,
    diagnostics: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a T>,
}

/// The fields of one diagnostic, in the order in which they are printed.
#[derive(Serialize)]
struct Entry<'a> {
    code: &'a str,
    severity: &'a str,
    message: &'a str,
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    help: Option<&'a str>,
}

/// One JSON object on one line, without the line feed:
/// `{"file":…,"diagnostics":[{"code","severity","message","file","line","column","end_line","end_column","help"}]}`.
///
/// Lines and columns count from 1, columns in characters; `end_column` is the column after the last character.
/// `help` is null where there is none.
pub fn json(source: &SourceFile, diagnostics: &[Diagnostic]) -> String {
    object(source, diagnostics, None::<&()>)
}

/// The same with a further field `fault`, which describes a fault beyond its position.
pub fn json_with_fault(source: &SourceFile, diagnostics: &[Diagnostic], fault: &impl Serialize) -> String {
    object(source, diagnostics, Some(fault))
}

fn object(source: &SourceFile, diagnostics: &[Diagnostic], fault: Option<&impl Serialize>) -> String {
    let file = source.name();
    let diagnostics = diagnostics
        .iter()
        .map(|diagnostic| {
            let start = source.position(diagnostic.span.start);
            let end = source.position(diagnostic.span.end.max(diagnostic.span.start));
            Entry {
                code: diagnostic.code.name(),
                severity: diagnostic.severity.name(),
                message: &diagnostic.message,
                file,
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                help: diagnostic.help.as_deref(),
            }
        })
        .collect();
    // The structs contain only strings and numbers, which serde_json cannot reject.
    serde_json::to_string(&File { file, diagnostics, fault }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Span};

    #[test]
    fn the_fields_are_exactly_those_of_the_contract() {
        let source = SourceFile::new("a \"b\".ptx", "x\n\u{e9}yz\n");
        let diagnostics = [
            Diagnostic::error(Code::UnknownSymbol, Span::new(4, 6), "Unknown symbol 'yz'").help("declare it"),
            Diagnostic::warning(Code::Deprecated, Span::at(7), "m")
                .note("not shown")
                .label(Span::at(0), "nor this"),
        ];
        let expected = concat!(
            r#"{"file":"a \"b\".ptx","diagnostics":["#,
            r#"{"code":"unknown-symbol","severity":"error","message":"Unknown symbol 'yz'","file":"a \"b\".ptx","#,
            r#""line":2,"column":2,"end_line":2,"end_column":4,"help":"declare it"},"#,
            r#"{"code":"deprecated","severity":"warning","message":"m","file":"a \"b\".ptx","#,
            r#""line":3,"column":1,"end_line":3,"end_column":1,"help":null}]}"#,
        );
        assert_eq!(json(&source, &diagnostics), expected);
        assert_eq!(json(&SourceFile::new("f", ""), &[]), r#"{"file":"f","diagnostics":[]}"#);
    }
}
