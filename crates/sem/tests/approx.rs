//! The approximate functions against the host's `f64` functions: where those, an ulp either way, decide how the
//! result rounds, it must round so. And roots and reciprocals against exact inequalities of integers.

mod common;

use common::{Random, edges, random_count};
use isa::Rounding;
use sem::format::{BF16, F16, F32, F64, Format};
use sem::round::Mode;
use sem::{approx, arith, convert};

fn to_f64(f: &Format, a: u64) -> f64 {
    f64::from_bits(convert::convert_float(f, &F64, Mode::NEAREST, a))
}

fn from_f64(f: &Format, x: f64) -> u64 {
    convert::convert_float(&F64, f, Mode::NEAREST, x.to_bits())
}

type Approximate = fn(&Format, Mode, u64) -> u64;
type Reference = fn(f64) -> f64;

/// Compares over edges and random encodings; returns how many were decided by the reference.
fn check(name: &str, f: &Format, ours: Approximate, reference: Reference) -> (u64, u64) {
    let mut random = Random(f.nan ^ name.len() as u64);
    let (mut decided, mut total) = (0, 0);
    let count = random_count();
    for a in edges(f).into_iter().chain((0..count).map(|_| random.encoding(f, f.one()))) {
        let result = ours(f, Mode::NEAREST, a);
        let y = reference(to_f64(f, a));
        if y.is_nan() {
            assert!(f.is_nan(result), "{name} {a:#x} = {result:#x}, not NaN");
            continue;
        }
        let margin = 2f64.powi(-50);
        let (low, high) = (from_f64(f, y * (1.0 - margin)), from_f64(f, y * (1.0 + margin)));
        assert!(
            result == low || result == high,
            "{name} {a:#x} = {result:#x}, not {low:#x} or {high:#x} ({y:e})"
        );
        decided += (low == high) as u64;
        total += 1;
    }
    (decided, total)
}

/// The sine of a number of cycles, so many quarters of one on; all but the last product and the sine itself are exact.
fn sin_of_cycles(x: f64, quarters: u64) -> f64 {
    let quarter_turns = 4.0 * (x.abs() % 1.0);
    let nearest = quarter_turns.round();
    let angle = (quarter_turns - nearest) * std::f64::consts::FRAC_PI_2;
    let y = match (nearest as u64 + quarters) % 4 {
        0 => angle.sin(),
        1 => angle.cos(),
        2 => -angle.sin(),
        _ => -angle.cos(),
    };
    // A zero is positive, and the sine has the sign of its operand.
    let y = if y == 0.0 { 0.0 } else { y };
    if quarters == 0 && x.is_sign_negative() { -y } else { y }
}

/// An angle in turns as ptxas's code has it: times 1 / (2 pi) in binary32, toward zero; a subnormal one is a zero.
fn turns(x: f64) -> f64 {
    // The product of two binary32 numbers is exact, and cutting its fraction to 23 bits rounds toward zero.
    let product = x * f64::from(f32::from_bits(0x3e22_f983));
    let cut = f64::from_bits(product.to_bits() & !0 << 29);
    if cut.abs() < f64::from(f32::MIN_POSITIVE) { 0f64.copysign(x) } else { cut }
}

#[test]
fn transcendental_functions_round_the_exact_value_to_nearest() {
    let functions: [(&str, Approximate, Reference); 7] = [
        ("sin of cycles", approx::sin_cycles, |x| sin_of_cycles(x, 0)),
        ("cos of cycles", approx::cos_cycles, |x| sin_of_cycles(x, 1)),
        ("ex2", approx::ex2, f64::exp2),
        ("lg2", approx::lg2, f64::log2),
        ("sin", approx::sin, |x| sin_of_cycles(turns(x), 0)),
        ("cos", approx::cos, |x| sin_of_cycles(turns(x), 1)),
        ("tanh", approx::tanh, f64::tanh),
    ];
    for (name, ours, reference) in functions {
        for f in [&F32, &BF16, &F16] {
            if matches!(name, "sin" | "cos") && *f != F32 {
                continue; // Halves have neither.
            }
            let (decided, total) = check(name, f, ours, reference);
            assert!(
                decided as f64 > 0.99 * total as f64,
                "{name}: only {decided} of {total} decided in {f:?}"
            );
        }
    }
}

/// `.f64` (lenient forms only): within 2 ulp of the host, over all magnitudes.
#[test]
fn double_functions_agree_with_the_host() {
    let functions: [(&str, Approximate, Reference); 5] = [
        ("ex2", approx::ex2, f64::exp2),
        ("lg2", approx::lg2, f64::log2),
        ("sin", approx::sin, f64::sin),
        ("cos", approx::cos, f64::cos),
        ("tanh", approx::tanh, f64::tanh),
    ];
    let mut random = Random(64);
    for (name, ours, reference) in functions {
        for _ in 0..random_count() / 4 {
            let a = random.encoding(&F64, F64.one());
            let (x, y) = (f64::from_bits(a), f64::from_bits(ours(&F64, Mode::NEAREST, a)));
            let expected = reference(x);
            if expected.is_nan() || x.is_subnormal() {
                continue;
            }
            let distance = (y.to_bits() as i64).abs_diff(expected.to_bits() as i64);
            assert!(distance <= 2, "{name}({x:e}) = {y:e}, not {expected:e}");
        }
    }
}

