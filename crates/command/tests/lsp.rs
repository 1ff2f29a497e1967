//! `ptxvm lsp` as an editor sees it: a client that talks to the process.

#[path = "lsp/client.rs"]
mod client;

use client::{Client, at};
use serde_json::{Value, json};

const KERNEL: &str = "\
.version 8.5
.target sm_90
.address_size 64
// \u{1f600} a table
.global .u32 table[4];
.func (.reg .u32 d) twice(.reg .u32 a) { add.u32 d, a, a; }
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<3>; .reg .pred %p; .reg .f32 f;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; /* \u{1f600}\u{e9} */ setp.lt.u32 %p, %r1, 1065353216;
Loop:
    { .reg .f32 f; mov.f32 f, 0f3F800000; }
    mov.f32 f, 0f40000000;
    @%p bra Loop;
    add.rn.f32 f, f, f;
    st.global.u32 [table], %r1;
    ret;
}
";

fn labels(items: &Value) -> Vec<&str> {
    items.as_array().expect("a list").iter().filter_map(|item| item["label"].as_str()).collect()
}

#[test]
fn errors_come_all_at_once_and_their_fixes_make_the_file_clean() {
    let text = KERNEL
        .replace("mov.u32 %r1, %tid.x;", "mvo.u32 %r1, tid.x;")
        .replace("@%p bra Loop;", "@%p bra Lop;")
        .replace("add.rn.f32 f", "add.rnn.f32 f")
        .replace("[table], %r1;", "[table], %r1")
        .replace("setp.lt.u32", "setp.u32")
        .replace(".target sm_90", ".target sm_09")
        .replace(
            "    st.global",
            "    fma.rn.f16x2 %r1, %r1, %r1, %r1;\n    add.f32x2 %rd1, %rd1, %rd1;\n    st.global",
        );
    let mut client = Client::start();
    client.open("k.ptx", &text);
    let mut seen: Vec<String> = Vec::new();
    for round in 0..20 {
        let found = client.diagnostics("k.ptx");
        let codes = found.iter().map(|one| one["code"].as_str().expect("a code").to_owned());
        seen.extend(codes);
        let errors: Vec<&Value> = found.iter().filter(|one| one["severity"] == 1).collect();
        if errors.is_empty() {
            for code in [
                "unknown-instruction",
                "unknown-symbol",
                "unknown-modifier",
                "unsupported-target",
                "syntax-error",
                "missing-modifier",
                "requires-version",
            ] {
                assert!(seen.iter().any(|one| one == code), "{code}: {seen:?}");
            }
            client.end();
            return;
        }
        assert!(round > 0 || errors.len() >= 6, "{errors:#?}");
        // Some errors follow from others, and have no change of their own.
        let fix = errors.iter().find_map(|error| {
            let context = json!({ "diagnostics": [error] });
            let params =
                json!({ "textDocument": client.id("k.ptx"), "range": error["range"], "context": context });
            let actions = client.ask("textDocument/codeAction", &params);
            actions.as_array().expect("actions").first().cloned()
        });
        let fix = fix.unwrap_or_else(|| panic!("no fix: {errors:#?}"));
        assert_eq!(fix["kind"], "quickfix");
        client.apply("k.ptx", &fix["edit"]["changes"][&client.uri("k.ptx")]);
    }
    panic!("not clean: {:#?}\n{}", client.diagnostics("k.ptx"), client.text("k.ptx"));
}

#[test]
fn diagnostics_are_those_of_the_check() {
    let mut client = Client::start();
    for name in ["examples/scale/wrong.ptx"] {
        let path = test_utils::root().join(name);
        let text = std::fs::read_to_string(&path).expect("a readable file");
        client.open("w.ptx", &text);
        let found = client.diagnostics("w.ptx");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ptxvm"))
            .args(["check", "--format", "json"])
            .arg(&path)
            .output()
            .expect("the command runs");
        let checked: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checked = checked["diagnostics"].as_array().expect("a list");
        assert_eq!(found.len(), checked.len());
        for (one, other) in found.iter().zip(checked) {
            let message = one["message"].as_str().expect("a message");
            assert!(message.starts_with(other["message"].as_str().expect("a message")));
            assert!(message.contains(other["help"].as_str().unwrap_or_default()));
            assert_eq!(one["code"], other["code"]);
            let line = other["line"].as_u64().expect("a line") - 1;
            let column = other["column"].as_u64().expect("a column") - 1;
            assert_eq!(one["range"]["start"], json!({ "line": line, "character": column }));
        }
    }
    client.end();
}

