//! Native code that goes through several basic blocks: shuffles, branches that lead all lanes the same way, and what only some of the
//! lanes execute.
//!
//! `PTXVM_LOOPS` and `PTXVM_LOOP` say how many random kernels run, and from which seed on.

use fastrand::Rng;
use ptxvm::{Device, Engine, HostPath, Module};

use super::{native_paths, seeds};

/// Elements of the output of each thread.
const RESULTS: u32 = 10;
/// Threads of all blocks.
const THREADS: u32 = 1280;

/// A kernel with its launch.
struct Traced {
    text: String,
    block: [u32; 2],
    /// Elements of the input: some threads are out of bounds.
    n: u32,
    input: Vec<u32>,
}

/// Writes a kernel.
struct Writer {
    rng: Rng,
    text: String,
    labels: u32,
    /// All lanes of each warp are there.
    whole: bool,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }

    fn register(&mut self) -> u8 {
        self.rng.u8(..5)
    }

    /// Arithmetic on the registers of a thread. `guard`: before it.
    fn compute(&mut self, guard: &str) {
        let [d, a, b] = [self.register(), self.register(), self.register()];
        let number = self.rng.u32(..64);
        if self.rng.u8(..5) == 0 {
            return self.compute_wide(guard);
        }
        let line = match self.rng.u8(..12) {
            0 => format!("add.u32 %r{d}, %r{a}, %r{b};"),
            1 => format!("mad.lo.u32 %r{d}, %r{a}, {number}, %r{b};"),
            2 => format!("xor.b32 %r{d}, %r{a}, %i;"),
            3 => format!("add.f32 %f{d}, %f{a}, %f{b};"),
            4 => format!("fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{d};"),
            5 => format!("max.f32 %f{d}, %f{a}, %f{b};"),
            6 => format!("shl.b32 %r{d}, %r{a}, {};", number % 40),
            7 => format!("mov.b32 %f{d}, %r{a};"),
            8 => format!("mov.b32 %r{d}, %f{a};"),
            // Steps evenly.
            9 => format!("add.u32 %r{d}, %t, {number};"),
            10 => format!("mov.u32 %r{d}, {number};"),
            _ => format!("selp.b32 %r{d}, %r{a}, %r{b}, %q{};", number % 2),
        };
        self.line(&format!("{guard}{line}"));
    }

    /// The same on registers of 64 bits: f64, integers, conversions.
    fn compute_wide(&mut self, guard: &str) {
        let [d, a, b] = std::array::from_fn(|_| self.rng.u8(..3));
        let [r, f] = [self.register(), self.register()];
        let line = match self.rng.u8(..10) {
            0 => format!(
                "{}.f64 %d{d}, %d{a}, %d{b};",
                self.pick(&["add", "sub", "mul", "div.rn", "min", "max"])
            ),
            1 => format!("fma.{}.f64 %d{d}, %d{a}, %d{b}, %d{d};", self.pick(&["rn", "rz"])),
            2 => format!("cvt.f64.f32 %d{d}, %f{f};"),
            3 => format!("cvt.rn.f32.f64 %f{f}, %d{a};"),
            4 => format!("mov.b64 %d{d}, {{%r{r}, %r{}}};", self.register()),
            5 => format!("cvt.u32.u64 %r{r}, %d{a};"),
            6 => format!("add.s64 %d{d}, %d{a}, %d{b};"),
            7 => format!("mul.wide.s32 %d{d}, %r{r}, %r{};", self.register()),
            8 => format!("neg.f64 %d{d}, %d{a};"),
            _ => format!("selp.b64 %d{d}, %d{a}, %d{b}, %q0;"),
        };
        self.line(&format!("{guard}{line}"));
    }

    /// Loads an element, or stores one of the thread's own. `%a` has the address of the thread's element of the input.
    fn access(&mut self) {
        if self.rng.u8(..3) == 0 {
            return self.access_any();
        }
        let (r, place) = (self.register(), 4 * self.rng.u32(5..RESULTS));
        let (d, wide) = (self.rng.u8(..3), 8 * self.rng.u32(3..RESULTS / 2));
        match self.rng.u8(..7) {
            5 => self.line(&format!("ld.global.f64 %d{d}, [%b+{wide}];")),
            6 => self.line(&format!("st.global.f64 [%b+{wide}], %d{d};")),
            0 => self.line(&format!("ld.global.u32 %r{r}, [%a];")),
            1 => self.line(&format!("ld.global.f32 %f{r}, [%b+{place}];")),
            2 => self.line(&format!("st.global.f32 [%b+{place}], %f{r};")),
            3 => self.line(&format!(
                "mad.wide.u32 %c, %i, {}, %o;\nst.global.u32 [%c+{place}], %r{r};",
                4 * RESULTS
            )),
            _ => self.line(&format!("st.global.u32 [%b+{place}], %r{r};")),
        }
    }

    /// Loads any element of the input, or stores one of the thread's own, where nothing is known of the address.
    fn access_any(&mut self) {
        let [r, a] = [self.register(), self.register()];
        let (q, wide) = (self.rng.u8(..2), self.rng.u8(..3));
        let element = format!("and.b32 %x, %r{a}, 1023;\nmad.wide.u32 %c, %x, 4, %z;");
        match self.rng.u8(..6) {
            // Lanes access two allocations.
            0 => self.line(&format!("{element}\nselp.b64 %c, %c, %b, %q{q};\nld.global.u32 %r{r}, [%c+20];")),
            1 => self.line(&format!(
                "and.b32 %x, %r{a}, 510;\nmad.wide.u32 %c, %x, 4, %z;\nld.global.f64 %d{wide}, [%c];"
            )),
            2 => self.line(&format!(
                "and.b32 %x, %r{a}, 3;\nmad.wide.u32 %c, %x, 4, %b;\nst.global.u32 [%c+20], %r{r};"
            )),
            _ => self.line(&format!("{element}\nld.global.u32 %r{r}, [%c];")),
        }
    }

    fn shuffle(&mut self) {
        let [d, a] = [self.register(), self.register()];
        let mode = self.pick(&["up", "down", "bfly", "idx"]);
        let segment = self.pick(&[0, 0x1000, 0x1800, 0x1c00, 0x1e00]);
        let bound = if mode == "up" { 0 } else { self.pick(&[31, 31, 15, 7, 3]) };
        let distance = self.pick(&[0, 1, 2, 3, 4, 7, 8, 16, 17, 31]);
        let q = self.rng.u8(..2);
        let (pred, clamp) = (self.pick(&["", "|"]), segment | bound);
        let pred = if pred.is_empty() { String::new() } else { format!("|%q{q}") };
        self.line(&format!("shfl.sync.{mode}.b32 %r{d}{pred}, %r{a}, {distance}, {clamp}, -1;"));
        if !pred.is_empty() && self.rng.bool() {
            let negated = self.pick(&["", "!"]);
            self.compute(&format!("@{negated}%q{q} "));
        }
    }

    /// A branch around some of these statements.
    fn branch(&mut self, depth: u32) {
        let label = self.labels;
        self.labels += 1;
        let a = self.register();
        let varies = self.rng.bool();
        let (compare, pred) = match self.rng.u8(..3) {
            // All lanes of most gangs go one way.
            _ if !varies => (format!("setp.{}.u32 %p, %i, %n;", self.pick(&["ge", "lt", "gt"])), "%p"),
            0 => (format!("setp.ne.u32 %p, %t, {};", self.rng.u32(..70)), "%p"),
            1 => (format!("setp.{}.s32 %p, %r{a}, {};", self.pick(&["lt", "gt"]), self.rng.u32(..50)), "%p"),
            _ => (String::new(), "%q0"),
        };
        let negated = self.pick(&["", "", "!"]);
        self.line(&compare);
        self.line(&format!("@{negated}{pred} bra L{label};"));
        // Lanes that are there together may exchange values, if all of a warp are.
        let whole = std::mem::replace(&mut self.whole, false);
        for _ in 0..1 + self.rng.u8(..4) {
            match self.rng.u8(..8) {
                0 | 1 => self.access(),
                2 if depth < 2 => self.branch(depth + 1),
                3 => self.compute("@%q1 "),
                4 => self.line("setp.lt.u32 %q0, %r0, %r1;"),
                _ => self.compute(""),
            }
        }
        self.whole = whole;
        self.line(&format!("L{label}:"));
    }

    fn statement(&mut self) {
        match self.rng.u8(..12) {
            0 | 1 => self.access(),
            2..=4 => self.branch(0),
            5..=7 if self.whole => self.shuffle(),
            8 => {
                let [a, q] = [self.register(), self.rng.u8(..2)];
                self.line(&format!("setp.gt.s32 %q{q}, %r{a}, %r0;"));
            }
            9 => {
                let guard = self.pick(&["@%q0 ", "@!%q1 "]);
                self.compute(guard);
            }
            10 if self.rng.u8(..3) == 0 => {
                self.line("st.shared.u32 [%s], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [%u];\nbar.sync 0;");
            }
            _ => self.compute(""),
        }
    }
}

