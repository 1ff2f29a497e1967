//! Native code that takes the threads of many blocks at once: elementwise kernels.
//!
//! `PTXVM_LOOPS` and `PTXVM_LOOP` say how many random kernels run, and from which seed on.

use std::fmt::Write as _;

use fastrand::Rng;
use ptxvm::{Device, Engine, HostPath, Module};

use super::{native_paths, seeds};

/// The end of a launch, and the output.
pub(super) type Outcome = (Result<u64, String>, Vec<u32>);

/// An elementwise kernel with its launch.
struct Elementwise {
    text: String,
    grid: [u32; 2],
    block: [u32; 2],
    /// Threads that are within bounds.
    n: u32,
    input: Vec<u32>,
    /// Elements of the output.
    room: usize,
}

/// What accesses of a kernel have before them.
struct Guards {
    /// Before an access that all threads within bounds make.
    own: &'static str,
    /// Before one that no thread makes.
    none: &'static str,
}

impl Elementwise {
    /// `k(in, out, n, c)`
    fn random(seed: u64) -> Elementwise {
        let rng = &mut Rng::with_seed(seed);
        let blocks = [[32, 1], [96, 1], [128, 1], [128, 1], [256, 1], [1024, 1], [16, 8], [32, 4], [100, 1]];
        let block: [u32; 2] = blocks[rng.usize(..blocks.len())];
        let grid = [[1, 1], [7, 1], [24, 1], [48, 1], [5, 9]][rng.usize(..5)];
        let threads = block[0] * block[1];
        let total = grid[0] * grid[1] * threads;
        let n = [total, total, total - threads / 2, 1, rng.u32(0..=total)][rng.usize(..5)];
        let mut text = String::from(
            ".version 9.0\n.target sm_90\n.address_size 64\n\
             .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n, .param .u32 c) {\n\
             .reg .b32 %i, %j, %t, %x, %n, %c, %r<4>; .reg .f32 %f<4>; .reg .pred %p, %q, %g, %h; .reg .b64 %a, %b, %w, %e;\n\
             ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u32 %n, [n];\nld.param.u32 %c, [c];\n\
             mov.u32 %t, %tid.y;\nmov.u32 %x, %ntid.x;\nmov.u32 %i, %tid.x;\nmad.lo.u32 %t, %t, %x, %i;\n\
             mov.u32 %x, %ctaid.y;\nmov.u32 %j, %nctaid.x;\nmov.u32 %i, %ctaid.x;\nmad.lo.u32 %x, %x, %j, %i;\n",
        );
        // The number of the thread in the grid, in several ways.
        match rng.u8(..3) {
            0 if threads == 128 => text.push_str("shl.b32 %i, %x, 7;\nor.b32 %i, %i, %t;\n"),
            1 => write!(text, "mul.lo.s32 %i, %x, {threads};\nadd.s32 %i, %i, %t;\n").unwrap(),
            _ => writeln!(text, "mad.lo.u32 %i, %x, {threads}, %t;").unwrap(),
        }
        let guards = match rng.u8(..3) {
            0 => {
                text.push_str("setp.lt.u32 %g, %i, %n;\nsetp.gt.u32 %h, %c, 100;\n");
                Guards { own: "@%g ", none: "@%h " }
            }
            1 => {
                text.push_str("setp.ge.u32 %g, %i, %n;\nsetp.lt.u32 %h, %c, 100;\n");
                Guards { own: "@!%g ", none: "@!%h " }
            }
            _ => {
                if n < total || rng.bool() {
                    text.push_str("setp.ge.u32 %p, %i, %n;\n@%p bra END;\n");
                }
                text.push_str("setp.gt.u32 %h, %c, 100;\n");
                Guards { own: "", none: "@%h " }
            }
        };
        // Elements of an access, and the bytes from one thread to the next.
        let count = [1, 1, 2, 4][rng.usize(..4)];
        let step = if count < 4 && rng.u8(..6) == 0 { 8 * count } else { 4 * count };
        let own = Elementwise::element(rng, &mut text, total, threads);
        match rng.u8(..3) {
            0 => write!(text, "mul.wide.u32 %w, %j, {step};\nadd.s64 %a, %a, %w;\n").unwrap(),
            1 => writeln!(text, "mad.wide.s32 %a, %j, {step}, %a;").unwrap(),
            _ => write!(text, "cvt.u64.u32 %w, %j;\nmad.lo.u64 %a, %w, {step}, %a;\n").unwrap(),
        }
        writeln!(text, "mad.wide.u32 %b, {own}, {}, %b;", 4 * count).unwrap();
        let place = if rng.u8(..30) == 0 { "[%b+4]" } else { "[%b]" };
        for section in 0..=rng.u8(..3) {
            if section > 0 {
                // Another basic block.
                write!(text, "setp.gt.u32 %p, %n, 4000000000;\n@%p bra END;\nL{section}:\n").unwrap();
            }
            Elementwise::section(rng, &mut text, &guards, (count, step), place, section > 0);
        }
        text.push_str("END:\nret;\n}\n");
        let elements = (step as usize / 4) * (2 * total as usize).max(4098) + 9;
        let input = (0..elements).map(|_| if rng.bool() { rng.u32(..) } else { rng.u32(..9) }).collect();
        // Some have no room for the last threads.
        let elements = if rng.u8(..12) == 0 { total / 2 } else { (2 * total).max(4096) };
        let room = (count * elements) as usize;
        Elementwise { text, grid, block, n, input, room }
    }

