//! Accesses of straight-line code whose addresses depend on data: native code checks them itself, and skips lanes that it may not take.

use ptxvm::{Device, Engine, HostPath, Module};

use super::native_paths;

/// Threads of a block. They do not divide the 1024 lanes of a mask.
pub(super) const THREADS: u32 = 320;

/// `k(in, out)` with these instructions; `%a` and `%b` are the addresses of the thread's elements, `%z` that of the input, and `%r0` is what
/// the thread has loaded.
pub(super) fn kernel(body: &str) -> Module {
    kernel_of(THREADS, body)
}

/// With blocks of so many threads.
fn kernel_of(threads: u32, body: &str) -> Module {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %t, %x, %i, %n, %r<4>; .reg .pred %p, %q; .reg .b64 %a, %b, %c, %d, %e, %z;\n\
         ld.param.u64 %z, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\n\
         mad.lo.u32 %i, %x, {threads}, %t;\nmad.wide.u32 %a, %i, 4, %z;\nmad.wide.u32 %b, %i, 4, %b;\n\
         ld.global.u32 %r0, [%a];\n{body}\nret;\n}}\n"
    );
    Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A thread for each element, in blocks of so many: the thread-instructions or the fault, and the output.
fn run(
    module: &Module,
    (input, threads): (&[u32], u32),
    (engine, path): (Engine, HostPath),
) -> (Result<u64, String>, Vec<u32>) {
    let device = Device::new();
    let blocks = input.len() as u32 / threads;
    let (input, out) =
        (device.array(input).expect("room"), device.zeros::<u32>(2 * input.len()).expect("room"));
    let launch = device.load(module).expect("room").launch("k").grid(blocks).block(threads).engine(engine);
    let launch = launch.configure(|config| {
        config.host_path = Some(path);
        config.threads = Some(1);
    });
    let ended = launch.arg(&input).arg(&out).run();
    let ended = ended.map(|report| report.thread_instructions).map_err(|error| error.to_string());
    (ended, out.read().expect("an array"))
}

/// The accesses that native code checks itself in all sections of basic blocks and of traces.
pub(super) fn checked(module: &Module) -> (usize, usize) {
    let functions = module.program().functions.iter().flatten();
    let found = functions.map(|function| jit::straight(function, jit::Host::Avx2, |_, _| true).of_gang);
    found.fold((0, 0), |(blocks, traces), found| {
        let items = found.blocks.iter().flat_map(|(_, items)| items);
        let of_blocks = items.filter_map(jit::Item::section).map(|section| section.checked.len());
        let of_traces = found.traces.iter().map(|trace| trace.section.checked.len());
        (blocks + of_blocks.sum::<usize>(), traces + of_traces.sum::<usize>())
    })
}

/// On every path as the reference engine has it; and the fault, if there is one, as the interpreter tells it.
pub(super) fn is_that_of_the_reference_engine(module: &Module, input: &[u32]) -> Result<u64, String> {
    blocks_are_those_of_the_reference_engine(module, (input, THREADS))
}

fn blocks_are_those_of_the_reference_engine(module: &Module, blocks: (&[u32], u32)) -> Result<u64, String> {
    let expected = run(module, blocks, (Engine::Reference, HostPath::Portable));
    let interpreted = run(module, blocks, (Engine::Interpreter, HostPath::Portable));
    for path in native_paths() {
        let found = run(module, blocks, (Engine::Native, path));
        assert_eq!(found.0, interpreted.0, "{}", path.name());
        assert!(found.0.is_err() || found == expected, "{}", path.name());
    }
    interpreted.0
}

/// Elements that are places in the input.
pub(super) fn places() -> Vec<u32> {
    (0..4 * THREADS).map(|i| i.wrapping_mul(2_654_435_761) % (4 * THREADS)).collect()
}

const GATHER: &str = "mad.wide.u32 %c, %r0, 4, %z;\nld.global.u32 %r1, [%c];\nmad.lo.u32 %r1, %r1, 3, %i;\n";

#[test]
fn what_data_choose_is_loaded_and_stored() {
    let store = "sub.u32 %x, 1279, %i;\nxor.b32 %r1, %r1, %r0;\nst.global.u32 [%b], %r1;";
    let module = kernel(&format!("{GATHER}{store}"));
    assert_eq!(checked(&module), (1, 0));
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
    // Each thread has a place of its own.
    let permuted: Vec<u32> = (0..4 * THREADS).map(|i| i * 7 % (4 * THREADS)).collect();
    let scatter = "ld.param.u64 %d, [out];\nmad.wide.u32 %d, %r0, 4, %d;\nadd.u32 %r1, %r0, %i;\nst.global.u32 [%d], %r1;";
    let module = kernel(scatter);
    assert_eq!(checked(&module), (1, 0));
    is_that_of_the_reference_engine(&module, &permuted).expect("no fault");
}

