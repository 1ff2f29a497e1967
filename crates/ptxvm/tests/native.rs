//! Native code: random loops of the operations that it has, bit for bit as the reference engine runs them.
//!
//! The lanes of a loop leave it at different times, by several ways, and meet again. Some registers are stored at the end.
//! `PTXVM_LOOPS` says how many loops run instead of the default.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use ptxvm::{Device, Engine, Error, Module};

const REGISTERS: usize = 5;
const THREADS: usize = 100;
/// Results of a thread: registers, numbers and predicates.
const RESULTS: usize = 2 * REGISTERS + 1;

/// Loops as PTX text.
struct Writer {
    rng: Rng,
    text: String,
    labels: usize,
}

impl Writer {
    fn kernel(seed: u64) -> String {
        let mut writer = Writer { rng: Rng::with_seed(seed), text: String::new(), labels: 0 };
        writer.text.push_str(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n\
             .reg .b32 %r<5>, %c<9>, %t, %i; .reg .f32 %f<5>, %u; .reg .pred %p<4>, %l<9>; .reg .b64 %a, %b;\n\
             mov.u32 %t, %tid.x;\nmov.f32 %u, 0f3f000000;\nmov.u32 %i, %ctaid.x;\nmad.lo.u32 %i, %i, 100, %t;\nmul.wide.u32 %a, %i, 44;\n\
             ld.param.u64 %b, [out];\nadd.u64 %b, %b, %a;\nld.param.u64 %a, [in];\nmad.wide.u32 %a, %i, 44, %a;\n",
        );
        for i in 0..REGISTERS {
            let text =
                format!("ld.global.b32 %r{i}, [%a+{}];\nld.global.f32 %f{i}, [%a+{}];\n", 4 * i, 4 * i + 20);
            writer.text.push_str(&text);
        }
        for i in 0..4 {
            let text = format!("setp.lt.s32 %p{i}, %r{i}, {};\n", i * 1000);
            writer.text.push_str(&text);
        }
        writer.a_loop(0);
        // A second way out of all loops.
        writer.text.push_str("xor.b32 %r4, %r4, %r3;\nadd.f32 %f4, %f4, %f3;\nZ:\n");
        // What is not stored is not live behind the loop.
        for (place, register) in
            (0..2 * REGISTERS).map(|i| (4 * i, format!("%{}{}", ["r", "f"][i / REGISTERS], i % REGISTERS)))
        {
            if writer.rng.u8(..3) == 0 {
                writeln!(writer.text, "st.global.b32 [%b+{place}], {register};").unwrap();
            }
        }
        writer.text.push_str("mov.u32 %t, 0;\n");
        for i in 0..4 {
            let text = format!("@%p{i} add.u32 %t, %t, {};\n", 1 << i);
            writer.text.push_str(&text);
        }
        writer.text.push_str("st.global.u32 [%b+40], %t;\nret;\n}\n");
        writer.text
    }

    fn a_loop(&mut self, depth: usize) {
        let (label, bound) = (self.labels, self.rng.u32(1..6));
        self.labels += 1;
        writeln!(self.text, "mov.u32 %c{depth}, 0;\nL{label}:").unwrap();
        self.statements(depth, label);
        // The bound of a lane, or of all.
        let lane = if self.rng.bool() {
            format!("and.b32 %t, %r0, 3;\nadd.u32 %t, %t, {bound};\n")
        } else {
            format!("mov.u32 %t, {bound};\n")
        };
        writeln!(
            self.text,
            "add.u32 %c{depth}, %c{depth}, 1;\n{lane}setp.lt.u32 %l{depth}, %c{depth}, %t;\n@%l{depth} bra L{label};\nX{label}:"
        )
        .unwrap();
    }

