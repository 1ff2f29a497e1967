//! What a process tells of itself when it ends.

mod driver;

use std::process::Command;
use std::ptr::null_mut;

use driver::{cuCtxSynchronize, cuLaunchKernel};

/// Three kernels, of which one traps, and one reads shared memory just behind the end of what it has.
const PTX: &std::ffi::CStr = cr#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry good() { ret; }
.visible .entry bad() {
.loc 1 7 3
trap; }
.visible .entry overrun()
{
    .reg .u32 %x;
    .shared .u32 word;
    ld.shared.u32 %x, [word+4];
    ret;
}
.file 1 "bad.cu"
"#;

/// Launches two kernels twice and one once. It is a test like any other, and a program for the next one.
#[test]
fn launches_end_as_they_must() {
    driver::start();
    let module = driver::load(PTX);
    // SAFETY: every pointer is good for its call.
    unsafe {
        for (name, status) in [(c"good", 0), (c"overrun", 0), (c"good", 0), (c"overrun", 0), (c"bad", 719)] {
            let function = driver::function(module, name);
            assert_eq!(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null_mut(), null_mut(), null_mut()), 0);
            assert_eq!(cuCtxSynchronize(), status, "{name:?}");
        }
    }
}

/// Launches kernels and ends as the environment says, without what `exit` does. A program for the next test.
#[test]
fn a_process_ends_at_once() {
    let Ok(end) = std::env::var("END_BY") else { return };
    driver::start();
    let mut module = null_mut();
    // SAFETY: every pointer is good for its call.
    let loaded =
        unsafe { driver::cuModuleLoadData(&raw mut module, c".version 8.0 nonsense".as_ptr().cast()) };
    assert_eq!(loaded, 218);
    launches_end_as_they_must();
    // SAFETY: what ends the process is meant to.
    unsafe {
        match end.as_str() {
            "_exit" => libc::_exit(0),
            "abort" => libc::abort(),
            "kill" => _ = libc::raise(libc::SIGKILL),
            _ => std::ptr::null_mut::<u32>().write_volatile(1),
        }
    }
}

#[test]
fn what_a_process_did_outlasts_any_end() {
    for end in ["_exit", "abort", "kill", "crash"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_process_ends_at_once"]).env("END_BY", end);
        command.env("PTXVM_REPORT", folder.path().join("report.json"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().unwrap();
        assert!(!folder.path().join("report.json").exists());
        let file = std::fs::read(folder.path().join("report.json.0.live")).unwrap();
        let number = |i: usize| u64::from_ne_bytes(file[8 * i..][..8].try_into().unwrap());
        let lines = file[65536..].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let all = |name: &str| lines.iter().filter_map(|line| line.get(name).cloned()).collect::<Vec<_>>();
        assert_eq!(lines[0]["capability"], 90);
        assert!(number(0) >= 13 && number(1) > 0, "{end}: calls");
        assert_eq!(number(2), 2, "{end}: errors");
        assert_eq!(all("kernel"), ["good", "overrun", "bad"]);
        // The only device has a context, and no memory in use.
        assert_eq!([number(4), number(5)], [0, 1], "{end}: what is used");
        // Whoever is launched first has the first pair behind those of 64 devices.
        assert_eq!([number(132), number(134), number(136)], [2, 2, 1], "{end}: launches");
        let faults = all("fault");
        assert_eq!((&faults[0]["code"], &faults[1]["code"]), (&"out-of-bounds".into(), &"trap".into()));
        assert_eq!(faults[1]["fault"]["original"]["file"], "bad.cu");
        let refused = all("not_loaded");
        assert!(refused.len() == 1 && refused[0].as_str().unwrap().contains("error"), "{refused:?}");
    }
}

#[test]
fn a_process_reports_its_launches_and_faults() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "launches_end_as_they_must"]).env("PTXVM_REPORT", folder.path().join("%p.json"));
    command.env("PTXVM_PROFILE", "1");
    let mut child =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let path = folder.path().join(format!("{}.json", child.id()));
    assert!(child.wait().unwrap().success());
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let launches =
        |i: usize| (report["kernels"][i]["name"].as_str(), report["kernels"][i]["launches"].as_u64());
    assert_eq!((launches(0), launches(1)), ((Some("bad"), Some(1)), (Some("good"), Some(2))));
    // Everything that the test above calls, whoever else calls something.
    assert!(report["calls"].as_u64().unwrap() >= 13, "{}", report["calls"]);
    assert!(report["call_seconds"].as_f64().unwrap() > 0.0);
    let faults = report["faults"].as_array().unwrap();
    let fault = |i: usize| (faults[i]["kernel"].as_str().unwrap(), faults[i]["message"].as_str().unwrap());
    // The overrun is told once.
    assert_eq!((faults.len(), fault(0).0, fault(1).0), (2, "overrun", "bad"));
    assert!(fault(0).1.contains("just past the end of shared variable `word`"), "{}", fault(0).1);
    assert!(fault(0).1.contains("goes on as there"), "{}", fault(0).1);
    assert!(
        fault(1).1.contains("trap") && fault(1).1.contains("was compiled from bad.cu:7:3"),
        "{}",
        fault(1).1
    );
    // The same for programs.
    let trap = &faults[1];
    assert_eq!((&trap["code"], &trap["line"]), (&"trap".into(), &8.into()));
    assert_eq!(
        (&trap["fault"]["block"], &trap["fault"]["original"]["line"]),
        (&serde_json::json!([0, 0, 0]), &7.into())
    );
    assert_eq!(faults[0]["fault"]["access"]["space"], "shared");
    // What is there while the process runs is no more.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let profile = &report["profiles"][0];
    assert_eq!(profile["sources"][0]["text"].as_str().map(str::as_bytes), Some(PTX.to_bytes()));
    let executions: Vec<_> = profile["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|instruction| {
            let text = &PTX.to_str().unwrap()[instruction["offset"].as_u64().unwrap() as usize..];
            (&text[..4], instruction["executions"].as_u64(), instruction["threads"].as_u64())
        })
        .collect();
    let expected = [
        ("ret;", Some(2), Some(64)),
        ("trap", Some(1), Some(32)),
        ("ld.s", Some(2), Some(64)),
        ("ret;", Some(2), Some(64)),
    ];
    assert_eq!(executions, expected);
}
