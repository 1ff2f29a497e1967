//! `ptxvm debug`: the transcripts in `tests/debug`. Their first line has the words behind `ptxvm debug`, and what
//! stands behind the prompts is typed. `PTXVM_BLESS=1` writes what comes out.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PROMPT: &str = "(ptxvm) ";

/// What the command writes when these lines are typed.
fn session(folder: &Path, words: &str, typed: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
        .current_dir(folder)
        .arg("debug")
        .args(words.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A session that ends early reads no more.
    let _ = child.stdin.take().expect("its input").write_all(typed.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    // How long it took is another number each time.
    let out = out.lines().filter(|line| !line.contains("thread-instructions/s"));
    let out: String = out.map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{out}{err}[exit {}]\n", output.status.code().unwrap_or(-1))
}

#[test]
fn transcripts_are_what_is_shown() {
    let folder = test_utils::root().join("crates/command/tests/debug");
    let mut failed = Vec::new();
    let mut count = 0;
    for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        count += 1;
        let wanted = std::fs::read_to_string(&path).unwrap();
        let (first, rest) = wanted.split_once('\n').expect("a first line");
        let words = first.strip_prefix("$ ").expect("the words of the command");
        let typed = rest.lines().filter_map(|line| line.strip_prefix(PROMPT.trim_end()));
        let typed: String = typed.map(|line| format!("{}\n", line.trim())).collect();
        let got = format!("{first}\n{}", session(&folder, words, &typed));
        if got == wanted {
            continue;
        }
        if std::env::var_os("PTXVM_BLESS").is_some() {
            std::fs::write(&path, got).unwrap();
        } else {
            failed.push(format!("{}:\n{got}\ninstead of\n{wanted}", path.display()));
        }
    }
    assert!(count >= 3, "the transcripts are gone");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_chapter_shows_what_happens() {
    let root = test_utils::root();
    let transcript = std::fs::read_to_string(root.join("crates/command/tests/debug/chapter.txt")).unwrap();
    let chapter = std::fs::read_to_string(root.join("docs/debugger.md")).unwrap();
    let shown = transcript.replacen("$ ", "$ ptxvm debug ", 1).replace("[exit 0]\n", "");
    assert!(chapter.contains(&shown), "docs/debugger.md has another transcript than chapter.txt");
}

#[test]
fn options_of_which_a_debugger_has_none_are_refused() {
    let folder = test_utils::root().join("crates/command/tests/debug");
    for (option, name) in
        [("--tool racecheck", "--tool"), ("--repeat 2", "--repeat"), ("--engine native", "--engine")]
    {
        let shown = session(&folder, &format!("fault.ptx --arg u32[1] {option}"), "");
        assert!(
            shown.contains(&format!("the debugger has no {name}")) && shown.ends_with("[exit 2]\n"),
            "{shown}"
        );
    }
    let shown = session(&folder, "-", ".version 8.5");
    assert!(shown.contains("give the PTX in a file") && shown.ends_with("[exit 2]\n"), "{shown}");
}
