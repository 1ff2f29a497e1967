//! The 8-, 6- and 4-bit formats against a search among all their numbers, exact in binary128: conversions, with scales and without,
//! and the arithmetic of four lanes.

mod common;

use common::Random;
use isa::Type;
use rustc_apfloat::ieee::Quad;
use rustc_apfloat::{Float, FloatConvert, Round, Status};

/// A format of few bits, described anew.
struct Small {
    name: &'static str,
    exponent_bits: u32,
    fraction_bits: u32,
    signed: bool,
    /// The code of the largest number.
    largest: u64,
    /// Above it.
    infinity: Option<u64>,
    nan: Option<u64>,
}

const E4M3: Small = small("e4m3", 4, 3, 0x7e, None, Some(0x7f));
const E5M2: Small = small("e5m2", 5, 2, 0x7b, Some(0x7c), Some(0x7f));
const E2M3: Small = small("e2m3", 2, 3, 0x1f, None, None);
const E3M2: Small = small("e3m2", 3, 2, 0x1f, None, None);
const E2M1: Small = small("e2m1", 2, 1, 0x7, None, None);
const UE5M3: Small = Small { signed: false, ..small("ue5m3", 5, 3, 0xfe, None, Some(0xff)) };

const fn small(
    name: &'static str,
    exponent_bits: u32,
    fraction_bits: u32,
    largest: u64,
    infinity: Option<u64>,
    nan: Option<u64>,
) -> Small {
    Small { name, exponent_bits, fraction_bits, signed: true, largest, infinity, nan }
}

fn quad(x: f64) -> Quad {
    rustc_apfloat::ieee::Double::from_bits(x.to_bits().into()).convert(&mut false).value
}

fn power(exponent: i32) -> Quad {
    quad(1.0).scalbn(exponent)
}

impl Small {
    fn sign(&self) -> u64 {
        if self.signed { 1 << (self.exponent_bits + self.fraction_bits) } else { 0 }
    }

    /// The code in the low bits of a byte: of 6 and 4 bits the rest means nothing.
    fn of_bits(&self, byte: u64) -> u64 {
        if self.signed { byte & (2 * self.sign() - 1) } else { byte }
    }

    /// The number of a code without its sign, also of the code above the largest.
    fn magnitude(&self, code: u64) -> Quad {
        let (exponent, fraction) =
            ((code >> self.fraction_bits) as i32, code & ((1 << self.fraction_bits) - 1));
        let bias = (1 << (self.exponent_bits - 1)) - 1;
        let hidden = if exponent > 0 { 1 << self.fraction_bits } else { 0 };
        quad((fraction | hidden) as f64).scalbn(exponent.max(1) - bias - self.fraction_bits as i32)
    }

    /// The value of a code.
    fn value(&self, code: u64) -> Quad {
        let magnitude = code & !self.sign() & 0xff;
        let value = match magnitude {
            _ if Some(magnitude) == self.infinity => Quad::INFINITY,
            _ if magnitude > self.largest => return Quad::NAN,
            _ => self.magnitude(magnitude),
        };
        if code & self.sign() != 0 { -value } else { value }
    }

    /// The code of a value, by search.
    fn round(&self, x: Quad, round: Round, finite: bool) -> u64 {
        let sign = if x.is_negative() { self.sign() } else { 0 };
        // What is too large.
        let above = if finite { self.largest } else { self.infinity.or(self.nan).unwrap_or(self.largest) };
        if x.is_nan() {
            return self.nan.unwrap_or(self.largest);
        }
        if x.is_infinite() {
            return sign | above;
        }
        let x = x.abs();
        let below = (0..=self.largest).rev().find(|&code| self.magnitude(code) <= x).unwrap_or(0);
        let next = self.magnitude(below + 1);
        let up = match round {
            _ if self.magnitude(below) == x => false,
            Round::TowardZero => false,
            // Of what has no sign, or of positive numbers: none with a sign is rounded so here.
            Round::TowardPositive => true,
            _ => {
                let (double, middle) = ((x + x).value, (self.magnitude(below) + next).value);
                double > middle || double == middle && below & 1 != 0
            }
        };
        let code = below + u64::from(up);
        sign | if code > self.largest { above } else { code }
    }
}