/// Some lanes of two strips load from another allocation than the others of theirs.
#[test]
fn lanes_of_two_allocations_are_interpreted() {
    let two = "and.b32 %x, %t, 255;\nsetp.lt.u32 %p, %x, 5;\nmad.wide.u32 %c, %r0, 4, %z;\nselp.b64 %c, %b, %c, %p;\nbar.sync 0;\n\
               ld.global.u32 %r1, [%c];\nmad.lo.u32 %r1, %r1, 3, %i;\nld.global.u32 %r2, [%b];\nadd.u32 %r2, %r2, %r1;\n\
               add.u32 %r2, %r2, 1;\nst.global.u32 [%b], %r2;\nbar.sync 0;\nadd.u32 %r3, %i, %t;\nadd.u32 %r3, %r3, %r0;\n\
               cvt.u32.u64 %x, %c;\nadd.u32 %r3, %r3, %x;\nst.global.u32 [%b+5120], %r3;";
    let module = kernel(two);
    assert_eq!(checked(&module), (1, 0));
    // It changes its own output, so lanes that go twice show.
    let mut functions = module.program().functions.iter().flatten();
    let found = jit::straight(functions.next().expect("a kernel"), jit::Host::Avx2, |_, _| true).of_gang;
    let mut sections = found.blocks.iter().flat_map(|(_, items)| items).filter_map(jit::Item::section);
    let stores = |op: &ir::Op| matches!(op.kind, ir::OpKind::Store(_));
    assert!(sections.any(|section| !section.checked.is_empty() && section.operations.iter().any(stores)));
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
}

/// The register of an address is that of a value behind the access.
#[test]
fn lanes_that_are_skipped_have_the_addresses_that_were_there() {
    let body = "setp.lt.u32 %q, %t, 1000;\n@!%q bra END;\nand.b32 %x, %t, 255;\nsetp.lt.u32 %p, %x, 5;\n\
                mad.wide.u32 %c, %r0, 4, %z;\nselp.b64 %c, %b, %c, %p;\nld.global.u32 %r2, [%a];\nld.global.u32 %r1, [%c];\n\
                cvt.u64.u32 %a, %r1;\nadd.u32 %r2, %r2, %r1;\nxor.b32 %r2, %r2, %i;\nadd.s64 %a, %a, 3;\nbar.sync 0;\n\
                cvt.u32.u64 %r3, %a;\nadd.u32 %r2, %r2, %r3;\nst.global.u32 [%b], %r2;\nEND:";
    let module = kernel(body);
    assert!(checked(&module) != (0, 0));
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
}

/// What the interpreter computes of a trace before native code reads a register, which native code gives another value.
#[test]
fn lanes_that_a_trace_skips_begin_with_the_registers_that_were_there() {
    let body = "mad.lo.u32 %x, %t, 3, 5;\nbar.sync 0;\nadd.u32 %r2, %x, 7;\nmad.wide.u32 %d, %r2, 4, %z;\n\
                ld.global.u32 %r3, [%d];\nand.b32 %r2, %t, 255;\nsetp.lt.u32 %p, %r2, 5;\nmad.wide.u32 %c, %r0, 4, %z;\n\
                selp.b64 %c, %b, %c, %p;\nadd.u32 %x, %r3, 1;\nld.global.u32 %r1, [%c];\nsetp.lt.u32 %q, %t, 1000;\n\
                @!%q bra END;\nmad.lo.u32 %r1, %r1, %x, %i;\nxor.b32 %r1, %r1, %r0;\nst.global.u32 [%b], %r1;\nEND:\nbar.sync 0;\n\
                st.global.u32 [%b+5120], %x;";
    let module = kernel(body);
    assert!(checked(&module).1 > 0, "no trace checks an access");
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
}

