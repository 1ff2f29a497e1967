//! Few threads of each block that go a way of their own between barriers, in kernels whose other code is native for many blocks at once,
//! and values that all threads of a block load from one address.
//!
//! `PTXVM_LOOPS` and `PTXVM_LOOP` say how many random kernels run, and from which seed on.

use std::fmt::Write as _;

use fastrand::Rng;
use ptxvm::{Device, Engine, HostPath, Module};

use super::coarse::{Outcome, assert_same, run, ways};
use super::{native_paths, seeds};

/// `k(in, out, c)`
struct Kernel {
    text: String,
    grid: [u32; 2],
    block: [u32; 2],
    input: Vec<u32>,
    /// Some threads wait: how many instructions they execute differs from run to run.
    waits: bool,
}

/// The elements of `out` before those of the threads: counters, then 256 bytes for each block.
const COUNTERS: usize = 64;
const OF_BLOCK: usize = 64;

/// A table, 4 bytes of shared memory for each thread, and 16 for each lane of a warp.
const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .global .align 4 .u32 word = 12345;\n.const .align 4 .b32 table[4] = {3, 5, 7, 11};\n\
    .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 c) {\n\
    .reg .b32 %i, %t, %n, %x, %c, %u, %s, %e, %k, %z, %y, %v, %r<4>, %w<4>; .reg .f32 %f<4>; .reg .pred %p, %q, %l, %h;\n\
    .reg .b64 %a, %b, %g, %in, %out, %d<4>;\n\
    .shared .align 16 .b8 tile[4096]; .shared .align 16 .b8 results[512];\n\
    ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u32 %c, [c];\n\
    mov.u32 %t, %tid.x;\nmov.u32 %n, %tid.y;\nmov.u32 %u, %ntid.x;\nmad.lo.u32 %t, %n, %u, %t;\n\
    mov.u32 %n, %ntid.y;\nmul.lo.u32 %n, %n, %u;\nmov.u32 %x, %ctaid.x;\nmad.lo.u32 %i, %x, %n, %t;\n\
    mad.wide.u32 %a, %i, 4, %in;\nmad.wide.u32 %b, %x, 256, %out;\nadd.s64 %b, %b, 256;\nmad.wide.u32 %g, %x, 8, %in;\n\
    mov.u32 %s, tile;\nmad.lo.u32 %e, %t, 4, %s;\nand.b32 %k, %t, 31;\nmov.u32 %z, results;\nmad.lo.u32 %z, %k, 16, %z;\n\
    setp.lt.u32 %h, %t, 20;\n\
    ld.global.u32 %r0, [%a];\nld.global.u32 %r1, [%a+4];\nmov.u32 %r2, %t;\nmad.lo.u32 %r3, %r0, 3, %i;\n";

impl Kernel {
    fn random(seed: u64) -> Kernel {
        let rng = &mut Rng::with_seed(seed);
        let blocks = [[32, 1], [64, 1], [128, 1], [256, 1], [256, 1], [32, 4], [16, 16], [1024, 1]];
        let block: [u32; 2] = blocks[rng.usize(..blocks.len())];
        let grid = [[1, 1], [9, 1], [40, 1], [67, 1]][rng.usize(..4)];
        let threads = block[0] * block[1];
        let (mut text, mut waits) = (String::from(HEAD), false);
        let phases = rng.u8(1..4);
        for phase in 0..phases {
            writeln!(text, "st.shared.u32 [%e], %r{};\nbar.sync 0;", rng.u8(..4)).unwrap();
            for _ in 0..rng.u8(..4) {
                Kernel::uniform_load(rng, &mut text, threads);
            }
            text.push_str("bar.sync 0;\n");
            text.push_str("mov.u32 %v, 4;\n");
            waits |= Kernel::solo(rng, &mut text, phase, threads);
            text.push_str("bar.sync 0;\n");
            if rng.u8(..8) == 0 {
                // What the few have written is not theirs alone.
                text.push_str("add.u32 %r1, %r1, %v;\n");
            }
            for _ in 0..rng.u8(1..4) {
                let d = rng.u8(..4);
                writeln!(
                    text,
                    "ld.shared.u32 %u, [results+{}];\nmad.lo.u32 %r{d}, %u, 7, %r{d};",
                    4 * [rng.u32(..16), rng.u32(..128)][rng.usize(..2)]
                )
                .unwrap();
            }
        }
        let d = rng.u8(..4);
        writeln!(text, "mad.wide.u32 %a, %i, 4, %out;\nxor.b32 %r0, %r0, %r1;\nadd.u32 %r2, %r2, %r3;\nmad.lo.u32 %r0, %r0, 5, %r2;").unwrap();
        let own = 4 * (COUNTERS + OF_BLOCK * grid[0] as usize);
        writeln!(text, "add.u32 %r0, %r0, %r{d};\nst.global.u32 [%a+{own}], %r0;\nret;\n}}").unwrap();
        let total = (grid[0] * threads) as usize;
        let input = 0..total + 2 * grid[0] as usize + 64;
        let input = input.map(|_| if rng.bool() { rng.u32(..) } else { rng.u32(..9) }).collect();
        Kernel { text, grid, block, input, waits }
    }

    /// All threads of a block load one element.
    fn uniform_load(rng: &mut Rng, text: &mut String, threads: u32) {
        let [d, a] = [(); 2].map(|()| rng.u8(..4));
        let load = match rng.u8(..6) {
            0 => format!("ld.global.u32 %u, [%g+{}];", 4 * rng.u8(..4)),
            1 => "ld.global.u32 %u, [word];".to_owned(),
            2 => format!("ld.const.u32 %u, [table+{}];", 4 * rng.u8(..4)),
            3 => format!("ld.shared.u32 %u, [%s+{}];", 4 * rng.u32(..threads)),
            _ => format!("ld.shared.u32 %u, [tile+{}];", 4 * rng.u32(..threads)),
        };
        writeln!(text, "{load}\nadd.u32 %u, %u, {};", rng.u8(..9)).unwrap();
        match rng.u8(..3) {
            0 => writeln!(text, "setp.gt.u32 %q, %u, 9;\nselp.b32 %r{d}, %u, %r{a}, %q;").unwrap(),
            1 => writeln!(text, "selp.b32 %r{d}, %u, %r{d}, %h;").unwrap(),
            _ => writeln!(text, "xor.b32 %r{d}, %r{a}, %u;").unwrap(),
        }
    }

    /// What few threads do. Returns whether they wait for other blocks.
    fn solo(rng: &mut Rng, text: &mut String, phase: u8, threads: u32) -> bool {
        let (condition, few) = match rng.u8(..7) {
            0 => (format!("setp.ne.u32 %p, %t, {};", rng.u32(..threads)), false),
            1 => (format!("setp.gt.u32 %p, %t, {};", rng.u8(..5)), true),
            2 => (format!("setp.lt.u32 %p, %t, {};", threads - rng.u32(1..5)), true),
            _ => ("setp.ne.u32 %p, %t, 0;".to_owned(), false),
        };
        if rng.u8(..4) == 0 {
            // They take the branch.
            writeln!(text, "{condition}\n@!%p bra A{phase};\nbra B{phase};\nA{phase}:").unwrap();
        } else {
            writeln!(text, "{condition}\n@%p bra B{phase};").unwrap();
        }
        text.push_str("mov.u32 %w0, %r0;\nadd.u32 %w1, %x, %c;\nmov.u32 %w2, %t;\nmov.u32 %w3, 9;\n");
        if rng.bool() {
            text.push_str("add.u32 %v, %v, %w1;\n");
        }
        let (mut waits, mut faults) = (false, rng.u8(..40) == 0);
        for part in 0..rng.u8(1..10) {
            let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
            let name = format!("X{phase}_{part}");
            let element = |text: &mut String, a: u8| {
                writeln!(text, "and.b32 %y, %w{a}, {};\nmad.lo.u32 %y, %y, 4, %s;", threads - 1).unwrap();
            };
            // A basic block in which a store follows a load must end with it, so most stores have one of their own.
            let kind = rng.u8(..17);
            let apart = (2..=6).contains(&kind) && rng.u8(..8) > 0;
            if apart {
                writeln!(text, "setp.gt.u32 %q, %w{a}, %w{b};\n@%q bra {name};").unwrap();
            }
            match kind {
                0 => {
                    element(text, a);
                    writeln!(text, "ld.shared.u32 %w{d}, [%y];").unwrap();
                }
                1 => writeln!(text, "ld.global.u32 %w{d}, [%g+{}];", 4 * rng.u8(..4)).unwrap(),
                2 => writeln!(text, "st.shared.u32 [%z+{}], %w{a};", 4 * rng.u8(..4)).unwrap(),
                3 => writeln!(text, "@%h st.shared.v2.u32 [%z+8], {{%w{a}, %w{b}}};").unwrap(),
                4 => writeln!(text, "red.global.add.u32 [%out+{}], %w{a};", 4 * rng.u8(..8)).unwrap(),
                5 => writeln!(text, "atom.shared.add.u32 %w{d}, [%z], %w{a};").unwrap(),
                6 if !few => {
                    writeln!(text, "st.global.u32 [%b+{}], %w{a};", 4 * rng.usize(8..OF_BLOCK)).unwrap();
                }
                7 => writeln!(text, "setp.gt.u32 %q, %w{a}, %w{b};\n@%q bra {name};\nmad.lo.u32 %w{d}, %w{b}, 3, %w{a};\n{name}:").unwrap(),
                8 => {
                    writeln!(text, "and.b32 %w3, %w{a}, 7;\n{name}:").unwrap();
                    element(text, 3);
                    writeln!(text, "ld.shared.u32 %u, [%y];\nadd.u32 %w1, %w1, %u;\nsub.s32 %w3, %w3, 1;").unwrap();
                    writeln!(text, "setp.ge.s32 %l, %w3, 0;\n@%l bra {name};").unwrap();
                }
                9 => text.push_str(["membar.gl;\n", "fence.acq_rel.gpu;\n"][rng.usize(..2)]),
                10 => {
                    writeln!(text, "cvt.rn.f32.u32 %f0, %w{a};\nmov.b32 %f1, %w{b};\nfma.rn.f32 %f2, %f0, %f1, 0f40400000;").unwrap();
                    writeln!(text, "mov.b32 %w{d}, %f2;").unwrap();
                }
                11 => {
                    writeln!(text, "cvt.u64.u32 %d0, %w{a};\nmad.wide.u32 %d1, %w{b}, 9, %d0;\nshr.u64 %d1, %d1, 13;\ncvt.u32.u64 %w{d}, %d1;").unwrap();
                }
                12 | 13 if !few && !waits => {
                    waits = true;
                    Kernel::look_back(rng, text, &name, phase);
                }
                14 if faults && !few => {
                    faults = false;
                    writeln!(text, "mul.wide.u32 %d2, %x, 16777216;\nadd.s64 %d2, %d2, %b;\nst.global.u32 [%d2+{}], %w{a};", 4 * OF_BLOCK - 4).unwrap();
                }
                _ => writeln!(text, "mad.lo.u32 %w{d}, %w{a}, %w{b}, {};\nxor.b32 %w{a}, %w{a}, %w{d};", rng.u8(..9)).unwrap(),
            }
            if apart {
                writeln!(text, "{name}:").unwrap();
            }
        }
        writeln!(text, "st.shared.u32 [%z+{}], %w{};\nB{phase}:", 4 * rng.u8(..4), rng.u8(..4)).unwrap();
        waits
    }

    /// Publishes a number, and adds those of the blocks before; or waits for that of the block behind.
    fn look_back(rng: &mut Rng, text: &mut String, name: &str, phase: u8) {
        let place = 8 * i32::from(phase);
        writeln!(text, "and.b32 %y, %w1, 65535;\ncvt.u64.u32 %d0, %y;\nor.b64 %d0, %d0, 4294967296;")
            .unwrap();
        let [store, load] = [
            ("st.relaxed.gpu.global.u64", "ld.relaxed.gpu.global.u64"),
            ("st.release.gpu.global.u64", "ld.acquire.gpu.global.u64"),
            ("st.volatile.global.u64", "ld.volatile.global.u64"),
        ]
        .map(|pair| [pair.0, pair.1])[rng.usize(..3)];
        writeln!(text, "{store} [%b+{place}], %d0;").unwrap();
        if rng.u8(..4) == 0 {
            // Of pairs of blocks the first one waits for the second one.
            writeln!(
                text,
                "mov.u32 %u, %nctaid.x;\nadd.u32 %y, %x, 1;\nsetp.eq.u32 %l, %y, %u;\n@%l bra {name}E;"
            )
            .unwrap();
            writeln!(text, "and.b32 %y, %x, 1;\nsetp.eq.u32 %l, %y, 1;\n@%l bra {name}E;").unwrap();
            writeln!(
                text,
                "{name}:\n{load} %d1, [%b+{}];\nsetp.eq.u64 %l, %d1, 0;\n@%l bra {name};",
                place + 256
            )
            .unwrap();
            writeln!(text, "cvt.u32.u64 %y, %d1;\nadd.u32 %w2, %w2, %y;\n{name}E:").unwrap();
            return;
        }
        writeln!(
            text,
            "mov.u32 %w3, %x;\nmov.u64 %d2, %b;\n{name}:\nsetp.eq.u32 %l, %w3, 0;\n@%l bra {name}E;"
        )
        .unwrap();
        writeln!(
            text,
            "{name}L:\n{load} %d1, [%d2+{}];\nsetp.eq.u64 %l, %d1, 0;\n@%l bra {name}L;",
            place - 256
        )
        .unwrap();
        writeln!(text, "cvt.u32.u64 %y, %d1;\nadd.u32 %w2, %w2, %y;\nsub.u32 %w3, %w3, 1;\nsub.s64 %d2, %d2, 256;\nbra {name};\n{name}E:").unwrap();
    }

    fn run(&self, module: &Module, engine: Engine, path: Option<HostPath>, threads: usize) -> Outcome {
        let total = (self.grid[0] * self.block[0] * self.block[1]) as usize;
        let memory = (&self.input[..], total + COUNTERS + OF_BLOCK * self.grid[0] as usize);
        let mut outcome = run(module, (self.grid, self.block), memory, &[77], (engine, path, threads));
        if self.waits {
            outcome.0 = outcome.0.map(|_| 0);
        }
        outcome
    }
}

#[test]
fn random_ways_of_few_threads_are_those_of_the_reference_engine() {
    let seeds = seeds(150);
    let (count, mut faults) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let kernel = Kernel::random(seed);
        let text = &kernel.text;
        let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let expected = kernel.run(&module, Engine::Reference, None, 1);
        faults += u64::from(expected.0.is_err());
        for (engine, path, threads) in ways() {
            let found = kernel.run(&module, engine, Some(path), threads);
            let name = format!("kernel {seed}, {engine:?}, {}, {threads} host threads", path.name());
            match &expected.0 {
                Ok(_) => assert_same(&found, &expected, &name, text),
                // Blocks behind the one that faults may have run.
                Err(_) => assert_eq!(found.0, expected.0, "{name}\n{text}"),
            }
        }
    }
    assert!(faults < count / 4, "{faults} of {count} kernels fault");
}

