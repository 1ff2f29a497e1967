//! `ptxvm stubs`: a program runs without a library of NVIDIA's that it links. These tests need `gcc`.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Folder, finish};
use test_utils::gcc::compile;

/// Libraries as NVIDIA's, the first with versions.
const LIBRARIES: [(&str, &str); 3] = [
    (
        "libcublas.so.12",
        "int cublasCreate_v2(void) { return 0; } int cublasDestroy_v2(void) { return 0; } int cublasUnused(void) { return 0; }",
    ),
    (
        "libnccl.so.2",
        "const char *ncclGetErrorString(int e) { (void)e; return \"real\"; } int ncclAllReduce(void) { return 0; }",
    ),
    (
        "libcupti.so.12",
        "int cuptiGetResultString(int e, const char **text) { (void)e; *text = \"real\"; return 0; }",
    ),
];

const PROGRAM: &str = r#"
#include <stdio.h>
int cublasCreate_v2(void);
int cublasDestroy_v2(void);
int ncclAllReduce(void);
const char *ncclGetErrorString(int);
int cuptiGetResultString(int, const char **);
int main(void) {
    const char *text;
    for (int i = 0; i < 2; i++) printf("%d %d %d\n", cublasCreate_v2(), cublasDestroy_v2(), ncclAllReduce());
    puts(ncclGetErrorString(2));
    printf("%d ", cuptiGetResultString(3, &text));
    puts(text);
    return 0;
}"#;

#[test]
fn a_program_runs_without_the_libraries_that_it_links() {
    let folder = Folder::new();
    let here = folder.path("");
    folder.write("versions", "libcublas.so.12 { global: *; };");
    let versions = format!("-Wl,--version-script={}", folder.path("versions").display());
    for (index, (name, source)) in LIBRARIES.into_iter().enumerate() {
        let soname = format!("-Wl,-soname,{name}");
        let options = ["-shared", "-fPIC", &soname, &versions];
        compile(&here, source, name, if index == 0 { &options } else { &options[..3] });
    }
    let path = format!("-L{}", here.display());
    let names = LIBRARIES.map(|(name, _)| format!("-l:{name}"));
    let mut options = vec![&*path, "-Wl,-rpath,$ORIGIN"];
    options.extend(names.iter().map(|name| &**name));
    let program = compile(&here, PROGRAM, "program", &options);
    let run = || finish(&mut Command::new(&program)).unwrap();
    assert_eq!(run().stdout, "0 0 0\n0 0 0\nreal\n0 real\n");
    // What is there stays.
    assert_eq!(folder.run("stubs program").stderr, "0 libraries with 0 functions\n");
    let [cublas, nccl, cupti] = LIBRARIES.map(|(name, _)| name);
    for library in [cublas, nccl, cupti] {
        std::fs::remove_file(folder.path(library)).unwrap();
    }
    // A second time, stubs are not taken for the libraries.
    for _ in 0..2 {
        let said = format!(
            "./{cublas}: 2 functions\n./{cupti}: 1 function\n./{nccl}: 2 functions\n3 libraries with 5 functions\n"
        );
        assert_eq!(folder.run("stubs ./program").stderr, said);
    }
    let outcome = run();
    let line =
        |function, library| format!("ptxvm: `{function}` does nothing: {library} is a stub (ptxvm stubs)\n");
    let (text, in_place) = (line("ncclGetErrorString", nccl), line("cuptiGetResultString", cupti));
    assert_eq!(outcome.stdout, format!("15 15 2\n15 15 2\n{text}\n0 {in_place}\n"));
    // Each once.
    let mut lines: Vec<_> = outcome.stderr.split_inclusive('\n').map(str::to_owned).collect();
    lines.sort();
    let (create, destroy) = (line("cublasCreate_v2", cublas), line("cublasDestroy_v2", cublas));
    assert_eq!(lines, [create, destroy, in_place, line("ncclAllReduce", nccl), text]);
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    let folder = Folder::new();
    folder.fails("stubs nowhere", 2, &["cannot read `nowhere`"]);
    // What is no library needs none.
    assert_eq!(folder.run("stubs scale.ptx").stderr, "0 libraries with 0 functions\n");
}