/// A branch that data decide, and the same behind it: lanes that are skipped do not count twice.
#[test]
fn lanes_that_a_trace_skips_go_their_own_way() {
    let body = "mad.lo.u32 %r2, %r0, 3, %i;\nsetp.gt.u32 %q, %r0, 700;\n@%q bra JOIN;\nadd.u32 %r2, %r2, 5;\nJOIN:\n\
                and.b32 %x, %t, 255;\nsetp.lt.u32 %p, %x, 5;\nmad.wide.u32 %c, %r0, 4, %z;\nselp.b64 %c, %b, %c, %p;\n\
                ld.global.u32 %r1, [%c];\nmad.lo.u32 %r1, %r1, %r2, %i;\nst.global.u32 [%b], %r1;";
    let module = kernel(body);
    assert!(checked(&module).1 > 0, "no trace checks an access");
    is_that_of_the_reference_engine(&module, &places()).expect("no fault");
}

/// Only the lanes that go into the basic block load: others have addresses of nothing.
#[test]
fn lanes_that_a_branch_leads_around_a_load_are_not_checked() {
    let body = "mov.u32 %r1, 9;\nsetp.ge.u32 %q, %r0, 1280;\n@%q bra JOIN;\nmad.wide.u32 %c, %r0, 4, %z;\nld.global.u32 %r1, [%c];\n\
                JOIN:\nmad.lo.u32 %r1, %r1, 3, %i;\nxor.b32 %r1, %r1, %r0;\nst.global.u32 [%b], %r1;";
    let module = kernel(body);
    assert!(checked(&module).1 > 0, "no trace checks an access");
    let mut input = places();
    input.iter_mut().step_by(3).for_each(|place| *place += 1 << 28);
    is_that_of_the_reference_engine(&module, &input).expect("no fault");
}

#[test]
fn faults_of_what_data_choose_are_those_of_the_interpreter() {
    let body = format!(
        "{GATHER}mad.wide.u32 %d, %r1, 4, %z;\nld.global.u32 %r2, [%d];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%b], %r2;"
    );
    let module = kernel(&body);
    assert_eq!(checked(&module), (2, 0));
    // The second load of thread 40 fails, and the first one of thread 300, which the interpreter meets first.
    let mut input = vec![0; 4 * THREADS as usize];
    let block = 2 * THREADS as usize;
    (input[5], input[block + 40], input[block + 300]) = (1279, 5, 1 << 28);
    let fault = is_that_of_the_reference_engine(&module, &input).expect_err("a fault");
    assert!(fault.contains("out of bounds") && fault.contains("thread (300,0,0)"), "{fault}");
    input[block + 300] = 0;
    let fault = is_that_of_the_reference_engine(&module, &input).expect_err("a fault");
    assert!(fault.contains("thread (40,0,0)"), "{fault}");
    // Not a multiple of four.
    let body = "mul.wide.u32 %c, %r0, 2;\nadd.s64 %c, %c, %z;\nld.global.u32 %r1, [%c];\nadd.u32 %r1, %r1, %i;\nst.global.u32 [%b], %r1;";
    let module = kernel(body);
    assert_eq!(checked(&module), (1, 0));
    let mut input = vec![2; 4 * THREADS as usize];
    input[999] = 7;
    is_that_of_the_reference_engine(&module, &input).expect_err("a fault");
}

/// Addresses of shared memory, which each block has for itself, among those of the same instruction.
#[test]
fn shared_memory_by_generic_addresses_is_that_of_the_block() {
    let body = format!(
        ".shared .b32 sh[{THREADS}];\nmov.u32 %r3, sh;\nmad.lo.u32 %r3, %t, 4, %r3;\nst.shared.u32 [%r3], %i;\nbar.sync 0;\n\
         mov.u64 %d, sh;\ncvta.shared.u64 %d, %d;\nmad.wide.u32 %c, %r0, 4, %d;\n\
         ld.u32 %r1, [%c];\nmad.lo.u32 %r1, %r1, 3, %i;\nst.global.u32 [%b], %r1;"
    );
    let module = kernel(&body);
    assert_eq!(checked(&module), (1, 0));
    let input: Vec<u32> = places().iter().map(|place| place % THREADS).collect();
    is_that_of_the_reference_engine(&module, &input).expect("no fault");
}

/// Loads from the input, or where the top bit is set, from the second half of the output of 48 blocks, which nothing else accesses.
const EITHER: &str = "shr.s32 %r1, %r0, 31;\ncvt.s64.s32 %d, %r1;\nand.b32 %r2, %r0, 0x7fffffff;\nld.param.u64 %e, [out];\n\
    add.s64 %e, %e, 61440;\nsub.s64 %e, %e, %z;\nand.b64 %d, %d, %e;\nmad.wide.u32 %c, %r2, 4, %z;\nadd.s64 %c, %c, %d;\n\
    ld.global.u32 %r1, [%c];\n";

