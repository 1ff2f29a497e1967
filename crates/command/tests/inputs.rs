//! Inputs as people have them (PTX in programs, libraries and cubins; source code), and results that are compared and
//! shown in parts.

mod common;

use common::{Folder, finish, floats, npy, root};
use serde_json::Value;

/// A file that nvcc or ptxas wrote (`crates/fatbin/tests/files.rs` has the commands).
fn compiled(name: &str) -> Vec<u8> {
    std::fs::read(root().join("crates/fatbin/tests/files").join(name)).unwrap()
}

#[test]
fn ptx_is_found_in_what_compilers_write() {
    let folder = Folder::new();
    for name in ["alone.so", "relocatable.so", "debug.cubin", "code.cubin"] {
        folder.write(name, compiled(name));
    }
    let outcome = folder.run("check alone.so relocatable.so debug.cubin");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let names = ["alone.so(1.compute_90.ptx)", "alone.so(2.compute_90.ptx)", "debug.cubin(ptx)"];
    for name in names {
        assert!(outcome.stderr.contains(&format!("{name}: no errors")), "{}", outcome.stderr);
    }
    let saxpy = "--entry saxpy --block 2 --arg 2 --arg f32[2]=1 --arg f32[2]=10 --print 2";
    for (file, wanted) in [("alone.so", "13"), ("relocatable.so", "32")] {
        let outcome = folder.run(&format!("run {file} {saxpy}"));
        assert!(outcome.stdout.contains(wanted), "{file}: {}", outcome.transcript());
    }
    let outcome = folder.run("run debug.cubin --arg f32[1]=10 --print 0");
    assert!(outcome.stdout.contains("30"), "{}", outcome.transcript());
    folder.fails("run alone.so", 2, &["there are several kernels", "saxpy", "scale"]);
    folder.fails("run alone.so --entry s", 2, &["`s` is part of the names", "saxpy", "scale"]);
    folder.fails("run code.cubin", 1, &["`code.cubin` has no PTX", "docs/get-ptx.md"]);
    let outcome = folder.fails("check --format json code.cubin", 1, &[]);
    let object: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(object["diagnostics"][0]["code"], "unreadable-file");
}

#[test]
fn source_code_is_refused_with_the_command_that_compiles_it() {
    let folder = Folder::new();
    folder.write("a.cu", "__global__ void f() {}");
    folder.write("a.ll", "define void @f() { ret void }");
    let with = |path: &str, words: &str| {
        let outcome =
            finish(folder.command(words).env("PATH", path).env_remove("CUDA_HOME").env_remove("CUDA_PATH"));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.code, Some(1), "{}", outcome.transcript());
        outcome.stderr
    };
    let nowhere = with("", "check a.cu");
    assert!(nowhere.contains("`a.cu` is CUDA C++, not PTX"), "{nowhere}");
    assert!(
        nowhere.contains("nvcc -ptx -arch=sm_90 a.cu -o a.ptx, or clang++ --cuda-device-only"),
        "{nowhere}"
    );
    assert!(with("", "run a.ll").contains("llc -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90 a.ll -o a.ptx"));
    folder.write("clang++", "");
    let path = folder.path("").display().to_string();
    assert!(with(&path, "run a.cu").contains("compile it: clang++ --cuda-device-only -S"));
    folder.write("nvcc", "");
    assert!(with(&path, "run a.cu").contains("compile it: nvcc -ptx -arch=sm_90 a.cu -o a.ptx\n"));
}