    /// Sets `%j` to the number of the thread's element: its own, counted from the end, after wrapping around, with as many
    /// behind those of a block, or with some behind each row.
    /// Returns the register with the number of its element of the output.
    fn element(rng: &mut Rng, text: &mut String, total: u32, threads: u32) -> &'static str {
        let mut own = "%j";
        match rng.u8(..7) {
            0 => write!(text, "mov.u32 %j, {};\nsub.s32 %j, %j, %i;\n", total - 1).unwrap(),
            1 => {
                own = "%i";
                match rng.bool() {
                    true => {
                        write!(text, "add.u32 %j, %i, {};\nand.b32 %j, %j, 4095;\n", rng.u32(..4096)).unwrap()
                    }
                    false => text.push_str("mul.lo.u32 %j, %i, 4194304;\nshr.u32 %j, %j, 22;\n"),
                }
            }
            2 => writeln!(text, "mad.lo.u32 %j, %x, {}, %t;", 2 * threads).unwrap(),
            // Rows with gaps between them.
            3 => {
                write!(text, "mov.u32 %j, %tid.y;\nmad.lo.u32 %j, %j, 4, %t;\n").unwrap();
                writeln!(text, "mad.lo.u32 %j, %x, {}, %j;", 2 * threads).unwrap();
            }
            _ => text.push_str("mov.u32 %j, %i;\n"),
        }
        if rng.u8(..3) == 0 {
            let [some, all, than] = if rng.bool() { ["", "!", "gt"] } else { ["!", "", "lt"] };
            write!(
                text,
                "setp.{than}.u32 %q, %c, 100;\n@{some}%q add.u32 %j, %j, 9;\n@{all}%q xor.b32 %x, %x, 1;\n"
            )
            .unwrap();
        }
        own
    }

    /// Loads, some arithmetic, and a store to `place`.
    fn section(
        rng: &mut Rng,
        text: &mut String,
        Guards { own, none }: &Guards,
        (count, step): (u32, u32),
        place: &str,
        again: bool,
    ) {
        if rng.bool() {
            // What threads have that are not within bounds.
            (0..4).for_each(|i| writeln!(text, "mov.u32 %r{i}, {};", 10 * i).unwrap());
        }
        let vector = |count| ["%r0", "{%r0, %r1}", "", "{%r0, %r1, %r2, %r3}"][count as usize - 1];
        let suffix = |count| ["", ".v2", "", ".v4"][count as usize - 1];
        writeln!(text, "{own}ld.global{}.u32 {}, [%a];", suffix(count), vector(count)).unwrap();
        for i in count..4 {
            let offset = if step == 4 { 4 * rng.u32(..3) } else { 0 };
            writeln!(text, "{own}ld.global.u32 %r{i}, [%a+{offset}];").unwrap();
        }
        if rng.u8(..6) == 0 {
            writeln!(text, "{none}ld.global.u32 %r3, [%a];").unwrap();
        }
        if again {
            writeln!(text, "{own}ld.global.u32 %r0, {place};").unwrap();
        }
        (0..4).for_each(|i| writeln!(text, "mov.b32 %f{i}, %r{i};").unwrap());
        for _ in 0..1 + rng.u8(..6) {
            let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
            match rng.u8(..10) {
                8 => {
                    let op = ["add", "sub", "mul", "min", "div.rn"][rng.usize(..5)];
                    writeln!(text, "cvt.f64.f32 %e, %f{a};\ncvt.f64.f32 %w, %f{b};\n{op}.f64 %w, %e, %w;")
                        .unwrap();
                    writeln!(text, "fma.rn.f64 %w, %w, %e, %w;\ncvt.rn.f32.f64 %f{d}, %w;").unwrap();
                }
                9 => writeln!(text, "mul.wide.s32 %w, %r{a}, %r{b};\ncvt.u32.u64 %r{d}, %w;").unwrap(),
                0 => writeln!(text, "fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{d};").unwrap(),
                1 => writeln!(text, "add.ftz.f32 %f{d}, %f{a}, %f{b};").unwrap(),
                2 => writeln!(text, "mad.lo.u32 %r{d}, %r{a}, %c, %r{b};").unwrap(),
                3 => writeln!(text, "xor.b32 %r{d}, %r{a}, %i;").unwrap(),
                4 => writeln!(text, "cvt.rn.f32.s32 %f{d}, %r{a};").unwrap(),
                5 => writeln!(text, "max.f32 %f{d}, %f{a}, %f{b};").unwrap(),
                6 => writeln!(text, "mad.lo.s32 %r{d}, %t, %t, %r{a};").unwrap(),
                _ => writeln!(text, "mov.b32 %r{d}, %f{a};").unwrap(),
            }
        }
        if rng.u8(..3) == 0 {
            write!(text, "mov.u32 %r2, 5;\n{own}ld.global.u32 %r2, [%a];\n").unwrap();
        }
        text.push_str("mov.b32 %r1, %f1;\nxor.b32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\n");
        let mut own = if rng.u8(..3) == 0 { "" } else { own };
        if !own.is_empty() && rng.u8(..4) == 0 {
            // The guard is another one now, which holds for no thread.
            let than = if own.contains('!') { "lt" } else { "gt" };
            writeln!(text, "setp.{than}.u32 %g, %c, 100;\n{own}st.global.u32 {place}, %r3;").unwrap();
            own = "";
        }
        writeln!(text, "{own}st.global{}.u32 {place}, {};", suffix(count), vector(count)).unwrap();
    }

    fn run(&self, module: &Module, engine: Engine, path: Option<HostPath>, threads: usize) -> Outcome {
        let memory = (&self.input[..], self.room);
        run(module, (self.grid, self.block), memory, &[self.n, 77], (engine, path, threads))
    }
}

