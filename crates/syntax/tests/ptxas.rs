//! Holds the parser against recorded verdicts of ptxas: what parses, and where the first error is.

use diag::SourceFile;

const HEADER: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";
const KERNEL: &str = ".visible .entry f(.param .u64 a0){\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; \
                      .reg .f32 %f<9>; .reg .v4 .f32 v;\n";

fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => result.push('\n'),
            Some('t') => result.push('\t'),
            Some('r') => result.push('\r'),
            Some('\\') => result.push('\\'),
            Some('u') => {
                let (hex, after) =
                    chars.as_str().strip_prefix('{').and_then(|s| s.split_once('}')).expect("\\u{…}");
                result.extend(u32::from_str_radix(hex, 16).ok().and_then(char::from_u32));
                rest = after;
                continue;
            }
            other => panic!("unknown escape {other:?}"),
        }
        rest = chars.as_str();
    }
    result + rest
}

/// The part of a message that the table records.
fn near(message: &str) -> &str {
    let near = message.strip_prefix("Parsing error near ").unwrap_or(message);
    [": syntax error", ": unexpected EOF", " encountered on line"]
        .iter()
        .fold(near, |near, end| near.split_once(end).map_or(near, |(before, _)| before))
}

#[test]
fn the_first_parse_error_is_where_ptxas_reports_it() {
    let table = include_str!("ptxas-13.5.tsv");
    let mut wrong = Vec::new();
    let mut cases = 0;
    for case in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = case.splitn(4, '\t').collect();
        let [place, expected_near, expected_line, text] = fields[..] else {
            panic!("not a case: {case}");
        };
        let text = unescape(text);
        let file = match place {
            "raw" => text,
            "top" => format!("{HEADER}{text}"),
            "body" => format!("{HEADER}{KERNEL}{text}\nret;\n}}\n"),
            _ => panic!("not a place: {place}"),
        };
        let source = SourceFile::new("case", file);
        let (tree, diagnostics) = syntax::parse(&source);
        let (line, near) = match diagnostics.first() {
            None => (0, "ok".to_owned()),
            Some(first) => (source.position(first.span.start).line, near(&first.message).to_owned()),
        };
        if (line.to_string().as_str(), near.as_str()) != (expected_line, &unescape(expected_near)) {
            wrong.push(format!("{case}\n    here: {near} in line {line}"));
        }
        if diagnostics.is_empty() {
            let printed = SourceFile::new("printed", tree.to_string());
            let (again, diagnostics) = syntax::parse(&printed);
            if !diagnostics.is_empty() || again != tree {
                wrong.push(format!("{case}\n    printed: {}", printed.text()));
            }
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{} of {cases} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 1000, "the table is gone");
}
