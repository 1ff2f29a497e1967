//! Loads of neighbouring elements, which native code joins.

use super::gathers::{THREADS, checked, is_that_of_the_reference_engine, kernel, places};

/// Loads of neighbouring elements: rows of four and three, two with another between, one whose result is read before it is that of
/// the next, one whose address changes, pairs in another order, and two with a value between that nothing reads behind the second.
const NEIGHBOURS: [&str; 7] = [
    "ld.global.u32 %r1, [%c];\nld.global.u32 %r2, [%c+4];\nmul.lo.u32 %r1, %r1, 3;\nld.global.u32 %r3, [%c+8];\n\
     ld.global.u32 %x, [%c+12];\nmad.lo.u32 %r1, %r2, 5, %r1;\nmad.lo.u32 %r1, %r3, 7, %r1;\nmad.lo.u32 %r1, %x, 11, %r1;\n",
    "ld.global.u32 %r1, [%c+4];\nld.global.u32 %r2, [%c+8];\nld.global.u32 %r3, [%c+12];\nmad.lo.u32 %r1, %r1, 3, %r2;\n\
     mad.lo.u32 %r1, %r1, 5, %r3;\n",
    "ld.global.u32 %r1, [%c];\nld.global.u32 %r2, [%c+8];\nmad.lo.u32 %r1, %r1, 3, %r2;\nld.global.u32 %r2, [%c+12];\n\
     xor.b32 %r1, %r1, %r2;\n",
    "ld.global.u32 %r1, [%c];\nmul.lo.u32 %x, %r1, 3;\nld.global.u32 %r1, [%c+4];\nadd.u32 %x, %x, %r1;\nld.global.u32 %r1, [%c+12];\n\
     xor.b32 %r1, %r1, %x;\n",
    "ld.global.u32 %r1, [%c];\nand.b32 %r2, %r1, 4;\ncvt.u64.u32 %d, %r2;\nadd.s64 %c, %c, %d;\nld.global.u32 %r3, [%c+4];\n\
     mad.lo.u32 %r1, %r1, 3, %r3;\nld.global.u32 %x, [%c+8];\nxor.b32 %r1, %r1, %x;\n\
     add.u32 %r1, %r1, %r2;\n",
    "ld.global.u32 %r1, [%c+8];\nld.global.u32 %r2, [%c];\nld.global.u32 %r3, [%c+12];\nld.global.u32 %x, [%c+4];\n\
     mad.lo.u32 %r1, %r1, 5, %r2;\nmad.lo.u32 %r1, %r3, 7, %r1;\nsub.u32 %r1, %r1, %x;\n",
    "ld.global.u32 %r1, [%c];\nmul.lo.u32 %x, %r1, 3;\nxor.b32 %r1, %x, %r1;\nld.global.u32 %r2, [%c+4];\n\
     mad.lo.u32 %r1, %r1, 7, %r2;\n",
];

/// How many elements the longest load of each has then.
const JOINED: [u64; 7] = [4, 3, 1, 1, 2, 2, 2];

/// Where the last four elements of the input begin.
const LAST_ROW: u32 = 4 * THREADS - 4;

/// Of whole warps, and where some threads have ended, whose addresses are nowhere.
#[test]
fn neighbours_that_data_choose_are_loaded_together() {
    let input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
    for loads in NEIGHBOURS {
        let of_all = "mad.wide.u32 %c, %r0, 4, %z;\n".to_owned();
        let of_some = |ended: u32| {
            format!(
                "setp.ge.u32 %p, %t, {ended};\n@%p bra END;\nselp.b64 %e, 1099511627776, 0, %p;\n{of_all}add.s64 %c, %c, %e;\n"
            )
        };
        for begin in [of_some(320), of_some(300), of_all.clone()] {
            let module =
                kernel(&format!("{begin}{loads}add.u32 %r1, %r1, %i;\nst.global.u32 [%b], %r1;\nEND:"));
            assert_ne!(checked(&module), (0, 0));
            is_that_of_the_reference_engine(&module, &input).expect("no fault");
        }
    }
}

