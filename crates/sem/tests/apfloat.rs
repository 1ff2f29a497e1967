//! Floating-point forms against rustc_apfloat: edge values x edge values, and random bits.
//!
//! `SEM_TEST_RANDOM` sets the number of random inputs for each operation and format (default 1,000,000 each, over
//! a million in all).

mod common;

use common::{Random, edges, random_count};
use isa::Rounding::{self, *};
use isa::Type;
use rustc_apfloat::{Float, Round, ieee};
use sem::compare::{self, MinMax};
use sem::format::{BF16, E4M3, E5M2, F16, F32, F64, Format};
use sem::round::{Clamp, Mode};
use sem::{arith, convert};
use std::cmp::Ordering;

const ROUNDINGS: [Rounding; 4] = [NearestEven, TowardZero, TowardNegative, TowardPositive];

fn apfloat_round(rounding: Rounding) -> Round {
    match rounding {
        NearestEven => Round::NearestTiesToEven,
        NearestAway => Round::NearestTiesToAway,
        TowardZero => Round::TowardZero,
        TowardNegative => Round::TowardNegative,
        TowardPositive => Round::TowardPositive,
    }
}

/// The bits of an apfloat result. A NaN is the canonical one, but `.f64` keeps the payload of the first NaN among these
/// operands.
fn bits<T: Float>(f: &Format, x: T, operands: &[u64]) -> u64 {
    match operands.iter().find(|&&a| f.is_nan(a)) {
        Some(nan) if *f == F64 => nan | 1 << 51,
        _ if x.is_nan() => f.nan,
        _ => x.to_bits() as u64,
    }
}

fn check_two<T: Float>(f: &Format, a: u64, b: u64, r: Rounding) {
    let (mode, round) = (Mode::rounding(r), apfloat_round(r));
    let (x, y) = (T::from_bits(a as u128), T::from_bits(b as u128));
    for (name, ours, theirs) in [
        ("add", arith::add(f, mode, a, b), x.add_r(y, round).value),
        ("sub", arith::sub(f, mode, a, b), x.sub_r(y, round).value),
        ("mul", arith::mul(f, mode, a, b), x.mul_r(y, round).value),
        ("div", arith::div(f, mode, a, b), x.div_r(y, round).value),
    ] {
        let order = if name == "div" { [a, b] } else { [b, a] };
        assert_eq!(ours, bits(f, theirs, &order), "{name} {r:?} {a:#x} {b:#x} in {f:?}");
    }
}

fn check_fma<T: Float>(f: &Format, a: u64, b: u64, c: u64, r: Rounding) {
    let [x, y, z] = [a, b, c].map(|v| T::from_bits(v as u128));
    let theirs = x.mul_add_r(y, z, apfloat_round(r)).value;
    let ours = arith::fma(f, Mode::rounding(r), a, b, c);
    assert_eq!(ours, bits(f, theirs, &[b, c, a]), "fma {r:?} {a:#x} {b:#x} {c:#x} in {f:?}");
}

fn check_format<T: Float>(f: &Format) {
    let edges = edges(f);
    for &a in &edges {
        for &b in &edges {
            for r in ROUNDINGS {
                check_two::<T>(f, a, b, r);
            }
            for &c in &edges {
                check_fma::<T>(f, a, b, c, NearestEven);
            }
        }
    }
    let mut random = Random(f.nan);
    for i in 0..random_count() {
        let r = ROUNDINGS[i as usize % 4];
        let a = random.encoding(f, f.one());
        let b = random.encoding(f, a);
        check_two::<T>(f, a, b, r);
        let product = arith::mul(f, Mode::NEAREST, a, b);
        let c = random.encoding(f, product);
        check_fma::<T>(f, a, b, c, r);
    }
}

#[test]
fn half_equals_apfloat() {
    check_format::<ieee::Half>(&F16);
}

#[test]
fn bfloat_equals_apfloat() {
    check_format::<ieee::BFloat>(&BF16);
}

#[test]
fn single_equals_apfloat() {
    check_format::<ieee::Single>(&F32);
}

#[test]
fn double_equals_apfloat() {
    check_format::<ieee::Double>(&F64);
}