/// Behind the way of one thread, a block sees what a later one has written: the others go through each section together.
#[test]
fn blocks_of_which_a_thread_goes_alone_run_together() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
                .reg .b32 %t, %x, %i, %r<3>; .reg .pred %p; .reg .b64 %a, %b; .shared .u32 sum;\n\
                ld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\nmad.wide.u32 %a, %x, 4, %b;\n\
                mad.lo.u32 %i, %x, 1024, %t;\nmad.wide.u32 %b, %i, 4, %b;\n\
                setp.ne.u32 %p, %t, 0;\n@%p bra ALL;\nadd.u32 %r0, %x, 100;\nst.shared.u32 [sum], %r0;\n\
                st.global.u32 [%a], %r0;\nALL:\nbar.sync 0;\nld.shared.u32 %r0, [sum];\nld.global.u32 %r1, [%a+4];\n\
                mad.lo.u32 %r0, %r0, 1000, %r1;\nst.global.u32 [%b+1024], %r0;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    for path in native_paths() {
        let device = Device::new();
        let out = device.zeros::<u32>(65 * 1024 + 512).expect("room");
        let launch =
            device.load(&module).expect("room").launch("k").grid(64).block(1024).engine(Engine::Native);
        let launch = launch.configure(|config| {
            config.host_path = Some(path);
            config.threads = Some(1);
        });
        launch.arg(&out).run().expect("it ends");
        // As in `blocks_of_elementwise_kernels_run_together`, the first share is one block.
        let found = out.read().expect("an array");
        assert_eq!(found[1024 + 256], 101 * 1000 + 102, "{}", path.name());
    }
}

