//! Floating-point forms against rustc_apfloat: edge values x edge values, and random bits.
//!
//! `SEM_TEST_RANDOM` sets the number of random inputs for each operation and format (default 150,000 each, over
//! a million in all).

use isa::Rounding::{self, *};
use rustc_apfloat::{Float, Round, ieee};
use sem::arith;
use sem::format::{BF16, F16, F32, F64, Format};
use sem::round::Mode;

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

/// A small generator of random bits (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// An encoding: mostly any bits, sometimes near the edges, sometimes with an exponent near that of `near`,
    /// so that sums cancel and products stay in range.
    fn encoding(&mut self, f: &Format, near: u64) -> u64 {
        let bits = self.next() & (f.sign() | f.magnitude_mask());
        match self.next() % 4 {
            0 => bits,
            1 => {
                let e = edges(f);
                e[self.next() as usize % e.len()]
            }
            2 => {
                let offset = (self.next() % 5) as i64 - 2;
                near.wrapping_add((offset << f.fraction_bits) as u64).wrapping_add(bits & 0xf)
                    & (f.sign() | f.magnitude_mask())
            }
            _ => {
                // An exponent near one and few fraction bits: exact and halfway cases.
                let exponent = (f.one() >> f.fraction_bits).wrapping_add(self.next() % 17).wrapping_sub(8);
                let keep = self.next() % f.fraction_bits as u64;
                let fraction = bits & ((1 << f.fraction_bits) - 1) & !((1u64 << keep) - 1);
                (bits & f.sign()) | (exponent << f.fraction_bits | fraction) & f.magnitude_mask()
            }
        }
    }
}

/// Zero, the subnormal and normal limits, one and its neighbours, halves, the overflow limits, infinity, NaNs.
fn edges(f: &Format) -> Vec<u64> {
    let unit = 1u64 << f.fraction_bits;
    let mut edges = vec![];
    for x in [0, 1, 2, 3, unit / 2, unit - 1, unit, unit + 1, 2 * unit, 2 * unit - 1] {
        edges.push(x);
    }
    for x in [
        f.one() - unit,
        f.one() - 1,
        f.one(),
        f.one() + 1,
        f.one() + unit / 2,
        f.one() + unit,
        f.one() + unit + unit / 2,
    ] {
        edges.push(x);
    }
    for x in [
        f.max_finite() - unit,
        f.max_finite() - 1,
        f.max_finite(),
        f.infinity(),
        f.infinity() + 1,
        f.nan & f.magnitude_mask(),
    ] {
        edges.push(x);
    }
    edges.push(f.one() + (f.fraction_bits as u64) * unit);
    edges.push(f.one() - (f.fraction_bits as u64 + 1).min((f.one() >> f.fraction_bits) - 1) * unit);
    let negative: Vec<u64> = edges.iter().map(|x| x | f.sign()).collect();
    edges.extend(negative);
    edges
}

fn random_count() -> u64 {
    std::env::var("SEM_TEST_RANDOM").ok().and_then(|s| s.parse().ok()).unwrap_or(150_000)
}

/// The bits of an apfloat result, NaN made canonical.
fn bits<T: Float>(f: &Format, x: T) -> u64 {
    if x.is_nan() { f.nan } else { x.to_bits() as u64 }
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
        assert_eq!(ours, bits(f, theirs), "{name} {r:?} {a:#x} {b:#x} in {f:?}");
    }
}

fn check_fma<T: Float>(f: &Format, a: u64, b: u64, c: u64, r: Rounding) {
    let [x, y, z] = [a, b, c].map(|v| T::from_bits(v as u128));
    let theirs = x.mul_add_r(y, z, apfloat_round(r)).value;
    let ours = arith::fma(f, Mode::rounding(r), a, b, c);
    assert_eq!(ours, bits(f, theirs), "fma {r:?} {a:#x} {b:#x} {c:#x} in {f:?}");
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
