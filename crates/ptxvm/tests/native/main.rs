//! Native code: random loops of the operations that it has, bit for bit as the reference engine runs them.
//!
//! The lanes of a loop leave it at different times, by several ways, and meet again. Some registers are stored at the end.
//! Loops read a table, and read and write what belongs to their threads, in global and in shared memory.
//! `PTXVM_LOOPS` says how many loops run instead of the default.

use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use jit::Host;
use ptxvm::{Device, Engine, Error, HostPath, Module};
use writer::{BLOCKS, GRID, OWN, RESULTS, THREADS, Writer};

mod atomics;
mod coarse;
mod codes;
mod directed;
mod doubles;
mod gathers;
mod locals;
mod neighbours;
mod shorts;
mod solo;
mod tiles;
mod traces;
mod warps;
mod writer;

/// Bits that arithmetic treats in a special way, small integers, and any.
fn inputs(seed: u64) -> Vec<u32> {
    let mut rng = Rng::with_seed(seed);
    let special =
        [0, 1, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fff_ffff, 0x7f80_0001, 0xffc0_1234, 0x0080_0000, !0];
    let number = |_| match rng.u8(..4) {
        0 => special[rng.usize(..special.len())],
        1 => rng.u32(..10),
        2 => (rng.f32() * 16.0 - 8.0).to_bits(),
        _ => rng.u32(..),
    };
    (0..GRID * THREADS * RESULTS).map(number).collect()
}

fn run(module: &Module, seed: u64, engine: Engine, path: HostPath) -> Result<(Vec<u32>, u64), Error> {
    let device = Device::new();
    let input = inputs(seed);
    let (table, output) = (device.array(&input)?, device.zeros::<u32>(input.len())?);
    let own = device.zeros::<u32>(3 * OWN * GRID * THREADS)?;
    let [x, y] = BLOCKS[seed as usize % BLOCKS.len()];
    let launch = device.load(module)?.launch("k").grid(GRID as u32).block((x, y)).engine(engine);
    let launch = launch.configure(|config| config.host_path = Some(path));
    let report = launch.arg(&table).arg(&output).arg(&own).run()?;
    let results = [output.read()?, own.read()?].concat();
    Ok((results, report.thread_instructions))
}

/// The seeds of the kernels to run: `PTXVM_LOOPS` of them, or so many, from `PTXVM_LOOP` on.
fn seeds(count: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let first = number("PTXVM_LOOP").unwrap_or(0);
    first..first + number("PTXVM_LOOPS").unwrap_or(count)
}

/// Kernels that found planted faults which others seldom show.
const RARE: [u64; 3] = [418, 1076, 1889];

/// The paths of this machine that have native code, the slowest first.
fn native_paths() -> Vec<HostPath> {
    let has_code = |path: &HostPath| *path != HostPath::Portable && path.is_available();
    HostPath::ALL.into_iter().filter(has_code).collect()
}

/// Compares kernels on all engines, and native code of each kind that the machine has. `has_code`: whether a kernel has native code
/// for a host.
fn are_those_of_the_reference_engine(
    kernel: fn(u64) -> String,
    has_code: impl Fn(&ir::Function, Host) -> bool,
) {
    let seeds: Vec<u64> = RARE.into_iter().chain(seeds(300)).collect();
    let count = seeds.len() as u64;
    let fastest = *native_paths().last().unwrap_or(&HostPath::Portable);
    let native = native_paths().into_iter().map(|path| (Engine::Native, path));
    let ways: Vec<_> = native.chain([(Engine::Interpreter, fastest)]).collect();
    let mut with_code = [0; Host::ALL.len()];
    for seed in seeds {
        let text = kernel(seed);
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let functions: Vec<_> = module.program().functions.iter().flatten().collect();
        for (count, host) in with_code.iter_mut().zip(Host::ALL) {
            *count += u64::from(functions.iter().any(|function| has_code(function, host)));
        }
        let expected = run(&module, seed, Engine::Reference, fastest).expect("it ends");
        for &(engine, path) in &ways {
            let name = format!("kernel {seed}, {engine:?}, {}", path.name());
            let found =
                run(&module, seed, engine, path).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            for (index, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
                let (thread, result) = (index / RESULTS, index % RESULTS);
                let place = format!("{name}: thread {thread}, result {result}");
                assert_eq!(format!("{found:#x}"), format!("{expected:#x}"), "{place}\n{text}");
            }
            assert_eq!(found.1, expected.1, "instructions of {name}\n{text}");
        }
    }
    if cfg!(all(target_arch = "x86_64", unix)) {
        for (with_code, host) in with_code.into_iter().zip(Host::ALL) {
            assert!(with_code > count / 2, "{with_code} of {count} kernels have native code for {host:?}");
        }
    }
    if !HostPath::Avx2.is_available() {
        // Not captured.
        let _ = writeln!(std::io::stderr(), "this host has neither AVX2 nor AVX-512: no native code has run");
    }
}