/// Asserts that a launch ended as that of the reference engine did, with the same memory.
pub(super) fn assert_same(found: &Outcome, expected: &Outcome, name: &str, text: &str) {
    assert_eq!(found.0, expected.0, "{name}\n{text}");
    let differs = found.1.iter().zip(&expected.1).position(|(found, expected)| found != expected);
    assert_eq!(differs, None, "first element of {name}\n{text}");
}

/// Native code on each path with one and two host threads, and the interpreter.
pub(super) fn ways() -> impl Iterator<Item = (Engine, HostPath, usize)> {
    let native =
        native_paths().into_iter().flat_map(|path| [1, 2].map(|threads| (Engine::Native, path, threads)));
    native.chain([(Engine::Interpreter, HostPath::Portable, 1)])
}

/// Runs `k(in, out, numbers...)`. The second part of the memory: elements of the output; and of the last argument: the host's path
/// and threads.
pub(super) fn run(
    module: &Module,
    (grid, block): ([u32; 2], [u32; 2]),
    (input, room): (&[u32], usize),
    numbers: &[u32],
    (engine, path, threads): (Engine, Option<HostPath>, usize),
) -> Outcome {
    let device = Device::new();
    let (input, out) = (device.array(input).expect("room"), device.zeros::<u32>(room).expect("room"));
    let launch = device.load(module).expect("room").launch("k").grid((grid[0], grid[1]));
    let launch = launch.block((block[0], block[1])).engine(engine).configure(|config| {
        config.host_path = path;
        config.threads = Some(threads);
    });
    let launch = launch.arg(&input).arg(&out);
    let outcome = numbers.iter().fold(launch, |launch, &number| launch.arg(number)).run();
    let outcome = outcome.map(|report| report.thread_instructions).map_err(|error| error.to_string());
    (outcome, out.read().expect("an array"))
}

