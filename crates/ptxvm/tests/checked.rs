//! Launches that are checked on several host threads: what is found, and what is in memory afterwards, is the same for every number of them.

use ptxvm::{Arg, Checker, Device, LaunchConfig, Module, Tools};

const BLOCKS: usize = 160;
const THREADS: usize = 64;
const COUNT: usize = BLOCKS * THREADS;

/// Adds one to each element, and one to a counter; then what stands in for `{}`.
fn kernel(rest: &str) -> Module {
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
        .visible .entry count(.param .u64 values, .param .u64 counter, .param .u64 other) {{\n\
            .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<12>;\n\
            ld.param.u64 %rd1, [values]; ld.param.u64 %rd2, [counter]; ld.param.u64 %rd3, [other];\n\
            mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n\
            mad.lo.u32 %r3, %r1, {THREADS}, %r2;\n\
            mul.wide.u32 %rd4, %r3, 4;\n\
            add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd3, %rd4;\n\
            ld.global.u32 %r4, [%rd5]; add.u32 %r4, %r4, 1; st.global.u32 [%rd5], %r4;\n\
            red.relaxed.gpu.global.add.u32 [%rd2], 1;\n\
            {rest}\n\
            ret;\n\
        }}\n"
    );
    Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// What a launch left: elements, counter, other elements, findings in words, thread-instructions or the fault.
#[derive(Debug, PartialEq)]
struct Seen {
    values: Vec<u32>,
    counter: Vec<u32>,
    other: Vec<u32>,
    findings: Vec<String>,
    end: Result<u64, String>,
}

fn launch(module: &Module, tools: Tools, configure: impl FnOnce(&mut LaunchConfig)) -> Seen {
    let module = module.clone().for_tools(tools);
    let device = Device::new();
    let values = device.array(&vec![7u32; COUNT]).unwrap();
    let (counter, other) = (device.zeros::<u32>(1).unwrap(), device.zeros::<u32>(COUNT).unwrap());
    let checker = Checker::shared(tools);
    let loaded = device.load(&module).unwrap();
    let launch = loaded.launch("count").grid(BLOCKS as u32).block(THREADS as u32);
    let launch =
        [&values, &counter, &other].into_iter().fold(launch, |launch, array| launch.arg(Arg::from(array)));
    let end = launch.check(&checker).configure(configure).run();
    let findings = module.findings(&checker).iter().map(|finding| finding.to_string()).collect();
    Seen {
        values: values.read().unwrap(),
        counter: counter.read().unwrap(),
        other: other.read().unwrap(),
        findings,
        end: match end {
            Ok(report) => Ok(report.thread_instructions),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// The same with 1, 2, 3 and 8 host threads; returns it.
fn same(rest: &str, tools: &str) -> Seen {
    let (module, tools) = (kernel(rest), tools.parse().unwrap());
    let one = launch(&module, tools, |config| config.threads = Some(1));
    for threads in [2, 3] {
        let several = launch(&module, tools, |config| config.threads = Some(threads));
        assert_eq!(one, several, "{threads} host threads: {rest}");
    }
    one
}

#[test]
fn nothing_is_found_where_blocks_have_memory_of_their_own() {
    for tools in ["all", "racecheck", "initcheck", "synccheck"] {
        let seen = same("st.global.u32 [%rd6], %r3;", tools);
        assert_eq!((seen.findings.len(), seen.counter[0]), (0, COUNT as u32));
        assert!(seen.values.iter().all(|&value| value == 8) && seen.end.is_ok());
        assert!(seen.other.iter().zip(0..).all(|(&value, index)| value == index));
    }
}

#[test]
fn what_was_done_is_undone_where_blocks_race() {
    // Each thread reads what that of the next block writes; the last writes what the first has read.
    let next = format!("ld.global.u32 %r5, [%rd5+{}]; st.global.u32 [%rd6], %r5;", 4 * THREADS);
    let in_range = format!("setp.lt.u32 %p1, %r1, {}; @!%p1 bra END; {next} END:", BLOCKS - 1);
    let first = format!("setp.eq.u32 %p1, %r1, {}; @%p1 st.global.u32 [%rd3], %r3;", BLOCKS - 1);
    let read = "ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, 1; st.global.u32 [%rd6+4], %r5;";
    for rest in [in_range.as_str(), &first, read, "atom.relaxed.gpu.global.exch.b32 %r5, [%rd2+0], 5;"] {
        let seen = same(rest, "all");
        assert!(seen.values.iter().all(|&value| value == 8), "{rest}");
    }
    let seen = same(&in_range, "racecheck");
    assert!(seen.findings[0].contains("race-write-read"), "{:?}", seen.findings);
    assert_eq!(seen.counter[0], COUNT as u32);
    // Which way they go, and so what else is found, may depend on it.
    let ways =
        format!("{in_range} .reg .b32 %never; setp.eq.u32 %p2, %r5, 8; @%p2 st.global.u32 [%rd6], %never;");
    assert!(!same(&ways, "initcheck").findings.is_empty());
}

#[test]
fn a_race_of_two_host_threads_is_found_every_time() {
    // The last block reads what the first has written or added to, and nobody else accesses it.
    for first in ["st.global.u32 [%rd7], %r3;", "red.relaxed.gpu.global.add.u32 [%rd7], %r3;"] {
        let rest = format!(
            "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, {}; mul.wide.u32 %rd7, %r2, 4;\n\
            add.u64 %rd7, %rd3, %rd7; @%p1 {first} @%p2 ld.global.u32 %r5, [%rd7];",
            BLOCKS - 1
        );
        let (module, tools) = (kernel(&rest), "racecheck".parse().unwrap());
        let one = launch(&module, tools, |config| config.threads = Some(1));
        assert_eq!(one.findings.len(), 1);
        for _ in 0..8 {
            assert_eq!(one, launch(&module, tools, |config| config.threads = Some(3)));
        }
    }
}

#[test]
fn what_one_block_finds_is_found_once() {
    // A register that nobody wrote, in one block.
    let rest = format!("setp.ne.u32 %p1, %r1, {}; @%p1 bra END; st.global.u32 [%rd6], %r9; END:", BLOCKS / 2);
    let seen = same(&rest, "all");
    assert!(seen.findings.len() == 1 && seen.findings[0].contains("`%r9`"), "{:?}", seen.findings);
    assert!(seen.values.iter().all(|&value| value == 8) && seen.counter[0] == COUNT as u32);
}

#[test]
fn a_fault_leaves_what_was_done_before_on_one_host_thread() {
    let rest =
        format!("setp.eq.u32 %p1, %r1, {}; mov.b64 %rd7, 4; @%p1 ld.global.u32 %r5, [%rd7];", BLOCKS / 2);
    let seen = same(&rest, "all");
    assert!(seen.end.is_err() && seen.counter[0] < COUNT as u32);
}

#[test]
fn a_counter_that_is_read_orders_blocks() {
    // The first and the last element of one page, by blocks of different host threads; and a sum that a block reads.
    let sum = "atom.relaxed.gpu.global.add.u32 %r5, [%rd2], 1; st.global.u32 [%rd6], %r5;";
    let seen = same(sum, "all");
    assert_eq!(seen.counter[0], 2 * COUNT as u32);
    let load = "ld.global.u32 %r5, [%rd2]; setp.ne.u32 %p1, %r5, 0; @%p1 st.global.u32 [%rd6], %r3;";
    assert!(same(load, "racecheck").findings[0].contains("race-atomic"));
    assert!(same(load, "synccheck").findings.is_empty());
}
