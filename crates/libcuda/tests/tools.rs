//! What `PTXVM_TOOL` makes the driver say of a program.

mod driver;

use std::ffi::{CStr, CString};
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use driver::*;

/// All threads write one word, which comes from shared memory that nobody wrote. The module's `.const` memory is the driver's own.
const PTX: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b32 table[4] = {1, 2, 3, 4};
.visible .entry racy(.param .u64 out) {
    .reg .b32 %t, %x;
    .reg .b64 %o;
    .shared .align 4 .b32 word;
    ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x;
    ld.shared.u32 %x, [word];
    add.u32 %x, %x, %t;
    st.global.u32 [%o], %x;
    ret;
}
";

/// Launches the kernel twice with one allocation, and frees one of three others. It is a test like any other, and a program for the next ones.
#[test]
fn a_program_with_faults_of_its_own() {
    driver::start();
    let module = driver::load(PTX);
    let function = driver::function(module, c"racy");
    // SAFETY: every pointer is good for its call.
    unsafe {
        let mut places = [0; 4];
        for (place, bytes) in places.iter_mut().zip([64, 1000, 1000, 3000]) {
            assert_eq!(cuMemAlloc_v2(place, bytes), 0);
        }
        for _ in 0..2 {
            let mut params = [(&raw mut places[0]).cast()];
            let params = params.as_mut_ptr();
            assert_eq!(cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, null_mut(), params, null_mut()), 0);
            assert_eq!(cuCtxSynchronize(), 0);
        }
        assert_eq!(cuMemFree_v2(places[3]), 0);
    }
}

/// The same, and it ends its context. A program for the last test.
#[test]
#[ignore = "it ends the context that others use"]
fn a_program_that_resets_its_device() {
    a_program_with_faults_of_its_own();
    // SAFETY: it takes no pointers.
    unsafe { assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0) };
}

/// Kernels that add one to each element of an array, and have these names.
fn kernels(names: &[&str]) -> CString {
    let kernel = |name: &&str| {
        format!(
            ".visible .entry {name}(.param .u64 from, .param .u64 to) {{
                .reg .b32 %x, %t; .reg .b64 %f, %o, %i;
                ld.param.u64 %f, [from];
                ld.param.u64 %o, [to];
                mov.u32 %x, %ctaid.x;
                mov.u32 %t, %tid.x;
                mad.lo.u32 %t, %x, 64, %t;
                mul.wide.u32 %i, %t, 4;
                add.u64 %f, %f, %i;
                add.u64 %o, %o, %i;
                ld.global.u32 %x, [%f];
                add.u32 %x, %x, 1;
                st.global.u32 [%o], %x;
                ret;
            }}"
        )
    };
    let all: String = names.iter().map(kernel).collect();
    CString::new(format!(".version 8.0 .target sm_80 .address_size 64 {all}")).unwrap()
}

/// The kernels of the program.
const NAMES: [&str; 8] = [
    "reads_new",
    "reads_half",
    "reads_copy",
    "reads_pool",
    "reads_reused",
    "reads_managed",
    "reads_written",
    "reads_results",
];

/// Elements of the arrays.
const ELEMENTS: usize = 64 * 64;
const BYTES: usize = 4 * ELEMENTS;

