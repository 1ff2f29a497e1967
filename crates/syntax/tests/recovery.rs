//! Every error of a file in one run, and no error twice; limits instead of overflows.

use diag::{Color, SourceFile, render};
use syntax::tree::{Item, Statement};

const HEADER: &str = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// `line:column message` of each diagnostic.
fn errors(text: &str) -> Vec<String> {
    let source = SourceFile::new("f.ptx", text);
    let (_, diagnostics) = syntax::parse(&source);
    diagnostics
        .iter()
        .map(|diagnostic| {
            let position = source.position(diagnostic.span.start);
            let message = diagnostic.message.replace("Parsing error near ", "").replace(": syntax error", "");
            format!("{}:{} {message}", position.line, position.column)
        })
        .collect()
}

fn in_module(text: &str) -> Vec<String> {
    errors(&format!("{HEADER}{text}"))
}

#[test]
fn each_statement_reports_its_own_error() {
    let text = "\
.entry f(.param .u32 a) {
	.reg .b32 %r<4>
	add.u32 %r1, %r2 %r3;
	add.u32 %r1, %r2, ;
	ld.global.u32 %r1, [%r2-4];
	mov.b64 %r1, {%r2, %r3 %r0};
	mov.u32 %r1, 1 +;
	mov.u32 %r1, 3
	foo _|_;
	)
	* , ) 5 \" ` ;
	call (%r1) f;
	.loc 1 2
	@%p1;
	add.u32 %r1, %r2, %r3;
L: .callprototype f;
}
.visible .entry g() { ret }
.global .bf16 x;
.global .u32 y
.global .u32 z;
garbage more garbage; and more
.entry h( { ret; }
.func (.param .u32) i(.param .u32 a, b, .param .u32 c) { ret, }
";
    assert_eq!(
        in_module(text),
        [
            "6:2 'add'",
            "6:19 '%r3'",
            "7:20 ';'",
            "8:25 '-'",
            "9:25 '%r0'",
            "10:18 ';'",
            "12:2 'foo'",
            "12:8 '_'",
            "13:2 ')'",
            "15:13 'f'",
            "17:2 '@'",
            "17:6 ';'",
            "19:19 'f'",
            "21:27 '}'",
            "22:9 '.bf16'",
            "24:1 '.global'",
            "25:1 'garbage'",
            "26:11 '{'",
            "27:19 ')'",
            "27:38 'b'",
            "27:61 ','",
        ]
    );
}

#[test]
fn what_is_sound_is_in_the_tree() {
    let text = format!(
        "{HEADER}.entry f() {{\n.reg .b32 a b;\nfoo a,,b;\n{{ret;}}\nbar a;\n}}\n.entry g() {{ret;}}"
    );
    let source = SourceFile::new("f", text);
    let (tree, diagnostics) = syntax::parse(&source);
    assert_eq!(diagnostics.len(), 2);
    let Item::Function(function) = &tree.items[3] else { panic!("{tree}") };
    let body = &function.body.as_ref().expect("a body").statements;
    let [
        Statement::Variable(variable),
        Statement::Unfinished(foo),
        Statement::Block(_),
        Statement::Instruction(bar),
    ] = &body[..]
    else {
        panic!("{tree}")
    };
    assert_eq!((variable.declarators.len(), foo.operands.len(), bar.opcode.text), (1, 1, "bar"));
    assert_eq!(tree.items.len(), 5);
}

#[test]
fn heads_of_functions() {
    assert_eq!(
        in_module(
            ".entry f()\n.maxntid 32, , 1\n.pragma \"x\";\n.maxnreg 4\n{ ret }\n.entry g(.param .u32 a b) { ret }"
        ),
        ["5:14 ','", "8:7 '}'", "9:24 'b'", "9:33 '}'"]
    );
    assert_eq!(in_module(".entry 5() { ret }\n.func f { ret }"), ["4:8 '5'", "4:18 '}'", "5:15 '}'"]);
    assert_eq!(in_module(".pragma \"a\nb\" 5;"), ["5:4 '5'"]);
    assert_eq!(in_module("\"a\nb\""), ["4:1 '\"a...'"]);
}

