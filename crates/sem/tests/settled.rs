//! Single values that documents leave open and ptxas 13.5 settles (by folding a constant, or by the code it emits), and
//! a few that nothing but the manual backs.

use isa::Action;

/// Calls an instruction: `call("mul.ftz.f32", &[a, b])`.
fn call(text: &str, sources: &[u64]) -> u64 {
    let mut words = text.split('.');
    let opcode = words.next().unwrap();
    let modifiers: Vec<&str> = words.collect();
    let selected =
        isa::select(opcode, &modifiers, sources.len() + 1).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let Action::Pure(name) = selected.form().action else { panic!("{text} is not pure") };
    sem::lookup(name).unwrap()(&selected.picks, sources)[0]
}

const INFINITY: u64 = 0x7f80_0000;
const ONE: u64 = 0x3f80_0000;
const MINUS: u64 = 0x8000_0000;

/// Folded: a result is rounded as if the exponent were unbounded, and flushed if it is then below the smallest normal.
#[test]
fn ftz_rounds_before_it_flushes() {
    let (below_one, smallest) = (0x3f7f_ffff, 0x0080_0000);
    // 2^-126 - 2^-150: rounded to a subnormal first it would be the smallest normal number.
    assert_eq!(call("mul.f32", &[below_one, smallest]), smallest);
    assert_eq!(call("mul.ftz.f32", &[below_one, smallest]), 0);
    assert_eq!(call("mul.ftz.f32", &[below_one | MINUS, smallest]), MINUS);
    assert_eq!(call("fma.rn.ftz.f32", &[below_one, smallest, 0]), 0);
    // 2^-126 - 2^-152 rounds up to it in 24 bits too.
    assert_eq!(call("cvt.rn.ftz.f32.f64", &[0x380f_ffff_ffff_ffff]), smallest);
    assert_eq!(call("cvt.rn.ftz.f32.f64", &[0x380f_ffff_e000_0000]), 0);
    // Inputs are flushed first.
    assert_eq!(call("add.ftz.f32", &[0x8000_0001, MINUS]), MINUS);
    assert_eq!(call("add.rp.ftz.f32", &[1, ONE]), ONE);
    assert_eq!(call("div.rn.ftz.f32", &[ONE, 1]), INFINITY);
    assert_eq!(call("sqrt.rn.ftz.f32", &[0x007f_ffff]), 0);
    assert_eq!(call("setp.eq.ftz.f32", &[1, 0x8000_0001]), 1);
    assert_eq!(call("setp.eq.f32", &[1, 0x8000_0001]), 0);
    // Halves are flushed by .ftz in half instructions, and not in cvt to or from .f32.
    assert_eq!(call("mul.ftz.f16", &[1, 0x7bff]), 0);
    assert_eq!(call("cvt.ftz.f32.f16", &[1]), 0x3380_0000);
    assert_eq!(call("cvt.rn.ftz.f16.f32", &[0x3380_0000]), 1);
}

/// Folded: `.sat` clamps to [+0, 1]; NaN and -0 become +0, a positive subnormal stays.
#[test]
fn saturation() {
    for (a, d) in
        [(MINUS, 0), (0x7fc0_0000, 0), (0xffc0_0000, 0), (1, 1), (0x4000_0000, ONE), (0xbf80_0000, 0)]
    {
        assert_eq!(call("cvt.sat.f32.f32", &[a]), d);
        assert_eq!(call("mul.sat.f32", &[a, ONE]), d);
        assert_eq!(call("fma.rn.sat.f32", &[a, ONE, MINUS]), d);
    }
    assert_eq!(call("add.sat.f32", &[INFINITY, MINUS | INFINITY]), 0);
    assert_eq!(call("add.sat.f16", &[0x3c00, 0x3c00]), 0x3c00);
    assert_eq!(call("fma.rn.relu.f16", &[0xbc00, 0x3c00, 0]), 0);
    assert_eq!(call("fma.rn.relu.bf16", &[0x7fc1, 0x3f80, 0]), 0x7fff);
}

