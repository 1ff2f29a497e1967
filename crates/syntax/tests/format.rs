//! A formatted file has the tokens and the comments of the original, in the same order, and formatting it again
//! changes nothing.

use diag::SourceFile;
use syntax::format;
use syntax::lexer::{Kind, Lexer, comments};
use test_utils::{corpus, root};

/// Tokens and comments, without the white space between them.
fn words(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let (mut words, mut end) = (Vec::new(), 0);
    loop {
        let token = lexer.token();
        let range = token.span.range();
        let gap = &text[end..range.start];
        words.extend(comments(gap).map(|comment| gap[comment].trim_end()));
        if matches!(token.kind, Kind::End | Kind::EndInComment) {
            return words;
        }
        words.push(&text[range.clone()]);
        end = range.end;
    }
}

fn check(text: &str, name: &str) -> Option<String> {
    let formatted = format(&SourceFile::new(name, text))?;
    let (before, after) = (words(text), words(&formatted));
    if let Some(at) = (0..before.len().max(after.len())).find(|&at| before.get(at) != after.get(at)) {
        panic!("{name}: {:?} became {:?}", before.get(at), after.get(at));
    }
    let again = format(&SourceFile::new(name, formatted.as_str()));
    assert_eq!(again.as_deref(), Some(formatted.as_str()), "{name}: not stable");
    let source = SourceFile::new(name, text);
    let laid_out = SourceFile::new(name, formatted.as_str());
    assert_eq!(syntax::parse(&source).0, syntax::parse(&laid_out).0, "{name}");
    Some(formatted)
}

#[test]
fn nothing_is_lost() {
    let mut formatted = 0;
    for path in corpus::ptx_files(&root().join("tests")).into_iter().chain(corpus::ptx_files(&corpus::path()))
    {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a readable file")).into_owned();
        formatted += usize::from(check(&text, &path.display().to_string()).is_some());
    }
    assert!(formatted > 500, "{formatted}");
}

#[test]
fn comments_stay_where_they_are() {
    let text = "\
// The head.
.version 8.5 /* new */
.target sm_90  // Hopper


.address_size 64
/* a kernel:
   it adds */
.visible .entry k(
    .param .u64 out, // where to
    .param .u32 n
) { // begins
      .reg   .b32 %r<4>; .reg .pred %p;
// own line
  mov.u32 %r1, /* the index */ %tid.x;
L:@%p bra L; // loop \u{e9}
  mov.u32 %r2, (1+(2));

  ret;
  // last
}
// end";
    let expected = "\
// The head.
.version 8.5 /* new */
.target sm_90 // Hopper

.address_size 64
/* a kernel:
   it adds */
.visible .entry k(
\t.param .u64 out, // where to
\t.param .u32 n
)
{ // begins
\t.reg .b32 %r<4>;
\t.reg .pred %p;
\t// own line
\tmov.u32 %r1, /* the index */ %tid.x;
L:
\t@%p bra L; // loop \u{e9}
\tmov.u32 %r2, (1 + (2));

\tret;
\t// last
}
// end
";
    assert_eq!(check(text, "k.ptx").expect("it parses"), expected);
    assert_eq!(check("// only a comment\n", "c.ptx"), None, "a file without `.version` has an error");
    assert_eq!(format(&SourceFile::new("bad.ptx", ".version 8.5\n.target sm_90\n.func f( {")), None);
}