#[test]
fn hover_says_what_a_word_means() {
    let mut client = Client::start();
    client.open("k.ptx", KERNEL);
    for (word, parts) in [
        ("add.rn", &["**add.rn.f32**", "PTX manual 9.7.3", "Legal since PTX 1.0", "`.rn`"][..]),
        ("rn.f32 f, f", &["**.rn**:"]),
        ("0f3F800000", &["| `.f32` | `0x3f800000` | 1 |", "0d3FF0000000000000"]),
        ("1065353216", &["| `.u32` | `0x3f800000` | 1065353216 |", "| `.f32` | `0x3f800000` | 1 |"]),
        ("%r1, %tid", &["register", ".reg .b32 %r<8>"]),
        ("%tid.x", &["%tid", "index of the thread"]),
        ("x; /*", &["%tid.x", "legal since"]),
        ("Loop;", &["label", "line 11"]),
        ("table]", &["variable", ".global .u32 table[4]"]),
        ("out];", &["parameter", ".param .u64 out"]),
        ("twice(", &["function", "line 6"]),
        (".target", &["**.target**"]),
    ] {
        let page = client.at("textDocument/hover", "k.ptx", at(KERNEL, word));
        let page = page["contents"]["value"].as_str().unwrap_or_else(|| panic!("{word}: {page}")).to_owned();
        for part in parts {
            assert!(page.contains(part), "{word}: no {part:?} in {page}");
        }
    }
    let text = KERNEL.replace("add.rn.f32 f, f, f", "add.rn.f32x2 %rd1, %rd1, %rd1");
    client.replace("k.ptx", &text);
    let page = client.at("textDocument/hover", "k.ptx", at(&text, "add.rn.f32x2"));
    // The words of the check, whose gates the page does not repeat.
    for part in ["Not legal: ", "requires PTX ISA .version 8.6 or later", "the module says `.version 8.5`"] {
        assert!(page.to_string().contains(part), "{part}: {page}");
    }
    client.replace("k.ptx", &KERNEL.replace("add.rn.f32", "add.lo.f32"));
    let page = client.at("textDocument/hover", "k.ptx", at(KERNEL, "add.rn"));
    assert!(page.to_string().contains("Not legal: "), "{page}");
    client.end();
}

#[test]
fn completion_offers_what_is_legal_here() {
    let mut client = Client::start();
    client.open("k.ptx", KERNEL);
    let mut offered = |typed: &str| {
        let text = KERNEL.replace("    ret;", typed);
        client.replace("k.ptx", &text);
        let place = at(&text, typed) + typed.trim_end_matches('\n').len();
        labels(&client.at("textDocument/completion", "k.ptx", place))
            .iter()
            .map(|&label| label.to_owned())
            .collect::<Vec<_>>()
    };
    let has = |list: &[String], word: &str| list.iter().any(|label| label == word);
    let opcodes = offered("    ad\n");
    assert!(has(&opcodes, "add") && has(&opcodes, "ret") && !has(&opcodes, "%r1"), "{opcodes:?}");
    let after_guard = offered("    @%p b\n");
    assert!(has(&after_guard, "bra"));
    let modifiers = offered("    add.rn.\n");
    assert!(has(&modifiers, ".f32") && has(&modifiers, ".ftz") && !has(&modifiers, ".u32"), "{modifiers:?}");
    assert!(!has(&modifiers, ".rz") && !has(&modifiers, ".f32x2"), "sm_90 has no pairs: {modifiers:?}");
    let operands = offered("    add.u32 %r1, \n");
    for name in ["%r7", "%rd1", "f", "%p", "Loop", "table", "out", "twice", "%laneid", "%tid.x"] {
        assert!(has(&operands, name), "{name}: {operands:?}");
    }
    assert!(!has(&operands, "%r8"));
    assert_eq!(offered("    mov.u32 %r1, %tid.\n"), [".x", ".y", ".z", ".w"]);
    let directives = offered("    .\n");
    assert!(has(&directives, ".reg") && !has(&directives, ".version"), "{directives:?}");
    assert!(has(&offered("    .reg .\n"), ".pred"));
    assert!(offered("    // a comment \n").is_empty());
    client.end();
}

