//! What the command says and how it ends: every kind of bad input, its message and its exit code; JSON; files.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, SCALE, finish, floats, npy, ptxvm, root};
use serde_json::Value;

#[test]
fn help_names_every_option_and_shows_examples() {
    let folder = Folder::new();
    for (words, parts) in [
        ("--help", vec!["check", "run", "Exit codes:", "Examples:", "130"]),
        ("check --help", vec!["--format", "--target", "--emit", "Examples:", "tree", "module", "ir"]),
        (
            "run --help",
            vec![
                "--entry",
                "--grid",
                "--block",
                "--shared",
                "--arg",
                "--out",
                "--print",
                "--deterministic",
                "--schedule",
                "--threads",
                "--repeat",
                "--max-steps",
                "--format",
                "Examples:",
                "bytes[4096]",
            ],
        ),
    ] {
        let outcome = folder.run(words);
        assert_eq!(outcome.code, Some(0));
        assert_eq!(outcome.stderr, "");
        for part in parts {
            assert!(outcome.stdout.contains(part), "{words}: no {part}");
        }
    }
    // A table that is wrapped is none.
    let help = folder.run("run --help").stdout;
    let (_, table) = help.split_once("Arguments (--arg)").unwrap();
    let (table, _) = table.split_once("Element types:").unwrap();
    assert!(table.lines().count() > 20 && table.lines().all(|line| line.len() <= 80), "{table}");
    assert_eq!(folder.run("--version").stdout.split_whitespace().next(), Some("ptxvm"));
    folder.fails("", 2, &["Usage:"]);
    folder.fails("walk", 2, &["unrecognized subcommand"]);
    folder.fails("run", 2, &["<FILE>"]);
    folder.fails("run scale.ptx --frobnicate", 2, &["--frobnicate"]);
}

#[test]
fn results_go_to_stdout_and_the_last_line_says_how_fast() {
    let folder = Folder::new();
    folder.write("x.npy", npy("'<f4'", "(3,)", &floats(&[1.0, 2.0, f32::NAN])));
    let outcome =
        folder.run("run scale.ptx --block 3 --arg @x.npy --arg -2.5 --print 0 --out 0=y.npy --out 0=y.bin");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert_eq!(outcome.stderr, "");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "0: f32[3] = [-2.5, -5, NaN]");
    assert!(lines[1].starts_with("scale: grid 1x1x1, block 3x1x1, 3 threads, "), "{}", lines[1]);
    assert!(lines[1].ends_with(" thread-instructions/s"), "{}", lines[1]);
    assert_eq!(lines.len(), 2);
    let (descr, bytes) = common::read_npy(&folder.path("y.npy")).unwrap();
    assert_eq!(descr, "'<f4'");
    assert_eq!(bytes[..8], floats(&[-2.5, -5.0]));
    assert_eq!(std::fs::read(folder.path("y.bin")).unwrap(), bytes);
    // The input is as it was.
    assert_eq!(common::read_npy(&folder.path("x.npy")).unwrap().1[..8], floats(&[1.0, 2.0]));
}

