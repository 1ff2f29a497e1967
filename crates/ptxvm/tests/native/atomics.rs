//! Atomic operations and accesses by data in straight-line native code: counters, tables, and what only some threads do because of what
//! they have loaded.
//!
//! `PTXVM_LOOPS` and `PTXVM_LOOP` say how many random kernels run, and from which seed on.

use std::fmt::Write as _;

use fastrand::Rng;
use ptxvm::{Engine, HostPath, Module};

use super::coarse::{Outcome, assert_same, run, ways};
use super::seeds;

/// `k(in, out, c)`: `out` has counters that all threads share, and behind them an element for each thread.
struct Counters {
    text: String,
    grid: [u32; 2],
    block: [u32; 2],
    input: Vec<u32>,
}

/// The elements of `out` before those of the threads.
const SHARED: usize = 4096;

/// The arrays of a block in shared memory, of so many bytes each: sums, bits that are set, bits that are cleared, bits that change, sums of
/// f32, counts, elements that are stored, a table, and sums of 64 bits.
const ARRAY: u32 = 1024;

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 c) {\n\
    .reg .b16 %h; .reg .b32 %i, %t, %n, %c, %u, %v, %s, %e, %k, %r<4>; .reg .f32 %f<4>; .reg .pred %p<6>;\n\
    .reg .b64 %a, %b, %q, %in, %out, %w, %x;\n\
    .shared .align 8 .b8 tile[10240];\n\
    ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u32 %c, [c];\n\
    mov.u32 %t, %tid.x;\nmov.u32 %n, %tid.y;\nmov.u32 %u, %ntid.x;\nmad.lo.u32 %t, %n, %u, %t;\n\
    mov.u32 %n, %ntid.y;\nmul.lo.u32 %n, %n, %u;\nmov.u32 %i, %ctaid.x;\nmad.lo.u32 %i, %i, %n, %t;\n\
    mad.wide.u32 %a, %i, 4, %in;\nmad.wide.u32 %b, %i, 4, %out;\nadd.u64 %b, %b, 16384;\ncvt.u64.u32 %q, %i;\nadd.u64 %q, %q, %in;\n\
    mov.u32 %s, tile;\nmad.lo.u32 %e, %t, 4, %s;\n\
    st.shared.u32 [%e], 0;\nst.shared.u32 [%e+1024], 0;\nst.shared.u32 [%e+2048], -1;\nst.shared.u32 [%e+3072], %t;\n\
    st.shared.u32 [%e+4096], 0;\nst.shared.u32 [%e+5120], 0;\nst.shared.u32 [%e+6144], 7;\nmul.lo.u32 %u, %i, 40503;\nst.shared.u32 [%e+7168], %u;\n\
    mad.lo.u32 %u, %t, 4, %e;\nst.shared.v2.u32 [%u+8192], {%t, 0};\nbar.sync 0;\n";

impl Counters {
    fn random(seed: u64) -> Counters {
        let rng = &mut Rng::with_seed(seed);
        let blocks = [[32, 1], [64, 1], [128, 1], [256, 1], [256, 1], [32, 4], [16, 16]];
        let block: [u32; 2] = blocks[rng.usize(..blocks.len())];
        let threads = block[0] * block[1];
        let grid = [[1, 1], [9, 1], [40, 1], [130, 1]][rng.usize(..4)];
        let mut text = String::from(HEAD);
        for i in 0..4 {
            match rng.u8(..4) {
                0 => writeln!(text, "mov.u32 %r{i}, {};", rng.u32(..100)).unwrap(),
                1 => writeln!(text, "ld.global.u8 %r{i}, [%q+{i}];").unwrap(),
                _ => writeln!(text, "ld.global.u32 %r{i}, [%a+{}];", 4 * i).unwrap(),
            }
        }
        let loops = rng.u8(..4) == 0;
        if loops {
            text.push_str("mov.u32 %v, 0;\nLOOP:\n");
        }
        for part in 0..rng.u8(1..8) {
            Counters::part(rng, &mut text, part, threads.min(256));
        }
        if loops {
            text.push_str("add.u32 %v, %v, 1;\nsetp.lt.u32 %p5, %v, 2;\n@%p5 bra LOOP;\n");
        }
        text.push_str("bar.sync 0;\nmad.lo.u32 %e, %t, 4, %s;\n");
        for array in 0..7 {
            write!(text, "ld.shared.u32 %u, [%e+{}];\nmad.lo.u32 %r0, %r0, 31, %u;\n", array * ARRAY)
                .unwrap();
        }
        text.push_str("mad.lo.u32 %e, %t, 4, %e;\nld.shared.v2.u32 {%u, %k}, [%e+8192];\nxor.b32 %r1, %r1, %u;\nadd.u32 %r2, %r2, %k;\n");
        text.push_str("xor.b32 %r0, %r0, %r1;\nadd.u32 %r2, %r2, %r3;\nxor.b32 %r0, %r0, %r2;\nred.global.add.u32 [%b], %r0;\nret;\n}\n");
        let total = (grid[0] * threads) as usize;
        let input = (0..total + 64).map(|_| if rng.bool() { rng.u32(..) } else { rng.u32(..9) }).collect();
        Counters { text, grid, block, input }
    }

    /// An operation on memory, by all threads or by some. There are so many elements of each array.
    fn part(rng: &mut Rng, text: &mut String, part: u8, elements: u32) {
        let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
        let condition = match rng.u8(..9) {
            0 => format!("setp.lt.u32 %p0, %r{a}, %r{b};\n"),
            1 => format!("and.b32 %u, %r{a}, 3;\nsetp.eq.u32 %p0, %u, 0;\n"),
            2 => format!("setp.ne.s32 %p1, %r{b}, 3;\nsetp.gt.and.u32 %p0, %r{a}, 4, %p1;\n"),
            3 => "setp.gt.u32 %p0, %c, 100;\n".to_owned(),
            4 => "setp.lt.u32 %p0, %t, 7;\n".to_owned(),
            5 => "setp.lt.u32 %p0, %c, 100;\n".to_owned(),
            _ => String::new(),
        };
        text.push_str(&condition);
        let mut guard = "";
        let around = !condition.is_empty() && rng.bool();
        if around {
            writeln!(text, "@{}%p0 bra X{part};", ["", "!"][rng.usize(..2)]).unwrap();
        } else if !condition.is_empty() {
            guard = ["@%p0 ", "@!%p0 "][rng.usize(..2)];
        }
        for _ in 0..=rng.u8(..2) {
            Counters::operation(rng, text, elements, guard);
            if rng.bool() {
                writeln!(text, "{guard}mad.lo.u32 %r{d}, %r{a}, 5, %r{b};").unwrap();
            }
        }
        if around {
            writeln!(text, "X{part}:").unwrap();
        }
    }

    fn operation(rng: &mut Rng, text: &mut String, elements: u32, guard: &str) {
        let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
        // The number of an element, times 4.
        let bits = elements.trailing_zeros();
        text.push_str(&match rng.u8(..9) {
            0 if elements == 256 => format!("ld.global.u8 %h, [%q+{d}];\nmul.wide.u16 %e, %h, 4;\n"),
            1 => format!("shr.u32 %e, %r{a}, {};\nmul.lo.u32 %e, %e, 4;\n", 32 - bits),
            2 => format!("min.u32 %e, %r{a}, {};\nshl.b32 %e, %e, 2;\n", elements - 1),
            3 => format!("and.b32 %e, %r{a}, 15;\nsub.s32 %e, %e, 3;\nmad.lo.s32 %e, %e, 4, 12;\n"),
            4 => "mul.lo.u32 %e, %t, 4;\n".to_owned(),
            5 => "mov.u32 %e, 8;\n".to_owned(),
            6 => format!("and.b32 %e, %r{a}, {};\n", 4 * elements - 4),
            _ => format!("and.b32 %e, %r{a}, {};\nshl.b32 %e, %e, 2;\n", elements - 1),
        });
        let value = match rng.u8(..4) {
            0 => "1".to_owned(),
            1 => "%c".to_owned(),
            2 => "-2".to_owned(),
            _ => format!("%r{b}"),
        };
        let wide = "cvt.u64.u32 %w, %e;\nadd.s64 %w, %w, %out;\n";
        let own = "add.u32 %k, %e, %s;\n";
        let number = |rng: &mut Rng| match rng.u8(..6) {
            0 => "mov.f32 %f0, 0f7F800000;\n".to_owned(),
            1 => "mov.f32 %f0, 0fFF800000;\n".to_owned(),
            2 => "mov.f32 %f0, 0f00000123;\n".to_owned(),
            3 => "mov.f32 %f0, 0f3F800000;\n".to_owned(),
            _ => format!("and.b32 %u, %r{b}, 7;\ncvt.rn.f32.u32 %f0, %u;\n"),
        };
        let operation = match rng.u8(..19) {
            0..=2 => format!("{own}{guard}red.shared.add.u32 [%k], {value};\n"),
            3 => format!("{own}{guard}red.shared.or.b32 [%k+1024], {value};\n"),
            4 => format!("{own}{guard}red.shared.and.b32 [%k+2048], {value};\n"),
            5 => format!("{own}{guard}red.shared.xor.b32 [%k+3072], {value};\n"),
            6 => format!("{own}{}{guard}red.shared.add.f32 [%k+4096], %f0;\n", number(rng)),
            // What all threads get for one element is the same whatever their order.
            7 => format!(
                "{own}mov.u32 %u, 0;\n{guard}atom.shared.add.u32 %u, [%k+5120], 1;\nred.global.add.u32 [%out+16380], %u;\n"
            ),
            8 => format!("{own}mul.lo.u32 %u, %e, 3;\n{guard}st.shared.u32 [%k+6144], %u;\n"),
            9 => format!("{own}{guard}ld.shared.u32 %r{d}, [%k+7168];\n"),
            10 => format!("{own}ld.shared.u32 %r{d}, [%k+7168];\n"),
            11 => format!(
                "mad.lo.u32 %k, %e, 2, %s;\ncvt.u64.u32 %x, %r{b};\nshl.b64 %x, %x, 9;\n{guard}red.shared.add.u64 [%k+8192], %x;\n"
            ),
            12 => format!("{wide}{guard}red.global.add.u32 [%w], {value};\n"),
            13 => format!("{wide}{guard}red.global.or.b32 [%w+1024], {value};\n"),
            14 => format!("{wide}{}{guard}red.global.add.f32 [%w+2048], %f0;\n", number(rng)),
            15 => format!(
                "mad.wide.u32 %w, %e, 2, %out;\ncvt.u64.u32 %x, %r{b};\nneg.s64 %x, %x;\n{guard}red.global.add.u64 [%w+4096], %x;\n"
            ),
            16 => format!("{guard}red.global.add.u32 [%b], {value};\n"),
            17 => format!("{guard}atom.global.add.u32 %r{d}, [%b], {value};\n"),
            _ => {
                let load = ["u32", "u8", "s8", "u16", "s16"][rng.usize(..5)];
                format!("cvt.u64.u32 %w, %e;\nadd.s64 %w, %w, %in;\nld.global.{load} %r{d}, [%w];\n")
            }
        };
        text.push_str(&operation);
    }

    fn run(&self, module: &Module, engine: Engine, path: Option<HostPath>, threads: usize) -> Outcome {
        let total = (self.grid[0] * self.block[0] * self.block[1]) as usize;
        let memory = (&self.input[..], SHARED + total);
        run(module, (self.grid, self.block), memory, &[77], (engine, path, threads))
    }
}

#[test]
fn random_kernels_with_counters_are_those_of_the_reference_engine() {
    for seed in seeds(200) {
        let kernel = Counters::random(seed);
        let text = &kernel.text;
        let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let expected = kernel.run(&module, Engine::Reference, None, 1);
        assert!(expected.0.is_ok(), "{:?}\n{text}", expected.0);
        for (engine, path, threads) in ways() {
            let found = kernel.run(&module, engine, Some(path), threads);
            let name = format!("kernel {seed}, {engine:?}, {}, {threads} host threads", path.name());
            assert_same(&found, &expected, &name, text);
        }
    }
}