#[test]
fn names_are_found_and_renamed_in_their_scope() {
    let mut client = Client::start();
    client.open("k.ptx", KERNEL);
    let uri = client.uri("k.ptx");
    let jump = client.at("textDocument/definition", "k.ptx", at(KERNEL, "Loop;"));
    assert_eq!(jump["range"]["start"], json!({ "line": 10, "character": 0 }));
    assert_eq!(jump["uri"], uri);
    // Behind characters of two units.
    let jump = client.at("textDocument/definition", "k.ptx", at(KERNEL, "%p, %r1, 10"));
    assert_eq!(jump["range"]["start"], client.position(KERNEL, at(KERNEL, "%p; .reg")));

    let mut params = client.params("k.ptx", at(KERNEL, "f, 0f40"));
    params["context"] = json!({ "includeDeclaration": true });
    let found = client.ask("textDocument/references", &params);
    assert_eq!(found.as_array().map(Vec::len), Some(5), "the inner `f` is another: {found}");

    for (word, new, count) in [
        ("f, 0f3F", "inner", 2),
        ("Loop:", "$again", 2),
        ("table[", "data", 2),
        ("k(", "kernel", 1),
        ("%r<8>", "%index", 4),
    ] {
        let mut params = client.params("k.ptx", at(KERNEL, word));
        params["newName"] = json!(new);
        let edit = client.ask("textDocument/rename", &params);
        let edits = &edit["changes"][&uri];
        assert_eq!(edits.as_array().map(Vec::len), Some(count), "{word}: {edit}");
        client.apply("k.ptx", edits);
        assert!(
            client.diagnostics("k.ptx").iter().all(|one| one["severity"] != 1),
            "{}",
            client.text("k.ptx")
        );
        client.replace("k.ptx", KERNEL);
    }
    for (word, new, why) in [
        ("%r1, %tid", "%x", "`%r<8>` declares"),
        ("mov", "x", "no name that this file declares"),
        ("f, 0f3F", "1x", "no name of PTX"),
        ("f, 0f40", "%p", "another name"),
        ("%r<8>", "%r1", "digits"),
    ] {
        let mut params = client.params("k.ptx", at(KERNEL, word));
        params["newName"] = json!(new);
        let error = client.refused("textDocument/rename", &params);
        assert!(error.contains(why), "{word}: {error}");
    }
    assert!(
        client
            .refused("textDocument/prepareRename", &client.params("k.ptx", at(KERNEL, "%r1, %tid")))
            .contains("%r<8>")
    );
    client.end();
}