#[test]
fn json_of_run_is_the_last_line_of_stdout() {
    let folder = Folder::new();
    let outcome = folder
        .run("run scale.ptx --grid 2 --block 4x2 --arg f32[8]=1 --arg 2 --repeat 3 --print 0 --format json");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    let mut wanted = vec![
        "kernel",
        "grid",
        "block",
        "threads",
        "thread_instructions",
        "seconds",
        "seconds_all",
        "thread_instructions_per_second",
    ];
    wanted.sort_unstable();
    assert_eq!(keys, wanted);
    assert_eq!(object["kernel"], "scale");
    assert_eq!(object["grid"], serde_json::json!([2, 1, 1]));
    assert_eq!(object["block"], serde_json::json!([4, 2, 1]));
    assert_eq!(object["threads"], 16);
    // Eight instructions, executed by each of 16 threads.
    assert_eq!(object["thread_instructions"], 8 * 16);
    let mut seconds: Vec<f64> =
        object["seconds_all"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(seconds.len(), 3);
    seconds.sort_by(f64::total_cmp);
    assert_eq!(object["seconds"].as_f64().unwrap(), seconds[1]);
    let rate = object["thread_instructions_per_second"].as_f64().unwrap();
    assert!((rate * seconds[1] / 128.0 - 1.0).abs() < 1e-9);
    // Each launch starts from fresh inputs (1 * 2, not 1 * 2 * 2 * 2), and what people read is on stderr.
    assert!(outcome.stderr.contains("0: f32[8] = ["), "{}", outcome.transcript());
    assert_eq!(outcome.stdout.lines().count(), 1);
}

#[test]
fn repeated_launches_start_from_fresh_inputs() {
    let folder = Folder::new();
    let outcome = folder.run("run scale.ptx --block 2 --arg f32[2]=3 --arg 2 --repeat 4 --print 0");
    assert!(outcome.stdout.contains("0: f32[2] = [6, 6]"), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("(median of 4)"), "{}", outcome.transcript());
}

#[test]
fn bf16_arrays_are_uint16_with_a_note() {
    let folder = Folder::new();
    let outcome = folder.run("run scale.ptx --arg bf16[2]=1 --arg 1 --out 0=y.npy --print 0");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("0: bf16[2] = [1, 1]"), "{}", outcome.transcript());
    assert!(
        outcome.stderr.contains("note:") && outcome.stderr.contains("@y.npy:bf16"),
        "{}",
        outcome.transcript()
    );
    assert_eq!(common::read_npy(&folder.path("y.npy")).unwrap().0, "'<u2'");
    let outcome = folder.run("run scale.ptx --arg @y.npy:bf16 --arg 1 --print 0");
    assert!(outcome.stdout.contains("0: bf16[2] = [1, 1]"), "{}", outcome.transcript());
}

