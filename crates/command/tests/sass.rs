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
    // nvdisasm prints the lower half first.
    let text = "HSETP2.LT.AND P0, P1, R0, R1, P2 ;";
    for word in ["000fc200011010000000000100007234", "0x0000000100007234 0x000fc20001101000"] {
        let back = run(&["dis", "--arch", "sm_80", "--hex", word]);
        assert_eq!(back.stdout.trim_end(), text, "{}", back.transcript());
    }
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

#[test]
fn the_sense_is_that_of_ptxas() {
    let outcome = run(&["lower", "--arch", "sm_53", "setp.lt.f16 p, a, b"]);
    assert_eq!(
        outcome.stdout,
        "HSETP2.GEU.AND P0, PT, R0.H0_H0, R1.H0_H0, PT;\n",
        "{}",
        outcome.transcript()
    );
    assert!(outcome.stderr.contains("P0 is the complement of p"), "{}", outcome.transcript());
    let outcome = run(&["lower", "--arch", "sm_53", "--as-written", "setp.lt.f16 p, a, b"]);
    assert_eq!(outcome.stdout, "HSETP2.LT.AND P0, PT, R0.H0_H0, R1.H0_H0, PT;\n", "{}", outcome.transcript());
    for bad in [
        "setp.lt.f16 p|q, a, b",
        "setp.lt.f16 p, a, 0x7e00",
        "setp.lt.f16 p, 1, 2",
        "setp.lt.f16 p, a, 0x13c00",
        "setp.lt.f16 p, a, c[0x0][2]",
    ] {
        assert_eq!(run(&["lower", "--arch", "sm_53", bad]).code, Some(1), "{bad}");
    }
    assert_eq!(run(&["lower", "--arch", "sm_53", "add.f16 d, a, b"]).code, Some(1));
}

#[test]
fn literals_parameters_and_conversions_are_lowered() {
    for (arch, ptx, text, note) in [
        ("sm_53", "setp.lt.f16 p, a, 0x3c00", "HSETP2.GEU.AND P0, PT, R0.H0_H0, 1, 1, PT;", "complement"),
        ("sm_60", "setp.lt.f16 p, 0x1, a", "HSETP2.GT.AND P0, PT, R1.H0_H0, c[0x2][0x0], PT;", "0x33800000"),
        ("sm_53", "setp.lt.f16 p, 0x1, a", "HSETP2.GT.AND P0, PT, R1.H0_H0, R0.H0_H0, PT;", "R0 is 0x1"),
        (
            "sm_70",
            "setp.gt.f16 p, a, cvt.rz(c[0][0x174])",
            "HSETP2.GT.AND P0, PT, R0.H0_H0, c[0x0] [0x174].F32, PT ;",
            "R0 is a",
        ),
        (
            "sm_90",
            "setp.gt.bf16 p, a, c[0x0][0x210]",
            "HSETP2.BF16_V2.GT.AND P0, PT, R0.H0_H0, UR1.H0_H0, PT ;",
            "UR1 is c[0x0][0x210]",
        ),
    ] {
        let outcome = run(&["lower", "--arch", arch, ptx]);
        assert_eq!(outcome.stdout.trim_end(), text, "{}", outcome.transcript());
        assert!(outcome.stderr.contains(note), "{}", outcome.transcript());
    }
}

#[test]
fn memory_is_written_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("group.bin");
    let first = "HSETP2.LT.AND P0, P1, R1.reuse, R2, PT &req={5,0} &rd=0x1 &wr=0x2 ?trans4;";
    let file = path.to_str().unwrap();
    let outcome =
        run(&["asm", "--arch", "sm_53", "--output", file, first, "HSETP2.GE P1, PT, R1, R2 ?sched16"]);
    assert_eq!(outcome.stdout, "5d20038800270101\n5d2003b00027010f\n", "{}", outcome.transcript());
    // As nvdisasm 12.8 lists the file, braces around the pair.
    let outcome = run(&["dis", "--arch", "sm_53", file]);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[1], "/*0008*/ HSETP2.LT.AND P0, P1, R1.reuse, R2, PT ;", "{}", outcome.transcript());
    assert_eq!(lines[2], "/*0010*/ { HSETP2.GE.AND P1, PT, R1, R2, PT ;", "{}", outcome.transcript());
}

#[test]
fn cubins_are_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/sass/cubins");
    let outcome = run(&["dis", "--arch", "sm_53", &format!("{folder}/sm_53.cubin")]);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    for line in [
        ".text.pairs:",
        "/*0000*/ 0x001fc800fe2007f6",
        "/*0008*/ 0x4c98078000870001",
        "/*0038*/ HSETP2.NEU.FTZ.AND P0, PT, R0.H0_H0, R5.H0_H0, PT ;",
        "/*0150*/ HSETP2.GEU.AND P2, PT, R7.H0_H0, R10.H0_H0.reuse, PT ;",
    ] {
        assert!(lines.contains(&line), "{line}: {}", outcome.transcript());
    }
    let outcome = run(&["dis", "--arch", "sm_70", &format!("{folder}/sm_53.cubin")]);
    assert!(outcome.stderr.contains("says that it is for sm_53"), "{}", outcome.transcript());
    let outcome = run(&["dis", "--arch", "sm_70", &format!("{folder}/none.cubin")]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.transcript());
}

#[test]
fn programs_get_json() {
    let json = |args: &[&str], code: i32| -> Vec<serde_json::Value> {
        let outcome = run(&[args, &["--format", "json"]].concat());
        assert_eq!(outcome.code, Some(code), "{}", outcome.transcript());
        outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let asm =
        ["asm", "--arch", "sm_53", "HSETP2.GT P1, P1, R3, 19.5, 1 &req={0,2}", "HSETP2.LTE P0, PT, R1, R2"];
    let lines = json(&asm, 1);
    assert_eq!(lines[0]["word"], "7e0803cd0f070309");
    assert_eq!(lines[0]["control_slot"], "002fe0");
    assert_eq!(lines[0]["text"], "HSETP2.GT.AND P1, P1, R3, 20, 1, PT ;");
    assert_eq!(lines[0]["warnings"].as_array().map(Vec::len), Some(2));
    assert!(lines[1]["error"].as_str().is_some_and(|error| error.contains("did you mean .LE?")));

    let lines = json(&["dis", "--arch", "sm_53", "--hex", "5d23b18000270187"], 0);
    assert_eq!(lines[0]["ignored_bits"], "0x80");
    let cubin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/sass/cubins/sm_70.cubin");
    let lines = json(&["dis", "--arch", "sm_70", cubin], 0);
    let compares = lines.iter().filter(|line| line["text"].is_string()).count();
    assert_eq!((lines[0]["address"].as_u64(), compares), (Some(0), 10));

    let eval = ["eval", "--arch", "sm_53", "@P1 HSETP2.GT P0, PT, R3, R4", "R3=0x3c00"];
    assert_eq!(json(&[&eval[..], &["P1=1"]].concat(), 0)[0]["pu"], true);
    assert_eq!(json(&[&eval[..], &["P1=0"]].concat(), 0)[0]["executed"], false);
    let lowered = &json(&["lower", "--arch", "sm_60", "setp.lt.f16 p, a, 0x3c01"], 0)[0];
    assert_eq!(lowered["word"], "7e9d038800070007");
    assert_eq!((&lowered["inverted"], &lowered["constant"]), (&true.into(), &"0x3f802000".into()));
    assert_eq!(lowered["registers"]["R0"], "a");
}
