//! `ptxvm explain` and `ptxvm isa`: pages from the table, whose examples run.

mod common;

use common::{Outcome, finish, ptxvm};

fn explain(name: &str) -> Outcome {
    finish(ptxvm().args(["explain", name])).expect("it ends")
}

/// The PTX between the fences of a page.
fn example(page: &str) -> Option<&str> {
    Some(page.split_once("```ptx\n")?.1.split_once("```")?.0)
}

/// Checks that an example runs; returns what went wrong.
fn run(name: &str, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("example.ptx"), text).expect("written");
    let mut command = ptxvm();
    command.current_dir(folder.path()).args(["run", "example.ptx", "--arg", "u32[8]", "--print", "0"]);
    let outcome = finish(&mut command).expect("it ends");
    (outcome.code != Some(0)).then(|| format!("{name}: {}\n{text}", outcome.transcript()))
}

fn opcodes() -> Vec<&'static str> {
    let mut opcodes: Vec<&str> = isa::FORMS.iter().map(|form| form.opcode.name()).collect();
    opcodes.dedup();
    opcodes
}

#[test]
fn every_opcode_has_a_page_whose_example_runs() {
    let (mut failures, mut without) = (Vec::new(), Vec::new());
    for opcode in opcodes() {
        let outcome = explain(opcode);
        assert_eq!(outcome.code, Some(0), "{opcode}: {}", outcome.transcript());
        assert!(outcome.stdout.starts_with(&format!("# {opcode}\n")), "{opcode}");
        match example(&outcome.stdout) {
            Some(text) => {
                assert!(text.contains(opcode), "{opcode}: {text}");
                failures.extend(run(opcode, text));
            }
            None => without.push(opcode),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Those that the machine does not execute, or that need more than an array.
    let expected = [
        "clusterlaunchcontrol",
        "fabric",
        "spcompress",
        "spdecompress",
        "suld",
        "suq",
        "sured",
        "sust",
        "tcgen05",
        "tensormap",
        "tex",
        "tld4",
        "txq",
    ];
    assert_eq!(without, expected);
}

#[test]
fn the_example_of_every_pure_row_runs() {
    let mut failures = Vec::new();
    let mut count = 0;
    for (index, form) in isa::FORMS.iter().enumerate() {
        let id = isa::FormId(index as u16);
        if !matches!(form.action, isa::Action::Pure(_)) {
            continue;
        }
        let spelling = isa::enumerate::spellings(id).find(isa::enumerate::Spelling::is_legal);
        let name = spelling.expect("a legal spelling").mnemonic();
        let outcome = explain(&name);
        match example(&outcome.stdout) {
            Some(text) => failures.extend(run(&name, text)),
            None => failures.push(format!("{name}: no example\n{}", outcome.transcript())),
        }
        count += 1;
    }
    assert!(count > 200, "{count} rows");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn pages_say_what_the_table_says() {
    for (name, expected) in [
        (
            "setp",
            &["| `.lt` | true | false | false | false |", "| `.nan` | false | false | false | true |"][..],
        ),
        (
            "setp.lt.f16x2",
            &[
                "Legal since PTX 4.2, sm_53",
                "9.7.7.2",
                "| p\\|q | written | `.pred` |",
                "`.b32` `.f16x2` | none",
            ],
        ),
        ("fma.rn.f32.f16", &["Legal since PTX 8.6, sm_100", "| a | read | `.f16` | `.b16` `.f16` | none |"]),
        ("set.lt.u32.bf16", &["Legal since PTX 7.8, sm_90"]),
        (".ftz", &["`slct{.ftz}.dtype.f32 d, a, b, c:f32` | PTX 1.4, sm_10 |"]),
        (".f16x2", &["2 elements of type .f16", "`.b32` `.f16x2`"]),
        ("min", &["| NaN | 1.0 | 1.0 | NaN |", "| -0.0 | +0.0 | -0.0 | -0.0 |"]),
        ("slct", &["| NaN of any sign and payload | b |"]),
    ] {
        let outcome = explain(name);
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        for text in expected {
            assert!(outcome.stdout.contains(text), "`{text}` for {name}\n{}", outcome.transcript());
        }
    }
}

#[test]
fn unknown_names_are_refused_with_what_is_near() {
    for (name, expected) in [
        ("sept", "did you mean 'setp'?"),
        ("setp.lt.f61", "Unknown modifier '.f61'"),
        (".fzt", "did you mean '.ftz'?"),
        ("ftz", "write `.ftz`"),
        ("frobnicate", "`ptxvm isa` lists"),
        ("ADD", "in lower case: 'add'"),
        ("rnu", "did you mean the modifier '.rn'?"),
        ("%tid", "`mov` reads: `mov.u32 %r, %tid.x;`"),
        ("%r1", "is a register"),
        (".entry", "is a directive"),
        ("entry", "is a directive"),
        ("setp..f32", "is no instruction"),
    ] {
        let outcome = explain(name);
        assert_eq!(outcome.code, Some(1), "{name}: {}", outcome.transcript());
        assert!(outcome.stderr.contains(expected), "{name}: {}", outcome.transcript());
    }
}

#[test]
fn the_table_is_printed_whole() {
    let outcome = finish(ptxvm().args(["isa", "--format", "json"])).expect("it ends");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(rows.len(), isa::FORMS.len());
    for row in &rows {
        let core =
            matches!(row["opcode"].as_str(), Some("set" | "setp" | "selp" | "slct" | "add" | "sub" | "fma"));
        assert!(!core || row["executed"] == true, "{row}");
        assert!(
            row["checked"] == true && row["form"].is_string() && row["since_version"].is_string(),
            "{row}"
        );
    }
    let executed = |opcode: &str| rows.iter().any(|row| row["opcode"] == opcode && row["executed"] == true);
    assert!(
        executed("ld")
            && executed("shfl")
            && executed("vote")
            && executed("bra")
            && executed("alloca")
            && executed("tex")
            && executed("tcgen05")
            && executed("multimem")
    );

    let outcome = finish(ptxvm().args(["isa", "--unsupported"])).expect("it ends");
    // What needs a fabric, and what no published document specifies: where elements lie, or which are selected.
    let is_known = |row: &str| {
        row.contains("fabric.try_")
            || row.contains("ldmatrix") && row.contains(".dtype.atype")
            || ["spcompress", "spdecompress"].iter().any(|name| row.contains(name))
    };
    let mut rows = outcome.stdout.lines().filter(|line| line.starts_with("| `"));
    assert!(rows.all(is_known));
    let outcome = finish(ptxvm().arg("isa")).expect("it ends");
    assert!(
        outcome
            .stdout
            .contains("| `slct.dtype.s32 d, a, b, c:.s32` | 9.7.6.4 | PTX 1.0, sm_10 | yes | yes | yes |")
    );
}

/// What `cargo xtask docs` wrote is what the command says today.
#[test]
fn the_pages_of_docs_are_current() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = finish(ptxvm().args(["isa", "--pages"]).arg(folder.path())).expect("it ends");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let docs = common::root().join("docs/isa");
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        let current = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
        let wanted = std::fs::read_to_string(&path).expect("text");
        assert!(current == wanted, "docs/isa/{} is out of date: run `cargo xtask docs`", name.display());
        count += 1;
    }
    // The table, coverage, and what no oracle backs.
    assert_eq!(count, opcodes().len() + 3);
    assert_eq!(std::fs::read_dir(docs).expect("a folder").count(), count, "pages of no instruction");
}

#[test]
fn a_name_that_lacks_something_lists_the_forms_that_have_what_it_has() {
    for (name, lacks, form) in [
        ("setp.lt", "Unexpected instruction types", "| `setp.CmpOp{.ftz}.f16x2 p[\\|q], a, b` |"),
        ("setp.f32", "Comparison modifier required", "| `setp.CmpOp{.ftz}.type p[\\|q], a, b` |"),
        ("cp.async.bulk.tensor", ".dim modifier required", "| `cp.async.bulk.tensor.dim"),
        ("tcgen05.mma", ".cta_group modifier required", "| `tcgen05.mma.cta_group.kind"),
    ] {
        let outcome = explain(name);
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        assert!(outcome.stdout.starts_with(&format!("# {name}\n")), "{}", outcome.transcript());
        assert!(outcome.stdout.contains(lacks) && outcome.stdout.contains(form), "{}", outcome.transcript());
    }
    assert!(!explain("cp.async.bulk.tensor").stdout.contains("`cp.async.ca"));
}

#[test]
fn pages_are_for_programs_too() {
    let outcome = finish(ptxvm().args(["explain", "setp.lt.f16x2", "--format", "json"])).expect("it ends");
    let object: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(object["name"], "setp.lt.f16x2");
    assert_eq!(object["forms"], serde_json::json!(["setp.CmpOp{.ftz}.f16x2 p[|q], a, b"]));
    assert!(object["page"].as_str().is_some_and(|page| page.starts_with("# setp.lt.f16x2")));
    let outcome = finish(ptxvm().args(["explain", "sept", "--format", "json"])).expect("it ends");
    assert_eq!(outcome.code, Some(1));
    let object: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(object["error"]["help"], "did you mean 'setp'?");
}

#[test]
fn intrinsics_of_cuda_have_pages() {
    let page = explain("__hgt2").stdout;
    assert!(page.contains("__half2 __hgt2(const __half2 a, const __half2 b)\n"), "{page}");
    assert!(page.contains("set.gt.bf16x2.bf16x2 %r1,%r2,%r3;\n"), "{page}");
    assert!(page.contains("- `ptxvm explain set.gt.f16x2.f16x2`\n"), "{page}");
    assert!(explain("atomicAdd").stdout.contains("atom.relaxed.gpu.add.f32 %r2, [%rd1], %r1;\n"));
    let wrong = explain("__hgt22");
    assert_eq!(wrong.code, Some(1), "{}", wrong.transcript());
    assert!(wrong.stderr.contains("help: the nearest name is `__hgt2`"), "{}", wrong.transcript());
}

#[test]
fn codes_of_errors_have_pages() {
    let page = explain("requires-target").stdout;
    assert!(page.starts_with("# requires-target\n\n") && page.contains("requires .target sm_"), "{page}");
    assert!(page.contains("\nhelp: "), "{page}");
    assert!(explain("race-write-read").stdout.starts_with("# race-write-read\n\n"));
    // An instruction and a fault.
    let page = explain("trap").stdout;
    assert!(page.starts_with("# trap\n") && page.matches("# trap\n").count() == 2, "{page}");
    let wrong = explain("requires-targets");
    assert_eq!(wrong.code, Some(1), "{}", wrong.transcript());
    assert!(wrong.stderr.contains("help: the nearest code is `requires-target`"), "{}", wrong.transcript());
}
