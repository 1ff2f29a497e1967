//! `ptxvm run --profile`: its counts are exact, whatever runs the kernel and however it ends.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Outcome, finish, ptxvm};
use serde_json::{Value, json};

/// Each thread adds to a number `n` times, even threads 2 and odd ones 3, and stores it in several ways.
const KERNEL: &str = r#".version 7.0
.target sm_70
.address_size 64
.file 1 "src/kernel.cu"
.visible .entry kernel(.param .u64 out, .param .u32 n)
{
    .reg .pred %p, %q;
    .reg .u32 %i, %n, %t, %a, %b;
    .reg .u64 %o, %e;
    ld.param.u64 %o, [out];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %i, 0;
    and.b32 %a, %t, 1;
    setp.ne.u32 %q, %a, 0;
LOOP:
    .loc 1 7 3
    @%q bra ODD;
    add.u32 %a, %a, 2;
    bra JOIN;
ODD:
    add.u32 %a, %a, 3;
JOIN:
    add.u32 %i, %i, 1; add.u32 %b, %a, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra LOOP;
    .loc 1 9 3
    mad.wide.u32 %e, %t, 4, %o;
    st.global.u32 [%e], %a;
    @%q st.global.u32 [%e], %b;
    mad.wide.u32 %e, %t, 8, %o;
    st.global.u32 [%e], %a;
    ld.global.u32 %a, [%o+4];
    @%q bra END;
    bar.warp.sync 0x55555555;
END:
    @%q bar.sync 0, 32;
    ret; // <&>
}
"#;

/// Runs the kernel with `--format json --profile` in blocks of 48 threads: a whole warp and a half one.
fn run(words: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.ptx"), KERNEL).unwrap();
    run_in(folder.path(), words)
}

fn run_in(folder: &Path, words: &str) -> Outcome {
    let mut command: Command = ptxvm();
    command.current_dir(folder).args(["run", "kernel.ptx", "--block", "48"]).args(words.split_whitespace());
    finish(&mut command).unwrap()
}

fn last_object(outcome: &Outcome) -> Value {
    let line = outcome.stdout.lines().last().unwrap_or_else(|| panic!("{}", outcome.transcript()));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}\n{}", outcome.transcript()))
}

/// Executions, threads and diverging warps of the first line that contains `text`.
#[track_caller]
fn counts(profile: &Value, text: &str) -> [u64; 3] {
    let line = line(profile, text);
    ["executions", "threads", "diverged"].map(|key| line[key].as_u64().unwrap())
}

#[track_caller]
fn line<'a>(profile: &'a Value, text: &str) -> &'a Value {
    let mut lines = profile["lines"].as_array().unwrap().iter();
    lines.find(|line| line["text"].as_str().unwrap().contains(text)).unwrap_or_else(|| panic!("no `{text}`"))
}