impl Traced {
    /// `k(in, out, n)`
    fn random(seed: u64) -> Traced {
        let mut rng = Rng::with_seed(seed);
        let blocks = [[32, 1], [64, 1], [128, 1], [256, 1], [640, 1], [16, 8], [32, 4], [80, 1], [20, 2]];
        let block: [u32; 2] = blocks[rng.usize(..blocks.len())];
        let threads = block[0] * block[1];
        let n = [THREADS, THREADS, THREADS - 40, 32, rng.u32(1..THREADS)][rng.usize(..5)];
        let whole = threads.is_multiple_of(32);
        let mut writer = Writer { rng, text: String::new(), labels: 0, whole };
        writer.line(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n\
             .reg .b32 %i, %t, %x, %n, %s, %u, %r<5>; .reg .f32 %f<5>; .reg .pred %p, %q<2>; .reg .b64 %a, %b, %c, %o, %z, %d<3>;\n\
             .shared .b32 sh[1024];\nld.param.u64 %a, [in];\nmov.u64 %z, %a;\nld.param.u64 %o, [out];\nld.param.u32 %n, [n];\n\
             mov.u32 %t, %tid.y;\nmov.u32 %x, %ntid.x;\nmov.u32 %i, %tid.x;\nmad.lo.u32 %t, %t, %x, %i;\nmov.u32 %x, %ctaid.x;",
        );
        writer.line(&format!("mad.lo.u32 %i, %x, {threads}, %t;\nmad.wide.u32 %b, %i, {}, %o;", 4 * RESULTS));
        writer.line(
            "min.u32 %x, %i, 31;\nmad.wide.u32 %a, %i, 4, %a;\nmov.u32 %s, sh;\nmad.lo.u32 %s, %t, 4, %s;",
        );
        // What another thread of the block has stored.
        writer.line(&format!("mov.u32 %u, sh;\nsub.u32 %x, {}, %t;\nmad.lo.u32 %u, %x, 4, %u;", threads - 1));
        writer.line("mov.u32 %r0, 7;\nsetp.ge.u32 %p, %i, %n;\n@%p bra IN;\nld.global.u32 %r0, [%a];\nIN:");
        writer
            .line("add.u32 %r1, %t, 3;\nmul.lo.u32 %r2, %r0, 77;\nxor.b32 %r3, %r0, %r1;\nmov.u32 %r4, %n;");
        writer.line("mov.b32 %f0, %r0;\ncvt.rn.f32.u32 %f1, %r1;\nmov.b32 %f2, %r2;\nmov.f32 %f3, 0f3f800000;\nmov.b32 %f4, %r3;");
        writer.line("mov.b64 %d0, {%r1, %r0};\ncvt.f64.f32 %d1, %f1;\nmov.b64 %d2, {%r0, %r2};");
        writer.line("setp.lt.u32 %q0, %r0, 30;\nsetp.gt.s32 %q1, %r2, 9;");
        for _ in 0..4 + writer.rng.u8(..14) {
            writer.statement();
        }
        (0..3).for_each(|i| {
            let both = format!("xor.b32 %r{i}, %r{i}, %x;\nxor.b32 %r{i}, %r{i}, %u;");
            writer.line(&format!("mov.b64 {{%x, %u}}, %d{i};\n{both}"));
        });
        (0..5).for_each(|i| writer.line(&format!("st.global.u32 [%b+{}], %r{i};", 4 * i)));
        (0..5).for_each(|i| writer.line(&format!("st.global.f32 [%b+{}], %f{i};", 4 * (5 + i))));
        writer.line("ret;\n}");
        let Writer { mut rng, text, .. } = writer;
        let input = (0..THREADS).map(|_| if rng.bool() { rng.u32(..) } else { rng.u32(..50) }).collect();
        Traced { text, block, n, input }
    }