#[test]
fn arrays_keep_type_shape_and_order() {
    let folder = Folder::new();
    // [[1, 2, 3], [4, 5, 6]] in Fortran order.
    let mut file = npy("'<f4'", "(2, 3)", &floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let at = file.windows(5).position(|bytes| bytes == b"False").unwrap();
    file[at..at + 5].copy_from_slice(b"True ");
    folder.write("x.npy", file);
    let outcome =
        folder.run("run scale.ptx --block 6 --arg @x.npy --arg 10 --print 0 --out 0=y.npy --out 0=y.png");
    assert!(outcome.stdout.starts_with("0: f32[2x3] = [[10, 20, 30],\n"), "{}", outcome.transcript());
    assert_eq!(
        common::read_npy(&folder.path("y.npy")).unwrap().1,
        floats(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    );
    assert!(std::fs::read(folder.path("y.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn bad_ptx_files() {
    let folder = Folder::new();
    folder.write("empty.ptx", "");
    folder.write("truncated.ptx", &SCALE[..SCALE.len() / 2]);
    folder.write(
        "latin1.ptx",
        SCALE.replace("%f", "%f\u{e9}").replace('\u{e9}', "\u{0}").replace('\u{0}', "\u{1}"),
    );
    let mut bytes = SCALE.as_bytes().to_vec();
    bytes.extend(b"\xff\xfe\x80");
    folder.write("binary.ptx", bytes);
    folder.write("unknown.ptx", SCALE.replace("mul.f32", "mull.f32"));
    folder.write("type.ptx", SCALE.replace("mul.f32 %x, %x, %f", "add.u32 %x, %x, %i"));
    folder.write("register.ptx", SCALE.replace("mul.f32 %x, %x, %f", "mul.f32 %x, %x, %nowhere"));
    folder
        .write("deep.ptx", SCALE.replace("    ret;", &("{".repeat(200_000) + &"}".repeat(200_000) + "ret;")));
    folder.write(
        "expression.ptx",
        SCALE.replace("%i, 4,", &format!("%i, {}4{},", "(".repeat(200_000), ")".repeat(200_000))),
    );
    for (file, part) in [
        ("nowhere.ptx", "cannot read `nowhere.ptx`"),
        (".", "cannot read `.`"),
        ("empty.ptx", "empty.ptx"),
        ("truncated.ptx", "truncated.ptx:"),
        ("latin1.ptx", "latin1.ptx:"),
        ("binary.ptx", "binary.ptx:"),
        ("unknown.ptx", "mull"),
        ("type.ptx", "Arguments mismatch for instruction 'add'"),
        ("register.ptx", "Unknown symbol '%nowhere'"),
        ("deep.ptx", "deep.ptx:"),
        ("expression.ptx", "expression.ptx:"),
    ] {
        folder.fails(&format!("check {file}"), 1, &["error", part]);
        folder.fails(&format!("run {file} --arg f32[1] --arg 1"), 1, &["error", part]);
        let outcome = folder.fails(&format!("check --format json {file}"), 1, &[]);
        let object: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(object["file"], file);
        let diagnostics = object["diagnostics"].as_array().unwrap();
        assert!(diagnostics.iter().any(|diagnostic| diagnostic["severity"] == "error"), "{object}");
    }
}

#[test]
fn a_line_of_100_megabytes() {
    let folder = Folder::new();
    folder.write("words.ptx", "word ".repeat(20_000_000));
    folder.write("one_word.ptx", "a".repeat(100_000_000));
    folder.write("comment.ptx", format!("{SCALE}//{}", " -".repeat(50_000_000)));
    let start = Instant::now();
    for file in ["words.ptx", "one_word.ptx"] {
        let outcome = folder.fails(&format!("check {file}"), 1, &["error"]);
        assert!(outcome.stderr.len() < 10_000_000, "{file}: a message of {} bytes", outcome.stderr.len());
    }
    assert_eq!(folder.run("check comment.ptx").code, Some(0));
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

#[test]
fn check_reports_every_error_of_every_file() {
    let folder = Folder::new();
    folder.write(
        "bad.ptx",
        SCALE.replace("mul.f32 %x", "mul.f32 %nowhere").replace("ld.global.f32 %x", "ld.global.f32 %missing"),
    );
    let outcome = folder.fails(
        "check scale.ptx bad.ptx",
        1,
        &["Unknown symbol '%nowhere'", "Unknown symbol '%missing'", "bad.ptx:13:", "3 |"],
    );
    assert_eq!(outcome.stdout, "");
    let outcome = folder.fails("check --format json scale.ptx bad.ptx gone.ptx", 1, &[]);
    assert_eq!(outcome.stderr, "");
    let objects: Vec<Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0], serde_json::json!({"file": "scale.ptx", "diagnostics": []}));
    let diagnostics = objects[1]["diagnostics"].as_array().unwrap();
    // Each unknown name is reported twice, as ptxas does: it fits no operand, and it is unknown.
    assert_eq!(diagnostics.len(), 4);
    let keys: Vec<&String> = diagnostics[0].as_object().unwrap().keys().collect();
    let wanted = ["code", "column", "end_column", "end_line", "file", "help", "line", "message", "severity"];
    assert_eq!(keys, wanted);
    let lines: Vec<u64> = diagnostics.iter().map(|diagnostic| diagnostic["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [13, 13, 14, 14]);
    assert_eq!(objects[2]["diagnostics"][0]["code"], "unreadable-file");
    assert_eq!(folder.run("check scale.ptx").code, Some(0));
}

#[test]
fn check_reads_standard_input_and_another_target() {
    let folder = Folder::new();
    folder.write(
        "new.ptx",
        SCALE.replace("mul.f32 %x, %x, %f", "redux.sync.add.u32 %i, %i, -1").replace("sm_70", "sm_80"),
    );
    assert_eq!(folder.run("check new.ptx").code, Some(0));
    folder.fails("check --target sm_70 new.ptx", 1, &["sm_80"]);
    folder.fails("check --target sm_5000 new.ptx", 2, &["`sm_5000` is no target", "sm_90a"]);
    let mut child = folder.command("check -").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b".version 7.0\n.target sm_70\nbanana\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<stdin>:3:"));
}

#[test]
fn every_stage_can_be_printed() {
    let folder = Folder::new();
    for (stage, part) in [("tree", "ld.global.f32"), ("module", "scale"), ("ir", "scale")] {
        let outcome = folder.run(&format!("check --emit {stage} scale.ptx"));
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        assert!(outcome.stdout.contains(part), "{}", outcome.transcript());
    }
    // The printed tree is PTX that means the same.
    folder.write("again.ptx", folder.run("check --emit tree scale.ptx").stdout);
    assert_eq!(
        folder.run("check --emit tree again.ptx").stdout,
        folder.run("check --emit tree scale.ptx").stdout
    );
}

#[test]
fn the_native_code_of_a_loop_is_printed_beside_its_ptx() {
    let folder = Folder::new();
    folder.write(
        "loop.ptx",
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry power(.param .u64 out, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    ld.param.u64 %rd, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
ROUND:
    xor.b32 %r2, %r2, %r1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra ROUND;
    st.global.u32 [%rd], %r2;
    ret;
}
",
    );
    let print = |path: &str| {
        let mut command = folder.command("check --emit asm loop.ptx");
        finish(command.env("PTXVM_HOST_PATH", path)).unwrap()
    };
    let none = print("portable");
    assert_eq!(none.stdout, "no loop becomes native code for portable\n");
    // Where there is no AVX2, asking for it is a wrong command line.
    let code = print("avx2");
    if code.code != Some(2) && cfg!(unix) {
        let listed = |part: &str| assert!(code.stdout.contains(part), "no {part}: {}", code.transcript());
        listed("power: a loop for avx2, 32 threads at a time, ");
        listed("  basic block 0, with all threads\n");
        let (_, behind) = code.stdout.split_once("    13: xor.b32 %r2, %r2, %r1;\n").unwrap();
        let (instructions, _) = behind.split_once("    14: sub.u32 %r1, %r1, 1;\n").unwrap();
        assert_eq!(instructions.matches("vpxor ymm").count(), 4, "{}", code.transcript());
        assert!(!code.stdout.contains("(bad)"), "{}", code.transcript());
    }
    // `perf` finds its name.
    let mut run = folder.command("run loop.ptx --block 32 --arg u32[1] --arg 5 --engine native");
    let mut child = run.env("PTXVM_PERF", "1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let map = format!("/tmp/perf-{}.map", child.id());
    assert!(child.wait().unwrap().success());
    if code.code != Some(2) && cfg!(unix) {
        let text = std::fs::read_to_string(&map).unwrap();
        std::fs::remove_file(&map).unwrap();
        assert!(text.contains(" ptxvm power, basic block "), "{text}");
    }
}

#[test]
fn arguments_that_do_not_fit_show_the_signature() {
    let folder = Folder::new();
    let signature = ["0: .u64 data", "1: .f32 factor"];
    for (args, parts) in [
        ("", vec!["takes 2 arguments", "0 were given", "<- missing"]),
        ("--arg f32[1]", vec!["takes 2 arguments", "1 was given", "1: .f32 factor    <- missing"]),
        ("--arg f32[1] --arg 1 --arg 2", vec!["takes 2 arguments", "3 were given"]),
        (
            "--arg f32[1] --arg f32[1]",
            vec!["argument 1 (`factor`)", "it is an array, but the parameter is .f32"],
        ),
        ("--arg 1.5 --arg 1", vec!["argument 0 (`data`)", "`1.5` is no integer"]),
        ("--arg f32[1] --arg bytes:00", vec!["it is 1 bytes, but the parameter is .f32"]),
        ("--arg f32[1] --arg 1e99", vec!["`1e99` is too large for f32"]),
    ] {
        let outcome = folder.fails(&format!("run scale.ptx {args}"), 2, &parts);
        for line in signature {
            assert!(outcome.stderr.contains(line), "{}", outcome.transcript());
        }
    }
    for (args, part) in [
        ("--arg x.npy --arg 1", "write @x.npy"),
        ("--arg f33[1] --arg 1", "`f33` is no element type"),
        ("--arg f32[-1] --arg 1", "`-1` is no extent"),
        ("--arg f32[99999999999x99999999999] --arg 1", "larger than any memory"),
        ("--arg f32[1 --arg 1", "no `]`"),
        ("--arg u8[4]=256 --arg 1", "does not fit"),
        ("--arg f32[1] --arg banana", "`banana` is no argument"),
        ("--arg f32[1] --arg 1 --out 0", "I=PATH"),
        ("--arg f32[1] --arg 1 --out 0=x.txt", ".npy, .bin or .png"),
        ("--arg f32[1] --arg 1 --out 7=x.npy", "no argument 7"),
        ("--arg f32[1] --arg 1 --print 1", "argument 1 is no array"),
        ("--arg f32[1] --arg 1 --out 0=nowhere/x.npy", "no directory `nowhere`"),
        ("--arg f32[1] --arg 1 --entry other", "no kernel `other`"),
    ] {
        folder.fails(&format!("run scale.ptx {args}"), 2, &["error", part]);
    }
}

#[test]
fn arrays_that_cannot_be_used() {
    let folder = Folder::new();
    let good = npy("'<f4'", "(4,)", &floats(&[0.0; 4]));
    folder.write("big.npy", npy("'>f4'", "(1,)", &[0; 4]));
    folder.write("complex.npy", npy("'<c8'", "(1,)", &[0; 8]));
    folder.write("object.npy", npy("'|O'", "(1,)", &[0; 8]));
    folder.write("record.npy", npy("[('a', '<f4')]", "(2,)", &[0; 7]));
    folder.write("short.npy", &good[..good.len() - 1]);
    folder.write("header.npy", &good[..20]);
    folder.write("zip.npy", b"PK\x03\x04");
    folder.write("empty.npy", b"");
    folder.write("huge.npy", npy("'<f4'", "(4611686018427387904, 4)", &[0; 4]));
    folder.write("odd.bin", [0; 5]);
    for (file, parts) in [
        ("@gone.npy", vec!["argument 0 (`data`)", "cannot read `gone.npy`"]),
        ("@gone.bin", vec!["cannot read `gone.bin`"]),
        ("@big.npy", vec!["big-endian", "astype('<f4')"]),
        ("@complex.npy", vec!["complex numbers", "<c8", "float32"]),
        ("@object.npy", vec!["Python objects"]),
        ("@record.npy", vec!["records"]),
        ("@short.npy", vec!["truncated", "f32[4]"]),
        ("@header.npy", vec!["truncated"]),
        ("@zip.npy", vec!["no .npy file", "np.save"]),
        ("@empty.npy", vec!["no .npy file"]),
        ("@huge.npy", vec!["truncated"]),
        ("@odd.bin:f32", vec!["5 bytes", "multiple of the 4 bytes"]),
        ("@short.npy:f64", vec!["cannot be read as f64"]),
    ] {
        folder.fails(&format!("run scale.ptx --arg {file} --arg 1"), 1, &parts);
    }
}

#[test]
fn launches_that_no_gpu_would_take() {
    let folder = Folder::new();
    for (options, part) in [
        ("--grid 2147483648", "x is 2147483648, and must be 1 to 2147483647"),
        ("--grid 1,65536", "y is 65536, and must be 1 to 65535"),
        ("--grid 0", "x is 0"),
        ("--grid 1,2,3,4", "three dimensions"),
        ("--grid many", "`many` is no number"),
        ("--block 1025", "x is 1025, and must be 1 to 1024"),
        ("--block 33,33", "at most 1024 threads, and this one 1089"),
        ("--block 1,1,65", "z is 65, and must be 1 to 64"),
        ("--threads 0", "--threads"),
        ("--repeat 0", "--repeat"),
    ] {
        folder.fails(&format!("run scale.ptx --arg f32[1] --arg 1 {options}"), 2, &["error", part]);
    }
    folder.write("required.ptx", SCALE.replace("factor)", "factor) .reqntid 32"));
    folder.fails("run required.ptx --block 16 --arg f32[32] --arg 1", 2, &["error", "reqntid"]);
    folder.write("none.ptx", ".version 7.0\n.target sm_70\n.address_size 64\n");
    folder.fails("run none.ptx", 1, &["has no kernel"]);
    let outcome =
        finish(folder.command("run scale.ptx --arg f32[1] --arg 1").env("PTXVM_HOST_PATH", "mmx")).unwrap();
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("PTXVM_HOST_PATH=mmx"), "{}", outcome.transcript());
}

#[test]
fn faults_as_json() {
    let folder = Folder::new();
    let outcome =
        folder.fails("run scale.ptx --block 2 --arg f32[1] --arg 1 --format json", 3, &["out of bounds"]);
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(object["file"], "scale.ptx");
    assert_eq!(object["diagnostics"][0]["code"], "out-of-bounds");
    assert_eq!(object["diagnostics"][0]["line"], 13);
}

#[test]
fn results_so_far_are_saved_when_a_kernel_is_stopped() {
    let folder = Folder::new();
    folder.write("loop.ptx", SCALE.replace("    ret;", "forever: bra forever;"));
    folder.fails(
        "run loop.ptx --arg f32[1]=3 --arg 2 --max-steps 10000 --out 0=y.bin",
        3,
        &["did not end within 10000 thread-instructions", "results are as the kernel left them"],
    );
    assert_eq!(std::fs::read(folder.path("y.bin")).unwrap(), floats(&[6.0]));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_kernel_and_keeps_results() {
    let folder = Folder::new();
    folder.write("loop.ptx", SCALE.replace("    ret;", "forever: bra forever;"));
    let mut command = folder.command("run loop.ptx --arg f32[1]=3 --arg 2 --print 0 --out 0=y.bin");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Long enough to have started the kernel on a slow machine.
    std::thread::sleep(Duration::from_secs(2));
    let start = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("cancelled before the kernel ended"), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("0: f32[1] = [6]"));
    assert_eq!(std::fs::read(folder.path("y.bin")).unwrap(), floats(&[6.0]));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let mut child = folder
        .command("check --emit ir scale.ptx")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn the_commands_of_the_readme_of_each_example_run() {
    for case in common::cases(&root().join("examples")) {
        let folder = Path::new(&case.kernel).parent().unwrap();
        let readme = std::fs::read_to_string(root().join("examples").join(folder).join("README.md")).unwrap();
        let line = readme.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).unwrap();
        let saved = tempfile::tempdir().unwrap();
        let mut command = ptxvm();
        for word in line.split_whitespace() {
            let word = word.trim_matches('\'');
            // What it saves goes elsewhere.
            match word.split_once('=') {
                Some((index, name)) if index.parse::<usize>().is_ok() => {
                    command.arg(format!("{index}={}", saved.path().join(name).display()))
                }
                _ => command.arg(word),
            };
        }
        let outcome = finish(command.current_dir(root())).unwrap();
        assert_eq!(outcome.code, Some(0), "{line}\n{}", outcome.transcript());
    }
}

#[test]
fn a_fault_tells_programs_what_its_line_was_compiled_from() {
    let folder = Folder::new();
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n    .loc 1 7 3\n    trap;\n}\n.file 1 \"kernel.py\"\n";
    folder.write("loc.ptx", ptx);
    let outcome = folder.run("run loc.ptx --format json");
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    let original = serde_json::json!({ "file": "kernel.py", "line": 7, "column": 3, "inlined_at": [] });
    assert_eq!(object["fault"]["original"], original, "{}", outcome.transcript());
}

#[test]
fn a_fault_in_an_inlined_function_names_the_lines_that_called_it() {
    let folder = Folder::new();
    // As Triton writes it, the files at the end.
    folder.write(
        "inlined.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b64 %p;\nld.param.u64 %p, [p];\n\
         .loc 1 24 17\n.loc 2 216 16, function_name s, inlined_at 1 24 17\n.loc 2 196 12, function_name s, inlined_at 2 216 16\n\
         st.global.u32 [%p], 1;\nret;\n}\n.file 1 \"kernel.py\"\n.file 2 \"standard.py\"\n.section .debug_str { s: .b8 115, 0 }\n",
    );
    let outcome = folder.run("run inlined.ptx --arg u32[0] --format json");
    let note = "line 10 was compiled from standard.py:196:12, inlined at standard.py:216:16, inlined at kernel.py:24:17";
    assert!(outcome.stderr.contains(note), "{}", outcome.transcript());
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    let place =
        |file: &str, line, column| serde_json::json!({ "file": file, "line": line, "column": column });
    let mut original = place("standard.py", 196, 12);
    original["inlined_at"] = [place("standard.py", 216, 16), place("kernel.py", 24, 17)].into();
    assert_eq!(object["fault"]["original"], original, "{}", outcome.transcript());
    let outcome = folder.run("run inlined.ptx --arg u32[1] --block 64 --tool racecheck --format json");
    assert!(outcome.stderr.contains(note), "{}", outcome.transcript());
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(object["findings"][0]["first"]["original"], original, "{}", outcome.transcript());
}

/// Where the host has no more threads, the one that there is does all the work.
#[cfg(target_os = "linux")]
#[test]
fn a_launch_needs_no_more_threads_than_there_are() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;

    let mut command = Command::new("sh");
    // The limit is that of a user, and root has none.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    // Shells call it by different letters.
    command.args(["-c", "ulimit -u 1 2>/dev/null || ulimit -p 1; exec \"$@\"", "sh"]);
    let command = command.arg(env!("CARGO_BIN_EXE_ptxvm")).current_dir(root());
    let words = "run examples/saxpy/saxpy.ptx --grid 4096 --block 256 --threads 3 --arg 1048576 --arg 4 --arg f32[1048576]=2 \
                 --arg f32[1048576]=1 --print 3";
    let outcome = finish(command.args(words.split_whitespace())).unwrap();
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stdout.starts_with("3: f32[1048576] = [9, 9, 9"), "{}", outcome.transcript());
    // It says so itself that this takes a thread.
    assert!(outcome.stderr.starts_with("note: Ctrl-C will not keep results"), "{}", outcome.transcript());
}

#[test]
fn blanks_in_names_of_templates_do_not_matter() {
    let folder = Folder::new();
    let kernel = |name: &str| format!(".visible .entry {name}() {{ ret; }}\n");
    let kernels = kernel("_Z4axpbIfLi3EEvv") + &kernel("_Z4axpbIfLi4EEvv");
    folder.write("two.ptx", format!(".version 8.0\n.target sm_80\n.address_size 64\n{kernels}"));
    for name in ["axpb<float,3>", "axpb<float, 3>", "_Z4axpbIfLi3EEvv"] {
        let outcome = finish(folder.command("run two.ptx --entry").arg(name)).unwrap();
        assert!(
            outcome.code == Some(0) && outcome.stdout.starts_with("_Z4axpbIfLi3EEvv"),
            "{}",
            outcome.transcript()
        );
    }
}