#[test]
fn counts_are_exact() {
    let every_way = ["--threads 1", "--threads 2", "--deterministic", "--schedule 7"];
    for (way, grid) in every_way.iter().flat_map(|way| [(way, 1), (way, 3)]) {
        let args = "--arg u32[96] --arg 5 --format json --profile";
        let outcome = run(&format!("--grid {grid} {way} {args}"));
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        let object = last_object(&outcome);
        let profile = &object["profile"];
        let is = |text: &str, counts_of_block: [u64; 3]| {
            if way.starts_with("--schedule") {
                // Threads of a warp meet again where the order of the warps lets them.
                return assert_eq!(
                    counts(profile, text)[1],
                    counts_of_block[1] * grid,
                    "{way} {grid}: {text}"
                );
            }
            assert_eq!(
                counts(profile, text),
                counts_of_block.map(|count| count * grid),
                "{way} {grid}: {text}"
            );
        };
        is("ld.param.u64", [2, 48, 0]);
        is("@%q bra ODD", [10, 240, 10]);
        is("add.u32 %a, %a, 2", [10, 120, 0]);
        is("bra JOIN", [10, 120, 0]);
        is("add.u32 %a, %a, 3", [10, 120, 0]);
        // Two instructions stand in this line.
        is("add.u32 %i, %i, 1", [20, 480, 0]);
        is("@%p bra LOOP", [10, 240, 0]);
        is("@%q st.global", [2, 48, 0]);
        is("bar.warp.sync", [2, 24, 0]);
        // A guarded barrier is a branch around it.
        is("@%q bar.sync", [2, 48, 2]);
        // The others do not wait for those at the barrier.
        is("ret", [4, 48, 0]);

        assert_eq!(line(profile, "add.u32 %a, %a, 2")["active_lanes"], 12.0);
        assert_eq!(line(profile, "@%q st.global")["active_lanes"], 12.0);
        let kinds = |text| line(profile, text)["accesses"].clone();
        assert_eq!(kinds("st.global.u32 [%e], %a"), json!({"vector": 2 * grid, "broadcast": 0, "gather": 0}));
        // Every other thread: the elements do not follow one another, but those of the active threads lie as a
        // vector's do.
        assert_eq!(kinds("@%q st.global"), json!({"vector": 2 * grid, "broadcast": 0, "gather": 0}));
        assert_eq!(kinds("ld.global.u32"), json!({"vector": 0, "broadcast": 2 * grid, "gather": 0}));
        let mut strided = profile["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|line| line["text"] == "st.global.u32 [%e], %a;");
        assert_eq!(
            strided.next_back().unwrap()["accesses"],
            json!({"vector": 0, "broadcast": 0, "gather": 2 * grid})
        );

        let lines = profile["lines"].as_array().unwrap();
        let sum = |key: &str| lines.iter().map(|line| line[key].as_f64().unwrap()).sum::<f64>();
        assert_eq!(sum("threads"), object["thread_instructions"].as_f64().unwrap());
        assert!((sum("share") - 1.0).abs() < 1e-9 && profile["seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(line(profile, "bra ODD")["source"], "kernel.cu:7");
        assert_eq!(line(profile, "bar.warp.sync")["source"], "kernel.cu:9");
        assert!(line(profile, "ld.param").get("source").is_none());
    }
}

#[test]
fn a_fault_ends_the_counts_where_it_happened() {
    let outcome = run("--arg u32[47] --arg 2 --format json --profile");
    assert_eq!(outcome.code, Some(3), "{}", outcome.transcript());
    let profile = &last_object(&outcome)["profile"];
    assert_eq!(counts(profile, "@%p bra LOOP"), [4, 96, 0]);
    assert_eq!(counts(profile, "mad.wide.u32 %e, %t, 4"), [2, 48, 0]);
    assert_eq!(counts(profile, "st.global.u32 [%e], %a"), [2, 48, 0]);
    assert_eq!(counts(profile, "@%q st.global"), [0, 0, 0]);
    assert_eq!(counts(profile, "ret"), [0, 0, 0]);
}

#[test]
fn a_limit_keeps_what_was_counted() {
    let outcome = run("--arg u32[96] --arg 4000000000 --max-steps 1000000 --profile");
    assert_eq!(outcome.code, Some(3), "{}", outcome.transcript());
    let table: Vec<&str> = outcome.stdout.lines().collect();
    assert!(table[0].trim_start().starts_with("time  executions  lanes"), "{}", outcome.transcript());
    assert!(table.iter().any(|row| row.contains("@%q bra ODD")), "{}", outcome.transcript());
    assert!(!table.iter().any(|row| row.contains("ret")), "{}", outcome.transcript());
}

#[test]
fn files_are_written_as_their_names_say() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.ptx"), KERNEL).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for name in ["p.html", "p.json", "p.txt"] {
        let outcome = run_in(folder.path(), &format!("--arg u32[96] --arg 5 --profile={name}"));
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        assert_eq!(outcome.stdout.lines().count(), 1, "{}", outcome.transcript());
    }
    let html = read("p.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("ret; // &lt;&amp;&gt;"));
    assert!(html.contains("prefers-color-scheme") || html.contains("color-scheme: light dark"));
    assert!(!["http:", "https:", "<script", "@import", "src="].iter().any(|word| html.contains(word)));
    assert_eq!(html.matches(" id=L").count(), KERNEL.lines().count() + 1);
    let object: Value = serde_json::from_str(&read("p.json")).unwrap();
    assert_eq!(counts(&object, "@%q bra ODD"), [10, 240, 10]);
    assert!(read("p.txt").contains("kernel.cu:7"));

    let outcome = run_in(folder.path(), "--arg u32[96] --arg 5 --profile=p.pdf");
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    let outcome = run_in(folder.path(), "--arg u32[96] --arg 5 --profile=nowhere/p.html");
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("cannot write"), "{}", outcome.transcript());
}

#[test]
fn calls_and_indexed_branches_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n\
        .func (.reg .u32 %r) twice(.reg .u32 %x)\n{\n  add.u32 %r, %x, %x;\n  ret;\n}\n\
        .visible .entry kernel(.param .u64 out)\n{\n  .reg .u32 %t, %i, %a;\n  .reg .u64 %o, %e;\n\
        mov.u32 %t, %tid.x;\n  and.b32 %i, %t, 3;\nways: .branchtargets A, B, C, D;\n  brx.idx %i, ways;\n\
        A:\n  mov.u32 %a, 1;\n  bra JOIN;\nB:\n  mov.u32 %a, 2;\n  bra JOIN;\nC:\n  mov.u32 %a, 3;\n  bra JOIN;\n\
        D:\n  mov.u32 %a, 4;\nJOIN:\n  call (%a), twice, (%a);\n  ld.param.u64 %o, [out];\n\
        mad.wide.u32 %e, %t, 4, %o;\n  st.global.u32 [%e], %a;\n  ret;\n}\n";
    std::fs::write(folder.path().join("kernel.ptx"), text).unwrap();
    let outcome = run_in(folder.path(), "--arg u32[48] --format json --profile");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let profile = &last_object(&outcome)["profile"];
    assert_eq!(counts(profile, "brx.idx"), [2, 48, 2]);
    assert_eq!(counts(profile, "mov.u32 %a, 1"), [2, 12, 0]);
    assert_eq!(counts(profile, "mov.u32 %a, 4"), [2, 12, 0]);
    assert_eq!(counts(profile, "call"), [2, 48, 0]);
    assert_eq!(counts(profile, "add.u32 %r"), [2, 48, 0]);
    assert_eq!(counts(profile, "st.global"), [2, 48, 0]);
}
