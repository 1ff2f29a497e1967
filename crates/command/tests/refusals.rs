//! What cannot be run is refused before it runs, or named when it faults: hostile sizes, missing definitions, the wrong
//! neighbour.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Folder, Outcome};
use serde_json::json;

/// A module for `sm_80` with these declarations, as a file of a folder.
fn module(folder: &Folder, name: &str, text: &str) {
    folder.write(name, format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}"));
}

#[test]
fn sizes_whose_sum_no_number_holds_get_the_error_of_a_single_one() {
    let folder = Folder::new();
    let huge = ".align 16 .b8 c[18446744073709551615];";
    for (before, after) in [("", ""), (".const .b32 a[4];", ""), (".const .b32 a[4];", ".const .b32 d[4];")] {
        module(
            &folder,
            "k.ptx",
            &format!("{before}\n.const {huge}\n{after}\n.visible .entry k() {{ ret; }}\n"),
        );
        folder.fails(
            "run k.ptx",
            1,
            &["File uses too much global constant data (0xffffffffffffffff bytes, 0x10000 max)"],
        );
    }
    for variables in [
        ".shared .align 16 .b8 c[18446744073709551615];",
        ".shared .align 16 .b8 c[18446744073709551600]; .shared .b32 a[16];",
        ".shared .b32 a[16]; .shared .align 16 .b8 c[18446744073709551600];",
    ] {
        let body = "st.shared.b32 [c+4096], 9; ret;";
        module(&folder, "k.ptx", &format!(".visible .entry k() {{ {variables} {body} }}\n"));
        let message = "Entry function 'k' uses too much shared data (0xffffffffffffffff bytes, 0xc000 max)";
        for dynamic in ["0", "1", "18446744073709551615"] {
            folder.fails(&format!("run k.ptx --shared {dynamic}"), 1, &[message]);
        }
    }
}

#[test]
fn what_nothing_defines_is_refused_before_the_launch() {
    let folder = Folder::new();
    let externs = ".extern .func (.reg .u32 r) g(.reg .u32 x);\n.extern .global .u32 tab[4];\n.extern .global .u32 far[];\n\
                   .extern .const .u32 c;\n.extern .func h();\n.global .u64 table[2] = {0, tab};\n";
    let code = |name: &str, body: &str| {
        format!(".visible .entry {name}()\n{{\n.reg .u64 %p;\n.reg .u32 %r, %t;\n{body}\nret;\n}}\n")
    };
    let text = format!(
        "{externs}.func near() {{ call h; ret; }}\n{}{}{}{}{}{}{}",
        code("calls", "mov.u32 %t, 1;\ncall (%r), g, (%t);"),
        code("loads", "ld.global.u32 %t, [tab+8];\nld.global.u32 %t, [far];\nst.global.u32 [tab], %t;"),
        code("constant", "ld.const.u32 %t, [c];"),
        code("through", "call near;"),
        code("initial", "mov.u64 %p, table;"),
        code("address", "mov.u64 %p, g;"),
        code("nothing", "mov.u32 %t, 1;"),
    );
    module(&folder, "a.ptx", &text);
    for (entry, parts) in [
        (
            "calls",
            &["Undefined reference to 'g' in 'a.ptx'", "a.ptx:16:", "it needs it", "no module has a body"][..],
        ),
        ("loads", &["Undefined reference to 'tab'", "Undefined reference to 'far'", "no module defines it"]),
        ("constant", &["Undefined reference to 'c'"]),
        ("through", &["Undefined reference to 'h'", "it reaches `near`, which needs it"]),
        ("initial", &["Undefined reference to 'tab'", "it reaches `table`, which needs it"]),
        ("address", &["Undefined reference to 'g'"]),
    ] {
        let outcome = folder.fails(&format!("run a.ptx --entry {entry} --format json"), 1, parts);
        assert!(outcome.stdout.contains("\"code\":\"undefined-reference\""), "{}", outcome.transcript());
        let message = "Undefined reference to 'tab'";
        assert!(outcome.stderr.matches(message).count() < 2, "{}", outcome.transcript());
    }
    // What the kernel cannot reach does not matter, nor does it for a file that is linked with others.
    folder.fails("run a.ptx --entry nothing", 0, &[]);
    folder.fails("check -c a.ptx", 0, &["no errors"]);
    folder.fails("check a.ptx", 1, &["Unresolved extern function 'g'", "Unresolved extern function 'h'"]);
    // With the file that defines it, it runs.
    module(&folder, "c.ptx", ".visible .func (.reg .u32 r) g(.reg .u32 x) { add.u32 r, x, 200; ret; }\n");
    folder.fails("run a.ptx c.ptx --entry calls", 0, &[]);
}

