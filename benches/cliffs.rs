//! Where kernels could be slow: single instructions in a loop, block sizes, diverging paths, products of matrices.
//!
//! `cargo bench -p ptxvm --bench cliffs` prints tables for benches/RESULTS.md. A word behind `--` picks what has it in its name:
//! `-- local`. Times are the least of several runs, of processor time on one host thread.

#[expect(dead_code, reason = "the other bench of kernels uses the rest")]
mod native;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use ptxvm::{Device, Module};

/// Turns of the loop around an instruction.
const TURNS: u32 = 64;
const BLOCKS: u32 = 64;
const THREADS: u32 = 256;
/// Elements of 4 bytes that the parameters point to.
const SMALL: usize = 1 << 14;
const LARGE: usize = 1 << 18;

/// An instruction or a few of them, in a loop.
struct Case {
    name: &'static str,
    /// Stands before the loop, and may declare variables.
    setup: &'static str,
    body: &'static str,
    /// Nanoseconds for a thread and turn that it should take.
    wanted: f64,
}

const fn case(name: &'static str, setup: &'static str, body: &'static str, wanted: f64) -> Case {
    Case { name, setup, body, wanted }
}

/// What the loops find in registers: `%small` and `%large`, `%thread`, `%block`, `%i` (the linear index of the thread), `%n` (the
/// turn), `%one` (1.0), `%x` (the index as a float); `%w0` to `%w19`, `%a0` to `%a9` (64 bits), `%f0` to `%f9`, `%h0` to `%h9`, `%p0` to
/// `%p9` are free.
const CASES: &[Case] = &[
    case("nothing", "", "", 0.1),
    case(
        "load: consecutive",
        "mul.wide.u32 %a0, %i, 4; add.s64 %a0, %a0, %large;",
        "ld.global.f32 %f0, [%a0];",
        0.3,
    ),
    case(
        "load: every second",
        "mul.wide.u32 %a0, %i, 8; add.s64 %a0, %a0, %large;",
        "ld.global.f32 %f0, [%a0];",
        0.5,
    ),
    case(
        "load: every eighth",
        "mul.wide.u32 %a0, %i, 32; add.s64 %a0, %a0, %large;",
        "ld.global.f32 %f0, [%a0];",
        0.5,
    ),
    case(
        "load: reversed",
        "mul.wide.u32 %a0, %i, 4; sub.s64 %a0, %large, %a0;",
        "ld.global.f32 %f0, [%a0+1048572];",
        0.5,
    ),
    case(
        "load: every second, some lanes",
        "mul.wide.u32 %a0, %i, 8; add.s64 %a0, %a0, %large; setp.lt.u32 %p0, %i, 16200;",
        "@%p0 ld.global.f32 %f0, [%a0];",
        0.5,
    ),
    case(
        "load: every second of 8 bytes",
        "mul.wide.u32 %a0, %i, 16; add.s64 %a0, %a0, %large;",
        "ld.global.b64 %a1, [%a0];",
        0.5,
    ),
    case("load: random", RANDOM, "ld.global.f32 %f0, [%a0];", 1.2),
    case(
        "store: consecutive",
        "mul.wide.u32 %a0, %i, 4; add.s64 %a0, %a0, %large;",
        "st.global.f32 [%a0], %x;",
        0.3,
    ),
    case(
        "store: every second",
        "mul.wide.u32 %a0, %i, 8; add.s64 %a0, %a0, %large;",
        "st.global.f32 [%a0], %x;",
        0.5,
    ),
    case(
        "store: reversed",
        "mul.wide.u32 %a0, %i, 4; sub.s64 %a0, %large, %a0;",
        "st.global.f32 [%a0+1048572], %x;",
        0.5,
    ),
    case("store: random", RANDOM, "st.global.f32 [%a0], %x;", 1.2),
    case(
        "store: one address a warp",
        "shr.u32 %w0, %thread, 5; shl.b32 %w0, %w0, 2; mov.u32 %w1, memory; add.u32 %w0, %w0, %w1;",
        "st.shared.f32 [%w0], %x;",
        0.5,
    ),
    case("store: one address", "mov.u32 %w0, memory;", "st.shared.f32 [%w0], %x;", 0.5),
    case(
        "narrow: u8 to 16 bits",
        "cvt.u64.u32 %a0, %i; add.s64 %a0, %a0, %large;",
        "ld.global.u8 %h0, [%a0];",
        0.3,
    ),
    case(
        "narrow: u8 to 32 bits",
        "cvt.u64.u32 %a0, %i; add.s64 %a0, %a0, %large;",
        "ld.global.u8 %w0, [%a0];",
        0.3,
    ),
    case(
        "narrow: s8 to 32 bits",
        "cvt.u64.u32 %a0, %i; add.s64 %a0, %a0, %large;",
        "ld.global.s8 %w0, [%a0];",
        0.3,
    ),
    case(
        "narrow: u16 to 32 bits",
        "mul.wide.u32 %a0, %i, 2; add.s64 %a0, %a0, %large;",
        "ld.global.u16 %w0, [%a0];",
        0.3,
    ),
    case(
        "narrow: s32 to 64 bits",
        "mul.wide.u32 %a0, %i, 4; add.s64 %a0, %a0, %large;",
        "ld.global.s32 %a1, [%a0];",
        0.3,
    ),
    case("narrow: random u8 to 32 bits", RANDOM, "ld.global.u8 %w0, [%a0];", 1.2),
    case(
        "narrow: u8 from 32 bits",
        "cvt.u64.u32 %a0, %i; add.s64 %a0, %a0, %large;",
        "st.global.u8 [%a0], %i;",
        0.3,
    ),
    case(
        "narrow: u16 from 32 bits",
        "mul.wide.u32 %a0, %i, 2; add.s64 %a0, %a0, %large;",
        "st.global.u16 [%a0], %i;",
        0.3,
    ),
    case("local: load", ".local .align 8 .b8 l[64]; mov.u64 %a0, l;", "ld.local.f32 %f0, [%a0];", 0.5),
    case("local: store", ".local .align 8 .b8 l[64]; mov.u64 %a0, l;", "st.local.f32 [%a0], %x;", 0.5),
    case(
        "local: store of 8 bytes",
        ".local .align 8 .b8 l[64]; mov.u64 %a0, l;",
        "st.local.b64 [%a0+8], %large;",
        0.5,
    ),
    case(
        "local: generic address",
        ".local .align 8 .b8 l[64]; mov.u64 %a0, l; cvta.local.u64 %a0, %a0;",
        "st.f32 [%a0], %x;",
        0.5,
    ),
    case(
        "local: bytes",
        ".local .align 8 .b8 l[64]; mov.u64 %a0, l;",
        "st.local.u8 [%a0+5], %i; ld.local.u8 %w0, [%a0+5];",
        2.0,
    ),
    case(
        "local: an element of each thread's choice",
        ".local .align 8 .b8 l[64]; mov.u64 %a0, l; and.b32 %w0, %i, 15; xor.b32 %w0, %w0, %block; and.b32 %w0, %w0, 15;\
         mul.wide.u32 %a1, %w0, 4; add.s64 %a0, %a0, %a1;",
        "ld.local.f32 %f0, [%a0];",
        2.0,
    ),
    case(
        "call: parameters in memory",
        "",
        "{ .param .f32 in; .param .f32 out; st.param.f32 [in], %x;\
         call (out), by_param, (in); ld.param.f32 %x, [out]; }",
        3.0,
    ),
    case("call: parameters in registers", "", "call (%x), by_register, (%x);", 1.0),
    case("call: ten deep", "mov.u32 %w0, 10;", "call (%w1), deep, (%w0);", 20.0),
    case("shuffle: butterfly", "", "shfl.sync.bfly.b32 %w0, %i, 4, 31, -1;", 0.5),
    case(
        "shuffle: from anywhere",
        "mul.lo.u32 %w0, %i, 7; xor.b32 %w0, %w0, %block; and.b32 %w0, %w0, 31;",
        "shfl.sync.idx.b32 %w1, %i, %w0, 31, -1;",
        1.0,
    ),
    case(
        "vote: ballot",
        "and.b32 %w0, %i, 5; setp.eq.u32 %p0, %w0, 5;",
        "vote.sync.ballot.b32 %w1, %p0, -1;",
        1.0,
    ),
    case(
        "vote: all",
        "and.b32 %w0, %i, 5; setp.eq.u32 %p0, %w0, 5;",
        "vote.sync.all.pred %p1, %p0, -1;",
        1.0,
    ),
    case("match: any", "and.b32 %w0, %i, 5;", "match.any.sync.b32 %w1, %w0, -1;", 1.0),
    case("match: all", "and.b32 %w0, %i, 5;", "match.all.sync.b32 %w1, %w0, -1;", 1.0),
    case("redux: max", "", "redux.sync.max.s32 %w0, %i, -1;", 1.0),
    case("redux: add", "", "redux.sync.add.u32 %w0, %i, -1;", 1.0),
    case("redux: of floats", "", "redux.sync.max.f32 %f0, %x, -1;", 1.0),
    case("activemask", "", "activemask.b32 %w0;", 0.5),
    case(
        "tree: half of the threads",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 2; add.u32 %w0, %w0, %w1; setp.lt.u32 %p0, %thread, 128;",
        "@%p0 ld.shared.f32 %f0, [%w0+3584];",
        0.5,
    ),
    case(
        "tree: eight threads",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 2; add.u32 %w0, %w0, %w1; setp.lt.u32 %p0, %thread, 8;",
        "@%p0 ld.shared.f32 %f0, [%w0+4064];",
        0.5,
    ),
    case(
        "vectors: v4 at a sum",
        "mul.wide.u32 %a0, %i, 16; add.s64 %a0, %a0, %large;",
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a0];",
        1.0,
    ),
    case(
        "vectors: v4 at `or`-ed parts",
        "shl.b32 %w0, %thread, 2; shl.b32 %w1, %block, 10; or.b32 %w0, %w0, %w1; mul.wide.u32 %a0, %w0, 4; add.s64 %a0, %a0, %large;",
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a0];",
        1.0,
    ),
    case(
        "vectors: v4 stored at `or`-ed parts",
        "shl.b32 %w0, %thread, 2; shl.b32 %w1, %block, 10; or.b32 %w0, %w0, %w1; mul.wide.u32 %a0, %w0, 4; add.s64 %a0, %a0, %large;",
        "st.global.v4.f32 [%a0], {%x, %one, %x, %one};",
        1.0,
    ),
    case(
        "vectors: every second v4",
        "mul.wide.u32 %a0, %i, 32; add.s64 %a0, %a0, %large;",
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a0];",
        1.0,
    ),
    case(
        "vectors: random v4",
        "mul.lo.u32 %w0, %i, 0x9E3779B1; shr.u32 %w0, %w0, 17; mul.wide.u32 %a0, %w0, 16; add.s64 %a0, %a0, %large;",
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a0];",
        4.0,
    ),
    case(
        "vectors: v4 of bytes",
        "mul.wide.u32 %a0, %i, 4; add.s64 %a0, %a0, %large;",
        "ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%a0];",
        1.0,
    ),
    case("atomics: random counters", RANDOM, "red.global.add.u32 [%a0], 1;", 5.0),
    case("atomics: random floats", RANDOM, "red.global.add.f32 [%a0], %one;", 5.0),
    case("atomics: one counter", "", "red.global.add.u32 [%small], 1;", 5.0),
    case(
        "atomics: one counter a warp's lane",
        "and.b32 %w0, %i, 31; mul.wide.u32 %a0, %w0, 4; add.s64 %a0, %a0, %small;",
        "red.global.add.u32 [%a0], 1;",
        5.0,
    ),
    case("atomics: one float", "", "red.global.add.f32 [%small], %one;", 5.0),
    case(
        "atomics: one thread a block",
        "setp.eq.u32 %p0, %thread, 0;",
        "@%p0 red.global.add.u32 [%small], 1;",
        0.1,
    ),
    case(
        "atomics: shared floats",
        "mov.u32 %w0, memory; and.b32 %w1, %i, 31; shl.b32 %w1, %w1, 2; add.u32 %w0, %w0, %w1;",
        "red.shared.add.f32 [%w0], %one;",
        5.0,
    ),
    case(
        "cp.async with commit and wait",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 4; add.u32 %w0, %w0, %w1; mul.wide.u32 %a0, %i, 16; add.s64 %a0, %a0, %large;",
        "cp.async.cg.shared.global [%w0], [%a0], 16; cp.async.commit_group; cp.async.wait_group 0;",
        2.0,
    ),
    case(
        "cp.async, two groups kept",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 4; add.u32 %w0, %w0, %w1; mul.wide.u32 %a0, %i, 16; add.s64 %a0, %a0, %large;",
        "cp.async.cg.shared.global [%w0], [%a0], 16; cp.async.commit_group; cp.async.wait_group 2;",
        2.0,
    ),
    case(
        "ldmatrix",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 4; and.b32 %w1, %w1, 511; add.u32 %w0, %w0, %w1;",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w1, %w2, %w3, %w4}, [%w0];",
        2.0,
    ),
    case(
        "ldmatrix, transposed",
        "mov.u32 %w0, memory; shl.b32 %w1, %thread, 4; and.b32 %w1, %w1, 511; add.u32 %w0, %w0, %w1;",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%w1, %w2, %w3, %w4}, [%w0];",
        2.0,
    ),
    case(
        "brx.idx with nine targets",
        "rem.u32 %w0, %i, 9;",
        "ways: .branchtargets W0, W1, W2, W3, W4, W5, W6, W7, W8;\nbrx.idx %w0, ways;\n\
         W0: bra.uni AFTER;\nW1: bra.uni AFTER;\nW2: bra.uni AFTER;\nW3: bra.uni AFTER;\nW4: bra.uni AFTER;\n\
         W5: bra.uni AFTER;\nW6: bra.uni AFTER;\nW7: bra.uni AFTER;\nW8:\nAFTER:",
        1.0,
    ),
];

