//! `ptxvm eval`: one instruction for people, and batches for programs.

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Outcome, finish, ptxvm};

fn eval(arguments: &[&str]) -> Outcome {
    finish(ptxvm().arg("eval").args(arguments)).expect("it ends")
}

/// Answers to lines, through a file.
fn batch(lines: &[u8], options: &[&str]) -> Outcome {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(lines).expect("written");
    finish(ptxvm().args(["eval", "--batch"]).arg(file.path()).args(options)).expect("it ends")
}

/// What follows each input line.
fn answers(lines: &[&str], options: &[&str]) -> Vec<String> {
    let outcome = batch((lines.join("\n") + "\n").as_bytes(), options);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let answers: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(answers.len(), lines.len(), "{}", outcome.transcript());
    let rest = |(line, answer): (&&str, &&str)| {
        let rest = answer.strip_prefix(line).and_then(|rest| rest.strip_prefix('\t'));
        rest.unwrap_or_else(|| panic!("`{answer}` does not begin with `{line}`")).to_owned()
    };
    lines.iter().zip(&answers).map(rest).collect()
}

#[test]
fn a_batch_answers_each_line() {
    let cases = [
        ("setp.lt.and.f16x2\t3c004000\t40003c00\t1", "0\t1"),
        ("setp.lt.and.f32\t3f800000\t40000000\t0", "0\t0"),
        ("setp.lt.or.f32\t3f800000\t40000000\t1", "1\t1"),
        ("setp.lt.f32\t3f800000\t40000000", "1\t0"),
        ("setp.lt.f16\t3c00\t4000", "1"),
        ("setp.lt.bf16\t3f80\t3f80", "0"),
        ("setp.ltu.bf16x2\t7fc03f80\t3f803f80", "0\t1"),
        ("setp.f32.lt\t3f800000\t40000000", "1\t0"),
        ("set.lt.f32.f32\t3f800000\t40000000", "3f800000"),
        ("set.lt.u16.f16\t3c00\t4000", "ffff"),
        ("set.lt.xor.f16x2.f16x2\t3c004000\t40003c00\t1", "00003c00"),
        ("selp.b16\t1234\tabcd\t0", "abcd"),
        ("slct.b64.f32\t1\t2\t7fc00000", "0000000000000002"),
        ("slct.b64.f32\t1\t2\t80000000", "0000000000000001"),
        ("fma.rn.f32.f16\t3e00\t4000\t3f800000", "40800000"),
        ("sub.f32.bf16\t3f80\t3f800000", "00000000"),
        ("add.cc.u32\tffffffff\t1", "00000000\t1"),
        ("addc.u32\tffffffff\t0\t1", "00000000"),
        ("addc.cc.u64\tffffffffffffffff\t0\t1", "0000000000000000\t1"),
        ("lop3.or.b32\tf\t33\t55\t80\t0", "00000001\t1"),
        ("cvt.u8.u32\t1ff", "ff"),
        ("testp.number.f32\t0", "1"),
        ("and.pred\t1\t0", "0"),
        ("cvt.rs.satfinite.e4m3x4.f32\t3f800000\t40000000\t40400000\t40800000\t0", "38404448"),
    ];
    let (lines, expected): (Vec<&str>, Vec<&str>) = cases.into_iter().unzip();
    assert_eq!(answers(&lines, &[]), expected);
}

#[test]
fn wrong_lines_are_answered_with_errors_and_the_rest_goes_on() {
    let cases = [
        ("sept.lt.f32\t1\t2", "did you mean 'setp'?"),
        ("setp.ltt.f32\t1\t2", "Unknown modifier '.ltt'"),
        ("setp.f32\t1\t2", "Comparison modifier required"),
        ("setp.lt.and.f32\t1\t2", "takes 3 source operands (a, b, c), not 2"),
        ("setp.lt.f32\t1", "takes 2 source operands (a, b), not 1"),
        ("setp.lt.f32", "takes 2 source operands (a, b), not 0"),
        ("addc.u32\t1\t2", "takes 3 source operands (a, b, CC.CF), not 2"),
        ("setp.lt.f16\t10000\t0", "operand a: '10000' does not fit .f16 (16 bits)"),
        ("setp.lt.f16\t0\t0x1", "operand b: '0x1' is not in bare hexadecimal digits"),
        ("setp.lt.f16\t\t1", "operand a: there is none"),
        ("add.u64\t1ffffffffffffffff\t1", "does not fit"),
        ("selp.b32\t1\t2\t2", "operand c: a predicate is 0 or 1, not '2'"),
        ("ld.global.u32\t1", "ld is not pure"),
        ("bar.sync", "bar is not pure"),
        ("", "there is no instruction"),
        ("add.u32; ret\t1\t2", "is no instruction"),
        ("add.u32\t1\t2", "00000003"),
    ];
    let (lines, expected): (Vec<&str>, Vec<&str>) = cases.into_iter().unzip();
    for ((line, answer), expected) in lines.iter().zip(answers(&lines, &[])).zip(expected) {
        assert_eq!(answer.starts_with("error: "), expected != "00000003", "{line}: {answer}");
        assert!(answer.contains(expected), "{line}: {answer}");
    }
}