/// Copies from and to memory that nobody has written, and kernels that read it: a program for the next test.
#[test]
fn a_program_that_reads_what_nobody_wrote() {
    driver::start();
    let module = driver::load(&kernels(&NAMES));
    let run = |name: &CStr, from: u64, to: u64| {
        let (mut from, mut to) = (from, to);
        let mut params = [(&raw mut from).cast(), (&raw mut to).cast()];
        let function = driver::function(module, name);
        // SAFETY: as many parameters as the kernels have.
        unsafe {
            let params = params.as_mut_ptr();
            assert_eq!(cuLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, null_mut(), params, null_mut()), 0);
            assert_eq!(cuCtxSynchronize(), 0);
        }
    };
    // SAFETY: every pointer is good for its call, and every address for as many bytes.
    unsafe {
        let new = || {
            let mut address = 0;
            assert_eq!(cuMemAlloc_v2(&raw mut address, BYTES), 0);
            address
        };
        let mut host = vec![1u8; BYTES];
        let output = new();
        run(c"reads_new", new(), output);
        let half = new();
        assert_eq!(cuMemsetD8_v2(half, 7, BYTES / 2), 0);
        run(c"reads_half", half, output);
        let copy = new();
        assert_eq!(cuMemcpyHtoD_v2(copy, host.as_ptr().cast(), BYTES), 0);
        assert_eq!(cuMemcpyDtoD_v2(copy + 4, half, BYTES - 4), 0);
        run(c"reads_copy", copy, output);
        let mut pool = 0;
        assert_eq!(cuMemAllocAsync(&raw mut pool, BYTES, null_mut()), 0);
        run(c"reads_pool", pool, output);
        assert_eq!(cuMemFree_v2(half), 0);
        run(c"reads_reused", new(), output);
        let written = new();
        assert_eq!(cuMemcpyHtoD_v2(written, host.as_ptr().cast(), BYTES), 0);
        run(c"reads_written", written, output);
        let results = new();
        run(c"reads_written", written, results);
        run(c"reads_results", results, output);
        assert_eq!(cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), output, BYTES), 0);
        let mut managed = 0;
        assert_eq!(cuMemAllocManaged(&raw mut managed, BYTES, 1), 0);
        run(c"reads_managed", managed, output);
        assert_eq!(cuMemAllocManaged(&raw mut managed, BYTES, 1), 0);
        // The host writes one byte of each page, which are all that is known to be written.
        let start = std::ptr::with_exposed_provenance_mut::<u8>(managed as usize);
        (0..BYTES).step_by(4096).for_each(|page| start.add(page).write(1));
        run(c"reads_written", managed, output);
        // Structures of a byte and a word, whose padding nobody writes.
        let structures = new();
        for at in (0..BYTES as u64).step_by(8) {
            assert_eq!(cuMemsetD8_v2(structures + at, 1, 1), 0);
            assert_eq!(cuMemsetD8_v2(structures + at + 4, 1, 4), 0);
        }
        assert_eq!(cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), structures, BYTES), 0);
    }
}

/// What is copied to the host is unwritten: a program for another test.
#[test]
fn a_program_that_copies_what_nobody_wrote() {
    driver::start();
    let (mut address, mut host) = (0, [0u8; 256]);
    // SAFETY: the pointers are good for as many bytes.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&raw mut address, 256), 0);
        assert_eq!(cuMemsetD8_v2(address, 1, 100), 0);
        assert_eq!(cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), address, 256), 0);
    }
}

/// What the program says on stderr with these tools.
fn stderr(program: &str, tools: &str) -> String {
    stderr_with(program, &[("PTXVM_TOOL", tools)])
}

/// The same with an environment.
fn stderr_with(program: &str, environment: &[(&str, &str)]) -> String {
    let output = output(program, environment);
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// What becomes of the program.
fn output(program: &str, environment: &[(&str, &str)]) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", program, "--include-ignored"])
        .envs(environment.iter().copied())
        .stdout(Stdio::null());
    command.output().unwrap()
}

#[test]
fn tools_say_what_they_find_in_launches_once() {
    let said = stderr("a_program_with_faults_of_its_own", "racecheck,initcheck");
    for code in ["error[race-write-write]", "error[uninitialized-output]"] {
        assert_eq!(said.matches(code).count(), 1, "{code}: {said}");
    }
    assert!(said.contains("threads (0,0,0) and (1,0,0) of block (0,0,0)"), "{said}");
    assert!(!said.contains("leak"), "{said}");
    assert_eq!(stderr("a_program_with_faults_of_its_own", "synccheck"), "");
    // With a tool that there is not, nothing runs.
    let refused = output("a_program_with_faults_of_its_own", &[("PTXVM_TOOL", "raceczech")]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("there is no tool `raceczech`"), "{said}");
}