/// One of 128 Ki elements, scattered.
const RANDOM: &str = "mul.lo.u32 %w0, %i, 0x9E3779B1; shr.u32 %w0, %w0, 15; mul.wide.u32 %a0, %w0, 4; add.s64 %a0, %a0, %large;";

const HEAD: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n";

const FUNCTIONS: &str = "
.func (.param .f32 out) by_param(.param .f32 in)
{ .reg .f32 %v; ld.param.f32 %v, [in]; add.f32 %v, %v, 0f3F800000; st.param.f32 [out], %v; ret; }
.func (.reg .f32 %out) by_register(.reg .f32 %in)
{ add.f32 %out, %in, 0f3F800000; ret; }
.func (.reg .u32 %out) deep(.reg .u32 %in)
{ .reg .pred %p; .reg .u32 %less; mov.u32 %out, 0; setp.eq.u32 %p, %in, 0; @%p ret; sub.u32 %less, %in, 1;
call (%out), deep, (%less); add.u32 %out, %out, 1; ret; }
";

/// A kernel that executes `setup` once and `body` so many times; `memory` is shared memory.
fn kernel(setup: &str, body: &str, turns: u32) -> String {
    // Each block gets it filled with zeros.
    let shared = if setup.contains("memory") { ".shared .align 128 .b8 memory[4096];\n" } else { "" };
    format!(
        "{HEAD}{FUNCTIONS}.visible .entry kernel(.param .u64 small, .param .u64 large)\n{{\n\
         .reg .pred %p<10>, %again;\n.reg .b16 %h<10>;\n.reg .b32 %w<40>, %thread, %block, %size, %i, %n;\n\
         .reg .b64 %a<10>, %small, %large;\n.reg .f32 %f<10>, %x, %one;\n.reg .f64 %d<10>;\n\
         {shared}\
         ld.param.u64 %small, [small];\nld.param.u64 %large, [large];\nmov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\n\
         mov.u32 %size, %ntid.x;\nmad.lo.u32 %i, %block, %size, %thread;\ncvt.rn.f32.u32 %x, %i;\nmov.f32 %one, 0f3F800000;\n\
         mov.u32 %n, 0;\n{setup}\nAGAIN:\n{body}\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %again, %n, {turns};\n@%again bra AGAIN;\n\
         ret;\n}}\n"
    )
}