    /// The thread-instructions of a launch, and its output.
    fn run(
        &self,
        module: &Module,
        engine: Engine,
        path: Option<HostPath>,
        threads: usize,
    ) -> (u64, Vec<u32>) {
        let device = Device::new();
        let input = device.array(&self.input).expect("room");
        let out = device.zeros::<u32>((THREADS * RESULTS) as usize).expect("room");
        let launch =
            device.load(module).expect("room").launch("k").grid(THREADS / (self.block[0] * self.block[1]));
        let launch = launch.block((self.block[0], self.block[1])).engine(engine).configure(|config| {
            config.host_path = path;
            config.threads = Some(threads);
        });
        let report = launch.arg(&input).arg(&out).arg(self.n).run();
        let report = report.unwrap_or_else(|error| panic!("{error}\n{}", self.text));
        (report.thread_instructions, out.read().expect("an array"))
    }
}

#[test]
fn random_traces_are_those_of_the_reference_engine() {
    let seeds = seeds(400);
    let count = seeds.end - seeds.start;
    let mut traced = 0;
    for seed in seeds {
        let kernel = Traced::random(seed);
        let text = &kernel.text;
        let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let functions = module.program().functions.iter().flatten();
        traced += u64::from(
            functions
                .map(|f| jit::straight(f, jit::Host::Avx2, |_, _| true).of_gang.traces.len())
                .sum::<usize>()
                > 0,
        );
        let expected = kernel.run(&module, Engine::Reference, None, 1);
        let native = native_paths().into_iter().flat_map(|path| [(path, 1), (path, 2)]);
        let native = native.map(|(path, threads)| (Engine::Native, Some(path), threads));
        for (engine, path, threads) in native.chain([(Engine::Interpreter, None, 1)]) {
            let found = kernel.run(&module, engine, path, threads);
            let at = found.1.iter().zip(&expected.1).position(|(found, expected)| found != expected);
            let at = at.map(|at| (at as u32 / RESULTS, at as u32 % RESULTS));
            let name = format!("kernel {seed}, {engine:?}, {path:?}, {threads} host threads");
            assert_eq!(at, None, "thread and result of {name}\n{text}");
            assert_eq!(found.0, expected.0, "instructions of {name}\n{text}");
        }
    }
    assert!(traced > count / 2, "{traced} of {count} kernels have traces");
}

