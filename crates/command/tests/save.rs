//! Where results go, and what is said when they cannot go there.
#![cfg(target_os = "linux")]

mod common;

use common::{Folder, finish};

/// A kernel that does nothing to its array.
const NOTHING: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n";

/// Runs it in a shell, behind some of the shell's commands, and saves an array of 64 KiB.
fn save(folder: &Folder, before: &str, path: &str) -> common::Outcome {
    folder.write("k.ptx", NOTHING);
    let program = env!("CARGO_BIN_EXE_ptxvm");
    let script = format!("{before}\n'{program}' run k.ptx --arg f32[16384]=1 --out '0={path}'");
    let mut shell = std::process::Command::new("sh");
    finish(shell.arg("-c").arg(script).current_dir(folder.path(""))).unwrap()
}

#[test]
fn a_name_that_is_an_ending_says_the_format() {
    let folder = Folder::new();
    let outcome = save(&folder, "", ".npy");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(std::fs::read(folder.path(".npy")).unwrap().starts_with(b"\x93NUMPY"));
}

#[test]
fn a_file_that_grows_too_large_leaves_nothing_behind() {
    let folder = Folder::new();
    let outcome = save(&folder, "ulimit -f 8", "y.npy");
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("File too large"), "{}", outcome.transcript());
    let files = std::fs::read_dir(folder.path("")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("y.npy")), "{names:?}");
}

#[test]
fn a_folder_that_takes_no_files_is_said_to_be_closed() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let folder = Folder::new();
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let closed = folder.path("closed");
    std::fs::create_dir(&closed).unwrap();
    set(&closed, 0o555);
    folder.write("k.ptx", NOTHING);
    let mut command = folder.command("run k.ptx --arg f32[16384]=1 --out 0=closed/y.npy");
    if std::fs::metadata(&closed).unwrap().uid() == 0 {
        // To the one who may do everything no folder is closed: another one runs a program that lies where all may read.
        let program = folder.path("ptxvm");
        std::fs::copy(env!("CARGO_BIN_EXE_ptxvm"), &program).unwrap();
        set(&folder.path(""), 0o755);
        let words: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        command = std::process::Command::new(program);
        command.args(words).current_dir(folder.path("")).uid(65534);
    }
    let outcome = finish(&mut command).unwrap();
    assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("Permission denied"), "{}", outcome.transcript());
}

#[test]
fn help_that_nobody_gets_is_an_error() {
    let program = env!("CARGO_BIN_EXE_ptxvm");
    for words in ["--help", "run --help", "--version"] {
        let mut shell = std::process::Command::new("sh");
        let outcome = finish(shell.arg("-c").arg(format!("'{program}' {words} >/dev/full"))).unwrap();
        assert_eq!(outcome.code, Some(2), "{}", outcome.transcript());
        assert!(outcome.stderr.contains("No space left"), "{}", outcome.transcript());
    }
}

#[test]
fn a_fault_names_the_option_that_was_forgotten() {
    let folder = Folder::new();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let shared = ".extern .shared .align 4 .b8 tile[];\n";
    let store = "{ .reg .b32 %r; mov.u32 %r, tile; st.shared.u32 [%r], 1; ret; }\n";
    folder.write("shared.ptx", format!("{head}{shared}.visible .entry k() {store}"));
    let sync =
        "{ .reg .b32 %r; .reg .pred %p; mov.u32 %r, %envreg2; setp.eq.u32 %p, %r, 0; @%p trap; ret; }\n";
    folder.write("sync.ptx", format!("{head}.visible .entry k() {sync}"));
    let said = |words: &str| finish(&mut folder.command(words)).unwrap().stderr;
    assert!(said("run shared.ptx").contains("help: the size of `.extern .shared` variables"));
    assert!(!said("run shared.ptx --shared 4").contains("--shared BYTES"));
    assert!(said("run sync.ptx").contains("help: blocks that wait for one another need --cooperative"));
    assert!(!said("run sync.ptx --cooperative").contains("need --cooperative"));
}