    fn statements(&mut self, depth: usize, label: usize) {
        for _ in 0..self.rng.usize(1..6) {
            match self.rng.u8(..12) {
                0 if depth < 2 => self.a_loop(depth + 1),
                1 => {
                    let (p, not) = (self.rng.u8(..4), if self.rng.bool() { "!" } else { "" });
                    let out = if self.rng.u8(..4) == 0 { "Z".to_owned() } else { format!("X{label}") };
                    writeln!(self.text, "@{not}%p{p} bra {out};").unwrap();
                }
                2 | 3 if depth < 6 => {
                    let (next, p) = (self.labels, self.rng.u8(..4));
                    self.labels += 1;
                    writeln!(self.text, "@%p{p} bra E{next};").unwrap();
                    self.operations();
                    writeln!(self.text, "bra.uni J{next};\nE{next}:").unwrap();
                    self.operations();
                    writeln!(self.text, "J{next}:").unwrap();
                }
                _ => self.operations(),
            }
        }
    }

    fn operations(&mut self) {
        for _ in 0..self.rng.usize(1..5) {
            let line = self.operation();
            writeln!(self.text, "{line};").unwrap();
        }
    }

    fn operation(&mut self) -> String {
        let rng = &mut self.rng;
        let mut pick = |all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let numbers =
            ["%f0", "%f1", "%f2", "%f3", "%f4", "%u", "0f3f800000", "0f7fc00001", "0f80000000", "0f00000001"];
        let words = ["%r0", "%r1", "%r2", "%r3", "%r4", "%t", "7", "-1", "0x80000000"];
        let predicates = ["%p0", "%p1", "%p2", "%p3"];
        let (f, r, p) =
            (|pick: &mut dyn FnMut(&[&str]) -> String| pick(&numbers[..6]), &words[..6], &predicates);
        let rounding = pick(&["", ".rn", ".rz", ".rm", ".rp"]);
        let (d, a, b, c) = (f(&mut pick), pick(&numbers), pick(&numbers), pick(&numbers));
        let (wd, wa, wb, wc) = (pick(r), pick(&words), pick(&words), pick(&words));
        let (pd, pa, pb) = (pick(p), pick(p), pick(p));
        // Operations on bits read numbers, too.
        let (xa, xb) = (pick(&[&wa, &d, &wb]), pick(&[&wb, "%f0", "%u"]));
        let ty = pick(&["s32", "u32"]);
        let boolean = pick(&[".and", ".or", ".xor"]);
        let ordered = pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let compare = pick(&[
            "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
        ]);
        let unsigned = pick(&["lo", "ls", "hi", "hs"]);
        let both = if pd == pa { pd.clone() } else { format!("{pd}|{pa}") };
        let not = pick(&["", "!"]);
        match rng.u8(..38) {
            0..4 => format!("add{rounding}.f32 {d}, {a}, {b}"),
            4..6 => format!("sub{rounding}.f32 {d}, {a}, {b}"),
            6..9 => format!("mul{rounding}.f32 {d}, {a}, {b}"),
            9..12 => {
                format!("fma{}.f32 {d}, {a}, {b}, {c}", if rounding.is_empty() { ".rn" } else { &rounding })
            }
            12 => format!("abs.f32 {d}, {a}"),
            13 => format!("neg.f32 {d}, {a}"),
            14 => format!("cvt.rn.f32.{ty} {d}, {wd}"),
            15 => format!("mov.b32 {d}, {wd}"),
            16 => format!("mov.b32 {wd}, {d}"),
            17 => format!("add.{ty} {wd}, {wa}, {wb}"),
            18 => format!("sub.{ty} {wd}, {wa}, {wb}"),
            19 => format!("mul.lo.{ty} {wd}, {wa}, {wb}"),
            20 => format!("mad.lo.{ty} {wd}, {wa}, {wb}, {wc}"),
            21 => format!("{}.{ty} {wd}, {wa}, {wb}", ["min", "max"][rng.usize(..2)]),
            22 => format!("{}.b32 {wd}, {xa}, {xb}", ["and", "or", "xor"][rng.usize(..3)]),
            23 => format!("not.b32 {wd}, {xa}"),
            24 => format!("shl.b32 {wd}, {wa}, {wb}"),
            25 => format!("shr.{ty} {wd}, {wa}, {wb}"),
            26 => format!("{}.s32 {wd}, {wa}", ["neg", "abs"][rng.usize(..2)]),
            27 => format!("selp.b32 {wd}, {xa}, {xb}, {pa}"),
            28 => format!("selp.f32 {d}, {a}, {b}, {not}{pa}"),
            29 => format!("setp.{compare}.f32 {both}, {a}, {b}"),
            30 => format!("setp.{compare}{boolean}.f32 {both}, {a}, {b}, {not}{pb}"),
            31 => format!("setp.{ordered}{boolean}.{ty} {both}, {wa}, {wb}, {not}{pb}"),
            32 if rng.bool() => format!("setp.{unsigned}.u32 {both}, {wa}, {wb}"),
            32 => format!("setp.{ordered}.b32 {pd}, {wa}, {wb}")
                .replace("lt", "ne")
                .replace("le", "eq")
                .replace("gt", "ne")
                .replace("ge", "eq"),
            33 => format!("div{}.f32 {d}, {a}, {b}", if rounding.is_empty() { ".rn" } else { &rounding }),
            34 => format!("rcp{}.f32 {d}, {a}", if rounding.is_empty() { ".rn" } else { &rounding }),
            35 => format!("sqrt{}.f32 {d}, {a}", if rounding.is_empty() { ".approx" } else { &rounding }),
            36 => format!("{}.f32 {d}, {a}, {b}", ["min", "max"][rng.usize(..2)]),
            _ if rng.bool() => format!("not.pred {pd}, {pa}"),
            _ => format!("{}.pred {pd}, {pa}, {pb}", &boolean[1..]),
        }
    }
}

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
    (0..3 * THREADS * RESULTS).map(number).collect()
}