#[test]
fn random_loops_are_those_of_the_reference_engine() {
    are_those_of_the_reference_engine(Writer::loops, |function, host| {
        jit::loops(function, host, |_, _| true).iter().any(|a_loop| a_loop.compile(host, |_| None).is_some())
    });
}

#[test]
fn random_straight_code_is_that_of_the_reference_engine() {
    are_those_of_the_reference_engine(Writer::straight, |function, host| {
        let consecutive = |_| Some(jit::Form { step: 4, span: 64 });
        let blocks = jit::straight(function, host, |_, _| true).of_gang.blocks;
        let mut sections = blocks.iter().flat_map(|(_, items)| items).filter_map(jit::Item::section);
        sections.any(|section| section.compile(host, consecutive).is_some())
    });
}

/// Native code looks whether it must stop, and loops without an end let others run.
#[test]
fn a_loop_without_an_end_can_be_cancelled() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<3>; .reg .pred %p;\n\
                mov.u32 %r0, %tid.x;\nL:\nmul.lo.u32 %r0, %r0, 3;\nsetp.ne.u32 %p, %r0, 1;\n@%p bra L;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let cancel = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&cancel);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        seen.store(true, Ordering::Relaxed);
    });
    let loaded = Device::new().load(&module).expect("room");
    let launch = loaded.launch("k").block(64).engine(Engine::Native);
    let outcome = launch.configure(|config| config.cancel = Some(cancel)).run();
    assert!(matches!(outcome, Err(Error::Cancelled { .. })), "{outcome:?}");
}

/// Groups that the first time slice does not come to, and one that it ends in, go on in the next ones.
#[test]
fn a_long_loop_takes_several_time_slices() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
                .reg .b32 %r<4>; .reg .pred %p, %q; .reg .b64 %a, %b;\n\
                mov.u32 %r0, %tid.x;\nmov.u32 %r1, 0;\nsetp.eq.u32 %q, %r0, 5;\n\
                L:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %q, %r1, %r0;\nadd.u32 %r2, %r0, 500000;\n\
                setp.lt.u32 %p, %r1, %r2;\n@%p bra L;\n\
                selp.b32 %r3, 7, %r1, %q;\nmul.wide.u32 %a, %r0, 4;\nld.param.u64 %b, [out];\nadd.u64 %a, %a, %b;\n\
                st.global.u32 [%a], %r3;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    for path in native_paths() {
        let device = Device::new();
        let out = device.zeros::<u32>(160).expect("room");
        let launch = device.load(&module).expect("room").launch("k").block(160).engine(Engine::Native);
        launch.configure(|config| config.host_path = Some(path)).arg(&out).run().expect("it ends");
        let expected = (500_000..500_160).collect::<Vec<u32>>();
        assert_eq!(out.read().expect("an array"), expected, "{}", path.name());
    }
}