/// Branches that data decide lead around some of the loads: the same one, another one, and another one with the same predicate.
#[test]
fn neighbours_that_branches_lead_around_are_loaded_by_those_that_go_there() {
    let input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
    let of = |test: &str, branches: [&str; 3]| {
        format!(
            "mad.wide.u32 %c, %r0, 4, %z;\nmov.u32 %r1, 1;\nmov.u32 %r2, 2;\nmov.u32 %r3, 3;\nand.b32 %x, %r0, 3;\n\
             setp.gt.u32 %p, %x, 0;\nand.b32 %x, %r0, 4;\nsetp.gt.u32 %q, %x, 0;\n{}ld.global.u32 %r1, [%c];\nA:\n{test}\
             {}ld.global.u32 %r2, [%c+4];\nB:\n{}ld.global.u32 %r3, [%c+8];\nC:\nmad.lo.u32 %r1, %r1, 3, %r2;\n\
             mad.lo.u32 %r1, %r1, 5, %r3;\nst.global.u32 [%b], %r1;",
            branches[0], branches[1], branches[2]
        )
    };
    for (test, branches) in [
        ("", ["@%p bra A;\n", "@%p bra B;\n", "@%q bra C;\n"]),
        ("", ["@%p bra A;\n", "@%q bra B;\n", "@!%p bra C;\n"]),
        ("setp.lt.u32 %p, %r0, 640;\n", ["@%p bra A;\n", "@%p bra B;\n", "@%p bra C;\n"]),
    ] {
        let module = kernel(&of(test, branches));
        assert_ne!(checked(&module), (0, 0));
        is_that_of_the_reference_engine(&module, &input).expect("no fault");
    }
}

/// Only the last elements of a row are behind the end, or no address is a multiple of an element's bytes.
#[test]
fn faults_of_neighbours_are_those_of_the_interpreter() {
    for (place, addend) in [(LAST_ROW + 1, 0), (LAST_ROW + 2, 0), (LAST_ROW + 3, 0), (5, 2)] {
        let body = format!(
            "mad.wide.u32 %c, %r0, 4, %z;\nsetp.eq.u32 %p, %r0, {place};\nselp.b64 %d, {addend}, 0, %p;\nadd.s64 %c, %c, %d;\n\
             {}st.global.u32 [%b], %r1;",
            NEIGHBOURS[0]
        );
        let module = kernel(&body);
        assert_ne!(checked(&module), (0, 0));
        let mut input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
        input[777] = place;
        is_that_of_the_reference_engine(&module, &input).expect_err("a fault");
    }
}

/// The loop `body`, five times: what it computes of its loads, `%r1`, decides from where it loads the next time, `%r0`. `%n`: how often it has run.
fn looping(body: &str) -> String {
    format!(
        "mov.u32 %n, 0;\nL:\n{body}mad.lo.u32 %i, %i, 31, %r1;\nand.b32 %r0, %r1, 1023;\nadd.u32 %n, %n, 1;\n\
         setp.lt.u32 %q, %n, 5;\n@%q bra L;\nst.global.u32 [%b], %i;"
    )
}

/// The most bytes of an access of native loops.
fn most_bytes(module: &ptxvm::Module) -> u64 {
    let functions = module.program().functions.iter().flatten();
    let loops = functions.flat_map(|function| jit::loops(function, jit::Host::Avx512, |_, _| true));
    loops.flat_map(|found| found.accesses).map(|access| access.bytes).max().unwrap_or(0)
}

