//! Instructions through the table, against native integer arithmetic, the manual's loops written out, and each other.

mod common;

use common::{Random, edges, random_count};
use isa::{Action, Picks};
use rustc_apfloat::{Float, FloatConvert, Round, ieee};
use sem::format::{BF16, F16, F32};

/// The picks and the function of an instruction: `instruction("add.cc.u32", 2)`.
fn instruction(text: &str, sources: usize) -> impl Fn(&[u64]) -> [u64; 2] + use<> {
    let mut words = text.split('.');
    let opcode = words.next().unwrap();
    let modifiers: Vec<&str> = words.collect();
    let selected = isa::select(opcode, &modifiers, sources + 1).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let Action::Pure(name) = selected.form().action else { panic!("{text} is not pure") };
    let function = sem::lookup(name).unwrap();
    let picks: Picks = selected.picks;
    move |s| function(&picks, s)
}

fn call<const N: usize>(text: &str, sources: [u64; N]) -> u64 {
    instruction(text, N)(&sources)[0]
}

/// Edges and random numbers of an integer width.
fn integers(width: u32, seed: u64) -> Vec<u64> {
    let mask = u64::MAX >> (64 - width);
    let mut random = Random(seed);
    let half = 1u64 << (width - 1);
    let mut numbers =
        vec![0, 1, 2, 3, half - 1, half, half + 1, mask, mask - 1, width as u64, width as u64 - 1];
    numbers.extend((0..120).map(|_| random.next() & mask >> (random.next() % width as u64)));
    numbers
}

macro_rules! against_native {
    ($signed:ident $unsigned:ident $stype:literal $utype:literal) => {
        let width = $unsigned::BITS;
        let types = [concat!("s", $stype), concat!("u", $utype)];
        let [s, u] = types;
        let form = |op: &str, ty: &str, n: usize| instruction(&format!("{op}.{ty}"), n);
        let two = ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"];
        let signed = two.map(|op| form(op, s, 2));
        let unsigned = two.map(|op| form(op, u, 2));
        let three = ["mad.lo", "mad.hi", "sad"];
        let (signed3, unsigned3) = (three.map(|op| form(op, s, 3)), three.map(|op| form(op, u, 3)));
        let (abs, neg) = (form("abs", s, 1), form("neg", s, 1));
        let (shl, shr_s, shr_u) =
            (form("shl", &format!("b{width}"), 2), form("shr", s, 2), form("shr", u, 2));
        for &a in &integers(width, 1) {
            for &b in &integers(width, 2) {
                let (x, y) = (a as $signed, b as $signed);
                let high = ((x as i128 * y as i128) >> width) as $signed;
                let expected = [
                    x.wrapping_add(y),
                    x.wrapping_sub(y),
                    x.wrapping_mul(y),
                    high,
                    if y == 0 { -1 } else { x.wrapping_div(y) },
                    if y == 0 { -1 } else { x.wrapping_rem(y) },
                    x.min(y),
                    x.max(y),
                ];
                let actual = std::array::from_fn(|i| signed[i](&[a, b])[0]);
                assert_eq!(actual, expected.map(|v| v as $unsigned as u64), "{s} {a:#x} {b:#x}");
                let c = a.rotate_left(7) & $unsigned::MAX as u64;
                let z = c as $signed;
                let sad = z.wrapping_add(x.abs_diff(y) as $signed);
                let expected = [x.wrapping_mul(y).wrapping_add(z), high.wrapping_add(z), sad];
                let actual = std::array::from_fn(|i| signed3[i](&[a, b, c])[0]);
                assert_eq!(actual, expected.map(|v| v as $unsigned as u64), "{s} {a:#x} {b:#x} {c:#x}");
                assert_eq!(abs(&[a])[0], x.wrapping_abs() as $unsigned as u64);
                assert_eq!(neg(&[a])[0], x.wrapping_neg() as $unsigned as u64);
                let amount = b as u32;
                let fill = if x < 0 { $unsigned::MAX } else { 0 };
                let shifted = x.checked_shr(amount).map_or(fill, |v| v as $unsigned);
                assert_eq!(shr_s(&[a, amount as u64])[0], shifted as u64, "{a:#x} {amount}");

                let (x, y) = (a as $unsigned, b as $unsigned);
                let high = ((x as u128 * y as u128) >> width) as $unsigned;
                let expected = [
                    x.wrapping_add(y),
                    x.wrapping_sub(y),
                    x.wrapping_mul(y),
                    high,
                    x.checked_div(y).unwrap_or($unsigned::MAX),
                    x.checked_rem(y).unwrap_or($unsigned::MAX),
                    x.min(y),
                    x.max(y),
                ];
                let actual = std::array::from_fn(|i| unsigned[i](&[a, b])[0]);
                assert_eq!(actual, expected.map(|v| v as u64), "{u} {a:#x} {b:#x}");
                let z = c as $unsigned;
                let expected =
                    [x.wrapping_mul(y).wrapping_add(z), high.wrapping_add(z), z.wrapping_add(x.abs_diff(y))];
                let actual = std::array::from_fn(|i| unsigned3[i](&[a, b, c])[0]);
                assert_eq!(actual, expected.map(|v| v as u64), "{u} {a:#x} {b:#x} {c:#x}");
                assert_eq!(shl(&[a, amount as u64])[0], x.checked_shl(amount).unwrap_or(0) as u64);
                assert_eq!(shr_u(&[a, amount as u64])[0], x.checked_shr(amount).unwrap_or(0) as u64);
            }
        }
    };
}

