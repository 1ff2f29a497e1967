//! Several files on the command line are one program.

mod common;

use common::{finish, ptxvm};
use serde_json::Value;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Stores what a function of another file returns.
const KERNEL: &str = "\
.extern .func (.param .u32 r) f();
.visible .entry k(.param .u64 o)
{
.reg .u64 %o;
.reg .u32 %a;
ld.param.u64 %o, [o];
{ .param .u32 r; call.uni (r), f, (); ld.param.u32 %a, [r]; }
st.global.u32 [%o], %a;
ret;
}
";

#[test]
fn the_command_links_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), format!("{HEAD}{text}")).unwrap();
    write("kernel.ptx", KERNEL);
    write("good.ptx", ".visible .func (.param .u32 r) f() { st.param.u32 [r], 6; ret; }\n");
    write(
        "fault.ptx",
        ".visible .func (.param .u32 r) f()\n{\n.reg .u32 %x; .reg .u64 %p; mov.u64 %p, 0;\nld.global.u32 %x, [%p];\nret;\n}\n",
    );
    write("bad.ptx", ".visible .func f()\n{\nadd.u32 %x, %x, 1;\nret;\n}\n");
    let run = |files: &str, words: &str| {
        let mut command = ptxvm();
        command.current_dir(folder.path()).arg("run").args(files.split(' ')).args(["--arg", "u32[1]"]);
        finish(command.args(words.split(' '))).unwrap()
    };
    let outcome = run("kernel.ptx good.ptx", "--print 0 --format json --profile");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("0: u32[1] = [6]"), "{}", outcome.transcript());
    let object: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    let lines = object["profile"]["lines"].as_array().unwrap();
    let of = |file: &str| -> Vec<u64> {
        lines.iter().filter(|line| line["file"] == file).map(|line| line["line"].as_u64().unwrap()).collect()
    };
    assert_eq!(of("kernel.ptx"), [9, 10, 11, 12]);
    assert_eq!(of("good.ptx"), [4]);
    let table = run("kernel.ptx good.ptx", "--profile").stdout;
    assert!(table.contains("kernel.ptx:10  {") && table.contains("good.ptx:4  .visible"), "{table}");

    let outcome = run("kernel.ptx fault.ptx", "--threads 1");
    assert_eq!(outcome.code, Some(3), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("fault.ptx:7:1"), "{}", outcome.transcript());
    let outcome = run("kernel.ptx good.ptx good.ptx", "--threads 1");
    assert_eq!(outcome.code, Some(1), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("Multiple definition of 'f'"), "{}", outcome.transcript());
    // Every file is checked.
    let outcome = run("bad.ptx kernel.ptx nowhere.ptx", "--threads 1");
    assert_eq!(outcome.code, Some(1), "{}", outcome.transcript());
    assert!(
        outcome.stderr.contains("bad.ptx:6") && outcome.stderr.contains("nowhere.ptx"),
        "{}",
        outcome.transcript()
    );
}