#[test]
fn braces() {
    assert_eq!(in_module(".entry f() { ret;"), ["4:18 ''"]);
    assert_eq!(in_module(".entry f() { { ret; }\n"), ["5:1 ''"]);
    assert_eq!(in_module(".entry f() { ret; } }\n.entry g() { ret }"), ["4:21 '}'", "5:18 '}'"]);
    // A missing brace is noticed at the next kernel, which is then read.
    assert_eq!(in_module(".entry f() { { ret;\n.visible .entry g() { ret }"), ["5:10 '.entry'", "5:27 '}'"]);
    assert_eq!(in_module(".entry f() {\n}\nret;\n}\n.entry g() { ret }"), ["6:1 'ret'", "8:18 '}'"]);
    assert_eq!(in_module(".global .u32 x = {1, {2};\n.global .u32 y z;"), ["4:25 ';'", "5:16 'z'"]);
}

#[test]
fn the_header() {
    let missing = |directive: &str| format!("1:1 Missing {directive} directive at start of file 'f.ptx'");
    for text in ["", "foo", ".target sm_90", ".version\n8.8", "8.8", "}"] {
        assert_eq!(errors(text)[0], missing(".version"), "{text}");
    }
    assert_eq!(errors(" \n\n"), ["3:1 Missing .version directive at start of file 'f.ptx'"]);
    assert_eq!(errors(".version 8.8"), ["1:13 Missing .target directive at start of file 'f.ptx'"]);
    assert_eq!(errors(".version 8.8\n.target sm_90"), [""; 0]);
    assert_eq!(
        errors("\u{feff}.version 8.8\n.target sm_90"),
        ["1:1 Unexpected non-ASCII character encountered on line 1"]
    );
}

#[test]
fn what_is_no_token() {
    assert_eq!(in_module("/* never closed\n"), ["5:1 '': unexpected EOF while scanning"]);
    assert_eq!(in_module(".entry f() { ret; /* never closed\n}"), ["5:2 '': unexpected EOF while scanning"]);
    assert_eq!(in_module(".pragma \"never closed;\n"), ["4:9 '\"'"]);
    assert_eq!(in_module(".entry f() { ret; \0 }"), ["4:19 Unexpected EOF encountered on line 4"]);
    assert_eq!(in_module("// \u{e9}\n\u{e9}"), ["5:1 Unexpected non-ASCII character encountered on line 5"]);
    let source =
        SourceFile::from_bytes("f", [HEADER.as_bytes(), b"// \xff\n.file 1 \"\xfe\"\n\xff\xff\xff"].concat());
    let (_, diagnostics) = syntax::parse(&source);
    // In comments anything may stand, in strings ASCII only.
    let lines: Vec<u32> = diagnostics.iter().map(|d| source.position(d.span.start).line).collect();
    assert_eq!(lines, [5, 6]);
    // A message quotes a part of what is too long to quote.
    let long = in_module(&format!(".entry f() {{ foo a {}; }}", "x".repeat(100_000)));
    assert!(long[0].ends_with("xxx...'") && long[0].len() < 600, "{long:?}");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let many = 1_000_000;
    for (open, close) in [("{", "}"), ("{", "")] {
        let text = format!(".entry f() {}{}\n.entry g() {{ ret }}", open.repeat(many), close.repeat(many));
        let errors = in_module(&text);
        assert_eq!(errors[0], "4:268 '{': nested too deep");
        assert!(errors.len() <= 2, "{errors:?}");
    }
    for nested in ["(", "-", "!", "~", "(.s64)", "1+", "1?", "1?2:", "1*(2-", "%r1+("] {
        let errors = in_module(&format!(".entry f() {{ foo a, {}1; bar b c; }}", nested.repeat(many)));
        assert!(errors[0].ends_with("nested too deep") || nested == "%r1+(", "{nested}: {errors:?}");
        assert_eq!(errors.len(), 2, "{nested}: {errors:?}");
    }
    for nested in ["{", "[", "{{", "[[", "a[", "{a,", "@", "a|", "a:", "!", "<"] {
        let errors = in_module(&format!(".entry f() {{ foo {}; }}", nested.repeat(many)));
        assert!(!errors.is_empty() && errors.len() <= 3, "{nested}: {} errors", errors.len());
    }
    let errors = in_module(&format!(".global .u32 x[] = {};\n.global .u32 y z;", "{".repeat(many)));
    assert!(errors[0].ends_with("nested too deep"), "{errors:?}");
    assert_eq!(in_module(&format!(".global .u32 x = {}1;", "(".repeat(200) + &")".repeat(0))).len(), 1);
}