#[test]
fn the_target_decides_what_is_legal_and_what_flushes() {
    let half = ["setp.lt.bf16\t3f80\t4000", "fma.rn.f32.f16\t3c00\t3c00\t0"];
    assert_eq!(answers(&half, &["--target", "sm_100"]), ["1", "3f800000"]);
    let old = answers(&half, &["--target", "sm_80"]);
    assert!(old[0].starts_with("error: Feature 'setp.bf16' requires .target sm_90"), "{old:?}");
    assert!(old[1].starts_with("error: Feature 'fma.f32.f16' requires .target sm_100"), "{old:?}");
    // The smallest subnormals: sm_1x flushes them without being told.
    let single = ["setp.gt.f32\t1\t0", "slct.b32.f32\t1\t2\t80000001", "add.f32\t1\t1", "setp.gt.f64\t1\t0"];
    assert_eq!(answers(&single, &["--target", "sm_13"]), ["0\t1", "00000001", "00000000", "1\t0"]);
    assert_eq!(answers(&single, &["--target", "sm_20"]), ["1\t0", "00000002", "00000002", "1\t0"]);
}

#[test]
fn bytes_are_returned_as_they_are() {
    let outcome = batch(b"add.u32\t1\t2\r\n\xff\xfe\t1\nadd.u32\t0A\t1", &[]);
    assert_eq!(outcome.code, Some(0));
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.transcript());
    assert_eq!(lines[0], "add.u32\t1\t2\t00000003");
    assert!(lines[1].ends_with("error: the instruction is not text"));
    assert_eq!(lines[2], "add.u32\t0A\t1\t0000000b");
    assert_eq!(batch(b"", &[]).stdout, "");
}

#[test]
fn lines_that_come_in_pieces_are_put_together() {
    let mut command = ptxvm();
    command.args(["eval", "--batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let writer = std::thread::spawn(move || {
        for number in 0..50_000u32 {
            let _ = write!(stdin, "add.u32\t{number:x}\t");
            if number % 1000 == 0 {
                let _ = stdin.flush();
            }
            let _ = writeln!(stdin, "1");
        }
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it wrote");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.lines().count(), 50_000);
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line, format!("add.u32\t{number:x}\t1\t{:08x}", number + 1));
    }
}

