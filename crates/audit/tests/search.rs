//! Programs whose libraries come from elsewhere than they say. These tests need `gcc`.
#![cfg(target_os = "linux")]

use std::process::Command;

use test_utils::gcc::compile;
// Cargo builds the library beside this test.
use ptxvm_audit as _;

const LIBRARY: &str = "const char *whose(void) { return WHOSE; }";
/// It asks a library that it is linked with, and one that it opens by its path.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
const char *whose(void);
int main(int count, char **words) {
    void *opened = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    const char *(*other)(void) = opened ? (const char *(*)(void))dlsym(opened, "whose") : 0;
    printf("%s %s\n", whose(), other ? other() : dlerror());
    return count - 2;
}"#;

/// A program whose run path names a folder of NVIDIA's, with and without the audit of a folder of ours.
fn run(audited: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    for (place, whose) in [(&ours, "-DWHOSE=\"ours\""), (&theirs, "-DWHOSE=\"theirs\"")] {
        std::fs::create_dir(place).unwrap();
        for name in ["libcudart.so.13", "libother.so"] {
            let soname = format!("-Wl,-soname,{name}");
            compile(place, LIBRARY, name, &["-shared", "-fPIC", whose, &soname]);
        }
    }
    std::fs::remove_file(ours.join("libother.so")).unwrap();
    let (path, run_path) = (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    let words = [&path, "-l:libcudart.so.13", "-ldl", "-Wl,--disable-new-dtags", &run_path];
    let program = compile(folder.path(), PROGRAM, "program", &words);
    let mut out = String::new();
    for opened in ["libcudart.so.13", "libother.so"] {
        let mut command = Command::new(&program);
        command.arg(theirs.join(opened));
        if audited {
            let test = std::env::current_exe().unwrap();
            command.env("LD_AUDIT", test.with_file_name("libptxvm_audit.so")).env("PTXVM_LIBRARIES", &ours);
        }
        let output = command.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        out += &String::from_utf8(output.stdout).unwrap();
    }
    out
}

#[test]
fn the_run_path_and_the_path_of_a_file_lead_to_our_libraries() {
    assert_eq!(run(true), "ours ours\nours theirs\n");
}

#[test]
fn without_it_they_lead_to_theirs() {
    assert_eq!(run(false), "theirs theirs\ntheirs theirs\n");
}