#[test]
fn what_is_as_deep_as_allowed_parses_prints_and_parses_again() {
    let blocks = syntax::MAX_DEPTH as usize;
    let text = format!(
        "{HEADER}.entry f() {}{}\n.entry g() {{ mov.u32 a, {}1{}; mov.u32 a, {}1; mov.u32 a, 1{}; }}",
        "{".repeat(blocks),
        "}".repeat(blocks),
        "1-(".repeat(blocks / 2),
        ")".repeat(blocks / 2),
        "-".repeat(blocks),
        "-1".repeat(blocks),
    );
    let source = SourceFile::new("f", text);
    let (tree, diagnostics) = syntax::parse(&source);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let printed = SourceFile::new("printed", tree.to_string());
    let (again, diagnostics) = syntax::parse(&printed);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(again == tree);
}

#[test]
fn messages_say_what_to_do() {
    let show = |text: &str| {
        let source = SourceFile::new("f.ptx", format!("{HEADER}{text}"));
        let (_, diagnostics) = syntax::parse(&source);
        diagnostics.iter().map(|diagnostic| render(&source, diagnostic, Color::Never)).collect::<String>()
    };
    insta::assert_snapshot!(show(".entry f() {\n\tadd.u32 a, b, c\n\tret;\n}\n"), @r#"
    error[syntax-error]: Parsing error near 'ret': syntax error
     --> f.ptx:6:2
      |
    5 |     add.u32 a, b, c
      |                   - a `;` is missing after this
    6 |     ret;
      |     ^^^
      |
      = help: end the instruction with `;`
    "#);
    insta::assert_snapshot!(show(".entry f() {\n\tret;\n"), @r#"
    error[syntax-error]: Parsing error near '': syntax error
     --> f.ptx:6:1
      |
    4 | .entry f() {
      |            - this `{` is never closed
    5 |     ret;
      |         ^
      |
      = help: close it with `}`
    "#);
    insta::assert_snapshot!(show(".entry f() {\n\tld.global.u32 a, [b-4];\n/* x\n"), @r#"
    error[syntax-error]: Parsing error near '-': syntax error
     --> f.ptx:5:21
      |
    5 |     ld.global.u32 a, [b-4];
      |                        ^
      |
      = help: an address is written `[name]`, `[name+4]` or `[name+-4]`
    error[unterminated-comment]: Parsing error near '': unexpected EOF while scanning
     --> f.ptx:7:1
      |
    4 | .entry f() {
      |            - this `{` is never closed
    5 |     ld.global.u32 a, [b-4];
    6 | /* x
      | --  ^
      | |
      | this comment is never closed
      |
      = help: close the comment with `*/`
    "#);
    insta::assert_snapshot!(show(".global .shared .bf16 x;\n"), @r#"
    error[multiple-state-spaces]: Multiple state spaces specified
     --> f.ptx:4:9
      |
    4 | .global .shared .bf16 x;
      | ------- ^^^^^^^
      | |
      | the first is here
      |
      = help: a variable lives in one state space
    error[syntax-error]: Parsing error near '.bf16': syntax error
     --> f.ptx:4:17
      |
    4 | .global .shared .bf16 x;
      |                 ^^^^^
      |
      = help: declare it with `.b16`: .bf16 may only be used as an instruction type
    "#);
}