/// A group that waits for another one, by loads that promise nothing, does not keep it from running.
#[test]
fn a_loop_that_waits_for_another_group_ends() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 flag) {\n\
                .reg .b32 %r<4>; .reg .pred %p; .reg .b64 %a;\n\
                ld.param.u64 %a, [flag];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, 0;\n\
                L:\nld.global.u32 %r2, [%a];\nadd.u32 %r1, %r1, 1;\nsetp.ge.u32 %p, %r0, 32;\n@%p bra S;\n\
                setp.eq.u32 %p, %r2, 0;\n@%p bra L;\n\
                S:\nst.global.u32 [%a], 1;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    for engine in [Engine::Interpreter, Engine::Native] {
        let device = Device::new();
        let flag = device.zeros::<u32>(1).expect("room");
        let launch = device.load(&module).expect("room").launch("k").block(64).engine(engine).arg(&flag);
        launch.run().expect("it ends");
        assert_eq!(flag.read().expect("an array"), [1]);
    }
}

/// Accesses that are not allowed are reported as the interpreter reports them, and what was stored before is there.
#[test]
fn faults_are_those_of_the_interpreter() {
    // The number of iterations, the bytes from one to the next, and the bytes from one thread to the next.
    let accesses = [
        ("st.global.u32 [%b], %r1", [200, 256, 4]),
        ("ld.global.u32 %r2, [%b]", [200, 256, 4]),
        ("ld.global.v2.u32 {%r2, %r3}, [%b]", [200, 512, 8]),
        // The last access begins inside and ends outside.
        ("ld.global.v2.u32 {%r2, %r3}, [%b]", [2, 3840, 8]),
        // The last element alone is outside.
        ("st.global.u32 [%b+4]", [32, 128, 4]),
        ("st.global.u64 [%b], %d", [4, 260, 8]),
        ("ld.global.u32 %r2, [%b+2]", [1, 256, 4]),
        // Not one vector.
        ("st.global.u32 [%b], %r1", [20, 2048, 36]),
        ("ld.global.u64 %d, [%b]", [20, 2048, 44]),
    ];
    // With AVX2, native code takes 16 threads through the loop before others begin.
    let together = if HostPath::Avx512.is_available() { 32 } else { 16 };
    let cases = accesses.iter().flat_map(|access| [(access, 16), (access, 32)]);
    for (&(access, [iterations, stride, step]), threads) in cases {
        let access = if access.contains(',') { access.to_owned() } else { format!("{access}, %r1") };
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .b32 %r<4>; .reg .pred %p; .reg .b64 %a, %b, %d;\n\
             ld.param.u64 %b, [out];\nmov.u32 %r0, %tid.x;\nmad.wide.u32 %b, %r0, {step}, %b;\n\
             mov.u32 %r1, 0;\nmov.u64 %d, 7;\nL:\n{access};\nadd.u64 %b, %b, {stride};\nadd.u32 %r1, %r1, 1;\n\
             setp.lt.u32 %p, %r1, {iterations};\n@%p bra L;\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).expect("a module");
        let [interpreted, native] = [Engine::Interpreter, Engine::Native].map(|engine| {
            let device = Device::new();
            let out = device.zeros::<u32>(1023).expect("room");
            let launch =
                device.load(&module).expect("room").launch("k").block(threads).engine(engine).arg(&out);
            let outcome = launch.run().map(|_| ()).map_err(|error| error.to_string());
            (outcome, out.read().expect("an array"))
        });
        assert!(interpreted.0.is_err() || threads == 16, "{access}");
        assert_eq!(native.0, interpreted.0, "{access}");
        assert!(threads > together || native.1 == interpreted.1, "{access}: memory");
    }
}