#[test]
fn random_elementwise_kernels_are_those_of_the_reference_engine() {
    let seeds = seeds(400);
    let (count, mut faults) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let kernel = Elementwise::random(seed);
        let text = &kernel.text;
        let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let expected = kernel.run(&module, Engine::Reference, None, 1);
        faults += u64::from(expected.0.is_err());
        // Of several threads that fault, each engine may name another.
        let end = kernel.run(&module, Engine::Interpreter, None, 1).0;
        assert!(end == expected.0 || end.is_err() && expected.0.is_err(), "kernel {seed}\n{text}");
        for (path, threads) in native_paths().into_iter().flat_map(|path| [(path, 1), (path, 2)]) {
            let found = kernel.run(&module, Engine::Native, Some(path), threads);
            let name = format!("kernel {seed}, {}, {threads} host threads", path.name());
            assert_eq!(found.0, end, "{name}\n{text}");
            assert!(found.0.is_err() || found.1 == expected.1, "memory of {name}\n{text}");
        }
    }
    assert!(faults < count / 4, "{faults} of {count} kernels fault");
}

/// A block sees what a later one has written: their threads go through each section together.
#[test]
fn blocks_of_elementwise_kernels_run_together() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n) {\n\
                .reg .b32 %i, %t, %x, %n, %r<2>; .reg .pred %p; .reg .b64 %b;\n\
                ld.param.u64 %b, [out];\nld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\n\
                mad.lo.u32 %i, %x, 1024, %t;\nmad.wide.u32 %b, %i, 4, %b;\n\
                ld.global.u32 %r0, [%b];\nadd.u32 %r0, %r0, %i;\nxor.b32 %r0, %r0, 5;\nst.global.u32 [%b], %r0;\n\
                setp.ne.u32 %p, %n, 1;\n@%p bra MORE;\nbra END;\nMORE:\n\
                ld.global.u32 %r0, [%b];\nld.global.u32 %r1, [%b+4096];\nadd.u32 %r0, %r0, %r1;\n\
                st.global.u32 [%b], %r0;\nEND:\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    for path in native_paths() {
        let device = Device::new();
        let out = device.zeros::<u32>(65 * 1024).expect("room");
        let launch =
            device.load(&module).expect("room").launch("k").grid(64).block(1024).engine(Engine::Native);
        let launch = launch.configure(|config| {
            config.host_path = Some(path);
            config.threads = Some(1);
        });
        launch.arg(&out).arg(2u32).run().expect("it ends");
        let found = out.read().expect("an array");
        // The first share of the blocks is one: whether they can run together was not known yet. A gang of one block would add 0 in the
        // next share, too.
        let expected: Vec<u32> = (1024..2048).map(|i| (i ^ 5) + ((i + 1024) ^ 5)).collect();
        assert_eq!(found[1024..2048], expected, "{}", path.name());
    }
}