#[test]
fn results_are_compared_with_expected_ones() {
    let folder = Folder::new();
    folder.write("expected.npy", npy("'<f4'", "(4,)", &floats(&[0.0, 2.0, 4.0, 6.0])));
    folder
        .write("wrong.npy", npy("'<f8'", "(2, 2)", &[0.0f64, 2.0, 4.5, 6.0].map(f64::to_le_bytes).concat()));
    let run =
        |expect: &str| folder.run(&format!("run scale.ptx --block 4 --arg f32[4]=iota --arg 2 {expect}"));
    let good = run("--expect 0=expected.npy");
    assert_eq!((good.code, good.stderr.as_str()), (Some(0), ""), "{}", good.transcript());
    assert_eq!(run("--expect 0=wrong.npy --rtol 0.2").code, Some(0));
    let bad = run("--expect 0=wrong.npy --atol 0.25");
    assert_eq!(bad.code, Some(3), "{}", bad.transcript());
    let message = "error: argument 0 is not as expected: 1 of 4 elements differs from wrong.npy, by up to 5.00e-1\n    \
        0[2] = 4 (0x40800000), expected 4.5 (0x4012000000000000), by thread (2,0,0) of block (0,0,0)\n    \
        written by scale.ptx:";
    assert!(bad.stderr.starts_with(message), "{}", bad.transcript());
    let json = run("--expect 0=f32[4]=1 --format json");
    assert_eq!(json.code, Some(3));
    let object: Value = serde_json::from_str(json.stdout.lines().last().unwrap()).unwrap();
    let comparison = &object["comparisons"][0];
    assert_eq!((&comparison["different"], &comparison["elements"]), (&4.into(), &4.into()), "{object}");
    assert_eq!(comparison["first"][3]["got_bits"], "0x40c00000");
    for (expect, code, part) in [
        ("--expect 0=f32[5]", 1, "argument 0 has 4 elements, and `f32[5]` has 5"),
        ("--expect 0=none.npy", 1, "cannot read `none.npy`"),
        ("--expect 1=expected.npy", 2, "argument 1 is no array"),
        ("--expect expected.npy", 2, "2=expected.npy"),
        ("--expect 0=7", 2, "`7` is no array"),
        ("--rtol 1", 2, "--expect"),
    ] {
        folder.fails(&format!("run scale.ptx --block 4 --arg f32[4] --arg 2 {expect}"), code, &[part]);
    }
}

#[test]
fn parts_of_arrays_are_printed_as_numbers_and_bits() {
    let folder = Folder::new();
    let run = |print: &str| {
        let outcome = folder.run(&format!("run scale.ptx --block 128 --arg f32[128]=iota --arg 2 {print}"));
        assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
        outcome.stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(run("--print 0[5]"), "0[5:6]: f32[1] = [10]");
    assert_eq!(run("--print 0[126:]"), "0[126:]: f32[2] = [252, 254]");
    assert_eq!(run("--print 0[:2] --hex"), "0[0:2]: f32[2] = [0x00000000, 0x40000000]");
    assert_eq!(run("--print 0[0:100]").matches(", ").count(), 99);
    for part in ["0[128]", "0[3:2]", "0[:129]"] {
        let words = format!("run scale.ptx --block 4 --arg f32[128] --arg 2 --print {part}");
        folder.fails(&words, 2, &["argument 0 has 128 elements"]);
    }
    folder.fails("run scale.ptx --arg f32[1] --arg 2 --print 0[x]", 2, &["are no elements: 2[10:20]"]);
    let random = |fill: &str| {
        folder.run(&format!("run scale.ptx --block 4 --arg f32[4]={fill} --arg 1 --print 0")).stdout
    };
    assert_eq!(random("random(7)").lines().next(), random("random(7)").lines().next());
    assert_ne!(random("normal(7)").lines().next(), random("normal(8)").lines().next());
}

#[test]
fn arrays_of_an_archive_are_taken_by_their_names() {
    let folder = Folder::new();
    for name in ["stored.npz", "deflated.npz"] {
        folder.write(name, std::fs::read(root().join("crates/command/tests/archives").join(name)).unwrap());
    }
    folder.write("bad.npz", "PK");
    let run = |array: &str| format!("run scale.ptx --block 4 --arg {array} --arg 2 --print 0");
    for archive in ["stored", "deflated"] {
        let outcome = folder.run(&run(&format!("@{archive}.npz[x]")));
        assert!(outcome.stdout.contains("0: f32[4] = [0, 2, 4, 6]\n"), "{}", outcome.transcript());
    }
    // Of another type, in a structure, and as what must come out.
    let outcome = folder.run(&run("@stored.npz[w]:bf16").replace("--block 4", "--block 1"));
    assert!(outcome.stdout.contains("0: bf16[1x2] = "), "{}", outcome.transcript());
    let half = run("@stored.npz[x]").replace("--arg 2", "--arg 1");
    assert_eq!(folder.run(&format!("{half} --expect 0=deflated.npz[x]")).code, Some(0));
    folder.fails(
        &format!("{} --expect 0=deflated.npz[x]", run("@stored.npz[x]")),
        3,
        &["differ from deflated.npz[x]"],
    );
    folder.fails(
        &run("@stored.npz[y]"),
        1,
        &["cannot use `stored.npz[y]`: it has no array `y`\nhelp: it has x, w\n"],
    );
    folder.fails(
        &run("@stored.npz"),
        1,
        &["cannot use `stored.npz`: it is an archive of arrays", "help: it has x, w: write @stored.npz[x]\n"],
    );
    folder.fails(&run("@bad.npz[x]"), 1, &["cannot use `bad.npz[x]`: it is damaged or truncated"]);
    folder.fails(&run("@no.npz[x]"), 1, &["cannot read `no.npz`"]);
}