/// The least nanoseconds of processor time that each of the functions takes on this thread, of at least five runs. They run by turns,
/// so that a machine that changes its speed does so for all of them.
fn nanoseconds<const N: usize>(mut functions: [&mut dyn FnMut(); N]) -> [f64; N] {
    let (begin, mut least, mut runs) = (Instant::now(), [f64::INFINITY; N], 0);
    while runs < 5 || runs < 100 && begin.elapsed() < N as u32 * Duration::from_millis(250) {
        for (f, least) in functions.iter_mut().zip(&mut least) {
            let start = ThreadTime::now();
            f();
            *least = least.min(start.elapsed().as_nanos() as f64);
        }
        runs += 1;
    }
    least
}

/// Nanoseconds of a launch on one host thread.
fn launch(text: &str, grid: u32, block: u32) -> f64 {
    launch_beside(text, grid, block, &mut || ())[0]
}

/// Nanoseconds of a launch on one host thread, and of what runs by turns with it.
fn launch_beside(text: &str, grid: u32, block: u32, other: &mut dyn FnMut()) -> [f64; 2] {
    let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let device = Device::new();
    let small = device.zeros::<f32>(SMALL).expect("room");
    let large = device.zeros::<f32>(LARGE).expect("room");
    let loaded = device.load(&module).expect("room for its variables");
    let mut run = || {
        let launch = loaded.launch("kernel").grid(grid).block(block).arg(&small).arg(&large);
        launch.configure(|c| c.threads = Some(1)).run().unwrap_or_else(|error| panic!("{error}\n{text}"));
    };
    nanoseconds([&mut run, other])
}

