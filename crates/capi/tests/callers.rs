//! The library from C, linked dynamically and statically, and from Python's ctypes. These tests need `gcc` and `python3`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where Cargo puts the libraries that it builds for this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.parent().expect("the folder of this test").to_owned()
}

/// The newest file in the folder of libraries that is the library `name`, with or without the hash that Cargo may add to it.
/// Libraries whose names only begin alike lie there too.
fn library(name: &str, extension: &str) -> PathBuf {
    let entries = std::fs::read_dir(libraries()).expect("the folder of libraries").flatten();
    let found = entries.filter(|entry| {
        let file = PathBuf::from(entry.file_name());
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        file.extension().is_some_and(|found| found == extension)
            && stem.strip_prefix(name).is_some_and(|hash| hash.is_empty() || hash.starts_with('-'))
    });
    let newest = found.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.unwrap_or_else(|| panic!("no {name}.{extension}")).path()
}

fn run(command: &mut Command) -> Output {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().unwrap_or_else(|error| panic!("this test needs `{name}`: {error}"));
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", show(&output.stdout), show(&output.stderr));
    output
}

/// Compiles tests/c/launches.c with these libraries and runs it; returns what it wrote to stderr.
fn launches(libraries: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a folder");
    let program = directory.path().join("launches");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder().join("include"));
    gcc.arg(folder().join("tests/c/launches.c")).args(libraries).arg("-o").arg(&program);
    run(&mut gcc);
    String::from_utf8_lossy(&run(&mut Command::new(program)).stderr).into_owned()
}

#[test]
fn c_links_dynamically_and_what_goes_wrong_is_said() {
    let library = library("libptxvm_c", "so");
    let rpath = format!("-Wl,-rpath,{}", libraries().display());
    let said = launches(&[&library.display().to_string(), &rpath]);
    for expected in [
        "the PTX text is a null pointer",
        "the arguments are a null pointer",
        "the number of arguments is -1",
        "kernel `count`: it takes 1 arguments, and 2 were given",
        "kernel `count`: it takes 1 arguments, and 2000000000 were given",
        "kernel `count`: block 2000,1,1",
        "kernel `count`: grid 0,1,1",
        "kernel `count`: the grid is [1, 1, -5]",
        "no kernel",
        "access out of bounds: write of 4 bytes at 0x0",
        "in kernel `count`, block (0,0,0), thread (0,0,0)",
        "<ptx>:9",
    ] {
        assert!(said.contains(expected), "`{expected}` is not in\n{said}");
    }
}

#[test]
fn c_links_statically() {
    let library = library("libptxvm_c", "a");
    launches(&[&library.display().to_string(), "-lpthread", "-ldl", "-lm"]);
}

#[test]
fn python_loads_it_under_the_name_of_gpuocelot() {
    let directory = tempfile::tempdir().expect("a folder");
    let link = directory.path().join("libgpuocelot.so");
    std::os::unix::fs::symlink(library("libptxvm_c", "so"), &link).expect("a symbolic link");
    let output = run(Command::new("python3").arg(folder().join("tests/c/launches.py")).arg(&link));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "good");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("shared memory of this block has 0 bytes"), "{said}");
}

/// Every thread writes its number to the same word.
const RACY: &str = r#"
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
ptx = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry racy(.param .u64 out) {
.reg .b32 %t;
.reg .b64 %o;
ld.param.u64 %o, [out];
mov.u32 %t, %tid.x;
st.u32 [%o], %t;
ret;
}
"""
word = (ctypes.c_uint32 * 4)()
args = (ctypes.c_void_p * 1)(ctypes.addressof(word))
print(library.ptxvm_run(ptx, 1, args, 8, 1, 1, 1, 1, 1, 0))
"#;

#[test]
fn tools_watch_where_the_environment_asks_for_them() {
    for (tools, code, said) in [
        ("", "0", ""),
        ("racecheck,synccheck", "3", "error[race-write-write]: threads (0,0,0) and (1,0,0)"),
        ("initcheck", "0", ""),
        ("raceczech", "2", "there is no tool `raceczech`"),
    ] {
        let mut python = Command::new("python3");
        python.args(["-c", RACY]).arg(library("libptxvm_c", "so")).env("PTXVM_TOOL", tools);
        let output = run(&mut python);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), code, "{tools}: {stderr}");
        assert!(stderr.contains(said) && (said.is_empty() == stderr.is_empty()), "{tools}: {stderr}");
    }
}
