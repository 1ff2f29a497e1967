//! `--trace`, `--watch`, `--first-nan`, and who wrote what `--expect` finds wrong.

mod common;

use common::{Folder, Outcome, finish};
use serde_json::{Value, json};

/// Each thread adds `sqrt(x - 2)` of its element to a sum that all share, and stores it, too.
const ROOTS: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry roots(.param .u64 x, .param .u64 y, .param .u64 sum) {
    .reg .pred %p;
    .reg .b32 %i, %v, %w;
    .reg .f32 %r;
    .reg .b64 %x, %y, %s, %o;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u64 %s, [sum];
    add.u64 %x, %x, %o;
    add.u64 %y, %y, %o;
    ld.global.b32 %v, [%x];
    sub.f32 %w, %v, 0f40000000;
    sqrt.rn.f32 %r, %w;
    shfl.sync.idx.b32 %w, %r, 1, 31, -1;
    setp.gt.u32 %p, %i, 2;
    @%p st.global.b32 [%y], %w;
    red.global.add.f32 [%s], %r;
    ret;
}
";

fn run(options: &str) -> Outcome {
    let folder = Folder::new();
    folder.write("roots.ptx", ROOTS);
    let words = "run roots.ptx --block 4 --arg f32[4]=iota --arg f32[4] --arg f32[1]";
    finish(&mut folder.command(&format!("{words} {options}"))).unwrap()
}

fn json(options: &str) -> Value {
    let outcome = run(&format!("{options} --format json"));
    serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_trace_has_every_instruction_with_its_values() {
    let outcome = run("--trace 0,3");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let lines: Vec<_> = outcome.stdout.lines().collect();
    let line = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line(0), "roots.ptx:9 mov.u32 %i, %tid.x; %tid.x = 3 -> %i = 3");
    assert_eq!(line(1), "roots.ptx:10 mul.wide.u32 %o, %i, 4; %i = 3 -> %o = 12");
    assert!(line(7).ends_with("[global 0x100000000c] -> %v = 0x40400000"), "{}", line(7));
    let roots = "%v = 3 (0x40400000) -> %w = 1 (0x3f800000)";
    assert_eq!(line(8), format!("roots.ptx:17 sub.f32 %w, %v, 0f40000000; {roots}"));
    // The value of lane 1 arrives when the lanes have met.
    assert!(line(10).ends_with("%r = 0x3f800000 -> %w = 0x7fffffff"), "{}", line(10));
    assert!(line(12).ends_with("[global 0x400000000c], %p = true, %w = 0x7fffffff"), "{}", line(12));
    assert_eq!(lines.len(), 16, "{}", outcome.stdout);
    let skipped = run("--trace (0,0,0),(2,0,0)").stdout;
    assert!(skipped.contains("%p = false: not executed") || skipped.contains("%p = false, "), "{skipped}");
    assert!(skipped.lines().nth(12).unwrap().ends_with(": not executed"), "{skipped}");
}

#[test]
fn a_trace_goes_through_calls() {
    let folder = Folder::new();
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64
        .func (.reg .u32 %r) twice(.reg .u32 %a) {\n add.u32 %r, %a, %a;\n ret; }
        .visible .entry k() {\n .reg .u32 %x, %y;\n mov.u32 %x, 21;\n call (%y), twice, (%x);\n mov.u32 %x, %y;\n ret; }";
    folder.write("k.ptx", ptx);
    let text = finish(&mut folder.command("run k.ptx --trace 0,0")).unwrap().stdout;
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[1], "k.ptx:10 call (%y), twice, (%x); %x = 21");
    assert_eq!(lines[2], "k.ptx:5 add.u32 %r, %a, %a; %a = 21, %a = 21 -> %r = 42");
    assert_eq!(lines[3], "k.ptx:6 ret; -> %y = 42");
    assert_eq!(lines[4], "k.ptx:11 mov.u32 %x, %y; %y = 42 -> %x = 42");
}

#[test]
fn a_trace_for_programs_has_types_and_bits() {
    let trace = &json("--trace 0,3")["trace"];
    assert_eq!(trace.as_array().unwrap().len(), 15);
    let step = &trace[8];
    assert_eq!((&step["line"], &step["executes"]), (&json!(17), &json!(true)));
    assert_eq!(step["writes"], json!([{ "name": "%w", "type": "f32", "bits": "0x3f800000", "value": "1" }]));
    assert_eq!(trace[13]["address"], json!({ "space": "global", "address": 0x60_0000_0000_u64 }));
}