/// At addresses that data choose, and at those that step by so many bytes from thread to thread.
#[test]
fn neighbours_are_loaded_together_in_loops() {
    let input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
    for (loads, joins) in NEIGHBOURS.into_iter().zip(JOINED) {
        let mut bodies = vec![looping(&format!("mad.wide.u32 %c, %r0, 4, %z;\n{loads}"))];
        for step in [0, 4, 8, 12, 16, 20] {
            let begin = format!("mul.lo.u32 %x, %t, {step};\ncvt.u64.u32 %e, %x;\nadd.s64 %e, %e, %z;\n");
            bodies.push(begin + &looping(&format!("add.s64 %c, %e, 0;\n{loads}add.s64 %e, %e, 4;\n")));
        }
        for body in bodies {
            let module = kernel(&body);
            assert_eq!(most_bytes(&module), 4 * joins, "{body}");
            is_that_of_the_reference_engine(&module, &input.repeat(2)).expect("no fault");
        }
    }
}

/// Their addresses step evenly. Those of the first round are aligned, and the code knows their memory from there on.
#[test]
fn vectors_in_loops_are_aligned() {
    for (step, is_fault) in [(4, true), (8, true), (16, false)] {
        let load = format!(
            "ld.global.v4.u32 {{%r1, %r2, %r3, %x}}, [%e];\nmad.lo.u32 %r1, %r1, 3, %r2;\nadd.s64 %e, %e, {step};\n"
        );
        let module = kernel(&format!("mad.wide.u32 %e, %t, 16, %z;\n{}", looping(&load)));
        let ended = is_that_of_the_reference_engine(&module, &places().repeat(2));
        assert_eq!(ended.is_err(), is_fault, "{step}");
    }
}

/// Some threads load from another allocation than the others between two neighbours: the interpreter goes on there.
#[test]
fn lanes_leave_between_neighbours() {
    let input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
    let body = "mad.wide.u32 %c, %r0, 4, %z;\nld.global.u32 %r1, [%c];\nand.b32 %x, %t, 255;\nsetp.lt.u32 %p, %x, 5;\n\
                and.b32 %r2, %r1, 1023;\nmad.wide.u32 %d, %r2, 4, %z;\nselp.b64 %d, %b, %d, %p;\nld.global.u32 %r2, [%d];\n\
                ld.global.u32 %r3, [%c+4];\nmad.lo.u32 %r1, %r1, 3, %r3;\nadd.u32 %r1, %r1, %r2;\n";
    let module = kernel(&looping(body));
    assert_eq!(most_bytes(&module), 8);
    is_that_of_the_reference_engine(&module, &input).expect("no fault");
}

#[test]
fn faults_of_neighbours_in_loops_are_those_of_the_interpreter() {
    for (place, addend) in [(LAST_ROW + 1, 0), (LAST_ROW + 2, 0), (LAST_ROW + 3, 0), (5, 2)] {
        let address = format!(
            "mad.wide.u32 %c, %r0, 4, %z;\nsetp.eq.u32 %p, %r0, {place};\nselp.b64 %d, {addend}, 0, %p;\nadd.s64 %c, %c, %d;\n"
        );
        let module = kernel(&looping(&format!("{address}{}", NEIGHBOURS[0])));
        assert_eq!(most_bytes(&module), 16);
        let mut input: Vec<u32> = places().into_iter().map(|place| place.min(LAST_ROW)).collect();
        input[777] = place;
        is_that_of_the_reference_engine(&module, &input).expect_err("a fault");
    }
}

/// Elements of one thread do not follow each other there.
#[test]
fn neighbours_in_local_memory_are_loaded_one_by_one() {
    let body = looping(
        "and.b32 %x, %r0, 4;\ncvt.u64.u32 %d, %x;\nadd.s64 %d, %d, %e;\nst.local.u32 [%d], %r0;\nst.local.u32 [%d+4], %n;\n\
         st.local.u32 [%d+8], %t;\nld.local.u32 %r1, [%d];\nld.local.u32 %r2, [%d+4];\nld.local.u32 %r3, [%d+8];\n\
         mad.lo.u32 %r1, %r1, 3, %r2;\nmad.lo.u32 %r1, %r1, 5, %r3;\n",
    );
    let module = kernel(&format!(".local .align 16 .b8 memory[16];\nmov.u64 %e, memory;\n{body}"));
    assert_eq!(most_bytes(&module), 4);
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
}