/// A shuffle waits for lanes that are elsewhere until they end: a trace does not go on without them.
#[test]
fn a_trace_waits_for_the_lanes_of_its_warps() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
                .reg .b32 %t, %o, %r<4>; .reg .pred %p; .reg .b64 %a, %b;\n\
                ld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %a, %t, 4, %b;\n\
                and.b32 %o, %t, 31;\nsetp.ge.u32 %p, %o, 16;\n@!%p bra NEAR;\n\
                st.global.u32 [%a], 7000;\nret;\nNEAR:\nld.global.u32 %r0, [%a];\nadd.u32 %r0, %r0, %t;\nxor.b32 %r2, %r0, 1;\n\
                shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\nadd.u32 %r1, %r1, %r2;\n\
                ld.global.u32 %r3, [%a+64];\nadd.u32 %r1, %r1, %r3;\nst.global.u32 [%a], %r1;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let own = |t: u32| if t % 32 < 16 { 7000 + t / 32 * 32 + (t ^ 1) } else { 7000 };
    let expected: Vec<u32> = (0..64).map(own).collect();
    let ways = native_paths().into_iter().map(|path| (Engine::Native, Some(path)));
    for (engine, path) in ways.chain([(Engine::Interpreter, None), (Engine::Reference, None)]) {
        let device = Device::new();
        // All lanes are within bounds, whether they load or not.
        let out = device.zeros::<u32>(96).expect("room");
        let launch = device.load(&module).expect("room").launch("k").block(64).engine(engine);
        launch.configure(|config| config.host_path = path).arg(&out).run().expect("it ends");
        assert_eq!(out.read().expect("an array")[..64], expected, "{engine:?}, {path:?}");
    }
}