#[test]
fn a_panic_of_rust_needs_no_body_until_it_is_called() {
    let folder = Folder::new();
    let panic = "_RNvNtCs1jIwKPSfU11_4core9panicking18panic_bounds_check";
    let text = format!(
        ".extern .func {panic}(.param .b64 index);\n.visible .entry k(.param .u32 n)\n{{\n.reg .u32 %n;\n.reg .pred %p;\n\
         ld.param.u32 %n, [n];\nsetp.lt.u32 %p, %n, 3;\n@%p bra good;\n{{ .param .b64 a; st.param.b64 [a], 7; call {panic}, (a); }}\n\
         good: ret;\n}}\n"
    );
    module(&folder, "k.ptx", &text);
    folder.fails("run k.ptx --arg 2", 0, &[]);
    folder.fails(
        "run k.ptx --arg 3",
        3,
        &["a check of the Rust program, of an index or a value, does not hold"],
    );
}

#[test]
fn an_offset_beyond_an_array_does_not_land_in_the_next() {
    let folder = Folder::new();
    let load =
        "ld.param.u64 %a, [a];\nld.param.s64 %d, [d];\nadd.s64 %a, %a, %d;\nst.global.u32 [%a], 1;\nret;";
    let params = ".param .u64 a, .param .u64 b, .param .u64 c, .param .s64 d";
    module(&folder, "k.ptx", &format!(".visible .entry k({params}) {{ .reg .u64 %a, %d;\n{load} }}\n"));
    let arrays = "--arg u32[128] --arg u32[128] --arg u32[128]";
    folder.fails(&format!("run k.ptx {arrays} --arg 508"), 0, &[]);
    for (offset, place) in [
        ("512", "just past the end of argument 0"),
        ("1024", "512 bytes past the end of argument 0"),
        ("4294967296", "4294966784 bytes past the end of argument 0"),
        ("68719476732", "68719476220 bytes past the end of argument 0"),
    ] {
        folder.fails(&format!("run k.ptx {arrays} --arg {offset}"), 3, &["out of bounds", place]);
    }
}

#[test]
fn a_kernel_whose_output_nobody_reads_is_stopped() {
    let folder = Folder::new();
    let text = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
                .global .align 1 .b8 f[] = {120, 120, 120, 10, 0};\n.visible .entry k()\n{\n.reg .u64 %a;\n\
                mov.u64 %a, f; cvta.global.u64 %a, %a;\nL: { .param .b64 a; st.param.b64 [a], %a; .param .b64 b;\n\
                st.param.b64 [b], 0; .param .b32 r; call (r), vprintf, (a, b); }\nbra L;\n}\n";
    module(&folder, "k.ptx", text);
    let mut command = folder.command("run k.ptx --max-steps 100000000");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // The reader goes away after the first line.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let outcome = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), outcome.status.code()), ("xxx\n", Some(141)));
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "");
}

#[test]
fn an_existing_file_stays_whole_until_the_new_one_is() {
    let folder = Folder::new();
    // Values of one row are no picture, which is found out while it is written.
    folder.write("y.png", "precious");
    folder.fails(
        "run scale.ptx --block 3 --arg f32[3]=1 --arg 2 --out 0=y.png",
        2,
        &["cannot write `y.png`"],
    );
    assert_eq!(std::fs::read(folder.path("y.png")).unwrap(), b"precious");
    folder.write("y.bin", "precious");
    folder.fails("run scale.ptx --block 1 --arg f32[1]=1 --arg 2 --out 0=y.bin", 0, &[]);
    assert_eq!(std::fs::read(folder.path("y.bin")).unwrap(), 2f32.to_le_bytes());
    let names = std::fs::read_dir(folder.path("")).unwrap().flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["scale.ptx", "y.bin", "y.png"]);
}