/// A thread whose last access is in memory of the device heap stops before its basic block has done anything that it must not do twice.
#[test]
fn a_basic_block_begins_again() {
    let bodies = [
        "red.global.add.u32 [%a], 3;\nst.u32 [%h], 9;",
        "ld.global.u32 %r0, [%a];\nadd.u32 %r0, %r0, 3;\nst.global.u32 [%a], %r0;\nst.u32 [%h], 9;",
        "add.u32 %r1, %r1, 3;\nst.global.u32 [%a], %r1;\nst.u32 [%h], %r1;",
    ];
    for body in bodies {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n\
             .extern .func (.param .b64 result) malloc (.param .b64 bytes);\n.global .u64 heap;\n\
             .visible .entry first() {{\n.reg .b64 %h;\n{{ .param .b64 bytes; .param .b64 result;\nst.param.b64 [bytes], 64;\n\
             call.uni (result), malloc, (bytes);\nld.param.b64 %h, [result]; }}\nst.global.u64 [heap], %h;\nret;\n}}\n\
             .visible .entry k(.param .u64 out, .param .u32 c) {{\n\
             .reg .b32 %t, %x, %i, %r<3>; .reg .pred %p, %q; .reg .b64 %a, %b, %h;\n.shared .u32 sum;\n\
             ld.param.u64 %b, [out];\nld.param.u32 %r1, [c];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\n\
             mad.wide.u32 %a, %x, 4, %b;\nmad.lo.u32 %i, %x, 128, %t;\nmad.wide.u32 %b, %i, 4, %b;\n\
             setp.ne.u32 %p, %t, 0;\n@%p bra ALL;\nld.global.u64 %h, [heap];\nsetp.gt.u32 %q, %x, 2;\n@%q bra BODY;\nmov.u64 %h, %a;\n\
             add.s64 %h, %h, 256;\nBODY:\n{body}\nst.shared.u32 [sum], %r1;\nALL:\nbar.sync 0;\n\
             ld.shared.u32 %r0, [sum];\nst.global.u32 [%b+1024], %r0;\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let of = |engine: Engine, path: Option<HostPath>| {
            let device = Device::new();
            let loaded = device.load(&module).expect("room");
            loaded.launch("first").run().expect("it ends");
            let out = device.zeros::<u32>(256 + 16 * 128).expect("room");
            let launch = loaded.launch("k").grid(16).block(128).engine(engine);
            let launch = launch.configure(|config| {
                config.host_path = path;
                config.threads = Some(1);
            });
            launch.arg(&out).arg(5u32).run().expect("it ends");
            out.read().expect("an array")
        };
        let expected = of(Engine::Reference, None);
        for path in native_paths() {
            assert!(of(Engine::Native, Some(path)) == expected, "{}: {body}", path.name());
        }
    }
}

/// Block 50 waits for block 63, when blocks 49 to 63 run together: they go on in gangs, each with its own registers and shared memory.
#[test]
fn many_blocks_go_on_where_one_waits() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 flags) {\n\
                .reg .b32 %t, %x, %i, %s, %y, %r<4>; .reg .pred %p, %q; .reg .b64 %a, %b, %f;\n\
                .shared .u32 tile[1024]; .shared .u32 sum;\n\
                ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u64 %f, [flags];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\n\
                mad.lo.u32 %i, %x, 1024, %t;\nmad.wide.u32 %a, %i, 4, %a;\nmad.wide.u32 %b, %i, 4, %b;\n\
                ld.global.u32 %r0, [%a];\nmov.u32 %s, tile;\nmad.lo.u32 %s, %t, 4, %s;\nadd.u32 %r1, %r0, 1;\nst.shared.u32 [%s], %r1;\nbar.sync 0;\n\
                setp.ne.u32 %p, %t, 0;\n@%p bra ALL;\nmad.wide.u32 %f, %x, 4, %f;\nst.relaxed.gpu.global.u32 [%f], 7;\nred.relaxed.gpu.global.add.u32 [%f+256], 1;\n\
                mov.u32 %y, %x;\nsetp.ne.u32 %q, %x, 50;\n@%q bra SUM;\n\
                WAIT:\nld.relaxed.gpu.global.u32 %y, [%f+52];\nsetp.eq.u32 %q, %y, 0;\n@%q bra WAIT;\n\
                SUM:\nst.shared.u32 [sum], %y;\nALL:\nbar.sync 0;\n\
                ld.shared.u32 %r2, [%s];\nld.shared.u32 %r3, [sum];\nmad.lo.u32 %r0, %r0, 1000, %r2;\nadd.u32 %r0, %r0, %r3;\n\
                st.global.u32 [%b], %r0;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let input: Vec<u32> = (0..64 * 1024).map(|i: u32| i.wrapping_mul(40_503)).collect();
    let sum = |block: u32| if block == 50 { 7 } else { block };
    let expected = (0..).zip(&input).map(|(i, &of): (u32, &u32)| {
        of.wrapping_mul(1000).wrapping_add(of.wrapping_add(1)).wrapping_add(sum(i / 1024))
    });
    let expected: Vec<u32> = expected.collect();
    for (engine, path, threads) in ways() {
        let device = Device::new();
        let out = device.zeros::<u32>(input.len()).expect("room");
        let flags = device.zeros::<u32>(128).expect("room");
        let launch = device.load(&module).expect("room").launch("k").grid(64).block(1024).engine(engine);
        let launch = launch.configure(|config| {
            config.host_path = Some(path);
            config.threads = Some(threads);
        });
        let input = device.array(&input).expect("room");
        launch.arg(&input).arg(&out).arg(&flags).run().expect("it ends");
        let found = out.read().expect("an array");
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        let name = format!("{engine:?}, {}, {threads} host threads", path.name());
        assert_eq!(differs, None, "{name}");
        // No thread has gone twice.
        assert_eq!(flags.read().expect("an array")[64..], [1; 64], "{name}");
    }
}
