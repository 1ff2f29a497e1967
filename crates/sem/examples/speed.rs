//! Times a few instructions, a call each, on a mix of operands.

use isa::Action;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    for (text, sources) in [
        ("add.u32", 2),
        ("shl.b32", 2),
        ("setp.lt.and.s32", 3),
        ("setp.lt.f32", 2),
        ("min.f32", 2),
        ("add.f32", 2),
        ("mul.f32", 2),
        ("fma.rn.f32", 3),
        ("fma.rn.f64", 3),
        ("fma.rn.f16x2", 3),
        ("div.rn.f32", 2),
        ("div.rn.f64", 2),
        ("sqrt.rn.f32", 1),
        ("cvt.rn.f16.f32", 1),
        ("cvt.rzi.s32.f32", 1),
        ("ex2.approx.f32", 1),
        ("lg2.approx.f32", 1),
        ("sin.approx.f32", 1),
        ("tanh.approx.f32", 1),
    ] {
        let mut words = text.split('.');
        let opcode = words.next().unwrap_or("");
        let modifiers: Vec<&str> = words.collect();
        let Ok(selected) = isa::select(opcode, &modifiers, sources + 1) else { continue };
        let Action::Pure(name) = selected.form().action else { continue };
        let Some(function) = sem::lookup(name) else { continue };
        let operands: Vec<[u64; 3]> = (0..1024u64)
            .map(|i| [1, 2, 3].map(|k| (i * k).wrapping_mul(0x9e37_79b9) & 0xffff_ffff | 0x3000_0000))
            .collect();
        let mut best = f64::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            for s in &operands {
                black_box(function(&selected.picks, &black_box(s)[..sources]));
            }
            best = best.min(start.elapsed().as_nanos() as f64 / operands.len() as f64);
        }
        println!("{text:20} {best:6.1} ns");
    }
}