fn run(module: &Module, input: &[u32], engine: Engine) -> Result<(Vec<u32>, u64), Error> {
    let device = Device::new();
    let (input, output) = (device.array(input)?, device.zeros::<u32>(input.len())?);
    let launch = device.load(module)?.launch("k").grid(3).block(THREADS as u32).engine(engine);
    let report = launch.arg(&input).arg(&output).run()?;
    Ok((output.read()?, report.thread_instructions))
}

#[test]
fn random_loops_are_those_of_the_reference_engine() {
    let count = std::env::var("PTXVM_LOOPS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let mut native = 0;
    for seed in 0..count {
        let text = Writer::kernel(seed);
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let loops = module
            .program()
            .functions
            .iter()
            .flatten()
            .flat_map(|function| jit::loops(function, |_, _| true));
        native += usize::from(loops.filter_map(|a_loop| a_loop.compile()).next().is_some());
        let input = inputs(seed);
        let expected = run(&module, &input, Engine::Reference).expect("it ends");
        for engine in [Engine::Native, Engine::Interpreter] {
            let found = run(&module, &input, engine).expect("it ends");
            for (index, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
                let (thread, result) = (index / RESULTS, index % RESULTS);
                let place = format!("loop {seed}, {engine:?}: thread {thread}, result {result}");
                assert_eq!(format!("{found:#x}"), format!("{expected:#x}"), "{place}\n{text}");
            }
            assert_eq!(found.1, expected.1, "instructions of loop {seed}, {engine:?}\n{text}");
        }
    }
    if cfg!(all(target_arch = "x86_64", unix)) {
        assert!(native as u64 > count / 2, "{native} of {count} loops have native code");
    }
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
    let device = Device::new();
    let out = device.zeros::<u32>(160).expect("room");
    let launch = device.load(&module).expect("room").launch("k").block(160).engine(Engine::Native).arg(&out);
    launch.run().expect("it ends");
    assert_eq!(out.read().expect("an array"), (500_000..500_160).collect::<Vec<u32>>());
}