/// On an H100: `.f32` and halves make one NaN. `.f64` keeps the payload of its last NaN operand and makes
/// 0xfff8000000000000.
#[test]
fn nans() {
    assert_eq!(call("add.f32", &[INFINITY, MINUS | INFINITY]), 0x7fff_ffff);
    assert_eq!(call("fma.rn.f32", &[0, INFINITY, ONE]), 0x7fff_ffff);
    assert_eq!(call("add.f32", &[0xff81_2345, ONE]), 0x7fff_ffff);
    assert_eq!(call("sqrt.rn.f32", &[MINUS | ONE]), 0x7fff_ffff);
    assert_eq!(call("mul.f16", &[0xfe01, 0x3c00]), 0x7fff);
    assert_eq!(call("add.bf16", &[0x7f80, 0xff80]), 0x7fff);
    assert_eq!(call("add.f64", &[0x7ff0 << 48, 0xfff0 << 48]), 0xfff8 << 48);
    assert_eq!(call("sub.f64", &[0x3ff0 << 48, 0x7ff0_0000_0000_0123]), 0x7ff8_0000_0000_0123);
    assert_eq!(call("fma.rn.f64", &[0, 0x7ff0 << 48, 0xfff8_0000_0000_0456]), 0xfff8_0000_0000_0456);
    // So do sign operations, which are additions there.
    assert_eq!(call("neg.f32", &[0x7f81_2345]), 0x7fff_ffff);
    assert_eq!(call("abs.f32", &[0xffc1_2345]), 0x7fff_ffff);
    assert_eq!(call("neg.f64", &[0x7ff0_0000_0000_0001]), 0x7ff8_0000_0000_0001);
    assert_eq!(call("abs.f16", &[0xfe01]), 0x7fff);
    assert_eq!(call("neg.f16x2", &[0xfe01_4000]), 0x7fff_c000);
    // Folded: slct and selp pass all bits.
    assert_eq!(call("slct.f32.f32", &[0x7f81_2345, 1, MINUS]), 0x7f81_2345);
    assert_eq!(call("slct.f32.f32", &[0, 0x7f81_2345, 0xffc0_0000]), 0x7f81_2345);
}

/// The manual's text, and an H100 (ptxas folds no NaN here): 0 if neither the source is .f64 nor the destination has 64 bits.
#[test]
fn nan_to_integer() {
    let (single, double, half) = (0x7fc0_0000, 0x7ff8 << 48, 0x7e00);
    for ty in ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"] {
        let width = ty[1..].parse::<u32>().unwrap();
        let mask = u64::MAX >> (64 - width);
        let most = 1u64 << (width - 1);
        let few = if width == 64 { most } else { 0 };
        assert_eq!(call(&format!("cvt.rzi.{ty}.f32"), &[single]) & mask, few, "{ty}");
        assert_eq!(call(&format!("cvt.rzi.{ty}.f16"), &[half]) & mask, few, "{ty}");
        assert_eq!(call(&format!("cvt.rzi.{ty}.f64"), &[double]) & mask, most, "{ty}");
    }
}

/// Folded: what a destination register wider than the type gets.
#[test]
fn cvt_extends_to_wider_registers() {
    assert_eq!(call("cvt.s8.s32", &[200]), 200u8 as i8 as u64);
    assert_eq!(call("cvt.u8.s32", &[0xffff_ffff]), 0xff);
    assert_eq!(call("cvt.s32.s64", &[0x8000_0000]), 0xffff_ffff_8000_0000);
    assert_eq!(call("cvt.u32.s64", &[u64::MAX]), 0xffff_ffff);
    assert_eq!(call("cvt.rzi.s8.f32", &[0xc0a0_0000]), -5i8 as u64);
    // And a source register wider than its type: the low bits count.
    assert_eq!(call("cvt.u32.u8", &[0x1234]), 0x34);
    assert_eq!(call("cvt.s32.s8", &[0x1ff]) as u32, u32::MAX);
}

/// Folded: div.approx gives zero for 2^126 < |b| < 2^128, div.full does not.
#[test]
fn approximate_division() {
    for b in [0x7e80_0001, 0x7f00_0000, 0x7f7f_ffff] {
        assert_eq!(call("div.approx.f32", &[ONE, b]), 0);
        assert_eq!(call("div.approx.f32", &[ONE, b | MINUS]), MINUS);
        assert_eq!(call("div.approx.f32", &[INFINITY, b]), 0x7fff_ffff);
        assert_ne!(call("div.full.f32", &[ONE, b]), 0);
    }
    assert_eq!(call("div.approx.f32", &[ONE, 0x7e80_0000]), 0x0080_0000);
    assert_eq!(call("div.approx.f32", &[ONE, 0x4040_0000]), 0x3eaa_aaab);
    assert_eq!(call("div.approx.f32", &[1, 1]), ONE);
}

