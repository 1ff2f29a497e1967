//! The executed lowering of every half setp equals the executed PTX; no input panics.

use half::f16;
use sass::{Arch, Executable, Field, Instruction, Operands, Source, Thread};

/// Two sources and a predicate.
struct Inputs {
    a: u32,
    b: u32,
    c: bool,
}

impl Thread for Inputs {
    fn register(&self, n: u8) -> u32 {
        if n == 0 { self.a } else { self.b }
    }

    fn uniform(&self, _: u8) -> u32 {
        self.b
    }

    fn predicate(&self, _: u8) -> bool {
        self.c
    }

    fn constant(&self, _: u16, _: u16) -> u32 {
        self.b
    }

    fn bound_constant(&self, _: u8, _: u16) -> u32 {
        self.b
    }
}

/// Random bits (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
}

/// Zeros, denormals, one, the ends of the range, infinities, NaNs, of FP16 and BF16.
const EDGES: [u16; 14] =
    [0, 1, 0x7f, 0x80, 0x3ff, 0x400, 0x3c00, 0x3f80, 0x7bff, 0x7c00, 0x7c01, 0x7f80, 0x7fc0, 0x7fff];

/// Operands for one form: every pair of edges with every sign, then random ones.
fn operands(random: &mut Random, count: usize) -> Vec<Inputs> {
    let mut all = Vec::new();
    for a in EDGES.iter().flat_map(|x| [*x, x | 0x8000]) {
        for b in EDGES.iter().flat_map(|x| [*x, x | 0x8000]) {
            let (a, b) = (u32::from(a), u32::from(b));
            all.push(Inputs { a: a | b << 16, b: b | a << 16, c: (a ^ b) & 1 != 0 });
        }
    }
    for _ in 0..count {
        let (x, y) = (random.next(), random.next());
        // Half of them near each other: otherwise equality is never seen.
        let b = if y & 2 != 0 { x as u32 ^ (y >> 62) as u32 } else { (x >> 32) as u32 };
        all.push(Inputs { a: x as u32, b, c: y & 1 != 0 });
    }
    all
}