#[test]
fn a_watch_has_every_write() {
    let outcome = run("--watch 1[3] --watch 1[0] --watch 2[0]");
    let text = outcome.stdout;
    assert!(text.contains("1[3] (f32 at 0x400000000c) was written once:\n"), "{text}");
    let write = "thread (3,0,0) of block (0,0,0): 0 (0x00000000) -> NaN (0x7fffffff)\n";
    assert!(text.contains(&format!("roots.ptx:21  @%p st.global.b32 [%y], %w;  {write}")), "{text}");
    assert!(text.contains("1[0] (f32 at 0x4000000000): nobody wrote it\n"), "{text}");
    assert!(text.contains("2[0] (f32 at 0x6000000000) was written 4 times:\n"), "{text}");
    // Between the additions of one step nobody can look.
    let add = "roots.ptx:22  red.global.add.f32 [%s], %r;  thread";
    assert!(text.contains(&format!("{add} (0,0,0) of block (0,0,0): 0 (0x00000000) -> ?\n")), "{text}");
    assert!(text.contains(&format!("{add} (3,0,0) of block (0,0,0): ? -> NaN (0x7fffffff)\n")), "{text}");

    let watch = &json("--watch 0x4000000008:8")["watch"][0];
    assert_eq!((&watch["count"], &watch["bytes"]), (&json!(1), &json!(8)));
    let write = &watch["writes"][0];
    assert_eq!(write["after"], json!("0x7fffffff00000000"));
    assert_eq!((&write["thread"], &write["line"]), (&json!(3), &json!(21)));
}

#[test]
fn a_watch_cuts_its_element_out_of_a_wider_store() {
    let folder = Folder::new();
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 y) {
        .reg .b64 %y;\n.reg .b32 %a, %b;\n mov.b32 %a, 7;\n mov.b32 %b, 9;\n ld.param.u64 %y, [y];
        st.global.v2.b32 [%y], {%a, %b};\n ret; }";
    folder.write("k.ptx", ptx);
    let text = finish(&mut folder.command("run k.ptx --arg u32[2] --watch 0[0:2]")).unwrap().stdout;
    let who = "thread (0,0,0) of block (0,0,0)";
    assert!(text.contains(&format!("{who}: 0 (0x00000000) -> 7 (0x00000007)\n0[1]")), "{text}");
    assert!(text.contains(&format!("{who}: 0 (0x00000000) -> 9 (0x00000009)\nk:")), "{text}");
}

#[test]
fn a_nan_is_followed_through_registers_lanes_and_memory() {
    let found = &json("--first-nan")["first_nan"];
    let flow = &found[0];
    assert_eq!(flow["number"], "NaN");
    let origin = &flow["origin"];
    assert_eq!(
        (&origin["line"], &origin["source"], &origin["count"]),
        (&json!(18), &json!("computed"), &json!(2))
    );
    assert_eq!(origin["reads"][0]["value"], "-2");
    let passages: Vec<_> = flow["passages"].as_array().unwrap().iter().collect();
    let lines: Vec<_> = passages.iter().map(|passage| (&passage["line"], &passage["count"])).collect();
    let (once, all) = (json!(1), json!(4));
    assert!(lines.contains(&(&json!(19), &all)), "every lane gets the NaN of lane 1: {lines:?}");
    assert!(lines.contains(&(&json!(21), &once)) && lines.contains(&(&json!(22), &json!(2))), "{lines:?}");
    assert_eq!(flow["others"], json!([]));
    assert_eq!(found.as_array().unwrap().len(), 1, "there is no infinity: {found}");

    let text = run("--first-nan").stdout;
    assert!(
        text.starts_with("the first NaN is computed by thread (0,0,0) of block (0,0,0), here 2 times:\n"),
        "{text}"
    );
    assert!(text.contains("first to [global 0x400000000c], which is 1[3]\n"), "{text}");
    assert!(text.contains("no infinity: no instruction computed or loaded one\n"), "{text}");
}

#[test]
fn a_nan_of_an_input_is_said_to_be_one() {
    let folder = Folder::new();
    folder.write("roots.ptx", ROOTS);
    let words = "run roots.ptx --block 4 --arg f32[4]=nan --arg f32[4] --arg f32[1] --first-nan";
    let text = finish(&mut folder.command(words)).unwrap().stdout;
    let first = "the first NaN is read from memory by thread (0,0,0) of block (0,0,0), here 4 times:\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("roots.ptx:16  ld.global.b32 %v, [%x];\n"), "{text}");
    assert!(text.contains("[global 0x1000000000], which is 0[0] -> %v = NaN"), "{text}");
}