/// Of the basic blocks that some lanes execute, only these lanes count, even if what they compute is never used.
#[test]
fn what_some_lanes_execute_is_counted_for_them() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
                .reg .b32 %t, %x, %i, %d, %r<2>; .reg .pred %p; .reg .b64 %a, %b;\n\
                ld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\nmad.lo.u32 %i, %x, 64, %t;\n\
                mad.wide.u32 %a, %i, 4, %b;\nld.global.u32 %r0, [%a];\nadd.u32 %r0, %r0, %i;\n\
                setp.ne.u32 %p, %t, 5;\n@%p bra JOIN;\nadd.u32 %d, %i, 1;\nJOIN:\n\
                xor.b32 %r0, %r0, 3;\nst.global.u32 [%a], %r0;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let ways = native_paths().into_iter().map(|path| (Engine::Native, Some(path)));
    for (engine, path) in ways.chain([(Engine::Interpreter, None), (Engine::Reference, None)]) {
        let device = Device::new();
        let out = device.zeros::<u32>(96 * 64).expect("room");
        let launch = device.load(&module).expect("room").launch("k").grid(96).block(64).engine(engine);
        let report = launch.configure(|config| config.host_path = path).arg(&out).run().expect("it ends");
        assert_eq!(report.thread_instructions, 96 * (64 * 12 + 1), "{engine:?}, {path:?}");
    }
}

/// A trace that begins with a basic block that is a branch only keeps the values of lanes that wait behind it.
#[test]
fn a_trace_that_begins_with_a_branch_keeps_what_other_lanes_need() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n\
                .reg .b32 %t, %x, %i, %r<4>; .reg .pred %p, %q; .reg .b64 %a, %b;\n\
                ld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ctaid.x;\nmad.lo.u32 %i, %x, 64, %t;\n\
                mad.wide.u32 %a, %i, 4, %b;\nld.global.u32 %r0, [%a];\nadd.u32 %r1, %r0, %i;\nand.b32 %r2, %r1, 1;\n\
                setp.eq.u32 %q, %r2, 1;\nsetp.gt.u32 %p, %r1, 40;\n@%p bra END;\n@%q bra JOIN;\nmul.lo.u32 %r1, %r1, 5;\n\
                JOIN:\nxor.b32 %r1, %r1, %r0;\nmov.u32 %r0, 14;\nEND:\nred.global.add.u32 [%a], 0;\nadd.u32 %r0, %r0, %r1;\nst.global.u32 [%a], %r0;\nret;\n}\n";
    let module = Module::from_ptx(text).expect("a module");
    let mut functions = module.program().functions.iter().flatten();
    let begins = |f: &ir::Function| {
        let traces = jit::straight(f, jit::Host::Avx2, |_, _| true).of_gang.traces;
        traces.iter().any(|trace| f.blocks[trace.path[0].block as usize].ops.is_empty())
    };
    assert!(functions.any(begins), "no trace begins with a branch");
    let of = |i: u32| match i {
        41.. => i,
        _ if i.is_multiple_of(2) => 14 + 5 * i,
        _ => 14 + i,
    };
    let expected: Vec<u32> = (0..6400).map(of).collect();
    let ways = native_paths().into_iter().map(|path| (Engine::Native, Some(path)));
    for (engine, path) in ways.chain([(Engine::Interpreter, None), (Engine::Reference, None)]) {
        let device = Device::new();
        let out = device.zeros::<u32>(6400).expect("room");
        let launch = device.load(&module).expect("room").launch("k").grid(100).block(64).engine(engine);
        launch.configure(|config| config.host_path = path).arg(&out).run().expect("it ends");
        assert_eq!(out.read().expect("an array"), expected, "{engine:?}, {path:?}");
    }
}