#[test]
fn lowered_setp_computes_what_ptx_does() {
    // PTXVM_OPERANDS=75000 for the long run: 10^8 operands over all forms.
    let random_operands = std::env::var("PTXVM_OPERANDS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    const COMPARISONS: &str = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan";
    let mut random = Random(4);
    let mut forms = 0;
    for arch in ["sm_53", "sm_70", "sm_90", "sm_100"].map(|name| Arch::parse(name).unwrap()) {
        for (ty, ftz) in
            [("f16", ""), ("f16", "ftz"), ("f16x2", ""), ("f16x2", "ftz"), ("bf16", ""), ("bf16x2", "")]
        {
            if ty.starts_with('b') && arch.number() < 90 {
                continue;
            }
            for cmp in COMPARISONS.split(' ') {
                for (bop, not) in [("", false), ("and", false), ("or", true), ("xor", false), ("xor", true)] {
                    let modifiers: Vec<&str> =
                        [cmp, bop, ftz, ty].into_iter().filter(|m| !m.is_empty()).collect();
                    let count = if bop.is_empty() { 3 } else { 4 };
                    let selected = isa::select("setp", &modifiers, count).unwrap();
                    let q = ty.ends_with("x2").then_some(1);
                    let c = (!bop.is_empty()).then_some((2, not));
                    let sources = (Source::register(0), Source::register(1));
                    let operands_of = Operands { destinations: (0, q), sources, c };
                    let lowered = sass::lower(arch, &selected.picks, &operands_of).unwrap();
                    let (instruction, inverted) = (lowered.instruction, lowered.inverted);
                    instruction.encode().unwrap();
                    for inputs in operands(&mut random, random_operands) {
                        let ours = sass::execute(&instruction, &inputs).unwrap().unwrap();
                        let sources = [inputs.a.into(), inputs.b.into(), u64::from(inputs.c != not)];
                        let law = sem::half_compare::setp(&selected.picks, &sources);
                        let p = u64::from(ours.pu != inverted);
                        assert_eq!(p, law[0], "{instruction} {:x} {:x}", inputs.a, inputs.b);
                        if q.is_some() {
                            let (a, b) = (inputs.a, inputs.b);
                            assert_eq!(u64::from(ours.pv), law[1], "{instruction} {a:x} {b:x}");
                        }
                    }
                    forms += 1;
                }
            }
        }
    }
    assert_eq!(forms, (4 + 4 + 6 + 6) * 14 * 5);
}

#[test]
fn single_precision_is_cut_toward_zero() {
    let run = |arch: &str, value: u32, immediate: &str| {
        let text = format!("HSETP2.EQ.AND P0, PT, R0.F32, {immediate}, {immediate}, PT;");
        let instruction = sass::parse(Arch::parse(arch).unwrap(), &text).unwrap().instruction;
        sass::execute(&instruction, &Inputs { a: value, b: 0, c: false }).unwrap().unwrap().pu
    };
    // 1.99999988 stays below 2; the largest binary32 becomes the largest half, infinity stays.
    assert!(run("sm_70", 0x3fff_ffff, "1.9990234375"));
    assert!(run("sm_70", 0x7f7f_ffff, "65504") && run("sm_70", 0x7f80_0000, "+INF"));
    // 2^-24 is a denormal half: flushed on sm_53, kept on sm_60 and sm_70.
    assert!(run("sm_53", 0x3380_0000, "0") && !run("sm_60", 0x3380_0000, "0"));
    assert!(run("sm_70", 0x3380_0000, "5.9604644775390625e-08"));
}

#[test]
fn single_precision_becomes_the_next_half_toward_zero() {
    // PTXVM_SINGLES=all for all 2^32 values instead of one in 65,521.
    let all = std::env::var_os("PTXVM_SINGLES").is_some_and(|all| all == "all");
    let run = |arch: &str| {
        let text = "HSETP2.NEU.AND P0, P1, R0.H0_H0, R1.F32, PT;";
        Executable::new(&sass::parse(Arch::parse(arch).unwrap(), text).unwrap().instruction).unwrap()
    };
    let (flushing, keeping) = (run("sm_53"), run("sm_60"));
    // The magnitudes of the halves, as bits of binary32, are in the order of the halves.
    let halves: Vec<u32> = (0..=0x7c00).map(|bits| f16::from_bits(bits).to_f32().to_bits()).collect();
    let mut count = 0u64;
    for single in (0..=u32::MAX).step_by(if all { 1 } else { 65_521 }) {
        let magnitude = single & 0x7fff_ffff;
        let below = halves.partition_point(|half| *half <= magnitude) as u32 - 1;
        let half = if magnitude < 0x7f80_0000 { below.min(0x7bff) } else { below };
        let sign = single >> 16 & 0x8000;
        for (executable, flushes) in [(&flushing, true), (&keeping, false)] {
            let a = sign | if flushes && half < 0x400 { 0 } else { half };
            let outcome = executable.run(&Inputs { a, b: single, c: false }).unwrap();
            // Only a NaN differs from the half that it is held against.
            let nan = magnitude > 0x7f80_0000;
            assert_eq!((outcome.pu, outcome.pv), (nan, nan), "{single:#x}, flushed: {flushes}");
            count += 1;
        }
    }
    assert!(count >= 131_000, "{count}");
}

#[test]
fn horizontal_and_negates_before_the_operator() {
    let arch = Arch::parse("sm_53").unwrap();
    for (bop, c, expected) in [
        ("AND", true, (true, false)),
        ("AND", false, (false, false)),
        ("OR", true, (true, true)),
        ("XOR", true, (false, true)),
    ] {
        let text = format!("HSETP2.LT.H_AND.{bop} P0, P1, R0, R1, P2;");
        let instruction = sass::parse(arch, &text).unwrap().instruction;
        let outcome = sass::execute(&instruction, &Inputs { a: 0, b: 0x3c00_3c00, c }).unwrap().unwrap();
        assert_eq!((outcome.pu, outcome.pv), expected, "{bop} {c}");
    }
}

#[test]
fn mistakes_name_their_place_and_the_way_out() {
    let arch = Arch::parse("sm_53").unwrap();
    for (text, start, help) in [
        ("HSETP2.LTE P0, P1, R0, R1", 6, "did you mean .LE?"),
        ("HSETP2.LT P9, PT, R0, R1", 10, "predicates are P0 to P6 and PT"),
        ("HSETP2.LT.AND P0, PT, R0, c[0x2][0x3], PT", 26, "multiples of 4"),
        ("HSETP2.LT.AND P0, PT, R0, UR1, PT", 26, "use a register"),
        ("HSETP2.LT.AND P0, PT, R0, 1, PT", 29, "two numbers"),
    ] {
        let diagnostic = sass::parse(arch, text).expect_err(text);
        assert!(diagnostic.help.as_deref().unwrap_or("").contains(help), "{text}: {diagnostic:?}");
        assert_eq!(diagnostic.span.start, start, "{text}: {diagnostic:?}");
    }
    assert_eq!(sass::parse(arch, "HSETP2.LT P1, P1, R0, R1").unwrap().warnings.len(), 1);
}

#[test]
fn random_words_and_texts_do_not_panic() {
    // PTXVM_FUZZ=10000000 for the long run.
    let count = std::env::var("PTXVM_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000u64);
    let mut random = Random(7);
    let alphabet: Vec<&str> = "HSETP2 . .LT .H_AND .FTZ .AND P0 PT R1 RZ UR3 c cx [ ] , | - ! @ { } 1.5 +INF 0x4 &req= &rd ? ?PM1 ?trans4 ; // /* ä .F32 .reuse e".split(' ').collect();
    for n in 0..count {
        let arch = Arch::ALL[(n % 16) as usize];
        let mut word = u128::from(random.next()) << 64 | u128::from(random.next());
        word = if arch.word_bits() == 64 {
            word >> 64
        } else {
            word & !0xdff | [0x234, 0x434, 0x634][(n % 3) as usize]
        };
        if let Ok(instruction) = Instruction::decode(arch, word) {
            let text = instruction.text(sass::Style::Full);
            assert!(!text.is_empty() && instruction.get(Field::Pg) < 8);
            let _ = sass::execute(&instruction, &Inputs { a: word as u32, b: (word >> 32) as u32, c: false });
        }
        let mut text = if n % 2 == 0 { String::from("HSETP2.LT.AND P0, P1, ") } else { String::new() };
        for _ in 0..random.next() % 12 {
            text += alphabet[(random.next() % alphabet.len() as u64) as usize];
            text += if random.next() & 1 == 0 { "" } else { " " };
        }
        let _ = sass::parse(arch, &text);
    }
}