fn check_conversion<S, T>(from: &Format, to: &Format)
where
    S: Float + rustc_apfloat::FloatConvert<T>,
    T: Float,
{
    let mut random = Random(from.nan ^ to.nan);
    let edges = edges(from);
    for i in 0..edges.len() as u64 + random_count() / 4 {
        let a = edges.get(i as usize).copied().unwrap_or_else(|| random.encoding(from, from.one()));
        for r in ROUNDINGS {
            let theirs: T = S::from_bits(a as u128).convert_r(apfloat_round(r), &mut false).value;
            if !theirs.is_nan() {
                let ours = convert::convert_float(from, to, Mode::rounding(r), a);
                assert_eq!(ours, theirs.to_bits() as u64, "{r:?} {a:#x} from {from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn conversions_between_formats_equal_apfloat() {
    use ieee::{BFloat, Double, Float8E5M2, Half, Single};
    check_conversion::<Half, Single>(&F16, &F32);
    check_conversion::<Half, Double>(&F16, &F64);
    check_conversion::<Half, BFloat>(&F16, &BF16);
    check_conversion::<BFloat, Half>(&BF16, &F16);
    check_conversion::<BFloat, Single>(&BF16, &F32);
    check_conversion::<BFloat, Double>(&BF16, &F64);
    check_conversion::<Single, Half>(&F32, &F16);
    check_conversion::<Single, BFloat>(&F32, &BF16);
    check_conversion::<Single, Double>(&F32, &F64);
    check_conversion::<Double, Half>(&F64, &F16);
    check_conversion::<Double, BFloat>(&F64, &BF16);
    check_conversion::<Double, Single>(&F64, &F32);
    check_conversion::<Single, Float8E5M2>(&F32, &E5M2);
    check_conversion::<Half, Float8E5M2>(&F16, &E5M2);
    check_conversion::<Float8E5M2, Half>(&E5M2, &F16);
}

/// `.e4m3` rounds and clamps like apfloat's; beyond its range only `.satfinite` exists in PTX.
#[test]
fn conversion_to_e4m3_equals_apfloat() {
    use ieee::{Float8E4M3FN, Single};
    use rustc_apfloat::FloatConvert;
    let mut random = Random(43);
    let mode = Mode { clamp: Clamp::Finite, ..Mode::NEAREST };
    for a in edges(&F32).into_iter().chain((0..random_count()).map(|_| random.encoding(&F32, F32.one()))) {
        let x = Single::from_bits(a as u128);
        let theirs: Float8E4M3FN = x.convert(&mut false).value;
        let ours = convert::convert_float(&F32, &E4M3, mode, a);
        match (x.is_nan(), theirs.is_nan()) {
            (false, false) => assert_eq!(ours, theirs.to_bits() as u64, "{a:#x}"),
            (false, true) => assert_eq!(ours & 0x7f, 0x7e, "{a:#x}"),
            (true, _) => assert_eq!(ours, 0x7f, "{a:#x}"),
        }
        if ours & 0x7f != 0x7f {
            let back = convert::convert_float(&E4M3, &F32, Mode::NEAREST, ours);
            let widened: Single = Float8E4M3FN::from_bits(ours as u128).convert(&mut false).value;
            assert_eq!(back, widened.to_bits() as u64);
        }
    }
}

fn check_integers<T: Float>(f: &Format) {
    let mut random = Random(f.nan ^ 7);
    let edges = edges(f);
    for i in 0..edges.len() as u64 + random_count() / 4 {
        let a = edges.get(i as usize).copied().unwrap_or_else(|| random.encoding(f, f.one()));
        let x = T::from_bits(a as u128);
        for r in ROUNDINGS {
            let round = apfloat_round(r);
            for ty in [Type::S8, Type::U8, Type::S16, Type::U16, Type::S32, Type::U32, Type::S64, Type::U64] {
                let width = ty.bits() as usize;
                let ours = convert::float_to_integer(f, ty, r, false, a);
                let theirs = match ty.is_signed() {
                    // apfloat clamps too, but to 0 for NaN.
                    true => x.to_i128_r(width, round, &mut false).value as u64,
                    false => x.to_u128_r(width, round, &mut false).value as u64,
                };
                if !x.is_nan() {
                    assert_eq!(ours, theirs, "{r:?} {a:#x} in {f:?} to {ty}");
                }
            }
            let integral = convert::round_to_integral(f, Mode::rounding(r), a);
            assert_eq!(integral, bits(f, x.round_to_integral(round).value, &[a]), "{r:?} {a:#x} in {f:?}");
            // From integers: the encoding as a bit pattern of any size serves as the number.
            let from_signed = convert::integer_to_float(Type::S64, f, Mode::rounding(r), a);
            assert_eq!(from_signed, T::from_i128_r(a as i64 as i128, round).value.to_bits() as u64, "{a:#x}");
            let from_unsigned = convert::integer_to_float(Type::U64, f, Mode::rounding(r), a);
            assert_eq!(from_unsigned, T::from_u128_r(a as u128, round).value.to_bits() as u64, "{a:#x}");
        }
    }
}

#[test]
fn integer_conversions_equal_apfloat() {
    check_integers::<ieee::Half>(&F16);
    check_integers::<ieee::BFloat>(&BF16);
    check_integers::<ieee::Single>(&F32);
    check_integers::<ieee::Double>(&F64);
}

fn check_comparison<T: Float>(f: &Format) {
    let mut random = Random(f.nan ^ 9);
    let edges = edges(f);
    let check = |a: u64, b: u64| {
        let [x, y] = [a, b].map(|v| T::from_bits(v as u128));
        assert_eq!(compare::order_float(f, false, a, b), x.partial_cmp(&y), "{a:#x} {b:#x}");
        let min = compare::min_max_float(f, Ordering::Less, MinMax::default(), a, b);
        let max = compare::min_max_float(f, Ordering::Greater, MinMax::default(), a, b);
        match (x.is_nan(), y.is_nan()) {
            (true, true) => assert_eq!([min, max], [bits(f, y, &[b]); 2]),
            (true, false) => assert_eq!([min, max], [b; 2]),
            (false, true) => assert_eq!([min, max], [a; 2]),
            _ => assert_eq!(
                [min, max],
                [x.minimum(y), x.maximum(y)].map(|v| v.to_bits() as u64),
                "{a:#x} {b:#x}"
            ),
        }
        let strict = MinMax { nan: true, ..MinMax::default() };
        if x.is_nan() || y.is_nan() {
            assert_eq!(compare::min_max_float(f, Ordering::Less, strict, a, b), f.nan);
        }
    };
    for &a in &edges {
        edges.iter().for_each(|&b| check(a, b));
    }
    for _ in 0..random_count() {
        let a = random.encoding(f, f.one());
        check(a, random.encoding(f, a));
    }
}

#[test]
fn comparisons_equal_apfloat() {
    check_comparison::<ieee::Half>(&F16);
    check_comparison::<ieee::BFloat>(&BF16);
    check_comparison::<ieee::Single>(&F32);
    check_comparison::<ieee::Double>(&F64);
}