#[test]
fn options_that_contradict_each_other_or_stand_in_the_wrong_place_are_refused() {
    let folder = Folder::new();
    let run = "run scale.ptx --block 3 --arg f32[3]=1 --arg 2";
    for (options, parts) in [
        ("--deterministic --threads 4", &["--deterministic runs the blocks on one host thread"][..]),
        ("--schedule 1 --threads 2", &["--schedule runs the blocks on one host thread"]),
        ("--out 0=y.bin --out 0=y.bin", &["would both be saved to `y.bin`"]),
        ("--profile p.html", &["write --profile=p.html"]),
        ("--grid -4", &["`-4` is no number"]),
        ("--shared -4", &["`-4` is no size"]),
        ("--shared 4x", &["write 4096, 48K, 2M, 1G or 1e6"]),
    ] {
        let outcome = folder.fails(&format!("{run} {options}"), 2, parts);
        assert!(!outcome.stderr.contains("-- -4"), "{}", outcome.transcript());
    }
    folder.fails(
        &format!("{run} --deterministic --threads 1 --shared 48K --heap 1M --max-steps 1e6"),
        0,
        &[],
    );
    folder.fails(
        "run scale.ptx --block 3 --arg f32[1e3] --arg 2 --print 0 --shared 300K",
        2,
        &["307200 bytes of shared"],
    );
}

/// The last line of stdout as JSON.
fn object(outcome: &Outcome) -> serde_json::Value {
    let line = outcome.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", outcome.transcript()))
}

