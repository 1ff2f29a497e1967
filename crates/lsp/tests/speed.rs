//! How long a keystroke takes in a file of 10,000 lines: from `didChange` until the colours are answered and the diagnostics
//! are there. It prints the times, and asserts that every answer comes. The aim is 50 ms in a release build.

use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::time::Instant;

use serde_json::{Value, json};

/// A module of `lines` lines: functions of 500 lines each, with loops, memory and comments.
fn generated(lines: usize) -> String {
    let mut text = ".version 8.5\n.target sm_90\n.address_size 64\n.global .f32 table[1024];\n".to_owned();
    for function in 0.. {
        if text.lines().count() >= lines {
            return text;
        }
        text += &format!(".visible .entry k{function}(.param .u64 out, .param .u32 n)\n{{\n");
        text += "\t.reg .b32 %r<600>;\n\t.reg .b64 %rd<600>;\n\t.reg .f32 %f<600>;\n\t.reg .pred %p<600>;\n\tld.param.u64 %rd1, [out];\n";
        for i in 1..80 {
            let j = i + 1;
            text += &format!(
                "$L{i}:\n\t// step {i} \u{e9}\n\tmov.u32 %r{i}, %tid.x;\n\tmad.lo.s32 %r{j}, %r{i}, 4, %r1;\n\
                 \tfma.rn.ftz.f32 %f{j}, %f{i}, 0f3F800000, %f1;\n\tst.global.f32 [%rd1+{i}], %f{j};\n"
            );
        }
        text += "\tsetp.lt.s32 %p1, %r1, 7;\n\t@%p1 bra $L3;\n\tret;\n}\n";
    }
    text
}

/// Prints the middle of the times of 20 keystrokes in the middle of the file.
fn measure(name: &str, text: &str) {
    let (server_in, mut to_server) = pipe().expect("a pipe");
    let (from_server, server_out) = pipe().expect("a pipe");
    let server = std::thread::spawn(move || lsp::serve(BufReader::new(server_in), server_out));
    let mut from_server = BufReader::new(from_server);
    let mut send = |message: Value| {
        let body = message.to_string();
        write!(to_server, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
    };
    let mut receive = || {
        let mut length = 0;
        loop {
            let mut line = String::new();
            from_server.read_line(&mut line).expect("a header");
            match line.trim().split_once(": ") {
                Some((_, value)) => length = value.parse().expect("a length"),
                None => break,
            }
        }
        let mut body = vec![0; length];
        from_server.read_exact(&mut body).expect("a body");
        body
    };
    let uri = "file:///speed.ptx";
    send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "capabilities": {} } }));
    receive();
    let file = json!({ "uri": uri, "languageId": "ptx", "version": 0, "text": text });
    send(json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": file } }));
    receive();
    let middle = text.lines().count() / 2;
    let line =
        middle + text.lines().skip(middle).position(|line| line.starts_with('\t')).expect("a statement");
    let place = json!({ "line": line, "character": 1 });
    let mut times = Vec::new();
    for version in 1..=20 {
        let change = json!({ "range": { "start": place, "end": place }, "text": "x" });
        let file = json!({ "uri": uri, "version": version });
        let started = Instant::now();
        let params = json!({ "textDocument": file, "contentChanges": [change] });
        send(json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params }));
        let params = json!({ "textDocument": { "uri": uri } });
        let method = "textDocument/semanticTokens/full";
        send(json!({ "jsonrpc": "2.0", "id": version, "method": method, "params": params }));
        let (first, second) = (receive(), receive());
        times.push(started.elapsed());
        let all = [first, second].map(|body| String::from_utf8(body).expect("UTF-8"));
        assert!(all.iter().any(|one| one.contains("publishDiagnostics") && one.contains("\"severity\":1")));
        assert!(all.iter().any(|one| one.contains("\"data\":[")));
    }
    send(json!({ "jsonrpc": "2.0", "id": 99, "method": "shutdown" }));
    send(json!({ "jsonrpc": "2.0", "method": "exit" }));
    assert!(server.join().expect("no panic").expect("it writes"));
    times.sort();
    println!(
        "{name}: {} lines, a keystroke takes {:.1?}, at most {:.1?}",
        text.lines().count(),
        times[10],
        times[19]
    );
}

#[test]
fn every_keystroke_is_answered() {
    let generated = generated(10_000);
    let mut files = vec![("generated".to_owned(), generated)];
    let root = test_utils::root();
    let real = test_utils::corpus::ptx_files(&root.join("tests")).into_iter();
    let real = real.chain(test_utils::corpus::ptx_files(&test_utils::corpus::path()));
    let real = real.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)));
    // The longest file of at most 12,000 lines that has a statement in its middle.
    let longest = real
        .filter(|(_, text)| text.lines().count() <= 12_000 && text.contains(".entry"))
        .max_by_key(|(_, text)| text.lines().count());
    files.extend(longest.map(|(path, text)| {
        (path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(), text)
    }));
    for (name, text) in files {
        measure(&name, &text);
    }
}
