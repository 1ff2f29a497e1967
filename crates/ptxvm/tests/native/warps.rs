//! Loops in which the lanes of a warp compute together: products of matrices, and shuffles.

use std::fmt::Write as _;

use fastrand::Rng;
use jit::{Form, Host};
use ptxvm::{Device, Engine, Module};

use crate::native_paths;

const THREADS: usize = 96;
const STEPS: usize = 3;

/// A product by its modifiers, and its registers of A, B and C. What its numbers are.
struct Product {
    modifiers: &'static str,
    registers: [usize; 3],
    numbers: Numbers,
}

#[derive(Clone, Copy)]
enum Numbers {
    F16,
    Bf16,
    F32,
    Bytes,
}

impl Numbers {
    /// Words of these numbers. `odd`: some are infinite, no numbers, subnormal or large.
    fn word(self, rng: &mut Rng, odd: bool) -> u32 {
        let odd = odd && rng.u8(..64) == 0;
        let mut short = |specials: [u16; 8], one: u16| match odd {
            true => specials[rng.usize(..8)],
            // Near one.
            false => (one - 0x100 + rng.u16(..0x200)) | rng.u16(..2) << 15,
        };
        match self {
            Numbers::F16 => {
                let specials = [0, 0x8000, 1, 0x83ff, 0x7bff, 0x7c00, 0xfc00, 0x7d01];
                u32::from(short(specials, 0x3c00)) | u32::from(short(specials, 0x3c00)) << 16
            }
            Numbers::Bf16 => {
                let specials = [0, 0x8000, 1, 0x807f, 0x7f7f, 0x7f80, 0xff80, 0xff81];
                u32::from(short(specials, 0x3f80)) | u32::from(short(specials, 0x3f80)) << 16
            }
            Numbers::F32 if odd => [0x8000_0000, 1, 0x7f80_0000, 0x7f80_0001, 0x7f7f_ffff][rng.usize(..5)],
            Numbers::F32 => (rng.f32() - 0.5).to_bits(),
            Numbers::Bytes => rng.u32(..),
        }
    }
}

const PRODUCTS: [Product; 10] = [
    Product { modifiers: "m16n8k16.row.col.f32.f16.f16.f32", registers: [4, 2, 4], numbers: Numbers::F16 },
    Product { modifiers: "m16n8k16.row.col.f32.bf16.bf16.f32", registers: [4, 2, 4], numbers: Numbers::Bf16 },
    Product { modifiers: "m16n8k8.row.col.f32.f16.f16.f32", registers: [2, 1, 4], numbers: Numbers::F16 },
    Product { modifiers: "m16n8k8.row.col.f32.bf16.bf16.f32", registers: [2, 1, 4], numbers: Numbers::Bf16 },
    Product { modifiers: "m16n8k16.row.col.f16.f16.f16.f16", registers: [4, 2, 2], numbers: Numbers::F16 },
    Product { modifiers: "m16n8k8.row.col.f32.tf32.tf32.f32", registers: [4, 2, 4], numbers: Numbers::F32 },
    Product { modifiers: "m16n8k32.row.col.s32.s8.u8.s32", registers: [4, 2, 4], numbers: Numbers::Bytes },
    Product {
        modifiers: "m8n8k16.row.col.satfinite.s32.u8.u8.s32",
        registers: [1, 1, 2],
        numbers: Numbers::Bytes,
    },
    Product { modifiers: "m16n8k64.row.col.s32.s4.s4.s32", registers: [4, 2, 4], numbers: Numbers::Bytes },
    Product {
        modifiers: "m16n8k32.row.col.f32.e4m3.e5m2.f32",
        registers: [4, 2, 4],
        numbers: Numbers::Bytes,
    },
];