/// Rows of threads, whose addresses are no line, and the shared memory of many CTAs, in a loop and without one.
#[test]
fn rows_and_shared_memory_are_those_of_the_cta() {
    let body = "ld.global.u32 %r0, [%a];\nld.shared.u32 %r1, [%s];\nmad.lo.u32 %r1, %r1, 3, %r0;\nst.shared.u32 [%s], %r1;";
    let loops =
        format!("L:\n{body}\nadd.u64 %a, %a, 1280;\nadd.u32 %c, %c, 1;\nsetp.lt.u32 %p, %c, 5;\n@%p bra L;");
    let input: Vec<u32> = (0..4000).map(|i| i * 7919 % 1009).collect();
    let shapes = [[16, 8], [32, 4], [64, 2], [128, 1]];
    for ([x, y], body) in shapes.into_iter().flat_map(|shape| [(shape, body), (shape, &loops)]) {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
             .reg .b32 %r<6>, %s, %c; .reg .pred %p; .reg .b64 %a, %b; .shared .b32 sh[128];\n\
             ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\n\
             mad.lo.u32 %r2, %r1, 140, %r0;\nmov.u32 %r4, %ctaid.x;\nmad.lo.u32 %r2, %r4, 5, %r2;\n\
             mad.wide.u32 %a, %r2, 4, %a;\nmad.lo.u32 %r3, %r1, {x}, %r0;\nmov.u32 %s, sh;\n\
             mad.lo.u32 %s, %r3, 4, %s;\nmad.lo.u32 %r5, %r4, 128, %r3;\nmad.wide.u32 %b, %r5, 4, %b;\n\
             st.shared.u32 [%s], %r5;\nbar.sync 0;\nmov.u32 %c, 0;\n{body}\nld.shared.u32 %r0, [%s];\nst.global.u32 [%b], %r0;\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).expect("a module");
        let run = |engine: Engine, path: Option<HostPath>| {
            let device = Device::new();
            let (input, out) =
                (device.array(&input).expect("room"), device.zeros::<u32>(64 * 128).expect("room"));
            let launch =
                device.load(&module).expect("room").launch("k").grid(64).block((x, y)).engine(engine);
            let launch = launch.configure(|config| config.host_path = path);
            launch.arg(&input).arg(&out).run().expect("it ends");
            out.read().expect("an array")
        };
        let reference = run(Engine::Reference, None);
        for path in native_paths() {
            assert_eq!(run(Engine::Native, Some(path)), reference, "{x}x{y}, {}: {body}", path.name());
        }
    }
}

/// Straight-line code with accesses that are not allowed leaves everything to the interpreter.
#[test]
fn faults_of_straight_code_are_those_of_the_interpreter() {
    // An access, the bytes from one thread to the next, and whether it is allowed.
    let accesses = [
        ("st.global.u32 [%b+4], %r1", 4, false),
        ("st.global.u32 [%b+2], %r1", 4, false),
        ("st.global.u32 [%b], %r1", 4, true),
        ("ld.global.u32 %r1, [%b+-4]", 4, false),
        ("ld.global.v2.u32 {%r1, %r2}, [%b]", 4, false),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r1}, [%b]", 16, false),
        ("ld.shared.u32 %r1, [%s]", 4, true),
        ("ld.shared.u32 %r1, [%s+4]", 4, false),
        ("st.shared.u32 [%s+1], %r1", 4, false),
        ("add.u64 %b, %b, 2;\nld.global.u32 %r1, [%b]", 0, false),
        ("add.u32 %s, %s, 2;\nld.shared.u32 %r1, [%s+-4]", 4, false),
    ];
    for (access, step, is_allowed) in accesses {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .b32 %r<4>, %s; .reg .b64 %a, %b; .shared .b32 sh[640];\n\
             ld.param.u64 %b, [out];\nmov.u32 %r0, %tid.x;\nmad.wide.u32 %a, %r0, 4, %b;\nmad.wide.u32 %b, %r0, {step}, %b;\n\
             mov.u32 %s, sh;\nmad.lo.u32 %s, %r0, 4, %s;\n\
             ld.global.u32 %r1, [%a];\nadd.u32 %r1, %r1, %r0;\nmul.lo.u32 %r1, %r1, %r1;\nst.global.u32 [%a], %r1;\n\
             {access};\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%a], %r1;\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).expect("a module");
        let run = |engine: Engine, path: Option<HostPath>| {
            let device = Device::new();
            let out = device.zeros::<u32>(640).expect("room");
            let launch = device.load(&module).expect("room").launch("k").block(640).engine(engine).arg(&out);
            let outcome = launch.configure(|config| config.host_path = path).run();
            (outcome.map(|_| ()).map_err(|error| error.to_string()), out.read().expect("an array"))
        };
        let interpreted = run(Engine::Interpreter, None);
        assert_eq!(interpreted.0.is_ok(), is_allowed, "{access}");
        for path in native_paths() {
            assert_eq!(run(Engine::Native, Some(path)), interpreted, "{access}, {}", path.name());
        }
    }
}
