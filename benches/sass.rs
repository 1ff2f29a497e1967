//! Words of HSETP2 a second on one core: `cargo bench -p ptxvm --bench sass`. benches/RESULTS.md has recorded runs.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use sass::{Arch, Instruction};

/// Random words with an opcode of HSETP2 and silent control information.
fn words(arch: Arch, opcode: (u128, u128)) -> Vec<u128> {
    let mut state = 1u128;
    let mut next = || {
        // Knuth's multiplier is good for the upper half.
        state = state.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state >> 64
    };
    let silent = |word: u128| {
        if arch.word_bits() == 64 { word >> 64 } else { word & !(0x3ffffff << 102) | 0xfe2 << 104 }
    };
    (0..4096).map(|_| silent(next() << 64 | next()) & !opcode.0 | opcode.1).collect()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (target, opcode) in [
        ("sm_53", (0x1fff << 51, 0b0101110100100 << 51)),
        ("sm_75", (0xfff | 1 << 91, 0xe34 | 1 << 91)),
        ("sm_90", (0xfff | 1 << 91, 0x234)),
    ] {
        let arch = Arch::parse(target).expect("a known target");
        let words = words(arch, opcode);
        let decoded: Vec<Instruction> =
            words.iter().filter_map(|&word| Instruction::decode(arch, word).ok()).collect();
        assert_eq!(decoded.len(), words.len(), "every word is legal");
        let mut group = criterion.benchmark_group(target);
        group.throughput(Throughput::Elements(words.len() as u64));
        group.bench_function("decode", |b| {
            b.iter(|| {
                words.iter().filter(|&&word| black_box(Instruction::decode(arch, word)).is_ok()).count()
            });
        });
        group.bench_function("encode", |b| {
            b.iter(|| decoded.iter().filter(|instruction| black_box(instruction.encode()).is_ok()).count());
        });
        group.bench_function("print", |b| {
            b.iter(|| decoded.iter().map(|i| i.to_string().len()).sum::<usize>());
        });
        let texts: Vec<String> = decoded.iter().map(|instruction| instruction.to_string()).collect();
        group.bench_function("parse", |b| {
            b.iter(|| texts.iter().filter(|text| sass::parse(arch, text).is_ok()).count());
        });
        group.finish();
    }
    criterion.final_summary();
}