/// A kernel with a loop. `inside`: what each of its rounds does with the registers `%a0` and so on, which it loads as words of
/// all threads one behind the other; `%c0` and so on stay.
fn kernel(count: [usize; 3], inside: &str) -> String {
    let registers = |name: &str, count| (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>();
    let names: Vec<String> =
        [("a", count[0]), ("b", count[1])].iter().flat_map(|&(n, c)| registers(n, c)).collect();
    let mut text = String::from(
        ".version 8.4\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n\
         .reg .b32 %a<4>, %b<4>, %c<8>, %d<8>, %i, %t, %lane, %x; .reg .pred %p<4>; .reg .b64 %in, %out;\n\
         ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nand.b32 %lane, %t, 31;\n\
         mad.wide.u32 %in, %t, 4, %in;\nmad.wide.u32 %out, %t, 4, %out;\nmov.u32 %x, 0;\nmov.u32 %i, 0;\n",
    );
    let mut line = |line: String| writeln!(text, "{line};").expect("a string has room");
    for i in 0..count[2] {
        line(format!("ld.global.b32 %c{i}, [%in+{}]", 4 * THREADS * i));
    }
    line(format!("add.u64 %in, %in, {}", 4 * THREADS * count[2]));
    line("L:\nadd.u32 %i, %i, 1".to_owned());
    for (i, name) in names.iter().enumerate() {
        line(format!("ld.global.b32 {name}, [%in+{}]", 4 * THREADS * i));
    }
    line(format!("add.u64 %in, %in, {}", 4 * THREADS * names.len()));
    text += inside;
    write!(text, "setp.lt.u32 %p0, %i, {STEPS};\n@%p0 bra L;\n").expect("a string has room");
    for i in 0..count[2] {
        writeln!(text, "st.global.b32 [%out+{}], %c{i};", 4 * THREADS * i).expect("a string has room");
    }
    text + "st.global.b32 [%out], %x;\nret;\n}\n"
        .replace("[%out]", &format!("[%out+{}]", 4 * THREADS * count[2]))
        .as_str()
}

/// Runs a kernel on all engines.
fn compare(text: &str, input: &[u32], words: usize, threads: usize) {
    let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let has_code = |host| {
        let mut functions = module.program().functions.iter().flatten();
        let compiles = |plan: &jit::Loop| plan.compile(host, |_| Some(Form { step: 4, span: 64 })).is_some();
        functions.any(|function| jit::loops(function, host, |_, _| true).iter().any(compiles))
    };
    assert!(cfg!(not(all(target_arch = "x86_64", unix))) || Host::ALL.into_iter().all(has_code), "{text}");
    let run = |engine, path| {
        let device = Device::new();
        let (input, output) = (device.array(input).unwrap(), device.zeros::<u32>(words * THREADS).unwrap());
        let launch = device.load(&module).unwrap().launch("k").block(threads as u32).engine(engine);
        let launch = launch.configure(|config| config.host_path = path);
        let report = launch.arg(&input).arg(&output).run().unwrap_or_else(|error| panic!("{error}\n{text}"));
        (output.read().unwrap(), report.thread_instructions)
    };
    let expected = run(Engine::Reference, None);
    for path in native_paths() {
        let found = run(Engine::Native, Some(path));
        for (index, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
            let place = format!("{}, word {}, thread {}", path.name(), index / THREADS, index % THREADS);
            assert_eq!(format!("{found:#x}"), format!("{expected:#x}"), "{place}\n{text}");
        }
        assert_eq!(found.1, expected.1, "instructions, {}\n{text}", path.name());
    }
}

/// What some lanes do before the warp computes together.
const PARTS: &str = "setp.le.u32 %p1, %lane, %i;\n@%p1 bra M;\nadd.u32 %x, %x, %a0;\nM:\n";

#[test]
fn products_in_loops_are_those_of_the_reference_engine() {
    let mut rng = Rng::with_seed(1);
    for Product { modifiers, registers: count, numbers } in PRODUCTS {
        let list = |name: &str, count: usize| {
            let all: Vec<_> = (0..count).map(|i| format!("%{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let [a, b, c] = [list("a", count[0]), list("b", count[1]), list("c", count[2])];
        let multiply =
            |d: &str, a: &str, c: &str| format!("mma.sync.aligned.{modifiers} {d}, {a}, {b}, {c};\n");
        // The sums in other registers, and in another order; the sum of a sum; and registers of several matrices.
        let copies: String =
            (0..count[2]).map(|i| format!("mov.b32 %c{i}, %d{};\n", count[2] - 1 - i)).collect();
        let d = list("d", count[2]);
        let twice = multiply(&d, &a, &c) + &multiply(&c, &a, &d);
        let with_a = format!(
            "mov.b32 %a0, %c0;\n{}",
            multiply(&c.replace("%c0", "%a0"), &a, &c) + "mov.b32 %c0, %a0;\n"
        );
        let last_of_a = format!("%a{}", count[0] - 1);
        for inside in [
            multiply(&c, &a, &c),
            format!("{PARTS}{}", multiply(&c, &a, &c)),
            multiply(&d, &a, &c) + &copies,
            twice,
            with_a,
            multiply(&c, &a.replace(&last_of_a, "%c0"), &c),
            multiply(&c, &a, &c).replace("%b0", "%a0"),
            multiply(&d, &a, &c).replace("%b0", "%c0") + &copies,
        ] {
            let text = kernel(count, &inside);
            for odd in [false, true] {
                let sums = count[2] * THREADS;
                let of_halves = modifiers.ends_with("f16");
                let start = |rng: &mut Rng| match numbers {
                    Numbers::F16 if of_halves => numbers.word(rng, odd),
                    Numbers::Bytes if modifiers.contains(".s32.") => rng.u32(..),
                    _ => Numbers::F32.word(rng, odd),
                };
                let mut input: Vec<u32> = (0..sums).map(|_| start(&mut rng)).collect();
                let factors = STEPS * (count[0] + count[1]) * THREADS;
                input.extend((0..factors).map(|_| numbers.word(&mut rng, odd)));
                compare(&text, &input, count[2] + 1, THREADS);
            }
        }
    }
}

#[test]
fn shuffles_in_loops_are_those_of_the_reference_engine() {
    let input: Vec<u32> = (0..THREADS * (4 + STEPS)).map(|i| (i as u32).wrapping_mul(0x9e37_79b9)).collect();
    for shuffle in [
        "bfly.b32 %d0, %c0, 5, 31",
        "up.b32 %d0|%p2, %a0, 3, 0",
        "down.b32 %d0|%p2, %c1, 16, 6175",
        "idx.b32 %d0, %a0, 9, 6175",
        "bfly.b32 %c0, %c0, 1, 31",
    ] {
        for before in ["", PARTS] {
            let predicate = if shuffle.contains("%p2") { "selp.b32 %c2, %d0, %c2, %p2;\n" } else { "" };
            let add = "xor.b32 %c0, %c0, %d0;\nadd.u32 %c1, %c1, %c0;\n";
            let inside = format!("mov.b32 %d0, %c3;\n{before}shfl.sync.{shuffle}, -1;\n{predicate}{add}");
            let text = kernel([1, 0, 4], &inside);
            compare(&text, &input, 5, THREADS);
        }
    }
}

/// The last warp lacks lanes: no product is possible there, and a shuffle is among those that are there.
#[test]
fn a_warp_without_all_lanes_leaves_native_code() {
    let input: Vec<u32> = (0..THREADS * (4 + STEPS)).map(|i| i as u32 * 77).collect();
    let inside = "shfl.sync.bfly.b32 %d0, %c0, 1, 31, -1;\nadd.u32 %c0, %c0, %d0;\nadd.u32 %c1, %c1, %a0;\n";
    for threads in [70, 33, 32, 16] {
        compare(&kernel([1, 0, 4], inside), &input, 5, threads);
    }
}
