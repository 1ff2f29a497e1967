//! `ptxvm exec` and `ptxvm as-ptxas`.
#![cfg(unix)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Folder, Outcome, finish, ptxvm};
#[cfg(target_os = "linux")]
use nix::sys::signal::Signal;
use serde_json::Value;

/// A folder with the command and a file that stands for the driver beside it, as after an installation.
fn installed() -> Folder {
    let folder = Folder::new();
    folder.put_libraries(&[]);
    folder.write("libcudart.so.12", "");
    folder
}

fn exec(folder: &Folder, options: &str, script: &str) -> Outcome {
    let mut command = Command::new(folder.path("ptxvm"));
    command.current_dir(folder.path("")).arg("exec").args(options.split_whitespace());
    command.args(["--", "sh", "-c", script]).env("LD_LIBRARY_PATH", "/before:/last");
    finish(&mut command).unwrap()
}

#[test]
fn a_program_finds_the_libraries() {
    let folder = installed();
    let script = r#"
        first=${LD_LIBRARY_PATH%%:*}; echo "${LD_LIBRARY_PATH#*:}"
        ls "$first"
        test "$NUMBA_CUDA_DRIVER" = "$first/libcuda.so.1" && test "$TRITON_LIBCUDA_PATH" = "$first" && echo found
        test "$TRITON_PTXAS_PATH" = "$TRITON_PTXAS_BLACKWELL_PATH" && "$TRITON_PTXAS_PATH" --version | grep -o "release [0-9]*"
        echo "$PTXVM_DEVICE"; exit 7"#;
    let outcome = exec(&folder, "--device sm_80", script);
    let wanted = "/before:/last\nlibcuda.so\nlibcuda.so.1\nlibcudart.so\nlibcudart.so.12\nnvidia-smi\nptxas\nreports\nfound\nrelease 12\nsm_80\n";
    assert_eq!(outcome.stdout, wanted, "{}", outcome.transcript());
    assert_eq!(outcome.code, Some(7));
    assert_eq!(outcome.stderr, "ptxvm: the program did not use the CUDA driver\n");
}

#[test]
fn the_folder_for_ptx_is_absolute() {
    let folder = installed();
    let outcome = exec(&folder, "--save-ptx kept", "echo $PTXVM_SAVE_PTX");
    assert_eq!(outcome.stdout, format!("{}\n", folder.path("kept").display()), "{}", outcome.transcript());
}