/// Special values, as the manual's tables have them.
#[test]
fn special_values() {
    const INFINITY: u64 = 0x7f80_0000;
    const MINUS: u64 = 0x8000_0000;
    const NAN: u64 = 0x7fff_ffff;
    const ONE: u64 = 0x3f80_0000;
    let ftz = Mode { ftz: true, ..Mode::NEAREST };
    for mode in [Mode::NEAREST, ftz] {
        let cases: [(Approximate, [u64; 6]); 10] = [
            // of -infinity, -0, +0, +infinity, NaN, 1
            (approx::ex2, [0, ONE, ONE, INFINITY, NAN, 0x4000_0000]),
            (approx::lg2, [NAN, MINUS | INFINITY, MINUS | INFINITY, INFINITY, NAN, 0]),
            (approx::sin, [NAN, MINUS, 0, NAN, NAN, 0x3f57_6aa4]),
            (approx::cos, [NAN, ONE, ONE, NAN, NAN, 0x3f0a_5141]),
            (approx::sin_cycles, [NAN, MINUS, 0, NAN, NAN, 0]),
            (approx::cos_cycles, [NAN, ONE, ONE, NAN, NAN, ONE]),
            (approx::tanh, [MINUS | ONE, MINUS, 0, ONE, NAN, 0x3f42_f7d6]),
            (arith::rcp, [MINUS, MINUS | INFINITY, INFINITY, 0, NAN, ONE]),
            (arith::rsqrt, [NAN, MINUS | INFINITY, INFINITY, 0, NAN, ONE]),
            (arith::sqrt, [NAN, MINUS, 0, INFINITY, NAN, ONE]),
        ];
        for (i, (function, expected)) in cases.into_iter().enumerate() {
            let inputs = [MINUS | INFINITY, MINUS, 0, INFINITY, 0x7fc0_0001, ONE];
            assert_eq!(inputs.map(|a| function(&F32, mode, a)), expected, "case {i}");
        }
    }
}

/// Whether `r` is sqrt(a) rounded in that direction, decided by squares: for positive finite a.
#[test]
fn square_roots_are_bounded_by_squares() {
    let mut random = Random(2);
    for f in [&F16, &BF16, &F32, &F64] {
        for _ in 0..random_count() {
            let a = random.next() % f.infinity();
            let down = arith::sqrt(f, Mode::rounding(Rounding::TowardZero), a);
            let up = arith::sqrt(f, Mode::rounding(Rounding::TowardPositive), a);
            let nearest = arith::sqrt(f, Mode::NEAREST, a);
            // Compare r^2 with a: the sign of fma(r, r, -a) is exact under rounding to nearest if nothing underflows.
            if a < f.one() / 2 && *f == F64 {
                continue;
            }
            let sign = |r: u64| {
                let wide = |x: u64| convert::convert_float(f, &F64, Mode::NEAREST, x);
                let d =
                    f64::from_bits(arith::fma(&F64, Mode::NEAREST, wide(r), wide(r), wide(a) ^ F64.sign()));
                if d > 0.0 {
                    1
                } else if d < 0.0 {
                    -1
                } else {
                    0
                }
            };
            assert!(sign(down) <= 0 && sign(down + 1) > 0, "sqrt.rz {a:#x} = {down:#x} in {f:?}");
            assert!(sign(up) >= 0 && (up == 0 || sign(up - 1) < 0), "sqrt.rp {a:#x} = {up:#x} in {f:?}");
            assert!(nearest == down || nearest == up);
            if *f == F32 {
                assert_eq!(nearest, f32::from_bits(a as u32).sqrt().to_bits() as u64);
            }
            if *f == F64 {
                assert_eq!(nearest, f64::from_bits(a).sqrt().to_bits());
            }
        }
    }
}

/// rsqrt, correctly rounded: against the host where f64 decides, and against itself by a * r * r near 1.
#[test]
fn inverse_square_roots_round_the_exact_value_to_nearest() {
    for f in [&F32, &BF16, &F16] {
        let (decided, total) =
            check("rsqrt", f, arith::rsqrt, |x| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() });
        assert!(decided as f64 > 0.99 * total as f64);
    }
    let mut random = Random(3);
    for _ in 0..random_count() {
        // Round down and up enclose: a * down^2 <= 1 <= a * up^2, exactly, in 192-bit integers split in two.
        let a = F64.one() + random.next() % (2 << 52);
        let down = arith::rsqrt(&F64, Mode::rounding(Rounding::TowardZero), a);
        let up = arith::rsqrt(&F64, Mode::rounding(Rounding::TowardPositive), a);
        assert!(up - down <= 1, "{a:#x}");
        let significand = |x: u64| (x & ((1 << 52) - 1) | 1 << 52) as u128;
        // a = m * 2^(ea - 52), r = n * 2^(er - 52): compare m * n^2 with 2^(156 - ea - 2 er).
        let compare = |r: u64| {
            let (ea, er) = ((a >> 52) as i32 - 1023, (r >> 52) as i32 - 1023);
            let (m, square) = (significand(a), significand(r) * significand(r));
            let (high, low) = ((square >> 64) * m, (square & u64::MAX as u128) * m);
            let high = high + (low >> 64);
            let low = low & u64::MAX as u128;
            (high, low).cmp(&(1u128 << (156 - ea - 2 * er - 64), 0))
        };
        assert!(compare(down).is_le() && compare(up).is_ge(), "{a:#x} {down:#x} {up:#x}");
    }
}
