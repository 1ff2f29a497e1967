//! `ptxvm sass`: words, text and meaning on the command line.

mod common;

use common::{finish, ptxvm};

fn run(args: &[&str]) -> common::Outcome {
    finish(ptxvm().arg("sass").args(args)).unwrap()
}

#[test]
fn words_and_text_go_both_ways() {
    let text = "HSETP2.LT.AND P0, P1, R2, -|R3.F32|, PT;";
    let word = run(&["asm", "--arch", "sm_53", text]);
    assert_eq!(word.stdout.trim_end(), "5d200388d0370201", "{}", word.transcript());
    let back = run(&["dis", "--arch", "sm_53", "--hex", word.stdout.trim_end()]);
    assert_eq!(back.stdout.trim_end(), text, "{}", back.transcript());
}

#[test]
fn batches_stay_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts");
    std::fs::write(
        &path,
        "HSETP2.LT P0, PT, R1, R2;\nHSETP2.LTE P0, PT, R1, R2\n\nHSETP2.F PT, PT, RZ, RZ\n",
    )
    .unwrap();
    let outcome = run(&["asm", "--arch", "sm_75", "--batch", path.to_str().unwrap()]);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert_eq!(lines.len(), 4, "{}", outcome.transcript());
    assert!(lines[1].starts_with("error: ") && lines[1].contains("did you mean .LE?"), "{}", lines[1]);
    assert!(lines[2].starts_with("error: ") && !lines[3].starts_with("error: "));
}

#[test]
fn instructions_are_executed() {
    let text = "HSETP2.LT.AND P0, P1, R0, R5, P2;";
    let outcome = run(&["eval", "--arch", "sm_53", text, "R0=0x3c003c00", "R5=0x40003800", "P2=1"]);
    assert_eq!(outcome.stdout, "P0 = 0\nP1 = 1\n", "{}", outcome.transcript());
}

#[test]
fn setp_is_lowered() {
    let outcome = run(&["lower", "--arch", "sm_53", "setp.lt.and.f16x2 p|q, a, b, c"]);
    assert_eq!(outcome.stdout, "HSETP2.LT.AND P0, P1, R0, R1, P2;\n", "{}", outcome.transcript());
}