#[test]
fn signals_and_what_cannot_be_started_have_exit_codes() {
    let folder = installed();
    assert_eq!(exec(&folder, "", "kill -9 $$").code, Some(137));
    let run = |words: &[&str]| finish(Command::new(folder.path("ptxvm")).args(words)).unwrap();
    let outcome = run(&["exec", "--", "/no/such/program"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("cannot run `/no/such/program`: there is no such program"),
        "{}",
        outcome.stderr
    );
    let outcome = run(&["exec", "--device", "sm_99", "--", "true"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("`sm_99` is no target"), "{}", outcome.stderr);
    std::fs::remove_file(folder.path("libcuda.so.1")).unwrap();
    let outcome = run(&["exec", "--", "true"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("libcuda.so.1 is not beside") && outcome.stderr.contains("cargo build"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn what_cannot_be_started_says_why() {
    let folder = installed();
    folder.write("script", "#!/no/such/python3 -u\n");
    std::fs::set_permissions(folder.path("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |program: &str| {
        finish(Command::new(folder.path("ptxvm")).args(["exec", "--"]).arg(folder.path(program))).unwrap()
    };
    let outcome = run("script");
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("script`: there is no `/no/such/python3`, which is to read it"),
        "{}",
        outcome.stderr
    );
    assert!(run("none").stderr.contains("none`: there is no such program"), "{}", run("none").stderr);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_program_runs() {
    let folder = installed();
    for option in ["--report no/report.json", "--profile no/slow.html"] {
        let outcome = exec(&folder, option, "echo ran; exit 5");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{}", outcome.transcript());
        assert!(outcome.stderr.contains("cannot write `no/"), "{}", outcome.stderr);
    }
    // Nor does a device that fills up hide the program's own code.
    let outcome = exec(&folder, "--report /dev/full", "exit 5");
    assert_eq!(outcome.code, Some(5), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("cannot write `/dev/full`"), "{}", outcome.stderr);
}

/// Sends a signal to `ptxvm exec` once the script says that it is ready; the outcome, and what is left in the folder for temporary files.
#[cfg(target_os = "linux")]
fn exec_until(signal: Signal, script: &str) -> (Outcome, usize) {
    use std::io::{BufRead, BufReader, Read};
    let (folder, temporary) = (installed(), tempfile::tempdir().unwrap());
    let mut command = Command::new(folder.path("ptxvm"));
    command.args(["exec", "--", "sh", "-c", script]).env("TMPDIR", temporary.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    let (mut rest, mut stderr) = (String::new(), String::new());
    stdout.read_to_string(&mut rest).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code();
    let left = std::fs::read_dir(temporary.path()).unwrap().count();
    (Outcome { code, stdout: rest, stderr }, left)
}

#[cfg(target_os = "linux")]
#[test]
fn signals_reach_the_program_and_nothing_is_left() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let (outcome, left) = exec_until(signal, "echo ready; exec sleep 60 >/dev/null 2>&1");
        assert_eq!((outcome.code, left), (Some(code), 0), "{signal}: {}", outcome.transcript());
    }
    // The program decides.
    let wait = |signal| format!("trap 'echo got; exit 3' {signal}; echo ready; while :; do sleep 0.05; done");
    for (signal, name) in [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGUSR1, "USR1")] {
        let (outcome, left) = exec_until(signal, &wait(name));
        assert_eq!((outcome.code, outcome.stdout.as_str(), left), (Some(3), "got\n", 0), "{signal}");
    }
}

#[test]
fn what_processes_report_is_put_together() {
    let folder = installed();
    // Two processes, of which each writes what the driver would.
    let script = r#"
        write() { echo "{\"process\":$1,\"calls\":$1,\"call_seconds\":2.25,\"kernels\":[{\"name\":\"f\",\"launches\":$1,\"seconds\":0.5}],\"faults\":$2,\"not_supported\":[\"cuX\"]}" \
            > "${PTXVM_REPORT%%%p.json}$1.json"; }
        write 1 '[]'; write 2 '[{"kernel":"f","message":"out of bounds"}]'"#;
    let outcome = exec(&folder, "--report report.json", script);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    assert!(outcome.stderr.contains("1 kernel launched 3 times, 1.000 s in kernels"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("4.500 s in 3 calls of the driver"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("1 fault\n") && outcome.stderr.contains("faults in \"f\"\n"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("not supported, and asked for: cuX\n"), "{}", outcome.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(folder.path("report.json")).unwrap()).unwrap();
    assert_eq!(report["launches"], 3);
    assert_eq!(report["exit_code"], 0);
    assert_eq!(report["faults"][0]["message"], "out of bounds");
    assert_eq!(report["processes"].as_array().unwrap().len(), 2);
    assert_eq!(report["processes"][0]["complete"], true);
    assert_eq!(exec(&folder, "--quiet", "true").stderr, "");
}

#[test]
fn what_tools_check_and_how_errors_end_is_said_by_options() {
    let folder = installed();
    folder.write("known.supp", "race-same-value kernel=f # both write 1\n");
    folder.write("bad.supp", "race-like\n");
    let script = |errors: u32| {
        format!(
            r#"echo '{{"calls":1,"call_seconds":0,"kernels":[],"faults":[],"errors":{errors},"not_supported":[]}}' > "${{PTXVM_REPORT%%%p.json}}1.json"
            echo "$PTXVM_KERNEL_NAME;$PTXVM_KERNEL_NAME_EXCLUDE;$PTXVM_LAUNCH_SKIP;$PTXVM_LAUNCH_COUNT;${{PTXVM_SUPPRESSIONS##*/}}"; exit 5"#
        )
    };
    let options =
        "--kernel-name kns=a,kne=b --kernel-name regex=c,d --kernel-name-exclude kns=e -s 3 --launch-count 4";
    let outcome = exec(&folder, &format!("{options} --suppressions known.supp"), &script(1));
    assert_eq!(outcome.stdout, "kns=a,kne=b\nregex=c,d;kns=e;3;4;known.supp\n", "{}", outcome.transcript());
    assert_eq!(outcome.code, Some(5));
    assert_eq!(exec(&folder, "--error-exitcode 9", &script(1)).code, Some(9));
    assert_eq!(exec(&folder, "--error-exitcode 9", &script(0)).code, Some(5));
    for (options, message) in [
        ("--suppressions bad.supp", "line 1: there is no finding or tool `race-like`"),
        ("--suppressions none.supp", "none.supp"),
        ("--kernel-name f", "`f` is none of kernel_name=NAME"),
        ("--kernel-name regex=(", "unclosed group"),
    ] {
        let outcome = exec(&folder, options, "true");
        assert!(outcome.code == Some(2) && outcome.stderr.contains(message), "{}", outcome.transcript());
    }
}

#[test]
fn findings_of_a_launch_are_suppressed_or_have_an_exit_code() {
    let folder = Folder::new();
    let kernel = |body: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 out) {{\n.reg .b64 %o; .reg .b32 %x;\n\
             ld.param.u64 %o, [out];\n{body}\nret;\n}}\n"
        )
    };
    folder.write("new.ptx", kernel("st.global.u32 [%o], %x;"));
    folder.write("far.ptx", kernel("st.global.u32 [%o+400], 1;"));
    folder.write("line.supp", "uninitialized-output file=new line=7\n");
    folder.write("other.supp", "uninitialized-output line=6\nuninitialized\nracecheck\n");
    let code = |options: &str| {
        let mut command = ptxvm();
        command.current_dir(folder.path("")).arg("run").args(options.split_whitespace());
        finish(command.args(["--arg", "u32[1]", "--tool", "all"])).unwrap().code
    };
    assert_eq!(code("new.ptx"), Some(3));
    assert_eq!(code("new.ptx --error-exitcode 9"), Some(9));
    assert_eq!(code("far.ptx --error-exitcode 9"), Some(9));
    assert_eq!(code("new.ptx --error-exitcode 9 --suppressions line.supp"), Some(0));
    assert_eq!(code("new.ptx --suppressions other.supp"), Some(3));
    assert_eq!(code("new.ptx --suppressions none.supp"), Some(2));
}

#[test]
fn a_profile_has_the_kernels_of_all_processes() {
    let folder = installed();
    // What the driver would write, if it is asked to.
    let script = r#"
        test "$PTXVM_PROFILE" = 1 || exit 1
        printf '%s' '{"calls":0,"call_seconds":0,"kernels":[],"faults":[],"not_supported":[],"profiles":[
            {"sources":[{"name":"one.ptx","text":"// first\nret;\n"}],"instructions":[{"source":0,"offset":9,"executions":3,"threads":96,
             "guarded_off":0,"diverged":0,"vector":0,"broadcast":0,"gather":0,"seconds":0.5}]}]}' \
            | tee "${PTXVM_REPORT%%%p.json}1.json" > "${PTXVM_REPORT%%%p.json}2.json""#;
    let outcome = exec(&folder, "--profile slow.json --report report.json", script);
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let read =
        |name: &str| serde_json::from_slice::<Value>(&std::fs::read(folder.path(name)).unwrap()).unwrap();
    let line = &read("slow.json")["lines"][0];
    let line = ["file", "line", "text", "executions", "threads", "share"].map(|key| line[key].to_string());
    assert_eq!(line, ["\"one.ptx\"", "2", "\"ret;\"", "6", "192", "1.0"]);
    assert_eq!(read("report.json")["processes"][0].get("profiles"), None);
    assert_eq!(exec(&folder, "--profile slow.exe", "true").code, Some(2));
}

#[test]
fn tools_are_asked_for_by_name() {
    let folder = installed();
    let outcome = exec(&folder, "--quiet --tool racecheck,initcheck", "echo $PTXVM_TOOL");
    assert_eq!(outcome.stdout, "racecheck,initcheck\n", "{}", outcome.transcript());
    let outcome = exec(&folder, "--tool speedcheck", "true");
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("there is no tool `speedcheck`"), "{}", outcome.stderr);
    assert_eq!(exec(&folder, "--tool racecheck --profile slow.html", "true").code, Some(2));
}

/// A file in ELF's format with these sections, as far as the command looks: one that nvcc makes has `.nvFatBinSegment`.
fn elf(sections: &[&str]) -> Vec<u8> {
    let names: String = ["\0", ".shstrtab\0"]
        .into_iter()
        .map(str::to_owned)
        .chain(sections.iter().map(|name| format!("{name}\0")))
        .collect();
    let (header, section) = (64, 64);
    let table = header + names.len();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // An executable for x86-64, version 1; the table of sections stands behind the names.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    file.resize(40, 0);
    file.extend((table as u64).to_le_bytes());
    file.extend([0; 4]);
    file.extend([64, 0, 56, 0, 0, 0, 64, 0, sections.len() as u8 + 2, 0, 1, 0]);
    file.extend(names.bytes());
    file.extend([0; 64]);
    for (i, name) in std::iter::once(&".shstrtab").chain(sections).enumerate() {
        let place = names.find(&format!("\0{name}\0")).unwrap() + 1;
        let start = file.len();
        file.extend((place as u32).to_le_bytes());
        // A table of strings, then plain contents.
        file.extend(if i == 0 { 3u32 } else { 1 }.to_le_bytes());
        file.resize(start + 24, 0);
        file.extend((header as u64).to_le_bytes());
        file.extend((names.len() as u64).to_le_bytes());
        file.resize(start + section, 0);
    }
    file
}

#[test]
fn a_program_with_the_runtime_inside_is_told_so() {
    let folder = installed();
    let run = |name: &str| {
        finish(Command::new(folder.path("ptxvm")).args(["exec", "--"]).arg(folder.path(name))).unwrap()
    };
    folder.write("nvcc.out", elf(&[".text", ".nvFatBinSegment"]));
    folder.write("plain.out", elf(&[".text"]));
    let advice = "build it with `nvcc -cudart shared`";
    assert!(run("nvcc.out").stderr.contains(advice), "{}", run("nvcc.out").stderr);
    assert!(!run("plain.out").stderr.contains(advice));
}

const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\n\tret;\n}\n";

fn ptxas(folder: &Folder, words: &str) -> Outcome {
    folder.run(&format!("as-ptxas {words}"))
}

#[test]
fn what_ptxas_takes_is_written_as_it_is() {
    let folder = Folder::new();
    folder.write("k.ptx", PTX);
    let outcome = ptxas(&folder, "-lineinfo --fmad=false -v --gpu-name=sm_90a k.ptx -o k.o");
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let kernel = "ptxas info    : Compiling entry function 'f' for 'sm_90a'\n\
                  ptxas info    : Function properties for f\n    \
                  0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                  ptxas info    : Used 16 registers\n";
    assert_eq!(outcome.stderr, kernel);
    assert_eq!(std::fs::read(folder.path("k.o")).unwrap(), format!("{PTX}\0").into_bytes());
    // Under its own name.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ptxvm"), folder.path("ptxas")).unwrap();
    let version = finish(Command::new(folder.path("ptxas")).arg("--version")).unwrap();
    let release = version.stdout.split_once("release ").unwrap().1;
    assert!(release.starts_with("12.9, V12.9"), "{}", version.stdout);
}

#[test]
fn what_ptxas_refuses_is_refused_in_its_words() {
    let folder = Folder::new();
    folder.write("k.ptx", PTX);
    folder.write("bad.ptx", PTX.replace("ret;", ".reg .u32 %r;\n\tmul.f16 %r, %r, 1;\n\tfoo;"));
    folder.write("cut.ptx", &PTX[..60]);
    let aborted = "ptxas fatal   : Ptx assembly aborted due to errors\n";
    for (words, stderr) in [
        (
            "k.ptx -arch sm_75",
            "ptxas fatal   : SM version specified by .target is higher than default SM version assumed\n"
                .to_owned(),
        ),
        ("no.ptx", "ptxas fatal   : Input file 'no.ptx' could not be opened\n".to_owned()),
        ("k.ptx --foo", "ptxas fatal   : Unknown option '-foo'\n".to_owned()),
        (
            "bad.ptx -arch sm_80",
            format!(
                "ptxas bad.ptx, line 7; error   : Arguments mismatch for instruction 'mul'\n\
                 ptxas bad.ptx, line 8; error   : Not a name of any known instruction: 'foo'\n{aborted}"
            ),
        ),
    ] {
        let outcome = ptxas(&folder, &format!("{words} -o k.o"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(255), stderr.as_str()), "{words}");
        assert!(!Path::new(&folder.path("k.o")).exists(), "{words}");
    }
    let outcome = ptxas(&folder, "cut.ptx -arch sm_80 -o k.o");
    assert!(
        outcome.stderr.contains("; fatal   : ") && outcome.stderr.ends_with(aborted),
        "{}",
        outcome.stderr
    );
}

/// What `ptxvm env` prints is what a program finds under `exec`, in a shell too, and a second time.
#[cfg(target_os = "linux")]
#[test]
fn the_environment_of_exec_is_printed() {
    let folder = installed();
    let kept = folder.path("it's kept");
    let env = |words: &[&str]| {
        let mut command = Command::new(folder.path("ptxvm"));
        command.arg("env").args(words).arg(&kept).env("LD_LIBRARY_PATH", "/before").env_remove("LD_AUDIT");
        let outcome = finish(&mut command).unwrap();
        assert_eq!((outcome.code, &*outcome.stderr), (Some(0), ""), "{}", outcome.transcript());
        outcome.stdout
    };
    let plain = env(&["--device", "sm_80", "--tool", "racecheck"]);
    let value =
        |name: &str| plain.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
    let path = kept.canonicalize().unwrap().display().to_string();
    assert_eq!(value("LD_LIBRARY_PATH"), format!("{path}:/before"));
    assert_eq!(
        [value("PTXVM_DEVICE"), value("PTXVM_TOOL"), value("PTXVM_TORCH")],
        ["sm_80", "racecheck", "1"]
    );
    assert_eq!(value("TRITON_PTXAS_PATH"), format!("{path}/ptxas"));
    let words = "printf '%s\n%s' \"$LD_LIBRARY_PATH\" \"$(command -v ptxas)\"";
    let script = format!("{}\n{words}", env(&["--shell"]));
    let shell = finish(Command::new("sh").arg("-c").arg(script)).unwrap();
    assert_eq!(shell.stdout, format!("{path}:/before\n{path}/ptxas"));
}

#[cfg(target_os = "linux")]
#[test]
fn nvidia_smi_shows_the_devices() {
    let folder = installed();
    let smi = |words: &str| {
        let set = "PTXVM_DEVICE_COUNT=2 PTXVM_DEVICE_MEMORY=3G CUDA_VISIBLE_DEVICES=1";
        let outcome = exec(&folder, "--quiet --device sm_80", &format!("{set} nvidia-smi {words}"));
        (outcome.code, outcome.stdout, outcome.stderr)
    };
    let query =
        "--query-gpu=index,name,memory.total,memory.used,compute_cap,pci.bus_id,temperature.gpu --format=csv";
    let rows = |units: &str| {
        format!(
            "0, NVIDIA A100-SXM4-80GB, 3072{units}, 0{units}, 8.0, 00000000:01:00.0, [N/A]\n\
             1, NVIDIA A100-SXM4-80GB, 3072{units}, 0{units}, 8.0, 00000000:02:00.0, [N/A]\n"
        )
    };
    let title =
        "index, name, memory.total [MiB], memory.used [MiB], compute_cap, pci.bus_id, temperature.gpu\n";
    let good = |stdout: String| (Some(0), stdout, String::new());
    assert_eq!(smi(query), good(title.to_owned() + &rows(" MiB")));
    assert_eq!(smi(&format!("{query},noheader,nounits")), good(rows("")));
    let second = "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-70747876-6d2d-612d-6770-752d6f662d31)\n";
    assert_eq!(smi("-L -i 0000:02:00.0"), good(second.to_owned()));
    assert_eq!(smi("--query-compute-apps=pid,used_memory --format=csv,noheader"), good(String::new()));
    let (code, table, _) = smi("");
    assert!(
        code == Some(0) && table.contains("Driver Version: ") && table.contains("0MiB /   3072MiB"),
        "{table}"
    );
    let (code, details, _) = smi("-q");
    assert!(code == Some(0) && details.contains("GPU 00000000:01:00.0\n    timestamp"), "{details}");
    for (words, code, message) in [
        ("--gpu-reset", 2, "`--gpu-reset` is no option"),
        ("--query-gpu=speed --format=csv", 2, "`speed` is no field"),
        ("-i 2", 6, "there is no device `2`"),
    ] {
        let (found, stdout, stderr) = smi(words);
        assert!(found == Some(code) && stdout.is_empty() && stderr.contains(message), "{words}: {stderr}");
    }
    // Without `exec`, and under the name of the subcommand.
    let outcome =
        finish(ptxvm().args(["as-nvidia-smi", "--list-gpus"]).env("PTXVM_DEVICE_COUNT", "0")).unwrap();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(6), ""));
}

#[test]
fn help_shows_examples() {
    for (words, parts) in [
        (
            ["exec", "--help"],
            vec![
                "--device",
                "--report",
                "python train.py",
                "Exit codes",
                "--error-exitcode 1",
                "--kernel-name kns=reduce",
            ],
        ),
        (["as-ptxas", "--help"], vec!["--gpu-name", "--output-file", "TRITON_PTXAS_PATH", "Exit codes"]),
    ] {
        let outcome = finish(ptxvm().args(words)).unwrap();
        assert_eq!(outcome.code, Some(0));
        for part in parts {
            assert!(outcome.stdout.contains(part), "{words:?}: no {part}\n{}", outcome.stdout);
        }
    }
}