/// Every pure row: some spelling of it is evaluated on zeros, and gives as many results as its destinations say.
#[test]
fn every_pure_row_is_evaluated() {
    let mut lines = Vec::new();
    for (id, form) in isa::FORMS.iter().enumerate() {
        if !matches!(form.action, isa::Action::Pure(_)) {
            continue;
        }
        let id = isa::FormId(id as u16);
        let spelling = isa::enumerate::spellings(id).find(isa::enumerate::Spelling::is_legal);
        let spelling = spelling.unwrap_or_else(|| panic!("no spelling of `{}` is legal", form.syntax));
        let mut line = spelling.mnemonic();
        for spec in form.operands_with(&spelling.picks).filter(|spec| spec.access != isa::Access::Write) {
            let count = match spec.elements {
                isa::Elements::Fixed(count) => count,
                _ => 1,
            };
            line += &"\t0".repeat(count.into());
        }
        line += if form.carry.reads { "\t0" } else { "" };
        lines.push(line);
    }
    assert!(lines.len() > 200, "{} rows", lines.len());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let wrong: Vec<_> =
        lines.iter().zip(answers(&lines, &[])).filter(|(_, answer)| answer.starts_with("error")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_instruction_is_shown_with_reasons() {
    for (arguments, expected) in [
        (
            &["setp.lt.and.f16x2", "0x3c004000", "0x40003c00", "true"][..],
            &[
                "lane 0 0x4000 = 2, lane 1 0x3c00 = 1",
                "p =    0 = false",
                "q =    1 = true",
                "lane 0: 2 < 1 is false",
            ][..],
        ),
        (&["setp.lt.f32", "nan", "1"], &["0x7fc00000 = NaN (quiet)", "unordered", "p =    0 = false"]),
        (
            &["set.eq.ftz.u32.f16", "0x0001", "0"],
            &["0x0001 = 5.96e-8 (subnormal)", ".ftz makes a", "0xffffffff"],
        ),
        (&["fma.rn.f32.f16", "1.5", "2", "0f3F800000"], &["0x40800000 = 4"]),
        (&["slct.f32.f32", "1", "2", "-inf"], &["-inf < 0: b", "0x40000000 = 2"]),
        (
            &["slct.f32.f32", "1", "2", "-1e-40", "--target", "sm_13"],
            &["sm_13 implies .ftz", "0x3f800000 = 1"],
        ),
        (&["--target=sm_13", "slct.f32.f32", "1", "2", "-1e-40"], &["sm_13 implies .ftz"]),
        (&["min.f16x2", "1,nan", "2,1"], &["lane 1: a is NaN", "0x3c003c00"]),
        (&["min.NaN.f16", "1", "nan"], &["0x7fff = NaN (quiet)"]),
        (&["addc.cc.u32", "-1", "0", "1"], &["d =    0x00000000 = 0", "CC.CF =  1 = true"]),
    ] {
        let outcome = eval(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}\n{}", outcome.transcript());
        for text in expected {
            assert!(outcome.stdout.contains(text), "`{text}` for {arguments:?}\n{}", outcome.transcript());
        }
    }
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    for (arguments, code, expected) in [
        (&["sept.lt.f32", "1", "2"][..], 1, "did you mean 'setp'?"),
        (&["setp.lt.f32", "1"], 1, "takes 2 source operands"),
        (&["setp.lt.f16", "0x10000", "1"], 1, "operand a"),
        (&["setp.lt.f16x2", "1", "2"], 1, "lanes"),
        (&["add.u32", "1.5", "2"], 1, "no integer"),
        (&["setp.lt.bf16", "1", "2", "--target", "sm_80"], 1, "requires .target sm_90"),
        (&["setp.lt.bf16", "1", "2", "--target", "sm_81"], 2, "is no target"),
        (&["setp.lt.bf16", "1", "2", "--frobnicate"], 2, "is no operand"),
        (&["--batch", "no such file"], 1, "cannot read"),
        (&["--batch", "-", "add.u32"], 2, "cannot be used with"),
    ] {
        let outcome = eval(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}\n{}", outcome.transcript());
        assert!(outcome.stderr.contains(expected), "{arguments:?}\n{}", outcome.transcript());
    }
    assert_eq!(eval(&[]).code, Some(2));
}

#[test]
fn evaluations_are_objects_for_programs() {
    let outcome = eval(&["setp.lt.and.f16x2", "0x3c004000", "0x40003c00", "true", "--format", "json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let object: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("an object");
    assert_eq!(object["instruction"], "setp.lt.and.f16x2");
    assert_eq!(object["operands"][0]["lanes"][1]["value"], "1");
    assert_eq!(object["operands"][0]["bits"], "0x3c004000");
    assert_eq!(object["results"][0]["name"], "p");
    assert_eq!(
        (&object["results"][0]["bits"], &object["results"][0]["value"]),
        (&"0".into(), &"false".into())
    );
    assert_eq!(object["results"][1]["value"], "true");
    assert!(object["why"][0].as_str().is_some_and(|why| why.contains("2 < 1 is false")), "{object}");

    let outcome = batch(b"add.u32\t1\t2\nsetp.lt.f16\t7e00\nsetp.lt.f16\t7e00\t0", &["--format=json"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let objects: Vec<serde_json::Value> =
        outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0]["results"][0]["bits"], "0x00000003");
    assert_eq!(objects[1]["line"], "setp.lt.f16\t7e00");
    assert!(objects[1]["error"].as_str().is_some_and(|error| error.contains("takes 2 source operands")));
    assert_eq!(objects[2]["operands"][0]["value"], "NaN (quiet)");
    assert_eq!(eval(&["add.u32", "1", "2", "--format", "xml"]).code, Some(2));
}

/// ptxas takes it.
#[test]
fn a_table_of_more_than_eight_bits_is_cut() {
    let outcome = eval(&["lop3.b32", "1", "2", "4", "0x1fe"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("d =     0x00000007"), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("immLut has 8 bits: 0x1fe counts as 0xfe"), "{}", outcome.transcript());
    assert!(!eval(&["lop3.b32", "1", "2", "4", "0xfe"]).stdout.contains("8 bits"));
}