/// The function that an instruction is, of so many sources.
fn instruction(name: &str, sources: usize) -> impl Fn(&[u64]) -> u64 + use<> {
    let words: Vec<&str> = name.split('.').collect();
    let selected = isa::select(words[0], &words[1..], 1 + sources).expect("an instruction");
    let isa::Action::Pure(function) = selected.form().action else { panic!("{name} is not pure") };
    let function = sem::lookup(function).expect("a function");
    let picks = selected.picks;
    move |s| function(&picks, s)[0]
}

/// The value of a number of `.f16`, `.bf16` or `.f32`.
fn wide(ty: Type, bits: u64) -> Quad {
    use rustc_apfloat::ieee::{BFloat, Half, Single};
    match ty {
        Type::F16 => Half::from_bits(bits.into()).convert(&mut false).value,
        Type::Bf16 => BFloat::from_bits(bits.into()).convert(&mut false).value,
        _ => Single::from_bits(bits.into()).convert(&mut false).value,
    }
}

fn flushed(ty: Type, x: Quad) -> Quad {
    let least = power(if ty == Type::F16 { -14 } else { -126 });
    if !x.is_nan() && x.abs() < least { Quad::ZERO.copy_sign(x) } else { x }
}

#[test]
fn narrow_formats_are_the_nearest_numbers() {
    let mut random = Random(9);
    for f in [&E4M3, &E5M2, &E2M3, &E3M2, &E2M1, &UE5M3] {
        for (ty, source) in [(Type::F32, "f32"), (Type::F16, "f16x2"), (Type::Bf16, "bf16x2")] {
            let modes =
                [("rn", Round::NearestTiesToEven), ("rz", Round::TowardZero), ("rp", Round::TowardPositive)];
            for (rnd, round) in modes.into_iter().take(if f.signed { 2 } else { 3 }) {
                for finite in [true, false].into_iter().take(if f.signed { 1 } else { 2 }) {
                    let satfinite = if finite { ".satfinite" } else { "" };
                    for (pzo, relu) in [("", ""), (".pzo", ""), ("", ".relu"), (".pzo", ".relu")] {
                        if !(f.signed || pzo.is_empty() && relu.is_empty()) {
                            continue;
                        }
                        for scaled in [false, true] {
                            if scaled && rnd == "rp" {
                                continue;
                            }
                            let scale_word = if scaled { ".scaled::n1::ue8m0" } else { "" };
                            let name =
                                format!("cvt.{rnd}{satfinite}{relu}{pzo}{scale_word}.{}x2.{source}", f.name);
                            let numbers = if ty == Type::F32 { 2 } else { 1 };
                            let convert = instruction(&name, numbers + usize::from(scaled));
                            let width = if f.name == "e2m1" { 4 } else { 8 };
                            for i in 0..300u64 {
                                let near = 127 + random.next() % 21 - 10;
                                let mut one = || match ty {
                                    // Exponents about those that the format has.
                                    Type::F32 if i % 8 != 0 => {
                                        (random.next() & 0x807f_ffff & !((1 << (random.next() % 24)) - 1))
                                            | (near << 23)
                                    }
                                    Type::F32 => random.next() & 0xffff_ffff,
                                    _ => random.next() & 0xffff & !((1 << (random.next() % 12)) - 1),
                                };
                                let [high, low] = [one(), one()];
                                let scale = if i % 16 == 0 { 0xff } else { 127 + random.next() % 9 - 4 };
                                let expected = [high, low].map(|bits| {
                                    let mut x = wide(ty, bits);
                                    if scaled {
                                        x = match scale {
                                            0xff => Quad::NAN,
                                            _ => flushed(ty, x).scalbn(127 - scale as i32),
                                        };
                                    }
                                    let code = f.round(x, round, finite);
                                    let negative = f.signed && code & f.sign() != 0 && !x.is_nan();
                                    match () {
                                        () if negative && !relu.is_empty() => 0,
                                        () if !pzo.is_empty() && code == f.sign() => 0,
                                        () => code,
                                    }
                                });
                                let mut sources =
                                    if ty == Type::F32 { vec![high, low] } else { vec![high << 16 | low] };
                                if scaled {
                                    sources.push(scale);
                                }
                                assert_eq!(
                                    convert(&sources),
                                    expected[0] << width | expected[1],
                                    "{name} of {sources:x?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All codes, all scales: in bfloat16 a scaled number may be rounded, overflow, or be NaN.
#[test]
fn narrow_formats_become_halves() {
    use rustc_apfloat::ieee::{BFloat, Half};
    for f in [&E4M3, &E5M2, &E2M3, &E3M2, &E2M1, &UE5M3] {
        let width = if f.name == "e2m1" { 4 } else { 8 };
        let codes = 1u64 << width;
        let to_f16 = instruction(&format!("cvt.rn.f16x2.{}x2", f.name), 1);
        for code in 0..codes {
            let x = f.value(f.of_bits(code));
            let half: Half = x.convert(&mut false).value;
            let half = if half.is_nan() { 0x7fff } else { half.to_bits() as u64 };
            assert_eq!(to_f16(&[code << width | code]), half << 16 | half, "{} {code:#x}", f.name);
        }
        for satfinite in ["", ".satfinite"] {
            let name = format!("cvt.rn{satfinite}.scaled::n2::ue8m0.bf16x2.{}x2", f.name);
            let (scaled, plain) =
                (instruction(&name, 2), instruction(&name.replace(".scaled::n2::ue8m0", ""), 1));
            for (code, scale) in (0..codes).flat_map(|code| (0..256).map(move |scale| (code, scale))) {
                let expected = |scale: u64| {
                    let x = if scale == 0xff {
                        Quad::NAN
                    } else {
                        f.value(f.of_bits(code)).scalbn(scale as i32 - 127)
                    };
                    let half: BFloat = x.convert(&mut false).value;
                    match () {
                        () if half.is_nan() => 0x7fff,
                        () if half.is_infinite() && !satfinite.is_empty() => {
                            BFloat::largest().copy_sign(half).to_bits() as u64
                        }
                        () => half.to_bits() as u64,
                    }
                };
                let other = 254 - scale.min(254);
                assert_eq!(
                    scaled(&[code << width | code, scale << 8 | other]),
                    expected(scale) << 16 | expected(other),
                    "{name} {code:#x} {scale:#x}"
                );
                if scale == 127 {
                    assert_eq!(plain(&[code << width | code]), expected(127) << 16 | expected(127));
                }
            }
        }
    }
}

/// `.s2f6`: bytes that count 1/64.
#[test]
fn fixed_point_bytes() {
    let to_bf16 = instruction("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", 2);
    let relu = instruction("cvt.rn.relu.bf16x2.s2f6x2", 1);
    let bf16 = |x: f32| u64::from(x.to_bits() >> 16);
    for byte in 0..=255u64 {
        let x = f32::from(byte as u8 as i8) / 64.0;
        assert_eq!(to_bf16(&[byte << 8 | byte, 0x807e]), bf16(x * 2.0) << 16 | bf16(x / 2.0));
        let positive = bf16(x.max(0.0));
        assert_eq!(relu(&[byte << 8 | byte]), positive << 16 | positive);
        let back = instruction("cvt.rn.satfinite.s2f6x2.bf16x2", 1);
        assert_eq!(back(&[bf16(x) << 16 | bf16(x)]), byte << 8 | byte);
    }
    let pack = |name: &str, a: f32, b: f32| instruction(name, 2)(&[a.to_bits().into(), b.to_bits().into()]);
    // Ties to even, cut, clamped; a NaN is the largest.
    assert_eq!(pack("cvt.rn.satfinite.s2f6x2.f32", 1.5 / 64.0, -2.5 / 64.0), 0x02fe);
    assert_eq!(pack("cvt.rz.satfinite.s2f6x2.f32", 1.9 / 64.0, -2.9 / 64.0), 0x01fe);
    assert_eq!(pack("cvt.rn.satfinite.s2f6x2.f32", 2.0, -2.1), 0x7f80);
    assert_eq!(pack("cvt.rn.satfinite.s2f6x2.f32", f32::NAN, f32::NEG_INFINITY), 0x7f80);
    assert_eq!(pack("cvt.rn.satfinite.relu.s2f6x2.f32", -1.0, 1.0), 0x0040);
    // 4 / 2^2 and -1 / 2^-1, and what a NaN of a scale makes.
    let scaled = instruction("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", 3);
    assert_eq!(scaled(&[4f32.to_bits().into(), (-1f32).to_bits().into(), 0x817e]), 0x4080);
    assert_eq!(scaled(&[4f32.to_bits().into(), (-1f32).to_bits().into(), 0xffff]), 0x7f7f);
}

/// Each element of `.e4m3x4` and `.e5m2x4` arithmetic is rounded once. Binary128 loses nothing that decides: what lies further below
/// than its 113 bits lies beside a number that the format has.
#[test]
fn four_lanes_round_once() {
    let mut random = Random(10);
    let all: [(&str, Option<&Small>); 7] = [
        ("e4m3x4", Some(&E4M3)),
        ("e5m2x4", Some(&E5M2)),
        ("e2m3x4", Some(&E2M3)),
        ("e3m2x4", Some(&E3M2)),
        ("e2m1x4", Some(&E2M1)),
        ("e2m1p4x4", Some(&E2M1)),
        ("ue8m0x4", None),
    ];
    let lane = |name: &str, bits: u64, n: u32| {
        if name == "e2m1x4" { bits >> (4 * n) & 0xf } else { bits >> (8 * n) & 0xff }
    };
    let value = |f: Option<&Small>, code: u64| match f {
        Some(f) => f.value(f.of_bits(code)),
        None if code == 0xff => Quad::NAN,
        None => power(code as i32 - 127),
    };
    for (to_name, to) in [("e4m3x4", &E4M3), ("e5m2x4", &E5M2)] {
        for (a_name, fa) in all {
            for (b_name, fb) in all {
                for satfinite in ["", ".satfinite"] {
                    let form =
                        |op: &str, types: &str, n: usize| instruction(&format!("{op}{satfinite}.{types}"), n);
                    let add = form("add", &format!("{to_name}.{a_name}"), 2);
                    let sub = form("sub.rn", &format!("{to_name}.{a_name}"), 2);
                    let mul = form("mul", &format!("{to_name}.{a_name}.{b_name}"), 2);
                    let fma = form("fma.rn", &format!("{to_name}.{a_name}.{b_name}"), 3);
                    for _ in 0..150 {
                        // Scales near 1, mostly.
                        let scales = |x: u64| if x & 3 == 0 { x } else { x & 0x0f0f_0f0f | 0x7878_7878 };
                        let mut draw = |f: Option<&Small>| {
                            let bits = random.next() & 0xffff_ffff;
                            if f.is_none() { scales(bits) } else { bits }
                        };
                        let (a, b, c) = (draw(fa), draw(fb), draw(Some(to)));
                        for n in 0..4 {
                            let x = value(fa, lane(a_name, a, n));
                            let y = value(fb, lane(b_name, b, n));
                            let z = to.value(c >> (8 * n) & 0xff);
                            let product = x.mul_r(y, Round::NearestTiesToEven).value;
                            let expected = [
                                (add(&[a, c]), x + z),
                                (sub(&[a, c]), x - z),
                                (mul(&[a, b]), Status::OK.and(product)),
                                (fma(&[a, b, c]), product + z),
                            ];
                            for (got, want) in expected {
                                let want =
                                    to.round(want.value, Round::NearestTiesToEven, !satfinite.is_empty());
                                assert_eq!(
                                    got >> (8 * n) & 0xff,
                                    want,
                                    "{to_name}.{a_name}.{b_name}{satfinite} of {a:#x} {b:#x} {c:#x}, lane {n}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