#[test]
fn faults_and_refusals_are_told_to_programs_in_full() {
    let folder = Folder::new();
    let run = |words: &str| folder.run(&format!("run scale.ptx --format json {words}"));
    let fault = &object(&run("--block 8 --arg f32[3] --arg 2"))["fault"];
    assert_eq!((&fault["kind"], &fault["kernel"]), (&json!("out-of-bounds"), &json!("scale")));
    assert_eq!((&fault["block"], &fault["thread"]), (&json!([0, 0, 0]), &json!([3, 0, 0])));
    let access = &fault["access"];
    assert_eq!(
        (&access["bytes"], &access["write"], &access["space"]),
        (&json!(4), &json!(false), &json!("global"))
    );
    assert!(access["nearest"].as_str().unwrap().starts_with("just past the end of argument 0"), "{access}");
    // Who waits where.
    let text = ".visible .entry k() { .reg .pred %p; .reg .u32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;\n\
                @%p bar.sync 0, 64;\n@!%p bar.sync 1, 64;\nret; }\n";
    module(&folder, "k.ptx", text);
    let fault = object(&folder.run("run k.ptx --block 64 --format json"))["fault"].clone();
    assert_eq!(fault["kind"], "deadlock");
    let notes = fault["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["line"].is_u64() && note["text"].is_string()), "{fault}");
    for (words, code, message) in [
        ("--block 3 --arg f32[3]", 2, "takes 2 arguments"),
        ("--block many", 2, "'many'"),
        ("--frobnicate", 2, "--frobnicate"),
        ("--arg @nowhere.npy --arg 2", 1, "cannot read"),
    ] {
        let outcome = run(words);
        let error = &object(&outcome)["error"];
        assert_eq!(
            (outcome.code, &error["exit_code"]),
            (Some(code), &json!(code)),
            "{}",
            outcome.transcript()
        );
        assert!(error["message"].as_str().unwrap().contains(message), "{}", outcome.transcript());
    }
    let stopped = &object(&run("--block 3 --arg f32[3] --arg 2 --max-steps 1"))["fault"];
    assert_eq!((&stopped["kind"], &stopped["kernel"]), (&json!("step-limit"), &json!("scale")));
    assert!(stopped["block"].is_array() && stopped["thread"].is_array(), "{stopped}");
    let outcome = folder.run("eval add.u32 1 --format json");
    assert_eq!((outcome.code, &object(&outcome)["error"]["code"]), (Some(1), &json!("bad-input")));
}

#[test]
fn a_kernel_is_found_by_a_part_of_its_name_and_shown_as_its_author_wrote_it() {
    let folder = Folder::new();
    let kernel = |name: &str| format!(".visible .entry {name}(.param .u64 {name}_param_0) {{ ret; }}\n");
    let (float, double, other) = ("_Z5saxpyIfEvPT_", "_Z5saxpyIdEvPT_", "plain");
    module(&folder, "k.ptx", &format!("{}{}{}", kernel(float), kernel(double), kernel(other)));
    for entry in [float, "saxpy<float>", "float", "plain", "pla"] {
        folder.fails(&format!("run k.ptx --arg 1 --entry {entry}"), 0, &[]);
    }
    folder.fails(
        "run k.ptx --arg 1 --entry saxpy",
        2,
        &["several kernels", "saxpy<double>    _Z5saxpyIdEvPT_"],
    );
    folder.fails(
        "run k.ptx --arg 1 --entry sax_py",
        2,
        &["there is no kernel `sax_py`", "saxpy<float>", "plain"],
    );
    let outcome =
        folder.fails("run k.ptx --entry float", 2, &["`saxpy<float>` takes 1 argument", "0: .u64 param_0"]);
    assert!(!outcome.stderr.contains(float), "{}", outcome.transcript());
}

#[test]
fn a_null_pointer_is_called_one() {
    let folder = Folder::new();
    folder.fails("run scale.ptx --arg 0 --arg 2", 3, &["= note: a null pointer"]);
    folder.fails("run scale.ptx --arg 4096 --arg 2", 3, &["= note: 4096 bytes behind a null pointer"]);
}

#[test]
fn local_variables_that_are_too_large_point_to_their_kernel() {
    let folder = Folder::new();
    let body = ".local .b8 l[1048576];\n.reg .u64 %a;\nmov.u64 %a, l;\nst.local.u8 [%a], 1;\nret;";
    module(
        &folder,
        "k.ptx",
        &format!(".visible .entry small() {{ ret; }}\n.visible .entry large() {{\n{body}\n}}\n"),
    );
    folder.fails("run k.ptx --entry large", 3, &["stack overflow", "k.ptx:5:17", "in kernel `large`"]);
}

const FILL: &str = "\
.visible .entry fill(.param .align 8 .b8 s[24])
{
.reg .u64 %p;
.reg .u32 %n, %i;
.reg .f32 %f;
.reg .pred %q;
ld.param.u64 %p, [s];
ld.param.u32 %n, [s+8];
ld.param.f32 %f, [s+12];
mov.u32 %i, %tid.x;
setp.ge.u32 %q, %i, %n;
@%q ret;
mad.wide.u32 %p, %i, 4, %p;
st.global.f32 [%p], %f;
ret;
}
";

#[test]
fn structures_with_arrays_are_arguments() {
    let folder = Folder::new();
    module(&folder, "k.ptx", FILL);
    let run = |spec: &str, more: &str| {
        let mut command = folder.command(&format!("run k.ptx --block 4 {more}"));
        common::finish(command.args(["--arg", spec])).unwrap()
    };
    let outcome = run("{f32[4], 3, 2.5, 1:u64}", "--print 0.0 --out 0.0=y.bin");
    assert!(outcome.stdout.starts_with("0.0: f32[4] = [2.5, 2.5, 2.5, 0]"), "{}", outcome.transcript());
    assert_eq!(std::fs::read(folder.path("y.bin")).unwrap().len(), 16);
    let outcome = run("{f32[2], 3, 2.5, 1:u64}", "");
    assert_eq!(outcome.code, Some(3));
    assert!(outcome.stderr.contains("past the end of argument 0.0 (f32[2])"), "{}", outcome.transcript());
    for (spec, more, part) in [
        ("{f32[4], 3, 2.5}", "", "16 bytes, but the parameter has 24"),
        ("{f32[4], 3, 2.5, x}", "", "`x` is no field"),
        ("{f32[4], 3", "", "no `}` at its end"),
        ("{f32[4], 3, 2.5, 1:u64}", "--print 0", "the arrays of the structure are 0.0"),
        ("{f32[4], 3, 2.5, 1:u64}", "--print 0.1", "the arrays of the structure are 0.0"),
    ] {
        let outcome = run(spec, more);
        assert_eq!(outcome.code, Some(2), "{spec} {more}: {}", outcome.transcript());
        assert!(outcome.stderr.contains(part), "{spec} {more}: {}", outcome.transcript());
    }
}

#[test]
fn an_array_of_numba_is_one_argument() {
    let folder = Folder::new();
    // Stores items, bytes of an item, and for two dimensions the extents and strides.
    let params = (0..10).map(|i| format!(".param .u64 k_param_{i}")).collect::<Vec<_>>().join(", ");
    let store = |i: usize, from: usize| {
        format!("ld.param.u64 %v, [k_param_{from}]; st.global.u64 [%p+{}], %v;\n", 8 * i)
    };
    let stores: String =
        [2, 3, 5, 6, 7, 8, 9].into_iter().enumerate().map(|(i, from)| store(i, from)).collect();
    let text = format!(
        ".visible .entry k({params})\n{{\n.reg .u64 %p, %v;\nld.param.u64 %p, [k_param_4];\n{stores}ret;\n}}\n"
    );
    module(&folder, "k.ptx", &text);
    let outcome = folder.fails("run k.ptx --arg numba:u64[2x4] --arg 7 --print 0", 0, &[]);
    let expected = "0: u64[2x4] = [[8, 8, 2, 4],\n            [32, 8, 7, 0]]";
    assert!(outcome.stdout.starts_with(expected), "{}", outcome.transcript());
    folder.fails("run k.ptx --arg numba:u64[8] --arg 7", 2, &["takes 10 arguments", "8 were given"]);
    folder.fails("run k.ptx --arg 7 --arg numba:u64[2x4] --arg 1", 2, &["takes 10 arguments"]);
    folder.fails("run k.ptx --arg numba:7", 2, &["is no array"]);
}

#[test]
fn records_are_bytes_with_the_size_of_one_as_the_last_extent() {
    let folder = Folder::new();
    let header = "{'descr': [('x', '<f4'), ('n', '<i4', (2,))], 'fortran_order': False, 'shape': (2,), }\n";
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend((0..24).collect::<Vec<u8>>());
    folder.write("x.npy", &file);
    let outcome = folder.fails("run scale.ptx --block 1 --arg @x.npy --arg 1 --print 0", 0, &[]);
    assert!(outcome.stdout.starts_with("0: bytes[2x12] = "), "{}", outcome.transcript());
    folder.write("odd.npy", &file[..file.len() - 1]);
    folder.fails("run scale.ptx --arg @odd.npy --arg 1", 1, &["not those of [2] records"]);
    folder.fails("run scale.ptx --arg @x.npy:f32 --arg 1", 1, &["read as bytes only"]);
}

#[test]
fn clusters_that_a_kernel_cannot_have_are_refused() {
    let folder = Folder::new();
    let kernel = |name: &str, bounds: &str| format!(".visible .entry {name}() {bounds} {{ ret; }}\n");
    let kernels = [
        kernel("plain", ""),
        kernel("pair", ".reqnctapercluster 2"),
        kernel("explicit", ".explicitcluster"),
        kernel("four", ".maxclusterrank 4"),
    ];
    folder.write("k.ptx", format!(".version 8.0\n.target sm_90\n.address_size 64\n{}", kernels.join("")));
    module(&folder, "old.ptx", &kernel("old", ""));
    for (words, wrong) in [
        ("k.ptx --entry plain --grid 4 --cluster 2,2", "a grid of 4,1,1 is no multiple of clusters of 2,2,1"),
        ("k.ptx --entry pair --grid 3", "a grid of 3,1,1 is no multiple of clusters of 2,1,1"),
        ("k.ptx --entry pair --grid 4 --cluster 4", "requires clusters of 2,1,1 (.reqnctapercluster)"),
        ("k.ptx --entry explicit --grid 4", "must be told how large its clusters are (.explicitcluster)"),
        ("k.ptx --entry four --grid 8 --cluster 8", "it must have from 1 to 4 blocks (.maxclusterrank)"),
        ("old.ptx --grid 4 --cluster 2", "clusters need sm_90, kernel `old` is for sm_80"),
    ] {
        folder.fails(&format!("run {words}"), 2, &[wrong]);
    }
    folder.fails("run k.ptx --entry plain --grid 34 --cluster 17", 2, &["must be 1 to 16"]);
    for words in [
        "plain --grid 16 --cluster 16",
        "pair --grid 4",
        "explicit --grid 4 --cluster 1",
        "four --grid 8 --cluster 2,1",
    ] {
        folder.fails(&format!("run k.ptx --entry {words}"), 0, &[]);
    }
}