fn instructions(wanted: &dyn Fn(&str) -> bool) {
    println!("| a turn of a loop with | nanoseconds a thread | wanted |\n|---|---|---|");
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let time = launch(&kernel(case.setup, case.body, TURNS), BLOCKS, THREADS);
        let each = time / f64::from(TURNS * BLOCKS * THREADS);
        let mark = if each > case.wanted * 1.1 { " !" } else { "" };
        println!("| {} | {each:.2} | {}{mark} |", case.name, case.wanted);
    }
}

/// A quarter million threads, in blocks of all sizes, that load, add and store an element.
fn blocks() {
    let element = "and.b32 %w0, %i, 0x3fff; mul.wide.u32 %a0, %w0, 4; add.s64 %a0, %a0, %large; ld.global.f32 %f0, [%a0];\
        add.f32 %f0, %f0, %f0; st.global.f32 [%a0], %f0;";
    let text = kernel("", element, 1);
    let each = |size: u32| {
        let blocks = (1 << 18) / size;
        launch(&text, blocks, size) / f64::from(blocks)
    };
    let usual = each(256) / 256.0;
    println!("| threads a block | nanoseconds a block | times those of 256, by thread |\n|---|---|---|");
    for size in (1..=33).chain([48, 63, 96, 100, 250, 256, 500, 1000, 1023, 1024]) {
        let time = each(size);
        println!("| {size} | {time:.1} | {:.1} |", time / f64::from(size) / usual);
    }
}