/// Blocks that do not fill the masks of a gang, with threads that have ended and a predicate.
#[test]
fn masks_are_those_of_each_block() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n\
                .reg .b32 %i, %t, %x, %n, %r<2>; .reg .pred %p, %q; .reg .b64 %a, %b;\n\
                ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\n\
                mov.u32 %x, %ctaid.x;\nmov.u32 %i, %ntid.x;\nmad.lo.u32 %i, %x, %i, %t;\nmad.wide.u32 %a, %i, 4, %a;\n\
                mad.wide.u32 %b, %i, 4, %b;\nsetp.ge.u32 %p, %t, %n;\n@%p bra END;\nsetp.lt.u32 %q, %t, 17;\n\
                ld.global.u32 %r0, [%a];\nmul.lo.u32 %r1, %r0, 3;\nselp.b32 %r1, %r1, %r0, %q;\nadd.u32 %r1, %r1, %i;\n\
                st.global.u32 [%b], %r1;\nEND:\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    for (block, ended) in [(96, 64), (96, 96), (160, 100), (256, 200), (1024, 1000)] {
        let input: Vec<u32> = (0..64 * block).map(|i| i * i).collect();
        let memory = (&input[..], input.len());
        let run = |way| run(&module, ([64, 1], [block, 1]), memory, &[ended], way);
        let expected = run((Engine::Reference, None, 1));
        for (engine, path, threads) in ways() {
            let name = format!("{engine:?}, {}, {threads} host threads, blocks of {block}", path.name());
            assert_same(&run((engine, Some(path), threads)), &expected, &name, text);
        }
    }
}

/// Gangs, since lanes are asked which of them are there: the first rows of their first block have ended, and every row has other steps
/// than its block.
#[test]
fn gangs_begin_within_a_block() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n\
                .reg .b32 %i, %t, %x, %y, %n, %r<3>; .reg .pred %p; .reg .b64 %a, %b;\n\
                ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u32 %n, [n];\nmov.u32 %t, %tid.y;\n\
                setp.lt.u32 %p, %t, %n;\nmov.u32 %x, %ctaid.x;\nsetp.eq.and.u32 %p, %x, 0, %p;\n@%p bra END;\n\
                activemask.b32 %r2;\nmov.u32 %i, %tid.x;\nmad.lo.u32 %x, %x, 32, %i;\nmov.u32 %y, %ctaid.y;\n\
                mad.lo.u32 %y, %y, 8, %t;\nmad.lo.u32 %i, %y, 331, %x;\nmad.wide.u32 %a, %i, 4, %a;\nmad.lo.u32 %i, %y, 257, %x;\n\
                mad.wide.u32 %b, %i, 4, %b;\nld.global.u32 %r0, [%a];\nmad.lo.u32 %r1, %r0, 3, %i;\nxor.b32 %r1, %r1, %r2;\n\
                st.global.u32 [%b], %r1;\nEND:\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let input: Vec<u32> = (0..331 * 16).map(|i| i * i).collect();
    for ended in [0, 1, 3, 7] {
        let run = |way| run(&module, ([8, 2], [32, 8]), (&input, 257 * 16), &[ended], way);
        let expected = run((Engine::Reference, None, 1));
        for (engine, path, threads) in ways() {
            let name = format!("{engine:?}, {}, {threads} host threads, without {ended} rows", path.name());
            assert_same(&run((engine, Some(path), threads)), &expected, &name, text);
        }
    }
}