#[test]
fn integer_arithmetic_is_native() {
    against_native!(i16 u16 "16" "16");
    against_native!(i32 u32 "32" "32");
    against_native!(i64 u64 "64" "64");
}

#[test]
fn extended_precision_carries() {
    let mut random = Random(5);
    let (add, addc) = (instruction("add.cc.u64", 2), instruction("addc.cc.u64", 2));
    let (sub, subc) = (instruction("sub.cc.u64", 2), instruction("subc.cc.u64", 2));
    let (mad_lo, madc_hi) = (instruction("mad.lo.cc.u64", 3), instruction("madc.hi.u64", 3));
    for i in 0..20_000 {
        let mut number = || {
            (random.next() as u128) << 64 | if i % 3 == 0 { u64::MAX as u128 } else { random.next() as u128 }
        };
        let (a, b) = (number(), number());
        let [low, carry] = add(&[a as u64, b as u64]);
        let [high, out] = addc(&[(a >> 64) as u64, (b >> 64) as u64, carry]);
        assert_eq!(((high as u128) << 64 | low as u128, out != 0), a.overflowing_add(b));
        let [low, carry] = sub(&[a as u64, b as u64]);
        let [high, out] = subc(&[(a >> 64) as u64, (b >> 64) as u64, carry]);
        assert_eq!(((high as u128) << 64 | low as u128, out == 0), a.overflowing_sub(b));
        // {c1, c0} += a0 * b0
        let (x, y, c) = (a as u64, b as u64, b.rotate_left(40));
        let [low, carry] = mad_lo(&[x, y, c as u64]);
        let [high, _] = madc_hi(&[x, y, (c >> 64) as u64, carry]);
        assert_eq!((high as u128) << 64 | low as u128, (x as u128 * y as u128).wrapping_add(c));
    }
    // A sum without .cc has no carry to give.
    assert_eq!(instruction("add.u32", 2)(&[u32::MAX as u64, 1]), [0, 0]);
    assert_eq!(instruction("add.cc.u32", 2)(&[u32::MAX as u64, 1]), [0, 1]);
}