/// A kernel that runs without a gang until native code skips some threads.
fn goes_on_in_gangs(body: &str) {
    blocks_go_on_in_gangs(THREADS, body);
}

/// With blocks of so many threads.
fn blocks_go_on_in_gangs(threads: u32, body: &str) {
    let module = kernel_of(threads, body);
    assert_ne!(checked(&module), (0, 0));
    let (mut input, block) = (places().repeat(12), threads as usize);
    blocks_are_those_of_the_reference_engine(&module, (&input, threads)).expect("no fault");
    for index in 30..42 {
        input[index * block + 37 * index % block] |= 1 << 31;
    }
    blocks_are_those_of_the_reference_engine(&module, (&input, threads)).expect("no fault");
}

#[test]
fn blocks_go_on_in_gangs_behind_a_section() {
    // Behind it the address of the output steps on, and the input's register is that of a value.
    let body = format!(
        "{EITHER}mad.lo.u32 %r1, %r1, 3, %i;\nxor.b32 %r0, %r0, %r1;\nst.global.u32 [%b], %r1;\nadd.s64 %b, %b, 0;\n\
         mad.wide.u32 %c, %r2, 4, %z;\nld.global.u32 %r3, [%c];\nxor.b32 %r3, %r3, %r0;\nadd.u32 %r3, %r3, %r1;\n\
         st.global.u32 [%b], %r3;"
    );
    goes_on_in_gangs(&body);
    blocks_go_on_in_gangs(256, &body);
}

#[test]
fn blocks_go_on_in_gangs_behind_a_section_between_barriers() {
    let body = format!(
        ".shared .b32 sh[{THREADS}];\nmov.u32 %r3, sh;\nmad.lo.u32 %r3, %t, 4, %r3;\nst.shared.u32 [%r3], %i;\n\
         mad.lo.u32 %x, %t, 3, 5;\nbar.sync 0;\n\
         {EITHER}ld.shared.u32 %r2, [%r3];\nadd.u32 %r1, %r1, %r2;\nadd.u32 %r1, %r1, %x;\nxor.b32 %x, %r1, %r0;\n\
         st.shared.u32 [%r3], %r1;\nbar.sync 0;\nmov.u32 %r3, sh;\nsub.u32 %t, 319, %t;\nmad.lo.u32 %r3, %t, 4, %r3;\n\
         ld.shared.u32 %r2, [%r3];\nadd.u32 %r2, %r2, %x;\nst.global.u32 [%b], %r2;"
    );
    goes_on_in_gangs(&body);
}

#[test]
fn blocks_go_on_in_gangs_behind_a_trace() {
    // Some threads have ended before. Behind the trace, registers have what the interpreter and native code have computed.
    let body = format!(
        "setp.ge.u32 %p, %t, 300;\n@%p bra END;\nadd.u32 %x, %t, 11;\nbar.sync 1;\n\
         mad.lo.u32 %r2, %x, 5, 1;\nadd.u32 %r3, %r2, %r0;\nadd.u32 %x, %x, 100;\nsetp.gt.u32 %q, %i, 70000;\n@%q bra END;\n\
         {EITHER}mad.lo.u32 %r1, %r1, 3, %r3;\nmul.lo.u32 %r3, %r1, 7;\nst.global.u32 [%b], %r1;\nsetp.gt.u32 %q, %i, 80000;\n\
         @%q bra END;\nadd.u32 %r2, %r3, %x;\nbar.sync 1;\nadd.u32 %r2, %r2, %x;\nadd.u32 %r2, %r2, %r3;\nxor.b32 %r2, %r2, %r1;\n\
         st.global.u32 [%b], %r2;\nEND:"
    );
    goes_on_in_gangs(&body);
    // A small basic block that a number of the thread leads around, and one that data do.
    let body = format!(
        "mov.u32 %x, 1;\nsetp.lt.u32 %q, %t, 7;\n@%q bra THERE;\nadd.u32 %x, %r0, 5;\nTHERE:\n{EITHER}mad.lo.u32 %r1, %r1, 3, %x;\n\
         setp.gt.u32 %q, %r1, 700;\n@%q bra JOIN;\nadd.u32 %r1, %r1, 5;\nJOIN:\nst.global.u32 [%b], %r1;"
    );
    goes_on_in_gangs(&body);
}
