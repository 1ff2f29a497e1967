//! `--set` and `--get`: variables of the module.

mod common;

use common::{Folder, Outcome, finish};

/// Adds `bias` to each element of `table`, and stores the sums in `sums`.
const SUMS: &str = ".version 8.0
.target sm_80
.address_size 64
.const .f32 bias = 0f3f800000;
.global .f32 table[4];
.global .f32 sums[4];
.global .u32 _ZN3app5countE;
.visible .entry add() {
    .reg .b32 %i, %o;
    .reg .f32 %a, %b;
    .reg .b64 %t, %d;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %d, %i, 4;
    mov.u64 %t, table;
    add.u64 %t, %t, %d;
    ld.global.f32 %a, [%t];
    ld.const.f32 %b, [bias];
    add.f32 %a, %a, %b;
    mov.u64 %t, sums;
    add.u64 %t, %t, %d;
    st.global.f32 [%t], %a;
    red.global.add.u32 [_ZN3app5countE], 1;
    ret;
}
";

fn run(folder: &Folder, options: &str) -> Outcome {
    folder.write("sums.ptx", SUMS);
    finish(&mut folder.command(&format!("run sums.ptx --block 4 {options}"))).unwrap()
}

#[test]
fn variables_are_set_shown_and_saved() {
    let folder = Folder::new();
    let options = "--set table=f32[4]=iota --set bias=0.5 --get sums=s.npy --get app::count --get tab";
    let outcome = run(&folder, options);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("app::count: u32[1] = [4]\n"), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("tab: f32[4] = [0, 1, 2, 3]\n"), "{}", outcome.transcript());
    // What was saved can be set.
    let archive = common::root().join("crates/command/tests/archives/long.npz");
    folder.write("a.npz", std::fs::read(archive).unwrap());
    let outcome = run(&folder, "--set table=@a.npz[x] --get table");
    assert!(outcome.stdout.contains("table: f32[4] = [0, 1, 2, 3]\n"), "{}", outcome.transcript());
    let outcome = run(&folder, "--set table=@s.npy --get sums --get bias");
    assert!(outcome.stdout.contains("sums: f32[4] = [1.5, 2.5, 3.5, 4.5]\n"), "{}", outcome.transcript());
    assert!(outcome.stdout.contains("bias: f32[1] = [1]\n"), "{}", outcome.transcript());
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = Folder::new();
    let archive = common::root().join("crates/command/tests/archives/stored.npz");
    folder.write("a.npz", std::fs::read(archive).unwrap());
    for (options, message) in [
        (
            "--set tables=1",
            "there is no variable `tables`\nhelp: the variables are bias, table, sums, app::count\n",
        ),
        ("--get s", "several variables have `s` in their names\nhelp: they are bias, sums\n"),
        ("--set table=f32[5]", "--set table: the variable has 16 bytes, and `f32[5]` 20\n"),
        ("--set table=1", "--set table: the variable is an array\nhelp: --set table=f32[4]=1\n"),
        ("--set table=@a.npz[w]", "--set table: the variable has 16 bytes, and `@a.npz[w]` 4\n"),
        ("--set bias=x", "`x` is no value of a variable: @x.npy"),
        ("--set bias", "write it as NAME=ARRAY"),
    ] {
        let outcome = run(&folder, options);
        assert_eq!(outcome.code, Some(2), "{options}: {}", outcome.transcript());
        assert!(outcome.stderr.contains(message), "{options}: {}", outcome.transcript());
    }
}