#[test]
fn the_shape_of_a_file_is_shown() {
    let mut client = Client::start();
    client.open("k.ptx", KERNEL);
    let file = json!({ "textDocument": client.id("k.ptx") });
    let symbols = client.ask("textDocument/documentSymbol", &file);
    let names: Vec<&str> =
        symbols.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["table", "twice", "k"], "{symbols:#}");
    let children = symbols[2]["children"].as_array().expect("children");
    assert!(
        children.iter().any(|one| one["name"] == "Loop") && children.iter().any(|one| one["name"] == "%r<8>")
    );
    let folds = client.ask("textDocument/foldingRange", &file);
    assert_eq!(folds[0]["startLine"], 6);
    assert_eq!(folds[0]["endLine"], 17);

    // Each word of the file, with its kind: decoded as a client does.
    let data = client.ask("textDocument/semanticTokens/full", &file)["data"].clone();
    let numbers: Vec<usize> =
        data.as_array().expect("numbers").iter().map(|n| n.as_u64().expect("a number") as usize).collect();
    let lines: Vec<Vec<u16>> = KERNEL.lines().map(|line| line.encode_utf16().collect()).collect();
    let (mut line, mut column) = (0, 0);
    let words: Vec<(String, usize)> = numbers
        .chunks(5)
        .map(|token| {
            column = if token[0] == 0 { column + token[1] } else { token[1] };
            line += token[0];
            (String::from_utf16_lossy(&lines[line][column..column + token[2]]), token[3])
        })
        .collect();
    for (word, kind) in [
        ("// \u{1f600} a table", 0),
        ("/* \u{1f600}\u{e9} */", 0),
        ("setp", 4),
        ("lt", 5),
        (".f32", 6),
        (".entry", 7),
        ("%r1", 8),
        ("out", 9),
        ("k", 11),
        ("Loop", 12),
        ("bra", 4),
        ("0f3F800000", 2),
    ] {
        let dotted = format!(".{word}");
        assert!(
            words.iter().any(|(text, own)| (text == word || *text == dotted) && *own == kind),
            "{word}: {words:?}"
        );
    }

    let edits = client.ask(
        "textDocument/formatting",
        &json!({ "textDocument": client.id("k.ptx"), "options": { "tabSize": 4, "insertSpaces": false } }),
    );
    client.apply("k.ptx", &edits);
    let formatted = client.text("k.ptx");
    assert!(
        formatted.contains("/* \u{1f600}\u{e9} */") && formatted.contains("\n\t@%p bra Loop;\n"),
        "{formatted}"
    );
    assert!(client.diagnostics("k.ptx").is_empty());
    client.replace("k.ptx", "add");
    let error = client.refused(
        "textDocument/formatting",
        &json!({ "textDocument": client.id("k.ptx"), "options": { "tabSize": 4, "insertSpaces": false } }),
    );
    assert!(error.contains("syntax errors"), "{error}");
    client.end();
}

#[test]
fn signatures_follow_the_cursor() {
    let mut client = Client::start();
    let text = KERNEL.replace("    ret;", "    fma.rn.f32 f, [f, f], {f}, ");
    client.open("k.ptx", &text);
    let help = client.at("textDocument/signatureHelp", "k.ptx", at(&text, "{f}, ") + 5);
    assert_eq!(help["signatures"][0]["label"], "fma.rn.f32 d, a, b, c");
    assert_eq!(help["activeParameter"], 3);
    let help = client.at("textDocument/signatureHelp", "k.ptx", at(&text, "fma.rn") + 3);
    assert_eq!(help["activeParameter"], 0);
    assert!(client.at("textDocument/signatureHelp", "k.ptx", 3).is_null());
    client.end();
}

#[test]
fn a_client_that_errs_gets_an_error() {
    let mut client = Client::start();
    assert!(client.refused("textDocument/nothing", &json!({})).contains("no method"));
    assert!(client.refused("initialize", &json!({})).contains("initialized"));
    assert!(client.refused("textDocument/hover", &json!({ "textDocument": 1 })).contains("invalid type"));
    assert!(client.refused("textDocument/hover", &client.params("none.ptx", 0)).contains("not open"));
    for broken in [
        "Content-Length: 5\r\n\r\n{\"a\":",
        "Content-Length: x\r\n\r\n",
        "Content-Length: 2\r\n\r\n[]",
        "Content-Length: 1\r\n\r\n\u{7f}",
    ] {
        client.write(broken);
        let answer = client.receive();
        assert!(answer["id"].is_null() && answer["error"]["code"] == -32700, "{answer}");
    }
    client.tell("$/nothing", &json!(7));
    client.tell("textDocument/didChange", &json!({ "textDocument": {} }));
    client.tell("textDocument/didOpen", &json!(null));
    client.open("k.ptx", KERNEL);
    for (line, character) in [(0, 9999), (9999, 0), (4_294_967_295u32, 4_294_967_295u32)] {
        for method in ["hover", "completion", "definition", "signatureHelp", "prepareRename"] {
            let position = json!({ "line": line, "character": character });
            let params = json!({ "textDocument": client.id("k.ptx"), "position": position });
            client.answer(&format!("textDocument/{method}"), &params);
        }
    }
    let backwards = json!({ "start": { "line": 99, "character": 0 }, "end": { "line": 3, "character": 0 } });
    let params =
        json!({ "textDocument": client.id("k.ptx"), "range": backwards, "context": { "diagnostics": [] } });
    assert_eq!(client.ask("textDocument/codeAction", &params), json!([]));
    // Open, change, close and ask, one behind the other without waiting.
    for round in 0..20 {
        client.open("race.ptx", KERNEL);
        client.replace("race.ptx", if round % 2 == 0 { "" } else { "x" });
        client.tell("textDocument/didClose", &json!({ "textDocument": client.id("race.ptx") }));
        client.tell("textDocument/didChange", &json!({
            "textDocument": { "uri": client.uri("race.ptx"), "version": 9 }, "contentChanges": [{ "text": "y" }],
        }));
    }
    assert!(client.refused("textDocument/hover", &client.params("race.ptx", 0)).contains("not open"));
    assert!(client.diagnostics("k.ptx").is_empty());
    client.ask("shutdown", &Value::Null);
    assert!(client.refused("textDocument/hover", &client.params("k.ptx", 0)).contains("shut down"));
    client.tell("exit", &Value::Null);
    assert_eq!(client.wait(), Some(0));
    // One that goes away without a word.
    let client = Client::start();
    assert_eq!(client.wait(), Some(1));
}