/// Threads of a warp that take 1 to 32 different ways of 64 additions each.
fn paths() {
    println!("| paths | nanoseconds a thread | times one |\n|---|---|---|");
    let mut one = 0.0;
    for paths in 1..=32 {
        let mut body = format!("rem.u32 %w0, %thread, {paths};\n");
        for path in 1..paths {
            let _ = writeln!(body, "setp.eq.u32 %p0, %w0, {path};\n@%p0 bra WAY{path};");
        }
        for path in 0..paths {
            let _ = write!(body, "WAY{path}:\n{}bra END;\n", "add.f32 %x, %x, %x;\n".repeat(64));
        }
        let time = launch(&kernel("", &(body + "END:"), 1), BLOCKS, THREADS) / f64::from(BLOCKS * THREADS);
        one = if paths == 1 { time } else { one };
        println!("| {paths} | {time:.1} | {:.1} |", time / one);
    }
}

/// A product of matrices: its name, the instruction, how many multiply-adds a warp does, and warps that do it together.
type Product = (&'static str, String, f64, u32);

fn products() -> Vec<Product> {
    let list = |letter: &str, first: usize, count: usize| {
        let registers: Vec<String> = (first..first + count).map(|i| format!("%{letter}{i}")).collect();
        format!("{{{}}}", registers.join(", "))
    };
    let mma = |name, spelling: &str, [d, a, b, c]: [(&str, usize); 4], size: [u32; 3]| -> Product {
        // A and B lie behind D in the registers of 32 bits.
        let (ab, d_list) = (if d.0 == "w" { d.1 } else { 0 }, list(d.0, 0, d.1));
        let text = format!(
            "mma.sync.aligned.{spelling} {d_list}, {}, {}, {};",
            list(a.0, if a.0 == "w" { ab } else { 4 }, a.1),
            list(b.0, if b.0 == "w" { ab + a.1 } else { 8 }, b.1),
            list(c.0, 0, c.1)
        );
        (name, text, f64::from(size[0] * size[1] * size[2]), 1)
    };
    let (f, w) = (|count| ("f", count), |count| ("w", count));
    let wgmma = |name, spelling: &str, d: usize, letter: &str, tail: &str, size: [u32; 3]| -> Product {
        let text = format!(
            "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.{spelling} {}, %a0, %a1, {tail};\
             wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
            list(letter, 0, d)
        );
        (name, text, f64::from(size[0] * size[1] * size[2]), 4)
    };
    vec![
        mma("mma f16, f32", "m16n8k16.row.col.f32.f16.f16.f32", [f(4), w(4), w(2), f(4)], [16, 8, 16]),
        mma("mma f16, f16", "m16n8k16.row.col.f16.f16.f16.f16", [w(2), w(4), w(2), w(2)], [16, 8, 16]),
        mma("mma bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", [f(4), w(4), w(2), f(4)], [16, 8, 16]),
        mma("mma tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", [f(4), w(4), w(2), f(4)], [16, 8, 8]),
        mma("mma s8", "m16n8k32.row.col.s32.s8.s8.s32", [w(4), w(4), w(2), w(4)], [16, 8, 32]),
        mma("mma s4", "m16n8k64.row.col.s32.s4.s4.s32", [w(4), w(4), w(2), w(4)], [16, 8, 64]),
        mma("mma e4m3", "m16n8k32.row.col.f32.e4m3.e4m3.f32", [f(4), w(4), w(2), f(4)], [16, 8, 32]),
        mma("mma f64", "m8n8k4.row.col.f64.f64.f64.f64", [("d", 2), ("d", 1), ("d", 1), ("d", 2)], [8, 8, 4]),
        (
            "wmma f16",
            format!(
                "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {}, {}, {}, {};",
                list("f", 0, 8),
                list("w", 0, 8),
                list("w", 8, 8),
                list("f", 0, 8)
            ),
            f64::from(16 * 16 * 16),
            1,
        ),
        wgmma("wgmma f16", "m64n32k16.f32.f16.f16", 16, "g", "1, 1, 1, 0, 0", [64, 32, 16]),
        wgmma("wgmma bf16", "m64n32k16.f32.bf16.bf16", 16, "g", "1, 1, 1, 0, 0", [64, 32, 16]),
        wgmma("wgmma tf32", "m64n32k8.f32.tf32.tf32", 16, "g", "1, 1, 1", [64, 32, 8]),
        wgmma("wgmma e4m3", "m64n32k32.f32.e4m3.e4m3", 16, "g", "1, 1, 1", [64, 32, 32]),
        wgmma("wgmma s8", "m64n32k32.s32.s8.s8", 16, "w", "1", [64, 32, 32]),
    ]
}

/// Products of matrices against the native loop, which multiplies matrices of binary32 with 256 rows and columns.
fn matrices(wanted: &dyn Fn(&str) -> bool) {
    const SIZE: usize = 256;
    let (a, b, mut c) = (vec![0.5; SIZE * SIZE], vec![0.25; SIZE * SIZE], vec![0.0; SIZE * SIZE]);
    let mut multiply = || native::matmul(black_box(&a), black_box(&b), black_box(&mut c), SIZE);
    println!("| product | nanoseconds a lane | times the native loop |\n|---|---|---|");
    for (name, text, size, warps) in products().into_iter().filter(|product| wanted(product.0)) {
        let setup = "mov.u32 %w38, memory; shr.u32 %w38, %w38, 4; cvt.u64.u32 %a0, %w38; or.b64 %a0, %a0, 0x4000000080000;\
            mov.u64 %a1, %a0;";
        let version = kernel(setup, &text, TURNS)
            .replace(".target sm_100a", if warps == 4 { ".target sm_90a" } else { ".target sm_100a" })
            .replace(FUNCTIONS, "")
            .replace(".reg .f64 %d<10>;", ".reg .f64 %d<20>;\n.reg .f32 %g<20>;");
        let [time, native] = launch_beside(&version, BLOCKS, THREADS, &mut multiply);
        let (time, native) =
            (time / f64::from(TURNS * BLOCKS * THREADS), native / (SIZE * SIZE * SIZE) as f64);
        println!("| {name} | {time:.1} | {:.1} |", time * f64::from(32 * warps) / (size * native));
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    if CASES.iter().any(|case| wanted(case.name)) {
        instructions(&wanted);
    }
    if wanted("blocks") {
        blocks();
    }
    if wanted("paths") {
        paths();
    }
    if products().iter().any(|product| wanted(product.0)) {
        matrices(&wanted);
    }
}