#[test]
fn memory_that_is_not_given_back_is_told_when_the_process_or_its_context_ends() {
    for program in ["a_program_with_faults_of_its_own", "a_program_that_resets_its_device"] {
        let said = stderr(program, "leakcheck");
        let expected = "ptxvm: error[driver-leak]: 3 allocations of 2064 bytes, never given back: cuMemAlloc";
        assert_eq!(said.matches("driver-leak").count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// The kernels in which initcheck finds something.
fn kernels_with_findings(said: &str) -> Vec<&str> {
    let kernel = |line: &str| {
        let text = line.split_once("--> ")?.1;
        let number: usize = text.split(':').nth(1)?.parse().ok()?;
        // A kernel has 15 lines, and the next one begins in its last.
        NAMES.get((number - 1) / 14).copied()
    };
    said.lines().filter_map(kernel).collect()
}

#[test]
fn memory_is_unwritten_until_somebody_writes_it() {
    let program = "a_program_that_reads_what_nobody_wrote";
    let said = stderr(program, "all");
    let expected = ["reads_new", "reads_half", "reads_copy", "reads_pool", "reads_reused", "reads_managed"];
    assert_eq!(kernels_with_findings(&said), expected, "{said}");
    assert_eq!(said.matches("error[uninitialized-output]").count(), expected.len(), "{said}");
    assert!(said.contains("64 bytes into allocation") || said.contains("0 bytes into allocation"), "{said}");
    assert!(!said.contains("uninitialized-memcpy"), "{said}");
    assert_eq!(stderr(program, "racecheck,synccheck"), "");
}

#[test]
fn copies_to_the_host_of_what_nobody_wrote_are_told() {
    let said = stderr("a_program_that_copies_what_nobody_wrote", "initcheck");
    assert!(said.contains("error[uninitialized-memcpy]: a copy to the host of 256 bytes"), "{said}");
    assert!(
        said.contains("has 156 that nobody wrote: the first is 100 bytes into allocation 1 (cuMemAlloc"),
        "{said}"
    );
    assert_eq!(stderr("a_program_that_copies_what_nobody_wrote", "racecheck"), "");
}

#[test]
fn memory_that_nobody_writes_is_told_if_asked_for() {
    let (program, asked) = ("a_program_that_copies_what_nobody_wrote", ("PTXVM_TRACK_UNUSED_MEMORY", "1"));
    let said = stderr_with(program, &[("PTXVM_TOOL", "initcheck"), asked]);
    let expected = "warning[unused-memory]: nobody has written 156 bytes of allocation 1 (cuMemAlloc";
    assert!(said.contains(expected) && said.contains(": the first is 100 bytes into it"), "{said}");
    assert_eq!(said.matches("unused-memory").count(), 1, "{said}");
    assert!(!stderr(program, "initcheck").contains("unused-memory"));
    // The kernel writes a word of the first of four allocations. The last one is freed, the others are told when the process ends.
    let said = stderr_with("a_program_with_faults_of_its_own", &[("PTXVM_TOOL", "initcheck"), asked]);
    let told: Vec<_> = said.lines().filter(|line| line.contains("unused-memory")).collect();
    assert_eq!(told.len(), 4, "{said}");
    assert!(
        told[0].contains("3000 bytes of allocation 5 ") && told[1].contains("60 bytes of allocation 2 "),
        "{said}"
    );
    assert_eq!(stderr_with(program, &[("PTXVM_TOOL", "racecheck"), asked]), "");
}

#[test]
fn launches_are_chosen_and_findings_suppressed() {
    let program = "a_program_that_reads_what_nobody_wrote";
    let found = |environment: &[(&str, &str)]| {
        let environment = [&[("PTXVM_TOOL", "initcheck")], environment].concat();
        let said = stderr_with(program, &environment);
        kernels_with_findings(&said).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&[("PTXVM_KERNEL_NAME", "kns=half,kne=reads_copy")]), ["reads_half", "reads_copy"]);
    // Those that are not checked write nevertheless.
    assert_eq!(found(&[("PTXVM_KERNEL_NAME", "regex=results")]), Vec::<&str>::new());
    let exclude = ("PTXVM_KERNEL_NAME_EXCLUDE", "kns=half\nregex=p[oy]");
    assert_eq!(found(&[exclude]), ["reads_new", "reads_reused", "reads_managed"]);
    let third = [("PTXVM_LAUNCH_SKIP", "2"), ("PTXVM_LAUNCH_COUNT", "1")];
    assert_eq!(found(&third), ["reads_copy"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "uninitialized-output kernel=reads_(new|half)\nuninitialized kernel=pool")
        .unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(
        found(&[("PTXVM_SUPPRESSIONS", path)]),
        ["reads_copy", "reads_pool", "reads_reused", "reads_managed"]
    );
    std::fs::write(file.path(), "uninitialized-memcpy\ndriver-leak").unwrap();
    let said = stderr_with(
        "a_program_that_copies_what_nobody_wrote",
        &[("PTXVM_TOOL", "all"), ("PTXVM_SUPPRESSIONS", path)],
    );
    assert_eq!(said, "");
}