#[test]
fn settings_choose_the_target() {
    let mut client = Client::start_with(&json!({ "target": "sm_30" }));
    client.open("k.ptx", &KERNEL.replace("add.rn.f32 f, f, f", "add.f16 h, h, h"));
    assert!(!client.diagnostics("k.ptx").is_empty());
    client.end();
    let mut client = Client::raw();
    let error = client
        .refused("initialize", &json!({ "capabilities": {}, "initializationOptions": { "target": "sm_1" } }));
    assert!(error.contains("no target"), "{error}");
}

/// Edits at random places on both sides; formatting shows the server's text.
#[test]
fn random_edits_leave_both_with_one_text() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut client = Client::start();
    client.open("r.ptx", KERNEL);
    let pieces = [
        "",
        "\n",
        "\r\n",
        "\r",
        "\u{1f600}",
        "\u{e9}",
        "add.",
        "%r",
        "{",
        "}",
        ";",
        "/*",
        "*/",
        "//",
        "\"",
        "@",
        ".reg .b32 x;",
        "\0",
        "0f",
    ];
    for round in 0..300 {
        let text = client.text("r.ptx");
        let mut pick = || {
            let mut at = random.usize(..=text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            // Between the two halves of a line's end is no place.
            if text[..at].ends_with('\r') && text[at..].starts_with('\n') { at - 1 } else { at }
        };
        let (a, b) = (pick(), pick());
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 12).min(text.len()));
        let mut end = text.floor_char_boundary(end).max(start);
        if text[..end].ends_with('\r') && text[end..].starts_with('\n') {
            end += 1;
        }
        let new = pieces[random.usize(..pieces.len())];
        client.edit("r.ptx", start, end, new);
        let method =
            ["hover", "completion", "definition", "signatureHelp", "prepareRename"][random.usize(..5)];
        let offset = {
            let text = client.text("r.ptx");
            text.floor_char_boundary(random.usize(..=text.len()))
        };
        client.answer(&format!("textDocument/{method}"), &client.params("r.ptx", offset));
        let file = json!({ "textDocument": client.id("r.ptx") });
        for method in ["documentSymbol", "foldingRange", "semanticTokens/full"] {
            let answer = client.answer(&format!("textDocument/{method}"), &file);
            assert!(answer["error"].is_null(), "{answer}");
        }
        // A name at the very end, whose place both know only if their texts are the same.
        if round % 10 == 0 {
            let mut parsed = syntax_errors(&client.text("r.ptx"));
            parsed.truncate(1);
            let found = client.diagnostics("r.ptx");
            assert_eq!(found.is_empty(), parsed.is_empty(), "round {round}");
            if let Some((line, column)) = parsed.first() {
                let is_it =
                    |one: &Value| one["range"]["start"] == json!({ "line": line, "character": column });
                assert!(found.iter().any(is_it), "round {round}: {line}:{column} {found:#?}");
            }
        }
    }
    client.end();
}

/// The places of the errors of a text, in units of UTF-16.
fn syntax_errors(text: &str) -> Vec<(usize, usize)> {
    let source = diag::SourceFile::new("r.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    let options = check::Options { assembly: check::Assembly::Whole, ..check::Options::default() };
    let (_, found) = check::check(&source, &tree, parsed, &options);
    found.iter().map(|one| client::position_of(text, one.span.start as usize)).collect()
}