/// bfe and bfi as the manual's loops have them, bit by bit.
#[test]
fn bit_fields_are_the_manuals_loops() {
    for (ty, msb, signed) in [("u32", 31, false), ("s32", 31, true), ("u64", 63, false), ("s64", 63, true)] {
        let extract = instruction(&format!("bfe.{ty}"), 3);
        let insert = instruction(&format!("bfi.b{}", msb + 1), 4);
        for &a in &integers(msb + 1, 11) {
            for (b, c) in (0..80).flat_map(|b| (0..80).step_by(3).map(move |c| (b, c))).chain([
                (255, 255),
                (256, 1),
                (1, 257),
                (u32::MAX as u64, 8),
                (8, u32::MAX as u64),
            ]) {
                // Of 64-bit fields more bits count than the manual says.
                let counted = if msb == 63 { u32::MAX as u64 } else { 0xff };
                let (position, length) = (b & counted, c & counted);
                let bit = |x: u64, i: u64| x >> i & 1;
                let sign = match signed && length > 0 {
                    true => bit(a, (position + length - 1).min(msb as u64)),
                    false => 0,
                };
                let field = (0..=msb as u64).fold(0, |d, i| {
                    let inside = i < length && position + i <= msb as u64;
                    d | (if inside { bit(a, position + i) } else { sign }) << i
                });
                assert_eq!(extract(&[a, b, c])[0], field, "bfe.{ty} {a:#x} {b} {c}");
                let base = a.rotate_left(13) & (u64::MAX >> (63 - msb));
                let mut inserted = base;
                for i in 0..length.min(64) {
                    if position + i <= msb as u64 {
                        inserted = inserted & !(1 << (position + i)) | bit(a, i) << (position + i);
                    }
                }
                assert_eq!(insert(&[a, base, b, c])[0], inserted, "bfi {a:#x} {base:#x} {b} {c}");
            }
        }
    }
}