#[test]
fn a_difference_names_its_writer() {
    let outcome = run("--expect 1=f32[4]=0 --expect 2=f32[1]=0 --expect 0=f32[4]=1");
    assert_eq!(outcome.code, Some(3));
    let text = outcome.stderr;
    assert!(
        text.contains(
            "1[3] = NaN (0x7fffffff), expected 0 (0x00000000), by thread (3,0,0) of block (0,0,0)\n"
        ),
        "{text}"
    );
    assert!(text.contains("    written by roots.ptx:21  @%p st.global.b32 [%y], %w;\n"), "{text}");
    assert!(text.contains("by thread (3,0,0) of block (0,0,0), the last of 4 writes\n"), "{text}");
    assert!(text.contains("0[0] = 0 (0x00000000), expected 1 (0x3f800000), by nobody\n"), "{text}");
    let comparison = &json("--expect 1=f32[4]=0")["comparisons"][0];
    assert_eq!(comparison["first"][0]["written_by"]["line"], 21);
}

/// Reads a column of a matrix that is 32 elements wide, from global to shared memory and back.
const COLUMNS: &str = ".version 8.0
.target sm_90
.address_size 64
.visible .entry columns(.param .u64 x) {
    .reg .b32 %i, %s, %v;
    .reg .b64 %x, %o;
    .shared .align 4 .b8 tile[8192];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 128;
    ld.param.u64 %x, [x];
    add.u64 %o, %x, %o;
    ld.global.b32 %v, [%o];
    mov.u32 %s, tile;
    mad.lo.u32 %s, %i, 128, %s;
    st.shared.b32 [%s], %v;
    ld.shared.b32 %v, [tile];
    red.global.add.u32 [%x], %v;
    ret;
}
";

#[test]
fn counters_are_those_of_the_addresses() {
    let folder = Folder::new();
    folder.write("columns.ptx", COLUMNS);
    let run = |options: &str| {
        let words = format!("run columns.ptx --block 64 --arg u32[2048] --counters {options}");
        finish(&mut folder.command(&words)).unwrap().stdout
    };
    let counters: Value = serde_json::from_str(run("--format json").trim()).unwrap();
    let counters = &counters["counters"];
    let metric = |name: &str| counters["metrics"][format!("l1tex__{name}")].as_f64();
    // Two warps, each of which reads 32 sectors, and writes 32 words of one bank.
    assert_eq!(metric("t_requests_pipe_lsu_mem_global_op_ld.sum"), Some(2.0), "{counters}");
    assert_eq!(metric("t_sectors_pipe_lsu_mem_global_op_ld.sum"), Some(64.0));
    assert_eq!(metric("average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"), Some(32.0));
    assert_eq!(metric("data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"), Some(62.0));
    assert_eq!(metric("data_pipe_lsu_wavefronts_mem_shared_op_st.sum"), Some(64.0));
    assert_eq!(metric("data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"), Some(0.0));
    assert_eq!(metric("t_sectors_pipe_lsu_mem_global_op_red.sum"), Some(2.0));
    assert_eq!((&counters["instructions"], &counters["mix"]["mov"]), (&json!(22), &json!(4)));
    assert_eq!(counters["lines"][0]["bytes"], 256);
    assert_eq!(counters["occupancy"]["bounded_by"], "shared memory");

    let text = run("");
    assert!(
        text.contains("columns.ptx:12  ld.global.b32 %v, [%o];    32.0 sectors a request, 4.0 would do\n"),
        "{text}"
    );
    assert!(text.contains("st.shared.b32 [%s], %v;    31.0 bank conflicts a request\n"), "{text}");
    assert!(text.contains("32.00 of 32 lanes active on average, 0 divergent branches\n"), "{text}");
}

#[test]
fn wrong_questions_are_refused() {
    for (options, message) in [
        ("--trace 1,0", "--trace: there is no such block: there are 1x1x1"),
        ("--trace 0,4", "--trace: there is no such thread: there are 4x1x1"),
        ("--trace x", "`x` is no thread"),
        ("--watch 3[0]", "--watch 3[0:1]: argument 3 is no array"),
        ("--watch 1[4]", "--watch 1[4:5]: argument 1 has 4 elements"),
        ("--watch 1[0,1]", "--watch 1[0,1]: the shape is [4]"),
        ("--watch 1", "write which elements: 1[17]"),
        ("--first-nan --trace 0,0", "--trace and --first-nan both watch the launch"),
        ("--first-nan --tool racecheck", "--tool and --first-nan both watch the launch"),
        ("--hex", "--hex shows nothing by itself\nhelp: name what to show"),
        ("--watch 1[0] --engine reference", "the reference engine has no --watch"),
    ] {
        let outcome = run(options);
        assert_eq!(outcome.code, Some(2), "{options}: {}", outcome.transcript());
        assert!(outcome.stderr.contains(message), "{options}: {}", outcome.transcript());
    }
}