/// The gross `.f64` approximations read and write the upper word only; subnormals are zero.
#[test]
fn gross_double_approximations() {
    // The .ftz of a rounded one changes nothing.
    assert_eq!(call("rcp.rn.ftz.f64", &[0x0008 << 48]), 0x7fe0 << 48);
    assert_eq!(call("rcp.rn.ftz.f64", &[0x7fe0 << 48]), 0x0008 << 48);
    assert_eq!(call("rcp.approx.ftz.f64", &[0x4008_0000_0000_0000]), 0x3fd5_5555 << 32);
    assert_eq!(call("rcp.approx.ftz.f64", &[0x3ff0_0000_ffff_ffff]), 0x3ff0 << 48);
    assert_eq!(call("rcp.approx.ftz.f64", &[0x000f_ffff_ffff_ffff]), 0x7ff0 << 48);
    assert_eq!(call("rcp.approx.ftz.f64", &[0xffe0 << 48]), 1 << 63);
    assert_eq!(call("rsqrt.approx.ftz.f64", &[0x4010 << 48]), 0x3fe0 << 48);
}

/// Folded or in the code emitted: all ones, for quotient and remainder, in every width.
#[test]
fn division_by_zero() {
    for (ty, ones) in [
        ("s16", 0xffff),
        ("u16", 0xffff),
        ("s32", 0xffff_ffff),
        ("u32", 0xffff_ffff),
        ("s64", u64::MAX),
        ("u64", u64::MAX),
    ] {
        for op in ["div", "rem"] {
            for a in [0, 7, ones] {
                assert_eq!(call(&format!("{op}.{ty}"), &[a, 0]), ones, "{op}.{ty} {a}");
            }
        }
    }
    assert_eq!(call("div.s32", &[MINUS, 0xffff_ffff]), MINUS);
    assert_eq!(call("rem.s32", &[MINUS, 0xffff_ffff]), 0);
}

/// The manual's text: xorsign, and -0 below +0.
#[test]
fn minima_and_maxima() {
    assert_eq!(call("min.f32", &[0, MINUS]), MINUS);
    assert_eq!(call("max.f32", &[MINUS, 0]), 0);
    assert_eq!(call("min.xorsign.abs.f32", &[0xc000_0000, 0x4040_0000]), 0xc000_0000);
    assert_eq!(call("max.xorsign.abs.f32", &[0xc000_0000, 0xc040_0000]), 0x4040_0000);
    assert_eq!(call("min.NaN.f32", &[0xffc0_0001, ONE]), 0x7fff_ffff);
    assert_eq!(call("max.ftz.f32", &[1, 0x7fc0_0000]), 0);
    assert_eq!(call("max.f32", &[ONE, 0x4040_0000, 0x4000_0000]), 0x4040_0000);
    assert_eq!(call("min.NaN.abs.f32", &[0xbf80_0000, 0x4040_0000, 0xc000_0000]), ONE);
    assert_eq!(call("fma.rn.oob.f16", &[0xfff7, 0x3c00, 0x3c00]), 0);
}

/// Folded: `BoolOp` of a predicate, and zeros that `slct` takes for not negative.
#[test]
fn predicates_and_zeros() {
    assert_eq!(call("setp.eq.and.s32", &[1, 1, 0]), 0);
    assert_eq!(call("setp.eq.or.s32", &[1, 2, 1]), 1);
    assert_eq!(call("setp.eq.xor.s32", &[1, 1, 1]), 0);
    assert_eq!(call("slct.b32.s32", &[5, 6, 0]), 5);
    assert_eq!(call("slct.b32.f32", &[5, 6, MINUS]), 5);
    assert_eq!(call("slct.b32.f32", &[5, 6, MINUS | 1]), 6);
    assert_eq!(call("slct.ftz.b32.f32", &[5, 6, MINUS | 1]), 5);
}