/// szext and bmsk as the manual's text has them.
#[test]
fn extensions_and_masks() {
    for &a in &integers(32, 12) {
        for b in (0..70).chain([255, 0x8000_0000, 0xffff_ffff]) {
            for (mode, ty) in [("clamp", "s32"), ("clamp", "u32"), ("wrap", "s32"), ("wrap", "u32")] {
                let too_large = b >= 32 && mode == "clamp";
                let b1 = b as u32 & 31;
                let mask = if too_large { 0 } else { u32::MAX << b1 };
                let sign = b1 != 0 && !too_large && ty == "s32" && a >> (b1.wrapping_sub(1) & 31) & 1 != 0;
                let expected = a as u32 & !mask | if sign { mask } else { 0 };
                assert_eq!(
                    call(&format!("szext.{mode}.{ty}"), [a, b]),
                    expected as u64,
                    "{mode} {ty} {a:#x} {b}"
                );
            }
            for a in [0, 1, 5, 28, 31, 32, 40, 0xffff_ffff] {
                for mode in ["clamp", "wrap"] {
                    let (a1, b1) = (a as u32 & 31, b as u32 & 31);
                    let position_overflow = mode == "clamp" && a >= 32;
                    let overflow = a1 + b1 >= 32 || position_overflow || mode == "clamp" && b >= 32;
                    let mask0 = if position_overflow { 0 } else { u32::MAX << a1 };
                    let mask1 = match () {
                        () if overflow => 0,
                        () if b1 == 0 => u32::MAX,
                        () => u32::MAX << (a1 + b1),
                    };
                    assert_eq!(
                        call(&format!("bmsk.{mode}.b32"), [a, b]),
                        (mask0 & !mask1) as u64,
                        "{mode} {a} {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn lop3_computes_every_truth_table() {
    let (a, b, c) = (0xf0f0_f0f0u32, 0xcccc_1234u32, 0xaaaa_5678u32);
    let lop3 = instruction("lop3.b32", 4);
    for table in 0..256u64 {
        let mut expected = 0;
        for i in 0..32 {
            let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
            expected |= ((table >> row) as u32 & 1) << i;
        }
        assert_eq!(lop3(&[a as u64, b as u64, c as u64, table])[0], expected as u64, "{table:#x}");
    }
    assert_eq!(instruction("lop3.or.b32", 5)(&[0, 0, 0, 0x80, 1]), [0, 1]);
    assert_eq!(instruction("lop3.and.b32", 5)(&[1, 1, 1, 0x80, 1]), [1, 1]);
}

#[test]
fn prmt_picks_bytes() {
    let prmt = |mode: &str, c: u64| call(&format!("prmt.b32{mode}"), [0x3322_11f0, 0x7766_5544, c]);
    assert_eq!(prmt("", 0x7531), 0x7755_3311);
    assert_eq!(prmt("", 0x8f80), 0xff00_fff0);
    // The rows of the manual's table for c = 0, 1, 2, 3.
    for (mode, rows) in [
        (".f4e", [0x3322_11f0, 0x4433_2211, 0x5544_3322, 0x6655_4433]),
        (".b4e", [0x5566_77f0, 0x6677_f011, 0x77f0_1122, 0xf011_2233]),
        (".rc8", [0xf0f0_f0f0, 0x1111_1111, 0x2222_2222, 0x3333_3333]),
        (".ecl", [0x3322_11f0, 0x3322_1111, 0x3322_2222, 0x3333_3333]),
        (".ecr", [0xf0f0_f0f0, 0x1111_11f0, 0x2222_11f0, 0x3322_11f0]),
        (".rc16", [0x11f0_11f0, 0x3322_3322, 0x11f0_11f0, 0x3322_3322]),
    ] {
        for (c, row) in rows.into_iter().enumerate() {
            assert_eq!(prmt(mode, c as u64), row, "{mode} {c}");
            assert_eq!(prmt(mode, c as u64 + 4), row, "{mode}: only two bits of c count");
        }
    }
}

#[test]
fn dot_products() {
    assert_eq!(call("dp4a.u32.u32", [0x0102_03ff, 0x0101_01ff, 7]), 7 + 255 * 255 + 6);
    assert_eq!(call("dp4a.s32.s32", [0x0102_03ff, 0x0101_01ff, 7]), 7 + 1 + 6);
    assert_eq!(call("dp4a.u32.s32", [0x0000_00ff, 0x0000_00ff, 0]), -255i32 as u32 as u64);
    assert_eq!(call("dp2a.lo.s32.u32", [0x0002_ffff, 0x0304_05ff, 10]), (10 - 255 + 10i32) as u32 as u64);
    assert_eq!(call("dp2a.hi.s32.u32", [0x0002_ffff, 0x0304_05ff, 10]), 10 - 4 + 6);
}

#[test]
fn packed_integers_are_their_lanes() {
    let lanes = |text: &str, scalar: &str| {
        let (packed, scalar) = (instruction(text, 2), instruction(scalar, 2));
        for &a in &integers(32, 21) {
            for &b in &integers(32, 22) {
                let lane = |i: u32| scalar(&[a >> i & 0xffff, b >> i & 0xffff])[0] & 0xffff;
                assert_eq!(packed(&[a, b])[0], lane(16) << 16 | lane(0), "{text} {a:#x} {b:#x}");
            }
        }
    };
    for ty in ["u16", "s16"] {
        for op in ["add", "min", "max"] {
            lanes(&format!("{op}.{ty}x2"), &format!("{op}.{ty}"));
        }
    }
    assert_eq!(call("max.relu.s16x2", [0x8000_0005, 0xffff_0003]), 5);
    assert_eq!(call("min.relu.s32", [0x8000_0000, 5]), 0);
}

#[test]
fn packed_halves_are_their_lanes() {
    let mut random = Random(31);
    for (ty, f) in [("f16", &F16), ("bf16", &BF16)] {
        for (op, n) in
            [("add", 2), ("sub", 2), ("mul", 2), ("fma.rn", 3), ("fma.rn.relu", 3), ("min", 2), ("max", 2)]
                .into_iter()
                .chain([("min.NaN", 2), ("max.xorsign.abs", 2), ("abs", 1), ("neg", 1), ("tanh.approx", 1)])
        {
            let (packed, scalar) =
                (instruction(&format!("{op}.{ty}x2"), n), instruction(&format!("{op}.{ty}"), n));
            for _ in 0..4000 {
                let mut half = || random.encoding(f, f.one());
                let s: Vec<[u64; 2]> = (0..n).map(|_| [half(), half()]).collect();
                let whole: Vec<u64> = s.iter().map(|[low, high]| high << 16 | low).collect();
                let d = packed(&whole)[0];
                for lane in 0..2 {
                    let elements: Vec<u64> = s.iter().map(|x| x[lane]).collect();
                    let expected = scalar(&elements)[0];
                    let actual = d >> (16 * lane) & 0xffff;
                    // The packed forms keep a NaN's bits where the scalar ones make the canonical NaN.
                    let nan = f.is_nan(expected) && f.is_nan(actual) && (op == "abs" || op == "neg");
                    assert!(nan || actual == expected, "{op}.{ty}x2 {s:x?}: {actual:#x}, not {expected:#x}");
                }
            }
        }
    }
}

/// Mixed precision: the narrow operands convert exactly, then one rounding, here by apfloat.
#[test]
fn mixed_precision_rounds_once() {
    fn check<T: Float + FloatConvert<ieee::Single>>(ty: &str, f: &sem::format::Format) {
        let mut random = Random(41);
        for (rnd, round) in [
            ("rn", Round::NearestTiesToEven),
            ("rz", Round::TowardZero),
            ("rm", Round::TowardNegative),
            ("rp", Round::TowardPositive),
        ] {
            let forms = ["add", "sub", "fma"].map(|op| {
                let n = if op == "fma" { 3 } else { 2 };
                [
                    instruction(&format!("{op}.{rnd}.f32.{ty}"), n),
                    instruction(&format!("{op}.{rnd}.sat.f32.{ty}"), n),
                ]
            });
            for i in 0..random_count() / 8 {
                let edge = |e: Vec<u64>, i: u64| e[i as usize % e.len()];
                let (a, b) = (random.encoding(f, f.one()), random.encoding(f, f.one()));
                let c = if i % 4 == 0 { edge(edges(&F32), i / 4) } else { random.encoding(&F32, F32.one()) };
                let widen = |x: u64| -> ieee::Single { T::from_bits(x as u128).convert(&mut false).value };
                let (x, y, z) = (widen(a), widen(b), ieee::Single::from_bits(c as u128));
                let theirs =
                    [x.add_r(z, round), x.sub_r(z, round), x.mul_add_r(y, z, round)].map(|r| r.value);
                for ((form, theirs), operands) in
                    forms.iter().zip(theirs).zip([&[a, c][..], &[a, c], &[a, b, c]])
                {
                    let expected = if theirs.is_nan() { F32.nan } else { theirs.to_bits() as u64 };
                    assert_eq!(form[0](operands)[0], expected, "{rnd} {ty} {operands:x?}");
                    let one = ieee::Single::from_bits(F32.one() as u128);
                    let saturated = match theirs {
                        t if t.is_nan() || t.is_negative() => 0,
                        t if t > one => F32.one(),
                        t => t.to_bits() as u64,
                    };
                    assert_eq!(form[1](operands)[0], saturated, "{rnd}.sat {ty} {operands:x?}");
                }
            }
        }
    }
    check::<ieee::Half>("f16", &F16);
    check::<ieee::BFloat>("bf16", &BF16);
}

#[test]
fn set_and_setp_of_halves() {
    let (one, nan, two) = (0x3c00, 0x7e00, 0x4000);
    let pack = |high: u64, low: u64| high << 16 | low;
    assert_eq!(call("set.lt.u16.f16", [one, two]), 0xffff);
    assert_eq!(call("set.lt.u32.f16", [one, two]), 0xffff_ffff);
    assert_eq!(call("set.lt.f16.f16", [one, two]), 0x3c00);
    assert_eq!(call("set.lt.bf16.f32", [0x3f80_0000, 0x4000_0000]), 0x3f80);
    assert_eq!(call("set.lt.u16.bf16", [0x3f80, 0x4000]), 0xffff);
    assert_eq!(call("set.ltu.s32.f16x2", [pack(one, two), pack(nan, one)]), 0xffff_0000);
    assert_eq!(call("set.ge.f16x2.f16x2", [pack(one, two), pack(nan, one)]), 0x0000_3c00);
    assert_eq!(call("set.ge.bf16x2.bf16x2", [pack(0x4000, 0), pack(0x3f80, 0x3f80)]), 0x3f80_0000);
    // p is the low lane, q the high lane; of scalars q is the complement's.
    assert_eq!(instruction("setp.lt.f16x2", 2)(&[pack(two, one), pack(one, two)]), [1, 0]);
    assert_eq!(instruction("setp.lt.and.f16x2", 3)(&[pack(one, one), pack(two, two), 0]), [0, 0]);
    assert_eq!(instruction("setp.gt.xor.bf16x2", 3)(&[pack(two, one), pack(one, two), 1]), [1, 0]);
    assert_eq!(instruction("setp.lt.or.s32", 3)(&[1, 2, 0]), [1, 0]);
    assert_eq!(instruction("setp.lt.and.s32", 3)(&[1, 2, 0]), [0, 0]);
    assert_eq!(instruction("setp.lt.f32", 2)(&[0x7fc0_0000, 0]), [0, 1]);
}

/// Packed conversions, element order and the values at the ends of the small formats.
#[test]
fn packed_conversions() {
    let (one, big, minus, nan) = (0x3f80_0000, 0x7f00_0000, 0xbf80_0000, 0x7fc0_0000);
    assert_eq!(call("cvt.rn.f16x2.f32", [one, minus]), 0x3c00_bc00);
    assert_eq!(call("cvt.rn.relu.f16x2.f32", [nan, minus]), 0x7fff_0000);
    assert_eq!(call("cvt.rn.satfinite.f16x2.f32", [big, big | 1 << 31]), 0x7bff_fbff);
    assert_eq!(call("cvt.rz.bf16x2.f32", [0x3f80_ffff, one]), 0x3f80_3f80);
    assert_eq!(call("cvt.rn.satfinite.e4m3x2.f32", [big, nan]), 0x7e7f);
    assert_eq!(call("cvt.rn.satfinite.e5m2x2.f32", [big, minus]), 0x7bbc);
    assert_eq!(call("cvt.rn.f16x2.e4m3x2", [0x7ef8]), 0x5f00_dc00);
    assert_eq!(call("cvt.rn.f16x2.e5m2x2", [0x7bbc]), 0x7b00_bc00);
    assert_eq!(call("cvt.rn.satfinite.e4m3x2.f16x2", [0x7c00_3c00]), 0x7e38);
    assert_eq!(call("cvt.rn.satfinite.e2m1x2.f32", [big, minus]), 0x7a);
    assert_eq!(call("cvt.rn.f16x2.e2m1x2", [0x7a]), 0x4600_bc00);
    assert_eq!(call("cvt.rn.satfinite.e2m3x2.f32", [big, one]), 0x1f08);
    assert_eq!(call("cvt.rn.f16x2.e3m2x2", [0x1f0c]), 0x4f00_3c00);
    assert_eq!(call("cvt.rz.ue8m0x2.f32", [0x3fc0_0000, one]), 0x7f7f);
    assert_eq!(call("cvt.rp.satfinite.ue8m0x2.f32", [0x3fc0_0000, 0x7f7f_ffff]), 0x80fe);
    assert_eq!(call("cvt.rn.bf16x2.ue8m0x2", [0x807f]), 0x4000_3f80);
    assert_eq!(call("cvt.pack.sat.u16.s32", [70_000, -1i32 as u32 as u64]), 0xffff_0000);
    assert_eq!(call("cvt.pack.sat.s8.s32.b32", [300, -300i32 as u32 as u64, 0xabcd]), 0xabcd_7f80);
}

/// `.rs` adds its random bits below the result's last bit: none round toward zero, all of them away from it.
#[test]
fn stochastic_rounding() {
    let third = 0x3eaa_aaab;
    assert_eq!(call("cvt.rs.bf16x2.f32", [third, third, 0]), 0x3eaa_3eaa);
    assert_eq!(call("cvt.rs.bf16x2.f32", [third, third, 0xffff_5554]), 0x3eab_3eaa);
    assert_eq!(call("cvt.rs.bf16x2.f32", [third, third, 0x5555_0000]), 0x3eab_3eaa);
    assert_eq!(call("cvt.rs.f16x2.f32", [third, 0xbeaa_aaab, 0x1fff_0000]), 0x3556_b555);
    // The exact values need no bits: 1.0, and a sum that carries into the next binade.
    assert_eq!(call("cvt.rs.bf16x2.f32", [0x3f80_0000, 0x3fff_ffff, 0xffff_ffff]), 0x3f80_4000);
    let four = instruction("cvt.rs.satfinite.e4m3x4.f32", 2);
    assert_eq!(four(&[third, third, third, third, 0xffff_0000])[0], 0x2b2b_2a2a);
}

/// Every spelling of every pure row, on edges and random bits: nothing panics, missing and dirty operands included, and
/// a result is no wider than its type (but for what cvt gives to wider registers).
#[test]
fn results_are_as_wide_as_their_types() {
    let mut random = Random(51);
    let mut spellings = 0;
    for index in 0..isa::FORMS.len() {
        let id = isa::FormId(index as u16);
        let form = id.form();
        let Action::Pure(name) = form.action else { continue };
        let function = sem::lookup(name).unwrap();
        for spelling in isa::enumerate::spellings(id).filter(isa::enumerate::Spelling::is_legal) {
            spellings += 1;
            let picks = spelling.picks;
            let dirty: Vec<u64> = (0..random.next() % 7).map(|_| random.next()).collect();
            function(&picks, &dirty);
            let widths = form.operands.iter().map(|o| o.resolve(&picks).map_or(64, |ty| ty.bits().min(64)));
            let widths: Vec<u32> = widths.collect();
            for _ in 0..6 {
                let mut source = |width: u32| match random.next() % 3 {
                    0 => 0,
                    1 => u64::MAX >> (64 - width),
                    _ => random.next() >> (64 - width),
                };
                let sources: Vec<u64> = widths[1..].iter().map(|&width| source(width)).collect();
                let [d, _] = function(&picks, &sources);
                let extended = matches!(name, "convert::int_to_int" | "convert::float_to_int");
                assert!(
                    extended || d <= u64::MAX >> (64 - widths[0]),
                    "{} {sources:x?} = {d:#x}",
                    spelling.mnemonic()
                );
            }
        }
    }
    assert!(spellings > 3000, "only {spellings} spellings");
}

/// The packed mixed forms of PTX 9.4, element by element: results in `.f32x2` by apfloat in binary32, those in halves by apfloat in binary128,
/// which holds every product, and of which truncated sums are truncated once more.
#[test]
fn packed_mixed_precision_rounds_once() {
    fn check<T, O>(ty: &str, other: &str, [f, fo]: [&sem::format::Format; 2], ftz: &str)
    where
        T: Float + FloatConvert<ieee::Single> + FloatConvert<ieee::Quad>,
        O: Float + FloatConvert<ieee::Quad>,
        ieee::Quad: FloatConvert<T>,
    {
        let mut random = Random(43);
        let narrow = |x: ieee::Quad, round: Round| -> u64 {
            let value: T = x.convert_r(round, &mut false).value;
            if value.is_nan() { f.nan } else { value.to_bits() as u64 }
        };
        let single = |x: ieee::Single| if x.is_nan() { F32.nan } else { x.to_bits() as u64 };
        let pack = |[low, high]: [u64; 2], width: u32| high << width | low;
        for (rnd, round) in [
            ("rn", Round::NearestTiesToEven),
            ("rz", Round::TowardZero),
            ("rm", Round::TowardNegative),
            ("rp", Round::TowardPositive),
        ] {
            let wide = [
                instruction(&format!("add.{rnd}.f32x2.{ty}x2.f32x2"), 2),
                instruction(&format!("sub.{rnd}.f32x2.{ty}x2.f32x2"), 2),
                instruction(&format!("fma.{rnd}.f32x2.{ty}x2.f32x2.f32x2"), 3),
            ];
            let halves =
                ["add", "sub", "mul"].map(|op| instruction(&format!("{op}.rz{ftz}.{ty}x2.f32x2.f32x2"), 2));
            let product = instruction(&format!("mul.{ty}x2.{ty}x2.{other}x2"), 2);
            for i in 0..random_count() / 32 {
                let mut one = |f: &sem::format::Format, n: u64| {
                    let edges = edges(f);
                    match (i / 4 + n) % 4 {
                        0 => edges[(i / 4 * 7 + n) as usize % edges.len()],
                        _ => random.encoding(f, f.one()),
                    }
                };
                let a = [one(f, 0), one(f, 1)];
                let o = [one(fo, 2), one(fo, 3)];
                let (b, c) = ([one(&F32, 4), one(&F32, 5)], [one(&F32, 6), one(&F32, 7)]);
                let mut expected = [[0; 2]; 7];
                for lane in 0..2 {
                    let x: ieee::Single = T::from_bits(a[lane] as u128).convert(&mut false).value;
                    let [y, z] = [b, c].map(|e| ieee::Single::from_bits(e[lane] as u128));
                    expected[0][lane] = single(x.add_r(z, round).value);
                    expected[1][lane] = single(x.sub_r(z, round).value);
                    expected[2][lane] = single(x.mul_add_r(y, z, round).value);
                    let exact = |x: ieee::Single| -> ieee::Quad {
                        let flushed = if !ftz.is_empty() && x.is_denormal() {
                            ieee::Single::ZERO.copy_sign(x)
                        } else {
                            x
                        };
                        flushed.convert(&mut false).value
                    };
                    let (y, z) = (exact(y), exact(z));
                    let zero = Round::TowardZero;
                    expected[3][lane] = narrow(y.add_r(z, zero).value, zero);
                    expected[4][lane] = narrow(y.sub_r(z, zero).value, zero);
                    expected[5][lane] = narrow(y.mul_r(z, zero).value, zero);
                    let p: ieee::Quad = T::from_bits(a[lane] as u128).convert(&mut false).value;
                    let q: ieee::Quad = O::from_bits(o[lane] as u128).convert(&mut false).value;
                    expected[6][lane] =
                        narrow(p.mul_r(q, Round::NearestTiesToEven).value, Round::NearestTiesToEven);
                }
                let (a, o, b, c) = (pack(a, 16), pack(o, 16), pack(b, 32), pack(c, 32));
                for ((form, operands), expected) in
                    wide.iter().zip([&[a, c][..], &[a, c], &[a, b, c]]).zip(expected)
                {
                    assert_eq!(form(operands)[0], pack(expected, 32), "{rnd} {ty} {operands:x?}");
                }
                for (form, expected) in halves.iter().zip(&expected[3..]) {
                    assert_eq!(form(&[b, c])[0], pack(*expected, 16), "{ty} {b:x} {c:x}");
                }
                assert_eq!(product(&[a, o])[0], pack(expected[6], 16), "{ty} {a:x} {o:x}");
            }
        }
    }
    check::<ieee::Half, ieee::BFloat>("f16", "bf16", [&F16, &BF16], ".ftz");
    check::<ieee::BFloat, ieee::Half>("bf16", "f16", [&BF16, &F16], "");
}
